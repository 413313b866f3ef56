"""Every fixture says what devlint finds in it. The rules that are on by default are on for every fixture, an opt-in rule
for its own folder; in the folder `opt_in` all are."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from devlint.engine import Linter
from devlint.settings import Settings
from devlint.testing import FIXED_SUFFIX, case_files, check_fixture
from devlint_rules import RULES

FIXTURES = Path(__file__).parents[1] / "fixtures"
#: Folders whose files are programs to run or scripts to search, with expectations of another form.
OTHER_FORMS = ("runtime", "peers", "programs")
CASES = [path for path in case_files(FIXTURES) if path.relative_to(FIXTURES).parts[0] not in OTHER_FORMS]


@cache
def linter(folder: str) -> Linter:
    codes = [rule.meta.code for rule in RULES if not rule.meta.opt_in or folder in (rule.meta.code, "opt_in")]
    return Linter(tuple(rule() for rule in RULES), Settings(select=(*codes, "DEV9")))


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Copies a folder of cases, as a library of its own: callers elsewhere in this repository say nothing about a case."""

    @cache
    def copied(folder: str) -> Path:
        root = tmp_path_factory.mktemp("library")
        (root / "pyproject.toml").write_text('[project]\nname = "cases"\nversion = "1"\n')
        shutil.copytree(FIXTURES / folder, root / "fixtures" / folder)
        return root / "fixtures"

    return copied


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.relative_to(FIXTURES).with_suffix("").as_posix())
def test_fixture(path: Path, project: Callable[[str], Path]) -> None:
    own = path.relative_to(FIXTURES)
    failures = check_fixture(project(own.parts[0]) / own, linter(own.parts[0]))
    assert not failures, "\n" + "\n".join(failures)


def test_there_are_fixtures() -> None:
    assert len(CASES) > 100


def test_fixed_files_have_a_case() -> None:
    orphans = [
        path for path in FIXTURES.rglob(f"*{FIXED_SUFFIX}")
        if not path.with_name(path.name.removesuffix(FIXED_SUFFIX) + ".py").exists()
    ]  # fmt: skip
    assert not orphans

"""Makes `tests.facts.programs` importable, however pytest was started; `checked` checks a file of a small project."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from devlint.engine import Linter
from devlint.model import FileResult
from devlint.rulebook import rules_of
from devlint.settings import Settings

sys.path.insert(0, str(Path(__file__).parents[2]))


@pytest.fixture
def checked(tmp_path: Path) -> Callable[..., FileResult]:
    """Writes the files of a project, given as texts by path, and gives the result of checking one of them."""

    def check(files: dict[str, str], name: str = "tools.py") -> FileResult:
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(textwrap.dedent(text))
        return Linter(rules_of(()), Settings(select=("DEV1", "DEV3"))).check_file(tmp_path / name)

    return check

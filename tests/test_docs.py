"""The documentation: its examples run, its links lead somewhere, every rule has a page."""

from __future__ import annotations

import dataclasses
import posixpath
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from devlint import api
from devlint.commands.rule import explained_rules
from devlint.config import toml_reader
from devlint.dev.site import GUIDES, PICTURES, build, configuration, pages, rule_page
from devlint.engine import Linter
from devlint.inference.observed.events import Evidence
from devlint.inference.observed.members import FAMILIES
from devlint.inference.terms.values import Kind
from devlint.registry import GROUP, load_rules
from devlint.rulebook import rules_of
from devlint.safe_path import safe_path
from devlint.settings import Settings
from devlint.source import decode
from devlint.testing import case_files
from tests.conftest import Run

ROOT = Path(__file__).parents[1]
TEXTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


GUIDE = ROOT / "docs" / "writing-a-rule.md"


GUIDE_BLOCK = re.compile(r"^`([\w./-]+)`:\n\n```\w+\n(.*?)```", re.S | re.M)
#: A heading of the guide before which the package has one rule.
ONE_RULE = "## DeviceMismatch"


@pytest.fixture
def guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Path]]:
    """Writes the package of a text of the guide and installs it as pip does in editable form."""

    def install(text: str) -> Path:
        folder, installed = tmp_path / "acme-rules", tmp_path / "installed"
        for name, code in GUIDE_BLOCK.findall(text):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code, encoding="utf-8")
        project = toml_reader().loads((folder / "pyproject.toml").read_text())["project"]
        metadata = installed / f"acme_rules-{project['version']}.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
        )
        points = "\n".join(f"{name} = {value}" for name, value in project["entry-points"][GROUP].items())
        (metadata / "entry_points.txt").write_text(f"[{GROUP}]\n{points}\n")
        (metadata / "RECORD").write_text("_acme.pth,,\n")
        (installed / "_acme.pth").write_text(f"{folder}\n")
        monkeypatch.setattr(sys, "path", [str(installed), *sys.path])
        return folder

    yield install
    for name in [name for name in sys.modules if name.partition(".")[0] == "acme_rules"]:
        del sys.modules[name]
    rules_of.cache_clear()


@pytest.mark.parametrize("whole", [False, True], ids=["one rule", "three rules"])
def test_the_tests_of_the_guide_pass_as_they_stand(
    guide: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    text = GUIDE.read_text("utf-8")
    folder = guide(text if whole else text.partition(ONE_RULE)[0])
    monkeypatch.syspath_prepend(str(folder))
    tests = runpy.run_path(str(folder / "tests" / "test_rules.py"))
    cases = case_files(folder / "fixtures")
    for path in cases:
        tests["test_case"](path)
    assert [path.parent.name for path in cases] == ["ACM101", "ACM102", "ACM103"][: 3 if whole else 1]


def test_the_settings_of_the_guide_run_its_rules_in_the_folder_of_the_package(
    run: Run, guide: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = GUIDE.read_text("utf-8")
    folder = guide(text)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", safe_path())
    (settings,) = re.findall(r"```toml\n(\[tool.devlint\].*?)```", text, re.S)
    (folder / "pyproject.toml").write_text((folder / "pyproject.toml").read_text() + "\n" + settings)
    assert run("rule", "ACM103").out.startswith("# half-on-cpu (ACM103)")
    result = run("check", "--output-format", "concise", "--select", "ACM", "fixtures")
    fixtures = (folder / "fixtures").rglob("*.py")
    expected = sum(path.read_text().count("# expect:") for path in fixtures)
    assert (result.out.count(": ACM10"), result.err) == (expected, "")


def test_the_page_of_a_portable_library_shows_what_devlint_prints(run: Callable[..., Any]) -> None:
    """Its commands up to the baseline, in its order. `...` stands for what the page leaves out."""
    text = (ROOT / "docs" / "portable-library.md").read_text("utf-8")
    for name, language in (("src/blur/__init__.py", "python"), ("pyproject.toml", "toml")):
        found = re.search(rf"```{language}\n(.*?)```", text, re.S)
        assert found is not None
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(found[1])
    shown = re.findall(r"^\$ devlint (.*)\n((?:(?!\$|```).*\n)*)", text, re.M)
    before_the_branch = [each for each in shown if "--diff-base" not in each[0]]
    assert [each[1] for each in before_the_branch] == [run("check", *each[0].split()).out for each in before_the_branch]


def device_agnostic_program() -> str:
    found = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "device-agnostic.md").read_text("utf-8"), re.S)
    assert found is not None
    return found[1]


def test_nothing_is_found_in_the_device_agnostic_program() -> None:
    result = Linter(load_rules(), Settings()).check(decode(device_agnostic_program().encode(), "train.py"))
    assert not result.diagnostics and not result.crashes


@pytest.mark.runtime
@pytest.mark.parametrize("runner", [("-c",), ("-m", "devlint", "run", "--device", "sim:xpu")], ids=["cpu", "sim xpu"])
def test_the_device_agnostic_program_runs(tmp_path: Path, runner: tuple[str, ...]) -> None:
    pytest.importorskip("torch")
    program = device_agnostic_program()
    if runner != ("-c",):
        (tmp_path / "train.py").write_text(program)
        program = "train.py"
    done = subprocess.run(
        [sys.executable, *runner, program], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_guide_names_every_event() -> None:
    table = GUIDE.read_text("utf-8").split("## Events")[1]
    events = {name for name, each in vars(api).items() if isinstance(each, type) and issubclass(each, api.Event)}
    assert set(re.findall(r"`([A-Z]\w+)`", table)) >= events - {"Event", "Inferred"}  # the bases of the others


def test_the_guide_names_every_field_of_the_metadata() -> None:
    table = GUIDE.read_text("utf-8").split("### Metadata")[1].split("### Functions")[0]
    fields = {each.name for each in dataclasses.fields(api.RuleMeta)} - {"needs_inference"}  # a rule does not set it
    assert set(re.findall(r"`(\w+)(?:=True)?`", table)) >= fields


def test_the_guide_names_every_member_of_a_site() -> None:
    text = GUIDE.read_text("utf-8")
    members = {name for name in vars(api.Site) if not name.startswith("_")}
    assert set(re.findall(r"`site\.(\w+)", text)) >= members


def test_the_guide_names_every_attribute_of_a_part_and_every_kind() -> None:
    table = GUIDE.read_text("utf-8").split("## Every call, attribute")[1]
    said = set(re.findall(r"`(\w+)", table))
    assert said >= {each.name for each in dataclasses.fields(api.Part)} | set(api.Whereabouts._fields)
    assert said >= ({*get_args(Kind), *FAMILIES} - {"bound", "mover"}) | set(
        get_args(Evidence)
    )  # they are methods and functions


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), target


def test_the_site_has_a_page_for_every_rule_and_guide() -> None:
    rules = explained_rules()
    found = pages(rules, ROOT)
    assert {f"rules/{rule.meta.code}.md" for rule in load_rules()} < found.keys()
    assert "index.md" in found
    navigation = configuration(rules, found)
    for name in found:
        assert f" {name}\n" in navigation


def test_all_links_of_the_site_lead_to_its_pages_and_headings() -> None:
    found = pages(explained_rules(), ROOT)
    anchors = {name: set(map(slug, re.findall(r"^#+ (.*)", text, re.M))) for name, text in found.items()}
    dead = []
    for name, text in found.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```|`[^`\n]+`", "", text, flags=re.S | re.M)):
            path, _, anchor = target.partition("#")
            other = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            if other.startswith(f"{PICTURES}/") and (ROOT / "docs" / other).is_file():
                continue
            if not target.startswith("https://") and (other not in found or (anchor and anchor not in anchors[other])):
                dead.append(f"{name}: {target}")
    assert not dead


def slug(heading: str) -> str:
    return re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())


def test_every_guide_is_in_the_navigation() -> None:
    assert {path.name for path in (ROOT / "docs").glob("*.md")} == {name for _, name in GUIDES}


def test_a_bar_in_code_of_a_table_is_shown_without_its_backslash() -> None:
    page = pages(explained_rules(), ROOT)["index.md"]
    assert "<code>python train.py 2&gt;&amp;1 &#124; devlint explain -</code>" in page


@pytest.mark.slow
def test_the_site_is_built_and_can_be_searched(tmp_path: Path) -> None:
    pytest.importorskip("zensical", reason="needs zensical")
    assert build(tmp_path) == 0
    index = (tmp_path / "site" / "search.json").read_text(encoding="utf-8")
    assert [rule.meta.code for rule in load_rules() if f"rules/{rule.meta.code}/" not in index] == []
    page = (tmp_path / "site" / "rules" / "DEV103" / "index.html").read_text(encoding="utf-8")
    assert "fonts.googleapis" not in page


def test_a_page_of_a_rule_has_every_part() -> None:
    rule = next(each for each in explained_rules() if each.meta.code == "DEV102")
    page = rule_page(rule)
    headings = re.findall(r"^#+ (.*)", page, re.M)
    assert headings[0] == "DEV102 new-tensor-default-device"
    assert set(headings) >= {"What it flags", "Why it matters", "Example", "Fix safety", "Options"}
    assert page.count("```python\n") == 2
    assert "`assume-accelerator = false`" in page


def test_guides_that_are_named_exist() -> None:
    missing = [name for _, name in GUIDES if not (ROOT / "docs" / name).is_file()]
    assert not missing

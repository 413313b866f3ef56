"""Finding rule packages by entry points."""

from __future__ import annotations

import os
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from devlint.api import Event, Facts, Finding, Rule, RuleMeta, Severity, Site
from devlint.errors import RuleLoadError
from devlint.registry import GROUP, check_rules, collect, load_rules
from devlint.safe_path import safe_path


class Base(Rule[Event]):
    abstract = True

    def suspects(self, event: Event, facts: Facts) -> bool:
        return False

    def judge(self, event: Event, site: Site) -> Finding | None:
        return None


def rule(code: str, name: str) -> type[Rule[Any]]:
    meta = RuleMeta(code, name, "says nothing", "0.1.0", "certain", Severity.INFO, "never", ())
    return type("Made", (Base,), {"meta": meta, "event": Event, "abstract": False})


ONE, TWO = rule("DEV191", "one"), rule("DEV192", "two")
TUPLE = (TWO, ONE)
PLUGIN = (rule("XYZ001", "three"),)
CLASH = (rule("DEV191", "other"),)
EMPTY = ()
LIST = [ONE]


class Unmakeable(Base):
    meta = ONE.meta
    event = Event

    def __init__(self) -> None:
        raise OSError("no data")


UNMAKEABLE = (Unmakeable,)


def point(name: str, value: str, monkeypatch: pytest.MonkeyPatch | None = None) -> EntryPoint:
    return EntryPoint(name, value, GROUP)


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """This file under a fixed name, so that entry points can refer to it."""
    import sys

    monkeypatch.setitem(sys.modules, "rules_of_the_test", sys.modules[__name__])


def here(name: str, attribute: str) -> EntryPoint:
    return point(name, f"rules_of_the_test:{attribute}")


def test_rules_are_sorted_by_code() -> None:
    assert [r.meta.code for r in collect([here("builtin", "TUPLE")])] == ["DEV191", "DEV192"]


def test_other_packages_are_loaded_only_when_named() -> None:
    found = [here("builtin", "TUPLE"), here("extra", "PLUGIN"), point("broken", "no_such_module:RULES")]
    assert [r.meta.code for r in collect(found)] == ["DEV191", "DEV192"]
    assert [r.meta.code for r in collect(found, ["extra"])] == ["DEV191", "DEV192", "XYZ001"]


def test_package_that_is_listed_twice_counts_once() -> None:
    assert len(collect([here("builtin", "TUPLE")] * 2, ["builtin"])) == 2


@pytest.mark.parametrize(
    ("found", "plugins", "message"),
    [
        ([("builtin", "EMPTY")], [], "the rule packages are empty"),
        ([("builtin", "TUPLE"), ("extra", "CLASH")], ["extra"], "DEV191 is claimed twice: by .* and by "),
        ([("builtin", "TUPLE"), ("builtin", "PLUGIN")], [], "two packages provide rules as 'builtin'"),
        ([("builtin", "TUPLE")], ["extra"], "no installed package provides rules as 'extra'; there are: builtin"),
        ([("builtin", "LIST")], [], "must be a tuple of Rule classes"),
        ([("builtin", "NOTHING")], [], "cannot be loaded: .*AttributeError"),
        ([("builtin", "UNMAKEABLE")], [], r"cannot be made: .*test_registry\.py:\d+: OSError: no data"),
    ],
)
def test_bad_set_of_rules_is_a_named_error(found: list[tuple[str, str]], plugins: list[str], message: str) -> None:
    with pytest.raises(RuleLoadError, match=message):
        collect([here(*item) for item in found], plugins)


def test_package_that_does_not_import_is_named() -> None:
    with pytest.raises(RuleLoadError, match=r"'builtin' \(no_such_module:RULES\) cannot be loaded: .*No module named"):
        collect([point("builtin", "no_such_module:RULES")])


def test_rule_cannot_take_the_code_of_the_engines_own_finding() -> None:
    with pytest.raises(RuleLoadError, match="DEV900 is claimed twice"):
        check_rules([rule("DEV900", "mine")()])


def test_shipped_rules_load() -> None:
    rules = load_rules()
    assert rules
    assert rules == tuple(sorted(rules, key=lambda r: r.meta.code))


PACKAGE = """
from devlint.api import Event, Rule, RuleMeta, Severity

class Silent(Rule[Event]):
    meta = RuleMeta("ABC001", "silent", "says nothing", "1.0", "certain", Severity.INFO, "never", ())
    event = Event

    def suspects(self, event, facts):
        return False

    def judge(self, event, site):
        return None

RULES = (Silent,)
"""


def test_rules_of_an_installed_package_are_used_when_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pip leaves it: a package beside a `.dist-info` that declares the entry point."""
    (tmp_path / "spare_rules.py").write_text(PACKAGE)
    metadata = tmp_path / "spare_rules-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: spare-rules\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{GROUP}]\nspare = spare_rules:RULES\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "ABC001" in {r.meta.code for r in load_rules(["spare"])}
    assert "ABC001" not in {r.meta.code for r in load_rules()}


def editable(tmp_path: Path, name: str, record: str) -> Path:
    """A package that is installed in editable form: its metadata lie apart, and a `.pth` file leads to its folder."""
    folder, installed = tmp_path / "project", tmp_path / "installed"
    folder.mkdir()
    (folder / f"{name}_rules.py").write_text(PACKAGE)
    metadata = installed / f"{name}_rules-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-rules\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {name}_rules:RULES\n")
    (metadata / "RECORD").write_text(record)
    (installed / f"_{name}.pth").write_text(f"import os\n{folder}\n")
    return folder


def run_inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As devlint begins in the folder: its path is made safe."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [str(folder.parent / "installed"), str(folder), *sys.path])
    monkeypatch.setattr(sys, "path", safe_path())
    assert str(folder) not in sys.path


def test_package_that_is_installed_in_editable_form_from_the_current_folder_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_inside(editable(tmp_path, "here", "_here.pth,,\n"), monkeypatch)
    assert "ABC001" in {r.meta.code for r in load_rules(["here"])}
    assert sys.path[-1] == os.getcwd()


def test_folder_of_an_editable_package_that_nobody_names_stays_off_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = editable(tmp_path, "unnamed", "_unnamed.pth,,\n")
    run_inside(folder, monkeypatch)
    load_rules()
    assert str(folder) not in sys.path


def test_path_file_of_another_package_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_inside(editable(tmp_path, "foreign", "foreign_rules-1.0.dist-info/METADATA,,\n"), monkeypatch)
    with pytest.raises(RuleLoadError, match="No module named 'foreign_rules'"):
        load_rules(["foreign"])

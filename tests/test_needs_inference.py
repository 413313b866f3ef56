"""A rule that judges events of the new inference alone: whoever has the old one is told so, once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from devlint.api import Create, DeviceMismatch, Event, InferredAttribute, InferredCall, Rule, RuleMeta, Severity
from devlint.engine import Linter
from devlint.registry import GROUP
from devlint.settings import Settings
from devlint.testing import check_fixture
from tests.conftest import Run

RULES = '''\
"""A module on the CPU is changed to half precision.

## What it flags
It.
"""

from devlint.api import Finding, InferredCall, Rule, RuleMeta, Severity


class HalfOnCpu(Rule[InferredCall]):
    meta = RuleMeta("ACM103", "half-on-cpu", "half on the CPU", "1.0", "certain", Severity.WARNING, "never", ("half",))
    event = InferredCall

    def suspects(self, event, facts):
        return event.name == "half" and event.receiver is not None and event.receiver.is_on("cpu")

    def judge(self, event, site):
        return Finding(event.span, "half precision is slow here", None, event.because)


RULES = (HalfOnCpu,)
'''
PROGRAM = "import torch\n\nnet = torch.nn.Linear(3, 3)\nnet.half()\n"
NOTE = 'ACM103 (half-on-cpu) reports nothing without `inference = "new"` in the settings, or `--inference new`'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty project whose settings name an installed package with one rule of inferred events."""
    installed = tmp_path.parent / f"{tmp_path.name}-installed"
    metadata = installed / "inferring_rules-1.0.dist-info"
    metadata.mkdir(parents=True)
    (installed / "inferring_rules.py").write_text(RULES)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: inferring-rules\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{GROUP}]\ninferring = inferring_rules:RULES\n")
    monkeypatch.syspath_prepend(str(installed))
    (tmp_path / "devlint.toml").write_text('plugins = ["inferring"]\n')
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(PROGRAM)
    yield tmp_path


def test_check_names_the_rule_once(run: Run, project: Path) -> None:
    result = run("check", ".")
    assert (result.code, result.err.count(NOTE)) == (0, 1)


def test_check_names_the_rule_when_all_comes_from_the_cache_too(run: Run, project: Path) -> None:
    first, second = run("check", "."), run("check", ".")
    assert (first.err.count(NOTE), second.err.count(NOTE)) == (1, 1)


@pytest.mark.parametrize("settings", [("--inference", "new"), ("--ignore", "ACM"), ("--select", "DEV1"), ("--quiet",)])
def test_check_says_nothing_where_nothing_is_amiss(run: Run, project: Path, settings: tuple[str, ...]) -> None:
    assert NOTE not in run("check", *settings, ".").err


def test_setting_switches_the_rule_on(run: Run, project: Path) -> None:
    (project / "devlint.toml").write_text('plugins = ["inferring"]\ninference = "new"\n')
    result = run("check", "--output-format", "concise", "a.py")
    assert (result.code, "ACM103" in result.out, NOTE in result.err) == (1, True, False)


def test_page_of_the_rule_says_what_it_needs(run: Run, project: Path) -> None:
    page = run("rule", "ACM103").out
    assert "The rule needs the new inference" in page
    assert '`inference = "new"` is necessary' in page
    assert json.loads(run("rule", "ACM103", "--output-format", "json").out)["needs_inference"] is True


def test_page_of_a_shipped_rule_says_nothing_of_it(run: Run, project: Path) -> None:
    assert "The rule needs the new inference" not in run("rule", "DEV301").out


EVENTS: list[tuple[tuple[type[Event], ...], bool]] = [
    ((InferredCall,), True),
    ((DeviceMismatch,), True),
    ((InferredCall, InferredAttribute), True),
    ((Create,), False),
    ((Create, InferredCall), False),
]


@pytest.mark.parametrize(("events", "needs"), EVENTS)
def test_rule_needs_it_where_all_its_events_do(events: tuple[type[Event], ...], needs: bool) -> None:
    meta = RuleMeta("XYZ001", "one", "says nothing", "1.0", "certain", Severity.INFO, "never", ())
    made: type[Rule[Event]] = type("Made", (Rule,), {"meta": meta, "event": events[0], "also": events[1:]})
    assert made.meta.needs_inference is needs


def test_case_that_fails_for_want_of_it_says_so(tmp_path: Path, project: Path) -> None:
    import inferring_rules  # type: ignore[import-not-found]

    rules: list[Rule[Event]] = [each() for each in inferring_rules.RULES]
    case = tmp_path / "case.py"
    case.write_text("import torch\n\nnet = torch.nn.Linear(3, 3)\nnet.half()  # expect: ACM103\n")
    failures = check_fixture(case, Linter(rules, Settings(select=("ALL",))))
    assert any('ACM103 reports nothing without `Settings(inference="new")`' in each for each in failures)
    assert check_fixture(case, Linter(rules, Settings(select=("ALL",), inference="new"))) == []

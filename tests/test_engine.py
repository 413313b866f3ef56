"""The engine on hand-made facts: gate, rules, suppression, crashes, unreadable files."""

from __future__ import annotations

import ast
import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devlint import engine
from devlint.api import Edit, Event, Finding, Fix, Origin, Rule, RuleMeta, Safety, Severity, Site, Span, cst
from devlint.engine import Linter
from devlint.facts import Facts
from devlint.facts.events import NO_GUARDS
from devlint.model import Diagnostic, FileResult, TextEdit
from devlint.settings import Settings
from devlint.source import Source, decode

HEAD = "import torch\n"


def meta(code: str, name: str, words: tuple[str, ...] = ("bad",), opt_in: bool = False) -> RuleMeta:
    return RuleMeta(code, name, "calls bad", "0.1.0", "certain", Severity.WARNING, "sometimes", words, opt_in)


class BadCall(Rule[Event]):
    meta = meta("DEV199", "bad-call")
    event = Event

    def suspects(self, event: Event, facts: Facts) -> bool:
        return facts.source(event.span).startswith("bad")

    def judge(self, event: Event, site: Site) -> Finding | None:
        call = site.node
        assert isinstance(call, cst.Call)
        if call.args and site.code(call.args[0].value) == "fine":
            return None
        edit = Edit(call, call.with_changes(func=cst.Name("good")))
        because = (Origin(Span(0, 6), "torch comes from here"),)
        return Finding(event.span, f"`{site.code(call)}` is bad", Fix("call good", Safety.SAFE, (edit,)), because)


class Crashing(BadCall):
    meta = meta("DEV198", "crash")

    def judge(self, event: Event, site: Site) -> Finding | None:
        raise KeyError("gone")


class CrashingQuestion(BadCall):
    meta = meta("DEV197", "crash-early")

    def suspects(self, event: Event, facts: Facts) -> bool:
        raise ZeroDivisionError("no")


class OptIn(BadCall):
    meta = meta("DEV196", "opt-in", opt_in=True)


class EveryFile(BadCall):
    meta = meta("DEV195", "every-file", words=())


def calls(tree: ast.Module, source: Source, settings: Settings) -> Facts:
    """Facts with one event for each call of a name, as they come from a walk."""
    facts = Facts(source.path, source.text, imports={"torch": "torch"}, budget_hits=3)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            facts.events.append(Event(source.span(node), node, (), NO_GUARDS, {}, ""))
    return facts


def lint(text: str, *rules: type[Rule[Any]], settings: Settings | None = None) -> FileResult:
    linter = Linter([rule() for rule in rules or (BadCall,)], settings, calls)
    return linter.check_bytes(text.encode(), "a.py")


def codes(result: FileResult) -> list[tuple[str, int, int]]:
    return [(d.code, d.start.row, d.start.column) for d in result.diagnostics]


def only(result: FileResult) -> Diagnostic:
    (diagnostic,) = result.diagnostics
    return diagnostic


def test_finding_has_rule_place_message_and_fix() -> None:
    text = HEAD + 's = "重要"; bad(1)\n'
    found = only(lint(text))
    assert (found.code, found.name, found.path) == ("DEV199", "bad-call", "a.py")
    assert (found.start, found.end) == ((2, 11), (2, 17))
    assert found.message == "`bad(1)` is bad"
    assert found.fix is not None
    start = text.index("bad(")
    assert found.fix.edits == (TextEdit(start, start + 3, "good"),)


def test_reason_of_a_finding_is_a_second_place() -> None:
    (related,) = only(lint(HEAD + "bad()\n")).related
    assert (related.path, related.start, related.end) == ("a.py", (1, 1), (1, 7))
    assert related.message == "torch comes from here"


def test_suspect_that_the_judgement_clears_is_no_finding() -> None:
    result = lint(HEAD + "bad(fine)\n")
    assert not result.diagnostics
    assert result.statistics.suspects == 1


def test_findings_are_sorted_by_place_then_code() -> None:
    assert codes(lint(HEAD + "bad(bad(2))\nbad(1)\n", BadCall, EveryFile)) == [
        ("DEV195", 2, 1),
        ("DEV199", 2, 1),
        ("DEV195", 2, 5),
        ("DEV199", 2, 5),
        ("DEV195", 3, 1),
        ("DEV199", 3, 1),
    ]


def test_same_finding_from_two_events_is_one() -> None:
    def twice(tree: ast.Module, source: Source, settings: Settings) -> Facts:
        facts = calls(tree, source, settings)
        facts.events *= 2
        return facts

    assert len(Linter([BadCall()], None, twice).check(decode(HEAD.encode() + b"bad()\n", "a.py")).diagnostics) == 1


# Gate and statistics


@pytest.mark.parametrize(
    ("text", "gated"),
    [
        ("import torch\n", 1),
        ("bad()\n", 1),
        ("import torch\nbad()\n", 0),
        ("model.cuda()\nbad()\n", 0),
        ("class Net(Base):\n    def forward(self, x): bad()\n", 0),
        ("class Net(Base):\n    def forward(x): bad()\n", 1),
        ("# torch bad\nx = = 1\n", 0),
    ],
)
def test_gate_lets_go_files_without_torch_or_without_a_word_of_a_rule(text: str, gated: int) -> None:
    assert lint(text).statistics.gated == gated


def test_rule_without_words_is_asked_about_every_file() -> None:
    assert codes(lint("bad()\n", EveryFile)) == [("DEV195", 1, 1)]


def test_gate_looks_only_for_words_of_selected_rules() -> None:
    linter = Linter([BadCall(), EveryFile()], Settings(ignore=("DEV195",)), calls)
    assert not linter.may_fire(b"import torch")


def test_statistics_count_lines_suspects_and_what_libcst_parsed() -> None:
    statistics = lint(HEAD + "x = 1\nbad(1,\n  2)\nbad(3)\nother()\n").statistics
    assert (statistics.files, statistics.lines, statistics.suspects) == (1, 6, 2)
    assert (statistics.lines_parsed_by_libcst, statistics.budget_hits) == (3, 3)


def test_of_a_function_with_very_many_findings_no_more_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    class Assumed(Event):
        certainty = "assume"

    def of_one_function(tree: ast.Module, source: Source, settings: Settings) -> Facts:
        facts = calls(tree, source, settings)
        facts.events = [Assumed(e.span, e.node, e.because, e.under, e.scope, "f") for e in facts.events]
        facts.budget_hits = 0
        return facts

    monkeypatch.setattr(engine, "ASKED", 2)
    result = Linter([BadCall()], None, of_one_function).check_bytes((HEAD + "bad(1)\n" * 5).encode(), "a.py")
    assert [row for _, row, _ in codes(result)] == [2, 3]
    assert result.statistics.budget_hits == 1


def test_garbage_collector_is_as_before_afterwards() -> None:
    during: list[bool] = []

    def watch(tree: ast.Module, source: Source, settings: Settings) -> Facts:
        during.append(gc.isenabled())
        return Facts(source.path, source.text)

    linter = Linter([BadCall()], None, watch)
    linter.check_bytes(b"torch bad", "a.py")
    linter.check_bytes(b"torch.bad", "a.py")
    assert during == [False]
    assert gc.isenabled()


# Selection


def test_opt_in_rule_is_off_until_it_is_selected() -> None:
    assert not lint(HEAD + "bad()\n", OptIn).diagnostics
    assert codes(lint(HEAD + "bad()\n", OptIn, settings=Settings(select=("DEV196",)))) == [("DEV196", 2, 1)]


def test_unreadable_file_is_reported_whatever_is_selected() -> None:
    broken = "torch bad = 1\n"
    for settings in (Settings(select=("DEV101",)), Settings(ignore=("ALL",)), Settings(ignore=("DEV9",))):
        assert codes(lint(broken, settings=settings)) == [("DEV900", 1, 7)]


@pytest.mark.parametrize("selector", ["DEV900", "unreadable-file"])
def test_only_its_own_selector_silences_an_unreadable_file(selector: str) -> None:
    assert not lint("torch bad = 1\n", settings=Settings(ignore=(selector,))).diagnostics


@pytest.mark.parametrize("text", ["x = (\n", "nonlocal = 1\n", "def f():\nreturn 1\n"])
def test_syntax_error_is_reported_in_a_file_that_the_gate_lets_go(text: str) -> None:
    result = lint(text)
    assert result.statistics.gated == 1
    assert [d.code for d in result.diagnostics] == ["DEV900"]


def test_what_only_the_compiler_refuses_is_no_syntax_error_of_a_gated_file() -> None:
    assert not lint("def f():\n    nonlocal x\n\nnonlocal y\nbreak\n").diagnostics


# Suppression


@pytest.mark.parametrize(
    "text",
    [
        "bad()  # noqa\n",
        "bad()  # noqa: DEV199\n",
        "bad()  # devlint: ignore[DEV199] on purpose\n",
        "x = (1,  # devlint: ignore[bad-call]\n  bad(),\n  2)\n",
        "x = (1,\n  bad(),\n  2)  # devlint: ignore[bad-call]\n",
        "x = (1,\n  bad(),  # noqa: DEV199\n  2)\n",
        "if bad(  # noqa: DEV1\n  1\n):\n  pass\n",
    ],
)
def test_comment_on_a_border_row_of_finding_or_statement_silences_it(text: str) -> None:
    result = lint(HEAD + text)
    assert not result.diagnostics
    assert [d.code for d in result.suppressed] == ["DEV199"]


@pytest.mark.parametrize(
    "text",
    [
        "bad()  # noqa: DEV101\n",
        "bad()  # devlint: ignore[DEV101]\n",
        "# noqa\nbad()\n",
        "bad('# noqa')\n",
        "x = (1,\n  2,  # noqa\n  bad(),\n  3)\n",
        "if bad():\n  pass  # noqa\n",
    ],
)
def test_comment_elsewhere_or_for_another_rule_silences_nothing(text: str) -> None:
    assert "DEV199" in [d.code for d in lint(HEAD + text).diagnostics]


# What goes wrong


@pytest.mark.parametrize("rule", [Crashing, CrashingQuestion])
def test_crash_of_a_rule_names_it_with_file_and_line_and_the_rest_goes_on(rule: type[Rule[Any]]) -> None:
    result = lint(HEAD + "x = 1\nbad()\nbad()\n", rule, BadCall)
    (crash,) = result.crashes
    assert crash.startswith(f"a.py:3: {rule.meta.code} crashed: ")
    assert codes(result) == [("DEV199", 3, 1), ("DEV199", 4, 1)]


def test_crash_of_the_analysis_is_reported_with_the_row_of_its_node() -> None:
    def broken(tree: ast.Module, source: Source, settings: Settings) -> Facts:
        node = tree.body[1]
        raise ValueError(f"cannot handle {type(node).__name__}")

    result = Linter([BadCall()], None, broken).check_bytes(b"import torch\nbad = 1\n", "a.py")
    assert not result.diagnostics
    assert result.crashes[0].startswith("a.py:2: the analysis crashed: ValueError: cannot handle Assign")


def test_analysis_that_runs_out_of_stack_is_a_finding_at_the_deepest_statement() -> None:
    def recursive(tree: ast.Module, source: Source, settings: Settings) -> Facts:
        raise RecursionError

    result = Linter([BadCall()], None, recursive).check_bytes(b"import torch\nbad = 1\n\nx = a.b.c.d\n", "a.py")
    assert codes(result) == [("DEV900", 4, 1)]
    assert "nested too deeply" in only(result).message


def test_statement_too_deep_for_libcst_is_a_finding_and_the_others_stay() -> None:
    result = lint(HEAD + "x = bad(" + "-" * 200 + "1)\nbad()\n")
    assert codes(result) == [("DEV900", 2, 1), ("DEV199", 3, 1)]


@pytest.mark.parametrize(
    ("raw", "place", "reason"),
    [
        (b"torch = bad(\n", (1, 12), "'(' was never closed"),
        (b"# torch bad\nx = '\xff'\n", (2, 6), "byte 0xff is not valid utf-8"),
        (b"torch\0bad\n", (1, 6), "NUL"),
    ],
)
def test_file_that_cannot_be_parsed_has_one_finding(raw: bytes, place: tuple[int, int], reason: str) -> None:
    found = only(Linter([BadCall()], None, calls).check_bytes(raw, "a.py"))
    assert (found.code, found.start) == ("DEV900", place)
    assert reason in found.message


def test_missing_file_is_a_finding_under_the_name_that_is_shown(tmp_path: Path) -> None:
    found = only(Linter([BadCall()], None, calls).check_file(tmp_path / "none.py", "src/none.py"))
    assert (found.code, found.path) == ("DEV900", "src/none.py")
    assert "cannot be read" in found.message


@pytest.mark.skipif(sys.platform == "win32" or (hasattr(os, "geteuid") and os.geteuid() == 0), reason="root reads all")
def test_file_without_permission_is_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"import torch\n")
    path.chmod(0)
    assert "Permission denied" in only(Linter([BadCall()], None, calls).check_file(path)).message


@pytest.mark.parametrize("raw", [b"", b"\n", b"\xef\xbb\xbf", b"# torch bad", b"\x0c\n# torch bad\r"])
def test_file_without_statements_is_clean(raw: bytes) -> None:
    assert not Linter([EveryFile()], None, calls).check_bytes(raw, "a.py").diagnostics


def deep_sources() -> list[Callable[[int], str]]:
    return [
        lambda n: "x = bad(" + "(" * n + ")" * n + ")\n",
        lambda n: "x = bad(" + "+".join(["y"] * n) + ")\n",
        lambda n: "x = bad(y" + ".a" * n + ")\n",
        lambda n: "x = bad(y" + ".a()" * n + ")\n",
        lambda n: "x = " + "bad(" * n + ")" * n + "\n",
        lambda n: "if bad(): pass\n" + "elif bad(): pass\n" * n,
        lambda n: "x = bad(" + "'a' " * n + ")\n",
        lambda n: "x = bad(" + " and ".join(["y"] * n) + ")\n",
        lambda n: "".join("    " * i + "if x:\n" for i in range(min(n, 99))) + "    " * min(n, 99) + "bad()\n",
    ]


@pytest.mark.parametrize("make", deep_sources(), ids=range(len(deep_sources())))
@pytest.mark.parametrize("size", [20, 150, 2_000, 20_000])
def test_deep_source_gives_findings_and_never_an_exception(make: Callable[[int], str], size: int) -> None:
    result = lint(HEAD + make(size))
    assert result.diagnostics
    assert {d.code for d in result.diagnostics} <= {"DEV199", "DEV900"}
    assert not result.crashes

"""Fixing in rounds, each of them checked."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlint.api import (
    Edit,
    Event,
    Finding,
    Fix,
    InsertStatement,
    Rule,
    RuleMeta,
    RunDeviceNeed,
    Safety,
    Severity,
    Site,
    cst,
)
from devlint.engine import Linter
from devlint.facts import Facts
from devlint.facts.events import NO_GUARDS
from devlint.fix.rounds import FixOutcome, fix_source
from devlint.model import FileResult
from devlint.settings import Settings
from devlint.source import Source, decode


class Named(Rule[Event]):
    """A finding for each call of the function `function`."""

    abstract = True
    function = ""
    safety = Safety.SAFE

    def suspects(self, event: Event, facts: Facts) -> bool:
        return facts.source(event.span).startswith(f"{self.function}(")

    def judge(self, event: Event, site: Site) -> Finding | None:
        call = site.node
        assert isinstance(call, cst.Call)
        return Finding(event.span, f"`{self.function}`", self.fix(event, call, site))

    def fix(self, event: Event, call: cst.Call, site: Site) -> Fix | None:
        raise NotImplementedError


def renaming(code: str, old: str, new: str, safety: Safety = Safety.SAFE) -> Rule[Any]:
    """A rule whose fix calls `new` instead of `old`."""

    class Renaming(Named):
        abstract = False
        meta = RuleMeta(code, f"call-of-{old}", "x", "0.1.0", "certain", Severity.ERROR, "always", ())
        event = Event
        function = old

        def fix(self, event: Event, call: cst.Call, site: Site) -> Fix | None:
            edit = Edit(call, call.with_changes(func=cst.Name(new)))
            return Fix(f"Call `{new}`", safety, (edit,))

    return Renaming()


class Waiting(Named):
    """The fix inserts a statement, and the finding stays."""

    meta = RuleMeta("DEV190", "waiting", "x", "0.1.0", "certain", Severity.ERROR, "always", ())
    event = Event
    function = "clock"

    def fix(self, event: Event, call: cst.Call, site: Site) -> Fix | None:
        return Fix("Wait", Safety.SAFE, (InsertStatement(event.span, cst.parse_statement("wait()")),))


class Breaking(Named):
    """The fix writes what does not parse."""

    meta = RuleMeta("DEV189", "breaking", "x", "0.1.0", "certain", Severity.ERROR, "always", ())
    event = Event
    function = "broken"

    def fix(self, event: Event, call: cst.Call, site: Site) -> Fix | None:
        return Fix("Break", Safety.SAFE, (Edit(call, cst.Name("def")),))


class WithDevice(Named):
    """The fix uses the device of the run."""

    meta = RuleMeta("DEV188", "with-device", "x", "0.1.0", "certain", Severity.ERROR, "always", ())
    event = Event
    function = "place"

    def fix(self, event: Event, call: cst.Call, site: Site) -> Fix | None:
        return Fix("Use the device", Safety.SAFE, (Edit(call, site.expression("put(device)")),), (RunDeviceNeed(),))


def calls(tree: ast.Module, source: Source, settings: Settings) -> Facts:
    imports = {a.name: a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    facts = Facts(source.path, source.text, imports=imports)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            facts.events.append(Event(source.span(node), node, (), NO_GUARDS, {}, ""))
    return facts


def fix(text: str | bytes, *rules: Rule[Any], allow: tuple[Safety, ...] = (Safety.SAFE,)) -> FixOutcome:
    source = decode(text if isinstance(text, bytes) else text.encode(), "a.py")
    return fix_source(Linter(rules, None, calls), source, allow)


def test_all_findings_are_fixed_and_named() -> None:
    outcome = fix("old(1)\nx = old(2)  # old(3)\n", renaming("DEV191", "old", "new"))
    assert outcome.text == "new(1)\nx = new(2)  # old(3)\n"
    assert [d.start.row for d in outcome.fixed] == [1, 2]
    assert not outcome.result.diagnostics
    assert not outcome.rejected


def test_nested_findings_are_fixed_over_rounds() -> None:
    outcome = fix("old(old(old(1)))\n", renaming("DEV191", "old", "new"))
    assert outcome.text == "new(new(new(1)))\n"
    assert len(outcome.fixed) == 3


def giving_way(code: str, to: str, old: str) -> Rule[Any]:
    """A rule that reports calls of a name, without a fix, where another rule says nothing of the same call."""

    class GivingWay(Named):
        meta = RuleMeta(code, "giving-way", "x", "0.1.0", "certain", Severity.WARNING, "never", (), gives_way=(to,))
        event = Event
        function = old

        def fix(self, event: Event, call: cst.Call, site: Site) -> Fix | None:
            return None

    return GivingWay()


class Slower(Named):
    """The fix calls what another rule finds."""

    meta = RuleMeta("DEV186", "renaming", "x", "0.1.0", "certain", Severity.ERROR, "always", ())
    event = Event
    function = "raw"

    def fix(self, event: Event, call: cst.Call, site: Site) -> Fix | None:
        return Fix("Call `slow`", Safety.SAFE, (Edit(call.func, cst.Name("slow")),))


def test_finding_that_gave_way_to_the_fixed_one_is_no_objection() -> None:
    outcome = fix("raw(1)\n", Slower(), giving_way("DEV185", "DEV186", "raw"), giving_way("DEV185", "DEV186", "slow"))
    assert outcome.text == "slow(1)\n"
    assert [d.code for d in outcome.result.diagnostics] == ["DEV185"]


def test_finding_that_no_one_gave_way_for_is_an_objection() -> None:
    outcome = fix("raw(1)\n", Slower(), giving_way("DEV185", "DEV186", "slow"))
    assert outcome.text == "raw(1)\n"
    assert "causes DEV185" in outcome.rejected[0].reason


class Clashing(Named):
    """A finding without a fix for `first` in a file that calls `second` as well."""

    meta = RuleMeta("DEV187", "clashing", "x", "0.1.0", "certain", Severity.ERROR, "always", ())
    event = Event
    function = "first"

    def suspects(self, event: Event, facts: Facts) -> bool:
        return super().suspects(event, facts) and "second(" in facts.text

    def fix(self, event: Event, call: cst.Call, site: Site) -> Fix | None:
        return None


def test_of_fixes_that_only_fail_together_the_first_is_applied() -> None:
    outcome = fix("a()\n-b()\n", renaming("DEV191", "a", "first"), renaming("DEV192", "b", "second"), Clashing())
    assert outcome.text == "first()\n-b()\n"
    assert [r.diagnostic.code for r in outcome.rejected] == ["DEV192"]


def test_fix_of_a_level_that_is_not_allowed_is_left() -> None:
    rule = renaming("DEV191", "old", "new", Safety.UNSAFE)
    assert fix("old(1)\n", rule).text == "old(1)\n"
    assert fix("old(1)\n", rule, allow=(Safety.SAFE, Safety.UNSAFE)).text == "new(1)\n"


def test_suppressed_finding_is_not_fixed() -> None:
    assert fix("old(1)  # noqa\n", renaming("DEV191", "old", "new")).text == "old(1)  # noqa\n"


def test_fix_after_which_the_finding_stays_is_withdrawn_and_named() -> None:
    outcome = fix("clock()\nold()\n", Waiting(), renaming("DEV191", "old", "new"))
    assert outcome.text == "clock()\nnew()\n"
    ((rejected),) = outcome.rejected
    assert (rejected.diagnostic.code, rejected.reason) == ("DEV190", "the fix does not remove the finding")
    assert [d.code for d in outcome.result.diagnostics] == ["DEV190"]


def test_fix_that_brings_a_finding_which_stays_is_withdrawn() -> None:
    unsafe = renaming("DEV192", "b", "c", Safety.UNSAFE)
    outcome = fix("a()\nold()\n", renaming("DEV191", "a", "b"), unsafe, renaming("DEV193", "old", "new"))
    assert outcome.text == "a()\nnew()\n"
    assert [r.reason for r in outcome.rejected] == ["the fix causes DEV192 on line 1"]


def test_finding_that_comes_up_by_a_fix_is_left_to_the_next_run() -> None:
    rules = (renaming("DEV191", "a", "b"), renaming("DEV192", "b", "c"))
    outcome = fix("a()\n", *rules)
    assert outcome.text == "b()\n"
    assert [d.code for d in outcome.fixed] == ["DEV191"]
    assert [d.code for d in outcome.result.diagnostics] == ["DEV192"]
    assert fix(outcome.text, *rules).text == "c()\n"


def test_finding_that_comes_up_by_a_fix_is_fixed_with_it_where_unsafe_fixes_are_allowed() -> None:
    rules = (renaming("DEV191", "a", "b"), renaming("DEV192", "b", "c"))
    outcome = fix("a()\n", *rules, allow=(Safety.SAFE, Safety.UNSAFE))
    assert outcome.text == "c()\n"
    assert [d.code for d in outcome.fixed] == ["DEV191", "DEV192"]


class BesideFirst(Named):
    """A finding for `kept` in a file that calls `new`."""

    meta = RuleMeta("DEV185", "beside-first", "x", "0.1.0", "certain", Severity.ERROR, "always", ())
    event = Event
    function = "kept"

    def suspects(self, event: Event, facts: Facts) -> bool:
        return super().suspects(event, facts) and "new(" in facts.text

    def fix(self, event: Event, call: cst.Call, site: Site) -> Fix | None:
        return Fix("Give up", Safety.SAFE, (Edit(call, call.with_changes(func=cst.Name("given_up"))),))


def test_line_that_no_finding_names_stays_while_those_that_are_listed_are_fixed() -> None:
    outcome = fix("kept()\nold(old(1))\n", renaming("DEV191", "old", "new"), BesideFirst())
    assert outcome.text == "kept()\nnew(new(1))\n"
    assert [d.code for d in outcome.result.diagnostics] == ["DEV185"]


def test_listed_finding_is_fixed_after_edits_that_move_it() -> None:
    rules = (renaming("DEV191", "old", "much_longer"), renaming("DEV192", "other", "new"))
    assert fix("old(old(1)); other(old(2))\n", *rules).text == "much_longer(much_longer(1)); new(much_longer(2))\n"


def test_fix_whose_result_does_not_parse_is_withdrawn() -> None:
    outcome = fix("x = broken()\nold()\n", Breaking(), renaming("DEV191", "old", "new"))
    assert outcome.text == "x = broken()\nnew()\n"
    assert outcome.rejected[0].reason.startswith("the fixed file has an error: ")


def test_two_fixes_that_undo_each_other_come_to_rest() -> None:
    outcome = fix("a()\n", renaming("DEV191", "a", "b"), renaming("DEV192", "b", "a"))
    assert outcome.text == "a()\n"
    assert len(outcome.rejected) == 1


class Unwrapping(Named):
    """The fix leaves the argument alone: `wrap(x)` becomes `x`."""

    meta = RuleMeta("DEV186", "unwrapping", "x", "0.1.0", "certain", Severity.ERROR, "always", ())
    event = Event
    function = "wrap"

    def fix(self, event: Event, call: cst.Call, site: Site) -> Fix | None:
        return Fix("Unwrap", Safety.SAFE, (Edit(call, call.args[0].value),))


def test_fix_that_undoes_one_of_an_earlier_round_is_known_at_its_first_step() -> None:
    seen: list[str] = []

    class Watched(Linter):
        def check(self, source: Source) -> FileResult:
            seen.append(source.text)
            return super().check(source)

    rules = (Unwrapping(), renaming("DEV191", "a", "b"), renaming("DEV192", "b", "a"))
    outcome = fix_source(Watched(rules, None, calls), decode(b"wrap(a())\n", "a.py"))
    assert outcome.text == "a()\n"
    assert [r.reason for r in outcome.rejected] == ["the fix undoes another fix"]
    assert seen == ["wrap(a())\n", "a()\n", "b()\n"]


def test_withdrawn_fix_is_not_tried_again_when_other_fixes_move_it() -> None:
    outcome = fix("old(old(1)); clock()\n", renaming("DEV191", "old", "longer"), Waiting())
    assert outcome.text == "longer(longer(1)); clock()\n"


def test_need_of_several_fixes_is_added_once() -> None:
    outcome = fix("import torch\n\nplace(1)\nplace(2)\n", WithDevice())
    device = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")'
    assert outcome.text == f"import torch\n\n{device}\n\nput(device)\nput(device)\n"
    assert len(outcome.fixed) == 2


def test_file_whose_bytes_do_not_come_back_is_not_fixed() -> None:
    raw = b"# coding: utf-7\nold()  # +AOk-+AOk-\n"
    outcome = fix(raw, renaming("DEV191", "old", "new"))
    assert outcome.text == decode(raw, "a.py").text
    assert "cannot be written back unchanged as utf-7" in outcome.rejected[0].reason


def test_unreadable_file_is_left_as_it_is() -> None:
    outcome = fix("old(\n", renaming("DEV191", "old", "new"))
    assert outcome.text == "old(\n"
    assert [d.code for d in outcome.result.diagnostics] == ["DEV900"]


# Laws, for all encodings, line endings and byte order marks

LINES = st.sampled_from(
    ["old(1)", "x = 'é' ;  old( 2 )", "old(old(3),  # é", "4)", "def f():", "\told()", "  # old()", "", "\x0c",
     "s = '''", "'''", "y = old(\\", "5)", "if x: old()", "# noqa"]
)  # fmt: skip
ENDS = st.sampled_from(["\n", "\r\n", "\r"])
CODINGS = st.sampled_from(["utf-8", "iso-8859-1", "cp1252"])


@st.composite
def files(draw: st.DrawFn) -> bytes:
    encoding = draw(CODINGS)
    end = draw(ENDS)
    mixed = draw(st.booleans())
    lines = [f"# coding: {encoding}", *draw(st.lists(LINES, max_size=8))]
    text = "".join(line + (draw(ENDS) if mixed else end) for line in lines) + draw(st.sampled_from(["", "old()", "  "]))
    bom = b"\xef\xbb\xbf" if encoding == "utf-8" and draw(st.booleans()) else b""
    return bom + text.encode(encoding)


@given(files())
def test_without_fixes_no_byte_changes(raw: bytes) -> None:
    source = decode(raw, "a.py")
    outcome = fix(raw, renaming("DEV191", "old", "new"), allow=())
    assert source.encode(outcome.text) == raw


@given(files())
def test_bytes_outside_the_edits_stay(raw: bytes) -> None:
    source = decode(raw, "a.py")
    outcome = fix(raw, renaming("DEV191", "old", "new"))
    assert source.encode(outcome.text).replace(b"new", b"old") == raw
    assert len(outcome.fixed) == outcome.text.count("new")


@given(files())
def test_fixing_the_fixed_file_changes_nothing(raw: bytes) -> None:
    source = decode(raw, "a.py")
    once = fix(raw, renaming("DEV191", "old", "new"), Waiting())
    again = fix(source.encode(once.text), renaming("DEV191", "old", "new"), Waiting())
    assert again.text == once.text
    assert not again.fixed


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("count", [1, 40])
def test_many_findings_are_fixed_in_one_file(count: int, newline: str) -> None:
    outcome = fix(f"old(1){newline}" * count, renaming("DEV191", "old", "new"))
    assert outcome.text == f"new(1){newline}" * count

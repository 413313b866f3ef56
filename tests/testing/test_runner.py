"""The fixture runner: a good case passes, and every way of breaking one fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import libcst as cst
import pytest

from devlint.api import Create, Edit, Facts, Finding, Fix, Rule, RuleMeta, Safety, Severity, Site
from devlint.engine import Linter
from devlint.settings import Settings
from devlint.testing import case_files, check_fixture, count_markers, read_fixture

Check = Callable[..., list[str]]


def meta(code: str) -> RuleMeta:
    return RuleMeta(code, f"rule-{code.lower()}", "a toy", "0.1.0", "certain", Severity.ERROR, "always", ("torch",))


class Toy(Rule[Create]):
    """Wants `torch.empty` where a tensor is made without a device: safe for zeros, unsafe for the rest."""

    meta = meta("TOY001")
    event = Create

    def suspects(self, event: Create, facts: Facts) -> bool:
        return event.device is None and event.qualname != "torch.empty"

    def judge(self, event: Create, site: Site) -> Finding | None:
        call = site.node
        assert isinstance(call, cst.Call)
        safety = Safety.SAFE if event.qualname == "torch.zeros" else Safety.UNSAFE
        edit = Edit(call, call.with_changes(func=site.expression("torch.empty")))
        return Finding(event.span, f"`{event.qualname}` has no device", Fix("leave it empty", safety, (edit,)))


class Greedy(Toy):
    """Also flags what has a device."""

    meta = meta("TOY001")

    def suspects(self, event: Create, facts: Facts) -> bool:
        return event.qualname != "torch.empty"


class Careless(Toy):
    """Its fix drops the comments of the call."""

    meta = meta("TOY001")

    def judge(self, event: Create, site: Site) -> Finding | None:
        edit = Edit(site.node, site.expression("torch.empty(3)"))
        return Finding(event.span, "no device", Fix("leave it empty", Safety.SAFE, (edit,)))


class Lying(Toy):
    """Calls every fix safe."""

    meta = meta("TOY001")

    def judge(self, event: Create, site: Site) -> Finding | None:
        call = site.node
        assert isinstance(call, cst.Call)
        edit = Edit(call, call.with_changes(func=site.expression("torch.empty")))
        return Finding(event.span, "no device", Fix("leave it empty", Safety.SAFE, (edit,)))


class Useless(Toy):
    """Its fix leaves the finding where it is."""

    meta = meta("TOY001")

    def judge(self, event: Create, site: Site) -> Finding | None:
        edit = Edit(site.node, site.expression("torch.zeros(3, 3)"))
        return Finding(event.span, "no device", Fix("make it larger", Safety.SAFE, (edit,)))


class Crashing(Toy):
    meta = meta("TOY001")

    def suspects(self, event: Create, facts: Facts) -> bool:
        raise ZeroDivisionError("on purpose")


class Silent(Toy):
    meta = meta("TOY001")

    def suspects(self, event: Create, facts: Facts) -> bool:
        return False


GOOD = """\
import torch

a = torch.zeros(3)  # expect: TOY001[5:19] "`torch.zeros` has" (safe)
b = torch.randn(3)  # expect: TOY001 (unsafe)
c = torch.zeros(3, device="cuda")  # quiet: TOY001 has one
"""
FIXED = """\
import torch

a = torch.empty(3)
b = torch.randn(3)  # expect: TOY001
c = torch.zeros(3, device="cuda")
"""


@pytest.fixture
def run(tmp_path: Path) -> Check:
    """Checks a case, with its `.fixed.py` where one is given; returns the failures."""

    def check(text: str | bytes, fixed: str | None = None, rule: type[Toy] = Toy) -> list[str]:
        path = tmp_path / "case.py"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        if fixed is not None:
            (tmp_path / "case.fixed.py").write_text(fixed, encoding="utf-8", newline="")
        return check_fixture(path, Linter((rule(),), Settings(select=("ALL",))))

    return check


def only(failures: list[str], text: str) -> bool:
    """Whether there is one failure, and it says `text`."""
    assert len(failures) == 1, failures
    return text in failures[0]


def test_a_good_case_passes(run: Check) -> None:
    assert run(GOOD, FIXED) == []


def test_a_dropped_marker_fails(run: Check) -> None:
    broken = GOOD.replace("  # expect: TOY001 (unsafe)", "")
    assert only(run(broken, FIXED), "case.py:4: unmarked TOY001[5:19] `torch.randn` has no device")


def test_a_finding_that_is_gone_fails(run: Check) -> None:
    assert "expected TOY001 here, found none" in run(GOOD, rule=Silent)[0]


def test_a_wrong_column_fails(run: Check) -> None:
    assert only(run(GOOD.replace("[5:19]", "[5:20]"), FIXED), "TOY001 at columns 5:19, expected 5:20")


def test_another_message_fails(run: Check) -> None:
    assert only(run(GOOD.replace("` has", "` lacks"), FIXED), "expected a part")


def test_a_greedy_rule_fails(run: Check) -> None:
    failures = run(GOOD, FIXED, Greedy)
    assert any("case.py:5: unmarked TOY001" in failure for failure in failures)


def test_a_fix_that_would_lose_a_comment_fails(run: Check) -> None:
    text = "import torch\n\n# expect@+1: TOY001 (safe)\na = torch.zeros(\n    3,  # three\n)\n"
    assert run(text, "import torch\n\na = torch.empty(\n    3,  # three\n)\n") == []
    assert any("fix of level hint, expected safe" in failure for failure in run(text, None, Careless))


def test_a_random_fix_called_safe_fails(run: Check) -> None:
    failures = run(GOOD.replace(' "`torch.zeros` has"', ""), FIXED, Lying)
    assert any("case.py:4: TOY001 has a fix of level safe, expected unsafe" in failure for failure in failures)


def test_a_fix_that_changes_nothing_for_the_better_fails(run: Check) -> None:
    failures = run("import torch\na = torch.zeros(3)  # expect: TOY001\n", None, Useless)
    assert any("withdrawn" in failure for failure in failures)


def test_a_crash_fails(run: Check) -> None:
    assert any("on purpose" in failure for failure in run(GOOD, FIXED, Crashing))


def test_a_known_miss_that_fires_now_fails(run: Check) -> None:
    text = "import torch\n\na = torch.randn(3)  # todo-expect: TOY001 not followed yet\n"
    assert run(text, None, Silent) == []
    assert only(run(text), "TOY001 fires now: turn the marker into `expect`")


def test_a_known_false_alarm_that_is_gone_fails(run: Check) -> None:
    text = "import torch\n\na = torch.randn(3)  # todo-quiet: TOY001 nobody moves it\n"
    assert run(text) == []
    assert only(run(text, None, Silent), "TOY001 no longer fires: turn the marker into `quiet`")


@pytest.mark.parametrize(
    "marker",
    [
        "expect: toy001",
        "expect: TOY001 certain",
        "expect: TOY001[5]",
        "expect: TOY001 (dangerous)",
        "expect:",
        "quiet: TOY001",
        "quiet: because it is",
        "expect@next: TOY001",
        "expect@1: TOY001",
        "todo-quiet: TOY001",
    ],
)
def test_an_unreadable_marker_fails(run: Check, marker: str) -> None:
    failures = run(GOOD + f"d = 1  # {marker}\n", FIXED + "d = 1\n")
    assert any("case.py:6: unreadable marker" in failure for failure in failures), failures


@pytest.mark.parametrize("marker", ["expects: TOY001", "quite: TOY001 it is", "todo: TOY001 later", "revealed: cpu"])
def test_an_unknown_marker_word_fails(run: Check, marker: str) -> None:
    failures = run(GOOD + f"d = 1  # {marker}\n", FIXED + f"d = 1  # {marker}\n")
    assert any("unknown marker word" in failure for failure in failures)


def test_a_marker_without_its_colon_fails(run: Check) -> None:
    failures = run(GOOD + "d = 1  # quiet TOY001 one\n", FIXED + "d = 1  # quiet TOY001 one\n")
    assert any("needs a colon" in failure for failure in failures)


def test_comments_for_other_tools_are_no_markers(run: Check) -> None:
    more = "d = 1  # type: ignore\ne = 2  # noqa: E501\n# a sentence: with a colon\n"
    assert run(GOOD + more, FIXED + more) == []


def test_a_code_that_no_rule_has_fails(run: Check) -> None:
    assert only(run(GOOD + "d = 1  # quiet: TOY002 a number\n", FIXED + "d = 1\n"), "no rule has the code TOY002")


def test_a_file_without_marker_fails(run: Check) -> None:
    assert only(run("import torch\n"), "no marker in this file")


def test_a_marker_may_mean_another_line(run: Check) -> None:
    text = 'import torch\n\n# expect@+1: TOY001\na = torch.randn(3), """\n"""\n# expect@-2: TOY001\n'
    assert only(run(text), "case.py:6: expected TOY001 here, found none")


def test_a_marker_that_means_no_code_fails(run: Check) -> None:
    assert any("which holds no code" in failure for failure in run(GOOD + "# expect@+5: TOY001\n", FIXED))


def test_several_markers_share_a_comment(run: Check) -> None:
    text = "import torch\n\na = torch.randn(3) + torch.rand(3)  # expect: TOY001[5:19] # expect: TOY001[22:35]\n"
    assert run(text) == []
    assert only(run(text.replace("[22:35]", "[22:36]")), "expected 22:36")


def test_a_safe_fix_without_a_fixed_file_fails(run: Check) -> None:
    assert only(run(GOOD), "case.fixed.py is missing")


def test_a_fixed_file_without_a_fix_fails(run: Check) -> None:
    assert only(run("import torch\na = torch.randn(3)  # expect: TOY001\n", FIXED), "nothing in case.py is fixed")


def test_another_fixed_file_fails(run: Check) -> None:
    assert only(run(GOOD, FIXED.replace("empty", "eye")), "differs from what the fixes give")


def test_an_unmarked_finding_in_the_fixed_file_fails(run: Check) -> None:
    assert only(run(GOOD, FIXED.replace("  # expect: TOY001", "")), "case.fixed.py:4: unmarked TOY001")


def test_unsafe_fixes_are_applied_where_the_case_says_so(run: Check) -> None:
    fixed = 'import torch\n\na = torch.empty(3)\nb = torch.empty(3)\nc = torch.zeros(3, device="cuda")\n'
    assert run("# fixes: unsafe\n" + GOOD, fixed) == []


def test_the_fixes_header_stands_on_the_first_line(run: Check) -> None:
    assert any("stands on the first line" in failure for failure in run(GOOD + "# fixes: unsafe\n", FIXED))


def test_line_endings_and_encoding_are_kept(run: Check) -> None:
    text = 'import torch\r\n\r\na = "重要", torch.zeros(3)  # expect: TOY001[11:25]\r\n'
    assert run(text, 'import torch\r\n\r\na = "重要", torch.empty(3)\r\n') == []


def test_bytes_that_do_not_decode_are_a_case(run: Check) -> None:
    assert run(b'import torch\n\nx = "\xff"  # expect: DEV900 (none)\n') == []
    assert only(run(b'import torch\n\nx = "\xff"  # quiet: TOY001 no tensor\n'), "unmarked DEV900")


def test_a_file_that_does_not_parse_is_a_case(run: Check) -> None:
    assert run("import torch\n\nx = (torch  # expect: DEV900\n") == []


PROBE = """\
import torch

x = torch.zeros(3, device="cuda:1")
reveal_device(x)  # reveal: cuda:1
reveal_device(x.cpu())  # reveal: tensor cpu
reveal_device(x.sum())  # reveal: 0-dim tensor cuda:1
reveal_device(unheard_of)  # reveal: unknown
"""


def test_probes_say_what_the_facts_know(run: Check) -> None:
    assert run(PROBE, None, Silent) == []


@pytest.mark.parametrize(
    ("wanted", "other"),
    [
        ("reveal: cuda:1", "reveal: cuda:0"),
        ("tensor cpu", "module cpu"),
        ("tensor cpu", "0-dim tensor cpu"),
        ("unknown", "cpu"),
    ],
)
def test_a_wrong_probe_fails(run: Check, wanted: str, other: str) -> None:
    assert only(run(PROBE.replace(wanted, other, 1), None, Silent), "it is ")


def test_a_probe_without_expectation_fails(run: Check) -> None:
    assert only(run(PROBE.replace("  # reveal: unknown", ""), None, Silent), "probe without `# reveal:`")


def test_an_expectation_without_probe_fails(run: Check) -> None:
    assert only(run(PROBE + "y = 1  # reveal: cpu\n", None, Silent), "without a probe")


def test_markers_are_stripped_and_rows_are_kept() -> None:
    fixture = read_fixture(b"# fixes: unsafe\nx = 1  # quiet: TOY001 one\n# expect@+1: TOY001\ny = 2\n", "case.py")
    assert fixture.raw == b"x = 1\ny = 2\n"
    rows = [(marker.word, marker.row, marker.written) for marker in fixture.markers]
    assert rows == [("quiet", 1, 2), ("expect", 2, 3)]
    assert fixture.written(2) == 4
    assert fixture.unsafe


def test_fixed_files_are_no_cases(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for name in ("a/case.py", "a/case.fixed.py", "b.py"):
        (tmp_path / name).write_text("x = 1  # quiet: TOY001 one\ny = 1  # expect: TOY001\n")
    assert case_files(tmp_path) == [tmp_path / "a/case.py", tmp_path / "b.py"]
    assert count_markers(tmp_path, "TOY001") == (2, 2)

"""Diffs: the small one of a fix, and the unified one that git applies."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devlint.model import Safety, TextEdit, TextFix
from devlint.report.diff import fix_diff, last_row, unified_diff
from devlint.report.lines import Lines
from devlint.terminal import PLAIN, Style


def small_diff(text: str, *edits: tuple[int, int, str], shared: tuple[tuple[int, int, str], ...] = ()) -> str:
    fix = TextFix("t", Safety.SAFE, tuple(TextEdit(*edit) for edit in edits), tuple(TextEdit(*edit) for edit in shared))
    return "\n".join(fix_diff(Lines(text), fix, 2, PLAIN))


def test_a_change_inside_a_row() -> None:
    assert small_diff("a = 1\nb = 2\n", (4, 5, "3")) == " 1 - a = 1\n 1 + a = 3"


def test_an_inserted_row_stands_alone() -> None:
    assert small_diff("a = 1\nb = 2\n", (6, 6, "new = 0\n")) == " 2 + new = 0"


def test_a_removed_row_stands_alone() -> None:
    assert small_diff("a = 1\nb = 2\nc = 3\n", (6, 12, "")) == " 2 - b = 2"


def test_distant_places_are_separated_and_numbered_as_after_the_fix() -> None:
    text = "import a\n\n\n\nf(x)\n"
    assert small_diff(text, (12, 16, "g(x)"), shared=((9, 9, "import b\n"),)) == (
        " 2 + import b\n"
        "   ...\n"
        " 5 - f(x)\n"
        " 6 + g(x)"
    )  # fmt: skip


def test_an_import_stands_above_what_uses_it() -> None:
    shared = ((9, 9, "d = torch.device(0)\n"), (9, 9, "import torch\n"))
    assert small_diff("import a\nf(x)\n", (9, 13, "f(d)"), shared=shared) == (
        " 2 - f(x)\n"
        " 2 + import torch\n"
        " 3 + d = torch.device(0)\n"
        " 4 + f(d)"
    )  # fmt: skip


def test_two_edits_on_one_row_are_one_change() -> None:
    assert small_diff("f(a, b)\n", (2, 3, "c"), (5, 6, "d")) == " 1 - f(a, b)\n 1 + f(c, d)"


def test_a_change_of_several_rows() -> None:
    assert small_diff("f(\n  a,\n)\n", (0, 9, "g(a)")) == " 1 - f(\n 2 -   a,\n 3 - )\n 1 + g(a)"


def test_the_rows_of_a_file_with_carriage_returns_show_none() -> None:
    assert small_diff("a = 1\r\nb = 2\r\n", (7, 7, "new = 0\r\n")) == " 2 + new = 0"


def test_tabs_are_shown_as_in_the_frame() -> None:
    assert small_diff("\tf(a)\n", (3, 4, "b")) == " 1 -     f(a)\n 1 +     f(b)"


def test_the_highest_row_number_is_known_before() -> None:
    text = "a\n" * 9
    assert last_row(Lines(text), TextFix("t", Safety.SAFE, (TextEdit(16, 16, "b\nc\n"),))) == 11


def test_a_unified_diff() -> None:
    old = b"one\ntwo\nthree\n"
    new = b"one\n2\nthree\n"
    assert unified_diff(old, new, "pkg/a.py", PLAIN) == (
        b"--- a/pkg/a.py\n"
        b"+++ b/pkg/a.py\n"
        b"@@ -1,3 +1,3 @@\n"
        b" one\n"
        b"-two\n"
        b"+2\n"
        b" three\n"
    )  # fmt: skip


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize(
    "name", ["a b.py", "重.py", 'quo"te.py', "back\\slash.py", "new\nline.py", "tab\there.py", "-a.py"]
)
def test_git_finds_a_file_with_an_odd_name(tmp_path: Path, name: str) -> None:
    try:
        (tmp_path / name).write_bytes(b"old\n")
    except OSError:
        pytest.skip("this file system does not take the name")
    diff = unified_diff(b"old\n", b"new\n", name, PLAIN)
    subprocess.run(["git", "apply", "-"], input=diff, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / name).read_bytes() == b"new\n"


def test_distant_changes_are_separate_hunks_with_their_own_rows() -> None:
    rows = [b"%d\n" % number for number in range(1, 31)]
    changed = [b"first\n", *rows[1:29], b"last\n"]
    diff = unified_diff(b"".join(rows), b"".join(changed), "a.py", PLAIN)
    assert [row for row in diff.splitlines() if row.startswith(b"@@")] == [b"@@ -1,4 +1,4 @@", b"@@ -27,4 +27,4 @@"]


def test_no_change_is_no_diff() -> None:
    assert unified_diff(b"same", b"same", "a.py", PLAIN) == b""


def test_a_missing_line_break_at_the_end_is_said() -> None:
    assert unified_diff(b"a", b"b", "a.py", PLAIN).splitlines()[3:] == [
        b"-a",
        b"\\ No newline at end of file",
        b"+b",
        b"\\ No newline at end of file",
    ]


def test_carriage_returns_stay_in_the_diff() -> None:
    assert b"-a\r\n+b\r\n" in unified_diff(b"a\r\n", b"b\r\n", "a.py", PLAIN)


def test_color_goes_around_the_line_not_its_break() -> None:
    assert b"\x1b[31m-a\x1b[0m\n" in unified_diff(b"a\n", b"b\n", "a.py", Style(color=True))


_ROWS = st.lists(
    st.sampled_from([b"a\n", b"b\n", b"c\r\n", b"\n", b"\xff\n", b"d\x0c\n", b"e\r"]), min_size=1, max_size=14
)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(old=_ROWS, new=_ROWS, cut=st.booleans())
def test_git_applies_every_diff(old: list[bytes], new: list[bytes], cut: bool, tmp_path: Path) -> None:
    before, after = b"".join(old), b"".join(new)
    if cut:
        after = after.rstrip(b"\n") or b"x"
    path = tmp_path / "a.py"
    path.write_bytes(before)
    diff = unified_diff(before, after, "a.py", PLAIN)
    if diff:
        subprocess.run(
            ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "-"],
            input=diff,
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )
    assert path.read_bytes() == after

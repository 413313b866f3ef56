"""Code frames: marks stand under the code they mean."""

from __future__ import annotations

import pytest

from devlint.model import Position
from devlint.report.frame import LIMIT, cells, code_frame, width
from devlint.report.lines import Lines
from devlint.terminal import PLAIN, Style


def frame(text: str, start: tuple[int, int], end: tuple[int, int], label: str = "") -> str:
    rows = code_frame(Lines(text), Position(*start), Position(*end), 2, PLAIN, label=label)
    return "\n".join(rows)


def test_a_range_is_underlined() -> None:
    assert frame("a = torch.ones(3)\n", (1, 5), (1, 18)) == (
        " 1 | a = torch.ones(3)\n"
        "   |     ^^^^^^^^^^^^^"
    )  # fmt: skip


def test_an_empty_range_gets_one_mark() -> None:
    assert frame("one\n", (1, 4), (1, 4)) == " 1 | one\n   |    ^"


def test_a_label_stands_behind_the_mark() -> None:
    assert frame("one two\n", (1, 5), (1, 8), label="made here").splitlines()[1] == "   |     ^^^ made here"


def test_wide_characters_take_two_cells() -> None:
    assert frame('s = "重要"; f(s)\n', (1, 11), (1, 15)) == (
        ' 1 | s = "重要"; f(s)\n'
        "   |             ^^^^"
    )  # fmt: skip


def test_a_mark_under_wide_characters_is_as_wide_as_they_are() -> None:
    assert frame("x = 重要\n", (1, 5), (1, 7)).splitlines()[1] == "   |     ^^^^"


def test_a_tab_runs_to_the_next_stop() -> None:
    assert frame("\tf(x)\n a\tb\n", (1, 2), (1, 6)).splitlines()[:2] == [" 1 |     f(x)", "   |     ^^^^"]
    assert frame("\tf(x)\n a\tb\n", (2, 4), (2, 5)).splitlines()[:2] == [" 2 |  a  b", "   |     ^"]


def test_a_combining_character_takes_no_cell() -> None:
    assert frame("e\u0301 = f(x)\n", (1, 6), (1, 10)).splitlines()[1] == "   |     ^^^^"


def test_control_characters_are_made_visible() -> None:
    assert frame("a\x1b[31m b\n", (1, 8), (1, 9)).splitlines()[:2] == [" 1 | a\ufffd[31m b", "   |        ^"]


def test_a_range_over_several_rows_that_starts_a_line() -> None:
    assert frame("f(\n  x,\n)\n", (1, 1), (3, 2)) == (
        " 1 | / f(\n"
        " 2 | |   x,\n"
        " 3 | | )\n"
        "   | |_^"
    )  # fmt: skip


def test_a_range_over_several_rows_that_starts_inside_a_line() -> None:
    assert frame("a = f(\n  x,\n).to(d)\n", (1, 5), (3, 8), label="here") == (
        " 1 |   a = f(\n"
        "   |  _____^\n"
        " 2 | |   x,\n"
        " 3 | | ).to(d)\n"
        "   | |_______^ here"
    )  # fmt: skip


def test_the_middle_of_a_long_range_is_left_out() -> None:
    text = "f(\n" + "".join(f"  {number},\n" for number in range(2, 20)) + ")\n"
    assert frame(text, (1, 1), (20, 2)) == (
        " 1 | / f(\n"
        " 2 | |   2,\n"
        " 3 | |   3,\n"
        "   | | ...\n"
        "18 | |   18,\n"
        "19 | |   19,\n"
        "20 | | )\n"
        "   | |_^"
    )  # fmt: skip


def test_a_range_that_ends_with_a_line_break_ends_before_it() -> None:
    assert frame("one\ntwo\n", (1, 1), (2, 1)) == " 1 | one\n   | ^^^"


def test_carriage_returns_end_rows_and_are_not_shown() -> None:
    assert frame("one\r\ntwo\rthree\n", (3, 1), (3, 6)).splitlines()[0] == " 3 | three"


@pytest.mark.parametrize("before", [0, 10, 500, 4000])
def test_a_long_line_is_cropped_around_the_mark(before: int) -> None:
    rows = frame("x" * before + "MARK" + "y" * 4000, (1, before + 1), (1, before + 5)).splitlines()
    code, marks = rows
    assert len(code) <= LIMIT + 5
    assert code[marks.index("^") :].startswith("MARK")
    assert marks.count("^") == 4


def test_a_mark_that_is_longer_than_the_limit_is_cropped() -> None:
    rows = frame("f(" + "x" * 4000 + ")", (1, 1), (1, 4004)).splitlines()
    assert max(map(len, rows)) <= LIMIT + 5


def test_a_position_outside_the_text_does_not_fail() -> None:
    assert frame("one\n", (9, 9), (9, 10)).splitlines()[0] == " 9 |"


def test_color_changes_nothing_but_escape_sequences() -> None:
    text = "a = f(\n  x)\n"
    plain = list(code_frame(Lines(text), Position(1, 5), Position(2, 5), 2, PLAIN))
    colored = list(code_frame(Lines(text), Position(1, 5), Position(2, 5), 2, Style(color=True)))
    import re

    assert [re.sub(r"\x1b\[[0-9;]*m", "", row) for row in colored] == plain
    assert colored != plain


@pytest.mark.parametrize(
    ("char", "cells_taken"), [("a", 1), ("é", 1), ("重", 2), ("ｱ", 1), ("Ａ", 2), ("\u0301", 0), ("\u200b", 0)]
)
def test_width_of_a_character(char: str, cells_taken: int) -> None:
    assert width(char) == cells_taken


def test_every_character_of_a_line_has_a_place() -> None:
    shown, starts = cells("\t重x")
    assert (shown, starts) == ("    重x", [0, 4, 6, 7])

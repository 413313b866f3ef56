"""Choosing and applying text fixes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlint.fix.apply import Moves, apply, choose, splice
from devlint.model import Safety, Span, TextEdit, TextFix


def fix(*edits: tuple[int, int, str], shared: tuple[tuple[int, int, str], ...] = ()) -> TextFix:
    return TextFix("t", Safety.SAFE, tuple(TextEdit(*e) for e in edits), tuple(TextEdit(*e) for e in shared))


def test_fixes_apart_are_all_applied() -> None:
    assert apply("abcdef", [fix((4, 5, "E")), fix((0, 1, "A"), (2, 3, ""))]) == ("AbdEf", [0, 1])


def test_of_overlapping_fixes_the_earlier_place_wins() -> None:
    assert apply("abcdef", [fix((2, 4, "x")), fix((1, 3, "y"))]) == ("aydef", [1])


def test_fix_that_touches_another_waits() -> None:
    assert apply("abcd", [fix((0, 2, "x")), fix((2, 3, "y"))]) == ("xcd", [0])


def test_fix_whose_end_touches_an_edit_further_down_waits() -> None:
    assert apply("abcdef", [fix((0, 1, "A"), (4, 5, "E")), fix((2, 4, "x"))]) == ("AbcdEf", [0])


def test_fix_whose_end_only_touches_an_edit_further_down_waits_too() -> None:
    assert apply("abcdef", [fix((0, 1, "A"), (4, 4, "-")), fix((2, 4, "x"))]) == ("Abcd-ef", [0])


def test_fix_is_applied_with_all_its_edits_or_not_at_all() -> None:
    assert apply("abcdef", [fix((0, 1, "A")), fix((0, 1, "B"), (5, 6, "F"))]) == ("Abcdef", [0])


def test_edits_of_one_fix_may_touch() -> None:
    assert apply("abcd", [fix((0, 2, "x"), (2, 2, "-"), (2, 3, "y"))]) == ("x-yd", [0])


def test_need_that_two_fixes_share_is_added_once() -> None:
    need = ((0, 0, "import torch\n"),)
    assert apply("a b", [fix((0 + 1, 2, "_"), shared=need), fix((2, 3, "B"), shared=need)])[1] == [0]
    assert apply("a - b", [fix((1, 2, "_"), shared=need), fix((4, 5, "B"), shared=need)]) == (
        "import torch\na_- B",
        [0, 1],
    )


def test_imports_come_before_what_uses_them_at_the_same_place() -> None:
    device, module = (0, 0, "\ndevice = torch.device()\n"), (0, 0, "import torch\n")
    text, _ = apply("a - b", [fix((2, 3, "+"), shared=(device,)), fix((4, 5, "c"), shared=(module,))])
    assert text == "import torch\n\ndevice = torch.device()\na + c"


def test_hint_changes_nothing() -> None:
    assert apply("abc", [TextFix("t", Safety.HINT)]) == ("abc", [])


def test_edits_that_overlap_cannot_be_spliced() -> None:
    with pytest.raises(ValueError, match="overlaps another one"):
        splice("abc", [TextEdit(0, 2, ""), TextEdit(1, 3, "")])


TEXT = "0123456789"
PLACES = st.tuples(st.integers(0, 10), st.integers(0, 10), st.text("abc", max_size=3))
FIXES = st.lists(PLACES.map(lambda p: fix((min(p[:2]), max(p[:2]), p[2]))), max_size=6)


@given(FIXES)
def test_text_outside_the_chosen_edits_is_untouched(fixes: list[TextFix]) -> None:
    text, chosen = apply(TEXT, fixes)
    edits = sorted(edit for index in chosen for edit in fixes[index].edits)
    kept = [(e.end, f.start) for e, f in zip([TextEdit(0, 0, ""), *edits], [*edits, TextEdit(10, 10, "")], strict=True)]
    assert text == "".join(TEXT[a:b] + (edits[i].text if i < len(edits) else "") for i, (a, b) in enumerate(kept))


@given(FIXES)
def test_chosen_fixes_commute(fixes: list[TextFix]) -> None:
    text, chosen = apply(TEXT, fixes)
    assert apply(TEXT, [fixes[index] for index in reversed(chosen)])[0] == text
    one_by_one = TEXT  # from the end of the text, so that the other places stay what they are
    for index in sorted(chosen, key=lambda i: fixes[i].edits, reverse=True):
        one_by_one = apply(one_by_one, [fixes[index]])[0]
    assert one_by_one == text


@given(FIXES)
def test_no_fix_that_fits_is_left_out(fixes: list[TextFix]) -> None:
    _, chosen = choose(fixes)
    for index, left in enumerate(fixes):
        if index not in chosen:
            assert len(choose([*(fixes[i] for i in chosen), left])[1]) == len(chosen)


@given(FIXES, st.integers(0, 10), st.integers(0, 10))
def test_place_outside_the_edits_keeps_its_text(fixes: list[TextFix], one: int, other: int) -> None:
    span = Span(min(one, other), max(one, other))
    edits, _ = choose(fixes)
    text = splice(TEXT, edits)
    if all(edit.end <= span.start or edit.start >= span.end for edit in edits):
        where = Moves(edits).span(span)
        assert text[where.start : where.end] == TEXT[span.start : span.end]


def test_place_around_an_edit_grows_with_it() -> None:
    assert Moves([TextEdit(4, 5, "abc")]).span(Span(2, 8)) == Span(2, 10)


def test_place_that_an_edit_cuts_moves_to_the_border_of_the_new_text() -> None:
    assert Moves([TextEdit(2, 6, "a")]).span(Span(4, 8)) == Span(2, 5)

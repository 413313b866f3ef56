"""Statements as places: where they stand, how they are counted, and how corrected copies map back to the original."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlint.model import Span, TextEdit
from devlint.runtime.correction import FixCase, Variant, carried_back, case_from_row, choose
from devlint.runtime.instrument import COUNTS, count_statements
from devlint.runtime.places import Places, lost_call

PROGRAM = '''\
"""A docstring."""
from __future__ import annotations
import math

def area(r):
    """Of a circle."""
    if r < 0:
        raise ValueError(r)
    return math.pi * r * r

总和 = "和"; total = 0
for r in (1, 2, 3):
    total += area(
        r
    )
try:
    area(-1)
except ValueError:
    total += 1
'''


def _fix(at: str, *replace: tuple[str, str], text: str = PROGRAM, code: str = "DEV101", **more: Any) -> FixCase:
    return case_from_row({"code": code, "at": at, "replace": replace, **more}, text)


def _counts(text: str) -> dict[int, int]:
    """How often the statement that begins on each line ran."""
    tree = ast.parse(text)
    counters = [0] * count_statements(tree)
    exec(compile(tree, "program", "exec"), {"__name__": "program", COUNTS: counters})
    return {s.first_line: counters[n] for n, s in enumerate(Places(text).statements)}


def test_counting_keeps_lines_and_counts_each_statement() -> None:
    assert _counts(PROGRAM) == {
        1: 0,
        2: 0,
        3: 1,
        5: 1,
        6: 0,
        7: 4,
        8: 1,
        9: 3,
        11: 1,
        12: 1,
        13: 3,
        16: 1,
        17: 1,
        19: 1,
    }


def test_counting_keeps_docstrings() -> None:
    tree = ast.parse(PROGRAM)
    count_statements(tree)
    scope: dict[str, Any] = {COUNTS: [0] * 50}
    exec(compile(tree, "program", "exec"), scope)
    assert scope["__doc__"] == "A docstring."
    assert scope["area"].__doc__ == "Of a circle."


def test_counting_goes_into_every_kind_of_block() -> None:
    text = "\n".join(
        [
            "import contextlib",
            "class A:",
            "    x = 1",
            "with contextlib.suppress(ValueError):",
            "    y = 2",
            "while True:",
            "    break",
            "else:",
            "    z = 3",
            "match y:",
            "    case 2:",
            "        w = 4",
            "    case _:",
            "        w = 5",
            "if w == 5:",
            "    pass",
            "elif w == 4:",
            "    v = 6",
            "try:",
            "    pass",
            "finally:",
            "    u = 7",
        ]
    )
    ran = {line for line, count in _counts(text).items() if count}
    assert ran == {1, 2, 3, 4, 5, 6, 7, 10, 12, 15, 17, 18, 19, 20, 22}


def test_header_of_a_compound_statement_is_its_place() -> None:
    places = Places(PROGRAM)
    assert places.on_line(12) == places.at(PROGRAM.index("for r"))
    assert places.on_line(14) == places.at(PROGRAM.index("total += area"))


def test_two_statements_on_one_line_are_told_apart_by_column() -> None:
    places = Places(PROGRAM)
    first, second = (places.at(PROGRAM.index(text)) for text in ("总和", "total = 0"))
    assert first != second
    assert places.on_line(11) == first
    assert places.on_line(11, len('总和 = "和"; '.encode())) == second


def test_variant_without_fixes_is_the_original() -> None:
    places = Places(PROGRAM)
    variant = Variant(places, [])
    assert variant.text == PROGRAM
    assert variant.keys == [str(n) for n in range(len(places.statements))]


def test_edited_statement_keeps_its_key() -> None:
    places = Places(PROGRAM)
    variant = Variant(places, [_fix("area(\n", ("r\n    )", "abs(r)\n    )"))])
    assert "abs(r)" in variant.text
    assert variant.keys == [str(n) for n in range(len(places.statements))]
    assert variant.original_line(14) == 14


def test_statement_put_in_moves_lines_and_has_a_key_of_its_own() -> None:
    variant = Variant(Places(PROGRAM), [_fix("area(\n", ("total += area(\n", "r = float(r)\n    total += area(\n"))])
    assert variant.text.splitlines()[12] == "    r = float(r)"
    assert [key for key in variant.keys if key.startswith("+")] == [variant.key_at_line(13)]
    assert variant.original_line(13) == 13
    assert variant.original_line(14) == 13
    assert variant.original_line(20) == 19


def test_leaving_one_fix_out_keeps_what_fixes_share() -> None:
    shared = [("import math", "import sys\n")]
    first = _fix("r < 0", ("r < 0", "r <= 0"), shared=shared)
    second = _fix("area(-1)", ("-1", "-2"), shared=shared)
    variant = Variant(Places(PROGRAM), [first, second], {1})
    assert variant.text.count("import sys") == 1
    assert "r < 0" in variant.text and "area(-2)" in variant.text


def test_statement_taken_away_has_neighbours() -> None:
    text = "a = 1\nb = 2\nc = 3\n"
    places = Places(text)
    assert places.beside(1) == (2, 0)
    variant = Variant(places, [_fix("b = 2", ("b = 2\n", ""), text=text)])
    assert variant.keys == ["0", "2"]


def test_fixes_of_the_same_text_wait_for_each_other() -> None:
    first, second = _fix("math.pi", ("math.pi", "3")), _fix("math.pi * r", ("pi * r", "tau"), code="DEV102")
    assert choose([second, first]) == ([first], [second])


def test_lines_put_in_at_one_place_go_together() -> None:
    first = _fix("area(\n", ("total += area(\n", "r = float(r)\n    total += area(\n"))
    second = _fix("area(\n", ("total += area(\n", "r = abs(r)\n    total += area(\n"), code="DEV102")
    assert choose([first, second]) == ([first, second], [])


def test_fix_found_in_a_variant_is_carried_back() -> None:
    places = Places(PROGRAM)
    variant = Variant(places, [_fix("r < 0", ("r < 0", "r <= 0.0"))])
    later = _fix("area(-1)", ("-1", "-2"), text=variant.text)
    assert carried_back(later, variant) == _fix("area(-1)", ("-1", "-2"))


def test_fix_of_text_that_a_fix_wrote_is_not_carried_back() -> None:
    variant = Variant(Places(PROGRAM), [_fix("r < 0", ("r < 0", "r <= 0.0"))])
    assert carried_back(_fix("= 0.0", ("0.0", "1"), text=variant.text), variant) is None


@given(st.data())
def test_unchanged_text_maps_back_to_itself(data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(PROGRAM)), min_size=2, max_size=8)))
    edits = [TextEdit(a, b, "") for a, b in zip(cuts[::2], cuts[1::2], strict=False)]
    cases = [FixCase("DEV101", "", "", Span(e.start, e.end), edits=(TextEdit(e.start, e.end, "#"),)) for e in edits]
    try:
        variant = Variant(Places(PROGRAM), cases)
    except SyntaxError:
        return
    for piece in variant.pieces:
        if piece.owner is None and piece.end > piece.start:
            back = variant.to_original(piece.start, piece.end)
            assert back is not None
            assert PROGRAM[back[0] : back[1]] == variant.text[piece.start : piece.end]


def test_places_refuse_what_is_no_python() -> None:
    with pytest.raises(SyntaxError):
        Places("def f(:\n")


PRINTS = 'print("time", start.elapsed_time(end))'


@pytest.mark.parametrize(
    ("text", "part", "corrected", "lost"),
    [
        (PRINTS, "start", "pass", "print"),
        (PRINTS, "start", 'end.synchronize()\nprint("time", start.elapsed_time(end))', ""),
        ('print(f"{start.elapsed_time(end):.1f}")', 'f"', "start, end", "print"),
        ("losses.append(loss.item())", "loss.item", "losses.append(loss.detach())", ""),
        ("losses.append(value=loss.item())", "loss.item", "loss.detach()", "losses.append"),
        ("optimizer.to(device)", "optimizer", "pass", ""),
        ("x = f(y.numpy())", "y.numpy", "pass", ""),
        (PRINTS, "start", "if", ""),
    ],
)
def test_call_around_a_finding_that_a_fix_takes_away(text: str, part: str, corrected: str, lost: str) -> None:
    assert lost_call(text, text.index(part), corrected) == lost

"""What counts as a sentence for readers of devlint's texts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import english


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        pytest.param("One ends. devlint goes on.\nAnd\non.", ["One ends.", "devlint goes on.", "And on."], id="paragraph"),
        pytest.param("It calls `a. B()` first. Then\nit stops.",
                     ["It calls `a. B()` first.", "Then it stops."], id="code-span"),
        pytest.param("Loops, e.g. `for`, run in 2.13. Quiet ... here.", ["Loops, e.g. `for`, run in 2.13.", "Quiet ... here."],
                     id="stops-inside"),
        pytest.param("# A title. Two.\n\n    code. Here.\n\n```\nmore. Code.\n```", [], id="headings-and-code"),
        pytest.param("* first thing\n* [`x`](a.md)\n* see [this page](a.md). Or not.",
                     ["first thing", "see this page.", "Or not."], id="list"),
        pytest.param("| a row | what it is |\n|---|---|\n| `x`, `y` | `x` moves. It stays |",
                     ["`x` moves.", "It stays"], id="table"),
        pytest.param("| a row | what it is |\n|---|---|\n| DEV501, `DEV503` | peft_lora |", [], id="table-of-names"),
        pytest.param("error · certain · since 0.1.0", [], id="terms"),
    ],
)  # fmt: skip
def test_prose_is_split_into_sentences(markdown: str, expected: list[str]) -> None:
    pieces = english.pieces_of_markdown(markdown)
    assert [sentence for piece in pieces for sentence in piece.sentences] == expected


def test_the_header_row_of_a_table_stands_above_its_rows_without_a_number() -> None:
    pieces = english.pieces_of_markdown("| before `--` | after `--` |\n|---|---|\n| one script | the arguments of it |")
    assert pieces[0] == ((), "Columns of the table: before `--` | after `--`", "")
    assert [piece.sentences for piece in pieces[1:]] == [("one script",), ("the arguments of it",)]


def test_a_table_without_headings_has_no_header_row_in_the_list() -> None:
    pieces = english.pieces_of_markdown("| | |\n|---|---|\n| quick fixes | each fix alone |")
    assert [piece.shown for piece in pieces] == ["* | quick fixes", "  | each fix alone"]


def test_each_of_two_tables_has_its_own_header_row() -> None:
    table = "| exit {0} | meaning |\n|---|---|\n| some code | what it means |\n"
    pieces = english.pieces_of_markdown(table.format("code") + "\nA text.\n\n" + table.format("status"))
    heads = [piece.shown for piece in pieces if not piece.sentences]
    assert heads == ["Columns of the table: exit code | meaning", "Columns of the table: exit status | meaning"]

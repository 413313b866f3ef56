"""What a baseline and fingerprints know a finding by."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlint.engine import Linter
from devlint.identity import context, keys, names_around, normal
from devlint_rules import RULES


def contexts(text: str) -> list[str]:
    linter = Linter([rule() for rule in RULES if rule.meta.code == "DEV501"])
    return [each.context for each in linter.check_bytes(text.encode(), "a.py").diagnostics]


MOVE = 'torch.zeros(3).to("cuda")'


@pytest.mark.parametrize(
    "other",
    [
        "f(a,b)", "f( a , b )  # why", "f(\n    a,  # first\n    b,\n)", "f(a, \\\n b)",
    ],
)  # fmt: skip
def test_layout_comments_and_trailing_commas_do_not_count(other: str) -> None:
    assert normal(other) == normal("f(a, b)")


def test_the_kind_of_quotes_does_not_count() -> None:
    assert normal("x.to('cuda')") == normal('x.to("cuda")')


@pytest.mark.parametrize("other", ["f(a, c)", "f(a b)", "f('a, b')", "f(a, b)[0]"])
def test_code_counts(other: str) -> None:
    assert normal(other) != normal("f(a, b)")


def test_blanks_and_hashes_in_strings_count() -> None:
    assert normal("f('a b')") != normal("f('ab')")
    assert normal("f('#a')") != normal("f('#b')")


@given(st.text(alphabet="ab'\"#\\ \n(),", max_size=30))
def test_any_text_has_a_normal_form_that_is_its_own(text: str) -> None:
    assert isinstance(normal(text), str)
    assert context(["f"], text) == context(["f"], text)


def test_definitions_around_a_row_are_named_from_outside() -> None:
    module = ast.parse(
        "class A:\n    @d\n    def f(self):\n        if x:\n            y\n    z\nmatch x:\n    case 1:\n        w\n"
    )
    assert [names_around(module, row) for row in (1, 2, 5, 6, 9)] == [["A"], ["A", "f"], ["A", "f"], ["A"], []]


def test_a_finding_keeps_its_context_when_code_moves_above_it() -> None:
    before = contexts(f"import torch\ndef f():\n    return {MOVE}\n")
    after = contexts(f"import torch\n\n# more\nx = 1\ndef f():\n    y = 2\n    return {MOVE}  # note\n")
    assert len(before) == 1
    assert before == after


def test_a_finding_in_another_function_is_another_one() -> None:
    first, second = contexts(f"import torch\ndef f():\n    return {MOVE}\ndef g():\n    return {MOVE}\n")
    assert first.split(":")[0] == "f"
    assert second.split(":")[0] == "g"


def test_equal_findings_are_counted() -> None:
    linter = Linter([rule() for rule in RULES if rule.meta.code == "DEV501"])
    found = linter.check_bytes(f"import torch\nx = {MOVE}\nx = {MOVE}\n".encode(), "a.py").diagnostics
    assert [key.ordinal for key in keys(found)] == [0, 1]

"""What several rules share: how values are described, when a name may be assigned, how moves are written."""

from __future__ import annotations

import libcst as cst
import pytest

from devlint.api import CPU, HOME, Device, Facts, Place, Symbol, Value
from devlint_rules import _shared as shared


@pytest.mark.parametrize(
    ("device", "words"),
    [
        (CPU, "is on the CPU"),
        (frozenset({Place("cuda", 1)}), "is on `cuda:1`"),
        (HOME, "may be on an accelerator"),
        (frozenset({Symbol("device", 3)}), "is on `device`, which may be an accelerator"),
        (CPU | frozenset({Place("cuda")}), "may be on the CPU or `cuda`"),
    ],
)
def test_whereabouts_are_a_phrase(device: Device, words: str) -> None:
    assert shared.whereabouts(Value("tensor", device)) == words


NAMES = """\
import torch
table = torch.ones(3)

def reads(x):
    return table + x

def binds():
    table = torch.zeros(3)
    return table

def declares():
    global table
    table = torch.zeros(3)

class Net:
    def forward(self, x):
        def inner():
            return x
        return inner()
"""


@pytest.mark.parametrize(
    ("function", "path", "local"),
    [
        ("", "table", True),
        ("reads", "x", True),
        ("reads", "table", False),
        ("binds", "table", True),
        ("declares", "table", False),
        ("Net.forward", "x", True),
        ("Net.forward", "self.weight", True),
        ("Net.forward.inner", "x", False),
        ("not_there", "x", False),
    ],
)
def test_only_names_of_the_function_itself_may_be_assigned(function: str, path: str, local: bool) -> None:
    assert shared.is_local(Facts("names.py", NAMES), function, path) is local


@pytest.mark.parametrize(
    ("code", "moved"),
    [
        ("x", "x.to(d)"),
        ("self.x[0]", "self.x[0].to(d)"),
        ("f(x)", "f(x).to(d)"),
        ("a + b", "(a + b).to(d)"),
        ("(a + b)", "(a + b).to(d)"),
        ("-x", "(-x).to(d)"),
        ("a if c else b", "(a if c else b).to(d)"),
        ("x @ y", "(x @ y).to(d)"),
        ("lambda: x", "(lambda: x).to(d)"),
    ],
)
def test_a_moved_expression_keeps_its_meaning(code: str, moved: str) -> None:
    node = shared.moved(cst.parse_expression(code), cst.Name("d"))
    assert cst.Module([]).code_for_node(node) == moved


def test_methods_are_chained() -> None:
    node = shared.chain(cst.parse_expression("a + b"), "detach", "cpu")
    assert cst.Module([]).code_for_node(node) == "(a + b).detach().cpu()"


def test_a_bare_tuple_gets_parentheses_as_an_argument() -> None:
    assert cst.Module([]).code_for_node(shared.as_argument(cst.parse_expression("a, b"))) == "(a, b)"
    assert cst.Module([]).code_for_node(shared.as_argument(cst.parse_expression("(a, b)"))) == "(a, b)"


def test_long_source_is_cut() -> None:
    assert shared.short("a +\n      b") == "a + b"
    assert shared.short("x" * 50) == "x" * 37 + "..."

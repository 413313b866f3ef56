"""Where a definition stands decides nothing: a function, a method, a branch, a class, or under a name that is bound twice."""

from __future__ import annotations

import textwrap
from typing import Final

import pytest

from tests.inference.cases import PRELUDE, findings

CLASS: Final = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        h = torch.zeros(x.size(0), 8)
        return self.fc(x) + h
"""
DERIVED: Final = """
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)


class Net(Base):
    def forward(self, x):
        h = torch.zeros(x.size(0), 8)
        return self.fc(x) + h
"""
FUNCTION: Final = """
def add_noise(x):
    return x.to("cuda") + torch.randn(4)
"""
CLOSURE: Final = """
device = torch.device("cuda")
weight = torch.zeros(3, device=device)


def step(size):
    return weight + torch.ones(size)
"""
METHOD_OF_A_CLOSURE: Final = """
weight = torch.zeros(3, device="cuda")


class Step:
    def run(self, size):
        return weight + torch.ones(size)
"""
PROGRAMS: Final = {
    "module": CLASS,
    "module of a base beside it": DERIVED,
    "function": FUNCTION,
    "function that reads a name around it": CLOSURE,
    "method that reads a name around it": METHOD_OF_A_CLOSURE,
}
#: What stands before the program, which is indented below it, and what stands behind it.
HEADS: Final = {
    "a function": ("def main():\n", ""),
    "a function that is called": ("def main():\n", "\nmain()\n"),
    "an async function": ("async def main():\n", ""),
    "a nested function": ("def outer():\n    def inner():\n", ""),
    "a method": ("class Trainer:\n    def run(self):\n", ""),
    "a branch": ("if __name__ == '__main__':\n", ""),
    "a try": ("try:\n", "finally:\n    pass\n"),
    "a loop of the module level": ("for _ in range(3):\n", ""),
    "a match": ("match 3:\n    case _:\n", ""),
}


def said(text: str, moved: int) -> list[tuple[str, int, str]]:
    return [(each.code, each.line - moved, each.severity.value) for each in findings(text)]


@pytest.mark.parametrize("form", HEADS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_same_finding_below(program: str, form: str) -> None:
    head, tail = HEADS[form]
    depth, body = head.count("\n"), PROGRAMS[program]
    expected = said(PRELUDE + body, 0)
    assert expected
    assert said(PRELUDE + head + textwrap.indent(body, "    " * depth) + tail, depth) == expected


@pytest.mark.parametrize("program", PROGRAMS)
def test_same_finding_under_a_name_that_was_bound_before(program: str) -> None:
    classes = "class Net:\n    pass\n\n\nclass Step:\n    pass\n\n\n"
    before = classes + "def step(size):\n    return size\n\n\ndef add_noise(x):\n    return x\n"
    expected = said(PRELUDE + PROGRAMS[program], 0)
    assert said(PRELUDE + before + PROGRAMS[program], before.count("\n")) == expected


@pytest.mark.parametrize("head", ["class Outer:\n", "def main():\n    class Outer:\n"])
def test_same_finding_in_a_class_inside_a_class(head: str) -> None:
    depth = head.count("\n")
    expected = said(PRELUDE + CLASS, 0)
    assert said(PRELUDE + head + textwrap.indent(CLASS, "    " * depth), depth) == expected


@pytest.mark.parametrize("way", ["self.Holder", "self.Other", "Holder", "Outer.Holder"])
def test_class_is_made_by_whatever_name_leads_to_it(way: str) -> None:
    program = f"""
class Holder:
    def __init__(self):
        self.weight = torch.zeros(3)


class Outer:
    Other = Holder

    class Holder:
        def __init__(self):
            self.weight = torch.zeros(3)

    def run(self, x):
        return {way}().weight + x.to("cuda")
"""
    assert [(each.code, each.line) for each in findings(PRELUDE + program)] == [("DEV101", 18)]

"""What an expression surely is does not hang on what was asked before."""

from __future__ import annotations

import ast
import textwrap
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devlint.fix import places
from devlint.fix.surely import Kind, Surely

KINDS: tuple[Kind, ...] = ("tensor", "module", "device", "generator")
STEPS = 50
#: A statement that takes more steps to look through than one question has here.
LONG = f"table = [{', '.join(['n'] * STEPS)}]"
FILES = {
    "attribute that is a module": f"""
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.body = nn.Linear(3, 3)
            self.last = n
            {LONG}
            self.place = next(self.parameters()).device

        def forward(self, x):
            steps = torch.arange(3)
            return self.body(x) + steps + self.last
    """,
    "module that another function makes as well": f"""
    import torch
    from torch import nn

    def run(x, n):
        net = nn.Linear(3, 3)
        y = x
        {LONG}
        return net(y)

    def noise(generator: torch.Generator):
        net = nn.Linear(3, 3)
        return torch.randn(3, generator=generator).to(next(net.parameters()).device)
    """,
    "module that is made and moved": f"""
    import torch
    from torch import nn

    def main(x, n, device):
        net = nn.Sequential(nn.Linear(3, 3), nn.ReLU()).to(device)
        while n:
            y = x if n else n
            {LONG}
            y = net(y)
        place = torch.device("cpu")
        return net(torch.zeros(3, device=next(net.parameters()).device)).to(place)
    """,
}
Question = tuple[str, ast.expr, places.Place]


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devlint.fix.surely._STEPS", STEPS)


def questions(tree: ast.Module) -> list[Question]:
    """What can be asked of the expressions of a file, each at the place of its statement."""
    found: list[Question] = []
    for statement in ast.walk(tree):
        there = places.place_of(tree, statement) if isinstance(statement, ast.stmt) else None
        if not isinstance(statement, ast.stmt) or there is None:
            continue
        for part in places.header(statement):
            nodes = (n for n in ast.walk(part) if isinstance(n, (ast.Name, ast.Attribute, ast.Call)))
            found += [(kind, node, there) for node in islice(nodes, 12) for kind in (*KINDS, "parameters", "stepped")]
    return found


def answer(surely: Surely, question: Question) -> bool:
    kind, node, at = question
    if kind == "parameters":
        return surely.has_parameters(node, at)
    if kind == "stepped":
        return surely.is_stepped(node, at)
    return surely.has_device(node, at) or surely.holds(kind, node, at)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", FILES)
def test_answers_are_the_same_in_any_order(name: str) -> None:
    tree = ast.parse(textwrap.dedent(FILES[name]))
    asked = questions(tree)
    alone = [answer(Surely(tree), each) for each in asked]

    @settings(max_examples=15, deadline=None)
    @given(st.permutations(range(len(asked))))
    def check(order: list[int]) -> None:
        surely = Surely(tree)
        for number in order[:60]:
            assert answer(surely, asked[number]) == alone[number], ast.unparse(asked[number][1])

    check()


@pytest.mark.parametrize("name", FILES)
def test_module_is_known_after_a_question_that_took_all_its_steps(name: str) -> None:
    tree = ast.parse(textwrap.dedent(FILES[name]))
    surely = Surely(tree)
    known = [each for each in questions(tree) if each[0] == "parameters" and answer(Surely(tree), each)]
    unknown = next(each for each in questions(tree) if each[0] == "tensor" and ast.unparse(each[1]) in ("n", "y"))
    assert known
    for each in known:
        answer(surely, unknown)
        assert answer(surely, each), ast.unparse(each[1])

"""What a function hands on does not grow with all that it calls, where callers cannot tell the difference."""

from __future__ import annotations

import ast

import pytest

from devlint.inference.program.project import Project
from devlint.inference.summary.analyser import Analyser
from devlint.inference.summary.effects import effects_of
from devlint.inference.summary.model import Summary

HEAD = "import torch\nfrom torch import nn\n"


def summary_of(name: str, text: str) -> Summary:
    analyser = Analyser(Project())
    file = analyser.project.add("program.py", ast.parse(HEAD + text))
    analyser.module_level(file)
    found = analyser.summary(file.functions[name], None)
    assert found is not None
    return found


def chain(line: str, first: str) -> str:
    calls = "".join(f"def f{i}(x, k=0):\n{line.format(i - 1)}    return x + torch.zeros(3)\n\n\n" for i in range(1, 30))
    return f"def f0(x, k=0):\n    return {first}\n\n\n{calls}"


@pytest.mark.parametrize(
    "line",
    ["    x = f{}(x)\n", "    x = f{0}(x) if k else f{0}(x)\n", "    with torch.no_grad():\n        x = f{}(x)\n"],
    ids=["plain", "two_arms", "with"],
)
def test_one_sure_failure_stands_for_those_after_it(line: str) -> None:
    assert len(summary_of("f29", chain(line, "x.cuda()")).constraints) <= 4


def test_a_failure_under_another_condition_is_kept() -> None:
    text = (
        "def a(x):\n    return x.cuda() + torch.zeros(3)\n\n\n"
        "def run(x, k, j):\n    if k == 1:\n        a(x)\n    if j == 2:\n        a(x)\n    if k == 1:\n        a(x)\n"
    )
    kept = [each.condition for each in summary_of("run", text).constraints if each.settled]
    assert len(kept) == len(set(kept)) == 2


def test_a_failure_that_a_handler_takes_stops_nothing() -> None:
    text = (
        "def a(x):\n    return x.cuda() + torch.zeros(3)\n\n\n"
        "def run(x):\n    try:\n        a(x)\n    except RuntimeError:\n        pass\n    a(x)\n"
    )
    settled = [each for each in summary_of("run", text).constraints if each.settled]
    assert [each.caught for each in settled] == [True, False]


def roots(summary: Summary) -> set[str]:
    return {identity[1][0] for identity, _ in effects_of(summary)}


def test_what_only_the_function_saw_is_no_effect() -> None:
    found = summary_of("run", "def run(x):\n    made = build(x, 3)\n    use(made)\n    return x\n")
    assert any(identity[1][0].startswith("%") for identity in found.heap.things if identity[0] == "path")
    assert not any(root.startswith("%") for root in roots(found))


@pytest.mark.parametrize("line", ["return made", "return [made, x]", "x.kept = made"])
def test_what_is_given_back_or_stored_is_an_effect(line: str) -> None:
    found = summary_of("run", f"def run(x):\n    made = build(x, 3)\n    use(made)\n    made.cuda()\n    {line}\n")
    assert any(root.startswith("%") for root in roots(found))


def test_an_argument_is_an_effect() -> None:
    assert "net" in roots(summary_of("run", "def run(net: nn.Module):\n    net.cuda()\n"))

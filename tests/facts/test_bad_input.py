"""Input that is hard on an analysis: it ends, says nothing wrong, and its cost grows with the size of the input.

Cost is counted in the interpreter's own steps, which are the same on every machine.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from devlint.facts import analysis
from devlint.facts.analysis import analyse, interpret
from devlint.facts.events import Meet
from devlint.facts.interpreter.flow import Flow
from devlint.facts.result import Facts
from devlint.facts.values import MADE, UNKNOWN
from devlint.settings import Settings
from devlint.source import decode, parse
from devlint.testing.probes import PROBE, reveal


class Counter(Flow):
    """The interpreter, with its steps counted over the whole file."""

    total = 0

    @property
    def steps(self) -> int:
        return self._steps

    @steps.setter
    def steps(self, value: int) -> None:
        before = getattr(self, "_steps", 0)
        self.total += max(value - before, 0)
        self._steps = value


def facts_of(text: str, path: str = "bad.py") -> Facts:
    source = decode(text.encode(), path)
    return analyse(parse(source), source, Settings())


def steps_of(text: str) -> int:
    source = decode(text.encode(), "big.py")
    made: list[Counter] = []

    def counter(*arguments: object) -> Flow:
        made.append(Counter(*arguments))  # type: ignore[arg-type]
        return made[0]

    interpret(parse(source), source, Settings(), counter)
    return made[0].total


def revealed(text: str) -> list[str]:
    return [reveal(value) for _, value in facts_of(text).probes]


def meets(text: str) -> int:
    return sum(isinstance(event, Meet) for event in facts_of(text).events)


# -- odd, but legal -----------------------------------------------------------------------------------------------------


def test_a_function_that_calls_itself_ends() -> None:
    text = f"import torch\ndef f(n):\n    return f(n - 1) if n else torch.ones(3).cuda()\n{PROBE}(f(3))\n"
    assert revealed(text)[0].endswith(("unknown", "cuda"))


def test_functions_that_call_each_other_end() -> None:
    text = "import torch\ndef f(t, n):\n    return g(t, n)\ndef g(t, n):\n    return f(t, n - 1)\n"
    text += f"{PROBE}(f(torch.ones(3), 3))\n"
    assert revealed(text) == ["unknown unknown"]


def test_a_class_that_makes_itself_ends() -> None:
    text = "from torch import nn\nclass Tree(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
    text += "        self.left = Tree(n - 1) if n else nn.Linear(2, 2)\n    def forward(self, x):\n"
    text += "        return self.left(x)\nTree(3)(1)\n"
    assert facts_of(text).budget_hits == 0


def test_a_file_that_imports_itself_ends() -> None:
    assert meets("import torch\nfrom bad import f\nimport bad\ndef f(x: torch.Tensor):\n    return bad.f(f(x))\n") == 0


@pytest.mark.parametrize(
    "shadow",
    [
        "class torch:\n    @staticmethod\n    def ones(n): return n\n",
        "class Tensor: pass\nclass ones: pass\n",
        "def ones(n): return [n]\n",
        "torch = __import__('numpy')\n",
    ],
)
def test_names_of_torch_that_the_file_defines_itself_are_its_own(shadow: str) -> None:
    call = "torch.ones(3)" if "torch" in shadow else "ones(3)"
    text = f"import torch\nfrom torch import Tensor, ones\n{shadow}def f(x: torch.Tensor):\n"
    text += f"    y = {call}\n    {PROBE}(y)\n    return x + y\n"
    assert all(value.device == UNKNOWN for _, value in facts_of(text).probes)
    assert meets(text) == 0


def test_a_star_import_of_torch_brings_its_names() -> None:
    assert revealed(f"from torch import *\n{PROBE}(ones(3))\n") == ["tensor cpu"]


def test_a_star_import_of_something_else_may_hide_them() -> None:
    assert meets("import torch\nfrom helpers import *\ndef f(x: torch.Tensor):\n    return x + make(3)\n") == 0


def test_a_deleted_name_is_not_known() -> None:
    text = f"import torch\nx = torch.ones(3)\ndel x\ntry:\n    {PROBE}(x)\nexcept NameError:\n    pass\n"
    assert revealed(text) == ["unknown unknown"]


def test_a_global_that_a_function_rebinds_is_not_known_elsewhere() -> None:
    text = "import torch\nx = torch.ones(3)\ndef move():\n    global x\n    x = x.cuda()\n"
    text += f"def use():\n    {PROBE}(x)\nmove()\nuse()\n"
    assert revealed(text) == ["unknown unknown"]


def test_a_global_written_through_globals_is_not_reported() -> None:
    assert meets("import torch\nx = torch.ones(3)\nglobals()['x'] = x.cuda()\ny = x + x\n") == 0


def test_a_statement_nested_too_deeply_is_noted_and_the_rest_is_analysed() -> None:
    deep = "x" + ".t()" * 150
    facts = facts_of(f"import torch\nx = torch.ones(3, 3)\ny = {deep}\n{PROBE}(x)\n")
    assert [reveal(value) for _, value in facts.probes] == ["tensor cpu"]


# -- large ---------------------------------------------------------------------------------------------------------------


def assignments(n: int) -> str:
    return "import torch\n" + "".join(f"x{i} = torch.zeros(2)\n" for i in range(n))


def moves(n: int) -> str:
    return "import torch\nx = torch.zeros(2)\n" + "x = x.to('cuda') + torch.zeros(2, device='cuda')\n" * n


def branches(n: int) -> str:
    text = "import torch\nx = torch.zeros(2)\n"
    return text + "".join(f"if c{i}:\n    x = x.cuda()\nelse:\n    y{i} = x.cpu()\n" for i in range(n // 4))


def one_function(n: int) -> str:
    body = "".join(f"    x{i} = x + torch.zeros(2)\n" for i in range(n))
    return f"import torch\ndef f(x: torch.Tensor):\n{body}    return x\n"


def loops(n: int) -> str:
    return "import torch\nx = torch.zeros(2)\n" + "for i in range(3):\n    x = x * 2\n" * (n // 2)


def chain_of_functions(n: int) -> str:
    return "import torch\n" + "".join(f"def f{i}(x):\n    return f{i + 1}(x) + torch.ones(2)\n" for i in range(n // 2))


def nested_loops(n: int) -> str:
    body = "".join(f"            x{i} = x{max(i - 1, 0)} * 2\n" for i in range(n))
    return f"import torch\ndef f(x0):\n    for a in range(2):\n        for b in range(2):\n          for c in range(2):\n{body}"


SHAPES = [assignments, moves, one_function, loops, chain_of_functions, nested_loops]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_cost_is_linear_in_the_number_of_lines(shape: Callable[[int], str]) -> None:
    assert steps_of(shape(1200)) <= 2.3 * steps_of(shape(600)) + 1000


def test_branches_that_bind_ever_more_names_stay_within_the_budget() -> None:
    text = branches(4000)
    nodes = sum(1 for _ in ast.walk(ast.parse(text)))
    assert steps_of(text) <= analysis.BUDGET_FACTOR * nodes


@pytest.mark.slow
@pytest.mark.parametrize("shape", [*SHAPES[:4], branches], ids=lambda shape: shape.__name__)
def test_twenty_thousand_lines_end(shape: Callable[[int], str]) -> None:
    assert facts_of(shape(20_000), "generated.py").path == "generated.py"


def test_a_function_of_three_thousand_lines_is_analysed_to_its_end() -> None:
    text = one_function(3000).replace("    return x\n", f"    {PROBE}(x2999)\n    return x\n")
    facts = facts_of(text)
    assert facts.budget_hits == 0
    assert [reveal(value) for _, value in facts.probes] == ["tensor home"]


def test_a_list_that_doubles_stays_small() -> None:
    text = "import torch\nx = [torch.zeros(2)]\n" + "x = x + x\n" * 60 + f"{PROBE}(x)\n"
    (value,) = [value for _, value in facts_of(text).probes]
    assert value.elements is None or len(value.elements) <= 64


def test_a_budget_that_runs_out_is_counted_and_nothing_more_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "BUDGET_LEAST", 50)
    monkeypatch.setattr(analysis, "BUDGET_FACTOR", 0)
    text = one_function(100).replace("    return x\n", f"    {PROBE}(x)\n    return x\n")
    facts = facts_of(text)
    assert facts.budget_hits == 1
    assert not facts.probes


def rebound(times: int) -> str:
    """A function that makes a tensor in one of many places and uses it after each of them."""
    lines = ["import torch", "def f(x: torch.Tensor, flag: int):", "    y = torch.zeros(3)"]
    for number in range(times):
        lines += [f"    if flag == {number}:", f"        y = torch.zeros({number})", "    x = x + y"]
    return "\n".join([*lines, "    return x", ""])


def test_a_tensor_that_is_made_in_very_many_places_is_known_to_be_made_in_some() -> None:
    meets = [event for event in facts_of(rebound(100)).events if isinstance(event, Meet)]
    assert max(len(event.off.value.made) for event in meets) == MADE

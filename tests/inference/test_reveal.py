"""`reveal` of the new inference: where values are, and for every operation what decided that it is reported or not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from devlint.inference.analysis import CODES, judged
from devlint.inference.program.project import Project
from devlint.inference.reveal.asked import Answer, Told, ask
from devlint.inference.summary.analyser import Analyser
from devlint.inference.summary.instantiate import CHAIN
from devlint.source import Source
from tests.inference.cases import PRELUDE
from tests.inference.conditions import CONDITIONS
from tests.inference.effects import EFFECTS
from tests.inference.objects import OBJECTS

FIXTURES: Final = Path(__file__).parents[2] / "fixtures"
#: Every so many of the fixtures of a rule: all take minutes.
EVERY: Final = 12


def source_of(text: str) -> Source:
    return Source("case.py", text.encode(), text)


def answer(text: str, targets: tuple[str, ...] = ()) -> Answer:
    """What is known of all rows of a text."""
    source = source_of(text)
    return ask(ast.parse(text), source, None, targets, range(1, source.rows + 1))


def told(body: str, code: str) -> Told:
    """What is told of one operation of a program, by its text."""
    found = [each for each in answer(PRELUDE + body).operations if each.text == code]
    assert len(found) == 1, f"{code} is told {len(found)} times"
    return found[0]


def said(body: str, code: str) -> str:
    return "\n".join(told(body, code).reasons)


def what(body: str, code: str) -> str:
    return next(each.what for each in answer(PRELUDE + body).values if each.text == code)


# -- values


def test_a_moved_tensor_is_on_the_device_that_the_code_names() -> None:
    assert what("def f(device):\n    x = torch.ones(3).to(device)\n", "x") == "tensor on `device`, not 0-dim"


def test_a_parameter_is_on_any_device() -> None:
    assert (
        what("def f(x: torch.Tensor):\n    return x * 2\n", "x") == "tensor on any device (`x` is an argument of `f`)"
    )


def test_a_condition_stands_with_its_place() -> None:
    body = "def f(mask=None):\n    if mask is None:\n        mask = torch.ones(3)\n    return mask.sum()\n"
    assert (
        "on the CPU if `mask` is None"
        in [each.what for each in answer(PRELUDE + body).values if each.text == "mask"][-1]
    )


def test_a_call_that_nobody_knows() -> None:
    assert "the call cannot be read" in what("from lib import load\nx = load()\n", "load()")


def test_a_module_that_a_call_may_have_moved() -> None:
    body = "from lib import setup\nnet = nn.Linear(3, 3)\nsetup(net)\nprint(net(torch.ones(3)))\n"
    assert "line 6 cannot be read, and may have moved it" in said(body, "net(torch.ones(3))")


# -- reasons


def test_a_parameter_that_no_caller_gives_a_gpu_tensor() -> None:
    reasons = said("def f(x: torch.Tensor):\n    return x + torch.ones(3)\n", "torch.ones(3)")
    assert (
        "`x` may be on any device: `x` is an argument of `f`, and no caller that was read gives it one on a GPU"
        in reasons
    )


def test_every_call_hands_over_host_data() -> None:
    reasons = said("def f(x: torch.Tensor):\n    return x + torch.ones(3)\nf(torch.ones(3))\n", "x + torch.ones(3)")
    assert "Every call that was read hands over values on the CPU too: line 6" in reasons


def test_places_that_exclude_each_other() -> None:
    body = """
def f(flag: bool):
    x = torch.ones(3, device="cuda") if flag else torch.ones(3)
    if not flag:
        return x + torch.ones(3)
    return x
"""
    assert "on the CPU" in said(body, "x + torch.ones(3)")


def test_a_tensor_without_dimensions_meets_any_device() -> None:
    reasons = said('x = torch.ones(3, device="cuda")\nprint(x * torch.tensor(2.0))\n', "x * torch.tensor(2.0)")
    assert "torch lets such a tensor meet any device" in reasons


def test_an_index_on_the_cpu_reads_any_tensor() -> None:
    reasons = said('x = torch.ones(3, device="cuda")\nprint(x[torch.tensor([1])])\n', "x[torch.tensor([1])]")
    assert "an index on the CPU may read a tensor on any device" in reasons


def test_one_tensor_alone() -> None:
    assert said("x = torch.ones(3)\nprint(x * 2)\n", "x * 2") == "only one tensor takes part, `x`: `2` is a number"


def test_what_may_be_a_number() -> None:
    assert "it may be a number" in said("def f(n):\n    return n * torch.ones(3)\n", "n * torch.ones(3)")


def test_an_earlier_operation_fails_first() -> None:
    body = "def f(x: torch.Tensor):\n    y = torch.ones(3)\n    a = x + y\n    return x - y\n"
    assert "earlier operation" in said(body, "x - y")


def test_a_method_of_a_data_set_runs_before_the_move() -> None:
    body = """
from torch.utils.data import Dataset
class Rows(Dataset):
    def __getitem__(self, x: torch.Tensor):
        return x + torch.ones(3)
"""
    assert "runs before anything is moved to an accelerator" in said(body, "x + torch.ones(3)")


def test_too_many_calls_in_between() -> None:
    calls = "".join(f"def f{i}(x):\n    return f{i - 1}(x)\n" for i in range(1, CHAIN + 2))
    assert "too many calls away" in said(f"def f0(x):\n    return x * torch.ones(3)\n{calls}", "x * torch.ones(3)")


def test_more_places_than_are_followed() -> None:
    body = "def f(k: int):\n    x = torch.ones(3)\n"
    body += "".join(f"    if k == {i}:\n        x = torch.ones(3, device='cuda:{i}')\n" for i in range(4))
    assert "more than 4 places" in said(body + "    return x + torch.ones(3)\n", "x + torch.ones(3)")


def test_a_decorator_that_may_replace_the_function() -> None:
    body = "from lib import cached\n@cached\ndef f(x):\n    return x\nprint(f(torch.ones(3)))\n"
    assert "a decorator may have replaced the function" in said(body, "f(torch.ones(3))")


def test_the_chain_of_a_call_is_named() -> None:
    body = "def f(x: torch.Tensor):\n    return x + torch.ones(3)\ndef g():\n    f(torch.ones(3).cuda())\n"
    reasons = "\n".join(reason for each in answer(PRELUDE + body).operations if each.code for reason in each.reasons)
    assert "line 7 calls `f`" in reasons
    assert "moved on line 7" in reasons


# -- over many programs


def programs() -> Iterator[tuple[str, str]]:
    for code in sorted(CODES):
        files = sorted(path for path in (FIXTURES / code).glob("*.py") if not path.name.endswith(".fixed.py"))
        for path in files[::EVERY]:
            yield f"{code}/{path.stem}", path.read_text(encoding="utf-8")
    for case in (*OBJECTS, *CONDITIONS):
        yield case.name, case.wrong
    yield from EFFECTS.items()


PROGRAMS: Final = [pytest.param(text, id=name) for name, text in programs()]


@pytest.mark.parametrize("text", PROGRAMS)
def test_every_finding_is_told_with_its_chain(text: str) -> None:
    source, tree = source_of(text), ast.parse(text)
    reasons = {(each.span, each.code): each.reasons for each in answer(text).operations}
    for event, mismatch in judged(Analyser(Project()), tree, source, ()):
        lines = "\n".join(reasons[event.span, event.code])
        assert f"reported as {event.code} ({event.severity.value})" in lines
        for step in mismatch.chain:
            assert f"line {getattr(step.node, 'lineno', 0)} calls `{step.name}`" in lines
        for at in (mismatch.off_at, mismatch.other_at):
            if at.origin is not None and at.origin.node is not None:
                assert f"line {getattr(at.origin.node, 'lineno', 0)}" in lines


@pytest.mark.parametrize("text", PROGRAMS)
def test_every_operation_on_a_tensor_has_a_reason(text: str) -> None:
    source = source_of(text)
    found = answer(text)
    tensors = {each.span for each in found.values if each.kind in ("tensor", "tensors", "batch")}
    told_ = {each.span for each in found.operations}
    rows = {source.row(each.span.start) for each in found.operations if each.code}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.BinOp, ast.Compare, ast.Call)) and node.lineno not in rows:
            operands = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                operands.append(node.func.value)
            if any(source.span(each) in tensors for each in operands):
                assert source.span(node) in told_, f"nothing is told of `{ast.unparse(node)}` on line {node.lineno}"


def test_nothing_is_told_without_a_reason() -> None:
    for each in answer(PRELUDE + "x = torch.ones(3)\nprint(x + x, x @ x, x.sum(), len(x))\n").operations:
        assert each.reasons and all(each.reasons)

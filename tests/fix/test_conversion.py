"""CUDA-only programs, put together at random: what the fixes make of them runs on the CPU and computes the same.

The reference is the program with every name of CUDA taken out by hand, which each part brings with it.
"""

from __future__ import annotations

import ast
import contextlib
import io
import random
import warnings
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devlint.engine import Linter
from devlint.fix.rounds import FixOutcome, fix_source
from devlint.model import Safety
from devlint.settings import Settings
from devlint.source import decode
from devlint_rules import RULES

ALL = {Safety.SAFE, Safety.UNSAFE}


class Part(NamedTuple):
    """Lines of a program for CUDA, and the same for the CPU."""

    cuda: str
    cpu: str


HEADS = (
    Part("assert torch.cuda.is_available()", ""),
    Part('if not torch.cuda.is_available():\n    print("no card")\n    raise SystemExit(1)', ""),
    Part("torch.cuda.set_device(0)", ""),
    Part("torch.cuda.manual_seed_all(0)", ""),
    Part('place = torch.device("cuda:0")', 'place = torch.device("cpu")'),
    Part('where = "cuda"', 'where = "cpu"'),
    Part("torch.backends.cudnn.benchmark = True", ""),
)
MODELS = (
    Part("model = Net().cuda()", "model = Net()"),
    Part("model = Net()\nmodel.cuda()", "model = Net()"),
    Part('model = Net().to("cuda")', "model = Net()"),
    Part('model = Net()\nmodel = model.to(torch.device("cuda", 0))', "model = Net()"),
    Part("model = nn.DataParallel(Net()).cuda()", "model = Net()"),
)
LOSSES = (
    Part("criterion = nn.MSELoss().cuda()", "criterion = nn.MSELoss()"),
    Part("criterion = nn.MSELoss()", "criterion = nn.MSELoss()"),
)
MOVES = (
    Part("x, y = x.cuda(), y.cuda(non_blocking=True)", ""),
    Part('x = x.to("cuda")\ny = y.to("cuda:0")', ""),
    Part("x = Variable(x.cuda())\ny = Variable(y).cuda()", ""),
    Part("x = x.type(torch.cuda.FloatTensor)\ny = y.cuda(None)", ""),
    Part("x, y = (t.cuda() for t in (x, y))", ""),
)
STEPS = (
    Part("x = x + torch.zeros(4, 3).cuda()", "x = x + torch.zeros(4, 3)"),
    Part('x = x * torch.ones(4, 3, device="cuda")', "x = x * torch.ones(4, 3)"),
    Part("x = x + torch.cuda.FloatTensor([[1.0, 2.0, 3.0]])", "x = x + torch.tensor([[1.0, 2.0, 3.0]])"),
    Part("x = x + torch.cuda.FloatTensor(4, 3).fill_(1)", "x = x + 1"),
    Part("x = x[torch.arange(4).cuda()]", "x = x"),
    Part("torch.cuda.synchronize()", ""),
    Part("x = shifted(x)", "x = x + 2"),
    Part("x = window(x)", "x = x * 0.5"),
    Part("scaler = torch.cuda.amp.GradScaler(enabled=False)", ""),
)

PROGRAM = """\
import random

import torch
from torch import nn
from torch.autograd import Variable


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, x):
        {forward}


def shifted(x: torch.Tensor):
    return x + {shift}


def window(x: torch.Tensor):
    w = torch.full((3,), 0.5)
    {window}
    return x * w


{main}
"""

FORWARDS = (
    Part("return self.layer(x) + torch.ones(1).cuda()", "return self.layer(x) + torch.ones(1)"),
    Part('return self.layer(x) + torch.ones(1, device="cuda")', "return self.layer(x) + torch.ones(1)"),
    Part("return self.layer(x)", "return self.layer(x)"),
)
SHIFTS = (
    Part('torch.full((1,), 2.0, device="cuda")', "2"),
    Part("torch.full((1,), 2.0).cuda()", "2"),
)
WINDOWS = (
    Part("if x.is_cuda:\n        w = w.cuda()", ""),
    Part("w = w.cuda() if x.is_cuda else w", ""),
    Part("w = w.cuda()", ""),
)


def write(seed: int, device: str) -> str:
    """A program for `device`, "cuda" or "cpu"; equal seeds give programs that compute the same."""
    draw = random.Random(seed)

    def part(choices: tuple[Part, ...]) -> str:
        chosen = draw.choice(choices)
        return chosen.cuda if device == "cuda" else chosen.cpu

    forward, shift, window = part(FORWARDS), part(SHIFTS), part(WINDOWS)
    lines = [part((head,)) for head in draw.sample(HEADS, draw.randrange(3))]
    lines += ["torch.manual_seed(0)", part(MODELS), part(LOSSES)]
    lines += ["optimizer = torch.optim.SGD(model.parameters(), 0.01)", "losses = []"]
    body = ["x, y = torch.randn(4, 3), torch.randn(4, 1)", part(MOVES)]
    body += [part(STEPS) for _ in range(draw.randrange(4))]
    body += ["loss = criterion(model(x), y)", "optimizer.zero_grad()", "loss.backward()", "optimizer.step()"]
    body += ["losses.append(loss.item())"]
    lines.append("for step in range(2):\n" + indented(body))
    main = "\n".join(line for line in lines if line)
    if draw.random() < 0.5:
        main = "def main():\n" + indented([*lines, "return losses"]) + "\n\n\nlosses = main()"
    return PROGRAM.format(forward=forward, shift=shift, window=window, main=main)


def indented(lines: list[str]) -> str:
    return "\n".join("    " + row for line in lines if line for row in line.split("\n"))


def convert(text: str) -> FixOutcome:
    linter = Linter(tuple(rule() for rule in RULES), Settings())
    return fix_source(linter, decode(text.encode(), "train.py"), ALL)


def run(text: str) -> list[float]:
    names: dict[str, object] = {"__name__": "train"}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        exec(compile(text, "train.py", "exec"), names)
    losses = names["losses"]
    assert isinstance(losses, list) and len(losses) == 2
    return losses


@pytest.mark.runtime
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**6))
def test_a_converted_program_runs_on_the_cpu_and_computes_the_same(seed: int) -> None:
    pytest.importorskip("torch")
    outcome = convert(write(seed, "cuda"))
    assert run(outcome.text) == pytest.approx(run(write(seed, "cpu")), rel=1e-5)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**6))
def test_a_second_conversion_changes_nothing(seed: int) -> None:
    first = convert(write(seed, "cuda")).text
    assert convert(first).text == first


def test_the_writer_covers_both_shapes_of_program() -> None:
    texts = [write(seed, "cuda") for seed in range(20)]
    assert any("def main()" in text for text in texts) and not all("def main()" in text for text in texts)
    assert all(ast.parse(text) for text in texts)


@pytest.mark.slow
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_code_around_a_conversion_stays_as_it_is(data: st.DataObject) -> None:
    """Whatever stands around it: what Python's grammar allows is written there by hypothesmith."""
    hypothesmith = pytest.importorskip("hypothesmith", reason="hypothesmith is not installed")
    around = data.draw(hypothesmith.from_grammar("file_input"))
    if "__future__" in around:
        return
    text = f"{around.rstrip()}\n\nimport torch\n\n\ndef move(model):\n    return model.cuda()\n"
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    result = convert(text).text
    assert result.startswith(around.rstrip())
    ast.parse(result)
    assert convert(result).text == result

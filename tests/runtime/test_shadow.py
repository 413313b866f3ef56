"""`--devlint-shadow`: a suite stays as it is, and its calls are repeated on copies that were moved to the card."""

from __future__ import annotations

import sys
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
import torch._dynamo  # an optimizer imports it in its first step; it registers operators, which can be done once

# All that a run inside this process imports must be there before the first; see test_pytest_plugin.py.
import devlint.runtime.shadows.shadow
import devlint.runtime.simulator.handrules
import devlint.runtime.simulator.session  # noqa: F401

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.runtime

LIBRARY = '''\
"""A library with bugs that show on a card only."""
import types
import torch
from torch import nn

class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.offset = torch.zeros(3)
    def forward(self, x):
        return x * self.weight + self.offset

class Good(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.calls = 0
    def forward(self, x):
        self.calls += 1
        return x * self.weight * torch.rand_like(x)
    def inverse(self, y):
        return y / self.weight + torch.zeros(3)

def scale(x, factor=2.0):
    return x * torch.full((3,), factor)

def on_host(x):
    return torch.zeros(3)

def good(x, out=None):
    x += torch.rand(3, device=x.device)
    return x

def waits(x, device="cpu"):
    return x + torch.ones(3, device=device)

class Halves(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x / 2
    @staticmethod
    def backward(ctx, grad):
        return torch.full((3,), 0.5) * grad

def halve(x):
    return Halves.apply(x)

class Checks(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.ones(3)
    def forward(self, x):
        if x.device != self.weight.device:
            raise ValueError(f"weight and x must be on one device: {self.weight.device} and {x.device}")
        return x * self.weight

def require(condition, message):
    if not condition:
        raise ValueError(message)

def weighted(x, weight):
    require(weight.device == x.device, f"weight and x: {weight.device} and {x.device}")
    return x * weight

class Weighs(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.ones(3)
    def forward(self, x):
        return weighted(x, self.weight)

def weighed(x):
    weight = torch.ones(3)
    return weighted(x, weight=weight)

class Hashed(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Good()
        self.start = good(torch.ones(3))
        self.first = self.part.inverse(torch.ones(3))
        self.size = 3
    def __hash__(self):
        return hash(self.size)
    def __eq__(self, other):
        raise RuntimeError("not to be compared")
    def forward(self, x):
        return self.part(x) * self.size

class Moved(torch.distributions.Transform, nn.Module):
    bijective = True
    domain = codomain = torch.distributions.constraints.real
    def __init__(self):
        torch.distributions.Transform.__init__(self)
        nn.Module.__init__(self)
        self.by = torch.ones(3)
    def __hash__(self):
        return nn.Module.__hash__(self)
    def _call(self, x):
        return x + self.by
    def _inverse(self, y):
        return y - self.by

class Making(type):
    def __call__(cls, *args):
        return super().__call__(*args)

class Made(metaclass=Making):
    def __init__(self, x):
        self.x = x + torch.zeros(3)

class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.total = torch.zeros(3)
    def update(self, x):
        self.total = self.total + x
        return scale(x)
    def forward(self, x):
        self.total = self.total.to(x.device)
        self.update(shifted(x))

class Box:
    def __init__(self, corners):
        self.corners = scale(corners)
    def area(self):
        return self.corners.prod() + torch.zeros(3)

class Weighted(nn.Module):
    def __init__(self, weight=None, act=None):
        super().__init__()
        self.weight = weight
        self.act = act
    def forward(self, x):
        x = x if self.weight is None else x * self.weight
        return x if self.act is None else self.act(x)

def relu(x):
    return x.relu()

def shifted(x):
    return x + torch.ones(3)

def add_in_place(x):
    return x.add_(torch.ones(3))

class History:
    def __init__(self):
        self.kept = []
    def update(self, x):
        self.kept.append(x.detach().cpu())
        return self

def history_of(x):
    return History().update(x)

def record_of(x):
    return types.SimpleNamespace(mean=x.mean(), first=torch.zeros(3))

def two(x):
    return scale(shifted(x))

def draw(law, n=2):
    return law.rsample((n,)) + torch.zeros(3)

def pushed(change, x):
    return change(x) + torch.zeros(3)

def shifting(by):
    def shift(x):
        return x + by
    return shift

def twice(change):
    def both(x):
        return change(change(x))
    return both

def scaling(module):
    return lambda x: module.weight * x

def applied(x, function):
    return function(x)

class Applies(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
    def forward(self, x):
        return self.function(x), x

def noisy(x, device=None):
    return x + torch.rand(3, device=device)

def filled(x, *, device="cpu"):
    return x + torch.full((3,), 1.0, device=device)

class Places(nn.Module):
    def forward(self, x, dtype=None, device=None):
        return x + torch.ones(3, dtype=dtype, device=device)

def compared(x, function):
    return function(x, torch.ones(3))

class Given(torch.distributions.Transform):
    bijective = True
    domain = codomain = torch.distributions.constraints.real
    def __init__(self, function):
        super().__init__()
        self.function = function
    def _call(self, x):
        return self.function(x)

def added(by, x):
    return x + by

def sums(record):
    return record.itself[0].x + record.parts[0][0][0][0][0]["y"]

def pushed_through(law, n=2):
    for change in law.transforms:
        change(torch.ones(3, device=law.sample().device))

class Turn:
    def __init__(self, angle):
        self.angle = angle
    @classmethod
    def between(cls, x, y):
        return cls(x - y + torch.zeros(3))
    def __call__(self, x):
        return x + torch.ones(3) * self.angle

class Movable(Box):
    def to(self, device):
        self.corners = self.corners.to(device)
        return self
'''


@pytest.fixture(autouse=True)
def _library(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makeini("[pytest]\naddopts = -p no:cacheprovider --import-mode=importlib\npythonpath = .\n")
    pytester.makepyfile(somelib=LIBRARY)
    sys.modules.pop("somelib", None)


def shadowed(pytester: pytest.Pytester, test: str, *options: str, package: str = "=somelib") -> pytest.RunResult:
    pytester.makepyfile(test_it="import pytest, torch\nimport somelib\nfrom somelib import *\n" + test)
    return pytester.runpytest_inprocess("--devlint-device=sim", f"--devlint-shadow{package}", *options)


def line_of(text: str) -> int:
    return LIBRARY[: LIBRARY.index(text)].count("\n") + 1


OFFSET, INVERSE = line_of("x * self.weight + self"), line_of("return y / self")
SCALE, ON_HOST, HALF = line_of("return x * torch.full"), line_of("def on_host"), line_of("return torch.full((3,), 0.5)")
CHECK = line_of("raise ValueError(f")
WEIGHS, WEIGHED = line_of("return weighted(x, self.weight)"), line_of("return weighted(x, weight=weight)")
AREA = line_of("return self.corners.prod")
WEIGHTED, SHIFTED = line_of("x = x if self.weight is None"), line_of("return x + torch.ones(3)\n\ndef add")
IN_PLACE, DRAW, PUSHED = line_of("return x.add_"), line_of("return law.rsample"), line_of("return change(x)")
MOVED, BACK = line_of("return x + self.by"), line_of("return y - self.by")
COMPARED = line_of("return function(x, torch.ones(3))")
BETWEEN, TURN = line_of("return cls(x - y"), line_of("return x + torch.ones(3) * self.angle")

PLACES = {
    "a plain attribute of a module": (
        "def test_it():\n    Shift()(torch.ones(3))\n",
        f"  somelib.py:{OFFSET}: DEV106 *",
        "      left behind: `self.offset`, float32?3? on cpu*",
    ),
    "a function": (
        "def test_it():\n    somelib.scale(torch.ones(3))\n",
        f"  somelib.py:{SCALE}: DEV102 *",
        "      left behind: `torch.full((3,), factor)`*",
    ),
    "a function by its own name": (
        "def test_it():\n    assert scale(x=torch.ones(3), factor=3.0).tolist() == [3.0] * 3\n",
        f"  somelib.py:{SCALE}: DEV102 *",
        "      called as somelib.scale, by test_it.py::test_it",
    ),
    "another method of a module": (
        "def test_it():\n    Good().inverse(torch.ones(3))\n",
        f"  somelib.py:{INVERSE}: DEV102 *",
        "      called as somelib.Good.inverse, by test_it.py::test_it",
    ),
    "a result on the host": (
        "def test_it():\n    on_host(torch.ones(3))\n",
        f"  somelib.py:{ON_HOST}: DEV102 somelib.on_host returned float32?3? on the CPU, but its inputs are on the GPU",
        "      called as somelib.on_host, *",
    ),
    "a result on the host in a record": (
        "def test_it():\n    record_of(torch.ones(3))\n",
        f"  somelib.py:{line_of('def record_of')}: DEV102 somelib.record_of returned float32?3? on the CPU, but its *",
        "      called as somelib.record_of, *",
    ),
    "a backward pass": (
        "def test_it():\n    halve(torch.ones(3, requires_grad=True))\n",
        f"  somelib.py:{HALF}: DEV102 *(in the backward pass)",
        "      left behind: `torch.full((3,), 0.5)`*",
    ),
    "a method of an object that can be moved": (
        "def test_it():\n    Movable(torch.ones(3)).area()\n",
        f"  somelib.py:{AREA}: DEV102 *",
        "      called as somelib.Box.area, *",
    ),
    "a class method": (
        "def test_it():\n    Turn.between(torch.ones(3), torch.ones(3))\n",
        f"  somelib.py:{BETWEEN}: DEV102 *",
        "      called as somelib.Turn.between, *",
    ),
    "an object that is called": (
        "def test_it():\n    Turn(0.5)(torch.ones(3))\n",
        f"  somelib.py:{TURN}: DEV102 *",
        "      called as somelib.Turn.__call__, *",
    ),
    "an input that is written in place and was computed": (
        "def test_it():\n    add_in_place(torch.ones(3, requires_grad=True) * 2)\n",
        f"  somelib.py:{IN_PLACE}: DEV102 *",
        "      called as somelib.add_in_place, *",
    ),
    "a distribution": (
        "def test_it():\n    draw(torch.distributions.Normal(torch.zeros(3), torch.ones(3)))\n",
        f"  somelib.py:{DRAW}: DEV102 *",
        "      called as somelib.draw, *",
    ),
    "a distribution of a distribution": (
        "def test_it():\n    law = torch.distributions.Normal(torch.zeros(2, 3), torch.ones(3))\n"
        "    draw(law=torch.distributions.Independent(law, 1))\n",
        f"  somelib.py:{DRAW}: DEV102 *",
        "      called as somelib.draw, *",
    ),
    "a transform": (
        "def test_it():\n    change = torch.distributions.AffineTransform(torch.ones(3), torch.ones(3))\n"
        "    pushed(change, torch.ones(3))\n",
        f"  somelib.py:{PUSHED}: DEV102 *",
        "      called as somelib.pushed, *",
    ),
    "a module with a weight, after one without": (
        "def test_it():\n    for weight in (None, None, torch.ones(3)):\n        Weighted(weight)(torch.ones(3))\n",
        f"  somelib.py:{WEIGHTED}: DEV1*",
        "      called as somelib.Weighted, *",
    ),
    "a module with another function, after one without": (
        "def test_it():\n    for act in (relu, relu, shifted):\n        Weighted(act=act)(torch.ones(3))\n",
        f"  somelib.py:{SHIFTED}: DEV102 *",
        "      called as somelib.Weighted, *",
    ),
    "a module with another part, after one like it": (
        "def test_it():\n    for part in (Good, Good, Shift):\n"
        "        Weighted(torch.nn.Parameter(torch.ones(3)), part())(torch.ones(3))\n",
        f"  somelib.py:{OFFSET}: DEV106 *",
        "      called as somelib.Weighted, *",
    ),
    "what a function of the test is given": (
        "def product(x, y):\n    return x * y\ndef test_it():\n    compared(torch.ones(3), product)\n",
        f"  somelib.py:{COMPARED}: DEV1*",
        "      called as somelib.compared, *",
    ),
    "what comes after a function of the test": (
        "def made(x):\n    return torch.zeros(3)\ndef test_it():\n    pushed(made, torch.ones(3))\n",
        f"  somelib.py:{PUSHED}: DEV102 *",
        "      called as somelib.pushed, *",
    ),
    "a transform that is a module": (
        "def test_it():\n    Moved()(torch.ones(3))\n",
        f"  somelib.py:{MOVED}: DEV106 *",
        "      called as somelib.Moved, *",
    ),
    "the inverse of a transform that is a module": (
        "def test_it():\n    Moved().inv(torch.ones(3))\n",
        f"  somelib.py:{BACK}: DEV106 *",
        "      called as somelib.Moved.inv, *",
    ),
    "an error of the library's own": (
        "def test_it():\n    Checks()(torch.ones(3))\n",
        f"  somelib.py:{CHECK}: DEV1* weight and x must be on one device: cpu and cuda:0",
        "      called as somelib.Checks, *",
    ),
    "a check of the library's own, far below": (
        "def test_it():\n    Weighs()(torch.ones(3))\n",
        f"  somelib.py:{WEIGHS}: DEV106 weight and x: cpu and cuda:0",
        "      called as somelib.Weighs, *",
    ),
    "a check of a tensor that a function made": (
        "def test_it():\n    weighed(torch.ones(3))\n",
        f"  somelib.py:{WEIGHED}: DEV1* weight and x: cpu and cuda:0",
        "      called as somelib.weighed, *",
    ),
    "where the host is the default device": (
        "def test_it():\n    with torch.device('cpu'):\n        scale(torch.ones(3))\n",
        f"  somelib.py:{SCALE}: DEV102 *",
        "      called as somelib.scale, by test_it.py::test_it",
    ),
    "a unittest": (
        "import unittest\nclass TestIt(unittest.TestCase):\n    def test_it(self):\n        scale(torch.ones(3))\n",
        f"  somelib.py:{SCALE}: DEV102 *",
        "      called as somelib.scale, by test_it.py::TestIt::test_it",
    ),
    "inputs of a session fixture": (
        "@pytest.fixture(scope='session')\ndef x():\n    return torch.ones(3)\ndef test_it(x):\n    scale(x)\n",
        f"  somelib.py:{SCALE}: DEV102 *",
        "      called as somelib.scale, *",
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_place_that_fails_on_the_card_is_listed(pytester: pytest.Pytester, name: str) -> None:
    test, *lines = PLACES[name]
    result = shadowed(pytester, test)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["fails on the simulated GPU, on 1 line:", *lines])


@pytest.mark.parametrize(
    "test",
    [
        "def test_it():\n    history_of(torch.ones(3))\n",
        "def test_it():\n    Hashed()(torch.ones(3))\n",
        "def test_it():\n    Good()(torch.ones(3))\n",
        "def test_it():\n    good(torch.ones(3))\n",
        "def test_it():\n    waits(torch.ones(3), device='cpu')\n    waits(torch.ones(3), torch.device('cpu'))\n",
        "def test_it():\n    [good(x) for x in torch.ones(2, 3)]\n",
        "def test_it():\n    good(x=[torch.ones(3), torch.ones(3)][0])\n",
        "import functools\ndef test_it():\n    parts = [Given(functools.partial(added, torch.ones(3)))]\n"
        "    change = torch.distributions.ComposeTransform([torch.distributions.ComposeTransform(parts)])\n"
        "    law = torch.distributions.Normal(torch.zeros(3), torch.ones(3))\n"
        "    pushed_through(torch.distributions.TransformedDistribution(law, [change]))\n",
        "import types\ndef test_it():\n    record = types.SimpleNamespace(x=torch.ones(3))\n"
        "    record.itself = [record]\n    record.parts = [[[[[{'y': torch.ones(3)}]]]]]\n"
        "    somelib.sums(record)\n",
        "def test_it():\n    applied(torch.ones(3), torch.nn.LazyLinear(2))\n",
        "def test_it():\n    good(torch.ones(3), torch.nn.LazyLinear(2).weight)\n",
        "def made(x):\n    return torch.zeros(3)\ndef test_it():\n    applied(torch.ones(3), made)\n",
        "def test_it():\n    applied(torch.ones(3), function=lambda x: [torch.zeros(3), {'y': torch.ones(2)}])\n",
        "def made(x):\n    return torch.zeros(3)\ndef test_it():\n    Applies(made)(torch.ones(3))\n",
        "def mixed(x):\n    return x + torch.zeros(3)\ndef test_it():\n    applied(torch.ones(3), mixed)\n",
        "class Mixes(torch.nn.Module):\n    def forward(self, x):\n        return x * torch.ones(3)\n"
        "def test_it():\n    applied(torch.ones(3), Mixes())\n",
        "def test_it():\n    noisy(torch.ones(3))\n    noisy(torch.ones(3), None)\n",
        "def test_it():\n    filled(torch.ones(3))\n",
        "def test_it():\n    Places()(torch.ones(3))\n    Places()(torch.ones(3), dtype=torch.float64)\n",
    ],
)
def test_good_code_has_no_place(pytester: pytest.Pytester, test: str) -> None:
    result = shadowed(pytester, test, "--devlint-shadow-strict")
    result.assert_outcomes(passed=1)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["repeated on the simulated GPU: * calls of 1 functions and modules*"])
    result.stdout.no_fnmatch_line("*fails on the simulated GPU*")


OPTIMIZERS = """
class Decaying(torch.optim.Optimizer):
    def __init__(self, parameters, rate=0.5):
        super().__init__(parameters, {"lr": 0.1})
        self.rate = rate

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter].setdefault("mean", torch.zeros_like(parameter))
                parameter -= self.rate * parameter.grad BAD

class Around(torch.optim.Optimizer):
    def __init__(self, inner):
        self.inner = inner

    def step(self, closure=None):
        return self.inner.step(closure)

class Lookahead(torch.optim.Optimizer):
    def __init__(self, inner):
        self.inner, self.param_groups, self.state = inner, inner.param_groups, inner.state
        self.slow = {p: p.detach().clone() for group in self.param_groups for p in group["params"]}

    def step(self, closure=None):
        self.inner.step(closure)
        assert self.param_groups is self.inner.param_groups
        for p in self.param_groups[0]["params"]:
            assert "mean" in self.state[p]
            p.data.lerp_(self.slow[p], 0.5)

class Projector:
    def __init__(self):
        self.basis = None

    def project(self, grad):
        self.basis = torch.ones_like(grad) if self.basis is None else self.basis
        return grad * self.basis

class Projecting(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.1})
        self.past = collections.deque(maxlen=2)
        self.sizes = [[torch.ones_like(p) for p in group["params"]] for group in self.param_groups]

    @torch.no_grad()
    def step(self, closure=None):
        for p, size in zip(self.param_groups[0]["params"], self.sizes[0]):
            projector = self.state[p].setdefault("projector", Projector())
            self.past.append(projector.project(p.grad) * size)
            p -= sum(self.past)

class Curved(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {})

    def step(self, closure=None):
        (p,) = self.param_groups[0]["params"]
        torch.autograd.grad(p.grad.sum(), p)

class Kept(torch.optim.Adam):
    def step(self, closure=None):
        return super().step(closure)
"""
STEPS = """
import torch, somelib
def test_it():
    weight = torch.nn.Parameter(torch.rand(3))
    inner = optimizer = somelib.KIND([weight])
    AROUND
    for _ in range(8):
        inner.zero_grad()
        (weight ** 2).sum().backward(create_graph=GRAPH)
        optimizer.step()
    AFTER
"""


def stepped(
    pytester: pytest.Pytester,
    kind: str,
    *,
    bad: str = "",
    around: str = "",
    graph: bool = False,
    after: str = "",
    shadow: bool = True,
) -> pytest.RunResult:
    pytester.makepyfile(somelib="import collections, torch\n" + OPTIMIZERS.replace("BAD", bad))
    words = {"KIND": kind, "AROUND": around or "pass", "GRAPH": str(graph), "AFTER": after or "pass"}
    test = STEPS
    for word, text in words.items():
        test = test.replace(word, text)
    pytester.makepyfile(test_it=test)
    options = ("--devlint-device=sim", "--devlint-shadow=somelib") if shadow else ()
    return pytester.runpytest_inprocess(*options)


WHOLE = {
    "its own attributes": ("Decaying", ""),
    "one around another, with its groups and its state": (
        "Decaying",
        "optimizer = somelib.Lookahead(inner)",
    ),
    "objects in its state, lists and deques": ("Projecting", ""),
    "the counts of torch's own": ("Kept", ""),
    "one whose step a scheduler has wrapped": (
        "Decaying",
        "somelib.kept = torch.optim.lr_scheduler.StepLR(optimizer, 1)",
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_copy_of_an_optimizer_is_whole_on_the_card(pytester: pytest.Pytester, name: str) -> None:
    kind, around = WHOLE[name]
    result = stepped(pytester, kind, around=around)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["repeated on the simulated GPU: * calls of 1 functions and modules*"])
    result.stdout.no_fnmatch_line("not repeated: *")
    result.stdout.no_fnmatch_line("failed for other reasons*")
    result.stdout.no_fnmatch_line("*fails on the simulated GPU*")


@pytest.mark.parametrize("kind", ["Decaying", "Projecting", "Kept"])
def test_steps_of_a_suite_are_the_same_with_a_shadow(pytester: pytest.Pytester, kind: str) -> None:
    around = "weight.data.copy_(torch.tensor([1.0, 2.0, 3.0]))"
    after = "open('numbers.txt', 'a').write(f'{weight.tolist()} {weight.grad.tolist()}\\n')"
    for shadow in (False, True):
        sys.modules.pop("somelib", None)
        stepped(pytester, kind, around=around, after=after, shadow=shadow).assert_outcomes(passed=1)
    plain, shadowed_ = (pytester.path / "numbers.txt").read_text().splitlines()
    assert plain == shadowed_


def test_optimizer_that_fails_on_the_card_is_listed(pytester: pytest.Pytester) -> None:
    result = stepped(pytester, "Decaying", bad="+ torch.ones(3)")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*somelib.py:*: DEV10*"])


def test_gradients_with_a_graph_cannot_be_copied_for_an_optimizer(pytester: pytest.Pytester) -> None:
    result = stepped(pytester, "Curved", graph=True)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["not repeated: *, not moved: Curved, whose gradients have a graph of their own (*)"])
    result.stdout.no_fnmatch_line("failed for other reasons*")


def test_steps_of_one_kind_are_left_out(pytester: pytest.Pytester) -> None:
    result = stepped(pytester, "Decaying")
    result.stdout.re_match_lines([r"repeated on the simulated GPU: [2-6] calls of 1 functions and modules, [2-6] .*"])


def test_optimizer_around_another_passes_as_without_a_shadow(pytester: pytest.Pytester) -> None:
    stepped(pytester, "Decaying", around="optimizer = somelib.Around(inner)").assert_outcomes(passed=1)


def test_package_that_no_test_calls_is_named(pytester: pytest.Pytester) -> None:
    result = shadowed(pytester, "def test_it():\n    good(torch.ones(2))\n", package="=elselib")
    result.stdout.fnmatch_lines(["no test called elselib with tensors: *"])


def test_package_that_a_test_calls_has_no_such_line(pytester: pytest.Pytester) -> None:
    result = shadowed(pytester, "def test_it():\n    good(torch.ones(2))\n")
    result.stdout.no_fnmatch_line("no test called *")


def test_strict_fails_the_session_and_no_test(pytester: pytest.Pytester) -> None:
    result = shadowed(pytester, "def test_it():\n    scale(torch.ones(3))\n", "--devlint-shadow-strict")
    result.assert_outcomes(passed=1)
    assert result.ret == 1


def test_failing_test_shows_what_fails_on_the_card_beside(pytester: pytest.Pytester) -> None:
    result = shadowed(pytester, "def test_it():\n    assert scale(torch.ones(3)) is None\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*Captured devlint call*", "fails on the simulated GPU:", f"somelib.py:{SCALE}: DEV102 *"]
    )


UNTOUCHED = """\
import random
seen = []

@pytest.fixture(scope="module")
def model():
    model = Good()
    model.register_forward_hook(lambda module, args, result: seen.append(result.device.type))
    return model

@pytest.mark.parametrize("n", range(4))
def test_state(model, n, capsys, recwarn):
    torch.manual_seed(n); random.seed(n)
    x = torch.ones(3)
    y = model(x); z = good(x)
    with torch.no_grad():
        w = somelib.scale(z)
    print([*y.tolist(), *z.tolist(), *w.tolist(), random.random(), *torch.rand(2).tolist(), model.calls])
    open("numbers.txt", "a").write(capsys.readouterr().out)
    assert (z is x, len(seen), model.calls, len(recwarn)) == (True, n + 1, n + 1, 0)
    assert set(seen) == {"cpu"}

def test_graph():
    x = torch.ones(3, requires_grad=True)
    (scale(x) * halve(x)).sum().backward()
    assert x.grad.tolist() == [2.0] * 3

def test_error():
    with pytest.raises(TypeError):
        scale(x=torch.ones(3), wrong=1)

def test_signature_and_pickle():
    import inspect, pickle
    assert str(inspect.signature(scale)) == "(x, factor=2.0)"
    assert inspect.getfullargspec(scale).args == ["x", "factor"]
    assert pickle.loads(pickle.dumps(scale)) is scale is somelib.scale

def test_script():
    assert torch.jit.script(somelib.waits_script)(torch.ones(3)).tolist() == [6.0] * 3

def test_fails():
    assert scale(torch.ones(3)).sum() == 7
"""
SCRIPTED = (
    "\ndef twice(x: torch.Tensor) -> torch.Tensor:\n    return x * 2\n"
    "\ndef waits_script(x: torch.Tensor) -> torch.Tensor:\n    return twice(x) * 3\n"
)


def test_suite_passes_as_without_a_shadow_and_with_the_same_random_numbers(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(somelib=LIBRARY + SCRIPTED)
    pytester.makepyfile(test_it="import pytest, torch\nimport somelib\nfrom somelib import *\n" + UNTOUCHED)
    numbers = pytester.path / "numbers.txt"
    outcomes, found = [], []
    for options in ((), ("--devlint-device=sim",), ("--devlint-device=sim", "--devlint-shadow=somelib")):
        sys.modules.pop("somelib", None)
        result = pytester.runpytest_inprocess(*options)
        outcomes.append(result.parseoutcomes() | {"warnings": 0})
        found.append(numbers.read_text())
        numbers.unlink()
    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert found[0] == found[1] == found[2]
    result.stdout.fnmatch_lines(["fails on the simulated GPU, on 2 lines:"])


def test_everything_is_as_before_afterwards(pytester: pytest.Pytester) -> None:
    def patched() -> tuple[Any, ...]:
        owners = (torch.nn.Module, torch.Tensor, torch.nn.Parameter, torch.optim.Optimizer)
        return torch.jit.script, list(sys.meta_path), *(dict(vars(owner)) for owner in owners)

    before = patched()
    shadowed(pytester, "def test_it():\n    scale(torch.ones(3))\n")
    assert patched() == before


def test_calls_during_construction_are_no_calls(pytester: pytest.Pytester) -> None:
    result = shadowed(pytester, "def test_it():\n    Box(torch.ones(3))\n")
    result.stdout.fnmatch_lines(["repeated on the simulated GPU: 0 calls*"])


TWICE = {
    "a function": "def test_it():\n    two(torch.ones(3))\n    two(torch.ones(3))\n",
    "in another test": "def test_one():\n    two(torch.ones(3))\ndef test_it():\n    two(torch.ones(2, 3))\n",
    "a module": "class Both(nn.Module):\n    def forward(self, x):\n        return scale(shifted(x))\n"
    "Both.__module__ = 'somelib'\ndef test_it():\n    for _ in range(3):\n        Both()(torch.ones(3))\n",
}


@pytest.mark.parametrize("name", TWICE)
def test_what_a_failing_call_would_do_next_is_repeated_by_itself(pytester: pytest.Pytester, name: str) -> None:
    result = shadowed(pytester, "from torch import nn\n" + TWICE[name])
    result.stdout.fnmatch_lines(["fails on the simulated GPU, on 2 lines:", f"  somelib.py:{SCALE}: DEV102 *"])
    result.stdout.fnmatch_lines([f"  somelib.py:{SHIFTED}: DEV102 *"])


def test_calls_inside_one_that_goes_through_are_not_repeated_though_its_like_failed(
    pytester: pytest.Pytester,
) -> None:
    test = (
        "class Both(torch.nn.Module):\n    def __init__(self, part):\n        super().__init__()\n"
        "        self.part = part\n    def forward(self, x):\n        return good(self.part(x).clone())\n"
        "Both.__module__ = 'somelib'\n"
        "def test_it():\n    Both(Shift())(torch.ones(3))\n    Both(Good())(torch.ones(3))\n"
    )
    result = shadowed(pytester, test)
    result.stdout.fnmatch_lines(["repeated on the simulated GPU: 2 calls of 1 functions and modules*"])
    result.stdout.fnmatch_lines(["fails on the simulated GPU, on 1 line:"])


def test_object_that_moves_its_parts_is_not_called_half_way(pytester: pytest.Pytester) -> None:
    result = shadowed(pytester, "def test_it():\n    for _ in range(3):\n        Lazy()(torch.ones(3))\n")
    result.stdout.fnmatch_lines(["fails on the simulated GPU, on 2 lines:"])
    result.stdout.fnmatch_lines([f"  somelib.py:{SCALE}: DEV102 *"])
    result.stdout.fnmatch_lines([f"  somelib.py:{SHIFTED}: DEV102 *"])


def test_suite_inside_the_package_is_none_of_its_code(pytester: pytest.Pytester) -> None:
    pytester.mkpydir("inside")
    tests = "import torch\ndef mixed(x):\n    return x + torch.zeros(3)\n"
    tests += "def test_it():\n    from inside.code import applied\n    applied(torch.ones(3), mixed)\n"
    pytester.path.joinpath("inside", "test_inside.py").write_text(tests, encoding="utf-8")
    pytester.path.joinpath("inside", "code.py").write_text("def applied(x, f):\n    return f(x)\n", encoding="utf-8")
    result = pytester.runpytest_inprocess("--devlint-device=sim", "--devlint-shadow=inside")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["repeated on the simulated GPU: 1 calls*", "failed for other reasons: 1, *of the test*"]
    )
    result.stdout.no_fnmatch_line("*fails on the card*")


def test_making_an_object_by_a_metaclass_is_no_call(pytester: pytest.Pytester) -> None:
    result = shadowed(pytester, "def test_it():\n    Made(torch.ones(3))\n")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["repeated on the simulated GPU: 0 calls*"])


def test_what_a_test_has_patched_sees_no_repeat(pytester: pytest.Pytester) -> None:
    test = (
        "def test_it(monkeypatch):\n    calls, plain = [], torch.full\n"
        "    monkeypatch.setattr(torch, 'full', lambda *args: calls.append(1) or plain(*args))\n"
        "    scale(torch.ones(3))\n    assert len(calls) == 1\n"
        "def test_after(monkeypatch):\n    scale(torch.ones(3))\n"
    )
    result = shadowed(pytester, test)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["repeated on the simulated GPU: 1 calls*", "not repeated: 1, in a test that has patched something (1)"]
    )


MOCKED = {
    "in a block": "def test_it():\n    with mock.patch('torch.full', wraps=torch.full) as full:\n"
    "        scale(torch.ones(3))\n    full.assert_called_once()\n",
    "by a decorator": "@mock.patch.object(torch, 'full', wraps=torch.full)\ndef test_it(full):\n"
    "    scale(torch.ones(3))\n    full.assert_called_once()\n",
    "from its start to its stop": "import unittest\nclass TestIt(unittest.TestCase):\n    def setUp(self):\n"
    "        patch = mock.patch('torch.full', wraps=torch.full)\n        self.full = patch.start()\n"
    "        self.addCleanup(patch.stop)\n    def test_it(self):\n        scale(torch.ones(3))\n"
    "        self.full.assert_called_once()\n",
}


@pytest.mark.parametrize("name", MOCKED)
def test_what_a_mock_stands_for_sees_no_repeat(pytester: pytest.Pytester, name: str) -> None:
    result = shadowed(pytester, "from unittest import mock\n" + MOCKED[name])
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["not repeated: 1, in a test that has patched something (1)"])


def test_calls_after_a_mock_is_gone_are_repeated(pytester: pytest.Pytester) -> None:
    test = (
        "from unittest import mock\ndef test_it():\n    with pytest.raises(AttributeError):\n"
        "        with mock.patch('torch.no_such_name'):\n            pass\n"
        "    with mock.patch('torch.full', wraps=torch.full):\n        pass\n    scale(torch.ones(3))\n"
    )
    result = shadowed(pytester, test)
    result.stdout.fnmatch_lines(["repeated on the simulated GPU: 1 calls*", "fails on the simulated GPU, on 1 line:"])


def test_test_cases_of_the_package_are_no_calls(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        cases="import unittest, torch\nclass Case(unittest.TestCase):\n    def check(self, x):\n        return x + 1\n"
    )
    test = "import cases\nclass TestIt(cases.Case):\n    def test_it(self):\n        self.check(torch.ones(3))\n"
    result = shadowed(pytester, test, package="=cases")
    result.stdout.fnmatch_lines(["repeated on the simulated GPU: 0 calls of 0 functions and modules, 0 similar *"])


def test_calls_inside_a_call_are_not_repeated_alone(pytester: pytest.Pytester) -> None:
    nested = "\nclass Outer(nn.Module):\n    def forward(self, x):\n        return scale(x.cpu()).to(x.device)\n"
    pytester.makepyfile(somelib=LIBRARY + nested)
    result = shadowed(pytester, "def test_it():\n    Outer()(torch.ones(3))\n")
    result.stdout.fnmatch_lines(["repeated on the simulated GPU: 1 calls of 1 functions and modules*"])
    result.stdout.no_fnmatch_line("*fails on the simulated GPU*")


@pytest.mark.parametrize(
    ("test", "named"),
    [
        (
            "from unittest.mock import MagicMock\ndef test_it():\n    m = Good()\n"
            "    m.helper = MagicMock(return_value=torch.ones(3))\n    m(torch.ones(3))\n",
            "not moved: Good, whose helper is a MagicMock",
        ),
        (
            "class Wrapper:\n    def __init__(self, x):\n        self.x = x\n"
            "    def __getattr__(self, name):\n        return getattr(vars(self)['x'], name)\n"
            "def test_it():\n    good(torch.ones(3), out=Wrapper(torch.ones(3)))\n",
            "not copied: Wrapper, whose copy is a Tensor",
        ),
        ("def test_it():\n    object.__new__(Box)\n    b = Box(torch.ones(3))\n    b.area()\n", "not moved: Box"),
        (
            "def test_it():\n    b = [[[[[[Box(torch.ones(3))]]]]]]\n    good(torch.ones(3), out=Turn({'b': b}))\n",
            "not moved: Turn",
        ),
        (
            "def test_it():\n    good((n for n in [torch.ones(3)]) and (x := torch.ones(3)), out=(i for i in []))\n",
            "not copied: generator",
        ),
        (
            "def test_it():\n    pushed(shifting(torch.ones(3)), torch.ones(3))\n",
            "not moved: the function shift, which uses tensors around it",
        ),
        (
            "def test_it():\n    x = torch.ones(3)\n    pushed(change=twice(shifting(x)), x=x)\n",
            "not moved: the function both, which uses tensors around it",
        ),
        (
            "def test_it():\n    good(torch.ones(3), out={'step': scaling(Good())})\n",
            "not moved: the function <lambda>, which uses tensors around it",
        ),
        (
            "def test_it():\n    y = torch.ones(3)\n    good(torch.ones(3), out=lambda: y)\n",
            "not moved: the function <lambda>",
        ),
    ],
)
def test_what_cannot_be_copied_or_moved_is_named(pytester: pytest.Pytester, test: str, named: str) -> None:
    result = shadowed(pytester, test)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([f"not repeated: 1, {named}*(1)"])
    result.stdout.no_fnmatch_line("*fails on the simulated GPU*")


def test_error_of_a_repeat_that_is_not_about_devices_is_named(pytester: pytest.Pytester) -> None:
    once = (
        "\nstate = []\ndef once(x):\n    state.append(1)\n    assert len(state) == 1, 'a second time'\n    return x\n"
    )
    pytester.makepyfile(somelib=LIBRARY + once)
    result = shadowed(pytester, "def test_it():\n    once(torch.ones(3))\n")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["failed for other reasons: 1, somelib.once: AssertionError: a second time*"])


def test_equal_calls_are_repeated_three_times_at_most(pytester: pytest.Pytester) -> None:
    result = shadowed(pytester, "def test_it():\n    for _ in range(9):\n        good(torch.ones(3))\n")
    (line,) = [line for line in result.outlines if line.startswith("repeated on the simulated GPU")]
    repeated, _, left_out = (int(word) for word in line.split() if word.isdigit())
    assert 1 <= repeated <= 3
    assert repeated + left_out == 9


def test_calls_of_other_kinds_are_repeated(pytester: pytest.Pytester) -> None:
    test = "def test_it():\n    good(torch.ones(3))\n    good(torch.ones(2, 3))\n    good(torch.ones(3, dtype=torch.float64))\n"
    result = shadowed(pytester, test)
    result.stdout.fnmatch_lines(["repeated on the simulated GPU: 3 calls of 1 functions and modules, 0 similar*"])


def test_modules_of_every_library_without_a_package(pytester: pytest.Pytester) -> None:
    result = shadowed(pytester, "def test_it():\n    Shift()(torch.ones(3))\n    scale(torch.ones(3))\n", package="")
    result.stdout.fnmatch_lines(["repeated on the simulated GPU: 1 calls*", f"  somelib.py:{OFFSET}: DEV106 *"])
    result.stdout.no_fnmatch_line("*somelib.py:26*")


def test_call_that_is_on_the_card_by_itself_is_not_repeated(pytester: pytest.Pytester) -> None:
    result = shadowed(
        pytester, "def test_card():\n    good(torch.ones(3).cuda())\ndef test_host():\n    good(torch.ones(3))\n"
    )
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["chose the GPU themselves: 1 of 2 tests; 1 of 2 calls*", "repeated on the simulated GPU: 1 calls*"]
    )


def test_share_of_tests_is_said_without_a_shadow_too(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import torch\ndef test_card():\n    torch.ones(2, device='cuda')\ndef test_host():\n    torch.nn.Linear(2, 2)\n"
    )
    result = pytester.runpytest_inprocess("--devlint-device=sim")
    result.stdout.fnmatch_lines(["chose the GPU themselves: 1 of 2 tests"])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--devlint-shadow=somelib"], "*--devlint-shadow needs a simulated GPU*"),
        (["--devlint-device=sim", "--devlint-shadow=tests/test_it.py"], "*no name of a package*"),
    ],
)
def test_wrong_usage(pytester: pytest.Pytester, options: list[str], says: str) -> None:
    result = pytester.runpytest_inprocess(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([says])


def test_workers_of_xdist(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    pytester.makepyfile(
        test_it="import torch\nfrom somelib import *\ndef test_one():\n    scale(torch.ones(3))\n"
        "def test_two():\n    scale(torch.ones(3))\n    Shift()(torch.ones(3))\n"
    )
    result = pytester.runpytest_subprocess(
        "--devlint-device=sim", "--devlint-shadow=somelib", "--devlint-shadow-strict", "-n1"
    )
    result.assert_outcomes(passed=2)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["chose the GPU themselves: 0 of 2 tests; 0 of 3 calls*", "fails on the simulated GPU, on 2 lines:"]
    )

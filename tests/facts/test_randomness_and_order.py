"""Generators, random states, sequence lengths, and the order of optimizers and moves."""

from __future__ import annotations

from typing import TypeVar

import pytest

from devlint.facts.analysis import analyse
from devlint.facts.events import Event, GeneratorMeet, Lengths, Meet, OptimizerOrder
from devlint.settings import Settings
from devlint.source import decode, parse

E = TypeVar("E", bound=Event)


def events(kind: type[E], body: str, head: str = "def f(x: torch.Tensor, device: torch.device):") -> list[E]:
    """The events of a function with this body; `x` is a tensor of the caller, `device` a device."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    source = decode(f"import torch\nfrom torch import nn\n{head}\n{lines}\n".encode(), "a.py")
    return [event for event in analyse(parse(source), source, Settings()).events if isinstance(event, kind)]


@pytest.mark.parametrize(
    ("draw", "generator", "refused"),
    [
        ("torch.randn(3, device=x.device, generator=g)", "torch.Generator()", True),
        ("torch.randn(3, device=x.device, generator=g)", "torch.Generator(device=x.device)", False),
        ("torch.randn(3, device='cuda', generator=g)", "torch.Generator(device='cpu')", True),
        ("torch.randn(3, device='cuda:1', generator=g)", "torch.Generator(device='cuda:0')", False),
        ("torch.randn(3, generator=g)", "torch.Generator(device)", True),
        ("torch.randn(3, generator=g)", "torch.Generator().manual_seed(1)", False),
        ("torch.randn_like(x, generator=g)", "torch.Generator().manual_seed(1)", True),
        ("x.uniform_(generator=g)", "torch.manual_seed(1)", True),
        ("torch.bernoulli(x, generator=g)", "torch.Generator()", True),
        ("torch.bernoulli(x.cpu(), generator=g)", "torch.Generator()", False),
        ("nn.init.normal_(x, generator=g)", "torch.Generator()", True),
        ("torch.randn(3, device=unknown(), generator=g)", "torch.Generator()", False),
        ("torch.randn(3, device=device, generator=g)", "unknown()", False),
    ],
)
def test_draw_wants_a_generator_of_its_device_type(draw: str, generator: str, refused: bool) -> None:
    assert bool(events(GeneratorMeet, f"g = {generator}\n{draw}")) is refused


def test_generator_that_also_draws_on_the_cpu_is_remembered() -> None:
    source = decode(b"import torch\ng = torch.Generator()\ntorch.rand(3, generator=g)\n", "a.py")
    facts = analyse(parse(source), source, Settings())
    assert [facts.source(span) for span in facts.cpu_generators] == ["torch.Generator()"]


@pytest.mark.parametrize(
    ("state", "how"),
    [
        ("torch.load('a', map_location=device)['rng']", ["state"]),
        ("torch.load('a', map_location='cpu')['rng']", []),
        ("c['rng']", ["state"]),
        ("c['rng'].cpu()", []),
        ("c.get('rng')", ["state"]),
        ("torch.get_rng_state()", []),
        ("torch.get_rng_state().to(device)", ["state"]),
        ("torch.cuda.get_rng_state()", ["foreign"]),
    ],
)
def test_random_state_is_on_the_cpu_and_of_its_own_generator(state: str, how: list[str]) -> None:
    found = events(GeneratorMeet, f"c = torch.load('a', map_location=device)\ntorch.set_rng_state({state})")
    assert [event.how for event in found] == how


@pytest.mark.parametrize(
    ("between", "moved"),
    [
        ("pass", True),
        ("m = nn.DataParallel(m)", True),
        ("m = other()", False),
        ("m.cpu()", False),
        ("m.train()", True),
        ("for m in others():\n    break", False),
    ],
)
def test_move_after_the_optimizer(between: str, moved: bool) -> None:
    body = f"m = build()\no = torch.optim.Adam(m.parameters())\n{between}\nm.to(device)"
    assert bool(events(OptimizerOrder, body)) is moved


def test_only_the_first_move_counts() -> None:
    body = "m = build()\no = torch.optim.Adam(m.parameters())\nm.to(device)\nm.to(device)"
    assert len(events(OptimizerOrder, body)) == 1


def test_move_of_a_whole_after_the_optimizer_of_a_part() -> None:
    body = "m = build()\no = torch.optim.Adam(m.head.parameters())\nm.to(device)"
    assert [event.model.text for event in events(OptimizerOrder, body)] == ["m"]


@pytest.mark.parametrize(
    ("loading", "loaded"), [("o.load_state_dict(s)", True), ("p.load_state_dict(s)", False), ("pass", False)]
)
def test_state_that_was_loaded(loading: str, loaded: bool) -> None:
    body = f"m = build()\np = q()\no = torch.optim.Adam(m.parameters())\n{loading}\nm.to(device)"
    assert [event.loaded for event in events(OptimizerOrder, body)] == [loaded]


@pytest.mark.parametrize(
    ("between", "may_swap"),
    [("pass", True), ("device = pick()", False), ("m = nn.DataParallel(m)", False)],
)
def test_move_may_stand_first_if_its_names_stay(between: str, may_swap: bool) -> None:
    body = f"m = build()\no = torch.optim.Adam(m.parameters())\n{between}\nm.to(device)"
    assert [event.may_swap for event in events(OptimizerOrder, body)] == [may_swap]


@pytest.mark.parametrize(
    ("lengths", "level"),
    [
        ("x.sum(1)", ["assume"]),
        ("x.sum(1).to('cuda')", ["certain"]),
        ("x.sum(1).cpu()", []),
        ("[3, 2]", []),
        ("torch.tensor([3, 2])", []),
    ],
)
def test_lengths_are_read_on_the_host(lengths: str, level: list[str]) -> None:
    body = f"nn.utils.rnn.pack_padded_sequence(x, {lengths})"
    assert [event.level for event in events(Lengths, body)] == level


def test_buffer_taken_before_the_move_stays_behind() -> None:
    body = "b = nn.BatchNorm1d(3)\nmean = b.running_mean\nb.cuda()\ny = torch.ones(3, device='cuda')\ny - mean"
    assert [event.off.text for event in events(Meet, body)] == ["mean"]

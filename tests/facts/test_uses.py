"""Calls of modules that meet nothing of them, and calls that raise before any device matters."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from devlint.model import FileResult

Checked = Callable[..., FileResult]


def codes(result: FileResult) -> list[str]:
    return [each.code for each in result.diagnostics]


@pytest.mark.parametrize(
    ("attribute", "expected"),
    {
        "a dict": ('{"threshold": threshold}', []),
        "an object of a plain class": ("Clusters()", []),
        "a number": ("threshold", []),
        "a layer": ("nn.Linear(2, 2)", ["DEV103"]),
        "a parameter": ("nn.Parameter(torch.ones(2))", ["DEV103"]),
        "what it is given": ("backend", ["DEV103"]),
        "what nobody can read": ("elsewhere.make(threshold)", ["DEV103"]),
    }.values(),
)
def test_a_module_of_another_file_without_tensors_is_nowhere(
    checked: Checked, attribute: str, expected: list[str]
) -> None:
    backend = f"""
        import torch, elsewhere
        from torch import nn
        class Clusters:
            def __call__(self, x):
                return x
        class Backend(nn.Module):
            def __init__(self, backend, threshold=0.5):
                super().__init__()
                self.first = {attribute}
            def forward(self, x):
                return x
    """
    tools = """
        import torch
        from backend import Backend
        def run(points: torch.Tensor, backend, device):
            model = Backend(backend).to(device)
            return model(points.cpu())
    """
    assert codes(checked({"tools.py": tools, "backend.py": backend})) == expected


def test_a_module_with_a_base_that_is_not_known_may_hold_tensors(checked: Checked) -> None:
    backend = """
        from elsewhere import Base
        from torch import nn
        class Backend(Base, nn.Module):
            def forward(self, x):
                return x
    """
    tools = """
        import torch
        from backend import Backend
        def run(points: torch.Tensor, device):
            model = Backend().to(device)
            return model(points.cpu())
    """
    assert codes(checked({"tools.py": tools, "backend.py": backend})) == ["DEV103"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    {
        "too few": ("size", []),
        "by position": ("size, x.device", ["DEV102"]),
        "by name": ("size, device=x.device", ["DEV102"]),
        "perhaps more": ("size, **options", []),
    }.values(),
)
def test_nothing_is_made_by_a_call_that_lacks_an_argument(
    checked: Checked, arguments: str, expected: list[str]
) -> None:
    helper = """
        import torch
        def order(size, device, dtype=torch.long):
            return torch.arange(size, device=device, dtype=dtype)
    """
    tools = f"""
        import torch
        from helper import order
        def run(x: torch.Tensor, size, options):
            codes = order({arguments})
            return codes + torch.zeros(size)
    """
    assert codes(checked({"tools.py": tools, "helper.py": helper})) == expected


def test_a_decorator_may_give_what_a_call_lacks(checked: Checked) -> None:
    tools = """
        import functools, torch
        def with_device(function):
            return functools.partial(function, device="cuda")
        @with_device
        def order(size, device):
            return torch.arange(size, device=device)
        def run():
            return order(3)
        def scaled(x: torch.Tensor):
            return x * torch.ones(3)
    """
    assert codes(checked({"tools.py": tools})) == ["DEV102"]


AGENT = """
    import torch
    from torch import nn
    class Agent(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 3)
        def forward(self, state):
            {made}
            return self.fc(x)
    class Critic(nn.Module):
        def forward(self, x):
            return x
"""


@pytest.mark.parametrize(
    ("made", "asked", "expected"),
    {
        "made of data": ("x = torch.from_numpy(state).float()", "Agent", []),
        "of another model": ("x = torch.from_numpy(state).float()", "Critic", ["DEV102"]),
        "made and moved": ("x = torch.from_numpy(state).to(self.fc.weight.device)", "Agent", ["DEV102"]),
        "made of an array alone": (
            "x = state\n            if isinstance(x, list): x = torch.tensor(x)",
            "Agent",
            ["DEV102"],
        ),
        "given": ("x = state", "Agent", ["DEV102"]),
    }.values(),
)
def test_what_a_model_gives_that_makes_its_own_input_is_on_the_host(
    checked: Checked, made: str, asked: str, expected: list[str]
) -> None:
    """Were the model elsewhere, its own `forward` would fail."""
    tools = f"""
        import torch
        from agent import Agent, Critic
        class Method:
            def configure(self, of_states):
                self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
                self.model = Critic()
                if of_states:
                    self.model = Agent()
            def fit(self, env):
                assert isinstance(self.model, {asked})
                return torch.log(self.model(env.reset())) * torch.ones(3)
    """
    assert codes(checked({"tools.py": tools, "agent.py": AGENT.format(made=made)})) == expected

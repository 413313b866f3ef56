"""What keeps a fix from being safe: a module that may have no parameters, an array that is written to."""

from __future__ import annotations

import pytest

from devlint.engine import Linter
from devlint.fix.rounds import fix_source
from devlint.model import Safety
from devlint.settings import Settings
from devlint.source import decode
from devlint_rules import RULES


def safeties(text: str, code: str) -> list[Safety]:
    """How safe the fixes of one rule are in a text."""
    linter = Linter(tuple(rule() for rule in RULES), Settings(select=(code,)))
    found = linter.check(decode(text.encode(), "work.py")).diagnostics
    return [each.fix.safety for each in found if each.fix is not None]


ARRAY = "import numpy as np\nimport torch\nimport driver\n\n\ndef read(x: torch.Tensor, source, kept):\n    {}\n    return x\n"


@pytest.mark.parametrize(
    "call",
    [
        "driver.copy_to_host(x.numpy(), source)",
        "source.read_into(x.numpy())",
        "np.copyto(x.numpy(), source)",
        "np.add(source, source, out=x.numpy())",
        "fill(x.numpy())",
    ],
)
def test_an_array_that_a_call_may_write_to_is_not_copied_safely(call: str) -> None:
    assert safeties(ARRAY.format(call), "DEV109") == [Safety.UNSAFE]


@pytest.mark.parametrize(
    "call",
    ["kept.append(x.numpy())", "np.mean(x.numpy())", "print(x.numpy())", "y = x.numpy()", "np.save('a', x.numpy())"],
)
def test_an_array_that_is_only_read_is_copied_safely(call: str) -> None:
    assert safeties(ARRAY.format(call), "DEV109") == [Safety.SAFE]


MODULE = (
    "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.layer = nn.Linear(2, 2)\n\n    def forward(self, x):\n        return self.layer(x)\n\n\n"
    "def measure({}):\n    {}x = torch.ones(3, 2)\n    return channel(x)\n"
)


@pytest.mark.parametrize(
    ("given", "made"),
    [("channel: nn.Module", ""), ("", "channel = nn.Identity()\n    "), ("", "channel = nn.Softmax(-1)\n    ")],
)
def test_a_module_that_may_have_no_parameters_is_no_safe_witness(given: str, made: str) -> None:
    text = MODULE.format(given, made)
    assert Safety.SAFE not in safeties(text, "DEV102") or "parameters()" not in text


@pytest.mark.parametrize("given", ["channel: nn.Module", "channel: nn.Sequential"])
def test_the_device_of_a_given_module_is_not_read_safely(given: str) -> None:
    text = MODULE.format(given, "")
    assert safeties(text, "DEV102") in ([], [Safety.UNSAFE])


@pytest.mark.parametrize("made", ["Net()", "nn.Linear(2, 2)", "nn.Sequential(nn.Linear(2, 2), nn.ReLU())"])
def test_the_device_of_a_module_with_parameters_may_be_read(made: str) -> None:
    text = MODULE.format("", f"channel = {made}.to(torch.device('cuda'))\n    ")
    assert Safety.UNSAFE not in safeties(text, "DEV102")


def written(text: str) -> str:
    linter = Linter(tuple(rule() for rule in RULES), Settings(select=("DEV102",)))
    return fix_source(linter, decode(text.encode(), "work.py"), (Safety.SAFE, Safety.UNSAFE)).text


@pytest.mark.parametrize("size", ["flat.shape[0]", "flat.size(0)", "flat.size()[0]"])
@pytest.mark.parametrize("met", ["torch.outer(flat, flat)", "(flat[None] * flat[:, None])"])
def test_the_witness_is_the_operand_that_the_new_tensor_meets(size: str, met: str) -> None:
    text = (
        "import torch\nfrom torch import nn\n\n\nclass Step(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.linear = nn.Linear(2, 2)\n\n    def go(self, loss: torch.Tensor):\n"
        "        grads = torch.autograd.grad(loss, list(self.linear.parameters()))\n"
        "        flat = torch.cat([g.flatten() for g in grads])\n"
        f"        fisher = torch.eye({size})\n        return fisher + {met}\n"
    )
    once = written(text)
    assert "device=flat.device" in once
    assert "loss.device" not in once


@pytest.mark.parametrize("name", ["reset_max_memory_allocated", "reset_max_memory_cached"])
def test_a_new_name_that_needs_a_guard_is_not_called_safe(name: str) -> None:
    text = "import torch\n\n{}torch.cuda.{}()\n"
    assert safeties(text.format("", name), "DEV306") == [Safety.UNSAFE]
    assert safeties(text.format("if torch.cuda.is_available():\n    ", name), "DEV306") == [Safety.SAFE]

"""Fixes are written for the lowest torch of the project: `torch.accelerator` only where it exists."""

from __future__ import annotations

import pytest

from devlint.engine import Linter
from devlint.fix.rounds import fix_source
from devlint.model import Safety
from devlint.settings import Settings
from devlint.source import decode
from devlint_rules import RULES


def fixed(code: str, torch_version: tuple[int, int]) -> str:
    linter = Linter(tuple(rule() for rule in RULES), Settings(torch_version=torch_version))
    return fix_source(linter, decode(code.encode(), "example.py"), {Safety.SAFE, Safety.UNSAFE}).text


@pytest.mark.parametrize(
    ("literal", "choice"),
    [
        ('"cuda"', '"cuda" if torch.cuda.is_available() else "cpu"'),
        ('torch.device("cuda:0")', 'torch.device("cuda:0" if torch.cuda.is_available() else "cpu")'),
        ('"mps"', '"mps" if torch.backends.mps.is_available() else "cpu"'),
        ('"xpu"', '"xpu" if torch.xpu.is_available() else "cpu"'),
    ],
)
def test_old_torch_keeps_the_type_of_accelerator(literal: str, choice: str) -> None:
    code = "import torch\n\ndevice = {}\nx = torch.zeros(3, device=device)\n"
    assert fixed(code.format(literal), (2, 5)) == code.format(choice)


@pytest.mark.parametrize(
    ("literal", "choice"),
    [
        ('torch.device("cuda")', 'torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")'),
        ('"mps"', 'torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"'),
    ],
)
def test_new_torch_takes_any_accelerator(literal: str, choice: str) -> None:
    code = "import torch\n\ndevice = {}\nx = torch.zeros(3, device=device)\n"
    assert fixed(code.format(literal), (2, 7)) == code.format(choice)


@pytest.mark.parametrize(("version", "module"), [((2, 5), "torch.cuda"), ((2, 6), "torch.accelerator")])
def test_the_wait_before_a_clock_exists_in_that_torch(version: tuple[int, int], module: str) -> None:
    code = """\
import time

import torch


def square(x: torch.Tensor):
    start = time.time()
    y = x @ x
    return y, time.time() - start
"""
    wait = f"    if {module}.is_available():\n        {module}.synchronize()\n"
    assert fixed(code, version) == code.replace("    return", wait + "    return")


def test_a_device_is_introduced_for_old_torch() -> None:
    code = "import torch\n\n\ndef f(x: torch.Tensor):\n    return x.cuda()\n"
    assert fixed(code, (2, 5)) == (
        'import torch\n\ndevice = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n'
        "\n\ndef f(x: torch.Tensor):\n    return x.to(device)\n"
    )


def test_a_missing_import_is_added_for_the_wait() -> None:
    code = """\
import time

from torch import Tensor


def square(x: Tensor):
    start = time.time()
    y = x @ x
    return y, time.time() - start
"""
    result = fixed(code, (2, 7))
    assert "\nimport torch\n" in result
    assert "    if torch.accelerator.is_available():\n        torch.accelerator.synchronize()\n    return" in result


@pytest.mark.parametrize(
    ("extension", "test", "expected"),
    [
        ("intel_extension_for_pytorch", "is_intel_xpu()", []),
        ("intel_extension_for_pytorch", "not is_intel_xpu()", ["DEV304"]),
        ("intel_extension_for_pytorch", "is_wanted()", ["DEV304"]),
        ("another_package", "is_intel_xpu()", ["DEV304"]),
    ],
)
def test_an_extension_brings_its_module_before_torch_has_it(extension: str, test: str, expected: list[str]) -> None:
    code = f"""\
import torch

xpu_available = False
try:
    import {extension} as ipex

    if torch.xpu.is_available():
        xpu_available = True
except Exception:
    pass


def is_intel_xpu():
    return xpu_available


def is_wanted():
    return True


def free():
    if {test}:
        torch.xpu.empty_cache()
"""
    linter = Linter(
        tuple(rule() for rule in RULES), Settings(select=("DEV304",), torch_version=(2, 1), torch_stated=True)
    )
    assert [each.code for each in linter.check(decode(code.encode(), "example.py")).diagnostics] == expected

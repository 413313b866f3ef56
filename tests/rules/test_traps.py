"""What torch does on a machine without an accelerator decides what a fix may write; each test is one such fact.

The lowest torch is 2.7 unless a test says otherwise. A call is under a guard when the line above it is the `if`.
"""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from devlint import knowledge
from devlint.engine import Linter
from devlint.fix.rounds import fix_source
from devlint.model import FileResult, Safety
from devlint.settings import Settings
from devlint.source import decode
from devlint_rules import RULES

#: Functions of `torch.accelerator` that answer on every machine.
ANSWERS_EVERYWHERE = {"is_available", "device_count", "current_accelerator"}


def linter(torch_version: tuple[int, int], *opt_in: str) -> Linter:
    codes = tuple(rule.meta.code for rule in RULES if not rule.meta.opt_in or rule.meta.code in opt_in)
    return Linter(tuple(rule() for rule in RULES), Settings(select=codes, torch_version=torch_version))


def found(code: str, *opt_in: str, torch_version: tuple[int, int] = (2, 7)) -> FileResult:
    return linter(torch_version, *opt_in).check(decode(code.encode(), "example.py"))


def fixed(code: str, *opt_in: str, torch_version: tuple[int, int] = (2, 7), safe_only: bool = False) -> str:
    allow = {Safety.SAFE} if safe_only else {Safety.SAFE, Safety.UNSAFE}
    return fix_source(linter(torch_version, *opt_in), decode(code.encode(), "example.py"), allow).text


def accelerator_calls(code: str) -> list[tuple[str, str]]:
    """Each function of `torch.accelerator` that the code calls, with the line above the call."""
    lines = code.splitlines()
    return [
        (name, lines[row - 1])
        for row, line in enumerate(lines)
        for name in re.findall(r"torch\.accelerator\.(\w+)\(", line)
    ]


CUDA_CALLS = (
    "synchronize()", "empty_cache()", "reset_peak_memory_stats()", "set_device(0)", "current_stream()",
    "current_device()", "memory_allocated()", "max_memory_allocated()", "memory_reserved()", "memory_stats()",
    "mem_get_info()", "reset_accumulated_memory_stats()", "device_count()",
)  # fmt: skip


@pytest.mark.parametrize("call", CUDA_CALLS)
@pytest.mark.parametrize("form", ["    torch.cuda.{}\n", "    return torch.cuda.{}\n"], ids=["statement", "value"])
@pytest.mark.parametrize("version", [(2, 5), (2, 7), (2, 10), (2, 15)], ids=str)
def test_t1_no_fix_adds_a_call_that_raises_without_an_accelerator(
    call: str, form: str, version: tuple[int, int]
) -> None:
    code = "import torch\n\n\ndef f():\n    print(1)\n" + form.format(call)
    for name, above in accelerator_calls(fixed(code, "DEV206", torch_version=version)):
        assert name in ANSWERS_EVERYWHERE or above.strip() == "if torch.accelerator.is_available():"


@pytest.mark.parametrize("call", CUDA_CALLS)
@pytest.mark.parametrize("version", knowledge.VERSIONS, ids=str)
def test_t1_no_fix_names_what_the_lowest_torch_lacks(call: str, version: tuple[int, int]) -> None:
    code = f"import torch\n\n\ndef f():\n    if torch.cuda.is_available():\n        torch.cuda.{call}\n"
    result = fixed(code, "DEV206", torch_version=version)
    names = {name.rstrip("(") for name in re.findall(r"\btorch\.[\w.]+", result)}
    assert all(knowledge.exists(name, version) for name in names)


@pytest.mark.parametrize("name", sorted(ANSWERS_EVERYWHERE))
def test_t2_what_answers_everywhere_needs_no_guard(name: str) -> None:
    assert not found(f"import torch\n\nx = torch.accelerator.{name}()\n").diagnostics


def test_t2_the_rest_needs_one() -> None:
    result = found("import torch\n\ntorch.accelerator.synchronize()\n")
    assert [d.code for d in result.diagnostics] == ["DEV212"]


def test_t3_the_machine_is_asked_not_the_build() -> None:
    code = 'import torch\n\ndevice = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n'
    assert "current_accelerator(check_available=True)" in fixed(code, "DEV211")
    assert fixed(code, "DEV211", torch_version=(2, 6)) == code, "2.6 has no `check_available`"


def test_t4_a_choice_of_strings_stays_a_string() -> None:
    code = 'import torch\n\nname = "cuda" if torch.cuda.is_available() else "cpu"\nprint(name == "cuda")\n'
    assert 'name = (torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")).type' in fixed(
        code, "DEV211"
    )


@pytest.mark.parametrize("other", ['"cuda"', 'torch.device("cuda")'])
def test_t4_a_comparison_that_never_holds_compares_the_type(other: str) -> None:
    code = f"import torch\n\n\ndef f(x: torch.Tensor):\n    return x.device == {other}\n"
    assert 'return x.device.type == "cuda"' in fixed(code, safe_only=True)


def test_t5_autocast_gets_a_string() -> None:
    code = "import torch\n\n\ndef f(x: torch.Tensor):\n    with torch.autocast(x.device):\n        return x + 1\n"
    assert "torch.autocast(x.device.type)" in fixed(code, safe_only=True)


def test_t5_a_new_autocast_gets_a_string() -> None:
    code = """\
import torch


def f(x, device: torch.device):
    with torch.cuda.amp.autocast():
        return x + 1
"""
    assert "torch.autocast(device.type)" in fixed(code)


def test_t6_a_scaler_that_follows_the_device_stays_off_elsewhere() -> None:
    code = "import torch\n\n\ndef f(device: torch.device, use):\n    return torch.cuda.amp.GradScaler(enabled=use)\n"
    assert 'torch.amp.GradScaler(device.type, enabled=use and device.type == "cuda")' in fixed(code)


def test_t6_the_safe_fix_of_a_scaler_keeps_cuda() -> None:
    code = "import torch\n\nscaler = torch.cuda.amp.GradScaler(1024.0)\n"
    assert fixed(code, safe_only=True) == 'import torch\n\nscaler = torch.amp.GradScaler("cuda", init_scale=1024.0)\n'


@pytest.mark.parametrize(("version", "kept"), [((2, 2), True), ((2, 3), False)], ids=str)
def test_t6_a_scaler_is_not_renamed_before_torch_has_the_name(version: tuple[int, int], kept: bool) -> None:
    code = "import torch\n\nscaler = torch.cuda.amp.GradScaler()\n"
    assert (fixed(code, torch_version=version) == code) is kept


def test_t7_and_t9_a_fix_of_a_type_uses_the_result() -> None:
    code = "import torch\n\n\ndef f(x: torch.Tensor):\n    return x.type(torch.cuda.LongTensor)\n"
    assert "return x.to(device, torch.int64)" in fixed(code)


def test_t8_an_old_constructor_becomes_a_factory_on_the_device() -> None:
    code = "import torch\n\n\ndef f():\n    return torch.cuda.FloatTensor([1.0])\n"
    assert "torch.tensor([1.0], dtype=torch.float32, device=device)" in fixed(code)


def test_t10_a_default_device_is_never_a_safe_fix() -> None:
    code = 'import torch\n\ntorch.set_default_tensor_type("torch.cuda.FloatTensor")\n'
    assert fixed(code, safe_only=True) == code


def test_t10_the_default_type_of_the_cpu_sets_no_device() -> None:
    code = "import torch\n\ntorch.set_default_tensor_type(torch.DoubleTensor)\n"
    assert fixed(code) == "import torch\n\ntorch.set_default_dtype(torch.float64)\n"


def test_t11_meta_is_no_accelerator() -> None:
    code = 'import torch\n\n\ndef f(x: torch.Tensor):\n    return x.device == torch.device("meta")\n'
    assert not found(code).diagnostics


def test_t12_no_fix_copies_to_the_host_without_waiting() -> None:
    code = "import torch\n\n\ndef f(x: torch.Tensor):\n    x = x.cuda(True)\n    return x.cpu()\n"
    result = fixed(code)
    assert "non_blocking=True" in result
    assert result.endswith("return x.cpu()\n")


@pytest.mark.parametrize(
    "call", ["manual_seed(1)", "get_device_name()", "memory_summary()", "get_device_properties(0)", "default_stream()"]
)
def test_t13_what_the_accelerator_module_lacks_is_not_renamed(call: str) -> None:
    code = f"import torch\n\n\ndef f():\n    if torch.cuda.is_available():\n        return torch.cuda.{call}\n"
    assert f"return torch.cuda.{call}" in fixed(code, "DEV206", torch_version=(2, 13))


def test_t13_a_capability_is_not_renamed() -> None:
    code = "import torch\n\nif torch.cuda.is_available():\n    print(torch.cuda.get_device_capability())\n"
    assert fixed(code, "DEV206", torch_version=(2, 15)) == code


@pytest.mark.parametrize("call", CUDA_CALLS)
def test_t14_no_fix_takes_the_module_of_the_cpu(call: str) -> None:
    code = f"import torch\n\n\ndef f():\n    print(1)\n    torch.cuda.{call}\n"
    assert "get_device_module" not in fixed(code, "DEV206", torch_version=(2, 15))


def test_fixed_calls_run_on_this_machine() -> None:
    """Every call of the list, fixed for the newest torch that runs the tests, runs where there is no accelerator."""
    torch = pytest.importorskip("torch")
    major, minor = (int(part) for part in torch.__version__.split(".")[:2])
    body = "".join(f"    torch.cuda.{call}\n" for call in CUDA_CALLS)
    result = fixed(f"import torch\n\n\ndef f():\n{body}\n\nf()\n", "DEV206", torch_version=(major, minor))
    done = subprocess.run([sys.executable, "-c", result], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{result}\n{done.stderr}"

"""Names of simulated devices, and that asking for them costs no torch."""

from __future__ import annotations

import subprocess
import sys

import pytest

from devlint.runtime.simulator import CannotSimulate, DeviceSpec

pytestmark = pytest.mark.runtime


@pytest.mark.parametrize(
    ("text", "kind", "count"),
    [("sim", "cuda", 1), ("sim:2", "cuda", 2), ("sim:xpu", "xpu", 1), ("sim:xpu:2", "xpu", 2), ("sim:mps", "mps", 1)],
)
def test_parse(text: str, kind: str, count: int) -> None:
    assert DeviceSpec.parse(text) == DeviceSpec(kind, count)


@pytest.mark.parametrize(
    "text", ["", "cuda", "sim:", "sim:cuda:", "sim:2:cuda", "sim:cuda:2:3", "sim:cuda:x", "sim:-1"]
)
def test_parse_refuses_other_forms(text: str) -> None:
    with pytest.raises(ValueError, match=r"sim|kind"):
        DeviceSpec.parse(text)


@pytest.mark.parametrize(("text", "reason"), [("sim:tpu", "tpu"), ("sim:0", "number"), ("sim:mps:2", "one device")])
def test_parse_refuses_what_cannot_be(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        DeviceSpec.parse(text)


def test_text_of_a_spec_reads_back() -> None:
    spec = DeviceSpec("xpu", 3)
    assert DeviceSpec.parse(str(spec)) == spec


def test_description_says_what_is_simulated() -> None:
    assert DeviceSpec("cuda", 2).description == "simulated cuda x2, CPU kernels"
    assert DeviceSpec("mps", 1).description == "simulated mps, CPU kernels"


def test_cannot_simulate_names_the_thing() -> None:
    error = CannotSimulate("torch.cuda.CUDAGraph", "a graph replays kernels")
    assert error.what == "torch.cuda.CUDAGraph"
    assert str(error) == "torch.cuda.CUDAGraph cannot be simulated: a graph replays kernels"


_IMPORTS = (
    "import sys; sys.modules['torch'] = None; "
    "import devlint.runtime, devlint.runtime.recorder, devlint.runtime.simulator, devlint.runtime.observe"
)


def test_importing_the_packages_does_not_import_torch() -> None:
    assert subprocess.run([sys.executable, "-c", _IMPORTS], check=False, timeout=60).returncode == 0


def test_blocking_torch_would_be_noticed() -> None:
    program = _IMPORTS + "; import devlint.runtime.simulator.session"
    run = subprocess.run([sys.executable, "-c", program], check=False, timeout=60, capture_output=True, text=True)
    assert run.returncode != 0
    assert "torch" in run.stderr

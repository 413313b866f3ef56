"""Every patch is undone, whatever happens inside, and simulations can follow one another."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("torch._dynamo")  # loads modules whose attributes are compared

import torch

from devlint.runtime.recorder import Recorder
from devlint.runtime.simulator import DeviceSpec, simulate
from devlint.runtime.simulator.patches.base import Patch, PatchSet, always
from devlint.runtime.simulator.patches.table import patch_table
from devlint.runtime.simulator.simulation import Simulation

pytestmark = pytest.mark.runtime
SPECS = [DeviceSpec("cuda", 2), DeviceSpec("xpu", 2), DeviceSpec("mps", 1)]
ABSENT = object()


def state(patch: Patch) -> Any:
    """What the target itself holds; properties and functions compare by identity."""
    holder = getattr(patch.target, "__dict__", {})
    if patch.attribute in holder:
        return holder[patch.attribute]
    return getattr(patch.target, patch.attribute, ABSENT)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_every_patch_is_undone(spec: DeviceSpec) -> None:
    table = list(patch_table(Simulation(spec, Recorder())))
    before = [state(patch) for patch in table]

    with simulate(spec):
        during = [state(patch) for patch in table]
    after = [state(patch) for patch in table]

    assert len(table) > 200
    assert sum(one is not other for one, other in zip(before, during, strict=True)) > 150
    # Bound methods and function defaults are made anew by each look, so equal is enough there.
    left = [
        patch.name for patch, one, other in zip(table, before, after, strict=True) if one is not other and one != other
    ]
    assert left == []


def test_patches_are_undone_after_an_error() -> None:
    before = torch.Tensor.to
    with pytest.raises(KeyError), simulate():
        raise KeyError("in the program")

    assert torch.Tensor.to is before
    assert not torch.cuda.is_available()


def test_an_error_while_patching_undoes_what_was_done() -> None:
    class Target:
        one = 1
        two = 2

    def broken(original: Any) -> Any:
        raise ValueError("no replacement")

    with pytest.raises(ValueError, match="no replacement"):
        PatchSet().apply([Patch(Target, "one", always(10)), Patch(Target, "two", broken)])

    assert (Target.one, Target.two) == (1, 2)


def test_undoing_twice_is_harmless() -> None:
    class Target:
        one = 1

    patches = PatchSet()
    patches.apply([Patch(Target, "one", always(10)), Patch(Target, "added", always(3), create=True)])
    assert (Target.one, Target.added) == (10, 3)  # type: ignore[attr-defined]
    patches.undo()
    patches.undo()

    assert Target.one == 1
    assert not hasattr(Target, "added")


def test_inherited_attribute_is_inherited_again() -> None:
    class Base:
        def name(self) -> str:
            return "base"

    class Derived(Base):
        pass

    patches = PatchSet()
    patches.apply([Patch(Derived, "name", always(lambda self: "patched"))])
    assert Derived().name() == "patched"
    patches.undo()

    assert "name" not in vars(Derived)
    assert Derived().name() == "base"


def test_missing_attribute_is_skipped_unless_created() -> None:
    class Target:
        pass

    patches = PatchSet()
    patches.apply([Patch(Target, "unknown", always(1))])

    assert not hasattr(Target, "unknown")


def test_one_simulation_after_another() -> None:
    for spec in (DeviceSpec("cuda", 1), DeviceSpec("xpu", 2), DeviceSpec("cuda", 3)):
        with simulate(spec) as simulation:
            assert getattr(torch, spec.kind).device_count() == spec.count
            assert str(torch.ones(2, device=spec.kind).device) == f"{spec.kind}:0"
            assert simulation.description == spec.description


def test_tensor_outlives_its_simulation_and_is_known_to_the_next() -> None:
    with simulate():
        kept = torch.ones(3, device="cuda")
    assert kept.device.type == "cpu"
    assert (kept + torch.ones(3)).tolist() == [2.0, 2.0, 2.0]
    with simulate():
        assert kept.device.type == "cuda"


def test_two_at_once_are_refused() -> None:
    with simulate(), pytest.raises(RuntimeError, match="already simulated"), simulate():
        pass
    assert not torch.cuda.is_available()


def test_names_taken_before_are_exchanged_and_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "taken_before.py").write_text("from torch import zeros\n")
    (tmp_path / "taken_during.py").write_text("from torch import zeros\n")
    original = torch.zeros
    before = importlib.import_module("taken_before")

    with simulate(recorder=Recorder([tmp_path])):
        assert before.zeros(2, device="cuda").device.type == "cuda"
        during = importlib.import_module("taken_during")
        assert during.zeros is torch.zeros is not original

    assert before.zeros is during.zeros is torch.zeros is original


def test_compiler_is_imported_without_patches() -> None:
    program = (
        "import sys, torch\n"
        "from devlint.runtime.simulator import simulate\n"
        "with simulate():\n"
        "    assert 'torch._dynamo' not in sys.modules\n"
        "    model = torch.nn.Linear(2, 2).cuda()\n"
        "    optimizer = torch.optim.Adam(model.parameters())\n"
        "    model(torch.ones(2, 2, device='cuda')).sum().backward()\n"
        "    optimizer.step()\n"
        "    assert 'torch._dynamo' in sys.modules\n"
        "    print(model.weight.device)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (run.stdout, run.returncode) == ("cuda:0\n", 0), run.stderr


def test_nothing_is_said_to_be_there_outside() -> None:
    with simulate():
        assert torch.cuda.is_available()
        assert not hasattr(torch, "accelerator") or torch.accelerator.is_available()
    assert not torch.cuda.is_available()
    assert torch.version.cuda is None or "cu" in torch.__version__

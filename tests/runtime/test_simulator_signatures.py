"""Every patched function takes what the original takes, by the names of its documentation."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from devlint.runtime.recorder import Recorder
from devlint.runtime.simulator import DeviceSpec, simulate
from devlint.runtime.simulator.patches.base import Patch
from devlint.runtime.simulator.patches.table import patch_table
from devlint.runtime.simulator.simulation import Simulation

pytestmark = pytest.mark.runtime
SPEC = DeviceSpec("cuda", 2)

# Called by position only, by C++ or by torch's own Python.
INTERNAL = frozenset(
    [
        "__exit__",
        "_bootstrap_inner",
        "_exchange_device",
        "_group_tensors_by_device_and_dtype",
        "_maybe_exchange_device",
        "_parse_to",
        "reduce_storage",
        "reduce_tensor",
    ]
)
# Documented as `src`, taken as `other`: torch's own list of names is of the documentation.
OTHER_IN_FACT = frozenset(["copy_"])


def replacements() -> Iterator[tuple[Patch, Any, Any]]:
    """Each patch with the function it replaces and the one it puts in place."""
    table = list(patch_table(Simulation(SPEC, Recorder())))
    originals = [getattr(patch.target, patch.attribute, None) for patch in table]
    with simulate(SPEC):
        during = [getattr(patch.target, patch.attribute, None) for patch in table]
    for patch, original, replacement in zip(table, originals, during, strict=True):
        if callable(original) and callable(replacement) and original is not replacement:
            yield patch, original, replacement


def names_taken(original: Any) -> list[str]:
    """The documented names of a function's arguments: by its own signature, or as torch lists those of C++."""
    listed = torch.overrides.get_testing_overrides().get(original)
    try:
        signature = inspect.signature(listed if listed is not None else original)
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [name for name, parameter in signature.parameters.items() if parameter.kind in kinds]


def refused(replacement: Any, names: list[str]) -> list[str]:
    """The names that a Python function has no place for."""
    try:
        parameters = inspect.signature(replacement, follow_wrapped=False).parameters
    except (TypeError, ValueError):
        return []
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return []
    return [name for name in names if name not in parameters]


def test_patched_functions_take_the_documented_names() -> None:
    seen, wrong = 0, []
    for patch, original, replacement in replacements():
        if patch.attribute in INTERNAL | OTHER_IN_FACT or isinstance(replacement, type):
            continue
        names = [name for name in names_taken(original) if name not in ("self", "input")]
        seen += bool(names)
        wrong += [f"{patch.name}({name}=)" for name in refused(replacement, names)]
    assert seen > 80
    assert wrong == []


def x() -> torch.Tensor:
    return torch.arange(1.0, 7.0, device="cuda").view(2, 3)


def indices() -> torch.Tensor:
    return torch.zeros(2, 1, dtype=torch.long, device="cuda")


CALLS: dict[str, Callable[[], Any]] = {
    "take_along_dim": lambda: torch.take_along_dim(input=x(), indices=indices(), dim=1),
    "inner": lambda: torch.inner(input=x(), other=x()),
    "tensor_split": lambda: torch.tensor_split(input=x(), sections=2)[0],
    "gradient": lambda: torch.gradient(input=x())[0],
    "quantile": lambda: torch.quantile(input=x(), q=0.5),
    "full_like": lambda: torch.full_like(input=x(), fill_value=2.0),
    "rand_like": lambda: torch.rand_like(input=x()),
    "randint_like": lambda: torch.randint_like(input=x(), low=0, high=3),
    "normal": lambda: torch.normal(mean=x(), std=x()),
    "normal of numbers": lambda: torch.normal(mean=0.0, std=1.0, size=(2,), device="cuda"),
    "full": lambda: torch.full(size=(2,), fill_value=1.0, device="cuda"),
    "arange": lambda: torch.arange(start=0, end=4, step=1, device="cuda"),
    "eye": lambda: torch.eye(n=3, m=2, device="cuda"),
    "randint": lambda: torch.randint(low=0, high=3, size=(2,), device="cuda"),
    "tensor": lambda: torch.tensor(data=[1.0], device="cuda"),
    "as_tensor": lambda: torch.as_tensor(data=[1.0], device="cuda"),
    "asarray": lambda: torch.asarray(obj=[1.0], device="cuda"),
    "hann_window": lambda: torch.hann_window(window_length=4, device="cuda"),
    "scalar_tensor": lambda: torch.scalar_tensor(s=1.0, device="cuda"),
    "sparse_coo_tensor": lambda: torch.sparse_coo_tensor(
        indices=[[0], [0]], values=[1.0], size=(1, 1), device="cuda", check_invariants=False
    ),
    "Tensor.take_along_dim": lambda: x().take_along_dim(indices=indices(), dim=1),
    "Tensor.new_full": lambda: x().new_full(size=(2,), fill_value=1.0),
    "Tensor.new_tensor": lambda: x().new_tensor(data=[1.0]),
    "Tensor.cuda": lambda: torch.ones(2).cuda(device=0),
    "Tensor.to": lambda: torch.ones(2).to(device="cuda", dtype=torch.float64),
    "Tensor.copy_": lambda: x().copy_(other=torch.ones(2, 3)),
    "Tensor.type_as": lambda: torch.ones(2).type_as(other=x()),
    "stft": lambda: torch.stft(
        input=torch.ones(64, device="cuda"), n_fft=16, return_complex=True, window=torch.ones(16, device="cuda")
    ),
    "ctc_loss": lambda: torch.ctc_loss(
        log_probs=torch.zeros(5, 1, 3, device="cuda").log_softmax(2),
        targets=torch.ones(1, 2, dtype=torch.long, device="cuda"),
        input_lengths=torch.tensor([5]),
        target_lengths=torch.tensor([2]),
    ),
    "multi_dot": lambda: torch.linalg.multi_dot(tensors=[x(), x().T, x()]),
    "attention": lambda: torch.nn.functional.scaled_dot_product_attention(
        query=x()[None], key=x()[None], value=x()[None]
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_call_by_keywords(name: str) -> None:
    with simulate(SPEC):
        assert CALLS[name]().device.type == "cuda"


def test_device_of_a_tensor_by_keyword() -> None:
    with simulate(SPEC):
        assert torch.get_device(input=torch.ones(2, device="cuda:1")) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: torch.asarray([1.0], data=[2.0]),
        lambda: torch.ones(2).copy_(src=torch.ones(2)),
        lambda: torch.ones(2).to(other=torch.ones(2)),
        functools.partial(torch.quantile, q=0.5),
    ],
)
def test_what_torch_refuses_is_refused(wrong: Callable[[], Any]) -> None:
    with pytest.raises(TypeError):
        wrong()
    with simulate(SPEC), pytest.raises(TypeError):
        wrong()

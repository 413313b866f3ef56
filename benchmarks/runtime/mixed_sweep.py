"""No silent pass: operators with several tensors, one of which stays on the host.

For every entry of torch's OpInfo database with at least two tensors of one or more dimensions, each of
the first three is moved to a simulated card in turn.  Reported are the calls that raise a device error,
those that raise something else, and those that pass; the last are listed, since each must be an operator
that really takes mixed devices.  Needs the package ``expecttest``.

    python benchmarks/runtime/mixed_sweep.py
"""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_unflatten

from devlint.runtime.simulator import DeviceSpec, simulate

DEVICE_WORDS = (
    "same device",
    "device type",
    "indices should be",
    "Input type",
    "expected device",
    "to be on cpu",
    "get_device()",
    "DeviceType",
    "tensor to have",
    "CPU Scalar support",
    "device but found",
    "from the 'CUDA' backend",
)
# These use only the sizes of the other tensor, work on each tensor alone, or copy it.
MAY_PASS = frozenset(
    [
        *("view_as", "reshape_as", "expand_as", "resize_as_", "atleast_1d", "atleast_2d", "atleast_3d"),
        *("broadcast_tensors", "slice_scatter", "select_scatter", "diagonal_scatter", "as_strided_scatter"),
        "nn.functional.ctc_loss",
    ]
)

# Operators that take some of their tensors from anywhere, with the positions of those: split points are wanted on the
# host, so the input alone may be on the card; indices for writing are moved to where self is.
MAY_BE_ELSEWHERE = {"tensor_split": [0], "index_put": [1], "_unsafe_masked_index_put_accumulate": [2]}


def main() -> int:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    started = time.perf_counter()
    outcomes: Counter[str] = Counter()
    passed: defaultdict[str, list[int]] = defaultdict(list)
    odd: list[str] = []
    entries = 0
    for op in op_db:
        name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        found = False
        for position, outcome in _run_entry(op):
            found = True
            kind = outcome.partition(":")[0]
            outcomes[kind] += 1
            if kind == "passes":
                passed[name].append(position)
            elif kind == "other error":
                odd.append(f"{name}[{position}] {outcome}")
        entries += int(found)
    print(f"torch {torch.__version__}, {entries} entries, {dict(outcomes)}, {time.perf_counter() - started:.0f} s")
    silent = {
        name: positions
        for name, positions in passed.items()
        if name not in MAY_PASS and MAY_BE_ELSEWHERE.get(name) != positions
    }
    print(f"pass rightly: {sorted(name for name in passed if name in MAY_PASS)}")
    print(f"pass silently: {dict(silent)}")
    for line in odd:
        print("   ", line)
    return 1 if silent else 0


def _run_entry(op: Any) -> Iterator[tuple[int, str]]:
    for leaves, spec, candidates in sample_to_mix(op):
        for position, index in enumerate(candidates[:3]):
            yield position, _with_one_moved(op, leaves, spec, index)


def sample_to_mix(op: Any) -> Iterator[tuple[list[Any], Any, list[int]]]:
    """The leaves of an operator's first sample with two tensors that can be moved, if there is one, and where those are."""
    dtype = torch.float32 if torch.float32 in op.dtypes else next(iter(sorted(op.dtypes, key=str)), None)
    if dtype is None:
        return
    try:
        samples = list(islice(op.sample_inputs("cpu", dtype, requires_grad=False), 9))
    except Exception:
        return
    for sample in samples:
        leaves, spec = tree_flatten((sample.input, sample.args, sample.kwargs))
        candidates = [index for index, leaf in enumerate(leaves) if _movable(leaf)]
        if len(candidates) >= 2 and runs(op, leaves, spec):
            yield leaves, spec, candidates
            return


def _movable(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.dim() > 0 and leaf.numel() > 0 and leaf.layout == torch.strided


def runs(op: Any, leaves: list[Any], spec: Any) -> bool:
    first, args, kwargs = tree_unflatten(leaves, spec)
    try:
        op(first, *args, **kwargs)
    except Exception:
        return False
    return True


def _with_one_moved(op: Any, leaves: list[Any], spec: Any, index: int) -> str:
    with simulate(DeviceSpec()):
        moved = list(leaves)
        moved[index] = leaves[index].to("cuda")
        first, args, kwargs = tree_unflatten(moved, spec)
        try:
            as_called_now(op)(first, *args, **kwargs)
        except Exception as error:
            message = str(error)
            device_error = isinstance(error, RuntimeError) and any(word in message for word in DEVICE_WORDS)
            return "raises" if device_error else f"other error: {type(error).__name__}: {message[:120]}"
    return "passes"


def as_called_now(op: Any) -> Any:
    """The function that a program gets by name; the database took its own before the simulation began."""
    for name, function in _AT_IMPORT.items():
        if function is op.op:
            return getattr(torch, name)
    return op


_AT_IMPORT = {name: getattr(torch, name) for name in dir(torch) if callable(getattr(torch, name))}


if __name__ == "__main__":
    sys.exit(main())

"""Every operator of torch's OpInfo database with tensors of two devices: whether it is refused, there and simulated.

Three ways for each of its first three tensors: it alone is on the card (`card`), it alone is on the host (`host`), or
a 0-dim tensor on the host stands for it and all others are on the card (`number`). Needs the package ``expecttest``.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from benchmarks.golden import rows

WAYS = ("card", "host", "number")


def run(first: int, out: TextIO, rehearse: bool) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    sweep = _load(rows.ROOT / "benchmarks" / "runtime" / "mixed_sweep.py", "mixed_sweep")
    taken = {name: getattr(torch, name) for name in dir(torch) if callable(getattr(torch, name))}

    def outcome(op: Any, leaves: list[Any], spec: Any, moved: set[int]) -> tuple[str, str]:
        """Whether the call is refused for its devices, and the first line of what it raised."""
        placed = [leaf.to("cuda") if at in moved else leaf for at, leaf in enumerate(leaves)]
        start, args, kwargs = tree_unflatten(placed, spec)
        # The database took torch's functions at import; a simulation has replaced them.
        name = next((name for name, function in taken.items() if function is op.op), None)
        try:
            (getattr(torch, name) if name is not None else op)(start, *args, **kwargs)
            torch.cuda.synchronize()
        except Exception as error:
            text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            refused = isinstance(error, RuntimeError) and any(word in str(error) for word in sweep.DEVICE_WORDS)
            return ("refused" if refused else "other error"), text
        return "runs", ""

    for index, op in enumerate(sweep.op_db):
        if index < first:
            continue
        for position, way, leaves, spec, moved in _samples(sweep, op):
            name = f"{op.name}{'.' + op.variant_test_name if op.variant_test_name else ''}[{position}, {way}]"
            with rows.card(True):
                simulated, simulated_text = outcome(op, leaves, spec, moved)
            with rows.card(rehearse):
                real, text = outcome(op, leaves, spec, moved)
            rows.put(out, index, name=name, real=real, simulated=simulated, text=text, simulated_text=simulated_text)
            if rows.is_lost(text):
                os._exit(1)


def _load(path: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _samples(sweep: Any, op: Any) -> Iterator[tuple[int, str, list[Any], Any, set[int]]]:
    """Calls of an operator, from its first sample with two tensors that can be moved, and the leaves to be moved."""
    dtype = torch.float32 if torch.float32 in op.dtypes else next(iter(sorted(op.dtypes, key=str)), None)
    if dtype is None:
        return
    try:
        samples = list(islice(op.sample_inputs("cpu", dtype, requires_grad=False), 9))
    except Exception:
        return
    for sample in samples:
        leaves, spec = tree_flatten((sample.input, sample.args, sample.kwargs))
        candidates = [index for index, leaf in enumerate(leaves) if sweep._movable(leaf)]
        if len(candidates) < 2 or not sweep._runs(op, leaves, spec):
            continue
        tensors = {index for index, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)}
        for position, leaf in enumerate(candidates[:3]):
            yield position, "card", leaves, spec, {leaf}
            yield position, "host", leaves, spec, tensors - {leaf}
            number = [*leaves[:leaf], leaves[leaf].flatten()[0].clone(), *leaves[leaf + 1 :]]
            if sweep._runs(op, number, spec):
                yield position, "number", number, spec, tensors - {leaf}
        return

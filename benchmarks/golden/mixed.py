"""Every operator of torch's OpInfo database with tensors of two devices: whether it is refused, there and simulated.

Three ways for each of its first three tensors: it alone is on the card (`card`), it alone is on the host (`host`), or
a 0-dim tensor on the host stands for it and all others are on the card (`number`). Needs the package ``expecttest``.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from typing import Any, TextIO

import torch
from torch.utils._pytree import tree_unflatten

from benchmarks.golden import rows
from benchmarks.runtime import mixed_sweep


def run(first: int, out: TextIO, rehearse: bool) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)

    def outcome(op: Any, leaves: list[Any], spec: Any, moved: set[int]) -> tuple[str, str]:
        """Whether the call is refused for its devices, and the first line of what it raised."""
        placed = [leaf.to("cuda") if at in moved else leaf for at, leaf in enumerate(leaves)]
        start, args, kwargs = tree_unflatten(placed, spec)
        try:
            mixed_sweep.as_called_now(op)(start, *args, **kwargs)
            torch.cuda.synchronize()
        except Exception as error:
            text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            refused = isinstance(error, RuntimeError) and any(word in str(error) for word in mixed_sweep.DEVICE_WORDS)
            return ("refused" if refused else "other error"), text
        return "runs", ""

    for index, op in enumerate(mixed_sweep.op_db):
        if index < first:
            continue
        for position, way, leaves, spec, moved in _samples(op):
            name = f"{op.name}{'.' + op.variant_test_name if op.variant_test_name else ''}[{position}, {way}]"
            with rows.card(True):
                simulated, simulated_text = outcome(op, leaves, spec, moved)
            with rows.card(rehearse):
                real, text = outcome(op, leaves, spec, moved)
            rows.put(out, index, name=name, real=real, simulated=simulated, text=text, simulated_text=simulated_text)
            if rows.is_lost(text):
                os._exit(1)


def _samples(op: Any) -> Iterator[tuple[int, str, list[Any], Any, set[int]]]:
    """Calls of an operator, from its first sample with two tensors that can be moved, and the leaves to be moved."""
    for leaves, spec, candidates in mixed_sweep.sample_to_mix(op):
        tensors = {index for index, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)}
        for position, leaf in enumerate(candidates[:3]):
            yield position, "card", leaves, spec, {leaf}
            yield position, "host", leaves, spec, tensors - {leaf}
            number = [*leaves[:leaf], leaves[leaf].flatten()[0].clone(), *leaves[leaf + 1 :]]
            if mixed_sweep.runs(op, number, spec):
                yield position, "number", number, spec, tensors - {leaf}

"""Whether the host waits in a call, and where its result is: torch on the card against devlint's knowledge of torch.

Every operator of torch's OpInfo database whose name the knowledge has, with up to three samples on the card. A call
waits when `torch.cuda.set_sync_debug_mode` warns of it on its second run. Needs the package ``expecttest``.
"""

from __future__ import annotations

import os
import warnings
from itertools import islice
from typing import Any, TextIO

import torch
from torch.utils._pytree import tree_leaves

from benchmarks.golden import rows
from devlint.knowledge import query
from devlint.knowledge.records import Function

SAMPLES = 3


def run(first: int, out: TextIO, rehearse: bool) -> None:
    from torch.testing._internal.common_methods_invocations import op_db

    for index, op in enumerate(op_db):
        known = _known(op.name)
        if index < first or known is None:
            continue
        dtype = torch.float32 if torch.float32 in op.dtypes else next(iter(sorted(op.dtypes, key=str)), None)
        if dtype is None:
            continue
        waited: list[bool] = []
        places: set[str] = set()
        error = ""
        with rows.card(rehearse, 1):
            try:
                for sample in islice(op.sample_inputs("cuda", dtype, requires_grad=False), SAMPLES):
                    op(sample.input, *sample.args, **sample.kwargs)
                    torch.cuda.synchronize()
                    waits, result = _call(op, sample, rehearse)
                    waited.append(waits)
                    places |= {leaf.device.type for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)}
            except Exception as raised:
                error = (str(raised).strip().splitlines() or [type(raised).__name__])[0]
        name = f"{op.name}{'.' + op.variant_test_name if op.variant_test_name else ''}"
        fields: dict[str, Any] = {"name": name, "places": sorted(places), "waited": waited, "error": error}
        fields |= {"sync": known.sync, "device_from": known.device_from}
        if waited:
            fields["agrees"] = _waits_as_known(known, waited) and _is_where_known(known, places)
            fields |= {"real": f"waits {waited}, results on {sorted(places)}", "simulated": f"waits {known.sync}"}
        rows.put(out, index, **fields)
        if rows.is_lost(error):
            os._exit(1)


def _known(name: str) -> Function | None:
    """What the knowledge says of an operator, which the database names without `torch.`."""
    found = query.function(f"torch.{name}")
    return found if found is not None else query.function(f"torch.Tensor.{name}")


def _call(op: Any, sample: Any, rehearse: bool) -> tuple[bool, Any]:
    """Call an operator; whether the host waited, and the result."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        if not rehearse:
            torch.cuda.set_sync_debug_mode("warn")
        try:
            result = op(sample.input, *sample.args, **sample.kwargs)
        finally:
            if not rehearse:
                torch.cuda.set_sync_debug_mode("default")
    return any("synchronizing CUDA operation" in str(each.message) for each in seen), result


def _waits_as_known(known: Function, waited: list[bool]) -> bool:
    """Whether calls wait as they are said to. Nothing waits for an empty tensor, and some samples are empty."""
    return {"never": not any(waited), "always": any(waited)}.get(known.sync, True)


def _is_where_known(known: Function, places: set[str]) -> bool:
    """Whether results are on the card, where all tensors given are, or in host memory if the knowledge says that."""
    if known.device_from == "none" or not places:
        return True
    return places == ({"cpu"} if known.device_from == "cpu" else {"cuda"})

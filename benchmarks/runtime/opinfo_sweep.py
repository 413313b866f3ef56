"""No false alarm: PyTorch's own operator samples, all on the simulated card, forward and backward.

For every entry of torch's OpInfo database, the samples are run on plain CPU and on a simulated card.
Reported are device errors and reads of memory that nobody wrote (there must be none of either), results
or gradients that are not on the card, and values that differ from the CPU's.  Needs the package ``expecttest``.

    python benchmarks/runtime/opinfo_sweep.py [--samples 20] [--dtype float32] [--inference] [--only NAME ...]
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import traceback
import warnings
from collections import Counter
from itertools import islice
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map

from devlint.runtime.recorder import Recorder
from devlint.runtime.simulator import DeviceSpec, simulate

DEVICE_WORDS = ("same device", "device type", "indices should be", "Input type", "expected device", "CPU scalars")


def main() -> int:
    options = _arguments()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    outcomes: Counter[str] = Counter()
    samples = 0
    differences: list[str] = []
    alarms: list[str] = []
    started = time.perf_counter()
    for op in op_db:
        name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        if options.only and op.name not in options.only and name not in options.only:
            continue
        dtype = _choose_dtype(op, getattr(torch, options.dtype))
        if dtype is None:
            outcomes["no such dtype"] += 1
            continue
        with_gradient = op.supports_autograd and dtype.is_floating_point and not options.inference
        outcome, seen = _run_entry(op, dtype, with_gradient, options)
        samples += seen
        kind = outcome.partition(":")[0]
        outcomes[kind] += 1
        if kind not in ("same", "no sample"):
            differences.append(f"{name}: {outcome}")
        if kind in ("device error", "unwritten memory read"):
            alarms.append(name)
    print(
        f"torch {torch.__version__}, {sum(outcomes.values())} entries, {samples} samples, "
        f"{time.perf_counter() - started:.0f} s"
    )
    for kind, count in outcomes.most_common():
        print(f"  {kind}: {count}")
    for line in differences:
        print("   ", line)
    print(f"false device errors and reads of unwritten memory: {len(alarms)}")
    return 1 if alarms else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=20, help="most samples per entry")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--inference", action="store_true", help="forward only, under inference_mode")
    parser.add_argument("--only", nargs="*", default=[])
    return parser.parse_args()


def _choose_dtype(op: Any, wanted: torch.dtype) -> torch.dtype | None:
    if wanted in op.dtypes:
        return wanted
    if wanted is not torch.float32:
        return None
    return next(iter(sorted(op.dtypes, key=str)), None)


def _run_entry(op: Any, dtype: torch.dtype, with_gradient: bool, options: argparse.Namespace) -> tuple[str, int]:
    try:
        samples = list(islice(op.sample_inputs("cpu", dtype, requires_grad=with_gradient), options.samples))
    except Exception as error:
        return f"no sample: {type(error).__name__}", 0
    for index, sample in enumerate(samples):
        values = (sample.input, sample.args, sample.kwargs)
        try:
            expected, expected_gradients = _compute(op, values, with_gradient, options.inference)
        except Exception:
            continue  # the sample does not run on plain CPU either
        outcome = _compare(op, values, with_gradient, options.inference, expected, expected_gradients)
        if outcome is not None:
            return f"{outcome} (sample {index})", len(samples)
    return "same", len(samples)


def _compute(op: Any, values: Any, with_gradient: bool, inference: bool) -> tuple[list[Any], list[Any]]:
    torch.manual_seed(0)
    first, args, kwargs = values
    with torch.inference_mode(inference):
        outputs = _tensors(op(first, *args, **kwargs))
    gradients: list[Any] = []
    if with_gradient:
        roots = [out for out in outputs if out.requires_grad and out.layout == torch.strided]
        leaves = [leaf for leaf in _tensors(values) if leaf.requires_grad]
        if roots and leaves:
            sums = [out.abs().sum() if out.is_complex() else out.sum() for out in roots]
            gradients = list(torch.autograd.grad(sums, leaves, allow_unused=True))
    return outputs, gradients


def _compare(
    op: Any, values: Any, with_gradient: bool, inference: bool, expected: list[Any], expected_gradients: list[Any]
) -> str | None:
    recorder = Recorder()
    with simulate(DeviceSpec(), recorder):
        try:
            moved = tree_map(_to_card, values)
            outputs, gradients = _compute(op, moved, with_gradient, inference)
        except Exception as error:
            message = str(error).splitlines()[0] if str(error) else ""
            place = traceback.extract_tb(error.__traceback__)[-1]
            kind = "device error" if any(word in message for word in DEVICE_WORDS) else "other error"
            return f"{kind}: {type(error).__name__}: {message[:160]} at {place.name}:{place.lineno}"
        read = [event.what for event in recorder.events() if event.kind == "unwritten"]
        if read:
            return f"unwritten memory read: {read[0]}"
        asked = any(isinstance(leaf, (torch.Tensor, torch.device)) for leaf in tree_leaves(moved))
        if asked and any(out.device.type != "cuda" for out in outputs):
            return f"result not on the card: {[str(out.device) for out in outputs]}"
        if any(gradient is not None and gradient.device.type != "cuda" for gradient in gradients):
            return f"gradient not on the card: {[str(each.device) for each in gradients if each is not None]}"
        with _disable_current_modes():
            if not all(map(_equal, outputs, expected)):
                return "rounding differs" if all(map(_close, outputs, expected)) else "value differs"
            if not all(map(_close, gradients, expected_gradients)):
                return "gradient value differs"
    return None


def _to_card(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        moved = value.detach().to("cuda")
        return moved.requires_grad_(True) if value.requires_grad else moved
    if isinstance(value, torch.device) or (isinstance(value, str) and value == "cpu"):
        return torch.device("cuda:0")
    return value


def _tensors(values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.layout != torch.strided or other.layout != torch.strided:
        return True
    return torch.equal(_comparable(one), _comparable(other))


def _close(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    if one is None or other is None or one.layout != torch.strided:
        return True
    return torch.allclose(_comparable(one), _comparable(other))


def _comparable(tensor: torch.Tensor) -> torch.Tensor:
    """Without NaN, and in a type that can be compared."""
    values = tensor.detach()
    if values.is_floating_point() and values.element_size() < 4:
        values = values.float()
    elif values.is_complex() and values.element_size() < 8:
        values = values.to(torch.complex64)
    return torch.nan_to_num(values) if values.is_floating_point() or values.is_complex() else values


if __name__ == "__main__":
    sys.exit(main())

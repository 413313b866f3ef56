"""What statements of a program compute, as short digests: shapes, types, places and some of the numbers.

Made in the process that runs the program, without a trace on its device, and given to its report as plain data; two
runs are compared by it in `compare`. On a real card the numbers of a tensor are copied on the card and read at the end,
since a read would make the host wait. torch is handed in.

A digest is a list whose first item says what it is:

    ["n", value]                      a number, a truth value or None
    ["s", text]                       a string, cut
    ["p", text]                       a device, or a string that names one
    ["t", shape, type, place, numbers, sum, sum of magnitudes]   a tensor or an array; the last three may be None
    ["l", length, items]              a list, tuple or set, and as many of its items as are kept
    ["m", length, [key, digest] ...]  a dictionary
    ["o", type]                       anything else
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from typing import Any

FIRST = 6
"""How many values of a statement are kept from the first on; of later ones, those whose number is a power of two."""
MOST_ROWS = 6000
MOST_ITEMS = 8
MOST_DEPTH = 3
MOST_NUMBERS = 32
MOST_SUMMED = 1_000_000
"""Elements of the largest tensor of which all numbers are summed."""

_PLACE = re.compile(r"(cpu|cuda|xpu|mps|hpu|npu|mtia|hip|meta)(:\d+)?")

Row = tuple[int, Any, int, int]


class Values:
    """Looks at values and keeps digests of them.

    steps, draws: how many optimizer steps and random draws were made so far, which is noted beside each digest.
    on_host: whether all memory can be read without waiting for a card.
    """

    def __init__(self, torch: Any, on_host: bool, steps: Callable[[], int], draws: Callable[[], int]) -> None:
        self._steps = steps
        self._draws = draws
        self._rows: dict[int, list[Row]] = {}
        self._kept = 0
        self._made: dict[int, int] = {}
        self._threads: dict[int, int | None] = {}
        self._busy = threading.local()
        self._digests = _Digests(torch, on_host)

    def look(self, number: int, value: Any) -> Any:
        """Note a value and hand it on. Never raises."""
        made = self._made.get(number, 0)
        self._made[number] = made + 1
        if self._threads.setdefault(number, here := threading.get_ident()) != here:
            self._threads[number] = None
        if (made < FIRST or not made & (made - 1)) and self._kept < MOST_ROWS:
            self._note(number, made, value)
        return value

    def _note(self, number: int, made: int, value: Any) -> None:
        if getattr(self._busy, "here", False):
            return
        self._busy.here = True
        try:
            digest = self._digests.of(value)
        except Exception:  # an object that does not want to be looked at
            digest = ["o", "?"]
        finally:
            self._busy.here = False
        self._kept += 1
        self._rows.setdefault(number, []).append((made, digest, self._steps(), self._draws()))

    def rows(self) -> dict[str, Any]:
        """By number: how many values there were, and those that were kept, each with its own number.

        None are kept of what several threads computed: in which order they come is a race.
        """
        self._digests.finish()
        raced = {number for number, thread in list(self._threads.items()) if thread is None}
        return {
            str(number): [made, [] if number in raced else [list(row) for row in self._rows.get(number, ())]]
            for number, made in list(self._made.items())
        }


class _Digests:
    def __init__(self, torch: Any, on_host: bool) -> None:
        self._torch = torch
        self._base = torch._C.TensorBase
        self._on_host = on_host
        self._quiet = torch.utils._python_dispatch._disable_current_modes
        self._waiting: list[tuple[list[Any], Any]] = []

    def of(self, value: Any, depth: int = 0) -> list[Any]:
        kind = type(value)
        if value is None or kind in (bool, int, float):
            return ["n", value]
        if kind is str:
            return ["p", value] if _PLACE.fullmatch(value) else ["s", value[:200]]
        if isinstance(value, self._base):
            return self._of_tensor(value)
        if isinstance(value, self._torch.device):
            return ["p", str(value)]
        if depth < MOST_DEPTH:
            if isinstance(value, (list, tuple)):
                items: Any = list.__getitem__ if isinstance(value, list) else tuple.__getitem__
                kept = items(value, slice(MOST_ITEMS))  # past what a subclass defines
                return ["l", len(value), [self.of(item, depth + 1) for item in kept]]
            if isinstance(value, dict):
                rows = zip(dict.items(value), range(MOST_ITEMS), strict=False)
                return ["m", len(value), [[str(key)[:80], self.of(item, depth + 1)] for (key, item), _ in rows]]
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
            return self._of_array(numpy, value)
        if isinstance(value, self._torch.nn.Module) and depth < MOST_DEPTH:
            return self._of_module(value)
        if kind is complex:
            return ["l", 2, [["n", value.real], ["n", value.imag]]]
        return ["o", kind.__name__]

    def _of_module(self, module: Any) -> list[Any]:
        """A module by its first parameters and buffers, those of its parts among them."""
        rows: list[list[Any]] = []
        for prefix, part in self._torch.nn.Module.named_modules(module):
            for name, each in (*dict.items(part._parameters), *dict.items(part._buffers)):
                if len(rows) < MOST_ITEMS and each is not None:
                    rows.append([f"{prefix}.{name}".lstrip("."), self._of_tensor(each)])
            if len(rows) >= MOST_ITEMS:
                break
        return ["o", type(module).__name__, rows]

    def _of_tensor(self, tensor: Any) -> list[Any]:
        torch, base = self._torch, self._base
        with torch._C.DisableTorchFunctionSubclass():
            place = str(tensor.device)
            digest: list[Any] = [
                "t",
                list(base.size(tensor)),
                str(base.dtype.__get__(tensor)).removeprefix("torch."),
                place,
            ]
        digest += [None, None, None]
        try:
            self._numbers(tensor, digest)
        except Exception:  # no memory to read: meta, fake, sparse, inside a transform
            digest[4:] = [None, None, None]
        return digest

    def _numbers(self, tensor: Any, digest: list[Any]) -> None:
        torch, base = self._torch, self._base
        if base.numel(tensor) == 0 or base.layout.__get__(tensor) is not torch.strided:
            return
        on_card = not self._on_host and base.is_cuda.__get__(tensor) and torch.cuda.is_available()
        if on_card and torch.cuda.is_current_stream_capturing():
            return
        with self._quiet(), torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
            flat = base.reshape(base.detach(tensor), (-1,))
            kept = _sample(base, flat)
            total = None
            if base.numel(flat) <= MOST_SUMMED and not base.is_complex(flat):
                wide = base.to(flat, torch.float64) if base.device.__get__(flat).type != "mps" else base.float(flat)
                total = torch._C._VariableFunctions.stack([base.sum(wide), base.sum(base.abs(wide))])
            if not self._on_host and base.device.__get__(tensor).type != "cpu":
                self._waiting.append((digest, (base.clone(kept), total)))
            else:
                _fill(base, digest, kept, total)

    def finish(self) -> None:
        """Read what was kept on a card."""
        with self._quiet():
            for digest, (kept, total) in self._waiting:
                _fill(self._base, digest, kept, total)
        self._waiting.clear()

    def _of_array(self, numpy: Any, array: Any) -> list[Any]:
        array = numpy.asarray(array)
        digest: list[Any] = ["t", list(array.shape), str(array.dtype), "host", None, None, None]
        if array.dtype.kind in "biuf" and array.size:
            flat = array.reshape(-1)
            digest[4] = [float(each) for each in flat[:: _step(array.size)]]
            if array.size <= MOST_SUMMED:
                wide = flat.astype("float64")
                digest[5:] = [float(wide.sum()), float(numpy.abs(wide).sum())]
        return digest


def _step(count: int) -> int:
    return max(1, -(-count // MOST_NUMBERS))


def _sample(base: Any, flat: Any) -> Any:
    """Elements at equal distances."""
    count = base.numel(flat)
    step = _step(count)
    size = -(-count // step)
    stride = base.stride(flat)[0] if count > 1 else 1
    return base.as_strided(flat, (size,), (stride * step,), base.storage_offset(flat))


def _fill(base: Any, digest: list[Any], kept: Any, total: Any) -> None:
    numbers = base.tolist(kept)
    digest[4] = [float(each) if not isinstance(each, complex) else float(abs(each)) for each in numbers]
    if total is not None:
        digest[5], digest[6] = base.tolist(total)

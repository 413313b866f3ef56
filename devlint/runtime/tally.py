"""What is counted of a run on any device: warnings, graphs that outlive their backward pass, parameters without optimizer.

Counted in the process that runs the program, given to its report as plain data. torch is handed in.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

MOST_WARNINGS = 1000
MOST_WALKS = 10
"""Backward passes whose graphs are searched for parameters: later ones find the same."""

Place = Callable[[Any], "dict[str, Any]"]


class Warned:
    """Warnings that libraries give below a line of the program: those of Python code whatever the filters let through,
    those of native code if they do.

    place: file and line of the innermost frame of the program, from a frame; `file` None where there is none.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._rows: dict[tuple[str, int, str], int] = {}

    def install(self) -> None:
        """From now on, count."""
        plain, show = warnings.warn, getattr(warnings, "_showwarnmsg", None)
        busy = threading.local()

        def warn(message: Any, category: Any = None, stacklevel: int = 1, source: Any = None, **more: Any) -> None:
            self._note(message, category, sys._getframe(1))
            before, busy.here = getattr(busy, "here", False), True
            try:
                plain(message, category, stacklevel + 1, source, **more)
            finally:
                busy.here = before

        def show_message(shown: Any) -> None:
            if not getattr(busy, "here", False):  # from native code, which knows no `warnings.warn`
                self._note(shown.message, shown.category, sys._getframe(1), native=True)
            if show is not None:
                show(shown)

        warnings.warn = warn
        if show is not None:
            setattr(warnings, "_showwarnmsg", show_message)  # noqa: B010

    def _note(self, message: Any, category: Any, frame: Any, native: bool = False) -> None:
        at = self._place(frame)
        if at["file"] is None or (at["file"] == frame.f_code.co_filename and not native):  # the program's own
            return
        kind = type(message) if isinstance(message, Warning) else category or UserWarning
        lines = str(message).strip().splitlines()
        key = (at["file"], at["line"], f"{getattr(kind, '__name__', kind)}: {lines[0] if lines else ''}"[:500])
        if key in self._rows or len(self._rows) < MOST_WARNINGS:
            self._rows[key] = self._rows.get(key, 0) + 1

    def rows(self) -> list[dict[str, Any]]:
        """File, line, text and count of each."""
        return [
            {"file": file, "line": line, "text": text, "count": count}
            for (file, line, text), count in self._rows.items()
        ]


class _Mark:
    """Lives as long as the graph that it is tied to."""

    __slots__ = ("__weakref__",)


class Graphs:
    """Looks at each graph when its backward pass begins.

    kept: the most graphs of earlier passes that were alive when the next one began.
    """

    def __init__(self, torch: Any) -> None:
        self.kept = 0
        self._torch = torch
        self._alive: weakref.WeakSet[_Mark] = weakref.WeakSet()
        self._walks = 0
        self._gradients: list[tuple[int, Any]] = []
        self._with_gradient: dict[int, weakref.ref[Any]] = {}
        self._optimized: dict[int, weakref.ref[Any]] = {}

    def around(self, backward: Callable[..., Any]) -> Callable[..., Any]:
        """`torch.autograd.backward` that looks at what it is called on."""

        def looked(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            roots = tensors if isinstance(tensors, (list, tuple)) else (tensors,)
            reached = self._look([node for root in roots if (node := getattr(root, "grad_fn", None)) is not None])
            result = backward(tensors, *args, **kwargs)
            if reached is not None:
                self._note_gradients(reached)
            return result

        return looked

    def _look(self, nodes: list[Any]) -> list[Any] | None:
        """Note a graph; returns the leaves it reaches, None where it is not searched."""
        self.kept = max(self.kept, len(self._alive))
        mark = _Mark()
        for node in nodes:  # the dictionary goes when the node does
            node.metadata["devlint"] = mark
        if nodes:
            self._alive.add(mark)
        if self._walks >= MOST_WALKS:
            return None
        self._walks += 1
        return self._walk(nodes)

    def _walk(self, nodes: list[Any]) -> list[Any]:
        waiting, seen = list(nodes), set(nodes)
        leaves: list[Any] = []
        while waiting:
            node = waiting.pop()
            leaf = getattr(node, "variable", None)
            if leaf is not None:
                leaves.append(leaf)
            if isinstance(leaf, self._torch.nn.Parameter):
                self._with_gradient.setdefault(id(leaf), weakref.ref(leaf))
            for below, _ in node.next_functions:
                if below is not None and below not in seen:
                    seen.add(below)
                    waiting.append(below)
        return leaves

    def _note_gradients(self, leaves: list[Any]) -> None:
        """Keep how many leaves a backward pass reached, and the size of their gradients, without a trace on the device."""
        torch, base = self._torch, self._torch._C.TensorBase
        total = None
        with torch.utils._python_dispatch._disable_current_modes(), torch.no_grad(), contextlib.suppress(Exception):
            for leaf in leaves:
                gradient = base.grad.__get__(leaf)
                if gradient is not None and base.layout.__get__(gradient) is torch.strided:
                    size = base.sum(base.abs(base.detach(gradient)))
                    total = size if total is None else base.add(total, base.to(size, base.device.__get__(total)))
        self._gradients.append((len(leaves), total))

    def gradients(self) -> list[list[float]]:
        """For each backward pass that was searched: the leaves it reached, and the sum of their gradients' magnitudes."""
        with self._torch.utils._python_dispatch._disable_current_modes():
            item = self._torch._C.TensorBase.item
            return [[count, 0.0 if total is None else float(item(total))] for count, total in self._gradients]

    def after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """The hook that torch calls after each `step()` of any optimizer."""
        for group in optimizer.param_groups:
            for each in group["params"]:
                self._optimized.setdefault(id(each), weakref.ref(each))

    def training(self) -> list[int]:
        """How many parameters got a gradient, and how many of them are in no optimizer; zeros without any step."""
        if not self._optimized:
            return [0, 0]
        left = [number for number, each in self._with_gradient.items() if self._optimized.get(number) is not each]
        return [len(self._with_gradient), len(left)]

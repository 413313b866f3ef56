"""Devices as the code writes them: literals, variables, attributes; and which expression holds the device of the run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Literal

from devlint.facts.events import DeviceLiteral
from devlint.facts.frozen import replace
from devlint.facts.idioms import unknown_devices
from devlint.facts.interpreter.operations import Operations
from devlint.facts.text.bindings import bindings, is_visible, module_names
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import last_name
from devlint.facts.text.signatures import parameter_names
from devlint.facts.values import (
    ACCELERATORS,
    CPU,
    UNKNOWN,
    Device,
    Place,
    Symbol,
    Value,
    is_surely_accelerator,
    on,
    symbol,
)
from devlint.model import Origin

_LITERAL = re.compile(r"(cpu|cuda|xpu|mps|npu|mtia|hpu|xla|meta)(?::([0-9]{1,3}))?\Z")
OF_TENSOR = "Tensor.device"  # type name of a device that was read from a tensor
MADE = (
    "torch.device"  # of one that `torch.device(...)` makes of what is not known, or that an annotation says to be one
)
Role = Literal["argument", "assigned", "default", "fallback", "autocast", "map"]


def parse_device(text: str) -> Device:
    """The device that a string names ("cuda:1"), UNKNOWN for any other text."""
    match = _LITERAL.match(text)
    if match is None:
        return UNKNOWN
    return on(match[1], int(match[2]) if match[2] else None)


#: The names of functions that give a device, and of entries that hold one: `get_device`, `current_accelerator`, `device`.
_GIVES_DEVICE = re.compile(r"(^|_)(device|accelerator)\Z", re.IGNORECASE)
#: What says in an expression that a device is chosen there, and not asked of an argument alone.
_CHOOSES = re.compile(
    r"(?<!is_)cuda|gpu|xpu|mps|npu|accelerator|available|\bself\b|\bcls\b|environ|config|args|opts?\b"
)
#: How a device is called that a file imports: `device`, `DEVICE`, `config.torch_device`.
_NAMES_DEVICE = re.compile(r"(^|[._])device\Z", re.IGNORECASE)


def called_device(node: ast.expr) -> str | None:
    """The text of a call that gives a device, by the name of what is called or by the key: `get_device()`,
    `args.get("device")`. It is taken to give the same device again."""
    if not isinstance(node, ast.Call) or node.keywords or not all(isinstance(a, ast.Constant) for a in node.args):
        return None
    name = last_name(node.func)
    if name == "device" and isinstance(node.func, ast.Attribute):
        return None  # an attribute that is called by mistake, for the most part
    if name == "get" and node.args:
        name = str(node.args[0].value) if isinstance(node.args[0], ast.Constant) else ""
    return ast.unparse(node) if _GIVES_DEVICE.search(name) is not None else None


class Devices(Operations):
    """Adds what a device argument means, and the events about device literals."""

    def resolve(self, device: Device) -> Device:
        """Give an index-free `cuda` the current card where the code fixes it."""
        if self.state.card is not None and len(device) == 1:
            (place,) = device
            if isinstance(place, Place) and place.type == "cuda" and place.card is None:
                return on("cuda", self.state.card)
        return device

    def device_of_argument(self, node: ast.expr, value: Value) -> Value:
        """The device that a `device=` argument, or the first argument of `.to`, stands for; kind "device".

        A tensor stands for its device. None means the default device. What is not known becomes a symbol named after
        its access path, so that the same expression means the same device again.
        """
        if value.kind == "device":
            if not value.device:
                return self._symbolic(node, value)
            # a tensor's device was the current card when the tensor was made, whatever that is now
            return value if value.type_name == OF_TENSOR else replace(value, device=self.resolve(value.device))
        if value.kind == "string":
            return Value("device", self.resolve(value.device), because=value.because)
        if value.is_tensor:
            return Value("device", value.device, because=value.because, made=value.made)
        if value.kind in ("number", "index"):
            if isinstance(value.constant, int) and not isinstance(value.constant, bool):
                return Value("device", on("cuda", value.constant))
            return self._symbolic(node, value)
        if value.kind == "none":
            return self.default_device()
        if value.kind == "unknown":
            return self._symbolic(node, value)
        if value.kind == "namespace" and value.type_name is not None:
            known = self.imported_value(value.type_name)
            if known is not None and known.kind in ("device", "string") and known.device:
                return self.device_of_argument(node, known)
            path = self.path(node)
            if (
                path is not None
                and (known is None or known.kind == "unknown")
                and _NAMES_DEVICE.search(path) is not None
            ):
                if not {"cpu", "host"}.isdisjoint(path.rpartition(".")[2].lower().split("_")):
                    return Value("device", CPU)
                return Value("device", symbol(path, 0))  # one of the module level, by whatever function it is used
        return Value("device", UNKNOWN)

    def _symbolic(self, node: ast.expr, value: Value) -> Value:
        path = self.path(node)
        if path is None:
            path = called_device(node)
            if path is None:
                return Value("device", UNKNOWN)
            if path.endswith("cuda.current_device()"):
                return Value("device", self.resolve(on("cuda")), because=value.because)
            return Value("device", symbol(path, self.scope_id(path)), because=value.because)
        if "cpu" in path.rpartition(".")[2].lower().split("_"):
            return Value("device", CPU, because=value.because)  # `self._cpu_device`
        if self.given_host and self.is_asked_of_arguments(path):
            return Value("device", UNKNOWN)
        if value.type_name == OF_TENSOR:
            self.unsure |= symbol(path, self.scope_id(path))
        if isinstance(node, ast.Name) and self.lookup(path) is None and self.is_nowhere(node):
            return Value("device", UNKNOWN)  # no such name: the line fails, whatever is on which device
        return Value("device", symbol(path, self.scope_id(path)), because=value.because)

    def is_asked_of_arguments(self, path: str) -> bool:
        """Whether a device is a name that the function binds to what its arguments say alone: `device = of(a) or b.device`."""
        node = self.function.node if self.function is not None else None
        own = self.scan.functions.get(id(node)) if "." not in path and "[" not in path else None
        if own is None:
            return False
        parameters, bound = parameter_names(own.node), bindings(own)
        given = [] if path in parameters else bound.get(path, [])
        return bool(given) and all(
            _CHOOSES.search(self.text(each)) is None
            and any(isinstance(n, ast.Name) and (n.id in parameters or n.id in bound) for n in walk(each))
            for each in given
        )

    def is_nowhere(self, node: ast.Name) -> bool:
        """Whether a file of Python that shows all its names binds this one nowhere in sight."""
        text, tree = self.source.text, self.scan.tree
        if tree is None or self.imports.stars or "import" not in text or not self.source.path.endswith(".py"):
            return False
        return not is_visible(self.scan, self.module_names, node) and "globals()" not in text and "exec(" not in text

    @cached_property
    def module_names(self) -> frozenset[str]:
        return module_names(self.scan.tree or ast.Module([], []))

    def scope_id(self, path: str) -> int:
        """Tells equal names of different functions apart: where the function starts, 0 for `self` and module level."""
        if path.startswith("self.") or self.function is None:
            return 0
        return self.span(self.function.node).start

    def default_device(self) -> Value:
        """Where a factory without `device=` puts its tensor here."""
        if self.state.default is not None:
            return self.state.default
        return Value("device", CPU)

    def index_of(self, node: ast.Call, tensor: Value) -> Value:
        """What `get_device()` gives: the index of a card, on that card, where the tensor surely is on one.

        Also under a condition that says so: `if x.is_cuda: device = x.get_device()`.
        """
        device = tensor.device
        told = device <= self.card_symbols or self.guards.allow("cuda")
        on_card = is_surely_accelerator(device) or (bool(device) and told)
        because = (Origin(self.span(node), "this index is -1 on the CPU"),)
        return Value("index", device if on_card else UNKNOWN, because=because)

    # -- literals ---------------------------------------------------------------------------------------------------

    def note_literal(
        self, node: ast.expr, value: Value, role: Role, call: str | None, argument: Literal["device", "type", "index"]
    ) -> None:
        """Emit `DeviceLiteral` for the accelerator literals that an argument is made of."""
        if isinstance(node, ast.IfExp):
            inner: Role = "fallback" if self._chooses(node.body, node.orelse) else role
            self.note_literal(node.body, self.evaluate(node.body), inner, call, argument)
            self.note_literal(node.orelse, self.evaluate(node.orelse), inner, call, argument)
            return
        if call is not None and argument != "type" and call != "Tensor.to":
            unknown_devices.note(self, node, call)
            if call.startswith(("torch.", "Tensor.")):
                unknown_devices.note_class(self, node, value, call)
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                self._emit_literal(node, parse_device(node.value), role, call, argument)
            elif isinstance(node.value, int) and not isinstance(node.value, bool):
                self._emit_literal(node, on("cuda", node.value), role, call, argument)
            return
        if isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant):
            return  # f"cuda:{rank}": the index is chosen elsewhere
        if value.kind == "string" and isinstance(value.constant, str) and value.because:
            origin = self.literals.get(value.because[0].span)
            if origin is not None:
                literal, name, guards = origin
                saved = self.name, self.guards
                self.name, self.guards = name, guards.both(self.guards)
                self._emit_literal(literal, parse_device(value.constant), "assigned", call, argument)
                self.name, self.guards = saved

    def note_named(self, node: ast.expr, role: Role = "argument") -> None:
        """Emit `DeviceLiteral` for a string under the name `device` that nobody is known to read: `build(device="cuda")`.

        One that is read as the default of a parameter or by a call that is known says so itself.
        """
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self._emit_literal(node, parse_device(node.value), role, None, "device")

    def _chooses(self, a: ast.expr, b: ast.expr) -> bool:
        """Whether two arms of a choice are a device and its fallback."""
        return any(
            isinstance(arm, ast.Constant) and isinstance(arm.value, str) and arm.value.startswith("cpu")
            for arm in (a, b)
        ) or any(isinstance(arm, ast.IfExp) for arm in (a, b))

    def _emit_literal(
        self,
        node: ast.expr,
        device: Device,
        role: Role,
        call: str | None,
        argument: Literal["device", "type", "index"],
    ) -> None:
        if len(device) != 1:
            return
        (place,) = device
        if not isinstance(place, Place) or place.type not in ACCELERATORS:
            return
        expression, proved = self.run_device(place.type)
        if self.in_default:
            role = "default"
        span = self.span(node)
        event = DeviceLiteral(
            span, node, (), self.guards, self.scope(), self.name, place.type, place.card, role, call, argument,
            expression, proved,
        )  # fmt: skip
        known = self.events.get(("DeviceLiteral", span))
        if isinstance(known, DeviceLiteral) and known.role in ("default", "fallback"):
            return
        self.emit(event)

    def imported_devices(self) -> Iterator[tuple[str, Value]]:
        """Devices that other files of the project choose, by the names under which this one imports them."""
        for name, target in self.imports.module_level.items():
            if "device" in name.lower() and not target.startswith("torch"):
                value = self.imported_value(target)
                if value is not None:
                    yield name, value

    def run_device(self, type: str) -> tuple[str | None, bool]:
        """An expression in scope that holds the device of the run, and whether it is `type` wherever that exists.

        Names are tried in the order in which a reader would: a variable `device`, then `self.device`, `args.device`,
        then any other path that holds a chosen device; names that are imported from the project count as variables.
        """
        best: tuple[int, str, Value] | None = None
        for path, value in (*self.imported_devices(), *self.scope().items()):
            if value.kind not in ("device", "string") or len(value.device) != 1 or "[" in path:
                continue
            (place,) = value.device
            if not isinstance(place, Symbol):
                continue
            name = path.rsplit(".", 1)[-1]
            rank = (0 if name == "device" else 1 if "device" in name.lower() else 2) * 4 + path.count(".")
            if best is None or (rank, path) < best[:2]:
                best = (rank, path, value)
        if best is None:
            return None, False
        return best[1], best[2].type_name == f"chosen:{type}"

"""Moves: `.to`, `.cuda`, `.cpu` and `.type`; where they go, what they give, and what a module's move takes along."""

from __future__ import annotations

import ast
import re

from devlint.facts.events import CudaMethod, Move, Operand
from devlint.facts.frozen import replace
from devlint.facts.idioms import aliases, batches, dropped, guesses, leaves, ordering, unknown_devices
from devlint.facts.idioms.devices import called_device
from devlint.facts.interpreter.arguments import Arguments
from devlint.facts.interpreter.attributes import Attributes
from devlint.facts.interpreter.operations import is_encoded
from devlint.facts.text.parameters import reads_like_device
from devlint.facts.text.references import last_name
from devlint.facts.text.signs import is_model_name, makes_model, moves
from devlint.facts.values import (
    ACCELERATORS,
    BATCH,
    CPU,
    NOTHING,
    TOLD,
    UNKNOWN,
    Kind,
    Symbol,
    Value,
    describe,
    may_be_accelerator,
    on,
)
from devlint.model import Origin

_CPU_TYPE = re.compile(r"torch\.(Float|Double|Half|BFloat16|Char|Byte|Short|Int|Long|Bool)Tensor")
#: Names of objects whose `dtype` may be the type of another device's tensors: `torch.cuda.FloatTensor`.
_OF_OPTIONS = re.compile(
    r"|self|cls|torch|_?(?:\w+_)?(?:opts?|options?|args?|flags|cfg|conf|config|hparams|params|settings)|model|net"
)
_DTYPES = frozenset(
    {
        "float", "float16", "float32", "float64", "double", "half", "bfloat16", "int", "int8", "int16", "int32",
        "int64", "long", "short", "uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128", "cfloat",
        "cdouble", "float8_e4m3fn", "float8_e5m2",
    }
)  # fmt: skip


class Moves(Attributes):
    """Adds `call_move` (a move is called) and `move_in_place` (a module is elsewhere from here on)."""

    _uses: tuple[ast.AST, dropped.Uses] | None = None

    def call_move(self, node: ast.Call, operand: Operand, name: str, arguments: Arguments) -> Value | None:
        """`.to`, `.cuda`, `.cpu`, `.type` ...; None when the receiver makes it something else."""
        receiver = operand.value
        kind = receiver.kind
        if kind in ("namespace", "string", "number", "none", "function", "class", "bool", "clock"):
            return None
        if kind == "object" and receiver.type_name not in (None, "super"):
            class_ = self.classes.get(receiver.type_name or "")
            if class_ is not None and class_.method(name) is not None:
                return NOTHING
        is_item = self.dropped_item is node
        discarded = is_item or self.statement_value is node
        if kind == "unknown" and discarded and dropped.is_tensor(self, node, operand.node, is_item):
            receiver = guesses.surely(receiver) if guesses.is_guess(receiver) else Value("tensor", UNKNOWN)
            kind = "tensor"
            operand = replace(operand, value=receiver)
        elif receiver.is_tensor and discarded and not is_item and not receiver.made:
            if dropped.is_shown_other(self, node, operand.node):  # it moves in place
                receiver, kind = NOTHING, "unknown"
                operand = replace(operand, value=receiver)
                if moves(node) and (whole := self.path(operand.node)) is not None:
                    self.forget(whole)  # with what it holds
        target, node_of, only = self.move_target(node, operand, name, arguments)
        if names_parts(arguments) and kind not in ("tensor", "module", "parameter", "buffer"):
            whole = self.path(operand.node)
            if whole is not None:
                self.forget(whole)
            return NOTHING
        ordering.note_move(self, node, operand, target)
        if name == "type" and target is None:
            if kind == "module" or not receiver.is_tensor:
                return receiver if kind == "module" else NOTHING
            return receiver if only else self.unknown_move(receiver)
        if target is None:
            if receiver.is_tensor or kind == "module":
                return receiver if only else self.unknown_move(receiver)
            result = guesses.part(receiver)  # a dtype, most likely
        else:
            result = leaves.moved(self, node, operand, name, self.moved(operand, target, node), only)
        if name in ACCELERATORS:
            self.note_cuda_method(node, operand, name, arguments)
        path = self.path(operand.node)
        if kind == "unknown" and path is not None and target is not None:
            self.spoil_owners(path, result)  # a part of a module that it was given, which moves in place
        if kind == "module" and target is not None:
            self.move_in_place(path, result)
            if self.in_init and self.owner is not None and path is not None and path.split(".", 1)[0] == "self":
                self.built.setdefault(self.owner.name, []).append(target.device)
        if discarded and path is not None and result.type_name == "moved" and receiver.kind == "unknown":
            if self.is_called(path) or is_model_name(path.rsplit(".", 1)[-1]):  # a module, which moves in place
                self.state.env[path] = replace(result, kind="module")
        told = receiver.type_name == TOLD and path is not None
        if discarded and told and path is not None:
            if self.is_called(path) or is_model_name(last_name(operand.node)) or self.is_of_class(path):
                self.state.env[path] = replace(result, type_name="moved")
                return result
        if receiver.type_name == "moved" and discarded:
            # it moved before and may be a module, which moves in place
            if path is not None:
                self.state.env[path] = result
            return result
        of_batch = receiver.kind == "tensors" and receiver.type_name == BATCH
        if discarded and of_batch and not (self.is_part(operand.node) or self.is_entry(node, operand.node)):
            if path is not None:
                self.state.env[path] = replace(result, type_name=BATCH)  # a batch of its own class may move in place
            return result
        if of_batch and is_encoded(receiver) and path in self.state.env and target is not None:
            # what a tokenizer gives moves in place [transformers/tokenization_utils_base.py, `BatchEncoding.to`]
            self.state.env[path] = replace(result, type_name=BATCH)
        if discarded and receiver.is_tensor and path is not None and target is not None:
            self.state.env[path] = replace(receiver, discarded=self.span(node))
        if target is not None and target.device == CPU and may_be_accelerator(receiver.device):
            non_blocking = arguments.get("non_blocking", 1)
            if non_blocking is None or non_blocking[1].constant is not True:
                self.wait()
        self.emit(
            Move(
                self.span(node), node, receiver.because, self.guards, self.scope() if discarded else {}, self.name,
                name, operand, target, node_of, only, discarded, result, self.loops > 0,
                only_step=discarded and self.is_only_step(node), argument=self.is_as_given(operand),
            )
        )  # fmt: skip
        return result

    def uses_in(self, scope: ast.AST) -> dropped.Uses:
        """`dropped.uses_in`, once for the scope under analysis."""
        if self._uses is None or self._uses[0] is not scope:
            self._uses = scope, dropped.uses_in(scope)
        return self._uses[1]

    def is_part(self, node: ast.expr) -> bool:
        """Whether a name is bound to parts of batches alone: `for x, y in loader`, `for key, part in batch.items()`."""
        if not isinstance(node, ast.Name) or batches.is_whole(node.id):
            return False
        own = self.scan.functions.get(id(self.function.node)) if self.function is not None else None
        found = [part for a in (own.assigns if own is not None else ()) for part in batches.bindings(a, node.id)]
        return bool(found) and all(found)

    def is_entry(self, statement: ast.Call, node: ast.expr) -> bool:
        """Whether it is an entry of a batch, which the function uses as a tensor below."""
        scope = self.function.node if self.function is not None else self.scan.tree
        if scope is None or not isinstance(node, ast.Subscript):
            return False
        return dropped.is_entry(self, statement, node, self.uses_in(scope))

    def is_as_given(self, operand: Operand) -> bool:
        """Whether a value is an argument of the function under analysis, under its own name."""
        source = self.assumed.get(operand.value.because[0].span) if operand.value.because else None
        return (
            source is not None and source[0] is self.function and source[1] == operand.text and not operand.value.moved
        )

    def is_only_step(self, node: ast.Call) -> bool:
        """Whether a `for` loop of the function under analysis has nothing in it but this call, or does it on a condition."""
        own = self.scan.functions.get(id(self.function.node)) if self.function is not None else None
        loops = [a for a in own.assigns if isinstance(a, ast.For)] if own is not None else []
        return any(getattr(only_step(loop.body), "value", None) is node for loop in loops)

    def is_of_class(self, name: str) -> bool:
        """Whether the function under analysis makes an object of a class for a name: `states = GridStates(x)`."""
        own = self.scan.functions.get(id(self.function.node)) if self.function is not None else None
        values = [
            a.value
            for a in (own.assigns if own is not None else ())
            if isinstance(a, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in a.targets)
        ]
        return any(isinstance(value, ast.Call) and last_name(value.func)[:1].isupper() for value in values)

    def is_called(self, path: str) -> bool:
        """Whether the function under analysis, or the file at its module level, calls what stands at an access path."""
        name = path.rsplit(".", 1)[-1]
        around = self.function.node if self.function is not None else None
        return any(
            self.path(site.call.func) == path
            and (around is None or (site.caller is not None and site.caller.node is around))
            for site in self.scan.calls.get(name, ())
        )

    def unknown_move(self, receiver: Value) -> Value:
        return replace(receiver, device=UNKNOWN, made=(), attribute=None)

    def move_target(
        self, node: ast.Call, operand: Operand, name: str, arguments: Arguments
    ) -> tuple[Value | None, ast.expr | None, bool]:
        """Where a move goes (kind "device"), the expression that says so, and whether it changes nothing else.

        The target is None for a dtype, and for what is not known; then the flag tells: True, the device stays.
        """
        if name in ACCELERATORS:
            first = arguments.get("device", 0)
            if first is None or first[1].kind == "none":
                return Value("device", self.resolve(on(name))), None, only_waits(arguments, first is not None)
            value = first[1]
            if isinstance(value.constant, bool):
                return Value("device", self.resolve(on(name))), None, False
            if value.kind == "index":
                self.emit_call(node, f"Tensor.{name}", operand, arguments)
            there = self.device_of_argument(*first)
            self.card_symbols |= {place for place in there.device if isinstance(place, Symbol)}
            return there, first[0], only_waits(arguments, True)
        if name == "cpu":
            return Value("device", CPU), None, not arguments.every()
        if name == "type":
            first = arguments.get("dtype", 0)
            if first is None:
                return None, None, True
            text = first[1].constant
            if isinstance(text, str) and text.startswith("torch.cuda."):
                return Value("device", on("cuda")), first[0], False
            if first[1].type_name is not None and first[1].type_name.startswith("torch.cuda."):
                return Value("device", on("cuda")), first[0], False
            if _CPU_TYPE.fullmatch(text if isinstance(text, str) else first[1].type_name or ""):
                # a type of the CPU's tensors [torch/_tensor_docs.py, `type`]
                return Value("device", CPU), first[0], False
            # a dtype leaves the tensor where it is; a type chosen elsewhere may be one of another device
            known = first[1].kind == "dtype" or is_dtype(first[1]) or isinstance(text, str)
            return None, None, known or is_dtype_of_tensor(first[0])
        if "other" in arguments.keywords and operand.value.is_tensor:
            self.emit_call(node, "Tensor.to", operand, arguments)
        device = arguments.keywords.get("device") or arguments.keywords.get("tensor")
        extra = len(arguments.every())
        if device is None and arguments.values and not arguments.star:
            node_of, value = arguments.nodes[0], arguments.values[0]
            if value.kind == "dtype" or is_dtype(value):
                return None, None, True
            device = (node_of, value)
        if device is None:
            if "dtype" in arguments.keywords and not arguments.star:
                return None, None, True
            if not extra:
                return None, None, True
            return None, None, False
        self.note_literal(device[0], device[1], "argument", "Tensor.to", "device")
        if operand.value.is_tensor or operand.value.kind == "module" or is_model_name(last_name(operand.node)):
            unknown_devices.note(self, device[0], "Tensor.to")
        if device[1].kind == "index":
            self.emit_call(node, "Tensor.to", operand, arguments)
            return device[1], device[0], only_waits(arguments, True)
        if device[1].is_tensor:
            return self.device_of_argument(*device), device[0], False
        if device[1].kind == "unknown" and not looks_like_device(device[0]):
            return None, None, looks_like_dtype(device[0])
        found = self.device_of_argument(*device)
        if not found.device:
            return None, device[0], False
        return found, device[0], only_waits(arguments, True)

    def moved(self, operand: Operand, target: Value, node: ast.Call) -> Value:
        receiver = operand.value
        origin = Origin(self.span(node), f"moved to {describe(target.device)} here")
        if receiver.is_tensor:
            kind: Kind = "tensors" if receiver.kind == "tensors" else "tensor"
            name = receiver.type_name if receiver.type_name == "moved" else None
            # to the device of a tensor that was made on the CPU: that one is the fault, and not this move
            made = target.made if target.device == CPU else ()
            because = (*target.because[:1], origin) if made else (origin,)
            return Value(kind, target.device, receiver.zero_dim, type_name=name, because=because, made=made, moved=True)
        if receiver.kind in ("module", "packed"):
            return replace(receiver, device=target.device, because=(origin,), moved=True, split=None)
        if receiver.kind == "unknown":
            function = operand.node.func if isinstance(operand.node, ast.Call) else None
            runs = isinstance(function, ast.Attribute) and function.attr in ("eval", "train")
            if runs or (function is not None and makes_model(last_name(function))):
                return Value("module", target.device, type_name="moved", because=(origin,), moved=True)
            ident = self.span(operand.node) if is_construction(operand.node) else None
            return Value("tensors", target.device, None, type_name="moved", because=(origin,), moved=True, ident=ident)
        return replace(receiver, moved=True)

    def move_in_place(self, path: str | None, value: Value) -> None:
        """A module moved: so did every other name of it; what may be part of it, or hold it, is no longer known."""
        if path is not None:
            aliases.leave_behind(self, path, value)
        env = self.state.env
        for other, known in env.items():
            if known.kind == "parameter" and known.device != value.device and not other.startswith("self."):
                env[other] = replace(known, device=UNKNOWN, made=())  # it may be one of the module's
            if known.elements is not None and known.kind in ("list", "tuple", "dict"):
                env[other] = with_moved_part(known, value)
            if known.kind != "module" or other == path:
                continue
            if known.ident is not None and known.ident == value.ident:
                env[other] = replace(known, device=value.device, because=value.because)
            elif known.device != value.device and (
                known.shared
                or known.ident is None
                or (path is not None and (path.startswith(other + ".") or other.startswith(path + ".")))
            ):
                env[other] = replace(known, device=UNKNOWN)
        if path is not None:
            env[path] = replace(value, split=None)

    def spoil_owners(self, path: str, value: Value) -> None:
        """A part of a module is replaced: the module is no longer wholly where it was."""
        while "." in path:
            path = path.rsplit(".", 1)[0]
            owner = self.state.env.get(path)
            if owner is not None and owner.kind == "module" and owner.device != value.device:
                self.state.env[path] = replace(owner, device=UNKNOWN)

    def note_cuda_method(self, node: ast.Call, operand: Operand, name: str, arguments: Arguments) -> None:
        first = arguments.get("device", 0)
        index = first[1].constant if first is not None else None
        expression, proved = self.run_device(name)
        number = index if isinstance(index, int) and not isinstance(index, bool) else None
        self.emit(
            CudaMethod(
                self.span(node), node, (), self.guards, self.scope(), self.name, name, operand,
                first[0] if first is not None else None, number, len(arguments.every()) > (first is not None),
                expression, proved,
            )
        )  # fmt: skip


def with_moved_part(container: Value, moved: Value) -> Value:
    """A container after a module moved that may be in it: `for part in parts: part.to(device)`."""

    def after(part: Value) -> Value:
        if part.kind in ("list", "tuple", "dict") and part.elements is not None:
            return with_moved_part(part, moved)
        if part.kind == "parameter" and part.device != moved.device:
            return replace(part, device=UNKNOWN)  # it may be one of the module's
        if part.kind != "module" or part.device == moved.device:
            return part
        if part.ident is not None and part.ident == moved.ident:
            return replace(part, device=moved.device, because=moved.because)
        return part if moved.ident is not None and part.ident is not None else replace(part, device=UNKNOWN)

    elements = container.elements
    if isinstance(elements, dict):
        return replace(container, elements={key: after(part) for key, part in elements.items()})
    return replace(container, elements=tuple(map(after, elements))) if elements is not None else container


def is_dtype(value: Value) -> bool:
    """Whether a value is a dtype: `torch.float32` and friends are namespaces of their own name."""
    if value.kind == "namespace" and value.type_name is not None and value.type_name.startswith("torch."):
        return value.type_name[6:] in _DTYPES
    return False


def is_dtype_of_tensor(node: ast.expr) -> bool:
    """Whether an expression reads the dtype of something that is no object with options: `x.dtype`, `batch.x.dtype`."""
    if not isinstance(node, ast.Attribute) or node.attr != "dtype":
        return False
    return _OF_OPTIONS.fullmatch(last_name(node.value)) is None


def names_parts(arguments: Arguments) -> bool:
    """Whether a move says which attributes it is for: `data.to(device, "x", "edge_index")` moves these in place.

    [torch_geometric/data/data.py, `BaseData.to`]
    """
    return any(isinstance(node, ast.Constant) and isinstance(node.value, str) for node in arguments.nodes[1:])


def looks_like_device(node: ast.expr) -> bool:
    """Whether an argument of `.to` whose value is not known reads like a device rather than a dtype or a tensor.

    `args["device"]` and `args.get("device")` do by their key, `get_device()` by what is called.
    """
    key = node.slice if isinstance(node, ast.Subscript) else None
    if isinstance(node, ast.Call):
        if last_name(node.func) != "get":
            return called_device(node) is not None
        key = node.args[0] if node.args else None
    if key is not None:
        return isinstance(key, ast.Constant) and isinstance(key.value, str) and reads_like_device(key.value)
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return reads_like_device(name)


def looks_like_dtype(node: ast.expr) -> bool:
    """Whether an argument of `.to` whose value is not known says by its name that it is a dtype: `self.dtype`."""
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name.lower().endswith("dtype")


def only_step(body: list[ast.stmt]) -> ast.stmt | None:
    """The one statement of a loop, or of an `if` without `else` that is its one statement."""
    step = body[0] if len(body) == 1 else None
    return only_step(step.body) if isinstance(step, ast.If) and not step.orelse else step


def is_construction(node: ast.expr) -> bool:
    """Whether an expression reads like the call of a class: `Net(3)`, `models.Net()`."""
    function = node.func if isinstance(node, ast.Call) else None
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    return name[:1].isupper() and not name.isupper()


def only_waits(arguments: Arguments, with_device: bool) -> bool:
    """Whether a move is given nothing beside its device but `non_blocking`, which changes no value."""
    others = len(arguments.every()) - with_device
    return others == 0 or (others == 1 and "non_blocking" in arguments.keywords)

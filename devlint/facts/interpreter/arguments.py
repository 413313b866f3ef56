"""The arguments of a call: evaluated in order, the tensors among them, and the `Call` event that carries them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from devlint.facts.events import Call, Operand
from devlint.facts.idioms import spread
from devlint.facts.interpreter.iteration import Iteration, element_of
from devlint.facts.values import NOTHING, TENSOR_KINDS, Value


class Arguments:
    """The evaluated arguments of one call."""

    __slots__ = ("double_star", "keywords", "nodes", "star", "values")

    def __init__(self) -> None:
        self.nodes: list[ast.expr] = []
        self.values: list[Value] = []
        self.keywords: dict[str, tuple[ast.expr, Value]] = {}
        self.star = False  # `*args` or `**kwargs` of unknown length
        self.double_star = False  # `**kwargs`

    def get(self, name: str, position: int | None = None) -> tuple[ast.expr, Value] | None:
        found = self.keywords.get(name)
        if found is None and position is not None and position < len(self.values) and not self.star:
            return self.nodes[position], self.values[position]
        return found

    def named(self) -> dict[str, Value]:
        """What is given by keyword."""
        return {name: value for name, (_, value) in self.keywords.items()} if self.keywords else {}

    def given(self) -> Sequence[Value]:
        """The values of `every`."""
        return [*self.values, *(value for _, value in self.keywords.values())] if self.keywords else self.values

    def by_name(self, names: Sequence[str]) -> dict[str, Value]:
        """What is given by keyword, or by position for the parameters of these names."""
        found = dict(zip(names, self.values, strict=False))
        found.update(self.named())
        return found

    def every(self) -> list[tuple[ast.expr, Value]]:
        found = list(zip(self.nodes, self.values, strict=True))
        if self.keywords:
            found += self.keywords.values()
        return found


class CallArguments(Iteration):
    """Adds `arguments` (what a call is given), `tensors` (which of that are operands) and `emit_call`."""

    def arguments(self, node: ast.Call) -> Arguments:
        found, evaluate = Arguments(), self.evaluate
        nodes, values = found.nodes, found.values
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                value = evaluate(argument.value)
                if isinstance(value.elements, tuple) and value.type_name not in ("zip", "enumerate"):
                    for element in value.elements:
                        nodes.append(argument.value)
                        values.append(element)
                else:
                    found.star = True
                    nodes.append(argument.value)
                    values.append(element_of(value))
            else:
                value = evaluate(argument)
                nodes.append(argument)
                values.append(value)
                if value.kind == "function" or isinstance(argument, ast.Attribute):
                    self.hand_over(argument, value)
        for keyword in node.keywords:
            name = keyword.arg
            value = evaluate(keyword.value)
            if name is None:
                found.star = found.double_star = True
                if value.kind == "tensors":
                    found.keywords[f"**{len(found.keywords)}"] = (keyword.value, value)
                device = spread.device(self, keyword.value, value)
                if device is not None:
                    found.keywords.setdefault("device", (keyword.value, device))
            else:
                found.keywords[name] = (keyword.value, value)
                if value.kind == "function" or isinstance(keyword.value, ast.Attribute):
                    self.hand_over(keyword.value, value)
                if name == "device" and not self.is_of_torch(node.func):
                    is_default = isinstance(node.func, ast.Attribute) and node.func.attr == "set_defaults"
                    self.note_named(keyword.value, "default" if is_default else "argument")
        return found

    def is_of_torch(self, function: ast.expr) -> bool:
        """Whether a function is written as one of torch: `torch.zeros`, `nn.Linear`."""
        while isinstance(function, ast.Attribute):
            function = function.value
        target = self.imports.names.get(function.id, "") if isinstance(function, ast.Name) else ""
        return target == "torch" or target.startswith("torch.")

    def tensors(self, arguments: Arguments) -> list[Operand]:
        """The tensor operands among the arguments, lists and tuples of tensors opened one level."""
        found: list[Operand] = []
        for node, value in arguments.every():
            if value.kind in TENSOR_KINDS:
                found.append(self.operand(node, value))
            elif value.elements is not None and isinstance(value.elements, tuple) and value.kind in ("list", "tuple"):
                nodes = node.elts if isinstance(node, (ast.List, ast.Tuple)) else None
                self.containers.add(id(node))
                for index, element in enumerate(value.elements):
                    if element.is_tensor:
                        inner = nodes[index] if nodes is not None and len(nodes) == len(value.elements) else node
                        found.append(self.operand(inner, element))
        return found

    def emit_call(
        self,
        node: ast.expr,
        qualname: str,
        receiver: Operand | None,
        arguments: Arguments | None,
        exists: bool | None = None,
        result: Value = NOTHING,
        is_call: bool = True,
    ) -> None:
        named: dict[str, Operand] = {}
        if arguments is not None:
            for index, (argument, value) in enumerate(zip(arguments.nodes, arguments.values, strict=True)):
                named[str(index)] = self.operand(argument, value)
            for name, (argument, value) in arguments.keywords.items():
                named[name] = self.operand(argument, value)
        because = receiver.value.because if receiver is not None else ()
        discarded = self.statement_value is node
        self.emit(
            Call(
                self.span(node), node, because, self.guards, self.scope(), self.name, qualname, receiver, named,
                is_call, exists, discarded, result,
            )
        )  # fmt: skip

    def is_asked_for_sign(self, node: ast.expr) -> bool:
        """Whether the function asks a variable whether it is -1, as on the CPU: `if index < 0: index = None`."""
        if not isinstance(node, ast.Name) or self.function is None:
            return False
        around = self.span(self.function.node)
        return any(
            isinstance(each.left, ast.Name)
            and each.left.id == node.id
            and isinstance(each.ops[0], (ast.Lt, ast.Eq, ast.GtE, ast.Gt, ast.NotEq))
            and isinstance(each.comparators[0], (ast.Constant, ast.UnaryOp))
            and around.start <= self.span(each).start < around.end
            for each in self.scan.compares
        )

    def note_index_device(self, node: ast.Call, qualname: str, arguments: Arguments) -> None:
        """`device=x.get_device()`: an index where a device belongs; -1 for a CPU tensor."""
        device = arguments.get("device")
        if device is not None and device[1].kind == "index" and not self.is_asked_for_sign(device[0]):
            self.emit_call(node, qualname, None, arguments, exists=True)

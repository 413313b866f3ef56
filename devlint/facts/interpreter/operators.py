"""Operators: arithmetic, comparisons, `and`, `or` and `not`."""

from __future__ import annotations

import ast

from devlint.facts.events import Clock, ColdTimer, Compare, Operand
from devlint.facts.frozen import replace
from devlint.facts.idioms import arrays, as_text, beside_arrays, beside_new, guesses, rows, tables, unplaced
from devlint.facts.idioms import guards as conditions
from devlint.facts.idioms.api_calls import note_truth
from devlint.facts.idioms.placeholders import fills_places
from devlint.facts.interpreter.container_methods import ELEMENTS
from devlint.facts.interpreter.narrowing import Narrowing
from devlint.facts.interpreter.operations import CPU_PLACE, is_brought_to_host, is_put_beside_guess
from devlint.facts.text.signatures import parameter_of
from devlint.facts.values import BOOL, HOME, NOTHING, NUMBER, STRING, UNKNOWN, Value, either, grown, merge, symbol
from devlint.model import Origin

OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
}  # fmt: skip


class Operators(Narrowing):
    """Adds a method for each kind of operator."""

    def binary(self, node: ast.BinOp) -> Value:
        """A chain such as `a + b + c + ...` is walked without recursion: generated code has thousands of terms."""
        spine = [node]
        while isinstance(spine[-1].left, ast.BinOp):
            spine.append(spine[-1].left)
        value = self.evaluate(spine[-1].left)
        while spine:
            node = spine.pop()
            value = self.binary_step(node, value)
        return value

    def binary_step(self, node: ast.BinOp, left: Value) -> Value:
        right = self.evaluate(node.right)
        if left.kind == "clock" and right.kind == "clock":
            self.elapsed(node, left, right)
            return NUMBER
        if left.kind == "string" and isinstance(node.op, ast.Mod):
            return STRING
        if right.kind == "ndarray":
            beside_arrays.note_operator(self, node, left, right)
        return self.binary_operation(node, node.left, left, node.right, right, node.op)

    def binary_operation(
        self, node: ast.expr, left_node: ast.expr, left: Value, right_node: ast.expr, right: Value, op: ast.operator
    ) -> Value:
        if left.kind == "number" and right.kind == "number":
            return of_numbers(left, right, op)
        if isinstance(op, ast.MatMult):
            left, right = guesses.tensor(left), guesses.tensor(right)
        if guesses.is_guess(left) or guesses.is_guess(right):
            left, right = self.beside(left, right), self.beside(right, left)
        left, right = beside_new.sides(self, left_node, left, right_node, right)
        if isinstance(op, ast.Add) and "list" in (left.kind, right.kind):
            joined = rows.joined(left, right)
            if joined is not None:
                return joined
        if isinstance(op, ast.Mult) and (repeated := self.repeated_list(left, right)) is not None:
            return repeated
        tensors = [self.operand(n, v) for n, v in ((left_node, left), (right_node, right)) if v.is_tensor]
        if not tensors:
            for one, other in ((left, right), (right, left)):
                if isinstance(op, ast.Mult) and one.kind == "list" and isinstance(one.elements, tuple) and one.elements:
                    if other.kind in ("number", "unknown"):
                        return Value("list") if fills_places(one.elements) else grown(one.elements)
            if is_rest(left, right, op):
                return NUMBER
            for one, other in ((left, right), (right, left)):
                if guesses.is_guess(one) and other.kind in ("number", "unknown"):
                    return one if other.device in (one.device, UNKNOWN) else NOTHING
            for one, other in ((left, right), (right, left)):
                if (
                    arrays.has_dimension(one)
                    and (other.kind == "number" or other == one)
                    and not isinstance(op, ast.MatMult)
                ):
                    return one
            if isinstance(op, ast.MatMult) and "ndarray" not in (left.kind, right.kind):
                return NOTHING
            if "size" in (left.type_name, right.type_name):
                return left if left.type_name == "size" else right
            if "extent" in (left.type_name, right.type_name):
                return left if left.type_name == "extent" else right
            if left.kind == "string" and isinstance(op, (ast.Add, ast.Mod)):
                return STRING
            if left.kind == "list" and right.kind == "list":
                if isinstance(left.elements, tuple) and isinstance(right.elements, tuple):
                    if len(left.elements) + len(right.elements) <= ELEMENTS:
                        return Value("list", elements=left.elements + right.elements)
                return Value("list")
            if left.kind == "clock" or right.kind == "clock":
                return NUMBER
            return NOTHING
        symbol_ = OPERATORS.get(type(op), "?")
        if len(tensors) == 2:
            self.meet(node, tensors, "operator", symbol_, "exact" if symbol_ == "@" else "scalar")
        else:
            other = right if left.is_tensor else left
            if symbol_ == "+" and other.kind == "list" and tensors[0].value.kind == "tensors":
                return NOTHING  # a list whose items were moved, and others
            other_node = right_node if left.is_tensor else left_node
            if symbol_ == "@" and other.kind == "unknown":
                given = self.argument_tensor(other_node)
                if given is not None:
                    both = [self.operand(left_node, left), self.operand(right_node, given)]
                    if not left.is_tensor:
                        both = [self.operand(left_node, given), self.operand(right_node, right)]
                    self.meet(node, both, "operator", "@", "exact")
                    return self.combine(both)
            only = tensors[0]
            yields = other.kind == "unknown" and self.may_leave(only)
            value = self.combine(tensors, None if yields else only.value.zero_dim)
            if yields and CPU_PLACE in value.device:
                value = replace(value, device=UNKNOWN, made=())
            self.work(node, f"`{symbol_}` is queued here", value.device)
            return value
        value = unplaced.result(tensors, self.combine(tensors))
        if symbol_ == "@" and tables.may_have_no_dimension(self, node, *tensors):
            value = replace(value, zero_dim=None, split=None)
        first, second = tensors
        beside_guess = is_put_beside_guess(first, second.value) or is_put_beside_guess(second, first.value)
        if beside_guess or (value.device == HOME and any(is_brought_to_host(each.value) for each in tensors)):
            value = replace(value, device=UNKNOWN, made=())  # where the operation works, all is on the host
        self.work(node, f"`{symbol_}` is queued here", value.device)
        return value

    def repeated_list(self, left: Value, right: Value) -> Value | None:
        """A list or a tuple times a tensor, `[0] * size`: the tensor only says how often, and is read as a number.

        [torch/_tensor.py, `_handle_torch_function_and_wrap_type_error_to_not_implemented`: the tensor leaves it to the list]
        """
        for one, other in ((left, right), (right, left)):
            if one.kind in ("list", "tuple") and other.is_tensor:
                self.wait_for(other)
                held = one.elements if isinstance(one.elements, tuple) else ()
                return grown(held) if held and not fills_places(held) else Value("list")
        return None

    def may_leave(self, operand: Operand) -> bool:
        """Whether a tensor of the CPU may be broadcast to what it is combined with, and leave its device: it is 0-dim, as
        an item is, or made of what may be a number, or 0-dim on the path on which it is made.
        """
        value = operand.value
        if value.zero_dim is True or self.is_item(operand.node, value):
            return True
        if value.zero_dim is not None:
            return False
        of_path = len(value.device) > 1  # another path gives something else
        return any(c.zero_dim is None or (of_path and c.zero_dim is True) for c in value.made)

    def elapsed(self, node: ast.expr, stop: Value, start: Value) -> None:
        """`stop - start`, both clock readings: is device work between them that nobody waited for?"""
        first, second = start.reading, stop.reading
        if first is None or second is None or second.last is None or second.works <= first.works:
            return
        if first.clock.split(".")[0] != second.clock.split(".")[0] or id(node) in self.compared:
            return  # `if time.time() - start > limit:` measures nothing
        because = (Origin(first.span, "the clock starts here"), second.last)
        self.emit(
            Clock(
                second.span, node, because, self.guards, self.scope(), self.name, second.clock, first.span, second.last,
                second.pending is None, first.pending is None, second.level, second.device_type, None,
                second.waited > first.works,
            )
        )  # fmt: skip
        if not first.works:
            self.emit(
                ColdTimer(second.span, node, because, self.guards, {}, self.name, second.clock, first.span)
            )  # fmt: skip

    def beside(self, value: Value, other: Value) -> Value:
        """The input of a `forward` in arithmetic with a tensor is one, and so is what a module computes of its parameters
        and inputs in arithmetic with a tensor that it keeps."""
        if guesses.is_guess(value) and other.attribute is not None and other.zero_dim is False:
            if self.owner is not None and self.owner.is_module and value.device == HOME and not value.made:
                return self.as_tensor(value)
        if guesses.is_guess(value) and other.is_tensor and value.because and value.because[0].span in self.assumed:
            function, _ = self.assumed[value.because[0].span]
            if function.name.endswith(".forward") and not value.made:
                return self.as_tensor(value)
        return value

    def argument_tensor(self, node: ast.expr) -> Value | None:
        """An argument of the function, or a view of one, that an operation shows to be a tensor."""
        while isinstance(node, (ast.Call, ast.Attribute)):
            node = node.func if isinstance(node, ast.Call) else node.value
        if not isinstance(node, ast.Name) or self.function is None or not self.assume or self.host:
            return None
        argument = parameter_of(self.function.node.args, node.id)
        if argument is None or node.id == "self" or self.state.env.get(node.id) is not NOTHING:
            return None
        origin = Origin(self.span(argument), f"`{node.id}` is an argument, which may be on an accelerator")
        return Value("tensor", HOME, None, because=(origin,))

    def unary(self, node: ast.UnaryOp) -> Value:
        value = self.evaluate(node.operand)
        if isinstance(node.op, ast.Not):
            note_truth(self, node.operand)
            if value.is_tensor:
                self.wait_for(value)
            return BOOL
        if value.kind == "number" and isinstance(value.constant, int) and isinstance(node.op, ast.USub):
            return Value("number", constant=-value.constant)
        return value if value.is_tensor or value.kind == "number" or guesses.is_guess(value) else NOTHING

    def boolean(self, node: ast.BoolOp) -> Value:
        saved = self.guards
        result: Value | None = None
        for index, part in enumerate(node.values):
            value = self.evaluate(part)
            note_truth(self, part)
            if result is None:
                result = value
            elif isinstance(node.op, ast.Or) and result.type_name == "chosen:accelerator":
                result = replace(value, device=symbol("chosen", 0), kind="device", type_name="chosen:accelerator")
            elif isinstance(node.op, ast.And) and (result.type_name or "").endswith("is_available"):
                pass  # flag and is_available(): true only where it is available
            elif isinstance(node.op, ast.And) and (value.type_name or "").endswith("is_available"):
                result = value
            else:
                filled = isinstance(node.op, ast.Or) and value.kind == "tensor"  # `scale or torch.ones(3)`
                result = either(result, value) if value.kind == "generator" or filled else merge(result, value)
            if index + 1 < len(node.values):
                condition = conditions.read(part, self.qualify, self.asked, self.text)
                self.guards = self.under(condition if isinstance(node.op, ast.And) else condition.negated())
        self.guards = saved
        return result if result is not None else NOTHING

    def compare(self, node: ast.Compare) -> Value:
        nodes = [node.left, *node.comparators]
        self.compared.update(map(id, nodes))
        values = [self.evaluate(each) for each in nodes]
        for index, operator in enumerate(node.ops):
            symbol_ = _COMPARISONS.get(type(operator))
            left, right = values[index], values[index + 1]
            if symbol_ is None:
                continue
            if symbol_ in ("is", "is not"):
                if left.kind == "device" and right.kind in ("device", "string"):
                    self.note_comparison(node, nodes[index], left, nodes[index + 1], right, symbol_)
                continue
            as_text.note_text(self, node, nodes[index], nodes[index + 1], right, symbol_)
            if guesses.is_guess(left) or guesses.is_guess(right):
                left, right = self.beside(left, right), self.beside(right, left)
            left, right = beside_new.sides(self, nodes[index], left, nodes[index + 1], right)
            if left.is_tensor and right.is_tensor and not symbol_.endswith("in"):
                operands = [self.operand(nodes[index], left), self.operand(nodes[index + 1], right)]
                self.meet(node, operands, "operator", symbol_, "scalar")
                return unplaced.result(operands, self.combine(operands))
            if self.compares_devices(nodes[index], left, nodes[index + 1], right, symbol_):
                self.note_comparison(node, nodes[index], left, nodes[index + 1], right, symbol_)
            if left.is_tensor and len(node.ops) == 1:
                return replace(left, made=left.made) if left.kind != "tensors" else left
            if guesses.is_guess(left) and len(node.ops) == 1 and not symbol_.endswith("in"):
                return left
        return BOOL

    def note_comparison(
        self, node: ast.Compare, left_node: ast.expr, left: Value, right_node: ast.expr, right: Value, operator: str
    ) -> None:
        self.emit(
            Compare(
                self.span(node), node, (), self.guards, self.scope(), self.name, self.operand(left_node, left),
                self.operand(right_node, right), operator,
            )
        )  # fmt: skip

    def compares_devices(
        self, left_node: ast.expr, left: Value, right_node: ast.expr, right: Value, operator: str
    ) -> bool:
        """Whether a comparison is about devices: one side is one, or calls `.device()` and meets a device's name."""
        if operator.endswith("in"):
            return "device" in (left.kind, right.kind)
        if "device" in (left.kind, right.kind):
            return True
        for node, value, other in ((left_node, left, right), (right_node, right, left)):
            if value.kind == "unknown" and other.kind == "string" and other.device and isinstance(node, ast.Call):
                return isinstance(node.func, ast.Attribute) and node.func.attr == "device" and not node.args
        return False


def of_numbers(left: Value, right: Value, op: ast.operator) -> Value:
    """What arithmetic with numbers alone gives: a part of a tensor's size where one of them is one, else a number."""
    if not is_rest(left, right, op):
        for side in (left, right):
            if side.type_name == "extent":
                return side
    return NUMBER


def is_rest(left: Value, right: Value, op: ast.operator) -> bool:
    """Whether a difference says what is missing to another size, which is no tensor's size: `n - x.shape[0]`."""
    if not isinstance(op, ast.Sub) or "extent" not in (left.type_name, right.type_name):
        return False
    return not isinstance(left.constant, int) and not isinstance(right.constant, int)

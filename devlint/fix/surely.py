"""What an expression surely is at a place of a file: one tensor, a module with parameters, a `torch.device`.

The answer comes from the file's own text: what dominates the place (assignments, annotations that are not Optional, tests
for None), and what runs whenever the place does and would fail on anything else (`x.unsqueeze(0)`, `F.relu(x)`). "No" means
"not shown", never "it is something else".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from devlint import knowledge
from devlint.fix import places
from devlint.fix.names import Names, gives_tensor, has_weight, is_none, parameters, takes_tensor
from devlint.fix.places import Function, Level, Place

Kind = Literal["tensor", "module", "device", "generator"]

_DEPTH = 14  # names that are followed through others
_STEPS = 4000  # of one question
#: Methods that tensors have, and no array, data frame, packed sequence, distribution, module or record beside them.
_TENSOR_ONLY = frozenset({
    "unsqueeze", "unsqueeze_", "squeeze_", "permute", "masked_fill", "masked_fill_", "masked_select", "index_select",
    "index_add", "index_add_", "index_copy_", "scatter", "scatter_", "scatter_add", "scatter_add_", "expand_as",
    "view_as", "contiguous", "is_contiguous", "new_zeros", "new_ones", "new_full", "new_empty", "new_tensor",
    "softmax", "log_softmax", "sigmoid", "tanh", "relu", "bmm", "mm", "matmul", "baddbmm", "addmm", "topk",
    "element_size", "requires_grad_", "backward", "retain_grad", "type_as", "logsumexp", "clamp", "clamp_",
    "clamp_min", "triu", "tril", "unbind", "repeat_interleave", "rsqrt", "lerp", "detach_", "zero_", "fill_",
    "normal_", "uniform_", "exp", "log", "mul_", "add_", "sub_", "div_", "data_ptr", "untyped_storage",
    "storage_offset",
})  # fmt: skip
#: What is an attribute of arrays, or of nothing, where it is a method of tensors.
_CALLED_OF_TENSORS = frozenset({"size", "dim", "numel", "ndimension", "nelement"})
_MODULE_ONLY = frozenset(
    {"parameters", "named_parameters", "named_modules", "register_forward_hook", "load_state_dict"}
)
_SAME_MODULE = frozenset({
    "to", "cuda", "cpu", "train", "eval", "float", "half", "double", "bfloat16", "requires_grad_", "apply",
})  # fmt: skip
#: Attributes of a tensor that are tensors, without `grad`, which may be None.
_PARTS = frozenset({"T", "mT", "H", "mH", "data", "real", "imag"})


@dataclass
class Surely:
    """The questions about one file. Each has a number of steps of its own, so that no answer hangs on the ones before."""

    module: ast.Module
    names: Names = field(init=False)
    _asked: set[tuple[str, str, int, int]] = field(default_factory=set)
    _left: int = 0

    def __post_init__(self) -> None:
        self.names = Names(self.module)

    def holds(self, kind: Kind, node: ast.expr, at: Place) -> bool:
        """Whether an expression is surely of a kind where the place is reached."""
        self._begin()
        return self._is(kind, node, at, _DEPTH)

    def has_parameters(self, node: ast.expr, at: Place) -> bool:
        """Whether an expression is a module, and one with parameters where that is the object a method is called on."""
        self._begin()
        return self._has_parameters(node, at, _DEPTH)

    def has_device(self, node: ast.expr, at: Place) -> bool:
        """Whether `.device` of an expression is read, or set, by the code itself: always before the place, or by the methods
        of the class whose object it is."""
        if not _is_path(node):
            return False
        path = f"{ast.unparse(node)}.device"
        class_ = self._class_at(at)
        if class_ is not None and isinstance(node, ast.Name) and node.id == self._self_at(at):
            members = [each for one in self.names.family(class_) for each in one.body]
            if any(getattr(each, "name", "") == "device" for each in members):
                return True
            return any(_same(part, path) for each in members for part in ast.walk(each))
        levels = [level for level in at.levels if level.row]
        before = [statement for level in levels for statement in level.block[: level.row]]
        parts = [part for statement in before for head in places.header(statement) for part in places.evaluated(head)]
        return any(_same(part, path) for part in parts) or self.holds("generator", node, at)

    def is_stepped(self, node: ast.expr, at: Place) -> bool:
        """Whether an object is one that steps parameters and is no module: it is made of `m.parameters()`, or of something
        that is, and the file calls its `step`, or it is made so by a function that the file looks up by a name."""
        if not _is_path(node) or self.holds("tensor", node, at) or self.holds("module", node, at):
            return False
        path = ast.unparse(node)
        values = [v for scope in self._scopes(at) for v in _values_of(scope, path) if v is not None]
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == self._self_at(at):
            values += [value for value, _ in self._assigned(node.attr, at) if value is not None]
        if any(isinstance(value, ast.Call) and _given_parameters(value) for value in values):
            return True
        called = _called(self.module)
        return f"{path}.step" in called and path not in called

    def _begin(self) -> None:
        self._asked.clear()
        self._left = _STEPS

    # Expressions

    def _is(self, kind: Kind, node: ast.expr, at: Place, depth: int, not_none: bool = False) -> bool:
        self._left -= 1
        if depth <= 0 or self._left < 0:
            return False
        if is_none(node):
            return not_none
        if isinstance(node, ast.IfExp):
            arms = ((node.body, True), (node.orelse, False))
            return all(self._is_arm(kind, node.test, arm, truth, at, depth, not_none) for arm, truth in arms)
        if isinstance(node, ast.NamedExpr):
            return self._is(kind, node.value, at, depth - 1, not_none)
        if _is_path(node) and self._path(kind, ast.unparse(node), at, depth - 1, not_none):
            return True
        if kind == "tensor":
            return self._is_tensor(node, at, depth - 1, not_none)
        if kind == "generator":
            return isinstance(node, ast.Call) and self.names.qualname(node.func) == "torch.Generator"
        return self._is_module(node, at, depth - 1) if kind == "module" else self._is_device(node, at, depth - 1)

    def _is_arm(
        self, kind: Kind, test: ast.expr, arm: ast.expr, truth: bool, at: Place, depth: int, not_none: bool
    ) -> bool:
        said = _said(test, ast.unparse(arm), truth, self.names) if _is_path(arm) else None
        return said == kind or self._is(kind, arm, at, depth - 1, not_none or said == "something")

    def _is_tensor(self, node: ast.expr, at: Place, depth: int, not_none: bool) -> bool:
        if isinstance(node, ast.Call):
            return self._result(node, at, depth) == "tensor"
        if isinstance(node, ast.BinOp):
            return self._is("tensor", node.left, at, depth) or self._is("tensor", node.right, at, depth)
        if isinstance(node, ast.Compare):
            plain = len(node.ops) == 1 and not isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn))
            return plain and any(self._is("tensor", each, at, depth) for each in (node.left, *node.comparators))
        if isinstance(node, ast.UnaryOp):
            return not isinstance(node.op, ast.Not) and self._is("tensor", node.operand, at, depth)
        if isinstance(node, ast.Subscript):
            return self._is("tensor", node.value, at, depth, True)
        if isinstance(node, ast.Attribute):
            if node.attr in _PARTS or (node.attr == "grad" and not_none):
                return self._is("tensor", node.value, at, depth, True)
            return node.attr == "weight" and has_weight(self._layer(node.value, at))
        return False

    def _is_module(self, node: ast.expr, at: Place, depth: int) -> bool:
        if not isinstance(node, ast.Call):
            return False
        if self.names.makes_module(self.names.qualname(node.func)):
            return True
        if isinstance(node.func, ast.Name) and node.func.id in self.names.classes:
            return self.names.is_module_class(self.names.classes[node.func.id])
        if isinstance(node.func, ast.Attribute) and node.func.attr in _SAME_MODULE:
            return self._is("module", node.func.value, at, depth)
        return False

    def _is_device(self, node: ast.expr, at: Place, depth: int) -> bool:
        if isinstance(node, ast.Call):
            return self.names.qualname(node.func) == "torch.device"
        if not isinstance(node, ast.Attribute) or node.attr != "device":
            return False
        given = _parameters_of(node.value)
        if given is not None:
            return self._has_parameters(given, at, depth)
        return self._is("tensor", node.value, at, depth)

    def _has_parameters(self, node: ast.expr, at: Place, depth: int) -> bool:
        class_ = self._class_at(at)
        if class_ is not None and isinstance(node, ast.Name) and node.id == self._self_at(at):
            return self.names.is_module_class(class_) and self.names.has_parameters(class_)
        return self._is("module", node, at, _DEPTH) and self._keeps_parameter(node, at)

    def _keeps_parameter(self, node: ast.expr, at: Place) -> bool:
        """Whether all that an expression may be bound to is made by a class whose objects hold a parameter."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == self._self_at(at):
            made: list[ast.expr | None] = [value for value, _ in self._assigned(node.attr, at)]
        elif isinstance(node, ast.Name):
            made = [value for scope in self._scopes(at) for value in _values_of(scope, node.id)]
        else:
            made = [node]
        return bool(made) and all(value is not None and self.names.makes_parameter(value) for value in made)

    def _result(self, call: ast.Call, at: Place, depth: int) -> str:
        """What a call gives, by the words of `knowledge.Function.result`; "" for what is not shown."""
        name = self.names.qualname(call.func)
        record = knowledge.function(name) if name.startswith("torch") else None
        if record is None and isinstance(call.func, ast.Attribute):
            record = knowledge.method("Tensor", call.func.attr)
            of_tensors = call.func.attr in _TENSOR_ONLY or self._is("tensor", call.func.value, at, depth, True)
            if record is not None and not of_tensors:
                record = None
            elif record is not None and record.result == "same":
                return "tensor"
        if record is not None:
            given = {k.arg for k in call.keywords if k.arg and not _is_off(k.value)}
            numbers = [i for i, a in enumerate(call.args) if isinstance(a, (ast.Constant, ast.UnaryOp))]
            tensors = [i for i, a in enumerate(call.args) if i and record.variants and self._is("tensor", a, at, depth)]
            result = record.result_of(len(call.args), given, numbers, tensors)
            if result == "same" and call.args:
                return "tensor" if self._is("tensor", call.args[0], at, depth) else ""
            return "" if any(a.arg is None for a in call.keywords) and result != record.result else result
        if gives_tensor(self._layer(call.func, at)):
            return "tensor"
        return "tensor" if self._own_gives_tensor(call, at, depth) else ""

    def _own_gives_tensor(self, call: ast.Call, at: Place, depth: int) -> bool:
        """Whether a function or method of the file gives a tensor, by its annotation or by all that it returns."""
        function = self._own(call, at)
        if function is None or (function.decorator_list and not _only_static(function)):
            return False
        if function.returns is not None:
            return self.names.is_tensor(function.returns)
        returned = [n for n in places.own_nodes(function) if isinstance(n, ast.Return)]
        if isinstance(function, ast.AsyncFunctionDef) or not returned or not places.ends(function.body):
            return False
        for each in returned:
            there = places.place_of(self.module, each)
            if each.value is None or there is None or not self._is("tensor", each.value, there, depth - 3):
                return False
        return True

    def _own(self, call: ast.Call, at: Place) -> Function | None:
        """The function or method of the file that a call runs: `f()`, `self.f()` where no subclass has another one."""
        if isinstance(call.func, ast.Name):
            return self.names.functions.get(call.func.id)
        class_ = self._class_at(at)
        if not isinstance(call.func, ast.Attribute) or class_ is None:
            return None
        if not isinstance(call.func.value, ast.Name) or call.func.value.id != self._self_at(at):
            return None
        found = [
            method
            for each in self.names.family(class_)
            for method in each.body
            if isinstance(method, Function) and method.name == call.func.attr
        ]
        return found[0] if len(found) == 1 else None

    def _layer(self, node: ast.AST, at: Place) -> str:
        """The class of `torch.nn` of an attribute that a class assigns once, or of a name that its scope assigns once."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == self._self_at(at):
            values = [value for value, _ in self._assigned(node.attr, at)]
        elif isinstance(node, ast.Name):
            values = [v for scope in self._scopes(at) for v in _values_of(scope, node.id)]
        else:
            return self.names.layer(node)
        layers = {self.names.layer(value) if value is not None else "" for value in values}
        return layers.pop() if len(layers) == 1 else ""

    # Paths

    def _path(self, kind: Kind, path: str, at: Place, depth: int, not_none: bool) -> bool:
        """Whether a name or a chain of attributes is of a kind at a place."""
        level = at.levels[-1]
        key = (kind + path, str(not_none), id(level.block) if level.block else id(level.owner), level.row)
        if key in self._asked:
            return True  # round a loop, which all else must bear out
        self._asked.add(key)
        try:
            for scope in at.inside:
                bound = self._bound_inside(kind, scope, path, at, depth)
                if bound is not None:
                    return bound
            if self._used_from_here(kind, path, at, depth):
                return True
            return self._before(kind, path, at, depth, not_none)
        finally:
            self._asked.discard(key)

    def _bound_inside(self, kind: Kind, scope: ast.AST, path: str, at: Place, depth: int) -> bool | None:
        """What a comprehension or a lambda around the place says of a name that it binds; None where it binds it not."""
        root = path.partition(".")[0]
        if isinstance(scope, ast.Lambda):
            return False if any(a.arg == root for a in ast.walk(scope.args) if isinstance(a, ast.arg)) else None
        for each in scope.generators:  # type: ignore[attr-defined]
            if any(places.is_binding(n, root) for n in ast.walk(each.target)):
                return kind == "tensor" and path == root and self._item(each.target, each.iter, path, at, depth)
        return None

    def _before(self, kind: Kind, path: str, at: Place, depth: int, not_none: bool) -> bool:
        """What the statements before the place say of a path, from the nearest one outwards."""
        for number in range(len(at.levels), 0, -1):
            level = at.levels[number - 1]
            for index in range(level.row - 1, -1, -1):
                statement = level.block[index]
                there = Place((*at.levels[: number - 1], Level(level.block, index, level.owner)))
                if places.binds(statement, path):
                    verdict = self._bound_by(kind, path, statement, there, depth, not_none)
                    if verdict is not None:
                        return verdict
                    continue
                if path.partition(".")[0] not in places.words(statement):
                    continue
                if self._used_in(kind, path, statement, there, depth):
                    return True
                said = _said_after(statement, path, self.names)
                if said == kind:
                    return True
                not_none = not_none or said == "something"
            verdict, knows = self._entered(kind, path, at, number, depth)
            if verdict is not None:
                return verdict
            not_none = not_none or knows
            if isinstance(level.owner, Function):
                return self._outside(kind, path, level.owner, at.outside(number - 1), depth, not_none)
            if isinstance(level.owner, ast.ClassDef):
                return False
        return False

    def _bound_by(
        self, kind: Kind, path: str, statement: ast.stmt, there: Place, depth: int, not_none: bool
    ) -> bool | None:
        """What a statement that binds a path says of it after it; None where what was before counts as well."""
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            if isinstance(statement, ast.AnnAssign) and statement.value is None:
                return None
            if self._may_convert(path, there):
                return False
            if isinstance(statement, ast.AnnAssign) and kind == "tensor" and self.names.is_tensor(statement.annotation):
                return True
            return self._assigns(kind, path, statement, there, depth, not_none)
        if isinstance(statement, ast.AugAssign):
            return True if kind == "tensor" and self._is("tensor", statement.value, there, depth) else None
        if isinstance(statement, ast.If):
            arms = ((statement.body, statement, True), (statement.orelse, statement, False))
            for block, owner, truth in arms:
                if places.ends(block):
                    continue
                end = there.at_end_of(block, _Arm(owner, truth))
                if not self._path(kind, path, end, depth - 1, not_none):
                    return False
            return True
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            if any(item.optional_vars and _binds(item.optional_vars, path) for item in statement.items):
                return False
            return self._path(kind, path, there.at_end_of(statement.body, statement), depth - 1, not_none)
        return None if self._all_bindings(kind, path, statement, depth) else False

    def _may_convert(self, path: str, at: Place) -> bool:
        """Whether what is assigned to an attribute may be read back as something else: by a property of its class."""
        root, _, rest = path.partition(".")
        if not rest:
            return False
        class_ = self._class_at(at) if root == self._self_at(at) else None
        classes = self.names.family(class_) if class_ is not None else self.names.classes.values()
        name = rest.rpartition(".")[2]
        return any(isinstance(m, Function) and m.name == name for each in classes for m in each.body)

    def _assigns(
        self, kind: Kind, path: str, statement: ast.Assign | ast.AnnAssign, there: Place, depth: int, not_none: bool
    ) -> bool | None:
        value = statement.value
        assert value is not None
        for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
            if ast.unparse(target) == path:
                return self._is(kind, value, there, depth - 1, not_none)
            if isinstance(target, (ast.Tuple, ast.List)) and _binds(target, path):
                return self._unpacked(kind, path, target, value, there, depth)
        return False

    def _unpacked(
        self, kind: Kind, path: str, target: ast.Tuple | ast.List, value: ast.expr, at: Place, depth: int
    ) -> bool:
        written = [ast.unparse(each) for each in target.elts]
        if path not in written:
            return False
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            return self._is(kind, value.elts[written.index(path)], at, depth - 1)
        if kind != "tensor":
            return False
        if isinstance(value, ast.Call):
            return self._result(value, at, depth - 1) in ("tensors", "tensor")
        return self._is("tensor", value, at, depth - 1)

    def _all_bindings(self, kind: Kind, path: str, statement: ast.stmt, depth: int) -> bool:
        """Whether everything in a compound statement that binds a path binds it to a value of the kind."""
        inner = [n for n in places.own_nodes(statement) if isinstance(n, ast.stmt) and n is not statement]
        for each in inner:
            if isinstance(each, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and _binds(each, path):
                if isinstance(each, ast.AnnAssign) and each.value is None:
                    continue
                there = places.place_of(self.module, each)
                if there is None:
                    return False
                verdict = self._bound_by(kind, path, each, there, depth - 1, False)
                if verdict is False or (verdict is None and not isinstance(each, ast.AugAssign)):
                    return False
            elif any(_binds(part, path) for part in (_targets_of(each) if _is_compound(each) else [each])):
                return False
        if isinstance(statement, (ast.For, ast.AsyncFor)) and _binds(statement.target, path):
            there = places.place_of(self.module, statement)
            return there is not None and kind == "tensor" and self._item(
                statement.target, statement.iter, path, there, depth
            )  # fmt: skip
        return not any(_binds(part, path) for part in _targets_of(statement))

    def _item(self, target: ast.expr, iterated: ast.expr, path: str, at: Place, depth: int) -> bool:
        """Whether a loop over an expression gives its target, or the part of it that a path is, tensors."""
        at = Place(at.levels)
        if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name):
            if iterated.func.id == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
                if not iterated.args or _binds(target.elts[0], path):
                    return False
                return self._item(target.elts[1], iterated.args[0], path, at, depth)
            if iterated.func.id == "zip" and isinstance(target, ast.Tuple) and len(target.elts) == len(iterated.args):
                pairs = zip(target.elts, iterated.args, strict=True)
                return any(_binds(one, path) and self._item(one, of, path, at, depth) for one, of in pairs)
        if ast.unparse(target) != path:
            return False
        if isinstance(iterated, (ast.List, ast.Tuple)):
            return bool(iterated.elts) and all(self._is("tensor", each, at, depth - 1) for each in iterated.elts)
        if isinstance(iterated, ast.Call) and self._result(iterated, at, depth - 1) == "tensors":
            return True
        if isinstance(iterated, ast.Call) and _parameters_of(iterated) is not None:
            return True
        return self._is("tensor", iterated, at, depth - 1)

    def _entered(self, kind: Kind, path: str, at: Place, number: int, depth: int) -> tuple[bool | None, bool]:
        """What the statement whose block a place is in says of a path: a verdict, and whether it is not None."""
        owner = at.levels[number - 1].owner
        block = at.levels[number - 1].block
        if isinstance(owner, _Arm):
            said = _said(owner.statement.test, path, owner.truth, self.names)
            return (True, True) if said == kind else (None, said == "something")
        if isinstance(owner, (ast.If, ast.While)):
            truth = block is owner.body
            said = _said(owner.test, path, truth, self.names)
            if said == kind:
                return True, True
            there = at.outside(number - 1)
            if truth and any(self._proves(kind, path, part, there, depth) for part in places.evaluated(owner.test)):
                return True, True
            if isinstance(owner, ast.While) and not self._stays(kind, path, owner, depth):
                return False, False
            return None, said == "something"
        if isinstance(owner, (ast.For, ast.AsyncFor)):
            there = at.outside(number - 1)
            if _binds(owner.target, path):
                return kind == "tensor" and self._item(owner.target, owner.iter, path, there, depth), False
            return (None, False) if self._stays(kind, path, owner, depth) else (False, False)
        if isinstance(owner, (ast.With, ast.AsyncWith)):
            bound = any(item.optional_vars and _binds(item.optional_vars, path) for item in owner.items)
            return (False, False) if bound else (None, False)
        if isinstance(owner, (ast.Module, Function, ast.ClassDef)):
            return None, False
        statement = at.levels[number - 2].block[at.levels[number - 2].row] if number > 1 else None
        if isinstance(statement, ast.stmt) and not self._stays(kind, path, statement, depth):
            return False, False  # another part of a `try` or a `match`
        return None, False

    def _stays(self, kind: Kind, path: str, statement: ast.stmt, depth: int) -> bool:
        """Whether no round of a loop, and no part of a `try`, makes a path anything else."""
        if not places.binds(statement, path):
            return True
        return self._all_bindings(kind, path, statement, depth)

    def _outside(self, kind: Kind, path: str, function: Function, at: Place, depth: int, not_none: bool) -> bool:
        """What a function's head, its class, or the scopes around it say of a path where its body starts."""
        root, _, rest = path.partition(".")
        for argument, default in parameters(function):
            if argument.arg != root:
                continue
            if rest:
                return self._attribute(kind, root, rest, argument, function, at, depth, not_none)
            return self._given(kind, argument, default, function, not_none)
        others = (function.args.vararg, function.args.kwarg)
        if any(each is not None and each.arg == root for each in others):
            return False
        if root in self.names.globals or any(True for _ in places.bindings(function.body, root)):
            return False
        return self._from_scope(kind, path, at, depth)

    def _given(
        self, kind: Kind, argument: ast.arg, default: ast.expr | None, function: Function, not_none: bool
    ) -> bool:
        """Whether a parameter's annotation admits values of the kind alone, and its default is one."""
        if kind == "module":
            class_ = self.names.owners.get(id(function))
            if class_ is not None and function.args.args[:1] == [argument] and not _is_static(function):
                return self.names.is_module_class(class_)
            return self.names.is_module(argument.annotation) and (default is None or not_none)
        if kind == "device":
            return False  # such annotations also stand where strings are given
        if kind == "generator":
            optional = argument.annotation if not not_none else _without_none(argument.annotation)
            return optional is not None and self.names.qualname(optional) == "torch.Generator"
        if default is not None and not (is_none(default) and not_none):
            return False
        if not_none:
            return self.names.is_tensor_or_none(argument.annotation)
        return self.names.is_tensor(argument.annotation)

    def _from_scope(self, kind: Kind, path: str, at: Place, depth: int) -> bool:
        """What the scopes around a function bind a name to, whenever they do."""
        root = path.partition(".")[0]
        for scope in reversed(self._scopes(at)):
            body = scope.body if isinstance(scope, (ast.Module, Function)) else []
            found = list(places.bindings(body, path))
            if isinstance(scope, Function):
                for argument, default in parameters(scope):
                    if argument.arg == root:
                        return path == root and not found and self._given(kind, argument, default, scope, False)
            if found:
                return self._all_bindings(kind, path, ast.If(ast.Constant(True), list(body), []), depth - 1)
        return False

    # Attributes

    def _attribute(
        self,
        kind: Kind,
        root: str,
        rest: str,
        argument: ast.arg,
        function: Function,
        at: Place,
        depth: int,
        not_none: bool,
    ) -> bool:
        """What the class of `self`, or of an annotated argument, says of an attribute."""
        class_ = self.names.owners.get(id(function))
        own = class_ is not None and function.args.args[:1] == [argument] and not _is_static(function)
        if not own:
            annotation = argument.annotation
            class_ = self.names.classes.get(annotation.id) if isinstance(annotation, ast.Name) else None
        if class_ is None or "." in rest:
            return False
        return self._kept(kind, class_, rest, depth, not_none)

    def _kept(self, kind: Kind, class_: ast.ClassDef, name: str, depth: int, not_none: bool) -> bool:
        """Whether everything that the file says of an attribute of a class is that it is of the kind."""
        declared = False
        for each in self.names.family(class_):
            for statement in each.body:
                if isinstance(statement, Function) and statement.name == name:
                    return False  # a property may convert
                if isinstance(statement, ast.AnnAssign) and ast.unparse(statement.target) == name:
                    fits = self.names.is_tensor if not not_none else self.names.is_tensor_or_none
                    if kind == "tensor" and not fits(statement.annotation):
                        return False
                    if kind == "module" and not self.names.is_module(statement.annotation):
                        return False
                    if kind == "device" or (
                        statement.value is not None and not (is_none(statement.value) and not_none)
                    ):
                        return False
                    declared = True
                elif any(True for _ in places.bindings([statement], name)) and not isinstance(statement, Function):
                    return False
        assigned = list(self._assigned_in(class_, name))
        for value, there in assigned:
            if value is None or not self._is(kind, value, there, depth - 1, not_none):
                return False
        return declared or bool(assigned)

    def _assigned(self, name: str, at: Place) -> list[tuple[ast.expr | None, Place]]:
        class_ = self._class_at(at)
        return list(self._assigned_in(class_, name)) if class_ is not None else []

    def _assigned_in(self, class_: ast.ClassDef, name: str) -> Iterator[tuple[ast.expr | None, Place]]:
        """What the file gives an attribute of a class, each with its place; None for what it does not show."""
        family = self.names.family(class_)
        for each in family:
            for method in each.body:
                if isinstance(method, Function) and method.args.args:
                    yield from self._assigned_by(method, f"{method.args.args[0].arg}.{name}", name)
        for node in ast.walk(self.module):
            if isinstance(node, ast.Assign) and is_none(node.value):
                for target in node.targets:
                    if (
                        isinstance(target, ast.Attribute)
                        and target.attr == name
                        and ast.unparse(target) != f"self.{name}"
                    ):
                        yield None, Place(())

    def _assigned_by(self, method: Function, path: str, name: str) -> Iterator[tuple[ast.expr | None, Place]]:
        for node in places.own_nodes(method):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if ast.unparse(target) == path:
                        there = places.place_of(self.module, node)
                        yield (node.value if there is not None else None), there or Place(())
                    elif _binds(target, path):
                        yield None, Place(())
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) > 1:
                if node.func.attr in ("register_buffer", "register_parameter", "setattr"):
                    given = node.args[0]
                    if isinstance(given, ast.Constant) and given.value == name:
                        there = next(
                            (p for s in places.own_nodes(method) if isinstance(s, ast.Expr) and s.value is node
                             and (p := places.place_of(self.module, s)) is not None), None)  # fmt: skip
                        yield (node.args[1] if there is not None else None), there or Place(())
            elif isinstance(node, (ast.For, ast.AsyncFor, ast.Delete)):
                targets = node.targets if isinstance(node, ast.Delete) else [node.target]
                if any(_binds(target, path) for target in targets):
                    yield None, Place(())

    # Uses

    def _used_from_here(self, kind: Kind, path: str, at: Place, depth: int) -> bool:
        """Whether the place's statement, or one that surely follows it, fails on what is not of the kind."""
        for number in range(len(at.levels), 0, -1):
            level = at.levels[number - 1]
            if isinstance(level.owner, (ast.Try, ast.ExceptHandler)):
                return False
            first = number == len(at.levels) and level.row < len(level.block)
            for index in range(level.row if first else level.row + 1, len(level.block)):
                statement = level.block[index]
                there = Place((*at.levels[: number - 1], Level(level.block, index, level.owner)))
                if self._used_in(kind, path, statement, there, depth):
                    return True
                if places.may_leave(statement) or places.binds(statement, path):
                    return False
            if not isinstance(level.owner, (ast.If, ast.With)):
                return False
        return False

    def _used_in(self, kind: Kind, path: str, statement: ast.stmt, at: Place, depth: int) -> bool:
        """Whether a statement, wherever it is reached, fails on what is not of the kind."""
        if path.partition(".")[0] not in places.words(statement):
            return False
        if any(self._proves(kind, path, node, at, depth) for node in places.run_by(statement)):
            return True
        if isinstance(statement, (ast.With, ast.AsyncWith)) and not _may_swallow(statement):
            for index, inner in enumerate(statement.body):
                there = Place((*at.levels, Level(statement.body, index, statement)))
                if self._used_in(kind, path, inner, there, depth):
                    return True
                if places.may_leave(inner):
                    return False
        return False

    def _proves(self, kind: Kind, path: str, node: ast.AST, at: Place, depth: int) -> bool:
        """Whether an expression fails unless the path is of the kind."""
        self._left -= 1
        if depth <= 0 or self._left < 0:
            return False
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            only = _TENSOR_ONLY if kind == "tensor" else _MODULE_ONLY if kind == "module" else frozenset()
            return node.attr in only and _same(node.value, path)
        if kind != "tensor":
            return False
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CALLED_OF_TENSORS:
            if _same(node.func.value, path):
                return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            sides = ((node.left, node.right), (node.right, node.left))
            return any(_same(a, path) and not _same(b, path) and self._shown(b, at, depth) for a, b in sides)
        return isinstance(node, ast.Call) and self._takes(path, node, at, depth)

    def _shown(self, node: ast.expr, at: Place, depth: int) -> bool:
        return self._is("tensor", node, at, depth - 4)

    def _takes(self, path: str, call: ast.Call, at: Place, depth: int) -> bool:
        """Whether a call takes nothing but a tensor where the path is given to it."""
        first = bool(call.args) and _same(call.args[0], path)
        listed = call.args[0].elts if call.args and isinstance(call.args[0], (ast.List, ast.Tuple)) else []
        given = {k.arg for k in call.keywords if k.arg and _same(k.value, path)}
        if not (first or given or any(_same(each, path) for each in listed)):
            return False
        name = self.names.qualname(call.func)
        record = knowledge.function(name) if name.startswith("torch.") else None
        if record is not None and record.result != "module":
            if listed and record.sequence_params[:1] == (0,):
                return True
            named = {record.params.index(each) for each in given & {*record.params[:1]}}
            return 0 in record.tensor_params and (first or 0 in named)
        if first and takes_tensor(self._layer(call.func, at)):
            return True
        return first and self._own_takes(call, at, depth)

    def _own_takes(self, call: ast.Call, at: Place, depth: int) -> bool:
        """Whether the function of the file, or the `forward` of its class, that a call runs fails on all but a tensor."""
        function = self._own(call, at) or self._forward(call, at)
        if function is None or not function.body or (function.decorator_list and not _only_static(function)):
            return False
        arguments = function.args.args
        is_method = id(function) in self.names.owners and not _is_static(function)
        if len(arguments) <= is_method:
            return False
        name = arguments[is_method].arg
        start = Place((Level(self.module.body, 0, self.module), Level(function.body, 0, function)))
        there = places.place_of(self.module, function.body[0])
        return self._used_from_here("tensor", name, there if there is not None else start, depth - 5)

    def _forward(self, call: ast.Call, at: Place) -> Function | None:
        """The `forward` of a module that is called: of one that the file's own class makes, under one name."""
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
            if call.func.value.id != self._self_at(at):
                return None
            values = [value for value, _ in self._assigned(call.func.attr, at)]
        elif isinstance(call.func, ast.Name):
            values = [v for scope in self._scopes(at) for v in _values_of(scope, call.func.id)]
        else:
            return None
        classes = {_class_made(value) for value in values}
        if len(classes) != 1 or (name := classes.pop()) not in self.names.classes:
            return None
        class_ = self.names.classes[name]
        if not self.names.is_module_class(class_):
            return None
        found = [m for m in class_.body if isinstance(m, Function) and m.name == "forward"]
        return found[0] if found else None

    # Scopes

    def _class_at(self, at: Place) -> ast.ClassDef | None:
        """The class whose method a place is in."""
        for level in reversed(at.levels):
            if isinstance(level.owner, Function) and id(level.owner) in self.names.owners:
                return self.names.owners[id(level.owner)]
        return None

    def _self_at(self, at: Place) -> str:
        for level in reversed(at.levels):
            if isinstance(level.owner, Function) and id(level.owner) in self.names.owners:
                arguments = level.owner.args.args
                return arguments[0].arg if arguments and not _is_static(level.owner) else ""
        return ""

    def _scopes(self, at: Place) -> list[ast.AST]:
        """The module and the functions around a place, outermost first; classes are no scopes of what stands in them."""
        return [level.owner for level in at.levels if isinstance(level.owner, (ast.Module, Function))]


class _Arm(ast.AST):
    """Stands for an arm of an `if` as the owner of its block, which may be empty."""

    def __init__(self, statement: ast.If, truth: bool) -> None:
        self.statement = statement
        self.truth = truth


def _is_path(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _same(node: ast.AST, path: str) -> bool:
    root = node
    while isinstance(root, ast.Attribute):
        root = root.value
    return isinstance(root, ast.Name) and root.id == path.partition(".")[0] and ast.unparse(node) == path


def _binds(root: ast.AST, path: str) -> bool:
    return any(places.is_binding(node, path) for node in places.own_nodes(root))


def _is_off(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (False, None)


def _is_compound(statement: ast.stmt) -> bool:
    return any(True for _ in places.blocks_of(statement))


def _targets_of(statement: ast.stmt) -> list[ast.AST]:
    """What a compound statement binds in its head: loop targets, `with ... as`, the names of handlers, patterns."""
    found: list[ast.AST] = []
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        found.append(statement.target)
    for item in getattr(statement, "items", ()):
        if item.optional_vars is not None:
            found.append(item.optional_vars)
    for case in getattr(statement, "cases", ()):
        found.append(case.pattern)
    return [*found, *(each for each in getattr(statement, "handlers", ()) if each.name)]


def _values_of(scope: ast.AST, name: str) -> list[ast.expr | None]:
    """What a scope gives a name; None for what is no plain assignment."""
    found: list[ast.expr | None] = []
    counted = 0
    for node in _assignments(scope).get(name, ()):
        counted += 1
        if not _moves_itself(node.value, name):
            found.append(node.value)
    bound = sum(places.binds(statement, name) for statement in getattr(scope, "body", []))
    if isinstance(scope, Function):
        bound += sum(argument.arg == name for argument, _ in parameters(scope))
    return found if bound == counted else [*found, None]


@lru_cache(maxsize=16)
def _called(module: ast.Module) -> frozenset[str]:
    """The names and chains of attributes that a file calls."""
    calls = (node.func for node in ast.walk(module) if isinstance(node, ast.Call))
    return frozenset(ast.unparse(each) for each in calls if _is_path(each))


@lru_cache(maxsize=256)
def _assignments(scope: ast.AST) -> dict[str, list[ast.Assign]]:
    """The plain assignments of a scope by the names that they bind."""
    found: dict[str, list[ast.Assign]] = {}
    for node in places.own_nodes(scope):
        if isinstance(node, ast.Assign):
            for name in {target.id for target in node.targets if isinstance(target, ast.Name)}:
                found.setdefault(name, []).append(node)
    return found


def _moves_itself(value: ast.expr, name: str) -> bool:
    """`model = model.to(device)`"""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _SAME_MODULE:
        value = value.func.value
    return isinstance(value, ast.Name) and value.id == name


def _class_made(value: ast.expr | None) -> str:
    """The name of the file's class that an expression makes an object of and perhaps moves."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _SAME_MODULE:
        value = value.func.value
    return value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""


def _parameters_of(node: ast.expr) -> ast.expr | None:
    """`module` of `next(module.parameters())` and of `module.parameters()`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "next" and node.args:
        node = node.args[0]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "parameters":
        return node.func.value
    return None


def _given_parameters(call: ast.Call) -> bool:
    """Whether a call is given the parameters of a module: itself, in a list, or in groups."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    parts = [part for each in given for part in ast.walk(each)]
    return any(
        isinstance(p, ast.Call) and isinstance(p.func, ast.Attribute) and p.func.attr == "parameters" for p in parts
    )


def _without_none(annotation: ast.expr | None) -> ast.expr | None:
    """`T` of `T | None`."""
    if isinstance(annotation, ast.BinOp) and is_none(annotation.right):
        return annotation.left
    return annotation


def _is_static(function: Function) -> bool:
    return any(isinstance(d, ast.Name) and d.id in ("staticmethod", "classmethod") for d in function.decorator_list)


_HARMLESS = ("staticmethod", "classmethod", "torch.no_grad()", "torch.inference_mode()", "override", "abstractmethod")


def _only_static(function: Function) -> bool:
    return all(ast.unparse(each) in _HARMLESS for each in function.decorator_list)


def _may_swallow(statement: ast.With | ast.AsyncWith) -> bool:
    """Whether the context managers of a `with` may take an error of its block."""
    return any("suppress" in (text := ast.unparse(i.context_expr)) or "raises" in text for i in statement.items)


def _said_after(statement: ast.stmt, path: str, names: Names) -> str | None:
    """What is known of a path once a statement is passed: after an `assert`, or an `if` that leaves."""
    if isinstance(statement, ast.Assert):
        return _said(statement.test, path, True, names)
    if isinstance(statement, ast.If) and places.ends(statement.body) and not statement.orelse:
        return _said(statement.test, path, False, names)
    return None


def _said(test: ast.expr, path: str, truth: bool, names: Names) -> str | None:
    """What a test says of a path where it is true or false: a kind, "something" for not None, or nothing."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _said(test.operand, path, not truth, names)
    if isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) is not truth:
            return None
        said = [_said(each, path, truth, names) for each in test.values]
        return next((each for each in said if each not in (None, "something")), next(filter(None, said), None))
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and is_none(test.comparators[0]):
        if not _same(test.left, path):
            return None
        return "something" if isinstance(test.ops[0], ast.IsNot) is truth else None
    if isinstance(test, ast.Call) and truth and test.args and _same(test.args[0], path):
        name = ast.unparse(test.func)
        if name == "isinstance" and len(test.args) == 2:
            wanted = test.args[1]
            return "tensor" if names.is_tensor(wanted) else "module" if names.is_module(wanted) else "something"
        if names.qualname(test.func) == "torch.is_tensor":
            return "tensor"
    return "something" if truth and _same(test, path) else None

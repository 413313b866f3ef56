"""Whether what a statement moves and drops, `x.to(device)`, is a tensor where its value is not known.

A module moves in place, and so do objects of other classes: graphs of torch_geometric, `BatchEncoding` of transformers, a
project's own batches. So the code must show that it is a tensor, and nothing in it that it is one of these:

    pic = prep(image).unsqueeze(0)     # made by what only a tensor can do
    pic.to(device)
    mean = pic[:, 0] / 255             # or used as only a tensor can be
    model(pic)                         # two weaker signs: an input's name, given to a model or a loss, asked for its shape
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from devlint import knowledge
from devlint.facts.idioms import asked_for_tensors, batches
from devlint.facts.text.annotations import is_tensor_annotation
from devlint.facts.text.nodes import walk
from devlint.facts.text.parameters import TENSOR_ONLY, fits_others, shows_tensor
from devlint.facts.text.references import chain, last_name
from devlint.facts.text.results import parents
from devlint.facts.text.returned import own_nodes
from devlint.facts.text.signatures import parameter_of
from devlint.facts.text.signs import is_loss_name, is_model_call, is_model_name

if TYPE_CHECKING:
    from devlint.facts.interpreter.moves import Moves

#: Names of tensors, not of modules or of batches that may move in place.
INPUT = re.compile(
    r"[xyz]|[xy]_\w+|(in_)?(images?|imgs?|pictures?|targets?|labels?|masks?|noise|audios?|videos?|frames?|states?)"
    r"|\w+_ids|(\w+_)?(tensors?|masks?|noise|labels?)|pixel_values|waveforms?"
)
#: What annotations of fields may say of a class that holds tensors and constants alone.
_FIELDS = frozenset({"torch", "Tensor", "Optional", "int", "float", "bool", "str", "typing", "None"})
#: Methods of modules, of engines around them, and of graphs of torch_geometric [torch_geometric/data/data.py, `BaseData`],
#: and those whose result is no tensor.
_OF_OTHERS_TOO = frozenset(
    {"requires_grad_", "backward", "contiguous", "detach", "detach_", "is_cuda", "size", "numpy"}
)
_NO_TENSOR = frozenset(
    {
        "numel", "dim", "is_floating_point", "is_contiguous", "element_size", "layout", "grad_fn", "retain_grad", "unbind",
        "chunk", "numpy", "is_cuda", "backward",
    }
)  # fmt: skip
#: What returns objects that move in place: tokenizers, processors, collators, loaders of graphs.
_MAKES_OTHERS = re.compile(
    r"tokeni|process|encod|extractor|collat|batch|graph|model|load_?state|from_pretrained|^load$"
)
#: Arithmetic that lists, sets, texts and sequences of modules have not.
_ARITHMETIC = (ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.MatMult, ast.FloorDiv)
#: What gives things of any kind.
_GIVES_ANY = frozenset({"get", "next", "pop", "popitem", "getattr", "fetch", "resolve"})


def is_tensor(machine: Moves, statement: ast.Call, node: ast.expr, is_item: bool) -> bool:
    """Whether the code shows that what is moved by a dropped move is a tensor. `is_item`: of a comprehension, or mapped."""
    scope = machine.function.node if machine.function is not None else machine.scan.tree
    if scope is None:
        return False
    known = machine.uses_in(scope)
    around, by_name, own, _ = known
    if machine.path(node) is not None and asked_for_tensors.is_told(machine, statement, node, around):
        return True
    if isinstance(node, ast.Subscript) and not is_item:
        return is_entry(machine, statement, node, known)
    if not isinstance(node, ast.Name) or is_model_name(node.id) or is_item:
        return False
    uses = by_name.get(node.id, [])
    if any(is_other(use, around) for use in uses):
        return False
    given = parameter_of(scope.args, node.id) if not isinstance(scope, ast.Module) else None
    if given is not None and given.annotation is not None:
        return is_tensor_annotation(given.annotation, machine.imports.names)
    first, last, made = bound_around(statement, [use for use in uses if id(use) in own], around)
    if made is not None and gives_annotated(machine, scope, made):
        return True
    if made is not None and makes_other(made):
        return False
    if made is not None and makes_tensor(made):
        return True
    uses = [use for use in uses if isinstance(use.ctx, ast.Load) and first <= place(use) <= last]
    if not batches.is_whole(node.id) and any(used_as_tensor(machine, use, around) for use in uses):
        return True
    signs = {sign for use in uses if (sign := hint(use, around)) is not None}
    if INPUT.fullmatch(node.id) is not None:
        signs.add("name")
    return len(signs) > 1 and not batches.is_whole(node.id) and not moves_itself(machine)


def gives_annotated(machine: Moves, scope: ast.AST, made: ast.expr) -> bool:
    """Whether the function binds what the same callee gives elsewhere to a name that it annotates as a tensor.

    `mask: Tensor | None = None` and `mask = store.load(name)`, beside `prompt = store.load(other)`.
    """
    if not isinstance(made, ast.Call) or last_name(made.func) in _GIVES_ANY:
        return False
    called = ast.dump(made.func)
    annotated: set[str] = set()
    bound: set[str] = set()
    for node in walk(scope):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if not is_tensor_annotation(node.annotation, machine.imports.names):
                continue
            annotated.add(node.target.id)
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        if isinstance(value, ast.Call) and value is not made and ast.dump(value.func) == called:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]  # type: ignore[attr-defined]
            bound |= {target.id for target in targets if isinstance(target, ast.Name)}
    return bool(annotated & bound)


def is_entry(machine: Moves, statement: ast.Call, node: ast.Subscript, uses: Uses) -> bool:
    """Whether an entry of a dict is used as a tensor below the statement that moves it: `batch["image"]`."""
    if not isinstance(node.slice, ast.Constant) or not isinstance(node.slice.value, str):
        return False
    if is_model_name(node.slice.value) or not isinstance(node.value, (ast.Name, ast.Attribute)):
        return False
    around, *_, entries = uses
    below = [use for use in entries.get(ast.unparse(node), ()) if place(use) > place(statement)]
    if any(not isinstance(use.ctx, ast.Load) for use in below):
        return False
    return any(used_as_tensor(machine, use, around) for use in below)


def is_shown_other(machine: Moves, statement: ast.Call, node: ast.expr) -> bool:
    """Whether the function uses what a dropped move moves as no tensor can be used, as long as the name holds it.

    What was taken for a tensor because of something else, what it was computed from or what it came with, is none then.
    """
    scope = machine.function.node if machine.function is not None else machine.scan.tree
    if scope is None or not isinstance(node, ast.Name):
        return False
    around, by_name, own, _ = machine.uses_in(scope)
    if asked_for_tensors.is_told(machine, statement, node, around):
        return False
    uses = [use for use in by_name.get(node.id, ()) if id(use) in own]
    first, last, _ = bound_around(statement, uses, around)
    held = (use for use in uses if isinstance(use.ctx, ast.Load) and first <= place(use) <= last)
    return any(is_called_or_read(use, around) for use in held)


def is_called_or_read(use: ast.Name, around: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a name is called, or an attribute is read of it that no tensor has."""
    outer = around.get(use)
    if isinstance(outer, ast.Call):
        return outer.func is use
    return isinstance(outer, ast.Attribute) and outer.attr not in _members()


#: What is around each node of a scope, its names, the identities of the nodes that are its own, and its entries of dicts.
Uses = tuple[Mapping[ast.AST, ast.AST], dict[str, list[ast.Name]], set[int], dict[str, list[ast.Subscript]]]


def uses_in(scope: ast.AST) -> Uses:
    """What the uses of a scope's names are found in."""
    around = parents(scope)
    names: dict[str, list[ast.Name]] = {}
    entries: dict[str, list[ast.Subscript]] = {}
    for node in around:
        if isinstance(node, ast.Name):
            names.setdefault(node.id, []).append(node)
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            entries.setdefault(ast.unparse(node), []).append(node)
    return around, names, {id(node) for node in own_nodes(scope)}, entries


def is_other(use: ast.Name, around: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a use shows something else than a tensor: it is called, has keys, or attributes that no tensor has."""
    outer = around.get(use)
    if isinstance(outer, ast.Call):
        if outer.func is use or last_name(outer.func) in ("isinstance", "hasattr", "callable", "type"):
            return True
        name = last_name(outer.func)  # `Trainer(x)`, `DistributedDataParallel(x)`
        return name[:1].isupper() and name != "Variable" and not name.isupper()
    if isinstance(outer, ast.Attribute):
        return outer.attr not in _members()
    if isinstance(outer, ast.Subscript) and outer.value is use:
        return isinstance(outer.slice, ast.Constant) and isinstance(outer.slice.value, str)
    return isinstance(outer, ast.keyword) and outer.arg is None  # `model(**x)`


@cache
def _members() -> frozenset[str]:
    known = knowledge.cls("torch.Tensor")
    return known.methods | known.attributes if known is not None else frozenset()


def bound_around(
    statement: ast.Call, uses: list[ast.Name], around: Mapping[ast.AST, ast.AST]
) -> tuple[tuple[int, int], tuple[int, int], ast.expr | None]:
    """From where to where a name holds what a statement moves, and the expression that it was bound to, where it shows."""
    first, last, made = (0, 0), (1 << 60, 0), None
    for use in uses:
        outer = around.get(use)
        if not isinstance(use.ctx, ast.Store) or isinstance(outer, ast.AugAssign):
            continue
        block: ast.AST = use
        while isinstance(block, ast.expr):
            block = around[block]
        whole = isinstance(block, (ast.Assign, ast.AnnAssign))
        end = (getattr(block, "end_lineno", 0), getattr(block, "end_col_offset", 0)) if whole else place(use)
        if end <= place(statement):
            if end > first:
                first = end
                made = block.value if isinstance(block, (ast.Assign, ast.AnnAssign)) and outer is block else None
        elif end < last:
            last = end
    return first, last, made


def place(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def makes_other(node: ast.expr) -> bool:
    """Whether an expression makes an object that may move in place: of a class, by a tokenizer, by `torch.load`."""
    if not isinstance(node, ast.Call) or any(k.arg == "return_tensors" for k in node.keywords):
        return isinstance(node, ast.Call)
    name = last_name(node.func)
    return (name[:1].isupper() and name != "Variable") or _MAKES_OTHERS.search(name.lower()) is not None


def makes_tensor(node: ast.expr) -> bool:
    """Whether nothing but a tensor with a `to` comes out of an expression: `f(x).unsqueeze(0).float()`, `f(x)[None] / 255`."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, _ARITHMETIC)
    if isinstance(node, ast.Call) and last_name(node.func) == "Variable":
        return True  # it takes nothing else [torch/csrc/autograd/python_variable.cpp, `THPVariable_pynew`]
    *parts, _ = chain(node)
    for part in parts:
        if isinstance(part, ast.Subscript):
            return slices(part.slice)
        if isinstance(part, ast.Call):
            name = part.func.attr if isinstance(part.func, ast.Attribute) else ""
            if name in _NO_TENSOR or knowledge.method("Tensor", name) is None:
                return False
            if name in TENSOR_ONLY - _OF_OTHERS_TOO and not fits_others(part):
                return True
    return False


def slices(node: ast.expr) -> bool:
    """Whether what stands in brackets is for tensors, `:, 0` and `None`; a plain slice fits a sequence of modules."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return any(
        (isinstance(p, ast.Slice) and isinstance(node, ast.Tuple))
        or (isinstance(p, ast.Constant) and p.value in (None, ...))
        for p in parts
    )


def used_as_tensor(machine: Moves, use: ast.Name | ast.Subscript, around: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a name, or an entry, is used as only a tensor can be that has a `to`: computed with, sliced, given to torch."""
    outer = around.get(use)
    if isinstance(outer, ast.BinOp):
        return isinstance(outer.op, _ARITHMETIC)
    if isinstance(outer, ast.UnaryOp):
        return isinstance(outer.op, ast.USub)
    if isinstance(outer, ast.Subscript):
        return outer.value is use and slices(outer.slice)
    if isinstance(outer, ast.Attribute):
        call = around.get(outer)
        if not isinstance(call, ast.Call) or call.func is not outer or outer.attr in _OF_OTHERS_TOO:
            return False
        return shows_tensor(outer.attr, call) or (outer.attr in TENSOR_ONLY and not fits_others(call))
    if isinstance(outer, (ast.List, ast.Tuple)):
        call = around.get(outer)
        return isinstance(call, ast.Call) and outer in call.args[:1] and 0 in taken(machine, call, sequences=True)
    if isinstance(outer, ast.Call) and use in outer.args:
        return outer.args.index(use) in taken(machine, outer, sequences=False)
    return False


def taken(machine: Moves, call: ast.Call, sequences: bool) -> tuple[int, ...]:
    """Where a function of torch takes nothing but tensors, or sequences of them."""
    *_, start = chain(call.func)
    if not isinstance(start, ast.Name) or not machine.imports.names.get(start.id, "").startswith("torch"):
        return ()
    record = knowledge.function(machine.qualify(call.func) or "")
    if record is None:
        return ()
    return tuple(record.sequence_params if sequences else record.tensor_params)


def hint(use: ast.Name, around: Mapping[ast.AST, ast.AST]) -> str | None:
    """What a use lets one think of a tensor, though it fits other objects."""
    outer = around.get(use)
    if isinstance(outer, ast.Attribute) and outer.attr in ("shape", "ndim", "size"):
        return "shape"
    if isinstance(outer, ast.keyword) and outer.arg is not None:
        outer = around.get(outer)  # `model(input_ids=ids)`
    if isinstance(outer, ast.Call) and outer.func is not use:
        called = outer.func
        if is_model_call(outer) or (
            isinstance(called, ast.Attribute) and called.attr == "generate" and is_model_name(last_name(called.value))
        ):
            return "model"
        return "loss" if is_loss_name(last_name(called)) else None
    return None


def moves_itself(machine: Moves) -> bool:
    """Whether the file has a class, not a module, with a `to` of its own, which may move in place."""
    return any(not class_.is_module and class_.method("to") is not None for class_ in tuple(machine.classes.values()))


def gives_another(class_: ast.ClassDef, method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a method of a class that holds tensors gives a new object of it and leaves its own as it is: all fields are
    annotated as tensors or constants, it binds no attribute, and calls nothing for its effect alone."""
    fields = [node.annotation for node in class_.body if isinstance(node, ast.AnnAssign)]
    said = {n.id if isinstance(n, ast.Name) else getattr(n, "attr", "") for field in fields for n in walk(field)}
    if "Tensor" not in said or not said - {""} <= _FIELDS or method.decorator_list:
        return False
    given = [node.value for node in own_nodes(method) if isinstance(node, ast.Return)]
    if not given or not all(isinstance(value, ast.Call) and is_maker(value, class_.name) for value in given):
        return False
    for node in own_nodes(method):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            return False
        if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
            return False
    return True


def is_maker(call: ast.Call, name: str) -> bool:
    """Whether a call makes an object of the class around it: `Rollout(...)`, `type(self)(...)`, `replace(self, ...)`."""
    function = call.func
    if isinstance(function, ast.Call):
        return isinstance(function.func, ast.Name) and function.func.id == "type"
    return last_name(function) in (name, "__class__", "replace", "_replace")

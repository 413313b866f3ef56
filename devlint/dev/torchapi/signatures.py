"""Signatures: what a definition or an operator schema says about parameters and result."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from devlint.dev.torchapi.schemas import Schema
from devlint.dev.torchapi.source import FunctionNode

_TENSORS = {"Tensor", "torch.Tensor", "Parameter", "nn.Parameter", "torch.nn.Parameter", "Buffer", "nn.Buffer"}
_RESULTS = {
    **dict.fromkeys(_TENSORS, "tensor"),
    **dict.fromkeys(("_bool", "bool", "py_bool", "builtins.bool"), "bool"),
    **dict.fromkeys(("_int", "int", "_float", "float", "Number", "_complex", "SymInt", "builtins.int"), "number"),
    **dict.fromkeys(("None", "NoReturn"), "none"),
    **dict.fromkeys(("_device", "device", "torch.device"), "device"),
    **dict.fromkeys(("_dtype", "dtype", "torch.dtype"), "dtype"),
    **dict.fromkeys(("Size", "torch.Size", "_size"), "size"),
    **dict.fromkeys(("str", "LiteralString"), "str"),
    **dict.fromkeys(("Self", "T"), "same"),
    **dict.fromkeys(("Generator", "torch.Generator", "torch._C.Generator"), "generator"),
    **dict.fromkeys(("Stream", "torch.Stream", "torch.cuda.Stream"), "stream"),
    **dict.fromkeys(("Event", "torch.Event", "torch.cuda.Event"), "event"),
    **dict.fromkeys(("Module", "nn.Module", "torch.nn.Module"), "module"),
    **dict.fromkeys(("numpy.ndarray", "np.ndarray"), "ndarray"),
    **dict.fromkeys(("UntypedStorage", "TypedStorage", "torch.UntypedStorage", "torch.TypedStorage"), "storage"),
    **dict.fromkeys(("TensorBase", "Tensor | None"), "tensor"),
}
_DOC_ARROW = re.compile(r"^\s*[\w.]+\([^\n]*\)\s*->\s*([^\n]+)", re.M)


@dataclass(frozen=True, slots=True)
class Param:
    """type: "tensor", "tensors" or ""; place: "positional", "keyword", "var" (`*args`), "kwvar" (`**kwargs`)."""

    name: str
    type: str
    place: str
    default: str | None = None
    may_be_tensor: bool = False


@dataclass(frozen=True, slots=True)
class Overload:
    params: tuple[Param, ...]
    result: str


def _members(annotation: ast.AST) -> list[ast.AST]:
    """The members of a union, whichever way it is written."""
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        return [*_members(annotation.left), *_members(annotation.right)]
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            return _members(ast.parse(annotation.value, mode="eval").body)
        except SyntaxError:
            return [annotation]
    if isinstance(annotation, ast.Subscript):
        name = ast.unparse(annotation.value).rpartition(".")[2]
        if name == "Optional":
            return [*_members(annotation.slice), ast.Constant(None)]
        if name == "Union":
            parts = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
            return [m for part in parts for m in _members(part)]
    return [annotation]


def _plain(node: ast.AST) -> str:
    return ast.unparse(node)


def param_type(annotation: ast.AST | None) -> str:
    """ "tensor" if nothing but a tensor or None fits, "tensors" for collections of tensors, else ""."""
    if annotation is None:
        return ""
    members = [m for m in _members(annotation) if _plain(m) != "None"]
    if not members:
        return ""
    names = [_plain(m) for m in members]
    if all(n in _TENSORS for n in names):
        return "tensor"
    collections = [n for n in names if re.match(r"(tuple|list|Tuple|List|Sequence|Iterable|Iterator)\[", n)]
    if len(collections) == len(names) and all(re.search(r"\bTensor\b", n) for n in names):
        return "tensors"
    if names == ["_TensorOrTensors"] or names == ["_tensor_or_tensors"] or names == ["TensorOrTensors"]:
        return "tensors"
    return ""


def _may_be_tensor(annotation: ast.AST | None) -> bool:
    return annotation is not None and re.search(r"\bTensors?\b|TensorOrTensors", ast.unparse(annotation)) is not None


def result_type(annotation: ast.AST | None) -> str:
    """The `result` word of a return annotation; "unknown" when there is none, "object" for other types."""
    if annotation is None:
        return "unknown"
    kinds = set()
    for member in _members(annotation):
        text = _plain(member)
        if text == "None" and len(_members(annotation)) > 1:
            continue
        if text in _RESULTS:
            kinds.add(_RESULTS[text])
        elif text.startswith(("torch.return_types.", "return_types.")):
            kinds.add("tensors")
        elif text.startswith(("TypeIs[", "TypeGuard[", "_TypeIs[", "typing_extensions.TypeIs[")):
            kinds.add("bool")
        elif re.match(r"(tuple|list|Tuple|List|Sequence|Iterator|Iterable)\[", text):
            inner = text[text.index("[") + 1 : -1]
            parts = {p.strip() for p in re.sub(r"\[.*\]", "", inner).split(",")} - {"..."}
            kinds.add("tensors" if parts and parts <= _TENSORS else "object")
        elif text in ("Any", "object") or text.startswith("Callable") or text in ("_T", "_P", "R"):
            return "unknown"
        else:
            kinds.add("object")
    return kinds.pop() if len(kinds) == 1 else "unknown"


def _doc_result(node: FunctionNode) -> str:
    """The result that the first line of a docstring announces (`norm(input) -> Tensor`)."""
    doc = ast.get_docstring(node, clean=True) or ""
    found = _DOC_ARROW.match(doc)
    return doc_result_word(found.group(1)) if found else "unknown"


def doc_result_word(text: str) -> str:
    """The `result` word of what a docstring's signature line says after the arrow."""
    text = text.strip().rstrip(".").strip("`")
    if text.startswith("("):
        inner = {p.strip().split(" ")[0] for p in text.strip("()").split(",")}
        return "tensors" if inner <= {"Tensor", "LongTensor", "IntTensor", "BoolTensor"} else "object"
    if re.match(r"(List|list|Tuple|tuple|seq|sequence)\b.*Tensor", text):
        return "tensors"
    word = text.split(" ")[0]
    if word in ("Tensor", "LongTensor", "BoolTensor", "IntTensor"):
        return "tensor" if "or" not in text.split(" ")[1:2] else "unknown"
    return _RESULTS.get(word, "unknown")


def of_node(node: FunctionNode, method: bool) -> Overload:
    """The signature of a Python definition; `method` drops the first parameter unless it is static."""
    a = node.args
    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)
    positional: list[ast.arg] = [*a.posonlyargs, *a.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(a.defaults)) + list(a.defaults)
    pairs = list(zip(positional, defaults, strict=True))
    if method and not static and pairs:
        pairs = pairs[1:]
    params = [
        Param(
            p.arg,
            param_type(p.annotation),
            "positional",
            ast.unparse(d) if d is not None else None,
            _may_be_tensor(p.annotation),
        )
        for p, d in pairs
        if not p.arg.startswith("__")
    ]
    if a.vararg is not None:
        kind = "tensors" if param_type(a.vararg.annotation) == "tensor" else ""
        params.append(Param(a.vararg.arg, kind, "var", None, _may_be_tensor(a.vararg.annotation)))
    for p, kd in zip(a.kwonlyargs, a.kw_defaults, strict=True):
        params.append(Param(p.arg, param_type(p.annotation), "keyword", ast.unparse(kd) if kd is not None else None))
    if a.kwarg is not None:
        params.append(Param(a.kwarg.arg, "", "kwvar"))
    result = result_type(node.returns)
    if result == "unknown" and node.returns is None:
        result = _doc_result(node)
    return Overload(tuple(params), result)


_SCHEMA_RESULT = {
    "Tensor": "tensor",
    "Tensor[]": "tensors",
    "bool": "bool",
    "int": "number",
    "SymInt": "number",
    "float": "number",
    "Scalar": "number",
    "ScalarType": "dtype",
    "SymBool": "bool",
}


def of_schema(schema: Schema, method: bool) -> Overload:
    """The signature of an operator as Python sees it: `self` is called `input`, and is dropped for a method."""
    params = []
    for argument in schema.arguments:
        if argument.name == "self" and method:
            continue
        name = "input" if argument.name == "self" else argument.name
        kind = "tensor" if argument.is_tensor else "tensors" if argument.is_tensors else ""
        params.append(
            Param(name, kind, "keyword" if argument.keyword_only else "positional", argument.default, bool(kind))
        )
    if schema.is_out:
        written = {a.name for a in schema.arguments if a.written and a.keyword_only}
        params = [p for p in params if p.name not in written] + [Param("out", "", "keyword", "None")]
    returns = schema.returns
    if len(returns) > 1:
        result = "tensors" if all(r.startswith("Tensor") for r in returns) else "object"
    else:
        result = _SCHEMA_RESULT.get(returns[0], "unknown") if returns else "none"
    return Overload(tuple(params), result)


def of_nodes(nodes: Iterable[ast.AST], method: bool = False) -> list[Overload]:
    return [of_node(n, method) for n in nodes if isinstance(n, FunctionNode)]


@dataclass(frozen=True, slots=True)
class Shape:
    """Overloads folded into one: what a call site can rely on."""

    params: tuple[str, ...]
    tensor_params: tuple[int, ...]
    sequence_params: tuple[int, ...]
    keyword_only: tuple[str, ...]
    names: frozenset[str]
    result: str
    with_dim: str
    defaults: tuple[tuple[str, str], ...]
    takes_tensor: bool


def fold(overloads: Sequence[Overload]) -> Shape:
    """Main overload: the first, extended by the longest that begins with the same names.

    A position is a tensor only if every overload that has it takes nothing else there. The result is what all overloads
    agree on, else "unknown"; a tensor in some and several in others stays unknown.
    """
    lists = [[p for p in o.params if p.place in ("positional", "var")] for o in overloads]
    main = lists[0] if lists else []
    if not main and lists:
        main = max(lists, key=len)
    start = [p.name for p in main]
    for other in lists:
        if len(other) > len(main) and [p.name for p in other[: len(start)]] == start:
            main = other
    names = [("*" if p.place == "var" else "") + p.name for p in main]
    tensors, sequences = [], []
    for i, _ in enumerate(main):
        # An overload that starts with another name than the main one is a deprecated order of arguments.
        at = [o[i].type for o in lists if len(o) > i and (i == 0 or o[0].name == main[0].name)]
        if all(t == "tensor" for t in at):
            tensors.append(i)
        elif all(t == "tensors" for t in at):
            sequences.append(i)
    all_names = {p.name for o in overloads for p in o.params if p.place in ("positional", "keyword")} - {"self"}
    kwvar = any(p.place == "kwvar" for o in overloads for p in o.params)
    result, with_dim = _results(overloads)
    defaults = tuple(sorted({(p.name, p.default) for o in overloads for p in o.params if p.default is not None}))
    only = sorted(all_names - set(names))
    return Shape(
        tuple(names),
        tuple(tensors),
        tuple(sequences),
        (*only, "**") if kwvar else tuple(only),
        frozenset(all_names),
        result,
        with_dim,
        defaults,
        any(p.may_be_tensor for o in overloads for p in o.params if p.name != "out"),
    )


def _results(overloads: Sequence[Overload]) -> tuple[str, str]:
    """What all overloads return; the second word is what those with a required `dim` return, where that differs."""
    every = {o.result for o in overloads} - {"unknown"}
    if len(every) <= 1:
        return (every.pop() if every else "unknown"), ""
    with_dim = {o.result for o in overloads if any(p.name == "dim" and p.default is None for p in o.params)}
    without = {o.result for o in overloads if not any(p.name == "dim" and p.default is None for p in o.params)}
    if len(with_dim) == 1 and len(without) == 1:
        return without.pop(), with_dim.pop()
    return "unknown", ""

"""What a function says of its arguments: annotations, types in docstrings, defaults, and uses that only a tensor stands."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from devlint import knowledge
from devlint.inference.program.definitions import File, Function, dotted
from devlint.inference.terms.places import Path
from devlint.inference.terms.values import Kind

if TYPE_CHECKING:
    from devlint.inference.program.definitions import Class


class Declared(NamedTuple):
    """What an annotation says: a kind, a class of the project, what a container holds, whether it may be None."""

    kind: Kind | None = None
    class_: Class | None = None
    item: Declared | None = None
    optional: bool = False


UNDECLARED = Declared()

_KINDS: dict[str, Kind] = {
    "int": "number", "float": "number", "complex": "number", "bool": "bool", "str": "string", "bytes": "string",
    "numpy.ndarray": "array", "torch.device": "device", "torch.dtype": "dtype", "torch.Size": "size",
    "torch.types.Device": "device", "numbers.Number": "number", "typing.SupportsFloat": "number",
    "pathlib.Path": "other", "torch.Generator": "generator",
}  # fmt: skip
_FAMILIES: dict[str, Kind] = {"Tensor": "tensor", "Module": "module", "Optimizer": "optimizer", "DataLoader": "loader"}
_CONTAINERS = frozenset(
    [
        "list",
        "List",
        "tuple",
        "Tuple",
        "Sequence",
        "Iterable",
        "Iterator",
        "Generator",
        "Set",
        "set",
        "MutableSequence",
        "Collection",
        "AsyncIterator",
    ]
)
_MAPPINGS = frozenset(["dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "DefaultDict", "defaultdict"])
#: The annotations of jaxtyping name the array first: `Float[Tensor, "b n"]` [jaxtyping documentation, "API"].
_JAXTYPING = "jaxtyping."


def declared(file: File, node: ast.expr | None) -> Declared:
    """What an annotation says."""
    if node is None:
        return UNDECLARED
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return declared(file, ast.parse(node.value, mode="eval").body)
        except SyntaxError:
            return UNDECLARED
    if isinstance(node, ast.Constant) and node.value is None:
        return Declared("none", optional=True)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([declared(file, node.left), declared(file, node.right)])
    if isinstance(node, ast.Subscript):
        return _generic(file, node)
    if isinstance(node, (ast.Name, ast.Attribute)):
        return _named(file, node)
    return UNDECLARED


def _union(members: list[Declared]) -> Declared:
    kinds = [each for each in members if each.kind != "none"]
    optional = len(kinds) < len(members) or any(each.optional for each in kinds)
    return kinds[0]._replace(optional=optional) if len(kinds) == 1 else Declared(optional=optional)


def _generic(file: File, node: ast.Subscript) -> Declared:
    name = file.qualified(node.value) or dotted(node.value) or ""
    last = name.rpartition(".")[2]
    inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if last in ("Optional", "Union"):
        members = [declared(file, each) for each in inner]
        return _union([*members, Declared("none")] if last == "Optional" else members)
    if last in ("Annotated", "Final", "ClassVar") or name.startswith(_JAXTYPING):
        return declared(file, inner[0])
    if last in _CONTAINERS:
        items = [declared(file, each) for each in inner if not (isinstance(each, ast.Constant) and each.value is ...)]
        same = items[0] if items and all(item == items[0] for item in items) else UNDECLARED
        return Declared("list", item=same)
    if last in _MAPPINGS:
        return Declared("dict", item=declared(file, inner[-1]))
    return UNDECLARED


def _named(file: File, node: ast.Name | ast.Attribute) -> Declared:
    name = file.qualified(node) or dotted(node) or ""
    if name in _KINDS:
        return Declared(_KINDS[name])
    record = knowledge.cls(name) if name.startswith("torch") else None
    if record is not None:
        return Declared(_FAMILIES.get(record.family, "other"))
    last = name.rpartition(".")[2]
    if name == last and last in _CONTAINERS:
        return Declared("list")
    if last in _MAPPINGS and (name == last or name.startswith("typing.")):
        return Declared("dict")
    from devlint.inference.program.definitions import Class

    found = file.classes.get(name) or (file.project.find(file, name) if file.project is not None else None)
    return Declared("instance", found) if isinstance(found, Class) else UNDECLARED


# -- docstrings

_ENTRY = re.compile(r"^\s*(?::param\s+)?\*{0,2}`{0,2}(\w+)`{0,2}\s*(?:\(([^)\n]*)\)|:\s*([^\n]*))", re.M)
_SPHINX = re.compile(r":type\s+(\w+)\s*:\s*([^\n]*)|:param\s+([\w.:~`]+)\s+(\w+)\s*:")
_TENSOR_TYPE = re.compile(r"^[`~:\w.]*?(?:torch\.)?(?:\w*Tensor)`?(?:\s*[,\[(|].*|\s+of\b.*|\s*,?\s*optional.*)?\.?$")


def documented_tensors(function: Function) -> frozenset[str]:
    """The arguments that the docstring's list of arguments calls a tensor and nothing else."""
    body = function.node.body
    if not isinstance(body, list) or not body or not isinstance(body[0], ast.Expr):
        return frozenset()
    text = getattr(body[0].value, "value", None)
    if not isinstance(text, str) or "Tensor" not in text:
        return frozenset()
    found = set()
    for match in _SPHINX.finditer(text):
        name, type = (match[1], match[2]) if match[1] else (match[4], match[3])
        if _is_tensor_type(type):
            found.add(name)
    for match in _ENTRY.finditer(text):
        if _is_tensor_type(match[2] or match[3] or ""):
            found.add(match[1])
    return frozenset(found)


def _is_tensor_type(text: str) -> bool:
    return len(text) < 80 and " or " not in text and "List" not in text and bool(_TENSOR_TYPE.match(text.strip()))


# -- uses


@cache
def tensor_only_methods() -> frozenset[str]:
    """Methods that tensors have and that no number, array, list, data frame or image has.

    Source: torch's own list of methods, less those of Python's types, numpy's arrays, pandas' frames and PIL's images.
    """
    others: set[str] = set()
    for type in (list, dict, str, set, float, int, bytes, tuple):
        others.update(dir(type))
    others.update(knowledge.methods("Module"), knowledge.methods("Optimizer"), _NUMPY.split(), _OTHERS.split())
    return frozenset(knowledge.methods("Tensor")) - others | {
        "numel",
        "data_ptr",
        "unsqueeze",
        "detach",
        "is_cuda",
        "index_select",
    }


_NUMPY = """all any argmax argmin argpartition argsort astype byteswap choose clip compress conj conjugate copy cumprod cumsum
    diagonal dot dump dumps fill flatten getfield item itemset max mean min nonzero partition prod ptp put ravel repeat reshape
    resize round searchsorted setfield setflags sort squeeze std sum swapaxes take tobytes tofile tolist trace transpose var
    view random normal uniform exponential integers permutation device to_device"""
_OTHERS = """abs add div mul sub mod pow eq ne lt le gt ge isna fillna where map values names apply corr cov median mode
    quantile rank log crop rotate convert close flush seek read write sample shuffle dim size select filter lower split
    backward data
    requires_grad grad shape dtype T H stride roll diff tile get_device clamp is_floating_point expand bool int float double
    half logical_and logical_or logical_not exp sqrt square sign floor ceil sin cos tan cross inner outer kron unique
    unfold type_as masked_fill softmax norm matmul mm bmm histc ldexp frexp hypot angle imag real isnan isinf isfinite equal
    truncate align expanding rolling div_ sub_ add_ mul_ type to cpu cuda detach_ share_memory_ numpy coalesce indices
    crow_indices ger name is_sparse is_quantized is_meta layout names output_nr retain_grad nbytes itemsize polygamma"""
_ATTRIBUTES = frozenset({"is_cuda", "grad_fn", "is_leaf"})


def _is_view(node: ast.expr) -> bool:
    return isinstance(node, ast.Slice) or (isinstance(node, ast.Constant) and node.value in (None, Ellipsis))


def used_as_tensors(file: File, function: Function, roots: frozenset[str], beside: bool = False) -> frozenset[Path]:
    """The access paths that the body uses as only a tensor can be used, before it binds their names itself.

    `roots`: the names of its arguments and of its object. `beside`: a protocol calls the function with tensors, so that what
    is indexed in several dimensions is one and no array.
    """
    return file.once(("tensors", id(function.node), beside), lambda: _used_as_tensors(file, function, roots, beside))


#: Builtins that are asked what a value is.
_ASKS_TYPES = frozenset({"isinstance", "type", "hasattr"})


def _used_as_tensors(file: File, function: Function, roots: frozenset[str], beside: bool) -> frozenset[Path]:
    found: list[tuple[Path, int]] = []
    either: set[str] = set()
    read: dict[Path, set[str]] = {}
    bound: dict[str, int] = {}
    for node in file.nodes_of(function.node):
        kind = type(node)
        if kind is ast.Name:
            if node.id in roots and type(node.ctx) is ast.Store:  # type: ignore[attr-defined]
                bound[node.id] = min(bound.get(node.id, node.lineno), node.lineno)  # type: ignore[attr-defined]
            continue
        if kind is ast.Attribute and node.attr in ("device", "shape", "dtype"):  # type: ignore[attr-defined]
            target = path_of(node.value)  # type: ignore[attr-defined]
            if target is not None and target[0] in roots and target != ("self",):
                read.setdefault(target, set()).add(node.attr)  # type: ignore[attr-defined]
                if "device" in read[target] and len(read[target]) > 1:
                    found.append((target, node.lineno))  # type: ignore[attr-defined]
        elif kind is ast.Subscript:
            if beside and isinstance(node.slice, ast.Tuple) and any(map(_is_view, node.slice.elts)):  # type: ignore[attr-defined]
                target = path_of(node.value)  # type: ignore[attr-defined]
                if target is not None and target[0] in roots and target != ("self",):
                    found.append((target, node.lineno))  # type: ignore[attr-defined]
            continue
        elif kind is ast.Call and type(node.func) is ast.Name and node.func.id in _ASKS_TYPES:  # type: ignore[attr-defined]
            asked = node.args[:1]  # type: ignore[attr-defined]
            either.update(inner.id for arg in asked for inner in ast.walk(arg) if isinstance(inner, ast.Name))
        for path, line in _tensor_uses(file, node):
            if path[0] in roots and path != ("self",):
                found.append((path, line))
    return frozenset(path for path, line in found if path[0] not in either and line <= bound.get(path[0], line))


def _tensor_uses(file: File, node: ast.AST) -> Iterator[tuple[Path, int]]:
    target: ast.AST | None = None
    if isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES and isinstance(node.ctx, ast.Load):
        target = node.value
    elif isinstance(node, ast.Call):
        if (isinstance(node.func, ast.Attribute) and node.func.attr in tensor_only_methods()) or (
            isinstance(node.func, ast.Attribute)
            and node.func.attr in ("size", "dim", "type_as")
            and len(node.args) <= 1
        ):
            target = node.func.value
        name = file.qualified(node.func)
        record = knowledge.function(name) if name is not None and name.startswith("torch.") else None
        if record is not None and record.result in ("tensor", "tensors"):
            for position in record.tensors_among(len(node.args)):
                path = path_of(node.args[position])
                if path is not None:
                    yield path, node.lineno
    if target is not None:
        path = path_of(target)
        if path is not None:
            yield path, target.lineno  # type: ignore[attr-defined]


def path_of(node: ast.AST) -> Path | None:
    """The access path that an expression is: names, attributes and constant items."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        base = path_of(node.value)
        return (*base, f".{node.attr}") if base is not None else None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        base = path_of(node.value)
        return (*base, f"[{node.slice.value!r}]") if base is not None else None
    return None

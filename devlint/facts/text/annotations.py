"""What annotations say: a tensor, a structure of tensors, a tensor among other things."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from types import MappingProxyType

_TYPES = ("", "Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Byte", "Bool")
_CLASSES = frozenset({*(f"{name}Tensor" for name in _TYPES), "OptTensor"})
_ALIAS = re.compile(r"^Tensor(s$|Or|Type|Like)|OrTensors?$")
_DICTS = frozenset({"Dict", "dict", "Mapping", "MutableMapping", "OrderedDict", "DefaultDict", "defaultdict"})
_SEVERAL = _DICTS | {"List", "list", "Tuple", "tuple", "Sequence", "Iterable", "Iterator"}
_ANNOTATIONS = _CLASSES | {f"torch.{name}" for name in _CLASSES}
#: Annotations of arrays with a shape [jaxtyping's documentation, `Float[Tensor, "batch channel"]`].
_SHAPED = frozenset(
    {
        "Shaped", "Bool", "Key", "Num", "Inexact", "Float", "Complex", "Integer", "UInt", "Int", "Real", "BFloat16",
        *(f"{name}{bits}" for name in ("Float", "Int", "UInt") for bits in (8, 16, 32, 64)), "Complex64", "Complex128",
    }
)  # fmt: skip
_OTHER_TENSORS = frozenset({"tensorflow", "paddle", "jax", "mxnet", "tinygrad", "mindspore", "oneflow"})


def is_array_annotation(node: ast.expr | None) -> bool:
    """Whether an annotation says array of numpy: `np.ndarray`, `NDArray[np.float64]`."""
    named = node.value if isinstance(node, ast.Subscript) else node
    name = named.id if isinstance(named, ast.Name) else getattr(named, "attr", "")
    return name in ("ndarray", "NDArray")


def is_tensor_annotation(node: ast.expr | None, names: Mapping[str, str] = MappingProxyType({})) -> bool:
    """Whether an annotation says tensor: `Tensor`, `torch.Tensor`, `Optional[Tensor]`, `Tensor | None`, also as text."""
    if node is None:
        return False
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        text = node.value.replace(" ", "")
        for wrap in ("Optional[", "|None", "]", "None|"):
            text = text.replace(wrap, "")
        return text in _ANNOTATIONS
    if isinstance(node, ast.Name):
        return _names_tensor(names.get(node.id, node.id))
    if isinstance(node, ast.Attribute):
        root = node.value
        return isinstance(root, ast.Name) and _names_tensor(f"{names.get(root.id, root.id)}.{node.attr}")
    if isinstance(node, ast.Subscript):
        name = node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")
        if name == "Optional":
            return is_tensor_annotation(node.slice, names)
        first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
        if name == "TensorType":  # `TensorType["batch", "channel"]`
            return isinstance(node.value, ast.Name) and names.get(name, "").startswith("torchtyping.")
        if name in ("Tensor", "Annotated"):
            return is_tensor_annotation(first if name == "Annotated" else node.value, names)
        if name not in _SHAPED:
            return False
        if isinstance(node.slice, ast.Tuple):
            return is_tensor_annotation(first, names)
        # `Float["batch channel"]`: a project's own short form, where its tensors are torch's
        imported = isinstance(node.value, ast.Name) and names.get(name, "").endswith(f".{name}")
        of_project = imported and names[name].split(".", 1)[0] not in ("jaxtyping", "typing", *_OTHER_TENSORS)
        return of_project and isinstance(first, ast.Constant) and isinstance(first.value, str)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = [s for s in (node.left, node.right) if not (isinstance(s, ast.Constant) and s.value is None)]
        return bool(sides) and all(is_tensor_annotation(s, names) for s in sides)
    return False


def _names_tensor(qualname: str) -> bool:
    """`torch.Tensor` under its own name, or handed on by a project's module (`from .core import Tensor`)."""
    package, _, name = qualname.rpartition(".")
    if qualname == "torch.tensor":
        return True  # the function, written for the class
    return name in _CLASSES and package.split(".", 1)[0] not in _OTHER_TENSORS


def says_container(node: ast.expr) -> bool:
    """Whether an annotation says a container and nothing of what is in it: `tuple`, `List`."""
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name in ("tuple", "Tuple", "list", "List", "Sequence")


def holds_tensors(node: ast.expr | None, names: Mapping[str, str]) -> bool:
    """Whether an annotation says tensors in a structure: `List[Tensor]`, `Dict[str, torch.Tensor]`, `Tuple[Tensor, ...]`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return False
    if not isinstance(node, ast.Subscript):
        return False
    name = node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")
    if name == "Optional":
        return holds_tensors(node.slice, names)
    if name not in _SEVERAL:
        return False
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if name in _DICTS:
        parts = parts[1:]
    parts = [p for p in parts if not (isinstance(p, ast.Constant) and p.value is ...)]
    return bool(parts) and all(is_tensor_annotation(p, names) or holds_tensors(p, names) for p in parts)


def may_be_tensor(node: ast.expr | None, names: Mapping[str, str]) -> bool:
    """Whether an annotation says tensor among other things: `Union[Tensor, float]`, `int | Tensor`."""
    parts: list[ast.expr] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        parts = [node.left, node.right]
    elif isinstance(node, (ast.Name, ast.Attribute)):
        name = node.id if isinstance(node, ast.Name) else node.attr
        return _ALIAS.search(name) is not None  # `TensorOrTupleOfTensors`, `TensorType`: the project's own names
    elif isinstance(node, ast.Subscript):
        name = node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")
        if name in ("Union", "Optional"):
            parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(is_tensor_annotation(p, names) or holds_tensors(p, names) or may_be_tensor(p, names) for p in parts)


def knows_other_tensors(names: Mapping[str, str]) -> bool:
    """Whether a file imports another framework, whose tensors have `numpy()` as well."""
    return any(target.split(".", 1)[0] in _OTHER_TENSORS for target in names.values())

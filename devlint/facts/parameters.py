"""Which parameters of a function are tensors: by annotation, or by a use that only a tensor supports."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable, Mapping
from types import MappingProxyType

from devlint.facts.values import Value

#: Attributes that a tensor has and an ndarray, a module, a list or a number has not [torch.Tensor's documentation].
_PROPERTIES = frozenset({"is_cuda", "grad_fn", "layout"})
TENSOR_ONLY = frozenset(
    {
        "unsqueeze", "permute", "contiguous", "detach", "numel", "new_zeros", "new_ones", "new_empty", "new_full",
        "new_tensor", "expand", "expand_as", "type_as", "masked_fill", "masked_fill_", "masked_select", "scatter",
        "scatter_", "scatter_add_", "gather", "index_select", "index_fill_", "chunk", "log_softmax", "sigmoid", "bmm",
        "matmul", "mm", "unbind", "is_cuda", "grad_fn", "mul_", "add_", "sub_", "div_", "unsqueeze_", "squeeze_",
        "long", "dim", "narrow", "unfold", "view_as", "reshape_as", "is_floating_point", "is_contiguous", "numpy",
        "retain_grad", "addmm", "lerp_", "copy_", "zero_", "fill_", "normal_", "uniform_", "clamp_", "repeat_interleave",
        "element_size", "layout", "requires_grad_", "addcmul_", "addcdiv_", "logsumexp", "index_add_", "backward",
    }
)  # fmt: skip
_TENSOR_OR_ARRAY = frozenset({"size", "view", "shape", "float", "softmax", "clamp", "ndim", "mean", "sum", "tanh"})
_NOT_EVIDENCE = frozenset(
    {
        "torch.tensor", "torch.as_tensor", "torch.asarray", "torch.from_numpy", "torch.is_tensor", "torch.Tensor",
        "torch.device", "torch.save", "torch.load", "torch.manual_seed", "torch.Size", "torch.stack", "torch.cat",
    }
)  # fmt: skip
_CONVERSIONS = frozenset({"torch.tensor", "torch.as_tensor", "torch.asarray", "torch.from_numpy"})
_CLASSES = frozenset({"Tensor", "FloatTensor", "LongTensor"})
_ANNOTATIONS = _CLASSES | {f"torch.{name}" for name in _CLASSES}
_OTHER_TENSORS = frozenset({"tensorflow", "paddle", "jax", "mxnet", "tinygrad", "mindspore", "oneflow"})


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
        return name == "Optional" and is_tensor_annotation(node.slice, names)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = (node.left, node.right)
        none = [s for s in sides if isinstance(s, ast.Constant) and s.value is None]
        return len(none) == 1 and any(is_tensor_annotation(s, names) for s in sides)
    return False


def _names_tensor(qualname: str) -> bool:
    """`torch.Tensor` under its own name, or handed on by a project's module (`from .core import Tensor`)."""
    package, _, name = qualname.rpartition(".")
    return name in _CLASSES and package.split(".", 1)[0] not in _OTHER_TENSORS


class Evidence:
    """The uses of a function's parameters, read in one walk over its body."""

    def __init__(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
        nodes: Iterable[ast.AST],
        names: dict[str, str],
        forward: bool,
        own_methods: Container[str] = (),
    ) -> None:
        self.own_methods = own_methods
        self.tensors: set[str] = set()
        self.devices: set[str] = set()
        self.modules: set[str] = set()
        self.narrowed: set[str] = set()  # the code asks what they are: `isinstance(x, ...)`, `hasattr(x, ...)`
        self.arrays: set[str] = set()  # given to numpy
        self.converted: set[str] = set()  # made into a tensor here, so no tensor before
        self.containers: set[str] = set()  # a tensor, or a sequence of tensors
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        self.parameters = {a.arg for a in every}
        annotated = {a.arg for a in every if a.annotation is not None}
        self.annotated = {a.arg for a in every if is_tensor_annotation(a.annotation, names)}  # as tensors
        self.weak: set[str] = set()  # what shows that they are tensors fits arrays as well
        self.tensors |= self.annotated
        open_ = self.parameters - annotated - {"self", "cls"}
        nodes = list(nodes)
        called = {id(child.func) for child in nodes if isinstance(child, ast.Call)}
        doubtful = {id(child.func) for child in nodes if isinstance(child, ast.Call) and fits_others(child)}
        for child in nodes:
            if isinstance(child, ast.Attribute) and isinstance(child.value, ast.Name):
                name = child.value.id
                is_used = id(child) in called or child.attr in _PROPERTIES  # `config.dim` is no method of a tensor
                if name in open_ and child.attr in TENSOR_ONLY and is_used and id(child) not in doubtful:
                    self.tensors.add(name)
                elif name in open_ and forward and child.attr in _TENSOR_OR_ARRAY:
                    self.weak.add(name)
                elif name in open_ and child.attr in ("parameters", "state_dict", "eval", "named_parameters"):
                    self.modules.add(name)
            elif isinstance(child, ast.Attribute) and child.attr in TENSOR_ONLY and isinstance(child.value, ast.Call):
                root = _method_chain(child.value)
                if root in open_:
                    self.tensors.add(root)
            elif isinstance(child, ast.Call):
                self._call(child, open_, names, forward)
            elif forward and isinstance(child, ast.Subscript) and isinstance(child.value, ast.Name):
                key = child.slice
                if child.value.id in open_ and isinstance(key, ast.Tuple):
                    self.weak.add(child.value.id)
        self.weak -= self.tensors
        self.tensors |= self.weak
        self.tensors -= self.modules | (self.converted & open_)
        self.narrowed |= self.arrays & open_  # given to numpy: host data, in one branch at least

    def _call(self, call: ast.Call, open_: set[str], names: dict[str, str], forward: bool) -> None:
        for keyword in call.keywords:
            if keyword.arg in ("device", "map_location", "device_type") and isinstance(keyword.value, ast.Name):
                self.devices.add(keyword.value.id)
        function = call.func
        if isinstance(function, ast.Name):
            asks = function.id in ("isinstance", "hasattr", "type") or function.id.startswith("is_")
            if asks and call.args and isinstance(call.args[0], ast.Name):
                self.narrowed.add(call.args[0].id)
            return
        if not isinstance(function, ast.Attribute):
            return
        if function.attr in ("to", "cuda") and call.args and isinstance(call.args[0], ast.Name):
            if call.args[0].id in self.parameters and reads_like_device(call.args[0].id):
                self.devices.add(call.args[0].id)
            return
        root = function.value
        chain = [function.attr]
        while isinstance(root, ast.Attribute):
            chain.append(root.attr)
            root = root.value
        if not isinstance(root, ast.Name):
            return
        first = call.args[0] if call.args else None
        if root.id == "self":
            is_submodule = len(chain) == 1 and chain[0] not in self.own_methods
            if forward and is_submodule and isinstance(first, ast.Name) and first.id in open_:
                self.tensors.add(first.id)
            return
        target = names.get(root.id)
        if target is not None and target.split(".", 1)[0] == "numpy" and isinstance(first, ast.Name):
            self.arrays.add(first.id)
        if target is None or not target.startswith("torch"):
            return
        qualname = ".".join([target, *reversed(chain)])
        if qualname == "torch.device":
            if isinstance(first, ast.Name):
                self.devices.add(first.id)
        elif qualname == "torch.is_tensor":
            if isinstance(first, ast.Name):
                self.narrowed.add(first.id)
        elif qualname in _CONVERSIONS:
            while isinstance(first, (ast.Subscript, ast.Attribute)):
                first = first.value
            if isinstance(first, ast.Name):
                self.arrays.add(first.id)
                self.converted.add(first.id)
        elif qualname not in _NOT_EVIDENCE and _first_is_tensor(qualname):
            if isinstance(first, ast.Name) and first.id in open_:
                self.tensors.add(first.id)
            elif isinstance(first, ast.Subscript) and isinstance(first.value, ast.Name) and first.value.id in open_:
                self.containers.add(first.value.id)


def fits_others(call: ast.Call) -> bool:
    """Whether a call of a tensor's method is written as one of another object: `ax.scatter(x, y)`, `engine.backward(loss)`."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if name in ("scatter", "gather"):
        first = call.args[0] if call.args else None
        first = first.operand if isinstance(first, ast.UnaryOp) else first
        is_dimension = isinstance(first, ast.Constant) and isinstance(first.value, int)
        named = any(k.arg in ("dim", "index") for k in call.keywords)
        return not (is_dimension or named or (isinstance(first, ast.Name) and "dim" in first.id))
    return name == "backward" and bool(call.args)


def _method_chain(node: ast.expr) -> str | None:
    """`x` for `x.int().flatten()`: calls of tensor methods on a name. None for anything else."""
    from devlint import knowledge

    while isinstance(node, ast.Call):
        function = node.func
        if not isinstance(function, ast.Attribute) or knowledge.method("Tensor", function.attr) is None:
            return None
        node = function.value
    return node.id if isinstance(node, ast.Name) else None


def reads_like_device(name: str) -> bool:
    """Whether a name reads like a device rather than a dtype or a tensor."""
    return "dev" in name.lower() or name in ("gpu", "rank", "local_rank", "gpu_id", "cuda")


def _first_is_tensor(qualname: str) -> bool:
    from devlint import knowledge

    function = knowledge.function(qualname)
    return function is not None and 0 in function.tensor_params


def default_value(node: ast.expr | None) -> Value | None:
    """What a parameter's default tells when nothing else does: only that None is no tensor."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
        return Value("number")
    return None

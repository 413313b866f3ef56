"""What a condition says about devices: availability tests, `is_cuda`, comparisons of a device type."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Set
from dataclasses import dataclass
from functools import lru_cache

from devlint.facts.text.classes import MODULE
from devlint.facts.values import ACCELERATORS, Value

#: A function that gives the qualified name of an expression ("torch.cuda.is_available"), or None.
Qualify = Callable[[ast.expr], "str | None"]
#: A function that gives what is known of an expression.
Evaluate = Callable[[ast.expr], Value]

_AVAILABLE = {
    "torch.cuda.is_available": "cuda",
    "torch.cuda.device_count": "cuda",
    "torch.cuda.is_initialized": "cuda",
    "torch.cuda.is_bf16_supported": "cuda",
    "torch.xpu.is_available": "xpu",
    "torch.xpu.device_count": "xpu",
    "torch.npu.is_available": "npu",
    "torch.mtia.is_available": "mtia",
    "torch.mps.is_available": "mps",
    "torch.backends.mps.is_available": "mps",
    "torch.backends.cuda.is_built": "cuda",
    "torch.has_cuda": "cuda",
    "torch.accelerator.is_available": "accelerator",
    "torch.accelerator.device_count": "accelerator",
    "torch.accelerator.current_accelerator": "accelerator",
}

#: How libraries name the same question: `accelerate.utils.is_xpu_available`, `transformers.utils.is_torch_mps_available`.
_ASKS = re.compile(r"\bis_(?:torch_)?(\w+)_available$")
#: The classes of tensors of the CPU by dtype: no tensor elsewhere is an instance [torch/csrc/tensor/python_tensor.cpp].
_LEGACY = re.compile(r"torch\.(?:BFloat16|Bool|Byte|Char|Double|Float|Half|Int|Long|Short)Tensor\Z")
#: Classes of what may hold tensors.
_CONTAINERS = frozenset({"builtins.list", "builtins.tuple", "builtins.dict", "builtins.set"})
#: Names of functions that are true of what is no tensor: of a sparse matrix of scipy, of a placeholder of `torch.fx`.
_NO_TENSOR = frozenset({"issparse", "isspmatrix", "isspmatrix_csr", "isspmatrix_coo", "is_torch_fx_proxy"})
#: Names of what may be the index of a card.
_CARD = re.compile(r"device|gpu|cuda", re.IGNORECASE)
#: Start of the type name of a flag that only holds where the device types behind it are available, see `flag_of`.
FLAG = "holds:"
#: What is true only while a model is exported.
_EXPORTS = frozenset({"is_in_onnx_export", "is_exporting"})
_GET_BACKEND = frozenset({"torch.distributed.get_backend", "torch.distributed.distributed_c10d.get_backend"})
_NCCL_IS_THERE = frozenset(
    {"torch.distributed.is_nccl_available", "torch.distributed.distributed_c10d.is_nccl_available"}
)


_NONE: frozenset[str] = frozenset()  # most conditions say nothing, and share it


@dataclass(slots=True)
class Condition:
    """What is known where a test holds (`when`) and where it does not (`unless`): device types available or not.

    `on_cpu`, `else_on_cpu`: access paths of what is on the CPU where it holds, and where it does not; `no_tensor` and
    `else_no_tensor` of what is no tensor there, `no_module` and `else_no_module` of what is no module. `key`: the test's
    text, for equal tests later.
    """

    key: str
    when: Set[str] = _NONE
    unless: Set[str] = _NONE
    when_not: Set[str] = _NONE
    unless_not: Set[str] = _NONE
    on_cpu: Set[str] = _NONE
    else_on_cpu: Set[str] = _NONE
    no_tensor: Set[str] = _NONE
    else_no_tensor: Set[str] = _NONE
    no_module: Set[str] = _NONE
    else_no_module: Set[str] = _NONE
    has_device: Set[str] = _NONE  # paths of what is asked for its device

    @property
    def tells_values(self) -> bool:
        """Whether it says of some value where it is or what it is, in one branch at least."""
        return bool(
            self.on_cpu or self.else_on_cpu
            or self.no_tensor or self.else_no_tensor or self.no_module or self.else_no_module
        )  # fmt: skip

    def negated(self) -> Condition:
        """The opposite condition."""
        key = self.key[4:] if self.key.startswith("not ") else f"not {self.key}"
        return Condition(
            key, self.unless, self.when, self.unless_not, self.when_not, self.else_on_cpu, self.on_cpu,
            self.else_no_tensor, self.no_tensor, self.else_no_module, self.no_module, self.has_device,
        )  # fmt: skip


def read(
    test: ast.expr, qualify: Qualify, evaluate: Evaluate, source: Callable[[ast.AST], str], is_part: bool = False
) -> Condition:
    """Understand a condition. What it does not understand says nothing. `is_part`: nobody asks for the key."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return read(test.operand, qualify, evaluate, source, is_part).negated()
    condition = Condition("" if is_part else key_of(test, source))
    if isinstance(test, ast.BoolOp):
        parts = [read(value, qualify, evaluate, source, True) for value in test.values]
        if isinstance(test.op, ast.And):
            for part in parts:
                condition.when |= part.when
                condition.when_not |= part.when_not
                condition.on_cpu |= part.on_cpu
                condition.no_tensor |= part.no_tensor
                condition.no_module |= part.no_module
        else:
            for part in parts:
                condition.unless |= part.unless
                condition.unless_not |= part.unless_not
                condition.else_on_cpu |= part.else_on_cpu
                condition.else_no_tensor |= part.else_no_tensor
                condition.else_no_module |= part.else_no_module
        return condition
    if isinstance(test, ast.Call):
        name = qualify(test.func)
        if name in _AVAILABLE:
            condition.when |= {_AVAILABLE[name]}
            condition.unless_not |= {_AVAILABLE[name]}
            return condition
        if test.args and name in ("builtins.isinstance", "torch.is_tensor"):
            path = source(test.args[0])
            types = test.args[1] if len(test.args) > 1 else None
            named = {qualify(t) for t in (types.elts if isinstance(types, ast.Tuple) else [types]) if t is not None}
            if not named.isdisjoint(MODULE):
                condition.else_no_module |= {path}
            if not named or named <= {"torch.Tensor", "torch.autograd.Variable"}:
                condition.else_no_tensor |= {path}
            elif all(n is not None and _LEGACY.match(n) is not None for n in named):
                condition.on_cpu |= {path}
            elif not any(n is None or n.startswith("torch.") or "Tensor" in n for n in named):
                if not path.endswith("]") or named.isdisjoint(_CONTAINERS):  # an item that may hold tensors in turn
                    condition.no_tensor |= {path}
            return condition
        if name is not None and test.args and name.rpartition(".")[2] in _NO_TENSOR:
            condition.no_tensor |= {source(test.args[0])}
            return condition
        if isinstance(test.func, ast.Attribute) and test.func.attr == "startswith" and test.args:
            _device_type(condition, test.func.value, test.args[0], evaluate, source)
        elif isinstance(test.func, ast.Attribute) and test.func.attr == "is_pinned":
            # page-locked memory comes from an accelerator's driver, on nearly every machine that of CUDA
            condition.when |= {"cuda", "accelerator"}
        elif isinstance(test.func, ast.Attribute) and test.func.attr == "is_cuda" and not test.args:
            condition.when |= {"cuda"}  # a method of that name, for what a tensor has as an attribute
            condition.unless_not |= {"cuda"}
            condition.else_on_cpu |= {source(test.func.value)}
        elif name in _NCCL_IS_THERE:
            condition.when |= {"cuda"}
        elif not (test.args or test.keywords or (name or "").startswith(("torch.", "builtins."))):
            _flag(condition, evaluate(test))  # a function that gives the answer: `if on_card():`
            asked = _ASKS.search(name) if name is not None and not condition.when else None
            if asked is not None and asked[1] in ACCELERATORS:
                condition.when |= {asked[1]}
                condition.unless_not |= {asked[1]}
        return condition
    if isinstance(test, ast.Attribute) and test.attr.startswith("is_") and test.attr[3:] in ACCELERATORS:
        condition.when |= {test.attr[3:]}
        condition.unless_not |= {test.attr[3:]}
        condition.has_device |= {source(test.value)}
        if test.attr == "is_cuda":
            condition.else_on_cpu |= {source(test.value)}
        return condition
    if isinstance(test, ast.Attribute) and test.attr == "is_cpu":
        condition.unless |= {"accelerator"}
        condition.on_cpu |= {source(test.value)}
        return condition
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _comparison(test, condition, qualify, evaluate, source)
    _flag(condition, evaluate(test))
    return condition


def asks_for_export(test: ast.expr, qualify: Qualify) -> bool | None:
    """Whether a condition asks if the model is exported now: True where it holds then, False where it does not, else None.

    `torch.onnx.is_in_onnx_export()`, `not torch.onnx.is_in_onnx_export()`. [torch/onnx: set while `export` runs alone]
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = asks_for_export(test.operand, qualify)
        return None if inner is None else not inner
    if not isinstance(test, ast.Call) or test.args or test.keywords:
        return None
    return True if (qualify(test.func) or "").rpartition(".")[2] in _EXPORTS else None


def key_of(test: ast.expr, source: Callable[[ast.AST], str]) -> str:
    """The text of a test, in one line however it is written."""
    text = source(test)
    return in_one_line(test) if "\n" in text else text


@lru_cache(256)
def in_one_line(test: ast.expr) -> str:
    return ast.unparse(test)


def _flag(condition: Condition, value: Value) -> None:
    """A flag that holds the answer: `use_cuda = torch.cuda.is_available()`."""
    if value.type_name in _AVAILABLE:
        condition.when |= {_AVAILABLE[value.type_name]}
        condition.unless_not |= {_AVAILABLE[value.type_name]}
    elif (value.type_name or "").startswith(FLAG):
        types, _, paths = (value.type_name or "").removeprefix(FLAG).partition(";")
        condition.when |= set(types.split(","))
        condition.else_on_cpu |= set(paths.split(",")) - {""}


def flag_of(types: Set[str], else_on_cpu: list[str]) -> str:
    """The type name of a flag that holds where these device types are there, and is off where these paths are on the CPU."""
    return f"{FLAG}{','.join(sorted(types))};{','.join(else_on_cpu)}"


def _comparison(
    test: ast.Compare,
    condition: Condition,
    qualify: Qualify,
    evaluate: Evaluate,
    source: Callable[[ast.AST], str],
) -> Condition:
    left, right, operator = test.left, test.comparators[0], test.ops[0]
    if isinstance(right, ast.Constant) and right.value is None and not isinstance(left, ast.Call):
        return condition  # `mask is not None`, as most comparisons are: it says nothing of a device
    if isinstance(operator, (ast.Eq, ast.Is)):
        _device_type(condition, left, right, evaluate, source)
        _device_type(condition, right, left, evaluate, source)
    elif isinstance(operator, (ast.In, ast.NotIn)) and (only := only_item(right)) is not None:
        equal = ast.Eq() if isinstance(operator, ast.In) else ast.NotEq()
        return _comparison(ast.Compare(left, [equal], [only]), condition, qualify, evaluate, source)
    elif isinstance(operator, (ast.NotEq, ast.IsNot)):
        inner = Condition(condition.key)
        _device_type(inner, left, right, evaluate, source)
        _device_type(inner, right, left, evaluate, source)
        condition.when, condition.unless = inner.unless, inner.when
        condition.when_not, condition.unless_not = inner.unless_not, inner.when_not
        condition.on_cpu, condition.else_on_cpu = inner.else_on_cpu, inner.on_cpu
        condition.has_device = inner.has_device
    elif isinstance(operator, ast.In):
        # `"cuda" in str(device)`; `device.type in ("cuda", "xpu")` names several types, so none is sure
        _device_type(condition, right, left, evaluate, source)
        if isinstance(right, (ast.Tuple, ast.List, ast.Set)):
            named = [e.value for e in right.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
            condition.when |= {n for n in named if n in ACCELERATORS}
    elif isinstance(operator, (ast.Gt, ast.GtE)) and isinstance(left, ast.Call):
        name = qualify(left.func)
        if name in _AVAILABLE:
            condition.when |= {_AVAILABLE[name]}
    elif isinstance(left, (ast.Name, ast.Attribute)) and is_positive(right, operator):
        kept = evaluate(left).type_name  # a number of cards: `n_gpu = torch.cuda.device_count()`, `if n_gpu > 1:`
        condition.when |= {_AVAILABLE[kept]} if kept in _AVAILABLE else _NONE
    _index(condition, left, operator, right)
    _count(condition, left, operator, right, qualify)
    _backend(condition, left, operator, right, qualify)
    return condition


def is_positive(node: ast.expr, operator: ast.cmpop) -> bool:
    """Whether only a number of 1 at least is above a bound, `n > 0`, or reaches it, `n >= 1`."""
    if not isinstance(operator, (ast.Gt, ast.GtE)) or not isinstance(node, ast.Constant):
        return False
    return isinstance(node.value, int) and node.value >= isinstance(operator, ast.GtE)


def only_item(node: ast.expr) -> ast.expr | None:
    """The item of a list, tuple or set that is written out with one: `device in ["cpu"]`."""
    one = isinstance(node, (ast.List, ast.Tuple, ast.Set)) and len(node.elts) == 1
    return node.elts[0] if one and isinstance(node, (ast.List, ast.Tuple, ast.Set)) else None


def _backend(condition: Condition, left: ast.expr, operator: ast.cmpop, right: ast.expr, qualify: Qualify) -> None:
    """`dist.get_backend() == "nccl"`, or `== dist.Backend.NCCL`: the processes talk through NCCL, which needs CUDA."""
    if isinstance(right, ast.Call):
        left, right = right, left
    if not isinstance(left, ast.Call) or qualify(left.func) not in _GET_BACKEND:
        return
    is_nccl = isinstance(right, ast.Constant) and right.value == "nccl"
    if not is_nccl and not (isinstance(right, ast.Attribute) and right.attr == "NCCL"):
        return
    if isinstance(operator, (ast.Eq, ast.Is)):
        condition.when |= {"cuda"}
    elif isinstance(operator, (ast.NotEq, ast.IsNot)):
        condition.unless |= {"cuda"}


def _index(condition: Condition, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> None:
    """`device > -1`, `gpu >= 0`, `cuda_device != -1`: the index of a card, which is -1 for the CPU (`Tensor.get_device`)."""
    number = right.operand if isinstance(right, ast.UnaryOp) and isinstance(right.op, ast.USub) else right
    if not isinstance(number, ast.Constant) or type(number.value) is not int:
        return
    name = left.id if isinstance(left, ast.Name) else left.attr if isinstance(left, ast.Attribute) else ""
    if not _CARD.search(name):
        return
    bound = -number.value if number is not right else number.value
    is_card = (bound, type(operator)) in ((-1, ast.Gt), (-1, ast.NotEq), (0, ast.GtE))
    is_cpu = (bound, type(operator)) in ((-1, ast.Eq), (-1, ast.LtE), (0, ast.Lt))
    if is_card:
        condition.when |= {"cuda"}
        condition.unless_not |= {"cuda"}
    elif is_cpu:
        condition.unless |= {"cuda"}
        condition.when_not |= {"cuda"}


def _count(condition: Condition, left: ast.expr, operator: ast.cmpop, right: ast.expr, qualify: Qualify) -> None:
    """`torch.cuda.device_count() == 0`, `!= 0`, `< 1`, and `0 < torch.cuda.device_count()`."""
    if isinstance(left, ast.Constant) and isinstance(right, ast.Call):
        turned: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE}
        left, right, operator = right, left, turned.get(type(operator), type(operator))()
    if not isinstance(left, ast.Call) or not isinstance(right, ast.Constant):
        return
    name = qualify(left.func)
    if name is None or not name.endswith("device_count") or name not in _AVAILABLE:
        return
    type_ = _AVAILABLE[name]
    none = (isinstance(operator, ast.Eq) and right.value == 0) or (isinstance(operator, ast.Lt) and right.value == 1)
    some = (isinstance(operator, ast.NotEq) and right.value == 0) or (isinstance(operator, ast.Gt) and right.value == 0)
    if none:
        condition.unless |= {type_}
        condition.when_not |= {type_}
    elif some:
        condition.when |= {type_}
        condition.unless_not |= {type_}


def _device_type(
    condition: Condition, left: ast.expr, right: ast.expr, evaluate: Evaluate, source: Callable[[ast.AST], str]
) -> None:
    """`left` is compared with the literal `right`: `x.device.type == "cuda"`, `device == torch.device("cpu")`."""
    if not isinstance(right, (ast.Constant, ast.Call, ast.Name, ast.Attribute)) or isinstance(left, ast.Constant):
        return
    literal = evaluate(right)
    if literal.kind not in ("string", "device") or len(literal.device) != 1:
        return
    (place,) = literal.device
    type = getattr(place, "type", None)
    if not isinstance(type, str):
        return
    path = source(left)
    by_type = path.endswith(".type")
    for suffix in (".device.type", ".device", ".type"):
        if path.endswith(suffix):
            path = path[: -len(suffix)]
            if "device" in suffix:
                condition.has_device |= {path}
            break
    if type == "cpu":
        condition.on_cpu |= {path}
    elif type == "cuda" and by_type:
        # `device == "cuda"` is False for `cuda:1`, so nothing follows where it does not hold
        condition.else_on_cpu |= {path}
    if type in ACCELERATORS:
        condition.when |= {type}
        condition.unless_not |= {type}
    elif type == "cpu":
        condition.unless |= {"accelerator"}
        condition.when_not |= {"accelerator"}

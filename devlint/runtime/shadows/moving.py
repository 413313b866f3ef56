"""Copies of the arguments of a call, and the copies on another device, as a program on that device would hand them over.

Copies share what the originals share. Tensors, modules, optimizers, plain containers, records and what has a ``to`` are
moved; what holds tensors and cannot be moved is refused by name.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import types
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch.utils._python_dispatch import _disable_current_modes

from devlint.runtime.shadows.wrapping import is_of_test

_COMPUTED: Final = "_devlint_computed"  # on the copy of a tensor that was no leaf
_MOST_DEPTH: Final = 4
_MOST_ITEMS: Final = 1000
_HOOKS: Final = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
)
_HOOKS_OF_OPTIMIZERS: Final = "_optimizer_"  # how the names of their attributes begin
_CONTAINERS: Final = frozenset({"builtins", "collections"})
# Their classes have no `to`: the parameters that they are made of say where they are.
_BY_ATTRIBUTES: Final = (types.SimpleNamespace, torch.distributions.Distribution, torch.distributions.Transform)
_TRANSPARENT: Final = (
    dict,
    list,
    tuple,
    set,
    frozenset,
    deque,
    functools.partial,
    types.MethodType,
    types.FunctionType,
)
_PLAIN: Final = (str, bytes, int, float, complex, type(None), type, torch.dtype, torch.Size, types.ModuleType)


class NotPossible(Exception):
    """Something cannot be copied or moved; the text names its type."""


def copies(values: Any, own_package: str = "") -> Any:
    """A deep copy of a call's object and arguments, with nothing of the caller's that the copy could call.

    Hooks of modules are kept if they are torch's or the package's, since a hook of a test would note the copy's calls.
    Raises NotPossible.
    """
    try:
        with _copying_graphs(), _disable_current_modes():
            made = copy.deepcopy(values)
    except Exception as error:
        raise NotPossible(f"{_culprit(values)}: {type(error).__name__}") from error
    for value, copied in zip(_flat(values), _flat(made), strict=False):
        if type(copied) is not type(value):  # a wrapper hands `__deepcopy__` to what it wraps
            raise NotPossible(f"{type(value).__name__}, whose copy is a {type(copied).__name__}")
    for module in _modules_in(made, 0):
        for part in module.modules():
            _drop_hooks(part, own_package)
    return made


@contextmanager
def _copying_graphs() -> Iterator[None]:
    """A tensor in the middle of a graph is copied without the graph, as a leaf that says so.

    So is one that has its memory for itself, since that is quick; others share it with the copies of their views.
    A parameter is copied with its gradient, and an optimizer with all its attributes, as torch alone does not.
    """
    plain = torch.Tensor.__deepcopy__
    parameter: Any = torch.nn.Parameter
    plain_parameter = parameter.__deepcopy__
    optimizer: Any = torch.optim.Optimizer

    def __deepcopy__(self: torch.Tensor, memo: dict[int, Any]) -> Any:
        if id(self) in memo or (self.is_leaf and not _stands_alone(self)):
            return plain(self, memo)
        made = self.detach().clone().requires_grad_(self.requires_grad)
        if not self.is_leaf:
            setattr(made, _COMPUTED, True)
        memo[id(self)] = made
        return made

    def with_gradient(self: torch.nn.Parameter, memo: dict[int, Any]) -> Any:
        known = id(self) in memo
        made = plain_parameter(self, memo)
        if not known and self.grad is not None:
            made.grad = copy.deepcopy(self.grad, memo)
        return made

    torch.Tensor.__deepcopy__ = __deepcopy__
    parameter.__deepcopy__ = with_gradient
    optimizer.__deepcopy__ = _whole_optimizer
    try:
        yield
    finally:
        torch.Tensor.__deepcopy__ = plain
        parameter.__deepcopy__ = plain_parameter
        del optimizer.__deepcopy__


def _whole_optimizer(self: torch.optim.Optimizer, memo: dict[int, Any]) -> Any:
    """An optimizer with all its attributes; its own pickle keeps the groups, the state and the defaults alone.

    Hooks are left out, and so are functions that stand on the object for a method of its class, as those of a scheduler
    do: both may know the original.
    """
    kind: Any = type(self)
    made = kind.__new__(kind)
    memo[id(self)] = made
    for name, value in vars(self).items():
        if name.startswith(_HOOKS_OF_OPTIMIZERS):
            vars(made)[name] = type(value)()
        elif not (callable(value) and hasattr(type(self), name)):
            vars(made)[name] = copy.deepcopy(value, memo)
    return made


def _stands_alone(tensor: torch.Tensor) -> bool:
    """Whether a tensor is plain, the whole of its memory, and without attributes of its own."""
    if type(tensor) is not torch.Tensor or tensor.layout is not torch.strided or tensor._base is not None:
        return False
    whole = tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
    return whole and tensor.grad is None and not vars(tensor)


def _culprit(values: Any) -> str:
    """The type of the first part that cannot be copied."""
    for value in _flat(values):
        try:
            with _copying_graphs():
                copy.deepcopy(value)
        except Exception:
            return type(value).__name__
    return "arguments"


def _flat(values: Any) -> Iterator[Any]:
    if isinstance(values, (list, tuple)):
        for value in values:
            yield from _flat(value)
    elif isinstance(values, dict):
        yield from _flat(list(values.values()))
    else:
        yield values


def _modules_in(values: Any, depth: int) -> Iterator[torch.nn.Module]:
    if isinstance(values, torch.nn.Module):
        yield values
    elif isinstance(values, (list, tuple)):
        for value in values[:_MOST_ITEMS]:
            yield from _modules_in(value, depth)
    elif isinstance(values, dict):
        yield from _modules_in(list(values.values()), depth)
    elif depth < _MOST_DEPTH and hasattr(values, "__dict__") and not isinstance(values, (type, types.ModuleType)):
        yield from _modules_in(list(vars(values).values()), depth + 1)


def _drop_hooks(part: torch.nn.Module, own_package: str) -> None:
    for name in _HOOKS:
        hooks: dict[int, Any] = vars(part).get(name) or {}
        for key, hook in list(hooks.items()):
            home = getattr(hook, "__module__", None) or type(hook).__module__
            if home.partition(".")[0] not in ("torch", own_package):
                del hooks[key]


class Mover:
    """Moves copies to a device; the same thing only once.

    moved: how many tensors, modules and other objects went.
    """

    def __init__(self, device: torch.device, own_package: str = "") -> None:
        self.device = device
        self.moved = 0
        self._own = own_package
        self._in_optimizer = False
        self._known: dict[int, Any] = {}
        self._kept: list[Any] = []  # so that no id is used twice

    def move(self, value: Any, name: str = "") -> Any:
        """The value on the device. name: of the parameter it is for. Raises NotPossible."""
        if isinstance(value, _PLAIN):
            return self._named_device(value, name)
        found = self._known.get(id(value))
        if found is None:
            found = self._moved(value)
            self._known[id(value)] = found
            self._kept.append(value)
        return found

    def _named_device(self, value: Any, name: str) -> Any:
        """The host, given by name as the device of a call, is the device here; so is the default device."""
        if name != "device" or value not in ("cpu", None):
            return value
        return self.device if value is None else str(self.device)

    def _moved(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, torch.device):
            return self.device if value.type == "cpu" else value
        if isinstance(value, torch.nn.Module):
            self._refuse_foreign_parts(value)
            self._take_functions(value)
            self.moved += 1
            return value.to(self.device)
        if isinstance(value, torch.optim.Optimizer):
            return self._optimizer(value)
        if isinstance(value, torch.Generator):
            return torch.Generator(self.device).set_state(value.get_state())
        if isinstance(value, (list, tuple, set, frozenset, dict, deque)):
            return self._container(value)
        if callable(value) and not hasattr(value, "to"):
            return self._callable(value)
        return self._object(value)

    def _refuse_foreign_parts(self, module: torch.nn.Module) -> None:
        """A stand-in that a test has put into a module, such as a mock, does not move with it."""
        own = {"torch", self._own, type(module).__module__.partition(".")[0]}
        for part in module.modules():
            for name, value in vars(part).items():
                home = value if isinstance(value, types.FunctionType) else type(value)
                root = (home.__module__ or "").partition(".")[0]
                if root not in own and root not in _CONTAINERS and holds_tensors(value):
                    raise NotPossible(f"{type(module).__name__}, whose {name} is a {type(value).__name__}")

    def _take_functions(self, module: torch.nn.Module) -> None:
        """The functions of a test in a module, as those that are arguments."""
        for part in module.modules():
            for name, value in list(vars(part).items()):
                if isinstance(value, types.FunctionType):
                    vars(part)[name] = self._taken(value)

    def _taken(self, function: Any) -> Any:
        """A function of a test makes tensors on the host, as all of the test does; on a card it makes them there."""
        if not is_of_test(function):
            return function

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            return self._brought(result) if _on_card((args, kwargs)) else result

        return called

    def _brought(self, result: Any) -> Any:
        """Results that are on the host, on the device."""
        if isinstance(result, torch.Tensor):
            return result.to(self.device)
        if type(result) in (list, tuple):
            return type(result)(map(self._brought, result))
        return {key: self._brought(item) for key, item in result.items()} if type(result) is dict else result

    def _tensor(self, value: torch.Tensor) -> torch.Tensor:
        self.moved += 1
        if value.device.type != "cpu":
            return value
        if torch.nn.parameter.is_lazy(value):  # as `Module.to` moves it
            value.data = value.data.to(self.device)
            return value
        if type(value) is torch.nn.Parameter:
            return self._leaf(value)
        made = value.detach().to(self.device)
        made.requires_grad_(value.requires_grad)
        if value.requires_grad and hasattr(value, _COMPUTED) and torch.is_grad_enabled():
            return made.clone()  # which may be written in place, as a leaf may not
        if isinstance(value, torch.nn.Parameter):
            made = torch.nn.Parameter(made, requires_grad=value.requires_grad)
        if value.is_leaf and value.grad is not None:
            made.grad = value.grad.detach().to(self.device)
        return made

    def _leaf(self, value: torch.Tensor) -> torch.Tensor:
        """A leaf stays the same object, as `Module.to` keeps it, since optimizers know theirs by identity."""
        gradient, value.grad = value.grad, None
        value.data = value.data.to(self.device)
        if gradient is not None:
            value.grad = self.move(gradient)
        return value

    def _optimizer(self, optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
        """All that it is made of: on the device, a program makes it of parameters there, and the rest in its steps.

        Objects in it are moved by their attributes, since an optimizer has no ``to`` that could move them. The counts of
        its steps stay where `Optimizer.load_state_dict` leaves them.
        """
        self._known[id(optimizer)] = optimizer
        for parameter in _parameters_of(optimizer):
            if id(parameter) not in self._known and parameter.device.type == "cpu":
                self._known[id(parameter)] = self._leaf(parameter)
            self.moved += 1
            if parameter.grad is not None and parameter.grad.requires_grad:
                raise NotPossible(f"{type(optimizer).__name__}, whose gradients have a graph of their own")
        for count in _counts_on_host(optimizer):
            self._known[id(count)] = count
        before, self._in_optimizer = self._in_optimizer, True
        try:
            for name, value in list(vars(optimizer).items()):
                vars(optimizer)[name] = self.move(value, name)
        finally:
            self._in_optimizer = before
        return optimizer

    def _container(self, value: Any) -> Any:
        if isinstance(value, dict):
            self._known[id(value)] = value  # it may hold itself
            for key, item in list(value.items()):
                value[key] = self.move(item, key if isinstance(key, str) else "")
            return value
        if isinstance(value, (list, deque)):
            self._known[id(value)] = value
            for position, item in enumerate(list(value)):
                value[position] = self.move(item)
            return value
        items_ = [self.move(item) for item in value]
        if hasattr(value, "_fields"):
            return type(value)(*items_)
        if type(value) in (tuple, set, frozenset):
            return type(value)(items_)
        raise NotPossible(type(value).__name__)

    def _callable(self, value: Any) -> Any:
        if isinstance(value, functools.partial):
            keywords = {key: self.move(item, key) for key, item in value.keywords.items()}
            return functools.partial(self.move(value.func), *map(self.move, value.args), **keywords)
        if isinstance(value, types.MethodType):
            return types.MethodType(value.__func__, self.move(value.__self__))
        if isinstance(value, types.FunctionType):
            home = (value.__module__ or "").partition(".")[0]
            if home not in ("torch", self._own) and _reaches_state(value):
                raise NotPossible(f"the function {value.__name__}, which uses variables around it")
            if holds_tensors(value):  # what is inside a function stays where it is
                raise NotPossible(f"the function {value.__name__}, which uses tensors around it")
            return self._taken(value)
        return value if not holds_tensors(value) else self._object(value)

    def _object(self, value: Any) -> Any:
        """By its own ``to``; a record or a distribution field by field; anything else only if it holds no tensors."""
        if callable(getattr(type(value), "to", None)):
            try:
                made = value.to(self.device)
            except Exception as error:
                raise NotPossible(f"{type(value).__name__}, whose to() raised {type(error).__name__}") from error
            self.moved += 1
            return value if made is None else made
        if not self._in_optimizer and not holds_tensors(value):
            return value
        if is_record(value) or (self._in_optimizer and hasattr(value, "__dict__")):
            self._known[id(value)] = value  # it may hold itself
            for key, item in list(vars(value).items()):
                vars(value)[key] = self.move(item, key)
            return value
        if not holds_tensors(value):
            return value
        raise NotPossible(type(value).__name__)


def _parameters_of(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    """The parameters of an optimizer; none of one that only stands around another."""
    for group in getattr(optimizer, "param_groups", ()):
        yield from group["params"]


def _counts_on_host(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    """The counts of steps that stay on the host, as in `torch.optim.Optimizer._process_value_according_to_param_policy`."""
    for group in getattr(optimizer, "param_groups", ()):
        for parameter in group["params"]:
            kept = getattr(optimizer, "state", {}).get(parameter)
            count = kept.get("step") if isinstance(kept, dict) else None
            if isinstance(count, torch.Tensor) and not (group.get("capturable") or group.get("fused")):
                yield count


def _on_card(values: Any) -> bool:
    return any(isinstance(value, torch.Tensor) and value.device.type != "cpu" for value in _flat(list(values)))


def is_record(value: Any) -> bool:
    """Whether an object is what its attributes are: a record, or a distribution or transform of parameters."""
    return (dataclasses.is_dataclass(value) and hasattr(value, "__dict__")) or isinstance(value, _BY_ATTRIBUTES)


def holds_tensors(value: Any) -> bool:
    """Whether a tensor is reachable from an object by attributes and containers.

    Not further than through a few objects, since one that knows its surroundings reaches everything.
    """
    waiting, known = [(value, 0)], {id(value): value}
    while waiting:
        each, depth = waiting.pop()
        if isinstance(each, (torch.Tensor, torch.nn.Module)):
            return True
        for part in _inside_of(each) if depth <= _MOST_DEPTH else ():
            if id(part) not in known and not isinstance(part, _PLAIN):
                known[id(part)] = part
                waiting.append((part, depth if isinstance(part, _TRANSPARENT) else depth + 1))
    return False


def _inside_of(value: Any) -> Iterable[Any]:
    """What an object is made of."""
    if isinstance(value, _PLAIN):
        return ()
    if isinstance(value, dict):
        return list(value.values())[:_MOST_ITEMS]
    if isinstance(value, (list, tuple, set, frozenset, deque)):
        return list(value)[:_MOST_ITEMS]
    if isinstance(value, functools.partial):
        return (value.func, *value.args, *value.keywords.values())
    if isinstance(value, types.MethodType):
        return (value.__self__,)
    if isinstance(value, types.FunctionType):
        return [_content(cell) for cell in value.__closure__ or ()]
    return list(vars(value).values()) if hasattr(value, "__dict__") else ()


def _reaches_state(function: types.FunctionType) -> bool:
    """Whether a function of a test reads variables around it that are more than functions, classes and modules."""
    cells = [_content(cell) for cell in function.__closure__ or ()]
    globals_ = [function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__]
    fixed = (types.FunctionType, types.BuiltinFunctionType, *_PLAIN)
    return any(not isinstance(value, fixed) for value in (*cells, *globals_, *(function.__defaults__ or ())))


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return None

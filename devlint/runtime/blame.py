"""Whose tensor was it? The user's name for the tensor that an operation found on the wrong device.

A device error knows arguments by the names of torch's schema (``mat1``), which say nothing to the reader of a
program. Here the frames of the user's code are searched, from the failing line outward, for the variable, attribute,
container or module that holds the tensor's memory, and the outermost name wins: what was passed on is named where it
came from. A tensor without a name (a temporary) is looked for in the text of the failing statement.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeAlias

# Functions of torch that make a tensor on the default device unless told otherwise.
FACTORIES = frozenset(
    {
        "BoolTensor",
        "FloatTensor",
        "IntTensor",
        "LongTensor",
        "Tensor",
        "arange",
        "as_tensor",
        "empty",
        "empty_strided",
        "eye",
        "from_numpy",
        "full",
        "hann_window",
        "linspace",
        "logspace",
        "normal",
        "ones",
        "rand",
        "randint",
        "randn",
        "randperm",
        "range",
        "scalar_tensor",
        "sparse_coo_tensor",
        "tensor",
        "tril_indices",
        "triu_indices",
        "zeros",
    }
)
_MOST_FRAMES = 64
_MOST_ITEMS = 64
_MOST_DEPTH = 2

Place: TypeAlias = "tuple[FrameType, int]"
"""A frame and the line it is at."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The user's name for one tensor, and where that name is used.

    name: an expression of the user's program (``batch``, ``self.mask``, ``model.head.weight``), or the text of the
        expression that made a temporary. device, shape, dtype: of the tensor. made: the line and text of the factory
        call that the name was last assigned from in that function, if it was one without ``device=``.
    holder: what kind of thing holds it.
    """

    name: str
    device: str
    shape: tuple[int, ...]
    dtype: str
    file: str
    line: int
    function: str
    holder: str  # variable, attribute, module attribute, parameter, item, optimizer, temporary
    made: tuple[int, str] | None = None

    @property
    def what(self) -> str:
        """Type, shape and device: ``float32[8, 4] on cpu``."""
        kind = f"{self.dtype}{list(self.shape)}" if self.dtype else "a tensor"
        return f"{kind} on {self.device}"


@dataclass(frozen=True, slots=True)
class Blame:
    """What is known of one device error: the tensors left behind and those they met."""

    left: tuple[Owner, ...] = ()
    met: tuple[Owner, ...] = ()
    through_module: bool = False  # the tensor reached the failing operation as an input of a module
    unnamed: tuple[str, ...] = ()  # arguments left behind for which no name was found
    lines: tuple[tuple[str, int, str], ...] = field(default=())  # user frames: file, line, function; innermost first

    @property
    def code(self) -> str:
        """The rule whose subject this mixture is."""
        owner = self.left[0] if self.left else None
        if owner is not None and owner.holder == "module attribute":
            return "DEV106"
        if self.through_module or (owner is not None and owner.holder == "parameter"):
            return "DEV103"
        if owner is not None and (owner.made is not None or owner.holder == "temporary"):
            return "DEV102"
        return "DEV101"


def frames_from(frame: FrameType | None) -> list[Place]:
    """The frames of a stack with their lines, innermost first, up to where `devlint run` started the program."""
    places: list[Place] = []
    while frame is not None and frame.f_globals.get("__name__") != "devlint.runtime.run":
        places.append((frame, frame.f_lineno))
        frame = frame.f_back
    return places


def frames_of(trace: TracebackType | None) -> list[Place]:
    """The frames of a traceback with the lines where it passed, innermost first."""
    places: list[Place] = []
    while trace is not None:
        places.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    return places[::-1]


def blame(places: Sequence[Place], operands: Iterable[Any], is_user: Callable[[CodeType], bool]) -> Blame:
    """Name the operands of a failed operation.

    operands: with ``argument``, ``device``, ``shape``, ``dtype`` and ``data_ptr``, as the simulator attaches them to
    its errors; without any, the tensors that the failing statement names are taken. Never raises: a program in trouble
    may hold objects whose attributes raise.
    """
    user = [place for place in places if is_user(place[0].f_code)][:_MOST_FRAMES]
    lines = tuple((frame.f_code.co_filename, line, frame.f_code.co_name) for frame, line in user)
    if not user:
        return Blame(lines=lines)
    wanted = list(operands)
    if not wanted:
        return _from_statement(user[0], lines, _passes_module(places, user[0][0]))
    left, met = _sides(wanted)
    owners = [(operand, _owner(operand, user)) for operand in left]
    found = [owner for _, owner in owners if owner is not None]
    unnamed = [operand for operand, owner in owners if owner is None]
    if unnamed:
        found += _temporaries(user[0], unnamed[0])
    outer = next((frame for frame, line in user if found and (frame.f_code.co_filename, line) == _at(found[0])), None)
    return Blame(
        left=_unique(found),
        met=_unique(owner for operand in met if (owner := _owner(operand, user)) is not None),
        through_module=bool(found) and found[0].holder != "parameter" and _passes_module(places, outer),
        unnamed=tuple(f"{operand.argument}, {_what(operand)}" for operand in unnamed) if not found else (),
        lines=lines,
    )


def where_mixed(places: Sequence[Place], is_user: Callable[[CodeType], bool]) -> Sequence[Place]:
    """Of the frames below an error that a program's own check raised, those from the one on that mixes the devices.

    That is the innermost whose statement names tensors of two devices and was not itself given the one left behind;
    else the innermost that names both; else all frames.
    """
    checked: int | None = None
    for index, (frame, line) in enumerate(places[:_MOST_FRAMES]):
        found = _from_statement((frame, line), (), False) if is_user(frame.f_code) else Blame()
        if not found.left or not found.met:
            continue
        checked = index if checked is None else checked
        code = frame.f_code
        given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if any(owner.name not in given for owner in found.left):
            return places[index:]
    return places[checked or 0 :]


def _at(owner: Owner) -> tuple[str, int]:
    return owner.file, owner.line


def _unique(owners: Iterable[Owner]) -> tuple[Owner, ...]:
    return tuple({owner.name: owner for owner in owners}.values())


def _sides(operands: list[Any]) -> tuple[list[Any], list[Any]]:
    """The operands left behind, and the others: those on the host, or else those not with the first one."""
    many = [operand for operand in operands if operand.shape] or operands
    host = [operand for operand in many if operand.device.type == "cpu"]
    if host and len(host) < len(operands):
        return host, [operand for operand in operands if operand.device.type != "cpu"]
    first = operands[0].device
    return (
        [operand for operand in operands if operand.device != first],
        [operand for operand in operands if operand.device == first],
    )


def _what(operand: Any) -> str:
    return f"{str(operand.dtype).removeprefix('torch.')}{list(operand.shape)} on {operand.device}"


# ------------------------------------------------------------------------------------------------ names in frames


def _owner(operand: Any, user: Sequence[Place]) -> Owner | None:
    """The outermost name of an operand's memory, as long as each frame on the way knows it."""
    best: Owner | None = None
    for frame, line in user:
        found = _name_in(frame, operand)
        if found is None:
            if best is not None:
                break
            continue
        name, holder, tensor = found
        best = _owned((frame, line), name, holder, tensor, operand.device)
    return best


def _owned(place: Place, name: str, holder: str, tensor: Any, device: Any) -> Owner:
    """A tensor under the name by which a frame knows it."""
    frame, line = place
    return Owner(
        name=name,
        device=str(device),
        shape=tuple(tensor.shape),
        dtype=str(tensor.dtype).removeprefix("torch."),
        file=frame.f_code.co_filename,
        line=line,
        function=frame.f_code.co_name,
        holder=holder,
        made=_made(frame, line, name) if holder == "variable" else None,
    )


def _name_in(frame: FrameType, operand: Any) -> tuple[str, str, Any] | None:
    """The best name a frame has for an operand's memory, its holder and the named tensor; the very tensor before one
    that the operand is a view of."""
    view: tuple[str, str, Any] | None = None
    for name, holder, tensor in _tensors_of(frame):
        try:
            if str(tensor.device) != str(operand.device):
                continue
            if operand.data_ptr and tensor.data_ptr() == operand.data_ptr:
                if tuple(tensor.shape) == tuple(operand.shape):
                    return name, holder, tensor
                view = view or (name, holder, tensor)
            elif view is None and operand.data_ptr and _covers(tensor, operand.data_ptr):
                view = name, holder, tensor
        except Exception:  # a tensor without memory, or a subclass that refuses
            continue
    return view


def _covers(tensor: Any, address: int) -> bool:
    storage = tensor.untyped_storage()
    start = storage.data_ptr()
    return bool(start <= address < start + storage.nbytes())


def _tensors_of(frame: FrameType) -> Iterator[tuple[str, str, Any]]:
    """Name, holder and tensor of everything a frame can name, plain variables first."""
    values = {name: value for name, value in frame.f_locals.items() if name.isidentifier() and name[:2] != "__"}
    for name in frame.f_code.co_names:
        if name in frame.f_globals:
            values.setdefault(name, frame.f_globals[name])
    tensor_type = sys.modules["torch"].Tensor
    for name, value in values.items():
        if isinstance(value, tensor_type):
            yield name, "variable", value
    for name, value in values.items():
        if not isinstance(value, (tensor_type, type)) and not callable(getattr(value, "__file__", None)):
            yield from _inside(name, value, 0)


def _inside(name: str, value: Any, depth: int) -> Iterator[tuple[str, str, Any]]:
    torch = sys.modules["torch"]
    if depth > _MOST_DEPTH:
        return
    if isinstance(value, torch.nn.Module):
        yield from _inside_module(name, value)
        return
    if isinstance(value, torch.optim.Optimizer):
        for state in list(value.state.values())[:_MOST_ITEMS]:
            for key, item in state.items():
                if isinstance(item, torch.Tensor):
                    yield f"the {key} in {name}'s state", "optimizer", item
        return
    items: Iterable[tuple[str, Any]]
    if isinstance(value, (list, tuple)):
        items = [(f"{name}[{index}]", item) for index, item in enumerate(value[:_MOST_ITEMS])]
        holder = "item"
    elif isinstance(value, dict):
        items = [(f"{name}[{key!r}]", item) for key, item in list(value.items())[:_MOST_ITEMS]]
        holder = "item"
    elif isinstance(getattr(value, "__dict__", None), dict) and type(value).__module__ not in ("builtins", "torch"):
        items = [(f"{name}.{key}", item) for key, item in list(vars(value).items())[:_MOST_ITEMS]]
        holder = "attribute"
    else:
        return
    for shown, item in items:
        if isinstance(item, torch.Tensor):
            yield shown, holder, item
        elif isinstance(item, (list, tuple, dict, torch.nn.Module, torch.optim.Optimizer)):
            yield from _inside(shown, item, depth + 1)


def _inside_module(name: str, module: Any) -> Iterator[tuple[str, str, Any]]:
    tensor_type = sys.modules["torch"].Tensor
    for path, part in module.named_modules():
        prefix = f"{name}.{path}" if path else name
        for key, value in vars(part).items():
            if isinstance(value, tensor_type):
                yield f"{prefix}.{key}", "module attribute", value
            elif isinstance(value, (list, tuple, dict)) and not key.startswith("_"):
                for shown, holder, item in _inside(f"{prefix}.{key}", value, _MOST_DEPTH):
                    yield shown, "module attribute" if holder == "item" else holder, item
        for group in ("_parameters", "_buffers"):
            for key, value in getattr(part, group, {}).items():
                if value is not None:
                    yield f"{prefix}.{key}", "parameter", value


def _passes_module(places: Sequence[Place], until: FrameType | None) -> bool:
    """Whether a call of a module lies between the failing operation and this frame."""
    for frame, _ in places:
        if frame is until:
            return False
        if frame.f_code.co_name == "_call_impl" and frame.f_globals.get("__name__") == "torch.nn.modules.module":
            return True
    return False


# ------------------------------------------------------------------------------------------------ names in the text


@lru_cache(maxsize=64)
def _tree(file: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return None


@lru_cache(maxsize=4096)
def statement_at(file: str, line: int) -> ast.stmt | None:
    """The innermost statement that covers a line of a file; None when the file cannot be read."""
    tree = _tree(file)
    best: ast.stmt | None = None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            best = node if best is None or node.lineno >= best.lineno else best
    return best


def function_at(file: str, line: int) -> str:
    """The name of the innermost function around a line; empty at module level."""
    tree = _tree(file)
    best: ast.FunctionDef | ast.AsyncFunctionDef | None = None
    for node in ast.walk(tree) if tree is not None else ():
        if (
            isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            and node.lineno <= line <= (node.end_lineno or 0)
            and (best is None or node.lineno > best.lineno)
        ):
            best = node
    return best.name if best is not None else ""


def in_loop(file: str, line: int) -> bool:
    """Whether a line lies in the body of a `for` or `while` of its file."""
    tree = _tree(file)
    return any(
        isinstance(node, (ast.For, ast.AsyncFor, ast.While)) and node.lineno < line <= (node.end_lineno or 0)
        for node in (ast.walk(tree) if tree is not None else ())
    )


def _header(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement without those of the statements in its body."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]


def is_factory(node: ast.AST) -> bool:
    """Whether a node is a call like ``torch.zeros(3)`` without ``device=``."""
    if not isinstance(node, ast.Call) or any(keyword.arg in ("device", None) for keyword in node.keywords):
        return False
    function = node.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return function.attr in FACTORIES and function.value.id in ("torch", "th")
    return isinstance(function, ast.Name) and function.id in FACTORIES - {"range", "normal"}


def moves_what_it_makes(file: str, line: int) -> bool:
    """Whether the statement has a factory call that is moved at once: ``torch.zeros(3).to(device)``."""
    statement = statement_at(file, line)
    return statement is not None and any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("to", "cuda", "xpu")
        and is_factory(node.func.value)
        for node in _header(statement)
    )


def _made(frame: FrameType, line: int, name: str) -> tuple[int, str] | None:
    """Where a variable was last assigned before a line, if from a factory call without ``device=``."""
    tree = _tree(frame.f_code.co_filename)
    if tree is None or not name.isidentifier():
        return None
    scope: ast.AST = tree
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == frame.f_code.co_name:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first == frame.f_code.co_firstlineno:
                scope = node
    last: ast.Assign | ast.AnnAssign | None = None
    for node in ast.walk(scope):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if (
            isinstance(node, (ast.Assign, ast.AnnAssign))
            and any(isinstance(target, ast.Name) and target.id == name for target in targets)
            and node.lineno <= line
            and (last is None or node.lineno > last.lineno)
        ):
            last = node
    if last is None or last.value is None or not is_factory(last.value):
        return None
    return last.lineno, _short(ast.unparse(last.value))


def _temporaries(place: Place, operand: Any) -> list[Owner]:
    """The factory calls in the failing statement; each makes its tensor on the default device."""
    frame, line = place
    statement = statement_at(frame.f_code.co_filename, line)
    if statement is None or operand.device.type != "cpu":
        return []
    return [
        Owner(
            name=_short(ast.unparse(node)),
            device=str(operand.device),
            shape=tuple(operand.shape),
            dtype=str(operand.dtype).removeprefix("torch."),
            file=frame.f_code.co_filename,
            line=line,
            function=frame.f_code.co_name,
            holder="temporary",
        )
        for node in _header(statement)
        if is_factory(node)
    ][:1]


def _from_statement(place: Place, lines: tuple[tuple[str, int, str], ...], through_module: bool) -> Blame:
    """What the failing statement names, by device: tensors, and modules by their first parameter."""
    frame, line = place
    statement = statement_at(frame.f_code.co_filename, line)
    owners: list[Owner] = []
    for node in _header(statement) if statement is not None else ():
        if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Load):
            continue
        try:
            tensor, holder = _tensor_named(frame, node)
        except Exception:  # an attribute that raises
            continue
        if tensor is not None:
            owners.append(_owned(place, ast.unparse(node), holder, tensor, tensor.device))
    host = [owner for owner in owners if owner.device == "cpu"]
    if not host or len(host) == len(owners):
        return Blame(met=_unique(owners), through_module=through_module, lines=lines)
    met = [owner for owner in owners if owner.device != "cpu"]
    return Blame(left=_unique(host), met=_unique(met), through_module=through_module, lines=lines)


def _tensor_named(frame: FrameType, node: ast.Name | ast.Attribute) -> tuple[Any, str]:
    torch = sys.modules["torch"]
    if isinstance(node, ast.Name):
        value = frame.f_locals.get(node.id, frame.f_globals.get(node.id))
        holder = "variable"
    else:
        parts = [node.attr]
        inner: ast.expr = node.value
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if not isinstance(inner, ast.Name):
            return None, ""
        value = frame.f_locals.get(inner.id, frame.f_globals.get(inner.id))
        for part in reversed(parts):
            owner = value
            value = vars(value).get(part, getattr(value, part) if isinstance(value, torch.nn.Module) else None)
        holder = "module attribute" if isinstance(owner, torch.nn.Module) and node.attr in vars(owner) else "attribute"
    if isinstance(value, torch.nn.Module):
        return next(value.parameters(), None), "parameter"
    return (value, holder) if isinstance(value, torch.Tensor) else (None, "")


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."

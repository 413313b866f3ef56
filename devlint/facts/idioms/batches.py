"""What a loop over data shows of where the data is: what it moves to a device came from the host, and its siblings too.

for x, y in loader:          # nothing is known of `loader`
    out = model(x.to(device))
    loss = criterion(out, y)  # so `y` is on the host here
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from devlint.facts.idioms import collated, parts_of_batches, wrapped_loaders
from devlint.facts.idioms.moved_inside import moved_inside
from devlint.facts.idioms.parts_of_batches import MOVED_HERE
from devlint.facts.interpreter.operations import HOST_BATCH
from devlint.facts.text.method_names import OFF_HOST
from devlint.facts.text.nodes import walk
from devlint.facts.text.parameters import reads_like_device
from devlint.facts.text.references import last_name
from devlint.facts.text.scan import FunctionScan
from devlint.facts.text.signs import is_loader_name, moves
from devlint.facts.values import ACCELERATORS, BATCH, CPU, NOTHING, NUMBER, Value
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.events import Operand
    from devlint.facts.interpreter.machine import Machine

#: What shows the progress of a loop, or cuts it short, and hands on what it is given.
_WRAPPERS = frozenset({"tqdm", "track", "islice", "iter", "progress_bar", "auto_tqdm", "prange"})
#: Words in the names of loaders and of their batches.
_DATA = re.compile(r"load|data|batch|iter|sample|item|^dl|dl$|train|test|val|queue|stream")
_LOADER = re.compile(r"load|^dl|dl$")
_DEVICE = re.compile(r"device|cuda|gpu")
#: Names of what counts turns or names things, which no loader makes a tensor of.
_COUNTER = re.compile(
    r"^(_|[ijkn]|it)$|(idx|(?<!edge_)index|step|iter|iteration|epoch|count|num|ids?|names?|paths?|files?|keys?)$"
)
#: Words in the names of what a model reads on the host: lengths, names, sizes.
_FOR_HOST = re.compile(
    r"len|size|shape|scale|factor|ratio|num|name|meta|info|path|file|text|tokens?_?types|epoch|step|(^|_)n(_|$)|(^|_)ids?$"
)
#: What models of transformers take, though its name ends in `ids`.
_TOKENS = re.compile(r"(^|_)(input|label|token|segment|position)_ids$|(^|_)type_ids$")
#: Names of what models compute with.
_INPUT = re.compile(r"(^|_)(x|images?|imgs?|inputs?|data|features?|feats?|src)[0-9]*\Z")
#: A move of some attributes of what loaders take their batches from: `data.to(device, "x", "y")`.
_MOVES_PARTS = re.compile(r"\.to\([\w.]+, *[\"']\w+[\"']")
#: Names of how many of something there are.
_COUNT = re.compile(r"(^|_)(count|num|n)\Z|^(num|n)_")


def element_of_loop(machine: Machine, node: ast.For | ast.AsyncFor, element: Value) -> Value:
    """What a loop over something unknown gives: batches of the host where its body moves a part of them, else `element`."""
    found = _part(machine, node.iter, node.target, node.body, element)
    return element if found is None else found


def _part(machine: Machine, iterated: ast.expr, target: ast.expr, body: list[ast.stmt], element: Value) -> Value | None:
    made = isinstance(iterated, ast.Call) and machine.qualify(iterated.func) == "torch.utils.data.DataLoader"
    if isinstance(iterated, ast.Call) and iterated.args and not made:
        name = iterated.func.id if isinstance(iterated.func, ast.Name) else getattr(iterated.func, "attr", "")
        if name in _WRAPPERS:
            return _part(machine, iterated.args[0], target, body, element)
        parts = iterated.args if name == "zip" else iterated.args[:1] if name == "enumerate" else []
        targets = target.elts if isinstance(target, ast.Tuple) else []
        first = 1 if name == "enumerate" else 0
        if not parts or len(targets) != len(parts) + first:
            return None
        known = element.elements if isinstance(element.elements, tuple) else (element,) * len(targets)
        if len(known) != len(targets):
            return None
        found = [_part(machine, p, t, body, k) for p, t, k in zip(parts, targets[first:], known[first:], strict=True)]
        if not any(found):
            return None
        given = [f if f is not None else k for f, k in zip(found, known[first:], strict=True)]
        return Value("tuple", elements=(*((NUMBER,) * first), *given))
    asked = isinstance(iterated, ast.Call) and is_loader_name(last_name(iterated.func))
    if not (made or asked or isinstance(iterated, (ast.Name, ast.Attribute))) or element.kind != "unknown":
        return None
    if element.device:
        return None
    if (made or asked) and _DEVICE.search(machine.text(iterated)) is not None:
        return None
    if not (made or asked) and not _reads_like_data(iterated, target):
        return None
    if _is_placed_by_its_loader(machine, iterated) or wrapped_loaders.is_wrapped(machine, iterated):
        return None
    if isinstance(iterated, ast.Name) and _is_gathered(machine, iterated.id):
        return None
    if _MOVES_PARTS.search(machine.source.text) is not None:
        return None
    moved = {name for name, call in _moves(machine, body) if _goes_somewhere(machine, call)}
    batch = _batch(target, moved)
    if batch is not None and parts_of_batches.are_only_targets(moved, target):
        return None
    if batch is None:
        twin = _moved_twin(machine, iterated) if isinstance(iterated, ast.Name) else None
        if twin is None:
            return None
        because = (Origin(machine.span(iterated), f"{HOST_BATCH}; parts of the batches of `{twin}` are moved"),)
        element = _value_of(target, target, Value("tensors", CPU, False, type_name=BATCH, because=because))
        return collated.part_of_batch(machine, iterated, element)
    origin = Origin(
        machine.span(iterated), f"its batches come from host memory, and another part of each batch {MOVED_HERE}"
    )
    element = _value_of(target, batch, Value("tensors", CPU, False, type_name=BATCH, because=(origin,)), moved)
    return collated.part_of_batch(machine, iterated, element)


def _moved_twin(machine: Machine, iterated: ast.Name) -> str | None:
    """The loader made together with this one, or by the same function, whose batches another loop of the scope moves.

    `train_loader, val_loader = make_loaders(args)`: either may only be looped over and asked for its length.
    """
    if _LOADER.search(iterated.id.lower()) is None:
        return None
    scope = machine.function.node if machine.function is not None else machine.scan.tree
    made = _loaders_made(scope) if scope is not None else {}
    source = made.get(iterated.id)
    for loop in _loops(scope) if source is not None and scope is not None else ():
        others = [n.id for n in ast.walk(loop.iter) if isinstance(n, ast.Name) and made.get(n.id) == source]
        if others and iterated.id not in others and _moves_batch(machine, loop):
            return others[0]
    return None


def _moves_batch(machine: Machine, loop: ast.For) -> bool:
    """Whether a loop moves one of the names of its target, or the parts of it one by one."""
    moved = {name for name, call in _moves_here(loop.body) if _goes_somewhere(machine, call)}
    for node in walk(loop):
        if isinstance(node, (ast.For, ast.comprehension)) and node is not loop and moved & _names(node.target):
            moved |= _names(node.iter)
    return bool(moved & _names(loop.target))


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in walk(node) if isinstance(part, ast.Name)}


@lru_cache(8)
def _loops(scope: ast.AST) -> list[ast.For]:
    """The loops of a scope."""
    return [node for node in walk(scope) if isinstance(node, ast.For)]


@lru_cache(8)
def _loaders_made(scope: ast.AST) -> dict[str, str]:
    """The names of loaders that a scope binds once to what a call gives, and only loops over; each with what is called."""
    found: dict[str, str] = {}
    bound: Counter[str] = Counter()
    looped: Counter[str] = Counter()
    read: Counter[str] = Counter()
    for node in walk(scope):
        if isinstance(node, ast.Name) and _LOADER.search(node.id.lower()) is not None:
            (bound if isinstance(node.ctx, ast.Store) else read)[node.id] += 1
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            text = ast.unparse(node.value.func)
            for part in ast.walk(node.targets[0]):
                if isinstance(part, ast.Name) and _DEVICE.search(ast.unparse(node.value).lower()) is None:
                    found[part.id] = text
        elif isinstance(node, (ast.For, ast.comprehension)):
            looped.update(n.id for n in ast.walk(node.iter) if isinstance(n, ast.Name))
        elif isinstance(node, ast.Call) and last_name(node.func) == "len":
            looped.update(n.id for n in node.args if isinstance(n, ast.Name))
        elif isinstance(node, ast.Attribute) and node.attr in ("dataset", "batch_size", "sampler"):
            looped.update([node.value.id] if isinstance(node.value, ast.Name) else [])
    return {name: text for name, text in found.items() if bound[name] == 1 and read[name] <= looped[name]}


def unpacked(machine: Machine, node: ast.Assign) -> Value | None:
    """What `x, edges, labels = self.load(graph)` gives: tensors of the host where a part of it is moved later.

    None where nothing is moved, the call is told a device, or the parts are no batch by their names.
    """
    target, function = node.targets[0], machine.function
    if len(node.targets) != 1 or not isinstance(target, ast.Tuple) or not isinstance(node.value, ast.Call):
        return None
    own = machine.scan.functions.get(id(function.node)) if function is not None else None
    if own is None or not machine.assume or machine.host:
        return None
    names = {part.id for part in target.elts if isinstance(part, ast.Name)}
    if not parts_of_batches.is_batch(node.value, names, own):
        return None
    moves_of = moved_parts(own, ast.unparse(node.value))
    left = [name for name in names if moves_of.last.get(name, 0) <= node.lineno and own.bound.get(name) == 1]
    if moves_of.latest <= node.lineno or not left or _DEVICE.search(machine.text(node.value)) is not None:
        return None
    origin = Origin(machine.span(node.value), f"in host memory, and another part of the same value {MOVED_HERE}")
    return _value_of(
        target, target, Value("tensors", CPU, False, type_name=BATCH, because=(origin,)), set(moves_of.last)
    )


class MovedParts(NamedTuple):
    """The rows of the last moves of what a function unpacks from one call, by name; `latest`: of those that it binds again."""

    last: dict[str, int]
    latest: int


@lru_cache(64)
def moved_parts(own: FunctionScan, text: str) -> MovedParts:
    """When the parts are moved that the assignments of a function unpack from a call of this text: `x, y = batches.next()`."""
    bound = Counter(name for target in unpacked_from(own).get(text, ()) for name in target)
    last: dict[str, int] = {}
    latest = 0
    kept = kept_moves(own) if bound else frozenset()
    for name in bound:
        for call, method in called_on_names(own).get(name, ()):
            if method in OFF_HOST:
                last[name] = max(call.lineno, last.get(name, 0))
                if id(call) in kept and moves(call) and own.bound.get(name, 0) > bound[name]:
                    latest = max(latest, call.lineno)
    return MovedParts(last, latest)


@lru_cache(8)
def kept_moves(own: FunctionScan) -> frozenset[int]:
    """The calls, by identity, in what the assignments of a function bind. What a statement drops moved a module in place."""
    values = (each.value for each in own.assigns if isinstance(each, ast.Assign))
    return frozenset(id(node) for value in values for node in walk(value) if isinstance(node, ast.Call))


@lru_cache(8)
def unpacked_from(own: FunctionScan) -> dict[str, list[list[str]]]:
    """The names that the assignments of a function unpack from what calls give, by the text of the call."""
    found: dict[str, list[list[str]]] = {}
    for each in own.assigns:
        target = each.targets[0] if isinstance(each, ast.Assign) else None
        if isinstance(each, ast.Assign) and isinstance(target, ast.Tuple) and isinstance(each.value, ast.Call):
            names = [part.id for part in target.elts if isinstance(part, ast.Name)]
            found.setdefault(ast.unparse(each.value), []).append(names)
    return found


@lru_cache(8)
def called_on_names(own: FunctionScan) -> dict[str, list[tuple[ast.Call, str]]]:
    """The calls of methods of names in a function, by the name, each with the method."""
    found: dict[str, list[tuple[ast.Call, str]]] = {}
    for call in own.calls:
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
            found.setdefault(call.func.value.id, []).append((call, call.func.attr))
    return found


def is_left_of_batch(scope: ast.AST, argument: ast.expr) -> bool:
    """Whether a name is a part of what a loader gives, the one that its loop does not move as it moves others.

    `for i, (images, index) in enumerate(loader):` with `images.to(device)`, or a part of `images`, in its body.
    """
    if not isinstance(argument, ast.Name):
        return False
    bound = found = 0
    for node in walk(scope):
        if isinstance(node, ast.Name) and node.id == argument.id and isinstance(node.ctx, ast.Store):
            bound += 1
        if not isinstance(node, ast.For):
            continue
        iterated, target = node.iter, node.target
        while (
            isinstance(iterated, ast.Call) and last_name(iterated.func) in _WRAPPERS | {"enumerate"} and iterated.args
        ):
            if last_name(iterated.func) == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
                target = target.elts[1]
            iterated = iterated.args[0]
        parts = {n.id for n in target.elts if isinstance(n, ast.Name)} if isinstance(target, ast.Tuple) else set()
        if argument.id not in parts or _LOADER.search(last_name(iterated).lower()) is None:
            continue
        moved = {name for name, call in _moves_here(node.body) if moves(call)}
        derived = {
            n.id
            for each in walk(node)
            if isinstance(each, ast.Assign) and isinstance(each.value, ast.Name) and each.value.id in parts
            for target_ in each.targets
            for n in walk(target_)
            if isinstance(n, ast.Name)
        }
        if argument.id in moved or not moved & (parts | derived):
            return False
        found += 1
    return 0 < bound == found


def is_for_host(name: str) -> bool:
    """Whether a name is one of what a model reads on the host: lengths, names, sizes."""
    return _TOKENS.search(name.lower()) is None and _FOR_HOST.search(name.lower()) is not None


def is_left_behind(first: Operand | None, further: Operand) -> bool:
    """Whether the first input of a model was moved, and a further one is a sibling of it that was not.

    Not what is for the host by its name: lengths, names, places.
    """
    value = further.value
    if first is None or not first.value.moved or not value.because:
        return False
    plain = isinstance(further.node, ast.Name) and not is_for_host(further.text)
    return plain and (value.because[0].text.endswith(MOVED_HERE) or value.because[0].text.startswith(HOST_BATCH))


def stays_on_purpose(first: Operand, operands: list[Operand]) -> bool:
    """Whether the first input of a model that cannot be read stayed where a loader gave it, and a later one was moved.

    `model(times, x.to(device))`: who moves the others by hand leaves to the host what the model reads there.
    """
    if first.value.moved or not first.value.because:
        return False
    left = first.value.because[0].text.endswith(MOVED_HERE)
    return left and any(operand.value.moved for operand in operands if operand is not first)


def is_named_as_input(machine: Machine, node: ast.expr, takes_input: Callable[[str], bool]) -> bool:
    """Whether a part of a batch is called like what a model computes with: itself, or the entry that it is bound to."""
    given = [node]
    if isinstance(node, ast.Name):
        own = machine.scan.functions.get(id(machine.function.node)) if machine.function is not None else None
        assigns = (each for each in own.assigns if isinstance(each, ast.Assign)) if own is not None else ()
        given += [a.value for a in assigns if any(isinstance(t, ast.Name) and t.id == node.id for t in a.targets)]
    keys = [
        each.slice.value for each in given if isinstance(each, ast.Subscript) and isinstance(each.slice, ast.Constant)
    ]
    names = [last_name(node), *(key for key in keys if isinstance(key, str))]
    return any(takes_input(name) or _INPUT.search(name.lower()) is not None for name in names)


def _is_gathered(machine: Machine, name: str) -> bool:
    """Whether the file fills a list of that name itself: `pairs.append([spikes, label])`."""
    receivers = (getattr(site.call.func, "value", None) for site in machine.scan.calls.get("append", ()))
    return any(isinstance(receiver, ast.Name) and receiver.id == name for receiver in receivers)


def _reads_like_data(iterated: ast.expr, target: ast.expr) -> bool:
    """Whether a loop is over batches by its names."""
    name = iterated.id if isinstance(iterated, ast.Name) else getattr(iterated, "attr", "")
    return any(_DATA.search(each.lower()) is not None for each in (name, *_names(target)))


def _is_placed_by_its_loader(machine: Machine, iterated: ast.expr) -> bool:
    """Whether a loader is made with something that knows the device: `collate_fn=batcher(device)`."""
    path = machine.path(iterated)
    loader = machine.lookup(path) if path is not None else None
    if loader is None or loader.kind != "loader" or not loader.because or loader.because[0].path is not None:
        return False
    span = loader.because[0].span
    return _DEVICE.search(machine.source.text[span.start : span.end]) is not None


def _batch(target: ast.expr, moved: set[str]) -> ast.expr | None:
    """The part of a loop's target that holds the batch: the name that is moved, or the tuple around it."""
    if isinstance(target, ast.Name):
        return target if target.id in moved else None
    if not isinstance(target, (ast.Tuple, ast.List)):
        return None
    if any(isinstance(part, ast.Name) and part.id in moved for part in target.elts):
        return target
    return next((found for part in target.elts if (found := _batch(part, moved)) is not None), None)


#: Names of batches that may move in place: those of `torch_geometric` do.
_WHOLE = re.compile(r"data|batch|graph|^b?g$")


def is_whole(name: str) -> bool:
    """Whether a name reads like that of an object that holds a whole batch, or a graph."""
    return _WHOLE.search(name.lower()) is not None


def bindings(node: ast.Assign | ast.For | ast.comprehension, name: str) -> Iterator[bool]:
    """For each time that an assignment or a loop binds a name, whether it is to a part of something."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(target)):
                yield isinstance(target, (ast.Tuple, ast.List))
        return
    target, iterated = node.target, node.iter
    if not any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(target)):
        return
    called = iterated.func if isinstance(iterated, ast.Call) else None
    if isinstance(called, ast.Attribute) and called.attr in ("items", "values"):
        yield True
    elif isinstance(called, ast.Name) and called.id in ("enumerate", "zip") and isinstance(target, ast.Tuple):
        yield any(
            isinstance(n, ast.Name) and n.id == name
            for part in target.elts
            if isinstance(part, (ast.Tuple, ast.List))
            for n in ast.walk(part)
        )
    else:
        yield isinstance(target, (ast.Tuple, ast.List))


def _value_of(target: ast.expr, batch: ast.expr, whole: Value, moved: Collection[str] | None = None) -> Value:
    """The value of the target, of which `batch` is a part; what counts the turns, or names things, is no tensor.

    `moved`: the names of the parts that are moved, where those alone are known to be tensors.
    """
    if isinstance(target, (ast.Tuple, ast.List)) and not any(isinstance(e, ast.Starred) for e in target.elts):
        parts = [
            (whole if moved is None else parts_of_batches.value_of(part, whole, moved))
            if target is batch and not _counts(part)
            else _value_of(part, batch, whole, moved)
            for part in target.elts
        ]
        return Value("tuple", elements=tuple(parts))
    return whole if target is batch else NOTHING


def _counts(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and _COUNTER.search(node.id) is not None


def reads_like_count(node: ast.expr) -> bool:
    """Whether an expression is a name that says how many: the part of what a module gives that is a number."""
    return isinstance(node, ast.Name) and _COUNT.search(node.id) is not None


def _moves(machine: Machine, body: list[ast.stmt]) -> Iterator[tuple[str, ast.Call]]:
    """The moves in a loop and in the functions that it calls, with the name that what is moved is read from."""
    yield from _moves_here(body)
    for statement in body:
        for node in walk(statement):
            if isinstance(node, ast.Call):
                yield from moved_inside(machine, node)


def _moves_here(body: list[ast.stmt]) -> Iterator[tuple[str, ast.Call]]:
    """The moves in a loop, with the name that what is moved is read from."""
    stack: list[ast.AST] = list(reversed(body))
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            stack.extend(
                reversed(list(ast.iter_child_nodes(node.value)))
            )  # a move whose result is dropped: in place, perhaps
            continue
        stack.extend(reversed(list(ast.iter_child_nodes(node))))
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr not in OFF_HOST:
            continue
        root: ast.expr = node.func.value
        while isinstance(root, (ast.Attribute, ast.Subscript, ast.Call)):
            root = root.func if isinstance(root, ast.Call) else root.value
        if isinstance(root, ast.Name):
            yield root.id, node


def _goes_somewhere(machine: Machine, call: ast.Call) -> bool:
    """Whether a move names a device, as `.to(torch.float32)` does not."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in ACCELERATORS:
        return True
    given = [k.value for k in call.keywords if k.arg == "device"] or call.args[:1]
    if not given:
        return False
    name = given[0].id if isinstance(given[0], ast.Name) else getattr(given[0], "attr", "")
    return reads_like_device(name) or machine.evaluate(given[0]).kind == "device"

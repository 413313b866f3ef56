"""Lists of rows, that is of tuples of tensors that a loop appends, and their columns.

    rows.append((scores, labels))               # on an accelerator
    rows.append((scores, torch.zeros(0)))       # and a part of this one is not
    scores, labels = [torch.cat(column) for column in zip(*rows)]

How many rows there are is not known, but what stands in each place of one is, and so what `zip` puts together.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Sequence

from devlint.facts.interpreter.machine import State
from devlint.facts.values import CPU, GROWN, GUESS, Kind, Value, grown

#: Type name of the columns of a list of rows, as `zip(*rows)` gives them one by one.
COLUMNS = "columns"
WIDEST = 8  # columns that are looked at one by one
#: A condition that chooses by device: what one branch appends stands for what the other one does.
_CHOOSES = re.compile(r"cpu|cuda|gpu|device|available|xpu|npu|mps")


def starred(value: Value) -> tuple[Value, ...] | None:
    """What `*value` puts into a tuple or list; None where it is not known how many there are."""
    if isinstance(value.elements, tuple) and value.kind in ("tuple", "list"):
        return value.elements if value.type_name is None else None
    if value.kind == "tensor" and len(value.made) == 1 and (number := first_size(value.made[0].node)) is not None:
        return (Value("tensor", value.device, None, because=value.because, made=value.made),) * number
    return None


def listed(kind: Kind, element: Value) -> Value:
    """A list or tuple of values like one, of which the number is not known: `list(x.unbind(0))`."""
    if element.is_tensor or element.type_name == GUESS:
        return Value(kind, type_name="comprehension", elements=(element,))
    return Value(kind)


def opened(value: Value) -> tuple[Value, ...] | None:
    """What a value puts into a list, in any number: the tensors that an argument holds, or what a comprehension gives."""
    if value.kind == "tensors" and value.device and value.type_name is None:
        return (value,)
    if value.kind in ("list", "tuple") and value.type_name in (GROWN, "comprehension"):
        return value.elements if isinstance(value.elements, tuple) and any(map(holds_tensors, value.elements)) else None
    return None


def joined(left: Value, right: Value) -> Value | None:
    """`lists + [new]`, where one of both holds what it holds in any number; None for two lists that are known in full."""
    parts = [opened(value) for value in (left, right)]
    if parts[0] is None and parts[1] is None:
        return None
    known = [
        elements(value) if part is None and value.kind == "list" else part or ()
        for value, part in zip((left, right), parts, strict=True)
    ]
    return grown((*known[0], *known[1])) if all(known) else None


def first_size(call: ast.Call) -> int | None:
    """How many parts a new tensor has: the 3 of `torch.zeros(3, 0)` and `torch.zeros((3, 0))`."""
    first = call.args[0] if call.args else None
    if isinstance(first, (ast.Tuple, ast.List)) and first.elts and getattr(call.func, "attr", "") != "tensor":
        first = first.elts[0]
    if isinstance(first, ast.Constant) and type(first.value) is int and 0 < first.value <= WIDEST:
        return first.value
    return None


def columns(given: list[Value]) -> Value | None:
    """`zip(*rows)` from the rows; None where they have no tensors, or not as many parts each."""
    parts = [row.elements for row in given if row.kind in ("tuple", "list")]
    opened = [row for row in parts if isinstance(row, tuple)]
    if not opened or len(opened) < len(given) or any(len(row) != len(opened[0]) for row in opened):
        return None
    if len(opened[0]) > WIDEST or not any(part.is_tensor for row in opened for part in row):
        return None
    return Value("list", type_name=COLUMNS, elements=tuple(grown(column) for column in zip(*opened, strict=True)))


def columns_of(node: ast.ListComp | ast.GeneratorExp, iterated: Value) -> tuple[Value, ...]:
    """The columns that a comprehension goes through one by one; nothing where it skips some."""
    plain = len(node.generators) == 1 and not node.generators[0].ifs
    return iterated.elements if plain and isinstance(iterated.elements, tuple) else ()


def holds_tensors(value: Value) -> bool:
    """Whether a value is a tensor, or a row or a dict with one; also what something unknown computed from tensors, if it is
    one."""
    if value.kind in ("tuple", "list") and isinstance(value.elements, tuple):
        return any(part.is_tensor for part in value.elements)
    if value.kind == "dict" and isinstance(value.elements, dict):
        return any(part.is_tensor for part in value.elements.values())
    return value.is_tensor or value.type_name == GUESS


def parts(value: Value) -> tuple[Value, ...]:
    """What a value holds in tuples and lists, and in those in them; itself where it is none of these."""
    if value.kind in ("tuple", "list") and isinstance(value.elements, tuple):
        return tuple(inner for part in value.elements for inner in parts(part))
    return (value,)


def differ(known: Value | None, value: Value) -> bool:
    """Whether two lists or tuples hold tensors on different devices."""
    if known is None or known.kind not in ("tuple", "list") or value.kind not in ("tuple", "list"):
        return False
    devices = [{part.device for part in parts(each) if part.is_tensor} for each in (known, value)]
    return devices[0] != devices[1]


def grown_on_both(
    joined: State, entry: State, then: State, otherwise: State, test: str, in_loop: bool, is_fixed: Callable[[], bool]
) -> None:
    """Lists that branches of an `if` append to hold what each of them appends.

    Where both do so it must be in a loop: elsewhere a list has what one of them appends. It has that in a loop, too, where the
    condition is fixed, the same in every turn and where the list is read; that is asked when there is such a list.
    """
    for path, before in entry.env.items():
        if before.kind != "list" or not isinstance(before.elements, tuple):
            continue
        a, b = then.env.get(path), otherwise.env.get(path)
        if a is None or b is None or a is b or not (extends(a, before) and extends(b, before)):
            continue
        on_both = a is not before and b is not before
        if on_both and (not in_loop or _CHOOSES.search(test) is not None):
            continue
        if on_both and not before.elements and is_fixed():
            if differ(a, b):
                joined.env[path] = Value("list")
            continue
        parts = (*elements(a), *elements(b))
        if any(map(holds_tensors, parts)) and len(parts) <= 2 * WIDEST:
            joined.env[path] = grown(parts)


def by_turn(value: Value, names: Collection[str]) -> tuple[Value, ...]:
    """What the turns of a loop add to a list: new tensors in some and others' in the rest, where a condition on what the
    loop binds decides; else the value itself.

        for part in parts:
            rows.append(torch.zeros(3) if part is None else part.to(device))
    """
    if value.split is None or not value.made or not asks_turn(value.split[0], names):
        return (value,)
    sides = value.split[1:]
    return sides if differ_by_making(sides) else (value,)


def asks_turn(test: str, names: Collection[str]) -> bool:
    """Whether a condition asks for something that a loop binds anew in each turn, and not for a device."""
    return _CHOOSES.search(test) is None and not set(re.findall(r"[A-Za-z_]\w*", test)).isdisjoint(names)


def differ_by_making(sides: Sequence[Value]) -> bool:
    """Whether one of two tensors is new and on the CPU, and the other one is neither."""
    new = [side.is_tensor and bool(side.made) and side.device == CPU for side in sides]
    others = [side.is_tensor and not side.made and bool(side.device) and side.device != CPU for side in sides]
    return any(new) and any(others)


def elements(value: Value) -> tuple[Value, ...]:
    return value.elements if isinstance(value.elements, tuple) else ()


def extends(value: Value, before: Value) -> bool:
    """Whether a list is what another one may have become by growing."""
    return value.kind == "list" and isinstance(value.elements, tuple) and set_of(before) <= set_of(value)


def set_of(value: Value) -> set[int]:
    """The elements of a list by identity."""
    return set(map(id, elements(value)))

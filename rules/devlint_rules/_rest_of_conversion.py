"""What the one choice of a device settles beside the uses of the card: defaults that name it, switches that are on, and
checkpoints that go to a computed card.

A file that names one card is converted as a whole. A default `device="cuda"` and a switch `use_gpu=True` keep a machine
without the card from running it as a use does. Both keep their value wherever the card is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from devlint.api import AlsoNeed, CudaMethod, DeviceLiteral, Facts, Fix, RunDeviceNeed, Safety, Span

from ._at_hand import wants_new
from ._conversion import AVAILABLE, new_device, why_unconverted
from ._run_device import guard_of
from ._shared import File, parsed, span_of
from ._stays import handed_texts
from ._switches import computed_maps, defaults, switches
from ._uses import is_parameter, names_of, parents, place_of, uses

_READS_AS_TEXT = (
    ast.Compare,
    ast.BinOp,
    ast.FormattedValue,
    ast.Attribute,
    ast.Subscript,
    ast.BoolOp,
    ast.If,
    ast.IfExp,
)


def with_rest(fix: Fix, use: CudaMethod | DeviceLiteral, facts: Facts) -> Fix:
    """A fix of a use of the card, with the other places of the file that it settles.

    A safe fix settles none: a file with such places is not converted safely. A file that is not converted has a hint, but
    where the program's device is proved: what forgot it is a fault of its own.
    """
    if not fix.edits or fix.safety is not Safety.UNSAFE:
        return fix
    is_proved = use.run_device is not None and use.run_device_is_proved
    why = None if is_proved else why_unconverted(facts)
    if why is not None:
        return Fix(fix.title, Safety.HINT, why=why)
    return replace(fix, needs=(*fix.needs, *_also(use.type, File(facts))))


@lru_cache(maxsize=4)
def _also(type: str, file: File) -> tuple[AlsoNeed | RunDeviceNeed, ...]:
    facts = file.facts
    if type not in AVAILABLE or not any(use.type == type for use in uses(facts)):
        return ()
    torch, name = _row_of_torch(facts), _name(type, facts)
    if torch is None and (name is None or not name.needs):
        return ()  # the definition that the conversion adds imports torch as well
    found = set(_defaults(type, facts, name))
    if type == "cuda":
        found.update(_switches(facts, torch or 0))
        found.update(
            AlsoNeed(span_of(value, facts.text), name.text) for value in _maps(facts, name) if name is not None
        )
    if name is not None and name.needs:
        found.update(AlsoNeed(span_of(value, facts.text), name.text) for value in handed_texts(facts))
    needed = name is not None and any(torch is None or need.text == name.text for need in found)
    return (*(name.needs if name is not None and needed else ()), *sorted(found, key=lambda need: need.span))


class _Name(NamedTuple):
    """How the file names the device of the run, from which row on, and what has to be added for it."""

    text: str
    row: int
    needs: tuple[RunDeviceNeed, ...] = ()
    is_text: bool = False


def _name(type: str, facts: Facts) -> _Name | None:
    """The name that the conversion adds, else the one that the module has for the card."""
    if wants_new(facts):
        new = new_device(type, facts)
        return None if new is None else _Name(new.name, _row(new.inside or new.after, facts), (new,))
    own = {
        name: use.node.lineno
        for use in uses(facts)
        if isinstance(use, DeviceLiteral) and not use.function and use.type == type and isinstance(use.node, ast.expr)
        for name in names_of(use, facts.text)
        if name.isidentifier()
    }
    return _Name(*own.popitem()) if len(own) == 1 else _seen(facts)


def _seen(facts: Facts) -> _Name | None:
    """The name of the module that the uses of the card see, where they see one alone."""
    seen = {use.run_device for use in uses(facts)}
    tree = parsed(facts.text)
    bound = [
        node
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.Assign) and [ast.unparse(each) for each in node.targets] == [next(iter(seen), None)]
    ]
    if len(seen) != 1 or len(bound) != 1 or tree is None or bound[0] not in tree.body:
        return None
    chosen = bound[0].value
    arms = [chosen.body, chosen.orelse] if isinstance(chosen, ast.IfExp) else [chosen]
    is_text = all(isinstance(arm, ast.Constant) and isinstance(arm.value, str) for arm in arms)
    return _Name(ast.unparse(bound[0].targets[0]), bound[0].lineno, is_text=is_text)


def _row(span: Span | None, facts: Facts) -> int:
    """The row of what a new device is defined behind; 0 for the imports."""
    return 0 if span is None else facts.text.count("\n", 0, span.start) + 1


def _maps(facts: Facts, name: _Name | None) -> Iterator[ast.expr]:
    return (value for value in computed_maps(facts.text) if name is not None and value.lineno > name.row)


def _row_of_torch(facts: Facts) -> int | None:
    """The row in which the module binds torch."""
    tree = parsed(facts.text)
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.Import) and any(each.name.split(".")[0] == "torch" for each in node.names):
            return node.lineno
    return None


def _defaults(type: str, facts: Facts, name: _Name | None) -> Iterator[AlsoNeed]:
    """Defaults of parameters, options and fields that name the card."""
    for event in facts.events:
        if not isinstance(event, DeviceLiteral) or event.role != "default" or event.type != type:
            continue
        if event.index not in (None, 0) or not isinstance(event.node, ast.Constant) or guard_of(event) is not None:
            continue
        around = parents(facts.text).get(place_of(event.node))
        written = facts.source(event.span)
        if written[:1] not in "'\"" or not isinstance(around, ast.arguments | ast.keyword | ast.Call | ast.AnnAssign):
            continue
        quote = written[0]
        chosen = f"{written} if {facts.spell(AVAILABLE[type])}() else {quote}cpu{quote}"
        is_known = name is not None and event.node.lineno > name.row and is_parameter(event, facts.text)
        plain = is_known and ((name is not None and name.is_text) or _is_handed_on(event.node, facts.text))
        yield AlsoNeed(event.span, name.text if plain and name is not None else chosen)


def _is_handed_on(default: ast.expr, text: str) -> bool:
    """Whether the function only hands the parameter of a default on: nothing reads it as a text."""
    tree = parsed(text)
    for function in ast.walk(tree) if tree is not None else ():
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        parameter = next(
            (name for name, value in defaults(function.args) if place_of(value) == place_of(default)), None
        )
        if parameter is not None:
            return not any(
                isinstance(node, _READS_AS_TEXT)
                and any(isinstance(part, ast.Name) and part.id == parameter for part in ast.iter_child_nodes(node))
                for statement in function.body
                for node in ast.walk(statement)
            )
    return False


def _switches(facts: Facts, torch: int) -> Iterator[AlsoNeed]:
    """`use_gpu=True` of calls, parameters, dictionaries and options, and names that conditions read."""
    available = f"{facts.spell('torch.cuda.is_available')}()"
    for value in switches(facts.text):
        if value.lineno > torch:
            yield AlsoNeed(span_of(value, facts.text), available)

"""Mismatches as events for rules: what is where, who says so, and what a fix can use.

A rule gets everything as text and spans of the checked file. It asks the inference nothing more.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from devlint.facts.events import NO_GUARDS, Event
from devlint.inference import devices
from devlint.inference.summary.model import LEAVING, Operand, Step
from devlint.inference.terms.conditions import ACCELERATOR, Condition, Test
from devlint.inference.terms.places import (
    CPU,
    Alternative,
    Path,
    Places,
    is_accelerator,
    is_unread,
    show_named,
    show_path,
)
from devlint.inference.witness.model import SEVERITIES, Mismatch
from devlint.model import Certainty, Evidence, Origin, Severity, Span
from devlint.source import Source


class Side(NamedTuple):
    """One of the two values: its source, its expression, and where it is, as a verb phrase. `span`: None in another file."""

    text: str
    span: Span | None
    node: ast.AST
    where: str


class Remedy(NamedTuple):
    """A device that is known where a fix stands, as an expression."""

    device: str


@dataclass(frozen=True, slots=True)
class DeviceMismatch(Event):
    """An operation whose values are on different devices.

    `code`: the rule that reports it. `off`: the value to move; `other`: the one that it meets. `operation`: its name.
    `factory`: the call that made `off` without a device, where it stands in this file. `takes_device`: whether that call
    has an argument for it. `leaves`: nothing fails here; `off` leaves the function on the wrong device. `when`: the
    condition under which it fails, in words. `loop`: the first statement of the loop that binds `off`, where it can be moved
    once for all its uses.
    """

    code: str
    how: str
    operation: str
    off: Side
    other: Side
    evidence: Evidence
    soft: bool
    when: str
    clause: str
    factory: Span | None
    factory_name: str
    takes_device: bool
    leaves: bool
    remedy: Remedy | None
    loop: Span | None

    @property
    def severity(self) -> Severity:
        return SEVERITIES[self.evidence, not self.soft]

    @property
    def certainty(self) -> Certainty:
        """The word of version 0.1: whether the finding rests on what an argument may be."""
        return "certain" if self.severity is Severity.ERROR else "assume"


class Texts:
    """The text of the checked file, and those of the other files that a finding follows from."""

    def __init__(self, path: str, source: Source, others: Callable[[str], Source | None] | None = None) -> None:
        """`path`: the checked file, absolute. `others` gives the text of another file; None where it cannot be read."""
        self.path = path
        self.source = source
        self._others = others

    def origin(self, file: str, node: ast.AST | None, text: str) -> Origin | None:
        """A line of a trail; None for what has no place, or is in a file that cannot be read."""
        if node is None or not hasattr(node, "lineno"):
            return None
        if file == self.path:
            return Origin(self.source.span(node), text)
        source = self._others(file) if self._others is not None else None
        return Origin(source.span(node), text, source.path) if source is not None else None

    def row(self, file: str, node: ast.AST) -> str:
        """How a message calls a line: by its file too where that is another one, from the folder of the checked file."""
        row = getattr(node, "lineno", 0)
        return f"line {row}" if file == self.path else f"{os.path.relpath(file, os.path.dirname(self.path))}:{row}"


def event_of(mismatch: Mismatch, texts: Texts) -> DeviceMismatch:
    """The event of a mismatch in the checked file."""
    source, path = texts.source, texts.path
    code = code_of(mismatch)
    at, site = mismatch.place
    own = source if mismatch.site.file == path else None
    off, other = _side(mismatch.off, mismatch.off_at, own), _side(mismatch.other, mismatch.other_at, own)
    origin = mismatch.off_at.origin
    node = origin.node if origin is not None and _is_to_blame(mismatch) else None
    in_file = origin is not None and origin.file == path and isinstance(node, ast.Call)
    factory = source.span(node) if in_file and node is not None else None
    place = factory if code == "DEV102" and factory is not None else source.span(at)
    function = site.function
    off = _handed_side(mismatch, off, source) if at is not mismatch.node else off
    return DeviceMismatch(
        place,
        at,
        _because(mismatch, texts),
        NO_GUARDS,
        {},
        function.name if function is not None else "",
        code,
        mismatch.how,
        mismatch.operation,
        off,
        other,
        mismatch.evidence,
        mismatch.soft,
        when(mismatch.condition),
        _clause(mismatch, texts),
        factory,
        origin.name if origin is not None else "",
        _takes_device(node),
        mismatch.how in LEAVING,
        _remedy(mismatch),
        _loop(mismatch, source) if own is not None else None,
    )


def _loop(mismatch: Mismatch, source: Source) -> Span | None:
    node = mismatch.off.node
    first = devices.loop_that_binds(node, mismatch.site) if isinstance(node, ast.Name) else None
    return source.span(first) if first is not None else None


def code_of(mismatch: Mismatch) -> str:
    """The rule that reports a mismatch: that of its cause, else of the operation."""
    origin = mismatch.off_at.origin
    if mismatch.how == "host":
        return "DEV109"
    if origin is not None and _is_to_blame(mismatch):
        return "DEV102"
    if mismatch.how == "module" or (mismatch.place[0] is not mismatch.node and _calls_module(mismatch.handed)):
        return "DEV103"
    return "DEV104" if mismatch.how == "index" or mismatch.mixing == "index" else "DEV101"


def _is_to_blame(mismatch: Mismatch) -> bool:
    """Whether the factory that made a value is where the fix is: in the function of the operation, in its class, or in a
    function that is given a tensor or a device."""
    origin = mismatch.off_at.origin
    if origin is None or origin.why not in ("factory", "option") or mismatch.off_at.atom != CPU or origin.node is None:
        return False
    return (
        origin.why == "option"
        or origin.maker is None
        or mismatch.site in (origin.maker, None)
        or origin.maker.handles(mismatch.site)
    )


def _calls_module(step: Step | None) -> bool:
    return step is not None and step.function is not None and step.function.name == "forward"


def _handed_side(mismatch: Mismatch, off: Side, source: Source) -> Side:
    """The argument that a call hands over."""
    step = mismatch.handed
    assert step is not None
    node = _argument(step, mismatch.handed_path)
    return Side(ast.unparse(node), source.span(node), node, off.where) if node is not None else off


def _argument(step: Step, path: Path | None) -> ast.expr | None:
    """The expression of an argument of a call; the only one, where its name is not known."""
    call = step.node
    if not isinstance(call, ast.Call):
        return None
    if path is None or len(path) > 1 or step.function is None:
        return call.args[0] if len(call.args) == 1 and not call.keywords else None
    for keyword in call.keywords:
        if keyword.arg == path[0]:
            return keyword.value
    names = step.function.positional()
    if step.function.owner is not None and names and names[0] != path[0]:
        names = names[1:]
    index = names.index(path[0]) if path[0] in names else len(call.args)
    return call.args[index] if index < len(call.args) else None


def _side(operand: Operand, at: Alternative, source: Source | None) -> Side:
    """One side of a mismatch. `source`: None where the operation stands in another file, which has no place in this one."""
    span = source.span(operand.node) if source is not None else None
    return Side(ast.unparse(operand.node), span, operand.node, where(at))


def where(at: Alternative) -> str:
    """Where a value is, as a verb phrase."""
    tag, key = at.atom
    if named := show_named(at.atom):
        return f"is {named}"
    if tag == "place" and not is_unread(at.atom):
        return "may be on a GPU" if len(key) == 1 else f"is on the device of `{show_path(key)}`"
    return "may be on another device"


def _clause(mismatch: Mismatch, texts: Texts) -> str:
    """Who says that there is an accelerator, as the last part of the message."""
    if mismatch.left_behind is not None:
        line = getattr(mismatch.left_behind, "lineno", 0)
        return f"another part of the same value was moved on line {line}"
    if mismatch.evidence == "called":
        step = mismatch.chain[0]
        likely = "probably gets" if mismatch.soft else "gets"
        return f"`{mismatch.chain[-1].name}` {likely} such values from {texts.row(step.file, step.node)}"
    fails = "probably fails" if mismatch.soft else "fails"
    if mismatch.evidence == "named" and (ACCELERATOR, True) not in mismatch.condition:
        return f"it {fails} here"
    if mismatch.evidence in ("named", "device"):
        return f"it {fails} wherever that device is a GPU"
    if mismatch.evidence == "intended":
        return "this function handles devices, but not this tensor"
    if mismatch.evidence == "declared":
        return "it fails for callers on a GPU (`targets`)"
    return "it fails if a caller passes a GPU tensor; no known caller does"


def _because(mismatch: Mismatch, texts: Texts) -> tuple[Origin, ...]:
    """Where both values come from, and the calls between."""
    found: list[Origin | None] = []
    for at in (mismatch.off_at, mismatch.other_at):
        if at.origin is not None:
            found.append(texts.origin(at.origin.file, at.origin.node, ORIGINS[at.origin.why]))
    found += [texts.origin(step.file, step.node, f"`{step.name}` is called here") for step in mismatch.chain]
    found.append(texts.origin(mismatch.site.file, mismatch.node, "this operation needs both values on one device"))
    return tuple(dict.fromkeys(each for each in found if each is not None))


ORIGINS: Final = {
    "computed": "computed from CPU tensors here",
    "factory": "created on the CPU here",
    "option": "created on the CPU here, because no device is passed",
    "host": "made from CPU data here",
    "loader": "its batches are in CPU memory",
    "module": "created on the CPU here",
    "named": "created on that device here",
    "moved": "moved here",
    "loaded": "loaded here",
    "argument": "passed in here",
}


#: Literals of a condition that a message shows.
_WORDS: Final = 3


def when(condition: Condition) -> str:
    """A condition in words: "when `mask` is None"."""
    said = {test[1] for test, outcome in condition if test[0] == "truth" and outcome}
    kept = [(t, o) for t, o in condition if not (t[0] == "none" and not o and t[1] in said)]  # what is true is given
    words = [text for test, outcome in sorted(kept, key=repr) if (text := _literal(test, outcome))]
    return " and ".join(words[:_WORDS]) + (" and more" if len(words) > _WORDS else "")


def _literal(test: Test, outcome: bool) -> str:
    if test == ACCELERATOR or test[0] not in ("none", "truth", "equal", "order"):
        return ""
    subject = _subject(test[1])
    if subject is None:
        return ""
    if test[0] == "none":
        return f"`{subject}` is {'' if outcome else 'not '}None"
    if test[0] == "equal":
        return f"`{subject}` is {'' if outcome else 'not '}{test[2]}"
    if test[0] == "order":
        return f"`{subject} {test[2]} {test[3]}` is {'true' if outcome else 'false'}"
    return f"`{subject}` is {'true' if outcome else 'false'}"


def _subject(subject: object) -> str | None:
    """What a test is about, as the code writes it; None where the code has no name for it."""
    if not isinstance(subject, tuple) or not subject:
        return None
    if all(isinstance(each, str) for each in subject):
        return None if subject[0].startswith("%") else show_path(subject)
    return subject[0] if isinstance(subject[0], str) and len(subject[0]) <= 40 else None


def _takes_device(node: ast.AST | None) -> bool:
    """Whether a factory call takes `device=`: the constructors of old types and `from_numpy` do not."""
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return not name.endswith("Tensor") and name not in ("from_numpy", "frombuffer")


def _remedy(mismatch: Mismatch) -> Remedy | None:
    """The device of `other` as the code around the operation can write it."""
    written = devices.written(mismatch.other_at.origin, mismatch.site)
    if written is not None:
        return Remedy(written)
    local = mismatch.local
    chosen = _chosen(local.places) if local is not None else None
    if local is None or chosen is None:
        return None
    tag, key = chosen
    if is_unread_path(key):
        return None
    if tag == "names":
        return Remedy(show_path(key))
    if local.kind == "module":
        return Remedy(f"next({show_path(key)}.parameters()).device")
    return Remedy(f"{show_path(key)}.device") if key != ("self",) else None


def _chosen(places: Places) -> tuple[str, Path] | None:
    """The one place that is not the CPU."""
    far = {each.atom for each in places if each.atom != CPU and not is_accelerator(each.atom)}
    if len(far) != 1:
        return None
    atom = far.pop()
    return (atom.tag, atom.key) if atom.tag in ("place", "names") else None


def is_unread_path(path: Path) -> bool:
    return path[0].startswith(("%", "@")) or ":" in path[0]

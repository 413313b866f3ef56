"""What is known of a value, and what decided about an operation, in plain English.

Each sentence is made of what decided: places, conditions, constraints and the branch of the judgement. Nothing is analysed
again.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator
from typing import Final

from devlint.inference.events import ORIGINS, code_of, when
from devlint.inference.reveal.record import Left, Lost, Place, Quiet, Record, Seen
from devlint.inference.summary.model import Operand, Site
from devlint.inference.summary.watching import Unread
from devlint.inference.terms.conditions import ACCELERATOR, Condition
from devlint.inference.terms.places import (
    CPU,
    LIMIT,
    WIDTH,
    Alternative,
    Path,
    Places,
    is_unread,
    show_named,
    show_path,
    zero_dim_of,
)
from devlint.inference.terms.values import TENSORS, Value
from devlint.inference.witness.model import Mismatch
from devlint.model import Evidence, Severity

#: The most characters of an expression that a sentence shows.
_SHOWN: Final = 60

#: What each kind of evidence says, as the reason of a finding.
EVIDENCE: Final[dict[Evidence, str]] = {
    "named": "the code names both places on one path",
    "device": "the code's own device meets the CPU",
    "called": "a call in the project hands over such a value",
    "intended": "this function, its class or its protocol takes the device of other values, but not of this one",
    "declared": "the setting `targets` says that the project must run on an accelerator",
    "contract": "a caller may pass a value on a GPU",
}  # fmt: skip
_CALLEES: Final[dict[Unread, str]] = {
    "callee": "nobody knows what is called",
    "running": "the function is being read already: it calls itself",
    "wrapped": "a decorator may have replaced the function",
}


class Words:
    """The sentences about one file."""

    def __init__(self, record: Record) -> None:
        self.record = record

    # -- places

    def value(self, seen: Iterable[Seen]) -> str:
        """The kind and the place of a value over all runs, or why the place is not known."""
        return "; ".join(dict.fromkeys(self._of_run(each) for each in seen))

    def _of_run(self, seen: Seen) -> str:
        kind = "value" if seen.value.kind == "unknown" else seen.value.kind
        if not seen.places or all(is_unread(each.atom) for each in seen.places):
            return f"{kind}, device unknown: {self.unknown(seen.node, seen.places, seen.value)}"
        verb = "names " if seen.value.kind in ("device", "string") else ""
        zero = {True: ", 0-dim", False: ", not 0-dim", None: ""}[zero_dim_of(seen.places)]
        return f"{kind} {verb}{self.places(seen.places, seen.site, bool(verb))}" + (
            zero if seen.value.is_tensor else ""
        )

    def places(self, places: Places, site: Site | None, bare: bool = False) -> str:
        """Where a value may be. `bare`: the device alone, for what names one."""
        found = []
        for each in places:
            text = self.at(each)
            text = text.removeprefix("on ") if bare else text
            condition = _when(each.condition)
            likely = "probably " if each.soft and not bare else ""
            found.append(likely + text + (f" if {condition}" if condition else ""))
        notes = dict.fromkeys(self.argument(each.atom.key, site) for each in places if _is_argument(each))
        said = (", or " if any(each.condition for each in places) else " or ").join(dict.fromkeys(found))
        return f"{said} ({', '.join(notes)})" if notes else said

    def at(self, each: Alternative) -> str:
        """One place."""
        tag, key = each.atom
        if named := show_named(each.atom):
            return named
        if tag == "default":
            return "on torch's default device"
        if tag == "home":
            return "where its module is"
        if is_unread(each.atom):
            return "on a device that is not known"
        if key[0].startswith("@"):
            return f"where `{show_path(key)}` of an outer scope is"
        if len(key) > 1:
            return f"on the device of `{show_path(key)}`"
        return "on any device"

    def argument(self, path: Path, site: Site | None) -> str:
        """What an access path is for the function in which it stands."""
        name = site.function.name if site is not None and site.function is not None else ""
        owner, _, root = path[0].rpartition(":")
        if owner:
            return f"`{root}` is an argument of the constructor of `{owner}`"
        whole = f"`{root}` is an argument" + (f" of `{name}`" if name else "")
        if path[0] == "self":
            return f"`{show_path(path)}` is what another method or a user of the object put there"
        return whole if len(path) == 1 else f"{whole}, and `{show_path(path)}` is a part of it"

    def unknown(self, node: ast.AST, places: Places, value: Value | None = None) -> str:
        """Why nobody knows where a value is."""
        why = self.record.unread_calls.get(node)
        if why is not None:
            return f"the call cannot be read: {_CALLEES[why]}"
        for each in places:
            found = self._unread(node, each)
            if found is not None:
                return found
        changed = [
            place for o in (value.objects if value is not None else ()) for place in self.record.changers.get(o, ())
        ]
        if changed:
            return f"the call on {self.row(changed[-1])} cannot be read, and may have moved it"
        return f"nothing says what `{code(node)}` is" if not places else "no place is known for it on all paths"

    def _unread(self, node: ast.AST, each: Alternative) -> str | None:
        tag, key = each.atom
        if tag == "place" and is_unread(each.atom):
            root = key[0][1:]
            line, _, column = root.partition(":")
            if not line.isdigit():
                return f"the call `{root}` cannot be read"
            call = self._node_at(int(line), int(column) if column.isdigit() else 0)
            return (
                f"`{code(call)}` on line {line} cannot be read" if call is not None else f"line {line} cannot be read"
            )
        if each.atom in self.record.moved_away:
            return f"the call on {self.row(self.record.moved_away[each.atom])} cannot be read, and may have moved it"
        if tag == "unknown" and key[1] == WIDTH:
            return f"it may be at more than {LIMIT} places, and no more are followed"
        if tag == "unknown":
            born = self.record.born.get(each.atom)
            if born is not None and born.node is not node:
                return f"`{code(born.node)}` on {self.row(born)} is at a place that cannot be told"
        return None

    def _node_at(self, line: int, column: int) -> ast.AST | None:
        for node in self.record.unread_calls:
            if (getattr(node, "lineno", 0), getattr(node, "col_offset", 0)) == (line, column):
                return node
        return None

    def row(self, place: Place) -> str:
        """A line of this file, or a file and its line."""
        return f"line {place.row}" if place.file == self.record.path else f"{shown_path(place.file)}:{place.row}"

    # -- operations

    def left(self, left: Left) -> str:
        """Why an operation leaves no constraint."""
        names = [f"`{code(node)}`" for node, _ in left.operands]
        pair = " and ".join(names[:2])
        if left.why == "alone":
            return _alone(left)
        if left.why == "kind":
            return f"nothing shows that {' or '.join(names)} is a tensor"
        if left.why == "choice":
            return f"one choice decides where {pair} are: they are always together"
        if left.why == "unused":
            return f"{pair} meet only where the program uses no accelerator"
        for node, value in left.operands:
            if not value.places or all(is_unread(each.atom) for each in value.places):
                return f"nobody knows where `{code(node)}` is: {self.unknown(node, value.places, value)}"
        first, second = left.operands[:2]
        if left.why == "same":
            return f"{pair} are both {self.places(first[1].places, left.site)}"
        x, y = (self.places(value.places, left.site) for _, value in (first, second))
        return f"{names[0]} is {x}. {names[1]} is {y}. No two of these places differ"

    def lost(self, lost: Lost) -> str:
        """Why a call does not hand a constraint on."""
        call = f"the call on {self.row(lost.call)}"
        first, second = lost.constraint.first, lost.constraint.second
        pair = f"`{code(first.node)}` and `{code(second.node)}`"
        return {
            "depth": f"{call} is too many calls away from this operation",
            "kept": f"{call}: its function has too many operations to follow all",
            "closed": f"{call} hands over nothing that this operation needs",
            "condition": f"{call} rules out that this operation runs: {self._condition(lost.constraint.condition)}",
            "operand": f"{call} hands over no tensor or module for {pair}",
            "agree": f"{call} hands over values for {pair} that are not on two devices",
        }[lost.why]

    def _condition(self, condition: Condition) -> str:
        return f"it needs that {when(condition)}" if when(condition) else "its condition does not hold there"

    def quiet(self, quiet: Quiet) -> str:
        """Why a constraint is not reported."""
        each, pair, why = quiet.constraint, quiet.pair, quiet.why
        first, second = f"`{code(each.first.node)}`", f"`{code(each.second.node)}`"
        condition = when(each.condition)
        if why == "impossible":
            return f"it never runs: {condition or 'its conditions exclude each other'}"
        if why == "no accelerator":
            return "it runs only where no accelerator is available"
        if why == "own field":
            return f"{first} and {second} are kept by an object whose class says where they are"
        if why == "moved outside":
            return "other code moves the module that is used here"
        if why == "earlier":
            return "an earlier operation fails first, wherever this one would"
        assert pair is not None
        return self._of_pair(quiet, pair, first, second)

    def _of_pair(self, quiet: Quiet, pair: tuple[Alternative, Alternative], first: str, second: str) -> str:
        each, why = quiet.constraint, quiet.why
        x, y = pair
        host, far, host_at = (first, second, x) if x.atom == CPU else (second, first, y)
        both = f"{first} is {self._at_if(x, quiet.root)}, {second} is {self._at_if(y, quiet.root)}"
        if why == "apart" and (ACCELERATOR, False) in x.condition | y.condition:
            return f"{both}: one of them is so only where no accelerator is available"
        if why == "apart":
            return f"{both}: both cannot hold at once"
        if why == "together":
            return f"an operation before this one needs {first} and {second} on one device"
        if why == "compared":
            return f"the code asks whether {first} and {second} are on one device: here they are"
        if why == "no clash":
            return self._no_clash(each.first, each.second, x, y, quiet.root)
        if why == "allowed":
            return f"{both}: {_allowed(each.mixing, host, host_at)}"
        if why == "on host":
            return f"the code asks where {far} is: here it is on the CPU"
        if why == "fallback":
            return f"{host} is on the CPU only where no accelerator is available"
        if why == "data":
            return f"{far} is data of the host here, and no tensor"
        if why == "host calls":
            return f"{host} is on the CPU. Every call that was read hands over values on the CPU too{self._callers(each.node)}"
        if why == "unsure loader":
            return f"{host} comes from a data loader, and a call that cannot be read stands between it and this line"
        if why == "not a root":
            return f"{both}: no function that is called from outside runs this"
        if why == "chosen":
            return f"{both}. {self._chosen(host, host_at)}"
        if why == "not registered":
            return f"{host} is a plain field of a module, which no move takes along: rules about what a module keeps say so"
        if why == "unproved":
            return f"{host} is on the CPU, but nothing shows that {far} is a tensor or a module: it may be a number"
        if why == "outer":
            return f"{host} is on the CPU. {far} belongs to an outer scope, which says nothing of an accelerator"
        if why == "before transfer":
            name = each.site.function.name if each.site.function is not None else ""
            return f"`{name}` of a data set or a sampler runs before anything is moved to an accelerator"
        return f"{host} is on the CPU. A constructor runs before its object is moved, and this one asks for no device"

    def _at_if(self, each: Alternative, site: Site | None) -> str:
        return self.places((each,), site)

    def _no_clash(self, first: Operand, second: Operand, x: Alternative, y: Alternative, site: Site | None) -> str:
        for operand, at in ((first, x), (second, y)):
            if is_unread(at.atom):
                return f"nobody knows where `{code(operand.node)}` is: {self.unknown(operand.node, (at,))}"
        pair = f"`{code(first.node)}` and `{code(second.node)}`"
        if x.atom == y.atom:
            return f"{pair} are both {self._at_if(x, site)}"
        both = f"`{code(first.node)}` is {self._at_if(x, site)}, `{code(second.node)}` is {self._at_if(y, site)}"
        return f"{both}: nothing says that these are two devices"

    def _chosen(self, name: str, at: Alternative) -> str:
        if at.origin is None:
            return f"Nothing says who put {name} on the CPU"
        return f"{name} was {ORIGINS[at.origin.why].removesuffix(' here')}: who made it may put it elsewhere"

    def _callers(self, node: ast.AST) -> str:
        rows = [self.row(place) for place, status in self.record.handers.get(node, {}).values() if status == "host"]
        return f": {', '.join(dict.fromkeys(rows[:3]))}" if rows else ""

    # -- findings

    def found(self, mismatch: Mismatch) -> Iterator[str]:
        """What made a finding: its severity with its reason, where both values come from, and the calls between."""
        severity = mismatch.severity
        yield f"reported as {code_of(mismatch)} ({severity.value}): {EVIDENCE[mismatch.evidence]}"
        for operand, at in ((mismatch.off, mismatch.off_at), (mismatch.other, mismatch.other_at)):
            yield f"`{code(operand.node)}` is {self._at_if(at, mismatch.site)}" + self._from(at)
        condition = when(mismatch.condition)
        if condition:
            yield f"it fails if {condition}"
        for step in mismatch.chain:
            yield f"{self.row(Place(step.file, step.node))} calls `{step.name}`"
        if mismatch.left_behind is not None:
            yield f"another part of the same value was moved on {self.row(Place(mismatch.site.file, mismatch.left_behind))}"
        if mismatch.soft:
            yield "it is only likely: " + self._soft(mismatch)
        if mismatch.evidence == "contract":
            yield self._contract(mismatch)
        if severity is Severity.INFO:
            yield "a report counts it, and `--min-severity info` shows it"

    def _from(self, at: Alternative) -> str:
        origin = at.origin
        if origin is None or origin.node is None:
            return ""
        place = Place(origin.file or self.record.path, origin.node)
        return f": {ORIGINS[origin.why].replace(' here', '')} on {self.row(place)}"

    def _soft(self, mismatch: Mismatch) -> str:
        for operand, at in ((mismatch.off, mismatch.off_at), (mismatch.other, mismatch.other_at)):
            if at.soft:
                name = f"`{code(operand.node)}`"
                why = self.record.unread_calls.get(operand.node)
                return f"{name} comes from a call that cannot be read" + (f", for {_CALLEES[why]}" if why else "")
        return "a call that cannot be read, or more conditions than are followed, are in between"

    def _contract(self, mismatch: Mismatch) -> str:
        key = mismatch.other_at.atom.key
        name = f"`{code(mismatch.other.node)}` may be on any device"
        if mismatch.other_at.atom.tag != "place":
            return f"{name}, and nothing in this project puts it on a GPU"
        return f"{name}: {self.argument(key, mismatch.site)}, and no caller that was read gives it one on a GPU"


def _is_argument(each: Alternative) -> bool:
    tag, key = each.atom
    return tag == "place" and len(key) == 1 and not is_unread(each.atom) and not key[0].startswith("@")


def _when(condition: Condition) -> str:
    """A condition in words, with what it says of accelerators."""
    said = [when(condition)]
    for outcome, text in ((True, "an accelerator is available"), (False, "no accelerator is available")):
        if (ACCELERATOR, outcome) in condition:
            said.append(text)
    return " and ".join(filter(None, said))


def _alone(left: Left) -> str:
    tensors = [f"`{code(node)}`" for node, value in left.operands if value.may_be_tensor and value.places]
    others = [
        f"`{code(node)}` is {_kind(value)}"
        for node, value in left.operands
        if not (value.may_be_tensor and value.places)
    ]
    said = f": {', '.join(others)}" if others else ""
    if not tensors:
        return f"no tensor takes part{said}"
    return f"only one tensor takes part, {tensors[0]}{said}"


def _kind(value: Value) -> str:
    if value.kind == "unknown":
        return "something of which nothing is known"
    return "None" if value.kind == "none" else ("an array" if value.kind == "array" else f"a {value.kind}")


def _allowed(mixing: str, host: str, at: Alternative) -> str:
    if mixing == "index":
        return "an index on the CPU may read a tensor on any device"
    if mixing == "host":
        return "the host may read what is on the CPU"
    if mixing in ("scalar", "expanded"):
        dims = "has no dimension" if at.zero_dim is True else "may have no dimension"
        return f"{host} {dims}, and torch lets such a tensor meet any device"
    return "the result stays where its target is"


def code(node: ast.AST) -> str:
    """An expression as the code writes it, in one line."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def shown_path(path: str) -> str:
    """A path as a user writes it: from the working directory where it is below."""
    below = os.path.relpath(path)
    return path if below.startswith("..") else below


__all__ = ["EVIDENCE", "TENSORS", "Words", "code", "shown_path"]

"""How two places contradict each other."""

from __future__ import annotations

from typing import Literal, TypeAlias

from devlint.inference.terms.places import CPU, Alternative, Atom, Places, is_accelerator

#: named: both places are named and differ. device: the CPU meets a device that the code chooses. given: the CPU meets what
#: was given. other: an accelerator that is named meets what was given.
Clash: TypeAlias = Literal["named", "device", "given"]


def clash(x: Atom, y: Atom) -> Clash | None:
    """How two atoms contradict each other, if they do."""
    if x == y or "unknown" in (x.tag, y.tag) or "default" in (x.tag, y.tag):
        return None
    if x.tag == "at" and y.tag == "at":
        return _named(x, y)
    for host, other in ((x, y), (y, x)):
        if host == CPU:
            if other.tag == "names":
                return "device"
            if other.tag in ("place", "home"):
                return None if _is_unread(other) else "given"
    return None


def _is_unread(atom: Atom) -> bool:
    return atom.tag == "place" and atom.key[0].startswith("%")


def _named(x: Atom, y: Atom) -> Clash | None:
    if "meta" in (x.key[0], y.key[0]):
        return None
    if x.key[0] != y.key[0]:
        return "named"
    return "named" if None not in (x.key[1], y.key[1]) and x.key[1] != y.key[1] else None


def is_open(places: Places) -> bool:
    """Whether a place depends on what a function is given."""
    return any(each.atom.tag in ("place", "names", "home") and each.atom.key[0] != "%" for each in places)


def off_and_other(x: Alternative, y: Alternative) -> tuple[Alternative, Alternative]:
    """Of two that clash, the one on the CPU, or on the other card, first."""
    return (x, y) if x.atom == CPU or (y.atom != CPU and is_accelerator(x.atom)) else (y, x)

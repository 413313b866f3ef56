"""How two places contradict each other."""

from __future__ import annotations

from typing import Literal, TypeAlias

from devlint.inference.terms.places import CPU, Atom, is_unread

#: named: both places are named and differ. device: the CPU meets a device that the code chooses. given: the CPU meets what
#: was given.
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
                return None if is_unread(other) else "given"
    return None


def _named(x: Atom, y: Atom) -> Clash | None:
    if "meta" in (x.key[0], y.key[0]):
        return None
    if x.key[0] != y.key[0]:
        return "named"
    return "named" if None not in (x.key[1], y.key[1]) and x.key[1] != y.key[1] else None

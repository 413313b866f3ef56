"""Did you mean: the nearest known name to a misspelt one."""

from __future__ import annotations

import re
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name closest to `word`, compared without case; None when nothing is close.

    A code is close when one digit differs, or two changed places: all codes are alike otherwise.
    """
    import difflib

    by_lower = {name.lower(): name for name in known}
    if word.lower() in by_lower:
        return by_lower[word.lower()]
    for name in sorted(by_lower):
        if one_letter_off(word.lower(), name) or two_swapped(word.lower(), name):
            return by_lower[name]
    if re.fullmatch(r"[A-Za-z]+\d+", word):
        return None
    close = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[close[0]] if close else None


def one_letter_off(a: str, b: str) -> bool:
    """Whether two words of one length differ in a single place, as codes with a slip of the finger do."""
    return len(a) == len(b) and sum(x != y for x, y in zip(a, b, strict=True)) == 1


def two_swapped(a: str, b: str) -> bool:
    """Whether two neighbouring letters changed places."""
    places = [place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y]
    if len(a) != len(b) or len(places) != 2 or places[1] != places[0] + 1:
        return False
    return a[places[0]] == b[places[1]] and a[places[1]] == b[places[0]]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """ "; did you mean `x`?" to append to a message, or nothing."""
    name = nearest(word, known)
    return f"; did you mean `{name}`?" if name else ""

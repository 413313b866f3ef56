"""Patterns of .gitignore files, matched as git matches them (gitignore(5) and git's wildmatch with WM_PATHNAME).

A pattern is asked about one entry of a directory at a time, from the top down, as git walks: whether a directory above
is ignored is for the caller to know. The library pathspec (1.1) matches whole paths, so that a pattern for a directory
also says something about what is below it: asked directory by directory it still decides one generated list in 25 of
ordinary patterns differently from `git ls-files` (`a/`, `!a/**` takes `a` back; `*`, `!*/`, `!a` leaves `x/a/a` out), and
it refuses lines that git passes over (`!`, a backslash at the end). `tests/test_gitignore.py` compares this module with git.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

_CLASSES = {
    "alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "blank": r" \t", "cntrl": r"\x00-\x1f\x7f", "digit": "0-9",
    "graph": "\\x21-\\x7e", "lower": "a-z", "print": "\\x20-\\x7e", "punct": "!-/:-@\\[-`{-~", "space": r"\s",
    "upper": "A-Z", "xdigit": "0-9a-fA-F",
}  # fmt: skip
_WILD = re.compile(r"[*?\[\\]")
#: A line that is longer matches nothing: no path is that long.
LONGEST = 4096

Segment = Callable[[str], object]


def ANY(name: str) -> object:
    """Stands for `**` between slashes: any names, or none."""
    return True


class Pattern(NamedTuple):
    """One line. `whole`: matched against the path from the root, not against the last name alone."""

    ignores: bool
    directories_only: bool
    whole: bool
    matches: Callable[[str], object]


class PatternList:
    """The patterns of one file or setting, in order."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._patterns = [pattern for line in lines if (pattern := parse(line)) is not None]
        self._patterns.reverse()

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def decide(self, relative: str, is_directory: bool) -> bool | None:
        """Whether an entry is ignored, by the last pattern that matches; None when none does.

        `relative` is the path from the root of the patterns, with slashes and without one at the end.
        """
        name = relative[relative.rfind("/") + 1 :]
        for ignores, directories_only, whole, matches in self._patterns:
            if (is_directory or not directories_only) and matches(relative if whole else name):
                return ignores
        return None


def parse(line: str) -> Pattern | None:
    """A line as a pattern; None for a comment, a blank line and a line that git passes over."""
    line = line.rstrip("\r\n")
    stripped = line.rstrip(" ")
    if stripped.endswith("\\") and len(stripped) < len(line) and _odd_backslashes(stripped):
        stripped += " "
    if not stripped or stripped.startswith("#"):
        return None
    ignores = not stripped.startswith("!")
    body = stripped if ignores else stripped[1:]
    directories_only = body.endswith("/")
    if directories_only:
        body = body[:-1]
    whole = "/" in body
    if body.startswith("/"):
        body = body[1:]
    if not body:
        return None
    return Pattern(ignores, directories_only, whole, _matcher(body, whole))


def _odd_backslashes(text: str) -> bool:
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def _matcher(body: str, whole: bool) -> Callable[[str], object]:
    if not _WILD.search(body):
        return body.__eq__
    if body.startswith("*") and not whole and not _WILD.search(body[1:]):
        end = body[1:]
        return lambda text: text.endswith(end)
    segments = _segments(body) if len(body) <= LONGEST else None
    if segments is None:
        return lambda text: False
    if not whole:
        return segments[0]
    return lambda text: _match_path(segments, text.split("/"))


def _match_path(segments: Sequence[Segment], names: Sequence[str]) -> bool:
    """Whether the segments of a pattern match the names of a path, each `**` as many of them as it must.

    What is between two `**` takes a fixed number of names, so that its first place is as good as any later one.
    """
    at = name = 0
    again: tuple[int, int] | None = None  # where the last `**` stands, and the name after those that it takes
    while name < len(names):
        if at < len(segments) and segments[at] is ANY:
            again = at, name
            at += 1
        elif at < len(segments) and segments[at](names[name]):
            at, name = at + 1, name + 1
        elif again is not None:
            again = again[0], again[1] + 1
            at, name = again[0] + 1, again[1]
        else:
            return False
    return all(segment is ANY for segment in segments[at:])


def _segments(body: str) -> list[Segment] | None:
    """The parts of a pattern between its slashes; None for an open `[` or a last `\\`, which match nothing."""
    segments: list[Segment] = []
    parts: list[str] = []  # of one segment, a regular expression for each character, "" for a star
    at = 0
    while at < len(body):
        char = body[at]
        if char == "/" or body[at : at + 2] == "\\/":
            segments.append(_segment(parts))
            parts = []
            at += 1 if char == "/" else 2
        elif char == "*":
            stars = len(body) - at - len(body[at:].lstrip("*"))
            after = body[at + stars : at + stars + 1]
            if stars == 2 and not parts and (at == 0 or body[at - 1] == "/") and after in ("", "/"):
                segments.append(ANY)
                if not after and at:  # `a/**` is what is in `a`, not `a` itself
                    segments.append(_segment([""]))
                at += 2 + len(after)
                if not after:
                    return segments
            else:
                parts.append("")
                at += stars
        elif char == "?":
            parts.append(".")
            at += 1
        elif char == "[":
            bracket = _bracket(body, at)
            if bracket is None:
                return None
            text, at = bracket
            parts.append(text)
        elif char == "\\":
            if at + 1 == len(body):
                return None
            parts.append(re.escape(body[at + 1]))
            at += 2
        else:
            parts.append(re.escape(char))
            at += 1
    segments.append(_segment(parts))
    return segments


def _segment(parts: Sequence[str]) -> Segment:
    """What tells whether a name matches, in a time that grows with its length times that of the parts.

    What is between two stars has a fixed length, so that its first place is as good as any later one: each is looked for
    in a group of its own that is not entered again [as `fnmatch.translate` does it].
    """
    first, *rest = _chunks(parts)
    if not rest:
        return re.compile(first, re.DOTALL).fullmatch
    *middle, last = rest
    groups = "".join(f"(?=(?P<g{n}>.*?{chunk}))(?P=g{n})" for n, chunk in enumerate(middle))
    return re.compile(f"{first}{groups}.*{last}", re.DOTALL).fullmatch


def _chunks(parts: Sequence[str]) -> list[str]:
    """The parts between the stars, joined."""
    chunks = [""]
    for part in parts:
        if part:
            chunks[-1] += part
        elif len(chunks) == 1 or chunks[-1]:
            chunks.append("")
    return chunks


def _bracket(body: str, at: int) -> tuple[str, int] | None:
    """The bracket expression at `at` as a regular expression, and the index after it; None when it is open."""
    at += 1
    negated = body[at : at + 1] in ("!", "^")
    at += negated
    items: list[str] = []
    first = True
    while at < len(body) and (body[at] != "]" or first):
        first = False
        named = re.match(r"\[:([a-z]+):\]", body[at:])
        if named is not None:
            if named[1] not in _CLASSES:
                return None
            items.append(_CLASSES[named[1]])
            at += named.end()
            continue
        low, at = _char(body, at)
        if low is None:
            return None
        if body[at : at + 1] == "-" and body[at + 1 : at + 2] not in ("", "]"):
            high, at = _char(body, at + 1)
            if high is None:
                return None
            if low <= high:
                items.append(f"{re.escape(low)}-{re.escape(high)}")
        else:
            items.append(re.escape(low))
    if at >= len(body):
        return None
    inside = "".join(items)
    if not inside:  # only empty ranges
        return ("." if negated else "(?!)"), at + 1
    return (f"[^{inside}]" if negated else f"[{inside}]"), at + 1


def _char(body: str, at: int) -> tuple[str | None, int]:
    """The character at `at` of a bracket expression, a backslash escaping the next one, and the index after it."""
    if body[at] == "\\":
        at += 1
    return (body[at], at + 1) if at < len(body) else (None, at)

"""Reads the markers of a fixture and takes them out, so that what is linted is clean code.

A marker is a comment at the end of a line, or alone on one (then the whole line is taken out, and `@+N` or `@-N` says
which line is meant, counted in the fixture as it is written):

    x = a + b             # expect: DEV101                         must be found on this line
    x = a + b             # expect: DEV101[5:10] "on `cuda`" (safe)  columns, part of the message, level of the fix
    # expect@+1: DEV101                                            on the next line
    x = a.to(b)           # quiet: DEV105 the result is kept       must not be found, and why
    y = x + f(b)          # todo-expect: DEV101 f is not followed  a known miss: fails on the day it is found
    y = x + g(b)          # todo-quiet: DEV101 g moves             a known false alarm: fails on the day it is gone
    reveal_device(x)      # reveal: cuda:1                         what the device facts say of x
    # fixes: unsafe                                                on the first line: `.fixed.py` has unsafe fixes too

Columns are 1-based code points, the second one exclusive. The level is `safe`, `unsafe`, `hint` or `none`. One comment
may hold several markers, each with its own `#`. Work is done on bytes, so that files which cannot be decoded or parsed
can be fixtures too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Literal

Word = Literal["expect", "quiet", "todo-expect", "todo-quiet", "reveal"]

WORDS: Final[tuple[Word, ...]] = ("expect", "quiet", "todo-expect", "todo-quiet", "reveal")
LEVELS: Final = ("safe", "unsafe", "hint", "none")
_OTHER_COMMENTS: Final = frozenset({"noqa", "devlint", "type", "fmt", "ruff", "pyright", "mypy", "pylint"})

# A comment that looks like a marker: `# word:` or `# word@...:`, at the start of a line or after white space.
_START = re.compile(rb"(?:^|(?<=[ \t]))#[ \t]*(?P<word>[A-Za-z][A-Za-z-]*)(?P<shift>@[^\s:]*)?:(?=\s|$)")
# A marker word whose colon was forgotten, followed by a code.
_NO_COLON = re.compile(rb"(?:^|(?<=[ \t]))#[ \t]*(?:todo-)?(?:expect|quiet)(?:@[^\s:]*)?[ \t]+[A-Z]{1,3}[0-9]{3}")
_CODE = re.compile(r"(?P<code>[A-Z]{1,3}[0-9]{3})(?:\[(?P<start>[0-9]+):(?P<end>[0-9]+)\])?")
_EXPECTED = re.compile(rf'{_CODE.pattern}(?:\s+"(?P<part>[^"]+)")?(?:\s+\((?P<level>{"|".join(LEVELS)})\))?')
_KNOWN_MISTAKE = re.compile(rf"{_CODE.pattern}\s+(?P<reason>\S.*)")


@dataclass(frozen=True, slots=True)
class Expected:
    """What a marker says of a finding; None where it says nothing. Columns are 1-based, the second one exclusive."""

    code: str
    columns: tuple[int, int] | None = None
    part: str | None = None
    level: str | None = None


@dataclass(frozen=True, slots=True)
class Marker:
    """One marker. `row` is the line it means in the stripped text, `written` the line of the fixture it stands on."""

    word: Word
    row: int
    written: int
    expected: Expected | None = None  # for every word but `reveal`
    text: str = ""  # the reason, or what `reveal` expects


@dataclass(slots=True)
class Fixture:
    """A fixture without its markers. `rows[i]` is the line of the fixture that line i + 1 of `raw` comes from."""

    path: str
    raw: bytes
    markers: list[Marker] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    unsafe: bool = False

    def written(self, row: int) -> int:
        """The line of the fixture as written, for a line of the stripped text."""
        return self.rows[row - 1] if 0 < row <= len(self.rows) else row

    def of(self, *words: Word) -> list[Marker]:
        return [marker for marker in self.markers if marker.word in words]


@dataclass(slots=True)
class _Comment:
    written: int
    word: str
    shift: str
    body: str


def read_fixture(raw: bytes, path: str) -> Fixture:
    """Split a fixture into clean code and markers. What cannot be read as a marker is listed in `problems`."""
    fixture = Fixture(path, b"")
    kept: list[bytes] = []
    found: list[_Comment] = []
    for written, line in enumerate(raw.splitlines(keepends=True), 1):
        body = line.rstrip(b"\r\n")
        if _NO_COLON.search(body):
            fixture.problems.append(f"{path}:{written}: a marker word needs a colon: {_text(body).strip()}")
        comments, code = _take_comments(body, written, fixture)
        found += comments
        if comments and not code.strip():
            continue  # a line of its own: taken out whole
        kept.append(code + line[len(body) :] if comments else line)
        fixture.rows.append(written)
    fixture.raw = b"".join(kept)
    stripped = {written: row for row, written in enumerate(fixture.rows, 1)}
    for comment in found:
        _add(fixture, comment, stripped)
    return fixture


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _take_comments(line: bytes, written: int, fixture: Fixture) -> tuple[list[_Comment], bytes]:
    """The markers of a line and what is left of it."""
    starts = []
    for match in _START.finditer(line):
        word = _text(match["word"])
        if word in _OTHER_COMMENTS:
            continue
        if word in WORDS or word == "fixes":
            starts.append(match)
        else:
            known = ", ".join(WORDS)
            fixture.problems.append(f"{fixture.path}:{written}: unknown marker word `{word}`; known: {known}")
    if not starts:
        return [], line
    ends = [match.start() for match in starts[1:]] + [len(line)]
    comments = [
        _Comment(written, _text(match["word"]), _text(match["shift"] or b""), _text(line[match.end() : end]).strip())
        for match, end in zip(starts, ends, strict=True)
    ]
    return comments, line[: starts[0].start()].rstrip(b" \t")


def _add(fixture: Fixture, comment: _Comment, stripped: dict[int, int]) -> None:
    """Turn a comment into a marker, or into a problem."""

    def problem(text: str) -> None:
        fixture.problems.append(f"{fixture.path}:{comment.written}: {text}")

    if comment.word == "fixes":
        if comment.written != 1 or comment.body != "unsafe":
            problem("`# fixes: unsafe` is the only form, and stands on the first line")
        else:
            fixture.unsafe = True
        return
    target = comment.written
    if comment.shift:
        if not re.fullmatch(r"@[+-][0-9]+", comment.shift):
            problem(f"unreadable marker: `{comment.word}{comment.shift}`; write `@+1` or `@-1`")
            return
        target += int(comment.shift[1:])
    row = stripped.get(target)
    if row is None:
        problem(f"marker means line {target}, which holds no code")
        return
    word: Word = next(known for known in WORDS if known == comment.word)
    if word == "reveal":
        if not comment.body:
            problem("`reveal` says no device")
            return
        fixture.markers.append(Marker(word, row, comment.written, text=comment.body))
        return
    pattern = _EXPECTED if word == "expect" else _KNOWN_MISTAKE
    match = pattern.fullmatch(comment.body)
    if match is None:
        wants = 'CODE[columns] "part" (level)' if word == "expect" else "CODE and a reason"
        problem(f"unreadable marker: `{word}: {comment.body}`; wanted {wants}")
        return
    groups = match.groupdict()
    columns = (int(groups["start"]), int(groups["end"])) if groups["start"] else None
    expected = Expected(groups["code"], columns, groups.get("part"), groups.get("level"))
    fixture.markers.append(Marker(word, row, comment.written, expected, groups.get("reason") or ""))

"""A log as it was written to a file or a pipe, made readable: one process, its lines in order, nothing but text.

Logs differ from a traceback on a screen. Progress bars rewrite their line. Collectors put a time and a name before each
line, or wrap it into JSON. Ranks print at once. Viewers show the newest line first. What is known of the form of a
traceback puts that right: its head stands right above a frame, a frame above its source line, and a prefix is what stands
before both of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

_LONGEST = 4_000  # characters of a line that are kept: errors are shorter, images and weights in a log are not
#: Colours and other sequences for terminals: as bytes, as `cat -v` shows them, and without the byte that browsers drop.
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]|\^\[\[[\d;]*[mK]|"
    r"\[\d{1,3}(?:;\d{1,3})*m"
)
_BACK = re.compile(r"\x08+")
#: Progress bars: of tqdm with and without an end, of rich and pip, of Keras.
_BAR = re.compile(
    r"[^\n|]{0,80}?\d{1,3}%\|[^|\n]{0,300}\| *[\d.?]+\w*/[\d.?]+\w* \[[^\]\n]{0,160}\]"
    r"|(?:[^\n:]{1,60}: )?\b\d+it \[[^\]\n]{0,160}\]"
    r"|[^\n━╸╺]{0,80}[━╸╺]{4}[━╸╺ ]*(?: *(?:\d[\d:./%]*|-:--:--|(?:[kMGT]?i?[Bb](?:it)?/s|[kMGT]i?B|it/s|eta)(?![\w.(])))*"
    r"|^ *\d+/(?:\d+|Unknown) \[[=>.]{5,}\](?: - (?:[\w ]{1,40}: )?[\d.:+-]+(?:e[+-]\d+)?(?:[mu]?s|[mh])?(?:/(?:step|epoch))?)*"
)
_HEAD = "Traceback (most recent call last)"
_FRAME = re.compile(r' {2}File "[^"\n]+", line \d')
_AT_FRAME = re.compile(r'(?P<prefix>[^\n]*?)(?: {2}File "[^"\n]+", line \d|(?:[╭┌][─ ]*)?Traceback \(most recent call)')
_TELLS = re.compile(r'File "[^"\n]+", line \d|Traceback \(most recent call|\w(?:Error|Exception): ')
_DAY = r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?(?:Z|[+-]\d\d:?\d\d))?"
_SECONDS = r"\b1[5-9]\d{8}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?\b"  # since 1970, until 2033
_CLOCK = r"(?:\w{3} +\d{1,2} +)?\d\d:\d\d:\d\d(?:[.,]\d+)?|\[ *\d+\.\d{3,}\]"
_STAMP = re.compile(f"{_DAY}|{_SECONDS}|{_CLOCK}")
_SORTED = re.compile(f"[^\n]{{0,60}}?({_DAY}|{_SECONDS})")
_CLOCKED = re.compile(f"[^\n]{{0,60}}?({_CLOCK})")
_NEAR = 300_000  # characters on each side of an error within which a prefix is learned


def cleaned(text: str) -> str:
    """A text without colours and progress bars, with plain ends of lines, and without the rest of very long lines."""
    text = _ESCAPE.sub("", _from_json(text))
    if "\r" in text:
        text = _not_written_over(re.sub(r"\r+\n", "\n", text))
    if "\b" in text:
        text = _BACK.sub("\n", text)
    return "".join(f"{line}\n" for line in _without_bars(text))


def _not_written_over(text: str) -> str:
    """A text without what the end of a line, `\\r`, lets the next text write over. Without other ends it is one itself."""
    if "\n" not in text:
        return text.replace("\r", "\n")
    kept = []
    for line in text.split("\n"):
        *before, last = line.split("\r")
        kept += [part for part in before if _TELLS.search(part[:_LONGEST])]
        kept.append(last)
    return "\n".join(kept)


def _without_bars(text: str) -> Iterator[str]:
    for whole in text.splitlines():
        line = whole[:_LONGEST]
        rest = _BAR.sub("", line) if "%|" in line or "it [" in line or "━" in line or "/" in line else line
        if rest.strip() or rest == line:
            yield rest


def _from_json(text: str) -> str:
    """The text of a log whose lines are records in JSON: of each the fields that have the traceback in some record."""
    if not re.search(r'^ *\{.*(?:Traceback \(most recent|File \\").*\} *$', text, re.MULTILINE):
        return text
    lines = text.splitlines()
    records = [_record(line) for line in lines]
    keys = {key for record in records for key, value in record.items() if _TELLS.search(value)}
    kept = []
    for line, record in zip(lines, records, strict=True):
        said = [value.rstrip("\n") for key, value in record.items() if key in keys]
        kept.append("\n".join(said) if said else line)
    return "\n".join(kept)


def _record(line: str) -> dict[str, str]:
    """The texts of a record by their keys, those of inner ones too; nothing where the line is none."""
    if not line.lstrip().startswith("{"):
        return {}
    try:
        return dict(_texts(json.loads(line), ""))
    except (ValueError, RecursionError):
        return {}


def _texts(value: Any, key: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(inner, f"{key}.{name}")


def in_order(text: str) -> str:
    """A log with its lines as they were printed: by their times, or backwards where it shows the newest first."""
    lines = _by_time(text.splitlines())
    if _is_backwards(lines):
        lines.reverse()
    return "".join(f"{line}\n" for line in lines)


def _by_time(lines: list[str]) -> list[str]:
    """Lines by the times that stand before them. A line without one belongs to the line before it."""
    found = [_SORTED.match(line) for line in lines]
    stamps = [_comparable(match[1]) if match is not None else "" for match in found]
    sortable = sum(map(bool, stamps)) > 1
    if not sortable:
        found = [_CLOCKED.match(line) for line in lines]
        stamps = [match[1] if match is not None else "" for match in found]
    records: list[tuple[str, list[str]]] = [("", [])]
    for stamp, line in zip(stamps, lines, strict=True):
        if stamp:
            records.append((stamp, []))
        records[-1][1].append(line)
    head, *rest = records
    pairs = list(pairwise(rest))
    falls, rises = sum(a[0] > b[0] for a, b in pairs), sum(a[0] < b[0] for a, b in pairs)
    if not falls:
        return lines
    if falls > rises:
        rest.reverse()
    if sortable:
        rest.sort(key=lambda record: record[0])
    return [*head[1], *(line for _, record in rest for line in record)]


def _comparable(stamp: str) -> str:
    """A time as a text that sorts: one separator for the day, and one for the part of a second."""
    return stamp.replace("/", "-").replace("T", " ").replace(",", ".").removesuffix("Z")


def _is_backwards(lines: Sequence[str]) -> bool:
    """Whether the frames stand above the heads of their tracebacks."""
    above = below = 0
    for at, line in enumerate(lines):
        if _HEAD in line:
            above += bool(_FRAME.search(_neighbour(lines, at, -1)))
            below += bool(_FRAME.search(_neighbour(lines, at, 1)))
    return above > below


def _neighbour(lines: Sequence[str], at: int, step: int) -> str:
    """The next line in a direction that is not blank and not another head."""
    at += step
    while 0 <= at < len(lines) and (_HEAD in lines[at] or not lines[at].strip()):
        at += step
    return lines[at] if 0 <= at < len(lines) else ""


@dataclass(frozen=True, slots=True)
class _Prefix:
    """What stands before the lines of a log: times and numbers may differ. `telling`: the numbers that name a process."""

    pattern: re.Pattern[str]
    telling: tuple[int, ...]

    def of(self, line: str) -> tuple[str, tuple[str, ...]] | None:
        """The prefix of a line, and which process it names; None where the line has none."""
        match = self.pattern.match(line)
        return (match[0], tuple(match[number] for number in self.telling)) if match is not None else None


def of_process(text: str, start: int) -> str:
    """The lines of the process that printed what starts at a place, without what names it before each line."""
    first = text.rfind("\n", 0, start) + 1
    near = text[max(0, start - _NEAR) : start + _NEAR].splitlines()
    for prefix in _prefixes(near):
        named = prefix.of(text[first : first + _LONGEST])
        if named is None:
            continue
        found = ((line, prefix.of(line)) for line in text.splitlines())
        return "".join(f"{line[len(of[0]) :]}\n" for line, of in found if of is not None and of[1] == named[1])
    return text


def _prefixes(lines: Sequence[str]) -> Iterator[_Prefix]:
    """What stands before frames and before other lines too, the longest first."""
    seen: dict[str, None] = {}
    for line in lines:
        match = _AT_FRAME.match(line)
        if match is not None and match["prefix"].strip():
            seen.setdefault(_shape(match["prefix"]))
    for shape in sorted(seen, key=len, reverse=True):
        pattern = re.compile(shape)
        found = [(line, match) for line in lines if (match := pattern.match(line)) is not None]
        if any(_AT_FRAME.match(line) is None for line, _ in found):
            few = max(1, len(found) // 3)  # what differs from line to line counts them
            numbers = range(1, pattern.groups + 1)
            yield _Prefix(pattern, tuple(n for n in numbers if len({match[n] for _, match in found}) <= few))


def _shape(prefix: str) -> str:
    """A pattern for a prefix with other times and numbers. A blank at its end may be missing before an empty line."""
    parts, at = [], 0
    for match in _STAMP.finditer(prefix):
        parts += [_numbers(prefix[at : match.start()]), f"(?:{_STAMP.pattern})"]
        at = match.end()
    shape = "".join([*parts, _numbers(prefix[at:])])
    return f"{shape.removesuffix(chr(92) + ' ')}(?: |$)" if prefix.endswith(" ") else shape


def _numbers(text: str) -> str:
    return re.sub(r"\d+", lambda _: r"(\d+)", re.escape(text))

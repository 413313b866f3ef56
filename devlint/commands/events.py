"""`devlint events FILE[:LINE]`: the calls, attributes, comparisons and assignments that a rule can subscribe to.

Without a file it lists the types of events.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devlint.commands import shell
from devlint.config import Resolver
from devlint.discover import Finder
from devlint.errors import SourceError, UsageError
from devlint.report.data import as_json
from devlint.source import Source, read_source
from devlint.terminal import Terminal

if TYPE_CHECKING:
    from devlint.inference.observed.events import Inferred, Part, Whereabouts

#: Events by the word that the command prints.
_WORDS = {
    "InferredCall": "call",
    "InferredAttribute": "attribute",
    "InferredComparison": "comparison",
    "InferredAssignment": "assignment",
    "InferredReading": "early reading of a clock",
}


def main(arguments: Sequence[str]) -> int:
    """Run the command. Exit codes: 0, or 2 for a place that is none and for a file that cannot be read or parsed."""
    return shell.run(parser(), arguments, _show)


def parser() -> argparse.ArgumentParser:
    """The parser of `devlint events`."""
    result = shell.Parser(
        prog="devlint events",
        description="Show the events that a rule can subscribe to, with what is inferred of their parts. "
        "Without a file, list the types of events.",
        allow_abbrev=False,
    )
    result.add_argument(
        "place", nargs="?", metavar="FILE[:LINE]", help="the file, or one of its lines, such as train.py:42"
    )
    result.add_argument(
        "--output-format", choices=("text", "json"), default="text", help="the output format (default: text)"
    )
    shell.add_color(result)
    return result


def _show(args: argparse.Namespace, terminal: Terminal) -> None:
    if args.place is None:
        _list(args, terminal)
        return
    path, wanted = _place(args.place)
    source, found = _events(path)
    if wanted is not None and not 1 <= wanted <= source.rows:
        raise UsageError(f"{path} has {source.rows} lines, not {wanted}")
    kept = [each for each in found if wanted is None or source.position(each.span.start).row == wanted]
    if args.output_format == "json":
        terminal.print(as_json([_row(each, source) for each in kept], indent=2))
        return
    for each in kept:
        start = source.position(each.span.start)
        terminal.print(f"{path}:{start.row}:{start.column}: {_head(each, source)}")
        for name, part in _parts(each):
            terminal.print(f"    {name}: {_what(part)}")
    if not kept:
        terminal.print(f"{args.place}: no events")
    if Finder(Resolver()).config_for(path).inference != "new":
        terminal.note('`devlint check` emits these events with `inference = "new"` alone, which the settings here lack')


def _list(args: argparse.Namespace, terminal: Terminal) -> None:
    """The types of events, each with what it stands for and whether the new inference emits it."""
    from devlint import api
    from devlint.inference.events import DeviceMismatch
    from devlint.inference.observed.events import Inferred

    kinds = [each for each in vars(api).values() if isinstance(each, type) and issubclass(each, api.Event)]
    rows = [
        {
            "event": each.__name__,
            "summary": _summary(each),
            "needs_inference": issubclass(each, (Inferred, DeviceMismatch)),
        }
        for each in sorted(kinds, key=lambda each: each.__name__)
        if each is not api.Event
    ]
    if args.output_format == "json":
        terminal.print(as_json(rows, indent=2))
        return
    width = max(len(str(row["event"])) for row in rows)
    for row in rows:
        needs = ' (`inference = "new"`)' if row["needs_inference"] else ""
        terminal.print(f"{row['event']:<{width}}  {row['summary']}{needs}")


def _summary(kind: type) -> str:
    """The first sentence of a docstring."""
    paragraph = " ".join((kind.__doc__ or "").partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(" ,.")


def _place(text: str) -> tuple[str, int | None]:
    """The path, and the line if one is given."""
    path, colon, row = text.rpartition(":")
    return (path, int(row)) if colon and row.isdigit() else (text, None)


def _events(path: str) -> tuple[Source, list[Inferred]]:
    from devlint.engine import Linter
    from devlint.inference.analysis import infer
    from devlint.inference.observed.events import Inferred
    from devlint.settings import Settings

    linter = Linter([], Settings())
    try:
        source = read_source(Path(path))
        tree = linter.parse(source)
    except SourceError as error:
        raise UsageError(f"{path}:{error.row}:{error.column}: {error}") from error
    full = os.path.abspath(path)
    source = Source(full, source.raw, source.text)
    around = linter.neighbours(full)
    return source, infer(tree, source, linter.load_tree, (), around, observes=(Inferred,), callers=True).observed


def _head(event: Inferred, source: Source) -> str:
    text = " ".join(source.text[event.span.start : event.span.end].split())
    word = _WORDS[type(event).__name__]
    exists = getattr(event, "exists", None)
    known = {True: "", False: f", which has no `{getattr(event, 'name', '')}`", None: ""}[exists]
    return f"{word} `{text if len(text) <= 60 else text[:57] + '...'}`{known}"


def _parts(event: Inferred) -> Iterator[tuple[str, Part]]:
    """The parts of an event by the name of their field."""
    for name in ("receiver", "owner", "left", "right", "callee", "value"):
        part = getattr(event, name, None)
        if part is not None:
            yield name, part
    for key, part in getattr(event, "arguments", {}).items():
        yield f"arguments[{key!r}]", part
    result = getattr(event, "result", None)
    if result is not None:
        yield "result", result


def _what(part: Part) -> str:
    name = f" ({part.class_name})" if part.class_name else ""
    places = " or ".join(sorted({_where(each) for each in part.places if any(each[:2])}))
    where = f", {'names' if part.kind in ('device', 'string') else 'on'} {places}" if places else ""
    return f"{part.kind}{name}{where}, {part.evidence}"


def _where(place: Whereabouts) -> str:
    named = place.device or f"`{place.expression}`"
    return f"{named} if {place.when}" if place.when else named


def _row(event: Inferred, source: Source) -> dict[str, Any]:
    start, end = source.position(event.span.start), source.position(event.span.end)
    row: dict[str, Any] = {
        "event": type(event).__name__,
        "location": {"row": start.row, "column": start.column},
        "end_location": {"row": end.row, "column": end.column},
        "function": event.function,
    }
    for name in ("name", "exists", "discarded", "operator", "target"):
        if hasattr(event, name):
            row[name] = getattr(event, name)
    row["parts"] = {name: _part(part) for name, part in _parts(event)}
    return row


def _part(part: Part) -> dict[str, Any]:
    return {
        "text": part.text,
        "kind": part.kind,
        "class_name": part.class_name,
        "places": [each._asdict() for each in part.places],
        "evidence": part.evidence,
        "constant": part.constant if isinstance(part.constant, (str, int, float, bool)) else None,
    }

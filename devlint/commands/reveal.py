"""`devlint reveal FILE:LINE`: kind and device of every value on a line, with the trail, or why it is not known."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devlint.commands import shell
from devlint.config import Resolver
from devlint.errors import SourceError, UsageError
from devlint.report.data import as_json
from devlint.rulebook import Rulebook
from devlint.source import Source, read_source
from devlint.terminal import Terminal

if TYPE_CHECKING:
    from devlint.facts.reveal import Revealed


def main(arguments: Sequence[str]) -> int:
    """Run the command. Exit codes: 0, or 2 for a place that is none and for a file that cannot be read or parsed."""
    return shell.run(parser(), arguments, _show)


def parser() -> argparse.ArgumentParser:
    """The parser of `devlint reveal`."""
    result = shell.Parser(
        prog="devlint reveal",
        description="Show the type and device of every value on a line, and the lines that explain them.",
        allow_abbrev=False,
    )
    result.add_argument("place", metavar="FILE:LINE", help="the file and the line, such as train.py:42")
    result.add_argument(
        "--output-format", choices=("text", "json"), default="text", help="the output format (default: text)"
    )
    shell.add_color(result)
    return result


def _show(args: argparse.Namespace, terminal: Terminal) -> None:
    from devlint.facts.project.project import Project
    from devlint.facts.reveal import reveal, row_of

    path, row = place(args.place)
    project = Project()
    try:
        source = read_source(Path(path))
        tree = project.parsed(source).tree
    except SourceError as error:
        raise UsageError(f"{path}:{error.row}:{error.column}: {error}") from error
    if not 1 <= row <= source.rows:
        raise UsageError(f"{path} has {source.rows} lines, not {row}")
    config = Resolver().for_directory(os.path.dirname(os.path.abspath(path)))
    settings = Rulebook().settings(config, path)
    found = reveal(tree, source, settings, range(row, row + 1), project)
    if args.output_format == "json":
        terminal.print(as_json([_row(r, source) for r in found], indent=2))
        return
    terminal.print(f"{path}:{row}: {source.line_text(row).strip()}")
    if not found:
        terminal.print("  no value with a device on this line")
    for revealed in found:
        terminal.print(f"  {_text(revealed.text)}: {_what(revealed)}")
        for origin in revealed.value.because:
            where = row_of(origin, source)
            if where is not None:
                elsewhere = "" if origin.path is None else f"{origin.path} "
                terminal.print(f"      {elsewhere}line {where}: {origin.text}")


def place(text: str) -> tuple[str, int]:
    """The path and the row of FILE:LINE. Raises UsageError for other words."""
    path, colon, row = text.rpartition(":")
    if not colon or not row.isdigit():
        raise UsageError(f"expected FILE:LINE, not {text}")
    return path, int(row)


def _text(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else flat[:57] + "..."


def _what(revealed: Revealed) -> str:
    value = revealed.value
    if revealed.reason is not None:
        kind = "" if value.kind == "unknown" else f"{value.kind}, "
        return f"{kind}device unknown: {revealed.reason}"
    from devlint.facts.values import describe

    zero = {True: ", 0-dim", False: ", not 0-dim", None: ""}[value.zero_dim] if value.is_tensor else ""
    where = "names" if value.kind in ("device", "string") else "on"
    return f"{value.kind} {where} {describe(value.device)}{zero}"


def _row(revealed: Revealed, source: Source) -> dict[str, Any]:
    from devlint.facts.reveal import row_of

    start, end = source.position(revealed.span.start), source.position(revealed.span.end)
    value = revealed.value
    return {
        "text": revealed.text,
        "location": {"row": start.row, "column": start.column},
        "end_location": {"row": end.row, "column": end.column},
        "kind": value.kind,
        "device": sorted(map(str, value.device)) or None,
        "zero_dim": value.zero_dim,
        "reason": revealed.reason,
        "trail": [{"path": o.path or source.path, "row": row_of(o, source), "message": o.text} for o in value.because],
    }

"""`devlint explain -`: reads a pasted traceback of a device error, names the cause and the line to change."""

from __future__ import annotations

import argparse
import codecs
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from devlint.cli import ExitCode
from devlint.commands import shell
from devlint.errors import UsageError
from devlint.model import Safety
from devlint.terminal import Terminal

if TYPE_CHECKING:
    from devlint.explain.causes import Cause
    from devlint.explain.mended import Next


def main(arguments: Sequence[str]) -> int:
    """Run the command. Exit codes: 0 when the error was recognised, 1 when not, 2 for wrong use."""
    return shell.run(parser(), arguments, _explain)


def parser() -> argparse.ArgumentParser:
    """The parser of `devlint explain`."""
    result = shell.Parser(
        prog="devlint explain",
        description="Read a traceback with a device error. Name the cause of the error and the line to change.",
        allow_abbrev=False,
        epilog="Exit codes: 0 if devlint knows the error, 1 if it does not, 2 for wrong usage.",
    )
    result.add_argument(
        "file", nargs="?", default="-", help="a file with the traceback, or - for standard input (default: -)"
    )
    shell.add_color(result)
    return result


def _explain(args: argparse.Namespace, terminal: Terminal) -> int:
    return explain(_text(args.file), terminal)


def _text(file: str) -> str:
    if file == "-":
        if sys.stdin is None:
            raise UsageError("standard input is closed")
        return _decoded(sys.stdin.buffer.read()) if isinstance(sys.stdin, io.TextIOWrapper) else sys.stdin.read()
    try:
        return _decoded(Path(file).read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: {getattr(error, 'strerror', error)}") from error


def _decoded(data: bytes) -> str:
    """Text of UTF-8, or of UTF-16 as PowerShell writes what is redirected to a file."""
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and b"\0" in data
    return data.decode("utf-16" if utf16 else "utf-8-sig", "replace")


def explain(text: str, terminal: Terminal) -> int:
    """Print the cause of the error in a traceback, and the lines to change where the source is at hand."""
    from devlint.explain import causes

    explanation = causes.explain(text, Path())
    if explanation is None:
        terminal.print(
            "devlint finds no known device error in this text. The last line of the traceback names the error."
        )
        return ExitCode.PROBLEMS
    terminal.print("cause:  " + explanation.error.meaning)
    terminal.print("remedy: " + explanation.error.remedy)
    if explanation.where is not None and explanation.frame is not None:
        file, row = explanation.where
        terminal.print(f"where:  {file.place(row)} in {explanation.frame.name}")
    elif explanation.frame is not None:
        frame = explanation.frame
        terminal.print(
            f"where:  {frame.path}:{frame.row} in {frame.name}, but its source is missing or cannot be parsed"
        )
    for cause in explanation.causes:
        _show(cause, terminal)
    if explanation.then is not None:
        _show_next(explanation.then, terminal)
    return ExitCode.CLEAN


def _show_next(then: Next, terminal: Terminal) -> None:
    terminal.print("")
    finding = then.finding
    where = then.file.place(then.row)
    terminal.print(f"next:   after this fix, the program stops at {where}: {finding.code} {finding.message}")
    terminal.print(f"    {then.file.source.line_text(then.row).strip()}")


def _show(cause: Cause, terminal: Terminal) -> None:
    terminal.print("")
    place = cause.suspect.place
    finding = cause.finding
    said = place.text if finding is None else f"{finding.code} {finding.message}"
    column = place.column if finding is None else finding.start.column
    where = place.file.place(place.row)
    terminal.print(f"{where}: {said}" if place.file.notebook is not None else f"{where}:{column}: {said}")
    terminal.print(f"    {place.file.source.line_text(place.row).strip()}")
    latest = cause.latest
    for step in reversed(cause.suspect.trail.steps):
        if step.row != place.row and step is not latest:
            near = step.file is place.file and step.file.notebook is None
            terminal.print(f"    {f'line {step.row}' if near else step.file.place(step.row)}: {step.text}")
    if latest is not None:
        terminal.print(f"    {latest.file.place(latest.row)}: {latest.text}; this is the last place to move it")
    if finding is not None and finding.fix is not None:
        kind = "suggestion" if finding.fix.safety is Safety.HINT else f"{finding.fix.safety.value} fix"
        terminal.print(f"    {kind}: {finding.fix.title}")

"""`devlint explain -`: reads a pasted traceback of a device error, names the cause and the line to change."""

from __future__ import annotations

import argparse
import codecs
import io
import sys
from collections.abc import Sequence
from pathlib import Path

from devlint.cli import ExitCode
from devlint.commands import shell
from devlint.errors import UsageError
from devlint.terminal import Terminal


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
    from devlint.explain import causes, shown

    explanation = causes.explain(text, Path())
    if explanation is None:
        terminal.print(shown.UNKNOWN)
        return ExitCode.PROBLEMS
    for line in shown.lines(explanation):
        terminal.print(line)
    return ExitCode.CLEAN

"""`devlint reveal FILE:LINE`: kind and device of every value on a line, with the trail, or why it is not known.

With `--why`: for every operation on the line, what decided that something or nothing is reported.
"""

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
    import ast

    from devlint.facts.project.project import Project
    from devlint.facts.reveal import Revealed
    from devlint.file_state import FileState
    from devlint.inference.reveal.asked import Shown, Told
    from devlint.model import Span
    from devlint.settings import Settings


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
        "--why",
        action="store_true",
        help="say for each operation on the line what decided that something or nothing is reported",
    )
    result.add_argument(
        "--inference",
        choices=("old", "new"),
        help="the inference that answers (default: that of the settings; `--why` needs the new one)",
    )
    result.add_argument(
        "--output-format", choices=("text", "json"), default="text", help="the output format (default: text)"
    )
    shell.add_color(result)
    return result


def _show(args: argparse.Namespace, terminal: Terminal) -> None:
    from devlint.facts.project.project import Project

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
    settings = Rulebook(inference="new" if args.why else args.inference).settings(config, path)
    rows = range(row, row + 1)
    if settings.inference == "new":
        _show_new(args, terminal, tree, source, settings.targets, rows, project)
    else:
        _show_old(args, terminal, tree, source, settings, rows, project)


def _show_old(
    args: argparse.Namespace, terminal: Terminal, tree: ast.Module, source: Source, settings: Settings, rows: range,
    project: Project,
) -> None:  # fmt: skip
    from devlint.facts.reveal import reveal, row_of

    found = reveal(tree, source, settings, rows, project)
    if args.output_format == "json":
        terminal.print(as_json([_row(r, source) for r in found], indent=2))
        return
    terminal.print(f"{source.path}:{rows[0]}: {source.line_text(rows[0]).strip()}")
    if not found:
        terminal.print("  no value with a device on this line")
    for revealed in found:
        terminal.print(f"  {_text(revealed.text)}: {_what(revealed)}")
        for origin in revealed.value.because:
            where = row_of(origin, source)
            if where is not None:
                elsewhere = "" if origin.path is None else f"{origin.path} "
                terminal.print(f"      {elsewhere}line {where}: {origin.text}")


def _show_new(
    args: argparse.Namespace, terminal: Terminal, tree: ast.Module, source: Source, targets: tuple[str, ...], rows: range,
    project: Project,
) -> None:  # fmt: skip
    """The same of the new inference, which also says why nothing is reported."""
    from devlint.inference.program.neighbours import Neighbours
    from devlint.inference.reveal.asked import ask

    def load(path: str) -> tuple[FileState, ast.Module | None]:
        state, loaded = project.load(path)
        return state, loaded.tree if loaded is not None else None

    def text_of(path: str) -> Source | None:
        _, loaded = project.load(path)
        return loaded.source if loaded is not None else None

    around = Neighbours(os.path.abspath(source.path), project.files, text_of)
    answer = ask(tree, source, load, targets, rows, around)
    if args.output_format == "json":
        values = [_value_row(each, source) for each in answer.values]
        operations = [_operation_row(each, source) for each in answer.operations]
        terminal.print(as_json({"values": values, "operations": operations} if args.why else values, indent=2))
        return
    terminal.print(f"{source.path}:{rows[0]}: {source.line_text(rows[0]).strip()}")
    if not answer.values:
        terminal.print("  no value with a device on this line")
    for each in answer.values:
        terminal.print(f"  {_text(each.text)}: {each.what}")
        for line in each.because:
            elsewhere = "" if line.path == os.path.abspath(source.path) else f"{line.path} "
            terminal.print(f"      {elsewhere}line {line.row}: {line.text}")
    for told in answer.operations if args.why else ():
        terminal.print(f"  why `{_text(told.text)}` is {'' if told.code else 'not '}reported")
        for reason in told.reasons:
            terminal.print(f"      {reason}")
    if args.why and not answer.operations:
        terminal.print("  no operation on tensors on this line")


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


def _value_row(shown: Shown, source: Source) -> dict[str, Any]:
    return {
        "text": shown.text,
        **_places(shown.span, source),
        "kind": shown.kind,
        "device": list(shown.devices) if shown.devices is not None else None,
        "zero_dim": shown.zero_dim,
        "reason": shown.what if shown.devices is None else None,
        "trail": [{"path": each.path, "row": each.row, "message": each.text} for each in shown.because],
    }


def _operation_row(told: Told, source: Source) -> dict[str, Any]:
    return {"text": told.text, **_places(told.span, source), "code": told.code, "reasons": list(told.reasons)}


def _places(span: Span, source: Source) -> dict[str, Any]:
    start, end = source.position(span.start), source.position(span.end)
    return {
        "location": {"row": start.row, "column": start.column},
        "end_location": {"row": end.row, "column": end.column},
    }


def _row(revealed: Revealed, source: Source) -> dict[str, Any]:
    from devlint.facts.reveal import row_of

    value = revealed.value
    return {
        "text": revealed.text,
        **_places(revealed.span, source),
        "kind": value.kind,
        "device": sorted(map(str, value.device)) or None,
        "zero_dim": value.zero_dim,
        "reason": revealed.reason,
        "trail": [{"path": o.path or source.path, "row": row_of(o, source), "message": o.text} for o in value.because],
    }

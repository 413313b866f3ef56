"""`devlint report FILE:LINE`: a small example of a finding or of a silence, without names of the program, to paste."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from devlint import __version__
from devlint.commands import shell
from devlint.commands.reveal import place
from devlint.settings import Settings
from devlint.terminal import Terminal

if TYPE_CHECKING:
    from devlint.minimal.example import Example

#: Settings that change what is found and hold no names of the project.
_TELLING = ("torch_version", "torch_newest", "assume_accelerator", "targets", "inference")


def main(arguments: Sequence[str]) -> int:
    """Run the command. Exit codes: 0, or 2 for a place that is none and for what cannot be made smaller."""
    return shell.run(parser(), arguments, _show)


def parser() -> argparse.ArgumentParser:
    """The parser of `devlint report`."""
    result = shell.Parser(
        prog="devlint report",
        description="Print a small example of the finding on a line, or of a bug that devlint misses there. The example has "
        "other names and strings than your program. devlint does not run your program and sends nothing.",
        allow_abbrev=False,
    )
    result.add_argument("place", metavar="FILE:LINE", help="the line, such as train.py:42")
    result.add_argument(
        "--seconds", type=float, default=30.0, help="the time limit for making the example smaller (default: 30)"
    )
    shell.add_color(result)
    return result


def _show(args: argparse.Namespace, terminal: Terminal) -> None:
    from devlint.minimal.example import example

    path, row = place(args.place)
    for line in lines(example(path, row, args.seconds)):
        terminal.print(line)


def lines(made: Example) -> Iterator[str]:
    """An example as Markdown."""
    found = made.finding
    yield f"**{found.code} {found.name}**: a finding" if found is not None else "**A missed bug**"
    yield ""
    yield "```python"
    yield made.program.rstrip("\n")
    yield "```"
    yield "```text"
    yield from made.said
    yield "```"
    yield f"{', '.join(_versions())}."
    if "..." in made.program:
        yield "`...` replaces code that does not matter."
    settings = list(_settings(made.settings))
    if settings:
        yield f"Settings: {', '.join(settings)}."
    if not made.alone:
        yield "The finding depends on other files of the project. The example alone does not show it."
    if not made.is_smallest:
        yield "The time limit (`--seconds`) ended the search, so a smaller example may exist."


def _versions() -> Iterator[str]:
    yield f"devlint {__version__}"
    yield f"Python {platform.python_version()}"
    yield f"{platform.system()} {platform.machine()}"
    from importlib.metadata import PackageNotFoundError, version

    try:
        yield f"torch {version('torch')} installed"
    except PackageNotFoundError:
        yield "torch not installed"


def _settings(settings: Settings) -> Iterator[str]:
    usual = Settings()
    for item in fields(settings):
        value = getattr(settings, item.name)
        if item.name in _TELLING and value != getattr(usual, item.name):
            shown = ".".join(map(str, value)) if item.name.startswith("torch") and value else value
            yield f"`{item.name.replace('_', '-')} = {shown}`"

"""What every command has in common: `--color`, its terminal, and errors that end it with a message and exit code 2."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import NoReturn

from devlint.cli import ExitCode
from devlint.errors import DevlintError
from devlint.names import did_you_mean
from devlint.terminal import Terminal, printable

Work = Callable[[argparse.Namespace, Terminal], int | None]


class Parser(argparse.ArgumentParser):
    """A parser whose messages cannot steer the terminal: a word of the command line may be the name of a file."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


def add_color(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """The option `--color`."""
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="colours (default: auto)")


def parse(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """What a command is asked; ends with a message and the nearest option where it is asked what it does not know."""
    args, unknown = parser.parse_known_args(arguments)
    if unknown:
        known = [option for option in parser._option_string_actions if option.startswith("--")]
        first = unknown[0].partition("=")[0]
        hint = did_you_mean(first, known) if first.startswith("--") else ""
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    return args


def run(parser: argparse.ArgumentParser, arguments: Sequence[str], work: Work) -> int:
    """Parse the arguments and do the work of a command; its exit code, CLEAN where `work` returns none.

    A DevlintError that `work` raises becomes a message and ERROR; what was printed before it is written out.
    """
    args = parse(parser, arguments)
    terminal = Terminal(args.color)
    try:
        code = work(args, terminal)
        return ExitCode.CLEAN if code is None else code
    except DevlintError as error:
        terminal.error(str(error))
        return ExitCode.ERROR
    finally:
        terminal.flush()

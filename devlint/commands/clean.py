"""`devlint clean`: delete the cache of a project."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from devlint.cache import place, remove
from devlint.commands import shell
from devlint.config import Resolver
from devlint.errors import UsageError
from devlint.terminal import Terminal


def main(arguments: Sequence[str]) -> int:
    """Run `devlint clean` and return the exit code."""
    return shell.run(parser(), arguments, _clean)


def _clean(args: argparse.Namespace, terminal: Terminal) -> None:
    config = Resolver(isolated=args.isolated).for_directory(os.getcwd())
    directory = place(args.cache_dir or os.environ.get("DEVLINT_CACHE_DIR"), config)
    try:
        found = remove(directory)
    except (OSError, ValueError) as error:
        raise UsageError(f"{directory}: cannot be deleted: {getattr(error, 'strerror', error)}") from error
    terminal.print(f"Deleted {directory}." if found else f"No cache at {directory}.")


def parser() -> argparse.ArgumentParser:
    """The parser of `devlint clean`."""
    result = shell.Parser(prog="devlint clean", description="Delete the cache of `devlint check`.", allow_abbrev=False)
    result.add_argument(
        "--cache-dir", metavar="DIR", help="the directory of the cache (default: the one of `devlint check`)"
    )
    result.add_argument("--isolated", action="store_true", help="read no configuration file")
    shell.add_color(result)
    return result

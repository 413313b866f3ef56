"""`devlint server`: starts the language server, or says which extra is missing."""

from __future__ import annotations

from collections.abc import Sequence

from devlint.commands import shell
from devlint.errors import UsageError


def main(argv: Sequence[str]) -> int:
    """Serve over standard input and output. Raises UsageError without pygls."""
    shell.parse(parser(), argv)
    try:
        from devlint.editor import server
    except ImportError as error:
        raise UsageError(f'the language server needs the extra `lsp`: pip install "devlint[lsp]" ({error})') from error
    server.main()


def parser() -> shell.Parser:
    """The parser of `devlint server`, which takes no arguments."""
    return shell.Parser(
        prog="devlint server",
        description="Start the language server for an editor. It communicates over standard input and output.",
        allow_abbrev=False,
    )

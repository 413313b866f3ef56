"""`devlint server`: starts the language server, or says which extra is missing."""

from __future__ import annotations

from collections.abc import Sequence

from devlint.errors import UsageError


def main(argv: Sequence[str]) -> int:
    """Serve over standard input and output. Raises UsageError without pygls, or for arguments."""
    if argv:
        raise UsageError(f"devlint server takes no arguments, not {argv[0]}; it speaks over standard input and output")
    try:
        from devlint.editor import server
    except ImportError as error:
        raise UsageError(f'the language server needs the extra `lsp`: pip install "devlint[lsp]" ({error})') from error
    server.main()

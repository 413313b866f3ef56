"""The flake8 plugin: devlint's findings under its `DEV` codes. Suppressions and exit codes are then flake8's."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from functools import cache
from typing import Any

from devlint import __version__
from devlint.engine import Linter
from devlint.folding import fold
from devlint.model import Severity


class Plugin:
    """One file, as flake8 hands it over: https://flake8.pycqa.org/en/latest/plugin-development/."""

    name = "devlint"
    version = __version__

    def __init__(self, tree: ast.AST, filename: str, lines: list[str]) -> None:
        self.filename = filename
        self.text = "".join(lines)

    def run(self) -> Iterator[tuple[int, int, str, type[Any]]]:
        """Row (1-based), column (0-based, code points), text with the code in front, and this class."""
        from devlint.source import decode

        source = decode(self.text.encode(), self.filename)
        checker = linter(os.path.dirname(os.path.abspath(self.filename)), self.filename)
        for found in fold(checker.check(source).diagnostics):
            if found.severity is Severity.INFO and not checker.settings.counts_info:
                continue  # flake8 knows no severities: what it prints fails its run
            yield found.start.row, found.start.column - 1, f"{found.code} {found.message}", type(self)


@cache
def linter(directory: str, path: str) -> Linter:
    """A linter with the settings that devlint's own command would use for a file of that directory."""
    from devlint.config import Resolver
    from devlint.rulebook import Rulebook, rules_of

    config = Resolver().for_directory(directory)
    return Linter(rules_of(config.plugins), Rulebook().settings(config, path))

"""The errors devlint raises on purpose, under one base class."""

from __future__ import annotations


class DevlintError(Exception):
    """Base of all errors that devlint raises on purpose. Its text is meant for the user."""


class UsageError(DevlintError):
    """The command line, a path on it, or a setting is wrong. Exit code 2."""


class RuleLoadError(DevlintError):
    """A rule package cannot be loaded, two rules share a code, or there is no rule at all. Exit code 2."""


class SourceError(DevlintError):
    """A file cannot be read, decoded or parsed. Reported as DEV900 at `row` and `column` (1-based, code points)."""

    def __init__(self, message: str, row: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.row = row
        self.column = column


class RuleCrash(DevlintError):
    """A rule or an analysis raised. Names the rule, the file and the line; other rules and files go on. Exit code 2."""

    def __init__(self, rule: str, path: str, row: int, cause: BaseException) -> None:
        super().__init__(f"{path}:{row}: {rule} crashed: {type(cause).__name__}: {cause}")
        self.rule = rule
        self.path = path
        self.row = row
        self.cause = cause

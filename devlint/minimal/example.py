"""What `devlint report` prints of a place: a program that shows the finding or the silence, and what devlint says of it."""

from __future__ import annotations

import ast
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from devlint.config import Resolver
from devlint.engine import Linter
from devlint.errors import SourceError, UsageError
from devlint.facts.project.project import Project
from devlint.facts.reveal import Revealed, reveal, row_of
from devlint.facts.values import describe
from devlint.minimal.anonymous import anonymous
from devlint.minimal.shrink import Shrinker, statement_at
from devlint.model import Diagnostic
from devlint.rulebook import Rulebook, rules_of
from devlint.settings import Settings
from devlint.source import Source, of_text, read_source

NAME = "example.py"
_TARGETS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.With, ast.Import, ast.ImportFrom)


@dataclass(frozen=True, slots=True)
class Example:
    """A program, what is said of it, and what a reader has to know beside it.

    `finding`: None for a silence. `alone`: whether the program shows it without the other files of its project.
    """

    program: str
    said: tuple[str, ...]
    finding: Diagnostic | None
    settings: Settings
    alone: bool
    is_smallest: bool


class _Asked:
    """Asks devlint about texts, under the settings of a file, at its path or away from its project."""

    def __init__(self, settings: Settings, linter: Linter, path: str) -> None:
        self.settings = settings
        self._linter = linter
        self._path = path

    def findings(self, text: str) -> list[Diagnostic]:
        """What the rules find in a text, whatever comments silence."""
        result = self._linter.check(of_text(text, self._path))
        return [*result.diagnostics, *result.suppressed]

    def at(self, text: str, row: int) -> list[Diagnostic]:
        """The findings on the rows of a statement."""
        statement = statement_at(ast.parse(text), row)
        body = getattr(statement, "body", None)
        last = body[0].lineno - 1 if isinstance(body, list) and body else statement.end_lineno or row
        return [each for each in self.findings(text) if row <= each.start.row <= max(row, last)]

    def values(self, text: str, row: int) -> list[Revealed]:
        """What `devlint reveal` says of a row."""
        source = of_text(text, self._path)
        project = Project()
        return reveal(project.parsed(source).tree, source, self.settings, range(row, row + 1), project)


def example(path: str, row: int, seconds: float) -> Example:
    """The example of what devlint says of a line, made within some seconds. Raises UsageError for a place that is none."""
    source = _read(path, row)
    config = Resolver().for_directory(os.path.dirname(os.path.abspath(path)))
    settings = Rulebook().settings(config, path)
    linter = Linter(rules_of(config.plugins), settings)
    found = _on_row(linter, source, row)
    with tempfile.TemporaryDirectory(prefix="devlint") as folder:
        apart = _Asked(settings, Linter(rules_of(config.plugins), settings), os.path.join(folder, NAME))
        within = _Asked(settings, linter, path)
        return _made(source, row, found, (apart, within), seconds)


def _read(path: str, row: int) -> Source:
    if not path.endswith(".py"):
        raise UsageError(f"{path}: examples are made of Python files")
    try:
        source = read_source(Path(path))
        statement_at(ast.parse(source.text), row)
    except SourceError as error:
        raise UsageError(f"{path}:{error.row}:{error.column}: {error}") from error
    except SyntaxError as error:
        raise UsageError(f"{path}:{error.lineno}: {error.msg}") from error
    except LookupError as error:
        raise UsageError(f"{path}:{row}: no statement stands there") from error
    return source


def _on_row(linter: Linter, source: Source, row: int) -> Diagnostic | None:
    """The finding of a row: one that starts there, else one that covers it."""
    result = linter.check(source)
    found = [each for each in (*result.diagnostics, *result.suppressed) if each.start.row <= row <= each.end.row]
    return min(found, key=lambda each: (each.start.row != row, each.span), default=None)


def _made(source: Source, row: int, found: Diagnostic | None, asked: tuple[_Asked, _Asked], seconds: float) -> Example:
    tree = ast.parse(source.text)
    target = statement_at(tree, found.start.row if found is not None else row)
    kept = None if found is not None else frozenset(_bindings(tree, target))
    for each in asked:
        holds = _shows(each, found) if found is not None else _is_silent(each, tree, target.lineno, source)
        shrinker = Shrinker(tree, target.lineno, holds, seconds, kept)
        if not shrinker.holds():
            continue
        shrinker.run()
        number = _number(shrinker.text, shrinker.row)
        small = anonymous(shrinker.text, _at_number(number, _loosely(each, found, shrinker)))
        said, shown = _said(each, small, _row(small, number), found)
        return Example(small, tuple(said), shown, each.settings, each is asked[0], shrinker.is_done)
    what = "the finding" if found is not None else "what is known of the line"
    raise UsageError(
        f"{source.path}:{row}: {what} rests on comments or on the form of the text, so no smaller program shows it"
    )


def _at_number(number: int, holds: Callable[[str, int], bool]) -> Callable[[str], bool]:
    """The question about a text whose statements are the same in number: the statement is found by its number."""
    return lambda text: holds(text, _row(text, number))


def _shows(asked: _Asked, found: Diagnostic) -> Callable[[str, int], bool]:
    """Whether a text has the same finding on a statement; its names are the same, its rows are not."""
    wanted = (*_kind(found), _without_numbers(found.message))
    return lambda text, row: any((*_kind(d), _without_numbers(d.message)) == wanted for d in asked.at(text, row))


def _is_silent(asked: _Asked, tree: ast.Module, row: int, source: Source) -> Callable[[str, int], bool]:
    """Whether a text is silent on a statement and knows the same of its values."""
    whole = ast.unparse(tree) + "\n"
    wanted = _known(asked.values(whole, _row(whole, _number(source.text, row))), True)
    return lambda text, at: not asked.at(text, at) and _known(asked.values(text, at), True) == wanted


def _loosely(asked: _Asked, found: Diagnostic | None, shrinker: Shrinker) -> Callable[[str, int], bool]:
    """Whether a text with other names shows the same."""
    if found is not None:
        return lambda text, row: any(_kind(each) == _kind(found) for each in asked.at(text, row))
    wanted = _known(asked.values(shrinker.text, shrinker.row), False)
    return lambda text, row: not asked.at(text, row) and _known(asked.values(text, row), False) == wanted


def _kind(found: Diagnostic) -> tuple[object, ...]:
    return found.code, found.certainty, found.severity, found.fix.safety if found.fix is not None else None


def _known(values: list[Revealed], with_reasons: bool) -> list[tuple[object, ...]]:
    return [
        (
            each.value.kind,
            sorted(map(str, each.value.device)) if with_reasons else len(each.value.device),
            _without_numbers(each.reason or "") if with_reasons else each.reason is None,
        )
        for each in values
    ]


def _without_numbers(text: str) -> str:
    return re.sub(r"\d+", "0", text)


def _number(text: str, row: int) -> int:
    """Which statement of a text starts on a row, counted from its beginning."""
    rows = [node.lineno for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)]
    return sorted(rows).index(row)


def _row(text: str, number: int) -> int:
    return sorted(node.lineno for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt))[number]


def _bindings(tree: ast.Module, target: ast.stmt) -> Iterator[int]:
    """The rows of the statements that bind what a statement reads, in its function and in the module."""
    read = {node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    around = [n for n in functions if any(inner is target for inner in ast.walk(n))]
    inner = max(around, key=lambda n: n.lineno, default=None)
    for scope in filter(None, (tree, inner)):
        for node in _own_statements(scope):
            if isinstance(node, _TARGETS) and read & set(_bound(node)):
                yield node.lineno


def _own_statements(scope: ast.AST) -> Iterator[ast.AST]:
    """What stands in a scope, without what stands in functions and classes in it."""
    for child in ast.iter_child_nodes(scope):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child
            yield from _own_statements(child)


def _bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        return
    heads = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]
    for inner in (each for head in heads for each in ast.walk(head)):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner.id


def _said(asked: _Asked, text: str, row: int, found: Diagnostic | None) -> tuple[list[str], Diagnostic | None]:
    """What devlint says of a place in a text, and why; with the finding, where there is one."""
    if found is None:
        return list(_revealed(asked, text, row)), None
    shown = next(each for each in asked.at(text, row) if _kind(each) == _kind(found))
    lines = [f"{NAME}:{shown.start.row}:{shown.start.column}: {shown.code} {shown.message}"]
    evidence = f", evidence: {shown.evidence}" if shown.evidence else ""
    proof = f", {shown.proof}" if shown.proof else ""
    lines.append(f"  {shown.severity.value}, {shown.certainty or 'certain'}{evidence}{proof}")
    lines += [f"  line {each.start.row}: {each.message}" for each in shown.related]
    if shown.fix is not None:
        why = f" ({shown.fix.why})" if shown.fix.why else ""
        lines.append(f"  fix, {shown.fix.safety.value}{why}: {shown.fix.title}")
    return lines, shown


def _revealed(asked: _Asked, text: str, row: int) -> Iterator[str]:
    source = of_text(text, NAME)
    yield f"{NAME}:{row}: devlint finds nothing here. `devlint reveal {NAME}:{row}` says:"
    values = asked.values(text, row)
    if not values:
        yield "  no value with a device on this line"
    for each in values:
        known = f"{each.value.kind} on {describe(each.value.device)}" if each.reason is None else each.reason
        yield f"  {' '.join(each.text.split())}: {known}"
        for origin in each.value.because:
            if origin.path is None and (where := row_of(origin, source)) is not None:
                yield f"      line {where}: {origin.text}"

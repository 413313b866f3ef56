"""What an editor may ask of a document, without any protocol: findings, fixes, what is known of a value."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from devlint.engine import Linter
from devlint.errors import SourceError
from devlint.fix.apply import apply
from devlint.fix.rounds import fix_source
from devlint.model import Diagnostic, Safety, TextFix
from devlint.source import Source, decode, parse

_CODE = re.compile(r"[A-Z]{1,3}[0-9]{3}\b")


@dataclass(slots=True)
class Document:
    """One open text and what was found in it."""

    path: str
    source: Source
    linter: Linter
    diagnostics: list[Diagnostic]


def open_document(path: str, text: str) -> Document:
    """Check a text under the settings that hold for its path. Never raises for what stands in the text."""
    from devlint.config import Resolver
    from devlint.rulebook import Rulebook, rules_of

    config = Resolver().for_directory(os.path.dirname(os.path.abspath(path)))
    linter = Linter(rules_of(config.plugins), Rulebook().settings(config, path))
    source = decode(text.encode("utf-8", "surrogatepass"), path)
    return Document(path, source, linter, list(linter.check(source).diagnostics))


def fixed_text(document: Document, fix: TextFix) -> str:
    """The whole text after one fix."""
    return apply(document.source.text, [fix])[0]


def fix_all(document: Document) -> str:
    """The whole text after all safe fixes, each checked."""
    return fix_source(document.linter, document.source, {Safety.SAFE}).text


def suppression(document: Document, diagnostic: Diagnostic) -> tuple[int, str]:
    """Where a comment that silences a finding goes (an offset), and its text."""
    row = diagnostic.end.row
    line = document.source.line_text(row)
    end = document.source.starts[row - 1] + len(line.rstrip("\r\n"))
    return end, f"  # devlint: ignore[{diagnostic.code}]"


def hover(document: Document, row: int, column: int) -> str | None:
    """Markdown about what stands at a place (1-based): a rule's code in a comment, a finding, a value's device and why."""
    line = document.source.line_text(row)
    for match in _CODE.finditer(line):
        if match.start() < column <= match.end() and "#" in line[: match.start()]:
            return _rule(document, match.group())
    values = _values(document, row, column)
    findings = [d for d in document.diagnostics if d.start <= (row, column) < d.end]
    parts = [f"**{d.code} {d.name}**: {d.message}" for d in findings]
    return "\n\n".join([*parts, *values]) or None


def _rule(document: Document, code: str) -> str | None:
    import inspect
    import sys

    for rule in document.linter.rules:
        if rule.meta.code == code:
            text = inspect.getdoc(sys.modules[type(rule).__module__]) or rule.meta.summary
            return f"**{code} {rule.meta.name}**\n\n{text}"
    return None


def _values(document: Document, row: int, column: int) -> list[str]:
    """The innermost value at a place, with its trail."""
    from devlint.facts.reveal import reveal
    from devlint.facts.values import describe

    try:
        found = reveal(parse(document.source), document.source, document.linter.settings, row)
    except (SourceError, RecursionError):
        return []
    offset = document.source.starts[row - 1] + column - 1
    here = [r for r in found if r.span.start <= offset < r.span.end]
    if not here:
        return []
    inner = min(here, key=lambda r: r.span.end - r.span.start)
    if inner.reason is not None:
        return [f"`{inner.text}`: device unknown: {inner.reason}"]
    lines = [f"`{inner.text}`: {inner.value.kind} on {describe(inner.value.device)}"]
    for origin in inner.value.because:
        if origin.path is None:
            lines.append(f"- line {document.source.position(origin.span.start).row}: {origin.text}")
    return ["\n".join(lines)]

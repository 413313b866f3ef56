"""Writes a comment `# devlint: ignore[CODE] reason` for each finding, where the engine will look for it.

The comment goes to the end of the finding's first row, or of the statement's last one when the first ends inside a
string or with a backslash. Codes are added to a comment that is there already.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Sequence

from devlint.errors import SourceError
from devlint.fix.apply import splice
from devlint.fix.rounds import Checker, FixOutcome, Rejected
from devlint.model import ENGINE_RULES, Diagnostic, TextEdit
from devlint.scope import Hidden, without
from devlint.source import Source, parse
from devlint.suppression import directives
from devlint.tree import Tree

_ROUNDS = 5  # a comment may move what a second one has to be written for
_NOT_SILENCED = frozenset(meta.code for meta in ENGINE_RULES)
_ROW_END = re.compile(r"\r\n|\r|\n")


def add_ignores(checker: Checker, source: Source, reason: str, hidden: Hidden | None = None) -> FixOutcome:
    """The text with comments for all findings but the engine's own and those in `hidden`.

    `fixed` holds what was silenced, `rejected` what no comment can be written for. Raises SourceError when the file's
    encoding cannot hold the reason.
    """
    outcome = FixOutcome(source.text, checker.check(source))
    words = " ".join(reason.split())
    for _ in range(_ROUNDS):
        found = _open(outcome.result.diagnostics, hidden)
        edits = _edits(source, found, words) if found else []
        if not edits:
            break
        text = splice(source.text, edits)
        source = source.rewritten(text)
        if source.text != text:
            raise SourceError("cannot be written: the file would be decoded differently")
        after = checker.check(source)
        left = _open(after.diagnostics, hidden)
        gone = _gone(found, left)
        if not gone:
            break
        outcome.text, outcome.result = text, after
        outcome.fixed += gone
    left = _open(outcome.result.diagnostics, hidden)
    outcome.rejected = [Rejected(each, "no line of the statement can have a comment") for each in left]
    return outcome


def _open(found: Sequence[Diagnostic], hidden: Hidden | None) -> list[Diagnostic]:
    if hidden is not None:
        found = without(found, hidden.among(found))
    return [each for each in found if each.code not in _NOT_SILENCED]


def _gone(before: list[Diagnostic], after: list[Diagnostic]) -> list[Diagnostic]:
    rest = [(each.code, each.context) for each in after]
    gone = []
    for diagnostic in before:
        pair = diagnostic.code, diagnostic.context
        if pair in rest:
            rest.remove(pair)
        else:
            gone.append(diagnostic)
    return gone


def _edits(source: Source, found: list[Diagnostic], reason: str) -> list[TextEdit]:
    try:
        tree = Tree(source, parse(source))
    except SourceError:
        return []
    closed = _rows_without_comment(source)
    codes: dict[int, set[str]] = {}
    for diagnostic in found:
        rows = [diagnostic.start.row, *_last_rows(diagnostic, source, tree)]
        row = next((row for row in rows if row not in closed), None)
        if row is not None:
            codes.setdefault(row, set()).add(diagnostic.code)
    comments = directives(source)
    edits = []
    for row, wanted in sorted(codes.items()):
        known = next((each for each in comments.get(row, ()) if each.form == "ignore"), None)
        if known is not None:
            listed = ", ".join([*known.selectors, *sorted(wanted - set(known.selectors))])
            edits.append(TextEdit(known.listed.start, known.listed.end, listed))
            continue
        end = source.starts[row - 1] + len(source.line_text(row))
        bare = source.starts[row - 1] + len(source.line_text(row).rstrip(" \t\f"))
        note = f" {reason}" if reason else ""
        edits.append(TextEdit(bare, end, f"  # devlint: ignore[{', '.join(sorted(wanted))}]{note}"))
    return edits


def _last_rows(diagnostic: Diagnostic, source: Source, tree: Tree) -> list[int]:
    """The other rows at which a comment silences a finding."""
    spans = [diagnostic.span]
    try:
        spans.insert(0, tree.head(diagnostic.span).span)
    except LookupError:
        return [source.row(max(diagnostic.span.start, diagnostic.span.end - 1))]
    last = [source.row(max(span.start, span.end - 1)) for span in spans]
    return [*last, source.row(spans[0].start)]


def _rows_without_comment(source: Source) -> set[int]:
    """The rows that end inside a string or with a backslash."""
    closed = {row for row in range(1, len(source.starts) + 1) if source.line_text(row).rstrip(" \t\f").endswith("\\")}
    text = _ROW_END.sub("\n", source.text)
    begun: list[int] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="\n").readline):
            name = tokenize.tok_name[token.type]
            if name in ("FSTRING_START", "TSTRING_START"):
                begun.append(token.start[0])
            elif name in ("FSTRING_END", "TSTRING_END"):
                closed.update(range(begun.pop(), token.end[0]))
            elif token.type == tokenize.STRING:
                closed.update(range(token.start[0], token.end[0]))
    except (tokenize.TokenError, SyntaxError):
        return closed
    return closed

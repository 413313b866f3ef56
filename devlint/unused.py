"""DEV901 and DEV902: comments that suppress nothing: unused ones, those with unknown rules, and misspelled ones.

Only comments meant for devlint are judged: `# devlint: ignore[...]` and its kin, and in `# noqa: ...` the codes that
are devlint's.
A selector is unused only where every rule that it means was on and the file was analysed to its end.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from devlint.model import (
    ENGINE_RULES,
    UNKNOWN_CODE,
    UNUSED_SUPPRESSION,
    Diagnostic,
    RuleMeta,
    Safety,
    Span,
    TextEdit,
    TextFix,
)
from devlint.names import nearest, one_letter_off
from devlint.source import Source
from devlint.suppression import Directive, Suppressions, matches, misspelt

_OWN_CODE = re.compile(r"DEV[0-9]", re.IGNORECASE)
_ROW_ENDS = "\r\n"


def judge(
    source: Source, suppressions: Suppressions, known: Sequence[RuleMeta], on: Collection[str], complete: bool
) -> Iterator[Diagnostic]:
    """The findings about one file's comments. `known`: every rule there is; `on`: the codes of those that were asked.

    `complete`: every rule that is on has looked at the whole file; else nothing is called unused.
    """
    own = {meta.code for meta in ENGINE_RULES}
    for directives in suppressions.rows.values():
        for directive in directives:
            unused = []
            for selector in directive.selectors:
                meant = {meta.code for meta in known if matches(selector, meta.code, meta.name)}
                if not meant:
                    if directive.form != "noqa" or _OWN_CODE.match(selector):
                        yield _unknown(source, directive, selector, known)
                elif not meant & own and meant <= set(on) and (directive.span, selector) not in suppressions.used:
                    unused.append(selector)
            if complete and unused:
                yield _unused(source, directive, unused)
    for span, wrong in misspelt(source):
        yield _diagnostic(source, UNKNOWN_CODE, span, wrong, None)


def _unknown(source: Source, directive: Directive, selector: str, known: Sequence[RuleMeta]) -> Diagnostic:
    start = source.text.index(selector, directive.listed.start)
    name = _nearest(selector, known)
    advice = f"; did you mean `{name}`?" if name is not None else ""
    fix = TextFix(f"Write `{name}`", Safety.HINT) if name is not None else None
    span = Span(start, start + len(selector))
    return _diagnostic(source, UNKNOWN_CODE, span, f"no rule has the code or name `{selector}`{advice}", fix)


def _nearest(selector: str, known: Sequence[RuleMeta]) -> str | None:
    """The name most like a selector; for what looks like a code, only a code that differs in one place."""
    words = [word for meta in known for word in (meta.code, meta.name)]
    if _OWN_CODE.match(selector):
        words = [word for word in words if one_letter_off(word, selector.upper())]
    return nearest(selector, words)


def _unused(source: Source, directive: Directive, unused: Sequence[str]) -> Diagnostic:
    listed = ", ".join(f"`{selector}`" for selector in unused)
    message = f"unused suppression: {listed} {'reports' if len(unused) == 1 else 'report'} nothing here"
    if directive.form == "enable":
        message = f"unused `enable`: no `disable` comment above names {listed}"
    kept = [selector for selector in directive.selectors if selector not in unused]
    if kept:
        edit = TextEdit(directive.listed.start, directive.listed.end, ", ".join(kept))
        title = f"Remove {listed}"
    else:
        edit, title = _removal(source, directive.span), "Remove the comment"
    end = directive.span.start + len(source.text[directive.span.start : directive.span.end].rstrip())
    fix = TextFix(title, Safety.SAFE, (edit,))
    return _diagnostic(source, UNUSED_SUPPRESSION, Span(directive.span.start, end), message, fix)


def _removal(source: Source, span: Span) -> TextEdit:
    """Take a directive out: with the blanks before it at the end of a row, with its row when nothing else is on it."""
    text, start, end = source.text, span.start, span.end
    if text[end : end + 1] not in ("", *_ROW_ENDS):
        return TextEdit(start, end, "")  # another comment follows
    while start > 0 and text[start - 1] in " \t":
        start -= 1
    if start == 0 or text[start - 1] in _ROW_ENDS:
        end += 2 if text.startswith("\r\n", end) else 1 if end < len(text) else 0
    return TextEdit(start, end, "")


def _diagnostic(source: Source, meta: RuleMeta, span: Span, message: str, fix: TextFix | None) -> Diagnostic:
    start, end = source.position(span.start), source.position(span.end)
    return Diagnostic(source.path, meta.code, meta.name, meta.severity, message, span, start, end, fix)

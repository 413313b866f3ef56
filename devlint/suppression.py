"""Comments that silence findings: `# devlint: ignore[DEV101, some-name] reason`, `# noqa: DEV101`, bare `# noqa`.

A comment counts for the findings whose own text, or whose statement, has its first or its last physical row there.
`# devlint: file-ignore[...]` counts for the whole file, `# devlint: disable[...]` from its row to an `enable[...]` with
the same selector, or to the end. In brackets a selector is a code, a prefix of codes, or a name; in `noqa` a code or a
prefix. Directives are read only from comments, never from strings, and a file is looked through only when it holds the
words.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, cast

from devlint.model import Span
from devlint.source import Source

_WORDS = re.compile(r"devlint:\s*(?:ignore|file-ignore|disable|enable)|noqa", re.IGNORECASE)
_IGNORE = re.compile(r"#\s*devlint:\s*(ignore|file-ignore|disable|enable)\s*\[([^\]]*)\]", re.IGNORECASE)
_CODE = r"[A-Z]{1,3}[0-9]+"
_NOQA = re.compile(rf"#\s*noqa\b(?P<colon>\s*:\s*(?P<codes>{_CODE}(?:[,\s]+{_CODE})*)?)?", re.IGNORECASE)
_OURS = re.compile(r"devlint:\s*(?:ignore|file-ignore|disable|enable)|noqa\s*:[^\n\r]*DEV[0-9]", re.IGNORECASE)
_NOWHERE = Span(0, 0)
_ROW_END = re.compile(r"\r\n|\r|\n")


Form = Literal["ignore", "file-ignore", "disable", "enable", "noqa"]


@dataclass(frozen=True, slots=True)
class Directive:
    """What one comment silences: everything, or what the selectors match (codes, prefixes of codes, names).

    `span`: the directive with the reason behind it, up to the next `#`; `listed`: its list of selectors. Both count from
    the start of the comment as `parse_comment` gives them, from the start of the file as `directives` does.
    """

    everything: bool
    selectors: tuple[str, ...]
    form: Form = "ignore"
    span: Span = _NOWHERE
    listed: Span = _NOWHERE

    def covers(self, code: str, name: str) -> bool:
        return self.everything or any(matches(selector, code, name) for selector in self.selectors)


def matches(selector: str, code: str, name: str) -> bool:
    """Whether a selector of a comment means this rule."""
    return selector == name or code.startswith(selector.upper())


@dataclass(frozen=True, slots=True)
class Range:
    """The rows, both inclusive, in which one selector of a directive silences; `last` None: to the end."""

    directive: Directive
    selector: str
    first: int
    last: int | None = None

    def holds(self, row: int) -> bool:
        return self.first <= row and (self.last is None or row <= self.last)


class Suppressions:
    """The directives of one file, by row; read when they are first asked for. `used`: what silenced something, and
    what ended a range."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._rows: dict[int, list[Directive]] | None = None
        self._ranges: list[Range] = []
        self.used: set[tuple[Span, str]] = set()  # place of a directive, selector

    @property
    def rows(self) -> dict[int, list[Directive]]:
        """The directives by the row of their comment."""
        if self._rows is None:
            self._rows = directives(self._source)
            self._ranges = list(self._find_ranges(self._rows))
        return self._rows

    def _find_ranges(self, rows: dict[int, list[Directive]]) -> Iterator[Range]:
        open_: dict[str, Range] = {}
        for row, directive in ((row, each) for row, found in sorted(rows.items()) for each in found):
            for selector in directive.selectors:
                key = selector.lower()
                if directive.form == "file-ignore":
                    yield Range(directive, selector, 1)
                elif directive.form == "disable":
                    open_.setdefault(key, Range(directive, selector, row))
                elif directive.form == "enable" and key in open_:
                    self.used.add((directive.span, selector))
                    yield replace(open_.pop(key), last=row)
        yield from open_.values()

    def covers(self, code: str, name: str, rows: Iterable[int]) -> bool:
        """Whether a comment on one of these rows silences the rule."""
        covered = False
        rows = list(rows)
        for directive in (d for row in rows for d in self.rows.get(row, ())):
            if directive.form in ("ignore", "noqa") and directive.covers(code, name):
                covered = True
                self.used.update((directive.span, s) for s in directive.selectors if matches(s, code, name))
        for each in self._ranges:
            if matches(each.selector, code, name) and any(map(each.holds, rows)):
                covered = True
                self.used.add((each.directive.span, each.selector))
        return covered


def directives(source: Source) -> dict[int, list[Directive]]:
    """Every directive of a file by the row of its comment."""
    found: dict[int, list[Directive]] = {}
    if not _mentions(source.text, _WORDS):
        return found
    # Rows end as `ast` counts them; `tokenize` knows no lone CR.
    text = _ROW_END.sub("\n", source.text)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="\n").readline):
            if token.type == tokenize.COMMENT:
                row, column = token.start
                start = source.starts[row - 1] + column
                for directive in parse_comment(token.string):
                    span, listed = (Span(s.start + start, s.end + start) for s in (directive.span, directive.listed))
                    found.setdefault(row, []).append(replace(directive, span=span, listed=listed))
    except (tokenize.TokenError, SyntaxError):
        return found  # what was read up to there counts
    return found


def names_rules_of_ours(source: Source) -> bool:
    """Whether a file has a comment that is meant for devlint, as far as its words tell."""
    return _mentions(source.text, _OURS)


def _mentions(text: str, words: re.Pattern[str]) -> bool:
    """Whether a text has one of the words that make a directive. Most have none of those that all of these begin with."""
    lowered = text.lower()
    return ("devlint" in lowered or "noqa" in lowered) and words.search(text) is not None


def parse_comment(comment: str) -> list[Directive]:
    """The directives in one comment. `# noqa: words` names no code and silences nothing."""
    found = [
        Directive(
            False,
            tuple(part.strip() for part in match.group(2).split(",") if part.strip()),
            cast(Form, match.group(1).lower()),
            _with_reason(comment, match),
            Span(*match.span(2)),
        )
        for match in _IGNORE.finditer(comment)
    ]
    for match in _NOQA.finditer(comment):
        codes = match.group("codes")
        if match.group("colon") is None:
            found.append(Directive(True, (), "noqa", _with_reason(comment, match)))
        elif codes:
            selectors = tuple(re.split(r"[,\s]+", codes.strip()))
            found.append(Directive(False, selectors, "noqa", _with_reason(comment, match), Span(*match.span("codes"))))
    return found


def _with_reason(comment: str, match: re.Match[str]) -> Span:
    """A directive and what is written behind it, up to the next `#` of the comment."""
    end = comment.find("#", match.end())
    return Span(match.start(), len(comment) if end < 0 else end)

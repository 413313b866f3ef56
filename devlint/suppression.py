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
from devlint.names import nearest
from devlint.source import Source

_WORDS = re.compile(r"devlint:\s*(?:ignore|file-ignore|disable|enable)|noqa", re.IGNORECASE)
_IGNORE = re.compile(r"#\s*devlint:\s*(ignore|file-ignore|disable|enable)\s*\[([^\]#]*)\]", re.IGNORECASE)
_CODE = r"[A-Z]{1,3}[0-9]+"
_NOQA = re.compile(rf"#\s*noqa\b(?P<colon>\s*:\s*(?P<codes>{_CODE}(?:[,\s]+{_CODE})*)?)?", re.IGNORECASE)
_OURS = re.compile(r"devlint|noqa\s*:[^\n\r]*DEV[0-9]", re.IGNORECASE)
#: What reads like a comment for us, if the name in it is misspelt: `# devlnt: ignore[DEV101]`.
_LIKE_OURS = re.compile(r"#\s*[\w-]+\s*:\s*[\w-]+\s*[\[(]\s*DEV[0-9]")
_ADDRESSED = re.compile(
    r"(?:^|(?<=\s))#+\s*(?P<tool>dev[-_ ]lint|[a-z]{5,9})(?P<between>[\s:=_-]*)(?P<word>[a-z]+(?:[-_][a-z]+)*)?(?P<rest>[^#]*)",
    re.IGNORECASE,
)
_ALIKE = 0.8  # of the letters, in a name that is ours with a slip of the finger
_FORMS = ("ignore", "file-ignore", "disable", "enable")
_LISTED = re.compile(r"\s*[\[(]|[^#]*\bDEV[0-9]|\s*[0-9]{3}\b")
_CODES_IN = re.compile(r"\bDEV[0-9]+\b", re.IGNORECASE)
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
    for row, start, comment in _comments(source):
        for directive in parse_comment(comment):
            span, listed = (Span(s.start + start, s.end + start) for s in (directive.span, directive.listed))
            found.setdefault(row, []).append(replace(directive, span=span, listed=listed))
    return found


def _comments(source: Source) -> Iterator[tuple[int, int, str]]:
    """Row, offset and text of each comment, up to where the file cannot be read any more."""
    # Rows end as `ast` counts them; `tokenize` knows no lone CR.
    text = _ROW_END.sub("\n", source.text)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="\n").readline):
            if token.type == tokenize.COMMENT:
                row, column = token.start
                yield row, source.starts[row - 1] + column, token.string
    except (tokenize.TokenError, SyntaxError):
        return


def misspelt(source: Source) -> Iterator[tuple[Span, str]]:
    """The comments that are meant for devlint and have no effect, each with what is wrong with it."""
    for _, start, comment in _comments(source):
        for match in _ADDRESSED.finditer(comment):
            wrong = _wrong(match, comment)
            if wrong is not None:
                end = match.start() + len(match.group().rstrip())
                yield Span(start + match.start(), start + end), wrong


def _wrong(match: re.Match[str], comment: str) -> str | None:
    """What is wrong with a comment that starts with a name like ours; None for one that is right, or only words."""
    from difflib import SequenceMatcher

    tool, word, rest = match["tool"].lower(), (match["word"] or "").lower(), match["rest"]
    form = nearest(word.replace("_", "-"), _FORMS) if word else None
    right = _IGNORE.match(comment, match.start())
    if right is not None:
        return None if right[2].strip(" ,") else f"`{right[1]}[]` lists no rule"
    has_list, has_colon = _LISTED.match(rest) is not None, match["between"].strip() == ":"
    if tool != "devlint":
        meant = form is not None and has_list and SequenceMatcher(None, tool, "devlint").ratio() >= _ALIKE
        return f"`{match['tool']}` is not `devlint`, so the comment has no effect" if meant else None
    if word == "device" and rest.lstrip().startswith("="):
        return None
    if form is not None and (has_colon or has_list or (word in _FORMS and not rest.strip())):
        if word == form and has_colon:
            return f"`{form}` has no effect without rules in brackets: write `# devlint: {form}[{_rules_in(rest)}]`"
        return f"the comment has no effect: write `# devlint: {form}[{_rules_in(rest)}]`"
    if has_colon and (has_list or not rest.strip()):
        return f"devlint has no comment `{match['word'] or rest.strip()}`: use {_CAN}"
    return None


def _rules_in(rest: str) -> str:
    """The rules that a comment names, else one as an example."""
    return ", ".join(dict.fromkeys(each.upper() for each in _CODES_IN.findall(rest))) or "DEV101"


_CAN = " or ".join(f"`{form}[...]`" for form in _FORMS)


def names_rules_of_ours(source: Source) -> bool:
    """Whether a file has a comment that is meant for devlint, as far as its words tell."""
    text = source.text
    return _mentions(text, _OURS) or ("DEV" in text and _LIKE_OURS.search(text) is not None)


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

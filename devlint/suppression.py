"""Comments that silence findings: `# devlint: ignore[DEV101, some-name] reason`, `# noqa: DEV101`, bare `# noqa`.

A comment counts for the findings whose own text, or whose statement, has its first or its last physical row there. In
`ignore[...]` a selector is a code, a prefix of codes, or a name; in `noqa` a code or a prefix. Directives are read only
from comments, never from strings, and a file is looked through only when it holds the words.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass

from devlint.source import Source

_WORDS = re.compile(r"devlint:\s*ignore|noqa", re.IGNORECASE)
_IGNORE = re.compile(r"#\s*devlint:\s*ignore\s*\[([^\]]*)\]", re.IGNORECASE)
_CODE = r"[A-Z]{1,3}[0-9]+"
_NOQA = re.compile(rf"#\s*noqa\b(?P<colon>\s*:\s*(?P<codes>{_CODE}(?:[,\s]+{_CODE})*)?)?", re.IGNORECASE)
_ROW_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Directive:
    """What one comment silences: everything, or what the selectors match (codes, prefixes of codes, names)."""

    everything: bool
    selectors: tuple[str, ...]

    def covers(self, code: str, name: str) -> bool:
        return self.everything or any(s == name or code.startswith(s.upper()) for s in self.selectors)


class Suppressions:
    """The directives of one file, by row; read when they are first asked for."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._rows: dict[int, list[Directive]] | None = None

    def covers(self, code: str, name: str, rows: Iterable[int]) -> bool:
        """Whether a comment on one of these rows silences the rule."""
        if self._rows is None:
            self._rows = directives(self._source)
        if not self._rows:
            return False
        return any(directive.covers(code, name) for row in rows for directive in self._rows.get(row, ()))


def directives(source: Source) -> dict[int, list[Directive]]:
    """Every directive of a file by the row of its comment."""
    found: dict[int, list[Directive]] = {}
    if not _WORDS.search(source.text):
        return found
    # Rows end as `ast` counts them; `tokenize` knows no lone CR.
    text = _ROW_END.sub("\n", source.text)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="\n").readline):
            if token.type == tokenize.COMMENT:
                parsed = parse_comment(token.string)
                if parsed:
                    found.setdefault(token.start[0], []).extend(parsed)
    except (tokenize.TokenError, SyntaxError):
        return found  # what was read up to there counts
    return found


def parse_comment(comment: str) -> list[Directive]:
    """The directives in one comment. `# noqa: words` names no code and silences nothing."""
    found = [
        Directive(False, tuple(part.strip() for part in match.group(1).split(",") if part.strip()))
        for match in _IGNORE.finditer(comment)
    ]
    for match in _NOQA.finditer(comment):
        codes = match.group("codes")
        if match.group("colon") is None:
            found.append(Directive(True, ()))
        elif codes:
            found.append(Directive(False, tuple(re.split(r"[,\s]+", codes.strip()))))
    return found

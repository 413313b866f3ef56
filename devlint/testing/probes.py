"""Facts probes: `reveal_device(x)  # reveal: cuda:1` asserts what the facts know, without a rule.

The expectation is `[0-dim] [kind] device`: `cpu`, `unknown`, `home`, `cuda:1`, the name of a symbol, or several of them
joined by ` | ` in alphabetical order. Kind and `0-dim` are checked when they are written.
"""

from __future__ import annotations

import re

from devlint.errors import SourceError
from devlint.facts.analysis import analyse
from devlint.facts.values import Value
from devlint.settings import Settings
from devlint.source import Source, parse
from devlint.testing.markers import Fixture

PROBE = "reveal_device"


def reveal(value: Value) -> str:
    """All that a probe can assert of a value: `0-dim tensor cpu`."""
    places = " | ".join(sorted(str(place) for place in value.device)) or "unknown"
    return f"{'0-dim ' if value.zero_dim else ''}{value.kind} {places}"


def agrees(expected: str, value: Value) -> bool:
    """Whether a probe's expectation holds: every word that is written must stand in what is known, in that order."""
    zero_dim, kind, places = "(?:0-dim )?", r"(?:[a-z]+ )?", re.escape(expected)
    actual = reveal(value)
    return any(re.fullmatch(pattern, actual) for pattern in (places, kind + places, zero_dim + kind + places))


def check_probes(fixture: Fixture, source: Source, settings: Settings) -> list[str]:
    """Compare the probes of a file with its `reveal` markers: each must have the other."""
    failures: list[str] = []
    wanted = {marker.row: marker for marker in fixture.of("reveal")}
    if not wanted and PROBE.encode() not in fixture.raw:
        return failures
    try:
        facts = analyse(parse(source), source, settings)
    except SourceError as error:
        return [f"{fixture.path}:{fixture.written(error.row)}: cannot be probed: {error}"]
    seen: set[int] = set()
    for span, value in facts.probes:
        row = source.position(span.start).row
        seen.add(row)
        where = f"{fixture.path}:{fixture.written(row)}"
        marker = wanted.get(row)
        if marker is None:
            failures.append(f"{where}: probe without `# reveal:`; it is {reveal(value)}")
        elif not agrees(marker.text, value):
            failures.append(f"{where}: expected {marker.text}, it is {reveal(value)}")
    for row, marker in wanted.items():
        if row not in seen:
            failures.append(f"{fixture.path}:{marker.written}: `reveal` on a line without a probe that was reached")
    return failures

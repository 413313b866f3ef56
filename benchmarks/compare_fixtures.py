"""What the new inference says of the fixtures of the rules that it answers.

Usage: python benchmarks/compare_fixtures.py [QUIET_ROWS] [--show found weaker other missed false more]

Each file of the fixtures of DEV101, 102, 103, 104 and 109 is read alone, the `.fixed.py` files too. QUIET_ROWS is a JSON list
of rows that must stay quiet, each with `file`, `line`, `code` and `verdict`. Only the verdict `meaning` counts here: what the
code means makes the row quiet, and no word in it.

    found    an expected row has a finding of its rule above info
    weaker   it has one of its rule, of severity info
    other    it has one of another of these rules, above info
    missed   it has none of these
    false    a row that is quiet by its meaning has a finding of its rule above info
    more     a finding above info on a row of which nothing is expected
"""

from __future__ import annotations

import argparse
import ast
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from devlint.api import DeviceMismatch
from devlint.errors import DevlintError
from devlint.inference.analysis import MISMATCHES, device_mismatches
from devlint.model import Severity
from devlint.source import decode
from devlint.testing.markers import Fixture, read_fixture

ROOT: Final = Path(__file__).parents[1]
SORTS: Final = ("found", "weaker", "other", "missed", "false", "more")


class Row(NamedTuple):
    """One row of a fixture, what is said of it, and what was expected."""

    sort: str
    file: str
    line: int
    code: str
    said: str


class Judged(NamedTuple):
    """The rows of one file, and the severities of its expected findings."""

    rows: list[Row]
    severities: Counter[tuple[str, str]]


def main() -> None:
    arguments = _arguments()
    quiet = _quiet(arguments.quiet_rows)
    rows: list[Row] = []
    severities: Counter[tuple[str, str]] = Counter()
    broken: list[str] = []
    for path in _files():
        name = path.relative_to(ROOT).as_posix()
        fixture = read_fixture(path.read_bytes(), name)
        try:
            found = _events(fixture)
        except (DevlintError, SyntaxError):
            continue
        except Exception as error:  # a fault of the inference is counted, and the rest goes on
            broken.append(f"{name}: {type(error).__name__}: {error}")
            continue
        judged = _judge(fixture, found, quiet.get(name, set()))
        rows += judged.rows
        severities += judged.severities
    for row in rows:
        if row.sort in arguments.show:
            print(f"{row.sort:7} {row.file}:{row.line}: {row.code} {row.said}")
    _table(rows, severities)
    for line in broken:
        print(f"crashed: {line}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("quiet_rows", nargs="?", type=Path, help="a JSON list of rows that must stay quiet")
    parser.add_argument("--show", nargs="+", choices=SORTS, default=(), help="list the rows of these sorts")
    return parser.parse_args()


def _quiet(path: Path | None) -> dict[str, set[tuple[int, str]]]:
    """By file, the lines and rules that are quiet by their meaning."""
    found: dict[str, set[tuple[int, str]]] = defaultdict(set)
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path is not None else []
    for row in rows:
        if row["verdict"] == "meaning":
            found[row["file"]].add((row["line"], row["code"]))
    return found


def _files() -> Iterator[Path]:
    for code in sorted(MISMATCHES):
        yield from sorted((ROOT / "fixtures" / code).rglob("*.py"))


def _events(fixture: Fixture) -> dict[int, list[DeviceMismatch]]:
    """What is said of each line, as the fixture is written. A finding is on the first line of its place."""
    source = decode(fixture.raw, fixture.path)
    found: dict[int, list[DeviceMismatch]] = defaultdict(list)
    for each in device_mismatches(ast.parse(source.text), source, None)[0]:
        found[fixture.written(source.row(each.span.start))].append(each)
    return found


def _judge(fixture: Fixture, found: dict[int, list[DeviceMismatch]], quiet: set[tuple[int, str]]) -> Judged:
    rows: list[Row] = []
    severities: Counter[tuple[str, str]] = Counter()
    expected: dict[int, set[str]] = defaultdict(set)
    for marker in fixture.of("expect"):
        code = marker.expected.code if marker.expected is not None else ""
        if code in MISMATCHES:
            line = fixture.written(marker.row)
            expected[line].add(code)
            sort, said = _of_expected(code, found.get(line, []))
            rows.append(Row(sort, fixture.path, line, code, said))
            severities[code, said.partition(" ")[0] if sort in ("found", "weaker") else ""] += 1
    for line, events in found.items():
        for each in events:
            if each.severity is Severity.INFO or expected[line]:
                continue
            sort = "false" if (line, each.code) in quiet else "more"
            rows.append(Row(sort, fixture.path, line, each.code, _said(each)))
    return Judged(rows, severities)


def _of_expected(code: str, events: list[DeviceMismatch]) -> tuple[str, str]:
    own = sorted((each for each in events if each.code == code), key=lambda each: each.severity.rank)
    if own:
        return "weaker" if own[0].severity is Severity.INFO else "found", _said(own[0])
    other = [each for each in events if each.severity is not Severity.INFO]
    return ("other", f"{other[0].code} {_said(other[0])}") if other else ("missed", "")


def _said(event: DeviceMismatch) -> str:
    when = f" when {event.when}" if event.when else ""
    return f"{event.severity.value} {event.evidence}{' soft' if event.soft else ''} {event.off.text} / {event.other.text}{when}"


def _table(rows: list[Row], severities: Counter[tuple[str, str]]) -> None:
    counted = Counter((row.code, row.sort) for row in rows)
    print("rule     expected  error  warning  info  other  missed  false  more")
    for code in [*sorted(MISMATCHES), "all"]:
        codes = sorted(MISMATCHES) if code == "all" else [code]

        def total(sort: str, codes: list[str] = codes) -> int:
            return sum(counted[each, sort] for each in codes)

        by_severity = [sum(severities[each, word] for each in codes) for word in ("error", "warning", "info")]
        expected = total("found") + total("weaker") + total("other") + total("missed")
        print(
            f"{code:8} {expected:8} {by_severity[0]:6} {by_severity[1]:8} {by_severity[2]:5} {total('other'):6} "
            f"{total('missed'):7} {total('false'):6} {total('more'):5}"
        )


if __name__ == "__main__":
    main()

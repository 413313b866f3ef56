"""How many of the faults in programs that were written for this are found, and whether their repaired twins are silent.

Usage: python benchmarks/written_programs.py [--inference old|new] [--rows]

Each row of written_programs/*.json is one program with one device fault that was proved on the simulated GPU, and its repaired
twin. They were written by people who had not seen how devlint finds anything: `trainers` (trainers, agents and pipelines),
`classes` (classes that keep a model, a device and data), `scripts` (scripts that fail, after questions that people asked).
Of the sets whose names end in `unread` only totals are printed, so that they stay sets that nobody tunes on.

A fault counts as found when a finding of DEV101, DEV102, DEV103, DEV104 or DEV109 stands on the line that fails, on a line of
the repair, or on the call that hands the value over. `--rows` names the programs of the other sets whose fault is missed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from devlint.engine import Linter
from devlint.model import Severity
from devlint.registry import load_rules
from devlint.settings import Settings
from devlint.source import decode

SETS: Final = Path(__file__).with_suffix("")
CODES: Final = ("DEV101", "DEV102", "DEV103", "DEV104", "DEV109")
#: Rows of one finding that are compared with the lines of a fault.
SPAN: Final = 5


def findings(linter: Linter, text: str, name: str) -> list[tuple[range, bool]]:
    """The rows of each finding, and whether it is above info. Raises RuntimeError on a crash."""
    source = decode(text.encode(), f"{name}.py")
    result = linter.check(source)
    if result.crashes:
        raise RuntimeError(f"{name}: {result.crashes[0]}")
    found = []
    for each in result.diagnostics:
        first, last = source.row(each.span.start), source.row(max(each.span.end - 1, each.span.start))
        found.append((range(first, min(last, first + SPAN) + 1), each.severity is not Severity.INFO))
    return found


def measure(linter: Linter, rows: Sequence[dict[str, Any]]) -> tuple[int, int, int, list[str]]:
    """Faults found, faults found above info, twins with a finding, and the names of the programs whose fault is missed."""
    found = above = twins = 0
    missed = []
    for row in rows:
        hits = [sure for at, sure in findings(linter, row["program"], row["name"]) if set(at) & set(row["lines"])]
        found += bool(hits)
        above += any(hits)
        twins += bool(findings(linter, row["repaired"], row["name"]))
        if not any(hits):
            missed.append(f"{row['name']}: {row['what']}")
    return found, above, twins, missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inference", choices=("old", "new"), default="old")
    parser.add_argument("--rows", action="store_true", help="name the programs whose fault is missed above info")
    options = parser.parse_args()
    linter = Linter(load_rules(), Settings(select=CODES, inference=options.inference))
    print(f"{'set':16}{'programs':>9}{'found':>7}{'above info':>12}{'twins with a finding':>22}")
    for path in sorted(SETS.glob("*.json")):
        rows = json.loads(path.read_text(encoding="utf-8"))
        found, above, twins, missed = measure(linter, rows)
        print(f"{path.stem:16}{len(rows):9}{found:7}{above:12}{twins:22}")
        for each in missed if options.rows and not path.stem.endswith("unread") else ():
            print(f"    {each}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Runs programs on every kind of machine, as `devlint run --device all` does, and counts how they end.

    python benchmarks/every_machine.py [PART OF A NAME ...]

The repaired programs of fixtures/programs and the loops of fixtures/runtime, each in a folder of its own.
`every_machine.json` has, for each program, where it ended before its end: the machine, the place, the error, which rules
of `check --select ALL` say something at that line, and the rule that the run names as its cause. A row that is there
already is replaced. Needs torch; an hour of a core.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from devlint.runtime import everywhere

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).with_suffix(".json")
LIMIT = 120.0


def programs() -> list[Path]:
    """The repaired programs, and the loops with and without their faults.

    Every fourth comes first, so that a run that is ended early has seen all kinds.
    """
    good = (ROOT / "fixtures" / "programs").rglob("*.good.py")
    found = sorted(good) + sorted((ROOT / "fixtures" / "runtime").glob("*.py"))
    return [path for first in range(4) for path in found[first::4]]


def table(program: Path) -> list[dict[str, Any]]:
    """The rows of one program, which is copied with the files beside it."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "work")
        shutil.copytree(program.parent, folder, ignore=shutil.ignore_patterns("controls"))
        os.chdir(folder)
        try:
            everywhere.run_on_all(program.name, [], as_json=True, output="table.json")
            rows: list[dict[str, Any]] = json.loads(Path("table.json").read_text(encoding="utf-8"))["machines"]
        finally:
            os.chdir(before)
    return rows


def summary(rows: dict[str, list[dict[str, Any]]]) -> dict[str, int]:
    """Counts over the ends of all programs. A crash is a process that ended without a report."""
    ends = [end for row in rows.values() for end in row]
    return {
        "programs": len(rows),
        "runs": len(rows) * len(everywhere.MACHINES),
        "ends": len(ends),
        "foreseen": sum(bool(end["said_by"]) for end in ends),
        "not foreseen, explained": sum(bool(end["code"]) and not end["said_by"] for end in ends),
        "not explained": sum(not end["code"] and not end["said_by"] for end in ends),
        "crashes": sum(not end["where"] and "ended with status" in end["how"] for end in ends),
    }


def main(parts: list[str]) -> int:
    """Run, write the ends after each program and print the counts; 1 if devlint crashed."""
    everywhere.LIMIT = LIMIT  # type: ignore[misc]
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))["programs"] if RESULTS.exists() else {}
    for program in (path for path in programs() if not parts or any(part in str(path) for part in parts)):
        rows[str(program.relative_to(ROOT))] = [row for row in table(program) if row["status"]]
        print(f"{program.name}: {json.dumps(summary(rows))}", flush=True)
        written = {"summary": summary(rows), "programs": rows}
        RESULTS.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    return int(summary(rows)["crashes"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

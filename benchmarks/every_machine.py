"""Runs repaired programs on every kind of machine, as `devlint run --device all` does, and counts how they end.

    python benchmarks/every_machine.py [PART OF A NAME ...]

The repaired programs of fixtures/programs and the repaired loops of fixtures/runtime, each in a folder of its own. A row
of `every_machine.json` is an end before the end of the program: where, with which error, which rules of
`check --select ALL` say something at that line, and the rule that the run names as its cause. Needs torch; an hour of a core.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from devlint.runtime import everywhere

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).with_suffix(".json")
LIMIT = 120.0


def programs() -> list[Path]:
    """The repaired programs and loops, every fourth first, so that a run that is ended early has seen all kinds."""
    good = (ROOT / "fixtures" / "programs").rglob("*.good.py")
    found = sorted(good) + sorted((ROOT / "fixtures" / "runtime").glob("*.fixed.py"))
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


def explained(row: dict[str, Any]) -> bool:
    """Whether an end has a named cause: a rule, or what a simulation cannot do."""
    return bool(row["said_by"] or row["code"])


def main(parts: list[str]) -> int:
    """Run, write the ends and print the counts; 1 if devlint crashed."""
    everywhere.LIMIT = LIMIT  # type: ignore[misc]
    chosen = [path for path in programs() if not parts or any(part in str(path) for part in parts)]
    ends: list[dict[str, Any]] = []
    runs = 0
    counts: Counter[str] = Counter()
    for number, program in enumerate(chosen, start=1):
        for row in table(program):
            runs += 1
            if row["status"] == 0:
                continue
            ends.append({"program": str(program.relative_to(ROOT)), **row})
            counts["foreseen"] += bool(row["said_by"])
            counts["not foreseen, explained"] += not row["said_by"] and explained(row)
            counts["not explained"] += not explained(row)
            counts["crashes"] += not row["where"] and "ended with status" in row["how"]
        summary = {"programs": number, "of": len(chosen), "runs": runs, "ends": len(ends), **counts}
        print(f"{program.name}: {json.dumps(summary)}", flush=True)
        if not parts:
            RESULTS.write_text(json.dumps({"summary": summary, "ends": ends}, indent=1) + "\n", encoding="utf-8")
    return int(counts["crashes"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

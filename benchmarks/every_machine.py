"""Runs programs on every kind of machine, as `devlint run --device all` does, and counts how they end.

    python benchmarks/every_machine.py [PART OF A NAME ...]
    python benchmarks/every_machine.py --conversions CLONES [NAME ...]

The repaired programs of fixtures/programs and the loops of fixtures/runtime, each in a folder of its own; with
`--conversions` the programs of conversions/programs.toml, converted and run on stand-ins for their data as convert.py does.
`every_machine.json` has, for each program, where it ended before its end: the machine, the place, the error, which rules
of `check --select ALL` say something at that line, and the rule that the run names as its cause. A row that is there
already is replaced. Needs torch; an hour of a core.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tomllib

from devlint.runtime import everywhere

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).with_suffix(".json")
CONVERSIONS = Path(__file__).with_name("conversions")
LIMIT = 300.0


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


def conversions(clones: Path, names: list[str]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The rows of each converted program. The second card is made current by the machine, not by the plan."""
    sys.path.insert(0, str(CONVERSIONS))
    import convert

    listed = tomllib.loads((CONVERSIONS / "programs.toml").read_text(encoding="utf-8"))["program"]
    for program in (each for each in listed if not names or each["name"] in names):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name, "program")
            convert.copy_out(program, clones, folder)
            for change in program.get("ports", []):
                convert.port(folder, change)
            convert.devlint(folder, "check", "--fix", "--unsafe-fixes", "--no-cache", ".")
            for change in program.get("by_hand", []):
                convert.port(folder, change)
            yield f"conversions/{program['name']}", converted(program, folder)


def converted(program: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """The rows of a converted program in its folder."""
    plan, output = folder.parent / "plan.json", folder.parent / "table.json"
    standin = str(CONVERSIONS / "standins" / program["standin"]) if "standin" in program else ""
    given = {name: program.get(name, default) for name, default in (("absent", []), ("steps", 0))}
    files = [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]
    fixed = {"losses": str(folder.parent / "losses.json"), "standin": standin, "current": 0, "files": files}
    plan.write_text(json.dumps({**fixed, **given}), encoding="utf-8")
    options = ["--device", "all", "--json", "--output", str(output)]
    start = [str(CONVERSIONS / "start.py"), str(plan), program["script"], *program.get("arguments", [])]
    paths = [str(CONVERSIONS / "standins" / "modules"), *(str(folder / each) for each in program.get("path", []))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-m", "devlint", "run", *options, *start], cwd=folder, env=environment, check=False)
    rows: list[dict[str, Any]] = json.loads(output.read_text(encoding="utf-8"))["machines"]
    return rows


def kind(end: dict[str, Any], row: list[dict[str, Any]]) -> str:
    """What an end is due to, as it is counted. A crash is a process that ended without a report."""
    if not end["where"] and "ended with status" in end["how"]:
        return "crashes"
    if end["said_by"]:
        return "foreseen"
    if end["code"]:
        return "not foreseen, explained"
    if str(end["how"]).startswith("sys.exit("):
        return "ended by the program itself"
    alike = sum((each["where"], each["how"]) == (end["where"], end["how"]) for each in row)
    return "the same on every machine" if alike == len(everywhere.MACHINES) else "not explained"


def summary(rows: dict[str, list[dict[str, Any]]]) -> dict[str, int]:
    """Counts over the ends of all programs."""
    counted = Counter(kind(end, row) for row in rows.values() for end in row)
    kinds = ("foreseen", "not foreseen, explained", "ended by the program itself", "the same on every machine")
    return {
        "programs": len(rows),
        "runs": len(rows) * len(everywhere.MACHINES),
        "ends": counted.total(),
        **{name: counted[name] for name in (*kinds, "not explained", "crashes")},
    }


def main(arguments: list[str]) -> int:
    """Run, write the ends after each program and print the counts; 1 if devlint crashed."""
    import torch._dynamo  # noqa: F401 - once here, and not by the optimizer of every program on every machine

    everywhere.LIMIT = LIMIT  # type: ignore[misc]
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))["programs"] if RESULTS.exists() else {}
    if arguments[:1] == ["--conversions"]:
        found = conversions(Path(arguments[1]).resolve(), arguments[2:])
    else:
        chosen = (path for path in programs() if not arguments or any(part in str(path) for part in arguments))
        found = ((str(path.relative_to(ROOT)), table(path)) for path in chosen)
    for name, machines in found:
        rows[name] = [row for row in machines if row["status"]]
        print(f"{name}: {json.dumps(summary(rows))}", flush=True)
        written = {"summary": summary(rows), "programs": rows}
        RESULTS.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    return int(summary(rows)["crashes"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What large libraries do, on plain CPU and on the simulated card: the same numbers, or a name for what cannot be simulated.

    python benchmarks/large_libraries.py [NAME ...]

The interpreter has the libraries and devlint. Each program of `benchmarks/libraries` prints lines of numbers; it is run
as it is and under `devlint run --device sim:2`, and the lines are compared. `large_libraries.json` gets a row for each:
versions, how many of the lines are equal, and what was replaced or could not be simulated. Exit 1 if a line differs or a
program ends in any other way than at its end.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = Path(__file__).with_suffix(".json")
NOT_SIMULATED = 3
_USES = re.compile(r"^# uses: (.+)$", re.MULTILINE)


def main(names: list[str]) -> int:
    """Run the programs and write the rows."""
    rows: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    bad = 0
    for program in sorted((HERE / "libraries").glob("*.py")):
        if names and program.stem not in names:
            continue
        row = rows[program.stem] = run(program)
        bad += row["outcome"] not in ("equal", "named")
        print(f"{program.stem}: {row['outcome']}, {row['equal']} of {row['lines']} lines equal", flush=True)
        RESULTS.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return int(bad > 0)


def run(program: Path) -> dict[str, Any]:
    """Run one program twice and compare."""
    uses = (match := _USES.search(program.read_text(encoding="utf-8"))) and match[1].split()
    command = [sys.executable, "-W", "ignore"]
    plain = start([*command, str(program)])
    card = start([*command, "-m", "devlint", "run", "--device", "sim:2", str(program)])
    expected, found = lines(plain.stdout), lines(card.stdout)
    equal = sum(one == other for one, other in zip(expected, found, strict=False))
    noted = [line for line in card.stderr.splitlines() if line.startswith(("replaced:", "the program:"))]
    whole = equal == len(expected) == len(found)
    outcome = "equal" if card.returncode == 0 and whole else "named" if card.returncode == NOT_SIMULATED else "differs"
    if plain.returncode != 0:
        outcome = "fails on plain CPU"
    return {
        "versions": {name: version(name) for name in ["torch", *(uses or [])]},
        "outcome": outcome,
        "lines": len(expected),
        "equal": equal,
        "noted": noted,
        "status": card.returncode,
    }


def start(command: list[str]) -> subprocess.CompletedProcess[str]:
    """One run in one thread."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)


def lines(output: str) -> list[str]:
    """The lines of numbers: those that name what was computed."""
    return sorted(line for line in output.splitlines() if line.startswith("= "))


def version(name: str) -> str:
    """The installed version of a distribution."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

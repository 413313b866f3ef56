"""Run the programs of fixtures/programs on the simulated accelerator: the bug must stop one, its repair must not.

Usage: python benchmarks/prove_programs.py [PART OF A NAME ...]     (needs torch; about ten seconds a program)
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).resolve().parents[1] / "fixtures" / "programs"
LIMIT = 120  # seconds for one program


def ends(program: Path) -> bool:
    """Whether a program runs to its end there, in a folder of its own."""
    command = [sys.executable, "-m", "devlint", "run", "--device", "sim", str(program)]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT, check=False)
    return "ended the program" not in done.stdout + done.stderr and "Traceback" not in done.stderr


def proved(label: dict[str, Any]) -> str:
    """What does not hold of a labelled program; "" where all does."""
    program = PROGRAMS / label["program"]
    if label["raises"] and ends(program):
        return "the program with the bug runs to its end"
    if not ends(program.with_name(program.stem + ".good.py")):
        return "the repaired program does not run to its end"
    return ""


def main(parts: list[str]) -> int:
    labels = json.loads((PROGRAMS / "labels.json").read_text(encoding="utf-8"))
    chosen = [label for label in labels if not parts or any(part in label["program"] for part in parts)]
    failed = 0
    for label in chosen:
        problem = proved(label)
        failed += bool(problem)
        print(f"{label['program']}: {problem or 'proved'}", flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} proved")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""How often `devlint explain` names the cause of device errors that users reported: they are in explained_errors.json, and
reports of 2025 and 2026 in explained_errors_newer.json.

Usage: python benchmarks/explained_errors.py CLONES [--cases FILE] [--misses]

CLONES holds a clone with its history for each repository, in a folder `owner+name` (or below it). Each case is an issue with
a device error in code of its own repository, at a commit that has the failing line. `frames` are the user's frames of the
traceback in the repository's own rows, the outermost first; `causes` every line at which a reader who did not know devlint
would make the repair, the best first. `read` says whether the answer was looked at while the search was written.
`devlint explain` is run on a traceback of these frames, in the files of the commit. A case counts when a cause is one of the
lines that the first answer names (the place, or the line at which to move at the latest), give or take one row.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from labelled_fixes import files_of, git_of, write_project

CASES = Path(__file__).with_name("explained_errors.json")
_PLACE = re.compile(r"^(?P<path>[^\s:]+\.py):(?P<row>\d+):", re.M)
_LATEST = re.compile(
    r"^    (?P<path>[^\s:]+\.py):(?P<row>\d+): .*(?:at the latest|this is the last place to move it)$", re.M
)


def traceback_of(case: dict[str, Any]) -> str:
    """The traceback of a case as Python prints it, without source lines."""
    frames = "".join(f'  File "{path}", line {row}, in {name}\n' for path, row, name in case["frames"])
    return f"Traceback (most recent call last):\n{frames}{case['error']}\n"


def answers(folder: Path, traceback: str) -> list[set[tuple[str, int]]]:
    """For each answer of `devlint explain` in a folder, the lines that it names."""
    command = [sys.executable, "-m", "devlint", "explain", "-"]
    shown = subprocess.run(command, cwd=folder, input=traceback, capture_output=True, text=True, check=False).stdout
    return answers_in(shown)


def answers_in(shown: str) -> list[set[tuple[str, int]]]:
    """For each answer in what `devlint explain` printed, the lines that it names."""
    found = []
    for answer in shown.split("\n\n")[1:]:
        named = [*_PLACE.finditer(answer), *_LATEST.finditer(answer)]
        found.append({(match["path"], int(match["row"])) for match in named})
    return found


def rank_of(case: dict[str, Any], named: list[set[tuple[str, int]]]) -> int | None:
    """The 1-based number of the first answer that names a cause."""
    for number, lines in enumerate(named, 1):
        if any(path == p and abs(row - r) <= 1 for path, row in lines for p, r in case["causes"]):
            return number
    return None


def explained(clones: Path, case: dict[str, Any]) -> tuple[int | None, bool] | None:
    """The rank of the cause among the answers, and whether the error was recognised; None without a clone."""
    git = git_of(clones, case["repository"])
    if git is None:
        return None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_project(folder, files_of(git, case["commit"]))
        named = answers(folder, traceback_of(case))
    return rank_of(case, named), bool(named)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("clones", type=Path)
    parser.add_argument("--cases", type=Path, default=CASES, help="the labelled reports")
    parser.add_argument("--misses", action="store_true", help="name what is not found")
    options = parser.parse_args()
    every, first, third = Counter[str](), Counter[str](), Counter[str]()
    missing = 0
    for case in json.loads(options.cases.read_text(encoding="utf-8")):
        answer = explained(options.clones, case)
        if answer is None:
            missing += 1
            continue
        rank = answer[0]
        for key in (case["kind"], "read" if case["read"] else "unread", "all"):
            every[key] += 1
            first[key] += rank == 1
            third[key] += rank is not None and rank <= 3
        if options.misses and rank != 1:
            print(f"rank {rank} {case['url']} {case['frames'][-1]} {case['causes']}")
    for key in sorted(every):
        print(f"{key:28} first {first[key]:3}, among three {third[key]:3} of {every[key]}")
    if missing:
        print(f"{missing} cases without a clone")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""How many repairs of device bugs in other repositories devlint foresees: their labels are in labelled_fixes.json.

Usage: python benchmarks/labelled_fixes.py CLONES [--misses]

CLONES holds a clone with its history for each repository, in a folder `owner+name` (or below it). Each label is the version
before a repair, the lines at which a reader would point, and why; `read` says whether the misses were looked at since.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

LABELS = Path(__file__).with_name("labelled_fixes.json")


def text_of(clones: Path, label: dict[str, Any]) -> bytes | None:
    """The labelled version of a file; None where the clone or the commit is not there."""
    folder = clones / label["repo"].replace("/", "+")
    inside = [folder, *(folder.iterdir() if folder.is_dir() else ())]
    for candidate in (part for each in inside for part in (each, each / ".git")):
        if (candidate / "objects").is_dir():
            command = ["git", "--git-dir", str(candidate), "show", f"{label['commit']}:{label['path']}"]
            shown = subprocess.run(command, capture_output=True, check=False)
            return shown.stdout if shown.returncode == 0 else None
    return None


def rows_found(folder: Path) -> dict[str, set[int]]:
    """The rows at which devlint reports a problem by its default rules, by the folder that a file was put into."""
    command = [
        sys.executable,
        "-m",
        "devlint",
        "check",
        str(folder),
        "--isolated",
        "--no-cache",
        "--output-format",
        "json",
    ]
    report = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found: dict[str, set[int]] = {}
    for finding in json.loads(report):
        number = Path(finding["filename"]).resolve().relative_to(folder.resolve()).parts[0]
        found.setdefault(number, set()).add(finding["location"]["row"])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("clones", type=Path)
    parser.add_argument("--misses", action="store_true", help="name what is not found")
    options = parser.parse_args()
    labels: dict[str, dict[str, Any]] = {}
    absent = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, label in enumerate(json.loads(LABELS.read_text(encoding="utf-8"))):
            text = text_of(options.clones, label)
            if text is None:
                absent += 1
                continue
            labels[str(number)] = label
            path = Path(folder) / str(number) / Path(label["path"]).name
            path.parent.mkdir()
            path.write_bytes(text)
        rows = rows_found(Path(folder))
    found, every = Counter[str](), Counter[str]()
    for name, label in labels.items():
        hit = not rows.get(name, set()).isdisjoint(label["lines"])
        for key in (label["kind"], "read" if label["read"] else "unread", "all"):
            every[key] += 1
            found[key] += hit
        if options.misses and not hit:
            print(f"missed {label['repo']}@{label['commit'][:10]} {label['path']}:{label['lines']} {label['kind']}")
    for key in sorted(every):
        print(f"{key:28} {found[key]:3} of {every[key]}")
    if absent:
        print(f"{absent} labels without a clone")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""How many repairs of device bugs in other repositories devlint foresees: their labels are in labelled_fixes.json, for the
kinds that DEV1 and DEV3 answer, in labelled_other_fixes.json, mostly for the others, and in labelled_mixed_fixes.json and
labelled_blind_fixes.json, for all.

Usage: python benchmarks/labelled_fixes.py CLONES [--labels FILE] [--whole] [--misses]

CLONES holds a clone with its history for each repository, in a folder `owner+name` (or below it). Each label is the version
before a repair, the lines at which a reader would point, and why; `read` says whether the misses were looked at since.
Each file is checked by itself, or with --whole where it stands, among all files of its project at that commit and with the
settings of the project: what calls say of arguments, and which torch is asked for, counts there. The first figure is of
findings of any rule that span such a line (of a long one the first six count), the second of those whose rule answers the kind.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

LABELS = Path(__file__).with_name("labelled_fixes.json")
#: The rules that answer a kind, by the start of their codes.
ANSWERS = {
    "new-tensor-default-device": ("DEV101", "DEV102", "DEV103", "DEV104"),
    "mixed-device-operands": ("DEV101", "DEV102", "DEV103", "DEV104"),
    "index-device-mismatch": ("DEV101", "DEV102", "DEV104"),
    "discarded-transfer-result": ("DEV105",),
    "unregistered-state": ("DEV106", "DEV107", "DEV108"),
    "host-conversion": ("DEV109",),
    "rng-generator-device": ("DEV110",),
    "optimizer-before-move": ("DEV111",),
    "device-api-misuse": ("DEV3", "DEV112"),
    "hardcoded-device": ("DEV201", "DEV202", "DEV203", "DEV204"),
    "cuda-api-unguarded": ("DEV202", "DEV205", "DEV206"),
    "accelerator-portability": ("DEV20", "DEV21"),
    "device-comparison": ("DEV207",),
    "load-without-map-location": ("DEV208",),
    "amp-device-type": ("DEV209",),
    "unsynchronised-timing": ("DEV4",),
    "pinned-or-async-copy": ("DEV504", "DEV505", "DEV509"),
    "multi-gpu-index": ("DEV6", "DEV201", "DEV202"),
    "cuda-init-order": ("DEV604", "DEV205"),
    "fork-with-cuda": ("DEV605",),
}
#: The first and last row of a problem, and its code.
Problem = tuple[int, int, str]
LONGEST = 5  # rows after the first one
#: The files of a project that a check of one of them may read.
KEPT = (".py", ".ipynb", ".toml", ".cfg", ".txt", ".yml", ".yaml")


def git_of(clones: Path, repository: str) -> Path | None:
    """The git directory of a clone."""
    folder = clones / repository.replace("/", "+")
    inside = [folder, *(folder.iterdir() if folder.is_dir() else ())]
    candidates = (part for each in inside for part in (each, each / ".git"))
    return next((each for each in candidates if (each / "objects").is_dir()), None)


def text_of(git: Path, label: dict[str, Any]) -> bytes | None:
    """The labelled version of a file; None where the commit is not there."""
    command = ["git", "--git-dir", str(git), "show", f"{label['commit']}:{label['path']}"]
    shown = subprocess.run(command, capture_output=True, check=False)
    return shown.stdout if shown.returncode == 0 else None


def files_of(git: Path, commit: str) -> Iterator[tuple[str, bytes]]:
    """The path and content of every file of a commit that a check may read. What a partial clone lacks is left out."""
    listed = subprocess.run(
        ["git", "--git-dir", str(git), "ls-tree", "-r", "-z", commit], capture_output=True, check=True
    )
    entries = [entry.split("\t", 1) for entry in listed.stdout.decode("utf-8", "surrogateescape").split("\0") if entry]
    wanted = [(path, head.split()[2]) for head, path in entries if path.endswith(KEPT) and head.startswith("100")]
    names = "".join(f"{name}\n" for _, name in wanted)
    batch = ["git", "--git-dir", str(git), "cat-file", "--batch"]
    content = subprocess.run(batch, input=names.encode(), capture_output=True, check=True).stdout
    start = 0
    for path, _ in wanted:
        end = content.index(b"\n", start)
        head = content[start:end].split()
        start = end + 1
        if head[-1] != b"missing":
            size = int(head[2])
            yield path, content[start : start + size]
            start += size + 1


def write_project(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write files below a folder that is the root of their project."""
    (folder / ".git").mkdir()
    for way, content in files:
        path = folder / way
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def rows_in(folder: Path, *arguments: str) -> Iterator[tuple[Path, Problem]]:
    """The file, as a path from a folder, with rows and code of every problem that devlint reports by its default rules."""
    command = [sys.executable, "-m", "devlint", "check", *arguments, "--no-cache", "--output-format", "json"]
    report = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout
    for finding in json.loads(report):
        path = Path(folder, finding["filename"]).resolve().relative_to(folder.resolve())
        first = finding["location"]["row"]
        yield path, (first, min(finding["end_location"]["row"], first + LONGEST), finding["code"])


def alone(clones: Path, labels: dict[str, dict[str, Any]]) -> dict[str, set[Problem]]:
    """The rows of problems in each labelled file by itself, by the label's number."""
    found: dict[str, set[Problem]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, label in labels.items():
            git = git_of(clones, label["repo"])
            text = text_of(git, label) if git is not None else None
            if text is None:
                continue
            found[number] = set()
            path = folder / number / Path(label["path"]).name
            path.parent.mkdir()
            path.write_bytes(text)
        for path, row in rows_in(folder, ".", "--isolated"):
            found[path.parts[0]].add(row)
    return found


def in_project(clones: Path, labels: dict[str, dict[str, Any]]) -> dict[str, set[Problem]]:
    """The same with each file among those of its project, a commit at a time."""
    found: dict[str, set[Problem]] = {}
    commits: dict[tuple[str, str], list[str]] = {}
    for number, label in labels.items():
        commits.setdefault((label["repo"], label["commit"]), []).append(number)
    for (repository, commit), numbers in commits.items():
        git = git_of(clones, repository)
        numbers = [number for number in numbers if git is not None and text_of(git, labels[number]) is not None]
        if git is None or not numbers:
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_project(folder, files_of(git, commit))
            for number in numbers:
                found[number] = {row for _, row in rows_in(folder, labels[number]["path"])}
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("clones", type=Path)
    parser.add_argument("--labels", type=Path, default=LABELS, help="the labels to look for")
    parser.add_argument("--whole", action="store_true", help="check each file among those of its project")
    parser.add_argument("--misses", action="store_true", help="name what is not found")
    options = parser.parse_args()
    labels = {str(number): label for number, label in enumerate(json.loads(options.labels.read_text(encoding="utf-8")))}
    rows = (in_project if options.whole else alone)(options.clones, labels)
    found, right, every = Counter[str](), Counter[str](), Counter[str]()
    for number, seen in rows.items():
        label = labels[number]
        there = [code for first, last, code in seen if any(first <= row <= last for row in label["lines"])]
        hit, answered = bool(there), any(code.startswith(ANSWERS[label["kind"]]) for code in there)
        for key in (label["kind"], "read" if label["read"] else "unread", "all"):
            every[key] += 1
            found[key] += hit
            right[key] += answered
        if options.misses and not hit:
            print(f"missed {label['repo']}@{label['commit'][:10]} {label['path']}:{label['lines']} {label['kind']}")
    for key in sorted(every):
        print(f"{key:28} {found[key]:3} ({right[key]} by its rule) of {every[key]}")
    if len(rows) < len(labels):
        print(f"{len(labels) - len(rows)} labels without a clone")
    return 0


if __name__ == "__main__":
    sys.exit(main())

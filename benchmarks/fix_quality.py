"""Fixes of labelled bugs, drawn at random, as diffs to be read beside the upstream repairs.

    python benchmarks/fix_quality.py --files FILES --labels LABELS --out DIFFS [--count 40] [--seed 20261120]

FILES holds one folder for each label of a corpus, named after it, with the file as it was before the repair; LABELS
holds `bugs.jsonl` (id, path, lines, kind, fix, fix_commit) and `codes.json` (kind to rule codes). A bug counts where a
finding of a code of its kind overlaps one of its lines and has a fix that can be applied. For each bug that is drawn
DIFFS gets `ID.diff`: what `devlint check --fix --unsafe-fixes --select CODE` makes of the file, whole, and where the
findings were. `drawn.json` lists them. The verdicts are a reader's: `benchmarks/fix_quality/verdicts.json`, which
`--report` sums up. Nothing of the corpus is kept in this repository.
"""

from __future__ import annotations

import argparse
import collections
import difflib
import json
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

VERDICTS = Path(__file__).with_name("fix_quality") / "verdicts.json"
# Kinds whose bug is a missing call: a finding a few lines off is about it too.
SLACK = {"multi-gpu-index", "optimizer-before-move", "unsynchronised-timing", "fork-with-cuda", "cuda-init-order"}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=Path)
    parser.add_argument("--labels", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=20261120)
    parser.add_argument("--report", action="store_true", help="sum up the verdicts instead")
    options = parser.parse_args(arguments)
    if options.report:
        print(report(json.loads(VERDICTS.read_text(encoding="utf-8"))))
        return 0
    if not (options.files and options.labels and options.out):
        parser.error("--files, --labels and --out are needed")
    bugs = [
        json.loads(line) for line in (options.labels / "bugs.jsonl").read_text(encoding="utf-8").splitlines() if line
    ]
    codes = json.loads((options.labels / "codes.json").read_text(encoding="utf-8"))
    fixable = {bug["id"]: (bug, found) for bug in bugs if (found := hits(bug, codes[bug["kind"]], options.files))}
    drawn = sorted(random.Random(options.seed).sample(sorted(fixable), min(options.count, len(fixable))))
    options.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in drawn:
        bug, found = fixable[name]
        code = found[0]["code"]
        (options.out / f"{name}.diff").write_text(fixed(found[0]["filename"], code), encoding="utf-8")
        rows.append(
            {**{key: bug[key] for key in ("id", "repo", "path", "lines", "kind", "fix", "fix_commit")}, "code": code}
        )
    (options.out / "drawn.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(f"{len(fixable)} bugs are found with a fix that can be applied, {len(drawn)} drawn")
    return 0


def hits(bug: dict[str, Any], prefixes: list[str], files: Path) -> list[dict[str, Any]]:
    """The findings on the labelled lines, of a code of the bug's kind, whose fix can be applied."""
    folder = files / bug["id"]
    if not folder.is_dir():
        return []
    slack = 5 if bug["kind"] in SLACK else 0
    found = []
    for row in json.loads(devlint(str(folder), "--output-format", "json")):
        first, last = row["location"]["row"], row["end_location"]["row"]
        near = any(first - slack <= line <= min(last, first + 5) + slack for line in bug["lines"])
        applicable = (
            row["fix"] is not None and row["fix"]["applicability"] in ("safe", "unsafe") and row["fix"]["edits"]
        )
        if near and applicable and row["code"].startswith(tuple(prefixes)):
            found.append(row)
    return found


def fixed(path: str, code: str) -> str:
    """The diff of a file to what all fixes of one code make of it."""
    before = Path(path).read_text(encoding="utf-8", errors="replace")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copy(path, folder))
        devlint(str(copy), "--select", code, "--fix", "--unsafe-fixes")
        after = copy.read_text(encoding="utf-8", errors="replace")
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), "before", "after")
    return "".join(lines)


def devlint(*arguments: str) -> str:
    command = [sys.executable, "-m", "devlint", "check", "--isolated", "--no-cache", "--exit-zero", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def report(data: dict[str, Any]) -> str:
    """The share of good fixes, and how many there are by rule."""
    rows = data["rows"]
    good = sum(row["verdict"] == "good" for row in rows)
    by_code: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0])
    for row in rows:
        by_code[row["code"]][0] += row["verdict"] == "good"
        by_code[row["code"]][1] += 1
    parts = ", ".join(f"{code} {a}/{b}" for code, (a, b) in sorted(by_code.items()))
    return f"{good} of {len(rows)} fixes are good ({good / len(rows):.0%}): {parts}"


if __name__ == "__main__":
    sys.exit(main())

"""Checks and fixes whole trees that nobody tuned devlint on: no crash, no hang, no byte changed without a fix.

    python benchmarks/robust_trees.py timm=DIR [more=DIR ...] [--seconds 20] [--jobs 2] [--out benchmarks/robust_trees.json]

Each tree is copied and goes through three whole processes: `check` with every rule, which must leave all bytes alone;
`check --fix --unsafe-fixes`; and the same once more, which must find nothing to do. A file that changed must have had a
finding with a fix, each changed row must be one that an edit of such a fix names (or an import or a guard that fixes
share), and the file must still parse. A run that takes longer than `--seconds` per 10,000 lines (and 60) is a hang.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

CHECK = [sys.executable, "-m", "devlint", "check", ".", "--isolated", "--no-cache", "--select", "ALL", "--exit-zero"]
SLACK = 3  # rows around an edit that its text may grow into when neighbouring edits shift it


def digests(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).digest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def run(arguments: list[str], folder: Path, limit: float) -> tuple[subprocess.CompletedProcess[bytes] | None, float]:
    """The finished process, None when it took longer than the limit; and the seconds it took."""
    start = time.perf_counter()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DEVLINT_")}
    try:
        done = subprocess.run(
            [*CHECK, *arguments], cwd=folder, capture_output=True, timeout=limit, check=False, env=environment
        )
    except subprocess.TimeoutExpired:
        return None, time.perf_counter() - start
    return done, time.perf_counter() - start


def parses(raw: bytes) -> bool:
    try:
        ast.parse(raw)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def without_sources(raw: bytes) -> Any:
    """A notebook without the code of its cells."""
    data = json.loads(raw)
    for cell in data["cells"]:
        if cell["cell_type"] == "code":
            del cell["source"]
    return data


def strange_rows(before: bytes, after: bytes, edited: set[int]) -> list[int]:
    """The rows of `before` that differ in `after` although no edit names them or a row beside them."""
    ours, theirs = before.split(b"\n"), after.split(b"\n")
    rows = []
    for tag, start, end, _, _ in difflib.SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        near = any(row in edited for row in range(start + 1 - SLACK, end + 1 + SLACK))
        if tag != "equal" and not near:
            rows.append(start + 1)
    return rows


def measure(tree: Path, seconds: float, jobs: str) -> dict[str, Any]:
    """The row of one tree."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "tree"
        shutil.copytree(tree, folder, symlinks=True)
        names = [path for path in folder.rglob("*") if path.suffix in (".py", ".pyi", ".ipynb") and path.is_file()]
        texts = {path: path.read_bytes() for path in names}
        lines = sum(raw.count(b"\n") for raw in texts.values())
        limit = max(60.0, lines / 10_000 * seconds)
        row: dict[str, Any] = {"files": len(texts), "lines": lines, "crashes": [], "hangs": []}
        before = digests(folder)
        listed, row["seconds to check"] = run(["--output-format", "json", "-j", jobs], folder, limit)
        if listed is None:
            return {**row, "hangs": ["check"]}
        row["crashes"] += _errors(listed)
        row["bytes changed by check"] = sum(digests(folder).get(each) != digest for each, digest in before.items())
        found = json.loads(listed.stdout or b"[]")
        row["findings"] = len(found)
        edited: dict[str, set[int]] = {}
        for each in found:
            if each["fix"] is not None:
                rows = edited.setdefault(os.path.normpath(each["filename"]), set())
                for edit in each["fix"]["edits"]:
                    rows.update(range(edit["location"]["row"], edit["end_location"]["row"] + 1))
        fix = ["--fix", "--unsafe-fixes", "--output-format", "json", "-j", jobs]
        fixed, row["seconds to fix"] = run(fix, folder, limit * 3)
        if fixed is None:
            return {**row, "hangs": ["fix"]}
        row["crashes"] += _errors(fixed)
        after = digests(folder)
        changed = [each for each, digest in before.items() if after.get(each) != digest]
        row["files changed"] = len(changed)
        row["files lost or added"] = sorted(set(before) ^ set(after))
        row["changed without a fix"] = [each for each in changed if each not in edited]
        row["rows changed without an edit"] = {}
        row["changed files that do not parse"] = []
        for each in changed:
            raw = (folder / each).read_bytes()
            if each.endswith(".ipynb"):
                row["changed notebooks"] = row.get("changed notebooks", 0) + 1
                if without_sources(raw) != without_sources(texts[folder / each]):
                    row["rows changed without an edit"][each] = ["outside of the source of a cell"]
                continue
            if parses(texts[folder / each]) and not parses(raw):
                row["changed files that do not parse"].append(each)
            strange = strange_rows(texts[folder / each], raw, edited.get(each, set()))
            if strange:
                row["rows changed without an edit"][each] = strange
        again, _ = run(fix, folder, limit * 3)
        row["crashes"] += _errors(again) if again is not None else ["hang of the second fix"]
        row["changed by a second run"] = [each for each, digest in digests(folder).items() if after.get(each) != digest]
    return row


def _errors(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    """The error messages of a run, and how it ended when that was not 0 or 1."""
    lines = [line for line in done.stderr.decode(errors="replace").splitlines() if "error" in line.lower()]
    return lines[:5] + ([f"exit code {done.returncode}"] if done.returncode not in (0, 1) else [])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="+", metavar="NAME=DIR")
    parser.add_argument("--seconds", type=float, default=20, help="per 10,000 lines, before a run counts as a hang")
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--out", type=Path, help="add the rows to this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    bad = False
    for each in options.trees:
        name, _, folder = each.partition("=")
        row = measure(Path(folder), options.seconds, options.jobs)
        row = {key: round(value, 1) if isinstance(value, float) else value for key, value in row.items()}
        bad = bad or bool(row["crashes"] or row["hangs"] or row.get("changed without a fix"))
        print(json.dumps({name: row}), flush=True)
        if options.out is not None:
            known = json.loads(options.out.read_text()) if options.out.exists() else {}
            options.out.write_text(json.dumps({**known, name: row}, indent=1, sort_keys=True) + "\n")
    sys.exit(bad)


if __name__ == "__main__":
    main()

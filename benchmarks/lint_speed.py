"""Lines per second of `devlint check` on a tree, beside `ast.parse` alone over the same files, in one run.

    python benchmarks/lint_speed.py TREE [--repeat 3] [--jobs 1]

Whole processes; the time of a bare interpreter start is subtracted from each. Prints lines per second of both, their ratio,
the share of lines that libcst parsed, and how many files the lexical gate let go. Medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

PARSE = """
import ast, gc, pathlib, sys, warnings
warnings.simplefilter("ignore"); gc.disable()
for path in pathlib.Path(sys.argv[1]).rglob("*.py"):
    try: ast.parse(path.read_bytes())
    except SyntaxError: pass
"""


def seconds(command: list[str]) -> float:
    """Wall-clock seconds of one process; its output is thrown away. Findings (exit code 1) are no failure."""
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{command} failed: {done.stderr.decode(errors='replace')}")
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--jobs", default="1")
    options = parser.parse_args()
    files = [p for p in options.tree.rglob("*.py") if p.is_file()]
    lines = sum(p.read_bytes().count(b"\n") for p in files)
    check = [sys.executable, "-m", "devlint", "check", str(options.tree), "--isolated", "-j", options.jobs]
    check += ["--exit-zero", "--output-format", "json"]
    figures: dict[str, list[float]] = {"bare": [], "parse": [], "check": []}
    for _ in range(options.repeat):
        figures["bare"].append(seconds([sys.executable, "-c", "pass"]))
        figures["parse"].append(seconds([sys.executable, "-c", PARSE, str(options.tree)]))
        figures["check"].append(seconds(check))
    bare = statistics.median(figures["bare"])
    parse = lines / (statistics.median(figures["parse"]) - bare)
    rate = lines / (statistics.median(figures["check"]) - bare)
    counted = subprocess.run([*check, "--statistics"], capture_output=True, text=True, check=False)
    print(json.dumps({
        "tree": options.tree.name, "files": len(files), "lines": lines, "jobs": options.jobs,
        "ast.parse lines/s": round(parse), "devlint lines/s": round(rate), "ratio": round(rate / parse, 3),
    }, indent=1))  # fmt: skip
    print(counted.stderr.strip())


if __name__ == "__main__":
    main()

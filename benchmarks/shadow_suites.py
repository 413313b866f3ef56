"""Runs test suites of public packages as ever and with `--devlint-shadow`, and writes what fails on the card.

    python benchmarks/shadow_suites.py FOLDER [NAME ...]

FOLDER holds a checkout of each repository under its NAME below; the interpreter has the packages and devlint. For each
suite, its tests are run twice in one thread, and `shadow_suites.json` gets a row: commit, tests that passed, CPU seconds
of both runs (of the process and its children), repeats, and the places. A row that is there already is replaced.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_suffix(".json")
LIMIT = 900
# Name: package, folder of the package in the checkout or "" for the installed one, tests.
SUITES: dict[str, tuple[str, str, list[str]]] = {
    "nflows": ("nflows", "", ["tests"]),
    "normflows": ("normflows", ".", ["normflows"]),
    "kornia": ("kornia", ".", ["tests/losses", "tests/metrics"]),
    "pytorch-metric-learning": ("pytorch_metric_learning", "src", ["tests/losses"]),
    "torch_geometric": ("torch_geometric", ".", ["test/nn/aggr", "test/nn/norm", "test/nn/pool", "test/nn/dense"]),
    "pytorch_optimizer": ("pytorch_optimizer", ".", ["tests"]),
    "botorch": ("botorch", ".", ["test/acquisition/test_analytic.py", "test/sampling", "test/utils/probability"]),
    "smp-losses": ("segmentation_models_pytorch", ".", ["tests/test_losses.py"]),
    "torchmetrics": ("torchmetrics", "src", ["tests/unittests/bases"]),
    "timm-layers": ("timm", ".", ["tests/test_layers.py", "tests/test_layers_drop.py", "tests/test_layers_pool.py"]),
    "gpytorch": ("gpytorch", ".", ["test/kernels", "test/likelihoods", "test/distributions"]),
    "monai-losses": ("monai", ".", ["tests/losses"]),
    "zuko": ("zuko", ".", ["tests"]),
    "lightly-losses": ("lightly", ".", ["tests/loss", "tests/models/modules"]),
    "auraloss": ("auraloss", ".", ["tests"]),
    "piq": ("piq", ".", ["tests"]),
}
_PLACE = re.compile(r"  (?P<file>\S.*?):(?P<line>\d+): (?P<code>DEV\d+) (?P<message>.*)")


def main(folder: str, names: list[str]) -> None:
    """Run the suites and write the results after each."""
    rows: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name in names or list(SUITES):
        package, source, tests = SUITES[name]
        where = Path(folder, name)
        plain_seconds, plain = run(where, source, tests)
        shadow_seconds, shadow = run(where, source, ["--devlint-device=sim", f"--devlint-shadow={package}", *tests])
        rows[name] = {
            "commit": git(where),
            "package": package,
            "tests": tests,
            "plain": {"seconds": round(plain_seconds, 1), "ended": plain.splitlines()[-1:]},
            "shadow": {"seconds": round(shadow_seconds, 1), "ended": shadow.splitlines()[-1:]},
            "notes": [line for line in shadow.splitlines() if line.startswith(_NOTED)],
            "places": places(shadow, str(where)),
        }
        RESULTS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        print(f"{name}: {plain_seconds:.1f} s, {shadow_seconds:.1f} s, {len(rows[name]['places'])} places", flush=True)


_NOTED = ("on the card by themselves", "repeated on the card", "not repeated", "failed for other reasons")


def run(where: Path, source: str, arguments: list[str]) -> tuple[float, str]:
    """CPU seconds and output of one run of pytest."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    if source:
        environment["PYTHONPATH"] = str(where / source)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--no-header",
        "-W",
        "ignore",
        "--tb=line",
    ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(
            [*command, *arguments],
            cwd=where,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        output = done.stdout
    except subprocess.TimeoutExpired as late:
        output = (late.stdout or b"").decode(errors="replace") + f"\nended after {LIMIT} s"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, output.strip()


def git(where: Path) -> str:
    """The commit that a checkout was made from, as the file COMMIT in it says; else what git says."""
    note = where / "COMMIT"
    if note.exists():
        return note.read_text(encoding="utf-8").strip()
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=where, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def places(output: str, where: str) -> list[dict[str, Any]]:
    """The rows below "fails on the card", up to the next heading."""
    _, _, listed = output.partition("\nfails on the card, at ")
    rows = itertools.takewhile(lambda line: line.startswith("  "), listed.splitlines()[1:])
    return [
        {**match.groupdict(), "line": int(match["line"]), "file": match["file"].replace(where + os.sep, "")}
        for line in rows
        if (match := _PLACE.fullmatch(line))
    ]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

"""`devlint verify` on each program of fixtures/runtime: the verdict of each fix, several programs at a time."""

from __future__ import annotations

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any, TextIO

import torch

from benchmarks.golden import rows

PROGRAMS = rows.ROOT / "fixtures" / "runtime"


def run(first: int, out: TextIO, rehearse: bool) -> None:
    if sys.version_info < (3, 11):
        import tomli as tomllib
    else:
        import tomllib
    cards = 3 if rehearse else torch.cuda.device_count()
    lock = Lock()

    def one(index: int, path: Path) -> None:
        expected = tomllib.loads(path.read_text(encoding="utf-8"))
        needed = expected.get("cards", 1)
        if cards < needed:
            with lock:
                rows.put(out, index, name=path.stem, skipped=f"needs {needed} cards")
            return
        started = time.monotonic()
        device = expected["device"] if rehearse else "cuda"
        report = _verified(path.with_suffix(".py"), device, tuple(expected.get("select", ())))
        fields = {
            "name": path.stem,
            "real": sorted([fix["code"], fix["location"]["row"], fix["verdict"]] for fix in report["fixes"]),
            "simulated": sorted(
                [fix["code"], fix["line"], _expected(fix, rehearse)] for fix in expected.get("fix", ())
            ),
            "seconds": round(time.monotonic() - started, 1),
            "runs": [[run["run"], run["outcome"], run["milliseconds"]] for run in report["runs"]],
            "evidence": [[fix["code"], fix["device"], *fix["evidence"]] for fix in report["fixes"]],
        }
        with lock:
            rows.put(out, index, **fields)

    # Waiting for children is most of the work; a child uses one core until its card is busy.
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2)) as pool:
        made = [pool.submit(one, *entry) for entry in enumerate(sorted(PROGRAMS.glob("*.toml"))) if entry[0] >= first]
        for each in made:
            each.result()


def _expected(fix: dict[str, Any], rehearse: bool) -> str:
    """The verdict that is expected: a real card cannot show every fault that a simulated one does."""
    return str(fix["verdict"] if rehearse else fix.get("on_card", fix["verdict"]))


def _verified(path: Path, device: str, select: tuple[str, ...]) -> dict[str, Any]:
    from devlint.runtime.processes import Launcher
    from devlint.runtime.report import as_json
    from devlint.runtime.verify import Request, Runner, find_with_linter, verify

    text, find = find_with_linter(path, select, ())
    request = Request(str(path), device=device, timeout=60.0)
    with Launcher() as launcher:
        report = verify(request, text, find(text), Runner(request, launcher), find)
    found: dict[str, Any] = json.loads(as_json(report))
    return found

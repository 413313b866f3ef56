"""What devlint costs from day to day: start, hooks, warm runs on a big tree, cold runs beside other linters.

    python benchmarks/everyday.py --tree timm=DIR --tree transformers=DIR [--torchfix COMMAND] [--ruff COMMAND]
                                  [--others-every 1] [--repeat 9] [--only version hook warm cold]
                                  [--out benchmarks/everyday.json]

Whole processes. Each is measured in turn with a bare interpreter start, and seconds are the excess of the one median
over the other; processor time is given beside it, because other work on the machine lengthens wall-clock time. Lines
per second of several programs on a tree come from runs in turn, too. `--tree` names directories of Python files; the
first also supplies the files of the warm figures. Other linters run once, on every file or on every n-th one, since they
take minutes on a big tree; lines per second are theirs on the files that they got.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

DEVLINT = [sys.executable, "-m", "devlint"]
BARE = [sys.executable, "-c", "pass"]
PARSE = """
import ast, gc, pathlib, sys, warnings
warnings.simplefilter("ignore"); gc.disable()
for path in pathlib.Path(sys.argv[1]).rglob("*.py"):
    try: ast.parse(path.read_bytes())
    except SyntaxError: pass
"""
HOUR = 3600
FILES = 3000

TARGETS = {
    "version": 0.05,
    "warm, 3,000 files unchanged": 0.30,
    "warm, one of 3,000 files changed": 0.45,
    "hook, five clean files, warm": 0.10,
    "hook, one training script of 350 lines, cold": 0.35,
    "memory of a process in MB": 400,
    "share of ast.parse": 0.20,
    "times TorchFix": 25,
}

HEAD = """\
import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

"""
PART = """
class Block{n}(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(x + torch.relu(self.linear(x)))


def train_{n}(model, loader, device, epochs=1):
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        total = torch.zeros((), device=device)
        for inputs, targets in loader:
            inputs, targets = inputs.to(device), targets.to(device)
            weights = torch.ones(inputs.shape[0]).to(device)
            loss = (criterion(model(inputs), targets) * weights).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(epoch, total.item() / max(len(loader), 1))
    return model

"""


class Sample(NamedTuple):
    """One process: wall-clock and processor seconds (with its children), the greatest memory of one process in MB."""

    wall: float
    processor: float
    memory: float


def run(command: Sequence[str], cwd: Path | None = None) -> Sample:
    """Run a process, its output thrown away. Findings (exit code 1) are no failure."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DEVLINT_")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, cwd=cwd, env=environment)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1):
            errors.seek(0)
            said = errors.read().decode(errors="replace")
            sys.exit(f"{shlex.join(command)} failed with {process.returncode}:\n{said[-2000:]}")
    return Sample(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def excess(
    command: Sequence[str], repeat: int, cwd: Path | None = None, before: Callable[[int], object] | None = None
) -> dict[str, float]:
    """Seconds of a command beyond those of a bare interpreter, from medians of runs in turn."""
    bare, full = [], []
    for number in range(repeat):
        if before is not None:
            before(number)
        bare.append(run(BARE, cwd))
        full.append(run(command, cwd))
    return {
        "seconds": round(_median(full, "wall") - _median(bare, "wall"), 3),
        "processor seconds": round(_median(full, "processor") - _median(bare, "processor"), 3),
        "bare interpreter": round(_median(bare, "wall"), 3),
    }


def _median(samples: Sequence[Sample], name: str) -> float:
    return statistics.median(getattr(sample, name) for sample in samples)


def version(repeat: int) -> dict[str, Any]:
    return {"version": excess([*DEVLINT, "--version"], repeat)}


def hook(tree: Path, repeat: int) -> dict[str, Any]:
    """The hook on a few files: `devlint check` with the names, as pre-commit calls it."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        names = []
        for path in _clean_files(tree)[:5]:
            names.append(f"{path.stem}_{len(names)}.py")
            shutil.copyfile(path, place / names[-1])
            _age(place / names[-1])
        command = [*DEVLINT, "check", "--force-exclude", "--isolated", *names]
        run(command, place)
        warm = excess(command, repeat, place)
        script = HEAD + "".join(PART.format(n=n) for n in range(12))
        (place / "train.py").write_text("\n".join(script.splitlines()[:350]) + "\n")
        cold = excess([*DEVLINT, "check", "--force-exclude", "--isolated", "--no-cache", "train.py"], repeat, place)
    return {"hook, five clean files, warm": warm, "hook, one training script of 350 lines, cold": cold}


def _clean_files(tree: Path) -> list[Path]:
    """Files of a tree that mention torch and have no finding, of 100 to 400 lines."""
    listed = subprocess.run(
        [*DEVLINT, "check", str(tree), "--isolated", "--no-cache", "--output-format", "json", "-j", "2"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    bad = {Path(row["filename"]).resolve() for row in json.loads(listed.stdout)}
    found = []
    for path in sorted(tree.rglob("*.py")):
        text = path.read_bytes()
        if path.resolve() not in bad and b"import torch" in text and 100 <= text.count(b"\n") <= 400:
            found.append(path)
    if len(found) < 5:
        sys.exit(f"{tree}: no five clean files of 100 to 400 lines that import torch")
    return found


def warm(tree: Path, repeat: int) -> dict[str, Any]:
    """A run over 3,000 files that are in the cache, and one with a file among them changed."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        sources = sorted(path for path in tree.rglob("*.py") if path.is_file())
        changing: Path | None = None
        for number in range(FILES):
            source = sources[number % len(sources)]
            target = place / f"round_{number // len(sources)}" / source.relative_to(tree)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            _age(target)
            text = target.read_bytes()
            if changing is None and b"import torch" in text and 300 <= text.count(b"\n") <= 400:
                changing = target
        if changing is None:
            sys.exit(f"{tree}: no file of 300 to 400 lines that imports torch")
        file = changing
        command = [*DEVLINT, "check", ".", "--isolated"]
        run(command, place)
        unchanged = excess(command, repeat, place)
        original = file.read_text()
        changed = excess(command, repeat, place, lambda number: file.write_text(f"{original}\n# change {number}\n"))
    return {"warm, 3,000 files unchanged": unchanged, "warm, one of 3,000 files changed": changed}


def _age(path: Path) -> None:
    then = time.time() - HOUR
    os.utime(path, (then, then))


def cold(name: str, tree: Path, repeat: int, others: dict[str, list[str]], every: int) -> dict[str, Any]:
    """Lines per second without a cache and with two jobs, beside `ast.parse` and other linters, on every n-th file."""
    files = [path for path in tree.rglob("*.py") if path.is_file()]
    lines = sum(path.read_bytes().count(b"\n") for path in files)
    check = [*DEVLINT, "check", str(tree), "--isolated", "--no-cache", "-j", "2", "--exit-zero", "--output-format"]
    bare, parse, full = [], [], []
    for _ in range(repeat):
        bare.append(run(BARE))
        parse.append(run([sys.executable, "-c", PARSE, str(tree)]))
        full.append(run([*check, "concise"]))
    start = _median(bare, "wall")
    taken = {"ast.parse": (parse, lines), "devlint": (full, lines)}
    with tempfile.TemporaryDirectory() as folder:
        given, given_lines = tree, lines
        if every > 1 and others:
            given, given_lines = Path(folder), 0
            for number, path in enumerate(sorted(files)[::every]):
                (given / str(number)).mkdir()
                shutil.copyfile(path, given / str(number) / path.name)
                given_lines += path.read_bytes().count(b"\n")
        for other, command in others.items():
            taken[other] = [run([*command, str(given)])], given_lines
    rate, work = {}, {}
    for program, (samples, counted_lines) in taken.items():
        rate[program] = counted_lines / (_median(samples, "wall") - start)
        work[program] = counted_lines / max(_median(samples, "processor") - _median(bare, "processor"), 0.001)
    counted = subprocess.run([*check, "json", "--statistics"], capture_output=True, text=True, check=False)
    counts = json.loads(counted.stdout)
    row: dict[str, Any] = {
        "files": len(files),
        "lines": lines,
        "runs": repeat,
        "lines per second": {program: round(value) for program, value in rate.items()},
        "lines per processor second": {program: round(value) for program, value in work.items()},
        "share of ast.parse": round(rate["devlint"] / rate["ast.parse"], 3),
        "share of ast.parse, by processor time and on two processors": round(
            2 * work["devlint"] / work["ast.parse"], 3
        ),
        "memory of a process in MB": round(max(sample.memory for sample in full)),
        "share of lines that libcst parsed": round(counts["lines_parsed_by_libcst"] / counts["lines"], 5),
        "share of files without a word of a rule": round(counts["gated"] / counts["files"], 3),
    }
    if others:
        row["other linters ran on"] = "all files" if every == 1 else f"every {every}th file, {given_lines} lines"
    if "torchfix" in rate:
        row["times TorchFix"] = round(rate["devlint"] / rate["torchfix"], 1)
        row["times TorchFix, by processor time"] = round(work["devlint"] / work["torchfix"], 1)
    return {f"cold, {name}": row}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", action="append", required=True, metavar="NAME=DIR")
    parser.add_argument("--torchfix", metavar="COMMAND", help="TorchFix 0.7.0, in an environment of its own")
    parser.add_argument("--ruff", metavar="COMMAND", help="ruff, with its default rules")
    parser.add_argument("--others-every", type=int, default=1, metavar="N", help="give them every N-th file alone")
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--cold-repeat", type=int, help="for whole trees (default: as --repeat)")
    parser.add_argument("--only", nargs="+", choices=("version", "hook", "warm", "cold"), metavar="FIGURE")
    parser.add_argument("--out", type=Path, help="add the results to this file")
    options = parser.parse_args()
    trees = {name: Path(folder) for name, _, folder in (each.partition("=") for each in options.tree)}
    wanted = options.only or ("version", "hook", "warm", "cold")
    first = next(iter(trees.values()))
    results: dict[str, Any] = {}
    if "version" in wanted:
        results |= version(options.repeat)
    if "hook" in wanted:
        results |= hook(first, options.repeat)
    if "warm" in wanted:
        results |= warm(first, options.repeat)
    if "cold" in wanted:
        others = {"torchfix": [*shlex.split(options.torchfix), "--select", "ALL"]} if options.torchfix else {}
        if options.ruff:
            others["ruff"] = [*shlex.split(options.ruff), "check", "--no-cache", "--isolated"]
        for name, tree in trees.items():
            results |= cold(name, tree, options.cold_repeat or options.repeat, others, options.others_every)
    for row in results.values():  # above the number of cores, wall-clock figures are those of the other work
        row["load average"] = round(os.getloadavg()[0], 1)
        row["date"] = datetime.datetime.now().isoformat(timespec="minutes")
    report = {
        "date": datetime.date.today().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}, "
        f"{platform.python_implementation()} {platform.python_version()}",
        "repeat": options.repeat,
        "targets": TARGETS,
        "results": results,
    }
    if options.out is not None:
        known = json.loads(options.out.read_text())["results"] if options.out.exists() else {}
        options.out.write_text(json.dumps({**report, "results": {**known, **results}}, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()

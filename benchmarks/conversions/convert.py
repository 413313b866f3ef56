"""Converts public CUDA-only training programs with `devlint check --fix --unsafe-fixes` and runs what comes out.

    git clone https://github.com/xternalz/WideResNet-pytorch clones/xternalz+WideResNet-pytorch   # and so on
    python benchmarks/conversions/convert.py clones --json benchmarks/conversions/results.json --markdown docs/conversions.md

`clones` holds one clone for each repository in `programs.toml`, named `owner+name`, bare or not, with the commit that
is written there. With `--only`, the results of the other programs are kept. Each program is copied out of it, ported
where old Python or torch stands in the way (never a line about devices), converted, and run on stand-ins for its
data: the original on the CPU and on a simulated card, the result on the CPU, on one and two simulated CUDA cards (the
second one current), and on simulated XPU and MPS. Losses are compared with those of the original on as many simulated
cards, under one seed. Exits with 1 when something does not run, when losses differ, when a second conversion changes
something, or when `--diff` does not apply. Needs Python 3.11.
"""

from __future__ import annotations

import argparse
import difflib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import tomllib

HERE = Path(__file__).resolve().parent
RUNS = {"cpu": "cpu", "cuda": "sim", "2 cards": "sim:2", "xpu": "sim:xpu", "mps": "sim:mps"}
TOLERANCE = 1e-5  # relative, of each loss: other kernels than the CPU's are not involved


@dataclass
class Run:
    """How a program ended: `ran`, or the last line of its error; and its losses."""

    outcome: str
    losses: list[float] = field(default_factory=list)


@dataclass
class Result:
    """What became of one program. added, removed: lines of the diff. by_hand: what a person still had to change."""

    name: str
    shape: str
    repository: str
    commit: str
    script: str
    ports: list[str]
    files_changed: int
    added: int
    removed: int
    by_hand: list[str]
    original_cpu: str
    original_cuda: str
    converted: dict[str, str]
    losses: dict[str, str]
    second_run_changes: bool
    diff_applies: bool

    @property
    def sound(self) -> bool:
        return (
            all(outcome == "ran" for outcome in self.converted.values())
            and all(text in ("equal", "no reference") for text in self.losses.values())
            and not self.second_run_changes
            and self.diff_applies
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("clones", type=Path)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--keep", type=Path, help="leave the copies here instead of removing them")
    arguments = parser.parse_args()
    table = tomllib.loads((HERE / "programs.toml").read_text(encoding="utf-8"))
    results = []
    for program in table["program"]:
        if arguments.only and program["name"] not in arguments.only:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            work = arguments.keep / program["name"] if arguments.keep else Path(scratch)
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            result = convert(program, arguments.clones, work)
        results.append(result)
        print(row(result), flush=True)
        if arguments.json:
            store(arguments.json, result, [program["name"] for program in table["program"]])
    if arguments.markdown:
        stored = [Result(**r) for r in json.loads(arguments.json.read_text(encoding="utf-8"))] if arguments.json else []
        write_table(arguments.markdown, stored or results)
    return 0 if all(result.sound for result in results) else 1


def store(path: Path, result: Result, order: list[str]) -> None:
    """Put one result among those that the file has."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    merged = {r["name"]: r for r in known} | {result.name: asdict(result)}
    text = json.dumps([merged[name] for name in order if name in merged], indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def convert(program: dict[str, Any], clones: Path, work: Path) -> Result:
    original, converted, patched = work / "original", work / "converted", work / "patched"
    copy_out(program, clones, original)
    ports = [port(original, change) for change in program.get("ports", [])]
    shutil.copytree(original, converted)
    shutil.copytree(original, patched)
    diff = devlint(patched, "check", "--diff", "--unsafe-fixes", "--no-cache", ".").stdout
    devlint(converted, "check", "--fix", "--unsafe-fixes", "--no-cache", ".")
    (work / "diff.patch").write_bytes(diff)
    applied = subprocess.run(["git", "apply", "--unsafe-paths", "-"], cwd=patched, input=diff)
    after = sources(converted)
    devlint(converted, "check", "--fix", "--unsafe-fixes", "--no-cache", ".")
    again = sources(converted)
    changed, added, removed = compare(sources(original), after)
    by_hand = [f"{change['files']}: {change['why']}" for change in program.get("by_hand", [])]
    for change in program.get("by_hand", []):
        port(converted, change)
    on_cpu, reference = execute(program, original, work, "cpu"), execute(program, original, work, "sim")
    on_two = execute(program, original, work, "sim:2")  # several cards change the batches that DataParallel makes
    runs = {name: execute(program, converted, work, device) for name, device in RUNS.items()}
    return Result(
        program["name"], program["shape"], program["repository"], program["commit"], program["script"],
        [text for text in ports if text], changed, added, removed, by_hand,
        on_cpu.outcome, reference.outcome, {name: run.outcome for name, run in runs.items()},
        {name: agreement(run, on_two if name == "2 cards" else reference) for name, run in runs.items()},
        again != after, applied.returncode == 0 and sources(patched) == after,
    )  # fmt: skip


def copy_out(program: dict[str, Any], clones: Path, into: Path) -> None:
    """The program's Python files at its commit."""
    clone = clones / program["repository"].replace("/", "+")
    clone = next(p for p in (clone / "repo/.git", clone / "repo", clone / ".git", clone) if (p / "HEAD").exists())
    folder = program.get("folder", ".")
    tree = program["commit"] + ("" if folder == "." else f":{folder}")
    packed = subprocess.run(["git", "-C", str(clone), "archive", tree, "*.py"], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        members = [m for m in archive.getmembers() if m.name.endswith(".py")]
        archive.extractall(into, members, filter="data")


def port(folder: Path, change: dict[str, str]) -> str:
    """Make one replacement; its description for the table. Raises ValueError when it finds nothing."""
    found = 0
    for path in folder.rglob(change["files"]):
        text, count = re.subn(change["find"], change["put"], path.read_bytes().decode("utf-8"))
        found += count
        if count:
            path.write_bytes(text.encode("utf-8"))
    if not found:
        raise ValueError(f"{change['find']}: not in {change['files']}")
    return f"{change['find']} -> {change['put']} ({change['why']})"


def devlint(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "devlint", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, timeout=300)


def sources(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_bytes().decode("utf-8") for p in sorted(folder.rglob("*.py"))}


def compare(old: dict[str, str], new: dict[str, str]) -> tuple[int, int, int]:
    """How many files differ, and how many lines were added and removed."""
    files = added = removed = 0
    for name, text in old.items():
        lines = list(difflib.unified_diff(text.splitlines(), new[name].splitlines(), n=0))[2:]
        files += bool(lines)
        added += sum(line.startswith("+") for line in lines)
        removed += sum(line.startswith("-") for line in lines)
    return files, added, removed


def execute(program: dict[str, Any], folder: Path, work: Path, device: str) -> Run:
    """Run a fresh copy of the program on a device: "cpu", or one of `devlint run`."""
    with tempfile.TemporaryDirectory(dir=work) as scratch:
        copy = Path(scratch) / "program"
        shutil.copytree(folder, copy)
        losses, plan = Path(scratch) / "losses.json", Path(scratch) / "plan.json"
        standin = program.get("standin", "")
        current = program.get("current", 1) if device == "sim:2" else 0
        plan.write_text(
            json.dumps(
                {
                    "losses": str(losses),
                    "standin": str(HERE / "standins" / standin) if standin else "",
                    "absent": program.get("absent", []),
                    "steps": program.get("steps", 0),
                    "current": current,
                }
            ),
            encoding="utf-8",
        )
        start = [str(HERE / "start.py"), str(plan), program["script"], *program.get("arguments", [])]
        run = [sys.executable, *start] if device == "cpu" else [
            sys.executable, "-m", "devlint", "run", "--device", device, *start,
        ]  # fmt: skip
        paths = [str(HERE / "standins/modules"), *(str(copy / p) for p in program.get("path", []))]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
        try:
            done = subprocess.run(run, cwd=copy, env=environment, capture_output=True, text=True, timeout=240)
        except subprocess.TimeoutExpired:
            return Run("took more than 240 s")
        (work / f"{folder.name}-{device.replace(':', '')}.log").write_text(done.stdout + done.stderr, encoding="utf-8")
        values = json.loads(losses.read_text(encoding="utf-8")) if losses.exists() else []
        if done.returncode == 0 and values:
            return Run("ran", values)
        errors = [line for line in done.stderr.splitlines() if re.match(r"[\w.]*(Error|Exception|Interrupt)\b", line)]
        return Run(errors[-1] if errors else f"ended with {done.returncode} after {len(values)} losses", values)


def agreement(run: Run, reference: Run) -> str:
    """`equal`, or by how much the losses differ at most, relative to their size."""
    if not reference.losses or reference.outcome != "ran":
        return "no reference"
    if len(run.losses) != len(reference.losses):
        return f"{len(run.losses)} of {len(reference.losses)} losses"
    worst = max(abs(a - b) / max(abs(b), 1e-3) for a, b in zip(run.losses, reference.losses, strict=True))
    return "equal" if worst <= TOLERANCE else f"differ by {worst:.1e}"


def row(result: Result) -> str:
    runs = ", ".join(f"{name} {outcome[:100]}" for name, outcome in result.converted.items())
    return (
        f"{result.name}: +{result.added} -{result.removed}; original: cpu {result.original_cpu[:60]!r}, cuda "
        f"{result.original_cuda[:100]!r}; converted: {runs}; losses {result.losses}; second run changes "
        f"{result.second_run_changes}, diff applies {result.diff_applies}"
    )


def write_table(path: Path, results: list[Result]) -> None:
    """Replace the table in the document, which stands between two marks."""
    lines = [
        "| program | description | changed lines | changes by hand | original on the CPU | "
        + " | ".join(RUNS)
        + " | losses | patch |",
        "|---|---|---|---|---|" + "---|" * len(RUNS) + "---|---|",
    ]
    for r in results:
        name = f"[{r.name}](https://github.com/{r.repository}/tree/{r.commit[:10]})"
        cells = list(r.converted.values())
        kinds = sorted(set(r.losses.values()))
        cpu = r.original_cpu.split(":")[0] if r.original_cpu != "ran" else "ran"
        size = f"+{r.added} -{r.removed} in {r.files_changed} file{'s' if r.files_changed != 1 else ''}"
        lines.append(
            f"| {name} | {r.shape} | {size} | {'; '.join(r.by_hand) or 'nothing'} | {cpu} | "
            + " | ".join(cells)
            + f" | {', '.join(kinds)} | {'sound' if r.diff_applies and not r.second_run_changes else 'not sound'} |"
        )
    text = path.read_text(encoding="utf-8")
    begin, end = "<!-- table -->", "<!-- end of table -->"
    head, _, rest = text.partition(begin)
    path.write_text(head + begin + "\n" + "\n".join(lines) + "\n" + end + rest.partition(end)[2], encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

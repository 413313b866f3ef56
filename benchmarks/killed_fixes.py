"""Kills `devlint check --fix` at random moments and looks at every file: as before, or wholly fixed.

    python benchmarks/killed_fixes.py [--times 200] [--files 30] [--seed 0] [--signal KILL]

Each round starts from the same files, kills the run (SIGKILL, or another signal) after a random part of its usual time,
and compares every file with its two valid contents. The signal goes to the main process alone: whether a worker process
outlives it by more than LEFT seconds shows in its standard error, which stays open. Then an undisturbed run must leave
all of them fixed, on the cache that the killed one left behind. Prints how many files the kills found fixed, so that one
sees the moments were well spread.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMAND = [sys.executable, "-m", "devlint", "check", ".", "--isolated", "--fix", "--select", "DEV501", "-j", "2"]
LEFT = 2.0  # seconds
PART = "\ndef f{n}(x):\n    return torch.zeros({n}).to(x.device) + torch.ones({n}).to(x.device)\n"


def write(folder: Path, files: int) -> dict[str, bytes]:
    """Files of different sizes, all with findings that have safe fixes; their contents by name."""
    contents = {}
    for number in range(files):
        text = "import torch\n" + "".join(PART.format(n=n) for n in range(1, 4 + number * 3))
        contents[f"f{number}.py"] = text.encode()
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return contents


def run(folder: Path, stop_after: float | None = None, number: int = signal.SIGKILL) -> tuple[float, bool]:
    """Run the fixes, killed after so many seconds; the seconds taken, and whether a process of the run was left."""
    start = time.perf_counter()
    process = subprocess.Popen(COMMAND, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        process.wait(stop_after)
    except subprocess.TimeoutExpired:
        process.send_signal(number)
        process.wait()
    seconds = time.perf_counter() - start
    try:
        process.communicate(timeout=LEFT)
    except subprocess.TimeoutExpired:
        return seconds, True
    return seconds, False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--files", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--signal", default="KILL", choices=("KILL", "TERM", "HUP", "INT"))
    options = parser.parse_args()
    number = getattr(signal, f"SIG{options.signal}")
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = write(folder, options.files)
        usual, _ = run(folder)
        after = {each: (folder / each).read_bytes() for each in before}
        if any(after[each] == before[each] for each in before):
            sys.exit("the fixes did not reach every file")
        broken, fixed, finished, left_over, outlived = 0, 0, 0, 0, 0
        for _ in range(options.times):
            write(folder, options.files)
            moment = rng.uniform(0.05, 1.0) * usual
            seconds, is_left = run(folder, moment, number)
            finished += seconds < moment
            outlived += is_left
            for each in before:
                content = (folder / each).read_bytes()
                fixed += content == after[each]
                broken += content not in (before[each], after[each])
            left_over += sum(1 for path in folder.iterdir() if path.is_file() and path.name not in before)
            for path in folder.iterdir():
                if path.is_file() and path.name not in before:
                    path.unlink()
        write(folder, options.files)
        run(folder)
        wrong = sum(1 for each in before if (folder / each).read_bytes() != after[each])
    report = {
        "signal": options.signal,
        "times": options.times,
        "files": options.files,
        "seconds of an undisturbed run": round(usual, 2),
        "runs that ended before the kill": finished,
        "share of files found fixed": round(fixed / options.times / options.files, 2),
        "files neither as before nor fixed": broken,
        "temporary files left": left_over,
        "runs that a worker process outlived": outlived,
        "wrong at last": wrong,
    }
    print(json.dumps(report, indent=1))
    if broken or wrong or outlived:
        sys.exit(1)


if __name__ == "__main__":
    main()

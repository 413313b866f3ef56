"""Twenty hooks at once on one cache: every one says what it says alone and without a cache.

    python benchmarks/parallel_hooks.py TREE [--hooks 20] [--rounds 5] [--files 400] [--seed 0] [--out FILE]

Each round starts with another state of the cache: none, that of the round before, one of half of the files, a damaged
one, and one where some processes are killed while they work. Each hook gets its own overlapping part of the files, as
pre-commit hands names out. Outputs and exit codes are compared with those of a run of the same names with `--no-cache`.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CHECK = [sys.executable, "-m", "devlint", "check", "--isolated", "--force-exclude", "--output-format", "json"]
STATES = ("no cache", "warm", "half", "damaged", "some killed")
DATABASE = Path(".devlint_cache") / "devlint-results.sqlite3"


def prepare(folder: Path, state: str, names: list[str], rng: random.Random) -> None:
    if state in ("no cache", "half", "some killed"):
        shutil.rmtree(folder / ".devlint_cache", ignore_errors=True)
    if state == "half":
        subprocess.run([*CHECK, *names[::2]], cwd=folder, capture_output=True, check=False)
    if state == "damaged":
        raw = bytearray((folder / DATABASE).read_bytes())
        for _ in range(200):
            raw[rng.randrange(len(raw))] ^= 0xFF
        (folder / DATABASE).write_bytes(raw)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--hooks", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=len(STATES))
    parser.add_argument("--files", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="write the record to this file")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = sorted(path for path in options.tree.rglob("*.py") if b"torch" in path.read_bytes())
        names = []
        for number, path in enumerate(rng.sample(sources, min(options.files, len(sources)))):
            names.append(f"f{number}.py")
            shutil.copyfile(path, folder / names[-1])
        parts = [sorted(rng.sample(names, max(1, len(names) // 8))) for _ in range(options.hooks)]
        expected = []
        for part in parts:
            done = subprocess.run([*CHECK, "--no-cache", *part], cwd=folder, capture_output=True, check=False)
            expected.append((done.returncode, done.stdout))
        for number in range(options.rounds):
            state = STATES[number % len(STATES)]
            prepare(folder, state, names, rng)
            start = time.perf_counter()
            hooks = [
                subprocess.Popen([*CHECK, *part], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                for part in parts
            ]
            killed = rng.sample(range(len(hooks)), len(hooks) // 4) if state == "some killed" else []
            for index in killed:
                time.sleep(rng.uniform(0, 0.1))
                hooks[index].kill()
            different = errors = 0
            for index, (hook, wanted) in enumerate(zip(hooks, expected, strict=True)):
                out, err = hook.communicate(timeout=300)
                if index not in killed:
                    different += (hook.returncode, out) != wanted
                    errors += bool(err)
            seconds = round(time.perf_counter() - start, 2)
            row = {"cache": state, "hooks": len(hooks) - len(killed), "different": different, "with messages": errors}
            rows.append({**row, "seconds": seconds})
    findings = sum(len(json.loads(out)) for _, out in expected)
    report = {"files": len(names), "findings in all hooks": findings, "rounds": rows}
    print(json.dumps(report, indent=1))
    if options.out is not None:
        options.out.write_text(json.dumps(report, indent=1) + "\n")
    if any(row["different"] for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()

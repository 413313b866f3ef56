"""What a real card does, as data, beside what devlint says of it: one command, one file for each card and torch.

    python benchmarks/golden_cuda.py [--output FOLDER] [--part snippets] ...

Each part, a module of benchmarks/golden, compares the real outcome with the simulated one, or with what the analysis
and the knowledge of torch claim, and stores both, by torch version and card, as
`FOLDER/<torch version>-<card>.golden.json` (default: benchmarks/gpu). Without a CUDA card it says so and exits with 0.
Exit code 1 when any outcome differs: each difference is a defect of devlint.

The parts run in child processes, since an error inside a kernel leaves a process without a usable card: a child that
ends so is started again behind the entry at which it ended. `mixed` and `waits` need the package ``expecttest``. With
the option `--rehearse` the simulated card takes the place of the real one, to try the script itself.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from benchmarks.golden import rows as golden_rows  # noqa: E402

#: The longest that each part may take, in seconds.
SECONDS = {"snippets": 60.0, "mixed": 240.0, "waits": 120.0, "claims": 60.0, "programs": 150.0, "verdicts": 300.0}
PARTS = tuple(SECONDS)
#: Parts whose entries wait by themselves, and where what is queued must stay unfinished till then.
ASYNCHRONOUS = ("snippets", "verdicts")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "gpu")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; may be given several times")
    parser.add_argument("--rehearse", action="store_true", help="use a simulated card in place of a real one")
    parser.add_argument("--child", nargs=3, metavar=("PART", "FROM", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        part, first, file = options.child
        with open(file, "a", encoding="utf-8") as rows:
            importlib.import_module(f"benchmarks.golden.{part}").run(int(first), rows, options.rehearse)
        return 0
    card = _card(options.rehearse)
    if card is None:
        return 0
    result: dict[str, Any] = {**card, "parts": {}}
    name = re.sub(r"[^\w.]+", "-", f"{card['torch']}-{card['card']}")
    path = options.output / f"{name}.golden.json"
    if options.part and path.exists():
        result["parts"] = json.loads(path.read_text(encoding="utf-8"))["parts"]
    agreed_all = True
    for part in options.part or PARTS:
        started = time.monotonic()
        rows, notes = _run(part, options.rehearse)
        compared = [row for row in rows if "agrees" in row]
        agreed = sum(row["agrees"] for row in compared)
        agreed_all &= agreed == len(compared)
        print(f"{part}: {agreed} of {len(compared)} as simulated, {len(rows) - len(compared)} not compared", *notes)
        for row in compared:
            if not row["agrees"]:
                print(f"  {row['name']}\n    real:      {row['real']}\n    simulated: {row['simulated']}")
        seconds = round(time.monotonic() - started)
        facts = {"date": card["date"], "seconds": seconds, "compared": len(compared), "agree": agreed, "notes": notes}
        result["parts"][part] = {**facts, "rows": [_shortened(row) for row in rows]}
    if not options.rehearse:
        options.output.mkdir(parents=True, exist_ok=True)
        path.write_text(_one_row_a_line(result), encoding="utf-8")
        print(f"stored in {path}")
    return int(not agreed_all)


def _shortened(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what the simulation said, where that is what the card said."""
    return {k: v for k, v in row.items() if not (row.get("agrees") and k in ("simulated", "simulated_text"))}


def _one_row_a_line(result: dict[str, Any]) -> str:
    """JSON with each row of each part on a line of its own."""
    rows = {f"@{name}": part["rows"] for name, part in result["parts"].items()}
    parts = {name: {**part, "rows": f"@{name}"} for name, part in result["parts"].items()}
    text = json.dumps({**result, "parts": parts}, indent=1, ensure_ascii=False)
    for mark, each in rows.items():
        lines = ",\n".join(f"    {json.dumps(row, ensure_ascii=False)}" for row in each)
        text = text.replace(f'"{mark}"', f"[\n{lines}\n   ]")
    return text + "\n"


def _card(rehearse: bool) -> dict[str, Any] | None:
    """The machine in words; None, and a line on standard output, where there is no card."""
    try:
        import torch
    except ImportError as error:
        print(f"skipped: {error}")
        return None
    facts = {
        "torch": torch.__version__,
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "python": platform.python_version(),
    }
    if rehearse:
        return {**facts, "card": "simulated", "cards": 2}
    if not torch.cuda.is_available():
        print(f"skipped: torch {torch.__version__} finds no CUDA card here; `devlint doctor` says why")
        return None
    return {
        **facts,
        "card": torch.cuda.get_device_name(0),
        "cards": torch.cuda.device_count(),
        "capability": list(torch.cuda.get_device_capability(0)),
        "cuda": torch.version.cuda,
    }


def _run(part: str, rehearse: bool) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows of a part, from as many child processes as it takes, and what cut it short."""
    deadline = time.monotonic() + SECONDS[part]
    notes: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "rows")
        file.touch()
        first = 0
        while True:
            command = [sys.executable, __file__, "--child", part, str(first), str(file)]
            environment = {**os.environ, "CUDA_LAUNCH_BLOCKING": "0" if part in ASYNCHRONOUS else "1"}
            try:
                ended = subprocess.run(
                    command + ["--rehearse"] * rehearse,
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=max(deadline - time.monotonic(), 1.0),
                    check=False,
                )
            except subprocess.TimeoutExpired:
                notes.append(f"cut short after {SECONDS[part]:.0f} s")
                break
            if ended.returncode == 0:
                break
            rows = golden_rows.read(file)
            if len(rows) <= first and not rows[first:]:
                notes.append(f"the child ended with {ended.returncode}: {ended.stderr.strip()[-300:]}")
                break
            first = rows[-1]["index"] + 1
        return [{key: value for key, value in row.items() if key != "index"} for row in golden_rows.read(file)], notes


if __name__ == "__main__":
    sys.exit(main())

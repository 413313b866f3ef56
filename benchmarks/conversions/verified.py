"""Asks `devlint verify` about every fix of the public programs that `convert.py` converts.

    python benchmarks/conversions/verified.py CLONES [--only NAME] [--out benchmarks/conversions/verified.json]

CLONES is that of `convert.py`. Each program is copied out of its clone, ported, and handed to `devlint verify` as it is, on a
simulated card, with the command that runs it on stand-ins for its data. Prints how many fixes have which verdict, and
writes a row for each program. A fix counts as right where `convert.py` shows that the converted program runs with equal
losses, so that every refuted one is a wrong verdict. Results of other programs in the file are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import tomllib
from convert import HERE, copy_out, port

LIMIT = 900  # seconds for one program


def verified(program: dict[str, Any], clones: Path, work: Path) -> dict[str, Any]:
    """What `devlint verify` says of one program."""
    copy_out(program, clones, work / "program")
    for change in program.get("ports", []):
        port(work / "program", change)
    plan, standin = work / "plan.json", program.get("standin", "")
    given = {
        "losses": str(work / "losses.json"), "standin": str(HERE / "standins" / standin) if standin else "",
        "absent": program.get("absent", []), "steps": program.get("steps", 0), "current": 0,
    }  # fmt: skip
    plan.write_text(json.dumps(given), encoding="utf-8")
    paths = [str(HERE / "standins/modules"), *(str(work / "program" / each) for each in program.get("path", []))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    started = [sys.executable, str(HERE / "start.py"), str(plan), program["script"], *program.get("arguments", [])]
    command = [sys.executable, "-m", "devlint", "verify", "--device", "sim", "--json", ".", "--", *started]
    row: dict[str, Any] = {"name": program["name"], "repository": program["repository"], "commit": program["commit"]}
    began = time.monotonic()
    process = subprocess.Popen(
        command, cwd=work / "program", env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        out, errors = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return {**row, "verdicts": {}, "why": f"took more than {LIMIT} s"}
    row["seconds"] = round(time.monotonic() - began)
    if not out.startswith("{"):
        return {**row, "verdicts": {}, "why": errors.strip().split("\n")[-1]}
    report = json.loads(out)
    row["runs"] = len(report["runs"])
    row["verdicts"] = dict(Counter(fix["verdict"] for fix in report["fixes"]))
    row["others"] = [
        f"{os.path.basename(fix['filename'])}:{fix['location']['row']} {fix['code']} {fix['verdict']}: "
        + " / ".join(fix["evidence"])[:200]
        for fix in report["fixes"]
        if fix["verdict"] not in ("confirmed", "not reached")
    ]
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("clones", type=Path)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = {row["name"]: row for row in json.loads(given.out.read_text())} if given.out and given.out.exists() else {}
    for program in tomllib.loads((HERE / "programs.toml").read_text(encoding="utf-8"))["program"]:
        if given.only and program["name"] not in given.only:
            continue
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
            rows[program["name"]] = row = verified(program, given.clones, Path(scratch))
        print(row["name"], row["verdicts"], row.get("why", ""), f"{row.get('seconds', 0)} s", *row.get("others", []))
        sys.stdout.flush()
        if given.out:
            given.out.write_text(json.dumps(list(rows.values()), indent=1) + "\n")
    return 1 if any("refuted" in row["verdicts"] for row in rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main())

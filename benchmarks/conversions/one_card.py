"""Converts files that name one card, one by one, and runs before and after what can run without its data.

    python benchmarks/conversions/one_card.py draw CLONES      # a seeded draw of files, into one_card.json
    python benchmarks/conversions/one_card.py convert CLONES   # converts and runs each; keeps what a reader wrote
    python benchmarks/conversions/one_card.py print CLONES --keep PLACE   # each file before and after, for readers
    python benchmarks/conversions/one_card.py table            # the figures of the rows

The second set for readers is drawn, printed and run by the same commands with `--rows one_card_fresh.json`; its draw has
`--each 1 --seed 20261129`. The third is `one_card_third.json`, the fourth `one_card_fourth.json` with `--seed 20261203`.
`one_card.json` was drawn with `--each 3`, by an earlier order of the repositories.

`CLONES` holds one clone for each repository, named `owner+name`, bare or not. A row has the commit and the path of a
file, how many places named the card, whether `--fix` alone converts all of them, the size of the change, and how the
program ended on simulated CUDA before, and on the CPU, one simulated card and simulated XPU after. Missing modules are
replaced by objects that accept everything, data sets by random ones, and a program is ended after a few optimizer steps. It
"runs" when it ends as the original did on the simulated card, and moved something to a device on the way. `verdict` and
`note` are a reader's: "person" (as a person writes it), "right" (right, but a person writes it otherwise), "wrong". They
are dropped when the converted file changes. `readers` has the verdicts of two readers, with what they say, also after that;
for them "left" is a line that still needs the card.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from devlint.config import Resolver
from devlint.engine import Linter
from devlint.fix.rounds import fix_source
from devlint.model import Diagnostic, Safety
from devlint.rulebook import Rulebook, rules_of
from devlint.source import decode

HERE = Path(__file__).resolve().parent
DRIVERS = HERE / "one_card_drivers.json"  # what to call of files that run nothing by themselves
DRAWN = 60
LARGEST = 400  # Python files of a repository at most
FAMILIES = ("DEV1", "DEV2", "DEV3")  # what is about the device; how fast or how large the program is, is no conversion
PLACES = 2  # places that name the card, at least
LIMIT = 60  # seconds for one run
DEVICES = {"cpu": "cpu", "cuda": "sim", "xpu": "sim:xpu"}
_KEPT = re.compile(r"(\.py|/?(requirements[^/]*\.txt|environment[^/]*\.ya?ml|setup\.(py|cfg)|pyproject\.toml))$")
_NAMES_CARD = re.compile(rb"\.cuda\(|[\"']cuda(?::\d)?[\"']")
_PATH = re.compile(r" ?\(?'?(?:/[\w.+-]+){2,}/?'?\)?")
_PLACE = re.compile(r"\b(cuda|xpu|cpu)(:\d+)?\b")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("draw", "convert", "print", "table"))
    parser.add_argument("clones", type=Path, nargs="?")
    parser.add_argument("--rows", type=Path, default=HERE / "one_card.json", help="the file of the rows")
    parser.add_argument("--each", type=int, default=3, help="files of one repository at most, for a draw")
    parser.add_argument("--seed", type=int, default=20261128, help="of a draw")
    parser.add_argument("--only", default="", help="convert the rows whose repository or path holds this")
    parser.add_argument("--again", action="store_true", help="only the rows whose original took too long")
    parser.add_argument("--no-runs", action="store_true", help="convert alone, and keep what is known of runs")
    parser.add_argument("--keep", type=Path, help="write each change there, as a diff")
    arguments = parser.parse_args()
    if arguments.rows.parent == Path():
        arguments.rows = HERE / arguments.rows
    if arguments.what == "table":
        print(figures(load(arguments.rows)))
        return 0
    if arguments.clones is None:
        parser.error("the folder with the clones is missing")
    if arguments.what == "draw":
        store(draw(arguments.clones, arguments.each, arguments.seed), arguments.rows)
        return 0
    rows = load(arguments.rows)
    if arguments.what == "print":
        for number, row in enumerate(rows, 1):
            print_pair(row, arguments.clones, arguments.keep / f"{number:02}")
        return 0
    for row in rows:
        if arguments.again and row["runs"].get("original") != "took too long":
            continue
        if arguments.only in f"{row['repository']}/{row['path']}":
            row.update(convert(row, arguments.clones, arguments.keep, not arguments.no_runs))
            store(rows, arguments.rows)
            print(row["repository"], row["path"], row["safe"], row["runs"], flush=True)
    print(figures(rows))
    return 0


def load(place: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(place.read_text(encoding="utf-8"))
    return rows


def store(rows: list[dict[str, Any]], place: Path) -> None:
    place.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


# Drawing


def draw(clones: Path, each: int, seed: int) -> list[dict[str, Any]]:
    """Files in which one card is named without being asked for, from repositories and files in an order that the seed gives."""
    chance = random.Random(seed)
    order = sorted(clone for clone in clones.iterdir() if git_of(clone) is not None)
    chance.shuffle(order)
    drawn: list[dict[str, Any]] = []
    for clone in order:
        found = drawn_of(clone, each, random.Random(f"{seed} {clone.name}"))
        print(clone.name, [row["path"] for row in found], flush=True)
        drawn += found
        if len(drawn) >= DRAWN:
            break
    return sorted(drawn[:DRAWN], key=lambda row: (row["repository"], row["path"]))


def drawn_of(clone: Path, most: int, chance: random.Random) -> list[dict[str, Any]]:
    """The first files of a repository, in an order by chance, that devlint offers to convert."""
    git = git_of(clone)
    assert git is not None
    commit = run_git(git, "rev-parse", "HEAD").decode().strip()
    name = clone.name.replace("+", "/", 1)
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch)
        copy_out(git, commit, tree)
        files = sorted(tree.rglob("*.py"))
        chance.shuffle(files)
        offered = (path for path in files if len(files) <= LARGEST and places(path) >= PLACES)
        return [
            {"repository": name, "commit": commit, "path": path.relative_to(tree).as_posix()}
            for path in itertools.islice(offered, most)
        ]


def places(path: Path) -> int:
    """How many places of a file one decision about a card settles."""
    raw = path.read_bytes()
    if len(_NAMES_CARD.findall(raw)) < PLACES or b"torch" not in raw or len(raw) > 200_000:
        return 0
    return max(Counter(decision for _, decision in decided(path)).values(), default=0)


def decided(path: Path) -> list[tuple[Diagnostic, str]]:
    """The findings of a file that a decision about a card settles, with it."""
    try:
        result = linter_for(path).check(decode(path.read_bytes(), str(path)))
    except Exception:  # a file that is no Python of today
        return []
    return [
        (each, each.decision)
        for each in result.diagnostics
        if each.decision and each.fix is not None and each.fix.edits
    ]


def linter_for(path: Path) -> Linter:
    """A linter with the settings of the project around a file."""
    config = Resolver().for_directory(str(path.parent))
    settings = Rulebook().settings(config, str(path))
    codes = tuple(code for code in settings.select if code.startswith(FAMILIES))
    return Linter(rules_of(config.plugins), replace(settings, select=codes))


# Converting


def convert(row: dict[str, Any], clones: Path, keep: Path | None, wants_runs: bool) -> dict[str, Any]:
    git = git_of(clones / row["repository"].replace("/", "+", 1))
    assert git is not None, row["repository"]
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        original, safe, converted = work / "original", work / "safe", work / "converted"
        copy_out(git, row["commit"], original)
        shutil.copytree(original, safe)
        shutil.copytree(original, converted)
        file = row["path"]
        named = len(decided(original / file))
        fix(safe / file, Safety.SAFE)
        fix(converted / file, Safety.SAFE, Safety.UNSAFE)
        after = (converted / file).read_bytes()
        digest = hashlib.sha256(after).hexdigest()[:12]
        change = difference(original / file, converted / file)
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{row['repository']}+{file}.diff".replace("/", "+")).write_text(change, encoding="utf-8")
        same = row.get("converted") == digest
        return {
            "places": named,
            "safe": named > 0 and not decided(safe / file),
            "left": len(decided(converted / file)),
            "added": sum(line.startswith("+") for line in change.splitlines()[2:]),
            "removed": sum(line.startswith("-") for line in change.splitlines()[2:]),
            "compiles": compiles(after, file),
            "again": fix(converted / file, Safety.SAFE, Safety.UNSAFE),
            "converted": digest,
            "runs": runs(original, converted, file, driver_of(row))
            if wants_runs
            else row.get("runs", {})
            if same
            else {},
            "verdict": row.get("verdict", "") if same else "",
            "note": row.get("note", "") if same else "",
        }


def print_pair(row: dict[str, Any], clones: Path, place: Path) -> None:
    """Write one file before and after its conversion, and the change, into a folder."""
    git = git_of(clones / row["repository"].replace("/", "+", 1))
    assert git is not None, row["repository"]
    with tempfile.TemporaryDirectory() as scratch:
        before, after = Path(scratch) / "before", Path(scratch) / "after"
        copy_out(git, row["commit"], before)
        shutil.copytree(before, after)
        fix(after / row["path"], Safety.SAFE, Safety.UNSAFE)
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(before / row["path"], place / "before.py")
        shutil.copy(after / row["path"], place / "after.py")
        change = difference(before / row["path"], after / row["path"]).splitlines()[2:]
        heads = [f"--- before/{row['path']}", f"+++ after/{row['path']}"]
        (place / "diff.txt").write_text("\n".join([*heads, *change]) + "\n", encoding="utf-8")


def driver_of(row: dict[str, Any]) -> str:
    drivers: dict[str, str] = json.loads(DRIVERS.read_text(encoding="utf-8"))
    return drivers.get(f"{row['repository']}/{row['path']}", "")


def runs(original: Path, converted: Path, file: str, driver: str) -> dict[str, str]:
    """How the converted program ends on each device, where the original moves something on a simulated card."""
    before = execute(original, file, "sim", driver)
    if not before.get("moved"):
        return {"original": without_paths(str(before.get("outcome", ""))) or "nothing is moved"}
    found = {"original": without_paths(before["outcome"])}
    for name, device in DEVICES.items():
        after = execute(converted, file, device, driver)
        found[name] = "as the original" if alike(before, after) else without_paths(after.get("outcome", ""))
    return found


def without_paths(text: str) -> str:
    """A message without the places of the machine that it was said on."""
    return _PATH.sub("", text)


def alike(before: dict[str, Any], after: dict[str, Any]) -> bool:
    return _PLACE.sub("DEVICE", str(before.get("outcome"))) == _PLACE.sub("DEVICE", str(after.get("outcome")))


def execute(folder: Path, file: str, device: str, driver: str) -> dict[str, Any]:
    """Run a fresh copy of the program on a device; how it ended, and whether something was moved."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "program"
        shutil.copytree(folder, copy)
        report = Path(scratch) / "report.json"
        start = [str(HERE / "start_one.py"), str(report), str(copy / file)]
        if driver:
            lines = Path(scratch) / "driver.py"
            lines.write_text(driver, encoding="utf-8")
            start.append(str(lines))
        run = [sys.executable, *start]
        if device != "cpu":
            run = [sys.executable, "-m", "devlint", "run", "--device", device, *start]
        paths = os.pathsep.join([str(HERE / "standins/modules"), str(copy)])
        environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
        try:
            subprocess.run(run, cwd=(copy / file).parent, env=environment, capture_output=True, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return {"outcome": "took too long", "moved": 0}
        return json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}


def compiles(raw: bytes, file: str) -> bool:
    try:
        compile(raw, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def difference(old: Path, new: Path) -> str:
    done = subprocess.run(
        ["git", "diff", "--no-index", "--no-color", str(old), str(new)],
        capture_output=True,
        text=True,
        errors="replace",
    )
    return "\n".join(line for line in done.stdout.splitlines() if not line.startswith(("diff ", "index ")))


def fix(path: Path, *allow: Safety) -> bool:
    """Apply the fixes of these levels to a file; whether that changes it."""
    source = decode(path.read_bytes(), str(path))
    fixed = fix_source(linter_for(path), source, allow).text
    path.write_bytes(source.encode(fixed))
    return fixed != source.text


def git_of(clone: Path) -> Path | None:
    places = (clone / "repo/.git", clone / "repo", clone / ".git", clone)
    return next((place for place in places if (place / "HEAD").exists()), None)


def run_git(git: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "--git-dir", str(git), *arguments], capture_output=True, check=True).stdout


def copy_out(git: Path, commit: str, into: Path) -> None:
    """The Python files of a commit, and those that say which torch it needs."""
    names = run_git(git, "ls-tree", "-r", "-z", "--name-only", commit).decode("utf-8", "replace").split("\0")
    kept = [name for name in names if _KEPT.search(name)]
    into.mkdir(parents=True, exist_ok=True)
    for start in range(0, len(kept), 500):
        packed = run_git(git, "--literal-pathspecs", "archive", commit, *kept[start : start + 500])
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(into, filter="data")


# Figures


def figures(rows: list[dict[str, Any]]) -> str:
    """The rows in a few lines."""
    ran = [row for row in rows if "cpu" in row.get("runs", {})]
    same = [row for row in ran if all(row["runs"][name] == "as the original" for name in DEVICES)]
    verdicts = Counter(row.get("verdict") or "unread" for row in rows)
    return "\n".join(
        (
            f"{len(rows)} files of {len({row['repository'] for row in rows})} repositories",
            f"places that name the card: {sum(row.get('places', 0) for row in rows)}, left: "
            f"{sum(row.get('left', 0) for row in rows)}",
            f"converted by `--fix` alone: {sum(bool(row.get('safe')) for row in rows)}",
            f"compile: {sum(bool(row.get('compiles')) for row in rows)}; a second run changes: "
            f"{sum(bool(row.get('again')) for row in rows)}",
            f"can run: {len(ran)}; end as the original on CPU, CUDA and XPU: {len(same)}",
            f"verdicts: {dict(verdicts)}",
        )
    )


if __name__ == "__main__":
    sys.exit(main())

"""Applies the safe fixes of repositories and runs what was fixed, before and after, on the CPU and on a simulated card.

    python benchmarks/safe_fixes.py list CLONES [--rows benchmarks/safe_fixes.json]
    python benchmarks/safe_fixes.py run CLONES [--rows benchmarks/safe_fixes.json]

CLONES holds a bare git directory `owner+name/repo` for each repository of the rows. `list` prints the safe fixes of every
repository there at its newest commit, to draw rows from. `run` checks out the commit of each row that has a driver, twice,
applies the safe fixes of its file to the one, and runs the driver in both: on the CPU, where the values must be equal, and
on a simulated card (`D` is the device), where nothing may fail that did not fail before, and nothing may differ. It writes
what came out into the rows. A row without a driver was read.

A driver is a few lines that bind `out`; `m` is the module of the file, `T(2, 3)` a tensor of that shape on `D`, `I(n, 2, 3)`
one of whole numbers below n. Packages above the file are not executed, and what a machine lacks is an empty package, so that
a driver needs only what it uses.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROWS = Path(__file__).with_name("safe_fixes.json")
LIMIT = 300  # seconds for all drivers of one repository on one device
RUNNER = r"""
import importlib, importlib.util, json, os, sys, traceback, types, warnings
warnings.simplefilter("ignore")
import torch
root, device, todo, result = sys.argv[1:5]
sys.path[:0] = [root, os.path.join(root, "src")]


class Absent(type):
    # A class of a package that is not installed: it can be subclassed, called and looked into, and does nothing.

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(name, (), {"__init__": lambda self, *a, **k: None, "__call__": lambda self, x=None, *a, **k: x})


class Missing:
    # Gives an empty module for each package that a file of the repository imports and this machine lacks.

    def find_spec(self, name, path=None, target=None):
        frame = sys._getframe(1)
        while frame is not None and "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        if frame is None or not frame.f_code.co_filename.startswith(root):
            return None
        return importlib.util.spec_from_loader(name, self)

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__path__ = []
        module.__getattr__ = lambda name: getattr(Absent("Absent", (), {}), name)
        return module

    def exec_module(self, module):
        pass


sys.meta_path.append(Missing())


def load(path):
    parts = path.removesuffix(".py").split("/")
    if parts[0] == "src":
        parts, base = parts[1:], os.path.join(root, "src")
    else:
        base = root
    for end in range(1, len(parts)):
        name = ".".join(parts[:end])
        if name not in sys.modules:
            package = types.ModuleType(name)
            package.__path__ = [os.path.join(base, *parts[:end])]
            sys.modules[name] = package
    name = ".".join(parts)
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, os.path.join(base, *parts) + ".py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def plain(value):
    if isinstance(value, torch.Tensor):
        numbers = value.detach().cpu().flatten()[:500].double().tolist()
        return [list(value.shape), str(value.dtype), [repr(round(x, 4)) for x in numbers]]
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(torch.as_tensor(value))
    return repr(round(value, 4)) if isinstance(value, float) else repr(value)


found = {}
for key, path, code in json.load(open(todo)):
    torch.manual_seed(0)
    place = {"torch": torch, "nn": torch.nn, "D": device, "T": lambda *s: torch.rand(*s).to(device),
             "I": lambda n, *s: torch.randint(0, n, s).to(device)}
    try:
        import random
        random.seed(0)
        import numpy
        numpy.random.seed(0)
        place["np"] = numpy
        place["m"] = load(path)
        exec(code, place)
        found[key] = ["ok", plain(place["out"])]
    except BaseException as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        text = type(error).__name__ + ": " + str(error).strip().split("\n")[0][:160]
        found[key] = ["error", text, os.path.basename(at.filename), at.lineno]
json.dump(found, open(result, "w"))
"""


def commit_of(clone: Path) -> str:
    done = subprocess.run(
        ["git", f"--git-dir={clone}", "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def check_out(clone: Path, commit: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["git", f"--git-dir={clone}", f"--work-tree={folder}", "checkout", "-f", commit, "--", "."],
        capture_output=True, check=False,
    )  # fmt: skip


def check(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `devlint check` in a folder, with nothing but the defaults."""
    command = [sys.executable, "-m", "devlint", "check", "--no-cache", "--isolated", "-j", "1", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def findings(folder: Path) -> list[dict[str, Any]]:
    done = check(folder, "--output-format", "json", str(folder))
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def list_safe(clones: Path) -> None:
    """Print each repository's safe fixes, and how many findings there are."""
    for clone in sorted(clones.glob("*/repo")):
        commit = commit_of(clone)
        with tempfile.TemporaryDirectory() as folder:
            check_out(clone, commit, Path(folder))
            found = findings(Path(folder))
            safe = [each for each in found if each["fix"] and each["fix"]["applicability"] == "safe"]
            print(f"{clone.parent.name.replace('+', '/')} {commit}: {len(found)} findings, {len(safe)} safe fixes")
            for each in safe:
                path = os.path.relpath(each["filename"], folder)
                print(f"  {path}:{each['location']['row']} {each['code']} {each['fix']['message']}")


def run(clones: Path, file: Path) -> None:
    """Run every driver of the rows in a file, and write what came out into it, one repository after the other."""
    document = json.loads(file.read_text())
    rows = document["rows"]
    for repository in dict.fromkeys(row["repository"] for row in rows if row.get("driver")):
        mine = [row for row in rows if row["repository"] == repository and row.get("driver")]
        with tempfile.TemporaryDirectory() as folder:
            run_one(clones / repository.replace("/", "+") / "repo", mine, Path(folder))
        file.write_text(json.dumps(document, indent=1) + "\n")


def run_one(clone: Path, rows: list[dict[str, Any]], folder: Path) -> None:
    for tree in ("before", "after"):
        check_out(clone, rows[0]["commit"], folder / tree)
    paths = list(dict.fromkeys(row["path"] for row in rows))
    check(folder / "after", "--fix", "--exit-zero", *paths)
    (folder / "runner.py").write_text(RUNNER)
    (folder / "todo.json").write_text(json.dumps([[key(row), row["path"], row["driver"]] for row in rows]))
    results = {(tree, where): drive(folder, tree, where) for tree in ("before", "after") for where in ("cpu", "cuda")}
    for row in rows:
        seen = {f"{tree} on {where}": found.get(key(row), ["not run"]) for (tree, where), found in results.items()}
        row["executed"] = {name: what[0] if what[0] != "error" else what[1] for name, what in seen.items()}
        row["differs"] = differences(seen)
        print(row["path"], row["row"], row["executed"], row["differs"], flush=True)


def key(row: dict[str, Any]) -> str:
    return f"{row['path']}:{row['row']}"


def drive(folder: Path, tree: str, where: str) -> dict[str, list[Any]]:
    """What the drivers give in one tree on one device."""
    result = folder / f"{tree}-{where}.json"
    start = [sys.executable] if where == "cpu" else [sys.executable, "-m", "devlint", "run", "--device", "sim"]
    command = [*start, str(folder / "runner.py"), str(folder / tree), where, str(folder / "todo.json"), str(result)]
    try:
        subprocess.run(command, cwd=folder / tree, capture_output=True, check=False, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return {}
    found: dict[str, list[Any]] = json.loads(result.read_text()) if result.exists() else {}
    return found


def differences(seen: dict[str, list[Any]]) -> list[str]:
    """What a fix changed: a value, or a failure where there was none."""
    found = []
    for where in ("cpu", "cuda"):
        before, after = seen[f"before on {where}"], seen[f"after on {where}"]
        if before[0] == "ok" and after != before:
            found.append(f"on {where}: {after[1] if after[0] == 'error' else 'other values'}")
    if (
        seen["after on cuda"][0] == "ok"
        and seen["after on cpu"][0] == "ok"
        and seen["after on cuda"] != seen["after on cpu"]
    ):
        found.append("the card gives other values than the CPU")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("list", "run"))
    parser.add_argument("clones", type=Path)
    parser.add_argument("--rows", type=Path, default=ROWS)
    given = parser.parse_args()
    if given.what == "list":
        list_safe(given.clones)
        return
    run(given.clones, given.rows)


if __name__ == "__main__":
    main()

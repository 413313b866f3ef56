"""What a real card does, as data: snippets, a mixed sweep and the verdicts of the runtime fixtures, in one command.

    python benchmarks/golden_cuda.py [--output FOLDER] [--part snippets] ...

Each part compares the real outcome with the simulated one and stores both, by torch version and card, as
`FOLDER/<torch version>-<card>.golden.json` (default: benchmarks/gpu). Without a CUDA card it says so and exits with 0.
Exit code 1 when any outcome differs from the simulation's: each difference is a defect of the simulation.

The parts run in child processes, since an error inside a kernel leaves a process without a usable card: a child that
ends so is started again behind the entry at which it ended. `mixed` needs the package ``expecttest``. With the option
`--rehearse` the simulated card takes the place of the real one, to try the script itself.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "fixtures" / "runtime"
SNIPPETS = ("lines", "lines_of_training")  # modules of tests/runtime
PARTS = ("snippets", "mixed", "verdicts")
SECONDS = {"snippets": 60.0, "mixed": 150.0, "verdicts": 85.0}  # together under five minutes


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
            CHILDREN[part](int(first), rows, options.rehearse)
        return 0
    card = _card(options.rehearse)
    if card is None:
        return 0
    started = time.monotonic()
    result: dict[str, Any] = {**card, "parts": {}}
    for part in options.part or PARTS:
        rows, notes = _run(part, options.rehearse)
        compared = [row for row in rows if "agrees" in row]
        agreed = sum(row["agrees"] for row in compared)
        result["parts"][part] = {"rows": rows, "compared": len(compared), "agree": agreed, "notes": notes}
        print(f"{part}: {agreed} of {len(compared)} as simulated, {len(rows) - len(compared)} not compared", *notes)
        for row in compared:
            if not row["agrees"]:
                print(f"  {row['name']}\n    real:      {row['real']}\n    simulated: {row['simulated']}")
    result["seconds"] = round(time.monotonic() - started)
    if not options.rehearse:
        options.output.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^\w.+]+", "-", f"{card['torch']}-{card['card']}")
        path = options.output / f"{name}.golden.json"
        path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"stored in {path}, {result['seconds']} s")
    return int(any(part["agree"] < part["compared"] for part in result["parts"].values()))


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
            environment = {**os.environ, "CUDA_LAUNCH_BLOCKING": "1"}
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
            rows = _rows(file)
            if len(rows) <= first and not rows[first:]:
                notes.append(f"the child ended with {ended.returncode}: {ended.stderr.strip()[-300:]}")
                break
            first = rows[-1]["index"] + 1
        return [{key: value for key, value in row.items() if key != "index"} for row in _rows(file)], notes


def _rows(file: Path) -> list[dict[str, Any]]:
    found = []
    for line in file.read_text(encoding="utf-8").splitlines():
        with contextlib.suppress(ValueError):  # a last line that a crash cut off
            found.append(json.loads(line))
    return found


def _put(rows: TextIO, index: int, **fields: Any) -> None:
    if "real" in fields and "simulated" in fields:
        fields["agrees"] = fields["real"] == fields["simulated"]
    rows.write(json.dumps({"index": index, **fields}, ensure_ascii=False) + "\n")
    rows.flush()


def _lost(error: BaseException | str | None) -> bool:
    """Whether this process can no longer use the card."""
    text = str(error)
    return "CUDA error" in text and "invalid device ordinal" not in text


@contextlib.contextmanager
def _place(rehearse: bool, cards: int = 2) -> Iterator[None]:
    """The real card, which is simply there, or the simulated one."""
    if not rehearse:
        yield
        return
    from devlint.runtime.simulator import DeviceSpec, simulate

    with simulate(DeviceSpec("cuda", cards)):
        yield


def _load(path: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# --------------------------------------------------------------------------------------------------------- snippets


def _snippets(first: int, rows: TextIO, rehearse: bool) -> None:
    """Each line of the table in tests/runtime: the text of its error, or None."""
    import torch

    sys.path.insert(0, str(ROOT))
    tables = [importlib.import_module(f"tests.runtime.{name}") for name in SNIPPETS]
    cards = 2 if rehearse else torch.cuda.device_count()
    for index, case in enumerate(case for table in tables for case in table.CASES):
        if index < first:
            continue
        if cards < 2 and _names_second_card(case.run.__code__):
            _put(rows, index, name=case.name, simulated=case.error, skipped="needs two cards")
            continue
        error: str | None = None
        with _place(rehearse):
            world = _world(tables[0].World, cards)
            try:
                case.run(world)
                torch.cuda.synchronize()
            except (RuntimeError, TypeError, ValueError) as raised:
                error = str(raised)
        _put(rows, index, name=case.name, real=error, simulated=case.error)
        if _lost(error):
            os._exit(1)


def _names_second_card(code: Any) -> bool:
    """Whether a snippet, or a function inside it, uses the second card."""
    return (
        "other_x" in code.co_names
        or any("cuda:1" in repr(each) for each in code.co_consts if isinstance(each, (str, tuple)))
        or any(_names_second_card(each) for each in code.co_consts if hasattr(each, "co_code"))
    )


def _world(make: Callable[[], Any], cards: int) -> Any:
    """The tensors of the snippets; with one card the second one's are put on the first, where nothing uses them."""
    import torch

    if cards > 1:
        return make()
    draw = torch.randn

    def on_first(*size: Any, **options: Any) -> Any:
        if options.get("device") == "cuda:1":
            options["device"] = "cuda:0"
        return draw(*size, **options)

    torch.randn = on_first
    try:
        return make()
    finally:
        torch.randn = draw


# ------------------------------------------------------------------------------------------------------------ mixed


def _mixed(first: int, rows: TextIO, rehearse: bool) -> None:
    """One tensor of each operator on the card, the rest on the host: whether it is refused, there and simulated."""
    import logging
    import warnings

    import torch
    from torch.utils._pytree import tree_flatten, tree_unflatten

    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    sweep = _load(ROOT / "benchmarks" / "runtime" / "mixed_sweep.py", "mixed_sweep")
    taken = {name: getattr(torch, name) for name in dir(torch) if callable(getattr(torch, name))}

    def outcome(op: Any, leaves: list[Any], spec: Any, index: int) -> tuple[str, str]:
        """Whether the call is refused for its devices, and the first line of what it raised."""
        moved = list(leaves)
        moved[index] = leaves[index].to("cuda")
        start, args, kwargs = tree_unflatten(moved, spec)
        # The database took torch's functions at import; a simulation has replaced them.
        name = next((name for name, function in taken.items() if function is op.op), None)
        try:
            (getattr(torch, name) if name is not None else op)(start, *args, **kwargs)
            torch.cuda.synchronize()
        except Exception as error:
            text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            refused = isinstance(error, RuntimeError) and any(word in str(error) for word in sweep.DEVICE_WORDS)
            return ("refused" if refused else "other error"), text
        return "runs", ""

    for index, op in enumerate(sweep.op_db):
        if index < first:
            continue
        for position, leaves, spec, leaf in _samples(sweep, op, tree_flatten):
            name = f"{op.name}{'.' + op.variant_test_name if op.variant_test_name else ''}[{position}]"
            with _place(True):
                simulated, simulated_text = outcome(op, leaves, spec, leaf)
            with _place(rehearse):
                real, text = outcome(op, leaves, spec, leaf)
            _put(rows, index, name=name, real=real, simulated=simulated, text=text, simulated_text=simulated_text)
            if _lost(text):
                os._exit(1)


def _samples(sweep: Any, op: Any, tree_flatten: Any) -> Iterator[tuple[int, list[Any], Any, int]]:
    """The first sample of an operator with two tensors that can be moved: each of its first three in turn."""
    from itertools import islice

    import torch

    dtype = torch.float32 if torch.float32 in op.dtypes else next(iter(sorted(op.dtypes, key=str)), None)
    if dtype is None:
        return
    try:
        samples = list(islice(op.sample_inputs("cpu", dtype, requires_grad=False), 9))
    except Exception:
        return
    for sample in samples:
        leaves, spec = tree_flatten((sample.input, sample.args, sample.kwargs))
        candidates = [index for index, leaf in enumerate(leaves) if sweep._movable(leaf)]
        if len(candidates) >= 2 and sweep._runs(op, leaves, spec):
            for position, leaf in enumerate(candidates[:3]):
                yield position, leaves, spec, leaf
            return


# --------------------------------------------------------------------------------------------------------- verdicts


def _verdicts(first: int, rows: TextIO, rehearse: bool) -> None:
    """`devlint verify` on each program of fixtures/runtime: the verdict of each fix."""
    import torch

    from devlint.runtime.processes import Launcher

    if sys.version_info < (3, 11):
        import tomli as tomllib
    else:
        import tomllib
    cards = 3 if rehearse else torch.cuda.device_count()
    with Launcher() as launcher:
        for index, path in enumerate(sorted(PROGRAMS.glob("*.toml"))):
            expected = tomllib.loads(path.read_text(encoding="utf-8"))
            if index < first:
                continue
            needed = expected.get("cards", 1)
            if cards < needed:
                _put(rows, index, name=path.stem, skipped=f"needs {needed} cards")
                continue
            device = expected["device"] if rehearse else "cuda"
            report = _verified(path.with_suffix(".py"), device, tuple(expected.get("select", ())), launcher)
            _put(
                rows,
                index,
                name=path.stem,
                real=sorted([fix["code"], fix["location"]["row"], fix["verdict"]] for fix in report["fixes"]),
                simulated=sorted([fix["code"], fix["line"], fix["verdict"]] for fix in expected.get("fix", ())),
                report=report,
            )


def _verified(path: Path, device: str, select: tuple[str, ...], launcher: Any) -> dict[str, Any]:
    from devlint.runtime.report import as_json
    from devlint.runtime.verify import Request, Runner, find_with_linter, verify

    text, find = find_with_linter(path, select, ())
    request = Request(str(path), device=device, timeout=60.0)
    found: dict[str, Any] = json.loads(as_json(verify(request, text, find(text), Runner(request, launcher), find)))
    return found


CHILDREN: dict[str, Callable[[int, TextIO, bool], None]] = {
    "snippets": _snippets,
    "mixed": _mixed,
    "verdicts": _verdicts,
}

if __name__ == "__main__":
    sys.exit(main())

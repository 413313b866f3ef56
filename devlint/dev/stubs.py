"""Checks the data about libraries, `devlint/knowledge/libraries`, and compares it with the installed libraries.

    python -m devlint.dev.stubs check              every file against the schema
    python -m devlint.dev.stubs compare [NAME]...  the rows of installed libraries against what these do (default: all)
    python -m devlint.dev.stubs generate NAME...   rows of installed libraries, read from their sources

Each function is called with tensors of the host first, with the arguments that fit it, and then with tensors on a simulated
card. `compare` prints where a row disagrees and how many functions could not be called. Exit codes: 0, 1 for disagreements.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from devlint.knowledge import stubs

SCHEMA = Path(stubs.FOLDER) / "schema.json"
#: Arguments of which one fits most functions: `T` stands for a matrix, `I` for a batch of pictures.
_TRIED: tuple[tuple[Any, ...], ...] = (
    ("T",), ("T", "T"), (["T", "T"],), ("T", 1), ("T", 0), ("T", (3, 3)), ("T", 50), ("T", "T", "T"), ("T", 0, "T"),
    (["T", "T"], "T"), ("T", ["T"]), ("T", [0.5]), ("T", "T", 1), ("T", 0, 1),
    ("I",), ("I", "I"), ("I", 0.5), ("I", (3, 3)), ("I", (3, 3), (1.5, 1.5)), ("I", "T"), ("T", "I"), ("I", 3, 0.5),
)  # fmt: skip


class Outcome(NamedTuple):
    """What became of a call: the error, or the result."""

    error: Exception | None
    result: Any


class Told(NamedTuple):
    """What a comparison says: the disagreements, and the functions that could not be called."""

    wrong: list[str]
    uncalled: list[str]
    called: int


def check() -> list[str]:
    """What is wrong with the files, one line each. Raises ImportError without jsonschema."""
    import jsonschema  # type: ignore[import-untyped]

    validator = jsonschema.Draft7Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    found = []
    for name in sorted(stubs.names()):
        document = stubs.read(name)
        for folder in (stubs.FOLDER, stubs.GENERATED):
            for error in validator.iter_errors(stubs.read(name, folder)):
                found.append(f"{name}.toml: {'/'.join(map(str, error.absolute_path))}: {error.message}")
        for row in (*document.get("functions", ()), *document.get("classes", ())):
            try:
                re.compile(row.get("pattern", ""))
            except re.error as error:
                found.append(f"{name}.toml: pattern {row['pattern']}: {error}")
        found += [f"{name}.toml: {each}" for each in _repeated(name)]
    return found


def _repeated(name: str) -> Iterator[str]:
    """Keys that several rows say of one name in different ways."""
    library = stubs.library(name)
    assert library is not None
    for table in (library.functions, library.classes):
        for qualname, rows in table.items():
            for key in {key for row in rows for key in row} - {"source", "prefix", "names"}:
                if len({repr(row[key]) for row in rows if key in row}) > 1:
                    yield f"{qualname}: two rows differ in `{key}`"


def compare(name: str) -> Told:
    """Compare the rows of an installed library with what it does. Raises ImportError where it cannot be imported."""
    library = stubs.library(name)
    told = Told([], [], 0)
    for qualname in library.functions if library is not None else ():
        row = stubs.function(qualname)
        try:
            function = _resolved(qualname)
        except (ImportError, AttributeError) as error:
            told.wrong.append(f"{qualname}: does not exist: {error}")
            continue
        arguments = _fitting(function, row)
        if arguments is None:
            told.uncalled.append(qualname)
            continue
        told = told._replace(called=told.called + 1)
        on_host, on_card = _call(function, arguments, "cpu"), _call(function, arguments, "cuda")
        told.wrong.extend(f"{qualname}: {each}" for each in _disagreements(row, on_host, on_card))
    return told


def _resolved(qualname: str) -> Callable[..., Any]:
    """What a qualified name stands for. Raises ImportError or AttributeError where it stands for nothing."""
    parts = qualname.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            if length == 1:
                raise
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found  # type: ignore[no-any-return]
    raise ImportError(qualname)


def _fitting(function: Callable[..., Any], row: stubs.Row) -> tuple[Any, ...] | None:
    """Arguments that a function takes on the host; None where none is known."""
    count = len(row.get("operands", ()))
    tried = [("T",) * count, ("I",) * count] if count else []
    if row.get("gives") or row.get("calls"):
        return None
    for arguments in (*tried, *_TRIED):
        if _call(function, arguments, "cpu").error is None:
            return arguments
    return None


def _call(function: Callable[..., Any], arguments: Sequence[Any], device: str) -> Outcome:
    import torch

    with _elsewhere(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tensors = {
            "T": lambda: torch.eye(3, device=device) + 0.1,
            "I": lambda: torch.linspace(0.1, 0.9, 192, device=device).reshape(1, 3, 8, 8),
        }
        given = [_made(each, tensors) for each in arguments]
        try:
            return Outcome(None, function(*given))
        except Exception as error:  # whatever a library raises
            return Outcome(error, None)


@contextmanager
def _elsewhere() -> Iterator[None]:
    """Work in an empty directory: some functions write files."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def _made(argument: Any, tensors: Mapping[str, Callable[[], Any]]) -> Any:
    if isinstance(argument, str):
        return tensors[argument]()
    return [_made(each, tensors) for each in argument] if isinstance(argument, list) else argument


def _disagreements(row: stubs.Row, on_host: Outcome, on_card: Outcome) -> Iterator[str]:
    """Where a row and the calls differ: of tensors of the host, and of tensors on a card."""
    if row.get("host") and on_card.error is None:
        yield "`host`, but it takes a tensor on a card"
    if not row.get("host") and not row.get("converts") and on_card.error is not None:
        yield f"not `host`, but it refuses a tensor on a card: {_first_line(on_card.error)}"
    kind = _kind(on_host.result)
    says = row.get("result")
    if says in ("ndarray", "bool", "number", "none", "tensor") and kind != says:
        yield f"`result` is {says}, but it gives {kind}"
    if row.get("device") and on_card.error is None and _kind(on_card.result) == "tensor":
        there = {"first_tensor": "cuda", "cpu": "cpu", "default": "cpu"}[row["device"]]
        if on_card.result.device.type != there:
            yield f"`device` is {row['device']}, but the result is on {on_card.result.device.type}"


def _kind(value: Any) -> str:
    """The kind of a value, as the rows call it."""
    import numpy
    import torch

    if isinstance(value, torch.Tensor):
        return "tensor"
    if isinstance(value, numpy.ndarray):
        return "ndarray"
    if isinstance(value, (bool, numpy.bool_)):
        return "bool"
    if value is None:
        return "none"
    return "number" if isinstance(value, (int, float, complex, numpy.number)) else type(value).__name__


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def generate(name: str) -> None:
    """Write the rows that the source of an installed library gives. Raises ImportError where it is not installed."""
    from importlib.metadata import version

    from devlint.dev.library_facts import facts_of, rows

    text = rows(facts_of(name), name, version(name))
    (Path(stubs.GENERATED) / f"{name}.toml").write_text(text, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Check the data about libraries.")
    parser.add_argument("command", choices=("check", "compare", "generate"))
    parser.add_argument("names", nargs="*", help="libraries (to compare, default: all that are installed)")
    args = parser.parse_args(arguments)
    if args.command == "generate":
        for name in args.names:
            generate(name)
        return 0
    if args.command == "check":
        found = check()
        print("\n".join(found) if found else f"{len(stubs.names())} files fit the schema")
        return bool(found)
    return _compare_all(args.names)


def _compare_all(names: Sequence[str]) -> int:
    from devlint.runtime.simulator import simulate

    skipped = {stubs.PYTHON, "torch"}
    chosen = names or sorted(name for name in stubs.names() - skipped if find_spec(name) is not None)
    wrong = 0
    with simulate():
        for name in chosen:
            try:
                importlib.import_module(name)
            except Exception as error:  # whatever the library raises where it does not fit the installed torch
                print(f"{name}: cannot be imported: {_first_line(error)}")
                continue
            told = compare(name)
            wrong += len(told.wrong)
            print(f"{name}: {told.called} called, {len(told.uncalled)} not, {len(told.wrong)} disagree")
            for line in told.wrong:
                print(f"  {line}")
    missing = sorted(stubs.names() - skipped - set(chosen)) if not names else []
    if missing:
        print(f"not installed: {' '.join(missing)}")
    return bool(wrong)


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "agg")
    raise SystemExit(main())

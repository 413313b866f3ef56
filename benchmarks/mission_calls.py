"""Measures the calls that devlint is there for, in many spellings, and silence on the same programs repaired.

    python benchmarks/mission_calls.py [--inference new] [--kind KIND] [--opt-in] [--missed] [--out FILE] [--later]
    python benchmarks/mission_calls.py --run [--later]

`mission_calls/` has 40 small programs of each of four kinds: a move of an optimizer, calls that other objects do not have
(schedulers, loaders, data sets, lists, dicts, numbers), a card that is written as a literal, and a time that is taken
without a wait. Each was written before anybody looked at how devlint finds it. Each program names its faulty line:

    === name            the next program
    - code              a line of the faulty program, where the finding belongs
    + code              a line of the repaired program
    ! code              a line of both, where the finding of the faulty program belongs
    @@ file.py          the lines below are another file of the program
    @@ run              the lines below only drive the program, and devlint does not see them

A program counts as found if a rule of its kind reports one of these lines as a warning or an error. On the repaired
program every finding counts as false. `--opt-in` turns on the rules that are off by default. `--later` takes five
more of each kind, which were written when the first 40 were found, by somebody who knew how. `--run` runs all programs with
torch on the CPU, and exits with 1 unless each does what its kind says.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from devlint.cli import main as devlint

FOLDER = Path(__file__).resolve().parent / "mission_calls"
KINDS = {
    "optimizer_to": ("DEV301",),
    "its_kin": ("DEV301",),
    "cuda_0": ("DEV201", "DEV205", "DEV213"),
    "timing": ("DEV401", "DEV402"),
}
NO_SUCH_CALL = ("optimizer_to", "its_kin")


@dataclass
class Version:
    """The files of a program, faulty or repaired, and the lines where its finding belongs."""

    files: dict[str, list[str]] = field(default_factory=dict)
    places: set[tuple[str, int]] = field(default_factory=set)

    def add(self, file: str, line: str, place: bool) -> None:
        lines = self.files.setdefault(file, [])
        lines.append(line)
        if place:
            self.places.add((file, len(lines)))

    def write(self, folder: Path, driver: list[str]) -> None:
        for name, lines in self.files.items():
            text = lines + driver if name == "main.py" else lines
            (folder / name).write_text("\n".join(text).strip("\n") + "\n", encoding="utf-8")


@dataclass
class Program:
    kind: str
    name: str
    faulty: Version = field(default_factory=Version)
    repaired: Version = field(default_factory=Version)
    driver: list[str] = field(default_factory=list)


@dataclass
class Row:
    """What devlint said about one program: the codes on its faulty lines, and all findings of the repaired one."""

    kind: str
    name: str
    codes: list[str]
    false: list[str]


def read(kind: str, later: bool = False) -> list[Program]:
    """The programs of one kind, or those that were written later. ValueError if a program does not name its faulty line."""
    programs: list[Program] = []
    file = "main.py"
    for line in (FOLDER / f"{kind}{'_later' if later else ''}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("=== "):
            programs.append(Program(kind, line[4:]))
            file = "main.py"
        elif line.startswith("@@ "):
            file = line[3:]
        elif file == "run":
            programs[-1].driver.append(line)
        else:
            _add(programs[-1], file, line)
    for program in programs:
        if not program.faulty.places:
            raise ValueError(f"{kind}.txt: {program.name} does not name its faulty line")
    return programs


def _add(program: Program, file: str, line: str) -> None:
    mark, code = (line[0], line[2:]) if line[:2] in ("- ", "+ ", "! ", "+") else ("", line)
    if mark != "+":
        program.faulty.add(file, code, bool(mark))
    if mark != "-":
        program.repaired.add(file, code, mark == "!")


def findings(version: Version, options: list[str]) -> list[tuple[str, int, str]]:
    """File, line and code of each warning and error that `devlint check` reports."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        version.write(folder, [])
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            devlint(["check", "--isolated", "--no-cache", "-j", "1", "--output-format", "json", *options, name])
        report = json.loads(out.getvalue())
    shown = [row for row in report if row["severity"] != "info"]
    return [(Path(row["filename"]).name, row["location"]["row"], row["code"]) for row in shown]


def measure(program: Program, options: list[str]) -> Row:
    said = findings(program.faulty, options)
    codes = sorted({code for file, line, code in said if (file, line) in program.faulty.places})
    false = [f"{file}:{line} {code}" for file, line, code in findings(program.repaired, options)]
    return Row(program.kind, program.name, [code for code in codes if code in KINDS[program.kind]], false)


def execute(program: Program, version: Version) -> tuple[str, int]:
    """How a run on the CPU ends: the name of the exception, or "", and the line of the program where it was raised."""
    with tempfile.TemporaryDirectory() as name:
        version.write(Path(name), ["", *program.driver])
        read_end, write_end = os.pipe()
        child = os.fork()
        if not child:
            os.close(read_end)
            os.write(write_end, json.dumps(_run(name)).encode())
            os._exit(0)
        os.close(write_end)
        with os.fdopen(read_end) as stream:
            text = stream.read()
        os.waitpid(child, 0)
    kind, line = json.loads(text) if text else ("killed", 0)
    return str(kind), int(line)


def _run(folder: str) -> tuple[str, int]:
    main = os.path.join(folder, "main.py")
    sys.path.insert(0, folder)
    sys.stdout = io.StringIO()
    sys.argv = [main]
    try:
        exec(compile(Path(main).read_text(encoding="utf-8"), main, "exec"), {"__name__": "__main__"})
    except BaseException as error:
        lines = [frame.lineno or 0 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == main]
        return type(error).__name__, lines[-1]
    return "", 0


def promised(program: Program, faulty: tuple[str, int], repaired: tuple[str, int]) -> bool:
    """Whether a program does what its kind says on a machine without an accelerator."""
    if repaired[0]:
        return False
    error, line = faulty
    if program.kind in NO_SUCH_CALL:
        return error in ("AttributeError", "TypeError") and ("main.py", line) in program.faulty.places
    return bool(error) == (program.kind == "cuda_0")


def run_all(kinds: list[str], later: bool) -> int:
    import torch  # once, before the processes that run the programs are made

    torch.set_num_threads(1)
    wrong = 0
    for kind in kinds:
        programs = read(kind, later)
        for program in programs:
            faulty, repaired = execute(program, program.faulty), execute(program, program.repaired)
            if not promised(program, faulty, repaired):
                wrong += 1
                print(f"{kind} {program.name}: faulty {faulty}, repaired {repaired}")
        print(f"{kind}: {len(programs)} programs run")
    return 1 if wrong else 0


def _options(arguments: argparse.Namespace) -> Iterator[str]:
    if arguments.inference:
        yield from ("--inference", arguments.inference)
    if arguments.opt_in:
        yield from ("--select", "ALL")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--inference", choices=("old", "new"))
    parser.add_argument("--opt-in", action="store_true", help="turn on the rules that are off by default")
    parser.add_argument("--missed", action="store_true", help="print what is not found and what is falsely found")
    parser.add_argument("--out", type=Path, help="write one row for each program to this JSON file")
    parser.add_argument("--later", action="store_true", help="take the programs that were written later")
    parser.add_argument("--run", action="store_true", help="run the programs instead of checking them")
    arguments = parser.parse_args(argv)
    kinds = arguments.kind or list(KINDS)
    if arguments.run:
        return run_all(kinds, arguments.later)
    rows: list[Row] = []
    for kind in kinds:
        part = [measure(program, list(_options(arguments))) for program in read(kind, arguments.later)]
        rows += part
        own = sum(1 for row in part if any(entry.split()[-1] in KINDS[kind] for entry in row.false))
        false = sum(1 for row in part if row.false)
        print(f"{kind}: {sum(1 for row in part if row.codes)} of {len(part)} found; ", end="")
        print(f"repaired with a finding: {false}, with one of the same kind: {own}")
        for row in part if arguments.missed else []:
            if not row.codes:
                print(f"    missed  {row.name}")
            if row.false:
                print(f"    false   {row.name}: {', '.join(row.false)}")
    if arguments.out:
        arguments.out.write_text(json.dumps([vars(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

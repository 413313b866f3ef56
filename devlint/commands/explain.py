"""`devlint explain -`: reads a pasted traceback of a device error, names the cause and the line to change.

The error texts are torch's own, in the wording of 2.13 and of older releases (ATen/native, torch/csrc/utils).
"""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from devlint.cli import ExitCode
from devlint.commands import shell
from devlint.config import Resolver
from devlint.errors import SourceError, UsageError
from devlint.model import Diagnostic, FileResult
from devlint.terminal import Terminal

_FRAME = re.compile(r'^\s*File "(?P<path>[^"]+)", line (?P<row>\d+), in (?P<name>\S+)', re.M)
_NOT_THE_USERS = ("site-packages", "dist-packages", "<frozen", "/lib/python3", "\\lib\\python3", "<string>")
#: How far from the failing line a finding may be and still explain it, when no trail leads to the line.
_NEAR = 3


@dataclass(frozen=True, slots=True)
class Family:
    """One family of device errors: how to recognise it, what it means, what to do, which rules find it in the code."""

    pattern: re.Pattern[str]
    meaning: str
    remedy: str
    codes: tuple[str, ...]


def _family(pattern: str, meaning: str, remedy: str, *codes: str) -> Family:
    return Family(re.compile(pattern), meaning, remedy, codes)


FAMILIES = (
    _family(
        r"but got (?P<what>[\w']+) is on (?P<off>[\w:]+), different from other tensors on (?P<other>[\w:]+)",
        "one operand of the operation is on {off}, the others are on {other}",
        "move the one that was left behind to the device of the others before this line",
        "DEV101", "DEV102", "DEV103", "DEV104", "DEV106",
    ),
    _family(
        r"found at least two devices, (?P<other>[\w:]+) and (?P<off>[\w:]+)!",
        "the operands of the operation are on {other} and on {off}",
        "move the one that was left behind, or create it there with `device=`",
        "DEV101", "DEV102", "DEV103", "DEV104", "DEV106",
    ),
    _family(
        r"Input type \((?P<off>[\w.]+)\) and weight type \((?P<other>[\w.]+)\) should be the same",
        "the input of a convolution ({off}) is not where its weights are ({other})",
        "move the input to the model's device before the call, or the model to the input's",
        "DEV103", "DEV101", "DEV102",
    ),
    _family(
        r"(?:Input and \w+|\w+) tensors are not at the same device, found input tensor at (?P<other>[\w:]+) and "
        r"\w+ tensor at (?P<off>[\w:]+)",
        "the hidden state of a recurrent layer is on {off}, its input on {other}",
        "create the hidden state with `device=x.device`",
        "DEV102", "DEV103", "DEV101",
    ),
    _family(
        r"indices should be either on (?P<other>[\w:]+) or on the same device as the indexed tensor",
        "a tensor on {other} is indexed with a tensor on another device",
        "move the index to the CPU, or the indexed tensor to the index's device",
        "DEV104", "DEV101", "DEV102",
    ),
    _family(
        r"can't convert (?P<off>[\w:]+) device type tensor to numpy",
        "numpy reads host memory, and the tensor is on {off}",
        "copy it to the host first: `.detach().cpu().numpy()`",
        "DEV109",
    ),
    _family(
        r"Expected a '(?P<other>\w+)' device type for generator but found '(?P<off>\w+)'",
        "random numbers are drawn on {other} with a generator of {off}",
        "make the generator there: `torch.Generator(device=...)`",
        "DEV110",
    ),
    _family(
        r"'lengths' argument should be a 1D CPU int64 tensor",
        "`pack_padded_sequence` wants its lengths on the CPU, whatever the data is on",
        "pass `lengths.cpu()`",
        "DEV112",
    ),
    _family(
        r"Attempting to deserialize object on (?:a )?(?P<off>\w+) device",
        "the checkpoint was saved on {off}, which this machine has not",
        'pass `map_location="cpu"` (or the run\'s device) to `torch.load`',
        "DEV208",
    ),
    _family(
        r"Torch not compiled with CUDA enabled|No CUDA GPUs are available|Found no NVIDIA driver",
        "the program asks for CUDA, and this build of torch or this machine has none",
        "choose the device once, from what is there, and use that everywhere; `devlint doctor` says why there is none",
        "DEV201", "DEV202", "DEV205",
    ),
    _family(
        r"Cannot access accelerator device when none is available",
        "a `torch.accelerator` function was called on a machine without an accelerator",
        "guard it: `if torch.accelerator.is_available():`",
        "DEV212",
    ),
    _family(
        r"Cannot re-initialize CUDA in forked subprocess",
        "a worker process that was forked touches the card",
        "return CPU tensors from the data set and move the batch in the loop, or start workers with `spawn`",
        "DEV605",
    ),
    _family(
        r"module must have its parameters and buffers on device (?P<other>[\w:]+)",
        "`DataParallel` wants the module on its first card, {other}",
        "move the module there before wrapping it",
        "DEV601",
    ),
    _family(
        r"'(?P<off>\w+)' object has no attribute '(?P<what>to|cuda|cpu|device)'",
        "a {off} has no `.{what}`",
        "drop the call: what the object works on is moved, not the object itself",
        "DEV301",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Frame:
    path: str
    row: int
    name: str


def main(arguments: Sequence[str]) -> int:
    """Run the command. Exit codes: 0 when the error was recognised, 1 when not, 2 for wrong use."""
    return shell.run(parser(), arguments, _explain)


def parser() -> argparse.ArgumentParser:
    """The parser of `devlint explain`."""
    result = argparse.ArgumentParser(
        prog="devlint explain",
        description="Name the cause of a device error in a pasted traceback, and the line to change.",
        allow_abbrev=False,
        epilog="Exit codes: 0 the error was recognised, 1 it was not, 2 wrong usage.",
    )
    result.add_argument("file", nargs="?", default="-", help="a file with the traceback; - is standard input (default)")
    shell.add_color(result)
    return result


def _explain(args: argparse.Namespace, terminal: Terminal) -> int:
    return explain(_text(args.file), terminal)


def _text(file: str) -> str:
    if file == "-":
        if sys.stdin is None:
            raise UsageError("standard input is closed")
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")
        return sys.stdin.read()
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error


def explain(text: str, terminal: Terminal) -> int:
    """Print the cause of the error in a traceback, and the line to change where the source is at hand."""
    family, match = recognise(text)
    if family is None or match is None:
        terminal.print("This is no device error that devlint knows. The last line of the traceback tells what it is.")
        return ExitCode.PROBLEMS
    named = {key: _plain(value) for key, value in match.groupdict().items() if value}
    terminal.print("cause:  " + family.meaning.format(**named))
    terminal.print("remedy: " + family.remedy)
    frame = users_frame(text)
    if frame is None:
        return ExitCode.CLEAN
    terminal.print(f"where:  {frame.path}:{frame.row} in {frame.name}")
    for diagnostic in findings(frame, family):
        terminal.print("")
        terminal.print(f"{diagnostic.path}:{diagnostic.start.row}:{diagnostic.start.column}: {diagnostic.code} "
                       f"{diagnostic.message}")  # fmt: skip
        for related in diagnostic.related:
            terminal.print(f"    line {related.start.row}: {related.message}")
        if diagnostic.fix is not None:
            terminal.print(f"    fix ({diagnostic.fix.safety.value}): {diagnostic.fix.title}")
    return ExitCode.CLEAN


def recognise(text: str) -> tuple[Family | None, re.Match[str] | None]:
    """The family of the last device error in a text, and the match of its wording."""
    best: tuple[Family, re.Match[str]] | None = None
    for family in FAMILIES:
        for match in family.pattern.finditer(text):
            if best is None or match.start() > best[1].start():
                best = family, match
    return best if best is not None else (None, None)


def users_frame(text: str) -> Frame | None:
    """The innermost frame of a traceback that is neither torch's nor another installed package's."""
    own = None
    for match in _FRAME.finditer(text):
        if not any(part in match["path"] for part in _NOT_THE_USERS):
            own = Frame(match["path"], int(match["row"]), match["name"])
    return own


def findings(frame: Frame, family: Family) -> list[Diagnostic]:
    """What devlint finds in the user's file that leads to the failing line: by its trail, else by being near it."""
    path = Path(frame.path)
    if not path.is_file():
        return []
    try:
        result = _check(path)
    except SourceError:
        return []
    found = [d for d in result.diagnostics if d.code in family.codes]
    leading = [d for d in found if frame.row in _rows(d)]
    return leading or [d for d in found if abs(d.start.row - frame.row) <= _NEAR]


def _check(path: Path) -> FileResult:
    from devlint.engine import Linter
    from devlint.rulebook import Rulebook, rules_of
    from devlint.source import read_source

    config = Resolver().for_directory(str(path.resolve().parent))
    return Linter(rules_of(config.plugins), Rulebook().settings(config, str(path))).check(read_source(path))


def _rows(diagnostic: Diagnostic) -> set[int]:
    rows = set(range(diagnostic.start.row, diagnostic.end.row + 1))
    for related in diagnostic.related:
        rows |= set(range(related.start.row, related.end.row + 1))
    return rows


def _plain(device: str) -> str:
    return "the CPU" if device == "cpu" else device

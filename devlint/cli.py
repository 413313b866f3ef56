"""The command line: finds the command and hands the rest over to its module. Exit codes are in `ExitCode`."""

from __future__ import annotations

import enum
import importlib
import sys
from collections.abc import Sequence
from contextlib import suppress

from devlint.errors import DevlintError
from devlint.safe_path import RUNNING, keep_out

COMMANDS = {
    "check": "check files for device bugs (the default command: `devlint src/`)",
    "rule": "explain a rule, or all rules",
    "reveal": "show what devlint knows about the values on one line",
    "events": "list the types of events for rules, or the events of a file",
    "explain": "find the cause of a device error in a traceback",
    "report": "print a small, anonymous example of a finding or of a missed bug",
    "config": "list the settings, or explain some of them",
    "init": "add devlint settings to a project",
    "clean": "delete the cache",
    "completion": "print a completion script for bash, zsh or fish",
    "verify": "run a program and test its fixes",
    "run": "run a program on a simulated or real accelerator and report device bugs",
    "doctor": "explain whether torch can use a GPU on this machine",
    "server": "start the language server for an editor",
    "help": "show this help, or the help of one command",
    "version": "show the version",
}


class ExitCode(enum.IntEnum):
    """What the exit status says; an ERROR outranks PROBLEMS. `devlint verify` alone uses NOT_JUDGED."""

    CLEAN = 0
    PROBLEMS = 1
    ERROR = 2
    NOT_JUDGED = 3
    INTERRUPTED = 130  # by Ctrl-C; 143 by SIGTERM, 129 by SIGHUP


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if argv is None:  # the program, not a caller within another one
        keep_out(arguments)
    try:
        return _dispatch(arguments)
    except KeyboardInterrupt as end:
        if sys.stderr is not None:
            with suppress(OSError):  # the terminal may be gone
                sys.stderr.write("interrupted\n")
        return getattr(end, "code", ExitCode.INTERRUPTED)
    except DevlintError as error:
        if sys.stderr is not None:
            from devlint.terminal import printable

            sys.stderr.write(f"error: {printable(str(error))}\n")
        return ExitCode.ERROR
    except SystemExit as end:  # argparse
        return end.code if isinstance(end.code, int) else ExitCode.ERROR


def _dispatch(arguments: list[str]) -> int:
    first = arguments[0] if arguments else ""
    if first in ("-V", "--version", "version"):
        from devlint import __version__

        return _show(f"devlint {__version__}")
    if first == "help" and len(arguments) > 1 and arguments[1] in COMMANDS:
        first, arguments = arguments[1], [arguments[1], "--help"]
    if first in ("-h", "--help", "help"):
        return _show(overview())
    if first in RUNNING:
        module = importlib.import_module(f"devlint.runtime.{first}")
        return int(module.main(arguments[1:]))
    if first in (
        "check",
        "rule",
        "reveal",
        "events",
        "explain",
        "report",
        "config",
        "init",
        "clean",
        "completion",
        "server",
    ):
        module, arguments = importlib.import_module(f"devlint.commands.{first}"), arguments[1:]
    else:
        module = importlib.import_module("devlint.commands.check")
    from devlint.interrupts import as_interrupts

    with as_interrupts():
        return int(module.main(arguments))


def overview() -> str:
    """The text of `devlint help`."""
    rows = "\n".join(f"  {name:<10} {text}" for name, text in COMMANDS.items())
    return (
        "usage: devlint [COMMAND] [ARGUMENTS]\n\n"
        "Find and fix device bugs in PyTorch code, and test the fixes.\n\n"
        f"commands:\n{rows}\n\n"
        "`devlint help check` lists the options of `devlint check`.\n\n"
        "exit codes:\n"
        "  0  no errors or warnings\n"
        "  1  errors or warnings\n"
        "  2  wrong usage, a missing path, or an internal error\n"
        "  3  `devlint verify` could not judge any fix"
    )


def _show(text: str) -> int:
    from devlint.terminal import Terminal

    terminal = Terminal("never")
    terminal.print(text)
    terminal.flush()
    return ExitCode.CLEAN

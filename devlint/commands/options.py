"""The options of `devlint check`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

from devlint.commands.shell import Parser, add_color
from devlint.config import OUTPUT_FORMATS, SEVERITY_NAMES
from devlint.errors import UsageError
from devlint.names import did_you_mean

BASELINE = "devlint-baseline.json"

_YES_NO = argparse.BooleanOptionalAction


class _Extend(argparse.Action):
    """Collects comma-separated words over repeated options."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        words = tuple(word.strip() for word in str(values).split(",") if word.strip())
        setattr(namespace, self.dest, (getattr(namespace, self.dest) or ()) + words)


class _PerFile(argparse.Action):
    """Collects `PATTERN:RULE` pairs, separated by commas; a rule without a pattern belongs to the pattern before it."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        rows: list[tuple[str, tuple[str, ...]]] = list(getattr(namespace, self.dest) or ())
        known = len(rows)
        for word in str(values).split(","):
            pattern, colon, rule = word.strip().rpartition(":")
            if colon and pattern and rule:
                rows.append((pattern, (rule.strip(),)))
            elif len(rows) > known and rule and not colon:
                rows[-1] = (rows[-1][0], (*rows[-1][1], rule))
            elif word.strip():
                raise UsageError(f"--per-file-ignores: expected PATTERN:RULES, not `{word.strip()}`")
        setattr(namespace, self.dest, tuple(rows))


class _Formats(argparse.Action):
    """Collects `FORMAT` and `FORMAT:FILE` over repeated options, which together replace the default."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        from devlint.report import Output

        name, colon, path = str(values).partition(":")
        if name not in OUTPUT_FORMATS:
            choices = f"{did_you_mean(name, OUTPUT_FORMATS)}; choose from {', '.join(OUTPUT_FORMATS)}"
            raise UsageError(f"--output-format: unknown format `{name}`{choices}")
        if colon and not path:
            raise UsageError(f"--output-format: no file behind `{values}`")
        given = getattr(namespace, self.dest) if option_string is not None and self.seen else ()
        self.seen = self.seen or option_string is not None
        setattr(namespace, self.dest, (*given, Output(name, path or None)))

    seen = False


def _jobs(text: str) -> int:
    if text == "auto":
        return 0
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number or `auto`, not `{text}`")
    return int(text)


class HelpFormatter(argparse.HelpFormatter):
    """The default layout. The width is asked for here, since argparse imports archive formats to do so."""

    def __init__(self, prog: str, **others: Any) -> None:
        try:
            width = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
        except (OSError, ValueError):
            width = 80
        super().__init__(prog, width=max(width, 40) - 2, **others)


def parser() -> argparse.ArgumentParser:
    """The parser of `devlint check`."""
    result = Parser(
        prog="devlint check",
        usage="devlint [check] [OPTIONS] [PATH ...]",
        description="Check Python files for device problems in PyTorch code.",
        allow_abbrev=False,
        formatter_class=HelpFormatter,
        epilog="Exit codes: 0 clean, 1 problems found, 2 wrong usage, missing path or internal error.",
    )
    result.add_argument(
        "paths", nargs="*", metavar="PATH", help="files, directories or `-` for standard input (default: .)"
    )
    _add_rules(result.add_argument_group("rules"))
    _add_fixes(result.add_argument_group("fixes"))
    _add_old_code(result.add_argument_group("old code"))
    _add_files(result.add_argument_group("files and settings"))
    _add_output(result.add_argument_group("output"))
    return result


def _add_rules(group: argparse._ArgumentGroup) -> None:
    def words(flag: str, text: str) -> None:
        group.add_argument(flag, action=_Extend, metavar="RULES", help=text)

    words("--select", "rules to use: codes, prefixes, names or ALL, separated by commas")
    words("--extend-select", "rules to use beside the selected ones")
    words("--ignore", "rules not to use")
    words("--extend-ignore", "rules not to use beside the ignored ones")
    group.add_argument(
        "--per-file-ignores",
        action=_PerFile,
        default=(),
        metavar="PATTERN:RULES",
        help="rules not to use in files that match a pattern, as in `tests/*:DEV101,DEV2`",
    )
    group.add_argument(
        "--min-severity",
        choices=SEVERITY_NAMES,
        help="the lowest severity that is reported; `info` shows and counts all that is info",
    )
    group.add_argument(
        "--inference",
        choices=("old", "new"),
        help="how mixed devices are found; `new` is a preview of the next version",
    )


def _add_fixes(group: argparse._ArgumentGroup) -> None:
    def flag(name: str, text: str) -> None:
        group.add_argument(name, action="store_true", help=text)

    def words(name: str, text: str) -> None:
        group.add_argument(name, action=_Extend, metavar="RULES", help=text)

    flag("--fix", "apply safe fixes")
    flag("--fix-only", "apply fixes and do not report what is left")
    group.add_argument("--unsafe-fixes", action=_YES_NO, help="count unsafe fixes among those that --fix applies")
    flag("--diff", "show what --fix would change, as `git apply` takes it; write nothing")
    flag("--show-fixes", "list what was fixed")
    words("--fixable", "rules that may be fixed (default: all)")
    words("--unfixable", "rules to leave alone")


def _add_old_code(group: argparse._ArgumentGroup) -> None:
    def flag(name: str, text: str) -> None:
        group.add_argument(name, action="store_true", help=text)

    group.add_argument(
        "--add-ignore",
        metavar="REASON",
        help="write a comment that silences each problem; with a reason: --add-ignore=REASON",
    )
    flag("--ignore-suppressions", "report what comments silence as well")
    group.add_argument(
        "--baseline",
        metavar="FILE",
        help=f"do not report what is in this file (default: {BASELINE} where it exists)",
    )
    flag("--write-baseline", "write the problems to the baseline")
    flag("--prune-baseline", "drop what matches no problem any more from the baseline")
    group.add_argument(
        "--diff-base",
        metavar="REV",
        help="report only what rows bring that changed since this git revision; `REV...`: since HEAD left it",
    )


def _add_files(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--config",
        action="append",
        metavar="FILE|SETTING",
        help="use this configuration file for all paths, or this setting: --config 'torch-version = \"2.9\"'",
    )
    group.add_argument("--isolated", action="store_true", help="read no configuration file")
    group.add_argument("--exclude", action=_Extend, metavar="PATTERNS", help="leave these out, not the default ones")
    group.add_argument("--extend-exclude", action=_Extend, metavar="PATTERNS", help="leave these out too")
    group.add_argument("--force-exclude", action=_YES_NO, help="leave excluded files out even when named explicitly")
    group.add_argument(
        "--markdown", action="store_true", help="check Python in Markdown files of directories, not only in named ones"
    )
    group.add_argument("--stdin-filename", metavar="NAME", help="the name of standard input, for settings and reports")
    group.add_argument("--no-cache", action="store_true", help="keep no results and use none")
    group.add_argument("--cache-dir", metavar="DIR", help="where results are kept (default: .devlint_cache)")
    group.add_argument("-j", "--jobs", type=_jobs, default=0, metavar="N", help="processes (default: auto)")


def _add_output(group: argparse._ArgumentGroup) -> None:
    def flag(name: str, text: str) -> None:
        group.add_argument(name, action="store_true", help=text)

    group.add_argument(
        "--output-format",
        action=_Formats,
        default=(),
        metavar="FORMAT[:FILE]",
        help=f"how problems are reported (default: full); may be repeated. Formats: {', '.join(OUTPUT_FORMATS)}",
    )
    group.add_argument("-o", "--output-file", metavar="FILE", help="write the report to this file")
    flag("--statistics", "print counts instead of problems; with --verbose also what was read and parsed")
    less_or_more = group.add_mutually_exclusive_group()
    less_or_more.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="also say what is left alone on purpose, and why a fix is not applied; on standard error",
    )
    less_or_more.add_argument("-q", "--quiet", action="store_true", help="print the problems and nothing else")
    add_color(group)
    flag("--exit-zero", "exit with 0 even when problems are found")
    flag("--exit-non-zero-on-fix", "exit with 1 when problems were fixed, even if none is left")
    flag("--show-files", "list the files that would be checked")
    flag("--show-settings", "show the settings of the first file")

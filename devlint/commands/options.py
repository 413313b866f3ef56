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
        description="Check Python files for device bugs in PyTorch code.",
        allow_abbrev=False,
        formatter_class=HelpFormatter,
        epilog="Exit codes: 0 for no errors or warnings, 1 for errors or warnings, 2 for wrong usage, a missing path or an "
        "internal error.",
    )
    result.add_argument(
        "paths", nargs="*", metavar="PATH", help="files or directories to check, or `-` for standard input (default: .)"
    )
    _add_rules(result.add_argument_group("rules"))
    _add_fixes(result.add_argument_group("fixes"))
    _add_old_code(result.add_argument_group("existing findings"))
    _add_files(result.add_argument_group("files and settings"))
    _add_output(result.add_argument_group("output"))
    return result


def _add_rules(group: argparse._ArgumentGroup) -> None:
    def words(flag: str, text: str) -> None:
        group.add_argument(flag, action=_Extend, metavar="RULES", help=text)

    words("--select", "use only these rules: codes, prefixes, names or ALL, separated by commas")
    words("--extend-select", "also use these rules")
    words("--ignore", "do not use these rules")
    words("--extend-ignore", "also do not use these rules")
    group.add_argument(
        "--per-file-ignores",
        action=_PerFile,
        default=(),
        metavar="PATTERN:RULES",
        help="do not use these rules in files that match the pattern, such as `tests/*:DEV101,DEV2`",
    )
    group.add_argument(
        "--min-severity",
        choices=SEVERITY_NAMES,
        help="report only findings of this severity or higher. With `info`, findings with severity `info` fail the run too",
    )
    group.add_argument(
        "--inference",
        choices=("old", "new"),
        help="the analysis that finds mixed devices. `new` is a preview (default: old)",
    )


def _add_fixes(group: argparse._ArgumentGroup) -> None:
    def flag(name: str, text: str) -> None:
        group.add_argument(name, action="store_true", help=text)

    def words(name: str, text: str) -> None:
        group.add_argument(name, action=_Extend, metavar="RULES", help=text)

    flag("--fix", "apply safe fixes")
    flag("--fix-only", "do the same as --fix, but do not report the remaining findings")
    group.add_argument("--unsafe-fixes", action=_YES_NO, help="apply unsafe fixes too, or only safe ones")
    flag("--diff", "print the changes of --fix as a patch for `git apply`, but do not write them")
    flag("--show-fixes", "list the applied fixes")
    words("--fixable", "apply only the fixes of these rules (default: all rules)")
    words("--unfixable", "do not apply the fixes of these rules")


def _add_old_code(group: argparse._ArgumentGroup) -> None:
    def flag(name: str, text: str) -> None:
        group.add_argument(name, action="store_true", help=text)

    group.add_argument(
        "--add-ignore",
        metavar="REASON",
        help="write a comment that suppresses each finding. --add-ignore=REASON adds a reason",
    )
    flag("--ignore-suppressions", "also report findings that comments suppress")
    group.add_argument(
        "--baseline",
        metavar="FILE",
        help=f"do not report the findings in this file (default: {BASELINE}, if it exists)",
    )
    flag("--write-baseline", "write the findings to the baseline")
    flag("--prune-baseline", "remove entries from the baseline that match no finding any more")
    group.add_argument(
        "--diff-base",
        metavar="REV",
        help="report only findings on lines that changed since this git revision. `REV...` means: since HEAD branched from it",
    )


def _add_files(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--config",
        action="append",
        metavar="FILE|SETTING",
        help="use this configuration file for all paths, or change one setting: --config 'torch-version = \"2.9\"'",
    )
    group.add_argument("--isolated", action="store_true", help="read no configuration file")
    group.add_argument(
        "--exclude",
        action=_Extend,
        metavar="PATTERNS",
        help="exclude these files and directories instead of the default ones",
    )
    group.add_argument(
        "--extend-exclude", action=_Extend, metavar="PATTERNS", help="also exclude these files and directories"
    )
    group.add_argument(
        "--force-exclude",
        action=_YES_NO,
        help="exclude these files and directories even if you name them on the command line",
    )
    group.add_argument(
        "--markdown",
        action="store_true",
        help="also check Python code in the Markdown files of directories. Markdown files that you name are always checked",
    )
    group.add_argument("--stdin-filename", metavar="NAME", help="the file name to use for standard input")
    group.add_argument("--no-cache", action="store_true", help="do not use the cache")
    group.add_argument("--cache-dir", metavar="DIR", help="the directory of the cache (default: .devlint_cache)")
    group.add_argument(
        "-j", "--jobs", type=_jobs, default=0, metavar="N", help="the number of processes (default: auto)"
    )


def _add_output(group: argparse._ArgumentGroup) -> None:
    def flag(name: str, text: str) -> None:
        group.add_argument(name, action="store_true", help=text)

    group.add_argument(
        "--output-format",
        action=_Formats,
        default=(),
        metavar="FORMAT[:FILE]",
        help=f"the format of the report (default: full). You may repeat this option. Formats: {', '.join(OUTPUT_FORMATS)}",
    )
    group.add_argument("-o", "--output-file", metavar="FILE", help="write the report to this file")
    flag("--statistics", "print counts instead of findings. With --verbose, also print what devlint read and parsed")
    less_or_more = group.add_mutually_exclusive_group()
    less_or_more.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="also print, on standard error, why a rule reports nothing for some code and why a fix is not applied",
    )
    less_or_more.add_argument("-q", "--quiet", action="store_true", help="print only the findings")
    add_color(group)
    flag("--exit-zero", "exit with 0 even if there are findings")
    flag("--exit-non-zero-on-fix", "exit with 1 if a fix was applied, even if no finding remains")
    flag("--show-files", "list the files to check, but do not check them")
    flag("--show-settings", "show the settings for the first file")

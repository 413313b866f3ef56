"""`devlint rule CODE|NAME`, `devlint rule --all`: what a rule flags and why, from its docstring and metadata."""

from __future__ import annotations

import argparse
import inspect
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from devlint.addresses import rule_url
from devlint.commands import shell
from devlint.config import Resolver
from devlint.discover import Finder
from devlint.errors import UsageError
from devlint.model import ENGINE_RULES, UNKNOWN_CODE, UNREADABLE_FILE, UNUSED_SUPPRESSION, RuleMeta
from devlint.names import did_you_mean
from devlint.rulebook import rules_of
from devlint.terminal import PLAIN, Style, Terminal

_OWN = {
    UNREADABLE_FILE.code: """\
The file cannot be read, decoded or parsed, so nothing is known about it.

## What it flags
A file that may not be read, bytes that do not belong to the file's encoding, NUL bytes, a syntax error,
syntax that is newer than the Python that runs devlint (the message names the version), nesting that is
too deep to parse.

## Why it matters
A file that was not checked must not look like a clean one. The rule is on whatever `select` says; only
`ignore` or `per-file-ignores` with its code or name turns it off.
""",
    UNUSED_SUPPRESSION.code: """\
A comment silences a rule that finds nothing there.

## What it flags
`# devlint: ignore[DEV101]`, and codes of devlint in `# noqa: DEV101`, where the rule has nothing to say about the line or the
statement. Codes of other linters and a bare `# noqa` are never judged.

## Why it matters
A comment that outlived its reason hides the next fault on that line, and tells the reader of one that is not there.

## Example
    import torch

    x = torch.zeros(3)  # devlint: ignore[DEV101] fixed since

Use instead:

    import torch

    x = torch.zeros(3)

## Fix safety
Safe: the selectors that silence nothing are removed, with the comment and its reason when none is left.

## Known limits
Silent for rules that are not selected, and in files that could not be analysed to the end.
""",
    UNKNOWN_CODE.code: """\
A comment names a rule that does not exist, or is misspelt.

## What it flags
A code, prefix or name in `# devlint: ignore[...]`, or a code that begins with `DEV` in `# noqa: ...`, that no rule has. A
comment that is meant for devlint and silences nothing as it is written: `# devlint: ignore` without brackets,
`# devlint: ignor[DEV101]`, `# devlint ignore[DEV101]`, `# devlnt: ignore[DEV101]`.

## Why it matters
The comment does nothing; most often a letter is wrong and the finding that it was meant for is still reported.

## Fix safety
A hint with the nearest code or name; the message says how a misspelt comment is written.

## Known limits
Codes of other linters in `# noqa` are not looked at. Unknown names in settings are errors of usage.
""",
}


@dataclass(frozen=True, slots=True)
class Explained:
    """A rule with its documentation in Markdown."""

    meta: RuleMeta
    text: str

    @property
    def options(self) -> str:
        """The settings that change what the rule does, as a section in Markdown."""
        code = self.meta.code
        rows = [
            f"* `ignore`, `per-file-ignores`, `severity`: leave it out, in some files, or weigh it otherwise: `{code}`."
        ]
        if self.meta.opt_in:
            rows = [f'* `extend-select = ["{code}"]` turns the rule on.', *rows]
        if "assume" in self.meta.level:
            rows.append("* `assume-accelerator = false` leaves only findings that hold without that assumption.")
            rows.append("* `functions` names functions of the project that move a value to a device.")
        if self.meta.fix in ("always", "sometimes") and code not in _OWN:
            rows.append("* `torch-version`: no fix uses a name that the lowest torch you support does not have.")
            rows.append("* `extend-safe-fixes`, `extend-unsafe-fixes`, `unfixable`: how far its fixes are trusted.")
        if code == UNREADABLE_FILE.code:
            rows = [
                f"* `ignore`, `per-file-ignores`: only `{code}` itself or its name turns it off, neither `select` nor `ALL`."
            ]
        return "\n".join(("## Options", *rows)) + "\n"

    def row(self) -> dict[str, Any]:
        """The rule as JSON data."""
        meta = self.meta
        return {
            "code": meta.code,
            "name": meta.name,
            "summary": meta.summary,
            "level": meta.level,
            "severity": meta.severity.value,
            "fix": meta.fix,
            "since": meta.since,
            "opt_in": meta.opt_in,
            "words": list(meta.words),
            "explanation": self.text,
            "options": self.options,
            "url": rule_url(meta.code),
        }


def explained_rules(plugins: tuple[str, ...] = ()) -> list[Explained]:
    """All rules, the engine's own included, by code."""
    rules = [Explained(rule.meta, _docstring(rule)) for rule in rules_of(plugins)]
    own = [Explained(meta, _OWN[meta.code]) for meta in ENGINE_RULES]
    return sorted([*rules, *own], key=lambda each: each.meta.code)


def _docstring(rule: object) -> str:
    module = sys.modules[type(rule).__module__]
    return inspect.cleandoc(module.__doc__ or "") + "\n"


def main(arguments: Sequence[str]) -> int:
    """Run `devlint rule` and return the exit code."""
    return shell.run(parser(), arguments, _explain)


def _explain(args: argparse.Namespace, terminal: Terminal) -> None:
    if not args.all and not args.rules:
        raise UsageError("name a rule by its code or name, or use --all")
    plugins = Finder(Resolver(isolated=args.isolated)).config_for(".").plugins
    rules = explained_rules(plugins)
    chosen = rules if args.all else [_find(word, rules) for word in args.rules]
    is_page = args.output_format == "text" and terminal.style.color and sys.stdout.isatty()
    for text in _render(chosen, args, PLAIN if is_page else terminal.style):
        terminal.print(_laid_out(text, terminal.style) if is_page else text)


def parser() -> argparse.ArgumentParser:
    """The parser of `devlint rule`."""
    result = shell.Parser(
        prog="devlint rule",
        description="Explain rules: what they report, why it matters, and whether their fixes are safe.",
        allow_abbrev=False,
    )
    result.add_argument(
        "rules", nargs="*", metavar="RULE", help="the code or name of a rule, such as DEV101 or create-then-move"
    )
    result.add_argument("--all", action="store_true", help="explain all rules")
    result.add_argument(
        "--output-format", choices=("text", "json"), default="text", help="the output format (default: text)"
    )
    result.add_argument("--isolated", action="store_true", help="read no configuration file, so use no plugins")
    shell.add_color(result)
    return result


def _find(word: str, rules: Sequence[Explained]) -> Explained:
    for rule in rules:
        if word.lower() in (rule.meta.code.lower(), rule.meta.name):
            return rule
    known = [rule.meta.code for rule in rules] + [rule.meta.name for rule in rules]
    raise UsageError(f"unknown rule `{word}`{did_you_mean(word, known)}")


def _render(rules: Sequence[Explained], args: argparse.Namespace, style: Style) -> list[str]:
    if args.output_format == "json":
        rows = [rule.row() for rule in rules]
        return [json.dumps(rows if args.all or len(rows) > 1 else rows[0], indent=2)]
    return ["\n".join(_page(rule, style) for rule in rules).rstrip("\n")]


def _laid_out(text: str, style: Style) -> str:
    from devlint.commands.page import laid_out

    return laid_out(text, min(shutil.get_terminal_size().columns or 80, 100), style)


def _page(rule: Explained, style: Style) -> str:
    meta = rule.meta
    opt_in = ", off unless selected" if meta.opt_in else ""
    facts = f"{meta.severity.value} · {meta.level} · fix: {meta.fix} · since {meta.since}{opt_in}"
    return f"{style.bold(f'# {meta.name} ({meta.code})')}\n\n{facts}\n\n{rule.text}\n{rule.options}"

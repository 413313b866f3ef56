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
from devlint.model import ENGINE_RULES, UNKNOWN_CODE, UNREADABLE_FILE, UNUSED_SUPPRESSION, Level, RuleMeta
from devlint.names import did_you_mean
from devlint.rulebook import rules_of
from devlint.terminal import PLAIN, Style, Terminal

_OWN = {
    UNREADABLE_FILE.code: """\
devlint cannot read, decode or parse the file, so it did not check the file.

## What it flags
- The file cannot be opened.
- The bytes do not match the encoding of the file, or the file contains NUL bytes.
- The file has a syntax error.
- The syntax is newer than the Python that runs devlint. The message names the version.
- The nesting is too deep to parse.

## Why it matters
An unchecked file must not look like a file without findings. The rule is therefore always selected.
""",
    UNUSED_SUPPRESSION.code: """\
A comment suppresses a rule that reports nothing at this place.

## What it flags
- `# devlint: ignore[DEV101]`, if DEV101 reports nothing for the line or the statement.
- `# noqa: DEV101`, if DEV101 reports nothing for the line. Codes of other linters and a `# noqa` without codes are not
  checked.

## Why it matters
An outdated comment hides the next finding on the line. The comment also warns the reader of a fault that no longer
exists.

## Example
    import torch

    x = torch.zeros(3)  # devlint: ignore[DEV101] fixed since

Use instead:

    import torch

    x = torch.zeros(3)

## Fix safety
The fix is safe. It removes the unused codes and names. If no code or name is left, the fix removes the whole comment.

## Known limits
- A rule that is not selected is not checked.
- A file is not checked if its analysis stopped early.
""",
    UNKNOWN_CODE.code: """\
A comment names a rule that does not exist, or the comment is misspelled.

## What it flags
- `# devlint: ignore[...]` contains a code, a prefix or a name that no rule has.
- `# noqa: ...` contains a code that begins with `DEV`, but no rule has this code.
- A comment for devlint has no effect because of its spelling. Examples are `# devlint: ignore` without brackets,
  `# devlint: ignor[DEV101]`, `# devlint ignore[DEV101]` and `# devlnt: ignore[DEV101]`.

## Why it matters
The comment has no effect, so the finding is still reported. Usually one letter is wrong.

## Fix safety
The rule makes a suggestion without an edit. The suggestion names the code or name with the nearest spelling. For a
misspelled comment, the message shows the right spelling.

## Known limits
- Codes of other linters in `# noqa` are not checked.
- Unknown names in settings are usage errors and have no rule.
""",
}


#: What the `level` of a rule means, in words.
_ASSUMED = "tensor arguments, module parameters and device variables may be on an accelerator"
_SURE: dict[Level, str] = {
    "certain": "The findings of this rule follow from the code, without an assumption.",
    "assume": f"The findings of this rule assume that {_ASSUMED}.",
    "certain / assume": (
        f"Some findings of this rule follow from the code, without an assumption.\nThe others assume that {_ASSUMED}."
    ),
}
#: What a rule says that judges events of the new inference alone.
_NEEDS = 'The rule needs the new inference: `inference = "new"` in the settings, or `--inference new`.'


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
            f'* `ignore = ["{code}"]` turns the rule off.',
            "* `per-file-ignores` turns the rule off in some files.",
            "* `severity` changes the severity of the findings.",
        ]
        if self.meta.opt_in:
            rows = [f'* `extend-select = ["{code}"]` turns the rule on.', *rows]
        if self.meta.needs_inference:
            rows.append('* `inference = "new"` is necessary. Without it, the rule reports nothing.')
        if "assume" in self.meta.level:
            rows.append(
                "* `assume-accelerator = false` turns off the findings that assume that a value may be on an accelerator."
            )
            rows.append("* `functions` lists functions of the project that move a value to a device.")
        if self.meta.fix in ("always", "sometimes") and code not in _OWN:
            rows.append(
                "* `torch-version` sets the lowest torch version that you support. Fixes use only functions of this version."
            )
            rows.append(
                "* `extend-safe-fixes` and `extend-unsafe-fixes` change whether a fix is safe. `unfixable` turns fixes off."
            )
        if code == UNREADABLE_FILE.code:
            rows = [
                f"* `ignore` and `per-file-ignores` turn the rule off if they contain `{code}` or `{UNREADABLE_FILE.name}`.",
                "* A shorter prefix, such as `DEV9`, does not turn it off.",
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
            "preview": meta.preview,
            "needs_inference": meta.needs_inference,
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
    opt_in = (" · preview" if meta.preview else "") + (" · off by default" if meta.opt_in else "")
    fix = "suggestion only" if meta.fix == "hint" else meta.fix
    facts = f"severity: {meta.severity.value} · fix: {fix} · since {meta.since}{opt_in}"
    title = style.bold(f"# {meta.name} ({meta.code})")
    first, _, rest = rule.text.partition("\n\n")
    if meta.code not in _OWN:
        first = f"{first}\n\n{_SURE[meta.level]}"
    if meta.needs_inference:
        first = f"{first}\n\n{_NEEDS}"
    return f"{title}\n\n{facts}\n\n{first}\n\n{rest}\n{rule.options}"

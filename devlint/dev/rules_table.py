"""Generates `rules/README.md`, the table of the shipped rules: `python -m devlint.dev.rules_table > rules/README.md`.

A test compares the file with what this module gives.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from devlint.model import RuleMeta

_HEAD = """\
# The rules

This page lists all rules. `devlint rule CODE` prints the page of a rule. `python -m devlint.dev.rules_table` generates
the list, and a test checks that it is up to date.

| how sure | meaning |
|---|---|
| certain | the findings follow from the code, without an assumption |
| assume | the findings assume that tensor arguments, module parameters and `device` variables may be on an accelerator |
| certain / assume | some findings follow from the code, and others need the assumption |

The column *fix* says whether a rule offers a fix: *always*, *sometimes*, or only a suggestion without an edit (*hint*).

| code | name | what it flags | how sure | fix | since |
|---|---|---|---|---|---|
"""


def render(rules: Iterable[tuple[RuleMeta, str]]) -> str:
    """The table as Markdown. `rules`: the metadata of each rule, and its file's name in `devlint_rules/`."""
    rows = []
    for meta, file in sorted(rules, key=lambda rule: rule[0].code):
        name = f"[{meta.name}](devlint_rules/{file})"
        rows.append(f"| {meta.code} | {name} | {meta.summary} | {meta.level}{meta.mark} | {meta.fix} | {meta.since} |")
    return _HEAD + "\n".join(rows) + "\n"


def shipped() -> list[tuple[RuleMeta, str]]:
    """The shipped rules as `render` takes them. Raises RuleLoadError when they cannot be loaded."""
    from devlint.registry import load_rules

    return [(rule.meta, type(rule).__module__.rpartition(".")[2] + ".py") for rule in load_rules()]


if __name__ == "__main__":
    sys.stdout.write(render(shipped()))

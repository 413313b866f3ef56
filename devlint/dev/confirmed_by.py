"""Generates `docs/confirmed-by.md`, how the fix of each rule was confirmed: `python -m devlint.dev.confirmed_by`.

Read from what tests assert: the verdicts beside the programs in `fixtures/runtime`, the wrong fixes among its controls,
and the results of real cards in `benchmarks/gpu`. A test compares the file with what this module gives.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from devlint.config import toml_reader
from devlint.model import RuleMeta

ROOT = Path(__file__).resolve().parents[2]

_HEAD = """\
# How each fix was confirmed

`python -m devlint.dev.confirmed_by` generates this page, and a test checks that it is up to date. The table lists every
rule that has a safe or an unsafe fix. A *fault* is what the bug does in a run. Tests check every row.

| column | meaning |
|---|---|
| device | the device on which `devlint verify` confirms a fix of the rule. *static only*: no program shows the fault |
| program | the program in `fixtures/runtime/` that contains the fault |
| fault without the fix | what `verify` observes only in the run without the fix |
| wrong fix | what a wrong fix on the same line does. `verify` refutes it (`fixtures/runtime/controls/refuted.toml`) |
| real GPU | the GPU on which `verify` also confirmed the fix, and the date |

| code | name | device | program | fault without the fix | wrong fix | real GPU |
|---|---|---|---|---|---|---|
"""

# Why nothing that runs here can show the fault of a rule.
REASONS: dict[str, str] = {}
_STATIC = "no program in `fixtures/runtime` shows it yet"


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What a program asserts of one fix: the device on which it is confirmed, and what shows the fault."""

    program: str
    device: str
    shows: str


def render(rules: Iterable[RuleMeta], root: Path = ROOT) -> str:
    """The table as Markdown. Raises OSError and ValueError for results that cannot be read."""
    programs = confirmed(root)
    wrong = refuted(root)
    cards = _cards(root)
    rows = []
    for meta in sorted(rules, key=lambda meta: meta.code):
        if not has_fix(meta):
            continue
        no = wrong.get(meta.code, "none")
        card = cards.get(meta.code, "none yet")
        by = programs.get(meta.code)
        if by is not None:
            row = f"{_plain(by.device)} | `{by.program}.py` | {_escaped(by.shows)}"
        else:
            row = f"static only | | {REASONS.get(meta.code, _STATIC)}"
        rows.append(f"| {meta.code} | {meta.name} | {row} | {no} | {card} |")
    return _HEAD + "\n".join(rows) + "\n"


def has_fix(meta: RuleMeta) -> bool:
    """Whether a rule has a fix that devlint applies."""
    return meta.fix in ("always", "sometimes")


def confirmed(root: Path = ROOT) -> dict[str, Confirmed]:
    """For each rule the first program that confirms a fix of it."""
    found: dict[str, Confirmed] = {}
    for path in sorted((root / "fixtures" / "runtime").glob("*.toml")):
        for row in toml_reader().loads(path.read_text(encoding="utf-8")).get("fix", ()):
            if row["verdict"] == "confirmed":
                found.setdefault(row["code"], Confirmed(path.stem, row["on"], row["shows"]))
    return found


def refuted(root: Path = ROOT) -> dict[str, str]:
    """For each rule the name of the first wrong fix that is refuted."""
    path = root / "fixtures" / "runtime" / "controls" / "refuted.toml"
    found: dict[str, str] = {}
    if path.exists():
        for row in toml_reader().loads(path.read_text(encoding="utf-8"))["control"]:
            found.setdefault(row["fix"]["code"], row["name"])
    return found


def _plain(device: str) -> str:
    return device.removesuffix(", CPU kernels")


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def _cards(root: Path) -> dict[str, str]:
    """For each rule the card and the date on which a real one last confirmed a fix of it."""
    found: dict[str, tuple[str, str]] = {}
    for path in sorted((root / "benchmarks" / "gpu").glob("*.json")):
        facts = json.loads(path.read_text(encoding="utf-8"))
        for loop in facts.get("loops", ()):
            for fix in loop.get("fixes", ()):
                if fix["verdict"] == "confirmed" and found.get(fix["code"], ("",))[0] < facts["date"]:
                    found[fix["code"]] = (facts["date"], facts["card"])
    return {code: f"{card}, {date}" for code, (date, card) in found.items()}


def shipped() -> list[RuleMeta]:
    """The metadata of the shipped rules. Raises RuleLoadError when they cannot be loaded."""
    from devlint.registry import load_rules

    return [rule.meta for rule in load_rules()]


if __name__ == "__main__":
    sys.stdout.write(render(shipped()))

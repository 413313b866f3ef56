"""What every shipped rule owes: documentation that runs, complete metadata, fixtures, a place in list and table."""

from __future__ import annotations

import re
import sys
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from devlint.dev.rules_table import render
from devlint.engine import Linter
from devlint.fix.rounds import fix_source
from devlint.model import FileResult, RuleMeta, Safety
from devlint.rule import Rule
from devlint.settings import Settings
from devlint.source import Source, decode
from devlint.testing import count_markers
from devlint_rules import RULES

ROOT = Path(__file__).parents[1]
SECTIONS = ("What it flags", "Why it matters", "Example", "Fix safety", "Known limits")
each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.meta.code)


def documentation(rule: type[Rule[Any]]) -> str:
    text = sys.modules[rule.__module__].__doc__
    assert text, f"{rule.__module__} has no docstring"
    return text


def sections(text: str) -> dict[str, str]:
    """The text below each `## heading`, in order."""
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def example(rule: type[Rule[Any]]) -> tuple[str, str]:
    """The code of the example, and the code to use instead."""
    text = sections(documentation(rule))["Example"]
    bad, _, good = text.partition("Use instead:")
    return textwrap.dedent(bad).strip("\n") + "\n", textwrap.dedent(good).strip("\n") + "\n"


@cache
def linter(tested: type[Rule[Any]]) -> Linter:
    """All rules that are on by default, and the one under test."""
    codes = tuple(rule.meta.code for rule in RULES if rule is tested or not rule.meta.opt_in)
    return Linter(tuple(rule() for rule in RULES), Settings(select=codes))


def lint(rule: type[Rule[Any]], code: str) -> tuple[Source, FileResult]:
    source = decode(code.encode(), "example.py")
    result = linter(rule).check(source)
    assert not result.crashes, result.crashes
    return source, result


@each_rule
def test_documentation_has_its_sections(rule: type[Rule[Any]]) -> None:
    text = documentation(rule)
    found = sections(text)
    assert tuple(found) == SECTIONS
    assert all(body.strip() for body in found.values())
    assert "Use instead:" in found["Example"]
    assert text.splitlines()[0].endswith("."), "the first line is a sentence"


@each_rule
def test_example_fires_its_rule_and_no_other_once(rule: type[Rule[Any]]) -> None:
    _, result = lint(rule, example(rule)[0])
    assert [diagnostic.code for diagnostic in result.diagnostics] == [rule.meta.code]


@each_rule
def test_example_is_fixed_into_what_to_use_instead(rule: type[Rule[Any]]) -> None:
    bad, good = example(rule)
    source, result = lint(rule, bad)
    fix = result.diagnostics[0].fix
    if fix is None or fix.safety is Safety.HINT:
        assert rule.meta.fix in ("hint", "never", "sometimes")
    else:
        assert fix_source(linter(rule), source, {Safety.SAFE, Safety.UNSAFE}).text == good


@each_rule
def test_what_to_use_instead_is_clean(rule: type[Rule[Any]]) -> None:
    _, result = lint(rule, example(rule)[1])
    assert not result.diagnostics


@each_rule
def test_metadata_is_complete(rule: type[Rule[Any]]) -> None:
    meta = rule.meta
    assert re.fullmatch(r"DEV[0-9]{3}", meta.code)
    assert re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", meta.since)
    assert meta.words and all(meta.words), "without words the rule would run on every file"
    assert meta.summary[:1].islower() or meta.summary[:1] in "`0123456789"
    assert not meta.summary.endswith(".")
    assert meta.level in ("certain", "assume", "certain / assume")
    assert meta.fix in ("always", "sometimes", "hint", "never")


@each_rule
def test_module_is_named_after_the_rule(rule: type[Rule[Any]]) -> None:
    assert rule.__module__ == f"devlint_rules.{rule.meta.name.replace('-', '_')}"


@each_rule
def test_fixtures_exist_and_most_cases_are_quiet(rule: type[Rule[Any]]) -> None:
    quiet, expect = count_markers(ROOT / "fixtures" / rule.meta.code, rule.meta.code)
    assert expect > 0
    assert quiet > expect


@each_rule
def test_fix_availability_is_what_the_fixtures_show(rule: type[Rule[Any]]) -> None:
    levels = set()
    for path in (ROOT / "fixtures" / rule.meta.code).glob("*.py"):
        if path.name.endswith(".fixed.py"):
            continue
        from devlint.testing import read_fixture

        fixture = read_fixture(path.read_bytes(), path.name)
        result = linter(rule).check(decode(fixture.raw, path.name))
        levels |= {d.fix.safety if d.fix else None for d in result.diagnostics if d.code == rule.meta.code}
    writes = levels & {Safety.SAFE, Safety.UNSAFE}
    if rule.meta.fix == "always":
        assert writes and levels <= {Safety.SAFE, Safety.UNSAFE}
    elif rule.meta.fix == "sometimes":
        assert writes
    elif rule.meta.fix == "hint":
        assert levels == {Safety.HINT}
    else:
        assert levels == {None}


def test_the_list_is_sorted_and_complete() -> None:
    codes = [rule.meta.code for rule in RULES]
    assert codes == sorted(set(codes))
    files = {path.stem for path in (ROOT / "rules" / "devlint_rules").glob("*.py") if not path.name.startswith("_")}
    assert files == {rule.__module__.rpartition(".")[2] for rule in RULES}


def test_the_table_of_rules_is_up_to_date() -> None:
    rows = [(rule.meta, rule.__module__.rpartition(".")[2] + ".py") for rule in RULES]
    assert (ROOT / "rules" / "README.md").read_text(encoding="utf-8") == render(rows)


def test_a_table_lists_what_it_is_given() -> None:
    meta: RuleMeta = RULES[0].meta
    assert f"| {meta.code} | [{meta.name}](devlint_rules/x.py) | {meta.summary} |" in render([(meta, "x.py")])

"""The documentation: its examples run, its links lead somewhere, every rule has a page."""

from __future__ import annotations

import re
import types
from pathlib import Path

import pytest

from devlint.dev.site import GUIDES, configuration, pages
from devlint.engine import Linter
from devlint.registry import load_rules
from devlint.settings import Settings
from devlint.source import decode

ROOT = Path(__file__).parents[1]
TEXTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(name: str, language: str) -> list[str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.S)


def test_the_rule_of_the_guide_works_as_it_stands() -> None:
    module = types.ModuleType("acme_rules")
    exec(blocks("docs/writing-a-rule.md", "python")[0], module.__dict__)
    linter = Linter((module.RULES[0](),), Settings(select=("ACM101",)))
    source = decode(b"import torch\n\nx = torch.zeros(2).cuda()\nx.cpu()\nx = x.cpu()\n", "run.py")
    found = linter.check(source)
    assert not found.crashes
    assert [(d.start.row, d.message) for d in found.diagnostics] == [(4, "`x.cpu()` returns a copy, which is dropped")]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), target


def test_the_site_has_a_page_for_every_rule_and_guide() -> None:
    rules = list(load_rules())
    found = pages(rules, ROOT)
    assert {f"rules/{rule.meta.code}.md" for rule in rules} < found.keys()
    assert "index.md" in found
    for name in found:
        assert name in configuration(found) or name == "index.md"


def test_guides_that_are_named_exist() -> None:
    missing = [name for _, name in GUIDES if not (ROOT / "docs" / name).is_file()]
    assert not missing

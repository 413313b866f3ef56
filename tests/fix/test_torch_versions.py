"""No fix of any fixture writes a name that the lowest torch of the project lacks, whatever that torch is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from devlint import knowledge
from devlint.engine import Linter
from devlint.fix.rounds import fix_source
from devlint.model import FileResult, Safety
from devlint.settings import Settings
from devlint.source import Source, decode
from devlint.testing import read_fixture
from devlint_rules import RULES

FIXTURES = Path(__file__).parents[2] / "fixtures"
VERSIONS = [(2, minor) for minor in range(2, 14)]
CASES = sorted(path.with_name(path.name.replace(".fixed.py", ".py")) for path in FIXTURES.glob("DEV*/*.fixed.py"))


def names(text: str) -> set[str]:
    """The qualified names of torch that a file reads, through its imports."""
    tree = ast.parse(text)
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            bound.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return {name for name in _paths(tree, bound) if name.startswith("torch.")}


def _paths(tree: ast.AST, bound: dict[str, str]) -> Iterator[str]:
    for node in ast.walk(tree):
        parts: list[str] = []
        root = node
        while isinstance(root, ast.Attribute):
            parts.append(root.attr)
            root = root.value
        if isinstance(root, ast.Name) and root.id in bound and isinstance(node, ast.Attribute | ast.Name):
            yield ".".join([bound[root.id], *reversed(parts)])


class Remembering:
    """A linter that answers once for one text: fixing asks for the findings that the test has already."""

    def __init__(self, linter: Linter) -> None:
        self.linter = linter
        self.known: dict[str, FileResult] = {}

    def check(self, source: Source) -> FileResult:
        if source.text not in self.known:
            self.known[source.text] = self.linter.check(source)
        return self.known[source.text]


def fixed(source: Source, version: tuple[int, int]) -> str:
    """The text that all fixes leave where the lowest torch is `version`."""
    linter = Linter(tuple(rule() for rule in RULES), Settings(select=("ALL",), torch_version=version))
    return fix_source(Remembering(linter), source, {Safety.SAFE, Safety.UNSAFE}).text


def fixed_for_each(source: Source) -> dict[tuple[int, int], str]:
    """The fixed text for the versions between which it changes; what two of them agree on holds between them."""
    texts: dict[tuple[int, int], str] = {}

    def fill(first: int, last: int) -> None:
        for version in (VERSIONS[first], VERSIONS[last]):
            if version not in texts:
                texts[version] = fixed(source, version)
        if texts[VERSIONS[first]] != texts[VERSIONS[last]] and last - first > 1:
            middle = (first + last) // 2
            fill(first, middle)
            fill(middle, last)

    fill(0, len(VERSIONS) - 1)
    return texts


@pytest.mark.slow
@pytest.mark.parametrize("rule", sorted({path.parent.name for path in CASES}))
def test_every_name_that_a_fix_adds_is_there(rule: str) -> None:
    wrong = []
    for path in [path for path in CASES if path.parent.name == rule]:
        fixture = read_fixture(path.read_bytes(), path.as_posix())
        source = decode(fixture.raw, path.as_posix())
        for version, text in fixed_for_each(source).items():
            for name in sorted(names(text) - names(source.text)):
                space, _, last = name.rpartition(".")
                made_up = knowledge.is_public_name(space, last) is False
                if made_up or (knowledge.lifetime(name) is not None and not knowledge.exists(name, version)):
                    wrong.append(f"{path.relative_to(FIXTURES)}: {name} for torch {version[0]}.{version[1]}")
    assert not wrong


def test_a_name_that_came_later_is_noticed() -> None:
    assert not knowledge.exists("torch.accelerator.synchronize", (2, 5))
    assert knowledge.exists("torch.accelerator.synchronize", (2, 6))
    assert names("from torch import accelerator as a\na.synchronize()\n") == {
        "torch.accelerator",
        "torch.accelerator.synchronize",
    }

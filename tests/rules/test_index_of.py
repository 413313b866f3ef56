"""Which operand of a meeting is the index, and which rule a meeting belongs to."""

from __future__ import annotations

import pytest

from devlint.api import Meet
from devlint.facts.analysis import analyse
from devlint.settings import Settings
from devlint.source import decode, parse
from devlint_rules import _shared as shared


def meets(expression: str) -> list[Meet]:
    """The meetings in an expression of `x`, which may be on an accelerator, and `host`, which is on the CPU."""
    text = f"""\
import torch
import torch.nn.functional as F

def f(x: torch.Tensor):
    host = x.cpu()[0:3]
    return {expression}
"""
    source = decode(text.encode(), "a.py")
    return [event for event in analyse(parse(source), source, Settings()).events if isinstance(event, Meet)]


@pytest.mark.parametrize(
    ("expression", "index"),
    [
        ("host[x]", "x"),
        ("host[0, x]", "x"),
        ("x.gather(1, host)", "host"),
        ("x.gather(dim=1, index=host)", "host"),
        ("torch.gather(x, 1, host)", "host"),
        ("torch.gather(host, 1, x)", "x"),
        ("x.index_select(0, host)", "host"),
        ("x.masked_fill(host, 0)", "host"),
        ("x.masked_fill_(host, 0)", "host"),
        ("torch.masked_select(x, host)", "host"),
        ("torch.take(x, host)", "host"),
        ("F.embedding(host, x)", "host"),
        ("F.embedding(x, host)", "x"),
    ],
)
def test_index_is_found(expression: str, index: str) -> None:
    (meet,) = meets(expression)
    found = shared.index_of(meet)
    assert found is not None
    assert found.text == index
    assert shared.owner(meet) == "DEV104"


@pytest.mark.parametrize(
    "expression", ["x + host", "x.scatter(1, x, host)", "torch.matmul(x, host)", "x.masked_scatter(x, host)"]
)
def test_other_operands_are_no_index(expression: str) -> None:
    (meet,) = meets(expression)
    assert shared.index_of(meet) is None
    assert shared.owner(meet) == "DEV101"

"""Accelerators that tests, fixtures and functions for the device name without asking for them.

@pytest.mark.parametrize("device", ["cuda", "cpu"])   # in a file that skips nothing
DEVICES = ["cuda:0", "cuda:1"]

@pytest.fixture
def device():
    return "cuda:0"
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from devlint.facts.events import DeviceLiteral
from devlint.facts.idioms.devices import parse_device
from devlint.facts.surveys.outline import Outline
from devlint.facts.text import parametrized
from devlint.facts.text.nodes import statements
from devlint.facts.values import ACCELERATORS, Place

_NAME = re.compile(r"(?:\A|_)devices?\Z", re.IGNORECASE)
_FUNCTION = re.compile(r"(?:(?:get|default|torch|test|my)_)?device\Z")
#: What a file says that leaves out what is not there.
_ASKS = re.compile(r"skip|is_available|device_count|xfail|require|pytestmark|has_cuda|HAS_CUDA")


def listed_devices(o: Outline) -> Iterator[DeviceLiteral]:
    """The literals of a file that asks for no accelerator."""
    if _ASKS.search(o.flow.source.text):
        return
    for function in o.functions:
        for name, values in parametrized.given(function).items():
            if _NAME.search(name):
                yield from named(o, values)
        if _FUNCTION.match(function.name):
            returned = [s.value for s in statements(function) if isinstance(s, ast.Return)]
            if len(returned) == 1 and returned[0] is not None:
                yield from named(o, returned)
    for statement in o.tree.body if o.test else ():
        if isinstance(statement, ast.Assign) and isinstance(statement.value, (ast.List, ast.Tuple)):
            if any(isinstance(t, ast.Name) and _NAME.search(t.id) for t in statement.targets):
                yield from named(o, statement.value.elts)


def named(o: Outline, nodes: list[ast.expr] | list[ast.expr | None]) -> Iterator[DeviceLiteral]:
    """The first accelerator among some values, as a text: one finding says it for all."""
    for node in nodes:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        for place in parse_device(node.value):
            if isinstance(place, Place) and place.type in ACCELERATORS:
                yield DeviceLiteral(*o.head(node), place.type, place.card, "listed", None, "device", None, False)
                return

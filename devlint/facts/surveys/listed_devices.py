"""Accelerators that tests, fixtures and functions for the device name without asking for them.

    @pytest.mark.parametrize("device", ["cuda", "cpu"])   # in a file that skips nothing
    DEVICES = ["cuda:0", "cuda:1"]

    @pytest.fixture
    def device():
        return "cuda:0"

    self.device = "cuda"  # in a test

A file that asks what is there, skips anything, or replaces objects by others is left alone, but for the tests in it that ask
for nothing where others do.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from devlint.facts.events import DeviceLiteral
from devlint.facts.idioms.devices import parse_device
from devlint.facts.surveys.outline import Outline
from devlint.facts.text import parametrized
from devlint.facts.text.nodes import statements, text_of
from devlint.facts.text.references import is_self_attribute, last_name
from devlint.facts.values import ACCELERATORS, Place

_NAME = re.compile(r"(?:\A|_)devices?\Z", re.IGNORECASE)
_FUNCTION = re.compile(r"(?:(?:get|default|torch|test|my)_)?device\Z")
_MARKS = re.compile(r"(?i)cuda|gpu")
#: What a file says that leaves out what is not there.
_ASKS = re.compile(
    r"skip|is_available|device_count|xfail|@[\w.]*require|pytestmark|has_cuda|HAS_CUDA|[Mm]ock|monkeypatch"
)


def listed_devices(o: Outline) -> Iterator[DeviceLiteral]:
    """The literals of a file that asks for no accelerator."""
    if _ASKS.search(o.flow.source.text):
        return
    for function in o.functions:
        marked = any(
            _MARKS.search(o.flow.text(d)) for d in function.decorator_list if not parametrized.is_parametrize(d)
        )
        for name, values in parametrized.given(function).items():
            if _NAME.search(name) and not marked:
                yield from named(o, values)
        if _FUNCTION.match(function.name):
            returned = [s.value for s in statements(function) if isinstance(s, ast.Return)]
            if len(returned) == 1 and returned[0] is not None:
                yield from named(o, returned)
    for node in o.parent if o.test else ():
        if isinstance(node, ast.Assign) and any(is_kept(o, target) for target in node.targets):
            yield from named(o, node.value.elts if isinstance(node.value, (ast.List, ast.Tuple)) else [node.value])
        elif isinstance(node, ast.Dict) and not any(isinstance(a, (ast.Compare, ast.Assert)) for a in o.above(node)):
            yield from named(o, [v for k, v in zip(node.keys, node.values, strict=True) if text_of(k) == "device"])


def is_kept(o: Outline, target: ast.expr) -> bool:
    """Whether a name of the module, or an attribute of the test, is for devices; a local variable is seen where it is used."""
    if _NAME.search(last_name(target)) is None:
        return False
    return is_self_attribute(target) or (isinstance(target, ast.Name) and o.scope(target) is o.tree)


def by_process(o: Outline) -> Iterator[DeviceLiteral]:
    """`f"cuda:{accelerator.local_process_index}"`: accelerate has the device of the process, of whatever type."""
    for node in o.parent:
        if not isinstance(node, ast.JoinedStr) or len(node.values) != 2:
            continue
        first, second = node.values
        index = second.value if isinstance(second, ast.FormattedValue) else None
        if text_of(first) != "cuda:" or not isinstance(index, ast.Attribute) or index.attr != "local_process_index":
            continue
        around = o.parent.get(node)
        of_torch = isinstance(around, ast.Call) and o.qualname(around.func) == "torch.device"
        call, device = "torch.device" if of_torch else None, f"{o.flow.text(index.value)}.device"
        yield DeviceLiteral(*o.head(node), "cuda", None, "argument", call, "device", device, False)


def named(o: Outline, nodes: list[ast.expr] | list[ast.expr | None]) -> Iterator[DeviceLiteral]:
    """The first accelerator among some values, as a text: one finding says it for all."""
    for node in nodes:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        for place in parse_device(node.value):
            if isinstance(place, Place) and place.type in ACCELERATORS:
                yield DeviceLiteral(*o.head(node), place.type, place.card, "listed", None, "device", None, False)
                return

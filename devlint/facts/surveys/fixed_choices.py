"""Choices of a device that are none: what is left of them is one device whatever the machine, or no CPU at all.

device = "mps" if torch.backends.mps.is_available() else "cuda"      # never the CPU
if torch.cuda.is_available() and False:                             # switched off
device = "cpu"  # torch.device("cuda" if ... else "cpu")            # the same, in a comment
device = torch.device(f"cuda:{args.gpu}")                           # in a file that never asks for CUDA
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Literal

from devlint.facts.events import DeviceLiteral, Guards
from devlint.facts.frozen import replace
from devlint.facts.interpreter.flow import Flow
from devlint.facts.surveys.outline import Outline, dotted
from devlint.facts.surveys.parallel import is_cuda_prefix
from devlint.facts.text.nodes import text_of
from devlint.facts.text.references import last_name

_CARD = re.compile(r"(cuda|xpu|mps|npu)(?::(\d+))?\Z")
_DEVICE = re.compile(r"(?:\A|_)dev(?:ice)?(?:_?type)?\Z", re.IGNORECASE)
_OFF = re.compile(
    r"#(?:[^\w]*|\s*\w+\s*=\s*)(?:torch\.device\(\s*[\"'f]*cuda|[\"']cuda(?::\d)?[\"'] if |is_available\(\))"
)
#: What a file says that asks for a card, that places work on several, or whose processes talk through NCCL.
_ASKS = re.compile(
    r"is_available|device_count|nccl|init_process_group|DistributedDataParallel|\bDDP\b|set_device|LOCAL_RANK|local_rank|spawn"
    r"|VISIBLE_DEVICES|skip|[Mm]ock|\.is_cuda|current_device|[\"']cpu|no_?cuda|use_?(?:cuda|gpu)|get_rank|Accelerator\("
)


#: What a choice that is none, or a computed device, is written with.
_WORDS = ("and False", "False and", '"mps', "'mps", "cuda:", '"cuda", ', "'cuda', ")


def may_be_fixed(tree: ast.Module, flow: Flow, text: str) -> bool:
    """The gate: a file with one of the words, or with a choice in a comment."""
    named = "cuda" in text or "mps" in text
    return named and (any(word in text for word in _WORDS) or _OFF.search(text) is not None)


def fixed_choices(o: Outline) -> Iterator[DeviceLiteral]:
    """The choices of a file. What is switched off in a test, or computed there, is meant."""
    text = o.flow.source.text
    computes = ("cuda" in text) and _ASKS.search(text) is None
    for node in o.parent:
        if isinstance(node, ast.IfExp):
            yield from _without_cpu(o, node)
        elif isinstance(node, ast.BoolOp) and not o.test:
            yield from _switched_off(o, node)
        elif isinstance(node, ast.Assign) and not o.test:
            yield from _commented_out(o, node)
        elif computes and not o.test and isinstance(node, (ast.JoinedStr, ast.BinOp, ast.Call)):
            yield from _computed(o, node)


def _without_cpu(o: Outline, node: ast.IfExp) -> Iterator[DeviceLiteral]:
    """`"mps" if torch.backends.mps.is_available() else "cuda"`, whatever it is used for."""
    types = [_CARD.match(text_of(arm) or "") for arm in (node.body, node.orelse)]
    if None in types or types[0] is None or types[1] is None or types[0][1] == types[1][1]:
        return
    tested = o.flow.text(node.test)
    if "available" not in tested:
        return  # it asks for something else than what the machine has
    if types[0][1] not in tested or types[1][1] in tested or any(types[1][1] in test for test in o.tests(node)):
        return
    index = int(types[1][2]) if types[1][2] else None
    yield _literal(o, node.orelse, types[1][1], index, "listed")


def _switched_off(o: Outline, node: ast.BoolOp) -> Iterator[DeviceLiteral]:
    """`torch.cuda.is_available() and False`."""
    if not isinstance(node.op, ast.And) or not any(
        isinstance(v, ast.Constant) and v.value is False for v in node.values
    ):
        return
    for asked in node.values:
        if isinstance(asked, ast.Call) and last_name(asked.func) == "is_available":
            qualname = o.qualname(asked.func) or ""
            if qualname.startswith("torch."):
                yield _literal(o, node, "cpu", None, "off")


def _commented_out(o: Outline, node: ast.Assign) -> Iterator[DeviceLiteral]:
    """`device = "cpu"  # torch.device("cuda")`, also with the comment on the line before or after."""
    value = node.value
    if isinstance(value, ast.Call) and o.qualname(value.func) == "torch.device" and len(value.args) == 1:
        value = value.args[0]
    if text_of(value) != "cpu" or len(node.targets) != 1 or _DEVICE.search(last_name(node.targets[0])) is None:
        return
    text = o.flow.source.text
    end = o.flow.span(node).end
    behind = text[end : text.find("\n", end) if "\n" in text[end:] else len(text)].strip()
    start = text.rfind("\n", 0, o.flow.span(node).start) + 1
    before = text[text.rfind("\n", 0, start - 1) + 1 : max(start - 1, 0)].strip() if start else ""
    below = text[end:].split("\n", 2)[1].strip() if text[end:].count("\n") else ""
    name = re.escape(dotted(node.targets[0]) or "")
    same = re.compile(rf"#\s*{name}\s*=")
    if (behind.startswith("#") and _OFF.match(behind)) or any(same.match(s) and _OFF.match(s) for s in (before, below)):
        yield _literal(o, node.value, "cpu", None, "off")


def _computed(o: Outline, node: ast.JoinedStr | ast.BinOp | ast.Call) -> Iterator[DeviceLiteral]:
    """`torch.device(f"cuda:{args.gpu}")`, `"cuda:" + str(gpu)`, `torch.device("cuda", gpu)`."""
    index = _index_of(o, node)
    path = dotted(index) if index is not None else None
    if path is None or o.loop(node) is not None or not _is_device(o, node):
        return
    if o.tests(node) or re.search(rf"\b{re.escape(path)}\s*(?:[<>=!]=|[<>]|is\b|in\b)", o.flow.source.text):
        return  # what it is has been looked at
    function = o.function(node)
    if function is None and any(value is None for value in o.assignments(path, node)):
        return  # the loop or block of a script
    if re.search(r"cuda|gpu", o.name(node), re.IGNORECASE):
        return  # it says itself what it is for
    yield _literal(o, node, "cuda", None, "computed")


def _index_of(o: Outline, node: ast.JoinedStr | ast.BinOp | ast.Call) -> ast.expr | None:
    """The index of a device that is put together from "cuda:" and something else."""
    if isinstance(node, ast.JoinedStr):
        if len(node.values) == 2 and is_cuda_prefix(node.values[0]) and isinstance(node.values[1], ast.FormattedValue):
            return node.values[1].value
        return None
    if isinstance(node, ast.BinOp):
        if not is_cuda_prefix(node.left) or not isinstance(node.op, (ast.Add, ast.Mod)):
            return None
        right = node.right
        told = isinstance(right, ast.Call) and isinstance(right.func, ast.Name) and right.func.id == "str"
        return right.args[0] if told and isinstance(right, ast.Call) and right.args else right
    if isinstance(node.func, ast.Attribute) and node.func.attr == "format" and is_cuda_prefix(node.func.value):
        return node.args[0] if len(node.args) == 1 else None
    if o.qualname(node.func) == "torch.device" and len(node.args) == 2 and text_of(node.args[0]) == "cuda":
        return node.args[1]
    return None


def _is_device(o: Outline, node: ast.expr) -> bool:
    """Whether an expression is used as a device: by what it is given to, or bound to."""
    if isinstance(node, ast.Call) and o.qualname(node.func) == "torch.device":
        return True
    around = o.parent.get(node)
    if isinstance(around, ast.Call):
        return o.qualname(around.func) == "torch.device" or last_name(around.func) == "to"
    if isinstance(around, ast.keyword):
        return around.arg in ("device", "map_location")
    if isinstance(around, ast.Assign):
        return any(_DEVICE.search(last_name(target)) is not None for target in around.targets)
    return False


def _literal(
    o: Outline, node: ast.expr, type: str, index: int | None, role: Literal["listed", "off", "computed"]
) -> DeviceLiteral:
    span, at, because, under, scope, name = o.head(node)
    under = replace(under, tests=tuple(o.tests(node))) if isinstance(under, Guards) else under
    return DeviceLiteral(span, at, because, under, scope, name, type, index, role, None, "device", None, False)

"""Why a file is not converted at all: a line stays that needs the card, both places are meant, or it is no program.

One device for the whole file is right where all of the file then runs without the card. No edit gives a stream, an event
or the properties of a card another place, processes that communicate through NCCL need cards, and a program that compares
the card with the CPU means both. Such a file is a person's to convert: its findings say why.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TypeGuard

from devlint.api import ApiCall, CudaMethod, DeviceLiteral, Event, Facts, Required, WorkerDevice

from ._api import is_legacy_type, service_of
from ._given import context_as_device, stays_on_index
from ._run_device import chosen_by_default, says_accelerator
from ._shared import File, parsed
from ._switches import is_computed_card, unasked
from ._taken import innermost, shares_memory
from ._twins import compared
from ._uses import uses
from .cuda_required import is_contract

# These take a device, and do nothing for one that is not theirs.
TAKE_DEVICE = frozenset({"torch.cuda.device", "torch.cuda.device_of", "torch.xpu.device", "torch.xpu.device_of"})
_OPTION = re.compile(r"(?:\A|\.)(?:args|opts?|cfg|config|hparams|flags)\.device\Z")
_DDP = "torch.nn.parallel.DistributedDataParallel"
#: Libraries whose operators exist for CUDA alone, by their own pages.
_OF_CUDA = frozenset(
    {"torch2trt", "tensorrt", "pycuda", "nvdiffrast", "tinycudann", "mamba_ssm", "causal_conv1d", "pointnet2_ops",
     "diff_gaussian_rasterization", "simple_knn", "warp_rnnt", "gsplat", "nvidia"}
)  # fmt: skip
_HALVES = ("torch.float16", "torch.half")
_CARD = re.compile(r"(cuda|xpu|npu)(:\d+)?\Z")


def why_kept(facts: Facts) -> str | None:
    """Why no conversion of the file is offered; None where it is."""
    return _why(File(facts))


@lru_cache(maxsize=1)
def _why(file: File) -> str | None:
    facts = file.facts
    row = stays_on_index(facts)
    if row is not None:
        return f"line {row} needs the GPU with a computed index"
    context = context_as_device(facts)
    if context is not None:
        return f"`{context.name}` of line {context.node.lineno} is no device"
    library = next((name for name in facts.imports.values() if name.partition(".")[0] in _OF_CUDA), None)
    if library is not None:
        return f"the file imports `{library}`, which only runs on CUDA"
    for find, what in _REASONS:
        row = min(find(facts), default=None)
        if row is not None:
            return f"line {row} {what}"
    if _lacks_torch(facts):
        return "the file uses `torch` and never imports it"
    return "the file only holds settings, and does not import torch" if _is_settings(facts) else None


# A line that stays


def _calls(facts: Facts) -> Iterator[int]:
    """The rows of calls that raise without the card, and that no guard around their statement settles."""
    for event in facts.events:
        if not isinstance(event, ApiCall) or not event.is_call or not raises_without(event):
            continue
        if not isinstance(event.node, ast.expr) or _is_statement(event, facts.text):
            continue
        if service_of(event, facts) is None:
            yield event.node.lineno


def _is_statement(event: ApiCall, text: str) -> bool:
    """Whether the call is a statement of its own, or is only printed."""
    if event.discarded:
        return True
    row = getattr(event.node, "lineno", 0)
    tree = parsed(text)
    return any(
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "print"
        and node.lineno <= row <= (node.end_lineno or 0)
        for node in (ast.walk(tree) if tree is not None else ())
    )


def raises_without(event: ApiCall) -> bool:
    """Whether the call raises without the accelerator, and no other rule than DEV205 reports it."""
    if (
        not (event.raises and (event.is_call or is_absent(event)))
        or event.type in ("", "accelerator")
        or event.under.catches("RuntimeError", "AssertionError")
        or (event.type != "cuda" and event.under.catches("AttributeError", "ImportError"))
    ):
        return False
    if is_legacy_type(event.qualname) or event.deprecated is not None:
        return False
    return not (event.qualname in TAKE_DEVICE and (event.discarded or not _names_card(event)))


def is_absent(event: ApiCall) -> bool:
    """Whether the place is only reached where torch says that the accelerator is not there."""
    test = re.compile(rf"not (?:torch\.)?(?:backends\.)?{event.type}\.is_available\(\)\Z")
    return not event.under.allow(event.type) and any(map(test.match, event.under.tests))


def _names_card(event: ApiCall) -> bool:
    """Whether the argument is a card by number or by a literal, or an option, which may be the CPU."""
    given = event.arguments.get("0") or event.arguments.get("device")
    return given is not None and (given.value.constant is not None or _OPTION.search(given.text) is not None)


def _processes(facts: Facts) -> Iterator[int]:
    """The rows that tie processes to cards: a card made current beside NCCL, a module for the one card of its process."""
    unasked_nodes = list(unasked(facts.text))
    if any(isinstance(node, ast.Constant) and node.value == "nccl" for node in unasked_nodes):
        for event in facts.events:
            if isinstance(event, ApiCall) and event.is_call and event.qualname == "torch.cuda.set_device":
                if isinstance(event.node, ast.expr) and not _is_asked(event):
                    yield event.node.lineno
    for node in unasked_nodes:
        if isinstance(node, ast.Call) and _qualified(node.func, facts).endswith((_DDP, ".DistributedDataParallel")):
            ids = next((each.value for each in node.keywords if each.arg == "device_ids"), None)
            ids = node.args[1] if ids is None and len(node.args) > 1 else ids
            if isinstance(ids, ast.List | ast.Tuple) and ids.elts:
                yield node.lineno


def _in_workers(facts: Facts) -> Iterator[int]:
    """The rows that name the card in what the workers of a data loader run: the batch has to be moved in the loop."""
    workers = [event.span for event in facts.events if isinstance(event, WorkerDevice)]
    for event in facts.events if workers else ():
        if isinstance(event, CudaMethod | DeviceLiteral) and isinstance(event.node, ast.expr):
            if any(each.start <= event.span.start and event.span.end <= each.end for each in workers):
                yield event.node.lineno


def _is_asked(event: ApiCall) -> bool:
    return event.under.allow("cuda") or any(map(says_accelerator, event.under.tests))


def _kept_copies(facts: Facts) -> Iterator[int]:
    """The rows that keep a copy of a parameter's values by a move alone: `self.first = self.scores.data.cuda()`.

    A move to where a tensor is already gives that tensor.
    """
    for node in unasked(facts.text):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            value = node.value
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "cuda":
                if shares_memory(value.func.value):
                    yield node.lineno


def _qualified(node: ast.expr, facts: Facts) -> str:
    first, dot, rest = ast.unparse(node).partition(".")
    return f"{facts.imports.get(first, first)}{dot}{rest}"


def _computed(facts: Facts) -> Iterator[int]:
    """The rows of devices that compute their card, but for those of checkpoints, which the conversion settles."""
    for node in unasked(facts.text):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and is_computed_card(node.value):
            yield node.lineno
        elif isinstance(node, ast.Call):
            placed = node.args[:1] if isinstance(node.func, ast.Attribute) and node.func.attr == "to" else []
            given = [*placed, *(each.value for each in node.keywords if each.arg == "device")]
            if any(map(is_computed_card, given)):
                yield node.lineno


def _checks(facts: Facts) -> Iterator[int]:
    """The rows of checks for the card that nobody removes: the program is meant for it."""
    for event in facts.events:
        if isinstance(event, Required) and isinstance(event.node, ast.expr | ast.stmt) and is_contract(event, facts):
            yield event.node.lineno


def _spread(facts: Facts) -> Iterator[int]:
    """The rows that list several cards for one module: `DataParallel(net, device_ids=[0, 1])`."""
    for node in unasked(facts.text):
        if isinstance(node, ast.keyword) and node.arg == "device_ids" and isinstance(node.value, ast.List | ast.Tuple):
            if len(node.value.elts) > 1:
                yield node.value.lineno


def _half(facts: Facts) -> Iterator[int]:
    """The rows in functions that use the card, and compute in half precision whatever is there.

    Few operators have it on the CPU. Not what a condition decides, what is compared, the type of `autocast`, which torch
    does without on the CPU, nor a tensor that is only made in it.
    """
    tree = parsed(facts.text) if "half" in facts.text or "float16" in facts.text else None
    if tree is None:
        return
    rows = list(_half_rows(tree, facts))
    cards = [use.node.lineno for use in uses(facts) if isinstance(use.node, ast.expr)]
    places = {innermost(tree, row) for row in cards}
    tests = [node for node in ast.walk(tree) if isinstance(node, ast.If)]
    for row in rows:
        if innermost(tree, row) in places and not any(_decides(test, row, rows, cards) for test in tests):
            yield row


def _half_rows(tree: ast.Module, facts: Facts) -> Iterator[int]:
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Compare | ast.Dict | ast.IfExp):
            continue
        if isinstance(node, ast.Call) and _path(node.func, facts).startswith("torch."):
            continue
        if isinstance(node, ast.Attribute) and _path(node, facts) in _HALVES:
            yield node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if (node.func.attr, len(node.args)) == ("half", 0):
                yield node.lineno
        pending.extend(ast.iter_child_nodes(node))


def _decides(test: ast.If, row: int, rows: Sequence[int], cards: Sequence[int]) -> bool:
    """Whether a condition decides about half precision: its branch does nothing else with the card, or the other one, which
    uses the card as well, goes without."""
    for own, other in ((test.body, test.orelse), (test.orelse, test.body)):
        if _are_in(own, [row]):
            return not _are_in(own, cards) or (_are_in(other, cards) and not _are_in(other, rows))
    return False


def _are_in(block: Sequence[ast.stmt], rows: Sequence[int]) -> bool:
    return bool(block) and any(block[0].lineno <= row <= (block[-1].end_lineno or 0) for row in rows)


def _path(node: ast.expr, facts: Facts) -> str:
    """The full name of a path through the imports; "" for everything else."""
    first = node
    while isinstance(first, ast.Attribute):
        first = first.value
    return _qualified(node, facts) if isinstance(first, ast.Name) and first.id in facts.imports else ""


def _old_torch(facts: Facts) -> Iterator[int]:
    """The rows that one branch has for a torch without devices, by `volatile=True`, and the other for a newer one."""
    tree = parsed(facts.text) if "volatile" in facts.text else None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.If | ast.IfExp) and node.orelse:
            sides = (node.body, node.orelse) if isinstance(node, ast.If) else ([node.body], [node.orelse])
            volatile = [
                [each.value.lineno for part in side for each in ast.walk(part) if _is_volatile(each)] for side in sides
            ]
            if bool(volatile[0]) != bool(volatile[1]):
                yield from (*volatile[0], *volatile[1])


def _is_volatile(node: ast.AST) -> TypeGuard[ast.keyword]:
    return isinstance(node, ast.keyword) and node.arg == "volatile"


# What is no program


def _lacks_torch(facts: Facts) -> bool:
    """Whether the file reads `torch` that nothing in it binds: a part of a program, as a page shows it."""
    tree = parsed(facts.text)
    if tree is None or "*" in facts.imports:
        return False
    reads = False
    for node in ast.walk(tree):
        if isinstance(node, ast.alias):
            if node.name == "*" or (node.asname or node.name).partition(".")[0] == "torch":
                return False
        elif isinstance(node, ast.Name) and node.id == "torch":
            if not isinstance(node.ctx, ast.Load):
                return False
            reads = True
        elif isinstance(node, ast.arg) and node.arg == "torch":
            return False
    return reads


def _is_settings(facts: Facts) -> bool:
    """Whether all that names the card is an entry of settings at module level, in a file that does not import torch."""
    tree = parsed(facts.text)
    if tree is None or any(name.partition(".")[0] == "torch" for name in facts.imports.values()):
        return False
    named = [event for event in facts.events if _is_card(event)]
    inside = [
        statement
        for statement in tree.body
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None and _holds(statement.value)
    ]
    return bool(named) and all(
        any(statement.lineno <= event.node.lineno <= (statement.end_lineno or 0) for statement in inside)
        for event in named
        if isinstance(event.node, ast.expr)
    )


def _is_card(event: Event) -> bool:
    return isinstance(event, DeviceLiteral) and event.type != "cpu"


def _holds(node: ast.expr) -> bool:
    """Whether an expression only collects values: a display, `dict(...)`, or a constant."""
    if isinstance(node, ast.Dict):
        return all(map(_holds, node.values))
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return all(map(_holds, node.elts))
    if isinstance(node, ast.Call):
        collects = isinstance(node.func, ast.Name) and node.func.id == "dict"
        return collects and all(_holds(each) for each in (*node.args, *(each.value for each in node.keywords)))
    return isinstance(node, ast.Constant | ast.Name | ast.Attribute | ast.UnaryOp | ast.BinOp | ast.Starred)


_REASONS: tuple[tuple[Callable[[Facts], Iterator[int]], str], ...] = (
    (_calls, "needs the GPU"),
    (_processes, "needs the GPU"),
    (_in_workers, "needs the GPU in a worker process, where no choice of a device lets it run"),
    (_checks, "ends the program without the GPU"),
    (_spread, "needs several GPUs"),
    (chosen_by_default, "asks for the GPU by default"),
    (_kept_copies, "keeps a copy on the GPU, which on the CPU shares its memory with the original"),
    (_computed, "computes the index of the GPU"),
    (_half, "computes in half precision, which few operators have on the CPU"),
    (_old_torch, "is for a torch that has no `torch.device`"),
    (compared, "compares results of the GPU with results of the CPU"),
)


# A text that another library takes


def handed_texts(facts: Facts) -> tuple[ast.Constant, ...]:
    """The texts that are no more than the name of the card, and that a function of another library gets by place."""
    return _handed(File(facts))


@lru_cache(maxsize=1)
def _handed(file: File) -> tuple[ast.Constant, ...]:
    facts = file.facts
    if facts.is_test:
        return ()
    return tuple(
        given
        for node in unasked(facts.text)
        if isinstance(node, ast.Call) and _is_of_library(node.func, facts)
        for given in node.args
        if isinstance(given, ast.Constant) and isinstance(given.value, str) and _CARD.match(given.value)
    )


def _is_of_library(function: ast.expr, facts: Facts) -> bool:
    """Whether a function is imported, and neither torch's nor Python's own, nor a test's."""
    if not isinstance(function, ast.Name | ast.Attribute):
        return False
    first = ast.unparse(function).partition(".")[0]
    if first not in facts.imports:
        return False
    root = facts.imports[first].partition(".")[0]
    return root not in ("torch", "pytest", "typing_extensions") and root not in sys.stdlib_module_names

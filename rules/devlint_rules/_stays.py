"""Why a file is not converted at all: a line stays that needs the card, both places are meant, or it is no program.

One device for the whole file is right where all of the file then runs without the card. No edit gives a stream, an event
or the properties of a card another place, processes that communicate through NCCL need cards, and a program that compares
the card with the CPU means both. Such a file is a person's to convert: its findings say why.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import lru_cache

from devlint.api import ApiCall, CudaMethod, DeviceLiteral, Event, Facts, WorkerDevice

from ._api import is_legacy_type, service_of
from ._given import context_as_device, stays_on_index
from ._run_device import says_accelerator
from ._shared import File, parsed
from ._switches import is_computed_card, unasked
from ._twins import compared

# These take a device, and do nothing for one that is not theirs.
TAKE_DEVICE = frozenset({"torch.cuda.device", "torch.cuda.device_of", "torch.xpu.device", "torch.xpu.device_of"})
_OPTION = re.compile(r"(?:\A|\.)(?:args|opts?|cfg|config|hparams|flags)\.device\Z")
_DDP = "torch.nn.parallel.DistributedDataParallel"
#: Libraries whose operators exist for CUDA alone, by their own pages.
_OF_CUDA = frozenset(
    {"torch2trt", "tensorrt", "pycuda", "nvdiffrast", "tinycudann", "mamba_ssm", "causal_conv1d", "pointnet2_ops",
     "diff_gaussian_rasterization", "simple_knn", "warp_rnnt", "gsplat", "nvidia"}
)  # fmt: skip
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
    row = min((*_calls(facts), *_processes(facts)), default=None)
    if row is not None:
        return f"line {row} needs the GPU"
    row = min(_in_workers(facts), default=None)
    if row is not None:
        return f"line {row} needs the GPU in a worker process, where no choice of a device lets it run"
    row = min(_kept_copies(facts), default=None)
    if row is not None:
        return f"line {row} keeps a copy on the GPU, which on the CPU shares its memory with the original"
    row = min(_computed(facts), default=None)
    if row is not None:
        return f"line {row} computes the index of the GPU"
    row = compared(facts)
    if row is not None:
        return f"line {row} compares results of the GPU with results of the CPU"
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


def shares_memory(node: ast.expr) -> bool:
    """Whether an expression gives the memory of another attribute: `self.scores.data`, `self.scores.detach()`."""
    if isinstance(node, ast.Attribute):
        return node.attr == "data" and isinstance(node.value, ast.Attribute)
    detaches = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach"
    return (
        detaches
        and isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Attribute)
    )


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

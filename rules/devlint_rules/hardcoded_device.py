"""An accelerator is written as a literal, so the code only runs on a machine that has it.

## What it flags
A literal device that names an accelerator: `"cuda"`, `"cuda:0"`, `torch.device("cuda", 1)`, `device=0`, `.to(0)`, a
`map_location`, and what `parametrize("device", [...])` or a function `device` gives in a file that asks for no accelerator;
`f"cuda:{args.gpu}"` and `torch.device("cuda", i)` in a file that never asks; a choice that ends in an accelerator, `"mps"
if torch.backends.mps.is_available() else "cuda"`; and one that is switched off: `is_available() and False`, or `device =
"cpu"` beside the real choice in a comment. The device type of `autocast` is DEV209's. Quiet are comparisons, dictionary
keys, `Literal[...]`, texts, code under a guard for that device, the guarded choice `"cuda" if torch.cuda.is_available()
else "cpu"`, defaults of parameters and options (DEV213's), calls into `torch.cuda` itself, and files that load kernels. A
condition that names the accelerator, such as `if args.gpu is not None`, is a guard.

## Why it matters
The line raises on a machine without that accelerator: a laptop, a CI runner, another vendor's
card. With an index it also raises where there are fewer cards, and ignores the card that the
rest of the program was told to use.

## Example
    import torch

    def positions(n):
        return torch.arange(n, device="cuda")

Use instead:

    import torch

    device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")

    def positions(n):
        return torch.arange(n, device=device)

## Fix safety
All places that name the card are one decision: one finding in a report, one device, chosen once, in the form that the file
has. Safe in a program whose every use of the card is a device argument of torch's own, a name that no condition reads, or the
move of what is surely a tensor or a module, where the index is absent or 0, no call makes a card the current one, and no
`try` stands around it. Safe as well when a variable in scope is proved to be that accelerator wherever it exists, and the
literal has no index. Unsafe otherwise: with an option such as `args.device`, which defaults to the CPU, the work moves to where
the rest of the program runs. Only a hint where the file names several cards, since those indices are a placement, and
where the index is computed.

## Known limits
A literal `"cpu"` alone is not reported: most are meant (results, checkpoints, host data), and one whose
tensor meets the run's device is DEV101's. Devices that are put together from text (`f"cuda:{rank}"`) are reported where nothing
in the file asks for CUDA, starts processes, or speaks of the CPU.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from devlint.api import (
    ACCELERATORS,
    CudaMethod,
    DeviceLiteral,
    Edit,
    Facts,
    Finding,
    Fix,
    LeftAlone,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
    Span,
    cst,
)
from devlint_rules._at_hand import run_device
from devlint_rules._calls import path_to
from devlint_rules._conversion import TOO_EARLY, choice, is_safe, portability, quote_of
from devlint_rules._run_device import (
    guard_of,
    may_use_other_cards,
    placed,
    purpose_of,
    under_condition,
)
from devlint_rules._shared import parsed, span_of

_ROLES = frozenset({"argument", "assigned", "map", "listed", "computed"})

_CHOOSE = Fix("Choose the device that is there, and use the index where it is an accelerator", Safety.HINT)


#: Why a literal that names an accelerator binds nothing to it, by its role.
_OTHER_ROLES = {
    "fallback": "another device is chosen where it is not there",
    "default": "it is a default, which a call may replace; DEV213, which is not on by default, reports those",
    "autocast": "mixed precision for a type that is not there is switched off, with a warning",
}


class HardcodedDevice(Rule[DeviceLiteral]):
    meta = RuleMeta(
        code="DEV201",
        name="hardcoded-device",
        summary="accelerator is written as a literal",
        since="0.1.0",
        level="certain",
        severity=Severity.WARNING,
        fix="sometimes",
        words=("cuda", "xpu", "mps", "npu", "mtia", "hpu", "xla", "device", ".to("),
    )
    event = DeviceLiteral

    def suspects(self, event: DeviceLiteral, facts: Facts) -> bool:
        return _names_device(event) and guard_of(event) is None and purpose_of(facts) is None

    def left_alone(self, event: DeviceLiteral, facts: Facts) -> LeftAlone | None:
        if _names_device(event):
            return guard_of(event) or purpose_of(facts)
        reason = _OTHER_ROLES.get(event.role) if event.type in ACCELERATORS else None
        return LeftAlone(reason) if reason is not None else None

    def left_alone_beside(self, facts: Facts) -> Iterator[tuple[Span, LeftAlone]]:
        if purpose_of(facts) is not None:
            return
        tree = parsed(facts.text)
        around = dict(_parents(tree)) if tree is not None else {}
        for node in around:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _WRITTEN.match(node.value):
                left = _chosen_under(node, around)
                if left is not None:
                    yield span_of(node, facts.text), left

    def judge(self, event: DeviceLiteral, site: Site) -> Finding | None:
        if _is_quiet(event, site):
            return None
        if event.role == "off":
            fix = Fix("Choose the device that is there, or say that it is the CPU", Safety.HINT)
            return Finding(event.span, "the choice of a device is switched off: it is always `cpu`", fix, event.because)
        if event.role == "computed":
            message = f"device is hardcoded to `{event.type}`, and nothing in the file asks for it"
            return Finding(event.span, message, _CHOOSE, event.because)
        place = event.type if event.index is None else f"{event.type}:{event.index}"
        message = f"device is hardcoded to `{place}`"
        if event.run_device is not None and event.role != "assigned":
            message += f"; the run's device is `{event.run_device}`"
        fix = self._fix(event, site)
        return Finding(event.span, message, fix, event.because, portability=portability(event, fix, site.facts))

    def _fix(self, event: DeviceLiteral, site: Site) -> Fix:
        if event.role == "listed":
            return Fix("Ask for it first, and leave out what is not there", Safety.HINT)
        whole = _device_call(event, site)
        hint = placed("Take the cards from a setting", site, event.type) if event.index is not None else None
        if hint is not None and not (
            _is_assigned(site, _device_call(event, site)) and _is_only_index(event, site.facts)
        ):
            return hint
        if isinstance(whole, cst.Call) and not all(_is_literal(a.value) for a in whole.args):
            return Fix(
                "Build the device from the type of the run's device and this index",
                Safety.HINT,
                why="the index is computed",
            )
        held = event.role == "assigned" and _is_held(site, whole)
        named = _is_assigned(site, whole) and (event.run_device is None or event.index)
        if event.index and not named and event.run_device_is_proved:
            return Fix("Take the card from a setting", Safety.HINT, why="the run's device may be another card")
        if (event.role == "assigned" and not held) or named:
            chosen = _chosen(event, whole, site)
            if chosen is None:
                return Fix("Choose the device that is there", Safety.HINT)
            safety = Safety.SAFE if is_safe(event.type, site.facts) else Safety.UNSAFE
            return Fix("Choose the device that is there", safety, (Edit(whole, site.expression(chosen)),))
        device = run_device(event.run_device, site, event)
        if device is None:
            return Fix("Choose the device that is there", Safety.HINT, why=TOO_EARLY)
        text = device.text
        if event.argument == "type":
            is_new = bool(device.needs) and not device.is_text
            text = f"{text}.type" if is_new else f"{site.spell('torch.device')}({text}).type"
        as_text = (held or (event.call is None and event.role == "argument")) and isinstance(whole, cst.SimpleString)
        if as_text and not device.is_text and text != "self.device":
            text = _as_string(text, bool(device.needs), event)
        indexed = event.index is not None or (isinstance(whole, cst.Call) and len(whole.args) > 1)
        same = event.run_device is not None and event.run_device_is_proved and not indexed and event.role == "argument"
        same = same and not may_use_other_cards(site.facts)
        return Fix(
            f"Use `{text}`",
            Safety.SAFE if same or is_safe(event.type, site.facts) else Safety.UNSAFE,
            (Edit(whole, site.expression(text)),),
            device.needs,
        )


#: A text that names an accelerator, and one of its cards.
_WRITTEN = re.compile(r"(?:cuda|xpu|mps|npu|mtia|hpu|xla)(?::\d+)?\Z")


def _parents(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.AST]]:
    return ((child, node) for node in ast.walk(tree) for child in ast.iter_child_nodes(node))


def _chosen_under(node: ast.AST, around: Mapping[ast.AST, ast.AST]) -> LeftAlone | None:
    """Why a text that is bound or given on is no device that everything depends on: by what stands around it alone."""
    inner = node
    while (outer := around.get(inner)) is not None:
        if isinstance(outer, (ast.Compare, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            return None
        if isinstance(outer, ast.Dict) and inner in outer.keys and _is_map(around.get(outer)):
            return LeftAlone("it names where the tensors were saved, not where they go")
        holds = isinstance(outer, (ast.If, ast.IfExp)) and inner is not outer.test
        if holds and isinstance(outer, (ast.If, ast.IfExp)) and _asks(outer.test):
            taken = outer.body if isinstance(outer.body, list) else [outer.body]
            return under_condition(ast.unparse(outer.test)) if inner in taken else None
        inner = outer
    return None


def _is_map(node: ast.AST | None) -> bool:
    """Whether a node is the argument that says where the tensors of a checkpoint go."""
    return isinstance(node, ast.keyword) and node.arg == "map_location"


def _asks(test: ast.expr) -> bool:
    """Whether a condition asks for an accelerator: `torch.cuda.is_available()`, `torch.cuda.device_count() > 0`."""
    return any(
        isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and n.func.attr in ("is_available", "device_count")
        for n in ast.walk(test)
    )


def _names_device(event: DeviceLiteral) -> bool:
    """Whether the literal makes an accelerator the device of something, outside the accelerator's own module."""
    if event.role == "off":
        return True
    if event.role not in _ROLES or event.type not in ACCELERATORS:
        return False
    return not (event.call or "").startswith(("torch.cuda.", "torch.accelerator.", f"torch.{event.type}."))


def _is_quiet(event: DeviceLiteral, site: Site) -> bool:
    """Whether the literal is compared, is a default, or is a value of a test that has marks of its own."""
    whole = _device_call(event, site)
    above = path_to(site, whole)
    if any(isinstance(node, cst.Param) or _is_marked(node) for node in above):
        return True
    parent = above[-2] if len(above) > 1 else None
    if isinstance(parent, cst.DictElement) and any(isinstance(node, cst.Comparison | cst.Assert) for node in above):
        return True  # what is expected
    return isinstance(parent, cst.Comparison | cst.ComparisonTarget) or (
        isinstance(parent, cst.Attribute) and parent.attr.value == "type"
    )


def _is_marked(node: cst.CSTNode) -> bool:
    """Whether a node is `pytest.param(..., marks=...)`: the marks skip the value where it cannot be."""
    return isinstance(node, cst.Call) and any(a.keyword is not None and a.keyword.value == "marks" for a in node.args)


def _device_call(event: DeviceLiteral, site: Site) -> cst.CSTNode:
    """The literal, or the `torch.device(...)` whose argument it is."""
    above = path_to(site, site.node)
    around = above[-3] if len(above) > 2 else None  # Call > Arg > literal
    return around if event.call == "torch.device" and isinstance(around, cst.Call) else site.node


def _is_held(site: Site, node: cst.CSTNode) -> bool:
    """Whether a literal is an entry of a dict or an argument, which is read as a device elsewhere."""
    above = path_to(site, node)
    return len(above) > 1 and isinstance(above[-2], cst.DictElement | cst.Arg)


def _as_string(text: str, is_new: bool, event: DeviceLiteral) -> str:
    """The device for a reader that nobody knows, who got a string: a `torch.device` is written as one."""
    value = event.scope.get(text)
    is_device = is_new or text.endswith(".device") or (value is not None and value.kind == "device")
    return f"str({text})" if is_device and (value is None or value.kind != "string") else text


def _is_assigned(site: Site, node: cst.CSTNode) -> bool:
    """Whether the statement binds a name to this device and nothing else."""
    statement = site.statement
    return isinstance(statement, cst.Assign | cst.AnnAssign) and statement.value is node


def _chosen(event: DeviceLiteral, whole: cst.CSTNode, site: Site) -> str | None:
    """The choice that takes the place of a device that is bound to a name, in the same form. None: torch cannot tell.

    A text names the same card as before; so does a device where nothing leaves the card open.
    """
    as_text = not isinstance(whole, cst.Call)
    quote = quote_of(site.facts)
    if isinstance(site.node, cst.SimpleString):
        quote = site.node.quote if len(site.node.quote) == 1 else quote
    return choice(event.type, event.index, site.facts, as_text=as_text, quote=quote)


def _is_only_index(event: DeviceLiteral, facts: Facts) -> bool:
    """Whether every index that the file names for a type of card is this one."""
    named = (e for e in facts.events if isinstance(e, DeviceLiteral | CudaMethod) and e.type == event.type)
    return {e.index for e in named if e.index is not None} == {event.index}


def _is_literal(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.SimpleString | cst.Integer)

"""An accelerator is written as a literal, so the code runs only on a machine that has this accelerator.

## What it flags
The rule reports a literal device that names an accelerator:

* A string, an index or a `torch.device` selects the device: `"cuda"`, `"cuda:0"`, `torch.device("cuda", 1)`,
  `device=0`, `.to(0)`.
* `map_location` names an accelerator.
* `parametrize("device", [...])` or a function named `device` provides an accelerator, and the file never checks for an
  accelerator.
* `f"cuda:{args.gpu}"` or `torch.device("cuda", i)` selects a GPU, and the file never checks for CUDA.
* The last branch of a choice is an accelerator: `"mps" if torch.backends.mps.is_available() else "cuda"`.
* The choice of a device is disabled: `is_available() and False`, or `device = "cpu"` next to a choice that is commented
  out.

## Why it matters
The line raises an error on a machine without that accelerator. Examples are a laptop, a CI runner, and a machine with
another vendor's GPU. A literal with an index also fails on a machine with fewer GPUs, and it ignores the GPU that the
user chose.

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
The rule treats all literals for one accelerator in a file as one decision. A report shows one finding for all of them.
The fix chooses the device once. It writes the choice in the form that the file already uses. Where each line has a
tensor at hand, the fix uses the device of that tensor instead. An unsafe fix also changes these places of the file:

* A default that names the accelerator, such as `device="cuda"`.
* A switch that is on, such as `use_gpu=True`. It becomes `use_gpu=torch.cuda.is_available()`.
* A `map_location` that computes a GPU. The checkpoint goes to the chosen device.

The fix is safe when all of these are true:

* The accelerator is used only in device arguments of torch functions, in names that no condition reads, and in moves.
  Every moved object is proved to be a tensor or a module.
* The literal has no index, or its index is 0.
* No call changes the current GPU.
* The use is not inside a `try`.
* No other line of the file needs the accelerator.
* Every torch version that the file supports has the names that the fix writes.

The fix is also safe when the literal has no index and a variable in scope is proved to hold the same accelerator.

Otherwise the fix is unsafe. For example, the default of `args.device` may be the CPU. After the fix, the line then
works on the CPU.

The rule makes a suggestion without an edit in these cases:

* The file names several GPUs. The indices then distribute the work on purpose.
* The index is computed.
* No variable in scope holds a device, and another line needs the GPU whatever the choice is: `torch.cuda.Event()`, a
  stream, the properties of a GPU, `.cuda()` with a computed index, a `device_ids` with several GPUs, a check for CUDA in
  a test, half precision, a tensor that a worker process of a data loader puts on the GPU. The program would still stop at
  that line. `--verbose` names the line. `devlint verify --fix` does not choose a device for such a file either.
* The file has a device that the other lines do not see, for example `self.device` of another class.

## Known limits
The rule does not report these cases:

* The literal is part of a comparison, a dictionary key, `Literal[...]` or a text for people.
* The code is under a condition that is true only if the accelerator is present. A condition that names the accelerator
  also counts: `if args.gpu is not None`.
* The literal is part of a choice that checks for the accelerator: `"cuda" if torch.cuda.is_available() else "cpu"`.
* The literal is an argument of a function in `torch.cuda`.
* The file loads CUDA kernels.
* The literal is `"cpu"`. Most programs use `"cpu"` on purpose, for results, checkpoints or data. DEV101 reports a CPU
  tensor that is combined with a tensor on the device that the program chose.
* The device is built from text, as in `f"cuda:{rank}"`, and the file checks for CUDA, starts processes or mentions the
  CPU.

DEV209 reports the device type of `autocast`. DEV213 reports the defaults of parameters and options.
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
    InferredCall,
    LeftAlone,
    Part,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
    Span,
    cst,
)

from ._at_hand import wants_new
from ._calls import path_to
from ._conversion import (
    choice,
    decision,
    is_late,
    is_safe,
    new_device,
    portability,
    quote_of,
    run_device,
    why_no_device,
)
from ._given import without_index
from ._rest_of_conversion import with_rest
from ._run_device import (
    guard_in,
    may_use_other_cards,
    placed,
    purpose_of,
    under_condition,
)
from ._shared import parsed, span_of
from ._switches import tested
from ._uses import names_of

_ROLES = frozenset({"argument", "assigned", "map", "listed", "computed"})

_CHOOSE = Fix("Choose an available device, and use the index only for an accelerator", Safety.HINT)


#: Why a literal that names an accelerator binds nothing to it, by its role.
_OTHER_ROLES = {
    "fallback": "the code chooses another device where this one is absent",
    "default": "it is a default that a caller may replace; DEV213 reports defaults, and is off by default",
    "autocast": "torch disables mixed precision for an absent device type, with a warning",
}


class HardcodedDevice(Rule[DeviceLiteral | InferredCall]):
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
    also = (InferredCall,)

    def suspects(self, event: DeviceLiteral | InferredCall, facts: Facts) -> bool:
        if isinstance(event, InferredCall):
            written = _written_device(event)
            return written is not None and not _is_seen(written, facts) and purpose_of(facts) is None
        return _names_device(event) and guard_in(event, facts) is None and purpose_of(facts) is None

    def left_alone(self, event: DeviceLiteral | InferredCall, facts: Facts) -> LeftAlone | None:
        if isinstance(event, InferredCall):
            return None
        if _names_device(event):
            return guard_in(event, facts) or purpose_of(facts)
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

    def judge(self, event: DeviceLiteral | InferredCall, site: Site) -> Finding | None:
        if isinstance(event, InferredCall):
            written = _written_device(event)
            if written is None:
                return None
            return Finding(written.span, f"device is hardcoded to `{written.constant}`", _CHOOSE, event.because)
        if _is_quiet(event, site):
            return None
        event = without_index(event, site.facts)
        if event.role == "off":
            fix = Fix("Choose an available device, or remove the choice and write the CPU", Safety.HINT)
            return Finding(
                event.span, "the choice of a device is switched off: the device is always `cpu`", fix, event.because
            )
        if event.role == "computed":
            message = f"device is hardcoded to `{event.type}`, and the file never checks for this device"
            return Finding(event.span, message, _CHOOSE, event.because)
        place = event.type if event.index is None else f"{event.type}:{event.index}"
        message = f"device is hardcoded to `{place}`"
        if event.run_device is not None and event.role != "assigned":
            message += f"; the program's device is `{event.run_device}`"
        fix = with_rest(self._fix(event, site), event, site.facts)
        return Finding(
            event.span,
            message,
            fix,
            event.because,
            portability=portability(event),
            decision=decision(event, fix, site.facts),
        )

    def _fix(self, event: DeviceLiteral, site: Site) -> Fix:
        if event.role == "listed":
            return Fix("Check for the device first, and leave it out if it is absent", Safety.HINT)
        whole = _device_call(event, site)
        hint = (
            placed("Read the device indices from an option or a configuration file", site, event.type)
            if event.index is not None
            else None
        )
        if hint is not None and not (
            _is_assigned(site, _device_call(event, site)) and _is_only_index(event, site.facts)
        ):
            return hint
        if isinstance(whole, cst.Call) and not all(_is_literal(a.value) for a in whole.args):
            return Fix(
                "Build the device from this index and the type of the program's device",
                Safety.HINT,
                why="the index is computed",
            )
        held = event.role == "assigned" and _is_held(site, whole)
        named = _is_assigned(site, whole) and (event.run_device is None or event.index)
        if event.index and not named and event.run_device_is_proved:
            return Fix(
                "Read the device index from an option or a configuration file",
                Safety.HINT,
                why="the device of the run may be another GPU",
            )
        late = new_device(event.type, site.facts) if named and is_late(event, site.facts) else None
        if late is not None:
            safety = Safety.SAFE if is_safe(event.type, site.facts) else Safety.UNSAFE
            return Fix("Choose the device once, for the whole file", safety, (Edit(site.statement, None),), (late,))
        if named and event.function and not event.index and wants_new(site.facts) and _is_free(event, site):
            need = new_device(event.type, site.facts)
            if need is not None:
                safety = Safety.SAFE if is_safe(event.type, site.facts) else Safety.UNSAFE
                edit = Edit(whole, site.expression(need.name))
                return Fix("Choose the device once, for the whole file", safety, (edit,), (need,))
        if (event.role == "assigned" and not held) or named:
            chosen = _chosen(event, whole, site)
            if chosen is None:
                return Fix("Choose an available device", Safety.HINT)
            safety = Safety.SAFE if is_safe(event.type, site.facts) else Safety.UNSAFE
            return Fix("Choose an available device", safety, (Edit(whole, site.expression(chosen)),))
        device = run_device(event.run_device, site, event)
        if device is None:
            return Fix("Choose an available device", Safety.HINT, why=why_no_device(site.facts))
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


def _written_device(event: InferredCall) -> Part | None:
    """The text of an accelerator that a move or a function of torch gets as its device, outside any choice."""
    if any(word in test for test in event.under.tests for word in (*ACCELERATORS, "is_available")):
        return None
    moves = event.name == "to" and event.receiver is not None and event.receiver.kind in ("tensor", "module")
    moves = moves and event.receiver is not None and event.receiver.evidence != "likely"
    of_torch = event.name.startswith("torch.") and not event.name.startswith(("torch.cuda.", "torch.accelerator."))
    part = event.arguments.get("device") if moves or of_torch else None
    if part is None and (moves or event.name == "torch.device"):
        part = event.arguments.get("0")
    if part is None or not isinstance(part.node, ast.Constant) or not isinstance(part.constant, str):
        return None
    return part if _WRITTEN.match(part.constant) else None


def _is_seen(written: Part, facts: Facts) -> bool:
    """Whether another event tells of the same literal."""
    return any(isinstance(each, DeviceLiteral) and each.span == written.span for each in facts.events)


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


def _is_free(event: DeviceLiteral, site: Site) -> bool:
    """Whether no condition reads the name that a literal is bound to, as a text or a device."""
    return tested(site.facts.text).isdisjoint(names_of(event, site.facts.text))


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

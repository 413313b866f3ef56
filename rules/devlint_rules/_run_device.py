"""What the rules about hardcoded accelerators share: where they are quiet, and how the run's device is written."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import lru_cache

from devlint.api import HOME, ApiCall, CudaMethod, DeviceLiteral, Event, Facts, Move, Required, RunDeviceNeed, Site

# A file that imports one of these holds code that only runs on the accelerator it is written for.
_KERNELS = (
    "triton", "tilelang", "cutlass", "cupy", "pycuda", "cuda", "numba.cuda", "torch.utils.cpp_extension",
)  # fmt: skip
# These serve one accelerator as well, but a function that imports one offers it as an option.
_OPTIONS = ("flash_attn", "apex", "transformer_engine", "tensorrt", "torch_tensorrt")

_SAYS_ACCELERATOR = re.compile(r"(?i)cuda|gpu")
_DENIES = re.compile(r"!=\s*[\"'](cuda|xpu|npu|mps)")
# Where one of these does not hold an accelerator was asked for: `if args.cpu`, `if args.no_cuda`, `if args.gpu < 0`.
_SAYS_CPU = re.compile(
    r"(?i)cpu|no_?(cuda|gpu)|disable_(cuda|gpu)|(cuda|gpu)\w*\W*\s*(<\s*0|<\s*1\b|==\s*-1|==\s*0\b|is\s+None|==\s*\[\])"
)

_COMPUTED_CARD = re.compile(r"(cuda|xpu|npu):[{%]")
_OTHER_CARD = re.compile(r"(cuda|xpu|npu):[1-9{]|\bset_device")
_MARKED = re.compile(r"(?i)^pytestmark\s*=.*(cuda|gpu)", re.MULTILINE)

# Folders of sources that are compiled for CUDA, and of what tries them out.
_KERNEL_FOLDERS = frozenset({"csrc", "cuda"})
# What no other accelerator has: captured graphs, memory shared between processes by handle, the driver's own interface,
# operators that a project compiles.
_ONLY_CUDA = re.compile(
    r"\bext_loader\.load_ext\(|\bCUDAGraph\b|\b_share_cuda_\b|\b_new_shared_cuda\b|\bcudart\(|\btorch\.cuda\.nccl\b"
)
_RECEIVER = re.compile(
    r"\b([A-Za-z_]\w*)(?:\.\w+|\[[^\[\]]*\])*\.(?:to|type|cuda)\(\s*(?:device\s*=\s*)?(?:\w+\.device\()?\Z"
)

_TRAINS = re.compile(r"\bDataLoader\(|\.backward\(|\.step\(|\bin \w*loader\b")
_NEXT = re.compile(r"^(\t| {2}| {4})?(async )?(def|class) ", re.MULTILINE)
_FOLLOWS = re.compile(r"\.is_(cuda|xpu|mps)\b|\bis (not )?None|[<>]=?\s*-?\d|!=\s*-1")

# Ways to bind the name `device`: assignment, loop or alias, a parameter.
_BINDS_DEVICE = re.compile(
    r"""^[ \t]*device\s*(:[^=\n]+)?=(?!=) | ^[ \t]*device\s*(:[^=,\n]+)?(=[^,\n]+)?,[ \t]*$ | \bdevice\s*,[^\n()]*=(?!=)
      | ,\s*device\s*=\s | \b(for|as|import)\s+device\b | \bdef\s[^\n]*\bdevice\b | \blambda\b[^:\n]*\bdevice\b""",
    re.MULTILINE | re.VERBOSE,
)


@lru_cache(maxsize=16)
def _occurs(pattern: re.Pattern[str], text: str) -> bool:
    """Whether a pattern occurs in a file; asked once for all events of the file."""
    return pattern.search(text) is not None


def is_guarded(event: ApiCall | CudaMethod | DeviceLiteral) -> bool:
    """Whether the place only runs where the accelerator is meant to be used.

    True under a proved guard for its type, and under a condition that names it: `if use_cuda`,
    `if args.gpu is not None`, the other branch of `if args.no_cuda` or of `if device == "cpu"`. True in a function
    that says so in its name: `cuda`, `to_cuda`.
    """
    if event.under.allow(event.type) or event.type in event.function.rpartition(".")[2].split("_"):
        return True
    for test in event.under.tests:
        negated = test.startswith("not ")
        if not negated and (_DENIES.search(test) or f"not {test}" in event.under.tests):
            continue  # it says the opposite, or was taken back since: a helper that both branches of its callers call
        if (_SAYS_CPU if negated else _SAYS_ACCELERATOR).search(test) or (not negated and event.type in test):
            return True
    return False


def is_for_accelerator(facts: Facts) -> bool:
    """Whether the whole file is written for one kind of accelerator: kernels, their loaders, tests marked so."""
    if _occurs(_MARKED, facts.text) or _occurs(_ONLY_CUDA, facts.text):
        return True
    if not _KERNEL_FOLDERS.isdisjoint(facts.path.replace("\\", "/").split("/")[:-1]):
        return True
    kernels, options = (tuple(f"{name}." for name in names) for names in (_KERNELS, _OPTIONS))
    always = facts.module_imports or facts.imports
    return any(n.endswith("_cuda") or f"{n}.".startswith(kernels) for n in facts.imports.values()) or any(
        f"{n}.".startswith(options) for n in always.values()
    )


def names_several_cards(facts: Facts, type: str) -> bool:
    """Whether the file names different cards of one type, or computes them: an index is a placement then."""
    cards = {e.index for e in facts.events if isinstance(e, DeviceLiteral | CudaMethod) and e.type == type}
    return len(cards - {None}) > 1 or _occurs(_COMPUTED_CARD, facts.text)


def may_use_other_cards(facts: Facts) -> bool:
    """Whether the file names, or makes current, another card than the first: `cuda` may then be another device."""
    return _occurs(_OTHER_CARD, facts.text)


@dataclass(frozen=True, slots=True)
class RunDevice:
    """An expression for the device of the run, and what a fix needs so that it is defined."""

    text: str
    needs: tuple[RunDeviceNeed, ...] = ()


def run_device(in_scope: str | None, site: Site, event: Event | None = None) -> RunDevice:
    """The run's device: the expression that is in scope, else that of a tensor or module at hand, else a new name.

    `event`: what is to be put there; without it nothing at hand is asked. The new name is `device`, or `run_device` in a
    file that binds `device` to something else. It is CUDA or the CPU in a file that moves other values under guards for
    CUDA alone, so that all of them stay together.
    """
    if in_scope is not None:
        return RunDevice(in_scope)
    if event is not None and (near := at_hand(event, site.facts)) is not None:
        return RunDevice(near)
    name = "run_device" if _occurs(_BINDS_DEVICE, site.facts.text) else "device"
    return RunDevice(name, (RunDeviceNeed(name, _guarded_type(site.facts)),))


def at_hand(event: Event, facts: Facts) -> str | None:
    """The device of the tensor that it meets first, of an argument that is one of the caller's, or of the own module.

    Arguments that the function itself moves to the accelerator are the caller's on the host, and say nothing; nor do
    those of a function that trains, unless what moves was made in it.
    """
    if isinstance(event, CudaMethod | DeviceLiteral | ApiCall) and event.partner is not None:
        return f"{event.partner}.device"
    head = _head_of(event, facts)
    if head is None:
        return None
    receiver = event.receiver.value if isinstance(event, CudaMethod) else None
    made = receiver is None or (receiver.is_tensor and (bool(receiver.made) or receiver.device == HOME))
    is_module = receiver is not None and receiver.kind == "module"
    asks = not is_module and (made or _TRAINS.search(_body_of(event, facts)) is None)
    given = [a.arg for a in (*head.args.posonlyargs, *head.args.args, *head.args.kwonlyargs)]
    moved = {_moved(other, facts) for other in facts.events if _same_function(other, event)} - {None}
    for name in given if asks else ():
        value = event.scope.get(name)
        if value is not None and value.is_tensor and value.device == HOME and name not in moved:
            return f"{name}.device"
    owner = event.scope.get("self")
    if owner is None or owner.kind != "module" or owner.device != HOME or given[:1] != ["self"]:
        return None
    held = any(
        path.startswith("self.") and value.kind in ("module", "parameter") and value.device == HOME
        for path, value in event.scope.items()
    )
    if not held or moved or _is_part_of_init(head.name, facts.text):
        return None
    return "next(self.parameters()).device"


def _same_function(other: Event, event: Event) -> bool:
    return isinstance(other, CudaMethod | DeviceLiteral | ApiCall | Move) and other.function == event.function


def _moved(event: Event, facts: Facts) -> str | None:
    """The name that a move to an accelerator reads: `x` of `x.cuda()`, of `Variable(x[0]).cuda()`, of `x.to("cuda")`."""
    if isinstance(event, DeviceLiteral | ApiCall):
        receiver = _RECEIVER.search(facts.text[max(0, event.span.start - 120) : event.span.start])
        return receiver[1] if receiver is not None else None
    node: ast.AST | None = event.receiver.node if isinstance(event, CudaMethod) else None
    if isinstance(event, Move) and event.method == "type" and isinstance(event.node, ast.Call):
        node = event.node.func
    while node is not None:
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr != "Variable":
            node = node.func.value
        elif isinstance(node, ast.Call) and node.args:
            node = node.args[0]
        else:
            break
    return node.id if isinstance(node, ast.Name) else None


def _head_of(event: Event, facts: Facts) -> ast.FunctionDef | None:
    """The header of the function around an event, with an empty body."""
    name = event.function.rpartition(".")[2]
    if not name.isidentifier():
        return None
    start = _start_of(name, event, facts)
    return _header(facts.text, start) if start >= 0 else None


def _start_of(name: str, event: Event, facts: Facts) -> int:
    starts = [m.start() for m in re.finditer(rf"\bdef {name}\s*\(", facts.text) if m.start() < event.span.start]
    return starts[-1] if starts else -1


def _body_of(event: Event, facts: Facts) -> str:
    """The text of the function around an event, up to the next one at module level or in a class."""
    start = max(0, _start_of(event.function.rpartition(".")[2], event, facts))
    end = _NEXT.search(facts.text, event.span.end)
    return facts.text[start : end.start() if end is not None else len(facts.text)]


@lru_cache(maxsize=64)
def _header(text: str, start: int) -> ast.FunctionDef | None:
    end = start
    for _ in range(20):  # a header may have several colons
        end = text.find(":", end) + 1
        if not end:
            return None
        try:
            (function,) = ast.parse(text[start:end] + " pass").body
        except (SyntaxError, ValueError):
            continue
        return function if isinstance(function, ast.FunctionDef) else None
    return None


def _is_part_of_init(name: str, text: str) -> bool:
    """Whether a method is `__init__` or is called there, before the module is moved."""
    if name == "__init__":
        return True
    inits = re.findall(r"\bdef __init__\(.*?(?=\n\s*(?:async )?def |\nclass |\Z)", text, re.DOTALL)
    return any(re.search(rf"\bself\.{name}\b", body) is not None for body in inits)


def _guarded_type(facts: Facts) -> str | None:
    """The type of accelerator that the file moves values to under guards for it; None where it does not.

    A test that ends the program guards all that follows, and is no choice; one of the number of a card
    (`args.gpu is not None`) is about a run that asks for CUDA.
    """
    gates = {facts.source(event.span) for event in facts.events if isinstance(event, Required)}
    gates |= {text.removeprefix("assert ").partition(",")[0].strip() for text in gates}
    for event in facts.events:
        if not isinstance(event, CudaMethod | DeviceLiteral) or not event.under.tests:
            continue
        if isinstance(event, DeviceLiteral) and event.role != "argument":
            continue
        asked = [t for t in event.under.tests if t not in gates and _FOLLOWS.search(t) is None]
        if asked and (event.under.allow(event.type) or _SAYS_ACCELERATOR.search(" ".join(asked))):
            return event.type
    return None

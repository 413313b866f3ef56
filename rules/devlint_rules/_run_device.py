"""What the rules about hardcoded accelerators share: where they are quiet, and how the run's device is written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from devlint.api import CPU, HOME, ApiCall, CudaMethod, DeviceLiteral, Facts, Move, RunDeviceNeed, Site

# A file that imports one of these holds code that only runs on the accelerator it is written for.
_KERNELS = (
    "triton", "tilelang", "cutlass", "cupy", "pycuda", "cuda", "numba.cuda", "torch.utils.cpp_extension", "flash_attn",
    "apex", "transformer_engine", "tensorrt", "torch_tensorrt",
)  # fmt: skip

_SAYS_ACCELERATOR = re.compile(r"(?i)cuda|gpu")
_DENIES = re.compile(r"!=\s*[\"'](cuda|xpu|npu|mps)")
# Where one of these does not hold an accelerator was asked for: `if args.cpu`, `if args.no_cuda`, `if args.gpu < 0`.
_SAYS_CPU = re.compile(
    r"(?i)cpu|no_?(cuda|gpu)|disable_(cuda|gpu)|(cuda|gpu)\w*\W*\s*(<\s*0|<\s*1\b|==\s*-1|==\s*0\b|is\s+None|==\s*\[\])"
)

_COMPUTED_CARD = re.compile(r"(cuda|xpu|npu):[{%]")
_OTHER_CARD = re.compile(r"(cuda|xpu|npu):[1-9{]|\bset_device")
_MARKED = re.compile(r"(?i)^pytestmark\s*=.*(cuda|gpu)", re.MULTILINE)

# What no other accelerator has: captured graphs, memory shared between processes by handle, the driver's own interface.
_ONLY_CUDA = re.compile(r"\bCUDAGraph\b|\b_share_cuda_\b|\b_new_shared_cuda\b|\bcudart\(|\btorch\.cuda\.nccl\b")

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
    kernels = tuple(f"{name}." for name in _KERNELS)
    return any(name.endswith("_cuda") or f"{name}.".startswith(kernels) for name in facts.imports.values())


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


def run_device(in_scope: str | None, site: Site) -> RunDevice:
    """The run's device: the expression that is in scope, else a name that the fix introduces.

    The new name is `device`, or `run_device` in a file that binds `device` to something else.
    """
    if in_scope is not None:
        return RunDevice(in_scope)
    name = "run_device" if _occurs(_BINDS_DEVICE, site.facts.text) else "device"
    return RunDevice(name, (RunDeviceNeed(name),))


def beside(event: ApiCall | CudaMethod | DeviceLiteral, site: Site) -> str | None:
    """The device of a tensor argument at hand, for a tensor that is made in a function and meets the arguments there.

    None where the function moves an argument itself: what is made there belongs where that goes.
    """
    found = site.facts.device_expression(event.scope, HOME) if event.function else None
    if found is None or not found.endswith(".device") or found.startswith("next("):
        return None
    for other in site.facts.events:
        if isinstance(other, Move | CudaMethod) and other.function == event.function:
            target = other.target if isinstance(other, Move) else None
            to_host = target is not None and target.device == CPU
            if other.receiver.value.device == HOME and not to_host:
                return None
    return found

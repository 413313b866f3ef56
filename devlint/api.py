"""The only module of devlint that rules import: a stable set of names. libcst comes through the lazy `cst`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devlint.facts import Facts
from devlint.facts.events import (
    STALE,
    ApiCall,
    Call,
    Clock,
    ColdTimer,
    Compare,
    Create,
    Creation,
    CudaMethod,
    DeviceLiteral,
    EarlyRead,
    Event,
    EventTimer,
    Followed,
    GeneratorMeet,
    Guards,
    HiddenCard,
    LateSetting,
    Lengths,
    Load,
    LoopEmpty,
    LoopMove,
    LoopWait,
    Meet,
    Move,
    NoDevice,
    Operand,
    OptimizerOrder,
    Parallel,
    Pin,
    RankIndex,
    Register,
    Required,
    Retained,
    RoundTrip,
    StreamUse,
    TypeTest,
    UnpinnedCopy,
    Use,
    WorkerDevice,
)
from devlint.facts.values import (
    ACCELERATORS,
    CPU,
    HOME,
    UNKNOWN,
    Device,
    Place,
    Symbol,
    Value,
    describe,
    is_surely_accelerator,
    may_be_accelerator,
)
from devlint.model import (
    Edit,
    Finding,
    Fix,
    ImportNeed,
    InsertStatement,
    LeftAlone,
    Origin,
    ReplaceBlock,
    RuleMeta,
    RunDeviceNeed,
    Safety,
    Severity,
    Span,
)
from devlint.rule import Rule, Site

if TYPE_CHECKING:
    import libcst as cst
else:

    class _LazyLibcst:
        """Stands for the module `libcst` and imports it at the first use of a name."""

        def __getattr__(self, name: str) -> Any:
            import libcst

            return getattr(libcst, name)

    cst = _LazyLibcst()

__all__ = [
    "ACCELERATORS", "CPU", "HOME", "STALE", "UNKNOWN", "ApiCall", "Call", "Clock", "ColdTimer", "Compare", "Create",
    "Creation", "CudaMethod", "Device", "DeviceLiteral", "EarlyRead", "Edit", "Event", "EventTimer", "Facts",
    "Finding", "Fix", "Followed", "GeneratorMeet", "Guards", "HiddenCard", "ImportNeed", "InsertStatement",
    "LateSetting", "LeftAlone", "Lengths", "Load", "LoopEmpty", "LoopMove", "LoopWait", "Meet", "Move", "NoDevice", "Operand",
    "OptimizerOrder", "Origin", "Parallel", "Pin", "Place", "RankIndex", "Register", "ReplaceBlock", "Required",
    "Retained", "RoundTrip", "Rule", "RuleMeta", "RunDeviceNeed", "Safety", "Severity", "Site", "Span", "StreamUse",
    "Symbol", "TypeTest", "UnpinnedCopy", "Use", "Value", "WorkerDevice", "cst", "describe", "is_surely_accelerator",
    "may_be_accelerator",
]  # fmt: skip

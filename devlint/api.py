"""The only module of devlint that rules import: a stable set of names. libcst comes through the lazy `cst`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devlint.facts import Facts
from devlint.facts.events import (
    ApiCall,
    Call,
    Clock,
    Compare,
    Create,
    Creation,
    CudaMethod,
    DeviceLiteral,
    Event,
    EventTimer,
    Guards,
    Load,
    Meet,
    Move,
    Operand,
    Register,
    Use,
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
    Origin,
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
    "ACCELERATORS", "CPU", "HOME", "UNKNOWN", "ApiCall", "Call", "Clock", "Compare", "Create", "Creation", "CudaMethod",
    "Device", "DeviceLiteral", "Edit", "Event", "EventTimer", "Facts", "Finding", "Fix", "Guards", "ImportNeed",
    "InsertStatement", "Load", "Meet", "Move", "Operand", "Origin", "Place", "Register", "Rule", "RuleMeta",
    "RunDeviceNeed", "Safety", "Severity", "Site", "Span", "Symbol", "Use", "Value", "cst", "describe",
    "is_surely_accelerator", "may_be_accelerator",
]  # fmt: skip

"""Modules of the module level that functions move: `def fit(): model.to(device)`. The functions that it calls then find
them there; of the others, which may run before, nothing is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devlint.facts.frozen import replace
from devlint.facts.text.method_names import PLACES
from devlint.facts.text.scan import FunctionScan
from devlint.facts.text.signatures import parameter_names
from devlint.facts.values import CPU, UNKNOWN

if TYPE_CHECKING:
    import ast
    from collections.abc import Mapping

    from devlint.facts.interpreter.function_runs import FunctionRuns
    from devlint.facts.text.scan import Scan
    from devlint.facts.values import Value


def movers(scan: Scan) -> dict[int, set[str]]:
    """The names of others than their own that functions call a move on, by the identity of the function's node."""
    found: dict[int, set[str]] = {}
    for move in PLACES:
        for call, caller in scan.calls.get(move, ()):
            name = getattr(getattr(call.func, "value", None), "id", None)
            if name is not None and caller is not None and not is_local(caller, name):
                found.setdefault(id(caller.node), set()).add(name)
    return found


def is_local(function: FunctionScan, name: str) -> bool:
    """Whether a function, or one inside it, binds a name or has it as a parameter."""
    return name in function.bound or name in parameter_names(function.node)


def note(machine: FunctionRuns, node: ast.AST, state: Mapping[str, Value], ended: bool = True) -> None:
    """A function was run, or calls another one, which finds the modules where they were moved before.

    Once it has ended nothing is known of them: the others may run before it.
    """
    for name in machine.movers.get(id(node), ()):
        known, moved = machine.globals.get(name), state.get(name)
        if known is None or known.kind != "module":
            continue
        sure = moved is not None and moved.kind == "module" and (moved.device == CPU or not moved.device >= CPU)
        if ended:
            machine.globals[name] = replace(known, device=UNKNOWN)
        elif moved is not None:
            machine.globals[name] = moved if sure else replace(known, device=UNKNOWN)


def settle(machine: FunctionRuns) -> None:
    """All that moves has run: nothing is known of what it moves, for those that it does not call."""
    for name in {name for names in machine.movers.values() for name in names}:
        known = machine.globals.get(name)
        if known is not None and known.kind == "module":
            machine.globals[name] = replace(known, device=UNKNOWN)

"""A clock is read before the device has finished, so the measured time misses queued work.

## What it flags
The rule reports a measured time of work that runs, or may run, on an accelerator. It reports the time if nothing waits
for the device before the clock is read the second time. The rule knows these clocks:

- `time.time`, `perf_counter`, `monotonic`, `timeit.default_timer` and `datetime.now`;
- timers of the project itself, as context managers or as a pair of start and stop calls;
- functions that are given to `timeit`;
- the notebook commands `%timeit` and `%time`.

The severity is info if the host waited for a part of the work before the second reading. An example is a loop that
reads each loss. Only the rest of the work is missing from the time.

These times are not reported:

- A call between the work and the clock waits for the device: `synchronize()`, `.item()`, `.cpu()` or `print` of a
  tensor.
- The time is compared with a limit: `time.time() - start > limit`.
- The time is shown in minutes or hours. The queued work is too short to change a time in minutes.

## Why it matters
The host queues kernels, and the device runs them later. Without a wait, the clock measures how long the host took to
queue the kernels. The measured time is often a hundredth of the true time. The next operation that waits seems to take
the rest of the time.

## Example
    import time

    import torch

    def square(x: torch.Tensor):
        start = time.perf_counter()
        y = x @ x
        return y, time.perf_counter() - start

Use instead:

    import time

    import torch

    def square(x: torch.Tensor):
        start = time.perf_counter()
        y = x @ x
        if torch.accelerator.is_available():
            torch.accelerator.synchronize()
        return y, time.perf_counter() - start

## Fix safety
The fix is unsafe because it changes the printed times, which is its purpose. A wait inside a loop also makes the loop
slower. The inserted code does nothing on a machine without an accelerator.

## Known limits
A time is reported only if there is certainly device work between the two readings. If the work is inside a function
that devlint cannot read, the time is not reported.
"""

from __future__ import annotations

import re

from devlint.api import (
    Clock,
    Facts,
    Finding,
    Fix,
    ImportNeed,
    InferredReading,
    InsertStatement,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
    Span,
    cst,
)

from ._calls import may_precede, path_to
from ._torch import has_torch

# What stands for a magic in the code of a notebook begins with this letter, unless the notebook uses it itself.
_MAGIC = "\u16a0"
# A time in minutes or hours, or for a log: the work that is still queued does not show in it.
_LONG = re.compile(r"/\s*(60|3600)\b|\btimedelta\b")


class UnsynchronizedTiming(Rule[Clock | InferredReading]):
    meta = RuleMeta(
        code="DEV401",
        name="unsynchronized-timing",
        summary="clock read while device work is still queued",
        since="0.1.0",
        level="certain / assume",
        severity=Severity.WARNING,
        fix="sometimes",
        words=("time", "perf_counter", "monotonic", "Time", "atch", "bench", "measure", _MAGIC),
    )
    event = Clock
    also = (InferredReading,)

    def suspects(self, event: Clock | InferredReading, facts: Facts) -> bool:
        if isinstance(event, InferredReading):
            rows = {_row(each.span, facts) for each in facts.events if isinstance(each, Clock)}
            return _row(event.span, facts) not in rows
        return not event.waits

    def judge(self, event: Clock | InferredReading, site: Site) -> Finding | None:
        if isinstance(event, InferredReading):
            if _is_long(site.statement, site) or _is_cut(path_to(site, site.node), site):
                return None
            message = f"`{event.name}` is read while the device may still be working"
            return Finding(event.span, message, Fix("Wait for the device before the clock is read", Safety.HINT))
        statement = site.statement
        above = path_to(site, site.node)
        if event.clock.startswith("%"):
            above = []
        if any(isinstance(node, cst.Comparison) for node in above) or _is_long(statement, site):
            return None
        if _is_cut(above, site):
            return None
        clock = event.clock if event.helper is None else event.helper
        message = f"`{clock}` {'is read' if event.helper is None else 'reads its clock'} while the device may still be working"
        because = event.because if event.work in event.because else (event.work, *event.because)
        severity = None
        if event.held_up:
            message = f"{message}: the host has waited for only a part of the work"
            severity = Severity.INFO
        return Finding(event.span, message, self._fix(event, site), because, severity)

    def _fix(self, event: Clock, site: Site) -> Fix:
        hint = Fix("Wait for the device before the clock is read", Safety.HINT)
        if event.clock.startswith(("timeit.", "%")) and event.helper is not None:
            return Fix("Use `torch.utils.benchmark.Timer`, which waits, or wait inside the timed function", Safety.HINT)
        if event.helper is not None:
            return hint
        if not may_precede(site.statement):
            return hint
        wait = _wait(event, site)
        edits = [InsertStatement(event.span, wait)]
        if not event.start_waits and _on_a_line(event.start, site):
            edits.insert(0, InsertStatement(event.start, wait))
        needs = () if "torch" in site.facts.imports.values() else (ImportNeed("torch"),)
        return Fix("Wait for the device before the clock is read", Safety.UNSAFE, tuple(edits), needs)


def _row(span: Span, facts: Facts) -> int:
    return facts.text.count("\n", 0, span.start)


def _is_long(statement: cst.CSTNode, site: Site) -> bool:
    """Whether the time is reported in minutes or hours, here or by the `timedelta` that its name is given to."""
    if _LONG.search(site.code(statement)):
        return True
    if not isinstance(statement, cst.Assign) or not isinstance(name := statement.targets[0].target, cst.Name):
        return False
    return re.search(rf"\btimedelta\([^\n]*\b{re.escape(name.value)}\b", site.facts.text) is not None


def _is_cut(above: list[cst.CSTNode], site: Site) -> bool:
    """Whether the time is cut to whole seconds at once: `int(time.time() - start)`, `elapsed // 60`."""
    for node in reversed(above[:-1]):
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.FloorDivide):
            return True
        if isinstance(node, cst.Call):
            return len(node.args) == 1 and site.code(node.func) in ("int", "round")
        if not isinstance(node, cst.Arg | cst.BinaryOperation):
            return False
    return False


def _on_a_line(span: Span, site: Site) -> bool:
    try:
        return may_precede(site.statement_at(span))
    except LookupError:
        return False


def _wait(event: Clock, site: Site) -> cst.BaseStatement:
    """A wait that does nothing on a machine without the accelerator, in the terms of the file."""
    for_cuda = event.under.allow("cuda") or not _has_accelerator(site.facts)
    module = "torch.cuda" if for_cuda else "torch.accelerator"
    synchronize = f"{site.spell(module + '.synchronize')}()"
    if for_cuda and event.under.allow("cuda"):
        return cst.parse_statement(synchronize)
    return cst.parse_statement(f"if {site.spell(module + '.is_available')}():\n    {synchronize}\n")


def _has_accelerator(facts: Facts) -> bool:
    """Whether `torch.accelerator` is there: the project says so, or nobody says and the file names no accelerator itself."""
    said = facts.torch_stated or "cuda" not in facts.text
    return said and has_torch((2, 6), facts)

"""The time between two device events is read before the events are complete.

## What it flags
The rule reports `start.elapsed_time(end)` in three cases:

- Nothing waits for the device after `end.record()`.
- An event was created without `enable_timing=True`.
- An event was never recorded, or the code recorded a different event by mistake.

## Why it matters
`elapsed_time` does not wait. It raises an error for an event that is not complete, that was not recorded, or that was
created without timing. An event is incomplete only if the device is slower than the host, so the error may be rare.

## Example
    import torch

    start = torch.Event(enable_timing=True)
    end = torch.Event(enable_timing=True)

    def measure(step):
        start.record()
        step()
        end.record()
        return start.elapsed_time(end)

Use instead:

    import torch

    start = torch.Event(enable_timing=True)
    end = torch.Event(enable_timing=True)

    def measure(step):
        start.record()
        step()
        end.record()
        end.synchronize()
        return start.elapsed_time(end)

## Fix safety
- The fix is unsafe. A wait holds up the host, and events with timing cost a little more.
- The fix replaces a wrong variable only if it is clear which recorded event is meant. Otherwise the rule makes a
  suggestion without an edit.

## Known limits
An event that is passed to another function or kept in a container is not reported. devlint assumes that the other code
records the event and waits for it.
"""

from __future__ import annotations

from devlint.api import (
    Edit,
    EventTimer,
    Facts,
    Finding,
    Fix,
    InsertStatement,
    Operand,
    Origin,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
    Span,
    cst,
)

from ._calls import may_precede, path_to, with_keyword

_MESSAGES = {
    "unsynchronized": "elapsed time is read without a wait for `{end}`: torch raises an error if the event is not complete",
    "no-timing": "the events were created without `enable_timing=True`, so `elapsed_time` raises an error",
    "never-recorded": "an event was never recorded, so `elapsed_time` raises an error",
}


class UnsynchronizedEvent(Rule[EventTimer]):
    meta = RuleMeta(
        code="DEV402",
        name="unsynchronized-event",
        summary="elapsed time is read before the device events are complete",
        since="0.1.0",
        level="certain",
        severity=Severity.ERROR,
        fix="sometimes",
        words=("elapsed_time",),
    )
    event = EventTimer

    def suspects(self, event: EventTimer, facts: Facts) -> bool:
        return True

    def judge(self, event: EventTimer, site: Site) -> Finding | None:
        message = _MESSAGES[event.problem].format(end=event.end.text)
        if event.problem == "unsynchronized":
            fix = self._wait(event, site)
        elif event.problem == "no-timing":
            fix = self._enable_timing(event, site)
        else:
            if event.recorded:
                message += f"; recorded events: {', '.join(f'`{name}`' for name in event.recorded)}"
            fix = self._rename(event, site)
        return Finding(event.span, message, fix, event.because or self._because(event))

    def _because(self, event: EventTimer) -> tuple[Origin, ...]:
        made = () if event.made is None else (Origin(event.made, "made here"),)
        recorded = () if event.recorded_at is None else (Origin(event.recorded_at, "recorded here"),)
        return (*made, *recorded)

    def _wait(self, event: EventTimer, site: Site) -> Fix:
        if not may_precede(site.statement):
            return Fix("Wait for the event before its time is read", Safety.HINT)
        wait = self._waiting(event, site)
        return Fix(f"Insert `{wait}`", Safety.UNSAFE, (InsertStatement(event.span, cst.parse_statement(wait)),))

    def _waiting(self, event: EventTimer, site: Site) -> str:
        wait = f"{event.end.text}.synchronize()"
        inner = (cst.BaseComp, cst.Lambda)
        if any(isinstance(node, inner) for node in path_to(site, site.node)):
            of_cuda = (event.end.value.type_name or "torch.cuda").startswith("torch.cuda")
            wait = site.spell("torch.cuda.synchronize" if of_cuda else "torch.accelerator.synchronize") + "()"
        return wait

    def _enable_timing(self, event: EventTimer, site: Site) -> Fix:
        edits: list[Edit | InsertStatement] = []
        for span in _constructors(event):
            call = _event_call(site, span)
            if call is not None and not _has_timing(call):
                edits.append(Edit(call, with_keyword(call, "enable_timing", cst.Name("True"))))
        title = "Create the events with `enable_timing=True`"
        if not edits:
            return Fix(title, Safety.HINT)
        between = site.facts.text[event.recorded_at.end : event.span.start] if event.recorded_at is not None else ""
        if "synchronize" not in between:
            if not may_precede(site.statement):
                return Fix(title, Safety.HINT)
            title += " and wait for them"
            edits.append(InsertStatement(event.span, cst.parse_statement(self._waiting(event, site))))
        return Fix(title, Safety.UNSAFE, tuple(edits))

    def _rename(self, event: EventTimer, site: Site) -> Fix:
        wrong = [o for o in (event.start, event.end) if o.text not in event.recorded]
        free = [name for name in event.recorded if name not in (event.start.text, event.end.text)]
        if not wrong or len(wrong) != len(free):
            return Fix("Record both events before their time is read", Safety.HINT)
        edits = tuple(Edit(site.at(o.span), site.expression(name)) for o, name in zip(wrong, free, strict=True))
        return Fix(f"Use {' and '.join(f'`{name}`' for name in free)}", Safety.UNSAFE, edits)


def _constructors(event: EventTimer) -> list[Span]:
    """Where the two events may have been made: the one to blame first."""
    spans = [] if event.made is None else [event.made]

    def add(operand: Operand) -> None:
        spans.extend(o.span for o in operand.value.because if o.path is None and o.span not in spans)

    add(event.start)
    add(event.end)
    return spans


def _event_call(site: Site, span: Span) -> cst.Call | None:
    try:
        node = site.at(span)
    except LookupError:
        return None
    if not isinstance(node, cst.Call):
        return None
    name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
    return node if isinstance(name, cst.Name) and name.value == "Event" else None


def _has_timing(call: cst.Call) -> bool:
    """`enable_timing=True` is given, or something that is not known to be false."""
    for argument in call.args:
        if argument.star or (argument.keyword is None):
            return True
        if argument.keyword.value == "enable_timing":
            return not (isinstance(argument.value, cst.Name) and argument.value.value == "False")
    return False

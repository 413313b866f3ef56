"""Device events, `torch.cuda.Event`: what is recorded with them, and whether the time between two can be read."""

from __future__ import annotations

import ast

from devlint.facts.events import EventTimer, Operand, TimerProblem
from devlint.facts.interpreter.arguments import Arguments
from devlint.facts.interpreter.tensor_methods import TensorMethods
from devlint.facts.values import NONE, NOTHING, NUMBER, Value
from devlint.model import Origin


class EventTimers(TensorMethods):
    """Adds `call_event_method`."""

    def call_event_method(self, node: ast.Call, operand: Operand, name: str, arguments: Arguments) -> Value:
        path = self.path(operand.node)
        if name == "record" and path is not None:
            self.state.recorded[path] = (self.span(node), False)
            return NONE
        if name in ("synchronize", "query", "wait"):
            if name == "synchronize":
                self.wait()
            return Value("bool") if name == "query" else NONE
        if name == "elapsed_time" and arguments.values:
            self.check_elapsed(node, operand, self.operand(arguments.nodes[0], arguments.values[0]))
            return NUMBER
        return NOTHING

    def check_elapsed(self, node: ast.Call, start: Operand, end: Operand) -> None:
        if end.value.kind != "event":
            return
        recorded = self.state.recorded
        for operand in (start, end):
            if operand.value.constant is False:
                self._elapsed(node, "no-timing", start, end, operand)
                return
        for operand in (start, end):
            path = self.path(operand.node)
            if path is not None and path not in recorded and path in self.event_names and operand.value.because:
                if path in self.state.env:
                    self._elapsed(node, "never-recorded", start, end, operand)
                    return
        path = self.path(end.node)
        if path is not None and path in recorded and not recorded[path][1]:
            self._elapsed(node, "unsynchronized", start, end, end)

    def _elapsed(self, node: ast.Call, problem: TimerProblem, start: Operand, end: Operand, blamed: Operand) -> None:
        made = blamed.value.because[0].span if blamed.value.because else None
        path = self.path(end.node) or ""
        last = self.state.recorded.get(path)
        because = [Origin(made, "the event is made here")] if made is not None else []
        if last is not None:
            because.append(Origin(last[0], "recorded here"))
        self.emit(
            EventTimer(
                self.span(node), node, tuple(because), self.guards, self.scope(), self.name,
                problem, start, end, tuple(self.state.recorded), made, last[0] if last else None,
            )
        )  # fmt: skip

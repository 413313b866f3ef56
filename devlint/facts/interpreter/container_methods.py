"""Methods of lists and dicts: what they hold after `append`, and what `get`, `pop` and `items` give."""

from __future__ import annotations

import ast

from devlint.facts.events import Operand
from devlint.facts.frozen import replace
from devlint.facts.idioms import attribute_lists, grown_lists, rows, spread
from devlint.facts.interpreter.arguments import Arguments
from devlint.facts.interpreter.event_timers import EventTimers
from devlint.facts.text.nodes import walk
from devlint.facts.values import NONE, NOTHING, Value, grown, merge

ELEMENTS = 64  # elements of a container that are known one by one


class ContainerMethods(EventTimers):
    """Adds `call_container_method` and `forget_elements`."""

    def call_container_method(self, node: ast.Call, operand: Operand, name: str, arguments: Arguments) -> Value:
        value = operand.value
        path = self.path(operand.node)
        if value.kind == "list" and self.in_init:
            grown_lists.note(self, path, name, arguments.nodes, arguments.values)
        if value.kind == "list":
            attribute_lists.note(self, path, node, name, arguments.values)
        if value.kind == "list" and name in ("append", "extend") and arguments.values:
            given = arguments.values[-1]
            if path is not None:
                if name == "extend":
                    named = isinstance(arguments.nodes[-1], ast.Attribute) and given.kind == "tensors" and given.moved
                    # a field of a batch that was moved as a whole may hold texts and numbers: `names.extend(batch.name)`
                    given = self.element(given) if not named else NOTHING
                parts: tuple[Value, ...] = (given,)
                if self.loops and name == "append" and given.split is not None and given.made:
                    parts = rows.by_turn(given, self.turn_names(node))
                for part in parts:
                    self.append(path, self.lookup(path) or value, part)
            return NONE
        if value.kind == "dict" and name in ("get", "pop", "setdefault"):
            key = arguments.values[0].constant if arguments.values else None
            if isinstance(value.elements, dict) and isinstance(key, str) and name == "get":
                stored = self.state.env.get(f"{path}[{key!r}]") if path is not None else None
                return stored or value.elements.get(key) or value.elements.get("*", NOTHING)
            if isinstance(value.elements, dict) and isinstance(key, str):
                found = value.elements.get(key, NOTHING)
                if name == "pop" and path is not None:
                    left = {k: v for k, v in value.elements.items() if k != key}
                    self.state.env[path] = replace(value, elements=left)
                    found = self.state.env.pop(f"{path}[{key!r}]", found)
                return found
            if name == "pop":
                self.forget_elements(path)
            return NOTHING
        if value.kind == "dict" and name == "update" and path is not None and path in self.state.env:
            added = spread.entries(arguments.values, arguments.named())
            if added is not None and not arguments.star and isinstance(value.elements, dict):
                self.bind(path, replace(value, elements={**value.elements, **self.stored_in(path), **added}))
                return NONE
        if value.kind == "dict" and name in ("values", "items") and isinstance(value.elements, dict):
            inner = self.values_of(path, value)
            if name == "values" and "*" not in value.elements:
                later = self.stored_in(path) if path is not None else {}
                return Value("object", elements=tuple({**value.elements, **later}.values()))
            if name == "items":
                inner = Value("tuple", elements=(Value("string"), inner))
            return Value("object", elements=(inner,))
        if path is not None and name not in ("append", "extend", "copy", "index", "count", "keys", "values", "items"):
            empty = value.kind == "list" and name == "clear"
            rest = Value("list", elements=()) if empty else replace(value, elements=None)
            self.bind(path, rest)  # the order, or what is in it, changes
        if name == "pop" and value.kind == "list":
            return self.element(value)
        return NOTHING

    def forget_elements(self, path: str | None) -> None:
        """A container loses elements that are not known: nothing is known of what is left."""
        value = self.lookup(path) if path is not None else None
        if path is not None and value is not None and value.kind in ("list", "dict"):
            self.state.env[path] = replace(value, elements=None)
            self.bind(path, self.state.env[path])

    def values_of(self, path: str | None, container: Value) -> Value:
        """Any value of a dict: those it was made with, and those stored in it since."""
        assert isinstance(container.elements, dict)
        found = {**container.elements, **(self.stored_in(path) if path is not None else {})}
        if found and all(value.kind == "list" and isinstance(value.elements, tuple) for value in found.values()):
            return grown(part for value in found.values() for part in value.parts)
        result: Value | None = None
        for value in found.values():
            result = value if result is None else merge(result, value)
        return result if result is not None else NOTHING

    def stored_in(self, path: str) -> dict[str, Value]:
        """What was stored under constant keys of a dict since it was made."""
        found: dict[str, Value] = {}
        below = f"{path}["
        for known, value in self.state.env.items():
            if known.startswith(below):
                key = known[len(below) : -1]
                if known.count("[") > path.count("[") + 1 or not known.endswith("]"):
                    continue
                found[key[1:-1] if key[:1] in "'\"" else key] = value
        return found

    def turn_names(self, node: ast.expr) -> set[str]:
        """The names that the loops around an expression bind anew in each turn."""
        own = self.scan.functions.get(id(self.function.node)) if self.function is not None else None
        around = (
            loop
            for loop in (own.assigns if own is not None else ())
            if isinstance(loop, ast.For) and loop.lineno <= node.lineno <= (loop.end_lineno or 0)
        )
        return {n.id for loop in around for n in walk(loop.target) if isinstance(n, ast.Name)}

    def append(self, path: str, container: Value, given: Value) -> None:
        """A list grows: its elements are as many as before, or one more, of one of these values."""
        known = container.elements
        if not isinstance(known, tuple):
            return
        if path.startswith("self.") and path not in self.state.env and (self.loops or self.guards.tests):
            return  # on the other path it holds what the attribute holds, see `attribute_lists`
        if len(known) >= ELEMENTS or (self.loops and len(known) >= 8):
            self.state.env[path] = replace(container, elements=None)
        elif not self.loops or given not in known:
            self.state.env[path] = replace(container, elements=(*known, given))

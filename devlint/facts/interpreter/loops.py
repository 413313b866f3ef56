"""Loops: run until nothing changes, the first turn by itself where a condition asks for it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial

from devlint.facts.frozen import replace
from devlint.facts.idioms import batches, moved_item_by_item, rows, turns
from devlint.facts.idioms.api_calls import note_truth
from devlint.facts.interpreter.conditionals import Conditionals
from devlint.facts.interpreter.machine import State, join_states
from devlint.facts.interpreter.operations import CPU_PLACE
from devlint.facts.text.nodes import statements, walk
from devlint.facts.text.signatures import parameter_names
from devlint.facts.values import CPU, GROWN, GUESS, NOTHING, UNKNOWN, Value, grown, may_be_accelerator

PASSES = 6  # over a loop's body, at most; two or three are the rule


class Loops(Conditionals):
    """Adds `for_`, `while_` and how they are left."""

    def for_(self, node: ast.For | ast.AsyncFor) -> None:
        iterated = self.evaluate(node.iter)
        element = self.turns(node.iter, iterated)
        if iterated.kind == "module" and iterated.elements is None:
            element = NOTHING  # what is in it is not shown
        if self.assume and not self.host:
            element = batches.element_of_loop(self, node, element)

        outer = self.loop_names

        def head() -> None:
            self.assign_target(node.target, element, None)
            names = [n.id for n in walk(node.target) if isinstance(n, ast.Name)]
            env = self.state.env
            placed = {n: env[n] for n in names if n in env and env[n].device}
            if placed:
                first, scope = self.span(node.body[0]), self.scope()
                self.loop_names = {**outer, **{n: (first, scope, value) for n, value in placed.items()}}
            else:
                self.loop_names = outer

        sums = {name: value for name, value in self.state.env.items() if value.zero_dim is True and value.made}
        counts = [name for name, value in self.state.env.items() if value.kind == "number"]
        placeholders = self.placeholders(node.body)
        self.loop(node.body, head, turns.index_of(node))
        self.loop_names = outer
        self.replace_placeholders(placeholders)
        for name, start in sums.items():
            end = self.state.env.get(name)
            if end is not None and start.device == CPU and CPU_PLACE in end.device and len(end.device) > 1:
                # `total = torch.tensor(0.0)` is where its terms are once it has some
                made = tuple(creation for creation in end.made if creation not in start.made)
                self.state.env[name] = replace(end, device=end.device - CPU, made=made)
        self.replace_sums(node.body, counts)
        moved = moved_item_by_item.moved_by(self, node)
        if moved is not None:
            self.bind(*moved)
            name = moved[0].removeprefix("self.")
            if name != moved[0] and self.owner is not None and not self.owner.is_module:
                self.register(self.owner, name, moved[1], node.target, None, node)
        if node.orelse:
            self.block(node.orelse)

    def while_(self, node: ast.While) -> None:
        def head() -> None:
            test = self.evaluate(node.test)
            note_truth(self, node.test)
            if test.is_tensor:
                self.wait_for(test)

        counts = [name for name, value in self.state.env.items() if value.kind == "number"]
        placeholders = self.placeholders(node.body)
        self.loop(node.body, head)
        self.replace_placeholders(placeholders)
        self.replace_sums(node.body, counts)
        if any(isinstance(n, ast.Attribute) and n.attr == "query" for n in walk(node.test)):
            self.wait()  # `while not event.query()`
        if node.orelse:
            self.block(node.orelse)

    def replace_sums(self, body: Sequence[ast.stmt], counts: Sequence[str]) -> None:
        """After a loop, which is taken to have a turn: `total = 0.0` is a tensor once `total += loss` has run.

        `counts`: the names that are numbers before it.
        """
        env = self.state.env
        mixed = [name for name in counts if is_mixed(env.get(name))]
        added = turns.added_to(body) if mixed else frozenset()
        for name in mixed:
            if name in added:
                env[name] = replace(env[name], type_name=None)

    def placeholders(self, body: Sequence[ast.stmt]) -> dict[str, Value]:
        """New CPU tensors before a loop whose names every turn of it binds anew: they are for a loop without turns."""
        env = self.state.env
        new = {name: value for name, value in env.items() if value.made and value.device == CPU}
        if not new:
            return {}
        return {name: new[name] for name in turns.renewed(body, partial(self.started, body)) if name in new}

    def started(self, body: Sequence[ast.stmt], name: str) -> list[ast.expr]:
        """What a function, or the module level, binds a name to outside of a loop; nothing for a parameter."""
        around = self.function.node if self.function is not None else self.scan.tree
        if around is None or name in parameter_names(around):
            return []
        inside = {id(node) for statement in body for node in statements(statement)}
        every = (node for node in statements(around) if id(node) not in inside)
        return [value for node in every for value in turns.bound_to(node, name)]

    def replace_placeholders(self, placeholders: dict[str, Value]) -> None:
        """After a loop, which is taken to have a turn: what the last one bound."""
        for name, start in placeholders.items():
            end = self.state.env.get(name)
            if end is None or not end.is_tensor or CPU_PLACE not in end.device:
                continue
            made = tuple(creation for creation in end.made if creation not in start.made)
            if made or len(end.device) > 1:
                device = end.device if made else end.device - CPU
                self.state.env[name] = replace(end, device=device, made=made, split=None)

    def loop(self, body: Sequence[ast.stmt], head: Callable[[], None], index: str | None = None) -> None:
        """Run a body until nothing changes: from the entry, then from what it leaves; what still changes is unknown.

        `index`: the name that counts the turns. Where a condition asks for the first turn, that is run by itself.
        """
        outer, exits = self.turn, self.first_turn(body, head, index)
        self.repeat(body, head)
        for state in exits:
            self.state = join_states(self.state, state)
        self.turn = outer

    def first_turn(self, body: Sequence[ast.stmt], head: Callable[[], None], index: str | None) -> list[State]:
        """Run a loop's first turn where it is another one than the rest; the states in which it left the loop."""
        turn = turns.first_turn(body, self.state.env, index)
        self.turn = (self.function, turn) if turn is not None else None
        if turn is None or self.loops >= 3:
            self.turn = None
            return []
        guards = self.guards
        self.state = self.state.copy()
        self.breaks.append([])
        self.continues.append([])
        self.loops += 1
        head()
        self.block(body)
        self.loops -= 1
        self.guards = guards
        for state in self.continues.pop():
            self.state = join_states(self.state, state)
        exits = self.breaks.pop()
        if self.state.dead and exits:
            self.state.dead = False
        self.turn = (self.function, turn._replace(first=False))
        return exits

    def repeat(self, body: Sequence[ast.stmt], head: Callable[[], None]) -> None:
        """Run a body from where the loop stands until nothing changes."""
        entry = self.state
        joined = entry
        exits: list[State] = []
        self.loops += 1
        self.at_entry.append(entry)
        guards = self.guards
        for attempt in range(PASSES if self.loops <= 3 else 1):
            self.state = joined.copy()
            self.breaks.append([])
            self.continues.append([])
            head()
            self.block(body)
            ends = [self.state, *self.continues.pop()]
            exits = self.breaks.pop()  # no turn follows them
            self.guards = guards
            after = joined
            for end in ends:
                end.dead = end.dead and end is self.state
                before, after = after, join_states(after, end)
                keep_grown(after, before, end)
            if not self.state.dead and self.state.work is None:
                after.work = None  # the body waits, and it is taken to run
            if same_environment(after.env, joined.env):
                joined = after
                break
            if attempt:
                widened = False
                for path, value in after.env.items():
                    known = joined.env.get(path)
                    if known is not None and known.device != value.device:
                        after.env[path] = replace(value, device=UNKNOWN, made=(), split=None)
                        widened = True
                    elif attempt >= PASSES - 2 and value.device and entry.env.get(path) is not value:
                        # values are handed along a chain of names: nothing the body touches is sure
                        after.env[path] = replace(value, device=UNKNOWN, made=(), split=None)
                        widened = True
                if not widened:
                    joined = after
                    break
            joined = after
        self.loops -= 1
        self.at_entry.pop()
        for state in exits:
            before, joined = joined, join_states(joined, state)
            keep_grown(joined, before, state)
        joined.dead = False
        self.state = joined

    def break_(self, node: ast.Break) -> None:
        if self.breaks:
            self.breaks[-1].append(self.state.copy())
        self.state.dead = True

    def continue_(self, node: ast.Continue) -> None:
        if self.continues:
            self.continues[-1].append(self.state.copy())
        self.state.dead = True


def is_mixed(value: Value | None) -> bool:
    """Whether a value is a tensor that may be on an accelerator, or a number by another path."""
    return (
        value is not None and value.kind == "tensor" and value.type_name == GUESS and may_be_accelerator(value.device)
    )


def keep_grown(after: State, before: State, end: State) -> None:
    """A list that a pass of a loop appends to holds what both the entry and the pass put into it."""
    for path, value in end.env.items():
        known = before.env.get(path)
        if known is None or value.kind != "list" or known is value or known.kind != "list":
            continue
        if isinstance(value.elements, tuple) and isinstance(known.elements, tuple):
            several = len(value.elements) != len(known.elements) or known.type_name == GROWN
            if several and any(map(rows.holds_tensors, value.elements)):
                after.env[path] = grown(known.elements + value.elements)


def same_environment(a: dict[str, Value], b: dict[str, Value]) -> bool:
    if len(a) != len(b):
        return False
    for path, value in a.items():
        other = b.get(path)
        if other is not value and (other is None or other.kind != value.kind or other.device != value.device):
            return False
    return True

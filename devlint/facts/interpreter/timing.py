"""Elapsed times that helpers measure: context managers and classes with a stopwatch, and functions handed to `timeit`."""

from __future__ import annotations

import ast
import re
from functools import partial

from devlint.facts.events import NO_GUARDS, Clock, Guards
from devlint.facts.idioms.stopwatches import Step, Stopwatch, of_class, of_generator
from devlint.facts.interpreter.arguments import Arguments
from devlint.facts.interpreter.imported import Imported
from devlint.facts.project.adopted import AdoptedClass
from devlint.facts.text.classes import ClassFacts
from devlint.facts.text.collect import qualified
from devlint.facts.text.names import Imports
from devlint.facts.values import Reading, Value
from devlint.model import Origin

_RUNES = ("\u16a0", "\u16ea")  # letters of the names that stand for magics in notebooks
_REPEATERS = frozenset({"timeit.timeit", "timeit.repeat"})
#: Names of helpers of other files that are looked at.
_TIMES = re.compile(r"tim(e|er|ing)|watch|bench|measure|elapsed|latency|profil", re.IGNORECASE)
_STARTED = ".#started"  # below the path of an object, in the state


class Timing(Imported):
    """Adds the stopwatches of `with` statements and of objects, and `timeit`."""

    def entered(self, node: ast.expr, value: Value) -> tuple[Stopwatch, Reading, Imported] | None:
        """The stopwatch that a context manager starts here, with its first reading and the file that defines it."""
        found = self.stopwatch(node, value)
        if found is None:
            return None
        watch, home = found
        if watch.start_waits:
            self.wait()
        return watch, self.current_reading(watch.start if home is self else node, watch.clock), home

    def left(self, node: ast.expr, started: tuple[Stopwatch, Reading, Imported]) -> None:
        """The context manager reads its clock again."""
        watch, first, home = started
        self.read(node, watch, first, home)

    def stopwatch(self, node: ast.expr, value: Value) -> tuple[Stopwatch, Imported] | None:
        """What a context manager measures, and the interpreter of the file that defines it."""
        class_ = self.classes.get(value.type_name) if value.kind == "object" and value.type_name else None
        if class_ is not None:
            for step, home in self.steps_of(class_):
                if (step.started_by, step.read_by) == ("__enter__", "__exit__"):
                    return step.watch, home
            return None
        if not isinstance(node, ast.Call):
            return None
        name = qualified(node.func, self.imports) or ""
        own = self.functions.get(name)
        if own is None and name.startswith("self.") and self.owner is not None:
            method = self.owner.method(name[5:])
            own_node = method[1] if method is not None and not method[0].abroad else None
        else:
            own_node = own.node if own is not None and not isinstance(own.node, ast.Lambda) else None
        if own_node is not None:
            watch = of_generator(own_node, partial(qualified, imports=self.imports))
            return (watch, self) if watch is not None else None
        if "." not in name or name.startswith("torch.") or _TIMES.search(name.rpartition(".")[2]) is None:
            return None
        found = self.find(name)
        function = found.function if found is not None and found.kind == "function" else None
        if found is None or found.flow is None or function is None or isinstance(function.node, ast.Lambda):
            return None
        watch = of_generator(function.node, partial(qualified, imports=found.flow.imports))
        return (watch, found.flow) if watch is not None else None

    def steps_of(self, class_: ClassFacts) -> list[tuple[Step, Imported]]:
        """The stopwatches of a class. One of another file is looked at when its name says that it times something."""
        home: Imported = self
        imports: Imports = self.imports
        if isinstance(class_, AdoptedClass):
            if _TIMES.search(class_.found.short) is None or class_.home is None:
                return []
            home, imports = class_.home, class_.home.imports
        known = self.stopwatches.get(class_.name)
        if known is None:
            known = self.stopwatches[class_.name] = of_class(class_, partial(qualified, imports=imports))
        return [(step, home) for step in known]

    def call_on(self, node: ast.Call, receiver: Value, function: ast.Attribute, arguments: object) -> Value:
        class_ = self.classes.get(receiver.type_name) if receiver.kind == "object" and receiver.type_name else None
        path = self.path(function.value) if class_ is not None else None
        if class_ is not None and path is not None and path != "self":
            for step, home in self.steps_of(class_):
                key = f"{path}{_STARTED}.{step.started_by}.{step.read_by}"
                if function.attr == step.read_by:
                    first = self.state.env.get(key)
                    if first is not None and first.reading is not None:
                        self.read(node, step.watch, first.reading, home)
                elif function.attr == step.started_by:
                    if step.watch.start_waits:
                        self.wait()
                    place = step.watch.start if home is self else node
                    self.bind(key, Value("clock", reading=self.current_reading(place, step.watch.clock)))
        return Imported.call_on(self, node, receiver, function, arguments)

    def read(self, node: ast.expr, watch: Stopwatch, first: Reading, home: Imported) -> None:
        """The second reading of a stopwatch, which the code reaches at `node`."""
        if watch.stop_waits:
            self.wait()
        here = home is self
        place, elapsed = (watch.stop, watch.elapsed) if here else (node, node)
        helper = None if here else self.text(node.func if isinstance(node, ast.Call) else node)
        guards = NO_GUARDS if here else self.guards
        self.note_elapsed(first, place, elapsed, helper, guards, self.origin(node, "the timed section starts here"))

    def note_elapsed(
        self,
        first: Reading,
        stop: ast.expr,
        elapsed: ast.expr,
        helper: str | None,
        guards: Guards,
        *because: Origin,
    ) -> None:
        """Emit `Clock` when device work was queued between a first reading and one at `stop`, now."""
        second = self.current_reading(stop, first.clock)
        if second.last is None or second.works <= first.works:
            return
        self.emit(
            Clock(
                second.span, elapsed, (*because, second.last), guards, {}, self.name, first.clock, first.span, second.last,
                second.pending is None, first.pending is None, second.level, second.device_type, helper,
                second.waited > first.works,
            )
        )  # fmt: skip

    def call_namespace(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        if qualname in _REPEATERS and arguments.values:
            self.repeated(node, qualname, arguments.nodes[0], arguments.values[0])
        return Imported.call_namespace(self, node, qualname, arguments)

    def timed_by_magic(self, node: ast.AnnAssign, magic: str) -> None:
        """`%timeit` runs an expression, or an assignment that is not kept, between two readings."""
        timed = node.value if node.value is not None else node.annotation
        first = self.current_reading(timed, magic)
        self.evaluate(timed)
        self.note_elapsed(first, timed, timed, magic, self.guards)

    def repeated(self, node: ast.Call, qualname: str, timed: ast.expr, value: Value) -> None:
        """A function is run between two readings of `timeit`'s clock."""
        if value.kind != "function":
            return
        first = self.current_reading(node, qualname)
        call = ast.copy_location(ast.Call(timed, [], []), timed)
        self.call_value(call, value, Arguments())
        because = Origin(self.span(timed), "this function is timed")
        self.note_elapsed(first, node, node, self.text(node.func), self.guards, because)


def timing_magic(node: ast.AnnAssign) -> str | None:
    """The magic of a notebook that runs what stands as the annotation of a name made of one rune, as `embedded` writes it."""
    target = node.target
    if not isinstance(target, ast.Name) or not _RUNES[0] <= target.id[0] <= _RUNES[1] or len(set(target.id)) > 1:
        return None
    return "%time" if len(target.id) < len("%timeit") else "%timeit"

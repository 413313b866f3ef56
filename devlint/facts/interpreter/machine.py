"""The state that the device analysis threads through a function, and what every part of it needs: names, spans, events.

`Machine` is the base of the interpreter. Every module of these adds one subject to the class of the module before it:

* where things are: operations, devices
* calls of imported names: iteration, arguments, opaque_calls, host_reads, factories, sized_tensors, torch_functions,
  torch_classes, special_calls, builtin_calls, calls
* what objects have: attributes, moves, module_calls, tensor_methods, event_timers, container_methods, methods
* expressions: subscripts, narrowing, operators, expressions
* the file's own functions and classes: registration, entry, objects, unread_calls, function_runs, summaries, definitions,
  own_classes, own_methods, functions, imported, timing
* statements: assignments, conditionals, loops, flow

A method that extends another one and is called very often names the class below it instead of asking `super()`, which looks
through every class in between each time.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from devlint.facts.events import NO_GUARDS, Event, Guards, NoLeaf, Operand, Scope
from devlint.facts.frozen import replace
from devlint.facts.text.bindings import Bindings, read_bindings
from devlint.facts.text.defined import Function
from devlint.facts.text.names import Imports
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import last_name
from devlint.facts.text.scan import Scan
from devlint.facts.values import NOTHING, UNKNOWN, Device, Place, Reading, Symbol, Value, either
from devlint.model import Origin, Span
from devlint.settings import MovingFunction

if TYPE_CHECKING:
    from devlint.facts.idioms.lengths_beside_data import Uses
    from devlint.facts.idioms.restored import Entry
    from devlint.facts.idioms.stopwatches import Step
    from devlint.facts.idioms.turns import Turn
    from devlint.facts.result import Facts
    from devlint.facts.text.callers import Callers
    from devlint.facts.text.classes import ClassFacts, Kept
    from devlint.facts.text.parameters import Evidence


class SourceLike(Protocol):
    """What the analysis needs of a source file."""

    path: str
    text: str

    def span(self, node: ast.AST) -> Span: ...

    def parts(self) -> Sequence[int]: ...


_STEPS = (ast.Attribute, ast.Subscript)  # what an access path is made of, beside a name
SNAPSHOTS = 400  # copies of the scope that one function may ask for


class OutOfBudget(Exception):
    """A function took more steps than its size allows; nothing more is said about it."""


def root(path: str) -> str:
    """The name that an access path starts with."""
    if "." not in path and "[" not in path:
        return path
    return path.replace("[", ".", 1).split(".", 1)[0]


@dataclass(slots=True)
class State:
    """What is known at one point of a function.

    `env` maps access paths to values. `work`: device work queued and not waited for; `last`: the last device work at
    all; `count`: how many, and `waited`: at the last wait. `recorded`: paths of device events that were recorded, with
    whether a wait followed.
    `card`: the index of the current card where the code fixes it. `default`: the default device where it was changed.
    """

    env: dict[str, Value]
    work: tuple[Origin, str, str | None] | None = None
    last: tuple[Origin, str, str | None] | None = None
    count: int = 0
    recorded: dict[str, tuple[Span, bool]] = field(default_factory=dict)
    card: int | None = None
    default: Value | None = None
    dead: bool = False
    waited: int = 0

    def copy(self) -> State:
        return State(
            dict(self.env),
            self.work,
            self.last,
            self.count,
            dict(self.recorded),
            self.card,
            self.default,
            self.dead,
            self.waited,
        )

    def adopt(self, other: State) -> None:
        """Become `other`."""
        self.env, self.work, self.last, self.count = other.env, other.work, other.last, other.count
        self.waited = other.waited
        self.recorded, self.card, self.default, self.dead = other.recorded, other.card, other.default, other.dead


def known_on_one_side(path: str, value: Value) -> Value:
    """What is at a path after two branches of which one alone says so: `state["mean"] = torch.zeros(n)` where there is none."""
    if "[" in path:
        return either(value, NOTHING)
    return value if "." not in path else NOTHING


def is_flag(a: Value, b: Value) -> bool:
    """Whether two values are those of a flag that says which of two paths was taken: `on = True` and `on = False`."""
    constants = a.constant, b.constant
    if not {a.kind, b.kind} <= {"bool", "number"} or any(isinstance(c, str) or c is None for c in constants):
        return False
    return bool(a.constant) is not bool(b.constant)


def join_states(a: State, b: State, guard: str | None = None, told: set[str] | None = None) -> State:
    """What is known after either. Paths known on one side only stay as they are when they are bound there alone.

    With `guard` (a condition that held in `a` and not in `b`), values that differ remember both, so that the same
    condition later tells them apart again; also after a join of two that it told apart, as at the end of a loop's turn.
    The condition is added to `told` where there are such values.
    """
    if a.dead:
        return b
    if b.dead:
        return a
    env, other = dict(a.env), b.env
    shared = 0
    for path, value in a.env.items():
        mate = other.get(path)
        if mate is value:
            shared += 1
        elif mate is None:
            env[path] = known_on_one_side(path, value)
        else:
            shared += 1
            merged = either(value, mate)
            if guard is not None and (value.device != mate.device or value.made != mate.made or is_flag(value, mate)):
                if told is not None:
                    told.add(guard)
                merged = replace(merged, split=(guard, replace(value, split=None), replace(mate, split=None)))
            elif value.split is not None and mate.split is not None and value.split[0] == mate.split[0]:
                key, first, second = value.split  # both sides still know what the same condition told apart
                merged = replace(merged, split=(key, either(first, mate.split[1]), either(second, mate.split[2])))
            env[path] = merged
    for path, value in other.items() if shared < len(other) else ():
        if path not in env:
            env[path] = known_on_one_side(path, value)
    recorded = dict(a.recorded)
    for path, (span, waited) in b.recorded.items():
        recorded[path] = (span, waited and recorded.get(path, (span, True))[1])
    return State(
        env,
        a.work or b.work,
        a.last or b.last,
        max(a.count, b.count),
        recorded,
        a.card if a.card == b.card else None,
        a.default if a.default == b.default else NOTHING,
        waited=max(a.waited, b.waited),
    )


class Machine:
    """Base of the interpreter for one file."""

    def __init__(self, source: SourceLike, imports: Imports, facts: Facts, assume_accelerator: bool) -> None:
        self.source = source
        self.imports = imports
        self.facts = facts
        self.assume = assume_accelerator
        self.events: dict[tuple[object, ...], Event] = {}
        self.lacking: set[str] = set()  # names of torch that an import asks for by itself, and that some torch lacks
        self.functions: dict[str, Function] = {}
        self.defined: dict[int, str] = {}  # the keys of module-level functions in `functions`, by identity of the node
        self.classes: dict[str, ClassFacts] = {}
        self.globals: dict[str, Value] = {}
        self.rebound: set[str] = set()  # module-level names that some function declares global
        self.state = State({})
        self.guards: Guards = NO_GUARDS
        self.function: Function | None = None
        self.name = ""  # qualified name of the function under analysis
        self.owner: ClassFacts | None = None
        self.loops = 0
        self.returns: list[Value] = []
        self.handed_on: dict[int, tuple[str, Value]] = {}  # see `returned_by_helpers`, by the index in `returns`
        self.modules_given: dict[str, Value] = {}  # the modules that the function is called with, by parameter
        self.given_tensor: dict[str, bool] = {}  # the parameters of which the call shows whether they are tensors
        self.trying = False  # the file tries out what it defines, with data of its own
        self.given_host = False  # whether all that the function is called with is on the host, tensors among it
        self.moved_before: dict[str, Value] = {}  # what has become of these where an earlier `return` leaves it
        self.ended_moved: dict[str, Value] = {}  # the same of the last function that was run, at its end
        self.yields = False
        self.stack: list[Function] = []
        self.steps = 0
        self.budget = 0
        self.anew: frozenset[ast.stmt] = frozenset()  # statements that run even where those before them end the run
        self.host = False  # the code under analysis runs on the host by contract
        self.intents: Mapping[int, str] = {}  # rows whose comment states the device of what is assigned there
        self.helpers: Mapping[str, MovingFunction] = {}  # the project's own functions that move what they are given
        self.scan = Scan()
        self.callers: Callers
        self.nonlocals: frozenset[str] = frozenset()  # names of the function that a nested one rebinds
        self.split_names: set[str] = set()  # names in conditions that told values apart
        self.snapshots = 0  # copies of the scope made in this function
        self.last_scope: Scope = {}
        self.optimizers: set[str] = set()  # the entries of states that stand for an optimizer, see `ordering`
        self.state_of_run = object()  # stands for the run of the function that is being run
        self.noted_in: dict[Span, object] = {}  # the run in which a name of torch was last noted, by its place
        self.event_names: set[str] = set()  # names that stand for one device event, made where they were bound
        self.split_keys: set[str] = set()  # conditions that may have told values apart
        self.told_apart: set[str] = set()  # those that did
        self.told_before: frozenset[str] = frozenset()  # those that did at the module level, by another interpreter
        self.rooted: set[str] = set()  # names that have paths below them
        self.loop_names: dict[str, tuple[Span, Scope, Value]] = {}  # names bound by the targets of enclosing loops
        # device strings of the file by where they stand, with the function around them and what they stand under
        self.literals: dict[Span, tuple[ast.expr, str, Guards]] = {}
        self.compared: set[int] = set()  # by identity: what a comparison reads
        self.evidence: dict[int, Evidence] = {}  # by the identity of a function's node
        self.assumed: dict[Span, tuple[Function, str]] = {}  # arguments assumed to be tensors of the home device
        self.assumed_modules: dict[Span, tuple[Function, str]] = {}  # arguments assumed to be modules there
        self.card_symbols: set[Place | Symbol] = set()  # what `.cuda(gpu)` is given: a card, whatever its name holds
        self.sized: dict[Span, Operand] = {}  # tensors made here, by call, with the tensor whose size they have
        self.leaves: dict[Span, NoLeaf] = {}  # by move: what an optimizer refuses
        #: the devices of tensors that are here or there, or nobody knows where: `x.device`
        self.unsure: Device = UNKNOWN
        self.beside_host: set[Span] = set()  # tensors made here, by call, that met a tensor of the host
        self.itemized: set[Span] = set()  # tensors made here, by call, that are filled item by item: `t[i][j] = x`
        self.counted: dict[
            Span, bool
        ] = {}  # tensors made here, by call: whether all that is written into them is numbers
        self.substitutes: set[int] = set()  # functions that handlers define for versions without a name, by identity
        self.redefined: set[str] = set()  # names of functions that the module level defines more than once
        self.built: dict[str, list[Device]] = {}  # where the parts of a module of the file are when it is made
        self.empty_containers: dict[tuple[str, str], tuple[ast.stmt, ast.expr, ast.expr, Value]] = {}
        self.local_parts: dict[tuple[int, str], list[Value]] = {}  # what local lists grow by, see `grown_lists`
        # what lists that are attributes grow by, by class and name, and the calls that were seen to append
        self.attribute_parts: dict[tuple[str, str], dict[Span, Value]] = {}
        # what lists that are kept on the CPU hold, in the same way
        self.host_lists: dict[tuple[str, str], list[Value]] = {}
        # what lists hold that the file fills with what it brings to the CPU, by the names of attributes
        self.lists_of_host: dict[str, list[Value]] | None = None
        # what hooks put into containers, see `devlint.facts.idioms.filled_by_hooks`
        self.hook_stores: dict[str, list[tuple[ast.expr, bool, ast.expr]]] | None = None
        # the expressions of lists and tuples that calls open, by identity
        self.containers: set[int] = set()
        # see `devlint.facts.idioms.lists_in_dicts`
        self.filled_keys: dict[str, set[str]] | None = None
        # the arms beside conversions of a name, by the identity of the function, see `converted`
        self.beside_conversions: dict[tuple[int, str], list[list[ast.AST]]] = {}
        self.kept: dict[int, Kept] = {}  # what the methods of classes keep, by the identity of the class
        self.lengths: dict[Span, Uses] = {}  # what is done with arguments that are lengths by their name, by argument
        self.restored: dict[Span, Entry] = {}  # attributes that come back from a checkpoint, by the place of the entry
        self.fallbacks: set[Span] = set()  # device strings that are one arm of a choice
        self.no_movers: set[tuple[int, str]] = (
            set()
        )  # functions of other files, by who calls them, see `idioms.no_movers`
        self.collators: set[str] = set()  # functions given as `collate_fn`
        self.file_holds: set[str] = set()  # device types that a mark on the whole file requires
        self.default: Value | None = None  # the default device that module-level code sets
        self.lambdas: dict[str, tuple[ast.Lambda, Function | None]] = {}  # by type name, with where they were made
        # the calls that made objects, by their place: the class, the `Arguments`, the default device there
        self.constructions: dict[Span, tuple[ClassFacts, Any, Value]] = {}
        self.read_only: dict[
            tuple[int, str], bool
        ] = {}  # whether a function, by identity, only reads an argument, by name
        self.partials: dict[str, tuple[Value, object]] = {}  # what is called, and `Arguments`, by type name
        self.stopwatches: dict[str, list[Step]] = {}  # by class
        self.ready: set[str] = set()  # classes whose `__init__` was run
        self.last_options: dict[
            int, frozenset[str]
        ] = {}  # by the last `elif` of a chain: the names that each option binds
        self.breaks: list[list[State]] = []
        self.at_entry: list[State] = []  # the states in which the loops around were entered
        self.continues: list[list[State]] = []
        self.watched: dict[ast.AST, dict[str, Value]] = {}  # arguments of loaders and parallel wrappers, by call
        self.turn: tuple[Function | None, Turn] | None = None  # the turn of the innermost loop, and its function
        self.module_level = False  # module-level code is being run
        self.muted = False  # another file asks: nothing is reported
        self.awaited = False  # a block that is there to fail, of `pytest.raises`, is being run
        self.in_init = False  # an `__init__`, or a method it calls, is being run
        self.decorating = False  # a decorator is being evaluated
        self.in_default = False  # a default value (of a parameter, an option, a field) is being evaluated
        self.knows_torch = imports.mentions_torch
        self.packs = "pack_padded_sequence" in source.text
        self.statement_value: ast.expr | None = None  # the expression that is the whole statement under analysis
        self.taken_apart: dict[ast.expr, int] = {}  # calls whose results go to several names, with how many
        self.dropped_item: ast.expr | None = None  # what such a statement makes several of, see `idioms.dropped_items`
        self._namespaces: dict[str, Value] = {}
        self._paths: dict[ast.expr, str | None] = {}  # what `path` gave
        self._texts: dict[ast.AST, str] = {}  # what `text` gave
        self._keys: dict[ast.expr, tuple[str, str | None]] = {}  # of conditions, see `keys_of`

    @cached_property
    def bound_values(self) -> dict[str, list[ast.expr]]:
        """What the assignments of the file bind, by the last names of their targets."""
        found: dict[str, list[ast.expr]] = {}
        for node in walk(self.scan.tree) if self.scan.tree is not None else ():
            if isinstance(node, ast.Assign):
                for name in set(map(last_name, node.targets)):
                    found.setdefault(name, []).append(node.value)
        return found

    @cached_property
    def plots(self) -> bool:
        """Whether the file imports matplotlib."""
        return any(target.split(".", 1)[0] == "matplotlib" for target in self.imports.names.values())

    @cached_property
    def hooks(self) -> bool:
        """Whether the file registers hooks that run with a `forward`."""
        return not self.scan.calls.keys().isdisjoint(("register_forward_hook", "register_forward_pre_hook"))

    @cached_property
    def bindings(self) -> Bindings:
        """What the file gives its names."""
        return read_bindings(self.scan)

    # -- positions and text -------------------------------------------------------------------------------------

    def span(self, node: ast.AST) -> Span:
        return self.source.span(node)

    def text(self, node: ast.AST) -> str:
        known = self._texts.get(node)
        if known is None:
            span = self.source.span(node)
            known = self._texts[node] = self.source.text[span.start : span.end]
        return known

    def origin(self, node: ast.AST, text: str) -> Origin:
        return Origin(self.source.span(node), text)

    def operand(self, node: ast.expr, value: Value) -> Operand:
        span = self.source.span(node)
        return Operand(span, node, self.source.text[span.start : span.end], value)

    # -- names -----------------------------------------------------------------------------------------------------

    def namespace(self, qualname: str) -> Value:
        if qualname == "torch.torch":
            qualname = "torch"  # the package is an attribute of itself
        value = self._namespaces.get(qualname)
        if value is None:
            value = self._namespaces[qualname] = Value("namespace", type_name=qualname)
        return value

    def path(self, node: ast.expr) -> str | None:
        """The access path of an expression: `x`, `self.model`, `state["step"]`, `pair[0]`; None for anything else."""
        if isinstance(node, ast.Name):
            return node.id
        known = self._paths.get(node, "")
        if known != "" or not isinstance(node, _STEPS):
            return known or None
        base = self.path(node.value)
        path: str | None = None
        if base is not None and isinstance(node, ast.Attribute):
            path = f"{base}.{node.attr}"
        elif base is not None and isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            key = node.slice.value
            path = f"{base}[{key!r}]" if isinstance(key, (str, int)) else None
        self._paths[node] = path
        return path

    def size_of(self, node: ast.AST) -> int:
        """How many nodes a function or class has; the file's size for what is neither."""
        found = self.scan.functions.get(id(node))
        return found.size if found is not None else self.scan.size

    def reset(self) -> None:
        """Back to module level, after an analysis was broken off."""
        self.state, self.guards, self.function, self.owner, self.name = State({}), NO_GUARDS, None, None, ""
        self.stack, self.breaks, self.continues, self.returns, self.loops, self.at_entry = [], [], [], [], 0, []
        self.host = self.in_init = self.in_default = False
        self.loop_names, self.statement_value, self.nonlocals, self.turn = {}, None, frozenset(), None

    def lookup(self, path: str) -> Value | None:
        """What is known at an access path, by the nearest scope that binds it. None: bound nowhere."""
        value = self.state.env.get(path)
        if value is not None:
            return value
        if self.owner is not None and path.startswith("self."):
            name = path[5:]
            if "." not in name and "[" not in name:
                return self.owner.attribute(name)
            return None
        return self.around(path)

    def around(self, path: str) -> Value | None:
        """What is known at an access path by the scopes around the function that is run."""
        if self.function is None:
            return None
        value = self.function.closure.get(path)
        if value is not None:
            return value
        if path in self.rebound and "." not in path and "[" not in path:
            return NOTHING if path in self.globals else None
        return self.globals.get(path)

    def bind(self, path: str, value: Value) -> None:
        """Assign: what was known below the path is forgotten."""
        env, name = self.state.env, path
        if "." in path or "[" in path:
            name = root(path)
            self.rooted.add(name)
        if name in self.rooted:
            dot, bracket = path + ".", path + "["
            for stale in [p for p in env if p.startswith((dot, bracket))]:
                del env[stale]
            self.steps += len(env) >> 4
        if name in self.split_names:
            self.forget_splits(name if "[" in path else path)
        if path in self.nonlocals or (self.function is None and path in self.rebound):
            value = NOTHING  # another function changes it
        env[path] = value

    def forget_splits(self, name: str) -> None:
        """A name or attribute in a condition is rebound: the condition no longer tells apart what it did."""
        for path, value in self.state.env.items():
            if value.split is not None and re.search(rf"\b{re.escape(name)}\b", value.split[0]):
                self.state.env[path] = replace(value, split=None)

    def leave_scope(self, names: set[str], before: Mapping[str, Value]) -> None:
        """Names of a comprehension or of a lambda's parameters go out of scope; what they hid is there again."""
        env = self.state.env
        for path in [p for p in env if root(p) in names]:
            del env[path]
        env.update({p: v for p, v in before.items() if root(p) in names})

    def forget(self, path: str) -> None:
        self.bind(path, NOTHING)

    # -- events ----------------------------------------------------------------------------------------------------

    def emit(self, event: Event, *key: object) -> None:
        """Record an event once; a later pass over the same place replaces what an earlier one said."""
        if self.awaited:
            return  # the block is there to fail
        self.events[(type(event).__name__, event.span, *key)] = event

    def scope(self) -> Scope:
        """What is in scope here, as a copy. In a function with very many copies the last one serves for the rest."""
        self.snapshots += 1
        if self.snapshots > SNAPSHOTS:
            return self.last_scope
        self.last_scope = scope = self._scope()
        return scope

    def _scope(self) -> dict[str, Value]:
        scope = dict(self.globals) if self.function is not None else {}
        if self.function is not None:
            scope.update(self.function.closure)
        if self.owner is not None:
            for name, value in self.owner.attributes.items():
                scope[f"self.{name}"] = value
        scope.update(self.state.env)
        return scope

    def step(self, node: ast.AST) -> None:
        self.steps += 1
        if self.steps > self.budget:
            raise OutOfBudget

    def evaluate(self, node: ast.expr) -> Value:
        raise NotImplementedError

    def hand_over(self, node: ast.expr, value: Value) -> None:
        """A function of the file is given to something, which calls it under what holds here: `mp.spawn(worker)`."""

    def block(self, statements: Sequence[ast.stmt]) -> None:
        raise NotImplementedError

    def call_function(self, function: Function, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        raise NotImplementedError

    def call_imported(self, node: ast.Call, qualname: str, arguments: object) -> Value | None:
        raise NotImplementedError

    def by_star(self, name: str) -> str | None:
        """The qualified name that a star import of another file of the project gives a name; None without one."""
        return None

    def imported_value(self, qualname: str) -> Value | None:
        raise NotImplementedError

    def readable(self, function: ast.expr) -> ast.AST | None:
        raise NotImplementedError

    def qualify(self, node: ast.expr) -> str | None:
        """The qualified name that an expression names, None when it names none."""
        value = self.evaluate(node)
        return value.type_name if value.kind in ("namespace", "class", "function") else None

    def asked(self, node: ast.expr) -> Value:
        """What is known of a part of a condition, which may be a flag or a device that another file binds."""
        value = self.evaluate(node)
        if value.kind == "namespace" and value.type_name is not None and not value.type_name.startswith("torch."):
            return self.imported_value(value.type_name) or value
        return value

    def current_reading(self, node: ast.AST, clock: str) -> Reading:
        work, last = self.state.work, self.state.last
        level = (last or work or (None, "assume", None))[1]
        type = (last or work or (None, "assume", None))[2]
        return Reading(
            self.span(node),
            clock,
            work[0] if work else None,
            last[0] if last else None,
            "certain" if level == "certain" else "assume",
            type,
            self.state.count,
            self.state.waited,
        )

    def wait(self) -> None:
        """The host waits for the device here."""
        self.state.work, self.state.waited = None, self.state.count
        for path, (span, _) in self.state.recorded.items():
            self.state.recorded[path] = (span, True)

    def queue(self, node: ast.AST, what: str, level: str, type: str | None) -> None:
        """Device work is queued here."""
        entry = (self.origin(node, what), level, type)
        self.state.work = self.state.last = entry
        self.state.count += 1

"""`analyse`: the device facts of one file, from its `ast`."""

from __future__ import annotations

import ast
import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING

from devlint.facts.events import NO_GUARDS, DeviceLiteral, Event, Guards, Register
from devlint.facts.frozen import replace
from devlint.facts.idioms import grown_lists, shared_modules, unregistered_leaves
from devlint.facts.idioms.given_modules import given_modules
from devlint.facts.idioms.given_parameters import is_given_parameter
from devlint.facts.idioms.hidden_in_functions import hidden_in_functions
from devlint.facts.idioms.put_into_others import is_put_into_another
from devlint.facts.idioms.rows_by_old_index import are_rows_moved
from devlint.facts.idioms.stateless_modules import are_stateless
from devlint.facts.idioms.unseen_modules import unseen_modules
from devlint.facts.interpreter.flow import Flow
from devlint.facts.interpreter.imported import Imported
from devlint.facts.interpreter.machine import OutOfBudget, SourceLike, State
from devlint.facts.objections.programs import is_host_program
from devlint.facts.project.project import Loaded, Project, Reach
from devlint.facts.result import Facts
from devlint.facts.surveys.survey import survey
from devlint.facts.text.callers import Callers
from devlint.facts.text.classes import ClassFacts, lineage
from devlint.facts.text.collect import Definition, collect_class, definitions, qualified, settle
from devlint.facts.text.defined import Function
from devlint.facts.text.names import Imports, collect_imports
from devlint.facts.text.nodes import statements, walk
from devlint.facts.text.parameters import makes_tensor
from devlint.facts.text.references import is_own_attribute, is_self_attribute, last_name
from devlint.facts.text.scan import Scan, scan
from devlint.facts.text.shown_torch import may_define_modules, shows_torch
from devlint.facts.text.signs import moves
from devlint.facts.text.trained import is_trained
from devlint.facts.values import Value, merge
from devlint.model import Origin
from devlint.project_files import Search
from devlint.settings import Settings
from devlint.source import Source

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.calling.listener import Listener

#: Steps that a function may take, as a multiple of its number of nodes, and at least this many.
BUDGET_FACTOR = 60
BUDGET_LEAST = 20_000
#: Python frames that the analysis may nest. Several stand for one level of an expression.
RECURSION = 4000
#: Tensor types that leave the default device where it is [torch/__init__.py, `set_default_tensor_type`].
_CPU_TYPE = re.compile(r"torch\.(?:Float|Double|Half|BFloat16)Tensor")
#: Names of helpers that may set where new tensors are made, and the functions among such names that are known.
_SETS_DEFAULT = re.compile(
    r"(?:^|_)(?:set|use|change|switch|push|enter|with|init)\w*_defaults?(?:_|\Z)|default_(?:device|tensor)"
)
_NO_PLACE = frozenset({"set_default_tensor_type", "set_default_dtype", "set_defaults", "get_default_device"})


def analyse(tree: ast.Module, source: SourceLike, settings: Settings, project: Project | None = None) -> Facts:
    """Interpret a file: module level first, then every function that nobody has called with known arguments.

    Events come sorted by span. Functions whose budget ran out are counted in `budget_hits`, and nothing more is said.
    With `project`, imported functions and classes are looked up on disk; `Facts.read` tells what was.
    """
    return interpret(tree, source, settings, Flow, project)


def interpret(
    tree: ast.Module,
    source: SourceLike,
    settings: Settings,
    interpreter: Callable[..., Flow],
    project: Project | None = None,
) -> Facts:
    """`analyse` with an interpreter of the caller's: `Flow`, or one that watches as well."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, RECURSION))
    try:
        return _interpret(tree, source, settings, interpreter, project)
    finally:
        sys.setrecursionlimit(limit)


def _interpret(
    tree: ast.Module,
    source: SourceLike,
    settings: Settings,
    interpreter: Callable[..., Flow],
    project: Project | None,
) -> Facts:
    loaded = project.parsed(source) if project is not None and isinstance(source, Source) else None
    if loaded is None or loaded.tree is not tree:
        loaded = None
    imports = loaded.imports if loaded is not None else collect_imports(tree)
    scanned = loaded.scan if loaded is not None else scan(tree)
    flow = _interpreter(interpreter, source, imports, scanned, settings)
    facts = flow.facts
    if "torch" not in source.text and not shows_torch(tree, imports):
        return facts
    if project is not None and (imports.mentions_torch or may_define_modules(tree, imports)):
        flow.reach = Reach(project, partial(_visit, settings))
        facts.read = flow.reach.read
    _collect(definitions(tree.body), flow, imports)
    _run_module(tree, flow, facts)
    _run_functions(flow, facts)
    _registers(flow)
    survey(tree, flow, facts.is_test)
    if project is not None and loaded is not None:
        project.offer(loaded)
        ask = _Ask(flow, loaded, settings, project)
        # other facts than the interpreter has, which would hold each other
        facts = replace(facts, holds=ask.holds, searched=ask.searched)
    facts.events = sorted(_kept(flow), key=lambda event: event.span)
    facts.probes.sort(key=lambda probe: probe[0])
    return facts


class _Ask:
    """Looks at the calls of the project when a finding rests on what was assumed of an argument, and not before."""

    def __init__(self, flow: Flow, loaded: Loaded, settings: Settings, project: Project) -> None:
        self._flow = flow
        self._loaded = loaded
        self._settings = settings
        self._project = project
        self._sites: CallSites | None = None

    def holds(self, event: Event) -> tuple[Origin, ...] | None:
        if self._flow.reach is None:
            return ()
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, RECURSION))
        try:
            return self._call_sites().holds(event)
        except RecursionError:
            return ()
        finally:
            sys.setrecursionlimit(limit)

    def searched(self) -> Search | None:
        return self._sites.files.search() if self._sites is not None else None

    def _call_sites(self) -> CallSites:
        if self._sites is None:
            from devlint.facts.calling.callsites import CallSites

            assert self._flow.reach is not None
            reach = Reach(self._project, partial(_visit, self._settings), self._flow.reach.read)
            self._sites = CallSites(self._flow, self._loaded, reach, partial(_listener, self._settings), _run_one)
        return self._sites


def _listener(settings: Settings, loaded: Loaded, reach: Reach) -> Listener:
    from devlint.facts.calling.listener import Listener

    flow = _muted(settings, loaded, Listener)
    assert isinstance(flow, Listener)
    flow.wanted, flow.heard, flow.reach = set(), {}, reach
    _start(settings, loaded, flow)
    return flow


def _told_apart(flow: Imported) -> frozenset[str]:
    """The conditions that told values of the module level apart."""
    return frozenset(value.split[0] for value in flow.globals.values() if value.split is not None)


def _run_one(flow: Flow, node: ast.AST, function: Function | None) -> None:
    """Interpret one function by itself, or the module level, for what a listener hears of it."""
    if function is None:
        _run_module(flow.scan.tree or ast.Module([], []), flow, flow.facts)
    else:
        if function.owner is not None:
            _guarded(flow, flow.facts, function.owner.node, partial(flow.prepare, function.owner))
        _guarded(flow, flow.facts, node, partial(flow.run, function, None))


def _visit(settings: Settings, loaded: Loaded, reach: Reach) -> Flow:
    """An interpreter for another file, for one checked file. It starts when something in the file is to be run."""
    flow = _muted(settings, loaded)
    flow.reach, flow.start = reach, partial(_start, settings, loaded)
    return flow


def _start(settings: Settings, loaded: Loaded, flow: Imported) -> None:
    """Give the interpreter of another file what its module level leaves behind.

    That runs once and by itself, whoever asks: what it imports from the project stays unknown.
    """
    if loaded.globals is None:
        loaded.globals = {}
        alone = _muted(settings, loaded)
        _run_module(loaded.tree, alone, alone.facts)
        loaded.globals, loaded.default = alone.globals, alone.default
    flow.globals, flow.default = dict(loaded.globals), loaded.default
    flow.told_before = _told_apart(flow)


def _muted(settings: Settings, loaded: Loaded, make: Callable[..., Flow] = Flow) -> Flow:
    flow = _interpreter(make, loaded.source, loaded.imports, loaded.scan, settings)
    flow.muted, flow.evidence = True, loaded.evidence
    _collect(loaded.definitions, flow, loaded.imports, loaded.classes)
    return flow


def _interpreter(
    make: Callable[..., Flow], source: SourceLike, imports: Imports, scanned: Scan, settings: Settings
) -> Flow:
    """An interpreter for one file, checked or imported, that has run nothing yet."""
    facts = Facts(
        source.path,
        source.text,
        imports=imports.names,
        module_imports=imports.module_level,
        is_test=is_test(source.path, scanned),
        torch_version=settings.torch_version,
        torch_stated=settings.torch_stated,
        torch_newest=settings.torch_newest,
    )
    assume = settings.assume_accelerator and not facts.is_test and not is_host_program(source, scanned)
    flow = make(source, imports, facts, assume)
    flow.intents = intents(source.text)
    flow.helpers = dict(settings.functions)
    flow.scan = scanned
    flow.collators, flow.rebound = scanned.collators, scanned.rebound
    flow.callers = Callers(scanned, flow.classes, flow.collators, source.path, imports.names)
    return flow


_INTENT = re.compile(r"#\s*devlint:\s*device\s*=\s*([\w:.]+)")


_OF_TESTS = frozenset({"tests", "test", "testing", "test_utils", "unittests"})


@lru_cache(64)
def intents(text: str) -> Mapping[int, str]:
    """Rows (1-based) with a comment `# devlint: device=cpu`, and the device that it names."""
    if "devlint:" not in text:
        return {}
    return {text.count("\n", 0, m.start()) + 1: m[1] for m in _INTENT.finditer(text)}


def is_test(path: str, scanned: Scan) -> bool:
    """Whether a file belongs to tests. Their helpers get CPU tensors: nothing is assumed of arguments.

    A test runner collects a file by its name, and in it functions that nothing there calls: a script named `test_*.py`
    that calls what it defines is none.
    """
    *folders, name = path.replace("\\", "/").split("/")
    if name == "conftest.py" or any(folder in _OF_TESTS for folder in folders):
        return True
    if not (name.startswith("test_") or name.endswith("_test.py")):
        return False
    names = (getattr(function.node, "name", "") for function in scanned.functions.values())
    return any(each.startswith("test") and each not in scanned.calls for each in names)


def _collect(
    defined: Iterable[Definition], flow: Flow, imports: Imports, known: dict[int, ClassFacts] | None = None
) -> None:
    """Register the classes and module-level functions. `known`: the classes, as they were for other interpreters."""
    for node in defined:
        if isinstance(node, ast.ClassDef):
            if known is None:
                class_ = collect_class(node, flow.classes, imports)
            else:
                if id(node) not in known:
                    known[id(node)] = collect_class(node, flow.classes, imports)
                    known[id(node)].local_bases = ()  # they belong to this interpreter
                class_ = known[id(node)].fresh(flow.classes)
            class_ = flow.classes.setdefault(node.name, class_)
            if not flow.muted:
                flow.adopt_bases(class_)
        else:
            key = node.name
            if key in flow.functions:
                key = f"{node.name}@{node.lineno}"
                flow.redefined.add(node.name)
            flow.functions[key] = Function(node, node.name)
            flow.defined[id(node)] = key
    if not flow.muted:
        settle(flow.classes, imports)


_READERS = frozenset(
    {
        "len",
        "enumerate",
        "zip",
        "range",
        "list",
        "tuple",
        "sum",
        "isinstance",
        "print",
        "iter",
        "reversed",
        "map",
        "str",
    }
)


def own_classes(flow: Flow) -> list[ClassFacts]:
    """The classes of the file itself, without those of other files that it knows."""
    return [class_ for class_ in flow.classes.values() if not class_.abroad]


def _firsts(statements: list[ast.stmt], source: SourceLike) -> frozenset[ast.stmt]:
    """The first statement of each part of a source."""
    starts = [source.span(each).start for each in statements] if source.parts() else []
    indices = {bisect_left(starts, part) for part in source.parts()}
    return frozenset(statements[index] for index in indices if index < len(statements))


def _run_module(tree: ast.Module, flow: Flow, facts: Facts) -> None:
    flow.state = State({})
    flow.module_level = True
    flow.steps, flow.budget = 0, max(BUDGET_LEAST, BUDGET_FACTOR * flow.scan.size)
    flow.anew = _firsts(tree.body, flow.source)
    try:
        flow.block(tree.body)
    except OutOfBudget:
        facts.budget_hits += 1
        flow.reset()
    flow.globals = flow.state.env
    if not flow.muted:
        facts.note_variables("", flow.globals)
    flow.default = flow.state.default
    if flow.default is None and changes_default(flow, facts.text):
        flow.default = Value("device")  # some function changes it: nothing is known of factories without a device
    flow.module_level = False


def changes_default(flow: Flow, text: str) -> bool:
    """Whether a file speaks of what sets where new tensors are made, other than to set a tensor type of the CPU alone."""
    if "set_default_device" in text:
        return True
    named = text.count("set_default_tensor_type")
    if named and any(_SETS_DEFAULT.search(name) is not None for name in flow.scan.calls if name not in _NO_PLACE):
        return True  # what a helper sets cannot be read
    types = [site.call.args[:1] for site in flow.scan.calls.get("set_default_tensor_type", ())] if named else []
    return named != sum(len(given) == 1 and is_cpu_type(flow, given[0]) for given in types)


def is_cpu_type(flow: Flow, node: ast.expr) -> bool:
    """Whether an expression is a tensor type of the CPU as it is written: `torch.DoubleTensor`, `"torch.FloatTensor"`."""
    if isinstance(node, ast.Constant):
        name = node.value if isinstance(node.value, str) else None
    else:
        name = qualified(node, flow.imports)
    return name is not None and _CPU_TYPE.fullmatch(name) is not None


def _run_functions(flow: Flow, facts: Facts) -> None:
    """Callers before callees: a function that another one calls with known tensors needs no assumptions of its own."""
    for class_ in own_classes(flow):
        _guarded(flow, facts, class_.node, partial(flow.prepare, class_))
    _join_over_subclasses(flow)
    pending: list[Function] = [f for f in flow.functions.values() if is_own(f)]
    known = set(map(id, pending))
    for class_ in own_classes(flow):
        for name, node in class_.methods.items():
            function = flow.method_function(class_, name, node)
            if id(function) not in known:
                pending.append(function)
                known.add(id(function))
    used = flow.scan.called | flow.scan.handed
    pending.sort(key=lambda f: (id(f.node) not in flow.movers, f.name.rsplit(".", 1)[-1] in used))
    seen = 0
    settled = False
    for function in pending:  # which grows
        if not settled and id(function.node) not in flow.movers:
            shared_modules.settle(flow)
            settled = True
        if not function.called and not function.name.endswith(".__init__"):
            flow.guards = _under_callers(function)
            _guarded(flow, facts, function.node, partial(flow.run, function, None))
            flow.guards = NO_GUARDS
        if len(flow.functions) > seen:  # functions are added at the end, and none goes
            new = islice(flow.functions.values(), seen, None)
            found = [f for f in new if id(f) not in known and is_own(f) and not is_unused(f, used)]
            seen = len(flow.functions)
            pending += found
            known.update(map(id, found))


def is_unused(function: Function, used: set[str]) -> bool:
    """Whether a function inside another one is named nowhere in the file: it never runs."""
    node = function.node
    if isinstance(node, ast.Lambda) or function.owner is not None or "." not in function.name:
        return False
    return not node.decorator_list and node.name not in used


def is_own(function: Function) -> bool:
    """Whether a function is defined in the file itself."""
    return function.owner is None or not function.owner.abroad


def _under_callers(function: Function) -> Guards:
    """What every call of the file stands under: a helper that is called under `if use_cuda:` alone is guarded by it."""
    if not function.callers:
        return NO_GUARDS
    first, *others = function.callers
    holds = first.holds.intersection(*(g.holds for g in others))
    fails = first.fails.intersection(*(g.fails for g in others))
    tests = tuple(test for test in first.tests if all(test in g.tests for g in others))
    caught = frozenset().union(*(g.caught for g in function.callers))
    return Guards(holds, fails, tests, caught if all(g.caught for g in function.callers) else frozenset())


def _join_over_subclasses(flow: Flow) -> None:
    """A base class's methods also run for its subclasses: what those bind under the same name counts there too."""
    for class_ in own_classes(flow):
        ancestors = list(class_.local_bases)
        while ancestors:
            base = ancestors.pop()
            if base.abroad:
                continue  # what it binds elsewhere is another file's
            ancestors += base.local_bases
            for name, value in class_.attributes.items():
                known = base.attributes.get(name)
                if known is not None and known is not value:
                    base.attributes[name] = merge(known, value)


def _guarded(flow: Flow, facts: Facts, node: ast.AST, action: Callable[[], object]) -> None:
    """Run within a budget that grows with the size of what is analysed."""
    flow.state = State({}, default=flow.default)
    flow.stack = []
    flow.steps, flow.budget = 0, max(BUDGET_LEAST, BUDGET_FACTOR * flow.size_of(node))
    try:
        action()
    except OutOfBudget:
        facts.budget_hits += 1
        flow.reset()


def moved_along(flow: Flow) -> set[str]:
    """Attributes that some `_apply`, `to` or `cuda` of the file's classes moves itself, on whatever object."""
    found: set[str] = set()
    for class_ in own_classes(flow):
        for name in ("_apply", "to", "cuda"):
            own = flow.scan.functions.get(id(class_.methods.get(name)))
            if own is not None:
                found.update(child.attr for child in own.stores)
                found |= flow.moved_data.attributes(own)
    return found


def is_given_to_base(flow: Flow, class_: ClassFacts, name: str) -> bool:
    """Whether the base registers what an attribute holds: `super().__init__(*self.layers)` of an `nn.Sequential`."""
    return any(
        isinstance(given, ast.Starred) and is_own_attribute(given.value, name)
        for call, caller in flow.scan.calls.get("__init__", ())
        if caller is not None and caller.owner is class_.node
        for given in call.args
    )


def _registers(flow: Flow) -> None:
    """Turn what modules keep without registering it into events."""
    moved: set[str] | None = None
    set_later: dict[str, set[str]] = {}
    for class_ in own_classes(flow):
        if not class_.is_module:
            continue
        found = (
            *class_.unregistered.items(), *unseen_modules(flow, class_), *given_modules(flow, class_),
            *hidden_in_functions(flow, class_),
        )  # fmt: skip
        if found and moved is None:
            moved, set_later = moved_along(flow), set_on_objects(flow)
        for name, entry in found:
            assert moved is not None
            if entry.wrapped or name in moved or (entry.trained and entry.placed) or is_placed_anew(class_, name):
                continue
            if is_given_to_base(flow, class_, name) or is_given_parameter(flow, class_, entry.value_node):
                continue
            if entry.what in ("modules", "parameters") and is_looked_after(class_, name):
                continue
            if entry.what == "modules" and is_put_into_another(flow, class_, name):
                continue
            if entry.what == "modules" and are_stateless(flow, class_, name, entry.value_node):
                continue
            if entry.what == "modules" and (are_moved_in_turn(class_, name) or grown_lists.gives_out(class_, name)):
                continue
            if entry.what == "tensor" and entry.value.zero_dim is None and is_item(entry.value_node):
                continue
            if entry.what == "tensor" and are_rows_moved(flow, class_, name, entry):
                continue
            if entry.what == "tensors" and entry.container == "list" and is_shared(flow, class_, name):
                continue
            holders = set_later.get(name) if entry.what == "tensor" else None
            if holders and not holders.isdisjoint(flow.callers.instances(class_.name)):
                continue  # what `__init__` put there only stands for it
            operand = flow.operand(entry.value_node, entry.value)
            handed = () if entry.uses else tuple(unregistered_leaves.uses(flow, class_, name, entry))
            uses = (*entry.uses.values(), *(where for _, where in handed))
            event = Register(
                flow.span(entry.target), entry.node, entry.value.because, flow.guards, {}, f"{class_.name}.__init__",
                class_.name, name, entry.what, entry.container, operand, uses,
                entry.reassigned, entry.appended, entry.returned,
                handed[0][0] if handed else None, is_trained(entry.value_node),
            )  # fmt: skip
            flow.emit(event)


#: Methods of modules through which its parts are moved, saved and listed.
_HANDLING = frozenset(
    {
        "_apply",
        "to",
        "cuda",
        "parameters",
        "named_parameters",
        "state_dict",
        "load_state_dict",
        "named_modules",
        "children",
    }
)


def is_item(node: ast.expr) -> bool:
    """Whether an expression takes one item, by a number: of a vector it is a 0-dim tensor, which meets others anywhere."""
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and type(node.slice.value) is int


def is_looked_after(class_: ClassFacts, name: str) -> bool:
    """Whether the class, or a base of it, handles the parts in `self.name` itself where modules are moved or listed."""
    methods = (m for each in lineage(class_) for n, m in each.methods.items() if n in _HANDLING)
    return any(is_own_attribute(n, name) for method in methods for n in walk(method) if isinstance(n, ast.expr))


def are_moved_in_turn(class_: ClassFacts, name: str) -> bool:
    """Whether a method goes through the parts in `self.name` and moves each where it is used: `part.to(x)(x)`."""
    for method_name, method in class_.methods.items():
        for loop in statements(method) if method_name != "__init__" else ():
            if not isinstance(loop, ast.For) or not any(is_own_attribute(n, name) for n in walk(loop.iter)):
                continue
            parts = {n.id for n in walk(loop.target) if isinstance(n, ast.Name)}
            called = (n.func for n in walk(loop) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
            if any(f.attr in ("to", "cuda") and isinstance(f.value, ast.Name) and f.value.id in parts for f in called):
                return True
    return False


def is_placed_anew(class_: ClassFacts, name: str) -> bool:
    """Whether a method other than `__init__` puts `self.name` as a whole where it is needed.

    `self.alpha = self.alpha.type_as(x)`. An item of it may be put there too late: what is behind a test of its shape.
    """
    for method_name, method in class_.methods.items():
        for node in statements(method) if method_name != "__init__" else ():
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
                continue
            function = node.value.func
            if not isinstance(function, ast.Attribute) or not (function.attr == "type_as" or moves(node.value)):
                continue
            if any(is_own_attribute(target, name) for target in node.targets):
                return True
    return False


def set_on_objects(flow: Flow) -> dict[str, set[str]]:
    """The attributes that code of the file sets on objects to something computed, with the last names of these objects.

    `z` of `func` for `self.func.z = z`; not what a class sets on `self`.
    """
    found: dict[str, set[str]] = {}
    anywhere = any(not is_self_attribute(each) for each in flow.scan.stores)
    for node in statements(flow.scan.tree) if flow.scan.tree is not None and anywhere else ():
        if not isinstance(node, ast.Assign) or makes_tensor(node.value, flow.imports.names):
            continue
        for target in node.targets:
            if isinstance(target, ast.Attribute) and not is_self_attribute(target):
                found.setdefault(target.attr, set()).add(last_name(target.value))
    return found


def is_shared(flow: Flow, class_: ClassFacts, name: str) -> bool:
    """Whether a method hands `self.name`, a list, to something that is not torch's: it may put other tensors into it."""
    for method in class_.methods.values():
        for call in flow.scan.calls_in(method):
            if isinstance(call.func, ast.Attribute):
                continue
            callee = call.func.id if isinstance(call.func, ast.Name) else ""
            if callee in ("", *_READERS) or flow.imports.names.get(callee, "").startswith("torch"):
                continue
            given = [*call.args, *(k.value for k in call.keywords)]
            if any(isinstance(a, ast.Attribute) and flow.path(a) == f"self.{name}" for a in given):
                return True
    return False


def _kept(flow: Flow) -> Iterator[Event]:
    """All events, with the literals that turned out to be one arm of a choice marked as such."""
    for event in flow.events.values():
        if isinstance(event, DeviceLiteral) and event.span in flow.fallbacks and event.role != "default":
            event = replace(event, role="fallback")
        yield event

"""What the calls of a function in the whole project hand it: asked when a finding rests on what was assumed of an argument.

The default assumption is that a tensor argument may be on an accelerator. Who calls the function knows better: a helper
of a data set's transforms gets host data in every call, and what a training loop hands over was moved before. The calls
are looked for in the file itself and, by name first, in the other files of the project. The functions around them are
interpreted; where they pass on an argument of their own, their callers are asked in turn. Bounded, and silent on bad input.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, NamedTuple

from devlint.facts.callers import (
    TO_HOST,
    Callers,
    chain,
    given,
    is_own_attribute,
    last_name,
    lineage,
    moved_after,
    moves,
    prepares_data,
    with_aliases,
)
from devlint.facts.classes import ClassFacts
from devlint.facts.doubts import needs_caller, refuted
from devlint.facts.events import Event, Meet, Register, Use
from devlint.facts.flow import Flow
from devlint.facts.indirect import indirect_calls
from devlint.facts.machine import Function
from devlint.facts.nodes import walk
from devlint.facts.operations import BATCH, CPU_PLACE
from devlint.facts.parameters import Evidence
from devlint.facts.programs import is_host_script
from devlint.facts.project import Loaded, Reach, is_imported
from devlint.facts.returned import returned
from devlint.facts.scan import FunctionScan, Site
from devlint.facts.unmoved import is_never_moved
from devlint.facts.values import CPU, GUESS, NUMBER, Value, is_surely_accelerator, may_be_accelerator
from devlint.model import Origin
from devlint.project_files import Files, Search, is_installable

DEPTH = 3  # functions that pass an argument on to the next
CANDIDATES = 10  # other files that are read for one function
LOADED = 24  # other files that are read for one checked file
RUNS = 60  # functions that are interpreted for one checked file
_HOST_KINDS = frozenset({"ndarray", "number", "bool", "string"})
#: What applies the functions and objects that it is given to items of data sets, or in another process on the host.
_HOST_RUNNERS = frozenset(
    {
        "Compose", "Lambda", "RandomApply", "RandomChoice", "RandomOrder", "ApplyTransformToKey", "DataLoader", "submit",
        "imap", "imap_unordered", "starmap", "apply_async", "map_async", "starmap_async", "Process",
    }
)  # fmt: skip
#: Names of what a file of saved tensors holds, as a program gets it.
_CHECKPOINT = re.compile(r"state_?dict|check_?point|ckpt", re.IGNORECASE)
#: Factories of made-up data: at module level their results show how something is used, not what it gets in use.
_MADE_UP = frozenset(
    f"torch.{name}" for name in ("rand", "randn", "randint", "zeros", "ones", "empty", "full", "arange")
)

Answer = Literal["host", "batch", "device", "argument", "unknown"]


class Said(NamedTuple):
    """What one call says of one argument. "argument": it passes on the parameter `name` of `function`; "batch": it passes
    on what a loader gives, unmoved.
    """

    answer: Answer
    function: Function | None = None
    name: str = ""
    where: Origin | None = None


UNKNOWN = Said("unknown")
HOST = Said("host")
LOADED_BATCH = Said("batch")


class Listener(Flow):
    """The interpreter, noting what some expressions say of where they are."""

    wanted: set[int]
    heard: dict[int, list[Said]]

    def evaluate(self, node: ast.expr) -> Value:
        value = super().evaluate(node)
        if id(node) in self.wanted:
            self.heard.setdefault(id(node), []).append(self.said(node, value))
        return value

    def element(self, value: Value) -> Value:
        """What a loop takes from an array is host data, too: an array or a number."""
        if value.kind == "ndarray":
            return value
        if value.type_name in ("zip", "enumerate") and isinstance(value.elements, tuple):
            parts = tuple(map(self.element, value.elements))
            return Value("tuple", elements=parts if value.type_name == "zip" else (NUMBER, *parts))
        return super().element(value)

    def said(self, node: ast.expr, value: Value) -> Said:
        if self.host and not is_surely_accelerator(value.device):
            return HOST
        if value.kind in _HOST_KINDS:
            return HOST
        if value.kind in ("list", "tuple") and isinstance(value.elements, tuple):
            parts = [self.said(node, element) for element in value.elements]
            return next((p for p in parts if p.answer == "device"), parts[0] if len(set(parts)) == 1 else UNKNOWN)
        if (value.is_tensor or value.type_name == GUESS) and value.device:
            return self.placed(node, value)
        if value.kind == "module" and value.device and self.function is not None and not value.shared:
            return self.placed(node, value)
        if any(isinstance(c, ast.Call) and getattr(c.func, "attr", "") in TO_HOST for c in chain(node)):
            return HOST
        if value.kind == "unknown":
            if self.owner is not None and isinstance(node, ast.Attribute) and is_kept_on_host(self.owner.node, node):
                return HOST
            return self.passed_on(node)
        return UNKNOWN

    def placed(self, node: ast.expr, value: Value) -> Said:
        """What a tensor says whose device is known, or assumed."""
        if value.device == CPU:
            made_up = bool(value.made) and all(c.function in _MADE_UP for c in value.made) and self.function is None
            if value.type_name == BATCH:
                return LOADED_BATCH
            return UNKNOWN if made_up else HOST
        if CPU_PLACE in value.device or not may_be_accelerator(value.device):
            return UNKNOWN
        places = self.assumed_modules if value.kind == "module" else self.assumed
        assumed = places.get(value.because[0].span) if value.because and value.because[0].path is None else None
        if assumed is not None:
            return Said("argument", *assumed)
        if value.type_name == GUESS:
            return UNKNOWN
        return Said("device", where=Origin(self.span(node), "", self.source.path))

    def passed_on(self, node: ast.expr) -> Said:
        """A parameter that is passed on as it is, whatever it is."""
        *_, start = chain(node)
        function = self.function
        if (
            function is None
            or not isinstance(start, ast.Name)
            or any(isinstance(c, ast.Attribute) for c in chain(node))
        ):
            return UNKNOWN
        own = self.scan.functions.get(id(function.node))
        if own is None or own.bound.get(start.id) or start.id not in parameters(function):
            return UNKNOWN
        return Said("argument", function, start.id)


def assigns(node: ast.Assign, name: str) -> bool:
    """Whether an assignment binds a name."""
    return any(isinstance(n, ast.Name) and n.id == name for target in node.targets for n in walk(target))


def is_of_checkpoint(scope: ast.AST, node: ast.expr, depth: int = 0) -> bool:
    """Whether an expression is `state_dict[key]`, or a part of it, also by way of names that are bound once."""
    *parts, start = chain(node)
    if not isinstance(start, ast.Name) or depth > 3:
        return False
    if parts and isinstance(parts[-1], ast.Subscript) and _CHECKPOINT.search(start.id) is not None:
        return True
    bound = [n for n in walk(scope) if isinstance(n, ast.Assign) and assigns(n, start.id)]
    if len(bound) != 1 or not isinstance(bound[0].targets[0], ast.Name):
        return False
    if any(isinstance(part, ast.Call) and moves(part) for part in chain(bound[0].value)):
        return False
    return is_of_checkpoint(scope, bound[0].value, depth + 1)


def plain_names(node: ast.AST) -> list[str]:
    """The names of a function's parameters that may be given by position."""
    spec = getattr(node, "args", None)
    return [a.arg for a in (*spec.posonlyargs, *spec.args)] if isinstance(spec, ast.arguments) else []


def is_kept_on_host(class_: ast.ClassDef, attribute: ast.Attribute) -> bool:
    """Whether all that a class stores in `self.name` is None or made on the host: `torch.from_numpy(a)`, `x.cpu()`."""
    if not is_own_attribute(attribute, attribute.attr):
        return False
    stored = [
        node.value
        for node in walk(class_)
        if isinstance(node, ast.Assign) and any(is_own_attribute(t, attribute.attr) for t in node.targets)
    ]
    kept = [v for v in stored if not (isinstance(v, ast.Constant) and v.value is None)]
    return bool(kept) and all(
        any(isinstance(c, ast.Call) and last_name(c.func) in TO_HOST | {"from_numpy"} for c in chain(v)) for v in kept
    )


def parameters(function: Function) -> set[str]:
    spec = function.node.args
    return {a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)} - {"self", "cls"}


@dataclass(slots=True, eq=False)
class Looked:
    """A file in which calls are looked at, with its interpreter."""

    path: str  # absolute
    loaded: Loaded
    flow: Listener
    module_ran: bool = False


Make = Callable[[Loaded, Reach], Listener]


class CallSites:
    """Answers for one checked file. `words`: the names that were looked for, with the files that mention them."""

    def __init__(self, flow: Flow, loaded: Loaded, reach: Reach, make: Make, run: Callable[..., object]) -> None:
        self.reach = reach
        self.words: dict[str, list[str]] = {}
        self.files: Files | None = None
        self._checked = flow
        self._make = make
        self._run = run
        self.path = os.path.abspath(loaded.source.path)
        self._looked: dict[str, Looked | None] = {}
        self._own = loaded
        self._answers: dict[tuple[int, str], Said] = {}
        self._runs = 0
        self._stays: dict[str, bool] = {}  # by class
        self._is_searched = False

    # -- findings -----------------------------------------------------------------------------------------------------

    def holds(self, event: Event) -> tuple[Origin, ...] | None:
        """Whether what an event assumes of arguments agrees with the calls of the project: None when it does not.

        The origins show a call that hands over what may be on an accelerator.
        """
        if refuted(self, event):
            return None
        if isinstance(event, Register):
            return None if self.stays(event.function) else ()
        if not isinstance(event, (Meet, Use)) or event.level != "assume":
            return ()
        operand = event.other if isinstance(event, Meet) else event.operand
        shown: list[Origin] = []
        given = False
        for origin in operand.value.because:
            is_module = operand.value.kind == "module"
            places = self._checked.assumed_modules if is_module else self._checked.assumed
            assumed = places.get(origin.span) if origin.path is None else None
            if assumed is None:
                continue
            evidence = self.evidence(assumed[0])
            if isinstance(event, Meet) and evidence is not None and assumed[1] in evidence.arrays:
                return None  # the function reads it with numpy, too
            said = self.asked(*assumed)
            if said.answer == "host":
                return None
            if said.answer == "unknown" and not is_module and needs_caller(self, event, *assumed):
                return None
            given = given or said.answer == "device"
            if said.where is not None and said.where.path != self._checked.source.path:
                name = assumed[0].name
                shown.append(said.where._replace(text=f"`{name}` is called with this here"))
        if not given and self.stays(event.function):
            return None
        return tuple(shown[:1])

    def stays(self, function: str) -> bool:
        """Whether a method is one of a module that the project never moves."""
        class_ = function.split(".", 1)[0]
        if class_ not in self._stays:
            self._stays[class_] = is_never_moved(self, function)
        return self._stays[class_]

    def asked(self, function: Function, name: str) -> Said:
        """What the calls of a function of the checked file say of a parameter."""
        own = self._look(self.path)
        if own is None:
            return UNKNOWN
        class_ = own.flow.classes.get(function.owner.name) if function.owner is not None else None
        return self._weigh(own, Function(function.node, function.name, class_), name, 0)

    def function(self, name: str) -> Function | None:
        """A function of the checked file by its qualified name there."""
        return self._checked.functions.get(name)

    def function_given(self, origin: Origin) -> Function | None:
        """The function of the checked file whose parameter, a module, an origin speaks of."""
        assumed = self._checked.assumed_modules.get(origin.span) if origin.path is None else None
        return assumed[0] if assumed is not None else None

    def class_of(self, function: str) -> ClassFacts | None:
        """The class of the checked file whose method, or function inside one, has this qualified name there."""
        class_ = self._checked.classes.get(function.split(".", 1)[0])
        return class_ if class_ is not None and not class_.abroad else None

    def made(self, looked: Looked, home: Looked, class_name: str) -> Iterator[Site]:
        """The calls, in one file, that make objects of a class of the file `home`."""
        if looked is not home:
            yield from self._calls_of(looked, home.path, class_name)
            return
        for site in looked.loaded.scan.calls.get(class_name, ()):
            if isinstance(site.call.func, ast.Name):
                yield site

    @cached_property
    def is_host_script(self) -> bool:
        """Whether the checked file is a script that trains on the host, and no file of the project names it."""
        stem = os.path.splitext(os.path.basename(self.path))[0]
        return is_host_script(self._own.source, self._own.scan) and not self.files_mentioning(stem)

    @property
    def imports(self) -> Mapping[str, str]:
        """What the names of the checked file are imported as."""
        return self._own.imports.names

    @property
    def is_closed(self) -> bool:
        """Whether the project is a program of its own: nothing says that others install it."""
        files = self._searched()
        return files is not None and not is_installable(files.root)

    def is_of_project(self, name: str) -> bool:
        """Whether a name of the checked file is imported from another file of the project."""
        target = self._own.imports.names.get(name)
        return target is not None and self._place(self.path, target) is not None

    def reads_all(self, word: str) -> bool:
        """Whether all files that mention a name are among those that `mentioning` gives."""
        return len(self.files_mentioning(word)) <= CANDIDATES

    def body(self, function: str) -> ast.AST | None:
        """The function or method of the checked file with this qualified name there."""
        known = self._checked.functions.get(function)
        if known is not None:
            return known.node
        class_, _, name = function.partition(".")
        owner = self._checked.classes.get(class_)
        return owner.methods.get(name) if owner is not None else None

    def evidence(self, function: Function) -> Evidence | None:
        """The uses of the parameters of a function of the checked file."""
        return self._checked.evidence.get(id(function.node))

    def names_here(self, name: str) -> bool:
        """Whether the checked file calls, hands on or lists something of a name."""
        scan = self._own.scan
        text = self._own.source.text
        return name in scan.calls or name in scan.handed or f'"{name}"' in text or f"'{name}'" in text

    def files_mentioning(self, word: str) -> list[str]:
        """The other files of the project that mention a name, as absolute paths."""
        files = self._searched()
        if files is None:
            return []
        paths = (os.path.normpath(os.path.join(files.root, way)) for way in self._mentions(files, word))
        return [path for path in paths if path != self.path]

    def calls(self, function: Function) -> Iterator[tuple[Looked, Site]]:
        """The calls in the project of a function of the checked file."""
        own = self._look(self.path)
        if own is not None:
            yield from self._sites(own, function)

    def every_call(self, function: Function) -> Iterator[tuple[Looked, Site]]:
        """The calls in the project of whatever has the last name of a function of the checked file."""
        name = function.name.rsplit(".", 1)[-1]
        for looked in self.mentioning(name):
            yield from ((looked, site) for site in looked.loaded.scan.calls.get(name, ()))

    def mentioning(self, word: str) -> Iterator[Looked]:
        """The files of the project that mention a name, the checked one first."""
        own = self._look(self.path)
        if own is not None:
            yield own
            yield from self._candidates(own, word)

    def derives(self, looked: Looked, class_: ast.ClassDef, name: str) -> bool:
        """Whether a class of a file derives from one of the checked file, directly or through others of its own file."""
        if looked.path != self.path:
            return self._derives(looked, class_, self.path, name)
        facts = looked.flow.classes.get(class_.name)
        return class_.name != name and facts is not None and name in {base.name for base in lineage(facts)}

    def search(self) -> Search | None:
        """What was looked for in the files of the project; None when nothing was."""
        if self.files is None:
            return None
        root = os.path.relpath(self.files.root, os.path.dirname(self.path))
        return Search(root, self.files.listing, dict(self.words))

    # -- one parameter ------------------------------------------------------------------------------------------------

    def _weigh(self, home: Looked, function: Function, name: str, depth: int) -> Said:
        key = (id(function.node), name)
        if key not in self._answers:
            self._answers[key] = UNKNOWN  # a function that calls itself adds nothing
            self._answers[key] = self._weighed(home, function, name, depth)
        return self._answers[key]

    def _weighed(self, home: Looked, function: Function, name: str, depth: int) -> Said:
        if depth > DEPTH or isinstance(function.node, ast.Lambda):
            return UNKNOWN
        position = Callers.position(function, name)
        asked: dict[str, list[tuple[Site, ast.expr]]] = {}
        found: list[Said] = []
        for looked, site in self._sites(home, function):
            if any(isinstance(a, ast.Starred) for a in site.call.args):
                continue
            for argument in given(site.call, name, position):
                asked.setdefault(looked.path, []).append((site, argument))
        if self._is_run_by_loading(home, function):
            found.append(HOST)
        for path, sites in asked.items():
            looked_at = self._look(path)
            if looked_at is not None:
                found += self._listen(looked_at, sites, depth)
        said = next((s for s in found if s.answer == "device"), next((s for s in found if s.answer == "host"), UNKNOWN))
        if not asked and said == UNKNOWN:
            return self._by_name(home, function, name, depth)
        if said == UNKNOWN and not home.flow.callers.is_method_of_module(function):
            if found and all(s == LOADED_BATCH for s in found):
                return HOST
            calls = [pair for pairs in asked.values() for pair in pairs]
            if any(is_moved_later(site, argument) for site, argument in calls):
                return HOST
        return said

    def _by_name(self, home: Looked, function: Function, name: str, depth: int) -> Said:
        """What is said where no call is known to be one of a method: the calls on objects of unknown classes.

        Only that all of them hand over host data is an answer.
        """
        if not Callers.is_method(function):
            return UNKNOWN
        position = Callers.position(function, name)
        asked: dict[str, list[tuple[Site, ast.expr]]] = {}
        for looked, site in self._calls_on_objects(home, function):
            for argument in given(site.call, name, position):
                asked.setdefault(looked.path, []).append((site, argument))
        for path, sites in asked.items():
            looked_at = self._look(path)
            if looked_at is None:
                return UNKNOWN
            for one in sites:
                said = list(self._listen(looked_at, [one], depth))
                if not said or any(s != HOST for s in said):
                    return UNKNOWN
        return HOST if asked else UNKNOWN

    def _calls_on_objects(self, home: Looked, function: Function) -> Iterator[tuple[Looked, Site]]:
        """The calls of a method on whatever object, if all methods of that name in the project take the same arguments."""
        short = function.name.rsplit(".", 1)[-1]
        if short.startswith("__") or short == "forward":
            return
        files = [home, *self._candidates(home, short)]
        if len(files) > CANDIDATES:
            return
        wanted = plain_names(function.node)
        for looked in files:
            for node in looked.loaded.scan.functions.values():
                if getattr(node.node, "name", "") == short and plain_names(node.node) != wanted:
                    return
        for looked in files:
            imported = looked.loaded.imports.names
            for site in looked.loaded.scan.calls.get(short, ()):
                target = site.call.func
                receiver = target.value if isinstance(target, ast.Attribute) else None
                if receiver is None or (isinstance(receiver, ast.Name) and receiver.id in {"self", "cls", *imported}):
                    continue
                yield looked, site

    def _listen(self, looked: Looked, sites: list[tuple[Site, ast.expr]], depth: int) -> Iterator[Said]:
        """What some calls in one file say, by interpreting the functions around them."""
        flow = looked.flow
        flow.wanted.update(id(argument) for _, argument in sites)
        callers = {id(s.caller.node): s.caller for s, _ in sites if s.caller is not None}
        if any(site.caller is None for site, _ in sites) and not looked.module_ran:
            looked.module_ran = True
            self._run(flow, looked.loaded.tree, None)
        for caller in callers.values():
            self._interpret(looked, caller, [argument for site, argument in sites if site.caller is caller])
        for site, argument in sites:
            heard = dict.fromkeys(flow.heard.get(id(argument), ()))
            if all(said == UNKNOWN for said in heard) and self._is_returned_on_host(looked, site, argument):
                yield HOST
                continue
            for said in heard:
                if said.answer == "argument" and said.function is not None:
                    yield self._weigh(looked, said.function, said.name, depth + 1)
                else:
                    yield said

    def _is_returned_on_host(self, looked: Looked, site: Site, argument: ast.expr) -> bool:
        """Whether an argument is what something of the project returns, and all that has its name there returns host data.

        Also where it is a part of a checkpoint, which is loaded into host memory for the most part.
        """
        node: ast.expr = argument
        if is_of_checkpoint(site.caller.node if site.caller is not None else looked.loaded.tree, argument):
            return True
        if isinstance(node, ast.Name):
            scope = site.caller.node if site.caller is not None else looked.loaded.tree
            bound = [n for n in walk(scope) if isinstance(n, ast.Assign) and assigns(n, node.id)]
            if len(bound) != 1 or not isinstance(bound[0].targets[0], ast.Name):
                return False
            node = bound[0].value
        if not isinstance(node, ast.Call):
            return False
        name = last_name(node.func)
        *_, start = chain(node.func)
        outside = isinstance(start, ast.Name) and start.id in looked.loaded.imports.names
        if not name or name.startswith("__") or (outside and not self.is_imported_from_project(looked, start)):
            return False
        files = [looked, *self._candidates(looked, name)]
        if len(files) > CANDIDATES:
            return False
        found = [
            f.node for each in files for f in each.loaded.scan.functions.values() if getattr(f.node, "name", "") == name
        ]
        marks = [returned(f).get(None) for f in found if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef))]
        return bool(marks) and all(mark in ("host", "array", "number", "list") for mark in marks)

    def is_imported_from_project(self, looked: Looked, start: ast.expr) -> bool:
        """Whether what an expression starts with is imported from a file of the project."""
        target = looked.loaded.imports.names.get(last_name(start))
        return target is not None and self.reach.file_of(looked.path, target) is not None

    def _interpret(self, looked: Looked, caller: FunctionScan, arguments: list[ast.expr]) -> None:
        """Run the outermost function around some arguments, then those inside it that hold them."""
        flow, node = looked.flow, caller.node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        if caller.owner is not None:
            class_ = flow.classes.get(caller.owner.name)
            if class_ is None or class_.methods.get(node.name) is not node:
                return
            function = flow.method_function(class_, node.name, node)
        else:
            key = flow.defined.get(id(node))
            if key is None:
                return
            function = flow.functions[key]
        done: set[int] = set()
        pending = [function]
        while pending and self._runs < RUNS:
            current = pending.pop()
            done.add(id(current))
            self._runs += 1
            self._run(flow, current.node, current)
            pending += [
                inner
                for name, inner in flow.functions.items()
                if name.startswith(function.name + ".") and id(inner) not in done and inner not in pending
                if any(holds(inner.node, argument) for argument in arguments)
            ]

    # -- who calls ----------------------------------------------------------------------------------------------------

    def _sites(self, home: Looked, function: Function) -> Iterator[tuple[Looked, Site]]:
        """The calls of a function, in its own file and in the others."""
        for site in home.flow.callers.sites(function):
            yield home, site
        owner = function.owner
        is_method = Callers.is_method(function)
        if owner is not None and not is_method:
            return
        name = function.name.rsplit(".", 1)[-1]
        if "." in function.name and owner is None:
            return  # a nested function
        if owner is None:
            for site in indirect_calls(home.loaded.scan, name):
                yield home, site
            for looked in self._candidates(home, name):
                yield from ((looked, site) for site in self._calls_of(looked, home.path, name))
                for site in indirect_calls(looked.loaded.scan, name):
                    if self._names(looked, site.call.func, home.path, name):
                        yield looked, site
            return
        yield from self._calls_of_template(home, owner, name)
        if is_method and owner.is_module and name == "forward":
            name = "__call__"
        for looked in self._candidates(home, owner.name):
            yield from ((looked, site) for site in self._calls_of_method(looked, home.path, owner, name))

    def _calls_of(self, looked: Looked, path: str, name: str) -> Iterator[Site]:
        """The calls, in one file, of what another file defines under a name at module level."""
        for local in self._locals(looked, path, name):
            for site in looked.loaded.scan.calls.get(local, ()):
                if isinstance(site.call.func, ast.Name):
                    yield site
        for site in looked.loaded.scan.calls.get(name, ()):
            if isinstance(site.call.func, ast.Attribute) and self._names(looked, site.call.func, path, name):
                yield site

    def _calls_of_template(self, home: Looked, owner: ClassFacts, name: str) -> Iterator[tuple[Looked, Site]]:
        """The calls of a method on `self` in the bases of its class that other files define."""
        for base in (base for each in lineage(owner) for base in each.bases if is_imported(base)):
            found = self.reach.find(home.path, base)
            for path, class_name in self.reach.ancestors(found) if found is not None and found.kind == "class" else ():
                if path == home.path or prepares_data(path):
                    continue  # what a file is for by its name is no answer for subclasses elsewhere
                looked = self._look(path)
                for site in looked.loaded.scan.calls.get(name, ()) if looked is not None else ():
                    receiver = getattr(site.call.func, "value", None)
                    inside = site.caller.owner if site.caller is not None else None
                    if getattr(receiver, "id", "") == "self" and inside is not None and inside.name == class_name:
                        assert looked is not None
                        yield looked, site

    def _calls_of_method(self, looked: Looked, path: str, owner: ClassFacts, name: str) -> Iterator[Site]:
        """The calls, in one file, of a method of a class that another one defines."""
        calls = looked.loaded.scan.calls
        if name == "__init__":
            yield from self._calls_of(looked, path, owner.name)
            return
        objects = self._instances(looked, path, owner.name)
        if name == "__call__":
            for made in objects:
                yield from calls.get(made, ())
            return
        classes = self._locals(looked, path, owner.name)
        for site in calls.get(name, ()):
            target = site.call.func
            if not isinstance(target, ast.Attribute):
                continue
            receiver = target.value.id if isinstance(target.value, ast.Name) else getattr(target.value, "attr", "")
            if receiver in ("self", "cls"):
                inside = site.caller.owner if site.caller is not None else None
                if inside is not None and self._derives(looked, inside, path, owner.name):
                    yield site
            elif receiver in objects or receiver in classes:
                yield site

    def _instances(self, looked: Looked, path: str, class_name: str) -> set[str]:
        """The last names that objects of a class of another file are bound to in a file."""
        made = {id(site.call) for site in self._calls_of(looked, path, class_name)}
        found: set[str] = set()
        for node in walk(looked.loaded.tree):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and id(node.value) in made:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found |= set(map(last_name, targets))
            elif isinstance(node, ast.arg) and node.annotation is not None:
                if self._names(looked, node.annotation, path, class_name):
                    found.add(node.arg)
        return with_aliases(looked.loaded.tree, found - {""})

    def _derives(self, looked: Looked, class_: ast.ClassDef, path: str, name: str) -> bool:
        """Whether a class of a file derives from a class of another one."""
        facts = looked.flow.classes.get(class_.name)
        bases = [base for each in lineage(facts) for base in each.bases] if facts is not None else []
        found = [self.reach.find(looked.path, base) for base in bases if is_imported(base)]
        return any(
            (path, name) in self.reach.ancestors(base) for base in found if base is not None and base.kind == "class"
        )

    def _locals(self, looked: Looked, path: str, name: str) -> set[str]:
        """What a file calls something that another file defines at module level."""
        imports = looked.loaded.imports
        found = {
            local
            for local, target in imports.names.items()
            if (target.rsplit(".", 1)[-1] == name or local == name) and self._place(looked.path, target) == (path, name)
        }
        if name not in imports.names and name in looked.loaded.scan.handed | looked.loaded.scan.calls.keys():
            if any(self._place(looked.path, f"{star}.{name}") == (path, name) for star in imports.stars):
                found.add(name)
        return found

    def _place(self, path: str, qualname: str) -> tuple[str, str] | None:
        """The file, and the name in it, of the function or class that a qualified name in a file leads to."""
        found = self.reach.find(path, qualname)
        return (found.path, found.short) if found is not None and found.kind in ("function", "class") else None

    def _names(self, looked: Looked, node: ast.expr, path: str, name: str) -> bool:
        """Whether an expression names what another file defines at module level."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return False
        if not parts:
            return node.id in self._locals(looked, path, name)
        target = looked.loaded.imports.names.get(node.id)
        return target is not None and self._place(looked.path, ".".join([target, *reversed(parts)])) == (
            path,
            name,
        )

    def _is_run_by_loading(self, home: Looked, function: Function) -> bool:
        """Whether a function, or an object that it is the call of, is handed to what applies it to items of data sets."""
        name = function.name.rsplit(".", 1)[-1]
        owner = function.owner
        if owner is not None and name not in ("__call__", "forward"):
            return False
        wanted = owner.name if owner is not None else name
        if owner is None and "." in function.name:
            return False
        names = {wanted} | (home.flow.callers.instances(wanted) if owner is not None else set())
        if handed_to_loading(home.loaded.tree, is_one_of(names)):
            return True
        for looked in self._candidates(home, wanted):
            made = self._instances(looked, home.path, wanted) if owner is not None else set()
            named = partial(self._names, looked, path=home.path, name=wanted)
            if handed_to_loading(looked.loaded.tree, named) or handed_to_loading(looked.loaded.tree, is_one_of(made)):
                return True
        return False

    # -- files --------------------------------------------------------------------------------------------------------

    def _candidates(self, home: Looked, word: str) -> list[Looked]:
        """The other files of the project that mention a name, the likeliest first."""
        files = self._searched()
        if files is None or word.startswith("__"):
            return []
        mentioned = self._mentions(files, word)
        paths = [os.path.normpath(os.path.join(files.root, way)) for way in mentioned]
        near = os.path.dirname(home.path)
        paths.sort(key=lambda path: (-len(os.path.commonpath([os.path.dirname(path), near])), path))
        found = []
        for path in [p for p in paths if p not in (home.path, self.path)][:CANDIDATES]:
            looked = self._look(path)
            if looked is not None:
                found.append(looked)
        if home.path != self.path and self.path in paths:
            own = self._look(self.path)
            found += [own] if own is not None else []
        return found

    def _searched(self) -> Files | None:
        """The files of the project, listed when they are asked for."""
        if not self._is_searched:
            self._is_searched = True
            self.files = self.reach.project.files.around(os.path.dirname(self.path))
        return self.files

    def _mentions(self, files: Files, word: str) -> list[str]:
        """The files in which a name stands; what was looked for is remembered."""
        if word not in self.words:
            self.words[word] = files.mentioning(word)
        return self.words[word]

    def _look(self, path: str) -> Looked | None:
        """A file with an interpreter for it; None when it cannot be read, or the bounds are reached."""
        if path not in self._looked and len(self._looked) <= LOADED:
            loaded: Loaded | None = self._own
            if path != self.path:
                self.reach.read[path], loaded = self.reach.project.load(path)
            self._looked[path] = Looked(path, loaded, self._make(loaded, self.reach)) if loaded is not None else None
        return self._looked.get(path)


def is_moved_later(site: Site, argument: ast.expr) -> bool:
    """Whether the code around a call moves, after it, the name that it hands over or the names that take its result."""
    around: ast.AST | None = site.caller.node if site.caller is not None else None
    if around is None:
        return False
    names = {argument.id} if isinstance(argument, ast.Name) else set()
    for node in walk(around):
        if isinstance(node, ast.Assign) and node.value is site.call:
            targets = [
                t for target in node.targets for t in (target.elts if isinstance(target, ast.Tuple) else [target])
            ]
            names |= {t.id for t in targets if isinstance(t, ast.Name)}
    return not names.isdisjoint(moved_after(around, site.call))


def holds(outer: ast.AST, inner: ast.AST) -> bool:
    """Whether a node's rows are within those of another."""
    first, last = getattr(outer, "lineno", 0), getattr(outer, "end_lineno", 0)
    return bool(first <= getattr(inner, "lineno", -1) <= last)


def is_one_of(names: set[str]) -> Callable[[ast.expr], bool]:
    """Whether an expression is one of some names."""
    return lambda node: isinstance(node, ast.Name) and node.id in names


def handed_to_loading(tree: ast.AST, is_it: Callable[[ast.expr], bool]) -> bool:
    """Whether a tree hands something, or an object of it, to what applies it to items of data sets."""
    for node in walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            parts = list(node.args) if name in _HOST_RUNNERS else []
            parts += [k.value for k in node.keywords if k.arg is not None and is_loading(k.arg)]
            if any(map(is_it, handed(parts))):
                return True
        elif isinstance(node, ast.Assign) and any(is_loading(assigned_name(t)) for t in node.targets):
            if any(map(is_it, handed([node.value]))):
                return True
    return False


def is_loading(name: str) -> bool:
    """Whether something of this name is applied to items while they are loaded: `collate_fn`, `train_transforms`."""
    return name in ("collate_fn", "worker_init_fn") or name.rstrip("s").endswith(("transform", "augmentation"))


def assigned_name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def handed(parts: list[ast.expr]) -> Iterator[ast.expr]:
    """The expressions in some lists, and what the objects made there are of."""
    pending = list(parts)
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, (ast.List, ast.Tuple)):
            pending += node.elts
        elif isinstance(node, ast.Call):
            yield node.func
            if getattr(node.func, "attr", getattr(node.func, "id", "")) in _HOST_RUNNERS | {"partial"}:
                pending += [*node.args, *(k.value for k in node.keywords)]
        elif isinstance(node, ast.IfExp):
            pending += [node.body, node.orelse]
        elif isinstance(node, ast.BinOp):
            pending += [node.left, node.right]

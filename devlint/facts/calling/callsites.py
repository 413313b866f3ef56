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
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from devlint.facts.calling.listener import HOST, LOADED_BATCH, OPEN, UNKNOWN, Said
from devlint.facts.calling.neighbours import CANDIDATES, Looked, Make, Neighbours
from devlint.facts.calling.who_calls import WhoCalls
from devlint.facts.events import Event, Lengths, Meet, Move, Operand, Register, Use
from devlint.facts.idioms.batches import is_left_of_batch
from devlint.facts.interpreter.flow import Flow
from devlint.facts.objections.branches import is_never_given
from devlint.facts.objections.doubts import is_silent_on_devices, needs_caller, refuted
from devlint.facts.objections.of_another import is_of_plain_class
from devlint.facts.objections.programs import is_example, is_host_script, places, runs_itself
from devlint.facts.objections.unmoved import is_never_moved
from devlint.facts.project.project import Loaded, Reach
from devlint.facts.text.callers import Callers
from devlint.facts.text.classes import ClassFacts, lineage
from devlint.facts.text.defined import Function
from devlint.facts.text.method_names import TO_HOST
from devlint.facts.text.nodes import encloses, walk
from devlint.facts.text.parameters import Evidence
from devlint.facts.text.references import chain, given, is_private, last_name
from devlint.facts.text.returned import returned
from devlint.facts.text.roots import roots
from devlint.facts.text.scan import FunctionScan, Site
from devlint.facts.text.signs import moved_after, moves
from devlint.facts.values import LOOKED_UP, may_be_accelerator
from devlint.model import Origin, Span

DEPTH = 3  # functions that pass an argument on to the next
AGAIN = Said("unknown", name="again")  # a function that calls itself adds nothing
RUNS = 60  # functions that are interpreted for one checked file
#: How texts begin that name an accelerator.
_CARDS = ("cuda", "xpu", "mps", "npu")
#: Names of what a file of saved tensors holds, as a program gets it.
_CHECKPOINT = re.compile(r"state_?dict|check_?point|ckpt", re.IGNORECASE)


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


def assumed_of(event: Lengths | Meet | Use) -> Operand:
    """The operand of an event that is assumed to be on an accelerator."""
    if isinstance(event, Lengths):
        return event.lengths
    return event.other if isinstance(event, Meet) else event.operand


class CallSites:
    """Answers for one checked file. `files`: it and the other files of its project; `callers`: the calls in them."""

    def __init__(self, flow: Flow, loaded: Loaded, reach: Reach, make: Make, run: Callable[..., object]) -> None:
        self.path = os.path.abspath(loaded.source.path)
        self.files = Neighbours(self.path, loaded, reach, make)
        self.callers = WhoCalls(self.files)
        self._checked = flow
        self._run = run
        self._own = loaded
        self._answers: dict[tuple[int, str], Said] = {}
        self._runs = 0
        self._stays: dict[str, bool] = {}  # by class
        self.users_by_text: dict[tuple[str, str], Sequence[tuple[str, bool]]] = {}  # by file and module, see `ways`

    # -- findings -----------------------------------------------------------------------------------------------------

    def holds(self, event: Event) -> tuple[Origin, ...] | None:
        """Whether what an event assumes of arguments agrees with the calls of the project: None when it does not.

        The origins show a call that hands over what may be on an accelerator.
        """
        if refuted(self, event):
            return None
        if isinstance(event, Register):
            # modules and parameters that are not registered are not trained or saved either, wherever they are
            return None if event.what in ("tensor", "tensors") and self.stays(event.function) else ()
        if not isinstance(event, (Lengths, Meet, Use)) or event.level != "assume":
            return ()
        operand = assumed_of(event)
        shown: list[Origin] = []
        given = is_argument = False
        for origin in operand.value.because:
            if origin.path is not None:
                continue
            # what is read from a module that is an argument is where the module is
            module = self._checked.assumed_modules.get(origin.span)
            is_module = module is not None
            assumed = module or self._checked.assumed.get(origin.span)
            if assumed is None:
                continue
            is_argument = True
            evidence = self.evidence(assumed[0])
            if isinstance(event, Meet) and evidence is not None and assumed[1] in evidence.arrays - evidence.either:
                return None  # the function reads it with numpy, too
            if evidence is not None and assumed[1] in evidence.maybe and is_of_plain_class(self, *assumed):
                return None
            said = self.asked(*assumed)
            silent = said.answer in ("open", "unknown")
            if operand.value.type_name == LOOKED_UP and not said.whole:
                return None  # it may be a number as well
            if said.answer == "host" or (silent and self._is_left_open(assumed[0])):
                return None
            if not is_module and is_never_given(self, *assumed):
                return None
            if silent and not is_module and needs_caller(self, event, *assumed):
                return None
            if said.answer == "unknown" and assumed[0].owner is None:
                return None  # there are calls of a plain function, and none is known to hand it an accelerator's
            given = given or said.answer == "device"
            if said.where is not None and said.where.path != self._checked.source.path:
                name = assumed[0].name
                shown.append(said.where._replace(text=f"`{name}` is called with this value here"))
        if not given and self.stays(event.function):
            return None
        if not is_argument and self._comes_from_host(event.function, operand):
            return None
        return tuple(shown[:1])

    def _comes_from_host(self, name: str, operand: Operand) -> bool:
        """Whether an operand is a part of an argument, or was placed like one, that every known call takes from the host."""
        function = self.function(name)
        if function is None:
            return False
        found = roots(function.node, operand.node, operand.value)
        return any(self.asked(function, root).answer == "host" for root in found)

    def _is_left_open(self, function: Function) -> bool:
        """Whether the calls of a function that say nothing are all there are: those of a program by itself."""
        name = function.name.rsplit(".", 1)[-1]
        if self._checked.callers.is_method_of_module(function) or name in self._own.scan.handed:
            return False
        if self.is_registered(name) or not self.is_own_caller:
            return False
        # what a notebook defines and does not call is there for who works in it, perhaps with what it places
        is_interactive = self.path.endswith(".ipynb") and places(self._own.tree)
        return not is_interactive or any(True for _ in self.calls(function))

    def stays(self, function: str) -> bool:
        """Whether a method is one of a module that the project never moves."""
        class_ = function.split(".", 1)[0]
        if class_ not in self._stays:
            self._stays[class_] = is_never_moved(self, function)
        return self._stays[class_]

    def asked(self, function: Function, name: str) -> Said:
        """What the calls of a function of the checked file say of a parameter."""
        own = self.files.look(self.path)
        if own is None:
            return UNKNOWN
        class_ = own.flow.classes.get(function.owner.name) if function.owner is not None else None
        return self._weigh(own, Function(function.node, function.name, class_), name, 0)

    def function(self, name: str) -> Function | None:
        """A function of the checked file by its qualified name there."""
        return self._checked.functions.get(name)

    def span(self, node: ast.AST) -> Span:
        """Where a node of the checked file is."""
        return self._checked.span(node)

    def is_moved_too(self, event: Meet) -> bool:
        """Whether the function that a new tensor leaves moves the tensor, or a copy of it, to an accelerator beside that."""
        made = set(event.off.value.made)
        moves = (e for e in self._checked.events.values() if isinstance(e, Move) and e.function == event.function)
        return any(
            not made.isdisjoint(move.receiver.value.made) and may_be_accelerator(move.result.device) for move in moves
        )

    def named(self, name: str) -> Iterator[ast.AST]:
        """The functions of the project that the checked file calls by a name: `has_new`, `compat.has_new`."""
        own = self.function(name)
        if own is not None:
            yield own.node
        start, _, rest = name.partition(".")
        target = self.imports.get(start)
        found = self.files.reach.find(self.path, f"{target}.{rest}".rstrip(".")) if target is not None else None
        function = found.function if found is not None and found.kind == "function" else None
        if function is not None:
            yield function.node

    def function_at(self, start: int) -> Function | None:
        """The function of the checked file that begins at a place, which tells the symbols of its variables apart."""
        return next((each for each, span in self._own_functions if span.start == start), None)

    @cached_property
    def _own_functions(self) -> list[tuple[Function, Span]]:
        """The functions that stand in the checked file, with their places: those of imported classes are known beside them."""
        own = self._own.scan.functions
        found = [each for each in self._checked.functions.values() if id(each.node) in own]
        return [(each, self._checked.span(each.node)) for each in found]

    def functions_around(self, start: int) -> Iterator[Function]:
        """The functions of the checked file in which a place is."""
        for each, span in self._own_functions:
            if span.start <= start < span.end:
                yield each

    def function_given(self, origin: Origin) -> Function | None:
        """The function of the checked file whose parameter, a module, an origin speaks of."""
        assumed = self._checked.assumed_modules.get(origin.span) if origin.path is None else None
        return assumed[0] if assumed is not None else None

    @property
    def classes(self) -> Mapping[str, ClassFacts]:
        """The classes that the checked file knows, those of other files as well, as its values name them."""
        return self._checked.classes

    def class_of(self, function: str) -> ClassFacts | None:
        """The class of the checked file whose method, or function inside one, has this qualified name there."""
        class_ = self._checked.classes.get(function.split(".", 1)[0])
        return class_ if class_ is not None and not class_.abroad else None

    def made(self, looked: Looked, home: Looked, class_name: str) -> Iterator[Site]:
        """The calls, in one file, that make objects of a class of the file `home`."""
        if looked is not home:
            yield from self.callers.calls_of(looked, home.path, class_name)
            return
        for site in looked.loaded.scan.calls.get(class_name, ()):
            if isinstance(site.call.func, ast.Name):
                yield site

    @cached_property
    def is_host_script(self) -> bool:
        """Whether the checked file is a script that trains on the host, and no file of the project names it."""
        return is_host_script(self._own.source, self._own.scan, self._shows) and not self.files.is_imported

    @cached_property
    def places_in_training(self) -> bool:
        """Whether all that places something in the checked file, an example that nothing imports, is Lightning's trainer:
        it brings the model back to the host when it is done.
        """
        return self._shows and not places(self._own.tree, lightning=False) and not self.files.is_imported

    @cached_property
    def _shows(self) -> bool:
        """Whether the checked file is an example, and runs something."""
        return is_example(self.files.way) and runs_itself(self._own.source, self._own.scan)

    @property
    def is_test(self) -> bool:
        """Whether the checked file is a test."""
        return self._checked.facts.is_test

    @cached_property
    def is_in_package(self) -> bool:
        """Whether the checked file is part of a package, whose other files could call its functions."""
        return os.path.exists(os.path.join(os.path.dirname(self.path), "__init__.py"))

    def handles_devices(self, function: Function) -> bool:
        """Whether a function of the checked file, or a method of its class or of a base of it there, handles devices.

        A method of a module also does when it calls an argument a tensor: modules are what is moved.
        """
        owner = function.owner
        if owner is not None and owner.is_module:
            evidence = self.evidence(function)
            if evidence is not None and (evidence.annotated or evidence.several or evidence.documented):
                return True
        own, _ = self._checked.callers.signs
        classes = () if owner is None else lineage(owner) if owner.is_module else (owner,)
        methods = (method for class_ in classes for method in class_.methods.values())
        return not own.isdisjoint(map(id, (function.node, *methods)))

    def is_registered(self, function: str) -> bool:
        """Whether the checked file hands a function of its own to what keeps it: `Modality.set_processor(processor=f)`."""
        for name, sites in self._own.scan.calls.items():
            if name.startswith(("set_", "register", "add_")):
                for site in sites:
                    handed = [*site.call.args, *(k.value for k in site.call.keywords)]
                    if any(isinstance(a, ast.Name) and a.id == function for a in handed):
                        return True
        return False

    @cached_property
    def is_own_caller(self) -> bool:
        """Whether who calls the functions of the checked file is in it: an example that no file of the project imports."""
        return self._shows and not self.files.is_imported

    @cached_property
    def is_silent_on_devices(self) -> bool:
        """Whether nothing in the project speaks of devices."""
        return is_silent_on_devices(self)

    @property
    def text(self) -> str:
        """The checked file."""
        return self._own.source.text

    @property
    def imports(self) -> Mapping[str, str]:
        """What the names of the checked file are imported as."""
        return self._own.imports.names

    def is_of_project(self, name: str) -> bool:
        """Whether a name of the checked file is imported from another file of the project."""
        target = self._own.imports.names.get(name)
        return target is not None and self.files.place(self.path, target) is not None

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

    def calls(self, function: Function) -> Iterator[tuple[Looked, Site]]:
        """The calls in the project of a function of the checked file."""
        own = self.files.look(self.path)
        if own is not None:
            yield from self.callers.sites(own, function)

    def every_call(self, function: Function) -> Iterator[tuple[Looked, Site]]:
        """The calls in the project of whatever has the last name of a function of the checked file."""
        name = function.name.rsplit(".", 1)[-1]
        for looked in self.files.mentioning(name):
            yield from ((looked, site) for site in looked.loaded.scan.calls.get(name, ()))

    def derives(self, looked: Looked, class_: ast.ClassDef, name: str) -> bool:
        """Whether a class of a file derives from one of the checked file, directly or through others of its own file."""
        if looked.path != self.path:
            return self.callers.derives(looked, class_, self.path, name)
        facts = looked.flow.classes.get(class_.name)
        return class_.name != name and facts is not None and name in {base.name for base in lineage(facts)}

    # -- one parameter ------------------------------------------------------------------------------------------------

    def _weigh(self, home: Looked, function: Function, name: str, depth: int) -> Said:
        key = (id(function.node), name)
        if key not in self._answers:
            self._answers[key] = AGAIN
            self._answers[key] = self._weighed(home, function, name, depth)
        return self._answers[key]

    def _weighed(self, home: Looked, function: Function, name: str, depth: int) -> Said:
        if depth > DEPTH or isinstance(function.node, ast.Lambda):
            return UNKNOWN
        position = Callers.position(function, name)
        asked: dict[str, list[tuple[Site, ast.expr]]] = {}
        found: list[Said] = []
        for looked, site in self.callers.sites(home, function):
            if any(isinstance(a, ast.Starred) for a in site.call.args):
                continue
            for argument in given(site.call, name, position):
                asked.setdefault(looked.path, []).append((site, argument))
        if self.callers.is_run_by_loading(home, function):
            found.append(HOST)
        for path, sites in asked.items():
            looked_at = self.files.look(path)
            if looked_at is not None:
                found += self._listen(looked_at, sites, depth)
        if AGAIN in found:
            found = [said for said in found if said != AGAIN] or [OPEN]
        ranked = ("device", "host", "open")
        found.sort(key=lambda said: not said.whole)
        said = next((s for answer in ranked for s in found if s.answer == answer), UNKNOWN)
        if not asked and said == UNKNOWN:
            return self._by_name(home, function, name, depth)
        if said in (UNKNOWN, OPEN) and (
            not home.flow.callers.is_method_of_module(function) or is_private(function.name.rsplit(".", 1)[-1])
        ):
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
        if not function.is_method:
            return OPEN
        position = Callers.position(function, name)
        asked: dict[str, list[tuple[Site, ast.expr]]] = {}
        for looked, site in self.callers.calls_on_objects(home, function):
            for argument in given(site.call, name, position):
                asked.setdefault(looked.path, []).append((site, argument))
        for path, sites in asked.items():
            looked_at = self.files.look(path)
            if looked_at is None:
                return UNKNOWN
            for one in sites:
                said = list(self._listen(looked_at, [one], depth))
                if not said or any(s != HOST for s in said):
                    return UNKNOWN
        return HOST if asked else OPEN

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
        around = site.caller.node if site.caller is not None else looked.loaded.tree
        if is_of_checkpoint(around, argument) or is_left_of_batch(around, argument):
            return True
        if not isinstance(argument, ast.Name):
            return isinstance(argument, ast.Call) and self._gives_host_data(looked, argument)
        bound = [n for n in walk(around) if isinstance(n, ast.Assign) and assigns(n, argument.id)]
        plain = all(isinstance(n.targets[0], ast.Name) for n in bound)
        calls = [n.value for n in bound if isinstance(n.value, ast.Call)]
        if not calls or not plain or len(calls) != len(bound):
            return False
        return all(is_given_host_data(call) for call in calls) or (
            len(calls) == 1 and self._gives_host_data(looked, calls[0])
        )

    def _gives_host_data(self, looked: Looked, node: ast.Call) -> bool:
        """Whether all of the project that has the name of what is called returns host data."""
        name = last_name(node.func)
        *_, start = chain(node.func)
        outside = isinstance(start, ast.Name) and start.id in looked.loaded.imports.names
        if not name or name.startswith("__") or (outside and not self.files.is_imported_from_project(looked, start)):
            return False
        files = [looked, *self.files.candidates(looked, name)]
        if len(files) > CANDIDATES:
            return False
        found = [
            f.node for each in files for f in each.loaded.scan.functions.values() if getattr(f.node, "name", "") == name
        ]
        marks = [returned(f).get(None) for f in found if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef))]
        return bool(marks) and all(mark in ("host", "array", "number", "list") for mark in marks)

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
                if any(encloses(inner.node, argument) for argument in arguments)
            ]


def is_given_host_data(call: ast.Call) -> bool:
    """Whether a call is given what is brought to the host, and nothing else but literals: `f(x.cpu(), y[0].cpu(), 3)`."""
    every = [*call.args, *(k.value for k in call.keywords)]
    given = [a for a in every if not isinstance(a, ast.Constant)]
    if any(isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value.startswith(_CARDS) for n in every):
        return False
    return bool(given) and all(map(ends_on_host, given))


def ends_on_host(node: ast.expr) -> bool:
    """Whether a chain of calls brings its object to the host, and nowhere else after that."""
    for part in chain(node):
        if isinstance(part, ast.Call):
            if moves(part):
                return False
            if getattr(part.func, "attr", "") in TO_HOST:
                return True
    return False


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

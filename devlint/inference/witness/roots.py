"""The roots of a file, and the mismatches at each."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from devlint.inference.objects.heap import Heap
from devlint.inference.program.definitions import Class, File, Function, binding_of, with_inner
from devlint.inference.program.neighbours import Neighbours
from devlint.inference.summary import moves, stories
from devlint.inference.summary.analyser import Analyser
from devlint.inference.summary.frame import Frame, State
from devlint.inference.summary.instantiate import Instance, can_clash
from devlint.inference.summary.model import LEAVING, Constraint, Operand, Site, Summary
from devlint.inference.terms.values import Value, given
from devlint.inference.witness.judge import Judge
from devlint.inference.witness.model import Mismatch


def mismatches(
    analyser: Analyser, file: File, declared: bool = False, around: Neighbours | None = None
) -> list[Mismatch]:
    """All mismatches of a file, the strongest of each operation and operand.

    `declared`: the settings say that callers may hand over tensors on an accelerator. `around`: where callers in other files
    are looked for; it is told the files in which this one makes something fail.
    """
    top = analyser.module_level(file)
    roots: list[tuple[list[Constraint], Site | None]] = [(top.constraints, top.site), *_roots(analyser, file, top)]
    outside = list(_outside(analyser, file, roots, around)) if around is not None else []
    aware = any(site.asks or site.moved for site in _sites(analyser))
    asking = frozenset(id(site.receiver) for site in _sites(analyser) if site.asks and site.receiver is not None)
    judge = Judge(aware, analyser.handed, asking, declared, analyser.watch)
    best: dict[tuple[int, int, str], Mismatch] = {}
    for constraints, root in (*roots, *outside):
        for each in judge.judge(constraints, root):
            if root is not None and root.file != file.path and each.evidence != "called":
                continue  # what a caller only hands on says nothing new
            key = (id(each.place[0]), id(each.off.node) if each.handed is None else 0, each.how)
            known = best.get(key)
            if known is None or each.strength < known.strength:
                best[key] = each
    if around is not None:
        called = (each for each in best.values() if each.evidence == "called" and each.chain[0].file == file.path)
        around.reached.update(each.place[1].file for each in called if each.place[1].file != file.path)
    return [each for each in best.values() if each.place[1].file == file.path]


def _outside(
    analyser: Analyser, file: File, roots: list[tuple[list[Constraint], Site | None]], around: Neighbours
) -> Iterator[tuple[list[Constraint], Site]]:
    """The constraints of functions of other files that call functions of this one which may fail by what they are given."""
    names: set[str] = set()
    for constraints, site in roots:
        if site is not None and site.function is not None and any(_is_half_open(each) for each in constraints):
            names |= _names_of(site.function)
    is_whole = True
    for path in around.callers(names) if names else ():
        caller = analyser.project.file(path)
        is_whole = is_whole and caller is not None
        if caller is not None:
            top = analyser.module_level(caller)
            yield top.constraints, top.site
            yield from _roots(analyser, caller, top, frozenset(names))
    if around.is_cut or not is_whole:  # a call that was not read may hand over anything
        for constraints, _ in roots:
            for each in constraints:
                analyser.handed.setdefault(id(each.node), set()).add("open")


def read_callers(analyser: Analyser, file: File, around: Neighbours) -> None:
    """Read the functions of other files that may call those of this one, for a watch that wants to know what they hand over."""
    functions = [*file.functions.values(), *(each for c in file.classes.values() for each in c.methods.values())]
    names = frozenset(name for each in functions if each.all_parameters() for name in _names_of(each))
    for path in around.callers(names) if names else ():
        caller = analyser.project.file(path)
        if caller is not None:
            for _ in _roots(analyser, caller, analyser.module_level(caller), names):
                pass


def _names_of(function: Function) -> set[str]:
    """The names by which other files can call a function: of a method, that of its class too."""
    names = {function.owner.name} if function.owner is not None else set()
    return names if function.name.startswith("__") or function.name == "forward" else names | {function.name}


def _is_half_open(each: Constraint) -> bool:
    """Whether a caller alone decides that this fails: one value is where the function put it, the other one is given."""
    if each.how in LEAVING:
        return False
    tags = [{at.atom.tag for at in operand.places} for operand in (each.first, each.second)]
    return any("at" in x and not y.isdisjoint(("place", "names")) for x, y in (tags, tags[::-1]))


def _mentions(function: Function, names: frozenset[str]) -> bool:
    """Whether a function, or another method of its class, mentions one of these names."""
    owner = function.owner
    functions = [function] if owner is None else [function, *owner.methods.values()]
    nodes = (node for each in functions for node in each.file.nodes_of(each.node))
    return any(
        (isinstance(node, ast.Name) and node.id in names) or (isinstance(node, ast.Attribute) and node.attr in names)
        for node in nodes
    )


def _sites(analyser: Analyser) -> Iterator[Site]:
    for summary in analyser.summaries.values():
        if summary is not None:
            yield summary.site


def _roots(
    analyser: Analyser, file: File, top: Frame, names: frozenset[str] | None = None
) -> Iterator[tuple[list[Constraint], Site]]:
    """The constraints of each function and method, as they are when nothing more is known of its arguments.

    `names`: only of those that mention one of them.
    """
    for function in file.functions.values():
        if names is not None and not _mentions(function, names):
            continue
        summary = analyser.summary(function, None)
        if summary is not None:
            yield _of_function(analyser, file, top, summary), summary.site
    for class_ in [inner for each in file.classes.values() for inner in with_inner(each)]:
        if names is None or any(_mentions(method, names) for method in class_.methods.values()):
            yield from _of_class(analyser, file, top, class_)
    if names is None:
        yield from _of_nested(analyser, file, top)


def _of_nested(analyser: Analyser, file: File, top: Frame) -> Iterator[tuple[list[Constraint], Site]]:
    """The functions and classes inside functions, and those whose name the module level binds again."""
    done: set[int] = set()
    while True:  # what is read here may hold further ones
        functions = [each for key, each in analyser.nested.items() if key not in done and each.file is file]
        nested = [each for key, each in analyser.nested_classes.items() if key not in done and each.file is file]
        if not functions and not nested:
            break
        done.update(id(each.node) for each in functions)
        done.update(id(each.node) for each in nested)
        for function in functions:
            if not analyser.was_read(function):
                analyser.summary(function, None)
        for class_ in [inner for each in nested for inner in with_inner(each)]:
            yield from _of_class(analyser, file, top, class_)
    for summary in list(analyser.summaries.values()):
        function_ = summary.function if summary is not None else None
        if summary is not None and function_ is not None and function_.file is file and function_.owner is None:
            if function_.outer is not None or file.functions.get(function_.name) is not function_:
                yield _of_function(analyser, file, top, summary), summary.site


def _of_function(analyser: Analyser, file: File, top: Frame, summary: Summary) -> list[Constraint]:
    is_called = summary.function is not None and id(summary.function.node) in analyser.called
    state = State() if is_called else State({}, top.state.heap.copy())
    frame = Frame(analyser, file, None, None, None, top.site, state)
    return _as_root(frame, summary, _around(analyser, frame, top, summary))


def _around(analyser: Analyser, frame: Frame, top: Frame, summary: Summary) -> dict[str, Value]:
    """What the names of the scopes around a function hold at their end, where no call says what they hold."""
    function = summary.function
    if function is None or id(function.node) in analyser.called:
        return {}
    found = {f"@{frame.path}:{name}": value for name, value in top.state.names.items()}
    scope = function.outer
    while scope is not None:
        for name, value in scope.state.names.items():
            if value.path is None and not any(each.atom.tag in ("place", "names") for each in value.places):
                found.setdefault("@" + name, value)
        for identity, thing in scope.heap.things.items():
            frame.heap.things.setdefault(identity, thing)
        scope = scope.outer
    for identity, thing in top.heap.things.items():
        frame.heap.things.setdefault(identity, thing)
    return found


def _as_root(frame: Frame, summary: Summary, bindings: dict[str, Value]) -> list[Constraint]:
    """The constraints of a function whose arguments stay what they are."""
    analyser = frame.analyser
    instance = Instance(frame, summary, bindings, summary.function.node if summary.function is not None else ast.Pass())
    found = []
    for each in summary.constraints:
        mapped = instance._constraint(each)
        if mapped is None:
            continue
        if not _is_own(frame, summary, mapped.first) and not _is_own(frame, summary, mapped.second):
            found.append(mapped)
        elif analyser.watch is not None:
            analyser.watch.silent(mapped, None, summary.site, "own field")
    return found


def moved_from_outside(file: File) -> frozenset[str]:
    """The fields of which some code moves what they hold, on an object that is not its own: `layer.router.gate.to(device)`."""
    if file.moved_outside is not None:
        return file.moved_outside
    found = set()
    for nodes in file.nodes.values():
        for node in nodes:
            if type(node) is ast.Call and type(node.func) is ast.Attribute and moves.is_move(node.func.attr):
                target = node.func.value
                if isinstance(target, ast.Attribute) and not (
                    isinstance(target.value, ast.Name) and target.value.id == "self"
                ):
                    found.add("." + target.attr)
    file.moved_outside = frozenset(found)
    return file.moved_outside


def _is_moved(constraint: Constraint, fields: frozenset[str]) -> bool:
    """Whether an operand is a module in such a field."""
    for operand in constraint.local or ():
        for each in operand.places if operand.kind == "module" else ():
            if each.atom.tag == "place" and each.atom.key[-1] in fields:
                return True
    return False


def _is_own(frame: Frame, summary: Summary, operand: Operand) -> bool:
    """Whether a value is a field that an object of the project keeps where its class puts it: its user does not say where."""
    for each in operand.places:
        if each.atom.tag != "place" or len(each.atom.key) < 2:
            continue
        identity = ("path", each.atom.key[:-1])
        for heap in (frame.heap, summary.heap):
            template = heap.get(identity).template
            value = template.thing.fields.get(each.atom.key[-1]) if template is not None else None
            if value is not None and value.places and all(other.atom.tag == "at" for other in value.places):
                return True
    return False


def _of_class(analyser: Analyser, file: File, top: Frame, class_: Class) -> Iterator[tuple[list[Constraint], Site]]:
    """The methods of a class, on an object after its constructor whose other methods may have run."""
    settled = stories.settled(analyser, class_)
    if settled is None:
        return
    story = settled.story
    fields = moved_from_outside(file)
    early = before_any_move(class_)
    for method in _methods(class_):
        if method.name in early:
            continue  # judged where the constructor calls it
        summary = analyser.summary(method, class_)
        if summary is None:
            continue
        frame = story.frame
        frame.state = settled.before(method) if method.name != "__init__" else State({}, Heap({}))
        frame.condition = frozenset()
        bindings = {"self": story.me} if method.name != "__init__" and binding_of(method) != "class" else {}
        bindings.update(_around(analyser, frame, top, summary))
        if method.name == "__init__" and method.owner is class_:
            yield summary.constraints, summary.site
        elif method.name != "__init__":
            found = _as_root(frame, summary, bindings)
            yield list(_unmoved(analyser, found, fields, summary.site)), summary.site


def _unmoved(
    analyser: Analyser, constraints: list[Constraint], fields: frozenset[str], site: Site
) -> Iterator[Constraint]:
    """The constraints but for those on a module that some other code moves."""
    for each in constraints:
        if not _is_moved(each, fields):
            yield each
        elif analyser.watch is not None:
            analyser.watch.silent(each, None, site, "moved outside")


def before_any_move(class_: Class) -> frozenset[str]:
    """The methods of a module that only its constructor uses: they run before anybody can move it."""
    if not class_.is_module:
        return frozenset()
    early: set[str] = set()
    later: set[str] = set()
    bases = [base for base in class_.lineage if isinstance(base, Class)]
    files = Counter(base.file for base in bases)
    for base in bases:
        own = {id(function.node) for function in base.methods.values() if function.name == "__init__"}
        for function in own:
            early |= base.file.attributes_of(function)
        if files[base.file] == 1:
            later.update(*(base.file.attributes_of(function) for function in base.file.nodes if function not in own))
        else:  # the constructor of one base is a method that another one's object runs later
            later |= base.file.attributes()
    return frozenset(early - later)


def _methods(class_: Class) -> Iterator[Function]:
    """The methods that an object of the class has, those of its bases too where they are of the project."""
    seen: set[str] = set()
    for each in class_.lineage:
        if isinstance(each, Class):
            for name, method in each.methods.items():
                if name not in seen:
                    seen.add(name)
                    yield method


__all__ = ["Value", "can_clash", "given", "mismatches"]

"""Where a device was chosen that the failing line names, and what an optimizer's step meets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from devlint.explain.bindings import bindings, own_nodes
from devlint.explain.calls import arguments_for, has_parameter, operands, parameter_names
from devlint.explain.origins import Search
from devlint.explain.sources import File, Plain
from devlint.explain.suspects import Context, Trail, step
from devlint.facts.text.method_names import OFF_HOST
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import last_name
from devlint.facts.text.signatures import default_of

_NAMING = frozenset({"device", "generator", "device_ids", "map_location", "gpu_ids"})
_TAKING = frozenset({"to", "device", "cuda", "set_device", "manual_seed"})
_SHUFFLES = frozenset({"DataLoader", "RandomSampler", "random_split"})
_ACCELERATOR = re.compile(r"cuda|mps|xpu|Generator|gpu")


def follow_device(search: Search, node: ast.AST, at: Context, *, numbers: bool) -> None:
    """Remember where the device was chosen that a call names: `x.to(device)`, `device=args.device`, `generator=g`.

    `numbers`: a number chooses a card too.
    """
    if not isinstance(node, ast.Call):
        return
    named = [k.value for k in node.keywords if k.arg in _NAMING]
    if last_name(node.func) in _TAKING and node.args:
        named.append(node.args[0])
    for each in named:
        for name in walk(each):
            if isinstance(name, (ast.Name, ast.Attribute)):
                for file, value, place in _choices(search, name, at):
                    numbered = numbers and any(
                        isinstance(n, ast.Constant) and type(n.value) is int for n in walk(value)
                    )
                    if numbered or _ACCELERATOR.search(ast.unparse(value)):
                        search.note(file, place, f"`{ast.unparse(name)}` is chosen here", Trail(1.1))


def _choices(search: Search, name: ast.Name | ast.Attribute, at: Context) -> Iterator[tuple[File, ast.expr, ast.AST]]:
    """What a device variable is in its own file; where that does not tell, in those of the project that mention it."""
    found = [(at.file, value, place) for value, place in _chosen(at.file, name, at.function)]
    yield from found
    if isinstance(name, ast.Name) and at.function is not None and has_parameter(at.function, name.id):
        yield from _given(search, name, at.function, at)
    last = last_name(name)
    imported = isinstance(name, ast.Attribute) or last in at.file.imports.names or bool(at.file.imports.stars)
    if not found and imported:
        for other in search.files.mentioning(last):
            if other is not at.file:
                for value, place in _chosen(other, name, None):
                    yield other, value, place


def _given(search: Search, name: ast.Name, function: Plain, at: Context) -> Iterator[tuple[File, ast.expr, ast.AST]]:
    """What calls give for a parameter that is a device: the value itself, or what a variable of theirs is."""
    for call, caller in search.callers_of(at):
        for argument in arguments_for(call, function, name.id):
            if isinstance(argument, (ast.Name, ast.Attribute)):
                if caller.level < at.level:
                    yield from _choices(search, argument, caller)
            else:
                yield caller.file, argument, argument


def _chosen(file: File, name: ast.Name | ast.Attribute, function: Plain | None) -> Iterator[tuple[ast.expr, ast.AST]]:
    """What a device variable is: bound in a function or at module level, an attribute, an option's or argument's default."""
    last = last_name(name)
    if isinstance(name, ast.Name):
        for scope in (function, file.tree):
            for binding in bindings(scope).get(last, []) if scope is not None else ():
                yield binding.value, binding.place
    for node in walk(file.tree):
        if isinstance(node, ast.Assign) and isinstance(name, ast.Attribute):
            if any(isinstance(target, ast.Attribute) and target.attr == last for target in node.targets):
                yield node.value, node
        elif isinstance(node, ast.Call) and last_name(node.func) == "add_argument" and last in _options(node):
            for keyword in node.keywords:
                if keyword.arg == "default":
                    yield keyword.value, node
    default = default_of(function.args, last) if function is not None else None
    if default is not None:
        yield default, default


def _options(call: ast.Call) -> set[str]:
    """The names under which an option that `add_argument` declares may be read."""
    texts = (a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str))
    return {text.lstrip("-").replace("-", "_") for text in texts}


def note_wrappers(search: Search, device: str) -> bool:
    """Remember where `DataParallel` wraps a module, in the files of the frames, and where its card was chosen.

    `device`: where the module is, as the error names it. Whether anything was found.
    """
    for file in files_of(search):
        for node in walk(file.tree):
            if isinstance(node, ast.Call) and last_name(node.func) in ("DataParallel", "data_parallel"):
                search.note(file, node, "the module that is wrapped here is not on the first GPU", Trail())
            elif isinstance(node, ast.Constant) and node.value == device and device != "cpu":
                search.note(file, node, f"{device} is chosen here", Trail(0.6), on_host=False)
    return bool(search.found)


def note_defaults(search: Search) -> None:
    """Remember what changes where generators are: the default device, and loaders that shuffle without one of their own."""
    for file in files_of(search):
        calls = [node for node in walk(file.tree) if isinstance(node, ast.Call)]
        defaults = [call for call in calls if last_name(call.func).startswith("set_default_")]
        for call in defaults:
            search.note(file, call, "the default device that is set here also applies to random numbers", Trail(1.02))
        for call in calls if defaults else ():
            name = last_name(call.func)
            if name in _SHUFFLES and not any(k.arg == "generator" for k in call.keywords):
                text = f"`{name}` shuffles with its own CPU generator: pass a `generator=` on the default device"
                search.note(file, call, text, Trail(1.04))


def follow_optimizer(search: Search, statement: ast.stmt) -> None:
    """Remember what an optimizer's step meets: parameters that moved after it was made, a state that was loaded."""
    for call in (n for each in operands(statement) for n in walk(each) if isinstance(n, ast.Call)):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "step":
            for file in files_of(search):
                _follow_optimizer(search, file, last_name(call.func.value))


def _follow_optimizer(search: Search, file: File, name: str) -> None:
    functions = (n for n in walk(file.tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)))
    for scope in (file.tree, *functions):
        made = [
            n for n in own_nodes(scope) if isinstance(n, ast.Assign) and any(last_name(t) == name for t in n.targets)
        ]
        for assignment in made:
            if "param" not in ast.unparse(assignment.value):
                continue
            text = f"`{name}` is created here: the parameters must already be on the training device"
            search.note(file, assignment, text, Trail(0.7))
            _note_late_moves(search, file, scope, assignment, name)
    for node in walk(file.tree):
        if isinstance(node, ast.Call) and _loads_state(node, name):
            text = "the state that is loaded here is on the device of the checkpoint or of the parameters at this time"
            search.note(file, node, text, Trail(0.8))


def _note_late_moves(search: Search, file: File, scope: ast.AST, made: ast.Assign, name: str) -> None:
    """Remember where a model is moved after its optimizer was made, and how its state came to be where it is."""
    models = _made_of(made.value, scope)
    for node in own_nodes(scope):
        moved = _moved(node)
        if moved is None or moved.lineno <= made.lineno or ast.unparse(moved) not in models:
            continue
        loaded = [call for call in _loads(search, file, scope, name) if made.lineno < call.lineno < moved.lineno]
        if loaded:
            rows = f"line {loaded[-1].lineno}"
            text = (
                f"the model is moved after the state of `{name}` was loaded ({rows}): the state stays on its old device"
            )
            search.note(file, node, text, Trail(1.1))
            text = f"the state of `{name}` is loaded here, before the model is moved: it goes to the old device"
            search.note(file, loaded[-1], text, Trail(1.05))
        else:
            search.note(file, node, "the model is moved after the optimizer was created", Trail(0.95))


def _made_of(value: ast.expr, scope: ast.AST) -> set[str]:
    """What an expression reads, and what the variables that it reads were made of: `self.net`, `model`."""
    found: set[str] = set()
    pending: list[ast.AST] = [value]
    for node in pending:  # which grows
        for each in walk(node):
            text = ast.unparse(each) if isinstance(each, (ast.Name, ast.Attribute)) else ""
            if text and text not in found:
                found.add(text)
                if isinstance(each, ast.Name):
                    pending += [binding.value for binding in bindings(scope).get(each.id, []) if not binding.turn]
    return found


def _loads(search: Search, file: File, scope: ast.AST, name: str) -> Iterator[ast.Call]:
    """The calls of a function that load the state of an optimizer, themselves or in a function of the project."""
    function = scope if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
    for call in own_nodes(scope):
        if not isinstance(call, ast.Call):
            continue
        if _loads_state(call, name):
            yield call
            continue
        given = [a for a in (*call.args, *(k.value for k in call.keywords)) if last_name(a) == name]
        known = search.callee(call.func, Context(file, function)) if given else None
        if known is not None:
            parameters = [p for p in parameter_names(known[1]) for a in arguments_for(call, known[1], p) if a in given]
            if any(isinstance(n, ast.Call) and _loads_state(n, p) for n in own_nodes(known[1]) for p in parameters):
                yield call


def _loads_state(call: ast.Call, name: str) -> bool:
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "load_state_dict"
        and last_name(call.func.value) == name
    )


def note_loaders(search: Search) -> None:
    """Remember what workers and collate functions put on a card, and the loaders that pin what they return."""
    for file in files_of(search):
        for call in (node for node in walk(file.tree) if isinstance(node, ast.Call)):
            pins = last_name(call.func) == "DataLoader" and _pins(call)
            if not pins:
                continue
            text = "the data loader that is created here pins the batches of its dataset and collate function"
            search.note(file, call, text, Trail(0.9))
            at = Context(file, file.function_of(call))
            for home, function in _runs_before_pinning(search, call, at):
                for node in own_nodes(function):
                    if _moved(node) is not None:
                        text = f"`{function.name}` runs before the batch is pinned, so it must return CPU tensors"
                        search.note(
                            home, node, text, Trail(1.1).via(step(file, call, "the data loader is created here"))
                        )


def _pins(call: ast.Call) -> bool:
    return any(
        k.arg == "pin_memory" and not (isinstance(k.value, ast.Constant) and not k.value.value) for k in call.keywords
    )


def _runs_before_pinning(search: Search, call: ast.Call, at: Context) -> Iterator[tuple[File, Plain]]:
    """The collate function of a loader, and the method of its data set that gives a sample."""
    for keyword in call.keywords:
        known = search.callee(keyword.value, at) if keyword.arg == "collate_fn" else None
        if known is not None:
            yield known
    for given in (*call.args[:1], *(k.value for k in call.keywords if k.arg == "dataset")):
        made = search.resolve(given.func, at.file) if isinstance(given, ast.Call) else None
        if made is None and isinstance(given, ast.Name):
            made = search.class_of_name(given, at)
        if made is not None and isinstance(made[1], ast.ClassDef):
            sample = search.method(made[0], made[1], ("__getitem__", "__iter__"))
            if sample is not None:
                yield sample


def _moved(node: ast.AST) -> ast.expr | None:
    """What a call of `.to()`, `.cuda()` and the like moves."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in OFF_HOST:
        return node.func.value
    return None


def files_of(search: Search) -> list[File]:
    """The files that the frames are in, the innermost first."""
    return list({id(file): file for file, _, _ in reversed(search.frames)}.values())

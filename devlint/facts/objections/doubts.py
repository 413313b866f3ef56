"""What else the project says against a finding: asked, like the callers of a function, before it is reported.

A script that sets another default device before it calls what it imports; subclasses that set the attribute which their
base reads; a helper's option that no call takes.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.facts.events import ApiCall, ApiName, Call, Event, GeneratorMeet, Lengths, Meet, Register, Use
from devlint.facts.idioms import called_devices
from devlint.facts.objections.branches import (
    asks_for_array,
    is_always_given,
    is_asked_whether_empty,
    is_made_for_host,
    is_made_of_array,
    is_never_taken,
    is_no_alternative,
    is_without_cards,
)
from devlint.facts.objections.flags import is_dead_by_locals, is_switched_off
from devlint.facts.objections.given_devices import is_given_cpu
from devlint.facts.objections.given_state import is_given_right
from devlint.facts.objections.hooked import is_hooked
from devlint.facts.objections.left_out import is_left_out
from devlint.facts.objections.moved_along import is_moved_along
from devlint.facts.objections.moved_when_read import is_moved_when_read
from devlint.facts.objections.of_another import is_another_object, is_of_another_framework
from devlint.facts.objections.on_purpose import is_brought_by_method, is_copied_to_host, is_rehomed, is_tried_again
from devlint.facts.objections.parts_left import is_part_left
from devlint.facts.objections.predicates import is_for_lack_of_module, is_tried_by_predicate, is_under_version
from devlint.facts.objections.read_before import is_read_before
from devlint.facts.objections.refused_devices import is_refused
from devlint.facts.objections.replaced_methods import rests_on_replaced
from devlint.facts.objections.ruled_out import is_behind_failure, is_ruled_out
from devlint.facts.objections.tried_by_tests import is_tried
from devlint.facts.objections.unmoved import is_moved_by_holder
from devlint.facts.objections.unread_inputs import is_unread
from devlint.facts.objections.ways import HOPS, READ, imported_files, leads_to, programs_that_run
from devlint.facts.project.project import is_marked
from devlint.facts.text.defined import Function
from devlint.facts.text.nodes import asks_name, encloses, every, holds, statements, walk
from devlint.facts.text.references import chain, last_name
from devlint.facts.text.results import index_in_result, is_moved, is_shown, is_taken_apart, returns_host_data
from devlint.facts.text.signatures import parameter_of
from devlint.facts.text.signs import WITHOUT_CARD, is_put_before, moved_after, moves
from devlint.facts.text.trained import is_trained
from devlint.facts.values import CPU, HOME, LOOKED_UP, MADE_ON_CPU, Value
from devlint.project_files import is_installable

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.calling.neighbours import Looked

#: What is asked where a model is exported, which is done on the host for the most part.
_EXPORTS = re.compile(r"(?:[\w.]*is_in_onnx_export\(\)|[\w.]*onnx\w*)\Z", re.IGNORECASE)
_IS_ARRAY = re.compile(r"(?:\w+\.)*is_(?:numpy|np|ndarray)\w*\(")
#: What makes a sparse tensor of places and values.
_MAKES_SPARSE = re.compile(r"[\w.]*\b(?:sparse\.(?:Float|Double|Half|Long|Int)Tensor|sparse_\w+_tensor)\Z")
TO_CPU = "moved to the CPU"  # the origin of what `x.cpu()` gives
BESIDE = 6  # imported files of the same folder that are read
#: Words of which a project has one that puts anything anywhere.
_DEVICES = (
    "device", "devices", "device_map", "to_device", "cuda", "use_cuda", "no_cuda", "gpu", "gpus", "use_gpu", "n_gpu",
    "accelerator", "accelerate", "mps", "xpu", "npu", "Trainer", "lightning", "pytorch_lightning", "transformers",
    "deepspeed", "ray",
)  # fmt: skip
#: What code calls a module that it was handed or made.
_MODULES = ("model", "net", "network", "module", "encoder", "decoder", "generator", "discriminator")
#: What is asked where a program plainly uses no card.
_NO_CARD = re.compile(r"not (?:\w+\.)*(?:use_|with_|has_)?(?:cuda|gpu)(?:_mode|_available)?\Z", re.IGNORECASE)
_TYPE = "set_default_tensor_type"
_DEVICE = "set_default_device"
_LEGACY = "torch.Tensor"
#: Ends of the names of what makes tensors of the CPU whatever the default: `torch.FloatTensor`, `torch.from_numpy`.
_NEVER_BY_DEFAULT = ("Tensor", "from_numpy")


def refuted(sites: CallSites, event: Event) -> bool:
    """Whether the project shows that what an event says does not happen."""
    if (
        isinstance(event, Meet)
        and event.off.value.kind == "module"
        and (is_prepared(sites, event) or is_hooked(sites, event))
    ):
        return True
    if isinstance(event, Meet) and sites.is_test and is_tried(sites, event):
        return True
    if isinstance(event, Meet) and event.how == "module":
        if is_scattered(sites, event) or is_moved_by_holder(sites, event) or is_unread(sites, event):
            return True
    if isinstance(event, (Meet, Use)) and event.level == "assume" and stays_in_program(sites, event.function):
        return True
    if isinstance(event, (Meet, Use)) and event.level == "assume" and is_quantized(sites, event.function):
        return True
    if isinstance(event, (Meet, Use)) and is_given_cpu(sites, event):
        return True
    if isinstance(event, Use) and event.level == "assume" and (sites.is_silent_on_devices or is_left_out(sites, event)):
        return True
    if isinstance(event, Use) and (is_of_array(sites, event) or is_of_own_class(sites, event)):
        return True
    if isinstance(event, Use) and (is_of_another_framework(sites, event) or is_brought_by_method(sites, event)):
        return True
    if isinstance(event, Use) and is_tried_again(sites, event):
        return True
    if isinstance(event, (Meet, Use)) and (is_switched_off(sites, event) or is_behind_failure(sites, event)):
        return True
    if isinstance(event, Meet) and is_ruled_out(sites, event):
        return True
    without_card = WITHOUT_CARD if isinstance(event, (Meet, Use)) and event.level == "assume" else _NO_CARD
    if isinstance(event, (Meet, Use)) and any(map(without_card.match, event.under.tests)):
        return True
    if isinstance(event, Meet) and is_fetched_after(sites, event):
        return True
    if isinstance(event, Meet) and event.level == "assume":
        if (
            is_moved_after(sites, event)
            or is_no_alternative(sites, event)
            or is_without_cards(event)
            or is_made_for_host(sites, event)
            or is_asked_whether_empty(sites, event)
            or is_brought_to_host(event)
            or is_made_of_array(sites, event)
            or is_always_given(sites, event)
            or is_shown_alone(sites, event.function)
            or is_trained_on_host(sites, event)
            or is_read_before(sites, event)
            or is_part_left(sites, event)
            or is_moved_when_read(sites, event)
            or is_refused(sites, event)
            or any(map(_EXPORTS.match, event.under.tests))
            or (event.other.value.is_unplaced and sites.is_silent_on_devices)
        ):
            return True
    if isinstance(event, Meet) and rests_on_replaced(sites, event, [event.off, event.other]):
        return True
    if isinstance(event, Use) and rests_on_replaced(sites, event, [event.operand]):
        return True
    if isinstance(event, Meet) and is_entry_moved_before(sites, event):
        return True
    if isinstance(event, Meet) and (is_copied_to_host(sites, event) or is_rehomed(sites, event)):
        return True
    if isinstance(event, Meet) and event.how in ("size", "copy", "beside") and stays_on_host(sites, event):
        return True
    if isinstance(event, Meet) and event.how == "paths" and is_fetched_by_callers(sites, event):
        return True
    if isinstance(event, Meet):
        made = [creation.function for creation in event.off.value.made if follows_default(creation.function)]
        is_new = event.off.value.kind == "module" and event.off.value.ident is not None and not event.off.value.moved
        abroad = made_abroad(sites, event.off.value)
        if (made or is_new or abroad) and default_is_set(sites, event, legacy=set(made) == {_LEGACY}, maker=abroad):
            return True
        return is_never_taken(sites, event)
    if isinstance(event, Register):
        body = sites.body(event.function)
        if isinstance(body, (ast.FunctionDef, ast.AsyncFunctionDef)) and is_dead_by_locals(body, [event.node]):
            return True
        if event.what != "tensors" and is_given_right(sites, event):
            return True
        if event.what in ("tensor", "tensors") and (sites.is_host_script or is_moved_along(sites, event)):
            return True
        made = [creation.function for creation in event.value.value.made if follows_default(creation.function)]
        return bool(made) and default_is_set(sites, event, legacy=set(made) == {_LEGACY})
    if isinstance(event, GeneratorMeet) and event.how == "draw" and event.drawn is None:
        return default_is_set(sites, event, legacy=False)
    if isinstance(event, ApiCall) and event.qualname == _LEGACY and "device" in event.arguments:
        return default_is_set(sites, event, legacy=True)
    if isinstance(event, ApiName) and event.exists is False:
        return is_tried_by_predicate(sites, event) or is_for_lack_of_module(sites, event)
    if isinstance(event, ApiName) and event.since is not None:
        return is_under_version(sites, event)
    if isinstance(event, Call) and event.qualname == f"{called_devices.LACKING}.device" and event.is_call:
        return may_have_method(sites, event)
    if isinstance(event, Call) and event.exists is False and isinstance(event.node, ast.Attribute):
        if is_another_object(sites, event):
            return True
        return is_set_by_subclass(sites, event.node, event.function) or is_set_from_outside(sites, event.node)
    return False


def is_silent_on_devices(sites: CallSites) -> bool:
    """Whether no Python file of a project speaks of devices, or of what places models by itself: it computes on the host,
    where numpy may read what it will."""
    root = sites.files.root
    if not root or not is_marked(root) or re.search(rf"\b(?:{'|'.join(_DEVICES)})\b", sites.text) is not None:
        return False
    return not any(sites.files.mentioned_in(word) for word in _DEVICES)


def stays_in_program(sites: CallSites, function: str) -> bool:
    """Whether a function is run by nothing but the checked file, a program that stays on the host."""
    if sites.is_registered(function):
        return False
    class_ = sites.class_of(function)
    if (class_ is None or not class_.is_module) and sites.places_in_training:
        return True
    return sites.is_host_script


def follows_default(function: str) -> bool:
    """Whether a factory makes its tensors on the default device: `torch.FloatTensor` and `torch.from_numpy` do not."""
    return function == _LEGACY or not function.endswith(_NEVER_BY_DEFAULT)


# -- moved later ------------------------------------------------------------------------------------------------------


def is_moved_after(sites: CallSites, event: Meet) -> bool:
    """Whether the function moves, after the operation, what it was given for it, or its result: it runs on the host.

    `mask = torch.cat([mask, torch.zeros(2)]).to(device)`; `count += (labels != 0).sum()` before `labels.to(device)`. Also a
    sparse tensor of that: `torch.sparse_coo_tensor(index, values).to(device)`.
    """
    function = sites.body(event.function)
    other = event.other.value
    if function is None or other.device - CPU != HOME or other.moved or other.type_name == LOOKED_UP:
        return False  # the code, or a call, says where the other one is
    names = {node.id for node in walk(event.other.node) if isinstance(node, ast.Name)}
    for node in every(function):
        if not isinstance(node, (ast.Assign, ast.AugAssign)) or not encloses(node, event.node):
            continue
        if holds(node.value, event.node):
            names |= {last_name(t) for t in (node.targets if isinstance(node, ast.Assign) else [node.target])}
    names -= {"", "self"}
    sparse = list(sparse_tensors_of(function, event.node, names)) if names and "sparse" in sites.text else []
    for node in every(function) if sparse else ():
        if isinstance(node, ast.Assign) and node.value in sparse:
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    if not names.isdisjoint(moved_after(function, event.node, to_arguments=False)):
        return True
    calls = (node for node in every(function) if isinstance(node, ast.Call) and node is not event.node)
    return any(
        moves(call)
        and (is_combined(call, event.node) or (isinstance(call.func, ast.Attribute) and call.func.value in sparse))
        for call in calls
    )


def sparse_tensors_of(function: ast.AST, place: ast.AST, names: set[str]) -> Iterator[ast.Call]:
    """The calls that make sparse tensors, after a place, of tensors that a function has bound to names there."""
    last = getattr(place, "end_lineno", None) or 0
    for node in every(function):
        if isinstance(node, ast.Call) and node.lineno > last and _MAKES_SPARSE.match(ast.unparse(node.func)):
            parts = {part.id for part in node.args[:3] if isinstance(part, ast.Name)} & names
            if parts and not any(is_bound_between(function, part, last, node.lineno) for part in parts):
                yield node


def is_bound_between(function: ast.AST, name: str, first: int, last: int) -> bool:
    """Whether a function binds a name in the lines between two."""
    return any(
        isinstance(node, ast.Name)
        and node.id == name
        and isinstance(node.ctx, ast.Store)
        and first < node.lineno < last
        for node in walk(function)
    )


def is_fetched_after(sites: CallSites, event: Meet) -> bool:
    """Whether a function of no library gets a new tensor, of which a part is moved once it is filled: `kept[:n].to(device)`.

    A kernel of a project's own writes what it counts into the host's memory.
    """
    call, name = event.node, event.off.text
    if event.how != "function" or event.operation.startswith("torch.") or not event.off.value.made:
        return False
    if not isinstance(call, ast.Call) or not name.isidentifier():
        return False
    last = call.end_lineno or 0
    for node in walk(sites.body(event.function) or call):
        if isinstance(node, ast.Call) and node.lineno > last and moves(node) and isinstance(node.func, ast.Attribute):
            part = node.func.value
            if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name) and part.value.id == name:
                return True
    return False


def is_entry_moved_before(sites: CallSites, event: Meet) -> bool:
    """Whether an entry whose key is a variable was moved just before: `parts[key] = parts[key].to(device)`."""
    function = sites.body(event.function) if isinstance(event.off.node, ast.Subscript) else None
    return function is not None and is_put_before(function, event.off.node, event.node)


def is_of_array(sites: CallSites, event: Use) -> bool:
    """Whether a tensor is made an array again where the function was given one: `is_np = isinstance(x, np.ndarray)`."""
    tests = {test for test in event.under.tests if test.isidentifier()}
    if any(map(asks_for_array, event.under.tests)):
        return True
    function = sites.body(event.function) if tests else None
    for node in walk(function) if function is not None else ():
        if isinstance(node, ast.Assign) and asks_for_array(ast.unparse(node.value)):
            if any(isinstance(t, ast.Name) and t.id in tests for t in node.targets):
                return True
    return False


def is_of_own_class(sites: CallSites, event: Use) -> bool:
    """Whether a method is not a tensor's: the parameter that it is called on, or on whose other methods' results, is said
    to be of a class of the project that has such a method: `def show(batch: Batch): batch.cuda().numpy()`.
    """
    call = event.node
    function = sites.body(event.function)
    if function is None or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    node = call.func.value
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    spec = getattr(function, "args", None)
    if not isinstance(node, ast.Name) or not isinstance(spec, ast.arguments):
        return False
    parameter = parameter_of(spec, node.id)
    said = parameter.annotation if parameter is not None else None
    names = (
        {last_name(n) for n in walk(said) if isinstance(n, (ast.Name, ast.Attribute))} if said is not None else set()
    )
    if "Tensor" in names:
        return False
    return any(has_method(sites, name, call.func.attr, 0) for name in names)


def has_method(sites: CallSites, class_name: str, name: str, depth: int) -> bool:
    """Whether a class of the project by this name, or a base of it, defines a method."""
    for looked in sites.files.mentioning(class_name) if depth < HOPS else ():
        for class_ in (n for n in walk(looked.loaded.tree) if isinstance(n, ast.ClassDef) and n.name == class_name):
            if any(isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and n.name == name for n in class_.body):
                return True
            if any(has_method(sites, last_name(base), name, depth + 1) for base in class_.bases if last_name(base)):
                return True
    return False


def is_brought_to_host(event: Meet) -> bool:
    """Whether the operation itself brings an operand to the CPU, for what is only assumed to be elsewhere.

    `torch.cat([seen, x.cpu()])`
    """
    off, other = event.off.value, event.other.value
    origin = off.because[0] if off.because and not off.made else None
    moved = (
        origin is not None
        and origin.text.startswith(TO_CPU)
        and event.off.span.start <= origin.span.start
        and origin.span.end <= event.off.span.end
    )
    placed = bool(other.because) and other.because[0].text.startswith("created on")
    return moved and event.how != "index" and other.device == HOME and not placed


def is_trained_on_host(sites: CallSites, event: Meet) -> bool:
    """Whether a tensor that a plain class trains is one of a project without a word of devices: its networks are beside it."""
    return any(is_trained(made.node) for made in event.off.value.made) and sites.is_silent_on_devices


def is_shown_alone(sites: CallSites, name: str) -> bool:
    """Whether all that becomes of what a function gives is that its callers show it, as it is: it gets host data.

    What showed an accelerator's tensor would fail there: `axes.imshow(renorm(image))`.
    """
    function = sites.function(name)
    return function is not None and is_shown(sites, function, copied=False)


def is_quantized(sites: CallSites, function: str) -> bool:
    """Whether a function computes with quantized tensors, for which torch has kernels of the CPU [torch.ops.quantized]."""
    body = sites.body(function)
    return body is not None and any(
        isinstance(node, ast.Attribute) and node.attr == "quantized" and last_name(node.value) == "ops"
        for node in every(body)
    )


def is_scattered(sites: CallSites, event: Meet) -> bool:
    """Whether a module that a function is given may be a `DataParallel`, which takes host data: a file that names the
    function makes some."""
    value = event.other.value
    given = value.kind == "module" and any("is an argument" in origin.text for origin in value.because[:1])
    if not given or not event.off.value.is_tensor:
        return False
    word = re.compile(r"(?<!\w)DataParallel\b")
    functions = (sites.function(event.function), sites.function_given(value.because[0]))
    return any(
        word.search(looked.loaded.source.text)
        for function in functions
        if function is not None
        for looked, _ in sites.calls(function)
    )


def is_prepared(sites: CallSites, event: Meet) -> bool:
    """Whether the function gives a module to something of the project's own that gives it back: `model = shard(model)`."""
    function, node = sites.body(event.function), event.off.node
    if function is None or not isinstance(node, ast.Name):
        return False
    for statement in walk(function):
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            continue
        call = statement.value
        plain = isinstance(call.func, ast.Name) and sites.is_of_project(call.func.id)
        given = any(isinstance(a, ast.Name) and a.id == node.id for a in call.args)
        if plain and given and any(isinstance(t, ast.Name) and t.id == node.id for t in statement.targets):
            return True
    return False


def is_combined(outer: ast.expr, inner: ast.AST) -> bool:
    """Whether an expression is what another one gives, or a part of it."""
    return any(part is inner for part in chain(outer))


def stays_on_host(sites: CallSites, event: Meet) -> bool:
    """Whether a tensor that leaves its function on the CPU belongs there: as the other results do, or for its callers.

    Or where the function, or all its callers, move it themselves.
    """
    body, function = sites.body(event.function), sites.function(event.function)
    if body is not None and (returns_host_data(body, sites.imports) or sites.is_moved_too(event)):
        return True
    if function is None:
        return False
    left = event.because[1].span if len(event.because) > 1 else None
    index = index_in_result(function.node, lambda node: sites.span(node) == left)
    if event.how == "beside" and is_taken_apart(sites, function, index):
        return True
    return is_shown(sites, function) or is_moved(sites, function, index)


def is_fetched_by_callers(sites: CallSites, event: Meet) -> bool:
    """Whether all calls of a function bring what it gives to the host, or move it: `env.step(agent.act(state).item())`."""
    function = sites.function(event.function)
    return function is not None and (is_shown(sites, function) or is_moved(sites, function, None))


# -- another default device -------------------------------------------------------------------------------------------


def made_abroad(sites: CallSites, value: Value) -> str | None:
    """The other file whose function made a tensor on the default device; None when that is not known."""
    origin = value.because[0] if value.because and not value.made else None
    if origin is None or origin.path is None or origin.text != MADE_ON_CPU:
        return None
    path = os.path.abspath(origin.path)
    looked = sites.files.look(path)
    if looked is None:
        return None
    called = looked.loaded.source.text[origin.span.start : origin.span.end].partition("(")[0]
    return None if called.rstrip().endswith(_NEVER_BY_DEFAULT) else path


def default_is_set(sites: CallSites, event: Event, legacy: bool, maker: str | None = None) -> bool:
    """Whether a script of the project that leads to the checked file by its imports sets a default device or tensor type.

    Not where another script, which sets none, runs the function of the event as well.
    Or what the file itself imports, or a package that it is in: they set it for whoever imports them, or are there to do so.
    Or what a file that imports the checked one imports beside it, when it is imported.
    `maker`: another file, in which the tensor is made; a script may lead to that one as well.
    `legacy`: what follows the default tensor type alone, as `torch.Tensor` does.
    """
    words = (_TYPE,) if legacy else (_TYPE, _DEVICE)
    setting = {
        word: [looked for looked in sites.files.mentioning(word) if sets_default(looked, word)] for word in words
    }
    scripts = {looked.path for found in setting.values() for looked in found}
    for word, found in setting.items():
        for looked in found:
            if not is_of_program(sites, looked):
                continue
            if leads_to(sites, looked.path, sites.path, *([maker] if maker is not None else ())):
                if not is_run_by_others(sites, scripts, event.function):
                    return True
            if any(looked.path in imported_files(sites, path) for path in (sites.path, *packages_of(sites))):
                return True
            if is_imported_beside(sites, looked, word):
                return True
        if any(sets_default(looked, word) for looked in beside(sites)):
            return True
    return False


def is_run_by_others(sites: CallSites, setting: set[str], function: str) -> bool:
    """Whether a script that handles devices, and is no test, runs a function of the checked file without a default being set.

    `setting`: the files of the project that set one.
    """
    for path in programs_that_run(sites, sites.path, function.partition(".")[0]):
        parts = os.path.relpath(path, sites.files.root).split(os.sep)
        if any(part.startswith("test") or part == "conftest.py" for part in parts) or path in setting:
            continue
        looked = sites.files.look(path)
        if looked is None or not looked.flow.callers.handles_devices or leads_to(sites, path, *setting):
            continue
        return True
    return False


def is_imported_beside(sites: CallSites, looked: Looked, word: str) -> bool:
    """Whether a file sets the default when it is imported, and one that imports the checked file imports it as well."""
    inside = [
        n
        for n in statements(looked.loaded.tree)
        if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) or (isinstance(n, ast.If) and asks_name(n))
    ]
    calls = [site.call for site in looked.loaded.scan.calls.get(word, ())]
    if all(any(holds(part, call) for part in inside) for call in calls):
        return False
    stem = os.path.splitext(os.path.basename(sites.path))[0]
    for path in sorted(sites.files.mentioned_in(stem))[:BESIDE] if stem != "__init__" else ():
        found = set(imported_files(sites, path)) if path not in (looked.path, sites.path) else set()
        if sites.path in found and looked.path in found:
            return True
    return False


def beside(sites: CallSites) -> Iterator[Looked]:
    """The files of its own folder that the checked file imports: in a folder of tests, where nothing is searched.

    Also by their names alone, as a script finds them, where the folder is a package.
    """
    folder = os.path.dirname(sites.path)
    names = {target.split(".", 1)[0] for target in sites.imports.values()}
    here = {os.path.join(folder, f"{name}.py") for name in names if name.isidentifier()}
    found = {*imported_files(sites, sites.path), *filter(sites.files.reach.exists, here - {sites.path})}
    for path in sorted(found)[:BESIDE]:
        looked = sites.files.look(path) if os.path.dirname(path) == folder else None
        if looked is not None:
            yield looked


def packages_of(sites: CallSites) -> list[str]:
    """The `__init__.py` of the packages that the checked file is in."""
    found = []
    folder = os.path.dirname(sites.path)
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        found.append(os.path.join(folder, "__init__.py"))
        folder = os.path.dirname(folder)
    return [path for path in found if path != sites.path]


def is_of_program(sites: CallSites, looked: Looked) -> bool:
    """Whether a script and the checked file are of one program: an example beside an installed package is one of its users."""
    root = sites.files.root
    if not is_installable(root):
        return True
    tops = {os.path.relpath(path, root).split(os.sep)[0] for path in (looked.path, sites.path)}
    return len(tops) == 1


def sets_default(looked: Looked, word: str) -> bool:
    for site in looked.loaded.scan.calls.get(word, ()):
        if site.call.args:
            text = ast.unparse(site.call.args[0]).lower()
            if ("cuda" in text) if word == _TYPE else ("cpu" not in text and text != "none"):
                return True
    return False


# -- attributes of subclasses -----------------------------------------------------------------------------------------


def is_set_by_subclass(sites: CallSites, node: ast.Attribute, function: str) -> bool:
    """Whether a class of the project that derives from the one whose method reads `self.name` sets the attribute."""
    if not isinstance(node.value, ast.Name) or node.value.id != "self":
        return False
    class_name = function.split(".", 1)[0]
    for looked in sites.files.mentioning(class_name):
        for class_ in (n for n in walk(looked.loaded.tree) if isinstance(n, ast.ClassDef)):
            if sites.derives(looked, class_, class_name) and binds(class_, node.attr):
                return True
    return False


def is_set_from_outside(sites: CallSites, node: ast.Attribute) -> bool:
    """Whether code of the project sets an attribute of this name on what it calls a model: `self.model.device = device`."""
    if not isinstance(node.value, ast.Name) or node.value.id != "self":
        return False
    paths = sorted({path for name in _MODULES for path in sites.files.mentioned_in(f"{name}.{node.attr}")})
    used = imported_files(sites, sites.path)
    for path in paths[:BESIDE]:
        looked = sites.files.look(path) if path in used or leads_to(sites, path, sites.path) else None
        for each in walk(looked.loaded.tree) if looked is not None else ():
            if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store) and each.attr == node.attr:
                if last_name(each.value) in _MODULES:
                    return True
    return False


def may_have_method(sites: CallSites, event: Call) -> bool:
    """Whether a module of which `device()` is called may be of a class of the project that has such a method: a subclass of
    the one whose method calls it, or any where the module is an argument.
    """
    if event.receiver is None:
        return False
    value = event.receiver.value
    if not value.is_assumed and not (value.type_name or "").startswith(called_devices.GIVEN):
        return False
    if (
        event.receiver.text == "self"
        and isinstance(event.node, ast.Call)
        and isinstance(event.node.func, ast.Attribute)
    ):
        return is_set_by_subclass(sites, event.node.func, event.function)
    for path in sites.files.mentioned_in("def device(self"):
        looked = sites.files.look(path)
        if looked is None or called_devices.defines(looked.loaded.tree):
            return True  # there are too many to read them all, or one has it
    return False


def binds(class_: ast.ClassDef, name: str) -> bool:
    """Whether a class has an attribute by its own text: a method or property, a name of its body, `self.name = ...`."""
    for node in walk(class_):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
            return True
        if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Store):
            return True
    return any(
        isinstance(t, ast.Name) and t.id == name for s in class_.body if isinstance(s, ast.Assign) for t in s.targets
    )


# -- assumptions that need a caller -----------------------------------------------------------------------------------


def needs_caller(sites: CallSites, event: Lengths | Meet | Use, function: Function, name: str) -> bool:
    """Whether what is assumed of an argument is too little for a finding as long as no call is known to bear it out.

    An index into a table that the code puts on the CPU in so many words; what the host reads of an argument, in a package,
    where neither the function nor its class handles devices (a module's method that calls an argument a tensor does); an
    argument that no annotation calls a tensor, of a function that nobody calls though the project uses its file.
    """
    if isinstance(event, Use) and sites.is_in_package and not sites.handles_devices(function):
        return True
    if isinstance(event, Meet) and event.how == "index":
        table = event.off.value
        if table.device == CPU and not table.made and any(o.text.startswith("created on") for o in table.because):
            return True
    evidence = sites.evidence(function)
    if evidence is not None and name in evidence.annotated | evidence.several | evidence.maybe:
        return False
    return is_left_over(sites, function)


def is_left_over(sites: CallSites, function: Function) -> bool:
    """Whether nothing in the project names a function, though some of it imports the function's file."""
    node, owner = function.node, function.owner
    if isinstance(node, ast.Lambda) or node.name.startswith("__") or node.name == "forward" or node.decorator_list:
        return False
    if owner is not None and not all(base in ("torch.nn.Module", "object") for base in owner.bases):
        return False  # a base of another package may call it
    if "." in function.name and (owner is None or function.name.count(".") > 1):
        return False
    if sites.names_here(node.name):
        return False
    stem = os.path.basename(sites.path)[: -len(".py")]
    around = owner.name if owner is not None else stem
    users = set(sites.files.mentioned_in(stem))
    callers = users.intersection(sites.files.mentioned_in(node.name))
    if owner is not None and callers and sites.names_here(owner.name):
        return False  # a function of the file makes the objects
    if callers.intersection(sites.files.mentioned_in(around)):
        return False
    return any(sites.path in imported_files(sites, path) for path in sorted(users)[:READ])

"""Devices that torch refuses: `torch.device("gpu:0")`, `device=f"gpu:{i}"`, the class `torch.device` itself, and `device=`
where a function takes none.

A text is `type` or `type:index` [c10/core/Device.cpp, `parse_device_type`]. The back end of another vendor may give its
type any name [torch.utils.rename_privateuse1_backend], so that only words count that nobody would give to one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.facts.events import NoDevice
from devlint.facts.text.factory_names import OF_SIZES
from devlint.facts.text.references import last_name
from devlint.facts.text.signatures import parameter_of
from devlint.facts.values import Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.arguments import Arguments
    from devlint.facts.interpreter.machine import Machine
    from devlint.knowledge import Function as Record

#: [c10/core/Device.cpp]
_KNOWN = frozenset({"cpu", "cuda", "xpu", "mps", "meta", "xla", "hpu", "mtia", "hip", "ipu", "vulkan", "mkldnn"})
_NO_TYPE = frozenset({"gpu", "gpus", "nvidia", "rocm", "auto"})
_FORM = re.compile(r"([A-Za-z_]+)(?::(?:0|[1-9]\d*))?\Z")
_CLOSE_TO_ONE = re.compile(r"(?:cpu|cuda|gpu|xpu|mps|hpu)(?:\d+|:-\d+|:|\s*:\s*\d+)\Z", re.IGNORECASE)
CLASS = "torch.device"
#: What takes a device by its place, first or second.
_PLACED_FIRST = ("Tensor.to", "torch.device", "Tensor.cuda", "torch.asarray")
#: Factories whose parameters are written in Python's way in torch's stubs, and are by name alone but for the first.
_BY_NAME = frozenset({"tensor", "as_tensor", "new_tensor"})
#: A text that wants a colon before the number that follows.
_WANTS_COLON = frozenset({"cuda", "xpu", "gpu", "mps"})
#: Names of numbers of cards.
_NUMBER = re.compile(
    r"(?:^|_)(?:rank|idx|index|ids?|gpus?|i|n|num|number|cuda|card|gpuid|device_?id|no)$", re.IGNORECASE
)
#: Names of modules and optimizers.
_STATEFUL = re.compile(
    r"(?:^|_)(?:model|net|network|encoder|decoder|generator|discriminator|actor|critic|optim(?:izer)?)$", re.I
)
_RENAMES = "rename_privateuse1_backend"


def names_no_device(text: str) -> bool:
    """Whether torch refuses a text where it wants a device."""
    form = _FORM.match(text)
    if form is None:
        return _CLOSE_TO_ONE.match(text) is not None
    return form[1] in _NO_TYPE or is_no_type(form[1])


def is_no_type(word: str) -> bool:
    """Whether a word is none of torch's types of devices: `gpu`, `CUDA`."""
    lower = word.lower()
    return lower in _NO_TYPE or (lower in _KNOWN and lower != word)


def note(machine: Machine, node: ast.expr, call: str) -> None:
    """Emit `NoDevice` for the texts among what a device argument of a call of torch may be, if they name none."""
    if not call.startswith(("torch.", "Tensor.")):
        return
    for said in _texts(machine, node):
        whole, text = isinstance(said, ast.Constant), leading(said)
        if text is None:
            continue
        before, colon, _ = text.partition(":")
        refused = names_no_device(text) if whole else lacks_colon(said) or (colon and is_no_type(before))
        if refused and _RENAMES not in machine.source.text:
            machine.emit(NoDevice(machine.span(said), said, (), machine.guards, {}, machine.name, call, text))


def note_class(machine: Machine, node: ast.expr, value: Value, call: str) -> None:
    """Emit `NoDevice` where the class `torch.device` itself is given as a device: `x.to(torch.device)`."""
    if value.kind != "namespace" or value.type_name != CLASS or not isinstance(node, (ast.Name, ast.Attribute)):
        return
    if isinstance(node, ast.Name) and (node.id in machine.imports.tried or node.id in machine.imports.several):
        return
    machine.emit(NoDevice(machine.span(node), node, (), machine.guards, {}, machine.name, call, CLASS, True))


def note_argument(machine: Machine, node: ast.Call, record: Record, arguments: Arguments) -> None:
    """Emit `NoDevice` for `device=...` where a function of torch takes no such argument: `torch.from_numpy(x, device=d)`,
    `torch.stack(xs, dev=d)`."""
    given = arguments.keywords.keys() & {"device", "dev"}
    if not given or not record.qualname.startswith("torch."):
        return
    taken = {*record.accepts, *record.params, *record.keyword_only}
    if taken.isdisjoint({*given, "**"}) and record.result in ("tensor", "tensors") and record.params:
        machine.emit(NoDevice(machine.span(node), node, (), machine.guards, {}, machine.name, record.qualname, None))


def note_state(machine: Machine, call: ast.Call, receiver: Value, arguments: Arguments) -> None:
    """Emit `NoDevice` for `model.load_state_dict(state, map_location=device)`: that is an argument of `torch.load`.

    [torch/nn/modules/module.py, torch/optim/optimizer.py: load_state_dict takes `strict` and `assign`, or nothing]
    """
    if arguments.keywords.keys().isdisjoint({"map_location", "device"}) or not isinstance(call.func, ast.Attribute):
        return
    own = machine.classes.get(receiver.type_name or "")
    several = receiver.type_name is None and any("created" in origin.text for origin in receiver.because)
    known = receiver.kind in ("module", "optimizer") and (own is None or own.method("load_state_dict") is None)
    known = known and not several  # of one class or another by the path taken, whose base may have a method of its own
    called = receiver.kind in ("unknown", "tensors") and _STATEFUL.search(last_name(call.func.value)) is not None
    if (known or called) and "def load_state_dict" not in machine.source.text:
        where, name = machine.span(call), f"Module.{call.func.attr}"
        machine.emit(NoDevice(where, call, (), machine.guards, {}, machine.name, name, None))


def note_place(machine: Machine, call: ast.Call, record: Record, arguments: Arguments) -> None:
    """Emit `NoDevice` for a device that is given by its place where torch takes it by name alone: `torch.tensor(x, device)`.

    [torch's argument parser: "tensor() takes 1 positional argument but 2 were given"]
    """
    if "device" not in record.accepts or record.result != "tensor" or record.qualname.endswith(_PLACED_FIRST):
        return
    if "device" in record.params and record.qualname.rsplit(".", 1)[-1] not in _BY_NAME:
        return
    own = int(record.qualname.startswith("torch.")) if record.qualname not in OF_SIZES else 0
    for node, value in list(zip(arguments.nodes, arguments.values, strict=True))[own:]:
        named = isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.split(":")[0] in _KNOWN
        called = value.kind == "unknown" and value.type_name is None and last_name(node) == "device"
        if (value.kind == "device" or named or called) and not isinstance(node, ast.Starred):
            where, name = machine.span(call), record.qualname
            event = NoDevice(where, call, (), machine.guards, {}, machine.name, name, None, by_place=machine.span(node))
            machine.emit(event)
            return


def _texts(machine: Machine, node: ast.expr) -> Iterator[ast.expr]:
    """The expressions that a device argument may be: both arms of a choice, and what the only binding of a name says."""
    if isinstance(node, ast.IfExp):
        yield from _texts(machine, node.body)
        yield from _texts(machine, node.orelse)
    elif isinstance(node, ast.Name):
        bound = only_binding(machine, node.id)
        if bound is not None and not isinstance(bound, ast.Name):
            yield from _texts(machine, bound)
    else:
        yield node


def only_binding(machine: Machine, name: str) -> ast.expr | None:
    """What the one assignment of a name in the function under analysis, or at the module level, gives it; None where the
    name is compared with anything: what it says then is translated."""
    function = machine.function.node if machine.function is not None else None
    own = machine.scan.functions.get(id(function)) if function is not None else None
    if function is not None and (own is None or parameter_of(function.args, name) is not None):
        return None
    if own is not None and name in own.bound:
        assigns = own.assigns if own.bound[name] == 1 else ()
        given = [a.value for a in assigns if isinstance(a, ast.Assign) and _binds(a, name)]
    elif name in machine.imports.names or name in machine.scan.rebound or name in machine.bindings.in_functions:
        return None  # another file's, or perhaps one of a function around this one
    else:
        given = machine.bindings.given.get(name, [])
    return given[0] if len(given) == 1 and name not in machine.bindings.compared else None


def _binds(node: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)


def lacks_colon(node: ast.expr) -> bool:
    """Whether a text is built of a type of device and the number of a card right behind it: `f"cuda{rank}"`."""
    text = leading(node)
    if text is None or (text not in _WANTS_COLON and text not in ("cuda%d", "cuda{}", "gpu%d", "gpu{}")):
        return False
    part: ast.expr | None = None
    if isinstance(node, ast.JoinedStr) and len(node.values) == 2 and isinstance(node.values[1], ast.FormattedValue):
        part = node.values[1].value
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return text.endswith("%d")
    elif isinstance(node, ast.BinOp) and isinstance(node.right, ast.Call) and last_name(node.right.func) == "str":
        part = node.right.args[0] if len(node.right.args) == 1 else None
    elif isinstance(node, ast.Call) and len(node.args) == 1:
        part = node.args[0]
    if part is None:
        return False
    is_number = isinstance(part, ast.Constant) and isinstance(part.value, int)
    return is_number or _NUMBER.search(last_name(part)) is not None


def leading(node: ast.expr) -> str | None:
    """The text of a constant, or the one that a built text starts with: `f"gpu:{i}"`, `"gpu:" + str(i)`, `"gpu:%d" % i`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mod)):
        node = node.left
    elif isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        node = node.func.value
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None

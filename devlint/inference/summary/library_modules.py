"""New modules of torch: which have parameters, which parts they register, where they start."""

from __future__ import annotations

import ast

from devlint.inference.objects.heap import ITEM, Thing
from devlint.inference.summary.arguments import Arguments
from devlint.inference.summary.devices import device_of
from devlint.inference.summary.frame import Frame
from devlint.inference.summary.registration import registered
from devlint.inference.terms.places import (
    CPU,
    DEFAULT,
    Alternative,
    Origin,
    Path,
    Places,
    join,
    nowhere,
    single,
    softened,
)
from devlint.inference.terms.values import NOTHING, Identity, Value
from devlint.knowledge import stubs
from devlint.knowledge.records import Function


def birthplace(frame: Frame, node: ast.AST, name: str) -> Places:
    """Where a new module is."""
    if frame.default is not None:
        return tuple(Alternative(each.atom, None, each.condition) for each in frame.default)
    return single(CPU, Origin("module", node, frame.path, name))


def new_module(frame: Frame, node: ast.Call, name: str, record: Function, arguments: Arguments) -> Value:
    """A module of torch that a call makes."""
    last = name.rpartition(".")[2]
    if stubs.cls(name).get("registers") == "items":
        return _container(frame, node, name, arguments)
    of_torch = name.startswith("torch.")  # of these the record says which have parameters: they take a device
    given = arguments.get(record.params.index("device") if "device" in record.params else None, "device")
    device = device_of(given[1]) if given is not None else None
    if device is not None and any(each.atom == DEFAULT for each in device):
        device = tuple(
            each if each.atom != DEFAULT else each._replace(atom=CPU, origin=Origin("module", node, frame.path, name))
            for each in device
        )
    home = (
        tuple(each._replace(origin=each.origin or Origin("named", node, frame.path, name)) for each in device)
        if device is not None
        else nowhere()
        if not of_torch and _is_placed(name, arguments)
        else birthplace(frame, node, name)
    )
    fields: dict[str, Value] = {}
    stateless = of_torch and ("device" not in record.accepts or _has_no_weights(last, arguments))
    for key, (_, value) in arguments.named.items():
        if value.is_tensor:
            fields["." + key] = value
            home, stateless = value.places, False
    for i, (_, value) in enumerate(arguments.positional):
        if value.kind == "module" and value.objects:
            fields[f"[{i}]"] = value
            stateless = stateless and frame.is_stateless(value)
        elif value.is_tensor and last.endswith("Loss"):
            home, stateless = value.places, False
    thing = Thing("module", name, home, fields, stateless=stateless, node=node, registers=True, whole=True)
    return Value("module", objects=(frame.new_thing(node, thing),))


def _has_no_weights(name: str, arguments: Arguments) -> bool:
    """Whether a normalization was made without weights and statistics [torch/nn/modules/batchnorm.py and its neighbours]."""
    if "Norm" not in name:
        return False
    affine = arguments.named.get("affine") or arguments.named.get("elementwise_affine")
    tracks = arguments.named.get("track_running_stats")
    by_default = "InstanceNorm" in name
    is_affine = not by_default if affine is None else affine[1].constant is not False
    is_tracking = "BatchNorm" in name if tracks is None else tracks[1].constant is not False
    return not is_affine and not is_tracking


def _is_placed(name: str, arguments: Arguments) -> bool:
    """Whether a keyword says, or may say, where a module of another library is."""
    return arguments.double or any(key in arguments.named for key in stubs.function(name).get("placed_by", ()))


def _container(frame: Frame, node: ast.Call, name: str, arguments: Arguments) -> Value:
    fields: dict[str, Value] = {}
    starred = arguments.stars
    for i, (_, value) in enumerate(arguments.positional):
        if value.kind in ("list", "tuple", "dict", "iterator"):
            inner = (
                frame.heap.get(value.objects[0]).fields
                if value.objects
                else {f"[{j}]": p for j, p in enumerate(value.parts or ())}
            )
            fields.update({(key if value.kind != "iterator" else ITEM): each for key, each in inner.items()})
            starred = starred or value.kind == "iterator" or ITEM in inner
        elif isinstance(value, Value):
            fields[f"[{i}]" if not starred else ITEM] = value
    parts = [value for value in fields.values() if value.objects]
    stateless = bool(parts) and len(parts) == len(fields) and all(frame.is_stateless(value) for value in parts)
    home = _home_of_parts(frame, fields, arguments) or birthplace(frame, node, name)
    if any(each.path is not None and _is_result(each.path) for each in fields.values()):
        home = softened(home)  # a part that was made by code that cannot be read may be elsewhere
    known = {entry: value for entry, value in fields.items() if not _is_nothing_known(value)}
    thing = Thing("module", name, home, known, stateless=stateless, node=node, registers=True)
    identity = frame.new_thing(node, thing)
    _register_parameters(frame, identity)
    return Value("module", objects=(identity,))


def _is_nothing_known(value: Value) -> bool:
    """Whether all that is known of a part is that the module has it."""
    return value.kind == "unknown" and not value.objects and (value.path is None or _is_result(value.path))


def _is_result(path: Path) -> bool:
    """Whether a path is what a call gave that cannot be read."""
    return len(path) == 1 and path[0].startswith("%")


def _home_of_parts(frame: Frame, fields: dict[str, Value], arguments: Arguments) -> Places:
    """Where the modules are that a container is made of, if they were not made for it; () where they were, or it has none."""
    homes = [frame.home(each) for each in fields.values() if each.objects and not frame.is_stateless(each)]
    given = [*fields.values(), *(value for _, value in arguments.positional if value.kind == "unknown")]
    if not homes and (any(map(_is_foreign, given)) or (arguments.stars and not fields)):
        return nowhere()  # modules that nobody knows
    if all(at.atom == CPU and at.origin is not None and at.origin.why == "module" for home in homes for at in home):
        return ()
    whole = homes[0]
    for each in homes[1:]:
        whole = join(whole, each)
    return whole


def _is_foreign(value: Value) -> bool:
    """Whether a value is an item of something that cannot be read, or was given. What a call made here is neither."""
    return value == NOTHING or (value.path is not None and not _is_result(value.path))


def _register_parameters(frame: Frame, container: Identity) -> None:
    """The tensors of a list or dict of parameters are parameters of it [torch/nn/modules/container.py, `ParameterList`]."""
    fields = frame.heap.get(container).fields
    kept = {
        key: registered(frame, container, value._replace(ref="parameter")) if value.kind == "tensor" else value
        for key, value in fields.items()
    }
    frame.heap.put(container, frame.heap.get(container)._replace(fields=kept))

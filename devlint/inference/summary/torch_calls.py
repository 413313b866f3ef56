"""Calls of library functions that are known as data: torch's, and those of libraries around it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Final

from devlint import knowledge
from devlint.inference.library import host
from devlint.inference.objects.heap import ITEM, Thing
from devlint.inference.program.definitions import Class
from devlint.inference.summary import builtin_calls, factories, unread_calls
from devlint.inference.summary.arguments import Argument, Arguments
from devlint.inference.summary.devices import device_of
from devlint.inference.summary.expressions import computed, mixed
from devlint.inference.summary.frame import Frame, unread, unread_at
from devlint.inference.summary.items import item_of, known_items
from devlint.inference.summary.library_modules import new_module
from devlint.inference.summary.zero_dim import zero_dim
from devlint.inference.terms.conditions import ACCELERATOR, DATA
from devlint.inference.terms.places import (
    CPU,
    DEFAULT,
    Alternative,
    Origin,
    at,
    is_unread,
    named_by,
    nowhere,
    place_of_type,
    single,
    unknown,
    with_zero_dim,
)
from devlint.inference.terms.values import ARRAY, BOOL, NONE, NOTHING, NUMBER, STRING, Value
from devlint.knowledge import stubs
from devlint.knowledge.records import Function

CallValue = Callable[[Frame, ast.Call, Value, Arguments], Value]
_COLLECTIVES: Final = frozenset(
    [
        "all_reduce",
        "broadcast",
        "reduce",
        "all_gather",
        "gather",
        "scatter",
        "reduce_scatter",
        "all_gather_into_tensor",
        "reduce_scatter_tensor",
    ]
)


def call(frame: Frame, node: ast.Call, name: str, arguments: Arguments, call_value: CallValue) -> Value:
    """A call of something of a library by its qualified name."""
    says = stubs.function(name)
    if says.get("converts") == "sequences":
        for at_, value in arguments.positional[:1]:
            if value.kind in ("list", "tuple"):
                read_by_host(frame, at_, value, node, name)
        return NUMBER if len(arguments.positional) == 1 and not arguments.named else NOTHING
    special = _SPECIAL.get(name)
    if special is not None:
        return special(frame, node, arguments)
    acts = stubs.cls(name).get("call")
    if acts is not None:
        return _called_like(frame, name, acts, arguments)
    if says.get("calls") == "first" and arguments.positional:
        return call_value(frame, node, arguments.positional[0][1], arguments.without_first())
    if says.get("gives") == "first":
        return arguments.value(0) or NOTHING
    if says.get("gives") == "items":
        return builtin_calls.call(
            frame, node, "iter", Arguments(arguments.positional[:1] or list(arguments.named.values())[:1])
        )
    last = name.rpartition(".")[2]
    if name.startswith("torch.") and last in ("is_available", "is_built", "is_initialized"):
        return Value("bool", test=_available() if last == "is_available" else None)
    if name.startswith("torch.distributed.") and last in _COLLECTIVES:
        return NONE  # it writes to what it is given
    old = place_of_type(name)
    if old and old[0].atom != CPU:
        return Value("tensor", single(old[0].atom, Origin("named", node, frame.path, name)))
    record = knowledge.function(name)
    if record is None or (record.result == "object" and not name.startswith("torch.")):
        value = _unknown(frame, node, name, arguments, record)
    else:
        value = call_record(frame, node, name, record, arguments)
    if value.kind == "unknown" and "trust_remote_code" not in arguments.named and knowledge.immovable(name) is not None:
        return value._replace(ref=name)
    return value


def _called_like(frame: Frame, name: str, acts: str, arguments: Arguments) -> Value:
    """An object of a library that is called like a function. The steps of a pipeline are its `parts`."""
    if acts == "first":
        return Value("steps", parts=(), ref=name)
    if acts != "items":
        return Value("steps", parts=(Value("library", ref=acts),), ref=name)
    steps = known_items(frame, arguments.value(0) or NOTHING)
    return Value("steps", parts=steps or None, ref=name)


def _available() -> tuple[frozenset[tuple[tuple[str, ...], bool]], frozenset[tuple[tuple[str, ...], bool]]]:
    return frozenset({(ACCELERATOR, True)}), frozenset({(ACCELERATOR, False)})


def _unknown(frame: Frame, node: ast.Call, name: str, arguments: Arguments, record: Function | None) -> Value:
    from devlint.knowledge import library_modules

    needs = library_modules.holds_tensors(name)
    if needs is not None and not (needs & set(arguments.named)):
        return Value(
            "module",
            objects=(
                frame.new_thing(
                    node, Thing("module", name, single(CPU, Origin("module", node, frame.path, name)), node=node)
                ),
            ),
        )
    if record is not None and record.host_only:
        for at_, value in arguments.positional:
            read_by_host(frame, at_, value, node, name)
        return unread(node)
    if stubs.package(name).get("looks"):
        unread_calls.reach(
            frame, [value for value in arguments.values() if value.kind in ("function", "bound", "partial")]
        )
        return unread_calls.guess(frame, node, arguments)
    return unread_calls.call(frame, node, arguments)


def call_record(frame: Frame, node: ast.Call, name: str, record: Function, arguments: Arguments) -> Value:
    """A call of something with a record."""
    if record.result == "module":
        return new_module(frame, node, name, record, arguments)
    kind = _OBJECTS.get(record.result)
    if kind is not None:
        return kind(frame, node, name, arguments)
    if record.host_only:
        for at_, value in arguments.positional:
            read_by_host(frame, at_, value, node, name)
        of_tensors = any(
            value.is_tensor for value in arguments.values()
        )  # a tensor again [torch.Tensor.__array_wrap__]
        many = not of_tensors and any(value.kind in ("array", "list", "tuple") for value in arguments.values())
        return ARRAY._replace(proved=many) if record.result in ("ndarray", "unknown") else NOTHING
    operands = list(tensor_operands(frame, record, arguments))
    _need_together(frame, node, name, record, operands)
    _need_items_together(frame, node, name, record, arguments)
    _out(frame, node, name, arguments, operands)
    result = record.result_of(
        len(arguments.positional), arguments.given_keywords(),
        [i for i, (_, v) in enumerate(arguments.positional) if v.kind == "number"],
        [i for i, (_, v) in enumerate(arguments.positional) if v.is_tensor],
    )  # fmt: skip
    result = record.result if result == "unknown" else result
    if result in ("tensor", "tensors", "same"):
        value = _result(frame, node, name, record, arguments, operands)
        return value._replace(kind="tensors") if result == "tensors" else value
    plain = {
        "number": NUMBER,
        "ndarray": ARRAY,
        "bool": BOOL,
        "str": STRING,
        "none": NONE,
        "dtype": Value("dtype"),
        "size": Value("size"),
    }
    return plain.get(result, Value("other") if name.startswith("torch.") else NOTHING)


def _need_together(frame: Frame, node: ast.Call, name: str, record: Function, operands: list[Argument]) -> None:
    if len(operands) < 2:
        return
    taking: list[tuple[ast.AST, Value]] = list(operands)
    if record.mixing in ("exact", "scalar", "expanded"):
        frame.together("function", record.mixing, name, taking, node)  # type: ignore[arg-type]
    elif record.mixing == "index":
        first, last = operands[0], operands[-1]
        frame.need("index", "index", name, frame.operand(*first), frame.operand(*last), node)


def _need_items_together(frame: Frame, node: ast.Call, name: str, record: Function, arguments: Arguments) -> None:
    """Two items of one list may be at two of the places where its items are."""
    if record.mixing not in ("exact", "scalar", "expanded"):
        return
    for i in record.sequence_params:
        at_, value = arguments.positional[i] if i < len(arguments.positional) else (node, NOTHING)
        stored = [frame.heap.get(each).fields.get(ITEM) for each in value.objects] if value.kind == "list" else []
        for item in map(frame.heap.settled, filter(None, stored)):
            items = [(at_, item._replace(kind="tensor", places=(each,))) for each in item.places]
            frame.together("function", record.mixing, name, items, node)  # type: ignore[arg-type]


def _out(frame: Frame, node: ast.Call, name: str, arguments: Arguments, operands: list[Argument]) -> None:
    out = arguments.named.get("out")
    if out is not None and out[1].is_tensor:
        for each in operands:
            frame.need("out", "exact", name, frame.operand(*out), frame.operand(*each), node)


def tensor_operands(frame: Frame, record: Function, arguments: Arguments) -> Iterator[Argument]:
    """The arguments that are tensors, or that the record says to be."""
    sure = record.tensor_params if record.is_tensor_method else record.tensors_among(len(arguments.positional))
    for i, (node, value) in enumerate(arguments.positional):
        if isinstance(node, ast.Starred):
            continue
        if value.is_tensor:
            yield node, value
        elif value.kind == "unknown" and i in sure and value.places:
            yield node, value._replace(kind="tensor", proved=True)
        elif value.kind in ("list", "tuple", "iterator") and (
            i in record.sequence_params or record.params[:1] == ("data",)
        ):
            yield from _in_sequence(frame, node, value, i in record.sequence_params)
    for name, (node, value) in arguments.named.items():
        if value.is_tensor and name not in ("device", "dtype", "generator", "out"):
            yield node, value


def _in_sequence(frame: Frame, node: ast.expr, value: Value, sure: bool) -> Iterator[Argument]:
    parts = frame.heap.parts_of(value)
    nodes = (
        node.elts if isinstance(node, (ast.List, ast.Tuple)) and len(node.elts) == len(parts) else [node] * len(parts)
    )
    for at_, part in zip(nodes, parts, strict=True):
        if part.is_tensor or (part.kind == "unknown" and part.places and sure):
            yield at_, part._replace(kind="tensor")


def _result(
    frame: Frame, node: ast.Call, name: str, record: Function, arguments: Arguments, operands: list[Argument]
) -> Value:
    """The tensor that a function gives."""
    dims = zero_dim(record, arguments, operands)
    out = arguments.named.get("out")
    if out is not None and out[1].places:
        return Value("tensor", out[1].places, proved=out[1].proved)
    device = device_of(arguments.named["device"][1]) if "device" in arguments.named else None
    if "device" in record.accepts and "device" not in arguments.named and "device" in record.params:
        position = record.params.index("device")
        given = arguments.value(position)
        device = device_of(given) if given is not None else None
    if device is not None:
        return factories.new(frame, node, name, device, arguments, dims)
    if arguments.double and "device" in record.accepts:
        return Value("tensor", nowhere())
    source = record.device_from
    if source == "argument" or (source == "cpu" and name.rpartition(".")[2].endswith("Tensor")):
        return factories.new(frame, node, name, None, arguments, dims)
    if source == "cpu":
        return Value(
            "tensor",
            single(CPU, Origin("host", node, frame.path, name), zero_dim=dims if isinstance(dims, bool) else None),
        )
    if source == "default":
        return factories.new(frame, node, name, None, arguments, dims)
    if source in ("like", "first_tensor"):
        return _like(frame, node, name, record, arguments, operands, dims)
    return Value("tensor", nowhere())


def _like(
    frame: Frame,
    node: ast.Call,
    name: str,
    record: Function,
    arguments: Arguments,
    operands: list[Argument],
    dims: bool | str | None,
) -> Value:
    """A result that is where the first tensor is; a factory where there is none."""
    of_data = record.params[:1] == ("data",)
    if not operands:
        first = arguments.positional[0][1] if arguments.positional else NOTHING
        if of_data:
            return _of_data(frame, node, name, first, arguments, dims)
        unknown_ = next((v for _, v in arguments.positional if v.kind == "unknown" and v.places), None)
        if unknown_ is not None and record.device_from == "like" and unknown_.path is not None:
            return _of_given(frame, node, name, unknown_, arguments)
        if unknown_ is not None:
            return Value("tensor", unknown_.places, proved=False)
        if record.device_from == "like" and not record.tensor_params:
            return factories.new(frame, node, name, None, arguments, dims)
        return Value("tensor", nowhere())
    first = operands[0][1]
    if of_data and arguments.positional and arguments.positional[0][1].kind in ("list", "tuple"):
        if name.endswith(("as_tensor", "asarray")):
            return Value("tensor", nowhere())
        return factories.new(frame, node, name, None, arguments, False)
    found = first if first.kind in ("tensor", "batch") else first._replace(kind="tensor")
    for _, value in operands[1:] if record.device_from != "like" else ():
        found = mixed(found, value)
    found = found._replace(places=computed(frame, node, found.places, [value for _, value in operands]))
    places = with_zero_dim(found.places, dims) if not isinstance(dims, str) else factories.with_dims(found.places, dims)
    return Value("tensor", places, proved=found.proved)


def _of_data(
    frame: Frame, node: ast.Call, name: str, first: Value, arguments: Arguments, dims: bool | str | None
) -> Value:
    """`torch.tensor(data)`, `torch.as_tensor(data)`: a tensor of host data is on the default device, one of a tensor stays."""
    if (
        first.kind == "unknown"
        and first.path is not None
        and not is_unread(first.places[0].atom if first.places else unknown())
    ):
        return _of_given(frame, node, name, first, arguments)
    if first.kind == "unknown":
        return Value("tensor", nowhere())
    return factories.new(frame, node, name, None, arguments, dims)


def _of_given(frame: Frame, node: ast.Call, name: str, first: Value, arguments: Arguments) -> Value:
    """A tensor of something given: on the default device where that is host data, where it is if it is a tensor."""
    test = ("type", first.path, DATA)
    made = factories.new(frame, node, name, None, arguments, None)
    is_data, is_tensor = frozenset({(test, True)}), frozenset({(test, False)})
    here = tuple(each._replace(condition=is_data) for each in made.places)
    return Value("tensor", (*here, *(each._replace(condition=is_tensor) for each in first.places)))


# -- what the host reads


def read_by_host(frame: Frame, node: ast.AST, value: Value, call: ast.AST, name: str) -> None:
    """A value is handed to code that reads host memory."""
    from devlint.inference.summary.model import Operand

    if (value.is_tensor and value.places) or (
        value.kind == "unknown"
        and value.path is not None
        and not is_unread(value.places[0].atom if value.places else unknown())
    ):
        host = Operand(call, "tensor", single(CPU, Origin("host", call, frame.path, name)), True)
        frame.need("host", "host", name, host, frame.operand(node, value), call)
    elif value.kind in ("list", "tuple"):
        for part in frame.heap.parts_of(value)[:4]:
            if part.is_tensor:
                read_by_host(frame, node, part, call, name)


# -- special functions


def _device(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    value = arguments.value(0, "type", "device") or NOTHING
    index = arguments.value(1, "index")
    places = device_of(value)
    if places is None or not places:
        return Value("device", single(named_by((unread_at(node),))))
    if index is not None and isinstance(index.constant, int):
        places = tuple(
            p._replace(atom=at(p.atom.key[0], str(index.constant))) if p.atom.tag == "at" and p.atom != CPU else p
            for p in places
        )
    return Value("device", places, path=value.path if value.kind == "unknown" else None)


def _current_accelerator(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    there = Alternative(at("cuda"), None, frozenset({(ACCELERATOR, True)}))
    missing = Alternative(DEFAULT, None, frozenset({(ACCELERATOR, False)}))
    return Value("device", (there, missing))


def _load(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    places = device_of(arguments.value(1, "map_location"))
    value = unread(node)
    if places:
        return value._replace(
            places=tuple(
                Alternative(p.atom, Origin("loaded", node, frame.path, "torch.load"), p.condition) for p in places
            ),
            path=None,
        )
    return value


def _parameter(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    data = arguments.value(0, "data")
    return Value("tensor", data.places if data is not None else (), ref="parameter")


def _copy(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    """`copy.deepcopy`, `copy.copy`: another object, where the first one is now."""
    first = arguments.value(0, "x") or NOTHING
    if not first.objects:
        return first
    thing = frame.heap.get(first.objects[0])
    home = frame.heap.home(first.objects[0]) if first.kind == "module" or thing.kind == "module" else thing.home
    fields = {}
    for entry, value in thing.fields.items():
        if value.kind == "module" and value.objects:
            inner = frame.heap.get(value.objects[0])
            identity = ("new", *first.objects[0], entry, node.lineno, node.col_offset)
            frame.heap.put(identity, inner._replace(home=frame.heap.home(value.objects[0])))
            value = value._replace(objects=(identity,))
        fields[entry] = frame.heap.settled(value) if thing.kind == "module" else value
    copied = thing._replace(home=home, fields=fields)
    return first._replace(objects=(frame.new_thing(node, copied),), path=None)


def _variable(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    first = arguments.value(0, "data") or NOTHING
    return first if first.kind != "unknown" else Value("tensor", first.places or nowhere(), proved=True)


def _cast(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    """`typing.cast(type, value)` gives the value."""
    return arguments.value(1, "val") or NOTHING


def _partial(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    """`functools.partial(function, ...)`: the function with the arguments that it is given already."""
    callee = arguments.value(0)
    if callee is None or not arguments.is_whole:
        return NOTHING
    return Value("partial", ref=(callee, arguments.without_first()))


def _named_tuple(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    """`collections.namedtuple(name, fields)`: a class whose objects have these fields in order."""
    fields = arguments.value(1, "field_names")
    names: list[str] = []
    if fields is not None and isinstance(fields.constant, str):
        names = fields.constant.replace(",", " ").split()
    elif fields is not None:
        names = [part.constant for part in frame.heap.parts_of(fields) if isinstance(part.constant, str)]
    return Value("record", ref=tuple(names)) if names else NOTHING


def make_record(frame: Frame, node: ast.Call, names: tuple[str, ...], arguments: Arguments) -> Value:
    """A named tuple: its fields by name and by position."""
    fields: dict[str, Value] = {}
    for position, name in enumerate(names):
        value = arguments.value(position, name)
        value = value if value is not None else unread(node, "." + name)
        fields["." + name] = value
        fields[f"[{position}]"] = value
    return Value("instance", objects=(frame.new_thing(node, Thing("instance", None, None, fields, node=node)),))


def _default(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    if frame.file.sets_default_device:
        frame.default = nowhere()
    return NONE


def _functional_call(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    """`functional_call(module, weights, arguments)`: the module with other weights, which the arguments must be with.

    Source: torch/_functorch/functional_call.py.
    """
    weights, given = arguments.get(1, "parameter_and_buffer_dicts"), arguments.get(2, "args")
    parts = [part for part in frame.heap.parts_of(weights[1]) if part.is_tensor] if weights is not None else []
    if weights is None or not parts:
        module = arguments.value(0, "module")
        return Value("tensor", frame.home(module) if module is not None and module.objects else nowhere())
    first = frame.operand(weights[0], parts[0])
    values = (frame.heap.parts_of(given[1]) or [given[1]]) if given is not None else []
    for value in values:
        if given is not None and value.is_tensor:
            frame.need("function", "exact", "functional_call", first, frame.operand(given[0], value), node)
    return Value("tensor", with_zero_dim(parts[0].places, None))


def _gradient(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    """`torch.autograd.grad(outputs, inputs, grad_outputs)`: each gradient is where its output is.

    Source: torch/autograd/__init__.py.
    """
    outputs, given = arguments.get(0, "outputs"), arguments.get(2, "grad_outputs")
    if outputs is not None and given is not None:
        for at_, value in ((given[0], part) for part in frame.heap.parts_of(given[1]) or [given[1]]):
            if outputs[1].may_be_tensor and value.is_tensor:
                frame.need(
                    "function", "exact", "torch.autograd.grad", frame.operand(*outputs), frame.operand(at_, value), node
                )
    inputs = arguments.value(1, "inputs") or NOTHING
    parts = [part for part in frame.heap.parts_of(inputs) if part.is_tensor] or [inputs]
    return Value("tensors", parts[0].places or nowhere(), proved=True)


def _split(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    """`random_split(dataset, lengths)`: a list of parts of the data set [torch/utils/data/dataset.py]."""
    fields = {ITEM: Value("dataset", ref="torch.utils.data.Subset")}
    return Value("list", objects=(frame.new_thing(node, Thing("list", fields=fields, node=node)),))


def _clock(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    """A reading of a clock, which is known by its place."""
    return Value("number", ref=("clock", (frame.path, node.lineno, node.col_offset)))


_SPECIAL: Final[dict[str, Callable[[Frame, ast.Call, Arguments], Value]]] = {
    "torch.device": _device,
    "torch.accelerator.current_accelerator": _current_accelerator,
    "torch.load": _load,
    "torch.utils.data.random_split": _split,
    "collections.defaultdict": builtin_calls.mapping,
    "collections.OrderedDict": builtin_calls.mapping,
    "collections.Counter": builtin_calls.mapping,
    "numpy.random.default_rng": lambda frame, node, arguments: Value("other", ref=host.NUMPY_GENERATOR),
    **dict.fromkeys(host.CLOCKS, _clock),
    "torch.autograd.grad": _gradient,
    "torch.func.functional_call": _functional_call,
    "torch.nn.utils.stateless.functional_call": _functional_call,
    "torch.nn.Parameter": _parameter,
    "torch.nn.parameter.Parameter": _parameter,
    "copy.deepcopy": _copy,
    "copy.copy": _copy,
    "torch.autograd.Variable": _variable,
    "torch.autograd.variable.Variable": _variable,
    "functools.partial": _partial,
    "typing.cast": _cast,
    "collections.namedtuple": _named_tuple,
    "torch.set_default_device": _default,
    "torch.set_default_tensor_type": _default,
}


# -- objects of torch


def _loader(frame: Frame, node: ast.Call, name: str, arguments: Arguments) -> Value:
    from devlint.inference.summary.loaders import batch_of

    return Value("loader", parts=(batch_of(frame, node, arguments),), ref=name)


def _dataset(frame: Frame, node: ast.Call, name: str, arguments: Arguments) -> Value:
    parts = tuple(value for _, value in arguments.positional)
    return Value("dataset", parts=parts, ref=name)


def _plain_object(kind: str) -> Callable[[Frame, ast.Call, str, Arguments], Value]:
    def make(frame: Frame, node: ast.Call, name: str, arguments: Arguments) -> Value:
        return Value(kind, ref=name)  # type: ignore[arg-type]

    return make


def _generator_object(frame: Frame, node: ast.Call, name: str, arguments: Arguments) -> Value:
    places = device_of(arguments.value(0, "device"))
    return Value("generator", places if places is not None else single(CPU))


def _distribution(frame: Frame, node: ast.Call, name: str, arguments: Arguments) -> Value:
    tensors = [value for value in arguments.values() if value.is_tensor and value.places]
    if tensors:
        return Value("distribution", tensors[0].places)
    if all(value.kind in ("number", "bool", "none") for value in arguments.values()):
        return Value("distribution", factories.new(frame, node, name, None, arguments, True).places)
    return Value("distribution")


_OBJECTS: Final[dict[str, Callable[[Frame, ast.Call, str, Arguments], Value]]] = {
    "loader": _loader,
    "dataset": _dataset,
    "optimizer": _plain_object("optimizer"),
    "scheduler": _plain_object("scheduler"),
    "sampler": _plain_object("other"),
    "scaler": _plain_object("other"),
    "stream": _plain_object("other"),
    "event": _plain_object("other"),
    "autocast": _plain_object("other"),
    "generator": _generator_object,
    "distribution": _distribution,
}
__all__ = ["ITEM", "Class", "call", "call_record", "item_of", "read_by_host", "tensor_operands"]

"""Methods of lists, dicts, modules and other objects, and calls of modules."""

from __future__ import annotations

import ast
from typing import Final

from devlint import knowledge
from devlint.inference.library import host, protocols
from devlint.inference.objects.heap import ITEM, Thing, is_touched
from devlint.inference.program.definitions import Class
from devlint.inference.summary import moves, own_apply, tensor_methods, torch_calls, unread_calls
from devlint.inference.summary.arguments import Argument, Arguments
from devlint.inference.summary.expressions import places_of_all
from devlint.inference.summary.frame import Frame, unread
from devlint.inference.summary.items import entry_of, item_of, values_of
from devlint.inference.summary.parameters import tensor_only_methods
from devlint.inference.summary.registration import as_buffer, registered
from devlint.inference.terms.places import Places, home_of, nowhere, single, with_also, with_zero_dim
from devlint.inference.terms.values import ARRAY, NONE, NOTHING, NUMBER, STRING, Value, merge, merge_all, part_of
from devlint.knowledge import library_modules, stubs

#: Methods of a module that give it back [torch.nn.Module].
_SAME_MODULE: Final = frozenset(
    [
        "eval",
        "train",
        "half",
        "float",
        "double",
        "requires_grad_",
        "apply",
        "bfloat16",
        "share_memory",
        "compile",
        "type",
    ]
)
#: Methods that only modules have among what code calls with these names [torch.nn.Module].
_MODULE_ONLY: Final = frozenset(
    [
        "parameters",
        "named_parameters",
        "state_dict",
        "load_state_dict",
        "zero_grad",
        "buffers",
        "named_buffers",
        "modules",
        "named_modules",
        "children",
    ]
)


#: Methods that make one number of an array [numpy.ndarray].
_REDUCES: Final = frozenset(
    {"mean", "sum", "max", "min", "std", "var", "item", "prod", "any", "all", "argmax", "argmin", "ptp", "trace"}
)


def call_plain(frame: Frame, node: ast.Call, base: Value, name: str, arguments: Arguments) -> Value:
    """A method of a number, a string, an array, a size, a distribution ..."""
    if base.kind == "string":
        return STRING
    if base.kind == "array":
        return NUMBER if name in _REDUCES and not arguments.positional and not arguments.named else ARRAY
    if base.kind == "size":
        return Value("number", base.places)
    if base.ref == host.NUMPY_GENERATOR:
        is_sized = "size" in arguments.named or (name in host.NUMPY_SIZE_FIRST and bool(arguments.positional))
        return ARRAY if is_sized else unread(node)
    if base.kind == "distribution":
        return _of_distribution(frame, node, base, name, arguments)
    if base.kind == "tuple":
        return NUMBER
    if base.kind in (
        "optimizer",
        "scheduler",
        "loader",
        "generator",
        "dataset",
        "number",
        "bool",
        "dtype",
        "device",
        "other",
        "none",
    ):
        return base if base.kind == "generator" else unread(node)
    return unread_calls.call(frame, node, arguments, base)


def _of_distribution(frame: Frame, node: ast.Call, base: Value, name: str, arguments: Arguments) -> Value:
    if name in ("log_prob", "cdf", "icdf") and arguments.positional and isinstance(node.func, ast.Attribute):
        at, value = arguments.positional[0]
        if value.may_be_tensor and base.places:
            frame.need(
                "method",
                "scalar",
                name,
                frame.operand(node.func.value, base._replace(kind="tensor")),
                frame.operand(at, value),
                node,
            )
        places = places_of_all([value, base._replace(kind="tensor")])
        return Value("tensor", with_zero_dim(places, None))
    return Value("tensor", with_zero_dim(base.places, None)) if base.places else Value("tensor", nowhere())


# -- lists and dicts


#: Methods after which an item may have another number.
_SHIFTS: Final = frozenset({"insert", "appendleft", "pop", "popleft", "remove", "sort", "reverse", "clear", "rotate"})


def call_container(frame: Frame, node: ast.Call, base: Value, name: str, arguments: Arguments) -> Value:
    """A method of a list or a dict [Python's library reference, "Built-in Types"]."""
    last = arguments.positional[-1][1] if arguments.positional else None
    if name in _SHIFTS:
        frame.heap.shift(base.objects)
    if name in ("append", "add", "insert", "appendleft") and last is not None:
        frame.heap.add(base.objects, last)
        return NONE
    if name in ("extend", "update", "setdefault") and last is not None:
        return _extend(frame, node, base, name, arguments)
    if name == "items":
        return Value("iterator", parts=(Value("tuple", parts=(STRING, values_of(frame, base, node))),))
    if name == "values":
        return Value("iterator", parts=(values_of(frame, base, node),))
    if name in ("get", "pop", "popleft", "popitem"):
        key = arguments.value(0)
        found = frame.heap.field(base.objects[0], entry_of(key) if key is not None else ITEM)
        return found if found is not None else unread(node)
    if name == "copy":
        return base
    if name in ("keys", "index", "count", "sort", "reverse", "clear", "remove"):
        return NOTHING
    return unread_calls.call(frame, node, arguments, base)


def _extend(frame: Frame, node: ast.Call, base: Value, name: str, arguments: Arguments) -> Value:
    first = arguments.positional[0][1]
    if name == "extend":
        frame.heap.add(base.objects, item_of(frame, first, node))
        return NONE
    if name == "setdefault" and len(arguments.positional) > 1:
        value = arguments.positional[1][1]
        frame.heap.write(base.objects, entry_of(first), value)
        return value
    for identity in first.objects:
        for entry, value in frame.heap.get(identity).fields.items():
            frame.heap.write(base.objects, entry, value)
    return NONE


# -- modules


def call_module(frame: Frame, node: ast.Call, callee: Value, arguments: Arguments) -> Value:
    """Call a module whose `forward` is not read: its tensors must be where its parameters are."""
    class_ = frame.class_of(callee)
    of_torch = protocols.is_torch_module(class_)
    is_loss = isinstance(class_, str) and class_.endswith("Loss")
    operands = _tensors(frame, arguments)[: stubs.cls(str(class_)).get("placed_inputs")]
    zero_dim = True if is_loss else False if frame.gives_dimensions(callee) else None
    if frame.is_stateless(callee):
        if is_loss and len(operands) > 1:
            taking: list[tuple[ast.AST, Value]] = [(n, v._replace(kind="tensor")) for n, v in operands]
            frame.together("module", "exact", ast.unparse(node.func), taking, node)
        places = places_of_all([v for _, v in operands])
        return Value("tensor", with_zero_dim(places, zero_dim)) if places else Value("tensor", nowhere())
    module = frame.operand(node.func, callee)
    for at, value in operands if of_torch else operands[:1]:
        frame.need(
            "module",
            "exact",
            ast.unparse(node.func),
            module,
            frame.operand(at, value._replace(kind="tensor") if of_torch else value),
            node,
        )
    if not of_torch:
        return unread_calls.guess(frame, node, arguments)
    places = places_of_all([v for _, v in operands])
    places = with_also(places, module.places) if places else module.places
    return Value("tensor", with_zero_dim(places, zero_dim))


def _tensors(frame: Frame, arguments: Arguments) -> list[Argument]:
    found: list[Argument] = []
    for at, value in arguments.all():
        if value.may_be_tensor and value.places:
            found.append((at, value))
        elif value.kind in ("tuple", "iterator", "list"):
            parts = frame.heap.parts_of(value)
            nodes = (
                at.elts if isinstance(at, (ast.Tuple, ast.List)) and len(at.elts) == len(parts) else [at] * len(parts)
            )
            found += [(n, v) for n, v in zip(nodes, parts, strict=True) if v.may_be_tensor and v.places]
    return found


def call_of_module(frame: Frame, node: ast.Call, base: Value, name: str, arguments: Arguments) -> Value:
    """A method of a module that its class does not define itself."""
    if name in protocols.HOOKS:
        zero_dim = False if frame.gives_dimensions(base) else None
        return _hook(frame, node, name, with_zero_dim(frame.home(base), zero_dim), arguments)
    if name == "apply":
        return _apply_to_all(frame, base, arguments)
    if name == own_apply.NAME:
        return base  # it was moved with what it is a part of
    if name in _SAME_MODULE:
        return base
    if name in ("parameters", "buffers"):
        return Value("iterator", parts=(Value("tensor", frame.parameters(base)),))
    if name in ("named_parameters", "named_buffers"):
        return Value("iterator", parts=(Value("tuple", parts=(STRING, Value("tensor", frame.parameters(base)))),))
    if name in ("register_buffer", "register_parameter", "add_module", "register_module"):
        return _register(frame, base, name, arguments)
    if name in ("append", "insert", "add_module") and arguments.positional:
        item = arguments.positional[-1][1]
        kept = registered(frame, base.objects[0], item) if item.ref == "parameter" else item
        frame.heap.write(base.objects, ITEM, kept)
        return base
    if name == "extend" and arguments.positional:
        frame.heap.write(base.objects, ITEM, item_of(frame, arguments.positional[0][1], node))
        return base
    if name in ("items", "values", "children", "modules"):
        value = _modules_in(frame, base) if name in ("children", "modules") else None
        value = value or values_of(frame, base, node)
        return Value("iterator", parts=(value if name != "items" else Value("tuple", parts=(STRING, value)),))
    if name == "state_dict":
        return _state_of(frame, node, frame.home(base))
    if name in ("zero_grad", "extra_repr", "named_modules", "named_children", "get_submodule", "load_state_dict"):
        return unread(node)
    class_ = frame.class_of(base)
    if isinstance(class_, str) and class_.startswith("torch.nn.") and knowledge.cls(class_) is not None:
        return unread_calls.guess(frame, node, arguments)
    if isinstance(class_, str) and library_modules.runs(class_, name):
        return call_module(frame, node, base, arguments)
    return of_unread_base(frame, node, base, name, arguments, class_ if isinstance(class_, Class) else None)


def _hook(frame: Frame, node: ast.Call, name: str, home: Places, arguments: Arguments) -> Value:
    """A hook is called with the module, its inputs and its output, which are where the module is."""
    hook = arguments.value(0, "hook")
    if hook is not None and hook.kind == "function" and isinstance(hook.ref, tuple):
        tensor = Value("tensor", home)
        inputs = Value("tuple", parts=(tensor,))
        given = {"module": NOTHING, "inputs": inputs, "output": tensor, "gradients": inputs}
        values = [given[each] for each in protocols.HOOKS[name]]
        frame.analyser.call(frame, hook.ref[0], hook.ref[1], values, node)
    return unread(node)


def _modules_in(frame: Frame, base: Value) -> Value | None:
    """What the modules are that a module has as parts; None where it has none that is known."""
    fields = [value for identity in base.objects for value in frame.heap.get(identity).fields.values()]
    return merge_all(value for value in fields if value.kind == "module")


def _apply_to_all(frame: Frame, base: Value, arguments: Arguments) -> Value:
    """`module.apply(function)` calls the function with every part of a module: it may move them."""
    function = arguments.value(0, "fn")
    if function is not None and function.kind == "function" and isinstance(function.ref, tuple):
        summary = frame.analyser.summary(function.ref[0], None)
        if summary is not None and not any(is_touched(thing) for thing in summary.heap.things.values()):
            return base
    frame.heap.forget(base.objects)
    return base


def _register(frame: Frame, base: Value, name: str, arguments: Arguments) -> Value:
    key, value = arguments.value(0, "name"), arguments.value(1, "tensor", "param", "module")
    if key is None or not isinstance(key.constant, str) or value is None:
        return NONE
    owner = base.objects[0]
    if name == "register_buffer":
        value = as_buffer(frame, owner, value) if value.kind != "none" else Value("tensor", single(home_of(owner)))
    elif name == "register_parameter":
        value = Value("tensor", single(home_of(owner), zero_dim=None))
    frame.heap.write(base.objects, "." + key.constant, value)
    return NONE


def of_unread_base(
    frame: Frame, node: ast.Call, me: Value, name: str, arguments: Arguments, class_: Class | None
) -> Value:
    """A method that a base has which is not of the project. A module's own methods leave its parts where they are."""
    if class_ is not None and class_.is_module:
        if name in knowledge.methods("Module") or name in _MODULE_HARMLESS:
            if name in (
                "register_buffer",
                "register_parameter",
                "add_module",
                "parameters",
                "named_parameters",
                *_SAME_MODULE,
            ):
                return call_of_module(frame, node, me, name, arguments) if class_.method(name) is None else me
            return unread_calls.guess(frame, node, arguments)
    if class_ is not None and class_.is_read and class_.family != "object":
        return unread_calls.guess(frame, node, arguments)
    return unread_calls.call(frame, node, arguments, me)


#: Methods of module classes of other libraries that leave fields as they are [Lightning, "LightningModule API"].
_MODULE_HARMLESS: Final = frozenset(
    [
        "log",
        "log_dict",
        "save_hyperparameters",
        "print",
        "manual_backward",
        "optimizers",
        "lr_schedulers",
        "all_gather",
        "toggle_optimizer",
        "untoggle_optimizer",
        "clip_gradients",
    ]
)


# -- something given


def call_of_unknown(frame: Frame, node: ast.Call, base: Value, name: str, arguments: Arguments) -> Value | None:
    """A method of something given, as far as the name says what it is; None where it does not."""
    if name in tensor_only_methods() or (name in ("size", "dim", "backward") and base.places):
        return tensor_methods.call(frame, node, base._replace(kind="tensor", proved=True), name, arguments)
    if name in ("items", "values") and not arguments.positional:
        value = values_of(frame, base, node)
        return Value("iterator", parts=(value if name == "values" else Value("tuple", parts=(STRING, value)),))
    if name in protocols.HOOKS and base.path is not None:
        return _hook(frame, node, name, with_zero_dim(frame.heap.home(("path", base.path)), None), arguments)
    if name in _MODULE_ONLY:
        moves.moved_in_place(frame, base)
        return _of_given_module(frame, node, base, name)
    if name in _SAME_MODULE and name not in ("float", "half", "double", "type", "bfloat16"):
        return base
    if name in ("get", "pop") and arguments.positional and base.path is not None:
        return part_of(base, entry_of(arguments.positional[0][1]))
    if name in ("append", "extend", "add") and base.path is not None:
        identity = ("path", base.path)
        unread_calls.reach(frame, arguments.values())
        if arguments.positional:
            last = arguments.positional[-1][1]
            frame.heap.add((identity,), item_of(frame, last, node) if name == "extend" else last)
        return NONE
    record = knowledge.method("Tensor", name)
    if record is None:
        return None
    if name == "numpy" and isinstance(node.func, ast.Attribute):
        if not tensor_methods.is_forced(arguments):
            torch_calls.read_by_host(frame, node.func.value, base._replace(kind="tensor"), node, "numpy")
        return ARRAY._replace(proved=False)
    if record.result in ("tensor", "same") and base.places:
        return _perhaps_tensor(frame, node, base, name, arguments)
    if record.result == "size" and base.places:
        return Value("number" if arguments.positional else "size", base.places)
    return None


def _perhaps_tensor(frame: Frame, node: ast.Call, base: Value, name: str, arguments: Arguments) -> Value:
    """A method that tensors share with arrays and others: what it gives is with its object."""
    record = knowledge.method("Tensor", name)
    if record is not None and record.mixing in ("exact", "scalar") and isinstance(node.func, ast.Attribute):
        operands: list[tuple[ast.AST, Value]] = [(node.func.value, base)]
        operands += [(n, v) for n, v in arguments.positional if v.is_tensor]
        frame.together("method", record.mixing, name, operands, node, guessed=True)  # type: ignore[arg-type]
    return Value("unknown", with_zero_dim(base.places, None), proved=False)


def _of_given_module(frame: Frame, node: ast.Call, base: Value, name: str) -> Value:
    places = base.places
    if base.path is not None:
        places = frame.heap.home(("path", base.path))
    if name in ("parameters", "buffers"):
        return Value("iterator", parts=(Value("tensor", places),))
    if name in ("named_parameters", "named_buffers"):
        return Value("iterator", parts=(Value("tuple", parts=(STRING, Value("tensor", places))),))
    if name == "state_dict":
        return _state_of(frame, node, places)
    return unread(node)


def _state_of(frame: Frame, node: ast.Call, home: Places) -> Value:
    """`state_dict()`: the parameters and buffers by name, where the module is [torch/nn/modules/module.py]."""
    entries = {ITEM: Value("tensor", home)}
    return Value("dict", objects=(frame.new_thing(node, Thing("dict", fields=entries, node=node)),))


__all__ = [
    "call_container",
    "call_module",
    "call_of_module",
    "call_of_unknown",
    "call_plain",
    "merge",
    "of_unread_base",
    "protocols",
]

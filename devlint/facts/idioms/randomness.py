"""Random draws: on which device a draw happens, where its generator is, and what a random state is good for.

A draw wants a generator of its own device type ("Expected a 'cuda' device type for generator but found 'cpu'"); samplers
and `random_split` draw indices on the default device; every random state is a CPU tensor of bytes, made for the
generator of one device type [torch/utils/data/sampler.py, torch/utils/data/dataset.py, torch/random.py].
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from devlint.facts.events import Creation, GeneratorMeet, Operand
from devlint.facts.text.signatures import positional_names
from devlint.facts.values import (
    CPU,
    HOME,
    NONE,
    SOMEWHERE,
    UNKNOWN,
    Device,
    Place,
    Value,
    describe,
    may_be_accelerator,
    on,
    symbol,
)
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.interpreter.arguments import Arguments, CallArguments
    from devlint.knowledge import Function as Record

DEFAULT = "torch.get_default_device()"  # the name of the device that this gives
_PUT = "every tensor of the checkpoint is put on"
CHECKPOINT = "checkpoint"  # type name of what `torch.load` gives; its device is that of `map_location`
_STATE = "random state of "  # type name of a random state, followed by the device type of its generator
#: Calls that draw indices with a generator on the default device.
SAMPLING = frozenset(
    {
        "torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader", "torch.utils.data.random_split",
        "torch.utils.data.dataset.random_split", "torch.utils.data.RandomSampler",
        "torch.utils.data.sampler.RandomSampler", "torch.utils.data.SubsetRandomSampler",
        "torch.utils.data.WeightedRandomSampler",
    }
)  # fmt: skip
_SETTERS = {
    "torch.set_rng_state": "cpu",
    "torch.random.set_rng_state": "cpu",
    "torch.cuda.set_rng_state": "cuda",
    "torch.cuda.set_rng_state_all": "cuda",
    "torch.cuda.random.set_rng_state": "cuda",
    "torch.cuda.random.set_rng_state_all": "cuda",
    "torch.xpu.set_rng_state": "xpu",
    "torch.xpu.set_rng_state_all": "xpu",
    "torch.mps.set_rng_state": "mps",
}
_GETTERS = {name.replace(".set_", ".get_"): type for name, type in _SETTERS.items()}


def make_generator(machine: CallArguments, node: ast.Call, qualname: str, home: str, arguments: Arguments) -> Value:
    """`torch.Generator(device)`: on the CPU without a device, whatever the default device is."""
    span = machine.span(node)
    device = arguments.get("device", 0)
    if device is None or device[1].kind == "none":
        origin = Origin(span, "the generator is made for the CPU here")
        made = (Creation(span, qualname, node, machine.scope()),) if device is None and not arguments.star else ()
        return Value("generator", UNKNOWN if arguments.star else CPU, type_name=home, because=(origin,), made=made)
    machine.note_literal(*device, "argument", qualname, "device")
    place = machine.device_of_argument(*device).device
    origin = Origin(span, f"the generator is made for {describe(place)} here")
    return Value("generator", place, type_name=home, because=(origin,))


def call_generator(machine: CallArguments, node: ast.Call, operand: Operand, name: str, arguments: Arguments) -> Value:
    """A method of a generator."""
    if name in ("manual_seed", "set_state"):
        if name == "set_state":
            note_state(machine, node, "torch.Generator.set_state", None, arguments.get("new_state", 0))
        return operand.value
    if name == "get_state":
        return Value("tensor", CPU, False)
    return Value("number") if name in ("seed", "initial_seed") else NONE


def note_draw(
    machine: CallArguments, node: ast.Call, record: Record, arguments: Arguments, operands: list[Operand]
) -> None:
    """A random draw that is given a generator: emit `GeneratorMeet` when that is of another device type."""
    given = arguments.get("generator")
    if given is None or given[1].kind != "generator" or not given[1].device:
        return
    device = arguments.get("device")
    drawn: Operand | None = None
    if device is not None and device[1].kind != "none":
        place, drawn = machine.device_of_argument(*device).device, machine.operand(*device)
    elif operands:
        place, drawn = operands[0].value.device, operands[0]
    elif record.device_from in ("argument", "like", "default") and not arguments.double_star:
        place = CPU if record.ignores_default else machine.default_device().device
    else:
        return
    _meet(machine, node, record.qualname, machine.operand(*given), place, drawn)


def note_sampling(machine: CallArguments, node: ast.Call, qualname: str, arguments: Arguments) -> None:
    """One of `SAMPLING`, a sampler, a shuffling loader or `random_split`: indices are drawn on the default device."""
    if arguments.star:
        return
    given = arguments.get("generator")
    place = machine.default_device().device
    if given is not None and given[1].kind != "none":
        if given[1].kind == "generator":
            _meet(machine, node, qualname, machine.operand(*given), place, None)
        return
    splits = qualname.endswith("random_split")
    if not splits and "set_default_device" not in machine.source.text:
        return  # a loader that is made under `with torch.device(...)` may draw outside of it
    shuffle = arguments.get("shuffle", 2)
    if qualname.endswith("DataLoader") and (shuffle is None or shuffle[1].constant is not True):
        return
    level = machine.conflict(CPU, place)
    if level is not None:
        because = (*machine.default_device().because[:1], Origin(machine.span(node), "the indices are drawn here"))
        machine.emit(
            GeneratorMeet(
                machine.span(node), node, because, machine.guards, machine.scope(), machine.name, "shuffle", qualname,
                None, place, None, level,
            )
        )  # fmt: skip


def _chosen_together(generator: Value, drawn: Value) -> bool:
    """Whether one condition chose a generator and the device that it draws on, each pair of one device, or of unknown ones:
    `if small: device, rng = "cpu", torch.Generator("cpu")`."""
    if generator.split is None or drawn.split is None or generator.split[0] != drawn.split[0]:
        return False
    pairs = zip(generator.split[1:], drawn.split[1:], strict=True)
    return all(one.device == other.device or UNKNOWN in (one.device, other.device) for one, other in pairs)


def _meet(
    machine: CallArguments, node: ast.Call, qualname: str, generator: Operand, place: Device, drawn: Operand | None
) -> None:
    made_for = generator.value.device - {SOMEWHERE}  # one that is given instead is somewhere else
    if place == symbol(f"{generator.text}.device", machine.scope_id(generator.text)):
        return  # on the generator's own device
    if drawn is None and symbol(DEFAULT, 0) in (made_for, place):
        return  # both are by default: where it is not the CPU, the draw is there, too
    if drawn is not None and _chosen_together(generator.value, drawn.value):
        return
    level = machine.conflict(made_for, place)
    if place == CPU and made_for == CPU:
        machine.facts.cpu_generators.update(creation.span for creation in generator.value.made)
    if level is None or _types(made_for) == _types(place) is not None:
        return  # two cards of one type: only the type is compared
    because = (
        *generator.value.because[:1],
        Origin(machine.span(node), f"the random numbers are drawn on {describe(place)} here"),
        *(drawn.value.because[:1] if drawn is not None else ()),
    )
    machine.emit(
        GeneratorMeet(
            machine.span(node), node, because, machine.guards, machine.scope(), machine.name, "draw", qualname,
            generator, place, drawn, level,
        )
    )  # fmt: skip


def _types(device: Device) -> frozenset[str] | None:
    """The device types of named places; None where some place has no name."""
    types = [p.type for p in device if isinstance(p, Place)]
    return frozenset(types) if len(types) == len(device) else None


# -- random states --------------------------------------------------------------------------------------------------


def loaded(machine: CallArguments, place: tuple[ast.expr, Value] | None) -> Value:
    """What `torch.load(..., map_location=place)` gives: nothing is known of it but where its tensors are."""
    if place is None:
        return Value("unknown")
    node, value = place
    if isinstance(node, ast.Lambda):
        device = by_function(node)
        if not device:
            return Value("unknown")
    elif value.kind in ("device", "string"):
        device = machine.device_of_argument(node, value).device
    else:
        return Value("unknown")
    origin = Origin(machine.span(node), f"{_PUT} {describe(device)} here")
    return Value("unknown", device, type_name=CHECKPOINT, because=(origin,))


def is_loaded(value: Value) -> bool:
    """Whether a value is an entry of a checkpoint that was put where it is, or was computed from one."""
    return bool(value.because) and value.because[0].text.startswith(_PUT)


def by_function(location: ast.Lambda) -> Device:
    """Where a `map_location` puts a storage: `lambda storage, place: storage` leaves it on the CPU [torch/serialization.py]."""
    names = positional_names(location.args)
    if not names:
        return UNKNOWN
    storage, body = names[0], location.body
    if isinstance(body, ast.Name) and body.id == storage:
        return CPU
    if (
        isinstance(body, ast.Call)
        and isinstance(body.func, ast.Attribute)
        and getattr(body.func.value, "id", "") == storage
    ):
        card = body.args[0] if body.args else None
        number = card.value if isinstance(card, ast.Constant) and type(card.value) is int else None
        if body.func.attr in ("cuda", "cpu"):
            return on(body.func.attr, number)
    return UNKNOWN


def get_state(machine: CallArguments, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
    """`torch.get_rng_state()`, `torch.cuda.get_rng_state()`: bytes in host memory."""
    type = _GETTERS[qualname]
    origin = Origin(machine.span(node), f"the random state of the {type.upper()} generator is read here")
    return Value("tensor", CPU, False, type_name=_STATE + type, because=(origin,))


def set_state(machine: CallArguments, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
    """`torch.set_rng_state(state)`, `torch.cuda.set_rng_state(state)`, `torch.cuda.set_rng_state_all(states)`."""
    name = "new_states" if qualname.endswith("_all") else "new_state"
    note_state(machine, node, qualname, _SETTERS[qualname], arguments.get(name, 0))
    return NONE


def note_state(
    machine: CallArguments, node: ast.Call, qualname: str, type: str | None, given: tuple[ast.expr, Value] | None
) -> None:
    """A random state is set: it must be on the CPU, and one of that device type's generator."""
    if given is None:
        return
    expression, value = given
    how: Literal["state", "foreign"] = "state"
    if value.type_name == CHECKPOINT:
        value = Value("tensor", value.device, False, because=value.because)
    elif value.kind == "unknown":
        value = _from_checkpoint(machine, expression)
    elif not value.is_tensor or value.device == HOME:
        return
    foreign = (value.type_name or "").removeprefix(_STATE)
    if value.type_name is not None and value.type_name.startswith(_STATE) and type is not None and foreign != type:
        how, level = "foreign", "certain"
    elif may_be_accelerator(value.device):
        found = machine.conflict(CPU, value.device)
        if found is None:
            return
        level = found
    else:
        return
    operand = machine.operand(expression, value)
    because = (*value.because[:2], Origin(machine.span(node), "set as a random state here"))
    machine.emit(
        GeneratorMeet(
            machine.span(node), node, because, machine.guards, machine.scope(), machine.name, how, qualname, operand,
            CPU, None, "certain" if level == "certain" else "assume",
        )
    )  # fmt: skip


def _from_checkpoint(machine: CallArguments, node: ast.expr) -> Value:
    """An item of a checkpoint: `checkpoint["rng"]`, `torch.load(path).get("rng")`; an unknown value for anything else."""
    inner = node
    while True:
        if isinstance(inner, ast.Subscript):
            inner = inner.value
        elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "get":
            inner = inner.func.value
        else:
            break
    path = machine.path(inner)
    value = machine.lookup(path) if path is not None and inner is not node else None
    if isinstance(inner, ast.Call) and inner is not node and machine.qualify(inner.func) == "torch.load":
        value = machine.evaluate(inner)
    if value is None or value.type_name != CHECKPOINT:
        return Value("unknown")
    return Value("tensor", value.device, False, because=value.because)


def seed_all(machine: CallArguments, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
    """`torch.manual_seed(0)` gives the CPU's default generator."""
    origin = Origin(machine.span(node), "`torch.manual_seed` returns the CPU generator")
    return Value("generator", CPU, type_name="torch.Generator", because=(origin,))


CALLS: dict[str, Callable[[CallArguments, ast.Call, str, Arguments], Value]] = {
    **dict.fromkeys(_GETTERS, get_state),
    **dict.fromkeys(_SETTERS, set_state),
    "torch.manual_seed": seed_all,
}

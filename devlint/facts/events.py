"""The typed events that the device facts emit and rules subscribe to. Built on the stdlib `ast`; libcst is not involved.

An event says what happens at one place, with everything the analysis knows about it. It is no judgement: most events end
in a rule's first question. All spans are code points.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from devlint.facts.frozen import record
from devlint.facts.text.handlers import takes
from devlint.facts.values import ACCELERATORS, CPU, GUESS, UNKNOWN, Conflict, Device, Value, is_assumed
from devlint.model import Certainty, Origin, Span

if TYPE_CHECKING:
    from devlint.facts.text.classes import Container, What

#: What kind of operation brings devices together, see `Meet`.
How: TypeAlias = Literal[
    "operator", "function", "method", "inplace", "module", "index", "out", "copy", "size", "kept",
    "buffer", "paths", "collective", "restored", "beside",
]  # fmt: skip
#: What is wrong with a comparison about a device, see `DeviceTest`.
TestProblem: TypeAlias = Literal[
    "dtype", "no-type", "in-device", "either", "model", "moved", "without-index", "indexed", "skips", "typed", "no-index",
]  # fmt: skip
#: What is wrong where the time between two events is read, see `EventTimer`.
TimerProblem: TypeAlias = Literal["unsynchronized", "no-timing", "never-recorded"]
Scope = Mapping[str, Value]  # access path ("x", "self.weight", "args.device") to what is known of it there


@record(frozen=True, slots=True)
class Guards:
    """The conditions under which a place runs.

    `holds`: device types known to be available there ("cuda" under `if torch.cuda.is_available()`, `x.is_cuda`,
    `device.type == "cuda"`, "accelerator" under `torch.accelerator.is_available()`). `fails`: types known not to be.
    `tests`: the source of every enclosing condition, outermost first, negated ones with a leading "not ".
    `caught`: the names of the errors that a `try` around the place catches, see `catches`.
    `kept_for`: the decorators around the place that name a version, as `@implement_for("torch", "2.5")` does.
    """

    holds: frozenset[str] = frozenset()
    fails: frozenset[str] = frozenset()
    tests: tuple[str, ...] = ()
    caught: frozenset[str] = frozenset()
    kept_for: tuple[str, ...] = ()

    def catches(self, *errors: str) -> bool:
        """Whether the place is in a `try` with a handler of one of these errors of Python: `catches("RuntimeError")`."""
        return any(takes(name, error) for name in self.caught for error in errors)

    def catches_named(self, *errors: str) -> bool:
        """Whether a handler names one of these errors: it knows of them, where `except Exception` may only report."""
        return not self.caught.isdisjoint(errors)

    def both(self, other: Guards) -> Guards:
        """What holds where the conditions of both hold."""
        if self is other or other == NO_GUARDS:
            return self
        tests = (*self.tests, *(test for test in other.tests if test not in self.tests))
        kept_for = (*self.kept_for, *(text for text in other.kept_for if text not in self.kept_for))
        return Guards(self.holds | other.holds, self.fails | other.fails, tests, self.caught | other.caught, kept_for)

    def allow(self, type: str) -> bool:
        """Whether code for that device type stands under a guard for it."""
        return type in self.holds


NO_GUARDS = Guards()


class Handed(NamedTuple):
    """The call of a helper that has no device to give what it makes, and stands for the factory there.

    `factory`: where that is. `whole`: the call gives the tensor itself, not something that holds it. `option`: the
    parameter by which the helper could be told a device.
    """

    call: ast.Call
    helper: str
    factory: Origin
    whole: bool
    option: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Creation:
    """A call that makes a tensor on the default device because it names none. Compared by identity of the call.

    `handed`: the call of a helper, see there; `span` and `scope` are those of that call, the rest is the factory's.
    """

    span: Span
    function: str  # qualified: "torch.zeros"
    node: ast.Call
    scope: Scope = field(repr=False)  # what was in scope when the call ran
    zero_dim: bool | None = None  # of the tensor that it makes
    takes_device: bool = True  # False for `torch.from_numpy`, `torch.Tensor` and others that only make CPU tensors
    handed: Handed | None = None

    @property
    def place(self) -> ast.Call:
        """The call to blame: the node of `span`."""
        return self.node if self.handed is None else self.handed.call

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Creation) and other.span == self.span

    def __hash__(self) -> int:
        return hash(self.span)


@record(frozen=True, slots=True)
class Operand:
    """A value that takes part in an operation; `text` is its source, `node` its expression."""

    span: Span
    node: ast.expr
    text: str
    value: Value


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all events. `function`: qualified name of the enclosing function in the file, "" at module level."""

    span: Span
    node: ast.AST
    because: tuple[Origin, ...]
    under: Guards
    scope: Scope = field(repr=False)
    function: str

    @property
    def certainty(self) -> Certainty:
        """ "certain" where the code alone says so; "assume" where it rests on arguments, parameters, buffers or objects
        that only the default assumption puts on an accelerator."""
        return "certain"


@dataclass(frozen=True, slots=True)
class Create(Event):
    """A torch call that makes a tensor. `device`: the value of its `device` argument, None when there is none."""

    qualname: str  # "torch.zeros", "Tensor.new_zeros"
    device: Value | None
    result: Value


@dataclass(frozen=True, slots=True)
class Move(Event):
    """`.to(...)`, `.cuda()`, `.cpu()`, `.xpu()`, `.type("torch.cuda...")` ... on anything.

    `target`: where to, as a device value (kind "device"); None when the call moves nothing (a dtype) or it is not known.
    `only_device`: the call changes nothing else. `discarded`: the call is a whole statement, its result is dropped.
    `used_later`: after a discarded move the receiver's name meets the target device, and how sure that is.
    `only_step`: the move is all that a loop over several things does, so that its name for them is not read again.
    `of_class`: the receiver is of a class of the file whose method gives a new object and leaves the old one as it is, or it
    is handed to a function that gives moved copies.
    `rebound`: what a loop goes through, whose name for each item alone is bound to the copy, and not read again.
    `argument`: the receiver is an argument as it was given, of which it is but assumed where it is.
    """

    method: str
    receiver: Operand
    target: Value | None
    target_node: ast.expr | None
    only_device: bool
    discarded: bool
    result: Value
    in_loop: bool
    used_later: Conflict | None = None
    only_step: bool = False
    of_class: bool = False
    argument: bool = False
    rebound: str | None = None


#: How a tensor that stays on the CPU leaves its function, without an operation that would fail there.
_LEAVES = frozenset({"size", "copy", "paths", "beside"})


@dataclass(frozen=True, slots=True)
class Meet(Event):
    """An operation whose tensor operands are on devices that torch refuses together, scalars and copies accounted for.

    More ways are no error where they happen but leave a tensor on the wrong device: "copy", an accelerator's values written
    into a CPU tensor made here (`made[:n] = x`); "size", a tensor made on the CPU in the size of another tensor that is
    then returned or kept; "kept", a CPU tensor made here that stays in a list beside an accelerator's; "paths", one that is
    returned where other paths return an accelerator's; "beside", one of host data that is returned together with others
    that were moved; "collective", one that is sent through the process group; "buffer", one that takes the place of a
    module's buffer; "restored", an entry of a checkpoint that was loaded to the CPU and takes the place of an attribute on
    an accelerator, which `operation` combines with others, or that is on the device that saved it, which is not known.

    `off` is the operand to move, `other` the one it meets. `how` says what kind of operation it is, `operation` names it
    ("+", "torch.matmul", "Linear", "index"). `level` is "certain" or "assume" as in the catalogue.
    `off.value.made` holds the factory calls that are to blame, if any; `off.value.attribute` an unregistered attribute.
    """

    how: How
    operation: str
    off: Operand
    other: Operand
    level: Conflict
    loop: Span | None = None  # `off` is a name bound by the target of an enclosing `for`: its body's first statement
    loop_scope: Scope = field(default_factory=dict, repr=False)  # what is in scope there
    branch: Span | None = None  # the move of one of both operands in a branch that does not move the other one
    bound: Span | None = None  # `off` is a part of a host's batch: the assignment that gave it its name
    unread: bool = False  # a call of something that cannot be read, and that its name says to need one device

    @property
    def certainty(self) -> Certainty:
        """Where a tensor that only leaves the function is needed is assumed: nothing fails in the code that is seen."""
        unsure = self.unread or self.guessed or self.how in _LEAVES
        return "assume" if unsure else _certainty(self.level, self.off.value, self.other.value)

    @property
    def guessed(self) -> bool:
        """Whether `off` is what a function of another file gave for a tensor of the CPU: a tensor, as it is used here."""
        return self.off.value.type_name == GUESS and self.off.value.device == CPU


@dataclass(frozen=True, slots=True)
class Use(Event):
    """A tensor is handed to the host: `.numpy()`, `np.asarray(t)`, matplotlib, sklearn, PIL, pandas.

    `consumer`: "numpy" for the method, else the qualified name of the function. Only when the tensor's device is, or may
    be, an accelerator; `level` as in Meet. `detached`: `.detach()` stands before it; `forced`: `numpy(force=True)`.
    `also_arrays`: the function is written for arrays, and other calls may give it some. `several`: the operand's expression
    is a list or a dict, and its value one of those in it.
    """

    consumer: str
    operand: Operand
    level: Conflict
    detached: bool
    also_arrays: bool = False
    several: bool = False

    @property
    def certainty(self) -> Certainty:
        return _certainty(self.level, self.operand.value)


@dataclass(frozen=True, slots=True)
class Call(Event):
    """A call or attribute read that involves devices and is not one of the other events.

    `qualname`: resolved name of a function ("torch.get_device"), or family and member ("Optimizer.to") for a receiver
    of known kind. `receiver`: the object of a method call or attribute. `arguments`: by name where the parameter is known,
    else by position ("0", "1"). `is_call` is False for a bare attribute (`module.device`).
    `exists`: False when torch is known to lack it.
    """

    qualname: str
    receiver: Operand | None
    arguments: Mapping[str, Operand]
    is_call: bool
    exists: bool | None
    discarded: bool
    result: Value

    @property
    def certainty(self) -> Certainty:
        """An index of a device, `x.get_device()`, is a fault where its tensor may be on the CPU."""
        indices = (o.value for o in self.arguments.values() if o.value.kind == "index")
        return "assume" if any(not value.device for value in indices) else "certain"


@dataclass(frozen=True, slots=True)
class DeviceLiteral(Event):
    """A device written as a literal: `"cuda:0"`, `torch.device("cuda", 1)`, `device=0`, `.to(0)`.

    `type` and `index` are what it names. `role` says where it stands:
    argument   a device argument of a torch call (`device="cuda"`, `.to("cuda")`, `torch.device("cuda")`)
    assigned   bound to a variable that is used as a device
    default    a parameter default, an argparse default, a dataclass field (DEV213's)
    fallback   one arm of a choice guarded by availability (`"cuda" if torch.cuda.is_available() else "cpu"`)
    autocast   device type of autocast, GradScaler, custom_fwd
    map        map_location
    listed     a value that a test is given, that a function for the device gives, or that is left of a choice without the CPU
    off        the CPU, where a choice is switched off: `is_available() and False`
    computed   a card whose index is computed, in a file that never asks for one: `f"cuda:{args.gpu}"`
    """

    type: str
    index: int | None
    role: Literal["argument", "assigned", "default", "fallback", "autocast", "map", "listed", "off", "computed"]
    call: str | None  # qualified name or family.member of the call it is an argument of; None where that is not known
    argument: Literal["device", "type", "index"]
    run_device: str | None  # an expression in scope that holds the device of the run
    run_device_is_proved: bool  # proved to be that type wherever that type exists
    partner: str | None = None  # without one: the tensor that what is made there meets first, see `partners`


@dataclass(frozen=True, slots=True)
class NoDevice(Event):
    """A text that names no device where `call` wants one: `torch.device("gpu:0")`, `x.to(f"gpu:{i}")`.

    `text`: what it says, or starts with; None where the node is a call that takes no argument `device`. `is_class`: it is
    no text but the class `torch.device` itself. `by_place`: where the node is a call that is given a device
    by its place, and takes it by name alone, that device.
    """

    call: str  # qualified name
    text: str | None
    is_class: bool = False
    by_place: Span | None = None


@dataclass(frozen=True, slots=True)
class CudaMethod(Event):
    """`x.cuda()`, `m.cuda(1)`, `.xpu()`, ... on a tensor, a module, or a value nothing is known of but the call.

    `index` is the literal index, None without one; `argument` the expression given, if any.
    """

    type: str
    receiver: Operand
    argument: ast.expr | None
    index: int | None
    extra: bool  # further arguments such as non_blocking
    run_device: str | None
    run_device_is_proved: bool
    partner: str | None = None  # as in `DeviceLiteral`


@dataclass(frozen=True, slots=True)
class Compare(Event):
    """A device compared with something, or tested for truth.

    `operator`: that of the comparison, "truth", "method" for a method of a text (`right` is its name), "text ==" and "text !="
    where the device's text is compared.
    """

    left: Operand
    right: Operand | None
    operator: str


@dataclass(frozen=True, slots=True)
class Register(Event):
    """An attribute of an `nn.Module` set to something that does not move with it.

    `what`: "tensor" (a plain tensor), "tensors" (a list, tuple or dict of them), "modules" (a plain container of
    modules), "parameters" (of parameters). `uses`: where methods use it together with what does move;
    `appended`: it is filled by `append` or item assignment after it was made empty. `returned`: the first of `uses` is where
    `forward` gives it back; `handed_to`: the function that gets it there, beside other things. `to_be_trained`: a tensor that
    is made with a gradient.
    """

    class_name: str
    attribute: str
    what: What
    container: Container | None
    value: Operand
    uses: tuple[Origin, ...]
    reassigned: bool
    appended: bool
    returned: bool = False
    handed_to: str | None = None
    to_be_trained: bool = False

    @property
    def certainty(self) -> Certainty:
        """An argument that is kept as it is may be a parameter, which registers itself."""
        kept = isinstance(self.value.node, ast.Name) and not self.value.value.made
        return "assume" if kept and any("is an argument" in o.text for o in self.value.value.because[:1]) else "certain"


@dataclass(frozen=True, slots=True)
class Clock(Event):
    """The second reading of a host clock, where an elapsed time is computed (`time.time() - start`).

    `start`: the first reading. `work`: the last device work queued between both. `waits`: whether the host waited for
    the device after that work and before this reading; `start_waits`: whether it waited before the first reading.
    Only when there is device work in between. `level`: "certain" when the work surely runs on an accelerator. `held_up`: the
    host waited for some of the work in between, so that only the rest of it is still queued.
    """

    clock: str  # "time.perf_counter"
    start: Span
    work: Origin
    waits: bool
    start_waits: bool
    level: Conflict
    device_type: str | None  # the accelerator's type when the code names it
    helper: str | None = None  # what reads the clock, where that is in another file: `Timer`
    held_up: bool = False


@dataclass(frozen=True, slots=True)
class EventTimer(Event):
    """`start.elapsed_time(end)` of device events.

    `problem`: "unsynchronized" (no wait after `end.record()`), "no-timing" (made without enable_timing=True),
    "never-recorded" (recorded under other names or not at all: `recorded` lists the names that were).
    """

    problem: TimerProblem
    start: Operand
    end: Operand
    recorded: tuple[str, ...]
    made: Span | None  # the constructor of the event that is to blame
    recorded_at: Span | None  # the last record() before


@dataclass(frozen=True, slots=True)
class ApiName(Event):
    """The code needs a name of torch: it imports it (`ApiImport`), or calls or reads it (`ApiCall`).

    `qualname`: the name as imports resolve it ("torch.cuda.amp.autocast"). `exists`: whether some known torch has the
    name, None where that cannot be told; `nearest`: names like it, when none has. `since`, `removed`: torch minors, None
    for "always" and "never".
    """

    qualname: str
    exists: bool | None
    nearest: tuple[str, ...]
    since: tuple[int, int] | None
    removed: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class ApiImport(ApiName):
    """`from torch.a import name`, where some known torch lacks the name and the program cannot do without it."""


@dataclass(frozen=True, slots=True)
class ApiCall(ApiName):
    """A call of a name of torch, or a reading of it that is no call, which a rule about torch's interface may judge.

    `by_itself`: the name stands alone, as `from torch.a import name` binds it, which is an `ApiImport` of its own.
    `arguments` as in `Call`; `star`: `*args` or `**kwargs` may carry more. `discarded`: the call is a whole
    statement. `deprecated`: a torch minor, None for "not".
    `replacement`: the name to use instead, there from `replacement_since` on; `remedy`: its class ("A" same meaning, "G"
    needs a guard, "U" changes meaning, "D" deprecated name, "N" there is none, "" not in any table). `raises`: the call
    raises without an accelerator of that type. `run_device` as in `DeviceLiteral`.
    """

    is_call: bool
    by_itself: bool
    arguments: Mapping[str, Operand]
    star: bool
    discarded: bool
    deprecated: tuple[int, int] | None
    replacement: str | None
    replacement_since: tuple[int, int] | None
    remedy: str
    raises: bool
    run_device: str | None
    run_device_is_proved: bool
    partner: str | None = None  # as in `DeviceLiteral`

    @property
    def type(self) -> str:
        """The device type that the name belongs to: "cuda" of `torch.cuda.synchronize`, "" for a name of none."""
        parts = self.qualname.split(".")
        part = parts[2] if parts[1:2] == ["backends"] and len(parts) > 3 else parts[1] if len(parts) > 2 else ""
        return part if part in ACCELERATORS or part == "accelerator" else ""


#: `type_name` of a tensor that was a buffer of a module before that moved.
STALE = "old tensor of a buffer"


@dataclass(frozen=True, slots=True)
class GeneratorMeet(Event):
    """A random draw and its generator, or a random state and who takes it, do not go together.

    `how`: "draw" (the generator is of another device type than the draw), "shuffle" (a sampler draws with a generator of
    the CPU under another default device; `generator` is None), "state" (a random state that is not on the CPU), "foreign"
    (a state of another device's generator). `qualname`: the function that draws or takes the state. `generator`: the
    generator, or the state. `place`: where the draw happens; `drawn`: the argument that decides it, None for the default
    device. `generator.value.made` holds the `torch.Generator()` call to blame, if it names no device.
    """

    how: Literal["draw", "shuffle", "state", "foreign"]
    qualname: str
    generator: Operand | None
    place: Device
    drawn: Operand | None
    level: Conflict

    @property
    def certainty(self) -> Certainty:
        given = self.generator.value.device if self.generator is not None else CPU
        return "assume" if self.level == "assume" and (is_assumed(self.place) or is_assumed(given)) else "certain"


@dataclass(frozen=True, slots=True)
class OptimizerOrder(Event):
    """A module moves to what may be an accelerator after an optimizer got its parameters. The event is the move.

    `optimizer`: the call that makes it. `loaded`: its state was loaded before the move; `stepped`: it made a step before;
    `state_at_once`: its class makes state when it is made. `may_swap`: both are simple statements of one block and nothing
    in between forbids to move first.
    """

    model: Operand
    target: Value
    optimizer: Creation
    loaded: bool
    stepped: bool
    state_at_once: bool
    may_swap: bool


@dataclass(frozen=True, slots=True)
class NoLeaf(Event):
    """A tensor that is to gather gradients is moved; of what the move gives the gradient is read, or an optimizer gets it.

    The event is the move.

    `receiver`: the tensor, with the call that makes it or its name; `method`, `target`, `only_device` as in `Move`.
    """

    method: str
    receiver: Operand
    target: Value
    only_device: bool


@dataclass(frozen=True, slots=True)
class Lengths(Event):
    """`pack_padded_sequence` gets its lengths as a tensor that is, or may be, on an accelerator."""

    lengths: Operand
    level: Conflict

    @property
    def certainty(self) -> Certainty:
        return _certainty(self.level, self.lengths.value)


@dataclass(frozen=True, slots=True)
class Load(Event):
    """`torch.load`, `torch.hub.load_state_dict_from_url`, `model_zoo.load_url`: `map_location` is its argument, or None.

    `tensors` is False where the file surely holds none of an accelerator that may be absent. `module`: what it holds is
    used as a module where it was loaded to, without a move.
    """

    qualname: str
    map_location: Operand | None
    star_arguments: bool  # **kwargs may carry map_location
    run_device: str | None
    tensors: bool = True
    module: bool = False


@dataclass(frozen=True, slots=True)
class ColdTimer(Event):
    """An elapsed time whose region holds the first device work of its function. `start`: the first reading."""

    clock: str
    start: Span


@dataclass(frozen=True, slots=True)
class LoopWait(Event):
    """A call that makes the host wait for the device in every pass of a training loop. `operation`: ".item()", "print"."""

    operation: str
    loop: Span


@dataclass(frozen=True, slots=True)
class LoopEmpty(Event):
    """`empty_cache()` in every pass of an innermost loop. `qualname`: as the imports resolve it."""

    qualname: str
    loop: Span


@dataclass(frozen=True, slots=True)
class LoopMove(Event):
    """A move in a loop whose receiver and target are the same in every pass.

    `kind`: "module", or "tensor" where each pass copies. `whole`: the move is a statement of its own, or assigns the module
    to its own name. `alone`: that statement is the whole body. `loop`: the loop's header, `body`: its first statement.
    """

    kind: Literal["module", "tensor"]
    receiver: Operand
    device: Device
    loop: Span
    whole: bool
    alone: bool
    free_name: str  # a name that the function does not use, for the moved tensor


@dataclass(frozen=True, slots=True)
class UnpinnedCopy(Event):
    """A non-blocking copy to an accelerator from memory that is surely pageable.

    `source`: "factory" (a tensor made without pinning) or "loader" (a batch of a DataLoader that does not pin).
    """

    source: Literal["factory", "loader"]
    made: Span
    text: str  # what is copied


@dataclass(frozen=True, slots=True)
class EarlyRead(Event):
    """A non-blocking copy to the host whose result is read before anything waited. `flag`: the argument to drop."""

    flag: Span
    read: Span
    reader: str  # what reads it


@dataclass(frozen=True, slots=True)
class Required(Event):
    """The program ends where an accelerator is absent: `assert torch.cuda.is_available()`, which is the node, or
    `if not torch.cuda.is_available():` with nothing but a message and the end below (`block`), whose test is the node."""

    type: str
    block: bool


@dataclass(frozen=True, slots=True)
class Followed(Event):
    """Something is moved to a type of accelerator where `leader`, a tensor, is on it: `if x.is_cuda: y = y.cuda()`.

    `targets`: what the statements of the block move, the node being its test; empty for `y.cuda() if x.is_cuda else y`,
    where the node is the choice and `moved` holds the span of `y`.
    """

    type: str
    leader: ast.expr
    targets: tuple[str, ...]
    moved: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class DeviceTest(Event):
    """A comparison about a device that comes out the same on every machine, or fails.

    `problem`: "dtype" (`x.dtype == "cpu"`), "no-type" (`"gpu" in str(device)`), "in-device" (`"cpu" in device`, which raises),
    "either" (what may be no text is compared with one, in a test that asks for its class later), "model" (a model's device is
    compared with a text), "moved" (that of what the code treats as a tensor is), "without-index" (`x.device == device` where
    `device` is given without an index), "indexed" (the other way round), "skips" (a test is skipped where it could run),
    "typed" (the type of a device is compared with a card), "no-index" (an index that may be None is put in order).
    `subject`: the span of what is wrong in it, with its `text`; `word`: what it is compared with. `negated`: by `!=` or
    `not in`.
    """

    problem: TestProblem
    subject: Span
    text: str
    word: str
    negated: bool


@dataclass(frozen=True, slots=True)
class CardLost(Event):
    """Something goes to the current card, or the first, where `other`, a tensor or a device at hand, may be another one.

    `problem`: "type" (`x.type(other.type())`), "method" (`x.cuda()` in a function for CUDA that gets `other`), "zero"
    (`0 if str(other) != "cpu" else -1`), "first" ("cuda:0" where the card `other` is made current), "kind" (`other.type` where
    a device is wanted). `subject`: the span of `x`, else of what names the device. `direct`: `other` is written where it is
    used.
    """

    problem: Literal["type", "method", "zero", "first", "kind"]
    other: str
    subject: Span
    direct: bool


@dataclass(frozen=True, slots=True)
class TypeTest(Event):
    """`x.type()` compared with the name of a tensor type of an accelerator, `"torch.cuda.HalfTensor"`. `subject`: `x`."""

    subject: Span
    type_name: str
    equal: bool


@dataclass(frozen=True, slots=True)
class RoundTrip(Event):
    """Values that leave an accelerator and come back. `left`: the call that took them to the host."""

    left: Span
    steps: tuple[Origin, ...]


@dataclass(frozen=True, slots=True)
class Retained(Event):
    """A loss, still part of its graph, that is added to or kept in something that outlives the step.

    `span` and `operand` are the kept expression; `keeper` what keeps it. `loop`: the training loop.
    """

    operand: Operand
    keeper: str
    how: Literal["append", "add"]
    loop: Span


@dataclass(frozen=True, slots=True)
class Pin(Event):
    """Pinned memory that cannot be had.

    `problem`: "on-device" (`pin_memory()` of an accelerator's tensor), "loader" (a DataLoader pins what is on an
    accelerator already), "collated" (what its `collate_fn` has moved), "no-accelerator" (`pin_memory()` where the run device
    may be the CPU). `receiver`: what is pinned.
    """

    problem: Literal["on-device", "loader", "collated", "no-accelerator"]
    receiver: Operand
    flag: Span | None  # the argument `pin_memory=True`


@dataclass(frozen=True, slots=True)
class StreamUse(Event):
    """A tensor made on one stream and used on another with no wait in between. `stream`: "" for the current one."""

    made: Span
    path: str
    stream: str
    other: str


@dataclass(frozen=True, slots=True)
class Parallel(Event):
    """A module wrapped by DataParallel or DistributedDataParallel with devices that do not fit.

    `problem`: "literal" (ids written as numbers), "every" (as many as there are CUDA cards), "module-elsewhere"
    (module not on the first id), "target-elsewhere" (a loss gets targets on another card than the output), "several"
    (more than one id), "cpu-module" (ids for a module on the CPU), "may-be-cpu" (the one id is a device that may be the
    CPU), "same-card" (each process is given one fixed card). `ids`: the argument; `flag`: its place with the keyword.
    """

    wrapper: Literal["DataParallel", "DistributedDataParallel"]
    problem: Literal[
        "literal", "every", "module-elsewhere", "target-elsewhere", "several", "cpu-module", "may-be-cpu", "same-card"
    ]
    ids: Operand
    numbers: tuple[int, ...]
    expected: str  # where it should be, or what the ids are
    found: str
    flag: Span | None


@dataclass(frozen=True, slots=True)
class RankIndex(Event):
    """A rank and the card that a process uses.

    `problem`: "global-rank" (a rank among all processes used as the index of a card), "no-set-device" (the process never
    makes its card the current one), "never-set" (an attribute that its class sets nowhere, as the index of a card), "option"
    (an option that no launcher passes, with its default as the text), "minus-one" (an option whose -1 stands for the CPU).
    `local`: an expression for the local rank. `text`: what
    names the card, "" where that is another place.
    """

    problem: Literal["global-rank", "no-set-device", "never-set", "option", "minus-one"]
    text: str
    local: str
    before: bool  # the missing call belongs before the statement


@dataclass(frozen=True, slots=True)
class LateQuestion(Event):
    """Something goes to CUDA under a flag that is true only later where CUDA is there."""

    flag: str


@dataclass(frozen=True, slots=True)
class LateSetting(Event):
    """CUDA is touched too early. `problem`: "late" (the visible devices are set after that), "import" (at import).

    `touch`: the call that touches it, `text` its name; `where`: "a default", "a class body" for "import".
    """

    problem: Literal["late", "import"]
    touch: Span
    text: str
    where: str


@dataclass(frozen=True, slots=True)
class IgnoredDevice(Event):
    """An accelerator is named in the function `taker`, whose argument `parameter`, a device, is never read; or it calls what
    takes a device, and gives it none. `within`: it calls itself so, for what is inside of its argument."""

    taker: str
    parameter: str
    within: bool = False


@dataclass(frozen=True, slots=True)
class HiddenCard(Event):
    """A card is named by a number, `index`, that none of the `visible` ones has; those are numbered anew from 0."""

    index: int
    visible: tuple[str, ...]  # as `CUDA_VISIBLE_DEVICES` names them: ("4", "3")


@dataclass(frozen=True, slots=True)
class WorkerDevice(Event):
    """Device tensors in a worker process. `text`: the class or function.

    `place`: "__getitem__", "collate", "fork" (by the default start method) or "context" (by one that the code names).
    """

    place: Literal["__getitem__", "collate", "fork", "context"]
    text: str


def _certainty(level: Conflict, *values: Value) -> Certainty:
    return "assume" if level == "assume" and any(value.is_assumed for value in values) else "certain"


def device_of(value: Value | None) -> Device:
    """The device of a value, UNKNOWN for None."""
    return value.device if value is not None else UNKNOWN

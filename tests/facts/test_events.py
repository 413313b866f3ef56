"""The events that small programs give, a few for each type."""

from __future__ import annotations

from typing import TypeVar

import pytest

from devlint.facts.analysis import analyse
from devlint.facts.events import (
    Call,
    Clock,
    Compare,
    Create,
    CudaMethod,
    DeviceLiteral,
    Event,
    EventTimer,
    Load,
    Meet,
    Move,
    Register,
    Use,
)
from devlint.facts.values import CPU, HOME, Device, Place, on
from devlint.model import Span
from devlint.settings import Settings
from devlint.source import decode, parse

E = TypeVar("E", bound=Event)


class Program:
    """A program with its facts; `of` gives the events of one type, `text` what stands at a span."""

    def __init__(self, text: str, settings: Settings | None = None) -> None:
        source = decode(text.encode(), "program.py")
        self.facts = analyse(parse(source), source, settings or Settings())

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.facts.events if isinstance(event, kind)]

    def one(self, kind: type[E]) -> E:
        (event,) = self.of(kind)
        return event

    def text(self, span: Span) -> str:
        return self.facts.source(span)


def function(*lines: str, parameters: str = "x: torch.Tensor", imports: str = "import torch") -> Program:
    return Program("\n".join([imports, f"def f({parameters}):", *(f"    {line}" for line in lines)]) + "\n")


def target(move: Move) -> Device | None:
    return move.target.device if move.target is not None else None


# -- Create -----------------------------------------------------------------------------------------------------------


def test_a_factory_without_a_device_creates_on_the_cpu() -> None:
    create = Program("import torch\nx = torch.zeros(3)\n").one(Create)
    assert (create.qualname, create.device, create.result.device, create.function) == ("torch.zeros", None, CPU, "")


def test_a_factory_with_a_device_creates_there() -> None:
    create = function("return torch.ones(3, device=x.device)").one(Create)
    assert create.device is not None
    assert (create.device.device, create.result.device, create.function) == (HOME, HOME, "f")


def test_a_creation_remembers_its_call() -> None:
    program = function("return torch.ones(3) * 2")
    (made,) = program.one(Create).result.made
    assert (program.text(made.span), made.function, made.takes_device) == ("torch.ones(3)", "torch.ones", True)


# -- Move -------------------------------------------------------------------------------------------------------------


def test_a_move_says_from_where_to_where() -> None:
    move = function('return x.to("cpu")').one(Move)
    assert (move.method, move.receiver.text, move.receiver.value.device, target(move)) == ("to", "x", HOME, CPU)
    assert move.only_device and not move.discarded


def test_a_move_with_a_dtype_changes_more_than_the_device() -> None:
    assert not function('return x.to("cpu", torch.float16)').one(Move).only_device


def test_a_change_of_dtype_has_no_target() -> None:
    assert [target(move) for move in function("return x.to(torch.float16)").of(Move)] in ([], [None])


def test_a_move_that_is_a_statement_is_discarded() -> None:
    move = function("y = x.cpu()", "y.cuda()").of(Move)[-1]
    assert (move.discarded, target(move), move.used_later) == (True, on("cuda"), None)


def test_a_discarded_move_knows_that_the_name_meets_the_target_later() -> None:
    move = function("y = torch.zeros(3)", "y.to(x.device)", "return y + x").one(Move)
    assert (move.discarded, move.used_later) == (True, "assume")


def test_a_move_in_a_loop_says_so() -> None:
    assert function("for _ in range(3):", "    y = x.cpu()").one(Move).in_loop


# -- Meet -------------------------------------------------------------------------------------------------------------


def test_a_cpu_tensor_meets_an_argument() -> None:
    meet = function("return x + torch.ones(3)").one(Meet)
    assert (meet.how, meet.operation, meet.off.text, meet.other.text) == ("operator", "+", "torch.ones(3)", "x")
    assert meet.level == "assume"


def test_two_cards_meet_for_certain() -> None:
    meet = function('return x.to("cuda:0") @ x.to("cuda:1")').one(Meet)
    assert (meet.level, meet.operation) == ("certain", "@")


def test_a_zero_dim_cpu_tensor_is_excused_from_arithmetic() -> None:
    assert function("return x * torch.tensor(2.0)").of(Meet) == []


def test_a_zero_dim_cpu_tensor_is_not_excused_from_a_matrix_product() -> None:
    assert function("return x @ torch.tensor(2.0)").one(Meet).off.text == "torch.tensor(2.0)"


def test_a_cpu_index_is_taken_by_an_accelerator_tensor() -> None:
    assert function("return x[torch.arange(3)]").of(Meet) == []


def test_an_accelerator_index_is_refused_by_a_cpu_tensor() -> None:
    meet = function("return torch.zeros(9)[x]").one(Meet)
    assert (meet.how, meet.level) == ("index", "assume")


def test_an_input_meets_the_parameters_of_a_module() -> None:
    meet = Program(
        'import torch\nlayer = torch.nn.Linear(3, 3).to("cuda")\ny = layer(torch.zeros(3))\n'
    ).one(Meet)  # fmt: skip
    assert (meet.how, meet.operation, meet.off.text, meet.level) == ("module", "Linear", "torch.zeros(3)", "certain")


def test_in_place_arithmetic_meets_its_operand() -> None:
    assert function("y = torch.zeros(3)", "y += x").one(Meet).how == "inplace"


def test_values_of_an_accelerator_are_copied_into_a_cpu_tensor() -> None:
    meet = function("y = torch.zeros(3)", "y[0:2] = x").one(Meet)
    assert (meet.how, meet.off.text, meet.other.text) == ("copy", "y", "x")


def test_a_tensor_in_the_size_of_another_is_returned() -> None:
    meet = function("return torch.zeros(x.size(0), 3)").one(Meet)
    assert (meet.how, meet.off.text, meet.other.text) == ("size", "torch.zeros(x.size(0), 3)", "x")


def test_an_operand_that_a_loop_binds_knows_its_loop() -> None:
    program = function("for y in [torch.zeros(3)]:", "    z = 1", "    w = x + y")
    loop = program.one(Meet).loop
    assert loop is not None and program.text(loop) == "z = 1"


def test_nothing_is_assumed_of_arguments_when_the_settings_say_so() -> None:
    text = "import torch\ndef f(x: torch.Tensor):\n    return x + torch.ones(3)\n"
    assert Program(text, Settings(assume_accelerator=False)).of(Meet) == []


def test_no_meet_where_there_is_no_accelerator() -> None:
    assert function("if not torch.cuda.is_available():", "    return x + torch.ones(3)").of(Meet) == []


def test_a_meet_explains_itself_in_order() -> None:
    program = function("y = torch.ones(3)", "return y + x")
    assert [(program.text(o.span), o.text) for o in program.one(Meet).because] == [
        ("torch.ones(3)", "created on the CPU here"),
        ("y + x", "meets `x` on an accelerator here"),
        ("x: torch.Tensor", "`x` is an argument, which may be on an accelerator"),
    ]


# -- Use --------------------------------------------------------------------------------------------------------------


def test_numpy_is_given_a_tensor() -> None:
    program = function("np.asarray(x)", "torch.ones(2, device=x.device)", imports="import numpy as np, torch")
    use = program.one(Use)
    assert (use.consumer, use.operand.text, use.level, use.detached) == ("numpy.asarray", "x", "assume", False)


def test_the_numpy_method_sees_a_detach_before_it() -> None:
    use = function("y = torch.ones(2, device=x.device)", "return y, x.detach().numpy()").one(Use)
    assert (use.consumer, use.detached) == ("numpy", True)


def test_a_tensor_that_was_fetched_is_no_use() -> None:
    assert function("return x.cpu().numpy()").of(Use) == []


# -- Call -------------------------------------------------------------------------------------------------------------


def test_an_optimizer_has_no_to() -> None:
    program = function(
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)", 'optimizer.to("cuda")', parameters="model"
    )
    call = program.one(Call)
    assert (call.qualname, call.exists, call.discarded, list(call.arguments)) == ("Optimizer.to", False, True, ["0"])


def test_get_device_gives_an_index() -> None:
    call = function("return torch.get_device(x)").one(Call)
    assert (call.qualname, call.exists, call.arguments["0"].text) == ("torch.get_device", True, "x")


# -- DeviceLiteral and CudaMethod -------------------------------------------------------------------------------------


def roles(program: Program) -> list[tuple[str, str, int | None]]:
    return [(literal.role, literal.type, literal.index) for literal in program.of(DeviceLiteral)]


def test_a_literal_as_an_argument() -> None:
    assert roles(Program('import torch\nx = torch.zeros(3, device="cuda:1")\n')) == [("argument", "cuda", 1)]


def test_a_literal_in_a_choice_is_a_fallback() -> None:
    choice = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n'
    assert roles(Program(f"import torch\n{choice}")) == [("fallback", "cuda", None)]


def test_a_literal_as_a_default() -> None:
    program = function("return torch.zeros(3, device=device)", parameters='device="cuda"')
    assert roles(program) == [("default", "cuda", None)]


def test_a_literal_bound_to_a_name() -> None:
    assert roles(Program('import torch\nplace = "cuda"\nx = torch.zeros(3, device=place)\n')) == [
        ("assigned", "cuda", None)
    ]


def test_a_literal_as_map_location() -> None:
    assert roles(Program('import torch\nstate = torch.load("w.pt", map_location="cuda")\n')) == [("map", "cuda", None)]


def test_a_literal_knows_the_device_of_the_run() -> None:
    choice = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n'
    literal = Program(f'import torch\n{choice}x = torch.zeros(3, device="cuda")\n').of(DeviceLiteral)[-1]
    assert (literal.run_device, literal.run_device_is_proved) == ("device", True)


def test_a_cuda_method_with_an_index() -> None:
    method = function("return x.cuda(1)").one(CudaMethod)
    assert (method.type, method.index, method.receiver.text, method.extra) == ("cuda", 1, "x", False)


# -- guards -----------------------------------------------------------------------------------------------------------


def test_a_place_knows_the_conditions_around_it() -> None:
    create = function("if torch.cuda.is_available():", '    y = torch.zeros(3, device="cuda")').one(Create)
    assert create.under.allow("cuda") and create.under.tests == ("torch.cuda.is_available()",)


def test_a_condition_that_leaves_holds_for_the_rest() -> None:
    create = function("if not torch.cuda.is_available():", "    return", "y = torch.zeros(3)").one(Create)
    assert create.under.allow("cuda")


@pytest.mark.parametrize("types", [" RuntimeError", " (KeyError, Exception)", "", " ProjectError"])
def test_a_place_in_a_try_says_what_is_caught(types: str) -> None:
    create = function("try:", "    y = torch.zeros(3)", f"except{types}:", "    pass").one(Create)
    assert create.under.catches("RuntimeError")


@pytest.mark.parametrize("types", ["ValueError", "(KeyError, ImportError)", "torch.cuda.OutOfMemoryError"])
def test_a_handler_of_other_errors_is_no_guard(types: str) -> None:
    create = function("try:", "    y = torch.zeros(3)", f"except {types}:", "    pass").one(Create)
    assert not create.under.catches("RuntimeError")


def test_a_try_without_handlers_is_no_guard() -> None:
    create = function("try:", "    y = torch.zeros(3)", "finally:", "    pass").one(Create)
    assert not create.under.catches("RuntimeError")


# -- the rest ---------------------------------------------------------------------------------------------------------


def test_a_device_is_compared() -> None:
    compare = function('return device == "cuda"', parameters="device: torch.device").one(Compare)
    assert compare.right is not None
    assert (compare.left.text, compare.operator, compare.right.value.device) == (
        "device",
        "==",
        frozenset({Place("cuda")}),
    )


NET = """\
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = torch.arange(3)
        self.layers = [nn.Linear(3, 3)]
        self.register_buffer("mask", torch.ones(3))
        self.order = nn.Linear(3, 3)
    def forward(self, x):
        return self.order(x) + self.steps
"""


def test_what_a_module_does_not_register() -> None:
    program = Program(NET)
    registered = [(r.class_name, r.attribute, r.what, r.container) for r in program.of(Register)]
    assert registered == [("Net", "steps", "tensor", None), ("Net", "layers", "modules", "list")]


def test_an_unregistered_tensor_knows_where_it_is_used() -> None:
    program = Program(NET)
    assert [program.text(use.span) for use in program.of(Register)[0].uses] == ["self.order(x) + self.steps"]


def timed(*wait: str) -> Program:
    return function(
        "start = time.perf_counter()",
        "y = x @ x",
        *wait,
        "return time.perf_counter() - start",
        imports="import time, torch",
    )


def test_a_clock_is_read_while_work_is_queued() -> None:
    program = timed()
    clock = program.one(Clock)
    assert (clock.clock, program.text(clock.work.span), clock.waits, clock.level) == (
        "time.perf_counter", "x @ x", False, "assume",
    )  # fmt: skip


def test_a_clock_is_read_after_waiting() -> None:
    assert timed("torch.cuda.synchronize()").one(Clock).waits
    assert timed("y.sum().item()").one(Clock).waits


def events_timed(start: str, *lines: str) -> Program:
    made = "torch.cuda.Event(enable_timing=True)"
    return Program(
        "\n".join(["import torch", f"start = {start}", f"end = {made}", *lines, "start.elapsed_time(end)"]) + "\n"
    )


TIMED = "torch.cuda.Event(enable_timing=True)"


def test_a_device_event_that_nobody_waits_for() -> None:
    program = events_timed(TIMED, "start.record()", "end.record()")
    timer = program.one(EventTimer)
    assert timer.problem == "unsynchronized"
    assert timer.recorded_at is not None and program.text(timer.recorded_at) == "end.record()"


def test_a_device_event_made_without_timing() -> None:
    timer = events_timed("torch.cuda.Event()", "start.record()", "end.record()", "end.synchronize()").one(EventTimer)
    assert timer.problem == "no-timing"


def test_a_device_event_that_is_never_recorded() -> None:
    timer = events_timed(TIMED, "end.record()", "torch.cuda.synchronize()").one(EventTimer)
    assert (timer.problem, timer.recorded) == ("never-recorded", ("end",))


def test_device_events_used_as_they_should_be() -> None:
    assert events_timed(TIMED, "start.record()", "end.record()", "end.synchronize()").of(EventTimer) == []


def test_a_checkpoint_is_loaded() -> None:
    loads = Program('import torch\na = torch.load("w.pt")\nb = torch.load("w.pt", map_location="cpu")\n').of(Load)
    assert [load.map_location.text if load.map_location else None for load in loads] == [None, '"cpu"']


def test_events_come_in_the_order_of_the_text() -> None:
    events = function("y = x.cpu()", "z = torch.zeros(3)", "return (y + z).cuda()").facts.events
    assert [e.span for e in events] == sorted(e.span for e in events)

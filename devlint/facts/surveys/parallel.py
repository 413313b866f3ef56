"""Facts about several devices and several processes: wrapped modules, ranks as indices, device tensors in workers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from devlint.facts.events import Create, Move, Parallel, RankIndex, WorkerDevice
from devlint.facts.interpreter.objects import sets_by_name
from devlint.facts.surveys.outline import Outline, argument, dotted, is_open, method, own_nodes, parameters
from devlint.facts.surveys.transfers import Moved, asks_for_device, may_be_cpu, moved_abroad, moves
from devlint.facts.text.references import last_name
from devlint.facts.values import CPU, NOTHING, Place, Symbol, Value, may_be_accelerator
from devlint.model import Origin

_INIT = frozenset({"torch.distributed.init_process_group", "torch.distributed.distributed_c10d.init_process_group"})
_GET_RANK = frozenset(
    {
        "torch.distributed.get_rank",
        "torch.distributed.distributed_c10d.get_rank",
        "horovod.torch.rank",
        "deepspeed.comm.get_rank",
    }
)
#: Variables in which launchers say the number of a process among those of all machines.
_RANK_VARIABLES = frozenset(
    {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK"}
)
#: And in which they say it among those of one machine.
_LOCAL_VARIABLES = frozenset({"LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"})
_TAKES_INDEX = frozenset(
    {
        "torch.cuda.set_device", "torch.cuda.device", "torch.accelerator.set_device_index", "torch.xpu.set_device",
        "torch.npu.set_device", "torch.mlu.set_device", "torch.musa.set_device",
    }
)  # fmt: skip
_PROCESSES = frozenset({"torch.multiprocessing.Process", "multiprocessing.Process", "multiprocessing.context.Process"})
_POOLS = frozenset(
    {
        "concurrent.futures.ProcessPoolExecutor", "concurrent.futures.process.ProcessPoolExecutor",
        "multiprocessing.Pool", "torch.multiprocessing.Pool",
    }
)  # fmt: skip
_POOL_METHODS = frozenset({"submit", "map", "apply_async", "imap", "imap_unordered", "starmap", "map_async", "apply"})
#: Calls of `torch.cuda` that start the driver in the process that calls them.
_USES = frozenset(
    f"torch.cuda.{name}" for name in ("set_device", "current_device", "synchronize", "init", "current_stream")
)
_SPAWNS = ("spawn(", "start_processes(", "mp.Process(", "multiprocessing.Process(")
#: Classes of accelerate that number the processes.
_ACCELERATE = frozenset({"Accelerator", "PartialState", "AcceleratorState"})
#: Launchers that pass `--local_rank` themselves, or number processes in another way.
_OTHER_LAUNCHERS = (
    "deepspeed", "SLURM_LOCALID", "hvd.", "horovod", "xla_model", "submitit", "pytorch_lightning", "hydra",
)  # fmt: skip
_BINDS = (
    "set_device(", "set_device_index(", "set_device_idx(", "device_id=", "CUDA_VISIBLE_DEVICES", "torch.cuda.device(",
    "device_index(", "Accelerator(", "deepspeed", "setup_ddp", "setup_distributed", "init_distributed_mode",
)  # fmt: skip


# -- wrapped modules --------------------------------------------------------------------------------------------------


_EVERY_CARD = re.compile(r"(?:list\()?range\((?:0, )?torch\.cuda\.device_count\(\)\)\)?")


def wrapped(o: Outline) -> Iterator[Parallel]:
    flow = o.flow
    chosen = "CUDA_VISIBLE_DEVICES" in flow.source.text
    for node, values in flow.watched.items():
        if not isinstance(node, ast.Call) or "self" in values or is_open(node):
            continue
        qualname = o.qualname(node.func) or ""
        if not qualname.endswith("DataParallel"):
            continue
        ids = argument(node, "device_ids", 1)
        module = values.get("module", values.get("0", NOTHING))
        if ids is None or (isinstance(ids, ast.Constant) and ids.value is None):
            place, reasons = placed(o, node, module)
            if place is not None and place.card and node.args and not qualname.endswith("DistributedDataParallel"):
                head, given = o.head(node, *reasons), flow.operand(node.args[0], module)
                yield Parallel(*head, "DataParallel", "module-elsewhere", given, (), "cuda:0", str(place), None)
            continue
        numbers = literal_ids(ids)
        keyword = next((k for k in node.keywords if k.arg == "device_ids"), None)
        flag = flow.span(keyword) if keyword is not None else None
        operand = flow.operand(ids, values.get("device_ids", values.get("1", NOTHING)))
        head = o.head(node, *module.because[:1])
        if qualname.endswith("DistributedDataParallel"):
            if len(numbers) > 1 or "device_count" in flow.text(ids):
                yield Parallel(*head, "DistributedDataParallel", "several", operand, numbers, "", "", flag)
            elif module.kind == "module" and module.device == CPU and not module.shared:
                yield Parallel(*head, "DistributedDataParallel", "cpu-module", operand, numbers, "", "the CPU", flag)
            elif numbers and not chosen:
                yield Parallel(
                    *o.head(node), "DistributedDataParallel", "same-card", operand, numbers, "", f"cuda:{numbers[0]}",
                    flag,
                )  # fmt: skip
            elif isinstance(ids, ast.List) and len(ids.elts) == 1 and (name := dotted(ids.elts[0])) is not None:
                because = None if asks_for_device(o, node) else may_be_cpu(o, name, node)
                if because is not None:
                    yield Parallel(
                        *o.head(node, because),
                        "DistributedDataParallel",
                        "may-be-cpu",
                        operand,
                        numbers,
                        "",
                        name,
                        flag,
                    )
            continue
        if _EVERY_CARD.fullmatch(ast.unparse(ids)) and not any("cuda" in test for test in o.tests(node)):
            yield Parallel(*o.head(node), "DataParallel", "every", operand, numbers, "", "", flag)
        if not numbers:
            continue
        place, reasons = placed(o, node, module)
        if place is not None and place.card != numbers[0]:
            head = o.head(node, *reasons)
            expected = f"cuda:{numbers[0]}"
            yield Parallel(*head, "DataParallel", "module-elsewhere", operand, numbers, expected, str(place), flag)
        elif len(numbers) > 1 and not chosen:
            yield Parallel(*o.head(node), "DataParallel", "literal", operand, numbers, "", "", flag)
        yield from targets_elsewhere(o, node, numbers)


def literal_ids(node: ast.expr) -> tuple[int, ...]:
    """The numbers of `[0, 1]` and `range(4)`; none for what the code does not fix."""
    if isinstance(node, (ast.List, ast.Tuple)):
        numbers = [e.value for e in node.elts if isinstance(e, ast.Constant) and type(e.value) is int]
        return tuple(numbers) if len(numbers) == len(node.elts) else ()
    match = re.fullmatch(r"(?:list\()?range\((\d+)\)\)?", ast.unparse(node))
    return tuple(range(int(match[1]))) if match and int(match[1]) <= 64 else ()


def placed(o: Outline, wrapper: ast.Call, module: Value) -> tuple[Place | None, tuple[Origin, ...]]:
    """The card that a wrapped module is on, and why: where it was, or where a later statement moves the wrapper."""
    for event in moves(o):
        if event.target is not None and is_move_of(o, event, wrapper):
            place = card_of(event.target) or chosen_card(o, event.node, event.target)
            return place, (Origin(event.span, "the module is moved here"),)
    return card_of(module) or chosen_card(o, wrapper, module), module.because[:1]


def is_move_of(o: Outline, move: Move, wrapper: ast.Call) -> bool:
    """Whether a move is one of a wrapper itself, or of its name in a later statement of the same block."""
    statement, later = o.statement(wrapper), o.statement(move.node)
    if move.receiver.node is wrapper or statement is None or later is None:
        return move.receiver.node is wrapper
    if not isinstance(statement, ast.Assign) or statement.value is not wrapper or len(statement.targets) != 1:
        return False
    block = o.block(statement)
    is_later = later in block and block.index(later) > block.index(statement)
    return is_later and move.receiver.text == dotted(statement.targets[0])


def chosen_card(o: Outline, place: ast.AST, value: Value) -> Place | None:
    """The one card of a device that a name stands for: `"cuda:1" if torch.cuda.is_available() else "cpu"`."""
    (symbol,) = value.device if len(value.device) == 1 else (None,)
    bound = o.assignments(symbol.name, place) if isinstance(symbol, Symbol) else []
    if len(bound) != 1 or bound[0] is None:
        return None
    texts = {n.value for n in ast.walk(bound[0]) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    cards = texts - {"cpu"}
    match = re.fullmatch(r"cuda:(\d+)", cards.pop()) if len(cards) == 1 else None
    return Place("cuda", int(match[1])) if match is not None and "cpu" in texts else None


def card_of(value: Value) -> Place | None:
    """The one card that a value is surely on."""
    if len(value.device) == 1:
        (place,) = value.device
        if isinstance(place, Place) and place.type == "cuda" and place.card is not None:
            return place
    return None


def targets_elsewhere(o: Outline, wrapper: ast.Call, numbers: tuple[int, ...]) -> Iterator[Parallel]:
    """`loss(net(x), y)` where `net` gives its output on one card and `y` was moved to another."""
    statement = o.statement(wrapper)
    if not (isinstance(statement, ast.Assign) and statement.value is wrapper and len(statement.targets) == 1):
        return
    name = dotted(statement.targets[0])
    given = argument(wrapper, "output_device", 2)
    output = given.value if isinstance(given, ast.Constant) and type(given.value) is int else numbers[0]
    if name is None or (given is not None and not isinstance(given, ast.Constant)):
        return
    scope = o.scope(wrapper)
    outputs = {
        target.id
        for node in own_nodes(scope)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and dotted(node.value.func) == name
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    places = {id(e.node): e for e in moves(o)}
    for node in own_nodes(scope):
        if not (isinstance(node, ast.Call) and len(node.args) == 2 and not node.keywords):
            continue
        first, second = node.args
        if not (isinstance(first, ast.Name) and first.id in outputs):
            continue
        sources = o.assignments(second.id, second) if isinstance(second, ast.Name) else [second]
        event = places.get(id(sources[0])) if len(sources) == 1 else None
        if event is None or event.target is None:
            continue
        place = card_of(event.target)
        if place is not None and place.card != output:
            origin = Origin(o.flow.span(wrapper), f"its output is on cuda:{output}")
            yield Parallel(
                *o.head(second, origin), "DataParallel", "target-elsewhere", o.flow.operand(second, event.target),
                numbers, f"cuda:{output}", str(place), None,
            )  # fmt: skip


# -- ranks ------------------------------------------------------------------------------------------------------------


def ranks(o: Outline) -> Iterator[RankIndex]:
    text = o.flow.source.text
    if o.test:
        return
    if not any(word in text for word in _SPAWNS):
        yield from global_ranks(o)
    yield from never_set(o)
    if not any(word in text for word in _BINDS) and "LOCAL_RANK" in text and "nccl" in text:
        yield from unbound(o)
    if not any(word in text for word in (*_BINDS, *_OTHER_LAUNCHERS)):
        yield from started_unbound(o)
    if "--local_rank" in text and not any(
        word in text for word in ("LOCAL_RANK", "local-rank", *_SPAWNS, *_OTHER_LAUNCHERS)
    ):
        yield from by_option(o)


def by_option(o: Outline) -> Iterator[RankIndex]:
    """A program that knows its card by the option `--local_rank` alone, which no launcher of torch passes any more.

    `torchrun` sets the variable LOCAL_RANK, and `torch.distributed.launch` passes `--local-rank` since torch 2.0
    [torch/distributed/launch.py].
    """
    if "init_process_group" not in o.flow.source.text and "local_rank" not in {
        last_name(place) for place in indices(o)
    }:
        return
    for call in o.calls:
        names = [a.value for a in call.args if isinstance(a, ast.Constant)]
        if method(call) == "add_argument" and names == ["--local_rank"]:
            default = argument(call, "default")
            text = "0" if default is None else o.flow.text(default)
            yield RankIndex(*o.head(call), "option", text, f'int(os.environ.get("LOCAL_RANK", {text}))', False)


def started_unbound(o: Outline) -> Iterator[RankIndex]:
    """A function that the file starts in several processes, each with a card of its own that never becomes the current one."""
    started = {name for call in o.calls if (name := started_in_turn(o, call)) is not None}
    for function in o.functions:
        if function.name not in started or not function.args.args:
            continue
        nodes = [n for n in own_nodes(function) if isinstance(n, ast.Call)]
        init = next((c for c in nodes if o.qualname(c.func) in _INIT), None)
        statement = o.statement(init) if init is not None else None
        if statement is None:
            continue
        rank = function.args.args[0].arg
        for call in nodes:
            if not (o.qualname(call.func) or "").endswith("DistributedDataParallel"):
                continue
            ids = argument(call, "device_ids", 1)
            card = ids.elts[0] if isinstance(ids, ast.List) and len(ids.elts) == 1 else None
            if not isinstance(card, ast.Name):
                continue
            made = [n for n in own_nodes(function) if isinstance(n, ast.Assign) and dotted(n.targets[0]) == card.id]
            if len(made) == 1 and any(isinstance(n, ast.Name) and n.id == rank for n in ast.walk(made[0].value)):
                origin = o.flow.origin(call, "this is the GPU of this process")
                yield RankIndex(*o.head(made[0], origin), "no-set-device", card.id, card.id, False)
            elif not made and card.id == rank:
                origin = o.flow.origin(call, "this is the GPU of this process")
                yield RankIndex(*o.head(statement, origin), "no-set-device", card.id, card.id, True)
            break


def started_in_turn(o: Outline, call: ast.Call) -> str | None:
    """The function that a call starts in several processes: `mp.spawn(run, nprocs=n)`, `Process(target=run)` in a loop."""
    qualname = o.qualname(call.func) or ""
    if qualname.endswith(("multiprocessing.spawn", "multiprocessing.spawn.spawn")):
        return function_in(call.args[0]) if call.args else None
    if qualname in _PROCESSES and o.loop(call) is not None:
        target = argument(call, "target", 1)
        return function_in(target) if target is not None else None
    return None


def global_ranks(o: Outline) -> Iterator[RankIndex]:
    """A rank among all processes where the index of a card belongs."""
    seen: set[ast.AST] = set()
    for place in indices(o):
        if place in seen or o.loop(place) is not None:
            continue
        origin = rank_source(o, place, 0)
        if origin is None:
            continue
        seen.add(place)
        if isinstance(origin, ast.Attribute) and origin.attr == "process_index":
            local = f"{o.flow.text(origin.value)}.local_process_index" if origin is place else ""
            yield RankIndex(*o.head(origin), "global-rank", o.flow.text(origin), local, False)
            continue
        yield RankIndex(
            *o.head(place, o.flow.origin(origin, "this is the rank among all processes of all machines")), "global-rank",
            o.flow.text(place), local_of(o, place, origin), False,
        )  # fmt: skip


def local_of(o: Outline, place: ast.expr, origin: ast.expr) -> str:
    """An expression for the rank within the machine, by what says the one among all of them; "" where nothing does."""
    text = o.flow.text(origin)
    if "SLURM_PROCID" in text:
        return 'int(os.environ["SLURM_LOCALID"])'
    if "Get_rank" in text or any(name in text for name in _RANK_VARIABLES - {"RANK"}):
        return ""
    if isinstance(origin, ast.Call) and (o.qualname(origin.func) or "").startswith("horovod"):
        return text.replace("rank()", "local_rank()")
    return local_rank(o, place)


def indices(o: Outline) -> Iterator[ast.expr]:
    """The expressions that stand where the index of a card belongs."""
    for call in o.calls:
        qualname = o.qualname(call.func) or ""
        if qualname in _TAKES_INDEX:
            yield from call.args[:1]
        elif qualname == "torch.device":
            if len(call.args) > 1:
                yield call.args[1]
            elif call.args and not isinstance(call.args[0], (ast.Constant, ast.JoinedStr)):
                yield call.args[0]
        elif method(call) in ("cuda", "to") and call.args:
            yield call.args[0]
        if qualname.endswith("DataParallel"):
            ids = argument(call, "device_ids", 1)
            if isinstance(ids, (ast.List, ast.Tuple)) and len(ids.elts) == 1:
                yield ids.elts[0]
        for keyword in call.keywords:
            if keyword.arg == "device":
                yield keyword.value
            elif keyword.arg == "device_map" and isinstance(keyword.value, ast.Dict):
                yield from keyword.value.values
        if method(call) == "format" and isinstance(call.func, ast.Attribute) and is_cuda_prefix(call.func.value):
            yield from call.args[:1]
    for function in o.functions:
        for node in own_nodes(function) if function.name.endswith("current_device") else ():
            if isinstance(node, ast.Return) and isinstance(node.value, ast.IfExp):
                yield node.value.body
    for node in ast.walk(o.tree) if "cuda:" in o.flow.source.text else ():
        if isinstance(node, ast.JoinedStr) and len(node.values) == 2 and is_cuda_prefix(node.values[0]):
            if isinstance(node.values[1], ast.FormattedValue):
                yield node.values[1].value
        elif isinstance(node, ast.BinOp) and is_cuda_prefix(node.left):
            right = node.right
            if isinstance(right, ast.Call) and isinstance(right.func, ast.Name) and right.func.id == "str":
                yield from right.args[:1]
            elif isinstance(node.op, ast.Mod):
                yield right


def never_set(o: Outline) -> Iterator[RankIndex]:
    """`f"cuda:{self.gpu}"` in a class without bases that sets other attributes, but this one nowhere."""
    text = o.flow.source.text
    if sets_by_name(text) or "__getattr__" in text or "__slots__" in text:
        return
    for place in indices(o):
        path = dotted(place) or ""
        class_ = o.nearest(place, ast.ClassDef)
        if not path.startswith("self.") or path.count(".") != 1 or class_ is None:
            continue
        if class_.decorator_list or class_.keywords or any(dotted(base) != "object" for base in class_.bases):
            continue
        name = path[5:]
        bound = {
            getattr(n, "attr", getattr(n, "id", getattr(n, "name", None)))
            for n in ast.walk(o.tree)
            if isinstance(getattr(n, "ctx", None), ast.Store) or isinstance(n, (ast.FunctionDef, ast.ClassDef))
        }
        if name not in bound:
            yield RankIndex(*o.head(place), "never-set", path, "", False)


def is_cuda_prefix(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("cuda:")


def rank_source(o: Outline, node: ast.expr, depth: int) -> ast.expr | None:
    """The expression that makes a value the global rank, None when it is not surely one."""
    if isinstance(node, ast.Call):
        if o.qualname(node.func) in _GET_RANK and not node.args and not node.keywords:
            return node
        if isinstance(node.func, ast.Name) and node.func.id == "int" and len(node.args) == 1:
            if environment(o, node.args[0]) in _RANK_VARIABLES:
                return node
            return node if rank_source(o, node.args[0], depth + 1) is not None else None
        if environment(o, node) in _RANK_VARIABLES:
            return node
        if method(node) == "Get_rank" and not node.args:
            world = o.qualname(node.func) or ""
            assigned = (
                o.assignments(dotted(node.func.value) or "", node) if isinstance(node.func, ast.Attribute) else []
            )
            names = [o.qualname(v) for v in assigned if v is not None]
            return node if "mpi4py.MPI.COMM_WORLD" in (*names, world.removesuffix(".Get_rank")) else None
        helper = o.module_function(node.func.id) if isinstance(node.func, ast.Name) and depth < 3 else None
        returned = [n.value for n in own_nodes(helper) if isinstance(n, ast.Return)] if helper is not None else []
        if helper is None or not returned or node.args or node.keywords:
            return None
        sources = [rank_source(o, value, depth + 1) if value is not None else None for value in returned]
        plain = all(s is not None or is_number(v) for s, v in zip(sources, returned, strict=True))
        return node if plain and any(s is not None for s in sources) else None
    if isinstance(node, ast.Subscript):
        return node if environment(o, node) in _RANK_VARIABLES else None
    if isinstance(node, ast.IfExp):  # `int(os.environ["RANK"]) if "RANK" in os.environ else -1`
        arms = [rank_source(o, arm, depth) or is_number(arm) for arm in (node.body, node.orelse)]
        return next((arm for arm in arms if isinstance(arm, ast.expr)), None) if all(arms) else None
    if isinstance(node, ast.Attribute) and node.attr == "process_index":
        return node if is_of_accelerate(o, node.value) else None
    path = dotted(node)
    if path is None or depth > 3:
        return None
    if path.rsplit(".", 1)[-1] in ("global_rank", "world_rank"):
        known = [v for v in o.assignments(path, node) if v is not None]
        if not known or all(rank_source(o, v, depth + 1) is not None for v in known):
            return node
        return None
    values = o.assignments(path, node)
    if not values:
        return None
    found: ast.expr | None = None
    for value in values:
        source = rank_source(o, value, depth + 1) if value is not None else None
        if source is None and not (is_number(value) or (value is not None and reads_local(o, value))):
            return None
        found = found or source
    return found


def is_of_accelerate(o: Outline, node: ast.expr) -> bool:
    """Whether an object numbers processes as accelerate does: by `process_index` over all machines."""
    values = o.assignments(dotted(node) or "", node) if not isinstance(node, ast.Call) else [node]
    return bool(values) and all(isinstance(v, ast.Call) and last_name(v.func) in _ACCELERATE for v in values)


def is_number(node: ast.expr | None) -> bool:
    """A literal, which stands for "no process group": 0, -1, None."""
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant))


def reads_local(o: Outline, node: ast.expr) -> bool:
    """`int(os.environ.get("LOCAL_RANK", 0))`: right in one branch, which makes the other one wrong."""
    return isinstance(node, ast.Call) and bool(node.args) and environment(o, node.args[0]) in _LOCAL_VARIABLES


def environment(o: Outline, node: ast.expr) -> str | None:
    """The variable that `os.environ["X"]`, `os.environ.get("X", ...)` or `os.getenv("X")` reads."""
    if isinstance(node, ast.Subscript) and o.qualname(node.value) == "os.environ":
        key = node.slice
        return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None
    if isinstance(node, ast.Call) and o.qualname(node.func) in ("os.environ.get", "os.getenv") and node.args:
        key = node.args[0]
        return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None
    return None


def local_rank(o: Outline, node: ast.AST) -> str:
    """An expression for the rank within the machine: a name of the scope that holds it, else the variable itself."""
    for scope in (o.scope(node), o.tree):
        for child in own_nodes(scope):
            if not isinstance(child, ast.Assign) or child.lineno >= getattr(node, "lineno", 0):
                continue
            target = child.targets[0]
            if isinstance(target, ast.Name) and target.id.endswith("local_rank"):
                return target.id
    return 'int(os.environ["LOCAL_RANK"])'


def unbound(o: Outline) -> Iterator[RankIndex]:
    """A process group for NCCL in a file that uses the local rank as a card, and never makes that card current."""
    inits = [c for c in o.calls if o.qualname(c.func) in _INIT]
    inits = [c for c in inits if not is_other_backend(argument(c, "backend", 0))]
    if len(inits) != 1 or not any(is_local(o, place) for place in indices(o)):
        return
    call = inits[0]
    scope = o.scope(call)
    for place in indices(o):
        holder = o.statement(place)
        if o.scope(place) is scope and holder is not None and isinstance(holder, ast.Assign) and is_local(o, place):
            target = dotted(holder.targets[0])
            value = holder.value
            made = isinstance(value, ast.Call) and o.qualname(value.func) == "torch.device"
            if target is not None and (made or isinstance(value, ast.JoinedStr)):
                origin = o.flow.origin(call, "the process group is created here")
                yield RankIndex(*o.head(holder, origin), "no-set-device", target, target, False)
                return
    name, statement = getattr(scope, "name", None), o.statement(call)
    if statement is None or (name is not None and name not in {getattr(c.func, "id", None) for c in o.calls}):
        return  # who calls it may choose the card before or after
    yield RankIndex(*o.head(statement), "no-set-device", "", local_rank(o, call), True)


def is_other_backend(node: ast.expr | None) -> bool:
    """Whether a process group is for other machines than those with CUDA."""
    return isinstance(node, ast.Constant) and node.value != "nccl"


def is_local(o: Outline, node: ast.expr) -> bool:
    """Whether an index is the local rank: by its name, or read from LOCAL_RANK."""
    path = dotted(node)
    if path is None:
        return isinstance(node, ast.Call) and bool(node.args) and environment(o, node.args[0]) == "LOCAL_RANK"
    values = [v for v in o.assignments(path, node) if v is not None]
    return any("LOCAL_RANK" in o.flow.text(v) for v in values)


# -- workers ----------------------------------------------------------------------------------------------------------


def workers(o: Outline) -> Iterator[WorkerDevice]:
    text = o.flow.source.text
    if "spawn" not in text and "forkserver" not in text:
        yield from forked(o)
        yield from loaded(o)
        yield from collated_abroad(o)


def collated_abroad(o: Outline) -> Iterator[WorkerDevice]:
    """Loaders with worker processes whose `collate_fn`, of another file, moves what it puts together to an accelerator."""
    for call in o.calls:
        number, collate = argument(call, "num_workers", 5), argument(call, "collate_fn", 6)
        if collate is None or number is None or (isinstance(number, ast.Constant) and not number.value):
            continue
        if is_open(call) or not (o.qualname(call.func) or "").endswith("DataLoader"):
            continue
        moved = moved_abroad(o, collate)
        if moved is not None and is_named(moved):
            origin = moved.origin("the batch is moved here")
            yield WorkerDevice(*o.head(collate, origin), "collate", o.flow.text(collate))


def is_named(moved: Moved) -> bool:
    """Whether a move itself, or what its device is bound to, names an accelerator."""
    o, call = moved.outline, moved.call
    given = call.args[0] if call.args else None
    if method(call) == "cuda" or given is None:
        return True
    known = [o.flow.text(value) for value in o.assignments(dotted(given) or "", given) if value is not None]
    return any(word in text for text in known for word in ("cuda", "accelerator", "xpu", "mps", "npu"))


def loaded(o: Outline) -> Iterator[WorkerDevice]:
    """Device tensors made by a data set or a `collate_fn`, unless every loader of the file works in its own process."""
    flow = o.flow
    if not works_elsewhere(o):
        return
    for event in flow.events.values():
        if isinstance(event, Move):
            place = event.target
        elif isinstance(event, Create):
            place = event.device
        else:
            continue
        if place is None or not may_be_accelerator(place.device) or not isinstance(event.node, ast.Call):
            continue
        if isinstance(event, Create) and event.device is not None and event.device.made:
            continue
        function = o.function(event.node)
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        class_ = o.parent.get(function)
        known = flow.classes.get(class_.name) if isinstance(class_, ast.ClassDef) else None
        if known is not None and known.family == "Dataset" and function.name == "__getitem__":
            where, name = "__getitem__", known.name
        elif function.name in flow.collators and "worker_init" not in function.name:
            where, name = "collate", function.name
        else:
            continue
        if names_device(o, event, function) is None:
            continue
        if where == "__getitem__":
            yield WorkerDevice(*o.head(event.node, *event.because[:1]), "__getitem__", name)
        else:
            yield WorkerDevice(*o.head(event.node, *event.because[:1]), "collate", name)


def names_device(o: Outline, event: Move | Create, function: ast.AST) -> str | None:
    """The accelerator that a move in a worker names; None where it follows its input, or the CPU unless asked."""
    node = event.node
    if not isinstance(node, ast.Call):
        return None
    if isinstance(event, Move) and event.method != "to":
        return event.method
    given = event.target_node if isinstance(event, Move) else argument(node, "device")
    if given is None:
        return None
    text = o.flow.text(given)
    if isinstance(given, ast.Constant):
        return text
    path = dotted(given)
    if path is None:
        return text if "cuda" in text else None
    values = o.assignments(path, given)
    sources = [o.flow.text(v) for v in values if v is not None]
    if any(word in s for s in sources for word in ("cuda", "accelerator", "xpu", "mps", "npu")):
        return path
    if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and path in parameters(function):
        return None
    return None


def works_elsewhere(o: Outline) -> bool:
    """Whether a loader of the file has worker processes, or none is made here."""
    loaders = [c for c in o.calls if (o.qualname(c.func) or "").endswith("DataLoader")]
    if not loaders:
        return True
    for call in loaders:
        number = argument(call, "num_workers", 5)
        if is_open(call) or (number is not None and not (isinstance(number, ast.Constant) and number.value == 0)):
            return True
    return False


def forked(o: Outline) -> Iterator[WorkerDevice]:
    """Processes that are started by a fork, and use CUDA: by the default method of `Process` and of pools, or by a context
    that names it."""
    contexts = [
        c for c in o.calls if method(c) in ("get_context", "set_start_method") or called_name(c) == "set_start_method"
    ]
    asked = [c for c in contexts if c.args and isinstance(c.args[0], ast.Constant) and c.args[0].value == "fork"]
    if len(asked) < len(contexts):
        return
    uses: dict[str, ast.AST | None] = {}
    for class_ in o.classes if not asked else ():
        run = next((f for f in class_.body if isinstance(f, ast.FunctionDef) and f.name == "run"), None)
        if run is None or not any(o.qualname(base) in _PROCESSES for base in class_.bases):
            continue
        moved = next((n for n in ast.walk(run) if isinstance(n, ast.Call) and starts_cuda(o, n)), None)
        if moved is not None:
            origin = o.flow.origin(moved, "the process uses CUDA here")
            yield WorkerDevice(*o.head(class_.bases[0], origin), "fork", f"{class_.name}.run")
    for call in o.calls:
        started = started_by(o, call, bool(asked))
        name = function_in(started) if started is not None else None
        if isinstance(started, ast.Attribute) and sum(f.name == name for f in o.functions) != 1:
            continue  # of which class, that has to be known
        if name is not None and name not in uses:
            uses[name] = uses_cuda(o, name)
        used = uses[name] if name is not None else None
        if used is None or name is None:
            continue
        origin = o.flow.origin(used, "the process uses CUDA here")
        if asked:
            yield WorkerDevice(*o.head(asked[0], origin), "context", name)
            return
        yield WorkerDevice(*o.head(call, origin), "fork", name)


def called_name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def started_by(o: Outline, call: ast.Call, in_context: bool) -> ast.expr | None:
    """What a call runs in a process of its own: the target of `Process`, the function that a pool is given."""
    qualname = o.qualname(call.func)
    if qualname in _PROCESSES or (in_context and method(call) == "Process"):
        return argument(call, "target", 1)
    if method(call) in _POOL_METHODS and call.args and isinstance(call.func, ast.Attribute):
        pool = dotted(call.func.value)
        made = (opened(o, pool, call) or o.assignments(pool, call)) if pool is not None else []
        if made and all(is_pool(o, value) for value in made):
            return call.args[0]
    return None


def opened(o: Outline, name: str, place: ast.AST) -> list[ast.expr | None]:
    """What a `with` around a place binds to a name."""
    for above in o.above(place):
        if isinstance(above, (ast.With, ast.AsyncWith)):
            for item in above.items:
                if item.optional_vars is not None and dotted(item.optional_vars) == name:
                    return [item.context_expr]
    return []


def is_pool(o: Outline, node: ast.expr | None) -> bool:
    """Whether an expression makes a pool of processes by the default start method."""
    if not isinstance(node, ast.Call) or is_open(node):
        return False
    return o.qualname(node.func) in _POOLS and argument(node, "mp_context", 1) is None


def function_in(node: ast.expr) -> str | None:
    """The name of the function that a process runs: `run`, `partial(run, 3)`, `wrapped(run)`."""
    if isinstance(node, ast.Call) and node.args:
        return function_in(node.args[0])
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def starts_cuda(o: Outline, call: ast.Call) -> bool:
    """Whether a call moves something to CUDA, or starts the driver."""
    return method(call) == "cuda" or o.qualname(call.func) in _USES


def uses_cuda(o: Outline, name: str) -> ast.AST | None:
    """The first use of CUDA in a function of the file or in what it names, constructed classes included."""
    defined: dict[str, ast.AST] = {f.name: f for f in reversed(o.functions)}
    defined.update({c.name: c for c in ast.walk(o.tree) if isinstance(c, ast.ClassDef)})
    seen: set[str] = set()
    pending = [name]
    while pending:
        current = pending.pop()
        node = defined.get(current)
        if current in seen or node is None:
            continue
        seen.add(current)
        for child in ast.walk(node):
            if isinstance(child, ast.Constant) and isinstance(child.value, str):
                if re.fullmatch(r"cuda(:\d*)?", child.value) and isinstance(
                    o.parent.get(child), (ast.Call, ast.IfExp, ast.JoinedStr, ast.keyword)
                ):
                    return child
            elif isinstance(child, ast.Call) and starts_cuda(o, child):
                return child
            elif isinstance(child, ast.Name):
                pending.append(child.id)
    return None

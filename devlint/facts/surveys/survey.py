"""Facts that need the shape of a whole file next to what the interpreter found: loops, processes, streams, start-up.

Each survey has a gate, words and events that it cannot do without, because most files have nothing for it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from devlint.facts.events import ApiCall, ColdTimer, Create, CudaMethod, DeviceLiteral, Event, Move
from devlint.facts.interpreter.flow import Flow
from devlint.facts.surveys.card_options import card_options
from devlint.facts.surveys.checkpoints import loads_by_content
from devlint.facts.surveys.comparisons import compares_devices, device_tests
from devlint.facts.surveys.dropped_copies import dropped_copies, may_drop
from devlint.facts.surveys.early_copies import early_copies
from devlint.facts.surveys.fixed_choices import fixed_choices, may_be_fixed
from devlint.facts.surveys.forgotten_parts import forgotten_parts
from devlint.facts.surveys.gates import followed, required, type_tests
from devlint.facts.surveys.ignored_devices import any_ignored, ignored_devices
from devlint.facts.surveys.late_moves import late_moves
from devlint.facts.surveys.late_questions import late_questions
from devlint.facts.surveys.listed_devices import by_process, listed_devices
from devlint.facts.surveys.lost_cards import lost_cards
from devlint.facts.surveys.lost_leaves import lost_leaves
from devlint.facts.surveys.moved_to_save import moved_to_save
from devlint.facts.surveys.outline import Outline
from devlint.facts.surveys.parallel import ranks, workers, wrapped
from devlint.facts.surveys.partners import partners
from devlint.facts.surveys.placed_copies import placed_copies
from devlint.facts.surveys.restored_scores import restored_scores
from devlint.facts.surveys.startup import late_settings
from devlint.facts.surveys.steps import drop_trained, loop_empties, loop_waits, retained
from devlint.facts.surveys.streams import stream_uses
from devlint.facts.surveys.transfers import early_reads, loop_moves, pins, round_trips, unpinned, unpinned_sources
from devlint.facts.surveys.visible_cards import hidden_cards

Survey = Callable[[Outline], Iterator[Event]]
Gate = Callable[[ast.Module, Flow, str], bool]

_RETURNS = re.compile(r"from_numpy|(?:as_)?tensor\(|Tensor\(")
_LEAVES = re.compile(r"\.numpy\(|\.tolist\(")
_RANKS = ("RANK", "cuda:{", "spawn(", "Process(", "process_index", "SLURM_PROCID", "Get_rank", ".rank()")
_ASKS = (".cuda(", '"cuda', "'cuda", "torch.cuda.")


def words(*any_of: str) -> Gate:
    """The gate of a survey that needs one of these words."""
    return within("", *any_of)


def within(part: str, *any_of: str) -> Gate:
    """The gate of a survey that needs one of these words, which share a part: most files lack that already."""

    def gate(tree: ast.Module, flow: Flow, text: str) -> bool:
        if part in text:
            for word in any_of:  # in a loop, for it is asked of every file, dozens of times
                if word in text:
                    return True
        return False

    return gate


def either(*gates: Gate) -> Gate:
    """The gate of a survey that needs what one of these gates asks for."""
    return lambda tree, flow, text: any(gate(tree, flow, text) for gate in gates)


def moves_in_loops(tree: ast.Module, flow: Flow, text: str) -> bool:
    return any(isinstance(e, Move) and e.in_loop for e in flow.events.values())


def leaves_and_returns(tree: ast.Module, flow: Flow, text: str) -> bool:
    return ".cpu()" in text and _LEAVES.search(text) is not None and _RETURNS.search(text) is not None


def works_in_workers(tree: ast.Module, flow: Flow, text: str) -> bool:
    if (("Process" in text or "Pool(" in text) and "cuda" in text) or ("num_workers" in text and "collate_fn" in text):
        return True
    names = flow.collators | {"__getitem__"}
    events = (e for e in flow.events.values() if isinstance(e, (Move, Create)))
    return any(e.function.rsplit(".", 1)[-1] in names for e in events)


def touches_early(tree: ast.Module, flow: Flow, text: str) -> bool:
    """Whether the visible devices are set, or something is computed for a default or a class body, in a file with CUDA."""
    asks = "available(" in text or ("cuda" in text and any(word in text for word in _ASKS))
    return "VISIBLE_DEVICES" in text or (asks and any(map(computes_early, tree.body)))


def copies_and_moves(tree: ast.Module, flow: Flow, text: str) -> bool:
    """Whether a file with classes copies something, and moves something."""
    if not flow.classes or not any(word in text for word in ("deepcopy(", "clone()", "_like(")):
        return False
    return ".to(" in text or ".cuda(" in text


def restores_and_moves(tree: ast.Module, flow: Flow, text: str) -> bool:
    """Whether a file with classes loads the state of optimizers, and moves something."""
    restores = ".load_state_dict(" in text and "optim" in text
    return restores and (".to(" in text or ".cuda(" in text) and bool(flow.classes)


def loads_in_processes(tree: ast.Module, flow: Flow, text: str) -> bool:
    """Whether a file of several processes saves checkpoints and loads them."""
    parallel = "DistributedDataParallel" in text or "init_process_group" in text
    return parallel and "save(" in text and "load(" in text


def computes_early(node: ast.stmt) -> bool:
    simple = (ast.Constant, ast.Name, ast.UnaryOp, ast.Attribute)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        defaults = (*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None))
        return any(not isinstance(d, simple) for d in defaults)
    if isinstance(node, ast.ClassDef):
        return any(
            computes_early(child)
            or (isinstance(child, (ast.Assign, ast.AnnAssign)) and not isinstance(child.value, simple))
            for child in node.body
        )
    if isinstance(node, (ast.If, ast.Try)):
        return any(map(computes_early, (*node.body, *node.orelse)))
    return False


def fixes_an_accelerator(tree: ast.Module, flow: Flow, text: str) -> bool:
    return any(
        isinstance(e, (CudaMethod, DeviceLiteral)) or (isinstance(e, ApiCall) and e.qualname.endswith("Tensor"))
        for e in flow.events.values()
        if getattr(e, "run_device", "") is None and e.function
    )


SURVEYS: tuple[tuple[Survey, Gate], ...] = (
    (loop_moves, moves_in_loops),
    (unpinned, words("non_blocking")),
    (unpinned_sources, words("copy_")),
    (early_reads, words("non_blocking")),
    (round_trips, leaves_and_returns),
    (pins, words("pin_memory")),
    (loop_waits, words(".backward(")),
    (loop_empties, words("empty_cache")),
    (retained, words(".backward(")),
    (stream_uses, words(".stream(", "import stream")),
    (wrapped, words("DataParallel")),
    (ranks, either(words(*_RANKS), within("_rank", "get_rank", "global_rank", "world_rank", "--local_rank"))),
    (workers, works_in_workers),
    (late_settings, touches_early),
    (hidden_cards, words("VISIBLE_DEVICES")),
    (ignored_devices, any_ignored),
    (lost_leaves, words("requires_grad")),
    (early_copies, copies_and_moves),
    (forgotten_parts, words("def to(self")),
    (placed_copies, copies_and_moves),
    (late_moves, restores_and_moves),
    (moved_to_save, within(".state_dict(", "cpu().state_dict(", '("cpu").state_dict(', "('cpu').state_dict(")),
    (partners, fixes_an_accelerator),
    (loads_by_content, words("torch.load", "import load", "jit.load")),
    (restored_scores, loads_in_processes),
    (required, words("is_available")),
    (type_tests, within(".type()", ".type() == ", ".type() != ", ".type()==")),
    (followed, within(".is_", ".is_cuda", ".is_xpu", ".is_mps")),
    (device_tests, compares_devices),
    (by_process, words("local_process_index")),
    (
        listed_devices,
        either(within("cuda", '"cuda', "'cuda"), within("xpu", '"xpu', "'xpu"), within("mps", '"mps', "'mps")),
    ),
    (
        lost_cards,
        either(
            within(".type()", ".type())", ".type()\n"),
            within("cuda", "_cuda(", "cuda_"),
            within("-1", "else -1", "-1 if "),
            words("set_device(", ".device.type"),
        ),
    ),
    (late_questions, within("is_available()", "and torch.cuda.is_available()", "torch.cuda.is_available() and")),
    (card_options, words("add_argument")),
    (fixed_choices, may_be_fixed),
    (dropped_copies, may_drop),  # the last one, since it changes moves that others read
)


def survey(tree: ast.Module, flow: Flow, test: bool) -> None:
    """Emit the events of every survey whose gate the file passes. `test`: the file is a test."""
    if not flow.knows_torch:
        return
    text = flow.source.text
    wanted = [run for run, gate in SURVEYS if gate(tree, flow, text)]
    cold = any(isinstance(event, ColdTimer) for event in flow.events.values())
    if not (wanted or cold):
        return
    outline = Outline(tree, flow, test)
    for run in wanted:
        for event in list(run(outline)):
            flow.emit(event, *((event.is_call,) if isinstance(event, ApiCall) else ()))
    if cold:
        drop_trained(outline)

"""Facts that need the shape of a whole file next to what the interpreter found: loops, processes, streams, start-up.

Each survey is gated by words, because most files have nothing for it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from devlint.facts.events import Event
from devlint.facts.flow import Flow
from devlint.facts.outline import Outline
from devlint.facts.parallel import ranks, workers, wrapped
from devlint.facts.startup import late_settings
from devlint.facts.steps import drop_trained, loop_empties, loop_waits, retained
from devlint.facts.streams import stream_uses
from devlint.facts.transfers import early_reads, loop_moves, pins, round_trips, unpinned

Survey = Callable[[Outline], Iterator[Event]]

#: Each survey with the words of which its file must hold one.
SURVEYS: tuple[tuple[Survey, tuple[str, ...]], ...] = (
    (loop_moves, (".to(", ".cuda(", ".xpu(")),
    (unpinned, ("non_blocking",)),
    (early_reads, ("non_blocking",)),
    (round_trips, (".cpu()",)),
    (pins, ("pin_memory",)),
    (loop_waits, (".backward(",)),
    (loop_empties, ("empty_cache",)),
    (retained, (".backward(",)),
    (stream_uses, (".stream(", "import stream")),
    (wrapped, ("DataParallel",)),
    (ranks, ("get_rank", "RANK", "global_rank")),
    (workers, ("__getitem__", "collate_fn", "Process(")),
    (late_settings, ("VISIBLE_DEVICES", "is_available", "cuda")),
)


def survey(tree: ast.Module, flow: Flow, test: bool) -> None:
    """Emit the events of every survey that the file's words call for. `test`: the file is a test."""
    text = flow.source.text
    wanted = [run for run, words in SURVEYS if any(word in text for word in words)]
    cold = any(name[0] == "ColdTimer" for name in flow.events)
    if not (wanted or cold) or not flow.knows_torch:
        return
    outline = Outline(tree, flow, test)
    for run in wanted:
        for event in list(run(outline)):
            flow.emit(event)
    if cold:
        drop_trained(outline)

"""Random programs on the card: what stops them and where their values are, against the simulation and the analysis.

The first five hundred programs of `tests.facts.programs`; on a machine with one card that card stands for both.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any, TextIO

import torch

from benchmarks.golden import rows

PROGRAMS = 500


def run(first: int, out: TextIO, rehearse: bool) -> None:
    from tests.facts import programs, test_generated

    cards = 1 if rehearse else torch.cuda.device_count()
    for seed in range(first, PROGRAMS):
        text = programs.program(seed).text
        if cards < 2:
            text = programs.on_one_card(text)
        simulated = test_generated.run(text, partial(rows.card, True, min(cards, 2)))
        real = test_generated.run(text, partial(rows.card, rehearse, min(cards, 2)))
        result = test_generated.Result()
        test_generated.judge(text, real, result, f"seed {seed}")
        wrong = result.wrong + result.false
        outcomes = [_outcome(ran) for ran in (real, simulated)]
        rows.put(
            out,
            seed,
            name=f"seed {seed}",
            **({} if outcomes[0] == outcomes[1] else {"real": outcomes[0], "simulated": outcomes[1]}),
            agrees=outcomes[0] == outcomes[1] and not wrong,
            errors=outcomes[0]["errors"],
            refuted=wrong,
            probes=result.probes,
            known=result.known,
        )
        if any(rows.is_lost(error) for _, error in real.errors):
            os._exit(1)


def _outcome(ran: Any) -> dict[str, Any]:
    """What one program showed, in words: the devices at each probe, and each error with the lines it came through."""
    return {
        "seen": {str(row): sorted(devices) for row, devices in sorted(ran.seen.items())},
        "errors": [[lines, str(error).splitlines()[0]] for lines, error in ran.errors],
    }

"""The files of fixtures/facts on the card: each device that the analysis claims, against the one that is there.

A file that names a second card is run with the first one in its place, as `tests.facts.programs.on_one_card` says.
"""

from __future__ import annotations

from typing import TextIO

import torch

from benchmarks.golden import rows


def run(first: int, out: TextIO, rehearse: bool) -> None:
    from devlint.facts.analysis import analyse
    from devlint.settings import Settings
    from devlint.source import decode, parse
    from devlint.testing import case_files
    from tests.facts import test_truth
    from tests.facts.programs import on_one_card

    cards = 1 if rehearse else torch.cuda.device_count()
    for index, path in enumerate(case_files(test_truth.FIXTURES)):
        if index < first:
            continue
        source, _ = test_truth.read(path)
        if cards < 2:
            source = decode(on_one_card(source.text).encode(), path.name)
        facts = analyse(parse(source), source, Settings())
        claims = [(source.position(span.start).row, value) for span, value in facts.probes]
        with rows.card(rehearse, 1):
            ran = test_truth.Run(source, "cuda:0")
            ran.execute()
        refuted = test_truth.contradictions(ran, claims)
        stopped = sorted(f"{name}: {error}" for name, error in ran.stopped.items())
        seen = sum(row in ran.seen for row, _ in claims)
        rows.put(out, index, name=path.stem, real=refuted, simulated=[], claims=len(claims), seen=seen, stopped=stopped)

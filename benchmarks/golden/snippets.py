"""Each line of the tables in tests/runtime: the text of its error on the card, or None."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any, TextIO

import torch

from benchmarks.golden import rows

TABLES = ("lines", "lines_of_training")  # modules of tests/runtime


def run(first: int, out: TextIO, rehearse: bool) -> None:
    tables = [importlib.import_module(f"tests.runtime.{name}") for name in TABLES]
    cards = 2 if rehearse else torch.cuda.device_count()
    for index, case in enumerate(case for table in tables for case in table.CASES):
        if index < first:
            continue
        if cards < 2 and needs_second_card(case.run.__code__):
            rows.put(out, index, name=case.name, simulated=case.error, skipped="needs two cards")
            continue
        error: str | None = None
        with rows.card(rehearse):
            world = _world(tables[0].World, cards)
            try:
                case.run(world)
                torch.cuda.synchronize()
            except Exception as raised:
                error = str(raised)
        rows.put(out, index, name=case.name, real=error, simulated=case.error, agrees=_told(error) == _told(case.error))
        if rows.is_lost(error):
            os._exit(1)


def _told(error: str | None) -> str | None:
    """An error without what depends on the build: hints to the CUDA runtime, the list of an operator's kernels."""
    if error and error.startswith(("CUDA error", "Could not run")):
        return error.splitlines()[0].partition(" This could be because")[0]
    return error


def needs_second_card(code: Any) -> bool:
    """Whether a snippet, or a function inside it, uses the second card."""
    return (
        not {"other_x", "DataParallel"}.isdisjoint(code.co_names)
        or any(_names_second_card(each) for each in code.co_consts)
        or any(needs_second_card(each) for each in code.co_consts if hasattr(each, "co_code"))
    )


def _names_second_card(constant: Any) -> bool:
    return "cuda:1" in repr(constant) if isinstance(constant, (str, tuple)) else False


def _world(make: Callable[[], Any], cards: int) -> Any:
    """The tensors of the snippets; with one card the second one's are put on the first, where nothing uses them."""
    if cards > 1:
        return make()
    draw = torch.randn

    def on_first(*size: Any, **options: Any) -> Any:
        if options.get("device") == "cuda:1":
            options["device"] = "cuda:0"
        return draw(*size, **options)

    torch.randn = on_first
    try:
        return make()
    finally:
        torch.randn = draw

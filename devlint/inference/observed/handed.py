"""Runs each function again with what its calls hand over, where the function alone does not tell what that is."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final

from devlint.inference.observed.collect import Observer, is_real
from devlint.inference.program.definitions import File
from devlint.inference.summary.analyser import Analyser
from devlint.inference.summary.instantiate import Instance
from devlint.inference.terms.values import Value

#: How often one function is run again, and how far calls are followed.
VARIANTS: Final = 3
ROUNDS: Final = 3
#: Calls that hand over the same that are told apart by where it is.
CALLS: Final = 12


def run_again(analyser: Analyser, observer: Observer, file: File) -> None:
    """Let the observer see the functions of a file with what their calls hand over."""
    done: dict[Hashable, list[Instance]] = {}
    count: dict[int, int] = {}
    for _ in range(ROUNDS):
        live = {id(each) for each in analyser.summaries.values()}
        pending = [
            (instance, handed, done[key])
            for instances in list(observer.calls.values())
            for instance in filter(is_real, instances)
            for key, handed in _new(instance, file, done, live)
            if not _is_redefined(analyser, instance)
        ]
        if not pending:
            return
        for instance, handed, alike in pending:
            function = id(instance.summary.function.node) if instance.summary.function is not None else 0
            count[function] = count.get(function, 0) + 1
            if count[function] <= VARIANTS:
                observer.clocks.handed = instance
                frame = analyser.run_with(instance.summary, handed, instance.frame.heap)
                observer.clocks.handed = None
                if frame is not None:
                    observer.runs[frame] = alike


def _is_redefined(analyser: Analyser, instance: Instance) -> bool:
    """Whether the file defines a function of this name again: which of them a call inside another function means is open."""
    function = instance.summary.function
    if function is None or function.owner is not None or function.outer is not None:
        return False
    first = function.file.functions.get(function.name)
    last = analyser.module_level(function.file).state.names.get(function.name)
    is_function = last is not None and last.kind == "function" and isinstance(last.ref, tuple)
    return first is not None and last is not None and is_function and last.ref[0] is not first


def _new(
    instance: Instance, file: File, done: dict[Hashable, list[Instance]], live: set[int]
) -> Iterator[tuple[Hashable, dict[str, Value]]]:
    """What a call hands over, where it tells more than the function does and than the calls before.

    `done`: by what is handed over, the calls that do so. `live`: the summaries that count. One that was read for the classes
    of these arguments before its object was complete does not: it is read again.
    """
    summary = instance.summary
    function = summary.function
    if function is None or function.file is not file:
        return
    known = {name: value for name, value in instance.bindings.items() if name in summary.given and _is_known(value)}
    known.pop("self", None)
    if id(summary) in live and not any(_is_open(summary.given[name]) for name in known):
        return
    said = frozenset((name, value.kind, _class_of(instance, value)) for name, value in known.items())
    key = (id(function.node), id(summary.site.receiver), said)
    alike = done.get(key)
    if alike is None:
        done[key] = [instance]
        yield key, known
    elif len(alike) < CALLS and instance not in alike:
        alike.append(instance)


def _is_known(value: Value) -> bool:
    return value.proved and (value.kind not in ("unknown", "other") or isinstance(value.ref, str))


def _is_open(value: Value) -> bool:
    """Whether the function alone does not tell what an argument is."""
    return value.kind == "unknown" and not value.objects


def _class_of(instance: Instance, value: Value) -> Hashable:
    found = instance.frame.class_of(value) if value.objects else value.ref
    if isinstance(found, str):
        return found
    return id(found[0].node) if isinstance(found, tuple) and hasattr(found[0], "node") else id(found)

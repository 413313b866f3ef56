"""The order of frames whose lines lost theirs: what a frame calls is named on its line, so callers come first."""

from __future__ import annotations

import ast

from devlint.explain.sources import File
from devlint.explain.tracebacks import Frame

Places = dict[Frame, tuple[File, ast.stmt, int]]


def by_calls(places: Places) -> list[Frame]:
    """Frames, the outermost first. A frame that the last one calls comes next, else one that no other one calls."""
    left = list(places)
    found: list[Frame] = []
    while left:
        called = _called(found[-1], left, places) if found else []
        outer = [frame for frame in left if not any(frame in _called(other, left, places) for other in left)]
        first = [frame for frame in outer if frame.name == "<module>"]
        chosen = next(iter([*called, *first, *outer, *left]))
        found.append(chosen)
        left.remove(chosen)
    return found


def _called(caller: Frame, left: list[Frame], places: Places) -> list[Frame]:
    """The other frames whose function a frame's line calls by name."""
    file, _, row = places[caller]
    names = file.calls_at(row)
    return [frame for frame in left if frame is not caller and frame.name in names]

"""Frames whose lines stand in any order: how that is noticed, and which order they had.

The source tells both. A log that shows the line of a frame, but not below the frame, is out of order. What a frame calls is
named on its line, so callers come first.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from devlint.explain.sources import File
from devlint.explain.tracebacks import Frame

_SHORTEST = 4  # characters of a source line that is looked for: not a bracket

Places = dict[Frame, tuple[File, ast.stmt, int]]


def is_scattered(places: Places, log: str) -> bool:
    """Whether a log shows the source line of one of its frames elsewhere than below the frame."""
    shown = {line.strip() for line in log.splitlines()}
    for frame, (file, _, _) in places.items():
        line = file.source.line_text(frame.row).strip() if frame.row <= file.source.rows else ""
        if len(line) >= _SHORTEST and frame.code != line and line in shown:
            return True
    return False


def bare(frames: list[Frame]) -> list[Frame]:
    """Frames, each once, without source lines: what stands below a frame need not be its line."""
    return list(dict.fromkeys(replace(frame, code="") for frame in frames))


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

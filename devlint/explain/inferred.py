"""What the new inference says of the values on the failing lines.

A program that failed is the question for which it was made, so it is asked whatever the settings say of `check`. It knows
which values may be on the CPU and which on an accelerator, and where each was made. A place that the search back from the
line names too is likelier. One that it does not name is added.
"""

from __future__ import annotations

import ast
import os
from pathlib import Path

from devlint.config import Resolver
from devlint.explain.origins import Search
from devlint.explain.sources import File
from devlint.explain.suspects import Step, Trail
from devlint.file_state import FileState

#: How much likelier a place is that both name.
_AGREED = 1.2
#: The weight of a place that the inference alone names, and what is left of it with each frame outward.
_ALONE = 0.7
_OUTWARD = 0.8


def note_inferred(search: Search) -> None:
    """Weigh the places at which the inference says that values of the failing lines were made."""
    from devlint.facts.project.project import Project
    from devlint.inference.reveal.asked import ask

    project = Project()

    def load(path: str) -> tuple[FileState, ast.Module | None]:
        state, loaded = project.load(path)
        return state, loaded.tree if loaded is not None else None

    files = {os.path.abspath(file.path): file for file, _, _ in search.frames}
    weight = _ALONE
    for file, statement, row in reversed(search.frames):
        targets = _targets(file)
        rows = range(min(row, statement.lineno), row + 1)
        try:
            answer = ask(file.tree, file.source, load, targets, rows)
        except Exception:  # a fault of the inference must not end the search
            continue
        for shown in answer.values:
            for line in shown.because:
                home = files.get(line.path) or search.files.read(Path(line.path))
                if home is not None:
                    place = Step(home, line.row, line.column, line.text)
                    _weigh(search, place, line.on_host, shown.kind == "module", weight)
        weight *= _OUTWARD


def _targets(file: File) -> tuple[str, ...]:
    """What a file must run on by its settings."""
    from devlint.rulebook import Rulebook

    config = Resolver().for_directory(str(file.path.resolve().parent))
    return Rulebook().settings(config, str(file.path)).targets


def _weigh(search: Search, place: Step, on_host: bool, of_module: bool, weight: float) -> None:
    key = (str(place.file.path), place.row)
    known = search.found.get(key)
    if known is None:
        search.note_at(place, Trail(weight), on_host, of_module)
    elif known.on_host == on_host and known.trail.weight < 1.0:
        search.found[key] = known.weighed(_AGREED)

"""An explanation as lines of text: on a terminal, and under a cell of a notebook."""

from __future__ import annotations

from collections.abc import Iterator

from devlint.explain.causes import Cause, Explanation
from devlint.explain.mended import Next
from devlint.model import Safety

UNKNOWN = "devlint finds no known device error in this text. The last line of the traceback names the error."


def lines(explanation: Explanation) -> Iterator[str]:
    """What the error means, what to do, where it was raised, and the likely causes."""
    yield "cause:  " + explanation.error.meaning
    yield "remedy: " + explanation.error.remedy
    frame = explanation.frame
    if explanation.where is not None and frame is not None:
        file, row = explanation.where
        yield f"where:  {file.place(row)} in {frame.name}"
    elif frame is not None:
        yield f"where:  {frame.path}:{frame.row} in {frame.name}, but its source is missing or cannot be parsed"
    for cause in explanation.causes:
        yield ""
        yield from _cause(cause)
    if explanation.then is not None:
        yield ""
        yield from _next(explanation.then)


def _next(then: Next) -> Iterator[str]:
    finding = then.finding
    where = then.file.place(then.row)
    yield f"next:   after this fix, the program stops at {where}: {finding.code} {finding.message}"
    yield f"    {then.file.source.line_text(then.row).strip()}"


def _cause(cause: Cause) -> Iterator[str]:
    place = cause.suspect.place
    finding = cause.finding
    said = place.text if finding is None else f"{finding.code} {finding.message}"
    column = place.column if finding is None else finding.start.column
    where = place.file.place(place.row)
    yield f"{where}: {said}" if place.file.notebook is not None else f"{where}:{column}: {said}"
    yield f"    {place.file.source.line_text(place.row).strip()}"
    latest = cause.latest
    for step in reversed(cause.suspect.trail.steps):
        if step.row != place.row and step is not latest:
            near = step.file is place.file and step.file.notebook is None
            yield f"    {f'line {step.row}' if near else step.file.place(step.row)}: {step.text}"
    if latest is not None:
        yield f"    {latest.file.place(latest.row)}: {latest.text}; this is the last place to move it"
    if finding is not None and finding.fix is not None:
        kind = "suggestion" if finding.fix.safety is Safety.HINT else f"{finding.fix.safety.value} fix"
        yield f"    {kind}: {finding.fix.title}"

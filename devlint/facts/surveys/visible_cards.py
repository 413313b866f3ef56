"""Cards that the program itself hides: an index beyond those that `CUDA_VISIBLE_DEVICES` leaves visible."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from devlint.facts.events import ApiCall, CudaMethod, DeviceLiteral, HiddenCard, LateSetting
from devlint.facts.surveys.outline import Outline
from devlint.facts.surveys.startup import setting
from devlint.facts.text.handlers import awaits_error
from devlint.facts.text.nodes import asks_name

_NUMBERS = re.compile(r"\s*\d+\s*(?:,\s*\d+\s*)*")
_CARD = re.compile(r"cuda:(\d+)")
_SETS = frozenset({"torch.cuda.set_device", "torch.accelerator.set_device_index", "torch.cuda.device"})


def hidden_cards(o: Outline) -> Iterator[HiddenCard]:
    """Uses of a card by a number that no visible card has, after the one statement that hides the others.

    The visible cards are numbered anew from 0 [docs.nvidia.com/cuda, CUDA_VISIBLE_DEVICES].
    """
    found = [statement for node in ast.walk(o.tree) if (statement := setting(o, node)) is not None]
    texts = {visible_of(statement) for statement in found}
    if len(texts) != 1 or None in texts or any(isinstance(e, LateSetting) for e in o.flow.events.values()):
        return
    visible = tuple(part.strip() for part in (texts.pop() or "").split(","))
    statement = found[0]
    scope = o.scope(statement)
    if statement not in scope.body and not asks_name(o.parent[statement]):  # type: ignore[attr-defined]
        return  # under a condition
    shown = "one GPU is" if len(visible) == 1 else f"{len(visible)} GPUs are"
    origin = o.flow.origin(statement, f"with this setting, {shown} visible")
    for place, index in cards(o):
        function, later = o.function(place), o.flow.span(place).start > o.flow.span(statement).end
        if (
            index >= len(visible)
            and not is_tried(o, place)
            and (later if function is scope or function is None else scope is o.tree)
        ):
            yield HiddenCard(*o.head(place, origin), index, visible)


def is_tried(o: Outline, place: ast.AST) -> bool:
    """Whether a place asks for a card, compares with it, or foresees that it is not there."""
    for above in o.above(place):
        if isinstance(above, (ast.Compare, ast.Assert, ast.Try)):
            return True
        if isinstance(above, (ast.If, ast.IfExp)) and "device_count" in o.flow.text(above.test):
            return True
        if isinstance(above, ast.With) and any(awaits_error(item.context_expr) for item in above.items):
            return True
    return False


def visible_of(statement: ast.stmt) -> str | None:
    """The cards that a statement leaves visible, as it writes them; None where that is no list of numbers."""
    value = statement.value if isinstance(statement, ast.Assign) else None
    text = value.value if isinstance(value, ast.Constant) else None
    return text if isinstance(text, str) and _NUMBERS.fullmatch(text) else None


def cards(o: Outline) -> Iterator[tuple[ast.expr, int]]:
    """The numbers of cards of CUDA that the file names, each with the expression that does so."""
    for node, _, _ in o.flow.literals.values():  # `"cuda:1" if torch.cuda.is_available() else "cpu"`
        number = named(getattr(node, "value", None))
        if number is not None and isinstance(o.parent.get(node), (ast.IfExp, ast.Assign, ast.AnnAssign)):
            yield node, number
    for event in list(o.flow.events.values()):
        if isinstance(event, DeviceLiteral) and event.type == "cuda" and event.index is not None:
            if isinstance(event.node, ast.expr):
                yield event.node, event.index
        elif isinstance(event, CudaMethod) and event.type == "cuda" and event.index is not None:
            if event.argument is not None:
                yield event.argument, event.index
        elif isinstance(event, ApiCall) and event.is_call and event.qualname in _SETS and "0" in event.arguments:
            given = event.arguments["0"]
            number = named(given.value.constant)
            if number is not None:
                yield given.node, number
    for call in o.calls:
        for ids in (keyword.value for keyword in call.keywords if keyword.arg == "device_ids"):
            numbers = (
                [named(getattr(e, "value", None)) for e in ids.elts] if isinstance(ids, (ast.List, ast.Tuple)) else []
            )
            if numbers and None not in numbers:
                yield ids, max(n for n in numbers if n is not None)


def named(constant: object) -> int | None:
    """The number of a card that a constant names: 1 for `1` and `"cuda:1"`."""
    found = _CARD.fullmatch(constant) if isinstance(constant, str) else None
    if found is not None:
        return int(found[1])
    return constant if isinstance(constant, int) and not isinstance(constant, bool) else None

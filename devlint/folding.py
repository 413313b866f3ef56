"""Joins related findings into one finding of a report.

Findings are joined for two reasons. Twelve lines that name one GPU need one decision, so the first finding stands for all
twelve. A rule says what needs one decision (`Finding.decision`): all moves of one dataset to a GPU do, too. And a program that
ends at one line never reaches the later lines on the same path, so a finding about other machines (`Portability`) stands for
the findings on the later lines.

`Linter.check` gives each line its own finding, because comments, baselines and fixes refer to lines. A finding never stands
for a finding with a higher severity.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from devlint.model import Diagnostic, Folded, Safety, Span, TextEdit, TextFix

Way = tuple[int, ...]


def fold(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The findings of one file, with those that another stands for in its `folded`; in the same order."""
    taken: dict[int, list[int]] = {}
    left = list(range(len(diagnostics)))
    for leader in sorted(left, key=lambda i: (diagnostics[i].severity.rank, i)):
        if leader not in left or not (diagnostics[leader].decision or diagnostics[leader].portability):
            continue
        others = [i for i in left if i != leader]
        settled = [i for i in others if _settles(diagnostics[leader], diagnostics[i])]
        after = [i for i in others if i not in settled and _stops_before(diagnostics, leader, settled, i)]
        taken[leader] = sorted([*settled, *after])
        left = [i for i in left if i not in taken[leader]]
    return [_leader(diagnostics[i], [diagnostics[j] for j in taken.get(i, ())]) for i in left]


def _settles(leader: Diagnostic, other: Diagnostic) -> bool:
    """Whether both are the same decision, and the first weighs as much."""
    if not leader.decision or leader.decision != other.decision:
        return False
    return leader.severity.rank <= other.severity.rank and _trust(leader) is _trust(other)


def _stops_before(found: Sequence[Diagnostic], leader: int, settled: Iterable[int], other: int) -> bool:
    """Whether a machine stops at the leader, or at a place of the same decision, before it reaches another finding."""
    if found[other].portability is None or found[leader].severity.rank > found[other].severity.rank:
        return False
    if found[other].decision and found[other].decision != found[leader].decision:
        return False  # another choice
    if _trust(found[other]) is Safety.SAFE and _trust(found[leader]) is not Safety.SAFE:
        return False  # `--fix` settles it alone
    stops = (found[i] for i in (leader, *settled) if (p := found[i].portability) is not None and p.stops)
    return any(dominates(each.way, found[other].way) for each in stops)


def _trust(diagnostic: Diagnostic) -> Safety:
    return diagnostic.fix.safety if diagnostic.fix is not None else Safety.HINT


def dominates(first: Way, second: Way) -> bool:
    """Whether what stands at the first place surely ran before the second is reached. See `ways`."""
    at = len(first) - 1
    if not first or len(second) <= at or first[:at] != second[:at]:
        return False
    return first[at] < second[at] or (first[at] == second[at] and len(first) < len(second))


def ways(module: ast.Module) -> dict[int, Way]:
    """The way to each statement by its `id`: the blocks around it, each with the number of the statement in it.

    The body of a `with` statement belongs to the block around it; a function's body begins a way of its own.
    """
    found: dict[int, Way] = {}
    blocks = iter(range(1, 1 << 60))
    pending: list[tuple[Sequence[ast.stmt], Way]] = [(module.body, (next(blocks),))]
    while pending:
        body, prefix = pending.pop()
        number = 0
        inline = [iter(body)]
        while inline:
            statement = next(inline[-1], None)
            if statement is None:
                inline.pop()
                continue
            number += 1
            place = (*prefix, number)
            found[id(statement)] = place
            if isinstance(statement, ast.With | ast.AsyncWith):
                inline.append(iter(statement.body))
                continue
            own = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
            for block in _blocks(statement):
                pending.append((block, (next(blocks),) if own else (*place, next(blocks))))
    return found


def may_be_skipped(statement: ast.AST, place: Span, span_of: Callable[[ast.AST], Span]) -> bool:
    """Whether a statement may run without what stands at a place in it: an arm of a choice, a lambda, a comprehension."""
    pending = list(ast.iter_child_nodes(statement))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.stmt):
            continue
        parts: Sequence[ast.AST] = ()
        if isinstance(node, ast.IfExp):
            parts = (node.body, node.orelse)
        elif isinstance(node, ast.BoolOp):
            parts = node.values[1:]
        elif isinstance(node, ast.Lambda):
            parts = (node.body,)
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            parts = (node,)
        if any(span.start <= place.start and place.end <= span.end for span in map(span_of, parts)):
            return True
        pending += ast.iter_child_nodes(node)
    return False


def _blocks(statement: ast.stmt) -> Iterable[Sequence[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list) and block:
            yield block
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


# What a report says of it


def _leader(diagnostic: Diagnostic, others: Sequence[Diagnostic]) -> Diagnostic:
    """A finding that stands for others: its message counts them, its fix holds theirs where it is trusted as much."""
    if not others:
        return diagnostic
    same = [each for each in others if _settles(diagnostic, each)]
    after = [each for each in others if each not in same]
    message = diagnostic.message + _written([diagnostic, *same]) + _following(after)
    folded = tuple(Folded(each.code, each.message, each.start, each.end, each.cell) for each in others)
    return replace(diagnostic, message=message, folded=folded, fix=_joined(diagnostic, same, after))


def _written(same: Sequence[Diagnostic]) -> str:
    """` (12 times: lines 3-14)`, or nothing for one finding."""
    if len(same) == 1:
        return ""
    times = "twice" if len(same) == 2 else f"{len(same)} times"
    cells = sorted({each.cell for each in same if each.cell is not None})
    if cells:
        return f" ({times}: {_range('cell', cells)})"
    return f" ({times}: {_range('line', sorted({each.start.row for each in same}))})"


def _range(noun: str, numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"{noun} {numbers[0]}"
    if len(numbers) == 2:
        return f"{noun}s {numbers[0]} and {numbers[1]}"
    return f"{noun}s {numbers[0]}-{numbers[-1]}"


def _following(after: Sequence[Diagnostic]) -> str:
    """`; this finding includes line 20 (DEV205), which has the same problem`."""
    if not after:
        return ""
    places: dict[str, list[Diagnostic]] = {}
    for each in after:
        places.setdefault(each.code, []).append(each)
    listed = " and ".join(
        f"{_range('cell' if found[0].cell is not None else 'line', _rows(found))} ({code})"
        for code, found in sorted(places.items())
    )
    verb = "has" if len(after) == 1 else "have"
    return f"; this finding includes {listed}, which {verb} the same problem"


def _rows(found: Sequence[Diagnostic]) -> list[int]:
    return sorted({each.start.row if each.cell is None else each.cell for each in found})


def _joined(leader: Diagnostic, same: Sequence[Diagnostic], after: Sequence[Diagnostic]) -> TextFix | None:
    """The fixes of all that are trusted as the leader's is, as far as they touch different text of the same cell."""
    fix = leader.fix
    if fix is None or not fix.edits:
        return fix
    edits: list[TextEdit] = list(fix.edits)
    shared: list[TextEdit] = list(fix.shared)
    titles = {fix.title}
    for each in (*same, *after):
        other = each.fix
        if other is None or not other.edits or each.cell != leader.cell or not _is_trusted_as(fix.safety, other.safety):
            continue
        if any(edit.touches(known) for edit in other.edits for known in (*edits, *shared)):
            continue
        edits += other.edits
        shared += [each for each in other.shared if each not in shared and not any(map(each.touches, edits))]
        titles.add(other.title)
    title = fix.title if len(titles) == 1 else "Change the lines of this finding together"
    return replace(fix, title=title, edits=tuple(sorted(edits)), shared=tuple(sorted(shared)))


def _is_trusted_as(wanted: Safety, given: Safety) -> bool:
    return given is Safety.SAFE or given is wanted

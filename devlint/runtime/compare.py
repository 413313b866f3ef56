"""Whether two runs of a program do the same: values of statements, gradients, output, exit status, files.

Two runs of the original show first what varies by itself; that is not compared (`unsteady`). Values are digests as
`values` makes them. Free of torch.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any

from devlint.runtime.runs import Computed, Outcome, Run

_NUMBER = re.compile(r"0x[0-9a-fA-F]+|(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w])")
_DIGITS = re.compile(r"\d+")
_TENSOR = re.compile(r"\btensor\(|, (?:device='[^']*'|dtype=torch\.\w+|grad_fn=<\w+>|requires_grad=True)|\)")
_ELSEWHERE = re.compile(r"a tensor on (\S+) becomes a tensor on (\S+)")
#: What stands for the name of whatever the original does not have.
_NEW = "+"
_HALF = {"float16": 1e-2, "bfloat16": 3e-2}


@dataclass(frozen=True, slots=True)
class Manner:
    """How two runs are compared.

    relative: difference of numbers that counts as none. places: whether tensors must be on the same devices. outputs:
    whether output, exit status and files are compared, and numbers alone or texts as well. until_step: only what came
    before this optimizer step. counts: how often statements ran. decisions: numbers that are no tensors, and texts.
    skip: what is not compared, see `Difference.name`.
    """

    relative: float = 1e-5
    places: bool = False
    outputs: bool = True
    until_step: int | None = None
    skip: frozenset[str] = frozenset()
    counts: bool = True
    decisions: bool = True


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that two runs do not have in common.

    name: what it is, alike for all pairs of runs. key: the statement, None where it is none. text: in words. place: for a
    tensor that is elsewhere, `off CARD` or `onto CARD`, else "".
    """

    name: str
    key: str | None
    text: str
    place: str = ""


def differences(one: Run, other: Run, manner: Manner) -> list[Difference]:
    """What a run does otherwise than another, as far as both came."""
    found = [*_values(one, other, manner), *_gradients(one, other, manner)]
    if manner.until_step is None:
        if manner.counts:
            found += _counts(one, other)
        if manner.outputs:
            found += [*_output(one, other, manner.relative), *_status(one, other), *_files(one, other, manner)]
    return [each for each in found if each.name not in manner.skip]


def unsteady(one: Run, again: Run, manner: Manner) -> frozenset[str]:
    """The names of what two runs of one program do not have in common."""
    return frozenset(each.name for each in differences(one, again, manner))


def in_words(names: Set[str], where: Callable[[str], str]) -> list[str]:
    """What was not compared; `where` names the line of a statement."""
    said = set()
    for name in names:
        kind, _, rest = name.partition(":")
        if kind == "value" or kind == "count":
            said.add(where(rest.partition("@")[0]))
        elif kind == "out":
            said.add("its output" if rest.startswith("*") else "numbers in its output")
        elif kind == "file":
            said.add("names of files" if rest == _NEW else f"the file {rest}")
        else:
            said.add(kind)
    return sorted(said)


# ------------------------------------------------------------------------------------------------------- values


def _values(one: Run, other: Run, manner: Manner) -> Iterator[Difference]:
    moved = _first_moved_draw(one, other)
    uneven = any(run.failures or (run.outcome is Outcome.FINISHED and run.cut) for run in (one, other))
    for name, mine in one.values.items():
        its = other.values.get(name)
        if its is None or (uneven and mine.made != its.made):  # an exception that was caught left some out
            continue
        said = _differing(mine, its, manner, moved)
        if said:
            place = _place(said)
            yield Difference(f"value:{name}", name.partition("@")[0], f"{mine.where}: {said}", place)


def _differing(mine: Computed, its: Computed, manner: Manner, moved: int | None) -> str:
    rows = {row.number: row for row in its.rows}
    for row in mine.rows:
        there = rows.get(row.number)
        if there is None:
            continue
        if manner.until_step is not None and max(row.steps, there.steps) >= manner.until_step:
            return ""
        numbers = moved is None or max(row.draws, there.draws) <= moved
        said = unlike(row.digest, there.digest, manner, numbers)
        if said:
            return said
    return ""


def _first_moved_draw(one: Run, other: Run) -> int | None:
    """How many random draws were made before the first that is made on another device; None where none is."""
    for number, (mine, its) in enumerate(zip(one.draws, other.draws, strict=False)):
        if mine != its:
            return number
    return None


def unlike(one: Sequence[Any], other: Sequence[Any], manner: Manner, numbers: bool = True) -> str:
    """How two digests differ, in words; "" when they are alike."""
    kinds = (one[0], other[0])
    if not manner.decisions and "t" not in kinds and kinds[0] not in "lmo":
        return ""
    if kinds == ("n", "n"):
        return _unlike_numbers(one[1], other[1], manner) if numbers else ""
    if kinds == ("s", "s"):
        same = _alike_texts(one[1], other[1], manner.relative)
        return "" if same else f"{_short(one[1])} becomes {_short(other[1])}"
    if kinds == ("t", "t"):
        return _unlike_tensors(one, other, manner, numbers)
    if kinds in (("l", "l"), ("m", "m")):
        return _unlike_items(one, other, manner, numbers)
    if kinds == ("o", "o") and len(one) == len(other) == 3:
        return _unlike_modules(one, other, manner, numbers)
    if "t" in kinds and "n" in kinds:
        tensor, number = (one, other) if one[0] == "t" else (other, one)
        return _unlike_scalar(tensor, number, manner, numbers, tensor is one)
    if "p" in kinds or "o" in kinds:
        rest = other if kinds[0] in "po" else one
        gone = rest[0] == "n" and rest[1] is None and "p" not in kinds
        return f"{_shown(one)} becomes {_shown(other)}" if gone else ""
    if kinds in (("t", "l"), ("l", "t")):
        return ""
    return f"{_shown(one)} becomes {_shown(other)}"


def _unlike_modules(one: Sequence[Any], other: Sequence[Any], manner: Manner, numbers: bool) -> str:
    """Parameters and buffers that both have. A module may be brought to a card; one that is taken off it is lost there."""
    there = dict(map(tuple, other[2]))
    for name, mine in one[2]:
        said = unlike(mine, there[name], manner, numbers) if name in there else ""
        if said and not _place(said).startswith("onto"):
            return f"{name} of {one[1]}: {said}"
    return ""


def _place(said: str) -> str:
    found = _ELSEWHERE.fullmatch(said)
    if found is None:
        return ""
    return f"off {found[1]}" if found[2] == "cpu" else f"onto {found[2]}"


def _unlike_items(one: Sequence[Any], other: Sequence[Any], manner: Manner, numbers: bool) -> str:
    if one[1] != other[1]:
        return f"{one[1]} items become {other[1]}"
    pairs: Iterable[tuple[Any, Any]]
    if one[0] == "l":
        pairs = zip(one[2], other[2], strict=False)
    else:
        there = dict(map(tuple, other[2]))
        pairs = ((mine, there[key]) for key, mine in one[2] if key in there)
    return next((said for mine, its in pairs if (said := unlike(mine, its, manner, numbers))), "")


def _unlike_tensors(one: Sequence[Any], other: Sequence[Any], manner: Manner, numbers: bool) -> str:
    _, shape, kind, place, *_ = one
    _, its_shape, its_kind, its_place, *_ = other
    if shape != its_shape:
        return f"a tensor of shape {_shape(shape)} becomes a tensor of shape {_shape(its_shape)}"
    if kind != its_kind:
        return f"a tensor of {kind} becomes a tensor of {its_kind}"
    changed = _unlike_contents(one, other, manner) if numbers else ""
    if not changed and manner.places and place != its_place:
        return f"a tensor on {place} becomes a tensor on {its_place}"
    return changed


def _unlike_contents(one: Sequence[Any], other: Sequence[Any], manner: Manner) -> str:
    _, _, kind, _, mine, total, size = one
    its, its_total, its_size = other[4:]
    if mine is None or its is None:
        return ""
    relative = max(manner.relative, _HALF.get(kind, 0.0))
    scale = max((abs(x) for x in (*mine, *its) if math.isfinite(x)), default=0.0)
    for x, y in zip(mine, its, strict=False):
        if not _close(x, y, relative, 0.1 * relative * scale):
            return f"a tensor changes: {x:.6g} becomes {y:.6g}"
    if total is None or its_total is None:
        return ""
    if _close(total, its_total, relative, relative * max(size, its_size) + 1e-12):
        return ""
    return f"a tensor changes: its sum {total:.6g} becomes {its_total:.6g}"


def _unlike_scalar(tensor: Sequence[Any], number: Sequence[Any], manner: Manner, numbers: bool, first: bool) -> str:
    """A tensor of one element may become its number, and the other way round."""
    values, value = tensor[4], number[1]
    if value is not None and not tensor[1] and not numbers:
        return ""
    if value is not None and values is None:
        return ""
    if value is not None and math.prod(tensor[1]) == 1:
        return _unlike_numbers(*((values[0], value) if first else (value, values[0])), manner)
    pair = (tensor, number) if first else (number, tensor)
    return f"{_shown(pair[0])} becomes {_shown(pair[1])}"


def _unlike_numbers(x: Any, y: Any, manner: Manner) -> str:
    if x is None or y is None:
        return "" if x is y else f"{_shown(['n', x])} becomes {_shown(['n', y])}"
    if x == y or _close(float(x), float(y), manner.relative, 1e-12):
        return ""
    return f"{x:.6g} becomes {y:.6g}"


def _close(x: float, y: float, relative: float, absolute: float) -> bool:
    if math.isnan(x) or math.isnan(y):
        return math.isnan(x) and math.isnan(y)
    return x == y or math.isclose(x, y, rel_tol=relative, abs_tol=absolute)


def _shape(shape: Sequence[int]) -> str:
    return f"({', '.join(map(str, shape))})"


def _shown(digest: Sequence[Any]) -> str:
    kind = digest[0]
    if kind == "t":
        return f"a tensor of shape {_shape(digest[1])}"
    if kind in "lm":
        return f"{digest[1]} items"
    return {"o": f"an object of {digest[1]}"}.get(kind, _short(str(digest[1])))


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


# ----------------------------------------------------------------------------------------------------- the rest


def _gradients(one: Run, other: Run, manner: Manner) -> Iterator[Difference]:
    for number, (mine, its) in enumerate(zip(one.gradients, other.gradients, strict=False), 1):
        if manner.until_step is not None and number > manner.until_step:
            return
        if mine[0] != its[0]:
            text = f"backward pass {number} reaches {its[0]} parameters instead of {mine[0]}"
        elif not _close(mine[1], its[1], max(10 * manner.relative, 1e-4), 1e-9):
            text = f"the gradients of backward pass {number} change from {mine[1]:.6g} to {its[1]:.6g}"
        else:
            continue
        yield Difference("gradients", None, text)
        return


def _counts(one: Run, other: Run) -> Iterator[Difference]:
    """How often statements ran that both programs have."""
    if not (one.outcome is other.outcome is Outcome.FINISHED) or one.failures or other.failures:
        return
    there = other.totals or other.counts
    for key, count in (one.totals or one.counts).items():
        its = there.get(key)
        if its is None or its == count or one.elsewhere or other.elsewhere:
            continue
        if its == 0 and _computes_nothing(one, key):  # a call that the fix puts under a condition
            continue
        where = one.lines.get(key, "a line")
        yield Difference(f"count:{key}", key, f"{where} ran {_times(count)} and now {_times(its)}")
    if one.steps != other.steps:
        yield Difference("steps", None, f"the number of optimizer steps changes from {one.steps} to {other.steps}")


def _computes_nothing(run: Run, key: str) -> bool:
    seen = run.values.get(key)
    return seen is not None and all(row.digest[0] == "o" or row.digest == ["n", None] for row in seen.rows)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _status(one: Run, other: Run) -> Iterator[Difference]:
    if one.outcome is other.outcome is Outcome.FINISHED and one.status != other.status:
        yield Difference("status", None, f"exit status {one.status} becomes {other.status}")


def _output(one: Run, other: Run, relative: float) -> Iterator[Difference]:
    """Lines of standard output; where a run ended early, as many as it wrote."""
    if one.failures or other.failures or one.passed or other.passed:  # what pytest prints is no program's
        return
    if max(len(one.printed), len(other.printed)) > 1:
        yield from _output_of_several(one, other, relative)
        return
    mine, its = one.out.splitlines(), other.out.splitlines()
    both = one.outcome is other.outcome is Outcome.FINISHED
    if both and len(mine) != len(its):
        yield Difference("out:*", None, f"{len(mine)} lines of output become {len(its)}")
    for number, (x, y) in enumerate(zip(mine, its, strict=False), 1):
        if x == y:
            continue
        a, b = _plain(x), _plain(y)
        if _NUMBER.sub("#", a) != _NUMBER.sub("#", b):
            yield Difference("out:*", None, f"line {number} of the output, {_short(x)}, becomes {_short(y)}")
            return
        for place, (m, n) in enumerate(zip(_NUMBER.findall(a), _NUMBER.findall(b), strict=True)):
            if not _alike_printed(m, n, relative):
                name = f"out:{number}.{place}"
                yield Difference(name, None, f"line {number} of the output, {_short(x)}, becomes {_short(y)}")


def _output_of_several(one: Run, other: Run, relative: float) -> Iterator[Difference]:
    """Lines that several threads or processes print, whatever their order: it is a race."""
    if not (one.outcome is other.outcome is Outcome.FINISHED):
        return
    mine, its = _by_wording(one.printed), _by_wording(other.printed)
    for wording in sorted(mine.keys() | its.keys()):
        before, after = mine.get(wording, ()), its.get(wording, ())
        if len(before) != len(after):
            name = f"out:*{wording if before else _NEW}"
            said = f"output like {_short(wording)}, printed {_times(len(before))}, is now printed {_times(len(after))}"
            yield Difference(name, None, said)
            continue
        for place, (x, y) in enumerate(zip(zip(*before, strict=True), zip(*after, strict=True), strict=True)):
            pairs = zip(sorted(x, key=_by_size), sorted(y, key=_by_size), strict=True)
            changed = next(((m, n) for m, n in pairs if not _alike_printed(m, n, relative)), None)
            if changed is not None:
                said = f"{changed[0]} in output like {_short(wording)} becomes {changed[1]}"
                yield Difference(f"out:{wording}.{place}", None, said)


def _by_wording(texts: Iterable[str]) -> dict[str, list[list[str]]]:
    """The numbers of each line, by what is left of the line without them."""
    found: defaultdict[str, list[list[str]]] = defaultdict(list)
    for text in texts:
        for line in map(_plain, text.splitlines()):
            found[_NUMBER.sub("#", line)].append(_NUMBER.findall(line))
    return found


def _by_size(number: str) -> tuple[float, str]:
    return (float(int(number, 16)) if "x" in number else float(number)), number


def _plain(line: str) -> str:
    """A line of output without what torch prints around the numbers of a tensor."""
    return _TENSOR.sub("", line).replace("(", "") if "tensor(" in line else line.replace("(", "").replace(")", "")


def _alike_texts(one: str, other: str, relative: float) -> bool:
    a, b = _plain(one), _plain(other)
    if a == b:
        return True
    if _NUMBER.sub("#", a) != _NUMBER.sub("#", b):
        return False
    pairs = zip(_NUMBER.findall(a), _NUMBER.findall(b), strict=True)
    return all(_alike_printed(m, n, relative) for m, n in pairs)


def _alike_printed(one: str, other: str, relative: float) -> bool:
    """Printed numbers: equal, or apart by what rounding the last digit gives."""
    if one == other:
        return True
    if "x" in one or "x" in other:
        return False
    digits = min(len(each.partition(".")[2].partition("e")[0]) for each in (one, other))
    exponent = max((int(each.lower().partition("e")[2] or 0) for each in (one, other)), default=0)
    last = (
        10.0 ** (exponent - digits) * 1.01 if digits or (one.lower() != other.lower() and "." in one + other) else 0.0
    )
    return _close(float(one), float(other), relative, last)


def _files(one: Run, other: Run, manner: Manner) -> Iterator[Difference]:
    if not (one.outcome is other.outcome is Outcome.FINISHED) or one.files is None or other.files is None:
        return
    gone, new = sorted(one.files.keys() - other.files.keys()), sorted(other.files.keys() - one.files.keys())
    for name in gone:
        yield Difference(f"file:{name}", None, f"the file {name} is not written")
    for name in new:
        yield Difference(f"file:{_NEW}", None, f"the file {name} is written, but was not written before")
    pairs = [(name, name, name) for name in sorted(one.files.keys() & other.files.keys())]
    for mine, its, name in [*pairs, *_renumbered(gone, new)]:
        before, after = one.files[mine], other.files[its]
        if before[0] != after[0] and not _alike_files(before, after, manner.relative):
            yield Difference(f"file:{name}", None, f"the content of the file {mine} changes")


def _renumbered(gone: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Names that differ in their numbers alone, such as those of a time, and what they have in common."""
    for pattern in sorted({_DIGITS.sub("#", name) for name in gone}):
        before = [name for name in gone if _DIGITS.sub("#", name) == pattern]
        after = [name for name in new if _DIGITS.sub("#", name) == pattern]
        if len(before) == len(after) == 1:
            yield before[0], after[0], pattern


def _alike_files(mine: tuple[str, str], its: tuple[str, str], relative: float) -> bool:
    """Texts whose numbers agree; other files differ as soon as a byte does."""
    return bool(mine[1]) and bool(its[1]) and _alike_texts(mine[1], its[1], relative)

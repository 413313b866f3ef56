"""Checks and fixes mutated and generated Python: no crash, no hang, and what was fixed still parses.

    python benchmarks/robust_inputs.py [--count 20000] [--seed 0] [--first 0] [--hypothesmith 0] [--out FILE]

Input number n of a seed is always the same: a file of fixtures/ with tokens deleted, doubled, swapped and replaced by
those of another, with rows moved, expressions and statements transplanted from another file, bytes broken, or text cut
off. `--hypothesmith` adds so many whole files that hypothesmith (pip install hypothesmith) writes from Python's grammar,
with names of torch put in. Each goes through the work that `check --fix --unsafe-fixes --select ALL` does for a file.
A failing input is printed with its number, and kept beside `--out`.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import random
import signal
import sys
import time
import tokenize
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from devlint.embedded.notebook import read_notebook
from devlint.errors import SourceError
from devlint.model import Safety
from devlint.settings import Settings
from devlint.worker import Task, run_task

FIXTURES = Path(__file__).parents[1] / "fixtures"
LIMIT = 20  # seconds for one input
ALL = Settings(select=("ALL",))
SAFE = frozenset({Safety.SAFE, Safety.UNSAFE})
STRANGE = [
    "\f", "\x00", "\t", "\r", "\r\n", "\\\n", "𝔁", "é", "\u2028", "\ufeff", "`", "$", "?", "b''", "f'{x!r:{y}}'", "...", "'''",
    "lambda *a, b=1: (yield)", "*", "**", ":=", "async", "await x", "match x:\n case _: pass\n", "@", "->", "del x",
    "global device", "nonlocal x", "0x", "1_0", "1e999", "9" * 5000, "(" * 250, "-" * 300, "not " * 200, "[" * 120,
]  # fmt: skip
WORDS = [
    "torch", "device", "cuda", "cpu", "x.to(device)", "x.cuda()", "torch.zeros(3)", "torch.device('cuda')", "self.x",
    "torch.cuda.is_available()", "x.cpu().numpy()", "torch.cuda.synchronize()", "time.time()", "None", "super()",
    "x.device", "model", "torch.load('a')", "x[i]", "x @ y", "for x in loader:\n    x = x.to('cuda')\n",
    "with torch.cuda.stream(s):\n    pass\n",
]  # fmt: skip


class TooLong(Exception):
    """An input took longer than LIMIT seconds."""


def _alarm(number: int, frame: FrameType | None) -> None:
    raise TooLong("".join(traceback.format_stack(frame, limit=4)))


def tokens(text: str) -> list[str]:
    """The text in pieces that give it back when joined: tokens and what stands between them."""
    pieces: list[str] = []
    lines = text.splitlines(keepends=True)
    row, column = 1, 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.start < (row, column) or token.start[0] > len(lines):
                continue
            between = ""
            while row < token.start[0]:
                between += lines[row - 1][column:]
                row, column = row + 1, 0
            between += lines[row - 1][column : token.start[1]]
            pieces += [between, token.string]
            row, column = token.end
    except (tokenize.TokenError, SyntaxError, IndexError):
        return text.split(" ")
    return pieces


def nodes(text: str, kind: type[ast.AST]) -> list[tuple[int, int]]:
    """The offsets of the nodes of a kind, in characters of a text of one-byte characters."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return [
        (starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset)
        for node in ast.walk(tree)
        if isinstance(node, kind) and isinstance(node, ast.expr | ast.stmt) and node.end_lineno and node.end_col_offset
    ]


def _tokens(text: str, other: str, rng: random.Random) -> str:
    pieces, theirs = tokens(text), tokens(other) or [""]
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(pieces))
        kind = rng.randrange(5)
        if kind == 0:
            pieces[at] = ""
        elif kind == 1:
            pieces[at] *= 2
        elif kind == 2:
            to = rng.randrange(len(pieces))
            pieces[at], pieces[to] = pieces[to], pieces[at]
        elif kind == 3:
            pieces[at] = rng.choice(theirs)
        else:
            pieces[at] = rng.choice(WORDS + STRANGE)
    return "".join(pieces)


def _rows(text: str, other: str, rng: random.Random) -> str:
    rows = text.splitlines(keepends=True) or [""]
    for _ in range(rng.randint(1, 4)):
        at, to = rng.randrange(len(rows)), rng.randrange(len(rows))
        kind = rng.randrange(5)
        if kind == 0:
            rows[at] = rng.choice([" ", "    ", "\t"]) + rows[at]
        elif kind == 1:
            rows[at], rows[to] = rows[to], rows[at]
        elif kind == 2:
            rows[at] = rng.choice(other.splitlines(keepends=True) or ["\n"])
        elif kind == 3:
            rows[at] = rows[at].rstrip("\n") + rng.choice(
                [" \\\n", "; x = 1\n", "  # devlint: ignore[DEV101]\n", "\r\n", "\f\n"]
            )
        else:
            rows.insert(
                at, rng.choice(["\n", "# noqa\n", "# devlint: disable[DEV1]\n", "# devlint: device=cpu\n", "if x:\n"])
            )
    return "".join(rows)


def _transplant(text: str, other: str, rng: random.Random) -> str:
    """Expressions put in place of others: most results parse, and say what nobody would write."""
    for _ in range(rng.randint(1, 5)):
        ours, theirs = nodes(text, ast.expr), nodes(other, ast.expr)
        if not ours or not theirs:
            break
        (start, end), (first, last) = rng.choice(ours), rng.choice(theirs)
        graft = rng.choice([other[first:last], f"({other[first:last]})", rng.choice(WORDS[:20])])
        text = text[:start] + graft + text[end:]
    return text


def _statements(text: str, other: str, rng: random.Random) -> str:
    """Statements put in place of others, indented as those."""
    for _ in range(rng.randint(1, 4)):
        ours, theirs = nodes(text, ast.stmt), nodes(other, ast.stmt)
        if not ours or not theirs:
            break
        (start, end), (first, last) = rng.choice(ours), rng.choice(theirs)
        column = start - (text.rfind("\n", 0, start) + 1)
        depth = first - (other.rfind("\n", 0, first) + 1)
        rows = other[first:last].split("\n")
        graft = ("\n" + " " * column).join(
            [rows[0], *(row[min(depth, len(row) - len(row.lstrip())) :] for row in rows[1:])]
        )
        text = text[:start] + graft + text[end:]
    return text


def _names(text: str, other: str, rng: random.Random) -> str:
    """Names of one file in the structure of another."""
    pieces = tokens(text)
    found = sorted({piece for piece in pieces if piece.isidentifier()})
    if len(found) < 2:
        return text
    change = {name: rng.choice(found) for name in rng.sample(found, min(4, len(found)))}
    return "".join(change.get(piece, piece) if rng.random() < 0.7 else piece for piece in pieces)


def _cut(text: str, other: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    return rng.choice([text[:at], text[at:], text[:at] + rng.choice(STRANGE) + text[at:], text[:at] + other])


MUTATIONS: tuple[tuple[str, Callable[[str, str, random.Random], str]], ...] = (
    ("tokens", _tokens),
    ("rows", _rows),
    *[("expressions", _transplant)] * 4,
    *[("statements", _statements)] * 3,
    ("names", _names),
    ("cut", _cut),
)


def mutated(number: int, seed: int, seeds: list[str]) -> tuple[str, bytes]:
    """Input `number`: the kinds of its mutations, and its bytes."""
    rng = random.Random(f"{seed} {number}")
    text, kinds = rng.choice(seeds), []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        kind, mutate = rng.choice(MUTATIONS)
        text = mutate(text, rng.choice(seeds), rng)
        kinds.append(kind)
    raw = text.encode("utf-8", "surrogatepass")
    if rng.random() < 0.04:
        at = rng.randrange(len(raw) + 1)
        raw = raw[:at] + bytes(rng.randrange(256) for _ in range(rng.randint(1, 4))) + raw[at:]
        kinds.append("bytes")
    if rng.random() < 0.05:
        raw = raw.replace(b"\n", rng.choice([b"\r\n", b"\r"]))
    return "+".join(kinds), raw


def generated(count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Files that hypothesmith writes, some of their names replaced by those of torch."""
    import hypothesis
    import hypothesmith

    found: list[str] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count, database=None, deadline=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(hypothesmith.from_node())
    def collect(text: str) -> None:
        found.append(text)

    collect()
    rng = random.Random(seed)
    for text in found[:count]:
        pieces = [rng.choice(WORDS[:17]) if p.isidentifier() and rng.random() < 0.3 else p for p in tokens(text)]
        yield "hypothesmith", ("import torch\n" + "".join(pieces)).encode("utf-8", "surrogatepass")


def notebook(raw: bytes, rng: random.Random) -> bytes:
    """A notebook with the text cut into cells at random rows, some of them with magics."""
    rows = raw.decode("utf-8", "replace").splitlines(keepends=True)
    cells, at = [], 0
    while at < len(rows):
        size = rng.randint(1, 12)
        lines = rows[at : at + size]
        if rng.random() < 0.2:
            lines.insert(0, rng.choice(["%matplotlib inline\n", "!pip install torch\n", "%%time\n", "  \n", "x?\n"]))
        if rng.random() < 0.15:
            lines = ["    " + line for line in lines]
        source: object = lines if rng.random() < 0.7 else "".join(lines)
        cells.append({"cell_type": rng.choice(["code", "code", "code", "markdown"]), "source": source, "metadata": {}})
        at += size
    data = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(data, indent=rng.choice([None, 1, 2]), ensure_ascii=rng.random() < 0.5).encode("utf-8", "replace")


def problem(raw: bytes, name: str, parsed: bool, counts: Counter[str]) -> str | None:
    """What is wrong with the treatment of an input; None when nothing is."""
    signal.alarm(LIMIT)
    try:
        outcome = run_task(Task(name, name, ALL, applied=SAFE, fix=True, raw=raw))
    except TooLong as error:
        return f"takes longer than {LIMIT} s:\n{error}"
    except BaseException:
        return traceback.format_exc()
    finally:
        signal.alarm(0)
    counts["with findings"] += bool(outcome.report.result.diagnostics or outcome.report.fixed)
    counts["fixed"] += outcome.after is not None
    counts["fixes withdrawn"] += len(outcome.warnings)
    if outcome.errors:
        return "\n".join(outcome.errors)
    if outcome.after is not None:
        if name.endswith(".ipynb"):
            try:
                read_notebook(outcome.after, name)
            except SourceError as error:
                return f"the fixed notebook cannot be read: {error}"
        elif parsed:
            try:
                ast.parse(outcome.after)
            except (SyntaxError, ValueError) as error:
                return f"the fixed text does not parse: {error}"
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hypothesmith", type=int, default=0, metavar="COUNT")
    parser.add_argument("--out", type=Path, help="add the counts to this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _alarm)
    seeds = [text for path in sorted(FIXTURES.rglob("*.py")) if (text := path.read_text("utf-8", "replace")).isascii()]
    counts: Counter[str] = Counter()
    failures = 0
    slowest = 0.0

    def inputs() -> Iterator[tuple[str, str, bytes]]:
        for number in range(options.first, options.first + options.count):
            yield (str(number), *mutated(number, options.seed, seeds))
        for number, (kind, raw) in enumerate(
            generated(options.hypothesmith, options.seed) if options.hypothesmith else ()
        ):
            yield (f"h{number}", kind, raw)

    for label, kind, raw in inputs():
        rng = random.Random(f"as {options.seed} {label}")
        name = "input.py"
        if rng.random() < 0.05:
            name, raw = "input.ipynb", notebook(raw, rng)
        try:
            ast.parse(raw)
            parsed = True
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            parsed = False
        start = time.perf_counter()
        wrong = problem(raw, name, parsed, counts)
        slowest = max(slowest, time.perf_counter() - start)
        counts["inputs"] += 1
        counts["that parse"] += parsed and name.endswith(".py")
        counts["notebooks"] += name.endswith(".ipynb")
        counts["from hypothesmith"] += kind == "hypothesmith"
        if wrong is not None:
            failures += 1
            print(f"input {label} ({kind}): {wrong}", flush=True)
            if options.out is not None:
                options.out.with_name(f"failing_{options.seed}_{label}_{name}").write_bytes(raw)
    row = {**counts, "failures": failures, "slowest input in seconds": round(slowest, 1)}
    print(json.dumps(row))
    if options.out is not None:
        known = json.loads(options.out.read_text()) if options.out.exists() else {}
        known[f"seed {options.seed}, from {options.first}"] = row
        options.out.write_text(json.dumps(known, indent=1) + "\n")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()

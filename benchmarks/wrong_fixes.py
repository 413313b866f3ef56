"""Hands wrong fixes to the verifier and asks whether it confirms one.

    python benchmarks/wrong_fixes.py [--count 120] [--seed 0] [--out benchmarks/wrong_fixes.json]
    python benchmarks/wrong_fixes.py --by-hand benchmarks/wrong_by_hand.json [--out FILE]
    python benchmarks/wrong_fixes.py --right

The right fixes are those of `fixtures/runtime`, which are confirmed. Each mutation makes one of them wrong, and the
program is verified with it in the place of the right one, beside the right fixes of the rest. Which mutations are made is
drawn with the seed. A mutation of a value counts only if it changes the value: the corrected program is run once on plain
CPU, apart from the verifier, with the value and the mutated one compared where they are computed; one that is detached
must need a gradient there. Those written by hand name the program, the rule, the line, and what is put for what. `--right` asks
that every right fix is confirmed. Prints each row, and exits with 1 when a wrong fix is confirmed or a right one is not.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import copy
import itertools
import json
import os
import random
import shutil
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tomllib

from devlint.model import TextEdit
from devlint.runtime.bench import Bench, Report, Request, Runner
from devlint.runtime.correction import FixCase, Variant, case_from_row, choose, overlap
from devlint.runtime.places import Places, bodies
from devlint.runtime.processes import Launcher
from devlint.runtime.runs import Verdict
from devlint.runtime.verify import _more_rounds, find_with_linter

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "fixtures" / "runtime"
Change = Callable[[ast.stmt, ast.expr, "Site"], "list[ast.stmt] | None"]


@dataclass
class Program:
    """A program with its right fixes."""

    name: str
    device: str
    path: Path
    places: Places
    fixes: list[FixCase]
    expected: dict[tuple[str, int], str] = field(default_factory=dict)
    runner: Runner | None = None


@dataclass
class Site:
    """Where a right fix stands in a corrected program: its block, and the names of tensors that are at hand."""

    block: list[ast.stmt]
    index: int
    names: list[str]


# ------------------------------------------------------------------------------------------------- the mutations


def _put(statement: ast.stmt, old: ast.expr, new: ast.expr) -> list[ast.stmt]:
    """The statement with one expression for another."""

    class Swap(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            return new if node is old else super().generic_visit(node)

    return [Swap().visit(statement)]


def _of(text: str, value: ast.expr) -> ast.expr:
    """An expression in which `V` stands for the value."""

    class Swap(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> Any:
            return copy.deepcopy(value) if node.id == "V" else node

    swapped: ast.expr = Swap().visit(ast.parse(text, mode="eval").body)
    return swapped


def _replacing(text: str) -> Change:
    return lambda statement, value, site: _put(statement, value, _of(text, value))


def _dropped(statement: ast.stmt, value: ast.expr, site: Site) -> list[ast.stmt] | None:
    return [ast.Pass()]


def _later(statement: ast.stmt, value: ast.expr, site: Site) -> list[ast.stmt] | None:
    if site.index + 1 >= len(site.block):
        return None
    stored = {ast.unparse(each) for each in ast.walk(statement) if isinstance(getattr(each, "ctx", None), ast.Store)}
    read = {ast.unparse(each) for each in ast.walk(site.block[site.index + 1]) if isinstance(each, ast.expr)}
    if stored and not stored & read:  # nothing there uses it
        return None
    following = site.block.pop(site.index + 1)
    return [following, statement]


def _another_name(statement: ast.stmt, value: ast.expr, site: Site) -> list[ast.stmt] | None:
    for node in ast.walk(value):
        if isinstance(node, ast.Name) and node.id in site.names:
            other = next((name for name in site.names if name != node.id), None)
            if other is not None:
                node.id = other
                return [statement]
    return None


VALUES = {
    "zero": "V * 0",
    "zeros like it": "torch.zeros_like(V)",
    "constant": "torch.full_like(V, 1)",
    "detach": "V.detach()",
    "broadcast": "V[:1]",
    "wrong axis": "V.flip(0)",
    "rounded": "V.half().float()",
}
CHANGES: dict[str, Change] = {
    **{name: _replacing(text) for name, text in VALUES.items()},
    "dropped": _dropped,
    "moved after use": _later,
    "another name": _another_name,
}


def mutants(program: Program) -> Iterator[tuple[str, FixCase, FixCase | None]]:
    """Each wrong fix of a program: the mutation, the fix, and for a mutation of a value the fix that compares the two."""
    for case in program.fixes:
        for (name, change), whole in itertools.product(CHANGES.items(), (False, True)):
            text = _mutated(program, case, name, change, whole) if name in VALUES or not whole else None
            wrong = None if text is None else _as_fix(program, case, text)
            if wrong is None:
                continue
            asks = None
            if name in VALUES:
                asking = _mutated(program, case, name, _replacing(f"__same__(V, lambda V: {VALUES[name]})"), whole)
                asks = None if asking is None else _as_fix(program, case, asking)
            yield f"{name} of the whole" if whole else name, wrong, asks
        text = _in_try(program, case)
        wrong = None if text is None else _as_fix(program, case, text)
        if wrong is not None:
            yield "wrapped in try", wrong, None


def _in_try(program: Program, case: FixCase) -> str | None:
    """The statement with the fault as it was, in a `try` that goes on without it."""
    places, text = program.places, program.places.lines.text
    spans = [case.span, *case.related]
    numbers = [number for span in reversed(spans) if (number := places.at(span.start)) is not None]
    simple = [n for n in numbers if places.statements[n].end == places.statements[n].header_end]
    if not simple:
        return None
    statement = places.statements[simple[0]]
    source = text[statement.start : statement.end]
    node = ast.parse(source.strip() if "return" not in source.split()[0] else "def f():\n " + source).body[0]
    names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    indent = " " * (statement.start - places.lines.starts[places.lines.line(statement.start) - 1])
    rest = f"{names[0]} = None" if names else "pass"
    body = source.replace("\n", "\n    ")
    tried = f"try:\n{indent}    {body}\n{indent}except Exception:\n{indent}    {rest}"
    return text[: statement.start] + tried + text[statement.end :]


def _oracle(text: str, path: str, answer: str) -> None:
    """Run a corrected program on plain CPU and note what `__same__` is given; in a process of its own."""
    import torch

    seen: dict[str, Any] = {"differs": 0, "same": 0, "fails": 0, "gradient": 0, "backward": 0}

    def same(value: Any, change: Callable[[Any], Any]) -> Any:
        try:
            other = change(value)
        except Exception:
            seen["fails"] += 1
            return value
        if isinstance(value, torch.Tensor) and isinstance(other, torch.Tensor):
            alike = value.shape == other.shape and value.dtype == other.dtype and torch.equal(value, other)
            seen["gradient"] += value.requires_grad and torch.is_grad_enabled()
        else:
            alike = str(value) == str(other)
        seen["same" if alike else "differs"] += 1
        return value

    plain: Any = torch.autograd.backward

    def backward(*arguments: Any, **more: Any) -> Any:
        seen["backward"] += 1
        return plain(*arguments, **more)

    torch.autograd.backward = backward
    vars(builtins)["__same__"] = same
    sys.argv, sys.path[0] = [path], os.path.dirname(path)
    os.chdir(os.path.dirname(path))
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    module = types.ModuleType("__main__")
    module.__file__ = path
    sys.modules["__main__"] = module
    try:
        exec(compile(text, path, "exec"), module.__dict__)
    except BaseException as error:
        seen["ended"] = repr(error)[:200]
    Path(answer).write_text(json.dumps(seen), encoding="utf-8")


def is_wrong(program: Program, name: str, asks: FixCase | None) -> bool:
    """Whether a mutation changes the value, in a run of the corrected program that the verifier has no part in."""
    if asks is None:
        return name.removesuffix(" of the whole") not in VALUES
    rest = [each for each in program.fixes if not overlap(each, asks) and each.span != asks.span]
    text = Variant(program.places, choose([*rest, asks])[0]).text
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(program.path, folder)
        copy_of = str(Path(folder, program.path.name))
        child = os.fork()
        if child == 0:
            try:
                _oracle(text, copy_of, str(Path(folder, "answer")))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        answer = Path(folder, "answer").read_text(encoding="utf-8") if Path(folder, "answer").exists() else ""
    if not answer:
        raise RuntimeError(f"{program.name}: the comparison of {name} did not come to its end")
    seen = json.loads(answer)
    if name.startswith("detach"):
        return bool(seen["gradient"] and seen["backward"])
    return bool(seen["differs"] and not seen["fails"])


def _mutated(program: Program, case: FixCase, name: str, change: Change, whole: bool = False) -> str | None:
    variant = Variant(program.places, [replace(case, shared=())])
    written = [n for n, fixes in enumerate(variant.edited) if fixes]
    if not written:
        return _without_correction(program, case) if name == "dropped" else None
    tree = ast.parse(variant.text)
    statements = [s for block in bodies(tree) for s in block]
    statement = statements[written[0]]
    block = next(b for b in bodies(tree) if any(s is statement for s in b))
    index = next(i for i, s in enumerate(block) if s is statement)
    value = _value(statement, variant)
    if whole:
        smallest, value = value, getattr(statement, "value", None)
        if value is None or smallest is None or smallest is value:
            return None
    if value is None and change not in (_dropped, _later):
        return None
    start, end = variant.places.statements[written[0]].start, variant.places.statements[written[0]].end
    site = Site(block, index, _tensor_names(tree, block))
    following = block[index + 1] if index + 1 < len(block) else None
    made = change(statement, value or ast.Constant(None), site)
    if made is None:
        return None
    if change is _later and following is not None:
        last = variant.places.lines.offset(following.end_lineno or 1, following.end_col_offset or 0)
        end = max(end, last)
    if hasattr(statement, "body"):
        return None
    column = start - variant.places.lines.starts[variant.places.lines.line(start) - 1]
    lines = "\n".join(ast.unparse(ast.fix_missing_locations(each)) for each in made).splitlines()
    text = ("\n" + " " * column).join(lines)
    return variant.text[:start] + text + variant.text[end:]


def _without_correction(program: Program, case: FixCase) -> str | None:
    """A fix that only takes something away, turned around: what stands after it is taken away as well."""
    own = program.places.touching(case.edits[0].start, case.edits[-1].end)
    after = program.places.beside(own[0], own)[0] if own else None
    if after is None:
        return None
    statement = program.places.statements[after]
    text = program.places.lines.text
    first = min(edit.start for edit in case.edits)
    return text[:first] + "pass" + text[statement.end :] if first < statement.start else None


def _value(statement: ast.stmt, variant: Variant) -> ast.expr | None:
    """The smallest expression that holds what the fix wrote, and is no argument by name."""
    written = [(p.start, p.end) for p in variant.pieces if p.owner is not None and p.owner >= 0]
    best: ast.expr | None = None
    for node in ast.walk(statement):
        if not isinstance(node, ast.Call | ast.BinOp | ast.Compare | ast.Subscript):
            continue
        start = variant.places.lines.offset(node.lineno, node.col_offset)
        end = variant.places.lines.offset(node.end_lineno or 1, node.end_col_offset or 0)
        holds = bool(written) and all(start <= s and e <= end for s, e in written if start < e and s < end)
        holds = holds and any(start < e and s < end for s, e in written)
        if holds and (best is None or end - start < _size(best, variant)):
            best = node
    return best


def _size(node: ast.expr, variant: Variant) -> int:
    lines = variant.places.lines
    return lines.offset(node.end_lineno or 1, node.end_col_offset or 0) - lines.offset(node.lineno, node.col_offset)


def _tensor_names(tree: ast.Module, block: list[ast.stmt]) -> list[str]:
    """Names that the block, or the loops of the program, bind to values."""
    names: list[str] = []
    for node in [*block, *(n for n in ast.walk(tree) if isinstance(n, ast.For))]:
        targets = [node.target] if isinstance(node, ast.For) else getattr(node, "targets", [])
        for target in targets:
            names += [n.id for n in ast.walk(target) if isinstance(n, ast.Name) and n.id not in names]
    return names


def _as_fix(program: Program, case: FixCase, text: str) -> FixCase | None:
    """The wrong text as a fix of the same finding: one edit from the first to the last difference."""
    original = program.places.lines.text
    try:
        compile(text, "wrong", "exec", dont_inherit=True)
    except SyntaxError:
        return None
    right = Variant(program.places, [replace(case, shared=())]).text
    if text in (original, right) or ast.dump(ast.parse(text)) == ast.dump(ast.parse(right)):
        return None
    start = 0
    while start < min(len(original), len(text)) and original[start] == text[start]:
        start += 1
    end = 0
    while end < min(len(original), len(text)) - start and original[-1 - end] == text[-1 - end]:
        end += 1
    edit = TextEdit(start, len(original) - end, text[start : len(text) - end])
    return replace(case, name="wrong", edits=(edit,))


# -------------------------------------------------------------------------------------------------- the verifier


def programs() -> list[Program]:
    """The loops of fixtures/runtime with the fixes that the linter finds for them."""
    found = []
    for path in sorted(PROGRAMS.glob("*.toml")):
        row = tomllib.loads(path.read_text(encoding="utf-8"))
        script = path.with_suffix(".py")
        text, find = find_with_linter(script, tuple(row.get("select", ())), ())
        places = Places(text)
        name = str(script)
        fixes, waiting = choose([case for case in find(text) if not case.is_hint])
        fixes, _ = _more_rounds({name: places}, fixes, waiting, {name: find})
        expected = {(each["code"], each["line"]): each["verdict"] for each in row.get("fix", ())}
        found.append(Program(path.stem, row["device"], script, places, fixes, expected))
    return found


def judged(program: Program, case: FixCase, launcher: Launcher) -> tuple[str, str]:
    """What the verifier says of a fix beside the right fixes of the rest, and why."""
    if program.runner is None:
        request = Request(str(program.path), (), program.device, None, timeout=60.0)
        program.runner = Runner(request, launcher)
    rest = [each for each in program.fixes if (each.code, each.span) != (case.code, case.span)]
    rest = [each for each in rest if not overlap(each, case)]
    fixes, _ = choose([*rest, case])
    index = next((n for n, each in enumerate(fixes) if each is case), None)
    if index is None:
        return "overlaps another fix", ""
    originals = {str(program.path): program.places}
    bench = Bench(program.runner.request, originals, fixes, program.runner, Report(program.name))
    judgement = bench.judge(index)
    return judgement.verdict.value, " / ".join(judgement.evidence)


def changed_lines(program: Program, case: FixCase) -> list[str]:
    """What the fix puts, line by line."""
    before = set(program.places.lines.text.splitlines())
    after = Variant(program.places, [replace(case, shared=())]).text.splitlines()
    return [line.strip() for line in after if line not in before]


def by_hand(path: Path, known: dict[str, Program]) -> Iterator[tuple[str, Program, FixCase]]:
    for row in json.loads(path.read_text(encoding="utf-8")):
        program = known[row["program"]]
        case = case_from_row({**row, "name": "wrong"}, program.places.lines.text, str(path))
        line = program.places.lines.line(case.span.start)
        right = next((f for f in program.fixes if f.code == row["code"] and _row(program, f) == line), None)
        if right is None:
            sys.exit(f"{path}: {row['program']} has no fix of {row['code']} on line {line}")
        yield row["kind"], program, replace(case, span=right.span, related=right.related, shared=right.shared)


def _row(program: Program, case: FixCase) -> int:
    return program.places.lines.line(case.span.start)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--part", default="1/1", help="of those drawn: 2/3 takes the second and every third from there on"
    )
    parser.add_argument("--by-hand", type=Path)
    parser.add_argument("--right", action="store_true")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    import torch  # noqa: F401, loaded once for all forked processes

    loops = programs()
    asked: Iterable[tuple[str, Program, FixCase]]
    if arguments.right:
        asked = [("right", program, case) for program in loops for case in program.fixes]
    elif arguments.by_hand:
        asked = list(by_hand(arguments.by_hand, {program.name: program for program in loops}))
    else:
        drawn = [(program, *mutant) for program in loops for mutant in mutants(program)]
        random.Random(arguments.seed).shuffle(drawn)
        part, _, parts = arguments.part.partition("/")
        drawn = drawn[int(part) - 1 :: int(parts)]
        wrong = ((name, program, case) for program, name, case, asks in drawn if is_wrong(program, name, asks))
        asked = itertools.islice(wrong, arguments.count)
    rows = []
    began = time.time()
    with Launcher() as launcher:
        for kind, program, case in asked:
            verdict, why = judged(program, case, launcher)
            row = {"program": program.name, "code": case.code, "line": _row(program, case), "kind": kind}
            rows.append({**row, "writes": changed_lines(program, case), "verdict": verdict, "why": why})
            print(f"{program.name}:{row['line']} {case.code} {kind}: {verdict}: {why[:120]}", flush=True)
            if arguments.out:
                arguments.out.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    bad = _bad(rows, {program.name: program for program in loops}, arguments.right)
    what = "right" if arguments.right else "wrong"
    confirmed = sum(1 for row in rows if row["verdict"] == Verdict.CONFIRMED.value)
    print(f"{len(rows)} {what} fixes: {confirmed} confirmed, {time.time() - began:.0f} s")
    for row in bad:
        print(f"  {row['program']}:{row['line']} {row['code']} {row['kind']} {row['verdict']}: {row['writes']}")
    return int(bool(bad))


def _bad(rows: list[dict[str, Any]], known: dict[str, Program], right: bool) -> list[dict[str, Any]]:
    if not right:
        return [row for row in rows if row["verdict"] == Verdict.CONFIRMED.value]
    return [row for row in rows if row["verdict"] != known[row["program"]].expected.get((row["code"], row["line"]))]


if __name__ == "__main__":
    sys.exit(main())

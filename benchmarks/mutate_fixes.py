"""Changes the code of `devlint/fix` in one place at a time and asks whether its tests notice.

    python benchmarks/mutate_fixes.py [--count 60] [--seed 0] [--module edits] [--out FILE]

A change turns a comparison, `and`, `not`, a number, a truth value or a sign around, or leaves a statement out; which ones
are made is drawn with the seed. The tests are those of `tests/fix` without torch, in a forked process for each change, with
few examples of Hypothesis. Prints each change that no test noticed, with its row, and the figures. Needs fork, as on Linux.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.util
import json
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULES = ("apply", "edits", "imports", "needs", "rounds", "rows", "write")
TESTS = ("test_apply.py", "test_edits.py", "test_imports.py", "test_rounds.py", "test_write.py")
SECONDS = 120  # a change may make a loop endless
OPPOSITE: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add,
}  # fmt: skip


def changes(tree: ast.Module) -> Iterator[tuple[str, int, ast.AST, str, object]]:
    """What can be changed: a description, the row, the node, its field, and the new value of the field."""
    for node in ast.walk(tree):
        row = getattr(node, "lineno", 0)
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPPOSITE:
            yield "comparison", row, node, "ops", [OPPOSITE[type(node.ops[0])]()]
        elif isinstance(node, ast.BoolOp):
            yield "and/or", row, node, "op", OPPOSITE[type(node.op)]()
        elif isinstance(node, ast.BinOp) and type(node.op) in OPPOSITE:
            yield "sign", row, node, "op", OPPOSITE[type(node.op)]()
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield "not", row, node, "op", ast.UAdd()  # the value itself is kept as a number
        elif isinstance(node, ast.Constant) and type(node.value) is bool:
            yield "truth value", row, node, "value", not node.value
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            yield "number", row, node, "value", node.value + 1
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if not isinstance(block, list) or isinstance(node, ast.Module | ast.ClassDef):
                continue
            for index, statement in enumerate(block):
                plain = isinstance(statement, ast.Assign | ast.AugAssign | ast.Expr | ast.Raise | ast.Continue | ast.If)
                told = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
                if plain and not told:
                    left_out = [*block[:index], ast.copy_location(ast.Pass(), statement), *block[index + 1 :]]
                    yield "statement left out", statement.lineno, node, name, left_out


def noticed(name: str, tree: ast.Module, path: Path) -> bool:
    """Whether a test fails, or none ends, with this tree as the module."""
    child = os.fork()
    if not child:
        import pytest
        from hypothesis import settings

        os.setpgid(0, 0)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        import signal

        signal.alarm(SECONDS)
        settings.register_profile("few", max_examples=10, database=None, deadline=None)
        settings.load_profile("few")
        try:
            spec = importlib.util.spec_from_file_location(name, path)
            assert spec is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            exec(compile(tree, str(path), "exec"), module.__dict__)
            code = int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", *(f"tests/fix/{t}" for t in TESTS)]))
        except BaseException:
            code = 1
        os._exit(0 if code == 0 else 1)
    _, status = os.waitpid(child, 0)
    return status != 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--module", choices=MODULES, action="append")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    os.chdir(ROOT)
    import hypothesis  # noqa: F401, loaded once for all forked processes
    import libcst.metadata  # noqa: F401
    import pytest  # noqa: F401

    import devlint.engine  # noqa: F401

    drawn = []
    for module in arguments.module or MODULES:
        path = ROOT / "devlint/fix" / f"{module}.py"
        tree = ast.parse(path.read_text(encoding="utf-8"))
        drawn += [(module, path, index) for index in range(len(list(changes(tree))))]
    random.Random(arguments.seed).shuffle(drawn)
    survivors = []
    made = 0
    for module, path, index in drawn[: arguments.count]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        what, row, node, field, new = list(changes(tree))[index]
        setattr(node, field, new)
        with contextlib.suppress(AttributeError):
            ast.fix_missing_locations(tree)
        made += 1
        if not noticed(f"devlint.fix.{module}", tree, path):
            line = path.read_text(encoding="utf-8").splitlines()[row - 1].strip()
            survivors.append({"module": module, "row": row, "change": what, "line": line})
            print(f"not noticed: {module}.py:{row} {what}: {line}", flush=True)
    print(f"{len(drawn)} changes are possible; of {made} made, {made - len(survivors)} were noticed")
    if arguments.out:
        arguments.out.write_text(json.dumps({"made": made, "survivors": survivors}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Counts findings that change although the program does not: faulty snippets under innocent variations, and files renamed.

    python benchmarks/innocence.py [--seconds 600] [--seed 7] [--rules PREFIXES] [--inference NAME] [--jobs N]
        [--python PYTHON] [--arguments "..."] [--set NAME=VALUE] [--snippet PART ...] [--rows FILE] [--table]
    python benchmarks/innocence.py --rename FOLDER ... [the same options]

A *flip* is a pair of a snippet and a variation after which the findings of the program differ, counted by code. What an
inserted line is itself found for does not count. *Strict* pairs leave out the variations that a reader may weigh
(`ARGUABLE`). With --rules only the snippets of these rules are varied, and only their findings compared.

With --rename each file below the folders is checked as Python prints it, and again with its own names renamed: local names,
arguments, functions and classes that nothing outside can name, and fields and methods that only `self` reaches. Row and code
of each finding must stay.

Exit status 1 where a strict pair flips, a file differs, or a run fails. What there was no time for is counted.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import functools
import json
import random
import re
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from innocence_snippets import SNIPPETS
from innocence_variations import ARGUABLE, MAY_COME, Project, subject, variations_of
from labelled_fixes import write_project
from sides import Finding, Side, SideError, interpreter

#: Methods and fields that torch.nn.Module, its hooks or a protocol of Python's reach by name.
REACHED = frozenset(
    """
    T add_module apply backward buffers bfloat16 call_super_init children close compile cpu cuda data device double dtype
    dump_patches eval extra_repr float forward get_buffer get_extra_state get_parameter get_submodule half ipu items keys
    load_state_dict modules mtia named_buffers named_children named_modules named_parameters parameters register_buffer
    register_forward_hook register_forward_pre_hook register_full_backward_hook register_module register_parameter
    requires_grad_ reset_parameters run set_extra_state set_submodule setUp share_memory state_dict step tearDown to
    to_empty train training type values xpu zero_grad
    """.split()  # noqa: SIM905
)
PLAIN_BASES = ("object", "nn.Module", "torch.nn.Module", "Module")


def differences(base: Iterable[Finding], got: Iterable[Finding], inserted: bool) -> tuple[Counter[str], Counter[str]]:
    """The codes that a variation loses and gains."""
    before, after = Counter(f.code for f in base), Counter(f.code for f in got)
    gained = after - before
    if inserted:
        gained = Counter({code: count for code, count in gained.items() if code not in MAY_COME})
    return before - after, gained


class Check:
    """Checks projects on one side and keeps the findings of some rules in one file."""

    def __init__(self, side: Side, rules: tuple[str, ...]) -> None:
        self.side, self.rules = side, rules

    def findings(self, project: Project, path: str) -> list[Finding]:
        """What is found in one file of a project. Raises SideError."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name).resolve()
            write_project(folder, ((way, text.encode()) for way, text in project.items()))
            found = self.side.check(folder, ("--select", "ALL", "."))
        return [f for f in found if f.path == path and f.code.startswith(self.rules)]


def parses(project: Project) -> bool:
    try:
        ast.parse(project[subject(project)])
    except SyntaxError:
        return False
    return True


def own_names(tree: ast.Module) -> set[str]:
    """Names that a file binds and that nothing outside can reach by name."""
    bound, taken = set[str](), set(dir(builtins)) | {"self", "cls"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            taken |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bound.add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.keyword) and node.arg:
            taken.add(node.arg)
        elif isinstance(node, ast.Attribute):
            taken.add(node.attr)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            taken |= set(node.names)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            taken.add(node.name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            taken |= set(re.findall(r"\w+", node.value)) if len(node.value) < 40 else set()
    for each in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        taken |= {part.name for part in each.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)}
        taken |= {
            part.id
            for statement in each.body
            if isinstance(statement, ast.Assign | ast.AnnAssign)
            for part in ast.walk(statement)
            if isinstance(part, ast.Name)
        }
        arguments = (n for part in each.body for n in ast.walk(part) if isinstance(n, ast.arg))
        taken |= {argument.arg for argument in arguments} if not is_plain(each, tree) else set()
    return {name for name in bound - taken if not name.startswith(("__", "test_"))}


def is_plain(one: ast.ClassDef, tree: ast.Module) -> bool:
    """Whether everything that a class inherits is in the file, or is that of `object` or `nn.Module`."""
    here = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    bases = [ast.unparse(base) for base in one.bases]
    return not one.keywords and all(
        base in PLAIN_BASES or (base in here and here[base] is not one and is_plain(here[base], tree)) for base in bases
    )


def own_attributes(tree: ast.Module) -> set[str]:
    """Fields and methods that only `self` reaches, in plain classes."""
    methods, stored, by_self, elsewhere = set[str](), set[str](), set[str](), set(REACHED)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            is_self = isinstance(node.value, ast.Name) and node.value.id == "self"
            (by_self if is_self else elsewhere).add(node.attr)
            if is_self and isinstance(node.ctx, ast.Store):
                stored.add(node.attr)
        elif isinstance(node, ast.Name):
            elsewhere.add(node.id)
        elif isinstance(node, ast.keyword | ast.arg) and node.arg:
            elsewhere.add(node.arg)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            elsewhere |= set(re.findall(r"\w+", node.value))
        elif isinstance(node, ast.ClassDef):
            names = {part.name for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)}
            if is_plain(node, tree):
                methods |= names
            else:
                elsewhere |= {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)} | names
    return {name for name in by_self & (methods | stored) - elsewhere if not name.startswith("__")}


class Rename(ast.NodeTransformer):
    """Gives names and attributes new spellings."""

    def __init__(self, names: dict[str, str], attributes: dict[str, str]) -> None:
        self.names, self.attributes = names, attributes

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self.names.get(node.id, node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self.names.get(node.arg, node.arg)
        self.generic_visit(node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        node.attr = self.attributes.get(node.attr, node.attr)
        self.generic_visit(node)
        return node

    def _definition(self, node: Any) -> ast.AST:
        node.name = self.names.get(node.name, self.attributes.get(node.name, node.name))
        self.generic_visit(node)
        return node  # type: ignore[no-any-return]

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _definition


def with_new_names(text: str) -> tuple[str, str, int] | None:
    """A file as Python prints it, the same with its own names renamed, and how many were; None where it does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain = ast.unparse(ast.parse(text))
            tree = ast.parse(plain)
    except (SyntaxError, ValueError, RecursionError):
        return None
    names = {name: f"v{i}q" for i, name in enumerate(sorted(own_names(tree)))}
    attributes = {name: f"a{i}q" for i, name in enumerate(sorted(own_attributes(tree)))}
    new = ast.unparse(Rename(names, attributes).visit(tree))
    return plain + "\n", new + "\n", len(names) + len(attributes)


def compare_renamed(check: Check, path: Path) -> dict[str, Any]:
    """What differs in one file: the findings that only one spelling has, by row and code."""
    texts = with_new_names(path.read_text(encoding="utf-8", errors="replace"))
    if texts is None:
        return {"path": str(path), "left_out": True}
    before, after = (
        Counter((f.first, f.code) for f in check.findings({"module.py": text}, "module.py")) for text in texts[:2]
    )
    lost, gained = before - after, after - before
    return {
        "path": str(path), "names": texts[2], "findings": sum(before.values()),
        "lost": sorted(lost), "gained": sorted(gained),
    }  # fmt: skip


def within(seconds: float, jobs: int, tasks: Sequence[Callable[[], dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """The results of tasks as far as the time allows. A task that fails gives its error."""
    end = time.monotonic() + seconds

    def attempt(task: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
        if time.monotonic() > end:
            return None
        try:
            return task()
        except SideError as error:
            return {"error": str(error)}

    with ThreadPoolExecutor(jobs) as pool:
        yield from (row for row in pool.map(attempt, tasks) if row is not None)


def vary(check: Check, base: list[Finding], name: str, variation: str, project: Project) -> dict[str, Any]:
    """What one variation of a snippet loses and gains."""
    got = check.findings(project, subject(project))
    lost, gained = differences(base, got, variation.startswith(("line", "import")))
    return {"snippet": name, "variation": variation, "lost": dict(lost), "gained": dict(gained)}


def flips(check: Check, options: argparse.Namespace) -> tuple[list[dict[str, Any]], bool]:
    """Vary the snippets and print the figures; whether all is well."""
    chosen = {
        name: source for name, (code, source) in SNIPPETS.items()
        if code.startswith(check.rules) and (not options.snippet or any(part in name for part in options.snippet))
    }  # fmt: skip
    base = {name: check.findings({"train.py": source}, "train.py") for name, source in chosen.items()}
    pairs = [(name, *pair) for name, source in chosen.items() for pair in variations_of(source)]
    pairs = [pair for pair in pairs if parses(pair[2])]
    random.Random(options.seed).shuffle(pairs)
    tasks = [functools.partial(vary, check, base[name], name, way, project) for name, way, project in pairs]
    rows = list(within(options.seconds, options.jobs, tasks))
    done = [row for row in rows if "error" not in row]
    flipped = [row for row in done if row["lost"] or row["gained"]]
    strict = [row for row in done if row["variation"] not in ARGUABLE]
    bad = [row for row in strict if row["lost"] or row["gained"]]
    if options.table:
        print_flips(flipped)
    silent = [name for name in chosen if not any(f.code == SNIPPETS[name][0] for f in base[name])]
    print(f"snippets whose own code is not found: {len(silent)} of {len(chosen)} {' '.join(silent)}")
    print(
        f"{len(done)} of {len(pairs)} pairs: {len(flipped)} flips ({len(flipped) / max(1, len(done)):.2%}); "
        f"strict {len(strict)}: {len(bad)} ({len(bad) / max(1, len(strict)):.2%})"
    )
    return rows, not bad


def print_flips(flipped: list[dict[str, Any]]) -> None:
    """The flips by variation, the most frequent first."""
    by = defaultdict(list)
    for row in flipped:
        changes = [*(f"-{code}" for code in row["lost"]), *(f"+{code}" for code in row["gained"])]
        arguable = " (arguable)" if row["variation"] in ARGUABLE else ""
        by[row["variation"] + arguable].append(f"{row['snippet']} {' '.join(changes)}")
    for variation in sorted(by, key=lambda name: -len(by[name])):
        print(f"{variation} ({len(by[variation])}): {'; '.join(by[variation][:6])}")


def renames(check: Check, options: argparse.Namespace) -> tuple[list[dict[str, Any]], bool]:
    """Rename the files of folders and print the figures; whether all is well."""
    paths = sorted(path for folder in options.rename for path in folder.rglob("*.py") if path.is_file())
    paths = [path for path in paths if b"torch" in path.read_bytes()]
    random.Random(options.seed).shuffle(paths)
    tasks = [functools.partial(compare_renamed, check, path) for path in paths]
    rows = list(within(options.seconds, options.jobs, tasks))
    done = [row for row in rows if "names" in row]
    bad = [row for row in done if row["lost"] or row["gained"]]
    for row in bad:
        print(f"{row['path']}: lost {row['lost'][:4]} gained {row['gained'][:4]}")
    names, found = (sum(row[key] for row in done) for key in ("names", "findings"))
    print(f"{len(done)} of {len(paths)} files, {names} names, {found} findings: {len(bad)} files differ")
    return rows, not bad


def main() -> int:
    about = (__doc__ or "").splitlines()
    parser = argparse.ArgumentParser(
        description=about[0], epilog="\n".join(about[2:]), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=600, help="begin nothing new after this time")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--rules", default="", help="codes or their beginnings, separated by commas")
    parser.add_argument("--inference", help="the inference to use: old or new")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--python", help="an interpreter that has devlint")
    parser.add_argument("--arguments", default="", help="further arguments of `devlint check`")
    parser.add_argument("--set", action="append", default=[], help="a variable, NAME=VALUE")
    parser.add_argument("--snippet", nargs="+", default=[], help="parts of names of snippets")
    parser.add_argument("--rename", nargs="+", type=Path, help="folders whose files are renamed instead")
    parser.add_argument("--rows", type=Path, help="write each result here, as lines of JSON")
    parser.add_argument("--table", action="store_true", help="print the flips by variation")
    options = parser.parse_args()
    arguments = options.arguments + (f" --inference {options.inference}" if options.inference else "")
    try:
        side = Side("devlint", interpreter(options.python), arguments, options.set, Path(), 60)
    except SideError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    check = Check(side, tuple(options.rules.split(",")))
    try:
        rows, good = (renames if options.rename else flips)(check, options)
    except SideError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    finally:
        side.close()
    if options.rows:
        options.rows.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    failed = [row["error"] for row in rows if "error" in row]
    for reason in failed:
        print(f"failed: {reason}")
    return int(not good or bool(failed))


if __name__ == "__main__":
    sys.exit(main())

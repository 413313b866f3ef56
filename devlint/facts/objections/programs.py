"""Programs that stay on the host: whole ones, notebooks and scripts, that place nothing on an accelerator."""

from __future__ import annotations

import ast
import re

from devlint.facts.idioms.placed import is_cpu
from devlint.facts.interpreter.machine import SourceLike
from devlint.facts.text.references import last_name
from devlint.facts.text.scan import Scan
from devlint.facts.text.signs import moves, runs_something

#: Words without which a file cannot place anything.
_PLACES = re.compile(
    r"cuda|device|\.to\(|xpu|\bmps\b|\bhpu\b|\bnpu\b|gpu|accelerat|Trainer|[Ff]abric|DataParallel|\.prepare\(",
    re.IGNORECASE,
)
_CARD = re.compile(r"cuda|\b(xpu|mps|npu|hpu)\b|gpu|\bauto\b", re.IGNORECASE)
STEPS = 10  # statements with a call, at the module level of a file that is a sequence of them
#: Functions of `torch.cuda` that programs call whether they use a card or not.
_SEEDING = frozenset({"manual_seed", "manual_seed_all", "seed", "seed_all", "empty_cache"})
_PLACING = re.compile(
    r"cuda|\Adevice\Z|xpu|gpu|accelerat|(?<!cons)trainer|fabric|dataparallel|\Aprepare\Z", re.IGNORECASE
)


#: Folders, and first words of file names, of programs that show or try something.
_SHOWS = frozenset(
    {
        "benchmark", "benchmarks", "demo", "demos", "doc", "docs", "documentation", "example", "examples", "experiment",
        "experiments", "notebook", "notebooks", "playground", "sample", "samples", "script", "scripts", "test", "testing",
        "tests", "tutorial", "tutorials",
    }
)  # fmt: skip


def is_example(path: str) -> bool:
    """Whether a file, by its path from the root of its project, is there to be run: an example, a test, a notebook."""
    *folders, name = path.replace("\\", "/").lower().split("/")
    stem = name.rpartition(".")[0]
    return (
        name.endswith(".ipynb")
        or not _SHOWS.isdisjoint(folders)
        or (bool(folders) and not _SHOWS.isdisjoint((stem.split("_")[0], stem.split("_")[-1])))
    )


def runs_itself(source: SourceLike, scanned: Scan) -> bool:
    """Whether a file does something when it is run, at its module level or below `if __name__ == "__main__"`."""
    tree = scanned.tree
    return source.path.endswith(".ipynb") or (tree is not None and runs_something(tree.body))


def is_host_program(source: SourceLike, scanned: Scan) -> bool:
    """Whether a file is a whole program that places nothing: what it trains or runs stays on the host.

    A notebook, or a script that takes gradients at its module level or below `if __name__ == "__main__"`.
    """
    if not source.path.endswith(".ipynb") and not trains(source, scanned):
        return False
    if _PLACES.search(source.text) is None:
        return True
    return source.path.endswith(".ipynb") and scanned.tree is not None and not places(scanned.tree)


def is_host_script(source: SourceLike, scanned: Scan, shows: bool = False) -> bool:
    """Whether a script that nothing imports is such a program, too: it may put new tensors where others are.

    `shows`: it is an example, by its place in the project.
    """
    tree = scanned.tree
    return tree is not None and (shows or trains(source, scanned) or is_sequence(tree)) and not places(tree)


def is_sequence(tree: ast.Module) -> bool:
    """Whether a file is a sequence of steps for the most part, as tutorials are, and defines little that others could use."""
    defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    steps = [s for s in tree.body if not isinstance(s, defined)]
    steps = [s for s in steps if any(isinstance(part, ast.Call) for part in ast.walk(s))]
    definitions = sum(isinstance(s, defined[:3]) for s in tree.body)
    return len(steps) >= STEPS and len(steps) > 2 * definitions


def trains(source: SourceLike, scanned: Scan) -> bool:
    """Whether a file takes gradients when it is run."""
    steps = scanned.calls.get("backward", ())
    return bool(steps) and ("__main__" in source.text or any(site.caller is None for site in steps))


def places(tree: ast.Module, lightning: bool = True) -> bool:
    """Whether some code of a program names a card, or moves something but beside a tensor: `device=x.device` does not.

    `lightning`: whether a Trainer of Lightning counts, which moves a model for as long as it runs.
    """
    texts = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)}
    of_host = named_for_host(tree, with_lightning=not lightning and imports_lightning(tree))
    for node in ast.walk(tree):
        if id(node) in of_host:
            continue
        if isinstance(node, ast.Attribute) and node.attr in _SEEDING:
            of_host.add(id(node.value))
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str) and id(node) not in texts and _CARD.search(node.value[:200]):
                return True
        elif isinstance(node, (ast.Name, ast.arg)):
            if _PLACING.search(node.id if isinstance(node, ast.Name) else node.arg):
                return True
        elif isinstance(node, ast.Attribute):
            if node.attr != "device" and _PLACING.search(node.attr):
                return True
            if (
                node.attr == "device"
                and isinstance(node.value, ast.Name)
                and node.value.id in ("torch", "self", "args")
            ):
                return True
        elif isinstance(node, ast.alias):
            if _PLACING.search(node.asname or node.name.rpartition(".")[2]):
                return True
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "to"
            and moves(node)
        ):
            if not is_tensors_device(node):
                return True
    return False


def imports_lightning(tree: ast.Module) -> bool:
    """Whether a program imports Lightning under one of its names."""
    names = [
        name
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
    ]
    return any(name.split(".")[0] in ("lightning", "pytorch_lightning") for name in names)


def trains_on_host(call: ast.Call) -> bool:
    """Whether a call makes a trainer that is told to use the CPU: `Trainer(accelerator="cpu")`."""
    told = {k.arg: k.value for k in call.keywords}
    return "accelerator" in told and is_cpu(told["accelerator"])


def named_for_host(tree: ast.Module, with_lightning: bool = False) -> set[int]:
    """What names the CPU alone, by identity: `torch.device("cpu")`, names that are bound to that only, moves there.

    Also trainers that are told to use it; `with_lightning`: all trainers, with the devices that they are told.
    """
    bound: dict[str, list[bool]] = {}
    trainers: dict[str, list[bool]] = {}
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and last_name(node.func).endswith("Trainer"):
            trainers.setdefault(last_name(node.func), []).append(with_lightning or trains_on_host(node))
            if with_lightning:
                found |= {id(n) for k in node.keywords for n in ast.walk(k.value)}
    at_host = {name for name, told in trainers.items() if all(told)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            makes = isinstance(node.value, ast.Call) and last_name(node.value.func) in at_host
            for target in node.targets:
                if isinstance(target, ast.Name):
                    bound.setdefault(target.id, []).append(makes or is_cpu(node.value))
        elif isinstance(node, ast.arg):
            bound.setdefault(node.arg, []).append(False)
    names = {name for name, values in bound.items() if all(values)} | at_host
    for node in ast.walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute)) and last_name(node) in names:
            if isinstance(node, ast.Name) or node.attr in at_host:
                found.add(id(node))
        elif isinstance(node, ast.alias) and (node.asname or node.name) in at_host:
            found.add(id(node))
        elif isinstance(node, ast.Call):
            first = node.args[0] if node.args else None
            if is_cpu(node):
                found.add(id(node.func))
            elif isinstance(first, ast.Name) and first.id in names:
                found.add(id(node))
    return found


def is_tensors_device(move: ast.Call) -> bool:
    """Whether a move goes to where a value is: `.to(x.device)`, `.to(x)`."""
    first = move.args[0] if move.args else move.keywords[0].value
    return (
        isinstance(first, ast.Attribute) and first.attr == "device" and last_name(first.value) not in ("self", "args")
    )

"""Programs that stay on the host: whole ones, notebooks and scripts, that place nothing on an accelerator."""

from __future__ import annotations

import ast
import re

from devlint.facts.callers import last_name, moves
from devlint.facts.machine import SourceLike
from devlint.facts.scan import Scan

#: Words without which a file cannot place anything.
_PLACES = re.compile(
    r"cuda|device|\.to\(|xpu|\bmps\b|\bhpu\b|\bnpu\b|gpu|accelerat|Trainer|[Ff]abric|DataParallel|\.prepare\(",
    re.IGNORECASE,
)
_CARD = re.compile(r"cuda|\b(xpu|mps|npu|hpu)\b|gpu|\bauto\b", re.IGNORECASE)
STEPS = 10  # statements with a call, at the module level of a file that is a sequence of them
#: Functions of `torch.cuda` that programs call whether they use a card or not.
_SEEDING = frozenset({"manual_seed", "manual_seed_all", "seed", "seed_all", "empty_cache"})
_PLACING = re.compile(r"cuda|\Adevice\Z|xpu|gpu|accelerat|trainer|fabric|dataparallel|\Aprepare\Z", re.IGNORECASE)


def is_host_program(source: SourceLike, scanned: Scan) -> bool:
    """Whether a file is a whole program that places nothing: what it trains or runs stays on the host.

    A notebook, or a script that takes gradients at its module level or below `if __name__ == "__main__"`.
    """
    if not source.path.endswith(".ipynb") and not trains(source, scanned):
        return False
    if _PLACES.search(source.text) is None:
        return True
    return source.path.endswith(".ipynb") and scanned.tree is not None and not places(scanned.tree)


def is_host_script(source: SourceLike, scanned: Scan) -> bool:
    """Whether a script that nothing imports is such a program, too: it may put new tensors where others are."""
    tree = scanned.tree
    return tree is not None and (trains(source, scanned) or is_sequence(tree)) and not places(tree)


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


def places(tree: ast.Module) -> bool:
    """Whether some code of a program names a card, or moves something but beside a tensor: `device=x.device` does not."""
    texts = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)}
    of_host = named_for_host(tree)
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


def named_for_host(tree: ast.Module) -> set[int]:
    """What names the CPU alone, by identity: `torch.device("cpu")`, names that are bound to that only, moves there."""
    bound: dict[str, list[bool]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    bound.setdefault(target.id, []).append(is_cpu(node.value))
        elif isinstance(node, ast.arg):
            bound.setdefault(node.arg, []).append(False)
    names = {name for name, values in bound.items() if all(values)}
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names:
            found.add(id(node))
        elif isinstance(node, ast.Call):
            first = node.args[0] if node.args else None
            if is_cpu(node):
                found.add(id(node.func))
            elif isinstance(first, ast.Name) and first.id in names:
                found.add(id(node))
    return found


def is_cpu(node: ast.expr) -> bool:
    """Whether an expression is `"cpu"` or `torch.device("cpu")`."""
    if isinstance(node, ast.Call) and last_name(node.func) == "device" and len(node.args) == 1:
        node = node.args[0]
    return isinstance(node, ast.Constant) and node.value == "cpu"


def is_tensors_device(move: ast.Call) -> bool:
    """Whether a move goes to where a value is: `.to(x.device)`, `.to(x)`."""
    first = move.args[0] if move.args else move.keywords[0].value
    return (
        isinstance(first, ast.Attribute) and first.attr == "device" and last_name(first.value) not in ("self", "args")
    )

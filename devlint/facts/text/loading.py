"""What is applied to items of data sets while they are loaded, or in a process on the host: known by who it is handed to."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.facts.text.nodes import walk

#: What applies the functions and objects that it is given to items of data sets, or in another process on the host.
_HOST_RUNNERS = frozenset(
    {
        "Compose", "Lambda", "RandomApply", "RandomChoice", "RandomOrder", "ApplyTransformToKey", "DataLoader", "submit",
        "imap", "imap_unordered", "starmap", "apply_async", "map_async", "starmap_async", "Process",
    }
)  # fmt: skip


def handed_to_loading(tree: ast.AST) -> Iterator[ast.expr]:
    """What a tree hands to what applies it to items of data sets: functions, classes of which objects are made, objects."""
    for node in walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            parts = list(node.args) if name in _HOST_RUNNERS else []
            parts += [k.value for k in node.keywords if k.arg is not None and is_loading(k.arg)]
            yield from _flat(parts)
        elif isinstance(node, ast.Assign) and any(is_loading(assigned_name(t)) for t in node.targets):
            yield from _flat([node.value])


def is_loading(name: str) -> bool:
    """Whether something of this name is applied to items while they are loaded: `collate_fn`, `train_transforms`."""
    return name in ("collate_fn", "worker_init_fn") or name.rstrip("s").endswith(("transform", "augmentation"))


def assigned_name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def _flat(parts: list[ast.expr]) -> Iterator[ast.expr]:
    """The expressions in some lists, and what the objects made there are of."""
    pending = list(parts)
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, (ast.List, ast.Tuple)):
            pending += node.elts
        elif isinstance(node, ast.Call):
            yield node.func
            if getattr(node.func, "attr", getattr(node.func, "id", "")) in _HOST_RUNNERS | {"partial"}:
                pending += [*node.args, *(k.value for k in node.keywords)]
        elif isinstance(node, ast.IfExp):
            pending += [node.body, node.orelse]
        elif isinstance(node, ast.BinOp):
            pending += [node.left, node.right]

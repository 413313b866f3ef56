"""What the function that puts a loader's batches together shows of their parts: which are numbers and arrays.

def collate(items):
    return {"images": torch.stack([i["image"] for i in items]), "times": np.unique([i["time"] for i in items])}

    loader = DataLoader(data, collate_fn=collate)
    for batch in loader:
        model(batch["images"].to(device), batch["times"])     # of which the second is an array
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from devlint.facts.frozen import replace
from devlint.facts.text.references import last_name
from devlint.facts.text.returned import Returned, as_returned, forms, of_every
from devlint.facts.text.signatures import parameter_of
from devlint.facts.values import Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine

#: The place of `collate_fn` among the arguments of a `DataLoader` [torch/utils/data/dataloader.py].
_PLACE = 6


def part_of_batch(machine: Machine, iterated: ast.expr, value: Value) -> Value:
    """What a loop over a loader gives, or the name for it: `value`, but for the parts that its collator makes no tensors."""
    known = collated(machine, iterated)
    if not known:
        return value
    if value.is_tensor:
        return as_returned(known, value)
    parts = value.elements if value.kind == "tuple" and isinstance(value.elements, tuple) else ()
    if len(parts) > len(known) or not all(isinstance(key, int) for key in known):
        return value
    said = (as_returned({None: known[i]}, part) for i, part in enumerate(parts))
    return replace(value, elements=tuple(said))


def collated(machine: Machine, iterated: ast.expr) -> Returned:
    """What the parts of the batches of a loader are, where the file makes it with a function that can be read."""
    path = machine.path(iterated)
    loader = machine.lookup(path) if path is not None else None
    if loader is None or loader.kind != "loader" or len(loader.because) != 1 or loader.because[0].path is not None:
        return {}
    for call in machine.watched:
        if isinstance(call, ast.Call) and machine.span(call) == loader.because[0].span:
            given = [k.value for k in call.keywords if k.arg == "collate_fn"] or call.args[_PLACE : _PLACE + 1]
            function = machine.readable(given[0]) if given and is_of_file(machine, given[0]) else None
            return given_by(function) if isinstance(function, ast.FunctionDef) else {}
    return {}


def is_of_file(machine: Machine, node: ast.expr) -> bool:
    """Whether a name is not one that the function under analysis binds itself."""
    if not isinstance(node, ast.Name) or machine.function is None:
        return bool(last_name(node))
    function = machine.function.node
    own = machine.scan.functions.get(id(function))
    taken = isinstance(function, ast.Lambda) or parameter_of(function.args, node.id) is not None
    return own is not None and not own.bound.get(node.id, 0) and not taken


@lru_cache(16)
def given_by(collator: ast.FunctionDef) -> Returned:
    return of_every(forms(collator))

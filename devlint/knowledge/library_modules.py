"""Which classes of other libraries hold tensors, and are new on the CPU until they are moved.

`library_modules.json` is generated from the libraries' own wheels (`python -m devlint.dev.library_modules`), and says from
which versions. What reading the files does not tell stands in `libraries/`.
"""

from __future__ import annotations

import os.path
from functools import cache
from typing import Any

from devlint.knowledge import stubs

DATA = os.path.join(os.path.dirname(__file__), "library_modules.json")

#: The packages of that file, for a cheap first question.
PACKAGES = frozenset({"torchaudio", "torchvision", "torch_geometric", "torchmetrics"})


@cache
def _tables() -> dict[str, dict[str, frozenset[str]]]:
    import json

    with open(DATA, encoding="utf-8") as file:
        data: dict[str, Any] = json.load(file)
    tables: dict[str, dict[str, frozenset[str]]] = {}
    for prefix, entries in data["modules"].items():
        table = tables.setdefault(prefix, {})
        for entry in entries:
            name, _, needs = entry.rstrip(")").partition("(")
            table[name] = frozenset(needs.split(",")) if needs else frozenset()
    return tables


@cache
def holds_tensors(qualname: str) -> frozenset[str] | None:
    """The parameters by which a new object of a class may be elsewhere, or hold none; None for what is not known to."""
    if qualname.startswith("torch."):
        return None  # torch itself is known from its own wheels
    if stubs.cls(qualname).get("holds"):
        return frozenset()
    qualname = stubs.home(qualname)
    if qualname.partition(".")[0] not in PACKAGES:
        return None
    name = qualname.rpartition(".")[2]
    for prefix, table in _tables().items():
        if name in table and qualname.startswith(prefix + "."):
            return table[name]
    return None


def runs(qualname: str, method: str) -> bool:
    """Whether a method of such a class computes with what the object holds."""
    return method in stubs.package(qualname).get("runs", ())

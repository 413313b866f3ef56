"""Which classes of other libraries hold tensors, and are new on the CPU until they are moved.

`library_modules.json` is generated from the libraries' own wheels (`python -m devlint.dev.library_modules`), and says from
which versions. What reading the files does not tell stands here, each with its source.
"""

from __future__ import annotations

import os.path
from functools import cache
from typing import Any

DATA = os.path.join(os.path.dirname(__file__), "library_modules.json")

#: Classes that hold tensors by what they are given: prefix to names.
_FURTHER = {
    # torchaudio/transforms/_transforms.py: a kernel, unless both frequencies are the same
    "torchaudio.transforms": "Resample",
    # oml/losses/arcface.py: a weight for each label, and no move
    "oml.losses": "ArcFaceLoss ArcFaceLossWithMiner",
    # torchmetrics/metric.py: what several of them have in common; none is made of it
    "torchmetrics": "Metric",
}
#: Packages that hand on the classes of another one, or did: pytorch_lightning/metrics/__init__.py up to 1.4.
_ALIASES = {"pytorch_lightning.metrics.": "torchmetrics.", "pl.metrics.": "torchmetrics."}
#: Methods, besides `forward`, that compute with the object's tensors and those they are given: prefix to names.
_RUNS = {
    "torchmetrics": "update",  # torchmetrics/metric.py
    "torch_geometric.explain": "train",  # torch_geometric/explain/algorithm/pg_explainer.py: trains its own network
}
#: The packages, for a cheap first question.
PACKAGES = frozenset({"torchaudio", "torchvision", "torch_geometric", "torchmetrics", "pytorch_lightning", "oml"})


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
    for prefix, names in _FURTHER.items():
        tables.setdefault(prefix, {}).update(dict.fromkeys(names.split(), frozenset()))
    return tables


@cache
def holds_tensors(qualname: str) -> frozenset[str] | None:
    """The parameters by which a new object of a class may be elsewhere, or hold none; None for what is not known to."""
    if qualname.partition(".")[0] not in PACKAGES:
        return None
    for alias, real in _ALIASES.items():
        if qualname.startswith(alias):
            qualname = real + qualname.removeprefix(alias)
    name = qualname.rpartition(".")[2]
    for prefix, table in _tables().items():
        if name in table and qualname.startswith(prefix + "."):
            return table[name]
    return None


def runs(qualname: str, method: str) -> bool:
    """Whether a method of such a class computes with what the object holds."""
    return any(qualname.startswith(prefix + ".") and method in names.split() for prefix, names in _RUNS.items())

"""torch as data: what its names return, where results live, what may be mixed, what waits, since when.

`torch_api.json` is generated from torch's own wheels (`python -m devlint.dev.knowledge`); `annotated.py` holds the few
facts that no file of torch states, each with its source. Nothing here imports torch, and the data is read at the first
question.
"""

from __future__ import annotations

from devlint.knowledge.immovable import immovable
from devlint.knowledge.query import (
    VERSIONS,
    attribute,
    attributes,
    cls,
    exists,
    function,
    functions,
    is_public_name,
    known_namespace,
    lifetime,
    method,
    methods,
    namespace_names,
    nearest,
)
from devlint.knowledge.records import ON_ONE_DEVICE, Class, Function, Version, format_version, parse_version

__all__ = [
    "ON_ONE_DEVICE",
    "VERSIONS",
    "Class",
    "Function",
    "Version",
    "attribute",
    "attributes",
    "cls",
    "exists",
    "format_version",
    "function",
    "functions",
    "immovable",
    "is_public_name",
    "known_namespace",
    "lifetime",
    "method",
    "methods",
    "namespace_names",
    "nearest",
    "parse_version",
]

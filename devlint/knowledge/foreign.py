"""What libraries around torch do with tensors, as records like those of torch: from the data that `stubs` reads.

`host_only` calls turn their argument into a numpy array, which torch refuses for a tensor on an accelerator ("can't convert
cuda:0 device type tensor to numpy").
"""

from __future__ import annotations

from functools import cache

from devlint.knowledge import stubs
from devlint.knowledge.records import Class, Function


@cache
def function(qualname: str) -> Function | None:
    """The record of a function of another library; None when nothing is known of it."""
    row, home = stubs.function(qualname), stubs.home(qualname)
    if "result" in row:
        operands = row.get("operands", ())
        return Function(
            home,
            row["result"],
            row.get("device", "none"),
            params=tuple(each.rstrip("*+") for each in operands),
            tensor_params=tuple(i for i, each in enumerate(operands) if each.endswith("*")),
            sequence_params=tuple(i for i, each in enumerate(operands) if each.endswith("+")),
            mixing=row.get("mixing"),
            sync=row.get("sync", "never"),
            host_only=row.get("host", False),
            moves=row.get("moves", False),
            note=row["source"],
        )
    around = stubs.package(qualname)
    return Function(home, host_only=True, note=around["source"]) if around.get("host") else None


@cache
def cls(qualname: str) -> Class | None:
    """The record of a class of another library that stands for a torch object; None when nothing is known of it."""
    row = stubs.cls(qualname)
    if "bases" not in row:
        return None
    from devlint.knowledge import query

    record = Class(qualname, bases=tuple(row["bases"]), attributes=frozenset(row.get("attributes", ())))
    for name in record.bases:
        base = query.cls(name)
        if base is not None:
            record = record._replace(
                family=base.family,
                methods=record.methods | base.methods,
                attributes=record.attributes | base.attributes,
            )
    return record


def is_known_package(root: str) -> bool:
    """Whether a top-level package is torch or one of the public libraries that something is known of here."""
    return root in stubs.names()

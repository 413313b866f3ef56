"""Whether the default process group takes tensors of the CPU, by the calls that make it."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from devlint.facts.text.nodes import walk

MAKES_GROUP = "init_process_group"


def takes_host_tensors(calls: Iterable[ast.Call], text: str) -> bool:
    """Whether one of the calls makes a group that takes them, or does not say that it takes none.

    Without a backend there is one for each kind of device, gloo for the CPU [torch/distributed/distributed_c10d.py,
    `init_process_group`]. `text`: that of the file, for a backend that a name or a call gives.
    """
    return any(_takes(call, text) for call in calls)


def _takes(call: ast.Call, text: str) -> bool:
    if any(k.arg is None for k in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
        return "nccl" not in text
    given = next((k.value for k in call.keywords if k.arg == "backend"), call.args[0] if call.args else None)
    if given is None or (isinstance(given, ast.Constant) and given.value is None):
        return True
    if isinstance(given, ast.Constant) and isinstance(given.value, str):
        return "nccl" not in given.value.lower() or "cpu:" in given.value.lower()
    if any(
        isinstance(part, ast.Constant) and isinstance(part.value, str) and "nccl" in part.value for part in walk(given)
    ):
        return False
    return "nccl" not in text

"""Methods of modules that hand the module to something that may place it: `model.enable_offload(device)`.

def enable_offload(self, device):
    from .hooks import apply_offload

    apply_offload(module=self, onload_device=device)     # hooks, that move its weights as they run
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from devlint.facts.text.nodes import walk
from devlint.facts.text.parameters import reads_like_device
from devlint.facts.text.references import is_self, last_name

if TYPE_CHECKING:
    from devlint.facts.interpreter.arguments import Arguments

#: Functions that ask something of an object.
_ASKS = frozenset(
    {
        "isinstance",
        "hasattr",
        "getattr",
        "setattr",
        "super",
        "type",
        "len",
        "print",
        "id",
        "repr",
        "str",
        "vars",
        "dir",
        "iter",
    }
)
#: Words in names of what places modules, or keeps them elsewhere until they run.
_PLACES = re.compile(r"offload|onload|dispatch|device|place|cuda|gpu|shard|parallel")


def may_be_placed(method: ast.FunctionDef | ast.AsyncFunctionDef, arguments: Arguments) -> bool:
    """Whether a method hands its module on whole, where it is told a device or its name speaks of placing."""
    named = _PLACES.search(method.name.lower()) is not None
    told = named or any(
        value.kind == "device" or reads_like_device(last_name(node)) for node, value in arguments.every()
    )
    return told and any(hands_on(node) for node in walk(method) if isinstance(node, ast.Call))


def hands_on(call: ast.Call) -> bool:
    """Whether a call is given `self`, by what does not merely ask something of it."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(is_self(each) for each in given) and last_name(call.func) not in _ASKS

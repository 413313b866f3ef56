"""New tensors in the size of a tensor that a module keeps, handed to that very module.

    self.layers[name].forward(torch.zeros(self.layers[name].spikes.shape))
    layer(torch.zeros(layer.weight.size(1)))

The tensor that is asked for its size is where the module is; a new one belongs there. Of what is asked it must be known that
it is a tensor: by the name of a weight, or since the file takes slices of an attribute of that name. Of the module it must
not be known that it was made here, on the CPU.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from devlint.facts.text.nodes import walk
from devlint.facts.text.parameters import is_slicing
from devlint.facts.text.signatures import parameter_names
from devlint.facts.values import CPU, HOME, Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.arguments import Arguments, CallArguments

_WEIGHTS = re.compile(r"(weight|bias)(_\w+)?$")


def note(machine: CallArguments, node: ast.Call, arguments: Arguments) -> None:
    """Emit a `Meet` for such a call of something unknown."""
    callee = node.func
    if isinstance(callee, ast.Attribute) and callee.attr == "forward":
        callee = callee.value
    if machine.host or machine.in_init or arguments.star or not is_given(machine, callee):
        return
    for operand in machine.tensors(arguments):
        value = operand.value
        if value.device != CPU or len(value.made) != 1 or value.zero_dim is not False:
            continue
        asked = size_of(machine, value.made[0].node, machine.text(callee))
        if asked is not None:
            because = (machine.origin(asked, f"its size comes from `{machine.text(asked)}`, which the module keeps"),)
            kept = machine.operand(asked, Value("tensor", HOME, False, because=because))
            machine.meet(node, [kept, operand], "module", machine.text(node.func), "exact", unread=True)


def is_given(machine: CallArguments, node: ast.expr) -> bool:
    """Whether a module is an argument, or a part of the module whose method this is; what is made here may never move."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    if not isinstance(node, ast.Name) or machine.function is None:
        return False
    if node.id == "self":
        return machine.owner is not None and machine.owner.is_module
    own = machine.scan.functions.get(id(machine.function.node))
    return own is not None and node.id in parameter_names(own.node) and not own.bound.get(node.id)


def size_of(machine: CallArguments, call: ast.Call, owner: str) -> ast.Attribute | None:
    """The tensor of an owner whose size a factory call is given."""
    for node in (n for given in call.args for n in walk(given)):
        if isinstance(node, ast.Attribute) and node.attr in ("shape", "size") and isinstance(node.value, ast.Attribute):
            kept = node.value
            if machine.text(kept.value) == owner and (_WEIGHTS.match(kept.attr) or is_sliced(machine, kept.attr)):
                return kept
    return None


def is_sliced(machine: CallArguments, name: str) -> bool:
    """Whether the file takes slices of an attribute of a name: `layer.spikes[:, 0]`."""
    return any(
        isinstance(item.value, ast.Attribute) and item.value.attr == name and is_slicing(item.slice)
        for own in machine.scan.functions.values()
        for item in own.subscripts
    )

"""Functions of other files that move nothing, as they are applied to what is on the device already.

    y = normalize(model(x.to(device)))
    x = normalize(x)                    # nobody hands a tensor of the device to what would bring it there
    loss = features(x)                  # so this `x` is still on the host

What such a function gives is a guess on the CPU, for a tensor of the CPU. It is a tensor only where the code uses it so.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from devlint.facts.frozen import replace
from devlint.facts.idioms import guesses, parts_of_batches
from devlint.facts.text.references import last_name
from devlint.facts.text.signs import is_model_name
from devlint.facts.values import COMPUTED, CPU, NOTHING, Value, is_assumed

if TYPE_CHECKING:
    from devlint.facts.interpreter.arguments import Arguments
    from devlint.facts.interpreter.opaque_calls import OpaqueCalls

#: Words in the names of functions that choose where something is, or what it is. What prepares inputs may move them too.
_PLACES = re.compile(
    r"(^|_)(to|as|on|dev|var|variable|pre\w*|process\w*|inputs?|tensors?|data|move|put|send|place|transfer|ship|push|copy|wrap|"
    r"convert|cast|make|new|set|setup|collate|unpack|pack|fetch|get|gather|sync|shard|count|num|len|is|has|size|shape|log|"
    r"save|plot|show|print)(_|$)"
)


def note(machine: OpaqueCalls, node: ast.Call, qualname: str, arguments: Arguments, given: Value) -> Value:
    """What a function that cannot be read gives: `given`, which is guessed, or what is guessed here."""
    name = last_name(node.func)
    key = (id(machine.function.node) if machine.function is not None else 0, qualname)
    if not is_plain(name, arguments) or machine.host:
        return given
    taken = [v for v in arguments.values if v.is_tensor or guesses.is_guess(v)]
    if len(taken) != 1 or not machine.assume:
        return given
    device = taken[0].device
    if guesses.is_guess(given) and given.device == device and not is_assumed(device):
        machine.no_movers.add(key)
    on_host = taken[0].is_tensor and device == CPU and taken[0].zero_dim is not True and taken[0].attribute is None
    if given is not NOTHING or not on_host or key not in machine.no_movers:
        return given
    origin = machine.origin(node, COMPUTED)
    return replace(guesses.guess(CPU, origin), because=(origin, *guesses.source_of(taken)))


def is_plain(name: str, arguments: Arguments) -> bool:
    """Whether a call says nothing of devices, by the name of what is called and by its arguments."""
    if _PLACES.search(name.lower()) or is_model_name(name) or arguments.star or not arguments.values:
        return False
    return not any(value.kind in ("device", "module") for _, value in arguments.every()) and not any(
        re.search(r"device|cuda|gpu", keyword) for keyword in arguments.keywords
    )


def input_of(given: Value) -> Value:
    """The first input of a module: a tensor, where it is guessed to be one on the CPU."""
    return guesses.tensor(given) if given.device == CPU and not parts_of_batches.may_be_anything(given) else given

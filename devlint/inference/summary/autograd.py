"""Functions of autograd: `apply` runs `forward`, and later `backward` with a gradient where each result is.

Source: torch/autograd/function.py.
"""

from __future__ import annotations

import ast
from typing import Final

from devlint.inference.objects.heap import Thing
from devlint.inference.program.definitions import Class, Function
from devlint.inference.summary.arguments import Arguments
from devlint.inference.summary.frame import Frame
from devlint.inference.terms.values import NONE, NOTHING, Value

#: The qualified name of the class of `ctx`.
CONTEXT: Final = "torch.autograd.function.FunctionCtx"
#: The methods of a function that get the context first.
_WITH_CONTEXT: Final = frozenset({"forward", "backward", "setup_context", "vjp", "jvp"})


def is_function(class_: object) -> bool:
    return isinstance(class_, Class) and class_.family == "Function"


def gets_context(function: Function) -> bool:
    """Whether the first argument of a function is a context."""
    if function.owner is None or not is_function(function.owner) or function.name not in _WITH_CONTEXT:
        return False
    return function.name != "forward" or function.owner.method("setup_context") is None


def apply(frame: Frame, node: ast.Call, class_: Class, arguments: Arguments) -> Value:
    """`Function.apply(...)`: what `forward` gives, and what `backward` then needs."""
    forward, backward, setup = (class_.method(name) for name in ("forward", "backward", "setup_context"))
    if forward is None:
        return NOTHING
    context = Value("instance", objects=(frame.new_thing(node, Thing("instance", CONTEXT, node=node)),))
    if setup is None:
        result = frame.analyser.call(frame, forward, None, arguments.after(context, node), node)
    else:
        result = frame.analyser.call(frame, forward, None, arguments, node)
        inputs = Value("tuple", parts=tuple(value for _, value in arguments.positional))
        frame.analyser.call(frame, setup, None, [context, inputs, result], node)
    if backward is not None:
        results = result.parts if result.kind == "tuple" and result.parts is not None else (result,)
        gradients = [frame.heap.settled(each)._replace(path=None) for each in results]
        frame.analyser.call(frame, backward, None, [context, *gradients], node)
    return result


def of_context(frame: Frame, context: Value, name: str, arguments: Arguments) -> Value:
    """A method of a context. It keeps tensors for `backward`."""
    if name == "save_for_backward":
        saved = Value("tuple", parts=tuple(arguments.values())) if arguments.is_whole else NOTHING
        frame.heap.write(context.objects, ".saved_tensors", saved)
    return NONE

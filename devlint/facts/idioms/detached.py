"""`.numpy()` of what is not known but is detached first, or read from a model: only a tensor that may be on an accelerator.

`state.probabilities().detach().numpy()`, `module.scale.data.numpy()`: nothing but a tensor of torch is detached, and who
detaches it expects a gradient, so that it takes part in what a model computes. It must come from an argument.
`net[-1].v.numpy()` with a `net` that was moved: what a part of it keeps was computed where it is.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from devlint.facts.idioms.placed import is_left_on_host, sent_back
from devlint.facts.text.annotations import knows_other_tensors
from devlint.facts.text.method_names import TO_HOST
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import chain, last_name
from devlint.facts.text.results import shares_array
from devlint.facts.text.scan import FunctionScan
from devlint.facts.text.signatures import parameter_names
from devlint.facts.text.signs import OF_HOST
from devlint.facts.values import CPU, HOME, Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.methods import Methods


def note(machine: Methods, node: ast.Call, target: ast.expr) -> None:
    """Emit `Use` for `target.numpy()`, of whose receiver nothing is known otherwise."""
    last = target.func if isinstance(target, ast.Call) else target
    function = machine.function
    if function is None or not machine.assume or not isinstance(last, ast.Attribute):
        return
    *parts, root = chain(target)
    if any(isinstance(p, ast.Attribute) and p.attr in TO_HOST for p in parts) or not isinstance(root, ast.Name):
        return
    if knows_other_tensors(machine.imports.names) or function.name.rsplit(".", 1)[-1].startswith("test"):
        return
    if last.attr in ("detach", "data"):
        if any(isinstance(p, ast.Call) and gets_host_tensor(machine, p) for p in parts):
            return  # what it gives is there too, or it does not take that
        own = machine.scan.functions.get(id(function.node))
        known = given(own) if own is not None else {}
        if root.id not in known:
            return  # what is made here was likely made on the host
        back = sent_back(function.node)
        if back and any(ast.unparse(p) in back for each in (target, *known[root.id]) for p in chain(each)):
            return
        if any(OF_HOST.search(last_name(p)) is not None for each in (target, *known[root.id]) for p in chain(each)):
            return
        looped = (loop.iter for loop in own.loops if is_bound_by(root.id, loop.target)) if own is not None else ()
        for each in (target, *known[root.id][-1:], *looped):
            if is_left_on_host(machine, each) or machine.makes_its_input(each):
                return
        origin = machine.origin(last.value, "this tensor has a gradient, and it may be on an accelerator")
        tensor = Value("tensor", HOME, None, because=(origin,))
        machine.use(node, "numpy", machine.operand(target, tensor), last.attr == "detach")
    elif last is target:
        model = machine.evaluate(last.value)
        if model.kind == "module" and model.moved and model.device and not model.type_name:
            tensor = Value("tensor", model.device, None, because=model.because)
            machine.use(node, "numpy", machine.operand(target, tensor), False)


def gets_host_tensor(machine: Methods, call: ast.Call) -> bool:
    """Whether a call is given a name whose tensors are on the CPU: `model(tokenizer(text, return_tensors="pt"))`.

    Or what shares the memory of an array: `self.score(torch.from_numpy(x))`.
    """
    passed = (*call.args, *(k.value for k in call.keywords))
    values = [machine.state.env.get(a.id) for a in passed if isinstance(a, ast.Name)]
    return any(v is not None and v.is_tensor and v.device == CPU for v in values) or any(map(shares_array, passed))


def is_bound_by(name: str, target: ast.expr) -> bool:
    """Whether the target of a loop binds a name."""
    return any(isinstance(part, ast.Name) and part.id == name for part in walk(target))


@lru_cache(8)
def given(own: FunctionScan) -> dict[str, tuple[ast.expr, ...]]:
    """The names of a function that its callers give it, or that stand for parts of what they give.

    With the expressions that a name stands for, the nearest first: parts that are read once,
    `layer = self.net.layers[0]` and `head = layer.heads[i]`.
    """
    names: dict[str, tuple[ast.expr, ...]] = dict.fromkeys(parameter_names(own.node), ())
    for loop in own.loops:
        *_, root = chain(loop.iter)
        roots = {n.id for n in walk(root) if isinstance(n, ast.Name)}
        if roots & names.keys():
            names |= {n.id: () for n in walk(loop.target) if isinstance(n, ast.Name)}
    for node in sorted((a for a in own.assigns if isinstance(a, ast.Assign)), key=lambda a: a.lineno):
        target = node.targets[0]
        *parts, root = chain(node.value)
        if not isinstance(target, ast.Name) or own.bound.get(target.id) != 1 or not parts:
            continue
        read = all(isinstance(part, (ast.Attribute, ast.Subscript)) for part in parts)
        if read and isinstance(root, ast.Name) and root.id in names and target.id not in names:
            names[target.id] = (node.value, *names[root.id])
    return names

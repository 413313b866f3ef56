"""The code moves a tensor but does not use the moved copy.

## What it flags
The rule reports `x.to(d)`, `x.cuda()`, `x.cpu()` and similar calls when the code does not use the result. It reports
them for three kinds of objects:

* a tensor,
* a `PackedSequence`,
* an object whose class is defined in the file and has a `to` method that returns a new object.

The rule also reports these cases:

* A list of moved copies is dropped: `[x.to(d) for x in tensors]`.
* A function returns a moved copy of a batch, and the copy is dropped. Examples are `send_to_device(batch, d)`,
  `tree_map(to_device, batch)`, and functions that the file defines.
* A loop variable gets the moved copy, and the code does not read the variable again:
  `for x in (inputs, labels): x = x.to(d)`.
* The result of `x.pin_memory()` is dropped.

## Why it matters
`Module.to` moves the module in place. `Tensor.to` returns a copy and does not move the tensor. If the code drops the
copy, it pays for a transfer that changes nothing. The next operation finds the tensor on the old device.

## Example
    import torch


    def prepare(x: torch.Tensor, device: torch.device) -> torch.Tensor:
        x.to(device)
        return x

Use instead:

    import torch


    def prepare(x: torch.Tensor, device: torch.device) -> torch.Tensor:
        x = x.to(device)
        return x

## Fix safety
The fix assigns the result to the name of the tensor. The fix is safe if later code combines the tensor with tensors on
the target device. Without the fix, that code always fails. In all other cases the fix is unsafe, because later code may
then run on a different device.

The rule makes a suggestion without an edit in these cases:

* The object is a parameter of a module. A tensor cannot replace a parameter.
* The variable belongs to an outer scope. An assignment would create a local variable with the same name.

## Known limits
The rule needs evidence that the object is a tensor. This evidence can be a call that creates a tensor, an operation
that only tensors have, or a slice in several dimensions (`x[:, 0]`). Some other objects have a `to` method that moves
them in place, such as modules, graph data and some batch classes. The rule reports none of these objects.

The rule reports nothing in these cases:

* The argument of `.to` may be something other than a device, such as a dtype.
* The expression also creates the tensor. `torch.zeros(1).cuda()` is a common way to initialize the device.
* The move is inside a `try` that catches errors. The code may test whether the move works.
* `x.cpu()` is in a function or a file whose name says that it measures time. The purpose of `x.cpu()` is then to wait
  for the device.
* The move is the last expression of a notebook cell, and the notebook shows its result.
"""

from __future__ import annotations

import ast
import re

from devlint.api import CPU, HOME, Edit, Facts, Finding, Fix, Move, Rule, RuleMeta, Safety, Severity, Site, Value, cst

from . import _shared as shared

#: Words in the names of files and functions that measure how long something takes.
_MEASURES = re.compile(r"bench|latenc|timing|timeit|profil|speed", re.IGNORECASE)


class DiscardedTransferResult(Rule[Move]):
    meta = RuleMeta(
        code="DEV105",
        name="discarded-transfer-result",
        summary="the result of moving a tensor is dropped",
        since="0.1.0",
        level="certain",
        severity=Severity.ERROR,
        fix="sometimes",
        words=("torch",),
    )
    event = Move

    def suspects(self, event: Move, facts: Facts) -> bool:
        value = event.receiver.value
        if event.used_later is None and is_displayed(event, facts):
            return False
        if not event.discarded or event.target is None or event.under.catches("RuntimeError"):
            return False
        if len(value.device) == 1 and value.device == event.target.device != CPU and not event.argument:
            own_buffer = value.kind == "buffer" and event.receiver.text.startswith("self.")
            if own_buffer or not is_of_another(value, event.target):
                return False  # it is there already
        if event.method == "cpu" and _MEASURES.search(
            f"{facts.path.replace(chr(92), '/').rpartition('/')[2]} {event.function}"
        ):
            return False  # it waits for the device
        if event.target_node is not None and ast.unparse(event.target_node) == f"{event.receiver.text}.device":
            return False  # it is there by its own word
        lives_on = isinstance(event.receiver.node, ast.Name | ast.Attribute | ast.Subscript)
        return lives_on and (value.is_tensor or value.kind == "packed" or event.of_class)

    def judge(self, event: Move, site: Site) -> Finding | None:
        if site.facts.path.endswith(".ipynb") and getattr(site.statement, "value", None) is not site.node:
            return None  # a cell may show the list
        receiver = shared.name(event.receiver)
        call = shared.short(site.facts.source(event.span))
        copy = "pinned" if event.method == "pin_memory" else "moved"
        message = f"`{call}` returns a {copy} copy, which is dropped; {receiver} stays where it is"
        if event.rebound is not None:
            message = (
                f"{receiver} gets a moved copy that nothing reads; the tensors of `{shared.short(event.rebound)}` stay "
                "where they are"
            )
            hint = Fix("Assign each moved copy back to its variable or entry", Safety.HINT)
            return Finding(event.span, message, hint, shared.trail(event, event.span))
        return Finding(event.span, message, self._fix(event, site), shared.trail(event, event.span))

    def _fix(self, event: Move, site: Site) -> Fix:
        title = f"Assign the copy to {shared.name(event.receiver)}"
        hint = Fix(title, Safety.HINT)
        receiver = event.receiver
        if not shared.is_path(receiver.node) or receiver.value.kind == "parameter" or event.only_step:
            return hint
        statement, node = site.statement, site.node
        if (
            not isinstance(statement, cst.Expr)
            or not isinstance(node, cst.BaseExpression)
            or statement.value is not node
        ):
            return hint
        if not shared.is_local(site.facts, event.function, receiver.text):
            return hint
        target = site.expression(receiver.text)
        if not isinstance(target, cst.Name | cst.Attribute):
            return hint
        crashes = event.used_later is not None and not event.under.catches("RuntimeError")
        assigned = cst.Assign([cst.AssignTarget(target)], node)
        return Fix(title, Safety.SAFE if crashes else Safety.UNSAFE, (Edit(statement, assigned),))


def is_of_another(value: Value, target: Value) -> bool:
    """Whether nothing but an assumption says that a parameter, or a part of an argument, is where the target is: they are
    of two modules or arguments."""
    if value.device != HOME or value.moved or value.kind not in ("parameter", "buffer", "tensors"):
        return False
    sources = [{origin.span for origin in side.because} for side in (value, target)]
    return any(sources) and sources[0].isdisjoint(sources[1])


#: What follows the last statement of a notebook's cell in the joined text: the rune between cells, or nothing.
_END_OF_CELL = re.compile(r"\s*(?:#[^\x00-\x7f]\n|\Z)")


def is_displayed(event: Move, facts: Facts) -> bool:
    """Whether a notebook shows the value of the statement, because it is the last of its cell."""
    return facts.path.endswith(".ipynb") and _END_OF_CELL.match(facts.text, event.span.end) is not None

"""Calls of what cannot be read: by their names losses, models and parts of modules take tensors on one device."""

from __future__ import annotations

import ast
import re

from devlint.facts.events import Creation, Operand
from devlint.facts.idioms import fed_by_siblings, kept_modules, parts_of_batches, sized_by_module
from devlint.facts.idioms.unseen_modules import is_part
from devlint.facts.interpreter.arguments import Arguments
from devlint.facts.interpreter.factories import FROM_DATA
from devlint.facts.interpreter.objects import Objects
from devlint.facts.interpreter.operations import is_encoded
from devlint.facts.text.nodes import holds, statements
from devlint.facts.text.parameters import is_number
from devlint.facts.text.references import last_name
from devlint.facts.text.signs import is_loss_name, is_model_name
from devlint.facts.values import (
    BATCH,
    CPU,
    HOME,
    Value,
    may_be_accelerator,
)
from devlint.model import Origin

_LENGTHS = re.compile(r"len|size")


class UnreadCalls(Objects):
    """Adds `note_unread`."""

    def note_unread(self, node: ast.Call, arguments: Arguments) -> None:
        """Emit a `Meet` for a call of something unknown whose name says that what it is given belongs on one device."""
        if not self.assume:
            return
        self.note_loss(node, arguments)
        self.note_inputs(node, arguments)
        self.note_part(node, arguments)
        sized_by_module.note(self, node, arguments)

    def note_loss(self, node: ast.Call, arguments: Arguments) -> None:
        """`criterion(output, target)`: a loss that is not known needs what it compares on one device all the same."""
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if len(arguments.values) < 2 or arguments.star or not is_loss_name(name) or "ctc" in name.lower():
            return  # a CTC loss brings its targets along [aten/src/ATen/native/LossCTC.cpp]
        if any(_LENGTHS.search(self.text(further)) for further in arguments.nodes[2:]):
            return  # a loss over sequences: where it takes targets and lengths is its own affair
        own = self.scan.calls_in(self.function.node) if self.function is not None else ()
        if any(is_alone(call) and self.text(call.func) == self.text(node.func) for call in own):
            return  # what takes one input beside it is a loss of the project's own, and may move its targets
        output, target = (
            self.operand(n, parts_of_batches.compared(v))
            for n, v in zip(arguments.nodes[:2], arguments.values[:2], strict=True)
        )
        if len(arguments.values) > 2 and self.is_drawn_rows(target):
            return  # what it is compared with is among the rest
        if output.value.is_tensor and target.value.is_tensor:
            left = any(o.value.device == CPU and (o.value.type_name == BATCH or o.value.made) for o in (output, target))
            if left or self.parted(output.value, target.value) is not None:
                self.meet(node, [output, target], "module", name, "exact", unread=True)

    def is_drawn_rows(self, operand: Operand) -> bool:
        """Whether an operand is a permutation that the function picks rows by: `rows = torch.randperm(n)[:k]`, `x[rows]`."""
        value, own = operand.value, self.scan.functions.get(id(self.function.node)) if self.function else None
        if own is None or not value.made or any(made.function != "torch.randperm" for made in value.made):
            return False
        name = operand.node.id if isinstance(operand.node, ast.Name) else None
        return any(isinstance(each.slice, ast.Name) and each.slice.id == name for each in own.subscripts)

    def note_inputs(self, node: ast.Call, arguments: Arguments) -> None:
        """`generator(noise.to(device), labels)`: what reads like a model gets one input that is moved for it, and a new one."""
        name = last_name(node.func)
        if arguments.star or is_loss_name(name):
            return
        given = [o for o in self.tensors(arguments) if o.value.kind in ("tensor", "tensors")]
        kept_modules.note_unread(self, node, given)
        kept_modules.note_unread_name(self, node, given)
        fed_by_siblings.note(self, node, given, is_encoded)
        if not is_model_name(name):
            return
        inside = [self.operand(n, part) for n, v in arguments.every() if v.kind == "dict" for part in v.parts]
        moved = [
            o
            for o in (*given, *inside)
            if o.value.is_tensor and o.value.moved and may_be_accelerator(o.value.device) and o.value.device != HOME
        ]
        for operand in given:
            value = operand.value
            plain = value.made and value.device == CPU and value.zero_dim is False
            if moved and plain and _LENGTHS.search(operand.text) is None:
                self.meet(node, [moved[0], operand], "module", name, "exact", unread=True)

    def note_part(self, node: ast.Call, arguments: Arguments) -> None:
        """`self.embed(torch.zeros(n, 3))` in a method of a module: a part of a class that cannot be read moves with it.

        Beside the first input one number may be for the case that there is nothing to give: `shift=torch.Tensor([0])`.
        """
        tensors = self.tensors(arguments)
        given = [o for o in tensors if o.value.made and all(made.zero_dim is False for made in o.value.made)]
        first = next((argument for argument, _ in arguments.every()), None)
        given = [o for o in given if (first is not None and holds(first, o.node)) or not self.may_stand_for_none(o)]
        if not given or self.host or self.owner is None:
            return
        if not is_part(self, self.owner, node.func):  # type: ignore[arg-type]
            return
        because = (
            Origin(self.span(node.func), f"`{self.text(node.func)}` is a part of the module, and moves with it"),
        )
        part = self.operand(node.func, Value("module", HOME, because=because))
        for operand in given:
            self.meet(node, [part, operand], "module", self.text(node.func), "exact", unread=True)

    def may_stand_for_none(self, operand: Operand) -> bool:
        """Whether an operand is a tensor of one number as it was made, on one path at least, by itself or by its name."""
        made = [creation.node for creation in operand.value.made if is_one_number(creation)]
        if not made or len(made) < len(operand.value.made):
            return False
        if isinstance(operand.node, ast.Name) and self.function is not None:
            name = operand.node.id
            bound = [
                each.value
                for each in statements(self.function.node)
                if isinstance(each, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in each.targets)
            ]
            return all(any(node is value for value in bound) for node in made)
        return operand.node is made[0]


def is_one_number(creation: Creation) -> bool:
    """Whether a tensor is made of one number that is written out, `torch.Tensor([0])`: it may stand for none at all."""
    call = creation.node
    node = call.args[0] if call.args else None
    if not isinstance(node, (ast.List, ast.Tuple)):
        return False
    if creation.function not in FROM_DATA and not creation.function.endswith("Tensor"):
        return False  # it is given its sizes
    while isinstance(node, (ast.List, ast.Tuple)) and len(node.elts) == 1:
        node = node.elts[0]
    return is_number(node)


def is_alone(call: ast.Call) -> bool:
    """Whether a call gives one argument."""
    return len(call.args) == 1 and not call.keywords and not isinstance(call.args[0], ast.Starred)

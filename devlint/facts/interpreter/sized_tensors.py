"""Tensors made in the size of another one: returned, kept or handed on, they belong on its device."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from devlint.facts.events import Creation, Operand
from devlint.facts.frozen import replace
from devlint.facts.idioms import guesses
from devlint.facts.interpreter.arguments import Arguments
from devlint.facts.interpreter.factories import FILLED, FROM_DATA, Factories
from devlint.facts.interpreter.operations import CPU_PLACE
from devlint.facts.text.nodes import asks_name, walk
from devlint.facts.text.signatures import parameter_of
from devlint.facts.values import CPU, HOME, MADE_ON_CPU, Value, may_be_accelerator
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.text.defined import Function

#: Factories whose results are mostly indices, which may stay on the CPU.
_INDICES = frozenset(
    {
        "torch.arange", "torch.randperm", "torch.randint", "torch.tril_indices", "torch.triu_indices", "torch.range",
        "torch.combinations",
    }
)  # fmt: skip
_INTEGERS = frozenset({"int", "int8", "int16", "int32", "int64", "long", "short", "uint8", "bool"})
#: Words in the name of a function that reads, shows or stores what it is given, on the host for the most part.
READERS = re.compile(
    r"(^|_)(cpu|numpy|plot|draw|show|save|write|log|print|dataset|dataloader|load|assert|check|test|format|append|update|collate)"
)
#: Words in the name of a function that compares two tensors.
_COMPARES = re.compile(r"norm|loss|crit|metric|dist|error|objective|mse|mae")
_FOR_HOST = re.compile(r"len|size|idx|index|num|count|mask|label|target")


class SizedTensors(Factories):
    """Adds `leave` and `note_sized`."""

    @property
    def in_forward(self) -> bool:
        return self.name.rpartition(".")[2] == "forward"

    def leave(self, node: ast.expr, value: Value, how: str) -> None:
        """A value is returned or kept: emit `Meet` when it was made on the CPU in the size of an accelerator's tensor."""
        if value.kind != "tensor" or CPU_PLACE not in value.device:
            return
        if how == "returned" and value.attribute is not None and value.device == CPU:
            self.note_given_back(node, value.attribute)
        if value.zero_dim is not False and not (len(value.device) > 1 and all(m.zero_dim is False for m in value.made)):
            return
        if self.owner is not None and self.owner.family not in ("Module", "Optimizer"):
            return  # elsewhere a tensor of a size may well be a count, a mask or a statistic that stays on the host
        for creation in value.made:
            other = self.sized.get(creation.span)
            if self.is_of_caller(creation):
                continue  # it goes back to the function that made it
            if other is not None and not self.stays_behind(other.value):
                continue
            if other is None or creation.function in _INDICES or creation.function in FROM_DATA:
                continue
            if self.counted.get(creation.span) or (creation.span in self.itemized and not self.in_forward):
                continue  # a table of numbers that the host computes, or fills item by item for who moves it
            if dtype_of(creation).rsplit(".", 1)[-1] in _INTEGERS:
                continue
            level = self.conflict(CPU, other.value.device)
            if level is not None:
                off = self.operand(creation.place, replace(value, made=(creation,)))
                because = (
                    Origin(creation.span, MADE_ON_CPU),
                    Origin(self.span(node), f"{how} here"),
                    *other.value.because[:1],
                )
                self.emit_meet(node, "size", how, off, other, level, because)

    def note_given_back(self, node: ast.expr, attribute: str) -> None:
        """`forward` gives rows of a plain tensor of its module, as many as its input has: `return self.table[: x.size(1)]`."""
        owner, _, name = attribute.rpartition(".")
        class_ = self.classes.get(owner)
        entry = class_.unregistered.get(name) if class_ is not None else None
        if class_ is None or entry is None or entry.what != "tensor" or not self.in_forward or self.host:
            return
        made = entry.value.made
        if not self.assume or not made or any(dtype_of(m).rsplit(".", 1)[-1] in _INTEGERS for m in made):
            return
        if any(m.function in _INDICES for m in made) or not any(map(self.is_extent, walk(node))):
            return
        calls = [site.call for each in self.callers.instances(class_.name) for site in self.scan.calls.get(each, ())]
        if any(map(self.callers.is_moved_at_once, calls)):
            return
        where = Origin(self.span(node), "returned by `forward` here, with the length of its input")
        entry.returned = entry.returned or not entry.uses
        entry.uses.setdefault(where.span, where)

    def is_extent(self, node: ast.AST) -> bool:
        """Whether a piece of code is, or reads, the size of a tensor that may be on an accelerator."""
        if isinstance(node, ast.Attribute) and node.attr in ("size", "shape"):
            known = self.lookup(node.value.id) if isinstance(node.value, ast.Name) else None
            return known is not None and known.is_tensor and may_be_accelerator(known.device)
        if not isinstance(node, ast.Name):
            return False
        known = self.lookup(node.id)
        return known is not None and known.type_name == "extent" and may_be_accelerator(known.device)

    def stays_behind(self, other: Value) -> bool:
        """Whether a tensor of the CPU that takes on what an accelerator's tensor is, or its size, is likely a mistake."""
        if self.function is None:
            return True
        if self.callers.result_is_moved(self.function):
            return False
        if self.is_of_demo(self.function):
            return False
        assumed = self.assumed.get(other.because[0].span) if other.because else None
        if assumed is None:
            return True
        function, name = assumed
        evidence = self.evidence.get(id(function.node))
        annotated = evidence is None or name in evidence.annotated | evidence.several | evidence.documented
        if not self.callers.sites(function) and (annotated or not self.callers.is_method_of_module(function)):
            return annotated
        return self.callers.may_pass_device_data(function, name, annotated)

    def is_of_demo(self, function: Function) -> bool:
        """Whether a function stands under `if __name__ == "__main__"`, where a file tries out what it defines."""
        for node in self.scan.tree.body if self.scan.tree is not None else ():
            if isinstance(node, ast.If) and node.lineno < function.node.lineno <= (node.end_lineno or 0):
                return asks_name(node)
        return False

    def note_sized(self, node: ast.Call, arguments: Arguments) -> None:
        """`scatter(torch.ones(index.size(0)), index)`: an unknown function gets a tensor, and a new one of its size."""
        if arguments.star or len(arguments.values) + len(arguments.keywords) < 2:
            return
        name = self.text(node.func).rsplit(".", 1)[-1]
        if name[:1].isupper() or name == "apply" or READERS.search(name.lower()) is not None:
            return  # `Function.apply` hands on what it is given
        operands = self.tensors(arguments)
        for operand in operands:
            value = operand.value
            if value.device != CPU or value.zero_dim is not False or len(value.made) != 1:
                continue
            known = self.sized.get(value.made[0].span)
            if known is None:
                self.note_beside(node, name, operand, operands)
                continue
            beside = [o for o in operands if o.value.device == known.value.device]
            if any(o.text == known.text.split(".", 1)[0] for o in beside):
                self.meet(node, [operand, next(o for o in beside)], "function", name, "exact")
            elif value.made[0].function in FILLED and (
                self.is_part_of_module(node.func) or self.compares(node, arguments)
            ):
                given = [self.operand(n, guesses.tensor(v)) for n, v in arguments.every() if guesses.is_guess(v)]
                beside += [o for o in given if o.value.device == known.value.device]
                if beside:
                    self.meet(node, [operand, beside[0]], "function", name, "exact")
            else:
                self.note_beside(node, name, operand, operands)

    def note_beside(self, node: ast.Call, name: str, new: Operand, operands: list[Operand]) -> None:
        """`emd(torch.ones(n), cost)`: a function that cannot be read gets new weights or noise beside an argument."""
        if (
            not isinstance(new.node, ast.Name)
            or new.value.made[0].function not in FILLED
            or _FOR_HOST.search(new.text.lower()) is not None
        ):
            return
        if "float" not in (dtype_of(new.value.made[0]) or "float"):
            return
        beside = [
            o for o in operands if o.value.device == HOME and o.value.kind == "tensor" and o.value.type_name is None
        ]
        if beside:
            self.meet(node, [new, beside[0]], "function", name, "exact")

    def compares(self, node: ast.Call, arguments: Arguments) -> bool:
        """Whether a call is one of a function's own argument with two tensors, as norms are: `norm(error, zeros)`."""
        function = node.func
        if self.function is None or not isinstance(function, ast.Name) or len(arguments.values) != 2:
            return False
        if arguments.keywords or _COMPARES.search(function.id.lower()) is None:
            return False
        return parameter_of(self.function.node.args, function.id) is not None

    def is_part_of_module(self, function: ast.expr) -> bool:
        """Whether what is called is an attribute of the module whose method this is, and no method: `self.decoder(z)`."""
        if not isinstance(function, ast.Attribute) or self.owner is None or not self.owner.is_module:
            return False
        is_own = isinstance(function.value, ast.Name) and function.value.id == "self"
        return is_own and self.owner.method(function.attr) is None


def dtype_of(creation: Creation) -> str:
    """The dtype that a factory call is given, as code; its file may be that of a caller. Empty without one."""
    return next((ast.unparse(k.value) for k in creation.node.keywords if k.arg == "dtype"), "")

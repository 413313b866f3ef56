"""Attributes: what reading one gives, of a tensor, a module, a device or an object of the file's own classes."""

from __future__ import annotations

import ast

from devlint import knowledge
from devlint.facts.frozen import replace
from devlint.facts.idioms import aliases, distributions, guesses, records, uncalled
from devlint.facts.idioms.detached import given
from devlint.facts.idioms.devices import OF_TENSOR
from devlint.facts.interpreter.calls import Calls
from devlint.facts.interpreter.operations import TURN
from devlint.facts.text.bindings import bindings
from devlint.facts.text.classes import ClassFacts, lineage
from devlint.facts.text.method_names import TENSOR_ATTRIBUTES
from devlint.facts.text.nodes import statements, walk
from devlint.facts.text.references import chain, is_self, is_self_attribute, last_name
from devlint.facts.text.results import shares_array
from devlint.facts.text.signatures import parameter_of
from devlint.facts.text.signs import gives_tensors, is_model_call, is_model_name
from devlint.facts.values import (
    CPU,
    GUESS,
    HOME,
    NOTHING,
    NUMBER,
    OUTPUT,
    SOMEWHERE,
    UNKNOWN,
    Place,
    Symbol,
    Value,
    symbol,
)
from devlint.model import Origin

#: What the results of pipelines hold: pictures and sounds on the host, unless they are asked for as tensors.
_MEDIA = frozenset({"images", "videos", "frames", "audios", "text", "texts"})
#: The factors of a matrix that `torch.linalg` gives by name in capitals.
_FACTORS = frozenset({"Q", "R", "U", "S", "V", "Vh", "L", "LU", "P", "LD"})
#: Attributes of a tensor that are tensors where it is; its gradient among them.
_SAME_TENSOR = TENSOR_ATTRIBUTES | {"grad"}
#: One of the groups of an optimizer [torch/optim/optimizer.py, `add_param_group`].
PARAMETER_GROUP = Value("dict", elements={"params": Value("object", elements=(Value("parameter"),)), "lr": NOTHING})


class Attributes(Calls):
    """Adds `read_attribute`."""

    def read_attribute(self, node: ast.Attribute, base: Value) -> Value:
        name = node.attr
        if name == "batch_sizes" and self.may_be_packed(base):
            # [torch/nn/utils/rnn.py: the constructor refuses others, and `to` leaves them where they are]
            return Value(
                "tensor",
                CPU,
                False,
                because=(self.origin(node, "this part of a packed sequence is always on the CPU"),),
            )
        if base.is_tensor:
            return self.tensor_attribute(node, base, name)
        if base.kind == "module":
            return self.module_attribute(node, base, name)
        if base.kind == "distribution":
            return distributions.attribute(base, name)
        if base.kind == "packed" and name == "data":
            return Value("tensor", base.device, False, because=base.because)
        if base.kind == "device" and name == "type":
            # the type as a string follows the device it came from
            device = frozenset(Place(p.type) if isinstance(p, Place) else p for p in base.device)
            return Value("string", device, because=base.because, type_name=base.type_name)
        if base.kind == "device" and name == "index":
            return NUMBER
        if base.kind == "object" and isinstance(base.elements, dict) and name in base.elements:
            return base.elements[name]
        if base.kind == "object" and name == "device" and (device := records.device_of(base)):
            return Value("device", device, type_name=OF_TENSOR)
        if base.kind == "object" and base.type_name in self.classes:
            found = self.classes[base.type_name].attribute(name)
            if name == "device" and (found is None or found.kind == "unknown"):
                stated = self.stated(base, name, last_name(node.value))
                if stated is not None:
                    return stated
            if found is None:
                return NOTHING
            return self.of_made(found, base) if found.device == HOME else self.at_home(found, base)
        if base.kind == "optimizer" and name == "param_groups":
            return Value("object", elements=(PARAMETER_GROUP,))
        if (
            name == "grad"
            and base.kind == "unknown"
            and self.assume
            and self.knows_torch
            and not self.is_typed(node.value)
            and not self.is_of_array(node.value)
        ):
            return self.gradient(node)
        if name == "device" and base.kind == "generator" and base.device and SOMEWHERE not in base.device:
            return Value("device", base.device, because=base.because)
        if name == "device" and base.kind in ("unknown", "generator"):
            path = self.path(node)
            if path is not None:
                device = symbol(path, self.scope_id(path))
                if not base.device and self.is_made_here(path):
                    self.unsure |= device
                return Value("device", device)
        return NOTHING

    def is_made_here(self, path: str) -> bool:
        """Whether a name stands for what functions give that are neither of the object nor handed in, and no models."""
        own = self.scan.functions.get(id(self.function.node)) if self.function is not None else None
        name = path.split(".", 1)[0]
        if own is None or name not in own.bound:
            return False
        known, made = given(own), bindings(own).get(name, [])
        return bool(made) and not any(is_of_object(value, {"self", "cls", name, *known}) for value in made)

    def may_be_packed(self, value: Value) -> bool:
        """Whether a value is a `PackedSequence`, or an argument or object of a file that speaks of them."""
        if value.kind == "packed":
            return True
        return (value.is_tensor or value.kind == "unknown") and "PackedSequence" in self.source.text

    def is_typed(self, node: ast.expr) -> bool:
        """Whether an expression is a parameter that an annotation says to be of a type of another package: `wp.array`."""
        spec = self.function.node.args if self.function is not None else None
        if spec is None or not isinstance(node, ast.Name):
            return False
        argument = parameter_of(spec, node.id)
        said = argument.annotation if argument is not None else None
        qualname = self.qualify(said) if isinstance(said, (ast.Name, ast.Attribute)) else None
        return qualname is not None and "." in qualname and not qualname.startswith(("torch.", "typing.", "."))

    def is_of_array(self, node: ast.expr) -> bool:
        """Whether an expression is a name of this function alone that only stands for tensors in the memory of arrays.

        A gradient is where its tensor is.
        """
        own = self.scan.functions.get(id(self.function.node)) if self.function is not None else None
        if own is None or not isinstance(node, ast.Name) or node.id not in own.bound:
            return False
        made = bindings(own).get(node.id, [])
        return len(made) == own.bound[node.id] and all(map(shares_array, made))

    def gradient(self, node: ast.expr) -> Value:
        """The gradient of something that may be anywhere."""
        return Value(
            "tensor", CPU if self.host else HOME, None, because=(Origin(self.span(node), "this is a gradient"),)
        )

    def tensor_attribute(self, node: ast.Attribute, base: Value, name: str) -> Value:
        if name == "device":
            if self.in_init and base.device == CPU and base.because and base.because[0].span in self.assumed:
                return Value("device")  # of an argument of a constructor: that modules are built on the host says less
            return Value("device", base.device, type_name=OF_TENSOR, because=base.because, made=base.made)
        if name == "grad" and base.kind == "parameter" and not base.device and self.assume and self.knows_torch:
            return self.gradient(node)
        if name in _SAME_TENSOR:
            return base if base.kind == "tensors" else replace(base, kind="tensor")
        if name == "shape":
            text = self.text(node.value)
            if base.type_name == GUESS:
                return Value("object")
            return Value("object", base.device, base.zero_dim, type_name="size", because=base.because, constant=text)
        if name in ("ndim", "requires_grad", "is_leaf"):
            return NUMBER
        if name in ("is_cuda", "is_cpu"):
            return Value("bool")
        if name == "dtype":
            return Value("dtype")
        if name in uncalled.METHODS:
            return NOTHING
        if base.kind == "tensors":
            if name in _FACTORS and base.device and base.ident is None:
                return replace(base, kind="tensor", zero_dim=None)
            if name in ("values", "indices") and gives_tensors(node.value):
                return replace(base, kind="tensor")
            if base.ident is not None or name.isupper() or name in _MEDIA or is_model_name(last_name(node.value)):
                return NOTHING  # an object of an imported class: what it holds may be a number
            if (base.type_name == TURN and base.moved) or name.startswith("_"):
                return NOTHING  # a row of a tensor of a class of its own, or what an object keeps for itself
            if guesses.is_plain_name(name):
                return NOTHING
            return replace(base, type_name=None) if base.type_name == OUTPUT else base if base.device else NOTHING
        return NOTHING

    def module_attribute(self, node: ast.Attribute, base: Value, name: str) -> Value:
        class_ = self.classes.get(base.type_name) if base.type_name else None
        if class_ is not None:
            if name == "device" and self.in_init and is_self(node.value) and is_lightning(class_):
                # the trainer moves it after it is built [lightning/fabric/utilities/device_dtype_mixin.py]
                origin = self.origin(node, "the device of a `LightningModule` is the CPU until it is built")
                return Value("device", CPU, type_name=OF_TENSOR, because=(origin,))
            found = class_.attribute(name)
            if found is not None:
                return aliases.taken(self, node, self.at_home(found, base), base)
            method = class_.method(name)
            if method is not None:
                kept = given_back(method[1]) if name == "device" else None
                if kept is not None:
                    # a property that gives what the constructor was given, and not where parameters are
                    said = self.lookup(f"self.{kept}") if is_self(node.value) else None
                    return said or class_.attribute(kept) or NOTHING
                return of_parameters(base) if name == "device" else NOTHING
            if name == "device" and class_.bases == ("torch.nn.Module",) and not sets(class_, name):
                self.emit_call(node, "Module.device", self.operand(node.value, base), None, exists=False, is_call=False)
            return of_parameters(base) if name == "device" else NOTHING
        if base.type_name is not None:
            known = knowledge.cls(base.type_name)
            if known is not None and known.family == "Module":
                if name in ("weight", "bias"):
                    return Value("parameter", base.device, False, because=base.because)
                if name in ("running_mean", "running_var") and "BatchNorm" in base.type_name:
                    return aliases.taken(self, node, Value("buffer", base.device, False), base)
                if name == "device" and name not in known.attributes:
                    self.emit_call(
                        node, "Module.device", self.operand(node.value, base), None, exists=False, is_call=False
                    )
                if name == "module":
                    return replace(base, type_name=None)
        if name in ("weight", "bias") and base.device and not base.type_name:
            return Value("parameter", base.device, None, because=base.because)
        return NOTHING

    def at_home(self, value: Value, owner: Value) -> Value:
        """An attribute of a module, seen from outside: what shares the module's device is where the module is."""
        if value.device == HOME:
            return replace(value, device=owner.device, because=owner.because)
        if any(isinstance(p, Symbol) and p.scope for p in value.device):
            if owner.kind == "module" and owner.moved and value.kind in ("parameter", "buffer", "module"):
                return replace(value, device=owner.device, because=owner.because)
            return self.as_given(value, owner) if not owner.shared else replace(value, device=UNKNOWN, split=None)
        return value

    def as_given(self, value: Value, owner: Value) -> Value:
        """An attribute that is where an argument of its object's constructor says."""
        return value

    def of_made(self, value: Value, owner: Value) -> Value:
        """An attribute of an object that is where the tensors are that its constructor was given."""
        return value

    def stated(self, owner: Value, name: str, called: str) -> Value | None:
        """The device that an object keeps from its constructor: a constant that it was given, or a default. Else None.

        `called`: the last name that the object has here.
        """
        return None


def given_back(method: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    """The attribute of `self` that is all that a method gives back: `return self._device`; None for any other method."""
    given = [node.value for node in statements(method) if isinstance(node, ast.Return)]
    found = {each.attr for each in given if isinstance(each, ast.Attribute) and is_self_attribute(each)}
    return found.pop() if len(given) == len(found) == 1 else None


def is_of_object(value: ast.expr, objects: set[str]) -> bool:
    """Whether an expression is no call, or one of a model, or begins with one of these names."""
    *parts, root = chain(value)
    calls = [part for part in parts if isinstance(part, ast.Call)]
    return not calls or any(map(is_model_call, calls)) or not isinstance(root, ast.Name) or root.id in objects


def sets(class_: ClassFacts, name: str) -> bool:
    """Whether a class binds an attribute in any way that its text shows, or answers for names that it does not bind."""
    if "__getattr__" in class_.methods or "__getattribute__" in class_.methods:
        return True
    for child in walk(class_.node):
        if isinstance(child, ast.Attribute) and child.attr == name and isinstance(child.ctx, ast.Store):
            return True
        if isinstance(child, ast.Name) and (child.id == "setattr" or (child.id == name and child.ctx is not None)):
            if child.id == "setattr" or isinstance(child.ctx, ast.Store):
                return True
        if isinstance(child, ast.Constant) and child.value == name:
            return True
        if isinstance(child, ast.Attribute) and child.attr == "__dict__":
            return True
    return False


def is_lightning(class_: ClassFacts) -> bool:
    """Whether a class is a `LightningModule` that does not bind its own `device`."""
    whole = lineage(class_)
    binds = any(each.attribute("device") is not None or each.method("device") is not None for each in whole)
    return not binds and any(base.endswith("LightningModule") for each in whole for base in each.bases)


def of_parameters(module: Value) -> Value:
    """What a module that stayed on the CPU says its device is."""
    return Value("device", CPU, type_name=OF_TENSOR, because=module.because) if module.device == CPU else NOTHING

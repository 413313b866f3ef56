"""What the methods of a class leave on its objects, and which of it holds wherever the object is."""

from __future__ import annotations

import ast
import re
from functools import cached_property, lru_cache

from devlint.facts.frozen import replace
from devlint.facts.idioms import guesses, restored
from devlint.facts.idioms.kept_generators import kept_generators
from devlint.facts.idioms.restored_copies import restored_copies
from devlint.facts.interpreter.entry import Entry
from devlint.facts.interpreter.registration import is_made_here, is_new, reads
from devlint.facts.text.classes import ClassFacts, lineage
from devlint.facts.text.method_names import MOVES
from devlint.facts.text.moved_data import MovedData
from devlint.facts.text.nodes import statements, walk
from devlint.facts.text.parameters import makes_tensor, makes_tensor_of_numbers
from devlint.facts.text.references import is_self_attribute, last_name
from devlint.facts.text.scan import FunctionScan
from devlint.facts.values import (
    CPU,
    HOME,
    NOTHING,
    Value,
    on,
    symbol,
)
from devlint.model import Origin

_SET_BY_NAME = re.compile(r"setattr\(|\b__setattr__\(|\b__dict__\b|\bvars\(")
#: The same on any object; `vars(args)` alone is most often read.
_SETS_ON_ANY = re.compile(
    r"\bsetattr\((?!\w*(?:args|opts?|options|config|cfg|parser|namespace)\b)|\b__setattr__\("
    r"|(?:\b__dict__|\bvars\(\w+\))(?:\[[^\]\n]*\])?(?:\s*=[^=]|\.update\()"
)


def sets_by_name(text: str) -> bool:
    """Whether code sets attributes under computed names."""
    shown = "setattr" in text or "__dict__" in text or "vars(" in text  # most has none of these
    return shown and _SET_BY_NAME.search(text) is not None


class Objects(Entry):
    """Adds `settle_attributes`."""

    def settle_attributes(self, class_: ClassFacts, at_end: dict[str, Value]) -> None:
        """What `__init__` leaves in an attribute that it sets on several paths: a plain tensor, if on one of them."""
        for name, entry in class_.unregistered.items():
            known, value = class_.attributes.get(name), at_end.get(f"self.{name}")
            if entry.what != "tensor" or known is None or known.is_tensor or value is None:
                continue
            if is_made_here(value):
                class_.attributes[name] = replace(entry.value, device=CPU)
        for name, known in class_.attributes.items():
            end = at_end.get(f"self.{name}")
            if known.elements is not None and end is not None and end.kind == known.kind:
                if not class_.is_module and any(part.kind == "module" for part in guesses.opened([end])):
                    class_.attributes[name] = end  # `for part in self.parts.values(): part.to(device)`

    @cached_property
    def moved_data(self) -> MovedData:
        """The tensors whose data functions of the file take elsewhere."""
        return MovedData(self.scan, may_move)

    def spoil_reassigned(self, class_: ClassFacts) -> None:
        """Attributes that other methods assign are known only inside the method that does.

        Unless all of them make the new value of the old one (`self.mean = 0.9 * self.mean + x`), which was made in
        `__init__` the first time, or make a new one in the same way.
        """
        spoiled: set[str] = set()
        kept: set[str] = set()
        moved: set[str] = set()
        for name, method in class_.methods.items():
            if name == "__init__":
                continue
            own = self.scan.functions.get(id(method))
            again: set[int] | None = None
            for child in own.stores if own is not None else ():
                if isinstance(child.value, ast.Name) and child.value.id == "self":
                    entry = class_.unregistered.get(child.attr)
                    if entry is not None and entry.target is child:
                        continue  # a helper of `__init__` sets it
                    if entry is not None:
                        entry.reassigned = True
                    if entry is not None and entry.what in ("tensor", "tensors"):
                        again = (
                            again
                            if again is not None
                            else made_of_themselves(method) | self.made_like_first(class_, method)
                        )
                        if id(child) in again:
                            kept.add(child.attr)
                            continue
                    known = class_.attributes.get(child.attr)
                    if known is not None and known.kind == "buffer" and id(child) in made_of_themselves(method):
                        continue  # `self.step = self.step + 1`
                    if not class_.is_module and known is not None and is_new(known) and own is not None:
                        if id(child) in computed_anew(own):
                            kept.add(child.attr)
                            continue
                    if known is not None and known.kind == "parameter" and id(child) in grown_parameters(method):
                        continue
                    spoiled.add(child.attr)
            moved |= self.moved_data.attributes(own)
        if kept:
            spoiled |= kept & self.set_from_outside()
        generators = kept_generators(class_, spoiled)
        if generators:
            spoiled -= generators - self.set_from_outside()
        if not class_.is_module:
            spoiled -= self.always_made_here(class_, spoiled)
            spoiled -= self.moved_with_object(class_, spoiled)
            spoiled |= self.set_by_bases(class_)
            spoiled |= moved
        for attribute in spoiled:
            known = class_.attributes.get(attribute)
            if known is not None and known.kind != "module":
                class_.attributes[attribute] = self.restored_in(class_, attribute, known) or NOTHING

    def restored_in(self, class_: ClassFacts, name: str, first: Value) -> Value | None:
        """What an attribute holds after a method took it from a checkpoint; None where other code may bind it, too."""
        if not self.assume or class_.abroad or class_.on_host or not self.maps_checkpoints:
            return None
        found = restored.restored(self, class_, name, first, made_of_themselves)
        found = found or restored_copies(self, class_, name, first)
        if found is None or sets_by_name(self.text(class_.node)):
            return None
        elsewhere = self.set_from_outside() | self.set_by_bases(class_) | self.set_by_heirs(class_)
        return found if name not in elsewhere else None

    @cached_property
    def maps_checkpoints(self) -> bool:
        """Whether the file says where a checkpoint goes."""
        return "map_location" in self.source.text

    @cached_property
    def sets_on_any(self) -> bool:
        """Whether code of the file sets attributes under computed names on some object."""
        return sets_by_name(self.source.text) and _SETS_ON_ANY.search(self.source.text) is not None

    def heirs(self, class_: ClassFacts) -> list[ClassFacts]:
        """The classes of this file that it is a base of."""
        return [c for c in list(self.classes.values()) if not c.abroad and class_ in lineage(c)[1:]]

    def set_by_heirs(self, class_: ClassFacts) -> set[str]:
        """The attributes that methods of the classes of this file that it is a base of assign."""
        heirs = self.heirs(class_)
        scans = [self.scan.functions.get(id(method)) for heir in heirs for method in heir.methods.values()]
        return {store.attr for own in scans if own is not None for store in own.stores if is_self_attribute(store)}

    def set_by_bases(self, class_: ClassFacts) -> set[str]:
        """The attributes that methods of its bases in this file assign: `super().to(device)` moves what the base knows."""
        return {
            store.attr
            for base in lineage(class_)[1:]
            for name, method in base.methods.items()
            if name != "__init__" and (own := self.scan.functions.get(id(method))) is not None
            for store in own.stores
            if is_self_attribute(store)
        }

    def moved_with_object(self, class_: ClassFacts, names: set[str]) -> set[str]:
        """Of the attributes that methods assign, those that a method moves and nothing else does; they are where it says.

        `self.obs = self.obs.to(device)` in a `to` of the object's own: what it forgets stays on the CPU. So does what is
        made anew beside a tensor that `__init__` was given and `to` moves.
        """
        moves: dict[str, list[ast.Call | None]] = {}
        if sets_by_name(self.text(class_.node)):
            return set()
        for name, method in class_.methods.items():
            own = self.scan.functions.get(id(method))
            if name == "__init__" or own is None:
                continue
            values = {id(t): a.value for a in own.assigns if isinstance(a, ast.Assign) for t in a.targets}
            for store in own.stores:
                if isinstance(store.value, ast.Name) and store.value.id == "self" and store.attr in names:
                    moves.setdefault(store.attr, []).append(moves_itself(values.get(id(store)), store.attr))
        found: set[str] = set()
        for attribute, calls in moves.items():
            known, move = class_.attributes.get(attribute), calls[0]
            if known is None or not known.is_tensor or len(calls) != 1 or move is None:
                continue
            if not known.made and known.device != HOME:
                continue  # neither made here nor given to `__init__`
            given = move.args[0] if move.args else None
            there = on("cuda") if given is None else symbol(self.text(given), self.span(class_.node).start)
            because = (Origin(self.span(move), "moved here, by the object's own method"),)
            class_.attributes[attribute] = replace(known, device=there, made=(), because=because, moved=True)
            found.add(attribute)
        return found - self.set_from_outside() if found else found

    def always_made_here(self, class_: ClassFacts, names: set[str]) -> set[str]:
        """Of the attributes that methods assign, those that are None or a new tensor of the CPU at first and ever after.

        `if self.total is None: self.total = torch.zeros(n)`, and `self.total += x`, which leaves it where it is. The methods of
        classes that are derived from this one count, and so does code of the file that sets attributes under computed names.
        """
        found = {
            name
            for name in names
            if (known := class_.attributes.get(name)) is not None
            and (
                known.kind == "none"
                or (known.kind == "list" and known.elements == ())
                or (known.is_tensor and known.made and known.device == CPU)
            )
        }
        if not found or any(sets_by_name(self.text(c.node)) for c in lineage(class_) if not c.abroad):
            return set()
        if self.sets_on_any or any(sets_of_abroad(c) for c in lineage(class_) if c.abroad):
            return set()
        own = [method for name, method in class_.methods.items() if name != "__init__"]
        for method in (*own, *(m for heir in self.heirs(class_) for m in heir.methods.values())):
            if not found:
                break
            for child in ast.walk(method):
                if isinstance(child, ast.Assign):
                    value = child.value
                    imported = self.imports.names
                    new = makes_tensor(value, imported, "argument") or makes_tensor_of_numbers(value, imported)
                    new = new and not may_move(value)
                    empty = isinstance(value, ast.Constant) and value.value is None
                    empty = empty or (isinstance(value, ast.List) and not value.elts)
                    stored = () if new or empty else [n for target in child.targets for n in ast.walk(target)]
                elif isinstance(child, (ast.For, ast.withitem, ast.AnnAssign, ast.NamedExpr, ast.Delete)):
                    stored = list(ast.walk(child)) if not isinstance(child, ast.For) else list(ast.walk(child.target))
                else:
                    continue
                found -= {
                    n.attr for n in stored if isinstance(n, ast.Attribute) and isinstance(n.ctx, (ast.Store, ast.Del))
                }
        return found - self.set_from_outside() if found else found

    def made_like_first(self, class_: ClassFacts, method: ast.FunctionDef | ast.AsyncFunctionDef) -> set[int]:
        """The attributes that a method binds to a new tensor of the CPU, or as `__init__` does, by identity of the target."""
        found: set[int] = set()
        for child in walk(method):
            if not isinstance(child, ast.Assign) or len(child.targets) != 1:
                continue
            target = child.targets[0]
            entry = class_.unregistered.get(target.attr) if isinstance(target, ast.Attribute) else None
            if entry is None or not is_self_attribute(target):
                continue
            same = ast.dump(child.value) == ast.dump(entry.value_node) and isinstance(
                child.value, (ast.Call, ast.Tuple)
            )
            new = makes_tensor(child.value, self.imports.names) and not may_move(child.value)
            if same or (new and entry.what == "tensor"):
                found.add(id(target))
        return found

    def set_from_outside(self) -> set[str]:
        """The attributes that some code of the file sets on other objects than `self`."""
        if self._set_outside is None:
            self._set_outside = {
                n.attr for n in self.scan.stores if not (isinstance(n.value, ast.Name) and n.value.id == "self")
            }
        return self._set_outside

    _set_outside: set[str] | None = None


def made_of_themselves(method: ast.FunctionDef | ast.AsyncFunctionDef) -> set[int]:
    """The attributes of `self` that a method binds to something computed from what they held, by identity of the target.

    `self.mean += x`, `out, self.hidden = self.rnn(x, self.hidden)`; not where it may be moved, or becomes a parameter.
    """
    found: set[int] = set()
    for child in walk(method):
        if isinstance(child, ast.AugAssign) and is_self_attribute(child.target):
            found.add(id(child.target))
        elif isinstance(child, ast.Assign) and not (may_move(child.value) or registers(child.value)):
            for target in child.targets:
                for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                    if isinstance(part, ast.Attribute) and is_self_attribute(part) and reads(child.value, part.attr):
                        found.add(id(part))
    return found


def sets_of_abroad(class_: ClassFacts) -> bool:
    """Whether the methods of a class of another file set attributes under computed names."""
    return any(sets_by_name(ast.unparse(method)) for method in class_.methods.values())


def registers(node: ast.expr) -> bool:
    """Whether a module that keeps what an expression gives registers it: `nn.Parameter(self.weight, requires_grad=False)`."""
    return isinstance(node, ast.Call) and last_name(node.func) in ("Parameter", "Buffer")


def grown_parameters(method: ast.FunctionDef | ast.AsyncFunctionDef) -> set[int]:
    """The parameters of `self` that a method replaces by new ones made of what they held, by identity of the target.

    `self.weight = nn.Parameter(torch.cat([self.weight, rows]))`, also by way of one variable.
    """
    found: set[int] = set()
    assigned = [n for n in statements(method) if isinstance(n, ast.Assign) and len(n.targets) == 1]
    values = {n.targets[0].id: n.value for n in assigned if isinstance(n.targets[0], ast.Name)}
    for node in assigned:
        target, made = node.targets[0], node.value
        if not isinstance(target, ast.Attribute) or not is_self_attribute(target) or not isinstance(made, ast.Call):
            continue
        if last_name(made.func) != "Parameter" or not made.args:
            continue
        given = made.args[0]
        given = values.get(given.id, given) if isinstance(given, ast.Name) else given
        if reads(given, target.attr) and not may_move(given):
            found.add(id(target))
    return found


def moves_itself(node: ast.expr | None, attribute: str) -> ast.Call | None:
    """The call in `self.attribute.to(device)` or `self.attribute.cuda()`; None for any other expression."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.keywords:
        return None
    taken = node.func.value
    plain = isinstance(taken, ast.Attribute) and is_self_attribute(taken) and taken.attr == attribute
    return node if plain and (node.func.attr == "cuda" or (node.func.attr == "to" and len(node.args) == 1)) else None


def may_move(node: ast.expr) -> bool:
    """Whether an expression moves something, or calls a function that is not known to leave it where it is."""
    for child in walk(node):
        if isinstance(child, ast.keyword) and child.arg == "device":
            return True
        if isinstance(child, ast.Call):
            function = child.func
            if isinstance(function, ast.Name) and function.id not in ("tuple", "list", "zip"):
                return True
            name = function.attr if isinstance(function, ast.Attribute) else ""
            if name in MOVES or "device" in name or name.startswith(("to_", "_to")):
                return True
    return False


@lru_cache(8)
def computed_anew(own: FunctionScan) -> set[int]:
    """The attributes of `self` that a function binds to arithmetic on what they held, by identity of the target.

    `self.mean = 0.9 * self.mean + x`, `self.mean += x`; not where something else may be moved on the way.
    """
    found: set[int] = set()
    for node in statements(own.node):
        if isinstance(node, ast.AugAssign):
            found.add(id(node.target))
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and not may_move(node.value):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and is_self_attribute(target) and reads(node.value, target.attr):
                    found.add(id(target))
    return found

"""What a module keeps: parameters, buffers and submodules move with it; plain attributes and containers do not."""

from __future__ import annotations

import ast
from typing import TypeGuard

from devlint.facts.events import Operand
from devlint.facts.frozen import replace
from devlint.facts.idioms import aliases, given_scalars
from devlint.facts.idioms.devices import OF_TENSOR
from devlint.facts.idioms.moved_at_once import is_moved_at_once
from devlint.facts.idioms.optional_moves import is_optional_move
from devlint.facts.interpreter.arguments import Arguments
from devlint.facts.interpreter.expressions import Expressions
from devlint.facts.interpreter.operations import CPU_PLACE
from devlint.facts.project.adopted import AdoptedClass
from devlint.facts.project.exports import MOVE
from devlint.facts.text.bindings import bindings
from devlint.facts.text.classes import KEPT, ClassFacts, Container, Unregistered, What
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import is_own_attribute, is_self, is_self_attribute, last_name
from devlint.facts.text.scan import FunctionScan
from devlint.facts.text.signatures import parameter_names
from devlint.facts.text.taken_apart import is_taken_apart
from devlint.facts.values import (
    CPU,
    HOME,
    MAYBE_CPU,
    NONE,
    NOTHING,
    UNKNOWN,
    Device,
    Kind,
    Place,
    Value,
    grown,
    is_surely_accelerator,
)
from devlint.model import Origin


class Registration(Expressions):
    """Adds what assigning to an attribute of `self` means."""

    def register(
        self,
        owner: ClassFacts,
        name: str,
        value: Value,
        target: ast.expr,
        source: ast.expr | None,
        statement: ast.stmt | None,
    ) -> None:
        """`self.name = value`: what other methods will know of the attribute."""
        if not self.in_init:
            if source is not None and owner.is_module and owner.has_buffer(name):
                self.replaces(owner, target, name, source, value)
            entry = owner.unregistered.get(name)
            if entry is not None and value.kind != "none" and entry.target is not target:
                entry.reassigned = True
            return
        whole = self.function.node.body if self.function is not None and self.name.endswith(".__init__") else ()
        if isinstance(whole, list) and statement in whole and name not in owner.unregistered:
            owner.attributes.pop(name, None)  # what it was before is gone on every path
        before = owner.attributes.get(name)
        if before is not None and before.made and self.guards.holds and is_surely_accelerator(value.device):
            # it stays on the CPU only where there is no accelerator
            owner.attributes[name] = replace(before, made=())
        if not owner.is_module:
            if value.is_tensor and value.device == HOME and not self.is_kept(owner, value, source):
                value = replace(value, device=UNKNOWN, made=())
            elif value.kind in ("module", "parameter") and not value.moved:
                # whoever holds the object may move it, or the class may be a module by a base that is not seen here
                value = replace(value, device=UNKNOWN, shared=value.shared or value.device != CPU)
            owner.set_attribute(name, value)
            return
        if value.type_name == "moved" and value.kind == "tensors":
            self.built.setdefault(owner.name, []).append(value.device)  # a part of unknown class that was put somewhere
        if value.kind == "module":
            self.registered(owner, value)
            home = HOME if value.device else UNKNOWN
            if value.moved and is_one_card(value.device):
                home = value.device  # a part of a model that is spread over cards
            owner.set_attribute(name, replace(value, device=home, because=(), moved=False))
            self.unwrap(owner, source)
            return
        second = aliases.second_name(self, owner, name, value, target, source)
        if second is not None:
            owner.set_attribute(name, second)
            return
        if value.kind in ("parameter", "buffer") or (value.is_tensor and owner.has_buffer(name)):
            self.registered(owner, value)
            if source is not None and name in owner.unregistered and reads(source, name):
                if isinstance(whole, list) and stays_on_other_path(whole, statement, name):
                    return
                del owner.unregistered[name]  # the plain tensor is what the parameter is made of
                owner.attributes.pop(name, None)
            if value.kind not in ("parameter", "buffer"):
                value = replace(value, kind="buffer")
            owner.set_attribute(name, replace(value, device=HOME, made=(), because=(), moved=False))
            return
        if value.kind == "device" and value.made == () and value.type_name == OF_TENSOR and value.device == CPU:
            # where the tensors are that the module is made with
            owner.set_attribute(name, replace(value, device=UNKNOWN))
            return
        entry = owner.unregistered.get(name)
        init = self.function.node if self.function is not None else None
        if entry is not None and value.moved and is_optional_move(init, statement, name):
            entry.reassigned = True
            return  # where the device is not given it is what it was
        what = holds(value)
        if value.is_tensor or (value.kind == "distribution" and value.made):
            kept_plain = is_made_here(value) or (
                self.is_given(value, source) and not self.is_given_number(owner, name, source)
            )
            if kept_plain and statement is not None and source is not None:
                origin = Origin(self.span(target), KEPT)
                dimensions = (
                    self.is_made_whole(value, source) if value.made else self.has_dimensions(owner, name, source)
                )
                if value.zero_dim is None and dimensions:
                    value = replace(value, zero_dim=False)
                kept = replace(value, attribute=owner.key(name), because=(origin, *value.because[:1]))
                entry = Unregistered(statement, target, source, kept, "tensor", None)
                if value.kind == "distribution":
                    entry.what, entry.container = "tensors", "distribution"
                owner.unregistered.setdefault(name, entry)
                # what else it may be is not known, and does not move either
                owner.set_attribute(name, replace(kept, device=CPU))
            else:
                owner.set_attribute(name, replace(value, device=UNKNOWN, made=(), because=()))
            return
        if (
            what is not None
            and source is not None
            and (parts := [p for p in written_out(source) if not isinstance(p, (ast.Constant, ast.BinOp))])
            and all(is_below_self(self.read_for(part)) for part in parts)
        ):
            owner.set_attribute(name, self.contained(value, None))  # second names of what moves with the module
            return
        if what == "modules" and all(is_argument(v) for v in contents(value) if v.kind == "module"):
            owner.set_attribute(name, self.contained(value, None))  # whoever made them moves them
            return
        if what is not None and statement is not None and source is not None:
            container = container_of(value)
            owner.unregistered.setdefault(
                name,
                Unregistered(statement, target, source, value, what, container),
            )
            owner.set_attribute(name, self.contained(value, owner.key(name) if what == "tensors" else None))
            return
        if value.kind in ("list", "dict") and source is not None and statement is not None:
            self.empty_containers[(owner.name, name)] = (statement, target, source, value)
        owner.set_attribute(name, value)

    def read_for(self, node: ast.expr) -> ast.expr:
        """What a local name that is bound once stands for, or is a part of: `self.layers[:4]` for `stage` after
        `stage = self.layers[:4]`; any other expression itself."""
        own = self.scan.functions.get(id(self.function.node)) if self.function is not None else None
        if own is None or not isinstance(node, ast.Name) or own.bound.get(node.id) != 1:
            return node
        given = bindings(own).get(node.id, ()) if node.id not in parameter_names(own.node) else ()
        return given[0] if given else node

    def is_registered_elsewhere(self, node: ast.Call, name: str) -> bool:
        """Whether another call of the class around registers a buffer of that name: this one comes in its place."""
        return any(
            site.call is not node
            and site.call.args
            and is_text(site.call.args[0])
            and site.call.args[0].value == name
            and site.caller is not None
            and self.owner is not None
            and site.caller.owner is self.owner.node
            for site in self.scan.calls.get("register_buffer", ())
        )

    def replaces(self, owner: ClassFacts, node: ast.expr, name: str, source: ast.expr, value: Value) -> None:
        """A method puts a new tensor of the CPU in the place of a buffer, which may have moved with the module."""
        if not is_new(value) or self.in_init or self.host or not self.assume or not owner.is_module:
            return
        if any(creation.function == "torch.from_numpy" for creation in value.made):
            return  # what is packed with numpy is packed on the host, before the module moves
        if self.function is not None and is_moved_at_once(self.function.node, node, name):
            return
        level = self.conflict(CPU, HOME)
        if level is None:
            return
        because = (Origin(self.span(node), f"`self.{name}` is a buffer, which moves with the module"),)
        other = Operand(self.span(node), node, f"self.{name}", Value("buffer", HOME, because=because))
        off = self.operand(source, value)
        self.emit_meet(node, "buffer", name, off, other, level, (*value.because[:1], *because))

    def is_kept(self, owner: ClassFacts, value: Value, source: ast.expr | None) -> bool:
        """Whether a plain class keeps a tensor that it is given by an annotation: it is where its maker has it."""
        if not isinstance(source, ast.Name) or self.function is None or owner.on_host or self.host or not self.assume:
            return False
        assumed = self.assumed.get(value.because[0].span) if value.because else None
        evidence = self.evidence.get(id(self.function.node))
        return assumed is not None and evidence is not None and assumed[1] in evidence.annotated

    def is_given(self, value: Value, source: ast.expr | None) -> bool:
        """Whether a value is a tensor that `__init__` is given, by its annotation, or is computed from such tensors alone."""
        if source is None or value.kind != "tensor" or value.device != CPU or value.moved:
            return False
        init = self.function.node if self.function is not None else None
        arguments = (*init.args.args, *init.args.kwonlyargs) if init is not None else ()
        given = {a.arg for a in arguments if is_plain_tensor(a.annotation)}
        if isinstance(source, ast.Name):
            return source.id in given
        read = {n.id for n in walk(source) if isinstance(n, ast.Name)}
        tensors = {name for name in read if (known := self.state.env.get(name)) is not None and known.is_tensor}
        return (
            bool(tensors)
            and tensors <= given
            and "self" not in read
            and not any(isinstance(n, ast.Call) and "device" in {k.arg for k in n.keywords} for n in walk(source))
        )

    def is_given_number(self, owner: ClassFacts, name: str, source: ast.expr | None) -> bool:
        """Whether what `__init__` is given is a number by its default, and no method takes it apart like one of several."""
        init = self.function.node if self.function is not None else None
        if source is None or init is None or isinstance(init, ast.Lambda):
            return False
        is_number = given_scalars.is_made_of_numbers(init, source, self.imports)
        return is_number and not self.has_dimensions(owner, name, source)

    def has_dimensions(self, owner: ClassFacts, name: str, source: ast.expr) -> bool:
        """Whether the methods of a class take apart the tensor that `__init__` is given and keeps as `self.name`."""
        init = owner.methods.get("__init__")
        parameter = source.id if isinstance(source, ast.Name) else None
        others = (method for method in owner.methods.values() if method is not init)
        return init is not None and is_taken_apart((init, *others), name, parameter)

    def is_made_whole(self, value: Value, source: ast.expr) -> bool:
        """Whether a value that may be given is else a new tensor with dimensions, as it was made: `scale or torch.ones(3)`."""
        own = self.scan.functions.get(id(self.function.node)) if self.function is not None else None
        sides = sides_of(source)
        if isinstance(source, ast.Name) and own is not None:
            assigns = [a for a in own.assigns if isinstance(a, ast.Assign)]
            bound = [a.value for a in assigns if any(isinstance(t, ast.Name) and t.id == source.id for t in a.targets)]
            sides = [side for value_node in bound for side in sides_of(value_node)]
        return all(made.zero_dim is False and any(made.node is side for side in sides) for made in value.made)

    def contained(self, value: Value, attribute: str | None) -> Value:
        """A plain container of an instance, as other methods see it: its tensors stay on the CPU, its modules are unknown."""

        def seen(element: Value) -> Value:
            if element.kind in ("list", "tuple", "dict"):
                return self.contained(element, attribute)
            if attribute is not None:
                return replace(element, attribute=attribute)
            return replace(element, device=UNKNOWN, made=())

        if isinstance(value.elements, tuple):
            return replace(value, elements=tuple(seen(e) for e in value.elements))
        if isinstance(value.elements, dict):
            return replace(value, elements={k: seen(e) for k, e in value.elements.items()})
        return value

    def moves_anything(self, class_: ClassFacts) -> bool:
        """Whether some method of a class, or of a base of it, moves something."""
        moves = class_.moves if isinstance(class_, AdoptedClass) else MOVE.search(self.text(class_.node)) is not None
        return moves or any(map(self.moves_anything, class_.local_bases))

    def registered(self, owner: ClassFacts, value: Value) -> None:
        """A parameter or submodule joins the module: its device is the module's when it is made."""
        if not value.device and value.kind == "module":
            known = value.type_name
            if known is not None and known.startswith("torch.nn."):
                return  # a module without parameters
        if is_argument(value):
            return  # where it is, and whether it is a module at all, shows where an object is made
        is_buffer = value.kind == "buffer" or (value.is_tensor and value.kind != "parameter")
        if is_buffer and value.device == CPU and (self.muted or self.moves_anything(owner)):
            return  # buffers alone, as losses have them: methods may move them where they are read, or not read them
        self.built.setdefault(owner.name, []).append(value.device)

    def grow(self, owner: ClassFacts, name: str, value: Value, target: ast.expr, source: ast.expr) -> None:
        """`self.name.append(value)` or `self.name[k] = value` in `__init__`."""
        if not self.in_init or not owner.is_module:
            return
        what = kind_of(value)
        made = self.empty_containers.get((owner.name, name))
        if what is None or made is None or name in owner.unregistered or is_below_self(source):
            return
        if value.ident is not None and any(
            known.ident == value.ident and path.startswith("self.") and path[5:].isidentifier()
            for path, known in self.state.env.items()
        ):
            return  # an attribute of its own registers it
        statement, attribute, source, container = made
        kind: Container = "dict" if container.kind == "dict" else "list"
        entry = Unregistered(statement, attribute, source, container, what, kind, appended=True, placed=value.moved)
        owner.unregistered[name] = entry
        holding = Value(container.kind)
        if what == "tensors":
            origin = Origin(self.span(attribute), f"this plain {kind} does not move with the module")
            kept = replace(value, attribute=owner.key(name), because=(origin, *value.because[:1]))
            holding = grown([kept]) if kind == "list" else Value("dict", elements={"*": kept})
        owner.attributes[name] = holding

    def append(self, path: str, container: Value, given: Value) -> None:
        super().append(path, container, given)
        if not path.startswith("self.") or self.owner is None:
            return
        own = self.scan.functions.get(id(self.function.node)) if self.function is not None else None
        if own is not None and is_chosen_from_self(own, path[5:]):
            return
        if not any(known is given for name, known in self.state.env.items() if name.startswith("self.")):
            self.grow(self.owner, path[5:], given, ast.Name(id="_"), ast.Name(id="_"))

    def unwrap(self, owner: ClassFacts, source: ast.expr | None) -> None:
        """`self.x = nn.ModuleList(self.y)`: what is in `self.y` is registered after all, also by way of a variable or of a list
        that a loop over it fills; or `self.x` is an item of `self.y`, by way of a variable or of a method that gives one."""
        if isinstance(source, (ast.IfExp, ast.BoolOp)):  # `nn.ModuleList(self.y) if self.y else None`
            for side in sides_of(source):
                self.unwrap(owner, side)
            return
        if not isinstance(source, (ast.Call, ast.Name)) or not owner.unregistered:
            return
        own = self.scan.functions.get(id(self.function.node)) if self.function is not None else None
        assigns = [a for a in own.assigns if isinstance(a, ast.Assign)] if own is not None else []
        names = {n.id for n in walk(source) if isinstance(n, ast.Name)}
        said = [a.value for a in assigns if any(isinstance(t, ast.Name) and t.id in names for t in a.targets)]
        said += filled_from(own, names) if own is not None else []
        # a variable that stands for an item, as long as more than a number is read of it
        whole = set(names_as_a_whole(source))
        chosen = [a.value for a in assigns if any(isinstance(t, ast.Name) and t.id in whole for t in a.targets)]
        said += items_given_by(owner, source) + [item for each in chosen for item in items_returned_by(owner, each)]
        for child in (n for part in (source, *said) for n in walk(part)):
            if isinstance(child, ast.Attribute) and isinstance(child.value, ast.Name) and child.value.id == "self":
                entry = owner.unregistered.get(child.attr)
                if entry is not None:
                    entry.wrapped = True

    def call_register(self, node: ast.Call, name: str, arguments: Arguments) -> Value:
        given = arguments.get("name", 0)
        tensor = arguments.get("tensor" if name == "register_buffer" else "param", 1)
        if given is None or self.owner is None:
            return NONE
        if not is_text(given[0]):
            own = self.scan.functions.get(id(self.function.node)) if self.function is not None else None
            listed = own is not None and any(last_name(call.func) == "named_buffers" for call in own.calls)
            if listed and tensor is not None and name == "register_buffer":
                self.replaces(self.owner, node, self.text(given[0]), tensor[0], tensor[1])
            return NONE
        attribute = str(given[0].value)
        kind: Kind = "buffer" if name == "register_buffer" else "parameter"
        value = tensor[1] if tensor is not None else NOTHING
        if kind == "buffer":
            self.owner.buffers.add(attribute)
        if value.kind != "none":
            self.owner.unregistered.pop(attribute, None)
            # one that a step puts on the CPU stays there, as long as nothing moves the whole module after it
            on_cpu = kind == "buffer" and not self.in_init and value.device == CPU and value.moved
            if kind == "buffer" and tensor is not None and self.is_registered_elsewhere(node, attribute):
                self.replaces(self.owner, node, attribute, tensor[0], value)
            self.owner.attributes[attribute] = Value(kind, UNKNOWN if on_cpu else HOME, value.zero_dim)
            self.registered(self.owner, replace(value, kind=kind))
            self.bind(f"self.{attribute}", replace(value, kind=kind) if value.is_tensor else Value(kind, UNKNOWN))
        return NONE

    def call_add_state(self, arguments: Arguments) -> Value:
        """`self.add_state("total", default=torch.tensor(0.0))` of a metric, which moves with it [torchmetrics/metric.py].

        So do the tensors of a list, `default=[]`, which `update` appends.
        """
        given, default = arguments.get("name", 0), arguments.get("default", 1)
        if given is None or default is None or not is_text(given[0]) or self.owner is None:
            return NONE
        if default[1].is_tensor:
            self.owner.attributes[str(given[0].value)] = Value("buffer", HOME, default[1].zero_dim)
        elif default[1].kind == "list" and default[1].elements == ():
            origin = Origin(self.span(given[0]), "this is a state of the metric, and its tensors move with the metric")
            part = Value("tensor", HOME, because=(origin,))
            self.owner.attributes[str(given[0].value)] = Value("list", type_name="comprehension", elements=(part,))
        return NONE


def is_one_card(device: Device) -> bool:
    """Whether a device is one card, named by its index."""
    return len(device) == 1 and all(isinstance(place, Place) and place.card is not None for place in device)


def is_made_here(value: Value) -> bool:
    """Whether a value is a new tensor of the CPU, on one path at least, and on no other one that is known to be moved."""
    placed = value.is_tensor or value.kind == "distribution"
    return placed and bool(value.made) and CPU_PLACE in value.device and value.device <= MAYBE_CPU


def is_plain_tensor(node: ast.expr | None) -> bool:
    """Whether an annotation is `Tensor` or `torch.Tensor`, and nothing besides."""
    return (node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")) == "Tensor"


def is_text(node: ast.expr) -> TypeGuard[ast.Constant]:
    """Whether an expression is a text as it stands."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def container_of(value: Value) -> Container:
    """The form of a container that holds what should be registered."""
    if value.type_name == "comprehension":
        return "comprehension"
    return "dict" if value.kind == "dict" else "tuple" if value.kind == "tuple" else "list"


def is_below_self(node: ast.expr) -> bool:
    """Whether an expression reads something that `self` holds, at any depth: `self.conv.weight`, `self.layers[0].bias`."""
    return isinstance(node, (ast.Attribute, ast.Subscript)) and is_self(root_of(node))


def root_of(node: ast.expr) -> ast.expr:
    """What a chain of attributes and subscripts starts from: `layer` of `layer[0].conv`."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node


def sides_of(node: ast.expr) -> list[ast.expr]:
    """What an expression chooses from: `a` and `b` of `a if c else b` and of `a or b`; the expression itself else."""
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    return node.values if isinstance(node, ast.BoolOp) else [node]


def written_out(node: ast.expr) -> list[ast.expr]:
    """The items of a list, tuple or dictionary as they are written, those of lists in it too, `self` left out; what a
    comprehension only chooses from, or whose parts it takes, as `self.layers` of `[layer[0] for layer in self.layers]`, or
    a call of `list` copies; those of both sides of a sum of lists; none of anything else."""
    parts = node.elts if isinstance(node, (ast.List, ast.Tuple)) else node.values if isinstance(node, ast.Dict) else []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = [node.left, node.right]
        return [part for side in sides for part in written_out(side) or [side]] if all(map(is_list, sides)) else []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("list", "tuple", "sorted"):
        parts = node.args[:1]
    elif isinstance(node, ast.DictComp) and isinstance(node.value, ast.Subscript):
        parts = [node.value]
    elif isinstance(node, ast.ListComp):
        root = root_of(node.elt)
        names = [g for g in node.generators if isinstance(g.target, ast.Name)] if isinstance(root, ast.Name) else []
        parts = [g.iter for g in names if last_name(g.target) == last_name(root)]
        if not parts and isinstance(node.elt, ast.Subscript):
            parts = [node.elt]
    found = [part for part in parts if not (isinstance(part, ast.Name) and part.id == "self")]
    return [item for part in found for item in (written_out(part) or [part])]


def is_list(node: ast.expr) -> bool:
    """Whether an expression writes down a list or tuple, or copies one, or is a sum of such."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add) and is_list(node.left) and is_list(node.right)
    copies = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("list", "tuple")
    return copies or isinstance(node, (ast.List, ast.Tuple, ast.ListComp))


def reads(node: ast.expr, name: str) -> bool:
    """Whether an expression reads `self.name`."""
    return any(is_own_attribute(child, name) for child in walk(node) if isinstance(child, ast.expr))


def stays_on_other_path(body: list[ast.stmt], statement: ast.stmt | None, name: str) -> bool:
    """Whether one arm of an `if` of a constructor makes the plain tensor a parameter, and without it nothing more happens to
    it: `if learned: self.bias = nn.Parameter(self.bias)`.
    """
    others = [each for each in body if not (isinstance(each, ast.If) and statement in each.body and not each.orelse)]
    if len(others) != len(body) - 1:
        return False
    return sum(_keeps(node, name) for each in others for node in walk(each)) == 1


def _keeps(node: ast.AST, name: str) -> bool:
    """Whether code stores `self.name`, or gives the name to what registers something by it."""
    if isinstance(node, ast.Constant):
        return node.value == name
    return (
        isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)) and is_own_attribute(node, name)
    )


def kind_of(value: Value) -> What | None:
    if value.kind == "module":
        stateless = not value.device and (value.type_name or "").startswith("torch.nn.")
        return None if stateless or value.moved else "modules"
    if value.kind == "parameter":
        return None if value.type_name == "borrowed" else "parameters"
    if value.kind == "tensor" and value.device == CPU:
        return "tensors"
    if value.kind in ("list", "tuple"):  # `[[norm, layer] for _ in range(depth)]`
        made = all(v.ident is not None and not v.shared for v in contents(value) if v.kind == "module")
        return "modules" if made and holds(value) == "modules" else None
    return None


def is_argument(value: Value) -> bool:
    """Whether a module is an argument of the function, as nothing else is known of it."""
    return value.ident is None and any("is an argument" in origin.text for origin in value.because[:1])


def contents(value: Value) -> list[Value]:
    """The known elements of a container, those of lists in it too."""
    return [part for e in value.parts for part in (contents(e) if e.kind in ("list", "tuple") else [e])]


def holds(value: Value) -> What | None:
    """What a plain container holds that a module should register: modules, parameters or tensors."""
    if value.kind not in ("list", "tuple", "dict"):
        return None
    elements = value.elements
    inner = list(elements.values()) if isinstance(elements, dict) else list(elements or ())
    if not inner:
        return None
    kinds = {kind_of(v) for v in inner}
    if kinds == {"modules"} or ("modules" in kinds and kinds <= {"modules", None} and value.kind != "dict"):
        return "modules"
    if kinds == {"parameters"}:
        return "parameters"
    if kinds == {"tensors"}:
        return "tensors"
    return None


def filled_from(own: FunctionScan, names: set[str]) -> list[ast.expr]:
    """What is appended to lists of some names, and what the loops take it from: `for x in self.y: found.append(x)`."""
    calls = [
        call
        for call in own.calls
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("append", "extend", "insert")
    ]
    given = [a for call in calls if last_name(call.func.value) in names for a in call.args]  # type: ignore[attr-defined]
    found = {n.id for part in given for n in walk(part) if isinstance(n, ast.Name)}
    return given + [
        loop.iter
        for loop in own.loops
        if not found.isdisjoint(n.id for n in walk(loop.target) if isinstance(n, ast.Name))
    ]


def items_given_by(owner: ClassFacts, source: ast.expr) -> list[ast.expr]:
    """The items of attributes of `self` that a method of the same object reads which a call runs: `self._choose(name)`."""
    method = method_run_by(owner, source)
    return [n for n in walk(method) if isinstance(n, ast.Subscript) and is_self_attribute(n.value)] if method else []


def items_returned_by(owner: ClassFacts, source: ast.expr) -> list[ast.expr]:
    """Those that such a method returns as they are, by themselves or by way of a variable."""
    method = method_run_by(owner, source)
    nodes = list(walk(method)) if method is not None else []
    given = [n.value for n in nodes if isinstance(n, ast.Return)]
    names = {n.id for n in given if isinstance(n, ast.Name)}
    bound = [n.value for n in nodes if isinstance(n, ast.Assign) and any(last_name(t) in names for t in n.targets)]
    return [n for n in (*given, *bound) if isinstance(n, ast.Subscript) and is_self_attribute(n.value)]


def method_run_by(owner: ClassFacts, source: ast.expr) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The method of the same object that a call runs."""
    called = source.func if isinstance(source, ast.Call) else None
    return owner.methods.get(called.attr) if isinstance(called, ast.Attribute) and is_self(called.value) else None


def names_as_a_whole(node: ast.expr) -> list[str]:
    """The names in an expression that stand by themselves, or of which a method is called: `net` of `net.children()`, and
    not of `net.width`."""
    nodes = list(walk(node))
    called = {id(n.func) for n in nodes if isinstance(n, ast.Call)}
    read = {id(n.value) for n in nodes if isinstance(n, ast.Attribute) and id(n) not in called}
    return [n.id for n in nodes if isinstance(n, ast.Name) and id(n) not in read]


def is_chosen_from_self(own: FunctionScan, name: str) -> bool:
    """Whether a list of that name gets what a loop goes through in another attribute of `self`, or parts of that.

    `for layer in self.layers: if layer.used: self.used.append(layer[0])`. Parts of what a plain list holds are registered
    nowhere, and what else the list gets may be new.
    """
    given = [
        (root_of(argument), argument, call.lineno)
        for call in own.calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "append" and last_name(call.func.value) == name
        for argument in call.args
    ]
    names = [(root.id, row) for root, _, row in given if isinstance(root, ast.Name)]
    takes_parts = any(root is not argument for root, argument, _ in given)
    turns = [loop.target.id for loop in own.loops if isinstance(loop.target, ast.Name)]
    if takes_parts and (len(names) < len(given) or any(own.bound.get(n, 0) > turns.count(n) for n, _ in names)):
        return False
    return any(
        isinstance(loop, ast.For)
        and isinstance(loop.target, ast.Name)
        and any(loop.target.id == each and loop.lineno <= row <= (loop.end_lineno or row) for each, row in names)
        and any(is_below_self(part) for part in walk(loop.iter) if isinstance(part, ast.expr))
        and not (takes_parts and is_written_list(own, last_name(loop.iter)))
        for loop in (own.loops if names else ())
    )


def is_written_list(own: FunctionScan, name: str) -> bool:
    """Whether a function binds `self.name` to a list or dict that it writes down."""
    return any(
        isinstance(each, ast.Assign)
        and isinstance(each.value, (ast.List, ast.Dict, ast.ListComp, ast.DictComp, ast.Tuple))
        and any(is_own_attribute(target, name) for target in each.targets)
        for each in own.assigns
    )


def is_new(value: Value) -> bool:
    """Whether a tensor of one dimension at least was made on the CPU, and is nothing else on any path."""
    return value.kind == "tensor" and bool(value.made) and value.device == CPU and value.zero_dim is False

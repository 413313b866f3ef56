"""Definitions of functions and classes: what runs where they stand, and the `__init__` that shows the attributes."""

from __future__ import annotations

import ast

from devlint.facts.frozen import replace
from devlint.facts.idioms.api_calls import note_api
from devlint.facts.idioms.devices import parse_device
from devlint.facts.idioms.kept_by_hooks import kept_by_hooks
from devlint.facts.idioms.placed import placed_models
from devlint.facts.idioms.placed_tensors import placed_tensors
from devlint.facts.idioms.trained_leaves import trained_leaves
from devlint.facts.interpreter.objects import sets_by_name
from devlint.facts.interpreter.summaries import Summaries
from devlint.facts.text.classes import ClassFacts
from devlint.facts.text.collect import collect_class
from devlint.facts.text.defined import Function
from devlint.facts.values import NOTHING, UNKNOWN, Value


class Definitions(Summaries):
    """Adds `define`, `define_class` and `prepare`."""

    def define(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """A nested `def`, or one at module level (registered before, bound here)."""
        self.defaults(node)
        self.decorators(node)
        if self.function is None:
            self.bind(node.name, Value("function", type_name=self.defined.get(id(node), node.name)))
            return
        key = name = f"{self.name}.{node.name}"
        known = self.functions.get(key)
        if known is not None and known.node is not node:
            key = f"{name}@{node.lineno}"  # another one of that name, of another branch or of a function defined again
            known = self.functions.get(key)
        if known is None:
            known = self.functions[key] = Function(node, name, self.owner)
        known.closure = self.closure_here()
        self.bind(node.name, Value("function", type_name=key))

    def closure_here(self) -> dict[str, Value]:
        """What a function that is defined here finds in the ones around it."""
        assert self.function is not None
        outer = self.scan.functions.get(id(self.function.node))
        closure = {**self.function.closure, **self.state.env}
        for path, value in closure.items():
            if outer is not None and outer.bound.get(path, 0) > 1:
                closure[path] = NOTHING  # what it holds when the function is called is not known
            elif value.kind == "module" and value.shared:
                closure[path] = replace(value, device=UNKNOWN)  # whoever holds it moves it before the call
        return closure

    def decorators(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        """Decorators run where the function or class is defined."""
        for decorator in node.decorator_list:
            self.decorating = True
            value = self.evaluate(decorator)
            self.decorating = False
            if isinstance(decorator, ast.Name) and (value.type_name or "").startswith("torch."):
                note_api(self, decorator, value.type_name or "", None)

    def defaults(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Defaults such as `device="cuda"` are noted as defaults, whoever uses the parameter."""
        arguments = node.args
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self.note_default(default)

    def note_default(self, node: ast.expr) -> None:
        self.in_default = True
        value = self.evaluate(node)
        self.in_default = False
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self._emit_literal(node, parse_device(node.value), "default", None, "device")
        elif value.kind == "string":
            self.note_literal(node, value, "default", None, "device")

    def define_class(self, node: ast.ClassDef) -> None:
        self.decorators(node)
        self.bind(node.name, Value("class", type_name=node.name))
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and statement.value is not None:
                self.note_default(statement.value)
            elif isinstance(statement, ast.Assign):
                self.note_class_attribute(node, statement, self.evaluate(statement.value))
            elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.defaults(statement)
                self.decorators(statement)
        if self.function is not None:
            self.define_local_class(node)

    def note_class_attribute(self, node: ast.ClassDef, statement: ast.Assign, value: Value) -> None:
        """`STD = torch.tensor([0.2, 0.3])` in the body of a module's class: one tensor for all, which moves with none."""
        class_ = self.classes.get(node.name)
        target = statement.targets[0]
        if class_ is None or class_.node is not node or not class_.is_module or not isinstance(target, ast.Name):
            return
        if value.is_tensor and value.made:
            class_.attributes.setdefault(target.id, value)

    def define_local_class(self, node: ast.ClassDef) -> None:
        """A class that a function makes: its methods see the names of the function, and are run like all others."""
        known = self.classes.get(node.name)
        if known is not None and known.node is not node:
            self.bind(node.name, NOTHING)  # two classes of one name, told apart by where they are defined
            return
        if known is not None:
            return
        class_ = self.classes[node.name] = collect_class(node, self.classes, self.imports)
        for name, method in class_.methods.items():
            self.method_function(class_, name, method).closure = self.closure_here()
        self.prepare(class_)

    def prepare(self, class_: ClassFacts) -> None:
        """Run `__init__` once, so that the attributes are known."""
        if class_.name in self.ready:
            return
        self.ready.add(class_.name)
        for base in class_.local_bases:
            self.prepare(base)
        init = class_.methods.get("__init__")
        if init is None:
            self.place_models(class_)
            return
        saved, self.in_init = self.in_init, True
        host, self.host = self.host, class_.is_module  # a module is built on one device
        try:
            self.run(self.method_function(class_, "__init__", init), None)
            self.settle_attributes(class_, self.ended.env)
        finally:
            self.in_init, self.host = saved, host
        self.spoil_reassigned(class_)
        self.place_models(class_)

    def place_models(self, class_: ClassFacts) -> None:
        """What any method of a plain class puts on a device, or makes to train it, the others find there."""
        if class_.abroad or class_.is_module or class_.on_host or not self.assume:
            return
        for name, value in placed_models(self, class_):
            class_.attributes[name] = value
        for name, value in kept_by_hooks(self, class_, self.set_from_outside()):
            class_.attributes[name] = value
        placed = list(placed_tensors(self, class_, self.set_from_outside()))
        if placed and not sets_by_name(self.text(class_.node)):
            by_heirs = self.set_by_heirs(class_)
            class_.attributes.update((name, value) for name, value in placed if name not in by_heirs)
        for name, value in trained_leaves(self, class_, self.set_from_outside()):
            class_.attributes[name] = value

    def method_function(self, class_: ClassFacts, name: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
        qualname = f"{class_.name}.{name}"
        known = self.functions.get(qualname)
        if known is None:
            known = self.functions[qualname] = Function(node, qualname, class_)
        return known

    def hand_over(self, node: ast.expr, value: Value) -> None:
        function: Function | None = None
        if value.kind == "function" and value.type_name is not None:
            function = self.functions.get(value.type_name)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            method = self.owner.methods.get(node.attr) if self.owner is not None else None
            if self.owner is not None and method is not None:
                function = self.method_function(self.owner, node.attr, method)
        if function is not None:
            function.callers.append(self.guards)

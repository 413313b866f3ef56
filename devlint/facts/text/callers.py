"""Who calls the functions of a file: which of them run on the host only, and whose arguments may be on an accelerator.

The default assumption, that a function's tensor arguments may be on an accelerator, is right for what belongs to a
model's computation. A helper that saves, plots, scores or prepares data gets host data from its callers just as well, so
that reading an argument there with numpy is no fault by itself. This module weighs what the file shows.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cached_property

from devlint.facts.text.annotations import is_tensor_annotation
from devlint.facts.text.classes import ClassFacts, lineage
from devlint.facts.text.defined import Function
from devlint.facts.text.method_names import GIVES_MODULE, OFF_HOST_MODULE, OFF_HOST_TENSOR, TO_HOST
from devlint.facts.text.nodes import asks_name, children, statements, walk
from devlint.facts.text.references import (
    aliases,
    chain,
    given,
    is_own_attribute,
    is_property,
    is_self_attribute,
    is_static,
    last_name,
)
from devlint.facts.text.scan import FunctionScan, Scan, Site
from devlint.facts.text.signatures import parameter_of, positional_names
from devlint.facts.text.signs import (
    HOST_LIBRARIES,
    is_model_call,
    is_model_name,
    is_sign,
    moves,
    prepares_data,
    runs_something,
)
from devlint.facts.text.trained import trains_tensors

#: Methods that Python or torch call on the host by contract.
_HOST_METHODS = frozenset({"__getitem__", "__getitems__", "__len__"})
#: What runs a function that it is given on the host, with arguments of its own.
_POOLS = (
    "submit", "map", "imap", "imap_unordered", "starmap", "apply_async", "map_async", "starmap_async", "Process", "Thread",
)  # fmt: skip


_LOSS = re.compile(r"(^|[._])(loss|losses|criterion)(?=[._]|$)|Loss(?=\.|$)")


#: Methods of a module that give the module itself.
_GIVE_ITSELF = OFF_HOST_MODULE | GIVES_MODULE | {"cpu"}


def itself(node: ast.expr | None) -> ast.expr | None:
    """What makes the module that an expression gives: `Net()` of `Net().to(device).eval()`.

    Not of what wraps one: `DataParallel(Net())` moves what its calls are given.
    """
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GIVE_ITSELF:
        if not isinstance(node.func.value, ast.Call):
            break
        node = node.func.value
    return node


class Callers:
    """What one file shows of the calls of its functions."""

    def __init__(
        self, scan: Scan, classes: Mapping[str, ClassFacts], collators: set[str], path: str, imports: Mapping[str, str]
    ) -> None:
        self.scan = scan
        self.imports = imports
        self.path = path
        self.classes = classes
        self.collators = collators
        self._host: dict[int, bool] = {}
        self._signs: tuple[set[int], bool] | None = None
        self._signed: dict[int, bool] = {}  # by the identity of a function
        self._placed: set[str] | None = None
        self._pooled: set[str] | None = None
        self._pure: bool | None = None
        self._receivers: set[int] | None = None  # what is moved, by identity
        self._training: dict[int, bool] = {}  # whether a class trains tensors, by the identity of its node

    # -- who calls ----------------------------------------------------------------------------------------------------

    def sites(self, function: Function) -> list[Site]:
        """The calls of a function that the file shows, those from its own body left out."""
        name = function.name.rsplit(".", 1)[-1]
        if name == "__call__" and function.owner is not None:
            return [site for made in self.instances(function.owner.name) for site in self.scan.calls.get(made, ())]
        owner = function.owner if function.is_method else None
        found: list[Site] = []
        objects = self.instances(owner.name) if owner is not None else set()
        if owner is not None and is_static(function.node):
            objects.add(owner.name)
        called = [name if name != "__init__" or owner is None else owner.name]
        if function.owner is None and "." not in function.name:
            called += self.second_names.get(name, ())
        for site in (site for each in called for site in self.scan.calls.get(each, ())):
            target, caller = site.call.func, site.caller
            if caller is not None and caller.node is function.node:
                continue
            if function.owner is None and isinstance(target, ast.Attribute):
                continue  # a method of the same name: `x.mean()`
            if owner is not None and name != "__init__":
                if not isinstance(target, ast.Attribute):
                    continue
                receiver = target.value.id if isinstance(target.value, ast.Name) else getattr(target.value, "attr", "")
                if receiver in ("self", "cls"):
                    if caller is None or not self.related(caller.owner, owner):
                        continue
                elif receiver not in objects:
                    continue  # an object of some class
            found.append(site)
        return found

    @cached_property
    def second_names(self) -> dict[str, list[str]]:
        """The further names that the module's body gives to something that has one: `checksum = _fast_checksum`."""
        found: dict[str, list[str]] = {}
        for statement in self.scan.tree.body if self.scan.tree is not None else ():
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Name):
                names = [t.id for t in statement.targets if isinstance(t, ast.Name)]
                found.setdefault(statement.value.id, []).extend(names)
        return found

    def instances(self, class_name: str) -> set[str]:
        """The last names that objects of a class are bound to: `metric` of `self.metric = Metric()`."""
        found = self._bound_to_calls.get(class_name, set())
        return found.union(*(self._read_from.get(name, ()) for name in found))

    @cached_property
    def _bound_to_calls(self) -> dict[str, set[str]]:
        """The last names that are bound to calls of a plain name, by that name."""
        found: dict[str, set[str]] = {}
        for node in statements(self.scan.tree) if self.scan.tree is not None else ():
            made = itself(node.value) if isinstance(node, ast.Assign) else None
            if isinstance(node, ast.Assign) and isinstance(made, ast.Call) and isinstance(made.func, ast.Name):
                found.setdefault(made.func.id, set()).update(set(map(last_name, node.targets)) - {""})
        return found

    @cached_property
    def _read_from(self) -> dict[str, set[str]]:
        """The plain names that are given an attribute, by that attribute's name: `model` of `model = self.model_`."""
        return aliases(self.scan.tree) if self.scan.tree is not None else {}

    def is_method_of_module(self, function: Function) -> bool:
        return function.owner is not None and function.owner.is_module and function.is_method

    def related(self, node: ast.ClassDef | None, owner: ClassFacts) -> bool:
        """Whether a class is another one, or one of them derives from the other."""
        other = self.classes.get(node.name) if node is not None else None
        if other is None:
            return False
        # by their nodes: each interpreter of a file has facts of its own of the same class
        return owner.node in [each.node for each in lineage(other)] or other.node in [e.node for e in lineage(owner)]

    # -- the host -----------------------------------------------------------------------------------------------------

    def on_host(self, function: Function) -> bool:
        """Whether a function is only reached from items of data sets, collate functions, or the making of modules.

        Also what prepares data, by the name of its file, and does not handle devices itself.
        """
        known = self._host.get(id(function.node))
        if known is None:
            self._host[id(function.node)] = False  # while it is being found out
            known = self._host[id(function.node)] = self._only_from_host(function)
        return known

    def _only_from_host(self, function: Function) -> bool:
        name = function.name.rsplit(".", 1)[-1]
        in_module = function.owner is not None and function.owner.is_module
        if not in_module and prepares_data(self.path) and not self._handles_devices(function):
            return True  # it does not handle devices, and what it prepares is moved later
        is_method = function.is_method
        if in_module and is_method and is_property(function.node):
            return self._is_read_by_init_alone(function, name)
        if name in self.scan.handed and function.owner is None and self._is_applied_by_init_alone(name):
            return True
        if (name in self.scan.handed and not (is_method and self._is_local_beside(name))) or (
            name.startswith("__") and name.endswith("__")
        ):
            return False
        sites = self.scan.calls.get(name, ())
        called = False
        for call, caller in sites:
            if caller is None:
                return False
            if is_method:
                owner, receiver = function.owner, getattr(call.func, "value", None)
                assert owner is not None
                if not isinstance(receiver, ast.Name) or receiver.id not in ("self", "cls"):
                    return False
                if not self.related(caller.owner, owner):
                    continue
            elif not isinstance(call.func, ast.Name):
                return False
            if caller.node is not function.node:
                called = True
                if not self._is_host(caller):
                    return False
        return called

    def _handles_devices(self, function: Function) -> bool:
        """Whether a function handles devices in its own text, or the `__init__` of the class whose method it is does."""
        owner = function.owner if function.is_method else None
        init = owner.methods.get("__init__") if owner is not None else None
        return any(self._has_signs(node) for node in (function.node, init) if node is not None)

    def _has_signs(self, node: ast.AST) -> bool:
        """Whether the text of a function handles devices."""
        if self._signs is not None:
            return id(node) in self._signs[0]
        if id(node) not in self._signed:
            self._signed[id(node)] = any(map(is_sign, walk(node)))
        return self._signed[id(node)]

    @cached_property
    def handles_devices(self) -> bool:
        """Whether any code of the file handles devices."""
        return self.scan.tree is not None and any(map(is_sign, walk(self.scan.tree)))

    def _is_applied_by_init_alone(self, name: str) -> bool:
        """Whether all that the file does with a function is to apply it in the `__init__` of modules: it sets weights."""
        if "apply" not in self.scan.calls:
            return False
        applied: set[int] = set()
        for class_ in self.classes.values():
            init = class_.methods.get("__init__") if class_.is_module and not class_.abroad else None
            for call in self.scan.calls_in(init):
                if last_name(call.func) == "apply":
                    applied.update(id(a) for a in call.args if isinstance(a, ast.Name) and a.id == name)
        if not applied or self.scan.tree is None:
            return False
        nodes = (n for n in walk(self.scan.tree) if isinstance(n, ast.Name) and n.id == name)
        return all(id(n) in applied for n in nodes)

    def _is_local_beside(self, name: str) -> bool:
        """Whether what is handed on under the name of a method is a local name alone: `size = self.size(); f(size)`."""
        return name not in self.scan.uncalled

    def _is_read_by_init_alone(self, function: Function, name: str) -> bool:
        """Whether all that reads a property in the file is the `__init__` of its class: a size found by a trial."""
        owner = function.owner
        init = owner.methods.get("__init__") if owner is not None else None
        if init is None or self.scan.tree is None:
            return False
        inside = {id(n) for n in walk(init) if is_own_attribute(n, name)}
        own = {id(n) for n in walk(owner.node)} if owner is not None else set()
        for node in walk(self.scan.tree):
            if isinstance(node, ast.Attribute) and node.attr == name and id(node) not in inside:
                if id(node) in own or not is_self_attribute(node):
                    return False  # `self.name` of another class is another property
        return bool(inside)

    def _is_host(self, caller: FunctionScan) -> bool:
        name = getattr(caller.node, "name", "")
        class_ = self.classes.get(caller.owner.name) if caller.owner is not None else None
        if name in _HOST_METHODS or name.startswith("collate") or name in self.collators:
            return True
        if name == "__init__":
            return class_ is not None and class_.is_module
        if name.startswith("__"):
            return False
        if isinstance(caller.node, ast.Lambda) or not name:
            return False
        assert isinstance(caller.node, (ast.FunctionDef, ast.AsyncFunctionDef))
        if class_ is not None:
            return class_.on_host or self.on_host(Function(caller.node, f"{class_.name}.{name}", class_))
        return caller.owner is None and self.on_host(Function(caller.node, name))

    def is_plausible(self, function: Function, annotated: bool) -> bool:
        """Whether anything says that the function's arguments may be on an accelerator.

        A module's methods, an annotation, a loss, code of the file that handles devices; or a file of functions that works
        with torch alone: it is written for tensors wherever they are.
        """
        owner = function.owner
        if annotated or (owner is not None and owner.is_module) or self.handles_modules or self.handles_devices:
            return True
        if _LOSS.search(function.name) is not None or (owner is not None and self.trains(owner)):
            return True  # it gets what a model gave
        return owner is None and self.is_pure

    def trains(self, class_: ClassFacts) -> bool:
        """Whether a plain class trains tensors of its own, found out once."""
        key = id(class_.node)
        if key not in self._training:
            self._training[key] = trains_tensors(class_)
        return self._training[key]

    @property
    def is_pure(self) -> bool:
        """Whether a file imports torch, no library of the host's data, and runs nothing itself."""
        if self._pure is None:
            packages = {target.split(".", 1)[0] for target in self.imports.values()}
            runs = self.scan.tree is None or runs_something(self.scan.tree.body)
            self._pure = (
                "torch" in packages
                and packages.isdisjoint(HOST_LIBRARIES)
                and not runs
                and not prepares_data(self.path)
            )
        return self._pure

    def is_pure_in(self, function: Function) -> bool:
        """`is_pure`, or that a function of a file that imports such libraries names none of them."""
        if self.is_pure:
            return True
        if self.scan.tree is None or prepares_data(self.path):
            return False
        if runs_something([s for s in self.scan.tree.body if not (isinstance(s, ast.If) and asks_name(s))]):
            return False  # a program; what a file does only where it is run itself tries out what it defines
        host = {name for name, target in self.imports.items() if target.split(".", 1)[0] in HOST_LIBRARIES}
        return not any(isinstance(n, ast.Name) and n.id in host for n in walk(function.node))

    @property
    def handles_modules(self) -> bool:
        """Whether a class of the file is a module."""
        return any(class_.is_module and not class_.abroad for class_ in self.classes.values())

    # -- arguments ----------------------------------------------------------------------------------------------------

    def may_pass_device_data(
        self,
        function: Function,
        parameter: str,
        annotated: bool,
        depth: int = 0,
        is_sure: bool = False,
        by_method: bool = False,
    ) -> bool:
        """Whether an argument that the host reads in this function may come from an accelerator, as far as the file shows.

        A module's `forward` and what is not called here but belongs to a module: yes. Where the file calls the function:
        if one of these calls passes what was moved, or what a model gave. Where it does not: if the file handles devices
        and the annotation says tensor (for `x.numpy()`, `by_method`, that alone is enough), or the function handles devices
        itself, or another one does so with an argument of that name, or the function's own code leaves no doubt that it is
        a tensor (`is_sure`). What is only handed over as a value needs the annotation.
        """
        name = function.name.rsplit(".", 1)[-1]
        is_method = function.is_method
        owner = function.owner
        in_module = owner is not None and owner.is_module and is_method
        if in_module and name == "forward":
            return True
        sites = self.sites(function)
        if sites:
            position = self.position(function, parameter)
            return any(
                self.is_placed(argument) or self.is_passed_on(argument, site, depth)
                for site in sites
                for argument in given(site.call, parameter, position)
            )
        if name in self.pooled or (prepares_data(self.path) and not in_module):
            return False
        if in_module:
            return name not in self.scan.handed
        own, whole = self.signs
        if not whole and not (annotated and by_method and name != "__call__"):
            return False
        if name.startswith("_") and name != "__call__" and name not in self.scan.handed:
            return False
        if annotated:
            return True
        if name in self.scan.handed:
            return False
        return is_sure or id(function.node) in own or parameter in self.placed

    def result_is_moved(self, function: Function) -> bool:
        """Whether every call that the file shows moves what the function gives at once: `weights(n).to(x.device)`."""
        calls = [site.call for site in self.scan.calls.get(function.name.rsplit(".", 1)[-1], ())]
        return bool(calls) and all(map(self.is_moved_at_once, calls))

    def is_moved_at_once(self, call: ast.Call) -> bool:
        """Whether what a call gives, or something made of it alone, is moved where it stands: `weights(n).to(x.device)`."""
        if self._receivers is None:
            moving = [site.call.func for name in OFF_HOST_TENSOR for site in self.scan.calls.get(name, ())]
            self._receivers = {id(made) for f in moving if isinstance(f, ast.Attribute) for made in made_alone(f.value)}
        return id(call) in self._receivers

    def is_passed_on(self, argument: ast.expr, site: Site, depth: int) -> bool:
        """Whether a call passes on an argument of its own function for which the same holds."""
        caller = site.caller
        if caller is None or depth > 2 or not isinstance(caller.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        *_, start = chain(argument)
        if not isinstance(start, ast.Name) or any(
            isinstance(c, ast.Call) and getattr(c.func, "attr", "") in TO_HOST for c in chain(argument)
        ):
            return False
        found = parameter_of(caller.node.args, start.id)
        if found is None or start.id in ("self", "cls") or caller.bound.get(start.id):
            return False
        class_ = self.classes.get(caller.owner.name) if caller.owner is not None else None
        name = caller.node.name if class_ is None else f"{class_.name}.{caller.node.name}"
        annotated = is_tensor_annotation(found.annotation)
        return self.may_pass_device_data(Function(caller.node, name, class_), start.id, annotated, depth + 1)

    @staticmethod
    def position(function: Function, parameter: str) -> int:
        """The place of a parameter among the positional arguments of a call; -1 for a keyword-only one."""
        names = positional_names(function.node.args)
        if names[:1] == ["self"] or names[:1] == ["cls"]:
            names = names[1:]
        return names.index(parameter) if parameter in names else -1

    def is_placed(self, node: ast.expr) -> bool:
        """Whether an expression shows that it may be on an accelerator: moved there, or what a model gives."""
        if any(isinstance(c, ast.Call) and getattr(c.func, "attr", "") in TO_HOST for c in chain(node)):
            return False
        for child in walk(node):
            if isinstance(child, ast.Name) and child.id in self.placed:
                return True
            if isinstance(child, ast.Call) and (moves(child) or is_model_call(child)):
                return True
            if isinstance(child, ast.Attribute) and isinstance(child.value, ast.Name) and is_model_name(child.value.id):
                return True
        return False

    @property
    def signs(self) -> tuple[set[int], bool]:
        """The functions that handle devices in their own text, by identity; and whether any code of the file does."""
        if self._signs is None:
            functions: set[int] = set()
            whole = False
            for node, inside in self._walk():
                if is_sign(node):
                    whole = True
                    functions.update(inside)
            self._signs = functions, whole
        return self._signs

    @property
    def pooled(self) -> set[str]:
        """The functions that are handed to a pool, a process or a thread, which run on the host."""
        if self._pooled is None:
            given_to = [site.call for name in _POOLS for site in self.scan.calls.get(name, ())]
            nodes = [a for call in given_to for a in (*call.args, *(k.value for k in call.keywords))]
            self._pooled = {n.id if isinstance(n, ast.Name) else getattr(n, "attr", "") for n in nodes}
        return self._pooled

    @property
    def placed(self) -> set[str]:
        """The names whose device the file decides or asks for, and those bound to what was moved or what a model gives."""
        if self._placed is None:
            found: set[str] = set()
            for node, _ in self._walk():
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    if node.attr in ("device", "cuda", "is_cuda", "get_device"):
                        found.add(node.value.id)
                elif isinstance(node, ast.Call) and moves(node):
                    assert isinstance(node.func, ast.Attribute)
                    if isinstance(node.func.value, ast.Name):
                        found.add(node.func.value.id)
                elif isinstance(node, ast.Assign):
                    value = node.value
                    if any(isinstance(c, ast.Call) and (moves(c) or is_model_call(c)) for c in chain(value)):
                        for target in node.targets:
                            found |= {c.id for c in walk(target) if isinstance(c, ast.Name)}
            self._placed = found - {"self", "torch", "np"}
        return self._placed

    def _walk(self) -> Iterator[tuple[ast.AST, tuple[int, ...]]]:
        """Every node with the functions around it."""
        tree = self.scan.tree
        stack: list[tuple[ast.AST, tuple[int, ...]]] = [(tree, ())] if tree is not None else []
        while stack:
            node, inside = stack.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                inside = (*inside, id(node))
            yield node, inside
            stack.extend((child, inside) for child in children(node))


def made_alone(node: ast.expr) -> Iterator[ast.expr]:
    """An expression, and what it makes itself of by calls that get nothing else but constants."""
    while True:
        yield node
        given = [*node.args, *(k.value for k in node.keywords)] if isinstance(node, ast.Call) else []
        left = [part for part in given if not isinstance(part, (ast.Constant, ast.UnaryOp))]
        if len(left) != 1:
            return
        node = left[0]

"""What calls give: tensors that torch, a tensor's methods or the project's functions make, move or hand on."""

from __future__ import annotations

import ast
from dataclasses import replace

from devlint import knowledge
from devlint.explain.bindings import returned
from devlint.explain.calls import arguments_for, has_parameter
from devlint.explain.moved_modules import ModuleSearch
from devlint.explain.resolving import LOADERS, imported
from devlint.explain.suspects import DIRECT, Context, Trail, step
from devlint.facts.text.references import last_name
from devlint.facts.values import ACCELERATORS

#: The share that is left of a weight where a value is moved: it is most likely not what stayed behind.
_ELSEWHERE = 0.25
#: A weight below which it says nothing that nobody moves a value: it may be a number.
_TELLING = 0.5
#: Methods whose result is no tensor, or has nothing to do with where its object is.
_ENDS = frozenset(
    {"item", "tolist", "size", "dim", "numel", "shape", "numpy", "keys", "format", "get_device", "strip", "join"}
)
#: Methods of modules that give their tensors, where the module is.
_OF_MODULES = frozenset({"parameters", "named_parameters", "buffers", "named_buffers", "state_dict"})
#: Functions that give what they are given, or its elements.
TURNS = frozenset(
    {
        "enumerate", "tqdm", "trange", "zip", "iter", "next", "islice", "list", "tuple", "reversed", "sorted", "track",
        "progress", "cycle", "chain", "items", "values", "__iter__", "prefetch",
    }
)  # fmt: skip
_ARRAYS = frozenset(
    {"numpy", "scipy", "math", "random", "os", "sys", "time", "re", "json", "PIL", "cv2", "pandas", "sklearn"}
)
_WRAPS = frozenset({"Variable", "Parameter", "checkpoint", "deepcopy", "copy", "detach"})
_FACTORIES = frozenset({"tensor", "as_tensor", "asarray"})
_NO_TENSORS = frozenset({"module", "optimizer", "scheduler", "loader", "dataset", "device", "dtype"})
#: How the types of numbers begin that `.to()` takes.
_DTYPES = tuple(
    f"torch.{name}" for name in ("float", "int", "long", "bool", "half", "double", "bfloat", "uint", "short", "complex")
)


class CallSearch(ModuleSearch):
    """Adds `call`."""

    def value(self, node: ast.expr, at: Context, trail: Trail = DIRECT, part: int | None = None) -> None:
        """Follow what an expression evaluates to. `part`: only that element of it is used."""
        raise NotImplementedError

    def from_loader(self, at: Context, trail: Trail) -> None:
        """Remember a batch of a loader, by the name nearest to the failing line that is bound to it or to a part of it."""
        for number, place in enumerate(trail.steps):
            if place.kind == "bound" and place.file is at.file and place.function is at.function:
                text = f"`{place.name}` comes from a data loader: its batches stay on the CPU until they are moved"
                self.note_at(
                    replace(place, text=text), Trail(trail.weight, trail.steps[:number] + trail.steps[number + 1 :])
                )
                return

    def unknown(self, node: ast.expr, at: Context, trail: Trail) -> None:
        """Remember what nothing is known of, but that nothing moves it on its way to the failing line."""
        if trail.weight < _TELLING:
            return
        steps = trail.steps
        while len(steps) > 1 and steps[-1].text == steps[-2].text and steps[-1].file is steps[-2].file:
            steps = steps[:-1]  # the latest binding of a name that is made of itself
        rest = Trail(trail.weight * 0.4, steps[:-1])
        if not steps:
            if not isinstance(node, ast.Call):
                self.note(at.file, node, f"nothing moves `{ast.unparse(node)[:60]}` before this line", rest)
        elif steps[-1].kind == "bound":
            self.note_at(replace(steps[-1], text=f"nothing moves `{steps[-1].name}` after it is created here"), rest)
        elif steps[-1].kind == "given":
            self.note_at(replace(steps[-1], text=f"nothing moves the argument `{steps[-1].name}` of this call"), rest)

    def call(self, node: ast.Call, at: Context, trail: Trail, part: int | None = None) -> None:
        func = node.func
        if isinstance(func, ast.Attribute) and self._method(node, func, at, trail):
            return
        name = imported(func, at.file)
        head = (name or "").partition(".")[0]
        if name is not None and head == "torch":
            self._of_torch(node, name, at, trail)
            return
        if head in _ARRAYS:
            if not trail.steps:  # what fails may be among what it is given
                self._arguments(node, at, trail.fainter(0.8))
            return
        if (
            isinstance(func, ast.Call)
            and last_name(func.func) == "getattr"
            and func.args
            and imported(func.args[0], at.file) == "torch"
        ):
            self.note(at.file, node, "the tensor that is created here is on the CPU", trail.fainter(0.8))
            return
        if any(k.arg == "return_tensors" for k in node.keywords):  # of tokenizers and processors (transformers)
            text = f"`{ast.unparse(func)}` creates tensors on the CPU: call `.to(device)` on its result"
            self.note(at.file, node, text, trail.fainter(0.95))
            return
        callee = last_name(func)
        if callee in TURNS and node.args:
            if callee in ("next", "iter") and self.is_loader(node.args[0], at):
                self.from_loader(at, trail.fainter(0.85))
            else:
                self._arguments(node, at, trail)
            return
        known = self.callee(func, at)
        if known is not None:
            file, definition = known
            inside = Context(file, definition, -1, (at, node))
            place = step(file, definition, f"`{definition.name}` returns")
            for value in returned(definition):
                self.value(value, inside, trail.fainter(0.93).via(place), part)
            return
        if LOADERS.search(callee):
            return
        before = self.noted
        self.module(func, at, trail.fainter(0.8).behind())
        self._arguments(node, at, trail.fainter(0.85))
        if self.noted == before:
            self.unknown(node, at, trail)

    def _arguments(self, node: ast.Call, at: Context, trail: Trail) -> None:
        for argument in (*node.args, *(k.value for k in node.keywords)):
            self.value(argument.value if isinstance(argument, ast.Starred) else argument, at, trail)

    def _method(self, node: ast.Call, func: ast.Attribute, at: Context, trail: Trail) -> bool:
        """What a method of a tensor gives. False for one of the project, a module or a library."""
        name = func.attr
        if name in _ENDS:
            if not trail.steps:  # what fails may be what it is asked of
                self.value(func.value, at, trail)
            return True
        if name in ("next", "__next__"):
            made = func.value
            while isinstance(made, ast.Call) and made.args:
                made = made.args[0]
            if self.is_loader(made, at):
                self.from_loader(at, trail.fainter(0.85))
                return True
        if name in ACCELERATORS:
            if self.is_module(func.value, at):
                return True
            self.note(at.file, node, f"moved to {name} here", trail.fainter(_ELSEWHERE), on_host=False)
            return True
        if name in _OF_MODULES and self.is_module(func.value, at):
            self.module(func.value, at, Trail(trail.weight))  # its tensors cannot be moved one by one
            return True
        if name == "cpu":
            self.note(at.file, node, "copied to the CPU here", trail.fainter(0.9))
            return True
        if name in ("to", "type"):
            return self._moved(node, func, at, trail)
        if name in ("type_as", "to_like") and node.args:
            self.value(node.args[0], at, trail.fainter(0.8))
            return True
        if imported(func, at.file) is not None or (
            isinstance(func.value, ast.Name) and func.value.id in ("self", "cls")
        ):
            return False
        if knowledge.method("Tensor", name) is not None and not name.startswith("__"):
            self.value(func.value, at, trail)
            self._arguments(node, at, trail.fainter(0.6))
            return True
        return False

    def _moved(self, node: ast.Call, func: ast.Attribute, at: Context, trail: Trail) -> bool:
        given = [*node.args[:1], *(k.value for k in node.keywords if k.arg in ("device", "other"))]
        text = ast.unparse(given[0]) if given else ""
        if func.attr == "type" and "cuda" not in text and "Tensor" in text:
            self.note(at.file, node, f"`.type({text})` copies the tensor to the CPU", trail.fainter(0.9))
        elif not given or text.startswith(_DTYPES) or "dtype" in text or func.attr == "type":
            self.value(func.value, at, trail)
        elif "cpu" in text and "cuda" not in text:
            self.note(at.file, node, "copied to the CPU here", trail.fainter(0.9))
        elif not self.is_module(func.value, at):
            self.note(at.file, node, f"moved to `{text}` here", trail.fainter(_ELSEWHERE), on_host=False)
            device = given[0]
            if isinstance(device, ast.Attribute) and device.attr == "device":
                self.value(device.value, at, trail.fainter(0.4))
        return True

    def _of_torch(self, node: ast.Call, name: str, at: Context, trail: Trail) -> None:
        short = last_name(node.func)
        if short in _WRAPS or name.endswith((".Variable", ".Parameter")):
            self._arguments(node, at, trail.fainter(0.97))
            return
        if ".cuda." in name and short.endswith("Tensor"):
            self.note(
                at.file, node, f"`{ast.unparse(node.func)}` creates a tensor on CUDA", trail.fainter(0.4), on_host=False
            )
            return
        record = knowledge.function(name)
        if record is not None and record.result in _NO_TENSORS:
            return
        if short == "load":
            self.note(
                at.file, node, "`map_location` decides the device of the tensors of this checkpoint", trail.fainter(0.3)
            )
            return
        made = record is not None and record.device_from in ("argument", "default", "cpu")
        if made or short in _FACTORIES or short.endswith("Tensor"):
            device = next((k.value for k in node.keywords if k.arg == "device"), None)
            if device is None or (isinstance(device, ast.Constant) and device.value in (None, "cpu")):
                scalar = (
                    short in ("tensor", "scalar_tensor")
                    and node.args
                    and isinstance(node.args[0], (ast.Constant, ast.UnaryOp))
                )
                spelled = ast.unparse(node.func)
                self.note(
                    at.file, node, f"`{spelled}` creates a tensor on the CPU", trail.fainter(0.4 if scalar else 1.0)
                )
            else:
                self._on_device(node, device, at, trail)
            return
        self._arguments(node, at, trail.fainter(0.97))

    def _on_device(self, node: ast.expr, device: ast.expr, at: Context, trail: Trail) -> None:
        """A tensor that is made on a device that the code names; of an argument, the call that gives a literal."""
        self.note(at.file, node, f"created on `{ast.unparse(device)}` here", trail.fainter(_ELSEWHERE), on_host=False)
        if (
            isinstance(device, ast.Name)
            and at.function is not None
            and at.call is not None
            and has_parameter(at.function, device.id)
        ):
            caller, call = at.call
            for given in arguments_for(call, at.function, device.id):
                if isinstance(given, ast.Constant):
                    text = f"`{device.id}={ast.unparse(given)}` is passed here, independent of the device of the other tensors"
                    self.note(caller.file, call, text, trail.fainter(0.5), on_host=False)

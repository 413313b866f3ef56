"""Calls that are not followed: what they are guessed to give, and what they may do to what they are handed."""

from __future__ import annotations

import ast
import re

from devlint.facts.frozen import replace
from devlint.facts.idioms import guesses
from devlint.facts.idioms.placed import classes_of, is_left_on_host
from devlint.facts.idioms.unseen_modules import is_part
from devlint.facts.idioms.uses import all_make_their_input
from devlint.facts.interpreter.arguments import Arguments, CallArguments
from devlint.facts.interpreter.operations import ENCODED
from devlint.facts.text.annotations import knows_other_tensors
from devlint.facts.text.classes import ClassFacts
from devlint.facts.text.references import chain, last_name
from devlint.facts.text.signs import is_model_call, uses_cards
from devlint.facts.values import BATCH, COMPUTED, CPU, HOME, NOTHING, UNKNOWN, Value, may_be_accelerator

#: Names of what makes, fetches or moves tensors or models, and so reads a text like `cuda` as the device for them.
_PLACES = re.compile(
    r"^_*(get|fetch|load|make|create|build|sample|move|send|put|place|transfer|copy|to|generate)_(\w+_)?"
    r"(model|net|network|tensors?|batch|batches|data|inputs?|noise|weights|embeddings?|images?|checkpoint|latents?|features"
    r"|tokens|samples?|encoder|decoder|agent|policy|pipeline)$"
)
_WRITTEN_OUT = (ast.Dict, ast.List, ast.Tuple)
#: Packages that run exported programs beside torch and give its outputs in host memory, by the methods that do so.
#: [executorch/runtime/__init__.py; extension/aten_util/aten_bridge.cpp, `alias_attensor_to_etensor`: `from_blob`]
_RUNTIMES = {"execute": "executorch", "run_method": "executorch"}
BY_MODEL = "returned by a model, which may be on an accelerator"


class OpaqueCalls(CallArguments):
    """Adds `guessed` (what such a call gives) and `escape` (what becomes of its arguments)."""

    def class_named(self, node: ast.expr) -> ClassFacts | None:
        """The class that an expression names; None for one that is not known."""
        return self.classes.get(node.id) if isinstance(node, ast.Name) else None

    def makes_its_input(self, node: ast.expr) -> bool:
        """Whether an expression is of `self.model`, a module that makes its input of host data and computes with it there."""
        *_, model, _ = (None, *chain(node))
        return model is not None and all_make_their_input(map(self.class_named, classes_of(self, model)))

    def guessed(self, node: ast.Call, arguments: Arguments, receiver: Value = NOTHING) -> Value:
        """What a call of something unknown is guessed to give, see `guesses`."""
        if not self.assume or self.runs_beside_torch(node.func):
            return NOTHING
        given = [receiver, *arguments.given()]
        found = guesses.result(node.func, given, lambda: self.origin(node, COMPUTED))
        runs = bool(node.args or node.keywords)  # `pose_model()` makes one
        if found is NOTHING and not self.host and runs and uses_cards(self.source.text) and is_model_call(node):
            elsewhere = knows_other_tensors(self.imports.names) or is_left_on_host(self, node.func)
            elsewhere = elsewhere or self.makes_its_input(node.func)
            if not elsewhere and not any(v.is_tensor or v.kind in ("loader", "ndarray") for v in guesses.opened(given)):
                return guesses.guess(HOME, self.origin(node, BY_MODEL))
        if guesses.is_guess(found) and not self.host and self.owner is not None:
            if is_part(self, self.owner, node.func):  # type: ignore[arg-type]
                return replace(found, kind="tensors")  # modules give tensors, or structures of them
        return found

    def runs_beside_torch(self, function: ast.expr) -> bool:
        """Whether a method runs an exported program, whose outputs are in host memory: `method.execute(inputs)`."""
        package = _RUNTIMES.get(function.attr) if isinstance(function, ast.Attribute) else None
        return package is not None and any(n.partition(".")[0] == package for n in self.imports.names.values())

    def encoded(self, node: ast.Call, arguments: Arguments) -> Value | None:
        """`tokenizer(text, return_tensors="pt")`: tensors of the CPU, in a batch that has `to`; None for any other call.

        [transformers/tokenization_utils_base.py, `BatchEncoding.convert_to_tensors`]
        """
        form = arguments.keywords.get("return_tensors")
        if form is None or form[1].constant != "pt" or arguments.star or "device" in arguments.keywords:
            return None
        if any(v.is_tensor and v.device != CPU for v in guesses.opened(v for _, v in arguments.every())):
            return None  # some processors keep what they are given where it is
        origin = self.origin(node, ENCODED)
        return Value("tensors", CPU, False, type_name=BATCH, because=(origin,))

    def as_tensor(self, value: Value) -> Value:
        """A guess that turns out to be a tensor; of an argument nothing is guessed any longer then."""
        found = guesses.tensor(value)
        if found is not value and value.because and value.because[0].span in self.assumed:
            return replace(found, type_name=None)
        return found

    def share(self, arguments: Arguments) -> None:
        """Another object got these modules and may move them with itself; containers may change in its hands."""
        for argument, value in arguments.every():
            if value.elements is not None or value.kind == "module":
                self.give(argument, value)

    def give(self, node: ast.expr, value: Value) -> None:
        """A value is handed to something that may move it, or change what is in it."""
        if value.kind != "module" and value.elements is None:
            return
        path = self.path(node)
        if path is None or path not in self.state.env:
            return
        now = self.state.env[path]  # a call that was followed may have moved it
        if value.kind == "module" and now.kind == "module" and not now.shared:
            self.state.env[path] = replace(now, shared=True)
        elif value.elements is not None and (value.kind in ("list", "dict") or isinstance(value.elements, dict)):
            self.bind(path, replace(value, elements=None))

    def keep_moved(self, node: ast.expr, value: Value) -> None:
        """A model gets a dict: it may put something into it, but takes nothing back to the CPU that was moved for it."""
        path = self.path(node)
        if path is not None and path in self.state.env and isinstance(value.elements, dict):
            kept = {key: part if part.moved else NOTHING for key, part in value.elements.items()}
            self.bind(path, replace(value, elements=kept))

    def may_move(self, node: ast.expr, offloads: bool = False) -> None:
        """Something unknown has got hold of what an expression names: a module may be anywhere from now on.

        `offloads`: a module that is kept on the CPU on purpose may get hooks that bring what it is given to it as well.
        """
        path = self.path(node)
        value = self.state.env.get(path) if path is not None else None
        if path is None or value is None or value.kind != "module" or not value.device:
            return
        if not value.moved or (offloads and value.device == CPU):
            env = self.state.env
            env[path] = replace(value, device=UNKNOWN)
            for other, known in env.items():  # the same module by another name, and what one that holds others may hold
                if known.kind == "module" and known.device and not known.moved and other != path:
                    if (known.ident is not None and known.ident == value.ident) or (value.shared and known.shared):
                        env[other] = replace(known, device=UNKNOWN)

    def escape(self, node: ast.Call, arguments: Arguments) -> None:
        """An unknown function got these arguments: it may move a module in place, or wait for the device."""
        every = arguments.every()
        statement = self.statement_value is node  # a model that is one writes into what it is given
        if node.args and _PLACES.search(last_name(node.func)) is not None:
            for argument in node.args:
                self.note_named(argument)
        for argument, value in every:
            fills = value.kind == "dict" and isinstance(value.elements, dict) and not statement
            if fills and is_model_call(node):
                self.keep_moved(argument, value)
            elif value.elements is not None or value.kind == "module":
                self.give(argument, value)
            if isinstance(argument, _WRITTEN_OUT):
                for part in held(argument):
                    self.may_move(part)
            if statement and value.kind == "tensors" and value.type_name == BATCH:
                path = self.path(argument)
                if path is not None and path in self.state.env:
                    self.bind(path, NOTHING)  # `to_device(batch, device)`: it may move what is in it
            if value.kind == "module":
                # `offload(embedding, head, device)` is told where the module's results belong
                self.may_move(argument, any(v.kind in ("device", "module") for _, v in every if v is not value))
            elif value.kind == "event":
                path = self.path(argument)
                if path is not None:
                    self.state.recorded[path] = (self.span(node), True)
            if value.is_tensor and may_be_accelerator(value.device):
                self.state.work = None


def held(node: ast.expr) -> list[ast.expr]:
    """What a dict or list holds that is written out where it is handed on: `Models({"G": G, "D": D})`."""
    if isinstance(node, ast.Dict):
        return list(node.values)
    return list(node.elts) if isinstance(node, (ast.List, ast.Tuple)) else []

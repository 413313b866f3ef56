"""Calls of modules and of their methods: inputs meet the parameters, and what is computed is where they are."""

from __future__ import annotations

import ast
import re
from functools import cached_property, lru_cache

from devlint import knowledge
from devlint.facts.events import Operand
from devlint.facts.frozen import replace
from devlint.facts.idioms import (
    batches,
    fed_by_siblings,
    given_by_layers,
    guesses,
    hands_itself_on,
    ignored_inputs,
    kept_modules,
    lengths_given,
    library_modules,
    never_moved,
    no_movers,
    pipelines,
    renewed_parts,
    saved_in_loops,
)
from devlint.facts.idioms.uses import first_is_index, holds_nothing, reads_state
from devlint.facts.interpreter.arguments import Arguments
from devlint.facts.interpreter.factories import FILLED
from devlint.facts.interpreter.moves import Moves
from devlint.facts.interpreter.operations import STATE, is_encoded, short
from devlint.facts.text.annotations import is_array_annotation, knows_other_tensors
from devlint.facts.text.classes import ClassFacts
from devlint.facts.text.method_names import GIVES_MODULE, OFF_HOST_TENSOR
from devlint.facts.text.nodes import returns, walk
from devlint.facts.text.references import chain, is_self, is_self_attribute, is_static, last_name
from devlint.facts.text.returned import Returned, as_returned
from devlint.facts.text.scan import Scan
from devlint.facts.text.signatures import Plain, lacks_arguments, named_parameters
from devlint.facts.text.signs import moves
from devlint.facts.values import (
    CPU,
    FROM_HOST,
    HOME,
    NONE,
    NOTHING,
    OUTPUT,
    TENSOR_KINDS,
    UNKNOWN,
    Device,
    Symbol,
    Value,
    is_assumed,
    may_be_accelerator,
)

_LOSSES_END = "Loss"
CTC_LOSS = "torch.nn.CTCLoss"
#: Losses that are a function of element-wise operations, which take a 0-dim CPU tensor [torch/nn/modules/loss.py].
_OF_ELEMENTS = {
    "L1Loss": "l1_loss",
    "KLDivLoss": "kl_div",
    "PoissonNLLLoss": "poisson_nll_loss",
    "SoftMarginLoss": "soft_margin_loss",
    "HingeEmbeddingLoss": "hinge_embedding_loss",
}
#: What reads lengths on the host, or wants them there.
_ON_HOST = frozenset({"pack_padded_sequence", "tolist", "item", "int", "cpu", "numpy", "range", "max", "split", "zip"})
#: What a model takes by these names is an input that it computes with; no length, and nothing for the host.
_MODEL_INPUTS = frozenset(
    {
        "input_ids", "attention_mask", "token_type_ids", "position_ids", "inputs_embeds", "labels", "pixel_values",
        "decoder_input_ids", "decoder_attention_mask", "start_positions", "end_positions", "input_values",
        "input_features", "pixel_mask", "encoder_hidden_states",
    }
)  # fmt: skip
#: Others that are called like them, but for those of samples, pictures and requests, which name things for the host.
_ALIKE = re.compile(
    r"(?!sample|image|video|request|adapter|example|batch|item|doc|user|row|task|speaker|lang)\w*_(ids|mask)\Z"
)
#: Methods of models of transformers that compute with what they are given [transformers/generation/utils.py,
#: transformers/models/clip/modeling_clip.py].
RUNS_MODEL = frozenset({"generate", "get_image_features", "get_text_features", "get_audio_features"})
_DEPTH = 4  # methods that hand an input on to the next
#: What puts a tensor somewhere, or on the device of another one.
_PUTS = OFF_HOST_TENSOR | {"cpu", "to_device"}
_TYPE = re.compile(r"\w*dtype\Z|(?:bfloat|float|u?int|complex)\d+\Z|(?:float|double|half|long|int|short|bool)\Z")
#: What makes tensors that are no input.
_OF_SIZES = frozenset(
    {"zeros", "ones", "full", "empty", "arange", "eye", "linspace", "rand", "randn", "randint", "randperm"}
)


#: Factories whose tensors a module that was moved computes with, or looks up: positions, for the most part.
COUNTED = frozenset({"torch.arange", "torch.linspace", "torch.eye"})

#: Losses whose own rule says what they take: those of elements, and the one that brings its targets along.
KNOWN_LOSSES = frozenset({CTC_LOSS, *(f"torch.nn.{name}" for name in _OF_ELEMENTS)})


def moves_arguments(method: Plain) -> bool:
    """Whether a method moves each of its arguments itself: `x.cuda(non_blocking=True)`."""
    receivers = (
        c.func.value for c in walk(method) if isinstance(c, ast.Call) and moves(c) and hasattr(c.func, "value")
    )
    moved = {receiver.id for receiver in receivers if isinstance(receiver, ast.Name)}
    names = {argument.arg for argument in named_parameters(method.args)} - {"self"}
    return bool(names) and names <= moved


def is_new(node: ast.expr) -> bool:
    """Whether a chain begins with a call of torch that makes a tensor of sizes: `torch.zeros(2, n).float()`."""
    calls = [part.func for part in chain(node) if isinstance(part, ast.Call)]
    maker = calls[-1] if calls else None
    if not isinstance(maker, ast.Attribute) or not isinstance(maker.value, ast.Name):
        return False
    return maker.value.id == "torch" and maker.attr in _OF_SIZES


def changes_type(call: ast.Call) -> bool:
    """Whether a call changes the type of a tensor and nothing else: `x.to(torch.float32)`, `x.to(dtype=self.dtype)`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "to":
        return False
    types = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "dtype")]
    others = {keyword.arg for keyword in call.keywords} - {"dtype", "copy", "non_blocking"}
    return len(types) == 1 and not others and _TYPE.match(last_name(types[0])) is not None


def takes_input(name: str) -> bool:
    """Whether a parameter of a model is called like one of those that it computes with: `input_ids`, `ss_input_ids`."""
    return name in _MODEL_INPUTS or _ALIKE.match(name) is not None


class ModuleCalls(Moves):
    """Adds `call_module` and `call_module_method`."""

    def call_module(self, node: ast.Call, module: Operand, arguments: Arguments) -> Value:
        """`module(x, y)`: inputs meet the parameters; a loss's inputs meet each other."""
        value = module.value
        given = library_modules.call(self, node, module, arguments)
        if given is not None:
            return given
        home = value.type_name or ""
        if home in ("", "moved") and (pipelines.is_named(node.func) or self.is_pipeline(node.func)):
            return NOTHING
        if home.endswith(_LOSSES_END) and home.startswith("torch.nn."):
            arguments.values = [guesses.tensor(given) for given in arguments.values]
        if arguments.values and value.device:
            arguments.values[0] = no_movers.input_of(arguments.values[0])
        operands = self.tensors(arguments)
        if operands and home in self.classes:
            operands = ignored_inputs.read_alone(self.classes, self.classes[home], arguments, operands)
        name = home.rsplit(".", 1)[-1] or "module"
        if home == CTC_LOSS:
            operands = operands[:1]  # targets are brought along, lengths read on the host [aten/.../LossCTC.cpp]
        class_ = self.classes.get(home)
        forward = class_.method("forward") if class_ is not None else None
        if class_ is not None and forward is not None and class_.method("__call__") is None:
            if lacks_arguments(forward[1], node, 1):
                return NOTHING
            if self.packs:
                lengths_given.note(self, node, class_, arguments)
            if value.device and holds_nothing(class_):
                value = replace(value, device=UNKNOWN)
        scatters = home.endswith(("DataParallel", FROM_HOST)) and not self.is_any_accelerator(value.device)
        refused = False
        if class_ is None or not self.moves_inputs(class_):
            checked = operands
            if class_ is not None:
                packed = [n for n in arguments.nodes if isinstance(n, (ast.Tuple, ast.List, ast.Dict))]
                inside = {id(child) for n in packed for child in walk(n)}
                reads = reads_lengths(class_)
                checked = [
                    o
                    for o in operands
                    if not ("len" in o.text and (reads or o.value.moved)) and id(o.node) not in inside
                ]
            if not scatters:
                participants = [module, *checked] if value.device else checked
                if home.endswith(_LOSSES_END) and value.device:
                    weighted = value.device == CPU and value.made
                    participants = [module, *checked] if weighted else checked
                if class_ is not None or not home.startswith("torch.nn.") or home == "torch.nn.Module":
                    # what an unknown forward does with its inputs together is not known: each meets the module alone
                    lead = leading(arguments, checked, value)
                    if class_ is None and lead is not None and batches.stays_on_purpose(lead, operands):
                        if not batches.is_named_as_input(self, lead.node, takes_input):
                            checked = []
                    inputs = {id(n) for k, (n, _) in arguments.keywords.items() if takes_input(k)}
                    placed = value.device != HOME or (lead is not None and lead.value.moved)
                    for operand in checked:
                        if operand is not lead and operand.value.zero_dim is True:
                            continue  # a scalar combines with tensors anywhere
                        if operand is lead and operand.value.device == CPU and self.takes_index(class_):
                            continue
                        known = id(operand.node) in inputs and (placed or is_encoded(operand.value))
                        other = lead is None or lead.value.device != operand.value.device
                        if class_ is None and other and not known:
                            made = operand.value.made
                            filled = made and made[0].function in (FILLED | COUNTED if placed else FILLED)
                            new = filled and operand.value.zero_dim is False
                            if not (new or (placed and batches.is_left_behind(lead, operand))):
                                continue  # a further argument may be for the host: lengths, places
                        if value.device:
                            met = self.meet(node, [module, operand], "module", name, "exact")
                            refused |= met is module
                else:
                    record = knowledge.function(f"torch.nn.functional.{_OF_ELEMENTS.get(name)}")
                    mixing = record.mixing if record is not None and module not in participants else "exact"
                    refused = self.meet(node, participants, "module", name, mixing) is module
        device: Device = value.device if not refused else UNKNOWN
        if not value.device:
            self.meet_left_parts(node, operands)
            kept_modules.note(self, node, module, operands)
            fed_by_siblings.note(self, node, operands, is_encoded)
        saved_in_loops.note(self, node, module, operands)
        if not value.device and operands:
            device = self.combine([o for o in operands if o.value.device != CPU] or operands).device
        elif device == HOME and class_ is None and operands and operands[0].value.moved:
            if may_be_accelerator(operands[0].value.device):
                device = operands[0].value.device  # where the first input is put, the module of a caller must be
        if value.device == HOME and operands and operands[0].value.device == CPU and not home.startswith("torch.nn."):
            device = UNKNOWN  # it gives something only where it takes that: on the CPU, or it moves its inputs
        if value.device == HOME and not operands and arguments.nodes and knows_other_tensors(self.imports.names):
            device = UNKNOWN  # it may be a model of another framework
        self.work(node, f"`{short(self.text(node.func))}` runs on the device", device)
        if home.endswith(_LOSSES_END) and home.startswith("torch.nn."):
            reduced = "reduction" not in self.text(node)
            chosen = self.combine([o for o in operands if o.value.device != CPU] or operands)
            return Value("tensor", chosen.device, True if reduced else None, because=chosen.because)
        because = value.because if value.device else (operands[0].value.because if operands else ())
        if home.startswith("torch.nn.") and home != "torch.nn.Module" and class_ is None and not scatters:
            if name in ("LSTM", "GRU", "RNN"):
                out = Value("tensor", device, False, because=because)
                hidden = Value("tuple", elements=(out, out)) if name == "LSTM" else out
                return Value("tuple", elements=(out, hidden))
            if name in ("LSTMCell", "MultiheadAttention"):
                out = Value("tensor", device, False, because=because)
                return Value("tuple", elements=(out, out))
            return Value("tensor", device, False if operands else None, because=because)
        on_host: Returned | None = None
        if class_ is not None:
            on_host = class_.returned_by("forward", self.taken_apart.get(node)) or self.given_by_part(class_)
        if class_ is not None and self.moves_inputs(class_):
            return as_returned(on_host, NOTHING)  # what else it returns may be anywhere
        named = OUTPUT if arguments.every() and not is_assumed(device) else None
        whole = (
            Value("tensors", device, None, type_name=named, because=because)
            if value.device
            else self.guessed(node, arguments)
        )
        return as_returned(on_host, whole)

    def given_by_either(self, module: Value, name: str, guessed: Value) -> Value:
        """What a method gives of a module that has one of several classes, where it is on the host in all of them.

        Nothing is known where it is there in some of them only; elsewhere it is what is guessed.
        """
        several = module.elements if isinstance(module.elements, tuple) else ()
        classes = [self.classes.get(each.type_name or "") for each in several]
        found = [(class_.returned_by(name) if class_ is not None else None) or {} for class_ in classes]
        if not any(found):
            return guessed
        return as_returned(found[0], guessed) if all(each == found[0] for each in found) else NOTHING

    def given_by_part(self, class_: ClassFacts) -> Returned:
        """What `forward` gives that is on the host, where all it returns is what a part of a known class gives:
        `self.part(x)`, `self.part.sample(x)`."""
        found = class_.method("forward")
        given: list[Returned] = []
        for each in returns(found[1]) if found is not None else ():
            function = each.value.func if isinstance(each.value, ast.Call) else None
            called = is_self_attribute(function) if function is not None else False
            part, name = (
                (function, "forward") if called else (getattr(function, "value", None), getattr(function, "attr", ""))
            )
            if not isinstance(part, ast.Attribute) or not is_self(part.value):
                return {}
            known = class_.attribute(part.attr)
            owner = self.classes.get(known.type_name or "") if known is not None and known.kind == "module" else None
            method = owner.method(name) if owner is not None else None
            if owner is None or method is None:
                return {}
            arrays: Returned = {None: "array"} if is_array_annotation(method[1].returns) else {}
            given.append(owner.returned_by(name) or arrays)
        return given[0] if given and all(each == given[0] for each in given) else {}

    def meet_left_parts(self, node: ast.Call, inputs: list[Operand]) -> None:
        """`model.head = nn.Linear(8, 2)` after `model.to(device)`: the new part is on the CPU when the model is called."""
        path = self.path(node.func)
        if path is None or self.in_init or not inputs:
            return
        known, below = self.state.env if path in self.state.env else self.globals, f"{path}."
        for name, part in list(known.items()):
            if part.kind == "module" and part.device == CPU and not part.shared and name.startswith(below):
                if part.ident is not None and part.because and part.because[0].span == part.ident:
                    left = replace(self.operand(node.func, part), text=name)
                    for given in inputs:
                        self.meet(node, [left, given], "module", "module", "exact")

    def is_pipeline(self, node: ast.expr) -> bool:
        """Whether the file says by the name of a class that what is called is a pipeline."""
        return pipelines.WORD in self.source.text and (
            self.text(node) in self.pipelines or pipelines.is_annotated(self, node)
        )

    @cached_property
    def pipelines(self) -> frozenset[str]:
        """What the file binds to pipelines: names and attributes, as written."""
        return pipelines.bound(self.scan.tree)

    @cached_property
    def attribute_uses(self) -> dict[str, list[kept_modules.Around]]:
        """The attributes of the file, by their names."""
        return kept_modules.uses(self.scan.tree) if self.scan.tree is not None else {}

    @cached_property
    def name_uses(self) -> dict[str, list[kept_modules.Around]]:
        """The names of the file, each where it stands."""
        return kept_modules.uses(self.scan.tree, ast.Name) if self.scan.tree is not None else {}

    @cached_property
    def never_moved_parts(self) -> dict[str, list[ast.expr]]:
        """What is bound to attributes, and to names (`net()`), that hold modules which nothing moves, as far as asked for."""
        return {}

    @cached_property
    def layered(self) -> dict[int, tuple[bool, ...]]:
        """What methods of modules give, by their identity, see `given_by_layers`."""
        return {}

    @cached_property
    def packing(self) -> dict[str, dict[str, lengths_given.Packed]]:
        """What the `forward` of modules packs by, by their classes."""
        return {}

    def is_any_accelerator(self, device: Device) -> bool:
        """Whether it is a device that the file chooses among all accelerators: with MPS nothing is scattered."""
        symbols = [place for place in device if isinstance(place, Symbol)]
        if len(device) != 1 or not symbols:
            return False
        chosen = self.lookup(symbols[0].name) or self.globals.get(symbols[0].name)
        return chosen is not None and chosen.type_name == "chosen:accelerator"

    def call_module_method(self, node: ast.Call, operand: Operand, name: str, arguments: Arguments) -> Value:
        receiver = operand.value
        if library_modules.is_run(receiver, name, arguments):
            return self.call_module(node, operand, arguments)
        if library_modules.is_copied(receiver, name):
            return library_modules.copied(self, node, receiver)
        class_ = self.classes.get(receiver.type_name) if receiver.type_name else None
        if class_ is not None:
            found = class_.method(name)
            if found is not None and name != "forward":
                if lacks_arguments(found[1], node, 0 if is_static(found[1]) else 1):
                    return NOTHING
                if hands_itself_on.may_be_placed(found[1], arguments):
                    self.move_in_place(self.path(operand.node), replace(receiver, device=UNKNOWN))
                    return self.guessed(node, arguments)
                never_moved.note_method(self, node, operand, class_, name)
                renewed_parts.note(self, node, operand, found)
                if not reads_state(*found):
                    return self.guessed(node, arguments)
                if not class_.abroad and not self.moves_inputs(class_, name):
                    operands = self.tensors(arguments)
                    for given in ignored_inputs.read_alone(self.classes, class_, arguments, operands, name):
                        if receiver.device:
                            self.meet(node, [operand, given], "module", name, "exact")
                    kept_modules.note(self, node, operand, self.tensors(arguments), name)
                self.work(node, f"`{name}` runs on the module's device", receiver.device)
                made = self.made_by(node, receiver, found, arguments)
                if made is not None:
                    return made
                on_host = class_.returned_by(name, self.taken_apart.get(node))
                guessed = self.guessed(node, arguments)  # only `forward` gives what is known to be where the module is
                return as_returned(on_host, guessed) if on_host else given_by_layers.given(self, *found, guessed)
        if name == "apply" and any(".cuda(" in self.text(n) or ".to(" in self.text(n) for n in arguments.nodes):
            self.move_in_place(self.path(operand.node), replace(receiver, device=UNKNOWN))
            return replace(receiver, device=UNKNOWN)
        if name in GIVES_MODULE:
            return receiver
        if name == "compile":
            return NONE
        if name == "to_empty":
            return replace(receiver, device=UNKNOWN)
        if name in ("parameters", "buffers"):
            borrowed = replace(parameter_of(receiver), type_name="borrowed")
            return Value("object", receiver.device, elements=(borrowed,))
        if name in ("named_parameters", "named_buffers"):
            borrowed = replace(parameter_of(receiver), type_name="borrowed")
            pair = Value("tuple", elements=(Value("string"), borrowed))
            return Value("object", receiver.device, elements=(pair,))
        if name == "state_dict" and not arguments.every():
            held = Value("tensor", receiver.device, False, type_name=STATE, because=receiver.because)
            return Value("dict", type_name="comprehension", elements={"*": held}) if receiver.device else NOTHING
        if name == "forward":
            return self.call_module(node, operand, arguments)
        if name in ("append", "extend", "insert", "add_module", "register_module"):
            path = self.path(operand.node)
            for part in arguments.values:
                if part.kind == "module" and path is not None:
                    self.spoil_owners(f"{path}.*", part)
            return receiver
        computed = library_modules.computed(self, receiver, name)
        if computed is not None:
            return computed
        if name in RUNS_MODEL and class_ is None:
            return self.generate(node, operand, arguments)
        if name == "cuda_":
            return receiver
        if class_ is None and is_part_of_torch(receiver, name):
            part = Value("module", receiver.device, because=receiver.because, moved=receiver.moved)
            return self.call_module(node, self.operand(node.func, part), arguments)
        guessed = self.guessed(node, arguments)
        return guessed if class_ is not None else self.given_by_either(receiver, name, guessed)

    def takes_index(self, class_: ClassFacts | None) -> bool:
        """Whether a module of the project only indexes with its first input."""
        if class_ is None:
            return False
        known = self._indexing.get(class_.name)
        if known is None:
            known = self._indexing[class_.name] = first_is_index(class_)
        return known

    @cached_property
    def _indexing(self) -> dict[str, bool]:
        return {}  # by the name of a class

    def moves_inputs(self, class_: ClassFacts, method: str = "forward") -> bool:
        """Whether a module's method, or one of its own that it hands something, puts its inputs on a device itself."""
        known = class_.moving.get(method)
        if known is None:
            known = class_.moving[method] = self.puts(class_, method, frozenset())
        return known

    def of_either(self, chosen: Value, one: Value, other: Value) -> Value:
        """One of two modules: `DataParallel(model)`, or else an object of a class whose `forward` moves its input."""
        modules = chosen.kind == one.kind == other.kind == "module"
        if modules and chosen.type_name is None and self.takes_from_host(one) and self.takes_from_host(other):
            return replace(chosen, type_name=FROM_HOST)
        return chosen

    def takes_from_host(self, module: Value) -> bool:
        """Whether a module puts what it is called with on its device itself."""
        home = module.type_name or ""
        class_ = self.classes.get(home)
        if class_ is None:
            return home.endswith(("DataParallel", FROM_HOST))
        found = class_.method("forward")
        return found is not None and moves_arguments(found[1])

    def puts(self, class_: ClassFacts, method: str, callers: frozenset[str]) -> bool:
        """Whether a method, which `callers` call, moves anything. One that is not the first may bring things to the host."""
        found = class_.method(method)
        own = self.scan_of(found[0]).functions.get(id(found[1])) if found is not None else None
        wanted = _PUTS if not callers else _PUTS - {"cpu"}
        moving = [c for c in own.attributes if c.attr in wanted and not is_new(c.value)] if own is not None else []
        casts = {id(call.func) for call in own.calls if changes_type(call)} if own is not None and moving else set()
        if own is None or any(id(child) not in casts for child in moving):
            return True
        given = [call.func for call in own.calls if call.args or call.keywords]
        called = {f.attr for f in given if isinstance(f, ast.Attribute) and is_self_attribute(f)}
        further = callers | {method}
        return len(further) <= _DEPTH and any(
            self.puts(class_, name, further) for name in sorted(called - further) if class_.method(name) is not None
        )

    def scan_of(self, class_: ClassFacts) -> Scan:
        """The scan of the file that defines a class."""
        return self.scan

    def made_by(
        self,
        node: ast.Call,
        module: Value,
        found: tuple[ClassFacts, ast.FunctionDef | ast.AsyncFunctionDef],
        arguments: Arguments,
    ) -> Value | None:
        """What a method of a module of this file makes of numbers alone: `model.init_hidden(32)`."""
        raise NotImplementedError

    def generate(self, node: ast.Call, model: Operand, arguments: Arguments) -> Value:
        """`model.generate(**inputs)`: the prompt must be where the model is [transformers/generation/utils.py]."""
        operands = self.tensors(arguments)
        lead = leading(arguments, operands, model.value)
        if lead is None:
            prompts = [n for k, (n, _) in arguments.keywords.items() if k in ("inputs", "input_ids", "inputs_embeds")]
            lead = next((o for o in operands if o.node in prompts), None)
        if lead is not None and model.value.device and lead.value.kind in TENSOR_KINDS:
            self.meet(node, [model, lead], "module", last_name(node.func), "exact")
        further = {id(n) for k, (n, _) in arguments.keywords.items() if takes_input(k)}
        for operand in operands:
            if operand is not lead and id(operand.node) in further and is_encoded(operand.value):
                self.meet(node, [model, operand], "module", last_name(node.func), "exact")
        if not model.value.device:
            fed_by_siblings.note(self, node, operands, is_encoded)
        return self.guessed(node, arguments, model.value)


def parameter_of(module: Value) -> Value:
    """A parameter of a module: where the module is."""
    return Value("parameter", module.device, None, because=module.because)


def is_part_of_torch(module: Value, name: str) -> bool:
    """Whether what is called on a module of torch is one of its parts, and no method: `self.transformer.decoder(...)`."""
    known = knowledge.cls(module.type_name) if module.type_name is not None else None
    if known is None or known.family != "Module" or name.startswith("_"):
        return False
    return name in known.attributes and name not in known.methods


def leading(arguments: Arguments, operands: list[Operand], module: Value) -> Operand | None:
    """The first tensor that a module is called with; None when it is not known, or there are keywords alone.

    A module that is assumed to be on an accelerator may well get whole batches from a loader that puts them there.
    """
    whole = arguments.keywords.get("**0")
    if not arguments.nodes and whole is not None and (module.device != HOME or is_encoded(whole[1])):
        return next((operand for operand in operands if operand.node is whole[0]), None)  # `model(**inputs)`
    first = arguments.nodes[0] if arguments.nodes else None
    while isinstance(first, (ast.Tuple, ast.List)) and first.elts:
        first = first.elts[0]
    return next((operand for operand in operands if operand.node is first), None)


def reads_lengths(class_: ClassFacts) -> bool:
    """Whether the `forward` of a module may read lengths on the host: it does not compare them with anything."""
    found = class_.method("forward")
    if found is None or class_.abroad or found[0].abroad:
        return True
    return compares_no_lengths(found[1])


@lru_cache(256)
def compares_no_lengths(function: ast.AST) -> bool:
    """Whether a function reads something on the host, or compares nothing that is a length by its name."""
    nodes = list(walk(function))
    if any(getattr(n, "attr", getattr(n, "id", "")) in _ON_HOST for n in nodes):
        return True
    compared = (part for n in nodes if isinstance(n, ast.Compare) for part in walk(n))
    return not any(isinstance(n, ast.Name) and "len" in n.id for n in compared)

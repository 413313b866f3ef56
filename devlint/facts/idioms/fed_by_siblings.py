"""Modules of which no place is known, that one method of an object runs on what it moved, and another on what it did not.

    def loss(self, texts):
        ids = self.tokenizer(texts, return_tensors="pt")["input_ids"].to(self.device)
        return self.decoder(input_ids=ids).loss

    def show(self, text):
        ids = self.tokenizer(text, return_tensors="pt")["input_ids"]
        return self.decoder.generate(ids)          # the module is where the other method brings its input

What is not moved is what a tokenizer has just made, or a new tensor that is the first input. What is run must show that it has
a place: the class moves it, asks for its parameters or has it generate, it comes from `from_pretrained`, or its name or
its class is that of a network. A function, a transform or a reward takes its input wherever that is. A file that loads models
onto devices by a map, or in few bits, leaves it to hooks to bring their inputs along.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from devlint.facts.idioms.placed import goes_back, own_name, target_of
from devlint.facts.text.bindings import bindings
from devlint.facts.text.classes import ClassFacts, lineage
from devlint.facts.text.method_names import OFF_HOST, RUNS, SAME_MODULE, TO_HOST
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import chain, is_self, last_name
from devlint.facts.text.scan import FunctionScan, Scan
from devlint.facts.text.signs import moves
from devlint.facts.values import CPU, Place, Value, may_be_accelerator, symbol

if TYPE_CHECKING:
    from devlint.facts.events import Operand
    from devlint.facts.interpreter.arguments import CallArguments

Methods = tuple[tuple[ast.AST, FunctionScan], ...]
#: Methods that say where what they give is; `to` may also ask for a type, and then says nothing.
_PLACES = OFF_HOST | TO_HOST
#: Methods that only what has parameters is asked for.
_OF_NETWORKS = frozenset({"parameters", "named_parameters", "state_dict", "load_state_dict", "eval", "generate"})
#: Names of networks.
_NAMED = re.compile(
    r"(?:^|_)(?:\w*model|\w*net|network|backbone|transformer|discriminator|critic|vae|gpt|bert|lm|llm)(?:_\d+)?\Z"
)
#: Names of classes of networks.
_CLASS = re.compile(
    r"[A-Z]\w*(?:Net|Network|Model|Encoder|Decoder|Transformer|Backbone|MLP|Embedding)(?:V?\d+[dD]?)?\Z"
)
#: Names of what may have no parameters, whatever it is asked for: functions, transforms, losses, processors of inputs.
_NO_NETWORK = re.compile(
    r"loss|criteri|transform(?!er)|augment|mixup|cutmix|act(?:ivation)?(?:_|\d|\Z)|activ|relu|norm|scal|reward|metric|pool|collat"
    r"|sampl|tokeni|process|extract|schedul|config|noise|pos_|posit|freq|fourier|one_?hot|ordinal|fn(?:_|\Z)|func|callback"
    r"|env(?:_|\Z)|buffer|filter|resize|crop|label|camera|kinematic|physic"
)
#: What may take a module to the CPU that it is given.
_TAKES = re.compile(r"cpu|host|offload|device|move|export|place", re.IGNORECASE)
#: Attributes and methods that give several modules of an object.
_SEVERAL = re.compile(r"(?:model|net|network|module|part|children|component)s?_?\Z")
#: The length of something, or a number of things.
_LENGTH = re.compile(r"\blen\(|\blens?\b|\blengths?\b|_lens?\b|_lengths?\b")
#: What loads or wraps models such that their inputs are brought along.
_BY_HOOKS = re.compile(
    r"device_map|load_in_[48]bit|quantization_config|accelerat|dispatch_model|cpu_offload|DataParallel\b"
)


def note(machine: CallArguments, node: ast.Call, given: Sequence[Operand], is_encoded: Callable[[Value], bool]) -> None:
    """A method runs a module of its object on the CPU's tensors. `is_encoded`: whether a tokenizer has just made a value."""
    if machine.in_init or machine.host or not machine.assume or machine.owner is None or machine.function is None:
        return
    name = run(node)
    left = next((o for o in given if is_left(node, o, is_encoded(o.value))), None) if name else None
    if left is None or _BY_HOOKS.search(machine.source.text) is not None:
        return
    around = methods_of(machine.scan, tuple(lineage(machine.owner)))
    own = machine.function.node
    move = next((move for method, move in moved_elsewhere(around, name) if method is not own), None)
    if move is None or not is_network(around, name) or runs_while_built(around, own):
        return
    device = target_of(machine, machine.owner, move)
    if not may_be_accelerator(device):
        return
    if not all(isinstance(place, Place) or place.name.startswith("self.") for place in device):
        device = symbol(f"self.{name}.device", 0)  # the name is one of the other method
    because = (machine.origin(move, f"another method moves the input of `self.{name}` here"),)
    module = machine.operand(runner(node.func), Value("module", device, because=because))
    machine.meet(node, [module, left], "module", machine.text(node.func), "exact", unread=True)


def run(call: ast.Call) -> str:
    """`name` for `self.name(...)` and `self.name.generate(...)`; empty for any other call."""
    return own_name(runner(call.func))


def runner(node: ast.expr) -> ast.expr:
    """What is run: `self.name` for `self.name.generate`."""
    return node.value if isinstance(node, ast.Attribute) and node.attr in RUNS and not own_name(node) else node


def is_left(node: ast.Call, operand: Operand, encoded: bool) -> bool:
    """Whether an operand is what a tokenizer has just made (`encoded`), or a new tensor that is given first."""
    value = operand.value
    if value.device != CPU or value.moved or _LENGTH.search(operand.text) is not None:
        return False
    if encoded:
        return True
    return bool(node.args) and operand.node is node.args[0] and bool(value.made) and value.zero_dim is False


@lru_cache(32)
def methods_of(scan: Scan, classes: tuple[ClassFacts, ...]) -> Methods:
    """The methods of some classes that the file holds, with what their text holds."""
    found = ((method, scan.functions.get(id(method))) for each in classes for method in each.methods.values())
    return tuple((method, own) for method, own in found if own is not None)


@lru_cache(64)
def moved_elsewhere(around: Methods, name: str) -> tuple[tuple[ast.AST, ast.Call], ...]:
    """By method, the moves of what it gives `self.name`; nothing where some method may take the module to the CPU."""
    found: list[tuple[ast.AST, ast.Call]] = []
    for method, own in around:
        for call in own.calls:
            if goes_back(call) and may_be(own, moved_by(call), name):
                return ()
            if any(own_name(given) == name for given in call.args) and _TAKES.search(last_name(call.func)) is not None:
                return ()
            if run(call) == name:
                found += ((method, move) for move in islice(moved_inputs(own, call), 1))
    return tuple(found)


@lru_cache(64)
def is_network(around: Methods, name: str) -> bool:
    """Whether something in the methods shows that `self.name` is a network, which has parameters."""
    if _NO_NETWORK.search(name.lower()) is not None:
        return False
    if _NAMED.search(name.lower()) is not None:
        return True
    for _, own in around:
        for call in own.calls:
            function = call.func
            if isinstance(function, ast.Attribute) and own_name(function.value) == name:
                if function.attr in _OF_NETWORKS or moves(call):
                    return True
        for each in own.assigns:
            if isinstance(each, ast.Assign) and any(own_name(target) == name for target in each.targets):
                if any(makes_network(part) for part in chain(each.value) if isinstance(part, ast.Call)):
                    return True
    return False


def makes_network(call: ast.Call) -> bool:
    """Whether a call makes a network: by `from_pretrained`, or of a class with the name of one."""
    parts = [last_name(part) for part in chain(call.func)]
    if any(_NO_NETWORK.search(part.lower()) is not None for part in parts):
        return False
    return parts[0] == "from_pretrained" or _CLASS.match(parts[0]) is not None


@lru_cache(64)
def runs_while_built(around: Methods, method: ast.AST) -> bool:
    """Whether a constructor runs a method: the module is not yet moved then."""
    name = getattr(method, "name", "")
    inits = (own for each, own in around if getattr(each, "name", "") == "__init__")
    return any(own_name(call.func) == name for own in inits for call in own.calls)


def may_be(own: FunctionScan, node: ast.expr, name: str) -> bool:
    """Whether what is moved may be `self.name`: that itself, the object, or a name or an item of what holds either."""
    if isinstance(node, ast.Name):
        return node.id == "self" or any(may_hold(source, name) for source in bindings(own).get(node.id, ()))
    if isinstance(node, ast.Subscript):
        parts = list(chain(node))
        return is_self(parts[-1]) and not any(isinstance(part, ast.Call) for part in parts)
    return own_name(node) == name or (isinstance(node, ast.Call) and asks_object(node))


def may_hold(source: ast.expr, name: str) -> bool:
    """Whether an expression may give `self.name`, alone or among others, and not only what that computes."""
    whole = moved_by(source) if isinstance(source, ast.Call) and last_name(source.func) in SAME_MODULE else source
    if any(isinstance(part, ast.Call) and run(part) == name for part in chain(whole)):
        return False
    if isinstance(whole, ast.Call):
        called = last_name(whole.func)
        several = not whole.args and (called in ("values", "items") or _SEVERAL.search(called) is not None)
        return asks_object(whole) or several or any(may_hold(each, name) for each in whole.args)
    parts = [own_name(part) for part in walk(whole)]
    return name in parts or is_self(whole) or any(part and _SEVERAL.search(part) is not None for part in parts)


def asks_object(call: ast.Call) -> bool:
    """Whether a call asks the object for a part of its own: `getattr(self, name)`, `self.get_model()`."""
    alone = bool(own_name(call.func)) and not call.args and not call.keywords
    return alone or (isinstance(call.func, ast.Name) and any(map(is_self, call.args)))


def moved_by(call: ast.Call) -> ast.expr:
    """The module that a call moves: `self.net` for `self.net.cpu()` and `self.net.eval().cpu()`, not what it computes."""
    node = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SAME_MODULE:
        node = node.func.value
    return node


def moved_inputs(own: FunctionScan, call: ast.Call) -> Iterator[ast.Call]:
    """The moves that make the arguments of a call, there or where a name is bound, and after which nothing else moves them."""
    for given in (*call.args, *(keyword.value for keyword in call.keywords)):
        sources = bindings(own).get(given.id, ()) if isinstance(given, ast.Name) else (given,)
        lasts = [last_move(source.value if isinstance(source, ast.DictComp) else source) for source in sources]
        found = [last for last in lasts if last is not None]
        if found and all(map(moves, found)):
            yield from found


def last_move(node: ast.expr) -> ast.Call | None:
    """The call at the end of an expression that says where its value is: `.cpu()` of `x.to(device).flatten().cpu()`."""
    calls = (part for part in chain(node) if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute))
    return next((c for c in calls if c.func.attr in _PLACES), None)  # type: ignore[attr-defined]

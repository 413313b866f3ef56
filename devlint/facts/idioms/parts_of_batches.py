"""Which parts of what a loader or a call gives are tensors, where one of them is moved and others are not.

    for images, labels, names in loader:      # `labels` is a tensor by its name, `names` may be anything
        scores = model(images.to(device))
        loss = criterion(scores, labels)

A loader gives texts, trees and numbers beside its tensors, and a call whatever it likes: a model and its alphabet, arrays
of a simulator. So what is not moved is a tensor by its name, or a guess that needs a use as only a tensor has.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from functools import lru_cache

from devlint.facts.frozen import replace
from devlint.facts.idioms import guesses
from devlint.facts.text.method_names import RUNS
from devlint.facts.text.nodes import returns, walk
from devlint.facts.text.parameters import MODULE_ONLY
from devlint.facts.text.references import is_name, last_name
from devlint.facts.text.scan import FunctionScan
from devlint.facts.text.signs import is_model_name
from devlint.facts.values import BATCH, Value

#: The last words of the names of tensors.
_TENSOR = re.compile(
    r"(^|_)([xyz]|images?|imgs?|pictures?|pics?|inputs?|targets?|labels?|gt|truth|masks?|noise|audios?|videos?|frames?|states?"
    r"|tensors?|waveforms?|wavs?|features?|feats?|offsets?|src|tgt|trg|embeddings?|embeds?|points?|clouds?|logits?"
    r"|edge_index|edge_attr|(input|label|token|segment|position)_ids|pixel_values|coords?)[0-9]*_*\Z"
)
#: What models are to find, by the last word of its name.
_TARGET = re.compile(r"(^|_)(y|targets?|labels?|gt|truth|tgt|lbls?|classes|answers?)[0-9]*_*\Z")
#: Methods of simulators, which give arrays and numbers, and dicts of them.
_SIMULATES = frozenset({"step", "reset"})
#: What makes a tensor of an array.
_MAKES = frozenset({"tensor", "as_tensor", "from_numpy", "asarray", "Tensor", "FloatTensor", "LongTensor", "array"})
#: What a step goes on with is called so, and no batch of a loader.
_STATE = re.compile(r"(^|_)(states?|caches?|carry|past|memory|hidden|beams?)\Z")
_JOINS = frozenset({"cat", "concat", "concatenate", "stack", "hstack", "vstack"})
#: How the origins of parts end that are known by the move of another one.
MOVED_HERE = "is moved here"


def value_of(part: ast.expr, whole: Value, moved: Collection[str]) -> Value:
    """A part of a batch: `whole` if it is moved or a tensor by its name, else a guess."""
    if isinstance(part, ast.Name) and part.id not in moved and not is_tensor_name(part.id):
        return guesses.guess(whole.device, whole.because[0])
    return whole


def may_be_anything(value: Value) -> bool:
    """Whether a value is a part of a batch of which nothing shows that it is a tensor."""
    return guesses.is_guess(value) and bool(value.because) and value.because[0].text.endswith(MOVED_HERE)


def compared(value: Value) -> Value:
    """What a loss compares is a tensor, and what it is left with as a part of a batch is as that is."""
    return (
        replace(value, kind="tensors", zero_dim=False, type_name=BATCH)
        if may_be_anything(value)
        else guesses.tensor(value)
    )


def is_tensor_name(name: str) -> bool:
    """Whether a name reads like that of a tensor that a loader gives."""
    return _TENSOR.search(name.lower()) is not None


def are_only_targets(moved: Collection[str], target: ast.expr) -> bool:
    """Whether of several parts those alone are moved that a model does not take: it moves its inputs itself."""
    names = {part.id for part in walk(target) if isinstance(part, ast.Name)}
    held = names.intersection(moved)
    return bool(held) and len(names) > 1 and all(_TARGET.search(name.lower()) is not None for name in held)


def is_batch(call: ast.Call, names: Collection[str], own: FunctionScan) -> bool:
    """Whether what a call gives may be a batch: no step of a simulator, no module among its parts, and no array."""
    if last_name(call.func) in _SIMULATES or any(map(is_model_name, names)):
        return False
    return no_parts(own).isdisjoint(names)


@lru_cache(8)
def no_parts(own: FunctionScan) -> frozenset[str]:
    """The names that a function calls, or uses as modules and optimizers are used, and those of what it makes tensors of."""
    found = {each.value.id for each in own.attributes if each.attr in MODULE_ONLY and isinstance(each.value, ast.Name)}
    for each in own.calls:
        function = each.func
        if isinstance(function, ast.Name):
            found.add(function.id)
        elif isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.attr in RUNS:
            found.add(function.value.id)
        if last_name(function) in _MAKES:
            found.update(argument.id for argument in each.args[:1] if isinstance(argument, ast.Name))
    return frozenset(found)


def carried(own: FunctionScan, name: str) -> frozenset[str]:
    """The keys, as written, of a state under which a function joins the entry with something else, and gives the state back.

    def decode(self, state):
        token, mask = state["token"].to(self.device), state["mask"]
        state["mask"] = torch.cat([mask, 1 - token], dim=1)
        return scores, state          # the next step goes on with it: no loader has made that entry

    What is made of the entry alone tells nothing, `batch["mask"] = batch["mask"].float()`, nor what a batch is called.
    """
    if _STATE.search(name) is None:
        return frozenset()
    given_back = (each.value for each in returns(own.node))
    if not any(isinstance(each, ast.Tuple) and any(is_name(e, name) for e in each.elts) for each in given_back):
        return frozenset()
    bound: dict[str, list[ast.expr]] = {}
    stored: dict[str, list[ast.expr]] = {}
    for each in own.assigns:
        if isinstance(each, ast.Assign) and len(each.targets) == 1:
            target, key = each.targets[0], _key(each.targets[0], name)
            if isinstance(target, ast.Name):
                bound.setdefault(target.id, []).append(each.value)
            elif key is not None:
                stored.setdefault(key, []).append(each.value)
    found = set()
    for key, values in stored.items():
        old = {local for local, given in bound.items() if any(_key(each, name) == key for each in given)}
        made = [part for each in values for part in (bound.get(each.id, ()) if isinstance(each, ast.Name) else (each,))]
        if any(_joins(each, name, key, old) for each in made):
            found.add(key)
    return frozenset(found)


def _key(node: ast.AST, name: str) -> str | None:
    """The key of an entry of what has a name, as written: `'mask'` of `state["mask"]`."""
    if isinstance(node, ast.Subscript) and is_name(node.value, name) and isinstance(node.slice, ast.Constant):
        return repr(node.slice.value)
    return None


def _joins(node: ast.expr, name: str, key: str, old: Collection[str]) -> bool:
    """Whether an expression joins an entry, itself or under one of some names, with what is not made of it alone."""
    if not isinstance(node, ast.Call) or last_name(node.func) not in _JOINS or not node.args:
        return False
    parts = node.args[0].elts if isinstance(node.args[0], (ast.List, ast.Tuple)) else []
    own = [each for each in parts if _key(each, name) == key or (isinstance(each, ast.Name) and each.id in old)]
    others = [part for each in parts if each not in own for part in walk(each)]
    known = {name, "self", "torch", *old}
    return bool(own) and any(
        _key(part, name) not in (None, key) or (isinstance(part, ast.Name) and part.id not in known) for part in others
    )

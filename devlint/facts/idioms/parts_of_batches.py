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
from devlint.facts.text.method_names import OFF_HOST, RUNS
from devlint.facts.text.nodes import returns, text_of, walk
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


def is_carried(own: FunctionScan, name: str) -> bool:
    """Whether a function reads an entry of an argument, binds it anew and gives the argument back beside something else.

    def decode(self, state):
        token, mask = state["token"].to(self.device), torch.cat([state["mask"], ...])
        ...
        state["mask"] = mask
        return scores, state          # the next step goes on with it: no loader has made it

    An entry that is moved tells nothing: `batch["image"] = batch["image"].to(device)`.
    """
    entries = [(key, each) for each in own.subscripts if is_name(each.value, name) and (key := text_of(each.slice))]
    stored = {key for key, each in entries if isinstance(each.ctx, ast.Store)}
    if not stored:
        return False
    given_back = (each.value for each in returns(own.node))
    if not any(isinstance(each, ast.Tuple) and any(is_name(e, name) for e in each.elts) for each in given_back):
        return False
    functions = [call.func for call in own.calls]
    moved = {id(f.value) for f in functions if isinstance(f, ast.Attribute) and f.attr in OFF_HOST}
    stored -= {key for key, each in entries if id(each) in moved}
    return any(key in stored and isinstance(each.ctx, ast.Load) for key, each in entries)

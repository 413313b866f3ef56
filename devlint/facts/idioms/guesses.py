"""What an unknown function computes from tensors: if it is a tensor, it is where they are.

`features = backbone(images)` with a `backbone` that another file defines: nothing is known of `features`. Functions that
are given tensors on one device give tensors back there, by far the most of them, but they may as well give numbers, lists
or arrays. So the result is a *guess*: of kind "unknown", with a device. It becomes a tensor only where the code uses it as
nothing but a tensor can be used; until then nothing is concluded from it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from devlint import knowledge
from devlint.facts.frozen import replace
from devlint.facts.idioms.randomness import CHECKPOINT
from devlint.facts.text.parameters import TENSOR_ONLY
from devlint.facts.text.signs import is_model_name
from devlint.facts.values import (
    BATCH,
    CPU,
    GUESS,
    NOTHING,
    TENSOR_KINDS,
    UNKNOWN,
    Device,
    Value,
    join,
    may_be_accelerator,
)
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.knowledge import Function

#: Words in the name of a function whose result is on the host, or is chosen to be somewhere.
_ELSEWHERE = re.compile(
    r"cpu|cuda|gpu|numpy|ndarray|(^|_)np(_|$)|host|list|device|item|load|read|tokeni[sz]e|gather_obj"
)
#: Packages whose functions give no tensors, or host ones.
_NO_TORCH = frozenset(
    {
        "numpy", "scipy", "sklearn", "math", "random", "os", "sys", "time", "json", "logging", "itertools", "functools",
        "collections", "PIL", "cv2", "pandas", "matplotlib", "wandb", "copy", "re", "typing", "tensorflow", "datetime",
        "builtins", "pickle", "warnings", "tqdm", "inspect", "operator", "jax", "skimage", "networkx", "string", "types",
    }
)  # fmt: skip
#: Attributes that are no tensors whatever they are read from.
_NO_TENSORS = frozenset({"shape", "dtype", "device", "ndim", "name", "size", "requires_grad", "training", "config"})
#: Ends of the names of attributes that are texts, or numbers of special entries.
_PLAIN_END = re.compile(
    r"names?\Z|[a-z]_(size|count)\Z|(^|_)(padding|pad|bos|eos|unk|mask|cls|sep|blank)(_token)?_(idx|index|id)\Z"
)


#: The last word of names for files.
_FILE = re.compile(r"(?:^|_)(?:file|path|dir|folder|url|uri|json|filename|filepath)s?\Z")


def is_guess(value: Value) -> bool:
    return value.kind == "unknown" and value.type_name == GUESS


def guess(device: Device, origin: Origin) -> Value:
    return Value("unknown", device, type_name=GUESS, because=(origin,))


def result(callee: ast.expr, given: Iterable[Value], origin: Callable[[], Origin]) -> Value:
    """What an unknown function is guessed to give: something on the one device of the tensors it is given, or nothing."""
    name = callee.attr if isinstance(callee, ast.Attribute) else callee.id if isinstance(callee, ast.Name) else ""
    given = list(given)
    for each in opened(given):
        if each.kind in TENSOR_KINDS or each.type_name == GUESS:
            break
    else:
        return NOTHING
    device = common_device(given)
    moved = moved_on_a_path(given, is_model_name(name)) if not device else None
    if not (device or moved) or _ELSEWHERE.search(name.lower()):
        return NOTHING
    origin_of = origin()
    if moved is None:
        return Value("unknown", device, type_name=GUESS, because=(origin_of, *source_of(given)))
    sides = (replace(guess(side.device, origin_of), because=side.because[:1], moved=side.moved) for side in moved[1:])
    first, second = sides
    return replace(guess(join(first.device, second.device), origin_of), split=(moved[0], first, second))


def source_of(given: Iterable[Value]) -> tuple[Origin, ...]:
    """Where the first tensor among some values comes from."""
    tensors = (v for v in opened(given) if v.kind != "module" and (v.is_tensor or is_guess(v)))
    return next((v.because[-1:] for v in tensors if v.because), ())


def moved_on_a_path(given: Iterable[Value], by_model: bool) -> tuple[str, Value, Value] | None:
    """The condition under which the only tensor among some values was moved, and what it is on both paths.

    What is made here and moved on one path says so where a model takes it.
    """
    tensors = [v for v in opened(given) if v.kind != "module" and (v.is_tensor or is_guess(v))]
    if len(tensors) != 1 or tensors[0].split is None or tensors[0].zero_dim is True:
        return None
    if tensors[0].made and not by_model:
        return None
    key, first, second = tensors[0].split
    if not (first.device and second.device) or not any(
        v.moved and may_be_accelerator(v.device) for v in (first, second)
    ):
        return None
    return key, first, second


def common_device(given: Iterable[Value]) -> Device:
    """The one device of all tensors and guesses among some values, where it may be an accelerator; else UNKNOWN."""
    found: Device | None = None
    for value in opened(given):
        if value.kind == "module":
            continue
        if not (value.is_tensor or is_guess(value)) or value.zero_dim is True:
            continue
        if not value.device or value.type_name == BATCH or value.made or value.attribute is not None:
            return UNKNOWN
        if found is not None and value.device != found:
            return UNKNOWN
        found = value.device
    return found if found is not None and len(found) == 1 and may_be_accelerator(found) else UNKNOWN


def opened(given: Iterable[Value]) -> list[Value]:
    """Some values, with what is in lists, tuples and dicts instead of these."""
    found: list[Value] = []
    for value in given:
        elements = value.elements
        if elements is None:
            found.append(value)
        elif isinstance(elements, tuple) and value.kind in ("list", "tuple"):
            found += elements
        elif isinstance(elements, dict) and value.kind == "dict":
            found += elements.values()
        else:
            found.append(value)
    return found


def of_import(qualname: str, guessed: Value) -> Value:
    """What a function imported from elsewhere is guessed to give: nothing by a class or by a library about other things."""
    package, _, name = qualname.partition(".")[0], "", qualname.rsplit(".", 1)[-1]
    return NOTHING if package in _NO_TORCH or name[:1].isupper() else guessed


def settle(record: Function, values: list[Value]) -> None:
    """Guesses given where a torch function takes nothing but tensors are tensors."""
    for index in record.tensors_among(len(values)):
        values[index] = surely(values[index])
    for index in record.sequence_params:
        if index < len(values):
            given = values[index]
            if isinstance(given.elements, tuple) and given.kind in ("list", "tuple"):
                values[index] = replace(given, elements=tuple(map(surely, given.elements)))
            elif is_guess(given):
                values[index] = replace(given, kind="tensors")  # it holds tensors


def part(value: Value, name: str | None = None) -> Value:
    """An attribute or an element of a guess: a guess as well, except what is never a tensor. Else nothing."""
    if not is_guess(value) or name in _NO_TENSORS or is_plain_name(name or ""):
        return NOTHING
    return value


def of_checkpoint(value: Value) -> Value:
    """What an entry is taken of; of a checkpoint that was put on the CPU it is a guess, wherever it was saved."""
    return replace(value, type_name=GUESS) if value.type_name == CHECKPOINT and value.device == CPU else value


def is_plain_name(name: str) -> bool:
    """Whether an attribute says how many, whether, or what it is called: `graph.num_nodes`, `batch.is_sorted`, `x.buffer_size`.

    Or which of the entries of a vocabulary is a special one: `alphabet.padding_idx`.
    """
    return name.startswith(("num_", "is_", "has_", "n_", "nb_")) or _PLAIN_END.search(name) is not None


def names_file(name: str) -> bool:
    """Whether a name says that it is a file, or where one is: `result_file`, `save_path`, `answer_json`."""
    return _FILE.search(name) is not None


def tensor(value: Value) -> Value:
    """A guess that is used as a tensor is one."""
    return replace(value, kind="tensor") if is_guess(value) else value


def surely(value: Value) -> Value:
    """A guess that a function of torch takes: a tensor, and no array. On the CPU it stays a guess that it is there."""
    return replace(value, kind="tensor", type_name=GUESS if value.device == CPU else None) if is_guess(value) else value


def shows_tensor(method: str) -> bool:
    """Whether a method that is called on a guess shows that it is a tensor."""
    if method in TENSOR_ONLY:
        return True
    # what ends in an underscore and is a method of tensors changes them in place: nothing else has such names, but for
    # the one that modules have, too [torch/nn/modules/module.py, `requires_grad_`]
    in_place = method.endswith("_") and not method.endswith("__") and method != "requires_grad_"
    return (in_place or method in _LIKELY) and knowledge.method("Tensor", method) is not None


def is_of_modules(method: str) -> bool:
    """Whether modules have a method of that name: `half`, `double`, `type`."""
    return knowledge.method("Module", method) is not None


#: Methods of tensors that a structure of tensors, a distribution or a number has not; arrays may have them.
_LIKELY = frozenset(
    {
        "view", "reshape", "flatten", "squeeze", "sum", "mean", "max", "min", "argmax", "argmin", "cumsum", "clamp", "topk",
        "softmax", "norm", "float", "half", "double", "bool", "byte", "int", "t", "permute", "transpose", "pow", "exp", "log",
        "sqrt", "abs", "eq", "ne", "ge", "le", "gt", "lt", "nonzero", "flip", "repeat", "sort", "unique", "split", "any",
        "all", "clone", "masked_scatter", "type", "size", "round", "floor", "ceil", "tanh", "relu", "square", "std", "var",
        "mul", "div", "sub", "neg", "sin", "cos", "argsort", "cumprod", "prod", "amax", "amin", "isnan", "rsqrt", "log1p",
        "log2", "log10", "sign", "roll", "movedim", "median", "expm1", "softplus", "diag", "trace", "addcmul", "lerp",
    }
)  # fmt: skip

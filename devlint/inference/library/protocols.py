"""Protocols that libraries document: which methods they call, and where what they hand over is.

Each row names its source. A name alone proves nothing: a row applies to a method of a class of that family only.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from devlint import knowledge
from devlint.knowledge import stubs

#: Bases that Python knows by one word, which say nothing of what an object is [Python's library reference].
_PLAIN_BASES: Final = frozenset({"object", "ABC", "Exception", "dict", "list", "tuple"})
DATA_CLASS_DECORATORS: Final = frozenset(
    {"dataclasses.dataclass", "attr.s", "attr.dataclass", "attrs.define", "chex.dataclass"}
)
DATA_CLASS_BASES: Final = frozenset({"typing.NamedTuple", "NamedTuple"})

#: The data types of torch [torch/csrc/utils/tensor_dtypes.cpp].
_DTYPES: Final = frozenset(
    {"float16", "half", "float32", "float", "float64", "double", "bfloat16", "int8", "int16", "short", "int32", "int",
     "int64", "long", "uint8", "bool", "complex64", "complex128"}
)  # fmt: skip

#: Methods that torch or a library calls beside the module, after it moved it and the batch
#: [torch.nn.Module; Lightning, "LightningModule API"].
BESIDE_MODULE: Final = frozenset({"forward", "training_step", "validation_step", "test_step", "predict_step"})
#: Methods that are called with the parameters where the module is [torch.optim.Optimizer.step].
BESIDE_PARAMETERS: Final = frozenset({"step"})
#: Methods of data sets and samplers, which run before any transfer [torch.utils.data].
ON_HOST: Final = frozenset(
    {
        "__getitem__",
        "__getitems__",
        "__iter__",
        "__len__",
        "__next__",
        "collate_fn",
        "__call__",
        "get",
        "len",
        "process",
    }
)
#: Families whose methods run on the host.
HOST_FAMILIES: Final = frozenset({"Dataset", "Sampler", "HostDataset"})

#: Methods of a module that keep a function to call later, and what that function gets
#: [torch/nn/modules/module.py, `_call_impl`].
HOOKS: Final = {
    "register_forward_hook": ("module", "inputs", "output"),
    "register_forward_pre_hook": ("module", "inputs"),
    "register_full_backward_hook": ("module", "gradients", "gradients"),
    "register_full_backward_pre_hook": ("module", "gradients"),
}


def is_torch_module(class_: object) -> bool:
    """Whether the class of an object is a module class of torch, by its qualified name."""
    return isinstance(class_, str) and class_.startswith("torch.nn.")


@cache
def family_of_base(name: str) -> str:
    """The family of a base class that is not of the project: a word of `knowledge.Class.family`, "object", or "unread"."""
    if name in _PLAIN_BASES:
        return "object"
    family = stubs.cls(name).get("family")
    if isinstance(family, str):
        return family
    record = knowledge.cls(name)
    return record.family if record is not None else "unread"


def is_dtype(name: object) -> bool:
    """Whether a qualified name is that of a data type of torch."""
    return isinstance(name, str) and name.startswith("torch.") and name.removeprefix("torch.") in _DTYPES

"""Names of methods by which torch moves things, or gives them back where they are: one table for each question.

A place that means more adds that itself: `PLACES | {"pin_memory"}`.
"""

from __future__ import annotations

from devlint.facts.values import ACCELERATORS

# -- elsewhere --------------------------------------------------------------------------------------------------------
#
# Tensors and modules have `to`, `cpu`, `cuda`, `xpu`, `ipu`, `mtia` and `type` [torch/_tensor_docs.py,
# torch/nn/modules/module.py]; a backend that is no part of torch adds a method of its name to both, as that of `npu`
# does [torch/utils/backend_registration.py, `generate_methods_for_privateuse1_backend`]. There is none for `mps` or
# `xla`: code that calls one means a move.

#: What may take a tensor or a module to an accelerator. What is none of `ACCELERATORS` is given the place: `to`.
OFF_HOST = ACCELERATORS | {"to"}
#: What puts either on the device that it names or is given, the CPU as well.
PLACES = OFF_HOST | {"cpu"}
#: And `type`, which moves where it names tensors of another device: `x.type(torch.cuda.FloatTensor)`.
MOVES = PLACES | {"type"}
#: What may take a tensor to an accelerator: `type_as` to where another tensor is [torch/_tensor_docs.py].
OFF_HOST_TENSOR = OFF_HOST | {"type_as"}
#: What may take a module to an accelerator [torch/nn/modules/module.py].
OFF_HOST_MODULE = OFF_HOST | {"to_empty"}
#: What gives the values of a tensor outside of torch.
OUT_OF_TORCH = frozenset({"numpy", "tolist", "item"})
#: What gives host data, whatever it is called on.
TO_HOST = OUT_OF_TORCH | {"cpu"}

# -- where it is ------------------------------------------------------------------------------------------------------

#: The common ones of what gives a tensor in another shape.
SHAPES = frozenset({"view", "reshape", "flatten", "squeeze", "unsqueeze", "permute", "transpose", "contiguous"})
#: The common ones of what gives a tensor of another type of numbers.
TYPES = frozenset({"float", "double", "half", "bfloat16", "long", "int", "short", "bool"})
#: What gives the values of a tensor where it is.
SAME_PLACE = SHAPES | TYPES | {"detach", "clone"}
#: Attributes of a tensor that are tensors where it is.
TENSOR_ATTRIBUTES = frozenset({"data", "T", "mT", "H", "mH", "real", "imag"})
#: What gives back the module that it is called on, and leaves that where it is [torch/nn/modules/module.py].
SAME_MODULE = frozenset({"train", "eval", "requires_grad_", "half", "float", "double", "bfloat16", "share_memory"})
#: And what does so unless it is told to move it: `apply` by a function that moves the parts, `type` by a type of another
#: device's tensors.
GIVES_MODULE = SAME_MODULE | {"type", "apply"}

# -- parts and runs ---------------------------------------------------------------------------------------------------

#: What makes something a part of a module under a name that it is given, most often a computed one
#: [torch/nn/modules/module.py]. `set_submodule` is most often given a written one, of a part to be replaced.
REGISTERS = frozenset({"add_module", "register_module", "setattr", "__setattr__"})
#: What a model computes by, other than a call [torch/nn/modules/module.py, transformers/generation/utils.py].
RUNS = frozenset({"forward", "generate"})
#: Methods of a distribution that give a tensor where its parameters are [torch/distributions/distribution.py].
OF_DISTRIBUTIONS = frozenset({"sample", "rsample", "log_prob", "entropy"})

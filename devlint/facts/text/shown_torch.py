"""Files that import no torch and have objects of torch all the same: made by a package that is built on it, or by the project.

    model = super_gradients.training.models.get(name).cuda()
    imputer = SAITS(n_steps=48, device="cuda:0")      # from pypots.imputation
    model.eval().to("cuda")                           # from .build import model
    class Unet(ModelBase): def forward(self, x): ...  # from .model_base import ModelBase

Other libraries have devices of these names, too: a file that imports one of them shows nothing.
"""

from __future__ import annotations

import ast
import re

from devlint.facts.text.names import Imports
from devlint.facts.text.nodes import text_of, walk

#: One of these is in the text of every such file.
WORDS = (b".cuda(", b'"cuda', b"'cuda", b"def forward(self, ")

#: Libraries with arrays or devices of their own that are named like those of torch.
_OTHERS = frozenset(
    {
        "cupy", "cudf", "cuml", "cugraph", "jax", "flax", "tensorflow", "keras", "numba", "pycuda", "cuda", "paddle", "mxnet",
        "mindspore", "oneflow", "jittor", "megengine", "chainer", "tvm", "warp", "taichi", "mlx", "tinygrad", "theano",
        "triton",
        "pyopencl", "openmm", "xgboost", "lightgbm", "catboost", "onnxruntime", "tensorrt", "openvino",
    }
)  # fmt: skip
_CARD = re.compile(r"cuda(?::\d+)?\Z")


def shows_torch(tree: ast.Module, imports: Imports) -> bool:
    """Whether a file imports something of the torch family, or moves what nothing but torch moves so."""
    roots = {name.partition(".")[0] for name in (*imports.names.values(), *imports.stars)}
    if not roots.isdisjoint(_OTHERS):
        return False
    if imports.mentions_torch or may_define_modules(tree, imports):
        return True
    return any(_moves(node, imports) for node in walk(tree) if isinstance(node, ast.Call))


def may_define_modules(tree: ast.Module, imports: Imports) -> bool:
    """Whether a class with a `forward` derives from one of another file, which may be a module."""
    return any(
        isinstance(node, ast.ClassDef)
        and any(isinstance(base, ast.Name) and (base.id in imports.names or imports.stars) for base in node.bases)
        and any(isinstance(part, ast.FunctionDef) and part.name == "forward" for part in node.body)
        for node in tree.body
    )


def _moves(call: ast.Call, imports: Imports) -> bool:
    """`x.cuda()`, `x.to("cuda")`, `x.to(device="cuda:0")` of what is no imported module."""
    function = call.func
    if not isinstance(function, ast.Attribute) or len(call.args) > 1:
        return False
    if isinstance(function.value, ast.Name) and function.value.id in imports.names:
        return False
    if function.attr == "cuda":
        return not call.args or isinstance(call.args[0], ast.Constant)
    given = [*call.args, *(k.value for k in call.keywords if k.arg == "device")]
    return function.attr == "to" and any(_CARD.match(text_of(value) or "") for value in given)

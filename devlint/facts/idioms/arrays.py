"""Arrays of numpy that surely have a dimension, so that tensors made of them do: `torch.tensor(np.linspace(0, 1, 10))`.

A tensor without dimensions leaves the CPU where it meets others, one with dimensions does not; of `torch.tensor(x)` only what
`x` is can tell.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from devlint.facts.frozen import replace
from devlint.facts.values import Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.arguments import Arguments
    from devlint.knowledge import Function as Record

#: What gives one dimension at least, whatever it is given [numpy documentation, each page under "Returns"].
_DIMENSIONED = frozenset(
    {
        "linspace", "logspace", "geomspace", "arange", "eye", "identity", "tri", "tril", "triu", "tril_indices",
        "triu_indices", "indices", "append", "atleast_1d", "atleast_2d", "atleast_3d", "column_stack", "concatenate",
        "concat", "stack", "vstack", "hstack", "dstack", "row_stack", "cumsum", "cumprod", "diag", "diagonal", "diff",
        "ediff1d", "flatnonzero", "histogram_bin_edges", "intersect1d", "outer", "ravel", "repeat",
        "setdiff1d", "sort", "union1d", "unique", "fromiter", "fromstring", "frombuffer", "fromfile",
        "random.permutation", "linalg.inv", "linalg.cholesky",
    }
)  # fmt: skip
#: What makes a tensor again of a tensor [torch/_tensor.py, `Tensor.__array_wrap__`; numpy/_core/fromnumeric.py, `_wrapit`].
_TENSOR_AGAIN = frozenset({"cumprod", "cumsum", "repeat", "linalg.inv", "linalg.cholesky"})
#: What takes a shape first: a number or more is one dimension or more.
_SHAPED = frozenset(
    {"zeros", "ones", "empty", "full", "random.random", "random.random_sample", "random.standard_normal"}
)
#: What takes sizes as its arguments.
_SIZED = frozenset({"random.rand", "random.randn"})
#: What draws one number, or as many as `size` says.
_DRAWN = frozenset({"random.normal", "random.uniform", "random.randint", "random.choice"})
#: How the type of an array of objects is written.
_OBJECT = frozenset({"object", "'object'", "'O'", "np.object_", "numpy.object_", "np.object", "numpy.object"})
_OF_DATA = frozenset({"array", "asarray", "asanyarray", "ascontiguousarray", "copy"})
#: What works element by element on one array.
_ELEMENTWISE = frozenset(
    {
        "abs", "absolute", "arccos", "arcsin", "arctan", "around", "cbrt", "ceil", "clip", "cos", "cosh", "deg2rad",
        "degrees", "exp", "exp2", "expm1", "fabs", "floor", "log", "log10", "log1p", "log2", "negative", "rad2deg",
        "radians", "reciprocal", "rint", "round", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh",
    }
)  # fmt: skip
DIMENSIONED: Final = Value("ndarray", zero_dim=False)
#: An array of objects: what is stored at one of its places stays what it is.
OF_OBJECTS: Final = Value("ndarray", zero_dim=False, type_name="objects")
#: What `x.cpu().numpy()` gives of something unknown: an array of a tensor; an object of a class that has both methods may
#: give another object.
OF_SOMETHING: Final = Value("ndarray", type_name="of something unknown")


def result(record: Record, arguments: Arguments) -> Value | None:
    """What a function of numpy gives where that is an array which surely has a dimension; None where it may have none."""
    library, _, name = record.qualname.partition(".")
    if library != "numpy" or not is_dimensioned(name, arguments):
        return None
    if name not in _SHAPED:
        return DIMENSIONED
    kind = arguments.keywords.get("dtype")
    if kind is not None and ast.unparse(kind[0]) in _OBJECT:
        return OF_OBJECTS
    return of_dimensions(arguments.nodes[0])


def of_dimensions(shape: ast.expr) -> Value:
    """An array of as many dimensions as its shape has numbers."""
    sizes = shape.elts if isinstance(shape, (ast.Tuple, ast.List)) else [shape]
    if any(isinstance(size, ast.Starred) for size in sizes):
        return DIMENSIONED
    return replace(DIMENSIONED, type_name=f"{len(sizes)} dimensions")


def has_dimension(value: Value) -> bool:
    """Whether a value is an array of numbers that surely has a dimension."""
    return value.kind == "ndarray" and value.zero_dim is False and value != OF_OBJECTS


def takes_several(node: ast.expr, value: Value) -> bool:
    """Whether an index of a tensor is for several places at once, though it is no tensor: an array, or a list of numbers.

    torch makes a tensor of it, so that such an assignment is `index_put_`, which copies nothing between devices but one value
    without dimensions [torch/csrc/autograd/python_variable_indexing.cpp, applySlicing and sequenceToVariable;
    aten/src/ATen/native/TensorAdvancedIndexing.cpp, _index_put_impl_].
    """
    if isinstance(node, ast.List):
        return bool(node.elts) and all(isinstance(n, ast.Constant) and isinstance(n.value, int) for n in node.elts)
    return has_dimension(value)


def part(base: Value, key: ast.expr) -> Value | None:
    """What a slice takes of an array that surely has a dimension: one that has it still."""
    return DIMENSIONED if isinstance(key, ast.Slice) and has_dimension(base) else None


def is_place(value: Value, indices: int) -> bool:
    """Whether so many integers are for one place of an array, and no row of it."""
    return value == OF_OBJECTS or (value.kind == "ndarray" and value.type_name == f"{indices} dimensions")


def is_dimensioned(name: str, arguments: Arguments) -> bool:
    first = arguments.values[0] if arguments.values else None
    node = arguments.nodes[0] if arguments.nodes else None
    if name in _SHAPED:
        return is_shape(node, first)
    if name in _DRAWN:
        size = arguments.get("size")
        return size is not None and is_shape(*size)
    if name in _ELEMENTWISE:
        return first is not None and has_dimension(first)
    if name in _OF_DATA:
        return isinstance(node, (ast.List, ast.ListComp, ast.Tuple)) or (first is not None and has_dimension(first))
    if name in _TENSOR_AGAIN and first is not None and first.is_tensor:
        return False
    return name in _DIMENSIONED or (name in _SIZED and node is not None)


def is_shape(node: ast.expr | None, value: Value | None) -> bool:
    """Whether an argument is a number, or a shape that is written out and has one at least."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return bool(node.elts)
    return value is not None and (value.kind == "number" or value.type_name == "extent")

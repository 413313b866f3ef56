"""How the old constructors of typed tensors, `torch.FloatTensor` and `torch.cuda.FloatTensor`, are written today."""

from __future__ import annotations

import ast

from devlint.api import ApiCall, Operand, Site, cst

from ._api import dtype_of


def modern_tensor(event: ApiCall, device: cst.BaseExpression, site: Site, filled: str | None = None) -> cst.Call | None:
    """`torch.tensor(data, dtype=..., device=...)` or `torch.empty(sizes, ...)`; None where the argument may be either.

    An old constructor copies a list or an array, and takes numbers for sizes, as all that are more than one. `filled`:
    the function that also does what a method called on the result does.
    """
    call, dtype = site.node, dtype_of(event.qualname)
    if event.qualname == "torch.Tensor":
        dtype = "torch.float32"
    if not isinstance(call, cst.Call) or dtype is None or event.star:
        return None
    given = [event.arguments[str(i)] for i in range(len(event.arguments)) if str(i) in event.arguments]
    plain = [a.with_changes(comma=cst.MaybeSentinel.DEFAULT) for a in call.args if a.keyword is None]
    if len(given) != len(plain) or any(a.keyword is not None and a.keyword.value != "device" for a in call.args):
        return None
    if len(given) > 1 or all(operand.value.kind == "number" or _is_size(operand) for operand in given):
        function = filled or "torch.empty"
        if not plain:
            plain = [cst.Arg(cst.Integer("0"))]
    elif len(given) == 1 and _is_data(given[0]):
        function = "torch.tensor"
    else:
        return None
    named = [keyword("dtype", site.expression(site.spell(dtype))), keyword("device", device)]
    return cst.Call(site.expression(site.spell(function)), [*plain, *named])


def keyword(name: str, value: cst.BaseExpression) -> cst.Arg:
    """The argument `name=value`."""
    none = cst.SimpleWhitespace("")
    equal = cst.AssignEqual(whitespace_before=none, whitespace_after=none)
    return cst.Arg(value, keyword=cst.Name(name), equal=equal)


def _is_size(operand: Operand) -> bool:
    """Whether an argument is the size of a tensor: `torch.Size(...)`, `x.size()`, `x.shape`."""
    node = operand.node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.keywords:
        return node.func.attr == "Size" or (node.func.attr == "size" and not node.args)
    return isinstance(node, ast.Attribute) and node.attr == "shape"


def _is_data(operand: Operand) -> bool:
    return isinstance(operand.node, ast.List | ast.ListComp) or operand.value.kind in ("ndarray", "list")

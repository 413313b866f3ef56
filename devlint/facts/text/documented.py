"""What docstrings say of parameters: which are tensors, which hold tensors, which may be tensors or something else.

Read in the three styles that torch code is documented in:

    x : torch.Tensor                    numpydoc, a line of its own; also `x: Tensor`
    x (Tensor): what it is              Google, below `Args:`
    :type x: torch.Tensor               Sphinx, also `:param torch.Tensor x:`

Only a type that stands where the style puts it counts; what prose says of a parameter does not. Data of the host is
documented so as well: where an annotation would do to doubt the callers less, a docstring does not.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Says = Literal["tensor", "several", "maybe"]

_NAMES = r"\*{0,2}`{0,2}[A-Za-z_]\w*`{0,2}(?:\s*,\s*`{0,2}[A-Za-z_]\w*`{0,2})*"
_NUMPY = re.compile(rf"^[ \t]*({_NAMES})([ \t]*):[ \t]+(?=\S)([^\n]+)$", re.MULTILINE)
_GOOGLE = re.compile(rf"^[ \t]*(?:[-*][ \t]+)?({_NAMES})[ \t]*\(((?:[^()\n]|\([^()\n]*\))+)\)", re.MULTILINE)
_SPHINX = re.compile(r":type[ \t]+(\w+)[ \t]*:[ \t]*([^\n]+)|:param[ \t]+([\w.\[\], ]+?)[ \t]+(\w+)[ \t]*:")
_MARKUP = re.compile(r":\w+(?::\w+)*:(?=`)|[`~'\"]")
_TYPE = r"(?:torch\.(?:cuda\.)?)?(?:(?:Float|Double|Half|Long|Int|Short|Byte|Bool|BFloat16)?Tensor|tensor)"
_TENSOR = re.compile(rf"(?:an? (?=torch|[A-Z]))?(?:Optional\[|\d-?[dD] |[Pp]y[Tt]orch )?{_TYPE}(?![\w.])")
#: What follows the word where it is a type and not the begin of a sentence.
_OF_SHAPE = re.compile(
    rf"(?:an? (?=torch|[A-Z]))?{_TYPE}(?:[.,;]?\s*\Z|, | (?:of|with) (?:shape|size)| containing| ?[\[(])"
)
_SEVERAL = re.compile(
    rf"(?:[Ll]ist|[Tt]uple|[Ss]equence|[Ii]terable|[Dd]ict)s?"
    rf"(?: of |\[|\()(?:str(?:ing)?, ?|(?:[Ll]ist|[Tt]uple)(?: of |\[))?{_TYPE}s?(?![\w.])"
)
#: A second type behind the first: `Tensor or float`, `Tensor | np.ndarray`, `Tensor, list`; None is none.
_ANOTHER = re.compile(
    r"(?:\bor\b|\||/|,)\s*(?:an? |:\w+:)?(?!None\b|optional\b|default|required\b|shape\b|of\b)"
    r"(?=(?:(?:np|numpy)\.)?(?:ndarray|array|list|List|tuple|Tuple|dict|Dict|int|float|str|string|bool|scalar|number|"
    r"sequence|Sequence|callable|nn\.|PIL|Image|PackedSequence|Sparse)s?(?!\w))"
)


@dataclass(frozen=True, slots=True)
class Documented:
    """Names of parameters: surely tensors, structures of tensors, tensors or something else."""

    tensors: frozenset[str] = frozenset()
    several: frozenset[str] = frozenset()
    maybe: frozenset[str] = frozenset()


_NOTHING = Documented()


def of_function(node: ast.AST, owner: ast.ClassDef | None) -> Documented:
    """What the docstring of a function says; for `__init__` that of its class as well."""
    text = docstring(node)
    if owner is not None and getattr(node, "name", "") == "__init__":
        around = docstring(owner)
        text = f"{around}\n{text}" if around else text
    return read(text) if "ensor" in text else _NOTHING


def docstring(node: ast.AST) -> str:
    """The docstring as it is written, or nothing."""
    body = getattr(node, "body", None)
    first = body[0] if isinstance(body, list) and body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return first.value.value
    return ""


@lru_cache(256)
def read(text: str) -> Documented:
    """The parameters that a docstring gives a type with tensors; one that it describes twice in two ways has none."""
    found: dict[str, Says | None] = {}

    def note(names: str, type: str) -> None:
        says = meaning(type)
        for name in re.findall(r"\w+", names):
            if says is not None or name in found:
                found[name] = says if found.get(name, says) == says else None

    for match in _SPHINX.finditer(text):
        note(match[1] or match[4], match[2] or match[3])
    for match in _GOOGLE.finditer(text):
        note(match[1], match[2])
    for match in _NUMPY.finditer(text):
        said = match[3]
        if match[2] or _OF_SHAPE.match(_MARKUP.sub("", said)) is not None:
            note(match[1], said)

    def named(says: Says) -> frozenset[str]:
        return frozenset(name for name, known in found.items() if known == says)

    return Documented(named("tensor"), named("several"), named("maybe"))


def meaning(type: str) -> Says | None:
    """What the text of a type says: `Tensor[N, 4], optional`, `list of Tensor`, `Tensor or float`."""
    text = _MARKUP.sub("", type).strip()
    several, one = _SEVERAL.match(text), _TENSOR.match(text)
    if several is None and one is None:
        return None
    end = (several or one).end()  # type: ignore[union-attr]
    if _ANOTHER.search(text[end:]) is not None:
        return "maybe"
    return "several" if several is not None else "tensor"

"""A module keeps modules or parameters in a plain list, tuple or dict.

## What it flags
The rule reports an attribute of an `nn.Module` that is a plain container of modules or parameters. A plain container is
a list, a tuple, a dict or a comprehension.

The rule also reports these cases:

* The container is empty at first and is filled later, by `append` or by item assignment.
* The container is filled in a local variable or in another method, and is then assigned to the attribute.
* The container is an argument of the constructor. The annotation of the argument says that the container holds modules
  (`parts: Sequence[Encoder]`), and methods call its items.
* A function from `functools` wraps the module: `partial(net)`, `lru_cache()(net)`. Methods call the wrapper.
  `__init__` does not assign the module itself to an attribute, so torch does not register it.
* The class of the items is defined in a file that cannot be read. The name of the class looks like the name of a
  network (`WideResNet`, `UpsamplingModule`), and methods call the items.

## Why it matters
A module does not register what a plain container holds:

* `.to(device)` does not move the contents.
* `parameters()` does not list the contents, so the optimizer never trains them.
* `state_dict()` does not save the contents.

On the CPU no error appears. The only symptom is a worse result.

## Example
    import torch
    from torch import nn


    class Stack(nn.Module):
        def __init__(self, depth: int) -> None:
            super().__init__()
            self.layers = [nn.Linear(8, 8) for _ in range(depth)]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = layer(x)
            return x

Use instead:

    import torch
    from torch import nn


    class Stack(nn.Module):
        def __init__(self, depth: int) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(depth)])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = layer(x)
            return x

## Fix safety
The fix replaces the container by `nn.ModuleList`, `nn.ModuleDict`, `nn.ParameterList` or `nn.ParameterDict`. The fix is
unsafe. After the fix, the optimizer trains the parameters, `state_dict()` contains them, and old checkpoints lack them.

The rule makes a suggestion without an edit in these cases:

* The container is a dict, and not all of its keys are strings.
* A comment is inside the container.

## Known limits
The rule reports nothing in these cases:

* The same modules are also registered. Examples are `nn.Sequential(*self.layers)`, `add_module`, and an attribute that
  holds an item of the container.
* The modules have neither parameters nor buffers. The rule knows this only for torch's modules and for classes that the
  file defines.
* The contents of the container are unknown.
* The container is a list with one variable: `self.hidden = [module]`. Many programs use a list with one item
  on purpose, so that torch does not register the module.
* A comment on the line or above it mentions registration: "not registered on purpose", "a list instead of a
  ModuleList".
"""

from __future__ import annotations

import ast
import re

from devlint.api import Edit, Facts, Finding, Fix, Register, Rule, RuleMeta, Safety, Severity, Site, cst

from . import _shared as shared
from ._api import needs_torch

_SPEAKS_OF_IT = re.compile(r"regist|Module(List|Dict)|state_?dict", re.IGNORECASE)


class UnregisteredModule(Rule[Register]):
    meta = RuleMeta(
        code="DEV107",
        name="unregistered-module",
        summary="modules or parameters are held in a plain container and are not registered",
        since="0.1.0",
        level="certain",
        severity=Severity.ERROR,
        fix="sometimes",
        words=("torch", "def forward(self, "),
    )
    event = Register

    def suspects(self, event: Register, facts: Facts) -> bool:
        if event.what not in ("modules", "parameters") or hides(event.value.node):
            return False
        return not _SPEAKS_OF_IT.search(comments_at(facts.text, event.span.start))

    def judge(self, event: Register, site: Site) -> Finding | None:
        container = "list" if event.container in (None, "comprehension") else event.container
        if event.container == "function":
            message = (
                f"`self.{event.attribute}` wraps a module in a plain function, so the module is not registered: "
                f"`{event.class_name}` neither moves, trains nor saves it"
            )
            fix = Fix("Also assign the module itself to an attribute", Safety.HINT)
            return Finding(event.span, message, fix, event.because)
        message = (
            f"the {event.what} in the plain {container} `self.{event.attribute}` are not registered: "
            f"`{event.class_name}` neither moves, trains nor saves them"
        )
        return Finding(event.span, message, self._fix(event, site), tuple(dict.fromkeys(event.because + event.uses)))

    def _fix(self, event: Register, site: Site) -> Fix:
        is_dict = event.container == "dict"
        kind = "Module" if event.what == "modules" else "Parameter"
        holder = site.spell(f"torch.nn.{kind}{'Dict' if is_dict else 'List'}")
        title = f"Hold the {event.what} in `{holder}`"
        value = site.at(event.value.span)
        if not isinstance(value, cst.BaseExpression) or site.has_comment(value):
            return Fix(title, Safety.HINT)
        if isinstance(value, cst.Call) and is_copy(event.value.node):
            needs = needs_torch(site.facts) if holder.startswith("torch.") else ()
            return Fix(title, Safety.UNSAFE, (Edit(value.func, site.expression(holder)),), needs)
        if not self._fits(event.value.node):
            return Fix(title, Safety.HINT)
        arguments = [cst.Arg(shared.as_argument(value))] if not self._is_empty(event.value.node) else []
        edit = Edit(value, cst.Call(site.expression(holder), args=arguments))
        return Fix(title, Safety.UNSAFE, (edit,), needs_torch(site.facts) if holder.startswith("torch.") else ())

    def _fits(self, node: ast.expr) -> bool:
        """Whether the registered container takes this content as it stands."""
        if isinstance(node, ast.Dict):
            return all(isinstance(key, ast.Constant) and isinstance(key.value, str) for key in node.keys)
        inner = node.elts if isinstance(node, ast.List | ast.Tuple) else [getattr(node, "elt", None)]
        if any(isinstance(part, ast.List | ast.Tuple | ast.ListComp) for part in inner):
            return False  # the inner ones would have to be registered, too
        return isinstance(node, ast.List | ast.ListComp | ast.Tuple | ast.Name | ast.BoolOp)

    def _is_empty(self, node: ast.expr) -> bool:
        """Whether the container is made empty, and filled later."""
        if isinstance(node, ast.List):
            return not node.elts
        return isinstance(node, ast.Dict) and not node.keys


def is_copy(node: ast.expr) -> bool:
    """Whether this is a plain copy of a container that has a name: `list(parts)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or len(node.args) != 1:
        return False
    return node.func.id in ("list", "tuple", "dict") and isinstance(node.args[0], ast.Name)


def hides(node: ast.expr) -> bool:
    """Whether this is the idiom that hides one module from registration: a list or tuple of a single name."""
    return isinstance(node, ast.List | ast.Tuple) and len(node.elts) == 1 and isinstance(node.elts[0], ast.Name)


def comments_at(text: str, place: int) -> str:
    """The comments in the line of a place and in the rows right above it."""
    rows = text[:place].split("\n")
    rest = text[place:].split("\n", 1)[0]
    found = [rest[rest.index("#") :]] if "#" in rest else []
    for row in reversed(rows[:-1]):
        if not row.lstrip().startswith("#"):
            break
        found.append(row)
    return "\n".join(found)

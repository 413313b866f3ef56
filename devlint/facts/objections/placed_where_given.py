"""Tensors that an object keeps where its constructor is given one, in a file that makes such objects of host data alone.

    class Boxes:
        def __init__(self, rows):
            device = rows.device if isinstance(rows, torch.Tensor) else torch.device("cpu")
            self.rows = torch.as_tensor(rows, device=device)

    boxes = Boxes(torch.tensor(found))     # in another file: `boxes.rows` is on the CPU

Asked before a finding is reported.
"""

from __future__ import annotations

import ast
import os
from typing import TYPE_CHECKING

from devlint.facts.events import Meet, Use
from devlint.facts.text.bindings import bindings
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import chain, last_name
from devlint.facts.text.signatures import default_of, given_at, named_parameters, positional_names
from devlint.facts.text.signs import moves
from devlint.facts.values import Symbol

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.calling.neighbours import Looked
    from devlint.facts.text.scan import FunctionScan
    from devlint.model import Span


def is_placed_by_host_data(sites: CallSites, event: Meet | Use) -> bool:
    """Whether what an event takes for an accelerator's is kept by an object where its constructor is given a tensor, and
    everything in the file that makes such an object gives it a new tensor of the CPU."""
    value = event.other.value if isinstance(event, Meet) else event.operand.value
    origin = value.because[0] if value.because else None
    named = [place for place in value.device if isinstance(place, Symbol)]
    if origin is None or not origin.text.startswith("created on `") or len(named) != 1:
        return False
    here, home = sites.files.look(sites.path), sites.files.look(os.path.abspath(origin.path or sites.path))
    own = constructor_around(home, origin.span) if home is not None else None
    if here is None or home is None or own is None or own.owner is None:
        return False
    assert isinstance(own.node, (ast.FunctionDef, ast.AsyncFunctionDef))
    name, spec = given_tensor(own, named[0].name), own.node.args
    names = positional_names(spec)[1:]
    if name not in names or is_annotated(sites.body(event.function), own.owner.name):
        return False
    given = [
        given_at(site.call, name, names.index(name), default_of(spec, name))
        for site in sites.made(here, home, own.owner.name)
    ]
    return bool(given) and all(each is not None and is_new(sites, each) for each in given)


def is_new(sites: CallSites, node: ast.expr) -> bool:
    """Whether an expression makes a tensor on the CPU, and moves it nowhere: `torch.tensor(rows).reshape(-1, 4)`."""
    calls = [part for part in chain(node) if isinstance(part, ast.Call)]
    return bool(calls) and sites.is_made_on_cpu(calls[-1]) and not any(map(moves, calls))


def constructor_around(home: Looked, span: Span) -> FunctionScan | None:
    """The constructor of a file in which a place is."""
    for own in home.loaded.scan.functions.values():
        if isinstance(own.node, ast.FunctionDef) and own.node.name == "__init__":
            around = home.flow.span(own.node)
            if around.start <= span.start < around.end:
                return own
    return None


def given_tensor(own: FunctionScan, place: str) -> str:
    """The parameter of a function on whose device a place is: `x.device`, or a name that is bound to that, or the CPU."""
    said = bindings(own).get(place, []) if place.isidentifier() else [ast.parse(place, mode="eval").body]
    asked = {
        last_name(node.value)
        for value in said
        for node in walk(value)
        if isinstance(node, ast.Attribute) and node.attr == "device" and last_name(node.value) not in ("", "torch")
    }
    if len(asked) != 1 or any("cuda" in ast.unparse(value) for value in said):
        return ""
    return asked.pop()


def is_annotated(function: ast.AST | None, class_name: str) -> bool:
    """Whether a function says that it is given an object of a class, which others may make as well."""
    spec = getattr(function, "args", None)
    said = [each.annotation for each in named_parameters(spec)] if isinstance(spec, ast.arguments) else []
    return any(class_name in ast.unparse(note) for note in said if note is not None)

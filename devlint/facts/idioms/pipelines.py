"""Pipelines, which are given texts and pictures, and bring them to where their models are.

    pipe = StableDiffusionPipeline.from_pretrained("a/b").to(device)
    for prompts in DataLoader(texts):
        pictures = pipe(prompts).images

What such a call is given is on the host, and what it gives is what it is asked for: pictures, arrays or tensors.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from devlint.facts.text.classes import ClassFacts, lineage
from devlint.facts.text.nodes import statements
from devlint.facts.text.references import bindings_of, chain, is_self_attribute, last_name
from devlint.facts.text.signatures import is_kept_parameter, parameter_of

if TYPE_CHECKING:
    from devlint.facts.interpreter.module_calls import ModuleCalls

_NAME = re.compile(r"(^|_)(pipe|pipeline)$")
#: What is in every name of a class of pipelines.
WORD = "ipeline"
#: A name that ends in Model, Module or Net is one of those: `AudioPipelineModel`. The last two are a function of
#: transformers, and what tests keep such a class in [diffusers/tests/pipelines/test_pipelines_common.py:
#: `self.pipeline_class(**components)`].
_CLASS = re.compile(r"[A-Z]\w*Pipeline(?!\w*(?:Model|Module|Net)\Z)([A-Z]\w*)?|pipeline|pipeline_(class|cls)")


def bound(tree: ast.AST | None) -> frozenset[str]:
    """The names and attributes, as written, that a file binds to what a class of pipelines makes, by the name of the class."""
    found: set[str] = set()
    for node in statements(tree) if tree is not None else ():
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and is_made(node.value):
            found.update(ast.unparse(target) for target in node.targets)
    return frozenset(found)


def is_made(call: ast.Call) -> bool:
    """Whether an expression makes a pipeline, wherever it is moved to: `PicturePipeline.from_pretrained("a").to(device)`."""
    return any(
        isinstance(part, ast.Call) and any(_CLASS.fullmatch(last_name(each)) for each in chain(part.func))
        for part in chain(call)
    )


def is_named(node: ast.expr) -> bool:
    """Whether what is called reads like a pipeline by its name: `pipe(prompts)`, `self.base_pipeline(prompts)`."""
    return _NAME.search(last_name(node).lower()) is not None


def is_annotated(machine: ModuleCalls, node: ast.expr) -> bool:
    """Whether what is called is annotated with a class of pipelines, which is no module: a parameter of the function, or an
    attribute of `self` in the methods of its class, `def __init__(self, model: PicturePipeline): self.model = model`."""
    noted: list[ast.expr | None] = []
    if isinstance(node, ast.Name) and machine.function is not None:
        noted.append(_annotation(machine.function.node, node.id))
    elif is_self_attribute(node) and machine.owner is not None:
        for class_ in lineage(machine.owner):
            noted += _annotations(class_).get(last_name(node), ())
    for each in noted:
        if each is None or _CLASS.fullmatch(last_name(each)) is None:
            return False
        named = machine.class_named(each)
        if named is not None and named.is_module:
            return False
    return bool(noted)


@lru_cache(64)
def _annotations(class_: ClassFacts) -> Mapping[str, Sequence[ast.expr | None]]:
    """What a class says of its attributes where its own methods bind them; None where they say nothing."""
    found: dict[str, list[ast.expr | None]] = {}
    for method in class_.methods.values():
        for statement in statements(method):
            for target, value in bindings_of(statement):
                if isinstance(target, ast.Attribute) and is_self_attribute(target):
                    said = getattr(statement, "annotation", None)
                    said = said or (_annotation(method, value.id) if isinstance(value, ast.Name) else None)
                    found.setdefault(target.attr, []).append(said)
    return found


def _annotation(function: ast.AST, name: str) -> ast.expr | None:
    """What is written beside a parameter of a function, which nothing in it binds anew."""
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or not is_kept_parameter(function, name):
        return None
    found = parameter_of(function.args, name)
    return found.annotation if found is not None else None

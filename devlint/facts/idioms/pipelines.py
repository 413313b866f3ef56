"""Pipelines, which are given texts and pictures, and bring them to where their models are.

    pipe = StableDiffusionPipeline.from_pretrained("a/b").to(device)
    for prompts in DataLoader(texts):
        pictures = pipe(prompts).images

What such a call is given is on the host, and what it gives is what it is asked for: pictures, arrays or tensors.
"""

from __future__ import annotations

import ast
import re

from devlint.facts.text.nodes import statements
from devlint.facts.text.references import chain, last_name

_NAME = re.compile(r"(^|_)(pipe|pipeline)$")
#: What is in every name of a class of pipelines.
WORD = "ipeline"
_CLASS = re.compile(r"[A-Z]\w*Pipeline([A-Z]\w*)?|pipeline")


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

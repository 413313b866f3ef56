"""What the handlers of a `try` catch: an error that none of them takes ends the program as it does without them."""

from __future__ import annotations

import ast
import builtins

from devlint.facts.text.references import last_name

#: Any error: a bare `except:`, and what stands for one.
EVERYTHING = frozenset({"Exception"})
#: Errors of torch that are about memory alone.
_MEMORY = frozenset({"OutOfMemoryError"})


def caught(node: ast.Try) -> frozenset[str]:
    """The last names of the errors that the handlers of a `try` catch; "Exception" for what is not named."""
    found: set[str] = set()
    for handler in node.handlers:
        types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        for type in types:
            found.add("Exception" if type is None else last_name(type) or "Exception")
    return frozenset(found)


def takes(name: str, error: str) -> bool:
    """Whether a handler of the errors that are called `name` takes one called `error`, of Python; a name that is not
    Python's may stand for any."""
    class_, wanted = getattr(builtins, name, None), getattr(builtins, error)
    if isinstance(class_, type) and issubclass(class_, BaseException):
        return issubclass(wanted, class_)
    return name not in _MEMORY

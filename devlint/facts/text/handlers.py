"""What handlers catch, of a `try` and of context managers: an error that none takes ends the program as it does without
them."""

from __future__ import annotations

import ast
import builtins

from devlint.facts.text.references import last_name

#: Any error: a bare `except:`, and what stands for one.
EVERYTHING = frozenset({"Exception"})
#: Errors of torch that are about memory alone.
_MEMORY = frozenset({"OutOfMemoryError"})
#: `pytest.raises` [docs.pytest.org, how-to/assert], `assertRaises` and `assertRaisesRegex` of unittest and of
#: `torch.testing._internal.common_utils.TestCase`.
_AWAITING = frozenset({"raises", "assertRaises", "assertRaisesRegex", "assertRaisesRegexp"})


#: What catches whatever comes, and so says nothing of what is expected.
_ANY = frozenset({"Exception", "BaseException"})
#: Calls that tell somebody of an error, by the last name, and those that end the program.
_REPORTING = frozenset({
    "print", "print_exc", "print_exception", "print_stack", "debug", "info", "warning", "warn", "error", "exception",
    "critical", "log", "write", "flush",
})  # fmt: skip
_ENDING = frozenset({"exit", "_exit", "quit", "abort"})


def caught(node: ast.Try) -> frozenset[str]:
    """The last names of the errors that the handlers of a `try` catch; "Exception" for what is not named.

    A handler of whatever comes that only reports it, or ends the program, catches nothing: the error is one all the same.
    """
    found: set[str] = set()
    for handler in node.handlers:
        names = {"Exception"} if handler.type is None else named(handler.type)
        if not (names <= _ANY and only_reports(handler.body)):
            found |= names
    return frozenset(found)


def only_reports(body: list[ast.stmt]) -> bool:
    """Whether a handler does nothing with an error but print it, log it, raise it again, or end the program.

    One that does nothing at all says that the error does not matter.
    """
    return any(not isinstance(each, ast.Pass) for each in body) and all(map(_reports, body))


def _reports(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Raise):
        return True
    if isinstance(statement, (ast.Import, ast.ImportFrom, ast.Pass)):
        return True
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    return last_name(statement.value.func) in _REPORTING | _ENDING


def suppressed(node: ast.Call) -> frozenset[str]:
    """What `contextlib.suppress(...)` catches, by the same names."""
    return frozenset(name for argument in node.args for name in named(argument))


def named(types: ast.expr) -> set[str]:
    """The last names of one class of errors, or of a tuple of them."""
    listed = types.elts if isinstance(types, ast.Tuple) else [types]
    return {last_name(type) or "Exception" for type in listed}


def awaits_error(node: ast.expr) -> bool:
    """Whether a context manager is there to see its block fail: `pytest.raises(...)`, `self.assertRaises(...)`."""
    return isinstance(node, ast.Call) and last_name(node.func) in _AWAITING


def stand_ins(node: ast.Try) -> set[str]:
    """The names that a `try` imports and that its handlers give a constant: `torch = None` where there is no torch.

    What uses such a name runs where the import went well.
    """
    imports = [n for n in node.body if isinstance(n, (ast.Import, ast.ImportFrom))]
    imported = {(a.asname or a.name).split(".", 1)[0] for each in imports for a in each.names}
    bound = [
        target
        for handler in node.handlers
        for n in handler.body
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.Constant)
        for target in n.targets
    ]
    return imported.intersection(target.id for target in bound if isinstance(target, ast.Name))


def takes(name: str, error: str) -> bool:
    """Whether a handler of the errors that are called `name` takes one called `error`, of Python; a name that is not
    Python's may stand for any."""
    class_, wanted = getattr(builtins, name, None), getattr(builtins, error)
    if isinstance(class_, type) and issubclass(class_, BaseException):
        return issubclass(wanted, class_)
    return name not in _MEMORY

"""What fixes need besides their edits: imports, the device of the run, other places of the decision, each written once.

An import goes after the imports at the top, the device's definition after the import of torch as well. A fix whose use
of a need would come before it cannot be made.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import lru_cache

from devlint.facts import Facts
from devlint.fix.rows import REST_OF_ROW, CannotEditError, newline_of, starts_row
from devlint.model import AlsoNeed, Fix, ImportNeed, Need, RunDeviceNeed, Span, TextEdit
from devlint.tree import Tree

_TORCH_NAME = re.compile(r"\btorch(?:\.\w+)+")


def needs_of(fix: Fix, tree: Tree, facts: Facts) -> list[TextEdit]:
    """The imports and definitions that the fix uses and the module lacks."""
    if not fix.needs:
        return []
    shared = [edit for need in fix.needs if (edit := _in_function(need, tree)) is not None]
    bound = _module_names(tree.ast)
    names = bound.keys() - _script_names(tree.ast)
    imports = [need.module for need in fix.needs if isinstance(need, ImportNeed)]
    devices = [need for need in fix.needs if isinstance(need, RunDeviceNeed) and _function_of(need, tree) is None]
    devices = [need for need in devices if need.name not in (names if need.inside is None else bound)]
    local = facts.spell("torch")
    has_torch = local.split(".")[0] in bound or _gets_by_star(local, tree)
    if devices and not has_torch:
        imports.append("torch")
    block = _import_block(tree)
    for module in dict.fromkeys(imports):
        if module.split(".")[0] not in bound:
            apart = block < 0 or not _is_plain_import(tree.ast.body[block])
            shared.append(_after(tree, block, f"import {module}", apart))
    if devices:
        spell = facts.spell if has_torch else str
        after = max(block, bound.get(local.split(".")[0], bound.get("*", block))) if has_torch else block
        after = max(after, _last_setting(tree))
        for need in dict.fromkeys(devices):
            definition = f"{need.name} = {_TORCH_NAME.sub(lambda name: spell(name[0]), need.choice)}"
            shared.append(_defined(need, definition, after, tree))
    return shared


def _gets_by_star(name: str, tree: Tree) -> bool:
    """Whether the file reads a name that it has from `from x import *` alone."""
    return "*" in _module_names(tree.ast) and any(
        isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree.ast)
    )


def _function_of(need: Need, tree: Tree) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The function that alone gets the device of a need."""
    if not isinstance(need, RunDeviceNeed) or need.inside is None:
        return None
    functions = (node for node in ast.walk(tree.ast) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return next((node for node in functions if tree.source.span(node) == need.inside), None)


def _in_function(need: Need, tree: Tree) -> TextEdit | None:
    """The definition of a device at the start of the function that alone gets it; None where it has that already.

    Raises CannotEditError where the first statement has no row of its own.
    """
    function = _function_of(need, tree)
    assert function is None or isinstance(need, RunDeviceNeed)
    if (
        function is None
        or not isinstance(need, RunDeviceNeed)
        or need.name in _module_names(ast.Module(function.body, []))
    ):
        return None
    source, first = tree.source, function.body[0]
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(function.body) > 1
    start = tree.start(function.body[1] if is_text else first)
    if not starts_row(source, start):
        raise CannotEditError
    row = source.starts[source.row(start) - 1]
    return TextEdit(row, row, f"{source.text[row:start]}{need.name} = {need.choice}{newline_of(source, 0)}")


def _defined(need: RunDeviceNeed, definition: str, after: int, tree: Tree) -> TextEdit:
    """The definition of a device: at the start of the script, behind the name that it reads, or after the imports."""
    script = _index_of(need.inside, tree)
    if script is not None:
        edit = _in_script(tree.ast.body[script], definition, tree)
        if edit is not None:
            return edit
    binding = _index_of(need.after, tree)
    if binding is not None and binding > after:
        return _after(tree, binding, definition, apart=False)
    return _after(tree, after, definition, apart=True, ends=True)


def _index_of(span: Span | None, tree: Tree) -> int | None:
    """The index of the statement of the module with a span."""
    if span is None:
        return None
    return next((index for index, each in enumerate(tree.ast.body) if tree.source.span(each) == span), None)


def _in_script(script: ast.stmt, definition: str, tree: Tree) -> TextEdit | None:
    """The definition on a row at the start of a block, after its imports and what sets the visible cards there.

    None where the block has no row of its own.
    """
    source, text = tree.source, tree.source.text
    assert isinstance(script, ast.If)
    first = source.span(script.body[0]).start
    if not starts_row(source, first):
        return None
    indent = text[source.starts[source.row(first) - 1] : first]
    newline = newline_of(source, 0)
    last = max((index for index, each in enumerate(script.body) if _comes_first(each, tree)), default=-1)
    if last < 0:
        head = REST_OF_ROW.match(text, _end_of_head(script, tree))
        if head is None or not head.group(2):
            return None
        return TextEdit(head.end(), head.end(), f"{indent}{definition}{newline}")
    rest = REST_OF_ROW.match(text, source.span(script.body[last]).end)
    if rest is None or not rest.group(2):
        return None
    follows_imports = isinstance(script.body[last], ast.Import | ast.ImportFrom)
    blank = newline if follows_imports else ""
    return TextEdit(rest.end(), rest.end(), f"{blank}{indent}{definition}{newline}")


def _comes_first(statement: ast.stmt, tree: Tree) -> bool:
    """Whether a statement of a block imports something, or sets which cards are visible."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return True
    return "VISIBLE_DEVICES" in tree.source.text[slice(*tree.source.span(statement))]


def _end_of_head(script: ast.If, tree: Tree) -> int:
    """Where the colon of an `if` ends."""
    test = tree.source.span(script.test).end
    return tree.source.text.index(":", test) + 1


def also_of(fix: Fix, defined: Sequence[TextEdit], tree: Tree) -> list[TextEdit]:
    """The other places that the decision of a fix settles. `defined`: what the fix needs at the start of the file.

    Raises CannotEditError where one would use a name before it is defined.
    """
    own = {need.name for need in fix.needs if isinstance(need, RunDeviceNeed) and _function_of(need, tree) is None}
    start = max((edit.start for edit in defined), default=0)
    needs = [need for need in fix.needs if isinstance(need, AlsoNeed)]
    if any(need.text in own and need.span.start < start for need in needs):
        raise CannotEditError
    return [TextEdit(need.span.start, need.span.end, need.text) for need in needs]


def _last_setting(tree: Tree) -> int:
    """The index of the last statement at module level that sets which cards are visible; -1 without one.

    Asking for a device before it would fix the choice.
    """
    text, last = tree.source.text, -1
    if "VISIBLE_DEVICES" not in text:
        return last
    for index, statement in enumerate(tree.ast.body):
        defines = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if not defines and "VISIBLE_DEVICES" in text[slice(*tree.source.span(statement))]:
            last = index
    return last


def _after(tree: Tree, index: int, text: str, apart: bool, ends: bool = False) -> TextEdit:
    """`text` on a row after the top-level statement `index`, before the first for -1; `apart`: a blank row between.

    `ends`: a blank row follows it as well, where none stands there.
    """
    source, body = tree.source, tree.ast.body
    newline = newline_of(source, 0)
    blank = newline if apart else ""
    if index < 0:
        start = tree.start(body[0])
        if not starts_row(source, start):
            raise CannotEditError
        place = source.starts[source.row(start) - 1]
        return TextEdit(place, place, text + newline + blank)
    rest = REST_OF_ROW.match(source.text, source.span(body[index]).end)
    if rest is None or not rest.group(2):
        raise CannotEditError
    following = source.text[rest.end() :].partition("\n")[0].strip()
    return TextEdit(rest.end(), rest.end(), blank + text + newline + (newline if ends and following else ""))


def _import_block(tree: Tree) -> int:
    """The index of the last import of the block at the top; the docstring's without one, -1 without both."""
    last = -1
    for index, statement in enumerate(tree.ast.body):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            last = index
        elif index == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            last = 0 if isinstance(statement.value.value, str) else -1
            if last < 0:
                break
        elif not _may_stand_between_imports(statement):
            break
    return _last_apart(tree, last)


def _last_apart(tree: Tree, block: int) -> int:
    """The index of the last import that stands apart from the block, with nothing but plain statements in between.

    Those name no card and load nothing: no use of the device comes before the import.
    """
    last, body = block, tree.ast.body
    for index in range(block + 1, len(body)):
        statement = body[index]
        if isinstance(statement, ast.Import | ast.ImportFrom) or _tries_import(statement, tree):
            last = index
        elif _is_for_checkers(statement):
            continue
        elif not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr) or _may_use_card(statement, tree):
            break
    return last


def _tries_import(statement: ast.stmt, tree: Tree) -> bool:
    """Whether a `try` or an `if`, but for the script's, holds nothing that matters but imports."""
    if not isinstance(statement, ast.Try | ast.If) or _is_script(statement) or _may_use_card(statement, tree):
        return False
    if _is_for_checkers(statement):
        return False
    return isinstance(statement.body[0], ast.Import | ast.ImportFrom)


def _is_for_checkers(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and ast.unparse(statement.test).endswith("TYPE_CHECKING")


def _may_use_card(statement: ast.stmt, tree: Tree) -> bool:
    """Whether a statement names a card, or calls something that the project defines, which may need one."""
    written = tree.source.text[slice(*tree.source.span(statement))]
    return any(word in written for word in ("cuda", "xpu", "mps", "load(", "device"))


def _is_script(statement: ast.stmt) -> bool:
    """Whether a statement is `if __name__ == "__main__"`."""
    return isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)


def _is_plain_import(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.ImportFrom):
        return statement.module != "__future__"
    return isinstance(statement, ast.Import)


def _may_stand_between_imports(statement: ast.stmt) -> bool:
    """Names with two underscores, settings such as `os.environ["X"] = "1"`, calls such as `warnings.filterwarnings()`,
    and `try` or `if` around imports."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Call)
    if isinstance(statement, ast.Assign):
        return all(
            isinstance(target, ast.Subscript | ast.Attribute)
            or (isinstance(target, ast.Name) and target.id.startswith("__"))
            for target in statement.targets
        )
    if isinstance(statement, ast.Try | ast.If):
        return any(isinstance(inner, ast.Import | ast.ImportFrom) for inner in ast.walk(statement))
    return False


@lru_cache(maxsize=1)
def _script_names(module: ast.Module) -> frozenset[str]:
    """The names that are bound where the file is run as a script alone."""
    scripts = [statement for statement in module.body if _is_script(statement)]
    others = ast.Module([statement for statement in module.body if not _is_script(statement)], [])
    inside = _module_names(ast.Module(scripts, []))
    return frozenset(inside.keys() - _module_names(others).keys())


@lru_cache(maxsize=3)
def _module_names(module: ast.Module) -> dict[str, int]:
    """The names that the module's own code binds, each with the index of the first top-level statement that does."""
    names: dict[str, int] = {}
    for index, statement in enumerate(module.body):
        pending: list[ast.AST] = [statement]
        while pending:
            node = pending.pop()
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.setdefault(node.name, index)
                continue
            if isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
                continue
            if isinstance(node, ast.stmt) and _is_for_checkers(node):
                assert isinstance(node, ast.If)
                pending += node.orelse
                continue
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.setdefault(node.id, index)
            elif isinstance(node, ast.alias):
                names.setdefault((node.asname or node.name).split(".")[0], index)
            elif isinstance(node, ast.ExceptHandler) and node.name:
                names.setdefault(node.name, index)
            pending.extend(ast.iter_child_nodes(node))
    return names

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
from devlint.model import AlsoNeed, Fix, ImportNeed, RunDeviceNeed, TextEdit
from devlint.tree import Tree

_TORCH_NAME = re.compile(r"\btorch(?:\.\w+)+")


def needs_of(fix: Fix, tree: Tree, facts: Facts) -> list[TextEdit]:
    """The imports and definitions that the fix uses and the module lacks."""
    if not fix.needs:
        return []
    bound = _module_names(tree.ast)
    imports = [need.module for need in fix.needs if isinstance(need, ImportNeed)]
    devices = [need for need in fix.needs if isinstance(need, RunDeviceNeed) and need.name not in bound]
    local = facts.spell("torch")
    has_torch = local.split(".")[0] in bound
    if devices and not has_torch:
        imports.append("torch")
    block = _import_block(tree.ast)
    shared: list[TextEdit] = []
    for module in dict.fromkeys(imports):
        if module.split(".")[0] not in bound:
            apart = block < 0 or not _is_plain_import(tree.ast.body[block])
            shared.append(_after(tree, block, f"import {module}", apart))
    if devices:
        spell = facts.spell if has_torch else str
        after = max(block, bound[local.split(".")[0]]) if has_torch else block
        after = max(after, _last_setting(tree))
        for need in dict.fromkeys(devices):
            definition = f"{need.name} = {_TORCH_NAME.sub(lambda name: spell(name[0]), need.choice)}"
            shared.append(_after(tree, after, definition, apart=True, ends=True))
    return shared


def also_of(fix: Fix, defined: Sequence[TextEdit]) -> list[TextEdit]:
    """The other places that the decision of a fix settles. `defined`: what the fix needs at the start of the file.

    Raises CannotEditError where one would use a name before it is defined.
    """
    own = {need.name for need in fix.needs if isinstance(need, RunDeviceNeed)}
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


def _import_block(module: ast.Module) -> int:
    """The index of the last import of the block at the top; the docstring's without one, -1 without both."""
    last = -1
    for index, statement in enumerate(module.body):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            last = index
        elif index == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            last = 0 if isinstance(statement.value.value, str) else -1
            if last < 0:
                break
        elif not _may_stand_between_imports(statement):
            break
    return last


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
            if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
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

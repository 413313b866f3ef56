"""From a rule's fix, stated on CST nodes, to text edits on the file.

A node is replaced in its chunk, the chunk's code is generated, and only the middle that differs from the file is
written. So unchanged children keep their text, and neighbouring fixes stay apart. What cannot be done without harm
makes the fix a hint: a comment would be lost, or a statement shares its line with others.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from devlint.facts import Facts
from devlint.fix.doubts import doubt, misplaced
from devlint.fix.needs import also_of, needs_of
from devlint.fix.reach import too_new
from devlint.fix.rows import REST_OF_ROW, CannotEditError, newline_of, starts_row
from devlint.fix.unbound import unbound
from devlint.model import (
    Edit,
    Fix,
    InsertStatement,
    ReplaceBlock,
    Safety,
    TextEdit,
    TextFix,
)
from devlint.settings import Settings
from devlint.tree import Chunk, Head, Tree

if TYPE_CHECKING:
    import libcst as cst

_NO_HARMLESS_EDIT = "the fix would remove a comment, or the line contains other statements"
_ACCELERATOR = "torch.accelerator."  # newer than the oldest torch that devlint knows
_WORD = re.compile(r"\w")
_BLANK_ROW = re.compile(r"[ \t\f]*(?:\r\n|\r|\n)")


def resolve(fix: Fix, tree: Tree, facts: Facts, settings: Settings) -> TextFix:
    """The fix as text edits; a hint without edits when they cannot be made.

    Raises LookupError for nodes that are not the file's, and ValueError for edits of one fix that overlap.
    """
    if not fix.edits or fix.safety is Safety.HINT:
        return TextFix(fix.title, Safety.HINT, why=fix.why)
    wrong = misplaced(fix, tree) or unbound(fix, tree) or too_new(fix, tree, settings.torch_newest)
    if wrong is not None:
        return TextFix(fix.title, Safety.HINT, why=wrong)
    hint = TextFix(fix.title, Safety.HINT, why=_NO_HARMLESS_EDIT)
    edits: list[TextEdit] = []
    try:
        for edit in fix.edits:
            made = _made(edit, tree, fix.edits)
            if made is not None and made not in edits:
                edits.append(made)
        if not edits:
            return hint
        edits.sort()
        for one, other in pairwise(edits):
            if other.start < one.end or (one.start, one.end) == (other.start, other.end):
                raise ValueError(f"edits of the fix {fix.title!r} overlap")
        shared = needs_of(fix, tree, facts)
        also = [each for each in also_of(fix, shared, tree) if not any(map(each.touches, edits))]
    except CannotEditError:
        return hint
    if any(need.start > edits[0].start for need in shared):
        return replace(hint, why="the fix would use a name before the name is defined")
    safety, why, title = fix.safety, "", fix.title
    if safety is Safety.SAFE and (why := doubt(fix, tree) or ""):
        safety = Safety.UNSAFE
    if not settings.torch_stated and any(_ACCELERATOR in each.text for each in (*edits, *shared)):
        lowest = ".".join(map(str, settings.torch_version))
        title += f" (assumes torch {lowest} or newer: `torch-version` is not set)"
    return TextFix(title, safety, tuple(edits), (*shared, *also), why)


AnyEdit = Edit | InsertStatement | ReplaceBlock


def _made(edit: AnyEdit, tree: Tree, beside: Sequence[AnyEdit]) -> TextEdit | None:
    """One edit of a fix; `beside`: all of them."""
    if isinstance(edit, InsertStatement):
        return _insert(edit, tree)
    return _replace_block(edit, tree) if isinstance(edit, ReplaceBlock) else _replace(edit, tree, beside)


# Replacing and removing


def _replace(edit: Edit, tree: Tree, beside: Sequence[AnyEdit]) -> TextEdit | None:
    chunk = tree.home(edit.old)
    if edit.new is None and edit.old is chunk.statement and not chunk.head.is_compound:
        inserted = (tree.head(each.at) for each in beside if isinstance(each, InsertStatement))
        return _remove_statement(chunk.head, tree, any(head.block is chunk.head.block for head in inserted))
    if edit.new is None:
        return _remove(edit.old, chunk, tree)
    return _changed(chunk, edit.old, edit.new, tree)


def _changed(chunk: Chunk, old: cst.CSTNode, new: cst.CSTNode, tree: Tree) -> TextEdit | None:
    """The edit that puts `new` in place of `old`; None when that changes nothing."""
    import libcst as cst

    if isinstance(new, cst.BaseCompoundStatement) and not isinstance(old, cst.BaseCompoundStatement):
        raise ValueError("a simple statement cannot be replaced by a compound one: insert it and remove the other")
    before = chunk.module
    after = before.deep_replace(old, new)
    assert isinstance(after, cst.Module)
    old_code, new_code = chunk.text, after.code
    if isinstance(new, cst.BaseExpression) and not new.lpar and not isinstance(new, _atoms()):
        closed = new.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        closed_code = before.deep_replace(old, closed).code  # type: ignore[union-attr]
        wanted, got = _shape(closed_code), _shape(new_code)
        if wanted is not None and wanted != got:
            new_code = closed_code
    if "#" in old_code + new_code and Counter(_comments(after)) != Counter(_comments(before)):
        raise CannotEditError
    start, end, text = middle(old_code, new_code)
    if start == end and not text:
        return None
    place = chunk.to_file(start, end)
    if place is None or tree.source.text[slice(*place)] != old_code[start:end]:
        raise CannotEditError
    return TextEdit(place.start, place.end, text)


def middle(old: str, new: str) -> tuple[int, int, str]:
    """The part of `old` that differs and what stands there in `new`, widened to whole words."""
    shorter = min(len(old), len(new))
    prefix = 0
    while prefix < shorter and old[prefix] == new[prefix]:
        prefix += 1
    suffix = 0
    while suffix < shorter - prefix and old[-1 - suffix] == new[-1 - suffix]:
        suffix += 1
    if len(old) == len(new) == prefix:
        return prefix, prefix, ""

    def is_word(text: str, index: int) -> bool:
        return 0 <= index < len(text) and _WORD.match(text[index]) is not None

    while prefix and is_word(old, prefix - 1) and (is_word(old, prefix) or is_word(new, prefix)):
        prefix -= 1
    while (
        suffix
        and is_word(old, len(old) - suffix)
        and (is_word(old, len(old) - suffix - 1) or is_word(new, len(new) - suffix - 1))
    ):
        suffix -= 1
    return prefix, len(old) - suffix, new[prefix : len(new) - suffix]


def _atoms() -> tuple[type[cst.BaseExpression], ...]:
    import libcst as cst

    return (cst.Name, cst.Call, cst.Attribute, cst.Subscript, cst.SimpleString, cst.List, cst.Dict, cst.Set)


def _shape(code: str) -> str | None:
    """The structure of some code, places left out; None when it does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.dump(ast.parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _comments(node: cst.CSTNode) -> Iterator[str]:
    import libcst as cst

    pending = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, cst.Comment):
            yield current.value
        pending.extend(current.children)


def _remove(old: cst.CSTNode, chunk: Chunk, tree: Tree) -> TextEdit | None:
    import libcst as cst

    if old is chunk.statement:
        raise ValueError("a compound statement cannot be removed")
    if isinstance(old, cst.Decorator):
        row = tree.source.row(chunk.spans[old].start)
        start = tree.source.starts[row - 1]
        rest = REST_OF_ROW.match(tree.source.text, chunk.spans[old].end)
        if rest is None or rest.group(1):
            raise CannotEditError
        return TextEdit(start, rest.end(), "")
    parent, name, items = _sequence_of(chunk.statement, old)
    index = next(i for i, item in enumerate(items) if item is old)
    left = [item for item in items if item is not old]
    if index == len(left) and left:
        left[-1] = left[-1].with_changes(comma=items[-1].comma)  # type: ignore[attr-defined]
    if not left and isinstance(parent, cst.Import | cst.ImportFrom | cst.With | cst.Set | cst.Tuple):
        raise ValueError(f"the only part of {type(parent).__name__} cannot be removed")
    return _changed(chunk, parent, parent.with_changes(**{name: left}), tree)


def _sequence_of(root: cst.CSTNode, item: cst.CSTNode) -> tuple[cst.CSTNode, str, Sequence[cst.CSTNode]]:
    """The node below `root` that holds `item` in a sequence with commas, the attribute's name, and the sequence."""
    if not hasattr(item, "comma"):
        raise ValueError(f"{type(item).__name__} cannot be removed")
    pending = [root]
    while pending:
        node = pending.pop()
        for name in ("args", "elements", "names", "items", "params", "bases", "keywords", "kwonly_params"):
            items = getattr(node, name, None)
            if isinstance(items, Sequence) and any(other is item for other in items):
                return node, name, items
        pending.extend(node.children)
    raise ValueError(f"{type(item).__name__} stands in no sequence")


def _remove_statement(head: Head, tree: Tree, filled: bool = False) -> TextEdit:
    """`filled`: another statement takes its place in the block."""
    source = tree.source
    row_start = source.starts[source.row(head.span.start) - 1]
    rest = REST_OF_ROW.match(source.text, head.end)
    if (len(head.block) == 1 and not filled) or rest is None or not starts_row(source, head.span.start):
        return TextEdit(head.span.start, head.end, "pass")
    if rest.group(1):  # the comment stays, on a row of its own
        return TextEdit(head.span.start, rest.start(1), "")
    return TextEdit(row_start, _past_blank_rows(row_start, rest.end(), source.text), "")


def _past_blank_rows(start: int, end: int, text: str) -> int:
    """Where the rows to remove end, with blank ones that follow: the longer of both gaps stays, none below a header."""
    rows = text[:start].splitlines()
    before = next((n for n, row in enumerate(reversed(rows)) if row.strip()), len(rows))
    spare = len(text) if before == 0 and rows and rows[-1].rstrip().endswith(":") else before
    while spare and (blank := _BLANK_ROW.match(text, end)) is not None:
        end, spare = blank.end(), spare - 1
    return end


def _replace_block(edit: ReplaceBlock, tree: Tree) -> TextEdit:
    """The edit for a whole compound statement, from the start of its header to the end of its last block."""
    source, head = tree.source, tree.head(edit.at)
    if not head.is_compound or not isinstance(head.owner, ast.stmt):
        raise ValueError(f"no compound statement at {source.position(edit.at.start)}")
    rest = REST_OF_ROW.match(source.text, head.end)
    text = source.text[head.span.start : head.end if rest is None else rest.end()]
    if "#" in text or text.startswith("elif") or not starts_row(source, head.span.start):
        raise CannotEditError
    if not edit.new:
        return _remove_statement(head, tree)
    indent = source.text[source.starts[source.row(head.span.start) - 1] : head.span.start]
    newline = newline_of(source, head.span.start)
    code = "".join(_statement_text(statement, indent, newline, tree) for statement in edit.new)
    return TextEdit(head.span.start, head.end, code[len(indent) :].rstrip("\r\n"))


# Inserting


def _insert(insert: InsertStatement, tree: Tree) -> TextEdit:
    source = tree.source
    head = tree.head(insert.at)
    owner = head.owner
    start = head.span.start
    is_elif = isinstance(owner, ast.If) and source.text.startswith("elif", start)
    if is_elif or not isinstance(owner, ast.stmt) or not starts_row(source, start):
        raise CannotEditError
    row_start = source.starts[source.row(start) - 1]
    indent = source.text[row_start:start]
    newline = newline_of(source, row_start)
    text = _statement_text(insert.new, indent, newline, tree)
    if not insert.after:
        return TextEdit(row_start, row_start, text)
    end = source.span(owner).end
    rest = REST_OF_ROW.match(source.text, end)
    if rest is None:
        raise CannotEditError
    if not rest.group(2):  # the file ends without a line ending
        return TextEdit(rest.end(), rest.end(), newline + text[: -len(newline)])
    return TextEdit(rest.end(), rest.end(), text)


def _statement_text(
    statement: cst.BaseStatement | cst.BaseSmallStatement, indent: str, newline: str, tree: Tree
) -> str:
    """A statement on rows of its own, indented, with a line ending. Strings that span rows keep their text."""
    import libcst as cst

    line = cst.SimpleStatementLine([statement]) if isinstance(statement, cst.BaseSmallStatement) else statement
    step = _indent_step(tree)
    if not indent:
        return cst.Module(body=[line], default_newline=newline, default_indent=step).code  # type: ignore[list-item]
    around = cst.If(cst.Name("_"), cst.IndentedBlock([line], indent=indent))
    code = cst.Module(body=[around], default_newline=newline, default_indent=step).code
    return code[code.index(newline) + len(newline) :]


def _indent_step(tree: Tree) -> str:
    """The indentation of the first block in the file, four spaces when there is none."""
    for statement in tree.ast.body:
        body = getattr(statement, "body", None)
        if isinstance(body, list) and body and body[0].lineno > statement.lineno:
            text = tree.source.line_text(body[0].lineno)
            found = text[: len(text) - len(text.lstrip(" \t"))]
            if found:
                return found
    return "    "

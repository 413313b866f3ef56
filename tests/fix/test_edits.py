"""From edits on CST nodes to edits on the text."""

from __future__ import annotations

import ast
from collections.abc import Callable

import libcst as cst
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from devlint.facts import Facts
from devlint.fix.apply import apply, in_order, splice
from devlint.fix.edits import middle, resolve
from devlint.model import (
    AlsoNeed,
    Edit,
    Fix,
    ImportNeed,
    InsertStatement,
    ReplaceBlock,
    RunDeviceNeed,
    Safety,
    Span,
    TextEdit,
    TextFix,
)
from devlint.settings import Settings
from devlint.source import decode, parse
from devlint.tree import Tree


def tree_of(text: str) -> Tree:
    source = decode(text.encode(), "a.py")
    return Tree(source, parse(source))


def span_of(tree: Tree, text: str) -> Span:
    start = tree.source.text.index(text)
    return Span(start, start + len(text))


def made(
    tree: Tree,
    *edits: Edit | InsertStatement | ReplaceBlock,
    needs: tuple[AlsoNeed | ImportNeed | RunDeviceNeed, ...] = (),
    settings: Settings | None = None,
) -> TextFix:
    names = {a.asname or a.name: a.name for n in ast.walk(tree.ast) if isinstance(n, ast.Import) for a in n.names}
    facts = Facts("a.py", tree.source.text, imports=names)
    return resolve(Fix("title", Safety.SAFE, edits, needs), tree, facts, settings or Settings())


def fixed(tree: Tree, fix: TextFix) -> str:
    assert fix.safety is Safety.SAFE
    return splice(tree.source.text, in_order((*fix.edits, *fix.shared)))


def replaced(text: str, old: str, new: str | Callable[[cst.CSTNode], cst.CSTNode] | None) -> str:
    """The text after the node written `old` was replaced."""
    tree = tree_of(text)
    node = tree.at(span_of(tree, old))
    if new is None or isinstance(new, str):
        return fixed(tree, made(tree, Edit(node, None if new is None else cst.parse_expression(new))))
    return fixed(tree, made(tree, Edit(node, new(node))))


def removed(text: str, old: str) -> str:
    return replaced(text, old, None)


def without_statement(text: str, at: str) -> str:
    tree = tree_of(text)
    return fixed(tree, made(tree, Edit(tree.statement_at(span_of(tree, at)), None)))


def inserted(text: str, at: str, statement: str = "wait()", after: bool = False) -> str:
    tree = tree_of(text)
    return fixed(tree, made(tree, InsertStatement(span_of(tree, at), cst.parse_statement(statement), after)))


# Replacing


def test_only_the_differing_middle_is_written() -> None:
    tree = tree_of("x = torch.zeros(3).to(d)\n")
    call = tree.at(span_of(tree, "torch.zeros(3).to(d)"))
    fix = made(tree, Edit(call, cst.parse_expression("torch.zeros(3, device=d)")))
    assert fix.edits == (TextEdit(17, 22, ", device="),)


def test_middle_is_widened_to_whole_words() -> None:
    assert middle("x.cuda()", "x.cpu()") == (2, 6, "cpu")
    assert middle("f(a)", "f(a, b)") == (3, 3, ", b")
    assert middle("same", "same") == (4, 4, "")
    assert middle("x.abc", "x.abd") == (2, 5, "abd")
    assert middle("abc()", "xbc()") == (0, 3, "xbc")
    assert middle("f(a)", "f(a)(b)") == (4, 4, "(b)")


@given(st.text("ab(,) .", max_size=12), st.text("ab(,) .", max_size=12))
def test_middle_turns_the_old_text_into_the_new(old: str, new: str) -> None:
    start, end, text = middle(old, new)
    assert old[:start] + text + old[end:] == new


@given(st.text("ab(,) .", max_size=12), st.text("ab(,) .", max_size=12))
@example("ab.cd()", "ab.ce()")
@example("abc", "abd")
@example("a(bc)", "a(xc)")
@example("ab", "a")
@example("ba", "a")
@example("a", "ab")
def test_middle_begins_and_ends_between_words(old: str, new: str) -> None:
    start, end, text = middle(old, new)

    def is_cut(code: str, place: int) -> bool:
        return 0 < place < len(code) and code[place - 1].isalpha() and code[place].isalpha()

    assert old == new or not (is_cut(old, start) or is_cut(old, end))
    assert old == new or not (is_cut(new, start) or is_cut(new, start + len(text)))


def test_children_that_stay_keep_their_text_and_comments() -> None:
    text = "y = f(\n    a,   # first\n    b  +  c,\n)\n"
    rename = replaced(text, text[4:-1], lambda call: call.with_changes(func=cst.Name("g")))
    assert rename == text.replace("f(", "g(")


def test_decorator_with_a_comment_stays() -> None:
    tree = tree_of("@old  # why\ndef f(a): pass\n")
    function = tree.statement_at(span_of(tree, "def f"))
    assert isinstance(function, cst.FunctionDef)
    assert made(tree, Edit(function.decorators[0], None)).safety is Safety.HINT


def test_fix_that_reaches_over_what_stands_between_a_decorator_and_its_function_is_a_hint() -> None:
    tree = tree_of("@old  # first\n\n# second\ndef f(a): pass\n")

    def renamed(function: cst.CSTNode) -> cst.CSTNode:
        assert isinstance(function, cst.FunctionDef)
        decorator = function.decorators[0].with_changes(decorator=cst.Name("new"))
        return function.with_changes(decorators=[decorator], name=cst.Name("g"))

    node = tree.statement_at(span_of(tree, "def f"))
    assert made(tree, Edit(node, renamed(node))).safety is Safety.HINT


def test_fix_that_would_lose_a_comment_is_a_hint() -> None:
    tree = tree_of("y = f(\n    a,  # first\n)\n")
    call = tree.ast.body[0].value  # type: ignore[attr-defined]
    fix = made(tree, Edit(tree.at(tree.source.span(call)), cst.parse_expression("g()")))
    assert (fix.safety, fix.edits) == (Safety.HINT, ())


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("y = x.to(d)\n", "x", "a if b else c", "y = (a if b else c).to(d)\n"),
        ("y = f(x)\n", "x", "a if b else c", "y = f(a if b else c)\n"),
        ("y = x * z\n", "x", "a + b", "y = (a + b) * z\n"),
        ("y = x + z\n", "x", "a * b", "y = a * b + z\n"),
        ("y = (x + 1) * z\n", "x + 1", "w", "y = w * z\n"),
        ("y = -x\n", "x", "a.b(c)", "y = -a.b(c)\n"),
    ],
)
def test_parentheses_are_added_where_the_structure_needs_them(text: str, old: str, new: str, expected: str) -> None:
    assert replaced(text, old, new) == expected


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("@d(x)\n\n@e  # why\ndef f(): ...\n", "d(x)", "d(y)", "@d(y)\n\n@e  # why\ndef f(): ...\n"),
        ("@d\n@e(x)\ndef f(): ...\n", "e(x)", "g", "@d\n@g\ndef f(): ...\n"),
        ("class A:\n\tdef f(s, a=b):  # x\n\t\tpass\n", "b", "c", "class A:\n\tdef f(s, a=c):  # x\n\t\tpass\n"),
        ("if a: pass\nelif b: pass\n", "b", "c", "if a: pass\nelif c: pass\n"),
        ("a = 1; b = 'é'; d = x\n", "x", "y", "a = 1; b = 'é'; d = y\n"),
        ("try: f()\nexcept zz as e: g()\n", "zz", "y", "try: f()\nexcept y as e: g()\n"),
    ],
)
def test_place_of_a_replacement_may_be_any_header(text: str, old: str, new: str, expected: str) -> None:
    for newline in ("\n", "\r\n"):
        assert replaced(text.replace("\n", newline), old, new) == expected.replace("\n", newline)


def test_statement_is_replaced_by_a_statement() -> None:
    def assign(old: cst.CSTNode) -> cst.CSTNode:
        return cst.Assign([cst.AssignTarget(cst.Name("x"))], cst.ensure_type(old, cst.Expr).value)

    tree = tree_of("if a: x.to(d); y = 1  # c\n")
    statement = tree.statement_at(span_of(tree, "x.to(d)"))
    assert fixed(tree, made(tree, Edit(statement, assign(statement)))) == "if a: x = x.to(d); y = 1  # c\n"


def test_line_ending_that_a_replacement_brings_is_the_files() -> None:
    broken = cst.ParenthesizedWhitespace(last_line=cst.SimpleWhitespace("  "))

    def spread(old: cst.CSTNode) -> cst.CSTNode:
        return old.with_changes(whitespace_before_args=broken)

    assert replaced("a = 1\r\nb = x(1)\r\n", "x(1)", spread) == "a = 1\r\nb = x(\r\n  1)\r\n"
    assert replaced("try: f()\r\nexcept x(1): f()\r\n", "x(1)", spread) == "try: f()\r\nexcept x(\r\n  1): f()\r\n"


def test_edits_of_one_fix_that_overlap_are_an_error_of_the_rule() -> None:
    tree = tree_of("y = f(a)\n")
    outer, inner = tree.at(span_of(tree, "f(a)")), tree.at(span_of(tree, "a"))
    with pytest.raises(ValueError, match="overlap"):
        made(tree, Edit(outer, cst.parse_expression("1")), Edit(inner, cst.Name("b")))


def test_node_of_another_file_is_an_error_of_the_rule() -> None:
    with pytest.raises(LookupError, match="is not a node of"):
        made(tree_of("x = 1\n"), Edit(cst.Name("x"), cst.Name("y")))


def test_edit_that_changes_nothing_is_a_hint() -> None:
    tree = tree_of("y = x\n")
    assert made(tree, Edit(tree.at(span_of(tree, "x")), cst.Name("x"))).safety is Safety.HINT


# Removing


@pytest.mark.parametrize(
    ("text", "old", "expected"),
    [
        ("f(a, b=1, c=2)\n", "b=1", "f(a, c=2)\n"),
        ("f(a, b=1)\n", "b=1", "f(a)\n"),
        ("f(b=1)\n", "b=1", "f()\n"),
        ("f(b=1, c=2)\n", "b=1", "f(c=2)\n"),
        ("f(\n    a,\n    b=1,\n)\n", "b=1", "f(\n    a,\n)\n"),
        ("f(\r\n    b=1,\r\n    c=2,\r\n)\r\n", "b=1", "f(\r\n    c=2,\r\n)\r\n"),
    ],
)
def test_argument_goes_with_its_comma(text: str, old: str, expected: str) -> None:
    assert removed(text, old) == expected


def test_what_stands_in_no_sequence_cannot_be_removed() -> None:
    tree = tree_of("y = a + b\n")
    with pytest.raises(ValueError, match="Name cannot be removed"):
        made(tree, Edit(tree.at(span_of(tree, "a")), None))


def test_argument_next_to_a_comment_stays() -> None:
    tree = tree_of("f(\n    a=0,  # why\n    b=1,\n)\n")
    assert made(tree, Edit(tree.at(span_of(tree, "a=0")), None)).safety is Safety.HINT


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a()\nx()\nb()\n", "a()\nb()\n"),
        ("a()\n\n# about x\nx()\n\nb()\n", "a()\n\n# about x\n\nb()\n"),
        ("if a:\n    x()\n", "if a:\n    pass\n"),
        ("if a:\n    x()\n    b()\n", "if a:\n    b()\n"),
        ("if a: x()\n", "if a: pass\n"),
        ("a(); x(); b()\n", "a(); pass; b()\n"),
        ("a()\nx()  # why\nb()\n", "a()\n# why\nb()\n"),
        ("a()\nx()", "a()\n"),
        ("a()\r\nx() if 1 else 2\r\nb()\r\n", "a()\r\nb()\r\n"),
        ("a()\n(x(\n)\n)\nb()\n", "a()\nb()\n"),
        ("def f():\n    x()\n\n\n    b()\n", "def f():\n    b()\n"),  # no blank rows below a header
        ("a()\n\nx()\n\nb()\n", "a()\n\nb()\n"),  # the longer gap stays
        ("a()\n\nx()\n\n\ndef f(): ...\n", "a()\n\n\ndef f(): ...\n"),
        ("a()\nx()\n\nb()\n", "a()\n\nb()\n"),
        ("x()\n\nb()\n", "\nb()\n"),
    ],
)
def test_statement_goes_with_its_row(text: str, expected: str) -> None:
    assert without_statement(text, "x(") == expected


def without_block(text: str, *new: str) -> str:
    tree = tree_of(text)
    statements = []
    for code in new:
        line = cst.parse_statement(code)
        assert isinstance(line, cst.SimpleStatementLine)
        statements.append(line.body[0])
    return fixed(tree, made(tree, ReplaceBlock(span_of(tree, "x"), tuple(statements))))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a()\nif x:\n    b()\n    c()\nd()\n", "a()\nd()\n"),
        ("def f():\n    if x:\n        b()\n\n    d()\n", "def f():\n    d()\n"),
        ("def f():\n    if x:\n        b()\n", "def f():\n    pass\n"),
        ("if x: b()\nd()\n", "d()\n"),
        ("if x:\r\n  b()\r\nelse:\r\n  c()\r\nd()\r\n", "d()\r\n"),
        ("if x:\n    b()", "pass"),
        ("a()\nif x:\n    b()", "a()\n"),
    ],
)
def test_block_goes_with_its_rows(text: str, expected: str) -> None:
    assert without_block(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if x:\n    b()\nd()\n", "y = 1\nz = 2\nd()\n"),
        ("def f():\n  if x:\n    b()\n  d()\n", "def f():\n  y = 1\n  z = 2\n  d()\n"),
        ("if a:\r\n\tif x: b()\r\n", "if a:\r\n\ty = 1\r\n\tz = 2\r\n"),
        ("if x:\n    b()", "y = 1\nz = 2"),
    ],
)
def test_statements_take_the_place_of_a_block(text: str, expected: str) -> None:
    assert without_block(text, "y = 1", "z = 2") == expected


@pytest.mark.parametrize(
    "text",
    [
        "if x:\n    b()  # why\n",
        "if x:\n    # why\n    b()\n",
        "if a:\n    c()\nelif x:\n    b()\n",
    ],
)
def test_a_block_that_cannot_go_whole_stays(text: str) -> None:
    tree = tree_of(text)
    assert made(tree, ReplaceBlock(span_of(tree, "x"))).safety is Safety.HINT


def test_a_simple_statement_is_no_block() -> None:
    tree = tree_of("x()\n")
    with pytest.raises(ValueError, match="no compound statement"):
        made(tree, ReplaceBlock(span_of(tree, "x")))


def test_decorator_goes_with_its_row() -> None:
    tree = tree_of("@a\n@x\ndef f(): ...\n")
    head = tree.statement_at(span_of(tree, "def f()"))
    assert isinstance(head, cst.FunctionDef)
    assert fixed(tree, made(tree, Edit(head.decorators[1], None))) == "@a\ndef f(): ...\n"


# Inserting


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x()\n", "wait()\nx()\n"),
        ("def f():\n\tif a:\n\t\tx()\n", "def f():\n\tif a:\n\t\twait()\n\t\tx()\n"),
        ("if a:\r\n  x()\r\n", "if a:\r\n  wait()\r\n  x()\r\n"),
        ("for i in x():\n    a()\n", "wait()\nfor i in x():\n    a()\n"),
        ("@d\n@x()\ndef f(): ...\n", "wait()\n@d\n@x()\ndef f(): ...\n"),
        ("y = (1 +\n  x())\n", "wait()\ny = (1 +\n  x())\n"),
        ("x(); b()\n", "wait()\nx(); b()\n"),
        ("else_ = 1\nif a:\n    pass\nelse:\n    x()\n", "else_ = 1\nif a:\n    pass\nelse:\n    wait()\n    x()\n"),
    ],
)
def test_statement_is_inserted_before(text: str, expected: str) -> None:
    assert inserted(text, "x()") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x()\nb()\n", "x()\nwait()\nb()\n"),
        ("x()  # why\nb()\n", "x()  # why\nwait()\nb()\n"),
        ("x()", "x()\nwait()"),
        ("if a:\n    x()\nb()\n", "if a:\n    x()\n    wait()\nb()\n"),
        ("for i in x():\n    a()\n\nb()\n", "for i in x():\n    a()\nwait()\n\nb()\n"),
        ("y = '''\n''' + x(\n)\n", "y = '''\n''' + x(\n)\nwait()\n"),
    ],
)
def test_statement_is_inserted_after(text: str, expected: str) -> None:
    assert inserted(text, "x(", after=True) == expected


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("if a: x()\n", False),
        ("if a: x()\n", True),
        ("b(); x()\n", False),
        ("x(); b()\n", True),
        ("if a: pass\nelif x(): pass\n", False),
        ("try: pass\nexcept x(): pass\n", False),
        ("b(); \\\n  x()\n", False),
    ],
)
def test_statement_without_a_row_of_its_own_makes_the_fix_a_hint(text: str, after: bool) -> None:
    tree = tree_of(text)
    fix = made(tree, InsertStatement(span_of(tree, "x()"), cst.parse_statement("wait()"), after))
    assert (fix.safety, fix.edits) == (Safety.HINT, ())


def test_inserted_block_takes_the_indentation_of_the_file_and_strings_keep_their_rows() -> None:
    text = "def f():\n\tx()\n"
    block = 'if a:\n    wait("""1\n2""")\n'
    assert inserted(text, "x()", block) == 'def f():\n\tif a:\n\t\twait("""1\n2""")\n\tx()\n'


# Needs

RUN = 'torch.device("cuda" if torch.cuda.is_available() else "cpu")'


def needed(text: str, *needs: ImportNeed | RunDeviceNeed) -> str:
    """What the fix of the last `x` in the text adds, the fix itself left out."""
    tree = tree_of(text)
    start = text.rindex("x")
    fix = made(tree, Edit(tree.at(Span(start, start + 1)), cst.Name("x_")), needs=needs)
    assert fix.safety is Safety.SAFE
    return splice(text, in_order(fix.shared))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import os\nimport torch\n\nx\n", "import os\nimport torch\n\nx\n"),
        ("import torch.nn\nx\n", "import torch.nn\nx\n"),
        ("import os\n\nx\n", "import os\nimport torch\n\nx\n"),
        ('"""Doc."""\n\nx\n', '"""Doc."""\n\nimport torch\n\nx\n'),
        ('"""Doc."""\n\nfrom __future__ import annotations\n\nx\n',
         '"""Doc."""\n\nfrom __future__ import annotations\n\nimport torch\n\nx\n'),
        ("#!/bin/python\n# coding: utf-8\nx\n", "#!/bin/python\n# coding: utf-8\nimport torch\n\nx\n"),
        ("import os\r\nx\r\n", "import os\r\nimport torch\r\nx\r\n"),
        ("def f():\n    import torch\n    x\n", "import torch\n\ndef f():\n    import torch\n    x\n"),
        ("if TYPE_CHECKING:\n    import torch\nx\n", "import torch\n\nif TYPE_CHECKING:\n    import torch\nx\n"),
    ],
)  # fmt: skip
def test_import_is_added_after_docstring_and_imports_where_it_is_missing(text: str, expected: str) -> None:
    assert needed(text, ImportNeed("torch")) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import torch\nimport os\n\nx\n", f"import torch\nimport os\n\ndevice = {RUN}\n\nx\n"),
        ("import torch\ndevice = 1\nx\n", "import torch\ndevice = 1\nx\n"),
        ("import torch\ndef device(): pass\nx\n", "import torch\ndef device(): pass\nx\n"),
        ("import torch\nclass device: pass\nx\n", "import torch\nclass device: pass\nx\n"),
        ("import torch\nfor device in y: pass\nx\n", "import torch\nfor device in y: pass\nx\n"),
        ("from os import path\nx\n", f"from os import path\nimport torch\n\ndevice = {RUN}\n\nx\n"),
        ("import os\na = 1\nimport torch\nx\n", f"import os\na = 1\nimport torch\n\ndevice = {RUN}\n\nx\n"),
        ("import torch as th\nx\n", "import torch as th\n\ndevice = " + RUN.replace("torch", "th") + "\n\nx\n"),
        ("try:\n    import torch\nexcept E:\n    pass\nx\n",
         f"try:\n    import torch\nexcept E:\n    pass\n\ndevice = {RUN}\n\nx\n"),
    ],
)  # fmt: skip
def test_device_of_the_run_is_defined_after_the_imports_where_no_name_is(text: str, expected: str) -> None:
    assert needed(text, RunDeviceNeed()) == expected


def test_the_choice_of_a_need_is_spelled_as_the_file_spells_torch() -> None:
    need = RunDeviceNeed("where", 'torch.accelerator.current_accelerator() or torch.device("cpu")')
    expected = 'import torch as th\n\nwhere = th.accelerator.current_accelerator() or th.device("cpu")\n\nx\n'
    assert needed("import torch as th\nx\n", need) == expected


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("", "    x\n"),
        ('    """Doc."""\n', "    x\n"),
        ("", "    # first\n    y = 1\n    x\n"),
        ("", "\n    @d\n    def g(): ...\n    x\n"),
    ],
)
def test_a_device_that_one_function_needs_is_defined_at_its_start(head: str, body: str) -> None:
    text = f"import torch\n\n\ndef f(a):\n{head}{body}"
    need = RunDeviceNeed("device", "a.device", inside=span_of_function(text))
    after = needed(text, need)
    assert after.count("    device = a.device\n") == 1
    assert after.startswith(f"import torch\n\n\ndef f(a):\n{head}")
    assert after.index("device = ") < after.index("    x\n")


def span_of_function(text: str) -> Span:
    tree = tree_of(text)
    return next(tree.source.span(node) for node in tree.ast.body if isinstance(node, ast.FunctionDef))


def test_a_function_in_one_row_gets_no_definition() -> None:
    text = "def f(a): return x\n"
    tree = tree_of(text)
    need = RunDeviceNeed("device", "a.device", inside=span_of_function(text))
    fix = made(tree, Edit(tree.at(span_of(tree, "x")), cst.Name("y")), needs=(need,))
    assert fix.safety is Safety.HINT


def test_need_that_would_come_after_its_use_makes_the_fix_a_hint() -> None:
    tree = tree_of("__all__ = x\nimport torch\n")
    fix = made(tree, Edit(tree.at(span_of(tree, "x")), cst.Name("y")), needs=(RunDeviceNeed(),))
    assert fix.safety is Safety.HINT


def test_another_place_of_the_decision_is_written_once() -> None:
    tree = tree_of("def f(a=1): ...\nx\ny\n")
    also = AlsoNeed(span_of(tree, "1"), "2")
    fixes = [made(tree, Edit(tree.at(span_of(tree, name)), cst.Name("z")), needs=(also,)) for name in "xy"]
    assert apply(tree.source.text, fixes) == ("def f(a=2): ...\nz\nz\n", [0, 1])


def test_another_place_that_an_edit_touches_is_left_to_the_edit() -> None:
    tree = tree_of("f(x)\n")
    fix = made(tree, Edit(tree.at(span_of(tree, "f(x)")), cst.Name("y")), needs=(AlsoNeed(span_of(tree, "x"), "z"),))
    assert fixed(tree, fix) == "y\n"


def test_another_place_before_the_name_that_it_uses_makes_the_fix_a_hint() -> None:
    tree = tree_of("def f(a=1): ...\nimport torch\nx\n")
    needs = (RunDeviceNeed(), AlsoNeed(span_of(tree, "1"), "device"))
    assert made(tree, Edit(tree.at(span_of(tree, "x")), cst.Name("y")), needs=needs).safety is Safety.HINT


def test_need_after_a_statement_that_shares_its_row_makes_the_fix_a_hint() -> None:
    tree = tree_of("import torch; y = 1\nx = y\n")
    fix = made(tree, Edit(tree.at(Span(24, 25)), cst.Name("z")), needs=(RunDeviceNeed(),))
    assert fix.safety is Safety.HINT


def test_the_device_goes_after_the_choice_of_visible_cards() -> None:
    text = needed('import os\nimport torch\n\nos.environ["CUDA_VISIBLE_DEVICES"] = "0"\nx\n', RunDeviceNeed())
    assert text.index("VISIBLE") < text.index("device =") < text.index("\nx")


def test_the_device_goes_after_imports_that_calls_interrupt() -> None:
    from devlint.engine import Linter
    from devlint.fix.rounds import fix_source
    from devlint.model import Safety
    from devlint.registry import load_rules
    from devlint.source import decode

    text = (
        "import os\nimport warnings\n\nwarnings.filterwarnings('ignore')\nos.environ['A'] = '1'\n\n"
        "import torch\nimport torch.nn as nn\n\nmodel = nn.Linear(2, 2).cuda()\n"
    )
    outcome = fix_source(Linter(load_rules()), decode(text.encode(), "run.py"), {Safety.SAFE, Safety.UNSAFE})
    assert "import torch.nn as nn\n\ndevice = torch.accelerator" in outcome.text

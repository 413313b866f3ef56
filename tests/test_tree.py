"""The join of `ast` spans and libcst nodes."""

from __future__ import annotations

import ast
import os
import random
import sysconfig
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import libcst as cst
import pytest

from devlint.errors import SourceError
from devlint.model import Span
from devlint.source import Source, decode, parse, read_source
from devlint.tree import DEPTH_LIMIT, Tree


def tree_of(text: str) -> Tree:
    source = decode(text.encode(), "a.py")
    return Tree(source, parse(source))


def span_of(tree: Tree, text: str) -> Span:
    start = tree.source.text.index(text)
    return Span(start, start + len(text))


PLACES = """\
@outer
@f(decorator)
@(
    g(wrapped)
)
class C(f(base), metaclass=f(meta)):
    @property
    def m(self, a: f(annotation) = f(default), *, k=f(keyword)) -> f(returns):  # : (
        x = f(simple); y = f(second)
        if f(test): z = f(same_row)
        elif f(elif_): pass
        else:
            f(else_)
        for i in f(iterable):
            while f(loop) : continue
        else: f(for_else)
        try:
            pass
        except f(error) as e:
            f(handler)
        finally:
            f(final)
        with f(one) as a, \\
                f(two) as b: f(body)
        match f(subject):
            case 1 if f(guard):
                f(case)
        s = "重要"; t = f(wide)
        return [f(row_one),
            # ) a comment
            (f(row_two)),
        ]
async def n():
\tasync with f(tabbed):
\t\tawait f(deep)
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("name", [n.args[0].id for n in ast.walk(ast.parse(PLACES)) if isinstance(n, ast.Call)])  # type: ignore[attr-defined]
def test_call_is_found_wherever_it_stands(name: str, newline: str) -> None:
    tree = tree_of(PLACES.replace("\n", newline))
    call = next(letter for letter in ("f", "g") if f"{letter}({name})" in PLACES) + f"({name})"
    span = span_of(tree, call)
    node = tree.at(span)
    assert isinstance(node, cst.Call)
    assert call in tree.code(node)  # with its own parentheses, where it has some
    assert tree.span(node) == span


@pytest.mark.parametrize(
    ("at", "kind"),
    [
        ("f(decorator)", cst.ClassDef),
        ("f(base)", cst.ClassDef),
        ("f(default)", cst.FunctionDef),
        ("f(simple)", cst.Assign),
        ("f(second)", cst.Assign),
        ("f(test)", cst.If),
        ("f(same_row)", cst.Assign),
        ("f(elif_)", cst.If),
        ("f(else_)", cst.Expr),
        ("f(iterable)", cst.For),
        ("f(loop)", cst.While),
        ("f(error)", cst.ExceptHandler),
        ("f(two)", cst.With),
        ("f(body)", cst.Expr),
        ("f(subject)", cst.Match),
        ("f(guard)", cst.MatchCase),
        ("f(row_two)", cst.Return),
        ("f(tabbed)", cst.With),
    ],
)
def test_statement_is_the_small_one_or_the_one_whose_header_covers_the_place(at: str, kind: type[cst.CSTNode]) -> None:
    tree = tree_of(PLACES)
    assert isinstance(tree.statement_at(span_of(tree, at)), kind)


def test_compound_statement_is_found_by_the_span_that_ast_gives_it() -> None:
    tree = tree_of("@d\ndef f():\n    x = 1\n    return x\n")
    span = tree.source.span(tree.ast.body[0])
    node = tree.at(span)
    assert isinstance(node, cst.FunctionDef)
    assert tree.span(node) == span


def test_except_star_handler_is_found() -> None:
    tree = tree_of_or_skip("try:\n    pass\nexcept* f(e) as g:\n    pass\n")
    assert isinstance(tree.statement_at(span_of(tree, "f(e)")), cst.ExceptStarHandler)


def tree_of_or_skip(text: str) -> Tree:
    try:
        return tree_of(text)
    except SourceError as error:
        pytest.skip(str(error))


def test_generic_function_header_is_found() -> None:
    tree = tree_of_or_skip("def f[T: g(bound)](x: T = h(default)) -> T:\n    pass\n")
    assert isinstance(tree.at(span_of(tree, "g(bound)")), cst.Call)
    assert isinstance(tree.at(span_of(tree, "h(default)")), cst.Call)


def test_tuple_and_generator_have_the_parentheses_that_ast_gives_them() -> None:
    tree = tree_of("a = (1, 2)\nb = ((3, 4))\nc = 5, 6\nd = sum(x for x in y)\ne = (z for z in y)\n")
    for node in ast.walk(tree.ast):
        if isinstance(node, ast.Tuple | ast.GeneratorExp):
            assert isinstance(tree.at(tree.source.span(node)), cst.Tuple | cst.GeneratorExp)


def test_parenthesised_expression_has_the_span_without_parentheses() -> None:
    tree = tree_of("y = ((a + b)) * c\n")
    assert tree.code(tree.at(span_of(tree, "a + b"))) == "((a + b))"


def test_keyword_argument_has_a_node() -> None:
    tree = tree_of("f(1, device='cpu')\n")
    assert isinstance(tree.at(span_of(tree, "device='cpu'")), cst.Arg)


def test_tuple_in_an_index_has_no_node() -> None:
    tree = tree_of("x[a, b]\n")
    with pytest.raises(LookupError, match="no CST node has the span of 'a, b' at 1:3"):
        tree.at(span_of(tree, "a, b"))


def test_place_outside_statements_has_no_statement() -> None:
    tree = tree_of("# only a comment\nx = 1\n")
    with pytest.raises(LookupError, match="no statement at 1:1"):
        tree.statement_at(Span(0, 6))


def test_built_node_has_no_span() -> None:
    with pytest.raises(LookupError, match="Name is not a node of"):
        tree_of("x = 1\n").span(cst.Name("x"))


def test_statement_is_parsed_once() -> None:
    tree = tree_of("f(a,\n  b)\ng()\n")
    assert tree.at(span_of(tree, "a")) is tree.at(span_of(tree, "a"))
    tree.at(span_of(tree, "b"))
    assert tree.lines_parsed == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f(a,  # one\n  b)\n", True),
        ("f(a, b)  # one\n", False),
        ("f(a, '# one')\n", False),
        ("(f  # one\n)(a)\n", True),
    ],
)
def test_comment_counts_inside_the_text_of_a_node(text: str, expected: bool) -> None:
    tree = tree_of(text)
    call = tree.ast.body[0].value  # type: ignore[attr-defined]
    assert tree.has_comment(tree.at(tree.source.span(call))) is expected


DEEP: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: "(" * n + "x" + ")" * n,
    "lists": lambda n: "[" * n + "x" + "]" * n,
    "sum": lambda n: "+".join(["x"] * n),
    "attributes": lambda n: "x" + ".a" * n,
    "calls": lambda n: "x" + ".a()" * n,
    "and": lambda n: " and ".join(["x"] * n),
    "minus": lambda n: "-" * n + "x",
    "strings": lambda n: " ".join(["'a'"] * 3 * n),
    "conditions": lambda n: "x if y else " * n + "z",
    "f-strings": lambda n: "f'{" + "(" * n + "x" + ")" * n + "}'",
}


@pytest.mark.parametrize("kind", DEEP)
def test_statement_beyond_the_depth_limit_is_refused_with_its_place(kind: str) -> None:
    tree = tree_of("a = 1\nb = " + DEEP[kind](DEPTH_LIMIT + 5) + "\n")
    with pytest.raises(SourceError, match="nested too deeply") as caught:
        tree.statement_at(tree.source.span(tree.ast.body[1]))
    assert (caught.value.row, caught.value.column) == (2, 1)


@pytest.mark.parametrize("kind", DEEP)
def test_statement_within_the_depth_limit_is_parsed_and_printed(kind: str) -> None:
    code = DEEP[kind](DEPTH_LIMIT // 2 - 10)
    tree = tree_of(f"b = {code}\n")
    assert tree.code(tree.statement_at(tree.source.span(tree.ast.body[0]))) == f"b = {code}"


@pytest.mark.parametrize(
    "text", [f"f({'a, ' * 5_000})\n", "x = " + " < ".join(["y"] * 5_000) + "\n", "x = " * 5_000 + "1\n"]
)
def test_long_but_flat_statement_is_parsed(text: str) -> None:
    tree = tree_of(text)
    tree.statement_at(tree.source.span(tree.ast.body[0]))


def test_brackets_in_many_strings_are_no_nesting() -> None:
    tree = tree_of("x = [" + "'((', " * 300 + "]\n")
    tree.statement_at(tree.source.span(tree.ast.body[0]))


def test_deep_decorator_is_refused() -> None:
    tree = tree_of("@" + "+".join(["x"] * (DEPTH_LIMIT + 5)) + "\ndef f(): ...\n")
    with pytest.raises(SourceError, match="nested too deeply"):
        tree.statement_at(tree.source.span(tree.ast.body[0]))


def test_deep_body_does_not_count_for_the_header() -> None:
    tree = tree_of(f"if f(a):\n    b = {'-' * 300}1\n")
    assert isinstance(tree.at(span_of(tree, "f(a)")), cst.Call)


# Every call, attribute, name and constant of real code finds the node with its text, those inside f-strings included.
# Left out are the texts between the braces of an f-string: before Python 3.12 they have the place of the whole string.

STDLIB = Path(sysconfig.get_path("stdlib"))
EVERYTHING = bool(os.environ.get("DEVLINT_JOIN_EVERYTHING"))


def files_of(root: Path, sample: int, largest: int = 10_000_000) -> list[Path]:
    """Some files below `root` of at most `largest` bytes, the same ones each time."""
    files = sorted(p for p in root.rglob("*.py") if "site-packages" not in p.parts and p.stat().st_size <= largest)
    return files if EVERYTHING else random.Random(1).sample(files, min(sample, len(files)))


def unjoined(source: Source, module: ast.Module) -> tuple[list[str], int]:
    """What finds no node with the same text, and how many nodes were looked for."""
    tree = Tree(source, module)
    pieces = {id(value) for node in ast.walk(module) if isinstance(node, ast.JoinedStr) for value in node.values}
    wrong: list[str] = []
    count = 0
    for node in ast.walk(module):
        if isinstance(node, ast.Call | ast.Attribute | ast.Name | ast.Constant) and id(node) not in pieces:
            count += 1
            span = source.span(node)
            text = source.text[slice(*span)]
            try:
                found = tree.at(span)
                same = tree.span(found) == span and text in tree.code(found)
            except LookupError:
                same = False
            except SourceError:  # refused as too deep, not joined wrongly
                same = True
            if not same:
                wrong.append(f"{source.path}:{node.lineno}: {type(node).__name__} {text[:60]!r}")
    return wrong, count


def check_files(files: list[Path]) -> None:
    wrong: list[str] = []
    count = 0
    for path in files:
        try:
            source = read_source(path)
            module = parse(source)
        except SourceError:  # the tests of the standard library hold files that are wrong on purpose
            continue
        missing, looked = unjoined(source, module)
        wrong += missing
        count += looked
    assert count > 1_000
    assert not wrong, f"{len(wrong)} of {count} nodes:\n" + "\n".join(wrong[:20])


def test_every_expression_of_a_sample_of_the_standard_library_is_joined() -> None:
    check_files(files_of(STDLIB, 40, 15_000))


@pytest.mark.slow
def test_every_expression_of_more_of_the_standard_library_is_joined() -> None:
    check_files(files_of(STDLIB, 150))


@pytest.mark.slow
@pytest.mark.skipif(find_spec("timm") is None, reason="timm is not installed")
def test_every_expression_of_timm_is_joined() -> None:
    spec = find_spec("timm")
    assert spec is not None and spec.origin is not None
    check_files(files_of(Path(spec.origin).parent, 40))

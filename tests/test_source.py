"""Decoding, parsing and positions of `devlint.source`."""

from __future__ import annotations

import ast
import sys
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlint.errors import SourceError
from devlint.model import Position, Span
from devlint.source import Source, decode, parse, read_source


def error_of(raw: bytes) -> SourceError:
    with pytest.raises(SourceError) as caught:
        parse(decode(raw, "a.py"))
    return caught.value


def place_of(raw: bytes) -> tuple[int, int]:
    error = error_of(raw)
    return error.row, error.column


# Decoding


def test_text_keeps_the_line_endings_of_the_file() -> None:
    assert decode(b"a\r\nb\rc\n", "a.py").text == "a\r\nb\rc\n"


def test_byte_order_mark_is_not_text_and_comes_back() -> None:
    source = decode(b"\xef\xbb\xbfx = 1\n", "a.py")
    assert source.text == "x = 1\n"
    assert source.bom
    assert source.encode(source.text) == source.raw


@pytest.mark.parametrize(
    ("raw", "encoding"),
    [
        (b"# -*- coding: latin-1 -*-\n", "iso-8859-1"),
        (b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n", "cp1252"),
        (b"\n# coding: shift_jis\n", "shift_jis"),
        (b"x = 1\n# coding: cp1252\n", "utf-8"),
        (b"\n\n# coding: cp1252\n", "utf-8"),
        (b"# coding: UTF-8-unix\n", "utf-8"),
        (b"", "utf-8"),
    ],
)
def test_encoding_is_the_one_that_pep_263_names(raw: bytes, encoding: str) -> None:
    assert decode(raw, "a.py").encoding == encoding


def test_text_of_a_named_encoding_is_decoded_and_encoded_back() -> None:
    raw = '# coding: shift_jis\ns = "重要"\n'.encode("shift_jis")
    source = decode(raw, "a.py")
    assert "重要" in source.text
    assert source.encode(source.text) == raw


def test_undecodable_byte_is_reported_at_its_row_and_column() -> None:
    error = error_of("# ä\nx = 'ö".encode() + b"\xff'\n")
    assert (error.row, error.column) == (2, 7)
    assert "byte 0xff is not valid utf-8" in str(error)


def test_unknown_encoding_is_reported_at_the_comment() -> None:
    error = error_of(b"#!/bin/sh\n# coding: klingon\n")
    assert (error.row, str(error)) == (2, "unknown encoding: klingon")


@pytest.mark.parametrize("codec", ["rot13", "hex", "undefined"])
def test_codec_that_is_no_text_encoding_is_unknown(codec: str) -> None:
    assert "unknown encoding" in str(error_of(f"# coding: {codec}\n".encode()))


def test_byte_order_mark_with_another_encoding_is_refused() -> None:
    assert "byte order mark" in str(error_of(b"\xef\xbb\xbf# coding: latin-1\n"))


def test_utf_16_is_named() -> None:
    assert "UTF-16" in str(error_of("x = 1\n".encode("utf-16")))


def test_nul_byte_is_reported_at_its_place() -> None:
    error = error_of(b"x = 1\ny = \0\n")
    assert (error.row, error.column) == (2, 5)
    assert "NUL" in str(error)


def test_missing_file_is_an_error_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be read: No such file"):
        read_source(tmp_path / "none.py")


def test_text_that_the_encoding_lacks_cannot_be_encoded() -> None:
    with pytest.raises(SourceError, match="iso-8859-1"):
        decode(b"# coding: latin-1\n", "a.py").encode("重")


# Syntax errors


def test_syntax_error_stands_at_the_parsers_place_with_its_message() -> None:
    error = error_of(b"x = 1\ny = (2,\nz = }\n")
    assert error.row in (2, 3)
    assert "'}'" in str(error) or "never closed" in str(error)


def test_column_of_a_syntax_error_counts_code_points() -> None:
    assert place_of('s = "重要"; x = = 1\n'.encode()) == (1, 15)


def test_warnings_of_the_parser_are_not_shown() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parse(decode(b'x = "\\d"\ny = 1 is 1\n', "a.py"))


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("try:\n    pass\nexcept* ValueError:\n    pass\n", (3, 11)),
        ("type Pair = tuple[int, int]\n", (3, 12)),
        ("def first[T](x: list[T]) -> T: ...\n", (3, 12)),
        ("class Box[T]: ...\n", (3, 12)),
        ('x = f"{d["key"]}"\n', (3, 12)),
        ("x = f\"{'\\n'.join(y)}\"\n", (3, 12)),
        ("class Box[T = int]: ...\n", (3, 13)),
        ('x = t"{y}"\n', (3, 14)),
        ("try:\n    pass\nexcept ValueError, TypeError:\n    pass\n", (3, 14)),
        ("lazy import torch\n", (3, 15)),
        ("x = [*y for y in z]\n", (3, 15)),
    ],
)
def test_newer_syntax_names_the_python_it_needs(text: str, version: tuple[int, int]) -> None:
    if sys.version_info >= version:
        parse(decode(text.encode(), "a.py"))
    else:
        assert f"needs Python {version[0]}.{version[1]} or newer" in str(error_of(text.encode()))


@pytest.mark.parametrize(
    "text",
    ['print "loss", loss\n', "try:\n  pass\nexcept IOError, e:\n  pass\n", "raise E, 'x'\n", "if a <> b: pass\n"],
)
def test_python_2_is_named(text: str) -> None:
    assert "Python 2 syntax" in str(error_of(text.encode()))


@pytest.mark.parametrize("text", ["x = = 1\n", "def f(:\n", "print(x\n", "type = = 1\n", "x = f'{'\n", "except\n"])
def test_plain_mistake_blames_no_version(text: str) -> None:
    assert "Python" not in str(error_of(text.encode()))


@pytest.mark.parametrize(
    "text", ["x = " + "-" * 20_000 + "1\n", "x = y" + ".a" * 20_000 + "\n", "x = " + "+".join("y" * 50_000) + "\n"]
)
def test_source_too_deep_for_the_parser_is_refused_at_its_row(text: str) -> None:
    source = decode(b"a = 1\n" + text.encode(), "a.py")
    try:
        parse(source)
    except SourceError as error:
        assert "nested too deeply" in str(error)
        assert error.row == 2


def test_too_many_parentheses_are_a_syntax_error() -> None:
    assert place_of(b"x = " + b"(" * 20_000 + b")" * 20_000 + b"\n")[0] == 1


# Positions


def test_positions_are_one_based_code_points() -> None:
    source = decode('a\r\ns = "重"; f()\n'.encode(), "a.py")
    assert source.position(0) == Position(1, 1)
    assert source.position(source.text.index("f()")) == Position(2, 10)


def test_rows_end_as_in_ast_and_nowhere_else() -> None:
    text = "a = 1\rb = 2\r\n\x0cc = '\x0b\x1c\u2028\x85'\nd = 3"
    source = decode(text.encode(), "a.py")
    spans = [source.span(node) for node in parse(source).body]
    assert [text[slice(*span)] for span in spans] == ["a = 1", "b = 2", "c = '\x0b\x1c\u2028\x85'", "d = 3"]


def test_row_count_includes_a_last_row_without_line_ending() -> None:
    assert [decode(raw, "a.py").rows for raw in (b"", b"a", b"a\n", b"a\nb", b"a\r\nb\r\n")] == [0, 1, 1, 2, 2]


def test_line_text_has_no_line_ending() -> None:
    source = decode(b"a\r\nb\rc", "a.py")
    assert [source.line_text(row) for row in (1, 2, 3)] == ["a", "b", "c"]


_PIECES = st.sampled_from(["x", "é", "重要", "😀", "f(a, b)", '"s"', "'é'", "[1, 2]", "a.b", "a\\\n+b", '"""é\r\nq"""'])
_ENDS = st.sampled_from(["\n", "\r\n", "\r", "  # 注\n", "; y\n", " \x0c\n"])


@given(st.lists(st.tuples(_PIECES, _ENDS), max_size=8), st.booleans())
def test_span_of_every_node_holds_its_own_source(lines: list[tuple[str, str]], bom: bool) -> None:
    text = "".join(piece + end for piece, end in lines)
    source = decode((b"\xef\xbb\xbf" if bom else b"") + text.encode(), "a.py")
    try:
        tree = parse(source)
    except SourceError:  # an emoji is no name
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.expr):
            piece = text[slice(*source.span(node))]
            assert ast.dump(ast.parse(piece, mode="eval").body) == ast.dump(node)


@given(st.text(alphabet="aé重\n\r\f", max_size=30), st.data())
def test_position_and_offset_are_inverse(text: str, data: st.DataObject) -> None:
    source = Source("a.py", text.encode(), text)
    offset = data.draw(st.integers(0, len(text)))
    row, column = source.position(offset)
    before = text[source.starts[row - 1] : offset]
    assert len(before) == column - 1
    if not before.endswith("\r"):
        assert source.offset(row, len(before.encode())) == offset


@given(
    st.text(alphabet="aé\u00df\n\r #", max_size=30),
    st.sampled_from(["utf-8", "iso-8859-1", "cp1252", "iso8859-15"]),
    st.booleans(),
)
def test_decoding_and_encoding_give_the_same_bytes(text: str, encoding: str, bom: bool) -> None:
    bom = bom and encoding == "utf-8"
    raw = (b"\xef\xbb\xbf" if bom else b"") + f"# coding: {encoding}\n{text}".encode(encoding)
    source = decode(raw, "a.py")
    assert source.encode(source.text) == raw
    assert source.with_text(source.text).raw == raw


def test_span_of_a_wide_row_matches_the_text_after_it() -> None:
    source = decode('x = "重要"; foo(y)\n'.encode(), "a.py")
    call = parse(source).body[1]
    assert source.span(call) == Span(10, 16)

"""The comments that silence findings."""

from __future__ import annotations

import pytest

from devlint.source import decode
from devlint.suppression import Suppressions, directives, parse_comment


@pytest.mark.parametrize(
    ("comment", "code", "covered"),
    [
        ("# noqa", "DEV101", True),
        ("# NOQA", "DEV101", True),
        ("#noqa", "DEV101", True),
        ("# type: ignore # noqa", "DEV101", True),
        ("# noqa: DEV101", "DEV101", True),
        ("# noqa:DEV101", "DEV101", True),
        ("# noqa: E501, DEV101", "DEV101", True),
        ("# noqa: E501 DEV101 because", "DEV101", True),
        ("# noqa: dev101", "DEV101", True),
        ("# noqa: DEV1", "DEV101", True),
        ("# noqa: DEV102", "DEV101", False),
        ("# noqa: because it is fine", "DEV101", False),
        ("# noqa:", "DEV101", False),
        ("# noqas", "DEV101", False),
        ("# devlint: ignore[DEV101]", "DEV101", True),
        ("# devlint: ignore[DEV101] a reason", "DEV101", True),
        ("# devlint:ignore [DEV101,DEV102]", "DEV102", True),
        ("# devlint: ignore[some-name]", "DEV101", True),
        ("# devlint: ignore[other-name]", "DEV101", False),
        ("# devlint: ignore[]", "DEV101", False),
        ("# devlint: ignore", "DEV101", False),
        ("# a note  # devlint: ignore[DEV101]", "DEV101", True),
        ("# no devlint: ignored", "DEV101", False),
    ],
)
def test_comment_covers_what_it_names(comment: str, code: str, covered: bool) -> None:
    assert any(d.covers(code, "some-name") for d in parse_comment(comment)) is covered


def test_directives_are_read_from_comments_only() -> None:
    source = decode(b"x = '# noqa'\ny = '''\n# noqa\n'''\nz = 1  # noqa\n", "a.py")
    assert list(directives(source)) == [5]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_rows_are_those_of_the_file(newline: str) -> None:
    text = "x = 1\n\n\x0cy = 2  # noqa: DEV101\nz = (\n3)\n".replace("\n", newline)
    assert list(directives(decode(text.encode(), "a.py"))) == [3]


def test_only_the_rows_asked_for_count() -> None:
    suppressions = Suppressions(decode(b"x = 1  # noqa\ny = 2\n", "a.py"))
    assert suppressions.covers("DEV101", "some-name", [1])
    assert not suppressions.covers("DEV101", "some-name", [2])


def test_file_without_the_words_has_no_directives() -> None:
    assert not directives(decode(b"x = 1  # ignore[DEV101]\n", "a.py"))

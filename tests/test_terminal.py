"""Terminals: when to colour, and what cannot be printed as it is."""

from __future__ import annotations

import io

import pytest

from devlint.terminal import printable, wants_color


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("choice", "environment", "on_a_screen", "in_a_pipe"),
    [
        ("auto", {}, True, False),
        ("auto", {"NO_COLOR": "1"}, False, False),
        ("auto", {"NO_COLOR": ""}, True, False),
        ("auto", {"FORCE_COLOR": "1"}, True, True),
        ("auto", {"FORCE_COLOR": "0"}, True, False),
        ("auto", {"CLICOLOR_FORCE": "1"}, True, True),
        ("auto", {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
        ("auto", {"TERM": "dumb"}, False, False),
        ("auto", {"TERM": "xterm"}, True, False),
        ("always", {"NO_COLOR": "1"}, True, True),
        ("never", {"FORCE_COLOR": "1"}, False, False),
    ],
)
def test_color(choice: str, environment: dict[str, str], on_a_screen: bool, in_a_pipe: bool) -> None:
    assert wants_color(choice, Screen(), environment) is on_a_screen
    assert wants_color(choice, io.StringIO(), environment) is in_a_pipe


def test_control_characters_are_replaced_and_letters_kept() -> None:
    assert printable("重 é \x1b[0m\x07\x7f\x9b\t") == "重 é \ufffd[0m\ufffd\ufffd\ufffd\ufffd"

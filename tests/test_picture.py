"""A report as a picture of a terminal: its colours, and that a browser draws it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from devlint.dev.picture import as_html, draw
from devlint.terminal import Style


def test_plain_text_is_escaped() -> None:
    assert as_html("a < b & c") == "a &lt; b &amp; c"


def test_a_colour_ends_where_the_report_ends_it() -> None:
    text = as_html(f"{Style(color=True).code('DEV101')} then")
    assert text == '<span style="font-weight:bold;color:#c01c28">DEV101</span> then'


def test_a_colour_that_follows_another_takes_its_place() -> None:
    assert as_html("\x1b[31mred\x1b[32mgreen\x1b[0m") == (
        '<span style="color:#c01c28">red</span><span style="color:#26a269">green</span>'
    )


@pytest.mark.slow
def test_a_browser_draws_it(tmp_path: Path) -> None:
    if shutil.which("chromium") is None and shutil.which("google-chrome") is None:
        pytest.skip("needs Chromium")
    assert draw("one line", tmp_path / "a.png") == 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")

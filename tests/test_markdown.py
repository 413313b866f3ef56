"""Fenced Python in Markdown: places of the file, imports of earlier blocks, fixes inside a block."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlint.embedded.markdown import blocks, masked

Cli = Callable[..., Any]  # of conftest.py
MOVE = 'x = torch.zeros(3).to("cuda")\n'
PAGE = f"""\
# Page é

```python
import torch
```

Text.

```py title="a"
{MOVE}```
"""


def places(result: Any) -> list[str]:
    return [line.split(" ")[0] for line in result.out.splitlines() if " DEV" in line]


def test_a_named_file_is_checked_with_the_imports_of_earlier_blocks(cli: Cli) -> None:
    Path("a.md").write_text(PAGE)
    done = cli("a.md")
    assert done.code == 1
    assert places(done) == ["a.md:10:5:"]


def test_directories_are_searched_when_asked(cli: Cli) -> None:
    Path("a.md").write_text(PAGE)
    Path("b.markdown").write_text(PAGE)
    assert places(cli()) == []
    assert places(cli("--markdown")) == ["a.md:10:5:", "b.markdown:10:5:"]


def test_full_shows_the_rows_of_the_file(cli: Cli) -> None:
    Path("a.md").write_text(PAGE)
    lines = cli("a.md", "--output-format", "full").out.splitlines()
    assert lines[1:3] == [
        "  --> a.md:10:5",
        '10 | x = torch.zeros(3).to("cuda")',
    ]


def test_a_fix_changes_the_block_alone(cli: Cli) -> None:
    for raw in (PAGE.encode(), PAGE.replace("\n", "\r\n").encode(), b"\xef\xbb\xbf" + PAGE.encode()):
        Path("a.md").write_bytes(raw)
        assert cli("a.md", "--fix").code == 0
        assert Path("a.md").read_bytes() == raw.replace(b").to(", b", device=")


def test_blocks_that_shrink_do_not_disturb_those_below(cli: Cli) -> None:
    long = 'x = torch.zeros(3).to(\n    "cuda"\n)\n'
    Path("a.md").write_text(f"```python\nimport torch\n{long}```\n\n```python\n{long}```\n")
    assert cli("a.md", "--fix").code == 0
    fixed = 'x = torch.zeros(3, device="cuda")\n'
    assert Path("a.md").read_text() == f"```python\nimport torch\n{fixed}```\n\n```python\n{fixed}```\n"


def test_a_diff_is_one_of_the_file(cli: Cli) -> None:
    Path("a.md").write_text(PAGE)
    assert cli("a.md", "--diff").out == (
        "--- a/a.md\n+++ b/a.md\n@@ -7,5 +7,5 @@\n Text.\n \n ```py title=\"a\"\n"
        '-x = torch.zeros(3).to("cuda")\n+x = torch.zeros(3, device="cuda")\n ```\n'
    )  # fmt: skip


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("```python", "```"), ("```py", "```"), ("``` python3", "```"), ("~~~Python", "~~~"), ("````py", "`````"),
        ("```{python}", "```"), ("```{.python .x}", "```"), ("```python,ignore", "```"), ("```python", ""),
    ],
)  # fmt: skip
def test_blocks_that_say_python_are_checked(cli: Cli, opening: str, closing: str) -> None:
    Path("a.md").write_text(f"{opening}\nimport torch\n{MOVE}{closing}\n")
    assert places(cli("a.md")) == ["a.md:3:5:"]


@pytest.mark.parametrize("opening", ["```", "```pycon", "```text", "```pythonx", "    ", "<pre>", "``python"])
def test_other_blocks_are_not(cli: Cli, opening: str) -> None:
    Path("a.md").write_text(f"{opening}\nimport torch\n{MOVE}```\n")
    assert places(cli("a.md")) == []


def test_a_block_in_a_list_is_checked_at_its_place(cli: Cli) -> None:
    Path("a.md").write_text(f"1. item\n\n   ```python\n   import torch\n   {MOVE}   ```\n")
    assert places(cli("a.md")) == ["a.md:5:8:"]
    assert cli("a.md", "--fix").code == 0
    assert '   x = torch.zeros(3, device="cuda")\n' in Path("a.md").read_text()


@pytest.mark.parametrize("code", [">>> x = 1\n", "x = (\n", "$ pip install\n", "...  # more\n  y\n"])
def test_a_block_that_does_not_parse_is_left_out(cli: Cli, code: str) -> None:
    Path("a.md").write_text(f"```python\n{code}```\n\n```python\nimport torch\n{MOVE}```\n")
    assert places(cli("a.md")) == [f"a.md:{code.count(chr(10)) + 6}:5:"]


def test_names_of_one_block_are_unknown_in_the_next(cli: Cli) -> None:
    Path("a.md").write_text(
        '```python\nimport torch\nx = torch.zeros(3)\n```\n```python\ny = x.to("cuda") + torch.ones(3)\n```\n'
    )
    assert "DEV101" in cli("a.md", "--select", "DEV101").out or places(cli("a.md", "--select", "DEV501")) == []


def test_a_comment_in_a_block_silences(cli: Cli) -> None:
    Path("a.md").write_text(PAGE.replace('"cuda")', '"cuda")  # devlint: ignore[DEV501]'))
    assert cli("a.md").code == 0


def test_prose_that_looks_like_an_encoding_is_prose(cli: Cli) -> None:
    Path("a.md").write_text(f"# Encoding: none-such\n{PAGE}")
    assert places(cli("a.md")) == ["a.md:11:5:"]


def test_standard_input(cli: Cli) -> None:
    assert places(cli("-", "--stdin-filename", "a.md", stdin=PAGE.encode())) == ["a.md:10:5:"]
    fixed = cli("-", "--stdin-filename", "a.md", "--fix", stdin=PAGE.encode()).out
    assert fixed == PAGE.replace(").to(", ", device=")


def test_a_file_that_is_not_utf_8_is_a_problem(cli: Cli) -> None:
    Path("a.md").write_bytes(b"\xff torch")
    assert "DEV900 is not valid UTF-8" in cli("a.md").out


QUOTED = f"> **Note**\n>\n> ```python\n> import torch\n>\n> {MOVE}> ```\n"


@pytest.mark.parametrize(
    "quote", [QUOTED, QUOTED.replace("> ", ">"), "\n".join(f"> {line}" for line in QUOTED.split("\n"))]
)
def test_a_block_in_a_quote_is_checked_and_fixed_at_its_place(cli: Cli, quote: str) -> None:
    Path("a.md").write_text(quote)
    (row,) = [row for row, line in enumerate(quote.split("\n"), 1) if "torch.zeros" in line]
    column = quote.split("\n")[row - 1].index("torch.zeros") + 1
    assert places(cli("a.md")) == [f"a.md:{row}:{column}:"]
    assert cli("a.md", "--fix").code == 0
    assert Path("a.md").read_text() == quote.replace(").to(", ", device=")


def test_a_fix_of_several_rows_is_not_made_in_a_quote(cli: Cli) -> None:
    text = "> ```python\n> import torch\n> x = torch.zeros(3).to(\n>     'cuda'\n> )\n> ```\n"
    Path("a.md").write_text(text)
    cli("a.md", "--fix")
    assert Path("a.md").read_text() == text


@pytest.mark.parametrize(
    "text",
    [
        f"Text:\n\n    ```python\n    import torch\n    {MOVE}    ```\n",
        f"<!--\n```python\nimport torch\n{MOVE}```\n-->\n",
        f"<!-- a comment\n\n```python\nimport torch\n{MOVE}```\n\n-->\n",
        f"<pre>\n```python\nimport torch\n{MOVE}```\n</pre>\n",
        f"`````text\n```python\nimport torch\n{MOVE}```\n`````\n",
    ],
)
def test_what_looks_like_a_fence_and_is_none(cli: Cli, text: str) -> None:
    Path("a.md").write_text(text)
    assert places(cli("a.md")) == []


def test_a_fence_behind_a_number_of_a_list(cli: Cli) -> None:
    Path("a.md").write_text(f"1. ```python\n   import torch\n   {MOVE}   ```\n")
    assert places(cli("a.md")) == ["a.md:3:8:"]


def test_a_block_in_a_list_in_a_quote(cli: Cli) -> None:
    Path("a.md").write_text(f"> - item\n>\n>   ~~~py\n>   import torch\n>   {MOVE}>   ~~~\n")
    assert places(cli("a.md")) == ["a.md:5:9:"]
    assert cli("a.md", "--fix").code == 0
    assert '>   x = torch.zeros(3, device="cuda")\n' in Path("a.md").read_text()


def test_imports_of_a_block_before_a_quote(cli: Cli) -> None:
    Path("a.md").write_text(f"```python\nimport torch\n```\n\n> ```python\n> {MOVE}> ```\n")
    assert places(cli("a.md")) == ["a.md:6:7:"]


pages = st.lists(
    st.sampled_from(
        [
            "```python",
            "```",
            "~~~py",
            "~~~",
            "   ```py",
            "   ```",
            "x = 1",
            "   y = 2",
            "import a",
            "é",
            "if x:",
            "> ```py",
            "> x = 1",
            ">",
            "    ```py",
            "<!--",
            "-->",
            "- a",
            "1. ```py",
        ]
    ),
    max_size=12,
).map("\n".join)


@given(pages)
def test_the_source_of_a_block_has_its_text_at_its_place_and_the_rows_of_the_file(text: str) -> None:
    found = blocks(text)
    for number, block in enumerate(found):
        whole = masked(text, block, found[:number])
        if whole is not None:
            assert whole[block.start : block.end] == block.code(text)
            assert block.restored(block.code(text)) == text[block.start : block.end] or not block.is_quoted
            assert len(whole) == len(text)
            assert [i for i, c in enumerate(whole) if c == "\n"] == [i for i, c in enumerate(text) if c == "\n"]

"""`--add-ignore`: a comment for each finding, where the engine looks for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., Any]  # of conftest.py
NOTE = "# devlint: ignore[DEV501]"


def ignored(cli: Cli, text: str, *arguments: str) -> str:
    """The file after its findings were silenced, which a second run must leave alone."""
    Path("a.py").write_text(text)
    done = cli("a.py", *(arguments or ("--add-ignore",)))
    after = Path("a.py").read_text()
    assert done.code == 0, done.out + done.err
    assert cli("a.py", "--add-ignore").out == "Silenced 0 problems in 0 files.\nNo device problems found in 1 file.\n"
    assert Path("a.py").read_text() == after
    return after


def test_a_comment_goes_to_the_end_of_the_row(cli: Cli) -> None:
    assert ignored(cli, 'import torch\nx = torch.zeros(3).to("cuda")\n') == (
        f'import torch\nx = torch.zeros(3).to("cuda")  {NOTE}\n'
    )


def test_the_reason_stands_behind_the_codes(cli: Cli) -> None:
    after = ignored(cli, 'import torch\nx = torch.zeros(3).to("cuda")', "--add-ignore=old\ncode")
    assert after == f'import torch\nx = torch.zeros(3).to("cuda")  {NOTE} old code'


def test_a_path_is_not_taken_for_the_reason(cli: Cli) -> None:
    Path("a.py").write_text('import torch\nx = torch.zeros(3).to("cuda")\n')
    assert cli("--add-ignore", "a.py").out.startswith("Silenced 1 problem in 1 file.\n")


def test_other_comments_stay(cli: Cli) -> None:
    assert ignored(cli, 'import torch\nx = torch.zeros(3).to("cuda")  # why\n').endswith(f"  # why  {NOTE}\n")


def test_a_code_is_added_to_a_comment_that_is_there(cli: Cli) -> None:
    after = ignored(cli, 'import torch\nx = torch.zeros(3).to("cuda")  # devlint: ignore[DEV101] why\n')
    assert after.endswith("  # devlint: ignore[DEV101, DEV501] why\n")


def test_several_findings_of_a_row_share_a_comment(cli: Cli) -> None:
    text = 'import torch\nx = torch.zeros(3).to("cuda"), torch.ones(3).to("cuda")\n'
    assert ignored(cli, text).count("devlint") == 1


@pytest.mark.parametrize(
    ("statement", "after"),
    [
        ('x = torch.zeros(3).to(\n    "cuda"\n)\n', f'x = torch.zeros(3).to(  {NOTE}\n    "cuda"\n)\n'),
        ('x = torch.zeros(3) \\\n    .to("cuda")\n', f'x = torch.zeros(3) \\\n    .to("cuda")  {NOTE}\n'),
        ('if torch.zeros(3).to("cuda"): pass\n', f'if torch.zeros(3).to("cuda"): pass  {NOTE}\n'),
        (
            'f(torch.zeros(3).to("cuda"), """\n# text\n""")\n',
            f'f(torch.zeros(3).to("cuda"), """\n# text\n""")  {NOTE}\n',
        ),
        (
            'f(torch.zeros(3).to("cuda"), f"""\n{x}\n""")\n',
            f'f(torch.zeros(3).to("cuda"), f"""\n{{x}}\n""")  {NOTE}\n',
        ),
    ],
    ids=["brackets", "backslash", "one-line block", "string", "f-string"],
)
def test_a_statement_over_several_rows_gets_it_where_a_comment_can_stand(cli: Cli, statement: str, after: str) -> None:
    assert ignored(cli, f"import torch\n{statement}") == f"import torch\n{after}"


@pytest.mark.parametrize(
    "raw",
    [
        b'import torch\r\nx = torch.zeros(3).to("cuda")\r\n',
        b'\xef\xbb\xbfimport torch\nx = torch.zeros(3).to("cuda")\n',
        b'# coding: latin-1\nimport torch\ns = "\xe9"; x = torch.zeros(3).to("cuda")\n',
        b'import torch\n\x0cx = torch.zeros(3).to("cuda")\n',
    ],
    ids=["CRLF", "byte order mark", "latin-1", "form feed"],
)
def test_line_endings_and_encoding_stay(cli: Cli, raw: bytes) -> None:
    Path("a.py").write_bytes(raw)
    assert cli("a.py", "--add-ignore").code == 0
    assert Path("a.py").read_bytes() == raw.replace(b'to("cuda")', b'to("cuda")  # devlint: ignore[DEV501]')


def test_a_reason_that_the_encoding_cannot_hold_changes_nothing(cli: Cli) -> None:
    raw = b'# coding: latin-1\nimport torch\nx = torch.zeros(3).to("cuda")\n'
    Path("a.py").write_bytes(raw)
    done = cli("a.py", "--add-ignore=重")
    assert done.code == 1
    assert "cannot be written as iso-8859-1" in done.out
    assert Path("a.py").read_bytes() == raw


def test_where_no_comment_can_stand_it_says_so(cli: Cli) -> None:
    text = 'import torch\nx = torch.zeros(3).to("cuda"); s = """\n"""\n'
    Path("a.py").write_text(text)
    done = cli("a.py", "--add-ignore")
    assert done.code == 1
    assert done.err == "warning: a.py:2:5: not silenced: no line of the statement can have a comment\n"
    assert Path("a.py").read_text() == text


def test_what_the_baseline_holds_needs_no_comment(cli: Cli) -> None:
    Path("a.py").write_text('import torch\nx = torch.zeros(3).to("cuda")\n')
    cli("--write-baseline")
    assert cli("--add-ignore").out.startswith("Silenced 0 problems in 0 files.\n")


def test_a_file_that_does_not_parse_stays_a_problem(cli: Cli) -> None:
    Path("a.py").write_text("import torch\nx = (\n")
    assert cli("--add-ignore").code == 1


def test_a_notebook_gets_its_comments(cli: Cli) -> None:
    cell = {"cell_type": "code", "source": ["import torch\n", 'x = torch.zeros(3).to("cuda")']}
    Path("n.ipynb").write_text(json.dumps({"cells": [cell], "nbformat": 4}))
    assert cli("n.ipynb", "--add-ignore").code == 0
    after = json.loads(Path("n.ipynb").read_text())
    assert after["cells"][0]["source"] == ["import torch\n", f'x = torch.zeros(3).to("cuda")  {NOTE}']


def test_standard_input_goes_to_standard_output(cli: Cli) -> None:
    done = cli("-", "--add-ignore", stdin=b'import torch\nx = torch.zeros(3).to("cuda")\n')
    assert done.out == f'import torch\nx = torch.zeros(3).to("cuda")  {NOTE}\n'


def test_it_goes_with_diff_and_not_with_fix(cli: Cli) -> None:
    text = 'import torch\nx = torch.zeros(3).to("cuda")\n'
    Path("a.py").write_text(text)
    assert f'+x = torch.zeros(3).to("cuda")  {NOTE}\n' in cli("a.py", "--add-ignore", "--diff").out
    assert Path("a.py").read_text() == text
    assert cli("a.py", "--add-ignore", "--fix").code == 2


def test_ignore_suppressions_reports_what_comments_silence(cli: Cli) -> None:
    Path("a.py").write_text(f'import torch\nx = torch.zeros(3).to("cuda")  {NOTE}\n')
    assert cli("a.py").code == 0
    assert cli("a.py", "--ignore-suppressions").out.startswith("a.py:2:5: DEV501 [*] ")
    assert cli("a.py", "--ignore-suppressions", "--fix").code == 0
    assert 'torch.zeros(3, device="cuda")' in Path("a.py").read_text()

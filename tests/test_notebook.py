"""Notebooks: cells joined, magics kept, places in cells, fixes written back and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlint.embedded import ipython
from devlint.embedded.notebook import read_notebook
from devlint.errors import SourceError

Cli = Callable[..., Any]  # of conftest.py
Source = str | list[str]
MOVE = 'x = torch.zeros(3).to("cuda")\n'
FIXED = 'x = torch.zeros(3, device="cuda")\n'


def notebook(*sources: Source, language: str = "python", **style: Any) -> str:
    """A notebook with a Markdown cell and these code cells."""
    cells: list[dict[str, Any]] = [
        {"cell_type": "code", "execution_count": None, "id": f"id{n}", "metadata": {}, "outputs": [], "source": source}
        for n, source in enumerate(sources)
    ]
    data = {
        "cells": [{"cell_type": "markdown", "id": "m", "metadata": {}, "source": ["# Title"]}, *cells],
        "metadata": {"kernelspec": {"language": language, "name": "k"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(data, **{"indent": 1, "ensure_ascii": False, **style}) + "\n"


def write(*sources: Source, **style: Any) -> bytes:
    raw = notebook(*sources, **style).encode()
    Path("n.ipynb").write_bytes(raw)
    return raw


def problems(result: Any) -> list[str]:
    """`cell:row:column CODE` of each problem."""
    lines = [line.split(" ") for line in result.out.splitlines() if line.startswith("n.ipynb:cell")]
    return [f"{line[1]} {line[2]}".replace(": ", " ") for line in lines]


def test_what_one_cell_imports_is_known_in_the_next_and_cells_are_counted_with_markdown(cli: Cli) -> None:
    write("import torch", ["\n", MOVE])
    done = cli("n.ipynb")
    assert done.code == 1
    assert problems(done) == ["3:2:5 DEV501"]


def test_what_the_last_line_of_a_cell_moves_is_shown_and_not_dropped(cli: Cli) -> None:
    setup = 'import torch\ndevice = torch.device("cuda" if torch.cuda.is_available() else "cpu")\nx = torch.zeros(3)\n'
    write(setup + "x.to(device)\n", "x.to(device)", "x.to(device)\nprint(x)\n")
    assert problems(cli("n.ipynb", "--select", "DEV105")) == ["4:1:1 DEV105"]


def test_notebooks_are_found_in_directories(cli: Cli) -> None:
    write("import torch\n" + MOVE)
    assert problems(cli()) == ["2:2:5 DEV501"]


def test_json_has_the_cell_and_places_within_it(cli: Cli) -> None:
    write("import torch", MOVE)
    (row,) = json.loads(cli("n.ipynb", "--output-format", "json").out)
    assert (row["filename"], row["cell"], row["location"]) == ("n.ipynb", 3, {"row": 1, "column": 5})
    assert row["fix"]["edits"][0]["location"] == {"row": 1, "column": 18}
    assert (row["related"][0]["cell"], row["related"][0]["location"]) == (3, {"row": 1, "column": 5})


def test_full_shows_the_code_of_the_cell(cli: Cli) -> None:
    write("import torch", "%matplotlib inline\n" + MOVE)
    assert cli("n.ipynb", "--output-format", "full").out.splitlines()[1:3] == [
        " --> n.ipynb:cell 3:2:5",
        '2 | x = torch.zeros(3).to("cuda")',
    ]


@pytest.mark.parametrize(
    "lines",
    [
        "%matplotlib inline\n", "!pip install torch\n", "!echo don't (\n", "torch.zeros?\n", "?torch\n", "torch??\n",
        "files = !ls\n", "t = %timeit -o f()\n", "%%time\n", "%%timeit -n 3\n", "!pip install \\\n  torch 'x\n",
        "if True:\n    %time f()\n    !ls\n", "for f in x:\n    pass\n%time f()\n", "%load_ext a\n%autoreload 2\n",
        "pip install -r requirements.txt\n", "cd data\n", "cd ..\n", "cd ~/data\n", "ls -la data\n", "rm -rf *.txt\n",
    ],
)  # fmt: skip
def test_magics_do_not_stop_the_check(cli: Cli, lines: str) -> None:
    write("import torch", lines + MOVE)
    row = lines.count("\n") + 1
    assert problems(cli("n.ipynb")) == [f"3:{row}:5 DEV501"]
    assert cli("n.ipynb", "--fix").code == 0
    assert json.loads(Path("n.ipynb").read_text())["cells"][2]["source"] == lines + FIXED


@pytest.mark.parametrize(
    "cell", ['f("a"\n  % x)\n', 's = """\n%d\n!x\n"""\n', "y = a \\\n  % b\n", "a != b\n", "print('loss = %.6f' % x)\n"]
)
def test_python_that_looks_like_a_magic_is_python(cell: str) -> None:
    assert ipython.mask(cell, "ᚠ") == (cell, None)
    masked, error = ipython.mask(cell + "%load x\n", "ᚠ")
    assert error is None
    assert masked == cell + "#ᚠᚠᚠᚠᚠᚠ\n"


@pytest.mark.parametrize(
    "cell",
    ["cd ..", "cd ../data\n", "matplotlib inline", "load_ext autoreload", "run train.py --epochs 3", "time x = f()"],
)
def test_a_magic_without_its_sign_may_be_a_whole_cell(cli: Cli, cell: str) -> None:
    write("import torch", cell, MOVE)
    assert problems(cli("n.ipynb")) == ["4:1:5 DEV501"]


@pytest.mark.parametrize("cell", ["run = x y", "train model", "matplotlib inline\nx = 1", "cd .. (\nx = 1"])
def test_what_is_neither_python_nor_a_magic_is_a_problem(cli: Cli, cell: str) -> None:
    write("import torch", cell)
    assert [each.rpartition(" ")[2] for each in problems(cli("n.ipynb"))] == ["DEV900"]


@pytest.mark.parametrize("row", ["ls -la", "cd /data", "mv += 1", "rm: int", "cp, x = 1, 2"])
def test_a_command_that_reads_as_python_is_python(row: str) -> None:
    masked, error = ipython.mask(row + "\n%load x\n", "ᚠ")
    assert (masked, error) == (row + "\n#ᚠᚠᚠᚠᚠᚠ\n", None)


def test_cells_in_other_languages_are_left_out(cli: Cli) -> None:
    write("import torch", '%%bash\necho "don\'t\nx = torch.zeros(3).to("cuda")\n')
    assert cli("n.ipynb").code == 0


def test_a_cell_that_does_not_parse_is_a_problem_and_the_others_are_checked(cli: Cli) -> None:
    write("import torch", "x = (", MOVE)
    assert problems(cli("n.ipynb")) == ["3:1:5 DEV900", "4:1:5 DEV501"]


def test_a_cell_may_be_indented_as_a_whole(cli: Cli) -> None:
    write(
        "import torch",
        ["\n", "    " + MOVE, "    %time f()\n", "    s = '''\n", "a\n", "'''"],
        "  # nothing but a comment",
    )
    assert problems(cli("n.ipynb")) == ["3:2:9 DEV501"]
    before = Path("n.ipynb").read_text()
    assert cli("n.ipynb", "--fix").code == 0
    assert Path("n.ipynb").read_text() == before.replace(").to(", ", device=")


@pytest.mark.parametrize(
    ("cell", "place"), [("  x = (", "3:1:7"), ("  if a:\n      b\n c", "3:3:3"), ("  a\nb\n  c", "3:3:2")]
)
def test_a_cell_that_no_indentation_explains_is_a_problem(cli: Cli, cell: str, place: str) -> None:
    write("import torch", cell)
    assert problems(cli("n.ipynb")) == [f"{place} DEV900"]


def test_messages_of_the_parser_count_the_rows_of_the_cell() -> None:
    _, error = ipython.mask("  if a:\n  b", "ᚠ", ipython.HEADER)
    assert (str(error), error and error.row) == ("expected an indented block after 'if' statement on line 1", 2)


def test_a_message_names_the_cell_of_a_line(cli: Cli) -> None:
    write(
        "import torch",
        "# first\nwhere = 'cuda'",
        "def f(x: torch.Tensor):\n    mask = torch.arange(3)\n    return x + mask\n",
    )
    (row,) = json.loads(cli("n.ipynb", "--select", "DEV102", "--output-format", "json").out)
    assert "it meets `x`, which may be on an accelerator, in `+` on line 3 of cell 4" in row["message"]
    assert (row["cell"], row["location"]["row"]) == (4, 2)


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("device = torch.device('cpu')\nmodel.to(device)", 0),
        ("class QuantumDevice: ...\ny = x.to(x.device)", 0),
        ("# model.cuda()", 0),
        ("device = torch.device('cuda')\nmodel.to(device)", 1),
        ("model.cuda()", 1),
        ("x = x.to(torch.accelerator.current_accelerator())", 1),
    ],
)
def test_a_notebook_that_places_nothing_stays_on_the_host(cli: Cli, where: str, found: int) -> None:
    write("import torch", where, "def f(x: torch.Tensor):\n    return x + torch.arange(3)\n")
    rows = json.loads(cli("n.ipynb", "--select", "DEV102", "--output-format", "json").out)
    assert len(rows) == found


def test_a_notebook_for_another_kernel_has_no_problems(cli: Cli) -> None:
    write("import torch\n" + MOVE, language="julia")
    assert cli("n.ipynb").code == 0


@pytest.mark.parametrize(
    "style",
    [{}, {"indent": 4}, {"indent": None}, {"separators": (",", ":"), "indent": None}, {"ensure_ascii": True}],
    ids=["nbformat", "4 blanks", "one row", "dense", "escaped"],
)
@pytest.mark.parametrize("as_list", [True, False], ids=["list", "string"])
def test_a_fix_changes_the_lines_that_it_must_and_nothing_else(cli: Cli, style: dict[str, Any], as_list: bool) -> None:
    lines = ["# é\n", MOVE, "\n", 's = "\t\\\\"']
    write("import torch", lines if as_list else "".join(lines), **style)
    before = Path("n.ipynb").read_text()
    assert cli("n.ipynb", "--fix").code == 0
    assert Path("n.ipynb").read_text() == before.replace(").to(", ", device=")


@pytest.mark.parametrize(
    "spell",
    [
        lambda raw: raw.replace(b"\n", b"\r\n"),
        lambda raw: b"\xef\xbb\xbf" + raw,
        lambda raw: raw.rstrip(b"\n"),
        lambda raw: raw.replace("é".encode(), b"\\u00e9"),
        lambda raw: raw.replace(b'"nbformat": 4', b'"nbformat" :\t4'),
        lambda raw: raw.replace(b"# Title", b"\\/ \\u0023"),
    ],
    ids=["CRLF", "byte order mark", "no last line ending", "escapes", "blanks", "odd escapes"],
)
def test_the_spelling_of_the_file_stays(cli: Cli, spell: Callable[[bytes], bytes]) -> None:
    before = spell(notebook("import torch", ["# é\n", MOVE, "x"]).encode())
    Path("n.ipynb").write_bytes(before)
    assert cli("n.ipynb", "--fix").code == 0
    assert Path("n.ipynb").read_bytes() == before.replace(b").to(", b", device=")


def test_lines_that_a_fix_joins_leave_the_list(cli: Cli) -> None:
    write("import torch", ["x = torch.zeros(3).to(\n", '    "cuda"\n', ")\n", "x"])
    assert cli("n.ipynb", "--fix").code == 0
    assert json.loads(Path("n.ipynb").read_text())["cells"][2]["source"] == [FIXED, "x"]


def test_a_fix_that_reaches_into_another_cell_is_refused(cli: Cli) -> None:
    unsafe = ("--select", "DEV202", "--unsafe-fixes")  # its fix defines a device behind the imports
    before = write("import torch", "x.cuda()\n")
    (row,) = json.loads(cli("n.ipynb", *unsafe, "--output-format", "json").out)
    assert (row["cell"], row["fix"]["applicability"], row["fix"]["edits"]) == (3, "hint", [])
    cli("n.ipynb", *unsafe, "--fix")
    assert Path("n.ipynb").read_bytes() == before


def test_a_fix_within_one_cell_is_applied(cli: Cli) -> None:
    write("import torch\nx.cuda()\n")
    assert cli("n.ipynb", "--select", "DEV202", "--unsafe-fixes", "--fix").code == 0
    assert json.loads(Path("n.ipynb").read_text())["cells"][1]["source"].endswith("\nx.to(device)\n")


def test_allows_tells_cells_apart() -> None:
    from devlint.model import Safety, TextEdit, TextFix

    found = read_notebook(notebook("a = 1", "%x\nb = 2").encode(), "n.ipynb")
    text = found.source.text
    second = text.index("b = 2")

    def allowed(*edits: TextEdit) -> bool:
        return found.allows(text, TextFix("t", Safety.SAFE, edits))

    assert allowed(TextEdit(0, 1, "c"))
    assert allowed(TextEdit(second, second + 1, "c"), TextEdit(second + 4, second + 5, "3"))
    assert not allowed(TextEdit(0, 1, "c"), TextEdit(second, second + 1, "c"))
    assert not allowed(TextEdit(0, second, ""))
    assert not allowed(TextEdit(second - 3, second, ""))  # takes the magic with it


def test_diff_shows_each_cell(cli: Cli) -> None:
    raw = write("import torch", MOVE, "y = 1", "z" + MOVE[1:])
    done = cli("n.ipynb", "--diff")
    assert done.code == 1
    assert done.out.replace("\t\n", "\n") == (
        "--- a/n.ipynb:cell 3\n"
        "+++ b/n.ipynb:cell 3\n"
        "@@ -1 +1 @@\n"
        '-x = torch.zeros(3).to("cuda")\n'
        '+x = torch.zeros(3, device="cuda")\n'
        "--- a/n.ipynb:cell 5\n"
        "+++ b/n.ipynb:cell 5\n"
        "@@ -1 +1 @@\n"
        '-z = torch.zeros(3).to("cuda")\n'
        '+z = torch.zeros(3, device="cuda")\n'
    )
    assert Path("n.ipynb").read_bytes() == raw


def test_standard_input_with_the_name_of_a_notebook(cli: Cli) -> None:
    raw = notebook("import torch", MOVE).encode()
    assert problems(cli("-", "--stdin-filename", "n.ipynb", stdin=raw)) == ["3:1:5 DEV501"]
    fixed = cli("-", "--stdin-filename", "n.ipynb", "--fix", stdin=raw).out
    assert fixed.encode() == raw.replace(b").to(", b", device=")


def test_a_comment_in_a_cell_silences(cli: Cli) -> None:
    write("import torch", MOVE.rstrip() + "  # devlint: ignore[DEV501]\n", MOVE)
    assert problems(cli("n.ipynb")) == ["4:1:5 DEV501"]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"torch"', "is not valid JSON"),
        (b'["torch"]', "is not a notebook"),
        (b'{"torch": 1}', "is not a notebook: it has no cells"),
        (b'{"worksheets": ["torch"]}', "is a notebook of format 3 or older"),
        (b'{"cells": [{"cell_type": "code", "source": 1}], "torch": 1}', "the source of cell 1 is not text"),
        (b'\xff"torch"', "is not valid UTF-8"),
        (b'{"cells": [{"cell_type": "code", "source": "torch \\ud800"}]}', "cannot be parsed"),
    ],
)
def test_what_is_no_notebook_is_a_problem(cli: Cli, raw: bytes, message: str) -> None:
    Path("n.ipynb").write_bytes(raw)
    done = cli("n.ipynb")
    assert done.code == 1
    assert "DEV900" in done.out
    assert message in done.out


@pytest.mark.parametrize("raw", [b"", b'{"cells": [], "metadata": {"torch": 1}}', b'{"cells": [{"torch": 1}]}'])
def test_an_empty_notebook_is_clean(cli: Cli, raw: bytes) -> None:
    Path("n.ipynb").write_bytes(raw)
    assert cli("n.ipynb").code == 0


texts = st.text(alphabet=st.sampled_from(list("ab%!?#\"'\\\n\t ()[]=:é\u2028😀")), max_size=40)
sources = st.one_of(texts, st.lists(texts, max_size=4))
styles = st.sampled_from([{}, {"indent": None}, {"ensure_ascii": True}, {"separators": (" ,", " : ")}])


@given(st.lists(sources, min_size=1, max_size=4), styles)
def test_an_unchanged_notebook_keeps_every_byte(given_sources: list[Source], style: dict[str, Any]) -> None:
    raw = notebook(*given_sources, **style).encode()
    found = read_notebook(raw, "n.ipynb")
    assert found.write(found.source.text) == raw
    assert [cell.text for cell in found.cells] == [s if isinstance(s, str) else "".join(s) for s in given_sources]


@given(st.lists(sources, min_size=1, max_size=4), styles, st.integers(0, 3))
def test_a_changed_cell_is_the_only_thing_that_changes(
    given_sources: list[Source], style: dict[str, Any], index: int
) -> None:
    index %= len(given_sources)
    found = read_notebook(notebook(*given_sources, **style).encode(), "n.ipynb")
    parts = [cell.header + cell.masked for cell in found.cells]
    header = found.cells[index].header
    parts[index] = header + "# new\n" + found.cells[index].masked
    data = json.loads(found.write(found.separator.join(parts) + "\n"))
    expected = json.loads(notebook(*given_sources, **style))
    changed = data["cells"][index + 1]["source"]
    assert (changed if isinstance(changed, str) else "".join(changed)) == "# new\n" + found.cells[index].text
    assert isinstance(changed, str) is isinstance(given_sources[index], str)
    expected["cells"][index + 1]["source"] = changed
    assert data == expected


@given(texts)
def test_masking_keeps_places_and_can_be_undone(cell: str) -> None:
    masked, _ = ipython.mask(cell, "ᚠ")
    assert len(masked) == len(cell)
    assert [c for c in masked if c in "\r\n"] == [c for c in cell if c in "\r\n"]
    assert ipython.unmask(masked, ipython.hidden(cell, masked, "ᚠ"), "ᚠ") == cell


def test_a_lost_magic_is_noticed() -> None:
    found = read_notebook(notebook("%load x\ny = 1").encode(), "n.ipynb")
    with pytest.raises(SourceError, match="a magic was removed"):
        found.write("y = 1\n")


TIMED = """import torch
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
m = torch.nn.Linear(8, 8).to(device)
x = torch.randn(4, 8, device=device)
"""


@pytest.mark.parametrize("row", ["%timeit m(x)", "%timeit -n 10 -r3 m(x)", "%time y = m(x)"])
def test_what_a_timing_magic_runs_is_device_work_that_nobody_waits_for(cli: Cli, row: str) -> None:
    write(TIMED, row + "\n")
    done = cli("--select", "DEV401", "n.ipynb")
    column = row.index("m(x)") + 1
    assert problems(done) == [f"3:1:{column} DEV401"]
    assert "`%time" in done.out


@pytest.mark.parametrize(
    "row", ["%timeit m(x).sum().item()", "%timeit m(x); torch.cuda.synchronize()", "%timeit 1 + 1", "%timeit?", "%time"]
)
def test_timing_magic_that_waits_or_runs_no_device_work(cli: Cli, row: str) -> None:
    write(TIMED, row + "\n")
    assert problems(cli("--select", "DEV401", "n.ipynb")) == []


def test_magic_around_what_is_fixed_stays(cli: Cli) -> None:
    write("import torch", f"%timeit -n 3 {MOVE}\n%matplotlib inline\n")
    cli("--fix", "--unsafe-fixes", "n.ipynb")
    text = Path("n.ipynb").read_text()
    assert "%timeit -n 3 " in text
    assert "%matplotlib inline" in text
    assert MOVE not in text


@pytest.mark.parametrize(
    ("installs", "found"),
    [
        ("", 1),
        ("!pip install pytorch-ignite transformers", 0),
        ("import os\n%pip install -q --upgrade torch", 0),
        ("!python -m pip install -U torch", 0),
        ("!pip install -e .", 1),
        ("!pip install -q -r requirements.txt", 1),
        ("!pip install torch\n!pip install ..", 1),
        ("# !pip install torch", 1),
    ],
)
def test_a_notebook_that_installs_what_it_needs_takes_the_newest_torch(cli: Cli, installs: str, found: int) -> None:
    Path("requirements.txt").write_text("torch>=2.2\n")
    write(installs, "import torch\nscaler = torch.amp.GradScaler()\n")
    assert cli("n.ipynb", "--select", "DEV304").out.count("n.ipynb:cell") == found


# Cells that end


@pytest.mark.parametrize(
    "cell",
    [
        "raise ValueError",
        "sys.exit()",
        "import sys; sys.exit(1)",
        "exit()",
        "os._exit(0)",
        "if x:\n    raise KeyError\nelse:\n    exit()",
        "  if x:\n    raise KeyError\n  raise ValueError",
        "while True:\n    pass",
        "match x:\n    case _:\n        raise ValueError",
        "try:\n    raise ValueError\nfinally:\n    pass",
    ],
)
def test_a_cell_that_ends_the_run_hides_no_later_cell(cli: Cli, cell: str) -> None:
    write("import torch, sys, os\n", cell, MOVE)
    assert [line for line in cli("n.ipynb").out.splitlines() if "cell 4:" in line]


@pytest.mark.parametrize("cell", ["  raise ValueError\n", "raise ValueError\n"])
def test_an_indented_cell_after_one_that_ends_the_run_is_checked(cli: Cli, cell: str) -> None:
    indented = "".join(f"  {line}\n" for line in MOVE.splitlines())
    write("import torch\n", cell, indented)
    assert [line for line in cli("n.ipynb").out.splitlines() if "cell 4:" in line]


def test_what_follows_in_the_cell_that_ends_the_run_is_not_reached(cli: Cli) -> None:
    write("import torch\nraise ValueError\n" + MOVE)
    assert cli("n.ipynb").code == 0


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("return", "cell 3:1:1: DEV900 'return' outside function"),
        ("%ls\nreturn 5", "cell 3:2:1: DEV900 'return' outside function"),
        ("if x:\n    return", "cell 3:2:5: DEV900 'return' outside function"),
        ("class A:\n    return 1", "cell 3:2:5: DEV900 'return' outside function"),
        ("yield 1", "cell 3:1:1: DEV900 'yield' outside function"),
        ("break", "cell 3:1:1: DEV900 'break' outside loop"),
        ("continue", "cell 3:1:1: DEV900 'continue' not properly in loop"),
        ("nonlocal x", "cell 3:1:1: DEV900 nonlocal declaration not allowed at module level"),
    ],
)
def test_a_cell_that_does_not_compile_is_a_problem_and_hides_no_later_cell(cli: Cli, cell: str, message: str) -> None:
    write("import torch\n", cell, MOVE)
    lines = cli("n.ipynb").out.splitlines()
    assert lines[0] == f"n.ipynb:{message}"
    assert "cell 4:" in lines[1]


@pytest.mark.parametrize(
    "cell", ["await f()", "[await z for z in y]", "async for i in x:\n    pass", "async with x as y:\n    pass"]
)
def test_ipython_awaits_at_the_top_of_a_cell(cli: Cli, cell: str) -> None:
    write("import torch\n", cell, MOVE)
    assert "DEV900" not in cli("n.ipynb").out


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"cells": [', "1:12: DEV900 is not valid JSON: Expecting value"),
        (b'{"cells": [{"cell_type": "code", "source": "x = 1"}', "DEV900 is not valid JSON"),
        (b"plain text", "1:1: DEV900 is not valid JSON: Expecting value"),
        (b"[]", "1:1: DEV900 is not a notebook"),
        (b"[" * 100_000, "1:1: DEV900 is nested too deeply to be read"),
        (b'{"cells": ' + b"9" * 5_000 + b"}", "1:1: DEV900 is not valid JSON"),
        (b'{"cells": "\xff"}', "1:12: DEV900 is not valid UTF-8"),
        (b'{"cells": [{"cell_type": "code", "source": "x = ("}]}', "cell 1:1:5: DEV900 '(' was never closed"),
    ],
)
def test_a_broken_notebook_without_a_word_of_torch_is_a_problem(cli: Cli, raw: bytes, message: str) -> None:
    Path("n.ipynb").write_bytes(raw)
    result = cli("n.ipynb")
    assert result.code == 1
    assert message in result.out
    assert cli("n.ipynb", "--ignore", "DEV900").code == 0


@pytest.mark.parametrize(
    "text",
    [
        '{"cells": [], "cells": [CELL]}',
        '{"cells": [{"cell_type": "markdown", "source": ""}], "cells": [CELL]}',
        '{"cells": [{"source": "import os", "cell_type": "code", "source": SOURCE}]}',
        '{"cells": [{"cell_type": "code", "source": ESCAPED}]}',
    ],
)
def test_another_spelling_of_json_hides_nothing(cli: Cli, text: str) -> None:
    source = json.dumps("import torch\n" + MOVE)
    cell = f'{{"cell_type": "code", "source": {source}}}'
    escaped = source.replace("t", "\\u0074").replace("o", "\\u006f")
    Path("n.ipynb").write_text(text.replace("CELL", cell).replace("SOURCE", source).replace("ESCAPED", escaped))
    assert "DEV501" in cli("n.ipynb").out

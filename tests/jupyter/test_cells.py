"""The cells of a session, and what is said of them, without a kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from devlint.errors import DevlintError
from devlint.jupyter.cells import Answer, Session, checked, explained
from devlint.jupyter.extension import _numbers

ERROR = "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"


def session(*cells: str) -> Session:
    made = Session()
    for number, text in enumerate(cells, start=1):
        made.ran(number, text, None)
    return made


def test_a_cell_counts_by_the_number_of_its_execution() -> None:
    made = session("a = 1")
    made.ran(7, "b = 2", None)
    assert [(cell.number, cell.text) for cell in made.notebook().cells] == [(1, "a = 1"), (7, "b = 2")]


def test_the_same_text_again_takes_its_place() -> None:
    made = session("a = 1", "b = 2")
    made.ran(3, "a = 1", None)
    assert made.cells == {2: "b = 2", 3: "a = 1"}


def test_a_changed_cell_takes_its_place_by_its_identity() -> None:
    made = Session()
    made.ran(1, "a = 1", "x")
    made.ran(2, "a = 2", "x")
    assert made.cells == {2: "a = 2"}


def test_the_last_cells_alone_are_kept() -> None:
    made = session(*(f"a = {number}" for number in range(400)))
    assert (len(made.cells), min(made.cells)) == (300, 101)


def test_magics_are_no_errors(tmp_path: Path) -> None:
    assert (
        checked(session("%matplotlib inline\n!pip list", "import torch"), None, tmp_path).text
        == "devlint finds nothing."
    )


def test_an_error_that_is_none_of_a_device() -> None:
    assert explained("Traceback (most recent call last):\nKeyError: 0\n", session("a = 1"), Path()) is None


@pytest.mark.parametrize(
    "head", ["Cell In[2], line 2", "<ipython-input-2-0abc> in <module>", "Input In [2], in <cell line: 2>()"]
)
def test_the_cell_of_each_form_of_traceback(head: str, tmp_path: Path) -> None:
    made = session("import torch\nx = torch.ones(3, device='cuda')", "h = torch.zeros(3)\ny = x + h")
    text = f"{head}\n      1 h = torch.zeros(3)\n----> 2 y = x + h\n\n{ERROR}\n"
    answer = explained(text, made, tmp_path)
    assert answer is not None
    assert "where:  notebook: line 2 of cell 2 in " in answer.text
    assert "+h = torch.zeros(3, device=" in answer.diff


def test_an_answer_without_a_diff() -> None:
    assert Answer("said").bundle() == {"text/plain": "said", "text/markdown": "```text\nsaid\n```"}


@pytest.mark.parametrize(
    ("line", "numbers"), [("", None), ("3", {3}), ("1 3-5", {1, 3, 4, 5}), ("1,2", {1, 2}), ("5-3", None)]
)
def test_numbers_of_cells(line: str, numbers: set[int] | None) -> None:
    assert _numbers(line) == numbers


def test_words_that_are_no_numbers() -> None:
    with pytest.raises(DevlintError, match="not `now`"):
        _numbers("now")

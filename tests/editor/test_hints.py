"""Hints of places: what the editor shows behind the names that a text binds, from the facts of `devlint reveal`."""

from __future__ import annotations

from pathlib import Path

import pytest

from devlint.editor.places import hints
from devlint.editor.session import Document, open_notebook, unchecked_document


def document(text: str, tmp_path: Path) -> Document:
    found = unchecked_document(str(tmp_path / "train.py"), text)
    assert found is not None
    return found


def shown(text: str, tmp_path: Path) -> str:
    """The text as an editor shows it, with the hints in it."""
    source = document(text, tmp_path)
    rows = text.split("\n")
    for hint in reversed(hints(source, 1, len(rows))):
        row = rows[hint.row - 1]
        rows[hint.row - 1] = f"{row[: hint.column - 1]}«: {hint.place}»{row[hint.column - 1 :]}"
    return "\n".join(rows)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x = torch.ones(3, device='cuda:0')", "x«: cuda:0» = torch.ones(3, device='cuda:0')"),
        ("x = torch.ones(3).cuda()", "x«: cuda» = torch.ones(3).cuda()"),
        ("x = torch.ones(3)\nh = x.relu()", "x«: cpu» = torch.ones(3)\nh«: cpu» = x.relu()"),
        ("m = torch.nn.Linear(2, 2)", "m«: cpu» = torch.nn.Linear(2, 2)"),
        ("x, y = torch.ones(3), torch.ones(3).cuda()", "x«: cpu», y«: cuda» = torch.ones(3), torch.ones(3).cuda()"),
        ("for x in [torch.ones(3)]:\n    pass", "for x«: cpu» in [torch.ones(3)]:\n    pass"),
        ("if (x := torch.ones(3)) is not None:\n    pass", "if (x«: cpu» := torch.ones(3)) is not None:\n    pass"),
        ("x: torch.Tensor = torch.ones(3)", "x«: cpu»: torch.Tensor = torch.ones(3)"),
        ("x = (\n    torch.ones(3)\n)", "x«: cpu» = (\n    torch.ones(3)\n)"),
        ("import numpy as np\nx = torch.from_numpy(np.ones(3))", None),
    ],
    ids=["a card", "the current card", "what is computed", "a module", "a pair", "a loop", "a walrus", "an annotated name",
         "several rows", "from numpy"],
)  # fmt: skip
def test_a_bound_name_shows_its_place(text: str, wanted: str | None, tmp_path: Path) -> None:
    wanted = wanted or text.replace("x =", "x«: cpu» =")
    assert shown(f"import torch\n{text}", tmp_path) == f"import torch\n{wanted}"


def test_an_attribute_shows_its_place(tmp_path: Path) -> None:
    text = "import torch\nclass A:\n    def __init__(self):\n        self.w = torch.ones(3).cuda()\n"
    assert "self.w«: cuda» = " in shown(text, tmp_path)


def test_the_device_of_a_variable_is_named(tmp_path: Path) -> None:
    text = "import torch\ndevice = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\nx = torch.ones(3).to(device)\n"
    assert "\nx«: device» = " in shown(text, tmp_path)


def test_either_place_by_the_path_taken(tmp_path: Path) -> None:
    text = "import torch\ndef f(flag: bool):\n    x = torch.ones(3) if flag else torch.ones(3, device='cuda:1')\n"
    assert "x«: cpu or cuda:1» = " in shown(text, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "device = torch.device('cuda')",  # it names a place and is not there
        "n = 3",
        "x = load()",
        "def f(x: torch.Tensor):\n    y = x * 2",  # where arguments are is an assumption
        "print(torch.ones(3))",  # nothing is bound
    ],
    ids=["a device", "a number", "an unknown call", "an argument", "no name"],
)
def test_what_is_nowhere_or_not_known_shows_nothing(text: str, tmp_path: Path) -> None:
    assert shown(f"import torch\n{text}", tmp_path) == f"import torch\n{text}"


def test_only_the_rows_that_are_asked_for(tmp_path: Path) -> None:
    text = "import torch\na = torch.ones(3)\nb = torch.ones(3)\nc = torch.ones(3)\n"
    assert [hint.row for hint in hints(document(text, tmp_path), 3, 3)] == [3]


def test_a_hint_says_why(tmp_path: Path) -> None:
    (hint,) = hints(document("import torch\nx = torch.ones(3)\n", tmp_path), 1, 3)
    assert hint.why.startswith("`x`: tensor on the CPU\n- ")
    assert "created on the CPU here" in hint.why


def test_columns_count_code_points(tmp_path: Path) -> None:
    assert "s = '🔥'; x«: cpu» = " in shown("import torch\ns = '🔥'; x = torch.ones(3)\n", tmp_path)


def test_a_cell_knows_what_the_cells_before_it_bound(tmp_path: Path) -> None:
    cells = ["import torch\nm = torch.ones(3).cuda()", "h = m.relu()\n"]
    _, second = open_notebook(str(tmp_path / "a.ipynb"), cells)
    assert [(hint.row, hint.column, hint.place) for hint in hints(second, 1, 2)] == [(1, 2, "cuda")]


def test_a_text_that_cannot_be_parsed_has_none(tmp_path: Path) -> None:
    assert hints(document("import torch\nx = (\n", tmp_path), 1, 3) == []

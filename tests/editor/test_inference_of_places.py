"""Hovers and hints ask the inference that the settings choose."""

from __future__ import annotations

from pathlib import Path

import pytest

from devlint.editor.places import hints
from devlint.editor.session import Document, hover, unchecked_document

TEXT = "import torch\n\n\nclass Holder:\n    def __init__(self):\n        self.w = torch.ones(3)\n\n\nx = Holder().w.cuda()\n"


def document(text: str, folder: Path, inference: str) -> Document:
    (folder / "devlint.toml").write_text(f'inference = "{inference}"\n', encoding="utf-8")
    found = unchecked_document(str(folder / "train.py"), text)
    assert found is not None
    return found


def test_new_inference_answers_a_hover_where_the_settings_choose_it(tmp_path: Path) -> None:
    text = hover(document(TEXT, tmp_path, "new"), 9, 1)
    assert text is not None and text.startswith("`x`: tensor on `cuda`")
    assert "line 9" in text


def test_old_inference_is_not_asked_where_the_new_one_is_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("the old inference was asked")

    monkeypatch.setattr("devlint.facts.reveal.reveal", fail)
    assert hover(document(TEXT, tmp_path, "new"), 9, 1) is not None


@pytest.mark.parametrize("inference", ["old", "new"])
def test_bound_name_shows_its_place(inference: str, tmp_path: Path) -> None:
    found = hints(document("import torch\nx = torch.ones(3).cuda()\ny = x + x\n", tmp_path, inference), 1, 4)
    assert [(each.row, each.column, each.place) for each in found] == [(2, 2, "cuda"), (3, 2, "cuda")]


def test_place_of_an_argument_is_no_hint_of_the_new_inference(tmp_path: Path) -> None:
    text = "import torch\n\n\ndef run(x: torch.Tensor):\n    y = x + 1\n    return y\n"
    assert hints(document(text, tmp_path, "new"), 1, 6) == []

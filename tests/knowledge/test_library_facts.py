"""Rows about a library that are read from its own source."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from devlint.dev.library_facts import Facts, facts_of, rows

PLACED = Facts("tensor", "first_tensor", (), False, False)


def _facts(folder: Path, **files: str) -> dict[str, Facts]:
    root = folder / "made_up"
    for name, text in {"__init__": "", **files}.items():
        path = root / (name.replace("__in__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("import torch\nfrom torch import Tensor\n\n" + textwrap.dedent(text), encoding="utf-8")
    return facts_of("made_up", str(root))


@pytest.mark.parametrize(
    "body",
    [
        "def f(x: Tensor):\n    return x * 2\n",
        "def f(x: Tensor):\n    y = torch.zeros_like(x)\n    y[0] = 1\n    return y\n",
        "def f(x: Tensor, n: int):\n    return torch.ones(n, device=x.device) if n > 2 else x.sum()\n",
    ],
)
def test_result_that_is_where_the_first_tensor_is(body: str, tmp_path: Path) -> None:
    assert _facts(tmp_path, ops=body) == {"made_up.ops.f": PLACED}


@pytest.mark.parametrize(
    "body",
    [
        "def f(x: Tensor, y: Tensor):\n    return y * 2\n",
        "def f(x: Tensor, n: int):\n    return x if n > 2 else torch.ones(n)\n",
        "def f(x: Tensor, n: int):\n    if n > 2:\n        return x\n",
        "def f(x: Tensor, device):\n    return x.to(device)\n",
        "def f(x: Tensor):\n    return unknown(x)\n",
        "def _f(x: Tensor):\n    return x\n",
        "@changed\ndef f(x: Tensor):\n    return x\n",
    ],
)
def test_what_does_not_hold_on_every_path_has_no_row(body: str, tmp_path: Path) -> None:
    assert _facts(tmp_path, ops=body) == {}


def test_operands_that_must_be_on_one_device(tmp_path: Path) -> None:
    found = _facts(tmp_path, ops="def f(x: Tensor, y: Tensor):\n    return x @ y\n")
    assert found["made_up.ops.f"] == Facts("tensor", "first_tensor", ("x*", "y*"), True, False)


def test_operands_that_may_have_no_dimension_may_be_apart(tmp_path: Path) -> None:
    found = _facts(tmp_path, ops="def f(x: Tensor, y: Tensor):\n    return x.exp() * y.mean()\n")
    assert not found.get("made_up.ops.f", PLACED).exact


def test_function_that_reads_on_the_host(tmp_path: Path) -> None:
    found = _facts(tmp_path, ops="def f(x: Tensor):\n    return x.numpy() * 2\n")
    assert found["made_up.ops.f"].host


def test_function_that_a_package_imports_has_both_names(tmp_path: Path) -> None:
    found = _facts(tmp_path, ops__in____init__="from .f import f\n", ops__in__f="def f(x: Tensor):\n    return x\n")
    assert found == {"made_up.ops.f": PLACED, "made_up.ops.f.f": PLACED}


def test_rows_are_toml_that_names_the_version() -> None:
    text = rows({"made_up.f": PLACED, "made_up.ops.g": PLACED}, "made_up", "1.2")
    assert 'source = "made_up 1.2: its source, read by the inference"' in text
    assert "f ops.g" in text


def test_what_a_person_described_is_left_out() -> None:
    assert "make_grid" not in rows({"torchvision.utils.make_grid": PLACED}, "torchvision", "1")


def test_package_that_is_not_installed_is_an_error() -> None:
    with pytest.raises(ImportError, match="no package made_up_nowhere"):
        facts_of("made_up_nowhere")

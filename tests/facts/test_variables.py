"""How many of the variables that hold tensors are on a known device, for `--statistics`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from devlint.model import FileResult

Checked = Callable[..., FileResult]


@pytest.mark.parametrize(
    ("body", "counted"),
    [
        ("a = torch.zeros(3)", (1, 1)),
        ("a = torch.zeros(3, device=device)", (1, 1)),
        ("a = torch.load(path)\n        b = a['x'].relu()\n        c = torch.relu(b)", (1, 0)),
        ("a = torch.zeros(3)\n        a = 1", (0, 0)),
        ("a, b = torch.zeros(3), 'no tensor'", (1, 1)),
    ],
)
def test_variables_are_counted_where_they_are_last_seen(checked: Checked, body: str, counted: tuple[int, int]) -> None:
    text = f"""
    import torch
    def f(path, device):
        {body}
    """
    found = checked({"tools.py": text}).statistics
    assert (found.tensors, found.placed) == counted

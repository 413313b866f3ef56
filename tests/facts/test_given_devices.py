"""Devices that functions are given, asked of all their calls in a project."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from devlint.model import FileResult

Checked = Callable[..., FileResult]

LIB = """
    import torch
    def total(values, device="cpu"):
        weights = torch.ones(3)
        return (weights * torch.as_tensor(values).to(device)).sum()
"""


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("total([1.0])", []),
        ("total([1.0], 'cpu')", []),
        ("device = torch.device('cpu')\ntotal([1.0], device=device)", []),
        ("def run(device):\n    total([1.0], device)\nrun('cpu')", []),
        ("total([1.0], 'cuda')", ["DEV102"]),
        ("total([1.0])\ntotal([1.0], 'cuda')", ["DEV102"]),
        ("device = 'cuda' if torch.cuda.is_available() else 'cpu'\ntotal([1.0], device)", ["DEV102"]),
        ("device = 'cpu'\nif torch.cuda.is_available():\n    device = 'cuda'\ntotal([1.0], device)", ["DEV102"]),
        ("def run(device):\n    total([1.0], device)\nrun('cpu')\nrun('cuda')", ["DEV102"]),
        ("def run(device='cpu'):\n    total([1.0], device)", ["DEV102"]),
        ("total(*options)", ["DEV102"]),
        ("list(map(total, rows))", ["DEV102"]),
        ("pass", ["DEV102"]),
    ],
)
def test_device_that_every_call_gives_as_the_cpu_is_no_accelerator(
    checked: Checked, script: str, expected: list[str]
) -> None:
    files = {"lib.py": LIB, "run.py": f"import torch\nfrom lib import total\n{script}\n"}
    assert [each.code for each in checked(files, "lib.py").diagnostics] == expected


def test_method_is_asked_by_the_name_of_its_calls(checked: Checked) -> None:
    lib = """
        import torch
        class Scores:
            def total(self, values, device="cpu"):
                weights = torch.ones(3)
                return (weights * torch.as_tensor(values).to(device)).sum()
    """
    quiet = {"lib.py": lib, "run.py": "from lib import Scores\nScores().total([1.0])\n"}
    loud = {"lib.py": lib, "run.py": "from lib import Scores\nScores().total([1.0], 'cuda')\n"}
    assert [each.code for each in checked(quiet, "lib.py").diagnostics] == []
    assert [each.code for each in checked(loud, "lib.py").diagnostics] == ["DEV102"]

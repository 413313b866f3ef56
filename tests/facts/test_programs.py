"""Scripts that place nothing stay on the host."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from devlint.model import FileResult

Checked = Callable[..., FileResult]

SCRIPT = """
    import torch
    from torch import nn
    from toolbox import load, watch
    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)
        def forward(self, x):
            zeros = torch.zeros(1, 4, device=x.device)
            state = torch.zeros(1, 4)
            return torch.cat([self.layer(x) + zeros, state])
    def main():
        cell = Cell(){more}
        watch(cell)
        for x in load():
            cell(x).sum().backward()
    if __name__ == "__main__":
        main()
"""


def codes(result: FileResult) -> list[str]:
    return [each.code for each in result.diagnostics]


@pytest.mark.parametrize(
    ("more", "other", "expected"),
    [
        ("", "", []),
        ("", "from script import Cell\n", ["DEV102"]),
        (".cuda()", "", ["DEV102"]),
        (".to('xpu')", "", ["DEV102"]),
        ("; device = torch.device('mps')", "", ["DEV102"]),
    ],
    ids=["stays", "imported", "moved", "moved by its name", "chosen"],
)
def test_script_that_puts_new_tensors_beside_others_alone(
    checked: Checked, more: str, other: str, expected: list[str]
) -> None:
    assert codes(checked({"script.py": SCRIPT.format(more=more), "other.py": other}, "script.py")) == expected


STEPS = """
    import torch
    import matplotlib.pyplot as plt
    from toolbox import Sketch, grid{seed}
    matrix = torch.rand(8, 8)
    torch.linalg.eigvalsh(matrix)
    sketch = Sketch(matrix)
    low, high = sketch.low(), sketch.high()
    print(low, high)
    print("density")
    plt.figure()
    plt.title("density")
    plt.xlabel("eigenvalue")
    points = grid(sketch)
    def shifted(points: torch.Tensor):
        return points + torch.zeros(3)
    plt.plot(shifted(points))
    plt.legend()
    plt.savefig("density.png")
"""


@pytest.mark.parametrize(
    ("more", "expected"),
    [("", []), ("; torch.cuda.manual_seed_all(0)", []), ("; matrix = matrix.to('xpu')", ["DEV102"])],
    ids=["names nothing", "seeds", "chooses"],
)
def test_script_that_is_a_sequence_of_steps(checked: Checked, more: str, expected: list[str]) -> None:
    assert codes(checked({"script.py": STEPS.format(seed=more)}, "script.py")) == expected

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
    plt.plot(points.tolist(), label=shifted.__name__)
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


SHOWN = """
    import torch
    from toolbox import Sampler, fit, keep
    class Own(Sampler):
        def draw(self, network: torch.nn.Module, state):
            return network(torch.tensor(state).unsqueeze(0))
    def padded(points: torch.Tensor):
        return torch.cat([points, torch.zeros(3)])
    fit(Own(){more})
"""


@pytest.mark.parametrize(
    ("path", "more", "other", "expected"),
    [
        ("examples/run.py", ", torch.device('cuda')", "", []),
        ("docs/demo_run.py", ", torch.device('cuda')", "", []),
        ("pack/run.py", ", torch.device('cuda')", "", ["DEV102", "DEV102"]),
        ("examples/run.py", ", torch.device('cuda')", "from .run import Own\n", ["DEV102", "DEV102"]),
        ("examples/run.py", ", torch.device('cuda')", "import examples.run\n", ["DEV102", "DEV102"]),
        ("examples/run.py", ", padded(torch.ones(3).to('cuda'))", "", ["DEV102"]),
        ("examples/run.py", "); keep.set_padding(padded", "", ["DEV102"]),
    ],
    ids=["example", "document", "library", "imported", "imported as a whole", "called with", "handed on"],
)
def test_argument_in_an_example_is_where_its_calls_say(
    checked: Checked, path: str, more: str, other: str, expected: list[str]
) -> None:
    files = {"pyproject.toml": "", path: SHOWN.format(more=more), "examples/other.py": other}
    assert codes(checked(files, path)) == expected


TRAINED = """
    import torch
    from {library} import Trainer
    from toolbox import labelled, loader
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)
        def forward(self, x):
            return self.layer(x)
    model = Net()
    def velocity(x):
        with torch.no_grad():
            change = model(labelled(x)).squeeze(0)
        return change.detach() + torch.zeros(3)
    trainer = Trainer({told})
    trainer.fit(model, loader)
    print(velocity([1.0]))
"""


@pytest.mark.parametrize(
    ("library", "told", "expected"),
    [
        ("toolbox", "accelerator='cpu'", []),
        ("toolbox", "accelerator='gpu'", ["DEV102"]),
        ("lightning.pytorch", "accelerator='gpu'", []),
        ("pytorch_lightning", "", []),
    ],
)
def test_model_of_an_example_is_where_its_trainer_leaves_it(
    checked: Checked, library: str, told: str, expected: list[str]
) -> None:
    files = {"pyproject.toml": "", "examples/run.py": TRAINED.format(library=library, told=told)}
    assert codes(checked(files, "examples/run.py")) == expected


def test_plain_tensor_of_a_module_that_an_example_never_moves_is_no_fault(checked: Checked) -> None:
    text = """
        import torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.tensor([[1.0, 2.0]])
            def forward(self, x):
                return x.matmul(self.weight.t())
        print(Net()(torch.ones(1, 2)))
    """
    files = {"pyproject.toml": "", "examples/toy.py": text, "pack/toy.py": text}
    assert codes(checked(files, "examples/toy.py")) == []
    assert codes(checked(files, "pack/toy.py")) == ["DEV106"]

"""What people reported, as small programs: the row that comes first, its remedy, and where the program stops next."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from devlint.explain.causes import Explanation, explain
from tests.explain.test_causes import MEETING, explained, first, places, write

INPUT = "Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same"
STEP = "expected device cpu but got device cuda:0"
PINNED = "cannot pin 'torch.cuda.LongTensor' only dense CPU tensors can be pinned"
FORKED = "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use 'spawn'"
NUMPY = "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
NO_CUDA = "Torch not compiled with CUDA enabled"
ELSEWHERE = "module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found one of them on device: cuda:1"  # noqa: E501


def next_row(explanation: Explanation) -> tuple[str, int] | None:
    then = explanation.then
    return (then.finding.code, then.row) if then is not None else None


# -- a module that comes from what cannot be read -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "made", ['models.__dict__["hg"](2)', "somewhere.hg(2)", "getattr(models, arch)()", "REGISTRY[arch]()"]
)
def test_a_module_that_a_function_loads_and_nothing_moves(tmp_path: Path, made: str) -> None:
    run = f"""
        import torch
        import models, somewhere
        from models import REGISTRY

        def load_model(path, arch):
            model = {made}
            model.load_state_dict(torch.load(path, map_location="cpu"))
            model.eval()
            return model

        def inference(model, image, device):
            x = torch.from_numpy(image).float().to(device)
            return model(x)  # frame 2

        def main(args):
            model = load_model(args.path, args.arch)  # cause
            print(inference(model, args.image, args.device))  # frame 1
    """
    cause = first(tmp_path, INPUT, run=run)
    assert cause.suspect.place.text == "nothing moves the module `model`"


def test_a_module_that_the_function_moves_is_no_suspect(tmp_path: Path) -> None:
    run = """
        import torch
        import models

        def load_model(path, device):
            model = models.build()
            model.eval()
            model = model.to(device)
            return model

        def main(path, image, device):
            model = load_model(path, device)
            x = torch.from_numpy(image)  # cause
            return model(x)  # frame 1
    """
    first(tmp_path, run=run)


def test_a_module_of_a_library_that_its_own_calls_prove(tmp_path: Path) -> None:
    run = """
        import timm

        def main(batch, device):
            net = timm.create_model("resnet18")  # cause
            net.eval()
            x = batch.to(device)
            return net(x)  # frame 1
    """
    first(tmp_path, INPUT, run=run)


# -- the order of loading and moving --------------------------------------------------------------------------------------


def test_a_state_that_is_loaded_before_the_model_is_moved(tmp_path: Path) -> None:
    run = """
        import torch
        from torch import nn, optim

        def main(device, criterions, checkpoint):
            model = nn.Linear(3, 2)
            optm = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            optm.load_state_dict(checkpoint)
            model.to(device)  # cause
            for c in criterions:
                c.to(device)
            optm.step()  # frame 1
    """
    cause = first(tmp_path, STEP, run=run)
    assert "state of `optm` was loaded (line 7)" in cause.suspect.place.text


def test_a_state_that_a_function_of_another_file_loads(tmp_path: Path) -> None:
    run = """
        import util
        from torch import nn

        def main(device, loader):
            model = nn.Linear(3, 2)
            params = [{"params": model.parameters()}]
            optm = util.create_optimizer(params)
            util.load_epoch("a.pt", model, optm)
            model.to(device)  # cause
            util.step(optm)  # frame 1
    """
    util = """
        import torch

        def create_optimizer(params):
            return torch.optim.SGD(params, lr=0.1, momentum=0.9)

        def load_epoch(path, model, optm):
            optm.load_state_dict(torch.load(path, map_location="cpu")["optim"])

        def step(optm):
            optm.step()  # frame 2
    """
    first(tmp_path, STEP, run=run, util=util)


def test_the_move_of_a_criterion_is_none_of_the_model(tmp_path: Path) -> None:
    run = """
        import torch
        from torch import nn, optim

        def main(device, criterions):
            model = nn.Linear(3, 2)
            optm = optim.SGD(model.parameters(), lr=0.1)
            for c in criterions:
                c.to(device)
            optm.step()  # frame 1
    """
    explanation = explained(tmp_path, STEP, run=run)
    assert ("run", 8) not in places(explanation)


# -- what runs before a batch is pinned -----------------------------------------------------------------------------------


def test_a_collate_function_of_another_file(tmp_path: Path) -> None:
    run = """
        import torch
        from torch.utils.data import DataLoader
        from funcs import *

        loader = DataLoader([torch.rand(3)], collate_fn=collate, pin_memory=True)
        for x in loader:  # frame 1
            print(x)
    """
    funcs = """
        import torch

        def collate(samples):
            x = torch.stack(samples)
            return x.cuda()
    """
    explanation = explained(tmp_path, PINNED, run=run, funcs=funcs)
    assert places(explanation)[:2] == [("run", 5), ("funcs", 5)]  # the finding of DEV509, and what it is about


def test_a_data_set_of_the_project(tmp_path: Path) -> None:
    run = """
        from torch.utils.data import DataLoader, Dataset

        class Images(Dataset):
            def __getitem__(self, index):
                return read(index).to("cuda")  # cause

        def main():
            data = Images()
            for x in DataLoader(data, batch_size=2, pin_memory=True):  # frame 1
                print(x)
    """
    first(tmp_path, PINNED, run=run)


# -- wrappers, generators, types ------------------------------------------------------------------------------------------


def test_the_remedy_of_a_module_on_another_card(tmp_path: Path) -> None:
    run = """
        import torch
        from torch import nn

        def main(x):
            device = torch.device("cuda:1")
            model = nn.DataParallel(nn.Linear(3, 2).to(device))  # cause
            return model(x)  # frame 1
    """
    explanation = explained(tmp_path, ELSEWHERE, run=run)
    assert "device_ids=[1, ...]" in explanation.error.remedy
    assert places(explanation) == [("run", 6), ("run", 5)]


@pytest.mark.parametrize(("expected", "found"), [("cuda", "cpu"), ("cpu", "cuda"), ("mps", "cpu")])
def test_a_generator_is_made_where_the_numbers_are_drawn(tmp_path: Path, expected: str, found: str) -> None:
    run = """
        import torch

        g = torch.Generator()
        torch.randperm(3, generator=g)  # frame 1
    """
    error = f"Expected a '{expected}' device type for generator but found '{found}'"
    assert f'torch.Generator(device="{expected}")' in explained(tmp_path, error, run=run).error.remedy


TWICE = "got multiple values for argument"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("torch.cuda.amp.GradScaler('cuda', init_scale=2.0)", f"GradScaler.__init__() {TWICE} 'init_scale'"),
        (
            "torch.cuda.amp.GradScaler(device='cuda')",
            "GradScaler.__init__() got an unexpected keyword argument 'device'",
        ),
        ("torch.cuda.amp.autocast('cuda', enabled=True)", f"autocast.__new__() {TWICE} 'enabled'"),
    ],
)
def test_an_old_class_of_mixed_precision_that_is_given_a_device(tmp_path: Path, line: str, error: str) -> None:
    (path, _), *_ = write(tmp_path, run=f"import torch\n\nscaler = {line}\n")
    explanation = explain(f'  File "{path}", line 3, in <module>\nTypeError: {error}\n', tmp_path)
    assert explanation is not None
    assert "torch.amp." in explanation.error.remedy
    finding = explanation.causes[0].finding
    assert finding is not None and (finding.code, finding.start.row) == ("DEV209", 3)


@pytest.mark.parametrize("owner", ["net", "opt"])
def test_a_place_that_is_given_to_the_wrong_call(tmp_path: Path, owner: str) -> None:
    call = f"{owner}.load_state_dict(torch.load(p), map_location='cpu')"
    text = f"import torch\n\n\ndef main(net, opt, p):\n    {call}\n"
    (path, _), *_ = write(tmp_path, run=text)
    error = "TypeError: Module.load_state_dict() got an unexpected keyword argument 'map_location'"
    explanation = explain(f'  File "{path}", line 5, in main\n{error}\n', tmp_path)
    assert explanation is not None
    assert "torch.load(path, map_location=...)" in explanation.error.remedy
    assert places(explanation)[0] == ("run", 5)


# -- notebooks ------------------------------------------------------------------------------------------------------------


def save_notebook(path: Path, *cells: str, counts: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content: list[dict[str, object]] = [
        {
            "cell_type": "code", "metadata": {}, "outputs": [], "source": cell,
            "execution_count": 2 * number if counts else None,
        }
        for number, cell in enumerate(cells, 1)
    ]  # fmt: skip
    notebook = {"cells": content, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(notebook), encoding="utf-8")


CELLS = ("import torch\n", "mask = torch.ones(3)\n", "x = torch.ones(3, device='cuda')\ny = mask * x\n")


def cell_of(text: str, root: Path) -> str | None:
    """The innermost line of the user, as it is shown."""
    explanation = explain(f"{text}\nRuntimeError: {MEETING}\n", root)
    assert explanation is not None
    if explanation.where is None:
        return None
    file, row = explanation.where
    return file.place(row).removeprefix(f"{root}/")


def test_a_cell_by_its_number_in_a_folder_below(tmp_path: Path) -> None:
    save_notebook(tmp_path / "book" / "chap02.ipynb", *CELLS)
    assert cell_of("Cell In[3], line 2\n----> 2     ...", tmp_path) == "book/chap02.ipynb: line 2 of cell 3"


def test_a_cell_by_the_number_of_its_execution(tmp_path: Path) -> None:
    save_notebook(tmp_path / "a.ipynb", *CELLS, counts=True)
    assert cell_of("Cell In[6], line 2\n----> 2     ...", tmp_path) == "a.ipynb: line 2 of cell 3"


def test_a_number_that_no_cell_has(tmp_path: Path) -> None:
    save_notebook(tmp_path / "a.ipynb", *CELLS, counts=True)
    assert cell_of("Cell In[3], line 2\n----> 2     ...", tmp_path) is None


def test_a_cell_that_two_notebooks_have(tmp_path: Path) -> None:
    save_notebook(tmp_path / "a.ipynb", *CELLS)
    save_notebook(tmp_path / "b.ipynb", *CELLS)
    assert cell_of("Cell In[3], line 2\n----> 2     ...", tmp_path) is None


def test_a_function_of_a_cell_by_its_name(tmp_path: Path) -> None:
    step = "class Model:\n    def step(self, x):\n        m = torch.ones(3)\n        return x * m\n"
    save_notebook(tmp_path / "a.ipynb", "import torch\n", step, "Model().step(torch.ones(3).cuda())\n", counts=True)
    text = "<ipython-input-20-7b2> in <module>\n----> 1 ...\n\n<ipython-input-9-11a> in step(self, x)\n----> 4     ..."
    assert cell_of(text, tmp_path) == "a.ipynb: line 4 of cell 2"


# -- which file is believed -----------------------------------------------------------------------------------------------


def test_one_name_of_a_file_is_not_enough(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "train.py").write_text("import torch\nx = torch.ones(3)\ny = x.cuda() * x\n", encoding="utf-8")
    assert cell_of('  File "/home/me/other/train.py", line 3, in <module>', tmp_path) is None


def test_one_name_and_the_line(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "train.py").write_text("import torch\nx = torch.ones(3)\ny = x.cuda() * x\n", encoding="utf-8")
    text = '  File "/home/me/other/train.py", line 3, in <module>\n    y = x.cuda() * x'
    assert cell_of(text, tmp_path) == "old/train.py:3"


def test_one_name_and_the_function(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    text = "import torch\ndef main(x):\n    return x * torch.ones(3)\n"
    (tmp_path / "old" / "train.py").write_text(text, encoding="utf-8")
    assert cell_of('  File "/home/me/other/train.py", line 3, in main', tmp_path) == "old/train.py:3"


def test_two_names_of_files(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "train.py").write_text("import torch, net\ny = net.f(torch.ones(3))\n", encoding="utf-8")
    (tmp_path / "old" / "net.py").write_text("import torch\nf = lambda x: x * torch.ones(3)\n", encoding="utf-8")
    text = '  File "/w/train.py", line 2, in <module>\n  File "/w/net.py", line 2, in <lambda>'
    assert cell_of(text, tmp_path) == "old/net.py:2"


# -- the module, and not its result ---------------------------------------------------------------------------------------


def test_a_module_whose_result_meets_a_moved_target(tmp_path: Path) -> None:
    run = """
        import torch
        from torch import nn

        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        x = torch.rand(8, 3)
        y = torch.randint(0, 2, (8,))
        model = nn.Linear(3, 2)  # cause
        opt = torch.optim.Adam(model.parameters())
        f = nn.CrossEntropyLoss()
        y = y.to(device)
        for i in range(3):
            out = model(x)
            loss = f(out, y)  # frame 1
    """
    cause = first(tmp_path, run=run)
    assert cause.latest is None
    assert next_row(explained(tmp_path, run=run)) == ("DEV102", 12)


# -- where it stops next --------------------------------------------------------------------------------------------------


def test_the_next_argument_of_the_same_line(tmp_path: Path) -> None:
    run = """
        import torch

        def main():
            a = torch.ones(3, device="cuda")
            b = torch.ones(3, device="cuda")
            return a.numpy(), b.numpy()  # frame 1
    """
    explanation = explained(tmp_path, NUMPY, run=run)
    assert next_row(explanation) == ("DEV109", 6)
    assert explanation.then is not None and "`b`" in explanation.then.finding.message


def test_the_loop_after_a_worker(tmp_path: Path) -> None:
    run = """
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, Dataset

        class Images(Dataset):
            def __len__(self):
                return 8

            def __getitem__(self, index):
                image = torch.rand(3)
                return image.cuda()  # frame 2, cause

        def main():
            net = nn.Linear(3, 2).cuda()
            for image in DataLoader(Images(), batch_size=8, num_workers=2):  # frame 1
                print(net(image))
    """
    then = next_row(explained(tmp_path, FORKED, run=run))
    assert then is not None and then[1] == 16


def test_the_next_move_to_a_card_that_is_missing(tmp_path: Path) -> None:
    run = """
        import torch

        def main():
            a = torch.ones(3).cuda()  # frame 1
            print(a)
            b = torch.ones(3).cuda()
            return a + b
    """
    explanation = explained(tmp_path, NO_CUDA, run=run)
    assert next_row(explanation) == ("DEV202", 6)


def test_nothing_is_next(tmp_path: Path) -> None:
    run = """
        import torch

        def main(device):
            a = torch.ones(3, device=device)
            b = torch.zeros(3)  # cause
            return a + b  # frame 1
    """
    assert explained(tmp_path, run=run).then is None


def test_nothing_is_next_where_a_default_device_is_set(tmp_path: Path) -> None:
    run = """
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        torch.set_default_device("cuda")
        net = nn.Linear(3, 2)
        for (x,) in DataLoader(TensorDataset(torch.rand(8, 3)), shuffle=True):  # frame 1
            print(net(x))
    """
    assert explained(tmp_path, "Expected a 'cuda' device type for generator but found 'cpu'", run=run).then is None


def test_the_text_on_the_disk_stays(tmp_path: Path) -> None:
    text = "import torch\n\n\ndef main():\n    x = torch.ones(3)\n    return x.cuda() * x\n"
    (path, _), *_ = write(tmp_path, run=text)
    explain(f'  File "{path}", line 6, in main\nRuntimeError: {MEETING}\n', tmp_path)
    assert path.read_text(encoding="utf-8") == text


# -- what makes tensors on the CPU -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("taken", ["tokens", "tokens.input_ids", 'tokens["input_ids"]', "tokens.input_ids[0]"])
def test_the_tensors_of_a_tokenizer(tmp_path: Path, taken: str) -> None:
    run = f"""
        def encode(model, tokenizer, texts, device):
            model.to(device)
            tokens = tokenizer(texts, return_tensors="pt")  # cause
            return model({taken})  # frame 1
    """
    first(tmp_path, run=run)


def test_the_tensors_of_a_tokenizer_by_their_names(tmp_path: Path) -> None:
    run = """
        from net import Net

        def encode(tokenizer, texts, device):
            model = Net().to(device)
            tokens = tokenizer(texts, return_tensors="pt")  # cause
            return model(**tokens)  # frame 1
    """
    net = """
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed = nn.Embedding(3, 3)

            def forward(self, input_ids):
                return self.embed(input_ids)  # frame 2
    """
    first(tmp_path, run=run, net=net)


def test_operands_of_which_nothing_is_known(tmp_path: Path) -> None:
    run = """
        def step(args):
            return args.success | args.timeout  # frame 1, cause
    """
    assert ".device" in first(tmp_path, run=run).suspect.place.text

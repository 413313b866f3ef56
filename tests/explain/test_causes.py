"""Where the cause of a device error stands: small programs, the traceback of each, and the row that comes first.

`# frame N` marks the failing line of the Nth frame, `# cause` the line that is to be named first.
"""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

import pytest

from devlint.explain.causes import Cause, Explanation, explain
from devlint.inference.reveal import asked

MEETING = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
TWO_CARDS = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cuda:1!"
NO_CUDA = "Torch not compiled with CUDA enabled"
ORDINAL = "CUDA error: invalid device ordinal"
INDEX = "indices should be either on cpu or on the same device as the indexed tensor (cpu)"
GENERATOR = "Expected a 'cuda' device type for generator but found 'cpu'"
HIDDEN = "Input and hidden tensors are not at the same device, found input tensor at cuda:0 and hidden tensor at cpu"
DESERIALIZE = "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False."
ON_HOST = (
    "module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found one of them on device: cpu"
)


def write(folder: Path, **files: str) -> list[tuple[Path, str]]:
    """Write programs, by their names without `.py`. Each path, and its text."""
    written = []
    for name, text in files.items():
        path = folder / f"{name}.py"
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        written.append((path, path.read_text(encoding="utf-8")))
    return written


def rows_with(text: str, mark: str) -> list[int]:
    return [row for row, line in enumerate(text.splitlines(), 1) if re.search(rf"#.*\b{mark}\b", line)]


def explained(folder: Path, error: str = MEETING, **files: str) -> Explanation:
    """What is said of an error in programs whose frames are marked."""
    written = write(folder, **files)
    text = "Traceback (most recent call last):\n"
    for number in range(1, 9):
        for path, source in written:
            for row in rows_with(source, f"frame {number}"):
                text += f'  File "{path}", line {row}, in f\n    {source.splitlines()[row - 1].strip()}\n'
    explanation = explain(f"{text}RuntimeError: {error}\n", folder)
    assert explanation is not None
    return explanation


def places(explanation: Explanation) -> list[tuple[str, int]]:
    return [(cause.suspect.place.file.path.stem, cause.suspect.place.row) for cause in explanation.causes]


def first(folder: Path, error: str = MEETING, **files: str) -> Cause:
    """The first cause, which stands on the marked line."""
    explanation = explained(folder, error, **files)
    wanted = [(path.stem, row) for path, text in write(folder, **files) for row in rows_with(text, "cause")]
    assert places(explanation)[:1] == wanted
    return explanation.causes[0]


# -- what makes a tensor ---------------------------------------------------------------------------------------------


def test_a_factory_without_device(tmp_path: Path) -> None:
    run = """
        import torch

        def main(device):
            a = torch.ones(3, device=device)
            b = torch.zeros(3)  # cause
            return a + b  # frame 1
    """
    cause = first(tmp_path, run=run)
    assert cause.finding is not None and cause.finding.code == "DEV102"


def test_a_factory_in_a_statement_of_several_lines(tmp_path: Path) -> None:
    run = """
        import torch

        def main(x):
            return torch.cat(  # frame 1
                [
                    x,
                    torch.zeros(3),  # cause
                ]
            )
    """
    first(tmp_path, run=run)


def test_a_factory_through_methods(tmp_path: Path) -> None:
    run = """
        import torch

        def main(x):
            mask = torch.arange(3)  # cause
            mask = mask.unsqueeze(0).expand(3, 3)
            return x * mask  # frame 1
    """
    first(tmp_path, run=run)


def test_a_tensor_of_numpy(tmp_path: Path) -> None:
    run = """
        import torch

        def step(net, frame):
            net.cuda()
            x = torch.from_numpy(frame).float()  # cause
            return net(x.unsqueeze(0))  # frame 1
    """
    first(tmp_path, run=run)


def test_a_list_that_is_appended_to(tmp_path: Path) -> None:
    run = """
        import torch

        def main(device):
            parts = [torch.ones(3, device=device)]
            parts += [torch.zeros(3) for _ in range(2)]  # cause
            return torch.cat(parts)  # frame 1
    """
    first(tmp_path, run=run)


def test_a_list_that_is_put_together(tmp_path: Path) -> None:
    run = """
        import torch

        def main(model, batches, device):
            outputs = []
            for x in batches:
                y = model(x.to(device))
                outputs.append(y.cpu())  # cause
            return torch.cat(outputs) - model(batches[0].to(device))  # frame 1
    """
    first(tmp_path, run=run)


def test_what_is_computed_first(tmp_path: Path) -> None:
    run = """
        import torch

        class Normalize:
            def __init__(self, mean, std):
                self.mean = torch.tensor(mean)  # cause
                self.std = torch.tensor(std)

            def __call__(self, x):
                return (x - self.mean) / self.std  # frame 1
    """
    first(tmp_path, run=run)


def test_a_sum_that_starts_on_the_cpu(tmp_path: Path) -> None:
    run = """
        import torch

        def main(net, x):
            total = torch.zeros(1)  # cause
            for i in range(3):
                total += net(x)  # frame 1
            return total
    """
    first(tmp_path, run=run)


def test_a_tensor_of_the_module_level(tmp_path: Path) -> None:
    run = """
        import torch

        BIAS = torch.ones(3)  # cause

        def main(x):
            return x.cuda() + BIAS  # frame 1
    """
    first(tmp_path, run=run)


def test_a_tensor_of_the_function_around(tmp_path: Path) -> None:
    run = """
        import torch

        def main(x):
            bias = torch.ones(3)  # cause

            def inner(v):
                return v + bias  # frame 2

            return inner(x.cuda())  # frame 1
    """
    first(tmp_path, run=run)


def test_the_other_card(tmp_path: Path) -> None:
    run = """
        import torch

        def main(x):
            b = torch.ones(3, device="cuda:1")  # cause
            c = torch.ones(3)
            return (x + c.sum()) + b  # frame 1
    """
    first(tmp_path, TWO_CARDS, run=run)


# -- arguments -------------------------------------------------------------------------------------------------------


def test_an_argument(tmp_path: Path) -> None:
    run = """
        import torch

        def add(a, b):
            return a + b  # frame 2

        def main(device):
            x = torch.ones(3, device=device)
            y = torch.ones(3)  # cause
            return add(x, y)  # frame 1
    """
    first(tmp_path, run=run)


def test_an_argument_by_its_name(tmp_path: Path) -> None:
    run = """
        import torch

        def add(a, *, b=None):
            return a + b  # frame 2

        def main(device):
            x = torch.ones(3, device=device)
            y = torch.ones(3)  # cause
            return add(x, b=y)  # frame 1
    """
    first(tmp_path, run=run)


def test_an_argument_of_a_method(tmp_path: Path) -> None:
    run = """
        import torch

        class Trainer:
            def step(self, x, y):
                return x + y  # frame 2

            def run(self, device):
                x = torch.ones(3, device=device)
                y = torch.ones(3)  # cause
                return self.step(x, y)  # frame 1
    """
    first(tmp_path, run=run)


def test_an_argument_over_three_frames_of_two_files(tmp_path: Path) -> None:
    run = """
        import torch
        from net import Net

        def main(device):
            net = Net().to(device)
            h = torch.zeros(3)  # cause
            x = torch.ones(3, device=device)
            return net(x, h)  # frame 1
    """
    net = """
        from torch import nn

        class Net(nn.Module):
            def forward(self, x, h):
                return self.join(x, h)  # frame 2

            def join(self, x, h):
                return x + h  # frame 3
    """
    cause = first(tmp_path, run=run, net=net)
    assert cause.latest is not None
    assert (cause.latest.file.path.name, cause.latest.row) == ("net.py", 5)


# -- attributes ------------------------------------------------------------------------------------------------------


def test_a_plain_attribute_of_a_module(tmp_path: Path) -> None:
    run = """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 3)
                self.bias = torch.zeros(3)
                self.scale = torch.ones(3)  # cause

            def forward(self, x):
                return self.fc(x) * self.scale  # frame 2

        net = Net().cuda()
        x = torch.ones(3).cuda()
        net(x)  # frame 1
    """
    first(tmp_path, run=run)


def test_a_buffer_is_no_suspect(tmp_path: Path) -> None:
    run = """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mean", torch.zeros(3))
                self.gain = nn.Parameter(torch.ones(3))
                self.std = torch.ones(3)  # cause

            def forward(self, x):
                return (x - self.mean) / self.std * self.gain  # frame 1
    """
    first(tmp_path, run=run)
    assert {("run", 7), ("run", 8)}.isdisjoint(places(explained(tmp_path, run=run)))


def test_an_attribute_that_another_method_sets(tmp_path: Path) -> None:
    run = """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 3)
                self.memory = None

            def reset(self):
                self.memory = torch.zeros(3)  # cause

            def forward(self, x):
                return self.memory + self.fc(x)  # frame 1
    """
    first(tmp_path, run=run)


def test_an_attribute_of_a_class_that_is_no_module(tmp_path: Path) -> None:
    run = """
        import torch

        class Trainer:
            def __init__(self, device):
                self.device = device
                self.weight = torch.ones(3)  # cause

            def step(self, x):
                x = x.to(self.device)
                return x * self.weight  # frame 1
    """
    first(tmp_path, run=run)


def test_an_attribute_of_a_base_class_in_another_file(tmp_path: Path) -> None:
    run = """
        from base import Base

        class Net(Base):
            def forward(self, x):
                return x + self.shift  # frame 1
    """
    base = """
        import torch
        from torch import nn

        class Base(nn.Module):
            def __init__(self):
                super().__init__()
                self.shift = torch.ones(3)  # cause
    """
    first(tmp_path, run=run, base=base)


def test_the_hidden_state(tmp_path: Path) -> None:
    run = """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = nn.LSTM(3, 3)

            def init_hidden(self, n):
                return torch.zeros(1, n, 3), torch.zeros(1, n, 3)  # cause

            def forward(self, x):
                hidden = self.init_hidden(x.size(0))
                out, _ = self.rnn(x, hidden)  # frame 2
                return out

        def main(net, x):
            return net(x)  # frame 1
    """
    first(tmp_path, HIDDEN, run=run)


# -- modules ---------------------------------------------------------------------------------------------------------


def test_a_plain_list_of_modules(tmp_path: Path) -> None:
    run = """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = [nn.Linear(3, 3) for _ in range(4)]  # cause

            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)  # frame 2
                return x

        net = Net().cuda()
        x = torch.ones(3).cuda()
        net(x)  # frame 1
    """
    first(tmp_path, run=run)


def test_a_plain_list_that_modules_are_appended_to(tmp_path: Path) -> None:
    run = """
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = []  # cause
                for _ in range(3):
                    self.layers.append(nn.Linear(3, 3))

            def forward(self, x):
                for i in range(3):
                    x = self.layers[i](x)  # frame 1
                return x
    """
    first(tmp_path, run=run)


def test_a_module_list_is_no_suspect(tmp_path: Path) -> None:
    run = """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(3, 3)])

            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)  # frame 2
                return x

        def main(device):
            net = Net().to(device)
            x = torch.ones(3)  # cause
            return net(x)  # frame 1
    """
    first(tmp_path, run=run)
    assert ("run", 7) not in places(explained(tmp_path, run=run))


def test_a_module_that_nothing_moves(tmp_path: Path) -> None:
    run = """
        from torch import nn

        def main(x):
            net = nn.Linear(3, 3)  # cause
            x = x.cuda()
            return net(x)  # frame 1
    """
    assert "nothing moves the module `net`" in first(tmp_path, run=run).suspect.place.text


def test_a_module_of_the_project_that_nothing_moves(tmp_path: Path) -> None:
    run = """
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 3)

            def forward(self, x):
                return self.fc(x)  # frame 2

        def main(loader, device):
            net = Net()  # cause
            for x in loader:
                net(x.to(device))  # frame 1
    """
    assert ("run", 12) in places(explained(tmp_path, run=run))


def test_a_module_that_is_made_in_forward(tmp_path: Path) -> None:
    run = """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 3)

            def forward(self, x):
                x = self.fc(x)
                return nn.Linear(3, 3)(x)  # frame 2, cause

        net = Net().cuda()
        net(torch.ones(3).cuda())  # frame 1
    """
    first(tmp_path, run=run)


def test_weights_of_a_loss(tmp_path: Path) -> None:
    run = """
        import torch
        from torch import nn

        def train(model, loader, device):
            model.to(device)
            criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0]))  # cause
            for x, y in loader:
                x, y = x.to(device), y.to(device)
                loss = criterion(model(x), y)  # frame 1
    """
    first(tmp_path, run=run)


def test_the_parameters_of_a_copied_module(tmp_path: Path) -> None:
    run = """
        import copy
        from torch import nn

        def soft_update(target, source, tau):
            for t, s in zip(target.parameters(), source.parameters()):
                t.data.copy_(tau * s.data + (1 - tau) * t.data)  # frame 2

        net = nn.Linear(3, 3)
        target = copy.deepcopy(net)  # cause
        net.to("cuda")
        soft_update(target, net, 0.01)  # frame 1
    """
    assert first(tmp_path, run=run).latest is None


def test_a_module_that_is_wrapped_where_it_is(tmp_path: Path) -> None:
    run = """
        from torch import nn

        def main(x):
            model = nn.Linear(3, 3)
            model = nn.DataParallel(model)  # cause
            return model(x)  # frame 1
    """
    first(tmp_path, ON_HOST, run=run)


# -- batches ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "loop",
    [
        "for x, y in loader",
        "for i, (x, y) in enumerate(loader)",
        "for x, y in tqdm(loader)",
        "for i, (x, y) in enumerate(tqdm(loader))",
        "for i, (x, y) in tqdm(enumerate(loader), total=3)",
    ],
)
def test_a_batch_of_a_loader(tmp_path: Path, loop: str) -> None:
    run = f"""
        from tqdm import tqdm

        def train(model, loader, device):
            model.to(device)
            {loop}:  # cause
                out = model(x)  # frame 1
    """
    assert "loader" in first(tmp_path, run=run).suspect.place.text


@pytest.mark.parametrize("taken", ["next(iter(loader))", "iter(loader).next()", "next(batches)"])
def test_a_single_batch(tmp_path: Path, taken: str) -> None:
    run = f"""
        def peek(model, loader, device):
            model.to(device)
            batches = iter(loader)
            x, y = {taken}  # cause
            return model(x)  # frame 1
    """
    assert "loader" in first(tmp_path, run=run).suspect.place.text


def test_a_part_of_a_batch(tmp_path: Path) -> None:
    run = """
        def train(model, loader, device):
            model.to(device)
            for batch in loader:
                x = batch["x"]  # cause
                out = model(x)  # frame 1
    """
    first(tmp_path, run=run)


def test_a_loader_by_what_makes_it(tmp_path: Path) -> None:
    run = """
        from torch.utils.data import DataLoader

        def main(net, data):
            dl = DataLoader(data)
            for x in dl:  # cause
                net(x)  # frame 1
    """
    first(tmp_path, run=run)


def test_the_one_of_a_batch_that_was_left_behind(tmp_path: Path) -> None:
    run = """
        def train(model, loader, loss, device):
            model.to(device)
            for x, y in loader:  # cause
                x = x.to(device)
                value = (model(x) - y).abs()  # frame 1
    """
    assert "`y`" in first(tmp_path, run=run).suspect.place.text


# -- moves -----------------------------------------------------------------------------------------------------------


def test_a_move_whose_result_is_dropped(tmp_path: Path) -> None:
    run = """
        def train(model, loader, device):
            model.to(device)
            for x, y in loader:
                x.to(device)  # cause
                out = model(x)  # frame 1
    """
    first(tmp_path, run=run)


def test_a_value_that_was_brought_to_the_cpu(tmp_path: Path) -> None:
    run = """
        def loss(a, b):
            a = a.cuda()
            b = b.cuda()
            b = b.detach().cpu()  # cause
            return (a - b).mean()  # frame 1
    """
    first(tmp_path, run=run)


def test_a_checkpoint_that_is_loaded_to_the_cpu(tmp_path: Path) -> None:
    run = """
        import torch

        def main(path, x):
            mean = torch.load(path, map_location="cpu")  # cause
            return x.cuda() - mean  # frame 1
    """
    first(tmp_path, run=run)


def test_a_move_if_there_is_a_card(tmp_path: Path) -> None:
    run = """
        import torch

        def step(net, x, use_cuda):
            if use_cuda:
                x = x.cuda()
            h = torch.zeros(3)  # cause
            return net(x, h)  # frame 1
    """
    first(tmp_path, run=run)


def test_a_batch_that_is_moved_if_there_is_a_card(tmp_path: Path) -> None:
    run = """
        import torch

        def train(net, loader, use_cuda):
            for x, y in loader:
                if use_cuda:
                    x, y = x.cuda(), y.cuda()
                h = torch.zeros(3)  # cause
                loss = net(x) - y + h  # frame 1
    """
    first(tmp_path, run=run)
    assert ("run", 4) not in places(explained(tmp_path, run=run))


def test_the_index_on_the_card(tmp_path: Path) -> None:
    run = """
        import torch

        def pick(n):
            data = torch.randn(n, 3)  # cause
            index = torch.randint(n, (4,), device="cuda")
            return data[index]  # frame 1
    """
    first(tmp_path, INDEX, run=run)


def test_the_index_that_a_model_gave(tmp_path: Path) -> None:
    run = """
        def pick(model, loader, device):
            for x, y in loader:  # cause
                out = model(x.to(device))
                mask = out > 0
                print(y[mask])  # frame 1
    """
    first(tmp_path, INDEX, run=run)


# -- optimizers, generators, checkpoints -----------------------------------------------------------------------------


def test_an_optimizer_made_before_the_move(tmp_path: Path) -> None:
    run = """
        import torch
        from torch import nn

        def main():
            model = nn.Linear(3, 3)
            optimizer = torch.optim.Adagrad(model.parameters())
            model.cuda()  # cause
            loss = model(torch.ones(3).cuda()).sum()
            loss.backward()
            optimizer.step()  # frame 1
    """
    first(tmp_path, run=run)


def test_the_state_of_an_optimizer(tmp_path: Path) -> None:
    run = """
        import torch
        from torch import nn

        def main(path):
            model = nn.Linear(3, 3).cuda()
            optimizer = torch.optim.Adam(model.parameters())
            optimizer.load_state_dict(torch.load(path))  # cause
            model(torch.ones(3).cuda()).sum().backward()
            optimizer.step()  # frame 1
    """
    first(tmp_path, run=run)


def test_a_generator(tmp_path: Path) -> None:
    run = """
        import torch

        def noise(device):
            generator = torch.Generator()  # cause
            generator.manual_seed(0)
            return torch.randn(3, device=device, generator=generator)  # frame 1
    """
    first(tmp_path, GENERATOR, run=run)


def test_a_generator_on_the_failing_line(tmp_path: Path) -> None:
    run = """
        import torch

        def noise(device):
            return torch.randn(3, device=device, generator=torch.Generator().manual_seed(0))  # frame 1, cause
    """
    first(tmp_path, GENERATOR, run=run)


def test_a_loader_that_shuffles_under_a_default_device(tmp_path: Path) -> None:
    run = """
        import torch
        from torch.utils.data import DataLoader

        torch.set_default_device("cuda")

        def main(dataset):
            loader = DataLoader(dataset, shuffle=True)  # cause
            for x in loader:  # frame 1
                print(x)
    """
    first(tmp_path, GENERATOR, run=run)


def test_a_load_without_map_location(tmp_path: Path) -> None:
    run = """
        import torch

        def restore(model, path):
            state = torch.load(path)  # frame 1, cause
            model.load_state_dict(state)
    """
    cause = first(tmp_path, DESERIALIZE, run=run)
    assert cause.finding is not None and cause.finding.code == "DEV208"


@pytest.mark.parametrize(
    "other",
    [
        "if old:\n{load}\n            else:",
        "if old:\n{load}\n            elif path:",
        "if not old:\n{load}\n            else:",
    ],
)
def test_a_load_in_the_branch_that_was_not_taken_is_no_cause(tmp_path: Path, other: str) -> None:
    head = other.format(load='                model.load_state_dict(torch.load(path)["state"])')
    run = f"""
        import torch

        def restore(model, path, old):
            {head}
                model.load_state_dict(torch.load(path))  # frame 1, cause
    """
    cause = first(tmp_path, DESERIALIZE, run=run)
    assert cause.finding is not None and cause.finding.code == "DEV208"


def test_a_load_in_another_file(tmp_path: Path) -> None:
    run = """
        from checkpoint import restore

        restore("a.pt")  # frame 1
    """
    checkpoint = """
        import torch

        def restore(path):
            return torch.load(path)  # frame 2, cause
    """
    first(tmp_path, DESERIALIZE, run=run, checkpoint=checkpoint)


# -- where the device was chosen -------------------------------------------------------------------------------------


def test_a_call_of_cuda(tmp_path: Path) -> None:
    run = """
        def main(model):
            model.cuda()  # frame 1, cause
    """
    first(tmp_path, NO_CUDA, run=run)


def test_a_device_of_a_constant(tmp_path: Path) -> None:
    run = """
        DEVICE = "cuda"  # cause

        def main(model):
            model.to(DEVICE)  # frame 1
    """
    first(tmp_path, NO_CUDA, run=run)


def test_a_device_of_a_constant_in_another_file(tmp_path: Path) -> None:
    run = """
        from config import DEVICE

        def main(model):
            model.to(DEVICE)  # frame 1
    """
    config = """
        import torch

        DEVICE = torch.device("cuda")  # cause
    """
    first(tmp_path, NO_CUDA, run=run, config=config)


def test_a_device_of_argparse(tmp_path: Path) -> None:
    run = """
        import argparse

        def main(model):
            parser = argparse.ArgumentParser()
            parser.add_argument("--device", default="cuda:0")  # cause
            args = parser.parse_args()
            model.to(args.device)  # frame 1
    """
    first(tmp_path, NO_CUDA, run=run)


def test_a_device_of_argparse_with_a_short_option_first(tmp_path: Path) -> None:
    run = """
        import argparse

        parser = argparse.ArgumentParser()
        parser.add_argument("-d", "--device", default="cuda:0")  # cause
        args = parser.parse_args()


        def main(model):
            print("moves")
            model.to(args.device)  # frame 1
    """
    first(tmp_path, NO_CUDA, run=run)


def test_a_device_of_argparse_in_another_file(tmp_path: Path) -> None:
    run = """
        from options import parse

        def main(model):
            args = parse()
            model.to(args.device)  # frame 1
    """
    options = """
        import argparse

        def parse():
            parser = argparse.ArgumentParser()
            parser.add_argument("--device", default="cuda")  # cause
            return parser.parse_args()
    """
    first(tmp_path, NO_CUDA, run=run, options=options)


def test_a_device_of_an_attribute(tmp_path: Path) -> None:
    run = """
        class Trainer:
            def __init__(self, model):
                self.device = "cuda:0"  # cause
                self.model = model

            def run(self):
                self.model.to(self.device)  # frame 1
    """
    first(tmp_path, NO_CUDA, run=run)


def test_a_device_that_is_given(tmp_path: Path) -> None:
    run = """
        from torch import nn

        DEVICE = "cuda:9"  # cause

        def main(device):
            return nn.Linear(3, 2).to(device)  # frame 2

        main(DEVICE)  # frame 1
    """
    first(tmp_path, ORDINAL, run=run)


def test_a_device_of_a_default(tmp_path: Path) -> None:
    run = """
        def build(
            model,
            device="cuda",  # cause
        ):
            return model.to(device)  # frame 1
    """
    first(tmp_path, NO_CUDA, run=run)


def test_the_number_of_a_card(tmp_path: Path) -> None:
    run = """
        import torch

        def main(model):
            device = torch.device("cuda:3")  # cause
            model.to(device)  # frame 1
    """
    first(tmp_path, ORDINAL, run=run)


def test_the_number_of_a_card_as_an_option(tmp_path: Path) -> None:
    run = """
        import argparse
        import torch

        parser = argparse.ArgumentParser()
        parser.add_argument("--gpu", type=int, default=2)  # cause
        args = parser.parse_args()
        torch.cuda.set_device(args.gpu)  # frame 1
    """
    first(tmp_path, ORDINAL, run=run)


def test_the_numbers_of_cards(tmp_path: Path) -> None:
    run = """
        from torch import nn

        def main(model):
            ids = [0, 1, 2, 3]  # cause
            return nn.DataParallel(model, device_ids=ids)  # frame 1
    """
    first(tmp_path, ORDINAL, run=run)


# -- what is on the line itself --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("x.detach().numpy()", "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu()"),
        ("pack(x, n)", "'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor"),
        ("x.pin_memory()", "cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned"),
        ("x.cuda()", "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing"),
        ("x.cuda()", "'list' object has no attribute 'cuda'"),
    ],
)
def test_the_failing_line_itself(tmp_path: Path, line: str, error: str) -> None:
    run = f"""
        def main(x, n):
            print(n)
            return {line}  # frame 1, cause
    """
    first(tmp_path, error, run=run)


# -- other files -----------------------------------------------------------------------------------------------------

HELPERS = """
    import torch

    def make_mask(n):
        mask = torch.ones(n, n)  # cause
        return mask.tril()
"""


def test_a_helper_of_another_file(tmp_path: Path) -> None:
    run = """
        from helpers import make_mask

        def main(x):
            mask = make_mask(3)
            return x * mask  # frame 1
    """
    cause = first(tmp_path, run=run, helpers=HELPERS)
    assert cause.latest is not None
    assert (cause.latest.file.path.name, cause.latest.row) == ("run.py", 4)


def test_a_helper_by_its_module(tmp_path: Path) -> None:
    run = """
        import helpers

        def main(x):
            return x * helpers.make_mask(3)  # frame 1
    """
    first(tmp_path, run=run, helpers=HELPERS)


def test_a_helper_of_a_file_that_does_not_parse(tmp_path: Path) -> None:
    run = """
        from helpers import make_mask

        def main(x):
            return x * make_mask(3)  # frame 1
    """
    assert explained(tmp_path, run=run, helpers="def make_mask(:\n").where is not None


def test_files_that_import_each_other(tmp_path: Path) -> None:
    run = """
        from other import there

        def here(x):
            return there(x)  # frame 1
    """
    other = """
        from run import here

        def there(x):
            return here(x)
    """
    assert explained(tmp_path, run=run, other=other).where is not None


# -- what ends quietly -----------------------------------------------------------------------------------------------


def test_recursion(tmp_path: Path) -> None:
    run = """
        import torch

        def walk(tree, x):
            if tree is None:
                return x
            return walk(tree.left, x) + walk(tree.right, x)  # frame 2

        def main(tree):
            x = torch.ones(3)  # cause
            return walk(tree, x)  # frame 1
    """
    first(tmp_path, run=run)


def test_calls_in_a_circle(tmp_path: Path) -> None:
    run = """
        def a(x):
            return b(x)

        def b(x):
            return a(x)

        def main(y):
            return a(y) + b(y)  # frame 1
    """
    assert places(explained(tmp_path, run=run)) == [("run", 8)]


def test_a_name_that_is_made_of_itself(tmp_path: Path) -> None:
    run = """
        import torch

        def main(net, x):
            h = torch.zeros(3)  # cause
            while True:
                h = h + 1
                h = net(x, h)  # frame 1
    """
    first(tmp_path, run=run)


def test_numbers_and_sizes_are_no_suspects(tmp_path: Path) -> None:
    run = """
        import torch

        def step(x, y, lr):
            n = x.size(0)
            count = y.sum().item()
            scale = 1.0 / n
            for i in range(n):
                scale = scale * i
            mask = torch.ones(n, x.shape[1])  # cause
            return x * scale * mask * lr * count  # frame 1
    """
    first(tmp_path, run=run)
    assert {("run", 4), ("run", 5), ("run", 6), ("run", 7), ("run", 8)}.isdisjoint(places(explained(tmp_path, run=run)))


# -- where the source is ---------------------------------------------------------------------------------------------

ADD = "import torch\n\n\ndef add(x, n):\n    h = torch.zeros(n)\n    return torch.cat([x, h])\n"


def at(path: object, row: int = 6) -> str:
    """A traceback of `ADD` whose file is said to be at a path."""
    return f'  File "{path}", line {row}, in add\n    return torch.cat([x, h])\nRuntimeError: {MEETING}\n'


def in_cell(head: str) -> str:
    return f"{head}\n      2     h = torch.zeros(n)\n----> 3     return torch.cat([x, h])\n\nRuntimeError: {MEETING}\n"


def save(path: Path, text: str = ADD) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def where(text: str, root: Path) -> tuple[str, int] | None:
    """The file of the innermost frame, from the root, and its row."""
    explanation = explain(text, root)
    assert explanation is not None
    if explanation.where is None:
        return None
    file, row = explanation.where
    return file.path.relative_to(root).as_posix(), row


@pytest.mark.parametrize(
    "path", ["/home/me/project/pkg/ops.py", "C:\\Users\\me\\project\\pkg\\ops.py", "pkg/ops.py", "ops.py"]
)
def test_a_traceback_from_another_machine(tmp_path: Path, path: str) -> None:
    save(tmp_path / "pkg" / "ops.py")
    explanation = explain(at(path), tmp_path)
    assert explanation is not None
    assert places(explanation)[0] == ("ops", 5)


def test_the_file_that_shares_the_longest_end_of_its_path(tmp_path: Path) -> None:
    save(tmp_path / "a" / "ops.py")
    save(tmp_path / "b" / "ops.py")
    assert where(at("/home/me/b/ops.py"), tmp_path) == ("b/ops.py", 6)


def test_a_package_of_the_user_that_is_installed(tmp_path: Path) -> None:
    save(tmp_path / "pkg" / "ops.py")
    assert where(at("/usr/lib/python3.11/site-packages/pkg/ops.py"), tmp_path) == ("pkg/ops.py", 6)


def test_a_frame_of_torch_is_no_file_of_the_user(tmp_path: Path) -> None:
    save(tmp_path / "functional.py")
    assert where(at("/usr/lib/python3.11/site-packages/torch/nn/functional.py"), tmp_path) is None


def test_a_file_that_was_edited_since(tmp_path: Path) -> None:
    path = save(tmp_path / "run.py", "# new\n" * 30 + ADD)
    explanation = explain(at(path), tmp_path)
    assert explanation is not None
    assert where(at(path), tmp_path) == ("run.py", 36)
    assert places(explanation)[0] == ("run", 35)


def test_a_file_that_was_edited_since_by_lines_of_one_rank(tmp_path: Path) -> None:
    path = save(tmp_path / "run.py", "# new\n" * 30 + ADD)
    text = "".join(f"[rank0]: {line}\n" for line in at(path).splitlines())
    assert where(text, tmp_path) == ("run.py", 36)


def test_the_nearest_of_lines_that_are_alike(tmp_path: Path) -> None:
    path = save(tmp_path / "run.py", ADD + ADD.replace("add", "add_again"))
    assert where(at(path, row=11), tmp_path) == ("run.py", 12)


def test_a_line_that_is_gone(tmp_path: Path) -> None:
    path = save(tmp_path / "run.py", ADD.replace("torch.cat", "torch.stack"))
    assert where(at(path), tmp_path) == ("run.py", 6)


def test_a_row_below_the_end_of_the_file(tmp_path: Path) -> None:
    path = save(tmp_path / "run.py", ADD.replace("torch.cat", "torch.stack"))
    assert where(at(path, row=60), tmp_path) is None


@pytest.mark.parametrize(
    "head",
    [
        "Cell In[5], line 3, in add(x, n)",
        "Input In [5], in add(x, n)",
        "<ipython-input-5-0abc> in add(x, n)",
        "/tmp/ipykernel_12/345.py in add(x, n)",
    ],
)
def test_a_cell_by_its_line(tmp_path: Path, head: str) -> None:
    save(tmp_path / "run.py")
    assert where(in_cell(head), tmp_path) == ("run.py", 6)


def test_a_cell_whose_line_two_files_have(tmp_path: Path) -> None:
    save(tmp_path / "run.py")
    save(tmp_path / "copy.py")
    assert where(in_cell("Cell In[5], line 3, in add(x, n)"), tmp_path) is None


def test_a_file_that_does_not_parse(tmp_path: Path) -> None:
    path = save(tmp_path / "run.py", f"def (:\n{ADD}")
    assert where(at(path, row=7), tmp_path) is None


def test_no_source_at_hand(tmp_path: Path) -> None:
    explanation = explain(at("/home/me/run.py"), tmp_path)
    assert explanation is not None
    assert explanation.where is None
    assert explanation.frame is not None and explanation.frame.row == 6
    assert explanation.causes == ()


def test_no_traceback(tmp_path: Path) -> None:
    save(tmp_path / "run.py")
    explanation = explain(f"RuntimeError: {MEETING}", tmp_path)
    assert explanation is not None
    assert (explanation.frame, explanation.where, explanation.causes) == (None, None, ())


def test_no_device_error(tmp_path: Path) -> None:
    save(tmp_path / "run.py")
    assert explain('  File "run.py", line 6, in add\nValueError: no\n', tmp_path) is None


def test_the_traceback_of_the_device_error_in_a_chain(tmp_path: Path) -> None:
    path = save(tmp_path / "run.py", f"{ADD}\n\ndef close(log):\n    log.close()\n")
    text = (
        f"{at(path)}\nDuring handling of the above exception, another exception occurred:\n\n"
        f'Traceback (most recent call last):\n  File "{path}", line 10, in close\n    log.close()\nOSError: no\n'
    )
    assert where(text, tmp_path) == ("run.py", 6)


def test_the_last_traceback_of_a_chain(tmp_path: Path) -> None:
    path = save(tmp_path / "run.py")
    text = (
        f'Traceback (most recent call last):\n  File "{path}", line 5, in add\n    h = torch.zeros(n)\nKeyError: 0\n\n'
        f"During handling of the above exception, another exception occurred:\n\n{at(path)}"
    )
    assert where(text, tmp_path) == ("run.py", 6)


@pytest.mark.parametrize("folder", [".venv", "node_modules", ".git"])
def test_folders_that_hold_no_source_of_the_user(tmp_path: Path, folder: str) -> None:
    save(tmp_path / folder / "pkg" / "ops.py")
    assert where(at("/home/me/pkg/ops.py"), tmp_path) is None


def test_the_report_of_a_simulated_run_after_the_traceback(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text("def f(x):\n    return x + 1\n\n\ndef g(x):\n    return f(x)\n", encoding="utf-8")
    text = (
        'Traceback (most recent call last):\n  File "run.py", line 6, in g\n    return f(x)\n'
        f'  File "run.py", line 2, in f\n    return x + 1\nRuntimeError: {MEETING}\n'
        f"devlint: simulated cuda, CPU kernels, torch 2.13.0+cpu\n\nDEV101 mixed-devices run.py:2: error: {MEETING}\n"
        "    called from run.py:6 in g\n\nthe host waited once\ndevlint: 1 error, 0 warnings, 0 notes\n"
    )
    explanation = explain(text, tmp_path)
    assert explanation is not None and explanation.frame is not None
    assert (explanation.frame.name, explanation.frame.row) == ("f", 2)


# -- what other files and notebooks hold -----------------------------------------------------------------------------


def test_a_constant_of_another_file(tmp_path: Path) -> None:
    run = """
        from constants import BIAS

        def main(x):
            return x + BIAS  # frame 1
    """
    constants = """
        import torch

        BIAS = torch.ones(3)  # cause
    """
    first(tmp_path, run=run, constants=constants)


def test_a_default_that_the_call_leaves(tmp_path: Path) -> None:
    run = """
        import torch

        def add(a, b=torch.ones(3)):  # cause
            return a + b  # frame 2

        def main(x):
            return add(x)  # frame 1
    """
    first(tmp_path, run=run)


def test_a_plain_dict_of_modules(tmp_path: Path) -> None:
    run = """
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.heads = {"a": nn.Linear(2, 2), "b": nn.Linear(2, 2)}  # cause

            def forward(self, x):
                return self.heads["a"](x)  # frame 1
    """
    first(tmp_path, run=run)


def test_a_module_that_its_function_hands_back_is_moved_elsewhere(tmp_path: Path) -> None:
    run = """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(2, 2)
                self.scale = torch.ones(2)  # cause

            def forward(self, x):
                return self.layer(x) * self.scale  # frame 1

        def build():
            net = Net()
            return net
    """
    first(tmp_path, run=run)


def test_the_file_of_two_that_has_the_line(tmp_path: Path) -> None:
    for folder, value in (("a", "torch.ones(3)"), ("b", "torch.zeros(4)")):
        (tmp_path / folder).mkdir()
        text = f"import torch\ndef main(x):\n    return x + {value}\n"
        (tmp_path / folder / "model.py").write_text(text, encoding="utf-8")
    text = f'  File "/w/model.py", line 3, in main\n    return x + torch.zeros(4)\n{MEETING}\n'
    explanation = explain(text, tmp_path)
    assert explanation is not None
    assert [cause.suspect.place.file.path for cause in explanation.causes] == [tmp_path / "b" / "model.py"]


def test_a_cell_of_a_notebook(tmp_path: Path) -> None:
    cells = [
        "import torch\n",
        "%matplotlib inline\nmask = torch.ones(3)\n",
        "y = mask * torch.ones(3, device='cuda')\n",
    ]
    notebook = {
        "cells": [
            {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": cell}
            for cell in cells
        ],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (tmp_path / "run.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    text = f"Cell In[3], line 1\n----> 1 y = mask * torch.ones(3, device='cuda')\n\nRuntimeError: {MEETING}\n"
    explanation = explain(text, tmp_path)
    assert explanation is not None
    place = explanation.causes[0].suspect.place
    assert place.file.place(place.row) == f"{tmp_path / 'run.ipynb'}: line 2 of cell 2"


def test_a_recursion_of_a_thousand_frames(tmp_path: Path) -> None:
    text = "import torch\n\n\ndef f(x, n):\n    if n:\n        return f(x, n - 1)\n    return x + torch.ones(3)\n"
    (tmp_path / "run.py").write_text(text, encoding="utf-8")
    outer = '  File "run.py", line 6, in f\n    return f(x, n - 1)\n' * 1_000
    inner = '  File "run.py", line 7, in f\n    return x + torch.ones(3)\n'
    explanation = explain(f"Traceback (most recent call last):\n{outer}{inner}RuntimeError: {MEETING}\n", tmp_path)
    assert explanation is not None
    assert places(explanation)[:1] == [("run", 7)]


# -- what the new inference adds

INFERRED = {
    "an_entry_of_a_dict_of_the_module_level": """
        import torch

        CACHE = {}

        def fill():
            CACHE["mask"] = torch.ones(3)  # cause

        def run(x):
            fill()
            return x.cuda() * CACHE["mask"]  # frame 1
    """,
    "a_field_that_a_function_sets_on_what_it_is_given": """
        import torch

        class Box:
            pass

        def make(box):
            box.value = torch.ones(3)  # cause

        def run(device):
            box = Box()
            make(box)
            return torch.ones(3).to(device) + box.value  # frame 1
    """,
    "a_free_name_of_a_function_inside": """
        import torch

        def run(device):
            def inner():
                return kept
            kept = torch.ones(3)  # cause
            give = inner
            return torch.ones(3).to(device) + give()  # frame 1
    """,
}


@pytest.mark.parametrize("text", INFERRED.values(), ids=INFERRED)
def test_the_inference_names_where_a_value_was_made(tmp_path: Path, text: str) -> None:
    assert first(tmp_path, run=text).suspect.on_host


def test_a_fault_of_the_inference_does_not_end_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: object) -> None:
        raise ValueError

    monkeypatch.setattr(asked, "ask", fails)
    assert explained(tmp_path, run=next(iter(INFERRED.values()))).where is not None

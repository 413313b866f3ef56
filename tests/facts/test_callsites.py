"""What the callers of a function say of its arguments: asked when a finding rests on an assumption about them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from devlint.model import FileResult

Checked = Callable[..., FileResult]

MASK = """
    import torch
    def mask(x: torch.Tensor):
        return x + torch.zeros(3)
"""


def codes(result: FileResult) -> list[str]:
    return [each.code for each in result.diagnostics]


def test_without_callers_an_argument_may_be_on_an_accelerator(checked: Checked) -> None:
    assert codes(checked({"tools.py": MASK})) == ["DEV102"]


@pytest.mark.parametrize(
    "caller",
    {
        "of a data set": """
            import torch
            from tools import mask
            class Images(torch.utils.data.Dataset):
                def __getitem__(self, index):
                    return mask(self.images[index])
        """,
        "with an array": """
            import numpy as np, torch, tools
            def prepare(path):
                return tools.mask(torch.from_numpy(np.load(path)))
        """,
        "with a copy on the host": """
            import torch
            from tools import mask
            def report(model, x):
                return mask(model(x).cpu())
        """,
        "that passes on what it gets from a collate function": """
            import torch
            from tools import mask
            def pad(x):
                return mask(x)
            def collate_fn(batch):
                return [pad(x) for x in batch]
        """,
        "with an attribute that is made of an array": """
            import torch
            from tools import mask
            class Model:
                def __init__(self):
                    self.labels = None
                def set_input(self, data):
                    self.labels = torch.from_numpy(data["labels"])
                def test(self):
                    return mask(self.labels)
        """,
        "with what a loader gives, unmoved": """
            from tools import mask
            def train(model, loader, device):
                for step, (image, hidden) in enumerate(loader):
                    model(image.to(device), mask(hidden))
        """,
        "by a star import": """
            import torch
            from tools import *
            def prepare(values):
                return mask(torch.tensor([float(v) for v in values]))
        """,
        "with what is copied unless it is on the host": """
            import torch
            from tools import mask
            def read(received, n):
                part = received[:n]
                if part.device != torch.device("cpu"):
                    part = part.cpu()
                return mask(part)
        """,
        "with the rows of an array": """
            import torch
            from tools import mask
            def decode(scores, lengths):
                scores = scores.cpu().numpy()
                return [mask(row) for row, _ in zip(scores, lengths)]
        """,
        "that moves the result": """
            from tools import mask
            def step(batch, device):
                masked = mask(batch["x"])
                masked = masked.to(device)
                return masked
        """,
        "that moves what it gave": """
            from tools import mask
            def step(rows, model, device):
                batch = rows[0]
                sizes = mask(batch)
                return model(batch.to(device)), sizes
        """,
        "as a transform": """
            import torch
            from torchvision import transforms
            from tools import mask
            load = transforms.Compose([transforms.ToTensor(), transforms.Lambda(mask)])
        """,
    }.values(),
    ids=lambda text: text.split("\n")[-2].strip(),
)
def test_callers_that_hand_over_host_data_silence_it(checked: Checked, caller: str) -> None:
    assert codes(checked({"tools.py": MASK, "main.py": caller})) == []


def test_plain_function_is_left_alone_where_no_call_is_known_to_hand_it_an_accelerators_tensor(
    checked: Checked,
) -> None:
    caller = """
        from reader import read
        from tools import mask
        def report(path):
            return mask(read(path))
    """
    assert codes(checked({"tools.py": MASK, "main.py": caller})) == []


def test_function_that_nobody_calls_speaks_for_those_that_it_calls(checked: Checked) -> None:
    caller = """
        import torch
        from tools import mask
        def report(x: torch.Tensor):
            return mask(x * 2)
    """
    assert codes(checked({"tools.py": MASK, "main.py": caller})) == ["DEV102"]


def test_predictions_of_lightning_are_kept_in_host_memory(checked: Checked) -> None:
    caller = """
        import lightning as L, torch
        from tools import mask
        def predict(model, loader):
            trainer = L.Trainer(accelerator="auto")
            return mask(torch.cat(trainer.predict(model, loader)))
    """
    assert codes(checked({"tools.py": MASK, "main.py": caller})) == []


def test_part_of_an_argument_is_where_the_argument_is(checked: Checked) -> None:
    picture = """
        import torch
        def picture(features):
            return features["rows"].detach().numpy()
    """
    caller = """
        import torch
        from tools import picture
        def show(path):
            return picture(torch.load(path, map_location="cpu"))
    """
    assert codes(checked({"tools.py": picture})) == ["DEV109"]
    assert codes(checked({"tools.py": picture, "main.py": caller})) == []


SCALE = """
    import torch
    from torch import nn
    class Scale(nn.Module):
        def forward(self, x: torch.Tensor):
            return x + torch.ones(3)
    class Net(nn.Module):
        def forward(self, x):
            return x.cuda()
"""


@pytest.mark.parametrize(
    ("use", "expected"),
    [("Compose([pad, scale])", []), ("watch([pad, scale])", ["DEV102"])],
    ids=["transform", "other"],
)
def test_module_whose_object_is_a_transform_works_on_the_host(checked: Checked, use: str, expected: list[str]) -> None:
    caller = f"""
        from torchvision.transforms import Compose
        from tools import Scale
        scale = Scale()
        steps = {use}
    """
    assert codes(checked({"tools.py": SCALE, "main.py": caller})) == expected


def test_caller_with_data_of_an_accelerator_is_named(checked: Checked) -> None:
    caller = """
        import torch
        from tools import mask
        def step(x, device):
            return mask(x.to(device))
    """
    (found,) = checked({"tools.py": MASK, "main.py": caller}).diagnostics
    assert [(Path(each.path).name, each.start.row, each.message) for each in found.related][-1] == (
        "main.py", 5, "`mask` is called with this value here",
    )  # fmt: skip


def test_one_caller_with_data_of_an_accelerator_is_enough(checked: Checked) -> None:
    host = """
        import torch
        from tools import mask
        def report(x):
            return mask(x.cpu())
    """
    device = """
        import torch
        from tools import mask
        def step(model: torch.nn.Module, x: torch.Tensor):
            return mask(model.cuda()(x.cuda()))
    """
    assert codes(checked({"tools.py": MASK, "a.py": host, "b.py": device})) == ["DEV102"]


def test_callers_of_which_nothing_is_known_change_nothing(checked: Checked) -> None:
    caller = """
        from tools import mask
        def step(batch):
            return mask(batch["x"])
    """
    assert codes(checked({"tools.py": MASK, "main.py": caller})) == ["DEV102"]


def test_tests_and_examples_of_made_up_data_are_no_callers(checked: Checked) -> None:
    test = """
        import torch
        from tools import mask
        def test_mask():
            assert mask(torch.tensor([1.0, 2.0, 3.0])).sum() == 6
    """
    example = """
        import torch
        from tools import mask
        print(mask(torch.rand(3)))
    """
    files = {"tools.py": MASK, "tests/test_tools.py": test, "test_more.py": test, "example.py": example}
    assert codes(checked(files)) == ["DEV102"]


def test_function_of_the_same_name_elsewhere_is_another_one(checked: Checked) -> None:
    caller = """
        import torch
        from other import mask
        def report(x):
            return mask(x.cpu())
    """
    other = "def mask(x):\n    return x\n"
    assert codes(checked({"tools.py": MASK, "other.py": other, "main.py": caller})) == ["DEV102"]


def test_package_that_hands_a_name_on_leads_to_its_callers(checked: Checked) -> None:
    caller = """
        import torch
        from pack import mask
        def report(x):
            return mask(x.cpu())
    """
    files = {"pack/__init__.py": "from .tools import mask\n", "pack/tools.py": MASK, "main.py": caller}
    assert codes(checked(files, "pack/tools.py")) == []


METHODS = """
    import torch
    class Scores:
        def __init__(self, device):
            self.device = torch.device(device)
        def update(self, values: torch.Tensor):
            self.total = values.to(self.device).sum()
            return values.numpy()
"""


@pytest.mark.parametrize(
    ("caller", "expected"),
    [
        ("scores.update(torch.as_tensor([1.0]))", []),
        ("scores.update(model(x).cpu())", []),
        ("scores.update(x.cuda())", ["DEV109"]),
    ],
)
def test_method_is_called_on_objects_of_its_class(checked: Checked, caller: str, expected: list[str]) -> None:
    text = f"""
        import torch
        from tools import Scores
        def evaluate(model, x):
            scores = Scores("cuda")
            {caller}
    """
    assert codes(checked({"tools.py": METHODS, "main.py": text})) == expected


def test_method_is_called_by_a_subclass_in_another_file(checked: Checked) -> None:
    text = """
        import torch
        from tools import Scores
        class Means(Scores):
            def add(self, values):
                self.update(torch.tensor([float(v) for v in values]))
    """
    assert codes(checked({"tools.py": METHODS, "main.py": text})) == []


def test_functions_that_call_each_other_across_files_end(checked: Checked) -> None:
    a = """
        import torch
        from b import other
        def mask(x: torch.Tensor):
            other(x)
            return x + torch.zeros(3)
    """
    b = """
        from a import mask
        def other(x):
            return mask(x)
    """
    assert codes(checked({"a.py": a, "b.py": b}, "a.py")) == ["DEV102"]


def test_files_that_cannot_be_parsed_or_read_say_nothing(checked: Checked) -> None:
    files = {"tools.py": MASK, "broken.py": "from tools import mask\nmask(", "nul.py": "mask\0(x)"}
    result = checked(files)
    assert codes(result) == ["DEV102"]
    assert result.crashes == []


def test_what_was_searched_is_told(checked: Checked) -> None:
    caller = "from tools import mask\ndef f(x):\n    return mask(x.cpu())\n"
    result = checked({"tools.py": MASK, "main.py": caller})
    assert result.searched is not None
    assert result.searched.words["mask"] == ["main.py", "tools.py"]


def test_nothing_is_searched_for_a_file_without_findings(checked: Checked) -> None:
    clean = "import torch\ndef mask(x: torch.Tensor):\n    return x + torch.zeros_like(x)\n"
    assert checked({"tools.py": clean}).searched is None


NORM = """
    import torch
    from layers_elsewhere import Layer
    from torch import nn
    class Norm(Layer):
        def __init__(self, size, device=None):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(size, device=device))
"""


@pytest.mark.parametrize(("made", "found"), [("Norm(3)", []), ("Norm(3, 'cpu')", []), ("Norm(3, device)", ["DEV102"])])
def test_a_module_is_where_its_constructor_is_told(checked: Checked, made: str, found: list[str]) -> None:
    tools = f"""
        import torch
        from norms import Norm
        def scaled(device: torch.device):
            norm = {made}
            return torch.rand(5, 3) * norm.weight
    """
    assert codes(checked({"norms.py": NORM, "tools.py": tools})) == found


PACKER = """
    import torch
    class Packed(torch.nn.Module):
        def pack(self, layer, scales: torch.Tensor):
            return scales.numpy()
"""


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("scales = scales.to(CPU)", []),
        ("layer, scales = layer.to(CPU), scales.to(CPU)", []),
        ("scales = scales.cuda()", ["DEV109"]),
    ],
)
def test_a_method_is_called_on_objects_of_unknown_classes(checked: Checked, call: str, found: list[str]) -> None:
    files = {
        "tools.py": PACKER,
        "places.py": "from torch import device\nCPU = device('cpu')\n",
        "packing.py": f"""
            from places import CPU
            def pack_all(layers, quantizers):
                for name, packed in layers.items():
                    layer, scales = quantizers[name]
                    {call}
                    layers[name].pack(layer, scales)
        """,
    }
    assert codes(checked(files)) == found


@pytest.mark.parametrize(
    "call",
    [
        "Thread(target=mask, args=(x.cpu(),)).start()",
        "Thread(target=mask, kwargs=dict(x=x.cpu())).start()",
        "partial(mask, x.cpu())()",
        "list(map(mask, [x.cpu()]))",
    ],
)
def test_a_function_is_called_by_what_runs_it(checked: Checked, call: str) -> None:
    caller = f"""
        from functools import partial
        from threading import Thread
        from tools import mask
        def run(model, batch):
            x = model(batch)
            {call}
    """
    assert codes(checked({"tools.py": MASK, "main.py": caller})) == []
    moved = caller.replace("x.cpu()", "x.cuda()")
    assert codes(checked({"tools.py": MASK, "main.py": moved})) == ["DEV102"]


def test_a_template_method_gets_what_its_base_passes(checked: Checked) -> None:
    files = {
        "tools.py": """
            import torch
            from reports import Report
            class Table(Report):
                def render(self, values: torch.Tensor):
                    return values + torch.zeros(3)
        """,
        "reports.py": """
            class Report:
                def show(self, model, batch):
                    return self.render(model(batch).cpu())
                def render(self, values):
                    raise NotImplementedError
        """,
    }
    assert codes(checked(files)) == []


def test_a_module_that_every_call_brings_on_the_host_stays_there(checked: Checked) -> None:
    tools = """
        import torch
        def act(network: torch.nn.Module, state):
            return network(torch.tensor(state))
    """
    caller = """
        import copy
        from tools import act
        def play(model, state):
            return act(copy.deepcopy(model).to({!r}), state)
    """
    assert codes(checked({"tools.py": tools, "main.py": caller.format("cpu")})) == []
    assert codes(checked({"tools.py": tools, "main.py": caller.format("cuda")})) == ["DEV102"]


@pytest.mark.parametrize(("end", "found"), [(".cpu()[0]", []), ("[0]", ["DEV109"])])
def test_a_call_brings_what_a_method_returns(checked: Checked, end: str, found: list[str]) -> None:
    files = {
        "tools.py": """
            import torch
            class Writer:
                def save(self, waveform: torch.Tensor):
                    return waveform.numpy()
            def device():
                return torch.device("cuda")
        """,
        "pipeline.py": f"""
            class Pipeline:
                def synthesize(self, text):
                    speech = self.vocoder(self.encoder(text)){end}
                    return speech
        """,
        "main.py": """
            from tools import Writer
            def run(pipeline):
                speech = pipeline.synthesize("words")
                writer = Writer()
                writer.save(speech)
        """,
    }
    assert codes(checked(files)) == found


@pytest.mark.parametrize(("move", "found"), [("", []), (".cuda()", ["DEV109"])])
def test_a_call_brings_a_part_of_a_checkpoint(checked: Checked, move: str, found: list[str]) -> None:
    tools = """
        import torch
        def resized(table: torch.Tensor):
            return torch.from_numpy(table.numpy()).to(table.device)
    """
    caller = f"""
        from tools import resized
        def load(self, state_dict):
            table = state_dict["table"]{move}
            return resized(table[:-3])
    """
    assert codes(checked({"tools.py": tools, "main.py": caller})) == found


@pytest.mark.parametrize(
    ("moved", "expected"),
    [("first.to(device) + second.to(device)", []), ("first.to(device); indices = indices.to(device)", ["DEV109"])],
    ids=["others alone", "it as well"],
)
def test_part_of_a_batch_that_its_loop_does_not_move_is_host_data(
    checked: Checked, moved: str, expected: list[str]
) -> None:
    weights = """
        import torch
        from torch import nn
        class Warp(nn.Module):
            def forward(self, x):
                return x
        def coefficients(indices, device):
            index = indices.detach().numpy()
            return torch.as_tensor(index * 2.0).to(device)
    """
    train = f"""
        import torch, weights
        from toolbox import Images
        loader = torch.utils.data.DataLoader(Images(), batch_size=4)
        device = torch.device("cuda")
        for step, (images, indices) in enumerate(loader, 0):
            first, second = images
            out = {moved}
            (out * weights.coefficients(indices, device)).sum().backward()
    """
    assert [
        each.code for each in checked({"weights.py": weights, "train.py": train}, "weights.py").diagnostics
    ] == expected


def test_further_names_of_a_function_are_called_for_it(checked: Checked) -> None:
    tools = """
        import torch
        def _fast(x: torch.Tensor):
            return x.numpy()
        checksum = _fast
        def store(row):
            return checksum(row.ids)
    """
    assert codes(checked({"tools.py": tools})) == []


SHIFT = """
    import torch
    class Shift:
        def __call__(self, x: torch.Tensor):
            return x + torch.zeros(3)
"""


@pytest.mark.parametrize("annotation", ["Shift", "Shift | Scale", "Optional[Shift]", "Union[Scale, Shift]"])
def test_an_object_is_called_by_an_annotated_name(checked: Checked, annotation: str) -> None:
    caller = f"""
        import numpy as np, torch
        from typing import Optional, Union
        from tools import Shift
        def prepare(change: {annotation}, path):
            return change(torch.from_numpy(np.load(path)))
    """
    assert codes(checked({"tools.py": SHIFT})) == ["DEV102"]
    assert codes(checked({"tools.py": SHIFT, "sample.py": caller})) == []


def test_parameters_of_a_module_that_calls_hand_over_unmoved_are_on_the_host(checked: Checked) -> None:
    perturb = """
        import torch
        def perturb(network, noise):
            for n, p in zip(noise, network.parameters()):
                p.data += torch.FloatTensor(n)
    """
    caller = """
        import torch
        from tools import perturb
        def worker(noise):
            actor = torch.nn.Linear(3, 1)
            perturb(actor, noise)
    """
    assert codes(checked({"tools.py": perturb})) == ["DEV102"]
    assert codes(checked({"tools.py": perturb, "workers.py": caller})) == []


def test_methods_of_a_longer_file_do_not_stand_in_the_checked_one(checked: Checked) -> None:
    base = (
        "import torch\nclass Base(torch.nn.Module):\n" + "    #\n" * 100 + "    def far(self, x):\n        return x\n"
    )
    tools = """
        import torch
        from base import Base
        class Grid(Base):
            def near(self, x: torch.Tensor):
                return self.far(x) + torch.ones(9)
    """
    assert codes(checked({"base.py": base, "tools.py": tools})) == ["DEV102"]


def test_a_new_tensor_is_read_in_the_file_that_makes_it(checked: Checked) -> None:
    overlap = """
        import torch
        from kernels import cost
        def overlap(a: torch.Tensor, b: torch.Tensor):
            return cost(a, b)
    """
    tools = "\n" * 50 + (
        "import torch\nfrom overlap import overlap\ndef show(b):\n"
        "    a = torch.ones(3, dtype=torch.float32)\n    return overlap(a, b.cuda())\n"
    )
    assert checked({"overlap.py": overlap, "tools.py": tools}).crashes == []


SAVE = """
    import torch
    from lib import build
    def save(coords: torch.Tensor):
        return coords.numpy()
    def log(model, x, device):
        angles = model(x.to(device))
        if x.dim() > 1:
            coords = build(angles[0]{host}, x[0]{host})
            save(coords)
        coords = build(angles[-1]{host}, 3)
        return save(coords)
"""


@pytest.mark.parametrize(
    ("host", "expected"), [(".cpu()", []), (".detach().cpu()", []), (".cpu().to(device)", ["DEV109"]), ("", ["DEV109"])]
)
def test_what_is_computed_from_host_data_alone_is_host_data(checked: Checked, host: str, expected: list[str]) -> None:
    assert codes(checked({"tools.py": SAVE.format(host=host)})) == expected


SCHEDULE = """
    import torch
    class Schedule:
        def __init__(self, start, end, steps):
            self.kept = torch.cumprod(1 - torch.linspace(start, end, steps), dim=0)
        def noisy(self, x, t):
            return self.kept[t].to(x.device).view(-1, 1) * x
"""
TRAINING = """
    import torch
    from tools import Schedule
    def train(loader, model, device):
        schedule = Schedule(1e-4, 0.02, 1000)
        model.to(device)
        for x in loader:
            x = x.to(device)
            t = {steps}
            model(schedule.noisy(x, t))
"""


@pytest.mark.parametrize(
    ("steps", "expected"),
    {
        "moved": ("torch.randint(0, 1000, (len(x),)).to(device)", ["DEV104"]),
        "made there": ("torch.randint(0, 1000, (len(x),), device=x.device)", ["DEV104"]),
        "on the CPU": ("torch.randint(0, 1000, (len(x),))", []),
        "a number": ("500", []),
        "a tensor without dimensions": ("torch.tensor(500, device=device)", []),
        "unknown": ("draw(1000, x)", []),
    }.values(),
    ids=["moved", "made there", "on the CPU", "a number", "a tensor without dimensions", "unknown"],
)
def test_a_table_of_the_host_is_looked_up_with_what_a_call_gives(
    checked: Checked, steps: str, expected: list[str]
) -> None:
    assert codes(checked({"tools.py": SCHEDULE, "train.py": TRAINING.format(steps=steps)})) == expected


ENCODER = """
    import torch
    from torch import nn
    from torch.nn.utils.rnn import pack_padded_sequence
    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.GRU(8, 8)
        def encode(self, text, sizes):
            return self.rnn(pack_padded_sequence(text, sizes, enforce_sorted=False))
"""
ENCODED = """
    import torch
    from tools import Encoder
    def train(loader, device):
        encoder = Encoder()
        encoder.to(device)
        for text, sizes in loader:
            encoder.encode(text.to(device), {sizes})
"""


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [("torch.ones(4).to(device)", ["DEV112"]), ("torch.ones(4)", []), ("[3, 2]", []), ("sizes", [])],
)
def test_lengths_are_where_a_call_puts_them(checked: Checked, sizes: str, expected: list[str]) -> None:
    assert codes(checked({"tools.py": ENCODER, "train.py": ENCODED.format(sizes=sizes)})) == expected

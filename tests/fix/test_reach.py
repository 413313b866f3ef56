"""A fix writes nothing that the torch of the file lacks: by what the project pins, and by what the file uses itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from devlint.config import Resolver
from devlint.engine import Linter
from devlint.fix.rounds import fix_source
from devlint.model import Safety
from devlint.rulebook import Rulebook, rules_of
from devlint.settings import Settings
from devlint.source import decode
from devlint.torch_range import torch_range
from devlint_rules import RULES

UNSTATED = Settings(torch_stated=False)
ITERATOR = "import time\nimport torch\n\n\ndef train(loader, model):\n    "
MODEL = "import torch\n\nmodel = torch.nn.Linear(2, 2).cuda()\nx = torch.rand(3, 2).cuda()\n"


def fixed(text: str, settings: Settings = UNSTATED) -> str:
    linter = Linter(tuple(rule() for rule in RULES), settings)
    return fix_source(linter, decode(text.encode(), "train.py"), (Safety.SAFE, Safety.UNSAFE)).text


def fixed_in(folder: Path, text: str) -> str:
    path = folder / "train.py"
    path.write_text(text, encoding="utf-8")
    config = Resolver().for_directory(str(folder))
    linter = Linter(rules_of(config.plugins), Rulebook().settings(config, str(path)))
    return fix_source(linter, decode(text.encode(), str(path)), (Safety.SAFE, Safety.UNSAFE)).text


# What a project pins


@pytest.mark.parametrize(
    ("name", "pin"),
    [
        ("requirements.txt", "torch==0.2.0.post3\n"),
        ("requirements.txt", "torch<0.4\n"),
        ("requirements.txt", "torch~=0.3.1\n"),
        ("environment.yml", "dependencies:\n  - pytorch=0.3.1\n"),
        ("setup.py", 'from setuptools import setup\nsetup(install_requires=["torch>=0.2,<0.4"])\n'),
        ("pyproject.toml", '[project]\nname = "a"\nversion = "1"\ndependencies = ["torch==0.3.*"]\n'),
    ],
)
def test_below_torch_0_4_nothing_is_converted(tmp_path: Path, name: str, pin: str) -> None:
    (tmp_path / name).write_text(pin, encoding="utf-8")
    assert fixed_in(tmp_path, MODEL) == MODEL


@pytest.mark.parametrize("pin", ["torch==0.4.1\n", "torch>=0.3\n", "torch==1.4.0\n"])
def test_from_torch_0_4_on_the_file_is_converted(tmp_path: Path, pin: str) -> None:
    (tmp_path / "requirements.txt").write_text(pin, encoding="utf-8")
    assert ".to(device)" in fixed_in(tmp_path, MODEL) or "device=device" in fixed_in(tmp_path, MODEL)


@pytest.mark.parametrize(
    "text",
    [
        'import torch\n\nstate = torch.load("a.pth")\ntorch.nn.Linear(2, 2).load_state_dict(state)\n',
        'import torch\n\nx = torch.rand(3).to("cuda")\n',
        "import torch\n\n\ndef f(x: torch.Tensor):\n    return x + torch.arange(x.size(0))\n",
    ],
)
def test_no_text_for_map_location_and_no_device_below_0_4(tmp_path: Path, text: str) -> None:
    (tmp_path / "requirements.txt").write_text("torch==0.2.0.post3\n", encoding="utf-8")
    assert fixed_in(tmp_path, text) == text


# What the file uses itself


@pytest.mark.parametrize(
    ("use", "newest"),
    [
        ("it = iter(loader)\nx = it.next()", (1, 12)),
        ("a, b = iter(first), iter(second)\nx = b.next()", (1, 12)),
        ("x, y = iter(loader).next()", (1, 12)),
        ("class T:\n    def go(self):\n        self.it = iter(self.loader)\n        return self.it.next()", (1, 12)),
        ("try:\n    x = it.next()\nexcept StopIteration:\n    pass\nit = iter(loader)", (1, 12)),
        ("loss = criterion(a, b)\nloss.backward()\nprint(loss.data[0])", (0, 4)),
        ("loss = torch.sum(a)\nloss.backward()\ntotal += loss.data[0]", (0, 4)),
        ("loss = f(Variable(a, volatile=True))\nloss.backward()\nprint(loss.data[0])", (0, 3)),
        ("from torch.autograd.gradcheck import zero_gradients\nzero_gradients(x)", (1, 8)),
        ("y = torch.rfft(x, 2)", (1, 7)),
        ("from torch._six import string_classes", (1, 13)),
    ],
)
def test_what_torch_has_lost_tells_the_newest_torch(use: str, newest: tuple[int, int]) -> None:
    assert torch_range(f"import torch\nfrom torch.autograd import Variable\n{use}\n", None).newest == newest


@pytest.mark.parametrize(
    "use",
    [
        "it = iter(loader)\nx = next(it)",
        "it = Reader(path)\nx = it.next()",
        "class R:\n    def next(self):\n        return 1\nit = iter(R())\nx = it.next()",
        "it = iter(loader)\ntry:\n    x = it.next()\nexcept AttributeError:\n    x = next(it)",
        "rows = torch.rand(3)\nprint(rows.data[0])",
        "x = Variable(a, volatile=True)",
        "if version < (1, 8):\n    y = torch.rfft(x, 2)",
    ],
)
def test_other_uses_tell_nothing(use: str) -> None:
    assert torch_range(f"import torch\nfrom torch.autograd import Variable\n{use}\n", None).newest is None


def test_the_older_of_pin_and_use_decides() -> None:
    text = "import torch\nit = iter(loader)\nx = it.next()\n"
    assert torch_range(text, (1, 4)).newest == (1, 4)
    assert torch_range(text, (2, 1)).newest == (1, 12)


def test_what_the_file_uses_already_may_be_written() -> None:
    known = torch_range("import torch\nit = iter(loader)\nx = it.next()\ntorch.accelerator.synchronize()\n", None)
    assert known.has((2, 6))
    assert not known.has((2, 9))


@pytest.mark.parametrize(
    "step",
    [
        "batches = iter(loader)\n    start = time.time()\n    y = model(batches.next().cuda())\n"
        "    print(time.time() - start)\n    return y\n",
        "start = time.time()\n    y = model(iter(loader).next().cuda())\n    print(time.time() - start)\n    return y\n",
    ],
)
def test_a_file_of_an_older_torch_gets_no_accelerator(step: str) -> None:
    for settings in (UNSTATED, Settings()):
        once = fixed(ITERATOR + step, settings)
        assert "accelerator" not in once
        assert ".to(" in once


@pytest.mark.parametrize("method", ["data[0]", "data[0] / 2"])
def test_a_file_of_torch_0_3_is_not_converted(method: str) -> None:
    text = (
        "import torch\nfrom torch.autograd import Variable\n\nx = Variable(torch.rand(3).cuda(), volatile=True)\n"
        f"loss = torch.sum(x)\nloss.backward()\nprint(loss.{method})\n"
    )
    assert fixed(text) == text

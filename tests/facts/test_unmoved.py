"""Modules that no code of the project moves: what is on the CPU in their methods meets nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from devlint.model import FileResult

Checked = Callable[..., FileResult]

STFT = """
    import torch
    from torch import nn
    class STFT(nn.Module):
        def __init__(self):
            super(STFT, self).__init__()
            self.register_buffer("basis", torch.ones(8, 8))
        def inverse(self, magnitude):
            return torch.matmul(magnitude, self.basis) + torch.ones(8)
"""
HELD = """
    from torch import nn
    from stft import STFT
    class Mel(nn.Module):
        def __init__(self):
            super().__init__()
            self.stft = STFT()
        def spectrum(self, y):
            return self.stft.inverse(y)
"""


def codes(result: FileResult) -> list[str]:
    return [each.code for each in result.diagnostics]


@pytest.mark.parametrize(
    "files",
    {
        "in a function": {"main.py": """
            from stft import STFT
            def prepare(wav):
                stft = STFT()
                return stft.inverse(wav)
        """},
        "at module level, used by another file": {
            "tools.py": "from stft import STFT\n_stft = STFT()\n",
            "main.py": "import tools\ndef prepare(wav):\n    return tools._stft.inverse(wav)\n",
        },
        "on an object that is no module": {"main.py": """
            from stft import STFT
            class Preprocessor:
                def __init__(self):
                    self.STFT = STFT()
                def run(self, wav):
                    return self.STFT.inverse(wav)
        """},
        "handed to a function that only calls it": {"main.py": """
            from stft import STFT
            def invert(wav, transform):
                return transform.inverse(wav)
            def prepare(wav):
                stft = STFT()
                return invert(wav, stft)
        """},
        "held by a module that stays as well": {"mel.py": HELD, "main.py": """
            from mel import Mel
            def prepare(wav):
                mel = Mel()
                return mel.spectrum(wav)
        """},
    }.values(),
    ids=["function", "global", "object", "handed", "held"],
)  # fmt: skip
def test_module_that_stays_where_it_was_made(checked: Checked, files: dict[str, str]) -> None:
    assert codes(checked({"stft.py": STFT, **files}, "stft.py")) == []


@pytest.mark.parametrize(
    "files",
    {
        "nobody makes it": {},
        "moved": {"main.py": """
            from stft import STFT
            def prepare(wav, device):
                stft = STFT()
                stft = stft.to(device)
                return stft.inverse(wav)
        """},
        "handed to what cannot be seen": {"main.py": """
            from stft import STFT
            from toolbox import place
            def prepare(wav):
                stft = STFT()
                place(stft)
                return stft.inverse(wav)
        """},
        "handed to a function that moves it": {"main.py": """
            from stft import STFT
            def place(module, device):
                module.to(device)
            def prepare(wav, device):
                stft = STFT()
                place(stft, device)
                return stft.inverse(wav)
        """},
        "held by a module that moves": {"mel.py": HELD, "main.py": """
            from mel import Mel
            def prepare(wav):
                mel = Mel()
                mel.cuda()
                return mel.spectrum(wav)
        """},
        "held by a module that nobody makes": {"mel.py": HELD},
        "named for a registry": {"main.py": """
            from stft import STFT
            KINDS = {"stft": STFT}
            def prepare(wav):
                stft = STFT()
                return stft.inverse(wav)
        """},
        "in a package that others install": {"setup.py": "from setuptools import setup\nsetup()\n", "main.py": """
            from stft import STFT
            def prepare(wav):
                stft = STFT()
                return stft.inverse(wav)
        """},
    }.values(),
    ids=["never made", "moved", "handed on", "moved by a function", "holder moves", "holder", "registry", "package"],
)  # fmt: skip
def test_module_that_may_be_moved(checked: Checked, files: dict[str, str]) -> None:
    assert codes(checked({"stft.py": STFT, **files}, "stft.py")) == ["DEV102"]


AGENT = """
    import torch
    from torch import nn
    from base import Base
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 2)
        def forward(self, state):
            return self.layer(state)
    class Agent(Base):
        def __init__(self, device):
            super().__init__(device)
            self.net = Net()
        def act(self, state):
            return self.net(state.to(self.device))
"""


@pytest.mark.parametrize(
    ("base", "found"),
    {
        "plain": ("""
            from abc import ABC
            class Base(ABC):
                def __init__(self, device):
                    self.device = device
        """, ["DEV103"]),
        "moves it": ("""
            class Base:
                def __init__(self, device):
                    self.device = device
                def setup(self):
                    self.net.to(self.device)
        """, []),
        "moves all": ("""
            class Base:
                def __init__(self, device):
                    self.device = device
                def setup(self):
                    for part in vars(self).values():
                        if hasattr(part, "to"):
                            part.to(self.device)
        """, []),
        "of a library": ("""
            from framework import Trainer
            class Base(Trainer):
                pass
        """, []),
    }.values(),
    ids=["plain", "moves it", "moves all", "of a library"],
)  # fmt: skip
def test_module_kept_by_an_object_whose_class_has_a_base_in_another_file(
    checked: Checked, base: str, found: list[str]
) -> None:
    assert codes(checked({"base.py": base, "agent.py": AGENT}, "agent.py")) == found


def test_module_kept_by_an_object_whose_class_has_a_base_that_is_not_there(checked: Checked) -> None:
    assert codes(checked({"agent.py": AGENT}, "agent.py")) == []

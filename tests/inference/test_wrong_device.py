"""DEV303 on the events of the new inference: wrong arguments that only their value shows, however they come there."""

from __future__ import annotations

import textwrap

import pytest

from devlint.engine import Linter
from devlint.model import Diagnostic, Severity
from devlint.settings import Settings
from devlint.source import Source
from devlint_rules.wrong_device_argument import WrongDeviceArgument

LINTER = Linter((WrongDeviceArgument(),), Settings(select=("DEV303",), inference="new"))
PRELUDE = "import torch\nfrom torch import nn\n\nx = torch.zeros(3)\n"


def findings(code: str) -> list[Diagnostic]:
    text = PRELUDE + textwrap.dedent(code)
    result = LINTER.check(Source("case.py", text.encode(), text))
    assert result.crashes == []
    return result.diagnostics


FLAGS = {
    "a variable": "wait = True\nx.cuda(wait)\n",
    "a field": (
        "class A:\n    def __init__(self):\n        self.wait = True\n    def f(self, x: torch.Tensor):\n"
        "        return x.cuda(self.wait)\n"
    ),
    "the result of a function": "def pick():\n    return False\nnn.Linear(3, 3).cuda(pick())\n",
    "an argument that a call passes": "def f(x: torch.Tensor, wait):\n    return x.cuda(wait)\nf(x, True)\n",
    "a comparison": "n = 3\nx.cuda(n > 2)\n",
}


@pytest.mark.parametrize("way", FLAGS)
def test_flag_in_place_of_the_device_is_found(way: str) -> None:
    (found,) = findings(FLAGS[way])
    assert "the first argument of `.cuda` is the device, not `non_blocking`" in found.message
    assert found.fix is not None and "non_blocking=" in found.fix.edits[0].text


TEXTS = {
    "a field": (
        "class A:\n    def __init__(self):\n        self.place = 'gpu'\n    def f(self, x: torch.Tensor):\n"
        "        return x.to(self.place)\n"
    ),
    "the result of a function": "def pick():\n    return 'gpu'\nx.to(pick())\n",
    "an argument that a call passes": "def f(x: torch.Tensor, place):\n    return x.to(place)\nf(x, 'gpu')\n",
    "the device of a factory": "def pick():\n    return 'gpu'\ntorch.ones(3, device=pick())\n",
    "the argument of torch.device": "def pick():\n    return 'gpu'\ntorch.device(pick())\n",
}


@pytest.mark.parametrize("way", TEXTS)
def test_text_that_names_no_device_is_found(way: str) -> None:
    (found,) = findings(TEXTS[way])
    assert "torch has no device `gpu`" in found.message


KINDS = {
    "a dtype in a variable": ("t = torch.float16\ntorch.device(t)\n", "takes a device, not a dtype"),
    "a dtype from a function": (
        "def pick():\n    return torch.half\ntorch.device(pick())\n",
        "takes a device, not a dtype",
    ),
    "an annotated device": (
        "def f(d: torch.device):\n    with torch.autocast(device_type=d):\n        pass\n",
        "takes the device type as a string",
    ),
}


@pytest.mark.parametrize("way", KINDS)
def test_value_of_the_wrong_kind_is_found(way: str) -> None:
    code, message = KINDS[way]
    (found,) = findings(code)
    assert message in found.message


def test_annotation_alone_is_a_warning() -> None:
    (found,) = findings("def f(x: torch.Tensor, wait: bool):\n    return x.cuda(wait)\n")
    assert found.severity is Severity.WARNING


QUIET = {
    "a device": "def f(x: torch.Tensor, d: torch.device):\n    return x.cuda(d)\n",
    "a number": "rank = 1\nx.cuda(rank)\n",
    "a flag by name": "wait = True\nx.cuda(non_blocking=wait)\n",
    "an argument of any kind": "def f(x: torch.Tensor, d):\n    return x.cuda(d)\n",
    "a flag or a device": "def f(x: torch.Tensor, a):\n    d = 0 if a else True\n    return x.cuda(d)\n",
    "a text that names one": "def pick():\n    return 'cuda:1'\nx.to(pick())\n",
    "the name of another vendor": "def pick():\n    return 'npu:0'\nx.to(pick())\n",
    "a text of another method": "def f(o):\n    o.to('gpu')\n",
    "an object of the project": (
        "class A:\n    def cuda(self, now):\n        pass\n    def to(self, place):\n        pass\n"
        "wait = True\nA().cuda(wait)\nA().to('gpu')\n"
    ),
    "an error that is caught": "def pick():\n    return 'gpu'\ntry:\n    x.to(pick())\nexcept RuntimeError:\n    pass\n",
    "the type of a device": "d = torch.device('cpu')\nwith torch.autocast(d.type):\n    pass\n",
}


@pytest.mark.parametrize("way", QUIET)
def test_right_argument_is_quiet(way: str) -> None:
    assert findings(QUIET[way]) == []


@pytest.mark.parametrize("code", ["x.cuda(True)\n", "name = 'gpu:0'\nx.to(name)\n", "x.to('gpu')\n",
                                  "d = torch.device('cuda')\nwith torch.autocast(d):\n    pass\n"])  # fmt: skip
def test_what_the_old_events_tell_is_found_once(code: str) -> None:
    assert len(findings(code)) == 1

"""DEV201 on calls that only the new inference sees: which object gets the literal, and what stands around it."""

from __future__ import annotations

import pytest

from devlint.engine import Linter
from devlint.settings import Settings
from devlint.source import Source
from devlint_rules.hardcoded_device import HardcodedDevice

PRELUDE = "import torch\nfrom torch import nn\n\n"
FOUND = {
    "method by its name": "def place(m):\n    getattr(m, 'to')('cuda:0')\n    return m\n\n\nplace(nn.Linear(1, 1))\n",
    "body of a lambda": "make = lambda n: torch.zeros(n, device='cuda:0')\nprint(make(3) + 1)\n",
    "lambda that is handed over": "print(list(map(lambda n: torch.ones(n, device='cuda'), [1, 2])))\n",
}
QUIET = {
    "under a check": "make = lambda n: torch.zeros(n, device='cuda') if torch.cuda.is_available() else None\nmake(3)\n",
    "object that nobody knows": "def place(m):\n    getattr(m, 'to')('cuda:0')\n",
    "of the CPU": "make = lambda n: torch.zeros(n, device='cpu')\nmake(3)\n",
    "object with a method of its own": (
        "class A:\n    def to(self, d):\n        return d\n\n\ndef place(m):\n    getattr(m, 'to')('cuda:0')\n\n\nplace(A())\n"
    ),
}


def codes(code: str) -> list[str]:
    linter = Linter((HardcodedDevice(),), Settings(select=("DEV201",), inference="new"))
    text = PRELUDE + code
    result = linter.check(Source("case.py", text.encode(), text))
    assert result.crashes == []
    return [each.code for each in result.diagnostics]


@pytest.mark.parametrize("name", FOUND)
def test_literal_that_only_an_event_shows_is_found_once(name: str) -> None:
    assert codes(FOUND[name]) == ["DEV201"]


@pytest.mark.parametrize("name", QUIET)
def test_literal_is_left_alone(name: str) -> None:
    assert codes(QUIET[name]) == []

"""Conditions that belong together: a fault on one path is found, a path that does not exist is no fault."""

from __future__ import annotations

from typing import Final

import pytest

from tests.inference.cases import findings, halves, reported
from tests.inference.conditions import CONDITIONS

#: What the inference gets wrong, by case and half.
FAULTS: Final[dict[str, str]] = {
    "isinstance_asked_twice:wrong": "a tensor made of a list is not known to have a dimension",
}


@pytest.mark.parametrize("text", halves(CONDITIONS, "wrong", FAULTS))
def test_fault_is_found(text: str) -> None:
    assert reported(text)


@pytest.mark.parametrize("text", halves(CONDITIONS, "right", FAULTS))
def test_repaired_twin_is_silent(text: str) -> None:
    assert findings(text) == []


# -- later operands of `and` and `or`

GIVEN: Final = (
    "import numpy as np\nimport torch\n\n\ndef main(device):\n    return read(torch.rand(3).to(device))\n\n\n"
)


@pytest.mark.parametrize(
    "test",
    [
        "isinstance(x, np.ndarray) and np.iscomplexobj(x)",
        "isinstance(x, torch.Tensor) or np.iscomplexobj(x)",
        "not x.is_cuda and np.iscomplexobj(x)",
        "x.is_cuda or x.numpy().any()",
        "flag and (isinstance(x, np.ndarray) and np.iscomplexobj(x))",
    ],
)
def test_later_operand_runs_only_where_the_earlier_ones_let_it(test: str) -> None:
    assert not findings(GIVEN + f"def read(x, flag=True):\n    if {test}:\n        return 1\n    return 2\n")


@pytest.mark.parametrize(
    "test",
    [
        "isinstance(x, torch.Tensor) and np.iscomplexobj(x)",
        "isinstance(x, np.ndarray) or np.iscomplexobj(x)",
        "x.is_cuda and x.numpy().any()",
    ],
)
def test_later_operand_is_reported_where_it_runs(test: str) -> None:
    assert findings(GIVEN + f"def read(x):\n    return {test}\n")


def test_after_the_operands_nothing_is_known_of_them() -> None:
    body = "def read(x):\n    asked = isinstance(x, np.ndarray) and x.size\n    return np.iscomplexobj(x), asked\n"
    assert findings(GIVEN + body)


def test_object_changed_in_a_later_operand_stays_changed() -> None:
    body = (
        "model = torch.nn.Linear(3, 3)\nflag = len(input())\nok = flag > 1 or model.cuda()\n"
        "print(model(torch.rand(3)))\n"
    )
    assert findings("import torch\n\n" + body)

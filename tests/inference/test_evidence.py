"""The table of evidence: who says that there is an accelerator decides the severity and the end of the message."""

from __future__ import annotations

import ast
from functools import cache
from typing import Final, NamedTuple

import pytest

from devlint.api import Severity
from devlint.engine import Linter
from devlint.inference.analysis import device_mismatches
from devlint.inference.witness.model import SEVERITIES
from devlint.settings import Settings
from devlint.source import Source
from devlint_rules import RULES
from tests.inference.cases import PRELUDE, findings, marks

HERE: Final = "it fails here"
DEVICE: Final = "it fails wherever that device is a GPU"
INTENDED: Final = "this function handles devices, but not this tensor"
CONTRACT: Final = "it fails if a caller passes a GPU tensor; no known caller does"


class Row(NamedTuple):
    """One program with one finding. `fault`: what the inference gets wrong about it."""

    name: str
    evidence: str
    soft: bool
    severity: Severity
    clause: str
    body: str
    fault: str | None = None


ROWS: Final[tuple[Row, ...]] = (
    Row("named_at_module_level", "named", False, Severity.ERROR, HERE, """
a = torch.rand(3).cuda()
print(a + torch.rand(3))
"""),
    Row("named_in_a_function", "named", False, Severity.ERROR, HERE, """
def run():
    model = nn.Linear(3, 2, device="cuda")
    return model(torch.rand(1, 3))
"""),
    Row("named_on_two_cards", "named", False, Severity.ERROR, HERE, """
print(torch.rand(3, device="cuda:0") + torch.rand(3, device="cuda:1"))
"""),
    Row("named_by_a_device_object", "named", False, Severity.ERROR, HERE, """
there = torch.device("mps")
print(torch.cat([torch.rand(3, device=there), torch.zeros(3)]))
"""),
    Row("named_read_by_the_host", "named", False, Severity.ERROR, HERE, """
print(torch.rand(3).cuda().numpy())
"""),
    Row("device_argument", "device", False, Severity.ERROR, DEVICE, """
def run(device):
    return torch.rand(3, device=device) + torch.rand(3)
"""),
    Row("device_field", "device", False, Severity.ERROR, DEVICE, """
class Runner:
    def __init__(self, device):
        self.device = device

    def run(self):
        return torch.rand(3).to(self.device) @ torch.rand(3)
"""),
    Row("device_argument_moves_the_module", "device", False, Severity.ERROR, DEVICE, """
def run(device: torch.device):
    model = nn.Linear(3, 2)
    model.to(device)
    return model(torch.rand(1, 3))
"""),
    Row("named_where_one_is_available", "named", False, Severity.ERROR, DEVICE, """
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
print(torch.rand(3, device=device) + torch.rand(3))
"""),
    Row("called_with_a_named_device", "called", False, Severity.ERROR, "`add_noise` gets such values from line 6", """
def add_noise(x: torch.Tensor):
    return x + torch.rand(3)
add_noise(torch.rand(3).cuda())
"""),
    Row("called_with_a_device_variable", "called", False, Severity.ERROR, "`add_noise` gets such values from line 7", """
def add_noise(x: torch.Tensor):
    return x + torch.rand(3)
def outer(device):
    return add_noise(torch.rand(3, device=device))
"""),
    Row("called_through_two_functions", "called", False, Severity.ERROR, "`add_noise` gets such values from line 8", """
def add_noise(x: torch.Tensor):
    return x + torch.rand(3)
def outer(x: torch.Tensor):
    return add_noise(x)
outer(torch.rand(3).cuda())
"""),
    Row("called_as_a_method", "called", False, Severity.ERROR, "`add` gets such values from line 7", """
class Noise:
    def add(self, x: torch.Tensor):
        return x + torch.rand(3)
Noise().add(torch.rand(3).cuda())
"""),
    Row("called_softly", "called", True, Severity.INFO, "`add_noise` probably gets such values from line 7", """
from somewhere import scale
def add_noise(x: torch.Tensor):
    return x + torch.rand(3)
add_noise(scale(torch.rand(3).cuda()))
"""),
    Row("called_softly_by_a_method_of_something_unread", "called", True, Severity.INFO,
        "`add_noise` probably gets such values from line 7", """
from somewhere import scaler
def add_noise(x: torch.Tensor):
    return x + torch.rand(3)
add_noise(scaler.fit(torch.rand(3).cuda()))
"""),
    Row("named_softly", "named", True, Severity.INFO, "it probably fails here", """
from somewhere import scale
print(scale(torch.rand(3).cuda()) @ torch.rand(3))
"""),
    Row("intended_by_the_function", "intended", False, Severity.INFO, INTENDED, """
def run(x: torch.Tensor, mask: torch.Tensor):
    mask = mask.to(x.device)
    return x * mask + torch.rand(3)
"""),
    Row("intended_by_a_forward", "intended", False, Severity.INFO, INTENDED, """
class Net(nn.Module):
    def forward(self, x: torch.Tensor):
        return x + torch.arange(x.shape[-1])
"""),
    Row("intended_by_the_class", "intended", False, Severity.INFO, INTENDED, """
class Net:
    def other(self, x: torch.Tensor):
        return torch.rand(3, device=x.device)

    def run(self, x: torch.Tensor):
        return x + torch.rand(3)
"""),
    Row("intended_for_another_part", "intended", False, Severity.INFO,
        "another part of the same value was moved on line 5", """
def run(batch, device):
    x = batch["x"].to(device)
    return torch.cat([x, batch["y"]])
"""),
    Row("intended_softly", "intended", True, Severity.INFO, INTENDED, """
from somewhere import scale
def run(x: torch.Tensor, mask: torch.Tensor):
    mask = mask.to(x.device)
    y = scale(x)
    return y.unsqueeze(0) + torch.rand(3)
"""),
    Row("contract_of_a_function", "contract", False, Severity.INFO, CONTRACT, """
def run(x: torch.Tensor):
    return x + torch.rand(3)
"""),
    Row("contract_of_a_module_argument", "contract", False, Severity.INFO, CONTRACT, """
def run(model: nn.Module):
    return model(torch.rand(1, 3))
"""),
    Row("contract_read_by_the_host", "contract", False, Severity.INFO, CONTRACT, """
def run(x: torch.Tensor):
    return x.numpy()
"""),
)  # fmt: skip


def _rows() -> list[object]:
    return [pytest.param(row, id=row.name, marks=marks(row.fault)) for row in ROWS]


@cache
def linter() -> Linter:
    return Linter(tuple(rule() for rule in RULES), Settings(select=("DEV1",), inference="new"))


@pytest.mark.parametrize("row", _rows())
def test_evidence_decides_the_severity_and_the_clause(row: Row) -> None:
    (found,) = findings(PRELUDE + row.body.lstrip("\n"))
    assert found[2:5] + found[6:] == (row.severity, row.evidence, row.soft, row.clause)


@pytest.mark.parametrize("row", _rows())
def test_message_ends_with_the_clause_and_shows_the_severity(row: Row) -> None:
    text = PRELUDE + row.body.lstrip("\n")
    (found,) = linter().check(Source("case.py", text.encode(), text)).diagnostics
    assert (found.severity, found.message.endswith(": " + row.clause)) == (row.severity, True)


DECLARED: Final = "it fails for callers on a GPU (`targets`)"
PUBLIC: Final = PRELUDE + "def run(x: torch.Tensor):\n    return x + torch.rand(3)\n"


def _under(text: str, *targets: str) -> list[tuple[Severity, str, str]]:
    source = Source("case.py", text.encode(), text)
    found = device_mismatches(ast.parse(text), source, None, targets)[0]
    return [(each.severity, each.evidence, each.clause) for each in found]


@pytest.mark.parametrize("targets", [("cuda",), ("any",), ("cpu", "mps")])
def test_declared_targets_give_warnings(targets: tuple[str, ...]) -> None:
    assert _under(PUBLIC, *targets) == [(Severity.WARNING, "declared", DECLARED)]


@pytest.mark.parametrize("targets", [(), ("cpu",)])
def test_targets_without_an_accelerator_declare_nothing(targets: tuple[str, ...]) -> None:
    assert _under(PUBLIC, *targets) == [(Severity.INFO, "contract", CONTRACT)]


def test_declared_does_not_weaken_what_is_stronger() -> None:
    text = PRELUDE + "print(torch.rand(3).cuda() + torch.rand(3))\n"
    assert _under(text, "cuda") == [(Severity.ERROR, "named", HERE)]


def test_private_function_is_not_declared() -> None:
    assert _under(PUBLIC.replace("def run", "def _run"), "cuda") == [(Severity.INFO, "contract", CONTRACT)]


def test_declared_is_a_warning_where_it_is_proved() -> None:
    assert (SEVERITIES["declared", True], SEVERITIES["declared", False]) == (Severity.WARNING, Severity.INFO)


def test_no_contract_where_all_calls_hand_over_host_data() -> None:
    assert findings(PRELUDE + "def run(x: torch.Tensor):\n    return x + torch.rand(3)\n\nrun(torch.rand(3))\n") == []


def test_a_gpu_call_beside_a_host_call_is_reported() -> None:
    body = "def run(x: torch.Tensor):\n    return x + torch.rand(3)\n\nrun(torch.rand(3))\nrun(torch.rand(3).cuda())\n"
    (found,) = findings(PRELUDE + body)
    assert (found.evidence, found.clause) == ("called", "`run` gets such values from line 8")


def test_condition_stands_in_the_message() -> None:
    body = "def run(flag: bool):\n    a = torch.rand(3).cuda()\n    return a + torch.rand(3) if flag else a\n"
    (found,) = findings(PRELUDE + body)
    assert "`flag` is true" in found.when


def test_condition_is_said_once() -> None:
    body = "def run(flag: bool):\n    a = torch.rand(3).cuda()\n    if flag:\n        a = a + torch.rand(3)\n    return a\n"
    (found,) = findings(PRELUDE + body)
    assert found.when == "`flag` is true"


@pytest.mark.parametrize(
    ("device", "words"),
    [
        ("argparse.ArgumentParser().parse_args().device", "on `argparse.ArgumentParser().parse_args().device`"),
        ("parser.parse_args(argv).device", "on `parser.parse_args(...).device`"),
        ("configs[0]().device", "on `configs[0](...).device`"),
    ],
)
def test_device_that_a_call_gives_is_named_as_the_code_names_it(device: str, words: str) -> None:
    body = f"import argparse\n\nparser = argparse.ArgumentParser()\na = torch.rand(3).to({device})\nprint(a + torch.rand(3))\n"
    text = PRELUDE + body
    (found,) = linter().check(Source("case.py", text.encode(), text)).diagnostics
    assert words in found.message

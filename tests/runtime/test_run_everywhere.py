"""`devlint run --device all`: a table of where a program ends on each kind of machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from devlint.errors import UsageError
from devlint.runtime.everywhere import MACHINES, Stop, cause_of, foreseen, lacks, rules_of
from devlint.runtime.run import main
from devlint.runtime.simulator import simulate
from devlint.runtime.simulator.spec import DeviceSpec
from devlint.runtime.watch import Watch

pytestmark = pytest.mark.runtime

PROGRAM = """\
import sys
import torch

where = sys.argv[1]
model = torch.nn.Linear(3, 3)
if where == "cuda":
    model = model.cuda()
elif torch.cuda.is_available() or torch.xpu.is_available():
    model = model.to(torch.accelerator.current_accelerator())
model(torch.ones(2, 3))
print("done")
"""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """The rows of one program, run with each of two arguments."""
    folder = tmp_path_factory.mktemp("all")
    script, report = folder / "train.py", folder / "report.json"
    script.write_text(PROGRAM)
    found = {}
    for argument in ("cuda", "found"):
        main(["--device", "all", "--json", "--output", str(report), str(script), argument])
        found[argument] = json.loads(report.read_text())["machines"]
    return found


def row(rows: list[dict[str, Any]], machine: str) -> dict[str, Any]:
    (found,) = [each for each in rows if each["machine"] == machine]
    return found


def test_each_machine_has_a_row(tables: dict[str, list[dict[str, Any]]]) -> None:
    assert [each["machine"] for each in tables["found"]] == [machine.name for machine in MACHINES]


def test_program_that_asks_for_a_card_by_name(tables: dict[str, list[dict[str, Any]]]) -> None:
    rows = tables["cuda"]
    for machine in ("plain CPU", "XPU", "MPS", "CUDA build, no GPU"):
        assert (row(rows, machine)["status"], row(rows, machine)["where"].rpartition(":")[2]) == (1, "7"), machine
    assert "no NVIDIA driver" in row(rows, "CUDA build, no GPU")["how"]


def test_batch_that_stays_on_the_host(tables: dict[str, list[dict[str, Any]]]) -> None:
    rows = tables["found"]
    assert row(rows, "plain CPU")["how"] == row(rows, "CUDA build, no GPU")["how"] == "ran to its end"
    for machine, device in (("one CUDA GPU", "cuda:0"), ("two GPUs, the second current", "cuda:1"), ("XPU", "xpu:0")):
        found = row(rows, machine)
        assert (found["status"], found["code"], found["where"].rpartition(":")[2]) == (1, "DEV103", "10")
        assert device in found["how"]


def test_rules_that_say_something_about_the_line_are_named(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\n\nmodel = torch.nn.Linear(3, 3).cuda()\nprint(model)\n")
    stops = [Stop(MACHINES[0], 1, "AssertionError", file=str(script), line=line) for line in (3, 4)]
    said = foreseen(stops)
    assert "DEV202" in said[str(script), 3]
    assert (str(script), 4) not in said


NOT_COMPILED = "AssertionError: Torch not compiled with CUDA enabled"
ENDS = {
    "of a card that is chosen elsewhere": (NOT_COMPILED, ["DEV201"]),
    "of a driver that is not there": ("RuntimeError: Found no NVIDIA driver on your system.", ["DEV201"]),
    "of something else": ("RuntimeError: Expected all tensors to be on the same device, but found ...", []),
}


@pytest.mark.parametrize("name", ENDS)
def test_rule_about_the_choice_of_a_device_is_named_at_an_end(tmp_path: Path, name: str) -> None:
    how, expected = ENDS[name]
    script = tmp_path / "train.py"
    script.write_text('import torch\n\ndevice = torch.device("cuda")\nmodel = torch.nn.Linear(3, 3).to(device)\n')
    stop = Stop(MACHINES[0], 1, how, file=str(script), line=4)
    assert rules_of(stop, foreseen([stop])) == expected


CAUSES = {
    "a build without CUDA": (AssertionError("Torch not compiled with CUDA enabled"), "DEV201"),
    "no driver": (RuntimeError("Found no NVIDIA driver on your system."), "DEV201"),
    "a build without events": (RuntimeError("Tried to instantiate dummy base class Event"), "DEV205"),
    "an assertion of the program": (AssertionError("loss is not finite"), None),
}


@pytest.mark.parametrize("name", CAUSES)
def test_cause_of_an_end_is_named(name: str) -> None:
    error, code = CAUSES[name]
    found = Watch().explanation(error)
    assert (found.code if found is not None else None) == code


def stops(*ends: tuple[int, str, str]) -> list[Stop]:
    """One stop for each machine: status, how, code; the last end for all that follow."""
    rows = [*ends, *(ends[-1:] * (len(MACHINES) - len(ends)))]
    return [
        Stop(machine, status, how, where="x.py:1", line=1, file="x.py", code=code)
        for machine, (status, how, code) in zip(MACHINES, rows, strict=True)
    ]


FINISHED = (0, "ran to its end", "")
WHYS = {
    "the rule of its error": ([(1, "RuntimeError: on cpu", "DEV103"), FINISHED], "the rule for this error is DEV103"),
    "its own exit": ([(1, "sys.exit('needs a GPU')", ""), FINISHED], "the program ends itself"),
    "no device": ([(1, "ValueError: no", "")], "it fails alike on every machine, so no device is the reason"),
    "nothing known": ([(1, "ValueError: no", ""), FINISHED], ""),
}


@pytest.mark.parametrize("name", WHYS)
def test_reason_of_an_end_that_no_rule_reports(name: str) -> None:
    ends, expected = WHYS[name]
    found = stops(*ends)
    assert cause_of(found[0], found) == expected


@pytest.mark.parametrize("kind", ["cuda", "xpu"])
def test_data_parallel_takes_the_card_that_is_there_and_not_the_one_of_its_module(kind: str) -> None:
    """torch/_utils.py, _get_available_device_type: CUDA, MPS, XPU, whatever device the program has chosen."""
    with simulate(DeviceSpec(kind, 1)):
        model = torch.nn.DataParallel(torch.nn.Linear(3, 3)).to("cpu")
        with pytest.raises(RuntimeError, match=f"on device {kind}:0 .* found one of them on device: cpu"):
            model(torch.ones(2, 3))


@pytest.mark.parametrize(
    "argv", [["--device", "all"], ["--device", "all", "-m", "json.tool"], ["--device", "all", "--steps", "2", "x.py"]]
)
def test_wrong_usage(argv: list[str]) -> None:
    with pytest.raises(UsageError):
        main(argv)


def test_script_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a file"):
        main(["--device", "all", str(tmp_path / "none.py")])


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: torch.mps.current_device(), True),
        (lambda: torch.mps.Stream(), True),
        (lambda: torch.mps.no_such_thing(), False),
        (lambda: torch.no_such_thing(), False),
        (lambda: object().current_device(), False),  # type: ignore[attr-defined]
    ],
)
def test_what_one_kind_of_device_lacks_is_named(call: Callable[[], object], expected: bool) -> None:
    with pytest.raises(AttributeError) as raised:
        call()
    assert lacks(raised.value) is expected

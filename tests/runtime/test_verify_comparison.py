"""Wrong fixes whose effect never reaches a training loss are refuted: the program is compared with the original."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devlint.runtime.correction import case_from_row
from devlint.runtime.processes import Launcher
from devlint.runtime.runs import Judgement, Verdict
from devlint.runtime.verify import Report, Request, Runner, verify

pytestmark = pytest.mark.runtime

PROGRAM = """\
import random
import time
import torch
import torch.nn as nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)).to(device)
X = torch.randn(40, 6)
Y = torch.randint(0, 3, (40,))


@torch.no_grad()
def evaluate():
    labels = Y[:20]
    predicted = model(X[:20].to(device)).argmax(1)
    correct = (predicted == labels).sum()
    return correct.item() / 20


def embed():
    with torch.no_grad():
        features = model[0](X.to(device))
    return features.numpy()


def train(steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        scale = torch.full((3,), 0.5)
        loss = (model(X.to(device)) * scale).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train(1)
accuracy = evaluate()
start = time.perf_counter()
out = model(X.to(device))
print("time", time.perf_counter() - start, random.SystemRandom().random())
vectors = embed()
print("accuracy", accuracy)
"""
RIGHT: dict[str, tuple[str, str, str]] = {
    "evaluate": ("DEV101", "predicted == labels", "predicted == labels.to(device)"),
    "embed": ("DEV109", "features.numpy()", "features.cpu().numpy()"),
    "train": ("DEV102", "torch.full((3,), 0.5)", "torch.full((3,), 0.5, device=device)"),
    "time": (
        "DEV401",
        "time.perf_counter() - start",
        "(torch.cuda.synchronize() if torch.cuda.is_available() else None, time.perf_counter())[1] - start",
    ),
}
FAULTS = {"evaluate": (), "embed": (), "train": ("loss = ",), "time": ()}
WRONG: dict[str, tuple[str, str, str]] = {
    "labels are zero": ("evaluate", "predicted == labels", "predicted == torch.zeros_like(labels, device=device)"),
    "a constant for the comparison": ("evaluate", "(predicted == labels).sum()", "torch.tensor(20, device=device)"),
    "the first label is broadcast": ("evaluate", "predicted == labels", "predicted == labels[:1].to(device)"),
    "labels in another order": ("evaluate", "predicted == labels", "predicted == labels.flip(0).to(device)"),
    "another name": ("evaluate", "predicted == labels", "predicted == predicted"),
    "the result is dropped": ("evaluate", "correct = (predicted == labels).sum()", "correct = torch.tensor(0)"),
    "zeros for an array": ("embed", "features.numpy()", "torch.zeros_like(features).cpu().numpy()"),
    "half precision on the way": ("embed", "features.numpy()", "features.half().float().cpu().numpy()"),
    "a part for the whole": ("embed", "features.numpy()", "features[:20].cpu().numpy()"),
    "the gradient is cut off one path": (
        "train",
        "loss = (model(X.to(device)) * scale)",
        "loss = (model[2](model[:2](X.to(device)).detach()) * scale.to(device))",
    ),
    "the model stays on the CPU": (
        "evaluate",
        "predicted = model(X[:20].to(device)).argmax(1)",
        "predicted = model.cpu()(X[:20]).argmax(1)",
    ),
    "the factor is zero": ("train", "torch.full((3,), 0.5)", "torch.full((3,), 0.0, device=device)"),
    "the loss is another one": ("train", "(model(X.to(device)) * scale).square().mean()", "model(X.to(device)).sum()"),
    "only the start of the time waits": (
        "time",
        "start = time.perf_counter()",
        "torch.cuda.synchronize() if torch.cuda.is_available() else None\nstart = time.perf_counter()",
    ),
    "the timed work is deleted": ("time", "out = model(X.to(device))", "out = None"),
    "the clock starts after the work": (
        "time",
        "start = time.perf_counter()\nout = model(X.to(device))\n",
        "out = model(X.to(device))\nif torch.cuda.is_available():\n    torch.cuda.synchronize()\n"
        "start = time.perf_counter()\n",
    ),
}
IN_TRY = {
    "in try": "    try:\n        correct = (predicted == labels).sum()\n"
    "    except RuntimeError:\n        correct = torch.tensor(0)\n",
    "in suppress": "    import contextlib\n    correct = torch.tensor(0)\n    with contextlib.suppress(RuntimeError):\n"
    "        correct = (predicted == labels).sum()\n",
    "in try, rewritten": "    try:\n        correct = torch.eq(predicted, labels).sum()\n"
    "    except Exception:\n        correct = predicted.sum() * 0\n",
}
Judge = Callable[..., tuple[Judgement, Report]]


@pytest.fixture(scope="module")
def judge(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """Judge one fix beside the right ones of the rest."""
    path = tmp_path_factory.mktemp("program") / "train.py"
    path.write_text(PROGRAM, encoding="utf-8")
    runner = Runner(Request(str(path), (), "sim", None, timeout=60.0), launcher)

    def ask(place: str, old: str, new: str) -> tuple[Judgement, Report]:
        rows: list[dict[str, Any]] = [
            {"code": code, "at": at, "replace": [[at, right]], "related": list(FAULTS[name])}
            for name, (code, at, right) in RIGHT.items()
            if name != place
        ]
        code, at, _ = RIGHT[place]
        rows.append({"code": code, "name": "asked", "at": at, "replace": [[old, new]], "related": list(FAULTS[place])})
        cases = [case_from_row(row, PROGRAM) for row in rows]
        report = verify(runner.request, PROGRAM, cases, runner)
        return next(fix.judgement for fix in report.fixes if fix.case.name == "asked"), report

    return ask


@pytest.mark.parametrize("place", RIGHT)
def test_a_right_fix_stays_confirmed(place: str, judge: Judge) -> None:
    judgement, _ = judge(place, RIGHT[place][1], RIGHT[place][2])
    assert judgement.verdict is Verdict.CONFIRMED, judgement.evidence


@pytest.mark.parametrize("name", WRONG)
def test_a_fix_that_changes_what_is_computed_is_refuted(name: str, judge: Judge) -> None:
    judgement, _ = judge(*WRONG[name])
    assert judgement.verdict is Verdict.REFUTED, judgement.evidence


@pytest.mark.parametrize("name", IN_TRY)
def test_a_fault_that_is_merely_caught_is_refuted(name: str, judge: Judge) -> None:
    judgement, _ = judge("evaluate", "    correct = (predicted == labels).sum()\n", IN_TRY[name])
    assert judgement.verdict is Verdict.REFUTED, judgement.evidence


def test_what_varies_from_run_to_run_is_named_and_not_compared(judge: Judge) -> None:
    _, report = judge("time", RIGHT["time"][1], RIGHT["time"][2])
    assert [
        note for note in report.notes if "not compared on plain CPU, because the values differ between runs" in note
    ]


def test_a_fix_of_what_varies_says_so(judge: Judge) -> None:
    judgement, _ = judge("time", RIGHT["time"][1], RIGHT["time"][2])
    assert any("gives different values in each run" in each for each in judgement.evidence)


CARD_ONLY = """\
import torch

weight = torch.ones(3, device="cuda")
offset = torch.arange(3.0)
total = (weight + offset) * 2
print(total.sum().item())
"""


@pytest.mark.parametrize(
    ("new", "verdict"),
    [
        ("offset.to(weight.device)", Verdict.CONFIRMED),
        ("offset.to(weight.device) * 0", Verdict.REFUTED),
        ("offset[:1].to(weight.device)", Verdict.REFUTED),
        ("offset.flip(0).to(weight.device)", Verdict.REFUTED),
    ],
)
def test_a_program_for_a_card_alone_is_compared_with_mixed_devices_let_through(
    new: str, verdict: Verdict, launcher: Launcher, tmp_path: Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text(CARD_ONLY, encoding="utf-8")
    case = case_from_row({"code": "DEV101", "at": "weight + offset", "replace": [["offset)", new + ")"]]}, CARD_ONLY)
    runner = Runner(Request(str(path), (), "sim", None, timeout=60.0), launcher)
    report = verify(runner.request, CARD_ONLY, [case], runner)
    assert report.fixes[0].judgement.verdict is verdict, report.fixes[0].judgement.evidence


BY_ITSELF = """\
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
model = torch.nn.Linear(3, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer.to(device)
rows = torch.arange(6.0).reshape(2, 3)
for step in range(2):
    optimizer.zero_grad()
    model(torch.ones(2, 3, device=device)).sum().backward()
    optimizer.step()
kept = model.weight.detach() + rows
with open(__file__ + ".txt", "w") as file:
    file.write(str(kept.sum().item()))
"""


@pytest.mark.parametrize(
    ("code", "at", "old", "new", "verdict"),
    [
        ("DEV301", "optimizer.to", "optimizer.to(device)\n", "", Verdict.CONFIRMED),
        (
            "DEV301",
            "optimizer.to",
            "optimizer.to(device)",
            "optimizer = torch.optim.SGD(model.parameters(), lr=0.01)",
            Verdict.REFUTED,
        ),
        ("DEV301", "optimizer.to", "optimizer.to(device)", "model.reset_parameters()", Verdict.REFUTED),
        ("DEV101", "model.weight.detach() + rows", "+ rows", "+ rows.to(device)", Verdict.CONFIRMED),
        (
            "DEV101",
            "model.weight.detach() + rows",
            "+ rows",
            "+ (rows if device == 'cpu' else rows.to(device) * 0)",
            Verdict.REFUTED,
        ),
    ],
)
def test_a_call_that_does_not_exist_and_a_turn_on_the_device(
    code: str, at: str, old: str, new: str, verdict: Verdict, launcher: Launcher, tmp_path: Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text(BY_ITSELF, encoding="utf-8")
    drop = {"code": "DEV301", "at": "optimizer.to", "replace": [["optimizer.to(device)\n", ""]]}
    rows: list[dict[str, Any]] = [{"code": code, "name": "asked", "at": at, "replace": [[old, new]]}]
    rows += [drop] if code != "DEV301" else []
    runner = Runner(Request(str(path), (), "sim", None, timeout=60.0), launcher)
    report = verify(runner.request, BY_ITSELF, [case_from_row(row, BY_ITSELF) for row in rows], runner)
    judgement = next(fix.judgement for fix in report.fixes if fix.case.name == "asked")
    assert judgement.verdict is verdict, judgement.evidence


@pytest.mark.parametrize("save", ["torch.save(kept.cpu(), {name})", "open({name}, 'w').write(str(kept.cpu()))"])
def test_what_is_written_to_files_is_compared_and_named(save: str, launcher: Launcher, tmp_path: Path) -> None:
    text = "import torch\n\ndevice = 'cuda' if torch.cuda.is_available() else 'cpu'\n\n\ndef store(kept):\n    "
    text += save.replace("{name}", "__file__ + '.out'") + "\n\n\nrows = torch.arange(3.0)\n"
    text += "store(torch.ones(3, device=device) + rows)\n"
    path = tmp_path / "train.py"
    path.write_text(text, encoding="utf-8")
    runner = Runner(Request(str(path), (), "sim", None, timeout=60.0), launcher)
    for new, verdict in (("rows.to(device))", Verdict.CONFIRMED), ("rows.to(device) + 1)", Verdict.REFUTED)):
        case = case_from_row({"code": "DEV101", "at": "+ rows", "replace": [["rows)", new]]}, text)
        report = verify(runner.request, text, [case], runner)
        assert report.fixes[0].judgement.verdict is verdict
    assert any("the program writes files" in note and "train.py.out" in note for note in report.notes)


NEEDS_A_CARD = """\
import torch

CHECK
device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.ones(3, device=device)
x.mul_(2)
print(x.sum().item())
"""


@pytest.mark.parametrize(
    ("check", "old", "verdict"),
    [
        ("assert torch.cuda.is_available()", "", Verdict.CONFIRMED),
        ('assert torch.cuda.device_count() > 0, "a card is needed"', "", Verdict.CONFIRMED),
        ("assert torch.cuda.is_available()", "x.mul_(2)\n", Verdict.REFUTED),
    ],
)
def test_a_check_that_a_fix_takes_away_did_nothing_where_it_passed(
    check: str, old: str, verdict: Verdict, launcher: Launcher, tmp_path: Path
) -> None:
    text = NEEDS_A_CARD.replace("CHECK", check)
    path = tmp_path / "train.py"
    path.write_text(text, encoding="utf-8")
    replaced = [[f"{check}\n", ""], *([[old, ""]] if old else [])]
    case = case_from_row({"code": "DEV215", "at": "assert", "replace": replaced}, text)
    runner = Runner(Request(str(path), (), "sim", None, timeout=60.0), launcher)
    judgement = verify(runner.request, text, [case], runner).fixes[0].judgement
    assert judgement.verdict is verdict, judgement.evidence

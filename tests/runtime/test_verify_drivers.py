"""Programs of several files, and the commands that run them: every driver gets the corrected sources."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from devlint.model import TextEdit
from devlint.runtime import verify as module
from devlint.runtime.correction import Edition, case_from_row
from devlint.runtime.places import Places
from devlint.runtime.processes import Launcher
from devlint.runtime.runs import Outcome, Run, Verdict
from devlint.runtime.verify import Report, Request, Runner, find_in_files, verify

pytestmark = pytest.mark.runtime

NET = '''\
"""A model whose noise is left on the CPU."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x):
        noise = torch.zeros(x.shape)
        return self.layer(x + noise)
'''
TRAIN = """\
import os

import torch

from .net import Net

here = os.path.dirname(os.path.abspath(__file__))
assert os.path.exists(os.path.join(here, "net.py"))
assert "site" not in [os.path.basename(folder) for folder in __import__("sys").path]


def fit(epochs, device):
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.ones(2, 4, device=device)
    for _ in range(epochs):
        loss = model(data).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    fit(2, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
"""
TESTS = """\
import torch
from pkg.net import Net
from pkg.train import fit

device = "cuda" if torch.cuda.is_available() else "cpu"


def test_fit():
    assert fit(2, device) < 10


def test_forward():
    assert Net().to(device)(torch.zeros(2, 4, device=device)).max() < 5


def test_sum():
    assert torch.ones(2).sum() == 2
"""
PARALLEL = """\
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from pkg.net import Net

dist.init_process_group("nccl")
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
model = DistributedDataParallel(Net().to(rank), device_ids=[rank])
loss = model(torch.ones(4, 4, device=rank)).sum()
loss.backward()
dist.destroy_process_group()
"""
SPAWNING = """\
import multiprocessing

import torch


def work(device):
    x = torch.ones(3, device=device)
    y = torch.arange(3.0)
    print((x + y).sum().item())


if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=work, args=("cuda:0",))
    child.start()
    child.join()
"""
FAMILIES = """\
import time

import torch


def mixed(x):
    return (x + torch.arange(3.0)).sum()


def portable():
    return torch.ones(3, device="cuda").sum()


def cast(x):
    with torch.autocast(torch.device("cuda")):
        return x.sum()


def timed(x):
    began = time.perf_counter()
    y = x * x
    took = time.perf_counter() - began
    return took, y


def fetched(x):
    early = x.to("cpu", non_blocking=True)
    return early.tolist()


def placed(rank):
    return torch.ones(3, device=torch.device("cuda", rank)).sum()
"""
TESTS_OF_FAMILIES = """\
import os

import pytest
import torch
from pkg import families

x = torch.ones(3, device="cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("name", os.environ.get("FAMILIES", "mixed cast timed fetched portable placed").split())
def test_family(name):
    arguments = {"portable": (), "placed": (int(os.environ.get("RANK", 1)),)}.get(name, (x,))
    getattr(families, name)(*arguments)
"""
WRONG_OF_EACH_FAMILY = [
    ("DEV101", "torch.arange(3.0)", "torch.arange(3.0, device='cpu')"),
    ("DEV201", 'device="cuda")', 'device="cuda:0")'),
    ("DEV303", 'torch.autocast(torch.device("cuda"))', 'torch.autocast(torch.device("cuda", 0))'),
    (
        "DEV401",
        "took = time.perf_counter() - began",
        "took = time.perf_counter() - began\n    torch.cuda.synchronize()",
    ),
    ("DEV505", 'x.to("cpu", non_blocking=True)', 'x.to("cpu", torch.float32, non_blocking=True)'),
    ("DEV603", 'torch.device("cuda", rank)', 'torch.device(f"cuda:{rank}")'),
]
WATCH = {"DEV505": ["return early.tolist()"]}
CLEAN = (
    FAMILIES.replace("torch.arange(3.0)", "torch.arange(3.0, device=x.device)")
    .replace('torch.autocast(torch.device("cuda"))', "torch.autocast(x.device.type)")
    .replace("y = x * x", "y = (x * x).cpu()")
    .replace(", non_blocking=True", "")
)
INERT_OF_EACH_FAMILY = [
    ("DEV101", "device=x.device)).sum()", "device=x.device)).sum() + 0"),
    ("DEV303", "return x.sum()", "return torch.sum(x)"),
    ("DEV401", "return took, y", "return (took, y)"),
    ("DEV505", "return early.tolist()", "return list(early.tolist())"),
    ("DEV603", "device=torch.device", "requires_grad=False, device=torch.device"),
]
NOISE = ("DEV102", 13)
WRONG = ("(x.shape)", "(x.shape, device='cpu')")
INERT = ("(x.shape)", "(tuple(x.shape))")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {
        "src/pkg/__init__.py": "",
        "src/pkg/net.py": NET,
        "src/pkg/train.py": TRAIN,
        "tests/test_train.py": TESTS,
        "ddp.py": PARALLEL,
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "src")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return tmp_path


def run(
    launcher: Launcher, *command: str, device: str = "sim", fix: tuple[str, str] | None = None, paths: str = "src"
) -> Report:
    """Verify all files under `paths`; `fix`: only the fix at `NOISE`, writing the second text for the first."""
    texts, cases, finders, _ = find_in_files([paths], (), ())
    request = Request("", command=command, device=device, timeout=60.0)
    runner = Runner(request, launcher)
    if fix is None:
        return verify(request, texts, cases, runner, finders)
    case = next(each for each in cases if each.code == NOISE[0])
    at = texts[case.file].index(fix[0], case.span.start)
    case = replace(case, edits=(TextEdit(at, at + len(fix[0]), fix[1]),), shared=())
    return verify(request, texts, [case], runner)


def verdicts(report: Report) -> list[tuple[str, str, int, str]]:
    return [
        (Path(fix.case.file).name, fix.case.code, fix.start.row, fix.judgement.verdict.value) for fix in report.fixes
    ]


def outcome(report: Report, label: str) -> Run:
    return dict(report.runs)[label]


CONFIRMED = [("net.py", "DEV102", 13, "confirmed")]


def test_module_of_a_package(project: Path, launcher: Launcher) -> None:
    report = run(launcher, "python", "-m", "pkg.train")
    assert verdicts(report) == CONFIRMED
    evidence = report.fixes[0].judgement.evidence[0]
    assert f"without the fix, {Path('src/pkg/net.py')}:14: RuntimeError: Expected all tensors" in evidence


@pytest.mark.parametrize("options", [(), ("-u",)], ids=["forked", "an-interpreter-of-its-own"])
def test_script_that_is_started_gets_its_corrections(
    options: tuple[str, ...], project: Path, launcher: Launcher
) -> None:
    (project / "go.py").write_text(
        "import sys\nimport torch\n"
        f"assert __file__ == {str(project / 'go.py')!r} and __name__ == '__main__' and sys.argv[1:] == ['-x']\n"
        f"assert sys.path[0] == {str(project)!r}\n"
        "a = torch.ones(3, device='cuda' if torch.cuda.is_available() else 'cpu')\n"
        "b = torch.arange(3)\n"
        "print(a + b)\n"
    )
    report = run(launcher, "python", *options, "go.py", "-x", paths="go.py")
    assert verdicts(report) == [("go.py", "DEV102", 6, "confirmed")]


def test_pytest(project: Path, launcher: Launcher) -> None:
    report = run(launcher, "pytest", "-q", "tests/test_train.py")
    assert verdicts(report) == CONFIRMED
    assert outcome(report, "original").text == "finished, 2 of 3 tests failed, 2 by a device fault"
    assert outcome(report, "corrected (1 fix)").text.startswith("finished, 0 of 3 tests failed")
    assert "tests/test_train.py::test_forward" in "\n".join(report.fixes[0].judgement.evidence)


def test_pytest_whose_tests_are_corrected_too(project: Path, launcher: Launcher) -> None:
    (project / "tests" / "test_train.py").write_text(
        "import torch\n\n\ndef test_mixed():\n"
        "    x = torch.ones(3, device='cuda' if torch.cuda.is_available() else 'cpu')\n"
        "    y = torch.arange(3)\n    assert (x + y).sum() == 6\n"
    )
    report = run(launcher, "pytest", "-q", "tests", paths="tests")
    assert verdicts(report) == [("test_train.py", "DEV102", 6, "confirmed")]


def test_pytest_refutes_a_wrong_fix(project: Path, launcher: Launcher) -> None:
    report = run(launcher, "pytest", "-q", "tests/test_train.py", fix=WRONG)
    assert [fix.judgement.verdict for fix in report.fixes] == [Verdict.REFUTED]


def test_pytest_refutes_a_fix_by_which_a_test_fails(project: Path, launcher: Launcher) -> None:
    fix = ("torch.zeros(x.shape)", "torch.full(x.shape, 100.0).to(x)")
    report = run(launcher, "pytest", "-q", "tests/test_train.py", device="cpu", fix=fix)
    assert [fix.judgement.verdict for fix in report.fixes] == [Verdict.REFUTED]
    assert "which ran without the fix" in report.fixes[0].judgement.evidence[0]


def test_pytest_does_not_reproduce_an_inert_fix(project: Path, launcher: Launcher) -> None:
    report = run(launcher, "pytest", "-q", "tests/test_train.py", device="cpu", fix=INERT)
    assert [fix.judgement.verdict for fix in report.fixes] == [Verdict.NOT_REPRODUCED]


def test_pytest_does_not_reach_what_no_test_calls(project: Path, launcher: Launcher) -> None:
    report = run(launcher, "pytest", "-q", "tests/test_train.py", "-k", "sum")
    assert [fix.judgement.verdict for fix in report.fixes] == [Verdict.NOT_REACHED]


def test_file_of_the_tests_that_is_no_python(project: Path, launcher: Launcher) -> None:
    (project / "tests" / "test_train.py").write_text("def test_one(:\n", encoding="utf-8")
    report = run(launcher, "pytest", "-q", "tests/test_train.py", device="cpu", fix=INERT)
    assert [fix.judgement.verdict for fix in report.fixes] == [Verdict.COULD_NOT_JUDGE]
    assert "SyntaxError: invalid syntax" in report.fixes[0].judgement.evidence[0]


def test_script_of_a_command_that_is_no_python(project: Path, launcher: Launcher) -> None:
    (project / "broken.py").write_text("import pkg.net\nx = (\n", encoding="utf-8")
    report = run(launcher, "python", "broken.py", device="cpu", fix=INERT)
    assert outcome(report, "original").text.startswith("stopped for another reason at broken.py:2: SyntaxError:")


def families(
    project: Path, launcher: Launcher, text: str, fixes: list[tuple[str, str, str]]
) -> dict[str, tuple[Verdict, str]]:
    """The verdict under pytest on each of several fixes of one file, with its evidence."""
    path = project / "src" / "pkg" / "families.py"
    path.write_text(text, encoding="utf-8")
    (project / "tests" / "test_train.py").write_text(TESTS_OF_FAMILIES, encoding="utf-8")
    cases = [
        replace(
            case_from_row({"code": code, "at": old, "replace": [[old, new]], "related": WATCH.get(code, [])}, text),
            file=str(path),
        )
        for code, old, new in fixes
    ]
    request = Request("", command=("pytest", "-q", "tests/test_train.py"), device="sim", timeout=60.0)
    report = verify(request, {str(path): text}, cases, Runner(request, launcher))
    return {fix.case.code: (fix.judgement.verdict, " ".join(fix.judgement.evidence)) for fix in report.fixes}


def test_pytest_refutes_a_wrong_fix_of_every_family(project: Path, launcher: Launcher) -> None:
    seen = families(project, launcher, FAMILIES, WRONG_OF_EACH_FAMILY)
    assert {code: verdict for code, (verdict, _) in seen.items() if verdict is not Verdict.REFUTED} == {}, seen
    assert len(seen) == 6


def test_pytest_does_not_reproduce_an_inert_fix_of_any_family(
    project: Path, launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAMILIES", "mixed cast timed fetched placed")
    monkeypatch.setenv("RANK", "0")
    seen = families(project, launcher, CLEAN, INERT_OF_EACH_FAMILY)
    assert {code: verdict for code, (verdict, _) in seen.items() if verdict is not Verdict.NOT_REPRODUCED} == {}, seen


def test_pytest_does_not_reach_a_fix_of_any_family_that_no_test_calls(
    project: Path, launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAMILIES", "mixed")
    fixes = [fix for fix in WRONG_OF_EACH_FAMILY if fix[0] != "DEV101"]
    seen = families(project, launcher, FAMILIES, fixes)
    assert {code: verdict for code, (verdict, _) in seen.items() if verdict is not Verdict.NOT_REACHED} == {}, seen


@pytest.mark.slow
def test_torchrun_does_not_reproduce_an_inert_fix(project: Path, launcher: Launcher) -> None:
    (project / "src" / "pkg" / "net.py").write_text(NET.replace("(x.shape)", "(x.shape).to(x.device)"))
    fix = ("torch.zeros(x.shape).to(x.device)", "torch.zeros(x.shape).to(device=x.device)")
    texts, _, _, _ = find_in_files(["src"], (), ())
    file = next(each for each in texts if each.endswith("net.py"))
    case = replace(case_from_row({"code": "DEV101", "at": fix[0], "replace": [list(fix)]}, texts[file]), file=file)
    request = Request("", command=("torchrun", "--nproc-per-node", "2", "ddp.py"), device="sim:2", timeout=60.0)
    report = verify(request, texts, [case], Runner(request, launcher))
    assert [fix.judgement.verdict for fix in report.fixes] == [Verdict.NOT_REPRODUCED]


@pytest.mark.slow
def test_torchrun(project: Path, launcher: Launcher) -> None:
    report = run(launcher, "torchrun", "--nproc-per-node", "2", "ddp.py", device="sim:2")
    assert verdicts(report) == CONFIRMED
    assert outcome(report, "original").outcome is Outcome.DEVICE_FAULT


@pytest.mark.slow
def test_torchrun_refutes_a_wrong_fix(project: Path, launcher: Launcher) -> None:
    report = run(launcher, "torchrun", "--nproc-per-node", "2", "ddp.py", device="sim:2", fix=WRONG)
    assert [fix.judgement.verdict for fix in report.fixes] == [Verdict.REFUTED]


def test_torchrun_that_never_comes_there(project: Path, launcher: Launcher) -> None:
    (project / "idle.py").write_text("import os, torch, pkg.net\nprint(os.environ['RANK'])\n")
    report = run(launcher, "torchrun", "--nproc-per-node", "2", "idle.py", device="sim:2")
    assert [fix.judgement.verdict for fix in report.fixes] == [Verdict.NOT_REACHED]


RACING = {
    "threads": "threading.Thread(target=work, args=(rank,))",
    "forked processes": "multiprocessing.get_context('fork').Process(target=work, args=(rank,))",
    "commands": "Command(rank)",
}
RACE = """\
import multiprocessing, subprocess, sys, threading, time
import torch, pkg.net


def work(rank):
    turn = len(open({turns!r}).read())
    time.sleep(0.2 * ((turn + rank) % 2))
    print("rank", rank)


class Command:
    def __init__(self, rank):
        self.rank = rank

    def start(self):
        late = 0.2 * ((len(open({turns!r}).read()) + self.rank) % 2)
        code = f"import sys, time; time.sleep({{late}}); print('rank', {{self.rank}})"
        self.process = subprocess.Popen([sys.executable, "-c", code])

    def join(self):
        self.process.wait()


if __name__ == "__main__":
    workers = [{kind} for rank in range(2)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    open({turns!r}, "a").write("+")
    print("done")
"""


@pytest.mark.parametrize("kind", RACING)
def test_writers_that_race_for_standard_output(
    kind: str, project: Path, launcher: Launcher, tmp_path_factory: pytest.TempPathFactory
) -> None:
    turns = tmp_path_factory.mktemp("turns") / "turns"
    turns.write_text("", encoding="utf-8")
    (project / "race.py").write_text(RACE.format(turns=str(turns), kind=RACING[kind]), encoding="utf-8")
    report = run(launcher, "python", "race.py", device="sim")
    assert [fix.judgement.verdict for fix in report.fixes] == [Verdict.NOT_REACHED]
    assert not [note for note in report.notes if "together, the fixes change" in note]


@pytest.mark.parametrize("said", ["print({n})", "print('x' * {n})"])
def test_what_differs_by_chance_makes_no_fix_guilty_that_no_run_reached(
    said: str, project: Path, launcher: Launcher, tmp_path_factory: pytest.TempPathFactory
) -> None:
    turns = tmp_path_factory.mktemp("turns") / "turns"
    turns.write_text("", encoding="utf-8")
    text = f"import torch, pkg.net\nn = len(open({str(turns)!r}).read())\nopen({str(turns)!r}, 'a').write('+')\n"
    (project / "idle.py").write_text(text + said.format(n="(1 + (n == 3))") + "\n", encoding="utf-8")
    report = run(launcher, "python", "idle.py", device="sim")
    assert [fix.judgement.verdict for fix in report.fixes] == [Verdict.NOT_REACHED], report.fixes[0].judgement.evidence
    assert [note for note in report.notes if "together, the fixes change" in note]


def test_spawned_child_of_a_script_runs_the_corrected_text(project: Path, launcher: Launcher) -> None:
    path = project / "spawning.py"
    path.write_text(SPAWNING, encoding="utf-8")
    text, find = module.find_with_linter(path, (), ())
    request = Request(str(path), device="sim", timeout=60.0)
    report = verify(request, text, find(text), Runner(request, launcher), find)
    fix = next(each for each in report.fixes if each.case.code == "DEV102")
    assert (fix.start.row, fix.judgement.verdict) == (8, Verdict.CONFIRMED)
    assert "in a process that the program started" in fix.judgement.evidence[0]


def test_nothing_is_written_beside_the_files(project: Path, launcher: Launcher) -> None:
    before = {path: path.read_bytes() for path in project.rglob("*.py")}
    run(launcher, "python", "-m", "pkg.train", device="cpu", fix=INERT)
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before


def test_command_that_fails_by_itself(project: Path, launcher: Launcher) -> None:
    report = run(launcher, "python", "-m", "pkg.missing", device="cpu", fix=INERT)
    assert [fix.judgement.verdict for fix in report.fixes] == [Verdict.COULD_NOT_JUDGE]
    assert "No module named pkg.missing" in outcome(report, "original").text


def test_isolated_interpreter_cannot_be_followed(project: Path, launcher: Launcher) -> None:
    report = run(launcher, sys.executable, "-I", "-c", "pass", device="cpu", fix=INERT)
    assert [fix.judgement.verdict for fix in report.fixes] == [Verdict.COULD_NOT_JUDGE]
    assert "no Python process that could be followed" in outcome(report, "original").text


def test_command_that_does_not_exist(project: Path, launcher: Launcher, capsys: pytest.CaptureFixture[str]) -> None:
    assert module.main(["src", "--device", "cpu", "--", "no-such-command"]) == 2
    assert "there is no such command" in capsys.readouterr().err


def test_command_runs_out_of_time(project: Path, launcher: Launcher) -> None:
    texts, cases, finders, _ = find_in_files(["src"], (), ())
    request = Request("", command=("python", "-c", "import pkg, time\ntime.sleep(60)"), device="cpu", timeout=1.0)
    report = verify(request, texts, cases, Runner(request, launcher), finders)
    assert outcome(report, "original").outcome is Outcome.LIMIT


def test_memory_is_limited(project: Path, launcher: Launcher) -> None:
    path = project / "hungry.py"
    path.write_text("import time\nx = b'x' * 900_000_000\ntime.sleep(30)\n", encoding="utf-8")
    request = Request(str(path), device="cpu", timeout=20.0, memory=800 * 2**20)
    edition = Edition({str(path): Places(path.read_text(encoding="utf-8"))}, [])
    seen = Runner(request, launcher).run(edition, "cpu", "original")
    assert seen.text.startswith("limit reached: 800 MiB of memory in one process, at line ")

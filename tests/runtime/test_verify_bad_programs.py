"""Programs that do not end well: every run ends, says how, and leaves nothing behind."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import pytest

from devlint.runtime.correction import Edition, case_from_row
from devlint.runtime.launch import Job
from devlint.runtime.places import Places
from devlint.runtime.processes import Launcher
from devlint.runtime.runs import Outcome, Run, Verdict
from devlint.runtime.serving import File
from devlint.runtime.verify import Request, Runner, verify

pytestmark = pytest.mark.runtime

MIXED = "torch.ones(3) + torch.ones(3, device='cuda')"


def run(launcher: Launcher, folder: Path, *lines: str, device: str = "sim", **options: object) -> Run:
    """One run of a program of these lines in a folder of its own."""
    path = folder / "program.py"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    request = Request(str(path), device=device, **{"timeout": 20.0, **options})  # type: ignore[arg-type]
    edition = Edition({str(path): Places(path.read_text(encoding="utf-8"))}, [])
    return Runner(request, launcher).run(edition, device, "original")


def test_program_that_never_ends(launcher: Launcher, tmp_path: Path) -> None:
    seen = run(launcher, tmp_path, "import time", "while True:", "    time.sleep(0.01)", timeout=2.0)
    assert seen.outcome is Outcome.LIMIT
    assert seen.text == "limit reached: 2 s, at line 3"


def test_program_that_catches_everything_and_never_ends(launcher: Launcher, tmp_path: Path) -> None:
    lines = ["while True:", "    try:", "        x = 1", "    except BaseException:", "        pass"]
    assert run(launcher, tmp_path, *lines, timeout=2.0).outcome is Outcome.LIMIT


def test_steps_are_limited(launcher: Launcher, tmp_path: Path) -> None:
    lines = [
        "import torch",
        "w = torch.nn.Parameter(torch.ones(1))",
        "optimizer = torch.optim.SGD([w], lr=0.1)",
        "while True:",
        "    (w * w).sum().backward()",
        "    optimizer.step()",
    ]
    seen = run(launcher, tmp_path, *lines, steps=3)
    assert (seen.outcome, seen.text, len(seen.losses)) == (Outcome.LIMIT, "limit reached: 3 optimizer steps", 3)


def test_step_limit_cannot_be_caught_for_ever(launcher: Launcher, tmp_path: Path) -> None:
    lines = [
        "import torch",
        "w = torch.nn.Parameter(torch.ones(1))",
        "optimizer = torch.optim.SGD([w], lr=0.1)",
        "while True:",
        "    try:",
        "        optimizer.step()",
        "    except:",
        "        pass",
    ]
    assert run(launcher, tmp_path, *lines, steps=3).steps == 4


@pytest.mark.parametrize(
    ("line", "outcome", "text"),
    [
        ("raise SystemExit", Outcome.FINISHED, "finished"),
        ("sys.exit(0)", Outcome.FINISHED, "finished"),
        ("sys.exit(4)", Outcome.OTHER_STOP, "stopped for another reason at line 3: sys.exit(4)"),
        ("sys.exit('no data')", Outcome.OTHER_STOP, "stopped for another reason at line 3: sys.exit(no data)"),
        ("os._exit(0)", Outcome.FINISHED, "finished by os._exit(0)"),
        ("os._exit(3)", Outcome.OTHER_STOP, "stopped for another reason at line 3: os._exit(3)"),
        ("os.kill(os.getpid(), 11)", Outcome.OTHER_STOP, "stopped for another reason at line 3: the process died by"),
        ("os.abort()", Outcome.OTHER_STOP, "stopped for another reason at line 3: the process died by SIGABRT"),
        ("input()", Outcome.OTHER_STOP, "stopped for another reason at line 3: EOFError: EOF when reading a line"),
        ("open('data.csv')", Outcome.OTHER_STOP, "stopped for another reason at line 3: FileNotFoundError:"),
        ("import nosuchmodule", Outcome.OTHER_STOP, "stopped for another reason at line 3: ModuleNotFoundError:"),
    ],
)
def test_ends(launcher: Launcher, tmp_path: Path, line: str, outcome: Outcome, text: str) -> None:
    seen = run(launcher, tmp_path, "import os", "import sys", line)
    assert seen.outcome is outcome
    assert seen.text.startswith(text)


LATER = f"y = {MIXED}"
WHY_NOTHING_CAN_BE_CONCLUDED = {
    "never ends": (["import time", "while True:", "    time.sleep(0.01)"], "limit reached: 2 s, at line 4"),
    "os._exit": (["import os", "os._exit(0)"], "finished by os._exit(0)"),
    "changes directory": (["import os", "os.chdir('/')", "raise OSError('lost')"], "at line 4: OSError: lost"),
    "replaces argv": (["import sys", "sys.argv = ['x']", "sys.exit('no option')"], "at line 4: sys.exit(no option)"),
    "missing dataset": (["open('data/train.csv')"], "at line 2: FileNotFoundError"),
    "missing package": (["import nosuchpackage"], "at line 2: ModuleNotFoundError: No module named 'nosuchpackage'"),
    "broken module": (["import broken"], "at line 2: SyntaxError: '(' was never closed (broken.py, line 1)"),
    "opens stdin": (["name = input()"], "at line 2: EOFError"),
    "crashes in native code": (["import ctypes", "ctypes.string_at(0)"], "at line 3: the process died by SIGSEGV"),
}


@pytest.mark.parametrize("case", WHY_NOTHING_CAN_BE_CONCLUDED)
def test_why_nothing_can_be_concluded_of_a_fix_further_down(case: str, launcher: Launcher, tmp_path: Path) -> None:
    lines, why = WHY_NOTHING_CAN_BE_CONCLUDED[case]
    (tmp_path / "broken.py").write_text("x = (\n", encoding="utf-8")
    pids = tmp_path / "pids"
    note = f"import os, torch; print(os.getpid(), file=open({str(pids)!r}, 'a'))"
    text = "\n".join([note, *lines, LATER]) + "\n"
    path = tmp_path / "train.py"
    path.write_text(text, encoding="utf-8")
    modules = set(sys.modules)
    fix = case_from_row({"code": "DEV101", "at": MIXED, "replace": [["ones(3) +", "ones(3, device='cuda') +"]]}, text)
    request = Request(str(path), device="sim", timeout=2.0 if case == "never ends" else 20.0)
    judgement = verify(request, text, [fix], Runner(request, launcher)).fixes[0].judgement
    assert judgement.verdict in (Verdict.COULD_NOT_JUDGE, Verdict.NOT_REACHED)
    assert why in "\n".join(judgement.evidence)
    started = pids.read_text(encoding="utf-8").split()
    assert started and not any(map(is_running, started))
    assert "torch" not in set(sys.modules) - modules  # nothing of it happened here


def is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def test_fix_at_the_line_where_the_data_are_missing_cannot_be_judged(launcher: Launcher, tmp_path: Path) -> None:
    text = "import torch\nstate = torch.load('missing.pt')\n"
    path = tmp_path / "resume.py"
    path.write_text(text, encoding="utf-8")
    fix = case_from_row(
        {"code": "DEV208", "at": "torch.load", "replace": [["'missing.pt'", "'missing.pt', map_location='cpu'"]]}, text
    )
    request = Request(str(path), device="sim", timeout=20.0)
    judgement = verify(request, text, [fix], Runner(request, launcher)).fixes[0].judgement
    assert judgement.verdict is Verdict.COULD_NOT_JUDGE
    assert "the runs ended at line 2, with and without the fix" in judgement.evidence[0]


def test_program_that_catches_all_exceptions_is_judged_by_what_it_caught(launcher: Launcher, tmp_path: Path) -> None:
    text = f"import torch\nfor _ in range(3):\n    try:\n        {MIXED}\n    except BaseException:\n        pass\n"
    path = tmp_path / "swallow.py"
    path.write_text(text, encoding="utf-8")
    fix = case_from_row({"code": "DEV101", "at": MIXED, "replace": [["ones(3) +", "ones(3, device='cuda') +"]]}, text)
    request = Request(str(path), device="sim", timeout=20.0)
    judgement = verify(request, text, [fix], Runner(request, launcher)).fixes[0].judgement
    assert judgement.verdict is Verdict.CONFIRMED
    assert "(caught by the program)" in judgement.evidence[0]


def test_program_that_clears_the_temporary_folder(
    launcher: Launcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    lines = [
        "import os, shutil, torch",
        f"for each in os.listdir({str(folder)!r}):",
        f"    shutil.rmtree(os.path.join({str(folder)!r}, each))",
        "x = torch.ones(3, device='cuda').sum()",
    ]
    seen = run(launcher, tmp_path, *lines)
    assert (seen.text, seen.counts["3"], list(folder.iterdir())) == ("finished", 1, [])


def test_program_that_moves_away_keeps_its_places(launcher: Launcher, tmp_path: Path) -> None:
    lines = ["import os, torch", "os.mkdir('deep')", "os.chdir('deep')", MIXED]
    lines[1] = f"os.makedirs({str(tmp_path / 'deep')!r})"
    lines[2] = f"os.chdir({str(tmp_path / 'deep')!r})"
    seen = run(launcher, tmp_path, *lines)
    assert seen.stop is not None and (seen.stop.where, seen.outcome) == ("line 4", Outcome.DEVICE_FAULT)


def test_fault_that_the_program_catches_is_seen(launcher: Launcher, tmp_path: Path) -> None:
    lines = ["import torch", "try:", f"    {MIXED}", "except Exception:", "    pass"]
    seen = run(launcher, tmp_path, *lines)
    assert seen.outcome is Outcome.FINISHED
    assert [(caught.line, caught.count) for caught in seen.caught] == [(3, 1)]


def test_fault_that_ends_the_program_is_not_also_caught(launcher: Launcher, tmp_path: Path) -> None:
    seen = run(launcher, tmp_path, "import torch", MIXED)
    assert seen.outcome is Outcome.DEVICE_FAULT
    assert seen.stop is not None and seen.stop.line == 2
    assert seen.caught == ()


@pytest.mark.parametrize("size", [1500, 2500, 9000])
def test_fault_with_a_long_message_that_ends_the_program_is_not_also_caught(
    launcher: Launcher, tmp_path: Path, size: int
) -> None:
    """The error of a custom function's gradient quotes the name of its class."""
    seen = run(
        launcher,
        tmp_path,
        "import torch",
        "forward = staticmethod(lambda ctx, x: x * 2)",
        "backward = staticmethod(lambda ctx, gradient: torch.ones(3))",
        f"Double = type('Double' * {size // 6}, (torch.autograd.Function,), dict(forward=forward, backward=backward))",
        "result = Double.apply(torch.ones(3, device='cuda', requires_grad=True))",
        "result.sum().backward()",
    )
    assert seen.stop is not None and "DoubleDoubleDouble" in seen.stop.text
    assert (seen.stop.line, seen.outcome) == (6, Outcome.DEVICE_FAULT)
    assert seen.caught == ()


def test_fault_in_an_imported_module_names_both_places(launcher: Launcher, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(f"import torch\ndef add():\n    {MIXED}\n", encoding="utf-8")
    seen = run(launcher, tmp_path, "import helper", "helper.add()")
    assert seen.stop is not None
    assert seen.stop.where.endswith("helper.py:3, called from line 2")


def test_forked_child_does_not_report_for_its_parent(launcher: Launcher, tmp_path: Path) -> None:
    lines = ["import os", "if os.fork() == 0:", "    raise ValueError('child')", "os.wait()", "done = True"]
    seen = run(launcher, tmp_path, *lines)
    assert seen.outcome is Outcome.FINISHED
    assert seen.counts["4"] == 0 and seen.ran("4")  # only the child came to line 3


def test_nothing_is_left_running(launcher: Launcher, tmp_path: Path) -> None:
    lines = [
        "import os, subprocess, sys",
        "sleep = 'import time; time.sleep(600)'",
        "child = subprocess.Popen([sys.executable, '-c', sleep], start_new_session=True)",
        "open('pid', 'w').write(str(child.pid))",
        "os._exit(0)",
    ]
    lines[3] = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))"
    run(launcher, tmp_path, *lines)
    pid = int((tmp_path / "pid").read_text())
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().split()[2]:
            break
        time.sleep(0.02)
    else:
        pytest.fail(f"process {pid} still runs")


def test_program_sees_itself_as_if_started_plainly(launcher: Launcher, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    lines = [
        "import inspect, os, pickle, sys",
        "class Thing: pass",
        f"assert __name__ == '__main__' and __file__ == {str(path)!r}",
        f"assert sys.argv == [{str(path)!r}] and sys.path[0] == {str(tmp_path)!r}",
        f"assert os.getcwd() == {os.getcwd()!r}",
        "assert sys.modules['__main__'].Thing is Thing and pickle.loads(pickle.dumps(Thing)) is Thing",
        "assert inspect.getsource(Thing) == 'class Thing: pass\\n'",
        "assert sys.stdin.read() == ''",
    ]
    assert run(launcher, tmp_path, *lines).text == "finished"


def test_program_that_replaces_argv_and_closes_all_files(launcher: Launcher, tmp_path: Path) -> None:
    lines = ["import os, sys", "sys.argv = ['x']", "os.closerange(3, 64)", "y = 1"]
    seen = run(launcher, tmp_path, *lines, device="cpu")
    assert seen.text == "finished"


def test_much_output_is_cut(launcher: Launcher, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    text = "for _ in range(2000):\n    print('x' * 1000)\nprint('end')\n"
    path.write_text(text, encoding="utf-8")
    files = {str(path): File(text, 0, 3)}
    ended = launcher.run(Job(str(path), str(path), (), (), files, statements=3, device="cpu", timeout=20.0))
    assert len(ended.stdout) < 200_000
    assert ended.stdout.startswith("[") and ended.stdout.endswith("end\n")


def test_fresh_interpreter_does_the_same(tmp_path: Path) -> None:
    with Launcher(forks=False) as launcher:
        seen = run(launcher, tmp_path, "import torch", "torch.ones(2) @ torch.ones(3)", device="cpu")
    assert seen.text.startswith("stopped for another reason at line 2: RuntimeError")


def test_launcher_recovers_from_the_loss_of_its_helper(tmp_path: Path) -> None:
    with Launcher() as launcher:
        lost = run(launcher, tmp_path, "import os, signal", "os.kill(os.getppid(), signal.SIGKILL)")
        assert lost.outcome in (Outcome.OTHER_STOP, Outcome.LIMIT, Outcome.FINISHED)
        assert run(launcher, tmp_path, "x = 1").outcome is Outcome.FINISHED


def test_what_cannot_be_simulated_is_not_held_against_the_program(launcher: Launcher, tmp_path: Path) -> None:
    seen = run(launcher, tmp_path, "import torch", "graph = torch.cuda.CUDAGraph()")
    assert seen.outcome is Outcome.CANNOT_SIMULATE
    assert "CUDAGraph" in seen.text


def test_nothing_is_written_beside_the_program(launcher: Launcher, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("value = 1\n", encoding="utf-8")
    text = f"import torch\nimport helper\nx = {MIXED}\n"
    path = tmp_path / "train.py"
    path.write_text(text, encoding="utf-8")
    fix = case_from_row({"code": "DEV101", "at": MIXED, "replace": [["ones(3) +", "ones(3, device='cuda') +"]]}, text)
    request = Request(str(path), device="sim", timeout=20.0)
    report = verify(request, text, [fix], Runner(request, launcher))
    assert [each.judgement.verdict for each in report.fixes] == [Verdict.CONFIRMED]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["helper.py", "train.py"]
    assert path.read_text(encoding="utf-8") == text

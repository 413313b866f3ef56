"""`devlint run`: the program stays as it is, and the report names what is wrong on an accelerator."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from devlint.errors import UsageError
from devlint.runtime.run import main
from tests.runtime.running import DEVICE, Run

pytest.importorskip("torch")
pytestmark = [
    pytest.mark.runtime,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the programs run in forks of one process with torch"),
]

# --------------------------------------------------------------------------------------------- whose tensor it was


def test_batch_left_on_the_host_is_named_where_it_came_from(run: Run) -> None:
    ended = run(
        DEVICE
        + """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(4, 2)
    def forward(self, x):
        return self.head(x)

def train(model, loader):
    for batch in loader:
        model(batch)

train(Net().to(device), [torch.randn(3, 4)])
"""
    )
    assert ended.status == 1
    found = ended.finding("DEV103")
    assert (found["kind"], found["line"]) == ("error", 8)
    assert found["details"][0] == "left behind: `batch`, float32[3, 4] on cpu, at train.py:12 in train"
    assert "together with: `model.head.weight`, float32[2, 4] on cuda:0, at train.py:12 in train" in found["details"]
    assert found["summary"] == "DEV103 module-input-device train.py:8 in forward"


def test_tensor_from_a_factory_is_named_with_its_birthplace(run: Run) -> None:
    ended = run(DEVICE + "x = torch.ones(3, device=device)\nshift = torch.arange(3.0)\nx + shift\n")
    found = ended.finding("DEV102")
    assert found["details"] == [
        "left behind: `shift`, float32[3] on cpu, made at train.py:4 by torch.arange(3.0)",
        "together with: `x`, float32[3] on cuda:0",
    ]


def test_tensor_without_a_name_is_shown_by_the_call_that_made_it(run: Run) -> None:
    ended = run(DEVICE + "x = torch.ones(3, device=device)\nx + torch.zeros(3)\n")
    assert ended.finding("DEV102")["details"][0] == "left behind: `torch.zeros(3)`, float32[3] on cpu"


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (
            "net = torch.nn.DataParallel(torch.nn.Linear(3, 2), device_ids=[0]).cpu()\nnet(torch.ones(4, 3, device=device))",
            "DEV601",
        ),
        ("opt = torch.optim.SGD(torch.nn.Linear(3, 2).parameters(), lr=1)\nopt.to(device)", "DEV301"),
        ("torch.optim.lr_scheduler.StepLR(torch.optim.SGD([torch.ones(1)], lr=1), 1).cuda()", "DEV301"),
    ],
)
def test_error_that_names_no_operands_has_the_rule_of_its_line(run: Run, lines: str, code: str) -> None:
    ended = run(DEVICE + lines + "\n")
    assert ended.status == 1
    assert (ended.finding(code)["kind"], ended.finding(code)["line"]) == ("error", 2 + lines.count("\n") + 1)


def test_plain_attribute_of_a_module(run: Run) -> None:
    ended = run(
        DEVICE
        + """\
class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = torch.ones(3)
    def forward(self, x):
        return x * self.factor
scale = Scale().to(device)
scale(torch.ones(3, device=device))
"""
    )
    assert ended.finding("DEV106")["details"][0].startswith("left behind: `scale.factor`, float32[3] on cpu")


def test_model_that_was_never_moved(run: Run) -> None:
    ended = run(DEVICE + "model = torch.nn.Linear(3, 3)\nmodel(torch.ones(1, 3, device=device))\n")
    assert "left behind: `model.weight`, float32[3, 3] on cpu" in ended.finding("DEV103")["details"]


def test_tensor_in_a_dictionary(run: Run) -> None:
    ended = run(DEVICE + 'batch = {"x": torch.rand(3).double()}\nbatch["x"] + torch.ones(3, device=device)\n')
    assert "left behind: `batch['x']`, float64[3] on cpu" in ended.finding("DEV101")["details"]


def test_two_cards(run: Run) -> None:
    ended = run(
        DEVICE + 'a = torch.ones(3, device="cuda:0")\nb = torch.ones(3, device="cuda:1")\na + b\n', device="sim:2"
    )
    assert ended.finding("DEV101")["details"][0] == "left behind: `b`, float32[3] on cuda:1"


def test_host_conversion(run: Run) -> None:
    ended = run(DEVICE + "loss = torch.ones(3, device=device)\nloss.numpy()\n")
    assert ended.finding("DEV109")["message"].startswith("can't convert cuda:0 device type tensor to numpy")


def test_caught_device_error_is_a_warning(run: Run) -> None:
    ended = run(
        DEVICE
        + """\
x = torch.ones(3, device=device)
for _ in range(3):
    try:
        x + torch.ones(3)
    except RuntimeError:
        pass
"""
    )
    assert ended.status == 0
    found = ended.finding("DEV102")
    assert found["kind"] == "warning"
    assert found["message"].endswith("(caught by the program, 3 times)")


def test_objects_that_refuse_to_be_looked_at_do_not_hide_the_error(run: Run) -> None:
    ended = run(
        DEVICE
        + """\
class Stubborn:
    def __getattr__(self, name):
        raise ValueError(name)
    @property
    def __dict__(self):
        raise ValueError("no")
stubborn = Stubborn()
torch.ones(3, device=device) + torch.ones(3)
"""
    )
    assert "same device" in ended.finding("DEV102" if "DEV102" in ended.codes else "DEV101")["message"]


# ------------------------------------------------------------------------------------------- figures of the device


LOOP = (
    DEVICE
    + """\
import time
weight = torch.nn.Parameter(torch.ones(4, device=device))
optimizer = torch.optim.SGD([weight], lr=0.1)
kept = []
for step in range(8):
    start = time.perf_counter()
    batch = torch.ones(4).add(1).to(device)
    loss = (weight * batch).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append(KEPT)
    took = time.perf_counter() - start
    print(loss.item())
"""
)


def test_clock_read_with_work_queued(run: Run) -> None:
    ended = run(LOOP.replace("KEPT", "0"))
    (found,) = [each for each in ended.report["findings"] if (each["code"], each["line"]) == ("DEV401", 15)]
    assert (found["count"], found["kind"]) == (8, "warning")


def test_waiting_in_every_step(run: Run) -> None:
    found = run(LOOP.replace("KEPT", "0")).finding("DEV502")
    assert (found["line"], found["count"], found["kind"]) == (16, 8, "note")


MOVES = """\
import numpy
scale, buffer = torch.ones(4), numpy.zeros(4, numpy.float32)
shared = torch.from_numpy(buffer)
for step in range(6):
    batch = torch.ones(4).add(step)
    buffer += 1
    WHAT.to(device)
"""


def test_the_same_tensor_moved_in_every_step(run: Run) -> None:
    found = run(DEVICE + MOVES.replace("WHAT", "scale")).finding("DEV503")
    assert (found["line"], found["count"], found["bytes"]) == (9, 6, 6 * 16)
    assert found["message"].endswith("5 times the same unchanged data as in the previous copy")


def test_two_moves_on_one_line_of_which_one_is_the_same(run: Run) -> None:
    found = run(DEVICE + MOVES.replace("WHAT.to(device)", "batch.to(device) * scale.to(device)")).finding("DEV503")
    assert found["message"].endswith("5 times the same unchanged data as in the previous copy")


@pytest.mark.parametrize("moved", ["batch", "scale.add_(1)", "shared"])
def test_new_data_moved_in_every_step_is_no_finding(run: Run, moved: str) -> None:
    ended = run(DEVICE + MOVES.replace("WHAT", moved))
    assert ended.codes == []
    assert sum(event["bytes"] for event in ended.report["events"] if event["kind"] == "transfer") == 6 * 16


def test_transfers_are_listed_by_line(run: Run) -> None:
    ended = run(DEVICE + MOVES.replace("WHAT", "batch"), options=())
    assert "    train.py:9: host to device 6 times, 96 B" in ended.err.splitlines()


def test_memory_that_grows_with_a_kept_graph(run: Run) -> None:
    found = run(LOOP.replace("KEPT", "loss")).finding("DEV508")
    assert found["line"] == 13
    assert found["details"][0] == "kept: `kept` holds tensors with their graph"


def test_running_total_with_its_graph(run: Run) -> None:
    text = LOOP.replace("kept = []", "total = 0").replace("kept.append(KEPT)", "total = total + loss")
    found = run(text.replace("loss.backward()", "loss.backward(retain_graph=True)")).finding("DEV508")
    assert found["details"][0] == "kept: `total` adds up tensors with their graph"


def test_memory_that_does_not_grow(run: Run) -> None:
    ended = run(LOOP.replace("KEPT", "loss.detach().cpu()"))
    assert "DEV508" not in ended.codes
    assert len(ended.report["memory"]) == 8


def test_made_and_moved(run: Run) -> None:
    ended = run(DEVICE + "mask = torch.zeros(5).to(device)\n")
    assert ended.finding("DEV501")["bytes"] == 20


def test_read_of_an_unfinished_copy_is_an_error(run: Run) -> None:
    ended = run(DEVICE + 'x = torch.ones(3, device=device)\ny = x.to("cpu", non_blocking=True)\nprint(y.sum())\n')
    assert ended.status == 1
    assert ended.finding("DEV505")["line"] == 5


def test_event_asked_too_early(run: Run) -> None:
    ended = run(
        DEVICE
        + """\
start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
start.record()
torch.ones(3, device=device)
end.record()
start.elapsed_time(end)
"""
    )
    assert ended.finding("DEV402")["line"] == 7


# ------------------------------------------------------------------------------------------- the program's own ways


def test_clean_program(run: Run) -> None:
    ended = run("import sys\nprint('hello', sys.argv)\n", "--epochs", "1")
    assert (ended.status, ended.out) == (0, "hello ['train.py', '--epochs', '1']\n")
    assert ended.report["findings"] == []


@pytest.mark.parametrize(
    ("leave", "status"),
    [
        ("sys.exit(7)", 7),
        ("sys.exit('done')", 1),
        ("os._exit(5)", 5),
        ("raise ValueError('mine')", 1),
        ("threading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()", 0),
        ("atexit.register(lambda: print(torch.ones(2, device='cuda').device))", 0),
    ],
)
def test_exit_status_is_the_programs(run: Run, leave: str, status: int) -> None:
    ended = run(f"import atexit, os, sys, threading, time, torch\n{leave}\n")
    assert ended.status == status
    assert ended.report["exit"]["program"] == status
    assert ended.out == {"t": "late\n", "a": "cuda:0\n"}.get(leave[0] if leave[1] in "ht" else "", "")


def test_own_error_keeps_its_traceback_and_is_no_finding(run: Run) -> None:
    ended = run("def inner():\n    raise ValueError('mine')\ninner()\n")
    assert ended.err.startswith("Traceback (most recent call last):\n")
    assert 'train.py", line 2, in inner' in ended.err
    assert ended.report["findings"] == []


def test_traceback_of_a_device_error_has_no_frame_of_the_simulator(run: Run) -> None:
    ended = run(DEVICE + "torch.ones(3, device=device) + torch.ones(3)\n", options=())
    assert "simulator" not in ended.err
    assert "RuntimeError: Expected all tensors to be on the same device" in ended.err


def test_syntax_error_in_the_program_is_said_before_anything_is_run(run: Run) -> None:
    ended = run("print('ran')\ndef f(:\n")
    assert (ended.status, ended.out) == (2, "")
    assert ended.err == "error: train.py:2:7: SyntaxError: invalid syntax; nothing was run\n"


def test_syntax_error_in_a_module_of_the_program_ends_it(run: Run) -> None:
    ended = run("import os\nwith open('broken.py', 'w') as file:\n    file.write('x = (')\nimport broken\n")
    assert ended.status == 1
    assert "SyntaxError: '(' was never closed" in ended.err


def test_what_cannot_be_simulated_is_named_and_no_finding(run: Run) -> None:
    ended = run("import torch\ntorch.cuda.CUDAGraph()\n")
    assert ended.status == 3
    assert ended.report["findings"] == []
    assert "torch.cuda.CUDAGraph cannot be simulated" in ended.report["exit"]["how"]


def test_limit_of_steps(run: Run) -> None:
    ended = run(LOOP.replace("KEPT", "0"), options=("--json", "--steps", "3"))
    assert (ended.status, ended.report["steps"]) == (0, 3)
    assert len(ended.out.splitlines()) == 2


def test_program_that_changes_its_folder_and_closes_its_streams(run: Run) -> None:
    ended = run("import os, sys\nos.mkdir('other')\nos.chdir('other')\nsys.stdout.close()\nsys.stderr.close()\n")
    assert ended.status == 0
    assert ended.report["exit"]["program"] == 0


def test_text_report_ends_with_a_count_and_has_one_summary_for_each_finding(run: Run) -> None:
    ended = run(DEVICE + "x = torch.ones(3, device=device)\nx + torch.ones(3)\n", options=())
    lines = ended.err.splitlines()
    assert lines[-1] == "devlint: 1 error, 0 warnings, 0 notes"
    assert "    summary: DEV102 new-tensor-default-device train.py:4" in lines
    assert "devlint: simulated cuda, CPU kernels, torch" in ended.err


def test_report_in_a_file(run: Run, tmp_path: Path) -> None:
    ended = run("print(1)\n", options=("--json", "--output", "report.json"))
    assert ended.err == ""
    assert json.loads((tmp_path / "project" / "report.json").read_text())["exit"]["status"] == 0


def test_module_by_name(run: Run) -> None:
    program = "import sys\nprint(__name__, sys.argv[1:])\n"
    ended = run(program, "--epochs", "1", options=("--json", "-m"), script="train")
    assert ended.out == "__main__ ['--epochs', '1']\n"
    assert ended.report["program"] == "train"


def test_another_kind(run: Run) -> None:
    ended = run("import torch\nprint(torch.xpu.device_count(), torch.cuda.is_available())\n", device="sim:xpu:2")
    assert ended.out == "2 False\n"


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ([], "which program"),
        (["nothing.py"], "nothing.py is not a file"),
        (["--device", "gpu", __file__], "known devices"),
        (["--steps", "0", __file__], "at least 1"),
        (["--wrong", __file__], "--wrong"),
    ],
)
def test_wrong_usage(argv: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        main(argv)


# ------------------------------------------------------------------------------------------- threads and signals

THREAD = """\
import threading
def work():
    torch.ones(2, device=device) + torch.ones(2)
"""


def test_error_that_ends_a_thread_is_an_error_and_not_caught(run: Run) -> None:
    ended = run(
        DEVICE + THREAD + "t = threading.Thread(target=work, name='loader')\nt.start()\nt.join()\nprint('on')\n"
    )
    assert (ended.status, ended.out) == (1, "on\n")
    found = ended.finding("DEV102")
    assert (found["kind"], found["details"][-1]) == ("error", "it ended the thread loader")
    assert "caught" not in found["message"]


def test_error_that_a_thread_catches_is_caught(run: Run) -> None:
    caught = "def work_on():\n    try:\n        work()\n    except RuntimeError:\n        print('no')\n"
    ended = run(DEVICE + THREAD + caught + "t = threading.Thread(target=work_on)\nt.start()\nt.join()\n")
    assert (ended.status, ended.out) == (0, "no\n")
    assert "(caught by the program, once)" in ended.finding("DEV102")["message"]


def test_error_of_an_executor_that_is_asked_for_is_caught(run: Run) -> None:
    asked = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(1) as pool:\n"
        "    print(type(pool.submit(work).exception()).__name__)\n"
    )
    ended = run(DEVICE + THREAD + asked)
    assert (ended.status, ended.out) == (0, "RuntimeError\n")
    assert ended.finding("DEV102")["kind"] == "warning"


TERMINATED = "import os, signal, time\nx = torch.ones(3, device=device)\nfor _ in range(3): x.sum().item()\n"


def test_program_that_is_terminated_leaves_a_report(run: Run) -> None:
    ended = run(DEVICE + TERMINATED + "os.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(30)\n")
    assert ended.status == -15
    assert ended.report["exit"]["how"] == "ended by SIGTERM"
    assert "DEV502" in ended.codes


def test_program_that_handles_the_signal_ends_as_it_wants(run: Run) -> None:
    handled = "signal.signal(signal.SIGTERM, lambda *a: exit(5))\nos.kill(os.getpid(), signal.SIGTERM)\n"
    ended = run(DEVICE + TERMINATED + handled)
    assert ended.status == 5
    assert "DEV502" in ended.codes


def test_started_process_that_is_terminated_leaves_a_report(run: Run) -> None:
    child = DEVICE + TERMINATED + "os.kill(os.getpid(), signal.SIGTERM)\n"
    ended = run(f"import subprocess, sys, torch\nprint(subprocess.run([sys.executable, '-c', {child!r}]).returncode)\n")
    assert (ended.status, ended.out) == (0, "-15\n")
    assert "DEV502" in ended.codes

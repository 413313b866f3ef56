"""`devlint run`: the processes that a program starts are on the same device, and their findings join the report."""

from __future__ import annotations

import os
from typing import Any

import pytest

from devlint.runtime.family import Report, merged
from devlint.runtime.findings import Finding
from tests.runtime.running import Ended, Run

pytest.importorskip("torch")
pytestmark = [
    pytest.mark.runtime,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the programs run in forks of one process with torch"),
]

WORK = """\
import sys, torch, torch.multiprocessing as mp
def work(rank, bad):
    card = torch.device("cuda", rank)
    weight = torch.nn.Parameter(torch.ones(3, device=card))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(4):
        loss = (weight * torch.ones(3, device=card)).sum()
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        print(rank, loss.item())
    if bad:
        weight + torch.ones(3)
"""
LOADER = """\
import torch
from torch.utils.data import DataLoader, Dataset
class Numbers(Dataset):
    scale = torch.ones(3, device="cuda")
    def __len__(self):
        return 4
    def __getitem__(self, number):
        return ITEM
for batch in DataLoader(Numbers(), 2, num_workers=1, multiprocessing_context="fork"):
    batch.to("cuda")
"""


def named(ended: Ended, code: str) -> str:
    """In which processes a finding was made."""
    return str(ended.finding(code)["details"][-1])


def test_spawned_workers_are_on_the_device_and_equal_findings_are_one(run: Run) -> None:
    ended = run(WORK + 'if __name__ == "__main__":\n    mp.spawn(work, (False,), nprocs=2)\n', device="sim:2")
    assert (ended.status, len(ended.report["processes"])) == (0, 2)
    assert (ended.finding("DEV502")["line"], ended.finding("DEV502")["count"]) == (9, 4)
    assert named(ended, "DEV502") == "in 2 processes: SpawnProcess-1, SpawnProcess-2"
    assert [each["steps"] for each in ended.report["processes"]] == [4, 4]


def test_error_of_a_spawned_worker_is_found_once_where_it_arose(run: Run) -> None:
    ended = run(WORK + 'if __name__ == "__main__":\n    mp.spawn(work, (True,), nprocs=1)\n')
    assert ended.status == 1
    assert [each["line"] for each in ended.report["findings"] if each["kind"] == "error"] == [11]
    assert "simulator" not in ended.err.partition('{"program"')[0]


def test_process_that_nobody_asks_how_it_ended(run: Run) -> None:
    ended = run(WORK + 'if __name__ == "__main__":\n    p = mp.Process(target=work, args=(0, True))\n'
                "    p.start(); p.join()\n")  # fmt: skip
    assert (ended.report["exit"]["program"], ended.status) == (0, 1)
    assert ended.finding("DEV102")["kind"] == "error"


def test_error_of_a_forked_loader_worker(run: Run) -> None:
    ended = run(LOADER.replace("ITEM", "torch.ones(3).cuda()"))
    found = ended.finding("DEV605")
    assert (found["kind"], found["line"]) == ("error", 8)
    assert found["message"].startswith("Cannot re-initialize CUDA in forked subprocess")


def test_card_tensor_in_a_forked_loader_worker(run: Run) -> None:
    found = run(LOADER.replace("ITEM", "self.scale * number")).finding("DEV605")
    assert (found["line"], found["message"]) == (8, "CUDA error: initialization error")


def test_forked_worker_that_stays_on_the_host_has_nothing_to_report(run: Run) -> None:
    ended = run(LOADER.replace("ITEM", "torch.ones(3) * number"))
    assert (ended.status, ended.report["processes"]) == (0, [])
    assert [(each["direction"], each["count"]) for each in ended.report["events"]] == [("h2d", 2)]


def test_fork_before_the_device_is_used(run: Run) -> None:
    ended = run("""\
        import os, torch
        if os.fork() == 0:
            torch.ones(3, device="cuda").sum().item() + torch.ones(3, device="cuda").sum().item()
            os._exit(0)
        os.wait()
        print(torch.ones(2, device="cuda").device)
        """)
    assert (ended.status, ended.out) == (0, "cuda:0\n")
    assert [each["events"][0]["count"] for each in ended.report["processes"]] == [2]


def test_forked_child_that_runs_to_the_programs_end(run: Run) -> None:
    ended = run("import os, torch\nchild = os.fork() == 0\nx = torch.ones(3, device='cuda')\n"
                "if child:\n    x + torch.ones(3)\nos.wait()\n")  # fmt: skip
    assert ended.finding("DEV102")["line"] == 5
    assert ended.report["exit"]["program"] == 0


def test_subprocess(run: Run) -> None:
    child = "import torch; x = torch.ones(3, device='cuda'); print(torch.cuda.device_count(), flush=True); x.numpy()"
    ended = run(f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])\n", device="sim:2")
    assert (ended.out, ended.status) == ("2\n", 1)
    assert named(ended, "DEV109").startswith("in process ")


def test_program_that_starts_itself_anew(run: Run) -> None:
    ended = run(
        "import os, sys\nif len(sys.argv) == 1:\n    os.execv(sys.executable, [sys.executable, *sys.argv, 'again'])\n"
        "import torch\nprint(torch.ones(1, device='cuda').device, flush=True)\nsys.exit(5)\n"
    )
    assert (ended.out, ended.status) == ("cuda:0\n", 5)


def test_tensor_on_a_card_sent_to_another_process(run: Run) -> None:
    ended = run("""\
        import torch, torch.multiprocessing as mp
        def double(queue, model):
            with torch.no_grad():
                model.weight.mul_(2)
            print(queue.get().device, model.weight.device, flush=True)
        if __name__ == "__main__":
            context = mp.get_context("spawn")
            queue, model = context.Queue(), torch.nn.Linear(1, 1, device="cuda:1")
            before = model.weight.item()
            process = context.Process(target=double, args=(queue, model))
            process.start()
            queue.put(torch.ones(3, device="cuda:0"))
            process.join()
            print(model.weight.item() == 2 * before)
        """, device="sim:2")  # fmt: skip
    assert ended.out == "cuda:0 cuda:1\nTrue\n"


def test_workers_of_torchrun(run: Run) -> None:
    ended = run(
        """\
        import os, torch, torch.distributed as dist
        dist.init_process_group("nccl")
        rank = int(os.environ["LOCAL_RANK"])
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2).to(rank), device_ids=[rank])
        model(torch.ones(1, 2, device=rank)).sum().backward()
        torch.ones(2, device=rank) + torch.ones(2)
        """,
        "--nproc-per-node", "2", "--master-port", "29641", "train.py",
        options=("--json",), script="torchrun", device="sim:2",
    )  # fmt: skip
    assert ended.status == 1
    assert named(ended, "DEV102") in ("in 2 processes: rank 0, rank 1", "in rank 0", "in rank 1")
    assert ended.report["replaced"] == ["torch.distributed: backend gloo stands in for the card's own"]


def test_limit_of_steps_in_started_processes(run: Run) -> None:
    text = WORK.replace("range(4)", "iter(int, 1)") + (
        'if __name__ == "__main__":\n    mp.spawn(work, (False,), nprocs=1)\n    print("after")\n'
    )
    ended = run(text, options=("--json", "--steps", "3"))
    assert ended.out.endswith("after\n")
    assert [each["steps"] for each in ended.report["processes"]] == [3]


def test_what_a_started_process_cannot_do_is_no_fault_of_the_program(run: Run) -> None:
    child = "import torch; torch.cuda.CUDAGraph()"
    ended = run(f"import subprocess, sys\nsys.exit(subprocess.run([sys.executable, '-c', {child!r}]).returncode)\n")
    assert (ended.status, ended.report["findings"]) == (3, [])


def test_nothing_is_left_in_the_environment(run: Run) -> None:
    ended = run("import atexit, os, sys\nprint([path for path in sys.path if 'devlint-' in path])\n")
    assert ended.out == "[]\n"


def finding(**changes: Any) -> Finding:
    fields = {"code": "DEV502", "kind": "note", "message": "the host waited for cuda:0 4 times: item", "file": "a.py"}
    return Finding(**{**fields, "line": 3, "count": 4, **changes})


def test_the_same_line_on_another_card_is_one_finding() -> None:
    reports = [
        Report(1, "rank 0", findings=(finding(),)),
        Report(2, "rank 1", findings=(finding(message="the host waited for cuda:1 6 times: item", count=6),)),
    ]
    (found,) = merged([], reports)
    assert (found.count, found.details) == (6, ("in 2 processes: rank 0, rank 1",))


def test_another_operation_on_the_same_line_is_another_finding() -> None:
    reports = [Report(1, "a", findings=(finding(),)), Report(2, "b", findings=(finding(message="waited: nonzero"),))]
    assert len(merged([], reports)) == 2

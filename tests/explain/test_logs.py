"""Logs of every kind lead to the same answer as the bare traceback: bars, colours, stamps, ranks, lines in any order."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from devlint.explain.causes import explain
from devlint.explain.logs import cleaned

TRAIN = """import torch
from torch import nn


def make_noise(n):
    return torch.randn(n, 4)


def train_step(model, batch):
    noise = make_noise(len(batch))
    return model(batch + noise)


def main():
    model = nn.Linear(4, 2).cuda()
    batch = torch.ones(8, 4, device="cuda")
    for epoch in range(3):
        loss = train_step(model, batch).sum()
        loss.backward()


if __name__ == "__main__":
    main()
"""
ERROR = "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
TRACE = (
    "Traceback (most recent call last):",
    '  File "/app/train.py", line 23, in <module>',
    "    main()",
    '  File "/app/train.py", line 18, in main',
    "    loss = train_step(model, batch).sum()",
    "           ^^^^^^^^^^^^^^^^^^^^^^^^",
    '  File "/app/train.py", line 11, in train_step',
    "    return model(batch + noise)",
    "                 ~~~~~~^~~~~~~",
    ERROR,
)
BEFORE = ("loading data", "epoch 0 loss 0.69", "UserWarning: lr_scheduler.step() before optimizer.step()")
AFTER = ("shutting down", "done")
LOG = (*BEFORE, *TRACE, *AFTER)
TQDM = "Epoch 1:  45%|████▌     | 45/100 [00:03<00:04, 13.7it/s, loss=0.31]"
UNSIZED = "312it [00:22, 13.9it/s]"
RICH = (
    "Training \x1b[38;5;197m━━━━━━━━━━╸\x1b[0m\x1b[38;5;237m━━━━━━━━\x1b[0m \x1b[35m 45%\x1b[0m \x1b[36m0:00:04\x1b[0m"
)
KERAS = " 45/100 [============>.................] - ETA: 4s - loss: 0.31"
BARS = (TQDM, UNSIZED, RICH, KERAS)


def answer(log: str, tmp_path: Path) -> tuple[int, str, int, str]:
    """The row that failed, its function, and the first cause."""
    (tmp_path / "train.py").write_text(TRAIN, encoding="utf-8")
    found = explain(log, tmp_path)
    assert found is not None and found.where is not None and found.frame is not None
    place = found.causes[0].suspect.place
    return found.where[1], found.frame.name, place.row, place.file.path.name


RIGHT = (11, "train_step", 10, "train.py")


def joined(lines: tuple[str, ...] | list[str], end: str = "\n") -> str:
    return "".join(line + end for line in lines)


def test_the_bare_traceback(tmp_path: Path) -> None:
    assert answer(joined(TRACE), tmp_path) == RIGHT


# -- progress bars and what rewrites a line --------------------------------------------------------------------------------


@pytest.mark.parametrize("bar", BARS)
def test_a_bar_on_the_line_of_the_head(bar: str, tmp_path: Path) -> None:
    assert answer(f"\r{bar}\r{bar}{joined(TRACE)}", tmp_path) == RIGHT


@pytest.mark.parametrize("bar", BARS)
def test_a_bar_before_every_line(bar: str, tmp_path: Path) -> None:
    assert answer("".join(f"\r{bar}{line}\n" for line in TRACE), tmp_path) == RIGHT


@pytest.mark.parametrize("bar", BARS)
def test_lines_of_a_bar_between_all_lines(bar: str, tmp_path: Path) -> None:
    assert answer("".join(f"{bar}\n{line}\n" for line in TRACE), tmp_path) == RIGHT


@pytest.mark.parametrize("bar", ["step 12 loss 0.31", "45 of 100", "\x1b[2K⠙ fetching"])
def test_what_the_next_text_writes_over(bar: str, tmp_path: Path) -> None:
    assert answer("".join(f"{bar}\r{line}\n" for line in TRACE), tmp_path) == RIGHT


def test_backspaces(tmp_path: Path) -> None:
    bar = "45/100"
    back = "\b" * len(bar)
    assert answer("".join(f"{bar}{back}{line}\n" for line in TRACE), tmp_path) == RIGHT


@pytest.mark.parametrize("end", ["\r\n", "\r\r\n", "\r"])
def test_ends_of_lines(end: str, tmp_path: Path) -> None:
    assert answer(joined(LOG, end), tmp_path) == RIGHT


def test_a_line_that_is_no_bar_stays() -> None:
    text = "accuracy 45% | loss 0.3\nresult [======]\n 3/10 done\n"
    assert cleaned(text) == text


# -- colours ---------------------------------------------------------------------------------------------------------------


def colour_all(line: str) -> str:
    return f"\x1b[1;31m{line}\x1b[0m"


def colour_words(line: str) -> str:
    return line.replace("line", "\x1b[35mline\x1b[0m").replace("Error", "\x1b[31;1mError\x1b[m")


def colour_link(line: str) -> str:
    return line.replace("/app", "\x1b]8;;file:///app\x1b\\/app\x1b]8;;\x1b\\")


def colour_8_bit(line: str) -> str:
    return f"\x9b31m{line}\x9b0m"


@pytest.mark.parametrize("colour", [colour_all, colour_words, colour_link, colour_8_bit])
def test_colours(colour: Callable[[str], str], tmp_path: Path) -> None:
    assert answer("".join(f"{colour(line)}\n" for line in LOG), tmp_path) == RIGHT


# -- what stands before each line ------------------------------------------------------------------------------------------


def stamped(form: str) -> str:
    return "".join(form.format(n=number, s=f"{number:02}") + f"{line}\n" for number, line in enumerate(LOG))


@pytest.mark.parametrize(
    "form",
    [
        "2026-11-28T08:08:{s}.123456789Z ",
        "2026-11-28 08:08:{s},123 ERROR ",
        "[2026-11-28 08:08:{s}] ",
        "Nov 28 08:08:{s} node-7 python[812]: ",
        "08:08:{s} | ",
        "trainer-1  | ",
        "[pod/trainer-0/main] ",
        "[rank3]: ",
        "[default0]:",
        "(RayTrainWorker pid=812, ip=10.0.0.7) ",
        "<3> 17643170{s}.25 stderr F ",
        "\x1b[36mtrainer-1  |\x1b[0m 2026-11-28T08:08:{s}Z ",
    ],
)
def test_each_line_with_a_prefix(form: str, tmp_path: Path) -> None:
    assert answer(stamped(form), tmp_path) == RIGHT


@pytest.mark.parametrize("key", ["log", "message", "textPayload"])
def test_each_line_as_json(key: str, tmp_path: Path) -> None:
    text = joined([json.dumps({key: f"{line}\n", "stream": "stderr", "time": "2026-11-28T08:08:01Z"}) for line in LOG])
    assert answer(text, tmp_path) == RIGHT


def test_the_whole_traceback_in_one_record_of_json(tmp_path: Path) -> None:
    record = {"level": "error", "msg": "failed", "exc_info": "\n".join(TRACE), "ts": 1764317.5}
    assert answer(f'{{"msg": "start"}}\n{json.dumps(record)}\n', tmp_path) == RIGHT


# -- several processes -----------------------------------------------------------------------------------------------------

OTHER = tuple(line.replace("line 11, in train_step", "line 10, in train_step") for line in TRACE[:-1])
ENDED = "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1, remote process exited"


@pytest.mark.parametrize(
    "form", ["[rank{r}]: ", "trainer-{r}  | ", "[pod/trainer-{r}/main] ", "{r}: ", "2026-11-28T08:08:01Z [{r}] "]
)
def test_ranks_line_by_line(form: str, tmp_path: Path) -> None:
    lines = [f"{form.format(r=rank)}{line}" for line in TRACE for rank in range(4)]
    assert answer(joined(lines), tmp_path) == RIGHT


@pytest.mark.parametrize("form", ["[rank{r}]: ", "worker-{r} | "])
def test_ranks_with_other_errors(form: str, tmp_path: Path) -> None:
    traces = [TRACE, (*OTHER, ENDED), (*OTHER, ENDED)]
    lines = [f"{form.format(r=rank)}{trace[n]}" for n in range(len(TRACE)) for rank, trace in enumerate(traces)]
    assert answer(joined(lines), tmp_path) == RIGHT


def test_ranks_without_a_name(tmp_path: Path) -> None:
    assert answer(joined([line for line in TRACE for _ in range(2)]), tmp_path) == RIGHT


@pytest.mark.parametrize("seed", range(4))
def test_ranks_mixed_by_chance(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    queues = [[f"[rank{rank}]: {line}" for line in TRACE] for rank in range(3)]
    lines = []
    while any(queues):
        lines.append(chance.choice([queue for queue in queues if queue]).pop(0))
    assert answer(joined(lines), tmp_path) == RIGHT


# -- the order of lines ----------------------------------------------------------------------------------------------------


def test_the_newest_first(tmp_path: Path) -> None:
    assert answer(joined(LOG[::-1]), tmp_path) == RIGHT


@pytest.mark.parametrize("form", ["2026-11-28T08:08:{s}Z ", "08:08:{s} ", "trainer-1  | "])
def test_the_newest_first_with_prefixes(form: str, tmp_path: Path) -> None:
    assert answer(joined(stamped(form).splitlines()[::-1]), tmp_path) == RIGHT


def test_the_newest_first_within_one_second(tmp_path: Path) -> None:
    assert answer(joined([f"2026-11-28T08:08:01Z {line}" for line in LOG[::-1]]), tmp_path) == RIGHT


def test_the_newest_record_first_and_its_lines_in_order(tmp_path: Path) -> None:
    records = [
        "2026-11-28T08:08:03Z done",
        "2026-11-28T08:08:02Z failed\n" + "\n".join(TRACE),
        "2026-11-28T08:08:01Z on",
    ]
    assert answer(joined(records), tmp_path) == RIGHT


@pytest.mark.parametrize("seed", range(4))
def test_any_order_with_stamps(seed: int, tmp_path: Path) -> None:
    lines = stamped("2026-11-28T08:08:{s}Z ").splitlines()
    random.Random(seed).shuffle(lines)
    assert answer(joined(lines), tmp_path) == RIGHT


@pytest.mark.parametrize("seed", range(16))
def test_any_order_without_stamps(seed: int, tmp_path: Path) -> None:
    lines = list(LOG)
    random.Random(seed).shuffle(lines)
    assert answer(joined(lines), tmp_path) == RIGHT


def test_the_error_above_its_traceback(tmp_path: Path) -> None:
    assert answer(joined([ERROR, *TRACE[:-1]]), tmp_path) == RIGHT


def test_other_output_between_the_lines(tmp_path: Path) -> None:
    assert answer("".join(f"{line}\nepoch 1 step 3 loss 0.2\n" for line in TRACE), tmp_path) == RIGHT


def test_the_newest_error_of_a_log_with_the_newest_first(tmp_path: Path) -> None:
    early = [
        "Traceback (most recent call last):",
        '  File "/app/train.py", line 19, in main',
        "    loss.backward()",
        "RuntimeError: CUDA error: out of memory, found at least two devices, cuda:0 and cuda:1!",
    ]
    assert answer(joined([*early, *TRACE][::-1]), tmp_path) == RIGHT


# -- everything at once ----------------------------------------------------------------------------------------------------


def test_stamps_bars_colours_and_ranks(tmp_path: Path) -> None:
    lines = [
        f"2026-11-28T08:08:{n:02}Z \x1b[33m[rank{rank}]:\x1b[0m {line}\r\n\r{TQDM}\r"
        for n, line in enumerate(TRACE)
        for rank in range(2)
    ]
    assert answer("".join(lines), tmp_path) == RIGHT

"""The frames of a traceback, as Python, IPython, notebooks, rich and pytest print them."""

from __future__ import annotations

import time

import pytest

from devlint.explain.logs import cleaned, of_process
from devlint.explain.tracebacks import Frame, frames

PYTHON = """Traceback (most recent call last):
  File "/home/me/train.py", line 12, in <module>
    main()
    ~~~~^^
  File "/home/me/train.py", line 8, in main
    out = model(
          ^^^^^^
        x,
        ^^
    )
    ^
RuntimeError: Expected all tensors to be on the same device
"""
OF_PYTHON = [
    Frame("/home/me/train.py", 12, "<module>", "main()"),
    Frame("/home/me/train.py", 8, "main", "out = model("),
]
CELL = """      1 for x, y in loader:
----> 2     out = model(x)
      3     loss = crit(out, y)

"""
FIRST = 'Traceback (most recent call last):\n  File "a.py", line 3, in first\n    x.item()\nKeyError: 0\n\n'
SECOND = 'Traceback (most recent call last):\n  File "a.py", line 9, in second\n    model(x)\nRuntimeError: no\n'


def test_python() -> None:
    assert frames(PYTHON) == OF_PYTHON


def test_python_without_source_lines() -> None:
    text = '  File "train.py", line 12, in <module>\n  File "train.py", line 8, in main\nRuntimeError: no\n'
    assert frames(text) == [Frame("train.py", 12, "<module>"), Frame("train.py", 8, "main")]


def test_a_qualified_name_counts_by_its_last_part() -> None:
    assert frames('  File "train.py", line 8, in Trainer.step\n    model(x)\n')[0].name == "step"


def test_a_path_of_windows() -> None:
    (frame,) = frames('  File "C:\\Users\\me\\train.py", line 8, in main\n    model(x)\n')
    assert (frame.path, frame.code) == ("C:\\Users\\me\\train.py", "model(x)")


@pytest.mark.parametrize("head", ["<ipython-input-5-0abc> in <module>", "<ipython-input-5-0abc> in <module>()"])
def test_a_cell_of_old_ipython(head: str) -> None:
    assert frames(f"{head}\n{CELL}") == [Frame("<ipython-input-5-0abc>", 2, "<module>", "out = model(x)", 5)]


@pytest.mark.parametrize("head", ["Cell In [5], line 2", "Cell In[5], line 2", "Input In [5], in <cell line: 1>()"])
def test_a_cell(head: str) -> None:
    (frame,) = frames(f"{head}\n{CELL}")
    assert (frame.path, frame.row, frame.code, frame.cell) == ("<cell>", 2, "out = model(x)", 5)


def test_a_function_of_a_cell() -> None:
    text = "Cell In[5], line 2, in step(model, x)\n      1 def step(model, x):\n----> 2     return model(x)\n"
    assert frames(text) == [Frame("<cell>", 2, "step", "return model(x)", 5)]


def test_a_cell_of_a_kernel() -> None:
    (frame,) = frames(f"/tmp/ipykernel_12/345.py in <module>\n{CELL}")
    assert (frame.path, frame.row, frame.code) == ("/tmp/ipykernel_12/345.py", 2, "out = model(x)")


def test_a_cell_of_colab() -> None:
    (frame,) = frames(f"[<ipython-input-5-0abc>](https://localhost:8080/#) in <cell line: 1>()\n{CELL}")
    assert (frame.path, frame.row, frame.code) == ("<ipython-input-5-0abc>", 2, "out = model(x)")


@pytest.mark.parametrize(
    "head", ["~/project/train.py in step(self, x)", "File ~/project/train.py:41, in Trainer.step(self, x)"]
)
def test_a_file_in_ipython(head: str) -> None:
    text = f"{head}\n     40     def step(self, x):\n---> 41         return self.net(x)\n     42 \n\nRuntimeError: no"
    assert frames(text) == [Frame("~/project/train.py", 41, "step", "return self.net(x)")]


def test_cell_and_file_in_ipython() -> None:
    text = f"Cell In[5], line 2\n{CELL}File ~/train.py:41, in step(self, x)\n---> 41 return self.net(x)\n\nRuntimeError: no"
    assert [(frame.path, frame.row) for frame in frames(text)] == [("<cell>", 2), ("~/train.py", 41)]


def test_rich() -> None:
    text = """╭──────────────── Traceback (most recent call last) ────────────────╮
│ /home/me/train.py:41 in step                                      │
│                                                                   │
│   39 │   def step(self, x):                                       │
│   40 │   │   # forward                                            │
│ ❱ 41 │   │   return self.net(x)                                   │
│   42 │                                                            │
╰───────────────────────────────────────────────────────────────────╯
RuntimeError: no
"""
    assert frames(text) == [Frame("/home/me/train.py", 41, "step", "return self.net(x)")]


def test_rich_with_a_name_on_the_next_line() -> None:
    text = """│ /home/me/a/very/long/path/to/the/project/train.py:41              │
│ in step                                                           │
│                                                                   │
│ ❱ 41 │   │   return self.net(x)                                   │
"""
    assert frames(text) == [
        Frame("/home/me/a/very/long/path/to/the/project/train.py", 41, "step", "return self.net(x)")
    ]


def test_pytest() -> None:
    text = """    def test_step():
        net = Net()
>       net(1)

test_net.py:4: 
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _

self = <net.Net object at 0x7fabd2c8cb90>, x = 1

    def forward(self, x):
>       return self.inner(
            x)

net.py:7: RuntimeError
"""  # noqa: W291
    assert frames(text) == [
        Frame("test_net.py", 4, "test_step", "net(1)"),
        Frame("net.py", 7, "forward", "return self.inner("),
    ]


def test_pytest_short() -> None:
    text = "test_net.py:4: in test_step\n    net(1)\nnet.py:7: in forward\n    return self.inner(x)\nE   RuntimeError: no\n"
    assert frames(text) == [
        Frame("test_net.py", 4, "test_step", "net(1)"),
        Frame("net.py", 7, "forward", "return self.inner(x)"),
    ]


@pytest.mark.parametrize("prefix", ["[rank0]: ", "(RayTrainWorker pid=312) ", "> ", "2024-01-02 10:00:00 ERROR "])
def test_prefixed_lines(prefix: str) -> None:
    assert frames("".join(f"{prefix}{line}\n" for line in PYTHON.splitlines())) == OF_PYTHON


def test_the_last_traceback_of_a_chain() -> None:
    text = f"{FIRST}During handling of the above exception, another exception occurred:\n\n{SECOND}"
    assert [frame.name for frame in frames(text)] == ["second"]


def test_a_direct_cause_counts_as_one() -> None:
    text = f"{FIRST}The above exception was the direct cause of the following exception:\n\n{SECOND}"
    assert [frame.name for frame in frames(text)] == ["first", "second"]


def test_a_chain_whose_last_traceback_was_left_out() -> None:
    text = f"{FIRST}During handling of the above exception, another exception occurred:\n"
    assert [frame.name for frame in frames(text)] == ["first"]


def test_a_worker() -> None:
    text = (
        '  File "train.py", line 5, in main\n    for x in loader:\n'
        "RuntimeError: Caught RuntimeError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n"
        '  File "data.py", line 9, in __getitem__\n    return x.cuda()\n'
    )
    assert [frame.path for frame in frames(text)] == ["train.py", "data.py"]


def test_a_paste_without_its_head() -> None:
    text = '    out = model(x)\n  File "net.py", line 7, in forward\n    return self.fc(x)\nRuntimeError: no\n'
    assert frames(text) == [Frame("net.py", 7, "forward", "return self.fc(x)")]


@pytest.mark.parametrize("text", ["", "RuntimeError: no\n", "out = model(x)\n", "Epoch 3: loss 0.5 in 12 s\n"])
def test_no_frames(text: str) -> None:
    assert frames(text) == []


def test_an_earlier_traceback_in_the_log_is_left_out() -> None:
    assert [frame.name for frame in frames(f"{FIRST}trying again\n{SECOND}")] == ["second"]


def test_the_lines_of_one_of_several_ranks() -> None:
    lines = ["Traceback (most recent call last):", '  File "a.py", line 3, in f', "    g(x)", "RuntimeError: no"]
    text = "".join(f"[rank{rank}]: {line.replace('a.py', f'{rank}.py')}\n" for line in lines for rank in range(3))
    alone = of_process(text, text.index("[rank1]: RuntimeError") + 9)
    assert alone == "".join(f"{line.replace('a.py', '1.py')}\n" for line in lines)


def test_colours() -> None:
    text = '  File \x1b[35m"a.py"\x1b[0m, line \x1b[35m3\x1b[0m, in \x1b[35mf\x1b[0m\n    \x1b[31mg\x1b[0m(x)\n'
    assert frames(cleaned(text)) == [Frame("a.py", 3, "f", "g(x)")]


@pytest.mark.parametrize("line", ["a" * 1_000_000, "-" * 1_000_000, "/a.b" * 200_000, "> 5 " + " " * 500_000 + "x"])
def test_a_line_as_long_as_a_picture(line: str) -> None:
    head = '  File "a.py", line 3, in f\n'
    began = time.process_time()
    assert frames(cleaned(f"{line}\n{head}{line}\n"))[-1].path == "a.py"
    assert time.process_time() - began < 2


def test_a_row_that_no_file_has() -> None:
    assert frames(f'  File "a.py", line {"9" * 5_000}, in f\n')[0].path == "a.py"

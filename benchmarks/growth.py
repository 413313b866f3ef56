"""How the time of a whole process grows with its input: forms of one program in four sizes, four times the input each time.

    python benchmarks/growth.py [--forms NAME ...] [--start N] [--sizes N] [--repeat N] [--seconds LIMIT] [--most 6]
        [--inference NAME] [--python PYTHON] [--arguments "..."] [--out FILE]

Each form is written to a folder of its own and checked with all rules by `devlint check`, without a cache and in one process.
The time of a bare start, on an empty file, is taken off. The table gives seconds of processor time by size, and the largest
growth from one size to the next. Exit status 1 where a form grows by more than --most, or takes longer than --seconds.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

HEAD = "import torch\nfrom torch import nn\n\n\n"
LEAST = 0.15  # seconds: below this a growth is noise


def many_lines(n: int) -> dict[str, str]:
    """One function with n times the same three lines."""
    body = "".join(f"    y{i} = torch.zeros(3)\n    x{i} = x.cuda()\n    z{i} = x{i} + y{i}\n" for i in range(n))
    return {"program.py": f"{HEAD}def run(x, net: torch.nn.Module, k=0):\n{body}    return x\n"}


def arms(n: int) -> dict[str, str]:
    """One chain of n `elif`, each of which assigns the same name."""
    body = "".join(
        f"    {'el' if i else ''}if k == {i}:\n        x = x.cuda() + torch.zeros({i + 1})\n" for i in range(n)
    )
    return {"program.py": f"{HEAD}def run(x, net: torch.nn.Module, k=0):\n{body}    return x\n"}


def branches(n: int) -> dict[str, str]:
    """n conditions one after the other, each of which may move one name."""
    body = "".join(f"    if flags[{i}]:\n        x = x.to(device)\n    y = x + torch.ones(3)\n" for i in range(n))
    return {"program.py": f"{HEAD}def run(x, flags, device):\n    y = x\n{body}    return y\n"}


def one_name(n: int) -> dict[str, str]:
    """One name that is assigned from itself n times."""
    body = "    x = x + torch.zeros(3)\n" * n
    return {"program.py": f"{HEAD}def run(x):\n{body}    return x\n"}


def nested_loops(n: int) -> dict[str, str]:
    """n times three loops in each other that carry a name."""
    body = (
        "    for a in range(3):\n        for b in range(3):\n            for c in range(3):\n"
        "                x = x + torch.zeros(3)\n            y = x\n        x = y.to(device)\n"
    )
    return {"program.py": f"{HEAD}def run(x, y, device):\n{body * n}    return x\n"}


def nested_conditions(n: int) -> dict[str, str]:
    """n conditions in each other, each of which may move one name. Python takes no more than 99."""
    depth = min(n, 98)
    heads = "".join(
        f"{'    ' * i}    if flags[{i}]:\n{'    ' * i}        x = x.to(device) + torch.zeros(3)\n" for i in range(depth)
    )
    return {"program.py": f"{HEAD}def run(x, flags, device):\n{heads}    return x + torch.ones(3)\n"}


def operands(n: int) -> dict[str, str]:
    """One sum of n operands."""
    return {"program.py": f"{HEAD}def run(x):\n    return x" + " + torch.zeros(3)" * n + "\n"}


def deep_calls(n: int) -> dict[str, str]:
    """n expressions, each of which nests twelve calls."""
    line = "    x = " + "torch.relu(" * 12 + "x + torch.zeros(3)" + ")" * 12 + "\n"
    return {"program.py": f"{HEAD}def run(x):\n{line * n}    return x\n"}


def callers(n: int) -> dict[str, str]:
    """One function that is called n times."""
    calls = "".join(f"def use{i}(x):\n    return add(x.cuda(), {i})\n\n\n" for i in range(n))
    return {"program.py": f"{HEAD}def add(x, k):\n    return x + torch.zeros(3) + k\n\n\n{calls}"}


def chain(n: int) -> dict[str, str]:
    """n functions, each of which calls the one before."""
    calls = "".join(f"def f{i}(x):\n    return f{i - 1}(x) + torch.zeros(3)\n\n\n" for i in range(1, n))
    return {"program.py": f"{HEAD}def f0(x):\n    return x.cuda()\n\n\n{calls}"}


def every_one_calls_all(n: int) -> dict[str, str]:
    """Functions that call each other in a ring and across it, with n calls in all."""
    count = max(4, int(n**0.5))
    parts = (
        f"def f{i}(x):\n"
        + "".join(f"    x = f{(i + j) % count}(x)\n" for j in range(1, count))
        + "    return x + torch.zeros(3)\n\n\n"
        for i in range(count)
    )
    return {"program.py": HEAD + "".join(parts)}


def files(n: int) -> dict[str, str]:
    """n modules, each of which imports the one before."""
    made = {"m0.py": f"{HEAD}def f(x):\n    return x + torch.zeros(3)\n"}
    for i in range(1, n):
        made[f"m{i}.py"] = (
            f"import torch\n\nfrom m{i - 1} import f as before\n\n\ndef f(x):\n    return before(x.cuda())\n"
        )
    return made


def users(n: int) -> dict[str, str]:
    """n modules that import one helper."""
    made = {"helper.py": f"{HEAD}def add(x):\n    return x + torch.zeros(3)\n"}
    for i in range(n):
        made[f"m{i}.py"] = "import torch\n\nfrom helper import add\n\nprint(add(torch.zeros(3).cuda()))\n"
    return made


def wide_class(n: int) -> dict[str, str]:
    """One module with n layers, n buffers and a forward that uses all of them."""
    made = "".join(
        f"        self.layer{i} = nn.Linear(3, 3)\n        self.mask{i} = torch.zeros(3)\n" for i in range(n)
    )
    used = "".join(f"        x = self.layer{i}(x) + self.mask{i}\n" for i in range(n))
    start = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    return {"program.py": f"{HEAD}{start}{made}\n    def forward(self, x):\n{used}        return x\n"}


def many_methods(n: int) -> dict[str, str]:
    """One plain class whose n methods write and read its fields."""
    methods = "".join(
        f"    def step{i}(self, x):\n        self.state{i} = x.to(self.device)\n"
        f"        return self.model(self.state{i}) + self.total\n\n"
        for i in range(n)
    )
    start = (
        "class Trainer:\n    def __init__(self, model, device):\n        self.model = model.to(device)\n"
        "        self.device = device\n        self.total = torch.zeros(3)\n\n"
    )
    return {"program.py": HEAD + start + methods}


def subclasses(n: int) -> dict[str, str]:
    """n classes, each of which inherits from the one before."""
    first = "class N0(nn.Module):\n    def forward(self, x):\n        return x + torch.zeros(3)\n\n\n"
    others = (
        f"class N{i}(N{i - 1}):\n    def forward(self, x):\n        return super().forward(x) + torch.ones(3)\n\n\n"
        for i in range(1, n)
    )
    return {"program.py": HEAD + first + "".join(others)}


def containers(n: int) -> dict[str, str]:
    """One dictionary with n entries, written, moved and read."""
    body = "".join(f'    batch["k{i}"] = torch.zeros(3)\n    x = x + batch["k{i}"].to(device)\n' for i in range(n))
    return {"program.py": f"{HEAD}def run(x, device):\n    batch = {{}}\n{body}    return x, batch\n"}


#: A form and the smallest size that is measured, about a tenth of a second of work.
FORMS: Mapping[str, tuple[Callable[[int], dict[str, str]], int]] = {
    "lines of one function": (many_lines, 60),
    "arms of one elif": (arms, 60),
    "branches one after the other": (branches, 60),
    "assignments of one name": (one_name, 150),
    "nested loops": (nested_loops, 20),
    "nested conditions": (nested_conditions, 6),
    "operands of one sum": (operands, 40),
    "nested calls": (deep_calls, 30),
    "callers of one function": (callers, 60),
    "chain of functions": (chain, 60),
    "functions that call each other": (every_one_calls_all, 100),
    "chain of files": (files, 15),
    "files that import one": (users, 15),
    "layers and buffers of a class": (wide_class, 50),
    "methods of a class": (many_methods, 50),
    "chain of subclasses": (subclasses, 30),
    "entries of a dictionary": (containers, 60),
}


def seconds_of(command: list[str], project: Mapping[str, str], limit: int) -> float | None:
    """The processor time of a command in the folder of a project; None where it takes longer than the limit or fails."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / ".git").mkdir()
        for path, text in project.items():
            (folder / path).write_text(text, encoding="utf-8")
        environment = {key: value for key, value in os.environ.items() if not key.startswith("DEVLINT_")}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment, check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)),
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return None
    if done.returncode not in (0, 1):
        sys.exit(f"error: {shlex.join(command)}: {done.stderr.decode(errors='replace').strip()[-400:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def fastest(command: list[str], project: Mapping[str, str], limit: int, times: int) -> float | None:
    """The least of some measurements; None where one took too long."""
    taken = [seconds_of(command, project, limit) for _ in range(times)]
    known = [seconds for seconds in taken if seconds is not None]
    return min(known) if len(known) == times else None


def largest_growth(taken: list[float | None]) -> float | None:
    """The largest growth from one size to the next, where both are more than noise; None where one took too long."""
    if None in taken:
        return None
    known = [max(seconds, LEAST) for seconds in taken if seconds is not None]
    return max((later / earlier for earlier, later in itertools.pairwise(known)), default=1.0)


def main() -> int:
    about = (__doc__ or "").splitlines()
    parser = argparse.ArgumentParser(
        description=about[0], epilog="\n".join(about[2:]), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--forms", nargs="+", default=[""], help="parts of names of forms")
    parser.add_argument("--start", type=float, default=1, help="multiply the smallest size by this")
    parser.add_argument("--sizes", type=int, default=3, help="how many sizes, each four times the one before")
    parser.add_argument("--repeat", type=int, default=1, help="take the fastest of so many runs")
    parser.add_argument("--seconds", type=int, default=60, help="the limit for one run, of processor time")
    parser.add_argument("--most", type=float, default=6, help="the growth that is allowed for four times the input")
    parser.add_argument("--inference", help="the inference to use: old or new")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has devlint")
    parser.add_argument("--arguments", default="", help="further arguments of `devlint check`")
    parser.add_argument("--out", type=Path, help="write the seconds here, as JSON")
    options = parser.parse_args()
    command = [options.python, "-m", "devlint", "check", ".", "--isolated", "--no-cache", "-j", "1", "--select", "ALL"]
    command += shlex.split(options.arguments) + (["--inference", options.inference] if options.inference else [])
    bare = fastest(command, {"program.py": HEAD}, options.seconds, 3) or 0.0
    print(f"bare start {bare:.2f} s")
    print(f"{'form':32} {'size':>6}" + "".join(f"{'x ' + str(4**i):>9}" for i in range(options.sizes)) + "   growth")
    rows, failed = {}, False
    for name, (make, smallest) in FORMS.items():
        if not any(part in name for part in options.forms):
            continue
        taken = measured(command, make, max(2, int(smallest * options.start)), options)
        taken = [None if seconds is None else max(seconds - bare, 0.0) for seconds in taken]
        growth = largest_growth(taken)
        rows[name] = {"smallest": smallest, "seconds": taken, "growth": growth}
        cells = "".join("     slow" if seconds is None else f"{seconds:9.2f}" for seconds in taken)
        failed |= growth is None or growth > options.most
        print(f"{name:32} {smallest:6}{cells}   {'-' if growth is None else f'{growth:.1f}'}", flush=True)
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return int(failed)


def measured(
    command: list[str], make: Callable[[int], dict[str, str]], smallest: int, options: argparse.Namespace
) -> list[float | None]:
    """The seconds of one form by size. After a size that takes too long no larger one is tried."""
    taken: list[float | None] = []
    for i in range(options.sizes):
        late = bool(taken) and taken[-1] is None
        taken.append(None if late else fastest(command, make(smallest * 4**i), options.seconds, options.repeat))
    return taken


if __name__ == "__main__":
    sys.exit(main())

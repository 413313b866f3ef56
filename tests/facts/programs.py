"""Random torch programs whose faults are known, for tests of the device analysis.

`program(seed)` writes a runnable module. Its writer knows where each tensor that it writes about is, so that a program
without a fault runs to its end on a machine with two accelerators, and one with a fault stops there. `shrink` makes a
program that shows something smaller, statement by statement.

Every tensor is 3 by 3, except for the batches of loaders, which have three columns as well.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

CPU, CARD, OTHER = "cpu", "cuda:0", "cuda:1"
ANY = "any"  # on one device or another, by the path taken
STATEMENTS = 8  # a program has at least so many, besides its probes
FAULTY = 0.4  # share of programs with a fault

PREAMBLE = """\
import argparse
import functools
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset


@dataclass
class Config:
    device: str = "cuda"
    width: int = 3


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    return parser.parse_args([])


def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


def identity(t):
    return t


def send(t, device):
    return t.to(device)


def make(device="cpu"):
    return torch.ones(3, 3, device=device)


def swap(a, b):
    return b, a


def last(*args):
    return args[-1]


def pick(a, b, first=True):
    if first:
        return a
    return b


def repeat(t, n):
    return repeat(t * 1.0, n - 1) if n else t


@logged
def doubled(t):
    return t * 2


def noisy(t):
    return t + torch.randn(3, 3)


class Net(nn.Module):
    def __init__(self, sub=None):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.weight = nn.Parameter(torch.ones(3, 3))
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
        self.register_buffer("shift", torch.zeros(3))
        self.limit = 4

    def forward(self, t):
        h = self.fc(t) @ self.weight
        for layer in self.layers:
            h = layer(h)
        return self.scaled(h) + self.shift

    def scaled(self, t):
        return t * torch.ones(3, device=t.device)


class Deep(Net):
    def __init__(self):
        super().__init__()
        self.head = nn.Sequential(nn.Linear(3, 3), nn.ReLU())

    def forward(self, t):
        return self.head(super().forward(t))


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.scale = torch.ones(3)

    def forward(self, t):
        return self.fc(t) * self.scale


class Rows(Dataset):
    def __init__(self, n):
        self.x = torch.ones(n, 3)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"x": self.x[i], "y": self.x[i] * 2}
"""


@dataclass(frozen=True)
class Program:
    """A program: its source, the kind of fault that was put in (None: there is none), and the constructs it uses.

    It defines `main(flag, x, device)`, for `x` and `device` on `cuda:0`; `fault_row` is the line that stops it.
    """

    text: str
    fault: str | None
    fault_row: int | None
    constructs: frozenset[str]


def program(seed: int) -> Program:
    """The program of a seed, the same on every machine."""
    return Writer(random.Random(seed)).write()


def on_one_card(text: str) -> str:
    """The program for a machine with one accelerator, which stands for the second one as well."""
    return re.sub(r"(cuda:|cuda\(|\"cuda\", |device\(|device_index\()[12]\b", r"\g<1>0", text)


@dataclass
class Known:
    """Where things are at one point of the program. A device "" is the current card, whichever that is."""

    tensors: dict[str, str] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)
    devices: dict[str, str] = field(default_factory=dict)
    default: str = CPU
    card: str = CARD

    def copy(self) -> Known:
        return Known(dict(self.tensors), dict(self.modules), dict(self.devices), self.default, self.card)

    def join(self, other: Known) -> None:
        """Either of both; names that one of them lacks are dropped."""
        for mine, others in ((self.tensors, other.tensors), (self.modules, other.modules)):
            for name in list(mine):
                if name not in others:
                    del mine[name]
                elif mine[name] != others[name]:
                    mine[name] = ANY
        self.devices = {n: p for n, p in self.devices.items() if n in other.devices}


class Writer:
    """Writes one program."""

    def __init__(self, source: random.Random) -> None:
        self.random = source
        self.lines: list[str] = PREAMBLE.splitlines()
        self.depth = 0
        self.known = Known()
        self.constructs: set[str] = set()
        self.names = 0
        self.frozen = False  # no gradients here
        self.fault_row: int | None = None

    def write(self) -> Program:
        self.line("")
        self.line("")
        self.line("def main(flag: bool, x: torch.Tensor, device: torch.device):")
        self.depth = 1
        self.known.tensors["x"] = CARD
        self.known.devices["device"] = CARD
        self.assign("a", "torch.ones(3, 3)", CPU)
        self.assign(
            "b", f"torch.zeros(3, 3, device={self.random.choice(['device', chr(34) + 'cuda' + chr(34)])})", CARD
        )
        self.assign("c", 'torch.ones(3, 3, device="cuda:1")', OTHER)
        self.line("net = nn.Linear(3, 3)")
        self.known.modules["net"] = CPU
        fault = self.random.choice(FAULTS) if self.random.random() < FAULTY else None
        for _ in range(self.random.randint(STATEMENTS - 2, STATEMENTS + 6)):
            self.statement(0)
        kind = None
        if fault is not None:
            self.reveal()
            kind = fault(self)
            self.fault_row = len(self.lines)
        else:
            self.reveal()
        self.line("return x")
        text = "\n".join(self.lines) + "\n"
        return Program(text, kind, self.fault_row, frozenset(self.constructs))

    # -- lines --------------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text if text else "")

    def use(self, construct: str) -> None:
        self.constructs.add(construct)

    def fresh(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def assign(self, name: str, text: str, place: str) -> None:
        self.line(f"{name} = {text}")
        self.known.tensors[name] = place

    def target(self) -> str:
        """A name to assign to: an old one or a new one."""
        return self.tensor() if self.random.random() < 0.6 else self.fresh("t")

    def reveal(self) -> None:
        for name in self.known.tensors:
            self.line(f"reveal_device({name})")
        for name in self.known.modules:
            self.line(f"reveal_device({name})")

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        self.line(header)
        self.depth += 1
        yield
        self.depth -= 1

    # -- what is there ------------------------------------------------------------------------------------------------

    def tensor(self, *places: str) -> str:
        """A tensor, on one of some places if there are any given."""
        names = [n for n, p in self.known.tensors.items() if not places or p in places]
        if not names:
            name = self.fresh("t")
            self.assign(name, f"torch.ones(3, 3, device={places[0]!r})", places[0])
            return name
        return self.random.choice(names)

    def module(self, *places: str) -> str:
        names = [n for n, p in self.known.modules.items() if not places or p in places]
        if not names:
            name = self.fresh("net")
            self.line(f"{name} = nn.Linear(3, 3)" + (f".to({places[0]!r})" if places else ""))
            self.known.modules[name] = places[0] if places else self.known.default
            return name
        return self.random.choice(names)

    def place(self, name: str) -> str:
        return self.known.tensors[name]

    def device(self) -> tuple[str, str]:
        """An expression for a device, and the device."""
        choices = [('"cpu"', CPU), ('"cuda"', self.known.card), ('"cuda:1"', OTHER), ('torch.device("cuda", 1)', OTHER)]
        choices += [(name, place or self.known.card) for name, place in self.known.devices.items()] * 2
        tensor = self.tensor()
        choices.append((f"{tensor}.device", self.place(tensor)))
        return self.random.choice(choices)

    def aligned(self, name: str, other: str) -> str:
        """`other`, moved beside `name` unless it is there."""
        if self.place(name) == self.place(other) != ANY:
            return other
        return f"{other}.to({name}.device)"

    # -- expressions --------------------------------------------------------------------------------------------------

    def expression(self) -> tuple[str, str]:
        """An expression that gives a tensor, and where that is."""
        return self.random.choice(EXPRESSIONS)(self)

    def factory(self) -> tuple[str, str]:
        if self.random.random() < 0.4:
            return self.random.choice(["torch.ones(3, 3)", "torch.rand(3, 3)", "torch.eye(3)"]), self.known.default
        text, place = self.device()
        return f"torch.{self.random.choice(['zeros', 'ones', 'empty'])}(3, 3, device={text})", place

    def move(self) -> tuple[str, str]:
        name = self.tensor()
        text, place = self.device()
        return self.random.choice(
            [
                (f"{name}.to({text})", place),
                (f"{name}.to(device={text})", place),
                (f"{name}.cpu()", CPU),
                (f"{name}.cuda()", self.known.card),
                (f"{name}.cuda(1)", OTHER),
                (f"{name}.to(tensor={self.tensor()})", ""),
            ]
        )

    def moved(self) -> tuple[str, str]:
        text, place = self.move()
        if not place:
            name, other = self.tensor(), self.tensor()
            return f"{name}.to(tensor={other})", self.place(other)
        return text, place

    def shape(self) -> tuple[str, str]:
        name = self.tensor()
        form = self.random.choice(
            ["torch.relu({})", "{} * 2", "{}.clone()", "-{}", "{}.t()", "{}[0:3]", "{}.detach()", "torch.tanh({})",
             "{}.view(3, 3)", "torch.zeros_like({})", "{}.new_ones(3, 3)", "F.relu({})", "{}.masked_fill({} > 5, 0.0)",
             "{} * torch.tensor(2.0, device={}.device)", "{}.float()", "torch.clamp({}, min=0.0)", "{}.type_as({})"]
        )  # fmt: skip
        return form.replace("{}", name), self.place(name)

    def pair(self) -> tuple[str, str]:
        name, other = self.tensor(), self.tensor()
        second = self.aligned(name, other)
        form = self.random.choice(
            ["{0} + {1}", "{0} @ {1}", "torch.cat([{0}, {1}])[0:3]", "torch.stack([{0}, {1}])[0]", "torch.matmul({0}, {1})",
             "torch.where({0} > 0, {0}, {1})", "torch.maximum({0}, {1})", "{0}.mul({1})", "{0} * {1} - {0}"]
        )  # fmt: skip
        return form.format(name, second), self.place(name)

    def container(self) -> tuple[str, str]:
        self.use("containers")
        name, other = self.tensor(), self.tensor()
        return self.random.choice(
            [
                (f"[{name}, {other}][1]", self.place(other)),
                (f"({name}, {other})[0]", self.place(name)),
                (f'{{"x": {name}, "y": {other}}}["y"]', self.place(other)),
                (f"dict(x={name}, y={other})['x']", self.place(name)),
            ]
        )

    def comprehension(self) -> tuple[str, str]:
        self.use("comprehensions")
        name, other = self.tensor(), self.tensor()
        text, place = self.device()
        return self.random.choice(
            [
                (f"[t.to({text}) for t in ({name}, {other})][0]", place),
                (f'{{k: v.to({text}) for k, v in {{"x": {name}}}.items()}}["x"]', place),
                (f"sum(t.to({text}) for t in [{name}, {other}])", place),
            ]
        )

    def choice(self) -> tuple[str, str]:
        name, other = self.tensor(), self.tensor()
        places = {self.place(name), self.place(other)}
        return f"({name} if flag else {other})", places.pop() if len(places) == 1 else ANY

    def walrus(self) -> tuple[str, str]:
        self.use("walrus")
        text, place = self.device()
        new = self.fresh("w")
        found = f"({new} := {self.tensor()}.to({text})) + {new}", place
        self.known.tensors[new] = place
        return found

    def function(self) -> tuple[str, str]:
        name, other = self.tensor(), self.tensor()
        text, place = self.device()
        found = self.random.choice(
            [
                (f"identity({name})", self.place(name), "functions"),
                (f"send({name}, {text})", place, "functions"),
                (f"make(device={text})", place, "functions"),
                (f"swap({name}, {other})[0]", self.place(other), "functions"),
                (f"last({name}, {other})", self.place(other), "star arguments"),
                (f"last(*[{name}, {other}])", self.place(other), "star arguments"),
                (f"pick({name}, {other})", self.place(name), "functions"),
                (f"pick({name}, {other}, first=False)", self.place(other), "functions"),
                (f"repeat({name}, 2)", self.place(name), "recursion"),
                (f"doubled({name})", self.place(name), "decorators"),
                (f"(lambda t: t.to({text}))({name})", place, "lambda"),
                (f"functools.partial(torch.ones, device={text})(3, 3)", place, "partial"),
            ]
        )
        self.use(found[2])
        return found[0], found[1]

    def call(self) -> tuple[str, str]:
        self.use("module calls")
        module, name = self.module(), self.tensor()
        place = self.known.modules[module]
        if place == self.place(name) != ANY:
            return f"{module}({name})", place
        return f"{module}({name}.to(next({module}.parameters()).device))", place

    def own_class(self) -> tuple[str, str]:
        self.use("inheritance")
        text, place = self.device()
        new, class_ = self.fresh("model"), self.random.choice(["Net", "Deep"])
        self.line(f"{new} = {class_}().to({text})")
        self.known.modules[new] = place
        return self.random.choice(
            [
                (f"{new}({self.tensor()}.to({text}))", place),
                (f"{new}.weight.detach()", place),
                (f"{new}.scaled({self.tensor()}.to({text}))", place),
                (f"{new}.shift + {new}.weight", place),
            ]
        )

    # -- statements ---------------------------------------------------------------------------------------------------

    def statement(self, level: int) -> None:
        choices = PLAIN if level >= 2 or self.random.random() < 0.62 else NESTED
        self.random.choice(choices)(self, level)

    def plain(self, level: int) -> None:
        text, place = self.expression()
        self.assign(self.target(), text, place)

    def unpack(self, level: int) -> None:
        self.use("unpacking")
        one, two = self.fresh("t"), self.fresh("t")
        (first, place), (second, other) = self.expression(), self.expression()
        if self.random.random() < 0.5:
            self.line(f"{one}, {two} = {first}, {second}")
            self.known.tensors.update({one: place, two: other})
            return
        rest = self.fresh("rest")
        self.line(f"{one}, *{rest} = [{first}, {second}]")
        self.known.tensors[one] = place
        self.assign(two, f"{rest}[0]", other)

    def augmented(self, level: int) -> None:
        name = self.tensor()
        if name == "x" or not name.startswith("t"):
            name = self.fresh("t")
            old = self.tensor()
            self.assign(name, f"{old}.clone()", self.place(old))
        self.line(f"{name} {self.random.choice(['+', '-', '*'])}= {self.aligned(name, self.tensor())}")

    def boxes(self, level: int) -> None:
        self.use("containers")
        box, name, other = self.fresh("box"), self.tensor(), self.tensor()
        if self.random.random() < 0.5:
            self.line(f"{box} = [{name}]")
            self.line(f"{box}.append({other})")
            self.assign(self.fresh("t"), f"{box}[1]", self.place(other))
        else:
            self.line(f'{box} = {{"k": {name}}}')
            self.line(f'{box}["n"] = {other}')
            self.assign(self.fresh("t"), f'{box}["n"]', self.place(other))

    def batch(self, level: int) -> None:
        self.use("dicts of tensors")
        batch, (text, place) = self.fresh("batch"), self.device()
        self.line(f'{batch} = {{"x": {self.tensor()}, "y": {self.tensor()}}}')
        if self.random.random() < 0.6:
            self.line(f"{batch} = {{k: v.to({text}) for k, v in {batch}.items()}}")
        else:
            with self.block(f"for k in {batch}:"):
                self.line(f"{batch}[k] = {batch}[k].to({text})")
        self.assign(self.fresh("t"), f'{batch}["x"]', place)

    def modules(self, level: int) -> None:
        module = self.module()
        text, place = self.device()
        form = self.random.choice(["{}.to({})", "{0} = {0}.to({1})", "{}.cuda()", "{}.cpu()"])
        place = {"{}.cuda()": self.known.card, "{}.cpu()": CPU}.get(form, place)
        self.line(form.format(module, text))
        self.known.modules[module] = place

    def new_module(self, level: int) -> None:
        new, (text, place) = self.fresh("net"), self.device()
        made, where = self.random.choice(
            [
                ("nn.Linear(3, 3)", self.known.default),
                (f"nn.Linear(3, 3, device={text})", place),
                (f"nn.Sequential(nn.Linear(3, 3), nn.ReLU()).to({text})", place),
                (f"Net().to({text})", place),
                (f"Deep().to({text})", place),
            ]
        )
        self.line(f"{new} = {made}")
        self.known.modules[new] = where

    def devices(self, level: int) -> None:
        name = self.fresh("device")
        text, place, construct = self.random.choice(
            [
                ('torch.device("cuda" if torch.cuda.is_available() else "cpu")', "", "chosen device"),
                ("torch.device(parse().device)", "", "argparse"),
                ("Config().device", "", "dataclass"),
                ('Config(device="cpu").device', CPU, "dataclass"),
                ('torch.device("cuda:1")', OTHER, "literal device"),
            ]
        )
        self.use(construct)
        self.line(f"{name} = {text}")
        self.known.devices[name] = place

    def host(self, level: int) -> None:
        self.use("host code")
        name = self.tensor()
        new = self.fresh("t")
        kind = self.random.randrange(3)
        if kind == 0:
            array = self.fresh("array")
            self.line(f"{array} = {name}.detach().cpu().numpy()")
            self.assign(new, f"torch.from_numpy({array})", CPU)
        elif kind == 1:
            self.line(f"value = {name}.sum().item()")
            self.assign(new, "torch.full((3, 3), value)", self.known.default)
        else:
            self.assign(new, "torch.from_numpy(np.ones((3, 3), dtype=np.float32))", CPU)

    def set_device(self, level: int) -> None:
        self.use("set_device")
        self.line("torch.cuda.set_device(1)")
        self.assign(self.target(), f"{self.tensor()}.cuda()", OTHER)
        self.line("torch.cuda.set_device(0)")

    def set_default(self, level: int) -> None:
        self.use("set_default_device")
        if self.known.default != CPU:
            self.line("pass")
            return
        self.line('torch.set_default_device("cuda:1")')
        self.assign(self.fresh("t"), "torch.ones(3, 3)", OTHER)
        self.line("torch.set_default_device(None)")

    def partial(self, level: int) -> None:
        self.use("partial")
        name, (text, place) = self.fresh("ones"), self.device()
        self.line(f"{name} = functools.partial(torch.ones, device={text})")
        self.assign(self.fresh("t"), f"{name}(3, 3)", place)

    def optimizer(self, level: int) -> None:
        if self.frozen:
            self.line("pass")
            return
        self.use("optimizers")
        module = self.module(CPU, CARD, OTHER)
        name, loss = self.fresh("optimizer"), self.fresh("loss")
        given = self.tensor()
        self.line(f"{name} = torch.optim.SGD({module}.parameters(), lr=0.1)")
        self.line(f"{loss} = {module}({given}.detach().to(next({module}.parameters()).device)).sum()")
        self.line(f"{loss}.backward()")
        self.line(f"{name}.step()")
        self.known.tensors[loss + "_"] = self.known.modules[module]
        self.line(f"{loss}_ = {loss}.detach().expand(3, 3).clone()")

    def branch(self, level: int) -> None:
        self.use("branches")
        entry = self.known.copy()
        with self.block(self.random.choice(["if flag:", "if not flag:"])):
            self.some(level)
        then, self.known = self.known, entry.copy()
        if self.random.random() < 0.6:
            with self.block("else:"):
                self.some(level)
        self.known.join(then)

    def guard(self, level: int) -> None:
        self.use("guards")
        name = self.tensor()
        entry = self.known.copy()
        with self.block(self.random.choice([f"if {name}.is_cuda:", f'if {name}.device.type == "cuda":'])):
            self.line(f"{name} = {name}.cpu()")
        self.known = entry
        self.known.tensors[name] = CPU

    def loop(self, level: int) -> None:
        self.use("loops")
        header = self.random.choice(
            ["for _ in range(2):", "for i, part in enumerate([a, b]):", "for part in (b, c):", "for part in [x] * 2:"]
        )
        self.repeated(header, level)

    def while_(self, level: int) -> None:
        self.use("loops")
        count = self.fresh("n")
        self.line(f"{count} = 2")
        self.repeated(f"while {count} > 0:", level, f"{count} -= 1")

    def repeated(self, header: str, level: int, first: str | None = None) -> None:
        """A loop. Its body is written for what holds in every round: what it changes may be anywhere in it."""
        entry, mark, count = self.known.copy(), len(self.lines), self.names
        for _ in range(6):
            start = self.known.copy()
            with self.block(header):
                if first is not None:
                    self.line(first)
                self.some(level)
            end = self.known
            changed = [n for n in entry.tensors if end.tensors[n] != start.tensors[n] != ANY]
            moved = [n for n in entry.modules if end.modules[n] != start.modules[n] != ANY]
            if not changed and not moved:
                break
            del self.lines[mark:]
            self.names = count
            self.known = entry.copy()
            for name in self.known.tensors:
                if name in changed or start.tensors[name] == ANY:
                    self.known.tensors[name] = ANY
            for name in self.known.modules:
                if name in moved or start.modules[name] == ANY:
                    self.known.modules[name] = ANY
        else:
            with self.block(header):
                self.line("pass" if first is None else first)
            self.known = entry
            return
        self.known.join(entry)

    def try_(self, level: int) -> None:
        self.use("exceptions")
        entry = self.known.copy()
        with self.block("try:"):
            self.some(level)
            if self.random.random() < 0.4:
                self.line('int("x")')
        ended, self.known = self.known, entry.copy()
        for name in [*self.known.tensors]:
            if ended.tensors.get(name) != entry.tensors[name]:
                self.known.tensors[name] = ANY
        for name in [*self.known.modules]:
            if ended.modules.get(name) != entry.modules[name]:
                self.known.modules[name] = ANY
        with self.block("except ValueError:"):
            self.some(level)
        self.known.join(ended)

    def with_(self, level: int) -> None:
        kind = self.random.randrange(4)
        saved = self.known.default, self.known.card
        if kind == 0:
            self.use("with torch.device")
            with self.block('with torch.device("cuda:1"):'):
                self.known.default = OTHER
                self.some(level)
        elif kind == 1:
            self.use("with torch.cuda.device")
            with self.block("with torch.cuda.device(1):"):
                self.known.card = OTHER
                self.some(level)
        elif kind == 2:
            self.use("device_index")
            with self.block("with torch.accelerator.device_index(1):"):
                self.known.card = OTHER
                self.some(level)
        else:
            self.use("no_grad and autocast")
            context = self.random.choice(["torch.no_grad()", "torch.inference_mode(False)"])
            frozen, self.frozen = self.frozen, True
            with self.block(f"with {context}:"):
                self.some(level)
            self.frozen = frozen
        self.known.default, self.known.card = saved

    def match_(self, level: int) -> None:
        self.use("match")
        name, other = self.tensor(), self.tensor()
        new = self.fresh("t")
        kind = self.random.randrange(2)
        if kind == 0:
            with self.block(f"match ({name}, {other}):"), self.block(f"case ({new}, _):"):
                self.line("pass")
            self.known.tensors[new] = self.place(name)
        else:
            with self.block("match flag:"):
                entry = self.known.copy()
                with self.block("case True:"):
                    self.some(level)
                then, self.known = self.known, entry
                with self.block("case _:"):
                    self.some(level)
            self.known.join(then)

    def closure(self, level: int) -> None:
        self.use("closures")
        name, held = self.fresh("inner"), self.fresh("held")
        old = self.tensor()
        self.line(f"{held} = {old}")
        with self.block(f"def {name}(t):"):
            if self.random.random() < 0.5:
                self.line(f"return t.to({held}.device) + {held}")
                place = self.place(old)
            else:
                self.line(f"return {held}")
                place = self.place(old)
        self.known.tensors[held] = self.place(old)
        self.assign(self.fresh("t"), f"{name}({self.tensor()})", place)

    def layers(self, level: int) -> None:
        self.use("loops over modules")
        stack, new = self.fresh("stack"), self.fresh("t")
        text, place = self.device()
        self.line(f"{stack} = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)]).to({text})")
        self.assign(new, f"{self.tensor()}.to({text})", place)
        with self.block(f"for layer in {stack}:"):
            self.line(f"{new} = layer({new})")

    def loader(self, level: int) -> None:
        self.use("batches")
        loader, module = self.fresh("loader"), self.module(CPU, CARD, OTHER)
        place = self.known.modules[module]
        new = self.fresh("t")
        self.line(f"{new} = {self.tensor(place)}")
        self.known.tensors[new] = place
        if self.random.random() < 0.5:
            self.line(f"{loader} = DataLoader(TensorDataset(torch.ones(6, 3), torch.ones(6, 3)), batch_size=3)")
            with self.block(f"for inputs, targets in {loader}:"):
                self.line(f"inputs, targets = inputs.to({place!r}), targets.to({place!r})")
                self.line("reveal_device(inputs)")
                self.line(f"{new} = {module}(inputs) - targets")
        else:
            self.line(f"{loader} = DataLoader(Rows(6), batch_size=3)")
            with self.block(f"for batch in {loader}:"):
                self.line(f"batch = {{k: v.to({place!r}) for k, v in batch.items()}}")
                self.line(f'{new} = {module}(batch["x"]) - batch["y"]')
                self.line(f"reveal_device({new})")

    def some(self, level: int) -> None:
        """The body of a compound statement."""
        for _ in range(self.random.randint(1, 3)):
            self.statement(level + 1)

    # -- faults -------------------------------------------------------------------------------------------------------

    def fault_factory(self) -> str:
        name = self.tensor(CARD, OTHER)
        form = self.random.choice(
            ["{} + torch.ones(3, 3)", "torch.cat([{}, torch.zeros(1, 3)])", "{} @ torch.eye(3)", "{} * torch.arange(3)",
             "torch.where({} > 0, {}, torch.zeros(3, 3))", "torch.stack([{}, torch.zeros(3, 3)])",
             "F.mse_loss({}, torch.ones(3, 3))", "{} - torch.tensor([1.0, 2.0, 3.0])"]
        )  # fmt: skip
        self.line("bad = " + form.replace("{}", name))
        return "factory without a device"

    def fault_variable(self) -> str:
        self.line("mask = torch.ones(3, 3)")
        self.line(f"bad = {self.tensor(CARD, OTHER)} * mask")
        return "factory without a device"

    def fault_operands(self) -> str:
        places = self.random.sample([CPU, CARD, OTHER], 2)
        one, two = self.tensor(places[0]), self.tensor(places[1])
        form = self.random.choice(
            ["bad = {} + {}", "bad = torch.matmul({}, {})", "bad = torch.cat([{}, {}])", "bad = F.mse_loss({}, {})",
             "bad = {}.detach().clone().add_({})", "bad = torch.maximum({}, {})", "bad = {} > {}"]
        )  # fmt: skip
        self.line(form.format(one, two))
        return "operands"

    def fault_module(self) -> str:
        places = self.random.sample([CPU, CARD, OTHER], 2)
        name, module = self.tensor(places[0]), self.module(places[1])
        self.line(f"bad = {module}({name})")
        return "input of a module"

    def fault_moved_module(self) -> str:
        module, name = self.module(), self.tensor(CPU, CARD)
        self.line(f'{module}.to("cuda:1")')
        self.line(f"bad = {module}({name})")
        return "input of a module"

    def fault_class(self) -> str:
        self.line(f"model = {self.random.choice(['Net', 'Deep'])}().cuda(0)")
        self.line(f"bad = model({self.tensor(CPU)})")
        return "input of a module"

    def fault_attribute(self) -> str:
        self.line("plain = Plain().cuda(0)")
        self.line(f"bad = plain({self.tensor(CARD)})")
        return "unregistered state"

    def fault_discarded(self) -> str:
        self.line("late = torch.ones(3, 3)")
        self.line('late.to("cuda:0")')
        self.line(f"bad = {self.tensor(CARD)} + late")
        return "discarded move"

    def fault_index(self) -> str:
        self.line('index = torch.tensor([0, 1], device="cuda:0")')
        self.line(f"bad = {self.tensor(CPU)}[index]")
        return "index"

    def fault_numpy(self) -> str:
        name = self.tensor(CARD, OTHER)
        self.line("bad = " + self.random.choice([f"{name}.detach().numpy()", f"np.asarray({name}.detach())"]))
        return "host conversion"

    def fault_generator(self) -> str:
        self.line("generator = torch.Generator()")
        self.line('bad = torch.randn(3, 3, generator=generator, device="cuda:0")')
        return "generator"

    def fault_missing(self) -> str:
        self.line("optimizer = torch.optim.Adam(net.parameters())")
        self.line(self.random.choice(['optimizer.to("cuda")', "optimizer.cuda()", "bad = net.device"]))
        return "no such method"

    def fault_batch(self) -> str:
        module = self.module(CARD, OTHER)
        self.line("loader = DataLoader(TensorDataset(torch.ones(6, 3), torch.ones(6, 3)), batch_size=3)")
        with self.block("for inputs, targets in loader:"):
            self.line(f"bad = {module}(inputs)")
        return "batch"

    def fault_target(self) -> str:
        module = self.module(CARD, OTHER)
        place = self.known.modules[module]
        self.line("loader = DataLoader(Rows(6), batch_size=3)")
        with self.block("for batch in loader:"):
            self.line(f'inputs = batch["x"].to({place!r})')
            self.line(f'bad = F.mse_loss({module}(inputs), batch["y"])')
        return "batch"

    def fault_helper(self) -> str:
        self.line(f"bad = noisy({self.tensor(CARD, OTHER)})")
        return "factory without a device"


Expression = Callable[[Writer], tuple[str, str]]
Statement = Callable[[Writer, int], None]

EXPRESSIONS: tuple[Expression, ...] = (
    Writer.factory, Writer.moved, Writer.moved, Writer.shape, Writer.shape, Writer.pair, Writer.pair, Writer.container,
    Writer.comprehension, Writer.choice, Writer.walrus, Writer.function, Writer.function, Writer.function, Writer.call,
    Writer.own_class,
)  # fmt: skip
PLAIN: tuple[Statement, ...] = (
    Writer.plain, Writer.plain, Writer.plain, Writer.plain, Writer.unpack, Writer.augmented, Writer.modules,
    Writer.new_module, Writer.devices, Writer.host, Writer.boxes,
)  # fmt: skip
NESTED: tuple[Statement, ...] = (
    Writer.branch, Writer.branch, Writer.guard, Writer.loop, Writer.while_, Writer.try_, Writer.with_, Writer.with_,
    Writer.match_, Writer.closure, Writer.layers, Writer.loader, Writer.batch, Writer.optimizer, Writer.set_device,
    Writer.set_default, Writer.partial,
)  # fmt: skip
FAULTS: tuple[Callable[[Writer], str], ...] = (
    Writer.fault_factory, Writer.fault_factory, Writer.fault_variable, Writer.fault_operands, Writer.fault_operands,
    Writer.fault_module, Writer.fault_moved_module, Writer.fault_class, Writer.fault_attribute, Writer.fault_discarded,
    Writer.fault_index, Writer.fault_numpy, Writer.fault_generator, Writer.fault_missing, Writer.fault_batch,
    Writer.fault_target, Writer.fault_helper,
)  # fmt: skip
CONSTRUCTS = frozenset(
    {
        "containers", "unpacking", "comprehensions", "inheritance", "closures", "partial", "decorators",
        "with torch.device", "with torch.cuda.device", "set_device", "device_index", "set_default_device",
        "no_grad and autocast", "walrus", "match", "star arguments", "loops", "guards", "argparse", "dataclass",
        "dicts of tensors", "batches", "optimizers", "module calls", "host code", "functions", "recursion", "lambda",
        "chosen device", "literal device", "branches", "exceptions", "loops over modules",
    }
)  # fmt: skip


def shrink(text: str, shows: Callable[[str], bool]) -> str:
    """The smallest program found that still `shows` what `text` does, by taking out statements, larger ones first."""
    smaller = True
    while smaller:
        smaller = False
        count = sum(1 for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt))
        for index in range(count):
            candidate = without(text, index)
            if candidate is not None and len(candidate) < len(text) and shows(candidate):
                text, smaller = candidate, True
    return text


def without(text: str, index: int) -> str | None:
    """`text` without its statement number `index`, counted from the outside in; None when there is no such statement.

    A body that becomes empty is filled with `pass`.
    """
    tree = ast.parse(text)
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if not isinstance(body, list):
                continue
            if index < len(body):
                del body[index]
                if not body and name == "body" and not isinstance(node, ast.Module):
                    body.append(ast.Pass())
                return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
            index -= len(body)
    return None

"""Events of calls, attributes, comparisons and assignments: what is known of their parts, and who says so."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path
from typing import TypeVar

import pytest

from devlint.api import (
    Inferred,
    InferredAssignment,
    InferredAttribute,
    InferredCall,
    InferredComparison,
    Part,
)
from devlint.engine import Linter
from devlint.inference.analysis import infer
from devlint.settings import Settings
from devlint.source import Source, read_source

PRELUDE = "import torch\nfrom torch import nn\n\nmodel = nn.Linear(3, 3)\n"
E = TypeVar("E", bound=Inferred)


def events(code: str, kind: type[E]) -> list[E]:
    text = PRELUDE + textwrap.dedent(code)
    found = infer(ast.parse(text), Source("case.py", text.encode(), text), None, observes=(Inferred,)).observed
    return [each for each in found if isinstance(each, kind)]


def calls(code: str, name: str) -> list[InferredCall]:
    return [each for each in events(code, InferredCall) if each.name == name]


def receiver(code: str, name: str = "to") -> Part:
    """The receiver of the only call of a name of which something is known."""
    found = {(each.receiver.kind, each.receiver.evidence): each.receiver for each in calls(code, name) if each.receiver}
    known = {key: part for key, part in found.items() if key[1] != "likely"}
    assert len(known) == 1, sorted(found)
    return next(iter(known.values()))


KINDS = {
    "optimizer": "torch.optim.Adam(model.parameters())",
    "optimizer by getattr": "getattr(torch.optim, 'SGD')(model.parameters(), lr=1)",
    "scheduler": "torch.optim.lr_scheduler.StepLR(torch.optim.Adam(model.parameters()), 3)",
    "loader": "torch.utils.data.DataLoader([1])",
    "dataset": "torch.utils.data.TensorDataset(torch.ones(3))",
    "scaler": "torch.amp.GradScaler('cpu')",
    "generator": "torch.Generator()",
    "distribution": "torch.distributions.Normal(torch.zeros(3), torch.ones(3))",
    "list": "[torch.ones(3)]",
    "list by a comprehension": "[torch.ones(3) for _ in range(3)]",
    "tuple": "(torch.ones(3), 1)",
    "dict": "{'a': torch.ones(3)}",
    "tensors": "torch.chunk(torch.ones(3), 2)",
    "iterator": "model.parameters()",
    "string": "'cpu'",
    "number": "torch.ones(3).sum().item()",
    "dtype": "torch.float16",
    "device": "torch.device('cpu')",
    "array": "torch.ones(3).numpy()",
}


@pytest.mark.parametrize("name", KINDS)
def test_kind_of_what_code_makes_is_proved(name: str) -> None:
    part = receiver(f"x = {KINDS[name]}\nx.to(0)\n")
    assert (part.kind, part.evidence) == (name.partition(" ")[0], "proved")
    assert all(each.exists is False for each in calls(f"x = {KINDS[name]}\nx.to(0)\n", "to"))


def test_tokenizer_of_another_library_has_no_move() -> None:
    code = "from transformers import AutoTokenizer\nwords = AutoTokenizer.from_pretrained('x')\nwords.to(0)\n"
    (found,) = calls(code, "to")
    assert found.receiver is not None
    assert (found.receiver.kind, found.exists) == ("Tokenizer", False)


WAYS = {
    "in a field": "class A:\n    def __init__(self):\n        self.o = {o}\n    def f(self):\n        self.o.to(0)\n",
    "by a function": "def make():\n    return {o}\ndef f():\n    make().to(0)\n",
    "by a property": (
        "class A:\n    @property\n    def o(self):\n        return {o}\n    def f(self):\n        self.o.to(0)\n"
    ),
    "in a list": "os = [{o}]\nfor o in os:\n    o.to(0)\n",
    "in a dict": "os = {{'a': {o}}}\nos['a'].to(0)\n",
    "from a pair": "def make():\n    return model, {o}\n_, o = make()\no.to(0)\n",
    "from a context": (
        "import contextlib\n@contextlib.contextmanager\ndef c():\n    yield {o}\nwith c() as o:\n    o.to(0)\n"
    ),
    "by a choice": "def f(a):\n    o = {o} if a else torch.optim.ASGD(model.parameters())\n    o.to(0)\n",
    "by a class variable": "class A:\n    c = torch.optim.Adam\n    def f(self):\n        self.c(model.parameters()).to(0)\n",
    "by a table": (
        "T = {{'a': torch.optim.SGD, 'b': torch.optim.Adam}}\ndef f(n):\n    T[n](model.parameters()).to(0)\n"
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_optimizer_is_known_however_it_comes(way: str) -> None:
    part = receiver(WAYS[way].format(o="torch.optim.Adam(model.parameters())"))
    assert (part.kind, part.evidence) == ("optimizer", "proved")


HANDED = {
    "to a function": "def f(o):\n    o.to(0)\nf({o})\n",
    "through two functions": "def g(o):\n    o.to(0)\ndef f(o):\n    g(o)\nf({o})\n",
    "to a constructor": (
        "class A:\n    def __init__(self, o):\n        self.o = o\n    def f(self):\n        self.o.to(0)\nA({o}).f()\n"
    ),
    "as a class": "def f(c):\n    c(model.parameters()).to(0)\nf(torch.optim.Adam)\n",
    "to a lambda": "list(map(lambda o: o.to(0), [{o}]))\n",
}


@pytest.mark.parametrize("way", HANDED)
def test_optimizer_that_a_call_hands_over_is_called(way: str) -> None:
    part = receiver(HANDED[way].format(o="torch.optim.Adam(model.parameters())"))
    assert (part.kind, part.evidence) == ("optimizer", "called")


def test_call_that_hands_a_value_over_explains_it() -> None:
    found = calls("def f(o):\n    o.to(0)\nf([1])\n", "to")
    (event,) = [each for each in found if each.exists is False]
    assert [each.text for each in event.because] == ["passed in here"]


ASKED = {
    "by isinstance": (
        "def f(o):\n    if isinstance(o, list):\n        return [x.to(0) for x in o]\n    return o.to(0)\nf([model])\n"
    ),
    "by a flag": "def f(o, many):\n    if many:\n        return None\n    return o.to(0)\nf([model], True)\n",
    "by another name": "def f(o):\n    o = model\n    o.to(0)\nf([model])\n",
}


@pytest.mark.parametrize("way", ASKED)
def test_value_that_does_not_reach_the_call_is_not_called(way: str) -> None:
    lists = [each for each in calls(ASKED[way], "to") if each.receiver and each.receiver.kind == "list"]
    assert [each for each in lists if each.receiver and each.receiver.evidence != "likely"] == []


def test_annotation_alone_is_annotated() -> None:
    part = receiver("def f(o: torch.optim.Optimizer):\n    o.to(0)\n")
    assert (part.kind, part.evidence) == ("optimizer", "annotated")


def test_field_of_a_data_class_is_annotated() -> None:
    code = (
        "from dataclasses import dataclass\n@dataclass\nclass A:\n"
        "    o: torch.optim.Optimizer\n    def f(self):\n        self.o.to(0)\n"
    )
    assert receiver(code).evidence == "annotated"


@pytest.mark.parametrize("default", ["1.0", "0"])
def test_default_does_not_say_what_an_argument_is(default: str) -> None:
    (found,) = calls(f"def f(x={default}):\n    x.to(0)\n", "to")
    assert found.receiver is not None
    assert found.receiver.evidence == "likely"


UNSURE = {
    "array of a tensor": "import numpy as np\nx = np.repeat(torch.ones(3), 2)\nx.to(0)\n",
    "array of something": "def f(x):\n    x.cpu().numpy().to(0)\n",
    "array and something": "import numpy as np\ndef f(x):\n    (x / np.sqrt(3)).to(0)\n",
    "list or tensor": "def f(a):\n    x = [1] if a else torch.ones(3)\n    x.to(0)\n",
    "other option of a group": "def f(o: torch.optim.Adam, k):\n    for g in o.param_groups:\n        g[k].to(0)\n",
    "items of an extended list": (
        "def f(xs, x):\n    moved = [y.to(0) for y in xs]\n    xs.extend(moved)\nf([torch.ones(3)], 1)\n"
    ),
    "decorated class": (
        "from a import d\n@d\nclass A:\n    def __init__(self):\n        self.x = [1]\n"
        "    def f(self):\n        self.x.to(0)\n"
    ),
    "class that binds fields itself": (
        "class A:\n    def __init__(self):\n        self.x = [1]\n"
        "    def __setattr__(self, n, v):\n        pass\n    def f(self):\n"
        "        self.x.to(0)\n"
    ),
}


@pytest.mark.parametrize("way", UNSURE)
def test_kind_that_is_not_proved_denies_nothing(way: str) -> None:
    found = [each for each in calls(UNSURE[way], "to") if each.exists is False and each.receiver]
    assert [each.receiver for each in found if each.receiver and each.receiver.evidence != "likely"] == []


def test_getattr_with_a_constant_name_reads_an_attribute() -> None:
    code = "o = torch.optim.Adam(model.parameters())\ngetattr(o, 'to')(0)\n"
    assert [(each.name, each.exists) for each in events(code, InferredAttribute) if each.name == "to"] == [
        ("to", False)
    ]
    assert [each.exists for each in calls(code, "to")] == [False]


def test_method_without_parentheses_is_a_method() -> None:
    (found,) = calls("x = torch.ones(3)\nx.cpu.numpy()\n", "numpy")
    assert found.receiver is not None
    assert (found.receiver.kind, found.receiver.class_name, found.exists) == ("method", "Tensor.cpu", False)


def test_called_device_is_the_callee() -> None:
    (found,) = calls("x = torch.ones(3)\nx.device()\n", "device")
    assert found.callee is not None
    assert found.callee.kind == "device"


def test_module_of_the_project_lacks_what_nothing_gives_it() -> None:
    code = "class A(nn.Module):\n    def forward(self, x):\n        return x.to(self.device)\n"
    assert [each.exists for each in events(code, InferredAttribute) if each.name == "device"] == [False]


GIVEN = {
    "a property": "    @property\n    def device(self):\n        return 1\n",
    "a binding": "    def set(self, d):\n        self.device = d\n",
    "a made up name": "    def __getattr__(self, n):\n        return 1\n",
}


@pytest.mark.parametrize("way", GIVEN)
def test_module_of_the_project_has_what_its_class_gives(way: str) -> None:
    code = "class A(nn.Module):\n    def forward(self, x):\n        return x.to(self.device)\n" + GIVEN[way]
    assert False not in [each.exists for each in events(code, InferredAttribute) if each.name == "device"]


def test_subclass_may_give_what_a_base_lacks() -> None:
    code = (
        "class A(nn.Module):\n    def forward(self, x):\n"
        "        return x.to(self.device)\nclass B(A):\n    device = 'cpu'\n"
    )
    assert False not in [each.exists for each in events(code, InferredAttribute) if each.name == "device"]


def test_comparison_has_an_event_for_each_operator() -> None:
    found = events("x = torch.ones(3)\na = 'cpu' == x.device is not None\n", InferredComparison)
    assert [(each.left.kind, each.operator, each.right.kind) for each in found] == [
        ("string", "==", "device"), ("device", "is not", "none"),
    ]  # fmt: skip


def test_assignment_has_target_owner_and_value() -> None:
    found = events("model.extra = torch.ones(3)\n", InferredAssignment)
    (event,) = [each for each in found if each.target == "model.extra"]
    assert event.owner is not None
    assert (event.owner.kind, event.value.kind, event.value.is_on("cpu")) == ("module", "tensor", True)


def test_place_is_that_at_the_call() -> None:
    code = "d = 'cuda:1'\nmodel.half()\nmodel.to(d)\nmodel.half()\n"
    before, after = calls(code, "half")
    assert before.receiver is not None and after.receiver is not None
    assert (before.receiver.is_on("cpu"), after.receiver.is_on("cpu")) == (True, False)
    assert [each.device for each in after.receiver.places] == ["cuda:1"]


def test_handler_and_condition_are_guards() -> None:
    code = (
        "def f(a):\n    try:\n        if a:\n            model.to(0)\n"
        "    except (AttributeError, KeyError):\n        pass\n"
    )
    (found,) = calls(code, "to")
    assert found.under.catches("AttributeError")
    assert found.under.tests == ("a",)


def test_suppressed_error_is_caught() -> None:
    code = "import contextlib\nwith contextlib.suppress(AttributeError):\n    model.to(0)\n"
    (found,) = calls(code, "to")
    assert found.under.catches("AttributeError")


def test_helper_of_another_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text(
        "import torch\n\n\ndef make(m):\n    return torch.optim.SGD(m.parameters(), lr=1)\n"
    )
    main = tmp_path / "main.py"
    main.write_text("import torch\nfrom helpers import make\n\no = make(torch.nn.Linear(1, 1))\no.to(0)\n")
    linter = Linter([], Settings())
    source = read_source(main)
    found = infer(linter.parse(source), source, linter.load_tree, observes=(Inferred,)).observed
    (event,) = [each for each in found if isinstance(each, InferredCall) and each.name == "to"]
    assert (event.receiver and event.receiver.kind, event.exists) == ("optimizer", False)


def test_mismatches_are_the_same_whether_or_not_events_are_asked_for() -> None:
    text = PRELUDE + "def f(x):\n    return x + torch.ones(3)\nf(torch.ones(3, device='cuda'))\n"
    source = Source("case.py", text.encode(), text)
    first, second = (infer(ast.parse(text), source, None, observes=each).mismatches for each in ((Inferred,), ()))
    assert [(each.span, each.code, each.evidence) for each in first] == [(e.span, e.code, e.evidence) for e in second]

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


# -- where a field of an object is, and what an argument is given


OBJECT = """\
class A:
    def __init__(self):
        {make}
    def shrink(self):
        self.net.half()
{more}
"""


def of_object(make: str, more: str = "") -> list[Part]:
    """What `self.net` is known to be in a method of a class whose constructor does `make`."""
    code = OBJECT.format(make=make, more=more)
    return [each.receiver for each in calls(code, "half") if each.receiver is not None]


ON_CPU = {
    "made by a class of torch": ("self.net = nn.Linear(3, 3)", ""),
    "made by a function": ("self.net = build(3)", "def build(n):\n    return nn.Sequential(nn.Linear(n, n))\n"),
    "made by a class of the file": (
        "self.net = Net()",
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = nn.Linear(3, 3)\n",
    ),
    "moved to the CPU": ("self.net = nn.Linear(3, 3).to('cpu')", ""),
    "made by a method": (
        "self.net = self.build()",
        "    def build(self):\n        return nn.Linear(3, 3)\n",
    ),
}


@pytest.mark.parametrize("way", ON_CPU)
def test_field_is_where_the_constructor_puts_it(way: str) -> None:
    parts = of_object(*ON_CPU[way])
    assert [(part.kind, part.is_on("cpu"), part.evidence) for part in parts] == [("module", True, "proved")]


def test_field_is_where_the_constructor_of_a_base_puts_it() -> None:
    code = (
        "class B:\n    def __init__(self):\n        self.net = nn.Linear(3, 3)\n"
        "class C(B):\n    def f(self):\n        self.net.half()\n"
    )
    assert [each.receiver.is_on("cpu") for each in calls(code, "half") if each.receiver] == [True]


def test_tensor_in_a_field_is_where_the_constructor_puts_it() -> None:
    parts = of_object("self.net = torch.zeros(3)")
    assert [(part.kind, part.is_on("cpu")) for part in parts] == [("tensor", True)]


ELSEWHERE = {
    "moved by the constructor": ("self.net = nn.Linear(3, 3).cuda()", ""),
    "moved by another method": ("self.net = nn.Linear(3, 3)", "    def start(self):\n        self.net.cuda()\n"),
    "replaced by another method": (
        "self.net = nn.Linear(3, 3)",
        "    def start(self):\n        self.net = nn.Linear(3, 3).cuda()\n",
    ),
    "moved by a user of the object": ("self.net = nn.Linear(3, 3)", "def main():\n    a = A()\n    a.net.cuda()\n"),
    "moved by a function that gets it": (
        "self.net = nn.Linear(3, 3)\n        move(self.net)",
        "def move(net):\n    net.cuda()\n",
    ),
    "made by what cannot be read": ("self.net = make(3)", ""),
    "put on the device that is chosen": (
        "self.net = nn.Linear(3, 3).to('cuda' if torch.cuda.is_available() else 'cpu')",
        "",
    ),
}


@pytest.mark.parametrize("way", ELSEWHERE)
def test_field_that_is_moved_is_not_on_the_cpu(way: str) -> None:
    assert [part for part in of_object(*ELSEWHERE[way]) if part.is_on("cpu")] == []


def test_part_of_a_module_is_where_the_module_is() -> None:
    code = (
        "class A(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.net = nn.Linear(3, 3)\n"
        "    def shrink(self):\n        self.net.half()\n"
    )
    (found,) = calls(code, "half")
    assert found.receiver is not None
    assert [(each.device, each.expression) for each in found.receiver.places] == [
        (None, "next(self.net.parameters()).device")
    ]


def test_object_of_a_class_that_is_no_module_has_no_place() -> None:
    (found,) = calls("class A:\n    def f(self):\n        self.half()\n", "half")
    assert found.receiver is not None
    assert not any(each.device or each.expression for each in found.receiver.places)


def test_move_in_the_method_counts_from_there() -> None:
    code = OBJECT.format(make="self.net = nn.Linear(3, 3)", more="        self.net.cuda()\n        self.net.half()\n")
    first, second = calls(code, "half")
    assert first.receiver is not None and second.receiver is not None
    assert [each.is_on("cpu") for each in (first.receiver, second.receiver)] == [True, False]


def test_line_that_made_a_field_explains_where_it_is() -> None:
    code = OBJECT.format(make="self.net = nn.Linear(3, 3)", more="")
    (event,) = calls(code, "half")
    assert [(each.text, each.span.start > 0) for each in event.because] == [("created on the CPU here", True)]


PASSED = {
    "to a function": "def f(net):\n    net.half()\nf({m})\n",
    "to an annotated argument": "def f(net: nn.Module):\n    net.half()\nf({m})\n",
    "through two functions": "def g(net):\n    net.half()\ndef f(net):\n    g(net)\nf({m})\n",
    "to a constructor": (
        "class A:\n    def __init__(self, net):\n        self.net = net\n    def f(self):\n        self.net.half()\n"
        "A({m}).f()\n"
    ),
    "to a method": "class A:\n    def f(self, net):\n        net.half()\nA().f({m})\n",
    "to an inner function": "def f():\n    def g(net):\n        net.half()\n    g({m})\nf()\n",
    "by name": "def f(*, net):\n    net.half()\nf(net={m})\n",
}


@pytest.mark.parametrize("way", PASSED)
def test_argument_is_where_a_call_puts_it(way: str) -> None:
    found = calls(PASSED[way].format(m="nn.Linear(3, 3)"), "half")
    on_cpu = [
        (each.receiver.evidence, each.because[-1].text)
        for each in found
        if each.receiver and each.receiver.is_on("cpu")
    ]
    assert on_cpu == [("called", "passed in here")]


@pytest.mark.parametrize("way", PASSED)
def test_argument_that_every_call_puts_on_a_card_is_not_on_the_cpu(way: str) -> None:
    found = calls(PASSED[way].format(m="nn.Linear(3, 3).cuda()"), "half")
    parts = [each.receiver for each in found if each.receiver is not None]
    assert [part for part in parts if part.is_on("cpu")] == []
    assert [part.evidence for part in parts if part.is_on("cuda")] == ["called"]


def test_two_calls_that_put_it_elsewhere_are_two_events() -> None:
    found = calls("def f(net):\n    net.half()\nf(nn.Linear(3, 3))\nf(nn.Linear(3, 3).cuda())\n", "half")
    known = [[place.device for place in each.receiver.places] for each in found if each.receiver]
    assert sorted(filter(any, known)) == [["cpu"], ["cuda"]]


NOT_HANDED = {
    "moved before the call": "def f(net):\n    net.half()\nnet = nn.Linear(3, 3)\nnet.cuda()\nf(net)\n",
    "moved by the function": "def f(net):\n    net.cuda()\n    net.half()\nf(nn.Linear(3, 3))\n",
    "moved between the constructor and the method": (
        "class A:\n    def __init__(self, net):\n        self.net = net\n    def f(self):\n        self.net.half()\n"
        "net = nn.Linear(3, 3)\na = A(net)\nnet.cuda()\na.f()\n"
    ),
    "not reached by this call": (
        "def f(net, small):\n    if small:\n        net.half()\nf(nn.Linear(3, 3), False)\nf(nn.Linear(3, 3).cuda(), True)\n"
    ),
}


@pytest.mark.parametrize("way", NOT_HANDED)
def test_argument_that_is_moved_is_not_on_the_cpu(way: str) -> None:
    found = calls(NOT_HANDED[way], "half")
    assert [each.receiver for each in found if each.receiver and each.receiver.is_on("cpu")] == []


def test_argument_is_where_it_was_at_the_call_and_not_later() -> None:
    found = calls("def f(net):\n    net.half()\nnet = nn.Linear(3, 3)\nf(net)\nnet.cuda()\n", "half")
    assert [each.receiver.is_on("cpu") for each in found if each.receiver and each.receiver.evidence == "called"] == [
        True
    ]


def test_argument_of_a_function_call_is_where_a_call_of_the_project_puts_it() -> None:
    found = calls("def f(x: torch.Tensor):\n    return torch.relu(x)\nf(torch.ones(3))\n", "torch.relu")
    assert [each.arguments["0"].is_on("cpu") for each in found if each.arguments["0"].evidence == "called"] == [True]


def test_device_that_was_tested_decides_the_place() -> None:
    code = (
        "def f():\n    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n"
        "    net = nn.Linear(3, 3).to(device)\n    if device.type != 'cpu':\n        net.half()\n    else:\n"
        "        net.half()\n"
    )
    found = [[place.device for place in each.receiver.places] for each in calls(code, "half") if each.receiver]
    assert found == [["cuda"], ["cpu"]]


def test_place_is_given_once() -> None:
    (found,) = calls("for net in [nn.Linear(3, 3), nn.Linear(3, 3)]:\n    net.half()\n", "half")
    assert found.receiver is not None
    assert [each.device for each in found.receiver.places] == ["cpu"]


def test_place_under_a_condition_names_it() -> None:
    code = "def f(fast):\n    net = nn.Linear(3, 3)\n    if fast:\n        net.cuda()\n    net.half()\n"
    (found,) = calls(code, "half")
    assert found.receiver is not None
    assert {(each.device, each.when) for each in found.receiver.places} == {
        ("cpu", "`fast` is false"),
        ("cuda", "`fast` is true"),
    }


ELSEWHERE_CALLED = {
    "a function": ("def shrink(net):\n    net.half()\n", "from helpers import shrink\nshrink({m})\n"),
    "a constructor": (
        "class A:\n    def __init__(self, net):\n        self.net = net\n    def f(self):\n        self.net.half()\n",
        "from helpers import A\ndef main():\n    A({m}).f()\n",
    ),
    "a method": (
        "class A:\n    def f(self, net):\n        net.half()\n",
        "import helpers\ndef main():\n    helpers.A().f({m})\n",
    ),
}


def with_caller(tmp_path: Path, way: str, made: str, callers: bool) -> list[InferredCall]:
    """The calls of `half` in a file of which another file calls something with what is `made`."""
    (tmp_path / "pyproject.toml").touch()
    helper, main = ELSEWHERE_CALLED[way]
    path = tmp_path / "helpers.py"
    path.write_text(f"import torch\n{helper}")
    (tmp_path / "main.py").write_text(f"import torch\nfrom torch import nn\n{main.format(m=made)}")
    linter = Linter([], Settings())
    source, around = read_source(path), linter.neighbours(str(path))
    found = infer(linter.parse(source), source, linter.load_tree, (), around, observes=(Inferred,), callers=callers)
    return [each for each in found.observed if isinstance(each, InferredCall) and each.name == "half"]


@pytest.mark.parametrize("way", ELSEWHERE_CALLED)
def test_call_in_another_file_says_where_an_argument_is(tmp_path: Path, way: str) -> None:
    found = with_caller(tmp_path, way, "nn.Linear(3, 3)", callers=True)
    on_cpu = [each for each in found if each.receiver is not None and each.receiver.is_on("cpu")]
    assert [each.receiver.evidence for each in on_cpu if each.receiver] == ["called"]
    assert [(each.text, Path(each.path or "").name) for each in on_cpu[0].because][-1] == ("passed in here", "main.py")


@pytest.mark.parametrize("way", ELSEWHERE_CALLED)
def test_call_in_another_file_that_puts_it_on_a_card(tmp_path: Path, way: str) -> None:
    found = with_caller(tmp_path, way, "nn.Linear(3, 3).cuda()", callers=True)
    assert [each for each in found if each.receiver is not None and each.receiver.is_on("cpu")] == []


def test_field_that_another_file_moves_is_not_on_the_cpu(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    path = tmp_path / "helpers.py"
    path.write_text("from torch import nn\n" + OBJECT.format(make="self.net = nn.Linear(3, 3)", more=""))
    (tmp_path / "main.py").write_text("from helpers import A\na = A()\na.net.cuda()\na.shrink()\n")
    linter = Linter([], Settings())
    source, around = read_source(path), linter.neighbours(str(path))
    found = infer(linter.parse(source), source, linter.load_tree, (), around, observes=(Inferred,), callers=True)
    halves = [each for each in found.observed if isinstance(each, InferredCall) and each.name == "half"]
    assert [each for each in halves if each.receiver and each.receiver.is_on("cpu")] == []
    assert [each.receiver.evidence for each in halves if each.receiver and each.receiver.is_on("cuda")] == ["called"]


def test_other_files_are_read_only_where_a_rule_asks_for_it(tmp_path: Path) -> None:
    found = with_caller(tmp_path, "a function", "nn.Linear(3, 3)", callers=False)
    assert [each for each in found if each.receiver is not None and each.receiver.is_on("cpu")] == []


UNUSUAL = {
    "by its class": "torch.nn.Module.half(net)\n",
    "by its class through an import": "nn.Module.half(net)\n",
    "by a variable": "f = net.half\nf()\n",
    "by getattr": "getattr(net, 'half')()\n",
    "by a variable before a move": "f = net.half\nf()\nnet.cuda()\n",
}


@pytest.mark.parametrize("way", UNUSUAL)
def test_method_has_its_object_however_it_is_called(way: str) -> None:
    (found,) = calls("net = nn.Linear(3, 3)\n" + UNUSUAL[way], "half")
    assert found.receiver is not None
    assert (found.receiver.kind, found.receiver.is_on("cpu"), found.arguments) == ("module", True, {})


def test_method_that_is_called_by_its_class_has_its_arguments() -> None:
    (found,) = calls("torch.Tensor.to(torch.ones(3), 'cuda', non_blocking=True)\n", "to")
    assert {name: part.constant for name, part in found.arguments.items()} == {"0": "cuda", "non_blocking": True}


def test_static_method_has_no_object() -> None:
    (found,) = calls("torch.nn.ModuleList.extend([model])\n", "torch.nn.ModuleList.extend")
    assert found.receiver is None


def test_object_that_nobody_makes_hands_nothing_over(tmp_path: Path) -> None:
    """The story of a class calls its constructor and its methods with whatever they may be given: no code does so."""
    (tmp_path / "base.py").write_text(
        "import torch\n" * 40 + "class B:\n    def __init__(self, x=None, y: int = 0):\n        self.x = y\n"
        "    def set(self, x):\n        self.x = x.to(0)\n"
    )
    path = tmp_path / "own.py"
    path.write_text(
        "import torch\nfrom base import B\nclass A(B):\n    def __init__(self, x=None, y: int = 0):\n"
        "        self.x = [y]\n    def set(self, x):\n        self.y = x.to(self.x)\n"
    )
    linter = Linter([], Settings())
    source, around = read_source(path), linter.neighbours(str(path))
    found = infer(linter.parse(source), source, linter.load_tree, (), around, observes=(Inferred,), callers=True)
    moves = [each for each in found.observed if isinstance(each, InferredCall) and each.name == "to"]
    assert [each.receiver.evidence for each in moves if each.receiver] == ["likely"]


NAMELESS = {
    "what a call gives": "def f(make):\n    make().net.half()\n",
    "an item of a list": "def f(xs: list[torch.Tensor]):\n    for x in xs:\n        x.half()\n",
}


@pytest.mark.parametrize("way", NAMELESS)
def test_place_without_code_of_its_own_has_no_expression(way: str) -> None:
    (found,) = calls(NAMELESS[way], "half")
    assert found.receiver is not None
    assert [each.expression for each in found.receiver.places] == [None]


def test_method_that_the_constructor_calls_has_what_it_hands_over() -> None:
    code = (
        "class Config:\n    def __init__(self):\n        self.name = 'a'\n"
        "class A:\n    def __init__(self, config: Config):\n        self.begin(config)\n"
        "    def begin(self, config):\n        config.name.to(0)\n"
    )
    assert receiver(code).kind == "string"


@pytest.mark.parametrize(("name", "kind"), [("*args", "tuple"), ("**kwargs", "dict")])
def test_gathered_arguments_are_a_tuple_or_a_dict(name: str, kind: str) -> None:
    part = receiver(f"def f({name}):\n    {name.strip('*')}.to(0)\n")
    assert (part.kind, part.evidence) == (kind, "proved")

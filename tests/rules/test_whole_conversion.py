"""A conversion is whole: what needs the card and stays keeps it from being safe, and what belongs to it is written with it."""

from __future__ import annotations

import pytest

from devlint.engine import Linter
from devlint.fix.rounds import fix_source
from devlint.model import Safety
from devlint.settings import Settings
from devlint.source import decode
from devlint_rules import RULES

SELECT = ("DEV201", "DEV202", "DEV203", "DEV205", "DEV209")
SETTINGS = Settings(select=SELECT, torch_stated=False)
CHOICE = '"cuda" if torch.cuda.is_available() else "cpu"'


def converted(text: str, *allow: Safety) -> str:
    linter = Linter(tuple(rule() for rule in RULES), SETTINGS)
    return fix_source(linter, decode(text.encode(), "train.py"), allow or (Safety.SAFE, Safety.UNSAFE)).text


PROGRAM = "import torch\nfrom here import make\n\n\ndef main():\n    model = torch.nn.Linear(2, 2).cuda()\n    {}\n\n\nmain()\n"


def test_a_program_without_more_is_converted_safely() -> None:
    assert ".to(device)" in converted(PROGRAM.format("print(model)"), Safety.SAFE)


@pytest.mark.parametrize(
    "stays",
    [
        "print(torch.cuda.get_device_name(0))",
        "total = torch.cuda.get_device_properties(0).total_memory",
        "try:\n        print(torch.cuda.current_device())\n    except AttributeError:\n        pass",
        "loss = make(usegpu=True)",
        "loss = make(use_cuda=True)",
        "loss = make(on_gpu=True, n=3)",
        "x = torch.rand(3, 2).half()",
        "y = model(torch.rand(3, 2).cuda().half())",
        "model.half()",
        "state = torch.load('a', map_location=torch.device(f'cuda:{make()}'))",
        "state = torch.load('a', map_location=f'cuda:{make()}')",
        "state = torch.load('a', map_location='cuda:{}'.format(make()))",
    ],
)
def test_a_line_that_needs_the_card_keeps_the_conversion_from_being_safe(stays: str) -> None:
    text = PROGRAM.format(stays)
    assert converted(text, Safety.SAFE) == text


@pytest.mark.parametrize("default", ['device="cuda"', "device='cuda:0'", '*, place="cuda"'])
def test_a_default_that_names_the_card_keeps_the_conversion_from_being_safe(default: str) -> None:
    text = PROGRAM.replace("def main", f"def noise({default}):\n    return make()\n\n\ndef main").format("print(model)")
    assert converted(text, Safety.SAFE) == text


@pytest.mark.parametrize(
    "handler",
    [
        "except AttributeError:\n    pass",
        "except (AttributeError, ImportError):\n    pass",
        "except KeyError:\n    pass",
    ],
)
def test_the_name_of_the_card_under_a_handler_of_another_error_is_reported(handler: str) -> None:
    text = f"import torch\n\ntry:\n    print(torch.cuda.get_device_name(0))\n{handler}\n"
    linter = Linter(tuple(rule() for rule in RULES), SETTINGS)
    assert [each.code for each in linter.check(decode(text.encode(), "a.py")).diagnostics] == ["DEV205"]


def test_another_card_than_the_current_one_stays_that_card() -> None:
    text = (
        "import torch\n\n\ndef main(net, other):\n    net = net.cuda()\n    place = torch.device('cuda:1')\n"
        "    other = other.to(place)\n    return net, other\n"
    )
    assert "torch.device('cuda:1' if torch.cuda.is_available() else 'cpu')" in converted(text)


def test_a_second_card_without_a_name_is_a_hint() -> None:
    text = "import torch\n\n\ndef main(net):\n    net = net.cuda()\n    return torch.rand(3).to('cuda:1')\n"
    assert ".to('cuda:1')" in converted(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("torch.cuda.amp.autocast()", "torch.autocast(device.type)"),
        ("torch.cuda.amp.autocast(enabled=True)", "torch.autocast(device.type, enabled=True)"),
        ("torch.cuda.amp.GradScaler()", 'torch.amp.GradScaler(device.type, enabled=device.type == "cuda")'),
    ],
)
def test_mixed_precision_takes_the_type_of_the_new_device(old: str, new: str) -> None:
    assert new in converted(PROGRAM.format(f"scale = {old}"))


@pytest.mark.parametrize("text", ["import torch\n\nscale = torch.cuda.amp.GradScaler()\n"])
def test_mixed_precision_alone_keeps_its_type(text: str) -> None:
    assert 'torch.amp.GradScaler("cuda")' in converted(text)


NET = """import torch
from torch import nn
from torch.autograd import Variable


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 3)

    def forward(self, x):
        return self.conv(x)

    def hidden(self, n):
        return {}
"""


@pytest.mark.parametrize(
    "made", ["Variable(torch.zeros(n, 3)).cuda()", "Variable(torch.zeros(n, 3).cuda())", "torch.zeros(n, 3).cuda()"]
)
def test_what_a_module_makes_goes_where_its_parameters_are(made: str) -> None:
    once = converted(NET.format(made))
    assert "next(self.parameters()).device" in once
    assert "is_available" not in once


@pytest.mark.parametrize(
    "use", ["show(self.net, device='cuda:0')", "torch.rand(3).cuda()", "torch.rand(3, device='cuda')"]
)
@pytest.mark.parametrize(
    "beside", ["x.to(self.device)", "torch.ones(3, device=self.device)", "x.to(device=self.device)"]
)
def test_the_device_of_the_class_is_used_where_the_class_places_things_by_it(use: str, beside: str) -> None:
    text = (
        "import torch\nfrom here import Base, show\n\n\nclass Trainer(Base):\n    def step(self, x):\n"
        f"        return {beside}\n\n    def end(self):\n        return {use}\n"
    )
    once = converted(text)
    assert once.count("self.device") == 2
    assert "is_available" not in once


@pytest.mark.parametrize("test", ["pred == kind", "pred > 3", "pred != kind"])
def test_what_is_computed_from_a_tensor_is_not_moved_to_its_device(test: str) -> None:
    text = (
        "import torch\n\n\ndef overlap(pred: torch.Tensor, labels: torch.Tensor, kind: int):\n"
        f"    return torch.sum(torch.mul(({test}).cuda(), (labels == kind).cuda()))\n"
    )
    once = converted(text)
    assert f"torch.mul({test}, " in once or f"torch.mul(({test}), " in once


@pytest.mark.parametrize(
    "said",
    ["torch.cuda.get_device_name(0)", '"card {}".format(torch.cuda.get_device_name(0))', "torch.cuda.current_device()"],
)
def test_a_print_about_the_card_is_put_under_a_guard(said: str) -> None:
    text = f"import torch\n\ntry:\n    print({said})\nexcept AttributeError:\n    print('none')\n"
    assert f"    if torch.cuda.is_available():\n        print({said})\n" in converted(text)


def test_a_print_with_two_calls_is_guarded_once() -> None:
    text = "import torch\n\nprint(torch.cuda.get_device_name(0), torch.cuda.current_device())\n"
    assert converted(text).count("is_available") == 1


@pytest.mark.parametrize("other", ["x = x.cuda()", "net = torch.nn.Linear(2, 2).cuda()", "x = x.to('cuda')"])
def test_one_name_serves_a_function_that_needs_the_new_one(other: str) -> None:
    text = (
        "import torch\n\n\ndef train(loader, net):\n    for x in loader:\n        "
        f"{other}\n        y = net(x)\n        z = torch.relu(y) + torch.ones(3).cuda()\n        z.sum().backward()\n"
    )
    assert ".device" not in converted(text).replace("torch.device", "")


def test_what_meets_the_callers_tensor_follows_it() -> None:
    text = (
        "import torch\n\n\ndef loss(x: torch.Tensor, make):\n    w = make().cuda()\n"
        "    return x + torch.ones(3, device='cuda') + w\n"
    )
    assert "device=x.device" in converted(text)


@pytest.mark.parametrize("unpack", ["a, b = given", "[a, b] = given", "a, (b, c) = given"])
def test_an_argument_that_is_unpacked_is_no_witness(unpack: str) -> None:
    text = (
        "import torch\n\n\nclass Loss:\n    def __call__(self, given, rows):\n"
        f"        {unpack}\n        x = torch.sigmoid(a)\n        rows = rows.cuda()\n        return x * rows\n"
    )
    assert "given.device" not in converted(text)


# What the one choice settles beside the uses of the card


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def noise(place='cuda'):\n    return torch.rand(3, device=place)", "place=device)"),
        ("def noise(*, place='cuda:0'):\n    return torch.rand(3).to(place)", "place=device)"),
        (
            "def noise(place='cuda'):\n    print('%s' % place)\n    return torch.rand(3, device=place)",
            "place='cuda' if torch.cuda.is_available() else 'cpu')",
        ),
        (
            "def noise(place='cuda'):\n    return make() if place == 'cuda' else None",
            "place='cuda' if torch.cuda.is_available() else 'cpu')",
        ),
        ("def noise(device='cuda'):\n    return torch.rand(3, device=device)", "noise(device=device)"),
        (
            "parser = make()\nparser.add_argument('--where', default='cuda')",
            "default='cuda' if torch.cuda.is_available() else 'cpu')",
        ),
    ],
)
def test_a_default_that_names_the_card_is_converted_with_its_uses(before: str, after: str) -> None:
    text = PROGRAM.replace("def main", f"{before}\n\n\ndef main").format("print(model)")
    assert after in converted(text)


@pytest.mark.parametrize("kind", ["torch.device('cuda')", "'cuda'"])
def test_a_default_and_a_checkpoint_take_the_name_that_the_file_has(kind: str) -> None:
    text = (
        f"import torch\n\nPLACE = {kind}\n\n\ndef noise(to='cuda'):\n    return torch.rand(3, device=to)\n\n\n"
        "def main(card, model):\n    model.to(PLACE)\n    return torch.load('a', map_location=f'cuda:{card}')\n"
    )
    after = converted(text)
    assert "def noise(to=PLACE):" in after
    assert "map_location=PLACE)" in after
    assert "device =" not in after


def test_a_default_alone_is_left_to_its_rule() -> None:
    text = "import torch\n\n\ndef noise(place='cuda'):\n    return torch.rand(3, device=place)\n"
    assert converted(text) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("loss = make(usegpu=True)", "make(usegpu=torch.cuda.is_available())"),
        ("loss = make(3, use_cuda=True).cuda()", "make(3, use_cuda=torch.cuda.is_available()).to(device)"),
        ("config = {'use_gpu': True, 'n': 3}", "{'use_gpu': torch.cuda.is_available(), 'n': 3}"),
    ],
)
def test_a_switch_for_the_card_is_on_where_the_card_is(before: str, after: str) -> None:
    assert after in converted(PROGRAM.format(before))


@pytest.mark.parametrize(
    "stays",
    [
        "loss = make(no_cuda=True)",
        "loss = make(use_gpu=False)",
        "loss = make(pin_memory=True)",
        "loss = make(disable_cuda=True)",
        "use_cuda = False\n    if torch.cuda.is_available():\n        use_cuda = make(use_gpu=True)",
    ],
)
def test_what_is_no_switch_that_is_on_stays(stays: str) -> None:
    assert stays in converted(PROGRAM.format(stays))


def test_a_name_that_conditions_read_as_a_switch_is_on_where_the_card_is() -> None:
    text = PROGRAM.replace("def main", "USE_CUDA = True\n\n\ndef main").format(
        "if USE_CUDA:\n        make(model.cuda())"
    )
    assert "USE_CUDA = torch.cuda.is_available()\n" in converted(text)


def test_a_switch_in_a_file_without_a_card_stays() -> None:
    text = "import torch\nfrom here import make\n\nmake(use_cuda=True)\n"
    assert converted(text) == text


@pytest.mark.parametrize(
    "place", ["torch.device(f'cuda:{make()}')", "f'cuda:{make()}'", "'cuda:{}'.format(make())", "'cuda:%d' % make()"]
)
def test_a_checkpoint_goes_to_the_device_and_not_to_a_computed_card(place: str) -> None:
    text = PROGRAM.format(f"model.load_state_dict(torch.load('a', map_location={place}))")
    assert "torch.load('a', map_location=device)" in converted(text)


def test_a_computed_card_without_other_uses_is_a_hint() -> None:
    text = "import torch\nfrom here import make\n\nstate = torch.load('a', map_location=f'cuda:{make()}')\n"
    assert converted(text) == text


LATE = """import torch


def first(net, other):
    net = net.cuda()
    {name} = torch.device("cuda:0")
    other = other.to({name})
    return net, other


def second(net):
    {name} = torch.device("cuda")
    return net.to({name})
"""


def test_a_device_that_functions_choose_late_is_chosen_once() -> None:
    after = converted(LATE.format(name="device"))
    assert after.count("torch.device(") == 1
    assert ".cuda()" not in after


@pytest.mark.parametrize(
    "also",
    ["    device = 3\n", "    for device in other:\n        pass\n", "    with other as device:\n        pass\n"],
)
def test_a_late_device_that_is_bound_to_something_else_keeps_the_file_as_it_is(also: str) -> None:
    text = LATE.format(name="device").replace("    return net, other\n", f"{also}    return net, other\n")
    assert converted(text) == text


def test_a_device_that_every_use_sees_stays_where_it_is() -> None:
    text = LATE.format(name="device").replace("    net = net.cuda()\n", "")
    assert converted(text).count(" if torch.cuda.is_available() else ") == 2


# What a reader called wrong: witnesses, indices, defaults, objects that are no devices


@pytest.mark.parametrize("part", ["rows[i : i + n]", "rows[i]", "rows.narrow(0, i, n)", "rows.float()"])
def test_a_part_of_an_argument_does_not_go_to_the_device_of_that_argument(part: str) -> None:
    text = (
        "import torch\n\n\ndef score(net, rows: torch.Tensor, n):\n    for i in range(n):\n"
        f"        part = {part}\n        part = part.cuda()\n        print(net(part))\n"
    )
    after = converted(text)
    assert "rows.device" not in after
    assert "part.to(device)" in after


@pytest.mark.parametrize(
    ("head", "index"),
    [
        ("def main(given):\n    cards = eval(given)\n    device = cards[0]", "device"),
        ("def main(given):\n    device = int(given[0])", "device"),
        (
            "def main(given):\n    if given:\n        device = given.rank\n        torch.cuda.set_device(device)\n"
            "    else:\n        device = given.first",
            "device",
        ),
        ("def main(given):\n    device = given.local_rank", "device"),
        ("def main(device: int):\n    pass", "device"),
        ("def main(device=0):\n    pass", "device"),
        ("def main(given):\n    device = torch.cuda.current_device()", "device"),
        ("def main(given):\n    for device in range(2):\n        pass", "device"),
    ],
)
def test_an_index_is_no_device_and_the_conversion_is_not_offered(head: str, index: str) -> None:
    text = (
        f"import torch\n\n\n{head}\n    net = torch.nn.Linear(2, 2).cuda({index})\n"
        "    return net(torch.rand(2, 2).cuda())\n"
    )
    after = converted(text)
    assert f".cuda({index})" in after
    assert ".to(" not in after


def test_the_backend_stays_where_the_file_still_needs_a_card_by_its_index() -> None:
    text = (
        "import torch\nimport torch.distributed as dist\n\n\ndef main(net, rank: int, other: int):\n"
        "    dist.init_process_group('nccl')\n    net = net.cuda(rank)\n"
        "    return net(torch.rand(2, 2).cuda())\n"
    )
    linter = Linter(tuple(rule() for rule in RULES), Settings(select=(*SELECT, "DEV210"), torch_stated=False))
    fixed = fix_source(linter, decode(text.encode(), "train.py"), (Safety.SAFE, Safety.UNSAFE)).text
    assert fixed == text


@pytest.mark.parametrize("option", ["type=int, default=0", "type=int", "default=1"])
def test_an_option_that_holds_an_index_is_no_device_where_a_function_gets_it(option: str) -> None:
    text = (
        "import argparse\n\nimport torch\n\nparser = argparse.ArgumentParser()\n"
        f"parser.add_argument('--gpu', {option})\nargs = parser.parse_args()\n\n\n"
        "def loss(labels, gpu):\n    return torch.nn.L1Loss().cuda(gpu)(labels.cuda(gpu))\n\n\n"
        "print(loss(torch.load('a', map_location='cuda:0'), args.gpu))\n"
    )
    assert converted(text) == text


@pytest.mark.parametrize("given", ["torch.device('cuda')", "'cuda'", "pick()"])
def test_a_name_that_holds_a_device_is_one(given: str) -> None:
    text = (
        "import torch\nfrom here import pick\n\n\ndef main(net):\n"
        f"    device = {given}\n    x = torch.zeros(2, device=device)\n    return net.cuda(device), x\n"
    )
    assert "net.to(device)" in converted(text)


@pytest.mark.parametrize("before", ["from here import *", "import sys"])
def test_a_default_is_converted_in_a_file_that_does_not_import_torch_itself(before: str) -> None:
    text = (
        f"{before}\n\n\ndef search(net, x, device='cuda'):\n    return net(x.to(device))\n\n\n"
        "def answer(net, x):\n    net = net.cuda()\n    return search(net, x.cuda())\n"
    )
    after = converted(text)
    assert "def search(net, x, device=device):" in after
    assert "import torch\n" in after


@pytest.mark.parametrize("made", ["'cuda:0' if torch.cuda.is_available() else 'cpu'", "'cuda'", "0"])
def test_an_object_that_makes_a_card_current_is_no_device_beside_which_another_is_added(made: str) -> None:
    text = (
        f"import torch\n\ndevice = torch.cuda.device({made})\n\n\ndef main(net, x):\n    net.to(device)\n"
        "    return net(x.cuda())\n"
    )
    assert "run_device" not in converted(text)


def test_an_attribute_that_holds_a_parameter_is_a_device_where_nothing_says_more() -> None:
    text = (
        "class Loader:\n    def __init__(self, device):\n        self.device = device\n\n    def load(self, x):\n"
        "        import torch\n        return torch.relu(x).cuda(self.device)\n"
    )
    assert ".to(self.device)" in converted(text)


@pytest.mark.parametrize("card", ["cuda:1", "cuda:2"])
def test_the_one_card_that_a_file_names_stays_that_card(card: str) -> None:
    text = f"import torch\n\n\ndef main(net, x):\n    net.to('{card}')\n    return net(x.to('{card}'))\n"
    assert f"device = torch.device('{card}' if torch.cuda.is_available() else 'cpu')" in converted(text)


@pytest.mark.parametrize(
    ("made", "drawn"),
    [
        ("torch.empty(n, 3)", "nn.init.normal_(self.table)"),
        ("torch.zeros(n, 3)", "self.table.uniform_(0, 1)"),
        ("nn.Parameter(torch.zeros(n, 3))", "print(self.table)"),
        ("torch.empty(n, 3)", "torch.nn.init.xavier_uniform_(self.table)"),
    ],
)
def test_what_is_drawn_on_the_card_or_trained_does_not_become_a_buffer(made: str, drawn: str) -> None:
    text = (
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self, n):\n"
        f"        super().__init__()\n        self.table = {made}.cuda()\n        {drawn}\n"
    )
    after = converted(text)
    assert "register_buffer" not in after
    assert f"self.table = {made}.to(device)" in after


def test_a_parameter_of_another_function_does_not_take_the_name_of_the_device() -> None:
    text = (
        "from here import *\n\n\ndef first(net, device):\n    return net.to(device)\n\n\n"
        "def second(net):\n    return net.cuda()\n"
    )
    assert "net.to(device)\n\n\ndef second(net):\n    return net.to(device)" in converted(text)

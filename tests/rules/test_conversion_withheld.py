"""Files that no edit of ours converts as a whole: a line stays that needs the card, or both places are meant."""

from __future__ import annotations

import pytest

from devlint.engine import Linter
from devlint.fix.rounds import fix_source
from devlint.model import Safety
from devlint.settings import Settings
from devlint.source import decode
from devlint_rules import RULES

SETTINGS = Settings(select=("DEV201", "DEV202", "DEV203", "DEV209"), torch_stated=False)


def linter() -> Linter:
    return Linter(tuple(rule() for rule in RULES), SETTINGS)


def converted(text: str) -> str:
    return fix_source(linter(), decode(text.encode(), "train.py"), (Safety.SAFE, Safety.UNSAFE)).text


def reasons(text: str) -> set[str]:
    found = linter().check(decode(text.encode(), "train.py")).diagnostics
    return {each.fix.why for each in found if each.fix is not None and each.code in ("DEV201", "DEV202")}


# A line that stays needs the card


@pytest.mark.parametrize(
    "stays",
    [
        "self.stream = torch.cuda.Stream()",
        "self.start = torch.cuda.Event(enable_timing=True)",
        "self.total = torch.cuda.get_device_properties(0).total_memory",
        "self.card = torch.cuda.current_device()",
    ],
)
def test_a_call_whose_result_is_needed_keeps_the_file_as_it_is(stays: str) -> None:
    text = (
        f"import torch\n\n\nclass Loader:\n    def __init__(self, device):\n        self.device = device\n        {stays}\n\n"
        "    def load(self, x, y):\n        return x.cuda(self.device), y.cuda()\n"
    )
    assert converted(text) == text
    assert any("line 7" in why for why in reasons(text))


@pytest.mark.parametrize(
    "guarded",
    [
        "if torch.cuda.is_available():\n            self.stream = torch.cuda.Stream()",
        "try:\n            self.card = torch.cuda.current_device()\n        except RuntimeError:\n            pass",
        "self.cards = torch.cuda.device_count()",
        "torch.cuda.empty_cache()",
    ],
)
def test_a_call_that_a_machine_without_the_card_passes_keeps_nothing_back(guarded: str) -> None:
    text = (
        f"import torch\n\n\nclass Loader:\n    def __init__(self):\n        {guarded}\n\n"
        "    def load(self, x, y):\n        return x.cuda(), y.cuda()\n"
    )
    assert "x.to(device)" in converted(text)


@pytest.mark.parametrize(
    "sets",
    [
        "args.backend = 'nccl'\n    torch.cuda.set_device(args.gpu)\n    dist.init_process_group(backend=args.backend)",
        "dist.init_process_group(backend='nccl')\n    torch.cuda.set_device(args.gpu)",
        "torch.cuda.set_device(args.gpu)\n    dist.init_process_group('nccl', init_method='env://')",
    ],
)
def test_processes_that_communicate_through_cards_keep_the_file_as_it_is(sets: str) -> None:
    text = (
        "import torch\nimport torch.distributed as dist\n\n\ndef gather(n):\n    x = torch.tensor([n], device='cuda')\n"
        f"    dist.all_reduce(x)\n    return x.cuda()\n\n\ndef start(args):\n    {sets}\n"
    )
    assert converted(text) == text


@pytest.mark.parametrize(
    "wrapped",
    [
        "torch.nn.parallel.DistributedDataParallel(net, device_ids=[args.gpu])",
        "DDP(net, device_ids=[args.gpu], find_unused_parameters=True)",
        "DDP(net, [args.gpu])",
    ],
)
def test_a_module_for_one_card_of_a_process_keeps_the_file_as_it_is(wrapped: str) -> None:
    text = (
        "import torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n\n\ndef main(net, args, x):\n"
        f"    net = net.cuda()\n    net = {wrapped}\n    return net(x.cuda())\n"
    )
    assert converted(text) == text


@pytest.mark.parametrize(
    "wrapped",
    ["DDP(net)", "DDP(net, device_ids=None)", "DDP(net, device_ids=[0] if torch.cuda.is_available() else None)"],
)
def test_a_module_for_any_device_of_a_process_keeps_nothing_back(wrapped: str) -> None:
    text = (
        "import torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n\n\ndef main(net, args, x):\n"
        f"    net = net.cuda()\n    net = {wrapped}\n    return net(x.cuda())\n"
    )
    assert ".cuda()" not in converted(text)


@pytest.mark.parametrize(
    "card", ["'cuda:%d' % gpu", "f'cuda:{gpu}'", "torch.device('cuda', gpu)", "'cuda:' + str(gpu)"]
)
def test_a_device_that_computes_its_card_gets_no_second_one_beside_it(card: str) -> None:
    text = (
        f"import torch\n\n\nclass Gan:\n    def __init__(self, gpu):\n        self.device = {card}\n\n"
        "    def load(self, x, y):\n        return x.cuda(), y.cuda()\n"
    )
    assert converted(text) == text


@pytest.mark.parametrize(
    "wrapped",
    [
        "torch.nn.DataParallel(net, device_ids=[0, 1])",
        "Parallel(net, device_ids=(0, 1), dim=0)",
        "Parallel(net, device_ids=[args.first, args.second])",
    ],
)
def test_a_file_that_spreads_a_module_over_cards_stays(wrapped: str) -> None:
    text = (
        "import torch\nfrom here import Parallel\n\n\ndef main(net, args, x):\n"
        f"    net = {wrapped}\n    net = net.cuda()\n    return net(x.cuda())\n"
    )
    assert converted(text) == text
    assert any("line 6" in why for why in reasons(text))


@pytest.mark.parametrize("wrapped", ["torch.nn.DataParallel(net)", "torch.nn.DataParallel(net, device_ids=None)"])
def test_a_module_for_all_cards_that_are_there_keeps_nothing_back(wrapped: str) -> None:
    text = f"import torch\n\n\ndef main(net, x):\n    net = {wrapped}.cuda()\n    return net(x.cuda())\n"
    assert ".cuda()" not in converted(text)


@pytest.mark.parametrize(
    "check",
    [
        "assert torch.cuda.is_available(), 'this needs CUDA'",
        "if not torch.cuda.is_available():\n        raise SystemExit('no CUDA')",
        "assert torch.cuda.is_available()",
    ],
)
def test_a_check_for_the_card_that_stays_keeps_the_file_as_it_is(check: str) -> None:
    text = (
        "import torch\nimport unittest\nfrom here import nms\n\n\nclass NmsTest(unittest.TestCase):\n"
        "    def test_none(self):\n        a = torch.tensor([]).cuda()\n        b = torch.tensor([]).cuda()\n"
        f"        self.assertEqual(len(nms(a, b)), 0)\n\n\nif __name__ == '__main__':\n    {check}\n"
        "    unittest.main()\n"
    )
    found = Linter(tuple(rule() for rule in RULES), SETTINGS)
    source = decode(text.encode(), "test_nms.py")
    assert fix_source(found, source, (Safety.SAFE, Safety.UNSAFE)).text == text


def test_a_check_for_the_card_that_is_removed_keeps_nothing_back() -> None:
    text = (
        "import torch\n\n\ndef main(net, x):\n    assert torch.cuda.is_available()\n    return net.cuda()(x.cuda())\n"
        "\n\ndef other(x):\n    return x.cuda()\n"
    )
    found = Linter(tuple(rule() for rule in RULES), Settings(select=("DEV202", "DEV215"), torch_stated=False))
    after = fix_source(found, decode(text.encode(), "train.py"), (Safety.SAFE, Safety.UNSAFE)).text
    assert ".cuda()" not in after
    assert "assert" not in after


@pytest.mark.parametrize(
    "half",
    [
        "pipe = Pipe.from_pretrained(name, torch_dtype=torch.float16)",
        "pipe = Pipe.from_pretrained(name).half()",
        "pipe = Pipe.from_pretrained(name).to(dtype=torch.half)",
        "dtype = torch.float16\n    pipe = Pipe.from_pretrained(name, dtype)",
    ],
)
def test_a_file_that_computes_in_half_precision_stays(half: str) -> None:
    text = (
        f"import torch\nfrom there import Pipe\n\n\ndef main(name, x):\n    {half}\n"
        "    return pipe.to('cuda')(x.cuda())\n"
    )
    assert converted(text) == text
    assert any("line 6" in why for why in reasons(text))


def test_half_precision_on_both_sides_of_another_choice_stays() -> None:
    text = (
        "import torch\nfrom there import Pipe\n\n\ndef main(name):\n    if 'a' in name:\n"
        "        pipe = Pipe.load(name, dtype=torch.float16, safety=None).to('cuda')\n    else:\n"
        "        pipe = Pipe.load(name, dtype=torch.float16).to('cuda')\n    return pipe\n"
    )
    assert converted(text) == text


def test_half_precision_of_one_side_alone_is_chosen() -> None:
    text = (
        "import torch\nfrom there import Pipe\n\n\ndef main(name):\n    if 'a' in name:\n"
        "        pipe = Pipe.load(name, dtype=torch.float16).to('cuda')\n    else:\n"
        "        pipe = Pipe.load(name).to('cuda')\n    return pipe\n"
    )
    assert ".to('cuda')" not in converted(text)


@pytest.mark.parametrize(
    "half",
    [
        "if args.fp16:\n        net = net.half()",
        "net = net.half() if args.fp16 else net",
        "net = net.to(torch.float16 if torch.cuda.is_available() else torch.float32)",
        "with torch.autocast('cuda', dtype=torch.float16):\n        x = x + 1",
        "print(x.dtype == torch.float16)",
        "net = net.to(torch.bfloat16)",
        "sums = torch.zeros(3, dtype=torch.float16)",
        "size = args.half",
        "def master(x):\n        return x.half()",
    ],
)
def test_half_precision_that_is_chosen_keeps_nothing_back(half: str) -> None:
    text = f"import torch\n\n\ndef main(net, args, x):\n    {half}\n    return net.cuda()(x.cuda())\n"
    assert ".cuda()" not in converted(text)


@pytest.mark.parametrize(
    "chosen",
    [
        "if OLD:\n        x = Variable(x, volatile=True).cuda()\n    else:\n        x = x.cuda()",
        "if not OLD:\n        x = x.cuda()\n    else:\n        x = Variable(x.cuda(), volatile=True)",
        "x = Variable(x, volatile=True).cuda() if OLD else x.cuda()",
    ],
)
def test_a_file_that_serves_a_torch_without_devices_stays(chosen: str) -> None:
    text = (
        "from torch.autograd import Variable\nfrom here import OLD\n\n\ndef main(net, x):\n"
        f"    {chosen}\n    return net.cuda()(x)\n"
    )
    assert converted(text) == text


def test_a_file_that_was_written_for_an_old_torch_alone_is_converted() -> None:
    text = (
        "import torch\nfrom torch.autograd import Variable\n\n\ndef main(net, x):\n"
        "    x = Variable(x.cuda(), volatile=True)\n    return net.cuda()(x)\n"
    )
    assert ".cuda()" not in converted(text)


# A device of the file that some lines do not see


@pytest.mark.parametrize(
    "owner",
    [
        "class Net:\n    def __init__(self, device):\n        self.device = device\n        self.mask = torch.ones(3).cuda()",
        "class Net:\n    def __init__(self, device=None):\n        self.mask = torch.ones(3).cuda()",
        "def run(net, device=None):\n    device = torch.device('cuda:0') if device is None else device\n"
        "    return net.to(device)",
        "class Net:\n    def __init__(self, place):\n        self.device = place\n\n    def one(self, x):\n"
        "        return x.to(self.device)",
        "def run(net):\n    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n    return net.to(device)",
    ],
)
def test_a_file_with_a_device_of_its_own_gets_no_second_one_beside_it(owner: str) -> None:
    text = f"import torch\n\n\n{owner}\n\n\ndef noise(n):\n    return torch.rand(n).cuda()\n"
    assert converted(text) == text


@pytest.mark.parametrize("place", ["torch.device('cuda')", "'cuda'", "torch.device('cuda:0')"])
def test_a_device_that_an_object_gets_is_the_one_of_the_file(place: str) -> None:
    text = (
        f"import torch\n\n\nclass Trainer:\n    def __init__(self, net):\n        self.device = {place}\n"
        "        self.net = net.to(self.device)\n\n\ndef noise(n):\n    return torch.rand(n).cuda()\n"
    )
    after = converted(text)
    assert "        self.device = device\n" in after
    assert after.count("is_available") == 1


def test_a_text_that_a_condition_reads_stays_one() -> None:
    text = (
        "import torch\n\n\nclass Trainer:\n    def __init__(self, net):\n        self.place = 'cuda'\n"
        "        self.net = net.half() if self.place == 'cuda' else net\n\n\ndef noise(n):\n"
        "    return torch.rand(n).cuda()\n"
    )
    assert "self.place = device" not in converted(text)


@pytest.mark.parametrize(
    "given", ["torch.device('cuda') if device is None else device", "'cuda' if device is None else device"]
)
def test_a_name_that_is_none_is_no_device(given: str) -> None:
    text = f"import torch\n\n\ndef run(net, device=None):\n    place = {given}\n    return net.to(place)\n"
    assert "device if device is None" not in converted(text)


def test_a_name_that_is_none_in_a_branch_is_no_device() -> None:
    text = (
        "import torch\n\n\ndef run(net, device=None):\n    if device is None:\n        net = net.to('cuda')\n"
        "    else:\n        net = net.to(device)\n    return net\n"
    )
    assert "device is None:\n        net = net.to(device)" not in converted(text)


@pytest.mark.parametrize(
    "owner",
    [
        "def same(x):\n    device = x.device\n    return torch.ones(3, device=device)",
        "class Net:\n    def cuda(self, device=None):\n        return self",
        "def run(net, device):\n    return net.to(device)",
        "def put(x, to):\n    return x.to(to.device)",
    ],
)
def test_a_device_of_one_function_alone_keeps_nothing_back(owner: str) -> None:
    text = f"import torch\n\n\n{owner}\n\n\ndef noise(n):\n    return torch.rand(n).cuda()\n"
    assert "torch.rand(n).to(device)" in converted(text)


# Both places are meant


@pytest.mark.parametrize(
    "compared",
    [
        "a = net(x)\nother = copy.deepcopy(net).cuda()\nb = other(x.cuda()).cpu()\nprint((a - b).abs().max())",
        "a = net(x)\nb = net.cuda()(x.cuda())\ntorch.testing.assert_close(a, b.cpu())",
        "other = Net().cuda()\nother.load_state_dict(net.state_dict())\na, _ = net(x)\nb, _ = other(x.cuda())\n"
        "d = a - b.cpu()\nprint(d)",
        "a = torch.relu(x)\nb = torch.relu(x.cuda())\nassert torch.allclose(a, b.cpu())",
        "a = net(x)\ny = x.to('cuda')\nnet = net.to('cuda')\nb = net(y).to('cpu')\nprint(torch.equal(a, b))",
    ],
)
def test_a_program_that_compares_the_card_with_the_cpu_stays(compared: str) -> None:
    text = f"import copy\n\nimport torch\nfrom here import Net\n\nnet = Net()\nx = torch.rand(3, 2)\n{compared}\n"
    assert converted(text) == text
    assert any("CPU" in why for why in reasons(text))


@pytest.mark.parametrize(
    "trained",
    [
        "net = net.cuda()\nfor x, y in loader:\n    out = net(x.cuda()).cpu()\n    print((out.argmax(1) == y).sum())",
        "net = net.cuda()\nout = net(x.cuda())\nprint((out.cpu() - x).abs().max())",
        "net = net.cuda()\nout = net(x.cuda()).cpu()\nold = torch.load('out')\nprint((out - old).abs().max())",
        "net = net.cuda()\nlow = torch.nn.functional.interpolate(x, 4)\nout = net(x.cuda()).cpu()\nprint((out - low).sum())",
        "net = net.cuda()\na = net(x.cuda()).cpu()\nb = net(x.flip(0).cuda()).cpu()\nprint((a - b).sum())",
    ],
)
def test_a_program_that_brings_results_back_is_converted(trained: str) -> None:
    text = (
        "import torch\nfrom here import Net, loader\n\nnet = Net()\nx = torch.rand(3, 2)\nz = torch.rand(3).cuda()\n"
        f"{trained}\nprint(z)\n"
    )
    assert ".cuda()" not in converted(text)


@pytest.mark.parametrize(
    "made",
    [
        "other = copy.deepcopy(net).cuda()",
        "other = copy.deepcopy(net)\n    other = other.cuda()",
        "other = copy.deepcopy(net).to('cuda')",
    ],
)
def test_a_copy_on_the_card_beside_its_original_is_a_comparison(made: str) -> None:
    text = (
        "import copy\n\nimport torch\nfrom here import compare\n\n\ndef check(net, x):\n"
        f"    {made}\n    args = x.cuda()\n    return compare(other, net, args, x)\n"
    )
    assert converted(text) == text


@pytest.mark.parametrize(
    "used",
    [
        "net = net.cuda()\n    other = copy.deepcopy(net).cuda()\n    return step(other, net, x.cuda())",
        "other = copy.deepcopy(net).cuda()\n    return other(x.cuda())",
        "other = copy.deepcopy(net).cuda()\n    net = net.cuda()\n    return step(other, net, x.cuda())",
    ],
)
def test_a_copy_on_the_card_of_what_is_there_as_well_is_none(used: str) -> None:
    text = f"import copy\n\nimport torch\nfrom here import step\n\n\ndef check(net, x):\n    {used}\n"
    assert ".cuda()" not in converted(text)


# What is no program


@pytest.mark.parametrize(
    "text",
    [
        "# how to save\ndevice = torch.device('cuda')\nmodel.to(device)\ntorch.save(model.state_dict(), PATH)\n",
        "model = Model()\nmodel.cuda()\nx = torch.rand(3).cuda()\nprint(model(x))\n",
        "x = torch.rand(3, device='cuda')\ny = torch.rand(3, device='cuda')\n",
    ],
)
def test_a_snippet_that_never_imports_torch_stays(text: str) -> None:
    assert converted(text) == text


@pytest.mark.parametrize(
    "head", ["import torch", "from here import *", "from here import torch", "import torch as torch"]
)
def test_a_file_that_binds_torch_somehow_is_converted(head: str) -> None:
    text = f"{head}\n\nx = torch.rand(3, device='cuda')\ny = torch.rand(3, device='cuda')\n"
    assert "device=device" in converted(text)


@pytest.mark.parametrize(
    "settings",
    [
        "train = dict(\n    n=3,\n    device='cuda',\n)\ntest = dict(device='cuda')",
        "train = {'n': 3, 'device': 'cuda'}\ntest = {'device': 'cuda'}",
        "train = [dict(device='cuda'), dict(device='cuda')]",
    ],
)
def test_settings_in_a_file_without_torch_stay(settings: str) -> None:
    text = f"from there import base\n\n{settings}\n"
    assert converted(text) == text


@pytest.mark.parametrize(
    "ran",
    [
        "a = net(x)\nx = x.cuda()\nnet.cuda()\nb = net(x)\nprint(a, b)",
        "print(net(x))\nnet = net.to('cuda')\nprint(net(x.to('cuda')))",
        "a = net(x)\nnet.cuda()\ny = x.cuda()\nb = net(y)\nprint(a, b)",
    ],
)
def test_a_program_that_runs_a_module_on_the_cpu_and_again_on_the_card_stays(ran: str) -> None:
    text = f"import torch\nfrom here import Net\n\nnet = Net()\nx = torch.rand(3, 2)\n{ran}\n"
    assert converted(text) == text


@pytest.mark.parametrize(
    "ran",
    [
        "print(net(x))\nnet.cuda()\nfor x in loader:\n    print(net(x.cuda()))",
        "print(net(x))\nnet = Net().cuda()\nprint(net(x.cuda()))",
        "print(x)\nx = x.cuda()\nprint(x)\nnet = net.cuda()\nprint(net(x))",
    ],
)
def test_a_program_that_runs_something_else_on_the_card_is_converted(ran: str) -> None:
    text = f"import torch\nfrom here import Net, loader\n\nnet = Net()\nx = torch.rand(3, 2)\nz = x.cuda()\n{ran}\n"
    assert ".cuda()" not in converted(text)


@pytest.mark.parametrize("kept", ["self.scores.data.cuda()", "self.scores.detach().cuda()"])
def test_a_copy_of_a_parameter_by_a_move_alone_stays(kept: str) -> None:
    text = (
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self, n):\n"
        "        super().__init__()\n        self.scores = nn.Parameter(torch.rand(n))\n"
        f"        self.first = {kept}\n\n    def forward(self, x):\n        return x * self.scores + torch.ones(3).cuda()\n"
    )
    assert converted(text) == text


@pytest.mark.parametrize(
    "library", ["import nvdiffrast.torch as dr", "from torch2trt import torch2trt", "import gsplat"]
)
def test_a_file_that_uses_a_library_for_cuda_alone_stays(library: str) -> None:
    text = f"import torch\n{library}\n\nx = torch.rand(3).cuda()\ny = torch.rand(3, device='cuda')\nprint(x + y)\n"
    assert converted(text) == text


@pytest.mark.parametrize(
    "later",
    [
        "    net = net.cuda()\n    device = torch.device('cuda:0' if torch.cuda.is_available() else 'cpu')\n"
        "    return net(x.to(device))",
        "    if net.big:\n        device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n"
        "        return net(x.to(device))\n    net = net.cuda()\n    return net(x.cuda())",
    ],
)
def test_a_device_that_the_file_chooses_too_late_gets_no_second_one_beside_it(later: str) -> None:
    text = f"import torch\n\n\ndef main(net, x):\n{later}\n"
    assert converted(text) == text


ITEMS = """\
import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return ITEM


net = torch.nn.Linear(3, 2).cuda()
for x in DataLoader(Rows(), batch_size=2, LOADER):
    print(net(BATCH).sum())
"""
GATHERS = "def gather(rows):\n    return torch.stack(rows).cuda()\n\n\nnet = "


@pytest.mark.parametrize("item", ["torch.rand(3).cuda()", 'torch.rand(3, device="cuda")', 'torch.rand(3).to("cuda")'])
def test_what_workers_put_on_the_card_keeps_the_file_as_it_is(item: str) -> None:
    text = ITEMS.replace("ITEM", item).replace("LOADER", "num_workers=2").replace("BATCH", "x")
    assert converted(text) == text
    assert any("line 10 needs the GPU in a worker process" in why for why in reasons(text))


def test_a_collate_function_of_workers_that_moves_keeps_the_file_as_it_is() -> None:
    text = ITEMS.replace("net = ", GATHERS, 1).replace("ITEM", "torch.rand(3)").replace("BATCH", "x")
    text = text.replace("LOADER", "num_workers=2, collate_fn=gather")
    assert converted(text) == text


def test_a_data_set_that_the_main_process_reads_is_converted() -> None:
    text = ITEMS.replace("ITEM", "torch.rand(3).cuda()").replace("LOADER", "num_workers=0").replace("BATCH", "x")
    assert "cuda()" not in converted(text)


def test_a_batch_that_is_moved_in_the_loop_is_converted() -> None:
    text = ITEMS.replace("ITEM", "torch.rand(3)").replace("LOADER", "num_workers=2").replace("BATCH", "x.cuda()")
    assert "cuda()" not in converted(text)

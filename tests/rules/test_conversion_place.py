"""Where the one choice of a device is written, and by which switch of the file."""

from __future__ import annotations

import re

import pytest

from devlint.engine import Linter
from devlint.fix.rounds import fix_source
from devlint.model import Safety
from devlint.settings import Settings
from devlint.source import decode
from devlint_rules import RULES

SETTINGS = Settings(select=("DEV201", "DEV202", "DEV203", "DEV205", "DEV209"), torch_stated=False)
CHOICE = 'torch.device("cuda" if torch.cuda.is_available() else "cpu")'


def converted(text: str, *allow: Safety) -> str:
    linter = Linter(tuple(rule() for rule in RULES), SETTINGS)
    return fix_source(linter, decode(text.encode(), "train.py"), allow or (Safety.SAFE, Safety.UNSAFE)).text


# A device that only the script part of a file needs

LIBRARY = "import torch\n\n\nclass Net(torch.nn.Module):\n    pass\n\n\n{}\n"


@pytest.mark.parametrize(
    ("block", "start"),
    [
        (
            'if __name__ == "__main__":\n    x = torch.ones(2).cuda()\n    print(Net().cuda()(x))',
            '"__main__":\n    {}\n    x',
        ),
        ('if "__main__" == __name__:\n    print(torch.ones(2, device="cuda"))', "== __name__:\n    {}\n    print"),
        ('if __name__ == "__main__":\n\tx = torch.ones(2)\n\tprint(x.to("cuda"))', '"__main__":\n\t{}\n\tx'),
        (
            'if __name__ == "__main__":\n    # the demo\n    x = torch.ones(2).cuda()\n    print(x)',
            '"__main__":\n    {}\n    # the demo\n    x',
        ),
        (
            'if __name__ == "__main__":\n    import os\n    import sys\n\n    print(torch.ones(2).cuda(), sys)',
            "import sys\n\n    {}\n\n    print",
        ),
        (
            'if __name__ == "__main__":\n    import os\n\n    os.environ["CUDA_VISIBLE_DEVICES"] = "1"\n'
            "    print(torch.ones(2).cuda())",
            '= "1"\n    {}\n    print',
        ),
    ],
)
def test_a_device_that_only_the_script_needs_is_chosen_there(block: str, start: str) -> None:
    text = LIBRARY.format(block)
    chosen = "device = " + CHOICE.replace('"', "'" if text.count("'") > text.count('"') else '"')
    after = converted(text)
    assert start.format(chosen) in after
    assert after.startswith("import torch\n\n\nclass Net")


@pytest.mark.parametrize(
    "also",
    [
        "def show(x):\n    return x.cuda()",
        "def show(n):\n    return torch.zeros(n, device='cuda')",
        "TABLE = torch.zeros(3).cuda()",
    ],
)
def test_a_device_that_more_than_the_script_needs_is_chosen_after_the_imports(also: str) -> None:
    text = LIBRARY.format(f'{also}\n\n\nif __name__ == "__main__":\n    print(Net().cuda())')
    assert converted(text).startswith("import torch\n\ndevice = ")


@pytest.mark.parametrize("kind", ["cuda=True", "use_gpu=True"])
def test_a_switch_beside_the_script_does_not_take_the_device_out_of_it(kind: str) -> None:
    text = LIBRARY.format(
        f'def make(f):\n    return f({kind})\n\n\nif __name__ == "__main__":\n    print(torch.rand(3).cuda())'
    )
    after = converted(text)
    assert f"{kind.partition('=')[0]}=torch.cuda.is_available()" in after
    assert after.startswith("import torch\n\n\nclass Net")


def test_a_default_before_the_script_does_not_name_the_device_of_the_script() -> None:
    text = LIBRARY.format(
        "def make(place='cuda'):\n    return torch.rand(3, device=place)\n\n\n"
        'if __name__ == "__main__":\n    print(make(), torch.rand(3).cuda())'
    )
    assert "place='cuda' if torch.cuda.is_available() else 'cpu')" in converted(text)


def test_a_script_in_one_row_has_its_device_after_the_imports() -> None:
    text = LIBRARY.format('if __name__ == "__main__": print(Net().cuda())')
    assert converted(text).startswith("import torch\n\ndevice = ")


# Imports that stand apart


@pytest.mark.parametrize(
    "between",
    [
        "data = __import__('1_data')",
        "import os\n\nROOT = os.path.dirname(__file__)",
        "try:\n    import here\nexcept ImportError:\n    here = None",
        "import sys\n\nFOLDER = sys.argv[0]\nsys.path.append(FOLDER)",
    ],
)
def test_the_device_is_chosen_after_the_last_import_of_the_start(between: str) -> None:
    text = f"import torch\n{between}\nfrom there import make\n\n\ndef main():\n    return make().cuda()\n"
    assert "from there import make\n\ndevice = " in converted(text)


@pytest.mark.parametrize("used", ["x = torch.zeros(3).cuda()", "x = torch.zeros(3, device='cuda')"])
def test_the_device_is_chosen_before_its_first_use(used: str) -> None:
    text = f"import torch\n\n{used}\nimport here\n\nprint(here.run(x))\n"
    after = converted(text)
    assert after.index("device = torch") < after.index("x = ")


def test_a_try_that_ends_the_imports_is_one_of_them() -> None:
    text = (
        "import torch\n\ntry:\n    from here import writer\nexcept ImportError:\n    writer = None\n\n\n"
        "def main(net):\n    return net.cuda()\n"
    )
    assert "writer = None\n\ndevice = " in converted(text)


# A switch that the file has


@pytest.mark.parametrize(
    ("switch", "name"),
    [
        ("CUDA = torch.cuda.is_available()", "CUDA"),
        ("cuda = torch.cuda.is_available()", "cuda"),
        ("HAS_CARD: bool = torch.cuda.is_available()", "HAS_CARD"),
    ],
)
def test_the_device_follows_the_switch_of_the_file(switch: str, name: str) -> None:
    text = (
        f"import torch\nfrom here import make\n\n{switch}\n\n\ndef first(net):\n    if {name}:\n        net = net.cuda()\n"
        "    return net\n\n\ndef second(x, y):\n    return x.cuda(), y.cuda()\n"
    )
    after = converted(text)
    assert f'{switch}\ndevice = torch.device("cuda" if {name} else "cpu")\n' in after
    assert after.count("is_available") == 1


@pytest.mark.parametrize(
    "switch",
    [
        "CUDA = torch.cuda.is_available()\nCUDA = False",
        "if make():\n    CUDA = torch.cuda.is_available()\nelse:\n    CUDA = False",
        "CUDA = torch.cuda.is_available() or make()",
    ],
)
def test_what_is_no_plain_switch_decides_no_device(switch: str) -> None:
    text = (
        f"import torch\nfrom here import make\n\n{switch}\n\n\ndef first(net):\n    if CUDA:\n        net = net.cuda()\n"
        "    return net\n\n\ndef second(x, y):\n    return x.cuda(), y.cuda()\n"
    )
    assert "if CUDA else" not in converted(text)


def test_a_switch_that_a_function_changes_decides_no_device() -> None:
    text = (
        "import torch\n\nCUDA = torch.cuda.is_available()\n\n\ndef off():\n    global CUDA\n    CUDA = False\n\n\n"
        "def first(net):\n    if CUDA:\n        net = net.cuda()\n    return net\n\n\n"
        "def second(x, y):\n    return x.cuda(), y.cuda()\n"
    )
    assert "if CUDA else" not in converted(text)


@pytest.mark.parametrize(
    "bound", ["ON = True if opt.mode == 'GPU' else False", "ON = opt.mode == 'cuda'", "ON = bool(opt.mode == 'GPU')"]
)
@pytest.mark.parametrize("default", ["default='CPU'", "required=True", "default='GPU'"])
def test_a_switch_between_the_card_and_the_cpu_stays_one(bound: str, default: str) -> None:
    text = (
        "import argparse\n\nimport torch\nfrom here import Net, image\n\nparser = argparse.ArgumentParser()\n"
        f"parser.add_argument('--mode', {default})\nopt = parser.parse_args()\n"
        f"{bound}\n\nnet = Net()\nif ON:\n    net.cuda()\n    x = image().cuda()\nelse:\n    x = image()\nprint(net(x))\n"
    )
    linter = Linter(tuple(rule() for rule in RULES), SETTINGS)
    found = linter.check(decode(text.encode(), "train.py")).diagnostics
    is_asked = default.startswith("default='GPU") and "'GPU'" in bound
    assert converted(text) == text
    assert bool(found) == is_asked  # a program that asks for the card by default stops on another machine


@pytest.mark.parametrize("bound", ["ON = opt.mode == 'train'", "ON = 'GPU' if opt.mode else 'none'", "ON = opt.mode"])
def test_a_condition_about_something_else_is_no_guard(bound: str) -> None:
    text = (
        "import argparse\n\nimport torch\nfrom here import Net, image\n\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--mode')\nopt = parser.parse_args()\n"
        f"{bound}\n\nnet = Net()\nif ON:\n    net.cuda()\n    x = image().cuda()\n    print(net(x))\n"
    )
    assert "net.to(device)" in converted(text)


# Mixed precision


@pytest.mark.parametrize("enabled", ["self.config.AMP_ENABLE", "self.amp", "self.mixed"])
def test_mixed_precision_that_an_option_switches_takes_the_type_of_the_new_device(enabled: str) -> None:
    text = (
        "import torch\n\n\nclass Trainer:\n    def step(self, x, y):\n        x = x.cuda()\n        y = y.cuda()\n"
        f"        with torch.cuda.amp.autocast(enabled={enabled}):\n            return self.loss(x, y)\n"
    )
    assert f"with torch.autocast(device.type, enabled={enabled}):" in converted(text)


@pytest.mark.parametrize("enabled", ["torch.cuda.is_available()", "self.use_cuda"])
def test_mixed_precision_that_asks_for_the_card_keeps_its_question(enabled: str) -> None:
    text = (
        "import torch\n\n\nclass Trainer:\n    def step(self, x, y):\n        x = x.cuda()\n        y = y.cuda()\n"
        f"        with torch.cuda.amp.autocast(enabled={enabled}):\n            return self.loss(x, y)\n"
    )
    assert "device.type" not in converted(text)


# What was taken to the CPU goes back where it came from

BACK = """import torch


class Loss:
    def __init__(self, assign):
        self.assign = assign

    def __call__(self, net, batch):
        scores = net(batch)
        try:
            rows, mask = self.assign(scores.detach())
        except RuntimeError:
            {}
            rows = rows.cuda()
            mask = mask.cuda()
        return self.last(rows, mask)
"""


@pytest.mark.parametrize(
    "taken",
    [
        "_scores = scores.detach().cpu().float()\n            rows, mask = self.assign(_scores)",
        "rows, mask = self.assign(scores.cpu())",
        "host = scores.to('cpu')\n            rows, mask = self.assign(host, 3)",
    ],
)
def test_what_is_computed_on_the_cpu_goes_back_to_the_device_that_it_was_taken_from(taken: str) -> None:
    after = converted(BACK.format(taken))
    assert "rows = rows.to(scores.device)" in after
    assert "mask = mask.to(scores.device)" in after


def test_what_was_never_taken_to_the_cpu_takes_the_device_of_the_file() -> None:
    assert "rows = rows.to(device)" in converted(BACK.format("rows, mask = self.assign(batch)"))


# A text that another library takes as its device


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("feat = build('clean', 'cuda', parallel=False)", "build('clean', device, parallel=False)"),
        ("feat = here.sub.build('cuda')", "here.sub.build(device)"),
        ("feat = here.Pipe(3, 'cuda')", "here.Pipe(3, device)"),
    ],
)
def test_a_text_of_the_card_that_another_library_gets_is_converted_with_the_file(line: str, after: str) -> None:
    text = (
        f"import here.sub\nimport torch\nfrom here import build\n\n\ndef main(net):\n    net = net.cuda()\n    {line}\n"
        "    return net, feat, torch.zeros(3).cuda()\n"
    )
    fixed = converted(text)
    assert after in fixed
    assert '\ndevice = "cuda" if' in fixed or "\ndevice = 'cuda' if" in fixed


@pytest.mark.parametrize(
    "line",
    [
        "print('cuda')",
        "name = os.environ.get('cuda')",
        "name = net.kind.replace('cuda', 'cpu')",
        "found = hasattr(torch, 'cuda')",
        "found = os.path.join('a', 'cuda')",
    ],
)
def test_a_text_of_the_card_that_is_no_device_stays(line: str) -> None:
    text = f"import os\n\nimport torch\n\n\ndef main(net):\n    net = net.cuda()\n    {line}\n    return net\n"
    after = converted(text)
    assert f"    {line}\n" in after
    assert "torch.device(" in after


@pytest.mark.parametrize("size", ["torch.Size(n)", "x.size()", "x.shape"])
def test_an_old_tensor_of_a_size_is_converted_with_the_file(size: str) -> None:
    text = f"import torch\n\n\ndef one_hot(x, n):\n    y = torch.cuda.FloatTensor({size}).zero_()\n    return y, x.cuda()\n"
    after = converted(text)
    assert f"torch.zeros({size}, dtype=torch.float32, device=" in after
    assert "torch.cuda.F" not in after


@pytest.mark.parametrize(
    "kind", ["torch.device('cuda')", "torch.device('cuda' if torch.cuda.is_available() else 'cpu')"]
)
def test_mixed_precision_reads_the_type_of_a_device_that_the_file_has(kind: str) -> None:
    text = (
        f"import torch\n\ndevice = {kind}\n\n\ndef step(net, x, y):\n"
        "    with torch.cuda.amp.autocast():\n        return net(x.to(device), y.cuda())\n"
    )
    after = converted(text)
    assert "torch.autocast(device.type)" in after


def test_a_default_takes_the_text_that_the_file_chooses() -> None:
    text = (
        "import torch\n\ndevice = 'cuda' if torch.cuda.is_available() else 'cpu'\n\n\ndef make(n, device='cuda'):\n"
        "    if device == 'cuda':\n        print(n)\n    return torch.zeros(n, device=device)\n\n\n"
        "def main(x):\n    return make(3) * x.cuda()\n"
    )
    assert "def make(n, device=device):" in converted(text)


@pytest.mark.parametrize(
    "loaded",
    [
        "model.module, epoch = torch.load(path)",
        "model.module = torch.load(path)",
        "[epoch, model.module] = torch.load(path)",
    ],
)
def test_a_part_of_a_model_that_is_loaded_goes_to_the_device(loaded: str) -> None:
    text = f"import torch\n\n\ndef main(model, path, x):\n    {loaded}\n    return model(x.cuda())\n"
    linter = Linter(tuple(rule() for rule in RULES), Settings(select=("DEV202", "DEV208"), torch_stated=False))
    after = fix_source(linter, decode(text.encode(), "train.py"), (Safety.SAFE, Safety.UNSAFE)).text
    assert "torch.load(path, map_location=device)" in after


def test_an_import_that_a_sentence_alone_names_goes_with_its_use() -> None:
    text = (
        "import torch\nfrom torch.cuda.amp import GradScaler, autocast\n\nHELP = 'disable autocast'\n\n\n"
        "def step(net, x):\n    scaler = GradScaler()\n    with autocast():\n        return scaler.scale(net(x.cuda()))\n"
    )
    assert "import GradScaler" not in converted(text)
    assert "autocast\n" not in converted(text)


@pytest.mark.parametrize("first", ["Variable(torch.zeros(1, n)).cuda()", "torch.zeros(1, n).cuda()"])
def test_all_that_a_method_makes_goes_where_the_parameters_of_its_module_are(first: str) -> None:
    text = (
        "import torch\nfrom torch import nn\nfrom torch.autograd import Variable\n\n\nclass Cell(nn.Module):\n"
        "    def __init__(self, n):\n        super().__init__()\n        self.conv = nn.Conv2d(n, n, 3)\n"
        "        self.a = None\n\n"
        f"    def hidden(self, n):\n        if self.a is None:\n            self.a = {first}\n"
        "            self.b = Variable(torch.zeros(1, n)).cuda()\n        return Variable(torch.zeros(n)).cuda()\n"
    )
    after = converted(text)
    assert after.count("        device = next(self.parameters()).device\n") == 1
    assert after.count(".to(device)") == 3


def test_mixed_precision_that_is_off_inside_of_mixed_precision_has_the_same_type() -> None:
    text = (
        "import torch\nfrom torch.cuda.amp import autocast\n\n\ndef step(net, loss, x, y):\n    with autocast():\n"
        "        out = net(x.cuda())\n        with autocast(enabled=False):\n            return loss(out, y.cuda())\n"
    )
    assert converted(text).count("torch.autocast(device.type") == 2


@pytest.mark.parametrize("kind", ["torch.device('cuda')", "'cuda'"])
def test_what_is_loaded_goes_to_the_device_that_the_file_has(kind: str) -> None:
    text = (
        f"import torch\n\ndevice = {kind}\n\n\ndef main(model, path, x):\n    model.module, epoch = torch.load(path)\n"
        "    return model(x.cuda())\n"
    )
    linter = Linter(
        tuple(rule() for rule in RULES), Settings(select=("DEV201", "DEV202", "DEV208"), torch_stated=False)
    )
    after = fix_source(linter, decode(text.encode(), "train.py"), (Safety.SAFE, Safety.UNSAFE)).text
    assert "torch.load(path, map_location=device)" in after
    assert "run_device" not in after


@pytest.mark.parametrize(
    "made",
    ["torch.ones(out.size(0)).cuda()", "torch.zeros(out.shape).cuda()", "Variable(torch.ones(out.size())).cuda()"],
)
def test_what_is_made_in_the_size_of_a_tensor_that_it_meets_follows_it(made: str) -> None:
    text = (
        "import torch\nfrom torch.autograd import Variable\n\n\nclass Loss:\n    def __init__(self, bce):\n"
        f"        self.bce = bce\n\n    def __call__(self, out):\n        labels = {made}\n"
        "        return self.bce(out, labels)\n"
    )
    after = converted(text)
    assert ".to(out.device)" in after
    assert "is_available" not in after


@pytest.mark.parametrize("moved", ["out = out.cuda()", "out = out.to('cuda')", "self.net(out.cuda())"])
def test_the_size_of_a_tensor_that_the_function_moves_says_nothing(moved: str) -> None:
    text = (
        "import torch\n\n\nclass Loss:\n    def __init__(self, bce):\n        self.bce = bce\n\n"
        f"    def __call__(self, out):\n        labels = torch.ones(out.size(0)).cuda()\n        {moved}\n"
        "        return self.bce(out, labels)\n"
    )
    assert "labels = torch.ones(out.size(0)).to(device)" in converted(text)


# What a caller hands in together is together, and moves to where the module is

SIDE = """import torch


def features(net, images, labels):
    net.eval()
    {}
    return net(moved), labels.cpu().detach().numpy()
"""


@pytest.mark.parametrize(
    "move",
    [
        "moved = images.cuda(non_blocking=True)",
        "moved = images[0].cuda()",
        "moved = images.float().cuda()",
        "moved = images.to('cuda')",
        "if images.dim() == 4:\n        moved = torch.autograd.Variable(images).cuda()",
    ],
)
def test_what_the_caller_gave_does_not_go_to_another_argument_that_it_never_meets(move: str) -> None:
    after = converted(SIDE.format(move))
    assert "labels.device" not in after
    assert "device = " + CHOICE in after.replace("'cuda' if", '"cuda" if').replace("'cpu'", '"cpu"')


def test_what_the_caller_gave_goes_to_the_argument_that_it_meets() -> None:
    text = "import torch\n\n\ndef loss(out: torch.Tensor, labels: torch.Tensor):\n    return out - labels.cuda()\n"
    assert "labels.to(out.device)" in converted(text)


@pytest.mark.parametrize(
    "made", ["torch.zeros(3).cuda()", "torch.zeros(3, device='cuda')", "torch.arange(3).to('cuda')"]
)
def test_what_a_function_makes_goes_to_the_argument_that_is_a_tensor(made: str) -> None:
    text = f"import torch\n\n\ndef pad(out, rows):\n    out = out.detach()\n    return out.detach(), {made}, rows\n"
    assert "out.device" in converted(text)


# One idiom for a file

HELPER = "\n\ndef noise(n):\n    return torch.rand(n).cuda()\n"


@pytest.mark.parametrize(
    "made", ["torch.zeros(3).cuda()", "torch.zeros(3, device='cuda')", "torch.cuda.FloatTensor(3)"]
)
def test_a_file_with_a_new_device_uses_it_everywhere(made: str) -> None:
    text = f"import torch\n\n\ndef pad(out):\n    out = out.detach()\n    return out.detach(), {made}\n{HELPER}"
    after = converted(text)
    assert "out.device" not in after
    assert after.count("device = torch.device") == 1


@pytest.mark.parametrize("other", ["scores[0]", "scores.view(-1)", "torch.sigmoid(scores)", "(scores - 1).abs()"])
def test_a_function_follows_one_tensor(other: str) -> None:
    text = (
        "import torch\n\n\ndef loss(scores: torch.Tensor):\n"
        f"    first = scores.relu()\n    third = {other}\n"
        "    return first * torch.ones(3).cuda() + third * torch.ones(2).cuda()\n"
    )
    after = converted(text)
    assert "is_available" not in after
    assert len(set(re.findall(r"(\w+)\.device", after))) == 1
    assert "scores.device" in after


def test_two_moves_in_a_function_follow_the_same_tensor() -> None:
    text = (
        "import torch\n\n\ndef loss(both, u: torch.Tensor, v: torch.Tensor):\n"
        "    a = both[0].detach()\n    b = both[1].detach()\n"
        "    return a * u.cuda() + b * v.cuda()\n"
    )
    after = converted(text)
    assert len(set(re.findall(r"(\w+)\.device", after))) <= 1


REPEATED = """import torch


class Loss(torch.nn.Module):
    def forward(self, out: torch.Tensor, boxes):
{first}        a = torch.zeros(3).cuda()
        b = torch.ones(3).cuda()
        c = {third}
        return out * a + b * c
"""


@pytest.mark.parametrize(
    "third", ["torch.ones(3).cuda()", "torch.ones(3, device='cuda')", "torch.cuda.FloatTensor([3])"]
)
@pytest.mark.parametrize("first", ["", '        """The loss."""\n', "        n = out.size(0)\n"])
def test_a_function_that_repeats_a_device_names_it_once(first: str, third: str) -> None:
    after = converted(REPEATED.format(first=first, third=third))
    assert after.count("out.device") == 1
    assert after.count("        device = out.device\n") == 1
    assert after.index("device = out.device") < after.index("a = ")
    compile(after, "a.py", "exec")


@pytest.mark.parametrize("taken", ["device = boxes.place\n", "print(device)\n", "out, device = boxes\n"])
def test_a_function_with_a_device_of_its_own_gets_no_second_name(taken: str) -> None:
    after = converted(REPEATED.format(first=f"        {taken}", third="torch.ones(3).cuda()"))
    assert "        device = out.device\n" not in after


def test_two_moves_need_no_name() -> None:
    after = converted(REPEATED.format(first="", third="torch.ones(3)"))
    assert after.count("out.device") == 2


@pytest.mark.parametrize("star", ["from here import *", "from here.base import *\nfrom there import net"])
def test_torch_of_a_star_import_is_not_imported_again(star: str) -> None:
    text = f"{star}\n\n\ndef noise(n):\n    return torch.rand(n).cuda()\n"
    after = converted(text)
    assert "import torch" not in after
    assert after.index("import *") < after.index("device = torch.device")


def test_a_star_import_that_gives_no_torch_is_none() -> None:
    text = "from here import *\n\n\ndef noise(x):\n    return make(x).cuda()\n"
    assert "import torch\n" in converted(text)


@pytest.mark.parametrize("asks", ["args.cuda", "self.cuda > 0", "torch.cuda.is_available()"])
@pytest.mark.parametrize("place", ["'cpu'", "lambda storage, loc: storage", "torch.device('cpu')"])
def test_a_checkpoint_that_another_branch_loads_for_the_cpu_stays(asks: str, place: str) -> None:
    text = (
        f"import torch\n\n\ndef load(self, args, path):\n    if {asks}:\n        state = torch.load(path)\n    else:\n"
        f"        state = torch.load(path, map_location={place})\n    return state\n"
    )
    linter = Linter(tuple(rule() for rule in RULES), Settings(select=("DEV208",), torch_stated=False))
    assert not linter.check(decode(text.encode(), "train.py")).diagnostics


@pytest.mark.parametrize(
    ("asks", "place"), [("args.resume", "'cpu'"), ("args.gpu is None", "f'cuda:{args.gpu}'"), ("args.cuda", "'cuda:0'")]
)
def test_a_checkpoint_whose_other_branch_is_not_for_the_cpu_is_reported(asks: str, place: str) -> None:
    text = (
        f"import torch\n\n\ndef load(args, path):\n    if {asks}:\n        state = torch.load(path)\n    else:\n"
        f"        state = torch.load(args.base, map_location={place})\n    return state\n"
    )
    linter = Linter(tuple(rule() for rule in RULES), Settings(select=("DEV208",), torch_stated=False))
    assert len(linter.check(decode(text.encode(), "train.py")).diagnostics) == 1


@pytest.mark.parametrize(
    "made",
    ["torch.tensor([n], requires_grad=True)", "torch.zeros(n, requires_grad=True)", "torch.ones(n).cuda().detach()"],
)
def test_a_tensor_with_a_gradient_becomes_no_buffer(made: str) -> None:
    text = (
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self, n):\n"
        f"        super().__init__()\n        self.scale = {made}.cuda()\n"
    )
    assert ("register_buffer" in converted(text)) == ("requires_grad" not in made)


@pytest.mark.parametrize(
    ("leader", "device"), [("x", "x.device"), ("x.data", "x.device"), ("x.grad.data", "x.grad.device")]
)
def test_what_follows_the_data_of_a_tensor_follows_the_tensor(leader: str, device: str) -> None:
    text = (
        "import torch\n\n\ndef mask(x):\n    y = torch.ones(x.size())\n"
        f"    if {leader}.is_cuda:\n        y = y.cuda()\n    return x * y\n"
    )
    linter = Linter(tuple(rule() for rule in RULES), Settings(select=("DEV207",), torch_stated=False))
    after = fix_source(linter, decode(text.encode(), "train.py"), (Safety.SAFE, Safety.UNSAFE)).text
    assert f"y = y.to({device})" in after


def _loading(text: str) -> str:
    """A file after the fixes of DEV201 and DEV208."""
    linter = Linter(tuple(rule() for rule in RULES), Settings(select=("DEV201", "DEV208"), torch_stated=False))
    return fix_source(linter, decode(text.encode(), "train.py"), (Safety.SAFE, Safety.UNSAFE)).text


@pytest.mark.parametrize(
    "body",
    [
        "    data = torch.load(path)\n    return data\n",
        "    return torch.load(path)\n",
    ],
)
def test_what_a_function_loads_and_returns_goes_to_the_chosen_device(body: str) -> None:
    text = f"import torch\n\ndevice = torch.device('cuda')\n\n\ndef read(path):\n{body}\n\nprint(read('a')[0].to(device))\n"
    assert "torch.load(path, map_location=device)" in _loading(text)


def test_what_a_function_loads_for_a_model_goes_to_the_cpu() -> None:
    body = "def restore(net, path):\n    net.load_state_dict(torch.load(path))\n    return net\n"
    text = f"import torch\n\ndevice = torch.device('cuda')\nx = torch.rand(3).to(device)\n\n\n{body}"
    assert 'map_location="cpu"' in _loading(text)


HELD = """\
from typing import Dict, Tuple

import torch


def run(x):
    event = torch.cuda.Event()
    return event, x * torch.ones((1, 3)).cuda()


class Trainer:
    def step(self, engine, batch: {kind}):
        if self.amp:
            with torch.cuda.amp.autocast():
                pass
"""


def _converted_held(kind: str) -> str:
    linter = Linter(tuple(rule() for rule in RULES), Settings(select=("DEV2",), torch_stated=False))
    text = HELD.replace("{kind}", kind)
    return fix_source(linter, decode(text.encode(), "train.py"), (Safety.SAFE, Safety.UNSAFE)).text


@pytest.mark.parametrize("kind", ["Dict[str, torch.Tensor]", "list[torch.Tensor]", "Tuple[torch.Tensor, ...]"])
def test_what_holds_tensors_has_no_device(kind: str) -> None:
    assert "batch.device" not in _converted_held(kind)


def test_what_is_a_tensor_has_one() -> None:
    assert "batch.device" in _converted_held("torch.Tensor")

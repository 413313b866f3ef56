"""A file that names one card is converted as a whole: what is written for it, and when that is safe."""

from __future__ import annotations

import pytest

from devlint.engine import Linter
from devlint.fix.rounds import fix_source
from devlint.model import Safety
from devlint.settings import Settings
from devlint.source import decode
from devlint_rules import RULES

SETTINGS = Settings(select=("DEV201", "DEV202", "DEV203"), torch_stated=False)
STATED = Settings(select=("DEV201", "DEV202"), torch_version=(2, 7))
CHOICE = '"cuda" if torch.cuda.is_available() else "cpu"'
RUN = '\nif __name__ == "__main__":\n    main()\n'


def converted(text: str, settings: Settings = SETTINGS, *allow: Safety) -> str:
    linter = Linter(tuple(rule() for rule in RULES), settings)
    source = decode(text.encode(), "train.py")
    return fix_source(linter, source, allow or (Safety.SAFE, Safety.UNSAFE)).text


def safely(text: str, settings: Settings = SETTINGS) -> str:
    return converted(text, settings, Safety.SAFE)


# What is written


@pytest.mark.parametrize(
    ("settings", "choice"),
    [
        (SETTINGS, f"torch.device({CHOICE})"),
        (STATED, 'torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")'),
        (Settings(select=("DEV202",), torch_version=(2, 6)), f"torch.device({CHOICE})"),
    ],
)
def test_a_new_device_goes_by_what_is_known_of_torch(settings: Settings, choice: str) -> None:
    text = "import torch\n\nx = torch.rand(3).cuda()\ny = torch.rand(3).cuda()\n"
    assert converted(text, settings) == (
        f"import torch\n\ndevice = {choice}\n\nx = torch.rand(3).to(device)\ny = torch.rand(3).to(device)\n"
    )


@pytest.mark.parametrize(
    ("literal", "choice"),
    [
        ('"cuda"', CHOICE),
        ("'cuda:0'", "'cuda:0' if torch.cuda.is_available() else 'cpu'"),
        ('torch.device("cuda")', f"torch.device({CHOICE})"),
        ('torch.device("cuda:0")', 'torch.device("cuda:0" if torch.cuda.is_available() else "cpu")'),
        ('torch.device("cuda", 0)', 'torch.device("cuda:0" if torch.cuda.is_available() else "cpu")'),
        ('"mps"', '"mps" if torch.backends.mps.is_available() else "cpu"'),
    ],
)
def test_a_name_for_the_card_keeps_its_form_and_its_card(literal: str, choice: str) -> None:
    text = "import torch\n\nplace = {}\nx = torch.rand(3).to(place)\n"
    assert converted(text.format(literal)) == text.format(choice)


def test_a_text_stays_a_text_in_any_torch() -> None:
    text = 'import torch\n\nplace = {}\nprint("on " + place)\nx = torch.rand(3, device=place)\n'
    assert converted(text.format('"cuda"'), STATED) == text.format(
        'torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"'
    )


def test_the_name_that_the_file_has_is_used_everywhere() -> None:
    text = 'import torch\n\nDEVICE = "cuda"\n\n\ndef batch():\n    return torch.rand(3).{}\n'
    assert f"DEVICE = {CHOICE}\n" in converted(text.format("cuda()"))
    assert converted(text.format("cuda()")).endswith("torch.rand(3).to(DEVICE)\n")


def test_a_text_for_what_nobody_knows_makes_the_new_device_a_text() -> None:
    text = 'import torch\nfrom somewhere import build\n\nmodel = build(device="cuda")\nx = torch.rand(3).cuda()\n'
    assert converted(text) == (
        f"import torch\nfrom somewhere import build\n\ndevice = {CHOICE}\n\n"
        "model = build(device=device)\nx = torch.rand(3).to(device)\n"
    )


def test_single_quotes_stay_single_quotes() -> None:
    text = "import torch\n\nx = torch.rand(3).to('cuda')\ny = torch.ones(3, device='cuda')\n"
    assert "torch.device('cuda' if torch.cuda.is_available() else 'cpu')" in converted(text)


def test_the_first_card_stays_the_first_where_every_place_names_it() -> None:
    text = 'import torch\n\nx = torch.rand(3).to("cuda:0")\ny = torch.rand(3).cuda(0)\n'
    assert 'torch.device("cuda:0" if torch.cuda.is_available() else "cpu")' in converted(text)


def test_one_place_without_an_index_leaves_the_card_open() -> None:
    text = 'import torch\n\nx = torch.rand(3).to("cuda:0")\ny = torch.rand(3).cuda()\n'
    assert f"torch.device({CHOICE})" in converted(text)


def test_a_device_of_which_torch_tells_nothing_is_a_hint() -> None:
    text = "import torch\n\nx = torch.rand(3).npu()\n"
    assert converted(text) == text


BESIDE = "import torch\n\n{}\n\n\ndef g():\n    return torch.rand(3).cuda()\n"


@pytest.mark.parametrize(
    "other",
    [
        "def f(x, device):\n    return x.to(device)",
        "class A:\n    device = 3",
        "def f():\n    device = 1\n    return device",
        "from settings import *",
    ],
)
def test_the_new_name_is_device_where_no_place_sees_another_one(other: str) -> None:
    assert "\ndevice = torch.device(" in converted(BESIDE.format(other))


@pytest.mark.parametrize(
    "other",
    [
        "device = 1",
        "for device in range(3):\n    print(device)",
        "from settings import device",
        "from settings import *\n\n\ndef f(x):\n    return x.to(device)",
        "def f(device):\n    return torch.rand(3).cuda() + device",
        "def f():\n    device = 1\n    return torch.rand(3).cuda() + device",
    ],
)
def test_a_file_with_another_device_that_a_place_would_see_stays(other: str) -> None:
    text = BESIDE.format(other)
    assert converted(text) == text


@pytest.mark.parametrize(
    "setting",
    [
        'os.environ["CUDA_VISIBLE_DEVICES"] = card',
        'os.environ.setdefault("CUDA_VISIBLE_DEVICES", card)',
        'os.environ.update({"CUDA_VISIBLE_DEVICES": card})',
    ],
)
def test_no_device_is_chosen_before_a_function_sets_which_cards_are_visible(setting: str) -> None:
    text = (
        f"import os\nimport torch\n\n\ndef main(card):\n    {setting}\n    return torch.rand(3).cuda()\n\n\nmain('1')\n"
    )
    assert converted(text) == text


def test_a_second_conversion_changes_nothing() -> None:
    text = 'import torch\n\nplace = "cuda:0"\nx = torch.rand(3).cuda()\ny = torch.rand(3, device=place)\n'
    once = converted(text)
    assert converted(once) == once != text


# When it is safe

PROGRAM = "import torch\n{}\n\ndef main():\n    {}\n" + RUN


@pytest.mark.parametrize(
    "use",
    [
        "return torch.rand(3).cuda()",
        'return torch.rand(3, device="cuda:0")',
        'return torch.nn.Linear(2, 3).to("cuda")',
        'return torch.load("a.pt", map_location="cuda")',
        'device = "cuda"\n    return torch.rand(3).to(device)',
        'device = torch.device("cuda")\n    return torch.rand(3, device=device)',
    ],
)
def test_device_arguments_and_moves_of_tensors_and_modules_are_safe(use: str) -> None:
    assert "is_available()" in safely(PROGRAM.format("", use))


def test_the_items_of_a_loader_that_are_moved_are_tensors() -> None:
    loop = "for x, y in torch.utils.data.DataLoader(items):\n        print(x.cuda(), y.cuda())"
    assert ".to(device)" in safely(PROGRAM.format("from data import items", loop))


def test_what_gives_its_parameters_is_a_module() -> None:
    net = "net = Net().cuda()\n    return torch.optim.SGD(net.parameters())"
    assert "Net().to(device)" in safely(PROGRAM.format("from nets import Net", net))


@pytest.mark.parametrize(
    ("imports", "use"),
    [
        ("from graphs import Graph", "return Graph().cuda()"),
        ("from somewhere import build", 'return build(device="cuda")'),
        ("", 'return torch.rand(3, device="cuda:1")'),
        ("", "torch.cuda.set_device(1)\n    return torch.rand(3).cuda()"),
        ("", "with torch.cuda.device(1):\n        return torch.rand(3).cuda()"),
        ("import torch.distributed as dist", "return torch.rand(3).cuda()"),
        ("import multiprocessing", "return torch.rand(3).cuda()"),
        ("import pytest", "return torch.rand(3).cuda()"),
        ("", "try:\n        return torch.rand(3).cuda()\n    except RuntimeError:\n        return torch.rand(3)"),
        ("", 'device = "cuda"\n    if device == "cuda":\n        print("fast")\n    return torch.rand(3).to(device)'),
        ("", 'return {"device": "cuda"}, torch.rand(3).cuda()'),
    ],
)
def test_what_may_differ_somewhere_is_unsafe(imports: str, use: str) -> None:
    text = PROGRAM.format(imports, use)
    assert safely(text) == text


def test_a_file_that_is_only_imported_is_converted_unsafely() -> None:
    text = "import torch\n\n\ndef batch():\n    return torch.rand(3).cuda()\n"
    assert safely(text) == text
    assert converted(text) != text


def test_one_place_that_is_not_safe_makes_the_whole_file_unsafe() -> None:
    text = PROGRAM.format("from graphs import Graph", "return torch.rand(3).cuda(), Graph().cuda()")
    assert safely(text) == text


def test_a_safe_program_uses_its_device_and_not_that_of_an_argument() -> None:
    text = "import torch\n\n\ndef main(x: torch.Tensor = None):\n    return x + torch.rand(3).cuda()\n" + RUN
    assert "torch.rand(3).to(device)" in safely(text)


def test_the_decision_comes_before_what_makes_one_of_its_places_anew() -> None:
    linter = Linter(tuple(rule() for rule in RULES), Settings(torch_stated=False))
    text = PROGRAM.format("", 'x = torch.zeros(3).to("cuda")\n    return torch.nn.Linear(3, 3).cuda()(x)')
    fixed = fix_source(linter, decode(text.encode(), "train.py"), (Safety.SAFE,)).text
    assert "torch.zeros(3, device=device)" in fixed and "cuda" not in fixed.split("def main")[1]


def test_a_guarded_call_as_the_only_statement_of_a_block_leaves_nothing_behind() -> None:
    linter = Linter(tuple(rule() for rule in RULES), Settings(select=("DEV205",), torch_stated=False))
    text = "import torch\n\n\ndef finish(x):\n    torch.cuda.synchronize()\n"
    fixed = fix_source(linter, decode(text.encode(), "a.py"), (Safety.UNSAFE,)).text
    assert fixed.endswith("    if torch.cuda.is_available():\n        torch.cuda.synchronize()\n")

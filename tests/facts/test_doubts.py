"""What else a project says against a finding: default devices, attributes of subclasses, options that no call takes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import pytest

from devlint.model import FileResult

Checked = Callable[..., FileResult]

NET = """
    import torch
    from torch import nn
    class Net(nn.Module):
        def forward(self, x):
            return torch.cat([x, torch.zeros(3)])
"""


def codes(result: FileResult) -> list[str]:
    return [each.code for each in result.diagnostics]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("torch.set_default_tensor_type('torch.cuda.FloatTensor')", []),
        ("torch.set_default_tensor_type(torch.cuda.FloatTensor)", []),
        ("torch.set_default_device('cuda')", []),
        ("torch.set_default_device('cpu')", ["DEV102"]),
        ("torch.set_default_tensor_type('torch.DoubleTensor')", ["DEV102"]),
        ("pass", ["DEV102"]),
    ],
)
def test_default_that_the_importing_script_sets_counts(checked: Checked, statement: str, expected: list[str]) -> None:
    script = f"import torch\nfrom models import Net\n{statement}\nNet().cuda()\n"
    files = {"models/__init__.py": "from .net import Net\n", "models/net.py": NET, "train.py": script}
    assert codes(checked(files, "models/net.py")) == expected


@pytest.mark.parametrize(
    ("setter", "expected"),
    [
        ("if torch.cuda.is_available():\n    torch.set_default_tensor_type(torch.cuda.FloatTensor)", []),
        ("def use_cuda():\n    torch.set_default_tensor_type(torch.cuda.FloatTensor)", ["DEV102"]),
        ("if __name__ == '__main__':\n    torch.set_default_tensor_type(torch.cuda.FloatTensor)", ["DEV102"]),
    ],
)
def test_default_that_is_set_beside_the_file_counts(checked: Checked, setter: str, expected: list[str]) -> None:
    script = "from models.net import Net\nfrom models.utils import collate\nNet()\n"
    utils = f"import torch\n{setter}\ndef collate(batch):\n    return batch\n"
    files = {"models/__init__.py": "", "models/net.py": NET, "models/utils.py": utils, "train.py": script}
    assert codes(checked(files, "models/net.py")) == expected
    alone = {**files, "train.py": "from models.net import Net\nNet()\n"}
    assert codes(checked(alone, "models/net.py")) == ["DEV102"]


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("from models.net import Net\nNet().to('cuda')\n", ["DEV102"]),
        ("from models.net import Net\nNet()\n", []),  # nothing puts it on a device there
        ("import torch\nfrom models.net import Net\ntorch.set_default_device('cuda')\nNet().to('cuda')\n", []),
        ("print('cuda')\n", []),
        ("from models.net import SIZES\nprint(SIZES.to('cuda'))\n", []),  # it runs nothing of the class
        ("import torch\nfrom models.net import Net\nwith torch.device('cuda'):\n    Net().to('cuda')\n", []),
        ("import torch\nfrom models.net import Net\nwith torch.no_grad():\n    Net().to('cuda')\n", ["DEV102"]),
        (
            "from models.net import Net as N\ndef f():\n    N().to('cuda')\nif __name__ == '__main__':\n    f()\n",
            ["DEV102"],
        ),
        ("from models import net\ndef f():\n    return net.Net()\nf().to('cuda')\n", ["DEV102"]),
    ],
)
def test_default_that_one_of_two_scripts_sets_counts_where_the_other_needs_none(
    checked: Checked, other: str, expected: list[str]
) -> None:
    demo = "import torch\nfrom models.net import Net\ntorch.set_default_device('cuda')\nNet()\n"
    files = {"models/__init__.py": "", "models/net.py": NET, "demo.py": demo, "train.py": other}
    assert codes(checked(files, "models/net.py")) == expected
    as_test = {**files, "train.py": "", "tests/test_net.py": other}
    assert codes(checked(as_test, "models/net.py")) == []


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("models.__dict__[name]()", ["DEV102"]),
        ("vars(models)[name]()", ["DEV102"]),
        ("getattr(models, name)()", ["DEV102"]),
        ("getattr(models, 'version')", []),
        ("other.__dict__[name]()", []),
        ("name()", []),
    ],
)
def test_default_that_a_script_sets_counts_where_no_other_finds_the_class_by_its_name(
    checked: Checked, made: str, expected: list[str]
) -> None:
    demo = "import torch\nfrom models.net import SIZES\ntorch.set_default_device('cuda')\nprint(SIZES)\n"
    train = f"import models\nimport other\ndef run(name):\n    net = {made}\n    return net.to('cuda')\nrun('Net')\n"
    net = NET + "    SIZES = 1, 2\n"
    files = {"models/__init__.py": "from .net import *\n", "models/net.py": net, "other.py": "", "demo.py": demo}
    assert codes(checked({**files, "train.py": train}, "models/net.py")) == expected


def test_size_of_what_a_library_of_the_host_read(checked: Checked) -> None:
    code = """
        import torch
        from scipy.optimize import linear_sum_assignment
        def match(x: torch.Tensor, y: torch.Tensor):
            cost = torch.cdist(x, y)
            rows, columns = linear_sum_assignment(COST)
            return torch.eye(cost.shape[0])[columns, :]
    """
    assert "DEV102" not in codes(checked({"match.py": code.replace("COST", "cost")}, "match.py"))
    assert "DEV102" in codes(checked({"match.py": code.replace("COST", "cost.cpu()")}, "match.py"))


@pytest.mark.parametrize(
    ("statement", "expected"), [("torch.set_default_device(device)", []), ("torch.manual_seed(0)", ["DEV110"])]
)
def test_default_that_the_importing_script_sets_counts_for_generators(
    checked: Checked, statement: str, expected: list[str]
) -> None:
    data = """
        import torch
        from torch.utils.data import random_split
        def split(items, device):
            return random_split(items, [8, 2], generator=torch.Generator(device=device))
    """
    script = f"import torch\nfrom data import split\ndevice = torch.device('cuda')\n{statement}\nsplit([], device)\n"
    assert codes(checked({"data.py": data, "train.py": script}, "data.py")) == expected


def test_default_that_the_package_sets_when_it_is_imported_counts(checked: Checked) -> None:
    setter = "import torch\ndef choose(device):\n    torch.set_default_device(device)\n"
    files = {"pack/__init__.py": "from .start import choose\nchoose('cuda')\n", "pack/start.py": setter}
    assert codes(checked({**files, "pack/net.py": NET}, "pack/net.py")) == []
    assert codes(checked({**files, "pack/__init__.py": "", "pack/net.py": NET}, "pack/net.py")) == ["DEV102"]


def test_default_that_a_helper_of_a_test_sets_counts_for_modules(checked: Checked) -> None:
    test = """
        import unittest
        import torch
        from torch import nn
        from utils import common_init
        class TestCells(unittest.TestCase):
            def setUp(self):
                common_init(self)
            def test_cell(self):
                cell = nn.Linear(2, 2)
                cell(torch.ones(3, 2, device="cuda"))
    """
    setter = "import torch\ndef common_init(case):\n    torch.set_default_tensor_type(torch.cuda.FloatTensor)\n"
    files = {"tests/test_cells.py": test, "tests/utils.py": setter}
    assert codes(checked(files, "tests/test_cells.py")) == []
    assert codes(checked({**files, "tests/__init__.py": ""}, "tests/test_cells.py")) == []
    other = "def common_init(case):\n    case.size = 2\n"
    assert codes(checked({"tests/test_cells.py": test, "tests/utils.py": other}, "tests/test_cells.py")) == ["DEV103"]


def test_default_that_another_program_sets_does_not_count(checked: Checked) -> None:
    script = "import torch\ntorch.set_default_tensor_type('torch.cuda.FloatTensor')\n"
    assert codes(checked({"net.py": NET, "other.py": script}, "net.py")) == ["DEV102"]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("def build():\n    from models.net import Net\n    return Net()\n", []),
        ("def build():\n    from models.other import Net\n    return Net()\n", ["DEV102"]),
    ],
)
def test_default_counts_where_a_function_imports_the_file(checked: Checked, config: str, expected: list[str]) -> None:
    script = (
        "import torch\ntorch.set_default_tensor_type('torch.cuda.FloatTensor')\nfrom config import build\nbuild()\n"
    )
    files = {"models/net.py": NET, "models/other.py": NET, "config.py": config, "train.py": script}
    assert codes(checked(files, "models/net.py")) == expected


@pytest.mark.parametrize(
    ("made", "script", "expected"),
    [
        ("torch.arange(n)", "torch.set_default_tensor_type('torch.cuda.FloatTensor')", []),
        ("torch.arange(n)", "torch.set_default_device('cuda')", []),
        ("torch.arange(n)", "torch.manual_seed(0)", ["DEV104"]),
        ("torch.arange(n, device='cpu')", "torch.set_default_device('cuda')", ["DEV104"]),
        ("torch.from_numpy(np.arange(n))", "torch.set_default_device('cuda')", ["DEV104"]),
    ],
)
def test_default_counts_for_what_a_helper_in_another_file_makes(
    checked: Checked, made: str, script: str, expected: list[str]
) -> None:
    steps = f"import numpy as np\nimport torch\ndef ids(n):\n    return {made}\n"
    net = """
        import torch
        from torch import nn
        from steps import ids
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(3, 1)
            def forward(self, x: torch.Tensor):
                every = ids(x.shape[0])
                return every[self.head(x)[:, 0] > 0]
    """
    files = {
        "steps.py": steps,
        "net.py": net,
        "train.py": f"import torch\nfrom net import Net\n{script}\nNet().cuda()\n",
    }
    assert codes(checked(files, "net.py")) == expected
    beside = files["train.py"].replace("from net import Net", "import steps").replace("Net().cuda()", "")
    assert codes(checked({**files, "train.py": beside}, "net.py")) == expected
    alone = files["train.py"].replace("from net import Net", "").replace("Net().cuda()", "")
    assert codes(checked({**files, "train.py": alone}, "net.py")) == ["DEV104"]


def test_default_that_an_example_of_a_package_sets_does_not_count(checked: Checked) -> None:
    script = "import torch\nfrom pack import net\ntorch.set_default_device('cuda')\n"
    files = {"pyproject.toml": "", "pack/__init__.py": "", "pack/net.py": NET, "examples/run.py": script}
    assert codes(checked(files, "pack/net.py")) == ["DEV102"]


def test_default_that_a_test_sets_does_not_count(checked: Checked) -> None:
    test = "import torch, net\ntorch.set_default_device('cuda')\n"
    assert codes(checked({"net.py": NET, "tests/test_net.py": test}, "net.py")) == ["DEV102"]


def test_legacy_constructor_follows_the_default_type_and_no_default_device(checked: Checked) -> None:
    net = NET.replace("torch.zeros(3)", "torch.Tensor([1.0])")
    by_type = "import torch, net\ntorch.set_default_tensor_type('torch.cuda.FloatTensor')\n"
    by_device = "import torch, net\ntorch.set_default_device('cuda')\n"
    assert codes(checked({"net.py": net, "train.py": by_device}, "net.py")) == ["DEV102"]
    assert codes(checked({"net.py": net, "train.py": by_type}, "net.py")) == []


BASE = """
    from torch import nn
    class Base(nn.Module):
        def fit(self, data):
            return self(data.to(self.device))
"""


@pytest.mark.parametrize(
    ("child", "expected"),
    [
        ("class Child(Base):\n    def __init__(self, device):\n        self.device = device\n", []),
        ("class Child(Base):\n    @property\n    def device(self): return 0\n", []),
        ("class Middle(Base): ...\nclass Child(Middle):\n    device = 'cuda'\n", []),
        ("class Child(Base):\n    def __init__(self):\n        self.place = 1\n", ["DEV301"]),
        ("class Other:\n    def __init__(self, base: Base):\n        self.device = 1\n", ["DEV301"]),
    ],
)
def test_attribute_that_a_subclass_sets_is_there(checked: Checked, child: str, expected: list[str]) -> None:
    files = {"base.py": BASE, "child.py": f"import torch\nfrom base import Base\n{child}"}
    assert codes(checked(files, "base.py")) == expected


RUN = """
    import torch
    def run(model, x):
        model.eval()
        return model(x.to(model.device()))
"""


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("def device(self): return self.layer.weight.device", []),
        ("@property\n    def device(self): return self.layer.weight.device", ["DEV301"]),
        ("def place(self): return self.layer.weight.device", ["DEV301"]),
    ],
)
def test_method_of_a_class_of_the_project_may_be_that_of_an_argument(
    checked: Checked, method: str, expected: list[str]
) -> None:
    net = f"from torch import nn\nclass Net(nn.Module):\n    {method}\n"
    assert codes(checked({"run.py": RUN, "net.py": net}, "run.py")) == expected
    assert codes(checked({"run.py": net + textwrap.dedent(RUN)}, "run.py")) == expected


KEPT = """
    class Average:
        def __init__(self, model):
            self.model = model
            self.state = model.state_dict()
        def restore(self):
            self.model.load_state_dict({k: v.to(self.model.device()) for k, v in self.state.items()})
"""


@pytest.mark.parametrize(("method", "expected"), [("device", []), ("place", ["DEV301"])])
def test_method_of_a_class_of_the_project_may_be_that_of_an_argument_that_an_object_keeps(
    checked: Checked, method: str, expected: list[str]
) -> None:
    net = f"from torch import nn\nclass Net(nn.Module):\n    def {method}(self): return self.layer.weight.device\n"
    kept = f"import torch\n{textwrap.dedent(KEPT)}"
    assert codes(checked({"kept.py": kept, "net.py": net}, "kept.py")) == expected


def test_method_of_a_subclass_is_there(checked: Checked) -> None:
    base = (
        "import torch\nfrom torch import nn\nclass Base(nn.Module):\n    def put(self, x): return x.to(self.device())\n"
    )
    child = "from base import Base\nclass Child(Base):\n    def device(self): return 0\n"
    assert codes(checked({"base.py": base, "child.py": child}, "base.py")) == []
    assert codes(checked({"base.py": base, "child.py": child.replace("device", "place")}, "base.py")) == ["DEV301"]


HELPER = """
    import torch
    def _shift(x: torch.Tensor, masked=False):
        if masked:
            x = x * torch.tril(torch.ones(3, 3))
        return x
    def forward(x: torch.Tensor, y):
        return _shift(x{given})
"""


@pytest.mark.parametrize(
    ("given", "expected"),
    [("", []), (", False", []), (", masked=False", []), (", masked=True", ["DEV102"]), (", **y", ["DEV102"])],
)
def test_option_of_a_private_helper_that_no_call_takes_is_off(
    checked: Checked, given: str, expected: list[str]
) -> None:
    assert codes(checked({"tools.py": HELPER.format(given=given)})) == expected


EARLY = """
    import torch
    def _shift(x: torch.Tensor, masked):
        if not masked:
            return x
        return x * torch.tril(torch.ones(3, 3))
    def forward(x: torch.Tensor):
        return _shift(x, masked={given})
"""


@pytest.mark.parametrize(("given", "expected"), [("False", []), ("True", ["DEV102"])])
def test_early_return_without_an_option_that_no_call_takes(checked: Checked, given: str, expected: list[str]) -> None:
    assert codes(checked({"tools.py": EARLY.format(given=given)})) == expected


def test_option_that_another_file_takes_is_on(checked: Checked) -> None:
    other = "from tools import _shift\ndef f(x):\n    return _shift(x.cuda(), masked=True)\n"
    assert codes(checked({"tools.py": HELPER.format(given=""), "other.py": other})) == ["DEV102"]


def test_option_of_a_public_function_may_be_taken_by_who_installs_the_project(checked: Checked) -> None:
    text = HELPER.format(given="").replace("_shift", "shift")
    assert codes(checked({"tools.py": text, "setup.py": "import setuptools\nsetuptools.setup()\n"})) == ["DEV102"]


def test_option_of_a_public_function_is_off_where_no_call_of_a_program_takes_it(checked: Checked) -> None:
    text = HELPER.format(given="").replace("_shift", "shift")
    assert codes(checked({"tools.py": text})) == []


PREPARED = """
    import torch
    from torch import nn
    from tools import spread
    def test(mesh):
        model = nn.Linear(4, 4)
        model = spread(model, mesh)
        return model(torch.ones(1, 4).cuda())
"""


@pytest.mark.parametrize(
    ("given_back", "expected"), [("model = spread(model, mesh)", []), ("spread(mesh)", ["DEV103"])]
)
def test_module_that_a_function_of_the_project_gives_back_may_be_elsewhere(
    checked: Checked, given_back: str, expected: list[str]
) -> None:
    tools = "def spread(model, mesh=None):\n    for module in model.modules():\n        mesh.place(module)\n    return model\n"
    text = PREPARED.replace("model = spread(model, mesh)", given_back)
    assert codes(checked({"tools.py": tools, "main.py": text}, "main.py")) == expected


PACK = """
    import torch
    from torch import nn
    class Packed(nn.Module):
        def pack(self, zeros):
            zeros = zeros.t().contiguous()
            return zeros.numpy()
        def forward(self, x):
            return x
"""


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("from packed import Packed\nnet = Packed()\n", []),  # the file is used, `pack` is not
        ("from packed import Packed\ndef f(x): return Packed().pack(x)\n", ["DEV109"]),
        ("from packed import Packed\nMETHODS = {Packed: 'pack'}\n", ["DEV109"]),
        ("import torch\n", ["DEV109"]),  # nothing here uses the file: others may
    ],
)
def test_method_that_nobody_names_is_given_nothing(checked: Checked, other: str, expected: list[str]) -> None:
    assert codes(checked({"packed.py": PACK, "main.py": other}, "packed.py")) == expected


def test_annotated_argument_of_a_method_that_nobody_names_may_be_anywhere(checked: Checked) -> None:
    text = PACK.replace("zeros)", "zeros: torch.Tensor)", 1)
    assert codes(checked({"packed.py": text, "main.py": "from packed import Packed\n"}, "packed.py")) == ["DEV109"]


def test_index_into_a_table_that_is_put_on_the_cpu_needs_a_caller(checked: Checked) -> None:
    table = """
        import torch
        class Slots(torch.nn.Module):
            def free(self, requests: torch.Tensor):
                table = torch.full((8,), -1, device="cpu")
                return requests[0] + table[requests]
    """
    on_card = """
        import torch
        from slots import Slots
        def run(x):
            slots = Slots()
            slots.free(x.cuda())
    """
    assert codes(checked({"slots.py": table}, "slots.py")) == []
    assert "DEV104" in codes(checked({"slots.py": table, "main.py": on_card}, "slots.py"))


PATHS = """
    import torch
    def group(x: torch.Tensor):
        if {test}:
            return torch.zeros(3)
        return x * 2
"""


@pytest.mark.parametrize(
    ("test", "expected"), [("x.device.type == 'cpu'", []), ("x.numel() == 0", ["DEV102"]), ("rank == 0", [])]
)
def test_paths_for_other_devices_and_processes_are_no_alternatives(
    checked: Checked, test: str, expected: list[str]
) -> None:
    assert codes(checked({"tools.py": PATHS.format(test=test)})) == expected


@pytest.mark.parametrize(("wrapped", "expected"), [("nn.DataParallel(model)", []), ("model.cuda()", ["DEV102"])])
def test_a_module_that_reaches_the_call_through_others_may_scatter_its_inputs(
    checked: Checked, wrapped: str, expected: list[str]
) -> None:
    files = {
        "tools.py": """
            import torch
            def output(model, inputs):
                return model(inputs)
            def predict(model: torch.nn.Module, rows: torch.Tensor):
                return output(model, torch.zeros(3, 4))
        """,
        "main.py": f"""
            from torch import nn
            from tools import predict
            def run(model, rows):
                return predict({wrapped}, rows)
        """,
    }
    assert codes(checked(files)) == expected


def test_default_that_a_base_of_a_test_sets_counts(checked: Checked) -> None:
    base = """
        import torch, unittest
        class Case(unittest.TestCase):
            def __init__(self, name="run", device="cuda"):
                super().__init__(name)
                self.device = device
                choose(device)
        def choose(device):
            torch.set_default_device(torch.device(device))
    """
    test = """
        import torch
        from case import Case
        class TestNet(Case):
            def test(self):
                net = torch.nn.Linear(2, 2).to("cuda")
                net(torch.randn(3, 2))
    """
    assert codes(checked({"tests/case.py": base, "tests/test_net.py": test}, "tests/test_net.py")) == []
    silent = base.replace("torch.set_default_device(torch.device(device))", "pass")
    assert codes(checked({"tests/case.py": silent, "tests/test_net.py": test}, "tests/test_net.py")) == ["DEV102"]


def test_method_of_what_a_function_of_the_file_makes_is_not_left_over(checked: Checked) -> None:
    decoder = """
        import torch
        from torch import nn
        class Decoder(nn.Module):
            def recognize(self, h):
                return torch.cat([h.unsqueeze(0), torch.zeros((1, 4))], dim=1)
        def make(options):
            return Decoder()
    """
    model = """
        import torch
        from pack.decoder import make
        class Model(torch.nn.Module):
            def __init__(self, options):
                super().__init__()
                self.decoder = make(options)
            def found(self, x):
                return self.decoder.recognize(x)
    """
    files = {"pack/__init__.py": "", "pack/decoder.py": decoder, "pack/model.py": model}
    assert codes(checked(files, "pack/decoder.py")) == ["DEV102"]
    assert codes(checked({**files, "pack/model.py": "from pack.decoder import make\n"}, "pack/decoder.py")) == []


ACTOR = """
    import torch
    from torch import nn
    class Actor(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(3, 2)
        def act(self, observation):
            with torch.no_grad():
                return self.net(observation).numpy()
"""


@pytest.mark.parametrize(("script", "expected"), [("print(3)\n", []), ("device = 'cuda'\n", ["DEV109"])])
def test_project_that_never_speaks_of_devices_may_read_with_numpy(
    checked: Checked, script: str, expected: list[str]
) -> None:
    files = {"pyproject.toml": "", "pack/__init__.py": "", "pack/actor.py": ACTOR, "pack/train.py": script}
    assert codes(checked(files, "pack/actor.py")) == expected


DEBUG = """
    import torch
    from base import Base
    class Trainer(Base):
        def debug(self, batch, output):
            boxes = batch["boxes"].detach().numpy()
            return boxes, batch["meta"]["center"].detach().numpy()
"""
LOOP = """
    import torch
    class Base:
        def run(self, loader, model):
            for batch in loader:
                for key in batch:
                    if {test}:
                        batch[key] = batch[key].to(self.device)
                self.debug(batch, model(batch))
"""


@pytest.mark.parametrize(
    ("test", "expected"),
    [('key != "meta"', 1), ('key not in ("meta", "names")', 1), ('key != "names"', 2), ('key == "meta"', 2)],
)
def test_entry_that_is_left_out_when_others_move_is_read_on_the_host(
    checked: Checked, test: str, expected: int
) -> None:
    files = {"base.py": LOOP.format(test=test), "trainer.py": DEBUG}
    assert len(codes(checked(files, "trainer.py"))) == expected


def test_tensor_made_where_there_is_no_cuda_meets_none_of_it(checked: Checked) -> None:
    text = """
        import torch
        def total(losses: list, loss: torch.Tensor):
            if torch.cuda.is_available():
                losses.append(torch.tensor([0]).cuda())
            else:
                losses.append(torch.tensor([0]))
            return torch.cat([loss, torch.tensor([0]) if torch.cuda.is_available() else loss, losses[-1]])
        def joined(loss: torch.Tensor):
            if torch.cuda.is_available():
                first = torch.zeros(1).cuda()
            else:
                first = torch.zeros(1)
            return torch.cat([loss, first])
    """
    assert codes(checked({"tools.py": text})) == ["DEV102"]


@pytest.mark.parametrize(("key", "expected"), [("task", []), ("0", ["DEV102"])])
def test_entry_that_is_moved_before_it_is_used_is_where_the_other_is(
    checked: Checked, key: str, expected: list[str]
) -> None:
    text = f"""
        import torch
        def rows(indices: dict, task: str, whole: torch.Tensor):
            places = {{task: torch.LongTensor(each) for task, each in indices.items()}}
            places[{key}] = places[task].to(whole.device)
            return torch.index_select(whole, 0, places[task])
    """
    assert codes(checked({"tools.py": text})) == expected


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        ("pass", []),
        ("places = {t: torch.LongTensor(each) for t, each in indices.items()}", ["DEV102"]),
        ("places[task] = torch.LongTensor([1])", ["DEV102"]),
    ],
)
def test_entry_that_is_made_anew_after_its_move_is_where_it_was_made(
    checked: Checked, between: str, expected: list[str]
) -> None:
    text = f"""
        import torch
        def rows(indices: dict, task: str, whole: torch.Tensor):
            places = {{t: torch.LongTensor(each) for t, each in indices.items()}}
            places[task] = places[task].to(whole.device)
            {between}
            return torch.index_select(whole, 0, places[task])
    """
    assert codes(checked({"tools.py": text})) == expected


def test_entry_that_is_moved_on_one_path_only_is_not_moved(checked: Checked) -> None:
    text = """
        import torch
        def rows(indices: dict, task: str, whole: torch.Tensor, flag: bool):
            places = {t: torch.LongTensor(each) for t, each in indices.items()}
            if flag:
                places[task] = places[task].to(whole.device)
            return torch.index_select(whole, 0, places[task])
    """
    assert codes(checked({"tools.py": text})) == ["DEV102"]


def test_condition_outside_of_a_loop_leaves_no_entry_out(checked: Checked) -> None:
    base = """
        import torch
        class Base:
            def run(self, loader, model, mode):
                if mode != "boxes":
                    model.to(self.device)
    """
    assert len(codes(checked({"base.py": base, "trainer.py": DEBUG}, "trainer.py"))) == 2


def test_loop_that_goes_on_at_an_entry_leaves_it_out(checked: Checked) -> None:
    base = """
        import torch
        class Base:
            def run(self, loader, model):
                for batch in loader:
                    for key in batch:
                        if key == "meta":
                            continue
                        batch[key] = batch[key].to(self.device)
                    self.debug(batch, model(batch))
    """
    assert len(codes(checked({"base.py": base, "trainer.py": DEBUG}, "trainer.py"))) == 1


CURVES = """
    import torch
    def to_list(values: torch.Tensor):
        return values.numpy().tolist()
    def to_list_from_card(values: torch.Tensor, device=None):
        return values.numpy().tolist()
"""


def test_host_reads_an_argument_in_a_package_where_the_function_handles_devices(checked: Checked) -> None:
    result = checked({"pack/__init__.py": "", "pack/curves.py": CURVES}, "pack/curves.py")
    assert [(each.code, each.start.row) for each in result.diagnostics if each.code == "DEV109"] == [("DEV109", 6)]


def test_host_reads_an_argument_in_a_package_where_a_call_hands_over_what_was_moved(checked: Checked) -> None:
    script = """
        import torch
        from pack.curves import to_list
        def main(model, x, device):
            x = x.to(device)
            return to_list(x)
    """
    files = {"pack/__init__.py": "", "pack/curves.py": CURVES, "main.py": script}
    found = [each.start.row for each in checked(files, "pack/curves.py").diagnostics if each.code == "DEV109"]
    assert found == [4, 6]


def test_host_reads_an_argument_in_a_file_by_itself(checked: Checked) -> None:
    found = [
        each.start.row for each in checked({"curves.py": CURVES}, "curves.py").diagnostics if each.code == "DEV109"
    ]
    assert found == [4, 6]


PACKED = """
    import torch
    class Packed(torch.nn.Module):
        def pack(self, weight{annotation}):
            return weight.detach().numpy(){rest}
"""


@pytest.mark.parametrize(
    ("annotation", "rest", "found"),
    [
        ("", "", []),
        (": torch.Tensor", "", ["DEV109"]),
        ("", "\n        def out(self, weight):\n            return weight.cuda()", ["DEV109"]),
    ],
)
def test_host_reads_an_argument_of_a_module_in_a_package_that_says_it_is_a_tensor_or_handles_devices(
    checked: Checked, annotation: str, rest: str, found: list[str]
) -> None:
    text = PACKED.format(annotation=annotation, rest=rest)
    assert codes(checked({"pack/__init__.py": "", "pack/packed.py": text}, "pack/packed.py")) == found


def test_what_a_test_does_with_its_projects_own_classes_is_known_to_pass(checked: Checked) -> None:
    test = """
        import torch
        from pack.layers import Offloaded
        def test_offloaded():
            module = Offloaded()
            x = torch.zeros(2, 2).cuda()
            assert module(x).shape == (2, 2)
    """
    layers = """
        from torch import nn
        class Offloaded(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(2, 2)
            def forward(self, x):
                return self.lin(x)
    """
    files = {"pack/__init__.py": "", "pack/layers.py": layers, "tests/test_layers.py": test, "main.py": test}
    assert codes(checked(files, "tests/test_layers.py")) == []
    assert set(codes(checked(files, "main.py"))) >= {"DEV103"}


def test_what_a_test_does_with_torch_alone_is_reported(checked: Checked) -> None:
    test = """
        import torch
        def test_sum():
            a = torch.zeros(3).cuda()
            b = torch.ones(3).cpu()
            assert (a + b).sum() == 3
    """
    assert "DEV101" in codes(checked({"tests/test_sum.py": test}, "tests/test_sum.py"))


HEAD = """
    import torch
    from torch import nn
    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            self.grid = [torch.zeros(1)] * 3
        def forward(self, x):
            return x.sigmoid() + self.grid[0]
"""


@pytest.mark.parametrize(
    ("method", "statement", "expected"),
    [
        ("_apply", "self.head.grid = list(map(fn, self.head.grid))", []),
        ("_apply", "self.head.grid[0] = fn(self.head.grid[0])", []),
        ("_apply", "self.grid = list(map(fn, self.grid))", ["DEV106"]),  # of its own
        ("_apply", "self.head.grid = []", ["DEV106"]),
        ("reset", "self.head.grid = list(map(fn, self.head.grid))", ["DEV106"]),
    ],
)
def test_plain_tensors_that_the_holder_moves_along(
    checked: Checked, method: str, statement: str, expected: list[str]
) -> None:
    model = f"""
        from torch import nn
        from .head import Head
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = Head()
            def {method}(self, fn):
                self = super()._apply(fn)
                {statement}
                return self
    """
    files = {"pack/__init__.py": "", "pack/head.py": HEAD, "pack/model.py": model}
    assert codes(checked(files, "pack/head.py")) == expected


@pytest.mark.parametrize(
    ("way", "expected"), [("from .heads import build", []), ("from .others import build", ["DEV106"])]
)
def test_plain_tensors_that_a_holder_of_other_modules_moves_along(
    checked: Checked, way: str, expected: list[str]
) -> None:
    model = f"""
        from torch import nn
        {way}
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = build()  # a Head, or one of that name from elsewhere
            def _apply(self, fn):
                self = super()._apply(fn)
                self.head.grid = list(map(fn, self.head.grid))
                return self
    """
    files = {
        "pack/__init__.py": "", "pack/head.py": HEAD, "pack/others.py": HEAD + "    def build(): return Head()\n",
        "pack/heads.py": "from .head import Head\ndef build():\n    return Head()\n", "pack/model.py": model,
    }  # fmt: skip
    assert codes(checked(files, "pack/head.py")) == expected


def test_plain_tensors_that_a_subclass_elsewhere_moves_along(checked: Checked) -> None:
    model = """
        from .head import Head
        class Moving(Head):
            def _apply(self, fn):
                self = super()._apply(fn)
                self.grid = list(map(fn, self.grid))
                return self
    """
    files = {"pack/__init__.py": "", "pack/head.py": HEAD, "pack/model.py": model}
    assert codes(checked(files, "pack/head.py")) == []
    assert codes(checked({**files, "pack/model.py": model.replace("(Head)", "")}, "pack/head.py")) == ["DEV106"]


def test_what_a_test_records_of_its_projects_own_classes_is_known_to_pass(checked: Checked) -> None:
    test = """
        import torch
        from pack.layers import Adapter
        def test_recorded():
            adapter = Adapter()
            x = torch.zeros(2, 2).cpu()
            recorded = torch.jit.trace(adapter, x)
            recorded = torch.jit.load("recorded.pt")
            assert recorded.to("cuda")(x).shape == (2, 2)
    """
    layers = """
        from torch import nn
        class Adapter(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(2, 2)
            def forward(self, x):
                return self.lin(x)
    """
    files = {"pack/__init__.py": "", "pack/layers.py": layers, "tests/test_layers.py": test, "main.py": test}
    assert "DEV103" not in codes(checked(files, "tests/test_layers.py"))
    assert "DEV103" in codes(checked(files, "main.py"))


@pytest.mark.parametrize(
    ("line", "expected"), [("self.model.device = device", []), ("self.device = device", ["DEV301"])]
)
def test_attribute_that_code_elsewhere_sets_on_a_module_is_there(
    checked: Checked, line: str, expected: list[str]
) -> None:
    net = """
        import torch
        from torch import nn
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(2, 2)
            def predict(self, rows):
                return self.layer(torch.tensor(rows).to(self.device))
    """
    head = "from net import Net\nclass Engine:\n    def start(self, model, device):\n        self.model = model\n"
    engine = f"{head}        {line}\n"
    assert codes(checked({"net.py": net, "engine.py": engine}, "net.py")) == expected


@pytest.mark.parametrize(
    ("given", "packaging", "expected"),
    [
        ("torch.from_numpy(rows).to(device)", {}, []),
        ("torch.zeros(8, 8, device=device)", {}, []),
        ("nn.Parameter(torch.zeros(8, 8))", {}, []),
        ("torch.from_numpy(rows)", {}, ["DEV106"]),
        ("torch.from_numpy(rows).to(device)", {"pyproject.toml": ""}, ["DEV106"]),  # others may make it otherwise
        ("nn.Parameter(torch.zeros(8, 8))", {"pyproject.toml": ""}, []),
    ],
)
def test_tensor_that_all_constructions_give_placed_or_registered_is_no_lost_state(
    checked: Checked, given: str, packaging: dict[str, str], expected: list[str]
) -> None:
    heads = """
        import torch
        from torch import nn
        class Head(nn.Module):
            def __init__(self, rows: torch.Tensor):
                super().__init__()
                self.rows = rows
                self.lin = nn.Linear(8, 2)
            def forward(self, nodes: torch.Tensor) -> torch.Tensor:
                return self.lin(self.rows[nodes] + self.lin.weight.sum())
    """
    main = f"""
        import torch
        from torch import nn
        from heads import Head
        def build(rows, device):
            features = {given}
            return Head(features).to(device)
    """
    assert codes(checked({"heads.py": heads, "main.py": main, **packaging}, "heads.py")) == expected


@pytest.mark.parametrize(
    ("defined", "expected"),
    [
        ("from enum import Enum\nclass TensorType(Enum):\n    PT = 'pt'\n", []),
        ("import torch\nclass TensorType(torch.Tensor):\n    pass\n", ["DEV102"]),
        ("from typing import Union\nimport torch\nTensorType = Union[torch.Tensor, list]\n", ["DEV102"]),
    ],
)
def test_class_of_an_annotation_that_is_called_like_tensors(
    checked: Checked, defined: str, expected: list[str]
) -> None:
    exporter = """
        from typing import Optional

        import torch

        from .base import Exporter
        from .types import TensorType


        class Masked(Exporter):
            def dummies(self, tokenizer, size, framework: Optional[TensorType] = None):
                inputs = super().dummies(tokenizer, framework=framework)
                mask = inputs["mask"]
                return torch.cat([mask, torch.ones(size, 2, dtype=mask.dtype)], dim=1)
    """
    base = (
        "from lib import dummies\nclass Exporter:\n    def dummies(self, *a, **k):\n        return dummies(*a, **k)\n"
    )
    files = {"kit/__init__.py": "", "kit/masked.py": exporter, "kit/types.py": defined, "kit/base.py": base}
    assert codes(checked(files, "kit/masked.py")) == expected

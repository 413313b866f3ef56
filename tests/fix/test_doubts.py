"""A safe fix reads `.device` only of what is surely a tensor there, and no fix moves what may be an optimizer."""

from __future__ import annotations

import textwrap

import pytest

from devlint.engine import Linter
from devlint.fix.rounds import fix_source
from devlint.model import Safety
from devlint.source import decode
from devlint_rules import RULES

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import Tensor, nn\n\n\n"


def levels(code: str) -> list[str]:
    """The levels of the fixes of the findings in some code, in their order."""
    source = decode((HEAD + textwrap.dedent(code)).encode(), "model.py")
    found = Linter(tuple(rule() for rule in RULES)).check(source)
    assert not found.crashes, found.crashes
    return [d.fix.safety.value for d in found.diagnostics if d.fix is not None]


def fixed(code: str) -> str:
    source = decode((HEAD + textwrap.dedent(code)).encode(), "model.py")
    return fix_source(Linter(tuple(rule() for rule in RULES)), source, {Safety.SAFE}).text.removeprefix(HEAD)


@pytest.mark.parametrize(
    "code",
    [
        """
        def f(x: Tensor, n: int):
            return x + torch.arange(n)
        """,
        """
        def f(x, n: int):
            y = F.relu(x)
            return y + torch.arange(n)
        """,
        """
        def f(x, n: int):
            scores = x.unsqueeze(0)
            steps = torch.arange(n)
            return scores + steps
        """,
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 3)

            def forward(self, x):
                steps = torch.arange(3)
                y = self.fc(x)
                return y + steps
        """,
        """
        def f(x: Tensor, mask: Tensor | None):
            if mask is None:
                return x
            return mask + torch.ones(3)
        """,
        """
        def f(x: Tensor, mask: Tensor | None = None):
            if mask is None:
                mask = torch.ones_like(x)
            return mask + torch.ones(3)
        """,
        """
        def f(x):
            if not torch.is_tensor(x):
                x = torch.from_numpy(x).float()
            gains = torch.tensor([1.0, 1.0, 1.41])
            return (x * gains).sum()
        """,
        """
        def f(rows: list[Tensor]):
            stacked = torch.stack(rows)
            for row in stacked:
                print(row + torch.ones(3))
        """,
        """
        class Table(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("rows", torch.zeros(3))

            def forward(self):
                return self.rows + torch.ones(3)
        """,
    ],
    ids=[
        "annotated", "of_a_function", "method_of_tensors", "given_to_a_layer", "left_where_none", "replaced_where_none",
        "by_isinstance", "row_of_a_tensor", "buffer",
    ],
)  # fmt: skip
def test_fix_that_reads_the_device_of_a_tensor_is_safe(code: str) -> None:
    assert levels(code) == ["safe"]


@pytest.mark.parametrize(
    "code",
    [
        """
        def f(x: Tensor, scales: Tensor | None):
            scale = scales[0] if scales is not None else 1.0
            steps = torch.arange(x.shape[0])
            return steps * scale.unsqueeze(0) if scales is not None else steps
        """,
        """
        class Net(nn.Module):
            def __init__(self, biased: bool):
                super().__init__()
                self.bias = nn.Parameter(torch.zeros(3)) if biased else None

            def forward(self):
                keep = torch.ones(3)
                if self.bias is None:
                    return keep
                return keep * self.bias
        """,
        """
        def f(model, x: Tensor):
            found = model(x)
            keep = torch.ones(3)
            return found.scores * keep
        """,
        """
        def f(x: Tensor, n: int):
            summed = 0
            for _ in range(n):
                summed = summed + x
            return summed * torch.ones(3)
        """,
        """
        def f(x: Tensor, bound: Tensor = None):
            steps = torch.arange(3)
            return x if bound is None else torch.minimum(steps, bound)
        """,
    ],
    ids=["number_on_the_other_path", "none_in_another_branch", "record", "number_before_the_loop", "none_by_default"],
)
def test_fix_that_reads_the_device_of_what_may_be_no_tensor_is_not_safe(code: str) -> None:
    assert "safe" not in levels(code)


ADDS = "\n\ndef f(x: Tensor, n: int):\n    return x + torch.arange(n)\n"


@pytest.mark.parametrize("base", ["", "(LazyBase)", "(object)"])
def test_fix_beside_a_class_that_stands_in_for_tensors_is_not_safe(base: str) -> None:
    """Its objects have the device of an empty tensor on `meta`: a new tensor there would lose its values."""
    lazy = f"class Lazy{base}:\n    @classmethod\n    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
    assert levels(f"{lazy}        return cls(func, args)\n{ADDS}") == ["unsafe"]


@pytest.mark.parametrize(
    "class_",
    [
        "class Noisy(Tensor):\n    @classmethod\n    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
        "        return super().__torch_function__(func, types, args, kwargs)\n",
        "class Lazy:\n    def torch_function(self, func):\n        return func\n",
    ],
)
def test_fix_beside_a_class_of_tensors_is_safe(class_: str) -> None:
    assert levels(class_ + ADDS) == ["safe"]


def test_converting_property_makes_the_fix_of_a_comparison_unsafe() -> None:
    code = """
        class Place:
            @property
            def device(self):
                return self._name

            @device.setter
            def device(self, value):
                self._name = str(value)


        place = Place()
        place.device = torch.device("cpu")
        print(place.device == "cpu")
        """
    assert levels(code) == ["unsafe"]


def test_device_that_the_class_keeps_is_read_without_doubt() -> None:
    code = """
        class Trainer:
            def __init__(self, device: str):
                self.device = device
                self.model = nn.Linear(3, 3).to(device)

            def run(self, rows: list):
                for row in rows:
                    print(self.model(torch.ones(1, 3)), row)
        """
    assert levels(code) == ["safe"]


@pytest.mark.parametrize(
    "made",
    [
        "getattr(torch.optim, name)(model.parameters(), lr=0.1)",
        "build([{'params': model.parameters()}])",
        "make(params=model.parameters())",
    ],
)
def test_move_of_what_is_made_of_parameters_is_a_hint(made: str) -> None:
    code = f"""
        def build_all(name, build, make):
            model = nn.Linear(3, 3).cuda()
            stepped = {made}
            stepped.cuda()
            return model, stepped
        """
    assert levels(code)[1] == "hint"


def test_move_of_what_is_stepped_is_a_hint() -> None:
    code = """
        def run(make, model):
            stepped = make(model)
            stepped.cuda()
            stepped.step()
        """
    assert levels(code) == ["hint"]


def test_move_of_what_is_called_stays_a_fix() -> None:
    code = """
        def run(make, x: Tensor):
            net = make()
            net.cuda()
            return net(x)
        """
    assert levels(code) == ["unsafe"]


def test_entries_of_a_batch_are_moved_once_for_all_their_uses() -> None:
    code = """
        from torch.utils.data import DataLoader


        def train(loader: DataLoader) -> None:
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            model = nn.Linear(8, 2).to(device)
            for batch in loader:
                a = model(batch["x"])
                b = model(batch["x"])
                print(a, b)
        """
    text = fixed(code)
    assert text.count(".to(device)") == 2
    assert '        batch["x"] = batch["x"].to(device)\n        a = model(batch["x"])\n' in text


def test_part_of_a_batch_is_moved_where_it_gets_its_name() -> None:
    code = """
        from torch.utils.data import DataLoader


        def train(loader: DataLoader) -> None:
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            model = nn.Linear(8, 2).to(device)
            for data in loader:
                x = data[0]
                print(model(x), model(x), model(x))
        """
    assert "x = data[0].to(device)\n        print(model(x), model(x), model(x))" in fixed(code)


def test_two_entries_of_a_batch_are_moved_in_one_statement() -> None:
    code = """
        from torch.utils.data import DataLoader


        def train(loader: DataLoader) -> None:
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            model = nn.Linear(8, 2).to(device)
            other = nn.Linear(8, 2).to(device)
            for batch in loader:
                print(model(batch["x"]), model(batch["x"]))
                print(other(batch["y"]), other(batch["y"]))
        """
    moved = 'batch["x"], batch["y"] = batch["x"].to(device), batch["y"].to(device)\n'
    assert moved in fixed(code)


@pytest.mark.parametrize("loss", ["nn.CrossEntropyLoss()", "nn.NLLLoss()", "nn.MultiMarginLoss()"])
def test_forgotten_module_is_moved_and_not_its_output(loss: str) -> None:
    code = f"""
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        x = torch.rand(8, 3)
        y = torch.randint(0, 2, (8,))
        model = nn.Linear(3, 2)
        opt = torch.optim.Adam(model.parameters())
        f = {loss}
        y = y.to(device)
        for i in range(3):
            loss = f(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        """
    source = decode((HEAD + textwrap.dedent(code)).encode(), "model.py")
    linter = Linter(tuple(rule() for rule in RULES))
    (found,) = linter.check(source).diagnostics
    assert found.message.startswith("`model` was never moved")
    text = fix_source(linter, source, {Safety.SAFE, Safety.UNSAFE}).text
    assert "model = nn.Linear(3, 2).to(device)\n" in text
    assert "model(x).to(" not in text


@pytest.mark.parametrize(
    "handler",
    ["except Exception as e:\n    print(e)", "except Exception:\n    log.exception('x')", "except:\n    raise",
     "except BaseException as e:\n    print(e)\n    sys.exit(1)"],
)  # fmt: skip
def test_handler_that_only_reports_excuses_nothing(handler: str) -> None:
    code = (
        "import logging\nimport sys\n\nimport torch\nfrom torch import nn\n\nlog = logging.getLogger()\n\n"
        "def main():\n    model = nn.Linear(3, 2)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        f"    optimizer.to('cpu')\n\ntry:\n    main()\n{handler}\n"
    )
    found = Linter(tuple(rule() for rule in RULES)).check(decode(code.encode(), "a.py"))
    assert "DEV301" in [d.code for d in found.diagnostics]


@pytest.mark.parametrize("handler", ["except Exception:\n    x = None", "except AttributeError:\n    print('no')"])
def test_handler_that_goes_another_way_excuses(handler: str) -> None:
    code = (
        "import torch\nfrom torch import nn\n\nmodel = nn.Linear(3, 2)\n"
        f"optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\ntry:\n    optimizer.to('cpu')\n{handler}\n"
    )
    found = Linter(tuple(rule() for rule in RULES)).check(decode(code.encode(), "a.py"))
    assert "DEV301" not in [d.code for d in found.diagnostics]


@pytest.mark.parametrize(
    ("code", "codes"),
    [
        ("import torch\ndef f():\n    return torch.ones(3).cuda()\n", ["DEV202"]),
        ("import torch\ndef f(x: torch.Tensor, y):\n    return y.cuda() if x.is_cuda else y\n", ["DEV207"]),
        ("import torch\ndef f():\n    return torch.full((3,), 1.0).cuda()\n", ["DEV202"]),
    ],
)
def test_one_expression_is_reported_once(code: str, codes: list[str]) -> None:
    found = Linter(tuple(rule() for rule in RULES)).check(decode(code.encode(), "a.py"))
    assert [d.code for d in found.diagnostics] == codes


@pytest.mark.parametrize(
    "binding",
    [
        "try:\n    from torch.amp import GradScaler\nexcept ImportError:\n    from torch.cuda.amp import GradScaler\n",
        "if NEW:\n    from torch.amp import GradScaler\nelse:\n    from torch.cuda.amp import GradScaler\n",
    ],
)
def test_name_that_imports_bind_twice_is_left_alone(binding: str) -> None:
    code = f"NEW = True\n{binding}\nscaler = GradScaler(enabled=False)\n"
    assert not Linter(tuple(rule() for rule in RULES)).check(decode(code.encode(), "a.py")).diagnostics


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ('torch.cuda.amp.GradScaler("cuda", init_scale=2.0)', 'torch.amp.GradScaler("cuda", init_scale=2.0)'),
        ('torch.cuda.amp.GradScaler("cuda")', 'torch.amp.GradScaler("cuda")'),
        ('torch.cuda.amp.autocast("cuda")', 'torch.autocast("cuda")'),
        ('torch.cuda.amp.autocast("cuda", torch.float16)', 'torch.autocast("cuda", dtype=torch.float16)'),
        ("torch.cuda.amp.autocast(True)", 'torch.autocast("cuda", enabled=True)'),
    ],
)
def test_device_given_to_an_old_name_is_not_doubled(call: str, result: str) -> None:
    assert fixed(f"\nx = {call}\n") == f"\nx = {result}\n"

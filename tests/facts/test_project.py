"""Devices that travel between the files of a project: what an import leads to, and what bounds the search."""

from __future__ import annotations

import gc
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from devlint.facts.analysis import analyse
from devlint.facts.events import CudaMethod, DeviceLiteral, DeviceTest, Event, Meet, Register
from devlint.facts.interpreter.flow import Flow
from devlint.facts.project.project import FILES, Project, Reach
from devlint.facts.result import Facts
from devlint.facts.values import Value, describe
from devlint.model import FileResult
from devlint.settings import Settings
from devlint.source import read_source


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))


def facts_of(folder: Path, name: str = "main.py", project: Project | None = None) -> Facts:
    project = project or Project()
    source = read_source(folder / name)
    return analyse(project.parsed(source).tree, source, Settings(), project)


def revealed(facts: Facts) -> list[str]:
    """What each `reveal_device(x)` of the file shows."""
    return [shown(value) for _, value in facts.probes]


def shown(value: Value) -> str:
    return f"{value.kind} on {describe(value.device)}"


def meetings(events: list[Event]) -> list[str]:
    return [event.operation for event in events if isinstance(event, Meet)]


def test_package_below_src_is_found_from_the_tests_of_its_project(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pyproject.toml": "",
            "src/pack/__init__.py": "from pack.tools import mask\n",
            "src/pack/tools.py": """
                import torch
                def mask(n):
                    return torch.zeros(n, n)
            """,
            "tests/test_mask.py": """
                import torch
                from pack import mask
                reveal_device(mask(3))
            """,
        },
    )
    assert revealed(facts_of(tmp_path, "tests/test_mask.py")) == ["tensor on the CPU"]


def test_function_of_another_file_gives_the_device_that_it_makes_its_tensor_on(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "tools.py": """
                import torch
                def mask(n):
                    return torch.zeros(n, n)
            """,
            "main.py": """
                import torch
                from tools import mask
                reveal_device(mask(3))
            """,
        },
    )
    assert revealed(facts_of(tmp_path)) == ["tensor on the CPU"]


def test_helper_that_moves_its_argument_is_followed(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "tools.py": """
                import torch
                def to_card(x, device):
                    return x.to(device)
            """,
            "main.py": """
                import torch
                import tools
                reveal_device(tools.to_card(torch.zeros(3), "cuda:1"))
            """,
        },
    )
    assert revealed(facts_of(tmp_path)) == ["tensor on `cuda:1`"]


def test_code_of_another_file_is_not_looked_for_in_the_text_of_this_one(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "nets.py": "\n" * 40
            + """
                import torch
                class Net(torch.nn.Module):
                    def __init__(self):
                        super().__init__()
                        self.layer = torch.nn.Linear(3, 3)
                    def reset(self, other):
                        self.layer = other.parts().first().copy()
                    def forward(self, x):
                        return self.layer(x)
            """,
            "main.py": """
                import torch
                from nets import Net
                net = Net().to("cuda:1")
                net.reset(net)
                reveal_device(torch.zeros(3))
            """,
        },
    )
    assert revealed(facts_of(tmp_path)) == ["tensor on the CPU"]


def test_attributes_that_a_base_of_another_file_places_are_not_looked_for_in_the_text_of_this_one(
    tmp_path: Path,
) -> None:
    write(
        tmp_path,
        {
            "bases.py": "\n" * 40
            + """
                import torch
                class Agent:
                    def __init__(self, device):
                        self.device = device
                        self.mask = torch.ones(3, device=self.device)
                    def clear(self):
                        self.mask = torch.zeros(3, device=self.device)
            """,
            "main.py": """
                import torch
                from bases import Agent
                class Player(Agent):
                    def play(self):
                        return reveal_device(self.mask)
            """,
        },
    )
    assert revealed(facts_of(tmp_path)) == ["tensor on `self.device`"]


def test_argument_that_is_handed_back_keeps_the_factory_call_to_be_fixed(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "tools.py": """
                import torch
                def flat(x):
                    return x.reshape(-1)
            """,
            "main.py": """
                import torch
                from tools import flat
                def f(x: torch.Tensor):
                    zeros = flat(torch.zeros(3))
                    return torch.cat([x, zeros])
            """,
        },
    )
    (meet,) = [e for e in facts_of(tmp_path).events if isinstance(e, Meet)]
    assert [c.function for c in meet.off.value.made] == ["torch.zeros"]


def test_factory_call_of_another_file_is_named_as_the_reason_and_never_fixed_here(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "tools.py": "import torch\n\n\ndef zeros():\n    return torch.zeros(3)\n",
            "main.py": """
                import torch
                from tools import zeros
                def f(x: torch.Tensor):
                    return x + zeros()
            """,
        },
    )
    (meet,) = [e for e in facts_of(tmp_path).events if isinstance(e, Meet)]
    assert meet.off.text == "zeros()"
    assert meet.off.value.made == ()
    assert [o.path for o in meet.off.value.because] == [str(tmp_path / "tools.py")]


def test_device_constant_of_another_file_is_the_same_device_at_every_use(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "config.py": """
                import torch
                DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            """,
            "main.py": """
                import torch
                from config import DEVICE
                x = torch.zeros(3, device=DEVICE)
                y = torch.zeros(3).to(DEVICE)
                z = x + y
                w = x + torch.zeros(3)
            """,
        },
    )
    assert meetings(facts_of(tmp_path).events) == ["+"]


def test_module_class_of_another_file_is_known_to_be_one(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "nets.py": """
                from torch import nn
                class Net(nn.Module):
                    def __init__(self):
                        super().__init__()
                        self.lin = nn.Linear(2, 2)
                    def forward(self, x):
                        return self.lin(x)
            """,
            "main.py": """
                import torch
                from nets import Net
                model = Net()
                reveal_device(model)
                model = model.to("cuda")
                reveal_device(model(torch.zeros(2, 2, device="cuda")))
            """,
        },
    )
    assert revealed(facts_of(tmp_path)) == ["module on the CPU", "tensors on `cuda`"]


def test_base_class_of_another_file_makes_a_module_and_gives_its_attributes(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "bases.py": """
                import torch
                from torch import nn
                class Encoder(nn.Module):
                    def __init__(self):
                        super().__init__()
                        self.register_buffer("scale", torch.ones(3))
            """,
            "main.py": """
                import torch
                from bases import Encoder
                class Net(Encoder):
                    def forward(self, x: torch.Tensor):
                        reveal_device(self.scale)
                        return x * self.scale
            """,
        },
    )
    assert revealed(facts_of(tmp_path)) == ["buffer on an accelerator"]


def test_class_with_a_forward_whose_bases_are_all_plain_is_no_module(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "parts.py": """
                class Part:
                    def load(self):
                        self.loaded = True
            """,
            "main.py": """
                import torch
                from parts import Part
                class Layer(Part):
                    def __init__(self, sizes):
                        self.parts = [Layer([]) for _ in sizes]
                    def forward(self, x):
                        for part in self.parts:
                            x = part.forward(x)
                        return x
            """,
        },
    )
    assert not [event for event in facts_of(tmp_path).events if isinstance(event, Register)]


def test_class_whose_base_has_a_forward_and_plain_bases_itself_is_no_module(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "mixins.py": """
                class Loads:
                    def load(self):
                        self.loaded = True
            """,
            "model.py": """
                import torch
                from mixins import Loads
                class Model(Loads):
                    def forward(self, x):
                        return x
            """,
            "main.py": """
                import torch
                from model import Model
                class Layer(Model):
                    def __init__(self, sizes):
                        self.parts = [Layer([]) for _ in sizes]
                    def forward(self, x):
                        for part in self.parts:
                            x = part.forward(x)
                        return x
            """,
        },
    )
    assert not [event for event in facts_of(tmp_path).events if isinstance(event, Register)]


def test_class_of_torch_beside_a_plain_one_that_is_called_module_is_a_module(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "parts.py": """
                class Module:
                    def title(self):
                        return type(self).__name__
            """,
            "net.py": """
                from torch import nn
                from parts import Module
                class Net(Module, nn.Module):
                    def forward(self, x):
                        return x
            """,
            "main.py": """
                import torch
                from net import Net
                class Two(Net):
                    def __init__(self):
                        super().__init__()
                        self.parts = [torch.nn.Linear(3, 3) for _ in range(3)]
                    def forward(self, x):
                        for part in self.parts:
                            x = part(x)
                        return x
            """,
        },
    )
    assert [event.attribute for event in facts_of(tmp_path).events if isinstance(event, Register)] == ["parts"]


@pytest.mark.parametrize("keeps", ["self.table = torch.ones(3)", 'self.register_buffer("other", torch.ones(3))'])
def test_method_of_a_plain_class_is_followed_where_its_heir_is_a_module(tmp_path: Path, keeps: str) -> None:
    write(
        tmp_path,
        {
            "blocks.py": f"""
                import torch
                class Saves:
                    def save(self, path):
                        torch.save(self.state_dict(), path)
                class Block(Saves):
                    def __init__(self):
                        super().__init__()
                        self.table = torch.ones(3)
                        {keeps}
                    def pick(self):
                        return self.table
                    def forward(self, x):
                        return x
            """,
            "main.py": """
                import torch
                from torch import nn
                from blocks import Block
                class Net(Block, nn.Module):
                    def forward(self, x):
                        return x + self.pick()
            """,
        },
    )
    assert meetings(facts_of(tmp_path).events) == ["+"]


def test_class_with_a_forward_and_a_plain_base_of_its_file_is_no_module(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "main.py": """
                import torch
                class Loads:
                    def load(self):
                        self.loaded = True
                class Model(Loads):
                    def __init__(self, sizes):
                        self.parts = [torch.nn.Linear(n, n) for n in sizes]
                    def forward(self, x):
                        for part in self.parts:
                            x = part(x)
                        return x
            """
        },
    )
    assert not [event for event in facts_of(tmp_path).events if isinstance(event, Register)]


def test_call_with_a_device_of_a_like_name_is_another_call(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "main.py": """
                import torch
                from elsewhere import pick
                cuda = pick()
                def add(x):
                    return x + torch.zeros(3, device="cuda:1")
                add(torch.ones(3).to(cuda))
                add(torch.ones(3).to("cuda:0"))
            """
        },
    )
    meets = [event for event in facts_of(tmp_path).events if isinstance(event, Meet)]
    assert [describe(event.other.value.device) for event in meets] == ["`cuda:0`"]


@pytest.mark.parametrize(
    ("imported", "expected"),
    [
        ("from bases import Encoder", ["stages"]),
        ("from bases import *", ["stages"]),
        ("from bases import Plain as Encoder", []),
        ("from elsewhere import Encoder", ["stages"]),
        ("from bases import Encoder\nimport paddle", []),
    ],
)
def test_file_that_names_no_torch_defines_modules_by_a_base_of_another_file(
    tmp_path: Path, imported: str, expected: list[str]
) -> None:
    write(
        tmp_path,
        {
            "bases.py": """
                from torch import nn
                class Encoder(nn.Module):
                    pass
                class Stage(nn.Module):
                    def __init__(self, size):
                        super().__init__()
                        self.mix = nn.Linear(size, size)
                    def forward(self, x):
                        return self.mix(x)
                class Plain:
                    pass
            """,
            "main.py": """
IMPORTED
                from bases import Stage
                class Net(Encoder):
                    def __init__(self):
                        super().__init__()
                        self.stages = []
                        for size in (3, 4):
                            self.stages.append(Stage(size))
                    def forward(self, x):
                        for stage in self.stages:
                            x = stage(x)
                        return x
            """.replace("IMPORTED", "\n".join(" " * 16 + line for line in imported.split("\n"))),
        },
    )
    assert [event.attribute for event in facts_of(tmp_path).events if isinstance(event, Register)] == expected


def test_object_that_gets_a_module_may_move_it(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "trainer.py": """
                import torch
                class Trainer:
                    def __init__(self, model, device):
                        self.model = model.to(device)
            """,
            "main.py": """
                import torch
                from torch import nn
                from trainer import Trainer
                model = nn.Linear(2, 2)
                Trainer(model, "cuda")
                model(torch.zeros(2, 2, device="cuda"))
            """,
        },
    )
    assert meetings(facts_of(tmp_path).events) == []


def test_device_of_an_argument_that_nobody_knows_stays_unknown(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "tools.py": """
                import torch
                def count(index, n):
                    return torch.zeros(n, device=index.device)
            """,
            "main.py": """
                import torch
                from tools import count
                def f(data):
                    total = torch.zeros(4, device=data.device)
                    total += count(data.index, 4)
            """,
        },
    )
    assert meetings(facts_of(tmp_path).events) == []


def test_name_is_followed_through_packages_that_hand_it_on(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pack/__init__.py": "from .inner import *\n",
            "pack/inner/__init__.py": "from .deep import mask as mask\n",
            "pack/inner/deep.py": "import torch\ndef mask(n):\n    return torch.zeros(n)\n",
            "main.py": "import torch\nimport pack\nreveal_device(pack.mask(3))\n",
        },
    )
    assert revealed(facts_of(tmp_path)) == ["tensor on the CPU"]


def test_relative_imports_count_from_the_package(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pack/__init__.py": "",
            "pack/tools.py": "import torch\ndef mask(n):\n    return torch.zeros(n)\n",
            "pack/sub/__init__.py": "",
            "pack/sub/main.py": "import torch\nfrom ..tools import mask\nreveal_device(mask(3))\n",
        },
    )
    assert revealed(facts_of(tmp_path, "pack/sub/main.py")) == ["tensor on the CPU"]


def test_module_of_a_package_does_not_see_the_files_beside_it(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pack/__init__.py": "",
            "pack/tools.py": "import torch\ndef mask(n):\n    return torch.zeros(n)\n",
            "pack/main.py": "import torch\nfrom tools import mask\nreveal_device(mask(3))\n",
        },
    )
    assert revealed(facts_of(tmp_path, "pack/main.py")) == ["unknown on an unknown device"]


def test_script_sees_the_modules_of_the_folder_that_it_is_started_from(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "setup.py": "",
            "tools.py": "import torch\ndef mask(n):\n    return torch.zeros(n)\n",
            "scripts/main.py": "import torch\nfrom tools import mask\nreveal_device(mask(3))\n",
        },
    )
    assert revealed(facts_of(tmp_path, "scripts/main.py")) == ["tensor on the CPU"]


def test_files_that_import_each_other_end(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a.py": """
                import torch
                from b import g, B
                class A(B): pass
                def f(x): return g(x)
            """,
            "b.py": """
                import torch
                from a import f, A
                class B(A): pass
                def g(x): return f(x)
            """,
            "main.py": """
                import torch
                from a import f, A
                from b import B
                class C(A): pass
                reveal_device(f(torch.zeros(3)))
                reveal_device(B())
            """,
        },
    )
    assert revealed(facts_of(tmp_path))[0] == "unknown on an unknown device"


def test_chain_of_files_longer_than_the_bound_is_unknown_at_its_end(tmp_path: Path) -> None:
    last = FILES + 3
    files = {f"m{i}.py": f"import torch\nfrom m{i + 1} import f\n" for i in range(last)}
    files[f"m{last}.py"] = "import torch\ndef f(): return torch.zeros(3)\n"
    write(tmp_path, {**files, "main.py": "import torch\nfrom m0 import f\nreveal_device(f())\n"})
    facts = facts_of(tmp_path)
    assert revealed(facts) == ["unknown on an unknown device"]
    assert sum(state.exists for state in facts.read.values()) <= FILES


@pytest.mark.parametrize("text", ["def mask(n:\n", "\x00", "import torch\ndef mask(n): return maks(n)\n"])
def test_file_that_cannot_be_understood_says_nothing(tmp_path: Path, text: str) -> None:
    write(tmp_path, {"main.py": "import torch\nfrom tools import mask\nreveal_device(mask(3))\n"})
    (tmp_path / "tools.py").write_text(text)
    assert revealed(facts_of(tmp_path)) == ["unknown on an unknown device"]


def test_facts_name_what_was_read_and_what_was_missing(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "tools.py": "import torch\ndef mask(n): return torch.zeros(n)\n",
            "main.py": "import torch\nfrom tools import mask\nfrom more import other\nmask(3)\nother(3)\n",
        },
    )
    read = facts_of(tmp_path).read
    assert read[str(tmp_path / "tools.py")].exists
    assert not read[str(tmp_path / "more.py")].exists


def test_order_in_which_files_are_checked_changes_nothing(tmp_path: Path) -> None:
    files = {
        "tools.py": "import torch\ndef mask(n): return torch.zeros(n)\n",
        "one.py": "import torch\nfrom tools import mask\nreveal_device(mask(3))\n",
        "two.py": "import torch\nfrom one import mask\nreveal_device(mask(4))\n",
    }
    write(tmp_path, files)
    forward, backward = Project(), Project()
    first = {name: revealed(facts_of(tmp_path, name, forward)) for name in files}
    second = {name: revealed(facts_of(tmp_path, name, backward)) for name in reversed(files)}
    assert first == second


def test_file_that_changed_is_read_anew(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "tools.py": "import torch\ndef mask(n): return torch.zeros(n)\n",
            "main.py": "import torch\nfrom tools import mask\nreveal_device(mask(3))\n",
        },
    )
    project = Project()
    assert revealed(facts_of(tmp_path, project=project)) == ["tensor on the CPU"]
    (tmp_path / "tools.py").write_text('import torch\ndef mask(n): return torch.zeros(n, device="cuda:1")\n')
    assert revealed(facts_of(tmp_path, project=project)) == ["tensor on `cuda:1`"]


def test_what_other_files_say_is_freed_with_the_facts_without_the_collector(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "parts.py": """
                import torch
                class Base(torch.nn.Module):
                    def __init__(self):
                        super().__init__()
                        self.register_buffer("steps", torch.zeros(3))
                def mask(x):
                    return torch.zeros(3) * x
            """,
            "main.py": """
                import torch
                from parts import Base, mask
                class Net(Base):
                    def forward(self, x):
                        return mask(x) + self.steps
                def scale(x):
                    return x * torch.ones(3)
                scale(torch.rand(3).cuda())
            """,
        },
    )
    gc.collect()
    gc.disable()
    try:
        before = interpreters()
        facts = facts_of(tmp_path)
        asked = [facts.holds(event) for event in facts.events]
        assert asked and interpreters() > before + 1
        del facts, asked
        assert interpreters() == before
    finally:
        gc.enable()


def interpreters() -> int:
    return sum(isinstance(each, (Flow, Reach)) for each in gc.get_objects())


def test_device_that_another_file_chooses_is_the_device_of_the_run(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "config.py": """
                import torch
                DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            """,
            "main.py": """
                import torch
                from config import DEVICE
                x = torch.zeros(3, device="cuda")
            """,
        },
    )
    assert [e.run_device for e in facts_of(tmp_path).events if isinstance(e, DeviceLiteral)] == ["DEVICE"]


@pytest.mark.parametrize("test", ["ON_CARD", "FAST", "settings.ON_CARD", "on_card()"])
def test_flag_of_another_file_that_holds_the_answer_is_a_guard(tmp_path: Path, test: str) -> None:
    write(
        tmp_path,
        {
            "settings.py": """
                import torch
                ON_CARD = torch.cuda.is_available()
                FAST = ON_CARD and not __debug__
                def on_card():
                    return torch.cuda.is_available()
            """,
            "main.py": f"""
                import torch
                import settings
                from settings import FAST, ON_CARD, on_card
                if {test}:
                    x = torch.zeros(3).cuda()
            """,
        },
    )
    (event,) = (e for e in facts_of(tmp_path).events if isinstance(e, CudaMethod))
    assert event.under.allow("cuda")


def test_function_of_a_star_import_is_followed(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "tools/__init__.py": "from .pictures import *\n",
            "tools/pictures.py": """
                import torchvision.transforms as T
                def picture(x):
                    return T.ToTensor()(x.cpu().numpy())
            """,
            "main.py": """
                import torch
                from tools import *
                def f(x: torch.Tensor):
                    return torch.stack([x.cpu(), picture(x)])
            """,
        },
    )
    assert meetings(facts_of(tmp_path).events) == []


def test_import_from_the_root_of_a_project_that_is_a_package_itself(checked: Callable[..., FileResult]) -> None:
    store = """
        class Store:
            def __init__(self, size, device="cpu"):
                self.size = size
                self.device = device
            def to(self, device):
                self.device = device
    """
    net = """
        import torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                from parts.store import Store
                self.store = Store(4)
                self.counter = torch.zeros(4)
            def forward(self, labels: torch.Tensor):
                return self.counter[labels.to(self.store.device)]
    """
    files = {"parts/__init__.py": "", "parts/store.py": store, "models/__init__.py": "", "models/net.py": net}
    rooted = {f"whole/{path}": text for path, text in {**files, "__init__.py": "", "setup.py": ""}.items()}
    assert [each.code for each in checked(rooted, "whole/models/net.py").diagnostics] == []


def test_collator_of_another_file_tells_which_parts_of_a_batch_are_arrays(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "tools.py": """
                import numpy as np
                import torch
                def collate(items):
                    found = {}
                    found["x"] = torch.stack([x for x, _ in items])
                    found["times"] = np.array([time for _, time in items])
                    return found
            """,
            "main.py": """
                import torch
                import tools
                from torch.utils.data import DataLoader
                def run(rows, device: torch.device):
                    loader = DataLoader(rows, collate_fn=tools.collate)
                    for batch in loader:
                        x = batch["x"].to(device)
                        reveal_device(batch["x"])
                        reveal_device(batch["times"])
            """,
        },
    )
    assert revealed(facts_of(tmp_path)) == ["tensors on the CPU", "ndarray on an unknown device"]


def test_forward_of_another_file_gives_arrays_where_returns_of_that_length_do(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "nets.py": """
                import numpy as np
                import torch
                class Net(torch.nn.Module):
                    def __init__(self):
                        super().__init__()
                        self.layer = torch.nn.Linear(3, 3)
                    def forward(self, x, path=False):
                        h = self.layer(x)
                        if path:
                            return h, np.array([0.0, 1.0]), h
                        return h, h
            """,
            "main.py": """
                import torch
                from nets import Net
                def run(x: torch.Tensor):
                    net = Net().to("cuda:1")
                    h, times, last = net(x.to("cuda:1"), path=True)
                    reveal_device(times)
                    reveal_device(last)
                    h, last = net(x.to("cuda:1"))
                    reveal_device(last)
            """,
        },
    )
    assert revealed(facts_of(tmp_path)) == [
        "ndarray on an unknown device",
        "tensors on `cuda:1`",
        "tensors on `cuda:1`",
    ]


@pytest.mark.parametrize(("stored", "tests"), [("self.device = device", 0), ("self.name = device", 1)])
def test_model_of_a_class_that_binds_a_device_of_its_own_may_hold_a_text(
    tmp_path: Path, stored: str, tests: int
) -> None:
    write(
        tmp_path,
        {
            "programs/base.py": f"""
                class Program:
                    def __init__(self, device):
                        {stored}
            """,
            "main.py": """
                import torch

                def is_on_card(model: "programs.base.Program"):
                    return model.device == "cuda"
            """,
        },
    )
    assert len([e for e in facts_of(tmp_path).events if isinstance(e, DeviceTest)]) == tests


def test_argument_annotated_with_a_pipeline_is_called_as_one_unless_the_class_is_a_module(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "models.py": """
                from torch import nn
                class Tagger(nn.Module):
                    def __init__(self):
                        super().__init__()
                        self.head = nn.Linear(3, 3)
                    def forward(self, x):
                        return self.head(x)
                class TaggerPipeline(Tagger):
                    pass
            """,
            "main.py": """
                import torch
                from diffusers import PicturePipeline
                from models import TaggerPipeline
                from torch.utils.data import DataLoader
                device = torch.device("cuda")
                def run(model: TaggerPipeline, tool: PicturePipeline, items):
                    model.to(device)
                    tool.to(device)
                    for batch in DataLoader(items):
                        rows = batch["rows"]
                        target = batch["target"].to(device)
                        print(model(rows), tool(rows), target)
            """,
        },
    )
    met = [event for event in facts_of(tmp_path).events if isinstance(event, Meet)]
    assert [(event.off.text, event.other.text) for event in met] == [("rows", "model")]

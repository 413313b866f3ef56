"""Flags of constructors: a branch that no construction in the project turns on holds no finding."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from devlint.facts.project.project import Project, Reach
from devlint.model import FileResult

Checked = Callable[..., FileResult]

LAYER = """
    import torch
    from torch import nn
    class Attention(nn.Module):
        def __init__(self, size, cosine=False):
            super().__init__()
            self.proj = nn.Linear(size, size)
            self.cosine = cosine
        def forward(self, x: torch.Tensor):
            if self.cosine:
                return x + torch.zeros(3)
            return self.proj(x)
"""


def codes(result: FileResult) -> list[str]:
    return [each.code for each in result.diagnostics]


def test_without_a_construction_a_flag_may_be_on(checked: Checked) -> None:
    assert codes(checked({"tools.py": LAYER})) == ["DEV102"]


@pytest.mark.parametrize(
    ("made", "expected"),
    {
        "left out": ("Attention(8)", []),
        "False": ("Attention(8, cosine=False)", []),
        "None": ("Attention(8, None)", []),
        "on": ("Attention(8, True)", ["DEV102"]),
        "on in one of two": ("nn.Sequential(Attention(8), Attention(8, cosine=True))", ["DEV102"]),
        "of the configuration": ("Attention(8, config.cosine)", ["DEV102"]),
        "of arguments that are not seen": ("Attention(8, **config)", ["DEV102"]),
        "by a value that holds the class": ("build(Attention), Attention(8)", ["DEV102"]),
    }.values(),
)
def test_a_flag_is_what_the_constructions_of_the_project_say(checked: Checked, made: str, expected: list[str]) -> None:
    model = f"""
        from torch import nn
        from tools import Attention
        def make(config, build):
            return {made}
    """
    assert codes(checked({"tools.py": LAYER, "model.py": model})) == expected


@pytest.mark.parametrize(
    ("flag", "expected"), {"off": ("False", []), "on": ("True", ["DEV102"]), "open": ("config.x", ["DEV102"])}.values()
)
def test_a_flag_that_one_constructor_hands_down_to_the_next(checked: Checked, flag: str, expected: list[str]) -> None:
    block = """
        from torch import nn
        import tools
        class Block(nn.Module):
            def __init__(self, size, cosine=False):
                super().__init__()
                self.attention = tools.Attention(size, cosine=cosine)
    """
    model = f"""
        from block import Block
        def make(config):
            return Block(8, cosine={flag})
    """
    assert codes(checked({"tools.py": LAYER, "block.py": block, "model.py": model})) == expected


@pytest.mark.parametrize(
    "change",
    {
        "on the object": "model.cosine = True",
        "by name": 'setattr(model, "cosine", True)',
        "in a subclass": "class Cosine(Attention):\n    pass",
        "by the name of the class": 'make("Attention")',
    }.values(),
)
def test_a_flag_that_something_else_may_set_is_open(checked: Checked, change: str) -> None:
    model = "from tools import Attention\nmodel = Attention(8).cuda()\n" + change + "\n"
    assert codes(checked({"tools.py": LAYER, "model.py": model})) == ["DEV102"]


def test_a_class_without_relation_has_a_flag_of_its_own(checked: Checked) -> None:
    model = """
        from tools import Attention
        class Config:
            def __init__(self, cosine):
                self.cosine = cosine
        model = Attention(8).cuda()
    """
    assert codes(checked({"tools.py": LAYER, "model.py": model})) == []


@pytest.mark.parametrize(("elsewhere", "expected"), [("", []), ("model.spectrum(x)", ["DEV102"])])
def test_a_method_that_is_only_called_under_a_flag_that_is_off(
    checked: Checked, elsewhere: str, expected: list[str]
) -> None:
    layer = """
        import torch
        from torch import nn
        class Fourier(nn.Module):
            def __init__(self, full=False):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(3))
                self.full = full
            def forward(self, x: torch.Tensor):
                if not self.full:
                    return x * self.scale
                return self.spectrum(x)
            def spectrum(self, x: torch.Tensor):
                return x * self.scale + torch.zeros(3)
    """
    model = f"""
        from tools import Fourier
        def run(x):
            model = Fourier().cuda()
            {elsewhere or "pass"}
            return model(x)
    """
    assert codes(checked({"tools.py": layer, "model.py": model})) == expected


def test_imports_of_a_package_start_at_the_root_of_its_project_too(tmp_path: Path) -> None:
    """Folders between both may be packages without `__init__.py`."""
    inner = tmp_path / "lib" / "models" / "utils"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    (inner / "__init__.py").touch()
    (inner / "layers.py").write_text(dedent(LAYER))
    (inner / "model.py").write_text("from lib.models.utils.layers import Attention\n")
    reach = Reach(Project(), lambda loaded, reach: pytest.fail("no file is interpreted"))
    found = reach.find(str(inner / "model.py"), "lib.models.utils.layers.Attention")
    assert found is not None and found.path == str(inner / "layers.py")

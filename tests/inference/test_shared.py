"""What one check reads serves the next one of the process, and changes nothing of what is said."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devlint.engine import Linter
from devlint.inference.summary.analyser import Analyser
from devlint.settings import Settings
from devlint_rules import RULES

LONG_AGO: Final = 1_000_000_000
HEAD: Final = "import torch\nfrom torch import nn\n"
ADD: Final = HEAD + "\n\ndef add(x: torch.Tensor):\n    return x + torch.ones(3)\n"
#: What stands in each file of a random project. `{0}` is its own name, `{1}` that of another file.
BODIES: Final = (
    "def f{0}(x):\n    return f{1}(x) + torch.ones(3)\n",
    "def f{0}(x, k=0):\n    if k:\n        return f{1}(x, k - 1)\n    return x + torch.ones(3)\n",
    "class C{0}(C{1}):\n    def f(self, x):\n        return super().f(x) + torch.ones(3)\n\n"
    "def f{0}(x):\n    return C{0}().f(x)\n",
    "class C{0}(nn.Module):\n    def __init__(self, part=None):\n        super().__init__()\n        self.part = part\n"
    "        self.g()\n\n    def g(self):\n        self.mask = torch.ones(3)\n\n"
    "    def f(self, x):\n        return self.part(x) + self.mask\n\nmade{0} = C{0}(C{1}())\n\n"
    "def f{0}(x):\n    return made{0}.f(x)\n",
    "class C{0}:\n    def __init__(self, model):\n        self.model = model\n        self.other = f{1}(torch.ones(3))\n\n"
    "    def f(self, x):\n        return self.model(x) + torch.ones(3) + self.other\n\n"
    "def f{0}(x):\n    return C{0}(C{1}()).f(x.cuda())\n",
    "top{0} = torch.ones(3)\n\ndef f{0}(x):\n    return x.cuda() + top{1} + top{0}\n\nf{1}(top{0})\n",
)
NAMES: Final = ("a", "b", "c", "d")


def write(folder: Path, **files: str) -> None:
    """Write files that nobody has touched for long."""
    for name, text in files.items():
        path = folder / f"{name}.py"
        path.write_text(text, encoding="utf-8")
        os.utime(path, (LONG_AGO, LONG_AGO))
    os.utime(folder, (LONG_AGO, LONG_AGO))


def linter(*codes: str) -> Linter:
    return Linter(tuple(rule() for rule in RULES), Settings(select=codes or ("DEV1",), inference="new"))


def said(checks: Linter, path: Path) -> list[str]:
    return [f"{each.start.row} {each.code} {each.message}" for each in checks.check_file(path).diagnostics]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the functions that are summarised."""
    names: list[str] = []
    summarise = Analyser._summarise

    def noted(self: Analyser, function, receiver, shape):  # type: ignore[no-untyped-def]
        names.append(function.name)
        return summarise(self, function, receiver, shape)

    monkeypatch.setattr(Analyser, "_summarise", noted)
    yield names


def test_an_imported_function_is_read_once(tmp_path: Path, read: list[str]) -> None:
    use = "import torch\nfrom parts import add\n\nadd(torch.ones(3).cuda())\n"
    write(tmp_path, parts=ADD, one=use, two=use)
    checks = linter("DEV1", "DEV3")
    said(checks, tmp_path / "one.py")
    said(checks, tmp_path / "two.py")
    assert read.count("add") == 1


def test_the_methods_of_an_imported_class_are_read_once(tmp_path: Path, read: list[str]) -> None:
    parts = HEAD + (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.mask = torch.ones(3)\n\n"
        "    def forward(self, x):\n        return self.scale(x) + self.mask\n\n    def scale(self, x):\n        return x * 2\n"
    )
    use = "import torch\nfrom parts import Net\n\nprint(Net().cuda()(torch.ones(3).cuda()))\n"
    write(tmp_path, parts=parts, one=use, two=use)
    checks = linter("DEV1", "DEV3")
    assert said(checks, tmp_path / "one.py") == said(checks, tmp_path / "two.py")
    assert (read.count("forward"), read.count("scale")) == (1, 1)


def test_what_a_function_of_the_checked_file_calls_back_is_read_for_each_check(tmp_path: Path) -> None:
    parts = "import torch\nimport one\n\n\ndef add(x):\n    return one.more(x) + torch.ones(3)\n"
    write(
        tmp_path,
        parts=parts,
        one=HEAD + "import parts\n\n\ndef more(x):\n    return x.cuda()\n\n\nparts.add(torch.ones(3))\n",
    )
    write(tmp_path, two="import torch\nimport parts\n\nparts.add(torch.ones(3))\n")
    checks = linter("DEV1", "DEV3")
    before = {name: said(linter("DEV1", "DEV3"), tmp_path / f"{name}.py") for name in ("parts", "one", "two")}
    assert {name: said(checks, tmp_path / f"{name}.py") for name in ("two", "one", "parts")} == before
    assert before["parts"]


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    checks = linter()
    write(
        tmp_path,
        parts=ADD.replace("torch.ones(3)", "1"),
        one="import torch\nimport parts\n\nparts.add(torch.ones(3).cuda())\n",
    )
    assert said(checks, tmp_path / "one.py") == said(checks, tmp_path / "parts.py") == []
    (tmp_path / "parts.py").write_text(ADD, encoding="utf-8")
    assert said(checks, tmp_path / "one.py") == []
    assert [each.split()[:2] for each in said(checks, tmp_path / "parts.py")] == [["6", "DEV102"]]


def test_a_module_that_appears_is_found(tmp_path: Path) -> None:
    write(
        tmp_path, one=HEAD + "from later import move\n\n\ndef run():\n    return move(torch.ones(3)) + torch.ones(3)\n"
    )
    checks = linter()
    assert said(checks, tmp_path / "one.py") == []
    (tmp_path / "later.py").write_text("import torch\n\n\ndef move(x):\n    return x.cuda()\n", encoding="utf-8")
    assert [each.split()[1] for each in said(checks, tmp_path / "one.py")] == ["DEV102"]


def test_an_argument_of_a_constructor_is_what_this_check_hands_over(tmp_path: Path) -> None:
    parts = HEAD + (
        "class Inner:\n    def __init__(self):\n        self.mask = torch.ones(3)\n\n\n"
        "class Outer:\n    def __init__(self, inner):\n        self.inner = inner\n\n"
        "    def run(self, x):\n        return x.cuda() + self.inner.mask\n"
    )
    one = "import torch\nfrom parts import Inner, Outer\n\nOuter(Inner()).run(torch.ones(3))\n"
    two = "import torch\nfrom parts import Outer\n\n\ndef go(inner):\n    return Outer(inner).run(torch.ones(3))\n"
    write(tmp_path, parts=parts, one=one, two=two)
    alone = {name: said(linter(), tmp_path / f"{name}.py") for name in ("one", "two", "parts")}
    for order in (("one", "two", "parts"), ("two", "one", "parts"), ("parts", "two", "one")):
        checks = linter()
        assert {name: said(checks, tmp_path / f"{name}.py") for name in order} == alone


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_no_order_of_checks_changes_what_is_said(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("tree")
    for name in NAMES:
        other = data.draw(st.sampled_from(NAMES))
        body = data.draw(st.sampled_from(BODIES)).format(name, other)
        write(folder, **{name: f"{HEAD}from {other} import *\n\n\n{body}"})
    codes = data.draw(st.sampled_from([("DEV1",), ("DEV1", "DEV3")]))
    alone = {name: said(linter(*codes), folder / f"{name}.py") for name in NAMES}
    checks = linter(*codes)
    order = data.draw(st.permutations(NAMES))
    assert {name: said(checks, folder / f"{name}.py") for name in order} == alone

"""Which part may import which, read from the import statements, and what a lint run leaves unimported."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from devlint.facts.interpreter import machine
from devlint.facts.interpreter.flow import Flow

ROOT = Path(__file__).parents[1]
RULES = "rules/devlint_rules/"

# A part imports its own level and those below. Parts that are not named stand above all of them.
LEVELS = (
    ("reading", "model", "errors", "settings", "file_state", "project_files", "shipped"),
    ("source", "knowledge"),
    ("facts",),
    ("inference",),
    ("torch_range",),
    ("rule",),
    ("api", "tree", "identity", "suppression", "names", "unused", "folding"),
    ("registry", "engine", "fix"),
)
LEVEL = {part: level for level, parts in enumerate(LEVELS) for part in parts}

# The same within `devlint/facts`.
LEVELS_OF_FACTS = (
    ("frozen", "values"),
    ("text",),
    ("events", "result"),
    ("idioms", "interpreter", "project"),
    ("objections",),
    ("calling",),
    ("surveys",),
    ("analysis",),
    ("reveal",),
)


class Import(NamedTuple):
    file: str  # relative to the root, with slashes
    row: int
    module: str
    at_run_time: bool  # not under `if TYPE_CHECKING`
    at_once: bool  # when the module is imported, not when a function runs


def imports_of(file: str, text: str) -> Iterator[Import]:
    """Every module that the text imports; `from package import name` gives `package.name`."""

    def walk(node: ast.AST, at_run_time: bool, at_once: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(file, node.lineno, alias.name, at_run_time, at_once)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 or file.startswith(RULES), f"{file}:{node.lineno}: relative import"
            dots = "." * node.level
            for alias in node.names:
                yield Import(file, node.lineno, f"{dots}{node.module or ''}.{alias.name}", at_run_time, at_once)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for statement in node.body:
                yield from walk(statement, False, at_once)
            for statement in node.orelse:
                yield from walk(statement, at_run_time, at_once)
        else:
            in_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for child in ast.iter_child_nodes(node):
                yield from walk(child, at_run_time, at_once and not in_function)

    yield from walk(ast.parse(text), True, True)


def all_imports(folder: str) -> list[Import]:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    return [i for f in files for i in imports_of(f.relative_to(ROOT).as_posix(), f.read_text(encoding="utf-8"))]


def part_of(file: str) -> str:
    """`devlint/facts/values.py` is of `facts`, `devlint/model.py` of `model`."""
    return file.split("/")[1].removesuffix(".py")


def upward(imports: list[Import]) -> list[str]:
    """Imports of devlint that point to a higher level."""
    wrong = []
    for found in imports:
        package, _, rest = found.module.partition(".")
        target = rest.split(".")[0]
        own = LEVEL.get(part_of(found.file), len(LEVELS))
        is_part = (ROOT / "devlint" / target).is_dir() or (ROOT / "devlint" / f"{target}.py").is_file()
        if package == "devlint" and is_part and found.at_run_time and LEVEL.get(target, len(LEVELS)) > own:
            wrong.append(f"{found.file}:{found.row} imports {found.module}")
    return wrong


def test_parts_import_only_their_own_level_and_those_below() -> None:
    assert not upward(all_imports("devlint"))


def test_parts_of_the_facts_import_only_their_own_level_and_those_below() -> None:
    level = {part: level for level, parts in enumerate(LEVELS_OF_FACTS) for part in parts}
    wrong = []
    for found in all_imports("devlint/facts"):
        own, (*package, target) = found.file.split("/")[2].removesuffix(".py"), found.module.split(".")[:3]
        if package == ["devlint", "facts"] and target in level and own != "__init__" and found.at_run_time:
            assert own in level, f"{found.file}: of no level"
            if found.at_once and level[target] > level[own]:
                wrong.append(f"{found.file}:{found.row} imports {found.module}")
    assert not wrong


def test_upward_import_is_seen() -> None:
    text = "def f():\n    from devlint.engine import Linter\n"
    assert upward(list(imports_of("devlint/facts/x.py", text))) == [
        "devlint/facts/x.py:2 imports devlint.engine.Linter"
    ]


def test_engine_never_imports_rules() -> None:
    rules = re.compile(r"(devlint_rules|rules|devlint\._rules)\b")
    assert not [i for i in all_imports("devlint") if rules.match(i.module)]


def test_one_module_of_the_engine_names_the_package_of_the_rules() -> None:
    named = re.compile(r"""["'](devlint_rules|devlint\._rules)[."':]""")
    files = (ROOT / "devlint").rglob("*.py")
    assert [file.name for file in files if named.search(file.read_text(encoding="utf-8"))] == ["shipped.py"]


def test_rules_import_each_other_relatively() -> None:
    """A wheel has their package under another name than a checkout."""
    absolute = [i for i in all_imports(RULES) if i.module.startswith(("devlint_rules", "devlint._rules"))]
    assert not absolute


def test_rules_import_nothing_of_devlint_but_its_api() -> None:
    def is_of_devlint(module: str) -> bool:
        return module.split(".")[0] == "devlint"

    found = [i for i in all_imports("rules/devlint_rules") if is_of_devlint(i.module)]
    assert found
    assert not [i for i in found if not i.module.startswith("devlint.api.") and i.module != "devlint.api"]


def test_torch_is_imported_at_once_only_inside_the_runtime() -> None:
    outside = [
        i
        for folder in ("devlint", "rules")
        for i in all_imports(folder)
        if i.module.split(".")[0] == "torch"
        and i.at_once
        and i.at_run_time
        # modules in a package below `runtime` are themselves imported by functions only
        and not (i.file.startswith("devlint/runtime/") and i.file.count("/") > 2)
    ]
    assert not outside


def test_libcst_is_never_imported_at_once() -> None:
    found = [i for folder in ("devlint", "rules") for i in all_imports(folder) if i.module.split(".")[0] == "libcst"]
    assert found
    assert not [i for i in found if i.at_once and i.at_run_time]


def test_simulator_knows_neither_engine_nor_rules() -> None:
    allowed = {"runtime", "model", "errors", "knowledge"}
    files = [i for i in all_imports("devlint") if i.file.startswith("devlint/runtime/simulator/")]
    parts = {i.module.split(".")[1] for i in files if i.module.startswith("devlint.")}
    assert parts <= allowed


def test_modules_of_the_interpreter_build_on_each_other_in_the_order_that_the_first_one_names() -> None:
    listed = re.findall(r"^(?:\* .*: |  )(.*)$", machine.__doc__ or "", re.MULTILINE)
    named = re.findall(r"\w+", " ".join(listed))
    classes = [class_.__module__.rpartition(".")[2] for class_ in reversed(Flow.__mro__[:-1])]
    assert classes == ["machine", *named]


# What a run imports

LINT = """
import sys
from devlint.engine import Linter
from devlint_rules import RULES
result = Linter([rule() for rule in RULES]).check_bytes(SOURCE.encode(), "a.py")
assert not result.crashes, result.crashes
print([d.code for d in result.diagnostics], "libcst" in sys.modules)
"""
BLOCK_TORCH = "import sys\nsys.modules['torch'] = None\n"
CLEAN = "import torch\ndevice = torch.device('cpu')\nx = torch.zeros(3).to(device)[0]\n"
FAULTY = "import torch\ndef f(x: torch.Tensor):\n    return torch.ones(3).to(x.device) + x\n"


def run(code: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join((str(ROOT), str(ROOT / "rules")))
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120, check=False
    )


@pytest.mark.parametrize("source", [CLEAN, FAULTY])
def test_file_is_linted_where_torch_cannot_be_imported(source: str) -> None:
    done = run(f"{BLOCK_TORCH}SOURCE = {source!r}\n{LINT}")
    assert done.returncode == 0, done.stderr


def test_block_of_torch_would_be_noticed() -> None:
    assert "ModuleNotFoundError" in run(f"{BLOCK_TORCH}import torch\n").stderr


def test_run_with_a_suspect_imports_libcst() -> None:
    assert run(f"SOURCE = {FAULTY!r}\n{LINT}").stdout.strip() == "['DEV501'] True"


def test_run_without_a_suspect_does_not_import_libcst() -> None:
    source = "import torch\nx = torch.zeros(3)\nx.to\n"
    assert run(f"SOURCE = {source!r}\n{LINT}").stdout.strip() == "[] False"

"""The versions of torch that a project asks for, as its packaging files say it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from devlint.config import Resolver
from devlint.requirement import Required, Requirements, lowest_in, newest_in
from tests.conftest import Run


def lowest_of(directory: Path) -> tuple[int, int] | None:
    required = Requirements().of(str(directory))
    return required.lowest if required is not None else None


@pytest.mark.parametrize(
    ("specifiers", "lowest"),
    [
        (">=2.4", (2, 4)),
        (">=2.4.1,<3", (2, 4)),
        ("~=2.1", (2, 1)),
        ("==2.5.1+cu124", (2, 5)),
        ("==2.1.*", (2, 1)),
        ("^2.2", (2, 2)),
        (">1", (1, 0)),
        ("<3", None),
        ("!=2.0.1", None),
        ("*", None),
        ("", None),
    ],
)
def test_lower_bound_of_specifiers(specifiers: str, lowest: tuple[int, int] | None) -> None:
    assert lowest_in(specifiers) == lowest


@pytest.mark.parametrize(
    ("specifiers", "newest"),
    [
        ("==1.8.0", (1, 8)),
        ("==1.8.0+cu111", (1, 8)),
        ("=1.8.0=py3.8_cuda11.1_cudnn8.0.5_0", (1, 8)),
        (">=2.4,<3", (2, 99)),
        ("<2.4", (2, 3)),
        ("<2.4.1", (2, 4)),
        ("<2.0", (1, 99)),
        ("<=2.4", (2, 4)),
        ("~=1.8", (1, 99)),
        ("~=1.8.0", (1, 8)),
        ("^1.8", (1, 99)),
        (">=1.8", None),
        ("!=1.8", None),
    ],
)
def test_upper_bound_of_specifiers(specifiers: str, newest: tuple[int, int] | None) -> None:
    assert newest_in(specifiers) == newest


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", '[project]\ndependencies = ["numpy", "torch>=2.4,<3"]\n'),
        ("pyproject.toml", "[project]\ndependencies = [\"torch[opt] (>=2.4); python_version >= '3.10'\"]\n"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "^2.4"\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = { version = "2.4.0", optional = true }\n'),
        ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n    torch>=2.4\n"),
        ("setup.py", 'from setuptools import setup\nsetup(install_requires=["torchvision>=0.19", "torch>=2.4"])\n'),
        ("requirements.txt", "numpy\ntorch==2.4.1  # the one we test\n"),
        ("requirements/base.txt", "torch >= 2.4\n"),
        ("environment.yml", "dependencies:\n  - python=3.8\n  - pytorch=2.4.0=py3.8_cuda11.1_0\n"),
        ("environment.yaml", "dependencies:\n  - pytorch::pytorch>=2.4\n"),
        ("pyproject.toml", '[project]\ndependencies = []\n[project.optional-dependencies]\ntorch = ["torch==2.4.0"]\n'),
        ("requirements_cuda.txt", "torch==2.4.0\n"),
        ("requirements-gpu.txt", "torch==2.4.0\n"),
    ],
)
def test_packaging_file_states_the_lowest_torch(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert lowest_of(tmp_path) == (2, 4)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", '[project]\ndependencies = ["torch", "torchmetrics>=1.0"]\n'),
        ("pyproject.toml", "dependencies = [torch>=2.4\n"),
        ("setup.py", 'setup(install_requires=["torchvision>=0.19"])\n'),
        ("requirements.txt", "torchvision>=0.19\ntorch\npytorch-lightning>=2.0\n"),
        ("requirements-dev.txt", "torch==2.4.0\n"),
        ("requirements_docs.txt", "torch==2.4.0\n"),
        ("pyproject.toml", '[project]\ndependencies = []\n[project.optional-dependencies]\ntests = ["torch==2.4.0"]\n'),
    ],
)
def test_project_that_states_no_lower_bound(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / name).write_text(text)
    assert Requirements().of(str(tmp_path)) is None


def test_lists_for_kinds_of_machines_count_together(tmp_path: Path) -> None:
    (tmp_path / "requirements_cuda.txt").write_text("torch==2.7.0\n")
    (tmp_path / "requirements_cpu.txt").write_text("torch>=2.4,<2.6\n")
    assert Requirements().of(str(tmp_path)) == Required((2, 4), (2, 7))


def test_nearest_file_counts_and_the_search_ends_at_the_root_of_the_repository(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch>=1.8\n")
    repository = tmp_path / "repository"
    (repository / ".git").mkdir(parents=True)
    inner = repository / "examples" / "one"
    inner.mkdir(parents=True)
    assert Requirements().of(str(inner)) is None
    (repository / "setup.cfg").write_text("[options]\ninstall_requires =\n    torch>=2.2\n")
    assert lowest_of(inner) == (2, 2)
    (inner / "requirements.txt").write_text("torch>=2.6\n")
    assert lowest_of(inner) == (2, 6)


def test_files_beside_the_package_need_what_the_groups_for_them_ask_for(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\ndependencies = ["torch>=2.2"]\n'
        '[project.optional-dependencies]\nxpu = ["torch>=2.8"]\ntests = ["torch>=2.3"]\n'
        '[dependency-groups]\nbench = ["torch>=2.7.0", "accelerate"]\n'
    )
    for folder, lowest in (("package", (2, 2)), ("examples", (2, 7)), ("tests", (2, 7)), ("fixtures", (2, 7))):
        (tmp_path / folder / "inner").mkdir(parents=True)
        assert lowest_of(tmp_path / folder / "inner") == lowest


def test_setting_comes_before_what_packaging_says(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch>=2.4\n")
    (tmp_path / "devlint.toml").write_text("")
    config = Resolver().for_directory(str(tmp_path))
    assert (config.lowest_torch, config.states_torch) == ((2, 4), True)
    (tmp_path / "devlint.toml").write_text('torch-version = "2.9"\n')
    assert Resolver().for_directory(str(tmp_path)).lowest_torch == (2, 9)
    isolated = Resolver(isolated=True).for_directory(str(tmp_path))
    assert (isolated.lowest_torch, isolated.states_torch) == ((2, 7), False)


TIMED = """
    import time
    import torch

    def measure(x: torch.Tensor) -> float:
        start = time.perf_counter()
        y = x @ x
        return time.perf_counter() - start
"""


def test_fix_says_that_the_lowest_torch_is_assumed(run: Run) -> None:
    Path("a.py").write_text(textwrap.dedent(TIMED))
    options = ("check", "--no-cache", "--select", "DEV401", "a.py")
    assert "assumes torch 2.7 or newer: `torch-version` is not set" in run(*options).out
    Path("requirements.txt").write_text("torch>=2.8\n")
    assert "assumes torch" not in run(*options).out


def test_fix_uses_no_name_that_the_required_torch_lacks(run: Run) -> None:
    Path("requirements.txt").write_text("torch>=2.1\n")
    Path("a.py").write_text(textwrap.dedent(TIMED))
    run("check", "--no-cache", "--select", "DEV401", "--fix", "--unsafe-fixes", "a.py")
    assert "accelerator" not in Path("a.py").read_text()


NEWER = """
    import torch

    if torch.accelerator.is_available():
        torch.accelerator.empty_cache()
"""


def test_nothing_is_too_new_where_nobody_states_a_lowest_torch(run: Run) -> None:
    Path("a.py").write_text(textwrap.dedent(NEWER))
    options = ("check", "--no-cache", "--select", "DEV304", "--output-format", "concise", "a.py")
    assert run(*options).code == 0
    Path("requirements.txt").write_text("torch>=2.7\n")
    assert "is new in torch 2.9, but the project supports torch 2.7" in run(*options).out


def test_settings_shown_name_where_the_lowest_torch_comes_from(run: Run) -> None:
    Path("a.py").write_text("import torch\n")
    assert "# in force: 2.7 (assumed, because no file names a version)" in run("check", "--show-settings", "a.py").out
    Path("setup.cfg").write_text("[options]\ninstall_requires =\n    torch>=2.3\n")
    assert "# in force: 2.3 (from the project's packaging files)" in run("check", "--show-settings", "a.py").out


OLD_NAME = """
    import torch

    torch.set_deterministic(True)
"""


def test_name_that_only_an_older_torch_had_is_no_error_where_the_project_pins_such_a_torch(run: Run) -> None:
    Path("a.py").write_text(textwrap.dedent(OLD_NAME))
    options = ("check", "--no-cache", "--select", "DEV302", "a.py")
    assert "DEV302" in run(*options).out
    Path("requirements.txt").write_text("torch==1.8.0\n")
    assert "DEV302" not in run(*options).out


@pytest.mark.parametrize(
    ("text", "newest"),
    [
        ("- Python 3.6\n- PyTorch 0.4.1\n", (0, 4)),
        ("`conda install pytorch=0.4.1 -c pytorch`\n", (0, 4)),
        ("Code in [PyTorch](https://pytorch.org) (pytorch 0.3 or 0.4) for the paper.\n", (0, 4)),
        ("written for PyTorch 0.2; the branch `v2` is for pytorch==0.4\n", (0, 4)),
        ("- PyTorch 0.4+\n", None),
        ("- PyTorch >= 0.4\n", None),
        ("- torch 0.4 or later\n", None),
        ("Tried with PyTorch 0.4 and PyTorch 1.7.\n", None),
        ("Tried with PyTorch 1.7 and torchvision 0.4.\n", None),
        ("at least PyTorch 0.4.1\n", None),
        ("PyTorch 0.4, 0.5 and 1.0\n", None),
        ("| PyTorch | 0.85 | 0.91 |\n", None),
        ("pytorch - 0.12 s/it\n", None),
        ("PyTorch 2 required. The old code used PyTorch 0.4.\n", None),
    ],
)
def test_torch_before_its_first_stable_release_is_believed_from_a_readme(
    tmp_path: Path, text: str, newest: tuple[int, int] | None
) -> None:
    (tmp_path / "README.md").write_text(text)
    (tmp_path / "models").mkdir()
    found = Requirements().of(str(tmp_path / "models"))
    assert (found.newest if found is not None else None) == newest


def test_packaging_files_come_before_a_readme(tmp_path: Path) -> None:
    (tmp_path / "setup.cfg").write_text("[options]\ninstall_requires =\n    torch>=2.2\n")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "README.md").write_text("PyTorch 0.4\n")
    assert Requirements().of(str(tmp_path / "old")) == Required((2, 2), None)


def test_requirements_say_what_those_say_that_they_include(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "constraints.txt").write_text("torch==2.10.0\n")
    (tmp_path / "tests" / "requirements.txt").write_text("-c ../constraints.txt\n\ntorch\n")
    found = Requirements().of(str(tmp_path / "tests"))
    assert found is not None
    assert (found.lowest, found.newest) == ((2, 10), (2, 10))


@pytest.mark.parametrize(("torch", "found"), [("torch==1.6.0", 0), ("torch>=1.6", 2)])
def test_what_a_pinned_torch_takes_from_anywhere_is_no_error(run: Run, torch: str, found: int) -> None:
    Path("requirements.txt").write_text(torch)
    Path("rows.py").write_text(
        "import torch\nfrom torch.nn.utils.rnn import pack_padded_sequence\n\n\n"
        "def rows(x: torch.Tensor, lengths: torch.Tensor):\n"
        "    lengths = lengths.cuda()\n    table = torch.arange(3)\n    table[x.cuda() > 0]\n"
        "    return pack_padded_sequence(x.cuda(), lengths)\n"
    )
    result = run("check", "rows.py", "--select", "DEV102,DEV104,DEV112", "--output-format", "concise")
    assert sum(code in result.out for code in ("DEV102", "DEV104", "DEV112")) == found


TABLE = """
    import torch
    from torch import nn


    class Positions(nn.Module):
        def __init__(self, size: int) -> None:
            super().__init__()
            self.table = torch.zeros(size, 8)
            self.layer = nn.Linear(8, 8)

        def forward(self, x: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
            return self.layer(x) + self.table[ids, :].to(x.device)
"""


@pytest.mark.parametrize(
    ("torch", "use", "found"),
    [
        ("torch>=1.0,<1.12", "self.table[ids, :].to(x.device)", False),
        ("torch>=1.0", "self.table[ids, :].to(x.device)", True),
        ("torch>=1.0,<1.14", "self.table[ids, :].to(x.device)", True),
        ("torch>=1.0,<1.12", "self.table[ids, :]", True),
        ("torch>=1.0,<1.12", "self.table", True),
    ],
)
def test_rows_that_a_pinned_torch_takes_by_any_index_and_that_move_leave_the_table_behind(
    run: Run, torch: str, use: str, found: bool
) -> None:
    Path("requirements.txt").write_text(torch)
    Path("net.py").write_text(textwrap.dedent(TABLE).replace("self.table[ids, :].to(x.device)", use))
    assert ("DEV106" in run("check", "net.py", "--select", "DEV106", "--output-format", "concise").out) is found


def test_deprecated_name_is_right_where_the_project_pins_a_torch_that_has_no_other(run: Run) -> None:
    Path("a.py").write_text("import torch\n\nprint(torch.cuda.max_memory_cached())\n")
    options = ("check", "--no-cache", "--select", "DEV306", "a.py")
    assert "DEV306" in run(*options).out
    Path("requirements.txt").write_text("torch==1.3.0\n")
    assert "DEV306" not in run(*options).out


def test_pinned_torch_that_heeds_the_device_of_pinned_memory_may_be_told_it(run: Run) -> None:
    Path("a.py").write_text("from torch.utils.data import DataLoader\n\nDataLoader([], pin_memory_device='cuda')\n")
    options = ("check", "--no-cache", "--select", "DEV306", "a.py")
    assert "DEV306" in run(*options).out
    Path("requirements.txt").write_text("torch==2.4.1\n")
    assert "DEV306" not in run(*options).out


ROWS = """
    import numpy as np
    import torch

    def rows(x: torch.Tensor):
        x = x.cuda()
        return np.unique(x), x.numpy()
"""


@pytest.mark.parametrize(("torch", "found"), [("torch==0.4.1", 1), ("torch>=1.0", 2)])
def test_tensors_that_a_pinned_torch_copies_for_numpy_itself_are_no_error(run: Run, torch: str, found: int) -> None:
    Path("requirements.txt").write_text(torch)
    Path("rows.py").write_text(textwrap.dedent(ROWS))
    result = run("check", "rows.py", "--select", "DEV109", "--output-format", "concise")
    assert result.out.count("DEV109") == found


XPU = """
    import torch

    def current(device: torch.device) -> int:
        if device.type == "xpu":
            return torch.xpu.current_device()
        return 0
"""


def test_names_for_an_xpu_come_with_its_vendors_extension_where_torch_has_none(run: Run) -> None:
    Path("a.py").write_text(textwrap.dedent(XPU))
    Path("requirements.txt").write_text("torch>=2.0\n")
    options = ("check", "--no-cache", "--select", "DEV304", "a.py")
    assert "DEV304" not in run(*options).out
    Path("a.py").write_text(textwrap.dedent(XPU).replace('device.type == "xpu"', "device.index is None"))
    assert "DEV304" in run(*options).out
    asked = "from accelerate.utils import is_xpu_available\nif is_xpu_available():\n"
    Path("a.py").write_text(f"import torch\n{asked}    torch.xpu.manual_seed(0)\n")
    assert "DEV304" not in run(*options).out


def test_one_file_that_has_no_upper_bound_leaves_the_newest_open(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(
        "torch>=2.4; sys_platform != 'win32'\ntorch>=2.4,<2.6; sys_platform == 'win32'\n"
    )
    assert Requirements().of(str(tmp_path)) == Required((2, 4), None)


IMPORTED = """
    import torch
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor.placement_types import Partial, Shard

    PLACES = (Partial(), Shard(0))

    def spread(x, mesh):
        return DTensor.from_local(x, mesh, [Shard(0)])
"""


def test_names_that_the_module_level_imports_are_reported_at_the_first_import_that_fails(run: Run) -> None:
    Path("a.py").write_text(textwrap.dedent(IMPORTED))
    Path("requirements.txt").write_text("torch>=2.0\n")
    found = run("check", "--no-cache", "--select", "DEV304", "--output-format", "concise", "a.py").out
    assert [line.split(": ")[0] for line in found.splitlines() if "DEV304" in line] == ["a.py:3:38"]


VERSION = """
    import torch
    from .imports import has_xpu

    def name():
        there = has_xpu()
        if there:
            return torch.xpu.get_device_name()

    def count():
        if has_xpu():
            return torch.xpu.device_count()
"""


@pytest.mark.parametrize(
    ("asks", "found"),
    [
        ("is_torch_version('>=', '2.6') and torch.xpu.is_available()", 0),
        ("not torch.__version__ < '2.6' and torch.xpu.is_available()", 0),
        ("torch.xpu.is_available()", 2),
        ("torch.__version__ < '2.6' and torch.xpu.is_available()", 2),
        ("torch.__version__ >= '2.6'", 2),
    ],
)
def test_names_under_a_function_that_asks_for_torchs_version_are_of_that_version(
    run: Run, asks: str, found: int
) -> None:
    Path("pyproject.toml").write_text("[project]\nname = 'pack'\ndependencies = ['torch>=2.2']\n")
    Path("pack").mkdir()
    Path("pack/__init__.py").touch()
    Path("pack/imports.py").write_text(
        f"import torch\nfrom .other import is_torch_version\ndef has_xpu():\n    return {asks}\n"
    )
    Path("pack/env.py").write_text(textwrap.dedent(VERSION))
    result = run("check", "pack/env.py", "--no-cache", "--select", "DEV304", "--output-format", "concise")
    assert result.out.count("DEV304") == found


@pytest.mark.parametrize(
    ("folder", "listed", "stated"),
    [
        ("method_comparison/maths", "bitsandbytes\ntqdm\n", False),
        ("method_comparison/maths/inner", "bitsandbytes\ntqdm\n", False),
        ("references/inner", "-e .\ntqdm\n", True),
        ("references", "../[all]\n", True),
        ("references", "-r ../requirements.txt\n", True),
        ("tests", "pytest\n", True),
        ("package", "tqdm\n", True),
        ("examples", "", True),
    ],
)
def test_a_program_with_a_list_of_its_own_is_not_bound_by_the_package_around_it(
    tmp_path: Path, folder: str, listed: str, stated: bool
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["torch>=2.2"]\n')
    (tmp_path / "requirements.txt").write_text("torch>=2.2\n")
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "package").mkdir(exist_ok=True)
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / folder.removesuffix("/inner") / "requirements.txt").write_text(listed)
    config = Resolver().for_directory(str(tmp_path / folder))
    assert (config.lowest_torch, config.states_torch) == ((2, 2), stated)


def test_what_a_program_says_of_torch_itself_counts(tmp_path: Path) -> None:
    (tmp_path / "setup.cfg").write_text("[options]\ninstall_requires =\n    torch>=2.2\n")
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "requirements.txt").write_text("torch>=2.6\n")
    config = Resolver().for_directory(str(tmp_path / "examples"))
    assert (config.lowest_torch, config.states_torch) == ((2, 6), True)


@pytest.mark.parametrize(
    ("text", "required"),
    [
        ("torchvision==0.8 \ntorch\n", Required(None, (1, 7))),
        ("torch>=1.6\ntorchvision==0.14.1+cu117\n", Required((1, 6), (1, 13))),
        ("torch\ntorchvision==0.15.2\n", Required(None, (2, 0))),
        ("torch==2.4\ntorchvision==0.15.2\n", Required((2, 4), (2, 4))),
        ("torch>=1.6\ntorchvision>=0.8\n", Required((1, 6), None)),
        ("torch>=1.13\ntorchvision==0.12.0\n", Required((1, 13), None)),
        ("torch>=1.2\ntorchvision==0.4\n", Required((1, 2), None)),
        ("torch\ntorchvision\n", None),
    ],
)
def test_a_pinned_torchvision_goes_with_one_torch(tmp_path: Path, text: str, required: Required | None) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "requirements.txt").write_text(text)
    assert Requirements().of(str(tmp_path)) == required


WHEEL = "https://example.org/whl/cu113/torch-1.12.0%2Bcu113-cp38-cp38-linux_x86_64.whl"


@pytest.mark.parametrize(
    ("name", "text", "lowest"),
    [
        ("requirement.txt", "torch==1.8.1\n", (1, 8)),
        ("Requirements.txt", "torch==1.8.1\n", (1, 8)),
        ("requirements/requirements.txt", "torch==1.8.1\n", (1, 8)),
        ("requirements/main.txt", "torch==1.8.1\n", (1, 8)),
        ("requirements.txt", f"torch @ {WHEEL}\n", (1, 12)),
        ("requirements.txt", f"{WHEEL}\n", (1, 12)),
        ("setup.py", 'NEEDS = """\nnumpy\ntorch==1.8.1\n"""\n', (1, 8)),
        ("pyproject.toml", f"[tool.poetry.dependencies]\ntorch = {{url = '{WHEEL}'}}\n", (1, 12)),
        ("pyproject.toml", "[tool.uv]\nconstraint-dependencies = ['torch==1.8.1']\n", (1, 8)),
        ("Pipfile", '[packages]\ntorch = "==1.8.1"\n', (1, 8)),
        ("env.yml", "dependencies:\n  - pytorch=1.8.1\n", (1, 8)),
        ("conda_env.yaml", "dependencies:\n  - pytorch=1.8.1\n", (1, 8)),
        ("environment_gpu.yml", "dependencies:\n  - pytorch==1.8.1\n", (1, 8)),
        ("environment.yml", "dependencies:\n  - 'pytorch=1.8.1'\n", (1, 8)),
        ("environment.yml", 'dependencies:\n  - "pytorch::pytorch=1.8.1"\n', (1, 8)),
    ],
)
def test_pinned_torch_is_found(tmp_path: Path, name: str, text: str, lowest: tuple[int, int]) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert lowest_of(tmp_path) == lowest


@pytest.mark.parametrize("text", ["torch<2.0\n", "torch<=1.13.1\n", "torch!=1.9,<1.13\n"])
def test_fix_uses_nothing_that_the_newest_admitted_torch_lacks(run: Run, tmp_path: Path, text: str) -> None:
    (tmp_path / "requirements.txt").write_text(text)
    (tmp_path / "a.py").write_text("from torch.cuda.amp import autocast\n\nwith autocast():\n    pass\n")
    assert run("check", "--no-cache", "--fix", "a.py").out.count("fixed") == 0
    assert "torch.cuda.amp" in (tmp_path / "a.py").read_text()


def test_list_for_development_pins_nothing(tmp_path: Path) -> None:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "dev.txt").write_text("torch==1.8.1\n")
    assert lowest_of(tmp_path) is None

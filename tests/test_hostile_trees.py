"""A tree that nobody vouches for: it ends no run, holds none up, and hides nothing by what its names lead to."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from devlint.requirement import is_program, named_in_readme, required_in
from tests.conftest import Run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes, devices and links of POSIX")

BAD = 'import torch\n\nx = torch.zeros(3).to("cuda")\n'
FIXED = 'import torch\n\nx = torch.zeros(3, device="cuda")\n'
ONE_RULE = ("--select", "DEV501", "--output-format", "concise", "--no-cache")


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    """No test hangs: what reads for ever is interrupted."""

    def stop(number: int, frame: FrameType | None) -> None:
        pytest.fail("still reading after 20 seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


# What is no regular file

NAMES = [
    "setup.py", "requirements.txt", "pyproject.toml", "setup.cfg", "environment.yml", "requirements-gpu.txt", "README.md",
    "devlint.toml", ".devlint.toml", ".gitignore", ".git/info/exclude", "devlint-baseline.json", "other.py", "n.ipynb",
    ".devlint_cache", "requirements/base.txt", ".devlint_cache/CACHEDIR.TAG",
]  # fmt: skip


@pytest.mark.parametrize("kind", ["pipe", "device", "loop", "folder"])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_regular_file_is_not_read(run: Run, name: str, kind: str) -> None:
    Path(".git/info").mkdir(parents=True)
    Path("a.py").write_text(BAD)
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(name)
    elif kind == "device":
        Path(name).symlink_to("/dev/zero")
    elif kind == "loop":
        Path(name).symlink_to(Path(name).name)
    else:
        Path(name).mkdir()
    result = run("check", ".", "--select", "DEV501", "--output-format", "concise")
    assert (result.code, result.out.splitlines()[0][:9], result.err) == (1, "a.py:3:5:", "")


def test_a_pipe_that_git_names_as_its_directory_is_not_read(run: Run) -> None:
    Path("elsewhere").mkdir()
    os.mkfifo("elsewhere/commondir")
    Path(".git").write_text("gitdir: elsewhere\n")
    Path("a.py").write_text(BAD)
    assert run("check", ".", *ONE_RULE).code == 1


def test_a_pipe_that_a_list_of_requirements_includes_is_not_read(run: Run) -> None:
    os.mkfifo("pipe")
    Path("requirements.txt").write_text("-r pipe\n-r /dev/zero\n-c nul\0name\ntorch>=2.6\n")
    Path("a.py").write_text(BAD)
    assert run("check", ".", *ONE_RULE).code == 1


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="files of Linux's kernel")
@pytest.mark.parametrize("target", ["/proc/kmsg", "/proc/self/environ", "/proc/self/mem", "/proc/self/pagemap"])
def test_a_file_of_the_kernel_is_empty(run: Run, target: str) -> None:
    Path("a.py").symlink_to(target)
    Path("setup.py").symlink_to(target)
    Path("b.py").write_text(BAD)
    result = run("check", ".", *ONE_RULE)
    assert (result.code, result.out[:5]) == (1, "b.py:")


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_named_file_that_is_no_regular_one_is_an_error(run: Run, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo("a.py")
    else:
        Path("a.py").symlink_to("/dev/zero")
    result = run("check", "a.py", *ONE_RULE)
    assert (result.code, result.err) == (2, "error: a.py: no regular file; `-` reads standard input\n")


@pytest.mark.parametrize("option", ["--config", "--baseline"])
def test_an_option_that_names_a_pipe_is_an_error(run: Run, option: str) -> None:
    os.mkfifo("pipe")
    result = run("check", ".", option, "pipe", *ONE_RULE)
    assert result.code == 2
    assert result.err.startswith("error: ") and result.err.endswith("no regular file\n")


def test_a_configuration_that_extends_a_pipe_is_an_error(run: Run) -> None:
    os.mkfifo("pipe")
    Path("devlint.toml").write_text('extend = "pipe"\n')
    result = run("check", ".", *ONE_RULE)
    assert result.code == 2
    assert "devlint.toml:1: `extend`: no such file" in result.err


def test_a_file_that_is_too_large_is_a_finding(run: Run) -> None:
    with open("a.py", "wb") as file:
        file.truncate(17_000_000)
    result = run("check", ".", *ONE_RULE)
    assert result.code == 1
    assert "a.py:1:1: DEV900 cannot be read: larger than 16 MB" in result.out


def test_settings_that_are_too_large_are_an_error(run: Run) -> None:
    Path("devlint.toml").write_text("# " + "x" * 2_000_000)
    result = run("check", ".", *ONE_RULE)
    assert (result.code, result.err.rpartition(": ")[2]) == (2, "larger than 1 MB\n")


# Links


@pytest.mark.parametrize("name", ["a.py", "b/a.py", "c.ipynb", "d.pyi"])
def test_a_link_to_itself_ends_nothing(run: Run, name: str) -> None:
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).symlink_to(Path(name).name)
    Path("z.py").write_text(BAD)
    result = run("check", ".", *ONE_RULE)
    assert (result.code, result.out[:5], result.err) == (1, "z.py:", "")


def test_a_named_link_to_itself_is_an_error(run: Run) -> None:
    Path("a.py").symlink_to("a.py")
    assert run("check", "a.py", *ONE_RULE).err == "error: a.py: broken symbolic link\n"


@pytest.mark.parametrize("paths", [(".",), ("link.py",), ("sub",)])
@pytest.mark.parametrize("option", [("--fix",), ("--fix-only",), ("--add-ignore=later",)])
def test_nothing_is_written_through_a_link_that_leaves_the_tree(
    run: Run, tmp_path_factory: pytest.TempPathFactory, paths: tuple[str, ...], option: tuple[str, ...]
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "a.py"
    outside.write_text(BAD)
    Path("sub").mkdir()
    for link in ("link.py", "sub/link.py"):
        Path(link).symlink_to(outside)
    result = run("check", *paths, *option, *ONE_RULE)
    assert outside.read_text() == BAD
    assert "not changed: a link leads to it out of " in result.err
    assert result.err.count("\n") <= 2


def test_a_link_within_the_tree_is_fixed(run: Run) -> None:
    Path(".git").mkdir()
    Path("real.txt").write_text(BAD)
    Path("sub").mkdir()
    Path("sub/link.py").symlink_to("../real.txt")
    assert run("check", "sub", "--fix", *ONE_RULE).code == 0
    assert Path("real.txt").read_text() == FIXED
    assert Path("sub/link.py").is_symlink()


def test_a_link_to_another_of_the_named_files_is_no_way_out(run: Run, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "a.py"
    outside.write_text(BAD)
    Path("link.py").symlink_to(outside)
    assert run("check", ".", str(outside), "--fix", *ONE_RULE).err.count("not changed") == 1
    assert outside.read_text() == BAD


# Depth


def test_directories_may_lie_thousands_deep(run: Run, tmp_path: Path) -> None:
    deep = 1_500
    handle = os.open(".", os.O_RDONLY)
    for _ in range(deep):
        os.mkdir("d", dir_fd=handle)
        inner = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    with open("a.py", "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, dir_fd=handle)) as file:
        file.write(BAD)
    os.close(handle)
    limit = sys.getrecursionlimit()
    result = run("check", ".", *ONE_RULE)
    assert (result.code, result.err) == (1, "")
    named = run("check", "d/" * deep + "a.py", *ONE_RULE)
    assert (named.code, named.err) == (1, "")
    assert sys.getrecursionlimit() == limit
    os.system("rm -rf d")  # shutil.rmtree of Python 3.10 to 3.12 goes down recursively


def test_many_files_that_extend_one_another_are_an_error(run: Run) -> None:
    for number in range(1_200):
        Path(f"c{number}.toml").write_text(f'extend = "c{number + 1}.toml"\n')
    Path("c1200.toml").write_text("")
    Path("devlint.toml").write_text('extend = "c0.toml"\n')
    result = run("check", ".", *ONE_RULE)
    assert result.code == 2
    assert result.err.endswith("c19.toml:1: `extend`: more than 20 files extend one another\n")


@pytest.mark.parametrize(
    "text",
    [
        "select = " + "[" * 5_000 + "]" * 5_000,
        "select" + ".a" * 50 + " = 1",
        "select" + ".a" * 400_000 + " = 1",
        "required-version = '>=0" + ".9" * 100_000 + "'",
        "[tool.devlint]\nx = " + "{a=" * 5_000 + "1" + "}" * 5_000,
        "select = " + "9" * 5_000,
        "select = [" + "9" * 5_000 + "]",
    ],
)
@pytest.mark.parametrize("name", ["devlint.toml", "pyproject.toml", "option", "base.toml"])
def test_strange_toml_is_an_error_in_one_line(run: Run, text: str, name: str) -> None:
    options: tuple[str, ...] = ()
    if name == "option":
        options = ("--config", text)
    elif name == "pyproject.toml":
        Path(name).write_text("[tool.devlint]\n" + text)
    else:
        Path(name).write_text(text)
    if name == "base.toml":
        Path("devlint.toml").write_text('extend = "base.toml"\n')
    result = run("check", ".", *options, *ONE_RULE)
    assert (result.code, result.err.count("\n"), result.err[:7]) == (2, 1, "error: ")
    assert len(result.err) < 3_000


@pytest.mark.parametrize(
    "text",
    ["[project]\ndependencies = " + "[" * 5_000 + "]" * 5_000, "x = " + "9" * 5_000, "a" + ".torch" * 100_000 + "=1"],
)
def test_strange_toml_of_the_project_says_nothing(run: Run, text: str) -> None:
    Path("pyproject.toml").write_text("# torch\n" + text)
    Path("a.py").write_text(BAD)
    assert run("check", ".", *ONE_RULE).code == 1


def test_a_baseline_that_is_nested_deeply_is_an_error(run: Run) -> None:
    Path("devlint-baseline.json").write_text("[" * 100_000 + "]" * 100_000)
    result = run("check", ".", *ONE_RULE)
    assert (result.code, result.err) == (2, "error: devlint-baseline.json: not a baseline: nested too deeply\n")


# Expressions that a text could keep busy


@pytest.mark.parametrize(
    "text",
    [
        "torch[" * 160_000,
        "\n" * 900_000,
        " " * 900_000,
        "- " * 450_000,
        '"torch[' * 140_000,
        "torch >= " + "1, " * 300_000,
        "pytorch " + "0.4 " * 220_000,
        "torch==" + "1" * 900_000,
        "torch" + " " * 900_000 + "x",
        "-r " * 300_000,
        "torch 0.4, " * 80_000,
        "!pip install " * 70_000,
    ],
)
def test_what_a_project_asks_for_is_read_in_time(tmp_path: Path, text: str) -> None:
    start = time.process_time()
    for name in ("requirements.txt", "setup.py", "README.md", "environment.yml", "setup.cfg"):
        folder = tmp_path / name.replace(".", "_")
        folder.mkdir()
        (folder / name).write_text("torch\n" + text)
        required_in(str(folder))
        named_in_readme(str(folder))
        is_program(str(folder))
    assert time.process_time() - start < 5

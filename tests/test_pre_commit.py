"""The hooks, run by the real pre-commit in a fresh repository from a clone of this one. Needs a package index."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PARTS = ("devlint", "rules", "pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml")
BAD = 'import torch\n\nx = torch.zeros(3).to("cuda")\n'
FIXED = 'import torch\n\nx = torch.zeros(3, device="cuda")\n'

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("pre_commit") is None, reason="pre-commit is not installed"),
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.skipif(
        not (ROOT / ".pre-commit-hooks.yaml").exists(), reason="not a checkout: the hooks file is missing"
    ),
]


def git(where: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=where, check=True, capture_output=True)


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with what a hook is installed from."""
    clone = tmp_path_factory.mktemp("tool")
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, clone / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, clone / part)
    git(clone, "init", "-q")
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", "everything")
    return clone


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pre-commit keeps the environments that it builds; shared by the tests of this module."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def user(tmp_path: Path, tool: Path) -> Path:
    """A repository with a faulty, a clean and an excluded file that uses the hooks."""
    revision = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tool, check=True, capture_output=True, text=True)
    (tmp_path / "bad.py").write_text(BAD)
    (tmp_path / "clean.py").write_text("x = 1\n")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "bad.py").write_text(BAD)
    (tmp_path / "notes.txt").write_text("torch\n")
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "source": BAD}
    (tmp_path / "bad.ipynb").write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4}))
    (tmp_path / "bad.md").write_text(f"```python\n{BAD}```\n")
    (tmp_path / "devlint.toml").write_text('select = ["DEV501"]\n')
    hooks = "".join(f"      - id: {name}\n" for name in ("devlint", "devlint-fix", "devlint-markdown"))
    (tmp_path / ".pre-commit-config.yaml").write_text(
        f"repos:\n  - repo: {tool.as_posix()}\n    rev: {revision.stdout.strip()}\n    hooks:\n{hooks}"
    )
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    return tmp_path


def pre_commit(where: Path, home: Path, hook: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-m", "pre_commit", "run", "--color", "never", hook, *arguments]
    return subprocess.run(
        command,
        cwd=where,
        env={**environment, "PRE_COMMIT_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_the_check_hook_fails_on_a_problem_and_changes_nothing(user: Path, home: Path) -> None:
    done = pre_commit(user, home, "devlint", "--all-files")
    assert done.returncode == 1, done.stdout + done.stderr
    assert " --> bad.py:3:5\n" in done.stdout
    assert " --> bad.ipynb:cell 1:3:5\n" in done.stdout
    assert "build/bad.py" not in done.stdout
    assert "bad.md" not in done.stdout
    assert "Found 2 problems in 2 files." in done.stdout
    assert (user / "bad.py").read_text() == BAD


def test_the_markdown_hook_checks_markdown_alone(user: Path, home: Path) -> None:
    done = pre_commit(user, home, "devlint-markdown", "--all-files")
    assert done.returncode == 1, done.stdout + done.stderr
    assert " --> bad.md:4:5\n" in done.stdout
    assert "Found 1 problem in 1 file." in done.stdout


def test_the_fix_hook_fixes_fails_once_and_then_passes(user: Path, home: Path) -> None:
    first = pre_commit(user, home, "devlint-fix", "--all-files")
    assert first.returncode == 1, first.stdout + first.stderr
    assert "files were modified by this hook" in first.stdout
    assert (user / "bad.py").read_text() == FIXED
    git(user, "add", "-A")
    assert pre_commit(user, home, "devlint-fix", "--all-files").returncode == 0


def test_files_that_are_not_python_are_not_checked(user: Path, home: Path) -> None:
    done = pre_commit(user, home, "devlint", "--files", "notes.txt")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "(no files to check)Skipped" in done.stdout


def test_the_block_that_init_shows_runs_as_it_is(tmp_path: Path, home: Path) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    (tmp_path / "pyproject.toml").write_text("[tool.black]\n")  # no package that could be built
    shown = subprocess.run(
        [sys.executable, "-m", "devlint", "init"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    block = shown[shown.index("  - repo: local") :]
    (tmp_path / ".pre-commit-config.yaml").write_text(f"repos:\n{block}")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    done = pre_commit(tmp_path, home, "devlint", "--all-files")
    assert done.returncode == 1, done.stdout + done.stderr
    assert " --> bad.py:3:5\n" in done.stdout

"""Only new code: what the rows bring that changed since a git revision."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devlint.diff_base import Changes, parse_diff

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

Cli = Callable[..., Any]  # of conftest.py
OLD = 'import torch\nx = torch.zeros(3).to("cuda")\n'
NEW = 'y = torch.ones(2).to("cuda")\n'


def git(*arguments: str) -> None:
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)


def commit(**files: str) -> None:
    for name, text in files.items():
        Path(f"{name}.py").write_text(text)
    git("add", "-A")
    git("commit", "-q", "-m", "files", "--allow-empty")


def places(result: Any) -> list[str]:
    return [line.split(" ")[0] for line in result.out.splitlines() if " DEV" in line]


@pytest.fixture
def repository(cli: Cli) -> Cli:
    """A command line in a repository without commits."""
    git("init", "-q")
    return cli


def test_only_what_a_changed_row_brings_is_reported(repository: Cli) -> None:
    commit(a=OLD, b=OLD)
    Path("a.py").write_text("# moved down\n" + OLD + NEW)
    done = repository("--diff-base", "HEAD")
    assert done.code == 1
    assert places(done) == ["a.py:4:5:"]
    assert "2 problems on unchanged lines not shown.\n" in done.out


def test_nothing_changed_is_clean(repository: Cli) -> None:
    commit(a=OLD)
    assert repository("--diff-base", "HEAD").code == 0


def test_a_changed_row_that_explains_a_finding_counts(repository: Cli) -> None:
    call = "x = torch.zeros(3).to(\n    where\n)\n"
    commit(a=f'import torch\nwhere = "cuda"\n\n\n{call}')
    Path("a.py").write_text(f'import torch\nwhere = "cuda"\n\n\n{call.replace("zeros(3)", "zeros(4)")}')
    assert places(repository("--diff-base", "HEAD")) == ["a.py:5:5:"]


def test_untracked_and_ignored_files_are_new(repository: Cli) -> None:
    commit(a=OLD)
    Path(".gitignore").write_text("c.py\n")
    Path("b.py").write_text(OLD)
    Path("c.py").write_text(OLD)
    assert places(repository("--diff-base", "HEAD", "a.py", "b.py", "c.py")) == ["b.py:2:5:", "c.py:2:5:"]


def test_a_renamed_file_keeps_its_old_rows(repository: Cli) -> None:
    commit(a=OLD * 5)
    git("mv", "a.py", "b é.py")
    with Path("b é.py").open("a") as file:
        file.write(NEW)
    assert places(repository("--diff-base", "HEAD")) == ["b"]
    assert "b é.py:11:5: DEV501" in repository("--diff-base", "HEAD").out


def test_it_works_from_a_directory_below(repository: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("sub").mkdir()
    Path("sub/a.py").write_text(OLD)
    commit(b=OLD)
    monkeypatch.chdir("sub")
    Path("a.py").write_text(OLD + NEW)
    assert places(repository("--diff-base", "HEAD")) == ["a.py:3:5:"]


def test_an_older_revision_and_the_place_where_a_branch_left(repository: Cli) -> None:
    commit(a=OLD)
    git("branch", "-m", "main")
    git("checkout", "-q", "-b", "work")
    commit(a=OLD + NEW)
    git("checkout", "-q", "main")
    commit(a="import torch\n")
    git("checkout", "-q", "work")
    assert places(repository("--diff-base", "HEAD~1")) == ["a.py:3:5:"]
    assert places(repository("--diff-base", "main")) == ["a.py:2:5:", "a.py:3:5:"]
    assert places(repository("--diff-base", "main...")) == ["a.py:3:5:"]


def test_fixes_touch_only_what_is_new(repository: Cli) -> None:
    commit(a=OLD)
    Path("a.py").write_text(OLD + NEW)
    assert repository("--diff-base", "HEAD", "--fix").code == 0
    assert Path("a.py").read_text() == OLD + 'y = torch.ones(2, device="cuda")\n'


def test_fixes_tell_equal_findings_apart(repository: Cli) -> None:
    commit(a=OLD)
    Path("a.py").write_text(OLD + OLD.splitlines(keepends=True)[1])
    fixed = 'x = torch.zeros(3, device="cuda")\n'
    assert repository("--diff-base", "HEAD", "--fix").code == 0
    assert sorted(Path("a.py").read_text().splitlines(keepends=True)[1:]) == sorted(
        [OLD.splitlines(keepends=True)[1], fixed]
    )


def test_rows_of_a_notebook_are_those_of_its_cells(repository: Cli) -> None:
    def write(*sources: list[str]) -> None:
        cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": source} for source in sources]
        Path("n.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}, indent=1))

    write(["import torch\n", 'x = torch.zeros(3).to("cuda")'])
    commit()
    write(["import torch\n", 'x = torch.zeros(3).to("cuda")'], ["\n", 'y = torch.ones(3).to("cuda")'])
    done = repository("--diff-base", "HEAD", "n.ipynb")
    assert [line.partition(": DEV")[0] for line in done.out.splitlines() if "DEV" in line] == ["n.ipynb:cell 2:2:5"]


def test_a_users_diff_settings_change_nothing(repository: Cli) -> None:
    commit(a=OLD)
    for key, value in (
        ("diff.noprefix", "true"), ("diff.external", "false"), ("color.ui", "always"), ("diff.interHunkContext", "9"),
        ("diff.relative", "true"), ("diff.renames", "false"),
    ):  # fmt: skip
        git("config", key, value)
    Path("a.py").write_text(OLD + "\n" + NEW)
    assert places(repository("--diff-base", "HEAD")) == ["a.py:4:5:"]


@pytest.mark.parametrize("revision", ["nope", "--output=x", "a...b", "..."])
def test_an_unknown_revision_is_wrong_usage(repository: Cli, revision: str) -> None:
    commit(a=OLD)
    done = repository(f"--diff-base={revision}")
    assert done.code == 2
    assert "--diff-base: " in done.err


def test_outside_a_repository_it_is_wrong_usage(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    done = cli("--diff-base", "HEAD")
    assert done.code == 2
    assert "is not in a git repository" in done.err


def test_rows_that_look_like_headers_are_rows() -> None:
    diff = (
        b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1,2 @@\n--- a/x\n+++ b/x\n+@@ -9 +9 @@\n"
        b"\\ No newline at end of file\n@@ -7,0 +9,3 @@ def f():\n+1\n+2\n+3\n@@ -20,2 +24,0 @@\n-a\n-b\n"
    )
    assert parse_diff(diff) == {b"a.py": ((1, 2), (9, 11))}


def test_quoted_paths_are_read() -> None:
    diff = (
        b'--- "a/x"\n+++ "b/a\\tb\\"\\303\\251.py"\n@@ -0,0 +1 @@\n+1\n--- a/c d\n+++ b/c d.py\t\n@@ -1 +1 @@\n-1\n+2\n'
    )
    assert parse_diff(diff) == {'a\tb"é.py'.encode(): ((1, 1),), b"c d.py": ((1, 1),)}


@pytest.mark.parametrize(
    ("key", "attributes"),
    [
        ("core.fsmonitor", ""),
        ("filter.evil.clean", "*.py filter=evil\n"),
        ("filter.evil.process", "*.py filter=evil\n"),
        ("diff.evil.command", "*.py diff=evil\n"),
        ("diff.evil.textconv", "*.py diff=evil\n"),
        ("diff.external", ""),
    ],
)
def test_no_program_that_the_repository_names_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, attributes: str
) -> None:
    monkeypatch.chdir(tmp_path)
    git("init", "-q")
    Path("a.py").write_text("x = 1\n")
    git("add", ".")
    git("commit", "-qm", "first")
    Path("a.py").write_text("x = 1\ny = 2\n")
    Path(".gitattributes").write_text(attributes)
    evil = tmp_path / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\ncat\n")
    evil.chmod(0o755)
    git("config", key, str(evil))
    git("config", "filter.evil.required", "true")
    (tmp_path / "ran").unlink(missing_ok=True)
    assert Changes("HEAD", str(tmp_path)).rows("a.py") == ((2, 2),)
    assert not (tmp_path / "ran").exists()

"""The files of a project: which directory it is, what is listed of it, and what mentions a name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from devlint import project_files
from devlint.project_files import Files, ProjectFiles


def write(folder: Path, *paths: str, text: str = "def f(): ...\n") -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def around(folder: Path) -> Files:
    files = ProjectFiles().around(str(folder))
    assert files is not None
    return files


def test_project_reaches_up_to_its_mark(tmp_path: Path) -> None:
    write(tmp_path, "one/pyproject.toml", "one/src/pack/a.py", "one/scripts/b.py", "two/c.py")
    files = around(tmp_path / "one" / "src" / "pack")
    assert files.root == str(tmp_path / "one")
    assert list(files.states) == ["scripts/b.py", "src/pack/a.py"]


def test_without_a_mark_it_reaches_up_as_far_as_there_is_python(tmp_path: Path) -> None:
    write(tmp_path, "work/train.py", "work/models/net.py", "notes/plan.txt")
    assert around(tmp_path / "work" / "models").root == str(tmp_path / "work")


def test_tests_environments_and_hidden_directories_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, "setup.py", "a.py", "tests/b.py", "test_c.py", ".tox/d.py", "tools/pyvenv.cfg", "tools/e.py")
    assert list(around(tmp_path).states) == ["a.py", "setup.py"]


def test_part_of_a_project_that_is_too_large_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_files, "FILES", 3)
    write(tmp_path, "setup.py", "a/x.py", "a/y.py", "b/z.py")
    assert around(tmp_path / "a").root == str(tmp_path / "a")


def test_directory_with_too_many_files_is_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_files, "FILES", 1)
    write(tmp_path, "a.py", "b.py")
    assert ProjectFiles().around(str(tmp_path)) is None


def test_names_are_found_as_words(tmp_path: Path) -> None:
    write(tmp_path, "a.py", text="from b import mask\n")
    write(tmp_path, "b.py", text="masks = mask_all = unmask = 1\n")
    assert around(tmp_path).mentioning("mask") == ["a.py"]


def test_changed_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_files, "FRESH", -1.0)
    write(tmp_path, "a.py", "b.py")
    files = ProjectFiles()
    before = files.around(str(tmp_path))
    assert before is not None and before.mentioning("mask") == []
    write(tmp_path, "b.py", text="mask = 1\n")
    after = files.around(str(tmp_path))
    assert after is not None and after.mentioning("mask") == ["b.py"]
    assert after.listing != before.listing


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="needs links")
def test_links_in_a_circle_end(tmp_path: Path) -> None:
    write(tmp_path, "a.py")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    assert list(around(tmp_path).states) == ["a.py"]


def test_file_that_cannot_be_read_mentions_nothing(tmp_path: Path) -> None:
    write(tmp_path, "a.py")
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere.py")
    assert around(tmp_path).mentioning("f") == ["a.py"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_with_the_name_of_a_file_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, "pyproject.toml", "a.py")
    os.mkfifo(tmp_path / "b.py")
    assert list(around(tmp_path).states) == ["a.py"]


def test_part_of_a_project_knows_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_files, "FILES", 3)
    write(tmp_path, "setup.py", "a/x.py", "a/y.py", "b/z.py")
    assert around(tmp_path / "a").whole == str(tmp_path)

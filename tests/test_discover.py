"""Discovery: which files a run checks."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from devlint.config import Resolver
from devlint.discover import Finder, Found


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make(root: Path, *names: str, text: str = "") -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def find(
    *paths: str,
    force_exclude: bool | None = None,
    exclude: Sequence[str] | None = None,
    extend_exclude: Sequence[str] = (),
) -> Found:
    return Finder(Resolver(), force_exclude, exclude, extend_exclude).find(paths or ["."])


def names(found: Found) -> list[str]:
    return [target.name.replace(os.sep, "/") for target in found.targets]


def test_a_directory_is_walked_in_order_of_names(tree: Path) -> None:
    make(tree, "b.py", "a/z.py", "a/b/c.pyi", "c.pyw", "notes.txt", "Makefile")
    assert names(find()) == ["a/b/c.pyi", "a/z.py", "b.py", "c.pyw"]


def test_paths_keep_the_order_in_which_they_were_given(tree: Path) -> None:
    make(tree, "a.py", "b.py", "c.py")
    assert names(find("c.py", "a.py")) == ["c.py", "a.py"]


def test_a_file_is_found_once(tree: Path) -> None:
    make(tree, "pkg/a.py")
    assert names(find("pkg/a.py", "pkg", "./pkg/../pkg/a.py")) == ["pkg/a.py"]


def test_files_outside_the_current_directory_are_named_by_their_full_path(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tree, "here/x.py", "there/a.py")
    monkeypatch.chdir(tree / "here")
    assert names(find("../there")) == [str(tree / "there" / "a.py").replace(os.sep, "/")]


def test_directories_that_hold_no_sources_of_the_project_are_left_out(tree: Path) -> None:
    make(tree, "a.py", ".venv/lib/b.py", "venv/c.py", "build/d.py", "x/__pycache__/e.py", "lib/site-packages/f.py")
    assert names(find()) == ["a.py"]


def test_a_missing_path_is_reported_and_the_others_are_found(tree: Path) -> None:
    make(tree, "a.py")
    found = find("no.py", "a.py")
    assert found.problems == ["no.py: no such file or directory"]
    assert names(found) == ["a.py"]


def test_an_explicit_file_is_found_whatever_its_suffix(tree: Path) -> None:
    make(tree, "script")
    assert names(find("script")) == ["script"]


def test_an_explicit_file_is_found_although_it_is_excluded(tree: Path) -> None:
    make(tree, "build/a.py", "b.py")
    make(tree, "devlint.toml", text='extend-exclude = ["b.py"]')
    assert names(find("build/a.py", "b.py")) == ["build/a.py", "b.py"]


def test_an_explicit_directory_is_walked_although_it_is_excluded(tree: Path) -> None:
    make(tree, "build/a.py", "build/dist/b.py")
    assert names(find("build")) == ["build/a.py"]


def test_force_exclude_leaves_out_explicit_files(tree: Path) -> None:
    make(tree, "build/sub/a.py", "b.py", "c.py")
    make(tree, "devlint.toml", text='extend-exclude = ["b.*"]')
    found = find("build/sub/a.py", "b.py", "c.py", force_exclude=True)
    assert names(found) == ["c.py"]
    assert found.excluded == ["build/sub/a.py", "b.py"]


def test_force_exclude_can_be_configured_and_switched_off_again(tree: Path) -> None:
    make(tree, "build/a.py")
    make(tree, "devlint.toml", text="force-exclude = true")
    assert names(find("build/a.py")) == []
    assert names(find("build/a.py", force_exclude=False)) == ["build/a.py"]


def test_force_exclude_does_not_look_above_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "build/project/a.py")
    monkeypatch.chdir(tmp_path / "build" / "project")
    assert names(find("a.py", force_exclude=True)) == ["a.py"]


def test_exclude_patterns_are_relative_to_their_file(tree: Path) -> None:
    make(tree, "inner/devlint.toml", text='extend-exclude = ["gen/*.py", "!gen/keep.py", "/top.py"]')
    make(tree, "inner/gen/a.py", "inner/gen/keep.py", "inner/top.py", "inner/sub/top.py", "top.py", "gen/a.py")
    assert names(find()) == ["gen/a.py", "inner/gen/keep.py", "inner/sub/top.py", "top.py"]


def test_exclude_replaces_and_extend_exclude_extends_the_defaults(tree: Path) -> None:
    make(tree, "build/a.py", "mine/b.py", "c.py")
    make(tree, "devlint.toml", text='exclude = ["mine"]')
    assert names(find()) == ["build/a.py", "c.py"]
    assert names(find(exclude=["c.py"])) == ["build/a.py", "mine/b.py"]
    assert names(find(extend_exclude=["build"])) == ["c.py"]


def test_each_file_has_the_configuration_nearest_to_it(tree: Path) -> None:
    make(tree, "a.py", "sub/b.py")
    make(tree, "devlint.toml", text='ignore = ["DEV1"]')
    make(tree, "sub/pyproject.toml", text='[tool.devlint]\nignore = ["DEV2"]')
    assert [target.config.ignore for target in find().targets] == [("DEV1",), ("DEV2",)]


def test_git_ignored_files_are_left_out(tree: Path) -> None:
    (tree / ".git").mkdir()
    make(tree, ".gitignore", text="*_gen.py\nout/\n!keep_gen.py\n")
    make(tree, "a.py", "b_gen.py", "keep_gen.py", "out/c.py", "sub/out/d.py")
    assert names(find()) == ["a.py", "keep_gen.py"]


def test_a_nested_ignore_file_overrules_the_outer_one(tree: Path) -> None:
    (tree / ".git").mkdir()
    make(tree, ".gitignore", text="*_gen.py\n")
    make(tree, "sub/.gitignore", text="!*_gen.py\n/local.py\n")
    make(tree, "a_gen.py", "sub/a_gen.py", "sub/local.py", "sub/deep/local.py")
    assert names(find()) == ["sub/a_gen.py", "sub/deep/local.py"]


def test_ignore_files_above_the_walked_directory_count(tree: Path) -> None:
    (tree / ".git").mkdir()
    make(tree, ".gitignore", text="sub/gen/\n")
    make(tree, "sub/a.py", "sub/gen/b.py")
    assert names(find("sub")) == ["sub/a.py"]


def test_the_repositorys_own_exclude_file_counts(tree: Path) -> None:
    make(tree, ".git/info/exclude", text="scratch.py\n")
    make(tree, "a.py", "scratch.py")
    assert names(find()) == ["a.py"]


def test_the_exclude_file_of_a_linked_work_tree_is_the_main_repositorys(tree: Path) -> None:
    make(tree, "main/.git/info/exclude", text="scratch.py\n")
    make(tree, "main/.git/worktrees/side/commondir", text="../..\n")
    make(tree, "side/.git", text=f"gitdir: {tree / 'main' / '.git' / 'worktrees' / 'side'}\n")
    make(tree, "side/a.py", "side/scratch.py")
    assert names(find("side")) == ["side/a.py"]


def test_ignore_files_mean_nothing_outside_a_work_tree(tree: Path) -> None:
    make(tree, ".gitignore", text="a.py\n")
    make(tree, "a.py")
    assert names(find()) == ["a.py"]


def test_a_repository_inside_a_directory_has_its_own_ignore_files(tree: Path) -> None:
    make(tree, "one/.git/HEAD", "two/a_gen.py", "one/a_gen.py", "one/b.py")
    make(tree, "one/.gitignore", text="*_gen.py\n")
    assert names(find()) == ["one/b.py", "two/a_gen.py"]


def test_a_git_ignored_file_that_is_named_is_checked_even_with_force_exclude(tree: Path) -> None:
    (tree / ".git").mkdir()
    make(tree, ".gitignore", text="a.py\nout/\n")
    make(tree, "a.py", "out/b.py")
    assert names(find("a.py", "out", force_exclude=True)) == ["a.py", "out/b.py"]


def test_a_bad_line_of_an_ignore_file_is_passed_over_as_git_does(tree: Path) -> None:
    (tree / ".git").mkdir()
    make(tree, ".gitignore", text="!\nb.py\n")
    make(tree, "a.py", "b.py")
    assert names(find()) == ["a.py"]


def test_the_walk_agrees_with_git(tree: Path) -> None:
    """`git ls-files --exclude-standard` on a tree with the usual patterns is the oracle."""
    try:
        subprocess.run(["git", "init", "-q", "."], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("git is not installed")
    make(tree, ".gitignore", text="# comment\n*.log.py\n/top.py\ndata/**/gen/\n!data/keep/gen/\n[ab]?.py\nsp ace.py\n")
    make(tree, "sub/.gitignore", text="*\n!*/\n!ok.py\n")
    make(
        tree, "x.log.py", "top.py", "sub/top.py", "data/a/b/gen/x.py", "data/keep/gen/x.py", "a1.py", "c1.py", "ab1.py"
    )
    make(tree, "sub/ok.py", "sub/deep/ok.py", "sub/deep/no.py", "sp ace.py", "data/gen.py")
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard", "-z", "*.py"], check=True, capture_output=True, text=True
    )
    assert sorted(names(find())) == sorted(filter(None, listed.stdout.split("\0")))


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no symbolic links here")
def test_symbolic_links_to_directories_are_not_followed(tree: Path) -> None:
    make(tree, "real/a.py")
    (tree / "real" / "loop").symlink_to(tree / "real", target_is_directory=True)
    (tree / "link.py").symlink_to(tree / "real" / "a.py")
    (tree / "broken.py").symlink_to(tree / "nowhere.py")
    found = find()
    assert names(found) == ["real/a.py"]
    assert found.problems == []
    assert find("broken.py").problems == ["broken.py: broken symbolic link"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="needs a user whom permissions bind")
def test_a_directory_that_may_not_be_read_is_reported(tree: Path) -> None:
    make(tree, "closed/a.py", "b.py")
    (tree / "closed").chmod(0)
    try:
        found = find()
    finally:
        (tree / "closed").chmod(0o755)
    assert (names(found), found.problems) == (["b.py"], ["closed: cannot read directory: Permission denied"])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("", ["pkg/a.py", "pkg/b.pyi", "run.py"]),
        ('include = ["*.pyi"]', ["pkg/b.pyi"]),
        (
            'extend-include = ["*.pyt", "tools/launch"]',
            ["pkg/a.py", "pkg/b.pyi", "pkg/d.pyt", "run.py", "tools/launch"],
        ),
        ('include = ["pkg/"]', ["pkg/a.py", "pkg/b.pyi"]),
        ('include = ["pkg/*.py"]', ["pkg/a.py"]),
        ('include = ["*.py", "!run.py"]', ["pkg/a.py"]),
        ('include = ["pkg/"]\nexclude = ["a.py"]', ["pkg/b.pyi"]),
    ],
    ids=["default", "ending", "more", "directory", "below", "negated", "excluded"],
)
def test_include_says_what_is_checked_in_directories(tree: Path, settings: str, expected: list[str]) -> None:
    make(tree, "pkg/a.py", "pkg/b.pyi", "pkg/c.txt", "pkg/d.pyt", "run.py", "tools/launch", "tools/other")
    (tree / "devlint.toml").write_text(settings)
    assert names(find()) == expected


def test_a_file_that_is_named_needs_no_include(tree: Path) -> None:
    make(tree, "a.py", "b.py")
    (tree / "devlint.toml").write_text('include = ["a.py"]')
    assert names(find("b.py")) == ["b.py"]

"""Patterns of .gitignore: one entry at a time, as git decides."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devlint.gitignore import PatternList


@pytest.mark.parametrize(
    ("pattern", "path", "ignored"),
    [
        ("a.py", "a.py", True),
        ("a.py", "deep/er/a.py", True),
        ("a.py", "ba.py", False),
        ("/a.py", "deep/a.py", False),
        ("/*", "a.py", True),
        ("/*", "deep/a.py", False),
        ("/*.py", "deep/a.py", False),
        ("deep/a.py", "more/deep/a.py", False),
        ("*.py", "deep/a.py", True),
        ("?.py", "a.py", True),
        ("?.py", "ab.py", False),
        ("[ab].py", "b.py", True),
        ("[!ab].py", "b.py", False),
        ("[!ab].py", "c.py", True),
        ("[[:digit:]].py", "7.py", True),
        ("[]x].py", "].py", True),
        ("d/*", "d/a.py", True),
        ("d/*", "d/e/a.py", False),
        ("d/**", "d/e/a.py", True),
        ("**/a.py", "x/y/a.py", True),
        ("d/**/a.py", "d/a.py", True),
        ("d/**/a.py", "d/x/y/a.py", True),
        ("a**.py", "abc.py", True),
        (r"\#a.py", "#a.py", True),
        (r"\!a.py", "!a.py", True),
        ("a.py  ", "a.py", True),
        ("[a.py", "[a.py", False),
        ("a.py\\", "a.py", False),
    ],
)
def test_a_pattern_decides_about_a_file(pattern: str, path: str, ignored: bool) -> None:
    assert bool(PatternList([pattern]).decide(path, False)) is ignored


def test_a_slash_at_the_end_means_directories_only() -> None:
    assert PatternList(["out/"]).decide("x/out", True) is True
    assert PatternList(["out/"]).decide("x/out", False) is None


def test_what_is_below_a_directory_does_not_include_it() -> None:
    assert PatternList(["d/**"]).decide("d", True) is None


def test_the_last_matching_pattern_decides() -> None:
    patterns = PatternList(["*", "!*/", "!keep.py"])
    assert patterns.decide("sub", True) is False
    assert patterns.decide("sub/keep.py", False) is False
    assert patterns.decide("sub/a.py", False) is True


def test_comments_and_blank_lines_are_no_patterns() -> None:
    assert not PatternList(["# a.py", "", "   ", "/", "!"])


_PIECES = st.sampled_from(
    ["a", "b", "*", "**", "?", "/", "[ab]", "[!a]", "[a", "\\", "!", " ", "]", "-", "[a-b]", "\\*"]
)
_LINE = st.lists(_PIECES, min_size=1, max_size=6).map("".join)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(lines=st.lists(_LINE, min_size=1, max_size=4))
def test_a_list_of_patterns_decides_as_git_does(lines: list[str], tmp_path: Path) -> None:
    """`git ls-files` on a fixed small tree is the oracle; the tree is walked from the top, as git does it."""
    files = ["a", "b", "ab", "d/a", "d/b", "d/ab/a", "d/ab/b", "b b/a", "a]", "d/-", "a-b/a/b/a"]
    if not (tmp_path / ".git").exists():
        subprocess.run(["git", "init", "-q", str(tmp_path)], check=True, capture_output=True)
        for name in files:
            if name in ("a", "b", "ab"):
                name = "top/" + name
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("")
    (tmp_path / ".gitignore").write_text("\n".join(lines) + "\n")
    listed = subprocess.run(
        ["git", "-c", "core.excludesFile=", "ls-files", "--others", "--exclude-standard", "-z"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    expected = {name for name in listed.stdout.split("\0") if name and name != ".gitignore"}
    assert _walk(PatternList(lines), tmp_path, "") == expected


def _walk(patterns: PatternList, directory: Path, prefix: str) -> set[str]:
    kept: set[str] = set()
    for entry in directory.iterdir():
        relative = prefix + entry.name
        if entry.name in (".git", ".gitignore") or patterns.decide(relative, entry.is_dir()):
            continue
        kept |= _walk(patterns, entry, relative + "/") if entry.is_dir() else {relative}
    return kept


_LONG = "a" * 200


@pytest.mark.parametrize(
    "pattern",
    [
        "*a" * 40 + "*b",
        "*a?" * 30 + "*[bc]",
        "d/" + "*a" * 40 + "b",
        "**/" * 12 + "*a" * 12 + "b",
        "**/" + "a*/**/" * 12 + "b",
        "*" + "[a-z]*" * 30 + "!",
    ],
)
def test_stars_cost_no_more_than_their_number(pattern: str) -> None:
    """Tried one after the other, the ways to share the letters out among the stars would take longer than a life."""
    names = [_LONG, "d/" + _LONG, "/".join(["a" * 10] * 60)]
    start = time.process_time()
    assert not any(PatternList([pattern]).decide(name, False) for name in names)
    assert time.process_time() - start < 2


def test_a_line_that_is_longer_than_a_path_matches_nothing() -> None:
    assert PatternList(["*a" * 500_000]).decide("aa", False) is None


@pytest.mark.parametrize(
    ("pattern", "path", "ignored"),
    [
        ("*a*b*c", "xaxbbxc", True),
        ("*a*b*c", "xaxcxb", False),
        ("*ab*ab", "xabab", True),
        ("*ab*ab", "xab", False),
        ("a*a", "a", False),
        ("x/**/y/*z", "x/y/q/y/z", True),
        ("x/**/y/**/z", "x/q/y/z", True),
        ("x/**/y/**/z", "x/q/z/y", False),
        (r"d\/a.py", "d/a.py", True),
    ],
)
def test_stars_share_out_what_there_is(pattern: str, path: str, ignored: bool) -> None:
    assert bool(PatternList([pattern]).decide(path, False)) is ignored

"""Atomic writing."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from devlint.errors import UsageError
from devlint.fix.write import write_file


def test_content_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    write_file(path, b"new\r\n")
    assert path.read_bytes() == b"new\r\n"
    assert os.listdir(tmp_path) == ["a.py"]


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX's")
def test_mode_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    path.chmod(0o754)
    write_file(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o754


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
def test_symbolic_link_stays_and_its_target_changes(tmp_path: Path) -> None:
    target, link = tmp_path / "target.py", tmp_path / "link.py"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write_file(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_read_only_file_is_an_error_and_untouched(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    path.chmod(0o444)
    with pytest.raises(UsageError, match=r"a\.py: cannot be written: the file is read-only"):
        write_file(path, b"new")
    assert path.read_bytes() == b"old"
    path.chmod(0o644)


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.py: cannot be written: No such file"):
        write_file(tmp_path / "none.py", b"new")


def test_file_that_changed_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"edited by hand")
    with pytest.raises(UsageError, match="changed while it was fixed"):
        write_file(path, b"new", expected=b"old")
    assert path.read_bytes() == b"edited by hand"


def test_failure_half_way_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="No space left on device"):
        write_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.py"]

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


# What belongs to a file beside its content


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
@pytest.mark.parametrize("others", [1, 2])
def test_hard_links_stay_one_file(tmp_path: Path, others: int) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"the old content")
    path.chmod(0o640)
    for number in range(others):
        os.link(path, tmp_path / f"other{number}.py")
    before = path.stat()
    write_file(path, b"new")
    for each in [path, *tmp_path.glob("other*.py")]:
        assert each.read_bytes() == b"new"
    after = path.stat()
    assert (after.st_ino, after.st_nlink, after.st_mode) == (before.st_ino, others + 1, before.st_mode)
    assert len(os.listdir(tmp_path)) == others + 1


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only the superuser gives files away")
@pytest.mark.parametrize(("owner", "group"), [(12345, 54321), (0, 54321), (12345, 0)])
def test_owner_and_group_are_kept(tmp_path: Path, owner: int, group: int) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    os.chown(path, owner, group)
    path.chmod(0o664)
    write_file(path, b"new")
    state = path.stat()
    assert (state.st_uid, state.st_gid, stat.S_IMODE(state.st_mode)) == (owner, group, 0o664)
    assert path.read_bytes() == b"new"


@pytest.mark.skipif(not hasattr(os, "chown"), reason="owners are POSIX's")
def test_file_of_an_owner_that_we_cannot_name_is_written_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"a longer old content")
    before = path.stat()
    real = os.stat

    def other_owner(name: str, **options: bool) -> os.stat_result:
        state = real(name, **options)
        if str(name).endswith(".devlint"):
            state = os.stat_result((*state[:4], state.st_uid + 1, *state[5:]))
        return state

    def refuse(*arguments: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "stat", other_owner)
    monkeypatch.setattr(os, "chown", refuse)
    write_file(path, b"new")
    monkeypatch.undo()
    assert (path.read_bytes(), path.stat().st_ino, os.listdir(tmp_path)) == (b"new", before.st_ino, ["a.py"])


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="attributes of Linux")
def test_extended_attributes_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    try:
        os.setxattr(path, "user.note", b"mine")
    except OSError:
        pytest.skip("not on this file system")
    write_file(path, b"new")
    assert (path.read_bytes(), os.getxattr(path, "user.note")) == (b"new", b"mine")


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
def test_failure_in_place_gives_the_old_content_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"the old content")
    os.link(path, tmp_path / "b.py")
    synced = []

    def fails_in_place(handle: int) -> None:
        synced.append(handle)
        if len(synced) == 2:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fails_in_place)
    with pytest.raises(UsageError, match="Input/output error"):
        write_file(path, b"new")
    assert (path.read_bytes(), sorted(os.listdir(tmp_path))) == (b"the old content", ["a.py", "b.py"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a forked process")
@pytest.mark.parametrize("moment", ["before", "half way", "after"])
def test_file_with_two_names_is_whole_beside_itself_when_killed_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"the old content")
    os.link(path, tmp_path / "b.py")

    def killed(target: Path, content: bytes) -> None:
        with open(target, "r+b") as file:
            file.write({"before": b"", "half way": content[:2], "after": content}[moment])
            file.flush()
            os._exit(9)

    monkeypatch.setattr("devlint.fix.write._overwrite", killed)
    child = os.fork()
    if child == 0:
        write_file(path, b"new content")
        os._exit(0)
    assert os.waitpid(child, 0)[1] >> 8 == 9
    beside = [each.read_bytes() for each in tmp_path.iterdir() if each.name not in ("a.py", "b.py")]
    assert beside == [b"new content"]
    assert path.stat().st_nlink == 2


def test_name_as_long_as_names_may_be(tmp_path: Path) -> None:
    path = tmp_path / ("a" * 250 + ".py")
    path.write_bytes(b"old")
    write_file(path, b"new")
    assert path.read_bytes() == b"new"

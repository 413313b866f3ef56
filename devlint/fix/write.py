"""Writes a file so that it is the old one or the new one at any moment, and keeps all that belongs to it."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
import threading
from pathlib import Path

from devlint.errors import UsageError
from devlint.reading import LARGEST_NOTEBOOK, read_regular

NAME = 40  # characters of a name in that of the file beside it: up to 4 bytes each, of the 255 that a name may have

#: Held while a file is written: a process that is told to end waits for it.
WRITING = threading.Lock()
_ANYONE_MAY_WRITE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def write_file(path: Path, content: bytes, expected: bytes | None = None) -> None:
    """Replace the content of an existing file, keeping its mode, its owner, and its other names.

    A symbolic link stays one and its target changes. A file with several names, or of an owner that we cannot give a new
    file to, is written in place: for a moment it holds a part of the new content, all of which then lies beside it.

    `expected`: the bytes that the new content was made from; another content on the disk is not overwritten. Raises
    UsageError naming the file when it is read-only, was changed meanwhile, or cannot be written; it is then untouched.
    """
    target = Path(os.path.realpath(path))
    try:
        if not target.stat().st_mode & _ANYONE_MAY_WRITE or not os.access(target, os.W_OK):
            raise UsageError(f"{path}: cannot be written: the file is read-only")
        if expected is not None and read_regular(target, LARGEST_NOTEBOOK) != expected:
            raise UsageError(f"{path}: not written: the file changed while it was fixed")
        with WRITING:
            _write(target, content)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error


def _write(target: Path, content: bytes) -> None:
    # In the same directory, since a rename across file systems is a copy.
    handle, name = tempfile.mkstemp(prefix=f".{target.name[:NAME]}.", suffix=".devlint", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if _takes_the_place(name, target):
            os.replace(name, target)
            return
        _write_in_place(target, content)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    os.unlink(name)


def _takes_the_place(name: str, target: Path) -> bool:
    """Give a new file what belongs to an old one beside its content; whether nothing would be lost with the old one."""
    state = target.stat()
    if state.st_nlink > 1:
        return False
    if hasattr(os, "chown"):
        own = os.stat(name)
        if (own.st_uid, own.st_gid) != (state.st_uid, state.st_gid):
            try:
                os.chown(name, state.st_uid, state.st_gid)
            except OSError:
                return False
    shutil.copymode(target, name)
    return _same_attributes(name, target)


def _same_attributes(name: str, target: Path) -> bool:
    """Copy the extended attributes, among them access lists; whether the new file has all of them."""
    if not hasattr(os, "listxattr"):
        return True
    try:
        for each in os.listxattr(target):
            value = os.getxattr(target, each)
            if each not in os.listxattr(name) or os.getxattr(name, each) != value:
                os.setxattr(name, each, value)
    except OSError as error:
        return error.errno == errno.ENOTSUP
    return True


def _write_in_place(target: Path, content: bytes) -> None:
    before = read_regular(target, LARGEST_NOTEBOOK)
    try:
        _overwrite(target, content)
    except BaseException:
        with contextlib.suppress(OSError):
            _overwrite(target, before)
        raise


def _overwrite(target: Path, content: bytes) -> None:
    with open(target, "r+b") as file:
        file.write(content)
        file.flush()
        file.truncate()
        os.fsync(file.fileno())

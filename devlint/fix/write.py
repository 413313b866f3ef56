"""Writes a file so that it is the old one or the new one at any moment, never a part of either."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

from devlint.errors import UsageError

_ANYONE_MAY_WRITE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def write_file(path: Path, content: bytes, expected: bytes | None = None) -> None:
    """Replace the content of an existing file, keeping its mode; a symbolic link stays one and its target changes.

    `expected`: the bytes that the new content was made from; another content on the disk is not overwritten. Raises
    UsageError naming the file when it is read-only, was changed meanwhile, or cannot be written; it is then untouched.
    """
    target = Path(os.path.realpath(path))
    try:
        if not target.stat().st_mode & _ANYONE_MAY_WRITE or not os.access(target, os.W_OK):
            raise UsageError(f"{path}: cannot be written: the file is read-only")
        if expected is not None and target.read_bytes() != expected:
            raise UsageError(f"{path}: not written: the file changed while it was fixed")
        _replace(target, content)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error


def _replace(target: Path, content: bytes) -> None:
    # In the same directory, since a rename across file systems is a copy.
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".devlint", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(target, name)
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise

"""Reading what a tree that nobody vouches for holds: regular files of a bounded size, nothing else.

A name of a tree may lead to a pipe that never ends, to a device with effects of its own or to more bytes than there is
memory. It is looked at before it is opened, and once more when it is open.
"""

from __future__ import annotations

import errno
import os
import stat

#: Python, and text that holds some. The syntax tree of a file takes a hundred times its size.
LARGEST_SOURCE = 16_000_000
#: Notebooks keep pictures and tables beside their code. GitHub takes no file that is larger.
LARGEST_NOTEBOOK = 100_000_000
#: Settings, requirements, ignore files.
LARGEST_SETTINGS = 1_000_000

_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_BINARY", "O_CLOEXEC", "O_NOCTTY", "O_NONBLOCK"))


def read_regular(path: str | os.PathLike[str], largest: int) -> bytes:
    """The bytes of a regular file. Raises OSError when it is none, is larger than `largest`, or cannot be read."""
    _check(os.stat(path), largest)
    handle = os.open(path, _FLAGS)
    with open(handle, "rb") as file:
        state = os.fstat(handle)
        _check(state, largest)
        if state.st_size == 0:  # of a file of the kernel's, too, whose reader may wait for ever: /proc/kmsg
            return b""
        raw = file.read(largest + 1)
    if len(raw) > largest:
        raise _too_large(largest)
    return raw


def is_regular(path: str | os.PathLike[str]) -> bool:
    """Whether a path leads to a regular file; not for what cannot be looked at, as a link to itself."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _check(state: os.stat_result, largest: int) -> None:
    if not stat.S_ISREG(state.st_mode):
        is_folder = stat.S_ISDIR(state.st_mode)
        raise OSError(errno.EISDIR if is_folder else errno.EINVAL, "is a directory" if is_folder else "no regular file")
    if state.st_size > largest:
        raise _too_large(largest)


def _too_large(largest: int) -> OSError:
    return OSError(errno.EFBIG, f"larger than {largest // 1_000_000} MB")

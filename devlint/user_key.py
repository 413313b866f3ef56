"""A secret of the user's, by which devlint knows what it wrote itself from what a repository brings along.

It lies in the user's own cache directory: `$XDG_CACHE_HOME/devlint/key`, `~/.cache/devlint/key`, on Windows below
`%LOCALAPPDATA%`. One that others may read, or that is damaged, is made anew.
"""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from devlint.reading import read_regular

SIZE = 32


def user_key(tree: str) -> bytes | None:
    """The secret; None where it cannot be kept, or would be kept in the tree that is checked."""
    folder = _folder()
    if folder is None or (os.path.realpath(folder) + os.sep).startswith(os.path.realpath(tree).rstrip(os.sep) + os.sep):
        return None
    path = folder / "key"
    try:
        return _read(path) or _make(path)
    except (OSError, ValueError):
        return None


def _folder() -> Path | None:
    given = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", "")
    if not os.path.isabs(given):  # as the XDG base directory specification says of it
        given = os.path.join(os.path.expanduser("~"), ".cache")
    return Path(given, "devlint") if os.path.isabs(given) else None


def _read(path: Path) -> bytes | None:
    try:
        state, raw = path.lstat(), read_regular(path, SIZE)
    except OSError:
        return None
    if hasattr(os, "getuid") and (state.st_uid != os.getuid() or stat.S_IMODE(state.st_mode) & 0o077):
        return None
    return raw if len(raw) == SIZE else None


def _make(path: Path) -> bytes | None:
    """Make a key; what another process has made in the meantime counts. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".key.", dir=path.parent)  # that others may not read
    with os.fdopen(handle, "wb") as file:
        file.write(secrets.token_bytes(SIZE))
    with suppress(OSError):
        os.link(name, path)
    if _read(path) is None:  # there are no links here, or a key that is no good is in the way
        os.replace(name, path)
    else:
        os.unlink(name)
    return _read(path)

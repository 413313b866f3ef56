"""Which files a process writes, and what is in them at its end. Free of torch, which is handed in.

Seen are files that Python opens for writing, and what `torch.save` is given by name.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Collection
from typing import Any

MOST_FILES = 200
MOST_BYTES = 64 * 1024 * 1024
MOST_TEXT = 64 * 1024
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC


class Written:
    """Notes the files that are opened for writing. own: folders of devlint's; program: those of the program's files."""

    def __init__(self, own: Collection[str], program: Collection[str]) -> None:
        self._folder = os.getcwd()
        self._own = tuple(os.path.join(os.path.realpath(each), "") for each in own if each)
        self._program = tuple(os.path.join(os.path.realpath(each), "") for each in (*program, self._folder))
        self._paths: dict[str, None] = {}

    def install(self, torch: Any) -> None:
        """From now on, note; for the rest of this process."""

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if event == "open" and len(arguments) == 3:
                path, mode, flags = arguments
                if any(each in mode for each in "wax+") if isinstance(mode, str) else (flags or 0) & _WRITING:
                    self._note(path)

        sys.addaudithook(hook)
        plain = torch.save

        def save(obj: Any, f: Any, *arguments: Any, **named: Any) -> Any:
            self._note(f)
            return plain(obj, f, *arguments, **named)

        save.__doc__, save.__name__ = plain.__doc__, plain.__name__
        torch.save = save

    def _note(self, path: Any) -> None:
        if len(self._paths) < MOST_FILES and isinstance(path, (str, bytes, os.PathLike)):
            with contextlib.suppress(Exception):
                self._paths[os.path.abspath(os.fsdecode(path))] = None

    def rows(self) -> dict[str, list[str]]:
        """By path, relative where it lies in the folder: a checksum of the content, and of a small text the text."""
        found = {}
        for path in list(self._paths):
            real = os.path.realpath(path)
            temporary = real.startswith(os.path.join(os.path.realpath(tempfile.gettempdir()), ""))
            if real.startswith(self._own) or (temporary and not real.startswith(self._program)):
                continue
            with contextlib.suppress(OSError):
                status = os.stat(real)
                if stat.S_ISREG(status.st_mode) and status.st_size <= MOST_BYTES:
                    with open(real, "rb") as file:
                        found[self._shown(path)] = _content(file.read())
        return found

    def _shown(self, path: str) -> str:
        inside = path.startswith(os.path.join(self._folder, ""))
        return os.path.relpath(path, self._folder) if inside else path


def _content(data: bytes) -> list[str]:
    text = ""
    if len(data) <= MOST_TEXT:
        with contextlib.suppress(UnicodeDecodeError):
            text = data.decode()
    return [hashlib.sha1(data, usedforsecurity=False).hexdigest(), text]

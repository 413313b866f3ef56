"""The state of a file on disk: what tells whether it is still the one that was read."""

from __future__ import annotations

import hashlib
import os
import time
from typing import NamedTuple

from devlint.reading import LARGEST_NOTEBOOK, read_regular

SETTLED = 2_000_000_000  # nanoseconds: how long a file must have been unchanged for its metadata to stand for it


class FileState(NamedTuple):
    """A file as it was at the time `when` (nanoseconds). `size` is -1 when there was none; `content` is a digest in hex."""

    size: int
    mtime: int
    inode: int
    when: int
    content: str = ""

    @classmethod
    def of(cls, path: str) -> FileState:
        """The state now, without the content; to be asked before the file is read."""
        when = time.time_ns()
        try:
            state = os.stat(path)
        except OSError:
            return cls.absent()
        return cls(state.st_size, state.st_mtime_ns, state.st_ino, when)

    @classmethod
    def absent(cls) -> FileState:
        return cls(-1, 0, 0, 0)

    @property
    def exists(self) -> bool:
        return self.size >= 0

    @property
    def settled(self) -> bool:
        """Whether the metadata stand for the content: a file system's clock may not tell two changes of one tick apart."""
        return not self.exists or self.when - self.mtime >= SETTLED

    def line(self, path: str) -> str:
        """The state and the path it is of as one line of text, which `of_line` reads."""
        return f"{self.size} {self.mtime} {self.inode} {self.when} {self.content or '-'} {path}"

    @classmethod
    def of_line(cls, line: str) -> tuple[str, FileState]:
        """Path and state of a `line`. Raises ValueError for what is none."""
        size, mtime, inode, when, content, path = line.split(" ", 5)
        return path, cls(int(size), int(mtime), int(inode), int(when), "" if content == "-" else content)

    def same_metadata(self, other: FileState) -> bool:
        return (self.size, self.mtime, self.inode) == (other.size, other.mtime, other.inode)

    def with_content(self, raw: bytes) -> FileState:
        return self._replace(content=content_digest(raw))

    def holds(self, path: str) -> bool:
        """Whether the file at `path` is now as it was, by its metadata where they suffice, else by its content."""
        now = FileState.of(path)
        if now.exists != self.exists or now.size != self.size:
            return False
        if not self.exists or (self.same_metadata(now) and self.settled):
            return True
        try:
            return content_digest(read_regular(path, LARGEST_NOTEBOOK)) == self.content
        except OSError:
            return False


def content_digest(raw: bytes) -> str:
    """32 hexadecimal digits that stand for the content of a file."""
    return hashlib.blake2b(raw, digest_size=16).hexdigest()

"""Writing to a terminal or a pipe: when to colour, what cannot be printed, and readers that go away."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TextIO

from devlint.errors import UsageError


def wants_color(choice: str, stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether to colour: the option first, then NO_COLOR, FORCE_COLOR and CLICOLOR_FORCE, TERM, and last the stream."""
    if choice != "auto":
        return choice == "always"
    if environ.get("NO_COLOR"):
        return False
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):
        if environ.get(name, "0") not in ("", "0"):
            return True
    return environ.get("TERM") != "dumb" and stream.isatty()


def wants_links(color: bool, stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether to write hyperlinks (OSC 8): to a terminal in colour, with a person in front of it."""
    unattended = any(environ.get(name) for name in ("CI", "PRE_COMMIT"))
    return color and not unattended and environ.get("TERM") != "dumb" and stream.isatty()


class Style:
    """Colours and links for the parts of a report; plain text when they are off. No dataclass: `--version` imports
    this."""

    __slots__ = ("color", "links")

    def __init__(self, color: bool = False, links: bool = False) -> None:
        self.color = color
        self.links = links

    def link(self, text: str, path: str) -> str:
        """`text`, which a click takes to a file of this machine."""
        if not self.links:
            return text
        from pathlib import Path

        return f"\x1b]8;;{Path(os.path.abspath(path)).as_uri()}\x1b\\{text}\x1b]8;;\x1b\\"

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and text else text

    def bold(self, text: str) -> str:
        return self._paint("1", text)

    def code(self, text: str) -> str:
        return self._paint("1;31", text)

    def mark(self, text: str) -> str:
        return self._paint("1;36", text)

    def frame(self, text: str) -> str:
        return self._paint("1;34", text)

    def caret(self, text: str) -> str:
        return self._paint("1;31", text)

    def second(self, text: str) -> str:
        return self._paint("1;34", text)

    def removed(self, text: str) -> str:
        return self._paint("31", text)

    def added(self, text: str) -> str:
        return self._paint("32", text)

    def good(self, text: str) -> str:
        return self._paint("1;32", text)


PLAIN = Style()


def printable(text: str) -> str:
    """`text` with control characters made visible, so that a file's content cannot steer the terminal."""
    if text.isprintable():
        return text
    return "".join(
        char if char >= " " and char != "\x7f" and not "\x80" <= char <= "\x9f" else "\ufffd" for char in text
    )


def _style(choice: str, stream: TextIO) -> Style:
    color = wants_color(choice, stream, os.environ)
    return Style(color, wants_links(color, stream, os.environ))


class Terminal:
    """Standard output and error of one run. Once a reader has closed its end, the rest is dropped in silence."""

    def __init__(self, color: str = "auto") -> None:
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # closed by the caller
                setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        for stream in (sys.stdout, sys.stderr):
            reconfigure = getattr(stream, "reconfigure", None)
            if reconfigure is not None:
                reconfigure(errors="replace")
        self.style = _style(color, sys.stdout)
        self.error_style = _style(color, sys.stderr)
        if os.name == "nt" and (self.style.color or self.error_style.color):
            os.system("")  # makes the Windows console interpret escape sequences
        self._closed = False

    def print(self, text: str) -> None:
        """A line to standard output."""
        self._write(sys.stdout, text + "\n")

    def write_bytes(self, data: bytes) -> None:
        """Raw bytes to standard output: fixed source text and diffs keep the encoding of their file."""
        buffer = getattr(sys.stdout, "buffer", None)
        if buffer is None:
            self._write(sys.stdout, data.decode("utf-8", "replace"))
        elif not self._closed:
            try:
                sys.stdout.flush()
                buffer.write(data)
                buffer.flush()
            except OSError as error:
                self._give_up(sys.stdout, error)

    def note(self, text: str) -> None:
        """A line to standard error."""
        self._write(sys.stderr, text + "\n")

    def error(self, text: str) -> None:
        self.note(f"{self.error_style.code('error')}: {text}")

    def warning(self, text: str) -> None:
        self.note(f"{self.error_style.bold('warning')}: {text}")

    def flush(self) -> None:
        """Write out what is buffered, so that a closed pipe is noticed here and not when the interpreter ends."""
        for stream in (sys.stdout, sys.stderr):
            self._write(stream, "")

    def _write(self, stream: TextIO, text: str) -> None:
        if self._closed and stream is sys.stdout:
            return
        try:
            stream.write(text)
            if not text or stream is sys.stderr:
                stream.flush()
        except OSError as error:
            self._give_up(stream, error)

    def _give_up(self, stream: TextIO, error: OSError) -> None:
        """Drop the stream; raises UsageError unless it is only that nobody reads it any more."""
        self._close(stream)
        if not isinstance(error, BrokenPipeError) and stream is sys.stdout:
            raise UsageError(f"cannot write to standard output: {error.strerror or error}") from error

    def _close(self, stream: TextIO) -> None:
        """Point the stream at the null device: the interpreter flushes it once more at the end."""
        if stream is sys.stdout:
            self._closed = True
        try:
            descriptor = os.open(os.devnull, os.O_WRONLY)
            os.dup2(descriptor, stream.fileno())
            os.close(descriptor)
        except (OSError, ValueError):
            return

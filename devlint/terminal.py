"""Writing to a terminal or a pipe: when to colour, what cannot be printed, and readers that go away."""

from __future__ import annotations

import os
import re
import stat
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


#: What changes how the text around it is shown, or is not seen itself: control characters, the ends of lines and
#: paragraphs, marks of direction, annotations and tags [Unicode 16, "Bidirectional Character Types" and "Special Areas"].
_STEERING = r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb\U000e0000-\U000e007f"
_STEERS = re.compile(f"[{_STEERING}]")
_STEERS_A_LINE = re.compile(f"(?!\n)[{_STEERING}]")
#: What a service takes for a command wherever it stands in a log: `##vso[` and `##[` of Azure Pipelines, GitHub's old
#: `##[`, `##teamcity[`.
_LOG_COMMAND = re.compile(r"(?<=#)#(?=\w*\[)")
#: What GitHub Actions takes for a command at the start of a line, blanks before it or not: `::error`.
_LINE_COMMAND = re.compile(r"^(\s*):(?=:\S)", re.MULTILINE)
#: What `Style` writes: colours, and links.
_STYLE = re.compile(r"(\x1b\[[0-9;]*m|\x1b\]8;[^;\x00-\x1f]*;[^\x00-\x1f]*\x1b\\)")
_REPLACED = "\ufffd"
LONGEST = 2_000  # characters of an error or a warning, which may quote what a file holds


def printable(text: str) -> str:
    """`text` on one line, such that a file's content can steer neither the terminal nor the service that keeps the log.

    Every character that does is replaced by one that shows, so that columns stay.
    """
    if not text.isprintable():
        text = _STEERS.sub(_REPLACED, text)
    return _LOG_COMMAND.sub(_REPLACED, text) if "##" in text else text


def printable_lines(text: str, styled: bool = False, commands: bool = False) -> str:
    """`printable` for several lines. `styled`: with colours and links; `commands`: with commands for a service."""
    if styled and "\x1b" in text:
        parts = _STYLE.split(text)  # every second one is a style
        text = "".join(part if index % 2 else _STEERS_A_LINE.sub(_REPLACED, part) for index, part in enumerate(parts))
    elif not text.isprintable():
        text = _STEERS_A_LINE.sub(_REPLACED, text)
    if commands:
        return text
    text = _LOG_COMMAND.sub(_REPLACED, text) if "##" in text else text
    return _LINE_COMMAND.sub(rf"\1{_REPLACED}", text) if "::" in text else text


def printable_report(text: str) -> str:
    """`printable_lines` for a report that quotes source code, whose tabs become blanks."""
    return printable_lines(text.replace("\t", "    "))


def _cropped(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."


def _is_seen(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether what is written to a stream is shown or kept in a log: on a terminal, and where a service runs the job.

    A file that it is redirected to is neither.
    """
    try:
        if stream.isatty():
            return True
        is_file = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False
    return not is_file and any(environ.get(name) for name in ("GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION"))


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

    def print(self, text: str, commands: bool = False) -> None:
        """Lines to standard output. `commands`: a report for a service, which may command it."""
        self._write(sys.stdout, printable_lines(text, self.style.color, commands) + "\n")

    def write_bytes(self, data: bytes) -> None:
        """Bytes to standard output: fixed source text and diffs keep the encoding of their file.

        They are raw where a program reads them. What a person sees, and a service that keeps a log, is text.
        """
        buffer = getattr(sys.stdout, "buffer", None)
        if buffer is None or self.style.color or _is_seen(sys.stdout, os.environ):
            text = data.decode("utf-8", "replace").replace("\r\n", "\n")
            self._write(sys.stdout, printable_lines(text.replace("\t", "    "), self.style.color))
        elif not self._closed:
            try:
                sys.stdout.flush()
                buffer.write(data)
                buffer.flush()
            except OSError as error:
                self._give_up(sys.stdout, error)

    def note(self, text: str, commands: bool = False) -> None:
        """Lines to standard error."""
        self._write(sys.stderr, printable_lines(text, self.error_style.color, commands) + "\n")

    def error(self, text: str) -> None:
        self.note(f"{self.error_style.code('error')}: {_cropped(printable(text))}")

    def warning(self, text: str) -> None:
        self.note(f"{self.error_style.bold('warning')}: {_cropped(printable(text))}")

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

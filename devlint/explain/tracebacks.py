"""The frames of a pasted traceback, in the forms in which Python, IPython, notebooks, rich and pytest print them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

_PYTHON = re.compile(r'File "(?P<path>[^"\n]+)", line (?P<row>\d{1,9})(?:, in (?P<name>[^\n]+))?')
_SHELL = re.compile(
    r"(?:^|\s|\[)(?:File )?(?P<path>(?:[A-Za-z]:|~|\.{0,2}/)?[^\s\"'|│\[]*[\w-]\.(?:py|ipynb)|<ipython-input-[^>]+>|"
    r"(?:Cell )?In *\[\d+\](?:, line \d+)?)(?:\]\([^)\s]*\))?(?::(?P<row>\d{1,9}))?,? (?:in )(?P<name><?[\w.]+[^\n(│]*)"
)
_RICH = re.compile(r"[│|] +(?P<path>\S+\.py):(?P<row>\d{1,9})(?: in (?P<name>[<>\w.]+)|\s*[│|]\s*$)")
_PYTEST = re.compile(r"^(?P<path>\S+\.py):(?P<row>\d{1,9}): (?:in (?P<name>[<>\w.]+)|[\w.]*$)")
_CELL = re.compile(r"Cell In *\[\d+\], line (?P<row>\d{1,9})")
_NUMBER = re.compile(r"In *\[(\d{1,9})\]|<ipython-input-(\d{1,9})-")
_ARROW = re.compile(r"^[\s│|]*(?:-+>|❱|>) *(?P<row>\d{1,9})\s?(?P<code>.*)$")
_MARK = re.compile(r"^> +(?P<code>.*)$")
_WRAPPED = re.compile(r"^\s*[│|] +in (?P<name>[<>\w.]+)")
_REPORT = re.compile(
    r"^devlint: [^\n]*, torch [\w.+]+\n(?:(?!devlint: )[^\n]*\n)*(?:devlint: \d+ error[^\n]*\n)?", re.MULTILINE
)
_HEAD = "Traceback (most recent call last)"
_CAUSE = "The above exception was the direct cause"
_CHAIN = "During handling of the above exception, another exception occurred"


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame: path and 1-based row as the traceback names them, the function, the source line where it is shown.

    `cell`: of a cell of a notebook the number of its execution; the row counts from the cell's first.
    """

    path: str
    row: int
    name: str
    code: str = ""
    cell: int = 0


def without_report(text: str) -> str:
    """A text without what `devlint run` prints after the program's own output, which names the same rows in its own form."""
    return _REPORT.sub("", text)


def frames(text: str) -> list[Frame]:
    """The frames of the last traceback in a text, the innermost one last. A chain of causes counts as one."""
    begin = max(text.rfind(_CHAIN) + 1, _head(text))
    return _once(_frames(text[begin:]) or _frames(text))


def all_frames(text: str) -> list[Frame]:
    """The frames of all tracebacks in a text."""
    return _frames(text)


def _once(found: list[Frame]) -> list[Frame]:
    """Frames without those that are printed twice in a row: by a recursion, or by two processes. One with its line stays."""
    kept: list[Frame] = []
    for frame in found:
        if kept and replace(frame, code="") == replace(kept[-1], code=""):
            kept[-1] = frame if frame.code else kept[-1]
        else:
            kept.append(frame)
    return kept


def _head(text: str) -> int:
    """Where the last traceback begins: at its head, or at that of the first one of its causes."""
    begin = text.rfind(_HEAD)
    while begin > 0:
        before = text.rfind(_HEAD, 0, begin)
        if _CAUSE not in text[max(before, 0) : begin] and not text.endswith("Original ", 0, begin):
            return begin
        begin = before
    return 0


def _frames(text: str) -> list[Frame]:
    found: list[Frame] = []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        match = _RICH.search(line) or _PYTHON.search(line) or _SHELL.search(line)
        if match is None:
            tested = _PYTEST.match(line)
            cell = _CELL.search(line)
            if tested is not None:
                found.append(_of_pytest(lines, number, tested))
            elif cell is not None:
                found.append(_numbered(_shown(lines, number, "<cell>", int(cell["row"]), "<module>", 0), line))
            continue
        row = match["row"]
        path = "<cell>" if match["path"].startswith(("In", "Cell")) and "[" in match["path"] else match["path"]
        wrapped = None if match["name"] or number + 1 == len(lines) else _WRAPPED.match(lines[number + 1])
        named = match["name"] or (wrapped["name"] if wrapped is not None else "<module>")
        name = named.strip().partition("(")[0].rpartition(".")[2]
        frame = _shown(lines, number, path, int(row) if row else 0, name.strip(), match.start())
        found.append(_numbered(frame, line) if path.startswith("<") else frame)
    return [frame for frame in found if frame.row > 0]


def _numbered(frame: Frame, head: str) -> Frame:
    """A frame with the number of the cell that its head names."""
    number = _NUMBER.search(head)
    return replace(frame, cell=int(number[1] or number[2])) if number is not None else frame


def _shown(lines: list[str], at: int, path: str, row: int, name: str, column: int) -> Frame:
    """A frame with the source line that stands below its head: marked by an arrow, or the next line.

    `column`: where the head starts in its line; what stands before it (`[rank0]: `, `> `) stands before the source line too.
    """
    for line in lines[at + 1 : at + 14]:
        if _PYTHON.search(line) or _RICH.search(line):
            break
        arrow = _ARROW.match(line)
        if arrow is not None and (not row or int(arrow["row"]) == row):
            return Frame(path, int(arrow["row"]), name, arrow["code"].strip(" \t│|"))
    below = lines[at + 1].removeprefix(lines[at][:column].rstrip()).strip() if at + 1 < len(lines) else ""
    plain = below and not _PYTHON.search(below) and not re.match(r"\w*(?:Error|Exception)\b", below)
    return Frame(path, row, name, below if plain and row else "")


def _of_pytest(lines: list[str], at: int, match: re.Match[str]) -> Frame:
    """A frame as pytest prints it: the source line is the next one, or the last above that is marked with `>`."""
    path, row, name = match["path"], int(match["row"]), match["name"]
    if name is not None:
        return _shown(lines, at, path, row, name.rpartition(".")[2], 0)
    for number in range(at - 1, -1, -1):
        if _PYTEST.match(lines[number]):
            break
        marked = _MARK.match(lines[number])
        if marked is not None:
            head = next((m for line in reversed(lines[:number]) if (m := re.match(r"\s*def (\w+)", line))), None)
            return Frame(path, row, head[1] if head is not None else "<module>", marked["code"].strip())
    return Frame(path, row, "<module>")

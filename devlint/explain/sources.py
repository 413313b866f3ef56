"""The user's files that a traceback passes through: found by the end of their paths, and read once.

A traceback names the paths of the machine where it was printed, and rows of the file as it was. Both are made good: a path
counts by its longest end that a file here has, a row by the source line that the traceback shows.
"""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from devlint.embedded.notebook import Notebook, read_notebook
from devlint.errors import SourceError
from devlint.explain.tracebacks import Frame
from devlint.facts.project.project import Loaded, Project, Reach
from devlint.facts.text.nodes import BLOCKS, children, statements, walk
from devlint.facts.text.references import last_name
from devlint.project_files import Files as Searched
from devlint.project_files import ProjectFiles
from devlint.reading import LARGEST_NOTEBOOK, read_regular
from devlint.source import read_source

if TYPE_CHECKING:
    from devlint.facts.interpreter.flow import Flow

Plain = ast.FunctionDef | ast.AsyncFunctionDef

_INSTALLED = frozenset({"site-packages", "dist-packages"})
#: Packages whose own frames are never where the cause is, whatever files of the project are called.
_LIBRARIES = frozenset({"torch", "torchvision", "torchaudio", "numpy", "IPython", "accelerate", "_pytest", "pluggy"})
_NOTEBOOKS = 30  # notebooks that are looked through for the line of a cell
_TELLING = 8  # characters of a source line that may tell its file
_MENTIONS = 40  # files with a word that are read
_FILES = 20_000  # directory entries that are looked at for the files of a project
_SKIPPED = frozenset(
    {"__pycache__", ".ipynb_checkpoints", "node_modules", "site-packages", "dist-packages", ".git", ".venv", "venv"}
)


class _Cell(NamedTuple):
    """A code cell: the number of its last execution, 0 for none; its first row in the joined source, and how many it has."""

    execution: int
    first: int
    rows: int


class File:
    """One file of the user: its tree, and what stands around each node. `notebook`: its cells, joined, are the source."""

    def __init__(self, path: Path, loaded: Loaded, notebook: Notebook | None = None) -> None:
        self.path = path
        self.notebook = notebook
        self.source = loaded.source
        self.tree = loaded.tree
        self.imports = loaded.imports

    def place(self, row: int) -> str:
        """How a row is shown: `train.py:7`, of a notebook by its cell."""
        if self.notebook is None:
            return f"{self.path}:{row}"
        return f"{self.path}: {self.notebook.name(self.source.text, self.source.starts[row - 1])}"

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """What each node stands in."""
        return {child: node for node in walk(self.tree) for child in children(node)}

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node stands in, the innermost first."""
        while (outer := self.parents.get(node)) is not None:
            yield outer
            node = outer

    def statement(self, row: int) -> ast.stmt | None:
        """The innermost statement on a row; where it is empty or a comment, the last one before it in the same block."""
        best: ast.stmt | None = None
        for node in self._statements:
            if node.lineno <= row <= (node.end_lineno or 0):
                if best is None or node.lineno >= best.lineno:
                    best = node
        body = getattr(best, "body", None)
        if best is not None and body and row >= body[0].lineno:
            inside = [n for n in statements(best) if isinstance(n, ast.stmt) and best.lineno < n.lineno <= row]
            return max(inside, key=lambda n: n.lineno, default=best)
        return best

    @cached_property
    def _statements(self) -> list[ast.stmt]:
        return [node for node in statements(self.tree) if isinstance(node, ast.stmt)]

    @cached_property
    def _lines(self) -> list[str]:
        return [line.strip() for line in self.source.text.splitlines()]

    def function_of(self, node: ast.AST) -> Plain | None:
        """The function that a node stands in."""
        return next((n for n in self.around(node) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))), None)

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The class that a node stands in."""
        return next((n for n in self.around(node) if isinstance(n, ast.ClassDef)), None)

    def statement_of(self, node: ast.AST) -> ast.stmt:
        """The statement that an expression is part of."""
        if isinstance(node, ast.stmt):
            return node
        return next(n for n in self.around(node) if isinstance(n, ast.stmt))

    def has_line(self, line: str) -> bool:
        """Whether a line of the file is this one, whatever its indentation."""
        return line in self._lines

    def row_of(self, frame: Frame, inner: Frame | None = None) -> int | None:
        """The row that a frame is at in this file: the nearest that has its source line. None where no row is plausible.

        `inner`: the frame that the line of this one calls.
        """
        at_cell = self._rows_in_cells(frame, inner) if frame.cell and self.notebook is not None else []
        if is_telling(frame.code):
            rows = [number for number, line in enumerate(self._lines, 1) if line == frame.code]
            if rows:
                return min(rows, key=lambda row: (row not in at_cell, abs(row - frame.row)))
        if frame.cell and self.notebook is not None:
            return at_cell[0] if len(at_cell) == 1 else None
        if not 1 <= frame.row <= len(self._lines):
            return None
        return frame.row

    def speaks_for(self, frame: Frame, row: int) -> bool:
        """Whether a row is the one of a frame by what it is: its source line, or the function that the frame names."""
        if is_telling(frame.code) and self._lines[row - 1] == frame.code:
            return True
        statement = self.statement(row)
        function = self.function_of(statement) if statement is not None else None
        return function is not None and function.name == frame.name

    def _rows_in_cells(self, frame: Frame, inner: Frame | None) -> list[int]:
        """Where a frame of a cell may be: by the function that it names, the call of the next one, or the cell's number."""
        rows = [cell.first + frame.row - 1 for cell in self._cells if frame.row <= cell.rows]
        if frame.name != "<module>":
            return [row for row in rows if self.speaks_for(frame, row)]
        calling = [row for row in rows if inner is not None and inner.name in self.calls_at(row)]
        if len(calling) == 1:
            return calling
        counted = any(cell.execution for cell in self._cells)
        return [
            cell.first + frame.row - 1
            for position, cell in enumerate(self._cells, 1)
            if frame.cell == (cell.execution if counted else position) and frame.row <= cell.rows
        ]

    def calls_at(self, row: int) -> set[str]:
        """The last names of what the statement on a row calls."""
        statement = self.statement(row)
        nodes = walk(statement) if statement is not None else ()
        return {last_name(node.func) for node in nodes if isinstance(node, ast.Call)}

    @cached_property
    def _cells(self) -> list[_Cell]:
        return list(_cells_of(self.notebook)) if self.notebook is not None else []


class Files:
    """The user's files. Paths are looked for from a directory, that of the command. `live`: the notebook that is open."""

    def __init__(self, root: Path, live: Notebook | None = None) -> None:
        self.root = root
        self._project = Project()
        self._live = File(Path(live.path), self._project.parsed(live.source), live) if live is not None else None
        self._reach = Reach(self._project, _unread)
        self._read: dict[str, File | None] = {}

    def is_exact(self, frame: Frame) -> bool:
        """Whether the path of a frame is that of a file here, or ends like one with its directory."""
        parts = PurePosixPath(frame.path.replace("\\", "/")).parts
        if frame.cell or frame.path.startswith("<") or os.path.isfile(frame.path):
            return True
        others = (PurePosixPath(path.replace(os.sep, "/")).parts for path in self._by_name.get(parts[-1], ()))
        return any(_shared(parts, other) > 1 for other in others)

    def find(self, frame: Frame, inner: Frame | None = None) -> File | None:
        """The file of a frame; None for a frame of a library, and where no file here has the end of its path.

        `inner`: the frame that the line of this one calls.
        """
        parts = PurePosixPath(frame.path.replace("\\", "/")).parts
        installed = max((number for number, part in enumerate(parts) if part in _INSTALLED), default=-1)
        ending = parts[installed + 1 :] if installed >= 0 else parts
        if installed >= 0 and ending and ending[0] in _LIBRARIES:
            return None
        if frame.path.startswith("<") or "ipykernel" in frame.path:
            return self._live or self._by_line(frame) or self._by_cell(frame, inner)
        if installed < 0 and _is_standard(parts):
            return None
        if installed < 0 and os.path.isfile(frame.path):
            return self.read(Path(frame.path))
        candidates = self._by_name.get(ending[-1], []) if ending else []
        best: tuple[int, bool, int, str] | None = None
        for path in candidates:
            shared = _shared(ending, PurePosixPath(path.replace(os.sep, "/")).parts)
            rank = (shared, self._has_line(path, frame), -len(PurePosixPath(path).parts), path)
            if best is None or rank[:3] > best[:3]:
                best = rank
        needed = 2 if installed >= 0 and len(ending) > 1 else 1
        if best is None or best[0] < needed:
            return self._by_line(frame) if installed < 0 else None
        return self.read(Path(best[3]))

    def _has_line(self, path: str, frame: Frame) -> bool:
        """Whether a file has the source line of a frame, where the frame shows one and several files have its name."""
        if not frame.code or len(self._by_name[os.path.basename(path)]) == 1:
            return False
        file = self.read(Path(path))
        return file is not None and file.has_line(frame.code)

    def _by_line(self, frame: Frame) -> File | None:
        """The one file here that has the source line of a frame: for a cell of a notebook, and a file that was renamed."""
        if not is_telling(frame.code):
            return None
        having = [file for file in self.mentioning(frame.code) if file.has_line(frame.code)]
        having = having or [file for file in self._notebooks if file.has_line(frame.code)]
        return having[0] if len(having) == 1 else None

    def _by_cell(self, frame: Frame, inner: Frame | None) -> File | None:
        """The one notebook here with a cell in which the frame can be."""
        having = [file for file in self._notebooks if frame.cell and file.row_of(frame, inner) is not None]
        return having[0] if len(having) == 1 else None

    @cached_property
    def _notebooks(self) -> list[File]:
        """The notebooks below the directory, those nearest to it first."""
        found = []
        paths = [path for paths in self._by_name.values() for path in paths if path.endswith(".ipynb")]
        for path in sorted(paths, key=lambda path: (path.count(os.sep), path))[:_NOTEBOOKS]:
            whole = self.root / path
            try:
                notebook = read_notebook(read_regular(whole, LARGEST_NOTEBOOK), str(whole))
                found.append(File(whole, self._project.parsed(notebook.source), notebook))
            except (OSError, SourceError):
                continue
        return found

    def read(self, path: Path) -> File | None:
        """A file, None when it cannot be read or parsed. Below the root it is called by its path from there."""
        key = os.path.abspath(os.path.join(self.root, path))
        if key not in self._read:
            root = os.path.abspath(self.root)
            named = self.root / Path(key).relative_to(root) if Path(key).is_relative_to(root) else Path(key)
            try:
                loaded = self._project.parsed(read_source(named)) if os.path.isfile(named) else None
            except SourceError:
                loaded = None
            self._read[key] = File(named, loaded) if loaded is not None else None
        return self._read[key]

    def definition(self, file: File, qualname: str) -> tuple[File, Plain | ast.ClassDef] | None:
        """The function or class of another file of the project that a name imported by `file` stands for."""
        try:
            found = self._reach.find(os.path.abspath(file.path), qualname)
        except _Unread:
            return None
        if found is None or found.kind not in ("function", "class"):
            return None
        other = self.read(Path(found.path))
        if other is None:
            return None
        node = defined(other.tree, found.short)
        return (other, node) if node is not None else None

    def home_of(self, file: File, name: str) -> File | None:
        """The file of the project from which `file` imports a name of its module level."""
        qualname = file.imports.names.get(name)
        path = self._reach.file_of(os.path.abspath(file.path), qualname) if qualname is not None else None
        return self.read(Path(path)) if path is not None else None

    def mentioning(self, word: str) -> Iterator[File]:
        """The files of the project that mention a word, some dozen at most; none where the project is too large to search."""
        if self._searched is None:
            return
        for path in self._searched.mentioning(word)[:_MENTIONS]:
            file = self.read(Path(self._searched.root, path))
            if file is not None:
                yield file

    @cached_property
    def _searched(self) -> Searched | None:
        return ProjectFiles().around(os.path.abspath(self.root))

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        """The Python files and notebooks below the root by their last name, as paths from it."""
        found: dict[str, list[str]] = {}
        entries = 0
        for folder, folders, files in os.walk(self.root):
            folders[:] = sorted(name for name in folders if name not in _SKIPPED)
            entries += len(folders) + len(files)
            for name in files:
                if name.endswith((".py", ".ipynb")):
                    found.setdefault(name, []).append(os.path.relpath(os.path.join(folder, name), self.root))
            if entries > _FILES:
                break
        return found


def defined(tree: ast.Module, name: str) -> Plain | ast.ClassDef | None:
    """The function or class of the module level with a name."""
    pending: list[ast.stmt] = list(tree.body)
    for node in pending:  # which grows
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if node.name == name:
                return node
            continue
        for block in BLOCKS[type(node)]:
            pending += [n for n in getattr(node, block) if isinstance(n, ast.stmt)]
    return None


def is_telling(code: str) -> bool:
    """Whether a source line that a traceback shows may tell its file: not an ellipsis, not a bracket."""
    return len(code) >= _TELLING


def _cells_of(notebook: Notebook) -> Iterator[_Cell]:
    """The code cells of a notebook."""
    cells = json.loads(notebook.text).get("cells", [])
    starts = notebook.starts(notebook.source.text)
    for cell, start in zip(notebook.cells, starts, strict=True):
        execution = cells[cell.number - 1].get("execution_count") if cell.number <= len(cells) else None
        rows = len(cell.text.splitlines())
        yield _Cell(execution if isinstance(execution, int) else 0, notebook.source.row(start), rows)


def _is_standard(parts: tuple[str, ...]) -> bool:
    """Whether a path is one of Python's own library: `/usr/lib/python3.11/threading.py`."""
    return any(part.startswith("python3") for part in parts[:-1])


def _shared(a: tuple[str, ...], b: tuple[str, ...]) -> int:
    """How many parts two paths share at their ends."""
    number = 0
    for x, y in zip(reversed(a), reversed(b), strict=False):
        if x != y:
            break
        number += 1
    return number


class _Unread(Exception):
    """A value of another file was asked for, which only running it would tell."""


def _unread(loaded: Loaded, reach: Reach) -> Flow:
    raise _Unread

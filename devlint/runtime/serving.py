"""Serves the sources of a program, corrected or not, under the names of the files on disk, with counted statements.

Whatever compiles one of the files gets the served text: the import system (`import`, `python -m`, loaders made by
hand), `runpy` (which spawned children use for the main script), and the start of a script. Nothing is written, and
`__file__`, tracebacks, `linecache`, relative imports and data paths are those of the files. Free of torch.
"""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import linecache
import os
import runpy
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from devlint.runtime.instrument import Spot, count_statements


class File(NamedTuple):
    """One file of the program.

    text: what to serve, None for what is on disk. first, statements: the numbers of its first statement and of how many
    there are. looked: the numbers of the statements whose values are looked at; spots: where expressions are that are
    looked at, each with its number. passed_over: statements after whose AttributeError the program goes on.
    """

    text: str | None
    first: int
    statements: int
    looked: Sequence[int] = ()
    spots: Sequence[tuple[Sequence[int], int]] = ()
    passed_over: Sequence[int] = ()


class Served:
    """The files that a process gets from devlint, by absolute path."""

    def __init__(self, files: Mapping[str, File]) -> None:
        self._files = dict(files)
        self._real = {os.path.realpath(path): path for path in files}
        self._seen: dict[str, str | None] = {}

    def known(self, path: str) -> str | None:
        """The absolute path by which the parent knows a file of the program; None for any other file."""
        if path not in self._seen:
            known: str | None = path if path in self._files else None
            if known is None and not path.startswith("<"):
                known = self._real.get(os.path.realpath(path))
            self._seen[path] = known
        return self._seen[path]

    def code(self, path: str) -> types.CodeType | None:
        """The code of a file under the name it is asked for by; None for a file that is not the program's.

        Raises SyntaxError and OSError as the file itself would.
        """
        known = self.known(path)
        if known is None:
            return None
        file = self._files[known]
        text = file.text
        if text is None:
            with open(path, "rb") as stream:
                text = importlib.util.decode_source(stream.read())
        else:
            lines = text.splitlines(keepends=True)
            linecache.cache[path] = (len(text), None, lines, path)
        tree = ast.parse(text, path)
        spots = {Spot(*spot): number for spot, number in file.spots}
        number = count_statements(tree, file.first, frozenset(file.looked), spots, file.passed_over)
        if number != file.statements:  # changed on disk since it was looked at
            tree = ast.parse(text, path)
        code: types.CodeType = compile(tree, path, "exec", dont_inherit=True)
        return code

    def text(self, path: str) -> str | None:
        """The corrected text of a file; None when it is served as it is, or not at all."""
        known = self.known(path)
        return None if known is None else self._files[known].text

    def install(self) -> None:
        """Let every import and every start of a main module in this process take its code from here."""
        loader: Any = importlib.machinery.SourceFileLoader
        plain_code, plain_source = loader.get_code, loader.get_source

        def get_code(self_: Any, fullname: str) -> Any:
            code = self.code(self_.path)
            return plain_code(self_, fullname) if code is None else code

        def get_source(self_: Any, fullname: str) -> Any:
            text = self.text(self_.path)
            return plain_source(self_, fullname) if text is None else text

        loader.get_code, loader.get_source = get_code, get_source
        any_runpy: Any = runpy
        plain_file = any_runpy._get_code_from_file

        def get_code_from_file(*arguments: Any) -> Any:  # (run_name, fname) before Python 3.12, then (fname)
            code = self.code(os.path.abspath(os.fsdecode(arguments[-1])))
            if code is None:
                return plain_file(*arguments)
            return (code, arguments[-1]) if len(arguments) == 2 else code

        any_runpy._get_code_from_file = get_code_from_file


def start_script(path: str, begin: Callable[[], None]) -> None:
    """When this interpreter comes to run the script `path`, as named on its command line, call `begin` instead.

    Python asks `sys.path_hooks` whether a script is a folder or an archive that holds `__main__`; this one answers yes,
    once, for that script.
    """

    class Loader:
        def create_module(self, spec: Any) -> None:
            return None

        def get_code(self, fullname: str) -> types.CodeType:
            begin_.__dict__["call"] = begin
            return compile("__import__('sys').modules['devlint.runtime.serving'].begin_()", "<devlint>", "exec")

    class Finder:
        def find_spec(self, fullname: str, target: object = None) -> importlib.machinery.ModuleSpec | None:
            if fullname != "__main__":
                return None
            sys.path_hooks.remove(hook)
            sys.path_importer_cache.pop(os.path.abspath(path), None)
            return importlib.machinery.ModuleSpec(fullname, Loader(), origin=path)  # type: ignore[arg-type]

    def hook(entry: str) -> Any:
        if os.path.abspath(entry) != os.path.abspath(path):  # Python makes it absolute
            raise ImportError(f"not {path}")
        return Finder()

    sys.path_hooks.insert(0, hook)


def begin_() -> None:
    """Called in the place of a script, see `start_script`."""
    begin_.__dict__["call"]()


class _Afterwards:
    """A module's own loader, with a call once the module's code has been carried out."""

    def __init__(self, loader: Any, call: Callable[[types.ModuleType], None]) -> None:
        self._loader = loader
        self._call = call

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        self._loader.exec_module(module)
        self._call(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class ImportCalls:
    """A finder that calls back after the first import of some modules."""

    def __init__(self, calls: Mapping[str, Callable[[types.ModuleType], None]]) -> None:
        self._calls = dict(calls)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        call = self._calls.pop(fullname, None)
        if call is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Afterwards(spec.loader, call)  # type: ignore[assignment]
        return spec


def leave_no_trace(folders: Iterable[str]) -> None:
    """Take folders of devlint's own from `sys.path`."""
    for folder in folders:
        while folder in sys.path:
            sys.path.remove(folder)

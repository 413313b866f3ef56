"""The other files of a project: where an imported name is defined, found on disk, read once and held for a while.

A `Project` serves every file that one process checks and holds what it read lately. A `Reach` is one checked file's view
of it: bounded, and it remembers every path whose content, or absence, its answers follow from.
"""

from __future__ import annotations

import ast
import os
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from devlint.errors import SourceError
from devlint.facts.project.exports import ExportedClass, Exports, exports
from devlint.facts.project.instances import Instance
from devlint.facts.text.classes import ClassFacts
from devlint.facts.text.collect import Definition, definitions, registers_parts
from devlint.facts.text.loading import handed_to_loading
from devlint.facts.text.names import Imports, collect_imports
from devlint.facts.text.scan import Scan, scan
from devlint.facts.values import Value
from devlint.file_state import FileState
from devlint.project_files import MARKS, ProjectFiles
from devlint.source import Source, parse, read_source

if TYPE_CHECKING:
    from devlint.facts.interpreter.flow import Flow
    from devlint.facts.text.defined import Function
    from devlint.facts.text.parameters import Evidence

HELD = 3_000_000  # characters of source that a process keeps parsed
LARGEST = 600_000  # characters of one file
EXPORTS = 4_000  # files whose exports a process keeps
FILES = 12  # other files that one checked file may look into
NAMED = 48  # other files whose exports it may ask for
HOPS = 6  # re-exports that one name is followed through
DEPTH = 3  # calls followed from file to file
STEPS = 12_000  # steps that one checked file may cause in others
ABOVE = 5  # directories above a script that may be where its imports start
_NEVER = frozenset({"torch", "builtins", "numpy", "__future__", "typing_extensions", *sys.stdlib_module_names})


#: Bases that make nothing of a class.
#: Bases that say nothing of what a class is, as the import table spells them.
PLAIN_BASES = frozenset(
    {
        "object",
        "abc.ABC",
        "typing.Generic",
        "typing.Protocol",
        "typing_extensions.Generic",
        "typing_extensions.Protocol",
    }
)


@dataclass(slots=True)
class Loaded:
    """One file, parsed. `globals` is what its module-level code leaves behind, None before that was run."""

    source: Source
    tree: ast.Module
    imports: Imports
    evidence: dict[int, Evidence] = field(default_factory=dict)  # of parameters, by the identity of a function's node
    classes: dict[int, ClassFacts] = field(default_factory=dict)  # by the identity of the node, for `fresh` ones
    globals: Mapping[str, Value] | None = None
    default: Value | None = None
    _scan: Scan | None = None
    _definitions: tuple[Definition, ...] | None = None
    _for_loading: tuple[ast.expr, ...] | None = None

    @property
    def for_loading(self) -> tuple[ast.expr, ...]:
        """What the file hands to what applies it to items of data sets."""
        if self._for_loading is None:
            self._for_loading = tuple(handed_to_loading(self.tree))
        return self._for_loading

    @property
    def scan(self) -> Scan:
        if self._scan is None:
            self._scan = scan(self.tree)
        return self._scan

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """What the module level defines."""
        if self._definitions is None:
            self._definitions = tuple(definitions(self.tree.body))
        return self._definitions

    def function(self, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The first function of the module level with a name."""
        functions = (node for node in self.definitions if not isinstance(node, ast.ClassDef))
        return next((node for node in functions if node.name == name), None)


@dataclass(frozen=True, slots=True)
class Found:
    """What a qualified name stands for: a function, a class or a value at the module level of the file at `path`.

    `short`: how that file calls it. Its interpreter is made when it is asked for.
    """

    reach: Reach
    path: str
    short: str
    kind: Literal["function", "class", "value"]
    exports: Exports
    value: Value | None = None

    @property
    def name(self) -> str:
        """The qualified name of the definition, whichever way it was imported."""
        return f"{module_name(self.path)}.{self.short}"

    @property
    def loaded(self) -> Loaded | None:
        """The file; None when too many files were looked into."""
        return self.reach.loaded(self.path)

    @property
    def flow(self) -> Flow | None:
        """The interpreter for the file; None when too many files were looked into."""
        return self.reach.flow(self.path)

    @property
    def function(self) -> Function | None:
        flow = self.flow
        return flow.functions.get(self.short) if flow is not None else None

    @property
    def exported_class(self) -> ExportedClass:
        return self.exports.classes[self.short]


Visit = Callable[[Loaded, "Reach"], "Flow"]


class Project:
    """The files that were looked into lately, by absolute path. A file that changed on disk is read anew.

    What a file exports is known of many more files than are held parsed.
    """

    def __init__(self) -> None:
        self.files = ProjectFiles()
        self._held: OrderedDict[str, tuple[FileState, Loaded | None]] = OrderedDict()
        self._exports: OrderedDict[str, tuple[FileState, Exports | None]] = OrderedDict()
        self._instances: OrderedDict[tuple[str, str, int], Instance] = OrderedDict()
        self._finding: set[tuple[str, str]] = set()
        self._cut = False  # something that was asked for is being found already
        self._size = 0
        self._last: Loaded | None = None
        #: Gives the tree of a source, where something else keeps it.
        self.spare: Callable[[Source], ast.Module | None] | None = None

    def load(self, path: str) -> tuple[FileState, Loaded | None]:
        """The state of a file and what it holds; None when it cannot be read or parsed, or is too large."""
        state = FileState.of(path)
        known = self._held.get(path)
        if known is not None and state.same_metadata(known[0]) and known[0].settled:
            self._held.move_to_end(path)
            return known
        loaded: Loaded | None = None
        if state.exists:
            try:
                source = read_source(Path(path), shown(path))
                state = state.with_content(source.raw)
                if len(source.text) <= LARGEST:
                    loaded = self.parsed(source)
            except (SourceError, RecursionError):
                loaded = None
        self._hold(path, state, loaded)
        return state, loaded

    def exports(self, path: str) -> tuple[FileState, Exports | None]:
        """The state of a file and what it exports; None for what `load` does not give either."""
        state = FileState.of(path)
        known = self._exports.get(path)
        if known is not None and state.same_metadata(known[0]) and known[0].settled:
            return known
        state, loaded = self.load(path)
        exported = exports(loaded.tree, loaded.source, loaded.imports) if loaded is not None else None
        if len(self._exports) >= EXPORTS:
            self._exports.popitem(last=False)
        self._exports[path] = (state, exported)
        return self._exports[path]

    def instance(self, found: Found, depth: int, visit: Visit) -> Instance | None:
        """What making an object of a class leaves on it; None while that is being found.

        What others that are being found were needed for is found anew the next time, so that no answer depends on who
        asked first. `depth`: how many files away from the checked one the asking file is.
        """
        place = (found.path, found.short)
        if place in self._finding:
            self._cut = True
            return None
        known = self._instances.get((*place, depth))
        if known is not None and all(map(is_unchanged, known.read.items())):
            return known
        reach = Reach(self, visit)
        reach.depth = depth
        offered = reach.exports(found.path)
        home = reach.flow(found.path)
        if home is None or offered is None or found.short not in offered.classes:
            return None
        cut, self._cut = self._cut, False
        self._finding.add(place)
        try:
            instance = home.examine(Found(reach, *place, "class", offered))
        finally:
            self._finding.discard(place)
            is_cut, self._cut = self._cut, self._cut or cut
        if not is_cut:
            if len(self._instances) >= EXPORTS:
                self._instances.popitem(last=False)
            self._instances[(*place, depth)] = instance
        return instance

    def parsed(self, source: Source) -> Loaded:
        """A source with its tree: what is held of the file when it is the same. Raises SourceError for a syntax error."""
        known = self._held.get(os.path.abspath(source.path))
        for loaded in (self._last, known[1] if known is not None else None):
            if loaded is not None and (loaded.source is source or loaded.source.raw == source.raw):
                if loaded.source.path == source.path:
                    return loaded
        kept = self.spare(source) if self.spare is not None else None
        tree = kept if kept is not None else parse(source)
        self._last = Loaded(source, tree, collect_imports(tree))
        return self._last

    def offer(self, loaded: Loaded) -> None:
        """Hold a file that was checked itself, should others import it."""
        path = os.path.abspath(loaded.source.path)
        state = FileState.of(path)
        if state.size == len(loaded.source.raw) and state.settled and path not in self._held:
            self._hold(path, state.with_content(loaded.source.raw), loaded)

    def _hold(self, path: str, state: FileState, loaded: Loaded | None) -> None:
        self._drop(path)
        self._held[path] = (state, loaded)
        self._size += size_of(loaded)
        while self._size > HELD and len(self._held) > 1:
            self._drop(next(iter(self._held)))

    def _drop(self, path: str) -> None:
        known = self._held.pop(path, None)
        if known is not None:
            self._size -= size_of(known[1])


def size_of(loaded: Loaded | None) -> int:
    return len(loaded.source.text) if loaded is not None else 0


def shown(path: str) -> str:
    """An absolute path as reports show it: relative to the current directory when it lies below it."""
    here = os.getcwd().rstrip(os.sep) + os.sep
    return path[len(here) :] if path.startswith(here) else path


class Reach:
    """What one checked file may see of its project. `read`: the paths that its answers follow from, with their states.

    It lives as long as the interpreter of the checked file, or whoever else made it. What it holds, names that were found
    and interpreters of other files, refers to it weakly, so that all of it is freed with it, without the collector.
    """

    def __init__(self, project: Project, visit: Visit, read: dict[str, FileState] | None = None) -> None:
        self.project = project
        self.read: dict[str, FileState] = {} if read is None else read
        self.depth = 0
        self.steps = 0
        self._visit = visit
        self._weak: Reach = weakref.proxy(self)
        self._loaded: dict[str, Loaded | None] = {}
        self._flows: dict[str, Flow | None] = {}
        self._exports: dict[str, Exports | None] = {}
        self._instances: dict[tuple[str, str, int], Instance | None] = {}
        self._ancestors: dict[tuple[str, str], frozenset[tuple[str, str]]] = {}
        self._found: dict[tuple[str, str], Found | None] = {}
        self._folders: dict[str, str] = {}  # of the files that import something
        self._roots: dict[str, list[str]] = {}
        # the files that hold the names of a module which is no package, by the importing folder and how that writes it
        self._plain: dict[tuple[str, str], str] = {}
        self._files: dict[str, bool] = {}  # by path: whether a file is there
        self._named: dict[tuple[str, str], Found | None] = {}
        self._stars: dict[tuple[str, str], str | None] = {}

    @property
    def exhausted(self) -> bool:
        return self.depth >= DEPTH or self.steps >= STEPS

    def find(self, importer: str, qualname: str, hops: int = 0) -> Found | None:
        """What `qualname`, as `importer` writes it, stands for in another file; None when that is not known.

        `importer` is the path of a file; leading dots of a relative import count from its directory.
        """
        folder = self._folders.get(importer)
        if folder is None:
            folder = self._folders[importer] = os.path.dirname(os.path.abspath(importer))
        key = (folder, qualname)
        if key not in self._found:
            self._found[key] = None  # a cycle of re-exports ends here
            self._found[key] = self._find(folder, qualname, hops)
        return self._found[key]

    def _find(self, folder: str, qualname: str, hops: int) -> Found | None:
        found = self._module(folder, qualname)
        if found is None or not 1 <= len(found[1]) <= 2:
            return None
        return self._inside(found[0], tuple(found[1]), hops)

    def _inside(self, path: str, rest: tuple[str, ...], hops: int) -> Found | None:
        """What a name, or an attribute of one, is in a file."""
        key = (path, ".".join(rest))
        if key not in self._named:
            self._named[key] = None  # a cycle of star imports ends here
            self._named[key] = self._look(path, rest, hops)
        return self._named[key]

    def _look(self, path: str, rest: tuple[str, ...], hops: int) -> Found | None:
        offered = self.exports(path)
        if offered is None:
            return None
        name = rest[0]
        if len(rest) == 1:
            if name in offered.functions:
                return Found(self._weak, path, name, "function", offered)
            if name in offered.classes:
                return Found(self._weak, path, name, "class", offered)
            if name in offered.values:
                flow = self.flow(path)
                value = flow.module_value(name) if flow is not None else None
                if value is not None and value.kind != "namespace":
                    return Found(self._weak, path, name, "value", offered, value)
        if hops >= HOPS:
            return None
        target = offered.imports.get(name)
        if target is not None:
            return self.find(path, ".".join([target, *rest[1:]]), hops + 1)
        for star in offered.stars:
            module = self._star(path, star)
            found = self._inside(module, rest, hops + 1) if module is not None else None
            if found is not None:
                return found
        return None

    def _star(self, path: str, star: str) -> str | None:
        """The file that `from star import *` in a file means. A package may have hundreds of them."""
        key = (path, star)
        if key not in self._stars:
            found = self._module(os.path.dirname(path), star)
            self._stars[key] = found[0] if found is not None and not found[1] else None
        return self._stars[key]

    def file_of(self, importer: str, qualname: str) -> str | None:
        """The file that an import of a file leads to, as far as its name goes."""
        found = self._module(os.path.dirname(importer), qualname)
        return found[0] if found is not None else None

    def exports(self, path: str) -> Exports | None:
        """What another file exports, None when the bounds are reached or it cannot be understood."""
        if path not in self._exports:
            self._exports[path] = None
            if len(self._exports) <= NAMED:
                state, self._exports[path] = self.project.exports(path)
                self.read[path] = state
        return self._exports[path]

    def bases(self, found: Found) -> list[Found]:
        """The bases of a class that are defined in files of the project: first those of its own file."""
        class_ = found.exported_class
        near = [Found(self._weak, found.path, name, "class", found.exports) for name in class_.near]
        far = [self.find(found.path, name) for name in class_.bases if is_imported(name)]
        return near + [each for each in far if each is not None and each.kind == "class"]

    def ancestors(self, found: Found) -> frozenset[tuple[str, str]]:
        """A class and all its bases, as path and name."""
        key = (found.path, found.short)
        if key not in self._ancestors:
            seen = {key}
            pending = [found]
            while pending:
                for base in self.bases(pending.pop()):
                    if (base.path, base.short) not in seen:
                        seen.add((base.path, base.short))
                        pending.append(base)
            self._ancestors[key] = frozenset(seen)
        return self._ancestors[key]

    def is_plain(self, found: Found, seen: frozenset[tuple[str, str]] = frozenset()) -> bool:
        """Whether a class and all its bases are classes of the project's own, so that none of them is one of a library."""
        class_, key = found.exported_class, (found.path, found.short)
        if key in seen:
            return True
        for name in class_.bases:
            if name not in class_.near and name not in PLAIN_BASES:
                base = self.find(found.path, name) if is_imported(name) else None
                if base is None or base.kind != "class":
                    return False
        return all(self.is_plain(base, seen | {key}) for base in self.bases(found))

    def family(self, found: Found, seen: frozenset[tuple[str, str]] = frozenset()) -> str | None:
        """What a class is by its bases, in whichever file these are."""
        class_, key = found.exported_class, (found.path, found.short)
        if key in seen:
            return None
        of_bases = [self.family(base, seen | {key}) for base in self.bases(found)]
        near, far = of_bases[: len(class_.near)], of_bases[len(class_.near) :]
        if class_.family == "Module" and not any(of_bases) and self.is_plain(found) and not self.registers_parts(found):
            return None  # it has a `forward`, and is no module of torch
        return next(filter(None, (*reversed(far), class_.family, *near)), None)

    def registers_parts(self, found: Found) -> bool:
        """Whether a class does what only a module does, or may."""
        loaded = found.loaded
        if loaded is None:
            return True
        nodes = [n for n in loaded.definitions if isinstance(n, ast.ClassDef) and n.name == found.short]
        return any(registers_parts(node, loaded.imports) for node in nodes)

    def instance(self, found: Found) -> Instance | None:
        """What making an object of a class leaves on it; None when the bounds are reached."""
        if self.exhausted:
            return None
        key = (found.path, found.short, self.depth)
        if key not in self._instances:
            known = self._instances[key] = self.project.instance(found, self.depth, self._visit)
            if known is not None:
                for path, state in known.read.items():
                    self.read.setdefault(path, state)
                self.steps += known.steps
        return self._instances[key]

    def loaded(self, path: str) -> Loaded | None:
        """Another file, None when the bounds are reached or it says nothing."""
        if path not in self._loaded:
            self._loaded[path] = None
            if len(self._loaded) <= FILES:
                self.read[path], self._loaded[path] = self.project.load(path)
        return self._loaded[path]

    def flow(self, path: str) -> Flow | None:
        """The interpreter for another file, None where `loaded` gives none."""
        if path not in self._flows:
            loaded = self.loaded(path)
            self._flows[path] = self._visit(loaded, self._weak) if loaded is not None else None
        return self._flows[path]

    def _module(self, folder: str, qualname: str) -> tuple[str, list[str]] | None:
        """The file that a qualified name leads to, with the names that are left."""
        stem, _, last = qualname.rpartition(".")
        known = self._plain.get((folder, stem))
        if known is not None:
            return known, [last]
        asking = folder
        bare = qualname.lstrip(".")
        dots = len(qualname) - len(bare)
        parts = bare.split(".") if bare else []
        if dots:
            for _ in range(dots - 1):
                folder = os.path.dirname(folder)
            roots = [folder]
        elif not parts or parts[0] in _NEVER:
            return None
        else:
            roots = self.roots(folder)
        for root in roots:
            found = self._walk(root, parts, bool(dots))
            if found is not None:
                # found below another root, a folder of the first one may hold another name of the same module
                if root is roots[0] and len(found[1]) == 1 and os.path.basename(found[0]) != "__init__.py":
                    self._plain[asking, stem] = found[0]
                return found
        return None

    def _walk(self, root: str, parts: list[str], relative: bool) -> tuple[str, list[str]] | None:
        here, used = root, 0
        for part in parts:
            below = os.path.join(here, part)
            package = os.path.join(below, "__init__.py")
            if not self._is_file(package):  # a package hides a module of its name, as for Python's FileFinder
                if self.exists(below + ".py"):
                    self.exists(package)
                    return below + ".py", parts[used + 1 :]
                if not os.path.isdir(below):
                    break
            here, used = below, used + 1
        if used or relative:
            init = os.path.join(here, "__init__.py")
            if self.exists(init):
                return init, parts[used:]
        elif parts:
            self.exists(os.path.join(root, parts[0], "__init__.py"))  # were it made, it would be found
        return None

    def exists(self, path: str) -> bool:
        """Whether a file is there. That it is not is remembered: the answer would be another if it came."""
        known = self.read.get(path)
        if known is not None:
            return known.exists
        if self._is_file(path):
            return True
        self.read[path] = FileState.absent()
        return False

    def _is_file(self, path: str) -> bool:
        known = self._files.get(path)
        if known is None:
            known = self._files[path] = os.path.isfile(path)
        return known

    def roots(self, folder: str) -> list[str]:
        """The directories where absolute imports of a file in `folder` start.

        For a module of a package that is the directory that holds the package, and the root of the project, if one is
        seen: a folder between both may be a package without `__init__.py`. A script sees its own directory; the directories
        above it follow, up to one that looks like the root of a project, since that is where such scripts are started from:
        also where that root is a package itself. What is in the folder `src` of a project is installed beside its tests.
        """
        if folder not in self._roots:
            here, package = folder, False
            started: list[str] = []
            while self.exists(os.path.join(here, "__init__.py")) and os.path.dirname(here) != here:
                if is_marked(here):
                    started = [here]
                here, package = os.path.dirname(here), True
            found = [*started, here]
            above = [here]
            while len(above) <= ABOVE and not is_marked(above[-1]) and os.path.dirname(above[-1]) != above[-1]:
                above.append(os.path.dirname(above[-1]))
            if not package:
                found += above[1:]
            elif is_marked(above[-1]):
                found += above[1:][-1:]
            if is_marked(above[-1]):  # packages below `src` [packaging.python.org, "src layout vs flat layout"]
                below = os.path.join(above[-1], "src")
                if below != here and os.path.isdir(below):
                    found.append(below)
            self._roots[folder] = found
        return self._roots[folder]


def is_marked(folder: str) -> bool:
    """Whether a directory looks like the root of a project."""
    return any(os.path.exists(os.path.join(folder, name)) for name in MARKS)


def is_unchanged(entry: tuple[str, FileState]) -> bool:
    """Whether a file is as it was, by its metadata."""
    path, state = entry
    return state.same_metadata(FileState.of(path)) and state.settled


def is_imported(base: str) -> bool:
    """Whether the qualified name of a base class may lead to another file of the project."""
    return "." in base and not base.startswith("torch.")


def module_name(path: str) -> str:
    """A dotted name for a file: its last folder and its own name."""
    folder, name = os.path.split(path[: -len(".py")])
    parent = os.path.basename(folder)
    return parent if name == "__init__" else f"{parent}.{name}"

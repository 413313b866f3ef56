"""What other libraries do with tensors and modules: data of `libraries/`, a file for each, read when a name of it occurs.

The format stands in `libraries/README.md`, its schema in `libraries/schema.json`. Every row names its source.
"""

from __future__ import annotations

import os.path
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

FOLDER: Final = os.path.join(os.path.dirname(__file__), "libraries")
#: Rows that were read from the sources of the libraries. What stands in `FOLDER` goes before them.
GENERATED: Final = os.path.join(FOLDER, "generated")
#: The file of all modules that come with Python.
PYTHON: Final = "python"
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Library:
    """One file. Rows by the qualified names that they are about; `patterns` are rows about all names that fit."""

    functions: dict[str, list[Row]] = field(default_factory=dict)
    function_patterns: list[tuple[re.Pattern[str], Row]] = field(default_factory=list)
    classes: dict[str, list[Row]] = field(default_factory=dict)
    class_patterns: list[tuple[re.Pattern[str], Row]] = field(default_factory=list)
    packages: list[tuple[str, Row]] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)


@cache
def names() -> frozenset[str]:
    """The libraries that have a file."""
    files = (*os.listdir(FOLDER), *os.listdir(GENERATED))
    return frozenset(name[: -len(".toml")] for name in files if name.endswith(".toml"))


@cache
def read(name: str, folder: str = FOLDER) -> Mapping[str, Any]:
    """The document of a library; an empty one where the folder has none."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        with open(os.path.join(folder, name + ".toml"), "rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        return {}


@cache
def library(name: str) -> Library | None:
    """The rows of a library; None where it has no file."""
    if name not in names():
        return None
    found = _described(name)
    for row in read(name, GENERATED).get("functions", ()):
        known = [each for each in row["names"].split() if not _in(found, f"{name}.{each}")]
        _add({**row, "names": " ".join(known)}, name, found.functions, found.function_patterns)
    return found


def _described(name: str) -> Library:
    """The rows of a library that a person wrote."""
    document, found = read(name), Library()
    base = "" if name == PYTHON else name
    for row in document.get("functions", ()):
        _add(row, base, found.functions, found.function_patterns)
    for row in document.get("classes", ()):
        _add(row, base, found.classes, found.class_patterns)
    found.packages.extend((row.get("prefix", base), row) for row in document.get("packages", ()))
    found.aliases.update(document.get("aliases", {}))
    return found


def _add(
    row: Row, base: str, named: dict[str, list[Row]], patterns: list[tuple[re.Pattern[str], Row]]
) -> None:  # fmt: skip
    if "pattern" in row:
        patterns.append((re.compile(row["pattern"]), row))
    prefix = row.get("prefix", base)
    for each in row.get("names", "").split():
        named.setdefault(f"{prefix}.{each}" if prefix else each, []).append(row)


def _of(qualname: str) -> Library | None:
    root = qualname.partition(".")[0]
    return library(PYTHON if root in sys.stdlib_module_names else root)


def written(qualname: str) -> bool:
    """Whether a person described a function, or a function behind an alias of its name."""
    found = _described(qualname.partition(".")[0])
    return _in(found, qualname) or _in(found, home(qualname))


def _in(found: Library, qualname: str) -> bool:
    return qualname in found.functions or any(pattern.fullmatch(qualname) for pattern, _ in found.function_patterns)


@cache
def home(qualname: str) -> str:
    """The name under which something is described: that behind the longest alias."""
    found = _of(qualname)
    for alias in sorted(found.aliases, key=len, reverse=True) if found is not None else ():
        if found is not None and (qualname + ".").startswith(alias + "."):
            return home(found.aliases[alias] + qualname[len(alias) :])
    return qualname


@cache
def function(qualname: str) -> Row:
    """All that is said of a function; empty where nothing is. A row under its own name goes before one of an alias."""
    for name in (qualname, home(qualname)):
        found = _of(name)
        rows = found.functions.get(name, []) if found is not None else []
        if not rows and found is not None:
            rows = [row for pattern, row in found.function_patterns if pattern.fullmatch(name)][:1]
        if rows:
            return _joined(rows)
    return {}


@cache
def cls(qualname: str) -> Row:
    """All that is said of a class; empty where nothing is."""
    for name in (qualname, home(qualname)):
        found = _of(name)
        rows = list(found.classes.get(name, ())) if found is not None else []
        if not rows and found is not None:
            rows = [row for pattern, row in found.class_patterns if pattern.fullmatch(name)][:1]
        if rows:
            return _joined(rows)
    return {}


@cache
def package(qualname: str) -> Row:
    """All that is said of every function of the packages in which a name is."""
    name = home(qualname)
    found = _of(name)
    rows = [row for prefix, row in found.packages if name.startswith(prefix + ".") or name == prefix] if found else []
    return _joined(rows)


def _joined(rows: list[Row]) -> Row:
    """What several rows say of one name."""
    if len(rows) < 2:
        return rows[0] if rows else {}
    sources = "; ".join(dict.fromkeys(row["source"] for row in rows))
    return {**{key: value for row in rows for key, value in row.items()}, "source": sources}

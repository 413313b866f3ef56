"""What the result of a check depends on beside the file: devlint's own code, the rule packages, Python, settings.

Versions alone would not tell two states of a checkout apart, so that the code is stamped by the size and the time of
change of each of its files; that takes two milliseconds.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator

from devlint import __version__, shipped
from devlint.settings import Settings

_OWN_PARTS = ("embedded", "facts", "fix", "inference", "knowledge")  # of the package devlint: what can change a result
_FILES = (".py", ".json")  # code, and what is known of torch
_PARSER = "libcst"


def digest(*parts: object) -> bytes:
    """16 bytes that stand for the text of `parts`."""
    return hashlib.blake2b("\0".join(map(str, parts)).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def code_stamp(plugins: tuple[str, ...] = ()) -> bytes:
    """Stands for the code that checks: devlint, the shipped rules, those of `plugins`, libcst and Python's syntax."""
    own = os.path.dirname(os.path.abspath(__file__))
    states = list(_states(own))
    for part in _OWN_PARTS:
        states += _states(os.path.join(own, part), deep=True)
    for package in (shipped.package(), _PARSER, *_packages_of(plugins)):
        found = _folder(package)
        if found is not None:
            states += _states(found)
    return digest(__version__, sys.version_info[:2], sys.implementation.name, *plugins, *states)


def settings_stamp(code: bytes, settings: Settings) -> bytes:
    """Stands for everything but the content that the result for a file depends on."""
    return digest(code.hex(), settings)


def _states(folder: str, deep: bool = False) -> Iterator[str]:
    """The files of a folder in a fixed order, each with its size and time of change. `deep`: with those further down."""
    try:
        with os.scandir(folder) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
        for entry in entries:
            if entry.name.endswith(_FILES):
                state = entry.stat()
                yield f"{entry.path} {state.st_size} {state.st_mtime_ns}"
            elif deep and "." not in entry.name and not entry.name.startswith("_"):
                yield from _states(entry.path, deep)
    except OSError:  # in a zip archive, which does not change in place: the version has to do
        yield folder


def _folder(package: str) -> str | None:
    """Where a package or module lies, without importing it."""
    from importlib.util import find_spec

    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return None
    return os.path.dirname(spec.origin) if spec is not None and spec.origin else None


def _packages_of(plugins: tuple[str, ...]) -> list[str]:
    """The top-level packages that provide the rules of plugins."""
    if not plugins:
        return []
    from devlint.registry import announced

    return sorted(
        {point.value.partition(":")[0].partition(".")[0] for point in announced(plugins) if point.name in plugins}
    )

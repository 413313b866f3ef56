"""What making an object of a class of another file leaves on it: found once for all files that a process checks.

It follows from the content of the files in `read` alone, whoever asks: each is found with bounds of its own. A value names
the class of an object by its file and its name there, as `token` writes them, since interpreters name classes each their
own way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from devlint.facts.values import Device, Value
from devlint.file_state import FileState

_SEPARATOR = "\0"


@dataclass(frozen=True, slots=True)
class Instance:
    """The attributes of `self` after `__init__`, the buffers among them, and the devices of the parts that a module makes.

    `devices` is None when some base is not known. `steps`: what finding it took.
    """

    path: str
    attributes: Mapping[str, Value]
    buffers: frozenset[str]
    devices: tuple[Device, ...] | None
    read: Mapping[str, FileState]
    steps: int


def token(path: str, name: str) -> str:
    """A class as the values of an `Instance` name it."""
    return f"{path}{_SEPARATOR}{name}"


def of_token(text: str) -> tuple[str, str] | None:
    """Path and name of a class; None for a qualified name."""
    path, separator, name = text.partition(_SEPARATOR)
    return (path, name) if separator else None

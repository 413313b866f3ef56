"""Keeps the tree that is checked off the path on which Python looks for modules.

`python -m devlint` puts the current directory first on it, and `PYTHONPATH` may: a `random.py` of the tree would then be
imported in place of Python's own, and so would a package that its settings name as a plugin.
"""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Sequence

RUNNING = ("verify", "run", "doctor")  # commands that run a program of the tree, with the path that was given for it


def safe_path() -> list[str]:
    """`sys.path` without the current directory, and with what lies below it behind everything else.

    Where Python and devlint themselves lie stays, in whatever directory devlint is started.
    """
    here = os.path.realpath(os.curdir)
    prefix = here.rstrip(os.sep) + os.sep
    outside: list[str] = []
    inside: list[str] = []
    for entry in sys.path:
        real = os.path.realpath(entry)
        if real == here and here not in _own():
            continue
        (inside if (real + os.sep).startswith(prefix) else outside).append(entry)
    return outside + inside


def keep_out(arguments: Sequence[str]) -> None:
    """Make `sys.path` safe for the rest of this process, whose command line this is; not for what runs a program."""
    if arguments[:1] not in [[name] for name in RUNNING]:
        sys.path[:] = safe_path()


def _own() -> set[str]:
    """The directories of Python's library, of what is installed beside it, and of devlint."""
    found = [os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(__file__)), *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        found.append(site.getusersitepackages())
    return {os.path.realpath(each) for each in found}

"""Imports that fixes leave unused are dropped."""

from __future__ import annotations

import pytest

from devlint.fix.imports import without_unused
from devlint.source import decode


def dropped(before: str, after: str, path: str = "a.py") -> str:
    return without_unused(decode(before.encode(), path), decode(after.encode(), path))


def test_an_import_that_lost_its_last_use_goes() -> None:
    assert dropped("import sys\nimport os\nsys.exit(os.name)\n", "import sys\nimport os\nos.name\n") == (
        "import os\nos.name\n"
    )


def test_one_name_of_several_goes() -> None:
    assert dropped("from a import b, c\nb(c)\n", "from a import b, c\nb(1)\n") == "from a import b\nb(1)\n"


def test_all_names_of_one_import_go_with_it() -> None:
    assert dropped("from a import b, c\nb(c)\nd()\n", "from a import b, c\nd()\n") == "d()\n"


def test_the_name_under_which_it_is_bound_counts() -> None:
    assert dropped("from a import b as c\nc()\n", "from a import b as c\nb()\n") == "b()\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import sys\nimport os\nos.name\n", "import sys\nimport os\nos.sep\n"),  # it was not used before either
        ("import sys  # noqa: F401\nsys.exit()\n", "import sys  # noqa: F401\nx = 1\n"),  # a comment stands there
        ("import sys\nsys.exit()\n", 'import sys\n__all__ = ["sys"]\n'),  # named in a string
        ("import sys\nsys.exit()\n", 'import sys\nx: "sys.Flags"\n'),  # in an annotation
        ("import a.b\na.b()\n", "import a.b\nx = 1\n"),  # it may bring what another import of `a` uses
        ("from a import *\nb()\n", "from a import *\nx = 1\n"),
        ("from a import b, c, d\nb(c, d)\n", "from a import b, c, d\nd()\n"),  # two of three: left for the reader
        ("if x:\n    import sys\n    sys.exit()\n", "if x:\n    import sys\n    y = 1\n"),  # not at module level
        ("import sys\nsys.exit()\n", "import sys\nx = (\n"),  # what cannot be read
    ],
)
def test_stays(before: str, after: str) -> None:
    assert dropped(before, after) == after


def test_an_init_file_imports_for_others() -> None:
    assert dropped("import sys\nsys.exit()\n", "import sys\nx = 1\n", "p/__init__.py") == "import sys\nx = 1\n"

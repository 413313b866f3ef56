"""The fixture runner, public for rule authors: cases are Python files whose comments say what a linter must find there.

    from devlint.testing import check_fixture
    failures = check_fixture(path, Linter(rules, Settings(select=("ALL",))))
    assert not failures, "\\n".join(failures)

`devlint.testing.markers` describes the comments, `devlint.testing.fixtures` what is checked.
"""

from devlint.testing.fixtures import FIXED_SUFFIX, case_files, check_fixture, count_markers
from devlint.testing.markers import Expected, Fixture, Marker, read_fixture
from devlint.testing.probes import reveal

__all__ = [
    "FIXED_SUFFIX",
    "Expected",
    "Fixture",
    "Marker",
    "case_files",
    "check_fixture",
    "count_markers",
    "read_fixture",
    "reveal",
]

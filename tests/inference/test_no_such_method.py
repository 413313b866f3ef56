"""DEV301 on the events of the new inference: the fixtures of the rule, but for what needs more than a proved kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from devlint.engine import Linter
from devlint.settings import Settings
from devlint.testing import case_files, check_fixture
from devlint_rules.no_such_method import NoSuchMethod

FIXTURES = Path(__file__).parents[2] / "fixtures" / "DEV301"
#: Files with an expected finding on a value that only a use or a word makes likely, or with findings of other rules.
NOT_PROVED = {
    "called_devices_hint": "an argument that is annotated as `nn.Module` may be of a subclass with the method",
    "quiet_arrays_made_buffers": "one decorator of the class cannot be told from the other",
    "quiet_arrays_of_something": "the result of a model that is an argument",
    "quiet_taken_apart_and_yielded": "findings of DEV101",
    "uncalled": "an argument of which only a use is known",
}
LINTER = Linter((NoSuchMethod(),), Settings(select=("DEV301",), inference="new"))


@pytest.mark.parametrize("path", case_files(FIXTURES), ids=lambda path: path.stem)
def test_fixture(path: Path) -> None:
    failures = check_fixture(path, LINTER)
    if path.stem in NOT_PROVED:
        failures = [each for each in failures if "unexpected" in each]
    assert not failures, "\n".join(failures)

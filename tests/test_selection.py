"""Selectors: which rules are on after the configuration and the command line have spoken."""

from __future__ import annotations

import pytest

from devlint.errors import UsageError
from devlint.model import UNREADABLE_FILE, RuleMeta, Severity
from devlint.selection import Layer, enabled


def meta(code: str, name: str, opt_in: bool = False) -> RuleMeta:
    return RuleMeta(code, name, "summary", "0.1.0", "certain", Severity.ERROR, "never", (), opt_in)


METAS = (meta("DEV101", "mixed-devices"), meta("DEV102", "fresh-tensor"), meta("DEV501", "slow-copy", opt_in=True))


def test_every_rule_is_on_by_default_but_those_that_must_be_asked_for() -> None:
    assert enabled(METAS, [Layer()]) == ("DEV101", "DEV102")


def test_select_by_code_prefix_name_and_all() -> None:
    assert enabled(METAS, [Layer(select=("DEV102",))]) == ("DEV102",)
    assert enabled(METAS, [Layer(select=("DEV1",))]) == ("DEV101", "DEV102")
    assert enabled(METAS, [Layer(select=("slow-copy",))]) == ("DEV501",)
    assert enabled(METAS, [Layer(select=("ALL",))]) == ("DEV101", "DEV102", "DEV501")


def test_an_empty_select_turns_everything_off() -> None:
    assert enabled(METAS, [Layer(select=())]) == ()


def test_extend_select_adds_to_the_default() -> None:
    assert enabled(METAS, [Layer(extend_select=("DEV5",))]) == ("DEV101", "DEV102", "DEV501")


def test_the_longer_selector_decides() -> None:
    assert enabled(METAS, [Layer(select=("DEV101",), ignore=("DEV1",))]) == ("DEV101",)
    assert enabled(METAS, [Layer(select=("DEV1",), ignore=("DEV101",))]) == ("DEV102",)


def test_ignore_wins_a_tie() -> None:
    assert enabled(METAS, [Layer(select=("DEV1",), ignore=("DEV1",))]) == ()


def test_ignore_alone_takes_from_the_default() -> None:
    assert enabled(METAS, [Layer(ignore=("fresh-tensor",))]) == ("DEV101",)


def test_a_later_select_drops_what_the_earlier_layer_ignored() -> None:
    assert enabled(METAS, [Layer(ignore=("DEV101",)), Layer(select=("DEV1",))]) == ("DEV101", "DEV102")


def test_a_later_ignore_takes_from_what_the_earlier_layer_selected() -> None:
    assert enabled(METAS, [Layer(select=("DEV1",)), Layer(ignore=("DEV101",))]) == ("DEV102",)


def test_an_unreadable_file_is_reported_whatever_is_selected() -> None:
    metas = (*METAS, UNREADABLE_FILE)
    assert enabled(metas, [Layer(select=("DEV101",)), Layer(ignore=("DEV",))]) == ("DEV900",)
    assert enabled(metas, [Layer(select=("DEV101",), ignore=("DEV900",))]) == ("DEV101",)


def test_an_unknown_selector_is_an_error_with_the_nearest_rule() -> None:
    with pytest.raises(UsageError, match=r"^pyproject.toml: unknown rule `DEV109`; did you mean `DEV10[12]`\?$"):
        enabled(METAS, [Layer(select=("DEV109",), where="pyproject.toml")])
    with pytest.raises(UsageError, match=r"^unknown rule `mixed-device`; did you mean `mixed-devices`\?$"):
        enabled(METAS, [Layer(ignore=("mixed-device",))])


def test_an_empty_selector_is_an_error() -> None:
    with pytest.raises(UsageError, match="unknown rule ``"):
        enabled(METAS, [Layer(ignore=("",))])

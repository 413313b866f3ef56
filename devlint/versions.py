"""Versions and what `required-version` asks of them: `>=0.2, <1`, `==0.3.*`, `~=0.3.1`, or a version alone."""

from __future__ import annotations

import re

_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)*")
_CLAUSE = re.compile(r"\s*(>=|<=|==|!=|~=|>|<|)\s*([0-9]+(?:\.[0-9]+)*)(\.\*)?\s*\Z")


def satisfies(version: str, required: str) -> bool:
    """Whether a version meets every clause of `required`, separated by commas. Raises ValueError for another text.

    Only the numbers of a release count; what follows them in `version` (`0.2.0.dev1`, `0.2.0rc1`) does not.
    """
    match = _VERSION.match(version)
    have = _numbers(match[0]) if match else []
    return all(_meets(have, clause) for clause in required.split(","))


def _meets(have: list[int], clause: str) -> bool:
    match = _CLAUSE.match(clause)
    if match is None or (match[3] and match[1] not in ("==", "!=", "")):
        raise ValueError(f'expected versions such as ">=0.2,<1", not "{clause.strip()}"')
    operator, wanted = match[1] or "==", _numbers(match[2])
    if operator == "~=":
        return _compare(have, wanted) >= 0 and have[: len(wanted) - 1] == wanted[:-1]
    order = _compare(have[: len(wanted)] if match[3] else have, wanted)
    return {
        ">=": order >= 0,
        "<=": order <= 0,
        "==": order == 0,
        "!=": order != 0,
        ">": order > 0,
        "<": order < 0,
    }[operator]


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(".")]


def _compare(one: list[int], other: list[int]) -> int:
    size = max(len(one), len(other))
    left, right = (each + [0] * (size - len(each)) for each in (one, other))
    return (left > right) - (left < right)

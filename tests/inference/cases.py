"""Small programs in two versions: one that fails on a machine with a GPU, and its repaired twin.

A text holds many cases. Each starts with `## name`. A line that ends in `# wrong` stands in the failing program alone, one
that ends in `# right` in the repaired one alone. A line that ends in `# run` drives the program where it is executed; the
inference never sees it. Every program starts with `PRELUDE`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import pytest

from devlint.api import DeviceMismatch, Severity
from devlint.inference.analysis import device_mismatches
from devlint.source import Source

PRELUDE = "import torch\nfrom torch import nn\n\n"
_MARK: Final = re.compile(r"\s*# (wrong|right|run|run wrong|run right)$")

#: Where a line goes, by its mark.
_GOES_TO: Final[dict[str, tuple[str, ...]]] = {
    "": ("wrong", "right"), "wrong": ("wrong",), "right": ("right",),
    "run": ("run wrong", "run right"), "run wrong": ("run wrong",), "run right": ("run right",),
}  # fmt: skip


class Finding(NamedTuple):
    """What a test asks of a mismatch."""

    code: str
    line: int
    severity: Severity
    evidence: str
    soft: bool
    when: str
    clause: str


class Case(NamedTuple):
    """A failing program and its repaired twin, and the lines that run each."""

    name: str
    wrong: str
    right: str
    drive_wrong: str
    drive_right: str


def events(text: str) -> list[DeviceMismatch]:
    """The mismatches that the inference gives for one file which is read alone."""
    source = Source("case.py", text.encode(), text)
    return device_mismatches(ast.parse(text), source, None)[0]


def findings(text: str) -> list[Finding]:
    """The mismatches of one file, as tests compare them."""
    source = Source("case.py", text.encode(), text)
    return [
        Finding(each.code, source.row(each.span.start), each.severity, each.evidence, each.soft, each.when, each.clause)
        for each in events(text)
    ]  # fmt: skip


def reported(text: str) -> list[Finding]:
    """The findings that make a run fail: those above info."""
    return [each for each in findings(text) if each.severity is not Severity.INFO]


def sources(text: str) -> dict[str, str]:
    """The programs of a text that has one version of each, by name."""
    parts = re.split(r"^## (\w+)\n", text, flags=re.MULTILINE)[1:]
    found = {name: PRELUDE + body.rstrip() + "\n" for name, body in zip(parts[::2], parts[1::2], strict=True)}
    assert len(found) == len(parts) // 2, "two programs have one name"
    return found


def cases(text: str) -> tuple[Case, ...]:
    """The cases of a text."""
    parts = re.split(r"^## (\w+)\n", text, flags=re.MULTILINE)[1:]
    return tuple(_case(name, body) for name, body in zip(parts[::2], parts[1::2], strict=True))


def halves(found: tuple[Case, ...], half: str, faults: Mapping[str, str]) -> list[object]:
    """The parameters of a test over one half of the cases. `faults`: what the inference gets wrong, by name and half."""
    unknown = {name.partition(":")[0] for name in faults} - {each.name for each in found}
    assert not unknown, f"no such case: {sorted(unknown)}"
    return [
        pytest.param(getattr(each, half), id=each.name, marks=marks(faults.get(f"{each.name}:{half}")))
        for each in found
    ]  # fmt: skip


def marks(reason: str | None) -> tuple[pytest.MarkDecorator, ...]:
    return () if reason is None else (pytest.mark.xfail(strict=True, reason=reason, raises=AssertionError),)


def _case(name: str, body: str) -> Case:
    kept: dict[str, list[str]] = {"wrong": [], "right": [], "run wrong": [], "run right": []}
    for line in body.rstrip().splitlines():
        mark = _MARK.search(line)
        for half in _GOES_TO["" if mark is None else mark[1]]:
            kept[half].append(_MARK.sub("", line))
    wrong, right, drive_wrong, drive_right = ("\n".join(lines) + "\n" for lines in kept.values())
    assert wrong != right, f"{name}: both versions are the same"
    return Case(name, PRELUDE + wrong, PRELUDE + right, drive_wrong, drive_right)

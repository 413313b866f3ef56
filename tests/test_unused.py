"""What is said about suppression comments: DEV901 and DEV902, and their fixes."""

from __future__ import annotations

import pytest

from devlint.engine import Linter
from devlint.fix.rounds import fix_source
from devlint.model import Safety
from devlint.settings import Settings
from devlint.source import decode
from devlint_rules import RULES

MOVE = 'import torch\ndevice = torch.device("cuda" if torch.cuda.is_available() else "cpu")\nx = torch.zeros(3)'


def linter(*select: str, ignore: tuple[str, ...] = ()) -> Linter:
    return Linter(tuple(rule() for rule in RULES), Settings(select=select, ignore=ignore))


def codes(text: str, *select: str, ignore: tuple[str, ...] = ()) -> list[str]:
    return [d.code for d in linter(*select, ignore=ignore).check(decode(text.encode(), "a.py")).diagnostics]


def test_unused_comment_is_reported_by_default() -> None:
    assert codes(f"{MOVE}  # devlint: ignore[DEV501]\n") == ["DEV901"]


def test_comment_for_a_rule_that_is_off_is_not_unused() -> None:
    text = f"{MOVE}  # devlint: ignore[DEV501]\n"
    assert codes(text, "DEV101", "DEV901") == []
    assert codes(text, ignore=("DEV501",)) == []
    assert codes(text, "DEV501", "DEV901") == ["DEV901"]


def test_prefix_is_unused_only_if_all_its_rules_are_on() -> None:
    text = "import torch\nx = 1  # devlint: ignore[DEV2]\n"
    assert codes(text) == []  # some of DEV2 are off by default
    assert codes(text, "ALL") == ["DEV901"]


def test_rules_about_comments_can_be_switched_off() -> None:
    text = f"{MOVE}  # devlint: ignore[DEV501, zzz]\n"
    assert codes(text) == ["DEV901", "DEV902"]
    assert codes(text, ignore=("DEV9",)) == []
    assert codes(text, ignore=("unused-suppression",)) == ["DEV902"]


def test_file_without_torch_is_judged_as_well() -> None:
    assert codes("x = 1  # devlint: ignore[DEV501]\n") == ["DEV901"]
    assert codes("x = 1  # noqa: E501\n") == []


def test_nothing_is_unused_in_a_file_that_was_not_analysed_to_its_end() -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    broken = Linter(tuple(rule() for rule in RULES), Settings(), analyse=fails)  # type: ignore[arg-type]
    result = broken.check(decode(f"{MOVE}  # devlint: ignore[DEV501]\n".encode(), "a.py"))
    assert result.crashes
    assert not result.diagnostics


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1  # devlint: ignore[DEV501]", "x = 1"),
        ("x = 1\t# noqa: DEV501 for now", "x = 1"),
        ("x = 1  # noqa: DEV501  # type: ignore", "x = 1  # type: ignore"),
        ("x = 1  # type: ignore  # noqa: DEV501", "x = 1  # type: ignore"),
        ("x = 1  # noqa: E501,DEV501,DEV101 long", "x = 1  # noqa: E501 long"),
        ("x = 1\n    # devlint: ignore[DEV501]\ny = 2", "x = 1\ny = 2"),
        ("é = '\U0001f600'  # devlint: ignore[DEV501]", "é = '\U0001f600'"),
    ],
)
def test_what_is_unused_is_removed_and_nothing_else(before: str, after: str, newline: str) -> None:
    text = (before + "\nz = 3\n").replace("\n", newline)
    outcome = fix_source(linter(), decode(text.encode(), "a.py"), (Safety.SAFE,))
    assert outcome.text == (after + "\nz = 3\n").replace("\n", newline)


def test_comment_that_a_fix_makes_unused_goes_with_it() -> None:
    text = MOVE.replace("zeros(3)", "zeros(3).to(device)") + "  # devlint: ignore[DEV101]\n"
    outcome = fix_source(linter(), decode(text.encode(), "a.py"), (Safety.SAFE,))
    assert outcome.text.endswith("x = torch.zeros(3, device=device)\n")


def test_unknown_code_says_which_was_meant() -> None:
    result = linter().check(decode(b"x = 1  # devlint: ignore[DEV1O2]\n", "a.py"))
    assert [d.message for d in result.diagnostics] == ["no rule has the code or name `DEV1O2`; did you mean `DEV102`?"]


# Comments that are misspelt


@pytest.mark.parametrize(
    "comment",
    [
        "# devlint: ignore",
        "# devlint:ignore",
        "# devlint: ignore because of that",
        "# devlint: ignore DEV101",
        "# devlint: ignore(DEV101)",
        "# devlint: ignore[DEV101",
        "# devlint: ignore[]",
        "# devlint: ignore[ , ]",
        "# devlint: ignore=DEV101",
        "# devlint: file-ignore",
        "# devlint: file_ignore[DEV101]",
        "# devlint: disable",
        "# devlint: enable",
        "# devlint: ignor[DEV101]",
        "# devlint: ingore[DEV101]",
        "# devlint: disabled[DEV101]",
        "# devlint: noqa",
        "# devlint: skip-file",
        "# devlint: off",
        "# devlint: DEV101",
        "# devlint: [DEV101]",
        "# devlint: allow[DEV101]",
        "# devlint ignore[DEV101]",
        "# devlint ignore",
        "# devlint-ignore[DEV101]",
        "# devlint = ignore[DEV101]",
        "# DevLint: Ignore",
        "# devlnt: ignore[DEV101]",
        "# devlimt: ignore[DEV101]",
        "# dev-lint: disable[DEV101]",
        "# devlints: ignor[DEV101]",
        "# a note  # devlint: ignore",
        "#devlint: ignore",
    ],
)
def test_comment_that_silences_nothing_as_it_is_written_is_reported(comment: str) -> None:
    assert codes(f"import torch\nx = 1  {comment}\n") == ["DEV902"]


@pytest.mark.parametrize(
    ("comment", "rules"),
    [
        ("# devlint: ignroe[DEV102]", "[DEV102]"),
        ("# devlint: ignore=dev501, DEV102", "[DEV501, DEV102]"),
        ("# devlint ignore(DEV102)", "[DEV102]"),
        ("# devlint: ignore", "[DEV101]"),
    ],
)
def test_what_is_to_be_written_names_the_rules_of_the_comment(comment: str, rules: str) -> None:
    (found,) = linter().check(decode(f"import torch\nx = 1  {comment}\n".encode(), "a.py")).diagnostics
    assert f"write `# devlint: ignore{rules}`" in found.message


@pytest.mark.parametrize(
    "comment",
    [
        "# devlint finds this",
        "# devlint ignores what is made on the CPU",
        "# devlint: see the page about ignoring",
        "# see devlint: ignore",
        '# write "# devlint: ignore" with brackets',
        "# `# devlint: ignore` silences nothing",
        "# devlint: device=cpu",
        "# pylint: disable=DEV101",
        "# type: ignore[DEV101]",
        "# pyright: ignore[DEV101]",
        "# https://example.org/devlint: ignore",
        "# noqa: devlint ignore",
        "# dev: ignore[DEV101]",
    ],
)
def test_words_about_devlint_are_no_comments_for_it(comment: str) -> None:
    assert codes(f"import torch\nx = 1  {comment}\n") == []


def test_misspelt_comment_in_a_string_is_text() -> None:
    assert codes('import torch\nx = "# devlint: ignore"\n') == []


def test_misspelt_comment_can_be_silenced() -> None:
    assert codes("import torch\n# devlint: file-ignore[DEV902]\nx = 1  # devlint: ignore\n") == []

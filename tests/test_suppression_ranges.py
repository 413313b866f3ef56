"""Comments that silence findings in a whole file or in a range of rows."""

from __future__ import annotations

from devlint.engine import Linter
from devlint.settings import Settings
from devlint_rules import RULES

MOVE = 'x = torch.zeros(3).to("cuda")\n'
COMMENTS = Settings(select=("DEV501", "DEV901", "DEV902"))


def rows(text: str) -> list[tuple[str, int]]:
    """Code and row of each finding."""
    found = Linter([rule() for rule in RULES], COMMENTS).check_bytes(text.encode(), "a.py").diagnostics
    return [(each.code, each.start.row) for each in found]


def test_file_ignore_counts_everywhere_and_wherever_it_stands() -> None:
    assert rows(f"import torch\n{MOVE}# devlint: file-ignore[DEV501] old code\n{MOVE}") == []


def test_file_ignore_of_another_rule_silences_nothing_and_is_unused() -> None:
    assert rows(f"# devlint: file-ignore[DEV501, create-then-move]\nimport torch\n{MOVE}") == []
    text = f"# devlint: file-ignore[DEV901]\nimport torch\n{MOVE}"
    assert rows(text) == [("DEV501", 3)]


def test_a_range_ends_at_enable() -> None:
    text = f"import torch\n{MOVE}# devlint: disable[DEV501]\n{MOVE}{MOVE}# devlint: enable[DEV501]\n{MOVE}"
    assert rows(text) == [("DEV501", 2), ("DEV501", 7)]


def test_a_range_without_an_end_goes_on() -> None:
    assert rows(f"import torch\n{MOVE}# devlint: disable[create-then-move]\n{MOVE}{MOVE}") == [("DEV501", 2)]


def test_enable_ends_what_it_names_and_no_other_range() -> None:
    text = f"import torch\n# devlint: disable[DEV501, DEV1]\n# devlint: enable[DEV1]\n{MOVE}"
    assert ("DEV501", 4) not in rows(text)


def test_a_range_counts_for_a_statement_that_begins_in_it() -> None:
    text = 'import torch\n# devlint: disable[DEV501]\nx = torch.zeros(3).to(\n    # devlint: enable[DEV501]\n    "cuda"\n)\n'
    assert rows(text) == []


def test_a_range_can_begin_again() -> None:
    block = f"# devlint: disable[DEV501]\n{MOVE}# devlint: enable[DEV501]\n"
    assert rows(f"import torch\n{block}{MOVE}{block}") == [("DEV501", 5)]


def test_what_silences_or_ends_nothing_is_unused() -> None:
    text = (
        f"import torch\n# devlint: disable[DEV501]\ny = 1\n# devlint: enable[DEV501]\n# devlint: enable[DEV501]\n{MOVE}"
    )
    assert rows(text) == [("DEV901", 2), ("DEV901", 5), ("DEV501", 6)]


def test_an_unknown_rule_is_named_in_every_form() -> None:
    for form in ("file-ignore", "disable", "enable"):
        assert ("DEV902", 1) in rows(f"# devlint: {form}[DEV999]\nimport torch\n")


def test_the_words_in_a_string_silence_nothing() -> None:
    assert rows(f's = "# devlint: file-ignore[DEV501]"\nimport torch\n{MOVE}') == [("DEV501", 3)]

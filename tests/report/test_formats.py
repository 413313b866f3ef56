"""The report formats on one small run: full, concise, JSON and statistics."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from devlint.config import OUTPUT_FORMATS
from devlint.model import (
    Diagnostic,
    FileResult,
    Position,
    Related,
    Safety,
    Severity,
    Span,
    Statistics,
    TextEdit,
    TextFix,
)
from devlint.report import FORMATS, FileReport, Run, load_format
from devlint.report.closing import fixed_lines
from devlint.report.lines import Lines
from devlint.terminal import PLAIN, Style

TEXT = 'import torch\n\nwhere = "cuda"\n名 = "重要"; x = torch.ones(3).to(where)\n'


def diagnostic(needle: str, fix: TextFix | None = None, because: tuple[str, str] | None = None) -> Diagnostic:
    """A finding on the first place where `TEXT` says `needle`, explained by the place of `because[0]`."""
    lines = Lines(TEXT)
    start = TEXT.index(needle)
    related: tuple[Related, ...] = ()
    if because is not None:
        at = TEXT.index(because[0])
        related = (Related("a.py", lines.position(at), lines.position(at + len(because[0])), because[1]),)
    return Diagnostic(
        "a.py",
        "DEV501",
        "create-then-move",
        Severity.WARNING,
        "tensor is made on the CPU, then copied to `cuda`",
        Span(start, start + len(needle)),
        lines.position(start),
        lines.position(start + len(needle)),
        fix,
        related,
    )


def replacing(old: str, new: str, safety: Safety = Safety.SAFE) -> TextFix:
    start = TEXT.index(old)
    return TextFix("make it there", safety, (TextEdit(start, start + len(old), new),))


FINDING = diagnostic("torch.ones(3).to(where)", replacing(").to(where)", ", device=where)"), ('"cuda"', "decided here"))


def run(*found: Diagnostic, text: str | None = TEXT, fixed: Sequence[Diagnostic] = (), unsafe: bool = False) -> Run:
    levels = frozenset({Safety.SAFE, Safety.UNSAFE} if unsafe else {Safety.SAFE})
    result = FileResult("a.py", list(found), statistics=Statistics(files=1, lines=4, lines_parsed_by_libcst=1))
    return Run([FileReport(result, text, tuple(fixed), levels)])


def rendered(name: str, what: Run, style: Style = PLAIN) -> str:
    return "\n".join(load_format(name).render(what, style))


def test_full_shows_the_code_the_second_place_and_the_fix() -> None:
    assert rendered("full", run(FINDING)) == (
        "DEV501 [*] tensor is made on the CPU, then copied to `cuda`\n"
        " --> a.py:4:15\n"
        '4 | 名 = "重要"; x = torch.ones(3).to(where)\n'
        "  |                  ^^^^^^^^^^^^^^^^^^^^^^^\n"
        '3 | where = "cuda"  -- decided here\n'
        "help: make it there\n"
        '4 - 名 = "重要"; x = torch.ones(3).to(where)\n'
        '4 + 名 = "重要"; x = torch.ones(3, device=where)\n'
        "\n"
        "Found 1 problem in 1 file.\n"
        "[*] 1 fixable with `--fix`."
    )


def test_full_marks_a_second_place_on_the_same_row_in_the_same_frame() -> None:
    found = diagnostic("torch.ones(3).to(where)", because=("torch.ones(3)", "made here"))
    assert rendered("full", run(found)).splitlines()[2:5] == [
        '4 | 名 = "重要"; x = torch.ones(3).to(where)',
        "  |                  ^^^^^^^^^^^^^^^^^^^^^^^",
        "  |                  ------------- made here",
    ]


def test_full_names_a_second_place_in_another_file_without_its_code() -> None:
    related = Related("b.py", Position(7, 2), Position(7, 5), "decided here")
    lines = rendered("full", run(replace(FINDING, related=(related,)))).splitlines()
    assert "  :: b.py:7:2: decided here" in lines


def test_full_says_when_a_fix_is_unsafe() -> None:
    found = diagnostic("torch.ones(3)", replacing("ones", "rand", Safety.UNSAFE))
    text = rendered("full", run(found))
    assert text.startswith("DEV501 tensor")
    assert "\nhelp: make it there (unsafe fix)\n" in text
    assert text.endswith("\nFound 1 problem in 1 file.\n1 fixable with `--fix --unsafe-fixes`.")


def test_full_shows_a_hint_without_a_diff() -> None:
    text = rendered("full", run(diagnostic("torch.ones(3)", TextFix("do it by hand", Safety.HINT))))
    assert text.endswith("^\nhelp: do it by hand\n\nFound 1 problem in 1 file.")


def test_full_without_the_text_of_the_file_shows_the_place_alone() -> None:
    found = replace(FINDING, related=(), fix=None)
    assert rendered("full", run(found, text=None)).splitlines()[:2] == [
        "DEV501 tensor is made on the CPU, then copied to `cuda`",
        " --> a.py:4:15",
    ]


def test_row_numbers_of_one_problem_have_one_width() -> None:
    text = "x\n" * 9 + TEXT
    shift = 18
    fix = TextFix("t", Safety.SAFE, (TextEdit(shift, shift, "import a\n"),))
    found = replace(FINDING, start=Position(9, 1), end=Position(9, 2), related=(), fix=fix)
    rows = rendered("full", run(found, text=text)).splitlines()
    assert rows[1:4] == ["  --> a.py:9:1", " 9 | x", "   | ^"]
    assert "10 + import a" in rows


def test_concise_is_one_line_for_each_problem() -> None:
    other = replace(FINDING, fix=None, message="two\nlines", start=Position(1, 8))
    assert rendered("concise", run(FINDING, other)) == (
        "a.py:4:15: DEV501 [*] tensor is made on the CPU, then copied to `cuda`\n"
        "a.py:1:8: DEV501 two lines\n"
        "Found 2 problems in 1 file.\n"
        "[*] 1 fixable with `--fix`."
    )


def test_unsafe_fixes_are_counted_apart_until_they_are_allowed() -> None:
    unsafe = diagnostic("torch.ones(3)", replacing("ones", "rand", Safety.UNSAFE))
    counted = rendered("concise", run(FINDING, unsafe)).splitlines()[-1]
    assert counted == "[*] 1 fixable with `--fix` (1 more with `--unsafe-fixes`)."
    allowed = rendered("concise", run(FINDING, unsafe, unsafe=True)).splitlines()
    assert allowed[1].startswith("a.py:4:15: DEV501 [*] ")
    assert allowed[-1] == "[*] 2 fixable with `--fix`."


@pytest.mark.parametrize("name", ["full", "concise"])
def test_a_clean_run_prints_one_line(name: str) -> None:
    assert rendered(name, run()) == "No device problems found in 1 file."


def test_a_run_with_errors_does_not_look_like_success() -> None:
    assert rendered("concise", replace(run(), errors=2)) == "No device problems found in 1 file; 2 errors, see above."


def test_closing_lines_count_what_was_fixed() -> None:
    assert rendered("concise", run(fixed=[FINDING])) == "Fixed 1 problem; none left in 1 file."
    assert rendered("concise", replace(run(fixed=[FINDING, FINDING]), fix_only=True)) == "Fixed 2 problems in 1 file."
    left = replace(FINDING, fix=None)
    assert rendered("concise", run(left, fixed=[FINDING])).endswith("Found 2 problems in 1 file (1 fixed, 1 left).")


def test_show_fixes_counts_per_file_and_rule() -> None:
    other = replace(FINDING, code="DEV101", name="mixed")
    assert "\n".join(fixed_lines(run(fixed=[FINDING, other, FINDING]), PLAIN)) == (
        "Fixed 3 problems:\n"
        "- a.py:\n"
        "    1 x DEV101 (mixed)\n"
        "    2 x DEV501 (create-then-move)"
    )  # fmt: skip
    assert list(fixed_lines(run(), PLAIN)) == []


def test_json_rows_have_every_key() -> None:
    assert json.loads(rendered("json", run(FINDING))) == [
        {
            "code": "DEV501",
            "name": "create-then-move",
            "severity": "warning",
            "certainty": "certain",
            "evidence": None,
            "proof": None,
            "message": "tensor is made on the CPU, then copied to `cuda`",
            "filename": "a.py",
            "cell": None,
            "location": {"row": 4, "column": 15},
            "end_location": {"row": 4, "column": 38},
            "fix": {
                "applicability": "safe",
                "message": "make it there",
                "edits": [
                    {
                        "content": ", device=where)",
                        "location": {"row": 4, "column": 27},
                        "end_location": {"row": 4, "column": 38},
                    }
                ],
            },
            "related": [
                {
                    "filename": "a.py",
                    "cell": None,
                    "location": {"row": 3, "column": 9},
                    "end_location": {"row": 3, "column": 15},
                    "message": "decided here",
                }
            ],
            "folded": [],
            "url": None,
        }
    ]


def test_json_of_a_clean_run_is_an_empty_array() -> None:
    assert rendered("json", run()) == "[]"


def test_json_lists_what_a_fix_shares_with_others_in_the_order_of_the_file() -> None:
    fix = TextFix("t", Safety.HINT, (TextEdit(20, 21, "b"),), (TextEdit(13, 13, "import a\n"),))
    edits = json.loads(rendered("json", run(replace(FINDING, fix=fix))))[0]["fix"]["edits"]
    assert [(edit["content"], edit["location"]) for edit in edits] == [
        ("import a\n", {"row": 2, "column": 1}),
        ("b", {"row": 3, "column": 7}),
    ]


def test_json_stays_ascii_whatever_the_names() -> None:
    text = rendered("json", run(replace(FINDING, path="重\udcff.py")))
    assert text.isascii()
    assert json.loads(text)[0]["filename"] == "重\udcff.py"


def test_statistics_count_per_rule_and_what_was_read() -> None:
    other = replace(FINDING, code="DEV101", name="mixed", fix=None)
    unfixable = replace(FINDING, fix=None)
    found = run(FINDING, other, unfixable)
    counts = "2  DEV501  [-] create-then-move\n1  DEV101  [ ] mixed"
    assert "\n".join(load_format("full").render_statistics(found, PLAIN)) == counts
    text = "\n".join(load_format("full").render_statistics(replace(found, verbose=True), PLAIN))
    assert text == (
        f"{counts}\n"
        "\n"
        "files                            1\n"
        "  without a rule's word          0\n"
        "lines                            4\n"
        "  parsed by libcst               1 (25.0%)\n"
        "suspects                         0\n"
        "budget hits                      0"
    )


def test_statistics_of_a_clean_run_say_so() -> None:
    assert next(iter(load_format("concise").render_statistics(run(), PLAIN))) == "No device problems found."


def test_statistics_as_json() -> None:
    data = json.loads("\n".join(load_format("json").render_statistics(run(FINDING), PLAIN)))
    assert data["rules"] == [{"code": "DEV501", "name": "create-then-move", "count": 1, "fixable": 1}]
    assert (data["files"], data["lines"], data["lines_parsed_by_libcst"], data["budget_hits"]) == (1, 4, 1, 0)


@pytest.mark.parametrize("name", ["full", "concise"])
def test_color_adds_escape_sequences_and_nothing_else(name: str) -> None:
    colored = rendered(name, run(FINDING), Style(color=True))
    assert colored != rendered(name, run(FINDING))
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == rendered(name, run(FINDING))


@pytest.mark.parametrize("name", ["full", "concise"])
def test_a_hostile_file_name_cannot_steer_the_terminal(name: str) -> None:
    assert "\x1b" not in rendered(name, run(replace(FINDING, path="\x1b[2Ja.py", message="\x1b[2J")))


def test_the_setting_and_the_table_name_the_same_formats() -> None:
    assert tuple(FORMATS) == OUTPUT_FORMATS

"""The formats that services and editors read, on one small run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from devlint.model import Diagnostic, FileResult, Position, Related, Safety, Severity, Span, TextEdit, TextFix
from devlint.report import FileReport, Run, load_format
from devlint.report.lines import Lines
from devlint.report.places import repository_path
from devlint.terminal import PLAIN

TEXT = 'import torch\n名 = "重要"; x = torch.ones(3).to("cuda")\n'
NEEDLE = 'torch.ones(3).to("cuda")'
START = TEXT.index(NEEDLE)
LINES = Lines(TEXT)
FINDING = Diagnostic(
    "src/a.py",
    "DEV501",
    "create-then-move",
    Severity.WARNING,
    "tensor is made on the CPU, then copied: 100%",
    Span(START, START + len(NEEDLE)),
    LINES.position(START),
    LINES.position(START + len(NEEDLE)),
    TextFix("make it there", Safety.SAFE, (TextEdit(START + 12, START + 17, ", device="),)),
    (Related("src/a.py", Position(1, 8), Position(1, 13), "imported here"),),
    context="f:0123",
)
IN_CELL = replace(FINDING, path="n.ipynb", cell=3)


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test stands in the root of a repository."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


def run(*found: Diagnostic) -> Run:
    files: dict[str, list[Diagnostic]] = {"src/a.py": []}
    for diagnostic in found:
        files.setdefault(diagnostic.path, []).append(diagnostic)
    return Run(
        [
            FileReport(FileResult(path, diagnostics), TEXT if path.endswith(".py") else None, cells={3: TEXT})
            for path, diagnostics in files.items()
        ]
    )


def rendered(name: str, *found: Diagnostic) -> str:
    return "\n".join(load_format(name).render(run(*found), PLAIN))


def test_grouped_puts_the_problems_of_a_file_under_its_name() -> None:
    other = replace(FINDING, start=Position(11, 2), fix=None)
    assert rendered("grouped", FINDING, other, IN_CELL) == (
        "src/a.py:\n"
        "  2:15  DEV501 [*] tensor is made on the CPU, then copied: 100%\n"
        "  11:2  DEV501 tensor is made on the CPU, then copied: 100%\n"
        "\n"
        "n.ipynb:\n"
        "  cell 3:2:15  DEV501 [*] tensor is made on the CPU, then copied: 100%\n"
        "\n"
        "Found 3 problems in 2 files.\n"
        "[*] 2 fixable with `--fix`."
    )


def test_json_lines_are_the_rows_of_the_json_format() -> None:
    lines = rendered("json-lines", FINDING, IN_CELL).splitlines()
    assert [json.loads(line) for line in lines] == json.loads(rendered("json", FINDING, IN_CELL))
    assert [json.loads(line)["cell"] for line in lines] == [None, 3]


def test_json_lines_of_a_clean_run_are_none() -> None:
    assert rendered("json-lines") == ""


def test_github_escapes_and_gives_both_columns_on_one_line() -> None:
    assert rendered("github", FINDING).splitlines() == [
        "::warning title=DEV501 (create-then-move),file=src/a.py,line=2,col=15,endLine=2,endColumn=39"
        "::DEV501 tensor is made on the CPU, then copied: 100%25",
        "Found 1 problem in 1 file.",
    ]


def test_github_leaves_the_end_column_out_when_the_problem_spans_lines() -> None:
    assert "endColumn" not in rendered("github", replace(FINDING, end=Position(4, 2)))


def test_github_shows_the_most_severe_first() -> None:
    error, note = replace(FINDING, severity=Severity.ERROR), replace(FINDING, severity=Severity.INFO)
    kinds = [line.split(" ")[0] for line in rendered("github", note, FINDING, error).splitlines()[:-1]]
    assert kinds == ["::error", "::warning", "::notice"]


def test_github_escapes_what_ends_a_property() -> None:
    assert ",file=src/a%2Cb%3Ac.py," in rendered("github", replace(FINDING, path="src/a,b:c.py"))


def test_gitlab_gives_path_position_and_a_fingerprint() -> None:
    (row,) = json.loads(rendered("gitlab", FINDING))
    assert len(row.pop("fingerprint")) == 20
    assert row == {
        "description": "DEV501: tensor is made on the CPU, then copied: 100%",
        "check_name": "create-then-move",
        "severity": "minor",
        "location": {
            "path": "src/a.py",
            "positions": {"begin": {"line": 2, "column": 15}, "end": {"line": 2, "column": 39}},
        },
    }


def test_gitlab_fingerprints_stay_when_rows_shift_and_differ_for_equal_findings() -> None:
    moved = replace(FINDING, start=Position(9, 15), end=Position(9, 39), span=Span(90, 95))
    (before,) = json.loads(rendered("gitlab", FINDING))
    first, second = json.loads(rendered("gitlab", moved, moved))
    assert before["fingerprint"] == first["fingerprint"] != second["fingerprint"]


def test_junit_has_a_suite_for_a_file_and_a_failure_for_a_problem() -> None:
    suites = ElementTree.fromstring(rendered("junit", FINDING, replace(FINDING, message="a < b\x00\x1b")))
    (suite,) = suites
    assert suites.attrib == {"name": "devlint", "tests": "2", "failures": "2", "errors": "0"}
    assert suite.get("name") == "src/a.py"
    assert [case.get("name") for case in suite] == ["DEV501 (create-then-move)"] * 2
    assert suite[0][0].text == "2:15: DEV501 tensor is made on the CPU, then copied: 100%"
    assert suite[1][0].get("message") == "a < b\ufffd\ufffd"


def test_junit_of_a_clean_run_holds_a_passed_case() -> None:
    (suite,) = ElementTree.fromstring(rendered("junit"))
    assert [len(case) for case in suite] == [0]


def test_rdjson_counts_columns_in_bytes() -> None:
    (row,) = json.loads(rendered("rdjson", FINDING))["diagnostics"]
    column = len(TEXT.splitlines()[1].partition("torch")[0].encode()) + 1
    assert column == 21
    assert row["location"] == {
        "path": "src/a.py",
        "range": {"start": {"line": 2, "column": 21}, "end": {"line": 2, "column": 45}},
    }
    assert row["suggestions"] == [
        {
            "range": {"start": {"line": 2, "column": 33}, "end": {"line": 2, "column": 38}},
            "text": ", device=",
        }
    ]
    assert row["related_locations"][0]["message"] == "imported here"


def test_rdjson_offers_no_hint_as_a_suggestion() -> None:
    hint = TextFix("do it by hand", Safety.HINT)
    assert "suggestions" not in json.loads(rendered("rdjson", replace(FINDING, fix=hint)))["diagnostics"][0]


def test_azure_names_the_place_and_escapes_percent_signs() -> None:
    assert rendered("azure", FINDING, replace(FINDING, severity=Severity.ERROR, path="a]b;.py")).splitlines() == [
        "##vso[task.logissue type=warning;sourcepath=src/a.py;linenumber=2;columnnumber=15;code=DEV501;]"
        "tensor is made on the CPU, then copied: 100%AZP25",
        "##vso[task.logissue type=error;sourcepath=a%5Db%3B.py;linenumber=2;columnnumber=15;code=DEV501;]"
        "tensor is made on the CPU, then copied: 100%AZP25",
    ]


def test_pylint_is_one_line_for_each_problem() -> None:
    assert rendered("pylint", FINDING) == "src/a.py:2: [DEV501] tensor is made on the CPU, then copied: 100%"


@pytest.mark.parametrize("name", ["github", "gitlab", "junit", "azure", "pylint"])
def test_a_notebook_is_named_with_its_first_line_and_the_cell_in_the_message(name: str) -> None:
    text = rendered(name, IN_CELL)
    assert "cell 3:2:15: tensor is made" in text
    assert not {'"line": 2', 'line="2"', "line=2", "linenumber=2", "n.ipynb:2"} & {
        found for found in ('"line": 2', 'line="2"', "line=2", "linenumber=2", "n.ipynb:2") if found in text
    }


def test_rdjson_gives_a_notebook_no_range() -> None:
    (row,) = json.loads(rendered("rdjson", IN_CELL))["diagnostics"]
    assert row["location"] == {"path": "n.ipynb"}
    assert "suggestions" not in row


def test_paths_are_relative_to_the_repository_wherever_devlint_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path / "src")
    assert repository_path("a.py") == "src/a.py"


def test_a_path_outside_the_repository_stays_absolute(tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other") / "a.py"
    assert repository_path(str(other)) == other.as_posix()

"""SARIF: valid by the official schema, and complete for GitHub code scanning."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from devlint.model import Diagnostic, FileResult, Position, Related, Safety, Severity, Span, TextEdit, TextFix
from devlint.report import FileReport, Run, load_format
from devlint.terminal import PLAIN

SCHEMA = Path(__file__).parents[1] / "data" / "sarif" / "sarif-2.1.0-rtm.5.json"
TEXT = 'import torch\n\nwhere = "cuda"\nx = torch.ones(3).to(where)\n'
START = TEXT.index("torch.ones")
FINDING = Diagnostic(
    "src/a b.py",
    "DEV501",
    "create-then-move",
    Severity.WARNING,
    "tensor is made on the CPU, then copied",
    Span(START, START + 23),
    Position(4, 5),
    Position(4, 28),
    TextFix("make it there", Safety.UNSAFE, (TextEdit(START + 12, START + 17, ", device="),)),
    (
        Related("src/a b.py", Position(4, 5), Position(4, 18), "created on the CPU here"),
        Related("src/a b.py", Position(3, 9), Position(3, 15), "decided here"),
    ),
    context="Model.f:0123",
)


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


def log(*found: Diagnostic, errors: int = 0) -> dict[str, Any]:
    files = [
        FileReport(FileResult(path, [d for d in found if d.path == path]), TEXT) for path in {d.path for d in found}
    ]
    text = "\n".join(load_format("sarif").render(Run(files, errors=errors), PLAIN))
    data: dict[str, Any] = json.loads(text)
    return data


def result(*found: Diagnostic) -> dict[str, Any]:
    first: dict[str, Any] = log(*found)["runs"][0]["results"][0]
    return first


@pytest.mark.parametrize(
    "found",
    [
        [],
        [FINDING],
        [replace(FINDING, related=(), fix=None), replace(FINDING, severity=Severity.ERROR)],
        [replace(FINDING, path="n.ipynb", cell=2, related=(replace(FINDING.related[0], path="n.ipynb", cell=1),))],
        [replace(FINDING, code="DEV900", fix=TextFix("by hand", Safety.HINT))],
    ],
    ids=["nothing", "finding", "bare", "notebook", "unreadable"],
)
def test_output_is_valid_by_the_official_schema(found: list[Diagnostic]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    errors = [error.message for error in jsonschema.Draft4Validator(schema).iter_errors(log(*found))]
    assert errors == []


def test_the_schema_refuses_what_is_not_sarif() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    wrong = log(FINDING)
    del wrong["runs"][0]["results"][0]["message"]
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    assert list(jsonschema.Draft4Validator(schema).iter_errors(wrong))


def test_every_rule_has_what_code_scanning_requires() -> None:
    rules = log()["runs"][0]["tool"]["driver"]["rules"]
    assert "DEV501" in [rule["id"] for rule in rules]
    for rule in rules:
        assert rule["shortDescription"]["text"] and rule["help"]["text"] == rule["help"]["markdown"]
        assert 0 < len(rule["fullDescription"]["text"]) <= 1024
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
        assert rule["properties"]["precision"] in ("very-high", "high", "medium")


def test_the_place_is_relative_to_the_repository_with_all_four_numbers() -> None:
    assert result(FINDING)["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "src/a%20b.py", "uriBaseId": "%SRCROOT%"},
                "region": {"startLine": 4, "startColumn": 5, "endLine": 4, "endColumn": 28},
            }
        }
    ]
    assert log(FINDING)["runs"][0]["columnKind"] == "unicodeCodePoints"


def test_the_trace_is_a_code_flow_that_ends_at_the_problem() -> None:
    steps = result(FINDING)["codeFlows"][0]["threadFlows"][0]["locations"]
    texts = [step["location"]["message"]["text"] for step in steps]
    assert texts == ["decided here", "created on the CPU here", "tensor is made on the CPU, then copied"]


def test_a_problem_without_a_trace_has_no_code_flow() -> None:
    assert "codeFlows" not in result(replace(FINDING, related=()))


def test_the_fingerprint_survives_shifted_rows_and_counts_equal_findings() -> None:
    moved = replace(FINDING, start=Position(40, 5), end=Position(40, 28), span=Span(400, 423))
    first = result(FINDING)["partialFingerprints"]["primaryLocationLineHash"]
    both = [each["partialFingerprints"]["primaryLocationLineHash"] for each in log(moved, moved)["runs"][0]["results"]]
    assert both == [first, first.replace(":1", ":2")]


def test_a_fix_deletes_and_inserts() -> None:
    (fix,) = result(FINDING)["fixes"]
    assert fix["description"]["text"] == "make it there (unsafe)"
    assert fix["artifactChanges"][0]["replacements"] == [
        {
            "deletedRegion": {"startLine": 4, "startColumn": 17, "endLine": 4, "endColumn": 22},
            "insertedContent": {"text": ", device="},
        }
    ]


def test_a_notebook_has_the_cell_as_logical_location() -> None:
    found = result(replace(FINDING, path="n.ipynb", cell=2, related=()))
    (location,) = found["locations"]
    assert location["logicalLocations"] == [{"name": "cell 2", "kind": "module"}]
    assert location["physicalLocation"]["region"] == {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 1}
    assert location["properties"]["startLine"] == 4
    assert found["message"]["text"].startswith("cell 2:4:5: ")
    assert "fixes" not in found


def test_a_run_with_errors_was_not_successful() -> None:
    assert log(FINDING, errors=1)["runs"][0]["invocations"] == [{"executionSuccessful": False}]

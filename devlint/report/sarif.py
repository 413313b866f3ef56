"""Problems as SARIF 2.1.0, as GitHub code scanning takes it.

Paths are relative to the repository. Every region has its four numbers; columns count code points (`columnKind`). The
places that explain a problem are the steps of a code flow that ends at the problem, and related locations beside that.
Sources: the SARIF 2.1.0 standard (OASIS); docs.github.com, "SARIF support for code scanning".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from devlint import __version__
from devlint.addresses import project_urls, rule_url
from devlint.commands.rule import Explained, explained_rules
from devlint.identity import Key, fingerprint, keys
from devlint.model import Diagnostic, Position, Related, Safety, Severity, TextFix
from devlint.report import FileReport, Run
from devlint.report.data import as_json
from devlint.report.json_ import render_statistics
from devlint.report.lines import Lines
from devlint.report.places import message, related_places, repository_path
from devlint.terminal import Style

__all__ = ["render", "render_statistics"]

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_PROBLEM_SEVERITIES = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "recommendation"}
_PRECISIONS = {"certain": "very-high", "certain / assume": "high", "assume": "medium"}
_DESCRIPTION_LIMIT = 1024  # what GitHub shows of a description


def render(run: Run, style: Style) -> Iterator[str]:
    rules = explained_rules(run.plugins)
    index = {rule.meta.code: number for number, rule in enumerate(rules)}
    results = [
        _result(diagnostic, key, file, index)
        for file in run.files
        for diagnostic, key in zip(file.result.diagnostics, keys(file.result.diagnostics), strict=True)
    ]
    driver = {"name": "devlint", "semanticVersion": __version__, "rules": [_rule(rule) for rule in rules]}
    information = project_urls(__version__).get("Documentation")
    if information:
        driver["informationUri"] = information
    contents = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": run.errors == 0}],
        "results": results,
    }
    yield as_json({"$schema": _SCHEMA, "version": "2.1.0", "runs": [contents]}, indent=2)


def _rule(rule: Explained) -> dict[str, Any]:
    meta = rule.meta
    url = rule_url(meta.code)
    summary = meta.summary[:1].upper() + meta.summary[1:] + "."
    return {
        "id": meta.code,
        "name": meta.name,
        "shortDescription": {"text": summary},
        "fullDescription": {"text": _first_paragraph(rule.text)[:_DESCRIPTION_LIMIT] or summary},
        **({"helpUri": url} if url else {}),
        "help": {"text": rule.text, "markdown": rule.text},
        "defaultConfiguration": {"level": _LEVELS[meta.severity], "enabled": not meta.opt_in},
        "properties": {
            "tags": ["pytorch", "device"],
            "precision": _PRECISIONS[meta.level],
            "problem.severity": _PROBLEM_SEVERITIES[meta.severity],
        },
    }


def _first_paragraph(text: str) -> str:
    """The first paragraph of Markdown that is no heading, on one line."""
    for paragraph in text.split("\n\n"):
        lines = [line for line in paragraph.splitlines() if line and not line.startswith("#")]
        if lines:
            return " ".join(lines)
    return ""


def _result(diagnostic: Diagnostic, key: Key, file: FileReport, index: dict[str, int]) -> dict[str, Any]:
    place = _location(diagnostic)
    path = repository_path(diagnostic.path)
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": index.get(diagnostic.code, -1),
        "level": _LEVELS[diagnostic.severity],
        "message": {"text": message(diagnostic)},
        "properties": {"certainty": diagnostic.certainty},
        "locations": [place],
        "partialFingerprints": {"primaryLocationLineHash": f"{fingerprint(path, key)}:{key.ordinal + 1}"},
    }
    if diagnostic.related:
        steps = [{"location": _location(each, each.message)} for each in _in_order(diagnostic)]
        steps.append({"location": _location(diagnostic, message(diagnostic))})
        result["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    if places := related_places(diagnostic):
        result["relatedLocations"] = [
            {"id": number, **_location(each, each.message)} for number, each in enumerate(places, start=1)
        ]
    text = file.text_at(diagnostic.cell)
    if diagnostic.fix is not None and diagnostic.fix.edits and diagnostic.cell is None and text is not None:
        result["fixes"] = [_fix(diagnostic.fix, path, Lines.of(text))]
    return result


def _in_order(diagnostic: Diagnostic) -> list[Related]:
    """The steps that lead to the problem: those of other files first, then by place."""
    return sorted(
        diagnostic.related, key=lambda each: (each.path == diagnostic.path, each.path, each.cell or 0, each.start)
    )


def _location(what: Diagnostic | Related, text: str | None = None) -> dict[str, Any]:
    """A place. In a notebook the region is the file's first character; the cell is a logical location."""
    start, end = what.start, what.end
    location: dict[str, Any] = {}
    if what.cell is not None:
        name = f"cell {what.cell}"
        start = end = Position(1, 1)
        location["logicalLocations"] = [{"name": name, "kind": "module"}]
        location["properties"] = {
            "cell": what.cell,
            "startLine": what.start.row,
            "startColumn": what.start.column,
            "endLine": what.end.row,
            "endColumn": what.end.column,
        }
    location["physicalLocation"] = {
        "artifactLocation": _artifact(repository_path(what.path)),
        "region": _region(start, end),
    }
    if text is not None:
        location["message"] = {"text": text}
    return location


def _artifact(path: str) -> dict[str, str]:
    """A relative reference, or a file URI for a file outside the repository."""
    quoted = quote(path.encode("utf-8", "surrogateescape"), safe="/")
    if path.startswith("/"):
        return {"uri": f"file://{quoted}"}
    if path[1:2] == ":":  # a drive of Windows
        return {"uri": f"file:///{path[:2]}{quoted[4:]}"}
    return {"uri": quoted, "uriBaseId": "%SRCROOT%"}


def _region(start: Position, end: Position) -> dict[str, int]:
    return {"startLine": start.row, "startColumn": start.column, "endLine": end.row, "endColumn": end.column}


def _fix(fix: TextFix, path: str, lines: Lines) -> dict[str, Any]:
    unsafe = " (unsafe)" if fix.safety is Safety.UNSAFE else ""
    return {
        "description": {"text": f"{fix.title}{unsafe}"},
        "artifactChanges": [
            {
                "artifactLocation": _artifact(path),
                "replacements": [
                    {
                        "deletedRegion": _region(lines.position(edit.start), lines.position(edit.end)),
                        "insertedContent": {"text": edit.text},
                    }
                    for edit in sorted((*fix.edits, *fix.shared))
                ],
            }
        ],
    }

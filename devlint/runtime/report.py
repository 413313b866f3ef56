"""How a verification is printed: text for people, one JSON object for programs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from devlint.report import data
from devlint.runtime.correction import shown
from devlint.runtime.runs import Run, Stop, Verdict

if TYPE_CHECKING:
    from devlint.runtime.bench import JudgedFix, Report

_WIDTH = 110


def as_text(report: Report) -> str:
    """The runs with their outcomes, then each fix with its verdict and evidence, then what was not judged."""
    lines: list[str] = []
    if report.runs:
        on = f"run on: {report.device} (torch {report.torch})" if report.device else "run, but torch was not imported"
        lines += [f"{report.script}, {on}", ""]
        width = max(len(label) for label, _ in report.runs)
        lines += [f"  {label:<{width}}  {_short(run.text)}{_swallowed(run)}" for label, run in report.runs]
        lines.append("")
    for fix in report.fixes:
        lines += _fix(report, fix)
    if report.hints:
        lines += ["Not judged, because there is no fix to apply:"]
        lines += [
            f"  {report.file(case)}:{at.row}:{at.column}: {case.code} {case.message}".rstrip()
            for case, at in report.hints
        ]
        lines.append("")
    lines += [f"note: {note}" for note in report.notes]
    lines.append(_summary(report))
    if report.writes:
        lines += _written(report)
    elif report.falls_short:
        lines.append(f"The corrected program does not reach its intended end: {report.falls_short}")
    return "\n".join(lines)


def _fix(report: Report, fix: JudgedFix) -> list[str]:
    case, judgement = fix.case, fix.judgement
    where = f"{report.file(case)}:{fix.start.row}:{fix.start.column}"
    head = f"{where}: {case.code} {case.name}".rstrip()
    lines = [f"{head} ({case.safety.value} fix): {judgement.verdict.value.upper()}{_on(report, judgement.device)}"]
    if case.message:
        lines.append(f"    {case.message}")
    lines += [f"    {each}" for each in judgement.evidence]
    if judgement.then is not None:
        does = (
            "a test of the corrected program fails at" if judgement.then.test else "the corrected program then stops at"
        )
        lines.append(f"    {does} {judgement.then.where}: {judgement.then.text}")
    return [*lines, ""]


def _on(report: Report, device: str) -> str:
    return f" on {device}" if device else ""


def _short(text: str) -> str:
    """The start of an outcome; the evidence has the whole message."""
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."


def _swallowed(run: Run) -> str:
    caught = sum(each.count for each in run.caught)
    if not caught:
        return ""
    return f" ({caught} device {'fault' if caught == 1 else 'faults'} caught by the program)"


def _written(report: Report) -> list[str]:
    """What was written, and how it runs."""
    lines = [
        f"{shown(path)}: wrote {number} confirmed {'fix' if number == 1 else 'fixes'}."
        for path, number in report.written.items()
    ]
    lines = lines or ["Nothing was written."]
    what = "The program with these fixes" if report.written else "The program"
    if report.falls_short:
        return [*lines, f"{what} does not reach its intended end: {report.falls_short}"]
    return [*lines, f"{what} reaches its intended end."]


def _summary(report: Report) -> str:
    if not report.fixes:
        return "No fix to verify."
    counts = Counter(fix.judgement.verdict for fix in report.fixes)
    parts = [f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict]]
    total = len(report.fixes)
    return f"{total} {'fix' if total == 1 else 'fixes'}: {', '.join(parts)}."


def as_json(report: Report) -> str:
    """One object: `device`, `runs`, `fixes` with `verdict` and `evidence`, `hints`, `exit_code`.

    Rows and columns are 1-based, columns in code points, as in the linter's own JSON.
    """
    return data.as_json(
        {
            "version": 1,
            "program": report.script,
            "device": report.device,
            "torch": report.torch,
            "runs": [_run_row(label, run) for label, run in report.runs],
            "fixes": [_fix_row(report, fix) for fix in report.fixes],
            "hints": [
                {
                    "code": case.code,
                    "name": case.name,
                    "message": case.message,
                    "filename": report.file(case),
                    "location": _location(at),
                }
                for case, at in report.hints
            ],
            "notes": report.notes,
            "falls_short": report.falls_short,
            "written": {shown(path): number for path, number in report.written.items()},
            "exit_code": report.exit_code,
        },
        indent=2,
    )


def _run_row(label: str, run: Run) -> dict[str, Any]:
    return {
        "run": label,
        "device": run.device,
        "outcome": run.outcome.value,
        "text": run.text,
        "stop": _stop_row(run.stop),
        "device_faults_caught": sum(each.count for each in run.caught),
        "optimizer_steps": run.steps,
        "backward_passes": len(run.losses),
        "milliseconds": round(run.seconds * 1000, 1),
    }


def _fix_row(report: Report, fix: JudgedFix) -> dict[str, Any]:
    case, judgement = fix.case, fix.judgement
    return {
        "code": case.code,
        "name": case.name,
        "message": case.message,
        "filename": report.file(case),
        "location": _location(fix.start),
        "end_location": _location(fix.end),
        "fix": {"applicability": case.safety.value, "message": case.title},
        "verdict": judgement.verdict.value,
        "device": judgement.device,
        "evidence": list(judgement.evidence),
        "then": _stop_row(judgement.then),
    }


def _stop_row(stop: Stop | None) -> dict[str, Any] | None:
    if stop is None:
        return None
    return {"line": stop.line, "where": stop.where, "message": stop.text, "device_fault": stop.device}


def _location(at: Any) -> dict[str, int]:
    return {"row": at.row, "column": at.column}

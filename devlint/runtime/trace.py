"""The runs of a verification as a trace file: Chrome's trace event format, which Perfetto and chrome://tracing read.

Each run is a process; the host and each card are its threads. Times are microseconds from the start of the run.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from devlint.runtime.bench import Report
    from devlint.runtime.runs import Moment, Run

_TRANSFERS = {"h2d": "to the card", "d2h": "to the host", "d2d": "between cards"}


def as_trace(report: Report) -> str:
    """One JSON object with `traceEvents`."""
    rows: list[dict[str, Any]] = []
    for number, (label, run) in enumerate(report.runs, 1):
        rows += _run(number, f"{label} ({run.device or 'no device'})", run)
    return json.dumps({"traceEvents": rows, "displayTimeUnit": "ms", "otherData": {"program": report.script}})


def _run(number: int, label: str, run: Run) -> list[dict[str, Any]]:
    lanes = dict.fromkeys(lanes_of(run), 0)
    rows: list[dict[str, Any]] = [_name("process_name", number, 0, f"{number}. {label}")]
    for thread, (process, lane) in enumerate(lanes, 1):
        lanes[process, lane] = thread
        rows.append(_name("thread_name", number, thread, f"{lane} (process {process + 1})" if process else lane))
    for moment in run.timeline:
        at = {"pid": number, "ts": round(moment.seconds * 1e6, 1)}
        details = {"where": moment.where, "pending": moment.pending}
        if moment.bytes:
            details["bytes"] = moment.bytes
        rows.append(
            {
                **at,
                "tid": lanes[moment.process, "host"],
                "ph": "i",
                "s": "t",
                "name": words(moment),
                "cat": moment.kind,
                "args": details,
            }
        )
        for device in _devices(moment, run):
            # What waits leaves the queue empty.
            left = 0 if moment.kind == "sync" or moment.blocking else moment.pending
            name = f"queue of {device}" + (f" (process {moment.process + 1})" if moment.process else "")
            rows.append({**at, "ph": "C", "name": name, "args": {"kernels": moment.pending}})
            rows.append({**at, "ts": at["ts"] + 0.1, "ph": "C", "name": name, "args": {"kernels": left}})
        if moment.device:
            rows.append(
                {
                    **at,
                    "tid": lanes[moment.process, moment.device],
                    "ph": "i",
                    "s": "t",
                    "name": words(moment),
                    "cat": moment.kind,
                    "args": details,
                }
            )
    return rows


def lanes_of(run: Run) -> list[tuple[int, str]]:
    """Process and name of each lane of a run's timeline: of every process the host, then its cards."""
    lanes: list[tuple[int, str]] = []
    for process in sorted({moment.process for moment in run.timeline}):
        lanes.append((process, "host"))
        cards = {moment.device for moment in run.timeline if moment.process == process and moment.device}
        lanes += [(process, card) for card in sorted(cards)]
    return lanes


def words(moment: Moment) -> str:
    """What happened, in a few words."""
    if moment.kind == "transfer":
        return f"{moment.what}: {moment.bytes} bytes {_TRANSFERS.get(moment.direction, '')}"
    if moment.kind == "clock" and moment.pending:
        return f"{moment.what}: clock read with {moment.pending} kernels queued"
    return f"{moment.what}"


def _devices(moment: Moment, run: Run) -> list[str]:
    if moment.kind not in ("sync", "transfer", "clock"):
        return []
    if moment.device:
        return [moment.device]
    return sorted({each.device for each in run.timeline if each.device and each.process == moment.process})


def _name(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}

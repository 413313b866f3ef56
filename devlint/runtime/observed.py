"""What the processes of one run left behind, as a `Run`: with the places and lines of the original files."""

from __future__ import annotations

import os
import re
import shlex
import signal
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from devlint.runtime.alignment import Watched
from devlint.runtime.correction import Edition, shown
from devlint.runtime.launch import clipped
from devlint.runtime.processes import Ended, Seen
from devlint.runtime.runs import (
    Caught,
    ClockRead,
    Computed,
    Copies,
    Moment,
    Noticed,
    Outcome,
    Row,
    Run,
    Stop,
    Training,
)
from devlint.runtime.verdict import is_device_fault

_DIED = ("exception", "exit", "cannot simulate")


def observed(
    ended: Ended, edition: Edition, limits: Limits, forgiving: bool = False, watched: Watched | None = None
) -> Run:
    """One run. `forgiving`: device faults were let through by devlint, not caught by the program. watched: what was
    looked at."""
    return _Reader(ended, edition, limits, forgiving, watched or Watched()).run()


class Limits:
    """What a run was allowed, and how it was started, for the words of a report."""

    def __init__(self, command: tuple[str, ...], steps: int | None, timeout: float, memory: int | None) -> None:
        self.command = command
        self.steps = steps
        self.timeout = timeout
        self.memory = memory

    def text(self, limit: str) -> str:
        """A limit that was reached, in words."""
        if limit == "steps":
            return f"{self.steps} optimizer steps"
        if limit == "memory":
            return f"{in_bytes(self.memory or 0)} of memory in one process"
        return f"{self.timeout:g} s"


class _Reader:
    def __init__(self, ended: Ended, edition: Edition, limits: Limits, forgiving: bool, watched: Watched) -> None:
        self._watched = watched
        self._ended = ended
        self._edition = edition
        self._limits = limits
        self._forgiving = forgiving
        self._real = {os.path.realpath(path): path for path in edition.files}
        self._seen = [ended.main, *ended.others]
        self._reports = [seen.report for seen in self._seen if seen.report is not None]
        self._counts = dict.fromkeys(edition.keys, 0)
        self._totals: Counter[str] = Counter(self._counts)
        for seen in self._seen:
            for key, count in zip(edition.keys, seen.counts, strict=False):
                self._counts[key] = max(self._counts[key], count)
                self._totals[key] += count

    def run(self) -> Run:
        outcome, stop, detail, text = self._outcome()
        failures = [self._failure(row, seen) for seen in self._seen for row in (seen.report or {}).get("failures", ())]
        first = next((report for report in self._reports if report.get("losses")), {})
        device = next((report["device"] for report in self._reports if report.get("device")), "")
        events = [
            {**event, "started": seen is not self._ended.main}
            for seen in self._seen
            if seen.report is not None
            for event in self._events(seen.report)
        ]
        clocks = self._clocks(events)
        timeline = tuple(self._timeline())
        lines = self._lines()
        return Run(
            outcome=outcome,
            stop=stop,
            detail=detail,
            counts=self._counts,
            totals=self._totals,
            elsewhere=frozenset(
                key
                for seen in self._seen
                for key, count in zip(self._edition.keys, seen.elsewhere, strict=False)
                if count
            ),
            caught=self._caught(events, stop, failures),
            failures=tuple(failures),
            passed=frozenset(test for report in self._reports for test in report.get("passed", ())),
            clocks=clocks,
            copies=self._copies(events),
            taken=self._taken(events),
            waits=self._waits(events),
            warned=self._noticed(
                self._in_program(row for report in self._reports for row in report.get("warnings", ()))
            ),
            races=self._noticed({**event, "text": event["what"]} for event in events if event["kind"] == "race"),
            graphs=max((report.get("graphs", 0) for report in self._reports), default=0),
            training=Training(*first.get("training", ())),
            losses=tuple(float(value) for value in first.get("losses", ())),
            kernels=sum(row["count"] for report in self._reports for row in _recorded(report).get("kernels", ())),
            device=device,
            steps=max((report.get("steps", 0) for report in self._reports), default=0),
            seconds=max((report.get("seconds", 0.0) for report in self._reports), default=0.0),
            text=text,
            timeline=timeline,
            values=self._values(lines),
            lines=lines,
            gradients=tuple((int(count), float(size)) for count, size in first.get("gradients", ())),
            draws=tuple(tuple(map(str, draw)) for draw in first.get("draws", ())),
            out=self._ended.stdout,
            printed=self._ended.printed,
            status=self._ended.returncode,
            files=self._files(),
            timed=self._timed(),
            cut=self._cut(),
        )

    # ------------------------------------------------------------------------------------------------- values

    def _values(self, lines: dict[str, str]) -> dict[str, Computed]:
        """What statements computed, each in the first process that came to it; not in one that takes what work comes."""
        rows: dict[str, Any] = {}
        for report in self._reports:
            if not report.get("pooled"):
                rows = {**report.get("values", {}), **rows}
        found = {}
        for number, (made, kept) in rows.items():
            name = self._name(int(number))
            if name is not None:
                where = lines.get(name.partition("@")[0], "")
                simple = int(number) >= len(self._edition.keys) or self._is_simple(int(number))
                found[name] = Computed(made, tuple(Row(*row) for row in kept), where, simple)
        return found

    def _files(self) -> dict[str, tuple[str, str]] | None:
        """What the processes wrote; None where none of them can say."""
        rows = [report["files"] for report in self._reports if "files" in report]
        return {name: (each[0], each[1]) for row in rows for name, each in row.items()} if rows else None

    def _name(self, number: int) -> str | None:
        keys = self._edition.keys
        return keys[number] if number < len(keys) else self._watched.names.get(number)

    def _lines(self) -> dict[str, str]:
        """How a report names each statement that was looked at."""
        found = {}
        for path, numbers in self._watched.looked.items():
            variant, first = self._edition.files[path], self._edition.first[path]
            for number in numbers:
                line = variant.original_line(variant.places.statements[number - first].first_line)
                found[self._edition.keys[number]] = self._edition.where(path, line)
        return found

    def _cut(self) -> dict[str, int]:
        """How often simple statements began and did not come to their value."""
        found: dict[str, int] = {}
        simple = [number for number in self._looked() if self._is_simple(number)]
        for seen in self._seen:
            if seen.report is None or "values" not in seen.report:
                continue
            for number in simple:
                made = seen.report["values"].get(str(number), (0,))[0]
                missing = (seen.counts[number] if number < len(seen.counts) else 0) - made
                if missing > 0:
                    key = self._edition.keys[number]
                    found[key] = max(found.get(key, 0), missing)
        return found

    def _looked(self) -> Iterable[int]:
        return (number for numbers in self._watched.looked.values() for number in numbers)

    def _is_simple(self, number: int) -> bool:
        for path, first in self._edition.first.items():
            statements = self._edition.files[path].places.statements
            if first <= number < first + len(statements):
                statement = statements[number - first]
                return statement.end == statement.header_end
        return False

    def _timed(self) -> dict[tuple[str | None, str | None], tuple[int, ...]]:
        """Kernels between clock reads in the program, by the statements of the two."""
        found: dict[tuple[str | None, str | None], tuple[int, ...]] = {}
        for report in self._reports:
            for before, at, file, line, counts in _recorded(report).get("timed", ()):
                pair = (
                    self._edition.key_at_line(self._known(before), at),
                    self._edition.key_at_line(self._known(file), line),
                )
                found.setdefault(pair, tuple(counts))
        return found

    # ------------------------------------------------------------------------------------------------ outcome

    def _outcome(self) -> tuple[Outcome, Stop | None, str, str]:
        limited = next((seen for seen in self._seen if (seen.report or {}).get("end") == "limit"), None)
        if limited is not None and limited.report is not None:
            detail = self._limits.text(limited.report["limit"])
            if limited.report.get("line"):
                detail += f", at {self._where(limited.report)}"
            return Outcome.LIMIT, None, detail, f"{Outcome.LIMIT.value}: {detail}"
        main, code = self._ended.main, self._ended.returncode
        if main.report is None and code is None:
            detail = f"time limit of {self._limits.timeout:g} s, and the program could not be interrupted"
            return Outcome.LIMIT, None, detail, f"{Outcome.LIMIT.value}: {detail}"
        if self._limits.command:
            return self._outcome_of_command(code or 0)
        if main.report is None:
            return self._stopped(self._crash(main), Outcome.OTHER_STOP)
        return self._outcome_of(main)

    def _outcome_of(self, seen: Seen) -> tuple[Outcome, Stop | None, str, str]:
        report = seen.report or {}
        end = report.get("end")
        if end == "finished" or (end == "exit" and not report["code"]):
            how = f" by {report['how']}(0)" if end == "exit" else ""
            return Outcome.FINISHED, None, "", f"{Outcome.FINISHED.value}{how}{_steps(report)}"
        stop = self._stop_of(seen)
        if end == "cannot simulate":
            detail = f"{stop.text} ({stop.where})"
            return Outcome.CANNOT_SIMULATE, stop, detail, f"{Outcome.CANNOT_SIMULATE.value}: {detail}"
        return self._stopped(stop, Outcome.DEVICE_FAULT if stop.device else Outcome.OTHER_STOP)

    def _outcome_of_command(self, code: int) -> tuple[Outcome, Stop | None, str, str]:
        """A command is judged by its exit status; why it is not 0, its processes tell."""
        tests = self._tests()
        followed = [seen for seen in self._seen if seen.report is not None or seen.counts]
        if not followed:
            text = "it started no Python process that could be followed (one with -E, -I or -S cannot)"
            return self._stopped(self._nowhere(text), Outcome.OTHER_STOP)
        if tests and code in (0, 1):
            steps = _steps(max(self._reports, key=lambda report: int(report.get("steps", 0))))
            return Outcome.FINISHED, None, "", f"{Outcome.FINISHED.value}, {tests}{steps}"
        if code == 0:
            steps = _steps(max(self._reports, key=lambda report: int(report.get("steps", 0)), default={}))
            return Outcome.FINISHED, None, "", f"{Outcome.FINISHED.value}{steps}"
        died = [seen for seen in followed if (seen.report or {}).get("end") in _DIED]
        blocked = [seen for seen in died if (seen.report or {})["end"] == "cannot simulate"]
        if blocked:
            return self._outcome_of(blocked[0])
        if died:
            # Of several, a device fault, else the first: what the others say is often that their peer is gone.
            return self._outcome_of(
                min(died, key=lambda seen: (not self._stop_of(seen).device, (seen.report or {}).get("ended", 0.0)))
            )
        crashed = [seen for seen in followed if seen.report is None and seen.crash]
        if crashed:
            return self._stopped(self._crash(crashed[0]), Outcome.OTHER_STOP)
        if tests:
            failed = [self._failure(row, seen) for seen in followed for row in (seen.report or {}).get("failures", ())]
            first = "".join(f", first {stop.where}: {stop.text}" for stop in failed[:1])
            return self._stopped(self._nowhere(f"pytest ended with status {code}: {tests}{first}"), Outcome.OTHER_STOP)
        noted: dict[str, Any] = next((report["exit"] for report in self._reports if report.get("exit")), {})
        last = (self._ended.stderr.strip().splitlines() or self._ended.stdout.strip().splitlines() or [""])[-1]
        text = f"{shlex.join(self._limits.command[:1])} ended with {_status(code)}: {noted.get('message') or last}"
        stop = (
            self._stop(noted, text[:500], "", False, self._counts) if noted.get("line") else self._nowhere(text[:500])
        )
        return self._stopped(stop, Outcome.OTHER_STOP)

    def _tests(self) -> str:
        """How many tests passed and failed; "" when none were run."""
        failures = [row for report in self._reports for row in report.get("failures", ())]
        passed = {test for report in self._reports for test in report.get("passed", ())}
        if not failures and not passed:
            return ""
        failed = {row["test"] or row.get("file") for row in failures}
        words = f"{len(failed)} of {len(failed) + len(passed)} tests failed"
        device = sum(1 for row in failures if _is_device(row))
        return words + (f", {device} by a device fault" if device else "")

    @staticmethod
    def _stopped(stop: Stop, outcome: Outcome) -> tuple[Outcome, Stop, str, str]:
        return outcome, stop, "", f"{outcome.value} at {stop.where}: {stop.text}"

    def _stop_of(self, seen: Seen) -> Stop:
        report = seen.report or {}
        counts = dict(zip(self._edition.keys, seen.counts, strict=False))
        if report["end"] == "cannot simulate":
            return self._stop(report, report["message"], "", False, counts)
        if report["end"] == "exit":
            return self._stop(report, f"{report['how']}({report.get('message', report['code'])})", "", False, counts)
        kind, message = report["type"], report["message"]
        return self._stop(report, f"{kind}: {one_line(message)}", kind, _is_device(report), counts)

    def _failure(self, row: dict[str, Any], seen: Seen) -> Stop:
        text = f"{row['type']}: {one_line(row['message'])}"
        counts = dict(zip(self._edition.keys, seen.counts, strict=False))
        test = row["test"] or (f"{shown(row['inner_file'])} (collecting)" if row["inner_file"] else "collecting")
        return self._stop(row, text, row["type"], _is_device(row), counts, test)

    def _stop(
        self, row: Mapping[str, Any], text: str, kind: str, device: bool, counts: Mapping[str, int], test: str = ""
    ) -> Stop:
        path, line = self._known(row.get("file")), row.get("line") or 0
        key = self._edition.key_at_line(path, line, row.get("column"))
        original = self._edition.original_line(path or "", line) if path else 0
        where = self._edition.where(path, original) if path and original else ""
        inner = row.get("inner_file")
        if inner and self._known(inner) is None:
            called = f", called from {where}" if where else ""
            where = f"{shown(inner)}:{row['inner_line']}{called}"
        where = where or ("an unknown line" if not test else "")
        if test:
            where = f"{where} in {test}" if where else test
        return Stop(
            text=text,
            kind=kind,
            key=key,
            line=original,
            where=where,
            device=device,
            count=counts.get(key, 1) if key is not None else 1,
            inside=tuple(row.get("inside", ())),
            written_by=self._edition.written_by(key) if key is not None else frozenset(),
            test=test,
        )

    def _nowhere(self, text: str) -> Stop:
        return Stop(text, "", None, 0, shlex.join(self._limits.command), False)

    def _crash(self, seen: Seen) -> Stop:
        """A process that died without a report: by a signal, most often in native code."""
        text = f"the process died by {_signal(-(self._ended.returncode or 0))}"
        if (self._ended.returncode or 0) >= 0:
            text = f"the process ended with status {self._ended.returncode} and no report"
            if seen.crash:
                text = f"a process died: {seen.crash.strip().splitlines()[0]}"
        frames = re.findall(r'^\s*File "(.+)", line (\d+)', seen.crash, re.MULTILINE)
        file, line = next(((file, int(at)) for file, at in frames if self._known(file)), (None, 0))
        counts = dict(zip(self._edition.keys, seen.counts, strict=False))
        return self._stop({"file": file, "line": line}, text, "", False, counts)

    # ------------------------------------------------------------------------------------------------- places

    def _known(self, file: str | None) -> str | None:
        """The path by which the edition knows a file."""
        if not file:
            return None
        return file if file in self._edition.files else self._real.get(os.path.realpath(file))

    def _where(self, row: Mapping[str, Any]) -> str:
        path = self._known(row.get("file"))
        if path is None:
            return f"{row.get('file')}:{row['line']}"
        return self._edition.where(path, self._edition.original_line(path, row["line"]))

    # ------------------------------------------------------------------------------------------------- events

    def _events(self, report: dict[str, Any]) -> Iterable[dict[str, Any]]:
        """Events in the program's files, with `key` and `where`."""
        return self._in_program(_recorded(report).get("events", ()))

    def _in_program(self, rows: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
        """Rows with file and line, those that lie in the program's files, with `key`, `original` line and `where`."""
        for row in rows:
            path = self._known(row["file"])
            if path is not None:
                line = self._edition.original_line(path, row["line"])
                key = self._edition.key_at_line(path, row["line"])
                yield {**row, "key": key, "original": line, "where": self._edition.where(path, line)}

    @staticmethod
    def _noticed(rows: Iterable[dict[str, Any]]) -> dict[str, Noticed]:
        """Rows with `text` and `count`, by statement."""
        found: dict[str, Noticed] = {}
        for row in rows:
            if row["key"] is not None:
                old = found.get(row["key"], Noticed(row["original"], 0, frozenset(), row["where"]))
                found[row["key"]] = replace(old, count=old.count + row["count"], texts=old.texts | {row["text"]})
        return found

    def _timeline(self) -> Iterable[Moment]:
        for number, report in enumerate(self._reports):
            for seconds, kind, what, file, line, size, direction, blocking, pending, device in _recorded(report).get(
                "log", ()
            ):
                path = self._known(file)
                original = self._edition.original_line(path, line) if path else line
                where = self._edition.where(path, original) if path else f"{shown(file)}:{line}" if file else ""
                key = self._edition.key_at_line(path, line)
                yield Moment(
                    seconds, number, kind, one_line(what), key, where, size, direction or "", blocking, pending, device
                )

    def _caught(self, events: list[dict[str, Any]], stop: Stop | None, failures: list[Stop]) -> tuple[Caught, ...]:
        """The device faults of which neither the program nor a test died."""
        fatal = Counter(report.get("message") for report in self._reports if report.get("end") == "exception")
        fatal.update(row["message"] for report in self._reports for row in report.get("failures", ()))
        found = []
        for event in events:
            if event["kind"] != "fault":
                continue
            message = clipped(event["what"])
            died = min(fatal[message], event["count"])
            fatal[message] -= died
            if event["count"] > died:
                by = " (in a process that the program started)" if event["started"] else " (caught by the program)"
                if self._forgiving:
                    by = ""
                text = one_line(event["what"])
                found.append(Caught(text + by, event["key"], event["original"], event["count"] - died, event["where"]))
        return tuple(found)

    def _clocks(self, events: list[dict[str, Any]]) -> dict[str, ClockRead]:
        reads: dict[str, ClockRead] = {}
        for event in events:
            key = event["key"] if event["kind"] == "clock" else None
            if key is not None:
                old = reads.get(key, ClockRead(event["original"], 0, 0))
                reads[key] = ClockRead(
                    old.line, max(old.pending, event["pending"]), old.count + event["count"], event["where"]
                )
        for key, times in self._intervals().items():
            if key in reads:
                old = reads[key]
                reads[key] = ClockRead(old.line, old.pending, old.count, old.where, 1000 * sum(times) / len(times))
        return reads

    def _intervals(self) -> dict[str, list[float]]:
        """Seconds between each clock read and the one before it, on a real card, where such numbers mean something."""
        found: dict[str, list[float]] = {}
        for report in self._reports:
            if str(report.get("chosen", "sim")).startswith("sim"):
                continue
            before: float | None = None
            for seconds, kind, _, file, line, *_ in _recorded(report).get("log", ()):
                if kind != "clock":
                    continue
                key = self._edition.key_at_line(self._known(file), line)
                if before is not None and key is not None:
                    found.setdefault(key, []).append(seconds - before)
                before = seconds
        return found

    def _copies(self, events: list[dict[str, Any]]) -> dict[str, Copies]:
        copies: dict[str, Copies] = {}
        for event in events:
            if event["kind"] == "transfer" and event["direction"] == "h2d" and event["key"] is not None:
                old = copies.get(event["key"], Copies(event["original"], 0, 0, frozenset()))
                calls = old.calls | {event["what"]}
                copies[event["key"]] = Copies(
                    old.line, old.count + event["count"], old.bytes + event["bytes"], calls, event["where"]
                )
        return copies

    def _taken(self, events: list[dict[str, Any]]) -> dict[str, int]:
        taken: Counter[str] = Counter()
        for event in events:
            if event["kind"] == "transfer" and event["direction"] in ("d2h", "d2d") and event["key"] is not None:
                taken[event["key"]] += event["count"]
        return dict(taken)

    def _waits(self, events: list[dict[str, Any]]) -> dict[str, int]:
        """How often the host waited for a card at each statement: synchronizations and blocking copies."""
        waits: Counter[str] = Counter()
        for event in events:
            waiting = event["kind"] == "sync" or (event["kind"] == "transfer" and event["blocking"])
            if waiting and event["key"] is not None:
                waits[event["key"]] += event["count"]
        return dict(waits)


def _recorded(report: dict[str, Any]) -> dict[str, Any]:
    return report.get("recorded") or {}


def _is_device(row: Mapping[str, Any]) -> bool:
    return bool(row.get("simulated")) or is_device_fault(row["type"], row["message"])


def _steps(report: Mapping[str, Any]) -> str:
    steps = report.get("steps", 0)
    return f", {steps} optimizer step{'' if steps == 1 else 's'}" if steps else ""


def _status(code: int) -> str:
    return f"status {code}" if code >= 0 else _signal(-code)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def one_line(message: str) -> str:
    """The first line of a message with content; a worker's error is quoted by its last."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if len(lines) > 2 and (lines[0].startswith("Caught ") or re.match(r"-- Process \d+ terminated", lines[0])):
        return f"{lines[0]} {lines[-1]}"
    return lines[0] if lines else ""


def in_bytes(size: int) -> str:
    """A number of bytes for people: `512 bytes`, `1.5 MiB`."""
    amount = float(size)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            return f"{amount:.0f} bytes" if unit == "bytes" else f"{amount:.3g} {unit}"
        amount /= 1024
    raise AssertionError(size)

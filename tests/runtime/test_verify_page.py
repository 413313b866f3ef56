"""The page and the trace of a verification, made from reports that nothing was run for."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from devlint.model import Position, Span, TextEdit
from devlint.runtime.bench import JudgedFix, Report
from devlint.runtime.correction import FixCase
from devlint.runtime.page import MOST_DRAWN, as_html
from devlint.runtime.runs import Judgement, Moment, Outcome, Run, Verdict
from devlint.runtime.trace import as_trace

VOID = {"meta", "br", "link", "img"}


class Balance(HTMLParser):
    """Checks that every element is closed, and collects the elements."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def moment(kind: str, pending: int = 0, **more: object) -> Moment:
    fields = {
        "seconds": 0.001,
        "process": 0,
        "kind": kind,
        "what": f"<{kind}>",
        "key": "0",
        "where": "line 1",
        "bytes": 0,
        "direction": "",
        "blocking": False,
        "pending": pending,
        "device": "cuda:0",
        **more,
    }
    return Moment(**fields)  # type: ignore[arg-type]


@pytest.fixture
def report() -> Report:
    text = "x = a < b & c\n"
    case = FixCase("DEV101", "mixed", "`x` & <y>", Span(0, 1), edits=(TextEdit(4, 5, "a.to(d)"),))
    timeline = (
        moment("transfer", 2, bytes=64, direction="h2d", blocking=True),
        moment("clock", 5, device=""),
        moment("sync", 5),
        moment("fault"),
    )
    made = Report("train.py", "simulated cuda", "2.13.0")
    made.runs = [("original", Run(Outcome.FINISHED, text="finished", timeline=timeline))]
    judgement = Judgement(Verdict.CONFIRMED, ("without the fix, line 1: <boom>",), None, "simulated cuda")
    made.fixes = [JudgedFix(case, Position(1, 1), Position(1, 2), judgement)]
    made.originals, made.corrections = {"/p/train.py": text}, {"/p/train.py": text.replace("a <", "a.to(d) <")}
    return made


def test_page_is_well_formed_and_escapes(report: Report) -> None:
    page = as_html(report)
    parser = Balance()
    parser.feed(page)
    assert parser.open == []
    assert "<boom>" not in page and "&lt;boom&gt;" in page
    assert "-x = a &lt; b &amp; c" in page and "+x = a.to(d) &lt; b &amp; c" in page


def test_page_fetches_nothing_and_runs_nothing(report: Report) -> None:
    page = as_html(report)
    parser = Balance()
    parser.feed(page)
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in parser.seen}
    assert not any(name in ("src", "href") or name.startswith("on") for _, attrs in parser.seen for name in attrs)
    assert not re.search(r"url\(|@import|https?://", page)


def test_timeline_has_a_lane_for_the_host_and_each_card(report: Report) -> None:
    page = as_html(report)
    assert ">host</text>" in page and ">cuda:0</text>" in page
    for kind in ("queue", "transfer", "sync", "early", "fault", "found"):
        assert f'class="{kind}"' in page


def test_long_timeline_says_what_is_missing(report: Report) -> None:
    label, run = report.runs[0]
    long = tuple(moment("sync") for _ in range(MOST_DRAWN + 7))
    report.runs = [(label, Run(run.outcome, text=run.text, timeline=long))]
    assert "7 later events are not drawn." in as_html(report)


def test_page_without_fixes() -> None:
    assert "No fix to verify." in as_html(Report("train.py"))


def test_trace_has_processes_threads_and_queues(report: Report) -> None:
    rows = json.loads(as_trace(report))["traceEvents"]
    names = [row["args"]["name"] for row in rows if row["ph"] == "M"]
    assert names == ["1. original (no device)", "host", "cuda:0"]
    assert [row["args"]["kernels"] for row in rows if row["ph"] == "C"] == [2, 0, 5, 5, 5, 0]
    assert all(row["ts"] == 1000.0 for row in rows if row["ph"] == "i")

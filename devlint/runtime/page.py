"""A verification as one HTML page that needs nothing else: verdicts, the code before and after, timelines of the runs.

The page has no script and fetches nothing. Colours follow the reader's light or dark setting.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from devlint.runtime.correction import shown
from devlint.runtime.runs import Moment, Outcome, Run, Verdict
from devlint.runtime.trace import lanes_of, words

if TYPE_CHECKING:
    from devlint.runtime.bench import JudgedFix, Report

MOST_DRAWN = 1500
"""Events drawn of one run; the rest of a longer one is said to be missing."""

_STYLE = """
:root { color-scheme: light dark; --back: #ffffff; --ink: #1c2024; --soft: #5c6670; --line: #d9dee3; --card: #f6f8fa;
  --good: #1a7f37; --bad: #c4242b; --warn: #9a6700; --calm: #57606a; --add: #dafbe1; --del: #ffebe9; --blue: #0b62c4;
  --violet: #7a3fc9; }
@media (prefers-color-scheme: dark) { :root { --back: #0f1317; --ink: #e4e8ec; --soft: #9aa5b0; --line: #2b333b;
  --card: #171c22; --good: #4ac26b; --bad: #ff7b72; --warn: #d8a430; --calm: #9aa5b0; --add: #12361f; --del: #451a1c;
  --blue: #62a8ff; --violet: #bb8cff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 70rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.45rem; margin: 0 0 .2rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .7rem; }
h3 { font-size: 1rem; margin: 0 0 .3rem; overflow-wrap: anywhere; }
p { margin: .3rem 0; } li { overflow-wrap: anywhere; } .soft { color: var(--soft); }
code, pre, td.code { font: 13px/1.45 ui-monospace, Menlo, Consolas, monospace; }
.sum { display: flex; flex-wrap: wrap; gap: .5rem; margin: .9rem 0; padding: 0; list-style: none; }
.sum li { border: 1px solid var(--line); background: var(--card); border-radius: .5rem; padding: .25rem .75rem; }
.sum b { font-size: 1.15rem; }
article { border: 1px solid var(--line); border-left: .3rem solid var(--calm); border-radius: .5rem; background: var(--card);
  padding: .8rem 1rem; margin: 0 0 .9rem; }
.mark { font-weight: 650; color: var(--calm); }
.confirmed { border-left-color: var(--good); } .confirmed .mark, .mark.confirmed { color: var(--good); }
.refuted { border-left-color: var(--bad); } .refuted .mark, .mark.refuted { color: var(--bad); }
.reached, .judge { border-left-color: var(--warn); } .reached .mark, .judge .mark { color: var(--warn); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; min-width: 40rem; } th { text-align: left; font-weight: 600; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .8rem .3rem 0; vertical-align: top; }
td { overflow-wrap: break-word; } td:first-child { width: 34%; } td:last-child, th:last-child { white-space: nowrap; }
pre { margin: .6rem 0 0; border: 1px solid var(--line); border-radius: .4rem; background: var(--back); overflow-x: auto; }
pre span { display: block; padding: 0 .7rem; min-width: max-content; } .add { background: var(--add); }
.del { background: var(--del); } .at { color: var(--soft); }
details { margin: .5rem 0; } summary { cursor: pointer; } svg { display: block; min-width: 44rem; width: 100%; height: auto; }
svg text { fill: var(--soft); font: 11px system-ui, sans-serif; } .lane { stroke: var(--line); }
.queue { fill: var(--blue); fill-opacity: .22; stroke: var(--blue); } .clock { fill: var(--good); }
.early, .fault { fill: var(--bad); } .transfer { fill: var(--violet); } .sync { fill: var(--warn); }
.race { fill: var(--bad); } .found { fill: none; stroke: var(--bad); stroke-width: 1.5; }
.key { display: inline-block; width: .7rem; height: .7rem; margin: 0 .25rem 0 .8rem; }
"""


def as_html(report: Report) -> str:
    """The whole page."""
    title = f"devlint verify: {report.script}"
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>",
            f"<h1>{escape(report.script)}</h1>",
            f'<p class="soft">devlint verify, on {escape(report.device or "no device")}'
            + (f", torch {escape(report.torch)}" if report.torch else "")
            + "</p>",
            *_summary(report),
            "<h2>Fixes</h2>" if report.fixes else "<p>No fix to verify.</p>",
            *(part for fix in report.fixes for part in _fix(report, fix)),
            *_hints(report),
            *_runs(report),
            *_code(report),
            *_timelines(report),
            "</main></body></html>",
            "",
        ]
    )


def _summary(report: Report) -> Iterator[str]:
    counts = Counter(fix.judgement.verdict for fix in report.fixes)
    if counts:
        items = "".join(
            f'<li class="mark {_class(verdict)}"><b>{counts[verdict]}</b> {verdict.value}</li>'
            for verdict in Verdict
            if counts[verdict]
        )
        yield f'<ul class="sum">{items}</ul>'
    for note in report.notes:
        yield f'<p class="soft">Note: {escape(note)}.</p>'


def _class(verdict: Verdict) -> str:
    return verdict.value.split()[-1]


def _fix(report: Report, fix: JudgedFix) -> Iterator[str]:
    case, judgement = fix.case, fix.judgement
    verdict = judgement.verdict
    yield f'<article class="{_class(verdict)}"><h3>{escape(f"{case.code} {case.name}".strip())} '
    yield f'<span class="soft">{escape(report.file(case))}:{fix.start.row}:{fix.start.column}</span></h3>'
    on = f" on {escape(judgement.device)}" if judgement.device else ""
    yield f'<p><span class="mark">{verdict.value.upper()}</span>{on} <span class="soft">({case.safety.value} fix)</span></p>'
    if case.message:
        yield f"<p>{_ticks(case.message)}</p>"
    for evidence in judgement.evidence:
        yield f'<p class="soft">{_ticks(evidence)}</p>'
    if judgement.then is not None:
        yield f'<p class="soft">Then: {escape(judgement.then.where)}: {escape(judgement.then.text)}</p>'
    text = report.originals.get(case.file) or (next(iter(report.originals.values()), "") if not case.file else "")
    if text and case.edits:
        yield _change(text, fix)
    yield "</article>"


def _ticks(text: str) -> str:
    """Text with `code` in backticks as code."""
    parts = escape(text).split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return "".join(f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts))


def _change(text: str, fix: JudgedFix) -> str:
    """The lines that one fix changes, before and after."""
    after = text
    for edit in sorted({*fix.case.edits, *fix.case.shared}, reverse=True):
        after = after[: edit.start] + edit.text + after[edit.end :]
    return _diff(text, after, 1)


def _diff(before: str, after: str, context: int) -> str:
    rows = []
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=context)
    for line in list(lines)[2:]:
        kind = {"+": "add", "-": "del", "@": "at"}.get(line[:1], "")
        rows.append(f'<span class="{kind}">{escape(line) or " "}</span>')
    return f"<pre>{''.join(rows)}</pre>" if rows else ""


def _hints(report: Report) -> Iterator[str]:
    if report.hints:
        yield "<h2>Not judged, because there is no fix to apply</h2><ul>"
        for case, at in report.hints:
            yield f"<li>{escape(report.file(case))}:{at.row}:{at.column}: {case.code} {_ticks(case.message)}</li>"
        yield "</ul>"


def _runs(report: Report) -> Iterator[str]:
    if report.runs:
        yield '<h2>Runs</h2><div class="wide"><table><tr><th>run</th><th>outcome</th><th>seconds</th></tr>'
        for label, run in report.runs:
            yield f"<tr><td>{escape(label)}</td><td>{escape(run.text)}</td><td>{run.seconds:.2f}</td></tr>"
        yield "</table></div>"


def _code(report: Report) -> Iterator[str]:
    changed = [(path, text) for path, text in report.corrections.items() if text != report.originals.get(path, text)]
    if changed:
        yield "<h2>Code before and after</h2>"
    for path, text in changed:
        yield f"<details><summary>{escape(shown(path))}</summary>{_diff(report.originals[path], text, 3)}</details>"


# ------------------------------------------------------------------------------------------------- timelines

_LEFT, _RIGHT, _TOP, _LANE, _WIDTH = 110, 15, 2, 46, 1000


def _timelines(report: Report) -> Iterator[str]:
    drawn = [(label, run) for label, run in report.runs if run.timeline]
    if not drawn:
        return
    yield "<h2>Timelines</h2>"
    yield (
        '<p class="soft"><span class="key" style="background:var(--blue)"></span>kernels still queued'
        '<span class="key" style="background:var(--violet)"></span>transfer'
        '<span class="key" style="background:var(--warn)"></span>synchronization'
        '<span class="key" style="background:var(--good)"></span>clock read'
        '<span class="key" style="background:var(--bad)"></span>device fault, race, or clock read too early'
        '<span class="key" style="border:1.5px solid var(--bad)"></span>line of a finding</p>'
        '<p class="soft">Events follow each other in order and are drawn at equal distance; point at one to read it.</p>'
    )
    places = {_place(report, fix) for fix in report.fixes}
    for number, (label, run) in enumerate(drawn):
        opened = " open" if number < 2 else ""
        yield f"<details{opened}><summary>{escape(label)}: {escape(_short(run))}</summary>"
        yield f'<div class="wide">{_svg(run, places)}</div>'
        if len(run.timeline) > MOST_DRAWN:
            yield f'<p class="soft">{len(run.timeline) - MOST_DRAWN} later events are not drawn.</p>'
        yield "</details>"


def _place(report: Report, fix: JudgedFix) -> str:
    several = len(report.originals) > 1 or bool(fix.case.file)
    return f"{report.file(fix.case)}:{fix.start.row}" if several else f"line {fix.start.row}"


def _short(run: Run) -> str:
    return run.outcome.value if run.outcome is not Outcome.FINISHED else run.text


def _svg(run: Run, places: set[str]) -> str:
    events = run.timeline[:MOST_DRAWN]
    lanes = lanes_of(run)
    height = _TOP + _LANE * len(lanes) + 4
    most = max((moment.pending for moment in events), default=0) or 1
    step = (_WIDTH - _LEFT - _RIGHT) / max(len(events), 1)
    rows = [f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="timeline of a run">']
    for number, (process, lane) in enumerate(lanes):
        y = _TOP + _LANE * (number + 1) - 10
        name = f"{lane}, process {process + 1}" if process else lane
        rows.append(f'<line class="lane" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>')
        rows.append(f'<text x="4" y="{y - 2}">{escape(name)}</text>')
        if lane != "host":
            rows.append(_queue(events, process, lane, y, step, most))
            rows.append(f'<text x="{_LEFT - 6}" y="{y - _LANE + 20}" text-anchor="end">{most}</text>')
        for at, moment in enumerate(events):
            if moment.process == process and _is_on(moment, lane):
                rows.append(_event(moment, _LEFT + (at + 0.5) * step, y, moment.where in places))
    rows.append("</svg>")
    return "".join(rows)


def _is_on(moment: Moment, lane: str) -> bool:
    if lane == "host":
        return moment.kind in ("clock", "fault", "race") or not moment.device
    return moment.device == lane


def _queue(events: Sequence[Moment], process: int, lane: str, y: float, step: float, most: int) -> str:
    """The length of a card's queue, known at each event: it grows up to there, and what waits empties it."""
    points = [f"{_LEFT},{y}"]
    height = _LANE - 18
    left = 0
    for at, moment in enumerate(events):
        if moment.process != process or moment.device not in (lane, "") or moment.kind in ("fault", "race"):
            continue
        x = _LEFT + (at + 0.5) * step
        points.append(f"{x:.1f},{y - height * moment.pending / most:.1f}")
        if moment.kind == "sync" or moment.blocking:
            points.append(f"{x:.1f},{y}")
        left = 0 if moment.kind == "sync" or moment.blocking else moment.pending
    end = _LEFT + len(events) * step
    points += [f"{end:.1f},{y - height * left / most:.1f}", f"{end:.1f},{y}"]
    return f'<polygon class="queue" points="{" ".join(points)}"/>'


def _event(moment: Moment, x: float, y: float, found: bool) -> str:
    kind = "early" if moment.kind == "clock" and moment.pending else moment.kind
    title = f"<title>{escape(words(moment))}; {escape(moment.where)}; {moment.pending} queued</title>"
    ring = f'<circle class="found" cx="{x:.1f}" cy="{y}" r="7"/>' if found else ""
    if kind == "transfer":
        mark = f'<path class="transfer" d="M{x - 4:.1f} {y + 4}h8l-4 -8z">{title}</path>'
    elif kind == "sync":
        mark = f'<rect class="sync" x="{x - 1.5:.1f}" y="{y - 6}" width="3" height="12">{title}</rect>'
    elif kind in ("fault", "race"):
        mark = f'<path class="{kind}" d="M{x - 5:.1f} {y + 5}l5 -10l5 10z">{title}</path>'
    else:
        mark = f'<circle class="{kind}" cx="{x:.1f}" cy="{y}" r="4">{title}</circle>'
    return mark + ring

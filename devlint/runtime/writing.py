"""Writes the fixes that a verification confirmed, and nothing else.

What is written is run once more as a program of its own, unless it is the program that was judged: fixes that were
confirmed beside others must hold without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from devlint.errors import SourceError, UsageError
from devlint.fix.write import write_file
from devlint.runtime.bench import Bench, Report, Request, Runner
from devlint.runtime.correction import Edition, shown
from devlint.runtime.places import Places
from devlint.runtime.runs import Verdict
from devlint.runtime.verdict import falls_short
from devlint.source import Source, read_source


def write_confirmed(request: Request, report: Report, texts: Mapping[str, str], runner: Runner) -> None:
    """Write the confirmed fixes of a report to their files, and say in the report what was written and how it runs.

    texts: the files as they were judged, by absolute path. Each file is replaced at once. Raises UsageError when one was
    changed meanwhile or cannot be written; those before it are written then.
    """
    originals = {path: Places(text) for path, text in texts.items()}
    confirmed = [fix.case for fix in report.fixes if fix.judgement.verdict is Verdict.CONFIRMED]
    report.writes = True
    if not confirmed:
        run = runner.run(Edition(originals, []), request.device, "original")
        report.falls_short = falls_short(run, ())
        return
    bench = Bench(request, originals, confirmed, runner, Report(report.script))
    report.falls_short = bench.falls_short or bench.changes
    report.notes = list(runner.notes)
    if bench.changes:
        return
    sources = {path: _unchanged(path, texts[path]) for path in bench.texts}
    for path, text in bench.texts.items():
        source = sources[path]
        try:
            content = source.encode(text)
        except SourceError as error:
            raise UsageError(f"{shown(path)}: {error}") from error
        write_file(Path(path), content, source.raw)
        report.written[path] = sum(1 for case in confirmed if (case.file or next(iter(texts))) == path)


def _unchanged(path: str, text: str) -> Source:
    source = read_source(Path(path))
    if source.text != text:
        raise UsageError(f"{shown(path)}: not written: the file changed while it was verified")
    return source

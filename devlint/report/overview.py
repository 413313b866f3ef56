"""What the full report of many findings says around them: first a table by rule, last how to adopt devlint.

Somebody who checks a large project for the first time sees what there is before the details. A report of few findings has
neither.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from devlint.report import Run, count
from devlint.report.statistics import counted, sign
from devlint.terminal import Style

MANY = 50  # findings, above which a report has an overview
_PATHS = 3  # paths that a command repeats


def table(run: Run, style: Style) -> Iterator[str]:
    """For each rule: how many problems, whether `--fix` handles them, and what the rule flags. Nothing for few or quiet."""
    problems = list(run.problems())
    if run.quiet or len(problems) <= MANY:
        return
    files = len({problem.path for _, problem in problems})
    heading = f"{count(len(problems), 'problem')} in {count(files, 'file')}."
    legend = f"[{style.mark('*')}]: `--fix` fixes all of them, [{style.mark('-')}]: some of them."
    yield f"{style.bold(heading)} {legend}"
    rows = counted(problems)
    width = max(len(str(row.count)) for row in rows)
    for row in rows:
        title = run.titles.get(row.code, row.name)
        yield f"{row.count:>{width}}  {style.code(row.code)}  [{style.mark(sign(row))}] {title}"
    yield ""


def adoption(run: Run) -> Iterator[str]:
    """How to go on with many findings. Nothing for few, quiet, or a run that limits its findings already."""
    if run.quiet or not run.adopting or sum(1 for _ in run.problems()) <= MANY:
        return
    paths = shlex.join(run.adopting if len(run.adopting) <= _PATHS else ["."])
    yield f"To report only new findings from now on: `devlint --write-baseline {paths}`."
    yield f"To check only the lines that a branch changes: `devlint --diff-base origin/main {paths}`."

"""CPU time of parsing and the device analysis on a tree, beside `ast.parse` plus `ast.walk`, in one process.

    python benchmarks/analysis_speed.py TREE

The garbage collector looks only at what the analysis of the last file left, as in a run of devlint. Each file is gone through
in all ways before the next one, so that a machine whose clock varies is slow or fast for all of them.
Prints lines per second of both and their ratio.
"""

from __future__ import annotations

import ast
import gc
import sys
import time
import warnings
from pathlib import Path

from devlint.facts.analysis import analyse
from devlint.facts.project.project import Project
from devlint.settings import Settings
from devlint.source import Source, decode, parse


def main(root: Path) -> None:
    warnings.simplefilter("ignore")
    gc.disable()
    sources = [decode(path.read_bytes(), str(path)) for path in sorted(root.rglob("*.py"))]
    lines = sum(source.text.count("\n") for source in sources)
    analyse(parse(sources[0]), sources[0], Settings())  # loads the knowledge
    print(f"{root.name}: {len(sources)} files, {lines} lines")
    walk = alone = together = 0.0
    project = Project()
    gc.collect()
    gc.freeze()
    for source in sources:
        start = time.process_time()
        for _ in ast.walk(ast.parse(source.text)):
            pass
        walk += time.process_time() - start
        alone += analysis(source, None)
        together += analysis(source, project)
    print(f"ast.parse + ast.walk                     {lines / walk:9.0f} lines/s")
    for name, took in (("each file by itself", alone), ("imports followed", together)):
        print(f"parse + analysis, {name:20s}   {lines / took:9.0f} lines/s, {walk / took:.3f} of the above")


def analysis(source: Source, project: Project | None) -> float:
    """CPU seconds for one file."""
    start = time.process_time()
    tree = parse(source) if project is None else project.parsed(source).tree
    gc.freeze()
    analyse(tree, source, Settings(), project)
    gc.collect(0)
    gc.freeze()
    return time.process_time() - start


if __name__ == "__main__":
    main(Path(sys.argv[1]))

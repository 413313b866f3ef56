"""CPU time of parsing and the device analysis on a tree, beside `ast.parse` plus `ast.walk`, in one process.

    python benchmarks/analysis_speed.py TREE [--inference new] [--part N/M]

`--inference new` measures the inference of `devlint/inference`, for the rules of mixed devices, and callers in other files as
well. `--part 1/4` takes every fourth file, from the first one on; the others are still there to be imported.

The garbage collector looks only at what the analysis of the last file left, as in a run of devlint. Each file is gone through
in all ways before the next one, so that a machine whose clock varies is slow or fast for all of them.
Prints lines per second of both and their ratio.
"""

from __future__ import annotations

import argparse
import ast
import gc
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from devlint.engine import Linter
from devlint.facts.analysis import analyse
from devlint.inference.analysis import infer
from devlint.settings import Settings
from devlint.source import Source, decode, parse

#: Infers what is known of a parsed file.
Analysis = Callable[[ast.Module, Source, Linter | None], object]


def old(tree: ast.Module, source: Source, linter: Linter | None) -> object:
    """The analysis of `devlint/facts`."""
    return analyse(tree, source, Settings(), linter.project if linter is not None else None)


def new(tree: ast.Module, source: Source, linter: Linter | None) -> object:
    """The inference of `devlint/inference`, as the engine asks for it."""
    if linter is None:
        return infer(tree, source, None)
    around = linter.neighbours(os.path.abspath(source.path))
    return infer(tree, source, linter.load_tree, (), around, session=linter.session)


def main(root: Path, analysis: Analysis, part: int, of: int) -> None:
    warnings.simplefilter("ignore")
    gc.disable()
    sources = [decode(path.read_bytes(), str(path)) for path in sorted(root.rglob("*.py"))][part - 1 :: of]
    lines = sum(source.text.count("\n") for source in sources)
    analysis(parse(sources[0]), sources[0], None)  # loads the knowledge
    print(f"{root.name}: {len(sources)} files, {lines} lines")
    walk = alone = together = 0.0
    linter = Linter([])
    gc.collect()
    gc.freeze()
    for source in sources:
        start = time.process_time()
        for _ in ast.walk(ast.parse(source.text)):
            pass
        walk += time.process_time() - start
        alone += seconds(analysis, source, None)
        together += seconds(analysis, source, linter)
    print(f"ast.parse + ast.walk                     {lines / walk:9.0f} lines/s")
    for name, took in (("each file by itself", alone), ("imports followed", together)):
        print(f"parse + analysis, {name:20s}   {lines / took:9.0f} lines/s, {walk / took:.3f} of the above")


def seconds(analysis: Analysis, source: Source, linter: Linter | None) -> float:
    """CPU seconds for one file."""
    start = time.process_time()
    project = linter.project if linter is not None else None
    loaded = project.parsed(source) if project is not None else None
    tree = loaded.tree if loaded is not None else parse(source)
    gc.freeze()
    analysis(tree, source, linter)
    if project is not None and loaded is not None:
        project.offer(loaded)  # as a run does for those that import the file
    gc.collect(0)
    gc.freeze()
    return time.process_time() - start


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tree", type=Path)
    parser.add_argument("--inference", choices=("old", "new"), default="old")
    parser.add_argument("--part", default="1/1", help="N/M: the files N, N + M, N + 2M and so on")
    options = parser.parse_args()
    first, _, step = options.part.partition("/")
    main(options.tree, new if options.inference == "new" else old, int(first), int(step))

"""Runs devlint's commands one after the other in one process: thousands of small inputs start Python once.

    PYTHON benchmarks/lint_worker.py

A line of JSON comes in, {"folder", "arguments", "input"}, and one goes out, {"status", "out", "err"}.

The interpreter that runs it decides which devlint is measured. The file imports nothing but devlint and the standard library.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import traceback


def answer(folder: str, arguments: list[str], text: str) -> dict[str, object]:
    """What one command returns and prints in a folder. An escaped exception has the status -1."""
    from devlint.cli import main

    out, err = io.StringIO(), io.StringIO()
    os.chdir(folder)
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = int(main(arguments))
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            status = -1
            traceback.print_exc(file=err)
    os.chdir("/")
    return {"status": status, "out": out.getvalue(), "err": err.getvalue()[-4000:]}


def believe_no_listing() -> None:
    """A list of files is believed for a second otherwise, which is longer than one input takes."""
    with contextlib.suppress(ImportError, AttributeError):
        import devlint.project_files

        devlint.project_files.FRESH = -1.0


def serve() -> None:
    """Answer each line of standard input until it ends."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    believe_no_listing()
    for line in os.fdopen(os.dup(0), encoding="utf-8"):
        order = json.loads(line)
        replies.write(json.dumps(answer(order["folder"], order["arguments"], order.get("input", ""))) + "\n")
        replies.flush()


if __name__ == "__main__":
    serve()

"""One side of a comparison: a devlint, its settings, and what it said of inputs before.

A side is an interpreter that has devlint installed, further arguments of `devlint check`, and variables of the environment.
What it says of an input is kept in a folder by the content of the input, the command, and the source of that devlint, so
that a second run asks only for what changed. `Side.close` ends every process that was started.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import select
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WORKER = Path(__file__).with_name("lint_worker.py")
CHECK = ("check", "--isolated", "--no-cache", "-j", "1", "--output-format", "json")
ORDERS = 300  # commands that one process carries out before another one takes its place
LONGEST = 5  # rows after the first one that count for a finding
_SOURCE = """
import hashlib, pathlib, sys
import devlint
packages = [devlint]
try:
    import devlint_rules
    packages.append(devlint_rules)
except ImportError:
    pass  # the rules of an installed devlint lie inside it
digest = hashlib.sha256(sys.version.encode())
for package in packages:
    folder = pathlib.Path(package.__file__).parent
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(path.relative_to(folder).as_posix().encode() + b"\\0" + path.read_bytes())
print(digest.hexdigest())
"""


class SideError(Exception):
    """A side could not answer: the message names the command and says what came instead."""


@dataclass(frozen=True, order=True)
class Finding:
    """What one side says of one place. `evidence` is "-" for a finding that states none."""

    path: str
    first: int
    last: int
    code: str
    evidence: str
    severity: str
    message: str = field(compare=False)

    @property
    def place(self) -> tuple[str, int, str]:
        """What makes two findings of two sides the same."""
        return self.path, self.first, self.code


def evidence_of(row: Mapping[str, Any]) -> str:
    """The evidence of a finding in JSON, with "soft" behind it where it is not proved."""
    word = row.get("evidence")
    if not word:
        return "-"
    return f"{word} {row['proof']}" if row.get("proof") else str(word)


def finding_of(row: Mapping[str, Any], folder: str) -> Finding:
    """A row of devlint's JSON as a finding, its path from a folder."""
    path = os.path.relpath(os.path.join(folder, row["filename"]), folder)
    first = row["location"]["row"]
    last = (row.get("end_location") or row["location"])["row"]
    severity, message = row.get("severity", "-"), row.get("message", "")
    return Finding(path, first, min(last, first + LONGEST), row["code"], evidence_of(row), severity, message)


class Worker:
    """A process that carries out devlint's commands for one side."""

    def __init__(self, python: str, environment: Mapping[str, str]) -> None:
        self.orders = 0
        self.process = subprocess.Popen(
            [python, str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environment),
        )
        self.rest = b""

    def ask(self, order: Mapping[str, Any], limit: float) -> dict[str, Any]:
        """The reply to an order.

        Raises:
            SideError: the process died, or took longer than the limit, in seconds.
        """
        assert self.process.stdin is not None and self.process.stdout is not None
        self.orders += 1
        try:
            self.process.stdin.write(json.dumps(order).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise SideError("the process is gone") from None
        handle = self.process.stdout.fileno()
        while b"\n" not in self.rest:
            ready, _, _ = select.select([handle], [], [], limit)
            if not ready:
                raise SideError(f"no answer within {limit:.0f} seconds")
            part = os.read(handle, 1 << 20)
            if not part:
                raise SideError("the process is gone")
            self.rest += part
        line, self.rest = self.rest.split(b"\n", 1)
        reply: dict[str, Any] = json.loads(line)
        return reply

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


class Side:
    """A devlint with its settings. Several threads may ask it; each has a process of its own."""

    def __init__(
        self, name: str, python: str, arguments: str, variables: Iterable[str], cache: Path, limit: float
    ) -> None:
        self.name, self.python, self.arguments = name, python, tuple(shlex.split(arguments))
        self.environment = dict(variable.split("=", 1) for variable in variables)
        self.cache, self.limit = cache, limit
        done = subprocess.run([python, "-c", _SOURCE], **self._asked())
        if done.returncode:
            raise SideError(f"{name}: {python} has no devlint: {done.stderr.strip().splitlines()[-1:]}")
        self.source = done.stdout.strip()
        for variable in self.environment:
            self._refuse_unknown(variable)
        self.own = threading.local()
        self.lock = threading.Lock()
        self.workers: list[Worker] = []

    @property
    def identity(self) -> tuple[object, ...]:
        """What decides its answers."""
        return self.source, self.arguments, sorted(self.environment.items())

    def _variables(self) -> dict[str, str]:
        """The environment of its processes: nothing of devlint's but what the side itself sets."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DEVLINT_")}
        return {**inherited, **self.environment}

    def _asked(self) -> dict[str, Any]:
        """How a side is asked about itself: from a folder that holds no devlint, since Python looks there first."""
        return {"capture_output": True, "text": True, "check": False, "env": self._variables(), "cwd": WORKER.parent}

    def _refuse_unknown(self, variable: str) -> None:
        """A variable that nothing reads would make both sides alike without a word. Raises SideError."""
        if not variable.startswith("DEVLINT_"):
            return
        key = variable.removeprefix("DEVLINT_").lower().replace("_", "-")
        devlint = [self.python, "-m", "devlint"]
        options = subprocess.run([*devlint, "check", "--help"], **self._asked()).stdout
        setting = subprocess.run([*devlint, "config", key], **self._asked())
        if setting.returncode and not re.search(rf"--{re.escape(key)}\b", options):
            raise SideError(f"{self.name}: this devlint has no option and no setting `{key}` ({variable})")

    def _worker(self) -> Worker:
        worker: Worker | None = getattr(self.own, "worker", None)
        if worker is not None and worker.orders < ORDERS:
            return worker
        if worker is not None:
            self._drop(worker)
        worker = Worker(self.python, self._variables())
        self.own.worker = worker
        with self.lock:
            self.workers.append(worker)
        return worker

    def _drop(self, worker: Worker) -> None:
        self.own.worker = None
        with self.lock:
            self.workers.remove(worker)
        worker.close()

    def run(self, folder: Path, arguments: Iterable[str], text: str = "", limit: float | None = None) -> dict[str, Any]:
        """What a command replies in a folder.

        Raises:
            SideError: it crashed or took too long.
        """
        worker = self._worker()
        order = {"folder": str(folder), "arguments": list(arguments), "input": text}
        try:
            reply = worker.ask(order, limit or self.limit)
        except SideError as error:
            self._drop(worker)
            raise SideError(f"{self.name}: devlint {shlex.join(order['arguments'])}: {error}") from None
        if reply["status"] not in (0, 1):
            raise SideError(f"{self.name}: devlint {shlex.join(order['arguments'])}: {reply['err'].strip()[-600:]}")
        return reply

    def check(self, folder: Path, arguments: Iterable[str] = (".",), limit: float | None = None) -> list[Finding]:
        """The findings in a folder, which is a project of its own."""
        reply = self.run(folder, (*CHECK, *self.arguments, *arguments), limit=limit)
        return sorted(finding_of(row, str(folder)) for row in json.loads(reply["out"] or "[]"))

    def kept(self, kind: str, content: str) -> Path:
        """The file that keeps what this side said of an input, by a digest of the input."""
        command = json.dumps([kind, *self.identity, content])
        digest = hashlib.sha256(command.encode()).hexdigest()
        return self.cache / digest[:2] / f"{digest}.json"

    def close(self) -> None:
        with self.lock:
            for worker in self.workers:
                worker.close()
            self.workers.clear()


def read_kept(path: Path) -> Any:
    """What was kept in a file; None where nothing was."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def keep(path: Path, value: Any) -> None:
    """Keep a value in a file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
        json.dump(value, file)
    os.replace(file.name, path)


def interpreter(path: str | None) -> str:
    """The interpreter of a side, which is asked from other folders."""
    return os.path.abspath(path) if path else sys.executable

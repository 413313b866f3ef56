"""Running programs under `devlint run` in tests: forks of one process that has torch imported."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Imports torch once and forks for each line, {"argv", "folder", "out", "err"}; answers with the exit status.
SERVER = """\
import json, os, sys
import torch, torch._dynamo
from devlint.runtime.simulator import session
from devlint.cli import main
for line in sys.stdin:
    request = json.loads(line)
    pid = os.fork()
    if pid == 0:
        os.chdir(request["folder"])
        for number, name in ((0, os.devnull), (1, request["out"]), (2, request["err"])):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT, 0o600), number)
        sys.stdin = open(0)
        status = main(request["argv"])
        for stream in (sys.stdout, sys.stderr):
            stream.closed or stream.flush()
        os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
DEVICE = 'import torch\ndevice = "cuda" if torch.cuda.is_available() else "cpu"\n'


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str

    @property
    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.err.splitlines()[-1])
        return found

    def finding(self, code: str) -> dict[str, Any]:
        (found,) = [finding for finding in self.report["findings"] if finding["code"] == code]
        return dict(found)

    @property
    def codes(self) -> list[str]:
        return [finding["code"] for finding in self.report["findings"]]


Run = Callable[..., Ended]

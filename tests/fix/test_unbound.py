"""No fix writes a name that nothing binds where it stands."""

from __future__ import annotations

import builtins
import symtable
from collections.abc import Iterator

import pytest

from devlint.engine import Linter
from devlint.fix.rounds import fix_source
from devlint.model import Safety
from devlint.registry import load_rules
from devlint.settings import Settings
from devlint.source import decode

DEFAULT_OF_A_FUNCTION = """\
import torch


def bench(name, device="cuda", steps=3):
    x = torch.rand(3, device=device)
    return x.sum().item()


if __name__ == "__main__":
    print(bench("one", "cuda", 5))
    print(bench("two", "cuda", 5))
"""
ONE_OF_MANY_ARGUMENTS = """\
import torch


def task(run, name: str, device: str, size: int):
    return run(torch.rand(size, device=device))


def main():
    return [task(torch.sum, "one", "cuda", 3), task(torch.mean, "two", "cuda", 3)]


def other():
    return task(torch.sum, "three", "cuda", 4)
"""
IN_A_METHOD = """\
import torch


class Bench:
    def run(self, device="cuda"):
        return torch.rand(3, device=device)


def main():
    return Bench().run("cuda"), torch.ones(3).cuda()
"""


def _unbound(text: str) -> Iterator[str]:
    """The names that some scope reads and none binds."""
    top = symtable.symtable(text, "case.py", "exec")
    known = {each.get_name() for each in top.get_symbols() if each.is_assigned() or each.is_imported()} | set(
        dir(builtins)
    )
    pending = [top]
    while pending:
        scope = pending.pop()
        pending += scope.get_children()
        for each in scope.get_symbols():
            if each.is_global() and each.is_referenced() and each.get_name() not in known:
                yield each.get_name()


@pytest.mark.parametrize("text", [DEFAULT_OF_A_FUNCTION, ONE_OF_MANY_ARGUMENTS, IN_A_METHOD])
@pytest.mark.parametrize("allowed", [{Safety.SAFE}, {Safety.SAFE, Safety.UNSAFE}])
def test_fixed_file_reads_no_unbound_name(text: str, allowed: set[Safety]) -> None:
    linter = Linter(load_rules(), Settings(select=("DEV1", "DEV2", "DEV3")))
    fixed = fix_source(linter, decode(text.encode(), "case.py"), allowed).text
    assert not {name for name in _unbound(fixed) if not name.startswith("__")}

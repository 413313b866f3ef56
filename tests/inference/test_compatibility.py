"""What version 0.1 wrote stays valid under the new inference: baselines and comments, by code and place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from devlint.model import RuleMeta, Severity

Cli = Callable[..., Any]  # of conftest.py
FIVE: Final = ("--select", "DEV101,DEV102,DEV103,DEV104,DEV109,DEV901")
NEW: Final = (*FIVE, "--inference", "new", "--min-severity", "info")
#: One program for each rule, with a finding of both inferences.
PROGRAMS: Final = {
    "DEV101": 'a = torch.ones(3)\nb = torch.ones(3).to("cuda")\nc = a.cpu()\nprint(c + b)\n',
    "DEV102": "def f(x: torch.Tensor):\n    return x + torch.ones(3)\n",
    "DEV103": 'net = torch.nn.Linear(3, 3)\nnet.to("cuda")\nx = torch.ones(3).cpu()\nprint(net(x))\n',
    "DEV104": 'rows = torch.ones(3).cpu()\nindex = torch.tensor([0]).to("cuda")\nprint(rows[index])\n',
    "DEV109": 'x = torch.ones(3).to("cuda")\nprint(x.numpy())\n',
}


def codes(cli: Cli, *arguments: str) -> list[str]:
    return [each["code"] for each in json.loads(cli(*arguments, "--output-format", "json").out)]


@pytest.mark.parametrize("code", PROGRAMS)
class TestEachRule:
    @pytest.fixture(autouse=True)
    def program(self, code: str, cli: Cli) -> None:
        Path("a.py").write_text("import torch\n\n" + PROGRAMS[code], encoding="utf-8")

    def test_both_inferences_report_it(self, cli: Cli, code: str) -> None:
        assert code in codes(cli, *FIVE)
        assert code in codes(cli, *NEW)

    def test_a_baseline_of_the_old_inference_holds(self, cli: Cli, code: str) -> None:
        cli(*FIVE, "--write-baseline", "--baseline", "base.json")
        assert codes(cli, *NEW, "--baseline", "base.json") == []

    def test_a_comment_for_the_old_inference_holds(self, cli: Cli, code: str) -> None:
        cli(*FIVE, "--add-ignore=known")
        assert "devlint: ignore" in Path("a.py").read_text(encoding="utf-8")
        assert codes(cli, *NEW) == []


def test_a_comment_on_an_info_is_not_unused(cli: Cli) -> None:
    line = "    return x + torch.ones(3)  # devlint: ignore[DEV102]\n"
    Path("a.py").write_text(f"import torch\n\n\ndef f(x: torch.Tensor):\n{line}", encoding="utf-8")
    assert codes(cli, *NEW) == []
    assert codes(cli, *FIVE, "--inference", "new", "--min-severity", "error") == []


def test_a_comment_that_the_old_inference_alone_needs_is_not_unused(cli: Cli) -> None:
    """Here the only caller hands over data of the host, which the new inference sees alone."""
    body = "def f(x: torch.Tensor):\n    return x + torch.ones(3)  # devlint: ignore[DEV102]\n\n\nf(torch.ones(3))\n"
    Path("a.py").write_text(f"import torch\n\n\n{body}", encoding="utf-8")
    assert codes(cli, *NEW) == []


def test_a_comment_for_another_rule_may_still_be_unused(cli: Cli) -> None:
    Path("a.py").write_text("import torch\n\nx = torch.ones(3)  # devlint: ignore[DEV202]\n", encoding="utf-8")
    assert codes(cli, "--select", "DEV202,DEV901", "--inference", "new") == ["DEV901"]


def meta(**more: Any) -> RuleMeta:
    return RuleMeta("XYZ1", "a-rule", "what it flags", "0.2.0", "certain", Severity.WARNING, "never", (), **more)


def test_a_preview_rule_is_marked_in_tables() -> None:
    assert [meta(opt_in=True, preview=True).mark, meta(opt_in=True).mark, meta().mark] == [
        ", preview",
        ", off by default",
        "",
    ]

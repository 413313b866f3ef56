"""Settings about rules: severities, which fixes are applied, and per-file ignores from the command line."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from devlint.cli import main

SAFE = 'import torch\n\nx = torch.zeros(3).to("cuda")\n'
SAFE_FIXED = 'import torch\n\nx = torch.zeros(3, device="cuda")\n'
UNSAFE = 'import torch\n\nx = torch.randn(3).to("cuda")\n'
UNSAFE_FIXED = 'import torch\n\nx = torch.randn(3, device="cuda")\n'


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["check", "--select", "DEV501", *arguments])
    return code, out.getvalue(), err.getvalue()


def rows(*arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("--output-format", "json", *arguments)[1])
    return found


def settings(text: str) -> None:
    Path("devlint.toml").write_text(text)


def test_the_rules_own_severity_is_reported() -> None:
    Path("a.py").write_text(SAFE)
    assert [row["severity"] for row in rows()] == ["warning"]


@pytest.mark.parametrize("selector", ["DEV501", "DEV5", "create-then-move", "ALL"])
def test_a_severity_can_be_given_by_code_prefix_and_name(selector: str) -> None:
    settings(f'severity = {{ "{selector}" = "error" }}\n')
    Path("a.py").write_text(SAFE)
    assert [row["severity"] for row in rows()] == ["error"]


def test_the_most_specific_severity_counts() -> None:
    settings('severity = { DEV501 = "info", DEV5 = "error" }\n')
    Path("a.py").write_text(SAFE)
    assert [row["severity"] for row in rows()] == ["info"]


def test_findings_below_the_lowest_severity_are_not_reported() -> None:
    Path("a.py").write_text(SAFE)
    assert run("--min-severity", "warning")[0] == 1
    assert run("--min-severity", "error")[0] == 0


def test_the_lowest_severity_goes_by_the_severity_that_was_given() -> None:
    settings('severity = { DEV501 = "error" }\nmin-severity = "error"\n')
    Path("a.py").write_text(SAFE)
    assert run()[0] == 1


def test_a_file_that_cannot_be_read_is_reported_at_any_lowest_severity() -> None:
    Path("a.py").write_text("x = (\n")
    assert run("--min-severity", "error")[0] == 1


@pytest.mark.parametrize("content", [b"x = (\n", b"import torch\ntorch.zeros((\n", b"import torch\nx = '\xff'\n"])
def test_only_an_ignore_of_its_own_silences_a_file_that_cannot_be_read(content: bytes) -> None:
    Path("a.py").write_bytes(content)
    assert run()[0] == 1
    assert run("--ignore", "DEV9")[0] == 1
    assert run("--ignore", "DEV900")[0] == 0
    assert run("--per-file-ignores", "a.py:unreadable-file")[0] == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('severity = { DEV9999 = "error" }', "`severity`: unknown rule `DEV9999`"),
        ('severity = { DEV501 = "eror" }', '"DEV501": expected one of error, warning, info, not "eror"'),
        ('fixable = ["nothing"]', "`fixable`: unknown rule `nothing`"),
        ('extend-safe-fixes = ["nothing"]', "`extend-safe-fixes`: unknown rule `nothing`"),
    ],
)
def test_bad_settings_are_named(text: str, message: str) -> None:
    settings(text + "\n")
    Path("a.py").write_text(SAFE)
    code, _, err = run()
    assert code == 2
    assert message in err


@pytest.mark.parametrize("text", ['unfixable = ["DEV501"]', 'fixable = ["DEV101"]', "fixable = []"])
def test_a_fix_that_is_not_wanted_is_not_applied(text: str) -> None:
    settings(text + "\n")
    Path("a.py").write_text(SAFE)
    code, out, _ = run("--fix")
    assert code == 1
    assert "fixable with" not in out
    assert Path("a.py").read_text() == SAFE


@pytest.mark.parametrize("options", [("--unfixable", "DEV5"), ("--fixable", "DEV1")])
def test_options_say_so_too(options: tuple[str, ...]) -> None:
    Path("a.py").write_text(SAFE)
    run("--fix", *options)
    assert Path("a.py").read_text() == SAFE


def test_the_more_specific_selector_says_whether_a_rule_is_fixed() -> None:
    settings('fixable = ["DEV501"]\nunfixable = ["DEV5"]\n')
    Path("a.py").write_text(SAFE)
    assert run("--fix")[0] == 0


def test_an_unsafe_fix_can_be_made_safe() -> None:
    settings('extend-safe-fixes = ["DEV501"]\n')
    Path("a.py").write_text(UNSAFE)
    assert run("--fix")[0] == 0
    assert Path("a.py").read_text() == UNSAFE_FIXED


def test_a_safe_fix_can_be_made_unsafe() -> None:
    settings('extend-unsafe-fixes = ["DEV501"]\n')
    Path("a.py").write_text(SAFE)
    assert run("--fix")[0] == 1
    assert run("--fix", "--unsafe-fixes")[0] == 0
    assert Path("a.py").read_text() == SAFE_FIXED


def test_rules_are_ignored_in_files_that_match() -> None:
    Path("tests").mkdir()
    Path("tests/a.py").write_text(SAFE)
    Path("b.py").write_text(SAFE)
    found = rows("--per-file-ignores", "tests/*:DEV1,DEV501")
    assert [row["filename"] for row in found] == ["b.py"]


def test_options_add_to_the_per_file_ignores_of_the_settings() -> None:
    settings('per-file-ignores = { "b.py" = ["DEV501"] }\n')
    Path("a.py").write_text(SAFE)
    Path("b.py").write_text(SAFE)
    assert run("--per-file-ignores", "a.py:create-then-move")[0] == 0


@pytest.mark.parametrize("value", ["DEV501", "a.py:", ":DEV501"])
def test_a_per_file_ignore_without_pattern_or_rule_is_an_error(value: str) -> None:
    assert run("--per-file-ignores", value)[0] == 2


def test_more_rules_can_be_ignored() -> None:
    settings('select = ["DEV501"]\nextend-ignore = ["DEV501"]\n')
    Path("a.py").write_text(SAFE)
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(["check"]) == 0
        assert main(["check", "--isolated", "--ignore", "DEV1,DEV2,DEV3,DEV4", "--extend-ignore", "DEV5"]) == 0
        assert main(["check", "--isolated", "--ignore", "DEV1,DEV2,DEV3,DEV4"]) == 1


ASSUMED = "import torch\n\n\ndef shift(x: torch.Tensor) -> torch.Tensor:\n    return x + torch.arange(x.shape[-1])\n"
CERTAIN = (
    "import torch\n\n\ndef shift(x, device):\n    x = torch.as_tensor(x).to(device)\n    return x @ torch.eye(3)\n"
)


def certainties(*arguments: str) -> list[tuple[str, str]]:
    found = rows("--select", "DEV102", *arguments)
    return [(row["certainty"], row["severity"]) for row in found]


def test_a_finding_that_rests_on_what_an_argument_may_be_says_so_and_is_a_warning() -> None:
    Path("a.py").write_text(ASSUMED)
    assert certainties() == [("assume", "warning")]


def test_what_the_code_itself_moves_is_certain_and_an_error() -> None:
    Path("a.py").write_text(CERTAIN)
    assert certainties() == [("certain", "error")]


def test_the_lowest_severity_may_leave_out_what_is_assumed() -> None:
    Path("a.py").write_text(ASSUMED)
    Path("b.py").write_text(CERTAIN)
    assert certainties("--min-severity", "error") == [("certain", "error")]


def test_a_severity_that_is_given_holds_for_what_is_assumed_too() -> None:
    settings('severity = { DEV102 = "error" }\n')
    Path("a.py").write_text(ASSUMED)
    assert certainties() == [("assume", "error")]


def test_the_last_lines_count_what_is_assumed() -> None:
    Path("a.py").write_text(ASSUMED)
    assert "It assumes that an argument or a module may be on an accelerator" in run("--select", "DEV102")[1]

"""The command line, end to end: exit codes, streams, options, and what bad input gets."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import devlint
from devlint import pool
from devlint.cli import COMMANDS
from devlint.model import FileResult
from devlint.source import Source
from tests.conftest import Run

CLEAN = "import torch\n\nx = torch.zeros(3)\n"
BAD = 'import torch\n\nx = torch.zeros(3).to("cuda")\n'
FIXED = 'import torch\n\nx = torch.zeros(3, device="cuda")\n'
UNSAFE = 'import torch\n\nx = torch.randn(3).to("cuda")\n'
BROKEN = 'import torch\n\nx = torch.zeros(3).to("cuda"\n'
ONE_RULE = ("--select", "DEV501")


def write(**texts: str | bytes) -> None:
    """Files of the current directory; `a` becomes `a.py`."""
    for name, text in texts.items():
        Path(f"{name}.py").write_bytes(text if isinstance(text, bytes) else text.encode())


def in_process(
    *arguments: str, env: dict[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[bytes]:
    """A command line in a process of its own."""
    command = [sys.executable, "-m", "devlint", *arguments]
    return subprocess.run(command, capture_output=True, timeout=60, env={**os.environ, **(env or {})}, **options)


# Exit codes


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("clean.py", 0),
        ("bad.py", 1),
        ("bad.py clean.py", 1),
        ("bad.py --exit-zero", 0),
        ("bad.py --fix", 0),
        ("bad.py --fix --exit-non-zero-on-fix", 1),
        ("clean.py --fix --exit-non-zero-on-fix", 0),
        ("bad.py --fix-only", 0),
        ("bad.py --fix-only --exit-non-zero-on-fix", 1),
        ("unsafe.py --fix", 1),
        ("unsafe.py --fix-only", 0),
        ("unsafe.py --fix --unsafe-fixes", 0),
        ("bad.py --diff", 1),
        ("clean.py --diff", 0),
        ("unsafe.py --diff", 0),
        ("unsafe.py --diff --unsafe-fixes", 1),
        ("bad.py --diff --exit-zero", 0),
        ("bad.py --statistics", 1),
        ("bad.py --output-format json", 1),
        ("broken.py", 1),
        ("broken.py --fix", 1),
        ("broken.py --fix-only", 1),
        ("broken.py --diff", 1),
        ("broken.py --exit-zero", 0),
        ("empty", 0),
        ("missing.py", 2),
        ("missing.py bad.py", 2),
        ("missing.py clean.py", 2),
        ("missing.py --exit-zero", 2),
        ("missing.py --show-files", 2),
        ("bad.py --show-files", 0),
        ("bad.py --show-settings", 0),
        ("bad.py --select DEV999", 2),
        ("bad.py --ignore nonsense", 2),
        ("bad.py --no-such-option", 2),
        ("bad.py --output-format xml", 2),
        ("bad.py -j many", 2),
        ("bad.py --color sometimes", 2),
        ("bad.py --config missing.toml", 2),
        ("bad.py --config devlint.toml --isolated", 2),
        ("bad.py -", 2),
    ],
)
def test_exit_code(run: Run, arguments: str, code: int) -> None:
    write(clean=CLEAN, bad=BAD, unsafe=UNSAFE, broken=BROKEN)
    Path("empty").mkdir()
    words = arguments.split()
    selected = words if "--select" in words else [*words, *ONE_RULE]
    assert run(*selected).code == code


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("--version", 0), ("-V", 0), ("version", 0), ("--help", 0), ("-h", 0), ("help", 0), ("help check", 0),
        ("help rule", 0), ("check --help", 0), ("rule DEV501", 0), ("rule create-then-move DEV900", 0),
        ("rule --all", 0), ("server --help", 0), ("help server", 0), ("server --nothing", 2),
        ("rule DEV999", 2), ("rule", 2), ("rule --all --output-format xml", 2),
    ],
)  # fmt: skip
def test_exit_code_of_other_commands(run: Run, arguments: str, code: int) -> None:
    assert run(*arguments.split()).code == code


def test_an_interrupt_is_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(linter: object, source: object) -> None:
        raise KeyboardInterrupt

    write(a=BAD)
    monkeypatch.setattr("devlint.engine.Linter.check", interrupted)
    assert run("a.py") == (130, "", "interrupted\n")


# Commands


def test_check_is_the_default_command_and_here_the_default_path(run: Run) -> None:
    write(a=BAD)
    results = [run("."), run("check", "."), run("check"), run()]
    assert results[0].code == 1
    assert all(result == results[0] for result in results)


def test_the_module_runs_the_same_command(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BAD)
    done = in_process("a.py", "--output-format", "concise", *ONE_RULE, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, b"")
    assert done.stdout.startswith(b"a.py:3:5: DEV501 [*] ")


def test_version(run: Run) -> None:
    assert run("--version") == (0, f"devlint {devlint.__version__}\n", "")


def test_help_names_every_command(run: Run) -> None:
    text = run("help").out
    assert all(f"\n  {name} " in text for name in COMMANDS)


def test_a_misspelt_command_is_recognised(run: Run) -> None:
    assert run("chek").err == "error: chek: no such file or directory; did you mean `check`?\n"


def test_verify_gets_its_arguments_unchanged(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Verify:
        @staticmethod
        def main(arguments: list[str]) -> int:
            return 3 if arguments == ["train.py", "--", "--epochs", "1"] else 0

    monkeypatch.setattr("importlib.import_module", lambda name: {"devlint.runtime.verify": Verify}[name])
    assert run("verify", "train.py", "--", "--epochs", "1").code == 3


def test_rule_prints_the_documentation(run: Run) -> None:
    by_code, by_name = run("rule", "DEV501"), run("rule", "create-then-move")
    assert by_code == by_name
    assert by_code.out.startswith("# create-then-move (DEV501)\n\n")
    assert "## What it flags" in by_code.out
    assert by_code.out.endswith("\n")


def test_rule_explains_the_engines_own_finding(run: Run) -> None:
    assert "# unreadable-file (DEV900)" in run("rule", "DEV900").out


def test_rule_suggests_the_nearest(run: Run) -> None:
    assert (
        run("rule", "create-than-move").err
        == "error: unknown rule `create-than-move`; did you mean `create-then-move`?\n"
    )


def test_rule_as_json(run: Run) -> None:
    one = json.loads(run("rule", "DEV501", "--output-format", "json").out)
    assert (one["code"], one["name"], one["since"]) == ("DEV501", "create-then-move", "0.1.0")
    assert set(one) == {
        "code", "name", "summary", "level", "severity", "fix", "since", "opt_in", "preview", "words", "explanation", "options",
        "needs_inference",
        "url",
    }  # fmt: skip
    rows = json.loads(run("rule", "--all", "--output-format", "json").out)
    assert one in rows
    assert [row["code"] for row in rows] == sorted(row["code"] for row in rows)


# Streams and formats


def test_problems_go_to_stdout_and_messages_to_stderr(run: Run) -> None:
    write(a=BAD)
    result = run("a.py", "missing.py", "--output-format", "concise", *ONE_RULE)
    assert result.out.splitlines()[0].startswith("a.py:3:5: DEV501 [*] ")
    assert result.err == "error: missing.py: no such file or directory\n"


def test_a_clean_run_says_so_in_one_line(run: Run) -> None:
    write(a=CLEAN)
    assert run("a.py") == (0, "No device problems found in 1 file.\n", "")


def test_json_is_an_array_also_when_clean(run: Run) -> None:
    write(a=CLEAN, b=BAD)
    assert json.loads(run("a.py", "--output-format", "json").out) == []
    (row,) = json.loads(run(".", "--output-format", "json", *ONE_RULE).out)
    assert (row["code"], row["filename"], row["location"]) == ("DEV501", "b.py", {"row": 3, "column": 5})
    assert row["fix"]["applicability"] == "safe"


def test_json_output_is_nothing_but_json(run: Run) -> None:
    write(a=BAD)
    assert json.loads(run("a.py", "--fix", "--show-fixes", "--output-format", "json", *ONE_RULE).out) == []


def test_columns_are_code_points(run: Run) -> None:
    write(a='import torch\ns = "重要"; x = torch.zeros(3).to("cuda")\n')
    assert run("a.py", "--output-format", "concise", *ONE_RULE).out.startswith("a.py:2:15: DEV501")


def test_the_output_format_can_be_configured(run: Run) -> None:
    write(a=CLEAN)
    Path("devlint.toml").write_text('output-format = "json"\n')
    assert run("a.py").out == "[]\n"
    assert run("a.py", "--isolated").out != "[]\n"


def test_color_on_request(run: Run) -> None:
    write(a=BAD)
    assert "\x1b[" not in run("a.py").out
    colored = run("a.py", "--color", "always").out
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == run("a.py").out != colored


def test_statistics_replace_the_problems(run: Run) -> None:
    write(a=BAD, b=BAD, c="x = 1\n")
    assert run(".", "--statistics", *ONE_RULE).out == "2  DEV501  [*] create-then-move\n"


def test_verbose_statistics_say_what_was_read(run: Run) -> None:
    write(a=BAD, b=BAD, c="x = 1\n")
    lines = run(".", "--statistics", "--verbose", *ONE_RULE).out.splitlines()
    assert lines[0] == "2  DEV501  [*] create-then-move"
    assert [line.split() for line in lines[2:5]] == [
        ["files", "3"],
        ["without", "a", "rule's", "word", "1"],
        ["lines", "7"],
    ]


def test_the_result_does_not_depend_on_the_number_of_processes(run: Run) -> None:
    write(**{f"m{number}": (BAD, CLEAN, BROKEN)[number % 3] for number in range(12)})
    one = run(".", "-j", "1", "--output-format", "json")
    assert one.code == 1
    assert run(".", "-j", "3", "--output-format", "json") == one
    assert run(".", "-j", "auto", "--output-format", "json") == one


def test_a_directory_without_python_is_said(run: Run) -> None:
    Path("empty").mkdir()
    result = run("empty")
    assert (result.code, result.err) == (0, "warning: no Python files found in empty\n")


# Settings


def test_each_file_follows_its_own_configuration(run: Run) -> None:
    Path("strict").mkdir()
    Path("lax").mkdir()
    Path("strict/a.py").write_text(BAD)
    Path("lax/a.py").write_text(BAD)
    Path("devlint.toml").write_text('select = ["DEV501"]\n')
    Path("lax/devlint.toml").write_text('ignore = ["ALL"]\n')
    rows = json.loads(run("--output-format", "json").out)
    assert [row["filename"].replace(os.sep, "/") for row in rows] == ["strict/a.py"]


def test_rules_can_be_ignored_per_file(run: Run) -> None:
    write(a=BAD, test_a=BAD)
    Path("devlint.toml").write_text('select = ["DEV501"]\n[per-file-ignores]\n"test_*.py" = ["DEV5"]\n')
    rows = json.loads(run("--output-format", "json").out)
    assert [row["filename"] for row in rows] == ["a.py"]


def test_select_on_the_command_line_outranks_the_configuration(run: Run) -> None:
    write(a=BAD)
    Path("devlint.toml").write_text('ignore = ["DEV501"]\n')
    assert "DEV501" not in run("a.py", "--output-format", "concise").out
    assert "DEV501" in run("a.py", "--output-format", "concise", "--select", "create-then-move").out


def test_an_unknown_rule_in_a_configuration_names_the_file(run: Run, tmp_path: Path) -> None:
    write(a=CLEAN)
    Path("devlint.toml").write_text('select = ["create-then-mov"]\n')
    path = tmp_path / "devlint.toml"
    assert run("a.py") == (2, "", f"error: {path}: unknown rule `create-then-mov`; did you mean `create-then-move`?\n")


def test_an_unknown_rule_on_the_command_line_is_an_error_without_a_file_too(run: Run) -> None:
    assert run("--select", "DEV50x").err.startswith("error: unknown rule `DEV50x`; did you mean `DEV50")


def test_a_broken_configuration_is_an_error(run: Run, tmp_path: Path) -> None:
    write(a=CLEAN)
    Path("pyproject.toml").write_text("[tool.devlint]\nslect = []\n")
    assert run("a.py") == (
        2,
        "",
        f"error: {tmp_path / 'pyproject.toml'}:2: unknown key `slect`; did you mean `select`?\n",
    )
    assert run("a.py", "--isolated").code == 0


def test_a_plugin_that_is_not_installed_is_an_error(run: Run) -> None:
    write(a=CLEAN)
    Path("devlint.toml").write_text('plugins = ["not-there"]\n')
    result = run("a.py")
    assert (result.code, result.out) == (2, "")
    assert "not-there" in result.err


def test_a_plugin_that_is_not_installed_is_an_error_after_a_run_without_it_too(run: Run) -> None:
    write(a=CLEAN)
    assert run("a.py").code == 0
    Path("devlint.toml").write_text('plugins = ["not-there"]\n')
    assert run("a.py").err.startswith("error: no installed package provides rules as 'not-there'")


def test_show_files_lists_what_would_be_checked(run: Run) -> None:
    write(a=BAD, b=BAD)
    assert run("--show-files", "--extend-exclude", "b.py") == (0, "a.py\n", "")


def test_show_settings_prints_toml(run: Run, tmp_path: Path) -> None:
    write(a=BAD)
    Path("devlint.toml").write_text('ignore = ["DEV1"]\n')
    lines = run("a.py", "--show-settings").out.splitlines()
    assert lines[:2] == ["# settings of a.py", f"# from {tmp_path / 'devlint.toml'}"]
    assert 'ignore = ["DEV1"]' in lines
    assert 'cache-dir = ".devlint_cache"' in lines


def test_force_exclude_is_silent_about_what_it_leaves_out(run: Run) -> None:
    Path("build").mkdir()
    Path("build/a.py").write_text(BAD)
    assert run("build/a.py").code == 1
    assert run("build/a.py", "--force-exclude") == (0, "No device problems found in 0 files.\n", "")


# Fixes


def test_fix_writes_the_file_and_counts(run: Run) -> None:
    write(a=BAD)
    result = run("a.py", "--fix", *ONE_RULE)
    assert result == (0, "Fixed 1 problem; none left in 1 file.\n", "")
    assert Path("a.py").read_text() == FIXED


def test_unsafe_fixes_need_to_be_allowed_by_flag_or_configuration(run: Run) -> None:
    write(a=UNSAFE)
    assert run("a.py", "--fix", *ONE_RULE).out.endswith("\n1 fixable with `--fix --unsafe-fixes`.\n")
    assert Path("a.py").read_text() == UNSAFE
    Path("devlint.toml").write_text("unsafe-fixes = true\n")
    assert run("a.py", "--fix", "--no-unsafe-fixes", *ONE_RULE).code == 1
    assert run("a.py", "--fix", *ONE_RULE).code == 0
    assert Path("a.py").read_text() == UNSAFE.replace(').to("cuda")', ', device="cuda")')


def test_show_fixes_lists_them(run: Run) -> None:
    write(a=BAD, b=BAD)
    assert run(".", "--fix", "--show-fixes", *ONE_RULE).out == (
        "Fixed 2 problems:\n"
        "- a.py:\n"
        "    1 x DEV501 (create-then-move)\n"
        "- b.py:\n"
        "    1 x DEV501 (create-then-move)\n"
        "Fixed 2 problems; none left in 2 files.\n"
    )


def test_diff_goes_to_stdout_its_count_to_stderr_and_the_file_stays(run: Run) -> None:
    write(a=BAD)
    assert run("a.py", "--diff", *ONE_RULE) == (
        1,
        "--- a/a.py\n"
        "+++ b/a.py\n"
        "@@ -1,3 +1,3 @@\n"
        " import torch\n"
        " \n"
        '-x = torch.zeros(3).to("cuda")\n'
        '+x = torch.zeros(3, device="cuda")\n',
        "Would fix 1 problem in 1 file.\n",
    )
    assert Path("a.py").read_text() == BAD


def test_diff_is_what_git_applies_in_any_encoding(run: Run) -> None:
    text = '# coding: latin-1\r\nimport torch\r\ns = "é"; x = torch.zeros(3).to("cuda")\r\n'
    write(a=text.encode("latin-1"))
    command = [sys.executable, "-m", "devlint", "--diff", *ONE_RULE]
    diff = subprocess.run(command, capture_output=True, timeout=60).stdout
    if subprocess.run(["git", "--version"], capture_output=True).returncode:
        pytest.skip("git is not installed")
    subprocess.run(["git", "apply", "-"], input=diff, check=True, capture_output=True)
    assert Path("a.py").read_bytes() == text.replace(').to("cuda")', ', device="cuda")').encode("latin-1")
    assert run("a.py", *ONE_RULE).code == 0


def test_a_file_that_cannot_be_parsed_is_named_under_diff(run: Run) -> None:
    write(a=BROKEN)
    result = run("a.py", "--diff")
    assert result.out == ""
    assert result.err.startswith("a.py:3:")
    assert "DEV900" in result.err


def test_fix_keeps_carriage_returns_and_a_byte_order_mark(run: Run) -> None:
    write(a=b"\xef\xbb\xbf" + BAD.replace("\n", "\r\n").encode())
    assert run("a.py", "--fix", *ONE_RULE).code == 0
    assert Path("a.py").read_bytes() == b"\xef\xbb\xbf" + FIXED.replace("\n", "\r\n").encode()


def test_a_read_only_file_is_reported_and_left(run: Run) -> None:
    write(a=BAD, b=BAD)
    Path("a.py").chmod(0o444)
    result = run(".", "--fix", "--output-format", "concise", *ONE_RULE)
    assert result.code == 2
    assert result.err == "error: a.py: cannot be written: the file is read-only\n"
    assert result.out.splitlines()[0].startswith("a.py:3:5: DEV501 [*]")
    assert Path("a.py").read_text() == BAD
    assert Path("b.py").read_text() == FIXED


# Standard input


def test_standard_input_is_checked(run: Run) -> None:
    result = run("-", "--output-format", "concise", *ONE_RULE, stdin=BAD.encode())
    assert result.code == 1
    assert result.out.startswith("-:3:5: DEV501")


def test_the_name_of_standard_input_is_reported_and_finds_the_configuration(run: Run) -> None:
    Path("pkg").mkdir()
    Path("pkg/devlint.toml").write_text('ignore = ["ALL"]\n')
    assert run("-", "--stdin-filename", "pkg/a.py", stdin=BAD.encode()).code == 0
    named = run("-", "--stdin-filename", "a.py", "--output-format", "concise", *ONE_RULE, stdin=BAD.encode())
    assert named.out.startswith("a.py:3:5:")


def test_fixed_standard_input_goes_to_stdout_and_the_rest_to_stderr(run: Run) -> None:
    result = run("-", "--fix", *ONE_RULE, stdin=BAD.encode())
    assert result == (0, FIXED, "Fixed 1 problem; none left in 1 file.\n")


@pytest.mark.parametrize("text", [CLEAN, BROKEN, "", UNSAFE])
def test_standard_input_without_a_fix_comes_out_unchanged(run: Run, text: str) -> None:
    assert run("-", "--fix", *ONE_RULE, stdin=text.encode()).out == text


def test_bytes_of_standard_input_that_are_no_text_come_out_unchanged(run: Run, tmp_path: Path) -> None:
    done = in_process("-", "--fix", cwd=tmp_path, input=b"import torch\n\xff.cuda()")
    assert (done.returncode, done.stdout) == (1, b"import torch\n\xff.cuda()")
    assert b"DEV900" in done.stderr


def test_excluded_standard_input_comes_out_unchanged(run: Run) -> None:
    arguments = ("-", "--fix", "--force-exclude", "--stdin-filename", "build/a.py")
    assert run(*arguments, stdin=BAD.encode()) == (0, BAD, "No device problems found in 0 files.\n")


def test_a_diff_of_standard_input(run: Run) -> None:
    result = run("-", "--diff", "--stdin-filename", "pkg/a.py", *ONE_RULE, stdin=BAD.encode())
    assert result.out.startswith("--- a/pkg/a.py\n+++ b/pkg/a.py\n")


# Bad input


@pytest.mark.parametrize(
    ("content", "place", "words"),
    [
        (BROKEN, "3:22", "'(' was never closed"),
        (b"import torch\nx = torch.zeros(3).to('cuda')  # \xff\n", "2:34", "not valid utf-8"),
        (b"import torch\nx = torch.zeros(3).to('cuda')\0\n", "2:30", "NUL"),
        (b"\xff\xfeb\0", "1:1", "UTF-16"),
        (b"# coding: klingon\nimport torch.cuda\n", "1:1", "unknown encoding: klingon"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_finding(run: Run, content: str | bytes, place: str, words: str) -> None:
    write(a=content, b=BAD)
    before = Path("a.py").read_bytes()
    result = run(".", "--fix", "--output-format", "concise", *ONE_RULE)
    line = result.out.splitlines()[0]
    assert (result.code, result.err) == (1, "")
    assert line.startswith(f"a.py:{place}: DEV900 ")
    assert words in line
    assert Path("a.py").read_bytes() == before
    assert Path("b.py").read_text() == FIXED


@pytest.mark.parametrize("content", ["", "\n", "\ufeff", "# torch\n", "\x0c\n", "import torch"])
def test_an_almost_empty_file_is_clean_and_stays(run: Run, content: str) -> None:
    write(a=content)
    assert run("a.py", "--fix").code == 0
    assert Path("a.py").read_bytes() == content.encode()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="needs a user whom permissions bind")
def test_a_file_without_read_permission_is_a_finding(run: Run) -> None:
    write(a=BAD)
    Path("a.py").chmod(0)
    result = run("a.py", "--output-format", "concise")
    assert result.code == 1
    assert result.out.startswith("a.py:1:1: DEV900 cannot be read: Permission denied")


def test_fifty_thousand_lines(run: Run) -> None:
    filler = "".join(f"value_{number} = other.method({number}, key='cuda')\n" for number in range(25_000))
    write(a="import torch\n" + filler + BAD.splitlines()[-1] + "\n" + filler)
    result = run("a.py", "--fix", "--output-format", "concise", *ONE_RULE)
    assert (result.code, result.err) == (0, "")
    assert Path("a.py").read_text() == "import torch\n" + filler + FIXED.splitlines()[-1] + "\n" + filler


@pytest.mark.parametrize(
    "nested",
    [
        "(" * 20_000 + "x" + ")" * 20_000,
        "(" * 150 + "x" + ")" * 150,
        "x" + " + x" * 50_000,
        "x" + ".y" * 5_000,
        "x" + "()" * 5_000,
        "[" * 150 + "]" * 150,
        "-" * 5_000 + "x",
        "lambda: " * 2_000 + "x",
    ],
    ids=["parentheses", "fewer-parentheses", "sum", "attributes", "calls", "lists", "signs", "lambdas"],
)
def test_deep_nesting_ends_no_process(tmp_path: Path, nested: str) -> None:
    (tmp_path / "deep.py").write_text(f'import torch\ny = torch.zeros(3).to("cuda")\nz = {nested}.to("cuda")\n')
    (tmp_path / "next.py").write_text(BAD)
    done = in_process(".", "--output-format", "concise", *ONE_RULE, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, b"")
    assert b"next.py:3:5: DEV501" in done.stdout
    assert b"deep.py:" in done.stdout


# Failures of devlint itself


@pytest.fixture
def crash_on_b(monkeypatch: pytest.MonkeyPatch) -> None:
    from devlint.engine import Linter

    check = Linter.check

    def failing(self: Linter, source: Source) -> FileResult:
        if source.path.endswith("b.py"):
            raise LookupError("surprise")
        return check(self, source)

    monkeypatch.setattr(Linter, "check", failing)


def _with_patch(patch: str) -> str:
    """What starts a worker process with the linter patched."""
    return pool._START.replace("main()", f"import os, time; from devlint.engine import Linter; {patch}; main()")


@pytest.mark.usefixtures("crash_on_b")
@pytest.mark.parametrize("option", ["--fix", "--diff", "--exit-zero", "--statistics"])
def test_an_internal_error_names_the_file_outranks_problems_and_ends_nothing(run: Run, option: str) -> None:
    write(a=BAD, b=BAD, c=BAD)
    result = run(".", option, *ONE_RULE)
    assert result.code == 2
    assert re.match(r"error: b\.py:1: internal error: LookupError: surprise \(test_cli\.py:\d+\)\n", result.err)
    assert "Traceback" not in result.err
    if option == "--fix":
        assert [Path(f"{name}.py").read_text() for name in "abc"] == [FIXED, BAD, FIXED]


def test_a_process_that_dies_loses_its_file_alone(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    dying = "check = Linter.check; Linter.check = lambda self, s: os._exit(1) if s.path == 'b.py' else check(self, s)"
    monkeypatch.setattr(pool, "_START", _with_patch(dying))
    write(a=BAD, b=BAD, c=BAD)
    result = run(".", "-j", "2", "--output-format", "concise", *ONE_RULE)
    assert result.code == 2
    assert result.err == "error: b.py:1: internal error: the process that checked this file ended abruptly\n"
    assert [line[:4] for line in result.out.splitlines()[:2]] == ["a.py", "c.py"]


# The process


@pytest.mark.skipif(os.name == "nt", reason="interrupts are sent in another way there")
@pytest.mark.parametrize(("name", "code_of"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_an_interrupt_ends_the_worker_processes_too(tmp_path: Path, name: str, code_of: int) -> None:
    """Every worker sleeps for minutes; only an end by force lets the command return within the time limit."""
    for number in range(4):
        (tmp_path / f"m{number}.py").write_text(BAD)
    start = _with_patch("Linter.check = lambda self, source: time.sleep(600)")
    code = f"""if True:
        import os, signal, sys, threading
        from devlint import pool
        from devlint.cli import main

        pool._START = {start!r}
        signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs the tests in the background may ignore it
        threading.Timer(2, os.kill, (os.getpid(), signal.{name})).start()
        sys.exit(main([".", "-j", "2"]))
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (code_of, b"", b"interrupted\n")


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\n" + 'x = torch.zeros(3).to("cuda")\n' * 300)
    command = [sys.executable, "-m", "devlint", "a.py", *ONE_RULE]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait(60) == 1
    assert errors == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that takes nothing")
def test_output_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BAD)
    command = [sys.executable, "-m", "devlint", "a.py"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert (done.returncode, done.stderr) == (
        2,
        b"error: cannot write to standard output: No space left on device\n",
    )


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    ("command", "code", "errors"),
    [
        ("a.py >&-", 1, b""),
        ("a.py 2>&-", 1, b""),
        ("- <&-", 2, b"error: standard input is closed\n"),
    ],
)
def test_closed_streams_end_no_run(tmp_path: Path, command: str, code: int, errors: bytes) -> None:
    (tmp_path / "a.py").write_text(BAD)
    shell = f"exec '{sys.executable}' -m devlint {command}"
    done = subprocess.run(["sh", "-c", shell], cwd=tmp_path, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (code, errors)


def test_a_narrow_terminal_gets_replacements(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text('import torch\ns = "重要"; x = torch.zeros(3).to("cuda")\n', encoding="utf-8")
    done = in_process("a.py", cwd=tmp_path, env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert (done.returncode, done.stderr) == (1, b"")
    assert b's = "??"; x = torch' in done.stdout


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["--version"], {"argparse", "dataclasses", "json", "libcst", "rich", "torch", "devlint.model"}),
        (["rule", "DEV900"], {"libcst", "rich", "torch", "concurrent.futures", "devlint.engine"}),
        (["clean.py"], {"libcst", "rich", "torch", "concurrent.futures", "difflib"}),
        (["bad.py"], {"rich", "torch", "concurrent.futures"}),
    ],
)
def test_a_command_imports_only_what_it_needs(tmp_path: Path, arguments: list[str], unwanted: set[str]) -> None:
    (tmp_path / "clean.py").write_text(CLEAN)
    (tmp_path / "bad.py").write_text(BAD)
    code = (
        "import sys\n"
        "from devlint.cli import main\n"
        f"main({arguments!r})\n"
        "print('\\n'.join(sorted(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    loaded = set(done.stderr.split())
    assert "devlint.cli" in loaded
    assert loaded & unwanted == set()

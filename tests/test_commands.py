"""The commands about devlint itself: config, init, clean, completion; exit codes; and what each command imports."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from devlint import shipped
from devlint.cli import COMMANDS, main
from devlint.commands.completion import PARSERS, options_of
from devlint.commands.page import laid_out
from devlint.config import SCHEMA, load, toml_reader
from devlint.terminal import PLAIN, Style

CLEAN = "import torch\n\nx = torch.zeros(3)\n"
BAD = 'import torch\n\nx = torch.zeros(3).to("cuda")\n'


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    return code, out.getvalue(), err.getvalue()


# config


def test_every_setting_is_listed_with_its_documentation() -> None:
    _, out, _ = run("config")
    assert [line.split()[0] for line in out.splitlines()] == [setting.key for setting in SCHEMA]


@pytest.mark.parametrize("setting", SCHEMA, ids=lambda setting: setting.key)
def test_the_example_of_a_setting_is_valid(setting: object) -> None:
    key = getattr(setting, "key")  # noqa: B009
    _, out, _ = run("config", key)
    example = re.search(r"^example: (.*)$", out, re.MULTILINE)
    assert example is not None
    text = example[1]
    if key == "extend":
        Path("base.toml").write_text("")
        text = 'extend = "base.toml"'
    Path("devlint.toml").write_text(text + "\n")
    load(Path("devlint.toml"))


def test_a_misspelt_key_gets_the_nearest_one() -> None:
    code, _, err = run("config", "selct")
    assert code == 2
    assert "unknown key `selct`; did you mean `select`?" in err


def test_settings_are_listed_as_json() -> None:
    _, out, _ = run("config", "--output-format", "json", "cache-dir")
    (row,) = json.loads(out)
    assert (row["key"], row["default"]) == ("cache-dir", ".devlint_cache")


def test_the_schema_knows_every_setting_and_nothing_else() -> None:
    _, out, _ = run("config", "--schema")
    schema = json.loads(out)
    assert set(schema["properties"]) == {setting.key for setting in SCHEMA}
    assert schema["additionalProperties"] is False
    assert schema["properties"]["torch-version"]["type"] == "string"
    assert schema["properties"]["min-severity"]["enum"] == ["error", "warning", "info"]
    assert all(row["description"] for row in schema["properties"].values())


def test_the_schema_takes_every_example_and_default_and_refuses_what_devlint_refuses() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(run("config", "--schema")[1])
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    for row in json.loads(run("config", "--output-format", "json")[1]):
        table = toml_reader().loads(f"{row['key']} = {row['example']}")
        assert validator.is_valid(table), row
        assert row["default"] is None or validator.is_valid({row["key"]: row["default"]}), row
    wrong_tables: list[dict[str, object]] = [
        {"selct": []},
        {"select": "DEV1"},
        {"torch-version": "two"},
        {"min-severity": "low"},
        {"functions": {"f": 1}},
    ]
    for wrong in wrong_tables:
        assert not validator.is_valid(wrong), wrong


# init


def test_a_project_gets_a_table_in_its_pyproject() -> None:
    Path("pyproject.toml").write_bytes(b'[project]\nname = "x"\n')
    assert run("init")[0] == 0
    assert Path("pyproject.toml").read_bytes().startswith(b'[project]\nname = "x"\n\n[tool.devlint]\n')
    assert load(Path("pyproject.toml")).torch_version == (2, 7)


def test_line_endings_of_a_pyproject_are_kept() -> None:
    Path("pyproject.toml").write_bytes(b'[project]\r\nname = "x"')
    assert run("init")[0] == 0
    raw = Path("pyproject.toml").read_bytes()
    assert raw.count(b"\n") == raw.count(b"\r\n")
    assert load(Path("pyproject.toml")).torch_version == (2, 7)


def test_a_project_without_pyproject_gets_a_file() -> None:
    assert run("init")[0] == 0
    assert load(Path("devlint.toml")).torch_version == (2, 7)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("devlint.toml", ""),
        (".devlint.toml", ""),
        ("pyproject.toml", "[tool.devlint]\n"),
        ("pyproject.toml", "[project\n"),
    ],
)
def test_what_is_there_is_left_alone(name: str, text: str) -> None:
    Path(name).write_text(text)
    assert run("init")[0] == 2
    assert Path(name).read_text() == text


def test_init_leaves_the_torch_version_to_the_packaging_files() -> None:
    Path("pyproject.toml").write_text('[project]\nname = "x"\ndependencies = ["torch>=2.4"]\n')
    assert run("init")[0] == 0
    assert '# torch-version = "2.4"' in Path("pyproject.toml").read_text()
    assert load(Path("pyproject.toml")).torch_version is None


def test_init_writes_the_devices_that_the_classifiers_name() -> None:
    Path("pyproject.toml").write_text('[project]\nname = "x"\nclassifiers = ["Environment :: GPU :: NVIDIA CUDA"]\n')
    assert run("init")[0] == 0
    assert load(Path("pyproject.toml")).targets == ("cuda",)


def test_init_excludes_the_submodules_of_git() -> None:
    Path(".gitmodules").write_text('[submodule "a"]\n\tpath = third_party/a\n\turl = ../a\n')
    assert run("init")[0] == 0
    assert load(Path("devlint.toml")).extend_exclude == ("third_party/a",)


@pytest.mark.parametrize(
    ("written", "read"),
    [('"any"', ("any",)), ('["any"]', ("any",)), ('["cuda", "mps"]', ("cuda", "mps")), ("[]", ())],
)
def test_targets_are_a_word_or_a_list(written: str, read: tuple[str, ...]) -> None:
    Path("devlint.toml").write_text(f"targets = {written}\n")
    assert load(Path("devlint.toml")).targets == read


@pytest.mark.parametrize("written", ['"cuda:0"', "1", '["CUDA"]', "[1]"])
def test_targets_that_are_no_types_of_devices(written: str) -> None:
    Path("devlint.toml").write_text(f"targets = {written}\n")
    code, _, err = run("check")
    assert code == 2
    assert 'expected "any" or a list of types of devices' in err


@pytest.mark.parametrize(
    ("ruff", "hint"),
    [("[tool.ruff]\n", True), ('[tool.ruff.lint]\nexternal = ["DEV"]\n', False), ("[project]\n", False)],
)
def test_users_of_ruff_are_told_of_external_codes(ruff: str, hint: bool) -> None:
    Path("pyproject.toml").write_text(ruff)
    assert ("external" in run("init")[1]) is hint


# completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_takes_the_script(shell: str) -> None:
    code, out, _ = run("completion", shell)
    assert code == 0
    assert all(command in out for command in COMMANDS)
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    Path("script").write_text(out)
    subprocess.run([shell, "-n", "script"], check=True, timeout=60, capture_output=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["devlint", "comp"], {"completion"}),
        (["devlint", "check", "--min-s"], {"--min-severity"}),
        (["devlint", "--min-s"], {"--min-severity"}),
        (["devlint", "check", "--min-severity", "w"], {"warning"}),
        (["devlint", "completion", "z"], {"zsh"}),
        (["devlint", "check", "src"], {"src_of_mine.py"}),
    ],
)
def test_bash_completes_commands_options_values_and_files(words: list[str], expected: set[str]) -> None:
    Path("script").write_text(run("completion", "bash")[1])
    Path("src_of_mine.py").write_text("")
    quoted = " ".join(f'"{word}"' for word in words)
    code = f'. ./script; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _devlint; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert set(done.stdout.split()) == expected


def test_the_commands_with_parsers_are_commands() -> None:
    assert set(PARSERS) <= set(COMMANDS)
    assert any("--select" in option.words for option in options_of("check"))


# rule


def test_a_rule_is_laid_out_on_a_terminal() -> None:
    import pty

    main_side, terminal = pty.openpty()
    done = subprocess.Popen(
        [sys.executable, "-m", "devlint", "rule", "DEV900"], stdout=terminal, env={**os.environ, "TERM": "xterm"}
    )
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # the other side is closed
        while part := os.read(main_side, 65536):
            shown += part
    os.close(main_side)
    assert done.wait(60) == 0
    assert b"\x1b[" in shown and b"## What it flags" not in shown and b"What it flags" in shown


def page(text: str, width: int = 40) -> str:
    return laid_out(text, width, PLAIN)


def test_a_page_wraps_prose_and_joins_its_rows() -> None:
    assert page("one two three\nfour five six seven eight nine\n\nten") == (
        "one two three four five six seven eight\nnine\n\nten"
    )


def test_a_page_keeps_code_as_it_is() -> None:
    code = "    x = torch.zeros(3, device=device, dtype=torch.float32)\n\n\n    y = x"
    assert page(f"Example\n\n{code}\n") == f"Example\n\n{code}"


def test_a_page_begins_the_rows_of_an_item_below_its_text() -> None:
    assert page("* `a`: one two three four five six seven eight\n  nine\n* `b`: ten") == (
        "* a: one two three four five six seven\n  eight nine\n* b: ten"
    )


def test_a_page_has_headings_without_marks_and_never_breaks_a_name() -> None:
    assert page("## What `x` is\nIt is said by `torch.zeros(3, device=d)` and by others", 30) == (
        "What x is\nIt is said by\ntorch.zeros(3, device=d) and\nby others"
    )


def test_a_page_colours_headings_names_and_code() -> None:
    shown = laid_out("# A\nuse `b`\n\n    c = 1\n", 40, Style(color=True))
    assert shown == "\x1b[1mA\x1b[0m\nuse \x1b[1;36mb\x1b[0m\n\n\x1b[1;34m    c = 1\x1b[0m"


# Exit codes


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("check clean.py", 0),
        ("check bad.py", 1),
        ("check broken.py", 1),  # a file that is not read is a finding
        ("check no_torch_broken.py", 1),
        ("check missing.py", 2),
        ("check missing.py bad.py", 2),
        ("check --no-such-option", 2),
        ("check --select NOSUCH clean.py", 2),
        ("check --jobs many clean.py", 2),
        ("check --config nosuch.toml clean.py", 2),
        ("check --config zzz=1 clean.py", 2),
        ("check bad.py --exit-zero", 0),
        ("check missing.py --exit-zero", 2),
        ("check bad.py --diff", 1),
        ("check clean.py --diff", 0),
        ("check fixable.py --fix", 0),
        ("check fixable.py --fix --exit-non-zero-on-fix", 1),
        ("check broken.py --fix", 1),
        ("check broken.py --fix-only", 1),
        ("check bad.py --min-severity error", 0),
        ("check empty", 0),
        ("check --show-files", 0),
        ("check --show-settings", 0),
        ("check --help", 0),
        ("rule DEV501", 0),
        ("rule NOSUCH", 2),
        ("rule", 2),
        ("config", 0),
        ("config nosuch", 2),
        ("config --schema", 0),
        ("init nosuch", 2),
        ("clean", 0),
        ("completion bash", 0),
        ("completion tcsh", 2),
        ("version", 0),
        ("--version", 0),
        ("help", 0),
        ("help check", 0),
        ("chek", 2),
    ],
)
def test_exit_codes(command: str, code: int) -> None:
    Path("devlint.toml").write_text('select = ["DEV501"]\n')
    Path("clean.py").write_text(CLEAN)
    Path("bad.py").write_text(BAD)
    Path("fixable.py").write_text(BAD)
    Path("broken.py").write_text("import torch\nx = torch.zeros(\n")
    Path("no_torch_broken.py").write_text("x = (\n")
    Path("empty").mkdir()
    for cache in ((), ("--no-cache",)) if command.startswith("check") else ((),):
        assert run(*command.split(), *cache)[0] == code, cache
        Path("fixable.py").write_text(BAD)


# Imports

MODULES = """
import sys
from devlint.cli import main
main(sys.argv[1:])
print("\\n" + " ".join(sorted(sys.modules)))
"""
NEVER = {"torch", "numpy", "libcst.matchers", "libcst.codemod", "importlib.metadata", "asyncio", "multiprocessing"}
LINTING = {"devlint.engine", "devlint.facts", shipped.CHECKOUT, shipped.INSTALLED, "libcst"}


@pytest.mark.parametrize(
    ("command", "absent"),
    [
        ("--version", {"argparse", "dataclasses", "devlint.config", "devlint.report", *LINTING}),
        ("help", {"argparse", "dataclasses", "devlint.config", "devlint.report", *LINTING}),
        ("check", {"tomllib", "sqlite3", "devlint.pool", "libcst", "rich", "subprocess"}),
        ("check --help", {"devlint.cache", "sqlite3", "rich", *LINTING}),
        ("config", {"sqlite3", "rich", *LINTING}),
        ("clean", {"rich", *LINTING}),
        ("completion bash", {"rich", *LINTING}),
        ("rule DEV501", {"libcst", "rich", "sqlite3"}),
    ],
)
def test_a_command_imports_only_what_it_needs(command: str, absent: set[str]) -> None:
    Path("a.py").write_text("import torch\n\nx = torch.zeros(3)\n")
    extra = ["--no-cache", "a.py"] if command == "check" else []
    done = subprocess.run(
        [sys.executable, "-c", MODULES, *command.split(), *extra],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not loaded & (absent | NEVER)

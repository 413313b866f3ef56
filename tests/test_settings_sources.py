"""Settings from several places: extended files, `--config`, the environment, and what outranks what."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from pathlib import Path

import pytest

import devlint
from devlint.cli import main
from devlint.config import Config, load
from devlint.errors import UsageError
from devlint.rulebook import Rulebook
from devlint.versions import satisfies

BAD = 'import torch\n\nx = torch.zeros(3).to("cuda")\n'  # DEV101 or DEV501, as the settings have it

Show = Callable[..., dict[str, str]]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    return code, out.getvalue(), err.getvalue()


def shown(*options: str) -> dict[str, str]:
    """The settings in force, as `--show-settings` writes them."""
    code, out, err = run("check", "--show-settings", *options)
    assert code == 0, err
    rows = (line.partition(" = ") for line in out.splitlines() if " = " in line and not line.startswith("#"))
    return {key: value for key, _, value in rows}


def codes(config: Config) -> set[str]:
    return set(Rulebook().settings(config, str(config.root / "a.py")).select)


# extend


def test_an_extending_file_is_silent_about_what_the_other_one_says() -> None:
    Path("base.toml").write_text('torch-version = "2.9"\nunsafe-fixes = true\n')
    Path("devlint.toml").write_text('extend = "base.toml"\nunsafe-fixes = false\n')
    config = load(Path("devlint.toml"))
    assert (config.torch_version, config.unsafe_fixes) == ((2, 9), False)


def test_ignores_of_both_files_add_up() -> None:
    Path("base.toml").write_text('ignore = ["DEV101"]\n')
    Path("devlint.toml").write_text('extend = "base.toml"\nignore = ["DEV103"]\n')
    assert not {"DEV101", "DEV103"} & codes(load(Path("devlint.toml")))


def test_an_own_select_starts_afresh() -> None:
    Path("base.toml").write_text('ignore = ["DEV101"]\n')
    Path("devlint.toml").write_text('extend = "base.toml"\nselect = ["DEV101"]\n')
    assert "DEV101" in codes(load(Path("devlint.toml")))


def test_excludes_of_both_files_add_up() -> None:
    Path("base.toml").write_text('extend-exclude = ["a"]\n')
    Path("devlint.toml").write_text('extend = "base.toml"\nextend-exclude = ["b"]\n')
    assert load(Path("devlint.toml")).extend_exclude == ("a", "b")


def test_extending_goes_over_several_files_and_into_pyproject() -> None:
    Path("inner").mkdir()
    Path("pyproject.toml").write_text('[tool.devlint]\ntorch-version = "2.8"\n')
    Path("middle.toml").write_text('extend = "pyproject.toml"\nassume-accelerator = false\n')
    Path("inner/devlint.toml").write_text('extend = "../middle.toml"\n')
    config = load(Path("inner/devlint.toml"))
    assert (config.torch_version, config.assume_accelerator) == ((2, 8), False)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (None, r"devlint\.toml:1: `extend`: no such file: .*base\.toml"),
        ('extend = "devlint.toml"\n', r"base\.toml:1: `extend`: .*devlint\.toml extends this file in turn"),
        ("zzz = 1\n", r"base\.toml:1: unknown key `zzz`"),
    ],
)
def test_a_bad_extended_file_is_named(other: str | None, message: str) -> None:
    if other is not None:
        Path("base.toml").write_text(other)
    Path("devlint.toml").write_text('extend = "base.toml"\n')
    with pytest.raises(UsageError, match=message):
        load(Path("devlint.toml").absolute())


# --config "key = value"


def test_a_setting_on_the_command_line_outranks_the_file() -> None:
    Path("devlint.toml").write_text('torch-version = "2.8"\nassume-accelerator = false\n')
    settings = shown("--config", 'torch-version = "2.9"')
    assert (settings["torch-version"], settings["assume-accelerator"]) == ('"2.9"', "false")


def test_a_file_and_settings_go_together() -> None:
    Path("other.toml").write_text("assume-accelerator = false\n")
    settings = shown("--config", "other.toml", "--config", 'torch-version = "2.9"')
    assert (settings["torch-version"], settings["assume-accelerator"]) == ('"2.9"', "false")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("selct = []", "--config: unknown key `selct`; did you mean `select`?"),
        ("select = 3", "--config: `select`: expected a list of strings, not 3"),
        ("select = [", "is neither a file nor a TOML setting"),
        ("missing.toml", "missing.toml: cannot read configuration"),
    ],
)
def test_a_bad_setting_on_the_command_line_is_explained(option: str, message: str) -> None:
    code, _, err = run("check", "--config", option)
    assert code == 2
    assert message in err


# Environment


@pytest.mark.parametrize(
    ("name", "value", "key", "expected"),
    [
        ("DEVLINT_TORCH_VERSION", "2.9", "torch-version", '"2.9"'),
        ("DEVLINT_ASSUME_ACCELERATOR", "no", "assume-accelerator", "false"),
        ("DEVLINT_PLUGINS", "", "plugins", "[]"),
        ("DEVLINT_SEVERITY", '{ DEV2 = "info" }', "severity", '{ "DEV2" = "info" }'),
    ],
)
def test_a_variable_stands_for_a_setting(
    name: str, value: str, key: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert shown()[key] == expected


def test_a_variable_stands_for_an_option_and_the_option_outranks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.py").write_text(BAD)
    monkeypatch.setenv("DEVLINT_OUTPUT_FORMAT", "json")
    monkeypatch.setenv("DEVLINT_SELECT", "DEV101,DEV501")
    monkeypatch.setenv("DEVLINT_NO_CACHE", "1")
    assert run("check")[1].startswith("[")
    assert run("check", "--output-format", "concise")[1].startswith("a.py:3:")
    assert not Path(".devlint_cache").exists()


def test_a_variable_outranks_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("devlint.toml").write_text('torch-version = "2.8"\n')
    monkeypatch.setenv("DEVLINT_TORCH_VERSION", "2.9")
    assert shown()["torch-version"] == '"2.9"'


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("DEVLINT_NO_CACHE", "maybe", "DEVLINT_NO_CACHE: expected true or false, not `maybe`"),
        ("DEVLINT_JOBS", "many", "DEVLINT_JOBS: expected a number"),
        ("DEVLINT_MIN_SEVERITY", "eror", "DEVLINT_MIN_SEVERITY: expected one of error, warning, info"),
        ("DEVLINT_TORCH_VERSION", "new", "DEVLINT_TORCH_VERSION: expected a version"),
        ("DEVLINT_SEVERITY", "{", "DEVLINT_SEVERITY: not a TOML table"),
    ],
)
def test_a_bad_variable_is_named(name: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    code, _, err = run("check")
    assert code == 2
    assert message in err


# required-version


def test_another_version_than_the_required_one_is_an_error() -> None:
    Path("devlint.toml").write_text('\nrequired-version = ">=99"\n')
    code, _, err = run("check")
    assert code == 2
    assert f"devlint.toml:2: devlint >=99 is required, and this is {devlint.__version__}" in err


@pytest.mark.parametrize(
    ("version", "required", "expected"),
    [
        ("0.2.0", ">=0.2", True),
        ("0.2.0", ">=0.2,<0.3", True),
        ("0.3.0", ">=0.2,<0.3", False),
        ("0.2.1", "==0.2.*", True),
        ("0.2.1", "0.2.1", True),
        ("0.2.1", "!=0.2.1", False),
        ("0.2.9", "~=0.2.3", True),
        ("0.3.0", "~=0.2.3", False),
        ("1.4", "~=1.3", True),
        ("0.10.0", ">0.9", True),
        ("0.2.0rc1", ">=0.2", True),
        ("1.0", "==1.0.0", True),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, required: str, expected: bool) -> None:
    assert satisfies(version, required) is expected


@pytest.mark.parametrize("required", ["", "latest", ">=", ">=1.*", "1..2", ">=1;<2"])
def test_a_requirement_that_cannot_be_read_is_an_error(required: str) -> None:
    with pytest.raises(ValueError, match="expected versions"):
        satisfies("1.0", required)

"""Configuration: what the files may say, which of them is in force, and how a mistake is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from devlint.config import SCHEMA, Config, Resolver, load, to_toml
from devlint.errors import UsageError


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def message_of(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        load(path)
    return str(caught.value)


def test_every_setting_is_read(tmp_path: Path) -> None:
    config = load(
        write(
            tmp_path / "devlint.toml",
            """
            select = ["DEV1"]
            ignore = ["DEV102"]
            extend-select = ["DEV501"]
            exclude = ["old"]
            extend-exclude = ["gen/*.py"]
            force-exclude = true
            per-file-ignores = { "tests/*" = ["DEV2"] }
            unsafe-fixes = true
            torch-version = "2.4"
            assume-accelerator = false
            plugins = ["more"]
            output-format = "concise"
            """,
        )
    )
    assert config == Config(
        path=tmp_path / "devlint.toml",
        root=tmp_path,
        select=("DEV1",),
        ignore=("DEV102",),
        extend_select=("DEV501",),
        exclude=("old",),
        extend_exclude=("gen/*.py",),
        force_exclude=True,
        per_file_ignores=(("tests/*", ("DEV2",)),),
        unsafe_fixes=True,
        torch_version=(2, 4),
        assume_accelerator=False,
        plugins=("more",),
        output_format="concise",
    )


def test_settings_of_a_pyproject_stand_in_its_own_table(tmp_path: Path) -> None:
    config = load(write(tmp_path / "pyproject.toml", '[project]\nname = "x"\n[tool.devlint]\nignore = ["DEV1"]\n'))
    assert config.ignore == ("DEV1",)


def test_a_table_per_pattern_can_be_written_out(tmp_path: Path) -> None:
    config = load(write(tmp_path / "pyproject.toml", '[tool.devlint.per-file-ignores]\n"a.py" = ["DEV1", "DEV2"]\n'))
    assert config.per_file_ignores == (("a.py", ("DEV1", "DEV2")),)


def test_an_unknown_key_is_named_with_file_line_and_nearest_key(tmp_path: Path) -> None:
    path = write(tmp_path / "devlint.toml", 'ignore = []\nselct = ["DEV1"]\n')
    assert message_of(path) == f"{path}:2: unknown key `selct`; did you mean `select`?"


def test_an_unknown_key_in_a_pyproject_is_not_confused_with_another_tools_key(tmp_path: Path) -> None:
    path = write(tmp_path / "pyproject.toml", "[tool.other]\nignroe = []\n\n[tool.devlint]\nignroe = []\n")
    assert message_of(path) == f"{path}:5: unknown key `ignroe`; did you mean `ignore`?"


def test_an_unknown_key_that_resembles_none_gets_the_list(tmp_path: Path) -> None:
    path = write(tmp_path / "devlint.toml", "zzz = 1\n")
    assert message_of(path).startswith(
        f"{path}:1: unknown key `zzz`; valid keys: assume-accelerator, baseline, cache-dir, "
    )


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('select = "DEV1"', '`select`: expected a list of strings, not "DEV1"'),
        ("ignore = [1]", "`ignore`: expected a list of strings, not [1]"),
        ("force-exclude = 1", "`force-exclude`: expected true or false, not 1"),
        ('unsafe-fixes = "yes"', '`unsafe-fixes`: expected true or false, not "yes"'),
        ('torch-version = "two"', '`torch-version`: expected a version such as "2.7", not "two"'),
        ("torch-version = 2.7", '`torch-version`: expected a version such as "2.7", not 2.7'),
        (
            'output-format = "ful"',
            "`output-format`: expected one of full, concise, grouped, json, json-lines, github, gitlab, junit, rdjson, "
            'sarif, azure, pylint, not "ful"; did you mean `full`?',
        ),
        ("per-file-ignores = []", "`per-file-ignores`: expected a table of pattern = [rules], not []"),
        (
            'per-file-ignores = { "a.py" = "DEV1" }',
            '`per-file-ignores`: "a.py": expected a list of strings, not "DEV1"',
        ),
    ],
)
def test_a_bad_value_is_named_with_what_is_expected(tmp_path: Path, line: str, complaint: str) -> None:
    path = write(tmp_path / "devlint.toml", line + "\n")
    assert message_of(path) == f"{path}:1: {complaint}"


def test_a_patch_version_is_accepted_and_dropped(tmp_path: Path) -> None:
    assert load(write(tmp_path / "devlint.toml", 'torch-version = "2.13.1"\n')).torch_version == (2, 13)


def test_broken_toml_is_named_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path / "devlint.toml", "ignore = []\nselect = oops\n")
    assert message_of(path) == f"{path}: not valid TOML: Invalid value (at line 2, column 10)"


def test_bytes_that_are_not_text_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "devlint.toml"
    path.write_bytes(b'select = ["\xff"]\n')
    assert message_of(path).startswith(f"{path}: not valid TOML: ")


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    assert (
        message_of(tmp_path / "no.toml")
        == f"{tmp_path / 'no.toml'}: cannot read configuration: No such file or directory"
    )


def test_a_pyproject_without_our_table_cannot_be_given(tmp_path: Path) -> None:
    path = write(tmp_path / "pyproject.toml", "[tool.other]\n")
    assert message_of(path) == f"{path}: no [tool.devlint] table"


def test_the_nearest_file_wins_and_files_are_not_merged(tmp_path: Path) -> None:
    write(tmp_path / "devlint.toml", 'ignore = ["DEV1"]\noutput-format = "json"\n')
    write(tmp_path / "inner" / "devlint.toml", 'ignore = ["DEV2"]\n')
    resolver = Resolver()
    assert resolver.for_directory(str(tmp_path)).ignore == ("DEV1",)
    inner = resolver.for_directory(str(tmp_path / "inner" / "deeper"))
    assert (inner.ignore, inner.output_format, inner.root) == (("DEV2",), "full", tmp_path / "inner")


def test_a_pyproject_without_our_table_leaves_the_outer_file_in_force(tmp_path: Path) -> None:
    write(tmp_path / "devlint.toml", 'ignore = ["DEV1"]\n')
    write(tmp_path / "inner" / "pyproject.toml", '[project]\nname = "devlint-user"\n')
    assert Resolver().for_directory(str(tmp_path / "inner")).ignore == ("DEV1",)


@pytest.mark.parametrize(
    ("names", "winner"),
    [
        (("devlint.toml", ".devlint.toml"), ".devlint.toml"),
        (("pyproject.toml", "devlint.toml"), "devlint.toml"),
    ],
)
def test_of_several_files_in_one_directory_one_wins(tmp_path: Path, names: tuple[str, ...], winner: str) -> None:
    for name in names:
        write(tmp_path / name, "[tool.devlint]\n" if name == "pyproject.toml" else "ignore = []\n")
    assert Resolver().for_directory(str(tmp_path)).path == tmp_path / winner


def test_isolated_reads_no_file(tmp_path: Path) -> None:
    write(tmp_path / "devlint.toml", "nonsense = 1\n")
    assert Resolver(isolated=True).for_directory(str(tmp_path)).path is None


def test_a_given_file_is_in_force_everywhere_and_relative_to_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = write(tmp_path / "elsewhere" / "ci.toml", 'ignore = ["DEV1"]\n')
    write(tmp_path / "work" / "devlint.toml", 'ignore = ["DEV2"]\n')
    monkeypatch.chdir(tmp_path / "work")
    config = Resolver(given).for_directory(str(tmp_path / "work"))
    assert (config.ignore, config.root) == (("DEV1",), tmp_path / "work")


def test_what_show_settings_prints_reads_back_as_the_same_settings(tmp_path: Path) -> None:
    text = """
        select = ["DEV1", 'a"b\\c']
        torch-version = "2.4"
        unsafe-fixes = true
        output-format = "json"
        [per-file-ignores]
        "x/*.py" = ["DEV1"]
        """
    config = load(write(tmp_path / "devlint.toml", text))
    values = [(each, getattr(config, each.attribute)) for each in SCHEMA]
    lines = [f"{each.key} = {to_toml(each, value)}" for each, value in values if value is not None]
    again = load(write(tmp_path / "again" / "devlint.toml", "\n".join(lines)))
    assert [getattr(again, each.attribute) for each in SCHEMA] == [getattr(config, each.attribute) for each in SCHEMA]


def test_every_setting_is_documented() -> None:
    assert all(setting.doc and setting.kind.text for setting in SCHEMA)

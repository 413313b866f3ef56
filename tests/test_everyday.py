"""What a person meets every day: the counts of the last lines, `--quiet`, what misspelt words are told, `--help`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devlint import knowledge
from devlint.dev import site
from devlint.names import nearest
from devlint.runtime.doctor import Check, as_text
from tests.conftest import Run

BAD = 'import torch\n\nx = torch.zeros(3).to("cuda")\n'
FIXED = 'import torch\n\nx = torch.zeros(3, device="cuda")\n'
UNSAFE = 'import torch\n\nx = torch.zeros((2, 3), dtype=torch.int8).double().to("cuda")\n'
KEPT = 'import torch\n\nx = torch.zeros(3).to("cuda")  # devlint: ignore[DEV501]\n'
ASSUMED = "import torch\n\n\ndef f(x: torch.Tensor) -> torch.Tensor:\n    return x + torch.ones(3)\n"
SURE = 'import torch\n\ny = torch.ones(3, device="cuda") + torch.ones(3)\n'
Cli = Callable[..., Any]


def last(text: str) -> str:
    return text.splitlines()[-1]


# -- counts --------------------------------------------------------------------------------------------------------------


def test_the_files_of_what_was_fixed_and_of_what_is_left(cli: Cli) -> None:
    for name, text in (("a", BAD), ("b", BAD), ("c", 'import torch\n\nx = torch.zeros(3).to(\n    "cuda"  # why\n)\n')):
        Path(f"{name}.py").write_text(text)
    done = cli(".", "--fix")
    assert "Found 3 problems in 3 files (2 fixed, 1 left)." in done.out


def test_the_files_that_were_changed_and_not_those_that_were_read(cli: Cli) -> None:
    Path("a.py").write_text(BAD)
    for name in "bcd":
        Path(f"{name}.py").write_text(FIXED)
    assert cli(".", "--fix-only").out == "Fixed 1 problem in 1 file.\n"


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ((ASSUMED,), "It assumes that"),
        ((ASSUMED, ASSUMED), "All of them assume that"),
        ((ASSUMED, SURE), "1 of them assumes that"),
    ],
)
def test_what_rests_on_an_assumption(cli: Cli, texts: tuple[str, ...], said: str) -> None:
    for number, text in enumerate(texts):
        Path(f"m{number}.py").write_text(text)
    out = cli(".", "--select", "DEV101,DEV102").out
    (line,) = [line for line in out.splitlines() if "`assume-accelerator`" in line]
    assert line.startswith(said)
    assert line.endswith("; the other does not." if len(set(texts)) == 2 else "(`assume-accelerator`).")


# -- quiet ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["-q", "--quiet"])
def test_quiet_prints_the_problems_alone(cli: Cli, flag: str) -> None:
    Path("a.py").write_text(BAD)
    done = cli("a.py", flag)
    assert (done.code, done.err) == (1, "")
    assert [line.partition(" ")[0] for line in done.out.splitlines()] == ["a.py:3:5:"]


def test_quiet_prints_nothing_of_a_clean_file(cli: Cli) -> None:
    Path("a.py").write_text(FIXED)
    assert cli("a.py", "-q") == (0, "", "")


@pytest.mark.parametrize("form", ["full", "concise", "grouped"])
def test_quiet_in_every_format_for_people(cli: Cli, form: str) -> None:
    Path("a.py").write_text(BAD)
    assert "Found" not in cli("a.py", "-q", "--output-format", form).out


def test_quiet_gives_no_warnings_but_errors(cli: Cli) -> None:
    Path("empty").mkdir()
    assert cli("empty", "-q") == (0, "", "")
    done = cli("missing.py", "-q")
    assert done.code == 2
    assert "missing.py" in done.err


def test_quiet_and_verbose_are_not_both_meant(cli: Cli) -> None:
    assert cli("-q", "-v").code == 2


# -- suggestions ----------------------------------------------------------------------------------------------------------

CODES = ["DEV101", "DEV102", "DEV501", "DEV902", "create-then-move"]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("DEV999", None), ("DEV777", None), ("XYZ12", None), ("DEV112", "DEV102"), ("dev902", "DEV902"),
        ("DEV015", None), ("DEV920", "DEV902"), ("DEV510", "DEV501"), ("create-than-move", "create-then-move"),
    ],
)  # fmt: skip
def test_a_code_is_like_another_by_one_digit_or_by_two_that_changed_places(word: str, expected: str | None) -> None:
    assert nearest(word, CODES) == expected


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        (("check", "--selct", "DEV1"), "did you mean `--select`?"),
        (("check", "--selct=DEV1"), "did you mean `--select`?"),
        (("check", "--statistic"), "did you mean `--statistics`?"),
        (("rule", "--al"), "did you mean `--all`?"),
        (("doctor", "--jsn"), "did you mean `--json`?"),
        (("run", "--devcie", "sim", "a.py"), "did you mean `--device`?"),
    ],
)
def test_a_misspelt_option_gets_the_nearest_one(run: Run, command: tuple[str, ...], hint: str) -> None:
    done = run(*command)
    assert done.code == 2
    assert hint in done.err


def test_an_option_that_is_like_none(run: Run) -> None:
    done = run("check", "--xyzzy")
    assert done.code == 2
    assert "unrecognized arguments: --xyzzy" in done.err
    assert "did you mean" not in done.err


@pytest.mark.parametrize(
    ("name", "expected"),
    [("torch.cuda.available", "torch.cuda.is_available"), ("torch.cuda.is_availble", "torch.cuda.is_available")],
)
def test_a_name_of_torch_is_suggested_and_none_of_typing(name: str, expected: str) -> None:
    found = knowledge.nearest(name)
    assert found[0] == expected
    assert {each.rpartition(".")[2] for each in found}.isdisjoint({"Callable", "Optional", "Any", "Union"})


# -- commands ------------------------------------------------------------------------------------------------------------


def test_the_help_of_the_site_builder_writes_no_pages(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        site.main(["--help"])
    assert end.value.code == 0
    assert "a folder, which is replaced" in capsys.readouterr().out


def test_the_site_builder_takes_no_option_for_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        site.main(["--verbose"])
    assert end.value.code == 2
    assert list(tmp_path.iterdir()) == []


def test_the_doctor_says_what_to_do_once() -> None:
    advice = "install a newer driver"
    checks = [Check("driver", "problem", "is too old", advice), Check("next", "problem", advice)]
    assert as_text(checks).count(advice) == 1


def test_the_doctor_keeps_advice_that_is_not_the_next_step() -> None:
    checks = [Check("card", "warning", "little memory", "close others"), Check("next", "ok", "programs find cuda")]
    assert "-> close others" in as_text(checks)


def test_the_hook_that_init_shows_needs_no_package_of_the_project(run: Run) -> None:
    out = run("init").out
    assert "language: system" in out
    assert "require_serial: true" in out

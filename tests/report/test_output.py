"""Several formats at once, reports in files, links and progress."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devlint.errors import UsageError
from devlint.progress import is_wanted, watched
from devlint.report import Output
from devlint.report.output import outputs, write_text
from devlint.terminal import Style, wants_links

Cli = Callable[..., Any]  # of conftest.py
BAD = 'import torch\n\nx = torch.zeros(3).to("cuda")\n'


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_text_on_the_screen_and_sarif_in_a_file(cli: Cli) -> None:
    Path("a.py").write_text(BAD)
    done = cli("a.py", "--output-format", "concise", "--output-format", "sarif:out.sarif")
    assert done.out.startswith("a.py:3:5: DEV501 [*] ")
    assert json.loads(Path("out.sarif").read_text())["version"] == "2.1.0"
    assert done.code == 1


def test_a_report_goes_to_the_output_file_and_nothing_to_the_screen(cli: Cli) -> None:
    Path("a.py").write_text(BAD)
    done = cli("a.py", "--output-format", "pylint", "-o", "report.txt", "--color", "always")
    assert done.out == ""
    assert Path("report.txt").read_text() == "a.py:3: [DEV501] tensor is made on the CPU, then copied to `cuda`\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--output-format json --output-format concise", "`json` and `concise` cannot both be written to one place"),
        ("--output-format json:a --output-format sarif:a", "two formats would be written to one file"),
        ("--output-format json:", "no file behind `json:`"),
        ("--output-format jsn", "unknown format `jsn`; did you mean `json`?"),
        ("--output-format json:x -o y", "every --output-format names a file of its own"),
        ("--output-format json -o no/such/directory", "no/such/directory: cannot be written: No such file"),
    ],
)
def test_wrong_usage_is_explained(cli: Cli, arguments: str, message: str) -> None:
    Path("a.py").write_text("")
    done = cli("a.py", *arguments.split())
    assert done.code == 2
    assert message in done.err


def test_the_command_line_replaces_the_format_of_the_environment(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVLINT_OUTPUT_FORMAT", "json")
    Path("a.py").write_text(BAD)
    assert cli("a.py", "--output-format", "concise").out.startswith("a.py:3:5")


def test_the_default_format_goes_to_standard_output() -> None:
    assert outputs([], None, "full") == [Output("full")]
    assert outputs([Output("json")], "x", "full") == [Output("json", "x")]


def test_a_written_file_keeps_its_mode_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "report"
    path.write_text("old")
    path.chmod(0o640)
    write_text(path, "new é")
    assert path.read_bytes() == "new é".encode()
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["report"]


def test_a_directory_as_output_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        write_text(tmp_path, "x")


def test_a_link_wraps_the_text_in_an_escape_sequence(tmp_path: Path) -> None:
    path = tmp_path / "a b.py"
    linked = Style(links=True).link("a b.py", str(path))
    assert linked == f"\x1b]8;;{path.as_uri()}\x1b\\a b.py\x1b]8;;\x1b\\"
    assert re.sub(r"\x1b\]8;;.*?\x1b\\", "", linked) == "a b.py"
    assert Style().link("a b.py", str(path)) == "a b.py"


@pytest.mark.parametrize(
    ("color", "environ", "wanted"),
    [
        (True, {}, True), (False, {}, False), (True, {"CI": "true"}, False), (True, {"PRE_COMMIT": "1"}, False),
        (True, {"TERM": "dumb"}, False),
    ],
)  # fmt: skip
def test_links_are_for_a_person_at_a_terminal(color: bool, environ: dict[str, str], wanted: bool) -> None:
    assert wants_links(color, Screen(), environ) is wanted
    assert not wants_links(color, io.StringIO(), environ)


def test_progress_shows_after_a_second_and_is_gone_whenever_a_file_is_handed_out() -> None:
    screen, now = Screen(), iter([0.0, 0.5, 1.5, 1.6, 1.7])
    seen = [screen.getvalue() for _ in watched("abcd", 4, screen, lambda: next(now))]
    assert seen[:2] == ["", ""]
    assert seen[2] == "2 of 4 files\r\x1b[2K"
    assert screen.getvalue() == "2 of 4 files\r\x1b[2K3 of 4 files\r\x1b[2K"


def test_a_short_run_shows_no_progress() -> None:
    screen = Screen()
    assert list(watched("ab", 2, screen, lambda: 0.0)) == ["a", "b"]
    assert screen.getvalue() == ""


def test_progress_is_for_a_person_at_a_terminal() -> None:
    assert is_wanted(Screen(), {})
    assert not is_wanted(Screen(), {"CI": "1"})
    assert not is_wanted(Screen(), {"PRE_COMMIT": "1"})
    assert not is_wanted(io.StringIO(), {})
    assert not is_wanted(None, {})

"""What a tree's texts can do to the terminal, and to the service that keeps a log: nothing, in any format."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from devlint.config import OUTPUT_FORMATS
from devlint.terminal import Terminal, printable, printable_lines
from tests.conftest import Run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="names of files of POSIX")

EVIL = "\x1b[31m\x1b]0;title\x07\x9b2J\u202eevil\u2066\u200f\u061c\u2028##vso[task.x]##[group]##teamcity[y] ::error ::z"
NAME = "::error file=x,line=1::pwned\n::warning::two\n##vso[task.setvariable]\x1b[2J\u202e.py"
SOURCE = f'import torch\n\n::error ::three\nx = torch.zeros(3).to("cuda")  # {EVIL}\n'
COMMANDS = re.compile(r"##\w*\[|^\s*::(?=\S)", re.MULTILINE)
STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\U000e0000-\U000e007f]")


def write_all() -> None:
    code = SOURCE.replace("::error ::three\n", "")
    Path(NAME.replace("/", "")).write_text(code)
    Path("b.py").write_text(SOURCE)
    Path("c.py").write_text(code.replace('"cuda"', f'"cuda{EVIL}"'.replace("\u2028", "")))
    Path("d.py").write_text("import torch\nx = 1\n" + code.replace("\u2028", "").replace("##", "\n##"))


def steers(text: str, own: re.Pattern[str] | None = None) -> list[str]:
    """What of a text steers, without the commands that a report is made of."""
    lines = [line for line in text.split("\n") if own is None or own.match(line) is None]
    return STEERING.findall(text) + [found for line in lines for found in COMMANDS.findall(line)]


OWN = {
    "github": re.compile(r"::(error|warning|notice) title="),
    "azure": re.compile(r"##vso\[task\.logissue [^\]]*\][^#]*$"),
}


@pytest.mark.parametrize("options", [(), ("--fix", "--show-fixes"), ("--statistics",), ("-v",), ("--show-files",)])
@pytest.mark.parametrize("form", OUTPUT_FORMATS)
def test_no_format_lets_a_tree_steer(
    run: Run, form: str, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    write_all()
    result = run("check", ".", "--no-cache", "--isolated", "--select", "DEV5,DEV9", "--output-format", form, *options)
    assert steers(result.out, OWN.get(form)) == []
    assert steers(result.err) == []
    if form in ("json", "sarif", "gitlab", "rdjson") and "--show-files" not in options:
        json.loads(result.out)
    if form == "junit" and not options:
        ElementTree.fromstring(result.out)


@pytest.mark.parametrize("form", ["full", "concise", "grouped", "pylint", "junit", "json"])
def test_no_report_in_a_file_steers(run: Run, form: str) -> None:
    write_all()
    run("check", ".", "--no-cache", "--isolated", "--select", "DEV5", "--output-format", f"{form}:../report.txt")
    assert steers(Path("../report.txt").read_text()) == []


@pytest.mark.parametrize("form", ["json", "json-lines", "sarif"])
def test_json_holds_the_text_as_it_is(run: Run, form: str) -> None:
    Path("##vso[x].py").write_text('import torch\nx = torch.zeros(3).to("cuda")\n')
    out = run("check", ".", "--no-cache", "--isolated", "--select", "DEV501", "--output-format", form).out
    assert "##vso[" not in out
    assert "##vso[x].py" in json.dumps(json.loads(out)) or "%23%23vso%5Bx%5D.py" in out


@pytest.mark.parametrize(
    "text",
    [
        '"{evil}" = 1',
        'select = ["{evil}"]',
        'extend = "{evil}"',
        'severity = {{ "{evil}" = "error" }}',
        'output-format = "{evil}"',
        'torch-version = "{evil}"',
        'per-file-ignores = {{ "{evil}" = ["{evil}"] }}',
        'plugins = ["{evil}"]',
        'required-version = "{evil}"',
        'baseline = "{evil}"',
        "x = {evil}",
        'cache-dir = "{evil}"',
        'exclude = ["{evil}"]',
    ],
)
@pytest.mark.parametrize("option", ["", "--show-settings"])
def test_no_configuration_steers(run: Run, text: str, option: str) -> None:
    evil = EVIL + "\n::error ::x\n##vso[y]"
    escaped = "".join(f"\\u{ord(char):04x}" if char < " " or char > "~" else char for char in evil)
    Path("devlint.toml").write_text(text.replace("{{", "{").replace("}}", "}").replace("{evil}", escaped))
    Path("a.py").write_text('import torch\nx = torch.zeros(3).to("cuda")\n')
    result = run("check", ".", "--no-cache", "--output-format", "full", *filter(None, [option]))
    assert steers(result.out + result.err) == []


@pytest.mark.parametrize(
    "words",
    [
        ("check", "--" + EVIL),
        ("rule", EVIL),
        ("config", EVIL),
        ("clean", EVIL),
        ("reveal", EVIL),
        ("init", EVIL),
        ("explain", EVIL),
    ],
)
def test_no_word_of_the_command_line_steers(run: Run, words: tuple[str, ...]) -> None:
    result = run(*words)
    assert result.code == 2
    assert steers(result.out + result.err) == []


def test_no_word_before_a_command_steers(run: Run) -> None:
    assert steers(run(EVIL).err) == []


def test_reveal_shows_a_line_that_steers_nothing(run: Run) -> None:
    Path("a.py").write_text("import torch\nx = torch.zeros(3)\\\n::error, (##vso[x\u202e])\n")
    Path("b.py").write_text(f"import torch\nx = torch.zeros(3)  # {EVIL}\n".replace("\u2028", ""))
    for name in ("a.py:3", "b.py:2"):
        result = run("reveal", name)
        assert steers(result.out + result.err) == []


# What is not changed


def _written(monkeypatch: pytest.MonkeyPatch, write: Callable[[Terminal], None], is_terminal: bool) -> bytes:
    class Screen(io.BytesIO):
        def isatty(self) -> bool:
            return is_terminal

    buffer = Screen()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer, encoding="utf-8", newline="\n"))
    terminal = Terminal("never")
    write(terminal)
    terminal.flush()
    return buffer.getvalue()


PATCH = b"+x = '\x1b[2J'\r\n ::error ::x\n+\xff\n"


def test_a_patch_for_a_program_keeps_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION"):
        monkeypatch.delenv(name, raising=False)
    assert _written(monkeypatch, lambda terminal: terminal.write_bytes(PATCH), False) == PATCH


def test_a_patch_on_a_terminal_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = _written(monkeypatch, lambda terminal: terminal.write_bytes(PATCH), True).decode()
    assert steers(shown) == []


def test_a_patch_in_a_log_is_text_and_in_a_file_is_not(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    Path("a.py").write_text('import torch\n\nx = torch.zeros(3).to("cuda")\n"\x1b[2J"\n')
    command = [sys.executable, "-m", "devlint", "check", ".", "--no-cache", "--diff", "--select", "DEV501"]
    logged = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout
    assert "torch.zeros" in logged and "\x1b" not in logged
    with open("../patch", "wb") as file:
        subprocess.run(command, stdout=file, check=False)
    assert b"\x1b[2J" in Path("../patch").read_bytes()


@pytest.mark.parametrize(
    "text", ["привет 你好 é 👩\u200d💻 ### heading", "a[::2] :: b", "# see [1] ## [2]", "x = y[::-1]"]
)
def test_ordinary_text_stays(text: str) -> None:
    assert printable(text) == text
    assert printable_lines(text) == text


def test_colours_and_links_of_ours_stay() -> None:
    styled = "\x1b[1;31mDEV101\x1b[0m \x1b]8;;file:///a.py\x1b\\a.py\x1b]8;;\x1b\\"
    assert printable_lines(styled, styled=True) == styled
    assert "\x1b" not in printable_lines(styled)
    assert printable_lines("\x1b[2J\x1b]0;x\x07", styled=True) == "\ufffd[2J\ufffd]0;x\ufffd"


def test_columns_stay() -> None:
    assert len(printable(EVIL)) == len(EVIL)

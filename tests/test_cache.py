"""The cache: what it answers, what it does not, and what happens to one that is damaged."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devlint import cache, fingerprint, shipped, worker
from devlint.cache import DIRECTORY
from devlint.cli import main
from devlint.codec import dump, load
from devlint.model import (
    Diagnostic,
    FileResult,
    Position,
    Related,
    Safety,
    Severity,
    Span,
    Statistics,
    TextEdit,
    TextFix,
)

CLEAN = "import torch\n\nx = torch.zeros(3)\n"
BAD = 'import torch\n\nx = torch.zeros(3).to("cuda")\n'
FIXED = 'import torch\n\nx = torch.zeros(3, device="cuda")\n'

Check = Callable[..., tuple[int, str]]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Runs `devlint check` in an empty directory; gives the exit code and standard output."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "devlint.toml").write_text('select = ["DEV101", "DEV501"]\n')

    def run(*arguments: str) -> tuple[int, str]:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            code = main(["check", *arguments])
        return code, out.getvalue()

    return run


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that were really checked, in order."""
    names: list[str] = []
    really = worker.run_task

    def run_task(task: worker.Task) -> worker.Outcome:
        names.append(task.name)
        return really(task)

    monkeypatch.setattr("devlint.worker.run_task", run_task)
    return names


def database(folder: str = DIRECTORY) -> Path:
    """The database in the directory of a cache."""
    (found,) = Path(folder).glob("devlint-results-*.sqlite3")
    return found


def write(name: str, text: str, age: float = 60) -> Path:
    """A file of the current directory that was last changed `age` seconds ago."""
    path = Path(name)
    path.write_text(text)
    then = time.time() - age
    os.utime(path, (then, then))
    return path


# What it answers


def test_an_unchanged_file_is_not_checked_again(check: Check, checked: list[str]) -> None:
    write("a.py", CLEAN)
    write("b.py", BAD)
    check(".")
    check(".")
    assert checked == ["a.py", "b.py"]


@pytest.mark.parametrize(
    "options", [(), ("--output-format", "json"), ("--statistics",), ("--output-format", "concise")]
)
def test_the_report_is_the_same_with_and_without_the_cache(check: Check, options: tuple[str, ...]) -> None:
    write("a.py", CLEAN)
    write("b.py", BAD + "y = torch.ones(3).to('cuda')  # noqa: DEV501\n")
    write("broken.py", "import torch\nx = (\n")
    first = check(".", *options)
    assert check(".", *options) == first == check(".", "--no-cache", *options)


@pytest.mark.parametrize("options", [(), ("--output-format", "json"), ("--output-format", "concise", "--markdown")])
def test_notebooks_and_markdown_are_answered_too(check: Check, checked: list[str], options: tuple[str, ...]) -> None:
    cells = [
        {"cell_type": "code", "metadata": {}, "source": "%time f()\n" + BAD},
        {"cell_type": "code", "source": "x = ("},
    ]
    write("n.ipynb", json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    write("clean.ipynb", json.dumps({"cells": [{"cell_type": "code", "source": CLEAN}], "metadata": {}}))
    write("a.md", f"Text\n\n```python\n{BAD}```\n")
    first = check(".", "a.md", *options)
    assert first[0] == 1
    assert check(".", "a.md", *options) == first == check(".", "a.md", "--no-cache", *options)
    assert len(checked) == 2 * 3  # the first run, and the one without a cache


def test_results_serve_another_directory_and_keep_their_names_apart(check: Check, checked: list[str]) -> None:
    Path("inner").mkdir()
    write("inner/b.py", BAD)
    _, outer = check("--output-format", "concise")
    os.chdir("inner")
    _, inner = check("--output-format", "concise")
    assert checked == ["inner/b.py"]
    assert outer.startswith("inner/b.py:3:") and inner.startswith("b.py:3:")


def test_a_changed_file_is_checked_again_alone(check: Check, checked: list[str]) -> None:
    write("a.py", CLEAN)
    write("b.py", CLEAN)
    check(".")
    write("b.py", BAD)
    code, _ = check(".")
    assert code == 1
    assert checked == ["a.py", "b.py", "b.py"]


def test_a_file_that_was_only_touched_is_not_checked_again(check: Check, checked: list[str]) -> None:
    path = write("a.py", CLEAN)
    check(".")
    os.utime(path)
    check(".")
    assert checked == ["a.py"]


def test_size_and_times_do_not_stand_for_a_file_that_was_just_written(check: Check, checked: list[str]) -> None:
    path = write("a.py", BAD, age=0)
    before = path.stat()
    check(".")
    path.write_text(BAD.replace("cuda", "cpu "))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    check(".")
    assert checked == ["a.py", "a.py"]


def test_size_and_times_stand_for_a_file_that_had_settled(
    check: Check, checked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a.py", CLEAN)
    check(".")
    monkeypatch.setattr("devlint.cache._read", lambda path, content: pytest.fail("read"))
    assert check(".")[0] == 0
    assert checked == ["a.py"]


def test_other_settings_are_other_results(check: Check, checked: list[str]) -> None:
    write("a.py", BAD)
    assert check(".")[0] == 1
    assert check(".", "--ignore", "DEV501")[0] == 0
    assert check(".")[0] == 1
    assert checked == ["a.py", "a.py"]


def test_another_version_checks_anew(check: Check, checked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.py", CLEAN)
    check(".")
    monkeypatch.setattr(fingerprint, "__version__", "99.0")
    check(".")
    assert checked == ["a.py", "a.py"]


def test_a_changed_rule_package_checks_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / shipped.CHECKOUT).mkdir()
    rule = tmp_path / shipped.CHECKOUT / "__init__.py"
    rule.write_text("RULES = ()\n")
    monkeypatch.setattr(shipped, "package", lambda: shipped.CHECKOUT)
    monkeypatch.setattr(fingerprint, "_folder", lambda package: str(tmp_path / package))
    before = fingerprint.code_stamp()
    assert fingerprint.code_stamp() == before
    rule.write_text("RULES = ( )\n")
    assert fingerprint.code_stamp() != before


@pytest.mark.parametrize("part", ["facts", "inference"])
def test_a_change_far_below_in_devlint_checks_anew(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / part / "deep" / "deeper" / "a.py"
    module.parent.mkdir(parents=True)
    module.write_text("x = 1\n")
    monkeypatch.setattr(fingerprint, "__file__", str(tmp_path / "fingerprint.py"))
    before = fingerprint.code_stamp()
    module.write_text("x = 12\n")
    assert fingerprint.code_stamp() != before


def test_a_misspelt_selector_is_an_error_with_a_warm_cache_too(check: Check) -> None:
    write("a.py", CLEAN)
    check(".")
    assert check(".", "--ignore", "DEV10l")[0] == 2


def test_fixes_are_applied_to_a_file_whose_findings_are_known(check: Check) -> None:
    path = write("a.py", BAD)
    check(".")
    assert check(".", "--fix")[0] == 0
    assert path.read_text() == FIXED
    assert check(".")[0] == 0


def test_a_file_without_fixable_findings_is_not_checked_again_to_be_fixed(check: Check, checked: list[str]) -> None:
    write("a.py", CLEAN)
    check(".")
    check(".", "--fix")
    assert checked == ["a.py"]


def test_standard_input_leaves_no_trace(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CLEAN.encode())))
    check("-")
    assert not Path(DIRECTORY).exists()


# What a warm run imports

MODULES = """
import sys
from devlint.cli import main
from devlint.shipped import CHECKOUT, INSTALLED
code = main(["check", "."])
heavy = ("devlint.engine", "devlint.registry", "devlint.facts", "devlint.rule", "libcst", "devlint.pool", CHECKOUT, INSTALLED)
print([name for name in heavy if name in sys.modules])
"""


def test_a_hit_loads_neither_rules_nor_facts_nor_libcst(check: Check) -> None:
    write("a.py", CLEAN)
    write("b.py", "y = 1\n")
    check(".")
    done = subprocess.run([sys.executable, "-c", MODULES], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


# Where it lies


def test_its_directory_is_kept_out_of_git_and_of_backups(check: Check) -> None:
    write("a.py", CLEAN)
    check(".")
    subprocess.run(["git", "init", "-q"], check=True)
    assert DIRECTORY not in subprocess.run(["git", "status", "-s"], capture_output=True, text=True, check=True).stdout
    assert Path(DIRECTORY, "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")


def test_no_cache_makes_none(check: Check) -> None:
    write("a.py", CLEAN)
    check(".", "--no-cache")
    assert not Path(DIRECTORY).exists()


def test_it_lies_beside_the_configuration(check: Check) -> None:
    Path("inner").mkdir()
    write("inner/a.py", CLEAN)
    os.chdir("inner")
    check(".")
    assert not Path(DIRECTORY).exists()
    assert Path("..", DIRECTORY).exists()


@pytest.mark.parametrize("how", ["option", "setting", "environment"])
def test_another_place_can_be_given(check: Check, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.py", CLEAN)
    if how == "setting":
        Path("devlint.toml").write_text('cache-dir = "elsewhere"\n')
    if how == "environment":
        monkeypatch.setenv("DEVLINT_CACHE_DIR", "elsewhere")
    check(".", *(("--cache-dir", "elsewhere") if how == "option" else ()))
    assert database("elsewhere").exists()
    assert not Path(DIRECTORY).exists()


def test_clean_deletes_what_devlint_made(check: Check) -> None:
    write("a.py", CLEAN)
    check(".")
    assert main(["clean"]) == 0
    assert not Path(DIRECTORY).exists()
    assert main(["clean"]) == 0


def test_clean_leaves_what_others_put_there(check: Check) -> None:
    Path("shared").mkdir()
    Path("shared", "notes.txt").write_text("mine")
    write("a.py", CLEAN)
    check(".", "--cache-dir", "shared")
    assert main(["clean", "--cache-dir", "shared"]) == 0
    assert os.listdir("shared") == ["notes.txt"]


# What is not trusted


def test_entries_of_files_that_are_gone_are_dropped(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "PRUNE_EVERY", 0)
    write("a.py", CLEAN)
    path = write("b.py", CLEAN)
    check(".")
    path.unlink()
    write("c.py", CLEAN)
    check(".")
    with sqlite3.connect(database()) as opened:
        assert opened.execute("SELECT path FROM files ORDER BY path").fetchall() == [("a.py",), ("c.py",)]


def test_results_for_settings_that_are_no_longer_used_are_dropped(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "PRUNE_EVERY", 0)
    monkeypatch.setattr(cache, "KEEP_UNUSED", 0)
    write("a.py", CLEAN)
    check(".")
    check(".", "--ignore", "DEV101")
    with sqlite3.connect(database()) as opened:
        assert opened.execute("SELECT COUNT(*) FROM files").fetchone() == (1,)


def _database(check: Check) -> Path:
    write("a.py", BAD)
    assert check(".")[0] == 1
    return database()


def _overwritten(path: Path) -> None:
    path.write_bytes(b"not a database at all" * 100)


def _truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def _scrambled(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    for index in range(4096, len(raw), 7):
        raw[index] ^= 0x55
    path.write_bytes(raw)


def _foreign(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE files (name TEXT)")


def _other_layout(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize("damage", [_overwritten, _truncated, _scrambled, _foreign, _other_layout])
def test_a_damaged_or_foreign_database_is_made_anew(
    check: Check, checked: list[str], damage: Callable[[Path], None]
) -> None:
    path = _database(check)
    damage(path)
    assert check(".")[0] == 1
    checked.clear()
    assert check(".")[0] == 1
    check(".")
    assert len(checked) <= 1  # it works again, at the latest after one more run


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE files SET result = '[0,[],[],[],[1,0,3,0,0,0]]'",
        "UPDATE files SET result = NULL",
        "UPDATE files SET size = 'x'",
        "UPDATE files SET content = x'00', stored = 0",
        "UPDATE files SET checksum = NULL",
        "UPDATE rules SET metas = '[]'",
    ],
)
def test_a_row_that_was_tampered_with_is_not_believed(check: Check, change: str) -> None:
    path = _database(check)
    with sqlite3.connect(path) as database:
        assert database.execute(change).rowcount == 1
    assert check(".")[0] == 1


def test_a_file_in_its_place_is_no_obstacle(check: Check) -> None:
    Path(DIRECTORY).write_text("in the way")
    write("a.py", BAD)
    assert check(".")[0] == 1
    assert Path(DIRECTORY).read_text() == "in the way"


def test_a_directory_that_cannot_be_written_is_no_obstacle(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(directory: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(cache, "make_directory", refuse)
    write("a.py", BAD)
    assert check(".")[0] == 1


def test_a_database_that_is_locked_is_done_without(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _database(check)
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **{**k, "timeout": 0.05}))
    write("b.py", BAD)
    holder = connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        code, out = check(".", "--output-format", "json")
    finally:
        holder.close()
    assert code == 1
    assert {row["filename"] for row in json.loads(out)} == {"a.py", "b.py"}


def test_runs_side_by_side_on_one_cache_agree(check: Check) -> None:
    for number in range(12):
        write(f"f{number}.py", BAD if number % 3 else CLEAN)
    expected = check(".", "--no-cache", "--output-format", "concise")
    command = [sys.executable, "-m", "devlint", "check", ".", "--output-format", "concise"]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(5)]
    for each in runs:
        out, err = each.communicate(timeout=120)
        assert (each.returncode, out) == expected, err


# The stored form

_TEXT = st.text(max_size=8)
_NUMBER = st.integers(0, 500)
_SPAN = st.builds(Span, _NUMBER, _NUMBER)
_POSITION = st.builds(Position, _NUMBER, _NUMBER)
_FIX = st.builds(
    TextFix,
    _TEXT,
    st.sampled_from(Safety),
    st.lists(st.builds(TextEdit, _NUMBER, _NUMBER, _TEXT), max_size=2).map(tuple),
)
_DIAGNOSTIC = st.builds(
    Diagnostic,
    st.just("a.py"),
    _TEXT,
    _TEXT,
    st.sampled_from(Severity),
    _TEXT,
    _SPAN,
    _POSITION,
    _POSITION,
    st.none() | _FIX,
    st.lists(st.builds(Related, st.just("a.py") | _TEXT, _POSITION, _POSITION, _TEXT), max_size=2).map(tuple),
)
_RESULT = st.builds(
    FileResult,
    st.just("a.py"),
    st.lists(_DIAGNOSTIC, max_size=3),
    st.lists(_DIAGNOSTIC, max_size=2),
    st.just([]),
    st.builds(Statistics, _NUMBER, _NUMBER, _NUMBER),
)


_UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@_UNTIMED
@given(_RESULT)
def test_a_result_comes_back_as_it_was(result: FileResult) -> None:
    assert load(FileResult, dump(result, "a.py"), "a.py") == result


def test_the_name_of_the_file_is_that_of_the_run() -> None:
    assert load(FileResult, dump(FileResult("a.py"), "a.py"), "src/a.py") == FileResult("src/a.py")


_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | _TEXT, lambda inner: st.lists(inner, max_size=5), max_leaves=20
)


@_UNTIMED
@given(_JSON)
def test_other_data_is_refused_with_one_kind_of_error(data: object) -> None:
    with contextlib.suppress(ValueError):
        load(FileResult, json.dumps(data).encode(), "a.py")


TOOLS = "import torch\n\n\ndef mask(n):\n    return torch.zeros(n)\n"
USER = "import torch\nfrom tools import mask\n\n\ndef f(x: torch.Tensor):\n    return x.cuda() + mask(3)\n"


def test_result_is_made_anew_when_an_imported_file_changes(check: Check, tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "main.py").write_text(USER)
    assert check("main.py")[0] == 1
    (tmp_path / "tools.py").write_text(TOOLS.replace("torch.zeros(n)", 'torch.zeros(n, device="cuda")'))
    assert check("main.py")[0] == 0


def test_result_is_made_anew_when_a_missing_import_appears(check: Check, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(USER)
    assert check("main.py")[0] == 0
    (tmp_path / "tools.py").write_text(TOOLS)
    assert check("main.py")[0] == 1


def test_result_that_follows_from_another_file_is_remembered(check: Check, tmp_path: Path, checked: list[str]) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "main.py").write_text(USER)
    first = check("main.py")
    assert check("main.py") == first
    assert checked == ["main.py"]


HELPER = "import torch\n\n\ndef mask(x: torch.Tensor):\n    return x.numpy(), x.device\n"
CALLER = "import torch\nfrom tools import mask\n\n\ndef f(x):\n    return mask(x.cpu())\n"


@pytest.fixture
def searching(check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """`check` of a rule that asks for callers, in a directory whose files are listed anew each time."""
    monkeypatch.setattr("devlint.project_files.FRESH", -1.0)
    (tmp_path / "devlint.toml").write_text('select = ["DEV109"]\n')
    (tmp_path / "tools.py").write_text(HELPER)
    return check


def test_result_is_made_anew_when_a_caller_appears_changes_or_goes(searching: Check, tmp_path: Path) -> None:
    assert searching("tools.py")[0] == 1
    caller = write("main.py", CALLER)
    assert searching("tools.py")[0] == 0
    write("main.py", CALLER.replace(".cpu()", ".cuda()"))
    assert searching("tools.py")[0] == 1
    write("main.py", CALLER)
    assert searching("tools.py")[0] == 0
    caller.unlink()
    assert searching("tools.py")[0] == 1


def test_result_outlives_changes_of_files_that_do_not_call(
    searching: Check, tmp_path: Path, checked: list[str]
) -> None:
    write("main.py", CALLER)
    write("other.py", "def g(): ...\n")
    first = searching("tools.py")
    write("other.py", "def other(): ...\n")
    write("more.py", "def more(): ...\n")
    assert searching("tools.py") == first
    assert searching("tools.py") == first
    assert checked == ["tools.py"]


def test_result_that_searched_does_not_serve_another_project(
    searching: Check, tmp_path: Path, checked: list[str]
) -> None:
    write("main.py", CALLER)
    searching("tools.py")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "setup.py").write_text("")
    (tmp_path / "sub" / "tools.py").write_text(HELPER)
    assert searching("sub/tools.py")[0] == 1


def test_reason_in_another_file_is_named_from_the_directory_of_the_run(
    check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "main.py").write_text(USER)
    assert ":: tools.py:5:12: created on the CPU here" in check("main.py")[1]
    monkeypatch.chdir(tmp_path.parent)
    assert f":: {tmp_path.name}/tools.py:5:12" in check(f"{tmp_path.name}/main.py")[1]

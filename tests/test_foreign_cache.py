"""A cache that somebody else made, or that is damaged: it hides no finding, holds no run up and ends none."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from devlint.cache import ALL_FILES, DIRECTORY
from tests.conftest import Run
from tests.test_cache import database

BAD = 'import torch\n\nx = torch.zeros(3).to("cuda")\n'
CLEAN = "import torch\n\nx = torch.zeros(3, device=None) #\n"
CHECK = ("check", ".", "--select", "DEV501", "--output-format", "concise")


def found(run: Run) -> bool:
    """Whether a check finds what is in `a.py`, and says nothing else."""
    result = run(*CHECK)
    assert result.err == ""
    return result.code == 1 and "a.py:3:5: DEV501" in result.out


@pytest.fixture
def forged(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of another user, which knows no finding in a file that has the size, time and inode of `a.py`."""
    Path("a.py").write_text(BAD.ljust(60))
    state = Path("a.py").stat()
    with open("a.py", "r+", encoding="utf-8") as file:  # the same inode
        file.write(CLEAN.ljust(60))
    os.utime("a.py", ns=(1, 1_000_000_000))
    with monkeypatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("other-user")))
        assert run(*CHECK).code == 0
    with open("a.py", "r+", encoding="utf-8") as file:
        file.write(BAD.ljust(60))
    os.utime("a.py", ns=(1, 1_000_000_000))
    assert Path("a.py").stat().st_ino == state.st_ino
    return database()


# What others wrote


def test_a_cache_of_another_user_hides_nothing(run: Run, forged: Path) -> None:
    before = forged.read_bytes()
    assert found(run)
    assert forged.read_bytes() == before  # not opened


def test_entries_of_another_user_in_a_database_of_ours_hide_nothing(run: Run, forged: Path) -> None:
    forged.rename("theirs")
    shutil.rmtree(DIRECTORY)
    run(*CHECK)
    shutil.copy("theirs", database())
    for ending in ("-wal", "-shm"):
        Path(f"{database()}{ending}").unlink(missing_ok=True)
    assert found(run)


def test_a_cache_that_is_kept_with_its_key_in_the_tree_hides_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path.cwd() / "home"))
    Path("a.py").write_text(BAD)
    assert found(run)
    assert not Path("home").exists() and not Path(DIRECTORY).exists()


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX's")
@pytest.mark.parametrize("spoil", ["open to all", "short", "empty", "a link", "a pipe", "a folder"])
def test_a_key_that_is_no_secret_is_made_anew(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, spoil: str
) -> None:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    Path("a.py").write_text(BAD)
    assert found(run)
    key, first = home / "devlint" / "key", database().name
    before = key.read_bytes()
    assert (len(before), key.stat().st_mode & 0o777) == (32, 0o600)
    key.unlink()
    if spoil == "open to all":
        key.write_bytes(before)
        key.chmod(0o644)
    elif spoil in ("short", "empty"):
        key.write_bytes(before[:5] if spoil == "short" else b"")
        key.chmod(0o600)
    elif spoil == "a link":
        key.symlink_to("/dev/zero")
    elif spoil == "a pipe":
        os.mkfifo(key)
    else:
        key.mkdir()
    assert found(run)
    if spoil != "a folder":
        assert len(key.read_bytes()) == 32 and key.read_bytes() != before
        assert len({path.name for path in Path(DIRECTORY).glob("*.sqlite3")} | {first}) == 2


def test_a_home_that_cannot_be_written_means_no_cache(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path.cwd().parent / Path.cwd().name / "file"))
    monkeypatch.setattr("devlint.user_key._folder", lambda: Path("/proc/none/devlint"))
    Path("a.py").write_text(BAD)
    assert found(run)
    assert not Path(DIRECTORY).exists()


# What the database may hold

_NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
_COLUMNS = "path, settings, size, mtime, inode, content, stored, result, checksum"
_ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, i, i, i, i, i, i, i, i FROM n"


@pytest.mark.parametrize(
    "statements",
    [
        ["DROP TABLE files", f"CREATE VIEW files({_COLUMNS}) AS {_ENDLESS}"],
        ["DROP TABLE rules", f"CREATE VIEW rules(code, metas, checksum) AS SELECT i, i, i FROM ({_NUMBERS})"],
        ["DROP TABLE used", f"CREATE VIEW used(settings, time) AS SELECT i, i FROM ({_NUMBERS})"],
        ["CREATE TRIGGER t AFTER INSERT ON files BEGIN DELETE FROM files; END"],
        [f"CREATE TRIGGER t AFTER INSERT ON used BEGIN INSERT INTO rules SELECT i, i, i FROM ({_NUMBERS}); END"],
        ["CREATE TABLE more (x)"],
        ["CREATE INDEX i ON used(time)"],
        ["ALTER TABLE files ADD COLUMN more"],
        ["DROP TABLE files"],
        ["UPDATE used SET time = 'yesterday'"],
        ["UPDATE used SET time = NULL"],
        ["UPDATE used SET time = x'00'"],
        ["UPDATE used SET time = -9e300"],
        ["UPDATE files SET path = x'ff'", "UPDATE used SET time = 0"],
        ["UPDATE files SET path = 'a' || char(0)", "UPDATE used SET time = 1"],
        ["UPDATE files SET path = CAST(x'ff' AS TEXT)", "UPDATE used SET time = 1"],
        ["UPDATE files SET path = 7, size = 9e300, mtime = 'x', inode = NULL, content = 3", "UPDATE used SET time = 1"],
        ["UPDATE files SET result = zeroblob(50000000)"],
        ["PRAGMA application_id = 1"],
        ["PRAGMA user_version = 5"],
        ["PRAGMA writable_schema = ON", "UPDATE sqlite_master SET sql = 'CREATE TABLE files (x, y)' WHERE name = 'files'"],
        ["PRAGMA writable_schema = ON", "UPDATE sqlite_master SET sql = 'nonsense' WHERE name = 'files'"],
        ["PRAGMA writable_schema = ON", "UPDATE sqlite_master SET rootpage = 1"],
        ["PRAGMA writable_schema = ON", "UPDATE sqlite_master SET rootpage = 99999"],
    ],
)  # fmt: skip
def test_a_database_with_something_else_in_it_is_an_empty_cache(run: Run, statements: list[str]) -> None:
    Path("a.py").write_text(BAD)
    assert found(run)
    opened = sqlite3.connect(database(), isolation_level=None)
    for statement in statements:
        opened.execute(statement)
    opened.close()
    start = time.perf_counter()
    Path("b.py").write_text("x = 1\n")
    assert found(run)
    Path("c.py").write_text("x = 1\n")
    assert found(run)
    assert time.perf_counter() - start < 15
    (count,) = sqlite3.connect(database()).execute("SELECT COUNT(*) FROM files").fetchone()
    assert count >= 1


def _bytes_changed(raw: bytearray, rng: random.Random) -> bytes:
    for _ in range(rng.choice((1, 3, 30, 3000))):
        raw[rng.randrange(len(raw))] = rng.randrange(256)
    return bytes(raw)


def _cut(raw: bytearray, rng: random.Random) -> bytes:
    return bytes(raw[: rng.randrange(len(raw))])


def _pages_swapped(raw: bytearray, rng: random.Random) -> bytes:
    pages = [raw[at : at + 4096] for at in range(0, len(raw), 4096)]
    for _ in range(rng.randrange(1, 4)):
        one, other = rng.randrange(len(pages)), rng.randrange(len(pages))
        pages[one], pages[other] = pages[other], pages[one]
    return b"".join(pages)


def _page_repeated(raw: bytearray, rng: random.Random) -> bytes:
    pages = [raw[at : at + 4096] for at in range(0, len(raw), 4096)]
    pages[rng.randrange(len(pages))] = pages[rng.randrange(len(pages))]
    return b"".join(pages)


@pytest.mark.parametrize("damage", [_bytes_changed, _cut, _pages_swapped, _page_repeated])
def test_every_damage_is_an_empty_cache(run: Run, damage: Callable[[bytearray, random.Random], bytes]) -> None:
    for name in "abcdef":
        Path(f"{name}.py").write_text(BAD)
    assert found(run)
    rng = random.Random(damage.__name__)
    opened = sqlite3.connect(database(), isolation_level=None)
    opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    opened.execute("PRAGMA journal_mode = DELETE")
    opened.close()
    raw = database().read_bytes()
    for _ in range(12):
        path = database()
        for beside in Path(DIRECTORY).glob(ALL_FILES):
            beside.unlink()
        path.write_bytes(damage(bytearray(raw), rng))
        assert found(run)


@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("kind", ["folder", "pipe", "noise", "device"])
def test_what_stands_in_the_place_of_a_database_is_no_obstacle(run: Run, ending: str, kind: str) -> None:
    if sys.platform == "win32" and kind != "noise":
        pytest.skip("kinds of files of POSIX")
    Path("a.py").write_text(BAD)
    assert found(run)
    path = Path(f"{database()}{ending}")
    path.unlink(missing_ok=True)
    if kind == "folder":
        (path / "x").mkdir(parents=True)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "noise":
        path.write_bytes(os.urandom(100_000))
    else:
        path.symlink_to("/dev/zero")
    assert found(run)


@pytest.mark.parametrize(
    "setting", ["~nobody-of-this-name/x", "a\\u0000b", "", "/proc/none", "x" * 5_000, "a.py/x", "a.py"]
)
def test_a_place_that_cannot_be_is_no_obstacle(run: Run, setting: str) -> None:
    Path("a.py").write_text(BAD)
    Path("devlint.toml").write_text(f'cache-dir = "{setting}"\n')
    assert found(run)
    assert found(run)


# Where it may lie


@pytest.mark.parametrize("folder", [".", "src", "src/", "./src/../src", "new", "src/new", "empty"])
@pytest.mark.parametrize("how", ["setting", "option"])
def test_a_cache_among_sources_does_not_switch_the_check_off(run: Run, folder: str, how: str) -> None:
    Path(".git").mkdir()
    Path("src").mkdir()
    Path("empty").mkdir()
    option = ("--cache-dir", folder) if how == "option" else ()
    if how == "setting":
        Path("devlint.toml").write_text(f'cache-dir = "{folder}"\n')
    names = {"a.py", "src/a.py"}
    for name in names:
        Path(name).write_text(BAD)
    for _ in range(2):
        result = run(*CHECK, *option)
        assert {line.partition(":")[0] for line in result.out.splitlines() if "DEV501" in line} == names
        Path(folder, "late.py").write_text(BAD)  # a directory that was new or empty gets sources later
        names = names | {os.path.normpath(f"{folder}/late.py")}
        for path in names:
            os.utime(path, (1, 1))
    assert not Path("CACHEDIR.TAG").exists() and not Path("src", "CACHEDIR.TAG").exists()


def test_nothing_is_written_through_a_link_in_a_cache_that_came_along(run: Run) -> None:
    Path(DIRECTORY).mkdir()
    Path(DIRECTORY, ".gitignore").symlink_to("../victim")
    Path(DIRECTORY, "CACHEDIR.TAG").symlink_to("../victim")
    Path("a.py").write_text(BAD)
    assert found(run)
    assert not Path("victim").exists()


def test_clean_deletes_what_is_of_all_users_and_nothing_else(run: Run, forged: Path) -> None:
    assert found(run)
    Path(DIRECTORY, "mine").write_text("")
    assert len(list(Path(DIRECTORY).glob("*.sqlite3"))) == 2
    assert run("clean").code == 0
    assert os.listdir(DIRECTORY) == ["mine"]

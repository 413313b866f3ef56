"""The wheel as an installer unpacks it: one package at its top, whose rules work without the checkout, and its metadata."""

from __future__ import annotations

import email.message
import email.parser
import subprocess
import sys
import zipfile
from configparser import ConfigParser
from pathlib import Path

import pytest

from devlint import __version__
from devlint.shipped import CHECKOUT, INSTALLED

ROOT = Path(__file__).parents[1]
BAD = 'import torch\n\nx = torch.zeros(3).to("cuda")\n'


def built(version: str, folder: Path) -> Path:
    """The wheel of this checkout, unpacked."""
    builder = pytest.importorskip("hatchling.builders.wheel").WheelBuilder(str(ROOT))
    (wheel,) = builder.build(directory=str(folder / version), versions=[version])
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / f"{version}-tree")
    return folder / f"{version}-tree"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("standard", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def editable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("editable", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def metadata(tree: Path) -> email.message.Message:
    (path,) = tree.glob("*.dist-info/METADATA")
    return email.parser.Parser().parsestr(path.read_text(encoding="utf-8"))


def run(tree: Path, code: str, where: Path) -> subprocess.CompletedProcess[str]:
    """Runs code where the unpacked wheel is the first that Python finds."""
    start = f"import sys; sys.path.insert(0, {str(tree)!r})\n"
    command = [sys.executable, "-I", "-c", start + code]
    return subprocess.run(command, cwd=where, capture_output=True, text=True, timeout=120, check=False)


def test_a_wheel_has_one_package_at_its_top(tree: Path) -> None:
    assert sorted(path.name for path in tree.iterdir()) == ["devlint", f"devlint-{__version__}.dist-info"]


def test_a_wheel_has_every_rule_and_says_that_it_is_typed(tree: Path) -> None:
    source = {path.name for path in (ROOT / "rules" / CHECKOUT).iterdir() if path.is_file()}
    assert {path.name for path in (tree / "devlint" / "_rules").iterdir()} == source
    assert "py.typed" in source and (tree / "devlint" / "py.typed").is_file()


def test_a_wheel_lints_with_its_own_rules(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    done = run(
        tree,
        "from devlint.cli import main\n"
        "code = main(['check', '--isolated', '--no-cache', '--select=DEV501', 'bad.py'])\n"
        f"print(code, {INSTALLED!r} in sys.modules, {CHECKOUT!r} in sys.modules)\n",
        tmp_path,
    )
    assert "DEV501" in done.stdout and done.stdout.endswith("\n1 True False\n"), (done.stdout, done.stderr)


def test_a_wheel_has_the_page_of_a_rule(tree: Path, tmp_path: Path) -> None:
    done = run(tree, "from devlint.cli import main\nmain(['rule', '--isolated', 'DEV501'])\n", tmp_path)
    assert "What it flags" in done.stdout, (done.stdout, done.stderr)


def test_every_entry_point_of_a_wheel_is_a_module_of_it(tree: Path) -> None:
    parser = ConfigParser(delimiters=("=",))
    (path,) = tree.glob("*.dist-info/entry_points.txt")
    parser.read(path, encoding="utf-8")
    targets = [value.partition(":")[0] for group in parser.sections() for value in parser[group].values()]
    assert targets
    for target in targets:
        assert (tree / f"{target.replace('.', '/')}.py").is_file(), target


def test_the_page_of_the_package_has_no_relative_link(metadata: email.message.Message) -> None:
    text = str(metadata.get_payload())
    assert text.startswith("# devlint") and "](docs/" not in text and "](rules/" not in text


def test_a_wheel_has_the_addresses_of_the_project_and_no_others(metadata: email.message.Message) -> None:
    from devlint import addresses

    urls = [f"{label}, {url}" for label, url in addresses.project_urls(__version__).items()]
    assert (metadata.get_all("Project-URL") or []) == urls


def test_an_editable_install_takes_the_checkout(editable: Path) -> None:
    (paths,) = editable.glob("*.pth")
    assert paths.read_text().splitlines() == [str(ROOT), str(ROOT / "rules")]
    assert {path.name for path in editable.iterdir()} == {paths.name, f"devlint-{__version__}.dist-info"}

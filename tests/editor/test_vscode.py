"""The extension for VS Code: what it promises, and that it is checked, tested and packaged as its README says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import devlint
from devlint import addresses
from devlint.editor.session import Options

FOLDER = Path(__file__).parents[2] / "editors" / "vscode"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the extension is not part of the source distribution")

Npm = Callable[..., str]


@pytest.fixture
def npm() -> Npm:
    """Runs a script of the extension; its output."""
    program = shutil.which("npm")
    if program is None:
        pytest.skip("needs npm")
    if not (FOLDER / "node_modules" / "esbuild").is_dir():
        pytest.skip("needs `npm install` in editors/vscode")

    def run(script: str) -> str:
        ended = subprocess.run(
            [program, "run", "--silent", script], cwd=FOLDER, capture_output=True, encoding="utf-8", timeout=300
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    return run


def manifest() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
    return found


def test_its_option_is_one_of_the_server() -> None:
    assert manifest()["contributes"]["configuration"]["properties"]["devlint.inlayHints"]["default"] is False
    options = Options()
    assert list(options.take({"inlayHints": True, "command": []})) == []
    assert options.inlay_hints


def test_its_readme_names_every_setting_and_command() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    contributed = manifest()["contributes"]
    commands = [f"{each['category']}: {each['title']}" for each in contributed["commands"]]
    named = [*(f"`{name}`" for name in contributed["configuration"]["properties"]), *commands]
    assert [each for each in named if each not in text] == []


def test_its_commands_are_registered() -> None:
    source = (FOLDER / "src" / "extension.ts").read_text(encoding="utf-8")
    registered = set(re.findall(r'registerCommand\("([^"]+)"', source))
    assert registered == {each["command"] for each in manifest()["contributes"]["commands"]}


def test_its_addresses_stand_elsewhere() -> None:
    assert {"publisher", "repository", "homepage", "bugs"} & manifest().keys() == set()


def test_its_lock_names_no_registry() -> None:
    locked = json.loads((FOLDER / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert [name for name, each in locked.items() if "resolved" in each] == []


@pytest.mark.slow
@pytest.mark.parametrize("script", ["check", "lint", "test"])
def test_a_check_of_its_own_passes(npm: Npm, script: str) -> None:
    npm(script)


@pytest.mark.slow
def test_the_package_has_the_version_of_devlint_and_the_publisher_of_the_addresses(npm: Npm) -> None:
    name = npm("package").split()[-1]
    assert name == f"devlint-{devlint.__version__}.vsix"
    with zipfile.ZipFile(FOLDER / name) as package:
        packed = json.loads(package.read("extension/package.json"))
        assert "extension/dist/extension.js" in package.namelist()
    assert packed["version"] == devlint.__version__
    assert packed["publisher"] == (addresses.VSCODE_PUBLISHER or "undefined-publisher")
    assert packed.get("homepage", "") == addresses.SITE

"""The server driven by real clients: Neovim without a screen, and Node with the libraries of VS Code's own client.

Each client goes once through one round of work and says what each step gave; the tests read that. Without `nvim` or Node,
or where `npm install` was not run in `editors/vscode`, its tests are skipped.

`python tests/editor/test_clients.py [NVIM ...]` writes `clients/log.md`, the log of one run: of every Neovim that is named,
or the one on the search path, and of Node.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import devlint

CLIENTS = Path(__file__).parent / "clients"
ROOT = Path(__file__).parents[2]
MODULES = ROOT / "editors" / "vscode" / "node_modules"
PROGRAM = """\
import torch

model = torch.nn.Linear(2, 2).cuda()
note = "重要🔥"; z = model(torch.ones(1, 2))
"""
FOUND = ["DEV202 torch.nn.Linear(2, 2).cuda()", "DEV102 torch.ones(1, 2)"]
pytestmark = pytest.mark.slow  # several servers are started
SLOWEST = 240  # seconds for the whole round of a client, on a machine at work

Steps = dict[str, Any]


def absence(client: str) -> str:
    """Why a client cannot be run here, or nothing."""
    if shutil.which("nvim" if client == "neovim" else "node") is None:
        return f"needs {client}"
    if client == "node" and not (MODULES / "vscode-languageserver-protocol").is_dir():
        return "needs `npm install` in editors/vscode"
    return "needs pygls" if not _has_pygls() else ""


def _has_pygls() -> bool:
    import importlib.util

    return importlib.util.find_spec("pygls") is not None


def recipe(editor: str) -> str:
    """The recipe of `docs/editors.md` for an editor."""
    text = (ROOT / "docs" / "editors.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {editor}\n.*?^```\w+\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert found is not None, editor
    return found[1]


@cache
def steps_of(client: str, program: str = "nvim") -> Steps:
    """What each step gave in a new project. `program`: the Neovim to run."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve() / "project"
        folder.mkdir()
        (folder / "train.py").write_text(PROGRAM, encoding="utf-8")
        (folder / "pyproject.toml").touch()
        return _neovim(folder, program) if client == "neovim" else _node(folder)


def _neovim(folder: Path, program: str) -> Steps:
    """Neovim finds `devlint` on the search path, as the recipe says."""
    commands = folder.parent / "bin"
    commands.mkdir()
    command = commands / "devlint"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m devlint "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    (folder.parent / "recipe.lua").write_text(recipe("Neovim"), encoding="utf-8")
    result = folder.parent / "result.json"
    environment = {
        **os.environ,
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "RECIPE": str(folder.parent / "recipe.lua"),
        "RESULT": str(result),
        "XDG_STATE_HOME": str(folder.parent / "state"),
    }
    started = [program, "--headless", "--clean", "-n", "-S", str(CLIENTS / "client.lua")]
    subprocess.run(started, cwd=folder, env=environment, timeout=SLOWEST, capture_output=True)
    steps: Steps = json.loads(result.read_text(encoding="utf-8"))
    assert "problem" not in steps, steps["problem"]
    return steps


def _node(folder: Path) -> Steps:
    server = [sys.executable, "-m", "devlint", "server"]
    started = ["node", str(CLIENTS / "client.mjs"), str(MODULES), str(folder), *server]
    ended = subprocess.run(started, timeout=SLOWEST, capture_output=True, text=True, encoding="utf-8")
    assert ended.returncode == 0, ended.stderr
    steps: Steps = json.loads(ended.stdout)
    return steps


@pytest.fixture(params=["neovim", "node"])
def steps(request: pytest.FixtureRequest) -> Steps:
    reason = absence(request.param)
    if reason:
        pytest.skip(reason)
    return steps_of(request.param)


def step(steps: Steps, name: str) -> Any:
    if name not in steps:
        pytest.skip(f"{steps['client']} does not do that")
    return steps[name]


def test_an_opened_file_has_its_findings_where_the_editor_shows_them(steps: Steps) -> None:
    assert step(steps, "open") == FOUND


def test_edits_are_followed_in_a_text_with_a_form_feed(steps: Steps) -> None:
    assert step(steps, "edit") == [FOUND[0], "DEV102 torch.zeros(1, 2)", FOUND[1]]


def test_a_hover_shows_the_chain_as_links(steps: Steps) -> None:
    shown = step(steps, "hover")
    assert "- [line 4](file:///project/train.py#L4): moved to `cuda` here" in shown
    assert "`torch.ones(1, 2)`: tensor on the CPU\n- [line 6](file:///project/train.py#L6): created on the CPU" in shown


def test_a_hover_past_the_end_shows_nothing(steps: Steps) -> None:
    assert step(steps, "hover_past_the_end") is None


def test_a_quick_fix_settles_its_finding(steps: Steps) -> None:
    assert step(steps, "fix")["left"] == FOUND
    assert steps["fixed"] == "v = model(torch.zeros(1, 2, device=next(model.parameters()).device))"


def test_ignoring_a_line_silences_it(steps: Steps) -> None:
    assert step(steps, "ignore") == {"title": "DEV102: ignore on this line", "left": [FOUND[0]]}


def test_all_safe_fixes_leave_nothing(steps: Steps) -> None:
    assert step(steps, "fix_all") == {"title": "devlint: apply all safe fixes", "left": []}


def test_hints_show_where_names_are_once_they_are_wanted(steps: Steps) -> None:
    assert steps.get("hints_before", []) == []
    assert 'note = "重要🔥"; z: ' in " ".join(step(steps, "hints"))


def test_a_text_without_a_file_has_findings(steps: Steps) -> None:
    assert step(steps, "unsaved") == FOUND


def test_a_server_that_is_told_to_stop_ends_well(steps: Steps) -> None:
    assert step(steps, "stop") == 0


def test_a_server_that_is_started_again_serves(steps: Steps) -> None:
    assert step(steps, "restart") == FOUND


def test_a_crash_of_the_server_is_noticed_and_a_new_one_serves(steps: Steps) -> None:
    assert step(steps, "crash") in ("SIGKILL", "signal 9")
    assert steps["after_the_crash"] == FOUND


def test_a_server_whose_editor_is_gone_ends(steps: Steps) -> None:
    assert step(steps, "editor_gone") == 0


def main(neovims: Sequence[str]) -> None:
    """Write the log of one run."""
    versions = f"devlint {devlint.__version__}, Python {platform.python_version()}, {platform.system()}"
    rows = [
        "# Log of one run of Neovim and Node\n",
        f"{datetime.date.today()}, {versions}. Written by `python tests/editor/test_clients.py`.",
    ]
    for client, program in [*(("neovim", each) for each in neovims or ["nvim"]), ("node", "node")]:
        steps = steps_of(client, program)
        shown = json.dumps({each: steps[each] for each in sorted(steps)}, indent=2, ensure_ascii=False)
        rows.append(f"\n## {steps['client']}\n\n```json\n{shown}\n```")
    (CLIENTS / "log.md").write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

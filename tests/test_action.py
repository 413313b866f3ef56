"""action.yml: its steps run as a runner runs them, in a folder of their own. Installing needs a package index."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[1]
BAD = 'import torch\n\nx = torch.zeros(3).to("cuda")\n'
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
INSTALL, CHECK = ACTION["runs"]["steps"]

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")


def step(which: dict[str, Any], where: Path, inputs: dict[str, str], path: str) -> subprocess.CompletedProcess[str]:
    """Run a step as a runner does: in bash that ends at an error, with its expressions filled in and no others."""
    values = {f"inputs.{name}": str(each["default"]) for name, each in ACTION["inputs"].items()}
    values |= {f"inputs.{name}": value for name, value in inputs.items()}
    values["github.action_path"] = str(ROOT)
    filled = {
        name: re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda match: values[match[1]], text)
        for name, text in which["env"].items()
    }
    runner = {"RUNNER_TEMP": str(where / "temp"), "GITHUB_PATH": str(where / "path"), "GITHUB_ACTIONS": "true"}
    command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", which["run"]]
    environment = {**os.environ, **runner, **filled, "PATH": path}
    return subprocess.run(
        command, cwd=where / "work", env=environment, capture_output=True, text=True, timeout=600, check=False
    )


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A runner's folder: a checkout with one faulty file, and a place for temporary files."""
    (tmp_path / "temp").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "devlint.toml").write_text('select = ["DEV501"]\n')
    (tmp_path / "work" / "bad.py").write_text(BAD)
    (tmp_path / "work" / "clean.py").write_text("x = 1\n")
    return tmp_path


def check(work: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """The second step, with the devlint of this interpreter."""
    scripts = work / "scripts"
    scripts.mkdir(exist_ok=True)
    (scripts / "devlint").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m devlint "$@"\n')
    (scripts / "devlint").chmod(0o755)
    named = {name.replace("_", "-"): value for name, value in inputs.items()}
    return step(CHECK, work, named, f"{scripts}{os.pathsep}{os.environ['PATH']}")


def test_a_finding_is_an_annotation_and_fails_the_step(work: Path) -> None:
    done = check(work)
    assert done.returncode == 1, done.stderr
    assert re.search(r"^::warning .*file=bad\.py,.*DEV501", done.stdout, re.MULTILINE)


def test_clean_files_pass(work: Path) -> None:
    assert check(work, paths="clean.py").returncode == 0


def test_several_paths_and_arguments_are_told_apart(work: Path) -> None:
    done = check(work, paths="clean.py bad.py", args="--exit-zero --ignore DEV501")
    assert (done.returncode, "DEV501" in done.stdout) == (0, False), done.stderr


def test_an_argument_is_no_command(work: Path) -> None:
    done = check(work, paths="clean.py; touch made $(touch made)")
    assert done.returncode == 2
    assert not (work / "work" / "made").exists()


def test_sarif_is_written_beside_the_annotations(work: Path) -> None:
    assert check(work, sarif_file="a b.sarif").returncode == 1
    log = json.loads((work / "work" / "a b.sarif").read_text(encoding="utf-8"))
    assert [each["ruleId"] for each in log["runs"][0]["results"]] == ["DEV501"]


def test_scripts_take_inputs_from_the_environment_alone() -> None:
    assert [each["name"] for each in (INSTALL, CHECK) if "${{" in each["run"]] == []


@pytest.mark.slow
def test_both_steps_one_after_the_other(work: Path) -> None:
    installed = step(INSTALL, work, {"python": sys.executable}, os.environ["PATH"])
    assert installed.returncode == 0, installed.stderr
    added = (work / "path").read_text().strip()
    done = step(CHECK, work, {}, f"{added}{os.pathsep}{os.environ['PATH']}")
    assert (done.returncode, "DEV501" in done.stdout) == (1, True), done.stderr


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem
)
def test_an_issue_form_has_what_a_form_needs(path: Path) -> None:
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert form["name"] and form["description"] and form["body"]
    identifiers = [field["id"] for field in form["body"]]
    assert len(set(identifiers)) == len(identifiers)
    assert all(field["attributes"]["label"] for field in form["body"])
    assert {field["type"] for field in form["body"]} <= {"input", "textarea"}


def workflows() -> Iterator[tuple[str, dict[Any, Any]]]:
    """The workflows that the pages show, by page."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for block in re.findall(r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            read = yaml.safe_load(block)
            if isinstance(read, dict) and "jobs" in read:
                yield page.name, read


def test_pages_with_a_workflow() -> None:
    assert "shadow-tests.md" in {page for page, _ in workflows()}


@pytest.mark.parametrize(("page", "workflow"), workflows())
def test_workflow_of_a_page_is_one_that_a_runner_takes(page: str, workflow: dict[Any, Any]) -> None:
    assert workflow[True], "YAML reads the key `on` as true"
    for job in workflow["jobs"].values():
        assert job["runs-on"]
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            assert set(step) <= {"uses", "run", "with", "name", "id", "if", "env", "working-directory"}
            assert "@" in step.get("uses", "@")


def test_workflow_of_shadow_tests_uses_options_that_there_are() -> None:
    from devlint.runtime import pytest_plugin as plugin

    (workflow,) = [read for page, read in workflows() if page == "shadow-tests.md"]
    commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    words = [word.partition("=")[0] for command in commands for word in command.split()]
    options = {word for word in words if word.startswith("--devlint")}
    assert options == {plugin._OPTION, plugin._SHADOW, plugin._STRICT}

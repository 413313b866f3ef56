"""`devlint init`: add settings to pyproject.toml, or write devlint.toml. It asks nothing and writes what it can see.

It sees the torch version in the packaging files, the devices in the classifiers, and the submodules of git. What it does not
see stands there as a comment with an example.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from devlint.commands import shell
from devlint.config import FILE_NAMES, parse_toml, toml_list
from devlint.errors import UsageError
from devlint.fix.write import write_file
from devlint.reading import LARGEST_SETTINGS, read_regular
from devlint.terminal import Terminal

#: What the trove classifiers of a project say of its devices [pypi.org/classifiers].
_CLASSIFIED = {"Environment :: GPU :: NVIDIA CUDA": "cuda"}
_SUBMODULE = re.compile(r"^\s*path\s*=\s*(.+?)\s*$", re.MULTILINE)
_HOOK = """\
To run it before each commit, add to .pre-commit-config.yaml:

  - repo: local
    hooks:
      - id: devlint
        name: devlint
        entry: devlint check --force-exclude
        language: system  # the devlint that is installed where git runs
        types_or: [python, pyi, jupyter]
        require_serial: true
"""


def main(arguments: Sequence[str]) -> int:
    """Run `devlint init` and return the exit code."""
    return shell.run(parser(), arguments, _print)


def _print(args: argparse.Namespace, terminal: Terminal) -> None:
    for line in _init(Path(args.directory)):
        terminal.print(line)


def parser() -> argparse.ArgumentParser:
    """The parser of `devlint init`."""
    result = shell.Parser(prog="devlint init", description="Add devlint settings to a project.", allow_abbrev=False)
    result.add_argument("directory", nargs="?", default=".", metavar="DIR", help="the project directory (default: .)")
    shell.add_color(result)
    return result


def _init(directory: Path) -> list[str]:
    if not directory.is_dir():
        raise UsageError(f"{directory}: no such directory")
    for name in FILE_NAMES[:2]:
        if (directory / name).exists():
            raise UsageError(f"{directory / name}: exists already")
    project = directory / "pyproject.toml"
    lines = []
    if project.exists():
        before = _read(project)
        table = parse_toml(before, f"{project}: not valid TOML").get("tool", {})
        if "devlint" in table:
            raise UsageError(f"{project}: has a [tool.devlint] table already")
        ending = "\r\n" if "\r\n" in before else "\n"
        gap = "" if not before else ending if before.endswith("\n") else ending * 2
        added = gap + f"[tool.devlint]\n{_settings(directory, table_of=before)}".replace("\n", ending)
        write_file(project, (before + added).encode("utf-8"), before.encode("utf-8"))
        lines.append(f"Added [tool.devlint] to {project}.")
        if _drops_our_codes(table):
            lines.append(
                'ruff removes `# noqa: DEV...` comments as unknown (RUF102) unless [tool.ruff.lint] says external = ["DEV"].'
            )
    else:
        target = directory / "devlint.toml"
        try:
            with target.open("x", encoding="utf-8") as file:  # not through a link that leads nowhere yet
                file.write(_settings(directory))
        except OSError as error:
            raise UsageError(f"{target}: cannot be written: {error.strerror or error}") from error
        lines.append(f"Wrote {target}.")
    return [*lines, "", _HOOK.rstrip("\n")]


def _settings(directory: Path, table_of: str = "") -> str:
    """The settings of a project, by what its files say. `table_of`: the text of its pyproject.toml."""
    from devlint.requirement import required_in

    required = required_in(str(directory.resolve()))
    if required is not None and required.lowest is not None and required.stated:
        version = ".".join(map(str, required.lowest))
        rows = [f'# torch-version = "{version}"  # what the packaging files ask for is used without this']
    else:
        rows = ['torch-version = "2.7"  # the lowest version of torch that the code supports']
    devices = [_CLASSIFIED[each] for each in _classifiers(table_of) if each in _CLASSIFIED]
    if devices:
        rows.append(f"targets = {toml_list(devices)}  # the classifiers of pyproject.toml say so")
    else:
        rows.append('# targets = "any"  # the devices that the project must run on')
    submodules = _submodules(directory)
    if submodules:
        rows.append(f"extend-exclude = {toml_list(submodules)}  # submodules of git")
    else:
        rows.append('# extend-exclude = ["third_party"]')
    return "\n".join((*rows, '# per-file-ignores = { "tests/*" = ["DEV1"] }')) + "\n"


def _classifiers(pyproject: str) -> list[str]:
    project = parse_toml(pyproject, "pyproject.toml").get("project", {})
    found = project.get("classifiers", []) if isinstance(project, dict) else []
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _submodules(directory: Path) -> list[str]:
    """The folders that git takes from other repositories; none where the file cannot be read."""
    try:
        text = read_regular(directory / ".gitmodules", LARGEST_SETTINGS).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return []
    return _SUBMODULE.findall(text)


def _read(path: Path) -> str:
    """The text of a TOML file, with its line endings. Raises UsageError."""
    try:
        return read_regular(path, LARGEST_SETTINGS).decode("utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from error


def _drops_our_codes(tool: dict[str, object]) -> bool:
    """Whether ruff is set up here and has not been told of foreign codes."""
    ruff = tool.get("ruff")
    if not isinstance(ruff, dict):
        return False
    lint = ruff.get("lint", {})
    external = lint.get("external", ()) if isinstance(lint, dict) else ()
    return not any(str(prefix).startswith("DEV") for prefix in external)

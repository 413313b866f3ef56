"""`devlint init`: add the settings that most projects want to pyproject.toml, or write devlint.toml."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from devlint.commands import shell
from devlint.config import FILE_NAMES, parse_toml
from devlint.errors import UsageError
from devlint.fix.write import write_file
from devlint.reading import LARGEST_SETTINGS, read_regular
from devlint.terminal import Terminal

_SETTINGS = """\
torch-version = "2.7"  # the lowest version of torch that the code supports
# extend-exclude = ["third_party"]
# per-file-ignores = { "tests/*" = ["DEV1"] }
"""
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
        added = gap + f"[tool.devlint]\n{_SETTINGS}".replace("\n", ending)
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
                file.write(_SETTINGS)
        except OSError as error:
            raise UsageError(f"{target}: cannot be written: {error.strerror or error}") from error
        lines.append(f"Wrote {target}.")
    return [*lines, "", _HOOK.rstrip("\n")]


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

"""`devlint config [KEY ...]`: what settings there are; `--schema` prints them as a JSON schema for editors."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from devlint.commands import shell
from devlint.config import DEVICES, PER_FILE, SCHEMA, STRINGS, Setting, to_toml
from devlint.errors import UsageError
from devlint.names import did_you_mean
from devlint.terminal import Terminal

_EXAMPLES = {
    "targets": '"any"',
    "extend": '"../devlint.toml"',
    "required-version": '">=0.1,<1"',
    "select": '["DEV1", "DEV2"]',
    "severity": '{ DEV2 = "error", unregistered-tensor = "info" }',
    "per-file-ignores": '{ "tests/*" = ["DEV101"] }',
    "functions": '{ "project.utils.to_device" = { moves = 0, to = 1 } }',
    "torch-version": '"2.9"',
    "min-severity": '"warning"',
    "include": '["src/", "*.py"]',
    "extend-include": '["*.pyt", "tools/launch"]',
    "exclude": '["third_party", "*_pb2.py"]',
    "extend-exclude": '["third_party", "*_pb2.py"]',
    "plugins": '["acme"]',
    "output-format": '"concise"',
    "cache-dir": '"~/.cache/devlint"',
}


def main(arguments: Sequence[str]) -> int:
    """Run `devlint config` and return the exit code."""
    return shell.run(parser(), arguments, _show)


def _show(args: argparse.Namespace, terminal: Terminal) -> None:
    chosen = [_find(key) for key in args.keys]
    if args.schema:
        terminal.print(json.dumps(json_schema(), indent=2))
    elif args.output_format == "json":
        terminal.print(json.dumps([_row(setting) for setting in chosen or SCHEMA], indent=2))
    elif chosen:
        terminal.print("\n\n".join(_page(setting, terminal) for setting in chosen))
    else:
        width = max(len(setting.key) for setting in SCHEMA)
        for setting in SCHEMA:
            terminal.print(f"{terminal.style.bold(setting.key.ljust(width))}  {setting.doc}")


def parser() -> argparse.ArgumentParser:
    """The parser of `devlint config`."""
    result = shell.Parser(
        prog="devlint config",
        description="List or explain the settings for [tool.devlint] in pyproject.toml and for devlint.toml.",
        allow_abbrev=False,
    )
    result.add_argument(
        "keys", nargs="*", metavar="KEY", help="a setting to explain, such as select (default: list all settings)"
    )
    result.add_argument(
        "--output-format", choices=("text", "json"), default="text", help="the output format (default: text)"
    )
    result.add_argument("--schema", action="store_true", help="print the JSON schema of devlint.toml")
    shell.add_color(result)
    return result


def json_schema() -> dict[str, Any]:
    """The settings as a JSON schema (draft 7) of `devlint.toml` and of the table `tool.devlint`."""
    properties = {}
    for setting in SCHEMA:
        row: dict[str, Any] = {"description": setting.doc, **setting.kind.schema}
        if setting.default is not None:
            row["default"] = _json_value(setting)
        properties[setting.key] = row
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "devlint",
        "description": "Settings of devlint, a linter for device problems in PyTorch code",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def _find(key: str) -> Setting:
    by_key = {setting.key: setting for setting in SCHEMA}
    name = key.replace("_", "-")
    if name not in by_key:
        raise UsageError(f"unknown key `{key}`{did_you_mean(key, by_key)}")
    return by_key[name]


def _page(setting: Setting, terminal: Terminal) -> str:
    default = "not set" if setting.default is None else to_toml(setting, setting.default)
    return "\n".join((
        terminal.style.bold(setting.key),
        "",
        setting.doc,
        "",
        f"type: {setting.kind.text}",
        f"default: {default}",
        f"example: {setting.key} = {_example(setting)}",
        f"environment: DEVLINT_{setting.attribute.upper()}",
    ))  # fmt: skip


def _row(setting: Setting) -> dict[str, Any]:
    return {
        "key": setting.key,
        "doc": setting.doc,
        "type": setting.kind.text,
        "default": _json_value(setting),
        "example": _example(setting),
    }


def _json_value(setting: Setting) -> Any:
    """The default as JSON data."""
    default = setting.default
    if setting.kind.schema.get("type") == "object" and setting.kind is not PER_FILE:
        return {}
    if setting.kind is PER_FILE:
        return {pattern: list(rules) for pattern, rules in default or ()}  # type: ignore[attr-defined]
    if isinstance(default, tuple) and setting.kind not in (STRINGS, DEVICES):
        return ".".join(map(str, default))
    return list(default) if isinstance(default, tuple) else default


def _example(setting: Setting) -> str:
    given = _EXAMPLES.get(setting.key)
    if given is not None:
        return given
    if isinstance(setting.default, bool):
        return "false" if setting.default else "true"
    return '["DEV101"]' if setting.kind is STRINGS else to_toml(setting, setting.default)

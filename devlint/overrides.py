"""Settings from outside the configuration files: `--config "key = value"` and environment variables.

`DEVLINT_` and the name of an option of `devlint check` or of a setting, in capitals with underscores, stands for it
where neither the option nor the file's key is wanted on every call: DEVLINT_OUTPUT_FORMAT, DEVLINT_NO_CACHE,
DEVLINT_TORCH_VERSION. An option on the command line outranks the environment, which outranks the files.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from devlint.config import BOOLEAN, DEVICES, SCHEMA, STRINGS, Setting, parse_toml
from devlint.errors import UsageError
from devlint.names import did_you_mean

PREFIX = "DEVLINT_"
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")
_NOT_MIRRORED = ("help", "paths", "config")


def read_config_options(given: Sequence[str]) -> tuple[Path | None, dict[str, Any]]:
    """The file and the settings, by attribute, that the `--config` options give. Raises UsageError."""
    file: Path | None = None
    values: dict[str, Any] = {}
    for text in given:
        if "=" not in text or os.path.exists(text):
            if file is not None:
                raise UsageError(f"--config: two files: {file} and {text}")
            file = Path(os.path.abspath(text))
        else:
            values.update(_from_text(text))
    return file, values


def _from_text(text: str) -> dict[str, Any]:
    table = parse_toml(text, f"--config: `{text}` is neither a file nor a TOML setting such as `key = true`")
    by_key = {setting.key: setting for setting in SCHEMA}
    values = {}
    for key, value in table.items():
        if key not in by_key:
            raise UsageError(f"--config: unknown key `{key}`{did_you_mean(key, by_key)}")
        values[by_key[key].attribute] = _read(by_key[key], value, f"--config: `{key}`")
    return values


def settings_from_environment(environ: Mapping[str, str], options: argparse.ArgumentParser) -> dict[str, Any]:
    """The settings, by attribute, that environment variables give and no option does. Raises UsageError."""
    if not any(name.startswith(PREFIX) for name in environ):
        return {}
    taken = {action.dest for action in options._actions}
    values = {}
    for setting in SCHEMA:
        name = PREFIX + setting.attribute.upper()
        if name in environ and setting.attribute not in taken:
            values[setting.attribute] = _read(setting, _toml_value(setting, environ[name], name), name)
    return values


def options_from_environment(environ: Mapping[str, str], options: argparse.ArgumentParser) -> None:
    """Make environment variables the defaults of the options. Raises UsageError for a value that does not fit."""
    if not any(name.startswith(PREFIX) for name in environ):
        return
    for action in options._actions:
        name = PREFIX + _variable(action)
        if action.dest in _NOT_MIRRORED or name not in environ:
            continue
        options.set_defaults(**{action.dest: _option(action, environ[name], name)})


def _variable(action: argparse.Action) -> str:
    """The name of an option's variable without the prefix: that of its first long spelling."""
    long = next((word for word in action.option_strings if word.startswith("--")), action.dest)
    return long.lstrip("-").replace("-", "_").upper()


def _option(action: argparse.Action, text: str, name: str) -> Any:
    if action.nargs == 0:
        value = _truth(text, name)
        if isinstance(action, argparse.BooleanOptionalAction):
            return value
        return action.const if value else action.default
    if action.choices is not None and text not in action.choices:
        known = [str(choice) for choice in action.choices]
        raise UsageError(f"{name}: expected one of {', '.join(known)}, not `{text}`{did_you_mean(text, known)}")
    if callable(action.type):
        try:
            return action.type(text)
        except (argparse.ArgumentTypeError, ValueError) as error:
            raise UsageError(f"{name}: {error}") from None
    if type(action) is not argparse._StoreAction:  # those that collect: as if the option had been given once
        namespace = argparse.Namespace(**{action.dest: None})
        action(argparse.ArgumentParser(), namespace, text)
        return getattr(namespace, action.dest)
    return text


def _truth(text: str, name: str) -> bool:
    if text.lower() not in _TRUE + _FALSE:
        raise UsageError(f"{name}: expected true or false, not `{text}`")
    return text.lower() in _TRUE


def _toml_value(setting: Setting, text: str, name: str) -> object:
    """The text of a variable as the TOML value of a setting: lists by commas, tables as TOML writes them."""
    if setting.kind is BOOLEAN:
        return _truth(text, name)
    if setting.kind in (STRINGS, DEVICES):
        return [part.strip() for part in text.split(",") if part.strip()]
    if setting.kind.schema.get("type") == "object":
        return parse_toml(f"value = {text}", f"{name}: not a TOML table")["value"]
    return text


def _read(setting: Setting, value: object, where: str) -> object:
    try:
        return setting.kind.read(value)
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from None

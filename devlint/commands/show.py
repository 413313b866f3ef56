"""What `devlint --show-settings` prints: the settings of a file as TOML, each with its documentation."""

from __future__ import annotations

from devlint.config import SCHEMA, to_toml
from devlint.discover import Target
from devlint.terminal import printable


def settings_lines(target: Target) -> list[str]:
    """The settings in force for a file, and the file that they come from."""
    config = target.config
    lines = [f"# settings of {printable(target.name)}"]
    lines.append(f"# from {printable(str(config.path))}" if config.path is not None else "# no configuration file")
    for setting in SCHEMA:
        value = getattr(config, setting.attribute)
        lines += ["", f"# {setting.doc}"]
        lines.append(f"# {setting.key} is not set" if value is None else f"{setting.key} = {to_toml(setting, value)}")
        if setting.attribute == "torch_version" and value is None:
            major, minor = config.lowest_torch
            whose = (
                "from the project's packaging files"
                if config.states_torch
                else "assumed, because no file names a version"
            )
            lines.append(f"# in force: {major}.{minor} ({whose})")
    return lines

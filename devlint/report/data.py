"""JSON for a service: in ASCII, and without what makes the service that keeps the log take it for a command."""

from __future__ import annotations

import json
import re

#: `##vso[`, `##[` and the like within a text, where JSON may write the second sign as an escape.
_COMMAND = re.compile(r"(?<=#)#(?=\w*\[)")


def as_json(value: object, indent: int | None = None) -> str:
    """A value as JSON, on one line or indented."""
    text = json.dumps(value, indent=indent)
    return _COMMAND.sub(r"\\u0023", text) if "##" in text else text

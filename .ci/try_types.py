"""Checks the types of the package of rules in docs/writing-a-rule.md against the installed devlint: `.ci/release` runs it."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

GUIDE = Path(__file__).parents[1] / "docs" / "writing-a-rule.md"


def main() -> int:
    """The exit code of mypy."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in re.findall(r"^`([\w./-]+)`:\n\n```\w+\n(.*?)```", GUIDE.read_text("utf-8"), re.S | re.M):
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", f"{folder}/cache", "acme_rules"]
        return subprocess.run(command, cwd=folder, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

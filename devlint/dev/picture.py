"""Draws a run of devlint as a picture of a terminal: `python -m devlint.dev.picture docs/pictures/terminal.png PATH ...`.

Needs Chromium. The picture shows the command `devlint PATH ...` and its report, in colour.
"""

from __future__ import annotations

import argparse
import html
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

_COLUMN, _ROW, _EDGE = 8.43, 20, 16  # pixels of a letter at 14 pixels, of a line, and around the text
_COLORS = {"31": "#c01c28", "32": "#26a269", "34": "#1a5fb4", "36": "#0b7285"}
_STYLE = re.compile(r"\x1b\[([0-9;]*)m")
_PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; background: #fbfbfa; color: #1f2328 }}
pre {{ margin: {edge}px; font: 14px/{row}px "DejaVu Sans Mono", monospace }}
</style><pre>{text}</pre>
"""


def as_html(text: str) -> str:
    """Text with the colours that devlint writes, as HTML."""
    found = []
    is_open = False
    for index, part in enumerate(_STYLE.split(text)):
        if index % 2 == 0:
            found.append(html.escape(part, quote=False))
            continue
        found.append("</span>" if is_open else "")
        codes = part.split(";")
        rules = ["font-weight:bold"] if "1" in codes else []
        rules += [f"color:{_COLORS[code]}" for code in codes if code in _COLORS]
        is_open = bool(rules)
        found.append(f'<span style="{";".join(rules)}">' if rules else "")
    return "".join(found) + ("</span>" if is_open else "")


def report(arguments: Sequence[str]) -> str:
    """The command, and what it prints."""
    command = [sys.executable, "-m", "devlint", "--isolated", "--no-cache", "--exit-zero", "--color=always", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return f"$ devlint {' '.join(arguments)}\n{done.stdout}".rstrip("\n")


def draw(text: str, target: Path) -> int:
    """Write the picture. Exit code of Chromium; 2 when it is not there."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.stderr.write("needs Chromium\n")
        return 2
    plain = _STYLE.sub("", text).split("\n")
    width = round(max(map(len, plain)) * _COLUMN) + 2 * _EDGE
    height = len(plain) * _ROW + 2 * _EDGE
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        page.write_text(_PAGE.format(edge=_EDGE, row=_ROW, text=as_html(text)), encoding="utf-8")
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={width},{height}"]
        command = [browser, *options, f"--screenshot={target.resolve()}", page.as_uri()]
        return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m devlint.dev.picture", description="Draw a run of devlint.")
    parser.add_argument("target", type=Path, help="the picture")
    parser.add_argument("arguments", nargs="+", help="arguments of devlint")
    given = parser.parse_args(arguments)
    return draw(report(given.arguments), given.target)


if __name__ == "__main__":
    sys.exit(main())

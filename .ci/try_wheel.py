"""Tries the devlint that is installed beside this interpreter, as a user does who has nothing else: `.ci/release` runs it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from importlib.metadata import distribution
from pathlib import Path

BAD = 'import torch\n\nx = torch.zeros(3).to("cuda")\n'
GOOD = 'import torch\n\nx = torch.zeros(3, device="cuda")\n'
LINT = """
import sys
from devlint.cli import main
code = main(["check", "--isolated", "--no-cache", "bad.py"])
print(*sorted(sys.modules), file=sys.stderr)
sys.exit(code)
"""


def devlint(where: Path, *arguments: str, code: int) -> str:
    """The output of the installed command, which has to end with `code`."""
    command = [str(Path(sys.executable).with_name("devlint")), *arguments]
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout


def main() -> None:
    """Raises AssertionError where something does not work."""
    installed = distribution("devlint")
    files = {str(path) for path in installed.files or ()}
    assert {"devlint/py.typed", "devlint/_rules/py.typed"} <= files
    tops = {path.split("/")[0] for path in files if not path.startswith("..")}
    assert tops == {"devlint", f"devlint-{installed.version}.dist-info"}, tops
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        (where / "bad.py").write_text(BAD)
        assert devlint(where, "--version", code=0) == f"devlint {installed.version}\n"
        assert "What it flags" in devlint(where, "rule", "--isolated", "DEV501", code=0)
        rows = json.loads(devlint(where, "--isolated", "--select=DEV501", "--output-format=json", "bad.py", code=1))
        assert [row["code"] for row in rows] == ["DEV501"]
        lint = subprocess.run([sys.executable, "-c", LINT], cwd=where, capture_output=True, text=True, check=False)
        assert lint.returncode == 1 and not {"torch", "rich"} & set(lint.stderr.split()), lint.stderr
        devlint(where, "--isolated", "--select=DEV501", "--fix", "bad.py", code=0)
        assert (where / "bad.py").read_text() == GOOD
        (where / "a.md").write_text(f"```python\n{BAD}```\n")
        assert "DEV501" in devlint(where, "--isolated", "--select=DEV501", "a.md", code=1)
        assert "rich" not in {each.lower() for each in installed.requires or ()}
    names = {(each.group, each.name) for each in installed.entry_points}
    assert names == {("console_scripts", "devlint"), ("flake8.extension", "DEV"), ("pytest11", "devlint")}, names
    print(f"devlint {installed.version} works on Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()

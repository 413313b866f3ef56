"""How long a report is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_finding_takes_at_most_eight_rows_on_average() -> None:
    """Over programs that can be run, with the places that explain each finding and with its fix."""
    command = [sys.executable, "-m", "devlint", "check", "--isolated", "--no-cache", "fixtures/runtime"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    text = done.stdout.partition("\n\n")[2].partition("\nFound ")[0]  # without the table before, and the counts after
    findings = len(re.findall(r"(?m)^DEV\d{3} ", text))
    rows = sum(1 for line in text.splitlines() if line)
    assert findings > 50
    assert rows / findings <= 8, f"{rows} rows for {findings} findings"

"""`devlint report FILE:LINE`: the example shows what the file shows, is small, and names nothing of the file."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from devlint.minimal.anonymous import anonymous
from devlint.minimal.shrink import Shrinker, statement_at
from tests.conftest import Run

LOOP = '''"""Secret study of patients."""
import os
import torch
from torch import nn
from torch.utils.data import DataLoader

HOSPITAL = "st-mary"


def banner(text):
    print(text)


def train(patients, weeks=3):
    """Trains it."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    tumour_net = nn.Linear(8, 2).to(device)
    loader = DataLoader(patients, batch_size=4)
    for week in range(weeks):
        banner(f"week {week} of {HOSPITAL}")
        for scans, labels in loader:
            if len(scans) > 1:
                guess = tumour_net(scans)
                banner("seen")
            os.makedirs("/data/st-mary", exist_ok=True)
    return tumour_net
'''
SECRETS = re.compile(r"patient|hospital|mary|tumour|scans|week|Secret|banner|seen", re.IGNORECASE)


def line_of(text: str, part: str) -> int:
    return next(row for row, line in enumerate(text.splitlines(), 1) if part in line)


def report(run: Run, text: str, part: str, *more: str) -> str:
    Path("study.py").write_text(text, encoding="utf-8")
    done = run("report", f"study.py:{line_of(text, part)}", *more)
    assert done.code == 0, done.err
    return done.out


def program(out: str) -> str:
    return out.partition("```python\n")[2].partition("```")[0]


def found_in(run: Run, out: str) -> list[str]:
    """The codes that a check of the example by itself finds."""
    Path("apart").mkdir()
    Path("apart/example.py").write_text(program(out), encoding="utf-8")
    done = run("check", "--no-cache", "--output-format", "concise", "apart/example.py", "--exit-zero")
    return re.findall(r"^\S+: (DEV\d+)", done.out, re.MULTILINE)


def test_the_example_shows_the_finding_by_itself(run: Run) -> None:
    out = report(run, LOOP, "guess = tumour_net(scans)")
    assert out.startswith("**DEV103 module-input-device**: a finding\n")
    assert "DEV103" in found_in(run, out)


def test_the_example_is_small_and_names_nothing(run: Run) -> None:
    out = report(run, LOOP, "guess = tumour_net(scans)")
    assert len(program(out).splitlines()) <= 11
    assert SECRETS.search(out) is None


def test_why_versions_and_settings_stand_below(run: Run) -> None:
    Path("devlint.toml").write_text('torch-version = "2.5"\n')
    out = report(run, LOOP, "guess = tumour_net(scans)")
    assert re.search(r"^  line \d+: its batches come from host memory$", out, re.MULTILINE)
    assert re.search(r"^  \w+, (certain|assume)", out, re.MULTILINE)
    assert re.search(r"^devlint [\d.]+, Python [\d.]+, \w+ \w+, torch ", out, re.MULTILINE)
    assert "`torch-version = 2.5`" in out


def test_a_silence_keeps_what_defines_the_operands(run: Run) -> None:
    text = (
        "import torch\nfrom clinic import load_scan\n\n\ndef other():\n    return 1\n\n\n"
        "tumour = load_scan('mary')\nshift = torch.ones(3)\nother()\nseen = tumour + shift\nprint(seen)\n"
    )
    out = report(run, text, "seen = tumour")
    assert out.startswith("**A missed bug**\n")
    assert [type(node).__name__ for node in ast.parse(program(out)).body] == ["Import", "ImportFrom", *["Assign"] * 3]
    assert "devlint finds nothing here" in out
    assert "one operand is unknown" in out or "does not know where" in out
    assert SECRETS.search(out) is None and "clinic" not in out and "load_scan" not in out


def test_a_finding_that_a_comment_silences(run: Run) -> None:
    text = "import torch\n\nx = torch.zeros(3).to('cuda')  # devlint: ignore[DEV501] known\n"
    assert report(run, text, "x =").startswith("**DEV501 ")


def test_strings_that_matter_stay(run: Run) -> None:
    out = report(run, "import torch\n\nname = 'mary'\nx = torch.zeros(3).to('cuda')\nprint(name, x)\n", "x =")
    assert "'cuda'" in program(out) and "mary" not in out


def test_a_finding_that_needs_another_file(run: Run) -> None:
    Path("pyproject.toml").write_text("[project]\nname = 'a'\n")
    Path("steps.py").write_text("import torch\n\n\ndef card():\n    return torch.ones(3, device='cuda')\n")
    out = report(run, "import torch\nfrom steps import card\n\ny = card() + torch.ones(3)\n", "y =")
    assert "DEV1" in out
    assert "The finding depends on other files of the project" in out


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("study.py", "expected FILE:LINE"),
        ("study.py:99", "no statement stands there"),
        ("study.ipynb:1", "Python files"),
        ("broken.py:1", "broken.py:1"),
        ("gone.py:1", "gone.py"),
    ],
)
def test_a_place_that_is_none(run: Run, place: str, said: str) -> None:
    Path("study.py").write_text("x = 1\n")
    Path("broken.py").write_text("def (:\n")
    Path("study.ipynb").write_text("{}")
    done = run("report", place)
    assert done.code == 2
    assert said in done.err


# -- shrinking -------------------------------------------------------------------------------------------------------------


def shrunk(text: str, part: str, needs: str) -> str:
    """What is left of a text that has to hold some words and the statement with `part`."""
    shrinker = Shrinker(ast.parse(text), line_of(text, part), lambda text, row: needs in text, 20)
    shrinker.run()
    assert shrinker.is_done
    assert part in shrinker.text.splitlines()[shrinker.row - 1]
    return shrinker.text


def test_statements_that_do_not_matter_go() -> None:
    assert shrunk("a = 1\nb = 2\nc = 3\nprint(c)\nd = 4\n", "print(c)", "print(c)") == "c = 3\nprint(c)\n"


def test_holders_give_way_to_their_body() -> None:
    text = "def f():\n    for i in range(3):\n        with open('x') as g:\n            if i:\n                run()\n"
    assert shrunk(text, "run()", "") == "run()\n"


def test_what_is_needed_stays_around() -> None:
    assert (
        shrunk("def f():\n    if a:\n        run()\n    else:\n        b()\n", "run()", "if a") == "if a:\n    run()\n"
    )


def test_arguments_become_an_ellipsis_and_keywords_go() -> None:
    assert shrunk("x = 3\nrun(x, 1, key=x)\n", "run(", "run") == "run(..., 1)\n"


def test_the_time_is_kept() -> None:
    shrinker = Shrinker(ast.parse("a = 1\nb = 2\n"), 2, lambda text, row: True, 0)
    shrinker.run()
    assert (shrinker.is_done, shrinker.text) == (False, "a = 1\nb = 2\n")


def test_the_innermost_statement_of_a_row() -> None:
    tree = ast.parse("def f():\n    x = [\n        1,\n    ]\n")
    assert isinstance(statement_at(tree, 3), ast.Assign)


# -- names -----------------------------------------------------------------------------------------------------------------


def test_names_change_together() -> None:
    text = "class Net:\n    def run(self, deep):\n        self.deep = deep\n        return self.run(deep=deep)\n"
    assert anonymous(text, lambda _: True) == (
        "class Class1:\n\n    def method1(self, argument1):\n        self.attribute1 = argument1\n"
        "        return self.method1(argument1=argument1)\n"
    )


def test_public_names_stay() -> None:
    text = "import os\nimport torch\nfrom numpy import array\nprint(torch.zeros(3), os.sep, array)\n"
    assert anonymous(text, lambda _: True) == text


def test_packages_that_nobody_knows_get_other_names() -> None:
    text = "import clinic.scans\nfrom ward import bed\nprint(clinic.scans, bed)\n"
    assert re.search("clinic|ward|bed", anonymous(text, lambda _: True)) is None


def test_a_name_that_matters_stays_alone() -> None:
    done = anonymous("forward = 1\nsecret = 'word'\nprint(forward, secret)\n", lambda text: "forward" in text)
    assert done == "forward = 1\nname2 = 'text1'\nprint(forward, name2)\n"


def test_names_of_exceptions_and_globals() -> None:
    text = "def f():\n    global secret\n    try:\n        secret = 1\n    except OSError as bad:\n        print(bad)\n"
    assert re.search("secret|bad", anonymous(text, lambda _: True)) is None

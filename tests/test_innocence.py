"""What a program does not say does not change what is found in it: a few snippets under drawn variations.

`benchmarks/innocence.py` goes through all of them; here stand the groups that must never flip.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import devlint.project_files
from devlint.cli import main

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from innocence import differences, own_attributes, own_names, with_new_names
from innocence_snippets import SNIPPETS
from innocence_variations import ARGUABLE, Project, renamed, subject, variations_of

CHOSEN = ("mixed_add", "new_tensor_forward", "loader_left_behind", "index_mismatch", "host_conversion", "discarded_to")
GROUPS = ("blank", "comment on each line", "comment on top", "docstring", "second file", "folder", "annotation")


def codes(folder: Path, project: Project, capsys: pytest.CaptureFixture[str]) -> Counter[str]:
    """How often each rule of the device family names a line of the program itself."""
    (folder / ".git").mkdir(parents=True)
    for way, text in project.items():
        path = folder / way
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    capsys.readouterr()
    main(["check", "--isolated", "--no-cache", "-j", "1", "--select", "DEV1", "--output-format", "json", str(folder)])
    own = str(folder / subject(project))
    return Counter(row["code"] for row in json.loads(capsys.readouterr().out) if row["filename"] == own)


@pytest.mark.parametrize("name", CHOSEN)
def test_a_variation_changes_nothing(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devlint.project_files, "FRESH", -1.0)
    source = SNIPPETS[name][1]
    innocent = [(way, p) for way, p in variations_of(source) if way.startswith(GROUPS) and way not in ARGUABLE]
    base = codes(tmp_path / "base", {"train.py": source}, capsys)
    assert base

    @settings(
        max_examples=12,
        derandomize=True,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(st.sampled_from(innocent))
    def stays(variation: tuple[str, Project]) -> None:
        folder = tmp_path / os.urandom(8).hex()
        assert codes(folder, variation[1], capsys) == base, variation[0]

    stays()


def test_a_renamed_name_keeps_keywords_and_attributes_of_its_spelling() -> None:
    assert renamed("x = f(x=1).x\n", "x", "y") == "y = f(x=1).x\n"


def test_a_program_is_told_from_the_files_beside_it() -> None:
    assert subject({"lib/train.py": "", "train.py": ""}) == "train.py"
    assert subject({"gpu.py": ""}) == "gpu.py"


def test_what_others_may_reach_by_name_is_not_renamed() -> None:
    import ast

    tree = ast.parse(
        "import torch\ndef load(path, *, size=1):\n    rows = path\n    return rows\nload(1, size=2)\n"
        "class A(torch.nn.Module):\n    def forward(self, x):\n        self.kept = x\n        return self.kept\n"
        "class B(Unknown):\n    def go(self, x):\n        self.other = x\n        return self.other\n"
    )
    assert own_names(tree) == {"load", "path", "rows", "A", "B"}
    assert own_attributes(tree) == {"kept"}


def test_a_renamed_file_has_the_same_rows() -> None:
    made = with_new_names("def f(a):\n    b = a + 1\n    return b\n")
    assert made is not None
    assert made[2] == 3
    assert made[0].count("\n") == made[1].count("\n")


def test_an_inserted_line_may_bring_a_finding_of_its_own() -> None:
    from sides import Finding

    extra = [Finding("train.py", 1, 1, "DEV205", "-", "warning", "")]
    assert differences([], extra, inserted=True) == (Counter(), Counter())
    assert differences([], extra, inserted=False)[1] == Counter({"DEV205": 1})

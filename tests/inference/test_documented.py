"""What the guides say of the new inference is so: their examples find what they say."""

from __future__ import annotations

import re
from pathlib import Path

from devlint.inference.terms.conditions import WIDTH
from devlint.inference.terms.places import LIMIT
from tests.inference.cases import PRELUDE, findings

DOCS = Path(__file__).parents[2] / "docs"


def section(file: str, title: str) -> str:
    text = (DOCS / file).read_text(encoding="utf-8")
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.S | re.M)
    assert found is not None
    return found[1]


def blocks(file: str, title: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", section(file, title), re.S)


def test_example_of_a_condition_is_found_where_the_guide_says() -> None:
    text = "import torch\n" + blocks("how-it-decides.md", "The new inference")[0]
    (found,) = findings(text)
    assert "# bias: on the CPU" in text.splitlines()[found.line - 1]
    assert found.when == "`use_gpu` is false"


def test_example_of_a_call_that_cannot_be_read_is_silent() -> None:
    before = "from somewhere import Engine\n\nmodel = nn.Linear(3, 2)\n"
    assert findings(PRELUDE + before + blocks("how-it-decides.md", "The new inference")[1]) == []


def test_limits_are_those_of_the_guide() -> None:
    text = section("how-it-decides.md", "The new inference")
    words = {4: "four", 6: "six"}
    assert f"at most {words[LIMIT]} alternatives" in text
    assert f"at most {words[WIDTH]} tests" in re.sub(r"\s+", " ", text)


def test_examples_of_evidence_have_the_evidence_of_their_row() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| [^|]+ \| `([^|`]+)` \|$", section("how-it-decides.md", "The new inference"), re.M
    )
    assert [name for name, _ in rows] == ["named", "called", "contract"]
    helper = "def add_noise(x: torch.Tensor):\n    return x + torch.rand(3)\n\n"
    for name, code in rows:
        (found,) = findings(PRELUDE + (helper if "add_noise" in code else "") + code + "\n")
        assert found.evidence == name

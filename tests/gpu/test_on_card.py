"""Every training loop of fixtures/runtime, verified on the accelerator of this machine.

`pytest -m gpu` stores what came out under benchmarks/gpu/, by torch version and card; without a card it skips.
"""

from __future__ import annotations

import datetime
import json
import platform
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devlint import __version__
from devlint.runtime.processes import Launcher
from devlint.runtime.report import as_json
from devlint.runtime.verify import Request, Runner, find_with_linter, verify

tomllib = pytest.importorskip("tomllib")  # Python 3.11 and later
pytestmark = pytest.mark.gpu

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "fixtures" / "runtime"
RESULTS = ROOT / "benchmarks" / "gpu"
LOOPS = sorted(path.stem for path in PROGRAMS.glob("*.toml"))


@pytest.fixture(scope="module")
def card() -> dict[str, Any]:
    """Kind, name and number of the cards; skips where there is none."""
    torch = pytest.importorskip("torch")
    for kind in ("cuda", "xpu", "mps"):
        module = getattr(torch, kind, None)
        if module is not None and module.is_available():
            name = module.get_device_name(0) if hasattr(module, "get_device_name") else platform.processor()
            return {"kind": kind, "name": str(name), "count": module.device_count(), "torch": torch.__version__}
    pytest.skip(f"torch {torch.__version__} finds no accelerator on this machine")


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    with Launcher() as made:
        yield made


@pytest.fixture(scope="module")
def rows(card: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """What the tests of this module measure; written to a file at the end."""
    made: list[dict[str, Any]] = []
    yield made
    if made:
        name = re.sub(r"[^\w.]+", "-", f"{card['torch']}-{card['name']}")
        facts = {
            "torch": card["torch"],
            "card": card["name"],
            "cards": card["count"],
            "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
            "python": platform.python_version(),
            "devlint": __version__,
            "loops": made,
        }
        RESULTS.joinpath(f"{name}.json").write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", "utf-8")


@pytest.mark.parametrize("loop", LOOPS)
def test_loop_on_card(loop: str, card: dict[str, Any], launcher: Launcher, rows: list[dict[str, Any]]) -> None:
    expected = tomllib.loads((PROGRAMS / f"{loop}.toml").read_text(encoding="utf-8"))
    needed = expected.get("cards", 1)
    if card["count"] < needed:
        rows.append({"loop": loop, "skipped": f"needs {needed} cards"})
        pytest.skip(f"needs {needed} cards, this machine has {card['count']}")
    path = PROGRAMS / f"{loop}.py"
    text, find = find_with_linter(path, tuple(expected.get("select", ())), ())
    request = Request(str(path), device=card["kind"], timeout=120.0)
    report = verify(request, text, find(text), Runner(request, launcher), find)
    row = json.loads(as_json(report).replace(json.dumps(f"{ROOT}/")[1:-1], ""))  # the same on every machine
    rows.append({"loop": loop, "runs": row["runs"], "fixes": row["fixes"]})
    seen = [(fix.case.code, fix.start.row, fix.judgement.verdict.value) for fix in report.fixes]
    assert seen == [(fix["code"], fix["line"], fix.get("on_card", fix["verdict"])) for fix in expected.get("fix", [])]

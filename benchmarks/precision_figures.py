"""How many findings of DEV1 and DEV3 in other people's code hold, summed over the readings in precision/.

Usage: python benchmarks/precision_figures.py

A reader judged each finding twice: whether what the message says of the code holds, and whether the project's own callers
bring the failure about (*true*). Readings without both verdicts are left out, and so are those of the people who mended
the causes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

READINGS = Path(__file__).with_name("precision")


def heads() -> list[dict[str, Any]]:
    """The heads of the readings with both verdicts."""
    found = (json.loads(path.read_text(encoding="utf-8"))["head"] for path in sorted(READINGS.glob("dev1_dev3*.json")))
    return [head for head in found if "true" in head and "holding" in head]


def main() -> None:
    read = heads()
    print(f"{len(read)} readings")
    groups = {"all": read} | {name: [head["by_certainty"][name] for head in read] for name in ("certain", "assume")}
    for name, rows in groups.items():
        judged, holding, true = (sum(row[key] for row in rows) for key in ("judged", "holding", "true"))
        print(f"{name:8} {holding} of {judged} hold ({holding / judged:.0%}), {true} are true ({true / judged:.0%})")


if __name__ == "__main__":
    main()

"""What the parts of `benchmarks/golden_cuda.py` share: rows of results, and the place where torch's CUDA calls go."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

ROOT = Path(__file__).resolve().parents[2]


def put(rows: TextIO, index: int, **fields: Any) -> None:
    """Add the result of an entry. With `real` and `simulated` it says whether they agree, unless `agrees` is given."""
    if "real" in fields and "simulated" in fields:
        fields.setdefault("agrees", fields["real"] == fields["simulated"])
    rows.write(json.dumps({"index": index, **fields}, ensure_ascii=False) + "\n")
    rows.flush()


def read(file: Path) -> list[dict[str, Any]]:
    """The rows of a file, without a last line that a crash cut off."""
    found = []
    for line in file.read_text(encoding="utf-8").splitlines():
        with contextlib.suppress(ValueError):
            found.append(json.loads(line))
    return found


def is_lost(error: BaseException | str | None) -> bool:
    """Whether this process can no longer use the card."""
    text = str(error)
    return "CUDA error" in text and "invalid device ordinal" not in text


@contextlib.contextmanager
def card(rehearse: bool, cards: int = 2) -> Iterator[None]:
    """The real card, which is simply there, or simulated ones."""
    if not rehearse:
        yield
        return
    from devlint.runtime.simulator import DeviceSpec, simulate

    with simulate(DeviceSpec("cuda", cards)):
        yield

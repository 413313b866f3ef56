"""Runs one training program on stand-ins for its data, and writes the value of every loss it goes back from.

    python start.py PLAN SCRIPT ARGUMENTS...

PLAN is a JSON file: `losses` (where to write them), `standin` (a Python file that is run first, or ""), `absent` (modules
to replace by objects that accept everything), `steps` (how many optimizer steps until the program is ended, 0: it ends
by itself), `current` (the number of the card that is made current first) and perhaps `files` (the files of the program:
what an earlier run has left beside them is removed). Everything is seeded, and loaders work in this process.
"""

from __future__ import annotations

import contextlib
import json
import random
import runpy
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock


def remove_others(files: set[str]) -> None:
    """Leave these files alone in the working folder. A folder that holds none of them goes as well."""
    for path in sorted(Path().rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            with contextlib.suppress(OSError):  # not empty
                path.rmdir()
        elif str(path) not in files:
            path.unlink()


def main() -> None:
    plan: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    script = sys.argv[2]
    sys.argv = sys.argv[2:]
    if "files" in plan:
        remove_others(set(plan["files"]))
    sys.path[0] = str(Path(script).resolve().parent)
    for name in plan["absent"]:
        sys.modules[name] = MagicMock(name=name)

    import numpy as np
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    losses: list[float] = []
    backward = torch.Tensor.backward

    def recorded(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        losses.append(float(self.detach().double().cpu().sum()))
        return backward(self, *args, **kwargs)

    torch.Tensor.backward = recorded  # type: ignore[method-assign]
    taken = 0

    def count(*_: Any) -> None:
        nonlocal taken
        taken += 1
        if taken == plan["steps"]:
            raise SystemExit(0)

    register_optimizer_step_post_hook(count)
    start = torch.utils.data.DataLoader.__init__

    def alone(self: Any, *args: Any, **kwargs: Any) -> None:
        start(self, *args, **{**kwargs, "num_workers": 0})

    torch.utils.data.DataLoader.__init__ = alone  # type: ignore[method-assign]
    if plan["current"]:
        torch.accelerator.set_device_index(plan["current"])
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    if plan["standin"]:
        runpy.run_path(plan["standin"])
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        Path(plan["losses"]).write_text(json.dumps(losses), encoding="utf-8")


main()

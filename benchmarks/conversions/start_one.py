"""Runs one program without its data, and writes how it ended and whether something was moved to a device.

    python start_one.py REPORT SCRIPT [DRIVER]

DRIVER holds lines that call what a file defines that runs nothing by itself; `PLACE` in them is where the run's tensors are.
Modules that are not there are replaced by objects that accept everything, loaders give two batches in this process, and
the program ends after two optimizer steps.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import random
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar
from unittest.mock import MagicMock

STEPS = 2


class _Accepts(MagicMock):
    """A module that is not there."""

    __path__: ClassVar[list[str]] = []
    __all__: ClassVar[list[str]] = []


class _Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last finder: finds every module, and makes one that accepts everything."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.split(".")[0] in ("torch", "numpy", "devlint"):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Any:
        return _Accepts(name=spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def main() -> None:
    report, script, driver = Path(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else ""
    sys.argv = [script]
    sys.path[0] = str(Path(script).parent)

    import numpy as np
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    sys.meta_path.append(_Absent())
    counts = {"moved": 0, "steps": 0}

    def counted(owner: Any, name: str) -> None:
        plain = getattr(owner, name)

        def move(self: Any, *args: Any, **kwargs: Any) -> Any:
            counts["moved"] += 1
            return plain(self, *args, **kwargs)

        setattr(owner, name, move)

    for owner in (torch.Tensor, torch.nn.Module):
        for name in ("cuda", "to"):
            counted(owner, name)

    def step(*_: Any) -> None:
        counts["steps"] += 1
        if counts["steps"] == STEPS:
            raise SystemExit(0)

    register_optimizer_step_post_hook(step)
    begin = torch.utils.data.DataLoader.__init__

    def alone(self: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **{**kwargs, "num_workers": 0})

    torch.utils.data.DataLoader.__init__ = alone
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    outcome = "ended"
    try:
        if not driver:
            runpy.run_path(script, run_name="__main__")
        else:
            defined = runpy.run_path(script, run_name="driven")
            place = defined.get("device", "cuda" if torch.cuda.is_available() else "cpu")
            exec(Path(driver).read_text(encoding="utf-8"), {"torch": torch, **defined, "PLACE": place})
    except SystemExit as error:
        outcome = "ended" if error.code in (None, 0) else f"exit {error.code}"
    except BaseException as error:
        outcome = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200]
    finally:
        report.write_text(json.dumps({"outcome": f"{outcome}, {counts['steps']} steps", **counts}), encoding="utf-8")


main()

"""What the build adds to the metadata: the README as a package index shows it, and the addresses of `devlint/addresses.py`."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Hook(MetadataHookInterface):
    """Fills `readme` and `urls`, which `pyproject.toml` declares as dynamic."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        version = runpy.run_path(str(root / "devlint" / "__init__.py"))["__version__"]
        addresses = runpy.run_path(str(root / "devlint" / "addresses.py"))
        text = addresses["readme_anywhere"]((root / "README.md").read_text(encoding="utf-8"), version)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = addresses["project_urls"](version)

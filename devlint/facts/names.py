"""Which qualified name a local name stands for, from the import statements of a file."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field


@dataclass(slots=True)
class Imports:
    """The import table of one file, nested imports included.

    `names` maps a local name to what it stands for ("F" to "torch.nn.functional"). A name imported as two different
    things stands for nothing. Relative imports get a leading dot per level (".utils.move"). `stars` lists the modules
    of star imports.
    """

    names: dict[str, str] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)

    @property
    def mentions_torch(self) -> bool:
        """Whether anything of the torch family is imported."""
        return any(q.split(".", 1)[0] in FAMILY for q in (*self.names.values(), *self.stars))


#: Packages whose import means that a file handles torch objects.
FAMILY = frozenset(
    {
        "torch", "torchvision", "torchaudio", "torchtext", "torchmetrics", "lightning", "pytorch_lightning",
        "transformers", "accelerate", "ignite", "timm", "kornia", "torch_geometric", "diffusers", "monai",
    }
)  # fmt: skip


def collect_imports(tree: ast.Module) -> Imports:
    """Read every import statement, at any depth: imports inside functions, `try` and `if` count as well."""
    found = Imports()
    clashes: set[str] = set()

    def bind(local: str, target: str) -> None:
        if found.names.setdefault(local, target) != target:
            clashes.add(local)

    stack: list[ast.stmt] = list(tree.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    bind(alias.asname, alias.name)
                else:
                    root = alias.name.split(".", 1)[0]
                    bind(root, root)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            for alias in node.names:
                if alias.name == "*":
                    found.stars.append(base)
                else:
                    separator = "" if base.endswith(".") or not base else "."
                    bind(alias.asname or alias.name, f"{base}{separator}{alias.name}")
        else:
            for name in ("body", "orelse", "finalbody"):
                stack.extend(getattr(node, name, ()))
            for handler in getattr(node, "handlers", ()):
                stack.extend(handler.body)
            for case in getattr(node, "cases", ()):
                stack.extend(case.body)
    for local in clashes:
        targets = found.names[local]
        # `try: import torch.amp ... except: torch.cuda.amp` and the like: the first in the text wins only inside torch.
        if not targets.startswith("torch"):
            del found.names[local]
    return found

"""Which qualified name a local name stands for, from the import statements of a file."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from devlint.facts.text.nodes import BLOCKS, walk


@dataclass(slots=True)
class Imports:
    """The import table of one file, nested imports included.

    `names` maps a local name to what it stands for ("F" to "torch.nn.functional"). A name imported as two different
    things stands for nothing. Relative imports get a leading dot per level (".utils.move"). `stars` lists the modules
    of star imports; a file that reads `torch` or `nn` and binds it nowhere has it, and `F`, `np`, from one of those, or from
    what runs before it: a cell, or the code around a posted excerpt.
    `tried` are the local names that are imported under a `try` with a handler, or under a condition: where the name is
    missing the program goes on without it; `several` are those that are bound to different things.
    """

    names: dict[str, str] = field(default_factory=dict)
    module_level: dict[str, str] = field(default_factory=dict)  # those that every function can use
    stars: list[str] = field(default_factory=list)
    tried: set[str] = field(default_factory=set)
    several: set[str] = field(default_factory=set)

    @property
    def mentions_torch(self) -> bool:
        """Whether anything of the torch family is imported."""
        return any(q.split(".", 1)[0] in FAMILY for q in (*self.names.values(), *self.stars))


#: Packages whose import means that a file handles torch objects.
FAMILY = frozenset(
    {
        "torch", "torchvision", "torchaudio", "torchtext", "torchmetrics", "lightning", "pytorch_lightning",
        "transformers", "accelerate", "ignite", "timm", "kornia", "torch_geometric", "diffusers", "monai",
        # libraries of models and training
        "sentence_transformers", "peft", "trl", "vllm", "unsloth", "open_clip", "clip", "whisper", "ultralytics", "yolov5",
        "super_gradients", "segmentation_models_pytorch", "mmcv", "mmengine", "mmdet", "mmseg", "mmpose", "detectron2",
        "fastai",
        "fairseq", "speechbrain", "espnet2", "nemo", "TTS", "flair", "stanza", "allennlp", "pyannote", "basicsr", "facexlib",
        "gfpgan", "realesrgan", "stable_baselines3", "tianshou", "botorch", "gpytorch", "pyro", "sbi", "scvi", "dgl",
        "pytorch3d", "schnetpack",
        "pypots", "deepinv", "e3nn", "captum", "transformer_lens", "skorch", "catalyst", "compel", "controlnet_aux", "nnunetv2",
    }
)  # fmt: skip


#: The fields that hold statements, by kind of node, in the order in which imports are read: the last one first.
_HELD = {
    kind: tuple(name for name in ("body", "orelse", "finalbody", "handlers", "cases") if name in fields)
    for kind, fields in BLOCKS.items()
}
#: The statements that import, or may hold one that does.
_LEADS = {ast.Import, ast.ImportFrom, *(kind for kind, fields in _HELD.items() if fields)}


def collect_imports(tree: ast.Module) -> Imports:
    """Read every import statement, at any depth: imports inside functions, `try` and `if` count as well."""
    found = Imports()
    clashes = found.several

    def bind(local: str, target: str, top: bool) -> None:
        if top:
            found.module_level.setdefault(local, target)
        if found.names.setdefault(local, target) != target:
            clashes.add(local)

    # a statement, whether it is one of the module level, and what is around it: `try` with handlers, and conditions
    stack: list[tuple[ast.AST, bool, tuple[ast.AST, ...]]] = [(node, True, ()) for node in tree.body]
    while stack:
        node, top, around = stack.pop()
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    bind(alias.asname, alias.name, top)
                else:
                    root = alias.name.split(".", 1)[0]
                    bind(root, root, top)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            for alias in node.names:
                if alias.name == "*":
                    found.stars.append(base)
                else:
                    separator = "" if base.endswith(".") or not base else "."
                    bind(alias.asname or alias.name, f"{base}{separator}{alias.name}", top)
                    if any(isinstance(each, ast.Try) or is_asked(each) for each in around):
                        found.tried.add(alias.asname or alias.name)
        elif fields := _HELD[type(node)]:
            inner = top and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            if isinstance(node, ast.If) or (isinstance(node, ast.Try) and node.handlers):
                around = (*around, node)
            for name in fields:
                stack += [(child, inner, around) for child in getattr(node, name) if type(child) in _LEADS]
    for local in clashes:
        targets = found.names[local]
        # `try: import torch.amp ... except: torch.cuda.amp` and the like: the first in the text wins only inside torch.
        if not targets.startswith("torch"):
            del found.names[local]
    if "torch" not in found.names and (not found.mentions_torch or any(not s.startswith("torch") for s in found.stars)):
        for local, target in _handed_on(tree).items():
            bind(local, target, True)
    return found


def is_asked(node: ast.AST) -> bool:
    """Whether a statement is an `if` that asks for something, such as a version, before it imports."""
    if not isinstance(node, ast.If):
        return False
    names = {n.id if isinstance(n, ast.Name) else getattr(n, "attr", "") for n in walk(node.test)}
    return names.isdisjoint({"TYPE_CHECKING", "__name__"})


#: The names under which nearly every file of the field imports torch, numpy and matplotlib.
_CUSTOMARY = {
    "torch": "torch", "nn": "torch.nn", "F": "torch.nn.functional", "optim": "torch.optim",
    "Variable": "torch.autograd.Variable", "DataLoader": "torch.utils.data.DataLoader",
    "TensorDataset": "torch.utils.data.TensorDataset", "pl": "pytorch_lightning", "np": "numpy", "plt": "matplotlib.pyplot",
    # names of one library alone
    "PGExplainer": "torch_geometric.explain.PGExplainer", "Explainer": "torch_geometric.explain.Explainer",
    "create_supervised_trainer": "ignite.engine.create_supervised_trainer",
    "create_supervised_evaluator": "ignite.engine.create_supervised_evaluator",
}  # fmt: skip


def _handed_on(tree: ast.Module) -> dict[str, str]:
    """Customary names that a file reads and binds nowhere: a star import brings them, or the cell or file that runs before.
    Only together with `torch` or `nn`."""
    read: set[str] = set()
    bound: set[str] = set()
    for node in walk(tree):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            bound |= {(alias.asname or alias.name).split(".", 1)[0] for alias in node.names}
    found = {local: target for local, target in _CUSTOMARY.items() if local in read and local not in bound}
    return found if "torch" in found or "nn" in found else {}

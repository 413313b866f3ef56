"""Signs in the text of accelerators and of the host: moves, calls of models, flags for cards, files that prepare data."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection
from functools import lru_cache

from devlint.facts.text.nodes import asks_name, blocks, every, holds, walk
from devlint.facts.text.references import chain, last_name
from devlint.facts.text.signatures import parameter_names
from devlint.facts.values import ACCELERATORS

_DEVICE_ATTRIBUTES = ACCELERATORS | {"device", "cpu", "is_cuda", "get_device", "to_device"}
_CARD_WORDS = frozenset({"cuda", "gpu", "gpus", "device", "devices", "dev", "usecuda", "usegpu", "ngpu", "accelerator"})
_LOADER = re.compile(r"(^|_)(data)?_?loader$", re.IGNORECASE)
#: Words in a name that say that something is on the host: `cpu_weights`, `predictions_np`.
OF_HOST = re.compile(r"(?:^|_)(?:cpu|np|numpy|host)(?:_|$)", re.IGNORECASE)
#: What is asked where a flag says that no card is used; `not args.no_cuda` says that one is.
WITHOUT_CARD = re.compile(r"not (?![\w.]*(?:no|disable|without|multi)_)[\w.]*(cuda|gpu)\w*\Z", re.IGNORECASE)
#: Names of arguments that are no tensors, but say where things go.
_OPTIONS = re.compile(
    r"args|opts?$|cfg|conf|param|flags|trainer|engine|learner|ctx|context|accelerator|fabric", re.IGNORECASE
)
HOST_LIBRARIES = frozenset(
    {
        "numpy", "scipy", "sklearn", "matplotlib", "pandas", "cv2", "PIL", "skimage", "seaborn", "plotly", "librosa",
        "soundfile", "nltk", "argparse", "pytest", "unittest", "networkx", "gym", "gymnasium",
    }
)  # fmt: skip
#: Words in the name of something that is called whose result is likely a model's.
_MODELS = ("model", "net", "policy", "actor", "critic", "encoder", "decoder", "generator", "discriminator", "module")
#: Names of helpers that move what they are given: `batch_to_device(batch, device)`, `move_to_cuda(sample)`.
_MOVER = re.compile(r"(?:^|_)(?:to|move|put|send|place|transfer)_(?:\w+_)?(?:device|cuda|gpu)(?:_|$)", re.IGNORECASE)
#: Words in the path of files that read and prepare data.
_DATA = frozenset(
    {
        "data", "dataset", "datasets", "dataloader", "dataloaders", "loader", "loaders", "transforms", "augment",
        "augmentation", "augmentations", "preprocess", "preprocessing", "collate", "collator", "collators", "processors",
    }
)  # fmt: skip


#: What gives several tensors at once, and no structure of them.
_SEVERAL_TENSORS = frozenset(
    {"max", "min", "sort", "topk", "median", "nanmedian", "mode", "kthvalue", "cummax", "cummin", "unique", "aminmax",
     "unique_consecutive", "var_mean", "std_mean", "frexp", "slogdet", "qr", "svd", "eigh", "eig", "lu_factor"}
)  # fmt: skip
#: The end of a name of a function or module that gives a loss.
_LOSS = re.compile(r"criterion|(^|_)(loss|crit|objective)(_?(fn|func|fun|function|f|module))?$")


@lru_cache(64)
def prepares_data(path: str) -> bool:
    """Whether a file is by its name, or one of its two nearest folders, one that reads and prepares data."""
    *folders, name = path.replace("\\", "/").lower().split("/")
    stem = name.rpartition(".")[0]
    return (
        any(folder in _DATA for folder in folders[-2:]) or stem == "transform" or not _DATA.isdisjoint(stem.split("_"))
    )


def moves(call: ast.Call) -> bool:
    """Whether a call reads like a move to an accelerator: `x.cuda()`, `x.to(device)`."""
    function = call.func
    if not isinstance(function, ast.Attribute):
        return False
    if function.attr in ACCELERATORS:
        return True
    first = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "device"), None)
    return function.attr == "to" and first is not None and any(map(is_sign, walk(first)))


def is_put_before(function: ast.AST, entry: ast.expr, place: ast.AST) -> bool:
    """Whether a function moves what it puts into an entry whose key is a variable before a place: `parts[key] = x.to(device)`.

    In a block around that, with nothing in between that binds the entry, its container or its key anew.
    """
    if not isinstance(entry, ast.Subscript) or isinstance(entry.slice, ast.Constant):
        return False
    text, names = ast.unparse(entry), {node.id for node in walk(entry) if isinstance(node, ast.Name)}
    for block in blocks(function):
        at = next((row for row, statement in enumerate(block) if holds(statement, place)), 0)
        for statement in reversed(block[:at]):
            stored = [
                t for node in walk(statement) for t in getattr(node, "targets", [getattr(node, "target", None)]) if t
            ]
            if any(isinstance(t, ast.Subscript) and ast.unparse(t) == text for t in stored):
                value = statement.value if isinstance(statement, ast.Assign) else None
                if value is not None and any(isinstance(p, ast.Call) and moves(p) for p in chain(value)):
                    return True
                break
            if any(isinstance(n, ast.Name) and n.id in names for t in stored for n in walk(t)):
                break
    return False


def moved_after(tree: ast.AST, place: ast.AST, to_arguments: bool = True) -> set[str]:
    """The names whose values a tree moves to an accelerator in the rows after a place.

    `to_arguments`: also to where an argument of the function, or an item of one, is. That moves nothing where this is on the
    host.
    """
    row = getattr(place, "end_lineno", None) or 0
    given = set() if to_arguments else {*parameter_names(tree)} - {"self", "cls"}
    given |= items_of(tree, given) if given else set()
    later = [n for n in every(tree) if isinstance(n, ast.Call) and n.lineno > row and not is_to_argument(n, given)]
    receivers = [getattr(call.func, "value", None) for call in later if moves(call)]
    receivers += [call.args[0] for call in later if call.args and _MOVER.search(last_name(call.func)) is not None]
    return {receiver.id for receiver in receivers if isinstance(receiver, ast.Name)}


def items_of(tree: ast.AST, names: Collection[str]) -> set[str]:
    """The names that a function binds to items of some names, and to nothing else: `anchors = outputs["anchors"][i]`."""
    times = Counter(n.id for n in every(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    items = (n for n in every(tree) if isinstance(n, ast.Assign) and isinstance(n.value, ast.Subscript))
    return {
        target.id
        for node in items
        for target in node.targets
        if isinstance(target, ast.Name) and times[target.id] == 1 and is_item(node.value, names)
    }


def is_item(node: ast.expr, names: Collection[str]) -> bool:
    """Whether an expression is an item of some name, or an item of one."""
    *outer, start = chain(node)
    return all(isinstance(part, ast.Subscript) for part in outer) and isinstance(start, ast.Name) and start.id in names


def is_to_argument(call: ast.Call, given: Collection[str]) -> bool:
    """Whether a call moves something to where an argument is: `rows.to(anchors.device)`."""
    to = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "device"), None)
    if not isinstance(to, ast.Attribute) or to.attr != "device" or not isinstance(to.value, ast.Name):
        return False
    name = to.value.id
    return name in given and not is_model_name(name) and _OPTIONS.search(name) is None


def is_model_call(call: ast.Call) -> bool:
    """Whether a call reads like that of a model: `model(x)`, `self.policy_net(state)`, `net.forward(x)`."""
    function = call.func
    while isinstance(function, ast.Attribute) and function.attr in ("forward", "module", "encode", "decode", "infer"):
        function = function.value
    return is_model_name(function.id if isinstance(function, ast.Name) else getattr(function, "attr", ""))


@lru_cache(8)
def uses_cards(text: str) -> bool:
    """Whether a file puts anything on an accelerator, or where it is told: not one that only reads on the CPU."""
    return (
        "accelerator" in text
        or (("cuda" in text or "use_gpu" in text) and re.search(r"\b(cuda|use_gpu)\b", text) is not None)
        or re.search(r"\.to\((?:\w+\.)*device\b", text) is not None
    )


def is_loader_name(name: str) -> bool:
    """Whether a name reads like that of a loader of batches: `test_loader`, `DataLoader`."""
    return _LOADER.search(name) is not None


#: First words in the names of what makes, loads, saves or changes a model, or says something of it.
_VERBS = frozenset(
    {
        "get", "build", "make", "create", "load", "save", "init", "is", "has", "set", "print", "parse", "unwrap", "wrap",
        "prepare", "convert", "export", "freeze", "unfreeze", "fuse", "patch", "replace", "register", "update", "reset",
        "restore", "initialize", "configure", "setup", "download", "find", "select", "count", "check", "log", "add",
        "remove", "extract", "instantiate", "construct",
    }
)  # fmt: skip


@lru_cache(4096)
def is_model_name(name: str) -> bool:
    """Whether a name reads like that of a model, not of a class or of what makes, loads, saves or changes one."""
    words = name.lower().split("_")
    return (
        not name[:1].isupper()
        and words[0] not in _VERBS
        and any(w.endswith(_MODELS) or w.startswith("net") for w in words)
    )


def makes_model(name: str) -> bool:
    """Whether a function's name says that it gives a model: `build_model`, `create_generator`, `get_pose_net`."""
    words = name.lower().strip("_").split("_")
    makes = len(words) > 1 and words[0] in ("get", "build", "make", "create", "load", "init")
    return makes and words[-1].endswith(_MODELS)


def gives_tensors(node: ast.expr) -> bool:
    """Whether an expression gives several tensors, and no structure of them: `torch.min(x, dim=1)`, `x.sort()`."""
    return isinstance(node, ast.Call) and last_name(node.func) in _SEVERAL_TENSORS


def is_loss_name(name: str) -> bool:
    """Whether a name reads like that of a function or module that gives a loss: `criterion`, `l1_loss`, `loss_fn`."""
    return _LOSS.search(name.lower()) is not None


def runs_something(body: list[ast.stmt]) -> bool:
    """Whether module-level code does more than import, define and name things."""
    for node in body:
        if isinstance(node, (ast.Try, ast.If)):
            parts = [node.body, node.orelse, *(h.body for h in getattr(node, "handlers", ()))]
            if asks_name(node) or any(map(runs_something, parts)):
                return True
        elif isinstance(node, (ast.For, ast.While, ast.With)) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        ):
            return True
    return False


def asks_for_card(test: ast.expr) -> bool:
    """Whether a condition is a flag that says if there is an accelerator: `args.cuda`, `gpu_ids`, `device_id is not None`."""
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.comparators[0], ast.Constant):
        test = test.left
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "len" and test.args:
        test = test.args[0]
    name = test.id if isinstance(test, ast.Name) else test.attr if isinstance(test, ast.Attribute) else ""
    return not _CARD_WORDS.isdisjoint(name.lower().split("_"))


def is_sign(node: ast.AST) -> bool:
    """Whether a piece of code handles devices: an attribute, a name, an argument, a text."""
    if isinstance(node, ast.Attribute):
        return node.attr in _DEVICE_ATTRIBUTES
    if isinstance(node, ast.Name):
        return "device" in node.id.lower() or node.id in ("gpu", "cuda")
    if isinstance(node, (ast.arg, ast.keyword)):
        return node.arg is not None and "device" in node.arg
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("cuda")

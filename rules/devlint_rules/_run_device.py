"""Where the rules about hardcoded accelerators are quiet: guards, and files that are written for one kind of accelerator."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from devlint.api import (
    ApiCall,
    CudaMethod,
    DeviceLiteral,
    Facts,
    Fix,
    LeftAlone,
    Required,
    Safety,
    Site,
    Span,
)

from ._shared import parsed

# A file that imports one of these holds code that only runs on the accelerator it is written for.
_KERNELS = (
    "triton", "tilelang", "cutlass", "cupy", "pycuda", "cuda", "numba.cuda", "torch.utils.cpp_extension",
)  # fmt: skip
# These serve one accelerator as well, but a function that imports one offers it as an option.
_OPTIONS = ("flash_attn", "apex", "transformer_engine", "tensorrt", "torch_tensorrt")

_KERNEL_ROOTS, _OPTION_ROOTS = (tuple(f"{name}." for name in names) for names in (_KERNELS, _OPTIONS))

_SAYS_ACCELERATOR = re.compile(r"(?i)cuda|gpu")
# Libraries that only run on CUDA, as conditions ask for them: `if HAVE_TE`, `if is_te_min_version(...)`, `if flash_attn`.
_SAYS_LIBRARY = re.compile(
    r"(?i)\b(is|has|have|use|using)_(te|apex|triton)(_|\b)|transformer_engine|flash_attn|tensorrt|nccl|cudnn|cupy"
)
_DENIES = re.compile(r"!=\s*[\"'](cuda|xpu|npu|mps)")
# Where one of these does not hold an accelerator was asked for: `if args.cpu`, `if args.no_cuda`, `if args.gpu < 0`.
_SAYS_CPU = re.compile(
    r"(?i)cpu|no_?(cuda|gpu)|disable_(cuda|gpu)|(cuda|gpu)\w*\W*\s*(<\s*0|<\s*1\b|==\s*-1|==\s*0\b|is\s+None|==\s*\[\])"
)

_NOT_THE_CPU = re.compile(r"not \(?[\w.]*\bdevice\.type\s*==\s*[\"']cpu[\"']\)?\Z")
_SETS_UP = re.compile(r"^[ \t]+def (?:setUp|setUpClass|setup_method|setup_class|setup)\b", re.MULTILINE)
_COMPUTED_CARD = re.compile(r"(cuda|xpu|npu):[{%]")
_OTHER_CARD = re.compile(r"(cuda|xpu|npu):[1-9{]|\bset_device")
_MARKED = re.compile(r"(?i)^pytestmark\s*=.*(cuda|gpu)", re.MULTILINE)

# Folders of sources that are compiled for CUDA, and of what tries them out.
_KERNEL_FOLDERS = frozenset({"csrc", "cuda", "triton"})
# What no other accelerator has: captured graphs, memory shared between processes by handle, the driver's own interface,
# operators that a project compiles.
_ONLY_CUDA = re.compile(
    r"\bext_loader\.load_ext\(|\bCUDAGraph\b|\b_share_cuda_\b|\b_new_shared_cuda\b|\bcudart\(|\btorch\.cuda\.nccl\b|\bdo_bench_cudagraph\("
)
_CARDS = ("cuda", "gpu")
_FOLLOWS = re.compile(r"\.is_(cuda|xpu|mps)\b|\bis (not )?None|[<>]=?\s*-?\d|!=\s*-1")


@lru_cache(maxsize=32)
def _place_of(pattern: re.Pattern[str], text: str) -> Span | None:
    """Where a pattern occurs first in a file; asked once for all events of the file."""
    found = pattern.search(text)
    return None if found is None else Span(*found.span())


def says_accelerator(name: str) -> bool:
    return _SAYS_ACCELERATOR.search(name) is not None


def denies_accelerator(name: str) -> bool:
    return _SAYS_CPU.search(name) is not None


def occurs(pattern: re.Pattern[str], text: str) -> bool:
    return _place_of(pattern, text) is not None


def guard_of(event: ApiCall | CudaMethod | DeviceLiteral, facts: Facts | None = None) -> LeftAlone | None:
    """Why the place only runs where the accelerator is meant to be used.

    A proved guard for its type, or a condition that names it: `if use_cuda`, `if args.gpu is not None`, the other branch
    of `if args.no_cuda` or of `if device == "cpu"`; or a function that says so in its name: `cuda`, `to_cuda`. With `facts`
    not a test, which runs whatever its name says, in a file with others.
    """
    name = event.function.rpartition(".")[2]
    of_test = facts is not None and facts.is_test and name.startswith("test") and has_other_tests(facts.text)
    if event.type in name.split("_") and not of_test:
        return LeftAlone(f"`{event.function}` is written for {event.type}, as its name says")
    for test in event.under.tests:
        negated = test.startswith("not ")
        if negated and _NOT_THE_CPU.match(test):
            continue  # of any type, then
        if not negated and (_DENIES.search(test) or f"not {test}" in event.under.tests):
            continue  # it says the opposite, or was taken back since: a helper that both branches of its callers call
        if (_SAYS_CPU if negated else _SAYS_ACCELERATOR).search(test) or (not negated and event.type in test):
            return under_condition(test)
        if not negated and event.type == "cuda" and _SAYS_LIBRARY.search(test):
            return under_condition(test)
    if event.under.allow(event.type):
        return asked_around(event.type)
    return None


def guard_in(event: ApiCall | CudaMethod | DeviceLiteral, facts: Facts) -> LeftAlone | None:
    """`guard_of`, or a condition whose name says that the card is chosen."""
    return guard_of(event) or named_guard(event, facts)


def named_guard(event: ApiCall | CudaMethod | DeviceLiteral, facts: Facts) -> LeftAlone | None:
    """A condition whose name the file binds to a comparison with the card or the CPU: `ON = mode == "GPU"`."""
    chosen = _chosen_by_name(facts.text)
    test = next((test for test in event.under.tests if test in chosen), None)
    return under_condition(test) if test is not None else None


@lru_cache(maxsize=4)
def _chosen_by_name(text: str) -> frozenset[str]:
    """The conditions under which the card is chosen, by names that the module binds once, to such a comparison.

    Not where the option that is compared names the card by default: the program then asks for it unasked.
    """
    return frozenset(
        target.id if _side_of(statement.value) else f"not {target.id}"
        for target, statement in _sides(text)
        if not _is_card_by_default(statement.value, text)
    )


def chosen_by_default(facts: Facts) -> Iterator[int]:
    """The rows that bind a name to a comparison of an option that names the card by default."""
    for _, statement in _sides(facts.text):
        if _is_card_by_default(statement.value, facts.text):
            yield statement.lineno


@lru_cache(maxsize=4)
def _sides(text: str) -> tuple[tuple[ast.Name, ast.Assign], ...]:
    """The names that the module binds once, to a comparison with the card or the CPU, with the statements."""
    tree = parsed(text)
    bound = Counter(
        node.id
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    )
    return tuple(
        (statement.targets[0], statement)
        for statement in (tree.body if tree is not None else ())
        if isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and isinstance(statement.targets[0], ast.Name)
        and bound[statement.targets[0].id] == 1
        and _side_of(statement.value) is not None
    )


def _is_card_by_default(compared: ast.expr, text: str) -> bool:
    """Whether an expression reads an option whose default names the card: `add_argument("--mode", default="GPU")`."""
    tree = parsed(text)
    read = {each.attr for each in ast.walk(compared) if isinstance(each, ast.Attribute)}
    for call in ast.walk(tree) if tree is not None else ():
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument":
            names = (each.value for each in call.args if isinstance(each, ast.Constant))
            default = next((each.value for each in call.keywords if each.arg == "default"), None)
            if not isinstance(default, ast.Constant) or str(default.value).lower().partition(":")[0] not in _CARDS:
                continue
            if any(str(name).lstrip("-").replace("-", "_") in read for name in names):
                return True
    return False


def _side_of(node: ast.expr) -> bool | None:
    """True for a comparison with the card's name, False for one with the CPU's, None for everything else."""
    if isinstance(node, ast.IfExp):
        constants = [each.value for each in (node.body, node.orelse) if isinstance(each, ast.Constant)]
        return _side_of(node.test) if constants == [True, False] else None
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "bool" and len(node.args) == 1:
        return _side_of(node.args[0])
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq):
        return None
    for each in (node.left, *node.comparators):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            named = each.value.lower().partition(":")[0]
            return True if named in _CARDS else False if named == "cpu" else None
    return None


@lru_cache(maxsize=32)
def has_other_tests(text: str) -> bool:
    """Whether some test of a file says nothing of an accelerator in its name: the file is run without one as well.

    Not where what runs before each test may skip it.
    """
    if _SETS_UP.search(text) is not None and "skip" in text:
        return False
    return any(
        _SAYS_ACCELERATOR.search(name) is None for name in re.findall(r"^[ \t]*def (test\w*)", text, re.MULTILINE)
    )


def asked_around(type: str) -> LeftAlone:
    """A guard that stands elsewhere: an early return, a decorator, the callers' conditions."""
    return LeftAlone(f"a check for {type} comes before this code, or before every call of it")


def under_condition(test: str) -> LeftAlone:
    line = " ".join(test.split())
    shown = line if len(line) <= 60 else line[:57].rstrip() + "..."
    return LeftAlone(f"it only runs under the condition `{shown}`")


def is_for_accelerator(facts: Facts) -> bool:
    """Whether the whole file is written for one kind of accelerator, see `purpose_of`."""
    return purpose_of(facts) is not None


def purpose_of(facts: Facts) -> LeftAlone | None:
    """Why the whole file is written for one kind of accelerator: kernels, their loaders, tests marked so."""
    if (at := _place_of(_MARKED, facts.text)) is not None:
        return LeftAlone("the tests of this file are marked for an accelerator", at)
    if (at := _place_of(_ONLY_CUDA, facts.text)) is not None:
        return LeftAlone(f"the file uses `{facts.source(at).rstrip('(')}`, which needs CUDA", at)
    for folder in facts.path.replace("\\", "/").split("/")[:-1]:
        if folder in _KERNEL_FOLDERS:
            return LeftAlone(f"the file is in `{folder}`, a folder with CUDA sources")
    always = facts.module_imports or facts.imports
    for name in facts.imports.values():
        if name.endswith("_cuda") or f"{name}.".startswith(_KERNEL_ROOTS) or ".triton." in name:
            return LeftAlone(f"the file imports `{name}`, which contains CUDA kernels", _import_of(name, facts.text))
    for name in always.values():
        if f"{name}.".startswith(_OPTION_ROOTS):
            return LeftAlone(f"the file imports `{name}`, which only runs on CUDA", _import_of(name, facts.text))
    return None


@lru_cache(maxsize=32)
def _import_of(name: str, text: str) -> Span | None:
    """The statement that imports a qualified name, found by its first or last part."""
    first, _, last = name.partition(".")
    words = "|".join(re.escape(word) for word in (first, last.rpartition(".")[2]) if word)
    return _place_of(re.compile(rf"^[ \t]*(from|import)\b[^\n]*\b({words})\b", re.MULTILINE), text)


def placement_of(facts: Facts, type: str) -> LeftAlone | None:
    """Why an index is a placement: the file names different cards of one type, or computes them."""
    named = [e for e in facts.events if isinstance(e, DeviceLiteral | CudaMethod) and e.type == type]
    cards = {e.index or 0 for e in named if e.index is not None or isinstance(e, CudaMethod)}
    if len(cards) > 1:
        last = next(e for e in reversed(named) if e.index)
        return LeftAlone(f"the file distributes work over several devices, for example {type}:{last.index}", last.span)
    at = _place_of(_COMPUTED_CARD, facts.text)
    return None if at is None else LeftAlone("the file computes the indices of its devices", at)


def placed(title: str, site: Site, type: str) -> Fix | None:
    """The hint for a literal index in a file that places work on several cards; None in other files."""
    left = placement_of(site.facts, type)
    if left is None:
        return None
    line = "" if left.at is None else f" ({site.line(left.at)})"
    return Fix(title, Safety.HINT, why=left.reason + line)


def may_use_other_cards(facts: Facts) -> bool:
    """Whether the file names, or makes current, another card than the first: `cuda` may then be another device."""
    return occurs(_OTHER_CARD, facts.text)


def guarded_type(facts: Facts) -> str | None:
    """The type of accelerator that the file moves values to under guards for it; None where it does not.

    A test that ends the program guards all that follows, and is no choice; one of the number of a card
    (`args.gpu is not None`) is about a run that asks for CUDA.
    """
    gates = {facts.source(event.span) for event in facts.events if isinstance(event, Required)}
    gates |= {text.removeprefix("assert ").partition(",")[0].strip() for text in gates}
    for event in facts.events:
        if not isinstance(event, CudaMethod | DeviceLiteral) or not event.under.tests:
            continue
        if isinstance(event, DeviceLiteral) and event.role != "argument":
            continue
        asked = [t for t in event.under.tests if t not in gates and _FOLLOWS.search(t) is None]
        if asked and (event.under.allow(event.type) or _SAYS_ACCELERATOR.search(" ".join(asked))):
            return event.type
    return None

"""What the rules about torch's interface share: guards, how to ask for an accelerator, statements under a guard."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from devlint.api import (
    ACCELERATORS,
    ApiCall,
    ApiName,
    Edit,
    Facts,
    ImportNeed,
    InsertStatement,
    LeftAlone,
    Operand,
    Place,
    Site,
    cst,
)

from ._calls import may_precede
from ._run_device import guard_of, purpose_of, under_condition
from ._shared import parsed

#: How a program asks for a type of accelerator.
AVAILABLE = {
    "cuda": "torch.cuda.is_available",
    "xpu": "torch.xpu.is_available",
    "mps": "torch.backends.mps.is_available",
    "mtia": "torch.mtia.is_available",
    "accelerator": "torch.accelerator.is_available",
}
#: The types' names in a message.
NAMES = {
    "cuda": "CUDA", "xpu": "XPU", "mps": "MPS", "mtia": "MTIA", "npu": "the NPU plug-in", "hpu": "the HPU plug-in",
    "accelerator": "an accelerator",
}  # fmt: skip

_LEGACY = re.compile(r"torch\.(cuda|xpu)\.(sparse\.)?[A-Za-z0-9]+(Tensor|Storage)\Z")
_DTYPES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Byte": "uint8",
    "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64", "Bool": "bool",
}  # fmt: skip
_WORDS = {
    "cuda": re.compile(r"(?i)cuda|gpu|nvidia|device_ids?\b|\bstreams?\s+is\s+not\s+None"),
    "xpu": re.compile(r"(?i)xpu|ipex"),
}
_ASKS_VERSION = re.compile(
    r"(?i)version|hasattr|getattr|torch_?\d|_\d+_\d+|torch_(ge|gt|lt|greater|less)|is_torch|sys\.modules"
    # a function of the project that is asked for a version, or given one: `requires("2.6")`, `@implement_for("torch", "2.6")`
    r"|\w\((?:[^()\n]*,\s*)?[\"'][<>=! ]*\d+\.\d+[\w.]*[\"']"
)


def asks_version(event: ApiName) -> bool:
    """Whether the place stands under a test of torch's version or of what torch has."""
    return any(_ASKS_VERSION.search(test) for test in event.under.tests)


def is_kept_for_version(event: ApiName) -> bool:
    """Whether a decorator keeps the function around the place for a version of torch: `@implement_for("torch", "2.6")`."""
    return any(map(_ASKS_VERSION.search, event.under.kept_for))


#: Flags that are bound at module level, each with what it is bound to, up to the end of the row.
_FLAG = re.compile(r"^([A-Za-z_]\w*)\s*(?::[^=\n]*)?=(?!=)([^\n]*)", re.MULTILINE)
_HOPS = 3  # flags that are bound by way of others


def hangs_on_version(event: ApiName, facts: Facts) -> bool:
    """Whether the place stands under a flag that the module binds to a test of torch's version, by way of others, too.

    `SUPPORTED = version.parse(torch.__version__) >= version.parse("2.5")`, `USED = SUPPORTED and is_available()`
    """
    bound = {m[1]: m[2] for m in _FLAG.finditer(facts.text)} if event.under.tests else {}
    said = list(event.under.tests)
    for _ in range(_HOPS):
        said = [bound[name] for text in said for name in re.findall(r"[A-Za-z_]\w*", text) if name in bound]
        if any(_ASKS_VERSION.search(text) for text in said):
            return True
    return False


def hangs_on_import(event: ApiName, facts: Facts) -> bool:
    """Whether the place stands under a flag that is set where an import succeeds: `HAS_X = False` in an `except`."""
    names = {name for test in event.under.tests for name in re.findall(r"[A-Za-z_]\w*", test)}
    if not names:
        return False
    for handler in re.finditer(
        r"^([ \t]*)except\b[^\n]*:[^\n]*\n((?:\1[ \t]+[^\n]*\n|[ \t]*\n)*)", facts.text, re.MULTILINE
    ):
        if any(re.search(rf"^[ \t]*{name}\s*(:[^=\n]*)?=", handler[2], re.MULTILINE) for name in names):
            return True
    return False


def fails_earlier(event: ApiName) -> bool:
    """Whether an import of the name by itself fails before the place is reached: that is where a lack of it shows."""
    return isinstance(event, ApiCall) and event.by_itself


def is_bound_twice(event: ApiCall, site: Site) -> bool:
    """Whether imports give the name that is written here to two things: the newer one, and in an `except` or `else` the
    older one. Which of them is called the code does not say, and it needs no other."""
    return len(_imported(site.facts.text).get(spelled(event, site).partition(".")[0], ())) > 1


@lru_cache(maxsize=1)
def _imported(text: str) -> dict[str, set[str]]:
    """What the imports of a file bind each name to, wherever they stand."""
    found: dict[str, set[str]] = {}
    module = parsed(text)
    for node in ast.walk(module) if module is not None else ():
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                found.setdefault(alias.asname or whole, set()).add(whole)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found.setdefault(alias.asname or alias.name, set()).add(f"{node.module}.{alias.name}")
    return found


def is_written_out(event: ApiCall, site: Site) -> bool:
    """Whether the name is written where it is used, and not in a variable that was given it elsewhere."""
    return spelled(event, site).partition(".")[0] in site.facts.imports


def is_legacy_type(qualname: str) -> bool:
    """Whether a name is a tensor or storage type of an accelerator, `torch.cuda.FloatTensor`."""
    return _LEGACY.match(qualname) is not None


def dtype_of(type_name: str) -> str | None:
    """The dtype of a legacy tensor type by its name, `torch.float32` for `torch.cuda.FloatTensor`."""
    name = type_name.rpartition(".")[2]
    if not name.endswith("Tensor"):
        return None
    dtype = _DTYPES.get(name.removesuffix("Tensor"))
    return None if dtype is None else f"torch.{dtype}"


def serves_accelerator(event: ApiCall, facts: Facts) -> bool:
    """Whether the place runs only where the accelerator is, see `service_of`."""
    return service_of(event, facts) is not None


def service_of(event: ApiCall, facts: Facts) -> LeftAlone | None:
    """Why the place runs only where the accelerator is: under a guard, or in code that is written for it alone.

    Such code says so by the name of the function, class or file, or loads kernels.
    """
    if event.type == "accelerator":
        if event.under.holds & (ACCELERATORS | {"accelerator"}) or any("accel" in t for t in event.under.tests):
            return LeftAlone("it only runs where there is an accelerator")
        return guard_of(event)
    found = guard_of(event) or purpose_of(facts)
    if found is not None:
        return found
    pattern = _WORDS.get(event.type) or re.compile(rf"(?i){event.type}")
    for test in event.under.tests:
        if not test.startswith("not ") and pattern.search(test):
            return under_condition(test)
    name = NAMES.get(event.type, event.type)
    if pattern.search(event.function):
        return LeftAlone(f"`{event.function}` is written for {name}, as its name says")
    place = "/".join(facts.path.replace("\\", "/").split("/")[-2:])
    return LeftAlone(f"the file is written for {name}, as its name says") if pattern.search(place) else None


def guarded_statement(
    event: ApiCall, site: Site, test: str, call: cst.BaseExpression | None = None
) -> list[Edit | InsertStatement] | None:
    """The edits that put the statement, or `call` in its place, under `if test:`; None for a call that is no statement."""
    statement = site.statement
    if not event.discarded or not isinstance(statement, cst.Expr) or not may_precede(statement):
        return None
    if site.has_comment(statement):
        return None
    kept = statement if call is None else statement.with_changes(value=call)
    body = cst.IndentedBlock([cst.SimpleStatementLine([kept])])
    return [InsertStatement(event.span, cst.If(test=site.expression(test), body=body)), Edit(statement, None)]


def argument(event: ApiCall, name: str, position: int | None = None) -> Operand | None:
    """An argument by its name, or by its position."""
    found = event.arguments.get(name)
    if found is None and position is not None and not event.star:
        found = event.arguments.get(str(position))
    return found


def spelled(event: ApiCall, site: Site) -> str:
    """The name as the code writes it."""
    node = site.node
    return site.code(node.func) if isinstance(node, cst.Call) else site.code(node)


def is_called(event: ApiCall, site: Site) -> bool:
    """Whether a name that is read is the function of a call, which has an event of its own."""
    text = site.facts.text
    return text[event.span.end : event.span.end + 1] == "("


def needs_torch(facts: Facts) -> tuple[ImportNeed, ...]:
    """`import torch` for a fix that writes a name of torch, in a file that has no such import."""
    return () if "torch" in facts.imports.values() else (ImportNeed("torch"),)


def version(minor: tuple[int, int]) -> str:
    return f"{minor[0]}.{minor[1]}"


def is_device_object(operand: Operand) -> bool:
    """Whether a value is proved to be a `torch.device`, and not a string or a number.

    `args.device` may be anything, and so may a parameter that is annotated as one. A tensor's `.device`, wherever the
    tensor is, what `torch.device(...)` gives, and a choice between those are sure.
    """
    value = operand.value
    if value.kind != "device" or not value.device or (value.type_name or "").startswith("index:"):
        return False
    if (value.type_name or "").startswith("chosen") or value.type_name in ("Tensor.device", "torch.device"):
        return True
    return all(isinstance(place, Place) or place.name == "home" for place in value.device)

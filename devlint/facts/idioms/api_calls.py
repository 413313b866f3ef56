"""Which reads and calls of torch's names deserve an `ApiCall` event: what the rules about torch's interface judge.

Most calls of torch are of no interest here, so one cached look-up by name decides. What the knowledge says of the name
travels in the event, because rules do not read the knowledge.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from devlint import knowledge
from devlint.facts.events import ApiCall, ApiImport, Compare, Operand
from devlint.facts.frozen import replace
from devlint.facts.text.handlers import EVERYTHING
from devlint.facts.text.references import chain, last_name
from devlint.facts.text.signatures import parameter_of
from devlint.facts.values import ACCELERATORS

if TYPE_CHECKING:
    from devlint.facts.idioms.devices import Devices
    from devlint.facts.interpreter.arguments import Arguments
    from devlint.knowledge import Version

# Modules that torch gets from a plug-in of their vendor: without it the name itself does not exist.
PLUGINS = frozenset({"npu", "hpu", "mlu", "musa", "sdaa", "neuron", "gcu"})
#: Libraries of collectives whose vendors add names with theirs to `torch.distributed`, as torch_npu does with HCCL.
_COLLECTIVES = ("hccl", "cncl", "mccl", "eccl", "tccl")

_BACKENDS = frozenset({"cuda", "xpu", "mps", "mtia", "accelerator"}) | PLUGINS
#: How what is a dtype, and no device, is called.
_DTYPES = frozenset({"dtype", "bfloat16", "float16", "float32", "float64", "half", "float", "double"})
_OLDEST = knowledge.VERSIONS[0]

# Names of no back end, without a mark in the knowledge, that rules ask about.
_ASKED = frozenset(
    {
        "torch.autocast", "torch.amp.autocast", "torch.amp.autocast_mode.autocast", "torch.amp.GradScaler",
        "torch.amp.grad_scaler.GradScaler", "torch.amp.custom_fwd", "torch.amp.custom_bwd", "torch.cpu.amp.autocast",
        "torch.cpu.amp.GradScaler", "torch.get_device", "torch.distributed.init_process_group",
        "torch.distributed.distributed_c10d.init_process_group", "torch.has_cuda", "torch.has_mps", "torch.has_cudnn",
        "torch.has_mkldnn",
    }
)  # fmt: skip
# Common calls that only matter with one of their arguments.
_WITH_ARGUMENT = {
    "torch.utils.data.DataLoader": "pin_memory_device",
    **{
        f"torch.{kind}Tensor": "device"
        for kind in ("", "Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool")
    },
}


class Api(NamedTuple):
    """What the knowledge says of one name, in the words of `ApiName` and `ApiCall`."""

    exists: bool | None
    nearest: tuple[str, ...]
    since: Version | None
    removed: Version | None
    deprecated: Version | None
    replacement: str | None
    replacement_since: Version | None
    remedy: str
    raises: bool


@cache
def describe(qualname: str) -> Api | None:
    """The facts about a name below `torch.` that make it worth an event; None when there are none."""
    parts = qualname.split(".")
    if len(parts) < 2:
        return None
    if parts[1] in PLUGINS:
        return Api(None, (), None, None, None, None, None, "", True) if len(parts) > 2 else None
    namespace, _, name = qualname.rpartition(".")
    if namespace == "torch.version" or name.startswith("_"):
        return None  # vendors add to it; private
    if namespace.startswith("torch.backends.") and "m" in knowledge.namespace_names(namespace):
        return None  # it replaces itself by an object, whose properties no file shows
    life = knowledge.lifetime(qualname)
    if life is None:
        if not knowledge.known_namespace(namespace) or knowledge.is_public_name(namespace, name) is not False:
            return None
        if any(word in name.lower() for word in _COLLECTIVES):
            return None  # added by a vendor's plug-in
        return Api(False, tuple(knowledge.nearest(qualname)), None, None, None, None, None, "", False)
    since, removed = life
    if removed is not None and knowledge.cls(namespace) is not None:
        removed = None  # a base that is chosen when torch is imported may have it
    record = knowledge.function(qualname)
    class_ = knowledge.cls(qualname)
    deprecated = (record.deprecated if record else None) or (class_.deprecated if class_ else None)
    replacement = (record.replacement if record else None) or (class_.replacement if class_ else None)
    remedy, raises = (record.fix, record.guard) if record else ("", False)
    is_module = record is None and class_ is None and bool(knowledge.namespace_names(qualname))
    if is_module:
        return None  # on the way to a name
    marked = deprecated or replacement or remedy or raises or removed or (since is not None and since > _OLDEST)
    asked = parts[1] in _BACKENDS or qualname in _ASKED or qualname in _WITH_ARGUMENT or qualname == "torch.device"
    if not (marked or asked):
        return None
    followed = knowledge.lifetime(replacement) if replacement is not None and " " not in replacement else None
    if followed is None:
        replacement = None
    return Api(
        True, (), since, removed, deprecated, replacement, followed[0] if followed is not None else None, remedy, raises
    )


def _matters(qualname: str, arguments: Arguments | None) -> bool:
    """Whether a common name is used with the argument that a rule looks at."""
    if qualname == "torch.device":
        return arguments is not None and any(
            isinstance(v.constant, bool) or last_name(n) in _DTYPES for n, v in arguments.every()
        )
    wanted = _WITH_ARGUMENT.get(qualname)
    return wanted is None or (arguments is not None and wanted in arguments.keywords)


def note_api(
    machine: Devices, node: ast.Call | ast.Attribute | ast.Name, qualname: str, arguments: Arguments | None
) -> None:
    """Emit an `ApiCall` for a name below `torch.` that a rule may ask about. `arguments`: None for a read."""
    api = describe(qualname)
    if api is None or not _matters(qualname, arguments):
        return
    named: dict[str, Operand] = {}
    star = False
    if arguments is not None:
        star = arguments.star
        for index, (argument, value) in enumerate(zip(arguments.nodes, arguments.values, strict=True)):
            named[str(index)] = machine.operand(argument, value)
        for name, (argument, value) in arguments.keywords.items():
            named[name] = machine.operand(argument, value)
    span, is_call = machine.span(node), isinstance(node, ast.Call)
    known = machine.events.get((ApiCall.__name__, span, is_call))
    same_run = machine.noted_in.get(span) is machine.state_of_run
    if known is not None and same_run and len(known.under.tests) > len(machine.guards.tests):
        return  # evaluated again outside of its guards, to understand the condition that it is a part of
    machine.noted_in[span] = machine.state_of_run
    under = machine.guards
    function = node.func if isinstance(node, ast.Call) else node
    *_, root = chain(function)
    name = root.id if isinstance(root, ast.Name) else ""
    by_itself = root is function
    imported = by_itself and qualname in machine.lacking
    if (by_itself and name in machine.imports.tried) or name in machine.imports.several:
        under = replace(under, caught=EVERYTHING)  # the program can do without the name, or has it from elsewhere
    backend = qualname.split(".", 2)[1]
    expression, proved = machine.run_device(backend if backend in ACCELERATORS else "cuda")
    machine.emit(
        ApiCall(
            span, node, (), under, machine.scope(), machine.name, qualname, *api[:4], is_call, imported, named, star,
            machine.statement_value is node, api.deprecated, api.replacement, api.replacement_since, api.remedy, api.raises,
            expression, proved,
        ),
        is_call,
    )  # fmt: skip


def note_import(machine: Devices, node: ast.ImportFrom) -> None:
    """Emit an `ApiImport` for each name of torch that an import asks for and some torch lacks.

    Not where the program can do without it, has it from elsewhere, or is not run: `if TYPE_CHECKING:`.
    """
    module = node.module or ""
    if node.level or not (module == "torch" or module.startswith("torch.")):
        return
    if any("TYPE_CHECKING" in test for test in machine.guards.tests):
        return
    for alias in node.names:
        if alias.name == "*":
            continue
        qualname = f"{module}.{alias.name}"
        api = describe(qualname)
        local = alias.asname or alias.name
        if api is None or local in machine.imports.tried or local in machine.imports.several:
            continue
        if api.exists is False or api.removed is not None or (api.since is not None and api.since > _OLDEST):
            machine.lacking.add(qualname)
            machine.emit(
                ApiImport(
                    machine.span(alias), alias, (), machine.guards, machine.scope(), machine.name, qualname, *api[:4]
                )
            )  # fmt: skip


#: Functions of torch's modules that ask what is there, and need no argument.
QUESTIONS = frozenset(
    {"is_available", "is_bf16_supported", "is_built", "is_initialized", "device_count", "is_nccl_available"}
)
_DEVICE_PATH = re.compile(r"(?:^|[._])dev(?:ice)?\Z")
_MAY_BE_INDEX = re.compile(r"\bint\b|\bDevice(Like)?Type\b|\bUnion\b.*\bstr\b.*\bdevice\b|\bstr\b.*\|.*\bdevice\b")


def note_truth(machine: Devices, node: ast.expr) -> None:
    """Emit a `Compare` with the operator "truth" where a device, its index, or a question about one is tested for truth.

    `node`: the condition of an `if`, `while` or conditional expression, an operand of `and`, `or`, `not`. Three forms
    count: the `index` of a device, what `get_device()` gives, and a parameter `device` that may be an index, by its
    annotation. So does a function that asks torch for a device and is not called: `if torch.cuda.is_available:`.
    """
    if isinstance(node, (ast.Attribute, ast.Name)) and _is_question(machine, node):
        pass
    elif isinstance(node, ast.Attribute):
        base = machine.path(node.value)
        if node.attr != "index" or base is None or _DEVICE_PATH.search(base) is None:
            return
    elif isinstance(node, ast.Name):
        if not _may_be_index(machine, node.id):
            return
    elif not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get_device"):
        return
    operand = machine.operand(node, machine.evaluate(node))
    machine.emit(
        Compare(operand.span, node, (), machine.guards, {}, machine.name, operand, None, "truth"), "truth"
    )  # fmt: skip


def _is_question(machine: Devices, node: ast.Attribute | ast.Name) -> bool:
    """Whether an expression is a function of torch that asks what is there: `torch.cuda.is_available`."""
    if isinstance(node, ast.Attribute):
        if node.attr not in QUESTIONS:
            return False
    elif node.id not in machine.imports.names or node.id in machine.imports.several:
        return False
    qualname = machine.qualify(node) or ""
    return qualname.startswith("torch.") and qualname.rpartition(".")[2] in QUESTIONS


def _may_be_index(machine: Devices, name: str) -> bool:
    """Whether a name is a parameter for a device, of this function or the one around it, that may be an index."""
    if name not in ("device", "dev"):
        return False
    for function in (machine.function, machine.functions.get(machine.name.rpartition(".")[0])):
        if function is None or isinstance(function.node, ast.Lambda):
            continue
        argument = parameter_of(function.node.args, name)
        if argument is not None:
            annotation = argument.annotation
            return annotation is not None and _MAY_BE_INDEX.search(machine.text(annotation)) is not None
    return False

"""What a function says elsewhere of a tensor that it converts by `.numpy()`, where nothing else tells where the tensor is.

    weights = torch.tensor(batch.weights, device=q.device)  # where `q` is, others are put
    error = rewards - q
    error.detach().numpy()

    plt.plot(hidden.detach().cpu().numpy())  # one part of the function fetches it
    np.save(path, hidden.detach().numpy())   # and another one does not

Whoever asks for a tensor's device to make others there, or fetches it to the CPU, expects it on an accelerator. It counts for
the same binding of a name alone, or for loops over the same thing, and not where a condition around either place asks for
devices or types, or where the one stands in for the other when that fails.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from devlint import knowledge
from devlint.facts.idioms.placed import goes_back, is_cpu, is_left_on_host
from devlint.facts.text.annotations import knows_other_tensors
from devlint.facts.text.bindings import bindings
from devlint.facts.text.method_names import TENSOR_ATTRIBUTES, TO_HOST
from devlint.facts.text.nodes import walk
from devlint.facts.text.reads import root_of
from devlint.facts.text.references import chain, is_self_attribute, last_name
from devlint.facts.text.results import parents
from devlint.facts.text.scan import FunctionScan
from devlint.facts.text.signatures import parameter_names
from devlint.facts.text.signs import OF_HOST
from devlint.facts.values import HOME, Value, symbol

if TYPE_CHECKING:
    from devlint.facts.interpreter.arguments import CallArguments
    from devlint.facts.interpreter.machine import Machine
    from devlint.facts.interpreter.tensor_methods import TensorMethods

#: What a condition asks that tells tensors of the CPU from others, or tensors from what is none.
_TELLS = re.compile(
    r"cuda|gpu|cpu|device|accel|\bmps\b|xla|tpu|npu|hpu|host|isinstance|hasattr|type\(|is_tensor|is_torch|is_tf"
    r"|numpy|framework|tensorflow|keras|paddle|jax|mlx|\btf\b",
    re.IGNORECASE,
)
#: Names of functions that give what is on the host.
_OF_HOST = re.compile(r"cpu|numpy|^np$|host|item|list|load|read", re.IGNORECASE)
#: Names of what programs that convert weights load them into: host memory.
_OF_STATES = re.compile(r"state|checkpoint|ckpt|pretrained", re.IGNORECASE)
_DEPTH = 3


def note(machine: TensorMethods, node: ast.Call, target: ast.expr) -> bool:
    """Emit `Use` for `target.numpy()`, of whose receiver no place is known; whether the function says one elsewhere."""
    function = machine.function
    own = machine.scan.functions.get(id(function.node)) if function is not None else None
    if own is None or function is None or not machine.assume or machine.host:
        return False
    if knows_other_tensors(machine.imports.names) or function.name.rsplit(".", 1)[-1].startswith("test"):
        return False
    subject = subject_of(target)
    if subject is None or any(OF_HOST.search(last_name(p)) is not None for p in chain(subject)):
        return False
    if is_left_on_host(machine, target):
        return False
    value = where_asked(machine, own, subject, _DEPTH) or where_fetched(machine, own, node, subject)
    if value is not None:
        detached = isinstance(target, ast.Call) and last_name(target.func) == "detach"
        machine.use(node, "numpy", machine.operand(target, value), detached)
    return value is not None


def subject_of(node: ast.expr) -> ast.expr | None:
    """The name or attribute whose tensor an expression is of, or is computed from alone; None where it is on the host."""
    while True:
        if isinstance(node, ast.Call):
            function = node.func
            if not isinstance(function, ast.Attribute) or function.attr in TO_HOST:
                return None
            if isinstance(function.value, ast.Name) and function.value.id == "torch":
                if not node.args:
                    return None
                node = node.args[0]
            elif knowledge.method("Tensor", function.attr) is not None:
                node = function.value
            else:
                return None
        elif isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr in TENSOR_ATTRIBUTES):
            node = node.value
        else:
            return node if is_path(node) else None


def is_path(node: ast.expr) -> bool:
    """Whether an expression is a name, or an attribute of a path, and not the object itself or a name of a library."""
    if is_self_attribute(node):
        return True
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id not in ("self", "cls", "torch", "np")


def where_asked(machine: CallArguments, own: FunctionScan, subject: ast.expr, depth: int) -> Value | None:
    """Where a function makes or moves others to the device of a local name, or of an attribute; or of what it is computed from.

    Not of an argument: its callers tell where it is.
    """
    if isinstance(subject, ast.Name) and subject.id in parameter_names(own.node):
        return None
    given = bindings(own).get(last_name(root_of(subject)), [])
    if any(map(is_of_host, given)) or any(is_made_on_host(own, each) for each in given):
        return None
    text = machine.text(subject)
    for asked in asked_for(own).get(ast.unparse(subject), ()):
        path = machine.text(asked)
        origin = machine.origin(asked, f"other tensors are moved to the device of `{text}` here")
        return Value("tensor", symbol(path, machine.scope_id(path)), None, because=(origin,))
    if depth and isinstance(subject, ast.Name) and own.bound.get(subject.id) == 1 and len(given) == 1:
        for part in operands(given[0]):
            source = subject_of(part)
            found = where_asked(machine, own, source, depth - 1) if source is not None else None
            if found is not None:
                return found
    return None


def is_of_host(node: ast.expr) -> bool:
    """Whether an expression calls by its name what gives something of the host: `np.stack(x)`, `load(path)`, `x.to("cpu")`.

    Also a part of a checkpoint: `state_dict[key]`.
    """
    parts = chain(node)
    if any(isinstance(part, ast.Subscript) and _OF_STATES.search(last_name(part.value)) is not None for part in parts):
        return True
    called = [part for part in chain(node) if isinstance(part, ast.Call)]
    names = (last_name(part) for call in called for part in chain(call.func))
    return any(map(goes_back, called)) or any(_OF_HOST.search(name) is not None for name in names)


def is_made_on_host(own: FunctionScan, node: ast.expr) -> bool:
    """Whether an expression hands the CPU to what it calls, or stands under it: `run(x, device="cpu")`."""
    called = [part for part in chain(node) if isinstance(part, ast.Call)]
    if any(is_cpu(given) for call in called for given in (*call.args, *(k.value for k in call.keywords))):
        return True
    if not says_cpu(own.node):
        return False
    outer = [each for each in around(node, above(own.node)) if isinstance(each, (ast.With, ast.AsyncWith))]
    return any(is_cpu(item.context_expr) for each in outer for item in each.items)


@lru_cache(8)
def says_cpu(function: ast.AST) -> bool:
    """Whether a function has a block under `torch.device("cpu")`."""
    return any(isinstance(node, ast.withitem) and is_cpu(node.context_expr) for node in walk(function))


@lru_cache(8)
def asked_for(own: FunctionScan) -> dict[str, list[ast.Attribute]]:
    """Each name or attribute whose device a function asks for, as `devices` has them."""
    found: dict[str, list[ast.Attribute]] = {}
    for asked in devices(own):
        if isinstance(asked.value, (ast.Name, ast.Attribute)):
            found.setdefault(ast.unparse(asked.value), []).append(asked)
    return found


def devices(own: FunctionScan) -> Iterator[ast.Attribute]:
    """Each `x.device` that a function gives to what makes or moves tensors, or binds to a name."""
    for call in own.calls:
        given = [keyword.value for keyword in call.keywords if keyword.arg == "device"]
        if last_name(call.func) == "to":
            given += call.args[:1]
        yield from (g for g in given if isinstance(g, ast.Attribute) and g.attr == "device")
    for each in own.assigns:
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Attribute) and each.value.attr == "device":
            if all(isinstance(target, ast.Name) for target in each.targets):
                yield each.value


def operands(node: ast.expr) -> Iterator[ast.expr]:
    """The operands of an arithmetic expression; the expression itself where it is none."""
    if isinstance(node, ast.BinOp):
        yield from operands(node.left)
        yield from operands(node.right)
    elif isinstance(node, ast.UnaryOp):
        yield from operands(node.operand)
    else:
        yield node


def where_fetched(machine: Machine, own: FunctionScan, node: ast.expr, subject: ast.expr) -> Value | None:
    """A tensor that another place of the function brings to the CPU: it may be on an accelerator at this place as well."""
    text = machine.text(subject)
    root = last_name(root_of(subject))
    candidates = fetched(own).get(ast.unparse(subject), [])
    if not candidates or any(is_made_on_host(own, each) for each in bindings(own).get(root, [])):
        return None
    if not is_bound_alike(machine, own, root) or any(machine.text(n) == text for n in own.stores):
        return None
    outer = above(own.node)
    here = list(around(node, outer))
    if any(tells(machine, test, root) for test in tests(node, here)):
        return None
    for call in candidates:
        there = list(around(call, outer))
        if any(tells(machine, test, root) for test in tests(call, there)):
            continue
        if any(isinstance(each, ast.Try) and each.handlers and each in here for each in there):
            continue
        if not binds_again(machine, there, text, root):
            origin = machine.origin(call, f"`{text}` is copied to the CPU here")
            return Value("tensor", HOME, None, because=(origin,))
    return None


@lru_cache(8)
def fetched(own: FunctionScan) -> dict[str, list[ast.Call]]:
    """The calls of a function that bring a tensor to the CPU, by the name or attribute that it is of."""
    found: dict[str, list[ast.Call]] = {}
    for call in own.calls:
        if isinstance(call.func, ast.Attribute) and goes_back(call):
            source = subject_of(call.func.value)
            if source is not None:
                found.setdefault(ast.unparse(source), []).append(call)
    return found


def is_bound_alike(machine: Machine, own: FunctionScan, name: str) -> bool:
    """Whether a name is bound once at most, or each time to, or by a loop over, the same expression."""
    bound = own.bound.get(name, 0)
    if name in parameter_names(own.node):
        return not bound
    given = [machine.text(value) for value in bindings(own).get(name, ())]
    return bound <= 1 or (len(given) == bound and len(set(given)) == 1)


@lru_cache(8)
def above(function: ast.AST) -> Mapping[ast.AST, ast.AST]:
    """The node above each node of a function."""
    return parents(function)


def around(node: ast.AST, outer: Mapping[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    """The nodes that a node stands in, the nearest first."""
    above_it = outer.get(node)
    while above_it is not None:
        yield above_it
        above_it = outer.get(above_it)


def tests(node: ast.AST, around_it: list[ast.AST]) -> Iterator[ast.AST]:
    """The conditions and patterns that decide whether a place is reached."""
    for each in around_it:
        if isinstance(each, (ast.If, ast.IfExp, ast.While)):
            yield each.test
        elif isinstance(each, ast.BoolOp):
            yield each
        elif isinstance(each, ast.Match):
            yield each.subject
            for case in each.cases:
                yield case.pattern
                if case.guard is not None:
                    yield case.guard


def tells(machine: Machine, test: ast.AST, root: str) -> bool:
    """Whether a condition asks for devices, or for the type of anything: but for `isinstance` of another name than `root`."""
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "isinstance" and test.args:
        asked = test.args[0]
        if isinstance(asked, ast.Name) and asked.id != root and "ensor" not in machine.text(test):
            return False
    return _TELLS.search(machine.text(test)) is not None


def binds_again(machine: Machine, around_it: list[ast.AST], text: str, root: str) -> bool:
    """Whether the statement of a move binds what it moves, or drops the result: a move in place."""
    statement = next((each for each in around_it if isinstance(each, ast.stmt)), None)
    if isinstance(statement, ast.Expr) and around_it[0] is statement:
        return True
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    parts = (n for target in targets if target is not None for n in walk(target))
    return any(isinstance(n, (ast.Name, ast.Attribute)) and machine.text(n) in (text, root) for n in parts)

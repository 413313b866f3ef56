"""Tests about devices that come out the same whatever the machine, or fail, by what torch calls its devices.

    x.dtype == "cpu"                        # a dtype is no device
    "gpu" in str(device)                    # torch calls it "cuda"
    "cpu" in device                         # a `torch.device` is no text: TypeError
    device != "cpu" or (isinstance(device, torch.device) and ...)  # what is no text was compared with one before
    model.device == "cuda"                  # a `torch.device` never equals a text
    boxes.xy.device == "cuda"               # nor does that of an attribute which the function treats as a tensor
    y.device == device                      # for the test's `torch.device("cuda")`: a tensor's device has an index
    device.type == "cuda:0"                 # a type has no index
    device.index >= count                   # of `torch.device(name)`, where "cuda" has no index: TypeError

Files that know the devices of another library as well are left alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial

from devlint.facts.events import DeviceTest, TestProblem
from devlint.facts.interpreter.flow import Flow
from devlint.facts.interpreter.imported import definition
from devlint.facts.surveys.outline import Outline, dotted, parameters
from devlint.facts.text import parametrized
from devlint.facts.text.nodes import text_of, walk
from devlint.facts.text.parameters import TENSOR_ONLY, fits_others
from devlint.facts.text.references import last_name
from devlint.facts.text.signatures import parameter_of
from devlint.facts.text.trained import stores

_DEVICE_NAME = re.compile(r"(?:cpu|cuda|mps|xpu|npu|hpu|meta)(?::\d+)?\Z")
_INDEXED = re.compile(r"(?:cuda|xpu):\d+\Z")
_NO_TYPE = re.compile(r"gpu(?::\d+)?\Z")
_NEEDS = re.compile(
    r"(?i)\W*(?:no (?:cuda|gpu)s?(?: devices?)?(?: (?:is|are))?(?: (?:available|found|present|detected|here))?"
    r"|(?:test )?(?:requires?|needs?) (?:an? )?(?:cuda|gpu)s?(?: devices?)?"
    r"|(?:cuda|gpu)s?(?: (?:is|are))? (?:not available|unavailable|required|needed|missing))\W*\Z"
)
_BEGINNINGS = ("cpu", "cuda", "mps", "xpu", "npu", "hpu", "meta", "gpu")
_IS_DEVICE = re.compile(r"(?:\A|_)device\Z")
_OTHERS = frozenset({"tensorflow", "jax", "mxnet", "paddle", "cupy", "mlx", "openvino"})
#: Terms of a condition, and values of a test, that are looked at.
_TERMS, _VALUES = 16, 16
#: Libraries whose models say where they are by a text.
_OTHER_MODELS = frozenset({"ctranslate2", "faster_whisper", "onnxruntime", "llama_cpp"})
#: What a file with any of these tests has in its text.
WORDS = (
    'dtype == "', "dtype == '", "dtype != ", "device.type", '"gpu"', "'gpu'", " in device", "torch.device)", "parametrize(",
    "device ==", "device !=", "skipif(", "skipIf(", ".type ==", ".type !=", ".index >", ".index <", ".index\n",
)  # fmt: skip

#: What is wrong, the part of the comparison that it is about, and what that is compared with.
Found = tuple[TestProblem, ast.expr, str]


def compares_devices(tree: ast.Module, flow: Flow, text: str) -> bool:
    """The gate: a file with a comparison that may be such a test, or a mark that skips tests, and one of the words."""
    calls = flow.scan.calls
    asks = "skipif" in calls or "skipIf" in calls or "parametrize" in calls or any(map(may_ask, flow.scan.compares))
    return asks and any(word in text for word in WORDS)


def may_ask(node: ast.Compare) -> bool:
    """Whether a comparison is of a dtype, or with a text that begins like the name of a device."""
    if isinstance(node.left, ast.Attribute) and node.left.attr == "dtype":
        return True
    return any((text_of(side) or "").startswith(_BEGINNINGS) for side in (node.left, node.comparators[0]))


def device_tests(o: Outline) -> Iterator[DeviceTest]:
    """The tests of a file that never hold, or fail."""
    if any(name.partition(".")[0] in _OTHERS for name in o.flow.imports.names.values()):
        return
    for call in o.calls if "skip" in o.flow.source.text else ():
        if (asked := _skips(o, call)) is not None:
            yield DeviceTest(*o.head(asked), "skips", o.flow.span(asked), o.flow.text(asked), "", False)
    for node in o.flow.scan.compares:
        if len(node.ops) != 1:
            continue
        (operator,), left, (right,) = node.ops, node.left, node.comparators
        if isinstance(operator, (ast.Eq, ast.NotEq)):
            problem = (
                _of_dtype(left, right)
                or (_of_type(left, right) or _of_type(right, left))
                or (_of_gpu(o, node, left, right) or _of_gpu(o, node, right, left))
                or _of_either(o, node, left, right)
                or _of_model(o, left, right)
                or _of_moved(o, node, left, right)
                or (_of_argument(o, node, left, right) or _of_argument(o, node, right, left))
            )
        elif isinstance(operator, (ast.In, ast.NotIn)):
            problem = _in_device(o, node, left, right)
        elif isinstance(operator, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
            problem = _of_index(o, node, left) or _of_index(o, node, right)
        else:
            continue
        if problem is not None:
            kind, subject, word = problem
            negated = isinstance(operator, (ast.NotEq, ast.NotIn))
            yield DeviceTest(*o.head(node), kind, o.flow.span(subject), o.flow.text(subject), word, negated)


def _skips(o: Outline, call: ast.Call) -> ast.Call | None:
    """`skipif(torch.cuda.is_available(), reason="No CUDA")`: the test is skipped where it could run."""
    if last_name(call.func) not in ("skipif", "skipIf") or not call.args or not isinstance(call.args[0], ast.Call):
        return None
    asked = call.args[0]
    if not (o.qualname(asked.func) or "").startswith("torch.") or last_name(asked.func) != "is_available":
        return None
    reasons = [*call.args[1:], *(k.value for k in call.keywords if k.arg == "reason")]
    told = " ".join(text_of(reason) or "" for reason in reasons)
    return asked if _NEEDS.match(told) is not None else None


def _of_dtype(left: ast.expr, right: ast.expr) -> Found | None:
    """`x.dtype == "cpu"`, `x.dtype == device.type`."""
    if not isinstance(left, ast.Attribute) or left.attr != "dtype":
        return None
    text = text_of(right)
    if text is not None and _DEVICE_NAME.match(text):
        return "dtype", left, f'"{text}"'
    if isinstance(right, ast.Attribute) and right.attr == "type" and _IS_DEVICE.search(last_name(right.value)):
        return "dtype", left, ast.unparse(right)
    return None


def _of_type(left: ast.expr, right: ast.expr) -> Found | None:
    """`device.type == "cuda:0"`."""
    text = text_of(right)
    if text is None or not _INDEXED.match(text) or not isinstance(left, ast.Attribute) or left.attr != "type":
        return None
    return ("typed", left, text) if _IS_DEVICE.search(last_name(left.value)) else None


def _of_index(o: Outline, node: ast.Compare, side: ast.expr) -> Found | None:
    """`device.index >= count`, where the device is made of a name and nothing in the function asks for its index before."""
    if not isinstance(side, ast.Attribute) or side.attr != "index":
        return None
    path = dotted(side.value)
    if path is None:
        return None
    bound = o.values(o.scope(node)).get(path)
    values = [v for v in bound if v is None or v.lineno < node.lineno] if bound else o.assignments(path, node)
    if not values or not all(map(partial(_is_of_name, o), values)):
        return None
    function = o.function(node)
    if '":" in' in o.flow.text(function if function is not None else o.tree.body[0]):
        return None  # the name is asked for its index
    asked = [a for a in o.attributes.get("index", ()) if dotted(a.value) == path and a.lineno <= node.lineno]
    return ("no-index", side, path) if asked == [side] else None


def _is_of_name(o: Outline, node: ast.expr | None) -> bool:
    """Whether a device is made of a name that the code does not show: `torch.device(name)`."""
    if (
        not isinstance(node, ast.Call)
        or o.qualname(node.func) != "torch.device"
        or len(node.args) != 1
        or node.keywords
    ):
        return False
    return isinstance(node.args[0], (ast.Name, ast.Attribute))


def _of_gpu(o: Outline, node: ast.Compare, left: ast.expr, right: ast.expr) -> Found | None:
    """`device.type == "gpu"`, `str(device) == "gpu"`."""
    text = text_of(right)
    if text is None or not _NO_TYPE.match(text) or not is_text_of_device(o, node, left):
        return None
    return "no-type", right, text


def is_text_of_device(o: Outline, place: ast.AST, node: ast.expr) -> bool:
    """Whether an expression is the type of a device, `device.type`, or its text, `str(device)`."""
    if isinstance(node, ast.Attribute) and node.attr == "type":
        base = node.value
        if last_name(base) != "device":
            return False
        annotated = isinstance(base, ast.Name) and annotation(o, place, base.id) is not None
        return not annotated or is_device(o, place, base) is not None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str" and len(node.args) == 1:
        return is_device(o, place, node.args[0]) == "device"
    return False


def _in_device(o: Outline, node: ast.Compare, left: ast.expr, right: ast.expr) -> Found | None:
    """`"gpu" in str(device)`, `"cpu" in device`."""
    text = text_of(left)
    if text is None:
        return None
    if _NO_TYPE.match(text):
        return ("no-type", left, text) if is_text_of_device(o, node, right) else None
    if _DEVICE_NAME.match(text) and is_device(o, node, right) is not None and not is_told_apart(o, node, right):
        return "in-device", right, f'"{text}"'
    return None


def _of_either(o: Outline, node: ast.Compare, left: ast.expr, right: ast.expr) -> Found | None:
    """`device != "cpu" or (isinstance(device, torch.device) and ...)`: one test asks for what the other leaves out."""
    text = text_of(right)
    if text is None or not _DEVICE_NAME.match(text) or dotted(left) is None:
        return None
    around = o.parent.get(node)
    if not isinstance(around, ast.BoolOp):
        return None
    if len(around.values) > _TERMS:
        return None
    position = around.values.index(node)
    if is_told_apart(o, node, left) or not any(
        asks_class(o, n, left) for v in around.values[position + 1 :] for n in walk(v)
    ):
        return None
    name = dotted(left)
    for other in walk(around):  # `device == torch.device("cpu") or device == "cpu"` asks for both
        if (
            isinstance(other, ast.Compare)
            and other is not node
            and name in map(dotted, (other.left, *other.comparators))
        ):
            if any(isinstance(side, ast.Call) for side in (other.left, *other.comparators)):
                return None
    return "either", left, f'"{text}"'


def _of_model(o: Outline, left: ast.expr, right: ast.expr) -> Found | None:
    """`model.device == "cuda"`: the `device` of a model is that of its parameters, where the file gives it no other."""
    text = text_of(right)
    if text is None or not _DEVICE_NAME.match(text) or not isinstance(left, ast.Attribute) or left.attr != "device":
        return None
    if last_name(left.value) != "model" or isinstance(left.value, ast.Call):
        return None
    if any(name.partition(".")[0] in _OTHER_MODELS for name in o.flow.imports.names.values()):
        return None
    return None if declares_device(o) or annotates_model(o) else ("model", left, f'"{text}"')


def _of_moved(o: Outline, node: ast.Compare, left: ast.expr, right: ast.expr) -> Found | None:
    """`boxes.xy.device == "cuda"`, or of a name for that device, where the function treats `boxes.xy` as a tensor.

    By a method that tensors alone have, or by `to` with a `torch.device`. Tensors in variables are the interpreter's.
    """
    text = text_of(right)
    if text is None or not _DEVICE_NAME.match(text):
        return None
    function = o.function(node)
    if function is None:
        return None
    held = left
    if isinstance(left, ast.Name):
        bound = o.values(function).get(left.id, ())
        if len(bound) != 1 or bound[0] is None or left.id in parameters(function):
            return None
        held = bound[0]
    if not isinstance(held, ast.Attribute) or held.attr != "device" or not isinstance(held.value, ast.Attribute):
        return None
    path = dotted(held.value)
    if path is None or not any(is_tensors_call(o, call, path) for call in o.calls if o.function(call) is function):
        return None
    asked = any("isinstance(" in test for test in asked_before(o, node))
    return None if asked or declares_device(o) else ("moved", left, f'"{text}"')


def is_tensors_call(o: Outline, call: ast.Call, path: str) -> bool:
    """Whether a call is of a method of what a path holds, and says that this is a tensor."""
    method = call.func
    if not isinstance(method, ast.Attribute) or dotted(method.value) != path:
        return False
    if method.attr == "to":
        return len(call.args) == 1 and isinstance(call.args[0], ast.Call) and name_of(o, call.args[0]) is not None
    return method.attr in TENSOR_ONLY and method.attr != "numpy" and not fits_others(call)


def declares_device(o: Outline) -> bool:
    """Whether a file says itself what some object's `device` is: by a value, a property or an annotation."""
    if any(isinstance(a.ctx, ast.Store) for a in o.attributes.get("device", ())):
        return True
    if any(function.name == "device" for function in o.functions):
        return True
    fields = (n for class_ in o.classes for n in class_.body if isinstance(n, ast.AnnAssign))
    return any(last_name(field.target) == "device" for field in fields)


def annotates_model(o: Outline) -> bool:
    """Whether a function of the file says that its `model` is of a class of the project which binds a `device` of its own.

    What that is is its own affair: `model: "benchmarks.BenchmarkModel"`, whose `device` may be a text.
    """
    given = (parameter_of(function.args, "model") for function in o.functions)
    annotations = [a.annotation for a in given if a is not None and a.annotation is not None]
    found = (
        o.flow.find(name) for a in annotations if (name := text_of(a) or o.qualname(a)) is not None and "." in name
    )
    classes = (definition(each) for each in found if each is not None and each.kind == "class")
    return any(stores(known[1], "device") for known in classes if known is not None)


def asks_class(o: Outline, node: ast.AST, subject: ast.expr) -> bool:
    """Whether a node is `isinstance(subject, torch.device)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "isinstance":
        return False
    return (
        len(node.args) == 2 and dotted(node.args[0]) == dotted(subject) and o.qualname(node.args[1]) == "torch.device"
    )


def is_told_apart(o: Outline, place: ast.AST, subject: ast.expr) -> bool:
    """Whether a place only runs where its function has asked what class a device is of, or turned it into a text."""
    path = dotted(subject)
    if path is None:
        return True
    if any("isinstance(" in test and path in test for test in asked_before(o, place)):
        return True
    function = o.function(place)
    return function is not None and any(
        isinstance(n, (ast.Assign, ast.AnnAssign, ast.NamedExpr))
        and n.lineno < getattr(place, "lineno", 0)
        and path in map(dotted, n.targets if isinstance(n, ast.Assign) else [n.target])
        for n in walk(function)
    )


def asked_before(o: Outline, place: ast.AST) -> Iterator[str]:
    """The source of every condition of its function that was asked before a place is reached."""
    child = place
    for above in o.above(place):
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return
        if isinstance(above, (ast.If, ast.IfExp, ast.While)) and child is not above.test:
            yield o.flow.text(above.test)
        elif isinstance(above, ast.BoolOp):
            yield from map(o.flow.text, above.values[: above.values.index(child)])  # type: ignore[arg-type]
        child = above


def is_device(o: Outline, place: ast.AST, node: ast.expr) -> str | None:
    """Whether a parameter is a `torch.device` by its annotation: "device", or "either" for `str | torch.device`."""
    function = o.function(place)
    if not isinstance(node, ast.Name) or function is None or node.id in o.values(function):
        return None
    note = annotation(o, place, node.id)
    if note is None:
        return None
    if isinstance(note, ast.Constant) and isinstance(note.value, str):
        try:
            note = ast.parse(note.value, mode="eval").body
        except SyntaxError:
            return None
    kinds = set(alternatives(o, note))
    if "torch.device" not in kinds or None in kinds:
        return None
    return "either" if kinds - {"torch.device", "None"} else "device"


def annotation(o: Outline, place: ast.AST, name: str) -> ast.expr | None:
    """The annotation of a parameter of the function around a place."""
    function = o.function(place)
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    parameter = parameter_of(function.args, name)
    return parameter.annotation if parameter is not None else None


def alternatives(o: Outline, note: ast.expr) -> Iterator[str | None]:
    """The classes that an annotation leaves open: of `Optional`, `Union` and `|`; None for what holds others."""
    if isinstance(note, ast.BinOp) and isinstance(note.op, ast.BitOr):
        yield from alternatives(o, note.left)
        yield from alternatives(o, note.right)
    elif isinstance(note, ast.Subscript):
        parts = note.slice.elts if isinstance(note.slice, ast.Tuple) else [note.slice]
        if last_name(note.value) not in ("Optional", "Union"):
            yield None
        for part in parts:
            yield from alternatives(o, part)
    elif isinstance(note, ast.Constant):
        yield "None" if note.value is None else None
    elif isinstance(note, (ast.Name, ast.Attribute)):
        yield o.qualname(note) or last_name(note)
    else:
        yield None


def _of_argument(o: Outline, node: ast.Compare, left: ast.expr, right: ast.expr) -> Found | None:
    """`y.device == device`, where the test is also given `torch.device("cuda")`, or one of the two has no index."""
    function = o.function(node) if isinstance(right, ast.Name) else None
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or not isinstance(right, ast.Name):
        return None
    if right.id in o.values(function):
        return None
    values = parametrized.given(function).get(right.id, ())
    names = [name for value in values[:_VALUES] if (name := name_of(o, value)) is not None]
    if isinstance(left, ast.Attribute) and left.attr == "device" and dotted(left) != right.id:
        without = next((name for name in names if name in ("cuda", "xpu")), None)
        return ("without-index", left, without) if without is not None and not is_asked_apart(o, node, right) else None
    other = name_of(o, left)
    if (
        other in ("cuda", "xpu")
        and other not in names
        and any(_INDEXED.match(n) and n.startswith(other) for n in names)
    ):
        return "indexed", left, next(n for n in names if n.startswith(other))
    return None


def is_asked_apart(o: Outline, place: ast.AST, subject: ast.Name) -> bool:
    """Whether a place stands under a condition about the device, which may leave the index-free ones out."""
    return any(subject.id in test for test in o.tests(place))


def name_of(o: Outline, node: ast.expr) -> str | None:
    """The name that a `torch.device(...)` is made of: "cuda:0"."""
    if isinstance(node, ast.Call) and o.qualname(node.func) == "torch.device" and len(node.args) == 1:
        return text_of(node.args[0])
    return None

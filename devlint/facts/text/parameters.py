"""Which parameters of a function are tensors: by annotation, or by a use that only a tensor supports."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable, Mapping, Sequence, Set

from devlint import knowledge
from devlint.facts.frozen import replace
from devlint.facts.text import documented
from devlint.facts.text.annotations import (
    holds_tensors,
    is_tensor_annotation,
    knows_other_tensors,
    may_be_tensor,
    says_container,
)
from devlint.facts.text.factory_names import CONVERSIONS
from devlint.facts.text.method_names import OFF_HOST
from devlint.facts.text.nodes import walk
from devlint.facts.text.scan import FunctionScan
from devlint.facts.text.signatures import default_of, named_parameters
from devlint.facts.values import GUESS, Value

#: Attributes that a tensor has and an ndarray, a module, a list or a number has not [torch.Tensor's documentation].
_PROPERTIES = frozenset({"is_cuda", "grad_fn", "layout"})
TENSOR_ONLY = frozenset(
    {
        "unsqueeze", "permute", "contiguous", "detach", "numel", "new_zeros", "new_ones", "new_empty", "new_full",
        "new_tensor", "expand", "expand_as", "type_as", "masked_fill", "masked_fill_", "masked_select", "scatter",
        "scatter_", "scatter_add_", "gather", "index_select", "index_fill_", "chunk", "log_softmax", "sigmoid", "bmm",
        "matmul", "mm", "unbind", "is_cuda", "grad_fn", "mul_", "add_", "sub_", "div_", "unsqueeze_", "squeeze_",
        "long", "dim", "narrow", "unfold", "view_as", "reshape_as", "is_floating_point", "is_contiguous", "numpy",
        "retain_grad", "addmm", "lerp_", "copy_", "zero_", "fill_", "normal_", "uniform_", "clamp_", "repeat_interleave",
        "element_size", "layout", "addcmul_", "addcdiv_", "logsumexp", "index_add_", "backward",
        "ndimension", "nelement", "baddbmm", "addbmm", "addcmul", "addcdiv", "addmv", "clamp_min", "clamp_max",
        "clamp_min_", "clamp_max_", "index_add", "index_copy", "index_copy_", "index_fill", "index_put", "index_put_",
        "masked_scatter", "masked_scatter_", "scatter_add", "scatter_reduce", "scatter_reduce_", "rsqrt", "tril",
        "triu", "logical_not", "logcumsumexp", "kthvalue", "unique_consecutive", "take_along_dim", "tensor_split",
        "split_with_sizes", "unflatten", "diag_embed", "movedim", "swapdims", "nan_to_num", "lgamma", "digamma",
        "bernoulli_", "exponential_", "pow_", "sqrt_", "exp_", "log_", "abs_", "neg_", "round_", "t_",
        "transpose_", "to_dense", "to_sparse", "new_empty_strided", "as_strided", "float_power", "floor_divide",
        "true_divide", "fmod", "xlogy", "erfinv", "sum_to_size", "broadcast_to", "is_same_size", "aminmax",
    }
)  # fmt: skip
#: Attributes of modules, and of what steps or averages them, that tensors have not.
MODULE_ONLY = frozenset(
    {
        "parameters", "named_parameters", "buffers", "named_buffers", "modules", "named_modules", "children",
        "named_children", "state_dict", "load_state_dict", "eval", "train", "training", "zero_grad", "to_empty",
        "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook",
    }
)  # fmt: skip
_TENSOR_OR_ARRAY = frozenset({"size", "view", "shape", "float", "softmax", "clamp", "ndim", "mean", "sum", "tanh"})
_NOT_EVIDENCE = frozenset(
    {
        "torch.tensor", "torch.as_tensor", "torch.asarray", "torch.from_numpy", "torch.is_tensor", "torch.Tensor",
        "torch.device", "torch.save", "torch.load", "torch.manual_seed", "torch.Size", "torch.stack", "torch.cat",
    }
)  # fmt: skip
#: Methods without arguments of a tensor, where an ndarray has none of the name [numpy.ndarray's documentation].
_ELEMENTWISE = frozenset({"exp", "sqrt", "log1p", "expm1", "tanh", "sin", "cos", "erf", "logdet", "isnan", "isinf"})
#: Methods that a tensor has and an ndarray has not, or not as a method, or not with these arguments.
_CALLED_ONLY = frozenset({"size", "softmax", "clamp", "topk", "t", "type_as", "cumsum_", "sigmoid_", "relu"})
_STORED = re.compile(r"state|check_?point|ckpt|weights|saved")  # a checkpoint, which is on the host for the most part
_JOINS = frozenset({"torch.cat", "torch.concat", "torch.stack", "torch.hstack", "torch.vstack", "torch.dstack"})
_OF_MODULES_ALONE = frozenset({"named_parameters", "named_buffers"})
_BASIC = frozenset({"int", "float", "bool", "str"})
_NONE: frozenset[str] = frozenset()
#: Names of what is always on the CPU: that field of a `PackedSequence` [torch.nn.utils.rnn.PackedSequence, "Note"].
_ON_HOST = frozenset({"batch_sizes"})


class Evidence:
    """The uses of a function's parameters, read in one walk over its body."""

    def __init__(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
        own: FunctionScan,
        names: dict[str, str],
        forward: bool,
        own_methods: Container[str] = (),
        of_module: bool = False,
    ) -> None:
        self.own_methods = own_methods
        self.in_init = getattr(node, "name", "") == "__init__" and not of_module
        self.tensors: set[str] = set()
        self.devices: set[str] = set()
        self.modules: set[str] = set()
        self.annotated_modules: set[str] = set()  # with an annotation, and used as nothing but a module can be
        self.asked = _NONE  # those of `narrowed` without what numpy is given
        self.narrowed: set[str] = set()  # the code asks what they are: `isinstance(x, ...)`, `hasattr(x, ...)`
        self.arrays: set[str] = set()  # given to numpy
        self.converted: set[str] = set()  # made into a tensor here, so no tensor before
        self.listed: set[str] = set()  # given to `torch.IntTensor`, which takes lists, and refuses a tensor of a card
        self.either: set[str] = set()  # made into a tensor on the path on which it is none, see `converted`
        self.containers: set[str] = set()  # a tensor, or a sequence of tensors
        self.parted: set[str] = set()  # of which a part is moved: `batch["image"].to(device)`
        self.used_as_tensors: set[str] = set()  # names of any kind that are used as only tensors can be
        arguments = node.args
        every = named_parameters(arguments)
        self.parameters = {a.arg for a in every}
        noted = [(a.arg, a.annotation) for a in every if a.annotation is not None]
        annotated = {name for name, note in noted if not says_container(note)}
        self.annotated: Set[str] = _NONE  # as tensors
        self.several: Set[str] = _NONE  # as tensors in a structure
        self.maybe: Set[str] = _NONE  # as tensors or something else
        noted = [(name, note) for name, note in noted if not (isinstance(note, ast.Name) and note.id in _BASIC)]
        if noted:
            self.annotated = {name for name, note in noted if is_tensor_annotation(note, names)}
            several = [name for name, note in noted if holds_tensors(note, names)]
            self.several = {name for name in several if not _STORED.search(name)}
            self.maybe = {name for name, note in noted if may_be_tensor(note, names)}
            self.tensors |= self.annotated
        self.weak: set[str] = set()  # what shows that they are tensors fits arrays as well
        open_ = self.parameters - annotated - {"self", "cls"}
        self.documented: Set[str] = _NONE  # by the docstring
        said = documented.of_function(node, own.owner)
        if said.tensors or said.several:
            several_said = {name for name in said.several & open_ if not _STORED.search(name)}
            self.documented = (said.tensors & open_) | several_said
            self.tensors |= said.tensors & open_
            self.containers |= several_said
        shown: set[int] = set()
        if not TENSOR_ONLY.isdisjoint([child.attr for child in own.attributes]):
            for call in own.calls:
                function = call.func
                if isinstance(function, ast.Attribute) and function.attr in TENSOR_ONLY and not fits_others(call):
                    if function.attr != "numpy" or not knows_other_tensors(names):
                        shown.add(id(function))
        # those whose data are replaced: `weight.data = torch.relu(weight.data)`
        self.replaced = {s.value.id for s in own.stores if s.attr == "data" and isinstance(s.value, ast.Name)}
        placed: set[str] = set()  # parameters whose device is read, and those whose shape is: together tensors alone
        sized: set[str] = set()
        for child in own.attributes:
            base, attribute = child.value, child.attr
            if isinstance(base, ast.Name):
                name = base.id
                # `config.dim` is no method of a tensor
                if attribute in TENSOR_ONLY and (attribute in _PROPERTIES or id(child) in shown):
                    self._used(name, open_)
                elif name in open_:
                    if attribute == "device":
                        placed.add(name)
                    elif attribute in ("shape", "ndim"):
                        sized.add(name)
                    if forward and attribute in _TENSOR_OR_ARRAY:
                        self.weak.add(name)
                    elif attribute in ("parameters", "state_dict", "eval", "named_parameters"):
                        self.modules.add(name)
                elif attribute in _OF_MODULES_ALONE and name in annotated:
                    self.annotated_modules.add(name)
            elif attribute in TENSOR_ONLY:
                self._used(tensor_root(self._of_data(base)), open_)
        for name in placed & sized:
            self._used(name, open_)
        for call in own.calls:
            self._call(call, open_, names, forward)
        for item in own.subscripts if forward and open_ else ():
            if isinstance(item.value, ast.Name) and item.value.id in open_ and isinstance(item.slice, ast.Tuple):
                self.weak.add(item.value.id)
        for assign in own.assigns if open_ else ():
            if isinstance(assign, ast.Assign):
                self._assigned(assign, open_, arguments, names)
            else:
                self._iterated(assign, open_)
        for name, parameter in aliases_of(own.assigns, open_) if open_ and self.used_as_tensors else ():
            if name in self.used_as_tensors:
                self.tensors.add(parameter)
        self.weak -= self.tensors
        self.tensors |= self.weak
        self.converted |= self.listed - self.narrowed  # of what is no tensor one is made where that was asked
        self.tensors -= self.modules | (self.converted & open_) | _ON_HOST
        self.asked = frozenset(self.narrowed)
        self.narrowed |= self.arrays & open_  # given to numpy: host data, in one branch at least

    def _used(self, name: str | None, open_: Container[str]) -> None:
        """A name is used as only a tensor can be."""
        if name is None:
            return
        self.used_as_tensors.add(name)
        if name in open_:
            self.tensors.add(name)

    def _assigned(
        self, node: ast.Assign, open_: Container[str], arguments: ast.arguments, names: Mapping[str, str]
    ) -> None:
        """`row, col = edges` and what it shows of `edges`; a parameter that is None by default and then a new tensor."""
        if len(node.targets) != 1:
            return
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Name) and value.id in open_:
            parts = [e.id for e in target.elts if isinstance(e, ast.Name)]
            if any(p in self.used_as_tensors for p in parts):
                self.containers.add(value.id)
        elif isinstance(target, ast.Name) and target.id in open_:
            if not self.in_init and none_by_default(arguments, target.id) and fills_in(target.id, value, names):
                self.tensors.add(target.id)

    def _iterated(self, node: ast.For | ast.comprehension, open_: Container[str]) -> None:
        """`for row in rows`, and what it shows of `rows`."""
        for part, source in loop_pairs(node):
            if isinstance(part, ast.Name) and isinstance(source, ast.Name) and source.id in open_:
                if part.id in self.used_as_tensors:
                    self.containers.add(source.id)

    def settled(self, name: str, value: Value) -> Value:
        """What `name` is bound to: a guess becomes a tensor when the function uses the name as one."""
        if value.kind == "unknown" and value.type_name == GUESS and name in self.used_as_tensors:
            return replace(value, kind="tensor")
        return value

    def _of_data(self, node: ast.expr | None) -> ast.expr | None:
        """`x` for `x.data`, where the function also replaces that: what has such data is a tensor, or a parameter."""
        taken = node.value if isinstance(node, ast.Attribute) and node.attr == "data" else None
        return taken if isinstance(taken, ast.Name) and taken.id in self.replaced else node

    def _call(self, call: ast.Call, open_: set[str], names: dict[str, str], forward: bool) -> None:
        function = call.func
        for keyword in call.keywords:
            if keyword.arg in ("device", "map_location", "device_type") and isinstance(keyword.value, ast.Name):
                self.devices.add(keyword.value.id)
            elif keyword.arg == "dtype" and isinstance(keyword.value, ast.Attribute) and keyword.value.attr == "dtype":
                if isinstance(keyword.value.value, ast.Name) and names.get(root_name(function)) == "torch":
                    self._used(keyword.value.value.id, open_)
        if isinstance(function, ast.Name):
            asks = function.id in ("isinstance", "hasattr", "type") or function.id.startswith("is_")
            if asks and call.args and isinstance(call.args[0], ast.Name) and call.args[0].id != "self":
                self.narrowed.add(call.args[0].id)
            return
        if not isinstance(function, ast.Attribute):
            return
        method, receiver = function.attr, function.value
        if isinstance(receiver, ast.Subscript):
            # `x[:, 0].unique()`: no array
            if method == "unique" or shows_tensor(method, call):
                self._used(tensor_root(receiver), open_)
            if method in OFF_HOST:
                self._moves_part(call, method, receiver)
        elif isinstance(receiver, ast.Name) and shows_tensor(method, call):
            self._used(receiver.id, open_)
        first = call.args[0] if call.args else None
        if method in OFF_HOST and isinstance(first, ast.Name):
            if first.id in self.parameters and reads_like_device(first.id):
                self.devices.add(first.id)
            return
        root = receiver
        chain = [method]
        while isinstance(root, ast.Attribute):
            chain.append(root.attr)
            root = root.value
        if not isinstance(root, ast.Name):
            return
        if root.id == "self":
            if not (forward and isinstance(first, ast.Name) and first.id in open_):
                return
            if any(k.arg == "return_tensors" for k in call.keywords):
                return  # a tokenizer, which takes texts
            calls_forward = len(chain) == 2 and chain[0] == "forward"  # `self.encoder.forward(x)`
            if (len(chain) == 1 or calls_forward) and chain[-1] not in self.own_methods:
                self.tensors.add(first.id)
            return
        target = names.get(root.id)
        if target is None:
            return
        if target.split(".", 1)[0] == "numpy":
            given = unscaled(first)
            if isinstance(given, ast.Name):
                self.arrays.add(given.id)
        qualname = ".".join([target, *reversed(chain)])
        sparse = qualname.startswith("scipy.sparse.")  # an argument on its own is a matrix of numpy or of scipy
        if target.split(".", 1)[0] == "scipy" and (sparse or knowledge.function(qualname) is None):
            self.arrays |= {a.id for a in call.args if isinstance(a, ast.Name)}  # scipy makes arrays of all it is given
        if not target.startswith("torch"):
            return
        if qualname == "torch.device":
            if isinstance(first, ast.Name):
                self.devices.add(first.id)
        elif qualname == "torch.is_tensor":
            if isinstance(first, ast.Name):
                self.narrowed.add(first.id)
        elif qualname in CONVERSIONS:
            while isinstance(first, (ast.Subscript, ast.Attribute)):
                first = first.value
            if isinstance(first, ast.Name):
                self.arrays.add(first.id)
                self.converted.add(first.id)
        elif qualname.endswith("Tensor") and isinstance(first, ast.Name) and qualname.count(".") == 1:
            self.listed.add(first.id)
        elif qualname in _JOINS:
            if isinstance(first, (ast.List, ast.Tuple)):
                for joined in first.elts:
                    self._used(tensor_root(self._of_data(compared(unscaled(joined)))), open_)
        elif qualname not in _NOT_EVIDENCE and (positions := _tensor_positions(qualname, len(call.args))):
            for other in (call.args[position] for position in positions[1:]):
                self._used(other.id if isinstance(other, ast.Name) else None, open_)
            first = self._of_data(unscaled(call.args[positions[0]]))
            used = tensor_root(first)
            if used is not None:
                self._used(used, open_)
            elif isinstance(first, ast.Subscript) and isinstance(first.value, ast.Name) and first.value.id in open_:
                self.containers.add(first.value.id)

    def _moves_part(self, call: ast.Call, method: str, taken: ast.Subscript) -> None:
        """A part of something is moved: `batch["image"].to(device)`."""
        where = [*(k.value for k in call.keywords if k.arg == "device"), *call.args[:1]]
        name = (where[0].id if isinstance(where[0], ast.Name) else getattr(where[0], "attr", "")) if where else ""
        if isinstance(taken.value, ast.Name) and isinstance(taken.slice, ast.Constant):
            if reads_like_device(name) or (method != "to" and not where):
                self.parted.add(taken.value.id)


def loop_pairs(node: ast.For | ast.comprehension) -> list[tuple[ast.expr, ast.expr]]:
    """What a loop binds, and what it takes that from: `row` and `rows`, also below `enumerate` and `zip`."""
    target, iterated = node.target, node.iter
    if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.func.id == "enumerate":
        if not (isinstance(target, ast.Tuple) and len(target.elts) == 2 and iterated.args):
            return []
        target, iterated = target.elts[1], iterated.args[0]
    if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.func.id == "zip":
        if isinstance(target, ast.Tuple) and len(target.elts) == len(iterated.args):
            return list(zip(target.elts, iterated.args, strict=True))
    return [(target, iterated)]


def fits_others(call: ast.Call) -> bool:
    """Whether a call of a tensor's method is written as one of another object: `ax.scatter(x, y)`, `engine.backward(loss)`."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if name in ("scatter", "gather"):
        first = call.args[0] if call.args else None
        first = first.operand if isinstance(first, ast.UnaryOp) else first
        is_dimension = isinstance(first, ast.Constant) and isinstance(first.value, int)
        named = any(k.arg in ("dim", "index") for k in call.keywords)
        return not (is_dimension or named or (isinstance(first, ast.Name) and "dim" in first.id))
    return name == "backward" and bool(call.args)


def unscaled(node: ast.expr | None) -> ast.expr | None:
    """`x` for `-x`, `0.5 * x` and `x / 2 + 1`: a number beside it makes it no tensor, so it must be one itself."""
    while True:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            node = node.operand
        elif isinstance(node, ast.BinOp) and is_number(node.left):
            node = node.right
        elif isinstance(node, ast.BinOp) and is_number(node.right):
            node = node.left
        else:
            return node


def is_number(node: ast.expr) -> bool:
    """Whether an expression is written as a number: `0.5`, `-1`."""
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float))


def aliases_of(
    assigns: Iterable[ast.Assign | ast.For | ast.comprehension], open_: Container[str]
) -> Sequence[tuple[str, str]]:
    """Second names of parameters: `x_ = x`, `a, b = x, y`; what is bound again must be made of the name itself.

    `x_ = x_.index_select(...)` is; `out = x` and then `out = torch.cat(out)` says nothing of `x`.
    """
    found: dict[str, str] = {}
    spoiled: set[str] = set()
    others: list[tuple[ast.expr, ast.expr | None]] = []  # what is bound otherwise, and what to
    for assign in assigns:
        if not isinstance(assign, ast.Assign):
            others.append((assign.target, None))  # to whatever there is in what is iterated
            continue
        for target in assign.targets:
            pairs = [(target, assign.value)]
            if isinstance(target, ast.Tuple) and isinstance(assign.value, ast.Tuple):
                if len(target.elts) == len(assign.value.elts):
                    pairs = list(zip(target.elts, assign.value.elts, strict=True))
            for name, value in pairs:
                if isinstance(name, ast.Name) and isinstance(value, ast.Name):
                    if value.id in open_ and name.id not in open_:
                        spoiled.update({name.id} if found.get(name.id, value.id) != value.id else ())
                        found[name.id] = value.id
                        continue
                others.append((name, value))
    if not found:
        return ()
    for bound, source in others:
        is_chain = isinstance(bound, ast.Name) and source is not None and _method_chain(source) == bound.id
        spoiled.update(() if is_chain else names_in(bound))
    return [(name, parameter) for name, parameter in found.items() if name not in spoiled]


def names_in(node: ast.expr) -> Iterable[str]:
    """The names in an expression, the target of an assignment for the most part."""
    return (node.id,) if isinstance(node, ast.Name) else [n.id for n in walk(node) if isinstance(n, ast.Name)]


def none_by_default(arguments: ast.arguments, name: str) -> bool:
    """Whether a parameter's default is None."""
    default = default_of(arguments, name)
    return isinstance(default, ast.Constant) and default.value is None


def root_name(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def shows_tensor(method: str, call: ast.Call) -> bool:
    """Whether a call of this method shows that its object is a tensor: `x.size(0)`, `x.view(-1, 3)`, `x.sum(dim=1)`."""
    if method in _CALLED_ONLY:
        return True
    if method in _ELEMENTWISE:
        return not call.args and not call.keywords
    if method == "view":
        return any(isinstance(a, (ast.UnaryOp, ast.BinOp)) or getattr(a, "value", None) == 1 for a in call.args)
    if not call.keywords:
        return False
    return any(k.arg in ("dim", "keepdim") for k in call.keywords) and _is_tensor_method(method)


def _is_tensor_method(name: str) -> bool:
    return knowledge.method("Tensor", name) is not None


def makes_tensor(node: ast.expr, names: Mapping[str, str], *sources: str) -> bool:
    """Whether an expression is a call of one of torch's factories, or a method of its result.

    `sources`: what tells where the result is, the `device` argument ("argument") or a tensor it is given ("like").
    """
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        root = node.func.value
        if isinstance(root, ast.Name):
            function = knowledge.function(f"{names.get(root.id, '')}.{node.func.attr}")
            known = sources or ("argument", "like")
            return function is not None and function.device_from in known and function.result == "tensor"
        node = root
    return False


def makes_tensor_of_numbers(node: ast.expr, names: Mapping[str, str]) -> bool:
    """Whether an expression is a call that makes a tensor of the numbers that are written there: `torch.tensor([0.0, 1.0])`."""
    direct = (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
    )
    if not isinstance(node, ast.Call) or not direct or not node.args or not makes_tensor(node, names, "like"):
        return False
    pending = node.args[:1]
    for part in pending:  # which grows
        if isinstance(part, (ast.List, ast.Tuple)):
            pending += part.elts
        elif not is_number(part):
            return False
    return True


def fills_in(name: str, node: ast.expr, names: Mapping[str, str]) -> bool:
    """Whether an expression makes a tensor, or does so instead of a name: `x if x is not None else torch.ones(3)`."""
    if isinstance(node, ast.IfExp):
        sides = [node.body, node.orelse]
    elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        sides = node.values
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 2:
        sides = [a.body if isinstance(a, ast.Lambda) else a for a in node.args]  # `default(x, torch.ones(3))`
    else:
        return makes_tensor(node, names)
    own = [s for s in sides if isinstance(s, ast.Name) and s.id == name]
    return len(sides) == 2 and len(own) == 1 and any(makes_tensor(s, names) for s in sides if s is not own[0])


def tensor_root(node: ast.expr | None) -> str | None:
    """The name that is a tensor where an expression is one: `x` for `x.int().flatten()`, `x[:, 0]`, `x[..., None]`, `x.T`.

    Only a slice, an ellipsis or None in the brackets says so: `x[0]` may be a part of a list.
    """
    while node is not None:
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Call):
            function = node.func
            if not isinstance(function, ast.Attribute) or knowledge.method("Tensor", function.attr) is None:
                return None
            node = function.value
        elif isinstance(node, ast.Subscript):
            if not is_slicing(node.slice):
                return None
            node = node.value
        elif isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
            node = node.value
        else:
            return None
    return None


def is_slicing(node: ast.expr) -> bool:
    """Whether what stands in brackets slices: `:2`, `:, 0`, `..., None`."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return any(isinstance(p, ast.Slice) or (isinstance(p, ast.Constant) and p.value in (None, ...)) for p in parts)


def compared(node: ast.expr | None) -> ast.expr | None:
    """`x` for `x == 1` and `~x`: compared with a number or negated, it must be a tensor where the result is one."""
    if isinstance(node, ast.Compare) and len(node.comparators) == 1 and is_number(node.comparators[0]):
        return node.left
    return node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert) else node


def _method_chain(node: ast.expr) -> str | None:
    """`x` for `x.int().flatten()`: calls of tensor methods on a name. None for anything else."""
    while isinstance(node, ast.Call):
        function = node.func
        if not isinstance(function, ast.Attribute) or knowledge.method("Tensor", function.attr) is None:
            return None
        node = function.value
    return node.id if isinstance(node, ast.Name) else None


def reads_like_device(name: str) -> bool:
    """Whether a name reads like a device rather than a dtype or a tensor."""
    return "dev" in name.lower() or name in ("gpu", "rank", "local_rank", "gpu_id", "cuda")


def _tensor_positions(qualname: str, positional: int) -> Sequence[int]:
    """The positions of what a function of torch takes only as tensors, of so many arguments: the first one, and others."""
    function = knowledge.function(qualname)
    found = function.tensors_among(positional) if function is not None else ()
    return found if 0 in found or qualname == "torch.einsum" else ()


def default_value(node: ast.expr | None) -> Value | None:
    """What a parameter's default tells when nothing else does: only that None is no tensor."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
        return Value("number")
    return None

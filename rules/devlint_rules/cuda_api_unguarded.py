"""A function of an accelerator's module is called without a check that the accelerator is present.

## What it flags
The rule reports calls that fail on a machine without the accelerator, or in a torch build without it:

* The code calls a function of `torch.cuda`, `torch.mps`, `torch.xpu` or `torch.mtia`, and this function raises an
  error. Examples are `synchronize`, `set_device`, `current_device`, `Event` and `get_rng_state`.
* The code calls a function of a module that only a vendor's plug-in provides, such as `torch.npu`.
* `torch.cuda.device_count()` is a divisor, a factor of a batch size, or the size of an expanded or repeated tensor.
  Without CUDA the count is 0. In a program that starts several processes, the rule reports this only if the same
  function checks for CUDA earlier.
* The code stores a function of `torch.cuda` on a path where CUDA is absent. An example is
  `sync = torch.cuda.synchronize` outside `if torch.cuda.is_available():`.
* A flag decides whether a tensor moves to CUDA, and the code checks `is_available()` for this flag only after the move.

## Why it matters
The call raises `AssertionError`, `AttributeError` or `RuntimeError` on a machine without the accelerator. The rest of
the program may run there.

## Example
    import torch

    def finish(step):
        step()
        torch.cuda.synchronize()

Use instead:

    import torch

    def finish(step):
        step()
        if torch.accelerator.is_available():
            torch.accelerator.synchronize()

## Fix safety
The fix is unsafe: the program skips a call that raised an error before. The fix puts the statement under a condition
that is true only if the accelerator is present. If the lowest supported torch has the same function in
`torch.accelerator`, the fix calls that function.

If the result of the call is used, the rule makes a suggestion without an edit.

## Known limits
The rule does not report these cases:

* The call is under a condition that is true only if the accelerator is present: `if torch.cuda.is_available()`,
  `if device.type == "cuda"`, `if use_cuda`.
* The call is inside a `try` that catches the error. `except AttributeError` does not catch it.
* The name of the function, the class or the file mentions the accelerator.
* The file loads CUDA kernels or captures CUDA graphs.
* The call is `torch.cuda.set_device`, and the file uses NCCL, which runs only on CUDA.
* The call does nothing without the accelerator: `empty_cache`, `manual_seed_all`, `memory_allocated`.

Sometimes a function has no check, but every caller checks first. The rule recognizes this only if the name of the
function mentions the accelerator. Otherwise it reports the calls inside the function.
"""

from __future__ import annotations

import re

from devlint.api import (
    ApiCall,
    Edit,
    Event,
    Facts,
    Finding,
    Fix,
    InsertStatement,
    LateQuestion,
    LeftAlone,
    Portability,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
    Span,
    cst,
)

from ._agnostic import replacement_call
from ._api import (
    AVAILABLE,
    NAMES,
    guarded_statement,
    is_written_out,
    needs_torch,
    service_of,
    spelled,
)
from ._calls import may_precede, path_to
from ._stays import TAKE_DEVICE, raises_without

_COUNT, _AVAILABLE = "torch.cuda.device_count", "torch.cuda.is_available"
_AT_LEAST = "Use at least 1: `max(1, ...)`"
#: Programs of several processes, each of which has a card.
_PROCESSES = re.compile(r"nccl|init_process_group|DistributedDataParallel|mp\.spawn|multiprocessing\.spawn")
_NCCL = re.compile(r"[\"']nccl[\"']")


class CudaApiUnguarded(Rule[Event]):
    meta = RuleMeta(
        code="DEV205",
        name="cuda-api-unguarded",
        summary="accelerator function is called without a check for the accelerator",
        since="0.1.0",
        level="certain",
        severity=Severity.WARNING,
        fix="sometimes",
        words=("cuda", "mps", "xpu", "mtia", "npu", "hpu"),
        portability=Portability(stops=True),
    )
    event = Event

    def suspects(self, event: Event, facts: Facts) -> bool:
        if not isinstance(event, ApiCall):
            return isinstance(event, LateQuestion)
        if event.qualname == _COUNT and event.is_call:
            each_has_one = _PROCESSES.search(facts.text) is not None and not asks_before(event, facts)
            return not event.under.caught and not each_has_one and service_of(event, facts) is None
        if not event.is_call:  # what a file is for does not count where it says itself that there is no accelerator
            return raises_without(event) and not is_replaced(event, facts)
        return raises_without(event) and self.left_alone(event, facts) is None

    def left_alone(self, event: Event, facts: Facts) -> LeftAlone | None:
        if not isinstance(event, ApiCall) or not event.is_call:
            return None
        if not raises_without(event):
            return _harmless(event)
        if "CUDAGraph" in facts.text:
            return LeftAlone("the file captures CUDA graphs", _place(facts, "CUDAGraph"))
        if event.qualname == "torch.cuda.set_device" and (found := _NCCL.search(facts.text)):
            return LeftAlone("the processes communicate through NCCL, which needs CUDA", Span(*found.span()))
        if event.type in ("npu", "hpu") and any(event.type in name for name in facts.imports.values()):
            return LeftAlone(f"the file imports {NAMES[event.type]}")
        return service_of(event, facts)

    def judge(self, event: Event, site: Site) -> Finding | None:
        if isinstance(event, LateQuestion):
            message = f"`{event.flag}` may be true without CUDA here: the code checks for CUDA only later"
            return Finding(event.span, message, Fix("Check for CUDA before this line", Safety.HINT), event.because)
        assert isinstance(event, ApiCall)
        if not event.is_call:
            if not is_kept(site):
                return None
            message = (
                f"`{spelled(event, site)}` is stored where {NAMES[event.type]} is absent: a later call raises an error"
            )
            return Finding(
                event.span,
                message,
                Fix("Store a function that works without the accelerator", Safety.HINT),
                event.because,
            )
        if not is_written_out(event, site):
            return None
        if event.qualname == _COUNT:
            return _counted(event, site)
        message = (
            f"`{spelled(event, site)}` raises an error without {NAMES[event.type]}, and the code does not check for "
            f"{NAMES[event.type]} first"
        )
        return Finding(event.span, message, self._fix(event, site), event.because)

    def _fix(self, event: ApiCall, site: Site) -> Fix:
        why = "" if event.discarded else "the result is used, and the code provides no other value"
        hint = Fix("Check for the accelerator first", Safety.HINT, why=why)
        if not isinstance(site.node, cst.Call) or event.type not in AVAILABLE:
            return hint
        agnostic = replacement_call(event, site) if site.facts.torch_stated else None
        test = f"{site.spell(AVAILABLE['accelerator' if agnostic is not None else event.type])}()"
        edits = guarded_statement(event, site, test, agnostic) or _guarded_print(event, site, test)
        if edits is None:
            return hint
        return Fix(f"Put the call under `if {test}:`", Safety.UNSAFE, tuple(edits), needs_torch(site.facts))


def _guarded_print(event: ApiCall, site: Site, test: str) -> list[Edit | InsertStatement] | None:
    """The edits that put a `print` of what the call gives under `if test:`; None for any other statement."""
    statement = site.statement
    if not isinstance(statement, cst.Expr) or not isinstance(statement.value, cst.Call) or site.has_comment(statement):
        return None
    if site.code(statement.value.func) != "print" or not may_precede(statement):
        return None
    body = cst.IndentedBlock([cst.SimpleStatementLine([statement])])
    return [InsertStatement(event.span, cst.If(test=site.expression(test), body=body)), Edit(statement, None)]


#: What asks for the accelerator, or for what is there of it: nobody expects a finding.
_QUESTIONS = frozenset({"is_available", "is_initialized", "is_bf16_supported", "device_count", "amp"})


def _harmless(event: ApiCall) -> LeftAlone | None:
    """Why a call of an accelerator's function stops no program that lacks the accelerator."""
    name = NAMES.get(event.type, event.type)
    if event.type in ("", "accelerator") or not event.qualname.startswith(f"torch.{event.type}."):
        return None
    if event.raises and event.under.catches("RuntimeError", "AssertionError"):
        return LeftAlone(f"a `try` around it catches the error that it raises without {name}")
    if event.qualname in TAKE_DEVICE:
        return LeftAlone("it does nothing for a device of another type")
    known = event.remedy  # in a table, which says as well whether it raises
    if event.raises or not known or event.qualname.rpartition(".")[2] in _QUESTIONS:
        return None
    return LeftAlone(f"it raises no error without {name}")


def asks_before(event: ApiCall, facts: Facts) -> bool:
    """Whether the function has asked whether there is CUDA, on the way to the place: it expects to do without."""
    return any(
        isinstance(other, ApiCall)
        and other.qualname == _AVAILABLE
        and other.function == event.function
        and other.span.start < event.span.start
        and set(other.under.tests) <= set(event.under.tests)
        for other in facts.events
    )


def _counted(event: ApiCall, site: Site) -> Finding | None:
    """`n // torch.cuda.device_count()`, a batch that grows with the number of cards, and a tensor with a copy for each."""
    above = path_to(site, site.node)
    around = above[-2] if len(above) > 1 else None
    if is_size(above, site.facts):
        message = "`torch.cuda.device_count()` is 0 without CUDA: the tensor is empty"
        edit = Edit(site.node, site.expression(f"max(1, {site.code(site.node)})"))
        return Finding(event.span, message, Fix(_AT_LEAST, Safety.UNSAFE, (edit,)), event.because)
    if not isinstance(around, cst.BinaryOperation):
        return None
    outer = [site.code(node.func) for node in above if isinstance(node, cst.Call) and node is not site.node]
    if any(name.endswith(("set_device", "max")) for name in outer):
        return None  # which raises itself, or puts something else in the place of 0
    named = " ".join(node.keyword.value for node in above if isinstance(node, cst.Arg) and node.keyword is not None)
    if isinstance(around.operator, cst.Divide | cst.FloorDivide | cst.Modulo) and around.right is site.node:
        message = "`torch.cuda.device_count()` is 0 without CUDA: the expression divides by zero"
    elif isinstance(around.operator, cst.Multiply) and "batch" in (site.code(around) + named).lower():
        message = "`torch.cuda.device_count()` is 0 without CUDA: the batch has no items"
    else:
        return None
    edit = Edit(site.node, site.expression(f"max(1, {site.code(site.node)})"))
    return Finding(event.span, message, Fix(_AT_LEAST, Safety.UNSAFE, (edit,)), event.because)


def is_size(above: list[cst.CSTNode], facts: Facts) -> bool:
    """Whether what a path ends in says how often a tensor is repeated: `x.expand(n, -1)`, `x.expand((n,) + x.size())`."""
    inner = above[-1]
    for outer in reversed(above[:-1]):
        if isinstance(outer, cst.Call):
            method = outer.func
            return (
                isinstance(inner, cst.Arg)
                and isinstance(method, cst.Attribute)
                and method.attr.value in ("expand", "repeat")
                and not (isinstance(method.value, cst.Name) and method.value.value in facts.imports)
            )
        joined = isinstance(outer, cst.BinaryOperation) and isinstance(outer.operator, cst.Add) and inner is outer.left
        if not isinstance(outer, cst.Arg | cst.Element | cst.Tuple | cst.List) and not (
            joined and isinstance(inner, cst.Tuple | cst.List)
        ):
            return False
        inner = outer
    return False


def is_kept(site: Site) -> bool:
    """Whether a statement only binds a function to a name, or returns it: `self.sync = torch.cuda.synchronize`."""
    statement = site.statement
    return isinstance(statement, cst.Assign | cst.AnnAssign | cst.Return) and statement.value is site.node


def is_replaced(event: ApiCall, facts: Facts) -> bool:
    """Whether the file puts something of its own in the place of the function, which it keeps to put back."""
    name = event.qualname.rpartition(".")[2]
    return re.search(rf"\.{name}\s*=[^=]", facts.text) is not None


def _place(facts: Facts, word: str) -> Span:
    start = facts.text.index(word)
    return Span(start, start + len(word))

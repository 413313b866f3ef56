"""Mixing rules of operators whose kernels or composites check devices themselves.

Each rule gets the call and answers with the card it runs on (None: the host), `Finished` when it has
been carried out, or `NotDecided` to leave it to the operator's class.  The words are those of the
ATen file named at each rule.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from typing import Any, Final

import torch

from devlint.runtime.launch import is_devlint
from devlint.runtime.simulator import messages
from devlint.runtime.simulator.cards import Card
from devlint.runtime.simulator.marks import card_of, mark_of, set_mark
from devlint.runtime.simulator.mixing import Finished, MixedCall, NotDecided
from devlint.runtime.simulator.transfer import record_copy

Outcome = Card | Finished | NotDecided | None
_Tensor = torch.Tensor
_WithoutDispatch: Any = torch._C._DisableTorchDispatch
_UNDECIDED: Final = NotDecided()
_STORE_SUBSCRIPT: Final = dis.opmap["STORE_SUBSCR"]


def _copy(call: MixedCall) -> Outcome:
    """``copy_`` may cross devices: it is a transfer (Copy.cpp)."""
    target, source = call.args[0], call.args[1]
    non_blocking = bool(call.argument("non_blocking"))
    with _WithoutDispatch():
        call.plan.call(*call.args, **call.kwargs)
    size = source.numel() * source.element_size()
    record_copy(call.simulation, card_of(source), call.place(target), source, target, size, non_blocking, "copy_")
    return Finished(target)


def _anywhere(call: MixedCall) -> Outcome:
    """Only sizes or metadata are used."""
    return call.place(call.args[0])


def _written_into_copy(call: MixedCall) -> Outcome:
    """A copy of the first, into a part of which the second is copied from anywhere (TensorShape.cpp)."""
    copied, source = call.args[0], call.args[1]
    size = source.numel() * source.element_size()
    record_copy(call.simulation, card_of(source), call.place(copied), source, copied, size, False, call.name)
    return call.place(copied)


def _index(call: MixedCall) -> Outcome:
    """Reading: indices on the host or on self's device (TensorAdvancedIndexing.cpp, meta function of `index`)."""
    indexed = call.args[0]
    home = call.place(indexed)
    for index in call.args[1]:
        if index is None:
            continue
        place = call.place(index)
        if place is not None and place is not home and not call.is_wild(index):
            call.fail(
                f"indices should be either on cpu or on the same device as the indexed tensor ({call.device(indexed)})"
            )
    _move_indices(call, home)
    return home


def _index_put(call: MixedCall) -> Outcome:
    """Writing: indices from anywhere, which are moved to self's device.

    `_index_put_impl_` (TensorAdvancedIndexing.cpp) has not the check of `index`, and `make_info`
    (TensorAdvancedIndexingUtils.h) expands the indices with `ensure_same_device`.
    """
    home = call.place(call.args[0])
    _check_index_value(call, home)
    _move_indices(call, home)
    return home


def _move_indices(call: MixedCall, home: Card | None) -> None:
    for index in call.args[1]:
        if index is not None:
            _move_index(call, index, home)


def _move_index(call: MixedCall, index: torch.Tensor, home: Card | None) -> None:
    place = call.place(index)
    if call.is_wild(index) or place is home:
        return
    size, record = index.numel() * index.element_size(), call.simulation.transferred
    if home is None:
        record("card index", "d2h", size, call.card, blocking=True)
    elif place is None:
        record("host index", "h2d", size, home, blocking=True)
    else:
        record("index of another card", "d2d", size, home, blocking=False)


def _check_index_value(call: MixedCall, home: Card | None) -> None:
    value = call.args[2]
    if call.is_wild(value) or call.place(value) is home or value.dim() == 0:
        return
    here, there = call.device(call.args[0]), call.device(value)
    if home is not None and call.argument("accumulate"):
        call.fail(f"expected device {here} but got device {there} for value tensor")
    call.fail_as_iterator(here, there)


def _embedding(call: MixedCall) -> Outcome:
    """``weight.index_select(0, indices)`` (Embedding.cpp, cuda/Embedding.cu)."""
    weight, indices = call.args[0], call.args[1]
    call.fail_exactly("index", call.device(indices), call.device(weight), "wrapper_CUDA__index_select")


def _convolution(call: MixedCall) -> Outcome:
    """Input, weight and bias by their type strings (Convolution.cpp, check_input_same_type_as_parameters).

    Small inputs on the host go to a kernel without that check, which is then looked for among the card's.
    """
    source, weight, bias = call.args[0], call.args[1], call.args[2]
    if call.place(source) is None and source.dtype in (torch.float32, torch.float64):
        _slow_convolution(call)
    for name, other in (("weight", weight), ("bias", bias)):
        if isinstance(other, _Tensor) and call.place(other) is not call.place(source):
            have = messages.type_name(source.dtype, call.device(source))
            want = messages.type_name(other.dtype, call.device(other))
            on_host = call.place(source) is None
            if have == want:  # two cards of one kind pass that check; a kernel's own finds them
                if name == "bias":
                    call.fail_as_iterator(call.device(source), call.device(other))
                method = "wrapper_CUDA__cudnn_convolution"
                call.fail_exactly("weight", call.device(other), call.device(source), method)
            tail = f" or input should be a MKLDNN tensor and {name} is a dense tensor" if on_host else ""
            call.fail(f"Input type ({have}) and {name} type ({want}) should be the same{tail}")
    return _UNDECIDED


#: The card's kernels of the names that torch's own kernels of the host have, as the exact check calls them.
_ON_CARD: Final = {
    "Slow2d": "wrapper_CUDA___slow_conv2d_forward",
    "SlowDilated2d": "wrapper_CUDA__slow_conv_dilated2d",
    "SlowDilated3d": "wrapper_CUDA__slow_conv_dilated3d",
    "SlowTranspose2d": "wrapper_CUDA_slow_conv_transpose2d",
    "SlowTranspose3d": "wrapper_CUDA__slow_conv_transpose3d",
}


def _slow_convolution(call: MixedCall) -> None:
    """Host input of a convolution that torch's own kernel takes: what the card's kernel of that name says."""
    arguments = call.args[:9]
    if len(arguments) < 9:
        return
    with _WithoutDispatch():
        backend = torch._C._select_conv_backend(*arguments).name
    if backend == "Slow3d":  # there is none on the card
        call.fail(messages.no_kernel("aten::slow_conv3d_forward", call.card.device.type))
    method = _ON_CARD.get(backend)
    for name, other in (("weight", call.args[1]), ("bias", call.args[2])):
        if method is not None and isinstance(other, _Tensor) and call.place(other) is not None:
            call.fail_exactly(name, call.device(other), call.device(call.args[0]), method)


def _masked_fill(call: MixedCall) -> Outcome:
    """The mask strictly on self's device; a zero-dim value from anywhere (cuda/Indexing.cu)."""
    filled, mask, value = call.args[0], call.args[1], call.args[2]
    home = call.place(filled)
    if isinstance(value, _Tensor) and home is None and call.place(value) is not None:
        call.fail("masked_fill_: Expected inputs to be on same device")
    if not call.is_wild(mask) and call.place(mask) is not home:
        if _is_subscript_assignment(call):
            return _filled_by_subscript(call, mask, home)
        here, there = call.device(filled), call.device(mask)
        call.fail(f"expected self and mask to be on the same device, but got mask on {there} and self on {here}")
    return home


def _index_fill(call: MixedCall) -> Outcome:
    """As its class, but in ``x[indices] = number`` as that."""
    filled, index = call.args[0], call.args[2]
    home = call.place(filled)
    if not call.is_wild(index) and call.place(index) is not home and _is_subscript_assignment(call):
        return _filled_by_subscript(call, index, home)
    return _UNDECIDED


def _filled_by_subscript(call: MixedCall, index: torch.Tensor, home: Card | None) -> Outcome:
    """``x[index] = number``: `index_put_` wherever the devices differ.

    From 2.14 on C++ tries `masked_fill_` and `index_fill_` first, when devices are equal (TensorIndexing.h), and
    here it takes all for the host's.
    """
    _move_index(call, index, home)
    return home


def _is_subscript_assignment(call: MixedCall) -> bool:
    """Whether the Python code that called the operator is at an assignment to a subscript, with a plain number."""
    frame: Any = sys._getframe(1)
    while frame is not None and is_devlint(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or isinstance(call.args[-1], _Tensor):
        return False
    return bool(frame.f_code.co_code[frame.f_lasti] == _STORE_SUBSCRIPT)


def _where(call: MixedCall) -> Outcome:
    """Any of the three may be a zero-dim CPU tensor (TensorCompare.cpp)."""
    for tensor in (call.argument("condition"), call.argument("self"), call.argument("other")):
        if not isinstance(tensor, _Tensor):
            continue
        place = call.place(tensor)
        if place is not call.card and not (place is None and tensor.dim() == 0):
            call.fail_as_iterator(call.card.device, call.device(tensor))
    return call.card


def _fill(call: MixedCall) -> Outcome:
    """The value of a tensor elsewhere is read on the host (Fill.cpp)."""
    filled, value = call.args[0], call.args[1]
    place = call.place(value)
    if place is not None and place is not call.place(filled):
        call.simulation.wait("item", place, value.element_size())
    return call.place(filled)


def _only_last_may_be_number(call: MixedCall) -> Outcome:
    """`logical_and` and its like: a 0-dim CPU tensor may be the second operand only (BinaryOps.cpp)."""
    if call.place(call.args[0]) is None:
        call.fail_as_iterator(call.card.device, call.device(call.args[0]))
    return _UNDECIDED


def _addcmul(call: MixedCall) -> Outcome:
    """A 0-dim CPU tensor may be the last of the three (cuda/PointwiseOpsKernel.cu); before 2.7 none."""
    first, second, third = call.args[:3]
    hosted = [tensor for tensor in (first, second, third) if call.place(tensor) is None]
    if not hosted or any(tensor.dim() for tensor in hosted) or messages.RELEASE < (2, 7):
        return _no_numbers(call)
    if len(hosted) > 1:
        call.fail(messages.TOO_MANY_SCALARS)
    for name, tensor in (("self", first), ("tensor1", second)):
        if call.place(tensor) is None:
            call.fail(messages.no_cpu_scalar(name, call.card.device.type))
    return _UNDECIDED


def _no_numbers(call: MixedCall) -> Outcome:
    """All operands on one device, 0-dim or not (cuda/PointwiseOpsKernel.cu, cuda/BinaryMiscOpsKernels.cu)."""
    places = [call.device(operand) for operand in call.args if isinstance(operand, _Tensor)]
    other = next((place for place in places if place != call.card.device), None)
    if other is not None:
        call.fail_as_iterator(call.card.device, other)
    return _UNDECIDED


def _reduced_into(call: MixedCall) -> Outcome:
    """The result's place is asked before the operands' (ReduceOpsUtils.h, `resize_reduction`)."""
    reduced, out = call.args[0], call.argument("out")
    if isinstance(out, _Tensor) and call.place(out) is not call.place(reduced):
        call.fail(messages.output_elsewhere(call.device(reduced), call.device(out)))
    return _UNDECIDED


def _first_two_no_numbers(call: MixedCall) -> Outcome:
    """A 0-dim CPU tensor among the first two reaches an assertion of the kernel (cuda/Loops.cuh)."""
    for position, tensor in enumerate(call.args[:2], 1):
        if call.place(tensor) is None and tensor.dim() == 0:
            call.fail(messages.kernel_assertion(position, call.card.device.type))
    return _UNDECIDED


def _cholesky_solve(call: MixedCall) -> Outcome:
    """Right side and factor (LinearAlgebraUtils.h, linearSolveCheckInputs)."""
    right, factor = call.args[0], call.args[1]
    call.fail(
        "Expected b and A to be on the same device, but found b on "
        f"{call.device(right)} and A on {call.device(factor)} instead."
    )


def _packed_sequence(call: MixedCall) -> Outcome:
    """Lengths on the host (PackedSequence.cpp)."""
    lengths = call.args[1]
    if card_of(lengths) is not None:
        call.fail(messages.packed_lengths(lengths, call.device(lengths)))
    return call.place(call.args[0])


def _ctc_loss(call: MixedCall) -> Outcome:
    """Targets are moved to the log-probabilities, and lengths to the host (LossCTC.cpp)."""
    return call.place(call.args[0])


def _segment_reduce(call: MixedCall) -> Outcome:
    """Lengths or offsets on the data's card (SegmentReduce.cpp)."""
    data = call.args[0]
    for name in ("offsets", "lengths"):
        given = call.argument(name)
        if isinstance(given, _Tensor) and call.place(given) is not call.place(data):
            call.fail(
                f"Expected data.get_device() == {name}_value.get_device() to be true, but got false.  "
                "(Could this error message be improved?  If so, please report an enhancement request to PyTorch.)"
            )
    return _UNDECIDED


def _block_diag(call: MixedCall) -> Outcome:
    """All on the first one's device (TensorShape.cpp)."""
    tensors = call.args[0]
    first = call.device(tensors[0])
    for position, tensor in enumerate(tensors):
        device = call.device(tensor)
        if device != first:
            call.fail(
                "torch.block_diag: input tensors must all be on the same device. "
                f"Input 0 is on device {first} and input {position} is on device {device}"
            )
    return _UNDECIDED


def _mv(call: MixedCall) -> Outcome:
    """The result is built where the vector is, then ``addmv_`` checks result, matrix, vector (Blas.cpp)."""
    matrix, vector = call.args[0], call.args[1]
    call.fail_exactly("mat", call.device(matrix), call.device(vector), "wrapper_CUDA_addmv_")


def foreach_rule(call: MixedCall) -> Outcome:
    """Lists are judged slot by slot, as the slow path would run them (ForeachOpsKernels.cpp)."""
    lists = [
        value for value in call.args if isinstance(value, (list, tuple)) and value and isinstance(value[0], _Tensor)
    ]
    crossing = call.name.startswith("_foreach_copy")
    for slot in zip(*(each for each in lists if len(each) == len(lists[0])), strict=True):
        home = call.device(slot[0])
        for tensor in slot[1:]:
            device = call.device(tensor)
            if device != home and not crossing and not (device.type == "cpu" and tensor.dim() == 0):
                call.fail_as_iterator(home, device)
    with _WithoutDispatch():
        result = call.plan.call(*call.args, **call.kwargs)
    if crossing:
        for target, source in zip(lists[0], lists[1], strict=True):
            size = source.numel() * source.element_size()
            record_copy(
                call.simulation, card_of(source), call.place(target), source, target, size, False, "_foreach_copy_"
            )
    elif isinstance(result, (list, tuple)):
        for made, slot_head in zip(result, lists[0], strict=False):
            if mark_of(made) is None:
                set_mark(made, mark_of(slot_head))
    call.card.queued += 1
    return Finished(result)


HAND_RULES: Final[dict[str, Callable[[MixedCall], Outcome]]] = {
    "copy_": _copy,
    "set_": _anywhere,
    "record_stream": _anywhere,
    "_has_compatible_shallow_copy_type": _anywhere,
    "is_same_size": _anywhere,
    "expand_as": _anywhere,
    "view_as": _anywhere,
    "set_data": _anywhere,
    "resize_as_": _anywhere,
    "index": _index,
    "_unsafe_index": _index,
    "index_put": _index_put,
    "index_put_": _index_put,
    "_index_put_impl_": _index_put,
    "_unsafe_index_put": _index_put,
    "embedding": _embedding,
    "convolution": _convolution,
    "_convolution": _convolution,
    "convolution_overrideable": _convolution,
    "masked_fill": _masked_fill,
    "masked_fill_": _masked_fill,
    "index_fill_": _index_fill,
    "fill": _fill,
    "fill_": _fill,
    "select_scatter": _written_into_copy,
    "slice_scatter": _written_into_copy,
    "diagonal_scatter": _written_into_copy,
    "as_strided_scatter": _written_into_copy,
    "logical_and": _only_last_may_be_number,
    "logical_or": _only_last_may_be_number,
    "logical_xor": _only_last_may_be_number,
    "addcmul": _addcmul,
    "addcmul_": _addcmul,
    "addcdiv": _no_numbers,
    "addcdiv_": _no_numbers,
    "sum": _reduced_into,
    "mean": _reduced_into,
    "prod": _reduced_into,
    "any": _reduced_into,
    "all": _reduced_into,
    "lerp": _first_two_no_numbers,
    "smooth_l1_loss": _first_two_no_numbers,
    "mse_loss": _no_numbers,
    "cholesky_solve": _cholesky_solve,
    "_cholesky_solve_helper": _cholesky_solve,
    "where": _where,
    "_pack_padded_sequence": _packed_sequence,
    "_ctc_loss": _ctc_loss,
    "_cudnn_ctc_loss": _ctc_loss,
    "segment_reduce": _segment_reduce,
    "_segment_reduce_backward": _segment_reduce,
    "block_diag": _block_diag,
    "mv": _mv,
}

"""Lines of training programs that mix devices: optimizers, mixed precision, recurrent cells, distributions, sparse
tensors, several processes and cards, generators, checkpoints, `out=` and in-place operations.
"""

from __future__ import annotations

import io
import tempfile
from typing import Any

import numpy as np
import torch
from torch import distributions, nn
from torch.nn import functional as F

from tests.runtime.lines import (
    Case,
    World,
    exact,
    input_and_weight,
    no_numpy,
    not_at_same_device,
    two_devices,
    wrong_generator,
)

LOOPS = (
    'iter.device(arg).is_cuda() INTERNAL ASSERT FAILED at "/pytorch/aten/src/ATen/native/cuda/Loops.cuh":109, please '
    "report a bug to PyTorch. argument {}: expected a CUDA device but found cpu"
)


def _linear(w: World) -> nn.Module:
    return w.on_card(nn.Linear(4, 4))


def _with_gradients(*parameters: torch.Tensor) -> list[nn.Parameter]:
    made = [nn.Parameter(parameter.clone()) for parameter in parameters]
    for parameter in made:
        parameter.grad = torch.ones_like(parameter)
    return made


def _unfinished_events(w: World) -> None:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(100):
        w.square @ w.square
    if hasattr(torch.cuda, "_sleep"):
        torch.cuda._sleep(100_000_000)
    end.record()
    start.elapsed_time(end)


def _two_steps(kind: Any, parameters: list[nn.Parameter], **options: Any) -> None:
    optimizer = kind(parameters, lr=0.1, **options)
    optimizer.step()
    optimizer.step()


def _resume_from_host(w: World) -> None:
    first, second = (torch.optim.Adam(_with_gradients(w.x)) for _ in range(2))
    first.step()
    saved = io.BytesIO()
    torch.save(first.state_dict(), saved)
    saved.seek(0)
    second.load_state_dict(torch.load(saved, map_location="cpu"))
    second.step()


def _state_by_hand(w: World) -> None:
    parameters = _with_gradients(w.x)
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    optimizer.step()
    optimizer.state[parameters[0]]["momentum_buffer"] = torch.zeros(3, 4)
    optimizer.step()


OPTIMIZERS = [
    Case("SGD over both devices", lambda w: _two_steps(torch.optim.SGD, _with_gradients(w.x, w.host_x), momentum=0.9)),
    Case("Adam over two cards", lambda w: _two_steps(torch.optim.Adam, _with_gradients(w.x, w.other_x))),
    Case("AdamW, fused, on the card", lambda w: _two_steps(torch.optim.AdamW, _with_gradients(w.x), fused=True)),
    Case("Adam resumed from a host checkpoint", _resume_from_host),
    Case("momentum put back from the host by hand", _state_by_hand, two_devices()),
    Case("clipping gradients of both devices", lambda w: nn.utils.clip_grad_norm_(_with_gradients(w.x, w.host_x), 1.0)),
    Case("clipping values of both devices", lambda w: nn.utils.clip_grad_value_(_with_gradients(w.x, w.host_x), 1.0)),
    Case(
        "parameters of both devices as one vector",
        lambda w: nn.utils.parameters_to_vector(_with_gradients(w.x, w.host_x)),
        "Found two parameters on different devices, this is currently not supported.",
        by_python=True,
    ),
    Case("step by hand with a host direction", lambda w: w.x.data.clone().sub_(0.1 * w.host_x), two_devices()),
    Case("weight decay towards host weights", lambda w: (w.x - w.host_x).pow(2).sum(), two_devices()),
    Case(
        "average of weights kept on the host",
        lambda w: torch.optim.swa_utils.AveragedModel(_linear(w), device="cpu").update_parameters(_linear(w)),
    ),
    Case(
        "average of weights by lerp into the host",
        lambda w: nn.Linear(4, 4).weight.data.lerp_(_linear(w).weight.data, 0.1),
        two_devices(),
    ),
    Case("gradient penalty against host noise", lambda w: w.x.lerp(w.host_x, 0.5), two_devices()),
    Case("host loss scaled by a card weight", lambda w: w.host_x.mean() * w.scalar),
    Case("losses of two cards added", lambda w: w.x.mean() + w.other_x.mean(), two_devices("cuda:0", "cuda:1")),
]


def _half(w: World, run: Any) -> None:
    with torch.autocast("cuda", dtype=torch.float16):
        run()


def _scaled_step(w: World) -> None:
    parameters = _with_gradients(w.x)
    optimizer, scaler = torch.optim.SGD(parameters, lr=0.1), torch.amp.GradScaler("cuda")
    scaler.scale((parameters[0] * w.x).sum()).backward()
    scaler.step(optimizer)
    scaler.update()


MIXED_PRECISION = [
    Case(
        "product with a host matrix under autocast",
        lambda w: _half(w, lambda: w.x @ w.host_x.T),
        exact("mat2", "cpu", "cuda:0", "mm"),
    ),
    Case(
        "linear under autocast, host batch",
        lambda w: _half(w, lambda: _linear(w)(w.host_x)),
        exact("mat1", "cpu", "cuda:0", "addmm"),
    ),
    Case(
        "cross entropy under autocast, host target",
        lambda w: _half(w, lambda: F.cross_entropy(w.x, w.host_labels)),
        exact("target", "cpu", "cuda:0", "nll_loss_forward"),
    ),
    Case("sum under autocast with host", lambda w: _half(w, lambda: w.x + w.host_x), two_devices()),
    Case("scaled step", _scaled_step),
    Case("scaling a host loss", lambda w: torch.amp.GradScaler("cuda").scale(w.host_x.sum())),
    Case("half batch and host mask", lambda w: w.x.half() * (w.host_x > 0), two_devices()),
    Case(
        "half convolution, host images",
        lambda w: w.on_card(nn.Conv2d(3, 2, 3)).half()(w.host_images.half()),
        input_and_weight(
            "HalfTensor", "cuda.HalfTensor", " or input should be a MKLDNN tensor and weight is a dense tensor"
        ),
    ),
]

RECURRENT = [
    Case(
        "lstm, host cell state",
        lambda w: w.on_card(nn.LSTM(4, 4))(w.steps, (torch.zeros(1, 2, 4, device="cuda"), torch.zeros(1, 2, 4))),
        not_at_same_device("hidden", "cuda:0", "cpu"),
    ),
    Case(
        "gru, host batch",
        lambda w: w.on_card(nn.GRU(4, 4))(w.host_steps),
        not_at_same_device("parameter", "cpu", "cuda:0"),
    ),
    Case(
        "rnn left on the host",
        lambda w: nn.RNN(4, 4, nonlinearity="relu")(w.steps),
        not_at_same_device("parameter", "cuda:0", "cpu"),
    ),
    Case(
        "lstm in both directions, host hidden state",
        lambda w: w.on_card(nn.LSTM(4, 4, bidirectional=True))(w.steps, (torch.zeros(2, 2, 4), torch.zeros(2, 2, 4))),
        not_at_same_device("hidden", "cuda:0", "cpu"),
    ),
    Case(
        "lstm over a packed sequence, host hidden state",
        lambda w: w.on_card(nn.LSTM(4, 4))(
            nn.utils.rnn.pack_padded_sequence(w.steps, torch.tensor([5, 3])),
            (torch.zeros(1, 2, 4), torch.zeros(1, 2, 4)),
        ),
        not_at_same_device("hidden", "cuda:0", "cpu"),
    ),
    Case(
        "lstm over a packed sequence",
        lambda w: w.on_card(nn.LSTM(4, 4))(nn.utils.rnn.pack_padded_sequence(w.steps, torch.tensor([5, 3]))),
    ),
    Case("padding sequences of both devices", lambda w: nn.utils.rnn.pad_sequence([w.x, w.host_x])),
    Case(
        "lstm cell, host cell state",
        lambda w: w.on_card(nn.LSTMCell(4, 4))(w.x, (torch.zeros(3, 4, device="cuda"), torch.zeros(3, 4))),
        exact("cx", "cpu", "cuda:0", "__thnn_fused_lstm_cell"),
    ),
    Case(
        "lstm cell, host batch",
        lambda w: w.on_card(nn.LSTMCell(4, 4))(w.host_x),
        exact("mat1", "cpu", "cuda:0", "addmm"),
    ),
    Case("lstm cell left on the host", lambda w: nn.LSTMCell(4, 4)(w.x), exact("mat2", "cpu", "cuda:0", "mm")),
    Case(
        "gru cell, host state",
        lambda w: w.on_card(nn.GRUCell(4, 4))(w.x, torch.zeros(3, 4)),
        exact("mat2", "cuda:0", "cpu", "mm"),
    ),
    Case(
        "rnn cell, host state",
        lambda w: w.on_card(nn.RNNCell(4, 4))(w.x, torch.zeros(3, 4)),
        exact("mat1", "cpu", "cuda:0", "addmm"),
    ),
    Case("gru cell", lambda w: w.on_card(nn.GRUCell(4, 4))(w.x)),
]

DISTRIBUTIONS = [
    Case("normal with a number", lambda w: distributions.Normal(w.x, 1.0).log_prob(w.x)),
    Case("density of a host normal", lambda w: distributions.Normal(0.0, torch.ones(4)).log_prob(w.x), two_devices()),
    Case(
        "sample with a host deviation",
        lambda w: distributions.Normal(w.x, torch.ones(4)).sample(),
        exact("std", "cpu", "cuda:0", "Tensor_Tensor_normal"),
    ),
    Case(
        "draw that gradients follow, host deviation",
        lambda w: distributions.Normal(w.x, torch.ones(4)).rsample(),
        two_devices(),
    ),
    Case(
        "actions on the card, host policy",
        lambda w: distributions.Categorical(logits=w.host_x).log_prob(w.labels),
        exact("index", "cuda:0", "cpu", "gather"),
    ),
    Case(
        "actions on the host, policy on the card",
        lambda w: distributions.Categorical(logits=w.x).log_prob(w.host_labels),
        exact("index", "cpu", "cuda:0", "gather"),
    ),
    Case(
        "divergence of a host prior",
        lambda w: distributions.kl_divergence(
            distributions.Normal(w.x, w.x.exp()), distributions.Normal(torch.zeros(4), torch.ones(4))
        ),
        two_devices(),
    ),
    Case(
        "divergence of a standard prior of numbers",
        lambda w: distributions.kl_divergence(distributions.Normal(w.x, w.x.exp()), distributions.Normal(0.0, 1.0)),
    ),
    Case(
        "multivariate normal with a host covariance",
        lambda w: distributions.MultivariateNormal(w.x[0], torch.eye(4)).rsample(),
        exact("mat2", "cuda:0", "cpu", "mm"),
    ),
    Case(
        "gamma with a host rate",
        lambda w: distributions.Gamma(w.x.exp(), torch.ones(4)).rsample(),
        two_devices(),
    ),
    Case(
        "uniform of the host",
        lambda w: distributions.Uniform(torch.zeros(4), torch.ones(4)).log_prob(w.x.sigmoid()),
        two_devices(),
    ),
    Case("bernoulli on the card", lambda w: distributions.Bernoulli(w.x.sigmoid()).sample() * w.x),
]

SPARSE = [
    Case(
        "sparse tensor of card indices and host values",
        lambda w: torch.sparse_coo_tensor(w.labels.repeat(2, 1), torch.ones(3), (4, 4)).to_dense() + w.host_x[0],
        exact("values", "cpu", "cuda:0", "__sparse_coo_tensor_with_dims_and_tensors").replace("CUDA", "SparseCUDA"),
    ),
    Case(
        "sparse tensor of host indices and card values",
        lambda w: torch.sparse_coo_tensor(w.host_labels.repeat(2, 1), torch.ones(3, device="cuda"), (4, 4)),
        exact("values", "cuda:0", "cpu", "__sparse_coo_tensor_with_dims_and_tensors").replace("CUDA", "SparseCUDA"),
    ),
    Case(
        "sparse tensor of card values at places in a list",
        lambda w: torch.sparse_coo_tensor([[0], [1]], w.x[0, :1], (4, 4)) @ w.square,
    ),
    Case(
        "sparse rows of card values",
        lambda w: (
            torch.sparse_csr_tensor(
                torch.tensor([0, 1, 2], device="cuda"), torch.tensor([0, 1], device="cuda"), w.x[0, :2], (2, 4)
            )
            @ w.square
        ),
    ),
    Case(
        "sparse tensor of both, put on the card",
        lambda w: torch.sparse_coo_tensor(w.host_labels.repeat(2, 1), torch.ones(3), (4, 4), device="cuda") @ w.square,
    ),
    Case(
        "sparse tensor of card indices, put on the card",
        lambda w: torch.sparse_coo_tensor(w.labels.repeat(2, 1), torch.ones(3), (4, 4), device="cuda") @ w.square,
    ),
    Case(
        "bag of host words",
        lambda w: w.on_card(nn.EmbeddingBag(4, 4))(torch.tensor([[0, 1], [2, 3]])),
        exact("indices", "cpu", "cuda:0", "__embedding_bag"),
    ),
    Case(
        "dense of a sparse card tensor plus host",
        lambda w: w.square.to_sparse().to_dense() + torch.eye(4),
        two_devices(),
    ),
    Case(
        "bincount with host weights",
        lambda w: torch.bincount(w.labels, torch.ones(3)),
        exact("weights", "cpu", "cuda:0", "_bincount"),
    ),
    Case(
        "isin of host labels",
        lambda w: torch.isin(w.labels, w.host_labels),
        exact("test_elements", "cpu", "cuda:0", "isin_Tensor_Tensor"),
    ),
]


class _Group:
    """A process group of this process alone."""

    def __init__(self, backend: str) -> None:
        self._backend = backend

    def __enter__(self) -> None:
        file = tempfile.NamedTemporaryFile(delete=False)
        torch.distributed.init_process_group(self._backend, init_method=f"file://{file.name}", rank=0, world_size=1)

    def __exit__(self, *exception: object) -> None:
        torch.distributed.destroy_process_group()


def _grouped(backend: str, run: Any) -> None:
    with _Group(backend):
        run()


NO_BACKEND = "No backend type associated with device type cpu"

PARALLEL = [
    Case("nccl reduces a card tensor", lambda w: _grouped("nccl", lambda: torch.distributed.all_reduce(w.x))),
    Case(
        "nccl reduces a host tensor",
        lambda w: _grouped("nccl", lambda: torch.distributed.all_reduce(w.host_x)),
        NO_BACKEND,
    ),
    Case(
        "nccl broadcasts a host tensor",
        lambda w: _grouped("nccl", lambda: torch.distributed.broadcast(torch.tensor(3), src=0)),
        NO_BACKEND,
    ),
    Case(
        "nccl gathers host tensors",
        lambda w: _grouped("nccl", lambda: torch.distributed.all_gather([torch.zeros(3, 4)], w.host_x)),
        NO_BACKEND,
    ),
    Case(
        "nccl gathers objects",
        lambda w: _grouped("nccl", lambda: torch.distributed.all_gather_object([None], {"a": w.x})),
    ),
    Case("gloo reduces a host tensor", lambda w: _grouped("gloo", lambda: torch.distributed.all_reduce(w.host_x))),
    Case(
        "both backends, host tensor",
        lambda w: _grouped("cpu:gloo,cuda:nccl", lambda: torch.distributed.all_reduce(w.host_x)),
    ),
    Case(
        "data parallel, module on the second card",
        lambda w: nn.DataParallel(nn.Linear(4, 4).to("cuda:1"), device_ids=[0, 1])(w.x),
        "module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found one of them on device: "
        "cuda:1",
        by_python=True,
    ),
    Case("data parallel, host batch", lambda w: nn.DataParallel(_linear(w), device_ids=[0, 1])(w.host_x)),
    Case(
        "one stage of a pipeline on the other card",
        lambda w: nn.Linear(4, 4).to("cuda:1")(_linear(w)(w.x)),
        exact("mat1", "cuda:0", "cuda:1", "addmm"),
    ),
]

GENERATORS = [
    Case(
        "multinomial with a host generator",
        lambda w: torch.multinomial(w.x.sigmoid(), 2, generator=w.host_generator),
        wrong_generator("cuda", "cpu"),
    ),
    Case(
        "bernoulli with a host generator",
        lambda w: torch.bernoulli(w.x.sigmoid(), generator=w.host_generator),
        wrong_generator("cuda", "cpu"),
    ),
    Case(
        "integers on the card with a host generator",
        lambda w: torch.randint(9, (3,), device="cuda", generator=w.host_generator),
        wrong_generator("cuda", "cpu"),
    ),
    Case(
        "initialization of host weights with a card generator",
        lambda w: nn.init.normal_(torch.empty(3), generator=w.generator),
        wrong_generator("cpu", "cuda"),
    ),
    Case(
        "split with a card generator",
        lambda w: torch.utils.data.random_split(range(4), [2, 2], generator=w.generator),
        wrong_generator("cpu", "cuda"),
    ),
    Case(
        "loader with a card generator",
        lambda w: list(torch.utils.data.DataLoader(range(4), shuffle=True, generator=w.generator)),
        wrong_generator("cpu", "cuda"),
    ),
    Case("state of one generator for another", lambda w: w.generator.set_state(w.generator.get_state())),
]


def _saved(value: Any) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def _assigned(w: World) -> nn.Module:
    module = _linear(w)
    module.load_state_dict(nn.Linear(4, 4).state_dict(), assign=True)
    return module


CHECKPOINTS = [
    Case("loaded where it was saved", lambda w: torch.load(_saved(w.x)) + w.x),
    Case("loaded on the host", lambda w: torch.load(_saved(w.x), map_location="cpu") + w.x, two_devices()),
    Case("host checkpoint into a card module", lambda w: _linear(w).load_state_dict(nn.Linear(4, 4).state_dict())),
    Case(
        "host tensors assigned to a card module", lambda w: _assigned(w)(w.x), exact("mat1", "cuda:0", "cpu", "addmm")
    ),
    Case(
        "loaded on a card that is not there",
        lambda w: torch.load(_saved(w.other_x), map_location="cuda:7"),
        "Attempting to deserialize object on CUDA device 7 but torch.cuda.device_count() is 2. Please use torch.load "
        "with map_location to map your storages to an existing device.",
        by_python=True,
    ),
    Case("np.save of a card tensor", lambda w: np.save(io.BytesIO(), w.x), no_numpy()),
    Case("np.stack of card tensors", lambda w: np.stack([w.x, w.x]), no_numpy()),
    Case("card tensor for pickle", lambda w: torch.load(_saved({"x": [w.other_x]}))["x"][0] + w.other_x),
]

OUT = [
    Case(
        "cat, out= on the host",
        lambda w: torch.cat([w.x, w.x], out=torch.empty(6, 4)),
        exact("tensors", "cuda:0", "cpu", "cat_out_out"),
    ),
    Case(
        "sum over a dimension, out= on the host",
        lambda w: torch.sum(w.x, 1, out=torch.empty(3)),
        "Expected out tensor to have device cuda:0, but got cpu instead",
    ),
    Case(
        "mean over a dimension, out= on the host",
        lambda w: torch.mean(w.x, 1, out=torch.empty(3)),
        "Expected out tensor to have device cuda:0, but got cpu instead",
    ),
    Case(
        "any over a dimension, out= on the host",
        lambda w: torch.any(w.x > 0, 1, out=torch.empty(3, dtype=torch.bool)),
        "Expected out tensor to have device cuda:0, but got cpu instead",
    ),
    Case("host sum, out= on the card", lambda w: torch.add(w.host_x, w.host_x, out=w.x.clone()), two_devices()),
    Case(
        "matmul, out= on the host",
        lambda w: torch.matmul(w.x, w.square, out=torch.empty(3, 4)),
        exact("self", "cuda:0", "cpu", "mm_out_out"),
    ),
    Case(
        "topk, out= on the host",
        lambda w: torch.topk(w.x, 2, out=(torch.empty(3, 2), torch.empty(3, 2, dtype=torch.long))),
        exact("self", "cuda:0", "cpu", "topk_out_values"),
    ),
    Case("zeros, out= on the card", lambda w: torch.zeros(3, 4, out=w.x.clone()) + w.x),
]

IN_PLACE = [
    Case("host *= card scalar", lambda w: w.host_x.clone().mul_(w.scalar), two_devices()),
    Case("fill card with a host scalar", lambda w: w.x.clone().fill_(w.host_scalar)),
    Case("fill host with a card scalar", lambda w: w.host_x.clone().fill_(w.scalar)),
    Case(
        "index_add_ by host indices",
        lambda w: w.x.clone().index_add_(0, w.host_labels, w.x),
        exact("index", "cpu", "cuda:0", "index_add_"),
    ),
    Case(
        "index_copy_ of host rows",
        lambda w: w.x.clone().index_copy_(0, w.labels, w.host_x),
        exact("source", "cpu", "cuda:0", "index_copy_"),
    ),
    Case(
        "scatter_add_ of host values",
        lambda w: w.x.clone().scatter_add_(1, w.labels[:, None], w.host_x),
        exact("src", "cpu", "cuda:0", "scatter_add_"),
    ),
    Case(
        "put_ at host positions",
        lambda w: w.x.clone().put_(w.host_labels, w.x[0, :3]),
        exact("index", "cpu", "cuda:0", "_put_"),
    ),
    Case(
        "clamp_ by host bounds",
        lambda w: w.x.clone().clamp_(min=torch.zeros(4)),
        exact("min", "cpu", "cuda:0", "clamp__Tensor"),
    ),
    Case("addcdiv_ by two host scalars", lambda w: w.x.clone().addcdiv_(w.host_scalar, w.host_scalar), two_devices()),
    Case("addcdiv_ by one host scalar", lambda w: w.x.clone().addcdiv_(w.x, w.host_scalar), two_devices()),
    Case("gradient plus host gradient", lambda w: _with_gradients(w.x)[0].grad.add_(w.host_x), two_devices()),
    Case("data of a host tensor", lambda w: setattr(w.x.clone(), "data", w.host_x)),
    Case(
        "where assigned under a card mask",
        lambda w: w.host_x.clone().masked_fill_(w.x > 0, 0.0),
        "expected self and mask to be on the same device, but got mask on cuda:0 and self on cpu",
    ),
]

FUNCTIONS = [
    Case(
        "squared error to a host number",
        lambda w: F.mse_loss(w.x, torch.tensor(1.0)),
        two_devices(),
    ),
    Case(
        "squared error between a card's number and the host's",
        lambda w: F.mse_loss(w.scalar, torch.tensor(1.0)),
        two_devices(),
    ),
    Case(
        "smooth error between a card's number and the host's",
        lambda w: F.smooth_l1_loss(w.scalar, torch.tensor(1.0)),
        LOOPS.format(2),
    ),
    Case("absolute error between a card's number and the host's", lambda w: F.l1_loss(w.scalar, torch.tensor(1.0))),
    Case("divergence from a host number", lambda w: F.kl_div(w.x, torch.tensor(1.0))),
    Case(
        "entropy of a card's number under the host's",
        lambda w: F.binary_cross_entropy_with_logits(w.scalar, torch.tensor(1.0)),
        two_devices(),
    ),
    Case(
        "time between events that are not over",
        lambda w: _unfinished_events(w),
        "Both events must be completed before calculating elapsed time.",
    ),
    Case("smooth error to a host number", lambda w: F.smooth_l1_loss(w.x, torch.tensor(1.0)), two_devices()),
    Case("absolute error to a host number", lambda w: F.l1_loss(w.x, torch.tensor(1.0)), two_devices()),
    Case("both, one a host number", lambda w: torch.logical_and(w.x, w.host_scalar)),
    Case("both, first a host number", lambda w: torch.logical_and(w.host_scalar, w.x), two_devices()),
    Case(
        "inner product with a host vector",
        lambda w: torch.inner(w.x, w.host_x),
        "Expected tensor to have cuda DeviceType, but got tensor with cpu DeviceType (while checking arguments for inner())",
    ),
    Case(
        "taken along host indices",
        lambda w: torch.take_along_dim(w.x, w.host_labels[:, None], 1),
        "Expected tensor to have cuda:0 Device, but got tensor with cpu Device "
        "(while checking arguments for torch.take_along_dim():)",
    ),
    Case("host values written into a slice of a copy", lambda w: w.x.slice_scatter(w.host_x[:1], 0, 0, 1)),
    Case("host values written into a row of a copy", lambda w: w.x.select_scatter(w.host_x[0], 0, 0)),
    Case(
        "alignment to host labels",
        lambda w: F.ctc_loss(
            w.steps.log_softmax(2), torch.tensor([[1], [2]]), torch.tensor([5, 5]), torch.tensor([1, 1])
        ),
    ),
    Case(
        "convolution of a host volume",
        lambda w: w.on_card(nn.Conv3d(1, 1, 2))(torch.ones(1, 1, 3, 3, 3)),
        "Could not run 'aten::slow_conv3d_forward' with arguments from the 'CUDA' backend.",
    ),
    Case(
        "moved to a tensor by the name that the documentation gives it",
        lambda w: w.host_x.to(other=w.x),
        "to() received an invalid combination of arguments - got (other=Tensor, ), but expected one of:\n"
        " * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, "
        "torch.memory_format memory_format = None)\n"
        " * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n"
        " * (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n",
        by_python=True,
    ),
    Case("moved to a tensor by the name that torch gives it", lambda w: w.host_x.to(tensor=w.x) + w.x),
    Case(
        "sampled at a host grid",
        lambda w: F.grid_sample(w.images, torch.zeros(1, 2, 2, 2), align_corners=False),
        exact("grid", "cpu", "cuda:0", "_grid_sampler_2d"),
    ),
    Case(
        "spectrum with a host window",
        lambda w: torch.stft(w.x.flatten(), 4, window=torch.ones(4), return_complex=True),
        "stft input and window must be on the same device but got self on cuda:0 and window on cpu",
    ),
    Case(
        "solved by a host factor",
        lambda w: torch.cholesky_solve(w.square, torch.eye(4)),
        "Expected b and A to be on the same device, but found b on cuda:0 and A on cpu instead.",
    ),
    Case("allclose", lambda w: torch.allclose(w.x, w.host_x), two_devices()),
    Case(
        "tensordot",
        lambda w: torch.tensordot(w.x, w.host_x, dims=([1], [1])),
        exact("mat2", "cpu", "cuda:0", "mm"),
    ),
    Case(
        "addmm of a host bias",
        lambda w: torch.addmm(torch.zeros(4), w.x, w.square),
        exact("mat1", "cuda:0", "cpu", "addmm"),
    ),
    Case("linear with a host weight", lambda w: F.linear(w.x, torch.eye(4)), exact("mat2", "cpu", "cuda:0", "mm")),
    Case(
        "group norm left on the host",
        lambda w: nn.GroupNorm(1, 3)(w.images),
        exact("weight", "cpu", "cuda:0", "_native_group_norm"),
    ),
    Case(
        "gaussian loss, host target",
        lambda w: F.gaussian_nll_loss(w.x, w.host_x, w.x.exp()),
        two_devices(),
    ),
    Case("ranking loss, host target", lambda w: F.margin_ranking_loss(w.x[0], w.x[1], torch.ones(4)), two_devices()),
    Case("triplet loss, host positive", lambda w: F.triplet_margin_loss(w.x, w.host_x, w.x), two_devices()),
    Case(
        "margin loss, host target",
        lambda w: F.multi_margin_loss(w.x, w.host_labels),
        exact("target", "cpu", "cuda:0", "_multi_margin_loss"),
    ),
    Case("poisson loss, host target", lambda w: F.poisson_nll_loss(w.x, w.host_x), two_devices()),
    Case("expanded like host", lambda w: w.scalar.expand_as(w.host_x) + w.x),
]

CASES = (
    OPTIMIZERS
    + MIXED_PRECISION
    + RECURRENT
    + DISTRIBUTIONS
    + SPARSE
    + PARALLEL
    + GENERATORS
    + CHECKPOINTS
    + OUT
    + IN_PLACE
    + FUNCTIONS
)

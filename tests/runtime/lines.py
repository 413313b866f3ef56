"""Lines of programs that mix devices, with what a CUDA card makes of each.

`error` is the whole text that PyTorch gives on a CUDA card, as derived from its sources (2.13, with the wording of older
versions where it differs); None means that the line is legal there.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class World:
    """Tensors and modules on the card (plain names) and on the host (``host_`` names)."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.x = torch.randn(3, 4, device="cuda")
        self.host_x = torch.randn(3, 4)
        self.other_x = torch.randn(3, 4, device="cuda:1")
        self.square = torch.randn(4, 4, device="cuda")
        self.labels = torch.tensor([0, 1, 2], device="cuda")
        self.host_labels = torch.tensor([0, 1, 2])
        self.images = torch.randn(1, 3, 8, 8, device="cuda")
        self.host_images = torch.randn(1, 3, 8, 8)
        self.steps = torch.randn(5, 2, 4, device="cuda")
        self.host_steps = torch.randn(5, 2, 4)
        self.scalar = torch.tensor(2.0, device="cuda")
        self.host_scalar = torch.tensor(2.0)
        self.heads = torch.randn(1, 2, 3, 4, device="cuda")
        self.host_heads = torch.randn(1, 2, 3, 4)
        self.generator = torch.Generator(device="cuda")
        self.host_generator = torch.Generator()

    @staticmethod
    def on_card(module: nn.Module) -> nn.Module:
        return module.to("cuda")


RELEASE = tuple(int(part) for part in torch.__version__.split(".")[:2])


def exact(argument: str, device: str, others: str, method: str) -> str:
    """CUDA's check of one kernel's arguments; it was worded otherwise before 2.8."""
    if RELEASE < (2, 8):
        return (
            two_devices(others, device)
            + f" (when checking argument for argument {argument} in method wrapper_CUDA_{method})"
        )
    return (
        f"Expected all tensors to be on the same device, but got {argument} is on {device}, different from other "
        f"tensors on {others} (when checking argument in method wrapper_CUDA_{method})"
    )


def two_devices(one: str = "cuda:0", other: str = "cpu") -> str:
    """TensorIterator's check of element-wise operands."""
    return f"Expected all tensors to be on the same device, but found at least two devices, {one} and {other}!"


def input_and_weight(source: str, weight: str, tail: str = "") -> str:
    return f"Input type (torch.{source}) and weight type (torch.{weight}) should be the same{tail}"


def not_at_same_device(what: str, source: str, found: str) -> str:
    return (
        f"Input and {what} tensors are not at the same device, found input tensor at {source} and "
        f"{what} tensor at {found}"
    )


def no_numpy(device: str = "cuda:0") -> str:
    return (
        f"can't convert {device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
    )


def wrong_generator(expected: str, found: str) -> str:
    return f"Expected a '{expected}' device type for generator but found '{found}'"


def wrong_gradient(found: str, expected: str) -> str:
    return (
        f"attempting to assign a gradient with device type '{found}' to a tensor with device type '{expected}'. "
        "Please ensure that the gradient and the tensor are on the same device"
    )


MKLDNN = " or input should be a MKLDNN tensor and weight is a dense tensor"
TOO_MANY_SCALARS = "Trying to pass too many CPU scalars to non-CPU kernel!"
INDEX_NOT_HERE = "indices should be either on cpu or on the same device as the indexed tensor (cpu)"


@dataclass(frozen=True)
class Case:
    """One line. by_python: the text is of torch's Python code, which reads `.device` as a program does."""

    name: str
    run: Callable[[World], Any]
    error: str | None = None
    by_python: bool = False


MODULES = [
    Case("linear, host batch", lambda w: w.on_card(nn.Linear(4, 4))(w.host_x), exact("mat1", "cpu", "cuda:0", "addmm")),
    Case(
        "linear without bias, host batch",
        lambda w: w.on_card(nn.Linear(4, 4, bias=False))(w.host_x),
        exact("mat2", "cuda:0", "cpu", "mm"),
    ),
    Case("linear left on the host", lambda w: nn.Linear(4, 4)(w.x), exact("mat1", "cuda:0", "cpu", "addmm")),
    Case(
        "linear, three-dimensional host batch",
        lambda w: w.on_card(nn.Linear(4, 4))(w.host_steps),
        exact("mat1", "cpu", "cuda:0", "addmm"),
    ),
    Case(
        "linear on card 0, batch on card 1",
        lambda w: w.on_card(nn.Linear(4, 4))(w.other_x),
        exact("mat1", "cuda:1", "cuda:0", "addmm"),
    ),
    Case(
        "embedding, host indices",
        lambda w: w.on_card(nn.Embedding(5, 4))(w.host_labels),
        exact("index", "cpu", "cuda:0", "_index_select"),
    ),
    Case(
        "embedding left on the host",
        lambda w: nn.Embedding(5, 4)(w.labels),
        exact("index", "cuda:0", "cpu", "_index_select"),
    ),
    Case(
        "convolution, host images",
        lambda w: w.on_card(nn.Conv2d(3, 4, 3))(w.host_images),
        exact("weight", "cuda:0", "cpu", "__slow_conv2d_forward"),
    ),
    Case(
        "convolution, several host images",
        lambda w: w.on_card(nn.Conv2d(3, 4, 3))(w.host_images.repeat(4, 1, 1, 1)),
        input_and_weight("FloatTensor", "cuda.FloatTensor", MKLDNN),
    ),
    Case(
        "convolution with steps, a host image",
        lambda w: w.on_card(nn.Conv2d(3, 4, 3, dilation=2))(w.host_images),
        exact("weight", "cuda:0", "cpu", "_slow_conv_dilated2d"),
    ),
    Case(
        "convolution left on the host",
        lambda w: nn.Conv2d(3, 4, 3)(w.images),
        input_and_weight("cuda.FloatTensor", "FloatTensor"),
    ),
    Case(
        "transposed convolution, host images",
        lambda w: w.on_card(nn.ConvTranspose2d(3, 4, 3))(w.host_images),
        exact("weight", "cuda:0", "cpu", "slow_conv_transpose2d"),
    ),
    Case(
        "convolution over time left on the host",
        lambda w: nn.Conv1d(2, 4, 3)(w.steps),
        input_and_weight("cuda.FloatTensor", "FloatTensor"),
    ),
    Case(
        "convolution, host bias",
        lambda w: F.conv2d(w.images, torch.randn(4, 3, 3, 3, device="cuda"), torch.randn(4)),
        "Input type (torch.cuda.FloatTensor) and bias type (torch.FloatTensor) should be the same",
    ),
    Case(
        "batch norm, host batch",
        lambda w: w.on_card(nn.BatchNorm1d(4))(w.host_x),
        exact("weight", "cuda:0", "cpu", "_native_batch_norm"),
    ),
    Case(
        "layer norm, host batch",
        lambda w: w.on_card(nn.LayerNorm(4))(w.host_x),
        exact("weight", "cuda:0", "cpu", "_native_layer_norm"),
    ),
    Case("prelu left on the host", lambda w: nn.PReLU()(w.x), exact("weight", "cpu", "cuda:0", "__prelu_kernel")),
    Case(
        "lstm, host hidden state",
        lambda w: w.on_card(nn.LSTM(4, 4))(w.steps, (torch.zeros(1, 2, 4), torch.zeros(1, 2, 4))),
        not_at_same_device("hidden", "cuda:0", "cpu"),
    ),
    Case(
        "lstm, host batch",
        lambda w: w.on_card(nn.LSTM(4, 4))(w.host_steps),
        not_at_same_device("parameter", "cpu", "cuda:0"),
    ),
    Case(
        "gru, host hidden state",
        lambda w: w.on_card(nn.GRU(4, 4))(w.steps, torch.zeros(1, 2, 4)),
        not_at_same_device("hidden", "cuda:0", "cpu"),
    ),
    Case(
        "gru left on the host",
        lambda w: nn.GRU(4, 4)(w.steps, torch.zeros(1, 2, 4, device="cuda")),
        not_at_same_device("parameter", "cuda:0", "cpu"),
    ),
    Case(
        "rnn, hidden state on the other card",
        lambda w: w.on_card(nn.RNN(4, 4))(w.steps, torch.zeros(1, 2, 4, device="cuda:1")),
        not_at_same_device("hidden", "cuda:0", "cuda:1"),
    ),
    Case(
        "lstm cell, host state",
        lambda w: w.on_card(nn.LSTMCell(4, 4))(w.x, (torch.zeros(3, 4), torch.zeros(3, 4))),
        exact("mat2", "cuda:0", "cpu", "mm"),
    ),
    Case(
        "packed lengths on the card",
        lambda w: nn.utils.rnn.pack_padded_sequence(w.steps, torch.tensor([5, 3], device="cuda")),
        "'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor",
    ),
    Case("packed lengths on the host", lambda w: nn.utils.rnn.pack_padded_sequence(w.steps, torch.tensor([5, 3]))),
    Case(
        "attention, host key and value",
        lambda w: F.scaled_dot_product_attention(w.heads, w.host_heads, w.host_heads),
        "Expected query, key, and value to have the same device type, but got query.device: cuda:0 key.device: cpu "
        "and value.device: cpu instead.",
    ),
    Case(
        "attention, host mask",
        lambda w: F.scaled_dot_product_attention(w.heads, w.heads, w.heads, attn_mask=torch.zeros(3, 3)),
        exact("attn_bias", "cpu", "cuda:0", "__scaled_dot_product_efficient_attention"),
    ),
    Case(
        "multi-head attention, host mask",
        lambda w: w.on_card(nn.MultiheadAttention(4, 1))(w.x, w.x, w.x, attn_mask=torch.zeros(3, 3)),
        exact("batch1", "cuda:0", "cpu", "baddbmm"),
    ),
    Case("positions not registered as a buffer", lambda w: w.x + torch.arange(4.0), two_devices()),
    Case("interpolation", lambda w: F.interpolate(w.images, scale_factor=2)),
]

LOSSES = [
    Case(
        "cross entropy, host target",
        lambda w: F.cross_entropy(w.x, w.host_labels),
        exact("target", "cpu", "cuda:0", "nll_loss_forward"),
    ),
    Case(
        "cross entropy, host weight",
        lambda w: nn.CrossEntropyLoss(weight=torch.ones(4))(w.x, w.labels),
        exact("weight", "cpu", "cuda:0", "nll_loss_forward"),
    ),
    Case(
        "cross entropy, probabilities on the host", lambda w: F.cross_entropy(w.x, w.host_x.softmax(1)), two_devices()
    ),
    Case(
        "nll loss, host target",
        lambda w: F.nll_loss(w.x.log_softmax(1), w.host_labels),
        exact("target", "cpu", "cuda:0", "nll_loss_forward"),
    ),
    Case("squared error, host target", lambda w: F.mse_loss(w.x, w.host_x), two_devices()),
    Case("absolute error, host target", lambda w: F.l1_loss(w.x, w.host_x), two_devices()),
    Case("smooth error, host target", lambda w: F.smooth_l1_loss(w.x, w.host_x), two_devices()),
    Case("huber, host target", lambda w: F.huber_loss(w.x, w.host_x), exact("target", "cpu", "cuda:0", "_huber_loss")),
    Case(
        "binary cross entropy with logits, host target",
        lambda w: F.binary_cross_entropy_with_logits(w.x, torch.rand(3, 4)),
        two_devices(),
    ),
    Case(
        "binary cross entropy with logits, host pos_weight",
        lambda w: F.binary_cross_entropy_with_logits(w.x, w.x.sigmoid(), pos_weight=torch.ones(4)),
        two_devices(),
    ),
    Case("divergence, host target", lambda w: F.kl_div(w.x, w.host_x, reduction="batchmean"), two_devices()),
    Case(
        "cosine similarity",
        lambda w: F.cosine_similarity(w.x, w.host_x),
        exact("min", "cuda:0", "cpu", "clamp_min__Tensor") if RELEASE >= (2, 8) else two_devices(),
    ),
    Case("accuracy against host labels", lambda w: w.x.argmax(1) == w.host_labels, two_devices()),
]

ELEMENTWISE = [
    Case("sum", lambda w: w.x + w.host_x, two_devices()),
    Case("product, host first", lambda w: w.host_x * w.x, two_devices()),
    Case("two cards", lambda w: w.x + w.other_x, two_devices("cuda:0", "cuda:1")),
    Case("card plus host scalar", lambda w: w.x + w.host_scalar),
    Case("host scalar times card", lambda w: w.host_scalar * w.x),
    Case("host plus card scalar", lambda w: w.host_x + w.scalar, two_devices()),
    Case("one-element host vector is no scalar", lambda w: w.x + torch.ones(1), two_devices()),
    Case(
        "scalar of another card is no host scalar",
        lambda w: w.x + torch.tensor(1.0, device="cuda:1"),
        two_devices("cuda:0", "cuda:1"),
    ),
    Case("running total on the host", lambda w: torch.tensor(0.0).add_(w.x.sum()), two_devices()),
    Case("card += host scalar", lambda w: w.x.clone().add_(w.host_scalar)),
    Case("card += host", lambda w: w.x.clone().add_(w.host_x), two_devices()),
    Case("host += card", lambda w: w.host_x.clone().add_(w.x), two_devices()),
    Case("out= on the host", lambda w: torch.add(w.x, w.x, out=torch.empty(3, 4)), two_devices()),
    Case(
        "matrix product, out= on the host",
        lambda w: torch.mm(w.x, w.square, out=torch.empty(3, 4)),
        exact("self", "cuda:0", "cpu", "mm_out_out"),
    ),
    Case("addcmul, one host scalar", lambda w: torch.addcmul(w.x, w.x, w.host_scalar)),
    Case("addcmul, two host scalars", lambda w: torch.addcmul(w.x, w.host_scalar, w.host_scalar), TOO_MANY_SCALARS),
    Case("lerp", lambda w: torch.lerp(w.x, w.host_x, 0.5), two_devices()),
    Case("maximum with a host scalar", lambda w: torch.maximum(w.x, w.host_scalar)),
    Case("maximum with host", lambda w: torch.maximum(w.x, w.host_x), two_devices()),
    Case("power with host exponent", lambda w: w.x**w.host_x, two_devices()),
    Case(
        "clamp by a host scalar tensor",
        lambda w: torch.clamp(w.x, min=w.host_scalar),
        exact("min", "cpu", "cuda:0", "clamp_Tensor"),
    ),
    Case(
        "nextafter with a host scalar",
        lambda w: torch.nextafter(w.x, w.host_scalar),
        exact("other", "cpu", "cuda:0", "nextafter"),
    ),
    Case("where, host scalar branch", lambda w: torch.where(w.x > 0, w.x, w.host_scalar)),
    Case("where, host branch", lambda w: torch.where(w.x > 0, w.x, w.host_x), two_devices()),
    Case("where, host condition", lambda w: torch.where(w.host_x > 0, w.x, w.x), two_devices()),
    Case("multiplying lists, host entry", lambda w: torch._foreach_mul([w.x, w.x], [w.x, w.host_x]), two_devices()),
]

PRODUCTS = [
    Case("@", lambda w: w.x @ w.host_x.T, exact("mat2", "cpu", "cuda:0", "mm")),
    Case("bmm", lambda w: torch.bmm(w.steps, w.host_steps.transpose(1, 2)), exact("mat2", "cpu", "cuda:0", "bmm")),
    Case("matrix times host vector", lambda w: torch.mv(w.x, torch.ones(4)), exact("mat", "cuda:0", "cpu", "addmv_")),
    Case("dot", lambda w: torch.dot(w.x[0], w.host_x[0]), exact("tensor", "cpu", "cuda:0", "_dot")),
    Case("einsum", lambda w: torch.einsum("ij,kj->ik", w.x, w.host_x), exact("mat2", "cpu", "cuda:0", "bmm")),
    Case("outer", lambda w: torch.outer(w.x[0], w.host_x[0]), two_devices()),
    Case("distances", lambda w: torch.cdist(w.x, w.host_x), exact("x2", "cpu", "cuda:0", "__cdist_forward")),
    Case(
        "solve",
        lambda w: torch.linalg.solve(w.square, torch.ones(4, 1)),
        exact("B", "cpu", "cuda:0", "_linalg_solve_ex"),
    ),
    Case(
        "chain of products",
        lambda w: torch.linalg.multi_dot([w.x, torch.ones(4, 4), w.square]),
        "multi_dot(): all tensors must be on the same device but tensor 0 is on cuda:0 and tensor 1 on cpu",
    ),
    Case("sparse times dense", lambda w: torch.sparse.mm(torch.eye(3).to_sparse().to("cuda"), w.x)),
]

JOINING = [
    Case("cat", lambda w: torch.cat([w.x, w.host_x]), exact("tensors", "cpu", "cuda:0", "cat")),
    Case("cat, host first", lambda w: torch.cat([w.host_x, w.x]), exact("tensors", "cuda:0", "cpu", "cat")),
    Case("stack", lambda w: torch.stack([w.x, w.host_x]), exact("tensors", "cpu", "cuda:0", "cat")),
    Case(
        "meshgrid",
        lambda w: torch.meshgrid(w.x[0], w.host_x[0], indexing="ij"),
        "meshgrid expects all tensors to have the same device",
    ),
    Case(
        "block_diag",
        lambda w: torch.block_diag(w.x, w.host_x),
        "torch.block_diag: input tensors must all be on the same device. Input 0 is on device cuda:0 and input 1 is "
        "on device cpu",
    ),
    Case(
        "tensor_split at points on the card",
        lambda w: w.x.tensor_split(torch.tensor([1], device="cuda")),
        "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on cuda:0",
    ),
    Case("tensor_split at host points", lambda w: w.x.tensor_split(torch.tensor([1]))),
    Case(
        "segment_reduce, host lengths",
        lambda w: torch.segment_reduce(w.x[0], "sum", lengths=torch.tensor([4])),
        "Expected data.get_device() == lengths_value.get_device() to be true, but got false.  (Could this error "
        "message be improved?  If so, please report an enhancement request to PyTorch.)",
    ),
]


def _assign(target: torch.Tensor, index: Any, value: Any) -> None:
    target.clone()[index] = value


INDEXING = [
    Case("card by host indices", lambda w: w.x[w.host_labels]),
    Case("card by host mask", lambda w: w.x[w.host_x > 0]),
    Case("host by card indices", lambda w: w.host_x[w.labels], INDEX_NOT_HERE),
    Case("host by card mask", lambda w: w.host_x[w.x > 0], INDEX_NOT_HERE),
    Case(
        "card by indices of the other card",
        lambda w: w.x[torch.tensor([0], device="cuda:1")],
        "indices should be either on cpu or on the same device as the indexed tensor (cuda:0)",
    ),
    Case("card[host mask] = number", lambda w: _assign(w.x, w.host_x > 0, 0.0)),
    Case("card[host indices] = number", lambda w: _assign(w.x, w.host_labels, 0.0)),
    Case("card[host indices] = card rows", lambda w: _assign(w.x, w.host_labels, w.x)),
    Case("host[card indices] = number", lambda w: _assign(w.host_x, w.labels, 0.0)),
    Case("host[card indices] = host rows", lambda w: _assign(w.host_x, w.labels, w.host_x)),
    Case("host[card indices] = card scalar", lambda w: _assign(w.host_x, w.labels, w.scalar)),
    Case("host[card indices] = card rows", lambda w: _assign(w.host_x, w.labels, w.x), two_devices()),
    Case("host[card mask] = number", lambda w: _assign(w.host_x, w.x > 0, 0.0)),
    Case("card[indices of the other card] = number", lambda w: _assign(w.x, w.labels.to("cuda:1"), 0.0)),
    Case("index_put of host by card indices", lambda w: w.host_x.index_put((w.labels,), w.host_x)),
    Case(
        "masked_fill_ by host mask",
        lambda w: w.x.clone().masked_fill_(w.host_x > 0, 0.0),
        "expected self and mask to be on the same device, but got mask on cpu and self on cuda:0",
    ),
    Case("index_fill_ by host indices", lambda w: w.x.clone().index_fill_(0, w.host_labels, 0.0), two_devices()),
    Case("card[0] = host row", lambda w: w.x.clone().__setitem__(0, w.host_x[0])),
    Case("card[indices] = host rows", lambda w: w.x.clone().__setitem__(w.labels, w.host_x), two_devices()),
    Case(
        "index_put_ accumulating host values",
        lambda w: w.x.clone().index_put_((w.labels,), w.host_x, accumulate=True),
        "expected device cuda:0 but got device cpu for value tensor",
    ),
    Case(
        "index_select by host indices",
        lambda w: w.x.index_select(0, w.host_labels),
        exact("index", "cpu", "cuda:0", "_index_select"),
    ),
    Case(
        "gather by host indices",
        lambda w: w.x.gather(1, w.host_labels.view(-1, 1)),
        exact("index", "cpu", "cuda:0", "gather"),
    ),
    Case(
        "scatter_ by host indices",
        lambda w: torch.zeros(3, 4, device="cuda").scatter_(1, w.host_labels[:, None], 1.0),
        exact("index", "cpu", "cuda:0", "scatter__value"),
    ),
    Case("take by host indices", lambda w: w.x.take(w.host_labels), exact("index", "cpu", "cuda:0", "_take")),
    Case(
        "masked_fill by host mask",
        lambda w: w.x.masked_fill(w.host_x > 0, 0.0),
        "expected self and mask to be on the same device, but got mask on cpu and self on cuda:0",
    ),
    Case("masked_fill with a host scalar", lambda w: w.x.masked_fill(w.x > 0, w.host_scalar)),
    Case(
        "masked_fill of host with a card scalar",
        lambda w: w.host_x.masked_fill(w.host_x > 0, w.scalar),
        "masked_fill_: Expected inputs to be on same device",
    ),
    Case(
        "masked_select by host mask",
        lambda w: w.x.masked_select(w.host_x > 0),
        exact("mask", "cpu", "cuda:0", "_masked_select"),
    ),
    Case("copy_ host to card", lambda w: w.x.clone().copy_(w.host_x)),
    Case("copy_ card to host", lambda w: w.host_x.clone().copy_(w.x)),
    Case(
        "bucketize by host boundaries",
        lambda w: torch.bucketize(w.x, torch.tensor([0.0, 1.0])),
        exact("boundaries", "cpu", "cuda:0", "Tensor_bucketize"),
    ),
    Case(
        "searchsorted in a host sequence",
        lambda w: torch.searchsorted(torch.tensor([0.0, 1.0]), w.x),
        exact("self", "cuda:0", "cpu", "Tensor_searchsorted"),
    ),
    Case(
        "quantiles given on the host",
        lambda w: torch.quantile(w.x, torch.tensor([0.5])),
        "quantile() q tensor must be on the same device as the input tensor",
    ),
    Case("equal", lambda w: torch.equal(w.x, w.host_x), exact("other", "cpu", "cuda:0", "_equal")),
    Case("one_hot stays on the card", lambda w: F.one_hot(w.labels, 4) + w.labels[:, None]),
]

HOST_ONLY = [
    Case("numpy", lambda w: w.x.numpy(), no_numpy()),
    Case("numpy of another card", lambda w: w.other_x.numpy(), no_numpy("cuda:1")),
    Case("np.asarray", lambda w: np.asarray(w.x), no_numpy()),
    Case("np.mean of card scalars", lambda w: np.mean([w.x.sum(), w.x.sum()]), no_numpy()),
    Case("numpy by force", lambda w: w.x.numpy(force=True)),
    Case(
        "pinning a card tensor",
        lambda w: w.x.pin_memory(),
        "cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned",
    ),
    Case(
        "pinned tensor on the card",
        lambda w: torch.zeros(3, device="cuda", pin_memory=True),
        "Only dense CPU tensors can be pinned",
    ),
    Case(
        "random state on the card",
        lambda w: torch.set_rng_state(torch.get_rng_state().cuda()),
        "RNG state must be a torch.ByteTensor",
    ),
]

DEVICES = [
    Case("card that is not there", lambda w: w.x.to("cuda:7"), "CUDA error: invalid device ordinal"),
    Case(
        "tensor on a card that is not there",
        lambda w: torch.zeros(2, device="cuda:2"),
        "CUDA error: invalid device ordinal",
    ),
    Case("current device that is not there", lambda w: torch.cuda.set_device(2), "CUDA error: invalid device ordinal"),
    Case(
        "host generator for card numbers",
        lambda w: torch.randn(3, device="cuda", generator=w.host_generator),
        wrong_generator("cuda", "cpu"),
    ),
    Case(
        "card generator for host numbers",
        lambda w: torch.randn(3, generator=w.generator),
        wrong_generator("cpu", "cuda"),
    ),
    Case(
        "card generator for a host permutation",
        lambda w: torch.randperm(3, generator=w.generator),
        wrong_generator("cpu", "cuda"),
    ),
    Case(
        "host generator in place on the card",
        lambda w: w.x.normal_(generator=w.host_generator),
        wrong_generator("cuda", "cpu"),
    ),
    Case("card generator on the card", lambda w: w.x.clone().bernoulli_(0.5, generator=w.generator)),
    Case("torch.tensor of a card tensor", lambda w: torch.tensor(w.x) + w.x),
    Case(
        "torch.tensor of card scalars is on the host",
        lambda w: torch.tensor([w.scalar, w.scalar]) + w.x[0, :2],
        two_devices(),
    ),
]


def _assign_gradient(world: World) -> None:
    world.on_card(nn.Linear(4, 4)).weight.grad = torch.randn(4, 4)


def _step_with_state_of_the_host(world: World) -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(world.host_x).sum().backward()
    optimizer.step()
    model.cuda()
    optimizer.zero_grad()
    model(world.x).sum().backward()
    optimizer.step()


class _HostInside(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, source: Any) -> Any:
        return source * 2

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient + torch.ones(3, 4)


class _HostReturned(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, source: Any) -> Any:
        return source * 2

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return torch.ones(3, 4)


def _backward_through(function: Any, world: World) -> None:
    function.apply(world.x.clone().requires_grad_()).sum().backward()


def _doubled(world: World, *, host: bool = False) -> torch.Tensor:
    """A result with a history, on the card or on the host."""
    source = world.host_x if host else world.x
    return source.clone().requires_grad_() * 2


def _penalty_with_host_gradient(world: World) -> None:
    leaf = world.x.clone().requires_grad_()
    torch.autograd.grad(outputs=leaf * 2, inputs=leaf, grad_outputs=torch.ones(3, 4), create_graph=True)


def _second_of_two_roots(world: World) -> None:
    torch.autograd.backward([_doubled(world), _doubled(world)], [torch.ones(3, 4).cuda(), torch.ones(3, 4)])


def _several_rows_at_once(world: World) -> None:
    leaf = world.x.clone().requires_grad_()
    rows = torch.eye(12).reshape(12, 3, 4).cuda()
    torch.autograd.grad(leaf * 2, leaf, rows, is_grads_batched=True)


def _scalar_weight_of_a_loss(world: World) -> None:
    leaf = world.x.clone().requires_grad_()
    (leaf * 2).sum().backward(torch.tensor(0.5))
    assert leaf.grad is not None and bool((leaf.grad == 1).all()) and leaf.grad.is_cuda


def invalid_gradient(expected: str, found: str, position: int = 0) -> str:
    """The engine's check of the gradients that it starts from."""
    return f"invalid gradient at index {position} - expected device {expected} but got {found}"


GRADIENTS = [
    Case(
        "backward from a gradient on the host",
        lambda w: _doubled(w).backward(gradient=torch.ones(3, 4)),
        invalid_gradient("cuda:0", "cpu"),
    ),
    Case("gradient penalty with ones of the host", _penalty_with_host_gradient, invalid_gradient("cuda:0", "cpu")),
    Case("second root with a host gradient", _second_of_two_roots, invalid_gradient("cuda:0", "cpu", 1)),
    Case(
        "backward on the host from a gradient on the card",
        lambda w: _doubled(w, host=True).backward(w.x),
        invalid_gradient("cpu", "cuda:0"),
    ),
    Case(
        "backward from a gradient on the other card",
        lambda w: torch.autograd.backward(_doubled(w), w.other_x),
        invalid_gradient("cuda:0", "cuda:1"),
    ),
    Case("backward from a gradient on the card", lambda w: _doubled(w).backward(torch.ones_like(w.x))),
    Case("scalar weight of a loss, on the host", _scalar_weight_of_a_loss),
    Case("several rows of a Jacobian at once", _several_rows_at_once),
    Case("assigned gradient on the host", _assign_gradient, wrong_gradient("cpu", "cuda")),
    Case("optimizer state from before the move", _step_with_state_of_the_host, two_devices()),
    Case("custom backward adds a host tensor", lambda w: _backward_through(_HostInside, w), two_devices()),
    Case(
        "custom backward returns a host tensor",
        lambda w: _backward_through(_HostReturned, w),
        "Function _HostReturnedBackward returned an invalid gradient at index 0 - expected device cuda:0 but got cpu",
    ),
    Case(
        "host weight in a loss over two devices",
        lambda w: (w.x.requires_grad_() * w.host_x.to("cuda:0")).sum().backward(),
    ),
    Case(
        "averaged copy left on the host",
        lambda w: copy.deepcopy(nn.Linear(4, 4)).weight.data.lerp_(w.square, 0.1),
        two_devices(),
    ),
]

CASES = MODULES + LOSSES + ELEMENTWISE + PRODUCTS + JOINING + INDEXING + HOST_ONLY + DEVICES + GRADIENTS

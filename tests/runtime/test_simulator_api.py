"""The surface of torch on a simulated card: each test is one thing programs do."""

from __future__ import annotations

import copy
import importlib
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from devlint.runtime.recorder import Recorder
from devlint.runtime.simulator import CannotSimulate, DeviceSpec, simulate
from devlint.runtime.simulator.simulation import Simulation

pytestmark = pytest.mark.runtime


@pytest.fixture(autouse=True)
def simulation() -> Iterator[Simulation]:
    with simulate(DeviceSpec("cuda", 2), Recorder([__file__])) as simulation:
        torch.manual_seed(0)
        yield simulation


def device(*tensors: torch.Tensor) -> list[str]:
    return [str(tensor.device) for tensor in tensors]


class Numbers(Dataset):  # type: ignore[misc]
    def __init__(self, moving: bool = False) -> None:
        self.moving = moving

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        made = torch.ones(3) * index
        return made.to("cuda") if self.moving else made


# ------------------------------------------------------------------ devices


def test_device_attributes() -> None:
    made = torch.ones(2, device="cuda")
    assert made.device == torch.device("cuda:0") != torch.device("cuda")
    assert (made.is_cuda, made.is_cpu, made.get_device(), made.type()) == (True, False, 0, "torch.cuda.FloatTensor")
    assert str(made) == "tensor([1., 1.], device='cuda:0')"
    assert type(made) is torch.Tensor


def test_host_tensor_is_unchanged() -> None:
    made = torch.ones(2)
    assert (str(made.device), made.is_cuda, made.is_cpu, made.get_device()) == ("cpu", False, True, -1)
    assert str(made) == "tensor([1., 1.])"


def test_ints_are_cards() -> None:
    host = torch.ones(2)
    assert device(torch.zeros(2, device=1), host.to(1), host.cuda(1), host.to(device=0)) == [
        "cuda:1",
        "cuda:1",
        "cuda:1",
        "cuda:0",
    ]


def test_device_made_from_an_int() -> None:
    second = torch.device(1)
    assert str(second) == "cuda:1"
    assert device(torch.zeros(1, device=second), nn.Linear(2, 2).to(1).weight) == ["cuda:1", "cuda:1"]


def test_devices_are_still_devices() -> None:
    made = torch.device("cuda", 1)
    assert isinstance(made, torch.device) and isinstance(made, (str, torch.device))
    assert not isinstance("cuda", torch.device)
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made


@pytest.mark.parametrize("made", [torch.device("cpu"), torch.ones(2).device], ids=["made before", "of a tensor"])
def test_class_of_devices_is_the_same_object(made: torch.device) -> None:
    assert type(made) is type(torch.device("cuda:0")) is type(torch.ones(1).cuda().device) is torch.device


def test_devices_have_their_class_back_afterwards() -> None:
    program = (
        "import torch\nfrom devlint.runtime.recorder import Recorder\n"
        "from devlint.runtime.simulator import DeviceSpec, simulate\n"
        "with simulate(DeviceSpec('cuda', 1), Recorder()): inside = torch.device(0)\n"
        "print(inside, type(torch.device) is type, type(inside) is torch.device)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.split() == ["cuda:0", "True", "True"]


@pytest.mark.parametrize("text", ["nonsense", "cuda:-2"])
def test_wrong_device_is_torch_s_error(text: str) -> None:
    with pytest.raises(RuntimeError, match="device"):
        torch.device(text)


def test_module_goes_where_a_tensor_is() -> None:
    there = torch.ones(1, dtype=torch.float64, device="cuda:1")
    moved = nn.Linear(2, 2).to(there)
    assert (device(moved.weight), moved.weight.dtype) == (["cuda:1"], torch.float64)


def test_module_goes_where_a_tensor_by_keyword_is() -> None:
    assert device(nn.Sequential(nn.Linear(2, 2)).to(tensor=torch.ones(1).cuda())[0].bias) == ["cuda:0"]


def test_module_comes_back_to_where_a_tensor_is() -> None:
    assert device(nn.Linear(2, 2).cuda().to(torch.ones(1)).weight) == ["cpu"]


def test_saved_device_can_be_loaded_outside(tmp_path: Path) -> None:
    path = tmp_path / "options.pt"
    torch.save({"device": torch.device("cuda:1")}, path)
    program = f"import torch; print(torch.load({str(path)!r})['device'])"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.strip() == "cuda:1"


def test_default_tensor_type() -> None:
    torch.set_default_tensor_type("torch.cuda.FloatTensor")
    try:
        assert device(torch.zeros(2), torch.tensor([1.0]), nn.Linear(2, 2).weight) == ["cuda:0"] * 3
    finally:
        torch.set_default_tensor_type(torch.FloatTensor)
    assert device(torch.zeros(2)) == ["cpu"]


def test_default_device_in_a_block() -> None:
    with torch.device("cuda:1"):
        made = [torch.zeros(3), nn.Linear(3, 3).weight, torch.tensor([1.0]), torch.arange(3), torch.randn(2)]
    assert device(*made) == ["cuda:1"] * 5
    assert device(torch.zeros(3)) == ["cpu"]


def test_set_default_device() -> None:
    torch.set_default_device("cuda")
    try:
        assert device(torch.zeros(3), nn.Linear(2, 2).weight, torch.as_tensor([1])) == ["cuda:0"] * 3
        assert str(torch.get_default_device()) == "cuda:0"
        assert device(torch.zeros(3, device="cpu")) == ["cpu"]
    finally:
        torch.set_default_device(None)


def test_normal_does_not_follow_the_default_device() -> None:
    with torch.device("cuda:1"):
        assert device(torch.normal(0.0, 1.0, (2,)), torch.randn(2)) == ["cpu", "cuda:1"]
    assert device(torch.normal(0.0, 1.0, (2,), device="cuda:1")) == ["cuda:1"]


def test_current_device() -> None:
    torch.cuda.set_device(1)
    assert (torch.cuda.current_device(), *device(torch.zeros(2, device="cuda"))) == (1, "cuda:1")
    with torch.cuda.device(0):
        assert device(torch.zeros(2).cuda()) == ["cuda:0"]
    assert torch.cuda.current_device() == 1


def test_block_of_the_device_of_a_tensor() -> None:
    made = torch.ones(2, device="cuda:1")
    with torch.cuda.device_of(made):
        assert device(torch.zeros(2, device="cuda")) == ["cuda:1"]
    assert torch.cuda.current_device() == 0


def test_new_thread_starts_on_card_0() -> None:
    torch.cuda.set_device(1)
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(torch.cuda.current_device()))
    thread.start()
    thread.join()
    assert seen == [0]


@pytest.mark.skipif(not hasattr(torch, "accelerator"), reason="torch.accelerator came with 2.6")
def test_accelerator_api() -> None:
    accelerator = torch.accelerator
    assert accelerator.is_available()
    assert accelerator.device_count() == 2
    assert str(accelerator.current_accelerator()) == "cuda"
    assert device(torch.ones(2).to(accelerator.current_accelerator())) == ["cuda:0"]
    accelerator.set_device_index(1)
    assert accelerator.current_device_index() == 1


def test_properties() -> None:
    cuda = torch.cuda
    assert cuda.is_available() and cuda.is_initialized() and cuda.is_bf16_supported()
    assert cuda.device_count() == 2
    assert "imulated" in cuda.get_device_name(0)
    assert cuda.get_device_properties("cuda:1").total_memory > 0
    assert cuda.get_device_capability() == (9, 0)
    assert torch.backends.cudnn.is_available() and torch.backends.cuda.is_built() and torch.version.cuda


def test_streams_and_events() -> None:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        made = torch.ones(2, device="cuda") * 2
    torch.cuda.current_stream().wait_stream(stream)
    event = stream.record_event()
    assert not event.query()
    stream.synchronize()
    assert event.query() and stream.query()
    assert made.tolist() == [2.0, 2.0]


# ------------------------------------------------------------------ moving


def test_move_keeps_identity_when_nothing_changes() -> None:
    made = torch.zeros(4, device="cuda")
    assert made.cuda() is made and made.to("cuda:0") is made and made.to(torch.float32) is made
    assert made.to("cuda:0", copy=True) is not made


def test_lazy_module_goes_where_it_is_moved_and_takes_its_shape_there() -> None:
    net = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2)).to("cuda")
    out = net(torch.ones(2, 3, 8, 8, device="cuda"))
    assert device(out, *net.parameters()) == ["cuda:0"] * 7


def test_lazy_module_stays_on_the_host_where_nobody_moves_it() -> None:
    layer = nn.LazyLinear(3)
    assert device(layer(torch.ones(2, 5)), layer.weight) == ["cpu", "cpu"]
    with pytest.raises(RuntimeError, match="same device"):
        nn.LazyLinear(3)(torch.ones(2, 5, device="cuda"))


def test_type_as_moves() -> None:
    here, there = torch.ones(2), torch.ones(2, dtype=torch.float64, device="cuda:1")
    moved = here.type_as(there)
    assert device(moved) == ["cuda:1"]
    assert moved.dtype == torch.float64
    assert device(there.type_as(here)) == ["cpu"]


def test_move_copies_the_bytes() -> None:
    host = torch.zeros(2)
    host.cuda().add_(1)
    assert host.tolist() == [0.0, 0.0]


def test_move_in_every_call_form() -> None:
    host, like = torch.ones(2), torch.ones(1, device="cuda:1", dtype=torch.float64)
    forms = [
        host.to("cuda:1", torch.float64),
        host.to("cuda:1", torch.float64, True, True),
        host.to(device="cuda:1", dtype=torch.float64),
        host.to(like),
        host.to(tensor=like, non_blocking=True),
        host.type("torch.cuda.DoubleTensor").to("cuda:1"),
    ]
    assert {(str(made.device), made.dtype) for made in forms} == {("cuda:1", torch.float64)}


def test_views_share_the_card() -> None:
    made = torch.zeros(4, device="cuda")
    made.view(2, 2)[0] += 1
    assert made.tolist() == [1.0, 1.0, 0.0, 0.0]
    assert device(made[0], made.view(2, 2).t(), made.detach(), made.data) == ["cuda:0"] * 4


def test_like_and_new() -> None:
    made = torch.ones(2, device="cuda:1")
    there = [
        torch.zeros_like(made),
        torch.rand_like(made),
        made.new_zeros(2),
        made.new_tensor([1]),
        made.new_full((1,), 2),
    ]
    assert device(*there) == ["cuda:1"] * 5
    assert device(torch.zeros_like(made, device="cpu"), made.new_ones(2, device="cpu")) == ["cpu", "cpu"]


def test_legacy_constructors() -> None:
    assert device(
        torch.cuda.FloatTensor(2, 3), torch.cuda.LongTensor([1]), torch.Tensor(2, 3), torch.LongTensor(2)
    ) == [
        "cuda:0",
        "cuda:0",
        "cpu",
        "cpu",
    ]
    made = torch.ones(1, device="cuda")
    assert isinstance(made, torch.cuda.FloatTensor) and not isinstance(made, torch.FloatTensor)


def test_module_move_keeps_parameters() -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    before = list(module.parameters())
    module.to("cuda:1")
    assert all(one is other for one, other in zip(before, module.parameters(), strict=True))
    assert set(device(*module.parameters(), *module.buffers())) == {"cuda:1"}
    assert all(type(parameter) is nn.Parameter and parameter.is_leaf for parameter in module.parameters())


def test_meta_then_empty() -> None:
    with torch.device("meta"):
        module = nn.Linear(3, 3)
    assert device(module.weight) == ["meta"]
    assert device(module.to_empty(device="cuda").weight) == ["cuda:0"]


def test_meta_cannot_be_moved() -> None:
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        torch.ones(2, device="meta").to("cuda")


def test_pinned_memory() -> None:
    host = torch.ones(3)
    pinned = host.pin_memory()
    assert pinned.is_pinned() and not host.is_pinned() and pinned.pin_memory() is pinned
    assert torch.zeros(2, pin_memory=True).is_pinned()


class Matrix(torch.Tensor):  # type: ignore[misc]
    """A class of tensors without a constructor of its own."""


class Named(torch.Tensor):  # type: ignore[misc]
    """A class of tensors whose constructor calls torch's."""

    def __new__(cls, data: Any, label: str = "") -> Named:
        made: Named = super().__new__(cls, data)
        made.label = label
        return made


@pytest.mark.parametrize("place", ["cpu", "cuda:0"])
@pytest.mark.parametrize("kind", [Matrix, Named])
def test_class_of_tensors_is_called_on_a_tensor(kind: Any, place: str) -> None:
    leaf = torch.ones(2, 2, device=place, requires_grad=True)
    made = kind(leaf * 2)
    assert type(made) is kind
    assert device(made) == [place]
    made.sum().backward()
    assert leaf.grad is not None and leaf.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_class_of_tensors_is_called_on_numbers() -> None:
    assert Matrix([1.0, 2.0]).tolist() == [1.0, 2.0]
    assert Matrix(2, 3).shape == (2, 3)
    assert Named([1.0], label="one").label == "one"
    assert type(torch.Tensor([1.0])) is torch.Tensor


def test_tensor_subclass_sees_its_moves() -> None:
    seen = []

    class Watched(torch.Tensor):  # type: ignore[misc]
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(getattr(func, "__name__", "?"))
            return super().__torch_function__(func, types, args, kwargs or {})

    made = torch.ones(2).as_subclass(Watched).to("cuda")
    assert type(made) is Watched
    assert "to" in seen
    assert device(made) == ["cuda:0"]


def test_sparse() -> None:
    sparse = torch.eye(3).to_sparse().cuda()
    assert device(sparse, sparse.coalesce().values(), sparse @ torch.ones(3, 2, device="cuda")) == ["cuda:0"] * 3
    built = torch.sparse_coo_tensor(torch.tensor([[0], [1]]), torch.ones(1), (2, 2), device="cuda")
    assert device(built) == ["cuda:0"]


# ------------------------------------------------------------------ random numbers


def test_generator_on_the_card() -> None:
    generator = torch.Generator(device="cuda").manual_seed(1)
    first = torch.randn(3, device="cuda", generator=generator)
    generator.manual_seed(1)
    assert str(generator.device) == "cuda:0"
    assert torch.equal(first, torch.randn(3, device="cuda", generator=generator))
    assert str(torch.Generator().device) == "cpu"


def test_states_of_the_random_generators() -> None:
    state = torch.cuda.get_rng_state()
    torch.cuda.set_rng_state(state)
    torch.cuda.manual_seed_all(3)
    assert device(state) == ["cpu"]


# ------------------------------------------------------------------ autograd


def test_gradient_goes_back_over_three_devices() -> None:
    leaf = torch.ones(3, requires_grad=True)
    first, second = nn.Linear(3, 3).cuda(), nn.Linear(3, 1).to("cuda:1")
    second(first(leaf.to("cuda")).to("cuda:1")).sum().cpu().backward()
    assert device(leaf.grad, first.weight.grad, second.weight.grad) == ["cpu", "cuda:0", "cuda:1"]


def test_hooks_and_custom_functions_see_the_card() -> None:
    seen: list[str] = []

    class Double(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, source: Any) -> Any:
            ctx.save_for_backward(source)
            return source * 2

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            seen.extend(device(ctx.saved_tensors[0], gradient))
            return gradient * 2

    leaf = torch.randn(3, device="cuda", requires_grad=True)
    leaf.register_hook(lambda gradient: seen.append(str(gradient.device)))
    Double.apply(leaf).exp().sum().backward()
    assert seen == ["cuda:0"] * 3


def test_double_backward_and_transforms() -> None:
    leaf = torch.randn(3, device="cuda", requires_grad=True)
    (gradient,) = torch.autograd.grad((leaf**3).sum(), leaf, create_graph=True)
    (second,) = torch.autograd.grad(gradient.sum(), leaf)
    batched = torch.func.vmap(torch.func.grad(lambda w, x: (x @ w).sum()), (None, 0))(
        leaf.detach(), torch.randn(5, 3, device="cuda")
    )
    forward = torch.func.jvp(torch.sin, (leaf.detach(),), (torch.ones(3, device="cuda"),))[1]
    assert device(second, batched, forward) == ["cuda:0"] * 3


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointing(reentrant: bool) -> None:
    from torch.utils.checkpoint import checkpoint

    layer, leaf = nn.Linear(3, 3).cuda(), torch.randn(2, 3, device="cuda", requires_grad=True)
    checkpoint(lambda x: F.dropout(layer(x)), leaf, use_reentrant=reentrant).sum().backward()
    assert device(leaf.grad) == ["cuda:0"]


@pytest.mark.parametrize(
    "name",
    ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam", "Adamax", "ASGD", "Rprop", "LBFGS"],
)
def test_optimizer_state_is_on_the_card(name: str) -> None:
    model = nn.Linear(3, 3).cuda()
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.01)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(torch.randn(4, 3, device="cuda")).pow(2).sum()
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)
    entries = [item for state in optimizer.state.values() for item in state.items()]
    # Counters stay on the host by design of torch's optimizers.
    moved = {str(value.device) for key, value in entries if isinstance(value, torch.Tensor) and value.dim() > 0}
    assert moved <= {"cuda:0"}


# ------------------------------------------------------------------ saving


@pytest.mark.parametrize(
    ("map_location", "expected"),
    [
        (None, "cuda:1"),
        ("cpu", "cpu"),
        ("cuda:0", "cuda:0"),
        (torch.device("cuda"), "cuda:0"),
        (lambda storage, location: storage.cuda(0), "cuda:0"),
        ({"cuda:1": "cuda:0"}, "cuda:0"),
    ],
    ids=["as saved", "cpu", "card", "device", "function", "table"],
)
@pytest.mark.parametrize("zipped", [True, False])
def test_load_with_map_location(tmp_path: Path, map_location: Any, expected: str, zipped: bool) -> None:
    path = tmp_path / "state.pt"
    torch.save({"x": torch.arange(3.0, device="cuda:1")}, path, _use_new_zipfile_serialization=zipped)
    loaded = torch.load(path, map_location=map_location)["x"]
    assert device(loaded) == [expected]
    assert loaded.tolist() == [0.0, 1.0, 2.0]


def test_loading_a_state_keeps_the_modules_card() -> None:
    source, target = nn.Linear(3, 3), nn.Linear(3, 3).to("cuda:1")
    target.load_state_dict(source.state_dict())
    assert device(target.weight) == ["cuda:1"]
    assert torch.equal(target.weight.cpu(), source.weight)


def test_copies_and_pickles_stay_on_the_card() -> None:
    weight = nn.Linear(3, 3).cuda().weight
    copied = copy.deepcopy(weight)
    assert device(copied, copy.copy(weight), pickle.loads(pickle.dumps(weight))) == ["cuda:0"] * 3
    assert copied.data_ptr() != weight.data_ptr()


# ------------------------------------------------------------------ threads, workers, several cards


def test_threads_and_executors() -> None:
    with ThreadPoolExecutor(2) as executor:
        made = list(executor.map(lambda index: torch.ones(3).to("cuda:1") * index, range(2)))
    assert device(*made) == ["cuda:1", "cuda:1"]


def test_pinning_loader_with_workers() -> None:
    batches = list(DataLoader(Numbers(), 4, num_workers=1, pin_memory=True))
    assert all(batch.is_pinned() for batch in batches)
    assert device(*(batch.to("cuda", non_blocking=True) for batch in batches)) == ["cuda:0", "cuda:0"]


def test_loader_that_moves_in_the_main_process() -> None:
    assert device(*DataLoader(Numbers(moving=True), 4)) == ["cuda:0", "cuda:0"]


def test_forked_worker_that_moves() -> None:
    if not hasattr(os, "fork"):
        pytest.skip("workers are not forked here")
    torch.cuda.init()
    loader = DataLoader(Numbers(moving=True), 4, num_workers=1, multiprocessing_context="fork")
    with pytest.raises(RuntimeError, match="Cannot re-initialize CUDA in forked subprocess"):
        next(iter(loader))


def test_worker_forked_before_the_device_is_used() -> None:
    if not hasattr(os, "fork"):
        pytest.skip("workers are not forked here")
    loader = DataLoader(Numbers(moving=True), 4, num_workers=1, multiprocessing_context="fork")
    assert device(*loader) == ["cuda:0", "cuda:0"]


def test_data_parallel_on_two_cards() -> None:
    module = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)).cuda()
    result = nn.DataParallel(module, device_ids=[0, 1])(torch.randn(8, 4).cuda())
    result.sum().backward()
    assert device(result, module[0].weight.grad) == ["cuda:0", "cuda:0"]
    assert result.shape == (8, 2)


def test_distributed_data_parallel_over_gloo(tmp_path: Path, simulation: Simulation) -> None:
    distributed = torch.distributed
    distributed.init_process_group("nccl", init_method=f"file://{tmp_path}/rendezvous", rank=0, world_size=1)
    try:
        module = nn.parallel.DistributedDataParallel(nn.Linear(4, 2).cuda(0), device_ids=[0])
        module(torch.randn(6, 4).cuda()).sum().backward()
        total = torch.ones(2, device="cuda")
        distributed.all_reduce(total)
    finally:
        distributed.destroy_process_group()
    assert device(module.module.weight.grad, total) == ["cuda:0", "cuda:0"]
    assert simulation.notes == ["torch.distributed: backend gloo stands in for the card's own"]


# ------------------------------------------------------------------ memory


def test_memory_follows_the_tensors(simulation: Simulation) -> None:
    base = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    made = torch.zeros(1000, device="cuda")
    view = made.view(10, 100)
    assert torch.cuda.memory_allocated() - base == 4000
    assert torch.cuda.memory_allocated(1) == simulation.cards[1].allocated
    del made
    assert torch.cuda.memory_allocated() - base == 4000
    del view
    assert torch.cuda.memory_allocated() == base
    assert torch.cuda.max_memory_allocated() - base == 4000


def test_kept_graph_holds_memory() -> None:
    weight = torch.randn(100, 100, device="cuda", requires_grad=True)
    losses, held = [], []
    for _ in range(3):
        losses.append((weight @ weight).relu().sum())
        held.append(torch.cuda.memory_allocated())
    assert held[2] - held[1] == held[1] - held[0] > 40_000


# ------------------------------------------------------------------ what is replaced or refused


def test_compile_runs_eagerly(simulation: Simulation) -> None:
    module = torch.compile(nn.Linear(3, 3).cuda())
    assert device(module(torch.ones(2, 3, device="cuda"))) == ["cuda:0"]
    assert simulation.notes == ["torch.compile: the model runs eagerly"]
    assert list(module.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
    assert torch.compile(mode="max-autotune")(torch.relu) is torch.relu


def test_profiler_records_the_cpu_kernels() -> None:
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        torch.ones(3, device="cuda") * 2
    assert any("mul" in entry.key for entry in profile.key_averages())


@pytest.mark.parametrize("name", ["CUDAGraph", "graph", "make_graphed_callables", "cudart"])
def test_cannot_be_simulated(name: str) -> None:
    with pytest.raises(CannotSimulate, match=rf"^torch\.cuda\.{name} cannot be simulated: "):
        getattr(torch.cuda, name)()


def test_nccl_itself_cannot_be_simulated() -> None:
    with pytest.raises(CannotSimulate, match="NCCL"):
        torch.cuda.nccl.all_reduce([torch.ones(2, device="cuda")])


def test_tensor_sent_through_a_queue_stays_on_its_card_and_shares_its_memory() -> None:
    queue = torch.multiprocessing.get_context("spawn").SimpleQueue()
    sent = torch.ones(2, device="cuda:1")
    queue.put(sent)
    received = queue.get()
    received.mul_(3)
    assert device(received, sent) == ["cuda:1", "cuda:1"]
    assert sent.tolist() == [3.0, 3.0]


def test_other_libraries_cannot_take_the_memory() -> None:
    made = torch.ones(2, device="cuda")
    assert device(torch.from_dlpack(made)) == ["cuda:0"]
    with pytest.raises(CannotSimulate, match="DLPack"):
        made.__dlpack__()


def test_triton_kernels_cannot_be_simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = tmp_path / "triton" / "runtime"
    runtime.mkdir(parents=True)
    for package in (runtime.parent, runtime):
        (package / "__init__.py").write_text("")
    (runtime / "jit.py").write_text(
        "class JITFunction:\n    __name__ = 'fast_add'\n    def run(self):\n        raise AssertionError('launched')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "triton"]:
        monkeypatch.delitem(sys.modules, name)

    kernel = importlib.import_module("triton.runtime.jit").JITFunction()
    for name in ("triton", "triton.runtime", "triton.runtime.jit"):
        del sys.modules[name]  # later tests of torch's compiler ask for it

    with pytest.raises(CannotSimulate, match="the Triton kernel 'fast_add' cannot be simulated"):
        kernel.run()


def test_custom_kernels_cannot_be_simulated() -> None:
    from torch.utils import cpp_extension

    with pytest.raises(CannotSimulate, match="'fast_add'"):
        cpp_extension.load("fast_add", ["fast_add.cpp", "fast_add.cu"])


def test_torchscript() -> None:
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2 + 1

    made = torch.ones(2, 3, device="cuda")
    assert device(torch.jit.script(double)(made), torch.jit.trace(nn.Linear(3, 3).cuda(), made)(made)) == ["cuda:0"] * 2


def test_tags_and_flags() -> None:
    torch.cuda.nvtx.range_push("step")
    torch.cuda.nvtx.range_pop()
    benchmark = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark = benchmark
    assert not torch.backends.cudnn.is_acceptable(torch.ones(1, device="cuda"))


# ------------------------------------------------------------------ operators with their own ways


def test_results_of_various_operators_are_on_the_card() -> None:
    x, square = torch.randn(10, device="cuda"), torch.eye(3, device="cuda") + 0.1
    probabilities = torch.randn(5, 2, 4, device="cuda").log_softmax(2)
    targets = torch.ones(2, 2, dtype=torch.long, device="cuda")
    lengths = torch.tensor([5, 5]), torch.tensor([2, 2])
    made = [
        x.unique(),
        x.topk(2)[1],
        x.sort()[0],
        x.histc(3),
        x.nonzero(),
        torch.linalg.svd(square)[1],
        torch.fft.fft(square),
        F.one_hot(torch.tensor([0, 1], device="cuda")),
        F.ctc_loss(probabilities, targets, *lengths),
        nn.EmbeddingBag(5, 3).cuda()(torch.tensor([0, 1], device="cuda"), torch.tensor([0, 1], device="cuda")),
        torch.multinomial(x.abs(), 2),
        nn.utils.parametrizations.weight_norm(nn.Linear(10, 3)).cuda()(x),
        nn.utils.parameters_to_vector(nn.Linear(2, 2).cuda().parameters()),
        torch.distributions.Normal(x, x.abs() + 1).rsample(),
    ]
    assert set(device(*made)) == {"cuda:0"}


def test_ctc_loss_has_the_value_of_plain_cpu() -> None:
    scores = torch.randn(5, 2, 4).log_softmax(2)
    targets, lengths = torch.ones(2, 2, dtype=torch.long), (torch.tensor([5, 4]), torch.tensor([2, 1]))
    host = F.ctc_loss(scores, targets, *lengths)
    card = F.ctc_loss(scores.cuda(), targets.cuda(), *lengths)
    assert torch.allclose(card.cpu(), host)


def test_numbers_from_a_card() -> None:
    x = torch.ones((), device="cuda")
    assert (f"{x:.2f}", float(x), int(x), bool(x > 0), x.tolist()) == ("1.00", 1.0, 1, True, 1.0)


def test_clipping_gradients_on_two_cards() -> None:
    first, second = nn.Linear(3, 3).cuda(0), nn.Linear(3, 3).cuda(1)
    second(first(torch.ones(2, 3, device="cuda")).to("cuda:1")).sum().backward()
    total = nn.utils.clip_grad_norm_([*first.parameters(), *second.parameters()], 1.0)
    assert device(total) == ["cuda:0"]

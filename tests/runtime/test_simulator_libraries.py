"""What large libraries do on a card: classes in annotations, wrapper tensors, fake tensors, exports, operators of their own."""

from __future__ import annotations

import io
import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
import torch.fx
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.utils._pytree import tree_map_only

from devlint.runtime.recorder import Recorder
from devlint.runtime.simulator import CannotSimulate, DeviceSpec, simulate
from devlint.runtime.simulator.simulation import Simulation

pytestmark = pytest.mark.runtime


@pytest.fixture(autouse=True)
def simulation() -> Iterator[Simulation]:
    with simulate(DeviceSpec("cuda", 2), Recorder([__file__])) as simulation:
        torch.manual_seed(0)
        yield simulation


def kinds(*tensors: Any) -> list[str]:
    return [tensor.device.type for tensor in tensors]


# ------------------------------------------------------------------ classes stay classes


@pytest.mark.parametrize("name", ["CUDAGraph", "Stream", "Event", "CUDAPluggableAllocator", "device", "FloatTensor"])
def test_class_of_the_device_module_stays_a_class(name: str) -> None:
    kind = getattr(torch.cuda, name)
    assert isinstance(kind, type)
    assert (kind | None) is not None
    assert not isinstance(3, kind)


@pytest.mark.parametrize("name", ["CUDAGraph", "Stream", "Event"])
def test_class_of_the_device_module_can_be_derived_from(name: str) -> None:
    base = getattr(torch.cuda, name)
    derived = type("Derived", (base,), {})
    assert issubclass(derived, base)


def test_graph_is_refused_by_name_when_made() -> None:
    with pytest.raises(CannotSimulate, match="CUDAGraph"):
        torch.cuda.CUDAGraph()
    with pytest.raises(CannotSimulate, match="CUDAGraph"):
        type("Mine", (torch.cuda.CUDAGraph,), {})()


MODULES = (torch, torch.cuda, torch.amp, torch.jit, torch.nn, torch.xpu, torch.profiler, torch.utils.data)


@pytest.fixture(scope="module")
def classes() -> list[tuple[Any, str]]:
    """Module and name of every class there is without a simulation."""
    return [(module, name) for module in MODULES for name, value in vars(module).items() if isinstance(value, type)]


def test_every_class_of_the_device_modules_is_one_still(classes: list[tuple[Any, str]]) -> None:
    lost = [f"{module.__name__}.{name}" for module, name in classes if not isinstance(getattr(module, name), type)]
    assert len(classes) > 300
    assert lost == []


def test_event_that_a_stream_records_is_an_event() -> None:
    assert isinstance(torch.cuda.current_stream().record_event(), torch.cuda.Event)


# ------------------------------------------------------------------ wrapper tensors


class Wrapped(torch.Tensor):  # type: ignore[misc]
    """A tensor around another, as torchao's quantized ones."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)

    def __init__(self, inner: torch.Tensor) -> None:
        self.inner = inner

    def __tensor_flatten__(self) -> Any:
        return ["inner"], None

    @classmethod
    def __tensor_unflatten__(cls, parts: Any, context: Any, size: Any, stride: Any) -> Any:
        return cls(parts["inner"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        bare = tree_map_only(Wrapped, lambda wrapped: wrapped.inner, (args, kwargs or {}))
        return tree_map_only(torch.Tensor, Wrapped, func(*bare[0], **bare[1]))


class Doubled(Wrapped):
    """A wrapper that is told its device by position, and whose operators are made of others."""

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Any:
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, inner.stride(), 0, None, inner.dtype, inner.layout, inner.device
        )

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        bare = tree_map_only(Doubled, lambda wrapped: wrapped.inner, (args, kwargs or {}))
        made = func(*bare[0], **bare[1])
        if func is torch.ops.aten.add.Tensor:
            made = made + torch.zeros(made.shape, device=made.device)
        return tree_map_only(torch.Tensor, Doubled, made)


@pytest.mark.parametrize("kind", [Wrapped, Doubled])
def test_wrapper_is_where_its_tensor_is(kind: Any) -> None:
    wrapped = kind(torch.ones(3, device="cuda:1"))
    assert str(wrapped.device) == "cuda:1"
    assert kind(torch.ones(3)).device.type == "cpu"


@pytest.mark.parametrize("kind", [Wrapped, Doubled])
def test_operators_on_a_wrapper_stay_on_its_card(kind: Any) -> None:
    added = kind(torch.ones(3, device="cuda")) + 1
    assert type(added) is kind
    assert kinds(added, added.inner, added.inner + torch.ones(3, device="cuda")) == ["cuda"] * 3


@pytest.mark.parametrize("kind", [Wrapped, Doubled])
def test_wrapper_on_a_card_with_one_on_the_host_is_refused(kind: Any) -> None:
    with pytest.raises(RuntimeError, match="two devices, cuda:0 and cpu"):
        kind(torch.ones(3, device="cuda")) + kind(torch.ones(3))


@pytest.mark.parametrize("move", [lambda x: x.to("cuda"), lambda x: x.cuda(), lambda x: x.to(torch.device("cuda", 0))])
def test_wrapper_moves_by_its_own_class(move: Callable[[Any], Any]) -> None:
    host = Wrapped(torch.ones(3))
    moved = move(host)
    assert type(moved) is Wrapped
    assert kinds(moved, moved.inner, host, host.inner, moved.cpu().inner) == ["cuda", "cuda", "cpu", "cpu", "cpu"]
    assert moved.to("cuda") is moved


def test_module_whose_parameter_is_a_wrapper_moves() -> None:
    model = nn.Linear(2, 2)
    model.weight = nn.Parameter(Wrapped(model.weight.detach()), requires_grad=False)
    model.cuda()
    assert type(model.weight.data) is Wrapped
    assert kinds(model.weight, model(torch.ones(1, 2, device="cuda"))) == ["cuda", "cuda"]


@pytest.mark.parametrize("build", [torch.zeros_like, torch.empty_like, lambda x: x.new_ones(3)])
def test_factories_from_a_wrapper_follow_it(build: Callable[[Any], Any]) -> None:
    built = build(Wrapped(torch.ones(3, device="cuda")))
    assert kinds(built, built.inner) == ["cuda", "cuda"]


# ------------------------------------------------------------------ fake tensors


@pytest.mark.parametrize(
    "build",
    [
        lambda: torch.empty(2, device="cuda"),
        lambda: torch.zeros(2, device="cuda") + 1,
        lambda: torch.tensor([1.0, 2.0], device="cuda"),
        lambda: torch.ones(2).to("cuda"),
        lambda: torch.zeros_like(torch.ones(2), device="cuda"),
        lambda: nn.Linear(2, 2, device="cuda")(torch.empty(1, 2, device="cuda")),
        lambda: nn.functional.one_hot(torch.zeros(2, dtype=torch.long, device="cuda"), 3),
    ],
)
def test_fake_tensor_is_on_the_card_that_was_asked_for(build: Callable[[], torch.Tensor]) -> None:
    with FakeTensorMode():
        made = build()
    assert str(made.device) == "cuda:0"
    assert made.is_cuda and made.get_device() == 0


@pytest.mark.parametrize(
    "build", [lambda: torch.empty(2), lambda: torch.ones(2, device="cuda").cpu(), lambda: torch.tensor([1.0]) * 2]
)
def test_fake_tensor_is_on_the_host_unless_asked(build: Callable[[], torch.Tensor]) -> None:
    with FakeTensorMode():
        assert build().device.type == "cpu"


def test_fake_tensor_of_a_real_one_is_where_that_is() -> None:
    mode = FakeTensorMode()
    with mode:
        made = mode.from_tensor(torch.ones(2, device="cuda:1"))
        assert str((made * 2).device) == "cuda:1"


def test_fake_tensors_of_two_devices_are_refused() -> None:
    with FakeTensorMode(), pytest.raises(RuntimeError, match="cuda:0"):
        torch.empty(2, device="cuda") + torch.empty(2)


def test_autograd_follows_fake_tensors() -> None:
    with FakeTensorMode():
        weight = torch.empty(2, 2, device="cuda", requires_grad=True)
        total = (weight @ weight).sum()
        assert total.requires_grad
        assert total.device.type == "cuda"


class Adds(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.inner(x) + torch.ones(3, device=x.device)
        return y.softmax(-1)


def test_export_gives_a_program_for_the_card(tmp_path: Any) -> None:
    model, x = Adds().cuda(), torch.randn(2, 3, device="cuda")
    program = torch.export.export(model, (x,))
    made = program.module()(x)
    assert made.device.type == "cuda"
    assert torch.equal(made, model(x))
    assert "cuda:0" in str(program.graph)
    torch.export.save(program, tmp_path / "program.pt2")
    again = torch.export.load(tmp_path / "program.pt2").module()(x)
    assert kinds(again) == ["cuda"]


def test_symbolic_trace_of_a_module_that_makes_tensors() -> None:
    model = Adds().cuda()
    graph = torch.fx.symbolic_trace(model)
    assert kinds(graph(torch.ones(1, 3, device="cuda"))) == ["cuda"]


def test_symbolic_trace_of_functions_with_own_checks() -> None:
    def compute(x: torch.Tensor) -> torch.Tensor:
        attended = nn.functional.scaled_dot_product_attention(x, x, x)
        return torch.quantile(attended, 0.5, dim=-1) + torch.full((1,), 2.0, device=x.device)

    x = torch.ones(1, 2, 3, device="cuda")
    assert torch.equal(torch.fx.symbolic_trace(compute)(x), compute(x))


def test_make_fx_traces_on_the_card() -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    x = torch.ones(2, device="cuda")
    assert kinds(make_fx(lambda t: t.sin() + torch.ones(2, device=t.device))(x)(x)) == ["cuda"]


# ------------------------------------------------------------------ operators that take functions


def test_flex_attention() -> None:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    q = torch.randn(1, 2, 128, 16, device="cuda")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scored: Any = flex_attention(q, q, q, score_mod=lambda score, b, h, i, j: score + (i - j))
        mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 128, 128, device="cuda")
        masked: Any = flex_attention(q, q, q, block_mask=mask)
    assert kinds(scored, masked) == ["cuda", "cuda"]
    expected = nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    assert torch.allclose(masked, expected, atol=1e-5)


@pytest.mark.parametrize("taken", [True, False])
def test_cond(taken: bool) -> None:
    x = torch.ones(3, device="cuda")
    chosen = torch.cond(torch.tensor(taken, device="cuda"), lambda t: t.sin(), lambda t: t.cos(), (x,))
    assert kinds(chosen) == ["cuda"]
    assert torch.equal(chosen, x.sin() if taken else x.cos())


def test_while_loop_and_map() -> None:
    from torch._higher_order_ops.map import map as map_over

    x = torch.arange(3.0, device="cuda")
    mapped = map_over(lambda each, y: each + y, x, torch.ones((), device="cuda"))
    assert kinds(mapped) == ["cuda"]
    assert mapped.tolist() == [1.0, 2.0, 3.0]


def test_mixture_inside_a_branch_is_refused() -> None:
    x = torch.ones(3, device="cuda")
    with pytest.raises(RuntimeError, match="two devices"):
        torch.cond(torch.tensor(True), lambda t: t + torch.ones(3), lambda t: t, (x,))


# ------------------------------------------------------------------ what is saved


def sparse() -> torch.Tensor:
    return torch.sparse_coo_tensor(torch.tensor([[0, 1], [1, 0]]), torch.tensor([1.0, 2.0]), (2, 2), device="cuda")


def compressed() -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.eye(2, device="cuda").to_sparse_csr()


@pytest.mark.parametrize("make", [sparse, compressed, lambda: Wrapped(torch.ones(2, device="cuda"))])
def test_saved_tensor_has_nothing_of_devlint_in_it(make: Callable[[], torch.Tensor]) -> None:
    file = io.BytesIO()
    tensor = make()
    torch.save({"tensor": tensor}, file)
    assert b"devlint" not in file.getvalue().replace(b"devlint/", b"").replace(__name__.encode(), b"")
    assert "_devlint_mark" not in vars(tensor)


@pytest.mark.parametrize("make", [sparse, compressed])
def test_saved_sparse_tensor_is_loaded_where_it_was_or_is_wanted(make: Callable[[], torch.Tensor]) -> None:
    file = io.BytesIO()
    torch.save(make(), file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [torch.load(io.BytesIO(file.getvalue()), map_location=where) for where in (None, "cpu", "cuda:1")]
        pickled = pickle.loads(pickle.dumps(make()))
    assert [str(each.device) for each in (*found, pickled)] == ["cuda:0", "cpu", "cuda:1", "cuda:0"]


class Shifts(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.register_buffer("shift", torch.ones(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.inner(x) + self.shift
        return y


@pytest.mark.parametrize("where", ["cuda", torch.device("cuda", 0), "cuda:1"])
def test_script_module_is_loaded_onto_a_card(where: Any, tmp_path: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.script(Shifts()).save(str(tmp_path / "m.pt"))
        module = torch.jit.load(str(tmp_path / "m.pt"), map_location=where)
    made = module(torch.ones(1, 2, device=where))
    assert {str(tensor.device) for tensor in (made, *module.parameters(), *module.buffers())} == {
        str(torch.empty(0, device=where).device)
    }


# ------------------------------------------------------------------ nested tensors


def test_nested_tensor_is_where_its_parts_are() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = [torch.ones(2, 3, device="cuda"), torch.ones(4, 3, device="cuda")]
        strided = torch.nested.nested_tensor(parts)
        taken = torch.nested.as_nested_tensor(parts)
        jagged = torch.nested.nested_tensor(parts, layout=torch.jagged)
    assert kinds(strided, taken, jagged) == ["cuda"] * 3
    assert kinds(strided.to_padded_tensor(0.0), strided * 2, jagged.values(), (jagged * 2).values()) == ["cuda"] * 4


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_layer_on_a_nested_tensor_computes_as_on_its_parts(layout: torch.layout) -> None:
    parts, layer = [torch.randn(2, 3, device="cuda"), torch.randn(4, 3, device="cuda")], nn.Linear(3, 2).cuda()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = layer(torch.nested.nested_tensor(parts, layout=layout)).to_padded_tensor(0.0)
    assert made.device.type == "cuda"
    assert torch.allclose(made[1], layer(parts[1]), atol=1e-6)
    assert torch.allclose(made[0, :2], layer(parts[0]), atol=1e-6)


def test_jagged_tensor_moves_and_goes_through_a_layer() -> None:
    host = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged)
    moved = host.to("cuda")
    assert kinds(host, moved, moved.offsets(), nn.Linear(3, 2).cuda()(moved)) == ["cpu", "cuda", "cuda", "cuda"]


def test_jagged_tensor_on_a_card_with_a_layer_on_the_host_is_refused() -> None:
    moved = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged, device="cuda")
    with pytest.raises(RuntimeError, match="same device"):
        nn.Linear(3, 2)(moved)


# ------------------------------------------------------------------ kinds and types


def test_conversion_to_the_default_type() -> None:
    assert (torch.ones(2) > 0).type(torch.Tensor).dtype is torch.float32
    assert kinds((torch.ones(2, device="cuda") > 0).type(torch.Tensor)) == ["cpu"]
    assert kinds(torch.ones(2).type(torch.cuda.FloatTensor)) == ["cuda"]


def test_memory_of_a_card_is_shared_and_that_of_the_host_is_not() -> None:
    assert torch.ones(2, device="cuda").is_shared()
    assert not torch.ones(2).is_shared()
    assert torch.ones(2).share_memory_().is_shared()


@pytest.mark.parametrize(("here", "there"), [("cpu", "cuda"), ("cuda", "cpu"), ("cuda:0", "cuda:1")])
def test_parameter_without_elements_is_copied_between_devices(here: str, there: str) -> None:
    into, source = nn.LazyLinear(2, device=here), nn.LazyLinear(2, device=there)
    into.load_state_dict(source.state_dict())
    assert kinds(into.weight) == [torch.device(here).type]


def test_lazy_parameter_is_copied_into_another() -> None:
    first, second = nn.LazyLinear(2).cuda(), nn.LazyLinear(2).cuda()
    second.load_state_dict(first.state_dict())
    with torch.no_grad():
        second.weight.copy_(first.weight)
    first(torch.ones(1, 3, device="cuda"))
    second.load_state_dict(first.state_dict())
    assert kinds(second.weight) == ["cuda"]


# ------------------------------------------------------------------ operators of the program's own


@pytest.fixture(scope="module")
def library() -> Iterator[Any]:
    with torch.library._scoped_library("devlint_tests", "DEF") as library:
        library.define("both(Tensor x) -> Tensor")
        library.impl("both", lambda x: x + 1, "CPU")
        library.impl("both", lambda x: x + torch.full(x.shape, 2.0, device=x.device), "CUDA")
        library.define("any(Tensor x) -> Tensor")
        library.impl("any", lambda x: (x.cpu() * 2).to(x.device) + x, "CompositeExplicitAutograd")
        yield library


def test_operator_with_a_kernel_for_cards_alone() -> None:
    @torch.library.custom_op("devlint_tests::alone", mutates_args=(), device_types="cuda")  # type: ignore[untyped-decorator]
    def alone(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    made = alone(torch.ones(2, device="cuda"))
    assert kinds(made) == ["cuda"]
    assert made.tolist() == [3.0, 3.0]
    with pytest.raises(NotImplementedError):
        alone(torch.ones(2))


def test_operator_with_two_kernels_runs_the_one_of_its_device(library: Any) -> None:
    both = torch.ops.devlint_tests.both
    assert both(torch.zeros(2)).tolist() == [1.0, 1.0]
    assert both(torch.zeros(2, device="cuda")).tolist() == [2.0, 2.0]


def test_kernel_in_python_sees_where_its_tensors_are(library: Any) -> None:
    made = torch.ops.devlint_tests.any(torch.ones(2, device="cuda:1"))
    assert str(made.device) == "cuda:1"
    assert made.tolist() == [3.0, 3.0]


def test_mixture_inside_a_kernel_in_python_is_refused() -> None:
    @torch.library.custom_op("devlint_tests::mixes", mutates_args=())  # type: ignore[untyped-decorator]
    def mixes(x: torch.Tensor) -> torch.Tensor:
        return x + torch.ones(2)

    assert mixes(torch.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="two devices"):
        mixes(torch.ones(2, device="cuda"))

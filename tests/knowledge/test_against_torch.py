"""The data against the torch that is installed: names, keywords, members and the calls that need a guard."""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from devlint import knowledge
from devlint.facts.interpreter.torch_functions import NUMBERS
from devlint.knowledge import Version

torch = pytest.importorskip("torch")

# What the files bind and a CPU build of torch 2.13 lacks.
DECLARED_IN_STUBS_ONLY = """
    AliasInfo BatchNormBackend CONV_BN_FUSION CapturedTraceback ClassDef ConvBackend Decl Def FUSE_ADD_RELU GreenContext
    HOIST_CONV_PACKED_PARAMS INSERT_FOLD_PREPACK_OPS IValue Ident JitType Module REMOVE_DROPOUT ResolutionCallback
    SourceRange Stack TensorBase TreeView VULKAN_AUTOMATIC_GPU_TRANSFER gather_traceback get_num_thread
    symbolize_tracebacks unique_dim
"""
DELETED_AFTER_USE = "register_after_fork typing_extensions csan"
IN_OTHER_BUILDS = """
    cuda.Path cuda.amdsmi cuda.ctypes cuda.pynvml distributed.ProcessGroupMPI distributed.ProcessGroupNCCL
    distributed.ProcessGroupUCC distributed.ProcessGroupXCCL compiler.TYPE_CHECKING jit.Any
"""
ABSENT = {f"torch.{n}" for n in f"{DECLARED_IN_STUBS_ONLY} {DELETED_AFTER_USE} {IN_OTHER_BUILDS}".split()}


@pytest.fixture(scope="module")
def version() -> Version:
    major, minor = torch.__version__.split(".")[:2]
    found = (int(major), int(minor))
    if found not in knowledge.VERSIONS:
        pytest.skip(f"torch {torch.__version__} is not among the minors the data was generated from")
    return found


def imported(name: str) -> ModuleType | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(name)
        except Exception:
            return None


def resolved(qualname: str) -> Any:
    namespace, _, name = qualname.rpartition(".")
    module = imported(namespace)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return None if module is None else getattr(module, name, None)


def test_parameters_that_are_numbers_are_so_in_every_operator() -> None:
    plain = {"number", "float", "int", "Optional[number]", "Optional[float]", "Optional[int]"}
    schemas = [s for s in torch._C._jit_get_all_schemas() if s.name.startswith("aten::") and "_" not in s.name[:7]]
    tensors = {
        (schema.name, argument.name)
        for schema in schemas
        for argument in schema.arguments
        if argument.name in NUMBERS and str(argument.type) not in plain
    }
    # a tensor of one value, which is read; one that is no number there
    read = {
        "aten::fill",
        "aten::fill_",
        "aten::index_fill",
        "aten::index_fill_",
        "aten::masked_fill",
        "aten::masked_fill_",
    }
    assert {name for name, _ in tensors} <= read | {"aten::scaled_dot_product_attention", "aten::hash"}, tensors


CORE = [
    "torch",
    "torch.nn",
    "torch.nn.functional",
    "torch.nn.init",
    "torch.nn.utils",
    "torch.nn.utils.rnn",
    "torch.nn.parallel",
    "torch.optim",
    "torch.optim.lr_scheduler",
    "torch.optim.swa_utils",
    "torch.cuda",
    "torch.cuda.amp",
    "torch.cuda.nvtx",
    "torch.accelerator",
    "torch.amp",
    "torch.mps",
    "torch.xpu",
    "torch.mtia",
    "torch.cpu",
    "torch.fft",
    "torch.linalg",
    "torch.special",
    "torch.sparse",
    "torch.nested",
    "torch.autograd",
    "torch.autograd.functional",
    "torch.distributions",
    "torch.utils.data",
    "torch.utils.benchmark",
    "torch.utils.checkpoint",
    "torch.backends",
    "torch.backends.cudnn",
    "torch.backends.cuda",
    "torch.backends.mps",
    "torch.jit",
    "torch.hub",
    "torch.random",
    "torch.func",
    "torch.distributed",
    "torch.profiler",
    "torch.signal.windows",
    "torch.compiler",
    "torch.multiprocessing",
    "torch.serialization",
]


@pytest.mark.parametrize("namespace", CORE)
def test_no_real_name_is_called_missing(namespace: str, version: Version) -> None:
    """A false "torch has no such name" would be a false finding."""
    module = imported(namespace)
    assert module is not None
    called_missing = {
        n for n in dir(module) if not n.startswith("_") and knowledge.is_public_name(namespace, n) is False
    }
    assert called_missing == set()


@pytest.mark.parametrize("namespace", CORE)
def test_no_real_name_is_dated_out_of_the_installed_version(namespace: str, version: Version) -> None:
    module = imported(namespace)
    assert module is not None
    known = knowledge.namespace_names(namespace)
    wrong = {n for n in dir(module) if n in known and not knowledge.exists(f"{namespace}.{n}", version)}
    assert wrong == set()


def test_listed_functions_exist_and_can_be_called(version: Version) -> None:
    optional = ("torch.utils.tensorboard", "torch.distributed.", "torch.utils.benchmark.utils.compile")
    absent = [
        name
        for name in knowledge.functions()
        if knowledge.exists(name, version) and not name.startswith(optional) and not callable(resolved(name))
    ]
    # torch/return_types.py registers itself; the others are in the stub and not in the CPU build.
    assert set(absent) <= {
        "torch.return_types.return_types",
        "torch.register_after_fork",
        "torch._functionalize_apply_view_metas",
        "torch.get_num_thread",
        "torch.gather_traceback",
        "torch.symbolize_tracebacks",
        "torch.unique_dim",
    }


@pytest.mark.parametrize("namespace", [n for n in CORE if knowledge.known_namespace(n)])
def test_listed_names_exist(namespace: str, version: Version) -> None:
    if version != (2, 13):
        pytest.skip("the exceptions are those of 2.13")
    module = imported(namespace)
    listed = {n for n in knowledge.namespace_names(namespace) if knowledge.exists(f"{namespace}.{n}", version)}
    absent = {f"{namespace}.{n}" for n in listed if not _has(module, namespace, n)}
    assert absent <= ABSENT


def _has(module: ModuleType | None, namespace: str, name: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return hasattr(module, name) or imported(f"{namespace}.{name}") is not None


def factories() -> Iterator[str]:
    for name in knowledge.functions():
        record = knowledge.function(name)
        if record is None or name.count(".") != 1 or name.startswith("torch._"):
            continue
        if record.result == "tensor" and record.device_from == "argument" and record.removed is None:
            yield name


@pytest.mark.parametrize("name", sorted(factories()))
def test_a_factory_takes_the_device_keyword(name: str, version: Version) -> None:
    """A call with `device=` must not fail on that name; other arguments may be wrong."""
    if not knowledge.exists(name, version):
        pytest.skip(f"not in torch {version}")
    arguments: dict[str, tuple[Any, ...]] = {
        "torch.full": ((1,), 0.0),
        "torch.empty_strided": ((1,), (1,)),
        "torch.empty_permuted": ((1,), (0,)),
        "torch.randint": (2, (1,)),
        "torch.linspace": (0, 1, 2),
        "torch.logspace": (0, 1, 2),
        "torch.range": (0, 1),
        "torch.tril_indices": (2, 2),
        "torch.triu_indices": (2, 2),
        "torch.from_dlpack": (torch.zeros(1),),
        "torch.from_file": ("absent-file",),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = resolved(name)(*arguments.get(name, (2,)), device="cpu")
        except (TypeError, RuntimeError) as error:
            assert "device" not in str(error), error
        else:
            assert made.device.type == "cpu"


def test_a_function_without_the_device_keyword_refuses_it(version: Version) -> None:
    for name in ("torch.add", "torch.cat", "torch.from_numpy", "torch.stack"):
        record = knowledge.function(name)
        assert record is not None
        assert "device" not in record.accepts
        with pytest.raises(TypeError):
            resolved(name)(torch.zeros(1), device="cpu")


def test_default_device_constructors_are_the_ones_torch_lists(version: Version) -> None:
    from torch.utils._device import _device_constructors

    real = {f.__name__ for f in _device_constructors()}
    for name in knowledge.functions():
        record = knowledge.function(name)
        if name.rpartition(".")[2] in real and name.count(".") == 1 and record is not None:
            assert record.device_from in ("argument", "like"), name
            assert not record.ignores_default, name


FAMILIES = {
    "Tensor": "torch.Tensor",
    "Module": "torch.nn.Module",
    "Optimizer": "torch.optim.Optimizer",
    "LRScheduler": "torch.optim.lr_scheduler.LRScheduler",
    "DataLoader": "torch.utils.data.DataLoader",
    "Dataset": "torch.utils.data.Dataset",
    "Sampler": "torch.utils.data.Sampler",
    "Generator": "torch.Generator",
    "Stream": "torch.Stream",
    "Event": "torch.Event",
    "GradScaler": "torch.amp.GradScaler",
    "PackedSequence": "torch.nn.utils.rnn.PackedSequence",
    "Distribution": "torch.distributions.Distribution",
    "Transform": "torch.distributions.Transform",
    "device": "torch.device",
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_public_member_of_a_family_is_known(family: str, version: Version) -> None:
    record = knowledge.cls(FAMILIES[family])
    assert record is not None
    real = {n for n in dir(resolved(FAMILIES[family])) if not n.startswith("_")}
    assert real - record.methods - record.attributes == set()


@pytest.mark.parametrize("family", FAMILIES)
def test_every_listed_method_of_a_family_exists(family: str, version: Version) -> None:
    real = set(dir(resolved(FAMILIES[family])))
    listed = set()
    for name in knowledge.methods(family):
        record = knowledge.method(family, name)
        assert record is not None
        alive = (record.since or version) <= version and (record.removed is None or version < record.removed)
        if alive and not name.startswith("_"):
            listed.add(name)
    # The family also covers the backend's own classes and its other root.
    other = {"Stream": "torch.cuda.Stream", "Event": "torch.cuda.Event"}.get(family)
    if family == "LRScheduler":
        other = "torch.optim.lr_scheduler.ReduceLROnPlateau"
    real |= set(dir(resolved(other))) if other else set()
    # torch.cuda.Stream.priority_range comes from a compiled base that a CPU build replaces by a dummy.
    assert listed - real - {"priority_range"} == set()


def module_classes() -> list[str]:
    names = knowledge.namespace_names("torch.nn")
    return sorted(n for n in names if (c := knowledge.cls(f"torch.nn.{n}")) is not None and c.family == "Module")


@pytest.mark.parametrize("name", module_classes())
def test_a_module_class_takes_the_device_its_signature_says(name: str, version: Version) -> None:
    record = knowledge.cls(f"torch.nn.{name}")
    real = getattr(torch.nn, name, None)
    if record is None or real is None:
        pytest.skip(f"not in torch {version}")
    parameters = inspect.signature(real.__init__).parameters
    if "kwargs" in parameters and "device" not in parameters:
        pytest.skip("hidden behind **kwargs; torch/nn/modules overloads say it")
    assert record.takes_device == ("device" in parameters)


def test_methods_of_every_core_class_are_known(version: Version) -> None:
    lacking: dict[str, list[str]] = {}
    for namespace in ("torch.nn", "torch.optim", "torch.optim.lr_scheduler", "torch.utils.data", "torch.distributions"):
        for name in knowledge.namespace_names(namespace):
            record = knowledge.cls(f"{namespace}.{name}")
            real = resolved(f"{namespace}.{name}")
            if record is None or not inspect.isclass(real):
                continue
            missing = {n for n in dir(real) if not n.startswith("_")} - record.methods - record.attributes
            if missing:
                lacking[f"{namespace}.{name}"] = sorted(missing)
    assert lacking == {}


@pytest.mark.skipif(torch.accelerator.is_available(), reason="needs a machine without an accelerator")
@pytest.mark.parametrize("name", ["synchronize", "empty_cache", "memory_allocated", "current_stream"])
def test_a_guarded_call_raises_without_an_accelerator(name: str, version: Version) -> None:
    record = knowledge.function(f"torch.accelerator.{name}")
    assert record is not None
    assert record.guard
    with pytest.raises((RuntimeError, AssertionError)):
        getattr(torch.accelerator, name)()


@pytest.mark.skipif(torch.version.cuda is not None, reason="needs a build without CUDA")
@pytest.mark.parametrize("name", ["empty_cache", "memory_allocated", "is_available", "device_count", "manual_seed_all"])
def test_an_unguarded_call_of_torch_cuda_works_without_cuda(name: str, version: Version) -> None:
    record = knowledge.function(f"torch.cuda.{name}")
    assert record is not None
    assert not record.guard
    getattr(torch.cuda, name)(*((0,) if name == "manual_seed_all" else ()))

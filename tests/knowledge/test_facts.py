"""Single facts of the torch data, each with the file or page of torch that states it."""

from __future__ import annotations

import pytest

from devlint import knowledge
from devlint.knowledge import Function


def known(qualname: str) -> Function:
    record = knowledge.function(qualname)
    assert record is not None, qualname
    return record


def known_method(family: str, name: str) -> Function:
    record = knowledge.method(family, name)
    assert record is not None, f"{family}.{name}"
    return record


class TestResults:
    def test_zeros_gives_a_tensor_on_the_device_argument(self) -> None:
        """torch/_C/_VariableFunctions.pyi"""
        zeros = known("torch.zeros")
        assert (zeros.result, zeros.device_from) == ("tensor", "argument")
        assert zeros.accepts == {"device", "dtype", "out", "pin_memory"}

    def test_zeros_like_follows_its_argument_unless_told(self) -> None:
        """torch/_C/_VariableFunctions.pyi; torch/utils/_device.py leaves it out of the default-device constructors"""
        assert known("torch.zeros_like").device_from == "like"

    def test_from_numpy_is_in_host_memory(self) -> None:
        """docstring of torch.from_numpy: shares memory with the array"""
        assert known("torch.from_numpy").device_from == "cpu"

    def test_the_legacy_tensor_constructor_is_in_host_memory(self) -> None:
        """torch/csrc/tensor/python_tensor.cpp"""
        assert known("torch.FloatTensor").device_from == "cpu"
        assert known("torch.Tensor").device_from == "cpu"

    def test_max_without_dim_is_one_tensor(self) -> None:
        """torch/_C/_VariableFunctions.pyi: overloads of max"""
        assert known("torch.max").result_of(1, ()) == "tensor"

    def test_max_with_dim_is_values_and_indices(self) -> None:
        """torch/_C/_VariableFunctions.pyi: overloads of max"""
        assert known("torch.max").result_of(1, {"dim"}) == "tensors"
        assert known_method("Tensor", "max").result_of(1, (), numbers={0}) == "tensors"

    def test_max_with_an_unknown_second_argument_may_be_either(self) -> None:
        """torch/_C/_VariableFunctions.pyi: max(input, other) and max(input, dim)"""
        assert known_method("Tensor", "max").result_of(1, ()) == "unknown"

    def test_where_with_one_argument_gives_index_tensors(self) -> None:
        """docstring of torch.where"""
        assert known("torch.where").result_of(1, ()) == "tensors"
        assert known("torch.where").result_of(3, ()) == "tensor"

    def test_numel_is_a_number(self) -> None:
        """torch/_C/__init__.pyi"""
        assert known_method("Tensor", "numel").result == "number"

    def test_in_place_methods_return_the_tensor_itself(self) -> None:
        """torch/_C/__init__.pyi"""
        add = known_method("Tensor", "add_")
        assert (add.result, add.inplace) == ("same", True)

    def test_module_to_returns_the_module(self) -> None:
        """torch/nn/modules/module.py"""
        assert known_method("Module", "to").result == "same"

    def test_tensor_to_returns_another_tensor(self) -> None:
        """docstring of Tensor.to"""
        to = known_method("Tensor", "to")
        assert (to.result, to.device_from, to.mixing) == ("tensor", "like", "copy")

    def test_shape_is_a_size_and_grad_a_tensor(self) -> None:
        """torch/_C/__init__.pyi, class TensorBase"""
        assert knowledge.attribute("Tensor", "shape") == "size"
        assert knowledge.attribute("Tensor", "grad") == "tensor"


class TestMixing:
    @pytest.mark.parametrize(
        ("name", "rule"),
        [
            ("torch.add", "scalar"),  # native_functions.yaml: NoCheck, TensorIterator
            ("torch.cat", "exact"),  # native_functions.yaml: checked
            ("torch.clamp", "exact"),  # native_functions.yaml: clamp.Tensor is checked
            ("torch.matmul", "exact"),  # composite of mm, bmm, dot
            ("torch.nn.functional.linear", "exact"),  # composite of addmm
            ("torch.nn.functional.cross_entropy", "exact"),  # composite of nll_loss
            ("torch.gather", "exact"),  # native_functions.yaml: checked
            ("torch.maximum", "scalar"),  # native_functions.yaml: NoCheck, TensorIterator
        ],
    )
    def test_the_device_check_of(self, name: str, rule: str) -> None:
        assert known(name).mixing == rule

    def test_indexing_takes_indices_from_the_host(self) -> None:
        """include/ATen/native/IndexingUtils.h"""
        assert known_method("Tensor", "__getitem__").mixing == "index"

    def test_operators_take_the_rule_of_their_function(self) -> None:
        """torch/_C/__init__.pyi: `__add__` is add, `__matmul__` is matmul"""
        assert known_method("Tensor", "__add__").mixing == "scalar"
        assert known_method("Tensor", "__matmul__").mixing == "exact"


class TestWaiting:
    @pytest.mark.parametrize("name", ["item", "tolist", "cpu", "nonzero", "__bool__", "__float__", "numpy"])
    def test_tensor_methods_that_always_wait(self, name: str) -> None:
        """native_functions.yaml, tags data_dependent_output and dynamic_output_shape; docstrings"""
        assert known_method("Tensor", name).sync == "always"

    @pytest.mark.parametrize("name", ["size", "view", "mul", "sum", "detach", "numel"])
    def test_tensor_methods_that_never_wait(self, name: str) -> None:
        """native_functions.yaml: no such tag"""
        assert known_method("Tensor", name).sync == "never"

    def test_a_move_waits_or_not(self) -> None:
        """docstring of Tensor.to: non_blocking"""
        assert known_method("Tensor", "to").sync == "maybe"

    def test_linalg_inv_waits_for_its_error_check(self) -> None:
        """docstring of torch.linalg.inv: the note on synchronisation"""
        assert known("torch.linalg.inv").sync == "always"

    def test_linalg_inv_ex_waits_only_with_check_errors(self) -> None:
        """docstring of torch.linalg.inv_ex"""
        assert known("torch.linalg.inv_ex").sync == "maybe"


class TestZeroDim:
    def test_a_sum_over_everything_is_one_value(self) -> None:
        """docstring of torch.sum"""
        assert known("torch.sum").reduces_to_scalar(1, ()) is True
        assert known_method("Tensor", "sum").reduces_to_scalar(0, ()) is True

    def test_a_sum_over_a_dimension_depends_on_the_shape(self) -> None:
        """docstring of torch.sum"""
        assert known("torch.sum").reduces_to_scalar(2, ()) is None
        assert known("torch.sum").reduces_to_scalar(1, {"dim"}) is None

    def test_a_norm_with_its_order_alone_is_one_value(self) -> None:
        """torch/_tensor.py, Tensor.norm: the first parameter is p"""
        assert known_method("Tensor", "norm").reduces_to_scalar(1, ()) is True

    def test_a_loss_is_one_value_unless_told_otherwise(self) -> None:
        """torch/nn/functional.py: reduction defaults to "mean" """
        loss = known("torch.nn.functional.cross_entropy")
        assert loss.reduces_to_scalar(2, ()) is True
        assert loss.reduces_to_scalar(2, {"reduction"}, "sum") is True
        assert loss.reduces_to_scalar(2, {"reduction"}, "none") is None

    def test_a_range_has_one_dimension(self) -> None:
        """docstring of torch.arange"""
        assert known("torch.arange").reduces_to_scalar(1, ()) is False

    def test_elementwise_results_are_0_dim_only_with_their_inputs(self) -> None:
        """native_functions.yaml, tag pointwise"""
        assert known("torch.exp").elementwise
        assert known_method("Tensor", "__mul__").elementwise
        assert not known("torch.sum").elementwise


class TestRandom:
    @pytest.mark.parametrize("name", ["torch.rand", "torch.randperm", "torch.bernoulli", "torch.nn.functional.dropout"])
    def test_functions_that_draw(self, name: str) -> None:
        """native_functions.yaml: tag nondeterministic_seeded, or an argument `generator`"""
        assert known(name).random

    def test_zeros_draws_nothing(self) -> None:
        """native_functions.yaml"""
        assert not known("torch.zeros").random

    def test_a_generator_is_on_the_cpu_whatever_the_default(self) -> None:
        """torch/csrc/Generator.cpp"""
        assert known("torch.Generator").ignores_default


class TestVersions:
    @pytest.mark.parametrize(
        ("name", "since"),
        [
            ("torch.accelerator", (2, 6)),
            ("torch.accelerator.is_available", (2, 6)),
            ("torch.accelerator.current_device_index", (2, 6)),
            ("torch.accelerator.device_index", (2, 8)),
            ("torch.accelerator.empty_cache", (2, 9)),
        ],
    )
    def test_first_minor_with(self, name: str, since: tuple[int, int]) -> None:
        """the wheels of 2.2 to 2.15"""
        assert knowledge.exists(name, since)
        assert not knowledge.exists(name, (since[0], since[1] - 1))

    def test_a_keyword_may_be_younger_than_its_function(self) -> None:
        """torch/accelerator/__init__.py of 2.6 and 2.7"""
        assert ("check_available", (2, 7)) in known("torch.accelerator.current_accelerator").keyword_since

    def test_cuda_amp_is_deprecated_since_2_4(self) -> None:
        """torch/cuda/amp/autocast_mode.py: @deprecated"""
        autocast = knowledge.cls("torch.cuda.amp.autocast")
        assert autocast is not None
        assert (autocast.deprecated, autocast.replacement) == ((2, 4), "torch.amp.autocast")

    def test_a_name_of_the_oldest_minor_has_no_since(self) -> None:
        assert known("torch.zeros").since is None


class TestMigration:
    def test_synchronize_needs_a_guard_and_has_a_replacement(self) -> None:
        """called on a CPU-only build: AssertionError"""
        sync = known("torch.cuda.synchronize")
        assert (sync.guard, sync.fix, sync.replacement) == (True, "G", "torch.accelerator.synchronize")

    def test_empty_cache_needs_a_guard_only_after_the_replacement(self) -> None:
        """called on a CPU-only build: torch.cuda.empty_cache does nothing, torch.accelerator.empty_cache raises"""
        assert not known("torch.cuda.empty_cache").guard
        assert known("torch.accelerator.empty_cache").guard

    def test_device_capability_must_not_be_renamed(self) -> None:
        """torch.accelerator.get_device_capability returns dtypes, torch.cuda's a pair of numbers"""
        assert known("torch.cuda.get_device_capability").fix == "N"

    def test_every_replacement_is_a_name_of_torch(self) -> None:
        for name in knowledge.functions():
            target = known(name).replacement
            assert target is None or knowledge.lifetime(target) is not None, f"{name} -> {target}"


class TestClasses:
    def test_an_optimizer_cannot_be_moved(self) -> None:
        """torch/optim/optimizer.py"""
        adamw = knowledge.cls("torch.optim.AdamW")
        assert adamw is not None
        assert adamw.family == "Optimizer"
        assert "to" not in adamw.methods | adamw.attributes
        assert {"step", "zero_grad"} <= adamw.methods
        assert {"param_groups", "state"} <= adamw.attributes

    def test_a_layer_takes_a_device(self) -> None:
        """torch/nn/modules/linear.py"""
        linear = knowledge.cls("torch.nn.Linear")
        assert linear is not None
        assert linear.family == "Module"
        assert linear.takes_device
        assert {"weight", "bias", "in_features"} <= linear.attributes

    def test_a_loss_module_takes_none(self) -> None:
        """torch/nn/modules/loss.py"""
        loss = knowledge.cls("torch.nn.CrossEntropyLoss")
        assert loss is not None
        assert not loss.takes_device

    def test_a_packed_sequence_moves(self) -> None:
        """torch/nn/utils/rnn.py"""
        packed = knowledge.cls("torch.nn.utils.rnn.PackedSequence")
        assert packed is not None
        assert {"to", "cuda", "cpu"} <= packed.methods
        assert {"data", "batch_sizes"} <= packed.attributes

    def test_a_class_is_found_by_its_defining_module_too(self) -> None:
        """torch/nn/__init__.py re-exports torch.nn.modules"""
        assert knowledge.cls("torch.nn.modules.linear.Linear") == knowledge.cls("torch.nn.Linear")

    @pytest.mark.parametrize(
        ("name", "family"),
        [
            ("torch.nn.Parameter", "Tensor"),
            ("torch.nn.parallel.DistributedDataParallel", "Module"),
            ("torch.optim.lr_scheduler.CosineAnnealingLR", "LRScheduler"),
            ("torch.optim.lr_scheduler.ReduceLROnPlateau", "LRScheduler"),
            ("torch.utils.data.DataLoader", "DataLoader"),
            ("torch.utils.data.TensorDataset", "Dataset"),
            ("torch.utils.data.distributed.DistributedSampler", "Sampler"),
            ("torch.cuda.Stream", "Stream"),
            ("torch.cuda.Event", "Event"),
            ("torch.cuda.amp.GradScaler", "GradScaler"),
            ("torch.amp.autocast", "autocast"),
            ("torch.distributions.Normal", "Distribution"),
            ("torch.device", "device"),
        ],
    )
    def test_the_family_of(self, name: str, family: str) -> None:
        record = knowledge.cls(name)
        assert record is not None
        assert record.family == family

    def test_a_constructor_is_a_function_with_the_kind_of_its_family(self) -> None:
        assert known("torch.optim.SGD").result == "optimizer"
        assert known("torch.nn.Linear").result == "module"
        assert known("torch.utils.data.DataLoader").result == "loader"


class TestNames:
    def test_a_name_torch_lacks(self) -> None:
        assert knowledge.is_public_name("torch", "zeroes") is False
        assert knowledge.is_public_name("torch", "zeros") is True

    def test_a_private_name_is_not_judged(self) -> None:
        assert knowledge.is_public_name("torch", "_nope") is None

    def test_an_unknown_namespace_is_not_judged(self) -> None:
        assert knowledge.is_public_name("torch.ops.mylib", "anything") is None
        assert not knowledge.known_namespace("torch.ops.mylib")

    def test_a_module_that_makes_names_up_is_not_judged(self) -> None:
        """torch/multiprocessing/__init__.py: `from multiprocessing import *`"""
        assert knowledge.is_public_name("torch.multiprocessing", "anything") is None

    def test_the_nearest_names(self) -> None:
        assert knowledge.nearest("torch.zeroes")[0] == "torch.zeros"
        assert "torch.cuda.is_available" in knowledge.nearest("torch.cuda.is_avaliable")

    def test_deprecated_attributes_of_torch_exist(self) -> None:
        """torch/__init__.py, _deprecated_attrs"""
        assert knowledge.is_public_name("torch", "has_cuda") is True


class TestOtherLibraries:
    def test_numpy_asarray_reads_host_memory(self) -> None:
        """numpy calls Tensor.__array__, which refuses other devices"""
        asarray = known("numpy.asarray")
        assert (asarray.host_only, asarray.result) == (True, "ndarray")

    def test_numpy_zeros_takes_no_tensor(self) -> None:
        """numpy documentation"""
        assert not known("numpy.zeros").host_only

    def test_plotting_reads_host_memory(self) -> None:
        """matplotlib documentation: array-like"""
        assert known("matplotlib.pyplot.plot").host_only

    def test_save_image_copies_by_itself(self) -> None:
        """torchvision/utils.py"""
        save = known("torchvision.utils.save_image")
        assert not save.host_only
        assert save.sync == "always"

    def test_accelerate_places_what_it_prepares(self) -> None:
        """accelerate documentation"""
        assert known("accelerate.Accelerator.prepare").moves

    def test_a_lightning_module_knows_its_device(self) -> None:
        """lightning/fabric/utilities/device_dtype_mixin.py"""
        module = knowledge.cls("pytorch_lightning.LightningModule")
        assert module is not None
        assert module.family == "Module"
        assert "device" in module.attributes

    def test_an_unknown_library_says_nothing(self) -> None:
        assert knowledge.function("mylib.to_device") is None
        assert knowledge.cls("mylib.Model") is None


def test_every_annotated_fact_names_its_source() -> None:
    from devlint.knowledge import annotated

    assert all(source and fields for source, fields, _ in annotated.GROUPS)


def test_every_annotated_name_is_one_that_torch_has() -> None:
    """A misspelt annotation would be silently without effect."""
    from devlint.knowledge import annotated

    strange = []
    for key in annotated.patches():
        family, _, name = key.rpartition(":")
        known_there = name in knowledge.methods(family) if family else knowledge.lifetime(key) is not None
        if not known_there:
            strange.append(key)
    assert strange == []

"""The check table: how entries of native_functions.yaml are read, and what the installed torch's says."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("torch")

from devlint.runtime.simulator.checktable import Check, CheckClass, check_table, parse_checks

pytestmark = pytest.mark.runtime

ENTRIES = """
- func: addmm.out(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU: addmm_out_cpu
    CUDA: addmm_out_cuda

- func: addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1) -> Tensor
  structured_delegate: addmm.out
  variants: function, method

- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  device_check: NoCheck   # TensorIterator
  structured_delegate: add.out
  dispatch:
    SparseCPU, SparseCUDA: add_sparse
    CPU, CUDA: add

- func: view(Tensor(a) self, SymInt[] size) -> Tensor(a)
  device_check: NoCheck
  dispatch:
    CPU, CUDA, Meta: view

- func: bucketize.Tensor(Tensor input, Tensor boundaries, *, bool out_int32=False, Tensor? sorter=None) -> Tensor
  dispatch:
    CPU: bucketize_cpu
    CUDA: bucketize_cuda

- func: cat(Tensor[] tensors, int dim=0) -> Tensor
  dispatch:
    CPU, CUDA: cat

- func: zeros(SymInt[] size, *, Device? device=None) -> Tensor
  dispatch:
    CompositeExplicitAutograd: zeros

- func: matmul(Tensor self, Tensor other) -> Tensor
  variants: function, method
"""


@pytest.mark.parametrize(
    ("name", "check"),
    [
        (
            "addmm.out",
            Check(CheckClass.EXACT, "wrapper_CUDA_addmm_out_out", ("out", "self", "mat1", "mat2")),
        ),
        ("addmm.default", Check(CheckClass.EXACT, "wrapper_CUDA_addmm", ("self", "mat1", "mat2"))),
        ("add.Tensor", Check(CheckClass.ITERATOR)),
        ("view.default", Check(CheckClass.NONE)),
        ("bucketize.Tensor", Check(CheckClass.EXACT, "wrapper_CUDA_Tensor_bucketize", ("input", "boundaries"))),
        ("cat.default", Check(CheckClass.EXACT, "wrapper_CUDA__cat", ("tensors",))),
        ("zeros.default", Check(CheckClass.EXPLICIT)),
        ("matmul.default", Check(CheckClass.IMPLICIT)),
    ],
)
def test_entry(name: str, check: Check) -> None:
    assert parse_checks(ENTRIES)[name] == check


def test_text_without_entries_gives_no_checks() -> None:
    assert parse_checks("# nothing\n") == {}


def test_installed_torch_has_all_classes() -> None:
    counts = Counter(check.kind for check in check_table().values())
    assert counts[CheckClass.EXACT] > 500
    assert counts[CheckClass.ITERATOR] > 250
    assert counts[CheckClass.EXPLICIT] > 300
    assert counts[CheckClass.NONE] > 100


@pytest.mark.parametrize("name", ["clamp.Tensor", "nextafter.default", "bucketize.Tensor", "_cdist_forward.default"])
def test_exact_operators_whose_siblings_are_not(name: str) -> None:
    assert check_table()[name].kind is CheckClass.EXACT


def test_every_exact_check_names_its_method_and_arguments() -> None:
    exact = [check for check in check_table().values() if check.kind is CheckClass.EXACT]
    assert all(check.method.startswith("wrapper_CUDA_") for check in exact)
    # Random factories in place take no other tensor, yet check the one they fill.
    assert sum(not check.arguments for check in exact) < 25

"""The generator on small made-up wheels, and the shape of the data it wrote for the real ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from devlint import knowledge
from devlint.dev import knowledge as generator
from devlint.dev.torchapi import schemas, signatures
from devlint.dev.torchapi.source import Wheel
from devlint.knowledge import query
from devlint.knowledge.records import Function, decode_function, encode_function, patch_function

OPERATORS = """\
- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  device_check: NoCheck   # TensorIterator
  structured_delegate: add.out
  variants: function, method
  tags: [core, pointwise]

- func: add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
  device_check: NoCheck   # TensorIterator
  dispatch:
    CPU, CUDA: add_out

- func: mm(Tensor self, Tensor mat2) -> Tensor
  variants: function, method
  dispatch:
    CPU: mm_cpu
    CUDA: mm_cuda

- func: equal(Tensor self, Tensor other) -> bool
  tags: data_dependent_output
  dispatch:
    CPU, CUDA: equal

- func: matmul(Tensor self, Tensor other) -> Tensor
  variants: function, method
"""
FUNCTIONS = """\
from torch import Tensor
def add(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1, out: Tensor | None = None) -> Tensor: ...
def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def equal(input: Tensor, other: Tensor) -> _bool: ...
def zeros(size: Sequence[_int], *, dtype: _dtype | None = None, device: DeviceLikeType | None = None) -> Tensor: ...
"""


def wheel(folder: Path, minor: int, extra: str = "") -> Path:
    """An unpacked wheel with the few files that the generator reads."""
    files = {
        "torch/__init__.py": f"__all__ = ['zeros']\nfrom torch import optim as optim\n{extra}",
        "torch/version.py": f"__version__ = '2.{minor}.0'\n",
        "torch/optim/__init__.py": "from torch.optim.sgd import SGD as SGD\n__all__ = ['SGD']\n",
        "torch/optim/sgd.py": "class SGD:\n    def __init__(self, params, lr=0.1):\n        self.state = {}\n",
        "torch/_C/__init__.pyi": "class Generator:\n    device: _device\n    def seed(self) -> _int: ...\n",
        "torch/_C/_VariableFunctions.pyi": FUNCTIONS,
        schemas.YAML: OPERATORS,
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


class TestSchemas:
    @pytest.mark.parametrize(
        ("operator", "check"),
        [("add", "T"), ("mm", "E"), ("matmul", "I")],
    )
    def test_the_class_of_the_device_check(self, tmp_path: Path, operator: str, check: str) -> None:
        found = schemas.read(wheel(tmp_path, 6))
        assert found[operator][0].check == check

    def test_a_missing_table_is_an_error_that_names_the_file(self, tmp_path: Path) -> None:
        with pytest.raises(OSError, match=r"native_functions\.yaml"):
            schemas.read(tmp_path)


class TestSignatures:
    def test_a_position_is_a_tensor_only_if_all_overloads_say_so(self) -> None:
        import ast

        text = "def f(input: Tensor, other: Tensor) -> Tensor: ...\ndef f(input: Tensor, other: Number) -> Tensor: ..."
        shape = signatures.fold(signatures.of_nodes(ast.parse(text).body))
        assert shape.tensor_params == (0,)

    def test_overloads_with_a_required_dim_may_return_something_else(self) -> None:
        import ast

        text = (
            "def max(input: Tensor) -> Tensor: ...\n"
            "def max(input: Tensor, dim: _int, keepdim: _bool = False) -> torch.return_types.max: ..."
        )
        shape = signatures.fold(signatures.of_nodes(ast.parse(text).body))
        assert (shape.result, shape.with_dim) == ("tensor", "tensors")

    def test_results_that_disagree_are_unknown(self) -> None:
        import ast

        text = "def f(a: int) -> Tensor: ...\ndef f(a: str) -> str: ..."
        assert signatures.fold(signatures.of_nodes(ast.parse(text).body)).result == "unknown"


class TestNames:
    def test_names_under_type_checking_do_not_exist(self, tmp_path: Path) -> None:
        extra = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import ghost\nelse:\n    real = 1\n"
        names = Wheel(wheel(tmp_path, 6, extra)).names("torch")
        assert "real" in names
        assert "ghost" not in names

    def test_a_reexport_leads_to_its_definition(self, tmp_path: Path) -> None:
        found = Wheel(wheel(tmp_path, 6)).resolve("torch.optim", "SGD")
        assert found is not None
        assert found.qualname == "torch.optim.sgd.SGD"

    def test_a_folder_without_torch_is_an_error_that_names_it(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match="unpacked"):
            Wheel(tmp_path)


class TestVersions:
    def test_a_name_that_comes_later_says_since(self, tmp_path: Path) -> None:
        old, new = wheel(tmp_path / "a", 6), wheel(tmp_path / "b", 7, "def fresh(x): ...\n")
        data = json.loads(generator.generate([new, old]))
        assert data["versions"] == ["2.6", "2.7"]
        assert "fresh+2.7" in data["names"]["torch"].split()
        assert "+=2.7" in data["functions"]["torch.fresh"]

    def test_a_name_that_goes_says_removed(self, tmp_path: Path) -> None:
        old, new = wheel(tmp_path / "a", 6, "def stale(x): ...\n"), wheel(tmp_path / "b", 7)
        data = json.loads(generator.generate([old, new]))
        assert "stale-2.7" in data["names"]["torch"].split()

    def test_a_deprecation_starts_where_the_unbroken_run_starts(self) -> None:
        versions = [(2, 4), (2, 5), (2, 6), (2, 7)]
        assert generator.deprecated_from([True, False, True, True], versions) == (2, 6)
        assert generator.deprecated_from([True, True, None, None], versions) == (2, 4)
        assert generator.deprecated_from([True, False, False, False], versions) is None

    def test_a_gap_is_not_a_removal(self) -> None:
        assert generator.span([True, False, True], [(2, 4), (2, 5), (2, 6)]) == (None, None)

    def test_two_wheels_of_one_minor_are_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="same torch minor"):
            generator.generate([wheel(tmp_path / "a", 6), wheel(tmp_path / "b", 6)])


def test_generation_does_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    source = "def one(x): ...\ndef two(x): ...\nclass Three:\n    def a(self): ...\n    def b(self): ...\n"
    folder = wheel(tmp_path, 6, source)
    texts = []
    for seed in ("1", "2"):
        target = tmp_path / f"out{seed}.json"
        subprocess.run(
            [sys.executable, "-m", "devlint.dev.knowledge", str(folder), "-o", str(target)],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
            timeout=60,
        )
        texts.append(target.read_text(encoding="utf-8"))
    assert texts[0] == texts[1]


def test_the_command_fails_with_the_folder_that_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert generator.main([str(tmp_path / "absent")]) == 2
    assert "absent" in capsys.readouterr().err


class TestData:
    def test_the_file_is_written_as_the_generator_writes(self) -> None:
        text = Path(query.DATA).read_text(encoding="utf-8")
        assert generator.dump(json.loads(text)) == text

    def test_the_versions_are_those_of_the_file(self) -> None:
        data = json.loads(Path(query.DATA).read_text(encoding="utf-8"))
        assert tuple(knowledge.parse_version(v) for v in data["versions"]) == knowledge.VERSIONS

    def test_every_record_decodes_and_encodes_to_the_same_text(self) -> None:
        data = json.loads(Path(query.DATA).read_text(encoding="utf-8"))
        for name, text in data["functions"].items():
            assert encode_function(decode_function(name, text)) == text

    def test_every_alias_leads_to_a_record(self) -> None:
        data = json.loads(Path(query.DATA).read_text(encoding="utf-8"))
        for alias in data["aliases"]:
            assert knowledge.function(alias) is not None or knowledge.cls(alias) is not None, alias


def test_a_patch_adds_flags_and_replaces_the_rest() -> None:
    record = Function("torch.f", "tensor", "first_tensor", random=True)
    patched = patch_function(record, "f=g|m=e", "a page")
    assert (patched.random, patched.guard, patched.mixing, patched.note) == (True, True, "exact", "a page")


def test_asking_does_not_import_torch() -> None:
    code = (
        "import sys; import devlint.knowledge as k; k.function('torch.zeros'); k.cls('torch.nn.Linear'); "
        "k.function('numpy.asarray'); sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_importing_does_not_read_the_data() -> None:
    code = "import devlint.knowledge as k, sys; sys.exit(k.query._data.cache_info().currsize)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0

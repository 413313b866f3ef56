"""The data about libraries: its format, what is read of it, and where it disagrees with an installed library."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

from devlint import knowledge
from devlint.dev import stubs as command
from devlint.knowledge import stubs

# -- the format


def test_every_file_fits_the_schema_and_no_two_rows_differ() -> None:
    pytest.importorskip("jsonschema")
    assert command.check() == []


@pytest.mark.parametrize(
    "row",
    [
        {"names": "f", "result": "tensor"},
        {"source": "its documentation", "result": "tensor"},
        {"source": "its documentation", "names": "f"},
        {"source": "its documentation", "names": "f", "result": "thing"},
        {"source": "its documentation", "names": "f", "pattern": "lib.f.*", "result": "tensor"},
        {"source": "its documentation", "names": "f", "result": "tensor", "devise": "cpu"},
        {"source": "its documentation", "names": "f", "result": "tensor", "operands": ["x!"]},
        {"source": "its documentation", "names": "f", "result": "tensor", "host": False},
    ],
)
def test_a_row_of_a_function_that_the_schema_refuses(row: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(command.SCHEMA.read_text(encoding="utf-8"))
    assert not jsonschema.Draft7Validator(schema).is_valid({"functions": [row]})


def test_the_read_me_names_every_key_of_the_schema() -> None:
    definitions = json.loads(command.SCHEMA.read_text(encoding="utf-8"))["definitions"]
    text = command.SCHEMA.with_name("README.md").read_text(encoding="utf-8")
    keys = {key for each in ("function", "class", "package") for key in definitions[each]["properties"]}
    assert {key for key in keys if f"`{key}" not in text and f"{key} =" not in text} == set()


# -- what is read


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The document of a library `made_up`, which a test fills before it asks."""
    document: dict[str, Any] = {}
    monkeypatch.setattr(stubs, "names", lambda: frozenset({"made_up", "other_name"}))
    monkeypatch.setattr(
        stubs,
        "read",
        lambda name, folder=stubs.FOLDER: (
            {}
            if folder == stubs.GENERATED
            else document
            if name == "made_up"
            else {"aliases": {"other_name": "made_up"}}
        ),
    )
    cached = (stubs.library, stubs.home, stubs.function, stubs.cls, stubs.package)
    for each in cached:
        each.cache_clear()
    yield document
    for each in cached:
        each.cache_clear()


def test_names_stand_below_the_prefix(library: dict[str, Any]) -> None:
    library["functions"] = [{"source": "s", "prefix": "made_up.ops", "names": "f g", "result": "tensor"}]
    assert stubs.function("made_up.ops.g")["result"] == "tensor"
    assert stubs.function("made_up.g") == {}


def test_two_rows_of_one_name_both_hold(library: dict[str, Any]) -> None:
    library["functions"] = [
        {"source": "one", "names": "f", "result": "tensor"},
        {"source": "two", "names": "f", "calls": "first"},
    ]
    row = stubs.function("made_up.f")
    assert (row["result"], row["calls"], row["source"]) == ("tensor", "first", "one; two")


def test_a_pattern_is_about_whole_names(library: dict[str, Any]) -> None:
    library["classes"] = [{"source": "s", "pattern": r"made_up\.nn\..*Conv", "family": "Module"}]
    assert stubs.cls("made_up.nn.GridConv")["family"] == "Module"
    assert stubs.cls("made_up.nn.GridConvs") == {}


def test_an_alias_of_a_package_leads_to_its_rows(library: dict[str, Any]) -> None:
    library["functions"] = [{"source": "s", "names": "f", "result": "none"}]
    assert stubs.function("other_name.f")["result"] == "none"


def test_a_row_about_a_package_holds_of_all_in_it_alone(library: dict[str, Any]) -> None:
    library["packages"] = [{"source": "s", "prefix": "made_up.util", "looks": True}]
    assert stubs.package("made_up.util.deep.f").get("looks")
    assert not stubs.package("made_up.utility.f").get("looks")


def test_what_no_file_is_about_says_nothing() -> None:
    assert stubs.function("mylib.f") == stubs.cls("mylib.C") == stubs.package("mylib.f") == {}


def test_modules_of_python_have_one_file() -> None:
    assert stubs.package("os.path.join").get("looks")
    assert stubs.cls("abc.ABC")["family"] == "object"


def test_an_operand_that_takes_several_tensors() -> None:
    record = knowledge.function("torchmetrics.utilities.data.dim_zero_cat")
    assert record is not None
    assert (record.params, record.sequence_params) == (("x",), (0,))


# -- compared with an installed library


@pytest.fixture
def installed(library: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    pytest.importorskip("torch", reason="the comparison runs on the simulator")
    module = types.ModuleType("made_up")
    monkeypatch.setitem(sys.modules, "made_up", module)
    return module


def disagreements(library: dict[str, Any], **row: Any) -> list[str]:
    from devlint.runtime.simulator import simulate

    library["functions"] = [{"source": "s", "names": "f", **row}]
    with simulate():
        return command.compare("made_up").wrong


def test_a_name_that_the_library_does_not_have(library: dict[str, Any], installed: types.ModuleType) -> None:
    assert disagreements(library, result="tensor")[0].startswith("made_up.f: does not exist")


def test_a_function_that_takes_what_the_row_says_it_refuses(
    library: dict[str, Any], installed: types.ModuleType
) -> None:
    installed.f = lambda x: x + 1  # type: ignore[attr-defined]
    assert disagreements(library, result="tensor", host=True) == [
        "made_up.f: `host`, but it takes a tensor on a card"
    ]  # fmt: skip


def test_a_function_that_refuses_what_the_row_says_it_takes(
    library: dict[str, Any], installed: types.ModuleType
) -> None:
    installed.f = lambda x: x.numpy()  # type: ignore[attr-defined]
    (found,) = disagreements(library, result="ndarray")
    assert found.startswith("made_up.f: not `host`, but it refuses a tensor on a card: TypeError: can't convert cuda:0")


def test_a_result_of_another_kind(library: dict[str, Any], installed: types.ModuleType) -> None:
    installed.f = lambda x: x.shape[0]  # type: ignore[attr-defined]
    assert disagreements(library, result="tensor") == ["made_up.f: `result` is tensor, but it gives number"]


def test_a_result_on_another_device(library: dict[str, Any], installed: types.ModuleType) -> None:
    installed.f = lambda x: x.cpu()  # type: ignore[attr-defined]
    assert disagreements(library, result="tensor", device="first_tensor", operands=["x*"]) == [
        "made_up.f: `device` is first_tensor, but the result is on cpu"
    ]  # fmt: skip


def test_a_row_that_agrees(library: dict[str, Any], installed: types.ModuleType) -> None:
    installed.f = lambda x, y: x + y  # type: ignore[attr-defined]
    assert disagreements(library, result="tensor", device="first_tensor", operands=["x*", "y*"]) == []


def test_a_function_that_cannot_be_called_is_counted(library: dict[str, Any], installed: types.ModuleType) -> None:
    def f(path: str) -> None:
        raise ValueError(path)

    installed.f = f  # type: ignore[attr-defined]
    library["functions"] = [{"source": "s", "names": "f", "result": "none"}]
    assert command.compare("made_up").uncalled == ["made_up.f"]


#: numpy makes these of numbers. It converts a tensor in their place, which no row says yet.
OF_NUMBERS = {"linspace", "logspace", "geomspace", "random.randint", "random.normal", "random.uniform"}


def test_the_installed_numpy_agrees_but_for_what_is_made_of_numbers() -> None:
    pytest.importorskip("numpy", minversion="2.4")
    from devlint.runtime.simulator import simulate

    with simulate():
        told = command.compare("numpy")
    assert {each.partition(":")[0].removeprefix("numpy.") for each in told.wrong} == OF_NUMBERS
    assert told.called > 290

"""The lattice of devices: its laws, and its join and conflict tables written out."""

from __future__ import annotations

import dataclasses
from functools import reduce
from itertools import combinations_with_replacement
from typing import Final, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlint.facts.frozen import replace
from devlint.facts.idioms.devices import parse_device
from devlint.facts.values import (
    ACCELERATORS,
    CHOICE,
    CHOICES,
    CPU,
    HOME,
    LIMIT,
    META,
    NONE,
    UNKNOWN,
    Device,
    Kind,
    Place,
    Symbol,
    Value,
    conflict,
    describe,
    is_surely_accelerator,
    join,
    may_be_accelerator,
    merge,
    on,
)

A: Final = frozenset({Symbol("a", 1)})
B: Final = frozenset({Symbol("b", 1)})
NAMED: Final[dict[str, Device]] = {
    "cpu": CPU,
    "cuda": on("cuda"),
    "cuda:0": on("cuda", 0),
    "cuda:1": on("cuda", 1),
    "xpu": on("xpu"),
    "meta": META,
    "a": A,
    "b": B,
    "home": HOME,
    "cpu|cuda": CPU | on("cuda"),
    "cpu|a": CPU | A,
    "cuda:0|cuda:1": on("cuda", 0) | on("cuda", 1),
    "unknown": UNKNOWN,
}

# Each pair once, the diagonal included. Columns: the two, their join, how they conflict ("-": they do not).
TABLE: Final = """
cpu            cpu            cpu                  -
cpu            cuda           cpu|cuda             certain
cpu            cuda:0         cpu|cuda:0           certain
cpu            cuda:1         cpu|cuda:1           certain
cpu            xpu            cpu|xpu              certain
cpu            meta           cpu|meta             -
cpu            a              a|cpu                assume
cpu            b              b|cpu                assume
cpu            home           cpu|home             assume
cpu            cpu|cuda       cpu|cuda             assume
cpu            cpu|a          a|cpu                -
cpu            cuda:0|cuda:1  cpu|cuda:0|cuda:1    assume
cpu            unknown        unknown              -
cuda           cuda           cuda                 -
cuda           cuda:0         cuda|cuda:0          -
cuda           cuda:1         cuda|cuda:1          -
cuda           xpu            cuda|xpu             certain
cuda           meta           cuda|meta            -
cuda           a              a|cuda               -
cuda           b              b|cuda               -
cuda           home           cuda|home            -
cuda           cpu|cuda       cpu|cuda             -
cuda           cpu|a          a|cpu|cuda           -
cuda           cuda:0|cuda:1  cuda|cuda:0|cuda:1   -
cuda           unknown        unknown              -
cuda:0         cuda:0         cuda:0               -
cuda:0         cuda:1         cuda:0|cuda:1        certain
cuda:0         xpu            cuda:0|xpu           certain
cuda:0         meta           cuda:0|meta          -
cuda:0         a              a|cuda:0             -
cuda:0         b              b|cuda:0             -
cuda:0         home           cuda:0|home          -
cuda:0         cpu|cuda       cpu|cuda|cuda:0      -
cuda:0         cpu|a          a|cpu|cuda:0         -
cuda:0         cuda:0|cuda:1  cuda:0|cuda:1        -
cuda:0         unknown        unknown              -
cuda:1         cuda:1         cuda:1               -
cuda:1         xpu            cuda:1|xpu           certain
cuda:1         meta           cuda:1|meta          -
cuda:1         a              a|cuda:1             -
cuda:1         b              b|cuda:1             -
cuda:1         home           cuda:1|home          -
cuda:1         cpu|cuda       cpu|cuda|cuda:1      -
cuda:1         cpu|a          a|cpu|cuda:1         -
cuda:1         cuda:0|cuda:1  cuda:0|cuda:1        -
cuda:1         unknown        unknown              -
xpu            xpu            xpu                  -
xpu            meta           meta|xpu             -
xpu            a              a|xpu                -
xpu            b              b|xpu                -
xpu            home           home|xpu             -
xpu            cpu|cuda       cpu|cuda|xpu         -
xpu            cpu|a          a|cpu|xpu            -
xpu            cuda:0|cuda:1  cuda:0|cuda:1|xpu    -
xpu            unknown        unknown              -
meta           meta           meta                 -
meta           a              a|meta               -
meta           b              b|meta               -
meta           home           home|meta            -
meta           cpu|cuda       cpu|cuda|meta        -
meta           cpu|a          a|cpu|meta           -
meta           cuda:0|cuda:1  cuda:0|cuda:1|meta   -
meta           unknown        unknown              -
a              a              a                    -
a              b              a|b                  -
a              home           a|home               -
a              cpu|cuda       a|cpu|cuda           -
a              cpu|a          a|cpu                -
a              cuda:0|cuda:1  a|cuda:0|cuda:1      -
a              unknown        unknown              -
b              b              b                    -
b              home           b|home               -
b              cpu|cuda       b|cpu|cuda           -
b              cpu|a          a|b|cpu              -
b              cuda:0|cuda:1  b|cuda:0|cuda:1      -
b              unknown        unknown              -
home           home           home                 -
home           cpu|cuda       cpu|cuda|home        -
home           cpu|a          a|cpu|home           -
home           cuda:0|cuda:1  cuda:0|cuda:1|home   -
home           unknown        unknown              -
cpu|cuda       cpu|cuda       cpu|cuda             -
cpu|cuda       cpu|a          a|cpu|cuda           -
cpu|cuda       cuda:0|cuda:1  unknown              -
cpu|cuda       unknown        unknown              -
cpu|a          cpu|a          a|cpu                -
cpu|a          cuda:0|cuda:1  unknown              -
cpu|a          unknown        unknown              -
cuda:0|cuda:1  cuda:0|cuda:1  cuda:0|cuda:1        -
cuda:0|cuda:1  unknown        unknown              -
unknown        unknown        unknown              -
"""
ROWS: Final = [tuple(line.split()) for line in TABLE.strip().splitlines()]


def spelled(text: str) -> set[str]:
    return set() if text == "unknown" else set(text.split("|"))


@pytest.mark.parametrize(("left", "right", "joined", "clash"), ROWS, ids=lambda part: part)
def test_join_and_conflict(left: str, right: str, joined: str, clash: str) -> None:
    a, b = NAMED[left], NAMED[right]
    assert {str(place) for place in join(a, b)} == spelled(joined)
    assert (conflict(a, b) or "-") == clash


def test_the_table_has_every_pair() -> None:
    assert [row[:2] for row in ROWS] == list(combinations_with_replacement(NAMED, 2))


cards = st.none() | st.integers(0, 3)
places = st.builds(Place, st.sampled_from(["cpu", "meta", *sorted(ACCELERATORS)]), cards)
symbols = st.builds(Symbol, st.sampled_from(["device", "home", "self.device"]), st.integers(0, 2))
devices = st.frozensets(places | symbols, max_size=LIMIT)


@given(devices, devices, devices)
def test_join_is_associative(a: Device, b: Device, c: Device) -> None:
    assert join(join(a, b), c) == join(a, join(b, c))


@given(devices, devices)
def test_join_is_commutative(a: Device, b: Device) -> None:
    assert join(a, b) == join(b, a)


@given(devices)
def test_join_is_idempotent(a: Device) -> None:
    assert join(a, a) == a


@given(devices)
def test_unknown_absorbs(a: Device) -> None:
    assert join(a, UNKNOWN) == UNKNOWN


@given(devices, devices)
def test_a_join_names_both_or_is_unknown(a: Device, b: Device) -> None:
    joined = join(a, b)
    assert joined == UNKNOWN or (joined >= a and joined >= b and len(joined) <= LIMIT)


@given(devices, devices, devices)
def test_join_is_monotone(a: Device, b: Device, c: Device) -> None:
    smaller, larger = join(a, c), join(join(a, b), c)
    assert larger == UNKNOWN or (smaller != UNKNOWN and larger >= smaller)


@given(devices, devices)
def test_conflict_is_symmetric(a: Device, b: Device) -> None:
    assert conflict(a, b) == conflict(b, a)


@given(devices)
def test_unknown_conflicts_with_nothing(a: Device) -> None:
    assert conflict(a, UNKNOWN) is None


@given(devices)
def test_nothing_conflicts_with_itself(a: Device) -> None:
    assert conflict(a, a) is None


@given(devices, devices)
def test_a_certain_conflict_is_between_two_named_devices(a: Device, b: Device) -> None:
    if conflict(a, b) == "certain":
        assert all(len(device) == 1 and isinstance(next(iter(device)), Place) for device in (a, b))
        assert a != b


@given(devices)
def test_surely_an_accelerator_is_one_that_may_be(a: Device) -> None:
    assert may_be_accelerator(a) or not is_surely_accelerator(a)


@given(devices, devices)
def test_joining_keeps_that_it_may_be_an_accelerator(a: Device, b: Device) -> None:
    joined = join(a, b)
    if joined:
        assert may_be_accelerator(joined) == (may_be_accelerator(a) or may_be_accelerator(b))
        assert is_surely_accelerator(joined) == (is_surely_accelerator(a) and is_surely_accelerator(b))


@given(devices)
def test_a_description_names_every_place(a: Device) -> None:
    assert describe(a).count(" or ") == max(len(a) - 1, 0)


# -- device strings ---------------------------------------------------------------------------------------------------


@given(
    st.sampled_from(["cpu", "cuda", "xpu", "mps", "npu", "mtia", "hpu", "xla", "meta"]), st.none() | st.integers(0, 999)
)
def test_a_device_string_is_read_as_it_is_written(kind: str, card: int | None) -> None:
    place = Place(kind, card)
    assert parse_device(str(place)) == frozenset({place})


@given(st.text(max_size=12))
def test_only_device_strings_are_devices(text: str) -> None:
    device = parse_device(text)
    assert not device or {str(place) for place in device} == {text} or text.partition(":")[2].startswith("0")


@pytest.mark.parametrize(
    "text", ["", "gpu", "CUDA", "cuda:", "cuda:x", "cuda:-1", " cuda", "cuda\n", "cuda:0:1", "cuda:1000"]
)
def test_other_strings_name_no_device(text: str) -> None:
    assert parse_device(text) == UNKNOWN


# -- values -----------------------------------------------------------------------------------------------------------

kinds = st.sampled_from([kind for kind in get_args(Kind) if kind != "none"])
atoms = st.builds(
    Value,
    kinds,
    devices,
    st.sampled_from([None, True, False]),
    moved=st.booleans(),
    constant=st.sampled_from([None, 0, 1, True, "cpu"]),
    type_name=st.sampled_from([None, "torch.nn.Linear"]),
)
pairs = st.builds(
    lambda kind, parts: Value(kind, elements=tuple(parts)), st.sampled_from(["tuple", "list"]), st.lists(atoms)
)
somethings = atoms | pairs
values = somethings | st.just(NONE)


def where(value: Value) -> tuple[object, ...]:
    elements = tuple(map(where, value.elements)) if isinstance(value.elements, tuple) else None
    return value.kind, value.device, value.zero_dim, elements


@given(values)
def test_merge_is_idempotent(a: Value) -> None:
    assert merge(a, a) == a


@given(values, values)
def test_merge_is_commutative(a: Value, b: Value) -> None:
    assert where(merge(a, b)) == where(merge(b, a))


@given(somethings, somethings)
def test_merge_concludes_no_more_than_both(a: Value, b: Value) -> None:
    """What is said of the merged value holds of each; a number, which is nowhere, says nothing of a tensor's device."""
    merged = merge(a, b)
    for value in (a, b):
        if value.kind == "number" and merged.kind != "number":
            continue
        assert merged.device == UNKNOWN or (value.device != UNKNOWN and merged.device >= value.device)
        assert merged.zero_dim in (None, value.zero_dim)
        assert not merged.moved or value.moved


@given(somethings)
def test_none_beside_something_is_that_something(a: Value) -> None:
    assert where(merge(a, NONE)) == where(merge(NONE, a)) == where(a)


def test_tensors_of_different_kinds_merge_to_a_tensor() -> None:
    merged = merge(Value("parameter", HOME), Value("tensor", CPU))
    assert (merged.kind, merged.device) == ("tensor", HOME | CPU)


def test_a_tensor_and_something_else_merge_to_nothing_known() -> None:
    assert merge(Value("tensor", CPU), Value("list")) == Value("unknown")


def test_dictionaries_merge_by_the_keys_of_both() -> None:
    a = Value("dict", elements={"x": Value("tensor", CPU), "y": Value("tensor", CPU)})
    b = Value("dict", elements={"x": Value("tensor", HOME)})
    assert merge(a, b).elements == {"x": Value("tensor", CPU | HOME)}


@pytest.mark.parametrize("value", [Value("tensor", CPU, False, type_name="name"), Value("tuple", elements=(NONE,))])
def test_a_replaced_field_changes_and_the_others_stay(value: Value) -> None:
    changed = replace(value, device=META, moved=True)
    assert changed == dataclasses.replace(value, device=META, moved=True)
    assert not value.moved


def test_a_dataclass_of_one_field_is_replaced_as_well() -> None:
    @dataclasses.dataclass(frozen=True)
    class One:
        text: str

    assert replace(One("a"), text="b") == One("b")


def test_functions_that_differ_merge_to_a_choice_of_a_few() -> None:
    one, two = Value("function", type_name="one"), Value("namespace", type_name="torch.sin")
    both = merge(one, two)
    assert (both.kind, both.type_name, both.elements) == ("function", CHOICE, (one, two))
    assert merge(both, one) == merge(one, both) == both
    assert merge(one, Value("namespace", type_name="torch.nn.ReLU")).elements is None
    many = reduce(merge, (Value("function", type_name=f"f{i}") for i in range(CHOICES + 1)))
    assert many.elements is None

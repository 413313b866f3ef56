"""Many fixes judged by few runs, without running anything: fix k is about statement k and its fault shows there."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlint.runtime.groups import assign, decode, is_clean, stoppers
from devlint.runtime.runs import Caught, Claim, ClockRead, Copies, Outcome, Run, Stop
from devlint.runtime.verdict import SAME_KERNELS


def claims(count: int) -> dict[int, Claim]:
    return {n: Claim(n, "DEV101", str(n), n + 1, frozenset({str(n)})) for n in range(count)}


def run(count: int, faults: Iterable[int] = (), **more: object) -> Run:
    caught = tuple(Caught("mixed", str(n), n + 1) for n in sorted(faults))
    return Run(Outcome.FINISHED, counts={str(n): 1 for n in range(count)}, caught=caught, **more)  # type: ignore[arg-type]


@given(st.integers(2, 80))
def test_codes_differ_and_none_holds_another(count: int) -> None:
    codes = assign(list(range(count)))
    assert len(set(codes.values())) == count
    assert len({len(code) for code in codes.values()}) == 1


@pytest.mark.parametrize(("count", "runs"), [(6, 4), (10, 5), (20, 6), (70, 8)])
def test_runs_grow_with_the_logarithm(count: int, runs: int) -> None:
    assert max(map(max, assign(list(range(count))).values())) + 1 == runs


@given(st.integers(5, 20), st.data())
def test_each_fault_is_given_to_the_fix_that_removes_it(count: int, data: st.DataObject) -> None:
    real = data.draw(st.sets(st.integers(0, count - 1)))
    codes = assign(list(range(count)))
    runs = [run(count, [n for n in real if number in codes[n]]) for number in range(max(map(max, codes.values())) + 1)]
    found = decode(claims(count), codes, runs, run(count))
    assert {n for n, without in found.items() if without.caught} == real
    assert set(found) == set(range(count))
    assert all(each.key == str(n) for n, without in found.items() for each in without.caught)


def test_fault_that_two_fixes_remove_is_left_to_single_runs() -> None:
    codes = assign(list(range(6)))
    both = [number for number in range(4) if number in codes[0] and number in codes[1]]
    runs = [run(6, [0] if number in both else []) for number in range(4)]
    assert 0 not in decode(claims(6), codes, runs, run(6))


def test_fault_at_another_place_that_nobody_claims_is_left_to_single_runs() -> None:
    codes = assign(list(range(6)))
    runs = [run(6, [9]) for _ in range(4)]
    assert decode(claims(6), codes, runs, run(6)) == {}


def test_early_clock_read_and_copy_are_the_fix_s_own() -> None:
    codes = assign(list(range(6)))
    runs = [
        run(
            6,
            clocks={"2": ClockRead(3, 7 if number in codes[2] else 0, 1)},
            copies={"4": Copies(5, 1, 400, frozenset({"to"}))} if number in codes[4] else {},
        )
        for number in range(4)
    ]
    found = decode(claims(6), codes, runs, run(6, clocks={"2": ClockRead(3, 0, 1)}))
    assert [n for n, without in found.items() if without.clocks["2"].pending] == [2]
    assert [n for n, without in found.items() if without.copies] == [4]


def test_runs_that_go_another_way_are_not_clean() -> None:
    members = claims(3).values()
    whole = run(5, losses=(1.0, 0.5))
    assert is_clean(run(5, [1], losses=(1.0, 0.5)), whole, members, SAME_KERNELS)
    assert not is_clean(run(5, losses=(1.0, 0.7)), whole, members, SAME_KERNELS)
    assert not is_clean(run(5, losses=(1.0,)), whole, members, SAME_KERNELS)
    assert not is_clean(
        run(4, losses=(1.0, 0.5)), run(4, losses=(1.0, 0.5), elsewhere=frozenset({"3"})), members, SAME_KERNELS
    )
    assert not is_clean(Run(Outcome.OTHER_STOP), whole, members, SAME_KERNELS)


def test_fix_without_which_the_program_stops_is_set_aside() -> None:
    stop = Stop("TypeError: numpy", "TypeError", "1", 2, "line 2", True)
    assert stoppers(Run(Outcome.DEVICE_FAULT, stop=stop), claims(3).values()) == {1}

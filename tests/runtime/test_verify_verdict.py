"""Verdicts from what runs observed, without running anything. Statement 0 is on line 10, statement 1 on line 11, ..."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from devlint.runtime.runs import Caught, Claim, ClockRead, Copies, Judgement, Outcome, Run, Stop, Verdict
from devlint.runtime.verdict import (
    REAL_CARD,
    Tolerance,
    brought,
    combine,
    differ,
    differing_losses,
    exit_code,
    is_device_fault,
    judge,
)

MIXED = "RuntimeError: Expected all tensors to be on the same device"


def stop(statement: int, text: str = MIXED, *, device: bool = True, **more: Any) -> Stop:
    kind = text.split(":")[0]
    line = 10 + statement
    return Stop(text, kind, str(statement), line, f"line {line}", device, **more)


def run(counts: Mapping[int, int] | int = 5, at: Stop | None = None, **more: Any) -> Run:
    """A run that executed statements as often as `counts` says (an int: the first n once), and stopped at `at`."""
    if isinstance(counts, int):
        counts = dict.fromkeys(range(counts), 1)
    seen = {str(n): 0 for n in range(5)} | {str(n): count for n, count in counts.items()}
    outcome = Outcome.FINISHED
    if at is not None:
        outcome = Outcome.DEVICE_FAULT if at.device else Outcome.OTHER_STOP
    more.setdefault("outcome", outcome)
    return Run(stop=at, counts=seen, text=f"{outcome.value}", **more)


def claim(code: str = "DEV103", finding: int = 1, own: tuple[int, ...] = (), **more: Any) -> Claim:
    return Claim(0, code, str(finding), 10 + finding, frozenset(str(n) for n in (finding, *own)), **more)


def verdict(without: Run, with_fix: Run, by: Claim | None = None, original: Run | None = None) -> Verdict:
    return judge(by or claim(), without, with_fix, original).verdict


class TestConfirmed:
    def test_fault_goes_and_the_program_finishes(self) -> None:
        judged = judge(claim(), run(2, stop(1)), run())
        assert judged.verdict is Verdict.CONFIRMED
        assert judged.then is None
        assert "line 11" in judged.evidence[0] and "ran once" in judged.evidence[0]

    def test_fault_may_show_at_another_place_than_the_finding(self) -> None:
        assert verdict(run(4, stop(3)), run(), claim("DEV102", 0)) is Verdict.CONFIRMED

    def test_a_later_stop_for_another_reason_is_reported(self) -> None:
        later = stop(3, "TypeError: something else", device=False)
        judged = judge(claim(), run(2, stop(1)), run(4, later))
        assert (judged.verdict, judged.then) == (Verdict.CONFIRMED, later)

    def test_a_stop_for_another_reason_in_the_same_statement_is_later(self) -> None:
        later = stop(1, "RuntimeError: mat1 and mat2 must have the same dtype", device=False, inside=("linear",))
        judged = judge(claim(), run(2, stop(1, inside=("linear",))), run(2, later))
        assert (judged.verdict, judged.then) == (Verdict.CONFIRMED, later)

    def test_another_device_fault_further_on_in_the_same_statement(self) -> None:
        later = stop(1, MIXED + " (nll_loss)", inside=("cross_entropy",))
        without = run(2, stop(1, inside=("linear",)), kernels=3)
        assert verdict(without, run(2, later, kernels=5)) is Verdict.CONFIRMED

    def test_a_fault_that_the_program_catches_counts(self) -> None:
        assert verdict(run(caught=(Caught(MIXED, "1", 11),)), run()) is Verdict.CONFIRMED

    def test_a_statement_that_the_fix_takes_away(self) -> None:
        gone = stop(1, "AttributeError: 'SGD' object has no attribute 'to'")
        with_fix = Run(Outcome.FINISHED, counts={"0": 1, "2": 1, "3": 1})
        assert verdict(run(2, gone), with_fix, claim("DEV301", beside={"1": ("2", "0")})) is Verdict.CONFIRMED

    def test_the_last_statement_of_a_block_taken_away(self) -> None:
        gone = stop(1, "AttributeError: 'SGD' object has no attribute 'to'")
        with_fix = Run(Outcome.FINISHED, counts={"0": 1})
        assert verdict(run(2, gone), with_fix, claim("DEV301", beside={"1": (None, "0")})) is Verdict.CONFIRMED

    def test_a_call_around_the_fault_that_the_fix_takes_away(self) -> None:
        assert verdict(run(2, stop(1)), run(), claim(loses="print")) is Verdict.REFUTED
        assert verdict(run(), run(), claim(loses="print")) is Verdict.NOT_REPRODUCED

    def test_the_corrected_run_reaches_its_limit(self) -> None:
        assert verdict(run(2, stop(1)), run(outcome=Outcome.LIMIT)) is Verdict.CONFIRMED


class TestRefuted:
    def test_the_fault_stays(self) -> None:
        assert verdict(run(2, stop(1)), run(2, stop(1))) is Verdict.REFUTED

    def test_the_fault_stays_at_a_later_turn_of_the_loop(self) -> None:
        assert verdict(run({0: 1, 1: 1}, stop(1)), run({0: 1, 1: 2}, stop(1, count=2))) is Verdict.REFUTED

    def test_the_fault_stays_where_the_finding_says_it_shows(self) -> None:
        by = claim("DEV102", 0, watch=frozenset({"3"}))
        assert verdict(run(4, stop(3)), run(4, stop(3)), by) is Verdict.REFUTED

    def test_sides_are_changed_within_the_statement(self) -> None:
        other = stop(1, MIXED + " the other way round", inside=("mm",))
        assert verdict(run(2, stop(1, inside=("addmm",))), run(2, other)) is Verdict.REFUTED

    def test_a_caught_fault_stays(self) -> None:
        caught = (Caught(MIXED, "1", 11),)
        assert verdict(run(caught=caught), run(caught=caught)) is Verdict.REFUTED

    def test_a_new_fault_where_it_ran_before(self) -> None:
        judged = judge(claim(), run(), run(4, stop(3)))
        assert judged.verdict is Verdict.REFUTED
        assert "which ran without the fix" in judged.evidence[0]

    def test_a_new_fault_where_the_original_ran_before(self) -> None:
        later = stop(3, "ValueError: no", device=False)
        assert verdict(run(2, stop(1)), run(4, later), original=run()) is Verdict.REFUTED

    def test_a_new_device_fault_at_the_fix(self) -> None:
        assert verdict(run(1, stop(0, "ValueError: no", device=False)), run(2, stop(1))) is Verdict.REFUTED

    def test_the_fix_uses_a_name_that_does_not_exist(self) -> None:
        unknown = stop(1, "NameError: name 'devise' is not defined", device=False, written_by=frozenset({0}))
        assert verdict(run(2, stop(1)), run(2, unknown)) is Verdict.REFUTED

    def test_the_statement_that_the_fix_put_in_fails(self) -> None:
        new = Stop("KeyError: 1", "KeyError", "+90.0", 11, "line 11", False, written_by=frozenset({0}))
        assert verdict(run(2, stop(1)), run(1, new)) is Verdict.REFUTED

    def test_the_losses_change(self) -> None:
        judged = judge(claim(), run(losses=(1.0, 0.5)), run(losses=(1.0, 0.6)))
        assert judged.verdict is Verdict.REFUTED
        assert "backward pass 2" in judged.evidence[0]

    def test_the_losses_change_before_the_fault(self) -> None:
        assert verdict(run(2, stop(1), losses=(1.0,)), run(losses=(2.0, 1.0))) is Verdict.REFUTED


class TestNothingToSee:
    def test_the_place_ran_and_nothing_happened(self) -> None:
        assert verdict(run(), run()) is Verdict.NOT_REPRODUCED

    def test_the_place_ran_in_a_worker(self) -> None:
        assert verdict(run({0: 1}, elsewhere=frozenset({"1"})), run({0: 1})) is Verdict.NOT_REPRODUCED

    def test_the_runs_finished_elsewhere(self) -> None:
        assert verdict(run({0: 1}), run({0: 1})) is Verdict.NOT_REACHED

    def test_the_limit_came_first(self) -> None:
        limited = run({0: 1}, outcome=Outcome.LIMIT)
        assert verdict(limited, limited) is Verdict.NOT_REACHED

    def test_both_runs_stopped_before_the_place(self) -> None:
        early = run(1, stop(0, "FileNotFoundError: data", device=False))
        assert verdict(early, early) is Verdict.COULD_NOT_JUDGE

    def test_both_runs_stopped_between_the_place_and_its_fault(self) -> None:
        early = run(3, stop(2, "FileNotFoundError: data", device=False))
        by = claim("DEV102", 0, watch=frozenset({"3"}))
        assert verdict(early, early, by) is Verdict.COULD_NOT_JUDGE

    def test_a_fault_that_no_fix_concerns(self) -> None:
        other = run(4, stop(3))
        assert verdict(other, other) is Verdict.NOT_REPRODUCED

    def test_what_cannot_be_simulated_is_nobodys_fault(self) -> None:
        blocked = run(1, outcome=Outcome.CANNOT_SIMULATE, detail="CUDA graphs")
        judged = judge(claim(), blocked, blocked)
        assert judged.verdict is Verdict.COULD_NOT_JUDGE
        assert "CUDA graphs" in judged.evidence[0]

    def test_a_limit_is_no_fault(self) -> None:
        assert verdict(run(), run({0: 1, 1: 1}, outcome=Outcome.LIMIT)) is Verdict.NOT_REPRODUCED


class TestTiming:
    early: ClassVar = {"1": ClockRead(11, 7, 3)}
    clean: ClassVar = {"1": ClockRead(11, 0, 3)}

    def test_unfinished_work_goes_from_yes_to_no(self) -> None:
        assert verdict(run(clocks=self.early), run(clocks=self.clean), claim("DEV401")) is Verdict.CONFIRMED

    def test_unfinished_work_stays(self) -> None:
        assert verdict(run(clocks=self.early), run(clocks=self.early), claim("DEV401")) is Verdict.REFUTED

    def test_nothing_was_queued_either_way(self) -> None:
        assert verdict(run(clocks=self.clean), run(clocks=self.clean), claim("DEV401")) is Verdict.NOT_REPRODUCED

    def test_clocks_say_nothing_about_other_rules(self) -> None:
        assert verdict(run(clocks=self.early), run(clocks=self.clean), claim("DEV101")) is Verdict.NOT_REPRODUCED


class TestTransfers:
    one: ClassVar = {"1": Copies(11, 1, 400, frozenset({"to"}))}

    def test_the_copy_goes(self) -> None:
        assert verdict(run(copies=self.one), run(), claim("DEV501")) is Verdict.CONFIRMED

    def test_the_copy_stays(self) -> None:
        assert verdict(run(copies=self.one), run(copies=self.one), claim("DEV501")) is Verdict.REFUTED

    def test_the_new_call_copies_by_itself(self) -> None:
        other = {"1": Copies(11, 1, 400, frozenset({"torch.tensor"}))}
        assert verdict(run(copies=self.one), run(copies=other), claim("DEV501")) is Verdict.NOT_REPRODUCED


class TestBrought:
    """Whose doing is a later device fault? `fetched`: the fix takes values off the card."""

    fetched = run(4, taken={"1": 1})
    forgiven = run(caught=(Caught(MIXED, "1", 11),))

    def test_it_came_with_the_fix(self) -> None:
        assert brought(stop(3), claim(), self.fetched, self.forgiven)

    def test_it_was_there_all_along(self) -> None:
        both = run(caught=(Caught(MIXED, "1", 11), Caught(MIXED, "3", 13)))
        assert not brought(stop(3), claim(), self.fetched, both)

    def test_what_the_fix_took_to_the_card_meets_what_was_left_behind(self) -> None:
        assert not brought(stop(3), claim(), run(4), self.forgiven)

    def test_nobody_knows_where_the_run_did_not_come(self) -> None:
        assert not brought(stop(3), claim(), self.fetched, run(2))


class TestLosses:
    def test_equal_within_tolerance(self) -> None:
        assert differing_losses(run(losses=(1.0,)), run(losses=(1.000001,)), Tolerance(1e-5)) == ""

    def test_not_a_number_equals_itself(self) -> None:
        assert differing_losses(run(losses=(float("nan"),)), run(losses=(float("nan"),))) == ""

    def test_a_real_card_is_compared_at_the_start_only(self) -> None:
        ones = (1.0,) * 5
        assert differing_losses(run(losses=(*ones, 1.0)), run(losses=(*ones, 2.0)), REAL_CARD) == ""

    def test_fewer_backward_passes(self) -> None:
        assert "the number of backward passes changes from 2 to 1" in differing_losses(
            run(losses=(1.0, 1.0)), run(losses=(1.0,))
        )

    def test_a_run_that_stopped_may_have_fewer(self) -> None:
        assert differing_losses(run(2, stop(1), losses=(1.0,)), run(losses=(1.0, 1.0))) == ""

    def test_programs_differ_by_a_new_fault(self) -> None:
        assert differ(run(), run(2, stop(1)))
        assert not differ(run(2, stop(1)), run())


def test_the_verdict_that_says_most_wins() -> None:
    order = (Verdict.NOT_REACHED, Verdict.COULD_NOT_JUDGE, Verdict.NOT_REPRODUCED, Verdict.CONFIRMED, Verdict.REFUTED)
    judgements = [Judgement(each, device=each.value) for each in order]
    for most in range(len(order)):
        assert combine(judgements[: most + 1]).verdict is order[most]


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ([], 0),
        ([Verdict.CONFIRMED, Verdict.NOT_REACHED], 0),
        ([Verdict.NOT_REPRODUCED], 0),
        ([Verdict.CONFIRMED, Verdict.REFUTED], 1),
        ([Verdict.NOT_REACHED, Verdict.COULD_NOT_JUDGE], 3),
        ([Verdict.REFUTED, Verdict.COULD_NOT_JUDGE], 1),
    ],
)
def test_exit_code(verdicts: list[Verdict], code: int) -> None:
    assert exit_code(verdicts) == code


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            "RuntimeError",
            "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
        ),
        ("RuntimeError", "Input and hidden tensors are not at the same device, found input tensor at cuda:0"),
        ("RuntimeError", "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same"),
        ("TypeError", "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor"),
        ("AttributeError", "'SGD' object has no attribute 'to'"),
        ("AttributeError", "module 'torch._C' has no attribute '_cuda_setDevice'"),
        (
            "RuntimeError",
            "module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found one of them on device: cpu",
        ),
        ("AssertionError", "Torch not compiled with CUDA enabled"),
        ("RuntimeError", "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False."),
        ("RuntimeError", "CUDA error: invalid device ordinal"),
        ("ValueError", "Both events must be recorded before calculating elapsed time."),
        ("TypeError", 'get_device() missing 1 required positional arguments: "input"'),
    ],
)
def test_device_faults_are_known(kind: str, message: str) -> None:
    assert is_device_fault(kind, message)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("RuntimeError", "mat1 and mat2 must have the same dtype, but got Long and Float"),
        ("RuntimeError", "Input type (torch.FloatTensor) and weight type (torch.HalfTensor) should be the same"),
        ("AttributeError", "'Net' object has no attribute 'fc3'"),
        ("FileNotFoundError", "[Errno 2] No such file or directory: 'device.csv'"),
        ("TypeError", "forward() takes 2 positional arguments but 3 were given"),
    ],
)
def test_other_errors_are_none(kind: str, message: str) -> None:
    assert not is_device_fault(kind, message)

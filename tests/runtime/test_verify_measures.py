"""Quantities that a fix changes, judged without running anything; and how a run counts them, with torch."""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from typing import Any

import pytest

from devlint.runtime.measures import measured, of_the_whole_run
from devlint.runtime.runs import Claim, ClockRead, Noticed, Outcome, Run, Training, Verdict
from devlint.runtime.tally import Graphs, Warned
from devlint.runtime.verdict import differ, judge


def run(**more: Any) -> Run:
    """A run in which statements 0 to 3, on lines 10 to 13, ran once."""
    return Run(**{"outcome": Outcome.FINISHED, "counts": {str(n): 1 for n in range(4)}, **more})


def claim(code: str, watch: str = "2") -> Claim:
    return Claim(0, code, "1", 11, frozenset("1"), frozenset(watch))


def writing(code: str) -> Claim:
    """A fix that writes its statement anew inside another one, as a `try` around it."""
    return replace(claim(code), written=frozenset({"+0"}))


def noticed(text: str, statement: int = 1) -> dict[str, Noticed]:
    return {str(statement): Noticed(10 + statement, 1, frozenset({text}))}


def noticed_anew(text: str) -> dict[str, Noticed]:
    return {"+0": Noticed(12, 1, frozenset({text}))}


OLD = "FutureWarning: `old` is deprecated"


class TestWarnings:
    def test_gone(self) -> None:
        judgement = judge(claim("DEV306"), run(warned=noticed(OLD)), run())
        assert judgement.verdict is Verdict.CONFIRMED
        assert judgement.evidence == (f"without the fix, line 11 warns: {OLD}; with the fix, there is no warning",)

    def test_stays(self) -> None:
        seen = run(warned=noticed(OLD))
        assert judge(claim("DEV209"), seen, seen).verdict is Verdict.REFUTED

    def test_stays_in_what_the_fix_writes(self) -> None:
        judgement = judge(writing("DEV306"), run(warned=noticed(OLD)), run(warned=noticed_anew(OLD)))
        assert judgement.verdict is Verdict.REFUTED

    def test_one_of_two_gone(self) -> None:
        both = {"1": Noticed(11, 2, frozenset({OLD, "UserWarning: no card"}))}
        without, with_fix = run(warned=both), run(warned=noticed("UserWarning: no card"))
        assert judge(claim("DEV209"), without, with_fix).verdict is Verdict.CONFIRMED

    def test_elsewhere_is_no_business_of_the_fix(self) -> None:
        assert judge(claim("DEV306"), run(warned=noticed(OLD, 3)), run()).verdict is Verdict.NOT_REPRODUCED

    def test_say_nothing_of_other_rules(self) -> None:
        assert judge(claim("DEV101"), run(warned=noticed(OLD)), run()).verdict is Verdict.NOT_REPRODUCED


class TestRaces:
    def test_gone(self) -> None:
        assert judge(claim("DEV505"), run(races=noticed("tolist", 3)), run()).verdict is Verdict.CONFIRMED

    def test_stays(self) -> None:
        seen = run(races=noticed("tolist", 2))
        assert judge(claim("DEV505"), seen, seen).verdict is Verdict.REFUTED

    def test_stays_in_what_the_fix_writes(self) -> None:
        judgement = judge(writing("DEV505"), run(races=noticed("tolist", 2)), run(races=noticed_anew("tolist")))
        assert judgement.verdict is Verdict.REFUTED

    def test_gone_with_what_the_fix_writes(self) -> None:
        assert judge(writing("DEV505"), run(races=noticed("tolist", 2)), run()).verdict is Verdict.CONFIRMED

    def test_brought_by_a_fix_of_any_rule(self) -> None:
        judgement = judge(claim("DEV503"), run(), run(races=noticed("item", 3)))
        assert judgement.verdict is Verdict.REFUTED
        assert "line 13: the host reads a copy before it is complete" in judgement.evidence[0]


class TestGraphs:
    def test_no_longer_kept(self) -> None:
        assert judge(claim("DEV508"), run(graphs=9), run(graphs=1)).verdict is Verdict.CONFIRMED

    def test_still_kept(self) -> None:
        assert judge(claim("DEV508"), run(graphs=9), run(graphs=9)).verdict is Verdict.REFUTED

    def test_last_loss_of_the_loop_is_not_kept(self) -> None:
        assert judge(claim("DEV508"), run(graphs=1), run(graphs=1)).verdict is Verdict.NOT_REPRODUCED

    def test_collected_by_a_fix_of_any_rule(self) -> None:
        assert judge(claim("DEV109"), run(graphs=1), run(graphs=5)).verdict is Verdict.REFUTED


class TestTraining:
    def test_parameters_come_to_the_optimizer_and_losses_differ_from_then_on(self) -> None:
        without = run(training=Training(4, 2), losses=(1.0, 0.9))
        with_fix = run(training=Training(4, 0), losses=(1.0, 0.7))
        assert judge(claim("DEV107"), without, with_fix).verdict is Verdict.CONFIRMED

    def test_first_loss_must_still_be_the_same(self) -> None:
        without = run(training=Training(4, 2), losses=(1.0, 0.9))
        with_fix = run(training=Training(4, 0), losses=(1.5, 0.7))
        assert judge(claim("DEV107"), without, with_fix).verdict is Verdict.REFUTED

    def test_parameters_stay_away(self) -> None:
        seen = run(training=Training(4, 2))
        assert judge(claim("DEV108"), seen, seen).verdict is Verdict.REFUTED

    def test_lost_by_a_fix_of_any_rule(self) -> None:
        judgement = judge(claim("DEV101"), run(training=Training(4, 0)), run(training=Training(4, 1)))
        assert judgement.verdict is Verdict.REFUTED
        assert "1 of 4 parameters with a gradient are in no optimizer" in judgement.evidence[0]


class TestWork:
    def test_accelerator_gets_some(self) -> None:
        without, with_fix = run(losses=(1.0,)), run(kernels=7, losses=(2.0,))  # random numbers of another device
        assert judge(claim("DEV211"), without, with_fix).verdict is Verdict.CONFIRMED

    def test_accelerator_loses_it_all(self) -> None:
        assert judge(claim("DEV201"), run(kernels=7), run()).verdict is Verdict.REFUTED

    def test_program_without_any_work_says_nothing(self) -> None:
        assert judge(claim("DEV211"), run(), run()).verdict is Verdict.NOT_REPRODUCED

    def test_clock_no_longer_waited_for_by_a_fix_for_other_devices(self) -> None:
        without = run(kernels=3, clocks={"3": ClockRead(13, 0, 1)})
        with_fix = run(kernels=3, clocks={"3": ClockRead(13, 3, 1)})
        assert judge(claim("DEV206"), without, with_fix).verdict is Verdict.REFUTED
        assert judge(claim("DEV501"), without, with_fix).verdict is Verdict.NOT_REPRODUCED  # the copy was the wait


def test_what_belongs_to_no_statement_makes_two_runs_different() -> None:
    assert differ(run(kernels=4), run())
    assert differ(run(training=Training(4, 2)), run(training=Training(4, 0)))
    assert differ(run(graphs=8), run(graphs=1))
    assert not differ(run(graphs=1), run(graphs=2))


@pytest.mark.parametrize(
    ("code", "expected"), [("DEV508", True), ("DEV107", True), ("DEV401", False), ("DEV101", False)]
)
def test_rules_whose_quantity_belongs_to_the_whole_run(code: str, expected: bool) -> None:
    assert of_the_whole_run(code) is expected


def test_rule_without_a_quantity_is_not_measured() -> None:
    assert measured(claim("DEV101"), run(), run()) is None


# ------------------------------------------------------------------------------------------------- counted in a run


def test_warnings_are_counted_whatever_the_filters_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warnings, "warn", warnings.warn)
    monkeypatch.setattr(warnings, "_showwarnmsg", getattr(warnings, "_showwarnmsg"))  # noqa: B009
    counted = Warned(lambda frame: {"file": "train.py", "line": 3})
    counted.install()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            warnings.warn("old name\nmore", FutureWarning, stacklevel=1)
    assert counted.rows() == [{"file": "train.py", "line": 3, "text": "FutureWarning: old name", "count": 2}]


def test_warning_of_the_program_itself_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warnings, "warn", warnings.warn)
    monkeypatch.setattr(warnings, "_showwarnmsg", getattr(warnings, "_showwarnmsg"))  # noqa: B009
    counted = Warned(lambda frame: {"file": __file__, "line": 3})
    counted.install()
    with pytest.warns(UserWarning, match="mine") as shown:
        warnings.warn("mine", stacklevel=1)
    assert counted.rows() == []
    assert (shown[0].filename, shown[0].lineno) == (__file__, sys._getframe().f_lineno - 2)


@pytest.mark.runtime
class TestGraphsOfTorch:
    def passes(self, keep: bool, outside: bool = False) -> Graphs:
        """Three steps of a model of two parameters; one more gets a gradient and is in no optimizer if `outside`."""
        torch = pytest.importorskip("torch")
        model, extra = torch.nn.Linear(2, 1), torch.nn.Parameter(torch.ones(1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        graphs = Graphs(torch)
        backward = graphs.around(torch.autograd.backward)
        kept = []
        for _ in range(4):
            loss = (model(torch.ones(3, 2)) * (extra if outside else 1)).sum()
            backward(loss)
            optimizer.step()
            graphs.after_step(optimizer, (), {})
            kept.append(loss if keep else loss.detach())
        return graphs

    def test_losses_that_are_collected_keep_their_graphs(self) -> None:
        assert self.passes(keep=True).kept == 3

    def test_detached_losses_keep_none(self) -> None:
        assert self.passes(keep=False).kept == 0

    def test_parameters_in_the_optimizer(self) -> None:
        assert self.passes(keep=False).training() == [2, 0]

    def test_parameter_in_no_optimizer(self) -> None:
        assert self.passes(keep=False, outside=True).training() == [3, 1]

    def test_without_a_step_nothing_is_said(self) -> None:
        torch = pytest.importorskip("torch")
        graphs = Graphs(torch)
        graphs.around(torch.autograd.backward)(torch.nn.Linear(2, 1)(torch.ones(3, 2)).sum())
        assert graphs.training() == [0, 0]

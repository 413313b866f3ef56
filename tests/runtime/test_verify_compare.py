"""Digests of values, printed output and files: what counts as the same. Nothing is run."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from devlint.runtime.alignment import aligned
from devlint.runtime.compare import Difference, Manner, differences, unlike, unsteady
from devlint.runtime.instrument import COUNTS, VALUE, Spot, count_statements
from devlint.runtime.runs import Computed, Outcome, Row, Run

EXACT = Manner()
ON_CARD = Manner(places=True, outputs=False, counts=False, decisions=False)


def tensor(
    *values: float, shape: tuple[int, ...] | None = None, kind: str = "float32", place: str = "cpu"
) -> list[Any]:
    size = list(shape) if shape is not None else [len(values)]
    return ["t", size, kind, place, list(values), sum(values), sum(map(abs, values))]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (tensor(1, 2), tensor(1, 2.000001)),
        (tensor(1, 2), tensor(1, 2, place="cuda:0")),
        (tensor(float("nan")), tensor(float("nan"))),
        (tensor(2.5, shape=()), ["n", 2.5]),
        (["n", True], ["n", 1]),
        (["p", "cuda"], ["p", "cpu"]),
        (["p", "cuda"], ["n", None]),
        (["o", "GradScaler"], ["o", "OtherScaler"]),
        (["l", 2, [["n", 1]]], ["o", "ModuleList"]),
        (["s", "loss 0.123"], ["s", "loss 0.124"]),
    ],
)
def test_alike(one: list[Any], other: list[Any]) -> None:
    assert unlike(one, other, EXACT) == ""


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (tensor(1, 2), tensor(1, 0), "2 becomes 0"),
        (tensor(1, 2), tensor(1, 2, 3), "of shape (2) becomes a tensor of shape (3)"),
        (tensor(1, 2), tensor(1, 2, kind="float16"), "of float32 becomes a tensor of float16"),
        (tensor(1, 2), ["n", None], "a tensor of shape (2) becomes 'None'"),
        (["o", "Linear"], ["n", None], "an object of Linear becomes 'None'"),
        (["n", 3], ["n", 4], "3 becomes 4"),
        (["s", "good"], ["s", "bad"], "'good' becomes 'bad'"),
        (["l", 2, [tensor(1), tensor(2)]], ["l", 2, [tensor(1), tensor(3)]], "2 becomes 3"),
        (["m", 1, [["a", tensor(1)]]], ["m", 1, [["a", tensor(5)]]], "1 becomes 5"),
    ],
)
def test_unlike(one: list[Any], other: list[Any], said: str) -> None:
    assert said in unlike(one, other, EXACT)


def test_half_precision_on_the_way_is_no_rounding() -> None:
    assert unlike(tensor(0.1, 0.2), tensor(0.09997559, 0.19995117), EXACT)


def run(**more: Any) -> Run:
    return Run(more.pop("outcome", Outcome.FINISHED), counts={"0": 1, "1": 1}, **more)


def value(*digests: list[Any], draws: int = 0) -> Computed:
    return Computed(len(digests), tuple(Row(n, d, 0, draws) for n, d in enumerate(digests)), "line 2")


def names(one: Run, other: Run, manner: Manner = EXACT) -> list[str]:
    return [each.name for each in differences(one, other, manner)]


def test_values_are_compared_as_far_as_both_runs_have_them() -> None:
    one, other = value(tensor(1)), value(tensor(1), tensor(2))
    assert names(run(values={"1": one}), run(values={"1": other, "2": one})) == []
    assert names(run(values={"1": value(tensor(1))}), run(values={"1": value(tensor(2))})) == ["value:1"]


def test_what_two_runs_of_the_original_do_not_share_is_not_compared() -> None:
    one, again = (
        run(values={"1": value(["n", 0.5])}, out="t 0.5\n"),
        run(values={"1": value(["n", 0.7])}, out="t 0.7\n"),
    )
    skip = unsteady(one, again, EXACT)
    assert skip == {"value:1", "out:1.0"}
    assert names(one, run(values={"1": value(["n", 0.9])}, out="t 0.9\n"), Manner(skip=skip)) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("loss 0.123\n", "loss 0.124\n"),
        ("tensor(1.5000, grad_fn=<AddBackward0>)\n", "1.5\n"),
        ("tensor([1., 2.], device='cuda:0')\n", "tensor([1., 2.])\n"),
    ],
)
def test_output_that_is_the_same(one: str, other: str) -> None:
    assert names(run(out=one), run(out=other)) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [("loss 0.123\n", "loss 0.223\n"), ("done\n", "failed\n"), ("a\nb\n", "a\n"), ("20 right\n", "0 right\n")],
)
def test_output_that_differs(one: str, other: str) -> None:
    assert names(run(out=one), run(out=other))


def test_a_run_that_ended_early_has_less_output() -> None:
    assert names(run(out="a\n", outcome=Outcome.DEVICE_FAULT), run(out="a\nb\n")) == []


def test_exit_status_steps_and_files() -> None:
    one = run(status=0, steps=3, files={"model.pt": ("a", ""), "log.txt": ("b", "loss 0.5")})
    other = run(status=1, steps=2, files={"model.pt": ("c", ""), "log.txt": ("d", "loss 0.5")})
    assert names(one, other) == ["steps", "status", "file:model.pt"]
    assert names(one, run(status=0, steps=3, files={"log.txt": ("b", "loss 0.5")})) == ["file:model.pt"]


def test_gradients_that_a_fix_cuts_off() -> None:
    assert names(run(gradients=((4, 1.0),)), run(gradients=((2, 1.0),))) == ["gradients"]
    assert names(run(gradients=((4, 1.0),)), run(gradients=((4, 2.0),))) == ["gradients"]


def test_after_a_random_draw_on_another_device_only_shapes_are_compared() -> None:
    moved = {"draws": (("rand", "[2]", "float32", "cpu"),)}, {"draws": (("rand", "[2]", "float32", "cuda:0"),)}
    one, other = value(tensor(1, 2), draws=1), value(tensor(3, 4), draws=1)
    assert names(run(values={"1": one}, **moved[0]), run(values={"1": other}, **moved[1]), ON_CARD) == []
    other = value(tensor(3, 4, 5), draws=1)
    assert names(run(values={"1": one}, **moved[0]), run(values={"1": other}, **moved[1]), ON_CARD) == ["value:1"]


def test_places_are_compared_on_the_card() -> None:
    one, other = value(tensor(1, place="cuda:0")), value(tensor(1))
    (found,) = differences(run(values={"1": one}), run(values={"1": other}), ON_CARD)
    assert found == Difference("value:1", "1", "line 2: a tensor on cuda:0 becomes a tensor on cpu", "off cuda:0")


@pytest.mark.parametrize(
    ("old", "new", "pair"),
    [
        ("f(a, y)", "f(a, y.to(d))", ("y", "y.to(d)")),
        ("x.numpy()", "torch.zeros_like(x).cpu().numpy()", ("x", "torch.zeros_like(x).cpu()")),
        ("(p == y).sum()", "(p == y[:1].to(d)).sum()", ("y", "y[:1].to(d)")),
        ("torch.zeros(n)", "torch.zeros(n, device=d)", ("torch.zeros(n)", "torch.zeros(n, device=d)")),
        ("a + b", "a + b * 0", ("b", "b * 0")),
    ],
)
def test_an_expression_is_paired_with_what_stands_in_its_place(old: str, new: str, pair: tuple[str, str]) -> None:
    one, other = (ast.parse(text, mode="eval").body for text in (old, new))
    assert pair in [(ast.unparse(a), ast.unparse(b)) for a, b in aligned(one, other)]


def test_looking_at_values_changes_nothing_but_tells_them() -> None:
    text = "def f(n):\n    for i in range(n):\n        s = i * 2\n    return [s]\n\nanswer = f(3)[0]\n"
    text += "if answer > 3:\n    answer += 1\n"
    tree = ast.parse(text)
    call = next(node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node) == "f(3)")
    seen: list[tuple[int, Any]] = []
    spots = {Spot.of(call): 100}
    count = count_statements(tree, 0, range(20), spots)

    def look(number: int, value: Any) -> Any:
        seen.append((number, value))
        return value

    scope: dict[str, Any] = {COUNTS: [0] * count, VALUE: look}
    exec(compile(tree, "program", "exec"), scope)
    assert scope["answer"] == 5
    assert (100, [4]) in seen
    assert [v for n, v in seen if n == next(n for n, v in seen if v == 0)] == [0, 1, 2]


def several(*texts: str) -> Run:
    return run(out="\n".join(texts), printed=texts)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("0\n", "1\n"), ("1\n", "0\n")),
        (
            ("rank 0 loss 0.5\nrank 0 done\n", "rank 1 loss 0.7\n"),
            ("rank 1 loss 0.7\n", "rank 0 loss 0.5\nrank 0 done\n"),
        ),
        (("a 1\nb 2\n", "c 3\n"), ("c 3\na 1\n", "b 2\n")),
        (("loss 0.123\n", "x\n"), ("x\n", "loss 0.124\n")),
        (("at 0x7f00\n", "at 0x7f01\n"), ("at 0x7f01\n", "at 0x7f00\n")),
    ],
)
def test_lines_of_several_writers_have_no_order(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert names(several(*one), several(*other)) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("0\n", "1\n"), ("1\n", "2\n")),
        (("0\n", "1\n"), ("0\n",)),
        (("ok\n", "x\n"), ("bad\n", "x\n")),
        (("loss 0.5 0.7\n", "x\n"), ("loss 0.5 0.9\n", "x\n")),
    ],
)
def test_what_several_writers_print_is_compared(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert names(several(*one), several(*other))


def test_what_varies_of_several_writers_is_not_compared() -> None:
    skip = unsteady(several("took 1 loss 2\n", "a\n"), several("took 3 loss 2\n", "b\n"), EXACT)
    one, other = several("took 1 loss 2\n", "a\n"), several("took 9 loss 2\n", "c\n")
    assert names(one, other, Manner(skip=skip)) == []
    assert names(one, several("took 9 loss 7\n", "c\n"), Manner(skip=skip)) == ["out:took # loss #.1"]


def test_files_named_by_the_time_are_compared_by_their_content() -> None:
    one, again, other = (run(files={f"runs/{n}/log.txt": (text, text)}) for n, text in ((1, "a"), (2, "a"), (3, "b")))
    skip = unsteady(one, again, EXACT)
    assert names(one, run(files={"runs/4/log.txt": ("a", "a")}), Manner(skip=skip)) == []
    assert names(one, other, Manner(skip=skip)) == ["file:runs/#/log.txt"]


def test_a_file_that_is_no_longer_written_beside_one_named_by_the_time() -> None:
    one, again = (run(files={f"runs/{n}.txt": ("a", "a"), "kept.txt": ("b", "b")}) for n in (1, 2))
    skip = unsteady(one, again, EXACT)
    assert names(one, run(files={"runs/3.txt": ("a", "a")}), Manner(skip=skip)) == ["file:kept.txt"]


def test_how_often_statements_ran_is_counted_over_all_processes() -> None:
    one, other = (Run(Outcome.FINISHED, counts={"0": most}, totals={"0": 10}) for most in (5, 6))
    assert names(one, other) == []

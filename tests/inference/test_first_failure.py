"""An operation that is never reached is no finding: an earlier one fails first wherever this one would."""

from __future__ import annotations

import pytest

from tests.inference.cases import findings, sources

#: Programs of which the line with `# first` fails, and the line with `# never` is never reached.
FIRST = """
## other_values_of_the_same_two_places
x = torch.ones(3)  # first
rows = torch.ones(3)  # never
mask = torch.ones(3, dtype=torch.bool).cuda()
print(x[mask])
print(rows[mask])

## in_one_function_that_is_called_before
def step(x):
    return x * torch.ones(3).cuda()  # first

def show(x):
    return x + torch.ones(3).cuda()  # never

data = torch.ones(3)
step(data)
show(data)

## in_a_function_that_needs_no_argument
def broken():
    return torch.ones(3) * torch.ones(3).cuda()  # first

def later(x):
    return x + torch.ones(3).cuda()  # never

broken()
later(torch.ones(3))

## two_reads_of_what_was_given
def show(x: torch.Tensor):
    print(x.float().numpy())  # first
    print(x.numpy())  # never

## a_read_in_a_try_that_takes_other_errors
def show(x: torch.Tensor):
    try:
        print(x.float().numpy())  # first
    except ValueError:
        print("no score")
    print(x.numpy())  # never

## in_a_try_that_ends_the_function
def show(x: torch.Tensor):
    try:
        print(x.float().numpy())  # first
    except TypeError as error:
        raise SystemExit(str(error))
    print(x.numpy())  # never

## under_the_same_condition
def mix(x, big):
    y = torch.ones(3)  # first
    w = torch.ones(3)  # never
    x = x.cuda()
    if big:
        print(y @ x)
        return w @ x
    return x

## two_parameters_of_one_layer
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
    def save(self):
        a = self.fc.weight.detach().numpy()  # first
        b = self.fc.bias.detach().numpy()  # never
        return a, b
"""

#: Programs of which both marked lines fail on some run.
BOTH = """
## the_first_is_taken_by_a_handler
def show(x: torch.Tensor):
    try:
        print(x.float().numpy())  # first
    except TypeError:
        print("on a card")
    print(x.numpy())  # also

## the_first_is_suppressed
import contextlib
def show(x: torch.Tensor):
    with contextlib.suppress(TypeError):
        print(x.float().numpy())  # first
    print(x.numpy())  # also

## a_handler_goes_on_with_the_next_round
def show(data, x: torch.Tensor):
    for each in data:
        try:
            print(x.float().numpy())  # first
        except Exception:
            continue
    print(x.numpy())  # also

## on_two_paths
def mix(x, big):
    y = torch.ones(3)  # first
    w = torch.ones(3)  # also
    x = x.cuda()
    if big:
        return y @ x
    return x @ w

## the_first_needs_a_condition
def mix(x, big):
    y = torch.ones(3)  # first
    w = torch.ones(3)  # also
    x = x.cuda()
    if big:
        print(y @ x)
    return w @ x

## two_things_that_are_given
def show(x: torch.Tensor, y: torch.Tensor):
    print(x.numpy())  # first
    print(y.numpy())  # also
"""


def _programs(text: str) -> list[object]:
    return [pytest.param(body, id=name) for name, body in sources(text).items()]


def _marked(text: str, *marks: str) -> list[int]:
    return [n for n, line in enumerate(text.splitlines(), 1) if line.endswith(tuple("# " + mark for mark in marks))]


@pytest.mark.parametrize("text", _programs(FIRST))
def test_what_is_never_reached_is_not_reported(text: str) -> None:
    assert sorted({each.line for each in findings(text)}) == _marked(text, "first")


@pytest.mark.parametrize("text", _programs(BOTH))
def test_what_another_run_reaches_is_reported(text: str) -> None:
    assert sorted({each.line for each in findings(text)}) == _marked(text, "first", "also")

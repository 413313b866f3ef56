"""Conditions that belong together: the failing programs have a path to the fault, their twins have none.

The twin often has the same statements with another condition, so silence about it needs the conditions themselves.
"""

from __future__ import annotations

from typing import Final

from tests.inference.cases import Case, cases

CONDITIONS: Final[tuple[Case, ...]] = cases("""
## same_flag_twice
def run(flag: bool):
    bias = torch.rand(3)
    if flag:
        bias = bias.cuda()
    if not flag:  # wrong
    if flag:  # right
        return torch.rand(3).cuda() + bias
    return None
run(False)  # run

## opposite_flags
def run(flag: bool):
    bias = torch.rand(3)
    if not flag:
        bias = bias.cuda()
    if flag:  # wrong
    if not flag:  # right
        return torch.rand(3).cuda() + bias
    return None
run(True)  # run

## and_in_two_orders
def run(first: bool, second: bool):
    bias = torch.rand(3)
    if first and second:
        bias = bias.cuda()
    if second:  # wrong
    if second and first:  # right
        return torch.rand(3).cuda() + bias
    return None
run(False, True)  # run

## or_in_two_orders
def run(first: bool, second: bool):
    bias = torch.rand(3)
    if first and second:  # wrong
    if first or second:  # right
        bias = bias.cuda()
    if second or first:
        return torch.rand(3).cuda() + bias
    return None
run(False, True)  # run

## not_of_an_or
def run(first: bool, second: bool):
    bias = torch.rand(3)
    if not first and not second:
        bias = bias.cuda()
    if not (first and second):  # wrong
    if not (first or second):  # right
        return torch.rand(3).cuda() + bias
    return None
run(False, True)  # run

## not_of_an_and
def run(first: bool, second: bool):
    bias = torch.rand(3)
    if not first:
        bias = bias.cuda()
    elif not second:  # right
        bias = bias.cuda()  # right
    if not (first and second):
        return torch.rand(3).cuda() + bias
    return None
run(True, False)  # run

## nested_for_and
def run(first: bool, second: bool):
    bias = torch.rand(3)
    if first:
        if second:
            bias = bias.cuda()
    if first:  # wrong
    if first and second:  # right
        return torch.rand(3).cuda() + bias
    return None
run(True, False)  # run

## none_default_replaced
def run(x: torch.Tensor, bias: torch.Tensor | None = None):
    x = x.cuda()
    if bias is None:
        bias = torch.zeros(3)  # wrong
        bias = torch.zeros(3, device=x.device)  # right
    else:
        bias = bias.to(x.device)
    return x + bias
run(torch.rand(3))  # run

## none_default_used_when_given
def run(x: torch.Tensor, bias: torch.Tensor | None = None):
    x = x.cuda()
    total = torch.zeros(3)
    if bias is not None:
        total = bias.cuda()
    if bias is None:  # wrong
    if bias is not None:  # right
        x = x + total
    return x
run(torch.rand(3))  # run

## none_tested_by_is_and_by_is_not
def run(mask: torch.Tensor | None = None):
    scores = torch.rand(3)
    if mask is not None:
        scores = scores.cuda()
    if mask is None:
        return scores + torch.ones(3).cuda()  # wrong
        return scores + torch.ones(3)  # right
    return scores + mask.cuda()
run()  # run

## none_with_another_test
def run(mask: torch.Tensor | None, strict: bool):
    bias = torch.rand(3)
    if mask is not None and strict:
        bias = bias.cuda()
    if mask is not None:  # wrong
    if strict and mask is not None:  # right
        return mask.cuda() + bias
    return None
run(torch.rand(3), False)  # run

## early_return
def run(flag: bool):
    bias = torch.rand(3)
    if flag:
        bias = bias.cuda()
    if flag:  # wrong
    if not flag:  # right
        return None  # right
        bias = bias.cpu()  # wrong
    return torch.rand(3).cuda() + bias
run(False)  # run

## early_raise
def run(flag: bool):
    bias = torch.rand(3)
    if not flag:  # right
        raise ValueError("flag")  # right
    if flag:
        bias = bias.cuda()
    return torch.rand(3).cuda() + bias
run(False)  # run wrong
run(True)  # run right

## early_continue
def run(rows: list[bool]):
    total = []
    for flag in rows:
        bias = torch.rand(3)
        if flag:
            bias = bias.cuda()
        else:  # right
            continue  # right
        total.append(torch.rand(3).cuda() + bias)
    return total
run([False])  # run

## assertion
def run(flag: bool):
    bias = torch.rand(3)
    assert flag  # right
    if flag:
        bias = bias.cuda()
    return torch.rand(3).cuda() + bias
run(False)  # run wrong
run(True)  # run right

## flag_computed_once
def run(mode: str):
    fast = mode == "fast"
    bias = torch.rand(3)
    if fast:
        bias = bias.cuda()
    if not fast:  # wrong
    if fast:  # right
        return torch.rand(3).cuda() + bias
    return None
run("slow")  # run

## comparison_with_a_constant_written_twice
def run(mode: str):
    bias = torch.rand(3)
    if mode == "fast":
        bias = bias.cuda()
    if mode == "slow":  # wrong
    if mode == "fast":  # right
        return torch.rand(3).cuda() + bias
    return None
run("slow")  # run

## not_equal_and_equal
def run(mode: str):
    bias = torch.rand(3)
    if mode != "slow":
        bias = bias.cuda()
    if mode == "slow":  # wrong
    if not mode == "slow":  # right
        return torch.rand(3).cuda() + bias
    return None
run("slow")  # run

## elif_chain
def run(mode: str):
    if mode == "a":
        bias = torch.rand(3).cuda()
    elif mode == "b":
        bias = torch.rand(3)
    else:
        raise ValueError(mode)
    if mode == "b":  # wrong
    if mode == "a":  # right
        return torch.rand(3).cuda() + bias
    return None
run("b")  # run

## conditional_expression
def run(flag: bool):
    bias = torch.rand(3).cuda() if flag else torch.rand(3)
    other = torch.rand(3).cuda()  # wrong
    other = torch.rand(3).cuda() if flag else torch.rand(3)  # right
    return bias + other
run(False)  # run

## conditional_expression_and_statement
def run(flag: bool):
    bias = torch.rand(3).cuda() if flag else torch.rand(3)
    if flag:
        other = torch.rand(3)  # wrong
        other = torch.rand(3).cuda()  # right
    else:
        other = torch.rand(3)
    return bias + other
run(True)  # run

## device_chosen_by_a_flag
def run(flag: bool):
    device = "cuda" if flag else "cpu"
    x = torch.rand(3, device=device)
    if not flag:  # wrong
    if flag:  # right
        x = x + torch.ones(3).cuda()
    return x
run(False)  # run

## constructor_and_method_share_a_flag
class Runner:
    def __init__(self, flag: bool):
        self.flag = flag
        self.bias = torch.rand(3)
        if flag:
            self.bias = self.bias.cuda()

    def run(self):
        if not self.flag:  # wrong
        if self.flag:  # right
            return torch.rand(3).cuda() + self.bias
        return None
Runner(False).run()  # run

## constructor_makes_a_part_or_none
class Runner:
    def __init__(self, use_bias: bool):
        self.bias = torch.rand(3).cuda() if use_bias else None
        self.scale = torch.rand(3).cuda() if use_bias else torch.rand(3)

    def run(self):
        if self.bias is None:  # wrong
        if self.bias is not None:  # right
            return torch.rand(3).cuda() + self.scale
        return None
Runner(False).run()  # run

## two_methods_share_a_flag
class Runner:
    def __init__(self, flag: bool):
        self.flag = flag
        self.bias = torch.rand(3)
        self._prepare()

    def _prepare(self):
        if self.flag:
            self.bias = self.bias.cuda()

    def run(self):
        if self.flag:
            return torch.rand(3) + self.bias  # wrong
            return torch.rand(3).cuda() + self.bias  # right
        return None
Runner(True).run()  # run

## call_with_a_constant_flag
def place(x, flag):
    return x.cuda() if flag else x

print(torch.rand(3).cuda() + place(torch.rand(3), False))  # wrong
print(torch.rand(3).cuda() + place(torch.rand(3), True))  # right

## default_of_a_flag
def place(x, host=False):
    return x if host else x.cuda()

print(torch.rand(3).cuda() + place(torch.rand(3), host=True))  # wrong
print(torch.rand(3).cuda() + place(torch.rand(3)))  # right

## first_round_of_a_loop
def run(rounds: int):
    total = None
    for i in range(rounds):
        if i == 0:
            total = torch.zeros(3)  # wrong
            total = torch.zeros(3).cuda()  # right
        total = total + torch.rand(3).cuda()
    return total
run(2)  # run

## first_flag_of_a_loop
def run(rows: list[int]):
    first = True
    state = torch.zeros(3)
    for row in rows:
        if first:
            state = state.cuda()
            first = False
        state = torch.rand(3) + state  # wrong
        state = torch.rand(3).cuda() + state  # right
    return state
run([1, 2])  # run

## none_until_the_first_round
def run(rows: list[int]):
    total = None
    for row in rows:
        part = torch.rand(3).cuda()
        if total is None:
            total = torch.zeros(3)  # wrong
            total = torch.zeros_like(part)  # right
        total = total + part
    return total
run([1, 2])  # run

## moved_in_the_body_used_before_it
def run(rows: list[int]):
    bias = torch.rand(3)
    bias = bias.cuda()  # right
    for row in rows:
        print(torch.rand(3).cuda() + bias)
        bias = bias.cuda()
run([1])  # run

## try_may_end_before_the_move
def run(path: str):
    bias = torch.rand(3)
    try:
        bias = torch.zeros(3) + float(path)
        bias = bias.cuda()
    except ValueError:
        print("no number")
        bias = bias.cuda()  # right
    return torch.rand(3).cuda() + bias
run("x")  # run

## except_returns
def run(path: str):
    bias = torch.rand(3)
    try:
        bias = torch.zeros(3).cuda() + float(path)
    except ValueError:
        print("no number")  # wrong
        return None  # right
    return torch.rand(3).cuda() + bias
run("x")  # run

## finally_moves
def run(path: str):
    bias = torch.rand(3)
    try:
        bias = bias + float(path)
    finally:
        print("done")  # wrong
        bias = bias.cuda()  # right
    return torch.rand(3).cuda() + bias
run("1")  # run

## else_of_a_try_moves
def run(path: str):
    bias = torch.rand(3)
    try:
        number = float(path)
    except ValueError:
        bias = bias.cpu()  # wrong
        bias = bias.cuda()  # right
    else:
        bias = bias.cuda() * number
    return torch.rand(3).cuda() + bias
run("x")  # run

## availability_asked_twice
def run():
    x = torch.rand(3)
    if torch.cuda.is_available():
        x = x.cuda()
    bias = torch.rand(3)
    if torch.cuda.is_available():
        bias = bias.cpu()  # wrong
        bias = bias.cuda()  # right
    return x + bias
run()  # run

## availability_kept_in_a_name
use_cuda = torch.cuda.is_available()

def run():
    x = torch.rand(3)
    if use_cuda:
        x = x.cuda()
    bias = torch.rand(3)
    if not use_cuda:  # wrong
    if use_cuda:  # right
        bias = bias.cuda()
    return x + bias
run()  # run

## isinstance_asked_twice
def run(x: torch.Tensor | list[float]):
    if isinstance(x, torch.Tensor):
        x = x.cuda()
    else:
        x = torch.tensor(x)
    if not isinstance(x, torch.Tensor):
        return None
    return x + torch.rand(3).cuda()  # wrong
    return x + torch.rand(3, device=x.device)  # right
run([1.0, 2.0, 3.0])  # run

## while_loop_that_may_not_run
def run(rows: list[int]):
    bias = torch.rand(3)
    bias = bias.cuda()  # right
    while rows:
        bias = bias.cuda()
        rows.pop()
    return torch.rand(3).cuda() + bias
run([])  # run

## match_on_a_mode
def run(mode: str):
    match mode:
        case "fast":
            bias = torch.rand(3).cuda()
        case _:
            bias = torch.rand(3)  # wrong
            bias = torch.rand(3, device="cuda")  # right
    return torch.rand(3).cuda() + bias
run("slow")  # run
""")

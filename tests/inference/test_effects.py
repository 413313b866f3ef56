"""What moves a value out of sight: correct programs are left alone, and what a call does not reach is still found."""

from __future__ import annotations

from typing import Final

import pytest

from tests.inference.cases import findings, marks, reported
from tests.inference.effects import EFFECTS, OUT_OF_REACH

#: What the inference gets wrong, by program.
FAULTS: Final[dict[str, str]] = {
    "items_of_a_dict_replaced_in_a_loop": "a write under an unknown key leaves the entries under known keys as they were",
    "recursive_helper_moves": "the effects of a function that calls itself are lost",
    "moved_by_map": "a function that `map` calls moves nothing",
    "moved_by_apply": "`Module.apply` does not call its function",
    "moved_by_getattr": "a method of torch that is read as a value forgets its object",
    "moved_through_parameters": "a write to `.data` of a parameter is not read",
    "set_through_the_dictionary_of_an_object": "writes through `__dict__` are not read",
    "list_replaced_by_slice": "a write to a slice is not read",
    "list_popped_and_appended": "after `pop` the numbered items are taken to be the same",
    "tensor_data_replaced": "a write to `.data` of a tensor is not read",
    "unreadable_call_gets_a_bound_method": "a method of torch that is read as a value forgets its object",
    "unreadable_call_gets_a_function_that_moves": "what a function reaches by its free names is not forgotten",
    "unreadable_call_gets_a_function_that_rebinds_a_global": "the globals that a handed function binds are not forgotten",
    "unreadable_engine_gets_the_module_later": "a method `add` of something unread is taken for that of a container",
    "unreadable_base_moves_what_the_child_builds": "a base that cannot be read may call and move, and does not",
    "hook_moves_the_inputs": "hooks of a module are not read",
    "exit_stack_moves_later": "`contextlib` is taken to look only, and a handed method forgets its object",
    "helper_gets_modules_by_star": "what a call gathers in `*arguments` is not bound, and not forgotten either",
    "helper_gets_a_module_by_two_stars": "what a call gathers in `**arguments` is not bound, and not forgotten either",
    "thread_moves": "`threading` is taken to look only, and a handed method forgets its object",
    "partial_of_a_move": "a method of torch that is read as a value forgets its object",
    "move_kept_in_a_name": "a method of torch that is read as a value forgets its object",
    "cached_function_gives_the_same_model": "a cached function makes a new object at each call",
    "input_follows_the_module_in_a_loop": "a device that was read of a module is paired with its place in another round",
    "flag_ends_the_loop_with_the_move": "a flag that ends the loop does not end it",
}


@pytest.mark.parametrize(
    "text", [pytest.param(text, id=name, marks=marks(FAULTS.get(name))) for name, text in EFFECTS.items()]
)
def test_nothing_is_said(text: str) -> None:
    assert findings(text) == []


@pytest.mark.parametrize(
    "text", [pytest.param(text, id=name, marks=marks(FAULTS.get(name))) for name, text in OUT_OF_REACH.items()]
)
def test_what_a_call_does_not_reach_is_found(text: str) -> None:
    assert reported(text)


def test_every_fault_is_of_a_program() -> None:
    assert FAULTS.keys() <= EFFECTS.keys() | OUT_OF_REACH.keys()

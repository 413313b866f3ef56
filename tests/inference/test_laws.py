"""Laws of places, conditions, values, heaps and substitution.

What a set of alternatives says is read off by trying every world: each test is true or false in it. A law about a join
compares worlds, so that it does not matter how the join writes its conditions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Final, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devlint.inference.objects.heap import Heap, Thing, merge_heaps
from devlint.inference.program.project import Project
from devlint.inference.summary.analyser import Analyser
from devlint.inference.summary.frame import Frame, State
from devlint.inference.summary.instantiate import Instance
from devlint.inference.terms.conditions import ALWAYS, WIDTH, Condition, Test, both, compatible
from devlint.inference.terms.conflicts import clash
from devlint.inference.terms.places import (
    CPU,
    LIMIT,
    Alternative,
    Atom,
    Origin,
    Places,
    at,
    join,
    named_by,
    place_of,
    softened,
    under,
    unknown,
)
from devlint.inference.terms.values import NONE, Value, merge

World: TypeAlias = Mapping[Test, bool]

TESTS: Final[tuple[Test, ...]] = (
    ("truth", ("p",)),
    ("truth", ("q",)),
    ("none", ("r",)),
    ("equal", ("s",), "'fast'"),
)
ATOMS: Final = (CPU, at("cuda"), at("cuda", "1"), place_of(("x",)), place_of(("x", ".part")), named_by(("d",)))
ORIGINS: Final = (None, Origin("factory", name="torch.rand"), Origin("moved", name="cuda"))

#: Enough examples to try every pair of atoms a few times.
FEW: Final = settings(max_examples=50)

literals = st.tuples(st.sampled_from(TESTS), st.booleans())
conditions = st.lists(literals, max_size=3, unique_by=lambda literal: literal[0]).map(frozenset)
alternatives = st.tuples(
    st.sampled_from(ATOMS), st.sampled_from(ORIGINS), conditions, st.booleans(), st.just(False)
).map(lambda parts: Alternative(*parts))
places = st.lists(alternatives, min_size=1, max_size=3, unique_by=lambda each: (each.atom, each.origin)).map(tuple)
certain_places = places.map(lambda found: tuple(each._replace(soft=False) for each in found))


def worlds() -> Iterator[World]:
    for outcomes in product((False, True), repeat=len(TESTS)):
        yield dict(zip(TESTS, outcomes, strict=True))


WORLDS: Final = tuple(worlds())


def holds(condition: Condition, world: World) -> bool:
    return all(
        (all(world[each] is truth for each, truth in test[1]) if test[0] == "all" else world[test]) is outcome
        for test, outcome in condition
    )


def said(of: Places, world: World) -> set[tuple[Atom, Origin | None]]:
    """Where a value may be in a world."""
    return {(each.atom, each.origin) for each in of if holds(each.condition, world)}


def is_unknown(of: Places) -> bool:
    """Whether some part of what is said is that nothing is known."""
    return any(each.atom.tag == "unknown" for each in of)


def allowed(a: Places, b: Places, condition: Condition, world: World) -> set[tuple[Atom, Origin | None]]:
    """Where a value may be after two paths, in a world. Without a condition it may be either path."""
    found = said(a, world) if holds(condition, world) else set()
    return found | (said(b, world) if holds(other_side(condition), world) else set())


def other_side(condition: Condition) -> Condition:
    """The condition of the other path of a test."""
    if not condition:
        return ALWAYS
    if len(condition) == 1:
        ((test, outcome),) = condition
        return frozenset({(test, not outcome)})
    return frozenset({(("all", condition), False)})


# -- conditions


@FEW
@given(conditions, conditions)
def test_compatibility_has_no_order(a: Condition, b: Condition) -> None:
    assert compatible(a, b) == compatible(b, a)


@FEW
@given(conditions, conditions)
def test_conditions_are_compatible_where_a_world_has_both(a: Condition, b: Condition) -> None:
    assert compatible(a, b) == any(holds(a, world) and holds(b, world) for world in WORLDS)


@FEW
@given(conditions, conditions)
def test_a_condition_and_its_other_side_never_hold_together(a: Condition, b: Condition) -> None:
    if a:
        assert not compatible(a | b, other_side(a))


@FEW
@given(conditions, conditions, conditions)
def test_what_contradicts_two_contradicts_more(a: Condition, b: Condition, c: Condition) -> None:
    if not compatible(a, b):
        assert not compatible(a, b, c)


@FEW
@given(conditions, conditions)
def test_conjunction_holds_where_both_hold(a: Condition, b: Condition) -> None:
    joined, whole = both(a, b)
    for world in WORLDS:
        if holds(a, world) and holds(b, world):
            assert holds(joined, world)
        elif whole:
            assert not holds(joined, world)


def test_conjunction_that_is_too_wide_says_so() -> None:
    wide = frozenset(((("truth", (f"n{i}",)), True)) for i in range(WIDTH))
    joined, whole = both(wide, frozenset({(("truth", ("more",)), True)}))
    assert (len(joined), whole) == (WIDTH, False)


def test_alternative_under_a_condition_that_is_too_wide_is_soft() -> None:
    wide = frozenset(((("truth", (f"n{i}",)), True)) for i in range(WIDTH))
    (found,) = under((Alternative(CPU, None, wide),), frozenset({(("truth", ("more",)), True)}))
    assert found.soft


# -- places


@FEW
@given(places, conditions)
def test_under_keeps_what_the_condition_allows(a: Places, condition: Condition) -> None:
    for world in WORLDS:
        assert said(under(a, condition), world) == (said(a, world) if holds(condition, world) else set())


@FEW
@given(places)
def test_join_with_itself_is_the_same(a: Places) -> None:
    assert join(a, a) == a


@FEW
@given(places, places, conditions)
def test_join_has_no_order(a: Places, b: Places, condition: Condition) -> None:
    one, other = join(a, b, condition, other_side(condition)), join(b, a, other_side(condition), condition)
    if is_unknown(one) or is_unknown(other):
        assert is_unknown(one) and is_unknown(other)
        return
    for world in WORLDS:
        assert said(one, world) == said(other, world)


@FEW
@given(places, places, conditions)
def test_join_loses_no_alternative(a: Places, b: Places, condition: Condition) -> None:
    joined = join(a, b, condition, other_side(condition))
    if is_unknown(joined):
        return
    for world in WORLDS:
        assert allowed(a, b, condition, world) <= said(joined, world)


@FEW
@given(places, places)
def test_join_without_conditions_loses_no_alternative(a: Places, b: Places) -> None:
    joined = join(a, b)
    if is_unknown(joined):
        return
    for world in WORLDS:
        assert said(a, world) | said(b, world) <= said(joined, world)


@FEW
@given(certain_places, certain_places, conditions)
def test_join_adds_nothing_that_is_proved(a: Places, b: Places, condition: Condition) -> None:
    joined = join(a, b, condition, other_side(condition))
    if is_unknown(joined):
        return
    for world in WORLDS:
        proved = said(tuple(each for each in joined if not each.soft), world)
        assert proved <= allowed(a, b, condition, world)


@FEW
@given(places, places)
def test_join_keeps_what_is_only_likely_likely(a: Places, b: Places) -> None:
    joined = join(softened(a), softened(b))
    assert is_unknown(joined) or all(each.soft for each in joined)


def test_join_of_too_many_is_unknown() -> None:
    cards: Places = tuple(Alternative(at("cuda", str(i))) for i in range(LIMIT))
    assert is_unknown(join(cards, (Alternative(CPU),)))


def test_join_of_as_many_as_allowed_is_known() -> None:
    cards: Places = tuple(Alternative(at("cuda", str(i))) for i in range(LIMIT - 1))
    assert len(join(cards, (Alternative(CPU),))) == LIMIT


def test_two_unknown_places_are_two() -> None:
    assert unknown() != unknown()


# -- conflicts


@FEW
@given(st.sampled_from(ATOMS), st.sampled_from(ATOMS))
def test_conflict_has_no_order(x: Atom, y: Atom) -> None:
    assert clash(x, y) == clash(y, x)


@FEW
@given(st.sampled_from(ATOMS))
def test_a_place_does_not_conflict_with_itself(x: Atom) -> None:
    assert clash(x, x) is None


@FEW
@given(st.sampled_from(ATOMS))
def test_unknown_conflicts_with_nothing(x: Atom) -> None:
    assert clash(unknown(), x) is None


# -- values


@FEW
@given(places, places, conditions)
def test_merge_of_tensors_loses_no_alternative(a: Places, b: Places, condition: Condition) -> None:
    merged = merge(Value("tensor", a), Value("tensor", b), condition, other_side(condition)).places
    if is_unknown(merged):
        return
    for world in WORLDS:
        assert allowed(a, b, condition, world) <= said(merged, world)


@FEW
@given(places)
def test_merge_with_itself_is_the_same(a: Places) -> None:
    assert merge(Value("tensor", a), Value("tensor", a)) == Value("tensor", a)


@FEW
@given(places, st.sampled_from(("tensor", "unknown", "device")))
def test_merge_with_a_path_that_binds_nothing_is_the_value(a: Places, kind: str) -> None:
    value = Value(kind, a)  # type: ignore[arg-type]
    assert merge(value, None) == merge(None, value) == value


@FEW
@given(places, literals)
def test_merge_with_none_knows_when_it_is_none(a: Places, literal: tuple[Test, bool]) -> None:
    given_, missing = frozenset({literal}), other_side(frozenset({literal}))
    assert merge(Value("tensor", a), NONE, given_, missing).missing == (missing, given_)


@FEW
@given(literals)
def test_merge_of_two_constants_is_a_flag(literal: tuple[Test, bool]) -> None:
    if_true, if_false = frozenset({literal}), other_side(frozenset({literal}))
    yes, no = Value("bool", constant=True), Value("bool", constant=False)
    assert merge(yes, no, if_true, if_false).test == merge(no, yes, if_false, if_true).test == (if_true, if_false)


@FEW
@given(places, places)
def test_merge_proves_a_kind_only_where_both_do(a: Places, b: Places) -> None:
    assert not merge(Value("tensor", a, proved=False), Value("tensor", b)).proved
    assert not merge(Value("tensor", a), Value("tensor", b, proved=False)).proved


# -- heaps

OBJECT: Final = ("new", 1, 0)


def heap_of(home: Places | None, field: Places | None) -> Heap:
    fields = {} if field is None else {".weight": Value("tensor", field)}
    return Heap({OBJECT: Thing("module", home=home, fields=fields)})


@FEW
@given(places, places)
def test_heap_merged_with_itself_is_the_same(home: Places, field: Places) -> None:
    assert merge_heaps(heap_of(home, field), heap_of(home, field)).things == heap_of(home, field).things


@FEW
@given(places, places, places, places, conditions)
def test_merged_heaps_lose_no_place(a: Places, b: Places, x: Places, y: Places, condition: Condition) -> None:
    merged = merge_heaps(heap_of(a, x), heap_of(b, y), condition, other_side(condition)).get(OBJECT)
    for of_a, of_b, found in ((a, b, merged.home or ()), (x, y, merged.fields[".weight"].places)):
        if is_unknown(found):
            continue
        for world in WORLDS:
            assert allowed(of_a, of_b, condition, world) <= said(found, world)


@FEW
@given(places)
def test_object_that_one_path_made_is_kept(home: Places) -> None:
    assert merge_heaps(heap_of(home, None), Heap()).get(OBJECT) == heap_of(home, None).get(OBJECT)
    assert merge_heaps(Heap(), heap_of(home, None)).get(OBJECT) == heap_of(home, None).get(OBJECT)


@FEW
@given(places, places)
def test_write_to_one_of_two_objects_loses_nothing(old: Places, new: Places) -> None:
    heap = heap_of(None, old)
    second = ("new", 2, 0)
    heap.put(second, heap.get(OBJECT))
    heap.write((OBJECT, second), ".weight", Value("tensor", new))
    for identity in (OBJECT, second):
        found = heap.get(identity).fields[".weight"].places
        if not is_unknown(found):
            for world in WORLDS:
                assert said(old, world) | said(new, world) <= said(found, world)


def test_write_to_one_of_two_objects_mixes_nothing() -> None:
    second = ("new", 2, 0)
    heap = heap_of(None, (Alternative(CPU),))
    heap.put(second, Thing("module", fields={".weight": Value("tensor", (Alternative(at("cuda")),))}))
    heap.write((OBJECT, second), ".weight", Value("tensor", (Alternative(at("cuda")),)))
    assert {each.atom for each in heap.get(second).fields[".weight"].places} == {at("cuda")}


@FEW
@given(places)
def test_move_of_one_object_is_where_it_goes(new: Places) -> None:
    heap = heap_of((Alternative(CPU),), None)
    heap.move((OBJECT,), new)
    assert heap.home(OBJECT) == new


@FEW
@given(places)
def test_move_of_perhaps_one_object_leaves_neither_known(new: Places) -> None:
    heap = heap_of((Alternative(CPU),), None)
    second = ("new", 2, 0)
    heap.put(second, heap.get(OBJECT))
    heap.move((OBJECT, second), new)
    assert is_unknown(heap.home(OBJECT)) and is_unknown(heap.home(second))


@FEW
@given(places, places)
def test_forgotten_object_is_nowhere_known(home: Places, field: Places) -> None:
    heap = heap_of(home, field)
    heap.forget((OBJECT,))
    assert is_unknown(heap.home(OBJECT)) and is_unknown(heap.get(OBJECT).fields[".weight"].places)


def test_forgotten_object_forgets_what_it_holds() -> None:
    inner = ("new", 2, 0)
    heap = Heap({
        OBJECT: Thing("list", fields={"[0]": Value("module", objects=(inner,))}),
        inner: Thing("module", home=(Alternative(CPU),)),
    })  # fmt: skip
    heap.forget((OBJECT,))
    assert is_unknown(heap.home(inner))


def test_write_under_an_unknown_key_leaves_no_entry_known() -> None:
    heap = Heap({OBJECT: Thing("dict", fields={"['x']": Value("tensor", (Alternative(CPU),))})})
    heap.write((OBJECT,), "[]", Value("tensor", (Alternative(at("cuda")),)))
    found = heap.field(OBJECT, "['x']")
    assert found is not None and {each.atom for each in found.places} != {CPU}


# -- substitution


@pytest.fixture(scope="module")
def identity() -> Instance:
    """A function with three arguments, used with each of them bound to itself."""
    tree = ast.parse("def f(x, d, p, q, r, s):\n    return x\n")
    project = Project(None)
    file = project.add("/case.py", tree)
    analyser = Analyser(project)
    top = analyser.module_level(file)
    summary = analyser.summary(file.functions["f"], None)
    assert summary is not None
    frame = Frame(analyser, file, None, None, None, top.site, State(top.state.names, top.state.heap.copy()))
    return Instance(frame, summary, {}, tree.body[0])


@FEW
@given(condition=conditions)
def test_condition_with_arguments_bound_to_themselves_is_the_same(identity: Instance, condition: Condition) -> None:
    assert identity.condition(condition) == condition


@FEW
@given(condition=conditions)
def test_negation_with_arguments_bound_to_themselves_is_the_same(identity: Instance, condition: Condition) -> None:
    if condition:
        assert identity.condition(other_side(condition)) == other_side(condition)


@FEW
@given(found=places)
def test_places_with_arguments_bound_to_themselves_are_the_same(identity: Instance, found: Places) -> None:
    assert _by_place(identity.places(found)) == _by_place(found)


@FEW
@given(found=places)
def test_tensor_with_arguments_bound_to_themselves_is_the_same(identity: Instance, found: Places) -> None:
    value = identity.value(Value("tensor", found))
    assert _by_place(value.places) == _by_place(found) and value.kind == "tensor"


def _by_place(found: Places) -> set[tuple[Atom, Origin | None, Condition, bool]]:
    """Places without their order. What names a device is not compared further: a use makes it one that is given."""
    return {each[:4] for each in found}

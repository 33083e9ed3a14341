"""Lattices in Datalog: `.lattice`, and columns whose values of one key are joined."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from reactive import Database, PlanError

MOST = 20
INTERVALS = """
.type Interval = [low: number, high: number]
.functor lub(a: Interval, b: Interval): Interval stateful
.functor glb(a: Interval, b: Interval): Interval stateful
.functor moved(i: Interval, by: number): Interval
.lattice Interval<> { Bottom -> [0, -1], Lub -> @lub(_, _), Glb -> @glb(_, _) }
.decl start(n: number, low: number, high: number) .input start
.decl step(u: number, by: number, v: number) .input step
.decl pair(a: number, b: number) .input pair
.decl reach(n: number, i: Interval<>) .output reach
reach(n, [low, high]) :- start(n, low, high).
reach(v, @moved(i, by)) :- reach(u, i), step(u, by, v).
.decl common(a: number, b: number, i: Interval<>) .output common
common(a, b, i) :- pair(a, b), reach(a, i), reach(b, i).
.decl whole(i: Interval<>) .output whole
whole(i) :- reach(_, i).
"""
BOTTOM = (0, -1)
Span = tuple[int, int]


def lub(a: Span, b: Span) -> Span:
    return (min(a[0], b[0]), max(a[1], b[1]))


def glb(a: Span, b: Span) -> Span:
    found = (max(a[0], b[0]), min(a[1], b[1]))
    return found if found[0] <= found[1] else BOTTOM


def moved(i: Span, by: int) -> Span:
    return (max(i[0] + by, -MOST), min(i[1] + by, MOST))


FUNCTORS: dict[str, Callable[..., Any]] = {"lub": lub, "glb": glb, "moved": moved}


def _by_hand(facts: dict[str, set[Any]]) -> dict[str, set[Any]]:
    """Return the rows of the outputs, by a worklist."""
    reach: dict[int, Span] = {}
    work: list[int] = []

    def put(n: int, i: Span) -> None:
        new = lub(reach[n], i) if n in reach else i
        if new != reach.get(n):
            reach[n] = new
            work.append(n)

    for n, low, high in facts["start"]:
        if (low, high) != BOTTOM:
            put(n, (low, high))
    while work:
        n = work.pop()
        for u, by, v in facts["step"]:
            if u == n:
                put(v, moved(reach[n], by))
    both = {(a, b, glb(reach[a], reach[b])) for a, b in facts["pair"] if a in reach and b in reach}
    whole: Any = None
    for i in reach.values():
        whole = i if whole is None else lub(whole, i)
    return {
        "reach": set(reach.items()),
        "common": {row for row in both if row[2] != BOTTOM},
        "whole": set() if whole is None else {(whole,)},
    }


def _random_row(random: Random, name: str) -> tuple[int, ...]:
    a, b = random.randrange(6), random.randrange(6)
    if name == "start":
        low = random.randrange(-3, 4)
        return random.choice([(a, low, low + random.randrange(3)), (a, *BOTTOM)])
    return (a, random.randrange(-2, 3), b) if name == "step" else (a, b)


@pytest.mark.parametrize("seed", range(6))
def test_joined_columns_equal_a_worklist_after_every_commit(seed: int) -> None:
    random = Random(seed)
    program = Database().datalog(INTERVALS, functors=FUNCTORS)
    views = {name: program[name].materialize() for name in program}
    facts: dict[str, set[Any]] = {name: set() for name in program.tables}
    for _ in range(20):
        name = random.choice(sorted(facts))
        row = _random_row(random, name)
        if facts[name] and random.random() < 0.45:
            row = random.choice(sorted(facts[name]))
        change = program.tables[name].remove if row in facts[name] else program.tables[name].add
        change(program.row(name)(*row))
        facts[name] ^= {row}
        assert {name: set(view) for name, view in views.items()} == _by_hand(facts)


def test_a_lattice_of_branches_in_a_component() -> None:
    """The type and its lattice are declared inside, and the instance's name is before them."""
    program = Database().datalog(
        """
        .functor lub(a: number, b: number): number
        .comp Signs<T> {
            .type Sign = T
            .lattice Sign<> { Lub -> @lub(_, _) }
            .decl of(x: symbol, s: Sign<>) .output of
        }
        .type Bits <: number
        .init one = Signs<Bits>
        one.of("a", 1). one.of("a", 4). one.of("b", 2).
        """,
        functors={"lub": lambda a, b: a | b},
    )
    assert sorted(map(tuple, program["one.of"].materialize())) == [("a", 5), ("b", 2)]


ERRORS = (
    (".decl a(i: Interval<>)", "type 'Interval' has no lattice"),
    (".lattice Interval<> { Lub -> @lub(_, _) }", "there is a lattice 'Interval' already"),
    (".type T <: number .lattice T<> { Glb -> @glb(_, _) }", "lattice 'T' has no Lub"),
    (".type T <: number .lattice T<> { Lob -> @lub(_, _) }", "a lattice has no part 'Lob'"),
    (".type T <: number .lattice T<> { Lub -> @lub(_) }", "Lub takes two values, not 1"),
    (".decl a(i: Interval<>, j: Interval<>)", "has several columns of lattices"),
    ("reach(n, i) <= reach(n, j) :- i < j.", "which no other dominates"),
    (
        ".type T <: number .lattice T<> { Lub -> @lub(_, _) }"
        " .decl a(n: number, t: T<>) choice-domain n",
        "a column of a lattice and a choice domain",
    ),
    (".decl a(n: number) a(n) :- reach(n, [1, 2]).", "is read by a variable"),
    (
        ".type T <: number .lattice T<> { Lub -> @lub(_, _) } .decl a(t: T<>) .decl b(t: T<>)"
        " .decl c(t: T) c(t) :- a(t), b(t).",
        "bound by several columns of a lattice without Glb",
    ),
)


@pytest.mark.parametrize(("text", "problem"), ERRORS)
def test_errors_of_lattices_name_the_problem(text: str, problem: str) -> None:
    known = "" if "a(i: Interval<>)" in text else INTERVALS
    more = ".type Interval = [low: number, high: number]" * (not known)
    with pytest.raises(PlanError, match=problem):
        Database().datalog(known + more + text, functors=FUNCTORS if known else {})


def test_a_lattice_needs_the_callable_of_its_functor() -> None:
    with pytest.raises(PlanError, match="functor '@lub' has no callable"):
        Database().datalog(INTERVALS, functors={"glb": glb, "moved": moved})

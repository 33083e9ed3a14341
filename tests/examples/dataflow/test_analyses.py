"""Each analysis equals a worklist by hand after every commit of random edits of a program."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from examples.dataflow import analyses
from examples.dataflow.analyses import (
    NONE,
    Assign,
    Available,
    Computation,
    Copy,
    Fact,
    Flow,
    Prepend,
    Store,
    Sum,
    add_signs,
)
from reactive import Database, Relation
from reactive.lattices import common_prefix

Rel = Relation[Any]
Rows = list[set[Any]]
State = dict[Any, Any]
VARIABLES = ("x", "y", "z")
NODES = 7


def _join_states(one: State, other: State, join: Callable[[Any, Any], Any]) -> State:
    return one | {k: join(one[k], v) if k in one else v for k, v in other.items()}


def worklist(
    flow: set[Any],
    starts: dict[int, State],
    after: Callable[[int, State], State],
    join: Callable[[Any, Any], Any],
) -> dict[int, State]:
    """Return the states before the nodes; `after` makes of one the state after its node."""
    states = defaultdict[int, State](dict) | starts
    following = defaultdict[int, list[int]](list)
    for edge in flow:
        following[edge.u].append(edge.v)
    waiting = [*range(NODES)]
    while waiting:
        n = waiting.pop()
        found = after(n, states.get(n, {}))
        for other in following[n]:
            before = states.get(other, {})
            states[other] = _join_states(before, found, join)
            if states[other] != before:
                waiting.append(other)
    return states


def _facts(states: dict[int, State]) -> set[Any]:
    return {Fact(n, var, value) for n, state in states.items() for var, value in state.items()}


def _union(a: Any, b: Any) -> Any:
    return a | b


def _add(state: State, var: Any, value: Any, join: Callable[[Any, Any], Any]) -> None:
    state[var] = join(state[var], value) if var in state else value


def signs_by_hand(rows: Rows) -> set[Any]:
    flow, assigned, copies, sums = rows

    def after(n: int, before: State) -> State:
        gone = {row.dst for kind in (assigned, copies, sums) for row in kind if row.n == n}
        state = {var: value for var, value in before.items() if var not in gone}
        for row in assigned:
            if row.n == n:
                _add(state, row.dst, frozenset({row.value}), _union)
        for row in copies:
            if row.n == n and row.src in before:
                _add(state, row.dst, before[row.src], _union)
        for row in sums:
            if row.n == n and row.a in before and row.b in before:
                _add(state, row.dst, add_signs(before[row.a], before[row.b]), _union)
        return state

    return _facts(worklist(flow, {}, after, _union))


def points_to_by_hand(rows: Rows) -> set[Any]:
    flow, allocated, copies, stores = rows

    def after(n: int, before: State) -> State:
        gone = {row.dst for kind in (allocated, copies) for row in kind if row.n == n}
        still = {var: value for var, value in before.items() if var not in gone}
        here = [row for row in stores if row.n == n]
        state: State = {} if here else dict(still)
        for row in here:
            targets = before.get(row.pointer, NONE)
            for var, value in still.items():
                if targets and targets != {var}:
                    _add(state, var, value, _union)
            for target in targets if row.src in before else ():
                _add(state, target, before[row.src], _union)
        for row in allocated:
            if row.n == n:
                _add(state, row.dst, frozenset({row.value}), _union)
        for row in copies:
            if row.n == n and row.src in before:
                _add(state, row.dst, before[row.src], _union)
        return state

    return _facts(worklist(flow, {}, after, _union))


def available_by_hand(rows: Rows) -> set[Any]:
    flow, computations, entries = rows
    starts: dict[int, State] = {n: {None: NONE} for n in entries}

    def after(n: int, before: State) -> State:
        made: State = {}
        for row in computations:
            if row.n == n and None in before:
                value = (before[None] - row.lost) | row.made
                _add(made, None, value, lambda a, b: a & b)
        return made

    states = worklist(flow, starts, after, lambda a, b: a & b)
    return {Available(n, state[None]) for n, state in states.items() if state}


def prefixes_by_hand(rows: Rows) -> set[Any]:
    flow, assigned, copies, prepended = rows
    join = common_prefix().join

    def after(n: int, before: State) -> State:
        gone = {row.dst for kind in (assigned, copies, prepended) for row in kind if row.n == n}
        state = {var: value for var, value in before.items() if var not in gone}
        for row in assigned:
            if row.n == n:
                _add(state, row.dst, row.value, join)
        for row in copies:
            if row.n == n and row.src in before:
                _add(state, row.dst, before[row.src], join)
        for row in prepended:
            if row.n == n and row.src in before:
                _add(state, row.dst, row.text + before[row.src], join)
        return state

    return _facts(worklist(flow, {}, after, join))


def _row(random: Random, kind: Any, values: tuple[str, ...]) -> Any:
    n, var, other = random.randrange(NODES), random.choice(VARIABLES), random.choice(VARIABLES)
    sets = [frozenset(random.sample("abc", random.randrange(3))) for _ in range(2)]
    match kind.__name__:
        case "Flow":
            return Flow(n, random.choice((min(n + 1, NODES - 1), random.randrange(NODES))))
        case "Assign":
            return Assign(n, var, random.choice(values))
        case "Copy":
            return Copy(n, var, other)
        case "Sum":
            return Sum(n, var, other, random.choice(VARIABLES))
        case "Store":
            return Store(n, var, other)
        case "Prepend":
            return Prepend(n, var, random.choice(("/", "a")), other)
        case "Computation":
            return Computation(n, *sets)
        case _:
            return n


CASES: tuple[tuple[Any, Any, tuple[Any, ...], tuple[str, ...]], ...] = (
    (analyses.signs, signs_by_hand, (Flow, Assign, Copy, Sum), ("-", "0", "+")),
    (analyses.points_to, points_to_by_hand, (Flow, Assign, Copy, Store), ("o1", "o2", "x")),
    (analyses.available, available_by_hand, (Flow, Computation, int), ()),
    (analyses.prefixes, prefixes_by_hand, (Flow, Assign, Copy, Prepend), ("/usr", "/us", "a")),
)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    ("query", "by_hand", "kinds", "values"), CASES, ids=[case[0].__name__ for case in CASES]
)
def test_an_analysis_equals_its_worklist_after_every_edit(
    query: Any, by_hand: Any, kinds: tuple[Any, ...], values: tuple[str, ...], seed: int
) -> None:
    random, db = Random(seed), Database()
    tables = [db.table(kind, name=kind.__name__) for kind in kinds]
    rows: Rows = [set() for _ in kinds]
    view = query(*tables).materialize()
    for commit in range(15):
        with db.transaction():
            for _ in range(20 if commit == 0 else random.choice((1, 1, 2))):
                place = random.choice((0, *range(len(kinds))))
                present = sorted(rows[place], key=repr)
                if present and commit and random.random() < 0.5:
                    row = random.choice(present)
                else:
                    row = _row(random, kinds[place], values)
                (tables[place].remove if row in rows[place] else tables[place].add)(row)
                rows[place] ^= {row}
        assert set(view) == by_hand(rows)
    view.verify()

"""Programs over lattices, each as a query and as a worklist by hand, for generated histories.

An example is a set of tables, the query over them, and the rows that a worklist finds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from examples.dataflow.analyses import add_signs
from reactive import Database, Relation, fixpoint, lattices
from reactive.lattices import TOP, Lattice


class Flow(NamedTuple):
    u: int
    v: int


class Set_(NamedTuple):
    n: int
    value: Any


class Move(NamedTuple):
    """The value at `v` is made of that at `u`, by the operation `how`."""

    u: int
    how: int
    v: int


class Pair(NamedTuple):
    """The value at `v` is made of those at `a` and `b`."""

    a: int
    b: int
    v: int


class State(NamedTuple):
    n: int
    value: Any


class Row(NamedTuple):
    """A row of a table that maps values."""

    old: Any
    new: Any


Tables = dict[str, Any]
Facts = dict[str, set[Any]]
Value = Any


@dataclass(frozen=True)
class Example:
    """A program over a lattice.

    Parameters
    ----------
    lattice: its lattice, for rows `State`.
    values: values of facts.
    one, two: how values are made of one value and an operation, or of two values.
    """

    name: str
    lattice: Callable[[], Lattice[Any]]
    values: tuple[Value, ...]
    one: Callable[[Value, int], Value]
    two: Callable[[Value, Value], Value]

    def query(self, tables: Tables) -> Relation[Any]:
        one, two = self.one, self.two

        def step(states: Relation[Any]) -> Relation[Any]:
            moved = states.join(tables["move"], on=lambda s, m: s.n == m.u).select(
                lambda s, m: State(m.v, one(s.value, m.how))
            )
            pairs = (
                states.join(tables["pair"], on=lambda s, p: s.n == p.a)
                .join(states, on=lambda s, p, t: t.n == p.b)
                .select(lambda s, p, t: State(p.v, two(s.value, t.value)))
            )
            facts = tables["fact"].select(lambda f: State(f.n, f.value))
            flow: Relation[Any] = states.join(tables["flow"], on=lambda s, f: s.n == f.u).select(
                lambda s, f: State(f.v, s.value)
            )
            made: Relation[Any] = facts.union_all(moved).union_all(pairs).union_all(flow)
            return made

        return fixpoint(step, keep=self.lattice(), by=lambda s: s.n)

    def by_hand(self, facts: Facts) -> set[Any]:
        """Return the rows by a worklist over the nodes."""
        lattice = self.lattice()
        state: dict[int, Value] = {}
        users = defaultdict[int, list[Any]](list)
        for kind in ("move", "pair", "flow"):
            for row in facts[kind]:
                for place in {row[0], row[1]} if kind == "pair" else {row[0]}:
                    users[place].append((kind, row))
        work: list[int] = []

        def put(node: int, value: Value) -> None:
            if lattice.bottom is not None and value == lattice.bottom:
                return
            new = lattice.join(state[node], value) if node in state else value
            if lattice.widen is not None:
                new = lattice.widen(new)
            if node not in state or new != state[node]:
                state[node] = new
                work.append(node)

        for fact in facts["fact"]:
            put(fact.n, fact.value)
        while work:
            node = work.pop()
            for kind, row in users[node]:
                if kind == "move":
                    put(row.v, self.one(state[node], row.how))
                elif kind == "flow":
                    put(row.v, state[node])
                elif row.a in state and row.b in state:
                    put(row.v, self.two(state[row.a], state[row.b]))
        return {State(n, value) for n, value in state.items()}

    def fact(self, random: Random, nodes: int) -> tuple[str, Any]:
        """Return a random row, with the name of its table."""
        kind = random.choice(("flow", "flow", "fact", "move", "pair"))
        a, b, c = (random.randrange(nodes) for _ in range(3))
        match kind:
            case "flow":
                return kind, Flow(a, b)
            case "fact":
                return kind, Set_(a, random.choice(self.values))
            case "move":
                return kind, Move(a, random.randrange(3), b)
            case _:
                return kind, Pair(a, b, c)


KINDS = {"flow": Flow, "fact": Set_, "move": Move, "pair": Pair}


def tables_of(db: Database) -> Tables:
    return {name: db.table(kind, name=name) for name, kind in KINDS.items()}


def _add_flat(a: Value, b: Value) -> Value:
    return TOP if TOP in (a, b) else (a + b) % 5


def _of_flat(a: Value, how: int) -> Value:
    return a if how == 0 or a is TOP else how if how == 1 else (a + 1) % 5


def _cap(number: int) -> int:
    return min(max(number, -9), 9)


def _add_ends(a: Value, b: Value) -> Value:
    return (_cap(a[0] + b[0]), _cap(a[1] + b[1]))


def _move_ends(a: Value, how: int) -> Value:
    return (_cap(a[0] + how - 1), _cap(a[1] + how))


def _add_wide(a: Value, b: Value) -> Value:
    return (a[0] + b[0], a[1] + b[1])


def _move_wide(a: Value, how: int) -> Value:
    return (a[0] + how - 1, a[1] + how)


SIGNS = {"-": frozenset("-"), "0": frozenset("0"), "+": frozenset("+")}


def _move_signs(a: Value, how: int) -> Value:
    turned = {"-": "+", "+": "-", "0": "0"}
    return a if how == 0 else frozenset(turned[x] for x in a) if how == 1 else a | {"0"}


def _both(a: Value, b: Value) -> Value:
    return a | b


def _move_set(a: Value, how: int) -> Value:
    return frozenset((x * 2 + how) % 7 for x in a)


def _kept(a: Value, how: int) -> Value:
    return a - {how}


def _meet(a: Value, b: Value) -> Value:
    return a & b


EXAMPLES = (
    Example("constants", lambda: lattices.flat(), (0, 1, 2), _of_flat, _add_flat),
    Example("intervals", lambda: lattices.interval(), ((0, 0), (2, 3)), _move_ends, _add_ends),
    Example(
        "widened",
        lambda: lattices.interval(thresholds=[-4, 0, 4, 30]),
        ((0, 0), (2, 3)),
        _move_wide,
        _add_wide,
    ),
    Example("signs", lambda: lattices.union(), tuple(SIGNS.values()), _move_signs, add_signs),
    Example("sets", lambda: lattices.union(), (frozenset({1}), frozenset({5})), _move_set, _both),
    Example(
        "must",
        lambda: lattices.intersection(),
        (frozenset(range(5)), frozenset({1, 3})),
        _kept,
        _meet,
    ),
    Example("largest", lambda: lattices.largest(), (0, 1, 5), lambda a, how: min(a + how, 9), max),
)


def histories(
    example: Example, random: Random, *, nodes: int, start: int, commits: int
) -> Iterable[list[tuple[bool, str, Any]]]:
    """Iterate over commits: lists of (True to add, table, row), the first one larger."""
    present: list[tuple[str, Any]] = []
    for number in range(commits):
        changes: list[tuple[bool, str, Any]] = []
        for _ in range(start if number == 0 else random.choice((1, 1, 1, 2, 4))):
            if present and number and random.random() < 0.5:
                kind, row = present.pop(random.randrange(len(present)))
                changes.append((False, kind, row))
            else:
                kind, row = example.fact(random, nodes)
                if (kind, row) not in present:
                    present.append((kind, row))
                    changes.append((True, kind, row))
        yield changes

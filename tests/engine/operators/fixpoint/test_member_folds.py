"""A key with many members: a change joins O(log members) values."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import pytest

from reactive import Database, fixpoint
from reactive.lattices import Lattice
from tests.api.lattice_programs import EXAMPLES, KINDS, Example, Facts, histories, tables_of
from tests.thresholds import thresholds

MANY_MEMBERS = "reactive.engine.operators.fixpoint.lattice_relation.MANY_MEMBERS"
HUB, MEMBERS = 0, 1_000


class Joined(frozenset[int]):
    """A set that counts its unions."""

    calls = 0

    def united(self, other: Joined) -> Joined:
        Joined.calls += 1
        return Joined(self | other)


class Level(NamedTuple):
    n: int
    v: Joined


class Edge(NamedTuple):
    a: int
    b: int


def test_a_change_of_a_key_with_many_members_joins_few_values() -> None:
    """The hub is in a loop, and half of the edits are undone."""
    db = Database()
    facts, edges = db.table(Level, name="facts"), db.table(Edge, name="edges")
    view = fixpoint(
        lambda s: facts.union_all(
            s.join(edges, on=lambda s, e: s.n == e.a).select(lambda s, e: Level(e.b, s.v))
        ),
        keep=Lattice(lambda a, b: a.united(b), lambda s: s.v),
        by=lambda s: s.n,
    ).materialize()
    sources = range(1, MEMBERS + 1)
    with db.transaction():
        facts.add_all([Level(n, Joined({n})) for n in sources])
        edges.add_all([Edge(n, HUB) for n in sources])
        edges.add_all([Edge(HUB, -1), Edge(-1, HUB)])
    edges.remove(Edge(7, HUB))  # from here on, joins of parts are kept
    absent = {7}
    random = Random(1)
    for _ in range(40):
        n = random.choice(sources)
        change = edges.add if n in absent else edges.remove
        before, Joined.calls = set(view), 0
        if random.random() < 0.5:
            with pytest.raises(ZeroDivisionError), db.transaction():
                change(Edge(n, HUB))
                1 / 0  # noqa: B018
            assert set(view) == before
        change(Edge(n, HUB))
        assert Joined.calls < 100
        absent ^= {n}
        (joined,) = [row.v for row in view if row.n == HUB]
        assert set(joined) == {n for n in sources if n not in absent}
    view.verify()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_trees_of_members_give_the_same_as_a_worklist(example: Example) -> None:
    for seed in range(4):
        random = Random(seed)
        with thresholds({MANY_MEMBERS: 0}):
            db = Database()
            tables = tables_of(db)
            view = example.query(tables).materialize()
            facts: Facts = {kind: set() for kind in KINDS}
            for changes in histories(example, random, nodes=6, start=12, commits=12):
                with db.transaction():
                    for is_new, kind, row in changes:
                        (tables[kind].add if is_new else tables[kind].remove)(row)
                        (facts[kind].add if is_new else facts[kind].discard)(row)
                assert set(view) == example.by_hand(facts)
            view.verify()

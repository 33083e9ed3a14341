"""A value that rises round a loop is looked up ahead: its steps count no derivations."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import Database, fixpoint
from reactive.engine.operators.fixpoint.lattice_relation import LatticeRelation
from reactive.engine.operators.fixpoint.lookahead import Lookahead
from reactive.errors import FixpointError
from reactive.lattices import largest
from tests.api.lattice_programs import EXAMPLES, KINDS, Example, Facts, histories, tables_of
from tests.thresholds import thresholds

FEW_STEPS = "reactive.engine.operators.fixpoint.joined_relation.FEW_STEPS"


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of relations of which targets are found, by commit that looks ahead."""
    found: list[int] = []
    find = Lookahead.find

    def noting(self: Lookahead, limit: Any) -> None:
        find(self, limit)
        found.append(sum(bool(getattr(each, "targets", None)) for each in self._relations))

    monkeypatch.setattr(Lookahead, "find", noting)
    return found


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_a_program_equals_its_worklist_if_it_looks_ahead_at_once(
    example: Example, looks: list[int]
) -> None:
    for seed in range(3):
        with thresholds({FEW_STEPS: 1 + seed % 2}):
            _follow(example, Random(seed))
    assert not looks or max(looks) == 1


def _follow(example: Example, random: Random) -> None:
    db = Database()
    tables = tables_of(db)
    view = example.query(tables).materialize()
    facts: Facts = {kind: set() for kind in KINDS}
    for changes in histories(example, random, nodes=7, start=20, commits=8):
        with db.transaction():
            for is_new, kind, row in changes:
                (tables[kind].add if is_new else tables[kind].remove)(row)
                (facts[kind].add if is_new else facts[kind].discard)(row)
        assert set(view) == example.by_hand(facts)


class Edge(NamedTuple):
    a: int
    b: int


class Level(NamedTuple):
    n: int
    v: int


class Rise(NamedTuple):
    n: int
    by: int


class Ring:
    """Values that rise round a ring of five, by the rise of each node, up to a limit.

    The rise is joined first, so that there is a set of rows that is joined with values again.
    """

    def __init__(self, most: int, after: Any = None) -> None:
        self.db = Database()
        self.edges, self.facts = self.db.table(Edge), self.db.table(Level)
        self.rises = self.db.table(Rise)
        rise = after or (lambda v, by: min(v + by, most))
        self.view = fixpoint(
            lambda s: self.facts.union_all(
                s.join(self.rises, on=lambda s, r: s.n == r.n)
                .join(s, on=lambda s, r, t: s.n == t.n)
                .join(self.edges, on=lambda s, r, t, e: s.n == e.a)
                .select(lambda s, r, t, e: Level(e.b, rise(t.v, r.by)))
            ),
            keep=largest(lambda r: r.v),
            by=lambda r: r.n,
        ).materialize()
        with self.db.transaction():
            self.edges.add_all([Edge(n, (n + 1) % 5) for n in range(5)])
            self.rises.add_all([Rise(n, 1) for n in range(5)])


def test_derivations_are_counted_for_few_of_many_steps(
    looks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[int] = []
    rise = LatticeRelation.rise

    def noting(self: LatticeRelation, now: int) -> Any:
        rounds.append(now)
        return rise(self, now)

    monkeypatch.setattr(LatticeRelation, "rise", noting)

    def count(most: int) -> int:
        ring, before = Ring(most), len(rounds)
        ring.facts.add(Level(0, 0))
        assert sorted(ring.view) == [(n, most) for n in range(5)]
        return len(rounds) - before

    assert count(400) == count(100) < 50
    assert looks == [1, 1]


def test_what_rose_ahead_falls_and_rises_exactly(looks: list[int]) -> None:
    ring = Ring(30)
    ring.facts.add(Level(0, 0))
    ring.facts.add(Level(2, 7))
    for edge in [Edge(3, 4), Edge(0, 1)]:
        ring.edges.remove(edge)
        ring.view.verify()
        ring.facts.remove(Level(0, 0))
        ring.view.verify()
        with ring.db.transaction():
            ring.edges.add(edge)
            ring.facts.add(Level(0, 0))
        ring.view.verify()
        assert sorted(ring.view) == [(n, 30) for n in range(5)]
    ring.facts.clear()
    assert list(ring.view) == []
    assert len(looks) >= 3


def _falling(v: int, by: int) -> int:
    return v + by if v < 60 else 4


def _failing(v: int, by: int) -> int:
    if v > 60:
        raise ZeroDivisionError
    return v + by


def test_a_step_that_is_wrong_beyond_some_value_is_an_error(looks: list[int]) -> None:
    for wrong, error in ((_falling, FixpointError), (_failing, ZeroDivisionError)):
        ring = Ring(0, wrong)
        with pytest.raises(error):
            ring.facts.add(Level(0, 0))
        assert list(ring.view) == []
        ring.edges.remove(Edge(4, 0))
        ring.facts.add(Level(0, 0))
        assert sorted(ring.view) == [(n, n) for n in range(5)]
    assert looks == [1, 0]


def test_a_value_without_end_is_stopped_while_looking_ahead() -> None:
    ring = Ring(0, lambda v, by: v + by)
    with pytest.raises(FixpointError, match="has not come to an end after 10000 rounds"):
        ring.facts.add(Level(0, 0))
    assert list(ring.view) == []
    ring.edges.remove(Edge(4, 0))
    ring.facts.add(Level(0, 0))
    ring.view.verify()

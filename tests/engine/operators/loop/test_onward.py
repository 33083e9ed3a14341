"""A loop that continues from its last result: near the query from scratch, for any history."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database, Max, Table, iterate
from tests.budget import examples
from tests.properties.test_loops import DATABASES, EDITS, Edge, edges_of, play, ranks
from tests.replica import Replica
from tests.thresholds import thresholds

WAYS: dict[str, dict[str, int]] = {
    "as_shipped": {},
    "seldom_followed": {
        "reactive.engine.operators.loop.loop_continuation.FEW": 1,
        "reactive.engine.operators.loop.loop_continuation.PART": 4,
    },
    "tried_each_time": {
        "reactive.engine.operators.loop.loop_continuation.FEW": 3,
        "reactive.engine.operators.loop.loop_continuation.LONGEST": 1,
    },
}

RANK: dict[str, Any] = {
    "tolerance": 1e-3,
    "of": lambda r: r.rank,
    "contraction": 0.85,
    "norm": "sum",
}


class Reading(NamedTuple):
    name: str
    value: float


class Fails:
    """A view over a loop that fails on request, once the loop has stepped."""

    def __init__(self, db: Database, loop: Any) -> None:
        self._db = db
        self._divisors: Table[int] = db.table(int, name="divisors")
        self._view = loop.join(self._divisors).select(lambda r, n: 1 // n).materialize()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """One that fails; the loop has to have rows."""
        with pytest.raises(ZeroDivisionError), self._db.transaction():
            yield
            self._divisors.add(0)
        assert len(self._view) == 0


class Halved:
    """Readings that are halved until they settle."""

    def __init__(self, tolerance: float = 0.01) -> None:
        self.db = Database()
        self.readings: Table[Reading] = self.db.table(
            Reading, name="readings", key=lambda r: r.name
        )
        loop = iterate(
            lambda rows: rows.select(lambda r: Reading(r.name, r.value / 2)),
            self.readings,
            until="settled",
            tolerance=tolerance,
            of=lambda r: r.value,
            contraction=0.5,
        )
        self.view = loop.materialize()
        self._fails = Fails(self.db, loop)

    def put(self, name: str, value: float | None) -> None:
        """Set a reading to a value, or delete it."""
        if value is not None:
            self.readings.upsert(Reading(name, value))
        elif self.readings.get(name) is not None:
            self.readings.delete(name)

    @contextmanager
    def failing(self) -> Iterator[None]:
        with self._fails.transaction():
            yield
            self.readings.upsert(Reading("last", 1.0))

    def check(self) -> None:
        self.view.verify()
        assert {r.name for r in self.view} == {r.name for r in self.readings}


class Ranked:
    """Ranks of the nodes of a graph, until they settle."""

    def __init__(self) -> None:
        self.edges = edges_of()
        self.db = DATABASES[id(self.edges)]
        loop = ranks(self.edges, until="settled", **RANK)
        self.view = loop.materialize()
        self._fails = Fails(self.db, loop)

    @contextmanager
    def failing(self) -> Iterator[None]:
        with self._fails.transaction():
            yield
            self.edges.add(Edge(0, 1))


def test_a_loop_that_was_empty_follows_what_comes_after() -> None:
    halved = Halved()
    for name, value in (("a", 0.0), ("a", None), ("b", 1.0), ("b", None), ("c", 1.0), ("d", 0.0)):
        halved.put(name, value)
        halved.check()


def test_a_change_of_few_rows_is_followed_after_one_of_many() -> None:
    halved = Halved()
    names = [f"n{number}" for number in range(600)]
    halved.readings.add_all(Reading(name, 1.0) for name in names[:200])
    for name in names[:3]:
        halved.put(name, None)
    halved.readings.upsert_all(Reading(name, 5.0) for name in names[3:])
    for name in names[3:6]:
        halved.put(name, None)
        halved.check()


def test_operators_that_are_made_in_a_transaction_that_fails_are_let_go() -> None:
    ranked = Ranked()
    ranked.edges.add_all([Edge(n, n + 1) for n in range(5)])
    with ranked.failing():
        ranked.edges.add(Edge(0, 3))
        ranked.edges.remove(Edge(4, 5))
    for edge in (Edge(5, 0), Edge(0, 3), Edge(3, 1)):
        ranked.edges.add(edge)
        ranked.view.verify()


def test_rows_that_moved_below_the_tolerance_are_known_after_a_transaction_that_fails() -> None:
    halved = Halved()
    for name in ("a", "b"):
        halved.put(name, 1.0)
    halved.put("c", 2.0)
    with halved.failing():
        halved.readings.add_all(Reading(f"n{number}", 1.0) for number in range(200))
    for name, value in (("d", 1.0), ("a", None), ("c", None)):
        halved.put(name, value)
        halved.check()


def greatest(readings: Any) -> Any:
    """The greatest reading of each name, halved until they settle."""
    return iterate(
        lambda rows: (
            rows.group_by(lambda r: r.name)
            .aggregate(Max(lambda r: r.value))
            .select(lambda name, value: Reading(name, value / 2))
        ),
        readings,
        until="settled",
        **{**RANK, "of": lambda r: r.value, "norm": "max"},
    )


@examples(100)
@given(edits=st.lists(st.tuples(st.booleans(), st.sampled_from("ab"), st.integers(0, 2))))
def test_a_key_is_there_as_long_as_a_row_of_it_is_where_it_starts(
    edits: list[tuple[bool, str, int]],
) -> None:
    db = Database()
    readings: Table[Reading] = db.table(Reading, name="readings")
    view = greatest(readings).materialize()
    fails = Fails(db, greatest(readings))
    for is_new, name, value in edits:
        if readings:
            with fails.transaction():
                readings.clear()
                readings.add(Reading(name, 1.0))
        (readings.add if is_new else readings.discard)(Reading(name, float(value)))
        view.verify()


def test_a_key_of_which_one_row_of_several_goes_stays() -> None:
    readings: Table[Reading] = Database().table(Reading, name="readings")
    view = greatest(readings).materialize()
    readings.add_all([Reading("a", 8.0), Reading("a", 9.0), Reading("b", 1.0)])
    readings.remove(Reading("a", 9.0))
    view.verify()
    assert {r.name for r in view} == {"a", "b"}


NAMES = st.sampled_from("abcd")
COMMITS = st.lists(
    st.tuples(st.booleans(), st.dictionaries(NAMES, st.none() | st.floats(0, 9), max_size=4)),
    max_size=12,
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("tolerance", [0.01, 1.0])
def test_rows_come_and_go_with_where_they_start(way: str, tolerance: float) -> None:
    @examples(60)
    @given(commits=COMMITS)
    def run(commits: list[tuple[bool, dict[str, float | None]]]) -> None:
        halved = Halved(tolerance)
        replica = Replica(halved.view)
        for fails, edit in commits:
            with halved.failing() if fails else halved.db.transaction():
                for name, value in edit.items():
                    halved.put(name, value)
            halved.check()
            replica.check()

    with thresholds(WAYS[way]):
        run()


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_ranks_are_near_those_from_scratch(way: str) -> None:
    @examples(24)
    @given(edits=EDITS, failing=st.sets(st.integers(0, 11)))
    def run(edits: list[list[tuple[bool, Edge]]], failing: set[int]) -> None:
        ranked = Ranked()
        replica = Replica(ranked.view)
        for number, edit in enumerate(edits):
            with ranked.failing() if number in failing else ranked.db.transaction():
                play([edit], ranked.edges, lambda _: None)
            ranked.view.verify()
            replica.check()

    with thresholds(WAYS[way]):
        run()

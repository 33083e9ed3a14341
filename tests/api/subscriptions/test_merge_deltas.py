"""Merged deltas: their replay equals the replay of all, and they contain no intermediate rows."""

from __future__ import annotations

import pickle
from collections import Counter
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Count, Database, Delta, Edit, Max, OrderedView, Relation, Sum, Table
from reactive.api.subscriptions.waiting import WaitingDeltas, delta_to_deliver
from reactive.engine.collections.order import EditedSequence
from reactive.engine.dataflow.merge_deltas import DeltaAccumulator
from tests.budget import examples

Rel = Relation[*tuple[Any, ...]]
ROWS = st.tuples(st.integers(0, 4), st.integers(0, 4))
CHANGES = st.tuples(st.sampled_from(["add", "add", "remove", "upsert", "delete"]), ROWS)
HISTORIES = st.lists(st.lists(CHANGES, min_size=1, max_size=4), min_size=1, max_size=14)


class State:
    """The knowledge of a subscriber that has only received deltas."""

    def __init__(self) -> None:
        self.rows: Counter[Any] = Counter()
        self.sequence: list[Any] = []
        self.by_key: dict[Any, Any] = {}

    def take(self, delta: Delta[Any], key: Any) -> None:
        if delta.is_snapshot:
            self.__init__()  # type: ignore[misc]
        for row, weight in delta.items():
            assert weight
            self.rows[row] += weight
        self.rows = Counter({row: n for row, n in self.rows.items() if n})
        for position, row, weight in delta.edits:
            if weight > 0:
                assert position <= len(self.sequence)
                self.sequence.insert(position, row)
            else:
                assert self.sequence.pop(position) == row
        if key is not None:
            for row in delta.removed:
                assert self.by_key.pop(key(row)) == row
            for old, new in delta.updated:
                assert key(old) == key(new)
                assert self.by_key[key(old)] == old
                self.by_key[key(old)] = new
            for row in delta.added:
                assert key(row) not in self.by_key
                self.by_key[key(row)] = row


def first(row: Any) -> Any:
    return row[0]


def queries(bag: Table[Any], keyed: Table[Any]) -> list[tuple[Rel, Any]]:
    """Return relations of every kind, each with the key of its rows."""
    return [
        (bag, None),
        (bag.select(lambda r: r[1]), None),
        (keyed, first),
        (keyed.where(lambda r: r[1] > 1), first),
        (bag.group_by(first).aggregate(Count(), Sum(lambda r: r[1])), first),
        (bag.aggregate(Max(lambda r: r[1])), lambda row: ()),
        (bag.order_by(lambda r: r[1]), None),
        (bag.order_by(lambda r: 0), None),
        (bag.order_by(lambda r: -r[1]).limit(3), None),
        (bag.order_by(first).limit(2, 1), None),
        (keyed.order_by(lambda r: r[1]).limit(3), first),
    ]


def run(bag: Table[Any], keyed: Table[Any], changes: Any) -> None:
    for what, row in changes:
        if what == "add":
            bag.add(row)
        elif what == "upsert":
            keyed.upsert(row)
        elif what == "delete" and row[0] in keyed:
            keyed.delete(row[0])
        elif what == "remove" and len(bag):
            bag.remove(sorted(bag)[hash(row) % len(bag)])


@examples(150)
@given(history=HISTORIES, snapshot=st.booleans(), cuts=st.lists(st.integers(1, 4), min_size=14))
def test_replaying_merged_deltas_gives_what_replaying_all_gives(
    history: Any, snapshot: bool, cuts: list[int]
) -> None:
    db = Database()
    bag, keyed = db.table(tuple, name="bag"), db.table(tuple, name="keyed", key=first)
    bag.add_all([(1, 2), (1, 2), (3, 0)])
    keyed.add((2, 2))
    relations = queries(bag, keyed)
    views = [relation.materialize() for relation, _ in relations]
    heard: list[list[Delta[Any]]] = [[] for _ in relations]
    before = [view.snapshot() for view in views]
    held = [
        view.subscribe(deltas.append, snapshot=snapshot)
        for view, deltas in zip(views, heard, strict=True)
    ]
    for changes in history:
        with db.transaction():
            run(bag, keyed, changes)
    for (_, key), view, deltas, start in zip(relations, views, heard, before, strict=True):
        every, some = State(), State()
        if not snapshot:
            edits = [Edit(place, row, 1) for place, row in enumerate(start)]
            begun = Delta(0, Counter(start).items(), None, edits, is_snapshot=True)  # type: ignore[arg-type]
            every.take(begun, key)
            some.take(begun, key)
        for group in grouped(deltas, cuts):
            merged = DeltaAccumulator(group[0])
            window = set(some.sequence)
            for delta in group[1:]:
                merged.add(delta)
            for delta in group:
                every.take(delta, key)
            one = merged.delta()
            if one is None:
                assert merged.is_nothing or every.rows == some.rows
            else:
                some.take(one, key)
                assert (one.version, one.is_snapshot) == (group[-1].version, group[0].is_snapshot)
                check_edits(one, window, set(some.sequence))
            assert (every.rows, every.by_key) == (some.rows, some.by_key)
            assert every.sequence == some.sequence
        assert every.rows == Counter(dict(view.zset().items()))
        if isinstance(view, OrderedView):
            assert some.sequence == list(view)
    del held


def grouped(deltas: list[Delta[Any]], cuts: list[int]) -> list[list[Delta[Any]]]:
    found, rest = [], list(deltas)
    for size in cuts:
        if rest:
            found.append(rest[:size])
            rest = rest[size:]
    return [*found, rest] if rest else found


def check_edits(delta: Delta[Any], old: set[Any], new: set[Any]) -> None:
    """Edits name no row that is in neither sequence."""
    for edit in delta.edits:
        assert edit.row in (old if edit.weight < 0 else new)


# Edits.


def edited(rows: list[Any], edits: list[Edit]) -> list[Any]:
    rows = list(rows)
    for position, row, weight in edits:
        if weight > 0:
            rows.insert(position, row)
        else:
            assert rows.pop(position) == row
    return rows


def random_edits(random: Random, rows: list[Any], count: int) -> list[Edit]:
    edits = []
    for _ in range(count):
        if rows and random.random() < 0.5:
            place = random.randrange(len(rows))
            edits.append(Edit(place, rows.pop(place), -1))
        else:
            place = random.randrange(len(rows) + 1)
            rows.insert(place, random.choice("abcdefgh"))
            edits.append(Edit(place, rows[place], 1))
    return edits


@pytest.mark.parametrize("seed", range(300))
def test_edits_of_edits_lead_from_the_old_sequence_to_the_new_one(seed: int) -> None:
    random = Random(seed)
    old = [random.choice("abcdefgh") for _ in range(random.randrange(9))]
    new = list(old)
    sequence = EditedSequence()
    for _ in range(random.randrange(5)):
        sequence.edit(random_edits(random, new, random.randrange(6)))
    merged = sequence.edits()
    assert edited(old, merged) == new
    assert len(merged) <= len(old) + len(new)
    assert sequence.edits() == merged


def test_rows_that_went_and_came_back_are_not_told() -> None:
    sequence = EditedSequence()
    for place, row in [(0, "a"), (0, "b"), (0, "c")]:
        sequence.edit([Edit(place, row, -1)])
    for row in "cab":  # of a b c, the most that stay in order are a and b
        sequence.edit([Edit(0 if row == "c" else 1 + "ab".index(row), row, 1)])
    assert sequence.edits() == [Edit(2, "c", -1), Edit(0, "c", 1)]


def test_a_snapshot_absorbs_what_follows_and_what_came_before() -> None:
    begun = Delta(3, [("a", 1), ("b", 2)], is_snapshot=True)
    merged = DeltaAccumulator(begun)
    merged.add(Delta(4, [("b", -2), ("c", 1)]))
    one = merged.delta()
    assert one == Delta(4, [("a", 1), ("c", 1)], is_snapshot=True)
    merged.add(Delta(9, [("z", 1)], is_snapshot=True))
    assert merged.delta() == Delta(9, [("z", 1)], is_snapshot=True)


def test_a_snapshot_of_nothing_is_told() -> None:
    merged = DeltaAccumulator(Delta(1, [("a", 1)], is_snapshot=True))
    merged.add(Delta(2, [("a", -1)]))
    assert not merged.is_nothing
    assert merged.delta() == Delta(2, [], is_snapshot=True)


def test_updates_compose() -> None:
    merged = DeltaAccumulator(Delta(1, [((1, "a"), -1), ((1, "b"), 1)], first))
    merged.add(Delta(2, [((1, "b"), -1), ((1, "c"), 1)], first))
    one = merged.delta()
    assert one is not None
    assert one.updated == (((1, "a"), (1, "c")),)
    merged.add(Delta(3, [((1, "c"), -1), ((1, "a"), 1)], first))
    assert merged.is_nothing
    assert merged.delta() is None


def test_a_merged_delta_is_one_like_any_other() -> None:
    merged = DeltaAccumulator(Delta(1, [((1, "a"), 1)], lambda row: row[0]))
    merged.add(Delta(2, [((1, "a"), -1), ((1, "b"), 1)], lambda row: row[0]))
    one = merged.delta()
    assert str(one) == "Delta(version=2, added=((1, 'b'),))"
    assert pickle.loads(pickle.dumps(one)) == one


# What waits.


def test_without_a_bound_all_wait() -> None:
    waiting = WaitingDeltas(None)
    for version in range(5):
        waiting.put(Delta(version, [(version, 1)]))
    assert len(waiting) == 5
    assert [delta.version for delta in taken(waiting)] == [0, 1, 2, 3, 4]


def test_of_n_that_wait_the_two_newest_are_merged() -> None:
    waiting = WaitingDeltas(3)
    for version in range(1, 7):
        waiting.put(Delta(version, [(version, 1)]))
        assert len(waiting) == min(version, 3)
    assert [(d.version, d.added) for d in taken(waiting)] == [
        (1, (1,)),
        (2, (2,)),
        (6, (3, 4, 5, 6)),
    ]


def test_what_comes_to_nothing_does_not_wait() -> None:
    waiting = WaitingDeltas(1)
    for version in range(6):
        waiting.put(Delta(version, [("a", -1 if version % 2 else 1)]))
        assert len(waiting) == (version + 1) % 2
    waiting.put(Delta(6, [], edits=[Edit(0, "a", -1)]))
    waiting.put(Delta(7, [], edits=[Edit(0, "a", 1)]))
    assert taken(waiting) == []


def taken(waiting: WaitingDeltas) -> list[Delta[Any]]:
    found = []
    while waiting:
        delta = delta_to_deliver(waiting.pop())
        found += [] if delta is None else [delta]
    return found


def test_a_stalled_reader_of_an_order_keeps_a_window_however_much_happens() -> None:
    table = Database().table(tuple, key=first)
    waiting = WaitingDeltas(1)
    top = table.order_by(lambda r: r[1], descending=True).limit(10).materialize()
    held = top.subscribe(waiting.put)
    for version in range(3_000):
        table.upsert((version % 50, version))
    (delta,) = taken(waiting)
    assert len(delta.edits) == 10
    assert [row for _, row, _ in delta.edits] == list(top)
    assert all(later.position > earlier.position for earlier, later in pairwise(delta.edits))
    del held

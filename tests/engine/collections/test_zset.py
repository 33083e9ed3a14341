"""A delta that only adds new rows, or only takes rows away, is applied as any other, or left."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive.engine.collections.index import Index
from reactive.engine.collections.whole_rows import delete_held, exchange_rows, insert_new
from reactive.engine.collections.zset import (
    KeyedBatch,
    UniformDelta,
    consolidate,
    integrate,
)
from reactive.engine.dataflow.leaves import ViewRows
from tests.moody import Moods
from tests.thresholds import WAYS, thresholds

ROWS = st.integers(0, 4)
PAIRS = st.lists(st.tuples(ROWS, st.integers(-2, 2)), max_size=6)
HELD = st.dictionaries(ROWS, st.integers(1, 2))


@given(HELD, PAIRS)
def test_a_delta_is_applied_or_nothing_is_done(
    held: dict[int, int], pairs: list[tuple[int, int]]
) -> None:
    for change in (insert_new, delete_held, exchange_rows):
        weights, expected = held.copy(), held.copy()
        if change(weights, pairs):
            integrate(expected, pairs)
            assert len({row for row, _ in pairs}) == len(pairs)
        assert weights == expected


@given(HELD, st.lists(ROWS, min_size=1, max_size=5), st.sampled_from([-2, -1, 1, 2]))
def test_a_batch_is_applied_as_its_pairs_are_or_nothing_is_done(
    held: dict[int, int], rows: list[int], weight: int
) -> None:
    batch = UniformDelta(rows, weight)
    assert Counter(dict(consolidate(batch))) == Counter(dict(consolidate(list(batch))))
    for change in (insert_new, delete_held):
        weights, expected = held.copy(), held.copy()
        if change(weights, batch):
            integrate(expected, batch)
        assert weights == expected
        weights, expected = held.copy(), held.copy()
        assert change(weights, batch) == change(expected, list(batch))
        assert weights == expected


@pytest.mark.parametrize("at", range(1, 7))
def test_a_batch_of_which_a_row_raises_changes_nothing(at: int) -> None:
    class Moody(Moods):
        def __hash__(self) -> int:
            self.mood()
            return hash(self.value)

    old, new = [Moody(n) for n in range(3)], [Moody(n) for n in range(3, 6)]
    for change, batch in ((insert_new, UniformDelta(new, 1)), (delete_held, UniformDelta(old, -1))):
        weights = dict.fromkeys(old, 1)
        Moody.calls, Moody.at = 0, at
        try:
            done = change(weights, batch)
        except ValueError:
            done = False
        Moody.at = 0
        left = [*old, *new] if change is insert_new else []
        assert list(weights) == (left if done else old) or set(weights) == set(old)


@pytest.mark.parametrize("at", range(1, 16))
def test_an_exchange_of_which_a_row_raises_changes_nothing(at: int) -> None:
    class Moody(Moods):
        def __hash__(self) -> int:
            self.mood()
            return 1

        def __eq__(self, other: object) -> bool:
            self.mood()
            return self is other

    old, new = [Moody(n) for n in range(3)], [Moody(n) for n in range(3, 5)]
    weights = dict.fromkeys(old, 2)
    delta = [(old[0], -2), (new[0], 1), (old[2], -2), (new[1], 1)]
    Moody.calls, Moody.at = 0, at
    try:
        done = exchange_rows(weights, delta)
    except ValueError:
        done = False
    Moody.at = 0
    assert set(weights) == ({old[1], *new} if done else set(old))


def test_an_exchange_hashes_no_row_more_than_twice() -> None:
    class Counted:
        hashes = 0

        def __hash__(self) -> int:
            Counted.hashes += 1
            return id(self)

    rows = [Counted() for _ in range(200)]
    view = ViewRows()
    view.step([(row, 1) for row in rows[:100]])
    Counted.hashes = 0
    delta = [pair for n in range(100) for pair in ((rows[n], -1), (rows[n + 100], 1))]
    assert view.step(delta) is delta
    assert Counted.hashes <= 3 * 100 + 2
    assert [row for row, _ in view.items()] == rows[100:]


@given(HELD)
def test_rows_that_all_go_and_new_ones_that_all_come_are_applied(held: dict[int, int]) -> None:
    weights: dict[int, int] = {}
    assert insert_new(weights, list(held.items())) and weights == held
    assert delete_held(weights, [(row, -weight) for row, weight in held.items()])
    assert not weights


class Stubborn:
    """A row that becomes unhashable once it is stored."""

    def __init__(self) -> None:
        self.asked = 0

    def __hash__(self) -> int:
        self.asked += 1
        if self.asked > 1:
            raise ValueError("no hash")
        return 1


def test_what_has_no_hash_leaves_all_as_it_was() -> None:
    empty: dict[object, int] = {}
    for held in (empty, {"held": 1}):
        stubborn = Stubborn()
        hash(stubborn)
        some = dict(held)
        with pytest.raises(ValueError, match="no hash"):
            insert_new(some, [("new", 1), (stubborn, 1)])
        assert some == held
    weights: dict[object, int] = {"held": 1, "kept": 2}
    stubborn = Stubborn()
    hash(stubborn)
    with pytest.raises(ValueError, match="no hash"):
        delete_held(weights, [("held", -1), (stubborn, -1)])
    assert weights == {"held": 1, "kept": 2}


@pytest.mark.parametrize("way", WAYS)
@given(st.lists(PAIRS, max_size=4))
def test_a_bag_emits_the_net_of_a_delta(way: str, deltas: list[list[tuple[int, int]]]) -> None:
    with thresholds(WAYS[way]):
        bag, held = ViewRows(), dict[int, int]()
        for delta in deltas:
            delta = [(row, weight) for row, weight in delta if weight]
            assert sorted(bag.step(delta)) == sorted(consolidate(list(delta)))
            integrate(held, delta)
            assert dict(bag.items()) == held and bag.size == sum(held.values())
            bag.commit()


@pytest.mark.parametrize("way", WAYS)
@given(st.lists(st.tuples(st.integers(0, 2), ROWS), max_size=40))
def test_an_index_filled_by_a_batch_is_one_that_takes_row_by_row(
    way: str, keyed: list[tuple[int, int]]
) -> None:
    with thresholds(WAYS[way]):
        filled, grown = Index(id), Index(id)
        objects = [(row,) for row in range(5)]
        keys, rows = [key for key, _ in keyed], [objects[row] for _, row in keyed]
        filled.extend(KeyedBatch(keys, rows, 1))
        for key, row in zip(keys, rows, strict=True):
            grown.add(key, row, 1)
        assert list(filled.items()) == list(grown.items())
        assert filled.rows == grown.rows
        filled.extend(KeyedBatch(keys, rows, -1))
        assert not filled.buckets and not filled.rows


def test_a_filled_index_of_rows_that_differ_has_all_forms() -> None:
    rows = [(number,) for number in range(60)]
    keys = [0, *[1] * 5, *[2] * 54]
    index = Index(id)
    index.extend(KeyedBatch(keys, rows, 1))
    assert [row for _, (row, _) in index.items()] == rows
    assert [type(bucket).__name__ for bucket in index.buckets.values()] == [
        "tuple",
        "FewRows",
        "WeightedRows",
    ]
    assert index.rows == 60 and list(UniformDelta(rows[:1], 1)) == list(index.pairs(0))

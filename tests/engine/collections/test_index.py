"""Indexes: adding a delta equals adding its pairs one by one, and can be undone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive.engine.collections.index import (
    FEW,
    NO_MATCH,
    NOTHING,
    Index,
    bucket_pairs,
    itself,
)
from reactive.engine.collections.trie import Trie, index_as_batch
from reactive.engine.collections.zset import KeyedBatch
from tests.budget import examples

OBJECTS = [("row", number) for number in range(FEW + 4)]
KEYS = [0, 1, "a", (1, 2), NO_MATCH]
STEPS = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from(KEYS), st.sampled_from(OBJECTS), st.sampled_from([1, 1, 1, -1, -1, 2])
        ),
        max_size=30,
    ),
    max_size=5,
)
MAKERS: dict[str, Callable[[], Any]] = {
    "by identity": lambda: Index(id),
    "by value": lambda: Index(itself),
    "trie by identity": lambda: Trie(id),
    "trie by value": lambda: Trie(itself),
}


def contents(index: Any) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for key, (row, weight) in index.items():
        found[key, row] += weight
    return found


def keyed(make: str, step: list[tuple[Any, Any, int]]) -> list[Any]:
    """Keys of two parts for a trie."""
    is_trie = make.startswith("trie")
    return [
        ((key, row[1] % 3) if is_trie and key is not NO_MATCH else key, (row, weight))
        for key, row, weight in step
    ]


@pytest.mark.long
@pytest.mark.parametrize("make", MAKERS)
@given(STEPS)
@examples(400)
def test_a_delta_is_added_as_its_pairs_are(
    make: str, steps: list[list[tuple[Any, Any, int]]]
) -> None:
    together, one_by_one = MAKERS[make](), MAKERS[make]()
    for step in steps:
        delta = keyed(make, step)
        together.change(delta)
        for key, (row, weight) in delta:
            one_by_one.add(key, row, weight)
        assert contents(together) == contents(one_by_one)
        assert together.rows == one_by_one.rows == len(contents(together))
    for key in {key for step in steps for key, _ in keyed(make, step)}:
        assert sorted(together.pairs(key)) == sorted(one_by_one.pairs(key))


class Odd:
    """A key that cannot be hashed."""

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("make", MAKERS)
@given(STEPS)
@examples(100)
def test_a_delta_that_raises_is_not_added(
    make: str, steps: list[list[tuple[Any, Any, int]]]
) -> None:
    index = MAKERS[make]()
    for step in steps:
        delta = keyed(make, step)
        index.change(delta)
        before, rows = contents(index), index.rows
        odd = (Odd(), 1) if make.startswith("trie") else Odd()
        with pytest.raises(TypeError):
            index.change([*delta, (odd, (OBJECTS[0], 1)), *delta])
        assert contents(index) == before
        assert index.rows == rows


@pytest.mark.parametrize("many", [1, 2, FEW, FEW + 1, 3 * FEW])
@pytest.mark.parametrize("differ", [True, False])
@pytest.mark.parametrize("handle", [id, itself])
def test_an_index_that_is_filled_at_once_is_what_rows_one_by_one_make(
    many: int, differ: bool, handle: Any
) -> None:
    rows = [(number // many, number) for number in range(5 * many)]
    batch = KeyedBatch([row[0] for row in rows], rows, 1)
    batch.differ = differ
    filled, added = Index(handle), Index(handle)
    filled.extend(batch)
    for key, (row, weight) in batch:
        added.add(key, row, weight)
    assert filled.buckets == added.buckets and filled.rows == added.rows == len(rows)
    assert list(map(type, filled.buckets.values())) == list(map(type, added.buckets.values()))
    held = index_as_batch(filled)
    assert held is not None and list(held) == list(filled.items())
    filled.add(0, rows[0], 1)
    assert index_as_batch(filled) is None
    assert filled.weight(0, rows[0]) == 2


@pytest.mark.parametrize("make", ["by identity", "by value"])
@given(STEPS)
@examples(200)
def test_an_index_is_known_as_it_was_before_a_delta(
    make: str, steps: list[list[tuple[Any, Any, int]]]
) -> None:
    index = MAKERS[make]()
    for step in steps:
        delta = keyed(make, step)
        had = contents(index)
        index.change(delta)
        find = index.find_before(delta)
        for key in KEYS:
            if key is not NO_MATCH:
                found = find(key, NOTHING)
                rows = () if found is NOTHING else bucket_pairs(found)
                assert dict(rows) == {row: n for (of, row), n in had.items() if of == key}


@pytest.mark.parametrize("count", [1, 2, FEW, FEW + 1])
def test_a_batch_of_new_rows_is_not_in_the_index_of_before(count: int) -> None:
    index, rows = Index(id), OBJECTS[: count + 1]
    index.add("a", rows[0], 1)
    batch = KeyedBatch(["a"] * count, rows[1:], 1)
    index.extend(batch)
    find = index.find_before(batch)
    assert [*bucket_pairs(find("a", NOTHING))] == [(rows[0], 1)]
    assert find("b", NOTHING) is NOTHING
    assert Counter(row for row, _ in index.pairs("a")) == Counter(rows)


BATCHES = st.lists(
    st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(OBJECTS)), max_size=30), max_size=6
)


@pytest.mark.parametrize("handle", [id, itself])
@given(BATCHES, st.lists(st.integers(0, 200), max_size=20))
@examples(300)
def test_a_batch_is_added_as_its_rows_are(
    handle: Any, batches: list[list[tuple[Any, Any]]], gone: list[int]
) -> None:
    together, one_by_one = Index(handle), Index(handle)
    for step in batches:
        batch = KeyedBatch([key for key, _ in step], [row for _, row in step], 1)
        had = contents(together)
        together.extend(batch)
        for key, (row, weight) in batch:
            one_by_one.add(key, row, weight)
        assert contents(together) == contents(one_by_one)
        assert together.rows == one_by_one.rows == len(contents(together))
        find = together.find_before(batch)
        for key in KEYS[:-1]:
            found = find(key, NOTHING)
            rows = () if found is NOTHING else bucket_pairs(found)
            assert dict(rows) == {row: n for (of, row), n in had.items() if of == key}
        for number in gone[: len(gone) // 2]:  # rows that go, so that buckets shrink
            there = sorted(contents(together), key=repr)
            if there:
                key, row = there[number % len(there)]
                together.add(key, row, -1)
                one_by_one.add(key, row, -1)


class Raising:
    """A key that is equal to no key, or raises when it is compared."""

    def __hash__(self) -> int:
        return hash("a")

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        raise ValueError("compared")


@pytest.mark.parametrize("handle", [id, itself])
@pytest.mark.parametrize("odd", [Odd(), Raising()])
@given(BATCHES)
@examples(100)
def test_a_batch_that_raises_is_not_added(
    handle: Any, odd: Any, batches: list[list[tuple[Any, Any]]]
) -> None:
    index = Index(handle)
    index.add("a", OBJECTS[0], 1)
    for step in batches:
        keys, rows = [key for key, _ in step], [row for _, row in step]
        index.extend(KeyedBatch(keys, rows, 1))
        before, count = contents(index), index.rows
        for place in (0, len(keys) // 2, len(keys)):
            among = [*keys[:place], odd, *keys[place:]]
            with pytest.raises((TypeError, ValueError)):
                index.extend(KeyedBatch(among, [OBJECTS[0], *rows], 1))
            assert contents(index) == before
            assert index.rows == count


def test_keys_of_a_batch_that_collide_leave_the_index_as_it_was() -> None:
    index = Index(id)
    index.add("b", OBJECTS[0], 1)
    with pytest.raises(ValueError, match="compared"):
        index.extend(KeyedBatch(["c", "a", Raising()], OBJECTS[:3], 1))
    assert contents(index) == {("b", OBJECTS[0]): 1}
    assert index.rows == 1

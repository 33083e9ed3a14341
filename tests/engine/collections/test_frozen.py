"""Frozen lists, sets and dictionaries read as the plain ones, whatever they are made of."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from contextlib import nullcontext
from random import Random
from typing import Any

import pytest

from reactive.engine.collections.frozen_dict import FrozenDict, FrozenSet
from reactive.engine.collections.long_tuple import FrozenList
from tests.engine.collections.test_long_tuple import check_shape
from tests.thresholds import LOWEST, thresholds

NAN = float("nan")


def check_changes(old: Any, new: Any, before: Any, now: Any) -> None:
    """Check that the old values plus the changes are the new values."""
    counts = Counter(before)
    for value, weight in new._changed_since(old):
        counts[value] += weight
    assert +counts == Counter(now)


def check_same(made: Any, plain: Any, kind: Any) -> None:
    """Check that `made` reads as the plain value, and equals a new one, with the same hash."""
    fresh = kind(plain)
    assert made == plain and plain == made and made == fresh
    assert hash(made) == hash(fresh) and len(made) == len(plain) and bool(made) == bool(plain)
    for same in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made)):
        assert same == made and type(same) is kind


@pytest.mark.parametrize("is_low", [False, True])
@pytest.mark.parametrize("size", [0, 40, 3000])
def test_a_list_that_is_changed_is_the_list(size: int, is_low: bool) -> None:
    random = Random(size)
    with thresholds(LOWEST) if is_low else nullcontext():
        plain = list(range(min(size, 300) if is_low else size))
        made: FrozenList[Any] = FrozenList(plain)
        for step in range(100):
            old, before = made, list(plain)
            if step == 50:
                assert hash(made) == hash(FrozenList(plain))  # from now on it is kept
            start = random.randrange(len(plain) + 1)
            stop = min(len(plain), start + random.choice((0, 0, 1, 1, 3, 200)))
            values = [random.randrange(9) for _ in range(random.choice((0, 1, 1, 2, 90)))]
            plain[start:stop] = values
            made = made.spliced(start, stop, values)
            assert list(made) == plain and list(old) == before
            assert (made == old) == (plain == before)
            check_changes(old, made, before, plain)
            if step % 20 == 0:
                check_same(made, plain, FrozenList)
                assert len(check_shape(made._tree)) == 1
                assert len(plain) > 64 or (
                    made == tuple(plain) and hash(made) == hash(tuple(plain))
                )


@pytest.mark.parametrize("is_low", [False, True])
def test_a_set_that_is_changed_is_the_set(is_low: bool) -> None:
    random = Random(5)
    with thresholds(LOWEST) if is_low else nullcontext():
        plain: set[Any] = set(range(150))
        made: FrozenSet[Any] = FrozenSet(plain)
        for step in range(100):
            old, before = made, set(plain)
            given = {random.randrange(400) for _ in range(random.choice((1, 1, 2, 80)))}
            plain ^= given
            made = made.plus({value: 1 if value in plain else -1 for value in given})
            assert made == plain and old == before
            check_changes(old, made, before, plain)
            if step % 20 == 0:
                check_same(made, plain, FrozenSet)
                assert hash(made) == hash(frozenset(plain)) and made == frozenset(plain)


@pytest.mark.parametrize("is_low", [False, True])
def test_a_dictionary_that_is_changed_is_the_dictionary(is_low: bool) -> None:
    random = Random(6)
    with thresholds(LOWEST) if is_low else nullcontext():
        plain: dict[Any, Any] = dict.fromkeys(range(150), 0)
        made: FrozenDict[Any, Any] = FrozenDict(plain)
        for step in range(100):
            old, before = made, dict(plain)
            gone = {random.randrange(300) for _ in range(random.choice((0, 1, 3, 40)))}
            put = {
                random.randrange(300): random.randrange(3) for _ in range(random.choice((0, 1, 9)))
            }
            for key in gone:
                plain.pop(key, None)
            plain.update(put)
            made = made.changed(put, gone)
            assert list(made.items()) == list(plain.items())
            assert list(old.items()) == list(before.items())
            assert (made == old) == (plain == before)
            for read in (dict.keys, dict.values, dict.items):
                name = read.__name__
                after = getattr(made, name)()
                assert list(after) == list(read(plain))
                check_changes(getattr(old, name)(), after, read(before), read(plain))
            key = random.randrange(300)
            assert made.get(key) == plain.get(key) and (key in made) == (key in plain)
            if step % 20 == 0:
                check_same(made, plain, FrozenDict)


def test_equal_values_are_one_and_nan_is_itself() -> None:
    assert FrozenList([NAN]) == FrozenList([-NAN]) and hash(FrozenList([NAN])) == hash(
        FrozenList([-NAN])
    )
    assert FrozenSet([NAN, -NAN]) == FrozenSet([NAN]) and NAN in FrozenSet([-NAN])
    assert FrozenDict({NAN: NAN})[-NAN] is FrozenDict({1: -NAN})[1]
    assert FrozenList([1]) == FrozenList([True]) and {FrozenList([1]), FrozenList([1.0])} == {
        FrozenList([1])
    }
    changed = FrozenList([1, 2])._changed_since(FrozenList([1.0, 2]))
    assert sorted((repr(value), weight) for value, weight in changed) == [("1", 1), ("1.0", -1)]


def test_they_read_as_the_plain_ones() -> None:
    values = FrozenList([3, 1, 2])
    assert (
        values.__add__([4]) == [3, 1, 2, 4]
        and values.__radd__([4]) == [4, 3, 1, 2]
        and values * 2 == [3, 1, 2] * 2
    )
    assert values[1:] == [1, 2] and values[::-1] == [2, 1, 3] and values < [4] and values >= [3]
    assert values.index(1) == 1 and values.count(3) == 1 and values.copy() is values
    tags = FrozenDict({"a": 1}) | {"b": 2}
    assert tags == {"a": 1, "b": 2} and {"c": 3} | tags == {"c": 3, **tags}
    assert tags.keys() & {"a", "z"} == {"a"} and ("a", 1) in tags.items() and 2 in tags.values()
    assert ("a", 2) not in tags.items() and list(reversed(tags)) == ["b", "a"]
    kinds = FrozenSet("abc")
    assert kinds | {"d"} == set("abcd") and kinds - {"a"} == set("bc") and kinds >= {"a"}
    assert kinds.union("d", "e") == set("abcde") and kinds.intersection("ab") == set("ab")
    assert kinds.issubset("abcd") and kinds.issuperset("a") and kinds.isdisjoint("z")
    assert kinds.difference("a") == set("bc") and kinds.symmetric_difference("ad") == set("bcd")


@pytest.mark.parametrize("made", [FrozenList([[]]), FrozenDict({1: []})])
def test_what_has_no_hash_says_so(made: Any) -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(made)

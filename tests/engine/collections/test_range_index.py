"""Ordered indexes and interval trees against brute force, over random histories."""

from __future__ import annotations

import operator
from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive.engine.collections.index import (
    ERROR_KEY,
    NOTHING,
    FewRows,
    Form,
    Range,
    WeightedRows,
)
from reactive.engine.collections.range_index import IntervalTree, MovedKey, RangeIndex
from reactive.engine.collections.zset import KeyedBatch, UnorderedError, family_of, interval, point
from tests.budget import examples
from tests.thresholds import thresholds

CLOSED = [(a, b) for a in (True, False) for b in (True, False)]
WIDTH = "reactive.engine.collections.range_index.WIDTH"


def reaches(closed: bool) -> Any:
    return operator.le if closed else operator.lt


def met(keys: Any, low: Any, high: Any, closed: tuple[bool, bool]) -> list[Any]:
    starts, ends = map(reaches, closed)
    return sorted(k for k in keys if starts(k[0], high) and ends(low, k[1]))


@pytest.mark.long
@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("width", [2, 3, 4, 32])
def test_a_tree_finds_what_a_scan_finds(closed: tuple[bool, bool], width: int) -> None:
    """Insert intervals one by one and in bulk, and delete them; some are empty, some reversed."""
    random = Random(width)
    with thresholds({WIDTH: width}):
        tree, keys = IntervalTree(closed), set[tuple[int, int]]()
        for _ in range(400):
            if keys and random.random() < 0.45:
                key = random.choice(sorted(keys))
                tree.remove(key)
                keys.discard(key)
            else:
                count = random.choice((1, 1, 1, 1, 20))
                new = {(random.randrange(60), random.randrange(60)) for _ in range(count)} - keys
                tree.update(new)
                keys |= new
            low = random.randrange(60)
            high = low + random.choice((0, 0, 5, -3))
            assert sorted(tree.between(low, high)) == met(keys, low, high, closed)
            assert len(tree) == len(keys)
        assert sorted(tree) == sorted(keys)
        for key in sorted(keys):
            tree.remove(key)
        assert (len(tree), list(tree), tree.between(0, 60)) == (0, [], [])


class Counted:
    """A number that counts its comparisons."""

    asked = 0
    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value

    def __lt__(self, other: Counted) -> bool:
        Counted.asked += 1
        return self.value < other.value

    def __le__(self, other: Counted) -> bool:
        Counted.asked += 1
        return self.value <= other.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Counted) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


def comparisons(size: int) -> list[int]:
    """Return the comparisons of an insert, of a look-up with three hits, and of a delete."""
    tree = IntervalTree((True, False))
    tree.update([(Counted(10 * n), Counted(10 * n + 30)) for n in range(size)])
    counts = []
    key = (Counted(105), Counted(106))
    for do in (lambda: tree.update([key]), lambda: tree.between(key[1], key[1])):
        Counted.asked = 0
        do()
        counts.append(Counted.asked)
    Counted.asked = 0
    tree.remove(key)
    return [*counts, Counted.asked]


def test_comparisons_grow_with_the_logarithm_of_the_intervals() -> None:
    small, large = comparisons(1_000), comparisons(100_000)
    assert all(b < 3 * a for a, b in zip(small, large, strict=True)), (small, large)


def test_a_tree_stays_low_when_thin_leaves_are_left_over() -> None:
    """Insert many intervals in one place, and delete nearly all of them, again and again."""
    with thresholds({WIDTH: 4}):
        tree, alive = IntervalTree((True, True)), []
        for turn in range(300):
            new = [(turn, n) for n in range(12)]
            for key in new:
                tree.update([key])
            for key in new[1:]:
                tree.remove(key)
            alive.append(new[0])
        assert sorted(tree) == alive
        depth, node = 0, tree._root
        while hasattr(node, "nodes"):
            depth, node = depth + 1, node.nodes[0]
        assert depth <= 9  # log2(300) and one


VALUES = [0, 1, 1.0, True, 2, Decimal("1.5"), Fraction(3, 2), 3, "a", "b", (1, "a"), (1.0, "b")]
VALUES += [date(2024, 1, 1), datetime(2024, 1, 1), datetime(2024, 1, 2)]
FORMS: list[tuple[Form, Form]] = [
    ("point", "point"),
    ("point", "interval"),
    ("point", "low"),
    ("point", "high"),
    ("interval", "point"),
    ("interval", "interval"),
]


def ends(key: Any, form: Form) -> tuple[Any, Any]:
    if form == "interval":
        return key[0], key[1]
    return (None if form == "high" else key), (None if form == "low" else key)


def meets(own: Any, other: Any, of: Range) -> bool:
    """Return True if a look-up must find `own`: it matches, or comparing it may raise."""
    (own_low, own_high), (low, high) = ends(own, of.own), ends(other, of.other)
    if family_of(own_low) != family_of(high if low is None else low):
        return True
    starts, stops = map(reaches, of.closed)
    return (high is None or starts(own_low, high)) and (low is None or stops(low, own_high))


def keys(form: Form) -> st.SearchStrategy[Any]:
    values = st.sampled_from(VALUES)
    if form != "interval":
        return values
    pairs = st.tuples(values, values)
    return pairs.filter(lambda pair: family_of(pair[0]) == family_of(pair[1]))


@given(st.data(), st.sampled_from(FORMS), st.sampled_from(CLOSED))
def test_an_index_finds_the_rows_that_a_scan_finds(
    data: st.DataObject, forms: tuple[Form, Form], closed: tuple[bool, bool]
) -> None:
    of = Range(*forms, closed)
    index, held = RangeIndex(of), Counter[tuple[Any, str]]()
    for _ in range(data.draw(st.integers(1, 12))):
        key, row = data.draw(keys(of.own)), data.draw(st.sampled_from("uv"))
        weight = data.draw(st.sampled_from((1, 1, -1, 2)))
        before = Counter(held)
        index.add(key, row, weight)
        held[key, row] += weight
        other = data.draw(keys(of.other))
        expected, earlier = Counter[str](), Counter[str]()
        for rows, found in ((held, expected), (before, earlier)):
            for (own, name), times in rows.items():
                if meets(own, other, of):
                    found[name] += times
        assert counted(index.pairs(other)) == no_zeros(expected)
        was = index.earlier([(key, (row, weight))])
        assert counted(was.pairs(other)) == no_zeros(earlier)
        assert counted(pairs_of(was.get(other, NOTHING))) == no_zeros(earlier)
    for (key, row), weight in list(held.items()):
        if weight:
            index.add(key, row, -weight)
    assert (index.rows, list(index.items()), index._orders) == (0, [], {})


@examples(300)
@given(st.data(), st.sampled_from(FORMS), st.sampled_from(CLOSED))
def test_a_moved_key_finds_what_only_its_new_ends_match(
    data: st.DataObject, forms: tuple[Form, Form], closed: tuple[bool, bool]
) -> None:
    """Rows of other families are found too, in both directions."""
    of = Range(*forms, closed)
    index, held = RangeIndex(of), Counter[tuple[Any, str]]()
    for _ in range(data.draw(st.integers(1, 12))):
        key, row = data.draw(keys(of.own)), data.draw(st.sampled_from("uv"))
        weight = data.draw(st.sampled_from((1, 1, -1, 2)))
        before = Counter(held)
        index.add(key, row, weight)
        held[key, row] += weight
        new = data.draw(keys(of.other))
        family = family_of(new[0] if of.other == "interval" else new)
        old = data.draw(
            keys(of.other).filter(
                lambda k: (
                    family_of(ends(k, "interval" if of.other == "interval" else "point")[0])
                    == family
                )
            )
        )
        moved = MovedKey(new, old)
        expected, earlier = Counter[str](), Counter[str]()
        for rows, found in ((held, expected), (before, earlier)):
            for (own, name), times in rows.items():
                is_other = family_of(own[0] if of.own == "interval" else own) != family
                if is_other or (meets(own, new, of) and not meets(own, old, of)):
                    found[name] += times
        assert counted(index.pairs(moved)) == no_zeros(expected)
        assert counted(pairs_of(index.find(moved, NOTHING))) == no_zeros(expected)
        was = index.earlier([(key, (row, weight))])
        assert counted(pairs_of(was.get(moved, NOTHING))) == no_zeros(earlier)


def test_a_moved_key_compares_no_more_than_the_rows_it_crosses() -> None:
    """Move a point over intervals of which half contain it, and an end over points."""
    for own, other in (("interval", "point"), ("point", "low"), ("point", "high")):
        index = RangeIndex(Range(own, other))  # type: ignore[arg-type]
        for n in range(2_000):
            index.add((n, n + 1_000) if own == "interval" else n, n, 1)
        list(index.pairs(MovedKey(1_000, 1_001)))
        for new, old in ((1_500, 1_503), (1_503, 1_500)):
            assert len(index.pairs(MovedKey(new, old))) <= 3, (own, other)


def counted(pairs: Any) -> dict[Any, int]:
    found = Counter[Any]()
    for row, weight in pairs:
        found[row] += weight
    return no_zeros(found)


def no_zeros(counter: Counter[Any]) -> dict[Any, int]:
    return {row: weight for row, weight in counter.items() if weight}


def pairs_of(found: Any) -> list[tuple[Any, int]]:
    if found is NOTHING:
        return []
    return list(found.values()) if isinstance(found, WeightedRows) else [(row, 1) for row in found]


def test_a_look_up_is_in_a_form_of_an_index() -> None:
    index = RangeIndex(Range("point", "interval"))
    assert index.find((0, 9), NOTHING) is NOTHING
    index.extend(KeyedBatch([1, 2, 2], ["a", "b", "c"], 1))
    assert index.find((0, 1), NOTHING) == "a"
    assert index.find((0, 9), NOTHING) == FewRows(["a", "b", "c"])
    index.add(3, "d", -1)
    found = index.find((2, 3), NOTHING)
    assert sorted(found.values()) == [("b", 1), ("c", 1), ("d", -1)]
    assert index.find(ERROR_KEY, NOTHING) is NOTHING


def test_rows_without_a_place_are_kept_under_their_mark() -> None:
    index = RangeIndex(Range("point", "point"))
    index.add(ERROR_KEY, "a", 1)
    assert (list(index.pairs(ERROR_KEY)), list(index.pairs(1)), index.rows) == ([("a", 1)], [], 1)
    index.add(ERROR_KEY, "a", -1)
    assert (list(index.pairs(ERROR_KEY)), index.rows) == ([], 0)


class Hostile:
    """A row that does not let itself be hashed."""

    def __hash__(self) -> int:
        raise ZeroDivisionError


def test_a_batch_of_which_a_row_raises_leaves_nothing() -> None:
    index = RangeIndex(Range("point", "point"))
    index.add(1, "a", 1)
    with pytest.raises(ZeroDivisionError):
        index.extend(KeyedBatch([0, 2, 3, 3], ["b", "c", "d", Hostile()], 2))
    assert list(index.items()) == [(1, ("a", 1))]
    assert [list(index.pairs(n)) for n in range(4)] == [[], [("a", 1)], [], []]


@pytest.mark.parametrize(
    "value",
    [None, float("nan"), Decimal("nan"), 1j, (1, None), (1, float("nan")), object, [1]],
    ids=repr,
)
def test_a_value_that_compares_with_nothing_has_no_family(value: Any) -> None:
    with pytest.raises(UnorderedError):
        point(value)
    with pytest.raises(TypeError):
        interval(1, value)


def test_a_signaling_nan_has_no_family() -> None:
    with pytest.raises(ArithmeticError):
        point(Decimal("snan"))


def test_values_of_a_family_compare_and_others_may_not() -> None:
    berlin, utc = ZoneInfo("Europe/Berlin"), UTC
    day = datetime(2024, 5, 1)
    assert family_of(day) != family_of(day.date())
    assert family_of(day) != family_of(day.replace(tzinfo=utc))
    assert family_of(day.replace(tzinfo=utc)) == family_of(day.replace(tzinfo=berlin))
    other = timezone(timedelta(hours=2))
    assert family_of(day.replace(tzinfo=utc)) == family_of(day.replace(tzinfo=other))
    assert family_of((1, 2)) != family_of((1, "a")) != family_of((1,))
    assert family_of(day.time()) != family_of(day)


class Whole(int):
    """An int subclass with comparisons of its own."""


def test_a_class_of_ones_own_has_no_family() -> None:
    with pytest.raises(UnorderedError):
        family_of(Whole(1))

"""Stand-ins for rows that differ in a bag: a loop over the bag has the same result for both."""

from __future__ import annotations

from collections import Counter
from operator import itemgetter
from typing import Any

import pytest

from reactive import Bag
from reactive.engine.collections.frozen_dict import FrozenDict, FrozenSet
from reactive.engine.collections.inner_changes import InnerBag
from reactive.engine.collections.long_tuple import FrozenList

INNER = InnerBag((itemgetter, 1), [(itemgetter, 0)], [])


def told(delta: Any) -> dict[str, int]:
    """Return the changes that a loop computes from a delta."""
    found: Counter[str] = Counter()
    for row, weight in delta:
        for value in row[1]:
            found[repr((row[0], value))] += weight
    return {made: weight for made, weight in found.items() if weight}


@pytest.mark.parametrize(
    ("old", "new", "rows"),
    [
        (("a", Bag("xy")), ("a", Bag("xyz")), 1),
        (("a", Bag("xy")), ("a", Bag("yz")), 2),
        (("a", Bag("xx")), ("a", Bag("x")), 1),
        (("a", Bag("xy")), ("b", Bag("xyz")), 2),
        ((1, Bag("xy")), (True, Bag("xyz")), 2),
        ((1, Bag("xy")), (1.0, Bag("xyz")), 2),
        ((1, Bag([1])), (1, Bag([1.0, 2])), 2),
        ((1, Bag([(1,)])), (1, Bag([(True,), 2])), 2),
        ((1, Bag(range(500))), (1, Bag(range(1, 500))), 1),
        (("a", ("x",)), ("a", ("x", "y")), 2),
        (("a", FrozenList("xy")), ("a", FrozenList("yxy")), 1),
        (("a", FrozenList("xy")), ("a", FrozenList("yx")), 0),
        (("a", FrozenSet("xy")), ("a", FrozenSet("yz")), 2),
        (("a", FrozenDict({"x": 1})), ("a", FrozenDict({"x": 2, "y": 1})), 1),
        (("a", FrozenList("xy")), ("a", Bag("xyz")), 2),
        (("a", FrozenList(range(500))), ("a", FrozenList(range(1, 500))), 1),
    ],
)
def test_what_stands_for_rows_makes_what_they_make(old: Any, new: Any, rows: int) -> None:
    delta = [(old, -1), (new, 1)]
    stands = INNER(delta)
    assert len(stands) == rows
    assert told(stands) == told(delta)


def test_only_as_many_as_go_come_in_their_place() -> None:
    old, new = ("a", Bag("xy")), ("a", Bag("xyz"))
    for weights in ((-1, 2), (-2, 1), (-2, 2), (1, 2), (-1, -1)):
        delta = list(zip((old, new), weights, strict=True))
        assert told(INNER(delta)) == told(delta)


def test_of_several_those_belong_together_that_differ_in_bags_alone() -> None:
    inner = InnerBag((itemgetter, 1), [], [])
    big, other = Bag(range(100)), Bag(range(200, 300))
    delta = [
        *((("a", big, 1), -1), (("a", other, 2), -1)),
        *((("a", other.plus({7: 1}), 2), 1), (("a", big.plus({-7: 1}), 1), 1)),
    ]
    assert [(row[1], weight) for row, weight in inner(delta)] == [([7], 1), ([-7], 1)]

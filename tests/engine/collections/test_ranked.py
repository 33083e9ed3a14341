"""Rows by key and by place, against a list that is sorted again after every change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database
from reactive.engine.collections.order import is_comparable_class, tie_key
from reactive.engine.collections.ranked import ABSENT, LOAD, RankedIndex
from reactive.engine.collections.ties import precedes
from reactive.engine.operators.order_by import OrderBy
from tests.budget import examples


@dataclass(frozen=True)
class Thing:
    """A value without an order."""

    key: int
    name: str


@dataclass(frozen=True, order=True)
class Placed:
    """A value with an order."""

    place: int
    part: Any


class Pair(NamedTuple):
    left: Any
    right: Any


class Color(Enum):
    RED = 1


class Model:
    """Keys, rows and arrivals in a list."""

    def __init__(self, *, descending: bool) -> None:
        self._descending = descending
        self.entries: list[tuple[Any, Any, int]] = []

    def rows(self) -> list[Any]:
        turned = -1 if self._descending else 1
        ordered = sorted(self.entries, key=lambda e: (tie_key(e[1]), e[2]))[::turned]
        return [row for _, row, _ in sorted(ordered, key=lambda entry: entry[0])]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("spread", [1, 3, 40, 100_000])
@pytest.mark.parametrize(
    "make", [lambda key, number: key, lambda key, number: Thing(key, str(number % 17))]
)
def test_they_stand_as_in_a_sorted_list(
    make: Callable[[int, int], Any], spread: int, descending: bool
) -> None:
    random = Random(spread)
    ranked, model = RankedIndex(descending=descending), Model(descending=descending)
    for arrival in range(1, 400):
        if model.entries and random.random() < 0.45:
            key, row, _ = random.choice(model.entries)
            found = ranked.place_of(key, row)
            assert found is not None
            assert ranked.at(ranked.rank(found, 10**9)) == row
            before = list(ranked)
            nth = ranked.nth(found, key)
            ranked.delete(found)
            ranked.tidy(found[0])
            ranked.restore(key, row, nth)
            assert list(ranked) == before
            found = ranked.place_of(key, row)
            assert found is not None
            ranked.delete(found)
            model.entries.remove([e for e in model.entries if e[1] == row][-1])
        else:
            key = random.randrange(spread)
            row = make(key, arrival)
            at = ranked.insert(key, row)
            model.entries.append((key, row, arrival))
            place = ranked.rank(at, 10**9)
            assert ranked.at(place) is row
            assert ranked.rank(at, 0) == 0 and ranked.rank(at, place + 1) == place
        rows = model.rows()
        assert list(ranked) == rows
        read = rows[::-1] if descending else rows
        assert [ranked.at(place) for place in range(len(ranked))] == read
        assert ranked.between(3, min(11, len(read))) == read[3:11]


def test_chunks_are_split_and_merged_and_go() -> None:
    ranked, random = RankedIndex(descending=False), Random(1)
    keys = random.sample(range(100_000), 6 * LOAD)
    for key in keys:
        ranked.insert(key, key)
    assert list(ranked) == sorted(keys)
    left = set(keys)
    for key in random.sample(keys, 6 * LOAD - 3):
        found = ranked.place_of(key, key)
        assert found is not None
        ranked.delete(found)
        ranked.tidy(found[0])
        left.remove(key)
        if len(left) % 97 == 0:
            assert list(ranked) == sorted(left)
            assert [ranked.at(place) for place in range(len(left))] == sorted(left)
    assert list(ranked) == sorted(left)
    for key in left:
        found = ranked.place_of(key, key)
        assert found is not None
        ranked.delete(found)
    assert not len(ranked) and not list(ranked)
    assert ranked.insert(1, 1) == (0, 0)


@pytest.mark.long
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("spread", [1, 3, 900])
@pytest.mark.parametrize(
    "make",
    [
        lambda n: Thing(n % 3, "x"),
        lambda n: (n % 7, None if n % 5 else float(n % 2)),
        lambda n: (n % 7, str(n % 5), float(n % 3)),
        lambda n: (n % 7, float("nan") if n % 5 == 1 else float(n % 2)),
        lambda n: n % 7,
        lambda n: n % 11 if n % 2 else Thing(n % 3, "x"),
        lambda n: Placed(n % 13, (str(n % 4), n % 3 == 0)),
    ],
)
def test_many_are_loaded_as_they_would_be_inserted(
    make: Callable[[int], Any], spread: int, descending: bool
) -> None:
    random = Random(3)
    keys = [random.randrange(spread) for _ in range(2_000)]
    rows = [make(n) for n in range(2_000)]
    loaded, inserted = RankedIndex(descending=descending), RankedIndex(descending=descending)
    loaded.load(keys, rows)
    for key, row in zip(keys, rows, strict=True):
        inserted.insert(key, row)
    assert list(map(id, loaded)) == list(map(id, inserted))
    assert len(loaded) == len(inserted) == len(rows)


def test_what_cannot_be_compared_changes_nothing() -> None:
    ranked = RankedIndex(descending=False)
    ranked.load([*range(5)], [*range(5)])
    with pytest.raises(TypeError):
        ranked.insert("a", "a")
    with pytest.raises(TypeError):
        ranked.place_of("a", "a")
    assert list(ranked) == [0, 1, 2, 3, 4]


class Counted:
    """A key that counts how often keys are compared."""

    asked = 0

    def __init__(self, value: int) -> None:
        self.value = value

    def __lt__(self, other: Counted) -> bool:
        Counted.asked += 1
        return self.value < other.value


@pytest.mark.parametrize("descending", [False, True])
def test_the_key_of_a_row_among_ties_is_compared_as_often_as_a_search_takes(
    descending: bool,
) -> None:
    ranked = RankedIndex(descending=descending)
    rows = [(n % 3, n) for n in range(300)]
    ranked.load([Counted(n % 3) for n in range(300)], rows)
    before, most = list(ranked), 0
    for row in rows[::7]:
        Counted.asked = 0
        found = ranked.place_of(Counted(row[0]), row)
        assert found is not None
        ranked.nth(found, Counted(row[0]))
        ranked.delete(found)
        ranked.insert(Counted(row[0]), row)
        most = max(most, Counted.asked)
    assert most <= 5 * 10  # two searches each to find it and to put it in, and one for its place
    assert list(ranked) == before


def test_rows_with_one_key_take_no_more_than_others() -> None:
    alike, apart = RankedIndex(descending=False), RankedIndex(descending=False)
    rows = [Thing(n, "x") for n in range(2_000)]
    alike.load([1] * 2_000, rows)
    apart.load([*range(2_000)], rows)
    assert alike.bytes() == apart.bytes()
    found = alike.place_of(1, Thing(1_990, "x"))
    assert found is not None and alike.at(1_990) == alike._rows[found[0]][found[1]]
    assert apart.bytes() < alike.bytes() <= apart.bytes() + 9 * LOAD


class Unlucky(Thing):
    """All have the same hash, and few are equal."""

    def __hash__(self) -> int:
        return 0x0101010101010101


@pytest.mark.parametrize("descending", [False, True])
def test_rows_with_one_key_and_one_hash_are_told_apart(descending: bool) -> None:
    ranked = RankedIndex(descending=descending)
    rows = [Unlucky(n % 40, str(n)) for n in range(100)]
    for row in rows:
        ranked.insert(1, row)
    for row in [*rows[::3], *rows[1::3], *rows[2::3]]:
        found = ranked.place_of(1, Unlucky(row.key, row.name))
        assert found is not None and ranked._rows[found[0]][found[1]] is row
        ranked.delete(found)
        assert ranked.place_of(1, row) is None or ranked.size == 0
    assert ranked.size == 0


VALUES = st.recursive(
    st.sampled_from(
        [None, True, False, 0, 1, 1.0, -0.0, float("nan"), "", "a", b"a", Decimal(1), Color.RED]
    )
    | st.just(Thing(1, "a"))
    | st.just(frozenset([1])),
    lambda inner: (
        st.tuples(inner)
        | st.tuples(inner, inner)
        | st.builds(Placed, st.integers(0, 2), inner)
        | st.builds(Pair, inner, inner)
    ),
    max_leaves=4,
)


@examples(400)
@given(VALUES, VALUES)
def test_one_row_precedes_another_as_their_keys_say(one: Any, other: Any) -> None:
    assert precedes(one, other) == (tie_key(one) < tie_key(other) and one is not other)
    if is_comparable_class(type(one)) or is_comparable_class(type(other)):
        return
    assert tie_key(one) == tie_key(other) == (9,)


def test_a_row_whose_key_has_changed_is_searched_for() -> None:
    ranked = RankedIndex(descending=False)
    ranked.load([n % 4 for n in range(20)], [*range(20)])
    assert ranked.search(7) == 3
    assert ranked.search(99) is ABSENT
    keys = {"a": 1, "b": 2, "c": 3}
    order = OrderBy(lambda row: keys[row])
    order.step([("a", 1), ("b", 1), ("c", 1)])
    order.commit()
    keys["a"] = 9
    assert order.step([("a", -1)]) == [("a", -1)]
    assert list(order.sequence()) == ["b", "c"]
    order.undo()
    assert list(order.sequence()) == ["a", "b", "c"]


@pytest.mark.parametrize("window", [(None, 0), (5, 0), (5, 3), (0, 0), (400, 100)])
@pytest.mark.parametrize("descending", [False, True])
def test_windows_follow_by_edits_and_can_be_taken_back(
    window: tuple[int | None, int], descending: bool
) -> None:
    limit, offset = window
    random = Random(7)
    order = OrderBy(lambda t: t.key, descending=descending, limit=limit, offset=offset)
    rows: list[Thing] = []
    shown: list[Thing] = []
    for turn in range(300):
        came = [Thing(random.randrange(60), str(random.randrange(5))) for _ in range(turn % 4 + 1)]
        went = random.sample(rows, min(len(rows), random.randrange(4)))
        delta = [(row, 1) for row in came] + [(row, -1) for row in went]
        before = list(order.sequence())
        order.step(delta)
        if random.random() < 0.3:
            order.undo()
            assert list(order.sequence()) == before == shown
            continue
        for place, row, weight in order.edits:
            if weight > 0:
                shown.insert(place, row)
            else:
                assert shown.pop(place) == row
        order.commit()
        rows += came
        for row in went:
            rows.remove(row)
        assert list(order.sequence()) == shown
        assert len(order) == len(shown)
    keys = sorted((row.key for row in rows), reverse=descending)
    end = None if limit is None else offset + limit
    assert [row.key for row in shown] == keys[offset:end]


def test_an_ordered_view_of_many_rows_is_a_sequence() -> None:
    db = Database()
    numbers = db.table(int)
    view = numbers.order_by(lambda n: -n).materialize()
    numbers.add_all(range(3_000))
    numbers.add(-5)
    numbers.remove(1_500)
    assert list(view) == [n for n in range(2_999, -1, -1) if n != 1_500] + [-5]
    assert view[1_499] == 1_499 and view[-1] == -5 and view[1_498:1_501] == [1_501, 1_499, 1_498]
    view.verify()

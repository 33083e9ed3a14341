"""Rows by key and by place, against a list that is sorted anew after every change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from reactive import Database
from reactive.collections.order import tie_key
from reactive.collections.ranked import ABSENT, LOAD, Ranked, Tied
from reactive.operators.order_by import OrderBy


@dataclass(frozen=True)
class Thing:
    """It has no order of its own."""

    key: int
    name: str


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
@pytest.mark.parametrize("spread", [3, 40, 100_000])
@pytest.mark.parametrize("make", [int, lambda key: Thing(key, str(key % 7))])
def test_they_stand_as_in_a_sorted_list(
    make: Callable[[int], Any], spread: int, descending: bool
) -> None:
    random = Random(spread)
    ranked, model = Ranked(descending=descending), Model(descending=descending)
    for arrival in range(1, 400):
        if model.entries and random.random() < 0.45:
            key, row, _ = random.choice(model.entries)
            found = ranked.place_of(key, row)
            assert found is not None
            assert ranked.at(ranked.rank(found[0], 10**9)) == row
            ranked.delete(*found)
            model.entries.remove([e for e in model.entries if e[1] == row][-1])
        else:
            key = random.randrange(spread)
            row = make(key)
            at = ranked.insert(key, row, arrival)
            model.entries.append((key, row, arrival))
            place = ranked.rank(at, 10**9)
            assert ranked.at(place) is row
            assert ranked.rank(at, 0) == 0 and ranked.rank(at, place + 1) == place
        ranked.settle()
        rows = model.rows()
        assert list(ranked) == rows
        read = rows[::-1] if descending else rows
        assert [ranked.at(place) for place in range(len(ranked))] == read
        assert ranked.between(3, min(11, len(read))) == read[3:11]


def test_chunks_are_split_and_merged_and_go() -> None:
    ranked, random = Ranked(descending=False), Random(1)
    keys = random.sample(range(100_000), 6 * LOAD)
    for number, key in enumerate(keys):
        ranked.insert(key, key, number)
    assert list(ranked) == sorted(keys)
    left = set(keys)
    for key in random.sample(keys, 6 * LOAD - 3):
        found = ranked.place_of(key, key)
        assert found is not None
        ranked.delete(*found)
        left.remove(key)
        if len(left) % 97 == 0:
            assert list(ranked) == sorted(left)
            assert [ranked.at(place) for place in range(len(left))] == sorted(left)
    assert list(ranked) == sorted(left)
    for key in left:
        found = ranked.place_of(key, key)
        assert found is not None
        ranked.delete(*found)
    assert not len(ranked) and not list(ranked)
    assert ranked.insert(1, 1, 1) == (0, 0, 0)


def test_many_are_loaded_as_they_would_be_inserted() -> None:
    random = Random(3)
    entries = [(random.randrange(900), Thing(n % 3, "x"), n) for n in range(1, 2_000)]
    loaded, inserted = Ranked(descending=True), Ranked(descending=True)
    loaded.load(entries)
    for key, row, arrival in entries:
        inserted.insert(key, row, arrival)
    assert list(loaded) == list(inserted)
    assert len(loaded) == len(inserted) == len(entries)


def test_what_cannot_be_compared_changes_nothing() -> None:
    ranked = Ranked(descending=False)
    ranked.load([(n, n, n) for n in range(5)])
    with pytest.raises(TypeError):
        ranked.insert("a", "a", 9)
    with pytest.raises(TypeError):
        ranked.place_of("a", "a")
    assert list(ranked) == [0, 1, 2, 3, 4]


def test_a_row_that_is_left_alone_takes_no_more_than_others() -> None:
    ranked = Ranked(descending=False)
    ranked.insert(1, "a", 1)
    size = ranked.bytes()
    ranked.insert(1, "b", 2)
    assert ranked.bytes() > size + 100
    found = ranked.place_of(1, "a")
    assert found is not None
    ranked.delete(*found)
    ranked.settle()
    assert ranked.bytes() == size
    assert not any(isinstance(slot, Tied) for slot in ranked._rows[0])


def test_a_row_whose_key_has_changed_is_searched_for() -> None:
    ranked = Ranked(descending=False)
    ranked.load([(n % 4, n, n) for n in range(20)])
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

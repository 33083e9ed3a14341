"""Ordered views against sorting, with small and large batches, and their edits."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database, Edit, Sum, Table
from reactive.engine.collections.order import fewest_edits
from reactive.engine.dataflow.schedule import LATEST
from reactive.engine.operators import order_by
from reactive.engine.transactions.transaction import Transaction
from tests.budget import SEED, examples
from tests.replica import Replica

WINDOWS = [(None, 0), (5, 0), (5, 3), (0, 0), (0, 4), (1000, 0)]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(("limit", "offset"), WINDOWS)
def test_an_ordered_view_is_the_sorted_rows(
    limit: int | None, offset: int, descending: bool
) -> None:
    random = Random(f"{limit} {offset} {descending}")
    table = Database().table(tuple, name="t")
    ordered = table.order_by(lambda r: r[0], descending=descending)
    view = (ordered if limit is None else ordered.limit(limit, offset)).materialize()
    replica = Replica(view)
    for _ in range(40):
        batch = [
            (random.randrange(20), random.randrange(50)) for _ in range(random.choice([1, 60]))
        ]
        held = list(table)
        with Transaction(table._engine):
            table.remove_all(random.sample(held, len(held) // 3))
            table.add_all(batch)
        rows = sorted(table)
        rows.sort(key=lambda r: r[0], reverse=descending)
        last = None if limit is None else offset + limit
        shown = rows[offset:last]
        assert list(view) == shown
        for row in random.sample(shown, min(5, len(shown))):
            assert view.index(row) == shown.index(row)
        for row in {*rows} - {*shown}:
            with pytest.raises(ValueError, match="is not in list"):
                view.index(row)
        replica.check()


@pytest.mark.parametrize("descending", [False, True])
def test_the_place_of_a_row_is_found_among_equal_keys_and_rows(descending: bool) -> None:
    random, nan = Random(5), math.nan
    keys = [nan, 0.0, -1.5, 2, 2.0, True, 7]
    table: Table[Any] = Database().table(tuple, name="t")
    view = table.order_by(lambda r: r[0], descending=descending).materialize()
    for _ in range(60):
        rows = [(random.choice(keys), random.choice("ab")) for _ in range(random.randrange(1, 9))]
        table.add_all(rows)
        table.discard(random.choice(rows))
        shown = list(view)
        assert [view.index(row) for row in shown] == [shown.index(row) for row in shown]
        for other in [(2, "c"), (nan,), "a", 2, None, [], (9.0, "a")]:
            with pytest.raises(ValueError, match="is not in list"):
                view.index(other)


def test_the_place_of_a_row_is_found_without_reading_all() -> None:
    class Number(int):
        compared = 0

        def __eq__(self, other: object) -> bool:
            Number.compared += 1
            return int(self) == other

        __hash__ = int.__hash__

    table: Table[Any] = Database().table(object, name="t")
    view = table.order_by(lambda n: int(n)).materialize()
    table.add_all(map(Number, range(5_000)))
    Number.compared = 0
    assert view.index(Number(4_000)) == 4_000
    assert Number.compared <= 2


def test_rows_that_do_not_compare_roll_a_large_batch_back() -> None:
    table: Table[Any] = Database().table(object, name="t")
    view = table.order_by(lambda r: r).limit(3).materialize()
    table.add_all([3, 1, 2])
    mixed: list[Any] = [*range(100), "a"]
    with pytest.raises(TypeError):
        table.add_all(mixed)
    assert list(view) == [1, 2, 3]
    table.add_all(range(-50, 0))
    assert list(view) == [-50, -49, -48]
    table.clear()
    assert view.stats().rows == 0


def test_rows_without_an_order_stand_as_they_arrived() -> None:
    class Thing:
        pass

    table = Database().table(Thing, identity=True)
    things = [Thing() for _ in range(5)]
    up = table.order_by(lambda t: 0).materialize()
    down = table.order_by(lambda t: 0, descending=True).materialize()
    for thing in things:
        table.add(thing)
    assert list(up) == list(down) == things


def test_an_ordered_view_is_a_sequence() -> None:
    table = Database().table(int, name="t")
    view = table.order_by(lambda n: n).materialize()
    table.add_all([3, 1, 2, 2])
    assert (view[0], view[-1], view[1:3]) == (1, 3, [2, 2])
    assert list(reversed(view)) == [3, 2, 2, 1]
    assert (view.index(2), view.count(2)) == (1, 2)
    with pytest.raises(IndexError):
        view[4]


def test_all_who_follow_an_order_get_its_edits_also_when_commits_are_code() -> None:
    db = Database()
    numbers = db.table(int)
    order = numbers.order_by(lambda n: -n).limit(3)
    told: list[list[Any]] = [[], [], []]
    views = [order.materialize(), order.materialize()]
    subscriptions = [view.subscribe(told[place].append) for place, view in enumerate(views)]
    subscriptions.append(order.subscribe(told[2].append))
    for number in range(LATEST + 10):
        numbers.add(number)
    for deltas in told:
        assert len(deltas) == LATEST + 10
        assert all(delta.edits for delta in deltas)
        assert [delta.edits for delta in deltas] == [delta.edits for delta in told[0]]


@dataclass(frozen=True, slots=True)
class Thing:
    """Rows with one key and no order of their own keep the order of their arrival."""

    key: int
    name: str


@pytest.mark.long
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_a_commit_that_is_taken_back_leaves_the_order_of_equal_keys(
    seed: int, descending: bool
) -> None:
    random = Random(seed)
    db = Database()
    table = db.table(Thing, identity=True)
    order = table.order_by(lambda t: t.key, descending=descending)
    views = [order.materialize(), order.limit(3).materialize(), order.limit(2, 1).materialize()]
    inverse = table.where(lambda t: t.key == 9).select(lambda t: 1 // 0).materialize()
    held: list[Thing] = []
    for number in range(40):
        before = [list(view) for view in views]
        left = held.copy()
        try:
            with db.transaction():
                for _ in range(random.randrange(1, 7)):
                    if left and random.random() < 0.5:
                        table.remove(left.pop(random.randrange(len(left))))
                    else:
                        left.append(Thing(random.randrange(3), random.choice("ab")))
                        table.add(left[-1])
                if number % 2:
                    table.add(Thing(9, "fails"))
        except ZeroDivisionError:
            assert [list(view) for view in views] == before
        else:
            held = left
        for view in views:
            view.verify()
    assert list(inverse) == []


def test_a_window_between_copies_of_a_row_does_not_tell_that_one_takes_the_place_of_another() -> (
    None
):
    numbers = Database().table(int)
    view = numbers.order_by(lambda n: n).limit(1, offset=1).materialize()
    numbers.add(5, 3)
    heard: list[Any] = []
    subscription = view.subscribe(heard.append)
    numbers.add(3)  # its place is before the window
    numbers.remove(3)
    assert list(view) == [5]
    assert not heard
    subscription.close()


def test_a_key_that_does_not_compare_with_itself_leaves_nothing_behind() -> None:
    numbers: Any = Database().table(int)
    view = numbers.order_by(lambda n: None).materialize()
    with pytest.raises(TypeError):
        numbers.add(1, 2)
    with pytest.raises(TypeError):
        numbers.add_all([1, 2])
    assert list(numbers) == list(view) == []
    numbers.add(1)
    with pytest.raises(TypeError):
        numbers.add(2)
    assert list(numbers) == list(view) == [1]
    numbers.update(1, 2)
    assert list(numbers) == list(view) == [2]
    numbers.remove(2)
    assert not list(view)


NUMBERS = st.integers(0, 9)
CHANGES = st.lists(st.tuples(NUMBERS, st.integers(-2, 3)), min_size=1, max_size=8)


@pytest.mark.long
@examples(400)
@given(
    histories=st.lists(CHANGES, min_size=1, max_size=6),
    limit=st.none() | st.integers(0, 6),
    offset=st.integers(0, 3),
    tied=st.booleans(),
    descending=st.booleans(),
)
def test_edits_replay_to_the_list_and_are_the_fewest(
    histories: list[list[tuple[int, int]]],
    limit: int | None,
    offset: int,
    tied: bool,
    descending: bool,
) -> None:
    db = Database()
    table = db.table(int)
    keyed = table.order_by(lambda n: n // 3 if tied else n, descending=descending)
    told: list[tuple[Edit, ...]] = []
    relation = keyed.limit(limit, offset) if limit is not None else keyed.limit(10**9, offset)
    view = relation.materialize()
    held = view.subscribe(lambda delta: told.append(delta.edits))
    for changes in histories:
        old, told[:] = list(view), []
        with db.transaction():
            for number, weight in changes:
                if weight > 0:
                    table.add(number, weight)
                else:
                    for _ in range(min(-weight, table.count(number))):
                        table.remove(number)
        new = list(view)
        edits = [edit for each in told for edit in each]
        replayed = list(old)
        for position, row, weight in edits:
            if weight > 0:
                replayed.insert(position, row)
            else:
                assert replayed.pop(position) == row
        assert replayed == new
        assert len(edits) == (Counter(old) - Counter(new) + (Counter(new) - Counter(old))).total()
    held.close()


def followed(
    histories: list[list[tuple[int, int]]], tied: float, limit: int, offset: int
) -> list[list[tuple[int, int, bool]]]:
    """Return the edits of a window, which a replica follows; row 3 is the value `tied`."""
    db, told = Database(), list[list[tuple[int, int, bool]]]()
    table = db.table(float)
    rows = {number: tied if number == 3 else float(number) for number in range(7)}
    view = table.order_by(lambda row: row if row in (0, 1, 2, 4, 5, 6) else 3)
    window = view.limit(limit, offset).materialize()
    replica = Replica(window)
    held = window.subscribe(
        lambda d: told.append([(e.position, e.weight, e.row is rows[3]) for e in d.edits])
    )
    for changes in histories:
        with db.transaction():
            for number, weight in changes:
                row = rows[number]
                for _ in range(-weight):
                    table.discard(row)
                if weight > 0:
                    table.add(row, weight)
        replica.check()
    held.close()
    return told


@examples(200)
@given(
    histories=st.lists(
        st.lists(
            st.tuples(
                st.sampled_from([3, 3, *range(7)]), st.integers(-2, 2).filter(lambda w: w != 0)
            ),
            max_size=6,
        ),
        max_size=8,
    ),
    limit=st.integers(1, 4),
    offset=st.integers(0, 3),
)
def test_copies_of_nan_are_told_like_those_of_any_other_row(
    histories: list[list[tuple[int, int]]], limit: int, offset: int
) -> None:
    nan, number = (followed(histories, tied, limit, offset) for tied in (math.nan, 3.5))
    assert nan == number


def test_a_copy_of_nan_that_stays_is_in_no_edit() -> None:
    histories = [[(3, 3), (0, 2)], [(0, -2)], [(3, -3)]]
    _, moved, gone = followed(histories, math.nan, limit=3, offset=1)
    assert moved == [(0, -1, False)]
    assert gone == [(1, -1, True), (0, -1, True)]


def test_a_row_that_leaves_and_one_that_takes_its_place_are_all_that_is_told() -> None:
    table = Database().table(tuple, key=lambda r: r[0])
    top = table.order_by(lambda r: r[1], descending=True).limit(3).materialize()
    table.add_all([("ann", 20), ("bob", 40), ("cyd", 10), ("dan", 102)])
    told: list[tuple[Edit, ...]] = []
    with top.subscribe(lambda delta: told.append(delta.edits)):
        table.upsert(("ann", 10))
    assert told == [(Edit(2, ("ann", 20), -1), Edit(2, ("ann", 10), 1))]


def test_a_batch_far_down_a_long_window_costs_what_it_changes() -> None:
    table = Database().table(int)
    window = table.order_by(lambda n: n).limit(10**6).materialize()
    table.add_all(range(0, 200_000, 2))
    told: list[int] = []
    with window.subscribe(lambda delta: told.append(len(delta.edits))):
        table.add_all(range(100_001, 100_041, 2))
        table.remove_all(range(100_001, 100_041, 2))
    assert told == [20, 20]


@pytest.mark.parametrize("seed", range(3))
def test_many_edits_of_a_long_sequence_are_followed_in_blocks(seed: int) -> None:
    random = Random(seed)
    old = list(range(5_000))
    new, edits = list(old), []
    for _ in range(3_000):
        position = random.randrange(len(new))
        if random.random() < 0.5:
            edits.append(Edit(position, new.pop(position), -1))
        else:
            edits.append(Edit(position, random.randrange(10**6, 10**7), 1))
            new.insert(position, edits[-1].row)
    few = fewest_edits(edits)
    for position, row, weight in few:
        if weight > 0:
            old.insert(position, row)
        else:
            assert old.pop(position) == row
    assert old == new
    assert len(few) <= len(edits)


@dataclass(frozen=True)
class Tied:
    """A row without an order, of which several have one key."""

    number: int
    key: float


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(("limit", "offset"), WINDOWS)
@pytest.mark.parametrize("chained", [False, True])
def test_rows_sorted_again_are_in_the_order_of_rows_changed_one_by_one(
    limit: int | None,
    offset: int,
    descending: bool,
    chained: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = Random(f"{limit} {offset} {descending} {SEED}")
    costs, views, replicas, tables = (1e9, 0), [], [], []
    for _ in costs:
        table = Database().table(Tied, name="t")
        rows = table.where(lambda r: r.number % 7 != 3) if chained else table
        ordered = rows.order_by(lambda r: r.key, descending=descending)
        view = (ordered if limit is None else ordered.limit(limit, offset)).materialize()
        tables.append(table)
        views.append(view)
        replicas.append(Replica(view))
    number = 0
    for _ in range(30):
        held = list(tables[0])
        gone = random.sample(held, random.randint(0, len(held)))
        come = [Tied(number + n, random.choice([1, 2, 2.5])) for n in range(random.randint(0, 50))]
        come += random.sample(gone, len(gone) // 5) + come[: random.choice([0, 0, 1])]
        number += len(come)
        for table, cost in zip(tables, costs, strict=True):
            monkeypatch.setattr(order_by, "EXCHANGE_COST", cost)
            with Transaction(table._engine):
                table.remove_all(gone)
                table.add_all(come)
        assert list(views[0]) == list(views[1])
        for view, replica in zip(views, replicas, strict=True):
            view.verify()
            replica.check()


def test_a_commit_that_fails_after_rows_were_sorted_again_restores_their_order() -> None:
    table: Table[Any] = Database().table(Tied, name="t")
    view = table.order_by(lambda r: r.key).materialize()
    totals = table.aggregate(Sum(lambda r: r.number)).materialize()
    rows = [Tied(n, n % 3) for n in range(60)]
    table.add_all(rows)
    before = list(view)
    bad: Any = Tied("a", 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError), Transaction(table._engine):
        table.remove_all(rows[::2])
        table.add_all([*(Tied(n, 1) for n in range(100, 130)), bad])
    assert (list(view), list(totals)) == (before, [sum(range(60))])
    table.remove_all(rows[::2])
    assert list(view) == [row for row in before if row.number % 2]

"""The behaviour of every store; a new store is tested by adding its factory to `STORES`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any

import pytest

from reactive.borders.durable.postgres_store import PostgresStore
from reactive.borders.durable.sqlite_store import SqliteStore
from reactive.borders.durable.store import (
    Change,
    Column,
    MemoryStore,
    Record,
    Schema,
    Store,
    Values,
)
from reactive.errors import DurabilityError

MakeStore = Callable[[], Store]
"""A function that returns a new object for the same store at each call."""


def _in_memory() -> MakeStore:
    store = MemoryStore()
    return lambda: store


def _in_sqlite() -> MakeStore:
    path = f"{tempfile.mkdtemp()}/store.db"
    return lambda: SqliteStore(path)


STORES: dict[str, Callable[[], MakeStore]] = {"memory": _in_memory, "sqlite": _in_sqlite}
"""Functions that make a new, empty store."""
ODD: tuple[Any, ...] = (
    *(None, 0, 1, 1.0, -0.0, 0.0, float("inf"), -1.5e-300, 2**63 - 1, -(2**63), 2**53 + 1),
    *(
        "",
        "a\0b",
        "1",
        "1.0",
        'it\'s "so"',
        "%s ? :a $1 \\",
        "\U0001f600",
        "é",
        "\n",
        b"",
        b"\0\xff",
    ),
)
"""Plain values that a store may take for others."""


@pytest.fixture(params=[*STORES, "postgres"])
def make(request: pytest.FixtureRequest) -> Iterator[MakeStore]:
    made: list[Store] = []
    if request.param == "postgres":
        factory: MakeStore = partial(PostgresStore, request.getfixturevalue("database"))
    else:
        factory = STORES[request.param]()

    def one() -> Store:
        made.append(factory())
        return made[-1]

    yield one
    for store in made:
        store.close()


def opened(make: MakeStore, keep: int = 0) -> Store:
    store = make()
    store.open(keep)
    return store


def schema(table: str, *columns: str, key: str | None = None) -> Schema:
    return Schema(table, tuple(Column(name, "Any", "plain") for name in columns), key, "a note")


def contents(store: Store, table: str) -> dict[tuple[tuple[str, Any], ...], int]:
    """The rows with their weights; 1 and 1.0 are two, and so are 0.0 and -0.0."""
    found: dict[tuple[tuple[str, Any], ...], int] = {}
    for batch, weight in store.rows(table):
        for row in batch:
            assert type(row) is tuple
            found[exact(row)] = found.get(exact(row), 0) + weight
    return found


def exact(row: Values) -> tuple[tuple[str, Any], ...]:
    return tuple((type(value).__name__, repr(value)) for value in row)


def test_it_begins_with_nothing_and_has_its_tables_when_opened_again(make: MakeStore) -> None:
    store = opened(make)
    assert (store.version(), dict(store.tables()), list(store.history(0))) == (0, {}, [])
    made = [schema("orders", "id", "town", key="id"), schema("Orders", "a", "A", "weight")]
    made += [schema("", "select"), schema('a "b" \0 c', 'x"y'), schema("sqlite_x", "rowid")]
    made += [schema("nothing"), schema("reactive_state", "value")]
    for each in made:
        store.create(each)
    store.close()
    assert list(opened(make).tables().values()) == made


def test_it_can_be_opened_again_as_soon_as_it_is_closed(make: MakeStore) -> None:
    for _ in range(10):
        opened(make).close()


def test_what_is_written_between_commits_has_no_place_in_the_history(make: MakeStore) -> None:
    store = opened(make, keep=10)
    store.create(schema("t", "id", key="id"))
    for version in (1, 2):
        store.write([Record(version, 0.0, [Change("t", come=[(version,)])])])
        for is_safe in (False, True):
            come = [(10 * version + is_safe,)]
            store.write([Record(version, 0.0, [Change("t", come=come)], False, is_safe)])
    assert (store.version(), [logged.version for logged in store.history(0)]) == (2, [1, 2])
    assert sorted(contents(store, "t")) == sorted(exact((n,)) for n in (1, 2, 10, 11, 20, 21))


@pytest.mark.parametrize("key", [None, "id"])
def test_plain_values_come_back_as_they_were(make: MakeStore, key: str | None) -> None:
    store = opened(make)
    store.create(schema("t", "id", "a", "b", key=key))
    rows = [(n, value, other) for n, value in enumerate(ODD) for other in ODD[n : n + 1]]
    store.write([Record(1, 0.0, [Change("t", come=rows)])])
    assert contents(store, "t") == {exact(row): 1 for row in rows}
    store.close()
    store = opened(make)
    assert contents(store, "t") == {exact(row): 1 for row in rows}
    for number, row in enumerate(rows):
        store.write([Record(number + 2, 0.0, [Change("t", gone=[row])])])
    assert contents(store, "t") == {}
    assert store.version() == len(rows) + 1


def test_keys_of_any_class_are_told_apart(make: MakeStore) -> None:
    store = opened(make)
    store.create(schema("t", "a", "id", key="id"))
    distinct = list(dict.fromkeys(key for key in ODD if key is not None))
    store.write([Record(1, 0.0, [Change("t", come=[("x", key) for key in distinct])])])
    swapped = [("y", key) for key in distinct]
    store.write([Record(2, 0.0, [Change("t", [("x", key) for key in distinct], swapped)])])
    assert contents(store, "t") == {exact(row): 1 for row in swapped}
    store.write([Record(3, 0.0, [Change("t", gone=swapped[1:])])])
    assert contents(store, "t") == {exact(swapped[0]): 1}


def test_rows_without_a_key_are_there_as_often_as_is_said(make: MakeStore) -> None:
    store = opened(make)
    store.create(schema("t", "a", "b"))
    row, other = (None, 1), (None, "1")
    store.write([Record(1, 0.0, [Change("t", come=[row], counted=[(other, 0, 3)])])])
    assert contents(store, "t") == {exact(row): 1, exact(other): 3}
    store.write([Record(2, 0.0, [Change("t", counted=[(row, 1, 2), (other, 3, 1)])])])
    assert contents(store, "t") == {exact(row): 2, exact(other): 1}
    store.write([Record(3, 0.0, [Change("t", gone=[other], counted=[(row, 2, 0)])])])
    assert contents(store, "t") == {}


def test_a_table_of_no_columns_counts_its_rows(make: MakeStore) -> None:
    store = opened(make)
    store.create(schema("t"))
    store.write([Record(1, 0.0, [Change("t", counted=[((), 0, 3)])])])
    store.write([Record(2, 0.0, [Change("t", counted=[((), 3, 1)])])])
    assert contents(store, "t") == {(): 1}
    store.write([Record(3, 0.0, [Change("t", gone=[()])])])
    assert contents(store, "t") == {}


def test_records_are_written_together(make: MakeStore) -> None:
    store = opened(make, keep=10)
    store.create(schema("a", "x"))
    store.create(schema("b", "x", key="x"))
    store.write(
        [
            Record(3, 1.5, [Change("a", come=[(1,)]), Change("b", come=[(1,), (2,)])]),
            Record(7, 2.5, [Change("a", gone=[(1,)], come=[(b"\xff",)])]),
        ]
    )
    assert (store.version(), contents(store, "a")) == (7, {exact((b"\xff",)): 1})
    logged = store.history(0)
    assert [(each.version, each.time) for each in logged] == [(3, 1.5), (7, 2.5)]
    assert {name: sorted(rows) for name, rows in logged[0].changes.items()} == {
        "a": [((1,), 1)],
        "b": [((1,), 1), ((2,), 1)],
    }
    assert sorted(logged[1].changes["a"], key=lambda pair: pair[1]) == [((1,), -1), ((b"\xff",), 1)]
    assert store.history(3) == logged[1:]


def test_of_the_history_the_last_commits_are_kept(make: MakeStore) -> None:
    store = opened(make, keep=2)
    store.create(schema("t", "x"))
    for version in range(1, 6):
        store.write([Record(version, 0.0, [Change("t", come=[(version,)])])])
    assert [logged.version for logged in store.history(0)] == [4, 5]
    store.close()
    assert [logged.version for logged in opened(make, keep=2).history(4)] == [5]


def test_the_history_has_no_gap_of_commits_that_were_not_kept(make: MakeStore) -> None:
    store = opened(make, keep=5)
    store.create(schema("t", "x"))
    for version, keep in enumerate([5, 5, 0, 0, 5, 5], 1):
        store.close()
        store = opened(make, keep)
        store.write([Record(version, 0.0, [Change("t", come=[(version,)])])])
    assert [logged.version for logged in store.history(0)] == [5, 6]


def test_a_table_that_is_made_again_has_other_columns_and_rows(make: MakeStore) -> None:
    store = opened(make)
    store.create(schema("t", "x", "y"))
    store.create(schema("other", "x"))
    store.write([Record(1, 0.0, [Change("t", come=[(1, 2)]), Change("other", come=[(5,)])])])
    store.create(schema("t", "z", key="z"), [([(1,), (2,)], 1)])
    assert contents(store, "t") == {exact((1,)): 1, exact((2,)): 1}
    store.create(schema("t", "z"), [([(1,), (2,)], 1), ([(3,)], 4)])
    assert contents(store, "t") == {exact((1,)): 1, exact((2,)): 1, exact((3,)): 4}
    store.write([Record(2, 0.0, [Change("t", gone=[(1,)])])])
    store.close()
    store = opened(make)
    assert contents(store, "t") == {exact((2,)): 1, exact((3,)): 4}
    assert contents(store, "other") == {exact((5,)): 1}
    assert store.tables()["t"] == schema("t", "z")


def test_a_table_that_is_dropped_is_gone(make: MakeStore) -> None:
    store = opened(make)
    store.create(schema("t", "x"))
    store.create(schema("other", "x"))
    store.write([Record(1, 0.0, [Change("t", come=[(1,)])])])
    store.drop("t")
    store.drop("never")
    store.close()
    store = opened(make)
    assert (list(store.tables()), store.version()) == (["other"], 1)
    store.create(schema("t", "x"))
    assert contents(store, "t") == {}


def test_one_writer_has_it(make: MakeStore) -> None:
    store = opened(make)
    with pytest.raises(DurabilityError, match="is open in another"):
        make().open(0)
    store.create(schema("t", "x"))
    store.close()
    store.close()
    assert list(opened(make).tables()) == ["t"]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_it_has_what_was_written(make: MakeStore, seed: int) -> None:
    """Random commits to a table with a key and one without, opened again now and then."""
    random = Random(seed)
    store = opened(make)
    store.create(schema("keyed", "id", "x", key="id"))
    store.create(schema("bag", "x", "y"))
    keyed: dict[int, Values] = {}
    bag: dict[Values, int] = {}
    for version in range(1, 40):
        store.write(
            [Record(version, 0.0, [_keyed_change(random, keyed), _bag_change(random, bag)])]
        )
        if random.random() < 0.2:
            store.close()
            store = opened(make)
        assert store.version() == version
        assert contents(store, "keyed") == {exact(row): 1 for row in keyed.values()}
        assert contents(store, "bag") == {exact(row): count for row, count in bag.items()}


def _keyed_change(random: Random, keyed: dict[int, Values]) -> Change:
    gone, come = [], []
    for key in random.sample(range(8), random.randint(0, 4)):
        if key in keyed:
            gone.append(keyed.pop(key))
        if random.random() < 0.7:
            keyed[key] = (key, random.choice(["a", None, 2.5, b"x"]))
            come.append(keyed[key])
    come = [row for row in come if row not in gone]
    gone = [row for row in gone if keyed.get(row[0]) != row]
    return Change("keyed", gone, come)


def _bag_change(random: Random, bag: dict[Values, int]) -> Change:
    gone, come, counted = [], [], []
    for x in random.sample(range(6), random.randint(0, 4)):
        row = (x, None if x % 2 else "odd")
        before, after = bag.get(row, 0), random.choice([0, 0, 1, 2, 3])
        if (before, after) == (1, 0):
            gone.append(row)
        elif (before, after) == (0, 1):
            come.append(row)
        elif before != after:
            counted.append((row, before, after))
        bag[row] = after
        if not after:
            del bag[row]
    return Change("bag", gone, come, counted)

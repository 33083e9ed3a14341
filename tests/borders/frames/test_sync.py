"""`table.sync(frame)` against `replace_all` of its rows: rows, views, deltas and versions."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import polars as pl
import pytest

from reactive import Count, Database, PlanError, Sum, TableError
from reactive.borders.frames import export, rows
from tests.borders.frames.cases import Named, Slotted, Struct

NAN = float("nan")
FIELDS = {"id": pl.Int64, "town": pl.String, "price": pl.Float64}


class Twins:
    """Two databases with a table and views: one is synced, all rows of the other are replaced."""

    def __init__(self, kind: Any, key: str | None) -> None:
        self.kind = kind
        self.tables, self.views, self.heard = [], [], [list[Any](), list[Any]()]
        self.subscriptions = []
        self.databases = [Database(), Database()]
        for db, heard in zip(self.databases, self.heard, strict=True):
            table = db.table(kind, name="rows", key=key)
            groups = table.group_by("town").aggregate(Count(), Sum(lambda r: r.id)).materialize()
            self.tables.append(table)
            self.views.append(groups)
            self.subscriptions.append(table.subscribe(partial(_hear, heard)))

    def put(self, rows: list[tuple[Any, ...]]) -> None:
        synced, replaced = self.tables
        before = dict(_counted(synced))
        frame = pl.DataFrame(rows, schema=FIELDS, orient="row")
        counts = synced.sync(frame if random.random() < 0.5 else frame.to_arrow())
        replaced.replace_all([self.kind(*row) for row in rows])
        self.check()
        after = dict(_counted(synced))
        every = before.keys() | after.keys()
        came = sum(max(0, after.get(row, 0) - before.get(row, 0)) for row in every)
        assert counts.added + counts.updated == came

    def change(self, act: Any) -> None:
        for table in self.tables:
            act(table)
        self.check()

    def check(self) -> None:
        synced, replaced = self.tables
        assert dict(_counted(synced)) == dict(_counted(replaced))
        assert sorted(self.views[0].zset().items(), key=repr) == sorted(
            self.views[1].zset().items(), key=repr
        )
        assert self.heard[0] == self.heard[1]
        assert self.databases[0].version == self.databases[1].version
        self.views[0].verify()


def _counted(table: Any) -> list[tuple[str, int]]:
    return [(repr(row), count) for row, count in table.zset().items()]


def _hear(heard: list[Any], delta: Any) -> None:
    heard.append(_told(delta))


def _told(delta: Any) -> Any:
    return (delta.version, sorted((repr(row), weight) for row, weight in delta))


def check_history(seed: int, steps: int) -> None:
    """Frames that have some rows of the last one, in other orders; and changes between them."""
    chance = random.Random(seed)
    kind, key = chance.choice([Slotted, Named, Struct]), chance.choice([None, "id"])
    twins = Twins(kind, key)
    rows: list[tuple[Any, ...]] = []
    size = chance.choice([3, 200])

    def row(number: int) -> tuple[Any, ...]:
        price = chance.choice([None, NAN, 0.0, -0.0, 1.5])
        return (number, chance.choice([None, "Ulm", "Bonn", "ä"]), price)

    for _ in range(steps):
        match chance.randrange(7):
            case 0:
                chance.shuffle(rows)
            case 1:
                rows = [r for r in rows if chance.random() < 0.7]
            case 2:
                rows = [row(r[0]) if chance.random() < 0.3 else r for r in rows]
            case 3:
                rows += [row(n) for n in range(size) if key is None or n not in {*_ids(rows)}]
            case 4 if key is None and rows:
                rows += chance.choices(rows, k=3)
            case 5 if rows:
                gone = kind(*rows.pop())
                twins.change(lambda table: table.remove(gone))
                continue
            case 6 if rows:
                _fail(twins, rows)
                continue
        twins.put(rows)


def _ids(rows: list[tuple[Any, ...]]) -> list[Any]:
    return [row[0] for row in rows]


def _fail(twins: Twins, rows: list[tuple[Any, ...]]) -> None:
    """A sync in a transaction that is undone leaves all as it was, and so does the next one."""
    table = twins.tables[0]
    frame = pl.DataFrame(rows[1:], schema=FIELDS, orient="row")
    with pytest.raises(ZeroDivisionError), twins.databases[0].transaction():
        table.sync(frame)
        raise ZeroDivisionError
    twins.check()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(25))
def test_histories(seed: int) -> None:
    check_history(seed, 12)


def test_rows_that_stay_become_no_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    rows_of = rows.rows_of_table

    def counting(table: Any, kind: Any) -> Any:
        made.append(len(table))
        return rows_of(table, kind)

    frame = pl.DataFrame({"id": range(5000), "price": [NAN, None, 1.0, 2.0, 3.0] * 1000})
    for key in ("id", None):
        table = Database().table_from(frame, key=key)
        table.sync(frame)
        held = {id(row) for row in table}
        exported: list[int] = []
        monkeypatch.setattr(rows, "rows_of_table", counting)
        monkeypatch.setattr(export, "columns_of", lambda *given: exported.append(1))
        other = frame.with_columns(
            price=pl.when(pl.col("id") == 7).then(9.0).otherwise(pl.col("price"))
        )
        assert table.sync(frame) == (0, 0, 0)
        assert table.sync(frame[::-1]) == (0, 0, 0)
        assert table.sync(other) == ((0, 0, 1) if key else (1, 1, 0))
        assert sum(made) == 2 and not exported
        assert len(held - {id(row) for row in table}) == 1
        made.clear()
        monkeypatch.undo()


def test_lists_and_structs_are_compared() -> None:
    first = [{"id": 1, "a": [1, None], "b": {"c": NAN}}, {"id": 2, "a": None, "b": None}]
    other = [{"id": 1, "a": [1, 2], "b": {"c": NAN}}, {"id": 2, "a": [], "b": None}]
    for key in ("id", None):
        table = Database().table_from(pl.DataFrame(first), key=key)
        assert table.sync(pl.DataFrame(first[::-1])) == (0, 0, 0)
        assert table.sync(pl.DataFrame(first)) == (0, 0, 0)
        assert sum(table.sync(pl.DataFrame(other))) == (2 if key else 4)
        assert repr(table.to_polars().sort("id").rows()) == repr(pl.DataFrame(other).rows())


def test_keys_that_are_no_field_and_tables_elsewhere() -> None:
    db = Database(strict=True)
    table = db.table(Slotted, key=lambda s: (s.id, s.town))
    rows = [{"id": 1, "town": "Ulm", "price": 1.0}, {"id": 1, "town": "Bonn", "price": 2.0}]
    assert table.sync(rows) == (2, 0, 0)
    rows[0]["price"] = 3.0
    assert table.sync(rows) == (0, 0, 1)
    assert table[1, "Ulm"].price == 3.0


def test_what_is_refused_changes_nothing() -> None:
    table = Database().table(Slotted, name="rows", key="id")
    table.add(Slotted(1, "Ulm", 1.0))
    twice = [{"id": 1, "town": "Ulm", "price": 1.0}, {"id": 1, "town": "Bonn", "price": 2.0}]
    for _ in range(2):
        with pytest.raises(TableError, match="key is taken"):
            table.sync(twice)
    with pytest.raises(PlanError, match="no column for price"):
        table.sync(pl.DataFrame({"id": [1], "town": ["Ulm"]}))
    with pytest.raises(TableError, match="not stored"):
        Database().table(Slotted, stored=False).sync(twice[:1])
    assert list(table) == [Slotted(1, "Ulm", 1.0)]
    failing = table.select(lambda r: 1 // (r.id - 7)).materialize()
    with pytest.raises(ZeroDivisionError):
        table.sync([{"id": 7, "town": "Ulm", "price": 1.0}])
    assert (list(table), list(failing)) == ([Slotted(1, "Ulm", 1.0)], [-1])
    assert table.sync(twice[:1]) == (0, 0, 0)


def test_a_key_tells_updates_of_a_table_without_one() -> None:
    heard: list[Any] = []
    table = Database().table(Named, name="rows")
    rows = [{"id": n, "town": "Ulm", "price": 1.0} for n in range(3)]
    table.sync(rows)
    with table.where(lambda r: r.id < 9).subscribe(heard.append):
        rows[1]["town"] = "Bonn"
        assert table.sync([rows[1], rows[2]], key="id") == (0, 1, 1)
    assert heard[0].updated == ((Named(1, "Ulm", 1.0), Named(1, "Bonn", 1.0)),)
    assert heard[0].removed == (Named(0, "Ulm", 1.0),)
    with pytest.raises(PlanError, match="no such field"):
        table.sync(rows, key="day")
    with pytest.raises(PlanError, match="another key"):
        Database().table(Named, key="id").sync(rows, key="town")


def test_plain_values_and_columns_of_other_types() -> None:
    words = Database().table(str, name="words")
    assert words.sync({"word": ["to", "be", "to"]}) == (3, 0, 0)
    assert words.sync({"word": ["be", "to", "or"]}) == (1, 1, 0)
    words.add("not")
    assert words.sync({"word": ["be"]}) == (0, 3, 0)
    pairs = Database().table(tuple[int, str], name="pairs")
    pairs.add((1, "a"))
    assert pairs.sync({"x": [2, 1], "y": ["b", "a"]}) == (1, 0, 0)
    for key in ("id", None):
        table = Database().table(Named, name="rows", key=key)
        table.add(Named(1, "Ulm", 2.0))
        assert table.sync([{"id": 1.0, "town": "Ulm", "price": 2}]) == (0, 0, 0)
        assert sum(table.sync([{"id": 1.5, "town": "Ulm", "price": 2}])) == 2
        assert list(table) == [Named(1.5, "Ulm", 2.0)]  # type: ignore[arg-type]

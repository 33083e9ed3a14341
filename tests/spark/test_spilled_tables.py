"""Tables with rows on disk behave as tables in the process: statements, errors, transactions.

Without Spark: the parts that read the tables are simulated in memory, only rows of tables are on
disk.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from reactive import Database, Sum, TableError
from reactive.borders.sources.batch import Batch
from reactive.engine.remote.fragments import Fragment
from reactive.engine.remote.remote import Entry
from reactive.engine.storage.row_check import KeyedStore
from tests.borders.offload.conftest import small_pieces
from tests.borders.offload.elsewhere import NO_VIEWS, Elsewhere, Failing
from tests.budget import seeds

spilled_keyed = pytest.importorskip(
    "spark_backend.parts.spilled_keyed", reason="pyarrow is not installed"
)
spilled = pytest.importorskip("spark_backend.parts.spilled")
fingerprints = pytest.importorskip("spark_backend.parts.spilled")


@dataclass(frozen=True, slots=True)
class Item:
    id: int
    price: float
    note: str | None = None


@dataclass
class OnDisk(Elsewhere):
    """Rows of tables go to disk."""

    folder: str = ""

    def spill(self, name: str, row_type: Any, rows: Any) -> Any:
        if isinstance(rows, KeyedStore):
            return spilled_keyed.SpilledKeyedStore(f"{self.folder}/{name}", row_type, rows)
        return spilled.SpilledStore(f"{self.folder}/{name}", rows)


def made(offload: Elsewhere | None, *, keyed: bool) -> tuple[Database, Any, Any]:
    db = Database(offload=offload)
    table: Any = db.table(Item, name="items", key="id" if keyed else None)
    view = table.group_by(lambda i: i.id % 3).aggregate(Sum(lambda i: i.price))
    return db, table, view.materialize("by kind")


def change(db: Database, table: Any, random: Random, *, keyed: bool) -> None:
    """One statement, or a transaction of several; some are refused."""
    item = Item(random.randrange(12), float(random.randrange(3)), random.choice([None, "a"]))
    other = Item(random.randrange(12), 9.0)
    choices = ["add", "remove", "update", "add_all", "remove_all", "discard", "transaction"]
    match random.choice(choices + ["upsert", "upsert_all", "delete", "replace"] * 2 * keyed):
        case "update":
            table.update(item, other)
        case "add_all":
            table.add_all([item, other])
        case "remove_all":
            table.remove_all([item, other])
        case "upsert_all":
            table.upsert_all([item, other, Item(item.id, 5.0), *map(Item, range(3), [1.0] * 3)])
        case "delete":
            table.delete(item.id)
        case "replace":
            table.replace_where(lambda i: i.id == item.id, [Item(item.id, 7.0)])
        case "transaction":
            with db.transaction():
                table.add(item)
                table.remove(item)
                table.add(other)
        case statement:
            getattr(table, statement)(item)


@pytest.mark.quick
@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("seed", seeds(12))
def test_a_table_on_disk_is_like_one_of_the_process(seed: int, keyed: bool, tmp_path: Path) -> None:
    random = Random(seed)
    db, table, view = made(OnDisk(folder=str(tmp_path)), keyed=keyed)
    twin_db, twin, twin_view = made(None, keyed=keyed)
    first = [Item(n, 1.0) for n in range(8)]
    for each in (table, twin):
        each.add_all(first)
    with patch.object(spilled_keyed, "WRITTEN", 3), patch.object(spilled, "WRITTEN", 3):
        view.offload()
        assert isinstance(
            table._store, spilled_keyed.SpilledKeyedStore if keyed else spilled.SpilledStore
        )
        for step in range(40):
            state = random.getstate()
            said = told(lambda: change(db, table, random, keyed=keyed))
            random.setstate(state)
            assert said == told(lambda: change(twin_db, twin, random, keyed=keyed))
            assert len(table) == len(twin)
            if keyed:
                wanted = random.randrange(12)
                assert table.get(wanted) == twin.get(wanted) and (wanted in table) == (
                    wanted in twin
                )
            if step == 30:  # somebody reads it here
                table.where(lambda i: i.price > 1).materialize("dear")
                assert isinstance(table._store, type(twin._store))
        assert Counter(table) == Counter(twin)
        assert sorted(view) == sorted(twin_view)
        view.verify()


def told(act: Any) -> str | None:
    try:
        act()
    except TableError as error:
        return str(error)
    return None


def test_rows_go_while_statements_and_transactions_find_each_of_them(tmp_path: Path) -> None:
    offload = OnDisk(folder=str(tmp_path))
    db, table, view = made(offload, keyed=True)
    table.add_all(Item(n, 1.0) for n in range(10))
    move, pieces = spilled_keyed.SpilledKeyedStore.move, list[int]()

    def moved(self: Any, count: int) -> int:
        pieces.append(count)
        left: int = move(self, 3)
        table.upsert(Item(left, 2.0))  # of one that has not moved, while there is any
        table.upsert(Item(9, float(left)))  # of one that has
        with pytest.raises(TableError, match="taken"):
            table.add(Item(5, 0.0))
        return left

    with patch.object(spilled_keyed.SpilledKeyedStore, "move", moved):
        view.offload()
    assert len(pieces) == 4 and len(table) == 10
    assert sorted(i.id for i in table) == list(range(10)) and table[9].price == 0.0
    assert not len(table._store._waiting)
    view.verify()
    db.close()


def test_what_a_statement_or_a_batch_of_a_source_replaces_is_fetched_at_once(
    tmp_path: Path,
) -> None:
    db, table, view = made(OnDisk(folder=str(tmp_path)), keyed=True)
    table.add_all(Item(n, 1.0) for n in range(50))
    view.offload()
    table._store._write()
    fetch, fetched = table._store._files.fetch, list[int]()

    def counted(places: Any) -> Any:
        wanted = list(places)
        fetched.append(len(wanted))
        return fetch(wanted)

    with patch.object(table._store._files, "fetch", counted):
        table.upsert_all([Item(n, 3.0) for n in range(40)])
        source: Any = db.ingest(None, {Item: table}, name="items")
        source.take(Batch([Item(45, 4.0), Item(46, 4.0), Item(99, 4.0)], deletes={Item: [47, 98]}))
    assert [n for n in fetched if n] == [40, 3]
    assert len(table) == 50 and table[45].price == 4.0 and 47 not in table
    view.verify()


class Counts(Failing):
    """A remote that stores nothing, as if its rows were on another machine."""

    def __init__(self, part: Fragment, of: Elsewhere) -> None:
        super().__init__(part, of)
        self.staged = 0

    def stage(self, number: int, entries: Sequence[Entry]) -> None:
        self.staged += len(entries)


@dataclass
class FarAway(OnDisk):
    """An offload that moves whole parts of a query away from this process."""

    def apart(self, fragment: Fragment) -> str | None:
        return None

    def begin(
        self, part: Fragment, name: str, views: Mapping[str, str] = NO_VIEWS, of: object = None
    ) -> Counts:
        made = Counts(part, self)
        self.begun.append(made)
        return made


@pytest.mark.parametrize("keyed", [True, False])
def test_a_move_takes_a_tenth_of_what_is_moved_beside_it_and_leaves_little(
    keyed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_pieces(monkeypatch, 200)
    for module in (spilled, spilled_keyed):
        monkeypatch.setattr(module, "WRITTEN", 500)
    monkeypatch.setattr(sys.modules["reactive.borders.offload.spilling"], "PIECE", 100)
    monkeypatch.setattr(fingerprints, "FEW", 200)
    moved_far(20, str(tmp_path / "first"), keyed=keyed)  # imports what it needs
    gc.collect()
    count = 40_000
    state, most, left = moved_far(count, str(tmp_path), keyed=keyed)
    assert state > 100 * count
    assert most - state < state / 10, (most, state)
    assert left < state / 3, (left, state)


def moved_far(count: int, folder: str, *, keyed: bool) -> tuple[int, int, int]:
    """Return the bytes of a state of `count` rows; the peak during its move; and the bytes
    afterwards."""
    offload = FarAway(folder=folder)
    db = Database(offload=offload)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        table: Any = db.table(Item, name="items", key="id" if keyed else None)
        kinds: Any = db.table(tuple, name="kinds")
        joined = table.join(kinds, on=lambda i, k: i.id % 100 == k[0])
        view = joined.group_by(lambda i, k: k[1]).aggregate(Sum(lambda i, k: i.price)).materialize()
        table.add_all(Item(n, n / 7) for n in range(count))
        kinds.add_all((n, n % 7) for n in range(100))
        state = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.reset_peak()
        view.offload()
        most = tracemalloc.get_traced_memory()[1] - before
        gc.collect()
        left = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    (there,) = offload.begun
    assert isinstance(there, Counts) and there.staged == count + 100 and len(table) == count
    return state, most, left

"""Commits of a group are written as their net changes; each is atomic like any other commit."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reactive import Count, Database, DurabilityError, TableError
from reactive.borders.durable import group
from reactive.borders.durable.sqlite_tables import TOGETHER

RAISES = -7
"""A value that a view cannot take."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row whose second field may hold anything."""

    key: int
    value: Any


def _checked(row: Row) -> bool:
    if row.value == RAISES:
        raise ValueError(row)
    return True


class Both:
    """Two durable tables that are changed at random, and their expected rows."""

    def __init__(self, path: Path, keys: int, random: Random) -> None:
        self.path = path
        self.db = Database(path, durability="exit")
        self.tables = [self.db.table(Row, name=name, key="key") for name in ("a", "b")]
        self.views = [t.where(_checked).aggregate(Count()).materialize() for t in self.tables]
        self.held: list[dict[int, Row]] = [{}, {}]
        self._keys, self._random = keys, random

    def change(self) -> None:
        """Commit one row or many; some commits are refused, or fail in a view."""
        random, held = self._random, [dict(each) for each in self.held]
        value = random.choice([1, 1.0, 2**80, "x", None, b"\xff", (1, 2), RAISES, print])
        count = random.choice([1, 1, 1, 2, 5, TOGETHER + 1])
        try:
            with self.db.transaction():
                for _ in range(count):
                    which, key = (
                        random.randrange(2),
                        random.choice([int, float])(random.randrange(self._keys)),
                    )
                    self._change_one(which, Row(key, random.choice([0, 1, value])), held[which])
        except (TableError, ValueError):
            return
        self.held = held

    def _change_one(self, which: int, row: Row, held: dict[int, Row]) -> None:
        table = self.tables[which]
        if row.key in held and self._random.random() < 0.4:
            table.remove(held.pop(row.key))
        else:
            table.upsert(row)
            held[row.key] = row

    def check(self) -> None:
        """Raise if the file differs from the tables."""
        self.db.flush()
        with sqlite3.connect(self.path) as file:
            for name, held in zip("ab", self.held, strict=True):
                found = {key for (key,) in file.execute(f"select key from {name}")}
                assert found == held.keys()
        assert [{row.key: row for row in table} for table in self.tables] == self.held


@pytest.mark.parametrize("keys", [3, 400])
def test_what_commits_come_to_is_in_the_file(tmp_path: Path, keys: int) -> None:
    random = Random(keys)
    both = Both(tmp_path / "shop.db", keys, random)
    for _ in range(300):
        both.change()
        if random.random() < 0.05:
            both.check()
    both.check()
    wanted = [sorted(map(repr, table)) for table in both.tables]
    both.db.close()
    with Database(tmp_path / "shop.db") as again:
        tables = [again.table(Row, name=name, key="key") for name in "ab"]
        assert [sorted(map(repr, table)) for table in tables] == wanted


def test_of_commits_that_fail_nothing_is_written(tmp_path: Path) -> None:
    db = Database(tmp_path / "shop.db", durability="exit")
    rows, other = (db.table(Row, name=name, key="key") for name in ("rows", "other"))
    view = rows.where(_checked).aggregate(Count()).materialize()
    for _ in range(200):  # until a generated function commits
        rows.add(Row(len(rows), 0))
    with pytest.raises(ValueError):
        rows.add(Row(1000, RAISES))
    other.add(Row(0, 0))  # as the same version, of another table
    with pytest.raises(TableError, match="cannot store"):
        rows.add(Row(1001, print))
    memory = db.table(Row, name="memory", key="key", durable=False)
    with pytest.raises(ValueError):
        rows.add(Row(1002, RAISES))
    memory.add(Row(0, 0))
    db.close()
    assert view is not None
    with Database(tmp_path / "shop.db") as again:
        assert sorted(row.key for row in again.table(Row, name="rows", key="key")) == [*range(200)]
        assert len(again.table(Row, name="other", key="key")) == 1


def test_a_thread_is_woken_once_for_many_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group, "DELAY", 60)
    with Database(tmp_path / "shop.db", durability="group") as db:
        woken: list[int] = []
        journal: Any = db._engine.journal
        monkeypatch.setattr(journal._has_work, "set", lambda: woken.append(1))
        rows = db.table(Row, name="rows", key="key")
        for n in range(500):
            rows.add(Row(n, n))
        assert woken == [1]
        monkeypatch.undo()
        db.flush()
        assert journal.is_settled()


@pytest.mark.parametrize("count", [1, TOGETHER + 3])
def test_rows_that_somebody_else_has_deleted_are_told(tmp_path: Path, count: int) -> None:
    db = Database(tmp_path / "shop.db", durability="exit")
    rows = db.table(Row, name="rows", key="key")
    rows.add_all(Row(n, n) for n in range(count))
    db.flush()
    with sqlite3.connect(tmp_path / "shop.db") as file:
        file.execute("delete from rows where key = 0")
    for row in list(rows):
        rows.remove(row)
    for act in (db.flush, db.close):
        with pytest.raises(DurabilityError, match=r"somebody else|has commits up to"):
            act()

"""Opening a database of many tables takes work and memory that grow with their number."""

from __future__ import annotations

import gc
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reactive import Database
from tests.counted_calls import calls_of

FEW, MANY = 40, 240
MOST = 70
"""Objects that the collector walks for a table; full collections take much of opening thousands."""


class Order(NamedTuple):
    id: int
    town: str | None


def _open(path: Path | None, count: int, row_type: Any) -> Database:
    db = Database() if path is None else Database(path)
    for number in range(count):
        db.table(row_type, name=f"t{number}")
    return db


def _opened_and_closed(path: Path | None, count: int) -> None:
    _open(path, count, Order).close()


def _stored(path: Path, row_type: Any) -> Path:
    row = 1 if row_type is int else Order(1, "Bonn")
    with Database(path, durability="exit") as db:
        for number in range(MANY):
            db.table(row_type, name=f"t{number}").add(row)
    return path


@pytest.mark.parametrize("row_type", [int, Order])
@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_table_takes_few_objects(tmp_path: Path, kind: str, row_type: type) -> None:
    path = None if kind == "memory" else _stored(tmp_path / "x.db", row_type)
    _open(path, FEW, row_type).close()
    found = []
    for count in (FEW, MANY):
        gc.collect()
        before = len(gc.get_objects())
        with _open(path, count, row_type):
            gc.collect()
            found.append(len(gc.get_objects()) - before)
    assert found[1] - found[0] <= MOST * (MANY - FEW)


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_opening_is_linear(tmp_path: Path, kind: str) -> None:
    path = None if kind == "memory" else _stored(tmp_path / "x.db", Order)
    _open(path, FEW, Order).close()
    few, many = (calls_of(partial(_opened_and_closed, path, n)) for n in (FEW, MANY))
    assert many <= MANY / FEW * few

"""Files that were written before modules moved are read after it, and go on where they were."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reactive import Bag, Database
from tests.old_files import written

ROOT = Path(__file__).parents[2]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    yield Path(shutil.copy(written.FILE, tmp_path / "shop.db"))


def test_a_durable_file_has_its_rows_and_goes_on(file: Path) -> None:
    alerts, heard = written.Told(), list[Any]()
    with Database(file, keep=100) as db, written.shop(db, alerts, heard) as (orders, kept):
        assert sorted(orders, key=lambda o: o.id) == written.ORDERS
        (fruit,) = (table for table in db.tables() if table.name == "fruit")
        assert [(row.id, row.name, str(row.price)) for row in sorted(fruit)] == [
            (1, "apple", "1.50"),
            (2, "fig", "2.25"),
        ]
        orders.add(written.Order(9, "b", Bag()))
        db.flush()
        assert sorted(kept) == [(0, 2), (1, 3)]
        kept.verify()
        assert alerts == [(1, [(("b", 2), -1), (("b", 3), 1)])]
        assert [(delta.number, delta.items()) for delta in heard] == [
            (2, ((("b", 2), -1), (("b", 3), 1)))
        ]
    with Database(file, readonly=True) as db:
        assert len(db.table(written.Order, name="orders", key="id")) == 5


def test_a_pickle_has_its_values() -> None:
    found = pickle.loads(written.PICKLE.read_bytes())
    wanted = written.values()
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        assert repr(found[name]) == repr(value), name
        if name not in ("error", "deltas"):  # equal to nothing but themselves
            assert found[name] == value, name
        assert type(found[name]) is type(value), name
        assert pickle.loads(pickle.dumps(found[name])).__class__ is type(value)


def test_queries_have_the_fingerprints_of_before() -> None:
    """Run in a separate process, where no other query ran."""
    code = "import json, tests.old_files.written as w; print(json.dumps(w.fingerprints()))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert json.loads(done.stdout) == json.loads(written.FINGERPRINTS.read_text())


def test_queries_that_ran_before_change_no_fingerprint() -> None:
    """A constant of a plan may be used, hashed and referred to by the queries of a process."""
    written.values()
    db = Database()
    orders: Any = db.table(written.Order, name="orders", key="id")
    nested = orders.nest(same=lambda o: orders.where(lambda p: p.customer > o.customer))
    first = nested.select(lambda order, same: same).distinct().materialize()
    orders.add_all(written.ORDERS)
    (empty,) = (bag for bag in first if not bag)
    referred = weakref.ref(empty)
    assert len(empty) == 0 and empty.difference(Bag()) == {} and hash(empty) == hash(Bag())
    assert written.fingerprints() == json.loads(written.FINGERPRINTS.read_text())
    assert referred() is empty

"""Two-phase commits of durable tables, with the commit of another system in between."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from reactive import Database, DurabilityError
from reactive.borders.durable.sqlite_store import SqliteStore
from reactive.engine.transactions.prepared import PreparedTransaction
from tests.borders.durable.faulty import Faults


@pytest.mark.parametrize("durability", ["commit", "group", "exit"])
@pytest.mark.parametrize("is_read", [False, True])
def test_it_is_in_the_file_when_it_is_published(
    tmp_path: Path, durability: Any, *, is_read: bool
) -> None:
    with Database(tmp_path / "shop.db", durability=durability) as db:
        words = db.table(str, name="words")
        view = words.materialize()
        for word, stands in [("to", True), ("be", False), ("or", True)]:
            with PreparedTransaction(db._engine) as prepared:
                words.add(word)
                prepared.prepare()
                if is_read:
                    assert word not in view
                if stands:
                    prepared.publish()
        assert (sorted(view), db.version) == (["or", "to"], 2)
    with Database(tmp_path / "shop.db") as db:
        assert (sorted(db.table(str, name="words")), db.version) == (["or", "to"], 2)


def test_a_file_that_does_not_take_what_stands_elsewhere_takes_nothing_any_more(
    tmp_path: Path,
) -> None:
    def fails() -> None:
        raise sqlite3.OperationalError("disk I/O error")

    faults = Faults(0, fails)
    store = SqliteStore(tmp_path / "shop.db", connect=faults.connect)
    db = Database(store=store)
    words = db.table(str, name="words")
    view = words.materialize()
    words.add("to")
    with PreparedTransaction(db._engine) as prepared:
        words.add("be")
        prepared.prepare()
        faults._at = faults.calls + 1
        prepared.publish()
    assert sorted(view) == ["be", "to"]
    if "be" not in _stored(tmp_path):
        with pytest.raises(DurabilityError, match="does not have commit 2, which stands elsewhere"):
            words.add("or")
        assert sorted(words) == ["be", "to"]
    db.close()


def _stored(folder: Path) -> list[str]:
    reader = sqlite3.connect(folder / "shop.db")
    try:
        return [word for (word,) in reader.execute("select value from words")]
    finally:
        reader.close()

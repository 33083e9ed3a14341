"""Rows with several copies: some copies are removed."""

from __future__ import annotations

from pathlib import Path

from reactive import Database


def test_some_of_several_equal_rows_go(tmp_path: Path) -> None:
    """After a restart the table has the remaining copies, and none of the removed ones."""
    with Database(tmp_path / "shop.db") as db:
        words = db.table(tuple, name="words")
        words.add_all([("x",), ("x",), ("x",), ("y",)])
        words.remove_all([("x",), ("x",)])
    with Database(tmp_path / "shop.db") as db:
        assert sorted(db.table(tuple, name="words")) == [("x",), ("y",)]

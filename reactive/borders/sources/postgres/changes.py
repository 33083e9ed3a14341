"""The changes of a transaction, as one batch: what each row is at its end.

    by key     key -> the row, or None if it goes
    by count   rows that come, rows that go; where the whole rows are told

State: the rows that one transaction has changed, each once by its key.
Cost:  O(changes); of a TRUNCATE O(rows that the table has).
"""

from __future__ import annotations

from typing import Any

from reactive.borders.sources.batch import Batch, Refused, Token
from reactive.borders.sources.postgres import pgoutput
from reactive.borders.sources.postgres.connection import Connection
from reactive.borders.sources.postgres.feed import Feed, fit


class Changes:
    """Collects what one transaction does to one table."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self.is_cleared = False
        """Whether all rows went that were there before."""
        self._rows: dict[Any, Any] = {}
        self._come: list[Any] = []
        self._gone: list[Any] = []

    def insert(self, change: pgoutput.Insert) -> None:
        """A row comes."""
        feed = self._feed
        row = feed.row(change.new)
        if feed.is_keyed:
            self._rows[feed.key(row)] = row
        else:
            self._come.append(row)

    def update(self, change: pgoutput.Update, connection: Connection) -> None:
        """A row is another one now."""
        feed = self._feed
        if not feed.is_keyed:
            assert change.old is not None
            self._gone.append(_told(feed.row(change.old)))
            self._come.append(feed.with_unchanged(change, self._held, connection))
            return
        row = (
            feed.with_unchanged(change, self._held, connection)
            if change.unchanged
            else feed.row(change.new)
        )
        if change.old is not None:
            self._rows[feed.key_of_old(change.old)] = None
        if row is None:
            self._rows[feed.key_of_old(change.new)] = None
        else:
            self._rows[feed.key(row)] = row

    def delete(self, change: pgoutput.Delete) -> None:
        """A row goes."""
        feed = self._feed
        if feed.is_keyed:
            self._rows[feed.key_of_old(change.old)] = None
        else:
            self._gone.append(_told(feed.row(change.old)))

    def truncate(self) -> None:
        """All rows go."""
        self.is_cleared = True
        self._rows.clear()
        self._come.clear()
        self._gone.clear()

    def by_key(self) -> tuple[list[Any], list[Any]]:
        """Rows that are there at the end, and keys that have none."""
        rows = [row for row in self._rows.values() if row is not None]
        gone = [key for key, row in self._rows.items() if row is None]
        if self.is_cleared:
            held = (self._feed.key(row) for row in self._feed.table)
            gone += [key for key in held if key not in self._rows]
        return rows, gone

    def by_count(self) -> tuple[list[Any], list[Any]]:
        """Rows that come, and rows that go."""
        return self._come, [*self._feed.table, *self._gone] if self.is_cleared else self._gone

    def _held(self, key: Any) -> Any:
        """The row of a key as the transaction has it so far."""
        if key in self._rows or self.is_cleared:
            row = self._rows.get(key)
            return None if isinstance(row, Refused) else row
        return self._feed.table.get(key)


def batch_of(changes: dict[int, Changes], feeds: dict[int, Feed], token: Token, made: float) -> Any:
    """All of a transaction."""
    upserts: dict[type, list[Any]] = {}
    refused: dict[type, list[Refused]] = {}
    deletes: dict[type, list[Any]] = {}
    removes: dict[type, list[Any]] = {}
    for number, each in changes.items():
        feed = feeds[number]
        rows, gone = each.by_key() if feed.is_keyed else each.by_count()
        upserts[feed.row_type], unfit = fit(rows)
        if unfit:
            refused[feed.row_type] = unfit
        (deletes if feed.is_keyed else removes)[feed.row_type] = gone
    return Batch(
        upserts,
        deletes=deletes,
        removes=removes,
        refused=refused,
        anew=[feeds[number].row_type for number, each in changes.items() if each.is_cleared],
        token=token,
        made=made,
    )


def _told(row: Any) -> Any:
    """A row that goes; of one that was refused, what tells it apart."""
    return row.given if isinstance(row, Refused) else row

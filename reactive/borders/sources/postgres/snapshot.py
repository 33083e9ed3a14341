"""The rows of tables as they were when a slot was made: batches of what differs from what is held.

    rows held   1 2 3      of nothing, all rows come: in batches, and nothing is compared
    snapshot    2 3 4      2 and 3 are passed over, 4 comes; at the end 1 goes

So a snapshot that was broken off is simply taken again, and one that is taken anew, after the slot
was lost, changes only what has changed meanwhile.

State:  the keys or rows that were held and have not been seen yet; with `whole` what differs.
Cost:   O(rows), each read once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from reactive.borders.sources.batch import Batch, Refused, Token
from reactive.borders.sources.postgres.connection import Connection
from reactive.borders.sources.postgres.feed import Feed, fit
from reactive.borders.sources.postgres.rows import native_types
from reactive.engine.runtime.postgres import literal
from reactive.engine.runtime.sql_names import quoted


def snapshot(
    connection: Connection,
    feeds: list[Feed],
    exported: str,
    filters: dict[tuple[str, str], str],
    token: Token,
    *,
    size: int,
    whole: bool,
) -> Iterator[Batch[Any]]:
    """Batches after which the tables are as they were in a snapshot; the last one has the token.

    Parameters
    ----------
    exported: the name of the snapshot.
    filters: conditions that rows of a table must meet.
    size: rows of a batch.
    whole: whether all of it is one batch.
    """
    connection.rows("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    connection.rows(f"SET TRANSACTION SNAPSHOT {literal(exported)}")
    come: dict[type, list[Any]] = {}
    deletes: dict[type, list[Any]] = {}
    removes: dict[type, list[Any]] = {}
    refused: dict[type, list[Refused]] = {}
    anew = [feed.row_type for feed in feeds]
    for feed in feeds:
        condition = filters.get((feed.schema.schema, feed.schema.table))
        held = Held(feed)
        for rows in read_rows(connection, feed, condition, size):
            new, unfit = fit(held.new(rows))
            if whole:
                come.setdefault(feed.row_type, []).extend(new)
                refused.setdefault(feed.row_type, []).extend(unfit)
            elif new or unfit:
                yield Batch({feed.row_type: new}, refused={feed.row_type: unfit}, anew=anew)
                anew = []
        (deletes if feed.is_keyed else removes)[feed.row_type] = held.gone()
    connection.rows("COMMIT")
    yield Batch(
        come,
        deletes=deletes,
        removes=removes,
        refused=refused,
        anew=anew,
        token=token,
    )


class Held:
    """The rows that a table has and that were not seen yet."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._by_key = {feed.key(row): row for row in feed.table} if feed.is_keyed else {}
        self._counts = Counter(dict(feed.table.zset().items())) if not feed.is_keyed else Counter()

    def new(self, rows: list[Any]) -> list[Any]:
        """The rows that are not held."""
        if self._by_key:
            key, take = self._feed.key, self._by_key.pop
            return [row for row in rows if not _equal(take(key(row), None), row)]
        if self._counts:
            return [row for row in rows if not self._takes(row)]
        return rows

    def gone(self) -> list[Any]:
        """The keys of those that are left; or rows."""
        return list(self._by_key) if self._feed.is_keyed else list(self._counts.elements())

    def _takes(self, row: Any) -> bool:
        if self._counts.get(row, 0) > 0:
            self._counts[row] -= 1
            return True
        return False


def _equal(held: Any, row: Any) -> bool:
    return held is not None and bool(held == row)


def read_rows(
    connection: Connection,
    feed: Feed,
    condition: str | None,
    size: int,
    values: Sequence[Any] | None = None,
) -> Iterator[list[Any]]:
    """The rows of a table, some at a time, with a `Refused` for each that cannot be made. Inside a
    transaction."""
    fields, schema = feed.fields, feed.schema
    native = native_types(fields)
    make = feed.maker(range(len(fields)), native)
    columns = ", ".join(quoted(field.column.name) for field in fields)
    where = f" where {condition}" if condition else ""
    cursor = connection.cursor(native)
    query = f"select {columns} from {schema.rows_sql}{where}"
    connection.rows(f"DECLARE all_rows NO SCROLL CURSOR FOR {query}", values)
    while found := connection.rows(f"FETCH {size} FROM all_rows", cursor=cursor):
        yield list(map(make, found))
    connection.rows("CLOSE all_rows")

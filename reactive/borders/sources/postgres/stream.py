"""The replication stream of Postgres: the slot, and its transactions as batches.

`SlotStream` reads the messages of a slot; each transaction of Postgres becomes one batch.

The server keeps two objects for a source: a publication of its tables, and a slot with its
position.

    publication   reactive_users             the tables whose changes are published
    slot          reactive_users_1f0c92ab    the end of the log that may be deleted

Each slot gets a new name, which is part of the token. So a slot that another user created later,
with changes missing in between, is not mistaken for the earlier one.

`TransactionChanges` collects the net changes of one transaction to one table:

    by key     key -> the row at the end, or None if it is deleted
    by count   inserted and deleted rows; for tables that publish whole rows

State: the rows that one transaction has changed, each once by its key.
Cost:  O(changes); for a TRUNCATE O(rows of the table).
"""

from __future__ import annotations

import logging
import re
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from reactive.borders.sources.batch import Batch, Refused, Token
from reactive.borders.sources.postgres import feed
from reactive.borders.sources.postgres.feed import TableFeed, split_refused
from reactive.borders.sources.postgres.notify import SlotInUse
from reactive.borders.sources.postgres.schema import Connection, PostgresSchema, PostgresTypes, lsn
from reactive.engine.runtime.needs import driver, sql_literal
from reactive.engine.runtime.sql_names import quote_name
from reactive.errors import SourceError

ASKED = 1.0
"""The seconds between two queries for the end of the server's log and for the existing tables.

The first is for `lag`. The log does not report dropped tables.
"""


class SlotStream:
    """The transactions of a slot, in the order of their commits."""

    def __init__(
        self,
        control: Connection,
        replication: Connection,
        feeds: list[TableFeed],
        progress: StreamProgress,
        token: Callable[[int], Token],
        decode: Callable[[bytes], feed.Message],
        is_settled: Callable[[], bool],
    ) -> None:
        self._control = control
        self._replication = replication
        self._by_name = {(feed.schema.schema, feed.schema.table): feed for feed in feeds}
        self._by_number = {feed.schema.number: feed for feed in feeds}
        self._feeds: dict[int, TableFeed] = {}
        self._changes: dict[int, TransactionChanges] = {}
        self._progress = progress
        self._token = token
        self._decode = decode
        self._is_settled = is_settled
        self._end = 0
        self._types = PostgresTypes(control)
        self._asked = 0.0

    def batches(self, command: str, since: int) -> Iterator[Batch[Any]]:
        """Yield batches until the connection is lost, or the source must stop."""
        cursor = self._replication.replicate(command)
        try:
            yield from self._read_messages(cursor, since)
        finally:
            with suppress(driver().Error):
                cursor.send_feedback(force=True)

    def _read_messages(self, cursor: Any, since: int) -> Iterator[Batch[Any]]:
        """Yield a batch for each commit after `since` that changes a table, without end."""
        read, decode = cursor.read_message, self._decode
        while True:
            message = read()
            if message is None:
                self._idle(cursor)
                continue
            event = decode(message.payload)
            if isinstance(event, feed.CommitMessage):
                if event.end > since and self._changes:
                    yield transaction_batch(
                        self._changes, self._feeds, self._token(event.end), event.made
                    )
                self._changes = {}
                self._progress.is_at(event.end)
                self._end = event.end
                self._confirm(cursor)
                self._ask()
            else:
                self._take(event)

    def _take(self, event: feed.Message) -> None:
        """Add a change to those of its transaction, or handle another message but a commit."""
        match event:
            case feed.Insert():
                if (found := self._changes_of(event.relation)) is not None:
                    found.insert(event)
            case feed.Update():
                if (found := self._changes_of(event.relation)) is not None:
                    found.update(event, self._control)
            case feed.Delete():
                if (found := self._changes_of(event.relation)) is not None:
                    found.delete(event)
            case feed.Truncate():
                for number in event.relations:
                    if (found := self._changes_of(number)) is not None:
                        found.truncate()
            case feed.RelationMessage():
                self._describe(event)
            case feed.Begin() | feed.OtherMessage():
                self._progress.begins()
            case _:
                raise SourceError(f"the decoder gave {event!r:.100}, which is no message")

    def _changes_of(self, relation: int) -> TransactionChanges | None:
        """Return the changes of a table; None for a table that is not fed."""
        found = self._changes.get(relation)
        if found is None:
            feed = self._feeds.get(relation)
            if feed is None:
                return None
            found = self._changes[relation] = TransactionChanges(feed)
        self._progress.waiting += 1
        return found

    def _describe(self, relation: feed.RelationMessage) -> None:
        """Register the columns of a table. Raises `SourceError` if another table has its name."""
        feed = self._by_name.get((relation.schema, relation.name))
        if feed is not self._by_number.get(relation.number):
            raise _other_table(feed or self._by_number[relation.number])
        if feed is None:
            return
        self._feeds[relation.number] = feed
        self._progress.schema_changed(feed.describe(relation, self._types))

    def _confirm(self, cursor: Any) -> None:
        """Confirm the position to the server once its commits are durable."""
        if self._end and self._is_settled():
            cursor.send_feedback(flush_lsn=self._end)
            self._end = 0

    def _idle(self, cursor: Any) -> None:
        """Handle a pause: everything up to the server's current position is committed."""
        self._confirm(cursor)
        if not self._progress.in_transaction:
            self._progress.is_at(cursor.wal_end)
        self._ask()
        self._replication.wait_readable()

    def _ask(self) -> None:
        """Query the server's position, if it is time to. Raises if a table was replaced."""
        now = time.monotonic()
        if now - self._asked > ASKED:
            self._asked = now
            feeds = list(self._by_name.values())
            numbers = "".join(
                f", to_regclass({sql_literal(f.schema.sql)})::oid::int8" for f in feeds
            )
            (row,) = self._control.rows(f"select pg_current_wal_lsn(){numbers}")
            self._progress.server_is_at(lsn(row[0]))
            for feed, number in zip(feeds, row[1:], strict=True):
                if number != feed.schema.number:
                    raise _other_table(feed)


def _other_table(feed: TableFeed) -> SourceError:
    """Return the error for a table that was dropped, renamed or replaced."""
    return SourceError(
        f"{feed.schema.name!r} is not the table any more that was followed: it was dropped or "
        "renamed, and changes of another one of this name are not told\n"
        "  start(anew=True) of what ingest gave reads the one that has the name by then"
    )


LONGEST = 40
"""The letters of the source's name that go into names on the server."""
PUBLISHED = """
    select schemaname, tablename, to_jsonb(p) ->> 'rowfilter', to_jsonb(p) -> 'attnames'
    from pg_publication_tables p where pubname = %s
"""
"""Row filters and lists of columns exist from version 15 on."""
SLOT = """
    select plugin, active_pid, wal_status, to_jsonb(s) ->> 'conflicting'
    from pg_replication_slots s where slot_name = %s
"""
SLOTS = """
    select slot_name, active_pid from pg_replication_slots
    where slot_name ~ %s and database = current_database()
"""
MOMENT, STEP = 2.0, 0.02
"""Seconds: until a server notices that a slot is no longer read; between two checks."""
NEEDED = "select 1 from pg_publication where pubname = %s"
LEVEL = "select current_setting('wal_level'), current_setting('server_version_num')::int"
OLDEST = 130000
"""The first version that publishes partitioned tables."""


def base_name(source: str) -> str:
    """Return the common prefix of the names of the publication and the slots."""
    return "reactive_" + re.sub(r"[^a-z0-9]+", "_", source.lower())[:LONGEST].strip("_")


def new_slot_name(source: str) -> str:
    """Return a slot name that was never used."""
    return f"{base_name(source)}_{secrets.token_hex(4)}"


def check_server(connection: Connection) -> None:
    """Raise `SourceError` if the server cannot stream changes."""
    level, version = connection.rows(LEVEL)[0]
    if int(version) < OLDEST:
        raise SourceError(
            f"the server is of version {version // 10000}; changes are read from 13 on\n"
            "  NotifySource reads tables of any server"
        )
    if level != "logical":
        raise SourceError(
            f"the server has wal_level = {level}, with which it tells no changes\n"
            "  ALTER SYSTEM SET wal_level = logical, and restart it; or take NotifySource"
        )


def check_published(connection: Connection, name: str, tables: Sequence[PostgresSchema]) -> None:
    """Raise `SourceError` if the publication lacks a table, for example one that was recreated."""
    published = {(row[0], row[1]) for row in connection.rows(PUBLISHED, [name])}
    for table in tables:
        if (table.schema, table.table) not in published:
            raise SourceError(
                f"publication {name!r} does not tell of {table.sql} any more, whose changes since "
                "are lost: the table was made anew, or the publication was\n"
                "  start(anew=True) of what ingest gave reads the table anew"
            )


def publish(
    connection: Connection, name: str, tables: Sequence[PostgresSchema], *, ours: bool
) -> None:
    """Ensure that the publication has the tables; create or extend it if it is `ours`.

    Raises
    ------
    SourceError: the user's publication is missing, or lacks tables.
    """
    published = {(row[0], row[1]) for row in connection.rows(PUBLISHED, [name])}
    missing = [table for table in tables if (table.schema, table.table) not in published]
    is_there = bool(connection.rows(NEEDED, [name]))
    if is_there and not missing:
        return
    listed = ", ".join(table.rows_sql for table in missing)
    make = (
        f"ALTER PUBLICATION {quote_name(name)} ADD TABLE {listed}"
        if is_there
        else f"CREATE PUBLICATION {quote_name(name)} FOR TABLE {listed} "
        "WITH (publish_via_partition_root = true)"
    )
    if not ours:
        what = f"does not tell of {listed}" if is_there else "is not there"
        raise SourceError(f"publication {name!r} {what}\n  {make}")
    try:
        connection.rows(make)
    except driver().errors.DuplicateObject:  # another process was faster
        publish(connection, name, tables, ours=ours)


def row_filters(connection: Connection, publication: str) -> dict[tuple[str, str], str]:
    """Return the row filter of each published table that has one, for the snapshot."""
    rows: list[Any] = connection.rows(PUBLISHED, [publication])
    return {(row[0], row[1]): row[2] for row in rows if row[2]}


def check_slot(connection: Connection, slot: str) -> None:
    """Raise `SourceError` if the slot cannot be continued."""
    rows: list[Any] = connection.rows(SLOT, [slot])
    remedy = (
        "\n  start(anew=True) of what ingest gave reads the tables anew, and applies what differs "
        "as one commit"
    )
    if not rows:
        raise SourceError(
            f"slot {slot!r} is not there any more, and so neither is the log since the last commit"
            + remedy
        )
    _, pid, status, conflicting = rows[0]
    if status == "lost" or conflicting == "true":
        raise SourceError(
            f"slot {slot!r} was invalidated: the server has removed log that it would have needed"
            + remedy
            + "; a larger max_slot_wal_keep_size keeps more"
        )
    if pid is not None:
        raise SlotInUse(
            f"slot {slot!r} is read by another process, which server process {pid} serves\n"
            "  one database at a time goes on from a token; another one takes a source of another "
            "name"
        )


def make_slot(connection: Connection, slot: str, *, temporary: bool) -> tuple[int, str]:
    """Create a slot. Return its start position, and the name of the snapshot at that position.

    temporary: True to drop it with the connection.
    """
    kind = "TEMPORARY " if temporary else ""
    row = connection.rows(f'CREATE_REPLICATION_SLOT "{slot}" {kind}LOGICAL pgoutput')[0]
    return lsn(row[1]), row[2]


def start_command(slot: str, position: str, publication: str) -> str:
    """Return the command that starts streaming."""
    options = f"proto_version '1', publication_names {sql_literal(quote_name(publication))}"
    return f'START_REPLICATION SLOT "{slot}" LOGICAL {position} ({options})'


def drop_slot(connection: Connection, slot: str) -> None:
    """Drop a slot, if it exists and has no reader."""
    connection.rows(
        "select pg_drop_replication_slot(slot_name) from pg_replication_slots "
        "where slot_name = %s and active_pid is null",
        [slot],
    )


def drop_all(connection: Connection, source: str, publication: str | None) -> None:
    """Drop a publication, and all slots without readers of sources of this name.

    Waits for slots whose reader has just stopped.
    """
    until = time.monotonic() + MOMENT
    while left := connection.rows(SLOTS, [f"^{base_name(source)}_[0-9a-f]{{8}}$"]):
        free = [slot for slot, reader in left if reader is None]
        for slot in free:
            drop_slot(connection, slot)
        if not free:
            if time.monotonic() > until:
                break
            time.sleep(STEP)
    if publication is not None:
        connection.rows(f"DROP PUBLICATION IF EXISTS {quote_name(publication)}")


class TransactionChanges:
    """The net changes of one transaction to one table."""

    def __init__(self, feed: TableFeed) -> None:
        self._feed = feed
        self.is_cleared = False
        """True if all earlier rows were deleted."""
        self._rows: dict[Any, Any] = {}
        self._come: list[Any] = []
        self._gone: list[Any] = []

    def insert(self, change: feed.Insert) -> None:
        """Add an inserted row."""
        feed = self._feed
        row = feed.row(change.new)
        if feed.is_keyed:
            self._rows[feed.key(row)] = row
        else:
            self._come.append(row)

    def update(self, change: feed.Update, connection: Connection) -> None:
        """Add an updated row."""
        feed = self._feed
        if feed.is_stream:
            self._come.append(feed.refused("updated", change.old or change.new))
            return
        if not feed.is_keyed:
            assert change.old is not None
            self._gone.append(_deleted_row(feed.row(change.old)))
            self._come.append(feed.with_unchanged(change, self._held_row, connection))
            return
        row = (
            feed.with_unchanged(change, self._held_row, connection)
            if change.unchanged
            else feed.row(change.new)
        )
        if change.old is not None:
            self._rows[feed.key_of_old(change.old)] = None
        if row is None:
            self._rows[feed.key_of_old(change.new)] = None
        else:
            self._rows[feed.key(row)] = row

    def delete(self, change: feed.Delete) -> None:
        """Add a deleted row."""
        feed = self._feed
        if feed.is_stream:
            self._come.append(feed.refused("deleted", change.old))
        elif feed.is_keyed:
            self._rows[feed.key_of_old(change.old)] = None
        else:
            self._gone.append(_deleted_row(feed.row(change.old)))

    def truncate(self) -> None:
        """Delete all rows."""
        if self._feed.is_stream:
            self._come.append(self._feed.refused("truncated", None))
            return
        self.is_cleared = True
        self._rows.clear()
        self._come.clear()
        self._gone.clear()

    def by_key(self) -> tuple[list[Any], list[Any]]:
        """Return the rows present at the end, and the deleted keys."""
        rows = [row for row in self._rows.values() if row is not None]
        gone = [key for key, row in self._rows.items() if row is None]
        if self.is_cleared:
            held = (self._feed.key(row) for row in self._feed.table)
            gone += [key for key in held if key not in self._rows]
        return rows, gone

    def by_count(self) -> tuple[list[Any], list[Any]]:
        """Return inserted rows, and deleted rows."""
        return self._come, [*self._feed.table, *self._gone] if self.is_cleared else self._gone

    def _held_row(self, key: Any) -> Any:
        """Return the row of a key at this point of the transaction; None if there is none."""
        if key in self._rows or self.is_cleared:
            row = self._rows.get(key)
            return None if isinstance(row, Refused) else row
        return self._feed.table.get(key)


def transaction_batch(
    changes: dict[int, TransactionChanges], feeds: dict[int, TableFeed], token: Token, made: float
) -> Any:
    """Return the batch of a transaction."""
    upserts: dict[type, list[Any]] = {}
    refused: dict[type, list[Refused]] = {}
    deletes: dict[type, list[Any]] = {}
    removes: dict[type, list[Any]] = {}
    for number, each in changes.items():
        feed = feeds[number]
        rows, gone = each.by_key() if feed.is_keyed else each.by_count()
        upserts[feed.row_type], unfit = split_refused(rows)
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


def _deleted_row(row: Any) -> Any:
    """Return a deleted row; for a refused one, the text that identifies it."""
    return row.given if isinstance(row, Refused) else row


# The progress of a source, readable from any thread.

log = logging.getLogger("reactive")
REMEMBERED = 100
"""The number of schema changes kept in memory."""
GRACE = 2.0
"""The seconds after which an ended source that was not restarted counts as ended."""


class StreamProgress:
    """The progress of a stream. Only the thread of the source changes it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._server = 0
        self.position = 0
        """All commits before this position are in the tables."""
        self.waiting = 0
        """The number of changes received of the current transaction."""
        self.in_transaction = False
        self._ended: float | None = None
        self.cause: BaseException | None = None
        """The error that stopped the source last; None if none did."""
        self.schema_changes: deque[str] = deque(maxlen=REMEMBERED)

    def begins(self) -> None:
        """Record the start of a transaction."""
        self.in_transaction = True

    def is_at(self, position: int) -> None:
        """Record that all commits up to a position are in the tables."""
        self.in_transaction = False
        self.waiting = 0
        if position > self.position:
            with self._changed:
                self.position = position
                self._changed.notify_all()

    def starts_at(self, position: int) -> None:
        """Record the start position; later changes that were not committed are sent again."""
        with self._changed:
            self.position = position
            self.in_transaction = False
            self.waiting = 0
            self._ended = self.cause = None
            self._changed.notify_all()

    def ends(self) -> None:
        """Record that the source has ended."""
        with self._changed:
            self._ended = time.monotonic()
            self._changed.notify_all()

    def has_ended(self) -> bool:
        """Return True if the source has ended, and is not about to be restarted."""
        return self._ended is not None and time.monotonic() - self._ended > GRACE

    def server_is_at(self, position: int) -> None:
        """Record the end of the server's log."""
        self._server = position

    def behind(self) -> int:
        """Return the bytes of the server's log that are not in the tables, as of a second ago."""
        return max(0, self._server - self.position)

    def schema_changed(self, changes: list[str]) -> None:
        """Record changes of columns."""
        for change in changes:
            self.schema_changes.append(change)
            log.warning("source %r: %s", self._name, change)

    def wait_for(self, position: int, timeout: float | None) -> bool:
        """Wait until the source reaches a position or ends. Return True if it has reached it."""
        until = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while self.position < position and not self.has_ended():
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    return False
                pause = None if self._ended is None else GRACE
                self._changed.wait(min((x for x in (left, pause) if x is not None), default=None))
            return self.position >= position

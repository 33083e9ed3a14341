"""What a slot tells, as batches: each transaction of Postgres is one.

State: the changes of one transaction.
Cost:  O(changes).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from reactive.borders.sources.batch import Batch, Token
from reactive.borders.sources.postgres import pgoutput
from reactive.borders.sources.postgres.changes import Changes, batch_of
from reactive.borders.sources.postgres.connection import Connection, lsn
from reactive.borders.sources.postgres.feed import Feed
from reactive.borders.sources.postgres.progress import Progress
from reactive.borders.sources.postgres.schema import Types
from reactive.engine.runtime.postgres import driver, literal
from reactive.errors import SourceError

ASKED = 1.0
"""Seconds from one question to the next for the end of the server's log, for `lag`, and for which
tables there are by now: of one that is dropped, the log tells nothing."""


class Stream:
    """The transactions of a slot, in the order of their commits."""

    def __init__(
        self,
        control: Connection,
        replication: Connection,
        feeds: list[Feed],
        progress: Progress,
        token: Callable[[int], Token],
        decode: Callable[[bytes], pgoutput.Message],
        is_settled: Callable[[], bool],
    ) -> None:
        self._control = control
        self._replication = replication
        self._by_name = {(feed.schema.schema, feed.schema.table): feed for feed in feeds}
        self._by_number = {feed.schema.number: feed for feed in feeds}
        self._feeds: dict[int, Feed] = {}
        self._changes: dict[int, Changes] = {}
        self._progress = progress
        self._token = token
        self._decode = decode
        self._is_settled = is_settled
        self._end = 0
        self._types = Types(control)
        self._asked = 0.0

    def batches(self, command: str, since: int) -> Iterator[Batch[Any]]:
        """Batches until the connection is lost, or the source is to stop."""
        cursor = self._replication.replicate(command)
        try:
            yield from self._read(cursor, since)
        finally:
            with suppress(driver().Error):
                cursor.send_feedback(force=True)

    def _read(self, cursor: Any, since: int) -> Iterator[Batch[Any]]:
        read, decode = cursor.read_message, self._decode
        while True:
            message = read()
            if message is None:
                self._idle(cursor)
                continue
            event = decode(message.payload)
            if isinstance(event, pgoutput.Commit):
                if event.end > since and self._changes:
                    yield batch_of(self._changes, self._feeds, self._token(event.end), event.made)
                self._changes = {}
                self._progress.is_at(event.end)
                self._end = event.end
                self._confirm(cursor)
                self._ask()
            else:
                self._take(event)

    def _take(self, event: pgoutput.Message) -> None:
        match event:
            case pgoutput.Insert():
                if (found := self._of(event.relation)) is not None:
                    found.insert(event)
            case pgoutput.Update():
                if (found := self._of(event.relation)) is not None:
                    found.update(event, self._control)
            case pgoutput.Delete():
                if (found := self._of(event.relation)) is not None:
                    found.delete(event)
            case pgoutput.Truncate():
                for number in event.relations:
                    if (found := self._of(number)) is not None:
                        found.truncate()
            case pgoutput.Relation():
                self._describe(event)
            case pgoutput.Begin() | pgoutput.Other():
                self._progress.begins()
            case _:
                raise SourceError(f"the decoder gave {event!r:.100}, which is no message")

    def _of(self, relation: int) -> Changes | None:
        """The changes of a table; None of one that is not fed."""
        found = self._changes.get(relation)
        if found is None:
            feed = self._feeds.get(relation)
            if feed is None:
                return None
            found = self._changes[relation] = Changes(feed)
        self._progress.waiting += 1
        return found

    def _describe(self, relation: pgoutput.Relation) -> None:
        feed = self._by_name.get((relation.schema, relation.name))
        if feed is not self._by_number.get(relation.number):
            raise _other_table(feed or self._by_number[relation.number])
        if feed is None:
            return
        self._feeds[relation.number] = feed
        self._progress.schema_changed(feed.describe(relation, self._types))

    def _confirm(self, cursor: Any) -> None:
        """Tell the server what it needs not send again, if it is there to stay."""
        if self._end and self._is_settled():
            cursor.send_feedback(flush_lsn=self._end)
            self._end = 0

    def _idle(self, cursor: Any) -> None:
        """Nothing has come: all up to the end of what the server has looked at is committed."""
        self._confirm(cursor)
        if not self._progress.in_transaction:
            self._progress.is_at(cursor.wal_end)
        self._ask()
        self._replication.wait_readable()

    def _ask(self) -> None:
        now = time.monotonic()
        if now - self._asked > ASKED:
            self._asked = now
            feeds = list(self._by_name.values())
            numbers = "".join(f", to_regclass({literal(f.schema.sql)})::oid::int8" for f in feeds)
            (row,) = self._control.rows(f"select pg_current_wal_lsn(){numbers}")
            self._progress.server_is_at(lsn(row[0]))
            for feed, number in zip(feeds, row[1:], strict=True):
                if number != feed.schema.number:
                    raise _other_table(feed)


def _other_table(feed: Feed) -> SourceError:
    return SourceError(
        f"{feed.schema.name!r} is not the table any more that was followed: it was dropped or "
        "renamed, and changes of another one of this name are not told\n"
        "  start(anew=True) of what ingest gave reads the one that has the name by then"
    )

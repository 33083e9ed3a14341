"""A connection that waits for its server only until it is told to stop.

    connection = Connection(dsn, stop)
    connection.rows("select 1")        # raises Stopped once `stop` is set

It has an autocommit session; who wants a transaction says BEGIN.
"""

from __future__ import annotations

import selectors
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from reactive.borders.sources.postgres.values import SETTINGS
from reactive.engine.runtime.postgres import driver, plain
from reactive.errors import SourceError

STEP = 0.1
"""Seconds after which who waits looks whether it is to stop."""
KEEPALIVES = {
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "connect_timeout": "20",
}
"""So that a peer that is gone without a word is missed within a minute."""


class Stopped(Exception):
    """The source was stopped while it waited."""


class Connection:
    """See the module."""

    def __init__(self, dsn: str, stop: threading.Event, *, replicates: bool = False) -> None:
        self._stop = stop
        module = driver()
        given = module.extensions.parse_dsn(plain(dsn))
        options = {
            **KEEPALIVES,
            "application_name": "reactive",
            **given,
            "client_encoding": "UTF8",
            "options": f"{given.get('options', '')} {SETTINGS}",
        }
        kind = {"connection_factory": module.extras.LogicalReplicationConnection}
        self.raw = module.connect(**options, **(kind if replicates else {}), async_=1)
        self._selector = selectors.DefaultSelector()
        try:
            self.wait()
            self._cursor = self.raw.cursor()
        except BaseException:
            self.close()
            raise

    def rows(
        self, statement: str, values: Sequence[Any] | None = None, *, cursor: Any = None
    ) -> list[tuple[Any, ...]]:
        """What a statement gives."""
        cursor = cursor or self._cursor
        cursor.execute(statement, values)
        self.wait()
        return cursor.fetchall() if cursor.description else []

    def cursor(self, native: Collection[int]) -> Any:
        """A cursor whose values are texts, but those of types of which the driver makes what we
        would."""
        extensions = driver().extensions
        numbers = tuple(number for number in extensions.string_types if number not in native)
        texts = extensions.new_type(numbers, "TEXTS", lambda value, cursor: value)
        cursor = self.raw.cursor()
        extensions.register_type(texts, cursor)
        return cursor

    def replicate(self, command: str) -> Any:
        """Begin to stream; the cursor to read messages from."""
        cursor = self.raw.cursor()
        cursor.start_replication_expert(command, decode=False, status_interval=5)
        self.wait()
        return cursor

    def wait(self) -> None:
        """Until what was begun is done."""
        while (state := self.raw.poll()) != 0:
            self._ready(selectors.EVENT_READ if state == 1 else selectors.EVENT_WRITE)

    def told(self) -> list[str]:
        """What was told by NOTIFY since the last time, after a moment at most.

        Raises
        ------
        Stopped: it is to stop.
        """
        self.raw.poll()
        if not self.raw.notifies:
            self.wait_readable()
            self.raw.poll()
        found = [each.payload for each in self.raw.notifies]
        self.raw.notifies.clear()
        return found

    def wait_readable(self) -> None:
        """Until something comes, or for a moment.

        Raises
        ------
        Stopped: it is to stop.
        """
        self._ready(selectors.EVENT_READ)

    def close(self) -> None:
        """Close it; what was under way is lost."""
        self._selector.close()
        self.raw.close()

    def _ready(self, events: int) -> None:
        if self._stop.is_set():
            raise Stopped
        key = self._selector.register(self.raw.fileno(), events)
        try:
            self._selector.select(STEP)
        finally:
            self._selector.unregister(key.fd)


def is_transient(error: Exception) -> bool:
    """Whether it is the connection that is lost, or the server that has no place or is going down,
    rather than what was asked of it."""
    code = getattr(error, "pgcode", None)
    return code is None or code[:2] in ("08", "53", "57") or code == "55006"


REFUSALS = (
    "authentication failed",
    "does not exist",
    "does not support",
    "invalid ",
    "must be ",
    "no password supplied",
    "not permitted to log in",
    "permission denied",
    "pg_hba.conf",
)
"""Words in errors of servers, and of the driver, that no wait will change."""


def refuses_us(error: Exception) -> bool:
    """Return True if an error of connecting says that this connection will never be: a wrong
    password, a database that is not there, an option that is none. The driver gives no code for
    these. An error in another language is taken for a server that will come."""
    text = str(error)
    return any(words in text for words in REFUSALS)


def lsn(text: str) -> int:
    """A position in the log as a number.

    >>> lsn("16/B374D848") == 0x16B374D848
    True
    """
    high, low = text.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def lsn_text(position: int) -> str:
    """A position in the log as Postgres writes it.

    >>> lsn_text(0x16B374D848)
    '16/B374D848'
    """
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


@contextmanager
def asking(dsn: str) -> Iterator[Connection]:
    """A connection for questions that are asked outside of the session of a source.

    Raises
    ------
    SourceError: there is none.
    """
    try:
        connection = Connection(dsn, threading.Event())
    except driver().OperationalError as error:
        raise SourceError(
            f"Postgres cannot be asked: {' '.join(str(error).split())}\n"
            "  see that the server can be reached, and that the user may do this"
        ) from error
    with closing(connection):
        yield connection

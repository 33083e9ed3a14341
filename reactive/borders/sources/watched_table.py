"""A table that files feed.

    db.watch(pattern, Row)  =  db.table(Row), db.ingest(files(pattern, Row)), and a first look

State:  that of the table, and of its source.
Cost:   as of `files`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from optimizer.callables.source import caller
from optimizer.errors import PlanError
from optimizer.kinds.fields import TRACKED
from reactive.api import dropping
from reactive.api.table import Table
from reactive.borders.durable import adopting
from reactive.borders.sources.batch import OnRefusal, check_policy
from reactive.borders.sources.files.source import FileSource, files
from reactive.borders.sources.ingest import ingest
from reactive.borders.sources.ingestion import Ingestion
from reactive.engine.runtime.boundary import boundary
from reactive.errors import SourceError

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine

T = TypeVar("T")
MOMENT = 0.001
"""Seconds."""


@boundary
class WatchedTable(Table[T, Any]):
    """A table that files feed. Made by `Database.watch`.

    >>> import tempfile, pathlib
    >>> from typing import NamedTuple
    >>> from reactive import Database
    >>> class Word(NamedTuple):
    ...     text: str
    ...     count: int
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("text,count\\nto,2\\n")
    >>> db = Database()
    >>> words = db.watch(folder / "*.csv", Word)
    >>> list(words)
    [Word(text='to', count=2)]
    >>> _ = (folder / "b.csv").write_text("text,count\\nbe,2\\n")
    >>> words.catch_up()
    >>> len(words), words.source.state
    (2, 'running')
    >>> db.close()
    """

    source: Ingestion[T]
    """What feeds it: its state, token, errors and lag, with `start` and `stop`."""
    _files: FileSource

    def catch_up(self, timeout: float | None = None) -> None:
        """Wait until the table, and views over it, have all that is in the files by now.

        Parameters
        ----------
        timeout: seconds to wait at most.

        Raises
        ------
        Exception: what stopped the source.
        SourceError: it was stopped, or has not been started.
        TimeoutError: `timeout` is over.
        """
        until = None if timeout is None else time.monotonic() + timeout
        self.source._check("catch_up")
        while True:
            left = None if until is None else max(0.0, until - time.monotonic())
            if self.source.state == "running" and self._files._has_caught_up(left):
                return
            if self.source.error is not None:
                raise self.source.error
            if self.source.state != "running":
                raise SourceError(
                    f"source {self.name!r} does not follow its files: it is {self.source.state}\n"
                    "  table.source.start() has it go on"
                )
            time.sleep(MOMENT)  # it is about to say why it reads no more

    def _give_up(self, why: str) -> None:
        """As of any table; and what feeds it ends, and is forgotten."""
        super()._give_up(why)
        self.source._leave()
        _forget(self._engine, self.name, why)


def watch(
    engine: Engine,
    pattern: str | os.PathLike[str],
    row_type: type[T],
    name: str | None,
    key: str | Callable[[T], Hashable] | None,
    durable: bool | None,
    on_error: OnRefusal,
    start: bool,
    replaced: Table[Any] | None,
    on_stop: Callable[[Ingestion[Any]], object] | None,
    options: Mapping[str, Any],
) -> WatchedTable[T]:
    """`Database.watch`; `replaced` is the table in whose place the new one comes."""
    if hasattr(row_type, TRACKED):
        raise PlanError(
            f"rows of files do not change, and {row_type.__name__} is @tracked\n"
            "  have a frozen class; or read the files yourself, and add the objects to a table"
        )
    with engine.shaping(to_write=True):
        number = next(engine.numbers)
        table: WatchedTable[T] = WatchedTable(
            engine, number, row_type, name, key, True, replaces=replaced
        )
        of_key = None if table._keyed is None else table._keyed.key
        table._files = files(pattern, row_type, name=table.name, key=of_key, **options)
        check_policy(on_error)
        if replaced is not None:
            why = f"table {replaced.name!r} was replaced at {caller()}"
            dropping.drop(engine, replaced, views=True, why=why)
        if engine.journal is not None or durable:
            adopting.adopt(engine, table, durable, None, None)
        table.source = _fed(engine, table, on_error)
        table.source.on_stop = on_stop
        engine.tables[number] = table
    if start:
        _load(engine, table)
    return table


def _fed(engine: Engine, table: WatchedTable[T], on_error: OnRefusal) -> Ingestion[T]:
    """What feeds a table; if it cannot be, the table is not made."""
    try:
        return ingest(engine, table._files, table, None, on_error, None)
    except BaseException:
        engine.graph.drop_source(table._node)
        if engine.journal is not None:
            engine.journal.release(table)
        raise


def _load(engine: Engine, table: WatchedTable[Any]) -> None:
    """Have what is in the files in the table; if that cannot be, there is no table."""
    is_new = table.source.token is None
    table.source.start()
    try:
        table.catch_up()
    except BaseException:
        table.source.stop()
        if is_new:
            _give_up(engine, table)
        raise


def _give_up(engine: Engine, table: WatchedTable[Any]) -> None:
    """Drop a table that could not be filled."""
    why = f"the files of table {table.name!r} could not be read"
    with engine.shaping(to_write=True):
        dropping.drop(engine, table, views=True, why=why)


def _forget(engine: Engine, name: str, why: str) -> None:
    """Drop what is noted of a source."""
    ledger = engine.ledgers.pop(name, None)
    if ledger is None:
        return
    if ledger.errors is not None:
        dropping.drop(engine, ledger.errors, views=True, why=why)
    engine.graph.drop_source(ledger.entries._node)
    if engine.journal is not None:
        engine.journal.forget(ledger.entries)

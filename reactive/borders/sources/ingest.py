"""Ingestion of a source: its start, one commit for each batch, and tables that files feed.

Each batch is one commit: its rows and its token together, or nothing.

    raise   an exception that a row causes is raised
    drop    the rows that keep the batch from being committed are left out, and listed

These rows are found by trial transactions, which are rolled back after all operators have stepped,
before subscribers are notified. First each half of the rows is tried alone, then halves of these;
then, among rows that are fine alone, the shortest prefix that fails.

A `WatchedTable` is fed by files:

    db.watch(pattern, Row)  =  db.table(Row), db.ingest(files(pattern, Row)), and a first look

State:  that of the table, and of its source.
Cost:   a batch without failing rows costs its rows; with k failing rows among n, O(k log n) trials;
        a watched table as `files`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from optimizer.callables.source import caller
from optimizer.errors import PlanError
from optimizer.kinds.fields import TRACKED
from reactive.api import family
from reactive.api.internal_interface import keyed_of, node_of
from reactive.api.table import Table
from reactive.borders.durable import opening
from reactive.borders.sources.batch import (
    Batch,
    Batches,
    ByTable,
    OnRefusal,
    Source,
    TableBatches,
    Targets,
    Token,
    as_source,
    check_policy,
    group_by_table,
)
from reactive.borders.sources.files.source import FileSource, files
from reactive.borders.sources.ingestion import Ingestion
from reactive.borders.sources.ledger import Ledger, add_rows, remove_rows
from reactive.borders.sources.net_changes import LeftOut, net_changes
from reactive.engine.collections.zset import Row
from reactive.engine.runtime.boundary import boundary
from reactive.engine.runtime.interrupts import is_asynchronous
from reactive.engine.transactions.transaction import Transaction, run_in_transaction
from reactive.errors import FixpointError, ReactiveError, SourceError, TableError, TransactionError

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine


# Start feeding tables from a source, for `Database.ingest`.


def ingest(
    engine: Engine,
    source: Source[Any] | Batches[Any] | None,
    into: Table[Any] | Mapping[type, Table[Any]],
    since: Token,
    on_error: OnRefusal,
    name: str | None,
    on_stop: Callable[[Ingestion[Any]], object] | None = None,
) -> Ingestion[Any]:
    """Return an ingestion that is not started yet.

    Raises `TransactionError` inside a transaction; `SourceError` if a source of the name runs,
    fed other tables before, or is at another token than `since`.
    """
    found, called = as_source(source, name)
    check_policy(on_error)
    if engine.mine is not None:
        raise TransactionError(
            f"source {called!r} cannot be ingested inside a transaction, which its commits wait "
            "for\n  do it after the `with` block"
        )
    targets = Targets(into, engine)
    if callable(getattr(found, "feeds", None)):
        found.feeds(targets.by_class())  # type: ignore[union-attr]
    engine.check_open()
    if called in engine.ingestions:
        raise SourceError(
            f"source {called!r} is running already\n  stop() that one, or give this one a name"
        )
    ledger = engine.ledgers.get(called)
    if ledger is None:
        ledger = engine.ledgers.setdefault(called, Ledger(engine, called, targets))
    ledger.check_same(targets)
    if since is not None and ledger.token is not None and not since == ledger.token:
        raise SourceError(
            f"source {called!r} is at token {ledger.token!r:.100}, not at {since!r:.100}\n"
            "  without `since` it goes on from there; under another name it begins anew"
        )
    if since is not None:
        ledger.since = since
    if on_error == "drop":
        ledger.keep_errors()

    def commit(batch: Any, drops: bool) -> int:
        if not isinstance(batch, Batch):
            raise SourceError(
                f"source {called!r} gave {batch!r:.100}, which is no batch\n"
                "  give Batch([rows], token=...)"
            )
        return commit_batch(engine, ledger, batch, drops=drops)

    drops = on_error == "drop"
    return Ingestion(engine, found, ledger, since, commit, drops=drops, on_stop=on_stop)


def stop_all(engine: Engine, patience: float) -> None:
    """Stop all sources of a database that is about to be closed.

    A source that does not react within `patience` ends at its next batch.
    """
    running: list[Ingestion[Any]] = list(engine.ingestions.values())
    for ingestion in running:
        ingestion._stop.set()
    for ingestion in running:
        ingestion._is_stopped(patience)


Place: TypeAlias = tuple[int, Row]
"""A row with the number of its table."""
Trial: TypeAlias = Callable[[Sequence[Place]], Exception | None]
"""A function that tries rows, and returns the exception that they cause."""
BLAMED = (TableError, FixpointError)
"""The errors of this library that a row may cause, beside exceptions of the user's callables."""


def commit_batch(engine: Engine, ledger: Ledger, batch: Batch[Any], *, drops: bool) -> int:
    """Commit a batch. Return the number of changed rows.

    Parameters
    ----------
    drops: True to leave out the rows that raise.

    Raises
    ------
    Exception: a row raises, and is not left out; or the cause is not a row.
    """
    ledger.targets.check_there(engine.tables)
    found = group_by_table(batch, ledger.targets)
    for refused in batch.refused.values() if not drops else ():
        for each in refused:
            raise each.error
    try:
        return _commit(engine, ledger, found, None)
    except Exception as error:
        if not drops or not _may_blame_rows(error):
            raise _refusal_error(ledger, found, error) from error.__cause__
    return _Careful(engine, ledger, found).commit()


def _commit(engine: Engine, ledger: Ledger, batch: TableBatches, left_out: LeftOut | None) -> int:
    """Commit the net changes of a batch, and what the ledger records of it; return their number."""

    def change() -> int:
        net = net_changes(batch, ledger, left_out)
        _apply_changes(ledger, net.gone, net.come)
        ledger.change(net.entries)
        ledger.change_errors(net.solved, net.errors)
        return len(net)

    return run_in_transaction(Transaction(engine), change)


def _apply_changes(ledger: Ledger, gone: ByTable, come: ByTable) -> None:
    """Remove and add rows, by the number of their table."""
    tables = ledger.targets.tables
    for number, rows in gone.items():
        remove_rows(tables[number], rows)
    for number, rows in come.items():
        add_rows(tables[number], rows)


class _Careful:
    """The commit of a batch without the rows that raise."""

    def __init__(self, engine: Engine, ledger: Ledger, batch: TableBatches) -> None:
        self._engine = engine
        self._ledger = ledger
        self._batch = batch
        self._left_out = LeftOut()

    def commit(self) -> int:
        """Commit the rows that do not raise.

        Retry, as concurrent commits may make more rows raise.
        """
        while True:
            try:
                return _commit(self._engine, self._ledger, self._batch, self._left_out)
            except Exception as error:
                if not _may_blame_rows(error) or not self._leave_out():
                    raise

    def _leave_out(self) -> bool:
        """Find rows that raise, and leave them out; return False if there are none."""
        net = run_in_transaction(
            Transaction(self._engine),
            lambda: net_changes(self._batch, self._ledger, self._left_out),
        )
        if self._try_changes((), ()) is not None:
            return False
        going, coming = _list_places(net.gone), _list_places(net.come)
        stay = _culprits(going, lambda some: self._try_changes(some, ()))
        rest = [going[n] for n in range(len(going)) if n not in stay]
        wait = _culprits(coming, lambda some: self._try_changes(rest, some))
        for number, error in stay.items():
            self._left_out.note(going[number], error, comes=False)
        for number, error in wait.items():
            self._left_out.note(coming[number], error, comes=True)
        return bool(stay or wait)

    def _try_changes(self, going: Sequence[Place], coming: Sequence[Place]) -> Exception | None:
        """Return the exception that these changes raise; None if they succeed.

        The trial is rolled back. Exceptions that no row can have caused are raised.
        """
        trial = Transaction(self._engine, _take_back)
        try:
            run_in_transaction(
                trial, lambda: _apply_changes(self._ledger, _by_table(going), _by_table(coming))
            )
        except _TakenBack:
            return None
        except Exception as error:
            if not _may_blame_rows(error):
                raise
            return error
        raise AssertionError("a trial was not taken back")


def _culprits(rows: Sequence[Place], trial: Trial) -> dict[int, Exception]:
    """Return the positions of rows without which the others succeed, with their exceptions."""
    found = dict(_rows_failing_alone(range(len(rows)), rows, trial))
    while True:
        rest = [number for number in range(len(rows)) if number not in found]
        if not rest or trial([rows[number] for number in rest]) is None:
            return found
        number = _last_of_shortest(rest, rows, trial)
        error = trial([rows[n] for n in rest[: rest.index(number) + 1]])
        if error is None:  # a concurrent commit has changed the cause
            return found
        found[number] = error


def _rows_failing_alone(
    numbers: Sequence[int], rows: Sequence[Place], trial: Trial
) -> list[tuple[int, Exception]]:
    """Return the positions of the rows that raise alone, with their exceptions."""
    if not numbers:
        return []
    error = trial([rows[number] for number in numbers])
    if error is None:
        return []
    if len(numbers) == 1:
        return [(numbers[0], error)]
    half = len(numbers) // 2
    return [
        *_rows_failing_alone(numbers[:half], rows, trial),
        *_rows_failing_alone(numbers[half:], rows, trial),
    ]


def _last_of_shortest(numbers: Sequence[int], rows: Sequence[Place], trial: Trial) -> int:
    """Return the last position of a prefix that raises, while the prefix without it does not."""
    passes, raises = 0, len(numbers)
    while raises - passes > 1:
        middle = (passes + raises) // 2
        if trial([rows[number] for number in numbers[:middle]]) is None:
            passes = middle
        else:
            raises = middle
    return numbers[raises - 1]


def _refusal_error(ledger: Ledger, batch: TableBatches, error: Exception) -> Exception:
    """Return the error to raise; for a row without a hash, the refusal of its table."""
    if type(error) is not TypeError:
        return error
    found = (ledger.targets.refusal(number, row) for number, row in batch.rows())
    return next((refused for refused in found if refused is not None), error)


def _may_blame_rows(error: Exception) -> bool:
    """Return True if rows may be the cause of an error, which leaving them out would avoid."""
    if is_asynchronous(error) or isinstance(error, MemoryError):
        return False
    return isinstance(error, BLAMED) or not isinstance(error, ReactiveError)


class _TakenBack(Exception):
    """The end of a trial."""


def _take_back() -> None:
    raise _TakenBack


def _list_places(rows: ByTable) -> list[Place]:
    return [(number, row) for number, some in rows.items() for row in some]


def _by_table(places: Sequence[Place]) -> ByTable:
    """Group rows by the number of their table."""
    found: ByTable = {}
    for number, row in places:
        found.setdefault(number, []).append(row)
    return found


T = TypeVar("T")
MOMENT = 0.001
"""The seconds between two checks."""


@boundary
class WatchedTable(Table[T, Any]):
    """A table that files feed. Created by `Database.watch`.

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
    """The ingestion that feeds the table: its state, token, errors and lag, `start` and `stop`."""
    _files: FileSource

    def catch_up(self, timeout: float | None = None) -> None:
        """Wait until the table, and views over it, contain what the files contain now.

        Parameters
        ----------
        timeout: the most seconds to wait.

        Raises
        ------
        Exception: the source was stopped by it.
        SourceError: the source was stopped, or has not been started.
        TimeoutError: `timeout` has passed.
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
            time.sleep(MOMENT)  # the source is about to report its error

    def _give_up(self, why: str) -> None:
        """Drop the table as any other, and end and forget its source."""
        super()._give_up(why)
        self.source._leave()
        _forget_source(self._engine, self.name, why)


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
    """Create a watched table, for `Database.watch`; it takes the place of the table `replaced`.

    Raises `PlanError` if the class is `@tracked`.
    """
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
        keyed = keyed_of(table)
        of_key = None if keyed is None else keyed.key
        table._files = files(pattern, row_type, name=table.name, key=of_key, **options)
        check_policy(on_error)
        if replaced is not None:
            why = f"table {replaced.name!r} was replaced at {caller()}"
            family.drop(engine, replaced, views=True, why=why)
        if engine.journal is not None or durable:
            opening.adopt(engine, table, durable, None, None)
        table.source = _ingest_files(engine, table, on_error)
        table.source.on_stop = on_stop
        engine.tables[number] = table
    if start:
        _load(engine, table)
    return table


def _ingest_files(engine: Engine, table: WatchedTable[T], on_error: OnRefusal) -> Ingestion[T]:
    """Return the ingestion that feeds a table; undo the creation of the table if that fails."""
    try:
        return ingest(engine, table._files, table, None, on_error, None)
    except BaseException:
        engine.graph.drop_source(node_of(table))
        if engine.journal is not None:
            engine.journal.release(table)
        raise


def _load(engine: Engine, table: WatchedTable[Any]) -> None:
    """Start the source and wait for its first look; if that fails, drop a new table."""
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
        family.drop(engine, table, views=True, why=why)


def _forget_source(engine: Engine, name: str, why: str) -> None:
    """Drop the ledger of a source, and the table of its errors with the views over it.

    Nothing happens if the source has no ledger.
    """
    ledger = engine.ledgers.pop(name, None)
    if ledger is None:
        return
    if ledger.errors is not None:
        family.drop(engine, ledger.errors, views=True, why=why)
    engine.graph.drop_source(node_of(ledger.entries))
    if engine.journal is not None:
        engine.journal.forget(ledger.entries)

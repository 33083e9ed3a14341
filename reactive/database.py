"""A database: tables, the graph of operators over them, and the commits that move both.

table.add(row) --> pending changes --> graph.commit --> feeds --> subscribers
                                       (all or nothing)           (after, outside the lock)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar, TypeVarTuple, overload

from optimizer.callables.source import caller
from optimizer.traverse import Rule
from reactive.api import dropping
from reactive.api import family as families
from reactive.api import metrics as measures
from reactive.api.materialize import materialize
from reactive.api.relation import Relation
from reactive.api.table import Table
from reactive.api.view import AnyView
from reactive.errors import (
    TransactionError,
)
from reactive.offload import remote_table
from reactive.offload import status as statuses
from reactive.offload import stream_table as stream_tables
from reactive.offload.offload import Offload, Offloading
from reactive.remote import streams
from reactive.runtime.boundary import boundary, hide
from reactive.runtime.closeable import Closeable
from reactive.runtime.copying import NotCopied
from reactive.sources import ingest as feeding
from reactive.sources import ingestion as ingestions
from reactive.sources import source as sources
from reactive.storage.rows import usual_name
from reactive.transactions import transaction as transactions
from reactive.transactions.engine import Engine

PATIENCE = 1.0
"""Seconds that `close` waits for each source to stop."""
T = TypeVar("T")
K = TypeVar("K")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
Ts = TypeVarTuple("Ts")


@boundary
class Database(NotCopied, Closeable):
    """Owns tables, views and transactions. Databases know nothing of each other.

    Parameters
    ----------
    optimize: whether to rewrite queries; the answer is the same, the work is not.
    rules: further rules, `optimizer.plan.Node -> Node`, tried after ours at every node of a plan.
    offload: where parts of queries go whose state outgrows the process, `SparkOffload` for one.
    strict: refuse a commit, instead of warning, when a variable that a query captured has
        changed since the query was made; and a row that was changed in place since it was added,
        when it is removed.

    >>> from reactive import Database
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> long = words.where(lambda w: len(w) > 3).materialize()
    >>> words.add_all(["to", "be", "that", "is"])
    >>> list(long)
    ['that']
    """

    def __init__(
        self,
        *,
        optimize: bool = True,
        rules: Sequence[Rule] = (),
        strict: bool = False,
        offload: Offload | None = None,
    ) -> None:
        engine = self._engine = Engine(rules, rewrite=optimize, strict=strict)
        engine.materialize = materialize
        self._offloading = Offloading(engine, offload)
        engine.place(self._offloading)

    @property
    def version(self) -> int:
        """How many commits there were that changed something."""
        return self._engine.version

    @overload
    def table(
        self,
        row_type: type[T],
        *,
        name: str | None = None,
        key: Callable[[T], K],
        stored: bool = True,
        identity: bool = False,
        replace: bool = False,
    ) -> Table[T, K]: ...
    @overload
    def table(
        self,
        row_type: type[T],
        *,
        name: str | None = None,
        key: str | None = None,
        stored: bool = True,
        identity: bool = False,
        replace: bool = False,
    ) -> Table[T, Any]: ...
    def table(
        self,
        row_type: type[T],
        *,
        name: str | None = None,
        key: str | Callable[[T], Hashable] | None = None,
        stored: bool = True,
        identity: bool = False,
        replace: bool = False,
    ) -> Table[T, Any]:
        """Make a table.

        Parameters
        ----------
        row_type: the class of its rows; `object` admits any. Rows must be hashable, and of a class
            whose instances do not change: a frozen dataclass, a tuple, a plain value.
        name: for messages; the class's name by default.
        key: a field's name, or callable, row -> hashable. At most one row per key.
        stored: False for rows that flow through and are not kept (i3QL's virtual table). Such a
            table cannot be read, nor can it tell that a removed row was never there.
        identity: True promises that rows of any other class do not change while they are in the
            table. They are compared by `==` and found by their hash, as all rows are.
        replace: drop the table that has the name, if there is one, and with it the views over it:
            for a cell of a notebook that is run again.

        Raises
        ------
        PlanError: the name is taken, or a keyed table is not to be stored.
        TransactionError: inside a transaction, with `replace`.

        >>> from reactive import Database
        >>> db = Database()
        >>> db.table(str, name="words")
        Table('words', 0 rows)
        """
        with self._engine.shaping(to_write=replace):
            old = self._named(usual_name(row_type) if name is None else name) if replace else None
            engine, number = self._engine, next(self._engine.numbers)
            table: Table[T, Any] = Table(engine, number, row_type, name, key, stored, identity, old)
            if old is not None:
                dropping.drop(
                    self._engine,
                    old,
                    views=True,
                    why=f"table {old.name!r} was replaced at {caller()}",
                )
            self._engine.tables[number] = table
            return table

    @overload
    def family(self, function: Callable[[K], Relation[*Ts]]) -> families.Family[K, *Ts]: ...
    @overload
    def family(
        self, function: Callable[[A, B], Relation[*Ts]]
    ) -> families.Family[tuple[A, B], *Ts]: ...
    @overload
    def family(
        self, function: Callable[[A, B, C], Relation[*Ts]]
    ) -> families.Family[tuple[A, B, C], *Ts]: ...
    @overload
    def family(self, function: Callable[..., Relation[*Ts]]) -> families.Family[Any, *Ts]: ...
    def family(self, function: Callable[..., Relation[*Ts]]) -> families.Family[Any, *Ts]:
        """One query for many values of a parameter: `family[value]` is the view for a value.

        Parameters
        ----------
        function: callable, parameters -> relation. It is called when a view is made, so what it
            captures has the value of then.

        Asked twice for a value, it gives the same view while somebody holds it. Views that differ
        in values alone share their plan and, where a field is compared, an index.

        Raises
        ------
        PlanError: it is not callable, or has no named parameter.

        >>> from reactive import Database
        >>> db = Database()
        >>> words = db.table(str, name="words")
        >>> of_length = db.family(lambda n: words.where(lambda w: len(w) == n))
        >>> four = of_length[4]
        >>> words.add_all(["to", "be", "that"])
        >>> list(four), four is of_length[4], len(of_length)
        (['that'], True, 1)
        """
        return families.Family(self._engine, function)

    def drop(self, table: Table[Any], *, views: bool = False) -> None:
        """End a table: its rows are given up, and using it afterwards is an error.

        Parameters
        ----------
        views: also close the views and subscriptions over it.

        Raises
        ------
        PlanError: views or subscriptions read it, which the message names; or it is no table of
            this database.
        TransactionError: inside a transaction.

        >>> from reactive import Database
        >>> db = Database()
        >>> words = db.table(str, name="words")
        >>> db.drop(words)
        >>> words, db.tables()
        (Table('words', dropped), [])
        """
        with self._engine.shaping(to_write=True):
            dropping.drop(
                self._engine,
                table,
                views=views,
                why=f"table {_name(table)!r} was dropped at {caller()}",
            )

    def spark_table(
        self,
        rows: Any,
        row_type: type[T],
        *,
        name: str | None = None,
        key: str | Callable[[T], Hashable] | None = None,
    ) -> remote_table.RemoteTable[T]:
        """Make a table whose rows are on Spark, and do not pass through this process.

        Views over it are kept on Spark too, and read like any other: small ones as they are, of
        large ones `view.to_spark()` is the DataFrame.

        Parameters
        ----------
        rows: a `DataFrame`, or the path of Parquet, CSV or Delta files. It must go on giving the
            same rows: changes are made here, and kept in the checkpoint.
        row_type: a frozen dataclass, named tuple or tuple of plain types, or a plain type.
        name, key: as of `table`; the key must be a field.

        Raises
        ------
        OffloadError: the database does not offload to Spark, or rows of the type have no columns.
        TableError: the columns do not fit the row type.
        """
        offload = self._engine.offloading.need()
        with self._engine.shaping():
            table: remote_table.RemoteTable[T] = remote_table.RemoteTable(
                self._engine,
                next(self._engine.numbers),
                row_type,
                name,
                key,
                lambda name: offload.rows(rows, row_type, key, name),
            )
            self._engine.tables[table.plan.number] = table
            return table

    def spark_stream(
        self,
        rows: Any,
        row_type: type[T],
        *,
        name: str | None = None,
        key: str | None = None,
        changes: streams.Changes = "append",
        deletes: Any = None,
        change_column: str | None = None,
        order: str | None = None,
        trigger: str | float = 1.0,
        format: str = "parquet",
        on_error: feeding.OnRefusal = "raise",
        start: bool = True,
    ) -> stream_tables.StreamTable[T]:
        """Make a table that a stream on Spark feeds; its rows do not pass through this process.

        Each batch is a commit of its own, and its number is noted with its rows: a batch that comes
        again after a failure changes nothing. With a checkpoint of the offload, a later process
        that makes the table again goes on from there. `table.source` starts, stops and waits, and
        tells the token, which is the number of the last batch, the lag and the error.

        Parameters
        ----------
        rows: a streaming `DataFrame`; a path, whose files of a `format` are followed; a callable,
            `SparkSession` -> `DataFrame`, which can go on in another JVM; or a static `DataFrame`,
            which is one batch.
        row_type: as of `spark_table`.
        name: of the table and its source.
        key: a field. A row takes the place of the row with its key, and is deleted by its key.
        changes: how rows say what changes. `"append"`: each is there once more. `"cdf"`: by
            `_change_type`, as in Delta's change data feed and Iceberg's changelog. `"debezium"`: by
            `op`, in the columns `before` and `after`. `"weight"`: a column has the number of times
            that the row comes, or goes. `"snapshot"`: they are all rows, and are read again
            at each `trigger`; the difference is a change.
        deletes: as `rows`, of rows that go: a second folder or stream beside the one that adds.
        change_column: the one that says it, if it is not `_change_type`, `op` or `weight`.
        order: a column by which the last of several changes of a key in a batch is known; else
            `_commit_version` or `_change_ordinal` of a feed, `offset` or `ts_ms` of Debezium.
        trigger: how long rows wait for the next batch: seconds, or text such as `"10s"`; or
            `"available now"` for what is there now, after which the source has ended.
        format: of the files: `"parquet"`, `"csv"` with a header, `"json"`.
        on_error: what becomes of a row that does not fit the type: one that is malformed, null
            where None is not of the type, beyond the dates that Python has, or of a key that is
            null. `"raise"`: the source stops before the batch. `"drop"`: it is left out, and is in
            `table.source.errors`, with the rows on Spark, until the source replaces or removes it.
        start: `False` if you start it later, by `table.source.start()`.

        Raises
        ------
        OffloadError: the database does not offload to Spark, or rows of the type have no columns.
        TableError: the columns do not fit the row type.
        PlanError: what is asked of it does not exist.
        TransactionError: inside a transaction.
        """
        offload = self._engine.offloading.need()
        options = streams.StreamOptions(
            *(changes, deletes, change_column, order, trigger, format, on_error == "drop")
        )
        feeding.check_policy(on_error)
        with self._engine.shaping(to_write=True):
            table = stream_tables.stream_table(
                self._engine,
                row_type,
                name,
                key,
                lambda name: offload.stream(rows, row_type, key, name, options),
            )
        if start:
            table.source.start()
        return table

    @overload
    def ingest(
        self,
        source: None,
        into: Table[T, Any],
        *,
        since: Any = None,
        on_error: feeding.OnRefusal = "raise",
        name: str,
        start: bool = True,
    ) -> ingestions.Ingestion[T]: ...
    @overload
    def ingest(
        self,
        source: None,
        into: Mapping[type, Table[Any, Any]],
        *,
        since: Any = None,
        on_error: feeding.OnRefusal = "raise",
        name: str,
        start: bool = True,
    ) -> ingestions.Ingestion[Any]: ...
    @overload
    def ingest(
        self,
        source: sources.Source[T] | sources.Batches[T],
        into: Table[T, Any] | Mapping[type, Table[Any, Any]],
        *,
        since: Any = None,
        on_error: feeding.OnRefusal = "raise",
        name: str | None = None,
        start: bool = True,
    ) -> ingestions.Ingestion[T]: ...
    def ingest(
        self,
        source: sources.Source[Any] | sources.Batches[Any] | None,
        into: Table[Any, Any] | Mapping[type, Table[Any, Any]],
        *,
        since: Any = None,
        on_error: feeding.OnRefusal = "raise",
        name: str | None = None,
        start: bool = True,
    ) -> ingestions.Ingestion[Any]:
        """Feed tables from a source: each of its batches becomes a commit, in a thread of its own.

        The token of a batch is noted in its commit, by the name of the source: a source that is
        ingested again goes on where it was, and each batch is in the tables once.

        Parameters
        ----------
        source: a `Source`, or a function (since, stop) -> batches, such as a generator function.
            `None` if you give the batches by `take`.
        into: the table that takes its rows; or several by the classes of their rows. Others may
            change the rows of a table that has a key. A row that came from an origin or without a
            key, and was removed by others, stops the source when it is to go.
        since: the token to begin at, if the database has none of this source.
        on_error: what becomes of a row that its table refuses, or of which a view raises an
            `Exception` in the commit. `"raise"`: the source stops before the batch, and tables,
            token and other sources stay as they are. `"drop"`: the batch is committed without the
            row; the row whose place it would have taken goes; `errors` of what this gives has it.
            What no row is to blame for stops the source.
        name: in the place of the name that the source has.
        start: `False` if you `start` it later, or `run` it in a thread of yours.

        Raises
        ------
        PlanError: what is given is no source, or no table of this database.
        SourceError: the source is running; or its token is of other tables, or is not `since`.
        TransactionError: inside a transaction.

        >>> from reactive import Batch, Database
        >>> db = Database()
        >>> stock = db.table(tuple, key=lambda s: s[0], name="stock")
        >>> def changes(since, stop):
        ...     yield Batch([("nuts", 7), ("bolts", 2)], token=1)
        ...     yield Batch([("nuts", 9)], deletes=["bolts"], token=2)
        >>> db.ingest(changes, stock).wait()
        >>> list(stock), db.tokens
        ([('nuts', 9)], {'changes': 2})
        """
        made = feeding.ingest(self._engine, source, into, since, on_error, name)
        if start and source is not None:
            made.start()
        return made

    @property
    def tokens(self) -> dict[str, Any]:
        """Where each source is: its name -> the token of its last batch that was committed."""
        found = {name: ledger.token for name, ledger in list(self._engine.ledgers.items())}
        return {name: token for name, token in found.items() if token is not None}

    def transaction(self) -> transactions.Transaction:
        """Make several changes one commit: `with db.transaction(): ...`, also `async with`.

        If the block raises, no table and no view has changed. A transaction inside another is
        part of the outer one.

        >>> from reactive import Database
        >>> db = Database()
        >>> words = db.table(str, name="words")
        >>> with db.transaction():
        ...     words.add("to")
        ...     words.add("be")
        >>> db.version
        1
        """
        try:
            return transactions.Transaction(self._engine)
        except Exception as error:
            hide(error)
            raise

    def flush(self) -> None:
        """Bring views that depend on parts elsewhere up to date with the last commit.

        They change together, and their subscribers are told once, of all commits since the last
        flush. Commits of other threads go on meanwhile. Then sinks without a trigger write.

        Raises
        ------
        OffloadError: the parts cannot be reached; nothing has changed.
        Exception: what the target of a sink raises; its changes are kept.
        """
        self._engine.offloading.flush()
        for sink in list(self._engine.sinks):
            if not sink.is_timed:
                sink.flush()

    def offload_status(self) -> statuses.OffloadStatus:
        """What is elsewhere: which views, how large, how far behind; prints as a table."""
        self._engine.check_open()
        return statuses.status(self._offloading)

    def metrics(self) -> measures.Metrics:
        """What a service watches: commits and their time, and what waits for subscribers.

        >>> from reactive import Database
        >>> db = Database()
        >>> words = db.table(str, name="words")
        >>> words.add("be")
        >>> db.metrics().commits
        1
        """
        self._engine.check_open()
        return measures.metrics(self._engine)

    def tables(self) -> list[Table[Any]]:
        """All tables, in the order they were made.

        >>> from reactive import Database
        >>> db = Database()
        >>> words, names = db.table(str, name="words"), db.table(str, name="names")
        >>> db.tables()
        [Table('words', 0 rows), Table('names', 0 rows)]
        """
        return list(self._engine.tables.values())

    def views(self) -> list[AnyView]:
        """The views that somebody holds; each tells in its `place` where it was made.

        >>> from reactive import Database
        >>> db = Database()
        >>> shout = db.table(str, name="words").select(str.upper).materialize("shout")
        >>> [view.name for view in db.views()]
        ['shout']
        """
        return self._engine.live_views()

    def close(self) -> None:
        """End it: sources, sinks, views and subscriptions with it. Using any of them afterwards is
        an error. Sinks write no more: `flush` before, if they are to."""
        engine = self._engine
        if engine.db_lock.is_closed:
            return
        if engine.ingestions and not (engine.pending is not None and engine.db_lock.is_mine):
            feeding.stop_all(engine, PATIENCE)
        for sink in list(engine.sinks):
            sink.stop()
        if engine.overflow is not None and engine.pending is None:
            engine.overflow.stop()
        with engine.inside(to_write=True):
            if engine.pending is not None:
                raise TransactionError(
                    "a database cannot be closed inside a transaction\n"
                    "  close it after the `with` block"
                )
            for view in self.views():
                view.close()
            for channel in list(engine.feeds):
                channel.close()
            engine.offloading.close()
            engine.timer.close()
            engine.db_lock.close()

    _copy_instead = "make another one; its tables take list(table) by add_all"
    _pickle_instead = "pickle the rows of its tables, list(table) of each of db.tables()"

    def _called(self) -> str:
        return f"a database of {len(self._engine.tables)} tables"

    def _named(self, name: str) -> Table[Any] | None:
        return next((table for table in self.tables() if table.name == name), None)

    def __repr__(self) -> str:
        return repr(self._engine)


def _name(table: object) -> object:
    return getattr(table, "name", table)

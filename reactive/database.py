"""A database: tables, the graph of operators over them, and the commits that move both.

table.add(row) --> pending changes --> graph.commit --> feeds --> subscribers
                                       (all or nothing)           (after, outside the lock)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, TypeVarTuple, cast, overload

from optimizer.callables.source import caller
from optimizer.kinds.fields import TRACKED
from optimizer.traverse import Rule
from reactive.api import clock as clocks
from reactive.api import commits as past_commits
from reactive.api import expiry as expirations
from reactive.api import family, iterate, nested
from reactive.api import family as queries
from reactive.api import literal as literals
from reactive.api import parameter as parameters
from reactive.api import recurrence as recurrences
from reactive.api import stats as measures
from reactive.api import stream as streams
from reactive.api.materialize import materialize
from reactive.api.relation import AnyRelation, Relation
from reactive.api.table import Table
from reactive.api.view import AnyView
from reactive.engine.collections import instants
from reactive.engine.dataflow.discrimination import QueueLimits
from reactive.engine.remote import remote
from reactive.engine.runtime.boundary import boundary, hide
from reactive.engine.runtime.closeable import Closeable, Uncopyable, hint
from reactive.engine.runtime.foreign_names import OF_DATABASES
from reactive.engine.runtime.sql_names import DialectName, RowCount, check_dialect
from reactive.engine.storage.rows import usual_name
from reactive.engine.transactions import prepared
from reactive.engine.transactions import supposition as suppositions
from reactive.engine.transactions import transaction as transactions
from reactive.engine.transactions.engine import Engine, stop_work
from reactive.errors import PlanError, TransactionError
from reactive.parts import (
    adopting,
    assigning,
    backend,
    backup,
    batches,
    beginning,
    feeding,
    ingestions,
    load_rereading,
    loading,
    object_table,
    opening,
    placed,
    programs,
    read_only,
    remote_table,
    silent,
    sources,
    sql,
    statuses,
    stream_tables,
    watched_tables,
)

if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from pathlib import Path

    from reactive.api.clock import Clock
    from reactive.api.parameter import Parameter
    from reactive.api.recurrence import Delayed, Recurrence
    from reactive.api.stream import Stream
    from reactive.borders.durable.store import Store
    from reactive.borders.objects.silent import Silent
    from reactive.engine.transactions.commit_log import Past

PATIENCE = 1.0
"""Seconds that `close` waits for each source to stop."""
T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
Ts = TypeVarTuple("Ts")


@boundary
class Database(Uncopyable, Closeable):
    """The owner of tables, views and transactions. Databases are independent of each other.

    Parameters
    ----------
    path: the file, or the address of the server, that stores the rows of its tables. Without a
        path, rows are in memory only. A table that is created again has the rows that it had, see
        docs/durable.md. The next three options, and `readonly`, need a path or a store.
    durability: when a commit reaches the file. `"commit"`: before the statement returns, and before
        subscribers are notified. `"group"`: about 10 ms later, or when `flush` returns. `"exit"`:
        when `flush` or `close` returns.
    synchronous: `"full"` if each commit waits for the disk, so that it survives a loss of power.
    store: a `Store` in place of a path.
    keep: the number of most recent commits that are kept, in the file or in memory: for `history`,
        `undo`, `at` and `changes_since`.
    readonly: open a file that another process may be writing. Tables have the rows as of the
        opening and refuse changes; `reread` reads the commits since.
    optimize: rewrite queries. The results are the same, the work is not.
    rules: your rewrite rules, `optimizer.plan.Node -> Node`, tried after the built-in ones at
        every node of a plan.
    offload: the backend for the parts of queries that outgrow the process, such as `SparkOffload`.
    strict: raise, instead of warning, when a variable that a query captured has changed since the
        query was made, and when a removed row was changed in place since it was added; also refuse
        rows with a value of another class than its field declares.
    dialect: the dialect of `sql` and `execute`: `"duckdb"`, `"postgres"` or `"sqlite"`.
    timezone: the time zone of `sql` and `execute`: of timestamps (TIMESTAMPTZ) written without a
        zone, and for showing timestamps and extracting their parts.
    deliver: the thread that notifies subscribers of a commit. `"writer"`: the thread that made it,
        which waits while another thread is notifying; an event loop does not wait.
        `"background"`: a thread of the database. See docs/delivery.md.
    deliver_timeout: the most seconds that a writer waits for another thread to deliver its commit.
    max_waiting: the most deltas that may be queued while no writer waits for their delivery.
    max_waiting_bytes: the most bytes of such deltas, as estimated.
    when_full: the reaction to a full queue. `"block"`: the writer waits. `"merge"`: deltas of one
        view become one. `"close"`: the subscription whose callback is running ends with an error.

    Raises
    ------
    DurabilityError: the file cannot be opened, for example because another process has it open.

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
        path: str | os.PathLike[str] | None = None,
        *,
        durability: Literal["commit", "group", "exit"] = "commit",
        synchronous: Literal["normal", "full"] = "normal",
        store: Store | None = None,
        keep: int = 0,
        readonly: bool = False,
        optimize: bool = True,
        rules: Sequence[Rule] = (),
        strict: bool = False,
        offload: backend.Offload | None = None,
        dialect: DialectName = "duckdb",
        timezone: str = "UTC",
        deliver: Literal["writer", "background"] = "writer",
        deliver_timeout: float | None = None,
        max_waiting: int = 10_000,
        max_waiting_bytes: int = 256 * 2**20,
        when_full: Literal["block", "merge", "close"] = "block",
    ) -> None:
        engine = self._engine = Engine(rules, rewrite=optimize, strict=strict)
        limits = QueueLimits(max_waiting, max_waiting_bytes, when_full)
        engine.delivery_queue.set_up(deliver, deliver_timeout, limits)
        engine.dialect = check_dialect(dialect)
        engine.timezone = timezone if timezone == "UTC" else instants.checked_zone(timezone)
        engine.materialize = materialize
        engine.nest = lambda relation, named: nested.nest(relation, named)
        engine.rows_of_groups = lambda *made: iterate.rows_of_groups(*made)
        engine.add_table = partial(_add_table, engine)
        self._offloading = placed(engine, offload)
        engine.place(self._offloading)
        given = (path, store, durability, synchronous, keep, readonly)
        if type(keep) is int and given == (None, None, "commit", "normal", max(keep, 1), False):
            past_commits.start_log(engine, keep, None)
        elif given != (None, None, "commit", "normal", 0, False):
            beginning.begin(engine, opening.StoreOptions(*given), read_only.ReadOnlyJournal)

    @property
    def version(self) -> int:
        """The number of commits that changed a row."""
        return self._engine.version

    @overload
    def table(self, row_type: str) -> Table[Any, Any]: ...
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
        durable: bool | None = None,
        codec: Any = None,
        migrate: Callable[[dict[str, Any]], Any] | None = None,
        reread: Callable[[], Iterable[T]] | None = None,
        expire_after: timedelta | None = None,
        at: str | Callable[[T], datetime | None] | None = None,
    ) -> Table[T, K]: ...
    @overload
    def table(
        self,
        row_type: type[T],
        *,
        name: str | None = None,
        key: str | Sequence[str] | None = None,
        stored: bool = True,
        identity: bool = False,
        replace: bool = False,
        durable: bool | None = None,
        codec: Any = None,
        migrate: Callable[[dict[str, Any]], Any] | None = None,
        reread: Callable[[], Iterable[T]] | None = None,
        expire_after: timedelta | None = None,
        at: str | Callable[[T], datetime | None] | None = None,
    ) -> Table[T, Any]: ...
    def table(
        self,
        row_type: type[T] | str,
        *,
        name: str | None = None,
        key: str | Sequence[str] | Callable[[T], Hashable] | None = None,
        stored: bool = True,
        identity: bool = False,
        replace: bool = False,
        durable: bool | None = None,
        codec: Any = None,
        migrate: Callable[[dict[str, Any]], Any] | None = None,
        reread: Callable[[], Iterable[T]] | None = None,
        expire_after: timedelta | None = None,
        at: str | Callable[[T], datetime | None] | None = None,
    ) -> Table[T, Any]:
        """Create a table; or return the table of a name, as `db.table("words")`.

        Parameters
        ----------
        row_type: the class of its rows; `object` admits rows of any class. Rows must be hashable
            and immutable: a frozen dataclass, a tuple, a plain value. Rows of `tuple[int, str]`
            have two items each, so the optimizer may reorder callables that read these items. A
            name, without other arguments, returns a table that is there; also one that SQL defined
            in the file of the database.
        name: the name of the table in messages, SQL and the file; by default that of the class.
        key: the name of a field, or a callable, row -> hashable. For a key of several fields pass
            their names, `key=["shop", "id"]`; the key is then a tuple. Two rows cannot have one
            key.
        stored: False if rows flow through and are not stored (i3QL's virtual table). Such a table
            cannot be read, and cannot detect that a removed row was never added.
        identity: True promises that rows do not change while they are in the table, whatever their
            class. They are still compared by `==` and found by their hash.
        replace: drop the table of that name, if there is one, with the views over it, so that a
            cell of a notebook can run again. A durable table keeps its rows.
        durable: store the rows in the file of the database. The default is True if the database has
            a file and the rows are stored; a durable table needs a name.
        codec: the encoding of rows that are not made of plain values: an object with `encode`, row
            -> bytes or str, and `decode`, its inverse; or a tuple of these two functions.
        migrate: the conversion of stored rows of an older class: callable, dictionary of the old
            fields -> row, or dictionary of the new fields, or None to leave the row out.
        reread: callable, () -> all rows, for example from a SQL database. The table begins with
            these rows. The callable runs again if the outcome of a commit is unknown
            (`transaction`) and when you call `Database.reread`; it runs in any thread, so it must
            open a connection or take one from a pool.
        expire_after: delete each row when it is that old by the clock of the database, in the
            commit that advances the clock (`Database.clock`, docs/time.md). A row that is too old
            when it is added is deleted at the next tick.
        at: the moment of a row from which it ages: the name of a field, or a callable, row ->
            datetime, with a time zone if the clock has one. A row of None never expires.

        Raises
        ------
        PlanError: there is no table of that name, or a new name is taken; a keyed table is declared
            `stored=False`; rows of the class need a codec to be stored; or the rows in the file are
            of another class.
        DurabilityError: the file cannot be read or written.
        TransactionError: `replace` inside a transaction.

        >>> from reactive import Database
        >>> db = Database()
        >>> words = db.table(str, name="words")
        >>> db.table("words") is words
        True
        """
        others = (name, key, durable, codec, migrate, reread, expire_after, at)
        is_found = isinstance(row_type, str) and stored and not (identity or replace)
        if is_found and all(other is None for other in others):
            return cast("Table[T, Any]", self._table_of_name(cast("str", row_type)))
        age = None
        if expire_after is not None or at is not None:
            age = expirations.check_expiry(row_type, stored, expire_after, at)
        made: Any = object_table() if hasattr(row_type, TRACKED) else Table
        table: Table[T, Any] = self._engine.add_table(
            lambda number, old: made(
                self._engine, number, row_type, name, key, stored, identity, old
            ),
            (usual_name(row_type) if name is None else name) if replace else None,
            (durable, codec, migrate),
        )
        if expire_after is not None and age is not None:
            expirations.begin_expiry(table, expire_after, age)
        if reread is not None:
            self._begin_with(table, reread)
        return table

    def parameter(
        self,
        value: T,
        *,
        name: str | None = None,
        row_type: Any = None,
        durable: bool | None = None,
        replace: bool = False,
    ) -> Parameter[T]:
        """Create a parameter: a value that queries read by a call, and that can be set.

        Parameters
        ----------
        value: the first value. If the file of the database has a value of that name, that one is
            kept.
        name: the name in messages, in SQL and in the file.
        row_type: the type of the values, as of the rows of a table; by default the class of
            `value`.
        durable: store the value in the file of the database. The default is True if the database
            has a file and the parameter a name.
        replace: drop the parameter of that name first, as in `table`.

        Cost: of a change, the rows for which it makes a difference; docs/parameters.md.

        Raises
        ------
        PlanError: the name is taken, or the value is None.
        TableError: the value is not of the type, or not hashable.
        TransactionError: inside a transaction.

        >>> from reactive import Database
        >>> db = Database()
        >>> sales = db.table(tuple[str, int], name="sales")
        >>> n = db.parameter(10)
        >>> large = sales.where(lambda s: s[1] > n()).materialize()
        >>> sales.add_all([("Ulm", 11), ("Bonn", 15)])
        >>> n.set(12)
        >>> list(large)
        [('Bonn', 15)]
        """
        row_type = parameters.type_of_value(value, row_type)
        if self._engine.mine is not None:
            raise TransactionError(
                "a parameter cannot be made inside a transaction\n"
                "  make it before the `with` block, and set() it inside"
            )
        is_stored = False if name is None and durable is None else durable
        own = self._engine.tables.free("parameter") if name is None else name
        parameter: Parameter[T] = self._engine.add_table(
            lambda number, old: parameters.Parameter(self._engine, number, row_type, own, old),
            name if replace else None,
            (is_stored, None, None),
        )
        parameters.begin(parameter, value, self.drop)
        return parameter

    def stream(
        self,
        row_type: type[T],
        *,
        at: Callable[[T], Any] | str,
        lateness: Any,
        name: str | None = None,
        late: Literal["keep", "raise"] = "keep",
        replace: bool = False,
        durable: bool = False,
        codec: Any = None,
        migrate: Callable[[dict[str, Any]], Any] | None = None,
    ) -> Stream[T]:
        """Create a stream: a table of events, which flow through and are not removed.

        Parameters
        ----------
        row_type, name, replace: as in `table`.
        at: callable, event -> its time, or the name of a field; a time that is None is never late.
        lateness: the distance by which events may be out of order, such as a timedelta. The
            watermark is the greatest time so far, less the lateness; an event before the watermark
            of the last commit is late.
        late: the reaction to a late event. `"keep"`: it goes to `stream.late`, a table whose rows
            flow through. `"raise"`: the commit is refused.
        durable: keep the events in the file of the database, not in memory: in the commit of the
            events and of the token of their source. When the file is opened again, watermark and
            views are as before, and the source continues. The file grows with each event.
        codec, migrate: as in `table`, of a durable stream.

        Rows are not stored: make the views before events flow. See docs/time.md.

        Raises
        ------
        PlanError: the name, or that with `_late` at its end, is taken; the lateness is no distance;
            the stream cannot be durable.
        DurabilityError: the file cannot be read or written.
        TransactionError: inside a transaction.

        >>> from reactive import Database
        >>> db = Database()
        >>> clicks = db.stream(tuple[str, int], at=lambda c: c[1], lateness=5, name="clicks")
        >>> clicks.add_all([("home", 3), ("shop", 12)])
        >>> clicks.watermark.first()
        7
        """
        if self._engine.mine is not None:
            raise TransactionError(
                "a stream cannot be made inside a transaction\n"
                "  make it before the `with` block, and add events inside"
            )
        own = usual_name(row_type) if name is None else name
        stream: Stream[T] = self._engine.add_table(
            lambda number, old: streams.Stream(
                self._engine, number, row_type, own, at, lateness, late, old
            ),
            own if replace else None,
            (durable, codec, migrate),
        )
        try:
            late_name = f"{stream.name}_late"
            late_events: streams.LateTable[T] = self._engine.add_table(
                lambda number, old: streams.LateTable(
                    self._engine, number, row_type, late_name, None, False, False, old
                ),
                late_name if replace else None,
                (durable, codec, migrate),
            )
            streams.begin(stream, late_events)
        except BaseException:
            self.drop(stream, views=True)
            raise
        return stream

    def feedback(
        self,
        row_type: type[T],
        step: Callable[[Delayed[T]], Relation[T]],
        *,
        start: Iterable[T] = (),
        name: str | None = None,
        durable: bool | None = None,
        codec: Any = None,
    ) -> Recurrence[T]:
        """Create a relation that is defined by its own rows as of the previous commit.

        After commit n it is `y(n) = step(y(n - 1))`, of the rows that other relations have after
        commit n. It is alive from here on, whether a view reads it or not, and each commit is a
        step, also one that changes other tables only. A commit that fails is none.

        Parameters
        ----------
        row_type: the class of its rows, as in `table`.
        step: callable, y -> relation; it may read `y.previous()`, as often as it likes.
        start: the rows before the first step, which is taken here. If the file of the database has
            rows of that name, these are the rows of the last commit, and there is no new step.
        name: the name in messages and in the file; by default that of the class.
        durable, codec: as in `table`, for the rows of the previous commit.

        Cost: of each commit, the rows that the one before has changed, and the work of the step.

        Raises
        ------
        PlanError: the step reads `y` without `previous()`; what it returns has several bindings, an
            order, or maybe rows of negative weight; or the name is taken.
        TransactionError: inside a transaction.

        >>> from reactive import Database, Sum
        >>> db = Database()
        >>> x = db.table(float, name="x")
        >>> def step(y):
        ...     halves = y.previous().select(lambda v: v / 2)
        ...     return x.union_all(halves).aggregate(Sum(lambda v: v))
        >>> y = db.feedback(float, step).materialize()
        >>> x.add(8.0)
        >>> y.value
        8.0
        >>> x.add(1.0)
        >>> y.value
        13.0
        """
        if self._engine.mine is not None:
            raise TransactionError(
                "a feedback cannot be made inside a transaction\n  make it before the `with` block"
            )
        own = usual_name(row_type) if name is None else name
        return recurrences.make(self._engine, row_type, step, start, own, (durable, codec, None))

    def table_from(
        self,
        frame: Any,
        *,
        key: str | Sequence[str] | None = None,
        name: str | None = None,
        replace: bool = False,
    ) -> Table[Any, Any]:
        """Create a table from a data frame: with its rows, and a row class made from its schema.

        The class, `table.row_type`, is a frozen dataclass with slots. A column is `| None` if it
        has nulls, or if the frame has no rows. Lists become tuples, structs records. Names that are
        not identifiers are changed: `unit price` is the field `unit_price`, `class` is `class_`,
        `2024` is `column_2024`, and a second `a` is `a_2`.

        Parameters
        ----------
        frame: an object with `__arrow_c_stream__`, such as a DataFrame of polars or pandas, a
            `pyarrow.Table` or a relation of DuckDB; a frame that narwhals knows; a list of
            dictionaries; or the path of a Parquet, CSV, Feather or JSON Lines file. NaN in a pandas
            DataFrame becomes None, and a named index becomes a column.
        key: the field name of a column, or a list of them. Two rows cannot have one key.
        name: the name of the table and of the row class; by default `Row`.
        replace: drop the table of that name first, as in `table`. A durable table gets the rows of
            the frame in place of the rows in the file.

        Raises
        ------
        PlanError: `frame` is not a frame, `key` is not a column, or a library is missing; or a
            durable table has rows in the file already.
        TableError: two rows have one key.

        Cost: O(values), 0.05 us for each plain value.

        >>> from reactive import Database
        >>> rows = [{"id": 1, "town": "Ulm"}, {"id": 2}]
        >>> sales = Database().table_from(rows, key="id", name="sales")
        >>> sales[1], sales.row_type.__annotations__
        (Sales(id=1, town='Ulm'), {'id': <class 'int'>, 'town': str | None})
        """
        return loading.table_from(self, frame, key, name, replace=replace)  # type: ignore[no-any-return]

    def values(self, rows: Iterable[T], row_type: type[T] | None = None) -> Relation[T]:
        """Return a constant relation: `rows`, which never change.

        Parameters
        ----------
        rows: an iterable of hashables; repeated rows count. It may be empty.
        row_type: the class of the rows, as for `table`; by default inferred from the rows.

        The optimizer evaluates constant parts of a query beforehand: a join with one row, for
        example, becomes an expression.

        State: the rows. Cost: none.

        Raises
        ------
        PlanError: a row is not hashable, or not of `row_type`.

        >>> from reactive import Database
        >>> db = Database()
        >>> words = db.table(str, name="words")
        >>> sizes = db.values([("short", 1, 3), ("long", 4, 99)])
        >>> sized = words.join(sizes, on=lambda w, s: s[1] <= len(w) <= s[2])
        >>> view = sized.select(lambda w, s: (w, s[0])).materialize()
        >>> words.add_all(["to", "that"])
        >>> sorted(view)
        [('that', 'long'), ('to', 'short')]
        """
        return Relation(self._engine, literals.literal(rows, row_type))

    @overload
    def family(self, function: Callable[[K], Relation[*Ts]]) -> family.Family[K, *Ts]: ...
    @overload
    def family(
        self, function: Callable[[A, B], Relation[*Ts]]
    ) -> family.Family[tuple[A, B], *Ts]: ...
    @overload
    def family(
        self, function: Callable[[A, B, C], Relation[*Ts]]
    ) -> family.Family[tuple[A, B, C], *Ts]: ...
    @overload
    def family(self, function: Callable[..., Relation[*Ts]]) -> family.Family[Any, *Ts]: ...
    def family(self, function: Callable[..., Relation[*Ts]]) -> family.Family[Any, *Ts]:
        """Return a family of views: `family[value]` is the view of one query for a parameter value.

        Parameters
        ----------
        function: callable, parameters -> relation. It is called whenever a view is made, and
            captures the values that its variables have then.

        While a view is referenced, asking for its value again returns the same view. Views that
        differ only in values share their plan and, if a field is compared with the value, an index.

        Raises
        ------
        PlanError: `function` is not callable, or has no named parameter.

        >>> from reactive import Database
        >>> db = Database()
        >>> words = db.table(str, name="words")
        >>> of_length = db.family(lambda n: words.where(lambda w: len(w) == n))
        >>> four = of_length[4]
        >>> words.add_all(["to", "be", "that"])
        >>> list(four), four is of_length[4], len(of_length)
        (['that'], True, 1)
        """
        return family.Family(self._engine, function)

    def sql(self, text: str, /, **parameters: Any) -> Relation[Any]:
        """Return the relation of a SQL query: a relation like any other, of named tuples.

        Names in FROM are the names of tables and views of this database, not of Python variables.
        docs/sql.md lists the supported SQL, and where dialects differ.

        Parameters
        ----------
        text: one query, in the dialect of the database.
        parameters: `:name` is a constant with the value given here; a relation given here can be
            named in FROM. The text must use each parameter.

        A view of the relation leaves out rows that raise, and lists them in `view.errors`. With an
        ORDER BY it is a sequence. Cost: that of the same query written with methods.

        Raises
        ------
        PlanError: the text is not a query, or names something unknown; with line and column.

        >>> from dataclasses import dataclass
        >>> from reactive import Database
        >>> @dataclass(frozen=True, slots=True)
        ... class Order:
        ...     id: int
        ...     town: str
        ...     total: int
        >>> db = Database()
        >>> orders = db.table(Order, name="orders", key="id")
        >>> towns = db.sql('''
        ...     select town, sum(total) as total from orders
        ...     group by town having sum(total) > :least order by town''', least=5).materialize()
        >>> orders.add_all([Order(1, "Bonn", 7), Order(2, "Ulm", 3), Order(3, "Ulm", 4)])
        >>> list(towns)
        [Row(town='Bonn', total=7), Row(town='Ulm', total=7)]
        """
        return sql().query_relation(self._engine, text, parameters)  # type: ignore[no-any-return]

    def execute(self, text: str, /, **parameters: Any) -> RowCount:
        """Run a SQL statement that changes the database, in one transaction.

        `create table` makes a table of named tuples, with the PRIMARY KEY as its `key=`; `create
        view` names a query; `insert`, `update`, `delete` and `drop` do what they say.

        Parameters
        ----------
        text: one statement, in the dialect of the database.
        parameters: constants and relations by name, as in `sql`.

        Return the number of rows that were inserted, updated or deleted, an `int` whose `rows` are
        the rows of RETURNING: named tuples, of the rows as they are written, or were.

        Raises
        ------
        PlanError: the text is not a statement, or names something unknown; with line and column.
        TableError: a table refuses a row, for example for a key that is taken; nothing has changed.

        >>> from reactive import Database
        >>> db = Database()
        >>> db.execute("create table words (id int primary key, word text not null)")
        0
        >>> db.execute("insert into words values (1, 'to'), (:id, 'be')", id=2)
        2
        >>> db.execute("delete from words where id > 1 returning word").rows
        [Row(word='be')]
        """
        returned: list[Any] = []
        count = RowCount(sql().execute(self, text, parameters, returned))
        if returned:
            count.rows = returned[1]
        return count

    @overload
    def query(  # type: ignore[overload-overlap]  # a mapping is iterable, and anything a value
        self, function: Callable[[], Mapping[K, V]], /
    ) -> queries.GroupedQuery[K, V]: ...
    @overload
    def query(self, function: Callable[[], Iterable[T]], /) -> queries.Query[T]: ...
    @overload
    def query(self, function: Callable[[], T], /) -> queries.Query[T]: ...
    def query(self, function: Callable[[], Any], /) -> Any:
        """Turn a function of comprehensions over tables and relations into a live query.

        Write the function as you would over lists. `query` is also a decorator.

        Parameters
        ----------
        function: callable without parameters that returns a list, set, dictionary, generator,
            `sorted(...)`, or a value. Its source is read and it is not called, see
            docs/comprehensions.md.

        The rows are those that Python computes if each relation is a list of its rows in any
        order: all elements of a list, each element of a set once. A dictionary is a
        `GroupedRelation`, whose view is a mapping; `sorted(...)` an `OrderedRelation`, whose view
        is a sequence; a value one row. `query.on(orders=[...])` runs the function on lists.

        Raises
        ------
        PlanError: the function cannot be read, or depends on the order of rows; the message says
            where.
        StratificationError: the function calls itself inside a sum, a `not in`, or another
            expression that is not monotone.

        >>> from reactive import Database
        >>> db = Database()
        >>> orders = db.table(tuple[str, int], name="orders")
        >>> @db.query
        ... def totals() -> dict[str, int]:
        ...     names = {w for w, _ in orders}
        ...     return {who: sum(n for w, n in orders if w == who) for who in names}
        >>> view = totals.materialize()
        >>> orders.add_all([("Ann", 3), ("Bob", 1), ("Ann", 4)])
        >>> view["Ann"], view == {"Ann": 7, "Bob": 1}
        (7, True)
        """
        return queries.query(self._engine, function)

    def datalog(
        self,
        text: str | os.PathLike[str],
        /,
        *,
        inputs: Mapping[str, AnyRelation] | None = None,
        bits: int | None = None,
        functors: Mapping[str, Callable[..., Any]] | None = None,
        folder: str | os.PathLike[str] | None = None,
        macros: Mapping[str, str] | None = None,
        max_rounds: int | None = 10_000,
        watch: bool = False,
    ) -> programs.Program:
        """Return the relations that a Datalog program defines, as live relations by name.

        Parameters
        ----------
        text: a program in the core of Soufflé's language, see docs/datalog.md; or the path of a
            file with one.
        inputs: relations by name, for the program to read. Other relations that are declared
            `.input` are the tables of these names, which are created if they do not exist.
        bits: 32 or 64 for integers that wrap around as in Soufflé; by default they are unbounded.
        functors: callables by name, for the functors that the program declares by `.functor`; each
            gives the same result for the same arguments.
        folder: the folder of included files, and of files of facts; by default that of the program,
            if `text` is a path.
        macros: texts by name, in place of these names, as `#define` says in the program.
        max_rounds: the most rounds of relations that compute new values from their own, such as
            `n + 1`; more are a `FixpointError`. None for no limit.
        watch: follow the files of facts: new tables of inputs are made by `watch`, with the files
            that `.input` names. Otherwise `program.load()` reads these files once.

        The relations are sets of named tuples with the declared columns.

        State and cost: as for a query; as for `fixpoint` where relations depend on themselves.
        Source: Soufflé: Jordan, Scholz, Subotic, CAV 2016.

        Raises
        ------
        PlanError: the text is not a program; with line and column.
        StratificationError: a relation depends on its own negation or aggregate.

        >>> from reactive import Database
        >>> db = Database()
        >>> parents = db.table(tuple[str, str], name="parent")
        >>> program = db.datalog('''
        ...     .decl parent(x: symbol, y: symbol) .input parent
        ...     .decl cousins(x: symbol, y: symbol) .output cousins
        ...     cousins(x, y) :- parent(a, x), parent(b, y), parent(c, a), parent(c, b), a != b.
        ... ''')
        >>> cousins = program["cousins"].materialize()
        >>> parents.add_all([("ann", "bob"), ("ann", "eve"), ("bob", "kim"), ("eve", "lou")])
        >>> sorted(cousins)
        [cousins(x='kim', y='lou'), cousins(x='lou', y='kim')]
        """
        return programs.program_of(
            self._engine,
            text,
            inputs or {},
            bits,
            lambda kind, name: self.table(kind, name=name),
            functors or {},
            folder,
            macros or {},
            max_rounds,
            self._watch_facts if watch else None,
            self.transaction,
        )

    def _watch_facts(
        self, path: Path, kind: Any, name: str, reader: Callable[[Path], Iterable[Any]]
    ) -> Table[Any]:
        """Create a table of the rows of a file of facts, and follow the file."""
        return self.watch(path, kind, name=name, reader=reader)

    def drop(self, table: Table[Any], *, views: bool = False) -> None:
        """Drop a table and discard its rows; using it afterwards is an error.

        Parameters
        ----------
        table: a table of this database.
        views: also close the views and subscriptions over it.

        Raises
        ------
        PlanError: views or subscriptions, named in the message, read the table; or it is not a
            table of this database.
        TransactionError: inside a transaction.

        >>> from reactive import Database
        >>> db = Database()
        >>> words = db.table(str, name="words")
        >>> db.drop(words)
        >>> words, db.tables()
        (Table('words', dropped), [])
        """
        with self._engine.shaping(to_write=True):
            family.drop(
                self._engine,
                table,
                views=views,
                why=f"table {getattr(table, 'name', table)!r} was dropped at {caller()}",
            )

    def spark_table(
        self,
        rows: Any,
        row_type: type[T],
        *,
        name: str | None = None,
        key: str | Callable[[T], Hashable] | None = None,
    ) -> remote_table.RemoteTable[T]:
        """Create a table whose rows are on Spark and do not pass through this process.

        Views over it are on Spark, too. Read small ones like any other view, and large ones as a
        DataFrame: `view.to_spark()`.

        Parameters
        ----------
        rows: a `DataFrame`, or the path of Parquet, CSV or Delta files. Its rows must not change:
            changes go through this table, and are stored in the checkpoint.
        row_type: a frozen dataclass, named tuple or tuple of plain types, or a plain type.
        name, key: as for `table`; the key must be a field.

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
        changes: remote.Changes = "append",
        deletes: Any = None,
        change_column: str | None = None,
        order: str | None = None,
        trigger: str | float = 1.0,
        format: str = "parquet",
        on_error: batches.OnRefusal = "raise",
        start: bool = True,
    ) -> stream_tables.StreamTable[T]:
        """Create a table fed by a stream on Spark; its rows do not pass through this process.

        Each batch is one commit, and its number is stored with its rows: a batch that is repeated
        after a failure changes nothing. With a checkpoint of the offload, a later process that
        creates the table again continues after the last batch. `table.source` starts, stops and
        waits for the stream, and tells its token (the number of the last batch), lag and error.

        Parameters
        ----------
        rows: a streaming `DataFrame`; a path, whose files of a `format` are followed; a callable,
            `SparkSession` -> `DataFrame`, which can also run in another JVM; or a static
            `DataFrame`, which is one batch.
        row_type: as for `spark_table`.
        name: the name of the table and of its source.
        key: a field. A row replaces the row with its key, and a deletion needs only the key.
        changes: the form of a change. `"append"`: each row is inserted. `"cdf"`: `_change_type`
            says it, as in Delta's change data feed and Iceberg's changelog. `"debezium"`: `op` says
            it, with the rows in the columns `before` and `after`. `"weight"`: a column has the
            number of copies that are inserted, or deleted if it is negative. `"snapshot"`: `rows`
            is the whole table, which is read again at each `trigger`; the difference is the change.
        deletes: as `rows`, a second folder or stream with the rows to delete.
        change_column: the column that says it, if it is not `_change_type`, `op` or `weight`.
        order: the column that orders several changes of one key in a batch; by default
            `_commit_version` or `_change_ordinal` of a feed, `offset` or `ts_ms` of Debezium.
        trigger: the time between batches: seconds, or text such as `"10s"`; or `"available now"`
            to read the present rows, after which the source has ended.
        format: the format of the files: `"parquet"`, `"csv"` with a header, or `"json"`.
        on_error: the reaction to a row that does not fit the type: malformed, null where the type
            has no None, a date beyond Python's, or a null key. `"raise"`: the source stops before
            the batch. `"drop"`: the row is left out and listed in `table.source.errors`, stored on
            Spark like the other rows, until the source replaces or removes it.
        start: `False` to start later, by `table.source.start()`.

        Raises
        ------
        OffloadError: the database does not offload to Spark, or rows of the type have no columns.
        TableError: the columns do not fit the row type.
        PlanError: an argument has a value that does not exist.
        TransactionError: inside a transaction.
        """
        offload = self._engine.offloading.need()
        options = remote.StreamOptions(
            *(changes, deletes, change_column, order, trigger, format, on_error == "drop")
        )
        batches.check_policy(on_error)
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

    def watch(
        self,
        pattern: str | os.PathLike[str],
        row_type: type[T],
        *,
        name: str | None = None,
        key: str | Callable[[T], Hashable] | None = None,
        deletions: str | os.PathLike[str] | None = None,
        append_only: bool = False,
        format: Literal["jsonl", "csv", "tsv", "facts", "json", "parquet"] | None = None,
        reader: Callable[[Path], Iterable[T]] | None = None,
        encoding: str = "utf-8",
        delimiter: str | None = None,
        header: bool = True,
        poll: float | None = None,
        max_line: int = 1 << 24,
        max_bytes: int = 1 << 32,
        max_ratio: int = 200,
        durable: bool | None = None,
        replace: bool = False,
        on_error: batches.OnRefusal = "raise",
        start: bool = True,
        on_stop: Callable[[ingestions.Ingestion[T]], object] | None = None,
    ) -> watched_tables.WatchedTable[T]:
        """Create a table of the rows in the files that match a pattern, and follow the files.

        When `watch` returns, the table has the rows of the present files; a large load takes
        several commits and shows a progress bar on a terminal. From then on each round of changes
        is one commit: files that are added, changed, replaced, renamed or removed. If a file only
        grew, only its new lines are read.

        Parameters
        ----------
        pattern: paths, as `"folder/*.jsonl"`, `"folder/**/*.csv"` at any depth, or one path.
        row_type: the class of the rows. Fields are matched by name: keys of JSON objects, columns
            of CSV and Parquet. Values are converted to the declared types: int, float, bool, str,
            Decimal, dates, enums, records, tuples; an empty or absent value is None, if the field
            is optional.
        name, key, durable: as for `table`. If a file has two rows of one key, the last one counts;
            two files cannot have rows of one key, unless they are `append_only`.
        replace: drop the table of that name, if there is one, with its source and the views over
            it, so that a cell of a notebook can run again. All files are read again.
        deletions: files of rows to delete, as a pattern, or a folder of files named as in
            `pattern`. A row deletes the row of its key; without keys, one copy of itself. Implies
            `append_only`.
        append_only: files are only added and grow, and each line is read once: removing a file
            removes no rows, and rows are not recorded per file. With a key, a row replaces the
            earlier row of its key.
        format: the format, if the suffix does not tell it; also the format inside a `.gz` file.
            "facts" is that of Soufflé: columns between tabs, and no header.
        reader: callable, `pathlib.Path` -> rows, for any other format.
        encoding, delimiter, header: the form of text and CSV files. Without a header, columns are
            in the order of the fields.
        poll: seconds between two scans of all files, in place of notifications by the operating
            system: for network drives. Without `watchfiles` files are scanned each second.
        max_line: the most characters of a row; a longer line is refused like a malformed one.
        max_bytes: the most bytes that are read or decompressed of one file; a larger file is an
            error.
        max_ratio: the most times its own size that a `.gz` file may decompress to, if that is more
            than `max_line`.
        on_error: the reaction to a malformed line, and to a row that a table or view refuses, as
            for `ingest`. A file that cannot be read is tried again, and after 2 s is such an error.
        start: `False` to start later, by `table.source.start()`.
        on_stop: called with `table.source` after it stopped, as for `ingest`.

        Cost: a round checks the size and time of each file, and reads the new lines. Unless files
        are `append_only`, it also reads the known bytes of changed files again.

        Raises
        ------
        SourceError: a line is malformed, with its file, line and column; or a file cannot be read.
        PlanError: the format is unknown, or needs a library that is not installed; or as for
            `table`.
        TransactionError: inside a transaction.
        """
        options: dict[str, Any] = {"format": format, "reader": reader, "encoding": encoding}
        options |= {"deletions": deletions, "append_only": append_only, "poll": poll}
        options |= {"delimiter": delimiter, "header": header}
        options |= {"max_line": max_line, "max_bytes": max_bytes, "max_ratio": max_ratio}
        own = usual_name(row_type) if name is None else name
        old = _table_named(self._engine, own) if replace else None
        return watched_tables.watch(
            *(self._engine, pattern, row_type, name, key, durable, on_error, start, old, on_stop),
            options,
        )

    @overload
    def ingest(
        self,
        source: None,
        into: Table[T, Any],
        *,
        since: Any = None,
        on_error: batches.OnRefusal = "raise",
        name: str,
        on_stop: Callable[[ingestions.Ingestion[Any]], object] | None = None,
    ) -> ingestions.Ingestion[T]: ...
    @overload
    def ingest(
        self,
        source: None,
        into: Mapping[type, Table[Any, Any]],
        *,
        since: Any = None,
        on_error: batches.OnRefusal = "raise",
        name: str,
        on_stop: Callable[[ingestions.Ingestion[Any]], object] | None = None,
    ) -> ingestions.Ingestion[Any]: ...
    @overload
    def ingest(
        self,
        source: sources.Source[T] | sources.Batches[T],
        into: Table[T, Any] | Mapping[type, Table[Any, Any]],
        *,
        since: Any = None,
        on_error: batches.OnRefusal = "raise",
        name: str | None = None,
        start: bool = True,
        on_stop: Callable[[ingestions.Ingestion[Any]], object] | None = None,
    ) -> ingestions.Ingestion[T]: ...
    def ingest(
        self,
        source: sources.Source[Any] | sources.Batches[Any] | None,
        into: Table[Any, Any] | Mapping[type, Table[Any, Any]],
        *,
        since: Any = None,
        on_error: batches.OnRefusal = "raise",
        name: str | None = None,
        start: bool = True,
        on_stop: Callable[[ingestions.Ingestion[Any]], object] | None = None,
    ) -> ingestions.Ingestion[Any]:
        """Feed tables from a source: a thread of its own commits each batch of the source.

        A commit stores the token of its batch under the name of the source. A source that is
        ingested again continues after the last token, so that each batch is in the tables once.

        Parameters
        ----------
        source: a `Source`, or a function (since, stop) -> batches, such as a generator function.
            `None` if you pass the batches to `Ingestion.take`.
        into: the table for its rows; or a dictionary of row classes and their tables. Other code
            may change the rows of a table with a key. Without a key, or if the row has an origin,
            the source stops when it must delete a row that other code removed.
        since: the token to begin at, if the database has no token of this source.
        on_error: the reaction to a row that its table refuses, or on which a view raises an
            `Exception` in the commit. `"raise"`: the source stops before the batch; tables, token
            and other sources are unchanged. `"drop"`: the batch is committed without the row, the
            row that it would have replaced is deleted, and `Ingestion.errors` lists it. An error
            that no single row causes stops the source.
        name: a name in place of that of the source.
        start: `False` if you call `Ingestion.start` later, or `Ingestion.run` in your own thread.
        on_stop: called with the `Ingestion` after it stopped, failed or ended, in the thread that
            ran it: `state` and `error` tell why, `start` resumes it.

        Raises
        ------
        PlanError: an argument is not a source, or not a table of this database.
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
        made = feeding.ingest(self._engine, source, into, since, on_error, name, on_stop)
        if start and source is not None:
            made.start()
        return made

    @property
    def clock(self) -> Clock:
        """The clock of the database, which `now()` reads in its queries.

        >>> from datetime import datetime, timezone
        >>> from reactive import Database
        >>> db = Database()
        >>> db.clock
        Clock(not set)
        >>> db.clock.advance(datetime(2024, 5, 1, tzinfo=timezone.utc))
        >>> db.clock
        Clock(2024-05-01 00:00:00+00:00)
        """
        return clocks.clock_of(self._engine)

    @property
    def tokens(self) -> dict[str, Any]:
        """The token of the last committed batch by the name of its source.

        Only sources that were ingested since the database was opened are listed.
        """
        found = {name: ledger.token for name, ledger in list(self._engine.ledgers.items())}
        return {name: token for name, token in found.items() if token is not None}

    def transaction(
        self,
        *,
        commit_with: Any = None,
        retry: int | None = None,
        deliver: Literal["writer", "background"] | None = None,
        deliver_timeout: float | None = None,
        label: str | None = None,
    ) -> transactions.Transaction:
        """Make several changes one commit: `with db.transaction(): ...`, also `async with`.

        If the block raises, no table and no view has changed. A transaction inside another is
        part of the outer one. While the block awaits, other tasks of the event loop may commit;
        the transaction does not see their changes, see docs/threads.md.

        Parameters
        ----------
        commit_with: the SQL transaction to commit together with the tables; both commit or neither
            does. It is a session or connection of SQLAlchemy, a connection of a driver, the alias
            of a Django connection, or any object with `commit()` and `rollback()`. An asynchronous
            one needs `async with`. A transaction that is already open is joined. See
            docs/two_commits.md.
        retry: the most times that a function is run again because another commit touched the same
            rows. The result is then a decorator, also of `async def`: `@db.transaction(retry=3)`.
        deliver, deliver_timeout: the thread that notifies subscribers of this commit, and the time
            to wait for it; by default as for the database.
        label: what the commit is called in `history`. That of a transaction inside another one is
            not used.

        Raises
        ------
        TransactionError: `commit_with` is in autocommit mode, or cannot be committed here; or the
            outcome is unknown, because the answer to its COMMIT was lost.
        ConflictError: another commit has touched a row, or key, that the transaction touches.
        PlanError: `commit_with` cannot be committed, or names several connections.
        Exception: raised by `commit_with` when it refuses the commit. Both sides are unchanged.

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
            if commit_with is not None or retry is not None:
                return prepared.make_transaction(
                    self._engine, commit_with, retry, deliver, deliver_timeout, label
                )
            made = transactions.Transaction(self._engine)
            made._label = label
            return transactions.deliver_by(made, deliver, deliver_timeout)
        except Exception as error:
            hide(error)
            raise

    def suppose(self) -> suppositions.Supposition:
        """Return a block whose changes are undone at its end: `with db.suppose(): ...`.

        Inside, tables and views show the changes; `view.diff()` is how a view differs from the last
        commit. Nothing has happened afterwards: there was no commit, no subscriber was told, and
        rows that are equally good in an order stand where they were. A block inside another one
        undoes its own changes. `supposed.keep()` commits the changes at the end of the block.

        Other threads wait for the end of the block, readers too; do not `await` in it. Views cannot
        be made in it, and views of which a part is elsewhere cannot be read.

        Cost: of the commit and its undoing, once for each time that views are read after changes.

        Raises
        ------
        TransactionError: a transaction is open.
        Exception: raised by a callable of a query, where a view is read.

        >>> from reactive import Database
        >>> db = Database()
        >>> edges = db.table(tuple[int, int], name="edges")
        >>> edges.add_all([(1, 2), (2, 3)])
        >>> ends = edges.select(lambda e: e[1]).distinct().materialize()
        >>> with db.suppose():
        ...     edges.remove((2, 3))
        ...     print(sorted(ends), ends.diff().removed)
        [2] (3,)
        >>> sorted(ends), db.version
        ([2, 3], 1)
        """
        return suppositions.Supposition(self._engine)

    def reread(self, *tables: Table[Any, Any]) -> None:
        """Read tables again with their `reread` callable and commit the differences, in one commit.

        Call it to see the changes that others wrote to the SQL database, and for tables that are
        `in_doubt`. In a database opened with `readonly=True` it reads the commits that were made
        to the file since.

        Parameters
        ----------
        tables: the tables to read; by default all that were created with `reread=`.

        Cost: that of reading all rows, and of `Table.replace_all`.

        Raises
        ------
        TableError: one of the tables has no `reread`.
        Exception: raised by `reread`, or by a view on one of its rows. Nothing has changed.

        >>> from reactive import Database
        >>> written = ["to", "be"]
        >>> db = Database()
        >>> words = db.table(str, name="words", reread=lambda: written)
        >>> written.append("that")
        >>> db.reread()
        >>> sorted(words)
        ['be', 'that', 'to']
        """
        load_rereading(self._engine).again(tables)

    @property
    def in_doubt(self) -> dict[str, BaseException]:
        """The tables that may lack the last commit of SQL, by name.

        The value is the exception of the COMMIT, or of the last attempt to read the table again.
        """
        doubts = getattr(self._engine.rereading, "doubts", {})
        return {table.name: error for table, error in dict(doubts).items()}

    def history(self, since: int = 0) -> list[Past]:
        """Return the commits after version `since`, out of the last `keep` ones.

        Each has its `version`, its `time`, its `label`, and its `changes`: a dictionary from the
        name of a table to rows with their weights. `turn` is "undo" or "redo" for the commit of an
        `undo` or `redo`. A commit that changes the fields of a table discards the commits before
        it.

        Raises
        ------
        PlanError: the database keeps no commits.
        DurabilityError: the file cannot be read.

        >>> import tempfile
        >>> from reactive import Database
        >>> db = Database(tempfile.mkdtemp() + "/words.db", keep=100)
        >>> words = db.table(str, name="words")
        >>> words.add("be")
        >>> words.update("be", "to be")
        >>> [(past.version, past.changes) for past in db.history(since=1)]
        [(2, {'words': [('be', -1), ('to be', 1)]})]
        """
        return past_commits.history(self._engine, since)

    def journal(self, *, commits: int | None = None, rows: int | None = None) -> None:
        """Keep the net changes of the commits from now on, in memory, or change how many are kept.

        `history`, `undo`, `redo`, `at`, `changes_since` and `View.why_gone` read them. The same as
        `Database(keep=commits)` from the start; a durable database with `keep=` has them in its
        file.

        Parameters
        ----------
        commits, rows: how many commits, and changed rows of commits, are kept at most; the oldest
            are dropped. None for any number.

        State: the changed rows. Cost: a list append per commit and table.

        Raises
        ------
        PlanError: a number is not an integer from 1 on.

        >>> from reactive import Database
        >>> db = Database()
        >>> words = db.table(str, name="words")
        >>> db.journal(commits=100)
        >>> with db.transaction(label="greeting"):
        ...     words.add("hello")
        >>> [(past.version, past.label, past.changes) for past in db.history()]
        [(1, 'greeting', {'words': [('hello', 1)]})]
        """
        past_commits.start_log(self._engine, commits, rows)

    def undo(self) -> Past:
        """Take the last commit back that was not taken back yet, and return it.

        It is a commit of its own, with the same label: views move, and subscribers are told. After
        another commit, `redo` has nothing to make again. The rows and views are then as they were;
        equal rows, and rows that are equally good in an order, may stand in another order.

        Cost: that of the commit.

        Raises
        ------
        PlanError: there is none, or none are kept.
        TableError: the commit changed a table whose rows are not stored.

        >>> from reactive import Database
        >>> db = Database(keep=100)
        >>> words = db.table(str, name="words")
        >>> words.add("to")
        >>> words.add("be")
        >>> db.undo().version, list(words)
        (2, ['to'])
        >>> db.redo().version, list(words)
        (2, ['to', 'be'])
        """
        return past_commits.turn(self._engine, "undo")

    def redo(self) -> Past:
        """Make the last commit that `undo` has taken back again, and return it; see `undo`.

        Raises
        ------
        PlanError: there is none, or a commit was made since.

        >>> from reactive import Database
        >>> Database(keep=10).redo()
        Traceback (most recent call last):
        optimizer.errors.PlanError: there is nothing to redo
        """
        return past_commits.turn(self._engine, "redo")

    def at(self, version: int) -> past_commits.PastDatabase:
        """Return the database as it was at a version: its stored tables, and rows of any query.

        `past[name]` is a table of then, which takes no changes; `past[view]` is the list of the
        rows that a view or relation had; `past.db` is the database of these tables, for further
        queries.

        Cost: a copy of all rows, O(rows + kept changes); `past[view]` evaluates the query.

        Raises
        ------
        PlanError: not all commits since then are kept.

        >>> from reactive import Database
        >>> db = Database(keep=100)
        >>> words = db.table(str, name="words")
        >>> lengths = words.select(len).materialize()
        >>> words.add("to")
        >>> words.add("three")
        >>> past = db.at(1)
        >>> list(past["words"]), past[lengths]
        (['to'], [2])
        """
        return past_commits.PastDatabase(self._engine, version, self._made_again)

    def _made_again(self, rows: dict[int, Any], version: int) -> Database:
        """Return a database in memory that has the stored tables, with other rows."""
        made = Database(timezone=self._engine.timezone)
        made._engine.dialect = self._engine.dialect
        for table in list(self._engine.tables.values()):
            if table.plan.number in rows and not table.plan.is_value:
                key = None if table.plan.key is None else table.plan.key.function
                other: Any = made.table(
                    table.row_type, name=table.name, key=key, identity=table.identity
                )
                other._fill(rows[table.plan.number], past_commits.Unchanging(version))
        return made

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the file of a durable database, with all earlier commits.

        Other threads can commit meanwhile; the copy has none of these commits. It is one file, with
        the permissions of the original, and appears at `path` once all of it is on the disk.

        Raises
        ------
        PlanError: the database has no file, or `path` exists.
        DurabilityError: the file cannot be read, or the copy cannot be written.

        >>> import tempfile
        >>> from reactive import Database
        >>> folder = tempfile.mkdtemp()
        >>> with Database(f"{folder}/words.db") as db:
        ...     db.table(str, name="words").add("to")
        ...     db.backup(f"{folder}/monday.db")
        >>> with Database(f"{folder}/monday.db") as db:
        ...     list(db.table(str, name="words"))
        ['to']
        """
        backup.back_up(self._engine, path)

    def flush(self) -> None:
        """Write pending commits to the file, update the offloaded views, and run the sinks.

        The file of a durable database gets all commits so far. Offloaded views are brought up to
        date with the last commit: they change together, and their subscribers are notified once, of
        all commits since the last flush. Sinks without a trigger write. Other threads can commit
        meanwhile.

        Raises
        ------
        DurabilityError: the file cannot be written; the database refuses further changes.
        OffloadError: the backend cannot be reached; nothing has changed.
        Exception: raised by the target of a sink; its changes are kept for the next flush.
        """
        if self._engine.journal is not None:
            self._engine.journal.flush()
        self._engine.offloading.flush()
        for sink in [sink for sink in self._engine.sinks if not sink.is_timed]:
            sink.flush()

    def touch(self, instance: object) -> None:
        """Report a change of a tracked object that assignments do not show; see `tracked`.

        The row of the object is computed again from all its attributes, as a commit or as a part of
        the transaction.

        Raises
        ------
        TableError: the object is in no table of this database.
        """
        assigning.touch(self._engine, instance)

    def check_silent(self) -> list[Silent]:
        """Return the tracked objects that changed unseen: their attributes differ from their rows.

        Each entry names the table, the object and the attributes; pass the object to `touch`. A
        correct program has none. Cost: O(attributes) of each object in the tables of tracked
        classes.
        """
        return silent.check_silent(self._engine)

    def verify(self) -> None:
        """Evaluate the queries of all views from scratch, and compare (see `View.verify`).

        Subqueries that several views share are evaluated once. All results stay in memory until the
        end, a few times the memory of the largest view.

        Raises
        ------
        VerificationError: views differ; the message names them, and shows the rows.
        TableError: a view reads a table that is not stored.

        >>> from reactive import Database
        >>> db = Database()
        >>> words = db.table(str, name="words")
        >>> short = words.where(lambda word: len(word) < 3).materialize()
        >>> words.add("be")
        >>> db.verify()
        """
        from reactive.api.family import verify_views

        verify_views(self._engine, self.views())

    def offload_status(self) -> statuses.OffloadStatus:
        """Return the offloaded views with their sizes and their lag; it prints as a table."""
        self._engine.check_open()
        return statuses.status(self._offloading)

    def metrics(self) -> measures.Metrics:
        """Return counters for monitoring: commits and their time, and the queue of subscribers.

        >>> from reactive import Database
        >>> db = Database()
        >>> words = db.table(str, name="words")
        >>> words.add("be")
        >>> db.metrics().commits
        1
        """
        self._engine.check_open()
        return measures.metrics(self._engine)

    def _table_of_name(self, name: str) -> Table[Any, Any]:
        """Return the table of a name; as SQL finds it, if none has exactly this name."""
        engine = self._engine
        for table in engine.tables.values():
            if table.name == name:
                return cast("Table[Any, Any]", table)
        found = None
        if engine.catalog is not None or engine.journal is not None:
            found = sql().catalog_of(engine).table(name)
        if found is None:
            names = ", ".join(table.name for table in engine.tables.values())
            raise PlanError(
                f"there is no table {name!r}{f'; there are {names:.200}' if names else ''}\n"
                f"  db.table(Row, name={name!r}) makes one with rows of class Row"
            )
        return cast("Table[Any, Any]", found)

    def tables(self) -> list[Table[Any]]:
        """Return all tables, in the order of their creation.

        >>> from reactive import Database
        >>> db = Database()
        >>> words, names = db.table(str, name="words"), db.table(str, name="names")
        >>> db.tables()
        [Table('words', 0 rows), Table('names', 0 rows)]
        """
        return list(self._engine.tables.values())

    def views(self) -> list[AnyView]:
        """Return the views that the program references; each tells its line of code in `place`.

        >>> from reactive import Database
        >>> db = Database()
        >>> shout = db.table(str, name="words").select(str.upper).materialize("shout")
        >>> [view.name for view in db.views()]
        ['shout']
        """
        return self._engine.live_views()

    def close(self) -> None:
        """Close the database, with its sources, sinks, views and subscriptions.

        Using any of them afterwards is an error. Sinks do not write their pending changes: call
        `flush` before, if they should.

        Raises
        ------
        DurabilityError: pending commits cannot be written to the file; it is closed all the same.
        TransactionError: inside a transaction.
        """
        engine = self._engine
        if engine.db_lock.is_closed:
            return
        if engine.ingestions and engine.mine is None:
            feeding.stop_all(engine, PATIENCE)
        stop_work(engine)
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
            if engine.journal is not None:
                engine.journal.close()

    _copy_instead = "make another one; its tables take list(table) by add_all"
    _pickle_instead = "pickle the rows of its tables, list(table) of each of db.tables()"

    def _called(self) -> str:
        return f"a database of {len(self._engine.tables)} tables"

    def _begin_with(self, table: Table[Any], reread: Callable[[], Iterable[Any]]) -> None:
        """Fill a new table; if that fails, drop it, without deleting its rows in a file."""
        try:
            load_rereading(self._engine).begin(table, reread)
        except BaseException:
            if self._engine.journal is not None:
                self._engine.journal.release(table)
            self.drop(table)
            raise

    def __repr__(self) -> str:
        return repr(self._engine)


def _add_table(
    engine: Engine,
    make: Callable[[int, Any], Any],
    replaced: str | None,
    stored: tuple[bool | None, Any, Any],
) -> Any:
    """Return a new table, in the place of the one of the name `replaced`, if there is one.

    `stored`: the arguments `durable`, `codec` and `migrate` of `Database.table`.
    """
    making = engine.making(durable=stored[0] is not False)
    with making, engine.shaping(to_write=replaced is not None):
        old = None if replaced is None else _table_named(engine, replaced)
        number = next(engine.numbers)
        table = make(number, old)
        if engine.journal is not None or stored != (None, None, None):
            adopting.adopt(engine, table, *stored)
        if old is not None:
            why = f"table {old.name!r} was replaced at {caller()}"
            family.drop(engine, old, views=True, why=why)
        engine.tables[number] = table
    return table


def _table_named(engine: Engine, name: str) -> Any:
    return next((table for table in engine.tables.values() if table.name == name), None)


hint(Database, OF_DATABASES)

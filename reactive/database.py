"""A database: tables, the graph of operators over them, and the commits that move both.

table.add(row) --> pending changes --> graph.commit --> feeds --> subscribers
                                       (all or nothing)           (after, outside the lock)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, TypeVarTuple, overload

from optimizer.callables.source import caller
from optimizer.kinds.fields import TRACKED
from optimizer.traverse import Rule
from reactive.api import family, iterate, nested
from reactive.api import family as queries
from reactive.api import literal as literals
from reactive.api import stats as measures
from reactive.api.materialize import materialize
from reactive.api.relation import AnyRelation, Relation
from reactive.api.table import Table
from reactive.api.view import AnyView
from reactive.engine.collections.instants import checked_zone
from reactive.engine.dataflow.discrimination import QueueLimits
from reactive.engine.remote import remote
from reactive.engine.runtime.boundary import boundary, hide
from reactive.engine.runtime.closeable import Closeable, NotCopied, hint
from reactive.engine.runtime.foreign_names import OF_DATABASES
from reactive.engine.runtime.sql_names import DialectName, checked_dialect
from reactive.engine.storage.rows import usual_name
from reactive.engine.transactions import prepared
from reactive.engine.transactions import transaction as transactions
from reactive.engine.transactions.engine import Engine, stop_work
from reactive.errors import TransactionError
from reactive.parts import (
    adopting,
    assigning,
    backend,
    backup,
    batches,
    beginning,
    feeding,
    history,
    ingestions,
    loading,
    object_table,
    opening,
    placed,
    programs,
    read_only,
    remote_table,
    rereading,
    silent,
    sources,
    sql,
    statuses,
    stream_tables,
    watched_tables,
)

if TYPE_CHECKING:
    from pathlib import Path

    from reactive.borders.durable.journal import Past
    from reactive.borders.durable.store import Store
    from reactive.borders.objects.silent import Silent

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
class Database(NotCopied, Closeable):
    """Owns tables, views and transactions. Databases know nothing of each other.

    Parameters
    ----------
    path: of a file that has the rows of its tables, or an address; without one they are in memory.
        A table that is made again has the rows that it had: see docs/durable.md. The five that
        follow are refused without it.
    durability: when a commit is in the file. `"commit"`: before it returns, and before subscribers
        hear of it. `"group"`: 10 ms later, or when `flush` returns. `"exit"`: at `flush` and
        `close`.
    synchronous: `"full"` if a commit waits for the disk, to be there after a loss of power.
    store: in the place of a path, any `Store`.
    keep: how many of the last commits `history` has.
    readonly: whether another process may write the file, or none does. Its tables are as of when it
        was opened, and refuse changes; `reread` takes in what has been committed since.
    optimize: whether to rewrite queries; the answer is the same, the work is not.
    rules: further rules, `optimizer.plan.Node -> Node`, tried after ours at every node of a plan.
    offload: where parts of queries go whose state outgrows the process, `SparkOffload` for one.
    strict: refuse a commit, instead of warning, when a variable that a query captured has
        changed since the query was made; a row that was changed in place since it was added, when
        it is removed; and a row with a value of another class than its field declares.
    dialect: of `sql` and `execute`: `"duckdb"`, `"postgres"` or `"sqlite"`.
    timezone: of `sql` and `execute`: the zone of texts of instants (TIMESTAMPTZ) that name none,
        and in which instants are shown and taken apart.
    deliver: who tells subscribers of a commit. `"writer"`: the thread that made it, which waits
        where another one is telling them; an event loop does not wait. `"background"`: a thread of
        the database. See docs/delivery.md.
    deliver_timeout: seconds that a writer waits at most for another thread to tell of its commit.
    max_waiting: how many deltas may wait to be told that no writer waits for.
    max_waiting_bytes: how many bytes of them, as estimated.
    when_full: what happens then. `"block"`: the writer waits, `"merge"`: deltas of one view become
        one, `"close"`: the subscription whose callback is running ends, with an error.

    Raises
    ------
    DurabilityError: the file cannot be opened: another process has it, for one.

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
        engine.dialect, engine.timezone = checked_dialect(dialect), checked_zone(timezone)
        engine.materialize = materialize
        engine.nest = lambda relation, named: nested.nest(relation, named)
        engine.rows_of_groups = lambda *made: iterate.rows_of_groups(*made)
        self._offloading = placed(engine, offload)
        engine.place(self._offloading)
        given = (path, store, durability, synchronous, keep, readonly)
        if given != (None, None, "commit", "normal", 0, False):
            beginning.begin(engine, opening.Chosen(*given), read_only.ReadOnlyJournal)

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
        durable: bool | None = None,
        codec: Any = None,
        migrate: Callable[[dict[str, Any]], Any] | None = None,
        reread: Callable[[], Iterable[T]] | None = None,
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
    ) -> Table[T, Any]: ...
    def table(
        self,
        row_type: type[T],
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
    ) -> Table[T, Any]:
        """Make a table.

        Parameters
        ----------
        row_type: the class of its rows; `object` admits any. Rows must be hashable, and of a class
            whose instances do not change: a frozen dataclass, a tuple, a plain value. Of
            `tuple[int, str]` each has two items, so that a query may read them without fear.
        name: for messages; the class's name by default.
        key: a field's name, or callable, row -> hashable. Of several fields, `key=["shop", "id"]`,
            it is the tuple. At most one row per key.
        stored: False for rows that flow through and are not kept (i3QL's virtual table). Such a
            table cannot be read, nor can it tell that a removed row was never there.
        identity: True promises that rows of any other class do not change while they are in the
            table. They are compared by `==` and found by their hash, as all rows are.
        replace: drop the table that has the name, if there is one, and with it the views over it:
            for a cell of a notebook that is run again. A durable table keeps its rows.
        durable: whether its rows are in the file of the database, and come back from there. They
            are, if it has one and the rows are stored; a name then says which table it is.
        codec: of rows that are not made of plain values: an object with `encode`, row -> bytes or
            str, and `decode`; or the two in a tuple.
        migrate: of rows in the file that were of another class: callable, dictionary of the old
            fields -> row, or dictionary of the new ones, or None to leave the row out.
        reread: callable, () -> all rows, as a SQL database has them. The table begins with them,
            and is read again if nobody knows what became of a commit (`transaction`) or when
            `reread` of the database is called; in any thread, so it is to make its connection or
            to take one from a pool.

        Raises
        ------
        PlanError: the name is taken, or a keyed table is not to be stored; rows of the class cannot
            be stored without a codec, or those in the file are of another class.
        DurabilityError: the file cannot be read, or written.
        TransactionError: inside a transaction, with `replace`.

        >>> from reactive import Database
        >>> db = Database()
        >>> db.table(str, name="words")
        Table('words', 0 rows)
        """
        making = self._engine.making(durable=durable is not False)
        with making, self._engine.shaping(to_write=replace):
            old = self._named(usual_name(row_type) if name is None else name) if replace else None
            engine, number = self._engine, next(self._engine.numbers)
            made: Any = object_table() if hasattr(row_type, TRACKED) else Table
            table: Table[T, Any] = made(engine, number, row_type, name, key, stored, identity, old)
            if engine.journal is not None or durable or codec is not None or migrate is not None:
                adopting.adopt(engine, table, durable, codec, migrate)
            if old is not None:
                family.drop(
                    self._engine,
                    old,
                    views=True,
                    why=f"table {old.name!r} was replaced at {caller()}",
                )
            self._engine.tables[number] = table
        if reread is not None:
            self._begin_with(table, reread)
        return table

    def table_from(
        self,
        frame: Any,
        *,
        key: str | Sequence[str] | None = None,
        name: str | None = None,
        replace: bool = False,
    ) -> Table[Any, Any]:
        """Make a table of a data frame: the class of its rows from the schema, and its rows.

        The class, `table.row_type`, is a frozen dataclass with slots. A column is `| None` if it
        has nulls, or has no rows yet. Lists are tuples, structs records. Names that are no
        identifiers are mended: `unit price` is the field `unit_price`, `class` is `class_`, `2024`
        is `column_2024`, and a second `a` is `a_2`.

        Parameters
        ----------
        frame: what has `__arrow_c_stream__`, as a DataFrame of polars or pandas, a `pyarrow.Table`
            or a relation of DuckDB; what narwhals knows; a list of dictionaries; or the path of a
            file of Parquet, CSV, Feather or JSON lines. Of pandas, NaN is None, and an index with a
            name is a column.
        key: a column, by the name of its field, or several. At most one row per key.
        name: of the table, and of the class; by default `Row`.
        replace: as of `table`. A durable table then has the rows of the frame in the place of
            those in the file.

        Raises
        ------
        PlanError: it is no frame, the key no column, or a library is missing; or a durable table
            has rows in the file.
        TableError: a key is there twice.

        Cost: O(values), 0.05 us for each of plain ones.

        >>> from reactive import Database
        >>> rows = [{"id": 1, "town": "Ulm"}, {"id": 2}]
        >>> sales = Database().table_from(rows, key="id", name="sales")
        >>> sales[1], sales.row_type.__annotations__
        (Sales(id=1, town='Ulm'), {'id': <class 'int'>, 'town': str | None})
        """
        return loading.table_from(self, frame, key, name, replace=replace)  # type: ignore[no-any-return]

    def values(self, rows: Iterable[T], row_type: type[T] | None = None) -> Relation[T]:
        """A relation whose rows are written in the query: they are there from the start, and stay.

        Parameters
        ----------
        rows: hashables, each as often as it is there; or none.
        row_type: what they are, as a table has it; without it, what they look like.

        The optimizer computes beforehand what it can of them: a join with a single row is none.

        State: the rows. Cost: none.

        Raises
        ------
        PlanError: a row has no hash, or is not of the type.

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
        return family.Family(self._engine, function)

    def sql(self, text: str, /, **parameters: Any) -> Relation[Any]:
        """A query that is written in SQL: a relation like any other, of named tuples.

        Names in FROM are those of tables and views of this database, whatever the variables around
        are called. What SQL can do here, and where dialects differ: docs/sql.md.

        Parameters
        ----------
        text: one query, in the dialect of the database.
        parameters: `:name` is a constant, with the value of now; a relation stands for itself in
            FROM. The text has to name each.

        A view of it leaves rows out that raise; they are in `view.errors`. With an ORDER BY it is a
        sequence. Cost: as of the same query made of methods.

        Raises
        ------
        PlanError: it is no query, or names what there is not; with line and column.

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
        return sql().sql(self._engine, text, parameters)  # type: ignore[no-any-return]

    def execute(self, text: str, /, **parameters: Any) -> int:
        """Run a statement of SQL that changes the database, in one transaction.

        `create table` makes a table of named tuples, whose PRIMARY KEY is its `key=`; `create view`
        names a query; `insert`, `update`, `delete` and `drop` do what they say.

        Parameters
        ----------
        text: one statement, in the dialect of the database.
        parameters: as of `sql`.

        Returns how many rows were inserted, updated or deleted.

        Raises
        ------
        PlanError: it is no statement, or names what there is not; with line and column.
        TableError: a table refuses a row, such as one whose key is taken; nothing has changed.

        >>> from reactive import Database
        >>> db = Database()
        >>> db.execute("create table words (id int primary key, word text not null)")
        0
        >>> db.execute("insert into words values (1, 'to'), (:id, 'be')", id=2)
        2
        >>> [table.name for table in db.tables()]
        ['words']
        """
        return int(sql().execute(self, text, parameters))

    @overload
    def query(  # type: ignore[overload-overlap]  # a mapping is iterable, and anything a value
        self, function: Callable[[], Mapping[K, V]], /
    ) -> queries.GroupedQuery[K, V]: ...
    @overload
    def query(self, function: Callable[[], Iterable[T]], /) -> queries.Query[T]: ...
    @overload
    def query(self, function: Callable[[], T], /) -> queries.Query[T]: ...
    def query(self, function: Callable[[], Any], /) -> Any:
        """The query that a function says, whose comprehensions are over tables and relations.

        Write it as you would over lists; then it is live. Also as a decorator.

        Parameters
        ----------
        function: callable without parameters -> a list, set, dictionary, generator, what
            `sorted(...)` gives, or a value. It is read, not called: see docs/comprehensions.md.

        The rows are what Python computes with each relation as a list of its rows in some order: of
        a list all elements, of a set each once. Of a dictionary it is a `GroupedRelation`, whose
        view is a mapping; of what is sorted an `OrderedRelation`, whose view is a sequence; of a
        value one row. `query.on(orders=[...])` runs the text on lists.

        Raises
        ------
        PlanError: it cannot be read, or depends on the order of rows; the message says where.
        StratificationError: it calls itself in what must not grow: a sum, or `not in`.

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
        text: str,
        /,
        *,
        inputs: Mapping[str, AnyRelation] | None = None,
        bits: int | None = None,
    ) -> programs.Program:
        """The relations that a Datalog program defines, as live relations.

        Parameters
        ----------
        text: a program in the core of Soufflé's language, see docs/datalog.md.
        inputs: relations that have their rows from here, by name. Others that are declared
            `.input` are the tables with their names, which are made if they are not there.
        bits: 32 or 64 if numbers wrap round as in Soufflé; without it they have no end.

        Returns the relations by name. They are sets of named tuples with the declared columns.

        State and cost: those of a query and, where relations depend on themselves, of `fixpoint`.
        Source: Soufflé: Jordan, Scholz, Subotic, CAV 2016.

        Raises
        ------
        PlanError: the text is no program, with its line and column.
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
            self._engine, text, inputs or {}, bits, lambda kind, name: self.table(kind, name=name)
        )

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
        changes: remote.Changes = "append",
        deletes: Any = None,
        change_column: str | None = None,
        order: str | None = None,
        trigger: str | float = 1.0,
        format: str = "parquet",
        on_error: batches.OnRefusal = "raise",
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
        format: Literal["jsonl", "csv", "tsv", "json", "parquet"] | None = None,
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
        """Make a table of the rows in the files that match a pattern, and follow these files.

        What is there now is in the table when this returns, a large load in several commits with a
        bar on a terminal. From then on each round of changes is a commit: files that come, change,
        are replaced, renamed or removed. Of a file that only got longer the new lines are read.

        Parameters
        ----------
        pattern: of paths, as `"folder/*.jsonl"`, `"folder/**/*.csv"` at any depth, or one path.
        row_type: of the rows. Fields are found by name: keys of JSON objects, columns of CSV and
            Parquet. Values become what the class says: int, float, bool, str, Decimal, dates,
            enums, records, tuples; None for what is empty or absent, where it may be.
        name, key, durable: as of `table`. Of two rows of a file with one key the last one counts;
            two files cannot have rows of one key, unless they are `append_only`.
        replace: drop the table that has the name, if there is one, with what feeds it and the views
            over it: for a cell of a notebook that is run again. The files are read anew.
        deletions: files of rows that go, as a pattern, or a folder in which names are as in
            `pattern`. By its key, or else once less. Implies `append_only`.
        append_only: files come and grow, and each line is taken once: nothing goes when a file
            does, and no rows are kept by file. With a key a row takes the place of the one before.
        format: if the suffix does not tell it. Also of what ends in `.gz`.
        reader: callable, `pathlib.Path` -> rows, for any other format.
        encoding, delimiter, header: of text and CSV. Without a header columns are in the order of
            the fields.
        poll: seconds between two looks at all files, in place of asking the system for changes:
            for drives of other machines. Without `watchfiles` it is a second.
        max_line: letters of a row at most; a longer one is refused like any line that is no row.
        max_bytes: bytes that are read of a file at a time, or unpacked of one; a file with more is
            an error.
        max_ratio: how many times its size a `.gz` may unpack to, if that is more than `max_line`.
        on_error: what becomes of a line that is no row, and of what a table or view refuses; as of
            `ingest`. A file that cannot be read is tried again, and after 2 s an error like that.
        start: `False` if you start it later, by `table.source.start()`.
        on_stop: called with `table.source` once that has stopped, as of `ingest`.

        Cost: of a round a look at each file's size and time, and what is new; and, unless they are
        `append_only`, reading again, as bytes, what was read of files that have changed.

        Raises
        ------
        SourceError: a line is no row, with its file, line and column; or a file cannot be read.
        PlanError: no format is known, or it needs what is not installed; or as of `table`.
        TransactionError: inside a transaction.
        """
        options: dict[str, Any] = {"format": format, "reader": reader, "encoding": encoding}
        options |= {"deletions": deletions, "append_only": append_only, "poll": poll}
        options |= {"delimiter": delimiter, "header": header}
        options |= {"max_line": max_line, "max_bytes": max_bytes, "max_ratio": max_ratio}
        old = self._named(usual_name(row_type) if name is None else name) if replace else None
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
        on_stop: called with what this gives once it has stopped, failed or ended, in the thread
            that ran it: `state` and `error` tell why, `start` has it go on.

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
        made = feeding.ingest(self._engine, source, into, since, on_error, name, on_stop)
        if start and source is not None:
            made.start()
        return made

    @property
    def tokens(self) -> dict[str, Any]:
        """Where each source is: its name -> the token of its last batch that was committed. Of
        those that were ingested since the database was opened."""
        found = {name: ledger.token for name, ledger in list(self._engine.ledgers.items())}
        return {name: token for name, token in found.items() if token is not None}

    def transaction(
        self,
        *,
        commit_with: Any = None,
        retry: int | None = None,
        deliver: Literal["writer", "background"] | None = None,
        deliver_timeout: float | None = None,
    ) -> transactions.Transaction:
        """Make several changes one commit: `with db.transaction(): ...`, also `async with`.

        If the block raises, no table and no view has changed. A transaction inside another is
        part of the outer one. While one waits in the middle, other tasks of the event loop make
        commits of their own, which it does not see; see docs/threads.md.

        Parameters
        ----------
        commit_with: what is committed with the tables, or neither is: a session or connection of
            SQLAlchemy, a connection of a driver, the alias of one of Django, or anything with
            `commit()` and `rollback()`. What is asynchronous needs `async with`. A transaction
            that it has open is joined. See docs/two_commits.md.
        retry: how often a function is run again if another commit has touched the same rows. The
            result is then a decorator, also of `async def`: `@db.transaction(retry=3)`.
        deliver, deliver_timeout: who tells subscribers of this commit, and how long that is waited
            for; as of the database unless given.

        Raises
        ------
        TransactionError: what is given commits each statement by itself, or cannot be committed
            here; or outcome unknown: the answer to its COMMIT was lost.
        ConflictError: another commit has touched a row, or key, that the transaction touches.
        PlanError: it is nothing that can be committed, or several.
        Exception: what it raises when it refuses the commit. Both are as they were.

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
                return prepared.opened(self._engine, commit_with, retry, deliver, deliver_timeout)
            return transactions.Transaction(self._engine)._told_by(deliver, deliver_timeout)
        except Exception as error:
            hide(error)
            raise

    def reread(self, *tables: Table[Any, Any]) -> None:
        """Read tables again by their `reread`, in one commit: these, or all that have one.

        With `readonly=True` all tables of the file go on, in one commit, to what it has now.
        The difference is a change. It ends a doubt (`in_doubt`), and takes in what others have
        written to the SQL database. Cost: of reading all rows, and of `replace_all`.

        Raises
        ------
        TableError: one of them has no `reread`.
        Exception: what that raises, or a view of what it gives. Nothing has changed.

        >>> from reactive import Database
        >>> written = ["to", "be"]
        >>> db = Database()
        >>> words = db.table(str, name="words", reread=lambda: written)
        >>> written.append("that")
        >>> db.reread()
        >>> sorted(words)
        ['be', 'that', 'to']
        """
        rereading(self._engine).again(tables)

    @property
    def in_doubt(self) -> dict[str, BaseException]:
        """The tables of which nobody knows whether SQL has their last commit, by their names, each
        with what was raised when it was read again."""
        doubts = getattr(self._engine.rereading, "doubts", {})
        return {table.name: error for table, error in dict(doubts).items()}

    def history(self, since: int = 0) -> list[Past]:
        """The commits after a version, of the last ones that `keep=` of the database keeps.

        Each has its `version`, its `time`, and its `changes`: by the name of a table, rows with
        their weights. Commits before one that changed the fields of a table are forgotten.

        Raises
        ------
        PlanError: the database is in memory.
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
        return history.history(self._engine, since)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the file of a durable database, with all that was committed before.

        Commits of other threads go on meanwhile, and are not in it. The copy is one file, with the
        permissions of the original; it appears at `path` when it is whole and safe on the disk.

        Raises
        ------
        PlanError: the database has no file, or there is something at `path`.
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
        """Have what was committed be where it is to go.

        Of a durable database, in its file. Views that depend on parts elsewhere are brought up to
        date with the last commit: they change together, and their subscribers are told once, of all
        commits since the last flush. Commits of other threads go on meanwhile. Then sinks without a
        trigger write.

        Raises
        ------
        DurabilityError: the file cannot be written; from now on it refuses changes.
        OffloadError: the parts cannot be reached; nothing has changed.
        Exception: what the target of a sink raises; its changes are kept.
        """
        if self._engine.journal is not None:
            self._engine.journal.flush()
        self._engine.offloading.flush()
        for sink in [sink for sink in self._engine.sinks if not sink.is_timed]:
            sink.flush()

    def touch(self, instance: object) -> None:
        """Tell that an object of tables has changed in a way that cannot be seen; see `tracked`.

        Its row is made anew, of all attributes: a commit, or a part of the transaction.

        Raises
        ------
        TableError: it is in no table of this database.
        """
        assigning.touch(self._engine, instance)

    def check_silent(self) -> list[Silent]:
        """The objects of tables that have changed unseen: other attributes than their rows say.

        Each with the name of a table and of the attributes; `touch` tells of one. Without mistake
        there are none. Cost: O(attributes) of each object in the tables of tracked classes.
        """
        return silent.check_silent(self._engine)

    def verify(self) -> None:
        """Evaluate the queries of all views from scratch, and compare (`View.verify`).

        What several views are made of is evaluated once. All that is evaluated is held until the
        end, which is some times the memory of the largest view.

        Raises
        ------
        VerificationError: views differ; the message says which, and in which rows.
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
        an error. Sinks write no more: `flush` before, if they are to.

        Raises
        ------
        DurabilityError: what was committed cannot be written to the file; it is closed all the
            same.
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
        """Fill a table that was made; if that fails it was not, unless it has rows of a file."""
        try:
            rereading(self._engine).begin(table, reread)
        except BaseException:
            if self._engine.journal is not None:
                self._engine.journal.release(table)
            self.drop(table)
            raise

    def _named(self, name: str) -> Table[Any] | None:
        return next((table for table in self.tables() if table.name == name), None)

    def __repr__(self) -> str:
        return repr(self._engine)


hint(Database, OF_DATABASES)

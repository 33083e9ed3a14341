"""Views: maintained results, read like the built-in collections.

Reading is safe from any thread and sees one commit: a reader waits while one is being made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import (
    TYPE_CHECKING,
    Any,
    TypeAlias,
    TypeVar,
    TypeVarTuple,
    cast,
    overload,
)

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.plans import explain as explaining
from optimizer.plans.properties import columns, written_names
from reactive.api import comprehending, display, family, literal
from reactive.api import stats as statistics
from reactive.api.borders import making
from reactive.api.each_row import each_row, only_row
from reactive.api.framed import KeepsChanges, ToFrames
from reactive.api.keyed_rows import optimistic_read
from reactive.api.relation import Relation
from reactive.api.subscriptions.observe import Relay, Subscription, drop_with
from reactive.api.subscriptions.subscribe import join
from reactive.engine.collections import weight_tree
from reactive.engine.collections.bag import Bag
from reactive.engine.collections.zset import Pair, Row, canonical, repeat
from reactive.engine.dataflow.delta import Delta, named
from reactive.engine.reference import verify as verifying
from reactive.engine.runtime import closeable, foreign_names
from reactive.engine.runtime.boundary import boundary, hide
from reactive.engine.runtime.closeable import Closeable, NotCopied
from reactive.errors import ClosedError

if TYPE_CHECKING:
    from optimizer.callables.source import Place
    from optimizer.rewriting.equality_checks import PolicyQuery
    from reactive.api.literal import RowError
    from reactive.borders.sinks.sink import Sink
    from reactive.engine.dataflow.delta import Channel
    from reactive.engine.dataflow.node import Node
    from reactive.engine.remote.remote import Adopt
    from reactive.engine.transactions.engine import Engine

Ts = TypeVarTuple("Ts")
Cs = TypeVarTuple("Cs")
T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")

LEAF = "(node := self._node) is not None and not node.deferred"
"""When the rows of a leaf can be read in place."""


@boundary
class View(Closeable, ToFrames, KeepsChanges, Relation[*Ts]):
    """The rows of a relation, up to date after every commit. Made by `Relation.materialize`.

    Length and iteration count copies, as in a bag; `items` and `zset().items()` have each row once,
    with how often it is there.

    >>> from reactive import Database
    >>> words = Database().table(str)
    >>> short = words.where(lambda w: len(w) < 3).materialize("short")
    >>> words.add_all(["to", "be", "to", "that"])
    >>> len(short), "to" in short, short.count("to"), sorted(short)
    (3, True, 2, ['be', 'to', 'to'])
    """

    def __init__(
        self,
        engine: Engine,
        relation: Relation[*Ts],
        node: Node,
        channel: Channel,
    ) -> None:
        own = relation.plan
        rows = own if isinstance(own, plan.Table) else plan.View(own, channel.name)
        super().__init__(engine, rows)
        self.relation = relation
        """The query by itself: what is made of it is optimized as a whole, and does not hold the
        view."""
        self._db_lock = engine.db_lock
        self._node: Any = node
        self._channel = channel
        self._drop = drop_with(self, engine, node)
        self._policy: PolicyQuery | None = None
        self._errors: View[RowError] | None = None
        engine.views[node.rank] = cast(AnyView, self)

    @property
    def _contents(self) -> Any:
        self._check_open()  # a repair may have closed it
        return self._node.operator

    @property
    def name(self) -> str | None:
        """What `materialize` was told to call it."""
        return self._channel.name

    @property
    def place(self) -> Place:
        """The line of code that made it."""
        return self._channel.place

    @property
    def columns(self) -> list[str] | None:
        """The names of the key and the aggregates, or of the bindings if `extend` or `bind` named
        some, the others by their places; None of other rows."""
        return columns(self.relation.plan, self._sql_columns)

    @property
    def errors(self) -> View[RowError]:
        """The rows on which a callable of the query raises now, each as a `RowError`.

        It is a view of its own, made when it is first asked for: read it, subscribe to it, or make
        queries of it. It is closed with this one.

        Raises
        ------
        PlanError: such rows raise in this view, as `materialize` was not told otherwise.

        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> numbers = words.where(lambda w: int(w) > 3).materialize(on_error="drop")
        >>> words.add_all(["7", "seven"])
        >>> [str(error.error) for error in numbers.errors]
        ["ValueError: invalid literal for int() with base 10: 'seven'"]
        >>> words.remove("seven")
        >>> list(numbers.errors)
        []
        """
        self._check_open()
        if self._policy is None:
            raise PlanError(
                f"{self._channel} has no errors: a row that raises fails its commit\n"
                '  materialize(on_error="drop") leaves such rows out, and tells them'
            )
        if self._errors is None or self._errors.closed:
            errors = Relation[Any](self._engine, literal.errors_of(self._policy), self._views)
            name = None if self.name is None else f"errors of {self.name}"
            self._errors = errors.materialize(name)
        return self._errors

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._node is None

    @only_row
    def value(self) -> Any:
        """The only row; of an ungrouped aggregate there is always exactly one.

        Raises
        ------
        LookupError: there is none, or more than one.
        """
        try:
            rows = self._all_rows()
            if len(rows) != 1:
                raise LookupError(f"{self._channel} has {len(rows)} rows, not one value")
            return rows[0]
        except Exception as error:
            hide(error)
            raise

    @optimistic_read("len(node.operator)", ready=LEAF)
    def __len__(self) -> int:
        return int(self._read("__len__"))

    @optimistic_read("node.operator.count(row)", ready=LEAF, if_found="found > 0", give="True")
    def __contains__(self, row: object) -> bool:
        return self.count(row) > 0

    @overload
    def __iter__(self: View[T]) -> Iterator[T]: ...
    @overload
    def __iter__(self: View[A, B, *Cs]) -> Iterator[tuple[A, B, *Cs]]: ...
    def __iter__(self) -> Iterator[Any]:
        try:
            rows = self._each()
            return each_row(self, lambda: rows)
        except Exception as error:
            hide(error)
            raise

    @optimistic_read("node.operator.count(row)", ready=LEAF, if_found="found")
    def count(self, row: object) -> int:
        """How often the row is there; 0 if it is not."""
        found: int = self._read("count", row)
        if not found and (same := canonical(row)) is not row:
            found = self._read("count", same)
        return found

    @overload
    def items(self: View[T]) -> list[tuple[T, int]]: ...
    @overload
    def items(self: View[A, B, *Cs]) -> list[tuple[tuple[A, B, *Cs], int]]: ...
    def items(self) -> list[Any]:
        """Each different row with how often it is there."""
        return self._pairs()

    def zset(self) -> weight_tree.ZSet[Any]:
        """The rows of now with their weights, which `delta.zset` changes. Costs O(rows)."""
        return weight_tree.zset_of(self._pairs())

    def _pairs(self) -> list[Pair]:
        with self._reading():
            return list(self._contents.items())

    @overload
    def snapshot(self: View[T]) -> list[T]: ...
    @overload
    def snapshot(self: View[A, B, *Cs]) -> list[tuple[A, B, *Cs]]: ...
    def snapshot(self) -> list[Any]:
        """The rows of now, in a list of your own."""
        try:
            return self._all_rows()
        except Exception as error:
            hide(error)
            raise

    def _subscribed(
        self, callback: Callable[[Delta[Any]], object], *, snapshot: bool, way: Relay | None
    ) -> Subscription[Any]:
        """The subscription holds the view."""
        self._check_open()
        return join(
            self._engine, self._node, callback, self, self._snapshot if snapshot else None, way
        )

    def verify(self) -> None:
        """Evaluate the query from scratch, and compare.

        Sub-queries of comprehensions, `each`, `rows`, `nest` and SQL are evaluated by definition,
        row by row, and not as the joins that they became. With `Database(strict=True)` the tables
        that the query reads are verified too (`Table.verify`), such as those of an older file.

        It takes a few times as long as loading the rows did. Where a join has no keys, or its
        condition cannot be read (`explain` says so), all pairs of rows are asked. On a terminal a
        bar shows what takes longer than a second.

        Raises
        ------
        VerificationError: the view differs; the message says in which rows. That is a bug of
            this library, or a callable that is not deterministic. If strict: or a row of a table is
            not as declared.
        TableError: the query reads a table that is not stored.
        """
        self._check_open()
        family.verify_views(self._engine, [cast(AnyView, self)])

    def _evaluated(self, node: plan.Node) -> Any:
        """The rows of a plan, evaluated from scratch."""
        with self._engine.inside():
            node = self._engine.queries.base(node)
            return verifying.evaluated(node, lambda table: self._engine.table_of(table)._all())

    def stats(self) -> statistics.Stats:
        """Rows and bytes that the view and what it depends on hold, and how much was touched."""
        with self._reading():
            return statistics.stats_of(self._node, self._engine.version)

    def explain(
        self,
        *,
        optimized: bool = True,
        costs: bool = False,
        analyze: bool = False,
        code: bool = False,
    ) -> explaining.Explanation:
        """As `Relation.explain`.

        Parameters
        ----------
        optimized, costs: as there.
        analyze: the plan that is run, with what each operator holds and has touched.
        code: the generated functions that run it, in the order in which they step.
        """
        with self._reading():
            parts = [statistics.analyzed(self._channel.plan, self._engine)] if analyze else []
            parts += [statistics.generated(self._node)] if code else []
            if parts:
                return explaining.Explanation("\n\n".join(parts), parts[0].drawing)
            return self.relation.explain(optimized=optimized, costs=costs)

    def offload(self, *, adopt: Adopt | None = None) -> None:
        """Move what the view depends on to where the database offloads to.

        Its state and work leave the process; from then on the view is brought up to date when it
        is read, or by `db.flush()`.

        Parameters
        ----------
        adopt: what to do where its tables hold other rows than an earlier process left in the
            checkpoint. `"state"` commits to the tables what leads to the rows of the state, as far
            as the view reads them; `"process"` sends the difference to the state. By default what
            was given to `SparkOffload(adopt=...)`.

        Raises
        ------
        OffloadError: nothing of it can be moved, for the reasons that it names; or tables and
            state differ, and `adopt` says nothing. Nothing has changed then.
        """
        self._check_open()
        self._engine.offloading.move(self, adopt)

    def recall(self) -> None:
        """Bring what the view depends on back into the process."""
        self._check_open()
        self._engine.offloading.recall(self)

    def to_spark(self, row_type: Any = None) -> Any:
        """The rows as a Spark `DataFrame`, with a column per field.

        Those of a view that is kept on Spark do not pass the process. The DataFrame shows the rows
        of now; use it, or write or cache it, before the next flush.

        Parameters
        ----------
        row_type: what the rows are, such as `tuple[int, float | None]`; by default what the first
            thousand look like.

        Raises
        ------
        OffloadError: the database does not offload to Spark, or the rows fit no columns.
        """
        self._engine.offloading.need()
        with self._reading():
            return self._engine.offloading.frame(self._node, row_type)

    def to_python(self) -> list[Any]:
        """The rows of now as plain data: records are dictionaries of their fields, and beside these
        what is inside; rows whose bindings have names (`bind`, `extend`, SQL) dictionaries of their
        `columns`; tuples and collections are lists. What JSON has no word for, as a date,
        stays.

        >>> from typing import NamedTuple
        >>> from reactive import Count, Database
        >>> Person = NamedTuple("Person", [("name", str), ("town", str)])
        >>> people = Database().table(Person, name="people")
        >>> view = people.materialize()
        >>> totals = people.group_by("town").aggregate(people=Count()).materialize()
        >>> people.add(Person("Ann", "Bonn"))
        >>> view.to_python(), totals.to_python()
        ([{'name': 'Ann', 'town': 'Bonn'}], [{'town': 'Bonn', 'people': 1}])
        """
        names = written_names(self.relation.plan, self._sql_columns)
        return [named(row, names) for row in self._all_rows()]

    def write_to(
        self,
        target: Any,
        mode: making.Mode = "upsert",
        *,
        trigger: making.Trigger = None,
        key: str | Iterable[str] = (),
        row_type: Any = None,
    ) -> Sink:
        """Write the view to a table or folder, and go on writing what changes, each change once.

        What was written is a part of the target, so a process that is killed, at whatever moment,
        and begins again with the same rows and view, goes on after it: nothing is lost or doubled.

        Parameters
        ----------
        target: a path, whose folder is made, as text with a `/` in it or a `Path`; or the name of
            a table in Spark's catalog. Rows are columns of Parquet files. Also a `Target`.
        mode: `"upsert"`: the target has the rows of the view, as of one commit. `"changes"`: each
            batch is a folder `batch=N` of rows with a `weight`: how often each comes, or goes if it
            is negative. That only begins: it refuses another query.
        trigger: how long changes wait, in seconds or as text such as `"10s"`; with `"commit"` not
            at all: what each commit changes is a batch. By default they wait for `Sink.flush` or
            `Database.flush`.
        key: of `"upsert"`, the fields that tell rows apart; by default all of them. Only files of
            keys that have changed are written anew.
        row_type: what the rows are, such as `tuple[int, float | None]`; by default what they look
            like.

        Raises
        ------
        OffloadError: the target cannot be read, holds the changes of another query, or the database
            does not know how to write it.
        PlanError: an argument is none of these.

        Returns
        -------
        A `Sink`. It has written nothing yet, but with `trigger="commit"`: fill the tables, then
        flush.
        """
        self._check_open()
        return making.write_to(self, target, mode, trigger, key, row_type)

    def changes_to(
        self,
        function: Callable[[int, Any], object],
        *,
        frames: bool = False,
        trigger: making.Trigger = None,
        name: str | None = None,
        row_type: Any = None,
        durable: bool | None = None,
        migrate: bool = False,
    ) -> Sink:
        """Call a function with the changes of the view, in batches that are numbered from 0 on.

        A batch is kept until the function has returned: if it raises, or the process ends, it is
        called again with the same changes under the same number. So one that takes note of the
        number together with what it does has each change once.

        A durable database keeps batches and what was told in its file, under the name of the sink:
        made again after a restart, the sink goes on with the next batch. So does a `checkpoint` of
        the offload. Otherwise they are kept in the process.

        Parameters
        ----------
        function: callable, (number, list of (row, weight)). Each row is there once, with the number
            of times that it comes, or goes if it is negative.
        frames: whether it is a callable, (DataFrame, number), with the row's columns and `weight`.
        trigger: as of `write_to`.
        name: of the sink; by default that of the view. A durable sink needs one.
        row_type: as of `write_to`; of a durable sink, the classes of the rows, if the query does
            not say them.
        durable: whether what was told is kept in the file of the database; by default if it has
            one.
        migrate: whether a durable sink whose query has changed tells the difference between what
            was told and the rows of today.

        Raises
        ------
        DurabilityError: the file cannot be read, or written.
        OffloadError: what is kept under the name is of another query: give it another name.
        PlanError: an argument is none of these; there is a durable sink of the name; or what it
            has told is of another query, and `migrate` is not given.

        >>> from reactive import Count, Database
        >>> db = Database()
        >>> words = db.table(str, name="words")
        >>> lengths = words.group_by(len).aggregate(Count()).materialize("lengths")
        >>> sink = lengths.changes_to(lambda number, changes: print(number, sorted(changes)))
        >>> words.add_all(["to", "be", "that"])
        >>> db.flush()
        0 [((2, 2), 1), ((4, 1), 1)]
        >>> words.remove("to")
        >>> db.flush()
        1 [((2, 1), 1), ((2, 2), -1)]
        >>> sink.stop()
        """
        self._check_open()
        keeping = making.Keeping(durable, migrate)
        return making.changes_to(self, function, trigger, name, row_type, keeping, frames=frames)

    def read(self, *, stale_ok: bool = False) -> list[Any]:
        """The rows of now; with `stale_ok` those of the last flush, without another."""
        if not stale_ok:
            return self._all_rows()
        self._check_open()
        with self._db_lock.inside():
            rows: list[Any] = self._contents.rows()
            return rows

    def show(self, limit: int = 20) -> None:
        """Print the first rows as a table."""
        display.show(self, limit)

    def close(self) -> None:
        """Give up the rows and what was computed for them alone. Closing twice is no error."""
        if self._errors is not None:
            self._errors.close()
        self._drop()
        self._channel.close()
        self._node = None

    def __eq__(self, other: object) -> bool:
        """Whether it is the same view; or a list, tuple or `Bag` has just its rows.

        An ordered view compares with a list or tuple in order, others as bags.

        >>> from reactive import Database
        >>> words = Database().table(str)
        >>> view, ordered = words.materialize(), words.order_by(len).materialize()
        >>> words.add_all(["or", "a", "or"])
        >>> view == ["or", "or", "a"], ordered == ["or", "or", "a"], view == ordered
        (True, False, False)
        """
        if self is other:
            return True
        if isinstance(other, Bag):
            return comprehending.same_as_bags(self._pairs(), other)
        return self._has_rows(other) if isinstance(other, list | tuple) else NotImplemented

    def __hash__(self) -> int:
        """That of the view, not of its rows, which change."""
        return id(self)

    def _has_rows(self, other: list[Any] | tuple[Any, ...]) -> bool:
        return comprehending.same_as_bags(self._pairs(), other)

    def __repr__(self) -> str:
        name = "" if self.name is None else f"{self.name!r}, "
        state = "closed" if self.closed else f"{len(self)} row" + "s" * (len(self) != 1)
        return f"{type(self).__name__}({name}{state}, made at {self.place})"

    __copy__ = NotCopied.__copy__
    _copy_instead = "view.snapshot() has the rows of now, view.relation is the query"
    _pickle_instead = "pickle view.snapshot(), the rows of now"

    def _called(self) -> str:
        return str(self._channel)

    def _query(self) -> Relation[*Ts]:
        self._kept_views()
        return self.relation

    def _kept_views(self) -> tuple[AnyView, ...]:
        """Itself: the rows of what is made of it are computed from its own."""
        if self.closed:
            raise PlanError(f"{self._channel} is closed\n  make the query of its .relation")
        return (cast(AnyView, self),)

    def __rich__(self) -> Any:
        return display.table(self)

    def _repr_html_(self) -> str:
        return display.html(self)

    def _first_rows(self, n: int) -> list[Any]:
        with self._reading():
            return list(islice(repeat(self._contents.items()), n))

    @optimistic_read("node.operator.rows()", ready=LEAF)
    def _all_rows(self) -> list[Any]:
        rows: list[Any] = self._read("rows")
        return rows

    def _each(self) -> Iterable[Any]:
        return self._all_rows()

    def _read(self, what: str, *arguments: Any) -> Any:
        """What the leaf answers, as of the last commit."""
        node = self._node
        if node is not None and not node.deferred:
            return self._db_lock.read(self._ask, what, *arguments)
        with self._reading():
            return self._ask(what, *arguments)

    def _ask(self, what: str, *arguments: Any) -> Any:
        return getattr(self._contents, what)(*arguments)

    def _snapshot(self) -> tuple[list[Pair], Iterable[Row] | None]:
        return list(self._contents.items()), None

    def _reading(self) -> Any:
        self._check_open()
        if self._node.deferred:
            self._engine.offloading.flush()
        return self._db_lock.inside()

    def _check_open(self) -> None:
        if self.closed:
            why = f": {self._channel.reason}" if self._channel.reason else ""
            raise ClosedError(f"{self._channel} is closed{why}\n  {self._channel.remedy}")


AnyView: TypeAlias = View[*tuple[Any, ...]]
"""A view of any bindings."""


closeable.hint(View, foreign_names.OF_VIEWS)

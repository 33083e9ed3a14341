"""Views: maintained results, read like the built-in collections.

Reading is safe from any thread and sees one commit: a reader waits while a commit is in progress.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, TypeVarTuple, cast, overload

from optimizer import plan
from optimizer.callables.source import caller
from optimizer.errors import PlanError
from optimizer.plans import explain as explaining
from optimizer.plans.properties import columns, written_names
from reactive.api import display, equal_rows, family, literal, proving
from reactive.api import stats as statistics
from reactive.api.borders import making
from reactive.api.each_row import each_row, only_row
from reactive.api.first import Explained
from reactive.api.framed import KeepsChanges, ToFrames
from reactive.api.keyed_rows import optimistic_read
from reactive.api.relation import Relation
from reactive.api.subscriptions.observe import Relay, Subscription, drop_with
from reactive.api.subscriptions.subscribe import join
from reactive.engine.collections import weight_tree
from reactive.engine.collections.bag import Bag
from reactive.engine.collections.zset import Pair, Row, canonical, repeat_by_weight
from reactive.engine.dataflow.delta import Delta, name_columns
from reactive.engine.reference import verify as verifying
from reactive.engine.runtime import closeable, foreign_names
from reactive.engine.runtime.boundary import boundary, hide
from reactive.engine.runtime.closeable import Closeable, Uncopyable
from reactive.errors import ClosedError, TransactionError

if TYPE_CHECKING:
    from optimizer.callables.source import Place
    from optimizer.rewriting.equality_checks import PolicyQuery
    from reactive.api import rule_profile
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
"""Condition for reading the rows of a leaf in place."""


@boundary
class View(Closeable, ToFrames, KeepsChanges, Explained[*Ts], Relation[*Ts]):
    """The rows of a relation, up to date after every commit. `Relation.materialize` makes it.

    `len` and iteration count copies, as in a bag; `items` and `zset().items()` have each row once,
    with its number of copies.

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
        """The query without the view.

        Queries over `relation` are optimized as a whole, and do not keep the view alive.
        """
        self._db_lock = engine.db_lock
        self._node: Any = node
        self._channel = channel
        self._drop = drop_with(self, engine, node)
        self._policy: PolicyQuery | None = None
        self._errors: View[RowError] | None = None
        engine.views[node.rank] = cast(AnyView, self)

    @property
    def _contents(self) -> Any:
        """Return the leaf's operator, which has the rows; raises if the view is closed."""
        self._check_open()  # a repair may have closed it
        return self._node.operator

    @property
    def name(self) -> str | None:
        """The name that was given to `materialize`, or None."""
        return self._channel.name

    @property
    def place(self) -> Place:
        """The line of code that made the view."""
        return self._channel.place

    @property
    def columns(self) -> list[str] | None:
        """The names of the columns: key and aggregates, or bindings named by `extend` or `bind`.

        Bindings without a name have their position; None for rows without columns.
        """
        return columns(self.relation.plan, self._sql_columns)

    @property
    def errors(self) -> View[RowError]:
        """The rows on which a callable of the query raises, as a view of `RowError`.

        The view is made at the first access; read it, subscribe to it, or query it. It is closed
        with this view.

        Raises
        ------
        PlanError: the view was made with `on_error="raise"`, so that such rows fail their commit.

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
            self._errors = self._engine.materialize(errors._query(), name, caller(), "raise")
        return self._errors

    @property
    def closed(self) -> bool:
        """True after the view was closed."""
        return self._node is None

    @only_row
    def value(self) -> Any:
        """Return the only row; an aggregate without groups always has exactly one.

        Raises
        ------
        LookupError: the view has no row, or more than one.
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
        return int(self._read_leaf("__len__"))

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
        """Return the number of copies of `row`, 0 if it is absent."""
        found: int = self._read_leaf("count", row)
        if not found and (same := canonical(row)) is not row:
            found = self._read_leaf("count", same)
        return found

    @overload
    def items(self: View[T]) -> list[tuple[T, int]]: ...
    @overload
    def items(self: View[A, B, *Cs]) -> list[tuple[tuple[A, B, *Cs], int]]: ...
    def items(self) -> list[Any]:
        """Return each different row with its number of copies."""
        return self._pairs()

    def zset(self) -> weight_tree.ZSet[Any]:
        """Return the current rows with their weights, to which `delta.zset` applies.

        Cost: O(rows).
        """
        return weight_tree.zset_of(self._pairs())

    def _pairs(self) -> list[Pair]:
        with self._reading():
            return list(self._contents.items())

    @overload
    def snapshot(self: View[T]) -> list[T]: ...
    @overload
    def snapshot(self: View[A, B, *Cs]) -> list[tuple[A, B, *Cs]]: ...
    def snapshot(self) -> list[Any]:
        """Return the current rows as a new list."""
        try:
            return self._all_rows()
        except Exception as error:
            hide(error)
            raise

    def _subscribe_callback(
        self, callback: Callable[[Delta[Any]], object], *, snapshot: bool, way: Relay | None
    ) -> Subscription[Any]:
        """Subscribe to the view, which the subscription keeps alive."""
        self._check_open()
        return join(
            self._engine, self._node, callback, self, self._snapshot if snapshot else None, way
        )

    def verify(self, *, sample: int | None = None) -> None:
        """Evaluate the query from scratch, and compare the result with the view.

        With `sample`, only so many rows of the view are compared, drawn at random: each is looked
        for in the query, through indexes, as `why` does. Rows that the view lacks are not found so.

        Subqueries of comprehensions, `each`, `rows`, `nest` and SQL are evaluated by definition,
        row by row, not as the joins that they are compiled to. With `Database(strict=True)` the
        tables that the query reads are verified too, see `Table.verify`.

        Cost: a few times that of loading the rows; all pairs of rows for a join without keys, or
        whose condition cannot be lifted (`explain` says so). On a terminal a progress bar appears
        after a second.

        Raises
        ------
        VerificationError: the view differs; the message shows the rows. The cause is a bug of
            this library, or a callable that is not deterministic. With `strict=True` also: a value
            is not as its field declares.
        TableError: the query reads a table that is not stored.
        """
        self._check_open()
        if sample is not None:
            with self._reading():
                proving.verify_sample(self, sample)
            return
        family.verify_views(self._engine, [cast(AnyView, self)])

    def _evaluate_plan(self, node: plan.Node) -> Any:
        """Evaluate a plan from scratch, and return its rows."""
        with self._engine.inside():
            node = self._engine.queries.base(node)
            return verifying.evaluate_plan(node, lambda table: self._engine.table_of(table)._all())

    def stats(self) -> statistics.Stats:
        """Return the rows and bytes that the view and its operators hold, and their work."""
        with self._reading():
            return statistics.stats_of(self._node, self._engine.version)

    def profile(self) -> rule_profile.RuleProfile:
        """Return a context that measures each rule of the recursions below the view.

        While its block runs, each rule counts its rounds, derivations, touched rows and seconds:
        `print(profile)` shows them as a table, and `profile.rules` lists them. A recursion that
        runs as the closure of a graph has no rules.

        >>> from reactive import Database
        >>> program = Database().datalog('''
        ...     .decl step(x: number, y: number) .input step
        ...     .decl far(x: number) .output far
        ...     far(0). far(y) :- far(x), step(x, y).
        ... ''')
        >>> far = program["far"].materialize()
        >>> with far.profile() as profile:
        ...     program.tables["step"].add_all([program.row("step")(n, n + 1) for n in range(5)])
        >>> [(work.relation, work.rounds, work.tuples) for work in profile.rules]
        [('far', 0, 0), ('far', 6, 5)]
        """
        from reactive.api import rule_profile  # recursions are not loaded by every program

        with self._reading():
            return rule_profile.RuleProfile(self._node.upstream())

    def explain(
        self,
        *,
        optimized: bool = True,
        costs: bool = False,
        analyze: bool = False,
        code: bool = False,
    ) -> explaining.Explanation:
        """Return the plan of the view as text; see `Relation.explain`.

        Parameters
        ----------
        optimized, costs: as for `Relation.explain`.
        analyze: show the plan as run, with the rows that each operator holds and has touched.
        code: show the generated functions, in their order of execution.
        """
        with self._reading():
            parts = (
                [statistics.explain_analyzed(self._channel.plan, self._engine)] if analyze else []
            )
            parts += [statistics.explain_code(self._node)] if code else []
            if parts:
                return explaining.Explanation("\n\n".join(parts), parts[0].drawing)
            return self.relation.explain(optimized=optimized, costs=costs)

    def offload(self, *, adopt: Adopt | None = None) -> None:
        """Move the operators of the view to the offload backend of the database.

        Their state and work leave the process. From then on reading the view, or `db.flush()`,
        brings it up to date.

        Parameters
        ----------
        adopt: the reaction if the tables have other rows than an earlier process left in the
            checkpoint. `"state"`: commit to the tables the rows of the checkpoint that the view
            reads. `"process"`: send the difference to the checkpoint. The default is that of
            `SparkOffload(adopt=...)`.

        Raises
        ------
        OffloadError: no operator can be moved, for the reasons in the message; or tables and
            checkpoint differ, and `adopt` is None. Nothing has changed.
        """
        self._check_open()
        self._engine.offloading.move(self, adopt)

    def recall(self) -> None:
        """Move the operators of the view back into the process."""
        self._check_open()
        self._engine.offloading.recall(self)

    def to_spark(self, row_type: Any = None) -> Any:
        """Return the rows as a Spark `DataFrame`, with a column per field.

        Rows of an offloaded view do not pass through the process. The DataFrame shows the current
        rows: use, write or cache it before the next flush.

        Parameters
        ----------
        row_type: the type of the rows, such as `tuple[int, float | None]`; by default inferred from
            the first thousand.

        Raises
        ------
        OffloadError: the database does not offload to Spark, or the rows fit no columns.
        """
        self._engine.offloading.need()
        with self._reading():
            return self._engine.offloading.frame(self._node, row_type)

    def to_python(self) -> list[Any]:
        """Return the current rows as dictionaries, lists and scalars, for example for JSON.

        A record becomes a dictionary of its fields and its nested rows, a row with `columns`
        (`bind`, `extend`, SQL) a dictionary of these, a tuple or collection a list. Other values,
        such as dates, are returned as they are.

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
        return [name_columns(row, names) for row in self._all_rows()]

    def write_to(
        self,
        target: Any,
        mode: making.Mode = "upsert",
        *,
        trigger: making.Trigger = None,
        key: str | Iterable[str] = (),
        row_type: Any = None,
    ) -> Sink:
        """Write the view to a table or folder, and then write each change exactly once.

        The target records which changes it has. A process that is killed at any moment and starts
        again with the same rows and view continues after the last written change.

        Parameters
        ----------
        target: a path, as text with a `/` in it or as a `Path`, whose folder is created; or the
            name of a table in Spark's catalog; or a `Target`. Files are Parquet, with a column per
            field.
        mode: `"upsert"`: the target has the rows of the view as of one commit. `"changes"`: each
            batch is a folder `batch=N` of rows with a `weight`, the number of inserted copies, or
            of deleted ones if it is negative. A target in this mode refuses another query.
        trigger: the most time that changes wait, in seconds or as text such as `"10s"`; or
            `"commit"` to write the changes of each commit as a batch. By default they wait for
            `Sink.flush` or `Database.flush`.
        key: for `"upsert"`, the fields that identify a row; by default all of them. Only files of
            changed keys are written again.
        row_type: the type of the rows, such as `tuple[int, float | None]`; by default inferred.

        Return a `Sink`. Unless `trigger="commit"`, it has written nothing yet: fill the tables,
        then flush.

        Raises
        ------
        OffloadError: the target cannot be read, has the changes of another query, or is of a kind
            that the database cannot write.
        PlanError: an argument has another value than these.
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
        """Call a function with the changes of the view, in batches numbered from 0 on.

        A batch is stored until the function returns. If it raises, or the process ends, it is
        called again with the same changes and number. A function that saves the number together
        with its effects therefore applies each change exactly once.

        A durable database stores the batches and the delivered rows in its file, under the name of
        the sink: created again after a restart, the sink continues with the next batch. A
        `checkpoint` of the offload does the same. Otherwise they are in memory.

        Parameters
        ----------
        function: callable, (number, list of (row, weight)). Each row occurs once; its weight is the
            number of inserted copies, or of deleted ones if it is negative.
        frames: True if `function` is a callable, (DataFrame, number), whose frame has the columns
            of the rows and `weight`.
        trigger: as for `write_to`.
        name: the name of the sink; by default that of the view. A durable sink needs one.
        row_type: as for `write_to`; for a durable sink, the classes of the rows if the query does
            not determine them.
        durable: store delivered rows in the file of the database; by default if it has one.
        migrate: allow another query than that of the stored sink: deliver the difference between
            the delivered rows and the current ones.

        Raises
        ------
        DurabilityError: the file cannot be read or written.
        OffloadError: the checkpoint has a sink of this name for another query; use another name.
        PlanError: an argument has another value than these; a durable sink of the name is running;
            or the stored sink is of another query, and `migrate` is False.

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

    def read(
        self,
        predicate: Callable[[*Ts], object] | None = None,
        /,
        *,
        stale_ok: bool = False,
        **fields: Any,
    ) -> list[Any]:
        """Return the current rows, or those that `where(predicate, **fields)` keeps.

        With `stale_ok` they are those of the last flush, without a flush.
        """
        if predicate is not None or fields:
            return super().read(predicate, **fields)
        if not stale_ok:
            return self._all_rows()
        self._check_open()
        with self._db_lock.inside():
            rows: list[Any] = self._contents.rows()
            return rows

    def show(self, limit: int = 20) -> None:
        """Print the first `limit` rows as a table."""
        display.show(self, limit)

    def close(self) -> None:
        """Discard the rows and the operators of this view alone. Closing twice is no error."""
        if self._errors is not None:
            self._errors.close()
        self._drop()
        self._channel.close()
        self._node = None

    def __eq__(self, other: object) -> bool:
        """Return True for the view itself, and for a list, tuple or `Bag` of exactly its rows.

        An ordered view compares with a list or tuple in order, other views as bags.

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
            return equal_rows.same_as_bags(self._pairs(), other)
        return self._has_rows(other) if isinstance(other, list | tuple) else NotImplemented

    def __hash__(self) -> int:
        """Return a hash of the object's identity, because the rows change."""
        return id(self)

    def _has_rows(self, other: list[Any] | tuple[Any, ...]) -> bool:
        return equal_rows.same_as_bags(self._pairs(), other)

    def __repr__(self) -> str:
        name = "" if self.name is None else f"{self.name!r}, "
        state = "closed" if self.closed else f"{len(self)} row" + "s" * (len(self) != 1)
        return f"{type(self).__name__}({name}{state}, made at {self.place})"

    __copy__ = Uncopyable.__copy__
    _copy_instead = "view.snapshot() has the rows of now, view.relation is the query"
    _pickle_instead = "pickle view.snapshot(), the rows of now"

    def _called(self) -> str:
        return str(self._channel)

    def _query(self) -> Relation[*Ts]:
        """Return the relation of the view; raises if the view is closed."""
        self._kept_views()
        return self.relation

    def _kept_views(self) -> tuple[AnyView, ...]:
        """Return the view itself: queries over it compute from its rows. Raises if it is closed."""
        if self.closed:
            raise PlanError(f"{self._channel} is closed\n  make the query of its .relation")
        return (cast(AnyView, self),)

    def __rich__(self) -> Any:
        return display.table(self)

    def _repr_html_(self) -> str:
        return display.html(self)

    def _first_rows(self, n: int) -> list[Any]:
        with self._reading():
            return list(islice(repeat_by_weight(self._contents.items()), n))

    @optimistic_read("node.operator.rows()", ready=LEAF)
    def _all_rows(self) -> list[Any]:
        rows: list[Any] = self._read_leaf("rows")
        return rows

    def _each(self) -> Iterable[Any]:
        return self._all_rows()

    def _read_leaf(self, what: str, *arguments: Any) -> Any:
        """Return an answer of the leaf, as of the last commit."""
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
        """Return the context to read in, after a flush if needed; raises if the view is closed."""
        self._check_open()
        if self._node.deferred:
            if self._engine.supposition is not None:
                raise TransactionError(
                    f"{self._called()} is computed elsewhere: it cannot show what is supposed\n"
                    "  read it outside of db.suppose()"
                )
            self._engine.offloading.flush()
        return self._db_lock.inside()

    def _check_open(self) -> None:
        """Raise `ClosedError` if the view is closed, with the reason."""
        if self.closed:
            why = f": {self._channel.reason}" if self._channel.reason else ""
            raise ClosedError(f"{self._channel} is closed{why}\n  {self._channel.remedy}")


AnyView: TypeAlias = View[*tuple[Any, ...]]
"""A view of any bindings."""


closeable.hint(View, foreign_names.OF_VIEWS)

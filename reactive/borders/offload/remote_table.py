"""Tables whose rows are elsewhere from the start, streams that feed them, and views that resume
over them.

Tables whose rows are elsewhere from the start, and what they feed there without coming by.

    changes of the table --> waiting --save--> a version, where the rows are
    a part that reads it <---------- the rows of versions a to b, through a chain of plan nodes

What is committed waits in the process until the next flush and is then saved as one version.

A table that a stream feeds, whose rows do not pass through this process.

    batch n --> rows written aside --> one version of the table, which notes n --> commit

A batch is a commit of its own, and its number is noted with its rows: one that comes again, since
its query was killed before it had noted that it was done, changes nothing.

State:  where the rows are.
Cost:   of a batch what it brings; with a key, a scan of the table.

What an earlier process left of a view's state: whose it is, and what its tables are to hold.

Cost: O(plan) per view with a name; O(rows of the tables) once, where they are put back.

Which leaves read nodes of the plans: those are compiled again when these move, and no others.

State:  the nodes of the query of each leaf, as long as it is run as it was.
Cost:   O(leaves) a look, and O(its plan) once for each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar
from weakref import WeakKeyDictionary

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.plans.fingerprint import fingerprint
from optimizer.plans.properties import nodes
from reactive.api.table import Table
from reactive.api.view import View
from reactive.borders.sources.ingestion import Ingestion
from reactive.borders.sources.net_changes import UnfitRow
from reactive.engine.collections.zset import Pair, Row, consolidate, negate, repeat_by_weight
from reactive.engine.dataflow.node import Node
from reactive.engine.remote.remote import (
    Adopt,
    ExternalRows,
    ExternalStream,
    FrameBatch,
    Once,
    to_restore,
)
from reactive.engine.remote.remote_operator import RemoteOperator
from reactive.engine.storage.store import RowStore
from reactive.engine.transactions import patches
from reactive.engine.transactions.transaction import Transaction
from reactive.errors import MissingKeyError, OffloadError, SourceError, TableError, TransactionError

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine
    from reactive.engine.transactions.patches import Patch

T = TypeVar("T")


class RemoteTable(Table[T, Any]):
    """A table whose rows are elsewhere. Made by `Database.spark_table`.

    Reads and writes like any other table, but what is removed is not looked for: to remove a row
    that is not there is an error that nobody reports. Reading fetches rows, or counts them there.
    """

    def __init__(
        self,
        engine: Engine,
        number: int,
        row_type: Any,
        name: str | None,
        key: str | Callable[[T], Hashable] | None,
        rows: Callable[[str], ExternalRows],
    ) -> None:
        self._open = rows
        super().__init__(engine, number, row_type, name, key, True)
        self._keyed = None

    def _new_store(self, hashable: Any) -> RowStore:
        self.rows = self._open(self.name)
        """Where the rows are."""
        self._waiting = RemoteStore(self.rows)
        return self._waiting

    def save(self) -> int:
        """Give what has been committed a version; the number of the last one. Inside the lock."""
        pending = self._engine.pending
        open_changes = [] if pending is None else pending.of(self)
        return self._waiting.save(open_changes)

    def add_frame(self, frame: Any, *, once: Once | None = None) -> bool:
        """Add the rows of a DataFrame, in a commit of its own; they do not pass the process.

        Parameters
        ----------
        once: a query, by its name or id, and the number of its batch, which count up. A batch that
            comes again, as after a failure, changes nothing: it is noted together with the rows,
            and with a checkpoint a later process knows it too.

        Returns
        -------
        Whether it has come; False of a batch that came before.

        Raises
        ------
        TableError: its columns or values do not fit the row type.
        TransactionError: inside a transaction.
        PlanError: `once` is no query with a number.
        """
        _check_once(once)
        return self._bulk("add_frame", lambda: self.rows.append_frame(frame, 1, once))

    def remove_frame(self, frame: Any, *, once: Once | None = None) -> bool:
        """Delete the rows of a DataFrame, with their multiplicities; else as `add_frame`."""
        _check_once(once)
        return self._bulk("remove_frame", lambda: self.rows.append_frame(frame, -1, once))

    def upsert_frame(self, frame: Any, *, once: Once | None = None) -> bool:
        """Put the rows of a DataFrame in the place of those that have their keys; a scan.

        Else as `add_frame`.
        """
        self._need_own_key("upsert_frame")
        _check_once(once)
        return self._bulk("upsert_frame", lambda: self.rows.upsert(frame, once))

    def replace_frame(self, frame: Any, *, once: Once | None = None) -> bool:
        """Make the rows of a DataFrame those of the table; only the difference is a change.

        For snapshots, such as a table of another database that is read by JDBC now and then. Else
        as `add_frame`.

        Raises
        ------
        TableError: as `add_frame`; or the table has a key, and two of the rows have the same one.

        Cost: a scan of both, which are grouped by row on Spark.
        """
        _check_once(once)
        return self._bulk("replace_frame", lambda: self.rows.replace(frame, once))

    def upsert(self, row: T) -> None:
        """Put a row in the place of the one that has its key; a scan of the table."""
        self.upsert_all([row])

    def upsert_all(self, rows: Iterable[T]) -> None:
        """`upsert` each row, in one commit and one scan."""
        self._need_own_key("upsert")
        given = list(rows)
        for row in given:
            self.rows.check(row)
        self._bulk("upsert", lambda: self.rows.upsert(given))

    def delete(self, key: Hashable) -> None:
        """Remove the row of a key; a scan of the table."""
        self.remove(self[key])

    def pop(self, key: Hashable, *default: Any) -> Any:
        """Remove the row of a key and return it; a scan of the table."""
        found = self.get(key, *default) if default else self[key]
        if not default or found is not default[0]:
            self.remove(found)
        return found

    def _change(self, key: Hashable, fields: dict[str, Any]) -> None:
        old = self[key]
        patches.check_fields(self.name, old, fields)
        self.update(old, patches.copy_with_fields(old, fields))

    def __getitem__(self, key: Hashable) -> T:
        """The row of a key; a scan of the table."""
        found: T | None = self.get(key)
        if found is None:
            raise MissingKeyError(f"table {self.name!r} has no row with key {key!r}", key)
        return found

    def get(self, key: Hashable, default: Any = None) -> Any:
        """The row of a key, or the default; a scan of the table."""
        of = self._need_own_key("get")
        with self._reading():
            return next((row for row, _ in self._store.pairs() if of(row) == key), default)

    def __contains__(self, item: object) -> bool:
        """Whether a row is there; of a keyed table, whether a key is."""
        if self.plan.key is not None:
            return self.get(item) is not None
        return super().__contains__(item)

    def _patch(self, given: list[Patch]) -> list[T]:
        raise OffloadError(
            f"patch of table {self.name!r}: its rows are on Spark, where bags are arrays\n"
            "  update(old, new) the row; or hold the table in the process, by db.table(...)"
        )

    def to_spark(self) -> Any:
        """All rows as a DataFrame, with a column per field."""
        with self._reading():
            self.save()
            return self.rows.frame()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, version {self.rows.version})"

    def _bulk(self, what: str, change: Callable[[], int]) -> bool:
        """A change that is a commit and a version of its own; whether it was one."""
        engine = self._engine
        with engine.inside(to_write=True):
            if engine.pending is not None:
                raise TransactionError(
                    f"{what} of table {self.name!r} is a commit of its own\n"
                    "  make it outside the transaction"
                )
            before = self.save()
            if change() == before:
                return False
            engine.count_commit([self], 1)
            return True

    def _need_own_key(self, what: str) -> Callable[[Row], Any]:
        if self.plan.key is None:
            raise TableError(
                f"{what} of table {self.name!r}, which has no key\n"
                "  make it with db.spark_table(..., key=...)"
            )
        found: Callable[[Row], Any] = self.plan.key.function
        return found

    def _held(self) -> int:
        return len(self._store)

    def _all(self) -> Iterable[Pair]:
        self.save()
        return self.rows.pairs()

    def _contents(self) -> list[Pair]:
        """Nothing: a part that is made now is fed what there is."""
        return []


def _check_once(once: Any) -> None:
    match once:
        case None:
            return
        case (str(), int(batch)) if batch >= 0 and not isinstance(batch, bool):
            return
    raise PlanError(
        f"once={once!r:.100} is no batch of a query\n"
        '  give the name or id of the query and the number of the batch: once=("orders", 7)'
    )


class RemoteStore:
    """What has been changed and not been saved yet; the rest is read where it is."""

    interns: ClassVar[bool] = False

    def __init__(self, rows: ExternalRows) -> None:
        self._rows = rows
        self._unsaved: list[Pair] = []

    def save(self, open_changes: Sequence[Pair]) -> int:
        """Give all changes but those of a transaction that is open a version."""
        closed = consolidate([*self._unsaved, *negate(open_changes)])
        if closed:
            self._rows.append(closed)
        self._unsaved = list(open_changes)
        return self._rows.version

    def add(self, row: Row, count: int) -> Pair:
        hash(row)
        self._rows.check(row)
        self._unsaved.append((row, count))
        return (row, count)

    def add_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        for row in rows:
            hash(row)
            self._rows.check(row)
        self._unsaved += [(row, 1) for row in rows]
        return rows

    def remove(self, row: Row, count: int) -> Pair:
        return self.add(row, -count)

    def remove_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        for row in rows:
            self.remove(row, 1)
        return rows

    def recount(self) -> None: ...

    def revert(self, changes: Iterable[Pair]) -> None:
        self._unsaved += negate(changes)

    def count(self, row: Row) -> int:
        return sum(weight for found, weight in self.pairs() if found == row)

    def pairs(self) -> Iterable[Pair]:
        saved: Iterable[Pair] = self._rows.pairs()
        return consolidate([*saved, *self._unsaved]) if self._unsaved else saved

    def __len__(self) -> int:
        return self._rows.size() + sum(weight for _, weight in self._unsaved)

    def bytes(self) -> int:
        return 0


class StreamTable(RemoteTable[T]):
    """A table that a stream feeds. Made by `Database.spark_stream`.

    It is read like any other; its rows cannot be changed by hand.
    """

    source: Ingestion[T]
    """What feeds it: its state, token, errors and lag, with `start`, `stop` and `wait`."""

    def __init__(
        self,
        engine: Engine,
        number: int,
        row_type: Any,
        name: str | None,
        key: str | Callable[[T], Hashable] | None,
        stream: Callable[[str], ExternalStream],
    ) -> None:
        self._make = stream
        super().__init__(engine, number, row_type, name, key, self._rows_of)

    def _rows_of(self, name: str) -> ExternalRows:
        self.stream = self._make(name)
        """Where the batches come from."""
        return self.stream.rows

    def _new_store(self, hashable: Any) -> RemoteStore:
        super()._new_store(hashable)
        self._waiting = _FedStore(self.rows, self.name)
        return self._waiting

    def _bulk(self, what: str, change: Callable[[], int]) -> bool:
        _refuse_change(self.name)

    def replace_all(self, rows: Any) -> None:
        """Refused, as all changes by hand are."""
        _refuse_change(self.name)

    def take(self, batch: FrameBatch, unfit: RemoteTable[Any] | None) -> int:
        """Commit a batch; how many rows have changed."""
        engine = self._engine
        if engine.tables.get(self.plan.number) is not self:
            raise SourceError(f"table {self.name!r} of the stream was dropped")
        with self.stream.prepared(batch) as prepared:
            if not prepared.is_change:
                return 0
            with engine.inside(to_write=True):
                prepared.publish()
                engine.count_commit([self] if unfit is None else [self, unfit], prepared.rows)
            rows: int = prepared.rows
            return rows


class StreamNotes:
    """What is noted of the stream of a table: as `Ledger` of other sources."""

    origins: Mapping[Hashable, tuple[Any, ...]] = MappingProxyType({})

    def __init__(self, table: StreamTable[Any], unfit: RemoteTable[Any] | None) -> None:
        self.name = table.name
        self.targets = table.name
        self.view: View[Any] | None = None
        if unfit is not None:
            self.view = unfit.materialize(unfit.name)
        self._stream = table.stream

    @property
    def token(self) -> int | None:
        """The number of the last batch."""
        return self._stream.token

    def has_come_to(self, token: object) -> bool:
        """Whether a batch counts, also one of an earlier process: its number, or a later one."""
        last = self.token
        return last is not None and isinstance(token, int) and token <= last

    def keep_errors(self) -> None:
        """Raise `PlanError`: the policy of a stream is part of its plan."""
        if self.view is None:
            raise PlanError(
                f"{self.name!r} is a stream on Spark, whose policy cannot change\n"
                '  spark_stream(..., on_error="drop") when the table is made'
            )

    def check_same(self, targets: object) -> None:
        """Raise `SourceError`: another source cannot have this name."""
        raise SourceError(
            f"{self.name!r} is the stream of a table on Spark\n  give the source another name"
        )


def stream_table(
    engine: Engine,
    row_type: type[T],
    name: str | None,
    key: str | Callable[[T], Hashable] | None,
    stream: Callable[[str], ExternalStream],
) -> StreamTable[T]:
    """A table that a stream feeds, once its source is started. Inside the lock."""
    table: StreamTable[T] = StreamTable(engine, next(engine.numbers), row_type, name, key, stream)
    if table.name in engine.ledgers:
        raise SourceError(
            f"there is a source {table.name!r} already\n  give the table another name"
        )
    engine.tables[table.plan.number] = table
    unfit: RemoteTable[Any] | None = None
    rows = table.stream.unfit
    if rows is not None:
        called = f"errors of {table.name}"
        number = next(engine.numbers)
        unfit = RemoteTable(engine, number, UnfitRow, called, None, lambda _: rows)
        engine.tables[number] = unfit
    notes = engine.ledgers[table.name] = StreamNotes(table, unfit)
    commit: Callable[[Any, bool], int] = lambda batch, _: table.take(batch, unfit)  # noqa: E731
    source: Any = table.stream
    table.source = Ingestion(engine, source, notes, None, commit, drops=unfit is not None)
    return table


class _FedStore(RemoteStore):
    """Takes no rows but those of the stream."""

    def __init__(self, rows: ExternalRows, name: str) -> None:
        super().__init__(rows)
        self._name = name

    def add(self, row: Row, count: int) -> Pair:
        _refuse_change(self._name)

    def add_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        _refuse_change(self._name)


def _refuse_change(name: str) -> NoReturn:
    raise TableError(
        f"rows of table {name!r} come by its stream, and cannot be changed by hand\n"
        "  add them to what the stream reads, or to another table: a.union_all(b) has the rows of "
        "both"
    )


def fill_operators(
    engine: Engine, operators: Sequence[RemoteOperator], adopt: Adopt | None
) -> None:
    """Hand over what the inputs hold, or first have them hold what an earlier process left."""
    from_state = [o for o in operators if (adopt or o.remote.adopt) == "state" and not o.is_filled]
    if from_state:
        with Transaction(engine):
            for table, rows in _missing(engine, from_state).items():
                table.remove_all(repeat_by_weight((row, -n) for row, n in rows.items() if n < 0))
                table.add_all(repeat_by_weight((row, n) for row, n in rows.items() if n > 0))
        with engine.inside():
            for operator in from_state:
                operator.restored()
    for operator in operators:
        operator.fill("process" if operator in from_state else adopt)


def _missing(engine: Engine, operators: Sequence[RemoteOperator]) -> dict[Any, dict[Row, int]]:
    """What tables are to be given, and what is to go; of what several have the same, once."""
    found: dict[Any, dict[Row, int]] = {}
    for operator in operators:
        for read, pairs in to_restore(operator.fragment, operator.differs()).items():
            rows = found.setdefault(engine.table_of(read), {})
            for row, weight in pairs:
                rows[row] = max(weight, rows.get(row, 0), key=abs)
    return found


def named_views_of(
    engine: Engine, node: plan.Node, run: Callable[[plan.Node], plan.Node]
) -> dict[str, str]:
    """The fingerprints of the views with a name that read a node, or that are being made.

    Parameters
    ----------
    run: the plan that is run for a plan as written.
    """
    making = engine.graph.making
    channels = [leaf.leaf for leaf in engine.graph.leaves()]
    plans = {c.name: run(c.plan) for c in channels if c.name is not None}
    found = {name: root for name, root in plans.items() if node in nodes(root)}
    if making is not None and making.name is not None:
        found[making.name] = run(making.plan)
    return {name: fingerprint(root) for name, root in found.items()}


Known = tuple[plan.Node, frozenset[plan.Node]]


class Readers:
    """The leaves of a database, by the nodes that their queries read.

    Parameters
    ----------
    run: the plan that is run for a plan as written.
    """

    def __init__(self, engine: Engine, run: Callable[[plan.Node], plan.Node]) -> None:
        self._engine, self._run = engine, run
        self._known = WeakKeyDictionary[Node, Known]()

    def of(self, some: Collection[plan.Node]) -> list[Node]:
        """The leaves that read one of some nodes. Inside the lock."""
        leaves = self._engine.graph.leaves()
        return [leaf for leaf in leaves if not self._inside(leaf).isdisjoint(some)]

    def _inside(self, leaf: Node) -> frozenset[plan.Node]:
        found = self._engine.queries.optimized(leaf.leaf.plan).plan
        known = self._known.get(leaf)
        if known is None or known[0] is not found:
            known = self._known[leaf] = found, frozenset(nodes(self._run(leaf.leaf.plan)))
        return known[1]

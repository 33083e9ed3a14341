"""Tables whose rows are remote from the start, streams that feed them, and views that resume.

A `RemoteTable` feeds remote parts without passing rows through the process:

    changes of the table --> waiting --save--> a version, where the rows are
    a remote part       <--------------------- the rows of versions a to b

Committed changes wait in the process until the next flush, and are then saved as one version.

A `StreamTable` is fed by a stream, whose rows do not pass through the process:

    batch n --> rows staged --> one version of the table, which records n --> commit

A batch is a commit of its own, and its number is recorded with its rows: a repeated batch, after
the query was killed before it recorded its progress, changes nothing.

`fill_operators` resumes the state that an earlier process left of a view, and restores its tables
if asked.

`Readers` maps nodes of plans to the leaves that read them: when nodes move, only these leaves are
compiled again.

State:  the place of the rows; for `Readers`, the nodes of each leaf's plan, while it is unchanged.
Cost:   a batch its rows, and with a key a scan of the table; resuming O(plan) per named view, and
        O(rows) if tables are restored; `Readers` O(leaves) a look-up, and O(plan) once per leaf.
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
from reactive.engine.collections import row_fields
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
    """A table whose rows are remote. Created by `Database.spark_table`.

    It is read and written like any other table, but removals are not checked: removing an absent
    row is an error that is not reported. Reading fetches the rows, or counts them remotely.
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
        """Open the remote rows; return the store that holds changes until they are saved."""
        self.rows = self._open(self.name)
        """The remote rows."""
        self._waiting = RemoteStore(self.rows)
        return self._waiting

    def save(self) -> int:
        """Save all commits as a version. Return the last version. The caller holds the lock."""
        pending = self._engine.pending
        open_changes = [] if pending is None else pending.net_changes(self)
        return self._waiting.save(open_changes)

    def add_frame(self, frame: Any, *, once: Once | None = None) -> bool:
        """Add the rows of a DataFrame in a commit of its own; they bypass the process.

        Parameters
        ----------
        once: a query, by its name or id, and the number of its batch, which counts up. A repeated
            batch, for example after a failure, changes nothing: the number is recorded with the
            rows, and with a checkpoint later processes know it, too.

        Returns
        -------
        True if the rows were added; False for a repeated batch.

        Raises
        ------
        TableError: its columns or values do not fit the row type.
        TransactionError: called inside a transaction.
        PlanError: `once` is not a query with a number.
        """
        _check_once(once)
        return self._bulk("add_frame", lambda: self.rows.append_frame(frame, 1, once))

    def remove_frame(self, frame: Any, *, once: Once | None = None) -> bool:
        """Delete the rows of a DataFrame, with their multiplicities. See `add_frame`."""
        _check_once(once)
        return self._bulk("remove_frame", lambda: self.rows.append_frame(frame, -1, once))

    def upsert_frame(self, frame: Any, *, once: Once | None = None) -> bool:
        """Upsert the rows of a DataFrame by key; a scan. See `add_frame`."""
        self._need_own_key("upsert_frame")
        _check_once(once)
        return self._bulk("upsert_frame", lambda: self.rows.upsert(frame, once))

    def replace_frame(self, frame: Any, *, once: Once | None = None) -> bool:
        """Replace the rows of the table by a DataFrame; only the difference is a change.

        For snapshots, such as a table of another database that is read by JDBC from time to time.
        See `add_frame`.

        Raises
        ------
        TableError: as in `add_frame`; or the table has a key, and two of the rows have the same
            one.

        Cost: a scan of both, grouped by row on Spark.
        """
        _check_once(once)
        return self._bulk("replace_frame", lambda: self.rows.replace(frame, once))

    def upsert(self, row: T) -> None:
        """Replace the row with the same key, or add it; a scan of the table."""
        self.upsert_all([row])

    def upsert_all(self, rows: Iterable[T]) -> None:
        """Upsert each row, in one commit and one scan."""
        self._need_own_key("upsert")
        given = list(rows)
        for row in given:
            self.rows.check(row)
        self._bulk("upsert", lambda: self.rows.upsert(given))

    def delete(self, key: Hashable) -> None:
        """Remove the row with a key; a scan of the table."""
        self.remove(self[key])

    def pop(self, key: Hashable, *default: Any) -> Any:
        """Remove the row with a key and return it; a scan of the table."""
        found = self.get(key, *default) if default else self[key]
        if not default or found is not default[0]:
            self.remove(found)
        return found

    def _change(self, key: Hashable, fields: dict[str, Any]) -> None:
        """Replace the row of a key by a copy with other fields; a scan of the table."""
        old = self[key]
        patches.check_fields(self.name, old, fields)
        self.update(old, row_fields.copy_with_fields(old, fields))

    def __getitem__(self, key: Hashable) -> T:
        """Return the row with a key; a scan of the table."""
        found: T | None = self.get(key)
        if found is None:
            raise MissingKeyError(f"table {self.name!r} has no row with key {key!r}", key)
        return found

    def get(self, key: Hashable, default: Any = None) -> Any:
        """Return the row with a key, or the default; a scan of the table."""
        of = self._need_own_key("get")
        with self._reading():
            return next((row for row, _ in self._store.pairs() if of(row) == key), default)

    def __contains__(self, item: object) -> bool:
        """Return True if a row is in the table; for a keyed table, if a key is."""
        if self.plan.key is not None:
            return self.get(item) is not None
        return super().__contains__(item)

    def _patch(self, given: list[Patch]) -> list[T]:
        """Raise `OffloadError`: a remote row is not patched."""
        raise OffloadError(
            f"patch of table {self.name!r}: its rows are on Spark, where bags are arrays\n"
            "  update(old, new) the row; or hold the table in the process, by db.table(...)"
        )

    def to_spark(self) -> Any:
        """Return all rows as a DataFrame, with a column per field."""
        with self._reading():
            self.save()
            return self.rows.frame()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, version {self.rows.version})"

    def _bulk(self, what: str, change: Callable[[], int]) -> bool:
        """Run a change that is a commit and a version of its own.

        Raises `TransactionError` inside a transaction.

        Return False if it was a repetition.
        """
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
            engine.count_commit([(self, ())], 1)
            return True

    def _need_own_key(self, what: str) -> Callable[[Row], Any]:
        """Return the function of the key. Raises `TableError` if the table has none."""
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
        """Save the changes so far, and return all remote rows with their counts."""
        self.save()
        return self.rows.pairs()

    def _contents(self) -> list[Pair]:
        """Return no rows: a new part reads the existing rows remotely."""
        return []


def _check_once(once: Any) -> None:
    """Refuse what is neither None nor a name with the number of a batch."""
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
    """The unsaved changes of a remote table; saved rows are read remotely."""

    interns: ClassVar[bool] = False

    def __init__(self, rows: ExternalRows) -> None:
        self._rows = rows
        self._unsaved: list[Pair] = []

    def save(self, open_changes: Sequence[Pair]) -> int:
        """Save the changes so far as a version, and return the last version.

        Changes of an open transaction are not saved; without others, no version is made.
        """
        closed = consolidate([*self._unsaved, *negate(open_changes)])
        if closed:
            self._rows.append(closed)
        self._unsaved = list(open_changes)
        return self._rows.version

    def add(self, row: Row, count: int) -> Pair:
        """Check a row, and hold its insertion until it is saved."""
        hash(row)
        self._rows.check(row)
        self._unsaved.append((row, count))
        return (row, count)

    def add_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Check rows, and hold their insertions until they are saved; none if one is refused."""
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
        """Return all rows with their counts, unsaved changes included."""
        saved: Iterable[Pair] = self._rows.pairs()
        return consolidate([*saved, *self._unsaved]) if self._unsaved else saved

    def __len__(self) -> int:
        return self._rows.size() + sum(weight for _, weight in self._unsaved)

    def bytes(self) -> int:
        return 0


class StreamTable(RemoteTable[T]):
    """A table that a stream feeds. Created by `Database.spark_stream`.

    It is read like any other table; its rows cannot be changed directly.
    """

    source: Ingestion[T]
    """The ingestion of the stream: its state, token, errors and lag; `start`, `stop` and `wait`."""

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
        """Open the stream, and return the remote rows that it feeds."""
        self.stream = self._make(name)
        """The stream of batches."""
        return self.stream.rows

    def _new_store(self, hashable: Any) -> RemoteStore:
        super()._new_store(hashable)
        self._waiting = _FedStore(self.rows, self.name)
        return self._waiting

    def _bulk(self, what: str, change: Callable[[], int]) -> bool:
        _refuse_change(self.name)

    def replace_all(self, rows: Any) -> None:
        """Raise `TableError`, as all direct changes do."""
        _refuse_change(self.name)

    def take(self, batch: FrameBatch, unfit: RemoteTable[Any] | None) -> int:
        """Commit a batch. Return the number of changed rows.

        Raises `SourceError` if the table was dropped.
        """
        engine = self._engine
        if engine.tables.get(self.plan.number) is not self:
            raise SourceError(f"table {self.name!r} of the stream was dropped")
        with self.stream.write_aside(batch) as prepared:
            if not prepared.is_change:
                return 0
            with engine.inside(to_write=True):
                prepared.publish()
                tables = [self] if unfit is None else [self, unfit]
                engine.count_commit([(table, ()) for table in tables], prepared.rows)
            rows: int = prepared.rows
            return rows


class StreamNotes:
    """The facts about the stream of a table, in the form of `Ledger`."""

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
        """Return True if the batch of a number, or a later one, is committed, by any process."""
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
    """Create a table that a stream feeds, once its source is started. The caller holds the lock."""
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
    """A store that accepts rows of the stream only."""

    def __init__(self, rows: ExternalRows, name: str) -> None:
        super().__init__(rows)
        self._name = name

    def add(self, row: Row, count: int) -> Pair:
        _refuse_change(self._name)

    def add_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        _refuse_change(self._name)


def _refuse_change(name: str) -> NoReturn:
    """Raise `TableError`: only a stream writes to the table."""
    raise TableError(
        f"rows of table {name!r} come by its stream, and cannot be changed by hand\n"
        "  add them to what the stream reads, or to another table: a.union_all(b) has the rows of "
        "both"
    )


def fill_operators(
    engine: Engine, operators: Sequence[RemoteOperator], adopt: Adopt | None
) -> None:
    """Fill remote operators from their inputs, after restoring tables if `adopt` is "state"."""
    from_state = [o for o in operators if (adopt or o.remote.adopt) == "state" and not o.is_filled]
    if from_state:
        with Transaction(engine):
            for table, rows in _missing(engine, from_state).items():
                table.remove_all(repeat_by_weight((row, -n) for row, n in rows.items() if n < 0))
                table.add_all(repeat_by_weight((row, n) for row, n in rows.items() if n > 0))
        with engine.inside():
            for operator in from_state:
                operator.count_as_initial()
    for operator in operators:
        operator.fill("process" if operator in from_state else adopt)


def _missing(engine: Engine, operators: Sequence[RemoteOperator]) -> dict[Any, dict[Row, int]]:
    """Return the rows to add to each table (counts above 0), and to remove (below 0).

    Rows that several operators need are counted once.
    """
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
    """Return the fingerprints of the named views that read a node, or are being created.

    Parameters
    ----------
    run: the function from a plan as written to the plan that is run.
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
    run: the function from a plan as written to the plan that is run.
    """

    def __init__(self, engine: Engine, run: Callable[[plan.Node], plan.Node]) -> None:
        self._engine, self._run = engine, run
        self._known = WeakKeyDictionary[Node, Known]()

    def of(self, some: Collection[plan.Node]) -> list[Node]:
        """Return the leaves that read one of some nodes. The caller holds the lock."""
        leaves = self._engine.graph.leaves()
        return [leaf for leaf in leaves if not self._inside(leaf).isdisjoint(some)]

    def _inside(self, leaf: Node) -> frozenset[plan.Node]:
        """Return the nodes that a leaf's query runs; cached until its optimized plan changes."""
        found = self._engine.queries.optimize(leaf.leaf.plan).plan
        known = self._known.get(leaf)
        if known is None or known[0] is not found:
            known = self._known[leaf] = found, frozenset(nodes(self._run(leaf.leaf.plan)))
        return known[1]

"""A table that a stream feeds, whose rows do not pass through this process.

    batch n --> rows written aside --> one version of the table, which notes n --> commit

A batch is a commit of its own, and its number is noted with its rows: one that comes again, since
its query was killed before it had noted that it was done, changes nothing.

State:  where the rows are.
Cost:   of a batch what it brings; with a key, a scan of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from optimizer.errors import PlanError
from reactive.api.view import View
from reactive.borders.offload.remote_table import RemoteStore, RemoteTable
from reactive.borders.sources.ingestion import Ingestion
from reactive.borders.sources.unfit import UnfitRow
from reactive.engine.collections.zset import Pair, Row
from reactive.engine.remote.external import ExternalRows
from reactive.engine.remote.streams import ExternalStream, FrameBatch
from reactive.errors import SourceError, TableError

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine

T = TypeVar("T")


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
        _refuse(self.name)

    def replace_all(self, rows: Any) -> None:
        """Refused, as all changes by hand are."""
        _refuse(self.name)

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
                engine.committed([self] if unfit is None else [self, unfit], prepared.rows)
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
        _refuse(self._name)

    def add_rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        _refuse(self._name)


def _refuse(name: str) -> NoReturn:
    raise TableError(
        f"rows of table {name!r} come by its stream, and cannot be changed by hand\n"
        "  add them to what the stream reads, or to another table: a.union_all(b) has the rows of "
        "both"
    )

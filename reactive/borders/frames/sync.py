"""Make the rows of a table those of a frame: the difference, found by columns, as one commit.

    frame        --> columns  --+
                                +-- difference --> rows that went, rows that came --> one commit
    last frame   --> columns  --+   of columns

Rows that are in both become no Python objects. For that the columns of the frame are kept, with the
objects that the table held then: if it holds the same ones, they are the columns of its rows still.
Otherwise, and the first time, they are made of the rows.

State:  the columns of the last frame, and 8 bytes for each row of the table.
Cost:   O(values) of 5 to 50 ns each, and what the difference takes; O(values) of some 0.3 us where
        columns have to be made of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter, is_
from typing import Any, NamedTuple

from optimizer.errors import PlanError
from optimizer.kinds.fields import is_record, members
from optimizer.kinds.kind import kind_of
from optimizer.rewriting import fields
from reactive.borders.frames import export, reading, row_class, rows
from reactive.engine.collections.zset import Pair, Row
from reactive.engine.dataflow.moves import by_key
from reactive.engine.runtime import needs
from reactive.engine.storage.keyed_store import KeyedStore
from reactive.engine.storage.rows import key_function
from reactive.engine.storage.store import BagStore


class Synced(NamedTuple):
    """How many rows a frame has changed in a table.

    An `updated` row is another one with a key that was there; it is neither added nor removed.

    >>> from reactive import Database
    >>> stock = Database().table_from([{"id": 1, "n": 3}], key="id")
    >>> stock.sync([{"id": 1, "n": 4}, {"id": 2, "n": 0}])
    Synced(added=1, removed=0, updated=1)
    """

    added: int
    removed: int
    updated: int


class HeldFrame(NamedTuple):
    """Columns, and the rows of a table that had them."""

    columns: Any
    rows: list[Row]
    counts: list[int] | None


def sync(table: Any, data: Any, key: str | Sequence[str] | None) -> Synced:
    """What `Table.sync` does.

    Raises
    ------
    PlanError: what is given is no frame, a field has no column, or the key is another one.
    TableError: a key is there twice, or a row is refused.
    """
    table._check_stored("sync")
    needs.check("sync")
    needs.check("sync", "numpy")
    read = _read_key(table, key)
    columns = _fields_of(
        row_class.fitted(reading.table_of(data, "sync", table.row_type), table.row_type), table
    )
    told: list[Synced] = []
    table._write_many(_Sync(table, columns, read, told))
    return told[0]


def _read_key(table: Any, key: str | Sequence[str] | None) -> Callable[[Row], Any] | None:
    """What tells which row came in the place of which, if anything does."""
    if table._keyed is not None:
        if key is not None and key != _key_column(table):
            raise PlanError(
                f"sync of table {table.name!r} by {key!r}: it has another key\n  leave key= out"
            )
        return _key(table)
    if key is None or isinstance(key, str):
        return None if key is None else key_function(table.row_type, key)
    for each in key:
        key_function(table.row_type, each)  # or else it says that there is no such field
    return attrgetter(*key)


def _fields_of(found: Any, table: Any) -> Any:
    """The columns of a frame that are fields, in their order."""
    if not is_record(table.row_type):
        return found
    names = members(table.row_type)
    found = rows.with_fields(found, kind_of(table.row_type))
    if not (found.column_names or found.num_rows):
        import pyarrow as pa

        return pa.table({name: pa.nulls(0) for name in names})
    missing = [name for name in names if name not in found.column_names]
    if missing:
        raise PlanError(
            f"sync of table {table.name!r}: there is no column for {', '.join(missing)}\n"
            f"  there are {', '.join(found.column_names) or 'none'}; rename a column, or add it"
        )
    return found.select(names)


class _Sync:
    """The statement."""

    def __init__(
        self, table: Any, columns: Any, key: Callable[[Row], Any] | None, told: list[Synced]
    ) -> None:
        self._table = table
        self._columns = columns
        self._key = key
        self._told = told

    def __call__(self) -> Sequence[Pair]:
        table, statements = self._table, self._table._do
        if not len(table._store):
            made = rows.rows_of_table(self._columns, table.row_type)
            known = rows.known_plain(self._columns, table.row_type)
            changes: Sequence[Pair] = statements.add_all(made, known)
            self._told.append(Synced(len(made), 0, 0))
        else:
            changes = self._changed()
        table._frame = _held(table._store, self._columns)
        return changes

    def _changed(self) -> Sequence[Pair]:
        from reactive.borders.frames import difference

        old, key = self._columns_now(), _key_column(self._table)
        found = None if key is None else difference.by_key(old, self._columns, key)
        if found is None:
            found = difference.by_rows(old, self._columns)
        row_type, statements = self._table.row_type, self._table._do
        gone, come = (rows.rows_of_table(part, row_type) for part in found)
        changes: Sequence[Pair] = statements.replace_some(gone, come)
        moves = [] if self._key is None else by_key(self._key, changes)[0]
        if self._table._keyed is None and self._table._node.tracers:
            engine = self._table._engine
            for old_row, new_row in moves:
                engine.updates.note(self._table, [(old_row, -1), (new_row, 1)], engine.version + 1)
        self._told.append(_counts(changes, len(moves)))
        return changes

    def _columns_now(self) -> Any:
        """The columns of the rows that the table has."""
        held = self._table._frame
        now = _standing(self._table._store)
        if held is not None and _is_standing(held, now):
            return held.columns
        found, counts = now
        if counts is not None:
            found = [row for row, count in zip(found, counts, strict=True) for _ in range(count)]
        columns = reading.plain_columns(export.columns_of(self._table, found))
        if is_record(self._table.row_type):
            return _fields_of(columns, self._table)
        return columns.rename_columns(self._columns.column_names)  # by their places


def _held(store: Any, columns: Any) -> HeldFrame:
    return HeldFrame(columns, *_standing(store))


def _standing(store: Any) -> tuple[list[Row], list[int] | None]:
    """The rows that a store has, as objects, and how often, if any is there twice."""
    distinct = store.distinct() if isinstance(store, BagStore | KeyedStore) else None
    if distinct is not None:
        return distinct, None
    pairs = list(store.pairs())
    return [row for row, _ in pairs], [count for _, count in pairs]


def _is_standing(held: HeldFrame, now: tuple[list[Row], list[int] | None]) -> bool:
    found, counts = now
    is_as_many = len(found) == len(held.rows) and counts == held.counts
    return is_as_many and all(map(is_, found, held.rows))


def _key(table: Any) -> Callable[[Row], Any] | None:
    return None if table._keyed is None else table._keyed.key


def _key_column(table: Any) -> str | None:
    """The field that the key of a table is, if it is one."""
    if table._keyed is None:
        return None
    name = fields.field_read(table.plan.key.function)
    return name if isinstance(name, str) and name in members(table.row_type) else None


def _counts(changes: Sequence[Pair], updated: int) -> Synced:
    came = sum(weight for _, weight in changes if weight > 0)
    went = sum(-weight for _, weight in changes if weight < 0)
    return Synced(came - updated, went - updated, updated)

"""Loads of tables from rows, frames and files; and `sync`, which applies the difference to a frame.

`load` adds rows in one commit or several, with a progress bar:

    an iterable of rows  --> pieces --> collected          --> one commit
    with `batch`         --> pieces --> a commit per piece of `batch` rows

`sync` replaces the rows of a table by the rows of a frame, in one commit:

    new frame    --> columns  --+
                                +-- difference --> deleted rows, inserted rows --> one commit
    last frame   --> columns  --+   of columns

Unchanged rows become no Python objects. For that, the columns of the last frame are kept, with the
row objects that the table held then: while it holds the same objects, the columns still describe
its rows. Otherwise, and the first time, the columns are made from the rows.

Needs:  pyarrow, for frames and files only.
State:  the columns of the last synced frame, and 8 bytes for each row of the table.
Cost:   `load` that of `add_all`, and of making rows of a frame (`rows.py`); `sync` 5 to 50 ns per
        value, and the changes; some 0.3 us per value where columns are made from the rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import chain, islice
from operator import attrgetter, is_
from pathlib import Path
from typing import Any, NamedTuple

from optimizer.errors import PlanError
from optimizer.kinds.fields import is_record, members
from optimizer.kinds.kind import kind_of
from optimizer.rewriting import columns
from reactive.api.internal_interface import (
    check_stored,
    engine_of,
    keep_frame,
    keyed_of,
    last_frame,
    node_of,
    row_store_of,
    statements_of,
    write_many,
)
from reactive.borders.frames import export, reading, rows
from reactive.engine.collections.zset import Pair, Row
from reactive.engine.dataflow.delta import pair_by_key
from reactive.engine.runtime import needs
from reactive.engine.runtime.collector import pause_collector
from reactive.engine.runtime.progress import Progress, watch_progress
from reactive.engine.storage import plain_rows
from reactive.engine.storage.row_check import KeyedStore
from reactive.engine.storage.rows import key_function
from reactive.engine.storage.store import BagStore
from reactive.errors import TableError

OnProgress = Callable[[int, int | None], object]
"""Called with the number of loaded rows, and the total number if known."""
PIECE = 10_000
"""The rows between two reports of progress, if `batch` does not say."""

Piece = tuple[Sequence[Any], plain_rows.PlainTest | None]
"""Rows, and the test that they are known to pass."""


def add_frame(table: Any, data: Any) -> None:
    """Add the rows of a frame; see `Table.add_arrow`."""
    with pause_collector():
        _add_piece(
            table, _piece_of(reading.read_frame(data, "add_arrow", table.row_type), table.row_type)
        )


def table_from(
    db: Any, data: Any, key: str | Sequence[str] | None, name: str | None, *, replace: bool
) -> Any:
    """Make a table from a frame; see `Database.table_from`. `db` makes the table.

    Raises `PlanError` if the table has stored rows already, and `replace` is False.
    """
    given = reading.read_frame(data, "table_from")
    found = rows.rename_columns(given)
    keys = () if key is None else _key_fields(key, given.column_names, found)
    kind = rows.frame_row_class(found, name or "Row", keys)
    with pause_collector():
        made = _piece_of(found, kind)
        of_key = attrgetter(*keys) if keys else None
        if of_key is not None:
            _check_keys(made[0], of_key)
        told = keys[0] if len(keys) == 1 else of_key
        anew = {"migrate": _leave_out} if replace and engine_of(db).journal is not None else {}
        table = db.table(kind, key=told, name=name, replace=replace, **anew)
        if not len(table):
            _fill_table(db, table, made, replace=replace)
        elif replace:
            table.replace_all(made[0])
        else:
            raise _already_stored(db, table)
    return table


def _leave_out(_: object) -> None:
    """Discard a stored row of an earlier class, as a `migrate=` function."""


def _check_keys(made: Sequence[Any], key: Callable[[Any], Any]) -> None:
    """Refuse rows with equal keys before a table is made or replaced."""
    keys = list(map(key, made))
    if len({*keys}) == len(keys):
        return
    first: dict[Any, Any] = {}
    for row, of in zip(made, keys, strict=True):
        if (other := first.setdefault(of, row)) is not row:
            raise TableError(
                f"table_from: cannot take {row!r:.200}: its key is taken by {other!r:.200}\n"
                "  leave one of them out, or give another key"
            )


def _fill_table(db: Any, table: Any, made: Piece, *, replace: bool) -> None:
    """Add the rows to a new table.

    If they are refused, drop the table, unless it was to `replace` another one.
    """
    try:
        _add_piece(table, made)
    except BaseException:
        if not replace:
            db.drop(table)
        raise


def _already_stored(db: Any, table: Any) -> PlanError:
    """Return the error for a new durable table that has stored rows, after undoing its creation."""
    engine = engine_of(table)
    engine.journal.release(table)
    db.drop(table)
    return PlanError(
        f"table {table.name!r} is durable, and has rows in {engine.journal.store.name}\n"
        "  with replace=True it has those of the frame in their place; or give another name"
    )


def _key_fields(key: Any, names: list[str], found: Any) -> tuple[str, ...]:
    """Return the fields of the key, which may be given by column names.

    Raises `PlanError` if a name is not that of a column, `TableError` if a column has nulls.
    """
    several = isinstance(key, list | tuple)
    keys = tuple(key) if several else (key,)
    if not keys or not all(isinstance(each, str) for each in keys):
        raise PlanError(
            f"table_from: key={key!r:.100} names no column\n"
            '  give one, as key="id"; or several, as key=["shop", "id"]'
        )
    return tuple([_key_field(each, names, found) for each in keys])


def _key_field(key: str, names: list[str], found: Any) -> str:
    """Return the field of a column of the key. Raises if the column is missing or has nulls."""
    called = dict(zip(names, found.column_names, strict=True)).get(key, key)
    if called not in found.column_names:
        raise PlanError(
            f"table_from: there is no column {key!r} for the key\n"
            f"  there are {', '.join(names) or 'none'}"
        )
    if found[called].null_count:
        raise TableError(
            f"table_from: column {key!r} is the key, and has nulls\n"
            "  leave these rows out, or give another key"
        )
    return str(called)


def load(table: Any, given: Any, progress: bool | OnProgress, batch: int | None) -> int:
    """Load rows; see `Table.load`. Return the number of loaded rows.

    Raises
    ------
    PlanError: `given` is neither rows nor a frame, or `batch` is not a positive number.
    """
    if batch is not None and (type(batch) is not int or batch < 1):
        raise PlanError(
            f"batch is a number of rows from 1 on, not {batch!r}\n  leave it out for one commit"
        )
    if not (isinstance(progress, bool) or callable(progress)):
        raise PlanError(
            f"progress is True, False or a callable, done, total -> anything, not {progress!r:.100}"
        )
    is_watched = progress is not False or batch is not None
    pieces, total = _split_pieces(table, given, (batch or PIECE) if is_watched else sys.maxsize)
    with _progress_of(f"loading {table.name!r}", progress) as watch:
        if batch is None:
            return _at_once(table, _count_pieces(pieces, total, watch))
        return _one_by_one(table, pieces, total, watch)


def _at_once(table: Any, pieces: Iterable[Piece]) -> int:
    """Add all rows in one commit; return their number."""
    with pause_collector():
        every = list(pieces)
        tests = {id(test): test for _, test in every}
        test = next(iter(tests.values())) if len(tests) == 1 else None
        made = list(chain.from_iterable(found for found, _ in every))
        if made:
            _add_piece(table, (made, test))
    return len(made)


def _one_by_one(table: Any, pieces: Iterable[Piece], total: int | None, watch: Progress) -> int:
    """Add each piece in a commit of its own; return the number of rows.

    If a piece is refused, the earlier ones stay, and the exception tells their number.
    """
    done = 0
    watch.count(done, total)
    try:
        for piece in pieces:
            _add_piece(table, piece)
            done += len(piece[0])
            watch.count(done, total)
    except Exception as error:
        were = "1 row was" if done == 1 else f"{done} rows were"
        error.add_note(f"  {were} loaded into table {table.name!r} before; what was stays")
        raise
    return done


def _count_pieces(pieces: Iterable[Piece], total: int | None, watch: Progress) -> Iterator[Piece]:
    """Yield the pieces, and report the rows of each to `watch` when the next one is requested."""
    done = 0
    watch.count(done, total)
    for piece in pieces:
        yield piece
        done += len(piece[0])
        watch.count(done, total)


def _add_piece(table: Any, piece: Piece) -> None:
    write_many(table, statements_of(table).add_all, *piece)


def _split_pieces(table: Any, given: Any, size: int) -> tuple[Iterator[Piece], int | None]:
    """Return the rows in pieces, and the total number of rows if known.

    Raises `PlanError` for what is neither rows, a frame nor the path of a file.
    """
    if isinstance(given, str | Path) and Path(given).suffix.lower() == ".parquet":
        return _of_parquet(table, given, size)
    rows_of_names = isinstance(given, list) and bool(given) and isinstance(given[0], Mapping)
    is_dicts = rows_of_names or isinstance(given, Mapping)
    if is_dicts or isinstance(given, str | Path) or reading.is_frame(given):
        found = reading.read_frame(given, "load", table.row_type)
        parts = (found.slice(start, size) for start in range(0, found.num_rows, size))
        return (_piece_of(part, table.row_type) for part in parts), found.num_rows
    if not isinstance(given, Iterable):
        raise PlanError(
            f"load takes rows, a frame or the path of a file, not {given!r:.100}\n"
            "  add(row) adds one row"
        )
    total = len(given) if isinstance(given, Sequence | frozenset | set) else None
    return ((found, None) for found in _cut_pieces(iter(given), size)), total


def _of_parquet(table: Any, path: str | Path, size: int) -> tuple[Iterator[Piece], int]:
    """Return the rows of a Parquet file, read piece by piece."""
    needs.check_library("load")
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)

    def pieces() -> Iterator[Piece]:
        with file:
            for found in file.iter_batches(size):
                part = reading.plain_columns(pa.Table.from_batches([found]))
                yield _piece_of(part, table.row_type)

    return pieces(), file.metadata.num_rows


def _piece_of(found: Any, row_type: Any) -> Piece:
    """Return the rows of a frame, with the plain-row test that they pass."""
    found = rows.adapt_frame(found, row_type)
    return rows.rows_of_table(found, row_type), rows.known_plain(found, row_type)


def _cut_pieces(given: Iterator[Any], size: int) -> Iterator[list[Any]]:
    """Yield lists of at most `size` items, consuming `given`; no empty list."""
    while piece := list(islice(given, size)):
        yield piece


def _progress_of(title: str, progress: bool | OnProgress) -> AbstractContextManager[Any]:
    """Return the context that reports progress: to a callable, on the screen, or nowhere."""
    if callable(progress):
        return _callback_progress(progress)
    return watch_progress(title) if progress else _callback_progress(lambda done, total: None)


@contextmanager
def _callback_progress(progress: OnProgress) -> Iterator[Any]:
    yield _Counting(progress)


class _Counting:
    """A progress that calls a function with the number of rows."""

    def __init__(self, progress: OnProgress) -> None:
        self.count = progress


class Synced(NamedTuple):
    """The number of rows that `sync` changed in a table.

    An `updated` row has a key that the table had, and other values; it counts neither as added nor
    as removed.

    >>> from reactive import Database
    >>> stock = Database().table_from([{"id": 1, "n": 3}], key="id")
    >>> stock.sync([{"id": 1, "n": 4}, {"id": 2, "n": 0}])
    Synced(added=1, removed=0, updated=1)
    """

    added: int
    removed: int
    updated: int


class HeldFrame(NamedTuple):
    """Columns, and the row objects of a table that they describe."""

    columns: Any
    rows: list[Row]
    counts: list[int] | None


def sync(table: Any, data: Any, key: str | Sequence[str] | None) -> Synced:
    """Replace the rows of a table by the rows of a frame; see `Table.sync`.

    Raises
    ------
    PlanError: `data` is no frame, a field has no column, or the key is another one.
    TableError: two rows have the same key, or a row is refused.
    """
    check_stored(table, "sync")
    needs.check_library("sync")
    needs.check_library("sync", "numpy")
    read = _read_key(table, key)
    columns = _fields_of(
        rows.adapt_frame(reading.read_frame(data, "sync", table.row_type), table.row_type), table
    )
    told: list[Synced] = []
    write_many(table, _Sync(table, columns, read, told))
    return told[0]


def _read_key(table: Any, key: str | Sequence[str] | None) -> Callable[[Row], Any] | None:
    """Return the function of the key by which `sync` counts updates; None to count none.

    Raises `PlanError` if the table has another key than `key`.
    """
    if keyed_of(table) is not None:
        if key is not None and key != _key_column(table):
            raise PlanError(
                f"sync of table {table.name!r} by {key!r}: it has another key\n  leave key= out"
            )
        return _key_function(table)
    if key is None or isinstance(key, str):
        return None if key is None else key_function(table.row_type, key)
    for each in key:
        key_function(table.row_type, each)  # raises if there is no such field
    return attrgetter(*key)


def _fields_of(found: Any, table: Any) -> Any:
    """Select the columns that are fields, in the order of the fields.

    Raises `PlanError` if a field has no column.
    """
    if not is_record(table.row_type):
        return found
    names = members(table.row_type)
    found = rows.rename_to_fields(found, kind_of(table.row_type))
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
    """The statement that `sync` runs."""

    def __init__(
        self, table: Any, columns: Any, key: Callable[[Row], Any] | None, told: list[Synced]
    ) -> None:
        self._table = table
        self._columns = columns
        self._key = key
        self._told = told

    def __call__(self) -> Sequence[Pair]:
        table, store = self._table, row_store_of(self._table)
        if not len(store):
            made = rows.rows_of_table(self._columns, table.row_type)
            known = rows.known_plain(self._columns, table.row_type)
            changes = statements_of(table).add_all(made, known)
            self._told.append(Synced(len(made), 0, 0))
        else:
            changes = self._find_changes()
        keep_frame(table, _held_frame(store, self._columns))
        return changes

    def _find_changes(self) -> Sequence[Pair]:
        """Replace the rows that differ from the frame; return the changes.

        Appends their counts to `_told`.
        """
        from reactive.borders.frames import difference

        old, key = self._columns_now(), _key_column(self._table)
        found = None if key is None else difference.difference_by_key(old, self._columns, key)
        if found is None:
            found = difference.difference_by_rows(old, self._columns)
        table, row_type = self._table, self._table.row_type
        gone, come = (rows.rows_of_table(part, row_type) for part in found)
        changes = statements_of(table).replace_some(gone, come)
        moves = [] if self._key is None else pair_by_key(self._key, changes)[0]
        if keyed_of(table) is None and node_of(table).tracers:
            engine = engine_of(table)
            for old_row, new_row in moves:
                engine.updates.record(table, [(old_row, -1), (new_row, 1)], engine.version + 1)
        self._told.append(_count_changes(changes, len(moves)))
        return changes

    def _columns_now(self) -> Any:
        """Return the columns of the current rows of the table."""
        held: HeldFrame | None = last_frame(self._table)
        now = _current_rows(row_store_of(self._table))
        if held is not None and _is_unchanged(held, now):
            return held.columns
        found, counts = now
        if counts is not None:
            found = [row for row, count in zip(found, counts, strict=True) for _ in range(count)]
        columns = reading.plain_columns(export.columns_of(self._table, found))
        if is_record(self._table.row_type):
            return _fields_of(columns, self._table)
        return columns.rename_columns(self._columns.column_names)  # matched by position


def _held_frame(store: Any, columns: Any) -> HeldFrame:
    return HeldFrame(columns, *_current_rows(store))


def _current_rows(store: Any) -> tuple[list[Row], list[int] | None]:
    """Return the row objects of a store, and their counts if any row has several copies."""
    distinct = store.distinct() if isinstance(store, BagStore | KeyedStore) else None
    if distinct is not None:
        return distinct, None
    pairs = list(store.pairs())
    return [row for row, _ in pairs], [count for _, count in pairs]


def _is_unchanged(held: HeldFrame, now: tuple[list[Row], list[int] | None]) -> bool:
    """Return True if the table holds the same row objects, in order, as for the held frame."""
    found, counts = now
    is_as_many = len(found) == len(held.rows) and counts == held.counts
    return is_as_many and all(map(is_, found, held.rows))


def _key_function(table: Any) -> Callable[[Row], Any] | None:
    keyed = keyed_of(table)
    return None if keyed is None else keyed.key


def _key_column(table: Any) -> str | None:
    """Return the field that is the key of a table; None if the key is not a field."""
    if keyed_of(table) is None:
        return None
    name = columns.field_read(table.plan.key.function)
    return name if isinstance(name, str) and name in members(table.row_type) else None


def _count_changes(changes: Sequence[Pair], updated: int) -> Synced:
    """Return the counts of a sync; `updated` of the deleted and inserted rows are updates."""
    came = sum(weight for _, weight in changes if weight > 0)
    went = sum(-weight for _, weight in changes if weight < 0)
    return Synced(came - updated, went - updated, updated)

"""Long loads of a table: of rows, frames and files, in one commit or several, with a bar.

    rows that come    --> pieces --> kept until all are there     --> one commit
    a frame, a file   --> pieces --> a commit each, of `batch` rows

Needs:  pyarrow, for frames and files alone.
Cost:   of `add_all`, and of a frame what making its rows takes (`rows.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import Any

from optimizer.errors import PlanError
from reactive.borders.frames import reading, row_class, rows
from reactive.engine.runtime import needs
from reactive.engine.runtime.collector import paused
from reactive.engine.runtime.progress import Progress, watched
from reactive.engine.storage import plain_rows
from reactive.errors import TableError

OnProgress = Callable[[int, int | None], object]
"""Called with how many rows are loaded, and of how many, if that is known."""
PIECE = 10_000
"""Rows after which it is told how far a load has come, if `batch` does not say."""

Piece = tuple[Sequence[Any], plain_rows.PlainTest | None]
"""Rows, and the test that they are known to pass."""


def add_frame(table: Any, data: Any) -> None:
    """What `Table.add_arrow` does."""
    with paused():
        _add(table, _made(reading.table_of(data, "add_arrow", table.row_type), table.row_type))


def table_from(
    db: Any, data: Any, key: str | Sequence[str] | None, name: str | None, *, replace: bool
) -> Any:
    """What `Database.table_from` does; `db` makes the table."""
    given = reading.table_of(data, "table_from")
    found = row_class.with_names(given)
    keys = () if key is None else _keys_of(key, given.column_names, found)
    kind = row_class.row_class(found, name or "Row", keys)
    with paused():
        made = _made(found, kind)
        of_key = attrgetter(*keys) if keys else None
        if of_key is not None:
            _check_keys(made[0], of_key)
        told = keys[0] if len(keys) == 1 else of_key
        anew = {"migrate": _leave_out} if replace and db._engine.journal is not None else {}
        table = db.table(kind, key=told, name=name, replace=replace, **anew)
        if not len(table):
            _fill(db, table, made, replace=replace)
        elif replace:
            table.replace_all(made[0])
        else:
            raise _already_stored(db, table)
    return table


def _leave_out(_: object) -> None:
    """What becomes of a row that is stored, and of another class: the frame has the rows."""


def _check_keys(made: Sequence[Any], key: Callable[[Any], Any]) -> None:
    """Refuse rows with one key before a table is made, or one is replaced."""
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


def _fill(db: Any, table: Any, made: Piece, *, replace: bool) -> None:
    """Add the rows; if they are refused there is no table."""
    try:
        _add(table, made)
    except BaseException:
        if not replace:
            db.drop(table)
        raise


def _already_stored(db: Any, table: Any) -> PlanError:
    """What to raise of a durable table that has rows in the file; it is as if it was not made."""
    engine = table._engine
    engine.journal.release(table)
    db.drop(table)
    return PlanError(
        f"table {table.name!r} is durable, and has rows in {engine.journal.store.name}\n"
        "  with replace=True it has those of the frame in their place; or give another name"
    )


def _keys_of(key: Any, names: list[str], found: Any) -> tuple[str, ...]:
    """The fields that are the key, by their names or by those of the columns."""
    several = isinstance(key, list | tuple)
    keys = tuple(key) if several else (key,)
    if not keys or not all(isinstance(each, str) for each in keys):
        raise PlanError(
            f"table_from: key={key!r:.100} names no column\n"
            '  give one, as key="id"; or several, as key=["shop", "id"]'
        )
    return tuple([_key_of(each, names, found) for each in keys])


def _key_of(key: str, names: list[str], found: Any) -> str:
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
    """What `Table.load` does: how many rows were loaded.

    Raises
    ------
    PlanError: what is given is neither rows nor a frame, or `batch` no number of rows.
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
    pieces, total = _pieces(table, given, (batch or PIECE) if is_watched else sys.maxsize)
    with _watching(f"loading {table.name!r}", progress) as watch:
        if batch is None:
            return _at_once(table, _told(pieces, total, watch))
        return _one_by_one(table, pieces, total, watch)


def _at_once(table: Any, pieces: Iterable[Piece]) -> int:
    """All rows as one commit."""
    with paused():
        every = list(pieces)
        tests = {id(test): test for _, test in every}
        test = next(iter(tests.values())) if len(tests) == 1 else None
        made = list(chain.from_iterable(found for found, _ in every))
        if made:
            _add(table, (made, test))
    return len(made)


def _one_by_one(table: Any, pieces: Iterable[Piece], total: int | None, watch: Progress) -> int:
    """A commit for each piece; those before one that is refused stay."""
    done = 0
    watch.count(done, total)
    try:
        for piece in pieces:
            _add(table, piece)
            done += len(piece[0])
            watch.count(done, total)
    except Exception as error:
        were = "1 row was" if done == 1 else f"{done} rows were"
        error.add_note(f"  {were} loaded into table {table.name!r} before; what was stays")
        raise
    return done


def _told(pieces: Iterable[Piece], total: int | None, watch: Progress) -> Iterator[Piece]:
    done = 0
    watch.count(done, total)
    for piece in pieces:
        yield piece
        done += len(piece[0])
        watch.count(done, total)


def _add(table: Any, piece: Piece) -> None:
    table._write_many(table._do.add_all, *piece)


def _pieces(table: Any, given: Any, size: int) -> tuple[Iterator[Piece], int | None]:
    """The rows in pieces, and how many there are if that is known."""
    if isinstance(given, str | Path) and Path(given).suffix.lower() == ".parquet":
        return _of_parquet(table, given, size)
    rows_of_names = isinstance(given, list) and bool(given) and isinstance(given[0], Mapping)
    is_dicts = rows_of_names or isinstance(given, Mapping)
    if is_dicts or isinstance(given, str | Path) or reading.is_frame(given):
        found = reading.table_of(given, "load", table.row_type)
        parts = (found.slice(start, size) for start in range(0, found.num_rows, size))
        return (_made(part, table.row_type) for part in parts), found.num_rows
    if not isinstance(given, Iterable):
        raise PlanError(
            f"load takes rows, a frame or the path of a file, not {given!r:.100}\n"
            "  add(row) adds one row"
        )
    total = len(given) if isinstance(given, Sequence | frozenset | set) else None
    return ((found, None) for found in _cut(iter(given), size)), total


def _of_parquet(table: Any, path: str | Path, size: int) -> tuple[Iterator[Piece], int]:
    """The rows of a file, of which a piece is read at a time."""
    needs.check("load")
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)

    def pieces() -> Iterator[Piece]:
        with file:
            for found in file.iter_batches(size):
                part = reading.plain_columns(pa.Table.from_batches([found]))
                yield _made(part, table.row_type)

    return pieces(), file.metadata.num_rows


def _made(found: Any, row_type: Any) -> Piece:
    found = row_class.fitted(found, row_type)
    return rows.rows_of_table(found, row_type), rows.known_plain(found, row_type)


def _cut(given: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while piece := list(islice(given, size)):
        yield piece


def _watching(title: str, progress: bool | OnProgress) -> AbstractContextManager[Any]:
    if callable(progress):
        return _called(progress)
    return watched(title) if progress else _called(lambda done, total: None)


@contextmanager
def _called(progress: OnProgress) -> Iterator[Any]:
    yield _Counting(progress)


class _Counting:
    """Tells a callable how many rows there are."""

    def __init__(self, progress: OnProgress) -> None:
        self.count = progress

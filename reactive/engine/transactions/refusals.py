"""The error for a row that a table cannot hold: its hash raises, or its `==` for another row.

A table finds rows by hash and `==`, so it cannot hold two rows that clash, nor change from one to
the other in one commit. The error of `==` says which values; this one says where.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from reactive.engine.collections import bag_folds
from reactive.engine.collections.zset import Pair
from reactive.engine.runtime.interrupts import is_asynchronous
from reactive.engine.transactions.row_gate import Base
from reactive.errors import TableError


def report_clash(
    table: Base,
    given: Any,
    changes: Sequence[Pair],
    pending: Iterable[tuple[Base, Sequence[Pair]]],
    error: BaseException,
) -> None:
    """Raise a `TableError` from the `error` of a statement, if a hash or a `==` of rows raised.

    Do nothing if the statement has `changes`: then a view raised. `given` is the argument of the
    statement: the rows in it are compared with the rows of the table and with the rows that the
    transaction has removed.

    Cost: O(rows of the table), of a statement that raised.
    """
    if (
        changes
        or not isinstance(error, Exception)
        or isinstance(error, TableError)
        or is_asynchronous(error)
        or not hasattr(table._store, "pairs")  # tracked objects are found by identity
    ):
        return
    rows = [*_rows_in_argument(given, table, 3)]
    for row in rows:
        if (part := bag_folds.unhashable_reason(row)) is not None:
            raise TableError(
                f"table {table.name!r} cannot take {row!r:.100}: {part}, whose hash raises "
                f"{type(error).__name__}: {error}\n"
                "  rows are found by hash and ==; give the class a __hash__ that raises nothing"
            ) from error
    removed = [pair[0] for changed, pairs in pending if changed is table for pair in pairs]
    others = [*[row for row, _ in table._store.pairs()], *removed] if rows else []
    whole = bag_folds.find_clash(rows, others, lambda row: row)
    found = whole
    if found is None and table._keyed is not None:
        found = bag_folds.find_clash(rows, others, table._keyed.key)
    if found is not None:
        row, other = found
        its, of = ("it", "") if found is whole else ("its key", "the key of ")
        raise TableError(
            f"table {table.name!r} cannot take {row!r:.100}: {its} has the hash of {of}"
            f"{other!r:.100}, and comparing them raises {type(error).__name__}: {error}\n"
            "  rows are found by hash and ==; give the values an __eq__ that is False where they "
            "differ,\n  or remove the other row in a commit before"
        ) from error


def _rows_in_argument(given: Any, table: Base, depth: int) -> Iterator[Any]:
    """Yield the rows of a table in the argument `given` of a statement.

    Lists and tuples are searched `depth` levels deep.
    """
    of = table.row_type
    has_class = isinstance(of, type) and of is not tuple
    if isinstance(given, of) if has_class else _may_be_row(given):
        yield given
    elif depth and isinstance(given, list | tuple):
        for each in given:
            yield from _rows_in_argument(each, table, depth - 1)


def _may_be_row(given: Any) -> bool:
    """Return True for a tuple that may be a row; an argument tuple that contains a list is not."""
    return isinstance(given, tuple) and not any(isinstance(each, list) for each in given)

"""Quoted and unique names in SQL statements of SQLite and Postgres, and names of dialects."""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from typing import Any, Literal, TypeAlias

from optimizer.errors import PlanError

DialectName: TypeAlias = Literal["duckdb", "postgres", "sqlite"]
DIALECT_NAMES: tuple[DialectName, ...] = ("duckdb", "postgres", "sqlite")


def check_dialect(name: DialectName) -> DialectName:
    """Return the name of a dialect of SQL; raise if there is none.

    Raises
    ------
    PlanError: there is no such dialect.
    """
    if name not in DIALECT_NAMES:
        raise PlanError(f"there is no dialect {name!r}\n  there are {', '.join(DIALECT_NAMES)}")
    return name


def quote_name(name: str) -> str:
    """Return a name as a quoted SQL identifier.

    >>> print(quote_name('odd "name" of it'))
    "odd ""name"" of it"
    """
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def unique_name(name: str, taken: Collection[str]) -> str:
    """Return the name, with a number if it is taken; SQL ignores the case of names.

    >>> unique_name("id", ["town"]), unique_name("Id", ["id", "id_2"])
    ('id', 'Id_3')
    """
    return unique_name_among(name, {other.lower() for other in taken})


def unique_name_among(name: str, others: Container[str]) -> str:
    """Return the name, with a number if it is among lower-case names."""
    found, number = name, 2
    while found.lower() in others:
        found, number = f"{name}_{number}", number + 1
    return found


class RowCount(int):
    """The number of rows that a statement has changed, and the rows of its RETURNING.

    rows: the named tuples of RETURNING, in the order of the changes; () without it.

    >>> count = RowCount(2)
    >>> count, count.rows
    (2, ())
    """

    rows: Sequence[Any] = ()

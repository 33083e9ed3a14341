"""Quoted and unique names in SQL statements of SQLite and Postgres, and names of dialects."""

from __future__ import annotations

from collections.abc import Collection, Container
from typing import Literal, TypeAlias

from optimizer.errors import PlanError

DialectName: TypeAlias = Literal["duckdb", "postgres", "sqlite"]
DIALECT_NAMES: tuple[DialectName, ...] = ("duckdb", "postgres", "sqlite")


def checked_dialect(name: DialectName) -> DialectName:
    """Return the name of a dialect of SQL; raise if there is none.

    Raises
    ------
    PlanError: there is no such dialect.
    """
    if name not in DIALECT_NAMES:
        raise PlanError(f"there is no dialect {name!r}\n  there are {', '.join(DIALECT_NAMES)}")
    return name


def quoted(name: str) -> str:
    """Return a name as a quoted SQL identifier.

    >>> print(quoted('odd "name" of it'))
    "odd ""name"" of it"
    """
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def apart(name: str, taken: Collection[str]) -> str:
    """Return the name, with a number if it is taken; SQL ignores the case of names.

    >>> apart("id", ["town"]), apart("Id", ["id", "id_2"])
    ('id', 'Id_3')
    """
    return apart_of(name, {other.lower() for other in taken})


def apart_of(name: str, others: Container[str]) -> str:
    """Return the name, with a number if it is among lower-case names."""
    found, number = name, 2
    while found.lower() in others:
        found, number = f"{name}_{number}", number + 1
    return found

"""The classes of rows of tables that SQL makes: named tuples with the columns' types."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, NamedTuple, Optional

from reactive.sql.terms.schema import field_names
from reactive.sql.terms.types import OF_PYTHON, SqlType

HINTS: dict[str, Any] = {kind.kind: hint for hint, kind in OF_PYTHON.items()}
HINTS["timestamptz"] = Annotated[datetime, UTC]


def hint_of(kind: SqlType, *, nullable: bool) -> Any:
    """The annotation of a column.

    >>> from reactive.sql.terms.types import INT
    >>> hint_of(INT, nullable=False)
    <class 'int'>
    """
    hint = tuple if kind.kind in ("array", "struct") else HINTS.get(kind.kind, Any)
    return Optional[hint] if nullable and hint is not Any else hint  # noqa: UP045


@cache
def table_class(name: str, fields: tuple[tuple[str, Any], ...]) -> Any:
    """The class of rows of a table.

    >>> import pickle
    >>> Word = table_class("words", (("id", int), ("word", str)))
    >>> row = Word(1, "to")
    >>> row, type(pickle.loads(pickle.dumps(row))) is Word
    (words(id=1, word='to'), True)
    """
    (called,) = field_names([name])
    made: Any = NamedTuple(called, list(fields))  # type: ignore[misc]
    made.__module__ = __name__
    made.__reduce__ = _reduced_of(name, fields)  # type: ignore[method-assign]
    made.__doc__ = f"A row of table {name}."
    return made


def _reduced_of(name: str, fields: tuple[tuple[str, Any], ...]) -> Any:
    return lambda row: (table_row, (name, fields, tuple(row)))


def table_row(name: str, fields: tuple[tuple[str, Any], ...], values: Sequence[Any]) -> Any:
    """A row of a table."""
    return table_class(name, fields)(*values)

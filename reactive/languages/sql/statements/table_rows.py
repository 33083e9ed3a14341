"""The classes of rows of tables that SQL makes: named tuples with the columns' types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from optimizer.kinds.class_facts import class_maker
from reactive.engine.transactions.row_gate import FROM_TUPLES
from reactive.languages.sql.terms.schema import field_names


@class_maker
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
    setattr(made, FROM_TUPLES, True)
    return made


def _reduced_of(name: str, fields: tuple[tuple[str, Any], ...]) -> Any:
    return lambda row: (table_row, (name, fields, tuple(row)))


def table_row(name: str, fields: tuple[tuple[str, Any], ...], values: Sequence[Any]) -> Any:
    """A row of a table."""
    return table_class(name, fields)(*values)

"""Exceptions and types that PEP 249 names, and which of them an error of the engine is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from optimizer.errors import PlanError, ReactiveError
from reactive.errors import TableError, TransactionError


class Error(Exception):
    """An error of a statement; the error of the engine is its `__cause__`."""


class InterfaceError(Error):
    """A wrong use of a connection or cursor, such as one that is closed."""


class DatabaseError(Error):
    """An error of the database."""


class DataError(DatabaseError):
    """A value that cannot be computed, such as 1 / 0 of a row."""


class OperationalError(DatabaseError):
    """A transaction that cannot begin, go on or be committed."""


class IntegrityError(DatabaseError):
    """A row that a table refuses, such as one whose key is taken."""


class InternalError(DatabaseError):
    """A fault of the engine; nothing raises it on purpose."""


class ProgrammingError(DatabaseError):
    """A text that is no SQL, names something unknown, or has other parameters."""


class MethodNotSupportedError(DatabaseError):
    """A method of PEP 249 that this database does not have; its public name is that of PEP 249."""


NotSupportedError = MethodNotSupportedError
NotSupportedError.__name__ = NotSupportedError.__qualname__ = "NotSupportedError"


KINDS: tuple[tuple[type[Exception], type[DatabaseError]], ...] = (
    (PlanError, ProgrammingError),
    (TableError, IntegrityError),
    (TransactionError, OperationalError),
    (ReactiveError, DatabaseError),
    (ArithmeticError, DataError),
    (ValueError, DataError),
    (TypeError, DataError),
)
"""The exception that is raised for one of the engine, or of a callable: the first that fits."""


@contextmanager
def translated() -> Iterator[None]:
    """Raise what the block raises as an exception of PEP 249, with the same text."""
    try:
        yield
    except Error:
        raise
    except Exception as error:
        found = next((of for kind, of in KINDS if isinstance(error, kind)), None)
        if found is None:
            raise
        raise found(str(error)) from error


class TypeObject(frozenset[str]):
    """A type object of PEP 249: equals the names of its types, which `description` has.

    >>> TypeObject({"BIGINT", "DOUBLE"}) == "BIGINT", TypeObject({"DATE"}) == "BIGINT"
    (True, False)
    """

    def __eq__(self, other: object) -> bool:
        name = other.partition("(")[0] if isinstance(other, str) else other
        return name in self if isinstance(name, str) else super().__eq__(other)

    def __hash__(self) -> int:
        return super().__hash__()


STRING = TypeObject({"VARCHAR", "UUID"})
BINARY = TypeObject({"BLOB"})
NUMBER = TypeObject(
    {
        *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "DOUBLE", "DECIMAL"),
        *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
    }
)
DATETIME = TypeObject({"DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "INTERVAL"})
ROWID = TypeObject()
"""No column is one: rows have keys of their own."""

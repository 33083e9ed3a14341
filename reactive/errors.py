"""The errors of the engine; errors of making a query are in `optimizer.errors`.

An exception of the user's own code stays itself, and gets a note with the place that called it.
"""

from optimizer.errors import (
    DuplicateKeyError,
    PlanError,
    ReactiveError,
    StaleCaptureError,
    StaleCaptureWarning,
    StratificationError,
    UnboundedStateWarning,
)


class TableError(ReactiveError, LookupError):
    """A change that a table refuses, or a read of rows that it does not store.

    Refused are absent rows, duplicate keys, and rows that are unhashable or of the wrong type.
    """


class NoLength(TableError, TypeError):
    """The `TableError` of `len` for rows that are not stored.

    `list(rows)` calls `len` for a hint; it ignores a `TypeError` and iterates over the rows.
    """

    def __reduce__(self) -> tuple[type[TableError], tuple[object, ...]]:
        return TableError, self.args


class NoRows(PlanError, TypeError):
    """The `PlanError` of `len` and `bool` for a query; also a `TypeError`, see `NoLength`."""

    def __reduce__(self) -> tuple[type[PlanError], tuple[object, ...]]:
        return PlanError, self.args


NoRows.__name__ = NoRows.__qualname__ = PlanError.__name__
NoLength.__name__ = NoLength.__qualname__ = TableError.__name__


class MissingKeyError(TableError, KeyError):
    """`view[key]` for an absent group, or a table method for an absent key.

    The methods are `table[key]`, `delete`, `pop` and `update`; `key` is the absent key.
    """

    def __init__(self, message: str, key: object = None) -> None:
        super().__init__(message)
        self.key = key

    __str__ = Exception.__str__  # `KeyError` would put the message in quotes


class TransactionError(ReactiveError, RuntimeError):
    """A change at a time when changes are not possible."""


class ConflictError(TransactionError):
    """Another commit touched a row, or key, that this transaction also touches.

    The later of the two is rolled back, and may be repeated (`db.transaction(retry=3)`).
    """


class DurabilityError(TransactionError):
    """A store of durable tables cannot be opened, read or written.

    A commit that raises it is undone: no table and no view has changed. With
    `durability="group"` and `"exit"` it can also report that earlier commits are not in the store.
    """


class FixpointError(ReactiveError, RuntimeError):
    """A recursion that does not end; the commit that started it is rolled back."""


class ClosedError(ReactiveError, RuntimeError):
    """Use of a database, view or subscription after it was closed."""


class VerificationError(ReactiveError, AssertionError):
    """A view differs from its query evaluated from scratch."""


class SourceError(ReactiveError, RuntimeError):
    """A source that cannot run or continue, or that yields an object other than a batch."""


class OffloadError(ReactiveError, ValueError):
    """A part of a query that cannot run, or continue, on the offload backend."""


class TakenIn(OffloadError):
    """A callable raised on the offload backend, which has taken in (stored) the rows nevertheless.

    A later flush in which no callable raises corrects the result.
    """


__all__ = [
    "ClosedError",
    "ConflictError",
    "DurabilityError",
    "DuplicateKeyError",
    "FixpointError",
    "MissingKeyError",
    "OffloadError",
    "PlanError",
    "ReactiveError",
    "SourceError",
    "StaleCaptureError",
    "StaleCaptureWarning",
    "StratificationError",
    "TableError",
    "TransactionError",
    "UnboundedStateWarning",
    "VerificationError",
]

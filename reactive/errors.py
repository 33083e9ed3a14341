"""The errors of the engine; errors of making a query are in `optimizer.errors`.

A user's own exception stays itself. It gets a note that says where it was raised.
"""

from optimizer.errors import (
    DuplicateKeyError,
    PlanError,
    ReactiveError,
    StaleCaptureError,
    StaleCaptureWarning,
    StratificationError,
)


class TableError(ReactiveError, LookupError):
    """A change that the table refuses: an absent row, a duplicate key, a wrong or unhashable row;
    or a reading of rows that the table does not store."""


class NoLength(TableError, TypeError):
    """The `TableError` of `len` of rows that are not stored. `list(rows)` asks for their number
    beforehand, as a hint; of a `TypeError` it takes that there is none, and goes on to the rows."""

    def __reduce__(self) -> tuple[type[TableError], tuple[object, ...]]:
        return TableError, self.args


class NoRows(PlanError, TypeError):
    """The `PlanError` of `len` and `bool` of a query; a `TypeError` as `NoLength` is one."""

    def __reduce__(self) -> tuple[type[PlanError], tuple[object, ...]]:
        return PlanError, self.args


NoRows.__name__ = NoRows.__qualname__ = PlanError.__name__
NoLength.__name__ = NoLength.__qualname__ = TableError.__name__


class MissingKeyError(TableError, KeyError):
    """`view[key]` of a group that the view does not have, or `table[key]`, `delete`, `pop` and
    `update` of a key that no row has; `key` is the one that was asked for."""

    def __init__(self, message: str, key: object = None) -> None:
        super().__init__(message)
        self.key = key

    __str__ = Exception.__str__  # that of a `KeyError` puts its message in quotes


class TransactionError(ReactiveError, RuntimeError):
    """A change at a time when none can be made."""


class ConflictError(TransactionError):
    """Another commit has touched a row, or key, that a transaction of another task touches too: the
    later of the two is rolled back, and may be done again (`db.transaction(retry=3)`)."""


class DurabilityError(TransactionError):
    """A store of durable tables that cannot be opened, read or written. A commit of which it is
    raised is undone: no table and no view has changed. What is told of commits that were made
    before (`durability="group"`, `"exit"`) is that the store does not have them."""


class FixpointError(ReactiveError, RuntimeError):
    """A recursion that does not come to an end: the commit that set it off is rolled back."""


class ClosedError(ReactiveError, RuntimeError):
    """Use of a database, view or subscription after it was closed."""


class VerificationError(ReactiveError, AssertionError):
    """A view differs from its query evaluated from scratch."""


class SourceError(ReactiveError, RuntimeError):
    """A source that cannot be run, does not go on, or gives what is no batch."""


class OffloadError(ReactiveError, ValueError):
    """A part of a query that cannot run elsewhere, or cannot go on there."""


class TakenIn(OffloadError):
    """A callable raised elsewhere, where the rows have arrived: what comes next makes up for it."""


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
    "VerificationError",
]

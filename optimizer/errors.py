"""What can be wrong with a query, said when the relation is made."""


class ReactiveError(Exception):
    """Root of all errors that this library raises of its own."""


class PlanError(ReactiveError, ValueError):
    """The query cannot mean anything: a wrong callable, relation or aggregate in it."""


class StratificationError(PlanError):
    """A recursive relation depends on its own negation or aggregate, which has no meaning."""


class StaleCaptureWarning(UserWarning):
    """A variable that a query captured has changed since: the view keeps the old meaning."""


class StaleCaptureError(ReactiveError, RuntimeError):
    """The same as `StaleCaptureWarning`, of a `Database(strict=True)`: the commit is refused."""


class DuplicateKeyError(ReactiveError, ValueError):
    """Two rows of a query that gives a dictionary have the same key."""

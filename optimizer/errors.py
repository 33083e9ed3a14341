"""Errors of queries, raised when the relation is made."""


class ReactiveError(Exception):
    """Root of all errors that this library raises of its own."""


class PlanError(ReactiveError, ValueError):
    """The query has no meaning: it has a wrong callable, relation or aggregate."""


class StratificationError(PlanError):
    """A recursive relation depends on its own negation or aggregate, which has no meaning."""


class StaleCaptureWarning(UserWarning):
    """A captured variable of a query has changed since: the view keeps the old value."""


class UnboundedStateWarning(UserWarning):
    """The state of a query over streams grows with the events; `explain().bounded` says where."""


class StaleCaptureError(ReactiveError, RuntimeError):
    """A captured variable has changed in a `Database(strict=True)`: the commit is refused."""


class DuplicateKeyError(ReactiveError, ValueError):
    """Two rows of a query for a dictionary have the same key."""

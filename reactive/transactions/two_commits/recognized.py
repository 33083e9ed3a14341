"""What commits of what is given, told by where its class comes from.

    sqlalchemy          a session or a connection, asynchronous or not
    django, a string    a connection by its alias
    sqlite3, apsw       connections of SQLite, which begin in ways of their own
    others              `commit()` and `rollback()`

State:  none.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from optimizer.errors import PlanError
from reactive.transactions.two_commits import of_django, of_sqlalchemy
from reactive.transactions.two_commits.others import OfApsw, OfSqlite, Other, refused

MANY = (list, tuple, set, frozenset, dict)
KNOWN = frozenset({"sqlalchemy", "django", "apsw", "sqlite3", "aiosqlite"})
METHODS = ("commit", "rollback")


def other(given: Any) -> Other:
    """What is to be committed with the tables.

    Raises
    ------
    PlanError: it cannot be committed; or it is several.
    """
    if isinstance(given, MANY):
        raise PlanError(
            "commit_with takes one connection or session, not several: two databases commit one "
            "after the other, and the second may refuse when the first has committed\n"
            "  that takes a commit in two phases in each of them, which this does not do; write to "
            "one of them, and have the other follow it"
        )
    kind: type = type(given)
    root, names = _kind(kind)
    if root == "sqlalchemy":
        return of_sqlalchemy.other(given, names)
    if root == "django" or isinstance(given, str):
        return of_django.other(given)
    if root == "apsw" and "Connection" in names:
        return OfApsw(given)
    if isinstance(given, type) or not all(callable(getattr(given, n, None)) for n in METHODS):
        raise refused(given)
    return OfSqlite(given) if root in ("sqlite3", "aiosqlite") else Other(given)


@lru_cache(maxsize=64)
def _kind(given: type) -> tuple[str, frozenset[str]]:
    """The package that a class comes from, or is derived from; all its names."""
    classes = given.__mro__
    roots = [kind.__module__.partition(".")[0] for kind in classes]
    known = (root.removeprefix("_") for root in roots)
    found = next((root for root in known if root in KNOWN), roots[0])
    return found, frozenset(kind.__name__ for kind in classes)

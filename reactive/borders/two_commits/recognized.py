"""What commits of what is given, told by where its class comes from.

    sqlalchemy          a session or a connection, asynchronous or not
    django, a string    a connection by its alias
    sqlite3, apsw       connections of SQLite, which begin in ways of their own
    psycopg, psycopg2   connections of Postgres, which are kept from committing meanwhile
    others              `commit()` and `rollback()`

State:  none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from optimizer.errors import PlanError
from reactive.borders.two_commits import of_django, of_sqlalchemy
from reactive.borders.two_commits.others import OfApsw, OfSqlite, Other, refused

MANY = (list, tuple, set, frozenset, dict)
SQLITE = frozenset({"sqlite3", "aiosqlite"})
PSYCOPG = frozenset({"psycopg", "psycopg2"})
KNOWN = frozenset({"sqlalchemy", "django", "apsw", *SQLITE, *PSYCOPG})
METHODS = ("commit", "rollback")


def other(given: Any) -> Other:
    """What is to be committed with the tables.

    Raises
    ------
    PlanError: it cannot be committed; or it is several.
    """
    kind: Any = type(given)
    simple = _simple(kind)
    if simple is not None:
        return simple(given)
    if isinstance(given, MANY):
        raise PlanError(
            "commit_with takes one connection or session, not several: two databases commit one "
            "after the other, and the second may refuse when the first has committed\n"
            "  that takes a commit in two phases in each of them, which this does not do; write to "
            "one of them, and have the other follow it"
        )
    root, names = _kind(kind)
    if root == "sqlalchemy":
        return of_sqlalchemy.other(given, names)
    if root == "django" or isinstance(given, str):
        return of_django.other(given)
    if isinstance(given, type) or not all(callable(getattr(given, n, None)) for n in METHODS):
        raise refused(given)
    return Other(given)


@lru_cache(maxsize=64)
def _simple(kind: Any) -> Callable[[Any], Other] | None:
    """What is made of any object of a class, where nothing else is to be looked at."""
    if issubclass(kind, (*MANY, str, type)):
        return None
    root, names = _kind(kind)
    if root == "apsw" and "Connection" in names:
        return OfApsw
    if not all(callable(getattr(kind, name, None)) for name in METHODS):
        return None
    if root in PSYCOPG and names & {"BaseConnection", "connection"}:
        from reactive.borders.two_commits.of_psycopg import OfPsycopg

        return OfPsycopg
    return OfSqlite if root in SQLITE else None


@lru_cache(maxsize=64)
def _kind(given: type) -> tuple[str, frozenset[str]]:
    """The package that a class comes from, or is derived from; all its names."""
    classes = given.__mro__
    roots = [kind.__module__.partition(".")[0] for kind in classes]
    known = (root.removeprefix("_") for root in roots)
    found = next((root for root in known if root in KNOWN), roots[0])
    return found, frozenset(kind.__name__ for kind in classes)

"""Optional libraries: checks that name the missing one, and the driver of Postgres."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from optimizer.errors import PlanError

# Name the command that installs an optional library; the core imports none of them.

EXTRAS = {"pyarrow": "arrow", "narwhals": "frames", "numpy": "columns"}
"""The extra that installs a library; others are installed by their name."""
WHERE = "in the folder of reactive-collections"


def installing(extra: str) -> str:
    """Return the command that installs an extra. No release is in a package index yet.

    >>> installing("sql")
    "pip install '.[sql]'   (in the folder of reactive-collections)"
    """
    return f"pip install '.[{extra}]'   ({WHERE})"


def check_library(what: str, library: str = "pyarrow") -> None:
    """Raise if a library that `what` needs is not installed.

    >>> check_library("to_arrow", "no_such_library")
    Traceback (most recent call last):
    optimizer.errors.PlanError: to_arrow needs no_such_library, which is not installed
      pip install no_such_library
    """
    if find_spec(library) is None:
        extra = EXTRAS.get(library)
        command = f"pip install {library}" if extra is None else installing(extra)
        raise PlanError(f"{what} needs {library}, which is not installed\n  {command}")


# The driver of Postgres, and literals of its statements.


def driver() -> Any:
    """Return the module of the driver.

    Raises
    ------
    PlanError: it is not installed.
    """
    try:
        import psycopg2
        import psycopg2.extensions
        import psycopg2.extras
    except ImportError as error:
        raise PlanError(f"Postgres needs psycopg2\n  {installing('postgres')}") from error
    return psycopg2


def driver_dsn(dsn: str) -> str:
    """Return a DSN in the driver's form: SQLAlchemy's URLs name a driver beside the scheme.

    >>> driver_dsn("postgresql+psycopg2://ann@db/shop")
    'postgresql://ann@db/shop'
    """
    scheme, found, rest = dsn.partition("://")
    return f"{scheme.partition('+')[0]}{found}{rest}"


def sql_literal(text: str) -> str:
    """Return a text as a SQL literal."""
    return "'" + text.replace("'", "''") + "'"

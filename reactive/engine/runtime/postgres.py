"""The driver of Postgres, and how its statements are written; used where a server is talked to."""

from __future__ import annotations

from typing import Any

from optimizer.errors import PlanError
from reactive.engine.runtime.needs import installing


def driver() -> Any:
    """The module of the driver.

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


def plain(dsn: str) -> str:
    """A DSN as the driver takes it; SQLAlchemy's URLs name one beside the scheme.

    >>> plain("postgresql+psycopg2://ann@db/shop")
    'postgresql://ann@db/shop'
    """
    scheme, found, rest = dsn.partition("://")
    return f"{scheme.partition('+')[0]}{found}{rest}"


def literal(text: str) -> str:
    """A text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"

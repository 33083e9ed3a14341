"""Aggregates of the dialect "postgres" equal a Postgres server, with class and digits."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg2
import pytest

from reactive import Database
from tests.postgres_server import PostgresServer

COLUMNS = {
    "s": ("smallint", ["3", "-7", "null", "3"]),
    "i": ("integer", ["1", "2", "2", "2147483647"]),
    "b": ("bigint", ["9007199254740993", "null", "5", "0"]),
    "d": ("numeric(8,3)", ["1.250", "-3.000", "1.250", "null"]),
    "x": ("double precision", ["2.5e0", "1e0", "null", "0.25e0"]),
    "n": ("integer", ["null", "null", "null", "null"]),
}
AGGREGATES = (
    *("sum({})", "avg({})", "min({})", "count({})", "sum(distinct {})", "avg(distinct {})"),
    *("stddev({})", "stddev_pop({})", "variance({})", "var_pop({})", "var_samp(distinct {})"),
    *("avg({}) filter (where g = 1)", "sum({}) filter (where g > 9)"),
)
PLACES = {
    "all": "select {} from t",
    "groups": "select g, {} from t group by g",
    "frame": "select id, {} over (order by id rows 1 preceding) from t",
    "partition": "select id, {} over (partition by g) from t",
}


@pytest.fixture(scope="module")
def tables(postgres: PostgresServer) -> Iterator[tuple[Database, Any]]:
    connection = psycopg2.connect(postgres.new_database())
    connection.autocommit = True
    cursor, db = connection.cursor(), Database(dialect="postgres")
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
    rows = zip(*(values for _, values in COLUMNS.values()), strict=True)
    cells = ", ".join(f"({n}, {n % 2}, {', '.join(row)})" for n, row in enumerate(rows))
    for text in (f"create table t (id int, g int, {columns})", f"insert into t values {cells}"):
        cursor.execute(text)
        db.execute(text)
    yield db, cursor
    connection.close()


def shown(value: Any) -> tuple[str, str]:
    """Write a value with its class and digits; the last ones of a float may differ."""
    if isinstance(value, float):
        return "float", f"{value:.13g}"
    return type(value).__name__, f"{value:f}" if isinstance(value, Decimal) else str(value)


@pytest.mark.long
@pytest.mark.parametrize("place", PLACES)
def test_aggregates_are_what_postgres_gives(place: str, tables: tuple[Database, Any]) -> None:
    db, cursor = tables
    wrong = []
    for column in COLUMNS:
        for aggregate in AGGREGATES:
            if "distinct" in aggregate and place in ("frame", "partition"):
                continue  # Postgres has none in windows
            call = aggregate.format(column)
            text = PLACES[place].format(call)
            cursor.execute(text)
            wanted = sorted(tuple(map(shown, row)) for row in cursor.fetchall())
            view = db.sql(text).materialize()
            found = sorted(tuple(map(shown, row)) for row in view)
            view.close()
            if found != wanted:
                wrong.append(f"{text}\n    {found}\n    {wanted}")
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong[:20])

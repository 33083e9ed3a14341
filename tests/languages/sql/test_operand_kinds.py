"""Operators of SQL by the kinds of their operands, as DuckDB has them.

operator x kind x kind   -->   DuckDB computes: so is the view
                               its binder refuses: a PlanError when the query is made
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import product
from typing import Any, Literal

import pytest

from reactive import Database, PlanError

COLUMNS: dict[str, tuple[str, str]] = {
    "i": ("integer", "3"),
    "f": ("double", "2.5"),
    "x": ("varchar", "'x'"),
    "b": ("boolean", "true"),
    "d": ("date", "date '2024-01-31'"),
    "t": ("timestamp", "timestamp '2024-01-31 10:00:00'"),
    "c": ("time", "time '10:00:00'"),
    "v": ("interval", "interval '1' day"),
    "a": ("integer[]", "[1, 2]"),
    "m": ("decimal(10, 2)", "1.50"),
    "y": ("blob", "'ab'::blob"),
    "s": ("struct(a integer)", "{'a': 1}"),
}
UNARY = ("-", "not ", "~")
BINARY = (
    *("+", "-", "*", "/", "%", "//", "^", "**", "||", "&", "|", "<<", ">>"),
    *("=", "<>", "<", "<=", ">", ">=", "is distinct from", "and", "or"),
    *("like", "not like", "ilike", "similar to"),
)
Outcome = tuple[Literal["value", "error row", "refused"], str]


def texts(operator: str) -> Iterator[str]:
    if operator in UNARY:
        yield from (f"{operator}{column}" for column in COLUMNS)
    else:
        yield from (f"({one}) {operator} ({other})" for one, other in product(COLUMNS, repeat=2))


def shown(value: Any) -> str:
    return repr(tuple(value) if isinstance(value, list) else value)


def views(db: Database, operator: str) -> dict[str, Any]:
    """Return the view of each text, or None if it is refused when it is made."""
    made: dict[str, Any] = {}
    for text in texts(operator):
        try:
            made[text] = db.sql(f"select {text} as value from t").materialize()
        except PlanError:
            made[text] = None
    return made


@pytest.mark.sampled
@pytest.mark.parametrize("operator", [*UNARY, *BINARY])
def test_operators_take_the_kinds_that_duckdb_takes(operator: str) -> None:
    duckdb: Any = pytest.importorskip("duckdb")
    engine, db = duckdb.connect(), Database()
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
    values = ", ".join(value for _, value in COLUMNS.values())
    for each in (engine, db):
        each.execute(f"create table t ({columns})")
    found = views(db, operator)
    for each in (engine, db):
        each.execute(f"insert into t values ({values})")  # no view stops the writer

    def expected(text: str) -> Outcome:
        try:
            return "value", shown(engine.execute(f"select {text} from t").fetchone()[0])
        except duckdb.BinderException:
            return "refused", ""
        except duckdb.Error:
            return "error row", ""

    def outcome(view: Any) -> Outcome:
        if view is None:
            return "refused", ""
        return ("error row", "") if view.errors else ("value", shown(next(iter(view)).value))

    for text, view in found.items():
        is_one = expected(text)
        told = outcome(view)
        is_earlier = (told[0], is_one[0]) == ("refused", "error row")
        is_spared = operator in ("and", "or") and is_one[0] == "error row"  # not evaluated
        assert told == is_one or is_earlier or is_spared, text


def test_a_text_that_is_written_out_is_of_any_kind() -> None:
    db = Database()
    db.execute("create table t (i integer)")
    view = db.sql("select i << '1' as value from t").materialize()
    db.execute("insert into t values (4)")
    assert [row.value for row in view] == [8]
    with pytest.raises(PlanError, match="there is no LIKE for INTEGER and VARCHAR"):
        db.sql("select i like '4%' from t")


@pytest.mark.parametrize("operator", [*UNARY[:2], "+", "-", "*", "/", "%", "||", "&", "<", "like"])
def test_operators_of_sqlite_take_all_kinds(operator: str) -> None:
    """SQLite makes numbers and texts of operands, whatever they are."""
    engine, db = sqlite3.connect(":memory:"), Database(dialect="sqlite")
    for each in (engine, db):
        each.execute("create table t (i integer, f real, x text)")
    three = ("i", "f", "x")
    both = [f"({one}) {operator} ({other})" for one in three for other in three]
    found = [f"{operator}{each}" for each in three] if operator in UNARY else both
    made = {text: db.sql(f"select {text} as value from t").materialize() for text in found}
    for each in (engine, db):
        each.execute("insert into t values (3, 2.5, 'x')")
    for text, view in made.items():
        (value,) = engine.execute(f"select {text} from t").fetchone()
        assert not view.errors and [row.value for row in view] == [value], text

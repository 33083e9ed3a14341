"""Windows with an order after loads, single changes and batches have the results of DuckDB."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from reactive import Database
from tests.budget import seeds
from tests.languages.sql.oracles import DuckDB

COLUMNS = "id integer primary key, g integer, n integer, x double, s varchar"
ORDERS = (
    *(
        "n",
        "n desc",
        "n nulls first",
        "n desc nulls last",
        "x",
        "x desc",
        "s",
        "s desc nulls first",
    ),
    *("id desc", "n, s desc", "g desc nulls first, x"),
)
FRAMES = (
    *(
        "",
        "",
        "rows between 2 preceding and current row",
        "rows between 1 preceding and 2 following",
    ),
    *("rows between current row and unbounded following", "rows unbounded preceding"),
    *("range between unbounded preceding and current row", "range current row"),
    "rows between 3 following and 5 following",
)
PEERS = ("rank()", "dense_rank()", "percent_rank()", "cume_dist()")
PLACES = ("row_number()", "ntile(3)", "lag(n)", "lead(s, 2, 'none')", "lag(x, -1)", "lag(n, 3)")
FOLDS = ("sum(n)", "count(n)", "count(*)", "avg(n)", "min(s)", "max(n)", "min(x)", "sum(x)")
VALUES = ("first_value(n)", "last_value(s)", "nth_value(n, 2)")
Row = tuple[Any, ...]


def drawn_windows(random: Random) -> str:
    """Return some columns with windows; the order is total where ties would be told apart."""
    found = []
    for number in range(random.choice([1, 1, 2, 3])):
        order, frame = random.choice(ORDERS), random.choice(FRAMES)
        calls = random.choice([PEERS, PLACES, FOLDS, VALUES])
        if calls is PEERS:
            frame = ""
        elif calls is PLACES or frame.startswith("rows") or calls is VALUES:
            order = order if order.startswith("id") else f"{order}, id"
            frame = "" if calls is PLACES else frame
        by = random.choice(["", "partition by g ", "partition by g, n "])
        found.append(f"{random.choice(calls)} over ({by}order by {order} {frame}) as w{number}")
    return ", ".join(found)


def drawn_row(random: Random, key: int, groups: int) -> Row:
    number = random.choice([None, random.randrange(12), random.randrange(1000)])
    real = random.choice([None, float(random.randrange(9)), 0.5])
    text = random.choice([None, "a", "b", "", "ab"])
    return (key, random.choice([None, *range(groups)]), number, real, text)


def assert_equal(view: Any, engine: DuckDB, text: str) -> None:
    mine = sorted(map(_with_classes, view), key=repr)
    assert mine == sorted(map(_with_classes, engine.ask(text)), key=repr), text


def _with_classes(row: Any) -> Row:
    """Return the values, rounded, with their classes: 1, 1.0 and True are equal in Python."""
    rounded = (round(value, 9) if isinstance(value, float) else value for value in tuple(row))
    return tuple((type(value), value) for value in rounded)


@pytest.mark.parametrize("seed", seeds(96, 8))
def test_windows_are_those_of_duckdb_after_each_commit(seed: int) -> None:
    random = Random(seed)
    engine, db = DuckDB(), Database()
    engine.run(f"create table t ({COLUMNS})")
    db.execute(f"create table t ({COLUMNS})")
    text = f"select id, s, {drawn_windows(random)} from t"
    if random.random() < 0.3:
        text += f" qualify row_number() over (order by {random.choice(ORDERS)}, id) <= 4"
    view = db.sql(text).materialize()
    held: dict[int, Row] = {}
    for size in (random.choice([3, 60, 700]), *random.choices([1, 1, 2, 12, 40], k=6)):
        change(random, db, engine, held, size)
        assert_equal(view, engine, text)
    view.verify()
    assert_equal(db.sql(text).materialize(), engine, text)


def change(random: Random, db: Database, engine: DuckDB, held: dict[int, Row], size: int) -> None:
    """Replace, delete and insert rows in one commit, here and in DuckDB."""
    table: Any = next(iter(db.tables()))
    made, groups = table.plan.row_type, random.choice([1, 3])
    gone = random.sample(sorted(held), min(len(held), random.choice([0, size, size // 2])))
    again = [key for key in gone if random.random() < 0.6]
    fresh = range(1000 + max(held, default=0), 1000 + max(held, default=0) + size)
    rows = [drawn_row(random, key, groups) for key in (*again, *fresh)]
    with db.transaction():
        table.remove_all([made(*held[key]) for key in gone])
        table.add_all([made(*row) for row in rows])
    if gone:
        engine.run(f"delete from t where id in ({', '.join(map(str, gone))})")
    values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
    engine.run(f"insert into t values {values}")
    for key in gone:
        del held[key]
    held.update({row[0]: row for row in rows})


def _literal(value: Any) -> str:
    return "null" if value is None else repr(value)

"""Items of FROM that read what precedes them, joined on a condition; and their places."""

from __future__ import annotations

from random import Random
from typing import Any

import duckdb
import pytest

from reactive import Database, PlanError
from tests.budget import seeds

TABLES = [
    "create table t (a int primary key, n int, l int[])",
    "create table s (k int primary key, v int)",
]
QUERIES = [
    "select * from t left join lateral unnest(l) as u(v) on u.v > 1",
    "select * from t left join lateral unnest(t.l) as u(v) on u.v < t.n and u.v > 1",
    "select * from t left join lateral unnest(t.l) as u(v) on false",
    "select * from t join lateral unnest(t.l) as u(v) on u.v < t.n",
    "select * from t left join unnest(t.l) as u(v) on v > 2",
    "select t.a, u, o from t, unnest(l) with ordinality as x(u, o)",
    "select * from t left join unnest(l) with ordinality as x(u, o) on o > 1 and u is not null",
    "select * from t cross join lateral unnest(l) with ordinality as x(u, o) where o = 1",
    "select * from t left join lateral (select s.v from s where s.k = t.a) q on q.v > 1",
    "select * from t join lateral (select s.v, s.k from s where s.k >= t.a) q on q.v > t.a",
    "select * from t left join lateral (select s.v as w from s where s.k < t.a) q(z) on q.z > t.n",
    "select * from t left join lateral (select max(s.v) from s where s.k < t.a) q(z) on z > 1",
    "select * from t left join lateral generate_series(1, t.a) as g(i) on i > 2",
    "select t.a, x.u, s.v from t join lateral unnest(l) as x(u) on true left join s on s.k = x.u",
    "select * from generate_series(1, 3) with ordinality as g(s, o)",
    "select * from unnest(array[3, 4]) with ordinality as u(v, o)",
]


def plain(rows: Any) -> list[str]:
    """Return rows as sorted texts, lists and tuples alike."""
    return sorted(str([list(x) if isinstance(x, list | tuple) else x for x in row]) for row in rows)


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize("seed", seeds(12))
def test_rows_are_those_of_duckdb(dialect: Any, seed: int) -> None:
    rnd = Random(seed)
    db, other = Database(dialect=dialect), duckdb.connect()
    for text in TABLES:
        db.execute(text)
        other.execute(text)
    views = [db.sql(query).materialize() for query in QUERIES]
    for _ in range(14):
        table, number = rnd.choice("tts"), rnd.randrange(5)
        few = ["null", *map(str, range(5))]
        texts = [f"delete from {table} where {'a' if table == 't' else 'k'} = {number}"]
        if rnd.random() < 0.8:
            items = ", ".join(rnd.choices(few, k=rnd.randrange(4)))
            array = rnd.choice(["null", f"array[{items}]::int[]"])
            more = f", {array}" if table == "t" else ""
            texts.append(f"insert into {table} values ({number}, {rnd.choice(few)}{more})")
        for text in texts:
            db.execute(text)
            other.execute(text)
        for query, view in zip(QUERIES, views, strict=True):
            assert plain(view) == plain(other.execute(query).fetchall()), query
    db.verify()
    other.close()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("t full join lateral (select s.v from s where s.k = t.a) q on v > 1", "FULL"),
        ("t right join lateral (select s.v from s where s.k = t.a) q on true", "RIGHT"),
        ("t natural join lateral (select s.k as a from s where s.k > t.a) q", "NATURAL"),
        ("t join lateral (select s.k as a from s where s.k > t.a) q using (a)", "USING"),
        ("t semi join lateral (select s.v from s where s.k = t.a) q on true", "SEMI"),
        ("t anti join (select s.v from s where s.k = t.a) q on true", "ANTI"),
        ("t full join unnest([1]) u(x) on true", "FULL"),
        ("t right join generate_series(1, 2) u(x) on true", "RIGHT"),
        ("t natural join generate_series(1, 2) u(a)", "NATURAL"),
        ("t anti join unnest([1]) u(x) on true", "ANTI"),
    ],
)
def test_what_reads_the_rows_before_it_is_joined_by_on(text: str, told: str) -> None:
    db = Database()
    for made in TABLES:
        db.execute(made)
    with pytest.raises(PlanError, match=f"cannot be joined by {told}"):
        db.sql(f"select * from {text}")

"""ASOF JOIN in SQL beside DuckDB."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import dataclass

import pytest

from reactive import Database, PlanError
from tests.budget import SEED

duckdb = pytest.importorskip("duckdb", reason="DuckDB, the oracle, is an extra")


@dataclass(frozen=True)
class Trade:
    id: int
    k: str | None
    tm: int | None


@dataclass(frozen=True)
class Quote:
    qid: int
    k: str | None
    tm: int | None


TEXTS = [
    f"select t.id, q.qid from ts t asof {half} join qs q on t.k = q.k and {one} {symbol} {other}"
    for half in ("", "left")
    for symbol in (">=", ">", "<=", "<")
    for one, other in (("t.tm", "q.tm"), ("q.tm", "t.tm"))
] + [
    "select id, qid, tm, k from ts asof join qs using (k, tm)",
    "select id, qid, tm from ts t asof left join qs q using (tm) where id > 300",
    "select t.id, count(q.qid) from ts t asof left join qs q on (t.tm + 1 >= q.tm and q.k = t.k) "
    "group by t.id",
    "select t.id, q.qid, o.id from ts t asof join qs q on t.k = q.k and t.tm >= q.tm "
    "join ts o on o.tm = q.tm",
    "select t.id, q.qid from (select id, tm from ts where id > 50) t asof join "
    "(select qid, tm * 2 as tm from qs) q on t.tm > q.tm",
]


@pytest.mark.parametrize("text", TEXTS)
def test_histories_agree_with_duckdb(text: str) -> None:
    """Quotes have different times: of several DuckDB takes any."""
    rnd, db = random.Random(f"{text} {SEED}"), Database()
    trades, quotes = db.table(Trade, name="ts"), db.table(Quote, name="qs")
    view = db.sql(text).materialize()
    with duckdb.connect() as other:
        other.execute("create table ts(id int, k text, tm int)")
        other.execute("create table qs(qid int, k text, tm int)")
        for number in range(25):
            key, time = rnd.choice(["a", "b", None]), rnd.choice([None, *range(20)])
            trade = Trade(rnd.randrange(1_000), key, rnd.choice([None, *range(20)]))
            trades.add(trade)
            other.execute("insert into ts values (?, ?, ?)", [trade.id, trade.k, trade.tm])
            if time not in {quote.tm for quote in quotes}:
                quotes.add(Quote(number, key, time))
                other.execute("insert into qs values (?, ?, ?)", [number, key, time])
            elif len(quotes) > 3:
                gone = rnd.choice(sorted(quotes, key=lambda q: q.qid))
                quotes.remove(gone)
                other.execute("delete from qs where qid = ?", [gone.qid])
            found = sorted(map(tuple, view), key=repr)
            assert found == sorted(other.execute(text).fetchall(), key=repr)
        view.verify()


def test_match_condition_is_the_inequality() -> None:
    """Snowflake's spelling; the words stay a name elsewhere."""
    rnd, db = random.Random(SEED), Database()
    trades, quotes = db.table(Trade, name="ts"), db.table(Quote, name="qs")
    trades.add_all(Trade(n, rnd.choice("ab"), rnd.randrange(20)) for n in range(30))
    quotes.add_all(Quote(n, rnd.choice("ab"), n) for n in range(20))
    for half, symbol in itertools.product(("", "left"), (">=", ">", "<=", "<")):
        start, test = f"select t.id, q.qid from ts t asof {half} join qs q", f"t.tm {symbol} q.tm"
        plain = db.sql(f"{start} on t.k = q.k and {test}").materialize()
        assert len(plain) > 10
        for on in ("on t.k = q.k", "using (k)"):
            other = db.sql(f"{start} match_condition ({test}) {on}").materialize()
            assert Counter(other) == Counter(plain)
    db.execute("create table names (match_condition int)")
    db.execute("insert into names values (3)")
    assert db.sql("select match_condition from names where match_condition > 2").first() == (3,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "from ts asof join qs match_condition (ts.tm >= qs.tm) on ts.tm > qs.tm",
            "one inequality, and got 2",
        ),
        ("from ts join qs match_condition (ts.tm >= qs.tm)", "MATCH CONDITION is not supported"),
        ("from ts asof join qs on ts.k = qs.k", "one inequality, and got 0"),
        ("from ts asof join qs on ts.tm >= qs.tm and ts.k > qs.k", "one inequality, and got 2"),
        ("from ts asof right join qs on ts.tm >= qs.tm", "ASOF RIGHT JOIN is not supported"),
        ("from ts asof join qs on ts.tm >= 3", "ASOF JOIN cannot be on ts.tm >= 3"),
        ("from ts asof join qs on ts.tm >= qs.tm or ts.k = qs.k", "other conditions go to WHERE"),
        ("from ts positional join qs", "POSITIONAL JOIN is not supported"),
    ],
)
def test_what_is_no_asof_join_is_refused(text: str, message: str) -> None:
    db = Database()
    db.table(Trade, name="ts")
    db.table(Quote, name="qs")
    with pytest.raises(PlanError, match=message):
        db.sql(f"select * {text}")


def test_other_dialects_have_none() -> None:
    db = Database()
    db.table(Trade, name="ts")
    db.table(Quote, name="qs")
    with pytest.raises(PlanError, match="postgres"):
        db.sql("select ts.id from ts asof join qs on ts.tm >= qs.tm", dialect="postgres")

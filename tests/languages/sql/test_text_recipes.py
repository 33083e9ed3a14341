"""A text that is read again with other values gets the plan that its translation has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.plans.substitution import RECIPE
from reactive import Database
from reactive.api.internal_interface import engine_of
from reactive.languages.sql.entry import _translate_query
from tests.counted_calls import calls_of


@dataclass(frozen=True)
class Sale:
    id: int
    town: str
    amount: int
    price: float
    day: date


TEXTS = {
    "an equation": "select id, amount from sales where amount = :a",
    "two values": "select id from sales where amount > :a and id < :b",
    "a literal beside": "select id from sales where amount > :a and id <> 3",
    "groups": "select town, sum(amount) as s from sales where id > :a group by town",
    "having": "select town, sum(amount) as s from sales group by town having sum(amount) > :a",
    "a join": "select s.id, t.id as o from sales s join sales t on s.id = t.amount where s.id < :a",
    "an outer join": "select s.id, t.id as o from sales s left join sales t on s.id = t.id + :a",
    "a value of a row": "select id, :a as given from sales",
    "arithmetic": "select id, amount + :a as more from sales",
    "a quotient": "select id, price / amount as q from sales where id > :a",
    "order": "select id from sales where amount > :a order by id",
    "limit": "select id from sales order by id limit :a",
    "exists": "select id from sales s where exists (select 1 from sales t where t.id > s.id + :a)",
    "a scalar query": "select id from sales where amount > (select :a + min(amount) from sales)",
    "in": "select id from sales where amount in (:a, :b)",
    "between": "select id from sales where amount between :a and :b",
    "with": "with t as (select * from sales where amount > :a) select id from t where id > :b",
    "union": "select id from sales where id = :a union select amount from sales",
    "a window": "select id, sum(amount) over (partition by town) as s from sales where id > :a",
    "a function": "select id, abs(amount - :a) as d from sales",
    "a case": "select case when amount > :a then :b else id end as c from sales",
    "twice": "select id from sales where amount > :a and id > :a",
    "distinct": "select distinct town from sales where amount > :a",
    "a text": "select id from sales where town = :t",
    "like": "select id from sales where town like :t",
    "a concatenation": "select town || :t as x from sales",
    "a day": "select id from sales where day > :d",
    "a day later": "select id from sales where day > :d + interval 1 day",
}
INTEGERS = (1, 2, 3, 0, 7, -1, 10**20)
OTHERS: tuple[Any, ...] = (2.5, float("nan"), None, True, Decimal("1.5"), "2")


def _values(text: str) -> list[dict[str, Any]]:
    """Return values for the names of a text: of the class that it is meant for, then others."""
    found: dict[str, tuple[Any, ...]] = {}
    for name in "ab":
        if f":{name}" in text:
            found[name] = INTEGERS if name == "a" else (5, 3, 2, 0)
    if ":t" in text:
        found["t"] = ("x", "y", "%", "", "it's")
    if ":d" in text:
        found["d"] = tuple(date(2024, 1, 1) + timedelta(days=n) for n in range(4))
    named = [dict(zip(found, each, strict=True)) for each in product(*found.values())]
    odd = [dict.fromkeys(found, value) for value in OTHERS]
    return [*named[:6], *odd, *odd, *named[6:10], {n: datetime(2024, 1, 2) for n in found}]


def _sales() -> Database:
    db = Database()
    rows = db.table(Sale, key=lambda s: s.id, name="sales")
    rows.add_all(
        [Sale(n, "xy"[n % 2], n % 4, n / 2, date(2024, 1, 1) + timedelta(n)) for n in range(9)]
    )
    return db


def _outcome(run: Callable[[], Any]) -> Any:
    try:
        return run()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", TEXTS)
def test_a_query_by_a_recipe_is_the_query_of_its_translation(name: str) -> None:
    db, text = _sales(), TEXTS[name]
    for values in _values(text):
        found = _outcome(lambda values=values: db.sql(text, **values).plan)  # type: ignore[misc]
        plain = _outcome(
            lambda values=values: _translate_query(engine_of(db), text, values)[0]  # type: ignore[misc]
        )
        if isinstance(plain, tuple) or RECIPE in found.known:
            assert found == plain
        if not isinstance(plain, tuple):
            view = db.sql(text, **values).materialize()
            view.verify()
            alone = _sales().sql(text, **values).materialize()
            rows, others = (sorted(map(str, v.zset().items())) for v in (view, alone))
            assert rows == others and len(view.errors) == len(alone.errors)
            view.close()


@pytest.mark.parametrize("name", ["an equation", "two values", "groups", "a join", "order"])
def test_most_texts_have_recipes(name: str) -> None:
    db = _sales()
    made = [db.sql(TEXTS[name], **{n: 20 + k for k, n in enumerate(_values(TEXTS[name])[0], i)})
            for i in range(3)]  # fmt: skip
    assert RECIPE not in made[0].plan.known and RECIPE in made[2].plan.known


@pytest.mark.parametrize("policy", ["drop", "null"])
@pytest.mark.parametrize(
    "text",
    [
        "select id, 10 / amount as q from sales where id > :a",
        "select town, sum(10 / amount) as s from sales where id > :a group by town",
        "select id from sales where 10 / amount > :a",
    ],
)
def test_errors_name_the_operator_and_its_value(policy: Any, text: str) -> None:
    def errors(db: Database, a: int) -> list[str]:
        view = db.sql(text, a=a).materialize(on_error=policy)
        view.verify()
        return sorted(map(str, view.errors))

    db = _sales()
    assert [errors(db, a) for a in range(4)] == [errors(_sales(), a) for a in range(4)]


def test_a_name_may_mean_another_table_or_a_view_later() -> None:
    db = _sales()
    text = "select id from sales where amount = :a"
    for a in range(3):
        db.sql(text, a=a)
    db.execute("drop table sales")
    with pytest.raises(Exception, match="there is no table"):
        db.sql(text, a=1)
    db.execute("create table sales (id int primary key, amount text)")
    db.execute("insert into sales values (1, 'one')")
    assert len(db.sql(text, a="one").materialize()) == 1
    for name in ("one", "two", "three"):
        db.sql(text, a=name)
    db.execute("create table others (id int primary key, amount text)")
    db.execute("drop table sales")
    db.execute("create view sales as select id + 1 as id, amount from others")
    db.execute("insert into others values (1, 'two')")
    assert [row.id for row in db.sql(text, a="two").materialize()] == [2]


@given(st.lists(st.tuples(st.sampled_from(INTEGERS), st.integers(0, 5)), min_size=3, max_size=8))
def test_views_by_recipes_follow_changes(given: list[tuple[int, int]]) -> None:
    db = _sales()
    (table,) = engine_of(db).tables.values()
    text = TEXTS["groups"]
    views = [(a, db.sql(text, a=a).materialize()) for a, _ in given]
    for a, number in given:
        row = next((r for r in table if r.id == number), None)
        if row is not None:
            table.remove(row)
        table.upsert(Sale(100 + a % 50, "z", number, 1.0, date(2024, 2, 1)))
        for _, view in views:
            view.verify()


def test_one_more_query_of_a_text_takes_few_calls() -> None:
    db = _sales()
    text = TEXTS["groups"]
    for a in range(3):
        db.sql(text, a=a)
    assert calls_of(lambda: db.sql(text, a=10)) < 200  # 6,400 by translation

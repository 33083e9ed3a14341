"""FOR SYSTEM_TIME AS OF beside a list of the pairs that were made at each commit."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from reactive import Database, PlanError
from tests.budget import SEED
from tests.engine.operators.test_moved_bounds import touched_by


@dataclass(frozen=True)
class Sale:
    item: str | None
    at: int
    pieces: int


@dataclass(frozen=True)
class Price:
    item: str | None
    euros: int


@dataclass(frozen=True)
class Tax:
    least: int
    percent: int


AS_OF = "for system_time as of"
INNER = f"select at, pieces, euros from sales s join prices {AS_OF} proctime() p on s.item = p.item"
FORMS = {
    "inner": INNER,
    "now": INNER.replace("proctime()", "now()"),
    "current_timestamp": INNER.replace("proctime()", "current_timestamp"),
    "column": INNER.replace("proctime()", "s.proc_time").replace(" p on", " as p on"),
    "reversed": INNER.replace("s.item = p.item", "p.item = s.item"),
    "using": INNER.replace("on s.item = p.item", "using (item)"),
    "left": INNER.replace(" join ", " left join "),
    "conditions": INNER + " and euros > 3 and s.pieces < p.euros",
    "where": INNER + " where euros > 3 and pieces < euros",
    "filtered events": INNER.replace("sales s", "(select * from sales where pieces > 2) s"),
    "count": f"select euros, count(*) from ({INNER}) group by euros",
}


def pairs_of(form: str, sale: Sale, prices: list[Price]) -> list[tuple[Any, ...]]:
    """Return the rows that an event makes with the prices of its commit."""
    found = [p.euros for p in prices if p.item == sale.item and p.item is not None]
    if form in ("conditions", "where"):
        found = [euros for euros in found if euros > 3 and sale.pieces < euros]
    if form == "filtered events" and sale.pieces <= 2:
        return []
    rows: list[Any] = [*found] or ([None] if form == "left" else [])
    return [(sale.at, sale.pieces, euros) for euros in rows]


def drawn_price(rnd: random.Random) -> Price:
    return Price(rnd.choice(["tea", "rum", None]), rnd.randrange(8))


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "sqlite"])
@pytest.mark.parametrize("form", FORMS)
def test_histories_agree_with_the_pairs_of_each_commit(form: str, dialect: Any) -> None:
    """Rows come twice, go and change, in the commits of events and in others."""
    rnd, db = random.Random(f"{form} {dialect} {SEED}"), Database(dialect=dialect)
    prices = db.table(Price, name="prices")
    sales = db.stream(Sale, at="at", lateness=5, name="sales")
    view = db.sql(FORMS[form]).materialize()
    errors = view.errors
    held: list[Price] = []
    model: Counter[tuple[Any, ...]] = Counter()
    newest: int | None = None
    for _ in range(60):
        kind = rnd.randrange(3)
        new = [
            Sale(rnd.choice(["tea", "rum", "gin", None]), (newest or 0) + rnd.randrange(-7, 4), n)
            for n in range(rnd.randrange(4) if kind else 0)
        ]
        gone = rnd.choice(held) if held and rnd.random() < 0.4 else None
        come = [drawn_price(rnd) for _ in range(rnd.randrange(3) if kind != 1 else 0)]
        with db.transaction():
            if gone is not None:
                prices.remove(gone)
                held.remove(gone)
            prices.add_all(come)
            sales.add_all(new)
        held += come
        in_time = [sale for sale in new if newest is None or sale.at >= newest - 5]
        for sale in in_time:
            model.update(pairs_of(form, sale, held))
        times = [*(sale.at for sale in in_time), *([] if newest is None else [newest])]
        newest = max(times, default=None)
        expected = model
        if form == "count":
            expected = Counter()
            for (*_, euros), count in model.items():
                expected[euros] += count
            expected = Counter(expected.items())
        assert Counter(map(tuple, view)) == expected
        assert not errors


def test_look_ups_chain_and_late_events_make_no_pairs() -> None:
    db = Database()
    prices, taxes = db.table(Price, name="prices"), db.table(Tax, name="taxes")
    sales = db.stream(Sale, at="at", lateness=0, name="sales")
    view = db.sql(
        f"""select s.at, p.euros, t.percent from sales s
        join prices {AS_OF} proctime() p on s.item = p.item
        left join taxes {AS_OF} proctime() t on t.least = p.euros"""
    ).materialize()
    prices.add(Price("tea", 3))
    sales.add(Sale("tea", 10, 1))
    taxes.add(Tax(3, 19))
    sales.add_all([Sale("tea", 9, 1), Sale("tea", 11, 1)])
    prices.remove(Price("tea", 3))
    assert sorted(view, key=lambda row: row.at) == [(10, 3, None), (11, 3, 19)]


def test_a_price_that_changes_touches_no_event() -> None:
    db = Database()
    prices = db.table(Price, name="prices")
    sales = db.stream(Sale, at="at", lateness=0, name="sales")
    view = db.sql(INNER).materialize()
    prices.add(Price("tea", 3))
    sales.add_all(Sale("tea", n, n) for n in range(1_000))
    assert len(view) == 1_000
    touched = touched_by(view, lambda: prices.replace_where(lambda p: p.item == "tea", []))
    assert touched <= 4
    assert len(view) == 1_000


REFUSED = {
    f"select * from prices s join sales {AS_OF} proctime() p on s.item = p.item": (
        "rows of the left side may be removed(.|\n)*db.stream"
    ),
    INNER.replace("proctime()", "s.at"): "rows of the past are not kept(.|\n)*PROCTIME",
    INNER.replace("proctime()", "proctime(3)"): "rows of the past are not kept",
    INNER.replace("proctime()", "o.proctime"): "the left side has no table 'o'",
    INNER.replace("as of proctime()", "from 1 to 2"): "rows of the past are not kept",
    INNER.replace("system_time", "version"): "rows of the past are not kept",
    INNER.replace(" join ", " right join "): "RIGHT JOIN has no FOR SYSTEM_TIME",
    INNER.replace(" join ", " full join "): "FULL JOIN has no FOR SYSTEM_TIME",
    INNER.replace(" join ", " semi join "): "SEMI JOIN has no FOR SYSTEM_TIME",
    INNER.replace("s.item = p.item", "s.at > p.euros"): "no equation of both sides",
    INNER.replace(" join ", " left join ") + " and euros > 3": "ON equations of both sides",
    f"select * from prices {AS_OF} proctime()": "of the right side of a join",
    INNER.replace(" join ", " asof join ") + " and s.at > p.euros": "of the right side of a join",
}


@pytest.mark.parametrize("text", REFUSED)
def test_other_forms_are_refused(text: str) -> None:
    db = Database()
    db.table(Price, name="prices")
    db.stream(Sale, at="at", lateness=0, name="sales")
    with pytest.raises(PlanError, match=REFUSED[text]) as error:
        db.sql(text)
    assert "line 1" in str(error.value)

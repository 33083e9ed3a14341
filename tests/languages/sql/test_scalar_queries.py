"""Values of aggregates in correlated queries: a left join with the groups, whatever is computed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import Database
from tests.counted_calls import calls_of


class Order(NamedTuple):
    id: int
    customer: int
    amount: int | None


class Customer(NamedTuple):
    id: int


Amounts = list[int]
COMPUTED: dict[str, Callable[[Amounts], Any]] = {
    "coalesce(sum(o.amount), 0)": sum,
    "coalesce(max(o.amount), -1) + 1": lambda amounts: max(amounts, default=-1) + 1,
    "greatest(max(o.amount), 5)": lambda amounts: max([5, *amounts]),
    "nullif(count(o.amount), 2)": lambda amounts: None if len(amounts) == 2 else len(amounts),
    "round(avg(o.amount), 1)": lambda a: round(sum(a) / len(a) + 1e-9, 1) if a else None,
    "sum(o.amount) / 4": lambda amounts: sum(amounts) / 4 if amounts else None,
    "cast(sum(o.amount) as varchar)": lambda amounts: str(sum(amounts)) if amounts else None,
    "abs(min(o.amount))": lambda amounts: abs(min(amounts)) if amounts else None,
    "case when sum(o.amount) > 9 then 'much' else 'little' end": (
        lambda amounts: "much" if sum(amounts) > 9 else "little"
    ),
}


@pytest.mark.parametrize("text", COMPUTED)
def test_a_value_computed_of_an_aggregate_is_a_left_join(text: str) -> None:
    db = Database()
    orders, customers = db.table(Order, name="orders"), db.table(Customer, name="customers")
    view = db.sql(
        f"select c.id, (select {text} from orders o where o.customer = c.id) from customers c"
    ).materialize()
    assert "union_all" not in view.explain()

    def expected() -> dict[int, Any]:
        amounts: dict[int, Amounts] = {c.id: [] for c in customers}
        for order in orders:
            if order.customer in amounts and order.amount is not None:
                amounts[order.customer].append(order.amount)
        return {customer: COMPUTED[text](some) for customer, some in amounts.items()}

    random = Random(7)
    customers.add_all(map(Customer, range(4)))
    for number in range(30):
        if len(orders) and random.random() < 0.4:
            orders.remove(random.choice(list(orders)))
        else:
            amount = random.choice([None, -3, 0, 2, 4, 7, 11])
            orders.add(Order(number, random.randrange(6), amount))
        if number == 20:
            customers.remove(Customer(2))
        view.verify()
        assert dict(map(tuple, view)) == pytest.approx(expected())


@pytest.mark.parametrize("exists", ["exists", "not exists"])
def test_tables_of_an_exists_are_joined_by_their_own_conditions(exists: str) -> None:
    """The rows of two tables in EXISTS are no product."""

    def calls(size: int) -> int:
        db = Database()
        db.execute("create table c (id int)")
        db.execute("create table sales (buyer int, day int)")
        db.execute("create table days (id int, year int)")
        text = f"select id from c where {exists} (select * from sales, days where buyer = c.id"
        view = db.sql(f"{text} and day = days.id and year between 2002 and 2003)").materialize()
        numbers = ", ".join(f"({n}, {n})" for n in range(size))
        db.execute("insert into c values (1), (2), (3)")
        db.execute("insert into days values " + numbers.replace("(2, 2)", "(2, 2002)"))
        found = calls_of(lambda: db.execute(f"insert into sales values {numbers}"))
        assert [row.id for row in view] == ([2] if exists == "exists" else [1, 3])
        return found

    assert calls(200) < 2.6 * calls(100)

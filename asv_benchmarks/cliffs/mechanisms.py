"""One question in other words, or with another join, beside a neighbour that was always fast.

Each row changes one table of 20,000 orders and their customers below a view of the question.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from asv_benchmarks.cliffs.cliff import Cliff, Sides, Timed
from reactive import Avg, CountDistinct, Database, Sum

CHANGES, PER_CUSTOMER = 100, 20


class Order(NamedTuple):
    id: int
    customer: int
    amount: int
    place: int


class Customer(NamedTuple):
    id: int
    nation: int
    low: int
    high: int


Ask = Callable[[Database, Any, Any], Any]


class Question(NamedTuple):
    """A question and its neighbour.

    Parameters
    ----------
    name, other: the names of both. one, two: callables that return the relations.
    changed: the table that changes, `orders`, `customers`, or `hot`: the customer of half of the
        orders. is_same: True if both have the same rows.
    most: the most times the cost of the neighbour.
    """

    name: str
    other: str
    one: Ask
    two: Ask
    changed: str = "orders"
    is_same: bool = True
    most: float = 3.0


def _covers(o: Any, c: Any) -> Any:
    return c.low <= o.place and o.place < c.high


def _above_average(db: Database, orders: Any, customers: Any) -> Any:
    average = orders.aggregate(Avg(lambda o: o.amount))
    return orders.join(average, on=lambda o, a: o.amount > a).select(lambda o, a: o.id)


def _any_large(db: Database, orders: Any, customers: Any) -> Any:
    return db.query(
        lambda: [c for c in customers if any(o.customer == c.id and o.amount > 90 for o in orders)]
    )


def _exists(db: Database, orders: Any, customers: Any) -> Any:
    large = orders.where(lambda o: o.amount > 90)
    return customers.semi_join(large, on=lambda c, o: c.id == o.customer)


def _summed(db: Database, orders: Any, customers: Any) -> Any:
    return customers.select(lambda c: (c.id, sum(o.amount for o in orders if o.customer == c.id)))


def _by_nation(db: Database, orders: Any, customers: Any) -> Any:
    both = orders.join(customers, on=lambda o, c: o.customer == c.id)
    return both.group_by(lambda o, c: c.nation).aggregate(Sum(lambda o, c: o.amount))


def _amounts_by_nation(db: Database, orders: Any, customers: Any) -> Any:
    both = orders.join(customers, on=lambda o, c: o.customer == c.id)
    return both.group_by(lambda o, c: c.nation).aggregate(CountDistinct(lambda o, c: o.amount))


def _by_nation_if_any(db: Database, orders: Any, customers: Any) -> Any:
    both = orders.left_join(customers, on=lambda o, c: o.customer == c.id)
    groups = both.group_by(lambda o, c: None if c is None else c.nation)
    return groups.aggregate(Sum(lambda o, c: o.amount))


def _rules(db: Database, orders: Any, customers: Any) -> Any:
    return db.datalog("""
        .decl orders(id: number, customer: number, amount: number, place: number) .input orders
        .decl found(customer: number, amount: number) .output found
        found(c, a) :- orders(_, c, _, _), a = sum x : { orders(_, c, x, _) }.
    """)["found"]


def _sql(text: str) -> Ask:
    return lambda db, orders, customers: db.sql(text)


PAIRS = "(select count(*) from orders o, customers c where o.customer = c.id and c.nation = {})"
QUESTIONS = (
    Question(
        "a range in `left_join`, the other side",
        "`join`",
        lambda db, o, c: o.left_join(c, on=_covers).select(
            lambda o, c: (o.id, None if c is None else c.id)
        ),
        lambda db, o, c: o.join(c, on=_covers).select(lambda o, c: (o.id, c.id)),
        "customers",
    ),
    Question(
        "`left_join` and `Sum`, a hot customer moves",
        "`join` and `Sum`",
        _by_nation_if_any,
        _by_nation,
        "hot",
        is_same=False,
        most=6.0,
    ),
    Question(
        "`join` and `CountDistinct`, a hot customer moves",
        "`join` and `Sum`",
        _amounts_by_nation,
        _by_nation,
        "hot",
        is_same=False,
        most=30.0,
    ),
    Question(
        "orders above the average",
        "above a constant",
        _above_average,
        lambda db, o, c: o.where(lambda o: o.amount > 50).select(lambda o: o.id),
        is_same=False,
        most=60.0,
    ),
    Question("`any(...)` in a comprehension", "`semi_join`", _any_large, _exists, most=1.5),
    Question(
        "SQL `coalesce` of a correlated sum",
        "`sum(...)` in methods",
        _sql(
            "select c.id, (select coalesce(sum(o.amount), 0) from orders o"
            " where o.customer = c.id) from customers c"
        ),
        _summed,
        most=2.0,
    ),
    Question(
        "groups in Datalog",
        "in SQL, of distinct rows",
        _rules,
        _sql("select customer, sum(amount) from (select distinct * from orders) group by customer"),
        most=2.0,
    ),
    Question(
        "a sum over a partition beside each row",
        "a join with the groups",
        _sql("select id, sum(amount) over (partition by customer) from orders"),
        _sql(
            "select o.id, s.total from orders o join (select customer, sum(amount) as total"
            " from orders group by customer) s on o.customer = s.customer"
        ),
        most=1.5,
    ),
    Question(
        "one FROM list twice",
        "once",
        _sql(f"select {PAIRS.format(1)}, {PAIRS.format(2)}"),
        _sql(f"select {PAIRS.format(1)}"),
        is_same=False,
    ),
)


def asked(question: Question, size: int) -> Sides:
    """Rows come and go below both views."""
    one, other = (_changed(question, ask, size) for ask in (question.one, question.two))
    return one, other


def _changed(question: Question, ask: Ask, size: int) -> Timed:
    db = Database()
    orders, customers = db.table(Order, name="orders"), db.table(Customer, name="customers")
    count = size // PER_CUSTOMER
    is_hot = question.changed == "hot"
    rows = [Order(n, 0 if is_hot and n % 2 else n % count, n % 100, n) for n in range(size)]
    customers.add_all(
        Customer(n, n % 25, n * PER_CUSTOMER, n * PER_CUSTOMER + PER_CUSTOMER) for n in range(count)
    )
    orders.add_all(rows)
    view = ask(db, orders, customers).materialize()
    subscription = view.subscribe(lambda delta: None)
    table: Any = orders
    some: list[Any] = [Order(-n, n % count, n % 100, n) for n in range(1, CHANGES + 1)]
    if question.changed != "orders":
        table = customers
        some = [Customer(-n, 1, n, n + 3) for n in range(1, CHANGES + 1)]
    if is_hot:
        some = [Customer(0, n % 25, 0, 1) for n in range(1, CHANGES + 1)]

    def do(state: object) -> None:
        for row in some:
            table.add(row)
            table.remove(row)

    def result(state: object) -> object:
        return subscription is not None and question.is_same and sorted(_rows(view))

    return Timed(do, 2 * len(some), lambda: None, result)


def _rows(view: Any) -> list[tuple[Any, ...]]:
    """Return the rows as plain tuples; groups as pairs."""
    return [tuple(row) for row in (view.items() if hasattr(view, "keys") else view)]


CLIFFS = tuple(
    Cliff(each.name, each.other, partial(asked, each), 20_000, most=each.most) for each in QUESTIONS
)

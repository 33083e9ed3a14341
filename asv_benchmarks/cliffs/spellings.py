"""Conditions of a join in other words, beside an equation that comes first.

Each row changes one table below a join of 20,000 orders and their customers: the number of pairs
that are asked decides the cost, so a spelling whose equation is not found costs a hundred times.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from asv_benchmarks.cliffs.cliff import Cliff, Sides, Timed
from reactive import Database, left, right

CHANGES = 200
PER_CUSTOMER = 20
MOST = 1.5
"""The cost of a spelling, at most, in that of its neighbour: both have one plan."""


class Order(NamedTuple):
    id: int
    customer: int
    qty: int


class Customer(NamedTuple):
    id: int
    tier: int
    last: int


Condition = Callable[[Any, Any], Any]


def _by_return(o: Any, c: Any) -> Any:
    if o.customer != c.id:
        return False
    return o.qty < c.tier


def _key_first(o: Any, c: Any) -> Any:
    return o.customer == c.id and o.qty < c.tier


def _key(o: Any, c: Any) -> Any:
    return o.customer == c.id


def _either_key(o: Any, c: Any) -> Any:
    return o.customer == c.id or o.id == c.id


def _near(o: Any, c: Any) -> Any:
    return c.tier - 2 < o.qty and o.qty < c.tier + 2


KEYS: dict[str, tuple[Any, Condition]] = {
    "`<` of both sides, then the key": (
        lambda o, c: o.qty < c.tier and o.customer == c.id,
        _key_first,
    ),
    "`(left < right) & (left == right)`": (
        (left("qty") < right("tier")) & (left("customer") == right("id")),
        _key_first,
    ),
    "`all([...])`": (lambda o, c: all([o.qty < c.tier, o.customer == c.id]), _key_first),
    "an early return": (_by_return, _key_first),
    "`x if k else False`": (
        lambda o, c: o.qty < c.tier if o.customer == c.id else False,
        _key_first,
    ),
    "`not a != b`": (lambda o, c: not o.customer != c.id, _key),  # noqa: SIM202
    "`a - b == 0`": (lambda o, c: o.customer - c.id == 0, _key),
    "`b in (a, c)`": (lambda o, c: c.id in (o.customer, o.id), _either_key),
    "`any([...])`": (lambda o, c: any([o.customer == c.id, o.id == c.id]), _either_key),
    "`operator.eq`": (lambda o, c: operator.eq(o.customer, c.id), _key),
}
"""Conditions with an equation in other words, each with the plain one."""
RANGES: dict[str, tuple[Any, Condition]] = {
    "`abs(a - b) < 2`": (lambda o, c: abs(o.qty - c.tier) < 2, _near),
    "`-2 < a - b < 2`": (lambda o, c: -2 < o.qty - c.tier < 2, _near),
    "`a in range(b, c)`": (
        lambda o, c: o.qty in range(c.tier, c.last),
        lambda o, c: c.tier <= o.qty and o.qty < c.last,
    ),
}
"""Conditions with a range in other words, each with the plain one."""


def joined(conditions: tuple[Any, Condition], is_range: bool, size: int) -> Sides:
    """Orders and customers come and go below two joins of one meaning."""
    one, other = (_joined(condition, is_range, size) for condition in conditions)
    return one, other


def _joined(condition: Any, is_range: bool, size: int) -> Timed:
    db = Database()
    orders, customers = db.table(Order, name="orders"), db.table(Customer, name="customers")
    count = size // PER_CUSTOMER
    orders.add_all(Order(n, n % count, n if is_range else n % 7) for n in range(size))
    customers.add_all(
        Customer(n, n * PER_CUSTOMER if is_range else n % 5, n * PER_CUSTOMER + 3)
        for n in range(count)
    )
    view = orders.join(customers, on=condition).materialize()
    some = [Order(-n, n % count, n if is_range else n % 7) for n in range(1, CHANGES // 2)]
    others = [Customer(-n, n, n + 3) for n in range(1, CHANGES // 2)]

    def do(state: object) -> None:
        for order, customer in zip(some, others, strict=True):
            orders.add(order)
            customers.add(customer)
            orders.remove(order)
            customers.remove(customer)

    return Timed(do, 4 * len(some), lambda: None, lambda state: dict(view.zset().items()))


CLIFFS = tuple(
    Cliff(name, "its plain words", partial(joined, conditions, is_range), 20_000, most=MOST)
    for is_range, family in ((False, KEYS), (True, RANGES))
    for name, conditions in family.items()
)

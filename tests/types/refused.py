"""Code that mypy and pyright refuse, both strict: exactly the lines that end with `error`.

It is never run.
"""

# pyright: strict

from __future__ import annotations

from reactive import Avg, Count, Database, Delta, Sum, Table, desc, tracked
from tests.types.rows import Customer, Order, Town

db = Database()
orders = db.table(Order, key=lambda o: o.id)
customers = db.table(Customer, key="name")
both = orders.join(customers, on=lambda o, c: o.customer == c.name)
by_town = both.group_by(lambda o, c: c.town)
view = by_town.aggregate(Count()).materialize()
towns = by_town.aggregate(orders=Count(), total=Sum("total"), as_=Town).materialize()


def of_customer(delta: Delta[Customer]) -> None:
    print(delta.added)


def name(order: Order) -> str:
    return order.customer


def discount(order: Order) -> float | None:
    return order.discount


@tracked
class Player:
    id: int
    name: str
    hp: int = 10


class Log:
    def added(self, row: Customer) -> None:
        print(row)


# A field that rows do not have.
orders.where(lambda o: o.totl > 3)  # error
orders.group_by(lambda o: o.custmer)  # error
both.select(lambda o, c: c.twon)  # error
orders.aggregate(Sum(lambda o: o.totl))  # error

# A row of another type, and a key.
orders.add(Customer("ann", "Bonn"))  # error
orders["x"]  # error
orders.get("x")  # error
orders.delete("x")  # error
view[3]  # error
view.get(3)  # error
towns[3]  # error
keyed_by_name: Table[Customer, str] = orders  # error

# A callable with other parameters.
orders.join(customers, on=lambda o: o.customer)  # error
orders.where(lambda o, c: o.total > c)  # error
both.select(lambda o: o)  # error
by_town.aggregate(Sum(lambda o: 3))  # error

by_town.reduce(lambda rows: [1])  # error
by_town.reduce(lambda town, rows: [o.totl for o, c in rows])  # error
by_town.reduce(lambda town, rows: 3)  # error
by_town.top(3, by=lambda o: o.total)  # error
by_town.top("total")  # error
by_town.each(lambda g: 3)  # error
by_town.each(lambda g: g.where(lambda o: True))  # error
orders.group_by(lambda o: o.customer).top(3, by=lambda o: o.discount)  # error
orders.group_by(lambda o: o.customer).first(by=lambda o: o.totl)  # error

# A sum of values that cannot be added, an order of values that do not compare.
orders.aggregate(Sum(name))  # error
orders.aggregate(Sum(lambda o: o.customer))  # error
orders.aggregate(Count(), Sum(lambda o: o.customer))  # error
orders.group_by(lambda o: o.paid).aggregate(Sum(lambda o: o.customer))  # error
orders.aggregate(total=Sum(lambda o: o.customer))  # error
orders.aggregate(Avg(name))  # error
orders.aggregate(Sum(discount))  # error
orders.aggregate(Sum(lambda o: o.discount))  # error
orders.order_by(lambda o: o.discount)  # error
orders.order_by(discount)  # error
orders.order_by(lambda o: o.id, lambda o: o.discount)  # error
orders.order_by(desc(lambda o: o.discount))  # error
orders.order_by(lambda o: o.id, nulls="middle")  # error

# Windows: functions that there are not, values that cannot be added, frames of other values.
ranked = orders.over(by="customer", order=lambda o: o.total)
orders.over(order=lambda o: o.discount)  # error
orders.over(by=lambda o: o.custmer)  # error
ranked.select(lambda o: o.id)  # error
ranked.select(lambda o, w: w.rnk())  # error
ranked.select(lambda o, w: w.lag())  # error
ranked.select(lambda o, w: w.sum(o.customer))  # error
ranked.select(lambda o, w: w.sum(o.total, rows=(1.5, 0)))  # error
ranked.select(lambda o, w: w.first(o.totl))  # error
ranked.select(lambda o, w: w.scan(o.total, lambda s, x: s + x.id, 0.0))  # error
ranked.select(lambda o, w: w.scan(o.total))  # error
ranked.select(lambda o, w: w.ema(o.customer, alpha=0.5))  # error
ranked.select(lambda o, w: w.ema(o.total, half_life=5))  # error

# Steps of other rows, and of the rows that they define.
db.feedback(int, lambda y: orders.select(lambda o: o.customer))  # error
db.feedback(int, lambda y: y.where(lambda n: n > 1))  # error

# Deltas of another relation.
orders.subscribe(of_customer)  # error
orders.observe(Log())  # error
orders.observe(print)  # error
both.subscribe(of_customer)  # error
held = orders.subscribe(lambda delta: print(delta.added[0].town))  # error

# What an object that changes does not take.
Player("ann", 1)  # error
Player(1)  # error
Player(1, "ann").hp = "full"  # error
Player(1, "ann").mp = 3  # error
tracked(3)  # error
db.table(Player).where(lambda p: p.mp > 3)  # error

# What a record does not have.
print(towns["Bonn"].order)  # error
print([t.order for t in towns])  # error
orders.aggregate(Count(), orders=Count())  # error
orders.aggregate(orders=3)  # error

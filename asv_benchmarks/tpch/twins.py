"""The twins: programs written by hand for one query, whose first table changes.

The other tables are filled first, and do not change afterwards. Each twin keeps the data that a
change of the first table looks up: dictionaries by the keys in its rows, without other fields.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from typing import Any

from asv_benchmarks.tpch.queries import CLOSING, LARGE, MIDDLE, YEAR
from asv_benchmarks.tpch.rows import Customer, Item, Order
from asv_benchmarks.workload import Listener, OldNew, Result, Row, TableDelta, Verb
from asv_benchmarks.workloads.counts import take_one

Fact = tuple[Any, tuple[int, ...]]
"""A group, and the addends of a row to its sums."""
Rows = dict[Row, int]


class Sums:
    """Keep the rows of the first table with their counts, and the sums and number of each group.

    `fact(row)` returns the group and the addends of a row; None if it is left out.
    """

    def __init__(self, listener: Listener, fact: Callable[[Row], Fact | None]) -> None:
        self.rows: Rows = {}
        self.groups: dict[Any, tuple[int, ...]] = {}
        self._listener = listener
        self._fact = fact

    def verbs(self) -> Sequence[tuple[Verb, Verb]]:
        return [(self.add, self.remove)]

    def add(self, row: Row) -> None:
        self.rows[row] = self.rows.get(row, 0) + 1
        fact = self._fact(row)
        if fact is not None:
            self._tell([(fact[0], *self._move(*fact, 1))])

    def remove(self, row: Row) -> None:
        take_one(self.rows, row)
        fact = self._fact(row)
        if fact is not None:
            self._tell([(fact[0], *self._move(*fact, -1))])

    def batch(self, *deltas: TableDelta) -> None:
        for table, others in enumerate(deltas[1:], 1):
            self.fill(table, others.added)
        rows, fact_of, before = self.rows, self._fact, dict[Any, tuple[int, ...] | None]()
        for row, weight in deltas[0].pairs():
            if weight > 0:
                rows[row] = rows.get(row, 0) + 1
            else:
                take_one(rows, row)
            fact = fact_of(row)
            if fact is not None:
                old, _ = self._move(*fact, weight)
                before.setdefault(fact[0], old)
        moved = [(key, old, self.groups.get(key)) for key, old in before.items()]
        self._tell([one for one in moved if one[1] != one[2]])

    def fill(self, table: int, rows: Sequence[Row]) -> None:
        """Keep the needed part of another table."""

    def result(self) -> Result:
        return {self.shown(key, sums): 1 for key, sums in self.groups.items()}

    def shown(self, key: Any, sums: tuple[int, ...]) -> Row:
        """Return the row of a group; its sums end with its number of rows."""
        return (key, *sums[:-1])

    def _tell(
        self, moved: list[tuple[Any, tuple[int, ...] | None, tuple[int, ...] | None]]
    ) -> None:
        changes: list[OldNew] = [
            (old and self.shown(key, old), new and self.shown(key, new)) for key, old, new in moved
        ]
        self._listener.changes(changes)

    def _move(
        self, key: Any, values: tuple[int, ...], weight: int
    ) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
        """Change the sums of a group; before and after."""
        groups = self.groups
        old = groups.get(key)
        if old is None:
            groups[key] = new = (*values, 1)
            return None, new
        if old[-1] + weight == 0:
            del groups[key]
            return old, None
        if len(values) == 1:
            groups[key] = new = (old[0] + weight * values[0], old[1] + weight)
        else:
            sums = [a + weight * b for a, b in zip(old, values, strict=False)]
            groups[key] = new = (*sums, old[-1] + weight)
        return old, new


class Q1(Sums):
    """One sum more than is shown is kept: of discounts, for their mean."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener, self._sold)

    def shown(self, key: Any, sums: tuple[int, ...]) -> Row:
        quantity, price, less, taxed, discount, n = sums
        return (key, quantity, price, less, taxed, quantity / n, price / n, discount / n, n)

    def _sold(self, i: Item) -> Fact | None:
        if i.shipped > CLOSING:
            return None
        less = i.price * (100 - i.discount)
        sums = (i.quantity, i.price, less, less * (100 + i.tax), i.discount)
        return (i.returned, i.status), sums


class Q6(Sums):
    """One group, which is shown when it is empty too."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener, self._saved)

    def shown(self, key: Any, sums: tuple[int, ...]) -> Row:
        return sums[0]

    def result(self) -> Result:
        return super().result() or {0: 1}

    def _saved(self, i: Item) -> Fact | None:
        if YEAR <= i.shipped < 2 * YEAR and 5 <= i.discount <= 7 and i.quantity < 24:
            return None, (i.price * i.discount,)
        return None


class Q5(Sums):
    """The nation of the customer by order of the year, and the nation by supplier of the region."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener, self._sold)
        self._nation_of: dict[int, int] = {}
        self._customers: dict[int, int] = {}
        self._suppliers: dict[int, int] = {}
        self._names: dict[int, str] = {}
        self._region = -1

    def fill(self, table: int, rows: Sequence[Row]) -> None:
        match table:
            case 1:
                of = self._customers
                for o in rows:
                    if YEAR <= o.day < 2 * YEAR and o.customer in of:
                        self._nation_of[o.id] = of[o.customer]
            case 2:
                self._customers.update({c.id: c.nation for c in rows})
            case 3:
                self._suppliers.update({s.id: s.nation for s in rows if s.nation in self._names})
            case 4:
                self._names.update({n.id: n.name for n in rows if n.region == self._region})
            case 5:
                self._region = next((r.id for r in rows if r.name == "region 2"), self._region)

    def _sold(self, i: Item) -> Fact | None:
        nation = self._nation_of.get(i.order)
        if nation is None or self._suppliers.get(i.supplier) != nation:
            return None
        return self._names[nation], (i.price * (100 - i.discount),)


class Q9(Sums):
    """Costs by part, of the colour, and supplier; nations of suppliers; years of orders."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener, self._sold)
        self._parts: set[int] = set()
        self._costs: dict[tuple[int, int], int] = {}
        self._nations: dict[int, str] = {}
        self._years: dict[int, int] = {}
        self._names: dict[int, str] = {}

    def fill(self, table: int, rows: Sequence[Row]) -> None:
        match table:
            case 1:
                self._parts.update(p.id for p in rows if "green" in p.name)
            case 2:
                self._costs.update({(f.part, f.supplier): f.cost for f in rows})
            case 3:
                self._nations.update({s.id: self._names[s.nation] for s in rows})
            case 4:
                self._years.update({o.id: o.day // YEAR for o in rows})
            case 5:
                self._names.update({n.id: n.name for n in rows})

    def _sold(self, i: Item) -> Fact | None:
        if i.part not in self._parts:
            return None
        cost = self._costs.get((i.part, i.supplier))
        year = self._years.get(i.order)
        if cost is None or year is None:
            return None
        profit = i.price * (100 - i.discount) - 100 * cost * i.quantity
        return (self._nations[i.supplier], year), (profit,)


class Leading:
    """Rows in the order of a unique key, and the changes of the first few."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._keys: list[Any] = []
        self._rows: dict[Any, Row] = {}

    def put(self, key: Any, row: Row) -> None:
        insort(self._keys, key)
        self._rows[key] = row

    def take(self, key: Any) -> None:
        del self._keys[bisect_left(self._keys, key)], self._rows[key]

    def fill(self, rows: dict[Any, Row]) -> None:
        """Many at the same time."""
        self._rows.update(rows)
        self._keys = sorted(self._rows)

    def rows(self) -> list[Row]:
        return [self._rows[key] for key in self._keys[: self._first]]


class Q3(Sums):
    """Days and priorities of the segment's early orders; the groups in the order of their worth."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener, self._sold)
        self._customers: set[int] = set()
        self._orders: dict[int, tuple[int, int, int]] = {}
        self._leading = Leading(10)

    def fill(self, table: int, rows: Sequence[Row]) -> None:
        if table == 2:
            self._customers.update(c.id for c in rows if c.segment == "building")
        else:
            of = self._customers
            early = (o for o in rows if o.day < MIDDLE and o.customer in of)
            self._orders.update({o.id: (o.id, o.day, o.priority) for o in early})

    def result(self) -> Result:
        return self._leading.rows()

    def _tell(
        self, moved: list[tuple[Any, tuple[int, ...] | None, tuple[int, ...] | None]]
    ) -> None:
        leading = self._leading
        before = leading.rows()
        if not before:
            new = {(-s[0], k[1], k[0]): (k, s[0]) for k, _, s in moved if s is not None}
            leading.fill(new)
        else:
            for k, old, now in moved:
                if old is not None:
                    leading.take((-old[0], k[1], k[0]))
                if now is not None:
                    leading.put((-now[0], k[1], k[0]), (k, now[0]))
        told(self._listener, before, leading.rows())

    def _sold(self, i: Item) -> Fact | None:
        order = self._orders.get(i.order) if i.shipped > MIDDLE else None
        return None if order is None else (order, (i.price * (100 - i.discount),))


class Q18(Sums):
    """The pieces of all orders; the large orders with their customer, in order."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener, lambda i: (i.order, (i.quantity,)))
        self._customers: dict[int, Customer] = {}
        self._orders: dict[int, Order] = {}
        self._leading = Leading(100)

    def fill(self, table: int, rows: Sequence[Row]) -> None:
        if table == 2:
            self._customers.update({c.id: c for c in rows})
        else:
            self._orders.update({o.id: o for o in rows if o.customer in self._customers})

    def result(self) -> Result:
        return self._leading.rows()

    def _tell(
        self, moved: list[tuple[Any, tuple[int, ...] | None, tuple[int, ...] | None]]
    ) -> None:
        crossing = [
            (self._orders[order], old, new)
            for order, old, new in moved
            if order in self._orders
            and ((old is not None and old[0] > LARGE) or (new is not None and new[0] > LARGE))
        ]
        if not crossing:
            return
        before = self._leading.rows()
        for o, old, new in crossing:
            key = (-o.total, o.day, o.id)
            if old is not None and old[0] > LARGE:
                self._leading.take(key)
            if new is not None and new[0] > LARGE:
                self._leading.put(key, (o.customer, o.id, o.day, o.total, new[0]))
        told(self._listener, before, self._leading.rows())


class Q13:
    """Orders with their counts, usual orders per customer, and customers per such number."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._orders: Rows = {}
        self._of_customers: dict[int, int] = {}
        self._spread: dict[int, int] = {}

    def verbs(self) -> Sequence[tuple[Verb, Verb]]:
        return [(self.add, self.remove)]

    def add(self, row: Order) -> None:
        self._orders[row] = self._orders.get(row, 0) + 1
        self._one(row, 1)

    def remove(self, row: Order) -> None:
        take_one(self._orders, row)
        self._one(row, -1)

    def batch(self, *deltas: TableDelta) -> None:
        before: dict[int, int] = {}
        for c in deltas[1].added:
            self._of_customers[c.id] = 0
            self._move(0, 1, before)
        for row, weight in deltas[0].pairs():
            if weight > 0:
                self._orders[row] = self._orders.get(row, 0) + 1
            else:
                take_one(self._orders, row)
            self._count(row, weight, before)
        self._tell(before)

    def result(self) -> Result:
        return dict.fromkeys(self._spread.items(), 1)

    def _one(self, row: Order, weight: int) -> None:
        before: dict[int, int] = {}
        self._count(row, weight, before)
        if before:
            self._tell(before)

    def _count(self, row: Order, weight: int, before: dict[int, int]) -> None:
        number = None if "special" in row.note else self._of_customers.get(row.customer)
        if number is not None:
            self._of_customers[row.customer] = number + weight
            self._move(number, -1, before)
            self._move(number + weight, 1, before)

    def _move(self, number: int, weight: int, before: dict[int, int]) -> None:
        customers = self._spread.get(number, 0)
        before.setdefault(number, customers)
        if customers + weight:
            self._spread[number] = customers + weight
        else:
            del self._spread[number]

    def _tell(self, before: dict[int, int]) -> None:
        changes: list[OldNew] = []
        for number, old in before.items():
            new = self._spread.get(number, 0)
            if old != new:
                changes.append(((number, old) if old else None, (number, new) if new else None))
        self._listener.changes(changes)


def told(listener: Listener, before: list[Row], now: list[Row]) -> None:
    """Report the rows by which two lists differ."""
    if before != now:
        old, new = set(before), set(now)
        changes: list[OldNew] = [(row, None) for row in before if row not in new]
        listener.changes([*changes, *((None, row) for row in now if row not in old)])

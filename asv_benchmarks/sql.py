"""Views written in SQL: the time of a change of one row, and the time to make a view.

The baselines are a database that evaluates the query again, and the same query with methods.

python -m asv_benchmarks.sql [--rows 10000 30] [--repeat 15]

Each figure is a median of CPU time; compared sides are measured in turns, in one process. The
changes are the same for all: the amount of one order. Their results are compared first.
"""

from __future__ import annotations

import argparse
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from random import Random
from statistics import median
from time import process_time
from typing import Any, NamedTuple

from asv_benchmarks.table import machine, markdown
from reactive import Avg, Count, Database, Max, Min, Relation, Sum, asc, desc

REPEAT, CHANGES, SEED = 15, 20, 7
CREATE = (
    "create table orders (id integer primary key, cid integer, total integer, town text)",
    "create table customers (id integer primary key, name text, town text)",
)
Asked = Relation[*tuple[Any, ...]]


class Order(NamedTuple):
    id: int
    cid: int | None
    total: int
    town: str


class Customer(NamedTuple):
    id: int
    name: str
    town: str


class Kind(NamedTuple):
    """A query as text, and as one would make it of methods."""

    text: str
    made: Callable[[Any, Any], Any] | None = None


def _joined(o: Any, c: Any) -> Any:
    return o.join(c, on=lambda a, b: a.cid == b.id)


KINDS = {
    "join": Kind(
        "select o.id, c.name from orders o join customers c on o.cid = c.id",
        lambda o, c: _joined(o, c).select(lambda a, b: (a.id, b.name)),
    ),
    "group": Kind(
        "select c.town, count(*), sum(o.total), avg(o.total), min(o.total), max(o.total)"
        " from orders o join customers c on o.cid = c.id group by c.town",
        lambda o, c: (
            _joined(o, c)
            .group_by(lambda a, b: b.town)
            .aggregate(
                *(Count(), Sum(lambda a, b: a.total), Avg(lambda a, b: a.total)),
                *(Min(lambda a, b: a.total), Max(lambda a, b: a.total)),
            )
        ),
    ),
    "having": Kind(
        "select cid, sum(total) from orders group by cid having sum(total) > 5000",
        lambda o, c: (
            o.group_by(lambda a: a.cid)
            .aggregate(Sum(lambda a: a.total))
            .where(lambda k, s: s > 5000)
        ),
    ),
    "left join, count": Kind(
        "select c.id, count(o.id) from customers c left join orders o on o.cid = c.id"
        " group by c.id",
        lambda o, c: (
            c.left_join(o, on=lambda b, a: a.cid == b.id)
            .group_by(lambda b, a: b.id)
            .aggregate(Sum(lambda b, a: 1 if a is not None else 0))
        ),
    ),
    "not in": Kind(
        "select id from customers where id not in (select cid from orders where total > 900)",
        lambda o, c: (
            c.anti_join(o.where(lambda a: a.total > 900 and a.cid is None), on=lambda b, a: True)
            .anti_join(o.where(lambda a: a.total > 900), on=lambda b, a: b.id == a.cid)
            .select(lambda b: b.id)
        ),
    ),
    "exists": Kind(
        "select name from customers c"
        " where exists (select 1 from orders o where o.cid = c.id and o.total > 900)",
        lambda o, c: c.semi_join(
            o.where(lambda a: a.total > 900), on=lambda b, a: b.id == a.cid
        ).select(lambda b: b.name),
    ),
    "scalar": Kind(
        "select id from orders o"
        " where total = (select max(total) from orders p where p.cid = o.cid)",
        lambda o, c: o.join(
            o.where(lambda a: a.cid is not None)
            .group_by(lambda a: a.cid)
            .aggregate(Max(lambda a: a.total)),
            on=lambda a, m: a.cid == m[0] and a.total == m[1],
        ).select(lambda a, m: a.id),
    ),
    "row_number": Kind(
        "select id, row_number() over (partition by cid order by total desc, id) from orders"
    ),
    "sum over partition": Kind("select id, sum(total) over (partition by cid) from orders"),
    "distinct": Kind(
        "select distinct town from orders", lambda o, c: o.select(lambda a: a.town).distinct()
    ),
    "filter": Kind(
        "select id, total from orders where total > 900",
        lambda o, c: o.where(lambda a: a.total > 900).select(lambda a: (a.id, a.total)),
    ),
    "top 10": Kind(
        "select id, total from orders order by total desc, id limit 10",
        lambda o, c: (
            o.select(lambda a: (a.id, a.total))
            .order_by(desc(lambda r: r[1]), asc(lambda r: r[0]))
            .limit(10)
        ),
    ),
}


class Shop:
    """Equal rows in a live database, in SQLite and in DuckDB."""

    sqlite: Any = None
    duck: Any = None

    def __init__(self, count: int, *, others: bool = True) -> None:
        random = Random(SEED)
        customers = max(1, count // 10)
        towns = [f"town {n}" for n in range(20)]
        self.live = Database()
        self.orders = self.live.table(Order, name="orders", key="id")
        self.customers = self.live.table(Customer, name="customers", key="id")
        rows = [
            Order(n, random.randrange(customers), n % 1000, towns[n % 20]) for n in range(count)
        ]
        of = [Customer(n, f"name {n}", random.choice(towns)) for n in range(customers)]
        self.orders.add_all(rows)
        self.customers.add_all(of)
        self._random = random
        if others:
            self.sqlite, self.duck = sqlite3.connect(":memory:"), _duck()
        for each in filter(None, (self.sqlite, self.duck)):
            for text in CREATE:
                each.execute(text)
            each.execute(f"insert into orders values {', '.join(map(repr, map(tuple, rows)))}")
            each.execute(f"insert into customers values {', '.join(map(repr, map(tuple, of)))}")
            each.execute("create index of_customer on orders (cid)")

    def change(self) -> tuple[int, int]:
        """Return an order, and its new amount."""
        return self._random.randrange(len(self.orders)), self._random.randrange(1000)

    def apply(self, changes: Sequence[tuple[int, int]]) -> None:
        """Change orders, each in a commit of its own."""
        for number, total in changes:
            old = self.orders[number]
            self.orders.update(old, old._replace(total=total))

    def warm(self) -> None:
        """Apply a change and undo it, to fill the caches again."""
        total = self.orders[0].total
        self.apply([(0, total + 1), (0, total)])


def _parameters(changes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(total, number) for number, total in changes]


def _duck() -> Any:
    with suppress(ModuleNotFoundError):
        import duckdb

        made = duckdb.connect()
        made.execute("set threads to 1")
        return made
    return None


class Gain(NamedTuple):
    """Microseconds of a change: by the view, by the query of methods, and by other databases."""

    view: float
    methods: float
    sqlite: float
    duck: float


def gain(kind: Kind, count: int, repeat: int) -> Gain:
    """Measure one kind of query in turns: changes of each live table, and queries of each database.

    All databases get the same changes.
    """
    shop, other = Shop(count), Shop(count, others=False)
    view = shop.live.sql(kind.text).materialize()
    kept = None if kind.made is None else kind.made(other.orders, other.customers).materialize()
    times: list[list[float]] = [[], [], [], []]
    for turn in range(repeat):
        changes = [shop.change() for _ in range(CHANGES)]
        sides = [(0, shop), (1, other)] if kept is not None else [(0, shop)]
        for place, side in sides if turn % 2 else reversed(sides):
            side.warm()
            times[place].append(_seconds(lambda: side.apply(changes)) / CHANGES)
        for place, each in ((2, shop.sqlite), (3, shop.duck)):
            if each is not None:
                each.executemany("update orders set total = ? where id = ?", _parameters(changes))
                times[place].append(_seconds(lambda: each.execute(kind.text).fetchall()))
    _check(view, shop.sqlite.execute(kind.text).fetchall())
    return Gain(*(median(t) * 1e6 if t else float("nan") for t in times))


def _check(view: Any, expected: list[Any]) -> None:
    shown = Counter(tuple(row) for row in view)
    if shown != Counter(expected):
        raise AssertionError(f"{len(view)} rows are shown, {len(expected)} are right")


def _seconds(call: Callable[[], object]) -> float:
    begin = process_time()
    call()
    return process_time() - begin


def making(repeat: int) -> Iterator[tuple[str, float, float, float]]:
    """Milliseconds for each kind: to parse the text, to make the relation, and its view."""
    import sqlglot

    shop = Shop(1)
    for name, kind in KINDS.items():
        parse, relation, view = [], [], []
        for number in range(repeat):
            text = f"{kind.text} -- {number}"
            parse.append(_seconds(lambda: sqlglot.parse_one(text, read="duckdb")))
            found: list[Asked] = []
            relation.append(_seconds(lambda: found.append(shop.live.sql(text))))
            views: list[Any] = []
            view.append(_seconds(lambda: views.append(found[0].materialize())))
            views[0].close()
        yield name, median(parse) * 1e3, median(relation) * 1e3, median(view) * 1e3


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the measurements that the command line selects."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.sql")
    parser.add_argument("--rows", nargs="*", type=int, default=[10_000, 30])
    parser.add_argument("--repeat", type=int, default=REPEAT)
    parser.add_argument("--only", nargs="*", choices=tuple(KINDS), default=tuple(KINDS))
    given = parser.parse_args(arguments)
    print(machine())
    header = ("query", "view, µs", "methods, µs", "SQLite again", "DuckDB again")
    for count in given.rows:
        lines = []
        for name in given.only:
            g = gain(KINDS[name], count, given.repeat)
            factors = (f"{g.sqlite / g.view:.0f} x", f"{g.duck / g.view:.0f} x")
            lines.append((name, f"{g.view:.0f}", f"{g.methods:.0f}", *factors))
        print("\n".join([f"\n{count} orders", "", *markdown(header, lines)]))
    columns = ("query", "parsing, ms", "relation, ms", "view, ms")
    made = [(n, f"{p:.2f}", f"{r:.2f}", f"{v:.2f}") for n, p, r, v in making(given.repeat)]
    print("\n".join(["", *markdown(columns, made)]))


if __name__ == "__main__":
    main()

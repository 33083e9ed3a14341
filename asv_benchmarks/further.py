"""Processor time of making the first, the second and further views of queries of one shape.

python -m asv_benchmarks.further [--rounds 9] [--views 40]

The queries differ in two plain values. For the first of a shape the file is run again under
another name, so that its callables have not been read, nor its text parsed, which is part of the
time.
"""

from __future__ import annotations

import argparse
import linecache
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from asv_benchmarks.rows import Customer, Order
from asv_benchmarks.table import machine, markdown
from reactive import Count, Database, Sum
from reactive.engine.compiler import templates

Asked = Callable[[Database, Any, Any, int, int], Any]
HEADER = ("query", "first, ms", "second, ms", "further, ms", "of these the relation, ms")
WARM = 5


def with_five(db: Database, orders: Any, customers: Any, c: int, d: int) -> Any:
    return (
        orders.where(lambda o: o.quantity > c)
        .join(customers, on=lambda o, k: o.customer == k.id)
        .where(lambda o, k: k.active and o.price > d)
        .group_by(lambda o, k: k.region)
        .aggregate(Sum(lambda o, k: o.price))
    )


def with_eight(db: Database, orders: Any, customers: Any, c: int, d: int) -> Any:
    return (
        orders.where(lambda o: o.quantity > c)
        .join(customers, on=lambda o, k: o.customer == k.id)
        .where(lambda o, k: k.active and o.price > d + 500)
        .select(lambda o, k: (o.product, k.region, o.quantity * o.price))
        .group_by(lambda s: s[1])
        .aggregate(Sum(lambda s: s[2]), Count())
        .where(lambda place, total, count: total > d and count > 1)
        .select(lambda place, total, count: (place, total))
    )


def comprehension(db: Database, orders: Any, customers: Any, c: int, d: int) -> Any:
    return db.query(
        lambda: [
            (o.product, k.region, o.quantity * o.price)
            for o in orders
            if o.quantity > c
            for k in customers
            if o.customer == k.id and k.active and o.price > d
        ]
    )


def sql(db: Database, orders: Any, customers: Any, c: int, d: int) -> Any:
    return db.sql(
        "select k.region, sum(o.price), count(*)"
        " from orders o join customers k on o.customer = k.id"
        " where o.quantity > :c and o.price > :d and k.active group by k.region"
        " having sum(o.price) > :d",
        c=c,
        d=d,
    )


QUERIES = ("with_five", "with_eight", "comprehension", "sql")


def making(name: str, rounds: int, views: int) -> tuple[float, ...]:
    """Milliseconds of the first, the second and further views, and of the relations of these."""
    first, second, further, relation = [], [], [], []
    for number in range(rounds):
        templates.SHAPES.clear()
        times = _times(_anew(name, number), views, number * 1000)
        first.append(sum(times[0]))
        second.append(sum(times[1]))
        further.append(median([sum(each) for each in times[WARM:]]))
        relation.append(median([each[0] for each in times[WARM:]]))
    return tuple(median(each) * 1e3 for each in (first, second, further, relation))


def _times(ask: Asked, views: int, start: int) -> list[tuple[float, float]]:
    db = Database()
    tables = db.table(Order, name="orders"), db.table(Customer, name="customers")
    held, found = [], []
    for number in range(start + 20, start + 20 + views):
        begin = process_time()
        asked = ask(db, *tables, number, 3000 + 7 * number)
        between = process_time()
        held.append(asked.materialize())
        found.append((between - begin, process_time() - between))
    return found


def _anew(name: str, number: int) -> Asked:
    """Return a query with callables that were not lifted before."""
    text = "\n" * (number + 1) + Path(__file__).read_text()
    file = f"<further {number}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"__name__": f"further_{number}"}
    exec(compile(text, file, "exec"), names)
    made: Asked = names[name]
    return made


def main(arguments: list[str] | None = None) -> None:
    """Run the measurements that the command line selects."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.further")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--views", type=int, default=40)
    given = parser.parse_args(arguments)
    found = [(name, *making(name, given.rounds, given.views)) for name in QUERIES]
    rows = [[str(name), *(f"{each:.1f}" for each in ms)] for name, *ms in found]
    print("\n".join([machine(), "", *markdown(HEADER, rows)]))


if __name__ == "__main__":
    main()

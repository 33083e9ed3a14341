"""Many views on one table, chains of views, and views that differ in a constant."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from asv_benchmarks.cliffs.cliff import Cliff, Sides, Timed
from asv_benchmarks.turns import Ear
from reactive import Database, Relation, StaleCaptureWarning, Sum, Table

CHANGES, MADE, STALE = 100, 100, 1_000


class Sold(NamedTuple):
    id: int
    product: int
    quantity: int
    amount: int


class Product(NamedTuple):
    id: int
    kind: int


KINDS = 400
"""Kinds of products: a change reaches the view of one kind."""
Make = Callable[[Table[Sold], int], list[Any]]


def many(make: Make, views: int, others: int) -> Callable[[int], Sides]:
    """Return sides with many and few views that follow every change; the cost is per view."""

    def sides(size: int) -> Sides:
        return _changed(size, views, make), _changed(size, others, make)

    return sides


def sums(sold: Table[Sold], views: int) -> list[Any]:
    """Sums per group, of other groups in each view."""

    def view(groups: int) -> Any:
        grouped = sold.group_by(lambda s: s.product % groups)
        return grouped.aggregate(Sum(lambda s: s.amount)).materialize()

    return [view(2 + number) for number in range(views)]


def ranges(sold: Table[Sold], views: int) -> list[Any]:
    """Sums of the rows above a value, which all rows are."""

    def view(least: int) -> Any:
        big = sold.where(lambda s: s.quantity > least)
        return big.group_by(lambda s: s.product).aggregate(Sum(lambda s: s.amount)).materialize()

    return [view(-1 - number) for number in range(views)]


def kinds(size: int) -> Sides:
    """Sums of a join, each view with another constant for a field of the other table."""
    return _of_kinds(size, KINDS), _of_kinds(size, 20)


def _of_kinds(size: int, views: int) -> Timed:
    db = Database()
    sold, products = db.table(Sold, name="sold"), db.table(Product, name="products", key="id")
    products.add_all(Product(number, number % KINDS) for number in range(1_000))
    sold.add_all(_rows(size))

    def view(kind: int) -> Any:
        joined = sold.join(products, on=lambda s, p: s.product == p.id)
        of_kind = joined.where(lambda s, p: p.kind == kind)
        return of_kind.aggregate(Sum(lambda s, p: s.amount)).materialize()

    kept = [view(kind) for kind in range(views)]
    new = [Sold(-1 - number, number % 7, 5, 100 + number) for number in range(CHANGES)]

    def do(state: object) -> None:
        for row in new:
            sold.add(row)
            sold.remove(row)

    return Timed(do, 2 * CHANGES, lambda: None, lambda state: [view.value for view in kept[:20]])


def alerts(size: int) -> Sides:
    """Groups whose sum exceeds a limit, each view with another limit."""
    return _of_limits(size, KINDS), _of_limits(size, 20)


def _of_limits(size: int, views: int) -> Timed:
    db = Database()
    sold = db.table(Sold, name="sold")
    sold.add_all(_rows(size))
    sums = sold.group_by(lambda s: s.product).aggregate(Sum(lambda s: s.amount))

    def view(limit: int) -> Any:
        return sums.where(lambda product, total: total > limit).materialize()

    kept = [view(10**9 + number) for number in range(views)]
    new = [Sold(-1 - number, number % 7, 5, 100 + number) for number in range(CHANGES)]

    def do(state: object) -> None:
        for row in new:
            sold.add(row)
            sold.remove(row)

    return Timed(do, 2 * CHANGES, lambda: None, lambda state: [len(view) for view in kept[:20]])


def chain(sold: Table[Sold], levels: int) -> list[Any]:
    """Views of views, each of the one before."""
    views: list[Any] = [sold.where(lambda s: s.quantity > 0).materialize()]
    while len(views) < levels:
        views.append(views[-1].where(lambda s: s.amount > 0).materialize())
    return views


def _changed(size: int, views: int, make: Make) -> Timed:
    sold, ear = _filled(size), Ear()
    kept = make(sold, views)
    heard = [view.subscribe(ear.delta) for view in kept]
    new = [Sold(-1 - number, number % 7, 5, 100 + number) for number in range(CHANGES)]

    def ready() -> None:
        ear.calls = 0

    def do(state: object) -> None:
        for row in new:
            sold.add(row)
            sold.remove(row)

    return Timed(do, 2 * CHANGES * views, ready, lambda state: ear.calls / len(heard))


def by_materialize(size: int) -> Sides:
    """Views that differ in a constant, each made from a relation of its own; then by a family."""
    one, other = _more(size, in_family=False), _more(size, in_family=True)
    return one, other


def by_family(size: int) -> Sides:
    """The other way round."""
    other, one = by_materialize(size)
    return one, other


def _more(size: int, *, in_family: bool) -> Timed:
    """Views made beside as many as there were made before."""
    db = Database()
    sold = db.table(Sold, name="sold")
    sold.add_all(_rows(size))

    def asked(product: int) -> Relation[Sold]:
        return sold.where(lambda s: s.product == product)

    family = db.family(asked)
    before = [asked(-1 - number).materialize() for number in range(MADE)]

    def do(kept: list[Any]) -> None:
        if in_family:
            kept += [family[product] for product in range(MADE)]
        else:
            kept += [asked(product).materialize() for product in range(MADE)]

    def result(kept: list[Any]) -> object:
        return [len(view) for view in (*before, *kept)]

    return Timed(do, MADE, list, result)


def stale(size: int) -> Sides:
    """Warnings of views from one comprehension, whose variable has another value at the end."""
    return _warned(size), _warned(1)


def _warned(views: int) -> Timed:
    def ready() -> tuple[Table[Sold], list[Any]]:
        sold = Database().table(Sold, name="sold")
        product, made = 0, []
        for product in range(views):
            made.append(sold.where(lambda s: s.product == product).materialize())
        product = -1
        return sold, made

    def do(state: tuple[Table[Sold], list[Any]]) -> int:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", StaleCaptureWarning)
            for number in range(2 * len(state[1])):
                state[0].add(Sold(number, -1, 1, 1))
        return len(caught)

    return Timed(do, 1, ready, lambda state: None)


def _filled(size: int) -> Table[Sold]:
    sold = Database().table(Sold, name="sold")
    sold.add_all(_rows(size))
    return sold


def _rows(size: int) -> list[Sold]:
    return [Sold(number, number % 1_000, number % 10, number % 100) for number in range(size)]


CLIFFS = (
    *(
        Cliff(
            f"{views} views on one table{of}, a change, per view",
            "10 views",
            many(make, views, 10),
            5_000,
            most=1.3,
        )
        for of, make in (("", sums), (", of ranges that hold the row", ranges))
        for views in (30, 100)
    ),
    Cliff(
        f"{KINDS} views of a join by a field of the other table, a change",
        "20 views",
        kinds,
        5_000,
        most=2.5,
    ),
    Cliff(f"{KINDS} alerts above groups, a change", "20 alerts", alerts, 5_000, most=2.0),
    Cliff(
        "a chain of 20 views, a change, per level", "5 levels", many(chain, 20, 5), 5_000, most=1.3
    ),
    Cliff(
        "one more view that differs in a constant, `materialize`",
        "`db.family`",
        by_materialize,
        5_000,
        bare=40,
    ),
    Cliff(
        "one more view that differs in a constant, `db.family`",
        "`materialize`",
        by_family,
        5_000,
        bare=40,
    ),
    Cliff(
        "views of one comprehension, captures stale",
        "one view",
        stale,
        STALE,
        most=1.0,
        unit="warning",
    ),
)

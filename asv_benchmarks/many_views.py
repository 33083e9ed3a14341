"""Many views of one value each, up to 10,000, beside a dictionary from the value to its listener.

python -m asv_benchmarks.many_views [--views 100 1000 10000] [--rows 20000]

A change reaches one view, or none. The twin keeps the table, and for each value the rows of its
view and its listener; it serves all views by one look-up.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from random import Random
from time import process_time
from typing import Any

from asv_benchmarks.measure import SEED
from asv_benchmarks.rows import Order, order
from asv_benchmarks.table import DOCS, machine, markdown, publish
from asv_benchmarks.turns import Beside, Ear, Times, beside, in_turns, unwatched
from asv_benchmarks.workloads.counts import take_one
from reactive import Database, Table

VIEWS, ROWS = (100, 1_000, 10_000), 20_000
CHUNK, CHUNKS = 50, 12
HEADER = (
    *("views", "a change, µs", "times the twin", "of no view, µs", "times the twin"),
    "one more view, µs",
)
Ask = Callable[[Table[Order], int], Any]


def of_customer(orders: Table[Order], customer: int) -> Any:
    """Return the orders of a customer."""
    return orders.where(lambda o: o.customer == customer)


def large_of_customer(orders: Table[Order], customer: int) -> Any:
    """Return the orders of a customer for more than three pieces."""
    return orders.where(lambda o: o.quantity > 3 and o.customer == customer)


ASKED: dict[str, tuple[Ask, int]] = {
    "o.customer == c": (of_customer, 0),
    "o.quantity > 3 and o.customer == c": (large_of_customer, 3),
}
"""The queries by their conditions, each with the quantity above which it shows an order."""


class Engine:
    """A view per customer, with a subscriber each."""

    def __init__(self, asked: Ask, customers: int, ear: Ear) -> None:
        self.orders = Database().table(Order)
        self._asked, self._ear = asked, ear
        self._kept: list[Any] = []
        for customer in range(customers):
            self.view(customer)
        self.add, self.remove = self.orders.add, self.orders.remove

    def view(self, customer: int) -> None:
        """One view more."""
        view = self._asked(self.orders, customer).materialize()
        self._kept.append((view, view.subscribe(self._ear.delta)))

    def fill(self, rows: list[Order]) -> None:
        self.orders.add_all(rows)

    def shown(self) -> list[dict[Order, int]]:
        return [dict(view.zset().items()) for view, _ in self._kept]


class Twin:
    """The table as counts; of each customer with a view its orders, and whom to tell."""

    def __init__(self, above: int, customers: int, ear: Ear) -> None:
        self._above, self._ear = above, ear
        self._orders: dict[Order, int] = {}
        self._views: dict[int, tuple[dict[Order, int], Ear]] = {}
        for customer in range(customers):
            self.view(customer)

    def view(self, customer: int) -> None:
        self._views[customer] = ({}, self._ear)

    def add(self, row: Order) -> None:
        self._orders[row] = self._orders.get(row, 0) + 1
        if row.quantity > self._above:
            view = self._views.get(row.customer)
            if view is not None:
                view[0][row] = view[0].get(row, 0) + 1
                view[1].change(None, row)

    def remove(self, row: Order) -> None:
        take_one(self._orders, row)
        if row.quantity > self._above:
            view = self._views.get(row.customer)
            if view is not None:
                take_one(view[0], row)
                view[1].change(row, None)

    def fill(self, rows: list[Order]) -> None:
        for row in rows:
            self.add(row)

    def shown(self) -> list[dict[Order, int]]:
        return [rows for rows, _ in self._views.values()]


def figures(
    asked: Ask, above: int, views: int, rows: int, *, chunks: int = CHUNKS
) -> tuple[Beside, Beside, float]:
    """Microseconds of a change of one view, of one of none, and of making one view more."""
    random = Random(SEED)
    ears = Ear(), Ear()
    with unwatched():
        sides = (Engine(asked, views, ears[0]), Twin(above, views, ears[1]))
        for side in sides:
            side.fill([order(number, Random(number), views) for number in range(rows)])
        wanted: Times = ([], [])
        unwanted: Times = ([], [])
        for chunk in range(chunks):
            for times, first in ((wanted, 0), (unwanted, views)):
                some = [
                    Order(-1 - chunk * CHUNK - n, first + random.randrange(views), 1, above + 1, 1)
                    for n in range(CHUNK)
                ]
                in_turns(sides, times if chunk else ([], []), _there_and_back(some), 2 * CHUNK)
        if sides[0].shown() != sides[1].shown() or not ears[0].calls:
            raise AssertionError("the views differ")
        start = process_time()
        for customer in range(views, views + CHUNK):
            sides[0].view(customer)
        more = (process_time() - start) / CHUNK * 1e6
    return beside(wanted), beside(unwanted), more


def _there_and_back(rows: list[Order]) -> Callable[[Any], None]:
    def change(side: Any) -> None:
        for row in rows:
            side.add(row)
        for row in rows:
            side.remove(row)

    return change


def main(arguments: list[str] | None = None) -> None:
    """Run the measurements that the command line selects."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.many_views")
    parser.add_argument("--views", type=int, nargs="*", default=VIEWS, help="how many views")
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of the table")
    parser.add_argument("--write", action="store_true", help=f"put it into {DOCS.name}")
    options = parser.parse_args(arguments)
    lines = [f"Tables of {options.rows:,} rows; medians. {machine()}"]
    for title, (asked, above) in ASKED.items():
        rows = [_cells(v, *figures(asked, above, v, options.rows)) for v in options.views]
        lines += ["", f"`{title}`", "", *markdown(HEADER, rows)]
    publish("\n".join(lines), "many_views", write=options.write)


def _cells(views: int, wanted: Beside, unwanted: Beside, more: float) -> list[str]:
    found = [f"{views:,}"]
    for each in (wanted, unwanted):
        found += [f"{each.engine:.1f}", f"{each.ratio:.2f}"]
    return [*found, f"{more:,.0f}"]


if __name__ == "__main__":
    main()

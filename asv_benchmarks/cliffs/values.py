"""Many views of one value each, with a second condition beside the equation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from asv_benchmarks.cliffs.cliff import Cliff, Sides, Timed
from asv_benchmarks.turns import Ear
from reactive import Database, Relation, Table

VIEWS, FEW, MANY = 1_000, 100, 10_000
CHANGES, MADE = 50, 100
QUANTITY = 5
STEP = 1_000
"""The distance between the values of views of a range."""


class Sold(NamedTuple):
    id: int
    customer: int
    quantity: int
    amount: int


Asked = Callable[[Table[Sold], int], Relation[*tuple[Any, ...]]]


def equation(sold: Table[Sold], c: int) -> Relation[Sold]:
    return sold.where(lambda s: s.customer == c)


def residual(sold: Table[Sold], c: int) -> Relation[Sold]:
    return sold.where(lambda s: s.customer == c and s.quantity > 3)


def other_order(sold: Table[Sold], c: int) -> Relation[Sold]:
    return sold.where(lambda s: s.quantity > 3 and s.customer == c)


def above(sold: Table[Sold], c: int) -> Relation[Sold]:
    return sold.where(lambda s: s.amount > c * STEP)


def member(sold: Table[Sold], c: int) -> Relation[Sold]:
    d = -1 - c
    return sold.where(lambda s: s.customer in (c, d))


CONDITIONS: dict[str, Asked] = {
    "`s.customer == c and s.quantity > 3`": residual,
    "`s.quantity > 3 and s.customer == c`": other_order,
    "`s.amount > c`": above,
    "`s.customer in (c, d)`": member,
}


def change(asked: Asked, views: int, of: Asked = equation, others: int = 0) -> Any:
    """Insert and delete a row of one view; beside fewer views, or the equation."""

    def sides(size: int) -> Sides:
        ours, its = _scaled(views, size), _scaled(others or views, size)
        return _changed(asked, size, ours, 0), _changed(of, size, its, 0)

    return sides


def unwanted(size: int) -> Sides:
    """Insert and delete a row that no view shows."""
    many, few = _scaled(MANY, size), _scaled(FEW, size)
    return _changed(equation, size, many, many), _changed(equation, size, few, few)


def making(asked: Asked) -> Any:
    """Views are made over a table that is filled."""

    def sides(size: int) -> Sides:
        return _made(asked, size), _made(equation, size)

    return sides


def _changed(asked: Asked, size: int, views: int, first: int) -> Timed:
    """Changes of the customers from this one on."""
    sold, ear = _filled(size), Ear()
    kept = [asked(sold, c).materialize() for c in range(views)]
    heard = [view.subscribe(ear.delta) for view in kept]
    amount = 1 if asked is above else 0
    new = [Sold(-1 - n, first or n * views // CHANGES, QUANTITY, amount) for n in range(CHANGES)]

    def ready() -> None:
        ear.calls = 0

    def do(state: object) -> None:
        for row in new:
            sold.add(row)
            sold.remove(row)

    return Timed(do, 2 * CHANGES, ready, lambda state: (ear.calls, bool(heard)))


def _made(asked: Asked, size: int) -> Timed:
    """Make views beside as many existing ones."""
    sold = _filled(size)
    before = [asked(sold, MADE + c).materialize() for c in range(MADE)]
    expected = {c: sum(_shows(asked, row, c) for row in sold) for c in (0, MADE // 2, MADE - 1)}

    def do(kept: list[Any]) -> None:
        kept += [asked(sold, c).materialize() for c in range(MADE)]

    def result(kept: list[Any]) -> bool:
        return bool(before) and all(len(kept[c]) == number for c, number in expected.items())

    return Timed(do, MADE, list, result)


def _shows(asked: Asked, row: Sold, c: int) -> bool:
    """Return True if the view for a value shows a row."""
    if asked is above:
        return row.amount > c * STEP
    return row.customer == c and (row.quantity > 3 or asked in (equation, member))


def _filled(size: int) -> Table[Sold]:
    """Return rows of customers by their own number; only the first is above a value."""
    sold = Database().table(Sold, name="sold")
    sold.add_all(Sold(n, n % 5_000, n % 10, 0) for n in range(size))
    return sold


def _scaled(views: int, size: int) -> int:
    """Return the number of views, at most the rows of the table."""
    return min(views, size)


NEIGHBOUR = "`s.customer == c`"
CLIFFS = (
    *(
        Cliff(f"1,000 views {title}, a change", NEIGHBOUR, change(asked, VIEWS), 20_000, most=1.3)
        for title, asked in CONDITIONS.items()
    ),
    *(
        Cliff(
            f"one more view {title}, made over 20,000 rows",
            NEIGHBOUR,
            making(asked),
            20_000,
            bare=100,
        )
        for title, asked in CONDITIONS.items()
    ),
    Cliff(
        "10,000 views of one value each, a change",
        "100 views",
        change(equation, MANY, equation, FEW),
        20_000,
        bare=15,
    ),
    Cliff("10,000 views, a row nobody wants", "100 views", unwanted, 20_000, bare=5),
)

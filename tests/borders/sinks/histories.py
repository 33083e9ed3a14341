"""Generated histories of a table, a view of it, and processes that end in the middle of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from reactive import Count, Database, Max, OffloadError, Sink, Sum, Table
from reactive.api.view import AnyView
from tests.borders.sinks.crashing import Crash


@dataclass(frozen=True, slots=True)
class Sale:
    """A row; it may be in the table more than once."""

    town: str | None
    price: float


class Town(NamedTuple):
    """The aggregates of a town."""

    name: str | None
    prices: float


def the_rows(sales: Table[Sale]) -> AnyView:
    """A bag."""
    return sales.where(lambda s: s.price != 2.0).materialize("rows")


def per_town(sales: Table[Sale]) -> AnyView:
    """Group sales, so that a changed group replaces the former one."""
    found = sales.group_by(lambda s: s.town).aggregate(Count(), Sum(lambda s: s.price))
    return found.materialize("towns")


def named(sales: Table[Sale]) -> AnyView:
    """Rows of a class of their own, and no two alike."""
    best = sales.group_by(lambda s: s.town).aggregate(Max(lambda s: s.price))
    return best.select(lambda town, best: Town(town, best)).materialize("named")


VIEWS: dict[Callable[[Table[Sale]], AnyView], Any] = {
    the_rows: None,
    per_town: tuple[str | None, int, float],
    named: None,
}
"""Queries of views, with the row type that is declared."""
TOWNS = (None, "a", "b", "ü")
PRICES = (0.0, -0.0, 0.1, 2.0, 1e300, float("nan"))


@dataclass
class Shop:
    """The sales of a process; when it ends, the next process begins with equal sales."""

    random: Random
    make_view: Callable[[Table[Sale]], AnyView]
    make_sink: Callable[[AnyView], Sink]
    rows: list[Sale] = field(default_factory=list)
    """The rows that the table must hold."""
    crashes: int = 0

    def begin(self) -> None:
        """A process with a view and a sink."""
        self.begin_in(Database())

    def begin_in(self, db: Database) -> None:
        """Begin in the database `db`."""
        self.db = db
        self.sales: Table[Sale] = self.db.table(Sale, name="sales")
        self.sales.add_all(self.rows)
        self.view = self.make_view(self.sales)
        self.sink = self.make_sink(self.view)

    def move(self) -> None:
        """Offload the parts of the view, or recall them."""
        if self.random.random() < 0.5:
            self.view.recall()
        else:
            with suppress(OffloadError):
                self.view.offload()

    def change(self) -> None:
        """Add and remove some rows."""
        for _ in range(self.random.randrange(4)):
            if self.rows and self.random.random() < 0.4:
                gone = self.rows.pop(self.random.randrange(len(self.rows)))
                self.sales.remove(gone)
            else:
                row = Sale(self.random.choice(TOWNS), self.random.choice(PRICES))
                self.rows.append(row)
                self.sales.add(row)

    def surely(self, act: Callable[[], object]) -> None:
        """Do it; if the process ends, in another one."""
        while True:
            try:
                act()
                return
            except Crash:
                self.crashes += 1
                self.begin_again()

    def begin_again(self) -> None:
        """Start the next process, which may crash during its start."""
        while True:
            try:
                self.begin()
                return
            except Crash:
                self.crashes += 1


def bag(rows: Any) -> Counter[Any]:
    """Rows as they compare, every NaN alike, without their classes."""
    return Counter(map(_shown, rows))


def _shown(row: Any) -> Any:
    if isinstance(row, Sale):
        return (row.town, _shown(row.price))
    if isinstance(row, tuple):
        return tuple(map(_shown, row))
    return "NaN" if row != row else row

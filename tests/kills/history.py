"""A random history of three tables, and the expected rows of their views after each flush.

    orders (town, amount) --join--> towns (id, name)    group by name: count and exact sum
    notes, of any rows                                  group by the first: largest, and all

State:  the rows of the tables.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from random import Random
from typing import Any

AMOUNTS = (0.1, 0.2, 1e16, -1e16, 7.5, -0.3, 2.0**-60)
NOTES = (1, 2.5, "a", True, None, (1, "b"), 2**70)
TOWNS, NAMES, MOST = 6, "abc", 12

Change = tuple[str, Any, int]
"""The table, a row, and 1 for an insert or -1 for a delete."""


@dataclass(frozen=True, slots=True)
class Order:
    """A row of a known type."""

    id: int
    town: int
    amount: float


@dataclass(frozen=True, slots=True)
class Town:
    """A town, the join partner of orders."""

    id: int
    name: str


@dataclass
class History:
    """The rows after some flushes; two of one seed are the same.

    Examples
    --------
    >>> one, other = History(7), History(7)
    >>> [one.step() == other.step() for _ in range(3)]
    [True, True, True]
    """

    seed: int
    tables: dict[str, Counter[Any]] = field(
        default_factory=lambda: {name: Counter() for name in ("orders", "towns", "notes")}
    )

    def __post_init__(self) -> None:
        self._random = Random(self.seed)

    def step(self) -> list[Change]:
        """The changes of the next flush; the tables have them from now on."""
        return [self._change() for _ in range(self._random.randrange(MOST))]

    def _change(self) -> Change:
        draw = self._random
        name = draw.choice(("orders", "orders", "towns", "notes"))
        rows = self.tables[name]
        if rows and draw.random() < 0.4:
            row, weight = draw.choice(list(rows)), -1
        else:
            row, weight = self._row(name), 1
        rows[row] += weight
        if not rows[row]:
            del rows[row]
        return name, row, weight

    def _row(self, name: str) -> Any:
        draw = self._random
        if name == "orders":
            return Order(draw.randrange(30), draw.randrange(TOWNS), draw.choice(AMOUNTS))
        if name == "towns":
            return Town(draw.randrange(TOWNS), draw.choice(NAMES))
        return draw.randrange(4), draw.choice(NOTES)

    def totals(self) -> Counter[Any]:
        """Return the number of orders and the sum of their amounts per name of a town."""
        amounts: dict[str, list[float]] = defaultdict(list)
        for order, n in self.tables["orders"].items():
            for town, m in self.tables["towns"].items():
                if order.town == town.id:
                    amounts[town.name] += [order.amount] * (n * m)
        return Counter({(name, len(some), math.fsum(some)): 1 for name, some in amounts.items()})

    def notes(self) -> dict[int, Counter[Any]]:
        """Return the notes per number."""
        found: dict[int, Counter[Any]] = defaultdict(Counter)
        for (number, note), n in self.tables["notes"].items():
            found[number][note] += n
        return dict(found)

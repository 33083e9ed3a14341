"""What a plan holds of a window: a reducer of partitions that keeps them.

    (bindings, partition, keys, arguments)    ->    (*bindings, *answers)

Of a partition as a whole it is asked as of one that has just come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from functools import partial
from typing import Any

from optimizer.expressions.knowledge import Shape
from optimizer.record import record
from reactive.languages.sql.partitions import extremes, places, totals, values
from reactive.languages.sql.partitions.frames import Order
from reactive.languages.sql.partitions.function import Asked, Function
from reactive.languages.sql.partitions.kept import Kept, Made
from reactive.languages.sql.runtime.sort_keys import Directions, key_of

NAMED: dict[str, Callable[[Asked], Function]] = {
    **places.PLACES,
    "shifted": values.shifted,
    "nth": values.nth,
    "count": totals.totalled,
    "sum": totals.totalled,
    "avg": totals.totalled,
    "min": extremes.extreme,
    "max": extremes.extreme,
}


@record
class Window:
    """What `reduce` calls for each partition, or has it keep. `limit` is one of the functions by
    its number, and the greatest answer of it with which a row is shown."""

    directions: Directions
    functions: tuple[Asked, ...]
    shape: Shape = field(default=None, compare=False)
    limit: tuple[int, int] | None = None
    drops: bool = False

    def __call__(self, partition: Any, rows: Any) -> list[tuple[Any, ...]]:
        return [row for row, weight in self.kept()().step([(row, 1) for row in rows])]

    def kept(self) -> Callable[[], Kept]:
        """What makes an empty partition."""
        functions = tuple(_made(asked) for asked in self.functions)
        is_descending = bool(self.directions) and self.directions[0][0]
        made = Made(key_of(self.directions), functions, self._cut(), is_descending, self.drops)
        return partial(Kept, made)

    def limited(self, item: int, most: int) -> Window | None:
        """The same without rows of which an item is greater; None if that helps nothing."""
        width = len(self.shape) if isinstance(self.shape, tuple) else 0
        number = item - (width - len(self.functions))
        if self.limit is not None or not 0 <= number < len(self.functions):
            return None
        names = [asked.function for asked in self.functions]
        return replace(self, limit=(number, most)) if _can_cut(names[number], names) else None

    def dropping(self) -> Window:
        """The same without the rows of partitions of which something raises."""
        return replace(self, drops=True)

    def _cut(self) -> Callable[[Order], int]:
        if self.limit is None:
            return _all_rows
        number, most = self.limit
        name = self.functions[number].function
        assert isinstance(name, str)
        return partial(CUTS[name], max(0, most))


def _made(asked: Asked) -> Function:
    if isinstance(asked.function, str):
        return NAMED[asked.function](asked)
    return totals.folded(asked)


def _can_cut(name: Any, others: list[Any]) -> bool:
    """NTILE is kept up by what it said of all rows."""
    return isinstance(name, str) and name in CUTS and "ntile" not in others


def _all_rows(order: Order) -> int:
    return order.entries.size


def _first_rows(most: int, order: Order) -> int:
    return min(most, order.entries.size)


def _first_ranks(most: int, order: Order) -> int:
    return (
        order.entries.size if most >= order.entries.size else order.behind(most - 1) if most else 0
    )


def _first_groups(most: int, order: Order) -> int:
    place = 0
    for _ in range(most):
        if place == order.entries.size:
            break
        place = order.behind(place)
    return place


CUTS: dict[str, Callable[[int, Order], int]] = {
    "row_number": _first_rows,
    "rank": _first_ranks,
    "dense_rank": _first_groups,
}

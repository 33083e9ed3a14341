"""Windows in a plan: a reducer that keeps the state of partitions.

    (bindings, partition, keys, arguments)    ->    (*bindings, *answers)

Called for a whole partition, it treats all rows as inserted.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import field, replace
from functools import partial
from typing import Any

from optimizer.callables.opaque import Opaque
from optimizer.expressions.knowledge import Shape
from optimizer.plans.facts import Cost
from optimizer.record import record
from reactive.engine.collections.value_order import Directions
from reactive.engine.operators.windows.accumulated import make_accumulated
from reactive.engine.operators.windows.effects import describe_column, is_positional
from reactive.engine.operators.windows.extremes import make_extreme
from reactive.engine.operators.windows.facts import OUTPUT_ROWS, HeldParts, WindowFacts, find_near
from reactive.engine.operators.windows.frames import UNBOUNDED, Order
from reactive.engine.operators.windows.function import Asked, Function, make_fold_of_frames
from reactive.engine.operators.windows.groups import WindowGroups
from reactive.engine.operators.windows.near import NearChanges
from reactive.engine.operators.windows.other_rows import make_nth_value, make_shift
from reactive.engine.operators.windows.partition import WindowPartition
from reactive.engine.operators.windows.placed import OF_PEERS, PlacedRows
from reactive.engine.operators.windows.places import PLACES
from reactive.engine.operators.windows.scans import make_scan, steps_of
from reactive.engine.operators.windows.sort_keys import SortKeys, hash_of, tie_of
from reactive.engine.operators.windows.totals import make_total

OF_PLACES_READ = (
    "a view of order_by needs no column for places: view.index(row) finds the place of a row when\n"
    "  it is read, in O(log rows), and a change is one edit; a view whose window has places alone\n"
    "  computes them when it is read"
)
OF_PLACES_KEPT = (
    "itself: places are computed when the view is read, and delta.places is an edit\n"
    "  for a reader of delta.added or delta.removed, or of a view that is a query's input:"
)
NAMED: dict[str, Callable[[Asked], Function]] = {
    **PLACES,
    "shifted": make_shift,
    "nth": make_nth_value,
    "count": make_total,
    "sum": make_total,
    "avg": make_total,
    "min": make_extreme,
    "max": make_extreme,
    "accumulated": make_accumulated,
    "scan": make_scan,
}


@record
class Window:
    """The function that `reduce` calls for each partition, with or without state.

    `limit` is the number of one of the functions, and the greatest answer of it in the output.
    """

    directions: Directions
    functions: tuple[Asked, ...]
    shape: Shape = field(default=None, compare=False)
    limit: tuple[int, int] | None = None
    drops: bool = False

    def __call__(self, partition: Any, rows: Any) -> list[tuple[Any, ...]]:
        return [row for row, weight in self.kept()().step([(row, 1) for row in rows])]

    @property
    def operator(self) -> type[WindowGroups]:
        """The operator that keeps the partitions."""
        return WindowGroups

    @property
    def callables(self) -> tuple[Opaque, ...]:
        """The user's callables that its functions call."""
        return steps_of(self.functions)

    @property
    def cost(self) -> Cost:
        """The cost of a changed row: `GROUP` if answers of all rows behind it may change."""
        if self.limit is not None:
            return Cost.LOG
        return max(map(_cost_of, self.functions))

    @property
    def is_dear_by_scans(self) -> bool:
        """True if no other function than scans may change the answers of all rows behind one."""
        dear = [asked for asked in self.functions if _cost_of(asked) is Cost.GROUP]
        return all(asked.function == "scan" for asked in dear)

    def describe_costs(self, *, are_read: bool = False) -> list[str]:
        """Return for each function the rows whose answers a changed row may change.

        are_read: True if places are computed when they are read.
        """
        if self.limit is not None:
            number, most = self.limit
            return [f"all columns: rows up to {self.functions[number].function} {most}"]
        found = [describe_column(asked) for asked in self.functions]
        if are_read:
            return [OF_PLACES_KEPT, *(f"  {each}" for each in found)]
        if any(map(is_positional, self.functions)):
            found.append(OF_PLACES_READ)
        return found

    def kept(self) -> Callable[[], WindowPartition]:
        """Return the function that makes an empty partition."""
        made = self.made()
        near = find_near(made.functions, is_limited=self.limit is not None)
        return partial(WindowPartition, made, None if near is None else NearChanges(made, near))

    def made(self) -> WindowFacts:
        """Return the facts that all partitions share."""
        functions = tuple(_build_function(asked) for asked in self.functions)
        tie = hash_of if all(map(is_of_peers, self.functions)) else tie_of
        held = self._held_parts()
        return WindowFacts(
            *(SortKeys(self.directions), tie, held, functions, self._cut(), self.drops),
            OUTPUT_ROWS[held.is_wide, len(functions) == 1],
        )

    def placed(
        self,
        key: Callable[[Any], Any],
        show: Any,
        inside: Callable[[], AbstractContextManager[None]],
    ) -> PlacedRows:
        """Return the operator that computes places when they are read; `show` runs the chain above.

        inside: the context in which state that only commits change may be read.
        """
        names = frozenset(str(asked.function) for asked in self.functions)
        return PlacedRows(key, self.made(), names, show, inside)

    @property
    def are_places(self) -> bool:
        """True if all answers follow from the places of rows, and no rows are left out."""
        names = [asked.function for asked in self.functions]
        return self.limit is None and all(name in PLACES for name in names)

    def _held_parts(self) -> HeldParts:
        """Return which parts of a row a partition holds."""
        has_key = any(asked.frame.is_by_distance for asked in self.functions)
        read = sorted(set[int]().union(*map(_arguments_of, self.functions)))
        is_wide = not isinstance(self.shape, tuple) or len(self.shape) != len(self.functions) + 1
        return HeldParts(is_wide, read[0] if len(read) == 1 and not has_key else None, has_key)

    def limited(self, item: int, most: int) -> Window | None:
        """Return the window limited to answers of `item` up to `most`; None if it cannot be."""
        width = len(self.shape) if isinstance(self.shape, tuple) else 0
        number = item - (width - len(self.functions))
        if self.limit is not None or not 0 <= number < len(self.functions):
            return None
        names = [asked.function for asked in self.functions]
        return replace(self, limit=(number, most)) if _can_cut(names[number], names) else None

    def dropping(self) -> Window:
        """Return the window without the rows of partitions for which a function raises."""
        return replace(self, drops=True)

    def _cut(self) -> Callable[[Order], int]:
        """Return the function that counts the rows of a partition within the limit."""
        if self.limit is None:
            return _all_rows
        number, most = self.limit
        name = self.functions[number].function
        assert isinstance(name, str)
        return partial(CUTS[name], max(0, most))


def _build_function(asked: Asked) -> Function:
    """Return the function of a call, by its name or for its callable."""
    if isinstance(asked.function, str):
        return NAMED[asked.function](asked)
    return make_fold_of_frames(asked)


def _arguments_of(asked: Asked) -> set[int]:
    """Return the places of the arguments that a function reads."""
    default = asked.more[1] if asked.function == "shifted" else None
    return {place for place in (asked.argument, default) if place is not None}


def _cost_of(asked: Asked) -> Cost:
    """Return the cost of a function: that of the rows whose answers a changed row may change."""
    if asked.function == "ntile" or (asked.function == "shifted" and not asked.ignores_nulls):
        return Cost.LOG
    frame = asked.frame
    if asked.function in PLACES or UNBOUNDED in (frame.start, frame.end):
        return Cost.GROUP
    return Cost.LOG if frame.kind == "rows" else Cost.MATCHES


def is_of_peers(asked: Asked) -> bool:
    """Return True if rows with equal keys have equal answers, in whatever order they stand."""
    if asked.function in OF_PEERS:
        return True
    frame = asked.frame
    is_by_key = frame.is_whole or (frame.kind != "rows" and not frame.exclude)
    return is_by_key and asked.function in ANSWERS_OF_SETS


ANSWERS_OF_SETS = frozenset({"count", "sum", "avg", "min", "max"})
"""Functions of a frame that no order of its rows changes."""


def _can_cut(name: Any, others: list[Any]) -> bool:
    """Return True if the function allows a limit; NTILE needs the answers of all rows."""
    return isinstance(name, str) and name in CUTS and "ntile" not in others


def _all_rows(order: Order) -> int:
    return order.entries.size


def _first_rows(most: int, order: Order) -> int:
    return min(most, order.entries.size)


def _first_ranks(most: int, order: Order) -> int:
    """Return the number of rows with a rank up to `most`: peers of a row are included."""
    return (
        order.entries.size if most >= order.entries.size else order.behind(most - 1) if most else 0
    )


def _first_groups(most: int, order: Order) -> int:
    """Return the number of rows in the first `most` groups of equal keys."""
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

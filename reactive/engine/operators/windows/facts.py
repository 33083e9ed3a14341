"""Facts that all partitions of a window share: how rows are held, ordered, evaluated and shown.

inserted    ((order,), (customer,), (day,), (amount,))
held        sort key, head, cell        day, order, amount
shown       (order, answer)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from optimizer.record import record
from reactive.engine.operators.windows.entries import Entries, Row, Tie
from reactive.engine.operators.windows.frames import Order
from reactive.engine.operators.windows.function import Function
from reactive.engine.operators.windows.sort_keys import SortKeys

Packed = tuple[Any, ...]
"""A row as it is inserted: its bindings, its partition, its key values, and its arguments."""


@record
class HeldParts:
    """The parts of a row that a partition holds.

    `single` is the place of the only argument that functions read, if it is the only one.
    """

    is_wide: bool
    """True unless a row has one binding, which is in no tuple."""
    single: int | None
    has_key: bool
    """True if the value of the first key is held, behind the arguments."""

    def cell(self, row: Packed) -> Any:
        """Return the arguments, of which one alone is in no tuple."""
        if self.has_key:
            return (*row[3], row[2][0])
        return row[3] or None if self.single is None else row[3][self.single]


@record
class WindowFacts:
    """The facts that all partitions of a window share."""

    keys: SortKeys
    tie: Tie
    held: HeldParts
    functions: tuple[Function, ...]
    cut: Callable[[Order], int]
    """Return the number of rows within the limit."""
    drops: bool
    """True if a partition emits nothing while one of its functions raises."""

    def order_of(self, entries: Entries) -> Order:
        return Order(entries, self.keys, is_single=self.held.single is not None)

    def parts(self, row: Packed) -> Row:
        """Return a row as the partition holds it."""
        held, head = self.held, row[0]
        cell = held.cell(row) if held.single is None else row[3][held.single]
        return self.keys.of(row[2]), head if held.is_wide else head[0], cell

    def columns(self, rows: Sequence[Packed]) -> tuple[list[Any], list[Any], list[Any]]:
        """Return rows as columns of the parts that the partition holds."""
        keys, held = self.keys.of_many([row[2] for row in rows]), self.held
        heads = [row[0] for row in rows]
        if not held.is_wide:
            heads = [head for (head,) in heads]
        if held.single is None:
            return keys, heads, list(map(held.cell, rows))
        return keys, heads, [row[3][held.single] for row in rows]

    def output_row(self, head: Any, said: Any) -> Any:
        """Return a row of the output: the bindings with the answers."""
        answers = (said,) if len(self.functions) == 1 else said
        return (*head, *answers) if self.held.is_wide else (head, *answers)

    def output_rows(self, heads: Iterable[Any], shown: Iterable[Any]) -> list[Any]:
        """Return rows of the output, as `output_row`."""
        pairs = zip(heads, shown, strict=False)
        match self.held.is_wide, len(self.functions) == 1:
            case False, True:
                return list(pairs)
            case False, False:
                return [(head, *said) for head, said in pairs]
            case True, True:
                return [(*head, said) for head, said in pairs]
            case _:
                return [(*head, *said) for head, said in pairs]

"""Rows that a table holds several times: how often, beside the object that stands for all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from reactive.engine.collections.zset import Row


class Copies:
    """A row that is there several times."""

    __slots__ = ("count", "row")

    def __init__(self, row: Row, count: int) -> None:
        self.row = row
        self.count = count


NONE: Any = Copies(None, 0)


def row_of(kept: Row | Copies) -> Row:
    return kept.row if kept.__class__ is Copies else kept


def count_again(
    held: dict[Any, Any], rows: Sequence[Row], kept: list[Any], new: int, counted: list[Row]
) -> None:
    """Count rows that were held already; the `new` ones are the last of all, in their order.

    `kept` is what was found of each, and becomes the rows. `counted` gets what was counted.
    """
    fresh = list(islice(reversed(held), new))
    for place, row in enumerate(rows):
        if fresh and row is fresh[-1]:
            fresh.pop()
            continue
        found = held[row]
        if found.__class__ is Copies:
            found.count += 1
            kept[place] = found.row
        else:
            held[row] = Copies(found, 2)
        counted.append(row)


def uncount(held: dict[Any, Any], row: Row) -> None:
    """Take a row back that was counted."""
    found = held[row]
    found.count -= 1
    if found.count == 1:
        held[row] = found.row

"""Rows as a tree of columns: a record is a column per field, without Python objects.

    Link(src, dst)     Tree(Link, src = [1, 1, 2], dst = [2, 3, 3])

Columns are of integers of 64 bits and of finite floats. The columns of selected rows are computed
when they are read.

State:  none.
Cost:   O(rows) for a column, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from spark_backend.codec.arrow import arrow_type
from spark_backend.codec.schema import Plain, Record, Typed

Array = Any
"""An array of numpy."""


class NotColumnar(Exception):
    """The reason why columns cannot be used."""


class Leaf:
    """A column, with values of kind `int` or `float`."""

    __slots__ = ("_made", "_make", "kind")

    def __init__(self, kind: type, make: Callable[[], Array]) -> None:
        self.kind = kind
        self._make: Callable[[], Array] | None = make
        self._made: Array = None

    @property
    def values(self) -> Array:
        """The values, computed at the first access."""
        if self._make is not None:
            self._made, self._make = self._make(), None
        return self._made


@dataclass(frozen=True, slots=True)
class Tree:
    """The columns of a record."""

    kind: Any
    names: tuple[str, ...]
    parts: tuple[Rows, ...]

    def field_rows(self, name: str) -> Rows:
        """Return a field. Raises `NotColumnar` if there is no such field."""
        if name not in self.names:
            raise NotColumnar(f"no field {name}")
        return self.parts[self.names.index(name)]

    def at(self, place: Any) -> Rows:
        """Return an item of a tuple.

        Raises `NotColumnar` if there is no such item, or `place` is negative.
        """
        if not issubclass(self.kind, tuple) or type(place) is not int:
            raise NotColumnar(f"no item {place}")
        if not 0 <= place < len(self.parts):
            raise NotColumnar(f"no item {place}")
        return self.parts[place]


Rows = Leaf | Tree
Weighted = tuple[Rows, Array]
"""Rows with their weights."""


def tuple_tree(parts: Sequence[Rows]) -> Tree:
    """Return rows that are plain tuples of the parts."""
    return Tree(tuple, tuple(f"_{place}" for place in range(len(parts))), tuple(parts))


def leaf_columns(rows: Rows) -> Iterator[Leaf]:
    """Yield all columns."""
    if isinstance(rows, Leaf):
        yield rows
    else:
        for part in rows.parts:
            yield from leaf_columns(part)


def map_columns(rows: Rows, change: Callable[[Leaf], Leaf]) -> Rows:
    """Apply a function to each column of rows."""
    if isinstance(rows, Leaf):
        return change(rows)
    return Tree(rows.kind, rows.names, tuple(map_columns(part, change) for part in rows.parts))


def take_rows(rows: Rows, at: Array) -> Rows:
    """Return the rows at some positions, in the order of the positions."""
    return map_columns(rows, lambda leaf: Leaf(leaf.kind, lambda: leaf.values[at]))


def concat_rows(some: Sequence[Rows]) -> Rows:
    """Concatenate rows.

    Raises
    ------
    NotColumnar: the rows have different types.
    """
    return reduce(_concat_two, some)


def _concat_two(one: Rows, other: Rows) -> Rows:
    """Return the rows of both, one after the other. Raises `NotColumnar` if their types differ."""
    if isinstance(one, Leaf) and isinstance(other, Leaf) and one.kind is other.kind:
        return Leaf(one.kind, lambda: np.concatenate((one.values, other.values)))
    if not isinstance(one, Tree) or not isinstance(other, Tree):
        raise NotColumnar("rows of different kinds")
    if one.kind is not other.kind or len(one.parts) != len(other.parts):
        raise NotColumnar("rows of different kinds")
    pairs = zip(one.parts, other.parts, strict=True)
    return Tree(one.kind, one.names, tuple(_concat_two(a, b) for a, b in pairs))


def net_rows(rows: Rows, weights: Array) -> Weighted:
    """Return each row once, with the sum of its weights, without rows whose sum is 0."""
    columns = [leaf.values for leaf in leaf_columns(rows)]
    order = np.lexsort(columns)
    new = np.zeros(len(order), bool)
    new[:1] = True
    for values in columns:
        ordered = values[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(new)
    summed = np.add.reduceat(weights[order], starts) if len(starts) else weights
    left = summed != 0
    return take_rows(rows, order[starts[left]]), summed[left]


def tree_from_arrow(of: Typed, array: pa.Array) -> Rows:
    """Return the columns of Arrow rows of a type.

    Raises
    ------
    NotColumnar: a value is None, or of a type without columns.
    """
    if array.null_count:
        raise NotColumnar("None")
    if isinstance(of, Record):
        pairs = zip(of.fields, array.flatten(), strict=True)
        return Tree(of.kind, of.names, tuple(tree_from_arrow(field, part) for field, part in pairs))
    if not isinstance(of, Plain) or of.kind not in (int, float) or of.is_wide:
        raise NotColumnar(f"{of.kind.__name__}")
    values = array.to_numpy(zero_copy_only=False)
    if of.kind is float and not np.isfinite(values).all():
        raise NotColumnar("infinity or NaN")
    return Leaf(of.kind, lambda: values)


def tree_to_arrow(of: Typed, rows: Rows) -> pa.Array:
    """Return the rows as an Arrow array of a type.

    Raises
    ------
    NotColumnar: the rows are of another type, or contain a float that is not finite.
    """
    if isinstance(of, Record) and isinstance(rows, Tree):
        if of.kind is not rows.kind or len(of.fields) != len(rows.parts):
            raise NotColumnar("rows of another type")
        parts = [
            tree_to_arrow(field, part) for field, part in zip(of.fields, rows.parts, strict=True)
        ]
        kept = arrow_type(of)
        return pa.StructArray.from_arrays(parts, fields=list(kept))
    if not isinstance(of, Plain) or not isinstance(rows, Leaf) or of.kind is not rows.kind:
        raise NotColumnar("rows of another type")
    if of.kind is float and not np.isfinite(rows.values).all():
        raise NotColumnar("infinity or NaN")
    return pa.array(rows.values, arrow_type(of))

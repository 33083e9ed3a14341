"""A tuple of many rows that shares structure with the one that it was made of.

What is inside of a nest in an order is a tuple of up to 64 rows, and this of more. A change of one
row makes another one in O(log rows), and its hash, a sum over the rows, changes by that row.

State:  the tree (`order_tree.py`).
Cost:   of a place O(log rows); of a whole, O(rows).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, TypeVar, overload

from optimizer.expressions.knowledge import Foldable
from reactive.engine.collections import order_tree
from reactive.engine.collections.weight_tree import PRIME, without_equal
from reactive.engine.collections.zset import Row

T = TypeVar("T", covariant=True)
FEW = 64
"""Rows up to which what is inside of a nest in an order is a tuple."""
SALT = 0x2545F491


def mark(row: Row) -> int:
    """What a row adds to the hash of those that have it."""
    return hash((row, SALT))


class LongTuple(Sequence[T], Foldable):
    """Rows in an order, as a tuple has them: hashable, immutable, equal in order.

    Its hash changes in O(1) where a row does, which that of a tuple cannot. Equal values have equal
    hashes, or sets, dictionaries and joins do not find them: so one of more than 64 rows equals no
    tuple, but `tuple(rows)` does. Up to 64 rows it equals the tuple, and has its hash.

    >>> rows = LongTuple(range(1000))
    >>> rows[-1], rows[3:5], len(rows), 7 in rows
    (999, (3, 4), 1000, True)
    >>> rows == LongTuple(range(1000)), rows == tuple(rows)
    (True, False)
    """

    __slots__ = ("_hash", "_sum", "_tree")

    def __init__(self, rows: Iterable[T] = ()) -> None:
        every = tuple(rows)
        self._tree = order_tree.made_of(every, every)
        self._sum: int | None = None
        self._hash: int | None = None

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[T, ...]: ...
    def __getitem__(self, place: int | slice) -> Any:
        """A row, or those of a slice as a tuple."""
        size = len(self)
        if isinstance(place, slice):
            start, stop, step = place.indices(size)
            if step == 1:
                return tuple(self._between(start, stop))
            return tuple(self)[place]
        at = place.__index__()
        if not -size <= at < size:
            raise IndexError("LongTuple index out of range")
        return order_tree.at(self._tree, at % size)

    def __len__(self) -> int:
        return self._tree.size

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(leaf.rows for leaf in order_tree.leaves(self._tree))

    def __reversed__(self) -> Iterator[T]:
        return reversed(tuple(self))

    def __contains__(self, row: object) -> bool:
        return any(row in leaf.rows for leaf in order_tree.leaves(self._tree))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, tuple):
            return len(self) == len(other) <= FEW and tuple(self) == other
        if not isinstance(other, LongTuple):
            return NotImplemented
        if self._sum != other._sum and None not in (self._sum, other._sum):
            return False
        return len(self) == len(other) and self._is_same(other)

    def _is_same(self, other: LongTuple[Any]) -> bool:
        """Whether another one of this length has the same rows, looking no further than to the
        first difference behind what both share."""
        parts = order_tree.parts_between(self._tree, other._tree)
        if all(was == now and start == at for start, was, at, now in parts):
            return True
        start, size = parts[0][0], len(self)
        mine, others = self._between(start, size), other._between(start, size)
        while rows := list(islice(mine, FEW)):
            if rows != list(islice(others, FEW)):
                return False
        return True

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(tuple(self)) if len(self) <= FEW else hash(("rows", self.sum()))
        return self._hash

    def __add__(self, other: Any) -> tuple[Any, ...]:
        return tuple(self) + tuple(other)

    def __radd__(self, other: Any) -> tuple[Any, ...]:
        return tuple(other) + tuple(self)

    def __copy__(self) -> LongTuple[T]:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return LongTuple, (tuple(self),)

    def __repr__(self) -> str:
        return f"LongTuple({tuple(self)!r})"

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + 16 * len(self)

    def sum(self) -> int:
        """The sum of the marks of all rows."""
        if self._sum is None:
            self._sum = sum(map(mark, self)) % PRIME
        return self._sum

    def _changed_since(self, before: Any) -> list[tuple[Any, int]]:
        return changed_values(order_tree.parts_between(before._tree, self._tree))

    def to_python(self) -> list[T]:
        """The rows in a list."""
        return list(self)

    def _between(self, start: int, stop: int) -> Iterator[T]:
        for leaf in order_tree.leaves(self._tree, start) if start < stop else ():
            size = leaf.size
            skipped = start - self._start_of(start)
            rows = leaf.rows[skipped : skipped + stop - start]
            yield from rows
            start += len(rows)
            if start >= stop or not size:
                return

    def _start_of(self, place: int) -> int:
        """Where the leaf of a place begins."""
        tree, begin = self._tree, 0
        while isinstance(tree, order_tree.Node):
            for each in tree.trees:
                if place - begin < each.size:
                    tree = each
                    break
                begin += each.size
        return begin


def rows_of(tree: order_tree.Tree, total: int | None) -> Any:
    """The rows of a tree: a tuple of a few, a `LongTuple` of more.

    total: the sum of their marks, if it is known.
    """
    if isinstance(tree, order_tree.Leaf):
        return tree.rows
    made: LongTuple[Any] = LongTuple.__new__(LongTuple)
    made._tree, made._hash = tree, None
    made._sum = None if total is None else total % PRIME
    return tuple(made) if len(made) <= FEW else made


def tree_of(rows: Any) -> order_tree.Tree:
    """The tree of a tuple or a `LongTuple`."""
    return rows._tree if isinstance(rows, LongTuple) else order_tree.made_of(rows, rows)


def sum_of(rows: Any) -> int | None:
    """The sum of the marks of a `LongTuple`, if it is known."""
    return rows._sum if isinstance(rows, LongTuple) else None


def changed_values(parts: Sequence[order_tree.Part]) -> list[tuple[Row, int]]:
    """What goes and comes in parts, without what does both."""
    gone = [(row, -1) for _, rows, _, _ in parts for row in rows]
    came = [(row, 1) for _, _, _, rows in parts for row in rows]
    return without_equal([*gone, *came]) if gone and came else gone or came


def parts_between(old: Any, new: Any) -> list[order_tree.Part]:
    """Where two sequences differ; of tuples, as a whole."""
    if isinstance(old, LongTuple) and isinstance(new, LongTuple):
        return order_tree.parts_between(old._tree, new._tree)
    return [(0, list(old), 0, list(new))]

"""Persistent sequences: a list and a tuple of many rows that share structure with earlier versions.

LongTuple: a tuple of many rows.

An ordered inner level of a nest is a tuple of up to 64 rows, and a `LongTuple` of more. A change of
one row makes another one in O(log rows), and updates its hash, a sum over the rows.

State:  the tree (`order_tree.py`).
Cost:   O(log rows) for a place; O(rows) for the whole.

FrozenList: an immutable snapshot of a list.

    b = a.spliced(3, 5, rows)       O(log n): copies one path of nodes, shares the rest
    b._changed_since(a)             the contents of the nodes that they do not share
    sum(l.qty for l in b)           the sum of `a`, plus the changes

So a loop over a list inside a row handles a replaced row at the cost of the changes of the list,
like a loop over a `Bag`, by the same mechanism (`inner_changes.py`, `bag_folds.py`).

State:  16 bytes per value; per fold of a large one, its result and state.
Cost:   O(log n) for a change or a place; of hash and equality, O(1) and O(changes log n) if one
        was derived from the other; else O(n).
Source: as `order_tree.py`.

Splice: replace rows of a persistent sequence, a few one by one, many by whole leaves.

    spliced(tree, 2, 4, "xyz")      a b c d e f  ->  a b x y z e f

A few rows are changed one after the other, each on its own path. For many, the leaves before and
behind are kept, and the nodes above are rebuilt.

State:  none.
Cost:   O(k log n) for k rows out of n; for several, and more than n / `SHARE`, O(k + n / 48).
Source: as `order_tree.py`.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, TypeVar, overload

from optimizer.expressions.knowledge import Foldable
from reactive.engine.collections import bag_folds, order_tree, weight_tree
from reactive.engine.collections.order_tree import Part, Tree, TreeLeaf, TreeNode
from reactive.engine.collections.weight_tree import PRIME, cancel_equal
from reactive.engine.collections.zset import Row, canonical

T = TypeVar("T", covariant=True)


FEW = 64
"""Most rows of an ordered inner level that are a tuple."""
SALT = 0x2545F491


def row_mark(row: Row) -> int:
    """Return the contribution of a row to the hash."""
    return hash((row, SALT))


class LongTuple(Sequence[T], Foldable):
    """Rows in an order, like a tuple: hashable, immutable, equal in order.

    A changed row updates its hash in O(1), unlike that of a tuple. Equal values must have equal
    hashes, for sets, dictionaries and joins: so one of more than 64 rows does not equal a tuple,
    but `tuple(rows)` does. One of up to 64 rows equals the tuple, and has its hash.

    >>> rows = LongTuple(range(1000))
    >>> rows[-1], rows[3:5], len(rows), 7 in rows
    (999, (3, 4), 1000, True)
    >>> rows == LongTuple(range(1000)), rows == tuple(rows)
    (True, False)
    """

    __slots__ = ("_hash", "_sum", "_tree")

    def __init__(self, rows: Iterable[T] = ()) -> None:
        every = tuple(rows)
        self._tree = order_tree.build_tree(every, every)
        self._sum: int | None = None
        self._hash: int | None = None

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[T, ...]: ...
    def __getitem__(self, place: int | slice) -> Any:
        """Return a row, or the rows of a slice as a tuple."""
        size = len(self)
        if isinstance(place, slice):
            start, stop, step = place.indices(size)
            if step == 1:
                return tuple(self._between(start, stop))
            return tuple(self)[place]
        at = place.__index__()
        if not -size <= at < size:
            raise IndexError("LongTuple index out of range")
        return order_tree.get_row(self._tree, at % size)

    def __len__(self) -> int:
        return self._tree.size

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(leaf.rows for leaf in order_tree.iterate_leaves(self._tree))

    def __reversed__(self) -> Iterator[T]:
        return reversed(tuple(self))

    def __contains__(self, row: object) -> bool:
        return any(row in leaf.rows for leaf in order_tree.iterate_leaves(self._tree))

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
        """Return True if one of equal length has the same rows; stops at the first difference
        after the shared parts."""
        parts = order_tree.find_differing_parts(self._tree, other._tree)
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
        """Return the sum of the marks of all rows."""
        if self._sum is None:
            self._sum = sum(map(row_mark, self)) % PRIME
        return self._sum

    def _changed_since(self, before: Any) -> list[tuple[Any, int]]:
        return net_row_changes(order_tree.find_differing_parts(before._tree, self._tree))

    def to_python(self) -> list[T]:
        """Return the rows in a list."""
        return list(self)

    def _between(self, start: int, stop: int) -> Iterator[T]:
        """Yield the rows from a place up to another."""
        for leaf in order_tree.iterate_leaves(self._tree, start) if start < stop else ():
            size = leaf.size
            skipped = start - self._start_of(start)
            rows = leaf.rows[skipped : skipped + stop - start]
            yield from rows
            start += len(rows)
            if start >= stop or not size:
                return

    def _start_of(self, place: int) -> int:
        """Return the start of the leaf that has a place."""
        tree, begin = self._tree, 0
        while isinstance(tree, order_tree.TreeNode):
            for each in tree.trees:
                if place - begin < each.size:
                    tree = each
                    break
                begin += each.size
        return begin


def sequence_from_tree(tree: order_tree.Tree, total: int | None) -> Any:
    """Return the rows of a tree: a tuple if few, else a `LongTuple`.

    total: the sum of their marks, if it is known.
    """
    if isinstance(tree, order_tree.TreeLeaf):
        return tree.rows
    made: LongTuple[Any] = LongTuple.__new__(LongTuple)
    made._tree, made._hash = tree, None
    made._sum = None if total is None else total % PRIME
    return tuple(made) if len(made) <= FEW else made


def rows_as_tree(rows: Any) -> order_tree.Tree:
    """Return the tree of a tuple or a `LongTuple`."""
    return rows._tree if isinstance(rows, LongTuple) else order_tree.build_tree(rows, rows)


def known_sum(rows: Any) -> int | None:
    """Return the sum of the marks of a `LongTuple`; None if it is not known."""
    return rows._sum if isinstance(rows, LongTuple) else None


def net_row_changes(parts: Sequence[order_tree.Part]) -> list[tuple[Row, int]]:
    """Return the deleted and inserted rows of parts, net."""
    gone = [(row, -1) for _, rows, _, _ in parts for row in rows]
    came = [(row, 1) for _, _, _, rows in parts for row in rows]
    return cancel_equal([*gone, *came]) if gone and came else gone or came


def sequence_differences(old: Any, new: Any) -> list[order_tree.Part]:
    """Return the differences of two sequences; tuples differ as a whole."""
    if isinstance(old, LongTuple) and isinstance(new, LongTuple):
        return order_tree.find_differing_parts(old._tree, new._tree)
    return [(0, list(old), 0, list(new))]


class FrozenList(LongTuple[T]):
    """An immutable, hashable list; equal to a list with the same values.

    With up to 64 values it also equals a tuple, and has its hash.

    >>> values = FrozenList(range(1000))
    >>> values[-1], values[3:5], len(values), 7 in values, values == list(range(1000))
    (999, FrozenList([3, 4]), 1000, True, True)
    >>> changed = values.spliced(0, 998, ["a"])
    >>> changed, len(values)
    (FrozenList(['a', 998, 999]), 1000)
    """

    __slots__ = ("__weakref__", "_before", "_kept", "_made_of", "_part")

    def __init__(self, values: Iterable[T] = ()) -> None:
        super().__init__(map(canonical, values))
        self._kept: dict[Any, Any] | None = None  # results of folds (`bag_folds.py`)
        self._before: weakref.ref[FrozenList[Any]] | None = None  # the last version with results
        self._made_of: weakref.ref[FrozenList[Any]] | None = None
        self._part: Part | None = None  # the difference from `_made_of`

    @overload  # type: ignore[override]
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> FrozenList[T]: ...
    def __getitem__(self, place: int | slice) -> Any:
        found: Any = super().__getitem__(place)
        return FrozenList(found) if isinstance(place, slice) else found

    def spliced(self, start: int, stop: int, values: Sequence[Any]) -> FrozenList[T]:
        """Return the list with the values from `start` up to `stop` replaced.

        Cost: O(log n) per value.
        """
        values = list(map(canonical, values))
        gone = list(self._between(start, stop)) if start < stop else []
        total = self._sum
        if total is not None:
            total = (total + sum(map(row_mark, values)) - sum(map(row_mark, gone))) % PRIME
        made: FrozenList[T] = FrozenList.__new__(FrozenList)
        made._tree = splice_rows(self._tree, start, stop, values)
        made._sum, made._hash, made._kept = total, None, None
        own = weakref.ref(self)
        made._before = self._before if self._kept is None else own
        made._made_of, made._part = own, (start, gone, start, values)
        return made

    def parts_since(self, before: FrozenList[Any]) -> list[Part]:
        """Return the differences from another list, in order.

        Cost: O(changes log n) if one was derived from the other; O(changes) by one `splice_rows`.
        """
        made_of = self._made_of
        if made_of is not None and self._part is not None and made_of() is before:
            return [self._part]
        return order_tree.find_differing_parts(before._tree, self._tree)

    def _changed_since(self, before: Any) -> list[tuple[Any, int]]:
        return net_row_changes(self.parts_since(before))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, list):
            return len(self) == len(other) and list(self) == other
        return super().__eq__(other)

    __hash__ = LongTuple.__hash__

    def __lt__(self, other: Any) -> bool:
        return list(self) < list(other)

    def __le__(self, other: Any) -> bool:
        return list(self) <= list(other)

    def __gt__(self, other: Any) -> bool:
        return list(self) > list(other)

    def __ge__(self, other: Any) -> bool:
        return list(self) >= list(other)

    def __add__(self, other: Any) -> Any:
        return FrozenList([*self, *other])

    def __radd__(self, other: Any) -> Any:
        return FrozenList([*other, *self])

    def __mul__(self, times: int) -> FrozenList[T]:
        return FrozenList(list(self) * times)

    __rmul__ = __mul__

    def copy(self) -> FrozenList[T]:
        """Return the list, since it is immutable."""
        return self

    def __copy__(self) -> FrozenList[T]:
        return self

    def __deepcopy__(self, memo: Any) -> FrozenList[T]:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenList, (list(self),)

    def __repr__(self) -> str:
        return f"FrozenList({list(self)!r})"

    def _folded(self, fold: Any, each: Any, beside: Any, options: Any) -> Any:
        return bag_folds.fold_bag(self, fold, each, beside, options)

    def _is_small(self) -> bool:
        return weight_tree.is_small(len(self))

    def _weighted_items(self) -> None:
        """Return None: each place counts once."""


SHARE = 256
"""Whole leaves are cheaper than paths for more than one in `SHARE` of all rows."""


def splice_rows(tree: Tree, start: int, stop: int, rows: Sequence[Row]) -> Tree:
    """Return the tree with the rows from `start` up to `stop` replaced.

    >>> tree = order_tree.build_tree(range(1000), range(1000))
    >>> tree = splice_rows(tree, 3, 998, "ab")
    >>> [row for leaf in order_tree.iterate_leaves(tree) for row in leaf.rows]
    [0, 1, 2, 'a', 'b', 998, 999]
    """
    count = stop - start
    if not count and len(rows) == 1:
        return order_tree.insert_at(tree, start, rows[0], rows[0])
    most = max(count, len(rows))
    if most > 1 and most * SHARE > tree.size:
        return _splice_leaves(tree, start, stop, rows)
    stays = min(count, len(rows))
    for place in range(stays):
        tree = replace_row(tree, start + place, rows[place])
    for _ in range(count - stays):
        tree = order_tree.delete_at(tree, start + stays)
    for place in range(stays, len(rows)):
        tree = order_tree.insert_at(tree, start + place, rows[place], rows[place])
    return tree


def replace_row(tree: Tree, place: int, row: Row, *, has_keys: bool = False) -> Tree:
    """Return the tree with the row at a place replaced.

    has_keys: True if keys differ from rows; the key stays.
    """
    if isinstance(tree, TreeLeaf):
        rows = (*tree.rows[:place], row, *tree.rows[place + 1 :])
        return TreeLeaf(rows, tree.keys if has_keys else rows)
    number, place = order_tree.find_child(tree, place)
    made = replace_row(tree.trees[number], place, row, has_keys=has_keys)
    return tree.with_child(number, made)


def _splice_leaves(tree: Tree, start: int, stop: int, rows: Sequence[Row]) -> Tree:
    """Return the tree with `rows` in place of those from `start` up to `stop`."""
    before: list[TreeLeaf] = []
    behind: list[TreeLeaf] = []
    left: Sequence[Row] = ()
    right: Sequence[Row] = ()
    begin = 0
    for leaf in order_tree.iterate_leaves(tree):
        end = begin + leaf.size
        if end <= start:
            before.append(leaf)
        elif begin >= stop:
            behind.append(leaf)
        else:
            left = left or leaf.rows[: max(start - begin, 0)]
            right = leaf.rows[stop - begin :] if stop < end else right
        begin = end
    if before and before[-1].size < order_tree.FILLED and not left:
        left = before.pop().rows
    if behind and behind[0].size < order_tree.FILLED and not right:
        right = behind.pop(0).rows
    return _build_levels([*before, *_make_leaves(tuple(chain(left, rows, right))), *behind])


def _make_leaves(rows: tuple[Row, ...]) -> list[Tree]:
    width = order_tree.FILLED
    cut = [rows[place : place + width] for place in range(0, len(rows), width)]
    return [TreeLeaf(each, each) for each in cut]


def _build_levels(trees: list[Tree]) -> Tree:
    """Return one tree of several trees of equal height."""
    if not trees:
        return TreeLeaf((), ())
    width = order_tree.FILLED
    while len(trees) > 1:
        trees = [TreeNode(trees[place : place + width]) for place in range(0, len(trees), width)]
    return trees[0]

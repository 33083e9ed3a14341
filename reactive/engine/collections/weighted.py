"""A Z-set as a value: rows with signed weights, that can be added, negated and multiplied.

    (a + b)[row]  =  a[row] + b[row]        (-a)[row]  =  -a[row]        (n * a)[row]  =  n * a[row]

It is the tree of a `Bag`, in which weights may be negative. No row has a weight of 0.

State:  the tree.
Cost:   a sum that of the smaller side, times log rows of the larger one; all else O(rows).
Source: [dbsp] section 2, Z-sets are a commutative group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from reactive.engine.collections import weight_tree
from reactive.engine.collections.zset import canonical

T = TypeVar("T")


class ZSet(Generic[T]):
    """Rows with signed weights: what a view has, or how it changes. Immutable, and hashable.

    Of `delta.zset` and `view.zset()`. The change of a view is the difference of what it has after
    and before; so changes add up, and `-` takes them back.

    Raises
    ------
    TypeError: a row has no hash; or something else than a Z-set is added.

    >>> from reactive import ZSet
    >>> before, change = ZSet({"to": 2, "be": 1}), ZSet({"be": -1, "or": 1})
    >>> before + change
    ZSet({'to': 2, 'or': 1})
    >>> before + change - before == change, 2 * change, change["be"], change["to"]
    (True, ZSet({'be': -2, 'or': 2}), -1, 0)
    >>> (before - 2 * before).is_positive, before.is_set, before.distinct().is_set
    (False, False, True)
    """

    __slots__ = ("_hash", "_tree")

    def __init__(self, rows: Mapping[T, int] | Iterable[T] = ()) -> None:
        """Rows with their weights; or rows, each with weight 1 for each time that it is there."""
        pairs = rows.items() if isinstance(rows, Mapping) else ((row, 1) for row in rows)
        self._tree: weight_tree.Tree = weight_tree.added_up(pairs)
        self._hash: int | None = None

    def items(self) -> Iterable[tuple[T, int]]:
        """Each row with its weight, in no order that means anything."""
        return weight_tree.items(self._tree)

    def negate(self) -> ZSet[T]:
        """All weights with the other sign."""
        return self * -1

    def distinct(self) -> ZSet[T]:
        """The rows of positive weight, each with weight 1. Source: [dbsp] definition 4.5."""
        return _made({row: 1 for row, weight in self.items() if weight > 0})

    @property
    def is_set(self) -> bool:
        """Whether all weights are 1."""
        return all(weight == 1 for _, weight in self.items())

    @property
    def is_positive(self) -> bool:
        """Whether no weight is negative: it is a bag."""
        return all(weight > 0 for _, weight in self.items())

    def __getitem__(self, row: T) -> int:
        """The weight of a row; 0 if it is not there."""
        return weight_tree.weight_of(self._tree, canonical(row))

    def __contains__(self, row: object) -> bool:
        """Whether the weight of a row is not 0."""
        return weight_tree.weight_of(self._tree, canonical(row)) != 0

    def __len__(self) -> int:
        """How many different rows there are."""
        return weight_tree.size_of(self._tree)

    def __iter__(self) -> Iterator[T]:
        """Each row once."""
        return (row for row, _ in self.items())

    def __add__(self, other: ZSet[T]) -> ZSet[T]:
        if not isinstance(other, ZSet):
            return NotImplemented
        large, small = (self, other) if len(self) >= len(other) else (other, self)
        if not small:
            return large
        changes = weight_tree.marked(weight_tree.as_dict(small._tree))
        if isinstance(large._tree, dict):
            large._tree = weight_tree.split(large._tree)
        return _made(weight_tree.plus(large._tree, changes, None))

    def __sub__(self, other: ZSet[T]) -> ZSet[T]:
        return self + -other if isinstance(other, ZSet) else NotImplemented

    def __neg__(self) -> ZSet[T]:
        return self * -1

    def __mul__(self, times: int) -> ZSet[T]:
        if not isinstance(times, int):
            return NotImplemented
        if not times:
            return _made({})
        return _made({row: weight * times for row, weight in self.items()})

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ZSet):
            return NotImplemented
        return weight_tree.same(self._tree, other._tree)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = weight_tree.hash_of(self._tree)
        return self._hash

    def __reduce__(self) -> tuple[type[ZSet[T]], tuple[dict[T, int]]]:
        return ZSet, (dict(self.items()),)  # a hash means nothing to another process

    def __repr__(self) -> str:
        return f"ZSet({dict(self.items())!r})"


def zset_of(pairs: Iterable[tuple[T, int]]) -> ZSet[T]:
    """Canonical rows, each once, with weights other than 0."""
    return _made(dict(pairs))


def _made(tree: weight_tree.Tree) -> ZSet[Any]:
    made: ZSet[Any] = ZSet.__new__(ZSet)
    made._tree, made._hash = tree, None
    return made

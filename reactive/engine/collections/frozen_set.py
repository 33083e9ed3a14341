"""What a set was at one time: an immutable set that shares structure with those before it.

Its hash is that of a `frozenset`, which joins the hashes of all values by exclusive or: so a change
takes part in it in O(1), and what is equal has the same hash.

State:  some 50 bytes per value; per fold of a large one, what it gave and its state.
Cost:   of a change or a look-up, O(log n); of hash and equality, O(1) and O(changes log n) where
        one was made of the other; else O(n).
Source: as `weight_tree.py`; the hash, `frozenset` of CPython.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import reduce
from itertools import chain
from operator import xor
from typing import Any, TypeVar

from optimizer.expressions.knowledge import Foldable
from reactive.engine.collections import folded, weight_tree
from reactive.engine.collections.zset import canonical

T = TypeVar("T", covariant=True)
MASK = 2 * sys.maxsize + 1


class FrozenSet(Set[T], Foldable):
    """A set that does not change: hashable; equal to a set or a `frozenset` of the same values.

    >>> values = FrozenSet(range(1000))
    >>> values == set(range(1000)), hash(values) == hash(frozenset(range(1000)))
    (True, True)
    >>> fewer = values.plus(dict.fromkeys(range(2, 1000), -1) | {"a": 1})
    >>> sorted(map(str, fewer)), len(values), 7 in fewer
    (['0', '1', 'a'], 1000, False)
    """

    __slots__ = ("__weakref__", "_before", "_joined", "_kept", "_tree")

    def __init__(self, values: Iterable[T] = ()) -> None:
        self._tree = weight_tree.split(dict.fromkeys(map(canonical, values), 1))
        self._joined: int | None = None
        self._kept: dict[Any, Any] | None = None  # what folds gave of it (`folded.py`)
        self._before: weakref.ref[FrozenSet[Any]] | None = None  # the last that kept some

    def plus(self, changes: Mapping[Any, int]) -> FrozenSet[T]:
        """The set with values more, by 1, that it does not have, and fewer, by -1, that it has."""
        changes = {canonical(value): weight for value, weight in changes.items()}
        if not changes:
            return self
        made: FrozenSet[T] = FrozenSet.__new__(FrozenSet)
        made._tree = weight_tree.plus(self._tree, weight_tree.marked(changes), None)
        made._joined = self._joined
        if made._joined is not None:
            made._joined ^= reduce(xor, map(_mixed, changes))
        made._kept = None
        made._before = self._before if self._kept is None else weakref.ref(self)
        return made

    @classmethod
    def _from_iterable(cls, values: Iterable[Any]) -> FrozenSet[Any]:
        return FrozenSet(values)

    def __contains__(self, value: object) -> bool:
        return weight_tree.weight_of(self._tree, canonical(value)) > 0

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(weight_tree.leaves(self._tree))

    def __len__(self) -> int:
        return weight_tree.size_of(self._tree)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, FrozenSet):
            return super().__eq__(other)
        if self._joined != other._joined and None not in (self._joined, other._joined):
            return False
        return weight_tree.same(self._tree, other._tree)

    def __hash__(self) -> int:
        if self._joined is None:
            self._joined = reduce(xor, map(_mixed, self), 0)
        return _finished(self._joined, len(self))

    def isdisjoint(self, other: Iterable[Any]) -> bool:
        """Whether no value is in both."""
        return not any(value in self for value in other)

    def issubset(self, other: Iterable[Any]) -> bool:
        """Whether all values are in the other."""
        return set(self).issubset(other)

    def issuperset(self, other: Iterable[Any]) -> bool:
        """Whether all values of the other are in it."""
        return all(value in self for value in other)

    def union(self, *others: Iterable[Any]) -> FrozenSet[Any]:
        """The values of all."""
        return FrozenSet(chain(self, *others))

    def intersection(self, *others: Iterable[Any]) -> FrozenSet[T]:
        """The values that all have."""
        return FrozenSet(set(self).intersection(*others))

    def difference(self, *others: Iterable[Any]) -> FrozenSet[T]:
        """The values that no other has."""
        return FrozenSet(set(self).difference(*others))

    def symmetric_difference(self, other: Iterable[Any]) -> FrozenSet[Any]:
        """The values that one of both has."""
        return FrozenSet(set(self).symmetric_difference(other))

    def to_python(self) -> list[T]:
        """The values in a list."""
        return list(self)

    def copy(self) -> FrozenSet[T]:
        """Itself: it does not change."""
        return self

    def __copy__(self) -> FrozenSet[T]:
        return self

    def __deepcopy__(self, memo: Any) -> FrozenSet[T]:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenSet, (list(self),)

    def __repr__(self) -> str:
        return f"FrozenSet({set(self) or '{}'})"

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + weight_tree.bytes_of(self._tree)

    def _changed_since(self, before: Any) -> list[tuple[Any, int]]:
        return weight_tree.changed_values(before._tree, self._tree)

    def _folded(self, fold: Any, each: Any, beside: Any, options: Any) -> Any:
        return folded.folded(self, fold, each, beside, options)

    def _is_small(self) -> bool:
        return weight_tree.is_small(len(self))

    def _weighted(self) -> None:
        """All of its values count once."""


def _mixed(value: Any) -> int:
    """What a value adds to the hash."""
    number = hash(value)
    return ((number ^ (number << 16) ^ 89869747) * 3644798167) & MASK


def _finished(joined: int, size: int) -> int:
    """The hash of so many values, from what they add to it."""
    joined ^= (1927868237 * (size + 1)) & MASK
    joined ^= (joined >> 11) ^ (joined >> 25)
    joined = (joined * 69069 + 907133923) & MASK
    if joined > sys.maxsize:
        joined -= MASK + 1
    return 590923713 if joined == -1 else joined

"""Persistent dictionaries and sets, which share structure with earlier versions.

FrozenDict: an immutable snapshot of a dictionary.

    key  -> number      a tree of dictionaries (`weight_tree.py`): the number of a key's insertion
    number, (key, value)    a sequence by these numbers (`order_tree.py`): the order of insertion

A loop over it, or over its `items()` or `values()`, handles a replaced row at the cost of the
changed items, like a loop over a `Bag` (`inner_changes.py`, `bag_folds.py`).

State:  some 200 bytes per item; per fold of a large one, its result and state.
Cost:   of a change or a look-up, O(log n); of hash and equality, O(1) and O(changes log n) if one
        was derived from the other; else O(n).
Source: as `order_tree.py` and `weight_tree.py`.

FrozenSet: an immutable snapshot of a set.

Its hash is that of a `frozenset`, which combines the hashes of all values by exclusive or: so a
change updates it in O(1), and equal sets have equal hashes.

State:  some 50 bytes per value; per fold of a large one, its result and state.
Cost:   of a change or a look-up, O(log n); of hash and equality, O(1) and O(changes log n) if one
        was derived from the other; else O(n).
Source: as `weight_tree.py`; the hash, `frozenset` of CPython.
"""

from __future__ import annotations

import sys
import weakref
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from functools import reduce
from itertools import chain
from operator import xor
from typing import Any, TypeVar

from optimizer.expressions.knowledge import Foldable
from reactive.engine.collections import bag_folds, order_tree, weight_tree
from reactive.engine.collections.long_tuple import replace_row
from reactive.engine.collections.order_tree import Tree
from reactive.engine.collections.weight_tree import PRIME, cancel_equal
from reactive.engine.collections.zset import canonical

K = TypeVar("K")
V = TypeVar("V", covariant=True)
SALT = 0x1F83D9AB
Item = tuple[Any, Any]


class FrozenDict(Mapping[K, V], Foldable):
    """An immutable dictionary: hashable if its values are; equal to a dictionary with the same
    items.

    The order of items does not matter for equality.

    >>> tags = FrozenDict({"a": 1, "b": 2})
    >>> changed = tags.changed({"a": 3, "c": 4}, ["b"])
    >>> changed, changed == {"c": 4, "a": 3}, tags["b"], list(changed.items())
    (FrozenDict({'a': 3, 'c': 4}), True, 2, [('a', 3), ('c', 4)])
    """

    __slots__ = ("_next", "_order", "_places", "_sum", "_views")

    def __init__(self, items: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        given = {canonical(key): canonical(value) for key, value in dict(items).items()}
        self._order: Tree = order_tree.build_tree(tuple(given.items()), range(1, len(given) + 1))
        self._places = weight_tree.split_tree(
            dict(zip(given, range(1, len(given) + 1), strict=True))
        )
        self._next = len(given) + 1
        self._sum: int | None = None
        self._views: dict[Any, Any] = {}

    def changed(self, put: Mapping[Any, Any], removed: Iterable[Any] = ()) -> FrozenDict[K, V]:
        """Return the dictionary without the keys `removed`, and then with the items `put`.

        New keys are added at the end. Cost: O(log n) per key.
        """
        made: FrozenDict[K, V] = FrozenDict.__new__(FrozenDict)
        made._order, made._places, made._next = self._order, self._places, self._next
        made._sum, made._views = self._sum, {}
        for key in removed:
            made._remove(canonical(key))
        for key, value in put.items():
            made._put(canonical(key), canonical(value))
        for kind, view in self._views.items():
            made._views[kind] = kind(made, view)
        return made

    def after(self, key: Any, default: Any) -> Any:
        """Return the key that follows a present key, or `default` after the last."""
        place, _ = _find_item(self._order, weight_tree.weight_of(self._places, canonical(key)))
        if place + 1 == len(self):
            return default
        return order_tree.get_row(self._order, place + 1)[0]

    def _remove(self, key: Any) -> None:
        """Remove a key while the dictionary is made; an absent key is ignored."""
        number = weight_tree.weight_of(self._places, key)
        if number:
            place, gone = _find_item(self._order, number)
            self._order = order_tree.delete_at(self._order, place)
            self._mark_place(key, -number)
            self._mark(gone, -1)

    def _put(self, key: Any, value: Any) -> None:
        """Set an item while the dictionary is made; a new key is the last, others stay in place."""
        number = weight_tree.weight_of(self._places, key)
        if not number:
            number, self._next = self._next, self._next + 1
            self._order = order_tree.insert_at(self._order, self._order.size, number, (key, value))
            self._mark_place(key, number)
            self._mark((key, value), 1)
            return
        place, old = _find_item(self._order, number)
        if old[1] is not value:
            new = (old[0], value)
            self._order = replace_row(self._order, place, new, has_keys=True)
            self._mark(old, -1)
            self._mark(new, 1)

    def _mark_place(self, key: Any, change: int) -> None:
        """Add to the number of a key in the tree of places; a sum of 0 deletes the key."""
        mark = hash((key, weight_tree.SALT))
        self._places = weight_tree.add_change(self._places, mark, key, change, None)

    def _mark(self, item: Item, sign: int) -> None:
        """Add an item to the hash, or subtract it; nothing while the hash is unknown."""
        if self._sum is not None:
            self._sum = (self._sum + sign * hash((item, SALT))) % PRIME

    def to_python(self) -> dict[K, V]:
        """Return the items in a dictionary."""
        return dict(self)

    def __getitem__(self, key: K) -> V:
        number = weight_tree.weight_of(self._places, canonical(key))
        if not number:
            raise KeyError(key)
        tree = self._order
        while isinstance(tree, order_tree.TreeNode):
            tree = tree.trees[bisect_right(tree.keys, number) - 1]
        return tree.rows[bisect_left(tree.keys, number)][1]  # type: ignore[no-any-return]

    def __contains__(self, key: object) -> bool:
        return weight_tree.weight_of(self._places, canonical(key)) > 0

    def __iter__(self) -> Iterator[K]:
        return (row[0] for leaf in order_tree.iterate_leaves(self._order) for row in leaf.rows)

    def __reversed__(self) -> Iterator[K]:
        return reversed(list(self))

    def __len__(self) -> int:
        return self._order.size

    def keys(self) -> Any:
        """Return the keys, as a set."""
        return self._get_view(KeysOfDict)

    def values(self) -> Any:
        """Return the values, in the order of their keys."""
        return self._get_view(ValuesOfDict)

    def items(self) -> Any:
        """Return pairs of a key and its value, as a set."""
        return self._get_view(Items)

    def _get_view(self, kind: type[_View]) -> Any:
        """Return the view of a kind, made at the first call."""
        found = self._views.get(kind)
        if found is None:
            found = self._views[kind] = kind(self, None)
        return found

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, FrozenDict):
            return isinstance(other, Mapping) and dict(self.items()) == dict(other.items())
        if self._sum != other._sum and None not in (self._sum, other._sum):
            return False
        if len(self) != len(other):
            return False
        parts = changed_parts(self, other)
        gone = dict([item for _, rows, _, _ in parts for item in rows])
        return gone == dict([item for _, _, _, rows in parts for item in rows])

    def __hash__(self) -> int:
        if self._sum is None:
            self._sum = sum([hash((item, SALT)) for item in self.items()]) % PRIME
        return hash(("items", self._sum))

    def __or__(self, other: Any) -> Any:
        return FrozenDict({**self, **other}) if isinstance(other, Mapping) else NotImplemented

    def __ror__(self, other: Any) -> Any:
        return FrozenDict({**other, **self}) if isinstance(other, Mapping) else NotImplemented

    def copy(self) -> FrozenDict[K, V]:
        """Return the dictionary, since it is immutable."""
        return self

    def __copy__(self) -> FrozenDict[K, V]:
        return self

    def __deepcopy__(self, memo: Any) -> FrozenDict[K, V]:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self.items()),)

    def __repr__(self) -> str:
        return f"FrozenDict({dict(self.items())!r})"

    def _changed_since(self, before: Any) -> list[tuple[Any, int]]:
        return KeysOfDict.changes(before._order, self._order)

    def _folded(self, fold: Any, each: Any, beside: Any, options: Any) -> Any:
        return self._get_view(KeysOfDict)._folded(fold, each, beside, options)


def _find_item(tree: Tree, number: int) -> tuple[int, Item]:
    """Return the place of a present number, and its item."""
    place = 0
    while isinstance(tree, order_tree.TreeNode):
        child = bisect_right(tree.keys, number) - 1
        place += sum([each.size for each in tree.trees[:child]])
        tree = tree.trees[child]
    inside = bisect_left(tree.keys, number)
    return place + inside, tree.rows[inside]


class _View(Collection[Any], Foldable):
    """Iterable view of a dictionary. It refers to the trees, not to the dictionary."""

    __slots__ = ("__weakref__", "_before", "_kept", "_order", "_places")

    def __init__(self, of: FrozenDict[Any, Any], before: _View | None) -> None:
        self._order, self._places = of._order, of._places
        self._kept: dict[Any, Any] | None = None
        self._before: weakref.ref[Any] | None = None
        if before is not None:
            self._before = before._before if before._kept is None else weakref.ref(before)

    @staticmethod
    def pick(item: Item) -> Any:
        """Return the part of an item that the view contains."""
        raise NotImplementedError

    @classmethod
    def changes(cls, old: Tree, new: Tree) -> list[tuple[Any, int]]:
        """Return the changes from one tree to another."""
        pick = cls.pick
        parts = order_tree.find_differing_parts(old, new)
        gone = [(pick(row), -1) for _, rows, _, _ in parts for row in rows]
        came = [(pick(row), 1) for _, _, _, rows in parts for row in rows]
        return cancel_equal([*gone, *came]) if gone and came else gone or came

    def __iter__(self) -> Iterator[Any]:
        return (
            self.pick(row) for leaf in order_tree.iterate_leaves(self._order) for row in leaf.rows
        )

    def __len__(self) -> int:
        return self._order.size

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)!r})"

    def _changed_since(self, before: Any) -> list[tuple[Any, int]]:
        return self.changes(before._order, self._order)

    def _folded(self, fold: Any, each: Any, beside: Any, options: Any) -> Any:
        return bag_folds.fold_bag(self, fold, each, beside, options)

    def _is_small(self) -> bool:
        return weight_tree.is_small(len(self))

    def _weighted_items(self) -> None:
        """Return None: each place counts once."""


def changed_parts(old: FrozenDict[Any, Any], new: FrozenDict[Any, Any]) -> list[order_tree.Part]:
    """Return the differences of two dictionaries as sequences of items, in order."""
    return order_tree.find_differing_parts(old._order, new._order)


class ValuesOfDict(_View):
    """The values of a dictionary."""

    __slots__ = ()

    @staticmethod
    def pick(item: Item) -> Any:
        return item[1]

    def __contains__(self, value: object) -> bool:
        return any(value is each or value == each for each in self)


class KeysOfDict(_View, Set[Any]):
    """The keys of a dictionary."""

    __slots__ = ()

    @staticmethod
    def pick(item: Item) -> Any:
        return item[0]

    @classmethod
    def _from_iterable(cls, values: Iterable[Any]) -> Any:
        return frozenset(values)

    def __contains__(self, key: object) -> bool:
        return weight_tree.weight_of(self._places, canonical(key)) > 0


class Items(_View, Set[Any]):
    """Pairs of a key and its value."""

    __slots__ = ()

    @staticmethod
    def pick(item: Item) -> Any:
        return item

    @classmethod
    def _from_iterable(cls, values: Iterable[Any]) -> Any:
        return frozenset(values)

    def __contains__(self, item: object) -> bool:
        if not (isinstance(item, tuple) and len(item) == 2):
            return False
        number = weight_tree.weight_of(self._places, canonical(item[0]))
        return number > 0 and bool(_find_item(self._order, number)[1][1] == item[1])


T = TypeVar("T", covariant=True)
MASK = 2 * sys.maxsize + 1


class FrozenSet(Set[T], Foldable):
    """An immutable, hashable set; equal to a set or a `frozenset` of the same values.

    >>> values = FrozenSet(range(1000))
    >>> values == set(range(1000)), hash(values) == hash(frozenset(range(1000)))
    (True, True)
    >>> fewer = values.plus(dict.fromkeys(range(2, 1000), -1) | {"a": 1})
    >>> sorted(map(str, fewer)), len(values), 7 in fewer
    (['0', '1', 'a'], 1000, False)
    """

    __slots__ = ("__weakref__", "_before", "_joined", "_kept", "_tree")

    def __init__(self, values: Iterable[T] = ()) -> None:
        self._tree = weight_tree.split_tree(dict.fromkeys(map(canonical, values), 1))
        self._joined: int | None = None
        self._kept: dict[Any, Any] | None = None  # results of folds (`bag_folds.py`)
        self._before: weakref.ref[FrozenSet[Any]] | None = None  # the last version with results

    def plus(self, changes: Mapping[Any, int]) -> FrozenSet[T]:
        """Return the set with absent values added (1) and present values removed (-1).

        Return the set itself if there are no changes.
        """
        changes = {canonical(value): weight for value, weight in changes.items()}
        if not changes:
            return self
        made: FrozenSet[T] = FrozenSet.__new__(FrozenSet)
        made._tree = weight_tree.add_changes(self._tree, weight_tree.mark_values(changes), None)
        made._joined = self._joined
        if made._joined is not None:
            made._joined ^= reduce(xor, map(_mix_hash, changes))
        made._kept = None
        made._before = self._before if self._kept is None else weakref.ref(self)
        return made

    @classmethod
    def _from_iterable(cls, values: Iterable[Any]) -> FrozenSet[Any]:
        return FrozenSet(values)

    def __contains__(self, value: object) -> bool:
        return weight_tree.weight_of(self._tree, canonical(value)) > 0

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(weight_tree.tree_dicts(self._tree))

    def __len__(self) -> int:
        return weight_tree.tree_size(self._tree)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, FrozenSet):
            return super().__eq__(other)
        if self._joined != other._joined and None not in (self._joined, other._joined):
            return False
        return weight_tree.have_equal_weights(self._tree, other._tree)

    def __hash__(self) -> int:
        if self._joined is None:
            self._joined = reduce(xor, map(_mix_hash, self), 0)
        return _finish_hash(self._joined, len(self))

    def isdisjoint(self, other: Iterable[Any]) -> bool:
        """Return True if no value is in both."""
        return not any(value in self for value in other)

    def issubset(self, other: Iterable[Any]) -> bool:
        """Return True if all values are in the other."""
        return set(self).issubset(other)

    def issuperset(self, other: Iterable[Any]) -> bool:
        """Return True if all values of the other are in the set."""
        return all(value in self for value in other)

    def union(self, *others: Iterable[Any]) -> FrozenSet[Any]:
        """Return the values of the set and all others."""
        return FrozenSet(chain(self, *others))

    def intersection(self, *others: Iterable[Any]) -> FrozenSet[T]:
        """Return the values that the set and all others have."""
        return FrozenSet(set(self).intersection(*others))

    def difference(self, *others: Iterable[Any]) -> FrozenSet[T]:
        """Return the values that no other has."""
        return FrozenSet(set(self).difference(*others))

    def symmetric_difference(self, other: Iterable[Any]) -> FrozenSet[Any]:
        """Return the values that exactly one of both has."""
        return FrozenSet(set(self).symmetric_difference(other))

    def to_python(self) -> list[T]:
        """Return the values in a list."""
        return list(self)

    def copy(self) -> FrozenSet[T]:
        """Return the set, since it is immutable."""
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
        return object.__sizeof__(self) + weight_tree.tree_bytes(self._tree)

    def _changed_since(self, before: Any) -> list[tuple[Any, int]]:
        return weight_tree.identity_changes(before._tree, self._tree)

    def _folded(self, fold: Any, each: Any, beside: Any, options: Any) -> Any:
        return bag_folds.fold_bag(self, fold, each, beside, options)

    def _is_small(self) -> bool:
        return weight_tree.is_small(len(self))

    def _weighted_items(self) -> None:
        """Return None: each value counts once."""


def set_changes(old: FrozenSet[Any], new: FrozenSet[Any]) -> list[tuple[Any, int]]:
    """Return the values by which two sets differ, with 1 if added and -1 if removed."""
    return new._changed_since(old)


def _mix_hash(value: Any) -> int:
    """Return the contribution of a value to the hash."""
    number = hash(value)
    return ((number ^ (number << 16) ^ 89869747) * 3644798167) & MASK


def _finish_hash(joined: int, size: int) -> int:
    """Return the hash of `size` values from their combined contributions."""
    joined ^= (1927868237 * (size + 1)) & MASK
    joined ^= (joined >> 11) ^ (joined >> 25)
    joined = (joined * 69069 + 907133923) & MASK
    if joined > sys.maxsize:
        joined -= MASK + 1
    return 590923713 if joined == -1 else joined

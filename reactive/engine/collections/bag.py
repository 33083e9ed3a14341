"""Bags: immutable values with counts; and trees that combine values.

Bag: an immutable bag of values with counts, the result of `Collect`.

A changed bag shares its structure with the bag that it was derived from (`weight_tree.py`), and its
hash is a sum that a change updates. So a small change of a large bag costs little: to make, to
hash, and to compare with the previous bag.

A bag keeps the dictionary that it was made from, whatever its size, until its first change. A bag
that is only made, read and dropped is never split.

State:  the tree; for a large one that was made from a dictionary, also the dictionary.
Cost:   O(log values) per changed value; O(values) for the first change.

Monoid tree: a bag of values under an associative, commutative combination, as a balanced tree.

              a+b+c+d                 nodes[1]
          a+b         c+d             nodes[2], nodes[3]
        a     b     c     d           leaves: nodes[capacity + slot]

A change marks the path from its leaf to the root as unknown; reading the root combines the unknown
nodes. A change never calls the user's function, so it can always be undone.

State:  two nodes per distinct value.
Cost:   O(1) look-ups and O(log n) marks per change, O(log n) combinations per read.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Collection, ItemsView, Iterable, Iterator, Mapping
from itertools import chain
from itertools import repeat as repeat_value
from typing import Any, Generic, NoReturn, overload

from typing_extensions import TypeVar

from optimizer.expressions.knowledge import Foldable
from reactive.engine.collections import bag_folds, weight_tree
from reactive.engine.collections.zset import canonical

T = TypeVar("T", covariant=True)


class Bag(Collection[T], Foldable, Generic[T]):
    """Values with counts. Hashable; equal by content, whatever the order.

    A bag is immutable: `plus` returns another one, in O(log n) for each changed value of n. So does
    `Collect` when a group changes. `hash` and `==` cost O(1) if a bag was derived from another by
    changes; else O(n), once. The order of values is arbitrary, but does not change.

    Raises
    ------
    TypeError: a value is not hashable; or the bag is indexed, as `bag[0]`.
    ValueError: a value has a negative count.

    >>> bag = Bag({"a": 2, "b": 1})
    >>> len(bag), bag.count("a"), sorted(bag), bag == Bag(["a", "b", "a"])
    (3, 2, ['a', 'a', 'b'], True)
    >>> bag.plus({"b": -1, "c": 1})
    Bag({'a': 2, 'c': 1})
    """

    __slots__ = ("__weakref__", "_before", "_hash", "_kept", "_length", "_order", "_split", "_tree")
    _collects = True

    @overload
    def __init__(self, values: Mapping[T, int]) -> None: ...
    @overload
    def __init__(self, values: Iterable[T] = ()) -> None: ...
    def __init__(self, values: Any = ()) -> None:
        """Create a bag from values with counts, or from the values themselves."""
        weights = _check_counts(values) if isinstance(values, Mapping) else _count_values(values)
        self._tree: weight_tree.Tree = weights
        self._split: weight_tree.Tree | None = None
        self._hash: int | None = None
        self._length: int | None = None
        self._order: Any = None  # an arrangement (`group_values.py`)
        self._kept: dict[Any, Any] | None = None  # results of folds (`bag_folds.py`)
        self._before: weakref.ref[Bag[Any]] | None = None  # the last version with results

    def count(self, value: object) -> int:
        """Return the count of the value; 0 if it is absent. Costs O(log values)."""
        tree = self._tree
        value = canonical(value)
        return tree.get(value, 0) if isinstance(tree, dict) else weight_tree.weight_of(tree, value)

    def items(self) -> ItemsView[T, int]:
        """Return each different value with its count."""
        tree = self._tree
        return tree.items() if isinstance(tree, dict) else _BagItems(self)

    def plus(self, changes: Mapping[Any, int]) -> Bag[T]:
        """Return the bag with values added, or removed by a negative number.

        `changes` maps values to the numbers to add. One call with many changes costs less than many
        calls, since each touched part of the bag is copied once.

        Cost: O(log values) per change.

        Raises
        ------
        ValueError: a value is removed more often than it is present.

        >>> Bag("ab").plus({"a": 1, "b": -1})
        Bag({'a': 2})
        """
        below: dict[Any, int] = {}
        made = change_bag(self, weight_tree.sum_weights(changes.items()), below)
        for value, weight in below.items():
            there = self.count(value)
            raise ValueError(
                f"cannot take {value!r} away {there - weight} times: it is there {there} times"
            )
        return made

    def difference(self, before: Bag[Any]) -> dict[Any, int]:
        """Return the changes from another bag: `before.plus(bag.difference(before)) == bag`.

        Cost: O(changes log values) if one of them was derived from the other; else O(values).

        >>> Bag("aab").difference(Bag("abc"))
        {'a': 1, 'c': -1}
        """
        return weight_tree.changes_between(_split_of(before), _split_of(self))

    def to_python(self) -> list[T]:
        """Return the values in a list, each repeated by its count."""
        return list(self)

    def __len__(self) -> int:
        if self._length is None:
            self._length = sum([weight for _, weight in self.items()])
        return self._length

    def __bool__(self) -> bool:
        return weight_tree.tree_size(self._tree) > 0

    def __iter__(self) -> Iterator[T]:
        tree = self._tree
        if isinstance(tree, dict):
            return _repeat_values(tree)
        return chain.from_iterable(map(_repeat_values, weight_tree.tree_dicts(tree)))

    def __contains__(self, value: object) -> bool:
        return self.count(value) > 0

    def __getitem__(self, place: object) -> NoReturn:
        raise TypeError(
            "a Bag has no order, and no value at a place: iterate over it, or sort it\n"
            "  of groups in an order, order_by(...) gives sequences"
        )

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other.__class__ is not Bag and not isinstance(other, Bag):
            return NotImplemented  # a view may compare itself
        one, two = self._hash, other._hash
        if one != two and one is not None and two is not None:
            return False
        tree, like = self._tree, other._tree
        if tree.__class__ is dict and like.__class__ is dict:
            return bool(tree == like)
        ours, theirs = self._length, other._length
        if ours != theirs and ours is not None and theirs is not None:
            return False
        return weight_tree.have_equal_weights(self._split or tree, other._split or like)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = weight_tree.hash_of(self._tree)
        return self._hash

    def _changed_since(self, before: Any) -> list[tuple[Any, int]]:
        return weight_tree.identity_changes(_split_of(before), _split_of(self))

    def _folded(self, fold: Any, each: Any, beside: Any, options: Any) -> Any:
        return bag_folds.fold_bag(self, fold, each, beside, options)

    def _is_small(self) -> bool:
        return weight_tree.is_small(weight_tree.tree_size(self._tree))

    def _weighted_items(self) -> ItemsView[T, int] | None:
        """Return the values with their counts; None if all counts are 1."""
        return None if len(self) == weight_tree.tree_size(self._tree) else self.items()

    def __copy__(self) -> Bag[T]:
        return self

    def __reduce__(self) -> tuple[type[Bag[T]], tuple[dict[T, int]]]:
        return Bag, (dict(self.items()),)  # hashes differ between processes

    def _fingerprinted(self) -> dict[str, Any]:
        """Return the attributes that the fingerprint of a plan reads: values, but no cached
        results."""
        unused = dict.fromkeys(Bag.__slots__)
        return {**unused, "_tree": dict(self.items()), "_length": len(self)}

    def __repr__(self) -> str:
        return f"Bag({dict(self.items())!r})"

    def __sizeof__(self) -> int:
        held = [tree for tree in (self._tree, self._split) if tree is not None]
        return object.__sizeof__(self) + sum(map(weight_tree.tree_bytes, held))


Multiset = Bag
"""Alias of `Bag`."""


def bag_from_weights(weights: dict[Any, int]) -> Bag[Any]:
    """Return a bag that owns a dictionary of canonical values and positive weights."""
    return _build_bag(weights, None, None)


def change_bag(bag: Bag[T], changes: dict[Any, int], below: dict[Any, int] | None) -> Bag[T]:
    """Return a bag with changed weights of canonical values; no change is 0.

    below: receives the weights that would be negative; the bag does not have these values.
    """
    if not changes:
        return bag
    tree, known, length = bag._tree, bag._hash, bag._length
    if known is None and tree.__class__ is dict:
        if weight_tree.is_small(len(tree) + len(changes)):
            found = _build_bag(_change_small(tree, changes, below), None, None)
            return found if bag._order is None else _with_order(bag, found, changes, below)
        known = hash(bag)
    if tree.__class__ is dict:
        tree = _split_of(bag)
    length = len(bag) if length is None else length
    if len(changes) == 1:
        ((value, weight),) = changes.items()
        mark = hash((value, weight_tree.SALT))
        made = weight_tree.add_change(tree, mark, value, weight, below)
        total, length = known + mark * weight, length + weight  # type: ignore[operator]
    else:
        marked = weight_tree.mark_values(changes)
        made = weight_tree.add_changes(tree, marked, below)
        total = known + sum([mark * weight for mark, _, weight in marked])  # type: ignore[operator]
        length += sum(changes.values())
    if below:
        length -= sum(below.values())
        total -= weight_tree.hash_of(below)
    found = _build_bag(made, total % weight_tree.PRIME, length)
    if bag._kept is not None or bag._before is not None:
        found._before = bag._before if bag._kept is None else weakref.ref(bag)
    return found if bag._order is None else _with_order(bag, found, changes, below)


def _with_order(
    old: Bag[T], made: Bag[T], changes: dict[Any, int], below: dict[Any, int] | None
) -> Bag[T]:
    """Return `made`; unless `below` has values, with the arrangement of `old`, to be changed."""
    if not below:
        made._order = old._order.after(changes)
    return made


def value_changes(old: Bag[Any], new: Bag[Any]) -> list[tuple[Any, int]]:
    """Return `new.difference(old)`, with equal values that are not identical, as 1 and 1.0,
    included as one deleted and one inserted value."""
    return new._changed_since(old)


def stored_value(bag: Bag[T], value: Any) -> T:
    """Return the value of a bag that is equal to `value`, though perhaps with other bags."""
    return weight_tree.find_equal(_split_of(bag), canonical(value))  # type: ignore[no-any-return]


def _change_small(
    tree: weight_tree.Weights, changes: Mapping[Any, int], below: dict[Any, int] | None
) -> dict[Any, int]:
    """Return a changed copy of a small dictionary; `below` receives the negative weights."""
    tree = tree.copy()
    for value, weight in changes.items():
        now = tree.get(value, 0) + weight
        if now > 0:
            tree[value] = now
        else:
            weight_tree.add_weight(tree, value, weight, below)
    return tree


def _build_bag(tree: weight_tree.Tree, known: int | None, length: int | None) -> Bag[Any]:
    """Return a bag of a tree, which it owns, with its hash and length if they are known."""
    made: Bag[Any] = Bag.__new__(Bag)
    made._tree, made._split, made._hash, made._length = tree, None, known, length
    made._order = made._kept = made._before = None
    return made


def _repeat_values(weights: dict[Any, int]) -> Iterator[Any]:
    """Yield each value, repeated by its weight."""
    if max(weights.values(), default=1) == 1:
        return iter(weights)
    return chain.from_iterable(map(repeat_value, weights, weights.values()))


def _split_of(bag: Bag[Any]) -> weight_tree.Tree:
    """Return the tree of a bag, also if it was made from a large dictionary, whose order stays."""
    tree = bag._tree
    if not isinstance(tree, dict) or weight_tree.is_small(len(tree)):
        return tree
    if bag._split is None:
        bag._split = weight_tree.split_tree(tree)
    return bag._split


def _count_values(values: Iterable[Any]) -> dict[Any, int]:
    return dict(Counter(map(canonical, values)))


def _check_counts(counts: Mapping[Any, int]) -> dict[Any, int]:
    """Return canonical values with positive counts."""
    found = weight_tree.sum_weights(counts.items())
    for value, count in found.items():
        if count < 0:
            raise ValueError(f"a Bag cannot have {value!r} {count} times")
    return found


class _BagItems(ItemsView[T, int]):
    """Items of a bag in a tree."""

    __slots__ = ("_bag",)

    def __init__(self, bag: Bag[T]) -> None:
        self._bag = bag

    def __len__(self) -> int:
        return weight_tree.tree_size(self._bag._tree)

    def __iter__(self) -> Iterator[tuple[T, int]]:
        return iter(weight_tree.weighted_values(self._bag._tree))

    def __contains__(self, item: object) -> bool:
        return (
            isinstance(item, tuple) and len(item) == 2 and self._bag.count(item[0]) == item[1] > 0
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)!r})"


_UNKNOWN = object()


class MonoidTree:
    """Values with weights, and their combination.

    >>> tree = MonoidTree(0, max)
    >>> for value, weight in [(3, 1), (9, 1), (5, 2), (9, -1)]:
    ...     tree.add(value, weight)
    >>> tree.total(), len(tree)
    (5, 2)
    """

    __slots__ = ("_combine", "_nodes", "_slots", "_values", "_weights", "_zero")

    def __init__(self, zero: Any, combine: Callable[[Any, Any], Any]) -> None:
        self._zero = zero
        self._combine = combine
        self._slots: dict[Any, int] = {}  # value -> slot
        self._values: list[Any] = []  # slot -> value
        self._weights: list[int] = []
        self._nodes: list[Any] = [_UNKNOWN, _UNKNOWN]

    def __len__(self) -> int:
        return len(self._values)

    def add(self, value: Any, weight: int) -> None:
        """Change the weight of a value; a weight of zero removes it."""
        slot = self._slots.get(value)
        if slot is None:
            self._append(value, weight)
            return
        self._weights[slot] += weight
        self._forget(slot)
        if not self._weights[slot]:
            self._remove(slot)

    def total(self) -> Any:
        """Return all values combined, each repeated by its weight; the zero if there are none."""
        return self._find_combination(1) if self._values else self._zero

    def _append(self, value: Any, weight: int) -> None:
        """Add a new value in the next slot; if the tree is full, double it and forget all nodes."""
        self._slots[value] = slot = len(self._values)
        self._values.append(value)
        self._weights.append(weight)
        if 2 * len(self._values) > len(self._nodes):
            self._nodes = [_UNKNOWN] * (2 * len(self._nodes))
        else:
            self._forget(slot)

    def _remove(self, slot: int) -> None:
        """Remove a leaf; the last leaf takes its place."""
        last = len(self._values) - 1
        self._forget(last)
        del self._slots[self._values[slot]]
        value, weight = self._values.pop(), self._weights.pop()
        if slot != last:
            self._values[slot], self._weights[slot] = value, weight
            self._slots[value] = slot
        if len(self._nodes) > 4 and 4 * len(self._values) <= len(self._nodes) // 2:
            self._nodes = [_UNKNOWN] * (len(self._nodes) // 2)

    def _forget(self, slot: int) -> None:
        """Mark the node of a slot, and all nodes above it, to be combined again."""
        node = slot + len(self._nodes) // 2
        while node:
            self._nodes[node] = _UNKNOWN
            node //= 2

    def _find_combination(self, node: int) -> Any:
        """Return the combination of a node, computed if it is unknown."""
        value = self._nodes[node]
        if value is _UNKNOWN:
            leaf = node - len(self._nodes) // 2
            if leaf >= 0:
                value = self._leaf(leaf)
            else:
                value = self._combine(
                    self._find_combination(2 * node), self._find_combination(2 * node + 1)
                )
            self._nodes[node] = value
        return value

    def _leaf(self, slot: int) -> Any:
        """Return the value of a slot, combined with itself by weight; the zero if unused."""
        if slot >= len(self._values):
            return self._zero
        return self._power(self._values[slot], self._weights[slot])

    def _power(self, value: Any, weight: int) -> Any:
        """Return `value` combined with itself, by repeated doubling."""
        result = self._zero
        while weight > 0:
            if weight & 1:
                result = self._combine(result, value)
            weight >>= 1
            if weight:
                value = self._combine(value, value)
        return result

"""Persistent Z-sets: a tree from value to weight, and the public class `ZSet`.

Weight tree: a persistent dictionary from value to weight; a change makes a new tree, which shares
the unchanged parts.

    up to 64 values     one dictionary
    more                a node of 16 children, selected by 4 bits of the value's mark; each is a
                        dictionary of up to 64 values, or a node again, by the next 4 bits

A change copies the nodes from the root to the dictionary that it changes; a change of many values
copies each touched node once. The place of a value depends on the value alone, so nodes that two
trees share are at the same places, and a comparison skips them. A node becomes one dictionary again
when half of the values are left, so that inserting and deleting one value does not split and merge
it each time. A dictionary whose values agree in all bits is not split.

The mark of a value mixes the bits of its hash, since hashes are often similar, as of the numbers
64, 128 and so on. The hash of a tree is the sum of marks times weights, so a change adds to it.

State:  some 50 bytes per value.
Cost:   O(log values) per changed value: of 10**6, four nodes of 16 and a dictionary of some 20.
Source: hash array mapped tries: Bagwell, Ideal hash trees, 2001; canonical form and comparison by
        shared nodes: Steindorfer and Vinju, Optimizing hash-array mapped tries, OOPSLA 2015.

ZSet: rows with signed weights, as a value that can be added, negated and multiplied.

    (a + b)[row]  =  a[row] + b[row]        (-a)[row]  =  -a[row]        (n * a)[row]  =  n * a[row]

It uses the tree of a `Bag`, with negative weights allowed. No row has the weight 0.

State:  the tree.
Cost:   a sum: the size of the smaller side, times log rows of the larger one; all else O(rows).
Source: [dbsp] section 2, Z-sets are a commutative group.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, compress
from operator import is_not
from typing import Any, Generic, TypeAlias, TypeVar

from reactive.engine.collections.zset import EXACT, canonical

Weights: TypeAlias = dict[Any, int]
Node: TypeAlias = list[Any]
"""The children, then the number of values. A list is copied faster than an object."""
Tree: TypeAlias = Weights | Node
Marked: TypeAlias = tuple[int, Any, int]
"""The mark of a value, the value, and a weight."""

LARGEST = 64
"""Most values of a dictionary that can be split."""
FEWEST = 32
"""Most values of a node that becomes one dictionary again."""
BITS = 4
"""Bits of a mark that select a child of a node."""
WIDTH = 1 << BITS
"""Children of a node."""
SIZE = -1
"""Place of the number of values in a node."""
DEEPEST = 60
"""Bits that can separate values; values that agree in all of them share a dictionary."""
PER_VALUE = 50
"""Approximate bytes per value, without the value."""
PRIME = (1 << 61) - 1
SALT = 0x5BD1E995


def sum_weights(pairs: Iterable[tuple[Any, int]]) -> Weights:
    """Return canonical values with weights other than 0; weights of equal values are added.

    >>> nan = float("nan")
    >>> sum_weights([(nan, 1), (-nan, 1), ("a", 1), ("a", -1)])
    {nan: 2}
    """
    found: Weights = {}
    for value, weight in pairs:
        value = canonical(value)
        found[value] = found.get(value, 0) + weight
    return {value: weight for value, weight in found.items() if weight}


def mark_values(changes: Mapping[Any, int]) -> list[Marked]:
    """Return values with their marks and weights; equal values have equal marks."""
    return [(hash((value, SALT)), value, weight) for value, weight in changes.items()]


def hash_of(tree: Tree) -> int:
    """Return the sum of marks times weights. It does not depend on how the tree is split.

    >>> hash_of({"a": 2, "b": 1}) == (2 * hash_of({"a": 1}) + hash_of({"b": 1})) % PRIME
    True
    """
    return sum([hash((value, SALT)) * weight for value, weight in weighted_values(tree)]) % PRIME


def is_small(size: int) -> bool:
    """Return True if a tree of `size` values is one dictionary."""
    return size <= LARGEST


def tree_size(tree: Tree) -> int:
    """Return the number of different values."""
    return len(tree) if isinstance(tree, dict) else tree[SIZE]


def weight_of(tree: Tree, value: Any) -> int:
    """Return the weight of a value; 0 if it is absent."""
    if not isinstance(tree, dict):
        bits = hash((value, SALT))
        while not isinstance(tree, dict):
            tree = tree[bits & (WIDTH - 1)]
            bits >>= BITS
    return tree.get(value, 0)


def find_equal(tree: Tree, value: Any) -> Any:
    """Return the stored value that is equal to `value`."""
    bits = hash((value, SALT))
    while not isinstance(tree, dict):
        tree = tree[bits & (WIDTH - 1)]
        bits >>= BITS
    return next(each for each in tree if each is value or each == value)


def weighted_values(tree: Tree) -> Iterable[tuple[Any, int]]:
    """Return each value with its weight."""
    return tree.items() if isinstance(tree, dict) else _iterate_values(tree)


def as_dict(tree: Tree) -> Weights:
    """Return all values in one dictionary."""
    return tree if isinstance(tree, dict) else dict(_iterate_values(tree))


def tree_bytes(tree: Tree) -> int:
    """Return the approximate bytes without the values; shared parts are included."""
    return sys.getsizeof(tree) if isinstance(tree, dict) else PER_VALUE * tree_size(tree)


def split_tree(weights: Weights, shift: int = 0) -> Tree:
    """Return a dictionary as a tree, split by the bits from `shift` on.

    A small dictionary becomes part of the tree, and must not change later.
    """
    levels = _count_levels(len(weights), shift)
    if not levels:
        return weights
    last = (1 << BITS * levels) - 1
    parts: list[Weights] = [{} for _ in range(last + 1)]
    for value, weight in weights.items():
        parts[hash((value, SALT)) >> shift & last][value] = weight
    trees = [split_tree(part, shift + BITS * levels) for part in parts]
    while len(trees) > 1:
        stride = len(trees) >> BITS
        trees = [_join_children(trees[place::stride]) for place in range(stride)]
    return trees[0]


def _count_levels(size: int, shift: int) -> int:
    """Return the number of levels that split `size` values into small dictionaries, on average."""
    levels = 0
    while size > LARGEST and shift < DEEPEST:
        size >>= BITS
        shift += BITS
        levels += 1
    return levels


def _join_children(children: list[Tree]) -> Tree:
    """Return a node, or a dictionary if there are few values."""
    size = sum(map(tree_size, children))
    return [*children, size] if size > LARGEST else _gather_children(children)


def _gather_children(children: Iterable[Tree]) -> Weights:
    """Return the values of trees in one dictionary."""
    return {value: weight for child in children for value, weight in weighted_values(child)}


def add_changes(tree: Tree, changes: list[Marked], below: Weights | None, shift: int = 0) -> Tree:
    """Return the tree with changed weights; each value occurs once in `changes`.

    below: receives the weights that would be negative; None if the tree may contain negative
    weights.
    """
    if len(changes) == 1:
        return add_change(tree, *changes[0], below, shift)
    if isinstance(tree, dict):
        leaf = tree.copy()
        for _, value, weight in changes:
            add_weight(leaf, value, weight, below)
        return split_tree(leaf, shift)
    node = tree.copy()
    for place, part in _by_child(changes, shift).items():
        old = node[place]
        new = node[place] = add_changes(old, part, below, shift + BITS)
        node[SIZE] += tree_size(new) - tree_size(old)
    return node if node[SIZE] > FEWEST else _gather_children(node[:SIZE])


def add_weight(leaf: Weights, value: Any, weight: int, below: Weights | None) -> None:
    """Add to the weight of a value in a dictionary that is not shared.

    A weight that becomes 0 deletes the value. `below` receives a negative weight; without it, the
    dictionary does.
    """
    new = leaf.get(value, 0) + weight
    if new > 0 or (new and below is None):
        leaf[value] = new
        return
    leaf.pop(value, 0)
    if new and below is not None:
        below[value] = new


def add_change(
    tree: Tree, bits: int, value: Any, weight: int, below: Weights | None, shift: int = 0
) -> Tree:
    """Return the tree with the changed weight of one value, whose mark is `bits`."""
    path: list[Node] = []
    place = bits >> shift
    while tree.__class__ is list:
        path.append(tree)
        tree = tree[place & (WIDTH - 1)]
        place >>= BITS
    old: Any = tree
    leaf = old.copy()
    now = leaf.get(value, 0) + weight
    if now > 0:
        leaf[value] = now
    else:
        add_weight(leaf, value, weight, below)
    if not path and len(leaf) <= LARGEST:
        return leaf  # type: ignore[no-any-return]
    grown = len(leaf) - len(old)
    shift += BITS * len(path)
    new: Tree = split_tree(leaf, shift) if grown > 0 and len(leaf) > LARGEST else leaf
    for node in reversed(path):
        shift -= BITS
        node = node.copy()
        node[bits >> shift & (WIDTH - 1)] = new
        node[SIZE] += grown
        new = node if node[SIZE] > FEWEST else _gather_children(node[:SIZE])
    return new


def _by_child(changes: Iterable[Marked], shift: int) -> dict[int, list[Marked]]:
    """Group changes by the child of a node that has their values."""
    parts: dict[int, list[Marked]] = {}
    for change in changes:
        parts.setdefault(change[0] >> shift & (WIDTH - 1), []).append(change)
    return parts


def have_equal_weights(left: Tree, right: Tree) -> bool:
    """Return True if each value has the same weight in both trees."""
    if left is right:
        return True
    if isinstance(left, dict) or isinstance(right, dict):
        return tree_size(left) == tree_size(right) and as_dict(left) == as_dict(right)
    return left[SIZE] == right[SIZE] and all(map(have_equal_weights, left[:SIZE], right[:SIZE]))


def changes_between(old: Tree, new: Tree) -> Weights:
    """Return the difference of two trees: values with the difference of their weights.

    Cost: O(changes log values) if `new` was derived from `old`, or both from a third tree.
    """
    found: Weights = {}
    for before, after in _unshared_dicts(old, new):
        _add_differences(before, after, found)
    return found


def _unshared_dicts(old: Tree, new: Tree) -> list[tuple[Weights, Weights]]:
    """Return the dictionaries that two trees do not share, in pairs."""
    found: list[tuple[Weights, Weights]] = []
    waiting = [] if old is new else [(old, new)]
    while waiting:
        before, after = waiting.pop()
        if isinstance(before, dict) or isinstance(after, dict):
            found.append((as_dict(before), as_dict(after)))
            continue
        pairs = list(compress(zip(before, after, strict=True), map(is_not, before, after)))
        if pairs and pairs[-1][0].__class__ is int:
            pairs.pop()  # the sizes
        waiting += reversed(pairs)
    return found


def _add_differences(before: Weights, after: Weights, found: Weights) -> None:
    """Add the differences of two dictionaries to `found`.

    Most values are the same objects in both; these are not hashed.
    """
    left = dict(zip(map(id, before), before.values(), strict=True))
    taken = left.pop
    came = [(v, weight) for v, weight in after.items() if taken(id(v), 0) != weight]
    for value, weight in came:
        change = weight - before.get(value, 0)
        if change:
            found[value] = change
    if left:
        for value, weight in before.items():
            if id(value) in left and value not in after:
                found[value] = -weight


def identity_changes(old: Tree, new: Tree) -> list[tuple[Any, int]]:
    """Return the difference of two trees, including values that are equal but not identical.

    >>> identity_changes({1: 1, 2: 1}, {1.0: 1, 2: 1, 3: 1})
    [(1.0, 1), (3, 1), (1, -1)]
    """
    return [pair for parts in _unshared_dicts(old, new) for pair in _identity_changes(*parts)]


def _identity_changes(before: Weights, after: Weights) -> Iterable[tuple[Any, int]]:
    """Return the difference of two dictionaries; identical values are not compared."""
    left = dict(zip(map(id, before), before.values(), strict=True))
    taken = left.pop
    came = [(v, w - old) for v, w in after.items() if (old := taken(id(v), 0)) != w]
    if not left:
        return came
    gone = [(value, -weight) for value, weight in before.items() if id(value) in left]
    return cancel_equal([*came, *gone]) if came else gone


def cancel_equal(changes: Iterable[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """Add up changes of identical values, and of equal numbers and texts of one class."""
    sums: dict[Any, int] = {}
    values: dict[Any, Any] = {}
    for value, weight in changes:
        kind = value.__class__
        mark = (kind, value) if kind in EXACT else (None, id(value))
        values[mark] = value
        sums[mark] = sums.get(mark, 0) + weight
    return [(values[mark], weight) for mark, weight in sums.items() if weight]


def tree_dicts(tree: Tree) -> list[Weights]:
    """Return the dictionaries, in the order of the bits."""
    if isinstance(tree, dict):
        return [tree]
    found: list[Weights] = []
    for child in tree[:SIZE]:
        found += (child,) if child.__class__ is dict else tree_dicts(child)
    return found


def _iterate_values(tree: Tree) -> Iterator[tuple[Any, int]]:
    return chain.from_iterable(map(dict.items, tree_dicts(tree)))


T = TypeVar("T")


class ZSet(Generic[T]):
    """Rows with signed weights: the contents or the change of a view. Immutable and hashable.

    `delta.zset` and `view.zset()` return one. The change of a view is the difference of its
    contents after and before; so changes can be added, and `-` undoes them.

    Raises
    ------
    TypeError: a row is not hashable; or the other operand is not a Z-set.

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
        """Create a Z-set from rows with weights, or from rows that each add weight 1."""
        pairs = rows.items() if isinstance(rows, Mapping) else ((row, 1) for row in rows)
        self._tree: Tree = sum_weights(pairs)
        self._hash: int | None = None

    def items(self) -> Iterable[tuple[T, int]]:
        """Return each row with its weight, in arbitrary order."""
        return weighted_values(self._tree)

    def negate(self) -> ZSet[T]:
        """Return the Z-set with all weights negated."""
        return self * -1

    def distinct(self) -> ZSet[T]:
        """Return the rows of positive weight, each with weight 1. Source: [dbsp] definition 4.5."""
        return _build_zset({row: 1 for row, weight in self.items() if weight > 0})

    @property
    def is_set(self) -> bool:
        """True if all weights are 1."""
        return all(weight == 1 for _, weight in self.items())

    @property
    def is_positive(self) -> bool:
        """True if no weight is negative: the Z-set is a bag."""
        return all(weight > 0 for _, weight in self.items())

    def __getitem__(self, row: T) -> int:
        """Return the weight of a row; 0 if it is absent."""
        return weight_of(self._tree, canonical(row))

    def __contains__(self, row: object) -> bool:
        """Return True if the weight of a row is not 0."""
        return weight_of(self._tree, canonical(row)) != 0

    def __len__(self) -> int:
        """Return the number of different rows."""
        return tree_size(self._tree)

    def __iter__(self) -> Iterator[T]:
        """Yield each row once."""
        return (row for row, _ in self.items())

    def __add__(self, other: ZSet[T]) -> ZSet[T]:
        if not isinstance(other, ZSet):
            return NotImplemented
        large, small = (self, other) if len(self) >= len(other) else (other, self)
        if not small:
            return large
        changes = mark_values(as_dict(small._tree))
        if isinstance(large._tree, dict):
            large._tree = split_tree(large._tree)
        return _build_zset(add_changes(large._tree, changes, None))

    def __sub__(self, other: ZSet[T]) -> ZSet[T]:
        return self + -other if isinstance(other, ZSet) else NotImplemented

    def __neg__(self) -> ZSet[T]:
        return self * -1

    def __mul__(self, times: int) -> ZSet[T]:
        if not isinstance(times, int):
            return NotImplemented
        if not times:
            return _build_zset({})
        return _build_zset({row: weight * times for row, weight in self.items()})

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ZSet):
            return NotImplemented
        return have_equal_weights(self._tree, other._tree)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash_of(self._tree)
        return self._hash

    def __reduce__(self) -> tuple[type[ZSet[T]], tuple[dict[T, int]]]:
        return ZSet, (dict(self.items()),)  # hashes differ between processes

    def __repr__(self) -> str:
        return f"ZSet({dict(self.items())!r})"


def zset_of(pairs: Iterable[tuple[T, int]]) -> ZSet[T]:
    """Return a Z-set of canonical rows, each once, with weights other than 0."""
    return _build_zset(dict(pairs))


def _build_zset(tree: Tree) -> ZSet[Any]:
    made: ZSet[Any] = ZSet.__new__(ZSet)
    made._tree, made._hash = tree, None
    return made

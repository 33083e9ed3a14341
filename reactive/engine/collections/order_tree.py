"""Persistent sequences of rows with sort keys; a change makes a new sequence.

Tree:

    up to 64 rows       one leaf: the rows, and their keys
    more                a node of 2 to 64 trees of equal height, and the number of their rows

A change copies the nodes from the root to the changed leaf. A comparison of two trees skips the
parts that they share.

State:  16 bytes per row.
Cost:   O(log rows) per change, place, or key; of 10**6 rows, a leaf and three nodes.
Source: B+ trees, with path copying (Driscoll et al., Making data structures persistent, 1989).

Sorted tree: the place of a row in an order.

    rows of lesser keys | rows of its key, by themselves | rows of greater keys

Rows with equal keys are sorted by themselves if they are comparable, else by arrival (`order.py`),
or by a part of them.

Cost:   O(log rows) per inserted or deleted row; O(n) to find one among n incomparable rows of a
        key.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import is_
from typing import Any, Protocol, TypeAlias

from reactive.engine.collections.order import pairs_in_order, sort_key
from reactive.engine.collections.ties import precedes
from reactive.engine.collections.zset import Row

MOST, LEAST = 64, 16
"""Rows of a leaf, or children of a node: with more it is split, with fewer merged."""
FILLED = 48
"""Rows or children of nodes that are built from many rows."""


class TreeLeaf:
    """Consecutive rows, with their keys if they are known."""

    __slots__ = ("keys", "rows", "size")

    def __init__(self, rows: Sequence[Row], keys: Sequence[Any]) -> None:
        self.rows, self.keys = rows, keys
        self.size: int = len(rows)

    @property
    def first(self) -> TreeLeaf:
        return self


class TreeNode:
    """Consecutive trees, and the first key of each."""

    __slots__ = ("first", "keys", "size", "trees")

    def __init__(self, trees: list[Tree]) -> None:
        self.trees = trees
        self.first: TreeLeaf = trees[0].first
        self.keys: list[Any] = [_first_key(tree) for tree in trees]
        self.size: int = sum([tree.size for tree in trees])

    def with_child(self, number: int, child: Tree) -> TreeNode:
        """Return the node with another child at `number`."""
        made = TreeNode.__new__(TreeNode)
        made.trees, keys = trees, made.keys = self.trees.copy(), self.keys
        made.size = self.size + child.size - trees[number].size
        trees[number] = child
        first = child if child.__class__ is TreeLeaf else child.first
        key = first.keys[0] if first.keys else None
        if key is not keys[number]:
            made.keys = keys.copy()
            made.keys[number] = key
        made.first = self.first if number else first
        return made


def _first_key(tree: Tree) -> Any:
    """Return the key of the first row; None without keys."""
    keys = tree.first.keys
    return keys[0] if keys else None


Tree: TypeAlias = TreeLeaf | TreeNode
Part: TypeAlias = tuple[int, list[Row], int, list[Row]]
"""A difference of two sequences: old place, old rows, new place, new rows."""


def build_tree(rows: Sequence[Row], keys: Sequence[Any]) -> Tree:
    """Return a tree of rows in their order.

    >>> tree = build_tree(range(1000), range(1000))
    >>> tree.size, get_row(tree, 700), [row for _, row in keyed_rows(tree)][-1]
    (1000, 700, 999)
    """
    if not rows:
        return TreeLeaf((), ())
    trees: list[Tree] = [
        TreeLeaf(tuple(rows[place : place + FILLED]), tuple(keys[place : place + FILLED]))
        for place in range(0, len(rows), FILLED)
    ]
    while len(trees) > 1:
        trees = [TreeNode(trees[place : place + FILLED]) for place in range(0, len(trees), FILLED)]
    return trees[0]


def iterate_leaves(tree: Tree, start: int = 0) -> Iterator[TreeLeaf]:
    """Yield the leaves, without those before a place."""
    if isinstance(tree, TreeLeaf):
        yield tree
        return
    for each in tree.trees:
        if start < each.size:
            yield from iterate_leaves(each, max(start, 0))
        start -= each.size


def keyed_rows(tree: Tree) -> Iterator[tuple[Any, Row]]:
    """Yield the rows with their keys."""
    for leaf in iterate_leaves(tree):
        yield from zip(leaf.keys, leaf.rows, strict=True)


def get_row(tree: Tree, place: int) -> Row:
    """Return the row at a place."""
    while isinstance(tree, TreeNode):
        number, place = find_child(tree, place)
        tree = tree.trees[number]
    return tree.rows[place]


def count_while(tree: Tree, test: Callable[[Any, Row], bool]) -> int:
    """Return how many first rows pass a test of key and row; later rows must not pass."""
    count = 0
    while isinstance(tree, TreeNode):
        trees = tree.trees
        low, high = 0, len(trees)
        while low < high:
            middle = (low + high) // 2
            first = trees[middle].first
            if test(first.keys[0], first.rows[0]):
                low = middle + 1
            else:
                high = middle
        if not low:
            return count
        count += sum([each.size for each in trees[: low - 1]])
        tree = trees[low - 1]
    low, high = 0, tree.size
    while low < high:
        middle = (low + high) // 2
        if test(tree.keys[middle], tree.rows[middle]):
            low = middle + 1
        else:
            high = middle
    return count + low


def insert_at(tree: Tree, place: int, key: Any, row: Row) -> Tree:
    """Return the tree with a row inserted before a place."""
    path: list[tuple[TreeNode, int]] = []
    while isinstance(tree, TreeNode):
        number, place = find_child(tree, place)
        path.append((tree, number))
        tree = tree.trees[number]
    made = with_row(tree, place, key, row)
    while path:
        node, number = path.pop()
        made = with_children(node, number, made)
    return _join_trees(made)


def delete_at(tree: Tree, place: int) -> Tree:
    """Return the tree without the row at a place."""
    return trim_root(_delete_at(tree, place))


def trim_root(made: Tree) -> Tree:
    """Return a tree without nodes of a single child at the top."""
    while isinstance(made, TreeNode) and len(made.trees) == 1:
        made = made.trees[0]
    return made


def _join_trees(trees: list[Tree]) -> Tree:
    return trees[0] if len(trees) == 1 else TreeNode(trees)


def with_row(leaf: TreeLeaf, place: int, key: Any, row: Row) -> list[Tree]:
    """Return a leaf with a row inserted before a place, or its two halves."""
    rows = _insert_value(leaf.rows, place, row)
    if leaf.keys is leaf.rows and key is row:
        return _cut_leaf(rows, rows)
    return _cut_leaf(rows, _insert_value(leaf.keys, place, key))


def _insert_value(values: Sequence[Any], place: int, value: Any) -> Sequence[Any]:
    """Insert a value into a tuple; at its end by one copy, in a third of the time."""
    if place == len(values) and values.__class__ is tuple:
        return values + (value,)  # noqa: RUF005
    return (*values[:place], value, *values[place:])


def without_row(leaf: TreeLeaf, place: int) -> TreeLeaf:
    """Return a leaf without the row at a place."""
    rows, keys = leaf.rows, leaf.keys
    return TreeLeaf((*rows[:place], *rows[place + 1 :]), (*keys[:place], *keys[place + 1 :]))


def with_children(node: TreeNode, number: int, made: list[Tree]) -> list[Tree]:
    """Return a node with one or two trees in place of a child, or its two halves."""
    if len(made) == 1:
        return [node.with_child(number, made[0])]
    trees = node.trees.copy()
    trees[number : number + 1] = made
    return _cut_node(trees)


def with_less(node: TreeNode, number: int, small: Tree) -> TreeNode:
    """Return a node with a smaller tree in place of a child."""
    trees = node.trees
    if len(trees) > 1 and (not small.size or _node_width(small) < LEAST):
        trees = trees.copy()
        trees[number] = small
        if small.size:
            number = max(0, number - 1)
            trees[number : number + 2] = _merge_trees(trees[number], trees[number + 1])
        else:
            del trees[number]
        return TreeNode(trees)
    return node.with_child(number, small)


def _cut_leaf(rows: Sequence[Row], keys: Sequence[Any]) -> list[Tree]:
    """Return a leaf of rows and keys, or two halves if they are too many for one."""
    if len(rows) <= MOST:
        return [TreeLeaf(rows, keys)]
    half = len(rows) // 2
    if rows is keys:
        return [TreeLeaf(part, part) for part in (rows[:half], rows[half:])]
    return [TreeLeaf(rows[:half], keys[:half]), TreeLeaf(rows[half:], keys[half:])]


def _cut_node(trees: list[Tree]) -> list[Tree]:
    """Return a node of trees, or two halves if they are too many for one."""
    if len(trees) <= MOST:
        return [TreeNode(trees)]
    half = len(trees) // 2
    return [TreeNode(trees[:half]), TreeNode(trees[half:])]


def find_child(node: TreeNode, place: int) -> tuple[int, int]:
    """Return the child that has a place, or ends before it, and the place in the child."""
    trees = node.trees
    if 2 * place <= node.size:
        for number, each in enumerate(trees):
            if place < each.size:
                return number, place
            place -= each.size
    begin, number = node.size, len(trees)
    while number and place < begin:
        number -= 1
        begin -= trees[number].size
    return (number, place - begin) if number < len(trees) else (number - 1, trees[-1].size)


def _delete_at(tree: Tree, place: int) -> Tree:
    """Return the tree without the row at a place; its root may have a single child."""
    if isinstance(tree, TreeLeaf):
        return without_row(tree, place)
    number, place = find_child(tree, place)
    return with_less(tree, number, _delete_at(tree.trees[number], place))


def _node_width(tree: Tree) -> int:
    """Return the number of rows of a leaf, or of children of a node."""
    return tree.size if isinstance(tree, TreeLeaf) else len(tree.trees)


def _merge_trees(left: Any, right: Any) -> list[Tree]:
    """Return two neighbours as one tree or, if that is too large, as two halves."""
    if isinstance(left, TreeLeaf):
        return _cut_leaf((*left.rows, *right.rows), (*left.keys, *right.keys))
    return _cut_node(left.trees + right.trees)


def find_differing_parts(old: Tree, new: Tree) -> list[Part]:
    """Return the differences of two sequences, in order; shared parts are skipped.

    >>> old = build_tree(range(1000), range(1000))
    >>> find_differing_parts(old, delete_at(old, 7))
    [(7, [7], 7, [])]
    """
    found: list[Part] = []
    _compare_levels([old], [new], 0, 0, found)
    return found


def _compare_levels(
    old: Sequence[Tree], new: Sequence[Tree], before: int, after: int, found: list[Part]
) -> None:
    """Compare two lists of consecutive trees, each list of equal height."""
    same, same_end = _count_shared(old, new)
    before, after = before + _total_size(old[:same]), after + _total_size(new[:same])
    old, new = old[same : len(old) - same_end], new[same : len(new) - same_end]
    numbers = {id(tree): number for number, tree in enumerate(old)}
    start = stop = 0
    for number, tree in enumerate(new):
        same = numbers.get(id(tree), -1)
        if same < start:
            continue
        gone, came = old[start:same], new[stop:number]
        _compare_unshared(gone, came, before, after, found)
        before += _total_size(gone) + tree.size
        after += _total_size(came) + tree.size
        start, stop = same + 1, number + 1
    _compare_unshared(old[start:], new[stop:], before, after, found)


def _count_shared(old: Sequence[Any], new: Sequence[Any]) -> tuple[int, int]:
    """Return how many items are identical at the start, and how many of the rest at the end."""
    most = min(len(old), len(new))
    start = _count_leading(map(is_, old, new), most)
    return start, min(_count_leading(map(is_, reversed(old), reversed(new)), most), most - start)


def _count_leading(same: Iterable[bool], most: int) -> int:
    found = list(same)
    return found.index(False) if False in found else most


def _compare_unshared(
    old: Sequence[Tree], new: Sequence[Tree], before: int, after: int, found: list[Part]
) -> None:
    """Compare trees that have no common tree, and append the differences to `found`."""
    if not (old or new):
        return
    if not (old and new) or _height(old[0]) == _height(new[0]) == 0:
        gone, came = _list_rows(old), _list_rows(new)
        same, same_end = _count_shared(gone, came)
        gone, came = gone[same : len(gone) - same_end], came[same : len(came) - same_end]
        if gone or came:
            found.append((before + same, gone, after + same, came))
        return
    high, other = _height(old[0]), _height(new[0])
    below_old = _list_children(old) if high >= other else old
    below_new = _list_children(new) if other >= high else new
    _compare_levels(below_old, below_new, before, after, found)


def _height(tree: Tree) -> int:
    """Return the number of levels of nodes above the leaves."""
    height = 0
    while isinstance(tree, TreeNode):
        tree, height = tree.trees[0], height + 1
    return height


def _list_children(trees: Sequence[Any]) -> list[Tree]:
    return [each for tree in trees for each in tree.trees]


def _total_size(trees: Sequence[Tree]) -> int:
    return sum([tree.size for tree in trees])


def _list_rows(trees: Sequence[Tree]) -> list[Row]:
    return list(chain.from_iterable(leaf.rows for tree in trees for leaf in iterate_leaves(tree)))


class TreeOrder(Protocol):
    """Sort order of rows with keys."""

    @property
    def descending(self) -> bool: ...
    def tie(self, row: Row) -> Any:
        """Return the value that sorts rows with equal keys."""
        ...


def sorted_tree(pairs: Iterable[tuple[Any, Row]], order: TreeOrder) -> Tree:
    """Return the tree of rows, sorted by their keys."""
    every = pairs_in_order(pairs, order.descending, order.tie)
    return build_tree([row for _, row in every], [sort_key(key) for key, _ in every])


def change_row(tree: Tree, key: Any, row: Row, weight: int, order: TreeOrder) -> Tree:
    """Return the tree after inserting a row `weight` times, or deleting it `-weight` times."""
    for _ in range(weight):
        made = _insert_newest(tree, key, row, order)
        tree = made[0] if len(made) == 1 else TreeNode(made)
    for _ in range(-weight):
        found = _remove_newest(tree, key, row, order)
        tree = (
            delete_at(tree, _place_of(tree, key, row, order)) if found is None else trim_root(found)
        )
    return tree


def _insert_newest(tree: Tree, key: Any, row: Row, order: TreeOrder) -> list[Tree]:
    """Return the tree with a row inserted, as the newest of incomparable ones, or its two
    halves."""
    if isinstance(tree, TreeLeaf):
        place = _newest_place(tree.keys, tree.rows.__getitem__, key, row, order)
        return with_row(tree, place, key, row)
    trees = tree.trees
    place = _newest_place(tree.keys, lambda n: trees[n].first.rows[0], key, row, order)
    number = max(place - 1, 0)
    return with_children(tree, number, _insert_newest(trees[number], key, row, order))


def _newest_place(
    keys: Sequence[Any], row_at: Callable[[int], Row], key: Any, row: Row, order: TreeOrder
) -> int:
    """Return the place of a new row, as the newest, among rows or among first rows of trees."""
    start, stop = _equal_range(keys, key, descending=order.descending)
    if start == stop:
        return start
    tie = order.tie(row)
    while start < stop:
        middle = (start + stop) // 2
        if precedes(tie, order.tie(row_at(middle))):
            stop = middle
        else:
            start = middle + 1
    return start


def _remove_newest(tree: Tree, key: Any, row: Row, order: TreeOrder) -> Tree | None:
    """Return the tree without a row; None if the row may be in another leaf."""
    if isinstance(tree, TreeLeaf):
        start, stop = _equal_range(tree.keys, key, descending=order.descending)
        is_whole = start and stop < tree.size
        for place in range(start, stop) if is_whole or stop - start == 1 else ():
            found = tree.rows[place]
            if found is row or found == row:
                return without_row(tree, place)
        return None
    number = max(_equal_range(tree.keys, key, descending=order.descending)[1] - 1, 0)
    small = _remove_newest(tree.trees[number], key, row, order)
    return None if small is None else with_less(tree, number, small)


def _equal_range(keys: Sequence[Any], key: Any, *, descending: bool) -> tuple[int, int]:
    """Return start and end of the rows with an equal key."""
    if not descending:
        start = bisect_left(keys, key)
        is_there = start < len(keys) and not key < keys[start]
        return start, bisect_right(keys, key, start) if is_there else start
    start, end = 0, len(keys)
    while start < end:
        middle = (start + end) // 2
        if key < keys[middle]:
            start = middle + 1
        else:
            end = middle
    stop, end = start, len(keys)
    while stop < end:
        middle = (stop + end) // 2
        if keys[middle] < key:
            end = middle
        else:
            stop = middle + 1
    return start, stop


def find_places(tree: Tree, key: Any, row: Row, order: TreeOrder) -> Iterator[int]:
    """Yield the places of a row, the oldest of equal rows first."""
    descending, tie = order.descending, order.tie(row)

    def is_before(k: Any, r: Row) -> bool:
        if (key < k) if descending else (k < key):
            return True
        return not ((k < key) if descending else (key < k)) and precedes(order.tie(r), tie)

    place, end = count_while(tree, is_before), tree.size
    while place < end:
        found = get_row(tree, place)
        if found is row or found == row:
            yield place
        place += 1


def _place_of(tree: Tree, key: Any, row: Row, order: TreeOrder) -> int:
    """Return the place of a row, even if the user's callable returns another key than before."""
    for place in find_places(tree, key, row, order):
        return place
    return next(n for n, (_, r) in enumerate(keyed_rows(tree)) if r is row or r == row)

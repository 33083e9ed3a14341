"""Makes of plain lists, dictionaries and sets those that are tracked, and of these snapshots.

    order.lines = [[1], 2]        a plain list, until a table holds the order
    wrap(order.lines, order, "lines")     a `TrackedList`, which holds another one

What is put into a container is made one itself, as a copy: `row = []; order.lines.append(row)` puts
in a list that has the values of `row`, and is another. A container that is tracked already is the
same object wherever it is put, and tells all that have it.

Lists, dictionaries and sets are those of Python; of classes made of them, what they hold cannot be
followed, and a leaf refuses them. What a row shows of one becomes one again: `order.lines =
row.lines`.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from reactive.borders.objects.containers.container import Container, Leaf, tracked
from reactive.borders.objects.containers.tracked_dict import TrackedDict
from reactive.borders.objects.containers.tracked_list import TrackedList
from reactive.borders.objects.containers.tracked_set import TrackedSet
from reactive.engine.collections.frozen_dict import FrozenDict
from reactive.engine.collections.frozen_list import FrozenList
from reactive.engine.collections.frozen_set import FrozenSet
from reactive.engine.collections.order_tree import Part, parts_between

FOLLOWED = frozenset({list, dict, set, FrozenList, FrozenDict, FrozenSet})
"""Classes of which an object gets a container of its own."""


def wrap(value: Any, owner: Any, key: Hashable) -> Any:
    """A value as an object that is tracked holds it, which from now on is told of its changes.

    Parameters
    ----------
    owner: a `container.Owner`.
    key: where in the owner the value is.

    >>> class Alone:
    ...     def with_owners(self, found): found[id(self)] = self
    ...     def holds(self, key, value): return True
    ...     def mark(self, key, value): print("changed:", key)
    ...     @staticmethod
    ...     def change_all(objects, do): do()
    >>> alone = Alone()
    >>> lines = wrap([["tea", 2]], alone, "lines")
    >>> lines[0].append("hot")
    changed: lines
    >>> lines, isinstance(lines[0], list)
    ([['tea', 2, 'hot']], True)
    >>> before = snapshot(lines, leaf)
    >>> lines.append("cake")
    changed: lines
    >>> before, snapshot(lines, leaf)[1]
    (FrozenList([FrozenList(['tea', 2, 'hot'])]), 'cake')
    """
    value = tracked(value)
    if isinstance(value, Container):
        value.own(owner, key)
    return value


def is_container(value: Any) -> bool:
    """Whether it is one that can be followed."""
    return value.__class__ in FOLLOWED or isinstance(value, Container)


def is_same(value: Any, old: Any) -> bool:
    """Whether two parts of snapshots are equal, in order and in class, with all that they hold.

    >>> is_same(FrozenList([1, 2]), FrozenList([1, 2])), is_same(FrozenList([1]), FrozenList([1.0]))
    (True, False)

    Cost: O(changes log n) if one was made of the other.
    """
    kind = value.__class__
    if value is old or kind is not old.__class__:
        return value is old
    if kind is tuple:
        return len(value) == len(old) and all(map(is_same, value, old))
    if kind is FrozenSet:
        return bool(value == old) and not value._changed_since(old)
    if kind is FrozenList:
        return len(value) == len(old) and _are_same(value.parts_since(old))
    if kind is FrozenDict:
        return _are_same(parts_between(old._order, value._order))
    return bool(value == old)


def _are_same(parts: list[Part]) -> bool:
    return all(
        start == at and len(gone) == len(came) and all(map(is_same, came, gone))
        for start, gone, at, came in parts
    )


def leaf(value: Any, owner: Any) -> Any:
    """What a snapshot holds of a value that has a hash: the value.

    Raises
    ------
    TypeError: it has none.
    """
    hash(value)
    return value


def snapshot(container: Container, of: Leaf) -> Any:
    """What a container holds: a `FrozenList`, `FrozenDict` or `FrozenSet`, kept until it changes.

    of: what is held of a value that is no container, of it and the container that it is in.

    Cost: O(log n) for each edit since the last one; of the first, O(n).
    """
    return container.freeze(of)


def is_silent(container: Container, of: Leaf) -> bool:
    """Whether it has changed without telling, as by `list.append(order.lines, x)`.

    Cost: O(n).
    """
    return not is_same(container.anew(of), snapshot(container, of))


__all__ = [
    "FrozenList",
    "TrackedDict",
    "TrackedList",
    "TrackedSet",
    "is_container",
    "is_same",
    "is_silent",
    "leaf",
    "snapshot",
    "wrap",
]

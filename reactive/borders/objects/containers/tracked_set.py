"""Tracked sets, and the conversion of plain containers to tracked ones.

    order.lines = [[1], 2]                a plain list, until a table holds the order
    wrap(order.lines, order, "lines")     a `TrackedList`, which holds another one

A plain container that is put into a tracked one is copied: `row = []; order.lines.append(row)`
appends a tracked list with the values of `row`. A tracked container stays the same object wherever
it is put, and notifies all its owners.

Only Python's own lists, dictionaries and sets are tracked; a leaf refuses values of their
subclasses, whose contents cannot be followed. The frozen containers of a row become tracked ones
again: `order.lines = row.lines`.

State:  the values of a set that changed since the last snapshot; for tracked objects in it, their
        snapshots.
Cost:   an edit of a set O(its values), and O(log n) for each at the next snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Any

from reactive.borders.objects.containers.container import (
    Container,
    Leaf,
    Undo,
    freeze_part,
    to_tracked,
)
from reactive.borders.objects.containers.tracked_dict import TrackedDict
from reactive.borders.objects.containers.tracked_list import TrackedList
from reactive.engine.collections.frozen_dict import (
    FrozenDict,
    FrozenSet,
    changed_parts,
    set_changes,
)
from reactive.engine.collections.long_tuple import FrozenList
from reactive.engine.collections.order_tree import Part

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


Values = set[Any]


class TrackedSet(set[Any], Container):
    """A set in a tracked object. `==`, `repr`, pickles and copies are those of `set`."""

    __slots__ = ("_counts", "_frozen", "_log", "_owners", "_shown", "_stale")
    PLAIN = set
    FROZEN = FrozenSet
    _log: dict[Any, None]
    _shown: dict[Any, Any]

    def __new__(cls, values: Iterable[Any] = ()) -> TrackedSet:
        """Create an empty one, which `__init__` fills."""
        made = set.__new__(cls)
        made._blank()
        made._log, made._shown = {}, {}
        return made

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self._become(lambda: set(values))

    # Changes.

    def add(self, value: Any) -> None:
        """Add a value."""
        self._change(lambda: self._put({value} - self, set()))

    def discard(self, value: Any) -> None:
        """Remove a value if it is there."""
        self._change(lambda: self._put(set(), _single_value_set(value) if value in self else set()))

    def remove(self, value: Any) -> None:
        """Remove a value; raise `KeyError` if it is absent."""

        def remove() -> Undo | None:
            if value not in self:
                raise KeyError(value)
            return self._put(set(), _single_value_set(value))

        self._change(remove)

    def pop(self) -> Any:
        """Remove and return an arbitrary value."""
        found: list[Any] = []

        def pop() -> Undo:
            value = set.pop(self)
            found.append(value)
            self._note((value,))
            return partial(self._exchange, {value}, set())

        self._change(pop)
        return found[0]

    def clear(self) -> None:
        """Remove all values."""
        self._change(lambda: self._put(set(), set(self)))

    def update(self, *others: Iterable[Any]) -> None:
        """Add values: all of them, or none if an iterable raises."""
        given = set().union(*others)
        self._change(lambda: self._put(given - self, set()))

    def difference_update(self, *others: Iterable[Any]) -> None:
        """Remove the values of other iterables."""
        given = set().union(*others)
        self._change(lambda: self._put(set(), {v for v in given if v in self}))

    def intersection_update(self, *others: Iterable[Any]) -> None:
        """Keep only the values that all others have."""
        given = [set(other) for other in others]
        self._become(lambda: set(self).intersection(*given))

    def symmetric_difference_update(self, other: Iterable[Any]) -> None:
        """Keep the values that only one of the two has."""
        given = set(other)
        self._change(lambda: self._put(given - self, {v for v in given if v in self}))

    def __ior__(self, other: Any) -> Any:  # type: ignore[misc]
        return self._with(other, self.update)

    def __iand__(self, other: Any) -> Any:  # type: ignore[misc]
        return self._with(other, self.intersection_update)

    def __isub__(self, other: Any) -> Any:  # type: ignore[misc]
        return self._with(other, self.difference_update)

    def __ixor__(self, other: Any) -> Any:  # type: ignore[misc]
        return self._with(other, self.symmetric_difference_update)

    def __repr__(self) -> str:
        return repr(set(self))

    # Implementation of changes.

    def _with(self, other: Any, update: Callable[[Any], None]) -> Any:
        """Call `update` with a set, and return this set; `NotImplemented` for anything else."""
        if not isinstance(other, set | frozenset) and not hasattr(other, "isdisjoint"):
            return NotImplemented
        update(other)
        return self

    def _become(self, made: Callable[[], Values]) -> None:
        """Change the set to the values that `made` returns, which is called within the change."""

        def become() -> Undo | None:
            new = made()
            return self._put(new - self, set(self) - new)

        self._change(become)

    def _put(self, came: Values, gone: Values) -> Undo | None:
        """Add and remove values; return the undo, None if there are none."""
        if not came and not gone:
            return None
        self._exchange(came, gone)
        return partial(self._exchange, gone, came)

    def _exchange(self, came: Values, gone: Values) -> None:
        """Add and remove values, log them for the next snapshot, and report the change."""
        set.update(self, came)
        set.difference_update(self, gone)
        self._note(came)
        self._note(gone)

    def _note(self, values: Iterable[Any]) -> None:
        """Log values for the next snapshot, if there is one to change, and report the change."""
        if self._frozen is not None:
            self._log.update(dict.fromkeys(values))
        self._tell()

    # Snapshots.

    def freeze(self, leaf: Leaf) -> FrozenSet[Any]:
        """Return the contents as an immutable value, which is the same object until they change."""
        made: FrozenSet[Any] | None = self._frozen
        if made is not None and (self._log or self._stale):
            made = self._moved_on(made, leaf)
        if made is None:
            found = [(value, freeze_part(value, self, leaf)) for value in self]
            self._shown = {value: new for value, new in found if new is not value}
            made = FrozenSet([new for _, new in found])
        self._frozen, self._stale, self._log = made, {}, {}
        return made

    def anew(self, leaf: Leaf) -> FrozenSet[Any]:
        """Return the contents as an immutable value, ignoring which changes were reported."""
        made: FrozenSet[Any] | None = self._frozen
        if made is not None and not self._shown and len(made) == len(self) and set(made) == self:
            return made
        return FrozenSet([freeze_part(value, self, leaf) for value in self])

    def _moved_on(self, made: FrozenSet[Any], leaf: Leaf) -> FrozenSet[Any] | None:
        """Apply the changes to the last snapshot; None if some were not reported."""
        known = dict(self._shown)
        before: Values = set()
        now: dict[Any, Any] = {}
        for value in (*self._log, *self._stale.values()):
            old = known.pop(value, value)
            if old in made:
                before.add(old)
            if value in self:
                now[value] = freeze_part(value, self, leaf)
        after = set(now.values())
        known |= {value: new for value, new in now.items() if new is not value}
        made = made.plus(dict.fromkeys(after - before, 1) | dict.fromkeys(before - after, -1))
        self._shown = known
        return made if len(made) == len(self) else None

    def holds(self, key: Hashable, value: Any) -> bool:
        """Return True if a value is in the set."""
        return value in self

    def follows_any(self) -> bool:
        """Return True if the set holds a tracked object."""
        return bool(self._shown)

    def _values(self) -> Iterable[Any]:
        return self


def _single_value_set(value: Any) -> Values:
    """Return a set of one value; a set value becomes a frozenset."""
    return {frozenset(value) if isinstance(value, set) else value}


FOLLOWED = frozenset({list, dict, set, FrozenList, FrozenDict, FrozenSet})
"""The classes whose values are converted to a container of the object."""


def wrap(value: Any, owner: Any, key: Hashable) -> Any:
    """Convert a value to the form that a tracked object holds, and notify the owner of its changes.

    Parameters
    ----------
    owner: a `container.Owner`.
    key: the key of the value in the owner.

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
    value = to_tracked(value)
    if isinstance(value, Container):
        value.own(owner, key)
    return value


def is_container(value: Any) -> bool:
    """Return True for a container that can be tracked."""
    return value.__class__ in FOLLOWED or isinstance(value, Container)


def is_same(value: Any, old: Any) -> bool:
    """Return True if two parts of snapshots are equal, in order and class, with all their contents.

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
        return bool(value == old) and not set_changes(old, value)
    if kind is FrozenList:
        return len(value) == len(old) and _are_same_parts(value.parts_since(old))
    if kind is FrozenDict:
        return _are_same_parts(changed_parts(old, value))
    return bool(value == old)


def _are_same_parts(parts: list[Part]) -> bool:
    """Return True if all differing parts are at one place, and equal item by item."""
    return all(
        start == at and len(gone) == len(came) and all(map(is_same, came, gone))
        for start, gone, at, came in parts
    )


def leaf(value: Any, owner: Any) -> Any:
    """Return a hashable value unchanged, for snapshots of it.

    Raises
    ------
    TypeError: the value is not hashable.
    """
    hash(value)
    return value


def snapshot(container: Container, of: Leaf) -> Any:
    """Return the contents as a `FrozenList`, `FrozenDict` or `FrozenSet`, cached until they change.

    of: returns the form of a value that is no container, given the value and its container.

    Cost: O(log n) for each edit since the last snapshot; O(n) for the first one.
    """
    return container.freeze(of)


def is_silent(container: Container, of: Leaf) -> bool:
    """Return True if the container changed without a report, as by `list.append(order.lines, x)`.

    Cost: O(n).
    """
    return not is_same(container.anew(of), snapshot(container, of))

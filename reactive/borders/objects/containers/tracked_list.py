"""A list that reports each change to its owners.

    order.lines.insert(5, x)      list:       x at place 5
                                  log:        5, 0 values deleted, [x] inserted
    end of the transaction        snapshot:   the last one, `spliced` by the log

Values that change themselves, such as inner lists and tracked objects, notify the list. The list
remembers their places as of the last snapshot, and searches from there to both sides, because
insertions move them; if one is far away, all places are recorded again.

State:  the changes since the last snapshot; the places of values that change themselves.
Cost:   an edit O(1), and O(log n) at the next snapshot; a value that changed O(sqrt n).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import isqrt
from operator import index, is_
from typing import Any, SupportsIndex

from reactive.borders.objects.containers.container import (
    Container,
    Leaf,
    Undo,
    count_tracked,
    freeze_part,
    freeze_part_anew,
    is_much,
    take_value,
)
from reactive.engine.collections.long_tuple import FrozenList
from reactive.errors import TableError

NEAR = 64
"""The places to each side where a value is searched, if more than the square root of the length."""


class TrackedList(list[Any], Container):
    """A list in a tracked object. `==`, `repr`, pickles and copies are those of `list`."""

    __slots__ = (
        "__weakref__",
        "_count",
        "_counts",
        "_frozen",
        "_hints",
        "_log",
        "_owners",
        "_stale",
    )
    PLAIN = list
    FROZEN = FrozenList
    _count: int
    _hints: dict[int, int]
    _log: list[tuple[int, int, list[Any]]]

    def __new__(cls, values: Iterable[Any] = ()) -> TrackedList:
        """Create an empty one, which `__init__` fills."""
        made = list.__new__(cls)
        made._blank()
        made._hints, made._log, made._count = {}, [], 0
        return made

    def __init__(self, values: Iterable[Any] = ()) -> None:
        given = list(values)
        self._change(lambda: self._put(0, len(self), given))

    # Changes.

    def append(self, value: Any) -> None:
        """Append a value."""
        self._change(partial(self._append, value))

    def extend(self, values: Iterable[Any]) -> None:
        """Append values: all of them, or none if `values` raises."""
        given = list(values)
        self._change(lambda: self._put(len(self), len(self), given))

    def insert(self, place: SupportsIndex, value: Any) -> None:
        """Insert a value before a place."""
        start = slice(index(place), None)

        def insert() -> Undo | None:
            at = start.indices(len(self))[0]
            return self._put(at, at, [value])

        self._change(insert)

    def pop(self, place: SupportsIndex = -1) -> Any:
        """Remove and return the value at a place, by default the last."""
        found: list[Any] = []

        def pop() -> Undo | None:
            at = index(place)
            if not self:
                raise IndexError("pop from empty list")
            if not -len(self) <= at < len(self):
                raise IndexError("pop index out of range")
            at %= len(self)
            found.append(list.__getitem__(self, at))
            return self._put(at, at + 1, [])

        self._change(pop)
        return found[0]

    def remove(self, value: Any) -> None:
        """Remove the first value that is equal."""

        def remove() -> Undo | None:
            if value not in self:
                raise ValueError("list.remove(x): x not in list")
            at = list.index(self, value)
            return self._put(at, at + 1, [])

        self._change(remove)

    def clear(self) -> None:
        """Remove all values."""
        self._change(lambda: self._put(0, len(self), []))

    def reverse(self) -> None:
        """Reverse the list in place."""
        self._change(lambda: self._put(0, len(self), self[::-1]))

    def sort(self, *, key: Callable[[Any], Any] | None = None, reverse: bool = False) -> None:
        """Sort the list in place, or leave it unchanged if `key` raises."""
        self._change(lambda: self._put(0, len(self), sorted(self, key=key, reverse=reverse)))

    def __setitem__(self, place: Any, value: Any) -> None:
        if not isinstance(place, slice):
            self._change(lambda: self._set(place, value))
            return
        if not hasattr(type(value), "__iter__"):
            [].__setitem__(place, value)  # raises the usual error
        given = list(value)
        self._change(lambda: self._set_slice(place, given))

    def __delitem__(self, place: Any) -> None:
        self._change(lambda: self._delete(place))

    def __iadd__(self, values: Iterable[Any]) -> TrackedList:  # type: ignore[misc]
        self.extend(values)
        return self

    def __imul__(self, times: SupportsIndex) -> TrackedList:
        def multiply() -> Undo | None:
            made, size = list(self) * times, len(self)
            if not made:
                return self._put(0, size, [])
            return self._put(size, size, made[size:])

        self._change(multiply)
        return self

    # Implementation of changes.

    def _append(self, value: Any) -> Undo:
        """Append a value; return the undo."""
        size, new = len(self), [take_value(value, self)]
        self._exchange(size, [], new)
        return partial(self._exchange, size, new, [])

    def _set(self, place: Any, value: Any) -> Undo | None:
        """Replace the item at a place; return the undo, None if it is the same.

        Raises as a list does.
        """
        try:
            list.__getitem__(self, place)
        except (IndexError, TypeError):
            [].__setitem__(place, value)  # raises the usual error
            raise
        at = index(place) % len(self)
        return self._put(at, at + 1, [value])

    def _set_slice(self, place: slice, values: list[Any]) -> Undo | None:
        """Replace a slice; return the undo, None if nothing changes. Raises as a list does."""
        start, stop, step = place.indices(len(self))
        if step == 1:
            return self._put(start, max(start, stop), values)
        places = range(start, stop, step)
        if len(places) != len(values):
            list(self)[place] = values  # raises the usual error
        pairs = zip(places, values, strict=True)
        return self._all(lambda: (self._put(at, at + 1, [v]) for at, v in pairs))

    def _delete(self, place: Any) -> Undo | None:
        """Delete an item or a slice; return the undo, None for an empty slice.

        Raises as a list does.
        """
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            if step == 1:
                return self._put(start, max(start, stop), [])
            places = sorted(range(start, stop, step), reverse=True)
            return self._all(lambda: (self._put(at, at + 1, []) for at in places))
        try:
            list.__getitem__(self, place)
        except (IndexError, TypeError):
            [].__delitem__(place)  # raises the usual error
            raise
        at = index(place) % len(self)
        return self._put(at, at + 1, [])

    def _all(self, steps: Callable[[], Iterator[Undo | None]]) -> Undo | None:
        """Run several changes, or none if one fails; return the undo, None without a change."""
        done: list[Undo] = []
        back = partial(_backwards, done)
        try:
            for undo in steps():
                if undo is not None:
                    done.append(undo)
        except BaseException:
            back()
            raise
        return back if done else None

    def _put(self, start: int, stop: int, values: list[Any]) -> Undo | None:
        """Replace a slice by values; return the undo, None if they are the same objects."""
        old = list.__getitem__(self, slice(start, stop))
        new = [take_value(value, self) for value in values]
        if len(old) == len(new) and all(map(is_, old, new)):
            return None
        self._exchange(start, old, new)
        return partial(self._exchange, start, new, old)

    def _exchange(self, start: int, old: list[Any], new: list[Any]) -> None:
        """Replace the items `old` at `start` by `new`; log and report the change."""
        list.__setitem__(self, slice(start, start + len(old)), new)
        if new:
            count_tracked(self._counts, new, 1)
        if old:
            count_tracked(self._counts, old, -1)
        for value in new:
            if isinstance(value, Container):
                value.own(self, None)
        if self._hints:
            for value in old:
                self._hints.pop(id(value), None)
        if self._frozen is not None:
            self._note(start, len(old), new)
        self._tell()

    def _note(self, start: int, gone: int, new: list[Any]) -> None:
        """Log a change for the next snapshot; after many changes, drop the snapshot instead."""
        log = self._log
        self._count += gone + len(new)
        if is_much(self._count, len(self)):
            self._frozen = None
            log.clear()
        elif log and not gone and start == log[-1][0] + len(log[-1][2]):
            log[-1][2].extend(new)
        else:
            log.append((start, gone, list(new)))

    # Snapshots.

    def freeze(self, leaf: Leaf) -> FrozenList[Any]:
        """Return the contents as an immutable value, which is the same object until they change."""
        made: FrozenList[Any] | None = self._frozen
        if made is not None and (self._log or self._stale):
            try:
                made = self._moved_on(made, leaf)
            except TableError:  # of a value that may be gone by now
                made = None
        if made is None:
            self._hints = {}
            made = FrozenList(self._shown_all(0, list(self), leaf))
        self._frozen, self._stale, self._log, self._count = made, {}, [], 0
        return made

    def anew(self, leaf: Leaf) -> FrozenList[Any]:
        """Return the contents as an immutable value, ignoring which changes were reported."""
        made: FrozenList[Any] | None = self._frozen
        if made is not None and len(made) == len(self) and all(map(is_, self, made)):
            return made
        return FrozenList([freeze_part_anew(value, self, leaf) for value in self])

    def _moved_on(self, made: FrozenList[Any], leaf: Leaf) -> FrozenList[Any] | None:
        """Apply the changes to the last snapshot; None if some were not reported."""
        size = len(made)
        for start, gone, values in self._log:
            if start + gone > size:
                return None
            size += len(values) - gone
            made = made.spliced(start, start + gone, self._shown_all(start, values, leaf))
        if size != len(self):
            return None
        for value in list(self._stale.values()):
            places = self._places(value)
            new = freeze_part(value, self, leaf) if places else None
            for place in places:
                if made[place] is not new:
                    made = made.spliced(place, place + 1, [new])
        return made

    def _shown_all(self, start: int, values: list[Any], leaf: Leaf) -> list[Any]:
        """Return the frozen forms of values, and remember the places of those that differ."""
        found = [freeze_part(value, self, leaf) for value in values]
        hints = self._hints
        for place, (value, frozen) in enumerate(zip(values, found, strict=True), start):
            if value is not frozen:
                hints[id(value)] = place
        return found

    def _places(self, value: Any) -> list[int]:
        """Return the places of a value that changed itself."""
        size = len(self)
        if self._counts.get(id(value)) == 1 and (hint := self._hints.get(id(value))) is not None:
            at = list.__getitem__
            for away in range(max(NEAR, isqrt(size))):
                for place in (hint - away, hint + away):
                    if 0 <= place < size and at(self, place) is value:
                        self._hints[id(value)] = place
                        return [place]
        return self._all_places(value)

    def _all_places(self, value: Any) -> list[int]:
        """Return the places of a value by a full search; record the places of all such values."""
        counts = self._counts
        self._hints = {id(each): place for place, each in enumerate(self) if id(each) in counts}
        return [place for place, each in enumerate(self) if each is value]

    def _values(self) -> list[Any]:
        return self


def _backwards(undos: list[Undo]) -> None:
    """Call undos, the last one first."""
    for undo in reversed(undos):
        undo()

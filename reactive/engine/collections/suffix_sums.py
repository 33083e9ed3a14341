"""Suffix sums: rows in an order, split by a condition of the sum of what comes after them.

    key       10   20   30   40
    amount     5    5    0    2          what is summed at a key
    sum        7    2    2    0          of the amounts after it
    sum < 3    -    x    x    x          the keys that hold

An amount that changes shifts the sums of all keys before it, and most of them hold as before. So a
part of the order stores the greatest sum of its keys that hold, and the least sum of the others,
without the amounts after the part. A part is visited only if one of its keys must change sides.

The condition holds for the sums below a place. Keys with nothing counted after them have no sum.

State:  a balanced search tree with one node per key; parts out of balance are built again.
Cost:   O(log n) per changed key, amortized, and O(log n) per key that changes sides.
Source: T. H. Cormen and others, *Introduction to Algorithms*, section 14.2, augmenting trees; M. H.
        Overmars, *The Design of Dynamic Data Structures*, 1983, partial rebuilding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from reactive.engine.collections.zset import Pair, Row

HEAVY = 2
"""A side of a part is too large if it has as many times the keys of the other side."""
BYTES = 300
"""Approximate bytes per key, with a row."""
Holds = Callable[[int], bool]
Flip = Callable[["Place"], None]


class Place:
    """A key with its amount and rows, and the part of the order below it in the tree."""

    __slots__ = (
        *("amount", "before", "count", "counted", "holds", "key"),
        *("least", "most", "rows", "size", "then", "total"),
    )

    def __init__(self, key: Any) -> None:
        self.key = key
        self.amount = 0
        self.count = 0
        self.rows: dict[Row, int] = {}
        self.holds = False
        self.before: Place | None = None
        self.then: Place | None = None
        self.size = 1
        self.total = 0
        self.counted = 0
        self.most: int | None = None
        self.least: int | None = None

    @property
    def is_empty(self) -> bool:
        return not (self.rows or self.count or self.amount)


class SuffixSums:
    """The keys of one order, with the sums of the amounts after them.

    Parameters
    ----------
    descends: greater keys come first.
    is_closed: the amount of a key is part of its own sum.

    >>> sums = SuffixSums(descends=False, is_closed=False)
    >>> for key, amount in [(10, 5), (20, 5), (40, 2)]:
    ...     place = sums.place(key)
    ...     place.amount, place.count, place.rows = amount, 1, {f"row {key}": 1}
    ...     sums.refresh(key)
    >>> flipped = []
    >>> sums.settle(lambda total: total < 3, False, flipped.append)
    3
    >>> [place.key for place in flipped]
    [20]
    """

    __slots__ = ("_descends", "_is_closed", "_root")

    def __init__(self, *, descends: bool, is_closed: bool) -> None:
        self._descends = descends
        self._is_closed = is_closed
        self._root: Place | None = None

    def __len__(self) -> int:
        return 0 if self._root is None else self._root.size

    def places(self) -> Iterator[Place]:
        """Return the places in order."""
        return _in_order(self._root)

    def rows(self) -> Iterator[Pair]:
        """Return the rows that hold, with their weights."""
        for place in self.places():
            if place.holds:
                yield from place.rows.items()

    def footprint(self) -> int:
        """Return the approximate bytes."""
        return BYTES * len(self)

    # Changes.

    def fill(self, keys: Iterable[Any]) -> None:
        """Insert many keys into an empty order."""
        ordered = sorted(keys, reverse=self._descends)
        self._root = self._built([Place(key) for key in ordered], 0, len(ordered))

    def place(self, key: Any) -> Place:
        """Return the place of a key; insert it if it is new. Raise if it does not compare."""
        place = self._root
        while place is not None:
            if key == place.key:
                return place
            place = place.before if self._is_before(key, place.key) else place.then
        return self._insert(key)

    def refresh(self, key: Any) -> None:
        """Update the parts around a place that has changed."""
        for place in reversed(self._path(key)):
            self._sum_up(place)

    def restore(self, place: Place) -> None:
        """Update the parts around a place that is as it was before a step, and put it back if a
        part was built again while it was empty."""
        now = place if place.is_empty else self.place(place.key)
        if now is not place:
            now.amount, now.count, now.holds = place.amount, place.count, place.holds
            now.rows = place.rows
        self.refresh(place.key)

    def settle(self, holds: Holds, missing: bool, flip: Flip) -> int:
        """Let each key hold if its sum does; call `flip` before a key changes sides.

        `missing` is the side of keys without a sum. Return the number of visited parts.
        """
        return 0 if self._root is None else self._settle(self._root, 0, 0, holds, missing, flip)

    def _settle(
        self, part: Place, after: int, counted: int, holds: Holds, missing: bool, flip: Flip
    ) -> int:
        """Settle a part; `after` is the sum of what comes after it, of `counted` amounts."""
        most, least = part.most, part.least
        if counted:
            if (most is None or holds(after + most)) and (
                least is None or not holds(after + least)
            ):
                return 1
        elif not part.counted and (least if missing else most) is None:
            return 1
        visited, then, before = 1, part.then, part.before
        if then is not None:
            visited += self._settle(then, after, counted, holds, missing, flip)
            after, counted = after + then.total, counted + then.counted
        passed, passed_count = after + part.amount, counted + part.count
        if part.rows:
            own, own_count = (passed, passed_count) if self._is_closed else (after, counted)
            if part.holds is not (holds(own) if own_count else missing):
                flip(part)
                part.holds = not part.holds
        if before is not None:
            visited += self._settle(before, passed, passed_count, holds, missing, flip)
        self._sum_up(part)
        return visited

    # The tree.

    def _is_before(self, key: Any, other: Any) -> bool:
        return bool(other < key if self._descends else key < other)

    def _path(self, key: Any) -> list[Place]:
        """Return the places from the root to the place of a key, or to where it would be."""
        found: list[Place] = []
        place = self._root
        while place is not None:
            found.append(place)
            if key == place.key:
                break
            place = place.before if self._is_before(key, place.key) else place.then
        return found

    def _insert(self, key: Any) -> Place:
        """Insert a key, and build the largest part again that is out of balance."""
        path, made = self._path(key), Place(key)
        if not path:
            self._root = made
            return made
        if self._is_before(key, path[-1].key):
            path[-1].before = made
        else:
            path[-1].then = made
        heavy = None
        for number in range(len(path) - 1, -1, -1):
            self._sum_up(path[number])
            if _is_heavy(path[number]):
                heavy = number
        if heavy is not None:
            self._rebuild(path[heavy], path[heavy - 1] if heavy else None, made)
        return made

    def _rebuild(self, part: Place, above: Place | None, kept: Place) -> None:
        """Build a part again, without its empty places but the one that is `kept`."""
        places = [each for each in _in_order(part) if each is kept or not each.is_empty]
        made = self._built(places, 0, len(places))
        if above is None:
            self._root = made
        elif above.before is part:
            above.before = made
        else:
            above.then = made
        if above is not None:
            self.refresh(above.key)

    def _built(self, places: list[Place], start: int, stop: int) -> Place | None:
        """Return a balanced part of sorted places."""
        if start == stop:
            return None
        middle = (start + stop) // 2
        part = places[middle]
        part.before = self._built(places, start, middle)
        part.then = self._built(places, middle + 1, stop)
        self._sum_up(part)
        return part

    def _sum_up(self, part: Place) -> None:
        """Compute the sums of a part from those of its two sides."""
        before, then = part.before, part.then
        most = least = None
        after = counted = 0
        size = 1
        if then is not None:
            after, counted, most, least = then.total, then.counted, then.most, then.least
            size += then.size
        total = after + part.amount
        if part.rows:
            own = total if self._is_closed else after
            if not part.holds:
                least = own if least is None or own < least else least
            elif most is None or own > most:
                most = own
        counted += part.count
        if before is not None:
            if before.most is not None and (most is None or total + before.most > most):
                most = total + before.most
            if before.least is not None and (least is None or total + before.least < least):
                least = total + before.least
            total, counted, size = (
                total + before.total,
                counted + before.counted,
                size + before.size,
            )
        part.total, part.counted, part.size = total, counted, size
        part.most, part.least = most, least


def _is_heavy(part: Place) -> bool:
    """Return True if one side of a part is much larger than the other."""
    before, then = part.before, part.then
    sizes = (0 if before is None else before.size), (0 if then is None else then.size)
    return max(sizes) > HEAVY * (min(sizes) + 1)


def _in_order(part: Place | None) -> Iterator[Place]:
    """Return the places of a part in order."""
    waiting: list[Place] = []
    while waiting or part is not None:
        while part is not None:
            waiting.append(part)
            part = part.before
        place = waiting.pop()
        part = place.then  # read before the caller changes the place
        yield place

"""Predicate matching: the left rows that have a partner by key or range, and by a predicate.

    matches(row)          =  the weight of the rows of R that match the row
    partnered(L, R)(row)  =  L(row)  if matches(row) > 0, else 0

A changed row of R changes the matches of the left rows that it is joined with. A new left row
counts its partners. A generated loop adds them up by left row, as the loop of an inner join makes
pairs; the predicate is called for each pair while there are error rows, and if the loop raises.
A right row that is replaced changes only the matches of the left rows that its bounds cross
(`moved_bounds.py`).

State:  the weight and the matches of each left row.
Cost:   O(|dL| + |dR| + partners by key or range).
Source: [i3ql] exists and not exists; [dbsp] section 4, antijoin.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from reactive.engine.collections.index import Key, KeyedPair
from reactive.engine.collections.zset import Row, has_both_signs
from reactive.engine.operators.index_by import FINDS_NOTHING, IndexBy
from reactive.engine.operators.join import KeyCandidates
from reactive.engine.operators.matching import Change
from reactive.engine.runtime.interrupts import reraise_asynchronous

if TYPE_CHECKING:
    from reactive.engine.operators.moved_bounds import MovedBounds

Fits = Callable[[Row, Row], object]
Counted = tuple[Row, int, int]
"""A left row, its weight and its matches."""
Counts = tuple[dict[Any, int], int]
"""The change of matches by the handle of a left row, and the number of joined pairs."""


class PartnerLoop:
    """Count the partners of changed rows by a generated loop.

    Parameters
    ----------
    loop: counts for new left rows and changed right rows, with a look-up of each side.
    bounds: makes the part that finds right rows of which only the compared values have moved.
    side: the side of the join, 0 or 1, whose rows count their partners.
    """

    __slots__ = ("_bounds", "_loop", "_made_bounds", "_side")

    def __init__(
        self,
        loop: Callable[..., Counts],
        bounds: Callable[[], MovedBounds] | None = None,
        side: int = 0,
    ) -> None:
        self._loop = loop
        self._bounds = bounds
        self._made_bounds: MovedBounds | None = None
        self._side = side

    def count(
        self,
        new: Sequence[KeyedPair],
        left: Sequence[KeyedPair],
        right: Sequence[KeyedPair],
        find_right: Callable[..., Any],
        find_left: Callable[..., Any],
    ) -> Counts:
        """Return the counts for the `new` rows of the delta `left`, and for the delta `right`.

        `find_left` looks up the rows before the delta `left`.
        """
        if self._bounds is not None and has_both_signs(right):
            bounds = self._moved_bounds(self._bounds)
            moved = bounds.moved_rows(1 - self._side, right)
            if moved is not None:
                right = moved
                find_left = bounds.partners(self._side, find_left, left)
        if self._bounds is not None and has_both_signs(left):
            bounds = self._moved_bounds(self._bounds)
            limited = bounds.limited_rows(self._side, new)
            if limited is not None:
                new, find_right = limited, bounds.partners(1 - self._side, find_right, ())
        return self._loop(new, right, find_right, find_left)

    def next_change(self, side: int, moment: datetime) -> datetime | None:
        """Return the next moment at which a clock, the side 0 or 1, changes the counts.

        Return `moment` if it is not known, and None if there is none.
        """
        if self._bounds is None or side == self._side:
            return moment
        return self._moved_bounds(self._bounds).next_change(side, moment)

    def _moved_bounds(self, make: Callable[[], MovedBounds]) -> MovedBounds:
        """Return the part that finds moved bounds; the first call makes it."""
        if self._made_bounds is None:
            self._made_bounds = make()
        return self._made_bounds


class PredicateMatching:
    """Match by key and predicate: `fits(row, other)`; `whole(row, other)` if there are error rows.

    `count` counts the partners of all changes in one call; None calls `fits` for each pair.

    >>> from reactive.engine.operators.index_by import IndexBy
    >>> names, others = IndexBy(None), IndexBy(None)
    >>> matching = PredicateMatching(names, others, str.startswith)
    >>> matching.step(names.step([("anna", 1)]), others.step([("an", 1), ("ot", 1)]))
    [('anna', 1, 0)]
    """

    __slots__ = (
        *("__weakref__", "_count", "_fits", "_handle", "_held", "_last", "_left", "_right"),
        "_whole",
        "touched",
    )

    def __init__(
        self,
        left: IndexBy,
        right: IndexBy,
        fits: Fits,
        whole: Fits | None = None,
        count: PartnerLoop | None = None,
    ) -> None:
        self._left = left
        self._right = right
        self._fits = fits
        self._whole = fits if whole is None else whole
        self._count = count
        self._handle = left.handle
        self._held: dict[Any, Counted] = {}
        self._last: dict[Any, Counted] = {}
        """The previous state of each row that the last step has changed."""
        self.touched = 0

    def step(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> list[Change]:
        """Return the changed left rows; undoes all counts if a predicate raises."""
        self._last = {}
        try:
            if not self._count_by_loop(left, right):
                self._count_pairs(left, right)
        except BaseException:
            self.undo()
            raise
        self.touched += len(left) + len(right)
        return self._changes()

    def next_change(self, side: int, moment: datetime) -> datetime | None:
        """Return the next moment at which a clock, the side 0 or 1, changes the result.

        Return `moment` if it is not known, and None if there is none.
        """
        return moment if self._count is None else self._count.next_change(side, moment)

    def undo(self) -> None:
        for handle, counted in self._last.items():
            self._set(handle, counted)
        self._last = {}

    def commit(self) -> None:
        self._last = {}

    def forget(self, row: Row) -> None:
        """Drop the state of a left row, between two steps; no row that comes matches it."""
        self._held.pop(self._handle(row), None)

    def contents(self) -> Iterator[Change]:
        for row, weight, matches in self._held.values():
            yield (row, weight, 0) if matches > 0 else (row, 0, weight)

    def footprint(self) -> tuple[int, int]:
        size = sys.getsizeof((None, 0, 0))
        return len(self._held), sys.getsizeof(self._held) + size * len(self._held)

    # By the loop.

    def _count_by_loop(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> bool:
        """Apply the changes by the loop; return False, with nothing changed, if it cannot run."""
        if self._count is None or self._left.poisoned or self._right.poisoned:
            return False
        handle, held = self._handle, self._held
        changed = {handle(row): (row, change) for _, (row, change) in left}
        if len(changed) < len(left):
            return False  # a row that is deleted and inserted has no partners left
        new = [keyed for keyed in left if handle(keyed[1][0]) not in held] if held else left
        find_right = self._right.find(before=False) if new else FINDS_NOTHING
        find_left = self._left.find_before(left) if right else FINDS_NOTHING
        try:
            counts, met = self._count.count(new, left, right, find_right, find_left)
        except Exception as error:  # the predicate raises it, or finds that it is ignored
            reraise_asynchronous(error)
            return False
        self.touched += met
        self._apply(changed, counts)
        return True

    def _apply(self, changed: dict[Any, tuple[Row, int]], counts: dict[Any, int]) -> None:
        """Change the matches of left rows by `counts`, and the weights of the `changed` ones."""
        held, last = self._held, self._last
        for handle, (row, change) in changed.items():
            old = held.get(handle)
            if old is None:
                last[handle] = row, 0, 0
                held[handle] = row, change, counts.pop(handle, 0)
                continue
            last[handle] = old
            row, weight, matches = old
            self._set(handle, (row, weight + change, matches + counts.pop(handle, 0)))
        for handle, more in counts.items():
            if more:
                old = last[handle] = held[handle]
                row, weight, matches = old
                held[handle] = row, weight, matches + more

    # By pairs.

    def _count_pairs(self, left: Sequence[KeyedPair], right: Sequence[KeyedPair]) -> None:
        """Apply the changes, and call the predicate for each pair."""
        sides: list[Any]
        if self._left.poisoned or self._right.poisoned:
            fits, sides = self._whole, [KeyCandidates(self._left), KeyCandidates(self._right)]
        else:
            fits, sides = self._fits, [self._left.index, self._right.index]
        self._count_right(right, fits, sides[0])
        self._count_left(left, fits, sides[1])

    def _count_right(self, right: Sequence[KeyedPair], fits: Fits, lefts: Any) -> None:
        """Change the matches of left rows that stay."""
        held = self._held
        for key, (other, times) in right:
            counted: set[Any] = set()  # a left row may be listed several times
            for row, _ in lefts.pairs(key):
                handle = self._handle(row)
                if handle in held:  # `_count_left` counts the matches of new rows
                    self.touched += 1
                    if fits(row, other) and handle not in counted:
                        counted.add(handle)
                        row, weight, matches = self._touch(handle, row)
                        self._set(handle, (row, weight, matches + times))

    def _count_left(self, left: Sequence[KeyedPair], fits: Fits, rights: Any) -> None:
        """Change weights of left rows; count the matches of a new row on the current right side."""
        for key, (row, change) in left:
            handle = self._handle(row)
            _, weight, matches = self._touch(handle, row)
            if not weight:
                matches = self._matches(row, key, fits, rights)
            self._set(handle, (row, weight + change, matches))

    def _matches(self, row: Row, key: Key, fits: Fits, rights: Any) -> int:
        """Return the weight of all current right rows that match a row."""
        candidates = rights.pairs(key)
        self.touched += len(candidates)
        matches = 0
        for other, times in candidates:
            if fits(row, other):
                matches += times
        return matches

    def _touch(self, handle: Any, row: Row) -> Counted:
        """Return the state of a left row; the first call in a step records it."""
        counted = self._held.get(handle, (row, 0, 0))
        self._last.setdefault(handle, counted)
        return counted

    def _set(self, handle: Any, counted: Counted) -> None:
        """Set the state of a left row; weight 0 deletes it."""
        if counted[1]:
            self._held[handle] = counted
        else:
            self._held.pop(handle, None)

    def _changes(self) -> list[Change]:
        """Return the changes of the left rows, as partnered and as alone, since the last step."""
        out: list[Change] = []
        held = self._held
        for handle, (row, was, had) in self._last.items():
            _, now, has = held.get(handle, (row, 0, 0))
            partnered = (now if has > 0 else 0) - (was if had > 0 else 0)
            alone = now - was - partnered
            if partnered or alone:
                out.append((row, partnered, alone))
        return out


def changes_of_switch(
    plain: PredicateMatching,
    rows: Iterable[KeyedPair],
    delta: Sequence[KeyedPair],
    change_before: Callable[[Key, Row, int], Change],
) -> list[Change]:
    """Fill `plain`, which replaces another matching; return what changes by the last step.

    `rows` are the current left rows, to which `delta` is already applied. `change_before` returns
    the parts of a left row's weight as of the commit before.
    """
    now = [*rows]
    before: dict[tuple[Key, Row], int] = {}
    for key, (row, weight) in [*now, *((k, (r, -w)) for k, (r, w) in delta)]:
        before[key, row] = before.get((key, row), 0) + weight
    plain.step(now, ())
    moved: dict[Row, tuple[int, int]] = {}
    for (key, row), weight in before.items():
        if weight:
            _, partnered, alone = change_before(key, row, weight)
            moved[row] = (-partnered, -alone)
    for row, partnered, alone in plain.contents():
        more = moved.get(row, (0, 0))
        moved[row] = (more[0] + partnered, more[1] + alone)
    return [(row, *change) for row, change in moved.items() if any(change)]

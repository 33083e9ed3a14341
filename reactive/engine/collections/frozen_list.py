"""What a list was at one time: an immutable sequence that shares structure with those before it.

    b = a.spliced(3, 5, rows)       O(log n): one path of nodes is copied, the rest is shared
    b._changed_since(a)             what is in the nodes that they do not share
    sum(l.qty for l in b)           what the sum of `a` was, and what changed

So a loop over a list inside a row costs, of two rows that go and come, what changed of the list, as
one over a `Bag` does, by the same mechanism (`inner_changes.py`, `folded.py`).

State:  16 bytes per value; per fold of a large one, what it gave and its state.
Cost:   of a change, a place, O(log n); of hash and equality, O(1) and O(changes log n) where
        one was made of the other; else O(n).
Source: as `order_tree.py`.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, overload

from reactive.engine.collections import folded, order_tree, weight_tree
from reactive.engine.collections.long_tuple import LongTuple, changed_values, mark
from reactive.engine.collections.order_tree import Part
from reactive.engine.collections.splices import spliced
from reactive.engine.collections.weight_tree import PRIME
from reactive.engine.collections.zset import canonical

T = TypeVar("T", covariant=True)


class FrozenList(LongTuple[T]):
    """A list that does not change: hashable; equal to a list with the same values, and, up to 64 of
    them, to a tuple, whose hash it has then.

    >>> values = FrozenList(range(1000))
    >>> values[-1], values[3:5], len(values), 7 in values, values == list(range(1000))
    (999, FrozenList([3, 4]), 1000, True, True)
    >>> changed = values.spliced(0, 998, ["a"])
    >>> changed, len(values)
    (FrozenList(['a', 998, 999]), 1000)
    """

    __slots__ = ("__weakref__", "_before", "_kept", "_made_of", "_part")

    def __init__(self, values: Iterable[T] = ()) -> None:
        super().__init__(map(canonical, values))
        self._kept: dict[Any, Any] | None = None  # what folds gave of it (`folded.py`)
        self._before: weakref.ref[FrozenList[Any]] | None = None  # the last that kept some
        self._made_of: weakref.ref[FrozenList[Any]] | None = None
        self._part: Part | None = None  # where it differs from that

    @overload  # type: ignore[override]
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> FrozenList[T]: ...
    def __getitem__(self, place: int | slice) -> Any:
        found: Any = super().__getitem__(place)
        return FrozenList(found) if isinstance(place, slice) else found

    def spliced(self, start: int, stop: int, values: Sequence[Any]) -> FrozenList[T]:
        """The list with other values in the place of those from `start` up to `stop`.

        Cost: O(log n) per value.
        """
        values = list(map(canonical, values))
        gone = list(self._between(start, stop)) if start < stop else []
        total = self._sum
        if total is not None:
            total = (total + sum(map(mark, values)) - sum(map(mark, gone))) % PRIME
        made: FrozenList[T] = FrozenList.__new__(FrozenList)
        made._tree = spliced(self._tree, start, stop, values)
        made._sum, made._hash, made._kept = total, None, None
        own = weakref.ref(self)
        made._before = self._before if self._kept is None else own
        made._made_of, made._part = own, (start, gone, start, values)
        return made

    def parts_since(self, before: FrozenList[Any]) -> list[Part]:
        """Where it differs from another one, in order.

        Cost: O(changes log n) if one was made of the other; O(changes) by one `spliced`.
        """
        made_of = self._made_of
        if made_of is not None and self._part is not None and made_of() is before:
            return [self._part]
        return order_tree.parts_between(before._tree, self._tree)

    def _changed_since(self, before: Any) -> list[tuple[Any, int]]:
        return changed_values(self.parts_since(before))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, list):
            return len(self) == len(other) and list(self) == other
        return super().__eq__(other)

    __hash__ = LongTuple.__hash__

    def __lt__(self, other: Any) -> bool:
        return list(self) < list(other)

    def __le__(self, other: Any) -> bool:
        return list(self) <= list(other)

    def __gt__(self, other: Any) -> bool:
        return list(self) > list(other)

    def __ge__(self, other: Any) -> bool:
        return list(self) >= list(other)

    def __add__(self, other: Any) -> Any:
        return FrozenList([*self, *other])

    def __radd__(self, other: Any) -> Any:
        return FrozenList([*other, *self])

    def __mul__(self, times: int) -> FrozenList[T]:
        return FrozenList(list(self) * times)

    __rmul__ = __mul__

    def copy(self) -> FrozenList[T]:
        """Itself: it does not change."""
        return self

    def __copy__(self) -> FrozenList[T]:
        return self

    def __deepcopy__(self, memo: Any) -> FrozenList[T]:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenList, (list(self),)

    def __repr__(self) -> str:
        return f"FrozenList({list(self)!r})"

    def _folded(self, fold: Any, each: Any, beside: Any, options: Any) -> Any:
        return folded.folded(self, fold, each, beside, options)

    def _is_small(self) -> bool:
        return weight_tree.is_small(len(self))

    def _weighted(self) -> None:
        """All of its places count once."""

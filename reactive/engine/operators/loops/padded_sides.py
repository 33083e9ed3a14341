"""Sides of an outer join of sums: a key without rows has the padded row.

    left_join    right:  "b" -> rows       find("b")    the rows
                                           find("c")    None, once

So an outer join is an inner join of its padded sides, and the loops of `factored_aggregate.py` run
over it. When a key of a padded side gets its first rows, the padded row leaves; when it loses its
last, the padded row returns:

    right:  + (b, row)         +  (b, row), - (b, None)        if "b" had no rows
            - (b, row)         -  (b, row), + (b, None)        if "b" has none left

If both sides are padded, a key with rows on neither has no pair: the padded row of one side looks
up rows of the other only.

State:  none but that of the sides.
Cost:   O(changed keys) beside that of the loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from optimizer.expr import Expr, Lifted, row_names
from optimizer.plans.factorization import Factorization, Sums
from optimizer.record import record
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections.exact import scale_value
from reactive.engine.collections.index import NO_MATCH, NOTHING, FewRows, Mark, WeightedRows
from reactive.engine.collections.zset import canonical
from reactive.engine.operators.index_by import IndexBy
from reactive.engine.operators.join import SumsBy
from reactive.engine.operators.loops.factored_aggregate import Sides
from reactive.engine.operators.loops.nests import LEFT, RIGHT

Find = Callable[[Any, Any], Any]
Changes = Sequence[Any]


class OnlyRows:
    """A key whose look-up finds rows, and no padded row."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key


class PaddedSides(Sides):
    """The two sides of an outer join; a side whose partner is kept is padded."""

    __slots__ = ("_pad_left", "_pad_right")

    def __init__(
        self,
        left: IndexBy | SumsBy,
        right: IndexBy | SumsBy,
        factors: Factorization,
        count: int,
    ) -> None:
        """`count` is the number of bindings of the left side."""
        super().__init__(left, right)
        finds = self.find_left, self.find_right
        self._pad_left = self._pad_right = None
        if RIGHT in factors.kept:
            nothing = None if count == 1 else (None,) * count
            self._pad_left = _Padding(left, finds, _Pad(factors.left, nothing, count))
            self.find_left = self._pad_left.over(self.find_left)
        if LEFT in factors.kept:
            self._pad_right = _Padding(right, finds[::-1], _Pad(factors.right, None, 1))
            self.find_right = self._pad_right.over(self.find_right)

    def loop_of_one(self, side: str, loop: Callable[..., Any]) -> Callable[..., Any]:
        """Return the loop over a single change, which returns None if the padded row changes."""
        padding = self._pad_left if side == LEFT else self._pad_right
        if padding is None:
            return loop
        is_alone = padding.is_alone

        def loop_of_rows(groups: Any, before: Any, delta: Changes, find: Find) -> Any:
            return loop(groups, before, delta, find) if is_alone(delta[0]) else None

        return loop_of_rows

    def look_ups(self, left: Changes, right: Changes) -> tuple[Any, ...]:
        """Return the arguments of the loops, as `Sides`, with the changes of padded rows."""
        is_first = not self.is_filled
        _, rest, _, before = super().look_ups(left, right)
        ours, theirs = self._pad_left, self._pad_right
        if is_first:
            rest = () if ours is None else ours.without_rows(right)
            return left, rest, self.find_right, self.find_left
        wrap = OnlyRows if ours is not None and theirs is not None else None
        if ours is not None:
            if left and right:
                before = ours.over(before)
            left = ours.with_padded(left, wrap)
        if theirs is not None:
            right = theirs.with_padded(right, wrap)
        return left, right, self.find_right, before


@record
class _Pad:
    """The padded row of a side, as a look-up finds it: a row or its sums."""

    sums: Sums | None
    row: Any
    count: int

    def found(self) -> Any:
        """Return what a look-up finds; raises what its expressions raise for the padded row."""
        if self.sums is None:
            return self.row
        for test in self.sums.tests:
            self._value(test)
        values = (1, *(scale_value(value, 1) for value in map(self._value, self.sums.values)))
        ends = [canonical(self._value(extreme.value)) for extreme in self.sums.extremes]
        values = (*values, *ends, 1) if ends else values
        return {self._part(self.sums.groups): values} if self.sums.groups else values

    def _part(self, groups: Sequence[Expr]) -> Any:
        parts = [canonical(self._value(group)) for group in groups]
        return parts[0] if len(parts) == 1 else tuple(parts)

    def _value(self, expr: Expr) -> Any:
        call = callable_of(Lifted(expr, row_names(self.count), (), self.count))
        return call(self.row) if self.count == 1 else call(*self.row)


class _Padding:
    """Pads the look-ups and the changes of a side."""

    __slots__ = ("_find", "_find_partners", "_known", "_pad", "_side")

    def __init__(self, side: IndexBy | SumsBy, finds: tuple[Find, Find], pad: _Pad) -> None:
        """Pad a side; `finds` look up the rows of this side, and those of the other."""
        self._side = side
        self._find, self._find_partners = finds
        self._pad = pad
        self._known: Any = NOTHING

    def over(self, find: Find) -> Find:
        """Return a look-up that finds the padded row for a key without rows."""

        def padded(key: Any, default: Any) -> Any:
            if key.__class__ is OnlyRows:
                return find(key.key, default)
            if key is NO_MATCH:
                return self._padded()
            found = find(key, NOTHING)
            return self._padded() if found is NOTHING else found

        return padded

    def _padded(self) -> Any:
        if self._known is NOTHING:
            self._known = self._pad.found()
        return self._known

    def is_alone(self, change: Any) -> bool:
        """Return True if a change, the only one of a commit, leaves all pairs of the padded row."""
        key, of = change
        if key.__class__ is Mark or self._find_partners(key, NOTHING) is NOTHING:
            return True
        found = self._find(key, NOTHING)
        if found is NOTHING:
            return False
        if isinstance(self._side, SumsBy):
            return bool(found[0] > of[0] and found[0] > 0)
        return of[1] < 0 or _size(found) > 1

    def without_rows(self, changes: Changes) -> Changes:
        """Return the changes of the other side whose keys find no row on this one."""
        find = self._find
        return [
            each for each in changes if each[0] is NO_MATCH or find(each[0], NOTHING) is NOTHING
        ]

    def with_padded(self, changes: Changes, wrap: type[OnlyRows] | None) -> Changes:
        """Return changes of this side, with those of the padded row; `wrap` marks their keys."""
        if not changes:
            return changes
        added: list[Any] = []
        for key, weight in self._transitions(changes):
            added += self._changes_of_pad(key if wrap is None else wrap(key), weight)
        return [*changes, *added] if added else changes

    def _transitions(self, changes: Changes) -> Iterable[tuple[Any, int]]:
        """Yield the keys that got their first rows, with -1, or lost their last, with 1."""
        for key, weights in self._weights_by_key(changes).items():
            found = self._find(key, NOTHING)
            if found is not NOTHING and _size(found) > len(weights):
                continue  # a row was there before
            now = sum(_weights(found, self._side))
            if bool(now) != bool(now - sum(weights)):
                yield key, -1 if now else 1

    def _weights_by_key(self, changes: Changes) -> dict[Any, list[int]]:
        found: dict[Any, list[int]] = {}
        side = self._side
        is_sums = isinstance(side, SumsBy)
        by_group = isinstance(side, SumsBy) and side.by_group
        for key, of in changes:
            known = key[0] if by_group else key
            if known.__class__ is not Mark:
                found.setdefault(known, []).append(of[0] if is_sums else of[1])
        return found

    def _changes_of_pad(self, key: Any, weight: int) -> Iterable[Any]:
        """Return the changes of the padded row of a key."""
        found = self._padded()
        if not isinstance(self._side, SumsBy):
            return [(key, (found, weight))]
        changes = [(key, found)]
        if self._side.by_group:
            changes = [((key, part), sums) for part, sums in found.items()]
        return changes if weight > 0 else self._side.negate(changes)


def _size(found: Any) -> int:
    """Return the number of rows, or of sums, that a look-up has found."""
    kind = found.__class__
    return len(found) if kind in (FewRows, WeightedRows, dict) else 1


def _weights(found: Any, side: IndexBy | SumsBy) -> list[int]:
    """Return the weights of the rows, or the counts of the sums, that a look-up has found."""
    if found is NOTHING:
        return []
    if isinstance(side, SumsBy):
        return [sums[0] for sums in (found.values() if side.by_group else (found,))]
    if found.__class__ is WeightedRows:
        return [weight for _, weight in found.values()]
    return [1] * _size(found)

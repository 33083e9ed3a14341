"""Sums beyond: the rows for which a condition holds of a sum over the rows beyond their own key.

    (select sum(c.volume) from bids c where c.price > b.price)  <  l.most

    price     10   20   30   40
    volume     5    5    0    2
    sum        7    2    2    0         beyond each price
                  ^                     most = 3: the bids from here on

A changed row of the summed side shifts the sums of all rows before it; only rows whose condition
changes are visited and emitted (`suffix_sums.py`). The sums themselves are nobody's output.

Sums are integers: each value is a multiple of a small unit, as in `exact.py`. With floats beside
decimals, values that have no such form, or keys without an order, the step raises `BailOut`, and
the database returns to the plan that pairs rows.

State:  both sides, by key; the row that the sums are compared with.
Cost:   O(log n) per changed row of each side, and O(log n) per emitted row.
Source: VWAP of DBToaster (`optimizer/plans/sums_beyond.py`); here volumes may be negative.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from decimal import Context, Decimal
from itertools import chain
from typing import Any

from optimizer import plan
from optimizer.plans.sums_beyond import BeyondRange
from reactive.engine.collections.exact import BITS
from reactive.engine.collections.index import NO_MATCH, match_key
from reactive.engine.collections.suffix_sums import Place, SuffixSums
from reactive.engine.collections.zset import Pair, Pairs, Row, canonical, consolidate, family_of
from reactive.engine.operators.operator import BailOut

UNORDERED: Any = object()
"""In place of the equal part of left rows that have nothing beyond them whatever is there."""
LARGEST = 1 << 60
"""Values are smaller, so that no computation with a sum of them overflows."""
DIGITS = 30
"""Decimal places of a value; a float has at most `exact.BITS` binary ones."""
UNIT = 10**DIGITS << (BITS - DIGITS)
EXACT = UNIT << 53
"""Smaller sums of integers are exact as floats."""
PRECISE = Context(prec=200)
Change = tuple[SuffixSums, Place, int, int, bool, Row, int | None]
"""A place in its order, with its amount, count and side before the step, and a row of it with its
weight, None if no row of it changes."""


class SumsBeyond:
    """Maintain the rows of the left side for which a condition of a sum holds.

    Only right rows with an equal first key are summed.

    Parameters
    ----------
    keys: left row -> (equal, key), and right row -> (equal, key, value).
    condition: (sum, bound) -> bool; `bound` is the only row of the third side, if there is one.
    without_sum: bound -> bool, for rows with nothing beyond; None drops these rows.
    owner: the aggregate that this operator replaces.
    wiring: the input of each side; one input may be several.

    >>> owner = plan.Table(0, "pairs", None, True)
    >>> of_pair = (lambda row: ((), row[0])), (lambda row: ((), *row))
    >>> beyond = BeyondRange(True, False, falls=True, is_tried=False, is_tested=False,
    ...     skips_none=False)
    >>> small = SumsBeyond(of_pair, lambda a, b: a < b, None, beyond, owner, (0, 0, 1))
    >>> small.step([((10, 5), 1), ((20, 5), 1), ((40, 2), 1)], [(3, 1)])
    [((20, 5), 1)]
    >>> small.step([], [(3, -1), (8, 1)])
    [((10, 5), 1)]
    """

    __slots__ = (
        *("_before", "_bound", "_condition", "_keys", "_families", "_kinds", "_of"),
        *("_orders", "_owner", "_sign", "_wiring", "_without_sum", "touched"),
    )

    def __init__(
        self,
        keys: tuple[Callable[[Row], Any], Callable[[Row], Any]],
        condition: Callable[[Any, Row], object],
        without_sum: Callable[[Row], object] | None,
        of: BeyondRange,
        owner: plan.Node,
        wiring: Sequence[int],
    ) -> None:
        self._keys = keys
        self._condition = condition
        self._without_sum = without_sum
        self._of = of
        self._owner = owner
        self._wiring = wiring
        self._sign = 1 if of.falls else -1
        self._orders: dict[Hashable, SuffixSums] = {}
        self._bound: dict[Row, int] = {}
        self._kinds: dict[type, int] = {}
        """The number of values of each class."""
        self._families: dict[Any, int] = {}
        """The number of keys of each family of classes: two keys of different ones raise."""
        self._before: (
            tuple[list[Change], dict[Row, int], dict[type, int], dict[Any, int]] | None
        ) = None
        self.touched = 0

    def step(self, *deltas: Pairs) -> list[Pair]:
        """Return the rows that hold now and did not, or the reverse; exceptions become
        `BailOut`."""
        self._before = [], self._bound, dict(self._kinds), dict(self._families)
        try:
            return self._changed(*[deltas[place] for place in self._wiring])
        except Exception as error:
            raise BailOut(self._owner, self) from error

    def _changed(self, left: Pairs, right: Pairs, bound: Pairs = ()) -> list[Pair]:
        self.touched += len(left) + len(right) + len(bound)
        out: list[Pair] = []
        rows, values = list(self._placed_rows(left)), list(self._values(right))
        self._fill(chain(((equal, key) for equal, key, _, _ in rows), (v[:2] for v in values)))
        changed: dict[Hashable, None] = {}
        for equal, key, row, weight in rows:
            order = self._orders[equal]
            place = order.place(key)
            had = place.rows.get(row, 0)
            self._note(order, place, row, had)
            _set_weight(place, row, had + weight)
            if place.holds:
                out.append((row, weight))
                place.holds = bool(place.rows)
            order.refresh(key)
            changed[equal] = None
        for equal, key, amount, weight in values:
            order = self._orders[equal]
            place = order.place(key)
            self._note(order, place)
            place.amount += amount
            place.count += weight
            order.refresh(key)
            changed[equal] = None
        if self._kinds.get(float) and self._kinds.get(Decimal):
            raise TypeError("floats and decimals are not added")
        if len(self._families) > 1:
            raise TypeError("keys of two families are not compared")
        if bound:
            self._set_bound(bound)
        for equal in self._orders if bound else changed:
            self._settle(self._orders[equal], out)
        return consolidate(out) if len(out) > 1 else out

    # The changes of a step.

    def _placed_rows(self, left: Pairs) -> Iterator[tuple[Hashable, Any, Row, int]]:
        """Yield the rows of the left side that may hold, with their keys."""
        key_of, of = self._keys[0], self._of
        for row, weight in left:
            equal, key = key_of(row)
            equal, key = match_key(canonical(equal)), canonical(key)
            self._count_family(key, weight)
            is_dropped = key is None and of.is_tested
            if equal is not NO_MATCH and not is_dropped and _has_order(key, skips=of.is_tried):
                yield equal, key, row, weight
            elif self._without_sum is not None:
                yield UNORDERED, 0, row, weight

    def _values(self, right: Pairs) -> Iterator[tuple[Hashable, Any, int, int]]:
        """Yield the keys of the right side, with their values as integers."""
        key_of = self._keys[1]
        for row, weight in right:
            equal, key, value = key_of(row)
            equal, key = match_key(canonical(equal)), canonical(key)
            self._count_family(key, weight)
            if equal is not NO_MATCH and _has_order(key, skips=self._of.is_tried):
                if value is not None:
                    yield equal, key, self._sign * self._integer(value, weight) * weight, weight
                elif not self._of.skips_none:
                    raise TypeError("None is added")
                else:
                    yield equal, key, 0, weight if self._of.counts_none else 0

    def _count_family(self, key: Any, weight: int) -> None:
        """Count a key that is compared with all others, if that may raise."""
        if self._of.is_tried or key is None:
            return
        family = family_of(key)
        number = self._families.get(family, 0) + weight
        if number:
            self._families[family] = number
        else:
            del self._families[family]

    def _integer(self, value: Any, weight: int) -> int:
        """Return a value as a multiple of the unit, and count the value."""
        kinds, kind = self._kinds, int if value.__class__ is bool else value.__class__
        kinds[kind] = kinds.get(kind, 0) + weight
        if kind not in (int, float, Decimal):
            raise TypeError("a value is no number")
        number, unit = value.as_integer_ratio()
        if UNIT % unit or not -LARGEST < value < LARGEST:
            raise OverflowError("a value is small or large")
        return number * (UNIT // unit)  # type: ignore[no-any-return]

    def _fill(self, keys: Iterator[tuple[Hashable, Any]]) -> None:
        """Make the orders that are without_sum, with all their keys."""
        made: dict[Hashable, dict[Any, None]] = {}
        for equal, key in keys:
            if equal not in self._orders:
                made.setdefault(equal, {})[key] = None
        for equal, new in made.items():
            order = SuffixSums(descends=not self._of.is_above, is_closed=self._of.is_closed)
            order.fill(new)
            self._orders[equal] = order

    def _note(
        self, order: SuffixSums, place: Place, row: Row = None, weight: int | None = None
    ) -> None:
        """Note a place for `undo`, before it changes."""
        assert self._before is not None
        before = order, place, place.amount, place.count, place.holds, row, weight
        self._before[0].append(before)

    def _set_bound(self, delta: Pairs) -> None:
        new = dict(self._bound)
        for row, weight in delta:
            new[row] = new.get(row, 0) + weight
            if not new[row]:
                del new[row]
        if len(new) > 1 or any(weight != 1 for weight in new.values()):
            raise LookupError("a sum is compared with several rows")
        self._bound = new

    def _settle(self, order: SuffixSums, out: list[Pair]) -> None:
        """Let the rows of an order hold if their condition does, and append the changes."""

        def flip(place: Place) -> None:
            self._note(order, place)
            sign = -1 if place.holds else 1
            out.extend([(row, sign * weight) for row, weight in place.rows.items()])

        has_bound = len(self._wiring) > len(self._keys)
        if has_bound and not self._bound:
            self.touched += order.settle(lambda _: False, False, flip)
            return
        bound = next(iter(self._bound)) if has_bound else None
        without_sum = self._without_sum is not None and bool(self._without_sum(bound))
        condition, shown = self._condition, self._shown

        def holds(total: int) -> bool:
            return bool(condition(shown(total), bound))

        self.touched += order.settle(holds, without_sum, flip)

    def _shown(self, total: int) -> Any:
        """Return a sum as a number of the classes of the values."""
        total, kinds = total * self._sign, self._kinds
        if kinds.get(float):
            if kinds.get(int) and abs(total) >= EXACT:
                raise OverflowError("a sum is not exactly a float")
            return total / UNIT
        if kinds.get(Decimal):
            return PRECISE.divide(Decimal(total), Decimal(UNIT))
        return total // UNIT

    # The law of operators.

    def undo(self) -> None:
        """Revert the last step."""
        if self._before is None:
            return
        changes, self._bound, self._kinds, self._families = self._before
        for _, place, amount, count, holds, row, weight in reversed(changes):
            place.amount, place.count, place.holds = amount, count, holds
            if weight is not None:
                _set_weight(place, row, weight)
        self._before = None
        for order, place, *_ in changes:
            order.restore(place)

    def commit(self) -> None:
        self._before = None

    def contents(self) -> Iterator[Pair]:
        return chain.from_iterable(order.rows() for order in self._orders.values())

    def footprint(self) -> tuple[int, int]:
        """Return the number of stored keys, and the bytes of the state."""
        orders = self._orders.values()
        return sum(map(len, orders)), sum(order.footprint() for order in orders)


def _set_weight(place: Place, row: Row, weight: int) -> None:
    if weight:
        place.rows[row] = weight
    else:
        place.rows.pop(row, None)


def _has_order(key: Any, *, skips: bool) -> bool:
    """Return False for None and NaN, if comparisons with these are no errors.

    Raise for another key without an order.
    """
    if skips and (key is None or (key.__class__ is float and key != key)):
        return False
    family_of(key)
    return True

"""Distinct values of a group, and values whose equality is safe.

Ordered values: the distinct values of a group with their weights, for accumulators over all values.

Without a request for their order, they are the keys of a dictionary. For `Min` and `Max` they are
sorted, and most are in no dictionary:

    order    3 5 8 9                 sorted
    weights  {5: 2}                  of values whose weight is not 1, and of NaN

A value is then found by its order, which must agree with equality. That is known for numbers,
texts, dates and similar classes; with any other value, all stay in the dictionary beside the order.

NaN sorts last, as in `order_by`, also inside tuples: it is the least only if it is the only value.

A value removed more often than added has a negative weight: it is not among the values until it
has been added that many times.

State:  8 bytes per distinct value; with the dictionary some 50.
Cost:   O(log values) once sorted, else O(1).

Plain values: values that a dictionary and `==` tell apart in the same way.

Rows with different keys need not be compared if `==` could only return False. That is certain if
the class of a value, and the classes of its parts, take `__eq__` and `__hash__` from Python, from a
library written in C, or from a class generator (`dataclass`, attrs). A hand-written `__eq__` may
raise, or return True for values of different hashes.

Cost: one look-up per value of a known class.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from operator import lt
from types import FunctionType
from typing import Any, TypeAlias

from sortedcontainers import SortedList

from optimizer.kinds.fields import by_recent_class, compared_names
from reactive.engine.collections.order import from_sortable, to_sortable
from reactive.engine.collections.zset import DECIMAL_NAN, NAN, canonical, is_nan

Order: TypeAlias = "list[Any] | SortedList"
MANY = 2_000
"""Most values in a list: it is quick to insert into, and takes a tenth of a `SortedList`."""
SORTED_LIST = 1_000
"""Bytes of an empty `SortedList`."""
ORDERED = frozenset({int, float, str, bytes, bool, Decimal, Fraction, date, timedelta})
"""Classes whose values are equal exactly if neither is less than the other."""


class OrderedValues:
    """A multiset with its least and greatest value.

    >>> values = OrderedValues()
    >>> values.add(3, 1), values.add(5, 2), values.add(5, -1), values.add(8, 1), values.add(3, -1)
    (None, None, None, None, None)
    >>> values.least(), values.greatest(), dict(values.weights())
    (5, 8, {5: 1, 8: 1})
    """

    __slots__ = ("_fresh", "_is_compact", "_order", "_weights", "negative")

    def __init__(self, *, in_order: bool = False) -> None:
        self._weights: dict[Any, int] = {}
        self._order: Order | None = None
        self._is_compact = False
        self.negative: dict[Any, int] | None = None
        """The values of negative weight, with the weight."""
        self._fresh: list[Any] | None = [] if in_order else None  # until they are read

    @classmethod
    def from_values(cls, values: list[Any], *, in_order: bool) -> OrderedValues:
        """Create it from values; `in_order` needs canonical values of `ORDERED`, without NaN.

        >>> OrderedValues.from_values([3, 5, 3], in_order=False).weights()
        {3: 2, 5: 1}
        """
        found = cls(in_order=in_order)
        if in_order:
            found._fresh = values.copy()
        else:
            found._weights = dict.fromkeys(values, 1)
            if len(found._weights) < len(values):
                found._weights = dict(Counter(values))
        return found

    def add(self, value: Any, weight: int) -> None:
        """Add to the weight of a value, or change nothing if it raises when compared."""
        is_ordered = value.__class__ is int
        if not is_ordered:
            value = canonical(value)
            is_ordered = value.__class__ in ORDERED and not is_nan(value)
        if self.negative is not None:
            weight = self._pay(self.negative, value, weight)
            if not weight:
                return
        if self._fresh is not None:
            if weight == 1 and is_ordered:
                self._fresh.append(value)
                return
            self._put_in_order()
        if self._is_compact:
            if is_ordered:
                if type(self._order) is list:
                    self._add_to_list(self._order, value, weight)
                else:
                    self._add_to_sorted(self._order, value, weight)
                return
            self._expand()
        old = self._weights.get(value, 0)
        self._hold(value, old, max(old + weight, 0))
        if old + weight < 0:
            self._owe(value, old + weight)

    def _hold(self, value: Any, old: int, new: int) -> None:
        """Set the weight of a value in the dictionary, and then its place in the order."""
        weights, order = self._weights, self._order
        if new:
            weights[value] = new
        elif old:
            del weights[value]
        if order is None or bool(old) == bool(new) or is_nan(value):
            return
        try:
            self._insert(to_sortable(value)) if new else delete_from_order(
                order, to_sortable(value)
            )
        except BaseException:  # it raised when compared
            if old:
                weights[value] = old
            else:
                del weights[value]
            raise

    def _pay(self, negative: dict[Any, int], value: Any, weight: int) -> int:
        """Add to a negative weight of a value; return the rest of the weight."""
        debt = negative.get(value, 0)
        if not debt:
            return weight
        if debt + weight < 0:
            negative[value] = debt + weight
            return 0
        del negative[value]
        self.negative = negative or None
        return debt + weight

    def _owe(self, value: Any, weight: int) -> None:
        """Record the negative weight of an absent value."""
        if weight:
            self.negative = self.negative or {}
            self.negative[value] = weight

    def _add_to_list(self, order: list[Any], value: Any, weight: int) -> None:
        """Add to the weight of a value while the order is a list."""
        size = len(order)
        if size >= MANY:
            self._order = SortedList(order)
            self._add_to_sorted(self._order, value, weight)
            return
        place, weights = bisect_left(order, value), self._weights
        if place == size or order[place] != value:
            if weight < 0:
                self._owe(value, weight)
                return
            if weight != 1:
                weights[value] = weight
            order[place:place] = (value,)  # no call: an interrupt arrives before, or after
            return
        new = weights.get(value, 1) + weight
        if new <= 0:
            del order[place]
            self._owe(value, new)
        if new > 1:
            weights[value] = new
        elif value in weights:
            del weights[value]

    def _add_to_sorted(self, order: SortedList, value: Any, weight: int) -> None:
        """Add to the weight of a value while the order is a `SortedList`."""
        weights = self._weights
        old = weights.get(value, 0) if weights else 0
        if not old:
            is_between = bool(order) and not (value < order[0] or value > order[-1])
            old = int(is_between and value in order)
        new = old + weight
        if new > 0:
            if not old:
                order.add(value)
        else:
            if old:
                order.remove(value)
            self._owe(value, new)
        if new > 1:
            weights[value] = new
        elif old > 1:
            del weights[value]

    def least(self) -> Any:
        """Return the least value; None if there are none."""
        order = self._order
        if order is None:
            order = self._sort_values()
        return from_sortable(order[0]) if order else self._nan()

    def greatest(self) -> Any:
        """Return the greatest value; None if there are none."""
        nan = self._nan() if self._weights else None
        if nan is not None:
            return nan
        order = self._order
        if order is None:
            order = self._sort_values()
        return from_sortable(order[-1]) if order else None

    def has_none(self) -> bool:
        """Return True if None is a value; None is always in the dictionary."""
        return None in self._weights

    def weights(self) -> Mapping[Any, int]:
        """Return each value with its weight."""
        if self._fresh is not None:
            self._put_in_order()
        if not self._is_compact:
            return self._weights
        assert self._order is not None
        return dict.fromkeys(self._order, 1) | self._weights

    def __len__(self) -> int:
        """Return the number of different values."""
        if self._fresh is not None:
            self._put_in_order()
        if not self._is_compact:
            return len(self._weights)
        assert self._order is not None
        return len(self._order) + (NAN in self._weights) + (DECIMAL_NAN in self._weights)

    def _nan(self) -> Any:
        """Return a NaN that is among the values; None if there is none."""
        return next((value for value in (NAN, DECIMAL_NAN) if value in self._weights), None)

    def _insert(self, value: Any) -> None:
        """Insert a value into the order."""
        assert self._order is not None
        self._order = insert_in_order(self._order, value)

    def _sort_values(self) -> Order:
        """Return the values in order without NaN; the first call sorts them."""
        if self._fresh is not None:
            self._put_in_order()
        if self._order is None:
            values = sorted(to_sortable(v) for v in self._weights if not is_nan(v))
            self._order = values if len(values) <= MANY else SortedList(values)
            if ORDERED.issuperset(map(type, self._order)):
                kept = {v: w for v, w in self._weights.items() if w != 1 or is_nan(v)}
                self._weights, self._is_compact = kept, True
        return self._order

    def _put_in_order(self) -> None:
        """Sort the values that were added before the first read."""
        assert self._fresh is not None
        fresh = self._fresh
        fresh.sort()
        order: list[Any] = []
        if all(map(lt, fresh, islice(fresh, 1, None))):
            order = fresh
        else:
            for value in fresh:
                if order and order[-1] == value:
                    self._weights[value] = self._weights.get(value, 1) + 1
                else:
                    order.append(value)
        self._order = order if len(order) <= MANY else SortedList(order)
        self._fresh, self._is_compact = None, True

    def _expand(self) -> None:
        """Store all values in the dictionary again."""
        self._weights = dict(self.weights())
        self._is_compact = False

    def __sizeof__(self) -> int:
        fresh = 0 if self._fresh is None else sys.getsizeof(self._fresh)
        more = fresh + (0 if self.negative is None else sys.getsizeof(self.negative))
        return (
            object.__sizeof__(self)
            + sys.getsizeof(self._weights)
            + _order_bytes(self._order)
            + more
        )


def insert_in_order(order: Order, value: Any) -> Order:
    """Insert a value into an order, and return it: a long list becomes a `SortedList`."""
    if type(order) is list and len(order) >= MANY:
        order = SortedList(order)
    if type(order) is list:
        insort(order, value)
    else:
        order.add(value)  # type: ignore[union-attr]
    return order


def delete_from_order(order: Order, value: Any) -> None:
    """Delete a value that is present from an order."""
    if type(order) is not list:
        order.remove(value)
        return
    try:
        place = bisect_left(order, value)
        is_here = place < len(order) and order[place] == value
    except TypeError:  # a single value, not even comparable with itself, such as None
        is_here = False
    if not is_here:  # or the order of its class does not separate its values
        place = order.index(value)
    del order[place]


def _order_bytes(order: Order | None) -> int:
    """Return the bytes of an order, without its values."""
    if order is None:
        return 0
    if type(order) is list:
        return sys.getsizeof(order)
    lists: list[list[Any]] = getattr(order, "_lists")  # noqa: B009
    return SORTED_LIST + sum(map(sys.getsizeof, lists))


SIMPLE: frozenset[type] = frozenset({int, str, bool, float, bytes, type(None)})


def has_plain_equality(value: Any) -> bool:
    """Return True if `==` with other plain values never raises, and agrees with hashes.

    >>> has_plain_equality((1, "a", None)), has_plain_equality([1])
    (True, False)
    >>> has_plain_equality(Decimal("sNaN"))
    False
    """
    kind: Any = type(value)
    if kind in SIMPLE:
        return True
    if not _keeps_to_rules(kind):
        return False
    if kind is Decimal:
        return not value.is_snan()
    return all(map(has_plain_equality, _compared_parts(value)))


def _compared_parts(value: Any) -> Iterable[Any]:
    """Return the parts that the comparison of a value reads."""
    if isinstance(value, tuple | frozenset):
        return value
    return [getattr(value, name) for name in compared_names(type(value))]


@by_recent_class(64)
def _keeps_to_rules(kind: Any) -> bool:
    """Return True if Python or a class generator wrote `==` and `hash` of a class."""
    equal, hashed = getattr(kind, "__eq__"), kind.__hash__  # noqa: B009
    return (
        hashed is not None
        and _is_not_handwritten(kind, equal)
        and _is_not_handwritten(kind, hashed)
    )


def _is_not_handwritten(kind: type, method: Any) -> bool:
    """Return True if a method is not hand-written."""
    if not isinstance(method, FunctionType):
        return True
    module = str(method.__module__).partition(".")[0]
    return module in sys.stdlib_module_names or _is_generated_method(kind, method)


def _is_generated_method(kind: type, method: FunctionType) -> bool:
    """Return True if a class generator wrote the method, from the fields of the class."""
    code = method.__code__
    by_dataclass = code.co_qualname.startswith("__create_fn__.")
    return (by_dataclass or code.co_filename.startswith("<attrs ")) and bool(compared_names(kind))

"""Kinds of values in an order: values of one kind compare by `<`, values of two kinds do not.

    2, 2.5, True, Decimal(2)          "number"
    "a"                               "text"
    date(2024, 1, 1)                  "date"
    datetime without a zone, with     "datetime", "instant"
    (2, "a"), Point(2, "a")           ("tuple", "number", "text")
    Version(2), of order=True         ("Version", "number")
    [2], {2: 3}, object(), None       TypeError: no order

Tuples compare item by item, so the kind of a tuple has the kinds of its items; tuples of different
length compare if the common items do. If None has a place in the order, it is of every kind.

Kinds of summands (`sum_kind`) are finer: no float adds to a Decimal, and integers add to both.

Sound:  a class with its own `<` is assumed to compare its instances if one of them compares with
        itself; pairs that do not compare are found when their rows are compared (`OwnKind`).
Cost:   a look at the class of a value; for a tuple, at the classes of its items.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from optimizer.expressions.knowledge import Pure
from optimizer.record import record

OrderKind: TypeAlias = "str | tuple[OrderKind, ...]"
ANY_KIND = "any"
"""The kind of None where None has a place."""
ITEMS = "items"
"""Marks a declared tuple of any number of items of one kind."""
NUMBER, TEXT = "number", "text"
BINARY, DECIMAL = (NUMBER, "binary"), (NUMBER, "decimal")
"""Kinds of numbers in sums: floats and fractions; decimals."""
DIGITS = 4_000
"""A decimal with a digit farther from the point adds exactly to no other decimal."""
_OF_CLASSES: dict[type, str] = {
    **dict.fromkeys((int, float, bool, Decimal, Fraction), NUMBER),
    str: TEXT,
    bytes: "bytes",
    date: "date",
    timedelta: "duration",
}
_OF_SUBCLASSES = ((int, NUMBER), (float, NUMBER), (Decimal, NUMBER), (str, TEXT), (bytes, "bytes"))


def order_kind(value: Any, *, nulls: bool = False, inside: bool = True) -> OrderKind:
    """Return the kind of a value.

    nulls: None has a place in the order.
    inside: with `nulls`, None as an item of a tuple has a place; in a field of a record never.

    Raises
    ------
    TypeError: the value has no order.

    >>> order_kind((2, "a")), order_kind(None, nulls=True)
    (('tuple', 'number', 'text'), 'any')
    """
    kind = value.__class__
    known = _OF_CLASSES.get(kind)
    if known is not None:
        if kind is Decimal and value.is_snan():
            raise TypeError("a signaling NaN has no order")
        return known
    if value is None and nulls:
        return ANY_KIND
    if isinstance(value, tuple):
        return ("tuple", *[order_kind(item, nulls=nulls and inside) for item in value])
    if isinstance(value, datetime):
        return "datetime" if value.utcoffset() is None else "instant"
    if isinstance(value, time):
        return "time" if value.utcoffset() is None else "zoned time"
    if isinstance(value, timedelta) and kind.__lt__ is timedelta.__lt__:
        return "duration"
    for base, name in _OF_SUBCLASSES:
        if isinstance(value, base):
            return name
    return _of_record(value)


class OwnKind(str):
    """The kind of a value whose class has operators of its own, which may raise for some pairs."""

    value: Any
    agrees: Callable[[Any, Any], object]

    @classmethod
    def of(cls, value: Any, agrees: Callable[[Any, Any], object]) -> OwnKind:
        """Return the kind of a value with an order of its own; `agrees` compares two of them."""
        kind = value.__class__
        made = cls(f"{kind.__module__}.{kind.__qualname__}")
        made.value, made.agrees = value, agrees
        return made

    def clashes(self, other: OwnKind) -> bool:
        """Return True if an operator raises for the values of two kinds that are equal."""
        try:
            self.agrees(self.value, other.value)
            self.agrees(other.value, self.value)
        except Exception:
            return True
        return False


def _compare_both_ways(value: Any, other: Any) -> None:
    """Raise the exception that `<` or `==` of two values raises."""
    value < other  # noqa: B015
    value == other  # noqa: B015


def sum_kind(value: Any, *, nulls: bool = False, mean: bool = False) -> OrderKind:
    """Return the kind of a value that is added to others; with `mean` the sum is divided.

    Raises
    ------
    TypeError, ValueError, OverflowError: the value has no sum, or no mean.

    >>> sum_kind(2), sum_kind(2.5), sum_kind(Decimal(2)), sum_kind(timedelta(1))
    ('number', ('number', 'binary'), ('number', 'decimal'), 'duration')
    """
    if value is None and nulls:
        return ANY_KIND
    if isinstance(value, int):
        if mean:
            value / 1  # an integer beyond all floats has no mean
        return NUMBER
    if isinstance(value, float | Fraction):
        return BINARY
    if isinstance(value, Decimal):
        is_decimal(value)
        return DECIMAL
    if isinstance(value, timedelta):
        return "duration"
    total = operator.add(value * 1, value - value)
    hash((value, total, value / 1, total / 1) if mean else (value, total))
    return OwnKind.of(value, operator.add)


def _of_record(value: Any) -> OrderKind:
    """Return the order kind of a record, by its compared fields; raise `TypeError` if it has no
    order."""
    kind = value.__class__
    if kind.__lt__ is getattr(object, "__lt__"):  # noqa: B009
        raise TypeError(f"{_short_repr(value)} of class {kind.__name__} has no order")
    name = f"{kind.__module__}.{kind.__qualname__}"
    options = vars(kind).get("__dataclass_params__")
    if options is not None and options.order:
        fields = [f.name for f in dataclasses.fields(kind) if f.compare]
    elif getattr(getattr(kind, "__struct_config__", None), "order", False):
        fields = list(kind.__struct_fields__)
    else:
        _compare_both_ways(value, value)  # raises if it has none
        return OwnKind.of(value, _compare_both_ways)
    return (name, *[order_kind(getattr(value, field)) for field in fields])


def same_order(kind: OrderKind, other: OrderKind) -> bool:
    """Return True if values of two kinds compare, whatever they are.

    >>> same_order(("tuple", "number"), ("tuple", "number", "text"))
    True
    """
    if kind in (other, ANY_KIND) or other == ANY_KIND:
        return True
    if isinstance(kind, str) or isinstance(other, str) or not kind or not other:
        return False
    if other[0] == ITEMS:
        return kind[0] == "tuple" and all(same_order(item, other[1]) for item in kind[1:])
    if kind[0] != other[0]:
        return False
    return all(map(same_order, kind[1:], other[1:]))


def leaves(kind: OrderKind, at: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], str]]:
    """Iterate over the places inside a value, and the kind at each.

    `at` is the place of the value itself. `ANY_KIND` yields nothing.
    """
    if isinstance(kind, str):
        if kind != ANY_KIND:
            yield at, kind
        return
    yield at, str(kind[0])
    for place, item in enumerate(kind[1:]):
        yield from leaves(item, (*at, place))


@record
class OrderKindOf(Pure):
    """A callable of expressions: the kind of a value, as `order_kind`."""

    nulls: bool
    inside: bool = True

    def __call__(self, value: Any) -> OrderKind:
        return order_kind(value, nulls=self.nulls, inside=self.inside)

    def __repr__(self) -> str:
        return "order_kind"


@record
class OfOrderKind(Pure):
    """A callable of expressions: raises TypeError for a value that is not of its kind."""

    kind: OrderKind
    nulls: bool
    inside: bool = True

    def __call__(self, value: Any) -> bool:
        found: OrderKind | None = _OF_CLASSES.get(value.__class__)
        if found is None or found != self.kind or value.__class__ is Decimal:
            found_kind = order_kind(value, nulls=self.nulls, inside=self.inside)
            if not same_order(found_kind, self.kind):
                raise TypeError(
                    f"{_short_repr(value)} ({_kind_text(found_kind)}) does not compare with "
                    f"values of kind {_kind_text(self.kind)}"
                )
        return True

    def __repr__(self) -> str:
        return "comparable"


def check_number(value: Any) -> None:
    """Raise for a value that is no number."""
    if value.__class__ not in _PLAIN_NUMBERS:
        _NUMBER(value)


def is_number_or_none(value: Any) -> None:
    """Raise for a value that is neither a number nor None."""
    if value.__class__ not in _PLAIN_NUMBERS and value is not None:
        _NUMBER(value)


def is_text(value: Any) -> None:
    """Raise for a value that is no text."""
    if value.__class__ is not str:
        _TEXT(value)


def is_text_or_none(value: Any) -> None:
    """Raise for a value that is neither text nor None."""
    if value.__class__ is not str and value is not None:
        _TEXT(value)


def is_binary(value: Any) -> None:
    """Raise for a value that does not add to floats."""
    if value.__class__ not in _PLAIN_NUMBERS and not isinstance(value, int | float | Fraction):
        _refuse_sum(value, "floats")


def is_binary_or_none(value: Any) -> None:
    """Raise for a value that is not None and does not add to floats."""
    if value is not None:
        is_binary(value)


def is_decimal(value: Any) -> None:
    """Raise for a value that does not add to decimals, or has a digit too far from the point."""
    if value.__class__ is int:
        return
    if isinstance(value, Decimal):
        if value.is_finite() and max(abs(value.adjusted()), -_exponent(value)) > DIGITS:
            raise ValueError(f"{_short_repr(value)} has a digit too far from the point for a sum")
        if value.is_snan():
            raise TypeError("a signaling NaN has no sum")
    elif not isinstance(value, int):
        _refuse_sum(value, "decimals")


def is_decimal_or_none(value: Any) -> None:
    """Raise for a value that is not None and does not add to decimals."""
    if value is not None:
        is_decimal(value)


def _exponent(value: Decimal) -> int:
    """Return the exponent of a decimal; 0 for NaN and infinity."""
    exponent = value.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def _refuse_sum(value: Any, others: str) -> None:
    raise TypeError(
        f"{_short_repr(value)} of class {type(value).__name__} does not add to {others}"
    )


def has_mean(value: Any) -> None:
    """Raise for a value that does not add to floats, or has no mean: an integer beyond floats."""
    kind = value.__class__
    if kind is float or kind is bool:
        return
    is_binary(value)
    value / 1  # an integer beyond all floats has no mean


def has_mean_or_none(value: Any) -> None:
    """Raise for a value that is not None and has no mean."""
    if value is not None:
        has_mean(value)


def has_decimal_mean(value: Any) -> None:
    """Raise for a value that does not add to decimals, or has no mean."""
    is_decimal(value)
    if isinstance(value, int):
        value / 1


def has_decimal_mean_or_none(value: Any) -> None:
    """Raise for a value that is not None and has no mean among decimals."""
    if value is not None:
        has_decimal_mean(value)


_ADDS: dict[tuple[OrderKind, bool, bool], Callable[[Any], None]] = {
    (BINARY, False, False): is_binary,
    (BINARY, True, False): is_binary_or_none,
    (BINARY, False, True): has_mean,
    (BINARY, True, True): has_mean_or_none,
    (DECIMAL, False, False): is_decimal,
    (DECIMAL, True, False): is_decimal_or_none,
    (DECIMAL, False, True): has_decimal_mean,
    (DECIMAL, True, True): has_decimal_mean_or_none,
}


def sum_checks(
    kind: OrderKind | None, *, nulls: bool, mean: bool = False
) -> Callable[[Any], object]:
    """Return a check that raises for a value that does not add to values of a kind.

    Without a kind, it raises for a value that has no sum.
    """
    if kind is None:
        return SumKindOf(nulls, mean)
    return _ADDS[kind, nulls, mean]


@record
class SumKindOf(Pure):
    """A callable of expressions: the kind of a value that is added, as `sum_kind`."""

    nulls: bool
    mean: bool = False

    def __call__(self, value: Any) -> OrderKind:
        return sum_kind(value, nulls=self.nulls, mean=self.mean)

    def __repr__(self) -> str:
        return "sum_kind"


_PLAIN_NUMBERS = frozenset({int, float, bool})
_NUMBER, _TEXT = OfOrderKind(NUMBER, nulls=False), OfOrderKind(TEXT, nulls=False)
_FAST: dict[tuple[OrderKind, bool], Callable[[Any], None]] = {
    (NUMBER, False): check_number,
    (NUMBER, True): is_number_or_none,
    (TEXT, False): is_text,
    (TEXT, True): is_text_or_none,
}


def checks(kind: OrderKind | None, *, nulls: bool, inside: bool = True) -> Callable[[Any], object]:
    """Return a check that raises for a value of another kind; without a kind, for one without
    order."""
    if kind is None or kind == ANY_KIND:
        return OrderKindOf(nulls, inside)
    return _FAST.get((kind, nulls)) or OfOrderKind(kind, nulls, inside)


FAST_CHECKS = (*_FAST.values(), *_ADDS.values())
CHECKS = (OrderKindOf, OfOrderKind, SumKindOf)
"""Classes of callables that examine values and change nothing."""


def refuse(*values: Any) -> None:
    """Raise for values whose kind is not the kind of most values in their order."""
    shown = ", ".join(map(_short_repr, values))
    raise TypeError(f"{shown} does not compare with most values of this order")


def refuse_later(*values: Any) -> None:
    """Raise for values of `keep=` that do not compare with values of the kind that is first by
    name."""
    shown = ", ".join(map(_short_repr, values))
    raise TypeError(f"{shown} does not compare with another value of `keep=` for its key")


@record
class Ranked(Pure):
    """A callable of expressions: a value that compares with values of all kinds.

    Kinds are ordered by name, and the first kind is the best, also for the `largest`.
    """

    largest: bool

    def __call__(self, value: Any) -> RankedValue:
        return RankedValue(order_kind(value), value, self.largest)

    def __repr__(self) -> str:
        return "ranked"


class RankedValue:
    """A value of `keep=`, beside its kind."""

    __slots__ = ("_kind", "_largest", "_names", "_value")

    def __init__(self, kind: OrderKind, value: Any, largest: bool) -> None:
        self._kind, self._value, self._largest = kind, value, largest
        self._names = [name for _, name in leaves(kind)]

    def __repr__(self) -> str:
        return repr(self._value)

    def __hash__(self) -> int:
        return hash(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RankedValue) and not (self < other or other < self)

    def __lt__(self, other: RankedValue) -> bool:
        if self._names != other._names and not same_order(self._kind, other._kind):
            return (self._names < other._names) is not self._largest
        try:
            return bool(self._value < other._value)
        except Exception:  # values of one class that clash: by their repr
            return repr(self._value) < repr(other._value)

    def __gt__(self, other: RankedValue) -> bool:
        return other < self


def _short_repr(value: Any) -> str:
    return f"{value!r:.60}"


def _kind_text(kind: OrderKind) -> str:
    if isinstance(kind, str):
        return kind
    return f"{kind[0]}({', '.join(map(_kind_text, kind[1:]))})"

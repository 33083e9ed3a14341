"""Kinds of values in an order: values of one kind compare by `<`, values of two kinds do not.

    2, 2.5, True, Decimal(2)          "number"
    "a"                               "text"
    date(2024, 1, 1)                  "date"
    datetime without a zone, with     "datetime", "instant"
    (2, "a"), Point(2, "a")           ("tuple", "number", "text")
    Version(2), of order=True         ("Version", "number")
    [2], {2: 3}, object(), None       TypeError: no order

A tuple is compared item by item, so its kind is that of its items; one that is longer than another
compares with it if the items of both do. Where None has a place in the order it is of every kind.

Sound:  a class is taken to compare its own instances if one of them compares with itself.
Cost:   a look at the class of a value; of a tuple, at those of its items.
"""

from __future__ import annotations

import dataclasses
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
"""With one kind: a tuple of any number of items of that kind, as it is declared."""
NUMBER, TEXT = "number", "text"
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
    inside: None as an item of a value has the place, too.

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
    for base, name in _OF_SUBCLASSES:
        if isinstance(value, base):
            return name
    return _of_record(value)


def _of_record(value: Any) -> OrderKind:
    kind = value.__class__
    if kind.__lt__ is getattr(object, "__lt__"):  # noqa: B009
        raise TypeError(f"{_shown(value)} of class {kind.__name__} has no order")
    name = f"{kind.__module__}.{kind.__qualname__}"
    options = vars(kind).get("__dataclass_params__")
    if options is not None and options.order:
        fields = [f.name for f in dataclasses.fields(kind) if f.compare]
    elif getattr(getattr(kind, "__struct_config__", None), "order", False):
        fields = list(kind.__struct_fields__)
    else:
        value < value  # noqa: B015  # raises if it has none
        return name
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
    """The places inside a value, and what is at each."""
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
    """A callable of expressions: raises TypeError for a value that is not of a kind."""

    kind: OrderKind
    nulls: bool
    inside: bool = True

    def __call__(self, value: Any) -> bool:
        found = _OF_CLASSES.get(value.__class__)
        if found is None or found != self.kind or value.__class__ is Decimal:
            found_kind = order_kind(value, nulls=self.nulls, inside=self.inside)
            if not same_order(found_kind, self.kind):
                raise TypeError(
                    f"{_shown(value)} ({_told(found_kind)}) does not compare with "
                    f"values of kind {_told(self.kind)}"
                )
        return True

    def __repr__(self) -> str:
        return "comparable"


def is_number(value: Any) -> None:
    """Raise for a value that is no number."""
    if value.__class__ not in _PLAIN_NUMBERS:
        _NUMBER(value)


def is_number_or_none(value: Any) -> None:
    """Raise for a value that is no number and not None."""
    if value.__class__ not in _PLAIN_NUMBERS and value is not None:
        _NUMBER(value)


def is_text(value: Any) -> None:
    """Raise for a value that is no text."""
    if value.__class__ is not str:
        _TEXT(value)


def is_text_or_none(value: Any) -> None:
    """Raise for a value that is no text and not None."""
    if value.__class__ is not str and value is not None:
        _TEXT(value)


_PLAIN_NUMBERS = frozenset({int, float, bool})
_NUMBER, _TEXT = OfOrderKind(NUMBER, nulls=False), OfOrderKind(TEXT, nulls=False)
_FAST: dict[tuple[OrderKind, bool], Callable[[Any], None]] = {
    (NUMBER, False): is_number,
    (NUMBER, True): is_number_or_none,
    (TEXT, False): is_text,
    (TEXT, True): is_text_or_none,
}


def checks(kind: OrderKind | None, *, nulls: bool, inside: bool = True) -> Callable[[Any], object]:
    """Return what raises for a value that is not of a kind; without one, for one of no order."""
    if kind is None or kind == ANY_KIND:
        return OrderKindOf(nulls, inside)
    return _FAST.get((kind, nulls)) or OfOrderKind(kind, nulls, inside)


def refuse(*values: Any) -> None:
    """Raise for values of an order in which most values are of other kinds."""
    shown = ", ".join(map(_shown, values))
    raise TypeError(f"{shown} does not compare with most values of this order")


def _shown(value: Any) -> str:
    return f"{value!r:.60}"


def _told(kind: OrderKind) -> str:
    if isinstance(kind, str):
        return kind
    return f"{kind[0]}({', '.join(map(_told, kind[1:]))})"

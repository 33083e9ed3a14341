"""Which values can be put in one order: those of one family.

    number     1, 2.5, True, Decimal("1.5"), Fraction(1, 2)
    text       "a"
    tuples     (1, "a"), of the same families part by part
    ...

Of two values of a family, `<` raises nothing, runs no code of the user's and is total; equal values
have equal hashes. Of values of two families nothing is known: the expression has to be asked.

A value without a family is NaN or None, of a class of the user's, or of a subclass of one of these:
such a class may compare as it likes. An aware time of a zone with transitions has that zone in its
family, since times of two such zones have no common order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

Family = Hashable
FAMILIES: Final[dict[type, Family]] = {
    **dict.fromkeys((int, float, bool, Decimal, Fraction), "number"),
    **{kind: kind.__name__ for kind in (str, bytes, date, timedelta)},
}
"""The families of values of which the class tells it all."""
ZONE: Final = ("zoneinfo", "ZoneInfo")
"""The class of time zones by module and name: it is not imported for this."""


class UnorderedError(TypeError):
    """A value has no family."""


def family_of(value: Any) -> Family:
    """The family of a value; raises if it has none.

    >>> family_of(1) == family_of(2.5), family_of(1) == family_of("a")
    (True, False)
    >>> family_of((1, "a")) == family_of((2.5, "b"))
    True
    """
    kind = type(value)
    family = FAMILIES.get(kind)
    if family is None:
        family = _FOUND.get(kind, _none)(value)
    elif value != value:
        raise UnorderedError(f"{value!r} has no place in an order")
    return family


def point(value: Any) -> Any:
    """The value itself, if it has a family."""
    family_of(value)
    return value


def interval(low: Any, high: Any) -> tuple[Any, Any]:
    """Both ends, if they are of one family.

    >>> interval(1, 2.5)
    (1, 2.5)
    """
    if family_of(low) != family_of(high):
        raise UnorderedError(f"{low!r} and {high!r} have no common order")
    return low, high


def may_have_family(annotation: Any) -> bool:
    """Whether values so annotated may have one: all but those of a class of which none has.

    >>> may_have_family(int), may_have_family(int | None), may_have_family(complex)
    (True, True, False)
    """
    if annotation is Any or not isinstance(annotation, type):
        return True
    try:
        return any(issubclass(kind, annotation) for kind in (*FAMILIES, *_FOUND))
    except TypeError:  # a protocol that cannot be asked
        return True


def _of_tuple(value: tuple[Any, ...]) -> Family:
    return ("tuple", *map(family_of, value))


def _of_datetime(value: datetime) -> Family:
    zone = value.tzinfo
    if zone is None:
        return "datetime"
    if type(zone) is timezone:
        return "datetime", "aware"
    if (type(zone).__module__, type(zone).__qualname__) == ZONE:
        return "datetime", id(zone)
    return _none(value)


def _of_time(value: time) -> Family:
    return "time" if value.tzinfo is None else _none(value)


def _none(value: Any) -> Family:
    raise UnorderedError(f"{type(value).__name__} is of no family")


_FOUND: dict[type, Callable[[Any], Family]] = {
    tuple: _of_tuple,
    datetime: _of_datetime,
    time: _of_time,
}

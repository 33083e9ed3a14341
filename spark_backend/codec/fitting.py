"""Whether columns hold a row exactly: asked of each row that comes, so by one closure per type.

What it says no to is looked at again, and why it does not fit is said, by `arrow.to_arrow`.

Cost:   some 0.1 us per field.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from operator import attrgetter
from typing import Any

from spark_backend.codec.schema import (
    LARGEST,
    LEAST,
    WIDEST,
    Plain,
    Record,
    Typed,
    Whole,
    fits,
    is_text,
)
from spark_backend.codec.whole import is_whole

Fits = Callable[[Any], bool]


def fitting(of: Typed) -> Fits:
    """Whether a value is just of a type.

    >>> from spark_backend.codec.schema import kept_as
    >>> fits_row = fitting(kept_as(tuple[int, str | None]))
    >>> fits_row((1, None)), fits_row((True, "a")), fits_row((2**64, "a"))
    (True, False, False)
    """
    match of:
        case Record():
            inside = _record(of)
        case Whole():
            inside = _whole(of)
        case _:
            inside = _plain(of)
    return (lambda value: value is None or inside(value)) if of.optional else inside


def _plain(of: Plain) -> Fits:
    kind = of.kind
    if kind is int:
        least, largest = (-WIDEST, WIDEST) if of.is_wide else (LEAST, LARGEST)
        return lambda value: type(value) is int and least <= value <= largest
    if kind is str:
        return lambda value: type(value) is str and is_text(value)
    if kind is datetime:
        return lambda value: type(value) is kind and value.tzinfo is None and not value.fold
    if kind is Decimal:
        return lambda value: type(value) is kind and fits(value)
    return lambda value: type(value) is kind


def _whole(of: Whole) -> Fits:
    if of.of is None:
        return lambda value: is_whole(value, of)
    fits_inside = fitting(of.of)
    return lambda value: is_whole(value, of) and all(map(fits_inside, value))


def _record(of: Record) -> Fits:
    kind, count = of.kind, len(of.fields)
    tests = [fitting(field) for field in of.fields]
    if issubclass(kind, tuple):
        return lambda value: (
            type(value) is kind
            and len(value) == count
            and all(test(part) for test, part in zip(tests, value, strict=True))
        )
    pairs = [(test, attrgetter(name)) for test, name in zip(tests, of.names, strict=True)]
    return lambda value: type(value) is kind and all(test(read(value)) for test, read in pairs)

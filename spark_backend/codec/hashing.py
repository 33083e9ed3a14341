"""Spark's `xxhash64` of plain values without a JVM, so that the process can compute buckets of
keys.

    null                     does not change the hash
    int, datetime            8 bytes, least first
    float                    8 bytes; -0.0 is 0.0, and all NaN are one
    bool, date               4 bytes
    str, bytes               the bytes, a text as UTF-8
    Decimal, wide int        the digits as one integer: its bytes, largest first, as few as hold it

The hash of a column is the seed of the next; the first seed is 42.

Sound:  equal to the hashes of Spark for all types and odd values (test_hashing); a value that
        equals no value of the column has no hash here.
Cost:   1 us for a value of exactly the type, 4 us for a Decimal and for a number of another type.
Source: xxHash, XXH64; Spark's `XxHash64` in `hash.scala`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Number
from operator import attrgetter
from struct import Struct
from types import NoneType
from typing import Any

from xxhash import xxh64_intdigest

from spark_backend.codec.schema import LARGEST, LEAST, PLACES, WIDEST, Plain, Record, Typed

SEED = 42
_HALF = 1 << 63
_FLOAT = Struct("<d").pack
_LONG = Struct("<q").pack
_INT = Struct("<i").pack
_NAN = bytes.fromhex("000000000000f87f")
_EPOCH = datetime(1970, 1, 1)
_FIRST_DAY = _EPOCH.toordinal()
_MICROSECOND = timedelta(microseconds=1)
_MOST_PLACES = 400
"""Decimals with more digits before or behind the point equal no float and fit no column."""
STRANGE = object()
"""A field of a value that is no record of the type; it has no hash."""


def hash_of(types: Sequence[Typed], values: Sequence[Any]) -> int | None:
    """Return Spark's `xxhash64` of columns with the given values.

    Return None if some value equals no value of its column.

    Parameters
    ----------
    types: the types of the columns.
    values: a value or None for each column. An equal value of another type (True or 1.0 for 1) is
        hashed as the value of the column.

    >>> hash_of([Plain(int), Plain(str)], [1, None]), hash_of([Plain(int)], [True])
    (-7001672635703045582, -7001672635703045582)
    >>> hash_of([Plain(int)], [1.5]) is None
    True
    """
    found = SEED
    for of, value in zip(types, values, strict=True):
        if value is None:
            continue
        data = _hash_input(of, value)
        if data is None:
            return None
        found = xxh64_intdigest(data, found)
    return found if found < _HALF else found - 2 * _HALF


def leaf_types(of: Typed) -> list[Typed]:
    """Return the types of the leaf columns of a value; a record has all leaves of its fields."""
    if not isinstance(of, Record):
        return [of]
    return [leaf for field in of.fields for leaf in leaf_types(field)]


def flattened_values(of: Typed, value: Any) -> list[Any]:
    """Return the values of the leaf columns of a value, in the order of `leaf_types`.

    >>> from spark_backend.codec.schema import kept_as
    >>> flattened_values(kept_as(tuple[int, tuple[str, int] | None]), (1, None))
    [1, None, None]
    """
    if not isinstance(of, Record):
        return [value]
    pairs = zip(of.fields, _field_values(of, value), strict=True)
    return [leaf for field, part in pairs for leaf in flattened_values(field, part)]


def _field_values(of: Record, value: Any) -> Sequence[Any]:
    """Return the values of the fields of a record: None for each field of None, `STRANGE` for each
    field of a value that cannot equal a record of this type."""
    if value is None:
        return (None,) * len(of.fields)
    if issubclass(of.kind, tuple):
        is_one = _has_equality_of(value, tuple) and len(value) == len(of.fields)
        return value if is_one else (STRANGE,) * len(of.fields)
    if type(value) is not of.kind:
        return (STRANGE,) * len(of.fields)
    return [attrgetter(name)(value) for name in of.names]


def _hash_input(of: Typed, value: Any) -> bytes | None:
    """Return the bytes of a value to hash, or None."""
    if not isinstance(of, Plain):
        return None
    try:
        return _wide_bytes(value) if of.is_wide else _DATA[of.kind](value)
    except (ArithmeticError, TypeError, ValueError):  # infinities, complex numbers, surrogates
        return None


def _integer_bytes(value: Any) -> bytes | None:
    """Return the bytes of a number that equals an integer of 64 bits; else None."""
    number = value if type(value) is int else _as_whole_number(value)
    return _LONG(number) if number is not None and LEAST <= number <= LARGEST else None


def _wide_bytes(value: Any) -> bytes | None:
    """Return the bytes of a number that equals an integer of a wide column; else None."""
    number = value if type(value) is int else _as_whole_number(value)
    return None if number is None else _digit_bytes(number)


def _decimal_bytes(value: Any) -> bytes | None:
    """Return the bytes of a number that equals a decimal of the column; else None."""
    number = _as_fraction(value)
    scaled = None if number is None else number * 10**PLACES
    return None if scaled is None or scaled.denominator > 1 else _digit_bytes(scaled.numerator)


def _digit_bytes(number: int) -> bytes | None:
    """Return the bytes of an integer as Java's `BigInteger.toByteArray` does.

    Return None if it is wider than any column.
    """
    if abs(number) > WIDEST:
        return None
    bits = (number if number >= 0 else ~number).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)


def _float_bytes(value: Any) -> bytes | None:
    """Return the bytes of a float, or of a number that equals one; None for any other value.

    All NaNs have equal bytes, and so have 0.0 and -0.0.
    """
    if isinstance(value, float):
        return _FLOAT(value + 0.0) if value == value else _NAN
    number = _as_fraction(value)
    if number is None or float(number) != number:
        return None
    return _FLOAT(float(number))


def _flag_bytes(value: Any) -> bytes | None:
    """Return the bytes of a number that equals a bool; else None."""
    number = value if type(value) is bool else _as_whole_number(value)
    return _INT(number) if number in (0, 1) else None


def _text_bytes(value: Any) -> bytes | None:
    return str.encode(value) if _has_equality_of(value, str) else None


def _binary_bytes(value: Any) -> bytes | None:
    return bytes(value) if _has_equality_of(value, bytes) else None


def _day_bytes(value: Any) -> bytes | None:
    return _INT(value.toordinal() - _FIRST_DAY) if _has_equality_of(value, date) else None


def _moment_bytes(value: Any) -> bytes | None:
    """Return the bytes of a datetime without a zone; None for other values."""
    if not _has_equality_of(value, datetime) or value.tzinfo is not None:
        return None
    return _LONG((value - _EPOCH) // _MICROSECOND)


def _none_bytes(value: Any) -> bytes | None:
    return None


def _as_whole_number(value: Any) -> int | None:
    """Return the integer that a number equals, or None."""
    number = _as_fraction(value)
    return number.numerator if number is not None and number.denominator == 1 else None


def _as_fraction(value: Any) -> Fraction | None:
    """Return a number as a fraction, or None if it has more digits than any column."""
    if not isinstance(value, Number):
        return None
    if isinstance(value, Decimal) and abs(value.adjusted()) > _MOST_PLACES:
        return None if value else Fraction(0)
    given: Any = value
    return Fraction(given)


def _has_equality_of(value: Any, kind: type) -> bool:
    """Return True if a value has the equality of a type, because it inherits its hash."""
    own: Any = type(value).__hash__
    return own is kind.__hash__


_DATA: dict[type, Callable[[Any], bytes | None]] = {
    int: _integer_bytes,
    float: _float_bytes,
    str: _text_bytes,
    bytes: _binary_bytes,
    bool: _flag_bytes,
    date: _day_bytes,
    datetime: _moment_bytes,
    Decimal: _decimal_bytes,
    NoneType: _none_bytes,
}

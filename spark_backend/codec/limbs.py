"""Numbers as columns of 64-bit integers that Spark can add up, without rounding.

A float is an integer times a power of two: with a point 96 bits from the right, floats and integers
of ordinary size are integers, and their sums are exact. The integer is cut into limbs of 32 bits,
least first; the last limb has the remaining bits and the sign. Spark sums the columns, and the
driver combines the sums. A column that overflows becomes null and is refused: that needs 2**31
changes of one group, or a sum beyond 10**26.

    number      limbs of the sum, in units of 2**-96          5 columns
    floats      the number of floats: the sum is a float, if any
    decimal     limbs of the sum of `Decimal`s, in units of 10**-12      3 columns
    decimals    the number of Decimals
    places      the least of their exponents: 3.30 is not shown as 3.3    (least, not sum)

Other values (NaN, 1e300, `Fraction`, ...) are kept as they are and added in the process, by
`ExactSum`, which all of this has to equal.

Source: Python's `math.fsum`; superaccumulators in the style of Kulisch.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

from reactive.engine.collections.exact import ExactSum
from reactive.engine.collections.zset import canonical

Amount = tuple[int, int, int, int, int]
"""Number, floats, decimal, decimals, places, as in the table above; each sum in one integer."""
NOTHING: Amount = (0, 0, 0, 0, 0)
POINT = 96
PLACES = 12
BITS = 32
NUMBER_LIMBS, DECIMAL_LIMBS = 5, 3
WIDTH = NUMBER_LIMBS + 1 + DECIMAL_LIMBS + 2
"""The number of columns of an amount; all but the last are summed."""
_MASK = (1 << BITS) - 1
_ONE = 1 << POINT
_SCALE = 2.0**POINT
_SMALLEST_UNIT = 10**PLACES
_LARGEST = 2.0**63
_WIDEST_DECIMAL = 1 << 94
_DIGITS = Context(prec=10_000)


def amount(value: Any, weight: int = 1) -> Amount | None:
    """Return `weight` copies of a value as an amount; None for a value that no amount can hold.

    Amounts hold ints and floats between -2**63 and 2**63, floats only if they are multiples of
    2**-96; and Decimals, see `_decimal_amount`.

    >>> amount(1), amount(0.5, -2)
    ((79228162514264337593543950336, 0, 0, 0, 0), (-79228162514264337593543950336, -2, 0, 0, 0))
    """
    kind = type(value)
    if kind is int or kind is bool:
        fits = -_LARGEST <= value < _LARGEST
        return ((value * weight) << POINT, 0, 0, 0, 0) if fits else None
    if kind is float:
        fits = -_LARGEST < value < _LARGEST and (value * _SCALE).is_integer()
        return (int(value * _SCALE) * weight, weight, 0, 0, 0) if fits else None
    return _decimal_amount(value, weight) if kind is Decimal else None


def _decimal_amount(value: Decimal, weight: int) -> Amount | None:
    """Return `weight` copies of a Decimal as an amount.

    Return None if it is not finite, too large, or has more than `PLACES` decimal places.
    """
    if not value.is_finite() or not value.adjusted() < 20:
        return None
    places = value.as_tuple().exponent
    assert isinstance(places, int)
    if places < -PLACES:
        return None
    numerator, denominator = value.as_integer_ratio()
    scaled = numerator * (_SMALLEST_UNIT // denominator)
    if abs(scaled) >= _WIDEST_DECIMAL:
        return None
    return (0, 0, scaled * weight, weight, min(places, 0))


def add_amounts(left: Amount, right: Amount) -> Amount:
    """Add two amounts."""
    return (
        left[0] + right[0],
        left[1] + right[1],
        left[2] + right[2],
        left[3] + right[3],
        min(left[4], right[4]),
    )


def subtract_amounts(left: Amount, right: Amount) -> Amount:
    """Return `left` minus `right`; the places of decimals are those of `left`."""
    return (left[0] - right[0], left[1] - right[1], left[2] - right[2], left[3] - right[3], left[4])


def to_columns(of: Amount) -> tuple[int, ...]:
    """Return an amount as the columns that Spark sums: `WIDTH` integers of 64 bits."""
    number, floats, decimal, decimals, places = of
    return (
        number & _MASK,
        number >> 32 & _MASK,
        number >> 64 & _MASK,
        number >> 96 & _MASK,
        number >> 128,
        floats,
        decimal & _MASK,
        decimal >> 32 & _MASK,
        decimal >> 64,
        decimals,
        places,
    )


def from_columns(sums: Sequence[int]) -> Amount:
    """Return the amount of columns, or of sums of columns."""
    a, b, c, d, e, floats, x, y, z, decimals, places = sums
    number = a + (b << 32) + (c << 64) + (d << 96) + (e << 128)
    return (number, floats, x + (y << 32) + (z << 64), decimals, places)


def amount_total(of: Amount, odd: Sequence[tuple[Any, int]] = ()) -> Any:
    """Return the sum that an amount and `odd` values have, as `ExactSum` computes it.

    `odd` are pairs of a value that no amount can hold, and its weight.
    """
    number, floats, decimal, decimals, _ = of
    if odd or decimal or decimals:
        return canonical(_exact_sum(of, odd).value())
    if floats or number & (_ONE - 1):
        return number / _ONE
    return number >> POINT


def _exact_sum(of: Amount, odd: Sequence[tuple[Any, int]]) -> ExactSum:
    """Return the amount and the odd values, with their weights, as an `ExactSum`."""
    number, floats, *decimal = of
    found = ExactSum()
    parts = _fraction_floats(number & (_ONE - 1))
    values = [(number >> POINT, 1), *((part, 1) for part in parts), (0.0, floats - len(parts))]
    values += _decimal_values(*decimal)
    for value, weight in (*values, *sorted(odd, key=_pair_weight, reverse=True)):
        found.add(value, weight)
    return found


def _pair_weight(pair: tuple[Any, int]) -> int:
    """Return the weight of a pair, to add insertions first, so that no count is zero before the
    end."""
    return pair[1]


def _fraction_floats(bits: int) -> list[float]:
    """Return the bits behind the point as a list of exact floats."""
    limbs = [(bits >> shift & _MASK, 2.0 ** (shift - POINT)) for shift in range(0, POINT, BITS)]
    return [limb * unit for limb, unit in limbs if limb]


def _decimal_values(units: int, count: int, places: int) -> list[tuple[Any, int]]:
    """Return `count` decimals with a sum of `units`."""
    if not (units or count):
        return []
    whole, rest = divmod(units, 10 ** (PLACES + places))
    if rest:  # the value deleted equals the inserted one, but had fewer places
        whole, places = units, -PLACES
    return [(_DIGITS.scaleb(Decimal(whole), places), 1), (Decimal(0), count - 1)]

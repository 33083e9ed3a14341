"""Values of rows, and functions of them that are equal for equal values."""

from __future__ import annotations

import datetime
import enum
import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

NAN = math.nan


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Folded:
    """A text that equals others whatever their case."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Folded) and self.text.lower() == other.text.lower()

    def __hash__(self) -> int:
        return hash(self.text.lower())

    def __repr__(self) -> str:
        return f"Folded({self.text!r})"


POOLS: Mapping[str, tuple[Any, ...]] = {
    "ints": (0, 1, 2, 3),
    "huge": (2**70, -(2**70), 2**70 + 1, 0, 1, 2**63, 2**62),
    "floats": (0.1, 0.2, 0.3, 1e16, 1.0, -1e16, 1e-9, 3.3, 1e308, 5e-324),
    "decimals": tuple(map(Decimal, ("1", "0.5", "1.10", "1.1", "2", "1e30", "-1e30"))),
    "fractions": (0, 1, True, 2, Fraction(1, 3), Fraction(-1, 3), Fraction(1, 2), None),
    "mixed": (0, 1, 1.0, True, False, 2, 2.0, None, 0.5, -0.25, -1, 3),
    "nan": (0.0, -0.0, 1.0, NAN, math.inf, -math.inf, None, 1, 2.5),
    "texts": ("a", "b", "ab", "", "ba"),
    "nested": (
        *((1, 2), (1, (2, None)), frozenset({1}), frozenset(), (), None, "a", 1),
        *(Color.RED, Color.BLUE, datetime.date(2020, 1, 2)),
    ),
    "folded": (Folded("a"), Folded("A"), Folded("b"), Folded("bb"), Folded("BB"), 1, None),
}
MODES = tuple(POOLS)
CONSTANTS: Mapping[str, tuple[str, ...]] = {
    "ints": ("0", "1", "2", "3"),
    "huge": ("2**70", "1", "0"),
    "floats": ("0.1", "1e16", "1.0"),
    "decimals": ("1", "Decimal('1.1')", "2"),
    "fractions": ("1", "0", "None", "2"),
    "mixed": ("1", "1.0", "True", "None", "0.5", "0", "2"),
    "nan": ("0.0", "1.0", "None", "INF"),
    "texts": ("'a'", "'b'", "'ab'", "''"),
    "nested": ("None", "1", "'a'", "(1, 2)"),
    "folded": ("None", "1", "'a'"),
}
"""Values of the pools, as text."""


def n(value: Any) -> Any:
    """A number; of equal values equal ones, and never NaN."""
    match value:
        case None:
            return 0
        case int() | float() | Fraction() | Decimal():
            return value if value == value else 7
        case Color():
            return value.value
        case datetime.datetime():
            return value.minute
        case datetime.date():
            return value.day
        case Folded():
            return len(value.text)
        case str() | tuple() | frozenset():
            return len(value)
    return 5


def small(value: Any) -> int:
    """One of four numbers."""
    number = n(value)
    return 3 if number in (math.inf, -math.inf) else int(number) % 4


def same(value: Any) -> Any:
    return value


def hash_of(value: Any) -> int:
    """Return another number, which distinguishes more values."""
    return hash(n(value)) % 7

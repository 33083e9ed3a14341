"""Rows of all kinds that a table takes, and when they are equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any, NamedTuple, TypeAlias

import attrs
import msgspec
import pydantic

from reactive import Multiset
from tests.random_queries.values import POOLS

Kind: TypeAlias = "str | tuple[Kind, ...]"
"""The letter of a row, with `?` if it may be None; a tuple for a row of several bindings."""


@dataclass(frozen=True, slots=True, order=True)
class D:
    k: Any
    v: Any
    i: int = 0

    @property
    def missing(self) -> Any:
        """Raise, as a field that is found missing only on reading."""
        raise AttributeError("missing")


class N(NamedTuple):
    id: int
    x: Any
    y: Any


@dataclass(frozen=True, slots=True, order=True)
class E:
    """An event: `at` is its moment, and `due` another one, or None."""

    id: int
    k: Any
    v: Any
    at: datetime
    due: datetime | None


class S(msgspec.Struct, frozen=True):
    a: Any
    b: Any


@attrs.frozen
class A:
    a: Any
    b: Any


class M(pydantic.BaseModel, frozen=True):
    a: Any
    b: Any


class L:
    """A row without declared fields; its `b` may be unhashable."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a = a
        self.b = b

    def __eq__(self, other: object) -> bool:
        return isinstance(other, L) and (self.a, self.b) == (other.a, other.b)

    def __hash__(self) -> int:
        return hash(self.a)

    def __repr__(self) -> str:
        return f"L({self.a!r}, {self.b!r})"


FIELDS: Mapping[str, tuple[str, ...]] = {
    "P": ("{}[0]", "{}[1]", "{}[-1]"),
    "Q": ("{}[0]", "{}[0]", "{}[1]"),
    "T": ("{}[0]", "{}[1]", "{}[2]"),
    "W": ("{}[0]", "{}[1]", "{}[2]", "{}[3]", "{}[-1]"),
    "L": ("{}.a", "{}.a", "{}.b"),
    "N": ("{}.id", "{}.x", "{}[2]", "{}.y"),
    "D": ("{}.k", "{}.v", "{}.i"),
    "E": ("{}.k", "{}.v", "{}.id", "{}.at", "{}.due"),
    "S": ("{}.a", "{}.b"),
    "A": ("{}.a", "{}.b"),
    "M": ("{}.a", "{}.b"),
    "V": ("{}",),
    "F": ("{}", "{}.start", "{}.end"),
    "G": ("{}[0]", "{}.one", "{}.two"),
    "O": ("{}.one", "{}[1]"),
}
"""Texts that read a field of a row.

"V" is any value that is a row by itself, "Q" a tuple that may be too short, "T" and "W" plain
tuples of three and five typed places, and "L" a row without declared fields; "G" and "O" are the
named rows of groups, and of an aggregate over all rows. "E" is an event, and "F" a window of time.
"""
BY_NAME: Mapping[str, tuple[str, ...]] = {
    "N": ("id", "x", "y"),
    "D": ("k", "v", "i"),
    "E": ("id", "k", "v"),
    "S": ("a", "b"),
    "A": ("a", "b"),
    "M": ("a", "b"),
    "G": ("one", "two"),
    "O": ("one", "two"),
}
"""The fields that a query may name."""
COUNTED = ("id", "i")
"""Fields whose values are small integers."""
CLASSES: Mapping[str, type] = {
    "P": tuple,
    "N": N,
    "D": D,
    "E": E,
    "S": S,
    "A": A,
    "M": M,
    "V": object,
    "Q": tuple,
    "T": tuple[Any, int, Any],
    "W": tuple[str, Any, int, Any, bool],
    "L": L,
}


START = datetime(2024, 1, 1, 12)
"""The first moment of clocks without a time zone."""
MINUTES = 9
"""Minutes from an event that comes late to one that comes early."""


def row_of(kind: str, random: Random, mode: str, now: datetime = START) -> Any:
    """A random row of a kind, of values that a mode has; of an event, about the moment `now`."""
    one, other = random.choice(POOLS[mode]), random.choice(POOLS[mode])
    match kind:
        case "P":
            return one, other
        case "N":
            return N(random.randrange(5), one, other)
        case "D":
            return D(one, other, random.randrange(3))
        case "E":
            minutes = [random.randrange(MINUTES) - 6 for _ in range(2)]
            at, due = (now + timedelta(minutes=each) for each in minutes)
            return E(random.randrange(5), one, other, at, due if random.random() < 0.7 else None)
        case "V":
            return one
        case "Q":
            return (one, other) if random.random() < 0.8 else (one,)
        case "T":
            return one, random.randrange(3), other
        case "W":
            return random.choice("ab"), one, random.randrange(3), other, random.random() < 0.5
        case "L":
            return L(one, other if random.random() < 0.8 else [1])
    return CLASSES[kind](a=one, b=other)


def frozen(value: Any) -> Any:
    """Return a hashable stand-in for a value, in which all NaNs are equal."""
    match value:
        case float() if value != value:
            return "<nan>"
        case tuple():
            return tuple(map(frozen, value))
        case D():
            return "D", frozen(value.k), frozen(value.v), value.i
        case E():
            return "E", value.id, frozen(value.k), frozen(value.v), value.at, value.due
        case S() | A() | M():
            return type(value).__name__, frozen(value.a), frozen(value.b)
        case L():
            return "L", frozen(value.a), frozen(value.b)
        case list():
            return "list", *map(frozen, value)
        case Multiset():
            return "Multiset", frozenset((frozen(v), count) for v, count in value.items())
        case frozenset():
            return frozenset(map(frozen, value))
    return value


def bag(rows: Iterable[Any]) -> Counter[Any]:
    """Count the copies of each row."""
    return Counter(map(frozen, rows))


def once(rows: Iterable[Any]) -> list[Any]:
    """Return each present row once: the first of equal ones."""
    found: dict[Any, Any] = {}
    for row in rows:
        found.setdefault(frozen(row), row)
    return list(found.values())

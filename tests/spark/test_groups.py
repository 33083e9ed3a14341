"""Groups as bytes: equal where Python says that the groups are, and nowhere else."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag, IntEnum, StrEnum
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive.engine.collections.bag import Bag
from reactive.engine.collections.zset import DECIMAL_NAN, NAN
from reactive.errors import OffloadError
from spark_backend.parts.groups import decode, encode, is_decodable


class Point(NamedTuple):
    x: Any
    y: Any


class Colour(Enum):
    RED = 1
    BLUE = 2


class Other(Enum):
    RED = 1


class Size(IntEnum):
    ONE = 1


class Word(StrEnum):
    A = "a"


class Right(Flag):
    READ = 1
    WRITE = 2


@dataclass(frozen=True)
class Place:
    x: Any
    note: str = field(default="", compare=False)


@dataclass(frozen=True)
class Spot:
    x: Any


class Caseless(str):
    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.lower() == other.lower()

    def __hash__(self) -> int:
        return hash(self.lower())


class Plain(str):
    """Equal to any text that reads the same."""


EAST = timezone(timedelta(hours=2))
ZOO: list[Any] = [
    *(0, 1, -1, True, False, 1.0, -0.0, 0.5, 1e300, 10**300, 2**53 + 1, 2.0**53, 1e16, 10**16),
    *(Decimal("1.0"), Decimal("0.5"), Decimal("1E+16"), Decimal("0.1"), 0.1, Fraction(1, 10)),
    *(Fraction(1, 2), Fraction(1, 3), 1 / 3, Fraction(1), Size.ONE, 16, -16, 10**5000),
    *(NAN, DECIMAL_NAN, math.inf, -math.inf, Decimal("Infinity"), Decimal("-Infinity")),
    *(None, "", "a", "A", Word.A, Plain("a"), b"", b"a", "1", b"1", "n1", "None", "\ud800", "é"),
    *((), (1,), ((1,),), (1, 2), Point(1, 2), Point(True, 2.0), (1, None), (None, 1), ("a", "b")),
    *(("ab", ""), ("", "ab"), ("1:a",), ("a", 1, "b"), (("a", 1), "b"), (NAN,), ((), ())),
    *(Colour.RED, Colour.BLUE, Other.RED, Right.READ, Right.READ | Right.WRITE, Right(0)),
    *(Place(1), Place(True, "note"), Place(2), Spot(1), Place((1, "a")), Place(Point(1, "a"))),
    *(frozenset(), frozenset({1, 2}), frozenset({2, True}), frozenset({"1", "2"})),
    *(frozenset([0, 8]), frozenset([8, 0])),
    *(date(2020, 1, 1), datetime(2020, 1, 1), datetime(2020, 1, 1, fold=1), time(1), time(1, 0, 1)),
    *(datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, 2, tzinfo=EAST)),
    *(datetime(1960, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, 0, 0, 0, 1), time(1, fold=1)),
    *(timedelta(), timedelta(1), timedelta(hours=24), timedelta(microseconds=-1)),
    *(UUID(int=1), Bag({"a": 2, "b": 1}), Bag({"b": 1, "a": 2}), Bag({"a": 2})),
]
plain = st.none() | st.integers() | st.text() | st.binary()
texts = st.text(st.characters(exclude_categories=()))
parts = st.integers(-2, 2) | st.sampled_from([0.0, 1.0, True, 0.5, "", "a", None])
pairs = st.tuples(parts) | st.tuples(parts, parts) | st.frozensets(parts, max_size=2)
keys = parts | pairs | st.tuples(pairs, parts) | st.tuples(pairs)


def test_of_all_pairs_in_the_zoo_those_have_equal_bytes_that_are_equal() -> None:
    for left, right in product(ZOO, ZOO):
        same = (left,) == (right,)  # as dictionaries compare: a NaN is itself
        assert (encode(left) == encode(right)) is same, (left, right)


@pytest.mark.quick
@given(keys, keys)
def test_generated_groups_have_equal_bytes_where_they_are_equal(left: Any, right: Any) -> None:
    assert (encode(left) == encode(right)) is (left == right)


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_floats_have_the_bytes_of_the_exact_number(left: float, right: float) -> None:
    assert (encode(left) == encode(right)) is (left == right)
    if math.isfinite(left):
        assert encode(left) == encode(Fraction(left)) == encode(Decimal(left))


@given(st.recursive(plain | texts, lambda inner: st.lists(inner, max_size=3).map(tuple)))
def test_plain_groups_come_back_from_their_bytes(group: Any) -> None:
    assert is_decodable(group)
    assert repr(decode(encode(group))) == repr(group)


@pytest.mark.parametrize("group", [True, 1.0, Point(1, 2), (True,), Word.A, Plain("a")])
def test_a_group_that_only_equals_a_plain_one_does_not_pass_for_it(group: Any) -> None:
    assert not is_decodable(group)


BERLIN = ZoneInfo("Europe/Berlin")


def test_zoned_groups_are_instants() -> None:
    hours = [datetime(2024, 10, 27, 2, 30, fold=fold, tzinfo=BERLIN) for fold in (0, 1)]
    assert len({*map(encode, hours)}) == 2
    for hour in (*hours, datetime(2020, 1, 1, 12, tzinfo=BERLIN)):
        assert encode(hour) == encode(hour.astimezone(UTC))


class Odd:
    """Equal to whatever it likes."""


@pytest.mark.parametrize("group", [Caseless("a"), Odd(), (1, Odd()), Place(Odd()), 1j, range(3)])
def test_what_may_equal_anything_is_refused_by_name(group: Any) -> None:
    with pytest.raises(OffloadError, match="cannot be a group on Spark"):
        encode(group)

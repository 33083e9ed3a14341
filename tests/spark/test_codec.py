"""Rows are decoded to equal rows, or are refused; equal keys have equal buckets everywhere."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from reactive import Multiset, OffloadError
from reactive.api.extended import row_class
from reactive.engine.collections.zset import DECIMAL_NAN, NAN
from spark_backend.codec.codec import Buckets, Codec, loads


class Color(Enum):
    RED = 1
    BLUE = 2


class Level(IntEnum):
    LOW = 1


class Point(NamedTuple):
    x: Any
    y: Any


@dataclass(frozen=True)
class Name:
    first: Any
    last: Any = None


class Text(str):
    """A text with the equality of texts."""


class Loud(str):
    """A text with an equality of its own."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.upper() == other.upper()

    def __hash__(self) -> int:
        return hash(self.upper())


class Itself:
    """Equal to nothing but itself."""


class Forgetful:
    """Does not keep what it is equal to."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Forgetful) and self.value == other.value

    def __hash__(self) -> int:
        return self.value

    def __reduce__(self) -> Any:
        return Forgetful, (0,)


EAST = timezone(timedelta(hours=5))
ZOO = [
    *(0, 1, True, 1.0, -0.0, Decimal(1), Fraction(1), complex(1), Level.LOW, 2**70, -(2**63)),
    *(0.5, Fraction(1, 2), Decimal("0.5"), math.inf, math.nan, DECIMAL_NAN, None, "", "a", b"a"),
    *(Text("a"), (1, "a"), (True, Text("a")), Point(1, "a"), Point(1.0, "b"), (), ((),)),
    *(frozenset([1, "a"]), frozenset(["a", 1.0]), frozenset(), Name("a"), Name("a", 1), Name(1)),
    *(Color.RED, Color.BLUE, date(2024, 1, 1), datetime(2024, 1, 1), time(1, 2), timedelta(1)),
    *(datetime(2024, 1, 1, 5, tzinfo=EAST), datetime(2024, 1, 1, 0, tzinfo=UTC), UUID(int=7)),
    *(time(6, tzinfo=EAST), time(1, tzinfo=UTC), int, len, Multiset({"a": 2}), Multiset({"a": 1})),
]


def test_equal_keys_have_equal_buckets_and_others_their_own() -> None:
    bucket = Buckets(stable=True)
    for one in ZOO:
        for other in ZOO:
            if one == other:
                assert bucket(one) == bucket(other), (one, other)
            elif one == one or other == other:  # all NaN share a bucket
                assert bucket(one) != bucket(other), (one, other)


@pytest.mark.quick
def test_buckets_are_the_same_in_every_process() -> None:
    script = (
        "from tests.spark.test_codec import ZOO, Buckets; print([*map(Buckets(stable=True), ZOO)])"
    )
    for seed in ("1", "2"):
        found = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path.cwd())},
            capture_output=True,
            text=True,
            check=True,
        )
        assert found.stdout.strip() == str([*map(Buckets(stable=True), ZOO)])


def test_buckets_of_neighbours_are_spread_evenly() -> None:
    bucket = Buckets(stable=True)
    for keys in (
        range(10_000),
        [f"key {n}" for n in range(10_000)],
        [n / 8 for n in range(10_000)],
    ):
        tenths = Counter((bucket(key) + 2**63) * 10 >> 64 for key in keys)
        assert all(700 < count < 1300 for count in tenths.values()), tenths


def test_a_hash_that_is_not_known_is_refused_only_where_it_has_to_last() -> None:
    for key in (Loud("a"), (1, Loud("a")), Itself()):
        with pytest.raises(OffloadError, match="has no stable hash"):
            Buckets(stable=True)(key)
    bucket = Buckets(stable=False)
    assert bucket((1, Loud("a"))) == bucket((True, Loud("A"))) != bucket((1, Loud("b")))


@pytest.mark.parametrize("row", [*ZOO, tuple(ZOO), Name(tuple(ZOO), Name(math.nan))], ids=repr)
def test_rows_come_back_as_what_they_were(row: Any) -> None:
    codec = Codec(stable=True)
    for _ in range(2):  # the second time, the type is known
        found = loads(codec.dumps(row))
        assert (found,) == (row,)
        assert type(found) is type(row)


@pytest.mark.parametrize(
    "row",
    [
        frozenset([math.nan, 1]),
        (1, frozenset([math.nan])),
        Multiset({math.nan: 2}),
        Name(frozenset([DECIMAL_NAN])),
        (math.nan, Name(math.nan)),
    ],
    ids=repr,
)
def test_nan_is_one_nan_wherever_it_is(row: Any) -> None:
    assert {loads(Codec(stable=True).dumps(row)): 1} == {row: 1}


def test_rows_whose_class_is_made_for_their_columns_come_back() -> None:
    row = row_class(("town", "total"))("Bonn", math.nan)
    (found,) = {loads(Codec(stable=True).dumps(row))}
    assert (found, type(found)) == (("Bonn", NAN), type(row))


def made_locally() -> Any:
    @dataclass(frozen=True)
    class Local:
        x: int

    return Local(1)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (Itself, "is equal to nothing but itself"),
        (lambda: (1, Name(Itself())), "is equal to nothing but itself"),
        (lambda: frozenset([Itself()]), "is equal to nothing but itself"),
        (lambda: Multiset({Itself(): 1}), "is equal to nothing but itself"),
        (lambda: Forgetful(7), "comes back as another value"),
        (made_locally, "no worker could import 'made_locally.<locals>.Local'"),
        (lambda: lambda: 1, "no worker could import"),
        (lambda: (iter([]), 1), "no worker could import 'list_iterator'"),
    ],
)
def test_rows_that_would_be_others_are_refused(make: Callable[[], Any], reason: str) -> None:
    codec = Codec(stable=True)
    for _ in range(2):
        with pytest.raises(OffloadError, match="cannot be sent to Spark") as caught:
            codec.dumps(make())
        assert reason in str(caught.value)


def test_a_complex_nan_is_refused() -> None:
    with pytest.raises(OffloadError, match="complex NaN"):
        Codec(stable=False).dumps((1, complex("nan")))

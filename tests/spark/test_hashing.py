"""Hashes of this process equal those of Spark, for all types and values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import IntEnum, StrEnum
from fractions import Fraction
from pathlib import Path
from random import Random
from types import NoneType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")
from pyspark.sql import Column
from pyspark.sql import functions as F

from optimizer.rewriting.optimize import optimize
from reactive import Database
from spark_backend.codec.arrow import to_arrow
from spark_backend.codec.hashing import flattened_values, hash_of, leaf_types
from spark_backend.codec.schema import WIDEST, Plain, Typed, column_type, tuple_of
from spark_backend.codec.values import Value
from spark_backend.steps.keys import flatten_value, make_sides
from spark_backend.steps.step import hash_column

MOST, LEAST = 2**63 - 1, -(2**63)
NAN, INF = math.nan, math.inf
OTHER_NAN = float(np.uint64(0xFFF8_0000_0000_0001).view(np.float64))
FIRST, LAST = datetime(1970, 1, 1), datetime.max


@dataclass(frozen=True)
class Inner:
    second: int | None
    first: str


class Pair(NamedTuple):
    price: float
    inner: Inner | None


INNER, PAIR = column_type(Inner | None), column_type(Pair | None)
ODD: list[tuple[Typed, list[Any]]] = [
    (Plain(int, optional=True), [0, 1, -1, 255, 256, 2**31, 2**53 + 1, MOST, MOST - 1, LEAST]),
    (
        Plain(int, optional=True, low=-WIDEST, high=WIDEST),
        [0, 1, -1, 127, 128, -128, -129, 255, 2**63, -(2**63), -(2**64), WIDEST, -WIDEST],
    ),
    (
        Plain(float, optional=True),
        [0.0, -0.0, 1.0, 0.1, -2.5, NAN, OTHER_NAN, INF, -INF, 5e-324, 1e308, 2.0**53],
    ),
    (
        Plain(str, optional=True),
        [
            *("", "a", "a\0", "abcd", "abcdefgh", "é", "e\u0301", "ß", "\uffff", "\U0001f600"),
            *("a" * 31, "a" * 32, "a" * 33, "ж\U0001f600" * 40, "0123456789" * 100),
        ],
    ),
    (Plain(bytes, optional=True), [b"", b"\0", b"\xff\x80", bytes(range(256)), b"x" * 33]),
    (Plain(bool, optional=True), [True, False]),
    (
        Plain(date, optional=True),
        [date.min, date(1582, 10, 10), date(1969, 12, 31), date(1970, 1, 1), date.max],
    ),
    (
        Plain(datetime, optional=True),
        [
            *(datetime.min, datetime(1969, 12, 31, 23, 59, 59, 999_999), FIRST, LAST),
            datetime(2024, 3, 31, 2, 30, 0, 1),
        ],
    ),
    (
        Plain(Decimal, optional=True),
        [
            Decimal(text)
            for text in (
                *("0", "-0.00", "1", "1.10", "-1.1", "1E-18", "-1E-18", "1E+19", "-12345678901.5"),
                *("99999999999999999999.999999999999999999", "-99999999999999999999"),
            )
        ],
    ),
    (Plain(NoneType, optional=True), []),
    (INNER, [Inner(None, ""), Inner(1, "a"), Inner(-1, "ж" * 20)]),
    (PAIR, [Pair(-0.0, None), Pair(NAN, Inner(None, "")), Pair(0.5, Inner(2, "b"))]),
]
KEPT = tuple_of(tuple(of for of, _ in ODD))


def alone() -> list[tuple[Any, ...]]:
    """Rows of one odd value, all else being None."""
    none: list[Any] = [None] * len(ODD)
    return [
        (*none[:place], value, *none[place + 1 :])
        for place, (_, values) in enumerate(ODD)
        for value in values
    ]


def mixed(draw: Random) -> tuple[Any, ...]:
    """A row of odd values."""
    return tuple(draw.choice([*values, None]) for _, values in ODD)


def drawn(draw: Random) -> tuple[Any, ...]:
    """A row of ordinary values."""
    unscaled = draw.randint(-WIDEST, WIDEST) // 10 ** draw.randint(0, 37)
    return (
        draw.randint(LEAST, MOST) >> draw.randint(0, 60),
        draw.randint(-WIDEST, WIDEST) // 10 ** draw.randint(0, 37),
        draw.uniform(-1, 1) * 10.0 ** draw.randint(-300, 300),
        "".join(draw.choices("aZ ßж\U0001f600", k=draw.randint(0, 70))),
        draw.randbytes(draw.randint(0, 70)),
        draw.random() < 0.5,
        date.fromordinal(draw.randint(1, date.max.toordinal())),
        datetime.min + timedelta(seconds=draw.uniform(0, (LAST - datetime.min).total_seconds())),
        Decimal(f"{unscaled}E-18"),
        None,
        Inner(draw.randint(-9, 9), "x" * draw.randint(0, 40)),
        Pair(draw.random(), None),
    )


def by_spark(spark: Any, file: Path, of: Typed, rows: list[Any], hashes: Column) -> Any:
    """Return the hashes that Spark computes for rows."""
    numbers = pa.array(range(len(rows)), pa.int64())
    pq.write_table(pa.table({"number": numbers, "row": to_arrow(of, rows)}), file)
    pairs = spark.read.parquet(str(file)).select("number", hashes.alias("hash")).collect()
    return [found for _, found in sorted(pairs)]


def test_values_have_the_hash_that_spark_gives_them(spark: Any, tmp_path: Path) -> None:
    draw = Random(11)
    rows = [*alone(), *(mixed(draw) for _ in range(200)), *(drawn(draw) for _ in range(300))]
    assert leaf_types(KEPT) == [
        part.of for part in flatten_value(Value(F.col("row"), KEPT), may_be_none=True)
    ]
    wanted = by_spark(
        spark, tmp_path / "rows.parquet", KEPT, rows, hash_column(Value(F.col("row"), KEPT))
    )
    found = [hash_of(leaf_types(KEPT), flattened_values(KEPT, row)) for row in rows]
    wrong = [(r, f, w) for r, f, w in zip(rows, found, wanted, strict=True) if f != w]
    assert wrong == []
    assert len(set(found)) > 500


class One(NamedTuple):
    number: int
    flag: bool
    text: str | None
    at: datetime


class Other(NamedTuple):
    flag: bool
    price: float
    text: str
    at: datetime | None


@pytest.mark.quick
def test_keys_of_both_sides_of_a_join_have_the_hash_that_spark_gives_them(
    spark: Any, tmp_path: Path
) -> None:
    db = Database()
    joined = db.table(One, name="one").join(
        db.table(Other, name="other"),
        on=lambda a, b: (
            a.number == b.flag and a.flag == b.price and a.text == b.text and a.at == b.at
        ),
    )
    node: Any = optimize(joined.plan).plan
    ones = [One(1, True, "a", FIRST), One(0, False, None, FIRST), One(-5, True, "ж", LAST)]
    others = [
        Other(True, 1.0, "a", FIRST),
        Other(False, -0.0, "", None),
        Other(True, 0.5, "", LAST),
    ]
    given: list[list[Any]] = [list(ones), list(others)]
    found: list[list[int | None]] = []
    for side, rows in zip(
        make_sides(node, column_type(One), column_type(Other), 1), given, strict=True
    ):
        assert [of.kind for of in side.types] == [int, float, str, datetime]
        hashes = [hash_of(side.types, row) for row in rows]
        file = tmp_path / f"{len(found)}.parquet"
        assert hashes == by_spark(spark, file, side.kept, rows, side.hash)
        found.append(hashes)
    assert found[0][0] == found[1][0], "the keys are equal"


class Level(IntEnum):
    LOW = 1


class Word(StrEnum):
    A = "a"


class Loud(str):
    """A text with an equality of its own."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.upper() == other.upper()

    def __hash__(self) -> int:
        return hash(self.upper())


WIDE = Plain(int, low=-WIDEST, high=WIDEST)
EQUAL: list[tuple[Plain, list[Any]]] = [
    (Plain(int), [1, True, 1.0, Decimal("1.00"), Fraction(1), Level.LOW, np.int64(1)]),
    (Plain(int), [0, False, -0.0, Decimal("0E+9999999")]),
    (WIDE, [2**70, 2.0**70, Decimal(2**70)]),
    (Plain(float), [1.0, 1, True, Decimal(1), np.float64(1)]),
    (Plain(float), [0.5, Fraction(1, 2), Decimal("0.50")]),
    (Plain(float), [NAN, OTHER_NAN, np.float64("nan")]),
    (Plain(bool), [True, 1, 1.0, Decimal(1)]),
    (Plain(Decimal), [Decimal("0.5"), Decimal("0.50"), 0.5]),
    (Plain(Decimal), [Decimal(3), 3, 3.0]),
    (Plain(str), ["a", Word.A]),
    (Plain(datetime), [FIRST, FIRST.replace(fold=1)]),
]


@pytest.mark.parametrize(("of", "values"), EQUAL)
def test_equal_values_of_other_types_have_the_same_hash(of: Plain, values: list[Any]) -> None:
    found = {hash_of([of], [value]) for value in values}
    assert len(found) == 1
    assert found != {None}


HUGE = Decimal("1E+999999999999")
OTHERS: list[tuple[Typed, list[Any]]] = [
    (Plain(int), [1.5, 2**63, -(2**63) - 1, "1", NAN, INF, 1j, Decimal("NaN"), HUGE, (1,)]),
    (WIDE, [10**38, -(10**38), 0.5, "1", HUGE]),
    (Plain(float), [2**53 + 1, 10**400, Decimal("0.1"), Fraction(1, 3), "1", HUGE]),
    (Plain(bool), [2, -1, 0.5, "", NAN]),
    (Plain(Decimal), [Decimal("1E-19"), Decimal("1E+20"), 0.1, INF, Decimal("sNaN"), HUGE]),
    (Plain(Decimal), [Decimal(f"1.{'0' * 65}1")]),
    (Plain(str), [1, b"a", "\ud800", Loud("a")]),
    (Plain(bytes), ["a", 1]),
    (Plain(date), [FIRST, 1]),
    (Plain(datetime), [FIRST.date(), FIRST.replace(tzinfo=UTC), 0]),
    (Plain(NoneType), [0, False]),
    (INNER, [1, (1, "a"), Pair(1.0, None)]),
    (PAIR, [1, (1.0,), Inner(1, "a"), (1.0, "a")]),
]


@pytest.mark.parametrize(("of", "values"), OTHERS)
def test_what_equals_no_value_of_the_type_has_no_hash(of: Typed, values: list[Any]) -> None:
    for value in values:
        parts = flattened_values(of, value)
        assert hash_of(leaf_types(of), parts) is None, value


def test_a_record_that_is_none_has_none_for_all_its_leaves() -> None:
    assert flattened_values(PAIR, None) == [None, None, None]
    assert flattened_values(PAIR, Pair(1.0, None)) == [1.0, None, None]
    assert flattened_values(PAIR, (1.0, Inner(None, "a"))) == [1.0, None, "a"]
    assert hash_of(leaf_types(PAIR), [None, None, None]) == 42

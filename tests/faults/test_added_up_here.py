"""Sums that this process makes of a state table: no row is lost, none is confused with another."""

from __future__ import annotations

import struct
from collections import Counter
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as T

from spark_backend.state.one_job import TableSpec, arrow_schema, net_table
from tests.budget import examples

INNER = T.StructType([T.StructField("a", T.LongType()), T.StructField("b", T.BooleanType())])
ROW = T.StructType(
    [
        T.StructField("price", T.DoubleType()),
        T.StructField("name", T.StringType()),
        T.StructField("amount", T.DecimalType(38, 18)),
        T.StructField("at", T.TimestampNTZType()),
        T.StructField("inner", INNER),
    ]
)
NAN, OTHER_NAN = (struct.unpack("d", struct.pack("Q", 0x7FF8 << 48 | n))[0] for n in (0, 1))
LARGEST = 2**63 - 1


def spec_of(row: T.DataType, *added: str) -> TableSpec:
    sums = added or ("weight",)
    fields = [T.StructField("row", row), *(T.StructField(name, T.LongType()) for name in sums)]
    return TableSpec("some", T.StructType(fields), ("row",), sums)


ROWS = spec_of(ROW)
inner = st.none() | st.fixed_dictionaries(
    {"a": st.sampled_from([None, 0, 1]), "b": st.sampled_from([None, False])}
)
row = st.none() | st.fixed_dictionaries(
    {
        "price": st.sampled_from([None, 0.0, -0.0, NAN, OTHER_NAN]),
        "name": st.sampled_from([None, "", "é"]),
        "amount": st.sampled_from([None, Decimal("1.50"), Decimal("1.5")]),
        "at": st.sampled_from([None, datetime(2000, 1, 1), datetime(1, 1, 1)]),
        "inner": inner,
    }
)


def table(spec: TableSpec, rows: list[tuple[Any, ...]]) -> pa.Table:
    named = [dict(zip(spec.schema.names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(named, arrow_schema(spec))


def bits(value: Any) -> Any:
    """Return an object that is equal for equal values only."""
    if isinstance(value, dict):
        return tuple((name, bits(part)) for name, part in sorted(value.items()))
    if isinstance(value, Decimal):
        return value.normalize()
    return ("float", struct.pack("d", value)) if isinstance(value, float) else value


def pairs(found: pa.Table) -> list[tuple[Any, int]]:
    return [(bits(one["row"]), one["weight"]) for one in found.to_pylist()]


@examples(200)
@given(st.lists(st.tuples(row, st.integers(-2, 2)), max_size=12), st.integers(0, 12))
def test_equal_rows_become_one_with_their_sum(rows: list[tuple[Any, int]], at: int) -> None:
    expected: Counter[Any] = Counter()
    for value, weight in rows:
        expected[bits(value)] += weight
    given_in_two = pa.concat_tables([table(ROWS, rows[:at]), table(ROWS, rows[at:])])
    found = net_table(ROWS, given_in_two)
    assert found.schema == given_in_two.schema
    assert sorted(pairs(found), key=repr) == sorted(
        ((value, n) for value, n in expected.items() if n), key=repr
    )


def test_rows_that_only_look_alike_stay_apart() -> None:
    nothing = dict.fromkeys(ROW.names)
    alike = [
        (None, 1),
        (nothing, -1),
        ({**nothing, "inner": {"a": None, "b": None}}, 1),
        ({**nothing, "price": 0.0}, 1),
        ({**nothing, "price": -0.0}, -1),
    ]
    assert len(net_table(ROWS, table(ROWS, alike))) == len(alike)


def test_what_lists_tell_apart_is_left_as_it_is() -> None:
    for kind in (
        T.ArrayType(T.LongType()),
        T.StructType([T.StructField("in", T.ArrayType(T.LongType()))]),
    ):
        spec = spec_of(kind)
        rows = table(spec, [(None, 1), (None, -1)])
        assert net_table(spec, rows) is rows


def test_a_sum_that_has_no_room_leaves_rows_as_they_are() -> None:
    spec = spec_of(T.LongType(), "n", "m")
    for value in (LARGEST, -LARGEST - 1):
        rows = table(spec, [(1, 1, value), (1, 1, value), (2, 1, 1), (2, 1, 1)])
        assert net_table(spec, rows) is rows
    rows = table(spec, [(1, 1, LARGEST), (1, 1, LARGEST), (1, 1, -LARGEST)])
    assert net_table(spec, rows).to_pylist() == [{"row": 1, "n": 3, "m": LARGEST}]


def test_a_row_stays_as_long_as_one_of_its_sums_is_not_zero() -> None:
    spec = spec_of(T.LongType(), "n", "m")
    rows = table(spec, [(1, 1, 1), (1, -1, 1), (2, 1, None), (2, -1, None), (3, None, 4)])
    expected = [{"row": 1, "n": 0, "m": 2}, {"row": 3, "n": None, "m": 4}]
    assert net_table(spec, rows).to_pylist() == expected

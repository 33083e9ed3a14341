"""Files have the same columns, whether the process writes them or Spark does."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import pytest

from reactive import OffloadError
from spark_backend.codec.schema import WIDEST, Plain, Record, Whole, tuple_of
from spark_backend.codec.schema import column_type as kept_as
from spark_backend.sinks.rows import RowColumns, has_columns


class Spot(NamedTuple):
    """A row with a record in it."""

    at: tuple[int, float]
    name: str | None


WIDE = Plain(int, low=-WIDEST, high=WIDEST)
ROWS: list[tuple[Any, Any]] = [
    (kept_as(int), 1),
    (WIDE, 1),
    (kept_as(str), "a"),
    (tuple_of((WIDE, Plain(float))), (1, 2.0)),
    (kept_as(Spot), Spot((1, 2.0), "a")),
    (kept_as(tuple[bool, bytes, date, datetime]), (True, b"", date.min, datetime.min)),
    (kept_as(tuple[Decimal, int | None]), (Decimal(1), 1)),
]


@pytest.mark.parametrize(("kept", "row"), ROWS)
def test_the_columns_are_those_that_the_process_writes(kept: Any, row: Any) -> None:
    here, there = RowColumns(), RowColumns()
    here.table([row])
    of = there.typed(kept)
    assert there.schema == here.schema
    assert there.typed(kept) == of, "also when something is written"
    assert not isinstance(of, Plain) or not of.is_wide


def test_what_is_not_the_columns_of_what_is_written_is_refused() -> None:
    columns = RowColumns(None, ("weight",))
    columns.typed(kept_as(tuple[int, str]))
    with pytest.raises(OffloadError, match="the target has the columns _1: int64, _2: string"):
        columns.typed(kept_as(tuple[int, float]))
    nothing = tuple_of((Plain(int), Plain(type(None), optional=True)))
    assert columns.typed(nothing) == kept_as(tuple[int, str | None]), "None is known to be a text"
    with pytest.raises(OffloadError, match="nothing but None"):
        RowColumns().typed(nothing)
    declared = RowColumns(tuple[int, str | None])
    assert declared.typed(nothing) == kept_as(tuple[int, str | None])
    with pytest.raises(OffloadError, match="not what was declared"):
        declared.typed(kept_as(tuple[int, float]))
    named = Record(tuple, ("weight",), (Plain(int),))
    with pytest.raises(OffloadError, match="'weight'"):
        columns.typed(named)


def test_values_that_columns_do_not_look_into_come_by_the_process() -> None:
    for kept in (Whole(Decimal), tuple_of((tuple_of((Whole(Decimal),)),))):
        assert not has_columns(kept)
    assert not has_columns(replace(tuple_of((Plain(int),)), optional=True)), "a row of None"
    assert all(has_columns(kept) for kept, _ in ROWS)

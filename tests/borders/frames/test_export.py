"""Tables and views in the libraries of frames, each with the library itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple

import altair as alt
import duckdb
import marimo as mo
import narwhals as nw
import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pytest

from reactive import Avg, Database, Max, Min, PlanError, Sum
from reactive.borders.frames import arrow_columns
from tests.borders.frames.cases import COLUMNS, KINDS, ROWS, VIEWS, table_of


def _names_in_duckdb(shown: Any) -> list[str]:
    found: Any = duckdb.sql("from shown")
    names: list[str] = found.columns
    return names


NAMES: dict[str, Callable[[Any], Any]] = {
    "to_arrow": lambda v: v.to_arrow().column_names,
    "to_pandas": lambda v: list(v.to_pandas().columns),
    "to_polars": lambda v: v.to_polars().columns,
    "pa.table": lambda v: pa.table(v).column_names,
    "pl.DataFrame": lambda v: pl.DataFrame(v).columns,
    "pl.from_arrow": lambda v: pl.from_arrow(v).struct.unnest().columns,  # type: ignore[union-attr]
    "duckdb": _names_in_duckdb,
    "narwhals": lambda v: nw.from_native(v).columns,
    "interchange": lambda v: list(pd.api.interchange.from_dataframe(v).columns),
    "marimo.ui.table": lambda v: mo.ui.table(v)._manager.get_column_names(),
    "marimo.ui.dataframe": lambda v: nw.from_native(mo.ui.dataframe(v).value).columns,
}
"""The columns that a library finds."""


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", NAMES)
@pytest.mark.parametrize("view", VIEWS)
def test_libraries_find_the_columns_of_no_rows_and_of_some(view: str, library: str) -> None:
    for kind in KINDS if library == "to_arrow" else KINDS[:1]:
        table = table_of(kind)
        shown = VIEWS[view](table)
        wanted = COLUMNS[view]
        if library != "marimo.ui.dataframe":
            assert NAMES[library](shown) == wanted
        table.add_all([kind(*row) for row in ROWS])
        assert NAMES[library](shown) == wanted
        assert shown.to_polars().rows() == pl.DataFrame(shown.to_arrow()).rows()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("view", VIEWS)
def test_pandas_finds_names_and_types(view: str, kind: Any) -> None:
    table = table_of(kind)
    shown = VIEWS[view](table)
    table.add_all([kind(*row) for row in ROWS])
    found, wanted = pd.DataFrame(shown), shown.to_pandas()
    if view in ("values", "one"):  # plain values have no name in pandas
        wanted.columns = range(1)
    if view == "tuples" and hasattr(found.columns, "step"):
        wanted.columns = range(2)
    pd.testing.assert_frame_equal(found, wanted)


@pytest.mark.filterwarnings("ignore")
def test_altair_draws_a_view() -> None:
    table = table_of(KINDS[0])
    table.add_all([KINDS[0](*row) for row in ROWS])
    drawn: Any = alt.Chart(table.materialize()).mark_point().encode(x="id", y="price").to_dict()
    assert drawn["encoding"]["x"]["type"] == "quantitative"
    assert [row["id"] for row in next(iter(drawn["datasets"].values()))] == [1, 2, 3]


def test_views_still_find_rows_by_key_and_place() -> None:
    table = table_of(KINDS[0])
    table.add_all([KINDS[0](*row) for row in ROWS])
    groups, ordered = VIEWS["groups"](table), VIEWS["ordered"](table)
    assert groups["Ulm"] == 1
    assert [row.id for row in ordered[0:2]] == [1, 2]
    assert np.asarray(VIEWS["tuples"](table)).shape == (3,)


class Colour(Enum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True)
class Painted:
    id: int
    colour: Colour | None


def test_members_are_their_names_and_come_back() -> None:
    table = Database().table(Painted)
    assert pa.types.is_dictionary(table.to_arrow().schema.field("colour").type)
    table.add_all([Painted(1, Colour.BLUE), Painted(2, None)])
    assert table.to_polars()["colour"].to_list() == ["BLUE", None]
    again = Database().table(Painted)
    again.add_arrow(pl.DataFrame(table))
    assert sorted(again, key=lambda row: row.id) == list(table)


@pytest.mark.parametrize("value", [1, 2.5, None, date(2024, 1, 1), "x", (1, "x")])
def test_values_whose_type_nobody_knows_are_a_column(value: Any) -> None:
    table = Database().table(int, name="numbers")
    table.add_all([1, 2])
    view = table.select(lambda n: {0: n}.get(-1, value)).materialize()
    assert pl.DataFrame(view).height == view.to_pandas().shape[0] == 2


def test_a_schema_that_is_asked_for_is_given() -> None:
    table = table_of(KINDS[0])
    table.add_all([KINDS[0](*row) for row in ROWS])
    schema = pa.schema({"id": pa.int8(), "town": pa.large_string(), "price": pa.float32()})
    assert pa.table(table, schema=schema).schema == schema


def test_the_class_of_rows_is_no_frame() -> None:
    with pytest.raises(PlanError, match="table_from"):
        Database().table(pl.DataFrame({"a": [1]}))  # type: ignore[call-overload]


@dataclass(frozen=True)
class Sale:
    """A row with columns that may have no value."""

    town: str
    amount: int | None
    price: Decimal | None
    day: date | None


EMPTY: dict[str, Callable[[Any, Database], Any]] = {
    "aggregate": lambda t, _: t.aggregate(
        a=Sum(lambda s: s.amount, skip_none=True),
        b=Avg(lambda s: s.amount, skip_none=True),
        c=Sum(lambda s: s.price, skip_none=True),
        d=Max(lambda s: s.day, skip_none=True),
        e=Min(lambda s: s.town),
        f=Avg(lambda s: s.price, skip_none=True),
    ),
    "groups": lambda t, _: t.group_by(lambda s: s.town).aggregate(
        a=Sum(lambda s: s.amount, skip_none=True),
        b=Avg(lambda s: s.amount, skip_none=True),
        c=Sum(lambda s: s.price, skip_none=True),
        d=Max(lambda s: s.day, skip_none=True),
        e=Min(lambda s: s.town),
        f=Avg(lambda s: s.price, skip_none=True),
    ),
    "choice": lambda t, _: t.select(lambda s: (s.amount if s.town == "x" else None, s.town)),
    "sql": lambda _, db: db.sql(
        "select sum(amount) as a, avg(amount) as b, sum(price) as c, max(day) as d, min(town) as e,"
        " avg(price) as f, case when count(*) > 9 then 1 end as g, list(day) as h from t"
    ),
    "sql of no rows": lambda _, db: db.sql("select amount, price, day, town from t where false"),
}
TYPES = {"a": "int64", "b": "double", "c": "decimal128(38, 18)", "d": "date32[day]", "e": "string"}


@pytest.mark.parametrize("query", EMPTY)
@pytest.mark.parametrize("is_empty", [True, False])
def test_a_column_without_values_has_the_type_that_is_declared(query: str, is_empty: bool) -> None:
    db = Database()
    table = db.table(Sale, name="t")
    view = EMPTY[query](table, db).materialize()
    if not is_empty:
        table.add(Sale("x y", None, None, None))
    found = {field.name: str(field.type) for field in view.to_arrow().schema}
    assert "null" not in found.values()
    if "a" in found:
        assert {**found, **TYPES} == found
    assert pl.DataFrame(view).dtypes == pl.from_arrow(view.to_arrow()).dtypes  # type: ignore[union-attr]
    table.clear()
    table.add_all([Sale("x", 2, Decimal("1.5"), date(2026, 1, 2))] * 3)
    filled = {field.name: str(field.type) for field in view.to_arrow().schema}
    if query != "sql":
        assert filled == found
    assert {**filled, **{n: t for n, t in TYPES.items() if n in filled}} == filled


def test_a_value_that_does_not_fit_is_found_in_any_block_of_rows() -> None:
    class Measured(NamedTuple):
        number: int
        value: float

    last = 2 * arrow_columns.BLOCK + 3
    rows = Database().table(Measured, name="measured")
    rows.add_all([Measured(n, n / 2) for n in range(last)])
    view = rows.order_by(lambda m: -m.number).materialize()
    assert view.to_arrow().column("number").to_pylist() == list(range(last))[::-1]
    rows.add(Measured(-1, 7))  # an integer among floats
    assert view.to_arrow().column("value").to_pylist()[-1] == 7.0
    rows.add(Measured(-2, "much"))  # type: ignore[arg-type]
    with pytest.raises(PlanError, match=rf"column 'value', row {last + 1}: 'much' is of type str"):
        view.to_arrow()

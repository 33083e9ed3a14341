"""Views of all kinds over rows of all classes, and frames of all types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

import msgspec
import polars as pl
from hypothesis import strategies as st

from reactive import Count, Database, Max


@dataclass(frozen=True, slots=True)
class Slotted:
    id: int
    town: str | None
    price: float | None


@dataclass(frozen=True)
class Plain:
    id: int
    town: str | None
    price: float | None


class Named(NamedTuple):
    id: int
    town: str | None
    price: float | None


class Struct(msgspec.Struct, frozen=True):
    id: int
    town: str | None
    price: float | None


KINDS: tuple[Any, ...] = (Slotted, Plain, Named, Struct)
ROWS = ((1, "Ulm", 2.5), (2, None, 1.0), (3, "Bonn", None))
VIEWS: dict[str, Callable[[Any], Any]] = {
    "table": lambda t: t,
    "rows": lambda t: t.materialize(),
    "ordered": lambda t: t.order_by("id").materialize(),
    "groups": lambda t: t.group_by("town").aggregate(n=Count()).materialize(),
    "unnamed": lambda t: t.group_by("town").aggregate(Count(), Max("id")).materialize(),
    "pairs": lambda t: t.join(t, on=lambda a, b: a.id == b.id).materialize(),
    "nested": lambda t: t.nest(same=lambda a: t.where(lambda b: b.id == a.id)).materialize(),
    "values": lambda t: t.select(lambda r: r.id).materialize(),
    "one": lambda t: t.aggregate(Count()).materialize(),
    "tuples": lambda t: t.select(lambda r: (r.id, r.town)).materialize(),
}
OWN = ["id", "town", "price"]
COLUMNS = {
    **dict.fromkeys(("table", "rows", "ordered"), OWN),
    "groups": ["town", "n"],
    "unnamed": ["key", "Count", "Max"],
    "pairs": ["0", "1"],
    "nested": [*OWN, "same"],
    "values": ["value"],
    "one": ["Count"],
    "tuples": ["0", "1"],
}


def table_of(kind: Any, key: str | None = "id") -> Any:
    return Database().table(kind, name="rows", key=key)


whole = st.integers(-(2**63), 2**63 - 1)
DTYPES: dict[Any, Any] = {
    pl.Int64: whole,
    pl.Int8: st.integers(-128, 127),
    pl.UInt64: st.integers(0, 2**63 - 1),
    pl.Float64: st.floats(),
    pl.Float32: st.floats(width=32),
    pl.Boolean: st.booleans(),
    pl.String: st.text(max_size=3),
    pl.Binary: st.binary(max_size=3),
    pl.Categorical: st.sampled_from(["a", "b", ""]),
    pl.Decimal(12, 2): st.decimals(-1000, 1000, places=2),
    pl.Date: st.dates(date(1900, 1, 1)),
    pl.Time: st.times(),
    pl.Duration("us"): st.timedeltas(timedelta(-9999), timedelta(9999)),
    pl.Datetime("us"): st.datetimes(datetime(1900, 1, 1)),
    pl.Datetime("ms", "UTC"): st.datetimes(datetime(1900, 1, 1)).map(
        lambda at: at.replace(microsecond=0, tzinfo=UTC)
    ),
    pl.List(pl.String): st.lists(st.none() | st.text(max_size=2), max_size=3),
    pl.List(pl.Struct({"n m": pl.Int64})): st.lists(
        st.fixed_dictionaries({"n m": st.none() | whole}), max_size=2
    ),
    pl.Struct({"class": pl.Int64, "d": pl.List(pl.Date)}): st.fixed_dictionaries(
        {"class": st.none() | whole, "d": st.none() | st.lists(st.dates(), max_size=2)}
    ),
}
"""Types of columns, and values of them."""
PLAIN: dict[Any, Any] = {
    **dict.fromkeys((pl.Int8, pl.UInt32, pl.UInt64), pl.Int64),
    pl.Float32: pl.Float64,
    pl.Categorical: pl.String,
}
"""Column type of the table for each type: integers are 64 bits wide, times in UTC stay in UTC."""
NAMES = ("id", "a b", "class", "2", "id_2", "__x", "é")


@st.composite
def frames(draw: Any, *, rows: int = 6) -> pl.DataFrame:
    """A frame of any columns, nulls among them."""
    count = draw(st.integers(0, rows))
    types = draw(st.lists(st.sampled_from(list(DTYPES)), max_size=4))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=4, max_size=4, unique=True))
    columns = {}
    for name, of in zip(names, types, strict=False):
        values = DTYPES[of] if draw(st.booleans()) else st.none() | DTYPES[of]
        columns[name] = pl.Series(
            name, draw(st.lists(values, min_size=count, max_size=count)), dtype=of
        )
    return pl.DataFrame(columns)

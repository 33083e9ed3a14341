"""`view.to_arrow()`: columns that read back as `to_python()` has the rows, typed as classes say."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from typing import Annotated, Any, NamedTuple, NewType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reactive import Bag, Collect, Count, Database, Max, PlanError
from reactive.engine.dataflow.delta import plain_data

pa = pytest.importorskip("pyarrow", reason="pip install '.[arrow]'")

Cents = NewType("Cents", int)
NOTHING: Bag[Any] = Bag()
FAR = timezone(timedelta(hours=5))


class Note(NamedTuple):
    text: str | None
    at: datetime


@dataclass(frozen=True)
class Line:
    order: int
    what: str
    price: Decimal | None = None
    notes: Bag[Note] = NOTHING


class Order(NamedTuple):
    id: int
    customer: int
    total: float | None
    days: tuple[date, ...] = ()


class Customer(NamedTuple):
    id: int
    name: str | None
    born: date | None
    picture: bytes
    is_new: bool
    first: Note | None = None


class Folder(NamedTuple):
    name: str
    folders: tuple[Folder, ...] | None = ()


class Colour(IntEnum):
    RED = 1


class Shop:
    def __init__(self) -> None:
        self.db = db = Database()
        self.customers = db.table(Customer, name="customers", key="id")
        self.orders = db.table(Order, name="orders")
        self.lines = db.table(Line, name="lines")

    def tree(self) -> Any:
        orders, lines = self.orders, self.lines
        return self.customers.nest(
            orders=lambda c: (
                orders.where(lambda o: o.customer == c.id)
                .order_by(lambda o: o.id)
                .nest(lines=lambda o: lines.where(lambda line: line.order == o.id))
            ),
            ids=lambda c: orders.where(lambda o: o.customer == c.id).select(lambda o: o.id),
        )


few = st.integers(0, 2)
texts = st.none() | st.text(max_size=3)
notes = st.builds(Note, texts, st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1)))
days = st.dates(date(1970, 1, 1))
prices = st.none() | st.decimals(-1000, 1000, places=2)
line = st.builds(Line, few, st.sampled_from(["tea", "rum"]), prices, st.lists(notes).map(Bag))
order = st.builds(Order, few, few, st.none() | st.floats(), st.lists(days, max_size=2).map(tuple))
customer = st.builds(
    Customer, few, texts, st.none() | days, st.binary(max_size=3), st.booleans(), st.none() | notes
)


def told(value: Any) -> Any:
    """Return plain data in which NaNs are equal."""
    if isinstance(value, dict):
        return {name: told(part) for name, part in value.items()}
    if isinstance(value, list):
        return [told(part) for part in value]
    return "NaN" if value != value else value


@pytest.mark.long
@settings(max_examples=12, deadline=None)
@given(
    st.lists(customer, unique_by=lambda c: c.id, max_size=3),
    st.lists(order, max_size=5),
    st.lists(line, max_size=5),
)
def test_columns_read_back_as_plain_data_and_have_the_types_of_no_rows(
    customers: list[Customer], orders: list[Order], lines: list[Line]
) -> None:
    shop = Shop()
    tree = shop.tree()
    views = [
        *(tree.materialize(), tree.order_by(lambda c, orders, ids: c.id).materialize()),
        shop.orders.group_by("customer").rows().materialize(),
    ]
    types = [view.to_arrow().schema for view in views]
    shop.customers.add_all(customers)
    shop.orders.add_all(orders)
    shop.lines.add_all(lines)
    for view, schema in zip(views, types, strict=True):
        table = view.to_arrow()
        table.validate(full=True)
        assert table.schema == schema
        assert told(table.to_pylist()) == told([plain_data(row) for row in view])
    again = Shop()
    for kept, loaded in ((shop.customers, again.customers), (shop.orders, again.orders)):
        loaded.add_arrow(kept.materialize().to_arrow())
        assert Bag(loaded) == Bag(kept)
    again.lines.add_arrow(shop.lines.materialize().to_arrow().combine_chunks())
    assert Bag(again.lines) == Bag(shop.lines)
    assert told(views[0].to_arrow().to_pylist()) == told(views[0].to_python())


def test_types_are_those_of_the_classes() -> None:
    shop = Shop()
    schema = shop.tree().materialize().to_arrow().schema
    assert schema.names == ["id", "name", "born", "picture", "is_new", "first", "orders", "ids"]
    assert [str(schema.field(name).type) for name in ("born", "picture", "is_new", "first")] == [
        *("date32[day]", "binary", "bool", "struct<text: string, at: timestamp[us]>")
    ]
    note = pa.struct({"text": pa.string(), "at": pa.timestamp("us")})
    line = {"order": pa.int64(), "what": pa.string(), "price": pa.decimal128(38, 18)}
    inside = pa.list_(pa.struct({**line, "notes": pa.list_(note)}))
    own = {"id": pa.int64(), "customer": pa.int64(), "total": pa.float64()}
    days = pa.list_(pa.date32())
    assert schema.field("orders").type == pa.list_(
        pa.struct({**own, "days": days, "lines": inside})
    )
    assert schema.field("ids").type == pa.list_(pa.int64())


def test_columns_of_views_of_all_kinds() -> None:
    shop = Shop()
    db, orders = shop.db, shop.orders
    pairs, any_pairs = db.table(tuple[int, str | None], name="pairs"), db.table(tuple, name="any")
    numbers, cents = db.table(int, name="numbers"), db.table(Order, name="more")
    by = orders.group_by(lambda o: o.customer)
    views = {
        "fields": orders.materialize(),
        "ordered": orders.order_by("id").limit(2).materialize(),
        "pairs": pairs.materialize(),
        "any": any_pairs.materialize(),
        "value": numbers.where(lambda n: n > 0).materialize(),
        "both": orders.join(numbers, on=lambda o, n: o.id == n).materialize(),
        "outer": numbers.left_join(cents, on=lambda n, o: o.id == n).materialize(),
        "named": numbers.extend(twice=lambda n: n * 2).materialize(),
        "groups": by.aggregate(
            Count(), Max(lambda o: o.id * 0.5), Collect(lambda o: o.id)
        ).materialize(),
        "records": by.aggregate(n=Count(), all=Collect(lambda o: o.id)).materialize(),
        "select": orders.select(lambda o: (o.id, o.total, o.id > 3, (o.id, "x"))).materialize(),
        "total": orders.aggregate(Count()).materialize(),
    }
    empty = {name: view.to_arrow() for name, view in views.items()}
    orders.add_all([Order(1, 1, 2.5), Order(2, 1, None)])
    pairs.add((1, None))
    any_pairs.add_all([(1, "a", None), (2, "b", 3.5)])
    numbers.add_all([1, 5])
    first: dict[str, Any] = {"id": 1, "customer": 1, "total": 2.5, "days": []}
    second: dict[str, Any] = {"id": 2, "customer": 1, "total": None, "days": []}
    assert {name: view.to_arrow().to_pylist() for name, view in views.items()} == {
        "fields": [first, second],
        "ordered": [first, second],
        "pairs": [{"0": 1, "1": None}],
        "any": [{"0": 1, "1": "a", "2": None}, {"0": 2, "1": "b", "2": 3.5}],
        "value": [{"value": 1}, {"value": 5}],
        "both": [{"0": first, "1": 1}],
        "outer": [{"0": 1, "1": None}, {"0": 5, "1": None}],
        "named": [{"0": 1, "twice": 2}, {"0": 5, "twice": 10}],
        "groups": [{"key": 1, "Count": 2, "Max": 1.0, "Collect": [1, 2]}],
        "records": [{"customer": 1, "n": 2, "all": [1, 2]}],
        "select": [
            {"0": 1, "1": 2.5, "2": False, "3": {"0": 1, "1": "x"}},
            {"0": 2, "1": None, "2": False, "3": {"0": 2, "1": "x"}},
        ],
        "total": [{"Count": 2}],
    }
    typed = {n: v.to_arrow().schema == empty[n].schema for n, v in views.items()}
    assert [name for name, same in typed.items() if not same] == ["any"]


def column(kind: Any, *values: Any) -> Any:
    """The column of a field with this annotation."""
    make: Any = NamedTuple
    row_type = make("Row", [("id", int), ("field", kind)])
    rows = Database().table(row_type, name="rows")
    view = rows.order_by("id").materialize("rows")
    rows.add_all([row_type(n, value) for n, value in enumerate(values)])
    return view.to_arrow().column("field")


def test_values_that_annotations_do_not_name_are_what_they_are() -> None:
    aware = datetime(2020, 1, 1, 3, tzinfo=FAR)
    assert column(Cents, Cents(7)).type == column(Annotated[int, "cents"], Colour.RED).type
    assert column(int, True, Colour.RED).to_pylist() == [1, 1]
    assert column(float, 1, float("inf"), Decimal("1") == 1).to_pylist() == [1.0, float("inf"), 1.0]
    assert column(datetime | None, aware, None).to_pylist() == [aware, None]
    assert str(column(datetime, aware).type) == "timestamp[us, tz=UTC]"
    assert column(Any, 1, 2.5).type == column(int | float, 1.5).type == pa.float64()
    assert column(object).type == column(Any, None).type == pa.null()
    assert column(frozenset[int], frozenset({3})).to_pylist() == [[3]]
    assert column(Any, (1, 2), ()).to_pylist() == [[1, 2], []]
    assert column(Any, (1, "a"), None).to_pylist() == [{"0": 1, "1": "a"}, None]
    assert column(Any, Note("a", aware), Order(1, 2, 3.5)).to_pylist()[1]["text"] is None
    assert column(timedelta, timedelta(days=3)).to_pylist() == [timedelta(days=3)]


def test_records_that_hold_their_own_class() -> None:
    assert column(Folder).type == pa.null()
    made = Folder("a", (Folder("b"), Folder("c", (Folder("d"),))))
    (read,) = column(Folder, made).to_pylist()
    assert read["folders"][1]["folders"][0]["name"] == "d"


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        (int, 2**64, "too large"),
        (int, 1.5, "1.5 is of type float, not int"),
        (float, 2**60 + 1, "outside of the range"),
        (str, b"a", "is of type bytes, not str"),
        (str, "\ud800", "surrogates not allowed"),
        (date, datetime(2020, 1, 1), "is of type datetime, not date"),
        (Decimal, Decimal("NaN"), "NaN"),
        (Decimal, Decimal("1e30"), "does not fit"),
        (Any, 1 + 2j, "complex"),
        (Any, object, "type"),
        (tuple[int, int], (1, 2, 3), "has 3 items, not 2"),
        (Bag[tuple[int, ...]], Bag([(), (4, "a")]), "'a' is of type str, not int"),
    ],
)
def test_what_arrow_cannot_have_is_refused_with_its_place(
    kind: Any, value: Any, reason: str
) -> None:
    with pytest.raises(PlanError, match=r"'rows' .*is no Arrow table: column 'field") as refused:
        column(kind | None, None, value, None)
    shown, *more = str(refused.value).split("\n")
    assert "row 1: " in shown and reason in shown
    assert more[0].startswith("  the row is Row(id=1, field=") and "declare the field" in more[1]


def test_values_of_several_kinds_are_refused() -> None:
    utc = datetime(2020, 1, 1, tzinfo=UTC)
    for values in ((1, "a"), (datetime(2020, 1, 1), utc), (Order(1, 1, 1.0), 3)):
        with pytest.raises(PlanError, match="column 'field', row"):
            column(Any, *values)
    inside = Shop()
    view = inside.tree().materialize()
    inside.customers.add(Customer(1, None, None, b"", True))
    inside.orders.add(Order(7, 1, 1.0))
    inside.lines.add(Line(7, 3))  # type: ignore[arg-type]
    with pytest.raises(PlanError, match=r"column 'orders\.lines\.what', row 0: 3 is of type int"):
        view.to_arrow()


def test_a_list_of_a_large_view_is_of_its_rows() -> None:
    db = Database()
    numbers = db.table(int, name="numbers")
    view = (
        numbers.group_by(lambda n: n % 2)
        .rows(lambda mine: mine.order_by(lambda n: n))
        .materialize()
    )
    numbers.add_all(range(300))
    read = {row["key"]: row["rows"] for row in view.to_arrow().to_pylist()}
    assert read == {0: [*range(0, 300, 2)], 1: [*range(1, 300, 2)]}


class Stream:
    """The Arrow stream of a data frame."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


def loaded(row_type: Any, **columns: Any) -> list[Any]:
    """The rows of a table of a class, of these columns."""
    table: Any = Database().table(row_type, name="rows")
    table.add_arrow(pa.table({name.strip("_"): values for name, values in columns.items()}))
    return list(table)


def test_rows_are_made_as_their_class_declares() -> None:
    folders = [[{"name": "b", "folders": []}], None]
    made = loaded(Folder, folders=folders, name=["a", "c"], more=[1, 2])
    assert made == [Folder("a", (Folder("b"),)), Folder("c", None)]
    numbers: Any = Database().table(int, name="numbers")
    numbers.add_arrow(pa.record_batch({"n": [1, 2]}))
    numbers.add_arrow(Stream(pa.table({"n": [3]})))
    assert list(numbers) == [1, 2, 3]
    assert loaded(tuple, _0=[1], _1=[["x"]]) == [(1, ("x",))]
    (pair,) = loaded(tuple[int, Bag[tuple[int, str]]], _0=[1], _1=[[{"a": 1, "b": "x"}]])
    assert pair == (1, Bag([(1, "x")]))
    (any_row,) = loaded(NamedTuple("Row", [("x", Any)]), x=[[{"a": [1], "b": None}]])
    assert any_row.x == (((1,), None),)
    (kept,) = loaded(NamedTuple("Row", [("x", frozenset[int] | None)]), x=[[1, 1]])
    assert kept.x == frozenset({1})


def test_what_lacks_a_column_or_a_class_is_refused() -> None:
    with pytest.raises(PlanError, match="Order has no column for customer, total, days"):
        loaded(Order, id=[1])
    with pytest.raises(PlanError, match="rows of int are made of one column, not of 2: a, b"):
        loaded(int, a=[1], b=[2])


NO_PYARROW = """
import sys
sys.modules["pyarrow"] = None
import importlib.util
from reactive import Database
view = Database().table(int, name="n").materialize("n")
try:
    view.to_arrow()
except Exception as error:
    print(type(error).__name__, error)
"""


def test_without_pyarrow_an_error_names_the_extra() -> None:
    command = [sys.executable, "-c", NO_PYARROW]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("PlanError view 'n': to_arrow needs pyarrow")
    assert "pip install '.[arrow]'" in done.stdout

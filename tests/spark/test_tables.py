"""Tables that live on Spark, and the views over them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
import pyarrow.parquet as pq

from reactive import (
    Avg,
    Collect,
    Count,
    CountDistinct,
    Database,
    Min,
    MissingKeyError,
    OffloadError,
    Sum,
    TableError,
    TransactionError,
)
from tests.replica import Replica
from tests.spark.plans import Hidden, compare

pytestmark = pytest.mark.usefixtures("either_way")

NAN = math.nan


@dataclass(frozen=True, slots=True)
class Sale:
    """A row of plain types."""

    number: int
    customer: str | None
    price: float


FIRST = [
    Sale(n, None if n % 7 == 3 else f"c{n % 5}", NAN if n == 11 else 0.1 * n) for n in range(30)
]
KEYS = ["c0", "c3", None, 0, 1]
PEOPLE = [("c0", "north"), ("c1", "south"), ("c3", "north"), (None, "nowhere")]


def doubled(sale: Sale) -> Sale:
    """A callable that no column can express."""
    for number in (sale.number,):
        return Sale(2 * number, sale.customer, sale.price)
    return sale


def queries(sales: Any, people: Any) -> dict[str, Any]:
    """Views of all kinds over a table on Spark and one in the process."""
    of = sales.group_by(lambda s: s.customer)
    by_customer = {"on": lambda s, p: s.customer == p[0]}
    return {
        "rows": sales.where(lambda s: s.number > 3 and s.customer is not None),
        "opaque": sales.where(Hidden(lambda s: s.number % 3 == 1))
        .select(doubled)
        .unnest(lambda s: (s.number, s.number + 1)),
        "distinct": sales.select(lambda s: s.customer).distinct(),
        "totals": of.aggregate(Count(), Sum(lambda s: s.price), Avg(lambda s: s.number)),
        "others": of.aggregate(
            Min(lambda s: s.number), CountDistinct(lambda s: s.price), Collect(lambda s: s.number)
        ),
        "join": sales.join(people, **by_customer),
        "anti_join": sales.anti_join(people, **by_customer),
        "of itself": sales.join(
            sales, on=lambda a, b: a.customer == b.customer and a.number < b.number
        ),
        "difference": sales.select(lambda s: s.customer).difference_all(
            people.select(lambda p: p[0])
        ),
        "union_all": sales.select(lambda s: s.customer).union_all(people.select(lambda p: p[0])),
        "one": sales.aggregate(Count(), Sum(lambda s: s.number)),
        "first": sales.select(lambda s: (s.number, s.customer))
        .order_by(lambda s: s[0], descending=True)
        .limit(3),
        "join of regions": sales.join(people, **by_customer)
        .group_by(lambda s, p: p[1])
        .aggregate(Sum(lambda s, p: s.price), Count()),
    }


class Case:
    """A table on Spark, and views of it; the same in the process."""

    def __init__(self, offload: Any, rows: Any, key: str | None) -> None:
        self.db, self.twin = Database(offload=offload), Database()
        self.sales: Any = self.db.spark_table(rows, Sale, name="sales", key=key)
        self.wanted: Any = self.twin.table(Sale, name="sales", key=key)
        self.wanted.add_all(FIRST)
        people = [db.table(tuple, name="people") for db in (self.db, self.twin)]
        self.people: Any = people
        for table in people:
            table.add_all(PEOPLE)
        self.views = _materialized(queries(self.sales, people[0]))
        self.twins = _materialized(queries(self.wanted, people[1]))
        self.replicas = {name: Replica(view) for name, view in self.views.items()}

    def both(self) -> list[Any]:
        return [self.sales, self.wanted]

    def check(self, *, looked_up: bool = False) -> None:
        self.db.flush()
        for name, view in self.views.items():
            compare(view, self.twins[name], KEYS, name, looked_up=looked_up)
        for name, replica in self.replicas.items():
            try:
                replica.check()
            except AssertionError as error:
                raise AssertionError(name) from error
        assert dict(self.sales.zset().items()) == dict(self.wanted.zset().items())
        assert len(self.sales) == len(self.wanted)


def _materialized(made: dict[str, Any]) -> dict[str, Any]:
    return {name: relation.materialize(name) for name, relation in made.items()}


def frame(spark: Any, rows: list[Sale]) -> Any:
    columns = ("number", "customer", "price")
    kinds = (pa.int64(), pa.string(), pa.float64())
    pairs = zip(columns, kinds, strict=True)
    arrays = [pa.array([getattr(r, c) for r in rows], k) for c, k in pairs]
    return spark.createDataFrame(pa.table(arrays, names=list(columns)))


@pytest.fixture
def case(session: Any, spark: Any, offload: Any) -> Iterator[Case]:
    made = Case(offload, frame(spark, FIRST), "number")
    yield made
    made.db.close()


def test_views_of_all_kinds_follow_rows_frames_and_upserts(case: Case, spark: Any) -> None:
    case.check()
    for table in case.both():
        table.add_all([Sale(100, "c1", 5e-324), Sale(101, None, NAN)])
        table.remove(Sale(11, "c1", NAN))
    for people in case.people:
        people.add(("c2", "south"))
        people.remove(PEOPLE[0])
    case.sales.add_frame(frame(spark, [Sale(200, "c0", 1e16), Sale(201, "c0", 1.0)]))
    case.wanted.add_all([Sale(200, "c0", 1e16), Sale(201, "c0", 1.0)])
    case.check()
    for table in case.both():
        table.upsert(Sale(200, "c9", 2.0))
        table.delete(5)
        assert table.pop(6).number == 6 and table.pop(6, "none") == "none"
        table.update(7, price=9.5, customer="c9")
        assert table[7] == Sale(7, "c9", 9.5)
    case.sales.upsert_frame(frame(spark, [Sale(1, "c1", 7.0), Sale(300, None, 0.0)]))
    case.wanted.upsert_all([Sale(1, "c1", 7.0), Sale(300, None, 0.0)])
    case.sales.remove_frame(frame(spark, [Sale(201, "c0", 1.0)]))
    case.wanted.remove(Sale(201, "c0", 1.0))
    refused_changes_change_nothing(case, spark)
    case.check(looked_up=True)
    for name in ("rows", "totals", "join"):
        case.views[name].verify()


def refused_changes_change_nothing(case: Case, spark: Any) -> None:
    with pytest.raises((OffloadError, TableError)):
        case.sales.add(Sale(2**70, "c1", 1.0))
    with pytest.raises((OffloadError, TableError)):
        case.sales.add(("c1", 1))
    with pytest.raises(TableError):
        case.sales.add_frame(frame(spark, FIRST).drop("price"))
    with pytest.raises(ZeroDivisionError), case.db.transaction():
        case.sales.add(Sale(400, "c1", 1.0))
        raise ZeroDivisionError
    with pytest.raises(TransactionError), case.db.transaction():
        case.sales.add_frame(frame(spark, FIRST))
    with pytest.raises((OffloadError, TableError)):
        case.sales.update(7, price="dear")
    for table in case.both():
        with pytest.raises(MissingKeyError):
            table.pop(5)
        with pytest.raises(MissingKeyError):
            table.update(5, price=1.0)
        with pytest.raises(TableError, match="prize"):
            table.update(7, prize=1.0)


def test_explain_says_what_runs_as_columns_and_what_in_python(
    session: Any, spark: Any, offload: Any
) -> None:
    with Database(offload=offload) as db:
        sales: Any = db.spark_table(frame(spark, FIRST), Sale, name="sales")
        lifted = sales.where(lambda s: s.number > 3).materialize("lifted")
        opaque = sales.where(Hidden(lambda s: s.number > 3)).materialize("opaque")
        both = sales.where(lambda s: s.number > 3).select(doubled).distinct().materialize("both")
        assert len(lifted) == len(opaque) == len(both) == 26
        assert "where s.number > 3: Spark columns" in str(lifted.explain())
        assert "Python workers" in str(opaque.explain())
        text = str(both.explain())
        assert "where s.number > 3: Spark columns" in text and "Python workers" in text


def test_a_table_of_files_gives_a_dataframe_of_what_it_is_now(
    session: Any, offload: Any, tmp_path: Path
) -> None:
    table = pa.table({"number": [1, 2], "customer": ["a", None], "price": [0.5, 1.5]})
    pq.write_table(table, tmp_path / "sales.parquet")
    with Database(offload=offload) as db:
        sales: Any = db.spark_table(str(tmp_path / "sales.parquet"), Sale, name="sales")
        names = sales.select(lambda s: s.customer).distinct().materialize()
        assert set(names) == {"a", None}
        sales.add(Sale(3, "b", 2.5), 2)
        sales.remove(Sale(1, "a", 0.5))
        assert sorted(row.number for row in sales.to_spark().collect()) == [2, 3, 3]
        assert set(names) == {"b", None}
        late = sales.group_by(lambda s: s.customer).aggregate(Count()).materialize()
        assert dict(late) == {"b": 2, None: 1}


@pytest.mark.quick
def test_an_empty_table_on_spark(session: Any, spark: Any, offload: Any) -> None:
    with Database(offload=offload) as db:
        sales: Any = db.spark_table(frame(spark, []), Sale, name="sales")
        rows = sales.where(lambda s: s.number > 1).materialize()
        count = sales.group_by(lambda s: s.customer).aggregate(Count()).materialize()
        total = sales.aggregate(Count(), Sum(lambda s: s.number)).materialize()
        assert (len(rows), len(count), total.value, len(sales)) == (0, 0, (0, 0), 0)
        sales.add(Sale(2, "a", 1.0))
        assert (len(rows), dict(count), total.value, len(sales)) == (1, {"a": 1}, (1, 2), 1)

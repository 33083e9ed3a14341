"""Tables on Spark: their sources, changes by version, and refused rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark")
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F

from reactive import OffloadError
from reactive.engine.collections import zset
from reactive.errors import TableError
from spark_backend.tables.chain import Weighted, collect_pairs
from spark_backend.tables.frames import Frames, as_columns

NAN = float("nan")


@dataclass(frozen=True)
class Sale:
    number: int
    customer: str | None
    price: float


class Spot(NamedTuple):
    at: tuple[int, int]
    day: date


SALES = [Sale(1, "anna", 1.5), Sale(2, None, NAN), Sale(3, "bert", 0.0), Sale(3, "bert", 0.0)]


def table_of(sales: list[Sale], **kinds: pa.DataType) -> pa.Table:
    columns = {"number": pa.int32(), "customer": pa.string(), "price": pa.float64(), **kinds}
    made = {n: pa.array([getattr(s, n) for s in sales], kind) for n, kind in columns.items()}
    return pa.table(dict(reversed(made.items())))


def file_of(folder: Path, sales: list[Sale], **kinds: pa.DataType) -> str:
    folder.mkdir(exist_ok=True)
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    pq.write_table(table_of(sales, **kinds), path)
    return str(path)


@pytest.fixture
def sales(session: Any, tmp_path: Path) -> Frames:
    path = file_of(tmp_path / "given", SALES)
    return Frames(session, path, Sale, str(tmp_path / "changes"), key="number", name="sales")


def net(weighted: Weighted) -> Counter[Any]:
    out: Counter[Any] = Counter()
    for row, weight in collect_pairs(weighted):
        assert weight
        out[row] += weight
    return Counter({row: n for row, n in out.items() if n})


def counted(*rows: Any) -> Counter[Any]:
    return Counter(
        [Sale(r.number, r.customer, r.price if r.price == r.price else zset.NAN) for r in rows]
    )


def test_what_a_table_is_made_of_are_its_rows(sales: Frames) -> None:
    assert sales.version == 0
    assert sales.size() == 4
    assert net(sales.current()) == net(sales.since(-1)) == counted(*SALES)
    assert net(sales.since(0)) == Counter()


def test_changes_are_versions_that_add_up(sales: Frames, spark: Any, tmp_path: Path) -> None:
    more = spark.read.parquet(file_of(tmp_path / "given", [Sale(7, "cleo", -0.0)] * 2))
    assert sales.change([(Sale(5, "dora", NAN), 1)]) == 1
    assert sales.change([(SALES[2], -1), (SALES[1], -1)]) == 2
    assert sales.add_frame(more) == 3
    assert sales.remove_frame(more.limit(1)) == 4
    assert net(sales.since(0, 1)) == counted(Sale(5, "dora", NAN))
    assert net(sales.since(1, 2)) == Counter(dict.fromkeys(counted(SALES[2], SALES[1]), -1))
    assert net(sales.since(2)) == counted(Sale(7, "cleo", 0.0))
    rows = [SALES[0], SALES[3], Sale(5, "dora", NAN), Sale(7, "cleo", 0.0)]
    assert net(sales.current()) == net(sales.since(-1)) == counted(*rows)
    assert net(sales.current(0)) == counted(*SALES)
    assert sales.size() == len(collect_pairs(sales.current())) == 4
    sales.verify()


def test_a_restarted_table_goes_on_with_its_changes(
    sales: Frames, session: Any, tmp_path: Path
) -> None:
    sales.change([(Sale(5, "dora", 1.0), 1)])
    (tmp_path / "changes" / "000000000001-0123456789ab").mkdir()
    (tmp_path / "changes" / "000000000002-0123456789ab").mkdir()
    path = str(tmp_path / "given")
    again = Frames(session, path, Sale, str(tmp_path / "changes"), name="sales")
    assert again.version == 1
    assert net(again.current()) == net(sales.current())
    assert again.change([(Sale(6, "emil", 1.0), 1)]) == 2
    names = sorted(p.name for p in (tmp_path / "changes").iterdir())
    assert [name[:12] + name[-5:] * name.endswith("json") for name in names] == [
        *("000000000001", "000000000001.json", "000000000002", "000000000002.json")
    ]


def test_upsert_replaces_the_rows_of_its_keys(sales: Frames, spark: Any, tmp_path: Path) -> None:
    new = [Sale(3, "bert", 9.0), Sale(1, "anna", 1.5), Sale(4, None, 1.0)]
    frame = spark.read.parquet(file_of(tmp_path / "given2", new))
    assert sales.upsert_frame(frame) == 1
    wanted = counted(Sale(3, "bert", 9.0), Sale(4, None, 1.0))
    wanted[SALES[2]] = -2
    assert net(sales.since(0)) == wanted
    assert net(sales.current()) == counted(*new, SALES[1])
    assert sales.upsert_rows([Sale(2, "back", 0.5)]) == 2
    assert net(sales.current()) == counted(*new, Sale(2, "back", 0.5))
    sales.verify()


def test_rows_that_come_after_a_change_of_none_are_all_there(sales: Frames) -> None:
    sales.change([])
    sales.change([(Sale(8, "dora", 1.0), 1)])
    assert net(sales.since(0)) == counted(Sale(8, "dora", 1.0))


def test_of_a_table_only_the_rows_of_the_keys_of_an_upsert_are_shuffled(
    sales: Frames, spark: Any
) -> None:
    sales.add_rows([Sale(4, "dora", 1.0)])
    rows = sales.since(0).frame
    keys = rows.select(F.struct(F.col("row.number").alias("number")).alias("key"))
    found = sales.replace_rows(rows.filter("false"), keys)
    assert [(tuple(row), weight) for row, weight in found.collect()] == [((4, "dora", 1.0), -1)]
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert plan.count("Exchange hashpartitioning") == 1 and "SortMergeJoin" not in plan


def test_a_batch_that_comes_again_changes_nothing_in_a_later_process_either(
    sales: Frames, session: Any, spark: Any, tmp_path: Path
) -> None:
    path = str(tmp_path / "given")
    more = spark.read.parquet(file_of(tmp_path / "given2", [Sale(7, "cleo", 1.0)]))
    assert sales.add_frame(more, ("q", 3)) == 1
    assert sales.change([(Sale(8, "dora", 1.0), 1)]) == 2
    for again in (sales, Frames(session, path, Sale, str(tmp_path / "changes"), key="number")):
        assert again.batches == {"q": 3}
        assert again.add_frame(more, ("q", 3)) == again.upsert_frame(more, ("q", 2)) == 2
        assert again.remove_frame(more, ("q", 3)) == again.replace_frame(more, ("q", 0)) == 2
    assert sales.upsert_frame(more.withColumn("price", F.lit(2.0)), ("p", 0)) == 3
    assert sales.batches == {"q": 3, "p": 0}
    assert net(sales.since(0)) == counted(Sale(8, "dora", 1.0), Sale(7, "cleo", 2.0))
    next((tmp_path / "changes").glob("*3.json")).write_text("[]")
    with pytest.raises(OffloadError, match="does not say which batches have come"):
        Frames(session, path, Sale, str(tmp_path / "changes"))


@pytest.mark.quick
def test_a_snapshot_changes_what_differs(sales: Frames, spark: Any, tmp_path: Path) -> None:
    new = [SALES[0], Sale(3, "bert", 0.0), Sale(2, "back", NAN), Sale(9, None, NAN)]
    frame = spark.read.parquet(file_of(tmp_path / "given2", new))
    assert sales.replace_frame(frame) == 1
    wanted = counted(new[2], new[3])
    wanted.subtract([SALES[2], *counted(SALES[1])])
    assert net(sales.since(0)) == wanted
    assert net(sales.current()) == counted(*new)
    assert sales.replace_frame(frame) == 2
    assert net(sales.since(1)) == Counter()
    with pytest.raises(TableError, match="the key number 3 has 2 rows"):
        sales.replace_frame(frame.unionByName(frame.filter("number = 3")))
    assert sales.version == 2


def test_a_key_may_come_once_in_an_upsert(sales: Frames) -> None:
    with pytest.raises(TableError, match=r"table 'sales': the key number 9 has 2 rows"):
        sales.upsert_rows([Sale(9, "a", 1.0), Sale(9, "b", 1.0)])
    assert sales.version == 0


def test_check_finds_what_was_removed_without_being_there(sales: Frames) -> None:
    with pytest.raises(TableError, match="the key number 3 has 2 rows"):
        sales.verify()
    sales.change([(SALES[2], -1), (Sale(8, "nobody", 1.0), -1)])
    with pytest.raises(TableError, match=r"nobody.* was removed, but not there"):
        sales.verify()


class Other(NamedTuple):
    number: int
    name: str


class Strict(NamedTuple):
    number: int
    customer: str
    price: float


REFUSED: list[tuple[dict[str, pa.DataType], Any, str]] = [
    ({"price": pa.int64()}, Sale, "column price is bigint, not float"),
    ({"number": pa.string()}, Sale, "column number is string, not int"),
    ({"more": pa.int64()}, Sale, "extra more"),
    ({}, Other, "missing name; extra price, customer"),
    ({}, Strict, "customer is null, which str is not, in 1 of 2 rows"),
    ({}, tuple[int, str], "3 columns, but rows of 2"),
    ({}, int, "3 columns, but rows of 1"),
]


@pytest.mark.parametrize(("kinds", "row_type", "reason"), REFUSED, ids=[r for *_, r in REFUSED])
def test_columns_that_do_not_fit_the_row_type_are_refused(
    session: Any, tmp_path: Path, kinds: dict[str, pa.DataType], row_type: Any, reason: str
) -> None:
    columns: dict[str, Any] = {
        "price": [1, 2],
        "customer": ["a", None],
        "number": [1, 2],
        "more": [1, 1],
    }
    types = {"price": pa.float64(), "customer": pa.string(), "number": pa.int64(), **kinds}
    table = pa.table({n: pa.array(columns[n]).cast(kind) for n, kind in types.items()})
    pq.write_table(table, tmp_path / "given.parquet")
    with pytest.raises(TableError, match=reason):
        Frames(session, str(tmp_path / "given.parquet"), row_type, str(tmp_path / "c"))


def test_a_change_that_does_not_fit_leaves_the_table_as_it_was(
    sales: Frames, spark: Any, tmp_path: Path
) -> None:
    bad = pa.table({"number": [None, 1], "customer": ["a", "b"], "price": [1.0, 2.0]})
    pq.write_table(bad, tmp_path / "bad.parquet")
    with pytest.raises(TableError, match="column number is null, which int is not, in 1 of 2 rows"):
        sales.add_frame(spark.read.parquet(str(tmp_path / "bad.parquet")))
    with pytest.raises(OffloadError, match=r"Sale\.price: 1 is of type int, not float"):
        sales.change([(Sale(1, "x", 1), 1)])
    assert sales.version == 0
    assert list((tmp_path / "changes").iterdir()) == []


def test_rows_without_a_spark_type_cannot_live_there(session: Any, tmp_path: Path) -> None:
    with pytest.raises(OffloadError, match=r"table 'odd' cannot live on Spark: list has no Spark"):
        Frames(session, "nowhere", list, str(tmp_path), name="odd")
    with pytest.raises(OffloadError, match=r"key 'nr' of table 'sales': no field of Sale"):
        Frames(session, "nowhere", Sale, str(tmp_path), key="nr", name="sales")


def test_csv_files_are_read_by_their_header(session: Any, tmp_path: Path) -> None:
    path = tmp_path / "sales.csv"
    path.write_text('price,number,customer\n1.5,1,anna\n"NaN",2,\n')
    made = Frames(session, str(path), Sale, str(tmp_path / "changes"))
    assert net(made.current()) == counted(Sale(1, "anna", 1.5), Sale(2, None, NAN))
    path.write_text("price,nr,customer\n1.5,1,anna\n")
    with pytest.raises(TableError, match="missing number; extra nr"):
        Frames(session, str(path), Sale, str(tmp_path / "changes"))


def test_a_dataframe_of_nested_rows_is_a_table(session: Any, spark: Any, tmp_path: Path) -> None:
    frame = spark.sql("select struct(1 as _1, 2L as _2) as at, date'2024-02-29' as day")
    made = Frames(session, frame, Spot, str(tmp_path))
    made.change([(Spot((3, 4), date.max), 1)])
    rows = [Spot((1, 2), date(2024, 2, 29)), Spot((3, 4), date.max)]
    assert net(made.current()) == Counter(rows)
    beyond = spark.sql("select struct(1 as _1, 2L as _2) as at, date'2024-01-01' + 9999999 as day")
    with pytest.raises(TableError, match="column day is beyond the years 1 to 9999 in 1 of 1"):
        made.add_frame(beyond)


def test_rows_come_back_as_a_dataframe_of_their_columns(sales: Frames) -> None:
    frame = as_columns(sales.current())
    assert frame.columns == ["number", "customer", "price"]
    assert sorted(row["number"] for row in frame.collect()) == [1, 2, 3, 3]
    sales.change([(SALES[0], -1)])
    assert sorted(row["number"] for row in as_columns(sales.current()).collect()) == [2, 3, 3]

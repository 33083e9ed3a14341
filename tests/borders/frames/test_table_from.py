"""`db.table_from(frame)`: a frame, a table of it, and the frame of that are equal."""

from __future__ import annotations

import pickle
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.kinds.texts import field_names
from reactive import Database, PlanError, TableError
from tests.borders.frames.cases import PLAIN, frames


def check_round_trip(frame: pl.DataFrame) -> None:
    """Compare by polars' own equality; structs by value, because their fields may be renamed."""
    frame = frame.with_row_index("place")  # a table stores equal rows together
    table = Database().table_from(frame, name="rows")
    again = table.to_polars()
    names = field_names(frame.columns)
    assert again.columns == names
    for name, column in zip(names, frame, strict=True):
        if "Struct" in str(column.dtype):
            assert _plain(again[name].to_list()) == _plain(column.to_list())
        else:
            assert again[name].equals(column.cast(again.schema[name]), null_equal=True)
            wanted = PLAIN.get(column.dtype.base_type(), column.dtype)
            is_told = column.dtype.is_numeric() or not column.dtype.is_temporal()
            assert not is_told or column.dtype.is_decimal() or again.schema[name] == wanted
    for row in list(table)[:2]:
        same = pickle.loads(pickle.dumps(row))
        assert type(same) is table.row_type and repr(same) == repr(row)


def _plain(value: Any) -> Any:
    """Values as lists of lists."""
    if isinstance(value, dict):
        return [_plain(part) for part in value.values()]
    return [_plain(part) for part in value] if isinstance(value, list) else value


@given(frames())
def test_a_frame_comes_back(frame: pl.DataFrame) -> None:
    check_round_trip(frame)


ROWS = [{"id": 1, "town": "Ulm"}, {"id": 2, "town": None}]
FRAME = pl.DataFrame(ROWS)


@pytest.mark.parametrize(
    "frame",
    [
        *(ROWS, FRAME, FRAME.to_dict(as_series=False), FRAME.lazy(), FRAME.to_arrow()),
        *(FRAME.to_pandas(), nw.from_native(FRAME), FRAME.to_arrow().to_batches()[0]),
        *(FRAME.to_arrow().to_reader(), FRAME.to_pandas().set_index("id")),
        *(duckdb.from_arrow(FRAME.to_arrow()), Database().table_from(FRAME)),
    ],
    ids=lambda frame: f"{type(frame).__module__}.{type(frame).__name__}",
)
def test_all_that_has_columns_is_taken(frame: Any) -> None:
    table = Database().table_from(frame, key="id", name="town halls")
    assert [(row.id, row.town) for row in table] == [(1, "Ulm"), (2, None)]
    assert repr(table[1]) == "TownHalls(id=1, town='Ulm')"
    assert table.row_type.__annotations__ == {"id": int, "town": str | None}


def test_files_are_taken(tmp_path: Path) -> None:
    pq.write_table(FRAME.to_arrow(), tmp_path / "a.parquet")
    csv.write_csv(FRAME.to_arrow(), tmp_path / "a.csv")
    (tmp_path / "a.jsonl").write_text('{"id": 1, "town": "Ulm"}\n{"id": 2}\n')
    for name in ("a.parquet", "a.csv", "a.jsonl"):
        table = Database().table_from(str(tmp_path / name))
        assert [row.id for row in table] == [1, 2]
        assert table.load(tmp_path / name) == 2 and len(table) == 4
    with pytest.raises(PlanError, match=r"\.parquet, \.csv"):
        Database().table_from("a.xlsx")


def test_the_same_columns_make_the_same_class() -> None:
    one, other = Database().table_from(FRAME, name="t"), Database().table_from(FRAME[:2], name="t")
    assert one.row_type is other.row_type
    assert Database().table_from(FRAME[:0], key="id").row_type.__annotations__["id"] is int


def test_names_are_mended_inside_too() -> None:
    frame = pa.table(
        [pa.array([{"a b": 1, "a.b": [{"class": 2}]}, None]), pa.array([1, 2]), pa.array([3, 4])],
        names=["x y", "id", "id"],
    )
    row = next(iter(Database().table_from(frame)))
    assert (row.x_y.a_b, row.x_y.a_b_2[0].class_, row.id, row.id_2) == (1, 2, 1, 3)
    frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
    assert list(Database().table_from(frame).to_polars().columns) == ["a", "a_2"]


@pytest.mark.parametrize(
    ("given", "of"),
    [(3, "int is no frame"), ([1], "list is no frame"), (FRAME["id"], "Series")],
)
def test_what_has_no_columns_is_refused(given: Any, of: str) -> None:
    with pytest.raises(PlanError, match=of):
        Database().table_from(given)


def test_what_is_wrong_is_told() -> None:
    db = Database()
    with pytest.raises(PlanError, match="no column 'key'"):
        db.table_from(FRAME, key="key")
    with pytest.raises(TableError, match="its key is taken"):
        db.table_from([{"id": 1, "n": 1}, {"id": 1, "n": 2}], key="id", name="twice")
    fine = pl.DataFrame({"at": pl.Series([1], dtype=pl.Datetime("ns"))})
    with pytest.raises(TableError, match="no nanoseconds"):
        db.table_from(fine)
    table = db.table_from([{"n": 1}], name="whole")
    for change in (table.sync, table.load, table.add_arrow):
        with pytest.raises(TableError, match=r"'n' has nulls, and Whole\.n is int"):
            change(pl.DataFrame({"n": [1, None]}))
    assert len(table) == 1


@given(st.lists(st.text(max_size=4), max_size=6))
def test_mended_names_are_identifiers_and_differ(names: list[str]) -> None:
    found = field_names(names)
    assert len(set(found)) == len(names)
    assert all(name.isidentifier() for name in found)
    assert field_names(found) == found


@pytest.mark.parametrize("key", ["id", None])
def test_a_durable_table_has_the_rows_of_the_file_or_of_the_frame(
    tmp_path: Path, key: str | None
) -> None:
    path = tmp_path / "shop.db"
    for turn in range(3):
        with Database(path) as db:
            frame = pl.DataFrame({"id": [1, 2 + turn]})
            if turn:
                with pytest.raises(PlanError, match=r"durable, and has rows in .*shop.db"):
                    db.table_from(frame, key=key, name="rows")
                assert not db.tables()
            rows = db.table_from(frame, key=key, name="rows", replace=turn > 0)
            assert sorted(row.id for row in rows) == [1, 2 + turn]


def test_a_durable_table_may_be_replaced_by_one_of_other_columns(tmp_path: Path) -> None:
    frames: list[Any] = [{"id": [1], "n": [1]}, {"id": [1, 2], "n": ["a", None], "x": [1, 2]}]
    frames.append({"id": [3]})
    for turn, frame in enumerate([*frames, frames[0]]):
        with Database(tmp_path / "shop.db") as db:
            for _ in range(2):
                rows = db.table_from(frame, key="id", name="rows", replace=True)
                assert pl.DataFrame(rows).to_dict(as_series=False) == frame, turn
    with Database(tmp_path / "shop.db") as db:
        assert list(db.table(rows.row_type, key="id", name="rows")) == [rows.row_type(1, 1)]


@pytest.mark.parametrize("key", ["order id", "order_id"])
def test_the_key_is_named_as_the_column_or_as_the_field(key: str) -> None:
    frame = pl.DataFrame({"order id": [1, 2]})
    table = Database().table_from(frame, key=key)
    assert table[2].order_id == 2
    assert table.sync(frame.head(1)) == (0, 1, 0)


def test_a_key_may_be_several_columns() -> None:
    frame = pl.DataFrame({"shop": [1, 1, 2], "id": [1, 2, 1], "n": [1, 2, 3]})
    db = Database()
    table = db.table_from(frame, key=["shop", "id"], name="keyed")
    assert table[1, 2].n == 2
    later = frame.reverse().with_columns(n=pl.col("n") + (pl.col("id") == 2)).tail(2)
    assert table.sync(later) == (0, 1, 1) and table[1, 2].n == 3
    bag = db.table_from(frame, name="bag")
    assert bag.sync(later, key=["shop", "id"]) == (0, 1, 1)
    with pytest.raises(PlanError, match="has no such field"):
        bag.sync(frame, key=["shop", "it"])
    for key in ([], 3, ["shop", None]):
        with pytest.raises(PlanError, match="names no column"):
            db.table_from(frame, key=key)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["id", ["id", "n"]])
def test_no_table_is_made_or_replaced_by_rows_that_are_refused(key: Any) -> None:
    db = Database()
    good = db.table_from([{"id": 1, "n": 1}], key=key, name="good")
    view = good.materialize()
    twice: list[Any] = [{"id": 1, "n": 1}, {"id": 1, "n": 1}]
    for name in ("good", "new"):
        with pytest.raises(TableError, match="its key is taken"):
            db.table_from(twice, key=key, name=name, replace=name == "good")
    with pytest.raises(TableError, match="NaN"):
        db.table_from({"id": [float("nan")]}, key="id", name="nan")
    assert db.tables() == [good] and list(view) == list(good)


def test_integers_without_a_sign_come_back() -> None:
    frame = pl.DataFrame(
        {"id": [1, 2**64 - 1], "n": [None, 2**63]}, schema_overrides={"n": pl.UInt64}
    )
    table = Database().table_from(frame, key="id")
    assert pl.DataFrame(table).equals(frame)
    table.add(table.row_type(5, 6))
    assert table.sync(frame) == (0, 1, 0)
    assert pl.DataFrame(Database().table_from({"n": [-1, 1]}))["n"].dtype == pl.Int64


def test_a_list_of_no_rows_leaves_none() -> None:
    table = Database().table_from([{"id": 1, "n": 1}], key="id")
    frame = pl.DataFrame({"id": [2], "n": [3]})
    assert table.sync([]) == (0, 1, 0) and table.sync(frame) == (1, 0, 0)
    assert table.sync(pl.DataFrame()) == (0, 1, 0) and not table


def test_what_is_wrong_with_a_key_is_told_of_the_key() -> None:
    with pytest.raises(TableError, match="column 'id' is the key, and has nulls"):
        Database().table_from(pl.DataFrame({"id": [1, None]}), key="id")
    with pytest.raises(PlanError, match="no column 'idd' for the key\n  there are id"):
        Database().table_from(pl.DataFrame({"id": [1]}), key="idd")


@pytest.mark.parametrize(
    "data",
    [[{"a": 1}, {"a": "x"}], {"a": [1], "b": [1, 2]}, pd.DataFrame({"a": [1, "x"]})],
)
def test_columns_of_several_types_are_refused_with_a_remedy(data: Any) -> None:
    with pytest.raises(TableError, match="have each column be of one type"):
        Database().table_from(data)


@pytest.mark.parametrize("is_lazy", [False, True])
def test_objects_of_python_are_refused_and_not_read_as_addresses(is_lazy: bool) -> None:
    frame: Any = pl.DataFrame({"o": [object()]})
    with pytest.raises(TableError, match="column 'o' is of Python's objects"):
        Database().table_from(frame.lazy() if is_lazy else frame)


@pytest.mark.parametrize(
    "changed", [{"n": [1.5]}, {"n": ["a"]}, {"n": [True]}, {"day": [datetime(2024, 1, 1, 5)]}]
)
def test_a_later_frame_of_other_types_is_refused(changed: dict[str, Any]) -> None:
    first = {"id": [1], "n": [1], "day": [date(2024, 1, 1)], "x": [1.0]}
    table = Database().table_from(first, key="id")
    with pytest.raises(TableError, match="cast it, or make the table anew"):
        table.sync({**first, **changed})
    with pytest.raises(TableError, match="cast it, or make the table anew"):
        table.add_arrow({**first, **changed, "id": [2]})
    assert table.sync({**first, "n": [2.0], "x": [3]}) == (0, 0, 1)
    assert [type(value) for value in (table[1].n, table[1].x)] == [int, float]


def test_digits_that_no_identifier_has_are_field_names() -> None:
    assert field_names(["\U0001d360", "a\U0001d360"]) == ["column", "a_"]

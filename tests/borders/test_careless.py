"""Malicious or unforeseen names and values: right, or a clear error at the border."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, DecimalException, Inexact
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reactive import Avg, Count, Database, PlanError, ReactiveError, Sum, TableError
from reactive.languages.sql.shell.session import load_file


class Loose(NamedTuple):
    id: int
    k: Any


class Object(NamedTuple):
    id: int
    k: object


@dataclass(frozen=True)
class Record:
    id: int
    k: Any


class Declared(NamedTuple):
    id: int
    k: int | None


NAMES = [
    *("mro", "self", "cls", "row", "key", "name", "value", "count", "index", "é", "class", "None"),
    *("a b", "", "\ud83d", "x\ud83d", "_x", "__class__", "__init__", "_fields", "a\0b", "2024"),
]
WAYS: dict[str, Callable[[Any, Any, str], Any]] = {
    "frame": lambda db, t, name: db.table_from([{name: 1, "b": 2}], name="f"),
    "aggregate": lambda db, t, name: t.aggregate(**{name: Count()}).materialize(),
    "groups": lambda db, t, name: (
        t.group_by(lambda r: r.id).aggregate(**{name: Count()}).materialize()
    ),
    "nest": lambda db, t, name: t.nest(**{name: lambda r: t}).materialize(),
    "SQL": lambda db, t, name: db.sql(f'select id as "{name}" from t').materialize(),
    "table": lambda db, t, name: db.table(int, name=name),
    "view": lambda db, t, name: t.materialize(name=name),
}


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("is_durable", [False, True])
def test_a_name_is_taken_or_refused(tmp_path: Path, name: str, way: str, is_durable: bool) -> None:
    with Database(tmp_path / "x.db") if is_durable else Database() as db:
        t = db.table(Loose, name="t")
        t.add(Loose(1, 2))
        try:
            made = WAYS[way](db, t, name)
        except ReactiveError as error:
            assert "\n" in str(error), "with a remedy"
            assert repr(name)[1:-1] in str(error) or name in str(error)
        else:
            if way == "table":
                made.add(1)
            assert len(made) == 1
        t.add(Loose(2, 2))


@pytest.mark.parametrize("name", ["\ud83d", "x\udfff", "\ud83d\ud83d"])
def test_half_of_a_character_is_no_name(tmp_path: Path, name: str) -> None:
    for db in (Database(), Database(tmp_path / "x.db")):
        with pytest.raises(PlanError, match=r"cannot name a table .* lone surrogate"):
            db.table(int, name=name)
        with pytest.raises(PlanError, match=r"cannot name a view .* lone surrogate"):
            db.table(int, name="t").materialize(name=name)
        db.close()
    with pytest.raises(TableError, match="lone surrogate"):
        Database().table_from([{"a": name}])


def nested(depth: int, inner: Any = None) -> Any:
    value = inner
    for _ in range(depth):
        value = (value,)
    return value


@pytest.mark.long
@pytest.mark.parametrize("inner", [None, float("nan"), 1, "x"], ids=repr)
@pytest.mark.parametrize("is_durable", [False, True])
@pytest.mark.parametrize("key", [None, "id"])
def test_tuples_are_nested_so_deep_and_no_deeper(
    tmp_path: Path, inner: Any, is_durable: bool, key: str | None
) -> None:
    file = tmp_path / "x.db"
    with Database(file) if is_durable else Database() as db:
        t = db.table(Loose, name="t", key=key)
        view = t.select(lambda r: r.k).distinct().materialize()
        groups = t.group_by(lambda r: r.k).aggregate(n=Count()).materialize()
        t.add(Loose(1, nested(200, inner)))
        for depth in (250, 500, 5_000, 100_000):
            with pytest.raises(TableError, match="nested too deep, tuples at most 200"):
                t.add(Loose(2, nested(depth, inner)))
            with pytest.raises(TableError, match="nested too deep"):
                t.add_all([Loose(2, 1), Loose(3, nested(depth, inner))])
        t.add(Loose(2, nested(200, inner)))
        assert len(t) == 2
        assert len(view) == len(groups) == 1
        t.remove(Loose(1, nested(200, inner)))
        view.verify()
        assert len(t) == 1
    if is_durable:
        with Database(file) as db:
            assert len(db.table(Loose, name="t", key=key)) == 1


EXACTLY = Context(prec=2_100_000, Emax=10**9, Emin=-(10**9), traps=[Inexact])
FAR = ["1E+999999", "1E-999999", "9E+999999", "-1E+999999", "1", "1E+500000", "-1E-999999", "0E-5"]


@pytest.mark.long
@pytest.mark.parametrize("one", FAR)
@pytest.mark.parametrize("other", FAR)
def test_decimals_far_apart_are_summed(one: str, other: str) -> None:
    t = Database().table(Loose, name="t")
    total = t.aggregate(n=Sum("k")).materialize()
    groups = t.group_by(lambda r: r.id % 1).aggregate(n=Sum("k"), m=Avg("k")).materialize()
    values = [Decimal(one), Decimal(other), Decimal(3)]
    for n, value in enumerate(values):
        t.add(Loose(n, value))
    assert total.value.n == reduce(EXACTLY.add, values)
    for n, value in enumerate(values[:2]):
        t.remove(Loose(n, value))
    assert total.value == (3,)
    assert [row.n for row in groups] == [3]


@pytest.mark.parametrize("value", ["1E+10000000", "1E-10000000", "1E+999999999999999999"])
def test_a_decimal_beyond_all_sums_is_refused_and_others_are_not(value: str) -> None:
    t = Database().table(Loose, name="t")
    total = t.aggregate(n=Sum("k")).materialize()
    for _ in range(2):
        with pytest.raises(DecimalException):
            t.add(Loose(1, Decimal(value)))
        t.add(Loose(2, Decimal(2)))
    assert total.value == (4,)


QUERIES = [
    "select a.id from t a join t b on a.k = b.k",
    "select a.id, b.id as i from t a left join t b on a.k = b.k",
    "select a.id from t a join t b using (k)",
    "select a.id from t a natural join t b",
    "select a.id from t a, t b where a.k = b.k and a.k > 0",
    "select a.id from t a where exists (select 1 from t b where b.k = a.k)",
    "select id from t where k = k",
    "select id from t where k <> 1",
    "select id from t where not (k = 1)",
    "select id from t where k in (select k from t)",
    "select id from t where k not in (select k from t where id = 2)",
    "select id from t where k is distinct from 1",
    "select id from t where k between 1 and 3",
    "select id from t where k > 0 or id = 1",
    "select count(k) as n, max(k) as m, sum(k) as s from t",
    "select coalesce(k, 5) as x, nullif(k, 1) as y, k + 1 as z from t",
    "select case when k = 1 then 'a' else 'b' end as x from t",
    "select k, count(*) as n from t group by k",
]


@pytest.mark.sampled
@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "sqlite"])
@pytest.mark.parametrize("kind", [Loose, Object, Record], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("query", QUERIES)
def test_a_column_of_which_nothing_is_declared_may_be_null(
    dialect: Any, kind: Any, query: str
) -> None:
    def played(row: Any) -> list[Any]:
        db = Database(dialect=dialect)
        t = db.table(row, name="t")
        view = db.sql(query).materialize()
        t.add_all([row(1, None), row(2, 1), row(3, 2), row(4, None)])
        view.verify()
        return sorted(map(tuple, view), key=repr)

    assert played(kind) == played(Declared)


DEEP = {
    "lists": '{"id": 1}\n{"id": ' + "[" * 100_000 + "]" * 100_000 + "}\n",
    "not closed": '{"id": ' + "[" * 100_000,
    "in several lines": '{"id":\n' + "[\n" * 100_000 + "]\n" * 100_000 + "}\n",
    "behind texts": '{"id": 1}\n' + '{"a": ["]", "}",\n' * 2_000,
}


@pytest.mark.parametrize("name", DEEP)
def test_a_frame_of_json_that_is_nested_too_deep_is_refused(tmp_path: Path, name: str) -> None:
    """Arrow would end the process."""
    path = tmp_path / "a.jsonl"
    path.write_text(DEEP[name])
    with pytest.raises(TableError, match="a value is nested more than 500 deep"):
        Database().table_from(path)


@pytest.mark.parametrize("lines", [3, 200_000])
def test_an_open_quote_is_told_where_sql_loads_a_file(tmp_path: Path, lines: int) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,s\n1,a\n2,"' + "x\n" * lines)
    with pytest.raises(PlanError, match=r"cannot read a\.csv, line 3: "):
        load_file(Database(), path)

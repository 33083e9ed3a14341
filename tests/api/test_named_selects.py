"""Names in queries: named rows of `select`, names in JSON, and hints to alternatives."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from reactive import Count, Database, OrderedView, PlanError, col, desc
from tests.errors.golden import here, refused


class Order(NamedTuple):
    id: int
    town: str
    total: int | None


ROWS = [Order(1, "Bonn", 5), Order(2, "Ulm", 7), Order(3, "Bonn", 2)]


def orders(rows: list[Order] = ROWS) -> Any:
    table = Database().table(Order, name="orders", key="id")
    table.add_all(rows)
    return table


SELECTS: dict[str, tuple[Callable[[Any], Any], list[str], Callable[[Order], Any]]] = {
    "names": (lambda t: t.select("id", "total"), ["id", "total"], lambda o: (o.id, o.total)),
    "one": (lambda t: t.select(sum="total"), ["sum"], lambda o: (o.total,)),
    "both": (
        lambda t: t.select("town", twice=lambda o: o.total * 2),
        ["town", "twice"],
        lambda o: (o.town, (o.total or 0) * 2),
    ),
    "columns": (
        lambda t: t.select(col("id"), more=col("total") + 1),
        ["id", "more"],
        lambda o: (o.id, (o.total or 0) + 1),
    ),
    "of extended": (
        lambda t: t.extend(n="id").select("n", "town"),
        ["n", "town"],
        lambda o: (o.id, o.town),
    ),
}


@pytest.mark.parametrize("name", SELECTS)
def test_a_select_of_names_has_named_rows_as_sql_does(name: str) -> None:
    query, columns, wanted = SELECTS[name]
    table = orders()
    view = query(table).materialize()
    assert view.columns == columns
    for change in (lambda: None, lambda: table.update(2, total=9), lambda: table.delete(1)):
        change()
        assert sorted(view) == sorted(map(wanted, table))
        assert {row._fields for row in view} == {tuple(columns)}
        view.verify()
    ordered = query(table.order_by(desc("id"))).materialize()
    assert isinstance(ordered, OrderedView) and ordered.columns == columns
    assert list(ordered) == [wanted(o) for o in sorted(table, reverse=True)]
    assert ordered.to_python() == [dict(zip(columns, row, strict=True)) for row in ordered]


def test_named_rows_are_one_binding_and_equal_those_of_sql() -> None:
    db = Database()
    table = db.table(Order, name="orders")
    table.add_all(ROWS)
    here = table.select("id", "total")
    there = db.sql("select id, total from orders").materialize()
    assert sorted(here.materialize()) == sorted(there)
    assert sorted(here.where(lambda row: row.total > 2).select("id").materialize()) == [1, 2]
    groups = here.group_by("total").aggregate(Count()).materialize()
    assert dict(groups) == {5: 1, 7: 1, 2: 1}


def test_bind_keeps_bindings() -> None:
    view = orders().bind("id", twice=lambda o: o.total * 2).where(lambda n, t: t > 4).materialize()
    assert sorted(view) == [(1, 10), (2, 14)] and view.columns == ["id", "twice"]


def test_a_select_of_one_name_gives_values() -> None:
    assert sorted(orders().select("id").materialize()) == [1, 2, 3]


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no name": (lambda t: t.select(len, len), "one callable, or columns that have names"),
    "twice": (lambda t: t.select("id", id=len), "two columns 'id'"),
    "nothing": (lambda t: t.select(), "select takes callables"),
    "keyword": (lambda t: t.select("id", **{"class": len}), "select names a column 'class'"),
    "unknown": (lambda t: t.select("id", "totl"), "did you mean 'total'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_columns_that_cannot_be_named_are_refused(name: str) -> None:
    query, text = REFUSED[name]
    with pytest.raises(PlanError, match=text):
        query(orders())


JSON: dict[str, tuple[Callable[[Any], Any], dict[str, Any]]] = {
    "bind": (lambda t: t.bind(id="id", sum="total"), {"id": 1, "sum": 5}),
    "bind one": (lambda t: t.bind(id="id"), {"id": 1}),
    "bind some": (lambda t: t.bind("id", lambda o: o.total), {"id": 1, "1": 5}),
    "extend": (lambda t: t.bind(a="id").extend(b=lambda a: a + 1), {"a": 1, "b": 2}),
    "select": (lambda t: t.select("id", sum="total"), {"id": 1, "sum": 5}),
    "joined": (
        lambda t: t.bind(a="id").join(t.bind(b="id"), on=lambda a, b: a == b),
        {"a": 1, "b": 1},
    ),
}


@pytest.mark.parametrize("name", JSON)
def test_names_of_bindings_survive_json(name: str) -> None:
    query, wanted = JSON[name]
    view = query(orders(ROWS[:1])).materialize()
    assert json.loads(json.dumps(view.to_python())) == [wanted]
    assert view.columns == list(wanted)


SQL = {
    'select id as "my id", total from orders': {"my id": 1, "total": 5},
    "select count(*) from orders": {"count(*)": 1},
    'select id as "class", total * 2 from orders': {"class": 1, "total * 2": 10},
    "select id from orders order by id": {"id": 1},
}


@pytest.mark.parametrize("text", SQL)
def test_names_of_sql_survive_json(text: str) -> None:
    db = Database()
    db.table(Order, name="orders").add_all(ROWS[:1])
    view = db.sql(text).materialize()
    assert view.columns == list(SQL[text])
    assert [*map(list, map(dict.values, view.to_python()))] == [[*SQL[text].values()]]
    assert [*map(list, view.to_python())] == [[*SQL[text]]]


def test_equal_names_of_sql_stay_apart() -> None:
    db = Database()
    db.table(Order, name="orders").add_all(ROWS[:1])
    view = db.sql("select id, id from orders").materialize()
    assert view.to_python() == [{"id": 1, "id_1": 1}]


def test_a_field_with_a_sign_points_at_desc() -> None:
    with refused(
        """
        PlanError: order_by: no binding has a field '-total'
          desc("total") has this direction: from reactive import desc
        """
    ):
        orders().order_by("-total")


def test_a_condition_as_text_points_at_col_and_sql() -> None:
    with refused(
        """
        PlanError: where takes the name of a field, or a callable, not the text 'total > 5'
          an expression over names is col('total') ..., as in where(col('total') > 5)
          a text of SQL is a query: db.sql("SELECT ... FROM ... WHERE ...")
        """
    ):
        orders().where("total > 5")


def test_a_none_in_an_expression_over_names_says_what_to_do() -> None:
    table, empty = orders([Order(1, "Bonn", None)]), orders([])
    dear, place = empty.where(col("total") > 5).materialize("dear"), here()
    with refused(
        """
        TypeError: '>' not supported between instances of 'NoneType' and 'int'
          in where of view 'dear' (<place>), on row Order(id=1, town='Bonn', total=None)
          None is neither less nor more: where(col('total').is_not_none()) first, or \
materialize(on_error="drop"), leaves rows with a None out
          transaction rolled back: no table or view changed
        """,
        place=place,
    ):
        empty.add(table[1])
    assert list(dear) == []
    known = table.where(col("total").is_not_none()).where(col("total") > 5).materialize()
    assert list(known) == []


def empty(row: Any) -> Any: ...


def documented(row: Any) -> Any:
    """A function whose body is only this docstring."""


@pytest.mark.parametrize("function", [empty, documented])
def test_an_empty_body_is_refused(function: Any) -> None:
    table = orders()
    asked = (table.where, table.select, table.group_by, table.order_by, table.extend, table.apply)
    for ask in asked:
        with pytest.raises(PlanError, match="has an empty body, and returns nothing"):
            ask(function)

    def query() -> Any: ...

    with pytest.raises(PlanError, match="has an empty body, and returns nothing"):
        Database().query(query)
    assert list(table.select(lambda row: None).materialize()) == [None] * 3


def test_show_counts_copies(capsys: pytest.CaptureFixture[str]) -> None:
    words = Database().table(str, name="words")
    words.add("to", 30)
    words.add("be")
    for rows in (words, words.materialize("words"), words.select(lambda w: w)):
        rows.show()
        text = capsys.readouterr().out
        assert "31 rows, 2 different" in text
        lines = [line.replace("│", " ").split() for line in text.splitlines() if "│" in line]
        assert lines == [["to", "30"], ["be", "1"]]
    words.order_by(len).show(limit=1)
    assert "count" not in capsys.readouterr().out

"""Text and HTML of views and tables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from io import StringIO
from typing import Any, NamedTuple

import msgspec
import pytest
from rich.console import Console

from reactive import ClosedError, Count, Database, Sum, TableError, fixpoint


@dataclass(frozen=True, slots=True)
class City:
    name: str
    people: int


def shown(thing: Any) -> str:
    file = StringIO()
    Console(file=file, width=60).print(thing)
    return file.getvalue()


def test_a_view_of_records_has_a_column_per_field() -> None:
    cities = Database().table(City, name="cities")
    view = cities.where(lambda c: c.people > 1).materialize("large")
    cities.add(City("Bonn", 3))
    text = shown(view)
    assert "large: 1 row" in text
    assert "name" in text
    assert "Bonn" in text
    assert shown(cities).count("Bonn") == 1


def test_a_grouped_view_names_its_aggregates() -> None:
    cities = Database().table(City)
    view = cities.group_by(lambda c: c.name).aggregate(Count(), Sum(lambda c: c.people))
    made = view.materialize()
    cities.add(City("Bonn", 3))
    assert made.columns == ["key", "Count", "Sum"]
    assert "Count" in shown(made)
    assert cities.aggregate(Count(), Count()).materialize().columns == ["Count_0", "Count_1"]


def test_long_views_are_cut_and_say_so() -> None:
    numbers = Database().table(int, name="numbers")
    numbers.add_all(range(100))
    assert "80 more rows" in shown(numbers)
    assert "80 more rows" in numbers._repr_html_()


def test_html_is_escaped() -> None:
    words = Database().table(str, name="<words>")
    words.add("<b>")
    view = words.materialize("a & b")
    assert "<b>" not in view._repr_html_()
    assert "&lt;b&gt;" in view._repr_html_()
    assert "a &amp; b" in view._repr_html_()


def test_rows_of_several_kinds_are_shown_whole() -> None:
    things = Database().table(object, name="things")
    things.add_all([1, (1, 2), City("Bonn", 3), None])
    assert "City(name='Bonn'" in shown(things)


def test_show_prints(capsys: pytest.CaptureFixture[str]) -> None:
    words = Database().table(str, name="words")
    words.add("a")
    words.show()
    words.materialize("copy").show(limit=1)
    out = capsys.readouterr().out
    assert "words: 1 row" in out
    assert "copy: 1 row" in out


def test_representations_are_short_and_say_what_it_is() -> None:
    db = Database()
    words = db.table(str, name="words")
    view = words.group_by(len).aggregate(Count()).materialize("sizes")
    assert repr(words) == "Table('words', 0 rows)"
    assert repr(view).startswith("GroupedView('sizes', 0 rows, made at test_display.py:")
    assert repr(db) == "Database(1 tables, 1 views, version 0)"
    assert repr(words.distinct()) == "Relation:\ndistinct\n  table words"
    assert repr(Count()) == "Count()"
    with words.subscribe(print) as subscription:
        assert "Subscription(the view made at test_display.py:" in repr(subscription)


class Sale(NamedTuple):
    day: date
    at: datetime | None
    price: Decimal
    sold: bool
    note: str | None


SALES = [
    Sale(date(2026, 5, 1), datetime(2026, 5, 1, 12, 30), Decimal("1.50"), True, "<first>"),
    Sale(date(2026, 5, 2), None, Decimal("10.25"), False, None),
]


def sales() -> Any:
    table = Database().table(Sale, name="sales")
    table.add_all(SALES)
    return table


def heads_and_cells(html: str) -> tuple[list[str], list[str]]:
    return re.findall(r"<th[^>]*>(.*?)</th>", html), re.findall(r"<td[^>]*>(.*?)</td>", html)


def test_headers_in_html_say_of_which_type_the_values_are() -> None:
    heads, _ = heads_and_cells(sales()._repr_html_())
    assert heads == [
        "day<br><small>date</small>",
        "at<br><small>datetime | None</small>",
        "price<br><small>Decimal</small>",
        "sold<br><small>bool</small>",
        "note<br><small>str | None</small>",
    ]


def test_columns_of_many_types_name_none() -> None:
    things = Database().table(object, name="things")
    things.add_all([1, "a", None, 2.5, b""])
    assert heads_and_cells(things._repr_html_())[0] == ["row"]


def test_dates_and_exact_numbers_are_shown_as_one_writes_them() -> None:
    _, cells = heads_and_cells(sales()._repr_html_())
    assert cells[:5] == ["2026-05-01", "2026-05-01 12:30:00", "1.50", "True", "&lt;first&gt;"]
    assert cells[5:] == ["2026-05-02", "None", "10.25", "False", "None"]
    assert "datetime" not in shown(sales())


def test_numbers_stand_to_the_right_and_all_else_to_the_left() -> None:
    sides = re.findall(r"<td style=.text-align: (\w+).>", sales()._repr_html_())
    assert sides[:5] == ["left", "left", "right", "left", "left"]
    heads = re.findall(r"<th style=.text-align: (\w+).>", sales()._repr_html_())
    assert heads == sides[:5]
    numbers = Database().table(object, name="numbers")
    numbers.add_all([1, 1000, None, Fraction(1, 3), 2.5])
    assert "right" in numbers._repr_html_()
    lines = shown(numbers).splitlines()
    assert any(line.endswith("1 │") for line in lines)
    assert any(line.endswith("1000 │") for line in lines)
    assert any(line.endswith("1/3 │") for line in lines)


def test_records_of_other_libraries_have_columns_too() -> None:
    class Point(msgspec.Struct, frozen=True):
        x: int
        y: int

    points: Any = Database().table(Point, name="points")
    points.add(Point(1, 2))
    assert heads_and_cells(points._repr_html_())[1] == ["1", "2"]


def test_an_empty_table_is_shown() -> None:
    words = Database().table(str, name="words")
    assert "words: 0 rows" in words._repr_html_()
    assert "words: 0 rows" in shown(words)


def test_a_query_shows_its_rows_and_keeps_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    db = Database()
    cities = db.table(City, name="cities")
    cities.add_all([City("Bonn", 3), City("Ulm", 1)])
    cities.where(lambda c: c.people > 1).show()
    out = capsys.readouterr().out
    assert "query: 1 row" in out
    assert "Bonn" in out and "Ulm" not in out
    cities.order_by(lambda c: c.people).show(limit=1)
    out = capsys.readouterr().out
    assert "Ulm" in out and "1 more rows" in out
    assert db.views() == []
    assert db._engine.graph.nodes() == []


def test_a_query_says_what_it_does_with_each_row() -> None:
    db = Database()
    cities = db.table(City, name="cities")
    least = 2
    query = cities.where(lambda c: c.people > least).select(lambda c: c.name.upper())
    assert repr(query) == (
        "Relation:\nselect c.name.upper()\n  where c.people > 2\n    table cities"
    )
    assert query._repr_html_() == f"<pre>{repr(query).replace('>', '&gt;')}</pre>"
    grouped = cities.where(lambda c: c.people > 1).group_by(lambda c: c.name)
    assert "where c.people > 1" in repr(grouped)


def test_a_query_inside_a_recursion_can_be_looked_at() -> None:
    seen = []

    def step(reach: Any) -> Any:
        seen.append(repr(reach.where(lambda n: n < 9).select(lambda n: n + 1)))
        return numbers.union(reach.where(lambda n: n < 9).select(lambda n: n + 1))

    numbers = Database().table(int, name="numbers")
    fixpoint(step)
    assert seen[0].startswith("Relation:\nselect n + 1\n  where n < 9\n    recursive")


@pytest.mark.parametrize("optimize", [False, True])
def test_a_query_that_cannot_be_read_names_its_callables(optimize: bool) -> None:
    def slow(word: str) -> bool:
        for letter in word:
            return letter == "a"
        return False

    words = Database(optimize=optimize).table(str, name="words")
    assert "where slow (test_display.py:" in repr(words.where(slow))
    assert "where len(w) > 1" in repr(words.where(lambda w: len(w) > 1))


def test_html_of_what_has_no_rows_any_more_says_why() -> None:
    db = Database()
    words, passing = db.table(str, name="words"), db.table(str, name="passing", stored=False)
    view = words.materialize("v")
    db.drop(words, views=True)
    assert view._repr_html_().startswith("<pre>view &#x27;v&#x27; is closed: table")
    assert "was dropped at" in words._repr_html_()
    assert "its rows are not stored" in passing._repr_html_()
    for gone in (view, words):
        with pytest.raises((ClosedError, TableError)):
            gone.show()

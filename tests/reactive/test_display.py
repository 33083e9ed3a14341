"""What people see of views and tables."""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from reactive import Count, Database, Sum


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

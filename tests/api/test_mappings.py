"""Keyed tables and grouped views are mappings; a query is none, and its error says so."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import attrs
import pytest

from reactive import Count, Database, MissingKeyError, PlanError, Sum, TableError, of, tracked
from reactive.engine.transactions.transaction import Transaction
from tests.errors.golden import refused


class Order(NamedTuple):
    id: int
    town: str
    total: int


@dataclass(frozen=True)
class Frozen:
    id: int
    town: str
    total: int


@attrs.frozen
class Attrs:
    id: int
    town: str
    total: int


@tracked
@dataclass
class Tracked:
    id: int
    town: str
    total: int


KINDS = [Order, Frozen, Attrs, Tracked]


def orders(kind: Any = Order, **options: Any) -> Any:
    table = Database(**options).table(kind, key="id", name="orders")
    table.add_all([kind(1, "Bonn", 5), kind(2, "Ulm", 7), kind(3, "Bonn", 2)])
    return table


def test_a_keyed_table_is_a_mapping_from_its_keys_to_rows() -> None:
    table = orders()
    plain = {row.id: row for row in table}
    assert dict(table) == plain == dict(table.items())
    assert (table.keys(), table.values()) == (list(plain), list(plain.values()))
    assert table.get(9) is None and table.get(9, "none") == "none" and 2 in table
    assert list(table) == list(plain.values())
    assert dict(table.zset().items()) == dict.fromkeys(plain.values(), 1)


def test_a_grouped_view_is_a_mapping_from_its_keys_to_aggregates() -> None:
    table = orders()
    one = table.group_by("town").aggregate(Count()).materialize()
    two = table.group_by("town").aggregate(Count(), Sum(lambda o: o.total)).materialize()
    named = table.group_by("town").aggregate(n=Count(), total=Sum("total")).materialize()
    for view, wanted in [
        (one, {"Bonn": 2, "Ulm": 1}),
        (two, {"Bonn": (2, 7), "Ulm": (1, 7)}),
        (named, {"Bonn": (2, 7), "Ulm": (1, 7)}),
    ]:
        assert dict(view) == wanted == dict(view.items())
        assert sorted(view.keys()) == sorted(wanted)
        assert sorted(view.values(), key=repr) == sorted(wanted.values(), key=repr)
        assert sorted(view.zset().items()) == sorted((row, 1) for row in view)
    assert named.values()[0].total == 7


def test_what_has_no_keys_has_rows_and_weights_as_items() -> None:
    words = Database().table(str, name="words")
    words.add("to", 2)
    view = words.materialize()
    assert words.items() == view.items() == list(words.zset().items()) == [("to", 2)]
    pairs = Database().table(tuple, name="pairs")
    pairs.add(("a", 1))
    assert dict(pairs) == {"a": 1} and not hasattr(pairs, "keys")


@pytest.mark.parametrize("kind", KINDS)
def test_fields_are_changed_by_key(kind: Any) -> None:
    table = orders(kind)
    told: list[Any] = []
    subscription = table.select(lambda o: (o.id, o.total)).subscribe(told.append)
    version = table._engine.version
    table.update(2, total=9, town="Kiel")
    assert (table[2].total, table[2].town, len(table)) == (9, "Kiel", 3)
    assert [delta.updated for delta in told] == [(((2, 7), (2, 9)),)]
    assert table._engine.version == version + 1
    table.update(table[2], kind(4, "Ulm", 1))
    assert sorted(table.keys()) == [1, 3, 4]
    subscription.close()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_put_and_taken_by_key(kind: Any) -> None:
    table = orders(kind)
    table[4] = kind(4, "Kiel", 1)
    table[1] = kind(1, "Kiel", 1)
    assert table[1].town == table[4].town == "Kiel"
    gone = table.pop(4)
    assert (gone.id, gone.total, 4 in table, table.pop(4, None)) == (4, 1, False, None)
    del table[1]
    assert sorted(table.keys()) == [2, 3]
    with pytest.raises(TableError, match="its key is 3"):
        table[2] = kind(3, "Kiel", 1)
    assert table[2].town == "Ulm"


def test_an_object_that_is_updated_by_key_stays_the_object() -> None:
    table = orders(Tracked)
    before = of(table[1])
    table.update(1, total=8)
    assert of(table[1]) is before and before.total == 8


def test_changes_by_key_are_undone_with_their_transaction() -> None:
    table = orders()
    before = table.items()
    with pytest.raises(KeyError), Transaction(table._engine):
        table.update(1, total=8)
        table.pop(2)
        table[7] = Order(7, "Ulm", 1)
        del table[8]
    assert sorted(table.items()) == sorted(before)


ABSENT: dict[str, Callable[[Any], object]] = {
    "[]": lambda t: t[9],
    "delete": lambda t: t.delete(9),
    "del": lambda t: t.__delitem__(9),
    "pop": lambda t: t.pop(9),
    "update": lambda t: t.update(9, total=1),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ABSENT)
def test_an_absent_key_is_a_key_error_and_a_table_error(name: str, kind: Any) -> None:
    table = orders(kind)
    with pytest.raises(MissingKeyError) as caught:
        ABSENT[name](table)
    assert isinstance(caught.value, KeyError) and isinstance(caught.value, TableError)
    assert caught.value.key == 9
    text = "table 'orders' has no row with key 9\n  the table holds 3 rows"
    assert str(caught.value) == str(pickle.loads(pickle.dumps(caught.value))) == text
    assert len(table) == 3


def test_a_row_at_a_key_of_another_is_refused() -> None:
    table = orders()
    with refused(
        """
        TableError: cannot put Order(id=2, town='Ulm', total=7) at 1 in table 'orders': its key is 2
          upsert(row) puts it at its own key
        """
    ):
        table[1] = Order(2, "Ulm", 7)


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_that_rows_do_not_have_is_refused(kind: Any) -> None:
    table = orders(kind)
    with pytest.raises(TableError, match="no such field\n  its fields are id, town, total"):
        table.update(1, totl=1)
    assert table[1].total == 5


def test_an_update_says_a_row_or_fields() -> None:
    table = orders()
    update: Any = table.update
    calls: list[Callable[[], object]] = [lambda: update(1), lambda: update(1, table[2], total=1)]
    for refuse in calls:
        with pytest.raises(PlanError, match=r"update\(key, total=3\) changes fields"):
            refuse()


def test_a_table_without_a_key_says_so() -> None:
    words: Any = Database().table(str, name="words")
    asked: list[tuple[str, Callable[[], object], type[Exception]]] = [
        ("keys", lambda: words.keys(), AttributeError),
        ("values", lambda: words.values(), AttributeError),
        ("pop", lambda: words.pop("to"), TableError),
        (r"table\[key\]", lambda: words["to"], TableError),
        (r"table\[key\] = row", lambda: words.__setitem__(1, "a"), TableError),
        (r"update\(key, field=value\)", lambda: words.update("to", a=1), TableError),
        ("delete", lambda: words.delete("to"), TableError),
    ]
    for what, ask, kind in asked:
        with pytest.raises(kind, match=f"{what} of table 'words', which has no key\n  make it"):
            ask()


def test_several_fields_are_a_key() -> None:
    for options in ({}, {"strict": True}):
        table = Database(**options).table(Order, key=["town", "id"], name="orders")  # type: ignore[arg-type]
        table.add(Order(1, "Bonn", 5))
        table.update(("Bonn", 1), total=6)
        assert table["Bonn", 1].total == 6 and table.keys() == [("Bonn", 1)]
    assert Database().table(Order, key=["id"]).keys() == []
    for wrong in ([], [1], ["id", "nowhere"]):
        with pytest.raises(PlanError, match="key"):
            Database().table(Order, key=wrong)  # type: ignore[arg-type]


QUERIES: dict[str, Callable[[Any], Any]] = {
    "where": lambda t: t.where(lambda o: o.total > 2),
    "groups": lambda t: t.group_by("town").aggregate(Count()),
    "order": lambda t: t.order_by("id"),
    "nest": lambda t: t.nest(same=lambda o: t.where(town=o.town)),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_has_no_rows_to_read(name: str) -> None:
    query = QUERIES[name](orders())
    for ask in (len, bool, list, lambda q: q[0], lambda q: q["id"], lambda q: 1 in q):
        with pytest.raises(PlanError, match=r"materialize\(\) it first; the view has them"):
            ask(query)
    view = query.materialize()
    assert view and len(view) == len(list(view)) > 0


def test_the_field_of_a_query_is_selected() -> None:
    with refused(
        """
        PlanError: a relation is a query and has no row 'id'
          materialize() it first; the view has them; select('id') is a query of one field
        """
    ):
        orders().distinct()["id"]


def test_a_view_without_keys_and_order_has_no_positions() -> None:
    view = orders().distinct().materialize("once")
    with refused(
        """
        PlanError: view 'once' has no [0]: its rows have no keys and no order
          group_by(key).aggregate(...) has keys, order_by(key) an order; list(view) has all rows
        """
    ):
        view[0]


def test_parts_of_queries_and_of_groups_are_refused() -> None:
    orders: Any = Database().table(int, name="orders")
    with refused(
        """
        PlanError: a relation is a query and has no part [2:5]
          order_by(key).limit(n, offset=m) is a query of a part; a view of what is ordered has [m:n]
        """
    ):
        orders.order_by(lambda n: n)[2:5]
    with refused(
        """
        PlanError: groups have no ['a']: say first what to keep of each group
          group_by(key).aggregate(Count(), ...).materialize() has view[key]
        """
    ):
        orders.group_by(lambda n: n)["a"]

"""Values whose `==` raises for another one of the same hash: rows left out, no writer stopped."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from reactive import Collect, Count, CountDistinct, Database
from reactive.errors import TableError


class Money:
    """An amount that compares with amounts of its currency alone."""

    def __init__(self, amount: int, currency: str) -> None:
        self.amount, self.currency = amount, currency

    def __repr__(self) -> str:
        return f"{self.amount} {self.currency}"

    def __hash__(self) -> int:
        return hash(self.amount)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Money) or other.currency != self.currency:
            raise ValueError(f"no rate for {self!r} and {other!r}")
        return self.amount == other.amount


class Paid(NamedTuple):
    id: int
    price: Money


class Undeclared(NamedTuple):
    id: int
    price: Any


class Typed(NamedTuple):
    id: int
    price: int


class Tagged(NamedTuple):
    id: int
    prices: tuple[Money | None, ...]


QUERIES: dict[str, Callable[[Any, Any], Any]] = {
    "group_by": lambda t, u: t.group_by("price").aggregate(Count()),
    "select": lambda t, u: t.select(lambda r: r.price),
    "distinct": lambda t, u: t.select(lambda r: (r.id % 2, r.price)).distinct(),
    "unnest": lambda t, u: t.unnest(lambda r: [r.price]).select(lambda r, p: p),
    "CountDistinct": lambda t, u: t.group_by(lambda r: r.id % 2).aggregate(
        CountDistinct(lambda r: r.price)
    ),
    "Collect": lambda t, u: t.group_by(lambda r: r.id % 2).aggregate(Collect(lambda r: r.price)),
    "join": lambda t, u: t.join(u, left_key=lambda r: r.price, right_key=lambda r: r.price),
    "left_join": lambda t, u: t.left_join(
        u, left_key=lambda r: r.price, right_key=lambda r: r.price
    ),
    "union": lambda t, u: t.select(lambda r: r.price).union(u.select(lambda r: r.price)),
    "difference": lambda t, u: t.select(lambda r: r.price).difference(u.select(lambda r: r.price)),
    "intersection": lambda t, u: t.select(lambda r: r.price).intersection(
        u.select(lambda r: r.price)
    ),
    "each": lambda t, u: t.group_by(lambda r: r.id % 2).each(
        lambda g: g.group_by("price").aggregate(Count())
    ),
}

OF_BOTH = ("join", "left_join", "union", "difference", "intersection")
"""Queries that read both tables."""


def clashing(rows: list[Any]) -> set[Any]:
    """Return the rows with an amount that is there in several currencies."""
    currencies: dict[int, set[str]] = {}
    for row in rows:
        currencies.setdefault(row.price.amount, set()).add(row.price.currency)
    return {row for row in rows if len(currencies[row.price.amount]) > 1}


@pytest.mark.long
@pytest.mark.sampled
@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("policy", ["drop", "null"])
@pytest.mark.parametrize("kind", [Paid, Undeclared])
@pytest.mark.parametrize("seed", range(3))
def test_all_that_clash_are_left_out_in_any_order(
    name: str, policy: Any, kind: Any, seed: int
) -> None:
    chance, db = Random(seed), Database()
    tables: list[Any] = [db.table(kind, name="t"), db.table(kind, name="u")]
    view = QUERIES[name](*tables).materialize(on_error=policy)
    inputs = 2 if name in OF_BOTH else 1
    errors = view.errors
    there: list[tuple[int, Any]] = []
    for number in range(40):
        if there and chance.random() < 0.4:
            place, row = there.pop(chance.randrange(len(there)))
            tables[place].remove(row)
        else:
            place = chance.randrange(2)
            row = kind(number, Money(chance.randrange(3), chance.choice("ed")))
            tables[place].add(row)
            there.append((place, row))
        view.verify()
        errors.verify()
        read = [row for place, row in there if place < inputs]
        assert {error.row for error in errors} == clashing(read)


@pytest.mark.long
@pytest.mark.sampled
@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("policy", ["drop", "null"])
@pytest.mark.parametrize("kind", [Paid, Undeclared])
@pytest.mark.parametrize("seed", range(3))
def test_no_commit_of_several_changes_is_refused(
    name: str, policy: Any, kind: Any, seed: int
) -> None:
    """Play commits that replace values by others; some of these clash; some commits roll back."""
    chance, db = Random(seed), Database()
    tables: list[Any] = [db.table(kind, name="t"), db.table(kind, name="u")]
    view = QUERIES[name](*tables).materialize(on_error=policy)
    inputs = 2 if name in OF_BOTH else 1
    errors = view.errors if seed else None
    there: list[tuple[int, Any]] = []
    for number in range(0, 120, 4):
        before = list(there)
        is_kept = chance.random() < 0.8
        with suppress(KeyError), db.transaction():
            for more in range(chance.randrange(1, 4)):
                if there and chance.random() < 0.6:
                    place, row = there.pop(chance.randrange(len(there)))
                    tables[place].remove(row)
                place = chance.randrange(2)
                row = kind(number + more, Money(chance.randrange(2), chance.choice("edp")))
                tables[place].add(row)
                there.append((place, row))
            if not is_kept:
                raise KeyError
        if not is_kept:
            there = before
        errors = view.errors if errors is None and number > 40 else errors
        view.verify()
        if errors is not None:
            errors.verify()
            read = [row for place, row in there if place < inputs]
            assert clashing(read) <= {error.row for error in errors} <= set(read)
    for place, row in there:
        tables[place].remove(row)
    for place in (0, 1):
        tables[place].add(kind(1000 + place, Money(1, "e")))
    view.verify()
    assert not view.errors


@pytest.mark.parametrize("kind", [Paid, Undeclared])
@pytest.mark.parametrize("way", ["update", "transaction", "replace_all", "replace_where"])
def test_a_value_that_replaces_one_it_clashes_with_is_left_out(kind: Any, way: str) -> None:
    db = Database()
    table: Any = db.table(kind)
    view = table.group_by("price").aggregate(Count()).materialize(on_error="drop")
    told: list[Any] = []
    subscription = view.subscribe(told.append)
    old, new = kind(1, Money(1, "e")), kind(2, Money(1, "d"))
    table.add(old)
    if way == "update":
        table.update(old, new)
    elif way == "transaction":
        with db.transaction():
            table.add(new)
            table.remove(old)
    elif way == "replace_all":
        table.replace_all([new])
    else:
        table.replace_where(lambda r: True, [new])
    assert list(table) == [new] and not view and len(told) == 2
    assert [error.row for error in view.errors] == [new]
    view.verify()
    later = table.group_by("price").aggregate(Count()).materialize(on_error="drop")
    later.verify()
    table.update(new, kind(3, Money(1, "d")))
    view.verify()
    table.replace_all([])
    table.add(kind(4, Money(1, "d")))
    assert [price.currency for price, _ in view] == ["d"] and not view.errors
    view.verify()
    subscription.close()


@pytest.mark.parametrize(
    "select", ["price, count(*) from t group by price", "distinct price from t"]
)
def test_a_sql_view_stops_no_writer_by_values_that_clash(select: str) -> None:
    db = Database()
    table: Any = db.table(Undeclared, name="t")
    view = db.sql(f"select {select}").materialize()
    table.add(Undeclared(1, Money(1, "e")))
    table.add(Undeclared(2, Money(1, "d")))
    assert not view and len(view.errors) == 2
    table.remove(Undeclared(2, Money(1, "d")))
    table.update(Undeclared(1, Money(1, "e")), Undeclared(3, Money(1, "p")))
    assert not view and [error.row.id for error in view.errors] == [3]
    view.verify()


CLASHES: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "add": lambda db, t, one, other: t.add(other),
    "add_all": lambda db, t, one, other: t.add_all([other]),
    "update": lambda db, t, one, other: t.update(one, other),
    "upsert": lambda db, t, one, other: t.upsert(other),
    "update of a field": lambda db, t, one, other: t.update(1, price=other.price),
    "replace_all": lambda db, t, one, other: t.replace_all([other]),
    "remove": lambda db, t, one, other: t.remove(other),
    "transaction": lambda db, t, one, other: _in_one(db, t, one, other),
}


def _in_one(db: Database, table: Any, one: Any, other: Any) -> None:
    with db.transaction():
        table.remove(one)
        table.add(other)


KEYED = ("upsert", "update of a field")


@pytest.mark.parametrize("kind", [Paid, Undeclared])
@pytest.mark.parametrize("way", CLASHES)
def test_a_table_names_the_rows_that_it_cannot_tell_apart(way: str, kind: Any) -> None:
    db = Database()
    table: Any = db.table(kind, name="t", key="id" if way in KEYED else None)
    one, other = kind(1, Money(1, "e")), kind(1, Money(1, "d"))
    table.add(one)
    told = r"'t' cannot take .*1 d\): it has the hash of .*1 e\), .* ValueError: no rate"
    with pytest.raises(TableError, match=told) as raised:
        CLASHES[way](db, table, one, other)
    assert isinstance(raised.value.__cause__, ValueError)
    assert list(table) == [one]
    table.remove(one)


def test_a_table_names_the_keys_that_it_cannot_tell_apart() -> None:
    table: Any = Database().table(Paid, name="t", key="price")
    table.add(Paid(1, Money(1, "e")))
    with pytest.raises(TableError, match=r"Paid\(id=2.* its key has the hash of the key of Paid"):
        table.add(Paid(2, Money(1, "d")))


class Moody:
    """A value whose hash raises."""

    def __hash__(self) -> int:
        raise ValueError("not today")

    def __repr__(self) -> str:
        return "moody"


@pytest.mark.parametrize("key", [None, "id", "price"])
def test_a_table_names_the_value_whose_hash_raises(key: str | None) -> None:
    table: Any = Database().table(Undeclared, name="t", key=key)
    told = "'t' cannot take .*: its field 'price' is a Moody, whose hash raises ValueError: not to"
    for add in (table.add, lambda row: table.add_all([Undeclared(0, 1), row])):
        with pytest.raises(TableError, match=told):
            add(Undeclared(1, Moody()))
    assert not table


def test_a_batch_of_values_that_clash_is_taken() -> None:
    table: Any = Database().table(Paid)
    view = table.group_by("price").aggregate(Count()).materialize(on_error="drop")
    table.add(Paid(0, Money(1, "e")))
    table.add_all([Paid(1, Money(1, "d")), Paid(2, Money(1, "d")), Paid(3, Money(2, "d"))])
    assert [(price.amount, count) for price, count in view] == [(2, 1)]
    assert {error.row.id for error in view.errors} == {0, 1, 2}
    told = {str(error.error) for error in view.errors if error.row.id == 0}
    assert told == {
        "TypeError: 1 e does not compare by == with another value of the same hash",
    }


def test_values_inside_tuples_clash() -> None:
    table: Any = Database().table(Tagged)
    view = table.select(lambda r: r.prices).distinct().materialize(on_error="drop")
    table.add(Tagged(0, (None, Money(1, "e"))))
    table.add(Tagged(1, (Money(2, "e"),)))
    table.add(Tagged(2, (None, Money(1, "d"))))
    assert [prices[0].amount for prices in view] == [2]
    assert {error.row.id for error in view.errors} == {0, 2}
    view.verify()


def test_a_view_of_a_view_asks_its_rows() -> None:
    table: Any = Database().table(Paid)
    below = table.where(lambda r: r.id < 9).materialize()
    view = below.group_by("price").aggregate(Count()).materialize(on_error="drop")
    table.add(Paid(0, Money(1, "e")))
    table.add(Paid(1, Money(1, "d")))
    assert len(below) == 2 and not view and len(view.errors) == 2


def test_declared_classes_of_python_cost_nothing() -> None:
    table: Any = Database().table(Typed)
    query = table.group_by("price").aggregate(Count())
    view = query.materialize(on_error="drop")
    assert view.relation.plan is query.plan


class Vague(int):
    """A number that compares with itself alone, not with a copy."""

    __hash__ = int.__hash__

    def __eq__(self, other: object) -> bool:
        if self is not other:
            raise ValueError("vague")
        return True


class Noted(NamedTuple):
    id: int
    value: Any


@pytest.mark.parametrize("inside", [lambda v: v, lambda v: (1, v), lambda v: (1, (v,), "x")])
@pytest.mark.parametrize("policy", ["drop", "null"])
def test_values_of_sure_classes_pass_and_their_heirs_are_asked(inside: Any, policy: Any) -> None:
    plain = [7, "x", 1.5, True, None, b"x", date(2024, 1, 31), datetime(2024, 1, 31), Decimal(1)]
    values = [*plain, UUID(int=5), (), (1, "x"), frozenset({2}), Vague(3)]
    table: Any = Database().table(Noted)
    view = table.select(lambda r: r.value).distinct().materialize(on_error=policy)
    table.add_all([Noted(number, inside(value)) for number, value in enumerate(values)])
    assert [error.row.id for error in view.errors] == [len(values) - 1]
    assert set(view) == {inside(value) for value in values[:-1]}

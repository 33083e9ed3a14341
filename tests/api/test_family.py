"""Families: a view per value of a parameter, the same view while a reference to it exists."""

from __future__ import annotations

import copy
import gc
import threading
import warnings
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from reactive import ClosedError, Count, Database, PlanError, StaleCaptureWarning, Sum


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    customer: Any
    amount: Any


def shop() -> tuple[Database, Any]:
    db = Database()
    return db, db.table(Order, name="orders")


def test_a_value_has_one_view_while_somebody_holds_it() -> None:
    db, orders = shop()
    family = db.family(lambda name: orders.where(lambda o: o.customer == name))
    ann = family["ann"]
    assert family["ann"] is ann and family["bob"] is not ann
    assert list(family) == ["ann"] and len(family) == 1
    assert "ann" in family and "bob" not in family
    del ann
    gc.collect()
    assert (list(family), len(family), "ann" in family) == ([], 0, False)
    assert not db.views()


def test_its_views_are_right_after_every_commit() -> None:
    random = Random(1)
    db, orders = shop()
    families = [
        db.family(lambda name: orders.where(lambda o: o.customer == name)),
        db.family(lambda n: orders.where(lambda o: o.amount > n).select(lambda o: (o.id, n))),
        db.family(lambda n: orders.where(lambda o: o.amount > 1 and o.customer == n)),
        db.family(
            lambda n: orders.where(lambda o: o.customer == n).aggregate(Sum(lambda o: o.amount))
        ),
        db.family(
            lambda n: (
                orders.where(lambda o: o.amount > n)
                .group_by(lambda o: o.customer)
                .aggregate(Count())
            )
        ),
    ]
    held: list[Any] = []
    for number in range(120):
        orders.add(Order(number, random.randrange(6), random.randrange(9)))
        held.append(random.choice(families)[random.randrange(9)])
        if len(held) > 40:
            del held[random.randrange(len(held))]
        for view in held[-3:]:
            view.verify()
    for view in held:
        view.verify()


def test_several_parameters_are_a_tuple() -> None:
    db, orders = shop()
    orders.add(Order(1, "ann", 5))

    def asked(name: str, least: int, most: int = 9) -> Any:
        return orders.where(lambda o: o.customer == name and least <= o.amount <= most)

    family = db.family(asked)
    assert list(family["ann", 3]) == [Order(1, "ann", 5)]
    assert list(family["ann", 3, 4]) == []
    with pytest.raises(PlanError, match="takes 3 parameters, not 'ann'"):
        family["ann"]
    with pytest.raises(PlanError, match="one value for each"):
        family["ann", 1, 2, 3]


def test_one_parameter_may_be_a_tuple() -> None:
    db, orders = shop()
    orders.add_all([Order(1, "ann", 5), Order(2, "bob", 5)])
    family = db.family(lambda names: orders.where(lambda o: o.customer in names))
    assert len(family["ann", "bob"]) == 2 and len(family["ann",]) == 1


def test_values_that_a_query_may_tell_apart_have_views_of_their_own() -> None:
    db, orders = shop()
    orders.add(Order(1, "ann", 5))
    family = db.family(lambda value: orders.select(lambda o: repr(value)))
    values: list[Any] = [1, 1.0, True, 0.0, -0.0, (1,), (True,), None]
    views = [family[value] for value in values]
    assert [list(view) for view in views] == [[repr(value)] for value in values]


def test_queries_may_have_another_shape_for_another_value() -> None:
    db, orders = shop()
    orders.add_all([Order(n, "ab"[n % 2], n) for n in range(6)])

    def asked(name: str | None) -> Any:
        return orders if name is None else orders.where(lambda o: o.customer == name)

    family = db.family(asked)
    every, one = family[None], family["a"]
    assert (len(every), len(one)) == (6, 3)


def test_a_value_without_hash_is_refused() -> None:
    db, orders = shop()
    family = db.family(lambda names: orders.where(lambda o: o.customer in names))
    with pytest.raises(TypeError, match=r"\['ann'\] is no value of a parameter.*unhashable"):
        family[["ann"]]
    with pytest.raises(TypeError, match="use a tuple"):
        family[(["ann"],)]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (3, "takes a callable"),
        (lambda: None, "one or more named parameters"),
        (lambda *names: None, "one or more named parameters"),
    ],
)
def test_what_is_no_function_of_a_parameter_is_refused(function: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        Database().family(function)


def test_a_function_that_gives_no_relation_of_the_database_is_refused() -> None:
    db, orders = shop()
    _, others = shop()
    nothing: Any = db.family(lambda n: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(PlanError, match=r"gave None .* for 3, not a relation"):
        nothing[3]
    grouped: Any = db.family(lambda n: orders.group_by("id"))
    with pytest.raises(PlanError, match="gave Groups for 3"):
        grouped[3]
    other = db.family(lambda n: others.where(lambda o: o.id == n))
    with pytest.raises(PlanError, match="another database"):
        other[3]
    assert not db.views()


def test_what_the_function_raises_is_raised_and_nothing_is_kept() -> None:
    db, orders = shop()
    orders.add(Order(1, "ann", 5))
    family = db.family(lambda n: orders.where(lambda o: o.amount / n > 1))
    with pytest.raises(ZeroDivisionError):
        family[0]
    assert not len(family) and not db.views()
    assert len(family[2]) == 1


def test_closing_it_closes_its_views() -> None:
    db, orders = shop()
    family = db.family(lambda n: orders.where(lambda o: o.amount == n))
    view, other = family[1], orders.materialize()
    with family:
        assert "1 views" in repr(family)
    assert view.closed and not other.closed and family.closed
    with pytest.raises(ClosedError, match=r"family .* is closed"):
        family[1]
    assert "closed" in repr(family)


def test_a_view_that_was_closed_is_made_anew() -> None:
    db, orders = shop()
    family = db.family(lambda n: orders.where(lambda o: o.amount == n))
    view = family[1]
    view.close()
    assert 1 not in family and list(family) == []
    again = family[1]
    assert again is not view and not again.closed and family[1] is again


def test_its_parameter_is_no_stale_capture_but_other_variables_are() -> None:
    db, orders = shop()
    least = 3
    family = db.family(lambda name: orders.where(lambda o: o.customer == name and o.amount > least))
    views = [family[n] for n in range(20)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        orders.add(Order(1, 3, 5))
    least = 4
    with pytest.warns(StaleCaptureWarning, match="least"):
        for number in range(20):
            orders.add(Order(number, number, 9))
    assert len(views[3]) == 2


def test_views_of_members_say_where_they_were_made_and_explain() -> None:
    db, orders = shop()
    family = db.family(lambda n: orders.where(lambda o: o.amount == n))
    view = family[1]
    assert view.place.file == __file__
    assert "where o.amount == 1" in str(view.explain())


def test_it_is_not_copied() -> None:
    db, orders = shop()
    family = db.family(lambda n: orders.where(lambda o: o.amount == n))
    with pytest.raises(TypeError, match="cannot copy family"):
        copy.copy(family)


def test_threads_get_the_same_view() -> None:
    db, orders = shop()
    family = db.family(lambda n: orders.where(lambda o: o.amount == n))
    found: list[Any] = []
    barrier = threading.Barrier(4)

    def ask() -> None:
        barrier.wait()
        found.extend(family[n] for n in range(30))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(view) for view in found}) == 30 and len(family) == 30
    assert not any(view.closed for view in found)

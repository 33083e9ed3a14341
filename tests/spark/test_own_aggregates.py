"""Own aggregates whose callables raise, on Spark: without a key, by a key, and as named groups.

aggregate x form x policy   -->   after each commit the view and its errors are those that the
                                  process has
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

import pytest

pytest.importorskip("pyspark")

from reactive import Aggregate, Count, Database, Monoid
from tests.budget import TIMES
from tests.spark.fragments import Order
from tests.spark.ways import way


class Weighed(Aggregate[Order, int]):
    """An aggregate whose `add` raises for an id of 3."""

    def __init__(self) -> None:
        super().__init__(
            0, lambda s, v: s + 60 // (v - 3), lambda s, v: s - 60 // (v - 3), of=lambda o: o.id
        )


class Shared(Aggregate[Order, float]):
    """An aggregate whose `result` raises once the sum of ids is 12."""

    def __init__(self) -> None:
        super().__init__(
            *(0, lambda s, v: s + v, lambda s, v: s - v, lambda s: 12 / (s - 12)),
            of=lambda o: o.id,
        )


def _smaller(one: int, other: int) -> int:
    if 3 in (one, other):
        raise ValueError("three")
    return min(one, other)


class Least(Monoid[Order, int]):
    """An aggregate that is not invertible, and whose `combine` raises for an id of 3."""

    def __init__(self) -> None:
        super().__init__(99, _smaller, of=lambda o: o.id)


class Letters(Aggregate[Order, int]):
    """An aggregate over None, whose `add` raises."""

    def __init__(self) -> None:
        super().__init__(0, lambda s, v: s + len(v), lambda s, v: s - len(v), of=lambda o: o.tag)


class Divided(Monoid[Order, int]):
    """An aggregate that is not invertible, whose value and `result` raise."""

    def __init__(self) -> None:
        super().__init__(99, min, lambda s: 6 // (s - 3), of=lambda o: 12 // o.id)


class Sum(Aggregate[Order, tuple[int, ...]]):
    """An aggregate of whole rows, called as another one is."""

    def __init__(self) -> None:
        super().__init__((), _with, _without)


def _with(state: tuple[int, ...], order: Order) -> tuple[int, ...]:
    return tuple(sorted((*state, 12 // order.id)))


def _without(state: tuple[int, ...], order: Order) -> tuple[int, ...]:
    place = state.index(12 // order.id)
    return (*state[:place], *state[place + 1 :])


OWN: tuple[Any, ...] = (Weighed, Shared, Least, Letters, Divided, Sum)
FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "no key": lambda o, own: o.distinct().aggregate(own()),
    "no key, named": lambda o, own: o.distinct().aggregate(n=own(), c=Count()),
    "key": lambda o, own: o.group_by(lambda o: o.customer).aggregate(Count(), own()),
    "named": lambda o, own: o.group_by(lambda o: o.customer).aggregate(n=own()),
    "named in a fragment": lambda o, own: (
        o.distinct().group_by("customer").aggregate(n=own(), c=Count(), m=own())
    ),
}


def _order(id: int, customer: int, tag: str | None = "a") -> Order:
    return Order(id, customer, 0.5, tag)


STEPS: tuple[tuple[list[Order], list[Order]], ...] = (
    ([_order(1, 1), _order(5, 2), _order(7, 1, "bb")], []),
    ([_order(3, 1), _order(12, 2)], []),
    ([_order(4, 1), _order(0, 0, None)], []),
    ([_order(3, 2), _order(3, 2), _order(2, 2, None)], [_order(5, 2)]),
    ([_order(-8, 1)], [_order(3, 1)]),
    ([], [_order(3, 2), _order(12, 2), _order(0, 0, None)]),
    ([_order(0, 2), _order(12, 3)], [_order(3, 2), _order(2, 2, None)]),
    ([], [_order(1, 1), _order(7, 1, "bb"), _order(4, 1), _order(-8, 1)]),
    ([_order(3, 1)], [_order(0, 2), _order(12, 3)]),
    ([], [_order(3, 1)]),
)


def _play(offload: Any, form: str, own: Any, policy: Literal["drop", "null"]) -> None:
    with Database(offload=offload) as db, Database() as other:
        views, tables = [], []
        for each in (db, other):
            tables.append(each.table(Order, name="orders"))
            views.append(FORMS[form](tables[-1], own).materialize("own", on_error=policy))
        views[0].offload()
        assert all(status.where is not None for status in db.offload_status())
        seen = 0
        for added, removed in STEPS:
            for each, table in zip((db, other), tables, strict=True):
                with each.transaction():
                    table.add_all(added)
                    table.remove_all(removed)
            assert Counter(views[0]) == Counter(views[1])
            assert Counter(views[0].errors) == Counter(views[1].errors)
            views[0].verify()
            views[0].errors.verify()
            seen += len(views[1].errors)
        assert seen


@pytest.mark.quick
def test_a_named_group_of_which_an_own_aggregate_raises_goes_by_its_policy(offload: Any) -> None:
    _play(offload, "named", Weighed, "null")


@pytest.mark.parametrize("policy", ["drop", "null"])
@pytest.mark.parametrize("own", OWN)
@pytest.mark.parametrize("form", FORMS)
def test_own_aggregates_that_raise_go_by_their_policy(
    offload: Any, form: str, own: Any, policy: Any
) -> None:
    _play(offload, form, own, policy)


@pytest.mark.parametrize("policy", ["drop", "null"])
@pytest.mark.parametrize("own", OWN if TIMES else OWN[1:4:2])
@pytest.mark.parametrize("form", FORMS if TIMES else ["no key", "named in a fragment"])
def test_own_aggregates_that_raise_in_jobs_go_by_their_policy(
    offload: Any, form: str, own: Any, policy: Any
) -> None:
    with way(is_job=True):
        _play(offload, form, own, policy)

"""Corners that the scenarios do not reach: identity, keys, captures, NaN, time of evaluation."""

from __future__ import annotations

import itertools
import operator
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from operator import contains
from typing import Any

import pytest

from reactive import (
    Aggregate,
    Count,
    Database,
    Min,
    PlanError,
    Relation,
    StaleCaptureWarning,
    Sum,
    Table,
    TableError,
    TransactionError,
    VerificationError,
    View,
)
from reactive.api.aggregates import Aggregation
from reactive.engine.transactions.transaction import Transaction
from tests.scenarios.rows import A, Item


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    state: str


@contextmanager
def stale_warnings() -> Iterator[list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", StaleCaptureWarning)
        yield caught


# Keyed tables.


def orders() -> Table[Order]:
    return Database().table(Order, name="orders", key="id")


def test_a_keyed_table_finds_rows_by_their_key() -> None:
    table = orders()
    table.add(Order(1, "new"))
    keys: list[Any] = [1, 2]
    assert [key in table for key in keys] == [True, False]
    assert table[1] == table.get(1) == Order(1, "new")
    assert table.get(2) is None
    table.delete(1)
    assert len(table) == 0


def test_a_keyed_table_has_at_most_one_row_per_key() -> None:
    table = orders()
    table.add(Order(1, "new"))
    with pytest.raises(TableError):
        table.add(Order(1, "sent"))
    with pytest.raises(TableError):
        table.add_all([Order(2, "new"), Order(2, "sent")])
    assert list(table) == [Order(1, "new")]


def test_upsert_replaces_the_row_of_a_key_in_one_commit_as_an_update() -> None:
    table = orders()
    heard: list[Any] = []
    table.upsert(Order(1, "new"))
    with table.subscribe(heard.append):
        table.upsert(Order(1, "sent"))
        table.upsert(Order(1, "sent"))
    assert list(table) == [Order(1, "sent")]
    assert [delta.updated for delta in heard] == [((Order(1, "new"), Order(1, "sent")),)]


def test_a_keyed_table_is_put_back_when_a_transaction_fails() -> None:
    table = orders()
    table.add_all([Order(1, "new"), Order(2, "new")])
    view = table.select(lambda order: order.state).materialize()
    with pytest.raises(KeyError), Transaction(table._engine):
        table.upsert(Order(1, "sent"))
        table.delete(2)
        table.add(Order(2, "sent"))
        table.add(Order(3, "sent"))
        raise KeyError
    assert sorted(table, key=lambda order: order.id) == [Order(1, "new"), Order(2, "new")]
    assert sorted(view) == ["new", "new"]
    view.verify()


def test_a_key_may_swap_rows_in_one_statement() -> None:
    table = orders()
    table.add_all([Order(1, "new"), Order(2, "sent")])
    table.replace_all([Order(1, "sent"), Order(2, "new")])
    assert table[1] == Order(1, "sent")
    table.update(Order(1, "sent"), Order(1, "paid"))
    assert table[1] == Order(1, "paid")


def test_the_key_may_be_an_inherited_field() -> None:
    @dataclass(frozen=True)
    class Base:
        id: int

    @dataclass(frozen=True)
    class Child(Base):
        name: str

    table = Database().table(Child, key="id")
    table.upsert(Child(1, "a"))
    table.upsert(Child(1, "b"))
    assert list(table) == [Child(1, "b")]


def test_counting_a_foreign_value_in_a_keyed_table_gives_zero() -> None:
    table = orders()
    foreign: Any = "no order"
    assert table.count(foreign) == 0


# Row types.


def test_a_table_may_take_rows_of_a_union_of_types() -> None:
    union: Any = int | str
    table: Table[Any] = Database().table(union)
    table.add_all([1, "one"])
    assert len(table) == 2


# Rows that are equal, and not the same object.


def equal_to(row: Item) -> Item:
    return Item(row.group, row.value)


@pytest.mark.parametrize("in_transaction", [False, True])
def test_an_update_to_an_equal_row_leaves_no_state_behind(in_transaction: bool) -> None:
    db = Database()
    left, right = db.table(Item, name="left"), db.table(Item, name="right")
    view = left.join(right, left_key=lambda r: r.group, right_key=lambda r: r.group).materialize()
    empty = view.stats().rows
    left.add(A)
    if in_transaction:
        with db.transaction():
            left.update(A, equal_to(A))
    else:
        left.update(A, equal_to(A))
    right.add(A)
    left.remove(equal_to(A))
    assert list(view) == []
    right.remove(A)
    assert view.stats().rows == empty


def test_an_update_to_an_equal_row_is_no_commit() -> None:
    """`Database.version`: "The number of commits that changed a row"."""
    db = Database()
    table = db.table(Item)
    table.add(A)
    table.update(A, equal_to(A))
    assert db.version == 1


@pytest.mark.parametrize("method", ["join", "left_join", "full_join", "semi_join", "anti_join"])
def test_rows_keep_their_identity_through_any_transaction(method: str) -> None:
    db = Database()
    left, right = db.table(Item, name="left"), db.table(Item, name="right")
    view = getattr(left, method)(
        right, left_key=lambda r: r.group, right_key=lambda r: r.group
    ).materialize()
    empty = view.stats().rows
    right.add(A)
    left.add(A)
    with db.transaction():
        left.remove(equal_to(A))
        left.add(equal_to(A))
        left.add(equal_to(A))
        left.discard(equal_to(A))
        left.replace_all([equal_to(A), equal_to(A)])
    with pytest.raises(KeyError), db.transaction():
        left.clear()
        left.add(equal_to(A))
        raise KeyError
    view.verify()
    left.remove_all([equal_to(A), equal_to(A)])
    right.clear()
    assert view.stats().rows == empty


# Calls of callables: their times and arguments.


@pytest.mark.parametrize(
    "method", ["join", "left_join", "right_join", "full_join", "semi_join", "anti_join"]
)
@pytest.mark.parametrize("swap", [False, True])
def test_a_predicate_is_never_asked_about_rows_that_were_never_there_together(
    method: str, swap: bool
) -> None:
    """One transaction removes 1 on one side and adds 1 on the other; 1 and 1 never met."""
    db = Database()
    left, right = db.table(int, name="left"), db.table(int, name="right")
    met: list[tuple[int, int]] = []

    class Less:
        def __call__(self, a: int, b: int) -> bool:
            met.append((a, b))
            return a < b

    view = getattr(left, method)(right, on=Less()).materialize()
    leaves, comes = (right, left) if swap else (left, right)
    leaves.add(1)
    with db.transaction():
        leaves.remove(1)
        comes.add(1)
    assert met == []
    view.verify()


@pytest.mark.parametrize("when", ["materialize", "commit", "verify", "snapshot"])
def test_a_callable_cannot_change_tables_whenever_it_is_called(when: str) -> None:
    db = Database()
    table, log = db.table(int, name="table"), db.table(int, name="log")

    class Logs:
        silent = False

        def __call__(self, row: int) -> int:
            if not self.silent:
                log.add(row)
            return row

    logs = Logs()
    relation = table.select(logs)
    if when == "commit":
        view = relation.materialize()
        with pytest.raises(TransactionError):
            table.add(1)
        assert (list(table), list(view)) == ([], [])
        return
    logs.silent = True
    table.add(1)
    view = relation.materialize()
    logs.silent = False
    if when == "snapshot":
        view.close()  # which holds the rows that it would begin with
    with pytest.raises(TransactionError):
        if when == "materialize":
            relation.distinct().materialize()
        elif when == "verify":
            view.verify()
        else:
            relation.subscribe(print, snapshot=True).close()
    assert list(log) == []


def test_a_callable_cannot_close_the_database() -> None:
    db = Database()
    table = db.table(int)

    class Closes:
        def __call__(self, row: int) -> bool:
            db.close()
            return True

    view = table.where(Closes()).materialize()
    with pytest.raises(TransactionError):
        table.add(1)
    assert not view.closed


def test_a_rolled_back_transaction_is_no_flow_of_an_unstored_table() -> None:
    db = Database()
    table = db.table(int, stored=False)
    with pytest.raises(KeyError), db.transaction():
        table.add(1)
        raise KeyError
    view = table.materialize()
    table.add(2)
    assert list(view) == [2]


# Sharing: operators are one only if nothing can tell the callables apart.

LEAST = 0


class Above:
    """A predicate as a method that also reads a global."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def passes(self, row: int) -> bool:
        return row > LEAST and row > self.limit


def test_methods_of_different_objects_are_different_predicates() -> None:
    """A bound method is a new object at each access; its `id` says nothing once it is gone."""
    table = Database().table(int)
    table.add_all(range(10))
    objects = [Above(n) for n in range(9)]
    relations = [table.where(each.passes) for each in objects]
    views = [relation.materialize() for relation in relations]
    for n, view in enumerate(views):
        assert sorted(view) == list(range(n + 1, 10))


def test_aggregates_with_zeros_of_different_types_are_different() -> None:
    table = Database().table(int)
    table.add(3)
    of_int = table.aggregate(Aggregate(0, operator.add, operator.sub, repr)).materialize()
    of_float = table.aggregate(Aggregate(0.0, operator.add, operator.sub, repr)).materialize()
    assert (of_int.value, of_float.value) == ("3", "3.0")


def test_the_zero_of_an_aggregate_need_not_be_hashable() -> None:
    """States are values that are never changed in place; nothing says they are hashed."""
    table = Database().table(int)
    zero: list[int] = []
    latest: Aggregation[int, tuple[int, ...]] = Aggregate(
        zero,
        lambda state, row: [*state, row],
        lambda state, row: [kept for kept in state if kept != row],
        tuple,
    )
    view = table.aggregate(latest).materialize()
    table.add_all([1, 2])
    assert view.value == (1, 2)


def test_a_variable_that_is_assigned_later_tells_callables_apart() -> None:
    """Both lambdas have the same code; their closures later hold different values."""
    table = Database().table(int)
    table.add_all(range(8))

    def above(n: int) -> Relation[int]:
        relation = table.where(lambda row: row > limit)
        limit = n
        return relation

    relations = above(1), above(5)
    views = [relation.materialize() for relation in relations]
    assert [sorted(view) for view in views] == [[2, 3, 4, 5, 6, 7], [6, 7]]


def test_callables_that_differ_in_a_constant_only_are_different() -> None:
    table = Database().table(int)
    table.add(2)
    makers: tuple[Callable[[int], Any], ...] = (lambda n: n * 1, lambda n: n * 1.0)
    views = [table.select(maker).select(repr).materialize() for maker in makers]
    assert [view.value for view in views] == ["2", "2.0"]


# Captures.


def test_a_default_that_changes_is_noticed_as_a_capture_is() -> None:
    table = Database().table(int)
    allowed = {1}
    bound: Any = lambda n, ok=allowed: n in ok  # noqa: E731
    view = table.where(bound).materialize()
    allowed.add(2)
    with stale_warnings() as caught:
        table.add_all([1, 2])
    assert list(view) == [1]
    assert len(caught) == 1


def test_a_default_cannot_be_a_table() -> None:
    db = Database()
    table, other = db.table(int, name="table"), db.table(int, name="other")
    bound: Any = lambda n, other=other: n in other  # noqa: E731
    of_keyword: Any = lambda n, *, other=other: n in other  # noqa: E731
    for refused in (bound, of_keyword, lambda n: bound(n), partial(bound, other=other)):
        with pytest.raises(PlanError, match=r"reads 'other', which is a Table\n.*join it instead"):
            table.where(refused)


def test_an_argument_of_a_partial_cannot_be_a_table() -> None:
    db = Database()
    table, other = db.table(int, name="table"), db.table(int, name="other")
    is_other: Any = partial(contains, other)
    for refused in (is_other, lambda n: is_other(n), partial(lambda rows, n: n in rows, other)):
        with pytest.raises(PlanError, match="reads 'an argument', which is a Table"):
            table.where(refused)
    with pytest.raises(PlanError, match="reads 'other', which is a Table"):
        table.where(partial(lambda k, n: n + k in other, 1))
    named: Any = lambda n: n in other  # noqa: E731
    table.add_all([1, 2])
    view = table.where(named).materialize()
    other.add(2)
    assert list(view) == [2]


def test_what_the_callables_of_an_aggregate_capture_is_watched_too() -> None:
    table = Database().table(int)
    factor = 2
    view: View[int] = table.aggregate(
        Aggregate(0, lambda s, n: s + factor * n, lambda s, n: s - factor * n)
    ).materialize()
    factor = 3
    with stale_warnings() as caught:
        table.add(1)
    assert view.value == 2
    assert len(caught) == 1


def test_each_new_relation_warns_of_its_own_stale_capture() -> None:
    """Test also a callable with the `id` and captured name of a freed one."""
    table = Database().table(int)
    warned = 0
    for n in range(20):
        limit = n
        view = table.where(lambda row: row > limit).materialize()
        limit = n + 100
        with stale_warnings() as caught:
            table.add(n)
        warned += len(caught)
        view.close()
        del view
    assert warned == 20


def test_a_capture_that_was_replaced_by_an_equal_value_is_not_stale() -> None:
    table = Database().table(int)
    allowed = frozenset({1, 2})
    view = table.where(lambda n: n in allowed).materialize()
    allowed = frozenset({2, 1})
    with stale_warnings() as caught:
        table.add(1)
    assert list(view) == [1]
    assert caught == []


# NaN, and values that cannot be compared.


class Reading(float):
    """A float that is not of the class `float`, as the numbers of array libraries are."""


NANS = {"float": float, "subclass": Reading, "decimal": Decimal}


@pytest.mark.parametrize("kind", NANS.values(), ids=NANS)
def test_a_nan_that_is_computed_anew_is_found_again(kind: Callable[[str], Any]) -> None:
    table = Database().table(int)
    view = table.select(lambda n: kind("nan")).materialize()
    table.add_all([1, 2])
    table.remove(1)
    assert len(view.zset()) == 1
    table.remove(2)
    assert list(view.zset().items()) == []
    view.verify()


@pytest.mark.parametrize("kind", NANS.values(), ids=NANS)
def test_nan_keys_form_one_group(kind: Callable[[str], Any]) -> None:
    table = Database().table(int)
    view = table.group_by(lambda n: kind("nan")).aggregate(Count()).materialize()
    table.add_all([1, 2])
    assert [count for _, count in view] == [2]
    table.clear()
    assert list(view.zset().items()) == []


@pytest.mark.parametrize("kind", NANS.values(), ids=NANS)
def test_nan_matches_nothing(kind: Callable[[str], Any]) -> None:
    db = Database()
    left, right = db.table(int, name="left"), db.table(int, name="right")
    nan = kind("nan")
    view = left.full_join(right, left_key=lambda n: nan, right_key=lambda n: nan).materialize()
    left.add(1)
    right.add(1)
    assert sorted(view, key=str) == [(1, None), (None, 1)]
    view.verify()


@pytest.mark.parametrize("kind", NANS.values(), ids=NANS)
def test_nan_comes_after_everything(kind: Callable[[str], Any]) -> None:
    table = Database().table(str)
    least = table.aggregate(Min(kind)).materialize()
    view = table.order_by(kind).materialize()
    table.add_all(["2", "nan", "1"])
    assert list(view) == ["1", "2", "nan"]
    assert least.value == kind("1")


def test_ties_of_rows_that_only_sometimes_compare_have_one_order() -> None:
    """Dates with and without a time zone do not compare with each other."""
    rows = [datetime(2020, 1, 1), datetime(2021, 1, 1), datetime(2020, 6, 1, tzinfo=UTC)]
    for coming, going in itertools.product(itertools.permutations(rows), repeat=2):
        table = Database().table(datetime)
        view = table.order_by(lambda row: 0).materialize()
        for row in coming:
            table.add(row)
        for row in going:
            table.remove(row)
        assert list(view) == []


# The user's exceptions.


class Stops:
    """Raise the exception that ends a generator."""

    def __call__(self, *rows: Any) -> Any:
        raise StopIteration("mine")


RAISING: dict[str, Callable[[Table[int]], Relation[*tuple[Any, ...]]]] = {
    "where": lambda t: t.where(Stops()),
    "select": lambda t: t.select(Stops()),
    "select_many": lambda t: t.select_many(Stops()),
    "unnest": lambda t: t.unnest(Stops()),
    "order_by": lambda t: t.order_by(Stops()),
    "group_by": lambda t: t.group_by(Stops()).aggregate(Count()),
    "sum": lambda t: t.aggregate(Sum(Stops())),
    "key": lambda t: t.join(t, left_key=Stops(), right_key=Stops()),
    "join": lambda t: t.join(t, on=Stops()),
    "full_join": lambda t: t.full_join(t, on=Stops()),
    "semi_join": lambda t: t.semi_join(t, on=Stops()),
    "anti_join": lambda t: t.anti_join(t, on=Stops()),
}


@pytest.mark.parametrize("kind", RAISING)
def test_a_stop_iteration_of_the_user_stays_itself(kind: str) -> None:
    table = Database().table(int)
    view = RAISING[kind](table).materialize()
    before = list(view)
    with pytest.raises(StopIteration, match="mine"):
        table.add(1)
    assert (list(table), list(view)) == ([], before)


# Work.


def test_the_work_of_making_a_view_grows_with_its_operators_not_with_paths_to_them() -> None:
    """A relation that is used twice at each of n levels has n operators, and 2**n paths."""

    def calls(levels: int) -> int:
        relation: Relation[int] = Database().table(int)
        for _ in range(levels):
            relation = relation | relation.select(lambda n: n + 1)
        counted = 0

        def count(frame: object, event: str, argument: object) -> None:
            nonlocal counted
            counted += event == "call"

        sys.setprofile(count)
        try:
            view = relation.materialize()
        finally:
            sys.setprofile(None)
        assert len(view) == 0
        return counted

    assert calls(12) < 4 * calls(6)


# Verification must be able to fail.


@dataclass(frozen=True)
class Point:
    """Rows without an order of their own."""

    x: int
    y: int


class Moody:
    """A callable that is not deterministic."""

    sign = 1

    def __call__(self, point: Point) -> int:
        return self.sign * point.x


def test_verification_sees_that_an_ordered_view_has_other_rows() -> None:
    table = Database().table(Point)
    moody = Moody()
    view = table.where(lambda p: moody(p) > 0).order_by(lambda p: p.y).materialize()
    table.add_all([Point(1, 0), Point(-1, 0)])
    moody.sign = -1
    with pytest.raises(VerificationError):
        view.verify()


def test_verification_sees_that_an_ordered_view_is_out_of_order() -> None:
    table = Database().table(Point)
    moody = Moody()
    view = table.order_by(moody).materialize()
    table.add_all([Point(1, 0), Point(2, 0)])
    moody.sign = -1
    with pytest.raises(VerificationError):
        view.verify()


# Conditions that are false as objects.


def test_a_callable_that_is_false_as_an_object_is_still_a_condition() -> None:
    class Never:
        def __len__(self) -> int:
            return 0

        def __call__(self, a: int, b: int) -> bool:
            return False

    db = Database()
    left, right = db.table(int, name="left"), db.table(int, name="right")
    left.add(1)
    right.add(1)
    assert list(left.join(right, on=Never()).materialize()) == []


def test_sums_go_back_to_the_type_of_what_is_left() -> None:
    table: Table[Any] = Database().table(object)
    view = table.aggregate(Sum(lambda n: n)).materialize()
    table.add_all([1, 2.5])
    table.remove(2.5)
    assert repr(view.value) == "1"
    with pytest.raises(TypeError):
        table.add_all([2.5, Decimal(3)])
    assert repr(view.value) == "1"

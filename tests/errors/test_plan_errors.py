"""Queries that cannot mean anything, refused when the relation is made."""

from __future__ import annotations

import datetime
import random
import time
from collections.abc import Callable
from datetime import datetime as moment
from functools import partial
from operator import contains
from random import random as dice
from typing import Any, TypeVar

import pytest

from reactive import Count, Database, PlanError, Relation, Sum, Table, View
from tests.errors.golden import place, refused

seen = 0


def numbers(name: str = "numbers", db: Database | None = None) -> Table[Any]:
    return (db or Database()).table(int, name=name)


def two_tables() -> tuple[Table[Any], Table[Any]]:
    db = Database()
    return numbers("left", db), numbers("right", db)


# Parameters.


def test_a_callable_with_too_few_parameters_is_named_with_file_and_line() -> None:
    left, right = two_tables()

    def positive(a: int) -> bool:
        return a > 0

    wrong: Any = positive
    with refused(
        """
        PlanError: where calls its callable with 2 arguments, but positive (<positive>) \
takes 1: (a: 'int') -> 'bool'
          one argument for each binding of the relation
        """,
        positive=place(positive),
    ):
        left.join(right).where(wrong)


def test_a_lambda_with_too_many_parameters_is_named_with_file_and_line() -> None:
    wrong: Any = lambda a, b: a  # noqa: E731
    with refused(
        """
        PlanError: select calls its callable with 1 argument, but <lambda> (<wrong>) takes 2: (a, b)
          one argument for each binding of the relation
        """,
        wrong=place(wrong),
    ):
        numbers().select(wrong)


ONE_ARGUMENT: dict[str, Callable[[Any, Any], Any]] = {
    "where": lambda t, f: t.where(f),
    "select": lambda t, f: t.select(f),
    "select_many": lambda t, f: t.select_many(f),
    "unnest": lambda t, f: t.unnest(f),
    "order_by": lambda t, f: t.order_by(f),
    "group_by": lambda t, f: t.group_by(f),
    "Sum": lambda t, f: t.aggregate(Sum(f)),
    "the left key of join": lambda t, f: t.join(t, left_key=f, right_key=abs),
    "the right key of semi_join": lambda t, f: t.semi_join(t, left_key=abs, right_key=f),
    "the key of table": lambda t, f: Database().table(int, key=f),
}
TWO_ARGUMENTS: dict[str, Callable[[Any, Any], Any]] = {
    "join": lambda t, f: t.join(t, on=f),
    "left_join": lambda t, f: t.left_join(t, on=f),
    "right_join": lambda t, f: t.right_join(t, on=f),
    "full_join": lambda t, f: t.full_join(t, on=f),
    "semi_join": lambda t, f: t.semi_join(t, on=f),
    "anti_join": lambda t, f: t.anti_join(t, on=f),
}


@pytest.mark.parametrize("role", [*ONE_ARGUMENT, *TWO_ARGUMENTS])
def test_every_role_of_a_callable_checks_its_parameters(role: str) -> None:
    wrong: Any = lambda a, b, c: a  # noqa: E731
    times = "1 argument" if role in ONE_ARGUMENT else "2 arguments"
    with refused(
        f"""
        PlanError: {role} calls its callable with {times}, but <lambda> (<wrong>) takes 3: (a, b, c)
          one argument for each binding of the relation
        """,
        wrong=place(wrong),
    ):
        {**ONE_ARGUMENT, **TWO_ARGUMENTS}[role](numbers(), wrong)


@pytest.mark.parametrize("role", [*ONE_ARGUMENT, *TWO_ARGUMENTS])
def test_every_role_refuses_what_is_not_callable(role: str) -> None:
    with refused(
        f"""
        PlanError: {role} takes a callable, not 7
          write a lambda with one parameter per binding
        """
    ):
        {**ONE_ARGUMENT, **TWO_ARGUMENTS}[role](numbers(), 7)


@pytest.mark.parametrize("role", TWO_ARGUMENTS)
def test_a_false_value_is_not_taken_for_no_condition(role: str) -> None:
    with refused(
        f"""
        PlanError: {role} takes a callable, not False
          write a lambda with one parameter per binding
        """
    ):
        TWO_ARGUMENTS[role](numbers(), False)


# Aggregates.


def test_an_aggregate_that_was_not_called_is_refused() -> None:
    wrong: Any = Count
    with refused(
        """
        PlanError: aggregate takes aggregates, not <class 'reactive.api.aggregates.Count'>
          write Count(...)
        """
    ):
        numbers().aggregate(wrong)


def test_a_value_that_is_no_aggregate_is_refused() -> None:
    wrong: Any = sum
    with refused(
        """
        PlanError: aggregate takes aggregates, not <built-in function sum>
          such as Count(), Sum(lambda row: ...), or your own Aggregate or Monoid
        """
    ):
        numbers().group_by(abs).aggregate(wrong)


def test_a_class_that_is_no_aggregate_gets_no_advice_to_call_it() -> None:
    wrong: Any = int
    with refused(
        """
        PlanError: aggregate takes aggregates, not <class 'int'>
          such as Count(), Sum(lambda row: ...), or your own Aggregate or Monoid
        """
    ):
        numbers().aggregate(wrong)


def test_no_aggregates_are_refused() -> None:
    with refused(
        """
        PlanError: aggregate takes at least one aggregate
          for the keys alone: select(key).distinct()
        """
    ):
        numbers().group_by(abs).aggregate()


# Two relations.


@pytest.mark.parametrize(
    "method",
    [
        *("join", "left_join", "right_join", "full_join", "semi_join", "anti_join"),
        *("union", "difference", "intersection"),
        *("union_all", "difference_all", "intersection_all"),
    ],
)
def test_relations_of_two_databases_cannot_meet(method: str) -> None:
    with refused(
        f"""
        PlanError: {method} of relations of two databases
          a query reads the tables of one; subscribe to the other and copy what it needs
        """
    ):
        getattr(numbers(), method)(numbers())


@pytest.mark.parametrize(
    "method",
    [
        *("union", "difference", "intersection"),
        *("union_all", "difference_all", "intersection_all"),
    ],
)
def test_a_set_operation_on_different_numbers_of_bindings_is_refused(method: str) -> None:
    left, right = two_tables()
    with refused(
        f"""
        PlanError: {method} of relations with 2 and 1 bindings
          select() what both have in common first
        """
    ):
        getattr(left.join(right), method)(left)


def test_a_closed_view_is_no_relation() -> None:
    left, right = two_tables()
    view = right.materialize("numbers")
    view.close()
    with refused(
        """
        PlanError: view 'numbers' is closed
          make the query of its .relation
        """
    ):
        left.union(view)


def test_a_list_is_no_relation() -> None:
    rows: Any = [1, 2]
    with refused(
        """
        PlanError: join takes a relation, not list
          put the rows in a table
        """
    ):
        numbers().join(rows)


@pytest.mark.parametrize("method", TWO_ARGUMENTS)
@pytest.mark.parametrize("side", ["left_key", "right_key"])
def test_one_key_without_the_other_is_refused(method: str, side: str) -> None:
    left, right = two_tables()
    missing = {"left_key": "right_key", "right_key": "left_key"}[side]
    with refused(
        f"""
        PlanError: {method} has a {side} but no {missing}
          rows match if the two keys are equal
        """
    ):
        getattr(left, method)(right, **{side: abs})


# Order.


def test_a_second_limit_is_refused() -> None:
    limited = numbers().order_by(abs).limit(3)
    with refused(
        """
        PlanError: limit of a relation that is limited already
          order_by() it again
        """
    ):
        limited.limit(2)


@pytest.mark.parametrize(("n", "offset"), [(-1, 0), (1, -1)])
def test_a_negative_limit_is_refused(n: int, offset: int) -> None:
    with refused(
        f"""
        PlanError: limit takes counts of rows, from 0 on, not {min(n, offset)}
        """
    ):
        numbers().order_by(abs).limit(n, offset)


@pytest.mark.parametrize("n", [1.5, "3", None])
def test_a_limit_that_is_no_integer_is_refused(n: Any) -> None:
    with refused(
        f"""
        PlanError: limit takes counts of rows, from 0 on, not {n!r}
        """
    ):
        numbers().order_by(abs).limit(n)


def test_a_relation_has_no_rows_to_iterate_over() -> None:
    relation = numbers().where(abs)
    text = """
        PlanError: a relation is a query and has no rows to iterate over
          materialize() it first; the view has them
        """
    with refused(text):
        list(relation)
    with refused(text):
        assert 1 in relation


# Impure callables.


def _counts(row: int) -> bool:
    global seen
    seen += 1
    return seen > row


def _impure() -> dict[str, tuple[Callable[[int], Any], str]]:
    calls = 0

    def nonlocally(row: int) -> bool:
        nonlocal calls
        calls += 1
        return calls > row

    generator = random.Random(7)
    return {
        "random": (lambda row: random.random() < 0.5, "it uses random.random"),
        "imported_random": (lambda row: dice() < 0.5, "it uses dice"),
        "generator": (lambda row: generator.random() < row, "it uses generator.random"),
        "time": (lambda row: time.time() > row, "it uses time.time"),
        "print": (lambda row: print(row), "it uses print"),
        "open": (lambda row: open("rows.txt").read(), "it uses open"),  # noqa: PTH123
        "now": (lambda row: datetime.datetime.now(), "it uses datetime.datetime.now"),
        "imported_now": (lambda row: moment.now(), "it uses moment.now"),
        "today": (lambda row: datetime.date.today(), "it uses datetime.date.today"),
        "in_a_comprehension": (lambda row: [print(n) for n in range(row)], "it uses print"),
        "global_write": (_counts, "it assigns the captured variable 'seen'"),
        "nonlocal_write": (nonlocally, "it assigns the captured variable 'calls'"),
    }


@pytest.mark.parametrize("kind", _impure())
def test_an_impure_callable_is_refused(kind: str) -> None:
    function, reason = _impure()[kind]
    name = function.__name__
    instead = "put such values into the rows"
    if reason.endswith((".now", ".today", ".time")):
        instead = "write now(), the time of the database"
    with refused(
        f"""
        PlanError: where: {name} (<place>) cannot be used in a query: {reason}
          a callable must give the same answer each time; {instead}
        """,
        place=place(function),
    ):
        numbers().where(function)


def test_an_impure_builtin_is_refused() -> None:
    with refused(
        """
        PlanError: select: print cannot be used in a query: it is builtins.print
          a callable must give the same answer each time; put such values into the rows
        """
    ):
        numbers().select(print)


# Tables and views on the side.


def test_a_callable_that_reads_a_table_follows_it() -> None:
    left, right = two_tables()
    view = left.where(lambda row: row in right).materialize()
    left.add_all([1, 2])
    assert list(view) == []
    right.add(2)
    assert list(view) == [2]
    right.update(2, 1)
    assert list(view) == [1]
    view.verify()


def test_a_callable_that_reads_a_view_follows_it_in_every_role() -> None:
    left, right = two_tables()
    counted: View[int] = right.materialize()
    relation: Relation[int] = right.where(lambda n: n > 1)
    groups = left.group_by(lambda row: counted.count(row)).aggregate(Count()).materialize()
    flags = left.select(lambda row: row in list(relation)).materialize()
    total = left.aggregate(Sum(lambda row: counted.count(row))).materialize()
    left.add_all([1, 2])
    assert (sorted(groups), sorted(flags), total.value) == ([(0, 2)], [False, False], 0)
    right.add_all([1, 2, 2])
    assert (sorted(groups), sorted(flags), total.value) == (
        [(1, 1), (2, 1)],
        [False, True],
        3,
    )
    right.replace_all([1])
    assert (sorted(groups), sorted(flags), total.value) == ([(0, 1), (1, 1)], [False, False], 1)


def test_a_callable_that_cannot_be_read_may_not_read_a_table() -> None:
    left, right = two_tables()

    def loops(row: int) -> bool:
        for each in right:  # noqa: SIM110  # a loop is not read
            if each == row:
                return True
        return False

    with refused(
        f"""
        PlanError: where: loops (<loops>) reads relations, and cannot be read: a 'for' statement \
at line {loops.__code__.co_firstlineno + 1}
          write it as one expression, or as names, choices and returns
        """,
        loops=place(loops),
    ):
        left.where(loops)
    names: dict[str, Any] = {"right": right}
    exec("def unseen(row): return row in right", names)
    with refused(
        """
        PlanError: select: unseen (<string>:1) reads relations, and cannot be read: there is no \
source text
          write it in a file, or register the text in linecache
        """,
        string="<string>",
    ):
        left.select(names["unseen"])


def test_a_table_that_a_callable_has_without_naming_it_is_refused() -> None:
    left, right = two_tables()
    bound: Any = lambda row, rows=right: row in rows  # noqa: E731
    with refused(
        """
        PlanError: where: <lambda> (<bound>) reads 'rows', which is a Table
          a query would not notice its changes; join it instead
        """,
        bound=place(bound),
    ):
        left.where(bound)
    with refused(
        """
        PlanError: Sum: partial reads 'an argument', which is a View
          a query would not notice its changes; join it instead
        """
    ):
        left.aggregate(Sum(partial(contains, right.materialize())))
    with refused(
        """
        PlanError: where: count (<count>) reads 'self', which is a View
          a query would not notice its changes; join it instead
        """,
        count=place(View.count),
    ):
        left.where(right.materialize().count)


def test_a_callable_of_what_is_never_read_may_not_read_a_view() -> None:
    left, right = two_tables()
    view: View[int] = right.materialize()
    reads: Any = lambda key, rows: [view.count(key)]  # noqa: E731
    with refused(
        """
        PlanError: reduce: <lambda> (<reads>) reads 'view', which is a View
          a query would not notice its changes; join it instead
        """,
        reads=place(reads),
    ):
        left.group_by(abs).reduce(reads)


def test_a_callable_that_reads_a_table_of_another_database_is_refused() -> None:
    left, other = numbers("left"), numbers("other")
    with refused(
        """
        PlanError: table 'other' is of another database
          a query reads the tables of one; subscribe to the other and copy what it needs
        """
    ):
        left.where(lambda row: row in other)


# Observers.


def test_an_observer_without_methods_is_refused() -> None:
    wrong: Any = print
    with refused(
        """
        PlanError: observe takes an object with a method added, removed or updated, not \
<built-in function print>
          for a function of one argument use subscribe()
        """
    ):
        numbers().observe(wrong)


def test_a_callback_that_cannot_be_called_with_a_delta_is_refused() -> None:
    wrong: Any = 5
    with refused(
        """
        PlanError: subscribe takes a callable, delta -> anything, not 5
          observe() takes an object with methods added, removed and updated
        """
    ):
        numbers().subscribe(wrong)
    without: Any = lambda: None  # noqa: E731
    with refused(
        """
        PlanError: subscribe calls its callable with one argument, the delta: <lambda> (<without>) \
takes ()
          use `lambda delta: ...`
        """,
        without=place(without),
    ):
        numbers().subscribe(without)
    callbacks: list[Any] = [[].append, print, dict[Any, Any]().update]
    held = [numbers().subscribe(callback) for callback in callbacks]
    assert all(subscription.error is None for subscription in held)


@pytest.mark.parametrize("wrong", [(1, 2), 5, None, len, [int]])
def test_a_table_of_what_is_no_class_is_refused(wrong: Any) -> None:
    with pytest.raises(PlanError, match="a table takes the class of its rows, not ") as caught:
        Database().table(wrong)
    assert f"write db.table({type(wrong).__name__}), and add" in str(caught.value)


def test_a_table_of_generic_lists_is_refused() -> None:
    rows: Any = list[int]
    with refused(
        """
        PlanError: rows of list have no hash, so that no table can find them
          use a frozen dataclass, or tuples
        """
    ):
        Database().table(rows)


@pytest.mark.parametrize("right", [tuple[int, str], int | None, Any, TypeVar("T"), object])
def test_a_table_of_an_annotation_is_one(right: Any) -> None:
    table = Database().table(right, name="rows")
    assert list(table) == []


def test_a_name_that_is_no_text_is_refused() -> None:
    wrong: Any = 5
    with refused("PlanError: the name of a table is a text, not 5\n  write name='...'"):
        Database().table(int, name=wrong)
    with refused("PlanError: the name of a view is a text, not 5\n  write name='...'"):
        numbers().materialize(wrong)

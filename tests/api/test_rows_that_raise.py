"""Rows that raise: left out with `on_error="drop"`, None with `"null"`, listed in `view.errors`."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from reactive import (
    Aggregate,
    Avg,
    Collect,
    Count,
    CountDistinct,
    Database,
    Max,
    Min,
    PlanError,
    Raised,
    RowError,
    Sum,
    TableError,
    asc,
    fixpoint,
    iterate,
)
from tests.borders.offload.elsewhere import Elsewhere

Rel = Any
OnError = Literal["raise", "null", "drop"]
POLICIES: tuple[OnError, ...] = ("drop", "null")


@dataclass(frozen=True, slots=True)
class Order:
    town: str
    text: Any


@dataclass(frozen=True, slots=True)
class Declared:
    town: str
    text: str | None


BONN, KOELN, ODD, NONE = (
    Order("Bonn", "7"),
    Order("Köln", "3"),
    Order("Bonn", "x"),
    Order("Köln", None),
)
ROWS = [BONN, KOELN, ODD, NONE]
OTHERS = [("a", 7), ("b", 5)]


@pytest.fixture(params=[True, False], ids=["optimized", "as written"])
def db(request: pytest.FixtureRequest) -> Database:
    return Database(optimize=request.param)


def tables(db: Database) -> tuple[Any, Any]:
    return db.table(Order, name="orders"), db.table(tuple, name="others")


def number(order: Order) -> int:
    return int(order.text)


class Noted:
    """The number of an order; it records the orders that it is computed for."""

    def __init__(self) -> None:
        self.asked: list[Order] = []

    def __call__(self, order: Order) -> int:
        self.asked.append(order)
        return int(order.text)


QUERIES: dict[str, tuple[Callable[[Rel, Rel], Rel], list[Any], list[Any], int]] = {
    "where": (lambda t, u: t.where(lambda o: int(o.text) > 5), [BONN], [BONN], 2),
    "where, asked in order": (
        lambda t, u: t.where(lambda o: o.town == "Bonn" and int(o.text) > 5),
        [BONN],
        [BONN],
        1,
    ),
    "select": (lambda t, u: t.select(lambda o: int(o.text)), [7, 3], [7, 3, None, None], 2),
    "select of no hash": (
        lambda t, u: t.select(lambda o: o.text or [o.town]),
        ["7", "3", "x"],
        ["7", "3", "x", None],
        1,
    ),
    "select_many": (
        lambda t, u: t.select_many(lambda o: list(o.text)),
        ["7", "3", "x"],
        ["7", "3", "x"],
        1,
    ),
    "select_many, half way": (
        lambda t, u: t.select_many(lambda o: (int(c) for c in ["1", o.text])),
        [1, 7, 1, 3],
        [1, 7, 1, 3],
        2,
    ),
    "unnest": (
        lambda t, u: t.unnest(lambda o: range(int(o.text) - 2)),
        [(KOELN, 0)] + [(BONN, n) for n in range(5)],
        [(KOELN, 0)] + [(BONN, n) for n in range(5)],
        2,
    ),
    "join by keys": (
        lambda t, u: t.join(u, left_key=number, right_key=lambda r: r[1]),
        [(BONN, OTHERS[0])],
        [(BONN, OTHERS[0])],
        2,
    ),
    "join on a condition": (
        lambda t, u: t.join(u, on=lambda o, r: int(o.text) == r[1]),
        [(BONN, OTHERS[0])],
        [(BONN, OTHERS[0])],
        4,
    ),
    "left_join by keys": (
        lambda t, u: t.left_join(u, left_key=number, right_key=lambda r: r[1]),
        [(BONN, OTHERS[0]), (KOELN, None)],
        [(BONN, OTHERS[0]), (KOELN, None)],
        2,
    ),
    "left_join on a condition": (
        lambda t, u: t.left_join(u, on=lambda o, r: int(o.text) == r[1]),
        [(BONN, OTHERS[0]), (KOELN, None), (ODD, None), (NONE, None)],
        [(BONN, OTHERS[0]), (KOELN, None), (ODD, None), (NONE, None)],
        4,
    ),
    "right side of a join": (
        lambda t, u: u.left_join(t, left_key=lambda r: r[1], right_key=number),
        [(OTHERS[0], BONN), (OTHERS[1], None)],
        [(OTHERS[0], BONN), (OTHERS[1], None)],
        2,
    ),
    "anti_join by keys": (
        lambda t, u: t.anti_join(u, left_key=number, right_key=lambda r: r[1]),
        [KOELN],
        [KOELN],
        2,
    ),
    "semi_join": (
        lambda t, u: t.semi_join(u, on=lambda o, r: int(o.text) >= r[1]),
        [BONN],
        [BONN],
        4,
    ),
    "group": (
        lambda t, u: t.group_by(number).aggregate(Count()),
        [(7, 1), (3, 1)],
        [(7, 1), (3, 1)],
        2,
    ),
    "group by what has no hash": (
        lambda t, u: t.group_by(lambda o: [o.text] if o.text == "x" else o.town).aggregate(Count()),
        [("Bonn", 1), ("Köln", 2)],
        [("Bonn", 1), ("Köln", 2)],
        1,
    ),
    "aggregates": (
        lambda t, u: t.aggregate(
            *(Count(), Sum(number), Avg(number), Min(number), Max(number)),
            *(CountDistinct(number), Collect(lambda o: o.town)),
        ).select(lambda *row: (*row[:-1], sorted(row[-1])[-1])),
        [(2, 10, 5, 3, 7, 2, "Köln")],
        [(4, 10, 5, 3, 7, 2, "Köln")],
        2,
    ),
    "sum of what has none": (
        lambda t, u: t.group_by("town").aggregate(Sum(lambda o: o.text if o.text == "x" else 1)),
        [("Bonn", 1), ("Köln", 2)],
        [("Bonn", 1), ("Köln", 2)],
        1,
    ),
    "an aggregate of one's own": (
        lambda t, u: t.aggregate(Aggregate(0, int.__add__, int.__sub__, of=number), Count()),
        [(10, 2)],
        [(10, 2)],
        2,
    ),
    "reduce": (
        lambda t, u: t.group_by(number).reduce(lambda key, rows: [len(rows)]),
        [(7, 1), (3, 1)],
        [(7, 1), (3, 1)],
        2,
    ),
    "top": (lambda t, u: t.group_by("town").top(1, by=number), [BONN, KOELN], [BONN, KOELN], 2),
    "each": (
        lambda t, u: t.group_by("town").each(lambda g: g.group_by(number).aggregate(Count())),
        [("Bonn", 7, 1), ("Köln", 3, 1)],
        [("Bonn", 7, 1), ("Köln", 3, 1)],
        2,
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", QUERIES)
def test_what_raises_goes_by_the_policy(db: Database, name: str, policy: OnError) -> None:
    query, dropped, nulled, errors = QUERIES[name]
    orders, others = tables(db)
    view = query(orders, others).materialize(on_error=policy)
    others.add_all(OTHERS)
    for row in ROWS:
        orders.add(row)
        view.verify()
    assert view == (dropped if policy == "drop" else nulled)
    assert len(view.errors) == errors
    view.errors.verify()
    orders.remove_all([ODD, NONE])
    assert list(view.errors) == []
    assert view == list(_of_the_rest(query))


def _of_the_rest(query: Callable[[Rel, Rel], Rel]) -> Any:
    orders, others = tables(Database())
    orders.add_all([BONN, KOELN])
    others.add_all(OTHERS)
    return query(orders, others).materialize()


def test_an_order_leaves_rows_out_by_either_policy(db: Database) -> None:
    orders, _ = tables(db)
    dropped = orders.order_by(number).materialize(on_error="drop")
    nulled = orders.order_by(asc(number), descending=False).materialize(on_error="null")
    orders.add_all(ROWS)
    assert list(dropped) == [KOELN, BONN] and dropped[0] is KOELN
    assert list(nulled) == [KOELN, BONN]
    dropped.verify(), nulled.verify()


def test_a_row_is_absent_until_it_is_changed(db: Database) -> None:
    orders, _ = tables(db)
    total = orders.aggregate(Sum(number)).materialize(on_error="drop")
    orders.add_all(ROWS)
    orders.update(ODD, Order("Bonn", "10"))
    assert total.value == 20
    assert [error.row for error in total.errors] == [NONE]
    orders.update(BONN, ODD)
    assert total.value == 13
    assert {error.row for error in total.errors} == {ODD, NONE}


def test_an_error_is_a_value(db: Database) -> None:
    orders, _ = tables(db)
    view = orders.select(lambda o: int(o.text)).materialize("numbers", on_error="drop")
    orders.add_all([ODD, ODD])
    raised = Raised("ValueError", "invalid literal for int() with base 10: 'x'")
    assert view.errors.items() == [(RowError("select int(o.text)", ODD, raised), 2)]
    assert str(raised) == "ValueError: invalid literal for int() with base 10: 'x'"
    assert str(Raised("KeyError", "")) == "KeyError"
    assert view.errors.name == "errors of numbers"


def test_errors_are_told_as_changes(db: Database) -> None:
    orders, _ = tables(db)
    view = orders.select(lambda o: int(o.text)).materialize(on_error="drop")
    told: list[Any] = []
    watching = view.errors.subscribe(lambda d: told.append((len(d.added), len(d.removed))))
    orders.add(ODD)
    orders.add(BONN)
    orders.remove(ODD)
    assert told == [(1, 0), (0, 1)]
    watching.close()


def test_errors_are_a_relation(db: Database) -> None:
    orders, _ = tables(db)
    view = orders.select(lambda o: int(o.text)).materialize(on_error="drop")
    kinds = view.errors.group_by(lambda e: e.error.kind).aggregate(Count()).materialize()
    orders.add_all(ROWS)
    assert dict(kinds) == {"ValueError": 1, "TypeError": 1}


def test_a_view_that_nobody_asks_for_errors_does_nothing_for_them() -> None:
    db = Database()
    noted = Noted()
    orders, _ = tables(db)
    view = orders.select(noted).materialize(on_error="drop")
    orders.add_all(ROWS)
    assert len(noted.asked) == len(ROWS) and db.views() == [view]
    assert len(view.errors) == 2 and len(db.views()) == 2
    assert view.errors is view.errors


def test_errors_close_with_their_view(db: Database) -> None:
    orders, _ = tables(db)
    view = orders.select(number).materialize(on_error="drop")
    errors = view.errors
    view.close()
    assert errors.closed
    view = orders.select(number).materialize(on_error="drop")
    view.errors.close()
    orders.add(ODD)
    assert len(view.errors) == 1
    del view, errors
    gc.collect()
    assert db.views() == []


def test_each_view_has_its_own_errors(db: Database) -> None:
    orders, _ = tables(db)
    below = orders.select(lambda o: (o.town, int(o.text))).materialize(on_error="drop")
    above = below.select(lambda r: 10 // (r[1] - 7)).materialize(on_error="drop")
    orders.add_all(ROWS)
    assert {error.row for error in below.errors} == {ODD, NONE}
    assert [error.row for error in above.errors] == [("Bonn", 7)]
    assert list(above) == [-3]
    above.verify(), above.errors.verify()


def test_a_view_over_one_that_raises_takes_only_its_own_rows_out() -> None:
    orders, _ = tables(Database())
    below = orders.select(number).materialize()
    above = below.select(lambda n: 10 // n).materialize(on_error="drop")
    with pytest.raises(ValueError, match="invalid literal"):
        orders.add(ODD)
    orders.add(Order("Bonn", "0"))
    assert list(above) == [] and len(above.errors) == 1


def test_what_raises_in_a_transaction_of_another_view_is_undone(db: Database) -> None:
    orders, _ = tables(db)
    view = orders.group_by("town").aggregate(Sum(number)).materialize(on_error="drop")
    strict = orders.where(lambda o: len(o.town) // (len(o.town) - 1)).materialize()
    orders.add_all(ROWS)
    before, errors = dict(view), view.errors.snapshot()
    with pytest.raises(ZeroDivisionError), db.transaction():
        orders.add(Order("Bonn", "y"))
        orders.remove(ODD)
        orders.add(Order("B", "1"))
    assert dict(view) == before and view.errors == errors
    assert len(strict) == 4
    view.verify(), view.errors.verify()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_only_exceptions_are_contained(db: Database, kind: type[BaseException]) -> None:
    def stop(order: Order) -> int:
        if order == ODD:
            raise kind
        return 1

    orders, _ = tables(db)
    view = orders.select(lambda o: stop(o)).materialize(on_error="drop")
    orders.add(BONN)
    with pytest.raises(kind):
        orders.add(ODD)
    assert list(view) == [1] and len(orders) == 1


def test_raise_is_the_default_and_changes_nothing() -> None:
    db = Database()
    orders, _ = tables(db)
    query = orders.select(number)
    view, same = query.materialize(), query.materialize(on_error="raise")
    assert view.relation is same.relation is query
    assert view._node.inputs == same._node.inputs
    with pytest.raises(ValueError, match="invalid literal"):
        orders.add(ODD)
    with pytest.raises(PlanError, match="has no errors: a row that raises fails its commit"):
        _ = view.errors


def test_what_cannot_raise_has_no_guard() -> None:
    orders: Any = Database().table(Declared, name="orders")
    query = orders.where(lambda o: o.town == "Bonn").select(lambda o: (o.town, o.text))
    view = query.materialize(on_error="drop")
    assert view.relation.plan is query.plan
    assert list(view.errors) == []


def test_a_guard_is_shown_where_it_stands() -> None:
    orders, _ = tables(Database())
    view = orders.where(lambda o: o.town == "Bonn" and int(o.text) > 3).materialize(on_error="drop")
    assert "where o.town == 'Bonn' and attempt(int(o.text) > 3)" in str(view.explain())


def test_there_are_three_policies() -> None:
    orders, _ = tables(Database())
    with pytest.raises(PlanError, match="on_error='skip' is no policy for rows that raise"):
        orders.materialize(on_error="skip")


def test_views_by_policy_are_of_the_same_kinds(db: Database) -> None:
    orders, _ = tables(db)
    grouped = orders.group_by("town").aggregate(total=Sum(number)).materialize(on_error="drop")
    orders.add_all(ROWS)
    assert grouped["Bonn"] == 7 and grouped.columns == ["town", "total"]
    ordered = orders.order_by(number).limit(1).materialize(on_error="drop")
    assert ordered[0] == KOELN


@dataclass(frozen=True)
class Town:
    town: str
    total: int

    def __post_init__(self) -> None:
        if self.total < 5:
            raise ValueError("too small")


@pytest.mark.parametrize("policy", POLICIES)
def test_a_group_whose_record_cannot_be_made_is_left_out(db: Database, policy: OnError) -> None:
    orders, _ = tables(db)
    query = orders.group_by("town").aggregate(total=Sum(number), as_=Town)
    view = query.materialize(on_error=policy)
    orders.add_all(ROWS)
    assert list(view) == [Town("Bonn", 7)] and view["Bonn"].total == 7
    view.verify()


@pytest.mark.parametrize("policy", POLICIES)
def test_a_group_of_which_a_callable_raises_has_no_rows(db: Database, policy: OnError) -> None:
    orders, _ = tables(db)
    longest = orders.group_by("town").reduce(lambda town, rows: [max(int(o.text) for o in rows)])
    view = longest.materialize(on_error=policy)
    orders.add_all([BONN, KOELN])
    orders.add(ODD)
    assert list(view) == [("Köln", 3)]
    (error,) = view.errors
    assert error.row[0] == "Bonn" and set(error.row[1]) == {BONN, ODD}
    assert error.error.kind == "ValueError"
    view.verify()
    orders.remove(ODD)
    assert sorted(view) == [("Bonn", 7), ("Köln", 3)] and not list(view.errors)
    view.verify()


def test_in_a_recursion_rows_are_left_out_of_each_round(db: Database) -> None:
    edges = db.table(tuple, name="edges")
    paths = fixpoint(
        lambda path: edges.union(
            path.join(edges, on=lambda p, e: p[1] == e[0]).select(
                lambda p, e: (p[0], e[1], 1 // (e[1] - 3))[:2]
            )
        )
    )
    view = paths.materialize(on_error="drop")
    edges.add_all([(0, 1), (1, 2), (2, 3), (3, 4), (2,)])
    assert (0, 2) in view and (0, 3) not in view and (2, 4) in view
    view.verify()
    found = {(e.operator.split()[0], e.error.kind) for e in view.errors}
    assert found == {
        ("select", "ZeroDivisionError"),
        ("select", "IndexError"),
        ("join", "IndexError"),
    }
    view.errors.verify()
    edges.remove_all([(2, 3), (2,)])
    assert list(view.errors) == []


def test_in_a_recursion_a_row_may_become_none(db: Database) -> None:
    rows = db.table(tuple, name="rows")
    pairs = rows.select(lambda r: (r[0], r[1]))
    paths = fixpoint(
        lambda path: pairs.union(
            path.join(pairs, on=lambda p, q: p[1] == q[0]).select(lambda p, q: (p[0], q[1]))
        )
    )
    view = paths.materialize(on_error="null")
    rows.add_all([(1, 2), (2, 3), (7,)])
    assert view == [(1, 2), (2, 3), (1, 3), None]
    view.verify()
    assert {e.operator for e in view.errors if e.row == (7,)} == {"select (r[0], r[1])"}


def test_a_value_of_one_row_is_not_that_of_the_next(db: Database) -> None:
    orders, _ = tables(db)
    sums = orders.aggregate(
        Sum(lambda o: int(o.text) * int(o.text)), Sum(lambda o: int(o.text) + int(o.text))
    ).materialize(on_error="null")
    with db.transaction():
        orders.add_all([BONN, ODD, NONE, NONE])
    assert sums.value == (49, 14)
    sums.verify()


def test_an_iteration_tells_the_errors_of_all_its_rounds(db: Database) -> None:
    numbers = db.table(int, name="numbers")
    halves = iterate(lambda n: n.select(lambda x: 12 // x - 1), numbers, times=2)
    view = halves.materialize(on_error="drop")
    numbers.add_all([12, 3, 0])
    assert list(view) == [3]
    view.verify()
    errors = view.errors
    assert [error.row for error in errors] == [0]  # reported once, though 12 becomes 0 too
    errors.verify()
    numbers.remove(0)
    assert [error.row for error in errors] == [0]
    numbers.remove(12)
    errors.verify()
    assert list(errors) == []


def test_errors_of_an_iteration_inside_another_one(db: Database) -> None:
    numbers = db.table(int, name="numbers")

    def inner(rows: Any) -> Any:
        return iterate(lambda n: n.select(lambda x: 60 // (x - 7)), rows, times=1)

    view = iterate(inner, numbers, times=2).materialize(on_error="drop")
    numbers.add_all([7, 8, 13])
    assert sorted(view) == [1, 20]  # 8 is 60, which is 1; 13 is 10, which is 20
    assert [error.row for error in view.errors] == [7]


def test_a_recursion_of_bags_in_sql_tells_its_errors(db: Database) -> None:
    db.execute("create table starts (n int)")
    view = db.sql("""
        with recursive r(n) as (
            select n from starts union all select 12 // n - 1 from r where n is distinct from 3)
        select n from r
    """).materialize()
    (starts,) = [table for table in db.tables() if table.name == "starts"]
    db.execute("insert into starts values (12), (3)")
    assert sorted(row.n for row in view) == [0, 3, 12]
    errors = view.errors
    assert [error.error.kind for error in errors] == ["ZeroDivisionError"]
    errors.verify()
    text = starts.row_type("three")
    starts.add(text)
    assert sorted(error.error.kind for error in errors) == ["TypeError", "ZeroDivisionError"]
    errors.verify()
    starts.remove(text)
    db.execute("delete from starts where n = 12")
    assert list(errors) == []


def test_a_table_that_is_not_stored_has_its_rows_go_by_the_policy() -> None:
    orders = Database().table(Order, stored=False)
    view = orders.aggregate(Sum(number)).materialize(on_error="drop")
    errors = view.errors
    orders.add_all(ROWS)
    orders.remove(ODD)
    assert view.value == 10 and [error.row for error in errors] == [NONE]
    with pytest.raises(TableError, match="is not stored"):
        view.verify()


def test_one_change_is_one_call_however_many_rows_raise() -> None:
    orders, others = tables(Database())
    noted = Noted()
    view = orders.left_join(others, left_key=noted, right_key=lambda r: r[1])
    joined = view.materialize(on_error="drop")
    orders.add_all(Order("Bonn", f"x{n}") for n in range(100))
    others.add_all((f"r{n}", n) for n in range(100))
    noted.asked.clear()
    before = joined.stats().touched
    orders.add(BONN)
    assert len(noted.asked) == 1 and joined.stats().touched - before <= 8
    noted.asked.clear()
    others.add(("more", 7))
    assert not noted.asked


@pytest.mark.parametrize("policy", POLICIES)
def test_a_load_with_rows_that_raise_asks_each_once(policy: OnError) -> None:
    noted = Noted()
    orders, _ = tables(Database())
    query = orders.group_by("town").aggregate(Count(), Sum(noted))
    view = query.materialize(on_error=policy)
    orders.add_all([BONN, ODD, KOELN, NONE])
    assert noted.asked == [BONN, ODD, KOELN, NONE]
    count = 1 if policy == "drop" else 2
    assert dict(view) == {"Bonn": (count, 7), "Köln": (count, 3)}


def test_a_key_that_raises_does_not_make_the_others_slow() -> None:
    orders, others = tables(Database())
    view = orders.join(others, on=lambda o, r: int(o.text) == r[1]).materialize(on_error="drop")
    assert "index by attempt(int(o.text), nan)" in str(view.explain())
    orders.add_all(Order("Bonn", f"x{n}") for n in range(100))
    others.add_all((f"r{n}", n) for n in range(100))
    orders.add(BONN)  # the first row that is looked up has an index of the others made
    orders.remove(BONN)
    before = view.stats().touched
    orders.add(BONN)
    others.add((1,))
    assert view.stats().touched - before <= 12
    assert len(view.errors) == 100 * 101 + 1


def test_a_part_that_has_moved_goes_by_the_policy() -> None:
    db = Database(offload=Elsewhere())
    orders, _ = tables(db)
    view = orders.group_by("town").aggregate(Sum(number)).materialize(on_error="drop")
    orders.add_all(ROWS)
    view.offload()
    orders.add(Order("Bonn", "y"))
    orders.add(Order("Bonn", "1"))
    assert dict(view) == {"Bonn": 8, "Köln": 3} and len(view.errors) == 3
    view.verify()

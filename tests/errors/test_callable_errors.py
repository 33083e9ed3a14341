"""Exceptions of callables keep their class; a note adds the place, the row, and the rollback."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

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
    Monoid,
    Sum,
    Table,
    View,
)
from tests.errors.golden import expected, here, place, refused, told


@dataclass(frozen=True, slots=True)
class P:
    age: int | None


GOOD, BAD = P(30), P(None)


class NoAge(Exception):
    """Exception that the callables of these tests raise."""


def known(fact: bool) -> None:
    """Raise unless it is a fact."""
    if not fact:
        raise NoAge("no age")


def fails(p: P) -> Any:
    """Raise on BAD."""
    known(p.age is not None)
    return p.age


def fails_later(p: P) -> Iterator[int]:
    """Yield an element, then raise on BAD."""
    yield 1
    known(p.age is not None)


def fails_in_pair(p: P, q: P) -> bool:
    """Raise on any pair with BAD."""
    known(p.age is not None and q.age is not None)
    return p.age == q.age


def adds(state: int, value: P) -> int:
    known(value.age is not None)
    return state + (value.age or 0)


def removes(state: int, value: P) -> int:
    known(value.age is None or value.age > 0)
    return state - (value.age or 0)


def combines(left: int, right: int) -> int:
    known(left >= 0 and right >= 0)
    return max(left, right)


def results(state: int) -> int:
    known(state >= 0)
    return state


@dataclass(frozen=True)
class Case:
    """A query with a callable that raises on an inserted row; and its name in the note."""

    name: str
    build: Callable[[Table[P], Table[P]], Any]
    function: Callable[..., Any]
    node: str
    row: str | None = "P(age=None)"


def keys(side: str) -> dict[str, Any]:
    """Return keys for a join; the key of `side` raises."""
    other = {"left_key": "right_key", "right_key": "left_key"}[side]
    return {side: fails, other: lambda p: 30}


JOINS = ("join", "left_join", "right_join", "full_join", "semi_join", "anti_join")


def _keyed(method: str, side: str) -> Case:
    """Join tables so that the key of one side raises; the row is inserted on that side."""

    def build(s: Table[P], t: Table[P]) -> Any:
        left, right = (s, t) if side == "left_key" else (t, s)
        return getattr(left, method)(right, **keys(side))

    return Case(f"{method}_{side}", build, fails, method)


def _aggregate(aggregate: Any) -> Case:
    def build(s: Table[P], t: Table[P]) -> Any:
        return s.group_by(lambda p: 0).aggregate(Count(), aggregate(fails))

    return Case(aggregate.__name__, build, fails, "aggregate")


OF_ONE_ROW = (
    Case("where", lambda s, t: s.where(fails), fails, "where"),
    Case("select", lambda s, t: s.select(fails), fails, "select"),
    Case("select_many", lambda s, t: s.select_many(fails_later), fails_later, "select_many"),
    Case("unnest", lambda s, t: s.unnest(fails_later), fails_later, "unnest"),
    Case("order_by", lambda s, t: s.order_by(fails), fails, "order_by"),
    Case("limit", lambda s, t: s.order_by(fails).limit(1), fails, "order_by"),
    Case("group_by", lambda s, t: s.group_by(fails).aggregate(Count()), fails, "group_by"),
    *map(_aggregate, (Sum, Avg, Min, Max, CountDistinct, Collect)),
    Case(
        "Monoid_of",
        lambda s, t: s.aggregate(Monoid(0, max, of=fails)),
        fails,
        "aggregate",
    ),
    *(_keyed(method, side) for method in JOINS for side in ("left_key", "right_key")),
)

OF_A_PAIR = (
    Case("join_on", lambda s, t: s.join(t, on=fails_in_pair), fails_in_pair, "join"),
    Case("left_join_on", lambda s, t: s.left_join(t, on=fails_in_pair), fails_in_pair, "left_join"),
    Case(
        "right_join_on", lambda s, t: s.right_join(t, on=fails_in_pair), fails_in_pair, "right_join"
    ),
    Case("full_join_on", lambda s, t: s.full_join(t, on=fails_in_pair), fails_in_pair, "full_join"),
    Case("where_pair", lambda s, t: s.join(t).where(fails_in_pair), fails_in_pair, "where"),
    Case("select_pair", lambda s, t: s.join(t).select(fails_in_pair), fails_in_pair, "select"),
    Case("semi_join_on", lambda s, t: s.semi_join(t, on=fails_in_pair), fails_in_pair, "semi_join"),
    Case("anti_join_on", lambda s, t: s.anti_join(t, on=fails_in_pair), fails_in_pair, "anti_join"),
)

OF_A_GROUP = (
    Case(
        "Aggregate_add",
        lambda s, t: s.group_by(lambda p: 0).aggregate(Aggregate(0, adds, removes)),
        adds,
        "aggregate",
    ),
    Case(
        "Aggregate_result",
        lambda s, t: s.group_by(lambda p: 0).aggregate(
            Aggregate(0, lambda n, p: n + (p.age or -99), lambda n, p: n, results)
        ),
        results,
        "aggregate",
        row=None,
    ),
    Case(
        "Monoid_combine",
        lambda s, t: s.group_by(lambda p: 0).aggregate(
            Monoid(0, combines, of=lambda p: p.age or -1)
        ),
        combines,
        "aggregate",
        row=None,
    ),
)

CASES = (*OF_ONE_ROW, *OF_A_PAIR, *OF_A_GROUP)
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@every_case
def test_an_exception_in_a_commit_is_told_in_full_and_undone(case: Case) -> None:
    db = Database()
    left, right = db.table(P, name="left"), db.table(P, name="right")
    view = case.build(left, right).materialize("ages")
    left.add(GOOD)
    right.add(GOOD)
    if case in OF_A_PAIR:  # the first look-up on the other side makes an index there
        left.add(P(20))
        left.remove(P(20))
    before = sorted(view, key=str)
    state = view.stats().rows
    row = case.row
    if case in OF_A_PAIR:
        row = "(P(age=None), P(age=30))"
    on_row = ", in group 0" if row is None else f", on row {row}"
    with refused(
        f"""
        NoAge: no age
          in {case.node} of view 'ages' (<place>){on_row}
          transaction rolled back: no table or view changed
        """,
        place=place(case.function),
    ):
        left.add_all([P(20), BAD, P(40)])
    assert (list(left), sorted(view, key=str), view.stats().rows) == ([GOOD], before, state)
    view.verify()
    left.add(P(20))
    view.verify()


@every_case
def test_an_exception_over_rows_that_are_there_is_told_when_the_view_is_made(case: Case) -> None:
    db = Database()
    left, right = db.table(P, name="left"), db.table(P, name="right")
    right.add(GOOD)
    left.add_all([P(20), BAD])
    row = "(P(age=None), P(age=30))" if case in OF_A_PAIR else case.row
    on_row = ", in group 0" if row is None else f", on row {row}"
    with refused(
        f"""
        NoAge: no age
          in {case.node} of view 'ages', being made (<place>){on_row}
        """,
        place=place(case.function),
    ):
        case.build(left, right).materialize("ages")
    assert not db._engine.graph._nodes
    left.remove(BAD)
    case.build(left, right).materialize("ages").verify()


def test_a_view_without_a_name_is_known_by_its_line() -> None:
    table = Database().table(P)
    view, line = table.where(fails).materialize(), here()
    with refused(
        """
        NoAge: no age
          in where of the view made at <line> (<fails>), on row P(age=None)
          transaction rolled back: no table or view changed
        """,
        line=line,
        fails=place(fails),
    ):
        table.add(BAD)
    assert list(view) == []


def test_several_views_of_one_operator_are_counted() -> None:
    table = Database().table(P)
    relation = table.where(fails)
    views = [relation.materialize("first"), relation.materialize("second"), relation.materialize()]
    with refused(
        """
        NoAge: no age
          in where of view 'first' and 2 more (<fails>), on row P(age=None)
          transaction rolled back: no table or view changed
        """,
        fails=place(fails),
    ):
        table.add(BAD)
    assert [len(view) for view in views] == [0, 0, 0]


def test_removal_of_a_row_that_raises_on_its_way_out_is_told_too() -> None:
    """The user's `remove` fails: the aggregate, the table and a join beside it are restored."""
    db = Database()
    table = db.table(P)
    total: View[int] = table.aggregate(
        Aggregate(0, lambda n, p: n + (p.age or 0), removes)
    ).materialize("sum")
    pairs = table.join(table, left_key=hash, right_key=hash).materialize()
    zero = P(0)
    table.add_all([GOOD, zero])
    with refused(
        """
        NoAge: no age
          in aggregate of view 'sum' (<removes>), on row P(age=0)
          transaction rolled back: no table or view changed
        """,
        removes=place(removes),
    ):
        table.remove(zero)
    assert (total.value, len(pairs), len(table)) == (30, 2, 2)
    pairs.verify()


def test_a_transaction_that_raises_at_its_end_says_so_and_is_undone() -> None:
    db = Database()
    table, other = db.table(P, name="table"), db.table(P, name="other")
    view = table.where(fails).materialize("ages")
    copies = other.materialize()
    with (
        refused(
            """
            NoAge: no age
              in where of view 'ages' (<fails>), on row P(age=None)
              transaction rolled back: no table or view changed
            """,
            fails=place(fails),
        ),
        db.transaction(),
    ):
        other.add(GOOD)
        table.add(BAD)
    assert (list(table), list(other), list(view), list(copies)) == ([], [], [], [])


def test_a_second_failure_is_told_by_its_own_row() -> None:
    """Test also one exception object that is raised twice."""
    error = ValueError("always this one")

    def raises(p: P) -> bool:
        raise error

    table = Database().table(P)
    view = table.where(raises).materialize("v")
    for row in (GOOD, BAD):
        with pytest.raises(ValueError) as caught:
            table.add(row)
        assert repr(row) in told(caught.value)
    assert list(view) == []


def test_a_long_row_is_cut() -> None:
    table = Database().table(str)

    def short(row: str) -> bool:
        return len(row) < 1 // 0

    view = table.where(short).materialize("v")
    with pytest.raises(ZeroDivisionError) as caught:
        table.add("x" * 1000)
    assert told(caught.value) == expected(
        """
        ZeroDivisionError: integer division or modulo by zero
          in where of view 'v' (<short>), on row '<xs>...
          transaction rolled back: no table or view changed
        """,
        short=place(short),
        xs="x" * 196,
    )
    assert list(view) == []


def test_a_row_that_cannot_be_shown_does_not_hide_the_error() -> None:
    class Shy:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    def never(row: Shy) -> bool:
        raise KeyError("the error")

    table = Database().table(Shy, identity=True)
    view = table.where(never).materialize("v")
    with refused(
        """
        KeyError: 'the error'
          in where of view 'v' (<never>), on row <Shy whose repr raises RuntimeError>
          transaction rolled back: no table or view changed
        """,
        never=place(never),
    ):
        table.add(Shy())
    assert list(view) == []


# Values that an operator cannot take.


def things(*rows: Any) -> Table[Any]:
    table = Database().table(object, name="things")
    table.add_all(rows)
    return table


@pytest.mark.parametrize("aggregate", [Sum, Avg])
def test_strings_have_no_sum(aggregate: Any) -> None:
    of: Callable[[Any], Any] = lambda row: row  # noqa: E731
    table = things(1)
    view = table.aggregate(aggregate(of)).materialize("total")
    with refused(
        """
        TypeError: cannot sum '2': str values have no difference
          in aggregate of view 'total' (<of>), on row '2'
          transaction rolled back: no table or view changed
        """,
        of=place(of),
    ):
        table.add("2")
    assert view.value == 1


@pytest.mark.parametrize("aggregate", [Min, Max])
def test_the_least_of_values_that_do_not_compare_is_refused(aggregate: Any) -> None:
    by: Callable[[Any], int] = lambda row: 0  # noqa: E731

    def of(row: Any) -> Any:
        return row

    table = things(1)
    view = table.group_by(by).aggregate(aggregate(of)).materialize("least")
    with refused(
        """
        TypeError: '<' not supported between instances of 'int' and 'str'
          in aggregate of view 'least' (<of>), on row '2'
          transaction rolled back: no table or view changed
        """,
        of=place(of),
    ):
        table.add("2")
    assert list(view) == [(0, 1)]
    table.add(3)
    view.verify()


def test_keys_that_do_not_compare_have_no_order() -> None:
    by: Callable[[Any], Any] = lambda row: row  # noqa: E731
    table = things(1)
    view = table.order_by(by).materialize("sorted")
    with refused(
        """
        TypeError: '<' not supported between instances of 'int' and 'str'
          in order_by of view 'sorted' (<by>), on row '2'
          transaction rolled back: no table or view changed
        """,
        by=place(by),
    ):
        table.add("2")
    assert list(view) == [1]


def test_a_select_many_of_what_is_no_collection_is_refused() -> None:
    of: Callable[[Any], Any] = lambda row: row  # noqa: E731
    table = things()
    view = table.select_many(of).materialize("all")
    with refused(
        """
        TypeError: 'int' object is not iterable
          in select_many of view 'all' (<of>), on row 7
          transaction rolled back: no table or view changed
        """,
        of=place(of),
    ):
        table.add(7)
    assert list(view) == []


UNHASHABLE: dict[str, Callable[[Any, Any], Any]] = {
    "select": lambda t, f: t.select(f),
    "select_then_distinct": lambda t, f: t.select(f).distinct(),
    "select_many": lambda t, f: t.select_many(f),
    "unnest": lambda t, f: t.unnest(f),
    "order_by": lambda t, f: t.select(f).order_by(len),
    "limit": lambda t, f: t.select(f).order_by(len).limit(2),
    "group_by": lambda t, f: t.group_by(f).aggregate(Count()),
    "Min": lambda t, f: t.aggregate(Min(f)),
    "CountDistinct": lambda t, f: t.aggregate(CountDistinct(f)),
    "left_key": lambda t, f: t.join(t, left_key=f, right_key=abs),
    "right_key": lambda t, f: t.semi_join(t, left_key=len, right_key=f),
}


@pytest.mark.parametrize("kind", UNHASHABLE)
def test_an_unhashable_result_is_traced_to_the_callable_that_gave_it(kind: str) -> None:
    """Rows, values and keys are hashed; the error names the callable's line and the value."""

    def gives(row: str) -> Any:
        return [[row]]

    table = things()
    view = UNHASHABLE[kind](table, gives).materialize("the view")
    with pytest.raises(TypeError) as caught:
        table.add("the row")
    text = told(caught.value)
    assert "unhashable" in text or "not hashable" in text
    assert "the view" in text
    assert place(gives) in text
    assert "the row" in text
    for count in (2, 30):
        with pytest.raises(TypeError, match="hashable"):
            table.add_all(f"row {number}" for number in range(count))
    assert list(table) == []
    view.verify()


def test_an_aggregate_over_operators_without_a_place_names_the_operator_at_least() -> None:
    table = things(2)
    view: View[int] = table.aggregate(Aggregate(0, operator.add, operator.sub)).materialize("v")
    with refused(
        """
        TypeError: unsupported operand type(s) for +: 'int' and 'str'
          in aggregate of view 'v', on row '2'
          transaction rolled back: no table or view changed
        """
    ):
        table.add("2")
    assert view.value == 2


@pytest.mark.parametrize("policy", ["drop", "null"])
@pytest.mark.parametrize("named", [False, True])
def test_groups_of_own_aggregates_are_found_by_their_keys(named: bool, policy: Any) -> None:
    table = Database().table(tuple[str, int])

    def share(total: int) -> float:
        return 6 / total

    own = Aggregate(0, operator.add, operator.sub, share, of=lambda r: r[1])
    groups = table.group_by(lambda r: r[0])
    query: Any = groups.aggregate(share=own) if named else groups.aggregate(own)
    view = query.materialize(on_error=policy)
    table.add_all([("a", 2), ("b", 0)])
    assert view["a"] == 3.0
    assert ("b" in list(view.keys())) == (policy == "null")
    assert len(view.errors) == 1

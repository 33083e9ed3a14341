"""Orders by several keys, in either direction, with None first or last."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, assert_type

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import (
    Database,
    OrderedRelation,
    PlanError,
    Table,
    asc,
    desc,
)
from reactive.engine.collections.order import tie_key
from tests.borders.offload.elsewhere import Elsewhere
from tests.budget import examples
from tests.errors.golden import told
from tests.replica import Replica

NAN = math.nan
Nulls = Literal["first", "last"]


@dataclass(frozen=True, slots=True, order=True)
class Row:
    number: Any
    name: Any
    pair: Any


class Two(NamedTuple):
    one: Any
    other: Any


NUMBERS = st.sampled_from([None, NAN, -1, 0, 1, 1.0, True, 2.5, 10**20])
NAMES = st.sampled_from([None, "a", "b", "ab", ""])
PARTS = st.sampled_from([None, 0, 1, NAN])
PAIRS = st.one_of(st.none(), st.tuples(PARTS, PARTS), st.builds(Two, PARTS, PARTS))
ROWS = st.builds(Row, NUMBERS, NAMES, PAIRS)
FIELDS: dict[str, Any] = {
    "number": lambda r: r.number,
    "name": lambda r: r.name,
    "pair": lambda r: r.pair,
    "size": lambda r: (len(r.name or ""), r.number),
}
KEYS = st.lists(
    st.tuples(st.sampled_from(sorted(FIELDS)), st.booleans(), st.sampled_from(["first", "last"])),
    min_size=1,
    max_size=3,
)
HISTORIES = st.lists(st.lists(st.tuples(ROWS, st.booleans()), max_size=4), max_size=8)


def rank(value: Any, *, descending: bool, nulls: str) -> tuple[Any, ...]:
    """Return a sortable number or text for each value, in the expected order."""
    if value is None:
        return ((-1,) if (nulls == "first") != descending else (2,),)
    if isinstance(value, tuple):
        parts = [rank(part, descending=descending, nulls=nulls) for part in value]
        return ((0,), *(x for part in parts for x in part))
    return ((1,),) if value != value else ((0, value),)


def in_order(rows: list[Row], keys: list[tuple[str, bool, Nulls]]) -> list[Row]:
    """The rows sorted by one key after the other, the last first: Python's sort keeps ties."""
    found = sorted(rows, key=tie_key)
    for field, descending, nulls in reversed(keys):
        key: Any = FIELDS[field]
        found.sort(
            key=lambda row: rank(key(row), descending=descending, nulls=nulls), reverse=descending
        )
    return found


def given_keys(keys: list[tuple[str, bool, Nulls]]) -> list[Any]:
    return [(desc if down else asc)(FIELDS[f], nulls=nulls) for f, down, nulls in keys]


@examples(150)
@given(
    keys=KEYS,
    history=HISTORIES,
    limit=st.sampled_from([None, 0, 2, 4]),
    offset=st.integers(0, 2),
    optimize=st.booleans(),
)
def test_rows_stand_by_one_key_after_the_other(
    keys: Any, history: Any, limit: int | None, offset: int, optimize: bool
) -> None:
    db = Database(optimize=optimize)
    table = db.table(Row)
    ordered = table.order_by(*given_keys(keys))
    view = (ordered if limit is None else ordered.limit(limit, offset)).materialize()
    replica = Replica(view)
    held: list[Row] = []
    for commit in history:
        with db.transaction():
            for row, goes in commit:
                if goes and held:
                    table.remove(held.pop(hash(row) % len(held)))
                else:
                    table.add(row)
                    held = list(table)
        rows = in_order(held, keys)
        wanted = rows if limit is None else rows[offset : offset + limit]
        assert list(map(repr, view)) == list(map(repr, map(of_table(table), wanted)))
        view.verify()
        replica.check()


def of_table(table: Table[Row]) -> Any:
    """Equal rows are one object in a table: `1`, `1.0` and `True` show as the first of them."""
    held = {row: row for row in table}
    return lambda row: held[row]


@examples(60)
@given(keys=KEYS, rows=st.lists(ROWS, max_size=20), limit=st.integers(0, 4))
def test_so_do_the_first_rows_when_the_others_are_elsewhere(
    keys: Any, rows: list[Row], limit: int
) -> None:
    db = Database(offload=Elsewhere())
    table = db.table(Row)
    table.add_all(rows[:10])
    view = table.order_by(*given_keys(keys)).limit(limit).materialize()
    view.offload()
    table.add_all(rows[10:])
    assert list(map(repr, view)) == [
        repr(of_table(table)(row)) for row in in_order(list(table), keys)[:limit]
    ]
    view.verify()


def test_plain_callables_and_directions_may_be_mixed() -> None:
    table = Database().table(tuple)
    view = table.order_by(lambda r: r[0], desc(lambda r: r[1])).materialize()
    both = table.order_by(lambda r: r[0], asc(lambda r: r[1]), descending=True).materialize()
    table.add_all([(1, 1), (2, 1), (1, 2), (2, 2)])
    assert list(view) == [(1, 2), (1, 1), (2, 2), (2, 1)]
    assert list(both) == [(2, 1), (2, 2), (1, 1), (1, 2)]


def test_descending_holds_for_all_plain_keys() -> None:
    table = Database().table(tuple)
    view = table.order_by(lambda r: r[0], lambda r: r[1], descending=True).materialize()
    table.add_all([(1, 1), (2, 1), (1, 2), (2, 2)])
    assert list(view) == [(2, 2), (2, 1), (1, 2), (1, 1)]


def test_bindings_are_arguments_of_each_key() -> None:
    db = Database()
    left, right = db.table(int, name="left"), db.table(int, name="right")
    pairs = left.join(right).order_by(desc(lambda a, b: b), asc(lambda a, b: a)).materialize()
    left.add_all([1, 2])
    right.add_all([3, 4])
    assert list(pairs) == [(1, 4), (2, 4), (1, 3), (2, 3)]


@pytest.mark.parametrize("descending", [True, False])
def test_none_stands_where_it_is_told_in_either_direction(descending: bool) -> None:
    table: Table[Any] = Database().table(object)
    first = table.order_by(lambda v: v, descending=descending, nulls="first").materialize()
    last = table.order_by(lambda v: v, descending=descending, nulls="last").materialize()
    table.add_all([2, None, 1, NAN])
    there = [1, 2, "nan"][:: -1 if descending else 1]
    assert [v if v == v else "nan" for v in first] == [None, *there]
    assert [v if v == v else "nan" for v in last] == [*there, None]


def test_a_key_may_have_its_own_place_for_none() -> None:
    table = Database().table(tuple)
    query = table.order_by(asc(lambda r: r[0], nulls="last"), lambda r: r[1], nulls="first")
    view = query.materialize()
    table.add_all([(None, 1), (1, None), (1, 1), (None, None)])
    assert list(view) == [(1, None), (1, 1), (None, None), (None, 1)]


def test_values_that_compare_with_nothing_else_stand_beside_none() -> None:
    class Version:
        def __init__(self, n: int) -> None:
            self.n = n

        def __lt__(self, other: Any) -> bool:
            return bool(self.n < other.n)  # an AttributeError for anything else

    table: Table[Any] = Database().table(object, identity=True)
    versions = [Version(2), Version(1)]
    up = table.order_by(lambda v: v, nulls="last").materialize()
    down = table.order_by(desc(lambda v: v, nulls="first"), lambda v: 0).materialize()
    table.add_all([versions[0], None, versions[1]])
    assert list(up) == [versions[1], versions[0], None]
    assert list(down) == [None, *versions]


def test_none_that_is_given_no_place_says_what_would() -> None:
    table: Table[Any] = Database().table(object, name="things")
    for query in (
        table.order_by(lambda v: v),
        table.order_by(lambda v: v).limit(2),
        table.order_by(desc(lambda v: v), lambda v: 0),
    ):
        view = query.materialize("sorted")
        table.add(1)
        for rows in ([None], [2, None, 3]):
            with pytest.raises(TypeError) as caught:
                table.add_all(rows)
            lines = told(caught.value).splitlines()
            assert "'NoneType'" in lines[0]
            assert lines[1] == '  nulls="first" or nulls="last" gives None a place'
            assert lines[2].startswith("  in order_by of view 'sorted'")
            assert list(view) == [1]
        table.clear()
        view.close()


def test_one_key_is_the_plan_that_it_always_was() -> None:
    table = Database().table(tuple, name="rows")
    by: Any = lambda r: r[0]  # noqa: E731
    assert table.order_by(desc(by)).plan == table.order_by(by, descending=True).plan
    assert table.order_by(asc(by)).plan == table.order_by(by).plan
    view = table.order_by(desc(by)).materialize()
    same = table.order_by(by, descending=True).materialize()
    assert len(table._engine.graph.nodes()) == 1
    del view, same


def test_explain_shows_keys_directions_and_the_place_of_none() -> None:
    table = Database().table(tuple, name="rows")
    shown: list[tuple[OrderedRelation[tuple[Any, ...]], str]] = [
        (table.order_by(lambda r: r[0]), "order_by r[0]"),
        (table.order_by(desc(lambda r: r[0])).limit(2), "order_by r[0], descending, limit 2"),
        (table.order_by(lambda r: r[0], nulls="last"), "order_by r[0], nulls last"),
        (
            table.order_by(desc(lambda r: r[0], nulls="last"), lambda r: r[1]).limit(2, 1),
            "order_by desc(r[0], nulls='last'), r[1], limit 2, offset 1",
        ),
        (
            table.order_by(lambda r: r[0], asc(lambda r: r[1], nulls="first")),
            "order_by r[0], asc(r[1], nulls='first')",
        ),
    ]
    for query, text in shown:
        assert str(query.explain()).splitlines()[1].strip() == text


def test_a_callable_that_raises_in_any_key_is_named() -> None:
    table = Database().table(int)
    view = table.order_by(lambda n: 0, desc(lambda n: 1 // n)).materialize("inverse")
    table.add(1)
    with pytest.raises(ZeroDivisionError) as caught:
        table.add(0)
    assert "order_by of view 'inverse' (test_sort_key.py:" in told(caught.value)
    assert "on row 0" in told(caught.value)
    assert list(view) == [1]


def test_what_makes_no_order_is_refused() -> None:
    table: Any = Database().table(int)
    some: Any = asc
    refusals: list[tuple[Any, str]] = [
        (lambda: table.order_by(asc), r"write asc\(f\)"),
        (lambda: table.order_by(lambda n: n, True), "takes a callable, not True"),
        (lambda: table.order_by(some(desc(abs))), "takes a callable, not SortKey"),
        (lambda: table.order_by(abs, nulls="low"), "nulls='low'"),
        (lambda: some(abs, nulls=True), "nulls=True"),
        (lambda: table.order_by(desc(abs), descending=True), "descending=True"),
        (lambda: table.order_by(desc(lambda a, b: a)), "takes 2"),
    ]
    for make, text in refusals:
        with pytest.raises(PlanError, match=text):
            make()


def test_types_of_sort_keys() -> None:
    table = Database().table(Row)
    assert_type(table.order_by(asc(lambda r: r.name)), OrderedRelation[Row])
    assert_type(
        table.order_by(lambda r: r.name, desc(lambda r: r.number, nulls="last")),
        OrderedRelation[Row],
    )

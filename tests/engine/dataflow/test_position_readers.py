"""Views that compare positions of tuples with constants get the rows they need, and are right."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Count, Database, Table, View
from reactive.engine.compiler import queries
from reactive.engine.dataflow import discrimination
from tests.budget import examples, sampled
from tests.counted_calls import calls_of


class Sale(NamedTuple):
    kind: Any
    amount: Any


@dataclass(frozen=True)
class Wrapped:
    kind: int

    @property
    def amount(self) -> int:
        return 6 // self.kind


TABLES: dict[str, Any] = {
    "tuples": tuple[Any, Any],
    "any tuples": tuple,
    "any rows": object,
    "named tuples": Sale,
}
Query = Callable[[Database, "Table[Any]", Any], Any]
QUERIES: dict[str, Query] = {
    "equal": lambda _, t, k: t.where(lambda r: r[1] == k),
    "from the end": lambda _, t, k: t.where(lambda r: k == r[-1]),
    "one of several": lambda _, t, k: t.where(lambda r: r[0] in (k, 2)),
    "inside": lambda _, t, k: t.where(lambda r: r[0][0] == k),
    "two conditions": lambda _, t, k: t.where(lambda r: r[0] == 1 and r[1] == k),
    "after a limit": lambda _, t, k: t.where(lambda r: r[0] > 0 and r[1] == k),
    "a range": lambda _, t, k: t.where(lambda r: 0 < r[1] <= k),
    "a range of another": lambda _, t, k: t.where(lambda r: r[1] == 1 and r[0] > k),
    "either": lambda _, t, k: t.where(lambda r: r[1] == k or r[1] == 0),
    "then a test that may raise": lambda _, t, k: t.where(lambda r: r[1] == k and 6 // r[0] > 2),
    "unpacked": lambda db, t, k: db.query(lambda: [a for a, b in t if b == k]),
    "groups": lambda _, t, k: (
        t.where(lambda r: r[1] == k).group_by(lambda r: r[0]).aggregate(Count())
    ),
    "join": lambda _, t, k: t.join(t, on=lambda r, s: r[0] == s[0]).where(lambda r, s: s[1] == k),
    "by a name": lambda _, t, k: t.where(lambda r: r.kind == k),
}
VALUES = st.sampled_from([0, 1, 1.0, True, 2, None, float("nan"), "a", (1, 2), (1,), Wrapped(0)])
ROWS = {
    "tuples": st.tuples(VALUES, VALUES),
    "any tuples": st.one_of(st.tuples(VALUES, VALUES), st.tuples(VALUES)),
    "any rows": st.one_of(st.tuples(VALUES, VALUES), VALUES, st.builds(Sale, VALUES, VALUES)),
    "named tuples": st.builds(Sale, VALUES, VALUES),
}
EVENTS: dict[str, Any] = {
    name: st.lists(
        st.one_of(
            st.tuples(st.lists(st.tuples(st.booleans(), row), min_size=1, max_size=3)),
            st.tuples(row, row),
            st.integers(0, 5),
        ),
        max_size=8,
    )
    for name, row in ROWS.items()
}
"""A commit of rows that come and go, a row that another one replaces, or a view that comes or goes.
"""
ERRORS = (TypeError, ZeroDivisionError, IndexError, AttributeError, ValueError)


def change(db: Database, table: Any, event: tuple[Any, ...]) -> None:
    """Change the table in one transaction, which may be refused."""
    with suppress(*ERRORS), db.transaction():
        if len(event) == 1:
            for adds, row in event[0]:
                (table.add if adds else table.discard)(row)
        else:
            table.discard(event[0])
            table.add(event[1])


def run(kind: str, query: Query, history: list[Any], on_error: Any) -> None:
    """Run a history, and compare each view with its query after every event."""
    db = Database()
    table: Any = db.table(TABLES[kind], name="rows")
    live: dict[int, View[Any]] = {}
    for event in [0, 1, 2, *history]:
        if not isinstance(event, int):
            change(db, table, event)
        elif event in live:
            live.pop(event).close()
        else:
            with suppress(*ERRORS):
                live[event] = query(db, table, event).materialize(on_error=on_error)
        for view in live.values():
            view.verify()


@sampled
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", QUERIES)
@examples(156)
@given(st.data(), st.booleans(), st.booleans())
def test_they_are_right_after_every_event(
    name: str, kind: str, data: st.DataObject, drops: bool, looks_up: bool
) -> None:
    if name == "by a name" and kind in ("tuples", "any tuples"):
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discrimination, "WORTHWHILE", 2)
        if looks_up:
            patch.setattr(queries, "MANY_READERS", 2)
            patch.setattr(queries, "MANY_RANGES", 2)
            patch.setattr(queries, "LARGE", 0)
        history = data.draw(EVENTS[kind])
        run(kind, QUERIES[name], history, "drop" if drops else "raise")


NAMES = ["equal", "from the end", "after a limit", "groups"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [*((n, k) for n in NAMES for k in TABLES), ("join", "tuples"), ("join", "named tuples")],
)
def test_a_change_calls_as_much_with_many_views(name: str, kind: str) -> None:
    def calls(views: int) -> int:
        db = Database()
        table: Any = db.table(TABLES[kind], name="rows")
        make = Sale if kind == "named tuples" else lambda *values: values
        live = [QUERIES[name](db, table, 1000 + k).materialize() for k in range(views)]
        for n in range(100):
            table.add(make(n, n))
        count = calls_of(lambda: table.add(make(7, -1)))
        table.add(make(8, 1000))
        assert [bool(view) for view in live[:2]] == [True, False]
        return count

    assert calls(120) <= calls(30) + 3


def test_a_name_and_a_position_of_named_tuples_are_one_field() -> None:
    sales = Database().table(Sale, name="sales")
    views: list[View[Any]] = []
    for k in range(7):
        views.append(sales.where(lambda r, k=k: r.kind == k).materialize())  # type: ignore[misc]
        views.append(sales.where(lambda r, k=k: r[0] == k).materialize())  # type: ignore[misc]
    sales.add_all([Sale(3, 1), Sale(50, 1)])
    assert sum(view.stats().touched for view in views) <= 4

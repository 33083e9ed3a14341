"""Values that callables make, or that are beside plain ones, and whose `==` raises for others.

    operator x policy x (made beside made, made beside plain, given beside plain) x history

By definition, of the rows that an operator looks up together, those are errors whose value clashes
with that of another row; the view is what its query gives of the other rows alone. A row that comes
in one commit with the end of a row that it clashes with is one, too, until it leaves.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple

import pytest

from reactive import (
    Aggregate,
    Batch,
    Collect,
    Count,
    CountDistinct,
    Database,
    Monoid,
    fixpoint,
)

Scope = Literal["t", "town", "both", "both, one by one", "never"]


class Row(NamedTuple):
    id: int
    town: str
    x: Any


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


def made(row: Row) -> Any:
    return Money(*row.x) if isinstance(row.x, tuple) else row.x


def given(row: Row) -> Any:
    return row.x


def _with(state: Any, value: Any) -> Any:
    return (*state, (repr(value)))


def _without(state: Any, value: Any) -> Any:
    place = state.index(repr(value))
    return state[:place] + state[place + 1 :]


NOTHING: Any = frozenset()
OPERATORS: dict[str, tuple[Scope, Callable[[Any, Any, Callable[[Any], Any]], Any]]] = {
    "select": ("t", lambda t, u, f: t.select(lambda r: f(r))),
    "select, distinct": ("t", lambda t, u, f: t.select(lambda r: (1, f(r))).distinct()),
    "select_many": ("t", lambda t, u, f: t.select_many(lambda r: [f(r)])),
    "group_by": ("t", lambda t, u, f: t.group_by(f).aggregate(Count())),
    "group_by of two": (
        "town",
        lambda t, u, f: t.group_by(lambda r: (r.town, f(r))).aggregate(Count()),
    ),
    "top": ("t", lambda t, u, f: t.group_by(f).top(1, by=lambda r: r.id)),
    "reduce": ("t", lambda t, u, f: t.group_by(f).reduce(lambda k, rows: [len(rows)])),
    "CountDistinct": ("town", lambda t, u, f: t.group_by("town").aggregate(CountDistinct(f))),
    "Collect": (
        "town",
        lambda t, u, f: (
            t.group_by("town").aggregate(Collect(f)).select(lambda k, found: (k, len(found)))
        ),
    ),
    "Aggregate": (
        "never",
        lambda t, u, f: t.group_by("town").aggregate(
            Aggregate((), _with, _without, lambda s: len(s), of=f)
        ),
    ),
    "Monoid": (
        "town",
        lambda t, u, f: t.group_by("town").aggregate(
            Monoid(NOTHING, lambda a, b: _set(a) | _set(b), len, of=f)
        ),
    ),
    "join by keys": ("both", lambda t, u, f: t.join(u, left_key=f, right_key=f)),
    "left_join by keys": ("both", lambda t, u, f: t.left_join(u, left_key=f, right_key=f)),
    "full_join by keys": ("both", lambda t, u, f: t.full_join(u, left_key=f, right_key=f)),
    "semi_join": ("both", lambda t, u, f: t.semi_join(u, left_key=f, right_key=f)),
    "anti_join": ("both", lambda t, u, f: t.anti_join(u, left_key=f, right_key=f)),
    "join on": ("both", lambda t, u, f: t.join(u, on=lambda r, v: f(r) == f(v))),
    "union": (
        "both, one by one",
        lambda t, u, f: t.select(lambda r: f(r)).union(u.select(lambda r: f(r))),
    ),
    "union_all": (
        "both, one by one",
        lambda t, u, f: t.select(lambda r: f(r)) + u.select(lambda r: f(r)),
    ),
    "difference": (
        "both, one by one",
        lambda t, u, f: t.select(lambda r: f(r)) - u.select(lambda r: f(r)),
    ),
    "intersection": (
        "both, one by one",
        lambda t, u, f: t.select(lambda r: f(r)) & u.select(lambda r: f(r)),
    ),
    "each": (
        "town",
        lambda t, u, f: t.group_by("town").each(lambda g: g.group_by(f).aggregate(Count())),
    ),
    "fixpoint": (
        "t",
        lambda t, u, f: fixpoint(
            lambda path: t.select(lambda r: (f(r), 0)).union(
                path.where(lambda p: p[1] < 2).select(lambda p: (p[0], p[1] + 1))
            )
        ),
    ),
}


def _set(value: Any) -> frozenset[str]:
    return value if isinstance(value, frozenset) else frozenset({repr(value)})


KINDS = ("made beside made", "made beside plain", "given beside plain")


def draw(chance: Random, number: int, kind: str) -> Row:
    currency = chance.choice(["e", "d"]) if kind == "made beside made" else "e"
    amount, town = chance.randrange(3), chance.choice(["Bonn", "Ulm"])
    if "plain" in kind and chance.random() < 0.5:
        return Row(number, town, amount)
    value = (amount, currency) if kind.startswith("made") else Money(amount, currency)
    return Row(number, town, value)


def clashing(
    rows: list[tuple[int, Row]], scope: Scope, f: Callable[[Any], Any], *, at_most: bool = False
) -> set[int]:
    """Return the ids of the rows that clash with another one."""
    kinds: dict[Any, set[Any]] = {}

    def key_of(row: Row) -> tuple[Any, Any]:
        value = f(row)
        amount = value.amount if isinstance(value, Money) else value
        return (amount, row.town if scope == "town" else ""), getattr(value, "currency", None)

    if scope == "never":
        return set()
    read = [row for place, row in rows if place == 0 or scope == "both"]
    if scope == "both, one by one":
        found = set()
        for place in (0, 1):
            found |= clashing([(0, row) for at, row in rows if at == place], "t", f)
        if at_most:  # others may be left out of a side
            return found
        return found | clashing([(0, row) for _, row in rows if row.id not in found], "t", f)
    for row in read:
        key, kind = key_of(row)
        kinds.setdefault(key, set()).add(kind)
    return {row.id for row in read if len(kinds[key_of(row)[0]]) > 1}


def shown(view: Any) -> Counter[str]:
    return Counter(map(repr, view))


def check(view: Any, rows: list[tuple[int, Row]], name: str, f: Any, *, at_most: bool) -> None:
    """Check a view and its errors against their definitions."""
    scope, query = OPERATORS[name]
    view.verify()
    view.errors.verify()
    expected = clashing(rows, scope, f, at_most=at_most)
    if name == "select_many":  # errors contain the emitted rows
        assert at_most or len(view.errors) == len(expected)
        return
    found = {error.row.id for error in view.errors}
    assert expected <= found if at_most else expected == found
    fresh = Database()
    tables: list[Any] = [fresh.table(Row, name="t"), fresh.table(Row, name="u")]
    for place, row in rows:
        if row.id not in found:
            tables[place].add(row)
    assert shown(query(tables[0], tables[1], f).materialize()) == shown(view)


# S#
@pytest.mark.long
@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("policy", ["drop", "null"])
@pytest.mark.parametrize("name", OPERATORS)
def test_rows_that_clash_are_errors_in_any_order(
    name: str, policy: Any, kind: str, seed: int
) -> None:
    chance, db, f = Random(seed), Database(), given if kind.startswith("given") else made
    tables: list[Any] = [db.table(Row, name="t"), db.table(Row, name="u")]
    view = OPERATORS[name][1](tables[0], tables[1], f).materialize(on_error=policy)
    rows: list[tuple[int, Row]] = []
    for number in range(25):
        if rows and chance.random() < 0.4:
            place, row = rows.pop(chance.randrange(len(rows)))
            tables[place].remove(row)
        else:
            rows.append((place := chance.randrange(2), draw(chance, number, kind)))
            tables[place].add(rows[-1][1])
        check(view, rows, name, f, at_most=False)
    for place, row in rows:
        tables[place].remove(row)
    assert not view.errors
    check(view, [], name, f, at_most=False)


# S#
@pytest.mark.long
@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("policy", ["drop", "null"])
@pytest.mark.parametrize("name", OPERATORS)
def test_no_commit_that_replaces_rows_is_refused(
    name: str, policy: Any, kind: str, seed: int
) -> None:
    chance, db, f = Random(seed), Database(), given if kind.startswith("given") else made
    tables: list[Any] = [db.table(Row, name="t"), db.table(Row, name="u")]
    view = OPERATORS[name][1](tables[0], tables[1], f).materialize(on_error=policy)
    rows: list[tuple[int, Row]] = []
    for number in range(0, 80, 4):
        before, is_kept = list(rows), chance.random() < 0.8
        try:
            with db.transaction():
                for more in range(chance.randrange(1, 4)):
                    if rows and chance.random() < 0.6:
                        place, row = rows.pop(chance.randrange(len(rows)))
                        tables[place].remove(row)
                    rows.append((place := chance.randrange(2), draw(chance, number + more, kind)))
                    tables[place].add(rows[-1][1])
                if not is_kept:
                    raise KeyError
        except KeyError:
            rows = before
        check(view, rows, name, f, at_most=True)
    for place, row in rows:
        tables[place].remove(row)
    tables[0].add(Row(1000, "Ulm", 1))
    check(view, [(0, Row(1000, "Ulm", 1))], name, f, at_most=False)


@pytest.mark.parametrize("policy", ["drop", "null"])
def test_comparisons_that_raise_are_errors(policy: Any) -> None:
    table: Any = Database().table(Row)
    same = table.where(lambda r: r.x == 7).materialize(on_error=policy)
    other = table.select(lambda r: (r.id, r.x != 7)).materialize(on_error=policy)
    table.add_all([Row(1, "Ulm", 7), Row(2, "Ulm", 8), Row(3, "Ulm", Money(7, "e"))])
    for view in (same, other):
        view.verify()
        assert [error.row.id for error in view.errors] == [3]
    assert [row.id for row in same] == [1]
    nothing = [None] if policy == "null" else []
    assert sorted(other, key=repr) == [(1, False), (2, True), *nothing]


@pytest.mark.parametrize("policy", ["drop", "null"])
def test_a_list_with_values_that_clash_is_an_error(policy: Any) -> None:
    table: Any = Database().table(Row)
    view = table.unnest(lambda r: [made(r), r.x[0]]).materialize(on_error=policy)
    table.add(Row(1, "Ulm", (7, "e")))
    view.verify()
    assert not view and [error.row.id for error in view.errors] == [1]


class Paid(NamedTuple):
    id: int
    amount: int
    currency: str


def test_no_source_is_stopped(tmp_path: Path) -> None:
    lines = [json.dumps(row._asdict()) for row in (Paid(1, 7, "e"), Paid(2, 7, "d"))]
    path = tmp_path / "paid.jsonl"
    path.write_text("\n".join([lines[0], ""]))
    with Database() as db:
        watched: Any = db.watch(path, Paid, name="watched", key="id", poll=0.01)
        fed: Any = db.table(Paid, name="fed")
        source = db.ingest(None, fed, name="pushed")
        views = [
            table.group_by(lambda r: Money(r.amount, r.currency))
            .aggregate(Count())
            .materialize(on_error="drop")
            for table in (watched, fed)
        ]
        path.write_text("\n".join([*lines, ""]))
        watched.catch_up(timeout=60)
        source.take(Batch(origins={"first": [Paid(1, 7, "e")], "second": [Paid(2, 7, "d")]}))
        for view in views:
            view.verify()
            assert not view and {error.row.id for error in view.errors} == {1, 2}

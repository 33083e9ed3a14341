"""Joins whose sides both change in one commit: no callable sees a pair that never existed."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactive.engine.operators.join as plain
from reactive import Count, Database, Max, Sum, Table
from tests.budget import examples


class Left(NamedTuple):
    key: int
    value: float


class Right(NamedTuple):
    key: int
    name: str


KEYS = st.integers(0, 2)
LEFTS = st.builds(Left, KEYS, st.sampled_from([0.5, 1.5, float("nan")]))
RIGHTS = st.builds(Right, KEYS, st.sampled_from("ab"))
EDITS = st.lists(st.tuples(st.booleans(), LEFTS | RIGHTS), max_size=8)
COMMITS = st.lists(EDITS, min_size=1, max_size=8)


def edit(table: Table[Any], row: Any, *, is_new: bool) -> None:
    if is_new or row not in table:
        table.add(row)
    else:
        table.remove(row)


@examples(60)
@given(commits=COMMITS)
def test_pairs_are_of_before_or_of_after(commits: list[list[tuple[bool, Left | Right]]]) -> None:
    db = Database()
    lefts, rights = db.table(Left, name="lefts"), db.table(Right, name="rights")
    seen: list[tuple[Left, Right]] = []

    def note(pair: tuple[Left, Right]) -> bool:
        seen.append(pair)
        return True

    joined = lefts.join(rights, on=lambda a, b: a.key == b.key)
    noted = joined.select(lambda a, b: (a, b)).where(note)
    counted = joined.group_by(lambda a, b: b.name).aggregate(Count(), Sum(lambda a, b: a.value))
    views = [noted.materialize(), counted.materialize()]
    for edits in commits:
        possible = [(repr(a), repr(b)) for a in lefts for b in rights]
        seen.clear()
        with db.transaction():
            for is_new, row in edits:
                edit(lefts if isinstance(row, Left) else rights, row, is_new=is_new)
        possible += [(repr(a), repr(b)) for a in lefts for b in rights]
        assert {(repr(a), repr(b)) for a, b in seen} <= {*possible}
        for view in views:
            view.verify()


def test_a_left_and_a_right_row_that_are_exchanged_run_the_generated_loops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    db = Database()
    lefts, rights = db.table(Left, name="lefts"), db.table(Right, name="rights")
    joined = lefts.join(rights, on=lambda a, b: a.key == b.key)
    view = joined.select(lambda a, b: (a.value, b.name)).materialize()
    by_name = joined.group_by(lambda a, b: b.name).aggregate(Max(lambda a, b: a.value))
    greatest = by_name.materialize()
    lefts.add_all([Left(1, 0.5), Left(1, 2.5)])
    rights.add_all([Right(1, "a"), Right(1, "c")])
    monkeypatch.setattr(plain.Join, "step", None)
    with db.transaction():
        lefts.replace_all([Left(1, 1.5), Left(1, 2.5)])
        rights.replace_all([Right(1, "b"), Right(1, "c")])
    assert sorted(view) == [(1.5, "b"), (1.5, "c"), (2.5, "b"), (2.5, "c")]
    assert sorted(greatest) == [("b", 2.5), ("c", 2.5)]
    view.verify()
    greatest.verify()

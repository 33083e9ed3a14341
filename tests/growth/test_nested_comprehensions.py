"""Aggregates of comprehensions inside each other: each part of the text is read once."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import pytest

from reactive import Database, Relation, Table, check
from tests.counted_calls import calls_of
from tests.written import evaluated


class Part(NamedTuple):
    """A row of a tree."""

    id: int
    up: int


FORMS = {
    "added on the right": "{part}.id + {inner}",
    "added on the left": "{inner} + {part}.id",
    "multiplied": "2 * ({inner} - 1)",
    "chosen": "{inner} if {part}.id > 1 else {part}.id",
    "the other choice": "1 if {part}.id > 1 else {inner}",
    "tested": "1 if {inner} > 0 else {part}.id",
}


def query(form: str, levels: int) -> tuple[Table[Part], Relation[tuple[int, int]]]:
    """Return a query of sums in sums, each of the parts below the part around it."""

    def inner(level: int) -> str:
        part = f"p{level}"
        value = f"{part}.id"
        if level < levels:
            value = FORMS[form].format(part=part, inner=inner(level + 1))
        return f"sum({value} for {part} in parts if {part}.up == p{level - 1}.id)"

    db = Database()
    parts = db.table(Part, name="parts")
    text = f"lambda: [(p0.id, {inner(1)}) for p0 in parts]"
    return parts, db.query(evaluated(text, {"parts": parts}))


@pytest.mark.parametrize("form", FORMS)
def test_twice_the_levels_take_a_few_times_the_calls(form: str) -> None:
    """Sides of an operator were read twice: each level doubled the calls."""
    query(form, 2)
    few, many = (calls_of(partial(query, form, levels)) for levels in (6, 12))
    assert many < (12 if form == "tested" else 6) * few


@pytest.mark.parametrize("form", FORMS)
def test_the_rows_are_those_of_the_function(form: str) -> None:
    parts, asked = query(form, 4)
    view = asked.materialize()
    parts.add_all([Part(n, n // 2) for n in range(1, 20)])
    check(view)
    parts.remove(Part(4, 2))
    parts.add(Part(4, 3))
    check(view)
    view.verify()

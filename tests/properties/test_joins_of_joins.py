"""Aggregates of joins of joins, of whatever each join asks, equal the plan as written."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

import reactive
from reactive import Database
from tests.written import executed

FIELDS = range(3)
SEEDS = 240
NAMES = {name: getattr(reactive, name) for name in ("Count", "Sum", "Max", "Avg")}


def written(random: Random) -> str:
    """A query over tables `t`, as text: two to four of them, joined in all ways there are."""
    count = random.choice((2, 3, 3, 4))
    lines = [f"    q = t[{random.choice(FIELDS)}]"]
    for place in range(1, count):
        lines += join(random, place)
    names, a, b = arguments(count), random.randrange(count), random.randrange(count)
    folds = ["Count()", f"Sum(lambda {names}: x{a}[1])", f"Avg(lambda {names}: x{b}[1])"]
    folds += [f"Max(lambda {names}: x{b}[0])", f"Sum(lambda {names}: x{a}[1] * x{b}[2])"]
    keys = [f"x{a}[2]", f"(x{a}[2], x{b}[0])", f"x{a}[0] + x{b}[1]"]
    by = random.choice(["", *(f".group_by(lambda {names}: {key})" for key in keys)])
    some = ", ".join(random.sample(folds, random.choice((1, 1, 2, 3))))
    return "\n".join(["def query(t):", *lines, f"    return q{by}.aggregate({some})"])


def join(random: Random, place: int) -> list[str]:
    """The lines of a join by equal fields, which may ask more of the rows that it pairs."""
    other, of_other, own = random.randrange(place), random.choice(FIELDS), random.choice(FIELDS)
    table, names = f"t[{random.choice(FIELDS)}]", arguments(place + 1)
    equal = f"x{other}[{of_other}] == x{place}[{own}]"
    rest = " and ".join(condition(random, place + 1) for _ in range(random.choice((0, 0, 1, 2))))
    both = f"{equal} and {rest}" if rest else equal
    match random.choice(("on", "keys", "where", "product")):
        case "on":
            return [f"    q = q.join({table}, on=lambda {names}: {both})"]
        case "keys":
            keys = f"left_key=lambda {arguments(place)}: x{other}[{of_other}], "
            keys += f"right_key=lambda y: y[{own}]"
            on = f", on=lambda {names}: {rest}" if rest else ""
            return [f"    q = q.join({table}, {keys}{on})"]
        case "where":
            line = f"    q = q.join({table}, on=lambda {names}: {equal})"
            return [line, *([f"    q = q.where(lambda {names}: {rest})"] if rest else [])]
        case _:
            return [f"    q = q.join({table})", f"    q = q.where(lambda {names}: {both})"]


def condition(random: Random, count: int) -> str:
    """Something that is asked of one or two of so many rows."""
    a, b = (f"x{random.randrange(count)}[{random.choice(FIELDS)}]" for _ in range(2))
    return random.choice((f"{a} < {b}", f"{a} != {b}", f"{a} + {b} != 3", f"{a} > 0"))


def arguments(count: int) -> str:
    return ", ".join(f"x{place}" for place in range(count))


@pytest.mark.parametrize("part", range(8))
def test_they_equal_the_plan_as_written(part: int) -> None:
    for seed in range(part, SEEDS, 8):
        random = Random(seed)
        text = written(random)
        query = executed(text, NAMES)["query"]
        sides = []
        for optimize in (True, False):
            db = Database(optimize=optimize)
            tables: list[Any] = [db.table(tuple, name=f"t{place}") for place in FIELDS]
            sides.append((db, tables, query(tables).materialize()))
        held: list[list[Any]] = [[] for _ in FIELDS]
        for _ in range(14):
            changes = [change(random, held) for _ in range(random.choice((1, 1, 3)))]
            for db, tables, _ in sides:
                with db.transaction():
                    for place, row, weight in changes:
                        verb = tables[place].add if weight > 0 else tables[place].remove
                        verb(row)
            shown = [Counter(dict(view.items())) for _, _, view in sides]
            assert shown[0] == shown[1], text


def change(random: Random, held: list[list[Any]]) -> tuple[int, tuple[int, ...], int]:
    """A row that comes to one of the tables, or goes from it."""
    place = random.choice(FIELDS)
    if held[place] and random.random() < 0.35:
        return place, held[place].pop(random.randrange(len(held[place]))), -1
    row = tuple(random.randrange(3) for _ in FIELDS)
    held[place].append(row)
    return place, row, 1

"""Histories of the inputs of a program: inserts, updates and deletes, some of them undone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hypothesis import strategies as st

from tests.random_queries.terms import SIZE, Pair

Model = dict[str, Counter[Pair]]
Do = Callable[[Mapping[str, Any]], object]
"""A change of real tables."""

NUMBERS = st.integers(0, SIZE - 1)
ROWS = st.tuples(NUMBERS, NUMBERS)


@dataclass(frozen=True)
class Change:
    """A change; `where` is the place of a present row, modulo their number."""

    kind: Literal["add", "add_two", "remove", "update", "clear"]
    table: str
    row: Pair
    where: int


@dataclass(frozen=True)
class Commit:
    """Changes that are one commit, or one each, or are called off at the end."""

    changes: tuple[Change, ...]
    how: Literal["together", "each", "called_off"]


@st.composite
def histories(draw: Any, inputs: Sequence[str]) -> tuple[Commit, ...]:
    """Draw some first rows, then commits with about as many inserts as deletes."""
    names = st.sampled_from(list(inputs))
    ways = ["add", "add", "add", "add_two", "remove", "remove", "remove", "remove", "update"]
    kinds = st.sampled_from([*ways, *ways, *ways, "clear"])
    change = st.builds(Change, kinds, names, ROWS, st.integers(0, 15))
    first = st.builds(Change, st.just("add"), names, ROWS, st.just(0))
    hows = st.sampled_from(["together", "together", "together", "each", "called_off"])
    start = Commit(tuple(draw(st.lists(first, min_size=5, max_size=12))), "together")
    some = st.lists(change, max_size=3).map(tuple)
    rest = draw(st.lists(st.builds(Commit, some, hows), min_size=6, max_size=14))
    return (start, *rest)


def resolved(model: Model, change: Change) -> tuple[Do, Model] | None:
    """Return a change as a call on real tables, and the model after it."""
    name, row = change.table, change.row
    held = sorted(model[name].elements())
    now = Counter(held)
    old = held[change.where % len(held)] if held else None
    do: Do
    match change.kind:
        case "add" | "add_two":
            count = 1 if change.kind == "add" else 2
            now[row] += count
            do = lambda tables: tables[name].add(row, count)  # noqa: E731
        case "remove" if old is not None:
            now[old] -= 1
            do = lambda tables: tables[name].remove(old)  # noqa: E731
        case "update" if old is not None:
            now[old] -= 1
            now[row] += 1
            do = lambda tables: tables[name].update(old, row)  # noqa: E731
        case "clear":
            now = Counter()
            do = lambda tables: tables[name].clear()  # noqa: E731
        case _:
            return None
    return do, {**model, name: +now}

"""The time to make and compile a relation of ten operators, on empty tables."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from asv_benchmarks.rows import Customer, Item, Order
from asv_benchmarks.workloads.ten_operators import query
from reactive import Database, Relation

ROUNDS = 200
WARM_UP = 20
Query = Callable[..., Relation[*tuple[Any, ...]]]


def making_figures(rounds: int = ROUNDS) -> dict[str, float]:
    """Return milliseconds: the first time in a process, again, and with new callables.

    For the last, the file of the query is run again under another name, a line further down.
    """
    cold = made(query)
    again = [made(query) for _ in range(rounds)]
    other = [made(other_query(number)) for number in range(1, rounds // 4 + 2)]
    return {"cold": cold, "warm": median(again[WARM_UP:] or again), "new": median(other)}


def made(query: Query) -> float:
    """Milliseconds to make a view of a query over empty tables of a new database."""
    db = Database()
    tables = db.table(Order), db.table(Customer), db.table(Item)
    start = perf_counter()
    view = query(*tables).materialize()
    seconds = perf_counter() - start
    view.close()
    return seconds * 1e3


def other_query(number: int) -> Query:
    """Return the same query with functions that were not lifted before."""
    home = query.__code__.co_filename
    text = "\n" * number + Path(home).read_text()
    name = f"<ten operators {number}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names: dict[str, Any] = {"__name__": f"ten_operators_{number}"}
    exec(compile(text, name, "exec"), names)
    made: Query = names["query"]
    return made

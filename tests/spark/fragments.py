"""Whole fragments over two tables of rows that come and go, and what they are to give."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from optimizer import plan
from reactive import Database
from reactive.engine.collections.zset import NAN
from reactive.engine.reference.evaluate import evaluate_part
from reactive.engine.remote.fragments import LEVEL, Fragment, whole_fragment
from tests.budget import SEED, TIMES
from tests.spark.ways import begun, jobs, way

Change = tuple[int, Any, int]
"""The input, the row, and its weight."""


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    customer: int
    amount: float
    tag: str | None


@dataclass(frozen=True, slots=True)
class Customer:
    id: int
    town: str
    rate: float
    tag: str | None


Query = Callable[[Any, Any], Any]
Tables = tuple[type[Any], type[Any]]
"""The classes of the rows of both tables."""
OF_ORDERS: Tables = (Order, Customer)
FLOATS = (0.1, 0.2, 0.3, 0.0, -0.0, 1e16, -1e16, 7.5, 2.0**-60)
ODD = (NAN, 1e300, -1e300, 5e-324, math.inf)


class Histories:
    """Two tables of rows that come and go."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.rows: tuple[Counter[Any], Counter[Any]] = (Counter(), Counter())

    def changes(self, count: int, *, odd: bool) -> list[Change]:
        return [self._change(FLOATS + ODD * odd) for _ in range(count)]

    def _change(self, floats: tuple[float, ...]) -> Change:
        place = self._random.randrange(2)
        rows = self.rows[place]
        if rows and self._random.random() < 0.4:
            row, weight = self._random.choice(list(rows)), -1
        else:
            row, weight = self._row(place, floats), 1
        rows[row] += weight
        if not rows[row]:
            del rows[row]
        return place, row, weight

    def _row(self, place: int, floats: tuple[float, ...]) -> Any:
        draw = self._random
        number, tag = draw.choice(floats), draw.choice(["x", "y", "", None])
        if place == 0:
            large = 2**60 * (len(floats) > len(FLOATS) and draw.random() < 0.2)
            return Order(draw.randrange(12) + large, draw.randrange(6), number, tag)
        return Customer(draw.randrange(6), draw.choice("ab"), number, tag)


def fragment_of(query: Query, tables: Tables = OF_ORDERS) -> Fragment:
    db = Database()
    one, other = map(db.table, tables)
    optimized = db._engine.queries.optimize(query(one, other).plan).plan
    if isinstance(optimized, plan.OrderBy) and optimized.limit is None:
        optimized = optimized.input  # an order of all rows is that of the view, in the process
    found = whole_fragment(optimized, lambda node: False)
    assert found is not None
    return found


def inputs_in_order(fragment: Fragment, tables: Tables = OF_ORDERS) -> list[int]:
    """Return the index of the table of each input, ignoring the tests that the input contains."""
    found = [next(n for n in _below(node) if isinstance(n, plan.Table)) for node in fragment.inputs]
    return [tables.index(table.row_type) for table in found]


def _below(node: plan.Node) -> list[plan.Node]:
    return [node, *(n for source in node.inputs() for n in _below(source))]


def entries(fragment: Fragment, places: list[int], changes: list[Change]) -> list[Any]:
    found = []
    for place, table in enumerate(places):
        rows = [(row, weight) for at, row, weight in changes if at == table]
        passed = _passed(fragment.inputs[place], rows)
        found += [(place, 0, row, weight) for row, weight in passed]
    return found


def _passed(node: plan.Node, rows: list[tuple[Any, int]]) -> list[tuple[Any, int]]:
    if isinstance(node, plan.Table):
        return rows
    assert isinstance(node, plan.Where)
    return [pair for pair in _passed(node.input, rows) if _truth(node, pair[0])]


def _truth(node: plan.Where, row: Any) -> bool:
    bag = Counter({row: 1})
    given = plan.Recursive(LEVEL, 0, "row", False, (None,))
    return bool(evaluate_part(plan.Where(given, node.predicate), {(LEVEL, 0): bag}))


def evaluated(fragment: Fragment, places: list[int], rows: Any) -> Counter[Any]:
    bags = {
        (LEVEL, place): Counter(dict(_passed(fragment.inputs[place], list(rows[table].items()))))
        for place, table in enumerate(places)
    }
    return Counter({row: n for row, n in evaluate_part(fragment.node, bags).items() if n})


def check(
    session: Any,
    query: Query,
    folder: Any,
    *,
    seed: int,
    odd: bool = True,
    counts: Sequence[int] = (25, 6, 8, 5),
    is_direct: bool = True,
    is_begun: bool | None = None,
) -> None:
    """Flush some changes, and compare the output with the query from scratch after each: in its
    files, and at the end also as Spark reads it.

    The first flush is a job, and so is one of the others; all else is done in the process. Of a
    sample half begin as if there had been a first one.

    Parameters
    ----------
    odd: whether there are odd floats, from the third flush on.
    is_direct: whether the process can do it.
    is_begun: True if a flush without rows came before, so that there is only one job; None if
        either is possible.
    """
    from spark_backend.fragments.remote import StateRemote
    from spark_backend.fragments.roster import find_column_obstacle

    fragment = fragment_of(query)
    reason = find_column_obstacle(session, fragment)
    assert reason is None, reason
    if is_begun is None:
        is_begun = not TIMES and Random(f"{SEED} {seed}").random() < 0.5
    remote = StateRemote(session, fragment, str(folder), stable=False)
    history, shown = Histories(seed), Counter[Any]()
    places = inputs_in_order(fragment)
    job = Random(seed).randrange(1, len(counts)) + is_begun
    for number, count in enumerate(counts, int(is_begun)):
        changes = history.changes(count, odd=odd and number > 1)
        if number == 1 and is_begun:
            begun(remote)
        with way(is_job=number == job), jobs() as done:
            given = entries(fragment, places, changes)
            shown.update(dict(remote.apply(number, given)))
        assert bool(done) == (number in (0, job) or not is_direct)
        shown = Counter({row: n for row, n in shown.items() if n})
        expected = evaluated(fragment, places, history.rows)
        assert shown == expected
        assert Counter(dict(remote._in_files())) == expected
        assert remote.size() == expected.total()
    assert Counter(dict(remote.contents())) == expected

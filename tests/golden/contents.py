"""All small contents of some tables, and the results of plans over them.

A table has two different rows, each at most twice: nine contents, 81 for two tables, 729 for
three. A parameter has one of two values. With four tables or more, each row is there at most once.
These contents test operators that depend on signs or sums of weights.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from optimizer import plan
from optimizer.plans.properties import tables as tables_of
from reactive import Database, Parameter, Table
from reactive.api.relation import Relation
from reactive.engine.reference import evaluate
from reactive.engine.reference.bags import Bag
from reactive.engine.transactions.transaction import Transaction
from tests.budget import SEED, TIMES
from tests.golden.tables import CALM, RAISING, tables

Contents = dict[str, Bag]
RAISED = "raises"
MANY = 20
"""Contents that a sample tries: about a quarter of the contents of two tables."""


def all_contents(
    used: Sequence[plan.Table], rows: dict[str, Sequence[Any]]
) -> Iterator[list[Contents]]:
    """Yield all contents, or some, so that each table changes while others stay.

    A sample has one of the orders: raising rows use the other order, and half as many contents.
    """
    most, is_calm = (2 if len(used) < 4 else 1), rows is CALM
    orders = (used, used[::-1]) if len(used) > 1 else (used,)
    for order in orders if TIMES else orders[: 1 if is_calm else None][-1:]:
        choices = [_of_a_table(table, rows[table.name], most) for table in order]
        found = [
            {table.name: bag for table, bag in zip(order, chosen, strict=True)}
            for chosen in itertools.product(*choices)
        ]
        every = 1 if TIMES else apart(len(found), MANY if is_calm else MANY // 2)
        yield found[SEED % every :: every]


def apart(count: int, most: int) -> int:
    """Return a step that selects at most about `most` of `count` contents.

    It is no multiple of three, with which the last table would always have equal contents.
    """
    return next(n for n in range(max(count // most, 1), count + 2) if n == 1 or n % 3)


def differences(written: plan.Node, others: Sequence[plan.Node]) -> list[tuple[Any, ...]]:
    """Return the contents for which plans differ, evaluated from scratch and run."""
    found: list[tuple[Any, ...]] = []
    for rows in (CALM, RAISING):
        runs = [Run(node) for node in (written, *others)]
        expected: dict[str, Bag | str] = {}
        for walk in all_contents(tables_of(written), rows):
            for contents in walk:
                key = repr(sorted(contents.items()))
                results = [run.become(contents) for run in runs]
                if key not in expected:
                    expected[key] = from_scratch(written, contents)
                    results += [from_scratch(node, contents) for node in others]
                if any(result != expected[key] for result in results):
                    found.append((contents, expected[key], *results))
    return found


def run_differences(written: plan.Node) -> list[tuple[Any, ...]]:
    """Return the contents for which a compiled plan differs from its evaluation from scratch."""
    found: list[tuple[Any, ...]] = []
    for rows in (CALM, RAISING):
        run = Run(written, optimize=True)
        for walk in all_contents(tables_of(written), rows):
            for contents in walk:
                result, expected = run.become(contents), from_scratch(written, contents)
                if result != expected:
                    found.append((contents, expected, result))
    return found


def from_scratch(node: plan.Node, contents: Contents) -> Bag | str:
    """The rows of a plan, or that it raises."""
    try:
        return evaluate.evaluate(node, lambda table: contents[table.name].items())
    except Exception:
        return RAISED


class Run:
    """A plan at work, in a database of its own."""

    def __init__(self, node: plan.Node, *, optimize: bool = False) -> None:
        db = Database(optimize=optimize)
        self._tables = tables(db)
        self._engine = db._engine
        self._held: Contents = {}
        self._view: Any = Relation(self._engine, node).materialize()

    def become(self, contents: Contents) -> Bag | str:
        """The rows after a commit that makes this the contents of the tables."""
        try:
            with Transaction(self._engine):
                for name, bag in contents.items():
                    _change(self._tables[name], self._held.get(name, Counter()), bag)
        except Exception:
            return RAISED
        self._held = contents
        return Counter(dict(self._view.zset().items()))


def _change(table: Table[Any], old: Bag, new: Bag) -> None:
    if isinstance(table, Parameter):
        table.set(*new)
        return
    for row, count in (old - new).items():
        table.remove(row, count)
    for row, count in (new - old).items():
        table.add(row, count)


def _of_a_table(table: plan.Table, rows: Sequence[Any], most: int) -> list[Bag]:
    if table.is_value:
        return [Counter([row]) for row in rows]
    times = range(2 if table.key is not None else most + 1)
    return [
        +Counter(dict(zip(rows, counts, strict=True)))
        for counts in itertools.product(times, repeat=len(rows))
    ]

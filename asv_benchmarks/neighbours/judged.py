"""Judge the costs: find neighbours and spellings that differ by more than is asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isclose
from typing import Any, NamedTuple

from asv_benchmarks.neighbours.costs import Cost, Costs
from asv_benchmarks.neighbours.query import Query, difference
from asv_benchmarks.neighbours.variations import spelled
from asv_benchmarks.table import markdown, verdict

NEIGHBOURS, SPELLINGS = 3.0, 1.5
"""The most times that a neighbour may cost, and a query in other words."""
CLOSE = 1e-9
LEAST = {"make": 4_000.0, "": 5.0}
"""Microseconds of the start of a view, and of a change, below which times are not told apart."""


WAYS = {"update": ("move", 2), "few": ("add", 1), "batch": ("few", 1)}
"""Another way of each operation, and how often it is done instead: an update removes and adds."""


class Pair(NamedTuple):
    """A query, its neighbour, and the times that an operation of the neighbour costs."""

    first: Costs
    other: Costs
    operation: str
    times: float
    asked: float
    beside: str = ""
    """The operation of the first query, if it is another one."""

    @property
    def beyond(self) -> float:
        """The times of what is asked."""
        return self.times / self.asked


def pairs_of(first: Costs, others: Iterable[Costs]) -> Iterator[Pair]:
    """Yield each operation of each neighbour, beside the family's first query.

    A neighbour that tells of more rows may cost as much more; a spelling tells of the same rows.
    """
    for other in others:
        words = spelled(first.query, other.query)
        asked = SPELLINGS if words else NEIGHBOURS
        for name, cost in other.costs.items():
            if name in first.costs:
                yield Pair(first, other, name, _times(name, cost, first.costs[name]), asked)


def ways_of(costs: Costs) -> Iterator[Pair]:
    """Yield the operations of one query that could be done by another one, beside that."""
    for name, cost in costs.costs.items():
        kind, _, table = name.partition(" ")
        if kind not in WAYS:
            continue
        other, count = WAYS[kind]
        beside = f"{other} {table}"
        each = costs.costs[beside]
        plain = Cost(each.time * count, each.told * count)
        yield Pair(costs, costs, name, _times(name, cost, plain), NEIGHBOURS, beside)


def _times(name: str, cost: Cost, first: Cost) -> float:
    least = LEAST.get(name, LEAST[""])
    more = max(1.0, cost.told) / max(1.0, first.told)
    return (cost.time + least) / ((first.time + least) * max(1.0, more))


def different(first: Costs, others: Iterable[Costs]) -> list[Costs]:
    """Return the spellings whose result differs from the family's first query."""
    return [
        other
        for other in others
        if spelled(first.query, other.query) and not _equal(other.result, first.result)
    ]


def _equal(one: Any, other: Any) -> bool:
    """Compare results; floats up to rounding, as `/` of sums and `avg` round in other places."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, float) or isinstance(other, float):
        return isclose(one, other, rel_tol=CLOSE)
    return bool(one == other)


def told(pair: Pair) -> str:
    """Return a line about a pair."""
    first, other = figures(pair)
    return f"{pair.times:.1f}x {pair.operation}: {changed(pair)} ({first:,.1f} -> {other:,.1f} us)"


def figures(pair: Pair) -> tuple[float, float]:
    """Return the microseconds of both sides."""
    first = pair.first.costs[pair.beside or pair.operation].time
    return first, pair.other.costs[pair.operation].time


def changed(pair: Pair) -> str:
    """Return the text of the difference between the sides of a pair."""
    if pair.beside:
        query = pair.other.query
        what = difference(Query(query.family, result=query.result), query)
        return f"{pair.beside} -> {pair.operation}" + f" ({what})" * bool(what)
    return difference(pair.first.query, pair.other.query)


def report(pairs: list[Pair], worst: int) -> str:
    """Return the claim, and the worst pairs with the figures of both queries."""
    queries = len({id(pair.other) for pair in pairs}) + len({id(pair.first) for pair in pairs})
    lines = []
    for asked, title in ((NEIGHBOURS, "neighbours"), (SPELLINGS, "spellings")):
        some = [pair for pair in pairs if pair.asked == asked]
        beyond = sum(pair.times > asked for pair in some)
        lines.append(
            f"{len(some)} operations of {title} ({queries} queries); {beyond} cost more than "
            f"{asked:g} times: {verdict(not beyond)}."
        )
    ordered = sorted(pairs, key=lambda pair: -pair.beyond)[:worst]
    rows = [
        [
            pair.first.query.family,
            changed(pair),
            pair.operation,
            *(f"{time:,.1f}" for time in figures(pair)),
            f"{pair.times:.1f}",
        ]
        for pair in ordered
    ]
    header = ["family", "changed", "operation", "first, µs", "neighbour, µs", "times"]
    return "\n".join([*lines, "", *markdown(header, rows)])
